/* Per-layer embeddings (E2B, E4B): a second embedding per token and layer, computed once from the input embedding.
 *
 * P = width of a per-layer embedding, L layers. The table is the largest tensor of the file and never resident: one row per
 * token is read from the file. */
#include <math.h>

#include "forward/internal.h"

typedef struct prepare_ctx { clt_scratch *s; const clt_row *rows; } prepare_ctx;

/* ple = (rms_w(context * D^-0.5) + row * sqrt(P)) * 2^-0.5, layer by layer */
static void prepare_row(void *ctx, int r, int thread) {
    (void)thread;
    const prepare_ctx *c = ctx;
    const clt_net *n = c->s->net;
    const clt_tensor *t = n->model->ple_embed;
    int64_t p = n->config->ple_dim, all = p * n->config->layers;
    float *ple = c->s->ple + r * all, *proj = c->s->ple_ctx + r * all;
    if (!clt_file_decode_row(n->model->file, t, c->rows[r].id, ple)) atomic_store(&c->s->unread, true);
    n->k->scale(ple, sqrtf((float)p), ple, all);
    n->k->scale(proj, 1.0f / sqrtf((float)n->config->width), proj, all);
    for (int l = 0; l < n->config->layers; l++)
        n->k->rms_norm(proj + l * p, n->ple_proj_norm, n->config->rms_eps, proj + l * p, p);
    n->k->add(ple, proj, ple, all);
    n->k->scale(ple, 0.70710678118654752440f, ple, all);
}

void clt_ple_prepare(clt_scratch *s, const clt_row *rows) {
    int64_t d = s->net->config->width, all = (int64_t)s->net->config->ple_dim * s->net->config->layers;
    clt_linear_one(s, CLT_ROLE_PER_LAYER, &s->net->ple_proj, s->x, d, s->n, CLT_FINE, s->ple_ctx, all);
    clt_rows_run(s, CLT_STAGE_ROWS, prepare_row, &(prepare_ctx){s, rows}, s->n);
}

typedef struct apply_ctx { clt_scratch *s; int l; } apply_ctx;

static void gate_row(void *ctx, int r, int thread) {
    (void)thread;
    const apply_ctx *c = ctx;
    const clt_net *n = c->s->net;
    int64_t p = n->config->ple_dim;
    float *g = c->s->gate + r * p;
    n->k->gelu_mul(g, c->s->ple + ((int64_t)c->s->source[r] * n->config->layers + c->l) * p, g, p);
}

/* x += rms_w(Wp (gelu(Wg x) * ple[l])); no norm before the gate. */
void clt_ple_apply(clt_scratch *s, int l) {
    const clt_net_layer *nl = &s->net->layer[l];
    int64_t d = s->net->config->width, p = s->net->config->ple_dim;
    apply_ctx c = {s, l};
    clt_linear_one(s, CLT_ROLE_PER_LAYER, &nl->ple_gate, s->x, d, s->n, CLT_FINE, s->gate, p);
    clt_rows_run(s, CLT_STAGE_ROWS, gate_row, &c, s->n);
    clt_linear_one(s, CLT_ROLE_PER_LAYER, &nl->ple_proj, s->gate, p, s->n, CLT_FINE, s->h, d);
    clt_join_rows(s, nl->ple_norm);
}
