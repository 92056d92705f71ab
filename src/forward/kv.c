/* Keys and values of one timeline.
 *
 * Every layer that produces keys keeps chunks of 64 positions, aligned to absolute position, so that a restored or rewound
 * session computes the same bits. Full layers keep the context; sliding layers a ring of chunks that holds the window, the
 * largest batch and the slack for drafts. `floor` is the first position that the rings still hold. */
#include <string.h>

#include "forward/internal.h"

enum { DRAFT_SLACK = 64, CHUNK = CLT_ATTN_CHUNK };

static int chunks_for(int positions) { return (positions + CHUNK - 1) / CHUNK; }

/* The oldest chunk that is still whole lies ring_chunks - 1 before the newest. */
static int ring_chunks(const clt_config *c, int context, int max_rows) {
    int64_t ring = ((int64_t)c->window + max_rows + DRAFT_SLACK + CHUNK - 1) / CHUNK + 1;
    int all = chunks_for(context);
    return ring < all ? (int)ring : all;
}

static void layer_shape(const clt_config *c, int l, int context, int max_rows, clt_type kt, clt_type vt, clt_kv_layer *out) {
    const clt_layer_config *lc = &c->layer[l];
    *out = (clt_kv_layer){.kv_heads = lc->kv_heads, .head_dim = lc->head_dim};
    out->chunks = lc->sliding ? ring_chunks(c, context, max_rows) : chunks_for(context);
    out->k_bytes = clt_kv_chunk_bytes(kt, lc->head_dim), out->v_bytes = clt_kv_chunk_bytes(vt, lc->head_dim);
    out->bytes = lc->own_kv ? (size_t)out->chunks * (size_t)lc->kv_heads * (out->k_bytes + out->v_bytes) : 0;
}

uint64_t clt_kv_plan_bytes(const clt_model *m, int context, int max_rows, clt_type k_type, clt_type v_type) {
    uint64_t sum = 0;
    clt_kv_layer shape;
    for (int l = 0; l < m->config.layers; l++) {
        layer_shape(&m->config, l, context, max_rows, k_type, v_type, &shape);
        sum = shape.bytes > UINT64_MAX - sum ? UINT64_MAX : sum + shape.bytes; /* hostile shapes: too much, not little */
    }
    return sum;
}

clt_status clt_kv_create(const clt_model *m, int context, int max_rows, clt_type k_type, clt_type v_type, clt_kv **out,
                         clt_err *err) {
    const clt_config *c = &m->config;
    clt_kv *kv = clt_calloc(1, sizeof *kv);
    *out = NULL;
    if (!kv) return clt_fail_memory(err, "the cache", sizeof *kv);
    *kv = (clt_kv){
        .model = m, .types = {k_type, v_type}, .context = context, .ring_chunks = ring_chunks(c, context, max_rows)};
    kv->layer = clt_calloc((size_t)c->layers, sizeof *kv->layer);
    for (int l = 0; kv->layer && l < c->layers; l++) {
        layer_shape(c, l, context, max_rows, k_type, v_type, &kv->layer[l]);
        if (c->layer[l].sliding) kv->window = c->window;
        if (kv->layer[l].bytes && !(kv->layer[l].data = clt_pages_alloc(kv->layer[l].bytes))) goto fail;
    }
    if (!kv->layer) goto fail;
    *out = kv;
    return CLT_OK;
fail:
    clt_kv_free(kv);
    return clt_fail_memory(err, "keys and values", clt_kv_plan_bytes(m, context, max_rows, k_type, v_type));
}

void clt_kv_free(clt_kv *kv) {
    if (!kv) return;
    for (int l = 0; kv->layer && l < kv->model->config.layers; l++)
        if (kv->layer[l].data) clt_pages_free(kv->layer[l].data, kv->layer[l].bytes);
    clt_free(kv->layer);
    clt_free(kv);
}

uint64_t clt_kv_bytes(const clt_kv *kv) {
    uint64_t sum = 0;
    for (int l = 0; l < kv->model->config.layers; l++) sum += kv->layer[l].bytes;
    return sum;
}

int clt_kv_length(const clt_kv *kv) { return kv->length; }

static uint8_t *chunk_data(const clt_kv_layer *kl, int chunk, int h) {
    size_t index = (size_t)(chunk % kl->chunks) * (size_t)kl->kv_heads + (size_t)h;
    return kl->data + index * (kl->k_bytes + kl->v_bytes);
}

