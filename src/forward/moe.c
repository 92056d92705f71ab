/* The expert block (26B-A4B): a dense branch and the k best of E experts, side by side in every layer.
 *
 * Rows are sorted by expert, so that each expert's weights are read once per pass. A row's result is the weighted sum of its
 * own experts in the order of their rank, whatever rows travel with it. */
#include <string.h>

#include "forward/internal.h"

typedef struct block {
    clt_scratch *s;
    const clt_net *n;
    const clt_net_layer *nl;
    int64_t d, fe;
    int used, experts;
} block;

/* The k largest probabilities, the first of equals first; renormalised, then scaled per expert. */
static void choose_row(void *ctx, int r, int thread) {
    (void)thread;
    const block *b = ctx;
    float *p = b->s->router + (int64_t)r * b->experts, *w = b->s->choice_weight + (int64_t)r * b->used, sum = 0;
    int *choice = b->s->choice + (int64_t)r * b->used;
    b->n->k->softmax(p, b->experts);
    for (int i = 0; i < b->used; i++) {
        int best = (int)b->n->k->argmax(p, b->experts);
        choice[i] = best;
        w[i] = p[best];
        sum += w[i];
        p[best] = -1;
    }
    for (int i = 0; i < b->used; i++) w[i] = w[i] / sum * b->nl->expert_scale[choice[i]];
}

/* Counting sort of (row, rank) by expert, and the list of those that were chosen: a step of one token meets 8 of 128. */
static void sort_by_expert(const block *b) {
    clt_scratch *s = b->s;
    int *first = s->expert_first, n = s->n * b->used;
    memset(first, 0, (size_t)(b->experts + 1) * sizeof *first);
    for (int i = 0; i < n; i++) first[s->choice[i] + 1]++;
    for (int e = 0; e < b->experts; e++) first[e + 1] += first[e];
    for (int i = 0; i < n; i++) s->slot[i] = first[s->choice[i]]++;
    for (int e = b->experts; e > 0; e--) first[e] = first[e - 1];
    first[0] = 0;
    s->n_met = 0;
    for (int e = 0; e < b->experts; e++)
        if (first[e + 1] > first[e]) s->expert_met[s->n_met++] = e;
}

static void spread_row(void *ctx, int r, int thread) {
    (void)thread;
    const block *b = ctx;
    float *h = b->s->h + r * b->d;
    b->n->k->rms_norm(b->s->x + r * b->d, b->nl->pre_ffn_norm_2, b->n->config->rms_eps, h, b->d);
    for (int i = 0; i < b->used; i++)
        memcpy(b->s->eh + b->s->slot[r * b->used + i] * b->d, h, (size_t)b->d * sizeof *h);
}

enum { PANELS_PER_TASK = 8 };

typedef struct expert_run {
    const block *b;
    bool down;     /* [Fe, D] pairs gate and up, or [D, Fe] */
    int per_expert, per_mat;
} expert_run;

static void expert_task(void *ctx, int task, int thread) {
    (void)thread;
    const expert_run *x = ctx;
    const block *b = x->b;
    clt_scratch *s = b->s;
    int e = s->expert_met[task / x->per_expert], t = task % x->per_expert, first = s->expert_first[e],
        rows = s->expert_first[e + 1] - first;
    const clt_expert *w = &b->nl->experts[e];
    bool up = t >= x->per_mat;
    const clt_mat *m = x->down ? &w->down : up ? &w->up : &w->gate;
    float *y = x->down ? s->eout + first * b->d : (up ? s->eup : s->egate) + first * b->fe;
    int64_t p0 = (int64_t)(t % x->per_mat) * PANELS_PER_TASK, p1 = p0 + PANELS_PER_TASK, all = clt_mat_panels(m);
    clt_acts a = clt_acts_from(&s->acts, first);
    b->n->k->matmul(m, &a, rows, y, x->down ? b->d : b->fe, p0, p1 < all ? p1 : all);
}

/* What all experts' products with one of their matrices come to, for the profile. */
static clt_profile_product product_of(const block *b, const clt_mat *m) {
    return (clt_profile_product){CLT_ROLE_EXPERTS, m->type,
                                 (uint64_t)b->s->n * (uint64_t)b->used * (uint64_t)m->rows * (uint64_t)m->cols,
                                 (uint64_t)b->s->n_met * (uint64_t)clt_mat_panels(m) * m->panel_bytes};
}

