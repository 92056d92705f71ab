/* The tensor table of a GGUF file: entries come in, checked tensors with their places go out.
 *
 *   entry   u64 length, bytes of the name | u32 dimensions (0..4) | u64 each dimension, innermost first | u32 type |
 *           u64 offset from the data section, which begins at the next multiple of the alignment after the table
 *
 * Types that we do not read have their block sizes here too: a damaged file is called damaged, whatever its types. */
#include <inttypes.h>
#include <stdio.h>
#include "file/impl.h"

enum { MAX_NAME_BYTES = 64, ENTRY_MIN_BYTES = 8 + 1 + 4 + 4 + 8 };

/* Types of GGUF that quant.h does not read: number, numbers per block, bytes per block. */
static const struct { uint32_t type, block_len, block_bytes; } foreign[] = {
    {9, 32, 36},    /* Q8_1 */
    {15, 256, 292}, /* Q8_K */
    {16, 256, 66},  /* IQ2_XXS */
    {17, 256, 74},  /* IQ2_XS */
    {18, 256, 98},  /* IQ3_XXS */
    {19, 256, 50},  /* IQ1_S */
    {21, 256, 110}, /* IQ3_S */
    {22, 256, 82},  /* IQ2_S */
    {24, 1, 1},     /* I8 */
    {25, 1, 2},     /* I16 */
    {26, 1, 4},     /* I32 */
    {27, 1, 8},     /* I64 */
    {28, 1, 8},     /* F64 */
    {29, 256, 56},  /* IQ1_M */
    {34, 256, 54},  /* TQ1_0 */
    {35, 256, 66},  /* TQ2_0 */
    {39, 32, 17},   /* MXFP4 */
    {40, 64, 36},   /* NVFP4 */
    {41, 128, 18},  /* Q1_0 */
};

/* 0 bytes per number and blocks of 1 for a type that nobody told us about. */
static void block_of(uint32_t type, uint32_t *len, uint32_t *bytes) {
    const clt_type_info *known = clt_type_get(type);
    *len = known ? known->block_len : 1;
    *bytes = known ? known->block_bytes : 0;
    for (size_t i = 0; !known && i < sizeof foreign / sizeof foreign[0]; i++)
        if (foreign[i].type == type) {
            *len = foreign[i].block_len;
            *bytes = foreign[i].block_bytes;
        }
}

static const char *type_words(char out[64], uint32_t type) {
    const char *name = clt_type_name(type);
    if (name) snprintf(out, 64, "type %s", name);
    else snprintf(out, 64, "the unknown type number %" PRIu32, type);
    return out;
}

static bool read_dims(clt_reader *r, clt_tensor *t) {
    uint32_t n = 0;
    if (!clt_reader_u32(r, "the dimension count", &n)) return false;
    if (n > 4) return clt_reader_fail(r, "%" PRIu32 " dimensions, at most 4 are possible", n);
    t->n_dims = n ? (int)n : 1; /* no dimension at all: a single number */
    for (int i = 0; i < 4; i++) t->dims[i] = 1;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t d = 0;
        if (!clt_reader_u64(r, "a dimension", &d)) return false;
        if (d == 0 || d > INT64_MAX)
            return clt_reader_fail(r, "dimension %" PRIu32 " is %" PRId64 ", expected at least 1", i, (int64_t)d);
        t->dims[i] = (int64_t)d;
    }
    return true;
}

/* Bytes of the tensor from its shape and type, without overflow. */
static bool measure(clt_reader *r, clt_tensor *t) {
    uint32_t len = 0, bytes = 0;
    char words[64];
    block_of((uint32_t)t->type, &len, &bytes);
    if (t->dims[0] % len != 0)
        return clt_reader_fail(r, "rows of %" PRId64 " numbers are not whole blocks of %" PRIu32 " (%s)", t->dims[0], len,
                               type_words(words, (uint32_t)t->type));
    uint64_t total = (uint64_t)t->dims[0] / len;
    bool over = false;
    for (int i = 1; i < 4; i++) over |= __builtin_mul_overflow(total, (uint64_t)t->dims[i], &total);
    over |= __builtin_mul_overflow(total, (uint64_t)bytes, &t->bytes);
    if (over || total > INT64_MAX / len)
        return clt_reader_fail(r, "shape %" PRId64 " x %" PRId64 " x %" PRId64 " x %" PRId64 " is too large", t->dims[0],
                               t->dims[1], t->dims[2], t->dims[3]);
    return true;
}

