/* One picture ahead: a thread takes a shot, encodes it and holds it ready while the caption of the one before is generated.
 * The engine's passes and the encoder take turns, so neither starves.
 *
 * At most one picture is ready. What a live capture shows goes on meanwhile: where encoding costs little beside the time
 * from shot to shot, a newer picture takes the place of one that was not fetched yet; else the next shot waits until it was,
 * so that no encoding is thrown away that generation had to give way to. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/hash.h"
#include "base/mem.h"
#include "base/os.h"
#include "caption.h"
#include "signals.h"

enum { LOOK_MS = 50, CHEAP = 10 }; /* a signal is noticed within that; an encoding is cheap below 1 / CHEAP of the time */

struct cli_ahead {
    cli_ahead_params p;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    atomic_bool stop;
    bool full, busy, over;   /* a picture is ready; a newer shot was begun; the thread has ended */
    cli_ready ready;
    double last_shot_ms, last_encode_ms; /* the thread's own; -1: none yet */
};

void cli_ready_free(cli_ready *r) {
    culet_media_free(r->media);
    cli_shot_free(&r->shot);
    *r = (cli_ready){0};
}

/* ---- digests ---- */

void cli_digests_add(cli_digests *d, const char *hex) {
    if (d->n == d->cap && !d->failed) {
        size_t cap = d->cap ? 2 * d->cap : 256;
        char(*grown)[65] = clt_realloc(d->item, cap * sizeof(*grown));
        d->failed = !grown;
        if (grown) {
            d->item = grown;
            d->cap = cap;
        }
    }
    if (!d->failed) {
        memcpy(d->item[d->n], hex, sizeof(*d->item));
        d->n++;
    }
}

static int compare(const void *a, const void *b) {
    return memcmp(a, b, 64);
}

void cli_digests_sort(cli_digests *d) {
    if (d->n) {
        qsort(d->item, d->n, sizeof(*d->item), compare);
    }
}

bool cli_digests_have(const cli_digests *d, const char *hex) {
    return d->n && bsearch(hex, d->item, d->n, sizeof(*d->item), compare);
}

void cli_digests_free(cli_digests *d) {
    clt_free(d->item);
    *d = (cli_digests){0};
}

/* ---- waiting ---- */

static void wait_a_moment(cli_ahead *a, double ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long long ns = until.tv_nsec + (long long)((ms < LOOK_MS ? ms : LOOK_MS) * 1e6);
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&a->moved, &a->lock, &until);
}

static bool is_cheap(const cli_ahead *a) {
    return a->p.capture->live && a->p.every_ms > 0 && a->last_encode_ms >= 0 && a->last_encode_ms * CHEAP <= a->p.every_ms;
}

/* Until the next shot is due. False: it is over. */
static bool wait_for_turn(cli_ahead *a) {
    pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        bool wanted = !a->full || is_cheap(a);
        bool paced = a->p.capture->live && a->last_shot_ms >= 0;
        double left = paced ? a->last_shot_ms + a->p.every_ms - clt_now_ms() : 0;
        if (wanted && left <= 0) {
            break;
        }
        wait_a_moment(a, wanted ? left : LOOK_MS);
    }
    a->busy = true;
    pthread_mutex_unlock(&a->lock);
    return !a->stop;
}

static void publish(cli_ahead *a, const cli_ready *r) {
    pthread_mutex_lock(&a->lock);
    cli_ready_free(&a->ready);
    a->ready = *r;
    a->full = true;
    a->busy = false;
    pthread_cond_broadcast(&a->moved);
    pthread_mutex_unlock(&a->lock);
}

/* ---- the thread ---- */

static void fail(cli_ready *r, const clt_err *err) {
    r->failure.status = (culet_status)clt_status_exit(err->code);
    memcpy(r->failure.text, err->text, sizeof(r->failure.text));
    memcpy(r->failure.hint, err->hint, sizeof(r->failure.hint));
}

