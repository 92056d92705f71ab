/* The plan of packing: a bound model in, a list of (matrix, rows of a tensor, place) out, in the order in which the
 * forward pass reads them. Reads no weights. The embedding tables are not packed: their rows are read one by one. */
#include "base/hash.h"
#include "forward/packing.h"

static void add_rows(clt_pack_plan *p, clt_mat *mat, const clt_tensor *t, int64_t first, int64_t rows) {
    if (!t) return;
    size_t bytes = clt_mat_panel_bytes(t->type, t->dims[0]) * (size_t)((rows + CLT_PANEL - 1) / CLT_PANEL);
    const int64_t facts[] = {(int64_t)t->type, rows, t->dims[0], first, (int64_t)p->bytes};
    if (p->jobs) p->jobs[p->n] = (clt_pack_job){mat, t, first, rows, p->bytes};
    p->n++;
    p->bytes += (bytes + 63) / 64 * 64;
    p->digest = clt_hash64(facts, sizeof facts, p->digest);
}

static void add(clt_pack_plan *p, clt_mat *mat, const clt_tensor *t) {
    if (t) add_rows(p, mat, t, 0, t->dims[1]);
}

static void add_experts(clt_pack_plan *p, const clt_config *c, const clt_layer_tensors *t, clt_net_layer *nl) {
    int64_t fe = c->expert_ffn;
    clt_expert none;
    for (int64_t e = 0; e < c->experts; e++) {
        clt_expert *x = nl ? &nl->experts[e] : &none;
        add_rows(p, &x->gate, t->gate_up_exps ? t->gate_up_exps : t->gate_exps, t->gate_up_exps ? e * 2 * fe : e * fe, fe);
        add_rows(p, &x->up, t->gate_up_exps ? t->gate_up_exps : t->up_exps, t->gate_up_exps ? e * 2 * fe + fe : e * fe, fe);
        add_rows(p, &x->down, t->down_exps, e * c->width, c->width);
    }
}

static void add_layer(clt_pack_plan *p, const clt_config *c, int l, const clt_layer_tensors *t, clt_net_layer *nl) {
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

void clt_pack_plan_add(clt_pack_plan *p, const clt_model *m, clt_net *n) {
    clt_mat none;
    for (int l = 0; l < m->config.layers; l++) add_layer(p, &m->config, l, &m->layer[l], n ? &n->layer[l] : NULL);
    add(p, n ? &n->ple_proj : &none, m->ple_proj);
    add(p, n ? &n->output : &none, m->output);
}

void clt_pack_place(const clt_pack_plan *p, const uint8_t *packed) {
    for (size_t i = 0; i < p->n; i++) {
        const clt_pack_job *j = &p->jobs[i];
        const clt_tensor *t = j->tensor;
        *j->mat = (clt_mat){t->type, j->rows, t->dims[0], packed + j->offset, clt_mat_panel_bytes(t->type, t->dims[0])};
    }
}

uint64_t clt_net_plan_bytes(const clt_model *m) {
    clt_pack_plan p = {0};
    clt_pack_plan_add(&p, m, NULL);
    return p.bytes;
}

uint64_t clt_net_layout_digest(const clt_model *m) {
    clt_pack_plan p = {.digest = clt_mat_pack_digest()};
    clt_pack_plan_add(&p, m, NULL);
    return p.digest;
}
