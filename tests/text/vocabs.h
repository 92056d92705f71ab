/* For the tests of the tokenizers: golden vocabularies, hand-made ones as GGUF files, ids compared with lists.
 * Header-only, one test executable each. */
#ifndef CLT_TESTS_TEXT_VOCABS_H
#define CLT_TESTS_TEXT_VOCABS_H
#include "file/files.h"
#include "base/json.h"
#include "base/random.h"
#include "text/vocab.h"

static UNUSED const char *const golden_models[] = {"tiny-e/gguf/tiny-e-Q4_K_M.gguf", "tiny-e2b/gguf/tiny-e2b-Q4_0.gguf",
    "tiny-dense/gguf/tiny-dense-Q4_0.gguf", "tiny-moe/gguf/tiny-moe-Q4_0.gguf", "tiny-unified/gguf/tiny-unified-Q4_0.gguf",
    "tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf"};
enum { N_GOLDEN = sizeof golden_models / sizeof *golden_models, GOLDEN_MOE = 3, GOLDEN_GEMMA3 = N_GOLDEN - 1 };

static UNUSED clt_vocab *open_vocab(const char *path) {
    clt_err err;
    clt_vocab *v = NULL;
    clt_file *f = open_ok(path);
    if (clt_vocab_open(f, &v, &err)) fail_msg("%s", err.text);
    clt_file_close(f); /* a vocabulary stands on its own */
    return v;
}

/* The i-th golden model's vocabulary, from its GGUF file or from its folder; NULL if the model has no whole folder here. */
static UNUSED clt_vocab *open_golden(size_t i, bool as_folder) {
    char path[512], weights[600];
    snprintf(path, sizeof path, "%s/golden/models/%s", CLT_TEST_DIR, golden_models[i]);
    if (as_folder) *strstr(path, "/gguf/") = 0;
    snprintf(weights, sizeof weights, "%s/model.safetensors", path);
    return as_folder && !clt_is_file(weights) ? NULL : open_vocab(path);
}

static UNUSED clt_json *golden_json(const char *name) {
    char path[512];
    clt_err err;
    clt_buf text = {0};
    clt_json *doc = NULL;
    snprintf(path, sizeof path, "%s/golden/%s", CLT_TEST_DIR, name);
    if (clt_read_file(path, 1 << 26, &text, &err) || clt_json_parse(text.data, text.len, path, &doc, &err))
        fail_msg("%s", err.text);
    clt_buf_free(&text);
    return doc;
}

static UNUSED clt_ids tokenize(const clt_vocab *v, const char *text, size_t len, bool special) {
    clt_err err;
    clt_ids ids = {0};
    if (clt_tokenize(v, text, len, special, &ids, &err)) fail_msg("%s", err.text);
    assert_false(ids.failed);
    return ids;
}

static UNUSED clt_buf bytes_of(const clt_vocab *v, const clt_ids *ids, bool special) {
    clt_buf out = {0};
    clt_buf_puts(&out, "");
    for (size_t i = 0; i < ids->len; i++) clt_vocab_append_bytes(v, ids->data[i], special, &out);
    return out;
}

static UNUSED void assert_ids(const clt_ids *ids, const int32_t *expected, size_t n, const char *text) {
    bool same = ids->len == n && (!n || !memcmp(ids->data, expected, n * sizeof *expected));
    if (same) return;
    clt_buf got = {0};
    for (size_t i = 0; i < ids->len; i++) clt_buf_printf(&got, " %d", ids->data[i]);
    fail_msg("%s: got%s", text, got.data ? got.data : " nothing");
}

/* Text (NUL-terminated) gives exactly these ids. */
#define TOKENS(v, special, text, ...)                                                                                      \
    do {                                                                                                                   \
        const int32_t expected_[] = {__VA_ARGS__};                                                                         \
        clt_ids ids_ = tokenize(v, text, strlen(text), special);                                                           \
        assert_ids(&ids_, expected_, sizeof expected_ / sizeof *expected_, text);                                          \
        clt_ids_free(&ids_);                                                                                               \
    } while (0)

/* Every string of a golden file (fields utf8_hex, ids and, where there is one, decoded). */
static UNUSED void check_golden_strings(const clt_vocab *v, const clt_json *doc) {
    const clt_json *strings = clt_json_get(doc, "strings");
    assert_true(clt_json_len(strings) > 100);
    for (size_t i = 0; i < clt_json_len(strings); i++) {
        const clt_json *row = clt_json_at(strings, i), *want = clt_json_get(row, "ids");
        size_t n;
        const char *hex = clt_json_str(clt_json_get(row, "utf8_hex"), &n);
        clt_buf text = {0};
        clt_buf_puts(&text, "");
        for (size_t k = 0; k + 1 < n; k += 2) clt_buf_putc(&text, (char)strtol((char[]){hex[k], hex[k + 1], 0}, NULL, 16));
        clt_ids expected = {0};
        for (size_t k = 0; k < clt_json_len(want); k++) {
            int64_t id = -1;
            assert_true(clt_json_int(clt_json_at(want, k), &id));
            clt_ids_push(&expected, (int32_t)id);
        }
        clt_ids ids = tokenize(v, text.data, text.len, true);
        assert_ids(&ids, expected.data, expected.len, text.data);
        const char *decoded = clt_json_str(clt_json_get(row, "decoded"), &n);
        clt_buf bytes = bytes_of(v, &ids, true);
        if (decoded) {
            assert_int_equal(bytes.len, n);
            assert_memory_equal(bytes.data, decoded, n);
        }
        clt_buf_free(&bytes);
        clt_buf_free(&text);
        clt_ids_free(&expected);
        clt_ids_free(&ids);
    }
}

