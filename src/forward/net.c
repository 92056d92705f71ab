/* Packed weights: a list of (matrix, tensor, first row) jobs is made once, sized, and packed by all threads of the pool.
 *
 * Vectors (norms, scales) become float here, and Gemma 3 norms of Hugging Face files get the 1 that they are stored without.
 * The embedding tables stay in the map: rows are read one by one. */
#include <math.h>
#include <string.h>

#include "forward/internal.h"

typedef struct job {
    clt_mat *mat;
    const clt_tensor *tensor;
    int64_t first_row, rows;
    size_t offset; /* in the packed memory */
} job;

typedef struct plan {
    job *jobs; /* NULL: only the bytes are counted */
    size_t n;
    size_t bytes;
} plan;

static void add_rows(plan *p, clt_mat *mat, const clt_tensor *t, int64_t first, int64_t rows) {
    if (!t) return;
    size_t bytes = clt_mat_panel_bytes(t->type, t->dims[0]) * (size_t)((rows + CLT_PANEL - 1) / CLT_PANEL);
    if (p->jobs) p->jobs[p->n] = (job){mat, t, first, rows, p->bytes};
    p->n++;
    p->bytes += (bytes + 63) / 64 * 64;
}

static void add(plan *p, clt_mat *mat, const clt_tensor *t) {
    if (t) add_rows(p, mat, t, 0, t->dims[1]);
}

static void add_experts(plan *p, const clt_config *c, const clt_layer_tensors *t, clt_net_layer *nl) {
    int64_t fe = c->expert_ffn;
    clt_expert none;
    for (int64_t e = 0; e < c->experts; e++) {
        clt_expert *x = nl ? &nl->experts[e] : &none;
        add_rows(p, &x->gate, t->gate_up_exps ? t->gate_up_exps : t->gate_exps, t->gate_up_exps ? e * 2 * fe : e * fe, fe);
        add_rows(p, &x->up, t->gate_up_exps ? t->gate_up_exps : t->up_exps, t->gate_up_exps ? e * 2 * fe + fe : e * fe, fe);
        add_rows(p, &x->down, t->down_exps, e * c->width, c->width);
    }
}

static void add_layer(plan *p, const clt_config *c, int l, const clt_layer_tensors *t, clt_net_layer *nl) {
    clt_net_layer none;
    clt_net_layer *x = nl ? nl : &none;
    const clt_layer_config *lc = &c->layer[l];
    if (t->qkv) {
        int64_t q = (int64_t)lc->heads * lc->head_dim, kv = (int64_t)lc->kv_heads * lc->head_dim;
        add_rows(p, &x->q, t->qkv, 0, q);
        if (lc->own_kv) add_rows(p, &x->k, t->qkv, q, kv), add_rows(p, &x->v, t->qkv, q + kv, kv);
    }
    add(p, &x->q, t->q), add(p, &x->k, t->k), add(p, &x->v, t->v), add(p, &x->o, t->o);
    add(p, &x->gate, t->gate), add(p, &x->up, t->up), add(p, &x->down, t->down);
    add(p, &x->ple_gate, t->ple_gate), add(p, &x->ple_proj, t->ple_proj), add(p, &x->router, t->router);
    if (c->experts) add_experts(p, c, t, nl);
}

static void add_all(plan *p, const clt_model *m, clt_net *n) {
    clt_mat none;
    for (int l = 0; l < m->config.layers; l++) add_layer(p, &m->config, l, &m->layer[l], n ? &n->layer[l] : NULL);
    add(p, n ? &n->ple_proj : &none, m->ple_proj);
    add(p, n ? &n->output : &none, m->output);
}

uint64_t clt_net_plan_bytes(const clt_model *m) {
    plan p = {0};
    add_all(&p, m, NULL);
    return p.bytes;
}

/* ---- vectors ---- */

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

