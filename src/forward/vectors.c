/* Vectors of a net: norms and scales become floats here, and Gemma 3 norms of Hugging Face files get the 1 that they are
 * stored without; the frequencies of rotation are computed. Matrices are not touched. */
#include <math.h>

#include "forward/packing.h"

/* Read past the mapping: vectors stand between large matrices, and a page fault at each would bring in megabytes. */
static const float *vector(clt_net *n, const clt_tensor *t, float plus, float times, clt_status *st) {
    if (!t || *st != CLT_OK) return NULL;
    float *v = CLT_ARENA_NEW(n->arena, float, t->dims[0]);
    if (!v) *st = CLT_E_MEMORY;
    else if (!clt_file_decode_row(n->model->file, t, 0, v)) *st = CLT_E_FILE;
    if (*st != CLT_OK) return NULL;
    for (int64_t i = 0; i < t->dims[0]; i++) v[i] = (v[i] + plus) * times;
    return v;
}

static clt_status layer_vectors(clt_net *n, int l) {
    const clt_layer_tensors *t = &n->model->layer[l];
    clt_net_layer *x = &n->layer[l];
    float one = n->model->norm_plus_one ? 1.0f : 0.0f;
    clt_status st = CLT_OK;
    x->attn_norm = vector(n, t->attn_norm, one, 1, &st);
    x->q_norm = vector(n, t->q_norm, one, 1, &st);
    x->k_norm = vector(n, t->k_norm, one, 1, &st);
    x->post_attn_norm = vector(n, t->post_attn_norm, one, 1, &st);
    x->ffn_norm = vector(n, t->ffn_norm, one, 1, &st);
    x->post_ffn_norm = vector(n, t->post_ffn_norm, one, 1, &st);
    x->ple_norm = vector(n, t->ple_norm, 0, 1, &st);
    x->post_ffn_norm_1 = vector(n, t->post_ffn_norm_1, 0, 1, &st);
    x->pre_ffn_norm_2 = vector(n, t->pre_ffn_norm_2, 0, 1, &st);
    x->post_ffn_norm_2 = vector(n, t->post_ffn_norm_2, 0, 1, &st);
    x->router_scale = vector(n, t->router_scale, 0, 1.0f / sqrtf((float)n->config->width), &st);
    x->expert_scale = vector(n, t->expert_scale, 0, 1, &st);
    const float *scalar = vector(n, t->scalar, 0, 1, &st);
    x->scalar = scalar ? *scalar : 1.0f;
    return st;
}

static bool frequencies(clt_net *n) {
    const clt_config *c = n->config;
    for (int l = 0; l < c->layers; l++) {
        const clt_layer_config *lc = &c->layer[l];
        if (lc->head_dim > n->max_head_dim) n->max_head_dim = lc->head_dim;
        const float **slot = lc->sliding ? &n->freq_sliding : &n->freq_full;
        if (*slot) continue;
        int pairs = lc->sliding ? lc->head_dim / 2 : c->rope_pairs_full;
        float *f = CLT_ARENA_NEW(n->arena, float, pairs + 1);
        if (!f) return false;
        clt_rope_frequencies(lc->sliding ? c->rope_theta_sliding : c->rope_theta_full, lc->head_dim, pairs, f);
        for (int i = 0; i < pairs && !lc->sliding; i++) f[i] /= c->rope_divisor_full;
        *slot = f;
        *(lc->sliding ? &n->pairs_sliding : &n->pairs_full) = pairs;
    }
    return true;
}

clt_status clt_net_vectors(clt_net *n, clt_err *err) {
    clt_status st = CLT_OK;
    for (int l = 0; st == CLT_OK && l < n->config->layers; l++) st = layer_vectors(n, l);
    n->output_norm = vector(n, n->model->output_norm, n->model->norm_plus_one ? 1.0f : 0.0f, 1, &st);
    n->ple_proj_norm = vector(n, n->model->ple_proj_norm, 0, 1, &st);
    if (st == CLT_OK && !frequencies(n)) st = CLT_E_MEMORY;
    if (st == CLT_E_FILE)
        return clt_fail(err, st, "%s: norms can no longer be read; was the file changed?", clt_file_path(n->model->file));
    return st == CLT_OK ? CLT_OK : clt_fail_memory(err, "norms and tables", 256 << 10);
}
