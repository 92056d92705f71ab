/* The vocabulary of a tokenizer.json. In: the document's text (30 MB for a real Gemma). Out: a sealed vocabulary with
 * merges.
 *
 * Read as a stream, in any order of its parts; everything is kept until the end because merges need the pieces:
 *
 *   added_tokens[]      {"id", "content", "special", …}: matched in raw text; may lie beyond the vocabulary
 *   normalizer          nothing but the replacement of spaces by U+2581 is understood
 *   pre_tokenizer       nothing but a split at spaces, which by then never finds one
 *   model.type          "BPE"
 *   model.vocab         {piece: id}
 *   model.merges[]      "left right" or ["left", "right"], in the order of their rank
 *
 * What it does not read: post_processor and decoder (BOS and bytes are the caller's matter). */
#include <stdlib.h>
#include "text/vocab_impl.h"

typedef enum section { S_OTHER, S_ADDED, S_NORMALIZER, S_PRE_TOKENIZER, S_MODEL } section;
typedef enum field {
    F_OTHER, F_TYPE, F_VOCAB, F_MERGES,              /* of the model; F_TYPE also of the pre-processing */
    F_ID, F_CONTENT, F_SPECIAL, F_UNUSUAL            /* of an added token */
} field;

typedef struct texts { /* strings end to end */
    clt_buf bytes;
    clt_ids lens;
} texts;

typedef struct reader {
    const char *what;
    clt_err *err;
    int depth; /* open brackets */
    section at;
    field in;
    bool has_vocab, has_merges, has_type;
    texts pieces, added, merges; /* merges: left and right by turns */
    clt_ids ids;                 /* of pieces */
    clt_ids added_ids, added_special;
    int64_t token_id;            /* the added token being read; -1: none yet */
    bool token_special, token_has_content;
    int in_pair;                 /* texts of the merge being read */
} reader;

/* ---- events ---- */

static bool fail(reader *r, const char *message) {
    clt_fail(r->err, CLT_E_FILE, "%s: %s", r->what, message);
    return false;
}

static bool keep(reader *r, texts *t, const char *s, size_t len) {
    if (len > INT32_MAX) return fail(r, "a string is too long");
    clt_buf_put(&t->bytes, s, len);
    clt_ids_push(&t->lens, (int32_t)len);
    if (!t->bytes.failed && !t->lens.failed) return true;
    clt_fail_memory(r->err, r->what, t->bytes.len + len);
    return false;
}

static bool is_text(const char *s, size_t len, const char *expected) {
    return strlen(expected) == len && !memcmp(s, expected, len);
}

typedef struct name {
    const char *text;
    int value; /* a section or field */
} name;
static const name sections[] = {
    {"added_tokens", S_ADDED}, {"normalizer", S_NORMALIZER}, {"pre_tokenizer", S_PRE_TOKENIZER}, {"model", S_MODEL}, {0},
};
static const name model_fields[] = {{"type", F_TYPE}, {"vocab", F_VOCAB}, {"merges", F_MERGES}, {0}};
static const name token_fields[] = {
    {"id", F_ID}, {"content", F_CONTENT}, {"special", F_SPECIAL},
    {"lstrip", F_UNUSUAL}, {"rstrip", F_UNUSUAL}, {"single_word", F_UNUSUAL}, {0},
};

/* 0, which stands for "other", if the key is not among the names. */
static int value_of(const name *names, const char *key, size_t len) {
    for (; names->text; names++) {
        if (is_text(key, len, names->text)) return names->value;
    }
    return 0;
}

static bool is_preprocessing(const reader *r) {
    return r->at == S_NORMALIZER || r->at == S_PRE_TOKENIZER;
}

static bool on_key(void *ctx, const char *key, size_t len) {
    reader *r = ctx;
    if (r->depth == 1) {
        r->at = (section)value_of(sections, key, len);
        r->in = F_OTHER;
    } else if (r->at == S_MODEL && r->depth == 2) {
        r->in = (field)value_of(model_fields, key, len);
        bool again = (r->in == F_VOCAB && r->has_vocab) || (r->in == F_MERGES && r->has_merges);
        if (again) return fail(r, "model.vocab or model.merges occurs twice");
    } else if (r->at == S_MODEL && r->depth == 3 && r->in == F_VOCAB) {
        return keep(r, &r->pieces, key, len);
    } else if (r->at == S_ADDED && r->depth == 3) {
        r->in = (field)value_of(token_fields, key, len);
    } else if (is_preprocessing(r)) {
        r->in = is_text(key, len, "type") ? F_TYPE : F_OTHER;
    }
    return true;
}

