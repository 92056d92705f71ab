/* A bound sound tower -> packed matrices, norms and tables.
 *
 * Matrices keep the type of the file and are packed as the text model's are. The two sub-sampling convolutions become
 * matrices of floats; the keys of relative positions depend on weights alone, so they are computed here, once. */
#include <math.h>
#include "base/exact.h"
#include "forward/audio_impl.h"

/* ---- matrices ---- */

/* Every matrix of the tower; a NULL: only counted. */
static void list(clt_pack_plan *p, const void *model, void *tower) {
    const clt_audio_model *m = model;
    clt_audio *a = tower;
    clt_mat none;
    for (int l = 0; l < m->config.layers; l++) {
        clt_audio_net_layer unused = {0};
        clt_audio_net_layer *x = a ? &a->layer[l] : &unused;
        const clt_audio_layer *t = &m->layer[l];
        for (int i = 0; i < 2; i++) {
            clt_tower_plan_bounded(p, &x->ffn_up[i], &t->ffn_up[i]);
            clt_tower_plan_bounded(p, &x->ffn_down[i], &t->ffn_down[i]);
        }
        clt_tower_plan_bounded(p, &x->q, &t->q), clt_tower_plan_bounded(p, &x->k, &t->k);
        clt_tower_plan_bounded(p, &x->v, &t->v), clt_tower_plan_bounded(p, &x->post, &t->post);
        clt_tower_plan_bounded(p, &x->conv_start, &t->conv_start), clt_tower_plan_bounded(p, &x->conv_end, &t->conv_end);
        clt_tower_plan(p, &x->relative_k, t->relative_k);
    }
    clt_tower_plan(p, a ? &a->input_proj : &none, m->input_proj);
    clt_tower_plan(p, a ? &a->output_proj : &none, m->output_proj);
    clt_tower_plan(p, a ? &a->projection : &none, m->projection);
}

uint64_t clt_audio_plan_bytes(const clt_audio_model *m) {
    clt_pack_plan p = {0};
    list(&p, m, NULL);
    return p.bytes;
}

/* ---- vectors and tables ---- */

static float *numbers(clt_audio *a, const clt_tensor *t, clt_status *st) {
    return clt_tower_numbers(a->arena, a->model->file, t, st);
}

/* ln(1 + exp(x)), without overflow. */
static double softplus(double x) {
    double e = clt_exact_exp2(-fabs(x) / CLT_LN2 > -900 ? -fabs(x) / CLT_LN2 : -900);
    return (x > 0 ? x : 0) + clt_exact_log2(1 + e) * CLT_LN2;
}

/* Dh^-0.5 / ln 2 * softplus(s): one factor for each number of a query. */
static const float *query_scale(clt_audio *a, const clt_tensor *t, clt_status *st) {
    float *v = numbers(a, t, st);
    double scale = 1 / (sqrt((double)a->config->head_dim) * CLT_LN2);
    for (int64_t i = 0; i < a->config->head_dim && *st == CLT_OK; i++)
        v[i] = (float)(scale * (a->model->scale_is_softplus ? (double)v[i] : softplus((double)v[i])));
    return v;
}

/* [W][kernel], as in the file, becomes [kernel][W]. */
static const float *taps(clt_audio *a, const clt_tensor *t, clt_status *st) {
    int64_t width = a->config->width, kernel = a->config->conv_kernel;
    const float *v = numbers(a, t, st);
    float *turned = *st == CLT_OK ? CLT_ARENA_NEW(a->arena, float, width * kernel) : NULL;
    if (*st == CLT_OK && !turned) *st = CLT_E_MEMORY;
    for (int64_t c = 0; c < width && *st == CLT_OK; c++)
        for (int64_t k = 0; k < kernel; k++) turned[k * width + c] = v[c * kernel + k];
    return turned;
}

static clt_status layer_vectors(clt_audio *a, int l) {
    const clt_audio_layer *t = &a->model->layer[l];
    clt_audio_net_layer *x = &a->layer[l];
    clt_status st = CLT_OK;
    for (int i = 0; i < 2; i++) {
        x->ffn_norm[i] = numbers(a, t->ffn_norm[i], &st);
        x->ffn_post_norm[i] = numbers(a, t->ffn_post_norm[i], &st);
    }
    x->attn_norm = numbers(a, t->attn_norm, &st), x->attn_post_norm = numbers(a, t->attn_post_norm, &st);
    x->out_norm = numbers(a, t->out_norm, &st);
    x->conv_pre_norm = numbers(a, t->conv_pre_norm, &st), x->conv_norm = numbers(a, t->conv_norm, &st);
    x->per_dim = query_scale(a, t->per_dim_scale, &st);
    x->taps = taps(a, t->depthwise, &st);
    return st;
}