static bool read_entry(clt_reader *r, uint64_t align, clt_arena *a, clt_tensor *t) {
    uint32_t type = 0;
    r->name = NULL;
    if (!clt_reader_name(r, "the name", MAX_NAME_BYTES, a, &t->name)) return false;
    r->name = t->name;
    if (!read_dims(r, t) || !clt_reader_u32(r, "the type", &type)) return false;
    t->type = (clt_type)type; /* may be one that we lack: such a tensor never leaves this file */
    if (!measure(r, t) || !clt_reader_u64(r, "the offset", &t->offset)) return false;
    if (t->offset % align != 0)
        return clt_reader_fail(r, "offset %" PRIu64 " is not a multiple of the alignment %" PRIu64, t->offset, align);
    return true;
}

/* Offsets become those of the file; the spans say which bytes each tensor takes. */
static bool place(clt_reader *r, clt_tensor *ts, clt_span *spans, uint64_t n, uint64_t data_begin) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t end = 0;
        bool over = __builtin_add_overflow(ts[i].offset, data_begin, &ts[i].offset);
        over |= __builtin_add_overflow(ts[i].offset, ts[i].bytes, &end);
        if (over) {
            r->index = i;
            r->name = ts[i].name;
            return clt_reader_fail(r, "its offset and %" PRIu64 " bytes do not fit into any file", ts[i].bytes);
        }
        spans[i] = (clt_span){ts[i].name, ts[i].offset, end};
    }
    return true;
}

static bool offer(clt_reader *r, clt_file *f, int shard, clt_tensor *t) {
    bool ours = clt_type_get((uint32_t)t->type) != NULL;
    t->data = r->data + t->offset;
    t->shard = shard;
    if (clt_file_add(f, t->name, shard, ours ? t : NULL, r->err)) return false;
    char words[64];
    if (!ours) clt_file_lack(f, shard, t->name, type_words(words, (uint32_t)t->type));
    return true;
}

static bool scan(clt_reader *r, clt_tensor *ts, clt_span *spans, uint64_t n, uint64_t align, clt_file *f, int shard) {
    r->part = "tensor entry";
    for (r->index = 0; r->index < n; r->index++)
        if (!read_entry(r, align, f->arena, &ts[r->index])) return false;
    uint64_t data_begin = (r->pos + align - 1) & ~(align - 1); /* pos <= file size and align < 2^32: no overflow */
    if (!place(r, ts, spans, n, data_begin)) return false;
    if (clt_layout_check(r->path, spans, n, data_begin, r->size, false, r->err)) return false;
    for (uint64_t i = 0; i < n; i++)
        if (!offer(r, f, shard, &ts[i])) return false;
    return true;
}

bool clt_gguf_scan_tensors(clt_reader *r, uint64_t n, uint64_t align, clt_file *f, int shard) {
    if (n > clt_reader_left(r) / ENTRY_MIN_BYTES || n > CLT_FILE_MAX_TENSORS) {
        clt_fail(r->err, CLT_E_FILE,
                 "%s: truncated or damaged: the header announces %" PRIu64 " tensors; the %" PRIu64 " bytes after the "
                 "metadata hold at most %" PRIu64 ", and %u is the limit", r->path, n, clt_reader_left(r),
                 clt_reader_left(r) / ENTRY_MIN_BYTES, CLT_FILE_MAX_TENSORS);
        return false;
    }
    if (n == 0) return true;
    clt_tensor *ts = clt_calloc((size_t)n, sizeof *ts);
    clt_span *spans = clt_calloc((size_t)n, sizeof *spans);
    bool ok = ts && spans;
    if (!ok) clt_fail_memory(r->err, "tensor table", n * (sizeof *ts + sizeof *spans));
    ok = ok && scan(r, ts, spans, n, align, f, shard);
    clt_free(ts);
    clt_free(spans);
    return ok;
}