/* A non-negative integer that can be an id; -1 if it is none. */
static int64_t id_of(clt_json_type t, const char *text, size_t len) {
    char digits[16];
    if (t != CLT_JSON_INT || len >= sizeof digits) return -1;
    memcpy(digits, text, len);
    digits[len] = 0;
    long long id = strtoll(digits, NULL, 10);
    return id >= 0 && id < INT32_MAX ? id : -1;
}

static bool on_token_scalar(reader *r, clt_json_type t, const char *text, size_t len) {
    bool is_true = t == CLT_JSON_BOOL && len == 4;
    if (r->in == F_ID && (r->token_id = id_of(t, text, len)) < 0) return fail(r, "added_tokens: an id is no id");
    if (r->in == F_CONTENT) return fail(r, "added_tokens: a content is no string");
    if (r->in == F_SPECIAL && t != CLT_JSON_BOOL) return fail(r, "added_tokens: a \"special\" is neither true nor false");
    if (r->in == F_SPECIAL) r->token_special = is_true;
    if (r->in == F_UNUSUAL && is_true) {
        clt_fail(r->err, CLT_E_UNSUPPORTED, "%s: added_tokens: lstrip, rstrip and single_word are not supported", r->what);
        return false;
    }
    return true;
}

static bool on_model_scalar(reader *r, clt_json_type t, const char *text, size_t len) {
    if (r->depth == 1) return fail(r, "model is no object");
    if (r->in == F_TYPE) return fail(r, "model.type is no string");
    if (r->in == F_MERGES) return fail(r, "model.merges is no array of strings or pairs");
    if (r->in != F_VOCAB) return true;
    if (r->depth != 3) return fail(r, "model.vocab is no object");
    int64_t id = id_of(t, text, len);
    if (id < 0) return fail(r, "model.vocab: an id is no id");
    clt_ids_push(&r->ids, (int32_t)id);
    return true;
}

static bool on_scalar(void *ctx, clt_json_type t, const char *text, size_t len) {
    reader *r = ctx;
    if (r->depth == 0) return fail(r, "expected an object");
    if (r->at == S_ADDED && r->depth == 3) return on_token_scalar(r, t, text, len);
    if (r->at == S_ADDED) return fail(r, "added_tokens is no array of objects");
    return r->at != S_MODEL || on_model_scalar(r, t, text, len);
}

static bool on_merge_text(reader *r, const char *s, size_t len) {
    if (r->depth == 4) {
        if (++r->in_pair > 2) return fail(r, "model.merges: a pair has more than two items");
        return keep(r, &r->merges, s, len);
    }
    const char *space = r->depth == 3 && len > 1 ? memchr(s + 1, ' ', len - 1) : NULL;
    if (!space) return fail(r, "model.merges is no array of \"left right\" or [\"left\", \"right\"]");
    size_t n_left = (size_t)(space - s);
    return keep(r, &r->merges, s, n_left) && keep(r, &r->merges, space + 1, len - n_left - 1);
}

static bool on_model_string(reader *r, const char *s, size_t len) {
    if (r->depth == 1) return fail(r, "model is no object");
    if (r->in == F_MERGES) return on_merge_text(r, s, len);
    if (r->in == F_VOCAB) return fail(r, "model.vocab does not map pieces to ids");
    if (r->in != F_TYPE || r->depth != 2) return true;
    r->has_type = true;
    if (is_text(s, len, "BPE")) return true;
    clt_fail(r->err, CLT_E_UNSUPPORTED, "%s: model.type is \"%.*s\", supported is \"BPE\"", r->what,
             len < 60 ? (int)len : 60, s);
    return false;
}

