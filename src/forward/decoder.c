/* THE MAIN PATH: ids -> logits, one layer loop for the whole family.
 *
 *   x = E[id] * sqrt(D)                      embedding rows, straight from the file; or soft tokens as they are
 *   per-layer embeddings                     (E2B, E4B) ple.c
 *   for each layer:
 *       x += norm(attention(norm(x)))        attention.c, attend.c
 *       x += norm(ffn(norm(x)))              ffn.c, or moe.c with experts
 *       x += norm(per-layer branch)          (E2B, E4B) ple.c
 *       x *= the layer's scalar              (Gemma 4)
 *   logits = softcap(E norm(x))
 *
 * T rows are active. Past the last layer that produces keys, only rows whose logits are wanted go on. */
#include <string.h>

#include "forward/internal.h"

typedef struct pass { clt_scratch *s; const clt_row *rows; float *logits; int l; } pass;

static void embed_row(void *ctx, int r, int thread) {
    (void)thread;
    const pass *p = ctx;
    const clt_net *n = p->s->net;
    const clt_tensor *t = n->model->embed;
    int64_t d = n->config->width;
    float *x = p->s->x + r * d;
    if (p->rows[r].soft) {
        memcpy(x, p->rows[r].soft, (size_t)d * sizeof *x);
    } else {
        if (!clt_file_decode_row(n->model->file, t, p->rows[r].id, x)) atomic_store(&p->s->unread, true);
        n->k->scale(x, n->config->embed_scale, x, d);
    }
    clt_rope_angles((float)p->s->pos[r], n->freq_sliding, n->pairs_sliding,
                    p->s->cs_sliding + (int64_t)r * 2 * n->pairs_sliding);
    clt_rope_angles((float)p->s->pos[r], n->freq_full, n->pairs_full, p->s->cs_full + (int64_t)r * 2 * n->pairs_full);
}

static void scale_row(void *ctx, int r, int thread) {
    (void)thread;
    const pass *p = ctx;
    int64_t d = p->s->net->config->width;
    p->s->net->k->scale(p->s->x + r * d, p->s->net->layer[p->l].scalar, p->s->x + r * d, d);
}

enum { CAP_SPAN = 4096 };

static void softcap_task(void *ctx, int task, int thread) {
    (void)thread;
    const pass *p = ctx;
    int64_t all = (int64_t)p->s->n * p->s->net->config->vocab, at = (int64_t)task * CAP_SPAN;
    p->s->net->k->softcap(p->logits + at, p->s->net->config->final_softcap, all - at < CAP_SPAN ? all - at : CAP_SPAN);
}

static void probe(clt_scratch *s, const char *stage, int l, const float *x, int64_t width) {
    if (s->probe) s->probe(s->probe_user, stage, l, x, s->n, width);
}

/* Groups consecutive rows of one timeline and gives each row its position. */
static clt_status begin(clt_scratch *s, const clt_row *rows, int n, clt_err *err) {
    s->n = n, s->n_groups = 0;
    atomic_store(&s->unread, false);
    for (int r = 0; r < n; r++) {
        if (rows[r].id < 0 || rows[r].id >= s->net->config->vocab)
            return clt_fail(err, CLT_E_USAGE, "token id %d at row %d is outside the vocabulary of %d", rows[r].id, r,
                            s->net->config->vocab);
        if (!r || rows[r].kv != rows[r - 1].kv) s->group[s->n_groups++] = (clt_group){rows[r].kv, r, 0};
        clt_group *g = &s->group[s->n_groups - 1];
        s->source[r] = r;
        s->pos[r] = g->kv->length + g->count++;
        s->block_end[r] = rows[r].block_end > s->pos[r] ? rows[r].block_end : s->pos[r] + 1;
        if (s->pos[r] >= g->kv->context)
            return clt_fail(err, CLT_E_CONTEXT, "context of %d tokens is full", g->kv->context);
    }
    for (int g = 0; g < s->n_groups; g++) {
        const clt_group *gr = &s->group[g];
        int end = gr->kv->length + gr->count, last = gr->first + gr->count - 1;
        if (s->block_end[last] > end)
            return clt_fail(err, CLT_E_USAGE, "a block that ends at position %d is cut off at %d", s->block_end[last], end);
        clt_kv_reserve(gr->kv, end);
    }
    return CLT_OK;
}

static void layer(pass *p, int l) {
    clt_scratch *s = p->s;
    const clt_net *n = s->net;
    clt_attention(s, l, p->rows, l == n->last_kv_layer && !s->probe);
    if (!s->n) return;
    if (n->config->experts) clt_ffn_experts(s, l);
    else clt_ffn_dense(s, l);
    if (n->config->ple_dim) clt_ple_apply(s, l);
    p->l = l;
    if (n->layer[l].scalar != 1.0f) clt_rows_run(s, CLT_STAGE_ROWS, scale_row, p, s->n);
    probe(s, "layer", l, s->x, n->config->width);
}

static void head(pass *p) {
    clt_scratch *s = p->s;
    const clt_net *n = s->net;
    int64_t d = n->config->width, v = n->config->vocab;
    if (s->probe) {
        clt_norm_rows(s, n->output_norm);
        probe(s, "norm", n->config->layers - 1, s->h, d);
        clt_keep_wanted(s, p->rows);
    }
    clt_norm_rows(s, n->output_norm);
    clt_linear_one(s, CLT_ROLE_HEAD, &n->output, s->h, d, s->n, CLT_FINE, p->logits, v);
    if (n->config->final_softcap > 0)
        clt_run_job(s, CLT_STAGE_SOFTCAP, softcap_task, p, (int)((s->n * v + CAP_SPAN - 1) / CAP_SPAN));
}

static clt_status evaluate(const clt_net *net, clt_scratch *s, const clt_row *rows, int n, float *logits,
                           const atomic_int *cancel, clt_err *err) {
    pass p = {s, rows, logits, 0};
    clt_status st = begin(s, rows, n, err);
    if (st != CLT_OK) return st;
    clt_rows_run(s, CLT_STAGE_EMBED, embed_row, &p, n);
    probe(s, "embed", -1, s->x, net->config->width);
    if (net->config->ple_dim) {
        clt_ple_prepare(s, rows);
        probe(s, "ple", -1, s->ple, (int64_t)net->config->layers * net->config->ple_dim);
    }
    if (atomic_load(&s->unread))
        return clt_fail(err, CLT_E_FILE, "%s: rows of the embedding tables can no longer be read; was the file changed?",
                        clt_file_path(net->model->file));
    for (int l = 0; l < net->config->layers && s->n; l++) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed)) return clt_fail(err, CLT_E_CANCELLED, "cancelled");
        layer(&p, l);
    }
    if (s->n) head(&p);
    for (int r = 0; r < n; r++) rows[r].kv->length++;
    return CLT_OK;
}

clt_status clt_forward(const clt_net *net, clt_scratch *s, const clt_row *rows, int n, float *logits,
                       const atomic_int *cancel, clt_err *err) {
    clt_profile_begin(s->profile);
    clt_status st = evaluate(net, s, rows, n, logits, cancel, err);
    clt_profile_end(s->profile);
    return st;
}
