/* A bound picture tower -> packed matrices, norms and tables. Matrices keep the type of the file and are packed as the text
 * model's are; the table of positions stays in the file, a picture reads the rows that it needs. */
#include <string.h>
#include "base/mem.h"
#include "forward/vision_impl.h"

/* Every matrix of the tower, in the order in which a picture meets them. */
static void list(clt_pack_plan *p, const void *model, void *tower) {
    const clt_vision_model *m = model;
    clt_vision *v = tower;
    clt_mat none;
    clt_tower_plan(p, v ? &v->patch : &none, m->patch);
    for (int l = 0; m->layer && l < m->config.layers; l++) {
        clt_vision_net_layer unused = {0};
        clt_vision_net_layer *x = v ? &v->layer[l] : &unused;
        const clt_vision_layer *t = &m->layer[l];
        clt_tower_plan_bounded(p, &x->k, &t->k), clt_tower_plan_bounded(p, &x->v, &t->v);
        clt_tower_plan_bounded(p, &x->q, &t->q), clt_tower_plan_bounded(p, &x->o, &t->o);
        clt_tower_plan_bounded(p, &x->gate, &t->gate), clt_tower_plan_bounded(p, &x->up, &t->up);
        clt_tower_plan_bounded(p, &x->down, &t->down);
    }
    clt_tower_plan(p, v ? &v->projection : &none, m->projection);
}

uint64_t clt_vision_plan_bytes(const clt_vision_model *m) {
    clt_pack_plan p = {0};
    list(&p, m, NULL);
    return p.bytes;
}

static clt_status vectors(clt_vision *v, clt_err *err) {
    const clt_vision_model *m = v->model;
    const clt_file *f = m->file;
    clt_arena *a = v->arena;
    clt_status st = CLT_OK;
    for (int l = 0; m->layer && l < m->config.layers; l++) {
        const clt_vision_layer *t = &m->layer[l];
        clt_vision_net_layer *x = &v->layer[l];
        x->attn_norm = clt_tower_numbers(a, f, t->attn_norm, &st), x->ffn_norm = clt_tower_numbers(a, f, t->ffn_norm, &st);
        x->post_attn_norm = clt_tower_numbers(a, f, t->post_attn_norm, &st);
        x->post_ffn_norm = clt_tower_numbers(a, f, t->post_ffn_norm, &st);
        x->q_norm = clt_tower_numbers(a, f, t->q_norm, &st), x->k_norm = clt_tower_numbers(a, f, t->k_norm, &st);
    }
    v->std_bias = clt_tower_numbers(a, f, m->std_bias, &st), v->std_scale = clt_tower_numbers(a, f, m->std_scale, &st);
    v->patch_bias = clt_tower_numbers(a, f, m->patch_bias, &st);
    for (int i = 0; i < 3; i++) {
        v->norm[i] = clt_tower_numbers(a, f, m->norm[i], &st);
        v->norm_bias[i] = clt_tower_numbers(a, f, m->norm_bias[i], &st);
    }
    if (st == CLT_E_FILE)
        return clt_fail(err, st, "%s: norms can no longer be read; was the file changed?", clt_file_path(f));
    return st == CLT_OK ? CLT_OK : clt_fail_memory(err, "the picture tower's tables", 4 << 20);
}

/* ---- the order of the patch's columns ---- */

/* n slices of `bytes`, that run channel, row, column: now row, column, channel. copy: room for all of them. */
static void interleave(void *x, int64_t n, size_t bytes, uint8_t *copy) {
    uint8_t *to = x;
    memcpy(copy, x, (size_t)n * bytes);
    for (int64_t i = 0; i < n; i++, to += bytes) memcpy(to, copy + (size_t)(i % 3 * (n / 3) + i / 3) * bytes, bytes);
}

/* Vision files and folders order the columns differently. One order for both: the same sums, so the same bits. In a panel of
 * a float type a column is one slice; the columns of a quantised matrix share scales and stay where they are. */
static clt_status order_columns(clt_vision *v, clt_err *err) {
    const clt_mat *m = &v->patch;
    v->planar = v->config->planar && clt_mat_wants_q8(m->type);
    if (v->planar || !v->config->planar) return CLT_OK;
    size_t room = m->panel_bytes > (size_t)m->cols * sizeof(float) ? m->panel_bytes : (size_t)m->cols * sizeof(float);
    uint8_t *copy = clt_alloc(room), *panel = v->packed + (m->data - v->packed);
    if (!copy) return clt_fail_memory(err, "the picture tower", room);
    for (int64_t p = 0; p < clt_mat_panels(m); p++, panel += m->panel_bytes)
        interleave(panel, m->cols, m->panel_bytes / (size_t)m->cols, copy);
    if (v->norm[0]) interleave(v->norm[0], m->cols, sizeof(float), copy);
    if (v->norm_bias[0]) interleave(v->norm_bias[0], m->cols, sizeof(float), copy);
    clt_free(copy);
    return CLT_OK;
}

/* Bytes become numbers from 0 to 1; the encoder sees them from -1 to 1. */
static clt_status tables(clt_vision *v, clt_err *err) {
    const clt_vision_config *c = v->config;
    bool encoder = c->kind == CLT_VISION_ENCODER;
    for (int i = 0; i < 256; i++) {
        float unit = (float)(i / 255.0);
        v->value[i] = encoder ? 2 * (unit - 0.5f) : unit;
    }
    if (!encoder) return CLT_OK;
    v->inv_freq = CLT_ARENA_NEW(v->arena, float, c->head_dim / 4);
    if (!v->inv_freq) return clt_fail_memory(err, "the picture tower's tables", 64);
    clt_rope_frequencies(c->rope_theta, c->head_dim / 2, c->head_dim / 4, v->inv_freq);
    return CLT_OK;
}

clt_status clt_vision_create(const clt_vision_model *m, const clt_kernels *k, clt_pool *pool, clt_vision **out, clt_err *err) {
    clt_vision *v = clt_calloc(1, sizeof *v);
    *out = NULL;
    if (!v) return clt_fail_memory(err, "the picture tower", sizeof *v);
    *v = (clt_vision){.model = m, .config = &m->config, .k = k, .pool = pool, .arena = clt_arena_create(1 << 20)};
    v->layer = v->arena ? CLT_ARENA_NEW(v->arena, clt_vision_net_layer, m->config.layers + 1) : NULL;
    clt_status st = v->layer ? CLT_OK : clt_fail_memory(err, "the picture tower", 1 << 20);
    if (st == CLT_OK)
        st = clt_tower_pack(list, m, v, m->file, pool, &v->packed, &v->packed_bytes, "the picture tower", err);
    if (st == CLT_OK) st = vectors(v, err);
    if (st == CLT_OK) st = order_columns(v, err);
    if (st == CLT_OK) st = tables(v, err);
    if (st == CLT_OK) *out = v;
    else clt_vision_free(v);
    return st;
}

void clt_vision_free(clt_vision *v) {
    if (!v) return;
    if (v->packed) clt_pages_free(v->packed, v->packed_bytes);
    if (v->arena) clt_arena_free(v->arena);
    clt_free(v);
}

uint64_t clt_vision_bytes(const clt_vision *v) { return v->packed_bytes; }
