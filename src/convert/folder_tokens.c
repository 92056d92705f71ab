/* The vocabulary of a Hugging Face folder as GGUF metadata.
 *
 * Gemma 4: pieces, specials and merges of tokenizer.json, read as a stream; every score is the converter's constant. Gemma
 * 3: pieces, scores and kinds of tokenizer.model, with the added tokens that tokenizer_config.json lists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "convert/folder.h"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6, MAX_TOKENS = 1 << 24 };

/* Strings end to end. */
typedef struct texts {
    clt_buf bytes;
    clt_ids lens;
} texts;

static void keep(texts *t, const char *s, size_t n) {
    clt_buf_put(&t->bytes, s, n);
    clt_ids_push(&t->lens, (int32_t)n);
}

static void free_texts(texts *t) {
    clt_buf_free(&t->bytes);
    clt_ids_free(&t->lens);
}

/* ---- tokenizer.json ---- */

typedef struct reader {
    const char *what;
    clt_err *err;
    int depth, merge_parts;  /* parts of the merge being read */
    size_t merge_begin;      /* where its text begins */
    char top[24], field[24]; /* keys above: at depth 1; below it */
    texts pieces, added, merges;
    clt_ids ids, added_ids, added_special;
} reader;

static bool is(const char *s, const char *expected) { return !strcmp(s, expected); }

static void copy_key(char out[24], const char *key, size_t n) { snprintf(out, 24, "%.*s", (int)(n < 23 ? n : 23), key); }

static bool in_vocab(const reader *r) { return r->depth == 3 && is(r->top, "model") && is(r->field, "vocab"); }
static bool in_added(const reader *r) { return r->depth == 3 && is(r->top, "added_tokens"); }
static bool in_merges(const reader *r) { return r->depth >= 3 && is(r->top, "model") && is(r->field, "merges"); }

static bool on_key(void *ctx, const char *key, size_t n) {
    reader *r = ctx;
    if (in_vocab(r)) keep(&r->pieces, key, n);
    else if (r->depth == 1) copy_key(r->top, key, n);
    else if (r->depth == 2 || in_added(r)) copy_key(r->field, key, n);
    return true;
}

static bool on_scalar(void *ctx, clt_json_type t, const char *text, size_t n) {
    reader *r = ctx;
    char digits[24];
    copy_key(digits, text, n);
    long long v = strtoll(digits, NULL, 10);
    bool id = t == CLT_JSON_INT && v >= 0 && v < MAX_TOKENS;
    bool wants_id = in_vocab(r) || (in_added(r) && is(r->field, "id"));
    if (wants_id && !id) {
        clt_fail(r->err, CLT_E_FILE, "%s: %s is no token id", r->what, digits);
        return false;
    }
    if (in_vocab(r)) clt_ids_push(&r->ids, (int32_t)v);
    else if (wants_id) clt_ids_push(&r->added_ids, (int32_t)v);
    else if (in_added(r) && is(r->field, "special")) clt_ids_push(&r->added_special, is(digits, "true"));
    return true;
}

/* A merge is one text, or a pair; its parts are joined by a space, so that a space inside one becomes U+0120. */
static void keep_merge_part(reader *r, const char *s, size_t n) {
    if (r->merge_parts++) clt_buf_putc(&r->merges.bytes, ' ');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ' ') clt_buf_put(&r->merges.bytes, "\xC4\xA0", 2);
        else clt_buf_putc(&r->merges.bytes, s[i]);
    }
}

static bool on_string(void *ctx, const char *s, size_t n) {
    reader *r = ctx;
    if (in_added(r) && is(r->field, "content")) keep(&r->added, s, n);
    if (in_merges(r) && r->depth == 3) keep(&r->merges, s, n);
    if (in_merges(r) && r->depth == 4) keep_merge_part(r, s, n);
    return true;
}

static bool on_open(void *ctx, bool is_array) {
    reader *r = ctx;
    (void)is_array;
    r->depth++;
    r->merge_parts = 0;
    r->merge_begin = r->merges.bytes.len;
    return true;
}

static bool on_close(void *ctx, bool is_array) {
    reader *r = ctx;
    if (in_merges(r) && r->depth == 4 && is_array)
        clt_ids_push(&r->merges.lens, (int32_t)(r->merges.bytes.len - r->merge_begin));
    r->depth--;
    return true;
}