static bool prepare(clt_net *n) {
    const clt_config *c = n->config;
    n->layer = CLT_ARENA_NEW(n->arena, clt_net_layer, c->layers);
    bool ok = n->layer != NULL;
    for (int l = 0; ok && l < c->layers; l++) {
        if (c->experts) ok = (n->layer[l].experts = CLT_ARENA_NEW(n->arena, clt_expert, c->experts)) != NULL;
        ok = ok && layer_vectors(n, l);
        if (c->layer[l].own_kv) n->last_kv_layer = l;
    }
    if (!ok) return false;
    n->output_norm = vector(n, n->model->output_norm, n->model->norm_plus_one ? 1.0f : 0.0f, 1, &ok);
    n->ple_proj_norm = vector(n, n->model->ple_proj_norm, 0, 1, &ok);
    return ok && frequencies(n);
}

/* ---- packing ---- */

enum {
    PACK_PANELS = 16,           /* panels per task */
    PACK_SLICE_BYTES = 32 << 20 /* of the file that are resident at a time: weights are never held twice */
};

typedef struct pack_ctx {
    const job *j;
    uint8_t *dst;
    const uint8_t *src;
    int64_t first, end; /* panels */
} pack_ctx;

static void pack_task(void *ctx, int task, int thread) {
    (void)thread;
    const pack_ctx *c = ctx;
    int64_t p0 = c->first + (int64_t)task * PACK_PANELS, p1 = p0 + PACK_PANELS < c->end ? p0 + PACK_PANELS : c->end;
    clt_mat_pack(c->j->tensor->type, c->j->rows, c->j->tensor->dims[0], c->src, c->dst, p0, p1);
}

static void pack_one(clt_net *n, const job *j) {
    const clt_tensor *t = j->tensor;
    size_t panel_bytes = clt_mat_panel_bytes(t->type, t->dims[0]);
    int64_t panels = (j->rows + CLT_PANEL - 1) / CLT_PANEL, slice = (int64_t)(PACK_SLICE_BYTES / panel_bytes) + 1;
    pack_ctx c = {.j = j, .dst = n->packed + j->offset, .src = clt_tensor_row(t, j->first_row)};
    for (; c.first < panels; c.first = c.end) {
        c.end = c.first + slice < panels ? c.first + slice : panels;
        clt_pool_run(n->pool, pack_task, &c, (int)((c.end - c.first + PACK_PANELS - 1) / PACK_PANELS));
        clt_file_release(n->model->file, t);
    }
    *j->mat = (clt_mat){t->type, j->rows, t->dims[0], c.dst, panel_bytes};
}

static clt_status pack(clt_net *n, const plan *p, bool (*progress)(void *, double), void *user, clt_err *err) {
    for (size_t i = 0; i < p->n; i++) {
        pack_one(n, &p->jobs[i]);
        if (progress && !progress(user, (double)(i + 1) / (double)p->n))
            return clt_fail(err, CLT_E_CANCELLED, "loading was cancelled");
    }
    return CLT_OK;
}

clt_status clt_net_create(const clt_model *m, const clt_kernels *k, clt_pool *pool, bool (*progress)(void *, double),
                          void *user, clt_net **out, clt_err *err) {
    plan p = {0};
    clt_status st = CLT_OK;
    clt_net *n = clt_calloc(1, sizeof *n);
    *out = NULL;
    if (!n) return clt_fail_memory(err, "the network", sizeof *n);
    *n = (clt_net){.model = m, .config = &m->config, .k = k, .pool = pool, .arena = clt_arena_create(256 << 10)};
    if (!n->arena || !prepare(n)) {
        st = clt_fail_memory(err, "norms and tables", 256 << 10);
        goto out;
    }
    add_all(&p, m, NULL);
    n->packed_bytes = p.bytes;
    n->packed = clt_pages_alloc(p.bytes);
    p.jobs = clt_calloc(p.n, sizeof *p.jobs);
    if (!n->packed || !p.jobs) {
        st = clt_fail_memory(err, "the packed weights", n->packed_bytes);
        goto out;
    }
    p.n = 0, p.bytes = 0;
    add_all(&p, m, n);
    st = pack(n, &p, progress, user, err);
out:
    clt_free(p.jobs);
    if (st == CLT_OK) *out = n;
    else clt_net_free(n);
    return st;
}

void clt_net_free(clt_net *n) {
    if (!n) return;
    if (n->packed) clt_pages_free(n->packed, n->packed_bytes);
    clt_arena_free(n->arena);
    clt_free(n);
}

uint64_t clt_net_bytes(const clt_net *n) { return n->packed_bytes; }