static bool on_string(void *ctx, const char *s, size_t len) {
    reader *r = ctx;
    if (r->depth == 0) return fail(r, "expected an object");
    if (r->at == S_MODEL) return on_model_string(r, s, len);
    if (r->at == S_ADDED) {
        if (r->depth != 3) return fail(r, "added_tokens is no array of objects");
        if (r->in == F_ID || r->in == F_SPECIAL) return fail(r, "added_tokens: an id or \"special\" is a string");
        if (r->in != F_CONTENT) return true;
        if (r->token_has_content) return fail(r, "added_tokens: a token has two contents");
        r->token_has_content = true;
        return keep(r, &r->added, s, len);
    }
    if (!is_preprocessing(r) || r->in != F_TYPE) return true;
    bool normalizer = r->at == S_NORMALIZER;
    if (normalizer ? is_text(s, len, "Replace") || is_text(s, len, "Sequence") : is_text(s, len, "Split")) return true;
    clt_fail(r->err, CLT_E_UNSUPPORTED, "%s: %s of type \"%.*s\" is not supported", r->what,
             normalizer ? "a normalizer" : "a pre_tokenizer", len < 60 ? (int)len : 60, s);
    return false;
}

static bool on_model_open(reader *r, bool is_array) {
    if (r->depth == 2) return !is_array || fail(r, "model is no object");
    if (r->depth == 3 && r->in == F_VOCAB) {
        r->has_vocab = true;
        return !is_array || fail(r, "model.vocab is no object");
    }
    if (r->depth == 3 && r->in == F_MERGES) {
        r->has_merges = true;
        return is_array || fail(r, "model.merges is no array");
    }
    if (r->in == F_MERGES) {
        r->in_pair = 0;
        return (is_array && r->depth == 4) || fail(r, "model.merges is no array of strings or pairs");
    }
    if (r->in == F_TYPE) return fail(r, "model.type is no string");
    return r->in == F_OTHER || fail(r, "model.vocab does not map pieces to ids");
}

static bool on_open(void *ctx, bool is_array) {
    reader *r = ctx;
    r->depth++;
    if (r->depth == 1) return !is_array || fail(r, "expected an object");
    if (r->at == S_MODEL) return on_model_open(r, is_array);
    if (r->at != S_ADDED) return true;
    if (r->depth == 2) return is_array || fail(r, "added_tokens is no array");
    if (r->depth > 3 && r->in == F_OTHER) return true;
    if (r->depth > 3 || is_array) return fail(r, "added_tokens: a token is no plain object");
    r->token_id = -1;
    r->token_special = r->token_has_content = false;
    r->in = F_OTHER;
    return true;
}

static bool on_close(void *ctx, bool is_array) {
    (void)is_array;
    reader *r = ctx;
    r->depth--;
    bool pair = r->at == S_MODEL && r->in == F_MERGES && r->depth == 3;
    if (pair && r->in_pair != 2) return fail(r, "model.merges: a pair lacks an item");
    if (r->at != S_ADDED || r->depth != 2) return true;
    if (r->token_id < 0 || !r->token_has_content) return fail(r, "added_tokens: a token lacks its id or content");
    clt_ids_push(&r->added_ids, (int32_t)r->token_id);
    clt_ids_push(&r->added_special, r->token_special);
    return true;
}

/* ---- from what was read to a vocabulary ---- */

/* Converters to GGUF type added tokens that text may not become as control, the rest as user-defined. */
static clt_token_kind kind_of_added(const char *text, size_t len, bool special) {
    if (clt_vocab_text_is_structure(text, len)) return CLT_TOKEN_USER;
    bool unused = len >= 8 && !memcmp(text, "<unused", 7) && text[len - 1] == '>';
    return special || unused ? CLT_TOKEN_CONTROL : CLT_TOKEN_USER;
}

static clt_status set_piece(reader *r, clt_vocab *v, int32_t id, const char *text, size_t len, clt_token_kind kind) {
    const clt_vocab_entry *e = &v->entries[id];
    if (!len) return clt_fail(r->err, CLT_E_FILE, "%s: the piece %d is empty", r->what, (int)id);
    if (e->len && (e->len != len || memcmp(e->text, text, len) != 0)) {
        return clt_fail(r->err, CLT_E_FILE, "%s: the id %d belongs to two pieces", r->what, (int)id);
    }
    return clt_vocab_set(v, id, text, len, kind, r->err);
}

