/* GGUF metadata: the key/value part of a header comes in, a checked table of entries goes out; and the typed reads of it.
 * Values stay in the mapping. Knows no key but by name.
 *
 *   entry   u64 length, bytes of the key | u32 type | value
 *   value   1, 2, 4 or 8 bytes little-endian | string: u64 length, bytes | array: u32 item type, u64 count, items
 */
#include <inttypes.h>
#include "file/impl.h"

enum { MAX_KEY_BYTES = 65535, MAX_NESTING = 4, ENTRY_MIN_BYTES = 8 + 1 + 4 + 1 };

static const struct {
    const char *name;
    unsigned bytes; /* 0: not fixed */
    unsigned min_bytes;
} types[] = {
    [CLT_META_U8] = {"u8", 1, 1},          [CLT_META_I8] = {"i8", 1, 1},         [CLT_META_U16] = {"u16", 2, 2},
    [CLT_META_I16] = {"i16", 2, 2},        [CLT_META_U32] = {"u32", 4, 4},       [CLT_META_I32] = {"i32", 4, 4},
    [CLT_META_F32] = {"f32", 4, 4},        [CLT_META_BOOL] = {"bool", 1, 1},     [CLT_META_STRING] = {"string", 0, 8},
    [CLT_META_ARRAY] = {"array", 0, 12},   [CLT_META_U64] = {"u64", 8, 8},       [CLT_META_I64] = {"i64", 8, 8},
    [CLT_META_F64] = {"f64", 8, 8},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

const char *clt_meta_type_name(clt_meta_type t) {
    return (unsigned)t < N_TYPES ? types[t].name : "unknown";
}

/* ---- scanning ---- */

static bool read_type(clt_reader *r, clt_meta_type *t) {
    uint32_t v = 0;
    if (!clt_reader_u32(r, "the type", &v)) return false;
    if (v >= N_TYPES) return clt_reader_fail(r, "value type %u at offset %" PRIu64 " is unknown", v,
                                             r->pos - 4);
    *t = (clt_meta_type)v;
    return true;
}

/* The hot loop of opening: 262,144 tokens and 514,906 merges pass through here. */
static bool skip_strings(clt_reader *r, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        uint64_t left = clt_reader_left(r);
        uint64_t len = left >= 8 ? clt_le64(r->data + r->pos) : 0;
        if (left < 8 || len > left - 8)
            return clt_reader_short(r, "string %" PRIu64 " of %" PRIu64 " takes %" PRIu64 " bytes at offset %" PRIu64
                                    ", past the end of the file at %" PRIu64, i, n, len, r->pos, r->size);
        r->pos += 8 + len;
    }
    return true;
}

static bool skip_fixed(clt_reader *r, clt_meta_type t, uint64_t n) {
    const uint8_t *p = r->data + r->pos;
    if (t == CLT_META_BOOL)
        for (uint64_t i = 0; i < n; i++)
            if (p[i] > 1) return clt_reader_fail(r, "a bool at offset %" PRIu64 " is %u", r->pos + i, p[i]);
    r->pos += n * types[t].bytes;
    return true;
}

static bool read_array_head(clt_reader *r, clt_meta_type *item, uint64_t *count) {
    return read_type(r, item) && clt_reader_u64(r, "the item count", count);
}

/* Passes over n values of type t. Each level of nesting costs at least 12 bytes of file, so the work is linear. */
static bool skip_values(clt_reader *r, clt_meta_type t, uint64_t n, int nesting) {
    if (n > clt_reader_left(r) / types[t].min_bytes)
        return clt_reader_short(r, "%" PRIu64 " values of type %s at offset %" PRIu64 " run past the end of the file at %"
                                PRIu64, n, types[t].name, r->pos, r->size);
    if (types[t].bytes) return skip_fixed(r, t, n);
    if (t == CLT_META_STRING) return skip_strings(r, n);
    if (nesting == MAX_NESTING) return clt_reader_fail(r, "arrays are nested more than %d deep", MAX_NESTING);
    for (uint64_t i = 0; i < n; i++) {
        clt_meta_type item = CLT_META_U8;
        uint64_t count = 0;
        if (!read_array_head(r, &item, &count) || !skip_values(r, item, count, nesting + 1)) return false;
    }
    return true;
}

static bool read_entry(clt_reader *r, clt_arena *a, clt_meta *m) {
    r->name = NULL;
    if (!clt_reader_name(r, "the key", MAX_KEY_BYTES, a, &m->key)) return false;
    r->name = m->key;
    if (!read_type(r, &m->type)) return false;
    m->count = 1;
    m->is_array = m->type == CLT_META_ARRAY;
    if (m->is_array && !read_array_head(r, &m->type, &m->count)) return false;
    m->data = r->data + r->pos;
    uint64_t begin = r->pos;
    if (!skip_values(r, m->type, m->count, m->is_array ? 1 : 0)) return false;
    m->bytes = r->pos - begin;
    return true;
}

