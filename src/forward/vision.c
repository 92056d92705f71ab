/* The picture tower, from pixels to soft tokens; read encode first.
 *
 * Encoder: patches and their positions, layers of attention and feed-forward over all patches, the mean of every block of
 * patches, one projection. Unified: merged patches, three norms around one matrix and the positions, one projection. */
#include "forward/vision.h"
#include <math.h>
#include <string.h>
#include "forward/vision_impl.h"

typedef struct run {
    clt_vision_work *w;
    const uint8_t *rgb;
    int width;            /* of the picture, pixels */
    float *soft;
    bool (*between)(void *user);
    void *user;
    clt_vision_probe probe;
    void *probe_user;
} run;

static clt_status pause_between(const run *r, clt_err *err) {
    if (!r->between || r->between(r->user)) return CLT_OK;
    return clt_fail(err, CLT_E_CANCELLED, "seeing the picture was cancelled");
}

static void probe(const run *r, const char *stage, int layer, const float *x, int64_t rows) {
    if (r->probe) r->probe(r->probe_user, stage, layer, x, rows, r->w->v->config->width);
}

/* ---- steps by row; `first`: patch of row 0 ---- */

typedef struct step {
    const run *r;
    const float *norm;
    float *x, *y;
    int first, side;
} step;

/* y [side * side * 3] = pixels of a patch, in the order of the patch matrix's columns */
static void gather_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_vision_work *w = s->r->w;
    const float *value = w->v->value;
    int side = s->side, patch = s->first + row, stride = s->r->width * 3;
    const uint8_t *rgb = s->r->rgb + (int64_t)(patch / w->columns) * side * stride + patch % w->columns * side * 3;
    float *y = s->y + (int64_t)row * side * side * 3;
    bool planar = w->v->planar;
    for (int line = 0; line < side; line++)
        for (int i = 0; i < side * 3; i++) {
            int at = planar ? i % 3 * side * side + line * side + i / 3 : line * side * 3 + i;
            y[at] = value[rgb[(int64_t)line * stride + i]];
        }
}

/* x += positions of column and line */
static void place_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_vision_work *w = s->r->w;
    int64_t d = w->v->config->width;
    int patch = s->first + row;
    float *x = s->x + row * d;
    w->v->k->add(x, w->position[0] + patch % w->columns * d, x, d);
    w->v->k->add(x, w->position[1] + patch / w->columns * d, x, d);
}

/* y = rms_w(x) */
static void norm_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_vision *v = s->r->w->v;
    int64_t d = v->config->width;
    v->k->rms_norm(s->x + row * d, s->norm, v->config->rms_eps, s->y + row * d, d);
}

/* x += rms_w(y) */
static void join_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_vision *v = s->r->w->v;
    int64_t d = v->config->width;
    float *x = s->x + row * d, *y = s->y + row * d;
    v->k->rms_norm(y, s->norm, v->config->rms_eps, y, d);
    v->k->add(x, y, x, d);
}

/* y = gelu(y) * x */
static void gate_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_vision *v = s->r->w->v;
    int64_t f = v->config->ffn;
    v->k->gelu_mul(s->y + row * f, s->x + row * f, s->y + row * f, f);
}

/* y = mean of a block of patches * sqrt(W); `first`: soft token of row 0 */
static void pool_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_vision_work *w = s->r->w;
    const clt_vision *v = w->v;
    int64_t d = v->config->width;
    int pool = v->config->pool, across = w->columns / pool, token = s->first + row;
    const float *corner = w->x + ((int64_t)(token / across) * pool * w->columns + token % across * pool) * d;
    float *y = s->y + row * d;
    memset(y, 0, (size_t)d * sizeof *y);
    for (int i = 0; i < pool * pool; i++) v->k->add(y, corner + (int64_t)(i / pool * w->columns + i % pool) * d, y, d);
    v->k->scale(y, sqrtf((float)d) / (float)(pool * pool), y, d);
}

