/* Files of sound -> 16 kHz mono: limits, mixing and change of rate around the decoder. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "media/sound_impl.h"

enum { HOURS_MOST = 3, ROOM = 1 << 14 /* samples */ };

typedef struct collector {
    const char *name;
    double max_seconds;
    int64_t most;         /* frames of the file */
    int64_t taken;        /* frames of the file so far */
    clt_sound *s;
    int64_t cap;
    clt_resampler *resampler;
} collector;

static clt_status too_long(const collector *c, int64_t frames, const char *about, clt_err *err) {
    return clt_fail(err, CLT_E_FAILED, "%s: lasts %s%.2f s, %.2f s at most are allowed", c->name, about,
                    (double)frames / c->s->rate, c->max_seconds);
}

static clt_status start(void *user, int rate, int channels, int64_t frames, clt_err *err) {
    collector *c = user;
    c->s->rate = rate, c->s->channels = channels;
    c->most = (int64_t)floor(c->max_seconds * rate);
    if (frames > c->most) return too_long(c, frames, "", err);
    return rate == CLT_SOUND_RATE ? CLT_OK : clt_resampler_create(rate, &c->resampler, err);
}

static bool reserve(collector *c, int64_t more) {
    if (c->s->n + more <= c->cap) return true;
    int64_t cap = c->cap + c->cap / 2 + more;
    float *grown = clt_realloc(c->s->samples, (size_t)cap * sizeof *grown);
    if (!grown) return false;
    c->s->samples = grown, c->cap = cap;
    return true;
}

/* Appends what comes of n samples, or with in NULL what was still held back. */
static clt_status resample(collector *c, const float *in, int64_t n, clt_err *err) {
    for (;;) {
        size_t taken = (size_t)n, given = ROOM;
        if (!reserve(c, ROOM)) return clt_fail_memory(err, c->name, (uint64_t)(c->s->n + ROOM) * sizeof(float));
        bool ok = clt_resampler_run(c->resampler, in, &taken, c->s->samples + c->s->n, &given);
        if (!ok || (n > 0 && !taken && !given))
            return clt_fail(err, CLT_E_FAILED, "%s: the change of rate from %d Hz failed", c->name, c->s->rate);
        c->s->n += (int64_t)given;
        if (in) in += taken, n -= (int64_t)taken;
        if (in ? n == 0 && given < ROOM : given == 0) return CLT_OK;
    }
}

static clt_status put(void *user, const float *mono, int64_t n, clt_err *err) {
    collector *c = user;
    c->taken += n;
    if (c->taken > c->most) return too_long(c, c->taken, "at least ", err);
    if (c->resampler) return resample(c, mono, n, err);
    if (!reserve(c, n)) return clt_fail_memory(err, c->name, (uint64_t)(c->s->n + n) * sizeof(float));
    memcpy(c->s->samples + c->s->n, mono, (size_t)n * sizeof *mono);
    c->s->n += n;
    return CLT_OK;
}

static clt_status finish(collector *c, clt_err *err) {
    clt_status st = c->resampler ? resample(c, NULL, 0, err) : CLT_OK;
    if (st != CLT_OK) return st;
    c->s->seconds = (double)c->taken / c->s->rate;
    /* Rounding of the length may give a sample more than the limit has. */
    int64_t most = (int64_t)floor(c->max_seconds * CLT_SOUND_RATE);
    if (c->s->n > most) c->s->n = most;
    return c->s->n ? CLT_OK : clt_fail(err, CLT_E_FAILED, "%s: holds no sound: %lld samples", c->name, (long long)c->taken);
}

static clt_status decode(clt_sound_source *source, double max_seconds, clt_sound *out, clt_err *err) {
    double longest = HOURS_MOST * 3600.0;
    collector c = {.name = source->name, .max_seconds = longest, .s = out};
    clt_sound_sink sink = {start, put, &c, 0};
    if (max_seconds > 0 && max_seconds < longest) c.max_seconds = max_seconds;
    *out = (clt_sound){0};
    clt_status st = clt_sound_source_check(source, err);
    if (st == CLT_OK) st = clt_sound_decode_source(source, &sink, err);
    if (st == CLT_OK) st = finish(&c, err);
    out->at_full_scale = sink.at_full_scale;
    clt_resampler_free(c.resampler);
    if (st != CLT_OK) clt_sound_free(out);
    return st;
}

clt_status clt_sound_decode(const uint8_t *data, size_t n, const char *name, double max_seconds, clt_sound *out,
                            clt_err *err) {
    clt_sound_source source = {.data = data ? data : (const uint8_t *)"", .fd = -1, .bytes = (int64_t)n, .name = name};
    return decode(&source, max_seconds, out, err);
}

clt_status clt_sound_read(const char *path, double max_seconds, clt_sound *out, clt_err *err) {
    struct stat st;
    clt_status status;
    *out = (clt_sound){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer is refused below, not waited for */
    if (fd < 0) return clt_fail(err, CLT_E_FAILED, "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        status = clt_fail(err, CLT_E_FAILED, "%s: not a file", path);
    } else {
        clt_sound_source source = {.fd = fd, .bytes = st.st_size, .name = path};
        status = decode(&source, max_seconds, out, err);
    }
    close(fd);
    return status;
}

bool clt_sound_remark(const clt_sound *s, char *out, size_t size) {
    const double clipped = 0.01, silent = 1e-4;
    double part = (double)s->at_full_scale / (s->seconds * s->rate * s->channels);
    float loudest = 0;
    for (int64_t i = 0; i < s->n; i++) loudest = fabsf(s->samples[i]) > loudest ? fabsf(s->samples[i]) : loudest;
    if (part >= clipped) snprintf(out, size, "clipped: %.0f %% of the samples are at full scale", part * 100);
    else if (loudest < silent) snprintf(out, size, "silent: no sample is louder than %g of full scale", silent);
    else if (s->channels > 2) snprintf(out, size, "%d channels were averaged into one", s->channels);
    else return false;
    return true;
}

void clt_sound_free(clt_sound *s) {
    clt_free(s->samples);
    *s = (clt_sound){0};
}
