/* Saved sessions: a timeline with its keys, values and last logits <-> a file that continues with the same bytes.
 *
 * A file is a header of 128 bytes, little-endian, and one zstd frame with its own checksum:
 *
 *   0   8  "CULETSES"                       64   8  bytes of keys and values
 *   8   4  version, 1; 2 with soft tokens   72   8  bytes of the caller's document
 *  12   4  bytes of the header, 128         80   8  bytes of the frame when unpacked
 *  16  16  fingerprint of the model         88   8  bytes of the frame
 *  32   4  type of keys   (GGUF number)     96   8  clt_hash64 of the frame, seed 1
 *  36   4  type of values                  104  16  zero
 *  40   4  tokens in the timeline          120   8  clt_hash64 of the 120 bytes before, seed 2
 *  44   4  tokens evaluated
 *  48   4  logits that follow, V or 0      unpacked: ids (4 bytes each), logits (4 bytes each), keys and values, document
 *  52   4  spans of soft tokens, S
 *  56   8  bytes of S times (first, rows, kind: 4 bytes each) and then of the soft tokens, between logits and keys
 *
 * Hashes find damage, not malice: every length is checked against what this session can hold before anything is allocated,
 * and the session changes only after all of it has been read. */
#include <stdio.h>
#include <string.h>
#if CLT_HAVE_ZSTD
#include <zstd.h>
#endif
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/os.h"
#include "engine/impl.h"

#if !CLT_HAVE_ZSTD

culet_status culet_session_save(const culet_session *s, const char *path, const char *extra, size_t extra_len,
                                culet_error *err) {
    clt_err inner;
    (void)s, (void)path, (void)extra, (void)extra_len;
    return clt_report(clt_fail_not_built(&inner, "saved sessions", "libzstd-dev"), &inner, err);
}

culet_status culet_session_load(culet_session *s, const char *path, char **extra, size_t *extra_len, culet_error *err) {
    clt_err inner;
    (void)s, (void)path;
    if (extra) *extra = NULL;
    if (extra_len) *extra_len = 0;
    return clt_report(clt_fail_not_built(&inner, "saved sessions", "libzstd-dev"), &inner, err);
}

#else

enum { HEADER = 128, HASHED = 120, VERSION = 1, VERSION_SOFT = 2, SPAN_BYTES = 12 };
enum { FRAME_SEED = 1, HEADER_SEED = 2, ZSTD_LEVEL = 1 };
static const char magic[8] = {'C', 'U', 'L', 'E', 'T', 'S', 'E', 'S'};
static const uint64_t max_extra = 256 << 20;

/* The numbers of a header, after or before their trip through bytes. */
typedef struct header {
    uint64_t fingerprint[2];
    uint32_t version, k_type, v_type, tokens, evaluated, logits, spans;
    uint64_t soft_bytes, kv_bytes, extra_bytes, content_bytes, frame_bytes, frame_hash;
} header;

static void put32(uint8_t *to, uint32_t v) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> 8 * i);
}