static void encode(cli_ahead *a, cli_ready *r) {
    cli_shot *s = &r->shot;
    culet_media_source source = {.kind = a->p.kind, .name = s->name, .tokens = a->p.tokens};
    if (s->samples) {
        source.samples = s->samples;
        source.n_samples = s->n_samples;
    } else if (s->rgb) {
        source.rgb = s->rgb;
        source.width = s->width;
        source.height = s->height;
    } else {
        source.data = s->bytes.data ? s->bytes.data : "";
        source.n_bytes = s->bytes.len;
    }
    if (!culet_media_encode(a->p.engine, &source, &r->media, &r->failure)) {
        const culet_media_info *info = culet_media_get_info(r->media);
        s->ms += info->decode_ms;
        r->encode_ms = info->encode_ms;
    }
}

/* What a file is known by. */
static bool take_digest(cli_ahead *a, cli_ready *r) {
    clt_err err;
    clt_err_clear(&err);
    if (!a->p.known) {
        return true;
    }
    if (clt_sha256_hex(r->shot.bytes.data ? r->shot.bytes.data : "", r->shot.bytes.len, r->digest, &err)) {
        fail(r, &err);
        return false;
    }
    r->known = cli_digests_have(a->p.known, r->digest);
    return !r->known;
}

static void make_next(cli_ahead *a, cli_ready *r) {
    clt_err err;
    clt_err_clear(&err);
    a->last_shot_ms = clt_now_ms();
    clt_status status = a->p.capture->next(a->p.capture, &r->shot, &r->end, &a->stop, &err);
    r->shot.taken_ms = clt_now_ms();
    if (status) {
        fail(r, &err);
        r->end = !r->shot.name;
    } else if (!r->end && take_digest(a, r)) {
        encode(a, r);
    }
    if (r->media) {
        a->last_encode_ms = r->encode_ms;
    } else {
        a->last_shot_ms = -1; /* the next one is due at once */
    }
    clt_buf_free(&r->shot.bytes);
    clt_free(r->shot.rgb);
    clt_free(r->shot.samples);
    r->shot.rgb = NULL;
    r->shot.samples = NULL;
}

static void *work(void *user) {
    cli_ahead *a = user;
    bool end = false;
    while (!end && wait_for_turn(a)) {
        cli_ready next = {0};
        make_next(a, &next);
        end = next.end;
        publish(a, &next);
    }
    pthread_mutex_lock(&a->lock);
    a->over = true;
    pthread_cond_broadcast(&a->moved);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- outside of it ---- */

clt_status cli_ahead_start(const cli_ahead_params *p, cli_ahead **out, clt_err *err) {
    pthread_condattr_t monotonic;
    cli_ahead *a = clt_calloc(1, sizeof(*a));
    *out = NULL;
    if (!a) {
        return clt_fail_memory(err, "captions", sizeof(*a));
    }
    a->p = *p;
    a->last_shot_ms = a->last_encode_ms = -1;
    pthread_mutex_init(&a->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&a->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int why = pthread_create(&a->thread, NULL, work, a);
    if (why) {
        pthread_cond_destroy(&a->moved);
        pthread_mutex_destroy(&a->lock);
        clt_free(a);
        return clt_fail(err, CLT_E_FAILED, "captions: no thread could be started: %s", strerror(why));
    }
    *out = a;
    return CLT_OK;
}

bool cli_ahead_next(cli_ahead *a, cli_ready *out) {
    *out = (cli_ready){0};
    pthread_mutex_lock(&a->lock);
    while ((!a->full || a->busy) && !cli_signals_caught()) {
        wait_a_moment(a, LOOK_MS);
    }
    bool have = !cli_signals_caught();
    if (have) {
        *out = a->ready;
        a->ready = (cli_ready){0};
        a->full = false;
        pthread_cond_broadcast(&a->moved);
    }
    pthread_mutex_unlock(&a->lock);
    return have;
}

void cli_ahead_stop(cli_ahead *a) {
    if (!a) {
        return;
    }
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->moved);
    while (!a->over) {
        culet_media_cancel(a->p.engine); /* again: an encoding may begin only now */
        wait_a_moment(a, LOOK_MS);
    }
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    cli_ready_free(&a->ready);
    pthread_cond_destroy(&a->moved);
    pthread_mutex_destroy(&a->lock);
    clt_free(a);
}