/* y = (y - bias) * scale */
static void standardise_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_vision *v = s->r->w->v;
    int64_t d = v->config->width;
    float *y = s->y + row * d;
    for (int64_t i = 0; i < d; i++) y[i] = (y[i] - v->std_bias[i]) * v->std_scale[i];
}

/* ---- the encoder ---- */

static int slab_rows(const clt_vision_work *w, int first, int all) {
    return all - first < w->slab ? all - first : w->slab;
}

/* x of patches [first, first + n), before positions */
static void embed(const run *r, int first, int n, int side) {
    clt_vision_work *w = r->w;
    int64_t cols = (int64_t)side * side * 3, d = w->v->config->width;
    clt_vision_rows(w, gather_row, &(step){r, NULL, NULL, w->patches, first, side}, n);
    if (w->v->config->kind == CLT_VISION_UNIFIED)
        clt_vision_layer_norm(w, w->patches, n, cols, w->v->norm[0], w->v->norm_bias[0]);
    clt_linear_one(&w->s, CLT_ROLE_ATTENTION, &w->v->patch, w->patches, cols, n, CLT_FINE, w->x + first * d, d);
}

/* Keys and values of a slab. */
static void look_back(const run *r, const clt_vision_net_layer *l, int first, int n) {
    clt_vision_work *w = r->w;
    float *x = w->x + (int64_t)first * w->v->config->width;
    clt_vision_rows(w, norm_row, &(step){r, l->attn_norm, x, w->h, first, 0}, n);
    clt_tower_multiply(&w->s, CLT_ROLE_ATTENTION, &l->k, w->h, n, w->clamped, w->k);
    clt_tower_multiply(&w->s, CLT_ROLE_ATTENTION, &l->v, w->h, n, w->clamped, w->att);
    clt_vision_store(w, l, first, n);
}

/* The rest of the layer for a slab, once the keys of all patches are stored. */
static void look(const run *r, const clt_vision_net_layer *l, int first, int n) {
    clt_vision_work *w = r->w;
    float *x = w->x + (int64_t)first * w->v->config->width;
    clt_vision_rows(w, norm_row, &(step){r, l->attn_norm, x, w->h, first, 0}, n);
    clt_tower_multiply(&w->s, CLT_ROLE_ATTENTION, &l->q, w->h, n, w->clamped, w->q);
    clt_vision_attend(w, l, first, n);
    clt_tower_multiply(&w->s, CLT_ROLE_ATTENTION, &l->o, w->att, n, w->clamped, w->h);
    clt_vision_rows(w, join_row, &(step){r, l->post_attn_norm, x, w->h, first, 0}, n);
    clt_vision_rows(w, norm_row, &(step){r, l->ffn_norm, x, w->h, first, 0}, n);
    clt_tower_multiply(&w->s, CLT_ROLE_FFN, &l->gate, w->h, n, w->clamped, w->gate);
    clt_tower_multiply(&w->s, CLT_ROLE_FFN, &l->up, w->h, n, w->clamped, w->up);
    clt_vision_rows(w, gate_row, &(step){r, NULL, w->up, w->gate, first, 0}, n);
    clt_tower_multiply(&w->s, CLT_ROLE_FFN, &l->down, w->gate, n, w->clamped, w->h);
    clt_vision_rows(w, join_row, &(step){r, l->post_ffn_norm, x, w->h, first, 0}, n);
}

/* soft = W rms(h) */
static void project(const run *r, int first, int n) {
    clt_vision_work *w = r->w;
    int64_t d = w->v->config->width, out = w->v->config->text_width;
    clt_vision_rows(w, norm_row, &(step){r, NULL, w->h, w->h, first, 0}, n);
    clt_linear_one(&w->s, CLT_ROLE_HEAD, &w->v->projection, w->h, d, n, CLT_FINE, r->soft + first * out, out);
}