clt_kv_chunk clt_kv_chunk_at(const clt_kv *kv, int layer, int chunk, int h) {
    const clt_kv_layer *kl = &kv->layer[layer];
    uint8_t *k = chunk_data(kl, chunk, h);
    return (clt_kv_chunk){k, k + kl->k_bytes};
}

void clt_kv_reserve(clt_kv *kv, int end) {
    int oldest = (chunks_for(end) - kv->ring_chunks) * CHUNK;
    if (oldest > kv->floor) kv->floor = oldest;
}

/* First position that the row at position n reads in sliding layers. */
static int first_read(const clt_kv *kv, int n) { return n - kv->window + 1 > 0 ? n - kv->window + 1 : 0; }

int clt_kv_rewind_min(const clt_kv *kv) {
    if (!kv->window || kv->floor == 0) return 0;
    int n = kv->floor + kv->window - 1;
    return n < kv->length ? n : kv->length;
}

bool clt_kv_rewind(clt_kv *kv, int n) {
    if (n < 0 || n > kv->length) return false;
    if (n == 0) {
        kv->length = kv->floor = 0;
        return true;
    }
    if (kv->window && first_read(kv, n) < kv->floor) return false;
    kv->length = n;
    return true;
}

/* ---- export: the chunks that a continuation can read, layer after layer ---- */

static int first_chunk(const clt_kv *kv, int l, int length) {
    return kv->model->config.layer[l].sliding ? first_read(kv, length) / CHUNK : 0;
}

static size_t chunk_row_bytes(const clt_kv_layer *kl) { return (size_t)kl->kv_heads * (kl->k_bytes + kl->v_bytes); }

static uint64_t export_bytes(const clt_kv *kv, int length) {
    uint64_t sum = 0;
    for (int l = 0; l < kv->model->config.layers; l++)
        if (kv->layer[l].data)
            sum += (uint64_t)(chunks_for(length) - first_chunk(kv, l, length)) * chunk_row_bytes(&kv->layer[l]);
    return sum;
}

uint64_t clt_kv_export_bytes(const clt_kv *kv) { return kv->length ? export_bytes(kv, kv->length) : 0; }

static uint8_t *layer_chunk(const clt_kv *kv, int l, int chunk) { return chunk_data(&kv->layer[l], chunk, 0); }

/* Slots behind the end hold what was cut off or what a ring held before: nobody reads them, and nobody shall find them. */
static void clear_tail(const clt_kv *kv, const clt_kv_layer *kl, uint8_t *chunk) {
    static const float zeros[CLT_MAX_HEAD_DIM];
    const clt_kernels *k = clt_kernels_get(CLT_CPU_SCALAR);
    int first = kv->length % CHUNK;
    for (int h = 0; first && h < kl->kv_heads; h++, chunk += kl->k_bytes + kl->v_bytes)
        for (int slot = first; slot < CHUNK; slot++)
            k->kv_store(kv->types, kl->head_dim, chunk, chunk + kl->k_bytes, slot, zeros, zeros);
}

void clt_kv_export(const clt_kv *kv, uint8_t *dst) {
    for (int l = 0; kv->length && l < kv->model->config.layers; l++) {
        const clt_kv_layer *kl = &kv->layer[l];
        size_t n = chunk_row_bytes(kl);
        int end = chunks_for(kv->length);
        if (!kl->data) continue;
        for (int c = first_chunk(kv, l, kv->length); c < end; c++, dst += n) {
            memcpy(dst, layer_chunk(kv, l, c), n);
            if (c == end - 1) clear_tail(kv, kl, dst);
        }
    }
}

clt_status clt_kv_import(clt_kv *kv, int length, const uint8_t *src, uint64_t bytes, clt_err *err) {
    if (length < 0 || length > kv->context)
        return clt_fail(err, CLT_E_FILE, "saved session holds %d positions, this context has %d", length, kv->context);
    uint64_t want = length ? export_bytes(kv, length) : 0;
    if (bytes != want)
        return clt_fail(err, CLT_E_FILE, "saved session holds %llu bytes of keys and values, expected %llu",
                        (unsigned long long)bytes, (unsigned long long)want);
    int floor = 0;
    for (int l = 0; length && l < kv->model->config.layers; l++) {
        size_t n = chunk_row_bytes(&kv->layer[l]);
        int c = first_chunk(kv, l, length);
        if (kv->layer[l].data && c * CHUNK > floor) floor = c * CHUNK;
        for (; kv->layer[l].data && c < chunks_for(length); c++, src += n) memcpy(layer_chunk(kv, l, c), src, n);
    }
    kv->length = length;
    kv->floor = floor;
    return CLT_OK;
}
