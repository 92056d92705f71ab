/* Sound: the bytes of a wav, flac, ogg or mp3 file -> 16 kHz mono floats -> log-mel features.
 *
 * The bytes are hostile: told by content, limited before anything is allocated. Knows no weights and no model. */
#ifndef CLT_MEDIA_SOUND_H
#define CLT_MEDIA_SOUND_H
#include "base/err.h"

enum { CLT_SOUND_RATE = 16000, CLT_MEL_BANDS = 128 };

typedef struct clt_sound {
    float *samples;       /* [n] in [-1, 1] (what lies beyond is cut), owned */
    int64_t n;
    double seconds;       /* as the file lasts */
    int rate, channels;   /* of the file */
} clt_sound;

/* All channels averaged, resampled to 16 kHz. CLT_E_FAILED: damaged, empty, longer than max_seconds (0 = no limit; found
 * and allowed are named), numbers that are not finite, no such format; CLT_E_UNSUPPORTED: the build lacks the library. */
clt_status clt_sound_decode(const uint8_t *data, size_t n, const char *name, double max_seconds, clt_sound *out,
                            clt_err *err);
clt_status clt_sound_read(const char *path, double max_seconds, clt_sound *out, clt_err *err);
void clt_sound_free(clt_sound *s);

/* Frames of n samples at 16 kHz: floor((n - 161) / 160) + 1, none below 161 samples. */
int64_t clt_mel_frames(int64_t n);
/* out [clt_mel_frames(n)][CLT_MEL_BANDS]: ln(mel + 1e-3) of magnitudes; window 320 (periodic Hann), hop 160, FFT 512, HTK
 * scale 0..8000 Hz. 160 zeros stand before the first sample. The same bits on every CPU. */
clt_status clt_mel_features(const float *samples, int64_t n, float *out, clt_err *err);

#endif