static void free_reader(reader *r) {
    free_texts(&r->pieces);
    free_texts(&r->added);
    free_texts(&r->merges);
    clt_ids_free(&r->ids);
    clt_ids_free(&r->added_ids);
    clt_ids_free(&r->added_special);
}

static clt_status read_json(const clt_file *f, reader *r, clt_err *err) {
    static const clt_json_events events = {on_scalar, on_string, on_key, on_open, on_close};
    uint64_t n = 0;
    const char *json = clt_file_text(f, "tokenizer.json", &n);
    r->what = "tokenizer.json";
    r->err = err;
    if (!json) return clt_fail(err, CLT_E_FILE, "%s: holds no tokenizer.json", clt_file_path(f));
    clt_status status = clt_json_stream(json, (size_t)n, r->what, &events, r, err);
    if (status != CLT_OK) return status == CLT_E_REQUEST ? (err->code = CLT_E_FILE) : status;
    if (r->pieces.bytes.failed || r->merges.bytes.failed || r->ids.failed || r->added_ids.failed)
        return clt_fail_memory(err, "the vocabulary", n);
    if (!r->ids.len || r->ids.len != r->pieces.lens.len || r->added_ids.len != r->added.lens.len ||
        r->added_special.len != r->added.lens.len)
        return clt_fail(err, CLT_E_FILE, "%s/tokenizer.json: its vocabulary or its added tokens are not whole",
                        clt_file_path(f));
    return CLT_OK;
}

/* ---- the table of all tokens ---- */

typedef struct token {
    const char *text;
    int32_t len, kind;
    float score;
} token;

typedef struct table {
    token *items;
    size_t n;
} table;

static clt_status make_table(table *t, size_t n, clt_err *err) {
    t->items = clt_calloc(n + 1, sizeof *t->items);
    t->n = n;
    return t->items ? CLT_OK : clt_fail_memory(err, "the vocabulary", n * sizeof *t->items);
}

