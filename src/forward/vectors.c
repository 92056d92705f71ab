/* Vectors of a net: norms and scales become floats here, and Gemma 3 norms of Hugging Face files get the 1 that they are stored
 * without; the frequencies of rotation are computed. Matrices are not touched. */
#include <math.h>

#include "forward/packing.h"

static const float *vector(clt_net *n, const clt_tensor *t, float plus, float times, bool *ok) {
    if (!t) return NULL;
    float *v = CLT_ARENA_NEW(n->arena, float, t->dims[0]);
    if (!v) {
        *ok = false;
        return NULL;
    }
    clt_type_get((uint32_t)t->type)->decode(t->data, v, t->dims[0]);
    for (int64_t i = 0; i < t->dims[0]; i++) v[i] = (v[i] + plus) * times;
    return v;
}

static bool layer_vectors(clt_net *n, int l) {
    const clt_layer_tensors *t = &n->model->layer[l];
    clt_net_layer *x = &n->layer[l];
    float one = n->model->norm_plus_one ? 1.0f : 0.0f;
    bool ok = true;
    x->attn_norm = vector(n, t->attn_norm, one, 1, &ok);
    x->q_norm = vector(n, t->q_norm, one, 1, &ok);
    x->k_norm = vector(n, t->k_norm, one, 1, &ok);
    x->post_attn_norm = vector(n, t->post_attn_norm, one, 1, &ok);
    x->ffn_norm = vector(n, t->ffn_norm, one, 1, &ok);
    x->post_ffn_norm = vector(n, t->post_ffn_norm, one, 1, &ok);
    x->ple_norm = vector(n, t->ple_norm, 0, 1, &ok);
    x->post_ffn_norm_1 = vector(n, t->post_ffn_norm_1, 0, 1, &ok);
    x->pre_ffn_norm_2 = vector(n, t->pre_ffn_norm_2, 0, 1, &ok);
    x->post_ffn_norm_2 = vector(n, t->post_ffn_norm_2, 0, 1, &ok);
    x->router_scale = vector(n, t->router_scale, 0, 1.0f / sqrtf((float)n->config->width), &ok);
    x->expert_scale = vector(n, t->expert_scale, 0, 1, &ok);
    const float *scalar = vector(n, t->scalar, 0, 1, &ok);
    x->scalar = scalar ? *scalar : 1.0f;
    return ok;
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

bool clt_net_vectors(clt_net *n) {
    bool ok = true;
    for (int l = 0; ok && l < n->config->layers; l++) ok = layer_vectors(n, l);
    if (!ok) return false;
    n->output_norm = vector(n, n->model->output_norm, n->model->norm_plus_one ? 1.0f : 0.0f, 1, &ok);
    n->ple_proj_norm = vector(n, n->model->ple_proj_norm, 0, 1, &ok);
    return ok && frequencies(n);
}
