/* Names for the products that an observer sees: a matrix of the net in, the name of its tensor out. */
#include "forward/observe.h"
#include <stddef.h>
#include <stdio.h>
#include "forward/internal.h"

static const struct { size_t at; const char *name; } roles[] = {
    {offsetof(clt_net_layer, q), "attn_q"},       {offsetof(clt_net_layer, k), "attn_k"},
    {offsetof(clt_net_layer, v), "attn_v"},       {offsetof(clt_net_layer, o), "attn_output"},
    {offsetof(clt_net_layer, gate), "ffn_gate"},  {offsetof(clt_net_layer, up), "ffn_up"},
    {offsetof(clt_net_layer, down), "ffn_down"},  {offsetof(clt_net_layer, ple_gate), "inp_gate"},
    {offsetof(clt_net_layer, ple_proj), "proj"},  {offsetof(clt_net_layer, router), "ffn_gate_inp"},
};

static void name_matrix(const clt_net *n, const clt_mat *w, char out[96]) {
    if (w == &n->output) {
        snprintf(out, 96, "%s", n->model->output == n->model->embed ? "token_embd.weight" : "output.weight");
        return;
    }
    if (w == &n->ple_proj) {
        snprintf(out, 96, "per_layer_model_proj.weight");
        return;
    }
    size_t at = (size_t)((const char *)w - (const char *)n->layer), layer = at / sizeof *n->layer;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (at % sizeof *n->layer == roles[i].at) {
            bool fused = n->model->layer[layer].qkv && i < 3;
            snprintf(out, 96, "blk.%zu.%s.weight", layer, fused ? "attn_qkv" : roles[i].name);
        }
}

void clt_observe_product(clt_scratch *s, const clt_mat *w, const float *x, int64_t ldx, float *y, int64_t ldy, int rows) {
    clt_observed o = {.matrices = 1, .rows = rows, .x = x, .ldx = ldx, .cols = w->cols, .y = y, .ldy = ldy,
                      .outputs = w->rows};
    if (!s->observe || !rows || !w->rows) return;
    name_matrix(s->net, w, o.name);
    s->observe(s->observe_user, &o);
}

void clt_observe_expert(clt_scratch *s, int l, int e, const clt_mat *w, const float *x, float *y, int rows) {
    const clt_expert *experts = s->net->layer[l].experts;
    bool down = w == &experts[e].down, split = s->net->model->layer[l].gate_exps != NULL;
    clt_observed o = {.matrix = e, .matrices = s->net->config->experts, .rows = rows, .x = x,
                      .ldx = w->cols, .cols = w->cols, .y = y, .ldy = w->rows, .outputs = w->rows};
    if (!s->observe || !rows) return;
    snprintf(o.name, sizeof o.name, "blk.%d.ffn_%s_exps.weight", l,
             down ? "down" : !split ? "gate_up" : w == &experts[e].gate ? "gate" : "up");
    s->observe(s->observe_user, &o);
}

void clt_scratch_set_observer(clt_scratch *s, clt_observe_fn fn, void *user) { s->observe = fn, s->observe_user = user; }