/* Tokens that structure a reply: a program that shows text must see them, so they count as text of the user. */
static bool is_structure(const char *s, size_t n) {
    static const char *const names[] = {"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
                                        "<tool_response|>", "<|\"|>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && !memcmp(names[i], s, n)) return true;
    return false;
}

static bool is_byte(const char *s, size_t n) {
    return n == 6 && !memcmp(s, "<0x", 3) && s[5] == '>' && strspn(s + 3, "0123456789ABCDEFabcdef") >= 2;
}

static int32_t kind_of(const char *s, size_t n, bool special, bool beyond) {
    if (is_structure(s, n)) return USER;
    if (is_byte(s, n)) return BYTE;
    return special ? CONTROL : beyond ? USER : NORMAL;
}

static size_t largest_id(const clt_ids *ids, size_t so_far) {
    for (size_t i = 0; i < ids->len; i++)
        if ((size_t)ids->data[i] + 1 > so_far) so_far = (size_t)ids->data[i] + 1;
    return so_far;
}

static clt_status table_of_json(const reader *r, table *t, clt_err *err) {
    enum { SCORE = -1000 };
    size_t base = largest_id(&r->ids, 0);
    clt_status status = make_table(t, largest_id(&r->added_ids, base), err);
    const char *at = r->pieces.bytes.data;
    for (size_t i = 0; status == CLT_OK && i < r->ids.len; at += r->pieces.lens.data[i], i++) {
        int32_t n = r->pieces.lens.data[i];
        t->items[r->ids.data[i]] = (token){at, n, kind_of(at, (size_t)n, false, false), SCORE};
    }
    at = r->added.bytes.data;
    for (size_t i = 0; status == CLT_OK && i < r->added_ids.len; at += r->added.lens.data[i], i++) {
        int32_t n = r->added.lens.data[i], id = r->added_ids.data[i];
        t->items[id] = (token){at, n, kind_of(at, (size_t)n, r->added_special.data[i], (size_t)id >= base), SCORE};
    }
    for (size_t i = 0; status == CLT_OK && i < t->n; i++)
        if (!t->items[i].text) status = clt_fail(err, CLT_E_FILE, "tokenizer.json: id %zu has no piece", i);
    return status;
}

static clt_status table_of_pieces(const clt_pieces *p, size_t vocab, table *t, clt_err *err) {
    clt_status status = make_table(t, vocab ? vocab : p->lens.len, err);
    const char *at = p->texts.data;
    for (size_t i = 0; status == CLT_OK && i < t->n; i++) {
        if (i >= p->lens.len) {
            t->items[i] = (token){"", 0, UNUSED, -10000};
            continue;
        }
        t->items[i] = (token){at, p->lens.data[i], p->kinds.data[i], 0};
        memcpy(&t->items[i].score, p->scores.data + i * sizeof(float), sizeof(float));
        at += p->lens.data[i];
    }
    return status;
}

/* tokenizer_config.json may list tokens that were added to, or renamed in, tokenizer.model. */
static void apply_added(const clt_file *f, table *t) {
    enum { SCORE = -1000 };
    void *iter = NULL;
    const char *key;
    size_t key_len, n;
    const clt_json *value, *list = clt_json_get(clt_file_json(f, "tokenizer_config.json"), "added_tokens_decoder");
    while (clt_json_next(list, &iter, &key, &key_len, &value)) {
        char digits[24];
        copy_key(digits, key, key_len);
        size_t id = (size_t)strtoull(digits, NULL, 10);
        const char *s = clt_json_str(clt_json_get(value, "content"), &n);
        if (!s || id >= t->n) continue;
        bool special = clt_json_is_true(clt_json_get(value, "special")) || is(s, "<pad>") || is(s, "<mask>") ||
                       is(s, "<2mass>") || is(s, "[@BOS@]") || (!strncmp(s, "<unused", 7) && s[n - 1] == '>') ||
                       (n > 3 && !strncmp(s, "<|", 2) && !strcmp(s + n - 2, "|>"));
        t->items[id] = (token){s, (int32_t)n, special ? CONTROL : USER, SCORE};
    }
}

/* ---- metadata ---- */

static clt_status put_table(const clt_keys *k, const table *t, clt_err *err) {
    float *scores = clt_calloc(t->n + 1, sizeof *scores);
    int32_t *kinds = clt_calloc(t->n + 1, sizeof *kinds);
    clt_gguf_begin_strings(k->head, "tokenizer.ggml.tokens", t->n);
    for (size_t i = 0; i < t->n; i++) {
        char unused[32];
        const token *item = &t->items[i];
        snprintf(unused, sizeof unused, "[PAD%zu]", i);
        if (item->kind == UNUSED && !item->len) clt_gguf_put_item(k->head, unused, strlen(unused));
        else clt_gguf_put_item(k->head, item->text, (size_t)item->len);
    }
    for (size_t i = 0; scores && kinds && i < t->n; i++) scores[i] = t->items[i].score, kinds[i] = t->items[i].kind;
    clt_status status = scores && kinds ? CLT_OK : clt_fail_memory(err, "the vocabulary", t->n * 8);
    if (status == CLT_OK) {
        clt_gguf_put_array(k->head, "tokenizer.ggml.scores", CLT_META_F32, t->n, scores, t->n * sizeof *scores);
        clt_gguf_put_array(k->head, "tokenizer.ggml.token_type", CLT_META_I32, t->n, kinds, t->n * sizeof *kinds);
    }
    clt_free(scores);
    clt_free(kinds);
    return status;
}

static void put_merges(const clt_keys *k, const texts *merges) {
    const char *at = merges->bytes.data;
    clt_gguf_begin_strings(k->head, "tokenizer.ggml.merges", merges->lens.len);
    for (size_t i = 0; i < merges->lens.len; at += merges->lens.data[i], i++)
        clt_gguf_put_item(k->head, at, (size_t)merges->lens.data[i]);
}

static int64_t find_token(const table *t, const char *text, size_t n) {
    for (size_t i = 0; i < t->n; i++)
        if ((size_t)t->items[i].len == n && !memcmp(t->items[i].text, text, n)) return (int64_t)i;
    return -1;
}

/* The token that tokenizer_config.json names for a role, else the id that config.json gives. */
static int64_t id_of_role(const clt_file *f, const table *t, const char *role) {
    char key[32];
    size_t n = 0;
    snprintf(key, sizeof key, "%s_token", role);
    const clt_json *named = clt_json_get(clt_file_json(f, "tokenizer_config.json"), key);
    const char *text = clt_json_str(named, &n);
    if (!text) text = clt_json_str(clt_json_get(named, "content"), &n);
    int64_t id = text ? find_token(t, text, n) : -1;
    snprintf(key, sizeof key, "%s_token_id", role);
    return id >= 0 ? id : clt_json_int_or(clt_file_json(f, "config.json"), key, -1);
}

static void put_roles(const clt_keys *k, const clt_file *f, const table *t) {
    static const struct { const char *role, *key; } roles[] = {
        {"bos", "tokenizer.ggml.bos_token_id"},     {"eos", "tokenizer.ggml.eos_token_id"},
        {"unk", "tokenizer.ggml.unknown_token_id"}, {"sep", "tokenizer.ggml.seperator_token_id"},
        {"pad", "tokenizer.ggml.padding_token_id"}, {"mask", "tokenizer.ggml.mask_token_id"},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        int64_t id = id_of_role(f, t, roles[i].role);
        if (id >= 0 && (size_t)id < t->n) clt_keys_u32(k, roles[i].key, id);
    }
    clt_keys_bool(k, "tokenizer.ggml.add_bos_token", true);
    clt_keys_bool(k, "tokenizer.ggml.add_sep_token", false);
}

/* chat_template.jinja, or in older folders a key of tokenizer_config.json. */
static void put_template(const clt_keys *k, const clt_file *f) {
    uint64_t n = 0;
    size_t len = 0;
    const char *s = clt_file_text(f, "chat_template.jinja", &n);
    if (!s) {
        s = clt_json_str(clt_json_get(clt_file_json(f, "tokenizer_config.json"), "chat_template"), &len);
        n = len;
    }
    if (s && n) clt_gguf_put_str(k->head, "tokenizer.chat_template", s, (size_t)n);
}

static clt_status put_gemma4(const clt_keys *k, const clt_file *f, table *t, clt_err *err) {
    reader r = {0};
    clt_status status = read_json(f, &r, err);
    if (status == CLT_OK) status = table_of_json(&r, t, err);
    if (status == CLT_OK) {
        clt_keys_str(k, "tokenizer.ggml.model", "gemma4");
        status = put_table(k, t, err);
        put_merges(k, &r.merges);
        put_roles(k, f, t);
    }
    free_reader(&r);
    return status;
}

static clt_status put_gemma3(const clt_keys *k, const clt_file *f, table *t, clt_err *err) {
    clt_pieces pieces = {0};
    clt_buf path = {0};
    const clt_json *root = clt_file_json(f, "config.json"), *text = clt_json_get(root, "text_config");
    clt_buf_printf(&path, "%s/tokenizer.model", clt_file_path(f));
    clt_status status = path.failed ? clt_fail_memory(err, "path", 4096) : clt_pieces_read(path.data, &pieces, err);
    int64_t vocab = clt_json_int_or(text ? text : root, "vocab_size", 0);
    if (status == CLT_OK && (vocab < 0 || vocab > MAX_TOKENS))
        status = clt_fail(err, CLT_E_FILE, "%s/config.json: key vocab_size is %lld", clt_file_path(f), (long long)vocab);
    if (status == CLT_OK) status = table_of_pieces(&pieces, (size_t)vocab, t, err);
    if (status == CLT_OK) {
        apply_added(f, t);
        clt_keys_str(k, "tokenizer.ggml.model", "llama");
        clt_keys_str(k, "tokenizer.ggml.pre", "default");
        status = put_table(k, t, err);
        put_roles(k, f, t);
    }
    clt_pieces_free(&pieces);
    clt_buf_free(&path);
    return status;
}

clt_status clt_keys_vocabulary(const clt_keys *k, const clt_file *f, bool gemma3, int64_t *tokens, clt_err *err) {
    table t = {0};
    clt_status status = gemma3 ? put_gemma3(k, f, &t, err) : put_gemma4(k, f, &t, err);
    *tokens = (int64_t)t.n;
    clt_free(t.items);
    if (status != CLT_OK) return status;
    put_template(k, f);
    clt_keys_bool(k, "tokenizer.ggml.add_space_prefix", false);
    return CLT_OK;
}