static clt_status set_pieces(reader *r, clt_vocab *v) {
    const char *text = r->pieces.bytes.data;
    for (size_t i = 0; i < r->ids.len; i++) {
        size_t len = (size_t)r->pieces.lens.data[i];
        unsigned byte;
        clt_token_kind kind = clt_vocab_text_is_byte(text, len, &byte) ? CLT_TOKEN_BYTE : CLT_TOKEN_NORMAL;
        if (v->entries[r->ids.data[i]].len) {
            return clt_fail(r->err, CLT_E_FILE, "%s: model.vocab gives the id %d twice", r->what, (int)r->ids.data[i]);
        }
        clt_status status = set_piece(r, v, r->ids.data[i], text, len, kind);
        if (status != CLT_OK) return status;
        text += len;
    }
    text = r->added.bytes.data;
    for (size_t i = 0; i < r->added_ids.len; i++) {
        size_t len = (size_t)r->added.lens.data[i];
        clt_token_kind kind = kind_of_added(text, len, r->added_special.data[i]);
        clt_status status = set_piece(r, v, r->added_ids.data[i], text, len, kind);
        if (status != CLT_OK) return status;
        text += len;
    }
    return CLT_OK;
}

static int64_t beyond_highest(const clt_ids *ids) {
    int64_t end = 0;
    for (size_t i = 0; i < ids->len; i++) end = ids->data[i] >= end ? ids->data[i] + INT64_C(1) : end;
    return end;
}

/* Ids may have a few holes, as where a model reserves rows, but a wild id must not decide how much memory is taken. */
static clt_status count_ids(reader *r, int64_t *size) {
    int64_t pieces = (int64_t)(r->ids.len + r->added_ids.len);
    int64_t end = beyond_highest(&r->ids), added_end = beyond_highest(&r->added_ids);
    *size = end > added_end ? end : added_end;
    if (*size <= 2 * pieces + 1024) return CLT_OK;
    return clt_fail(r->err, CLT_E_FILE, "%s: ids reach %lld but there are only %lld pieces", r->what, (long long)*size - 1,
                    (long long)pieces);
}

static clt_status add_merges(reader *r, clt_vocab *v) {
    clt_merge_list list;
    const char *left = r->merges.bytes.data;
    clt_status status = clt_merge_list_begin(&list, v, r->merges.lens.len / 2, r->what, r->err);
    for (size_t i = 0; status == CLT_OK && i + 1 < r->merges.lens.len; i += 2) {
        size_t n_left = (size_t)r->merges.lens.data[i], n_right = (size_t)r->merges.lens.data[i + 1];
        status = clt_merge_list_add(&list, left, n_left, left + n_left, n_right, r->err);
        left += n_left + n_right;
    }
    return status;
}

static clt_status build(reader *r, clt_vocab_algorithm algorithm, clt_vocab **out) {
    int64_t size;
    const char *missing = !r->has_type ? "model.type" : !r->ids.len ? "model.vocab" : !r->has_merges ? "model.merges" : NULL;
    if (r->ids.failed || r->added_ids.failed || r->added_special.failed) {
        return clt_fail_memory(r->err, r->what, r->ids.cap * sizeof *r->ids.data);
    }
    if (missing) return clt_fail(r->err, CLT_E_FILE, "%s: %s is missing or empty", r->what, missing);
    clt_status status = count_ids(r, &size);
    if (status == CLT_OK) {
        uint64_t bytes = r->pieces.bytes.len + r->added.bytes.len + r->ids.len + r->added_ids.len;
        status = clt_vocab_create(size, bytes, algorithm, out, r->err);
    }
    if (status == CLT_OK) status = set_pieces(r, *out);
    if (status == CLT_OK) status = clt_vocab_seal(*out, r->what, r->err);
    return status == CLT_OK ? add_merges(r, *out) : status;
}

static void reader_free(reader *r) {
    texts *all[] = {&r->pieces, &r->added, &r->merges};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        clt_buf_free(&all[i]->bytes);
        clt_ids_free(&all[i]->lens);
    }
    clt_ids_free(&r->ids);
    clt_ids_free(&r->added_ids);
    clt_ids_free(&r->added_special);
}

clt_status clt_vocab_read_json(const char *json, size_t len, const char *what, clt_vocab_algorithm algorithm,
                               clt_vocab **out, clt_err *err) {
    static const clt_json_events events = {on_scalar, on_string, on_key, on_open, on_close};
    reader r = {.what = what, .err = err, .token_id = -1};
    clt_vocab *v = NULL;
    clt_status status = clt_json_stream(json, len, what, &events, &r, err);
    if (status == CLT_E_REQUEST) status = err->code = CLT_E_FILE; /* not JSON: here that is a damaged model file */
    if (status == CLT_OK) status = build(&r, algorithm, &v);
    *out = status == CLT_OK ? v : NULL;
    if (status != CLT_OK) clt_vocab_free(v);
    reader_free(&r);
    return status;
}