/* ---- random text, the same in every run ---- */

typedef struct draws {
    uint64_t seed, at;
} draws;
static UNUSED uint32_t draw(draws *d, uint32_t below) { return (uint32_t)(clt_random_u64(d->seed, d->at++, 7) % below); }

/* Up to n picks from a list of texts. */
static UNUSED clt_buf draw_text(draws *d, const char *const *list, uint32_t n_list, uint32_t n) {
    clt_buf text = {0};
    clt_buf_puts(&text, "");
    for (uint32_t i = draw(d, n + 1); i > 0; i--) clt_buf_puts(&text, list[draw(d, n_list)]);
    return text;
}

/* Appends to a string in an array of `size` bytes, for the plain references. */
static UNUSED void append(char *to, const char *text, size_t size) {
    size_t at = strlen(to), n = strlen(text);
    assert_true(at + n < size);
    memmove(to + at, text, n + 1);
}

/* ---- hand-made vocabularies ---- */

typedef struct made_piece {
    const char *text;
    int kind;
    float score;
} made_piece;
/* What a hand-made GGUF file says; zero leaves a part at its default, `without` drops the key that ends so. */
typedef struct made_vocab {
    const char *model; /* default gemma4 */
    const made_piece *pieces;
    size_t n_pieces;
    const char *const *merges;
    size_t n_merges;
    const char *without;
    bool no_bytes;     /* else <0x00>..<0xFF> follow the pieces */
    int extra_types, extra_scores;
    uint32_t bos;      /* 0: no key */
} made_vocab;

static UNUSED void put_f32(clt_buf *b, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_u32(b, bits);
}

static UNUSED void put_made_pieces(clt_buf *b, const made_vocab *m, uint64_t n) {
    gguf_array(b, "tokenizer.ggml.tokens", CLT_META_STRING, n);
    for (size_t i = 0; i < m->n_pieces; i++) put_str(b, m->pieces[i].text);
    for (unsigned byte = 0; byte < n - m->n_pieces; byte++) {
        char text[16];
        snprintf(text, sizeof text, "<0x%02X>", byte);
        put_str(b, text);
    }
}

static UNUSED void put_made_numbers(clt_buf *b, const made_vocab *m, uint64_t n, bool scores) {
    uint64_t count = n + (uint64_t)(scores ? m->extra_scores : m->extra_types);
    gguf_array(b, scores ? "tokenizer.ggml.scores" : "tokenizer.ggml.token_type", scores ? CLT_META_F32 : CLT_META_I32,
               count);
    for (uint64_t i = 0; i < count; i++) {
        bool made = i < m->n_pieces;
        if (scores) put_f32(b, made ? m->pieces[i].score : -1000);
        else put_u32(b, (uint32_t)(made ? m->pieces[i].kind : CLT_TOKEN_BYTE));
    }
}

static UNUSED const char *write_made(const made_vocab *m) {
    static const char *const keys[] = {"model", "tokens", "token_type", "scores", "merges", "bos_token_id"};
    uint64_t n = m->n_pieces + (m->no_bytes ? 0 : 256), metas = 0;
    clt_buf body = {0}, b = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (m->without && !strcmp(m->without, keys[i])) continue;
        if (i == 5 && !m->bos) continue;
        metas++;
        if (i == 0) gguf_string(&body, "tokenizer.ggml.model", m->model ? m->model : "gemma4");
        if (i == 1) put_made_pieces(&body, m, n);
        if (i == 2 || i == 3) put_made_numbers(&body, m, n, i == 3);
        if (i == 4) gguf_array(&body, "tokenizer.ggml.merges", CLT_META_STRING, m->n_merges);
        for (size_t k = 0; i == 4 && k < m->n_merges; k++) put_str(&body, m->merges[k]);
        if (i == 5) gguf_u32(&body, "tokenizer.ggml.bos_token_id", m->bos);
    }
    gguf_header(&b, 3, 0, metas);
    clt_buf_put(&b, body.data, body.len);
    clt_buf_free(&body);
    return write_buf("made.gguf", &b);
}

#define MADE(list) .pieces = list, .n_pieces = sizeof list / sizeof *list

#endif
