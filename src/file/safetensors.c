/* One safetensors file: mapped bytes come in; its tensors go out, all checked. Knows neither the index nor the folder.
 *
 *   0  u64 header bytes N | 8  JSON header, N bytes | 8 + N  data
 *   header: {"NAME": {"dtype": "BF16", "shape": [rows, cols], "data_offsets": [begin, end]}, ..., "__metadata__": {...}}
 *
 * The offsets count from the data section and cover it without holes. Data may begin at any byte: nothing is aligned. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "file/impl.h"

enum { MAX_NAME_BYTES = 512, MAX_HEADER_BYTES = 100000000 };

static const struct {
    const char *name;
    unsigned bits;
    int type; /* -1: we lack it */
} dtypes[] = {
    {"BF16", 16, CLT_BF16}, {"F16", 16, CLT_F16}, {"F32", 32, CLT_F32}, {"F64", 64, -1},     {"I64", 64, -1},
    {"U64", 64, -1},        {"I32", 32, -1},      {"U32", 32, -1},      {"I16", 16, -1},     {"U16", 16, -1},
    {"I8", 8, -1},          {"U8", 8, -1},        {"BOOL", 8, -1},      {"F8_E4M3", 8, -1},  {"F8_E5M2", 8, -1},
    {"F8_E8M0", 8, -1},     {"F6_E2M3", 6, -1},   {"F6_E3M2", 6, -1},   {"F4", 4, -1},       {"C64", 64, -1},
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* What a scan carries along. */
typedef struct scan {
    clt_file *f;
    int shard;
    uint64_t data_begin;
    clt_span *spans;
    size_t n;
    clt_err *err;
} scan;

/* One header entry while it is being read. */
typedef struct entry {
    const char *name;
    const clt_json *node;
    int dtype; /* index into dtypes, -1 unknown */
    const char *dtype_name;
    size_t n_dims;
    uint64_t count; /* numbers */
    clt_tensor t;
} entry;

static clt_status fail_entry(const scan *s, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static clt_status fail_entry(const scan *s, const char *name, const char *fmt, ...) {
    char why[256], shown[CLT_SHOWN_BYTES];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return clt_fail(s->err, CLT_E_FILE, "%s: damaged: tensor '%s': %s", s->f->shards[s->shard].path,
                    clt_shown(shown, name, strlen(name)), why);
}

static clt_status read_dtype(const scan *s, entry *e) {
    size_t len = 0;
    e->dtype_name = clt_json_str(clt_json_get(e->node, "dtype"), &len);
    if (!e->dtype_name) return fail_entry(s, e->name, "its dtype is missing or no string");
    e->dtype = -1;
    for (int i = 0; i < N_DTYPES; i++)
        if (strlen(dtypes[i].name) == len && memcmp(dtypes[i].name, e->dtype_name, len) == 0) e->dtype = i;
    return CLT_OK;
}

/* A whole number that is written as one. */
static bool read_whole(const clt_json *node, int64_t *v) {
    return clt_json_kind(node) == CLT_JSON_INT && clt_json_int(node, v);
}

/* Shape, outermost first in the file, innermost first in the tensor. */
static clt_status read_shape(const scan *s, entry *e) {
    const clt_json *shape = clt_json_get(e->node, "shape");
    if (clt_json_kind(shape) != CLT_JSON_ARRAY) return fail_entry(s, e->name, "its shape is missing or no array");
    e->n_dims = clt_json_len(shape);
    e->count = 1;
    for (int i = 0; i < 4; i++) e->t.dims[i] = 1;
    for (size_t i = 0; i < e->n_dims; i++) {
        int64_t d = 0;
        if (!read_whole(clt_json_at(shape, i), &d))
            return fail_entry(s, e->name, "dimension %zu of its shape is no whole number", i);
        if (d < 1) return fail_entry(s, e->name, "dimension %zu of its shape is %" PRId64 ", expected at least 1", i, d);
        if (__builtin_mul_overflow(e->count, (uint64_t)d, &e->count) || e->count > INT64_MAX / 64)
            return fail_entry(s, e->name, "its shape is too large");
        if (e->n_dims <= 4) e->t.dims[e->n_dims - 1 - i] = d;
    }
    e->t.n_dims = e->n_dims ? (int)e->n_dims : 1;
    return CLT_OK;
}

static clt_status read_offsets(const scan *s, entry *e) {
    const clt_json *offsets = clt_json_get(e->node, "data_offsets");
    int64_t begin = 0, end = 0;
    bool pair = clt_json_len(offsets) == 2 && read_whole(clt_json_at(offsets, 0), &begin) &&
                read_whole(clt_json_at(offsets, 1), &end);
    if (!pair || begin < 0 || end < begin)
        return fail_entry(s, e->name, "its data_offsets are not [begin, end] with 0 <= begin <= end");
    e->t.bytes = (uint64_t)(end - begin);
    uint64_t bits = e->dtype >= 0 ? e->count * dtypes[e->dtype].bits : e->t.bytes * 8; /* count <= INT64_MAX / 64 */
    if (bits % 8 != 0 || bits / 8 != e->t.bytes)
        return fail_entry(s, e->name, "%" PRIu64 " numbers of dtype %s take %" PRIu64 " bytes, its data_offsets say %"
                          PRIu64, e->count, dtypes[e->dtype].name, bits / 8 + (bits % 8 != 0), e->t.bytes);
    e->t.offset = s->data_begin + (uint64_t)begin; /* both far below 2^63 */
    return CLT_OK;
}

/* The drafters' token order: whole numbers that the forward pass does not read from here. */
static bool is_skipped(const entry *e) {
    static const char suffix[] = "token_ordering";
    size_t n = strlen(e->name), m = sizeof suffix - 1;
    return e->dtype >= 0 && strcmp(dtypes[e->dtype].name, "I64") == 0 && n >= m && strcmp(e->name + n - m, suffix) == 0;
}

static void note_lack(const scan *s, const entry *e) {
    char shown[CLT_SHOWN_BYTES], words[CLT_SHOWN_BYTES + 64];
    if (e->n_dims > 4) snprintf(words, sizeof words, "%zu dimensions", e->n_dims);
    else snprintf(words, sizeof words, "dtype %s", clt_shown(shown, e->dtype_name, strlen(e->dtype_name)));
    clt_file_lack(s->f, s->shard, e->name, words);
}

static clt_status scan_entry(scan *s, const char *key, size_t key_len, const clt_json *node) {
    entry e = {.node = node};
    if (key_len == 0 || key_len > MAX_NAME_BYTES || memchr(key, 0, key_len))
        return fail_entry(s, key, "the name is empty, holds a NUL byte or is longer than 512 bytes");
    if (clt_json_kind(node) != CLT_JSON_OBJECT) return fail_entry(s, key, "its header entry is no object");
    e.name = e.t.name = clt_arena_strndup(s->f->arena, key, key_len);
    if (!e.name) return clt_fail_memory(s->err, "tensor names", key_len + 1);
    clt_status st = read_dtype(s, &e);
    if (!st) st = read_shape(s, &e);
    if (!st) st = read_offsets(s, &e);
    if (st) return st;
    bool ours = e.dtype >= 0 && dtypes[e.dtype].type >= 0 && e.n_dims <= 4;
    if (ours) e.t.type = (clt_type)dtypes[e.dtype].type;
    e.t.shard = s->shard;
    s->spans[s->n++] = (clt_span){e.name, e.t.offset, e.t.offset + e.t.bytes};
    /* The address is set before the layout check, which refuses the whole file if it lies outside. */
    e.t.data = (const uint8_t *)((uintptr_t)s->f->shards[s->shard].map.data + (uintptr_t)e.t.offset);
    if (!ours && !is_skipped(&e)) note_lack(s, &e);
    return clt_file_add(s->f, e.name, s->shard, ours ? &e.t : NULL, s->err);
}

static clt_status scan_header(scan *s, const clt_json *header, uint64_t file_bytes) {
    void *iter = NULL;
    const char *key = NULL;
    size_t key_len = 0;
    const clt_json *node = NULL;
    const char *path = s->f->shards[s->shard].path;
    if (clt_json_kind(header) != CLT_JSON_OBJECT)
        return clt_fail(s->err, CLT_E_FILE, "%s: damaged: the header is no JSON object", path);
    s->spans = clt_calloc(clt_json_len(header) + 1, sizeof *s->spans);
    if (!s->spans) return clt_fail_memory(s->err, "tensor table", (clt_json_len(header) + 1) * sizeof *s->spans);
    while (clt_json_next(header, &iter, &key, &key_len, &node)) {
        if (strcmp(key, "__metadata__") == 0) continue;
        clt_status st = scan_entry(s, key, key_len, node);
        if (st) return st;
    }
    if (s->n == 0) return clt_fail(s->err, CLT_E_FILE, "%s: holds no tensors", path);
    return clt_layout_check(path, s->spans, s->n, s->data_begin, file_bytes, true, s->err);
}

static clt_status fail_header(const char *path, uint64_t header_bytes, uint64_t file_bytes, clt_err *err) {
    if (file_bytes < 8 || (header_bytes <= MAX_HEADER_BYTES && header_bytes > file_bytes - 8)) {
        clt_fail(err, CLT_E_FILE,
                 "%s: truncated or damaged: the header takes %" PRIu64 " bytes from offset 8, the file ends at %" PRIu64,
                 path, header_bytes, file_bytes);
        return clt_hint(err, "the download may be incomplete: fetch the file again");
    }
    clt_fail(err, CLT_E_FILE, "%s: not a safetensors file: a header of %" PRIu64 " bytes cannot be (expected 2 to %d)", path,
             header_bytes, MAX_HEADER_BYTES);
    return clt_hint(err, "fetch the file again");
}

clt_status clt_safetensors_scan(clt_file *f, int shard, clt_err *err) {
    const char *path = f->shards[shard].path;
    const clt_map *map = &f->shards[shard].map;
    uint64_t header_bytes = map->size >= 8 ? clt_le64(map->data) : 0;
    if (map->size < 8 || header_bytes < 2 || header_bytes > MAX_HEADER_BYTES || header_bytes > map->size - 8)
        return fail_header(path, header_bytes, map->size, err);
    clt_json *header = NULL;
    scan s = {.f = f, .shard = shard, .data_begin = 8 + header_bytes, .err = err};
    clt_status st = clt_hf_parse((const char *)map->data + 8, header_bytes, path, &header, err);
    if (!st) st = scan_header(&s, header, map->size);
    clt_free(s.spans);
    clt_json_free(header);
    return st;
}