static void put64(uint8_t *to, uint64_t v) {
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get32(const uint8_t *from) {
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static uint64_t get64(const uint8_t *from) {
    return get32(from) | (uint64_t)get32(from + 4) << 32;
}

static void write_header(const header *h, uint8_t to[HEADER]) {
    memset(to, 0, HEADER);
    memcpy(to, magic, sizeof magic);
    put32(to + 8, h->version);
    put32(to + 12, HEADER);
    put64(to + 16, h->fingerprint[0]);
    put64(to + 24, h->fingerprint[1]);
    put32(to + 32, h->k_type);
    put32(to + 36, h->v_type);
    put32(to + 40, h->tokens);
    put32(to + 44, h->evaluated);
    put32(to + 48, h->logits);
    put32(to + 52, h->spans);
    put64(to + 56, h->soft_bytes);
    put64(to + 64, h->kv_bytes);
    put64(to + 72, h->extra_bytes);
    put64(to + 80, h->content_bytes);
    put64(to + 88, h->frame_bytes);
    put64(to + 96, h->frame_hash);
    put64(to + HASHED, clt_hash64(to, HASHED, HEADER_SEED));
}

static void read_header(const uint8_t *from, header *h) {
    h->version = get32(from + 8);
    h->fingerprint[0] = get64(from + 16);
    h->fingerprint[1] = get64(from + 24);
    h->k_type = get32(from + 32);
    h->v_type = get32(from + 36);
    h->tokens = get32(from + 40);
    h->evaluated = get32(from + 44);
    h->logits = get32(from + 48);
    h->spans = get32(from + 52);
    h->soft_bytes = get64(from + 56);
    h->kv_bytes = get64(from + 64);
    h->extra_bytes = get64(from + 72);
    h->content_bytes = get64(from + 80);
    h->frame_bytes = get64(from + 88);
    h->frame_hash = get64(from + 96);
}

/* Of the content; no overflow for counts below 2^32 and sizes that were checked. */
static uint64_t sum_of_parts(const header *h) {
    return 4 * ((uint64_t)h->tokens + h->logits) + h->soft_bytes + h->kv_bytes + h->extra_bytes;
}

/* ---- saving ---- */

static void describe(const culet_session *s, size_t extra_len, header *h) {
    *h = (header){
        .version = s->spans.n ? VERSION_SOFT : VERSION,
        .fingerprint = {s->engine->fingerprint[0], s->engine->fingerprint[1]},
        .k_type = (uint32_t)s->k_type, .v_type = (uint32_t)s->v_type,
        .tokens = (uint32_t)s->n, .evaluated = (uint32_t)clt_kv_length(s->kv),
        .logits = s->has_logits ? (uint32_t)s->engine->info.vocab : 0,
        .kv_bytes = clt_kv_export_bytes(s->kv), .extra_bytes = extra_len};
    h->spans = (uint32_t)s->spans.n;
    for (size_t i = 0; i < s->spans.n; i++)
        h->soft_bytes += SPAN_BYTES + 4 * s->spans.item[i].n * (uint64_t)s->engine->info.width;
    h->content_bytes = sum_of_parts(h);
}

static uint8_t *put_floats(uint8_t *to, const float *x, size_t n) {
    for (size_t i = 0; i < n; i++, to += 4) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        put32(to, bits);
    }
    return to;
}

static uint8_t *put_spans(uint8_t *to, const culet_session *s) {
    for (size_t i = 0; i < s->spans.n; i++, to += SPAN_BYTES) {
        const clt_span *p = &s->spans.item[i];
        put32(to, (uint32_t)p->first);
        put32(to + 4, (uint32_t)p->n);
        put32(to + 8, (uint32_t)p->soft->kind);
    }
    for (size_t i = 0; i < s->spans.n; i++) {
        const clt_span *p = &s->spans.item[i];
        to = put_floats(to, p->soft->rows, p->n * (size_t)p->soft->width);
    }
    return to;
}

static void fill_content(const culet_session *s, const header *h, const char *extra, uint8_t *to) {
    for (uint32_t i = 0; i < h->tokens; i++, to += 4) put32(to, (uint32_t)s->ids[i]);
    to = put_floats(to, s->logits, h->logits);
    to = put_spans(to, s);
    if (h->kv_bytes) clt_kv_export(s->kv, to);
    if (h->extra_bytes) memcpy(to + h->kv_bytes, extra, (size_t)h->extra_bytes);
}

/* Packs into file[HEADER..); *bytes: room in, size of the frame out. */
static clt_status pack(const uint8_t *content, const header *h, uint8_t *file, size_t *bytes, clt_err *err) {
    ZSTD_CCtx *z = ZSTD_createCCtx();
    if (!z) return clt_fail_memory(err, "saved session", *bytes);
    ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
    size_t done = ZSTD_compress2(z, file + HEADER, *bytes, content, (size_t)h->content_bytes);
    ZSTD_freeCCtx(z);
    if (ZSTD_isError(done))
        return clt_fail(err, CLT_E_FAILED, "saved session: cannot compress: %s", ZSTD_getErrorName(done));
    *bytes = done;
    return CLT_OK;
}

culet_status culet_session_save(const culet_session *s, const char *path, const char *extra, size_t extra_len,
                                culet_error *err) {
    clt_err inner;
    clt_status status = CLT_OK;
    header h;
    if (extra_len > max_extra)
        return clt_report(clt_fail(&inner, CLT_E_USAGE, "%s: a document of %zu bytes is too large", path, extra_len), &inner,
                          err);
    describe(s, extra ? extra_len : 0, &h);
    size_t content_bytes = (size_t)h.content_bytes, room = ZSTD_compressBound(content_bytes), frame = room;
    uint8_t *content = clt_pages_alloc(content_bytes), *file = clt_pages_alloc(HEADER + room);
    if (!content || !file) {
        status = clt_fail_memory(&inner, "saved session", content_bytes + HEADER + room);
        goto out;
    }
    fill_content(s, &h, extra, content);
    status = pack(content, &h, file, &frame, &inner);
    if (status != CLT_OK) goto out;
    h.frame_bytes = frame;
    h.frame_hash = clt_hash64(file + HEADER, frame, FRAME_SEED);
    write_header(&h, file);
    status = clt_write_file_atomic(path, file, HEADER + frame, true, &inner);
out:
    clt_pages_free(content, content_bytes);
    clt_pages_free(file, HEADER + room);
    return clt_report(status, &inner, err);
}

/* ---- loading ---- */

static clt_status damaged(clt_err *err, const char *path, const char *what) {
    return clt_fail(err, CLT_E_FILE, "%s: damaged session file: %s", path, what);
}

/* Is it a session file, whole, and of a version that is known? */
static clt_status check_container(const char *path, const uint8_t *file, size_t size, clt_err *err) {
    if (size < HEADER || memcmp(file, magic, sizeof magic) != 0)
        return clt_fail(err, CLT_E_FILE, "%s: not a saved session of culet", path);
    uint32_t version = get32(file + 8);
    if (version != VERSION && version != VERSION_SOFT)
        return clt_fail(err, CLT_E_FILE, "%s: session file of version %u, expected %d or %d", path, version, VERSION,
                        VERSION_SOFT);
    if (get32(file + 12) != HEADER || get64(file + HASHED) != clt_hash64(file, HASHED, HEADER_SEED))
        return damaged(err, path, "the header does not match its hash");
    uint64_t frame_bytes = get64(file + 88);
    if (frame_bytes != size - HEADER)
        return clt_fail(err, CLT_E_FILE, "%s: damaged session file: %llu bytes follow the header, expected %llu", path,
                        (unsigned long long)(size - HEADER), (unsigned long long)frame_bytes);
    if (get64(file + 96) != clt_hash64(file + HEADER, size - HEADER, FRAME_SEED))
        return damaged(err, path, "the content does not match its hash");
    return CLT_OK;
}

static uint64_t most_soft_bytes(const culet_session *s, uint64_t tokens) {
    return tokens * (SPAN_BYTES + 4 * (uint64_t)s->engine->info.width);
}

/* Does it belong to this model, and does it fit into this session? */
static clt_status check_header(const culet_session *s, const char *path, const header *h, clt_err *err) {
    const culet_engine *e = s->engine;
    if (h->fingerprint[0] != e->fingerprint[0] || h->fingerprint[1] != e->fingerprint[1]) {
        clt_fail(err, CLT_E_FILE, "%s: saved with another model than %s", path, e->info.path);
        return clt_hint(err, "open it with the model file that it was saved with");
    }
    if (h->k_type != (uint32_t)s->k_type || h->v_type != (uint32_t)s->v_type) {
        clt_fail(err, CLT_E_FILE, "%s: saved with KV types %s and %s, this session has %s and %s", path,
                 clt_type_get(h->k_type) ? clt_type_get(h->k_type)->name : "?",
                 clt_type_get(h->v_type) ? clt_type_get(h->v_type)->name : "?", clt_type_get((uint32_t)s->k_type)->name,
                 clt_type_get((uint32_t)s->v_type)->name);
        return clt_hint(err, "open the session with the same -ctk and -ctv");
    }
    if (h->tokens > (uint32_t)s->context) {
        clt_fail(err, CLT_E_CONTEXT, "%s: the saved session has %u tokens, the context holds %d", path, h->tokens,
                 s->context);
        return clt_hint(err, "use a larger context (-c)");
    }
    if (h->evaluated > h->tokens || (h->logits != 0 && (h->logits != (uint32_t)e->info.vocab || h->evaluated == 0)))
        return damaged(err, path, "counts that cannot be");
    if ((h->version == VERSION_SOFT) != (h->spans > 0)) return damaged(err, path, "a version that does not fit the content");
    if (h->spans > h->tokens || h->soft_bytes > most_soft_bytes(s, h->tokens))
        return damaged(err, path, "more soft tokens than tokens");
    if (h->kv_bytes > clt_kv_bytes(s->kv) || h->extra_bytes > max_extra || h->content_bytes != sum_of_parts(h))
        return damaged(err, path, "sizes that cannot be");
    return CLT_OK;
}

static clt_status unpack(const char *path, const uint8_t *frame, const header *h, uint8_t *content, clt_err *err) {
    size_t want = (size_t)h->content_bytes;
    if (ZSTD_getFrameContentSize(frame, (size_t)h->frame_bytes) != h->content_bytes)
        return damaged(err, path, "the frame is not of the size that the header says");
    size_t got = ZSTD_decompress(content, want, frame, (size_t)h->frame_bytes);
    if (ZSTD_isError(got)) return damaged(err, path, ZSTD_getErrorName(got));
    return got == want ? CLT_OK : damaged(err, path, "the frame ends early");
}

/* Turns content into ids and logits in place: both are arrays of 32-bit numbers at its start. */
static clt_status read_numbers(const culet_session *s, const char *path, const header *h, uint8_t *content, clt_err *err) {
    for (uint32_t i = 0; i < h->tokens + h->logits; i++) {
        uint32_t v = get32(content + 4 * (size_t)i);
        if (i < h->tokens && v >= (uint32_t)s->engine->info.vocab) return damaged(err, path, "an id outside the vocabulary");
        memcpy(content + 4 * (size_t)i, &v, sizeof v);
    }
    return CLT_OK;
}

/* The soft tokens of span i, whose rows begin at `rows`. */
static clt_status read_soft(const culet_session *s, const char *path, const uint8_t *span, const uint8_t *rows,
                            clt_soft **out, clt_err *err) {
    size_t n = get32(span + 4), numbers = n * (size_t)s->engine->info.width;
    clt_soft *soft = clt_soft_new((culet_media_kind)get32(span + 8), n, s->engine->info.width);
    if (!soft) return clt_fail_memory(err, path, 4 * numbers);
    for (size_t i = 0; i < numbers; i++) {
        uint32_t bits = get32(rows + 4 * i);
        memcpy(&soft->rows[i], &bits, sizeof bits);
    }
    *out = soft;
    return CLT_OK;
}

/* `at`: soft_bytes of table and rows. Spans ascend within the timeline, and fill exactly what the header says. */
static clt_status read_spans(const culet_session *s, const char *path, const header *h, const uint8_t *at, clt_spans *out,
                             clt_err *err) {
    const uint8_t *rows = at + (size_t)h->spans * SPAN_BYTES;
    uint64_t row_bytes = 4 * (uint64_t)s->engine->info.width, left = h->soft_bytes, before = 0;
    if (left < (uint64_t)h->spans * SPAN_BYTES) return damaged(err, path, "a table of soft tokens that cannot be");
    left -= (uint64_t)h->spans * SPAN_BYTES;
    for (uint32_t i = 0; i < h->spans; i++, at += SPAN_BYTES) {
        uint32_t first = get32(at), n = get32(at + 4), kind = get32(at + 8);
        clt_soft *soft = NULL;
        if (first < before || n == 0 || n > h->tokens || first > h->tokens - n || n * row_bytes > left || kind > CULET_AUDIO)
            return damaged(err, path, "a table of soft tokens that cannot be");
        if (kind == CULET_IMAGE && s->engine->model.config.picture_blocks && n > (uint32_t)s->rows) {
            clt_fail(err, CLT_E_CONTEXT, "%s: holds a picture of %u tokens, this session passes %d at once", path, n,
                     s->rows);
            return clt_hint(err, "open the session for larger pictures (--image-tokens %u or -ub %u)", n, n);
        }
        clt_status status = read_soft(s, path, at, rows, &soft, err);
        if (status == CLT_OK) status = clt_spans_add(out, first, n, soft, err);
        clt_soft_free(soft);
        if (status != CLT_OK) return status;
        before = (uint64_t)first + n, rows += n * row_bytes, left -= n * row_bytes;
    }
    return left == 0 ? CLT_OK : damaged(err, path, "a table of soft tokens that cannot be");
}

/* Everything after the checks of the header. `extra` stays NULL if the file has none. */
static clt_status take(culet_session *s, const char *path, const header *h, uint8_t *content, char **extra, clt_err *err) {
    clt_kv *kv = NULL;
    char *document = NULL;
    clt_spans spans = {0};
    const uint8_t *logits = content + 4 * (size_t)h->tokens, *soft = logits + 4 * (size_t)h->logits;
    const uint8_t *keys = soft + (size_t)h->soft_bytes;
    clt_status status = read_numbers(s, path, h, content, err);
    if (status == CLT_OK) status = read_spans(s, path, h, soft, &spans, err);
    if (status == CLT_OK && h->extra_bytes && extra) {
        document = clt_alloc((size_t)h->extra_bytes + 1);
        if (!document) status = clt_fail_memory(err, path, h->extra_bytes);
    }
    if (status == CLT_OK) status = clt_kv_create(&s->engine->model, s->context, s->rows, s->k_type, s->v_type, &kv, err);
    if (status == CLT_OK) status = clt_kv_import(kv, (int)h->evaluated, keys, h->kv_bytes, err);
    if (status != CLT_OK) {
        clt_kv_free(kv);
        clt_spans_free(&spans);
        clt_free(document);
        return status;
    }
    clt_session_adopt(s, kv, (const int32_t *)(const void *)content, h->tokens, &spans,
                      h->logits ? (const float *)(const void *)logits : NULL);
    if (document) {
        memcpy(document, keys + h->kv_bytes, (size_t)h->extra_bytes);
        document[h->extra_bytes] = 0;
        *extra = document;
    }
    return CLT_OK;
}

static clt_status load(culet_session *s, const char *path, const uint8_t *file, size_t size, char **extra, size_t *extra_len,
                       clt_err *err) {
    header h;
    clt_status status = check_container(path, file, size, err);
    if (status != CLT_OK) return status;
    read_header(file, &h);
    status = check_header(s, path, &h, err);
    if (status != CLT_OK) return status;
    size_t bytes = (size_t)h.content_bytes;
    uint8_t *content = clt_pages_alloc(bytes);
    if (!content) return clt_fail_memory(err, path, bytes);
    status = unpack(path, file + HEADER, &h, content, err);
    if (status == CLT_OK) status = take(s, path, &h, content, extra, err);
    if (status == CLT_OK && extra_len) *extra_len = (size_t)h.extra_bytes;
    clt_pages_free(content, bytes);
    return status;
}

culet_status culet_session_load(culet_session *s, const char *path, char **extra, size_t *extra_len, culet_error *err) {
    clt_err inner;
    clt_buf file = {0};
    if (extra) *extra = NULL;
    if (extra_len) *extra_len = 0;
    uint64_t largest = 4 * ((uint64_t)s->context + (uint64_t)s->engine->info.vocab) + clt_kv_bytes(s->kv) + max_extra +
                       most_soft_bytes(s, (uint64_t)s->context);
    clt_status status = clt_read_file(path, HEADER + ZSTD_compressBound((size_t)largest), &file, &inner);
    if (status == CLT_OK) status = load(s, path, (const uint8_t *)file.data, file.len, extra, extra_len, &inner);
    clt_buf_free(&file);
    return clt_report(status, &inner, err);
}

#endif