static clt_status encode(const run *r, clt_err *err) {
    clt_vision_work *w = r->w;
    const clt_vision_config *c = w->v->config;
    int64_t d = c->width;
    int tokens = w->n / (c->pool * c->pool);
    clt_status st = CLT_OK;
    for (int at = 0, n; at < w->n; at += n) {
        n = slab_rows(w, at, w->n);
        embed(r, at, n, c->patch);
        clt_vision_rows(w, place_row, &(step){r, NULL, w->x + at * d, NULL, at, 0}, n);
    }
    probe(r, "embed", -1, w->x, w->n);
    for (int i = 0; i < c->layers; i++) {
        const clt_vision_net_layer *l = &w->v->layer[i];
        for (int at = 0; at < w->n; at += w->slab) look_back(r, l, at, slab_rows(w, at, w->n));
        for (int at = 0; at < w->n && st == CLT_OK; at += w->slab) {
            look(r, l, at, slab_rows(w, at, w->n));
            st = pause_between(r, err);
        }
        if (st != CLT_OK) return st;
        probe(r, "layer", i, w->x, w->n);
    }
    for (int at = 0, n; at < tokens; at += n) {
        n = slab_rows(w, at, tokens);
        clt_vision_rows(w, pool_row, &(step){r, NULL, NULL, w->h, at, 0}, n);
        probe(r, "pool", at, w->h, n);
        if (c->standardise) clt_vision_rows(w, standardise_row, &(step){r, NULL, NULL, w->h, at, 0}, n);
        probe(r, "encoder", at, w->h, n);
        project(r, at, n);
    }
    return CLT_OK;
}

/* ---- the unified kind ---- */

/* x += bias */
static void bias_row(void *ctx, int row, int thread) {
    (void)thread;
    const step *s = ctx;
    const clt_vision *v = s->r->w->v;
    int64_t d = v->config->width;
    v->k->add(s->x + row * d, s->norm, s->x + row * d, d);
}

static clt_status merge(const run *r, clt_err *err) {
    clt_vision_work *w = r->w;
    const clt_vision *v = w->v;
    int64_t d = v->config->width;
    for (int at = 0, n; at < w->n; at += n) {
        float *x = w->x + at * d;
        n = slab_rows(w, at, w->n);
        clt_status st = pause_between(r, err);
        if (st != CLT_OK) return st;
        embed(r, at, n, v->config->patch * v->config->pool);
        clt_vision_rows(w, bias_row, &(step){r, v->patch_bias, x, NULL, at, 0}, n);
        clt_vision_layer_norm(w, x, n, d, v->norm[1], v->norm_bias[1]);
        clt_vision_rows(w, place_row, &(step){r, NULL, x, NULL, at, 0}, n);
        clt_vision_layer_norm(w, x, n, d, v->norm[2], v->norm_bias[2]);
        memcpy(w->h, x, (size_t)(n * d) * sizeof *x);
        probe(r, "encoder", at, w->h, n);
        project(r, at, n);
    }
    return CLT_OK;
}

/* ---- public ---- */

static clt_status run_with(run *r, const clt_vision *v, int height, clt_err *err) {
    int unit = v->config->patch * v->config->pool;
    if (r->width < unit || height < unit || r->width % unit || height % unit)
        return clt_fail(err, CLT_E_USAGE, "a picture of %d x %d pixels, expected multiples of %d", r->width, height, unit);
    clt_status st = clt_vision_work_create(v, r->width, height, &r->w, err);
    if (st == CLT_OK) st = v->config->kind == CLT_VISION_UNIFIED ? merge(r, err) : encode(r, err);
    clt_vision_work_free(r->w);
    return st;
}

clt_status clt_vision_run(const clt_vision *v, const uint8_t *rgb, int width, int height, float *soft,
                          bool (*between)(void *user), void *user, clt_err *err) {
    return run_with(&(run){.rgb = rgb, .width = width, .soft = soft, .between = between, .user = user}, v, height, err);
}

clt_status clt_vision_run_probed(const clt_vision *v, const uint8_t *rgb, int width, int height, float *soft,
                                 clt_vision_probe fn, void *user, clt_err *err) {
    return run_with(&(run){.rgb = rgb, .width = width, .soft = soft, .probe = fn, .probe_user = user}, v, height, err);
}
