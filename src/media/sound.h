/* Sound: the bytes of a wav, flac, ogg or mp3 file -> 16 kHz mono floats -> log-mel features.
 *
 * The bytes are hostile: told by content, limited before anything is allocated. Knows no weights and no model. */
#ifndef CLT_MEDIA_SOUND_H
#define CLT_MEDIA_SOUND_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum { CLT_SOUND_RATE = 16000, CLT_MEL_BANDS = 128 };

typedef struct clt_sound {
    float *samples;       /* [n], full scale is 1; owned */
    int64_t n;            /* >= 1 */
    double seconds;       /* as the file lasts */
    int rate, channels;   /* of the file */
    int64_t at_full_scale; /* samples of the file, of any channel, at full scale or beyond: many of them = clipped */
} clt_sound;

/* All channels averaged, resampled to 16 kHz. CLT_E_FAILED: damaged, cut off, empty, longer than max_seconds (0 = three
 * hours; found and allowed are named), numbers that are no sound, another format; CLT_E_UNSUPPORTED: the build lacks the
 * library. The text names `name`. */
clt_status clt_sound_decode(const uint8_t *data, size_t n, const char *name, double max_seconds, clt_sound *out,
                            clt_err *err);
clt_status clt_sound_read(const char *path, double max_seconds, clt_sound *out, clt_err *err);
void clt_sound_free(clt_sound *s);
/* What a person should know of a sound that was read nevertheless, as one line without its name: it is clipped, or silent,
 * or of many channels. False: nothing. */
bool clt_sound_remark(const clt_sound *s, char *out, size_t size);

/* Frames of n samples at 16 kHz: floor((n - 161) / 160) + 1, none below 161 samples. */
int64_t clt_mel_frames(int64_t n);
/* out [clt_mel_frames(n)][CLT_MEL_BANDS]: ln(mel + 1e-3) of magnitudes; window 320 (periodic Hann), hop 160, FFT 512, HTK
 * scale 0..8000 Hz. 160 zeros stand before the first sample. The same bits on every CPU. CLT_E_FAILED: no frame at all. */
clt_status clt_mel_features(const float *samples, int64_t n, float *out, clt_err *err);

#endif
