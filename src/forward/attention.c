/* The attention block of one layer: project, norm, turn, store, attend, project back, add.
 *
 * Shapes: T active rows, H query heads, K KV heads, Dh head width. Values get a norm without weight (Gemma 4 only); where
 * keys serve as values it is the raw projection that is taken, before the key's norm and rope. */
#include <string.h>

#include "forward/internal.h"

typedef struct block {
    clt_scratch *s;
    const clt_net *n;
    const clt_layer_config *lc;
    const clt_net_layer *nl;
    int l, pairs;
    const float *cs;
    int64_t q_dim, kv_dim;
} block;

static void turn_heads(const block *b, float *x, int heads, const float *norm, int r) {
    const float *cs = b->cs + (int64_t)b->s->source[r] * 2 * b->pairs;
    for (int h = 0; h < heads; h++, x += b->lc->head_dim) {
        b->n->k->rms_norm(x, norm, b->n->config->rms_eps, x, b->lc->head_dim);
        b->n->k->rope(x, cs, b->lc->head_dim, b->pairs);
    }
}

static void query_row(void *ctx, int r, int thread) {
    (void)thread;
    const block *b = ctx;
    turn_heads(b, b->s->q + r * b->q_dim, b->lc->heads, b->nl->q_norm, r);
}

static void key_row(void *ctx, int r, int thread) {
    (void)thread;
    const block *b = ctx;
    float *k = b->s->k + r * b->kv_dim, *v = b->s->v + r * b->kv_dim;
    if (b->lc->k_is_v) memcpy(v, k, (size_t)b->kv_dim * sizeof *v);
    turn_heads(b, k, b->lc->kv_heads, b->nl->k_norm, r);
    for (int h = 0; b->n->config->family == CLT_GEMMA4 && h < b->lc->kv_heads; h++)
        b->n->k->rms_norm(v + h * b->lc->head_dim, NULL, b->n->config->rms_eps, v + h * b->lc->head_dim, b->lc->head_dim);
}

/* All heads and rows of one group, in position order; one task per KV head keeps writers of a chunk apart. */
static void store_task(void *ctx, int task, int thread) {
    (void)thread;
    const block *b = ctx;
    clt_scratch *s = b->s;
    const clt_group *g = &s->group[task / b->lc->kv_heads];
    int h = task % b->lc->kv_heads;
    int64_t at = (int64_t)h * b->lc->head_dim;
    for (int r = g->first; r < g->first + g->count; r++) {
        clt_kv_chunk c = clt_kv_chunk_at(g->kv, b->l, s->pos[r] / CLT_ATTN_CHUNK, h);
        b->n->k->kv_store(g->kv->types, b->lc->head_dim, (uint8_t *)(uintptr_t)c.k, (uint8_t *)(uintptr_t)c.v,
                          s->pos[r] % CLT_ATTN_CHUNK, s->k + r * b->kv_dim + at, s->v + r * b->kv_dim + at);
    }
}

/* Nothing below reads the rows that go: their keys are stored and no later layer makes any. */
void clt_keep_wanted(clt_scratch *s, const clt_row *rows) {
    int64_t d = s->net->config->width;
    int n = 0, groups = 0;
    for (int g = 0; g < s->n_groups; g++) {
        clt_group old = s->group[g];
        int first = n;
        for (int r = old.first; r < old.first + old.count; r++) {
            if (!rows[s->source[r]].want_logits) continue;
            memmove(s->x + n * d, s->x + r * d, (size_t)d * sizeof *s->x);
            s->pos[n] = s->pos[r], s->source[n] = s->source[r], s->block_end[n] = s->block_end[r], n++;
        }
        if (n > first) s->group[groups++] = (clt_group){old.kv, first, n - first};
    }
    s->n = n, s->n_groups = groups;
}

/* Queries, keys and values of the active rows share one job: a step of one token waits once instead of twice. */
static void project(block *b, bool queries, bool keys) {
    const clt_mat *const mats[] = {&b->nl->q, &b->nl->k, &b->nl->v};
    clt_scratch *s = b->s;
    int64_t d = b->n->config->width;
    clt_linear lin[3];
    int n = 0;
    if (queries) lin[n++] = (clt_linear){&b->nl->q, s->q, b->q_dim};
    if (keys) lin[n++] = (clt_linear){&b->nl->k, s->k, b->kv_dim};
    if (keys && !b->lc->k_is_v) lin[n++] = (clt_linear){&b->nl->v, s->v, b->kv_dim};
    clt_norm_rows(s, b->nl->attn_norm);
    clt_linear_input(s, s->h, d, d, s->n, clt_precision_for(mats, 3, CLT_FINE));
    clt_linear_run(s, CLT_ROLE_ATTENTION, lin, n, s->n);
    if (queries) clt_rows_run(s, CLT_STAGE_ROWS, query_row, b, s->n);
    if (!keys) return;
    clt_rows_run(s, CLT_STAGE_ROWS, key_row, b, s->n);
    clt_run_job(s, CLT_STAGE_STORE, store_task, b, s->n_groups * b->lc->kv_heads);
}

static bool all_wanted(const clt_scratch *s, const clt_row *rows) {
    for (int r = 0; r < s->n; r++)
        if (!rows[s->source[r]].want_logits) return false;
    return true;
}

void clt_attention(clt_scratch *s, int l, const clt_row *rows, bool compact) {
    const clt_net *n = s->net;
    const clt_layer_config *lc = &n->config->layer[l];
    int64_t d = n->config->width;
    block b = {.s = s, .n = n, .lc = lc, .nl = &n->layer[l], .l = l, .q_dim = (int64_t)lc->heads * lc->head_dim,
               .kv_dim = (int64_t)lc->kv_heads * lc->head_dim, .pairs = lc->sliding ? n->pairs_sliding : n->pairs_full,
               .cs = lc->sliding ? s->cs_sliding : s->cs_full};
    bool later = compact && !all_wanted(s, rows); /* queries only of the rows that stay */
    if (!later || lc->own_kv) project(&b, !later, lc->own_kv);
    if (later) {
        clt_keep_wanted(s, rows);
        if (!s->n) return;
        project(&b, true, false);
    }
    clt_attend(s, l);
    clt_linear_one(s, CLT_ROLE_ATTENTION, &b.nl->o, s->att, b.q_dim, s->n, CLT_FINE, s->h, d);
    clt_join_rows(s, b.nl->post_attn_norm);
}
