/* The working memory of the picture tower for one picture: the residual stream and the keys of all patches, everything else for
 * one slab of them. */
#include "forward/vision_impl.h"

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static int64_t patch_columns(const clt_vision_config *c) {
    int64_t side = c->kind == CLT_VISION_UNIFIED ? (int64_t)c->patch * c->pool : c->patch;
    return side * side * 3;
}

static void lay_out(clt_vision_work *w, clt_cutter *m) {
    const clt_vision_config *c = w->v->config;
    bool encoder = c->kind == CLT_VISION_ENCODER;
    int64_t width = c->width, cols = patch_columns(c), slab = w->slab, threads = clt_pool_threads(w->v->pool);
    clt_tower_scratch(&w->s, &w->net, slab, larger(cols, width), larger(c->ffn, width), m);
    w->x = clt_cut(m, w->n * width, sizeof(float));
    w->patches = clt_cut(m, slab * cols, sizeof(float));
    w->position[0] = clt_cut(m, w->columns * width, sizeof(float));
    w->position[1] = clt_cut(m, w->lines * width, sizeof(float));
    w->h = clt_cut(m, slab * width, sizeof(float));
    if (!encoder) return;
    w->turns[0] = clt_cut(m, (int64_t)w->columns * c->head_dim / 2, sizeof(float));
    w->turns[1] = clt_cut(m, (int64_t)w->lines * c->head_dim / 2, sizeof(float));
    w->chunk_bytes = clt_kv_chunk_bytes(CLT_F32, c->head_dim);
    w->keys = clt_cut(m, (int64_t)c->heads * w->chunks, 2 * w->chunk_bytes);
    w->q = clt_cut(m, slab * width, sizeof(float)), w->k = clt_cut(m, slab * width, sizeof(float));
    w->att = clt_cut(m, slab * width, sizeof(float));
    w->gate = clt_cut(m, slab * c->ffn, sizeof(float)), w->up = clt_cut(m, slab * c->ffn, sizeof(float));
    w->clamped = clt_cut(m, slab * larger(width, c->ffn), sizeof(float));
    w->scores = clt_cut(m, threads * CLT_VISION_TILE * w->chunks * CLT_ATTN_CHUNK, sizeof(float));
}

static void shape(clt_vision_work *w, const clt_vision *v, int width, int height) {
    const clt_vision_config *c = v->config;
    int side = c->kind == CLT_VISION_UNIFIED ? c->patch * c->pool : c->patch;
    *w = (clt_vision_work){.v = v, .columns = width / side, .lines = height / side};
    w->n = w->columns * w->lines;
    w->slab = w->n < CLT_VISION_SLAB ? w->n : CLT_VISION_SLAB;
    w->chunks = (w->n + CLT_ATTN_CHUNK - 1) / CLT_ATTN_CHUNK;
    w->net = (clt_net){.k = v->k, .pool = v->pool};
}

/* Rows of the table of positions for each column and each line, and how far heads turn there. */
static clt_status fill(clt_vision_work *w, clt_err *err) {
    const clt_vision *v = w->v;
    const clt_vision_config *c = v->config;
    int n[2] = {w->columns, w->lines};
    for (int plane = 0; plane < 2; plane++) {
        if (n[plane] > c->positions)
            return clt_fail(err, CLT_E_FAILED, "a picture of %d x %d patches: the tower knows %d positions", w->columns,
                            w->lines, c->positions);
        for (int i = 0; i < n[plane]; i++) {
            if (!clt_file_decode_row(v->model->file, v->model->position, clt_vision_position_row(v->model, plane, i),
                                     w->position[plane] + (int64_t)i * c->width))
                return clt_fail(err, CLT_E_FILE, "%s: positions can no longer be read; was the file changed?",
                                clt_file_path(v->model->file));
            if (w->turns[plane])
                clt_rope_angles((float)i, v->inv_freq, c->head_dim / 4, w->turns[plane] + (int64_t)i * c->head_dim / 2);
        }
    }
    return CLT_OK;
}

clt_status clt_vision_work_create(const clt_vision *v, int width, int height, clt_vision_work **out, clt_err *err) {
    clt_vision_work *w = clt_calloc(1, sizeof *w);
    clt_cutter m = {0};
    *out = NULL;
    if (!w) return clt_fail_memory(err, "a picture", sizeof *w);
    shape(w, v, width, height);
    lay_out(w, &m);
    w->bytes = m.at;
    w->memory = clt_pages_alloc(w->bytes);
    clt_status st = w->memory ? CLT_OK : clt_fail_memory(err, "a picture", w->bytes);
    if (st == CLT_OK) {
        m = (clt_cutter){w->memory, 0};
        lay_out(w, &m);
        st = fill(w, err);
    }
    if (st == CLT_OK) *out = w;
    else clt_vision_work_free(w);
    return st;
}

void clt_vision_work_free(clt_vision_work *w) {
    if (!w) return;
    if (w->memory) clt_pages_free(w->memory, w->bytes);
    clt_free(w);
}
