/* The net: a bound model in, everything that a pass reads out. Its matrices lie in one block of packed memory, in panels
 * of 16 output rows, that is filled here by packing or handed in by the caller. */
#include "base/mem.h"
#include "forward/packing.h"

/* Memory for the layers; which layers keep keys. */
static bool prepare(clt_net *n) {
    const clt_config *c = n->config;
    n->arena = clt_arena_create(256 << 10);
    n->layer = n->arena ? CLT_ARENA_NEW(n->arena, clt_net_layer, c->layers) : NULL;
    bool ok = n->layer != NULL;
    for (int l = 0; ok && l < c->layers; l++) {
        if (c->experts) ok = (n->layer[l].experts = CLT_ARENA_NEW(n->arena, clt_expert, c->experts)) != NULL;
        if (c->layer[l].own_kv) n->last_kv_layer = l;
    }
    return ok;
}

/* Places every matrix in the packed memory and, unless the caller brought it, fills that. */
static clt_status fill(clt_net *n, bool (*progress)(void *, double), void *user, clt_err *err) {
    clt_pack_plan p = {0};
    clt_status st = CLT_OK;
    clt_pack_plan_add(&p, n->model, NULL);
    n->packed_bytes = p.bytes;
    if (!n->packed) n->packed = n->own_packed = clt_pages_alloc(p.bytes);
    p.jobs = clt_calloc(p.n, sizeof *p.jobs);
    if (!n->packed || !p.jobs) {
        st = clt_fail_memory(err, "the packed weights", n->packed_bytes);
        goto out;
    }
    p.n = 0, p.bytes = 0;
    clt_pack_plan_add(&p, n->model, n);
    clt_pack_place(&p, n->packed);
    if (n->own_packed) st = clt_pack_all(&p, n->model->file, n->pool, n->own_packed, progress, user, err);
out:
    clt_free(p.jobs);
    return st;
}

static clt_status create(const clt_model *m, const clt_kernels *k, clt_pool *pool, const uint8_t *packed,
                         bool (*progress)(void *, double), void *user, clt_net **out, clt_err *err) {
    clt_net *n = clt_calloc(1, sizeof *n);
    *out = NULL;
    if (!n) return clt_fail_memory(err, "the network", sizeof *n);
    *n = (clt_net){.model = m, .config = &m->config, .k = k, .pool = pool, .packed = packed};
    clt_status st = prepare(n) ? fill(n, progress, user, err) : clt_fail_memory(err, "the layers", 256 << 10);
    if (st == CLT_OK) st = clt_net_vectors(n, err);
    if (st == CLT_OK) *out = n;
    else clt_net_free(n);
    return st;
}

clt_status clt_net_create(const clt_model *m, const clt_kernels *k, clt_pool *pool, bool (*progress)(void *, double),
                          void *user, clt_net **out, clt_err *err) {
    return create(m, k, pool, NULL, progress, user, out, err);
}

clt_status clt_net_create_packed(const clt_model *m, const clt_kernels *k, clt_pool *pool, const uint8_t *packed,
                                 clt_net **out, clt_err *err) {
    return create(m, k, pool, packed, NULL, NULL, out, err);
}

void clt_net_free(clt_net *n) {
    if (!n) return;
    if (n->own_packed) clt_pages_free(n->own_packed, n->packed_bytes);
    if (n->arena) clt_arena_free(n->arena);
    clt_free(n);
}

uint64_t clt_net_bytes(const clt_net *n) { return n->packed_bytes; }

const uint8_t *clt_net_packed(const clt_net *n) { return n->packed; }