bool clt_gguf_scan_metas(clt_reader *r, uint64_t n, clt_arena *a, clt_metas *out) {
    *out = (clt_metas){0};
    r->part = "metadata entry";
    r->index = 0;
    r->name = NULL;
    if (n > clt_reader_left(r) / ENTRY_MIN_BYTES || n > CLT_FILE_MAX_METAS) {
        clt_fail(r->err, CLT_E_FILE,
                 "%s: truncated or damaged: the header announces %" PRIu64 " metadata entries; the %" PRIu64 " bytes after "
                 "it hold at most %" PRIu64 ", and %u is the limit", r->path, n, clt_reader_left(r),
                 clt_reader_left(r) / ENTRY_MIN_BYTES, CLT_FILE_MAX_METAS);
        return false;
    }
    if (n == 0) return true;
    out->items = CLT_ARENA_NEW(a, clt_meta, n);
    if (!out->items) {
        clt_fail_memory(r->err, "metadata", n * sizeof *out->items);
        return false;
    }
    for (; r->index < n; r->index++) {
        clt_meta *m = &out->items[r->index];
        const clt_name *old = NULL;
        if (!read_entry(r, a, m)) return false;
        if (clt_names_add(&out->names, m->key, (uint32_t)r->index, 0, &old, r->err)) return false;
        if (old) return clt_reader_fail(r, "the key appears twice, first as entry %u", old->id);
        out->n++;
    }
    return true;
}

/* ---- reading ---- */

const clt_meta *clt_metas_find(const clt_metas *m, const char *key) {
    const clt_name *at = clt_names_find(&m->names, key);
    return at ? &m->items[at->id] : NULL;
}

/* Item i of a type of fixed size; NULL if there is none. */
static const uint8_t *item_at(const clt_meta *m, uint64_t i) {
    if (!m || !types[m->type].bytes || i >= m->count) return NULL;
    return m->data + i * types[m->type].bytes;
}

bool clt_meta_int(const clt_meta *m, uint64_t i, int64_t *out) {
    const uint8_t *p = item_at(m, i);
    if (!p) return false;
    uint64_t v = clt_le(p, types[m->type].bytes);
    switch (m->type) {
    case CLT_META_U8: case CLT_META_U16: case CLT_META_U32: *out = (int64_t)v; return true;
    case CLT_META_I8: *out = (int8_t)v; return true;
    case CLT_META_I16: *out = (int16_t)v; return true;
    case CLT_META_I32: *out = (int32_t)v; return true;
    case CLT_META_I64: *out = (int64_t)v; return true;
    case CLT_META_U64:
        if (v > INT64_MAX) return false;
        *out = (int64_t)v;
        return true;
    default: return false;
    }
}

bool clt_meta_num(const clt_meta *m, uint64_t i, double *out) {
    const uint8_t *p = item_at(m, i);
    if (!p) return false;
    int64_t whole = 0;
    uint64_t bits = clt_le(p, types[m->type].bytes);
    if (m->type == CLT_META_F32) {
        uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        *out = (double)f;
    } else if (m->type == CLT_META_F64) {
        memcpy(out, &bits, sizeof *out);
    } else if (m->type == CLT_META_U64) {
        *out = (double)bits;
    } else {
        if (!clt_meta_int(m, i, &whole)) return false;
        *out = (double)whole;
    }
    return true;
}

bool clt_meta_bool(const clt_meta *m, uint64_t i, bool *out) {
    const uint8_t *p = item_at(m, i);
    if (!p || m->type != CLT_META_BOOL) return false;
    *out = *p != 0;
    return true;
}

/* The string at byte offset *pos of the values. The lengths were checked at open; the file may have changed since. */
static bool string_at(const clt_meta *m, uint64_t *pos, const char **s, uint64_t *len) {
    if (*pos > m->bytes || m->bytes - *pos < 8) return false;
    uint64_t n = clt_le64(m->data + *pos);
    if (n > m->bytes - *pos - 8) return false;
    *s = (const char *)m->data + *pos + 8;
    *len = n;
    *pos += 8 + n;
    return true;
}

bool clt_meta_str(const clt_meta *m, const char **s, uint64_t *len) {
    uint64_t pos = 0;
    return m && m->type == CLT_META_STRING && !m->is_array && string_at(m, &pos, s, len);
}

bool clt_meta_next_str(const clt_meta *m, uint64_t *pos, const char **s, uint64_t *len) {
    return m && m->type == CLT_META_STRING && m->is_array && string_at(m, pos, s, len);
}
