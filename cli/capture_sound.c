/* Sound files as clips: a recording that is longer than the model hears at once is cut where it is quietest. */
#include <string.h>
#include "base/mem.h"
#include "base/os.h"
#include "capture.h"
#include "culet.h"

enum { RATE = 16000, FRAME = RATE / 50 /* loudness is that of 20 ms */ };
#define LONGEST_SECONDS 30.0 /* of a clip, where the model sets no limit */

typedef struct sounds {
    cli_capture base;
    char **path;
    size_t n, at;            /* files; the one that is open or comes next */
    double limit;            /* seconds of a clip */
    float *samples;
    size_t n_samples, from;  /* of the open file; where the next clip begins */
    size_t clip;
} sounds;

static void sounds_close(cli_capture *base) {
    sounds *s = (sounds *)base;
    for (size_t i = 0; i < s->n; i++) {
        clt_free(s->path[i]);
    }
    clt_free(s->path);
    culet_free(s->samples);
    clt_free(s);
}

/* Where the clip that begins at `from` ends: with the file if the rest is short enough, else in the middle of the quietest
 * 20 ms of its last third. */
static size_t clip_end(const sounds *s) {
    size_t most = (size_t)(s->limit * RATE), rest = s->n_samples - s->from;
    if (rest <= most) {
        return s->n_samples;
    }
    size_t best = s->from + most;
    double least = 0;
    bool any = false;
    for (size_t at = s->from + most - most / 3; at + FRAME <= s->from + most; at += FRAME) {
        double sum = 0;
        for (size_t i = 0; i < FRAME; i++) {
            sum += (double)s->samples[at + i] * s->samples[at + i];
        }
        if (!any || sum <= least) {
            least = sum;
            best = at + FRAME / 2;
            any = true;
        }
    }
    return best;
}

static clt_status open_next(sounds *s, clt_err *err) {
    culet_error failure = {0};
    culet_free(s->samples);
    s->samples = NULL;
    s->from = s->n_samples = s->clip = 0;
    culet_status status = culet_sound_read(s->path[s->at], &s->samples, &s->n_samples, &failure);
    if (!status) {
        return CLT_OK;
    }
    s->at++;
    clt_status code = status == CULET_UNSUPPORTED ? CLT_E_UNSUPPORTED : status == CULET_MEMORY ? CLT_E_MEMORY : CLT_E_FAILED;
    clt_fail(err, code, "%s", failure.text);
    memcpy(err->hint, failure.hint, sizeof(err->hint));
    return err->code;
}

static clt_status sounds_next(cli_capture *base, cli_shot *out, bool *end, const atomic_bool *stop, clt_err *err) {
    sounds *s = (sounds *)base;
    double begin = clt_now_ms();
    (void)stop;
    *end = !s->samples && s->at == s->n;
    if (*end) {
        return CLT_OK;
    }
    const char *path = s->path[s->at];
    out->name = clt_strdup(path);
    if (!out->name) {
        return clt_fail_memory(err, path, strlen(path));
    }
    if (!s->samples && open_next(s, err)) {
        return err->code;
    }
    size_t to = clip_end(s), n = to - s->from;
    out->samples = clt_alloc(n * sizeof(float));
    if (!out->samples) {
        return clt_fail_memory(err, path, n * sizeof(float));
    }
    memcpy(out->samples, s->samples + s->from, n * sizeof(float));
    out->n_samples = n;
    out->index = s->clip++;
    out->seconds = (double)s->from / RATE;
    out->end_seconds = (double)to / RATE;
    s->from = to;
    if (to == s->n_samples) {
        culet_free(s->samples);
        s->samples = NULL;
        s->at++;
    }
    out->ms = clt_now_ms() - begin;
    return CLT_OK;
}

clt_status cli_capture_sounds(const char *const *paths, size_t n, double limit, cli_capture **out, clt_err *err) {
    sounds *s = clt_calloc(1, sizeof(*s));
    if (!s) {
        return clt_fail_memory(err, "captions", sizeof(*s));
    }
    s->base = (cli_capture){.next = sounds_next, .close = sounds_close};
    s->limit = limit > 0 && limit < LONGEST_SECONDS ? limit : LONGEST_SECONDS;
    s->path = clt_calloc(n + 1, sizeof(*s->path));
    bool fine = s->path != NULL;
    for (size_t i = 0; i < n && fine; i++) {
        s->path[i] = clt_strdup(paths[i]);
        fine = s->path[i] != NULL;
        s->n += fine;
    }
    if (!fine) {
        sounds_close(&s->base);
        return clt_fail_memory(err, "a list of files", n * sizeof(char *));
    }
    *out = &s->base;
    return CLT_OK;
}
