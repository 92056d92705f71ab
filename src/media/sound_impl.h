/* What the files of sound share: bytes in memory or in a file as one thing, the decoder, and the change of rate. */
#ifndef CLT_MEDIA_SOUND_IMPL_H
#define CLT_MEDIA_SOUND_IMPL_H
#include "media/sound.h"

/* ---- sound_source.c ---- */
typedef struct clt_sound_source {
    const uint8_t *data; /* NULL: read from fd */
    int fd;
    int64_t bytes;
    int64_t at;          /* the decoder's place */
    const char *name;    /* for errors */
} clt_sound_source;
/* Up to n bytes from `at` on; how many there are. */
int64_t clt_sound_source_read(const clt_sound_source *s, void *dst, int64_t n, int64_t at);
/* Refuses, before any decoder sees them, bytes that are no wav, flac, ogg or mp3, and those that were cut off. */
clt_status clt_sound_source_check(const clt_sound_source *s, clt_err *err);

/* ---- sound_check.c ---- */
clt_status clt_sound_check_wav(const clt_sound_source *s, clt_err *err);
clt_status clt_sound_check_ogg(const clt_sound_source *s, clt_err *err);
clt_status clt_sound_check_mp3(const clt_sound_source *s, clt_err *err);

/* ---- sound_decode.c: libsndfile ---- */
/* Mono samples as they come; what is not CLT_OK ends the decoding. */
typedef struct clt_sound_sink {
    clt_status (*start)(void *user, int rate, int channels, int64_t frames /* -1: unknown */, clt_err *err);
    clt_status (*put)(void *user, const float *mono, int64_t n, clt_err *err);
    void *user;
    int64_t at_full_scale; /* counted by the decoder, of all channels */
} clt_sound_sink;
/* Decodes the whole source, channels averaged. */
clt_status clt_sound_decode_source(clt_sound_source *s, clt_sound_sink *sink, clt_err *err);

/* ---- sound_resample.c: soxr ---- */
typedef struct clt_resampler clt_resampler;
clt_status clt_resampler_create(int rate, clt_resampler **out, clt_err *err); /* from rate to CLT_SOUND_RATE */
void clt_resampler_free(clt_resampler *r);
/* Takes up to *n of `in` (NULL: the input has ended), gives up to *room samples; sets both to what was taken and given.
 * False: the library failed. */
bool clt_resampler_run(clt_resampler *r, const float *in, size_t *n, float *out, size_t *room);

#endif