static clt_status vectors(clt_audio *a, clt_err *err) {
    const clt_audio_model *m = a->model;
    clt_status st = CLT_OK;
    for (int i = 0; i < 2 && st == CLT_OK; i++) {
        const float *weights = numbers(a, m->conv[i], &st);
        a->conv[i].norm = numbers(a, m->conv_norm[i], &st);
        if (st == CLT_OK && !clt_audio_pack_conv(a, i, weights)) st = CLT_E_MEMORY;
    }
    for (int l = 0; l < a->config->layers && st == CLT_OK; l++) st = layer_vectors(a, l);
    a->output_bias = numbers(a, m->output_bias, &st);
    if (st == CLT_E_FILE)
        return clt_fail(err, st, "%s: norms can no longer be read; was the file changed?", clt_file_path(m->file));
    return st == CLT_OK ? CLT_OK : clt_fail_memory(err, "the sound tower's tables", 4 << 20);
}

/* sin of distance times W / 2 frequencies from 1 to 1e-4 in equal ratios, then cos. */
static void position(int distance, int width, float *out) {
    int half = width / 2;
    double step = half > 1 ? clt_exact_log2(1e4) / (half - 1) : 0, s, c;
    for (int i = 0; i < half; i++) {
        clt_exact_sincos((double)(float)clt_exact_exp2(-step * i) * distance, &s, &c);
        out[i] = (float)s, out[half + i] = (float)c;
    }
}

/* Keys of all distances, of all layers. */
static clt_status relative_keys(clt_audio *a, clt_err *err) {
    const clt_audio_config *c = a->config;
    int64_t n = (int64_t)c->window * c->width;
    float *pe = CLT_ARENA_NEW(a->arena, float, n), *rel = CLT_ARENA_NEW(a->arena, float, n * c->layers);
    clt_audio_work *w = NULL;
    if (!pe || !rel) return clt_fail_memory(err, "the sound tower's tables", 4 << 20);
    clt_status st = clt_audio_work_create(a, c->window, &w, err);
    if (st != CLT_OK) return st;
    for (int d = 0; d < c->window; d++) position(d, c->width, pe + (int64_t)d * c->width);
    for (int l = 0; l < c->layers; l++) {
        clt_linear_one(&w->s, CLT_ROLE_ATTENTION, &a->layer[l].relative_k, pe, c->width, c->window, CLT_FINE, rel + l * n,
                       c->width);
        a->layer[l].rel = rel + l * n;
    }
    clt_audio_work_free(w);
    return CLT_OK;
}

clt_status clt_audio_create(const clt_audio_model *m, const clt_kernels *k, clt_pool *pool, clt_audio **out, clt_err *err) {
    clt_audio *a = clt_calloc(1, sizeof *a);
    *out = NULL;
    if (!a) return clt_fail_memory(err, "the sound tower", sizeof *a);
    *a = (clt_audio){.model = m, .config = &m->config, .k = k, .pool = pool, .arena = clt_arena_create(1 << 20)};
    a->key_scale = (float)(clt_exact_log2(1 + 2.718281828459045)); /* ln(1 + e) / ln 2 */
    a->layer = a->arena ? CLT_ARENA_NEW(a->arena, clt_audio_net_layer, m->config.layers + 1) : NULL;
    clt_status st = a->layer ? CLT_OK : clt_fail_memory(err, "the sound tower", 1 << 20);
    if (st == CLT_OK)
        st = clt_tower_pack(list, m, a, m->file, pool, &a->packed, &a->packed_bytes, "the sound tower", err);
    if (st == CLT_OK && m->config.kind == CLT_AUDIO_CONFORMER) {
        st = vectors(a, err);
        if (st == CLT_OK) st = relative_keys(a, err);
    }
    if (st == CLT_OK) *out = a;
    else clt_audio_free(a);
    return st;
}

void clt_audio_free(clt_audio *a) {
    if (!a) return;
    if (a->packed) clt_pages_free(a->packed, a->packed_bytes);
    if (a->arena) clt_arena_free(a->arena);
    clt_free(a);
}

uint64_t clt_audio_bytes(const clt_audio *a) { return a->packed_bytes; }
