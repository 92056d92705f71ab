/* The sound tower, from features to soft tokens; read conform first.
 *
 * Conformer: sub-sampling to 25 rows a second, then layers of half a feed-forward, local attention, a convolution over the
 * last few rows, half a feed-forward and a norm; at the end two projections. Unified: frames of samples, one projection. */
#include <string.h>
#include "forward/audio_impl.h"

#define FIXED_EPS 1e-6f /* of the norms in a layer, whatever a file says; old GGUF files are wrong */

typedef struct run {
    clt_audio_work *w;
    bool (*between)(void *user);
    void *user;
    clt_audio_probe probe;
    void *probe_user;
} run;

/* ---- steps by row ---- */

typedef struct step {
    const clt_audio_work *w;
    const clt_audio_net_layer *l;
    const float *norm;
    float *x, *y;
    float factor;
} step;

/* y = rms_w(x) */
static void norm_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    int64_t d = s->w->a->config->width;
    s->w->a->k->rms_norm(s->x + row * d, s->norm, FIXED_EPS, s->y + row * d, d);
}

/* x += factor * rms_w(y); norm NULL: x += y */
static void join_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    int64_t d = s->w->a->config->width;
    float *x = s->x + row * d, *y = s->y + row * d;
    if (s->norm) s->w->a->k->rms_norm(y, s->norm, FIXED_EPS, y, d);
    s->w->a->k->axpy(s->factor, y, x, d);
}

/* x [F] = silu(x) */
static void silu_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    int64_t f = s->w->a->config->ffn;
    float *x = s->x + row * f;
    s->w->a->k->sigmoid_mul(x, x, x, f);
}

/* y [W] = first half of x [2W] * sigmoid(second half) */
static void gate_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    int64_t d = s->w->a->config->width;
    const float *x = s->x + row * 2 * d;
    s->w->a->k->sigmoid_mul(x + d, x, s->y + row * d, d);
}

/* y = silu(rms_w(sum of the last rows of x up to this one, each times its tap)) */
static void convolve_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_audio_config *c = s->w->a->config;
    const clt_kernels *k = s->w->a->k;
    int64_t d = c->width;
    float *y = s->y + row * d;
    memset(y, 0, (size_t)d * sizeof *y);
    for (int tap = 0; tap < c->conv_kernel; tap++) {
        int at = row + tap + 1 - c->conv_kernel;
        const float *t = s->l->taps + tap * d, *x = s->x + at * d;
        for (int64_t i = 0; at >= 0 && i < d; i++) y[i] += t[i] * x[i];
    }
    k->rms_norm(y, s->l->conv_norm, c->rms_eps, y, d);
    k->sigmoid_mul(y, y, y, d);
}

/* x [out_width] = rms(x + bias) */
static void finish_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_audio *a = s->w->a;
    int64_t d = a->config->out_width;
    float *x = s->x + row * d;
    a->k->add(x, a->output_bias, x, d);
    a->k->rms_norm(x, NULL, a->config->rms_eps, x, d);
}

/* ---- blocks of a layer: each adds its branch to w->x ---- */

static void feed_forward(clt_audio_work *w, const clt_audio_net_layer *l, int i) {
    clt_audio_rows(w, norm_row, &(step){w, l, l->ffn_norm[i], w->x, w->h, 0});
    clt_audio_multiply(w, CLT_ROLE_FFN, &l->ffn_up[i], w->h, w->wide);
    clt_audio_rows(w, silu_row, &(step){w, l, NULL, w->wide, NULL, 0});
    clt_audio_multiply(w, CLT_ROLE_FFN, &l->ffn_down[i], w->wide, w->h);
    clt_audio_rows(w, join_row, &(step){w, l, l->ffn_post_norm[i], w->x, w->h, w->a->config->residual_weight});
}

static void attention(clt_audio_work *w, const clt_audio_net_layer *l) {
    clt_audio_rows(w, norm_row, &(step){w, l, l->attn_norm, w->x, w->h, 0});
    clt_audio_multiply(w, CLT_ROLE_ATTENTION, &l->q, w->h, w->q);
    clt_audio_multiply(w, CLT_ROLE_ATTENTION, &l->k, w->h, w->k);
    clt_audio_multiply(w, CLT_ROLE_ATTENTION, &l->v, w->h, w->v);
    clt_audio_attend(w, l);
    clt_audio_multiply(w, CLT_ROLE_ATTENTION, &l->post, w->att, w->h);
    clt_audio_rows(w, join_row, &(step){w, l, l->attn_post_norm, w->x, w->h, 1});
}

static void convolution(clt_audio_work *w, const clt_audio_net_layer *l) {
    clt_audio_rows(w, norm_row, &(step){w, l, l->conv_pre_norm, w->x, w->h, 0});
    clt_audio_multiply(w, CLT_ROLE_ATTENTION, &l->conv_start, w->h, w->wide);
    clt_audio_rows(w, gate_row, &(step){w, l, NULL, w->wide, w->h, 0});
    clt_audio_rows(w, convolve_row, &(step){w, l, NULL, w->h, w->att, 0});
    clt_audio_multiply(w, CLT_ROLE_ATTENTION, &l->conv_end, w->att, w->h);
    clt_audio_rows(w, join_row, &(step){w, l, NULL, w->x, w->h, 1});
}

