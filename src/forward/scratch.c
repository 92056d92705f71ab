/* The working memory of one caller: everything that a pass over at most max_rows rows needs, sized before and never grown. */
#include <string.h>

#include "forward/internal.h"

/* The largest shapes of a model. */
typedef struct extents {
    int64_t width, q, kv, ffn, ple, pairs, head_dim, group, experts, used, expert_ffn;
} extents;

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static extents measure(const clt_config *c) {
    extents x = {.width = c->width, .ple = (int64_t)c->layers * c->ple_dim, .experts = c->experts,
                 .used = c->experts_used, .expert_ffn = c->expert_ffn};
    for (int l = 0; l < c->layers; l++) {
        const clt_layer_config *lc = &c->layer[l];
        x.q = larger(x.q, (int64_t)lc->heads * lc->head_dim);
        x.kv = larger(x.kv, (int64_t)lc->kv_heads * lc->head_dim);
        x.ffn = larger(x.ffn, lc->ffn);
        x.head_dim = larger(x.head_dim, lc->head_dim);
        x.group = larger(x.group, lc->heads / lc->kv_heads);
    }
    x.pairs = x.head_dim / 2 + 1;
    return x;
}

/* Hands out parts of one block; with base NULL it only adds up. */
typedef struct cutter { uint8_t *base; size_t at; } cutter;

static void *cut(cutter *c, int64_t count, size_t size) {
    size_t at = c->at;
    c->at += ((size_t)count * size + 63) / 64 * 64;
    return c->base ? c->base + at : NULL;
}

static float *cut_floats(cutter *c, int64_t count) { return cut(c, count, sizeof(float)); }

static void lay_out(clt_scratch *s, const clt_config *c, int threads, cutter *m) {
    extents e = measure(c);
    int64_t R = s->max_rows, xr = larger(R * e.used, R);
    int64_t fine = clt_padded(larger(larger(e.width, e.q), c->ple_dim)), inputs = larger(2 * R * fine, R * clt_padded(e.ffn));
    inputs = larger(inputs, xr * clt_padded(larger(e.width, e.expert_ffn)));
    s->tile_queries = (int)larger(CLT_TILE_QUERIES, e.group);
    s->pos = cut(m, R, sizeof(int)), s->source = cut(m, R, sizeof(int)), s->block_end = cut(m, R, sizeof(int));
    s->group = cut(m, R, sizeof(clt_group));
    s->x = cut_floats(m, R * e.width), s->h = cut_floats(m, R * e.width);
    s->q = cut_floats(m, R * e.q), s->att = cut_floats(m, R * larger(e.q, e.width));
    s->k = cut_floats(m, R * e.kv), s->v = cut_floats(m, R * e.kv);
    s->gate = cut_floats(m, R * larger(e.ffn, c->ple_dim)), s->up = cut_floats(m, R * e.ffn);
    s->ple = cut_floats(m, R * e.ple), s->ple_ctx = cut_floats(m, R * e.ple);
    s->cs_sliding = cut_floats(m, R * 2 * e.pairs), s->cs_full = cut_floats(m, R * 2 * e.pairs);
    s->acts.q = cut(m, inputs, 1);
    s->acts.d = cut_floats(m, inputs / CLT_QBLOCK);
    s->acts.sums = cut(m, inputs / 16, sizeof(int16_t));
    s->pair_tile = cut_floats(m, (int64_t)threads * 2 * CLT_ROW_BLOCK * CLT_PAIR_PANELS * CLT_PANEL);
    s->tile = cut_floats(m, (int64_t)threads * 3 * s->tile_queries * e.head_dim);
    s->seen = cut(m, (int64_t)threads * 2 * s->tile_queries, sizeof(int));
    s->softmax = cut_floats(m, (int64_t)threads * 4 * s->tile_queries);
    s->partial = cut_floats(m, (int64_t)CLT_WAVE_CHUNKS * CLT_TILE_QUERIES * (e.head_dim + 2));
    if (!e.experts) return;
    s->router = cut_floats(m, R * e.experts);
    s->eh = cut_floats(m, xr * e.width), s->eout = cut_floats(m, xr * e.width);
    s->egate = cut_floats(m, xr * e.expert_ffn), s->eup = cut_floats(m, xr * e.expert_ffn);
    s->choice = cut(m, xr, sizeof(int)), s->slot = cut(m, xr, sizeof(int));
    s->expert_first = cut(m, e.experts + 1, sizeof(int));
    s->expert_met = cut(m, e.experts, sizeof(int));
    s->choice_weight = cut_floats(m, xr);
}

uint64_t clt_scratch_plan_bytes(const clt_model *m, int max_rows, int threads) {
    clt_scratch s = {.max_rows = max_rows};
    cutter c = {0};
    lay_out(&s, &m->config, threads, &c);
    return c.at;
}

clt_status clt_scratch_create(const clt_net *n, int max_rows, clt_scratch **out, clt_err *err) {
    int threads = clt_pool_threads(n->pool);
    size_t bytes = (size_t)clt_scratch_plan_bytes(n->model, max_rows, threads);
    clt_scratch *s = clt_calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return clt_fail_memory(err, "working memory", sizeof *s);
    *s = (clt_scratch){.net = n, .max_rows = max_rows, .bytes = bytes, .memory = clt_pages_alloc(bytes)};
    if (!s->memory) {
        clt_free(s);
        return clt_fail_memory(err, "working memory", bytes);
    }
    lay_out(s, n->config, threads, &(cutter){s->memory, 0});
    *out = s;
    return CLT_OK;
}

void clt_scratch_free(clt_scratch *s) {
    if (!s) return;
    clt_pages_free(s->memory, s->bytes);
    clt_free(s);
}

uint64_t clt_scratch_bytes(const clt_scratch *s) { return s->bytes; }

void clt_scratch_set_probe(clt_scratch *s, clt_probe_fn fn, void *user) { s->probe = fn, s->probe_user = user; }

void clt_scratch_set_profile(clt_scratch *s, clt_profile *p) { s->profile = p; }