static void show_experts(const block *b, bool down) {
    clt_scratch *s = b->s;
    int l = (int)(b->nl - b->n->layer);
    for (int i = 0; i < s->n_met; i++) {
        int e = s->expert_met[i], first = s->expert_first[e], rows = s->expert_first[e + 1] - first;
        const clt_expert *w = &b->nl->experts[e];
        const float *x = s->acts.x + first * s->acts.ldx;
        if (down) {
            clt_observe_expert(s, l, e, &w->down, x, s->eout + first * b->d, rows);
            continue;
        }
        clt_observe_expert(s, l, e, &w->gate, x, s->egate + first * b->fe, rows);
        clt_observe_expert(s, l, e, &w->up, x, s->eup + first * b->fe, rows);
    }
}

static void run_experts(const block *b, bool down) {
    int64_t panels = ((down ? b->d : b->fe) + CLT_PANEL - 1) / CLT_PANEL;
    expert_run x = {b, down, 0, (int)((panels + PANELS_PER_TASK - 1) / PANELS_PER_TASK)};
    x.per_expert = down ? x.per_mat : 2 * x.per_mat;
    const clt_expert *one = b->nl->experts;
    const clt_mat *mats[] = {down ? &one->down : &one->gate, &one->up};
    clt_profile_product products[2];
    for (int i = 0; i < (down ? 1 : 2); i++) products[i] = product_of(b, mats[i]);
    clt_profile_run_products(b->s->profile, products, down ? 1 : 2, b->n->pool, expert_task, &x,
                             x.per_expert * b->s->n_met);
    if (b->s->observe) show_experts(b, down);
}

static void gelu_row(void *ctx, int i, int thread) {
    (void)thread;
    const block *b = ctx;
    float *g = b->s->egate + i * b->fe;
    b->n->k->gelu_mul(g, b->s->eup + i * b->fe, g, b->fe);
}

/* h = the experts' weighted sum in rank order, normed, and the dense branch, which is in s->att, already normed. */
static void gather_row(void *ctx, int r, int thread) {
    (void)thread;
    const block *b = ctx;
    const clt_kernels *k = b->n->k;
    float *h = b->s->h + r * b->d;
    memset(h, 0, (size_t)b->d * sizeof *h);
    for (int i = 0; i < b->used; i++)
        k->axpy(b->s->choice_weight[r * b->used + i], b->s->eout + b->s->slot[r * b->used + i] * b->d, h, b->d);
    k->rms_norm(h, b->nl->post_ffn_norm_2, b->n->config->rms_eps, h, b->d);
    k->add(b->s->att + r * b->d, h, h, b->d);
}

static void dense_row(void *ctx, int r, int thread) {
    (void)thread;
    const block *b = ctx;
    b->n->k->rms_norm(b->s->att + r * b->d, b->nl->post_ffn_norm_1, b->n->config->rms_eps, b->s->att + r * b->d, b->d);
}

void clt_ffn_experts(clt_scratch *s, int l) {
    const clt_net *n = s->net;
    block b = {.s = s, .n = n, .nl = &n->layer[l], .d = n->config->width, .fe = n->config->expert_ffn,
               .used = n->config->experts_used, .experts = n->config->experts};
    const clt_expert *x = b.nl->experts;
    clt_dense_mlp(s, l, s->att); /* att is free here and at least as wide as x */
    clt_rows_run(s, CLT_STAGE_ROWS, dense_row, &b, s->n);
    /* The router reads the residual stream itself, through a norm without weight and a learned scale. */
    clt_norm_rows(s, b.nl->router_scale);
    clt_linear_one(s, CLT_ROLE_ROUTER, &b.nl->router, s->h, b.d, s->n, CLT_FINE, s->router, b.experts);
    clt_rows_run(s, CLT_STAGE_ROWS, choose_row, &b, s->n);
    sort_by_expert(&b);
    clt_rows_run(s, CLT_STAGE_ROWS, spread_row, &b, s->n);
    clt_linear_input(s, s->eh, b.d, b.d, s->n * b.used,
                     clt_precision_for((const clt_mat *[]){&x->gate, &x->up}, 2, CLT_COARSE));
    run_experts(&b, false);
    clt_rows_run(s, CLT_STAGE_ROWS, gelu_row, &b, s->n * b.used);
    clt_linear_input(s, s->egate, b.fe, b.fe, s->n * b.used,
                     clt_precision_for((const clt_mat *[]){&x->down}, 1, CLT_COARSE));
    run_experts(&b, true);
    clt_rows_run(s, CLT_STAGE_ROWS, gather_row, &b, s->n);
    clt_join_rows(s, b.nl->post_ffn_norm);
}