/* ---- the two kinds ---- */

static clt_status pause_between(const run *r, clt_err *err) {
    if (!r->between || r->between(r->user)) return CLT_OK;
    return clt_fail(err, CLT_E_CANCELLED, "hearing the sound was cancelled");
}

static clt_status conform(const run *r, const float *mel, int64_t frames, float *soft, clt_err *err) {
    clt_audio_work *w = r->w;
    const clt_audio *a = w->a;
    const clt_audio_config *c = a->config;
    clt_audio_subsample(a, mel, frames, w->subsample, w->wide);
    clt_linear_one(&w->s, CLT_ROLE_ATTENTION, &a->input_proj, w->wide, clt_audio_flat(c), w->n, CLT_FINE, w->x, c->width);
    if (r->probe) r->probe(r->probe_user, "subsampled", -1, w->x, w->n, c->width);
    for (int i = 0; i < c->layers; i++) {
        const clt_audio_net_layer *l = &a->layer[i];
        clt_status st = pause_between(r, err);
        if (st != CLT_OK) return st;
        feed_forward(w, l, 0);
        attention(w, l);
        convolution(w, l);
        feed_forward(w, l, 1);
        clt_audio_rows(w, norm_row, &(step){w, l, l->out_norm, w->x, w->x, 0});
        if (r->probe) r->probe(r->probe_user, "layer", i, w->x, w->n, c->width);
    }
    clt_linear_one(&w->s, CLT_ROLE_ATTENTION, &a->output_proj, w->x, c->width, w->n, CLT_FINE, w->wide, c->out_width);
    clt_audio_rows(w, finish_row, &(step){w, NULL, NULL, w->wide, NULL, 0});
    clt_linear_one(&w->s, CLT_ROLE_HEAD, &a->projection, w->wide, c->out_width, w->n, CLT_FINE, soft, c->text_width);
    return CLT_OK;
}

/* Rows of `bands` samples, the last one filled up with zeros: soft = W rms(row). */
static clt_status project(const run *r, const float *samples, int64_t n, float *soft, clt_err *err) {
    clt_audio_work *w = r->w;
    const clt_audio *a = w->a;
    const clt_audio_config *c = a->config;
    int64_t tokens = clt_audio_tokens(c, n);
    for (int64_t done = 0; done < tokens; done += w->n) {
        int rows = tokens - done < w->n ? (int)(tokens - done) : w->n;
        clt_status st = pause_between(r, err);
        if (st != CLT_OK) return st;
        for (int64_t i = 0; i < rows; i++) {
            int64_t at = (done + i) * c->bands, there = n - at < c->bands ? n - at : c->bands;
            float *x = w->x + i * c->bands;
            memcpy(x, samples + at, (size_t)there * sizeof *x);
            memset(x + there, 0, (size_t)(c->bands - there) * sizeof *x);
            a->k->rms_norm(x, NULL, c->rms_eps, x, c->bands);
        }
        clt_linear_one(&w->s, CLT_ROLE_HEAD, &a->projection, w->x, c->bands, rows, CLT_FINE, soft + done * c->text_width,
                       c->text_width);
    }
    return CLT_OK;
}

int64_t clt_audio_tokens(const clt_audio_config *c, int64_t frames) {
    if (frames < 1) return 0;
    if (c->kind == CLT_AUDIO_UNIFIED) return (frames + c->bands - 1) / c->bands;
    return ((frames + 1) / 2 + 1) / 2;
}

static clt_status run_with(run *r, const clt_audio *a, const float *x, int64_t frames, float *soft, clt_err *err) {
    enum { TOGETHER = 256 }; /* rows of the unified kind */
    int64_t tokens = clt_audio_tokens(a->config, frames);
    bool unified = a->config->kind == CLT_AUDIO_UNIFIED;
    if (tokens < 1) return clt_fail(err, CLT_E_FAILED, "a sound of no length gives no token");
    clt_status st = clt_audio_work_create(a, unified && tokens > TOGETHER ? TOGETHER : tokens, &r->w, err);
    if (st == CLT_OK) st = unified ? project(r, x, frames, soft, err) : conform(r, x, frames, soft, err);
    clt_audio_work_free(r->w);
    return st;
}

clt_status clt_audio_run(const clt_audio *a, const float *x, int64_t frames, float *soft, bool (*between)(void *user),
                         void *user, clt_err *err) {
    return run_with(&(run){.between = between, .user = user}, a, x, frames, soft, err);
}

clt_status clt_audio_run_probed(const clt_audio *a, const float *x, int64_t frames, float *soft, clt_audio_probe probe,
                                void *user, clt_err *err) {
    return run_with(&(run){.probe = probe, .probe_user = user}, a, x, frames, soft, err);
}
