/* The dense feed-forward block: down( gelu(gate h) * (up h) ). */
#include "forward/internal.h"

typedef struct act_ctx { clt_scratch *s; int64_t f; } act_ctx;

static void act_row(void *ctx, int r, int thread) {
    (void)thread;
    const act_ctx *c = ctx;
    float *g = c->s->gate + r * c->f;
    c->s->net->k->gelu_mul(g, c->s->up + r * c->f, g, c->f);
}

void clt_dense_mlp(clt_scratch *s, int l, float *out) {
    const clt_net_layer *nl = &s->net->layer[l];
    int64_t d = s->net->config->width, f = s->net->config->layer[l].ffn;
    clt_norm_rows(s, nl->ffn_norm);
    clt_linear_input(s, s->h, d, d, s->n, clt_precision_for((const clt_mat *[]){&nl->gate, &nl->up}, 2, CLT_COARSE));
    clt_linear_run(s, CLT_ROLE_FFN, (clt_linear[]){{&nl->gate, s->gate, f}, {&nl->up, s->up, f}}, 2, s->n);
    clt_rows_run(s, CLT_STAGE_ROWS, act_row, &(act_ctx){s, f}, s->n);
    clt_linear_one(s, CLT_ROLE_FFN, &nl->down, s->gate, f, s->n, CLT_COARSE, out, d);
}

void clt_ffn_dense(clt_scratch *s, int l) {
    clt_dense_mlp(s, l, s->h);
    clt_join_rows(s, s->net->layer[l].post_ffn_norm);
}
