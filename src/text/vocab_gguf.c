/* The vocabulary of a GGUF file. In: its tokenizer.ggml.* metadata. Out: a sealed vocabulary with merges or scores.
 *
 *   tokenizer.ggml.model       string    "gemma4": merges by rank; "llama": SentencePiece scores (Gemma 3)
 *   tokenizer.ggml.tokens      strings   piece of each id
 *   tokenizer.ggml.token_type  integers  clt_token_kind of each id
 *   tokenizer.ggml.merges      strings   "left right" in the order of their rank (gemma4)
 *   tokenizer.ggml.scores      numbers   of each id (llama); what gemma4 files hold there is meaningless and not read
 *   tokenizer.ggml.{bos,eos,unknown,padding}_token_id
 *
 * add_space_prefix is not read: no Gemma puts a space in front, whatever a converter wrote. */
#include <math.h>
#include "text/vocab_impl.h"

/* An array of the file, of `count` items unless that is -1. */
static clt_status find_array(const clt_file *f, const char *key, bool strings, int64_t count, const clt_meta **out,
                             clt_err *err) {
    const clt_meta *m = clt_file_meta_find(f, key);
    const char *path = clt_file_path(f);
    if (!m) return clt_fail(err, CLT_E_FILE, "%s: %s is missing", path, key);
    if (!m->is_array || (m->type == CLT_META_STRING) != strings) {
        return clt_fail(err, CLT_E_FILE, "%s: %s is %s%s, expected an array of %s", path, key,
                        m->is_array ? "an array of " : "", clt_meta_type_name(m->type), strings ? "strings" : "numbers");
    }
    if (count >= 0 && m->count != (uint64_t)count) {
        return clt_fail(err, CLT_E_FILE, "%s: %s has %llu items, expected %lld, one for each piece", path, key,
                        (unsigned long long)m->count, (long long)count);
    }
    *out = m;
    return CLT_OK;
}

static clt_status read_algorithm(const clt_file *f, clt_vocab_algorithm *out, clt_err *err) {
    const char *name;
    uint64_t len;
    if (!clt_meta_str(clt_file_meta_find(f, "tokenizer.ggml.model"), &name, &len)) {
        return clt_fail(err, CLT_E_FILE, "%s: tokenizer.ggml.model is missing or no string", clt_file_path(f));
    }
    if (len == 6 && !memcmp(name, "gemma4", 6)) *out = CLT_VOCAB_BPE;
    else if (len == 5 && !memcmp(name, "llama", 5)) *out = CLT_VOCAB_SPM;
    else {
        return clt_fail(err, CLT_E_UNSUPPORTED, "%s: tokenizer.ggml.model is \"%.*s\", supported are \"gemma4\" and "
                        "\"llama\"", clt_file_path(f), len < 60 ? (int)len : 60, name);
    }
    return CLT_OK;
}

static clt_status read_pieces(const clt_file *f, clt_vocab_algorithm algorithm, clt_vocab **out, clt_err *err) {
    const clt_meta *tokens, *types;
    clt_status status = find_array(f, "tokenizer.ggml.tokens", true, -1, &tokens, err);
    if (status != CLT_OK) return status;
    if (!tokens->count || tokens->count > INT32_MAX) {
        return clt_fail(err, CLT_E_FILE, "%s: tokenizer.ggml.tokens has %llu pieces", clt_file_path(f),
                        (unsigned long long)tokens->count);
    }
    status = find_array(f, "tokenizer.ggml.token_type", false, (int64_t)tokens->count, &types, err);
    if (status == CLT_OK) status = clt_vocab_create((int64_t)tokens->count, tokens->bytes, algorithm, out, err);
    uint64_t at = 0, len;
    const char *text;
    for (int32_t id = 0; status == CLT_OK && (uint64_t)id < tokens->count; id++) {
        int64_t kind;
        if (!clt_meta_next_str(tokens, &at, &text, &len)) {
            return clt_fail(err, CLT_E_FILE, "%s: tokenizer.ggml.tokens ends after %d pieces", clt_file_path(f), (int)id);
        }
        if (!clt_meta_int(types, (uint64_t)id, &kind) || kind < CLT_TOKEN_NORMAL || kind > CLT_TOKEN_BYTE) {
            return clt_fail(err, CLT_E_FILE, "%s: tokenizer.ggml.token_type: item %d is not a number from 1 to 6",
                            clt_file_path(f), (int)id);
        }
        status = clt_vocab_set(*out, id, text, (size_t)len, (clt_token_kind)kind, err);
    }
    return status;
}

static clt_status read_merges(const clt_file *f, clt_vocab *v, clt_err *err) {
    const clt_meta *merges;
    clt_merge_list list;
    clt_status status = find_array(f, "tokenizer.ggml.merges", true, -1, &merges, err);
    if (status == CLT_OK) status = clt_merge_list_begin(&list, v, merges->count, clt_file_path(f), err);
    uint64_t at = 0, len;
    const char *text;
    while (status == CLT_OK && clt_meta_next_str(merges, &at, &text, &len)) {
        status = clt_merge_list_add_text(&list, text, (size_t)len, err);
    }
    return status;
}

static clt_status read_scores(const clt_file *f, clt_vocab *v, clt_err *err) {
    const clt_meta *scores;
    clt_status status = find_array(f, "tokenizer.ggml.scores", false, v->size, &scores, err);
    if (status == CLT_OK) status = clt_spm_reserve(v, err);
    for (int32_t id = 0; status == CLT_OK && id < v->size; id++) {
        double score;
        if (!clt_meta_num(scores, (uint64_t)id, &score) || !isfinite((float)score)) {
            return clt_fail(err, CLT_E_FILE, "%s: tokenizer.ggml.scores: item %d is not a finite number", clt_file_path(f),
                            (int)id);
        }
        clt_spm_set_score(v, id, (float)score);
    }
    return status;
}

/* Keys come before texts: they are what the file says its ids are for. */
static clt_status read_roles(const clt_file *f, clt_vocab *v, clt_err *err) {
    const struct {
        const char *key;
        int32_t *role;
    } keys[] = {
        {"tokenizer.ggml.bos_token_id", &v->roles.bos}, {"tokenizer.ggml.eos_token_id", &v->roles.eos},
        {"tokenizer.ggml.unknown_token_id", &v->roles.unk}, {"tokenizer.ggml.padding_token_id", &v->roles.pad},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const clt_meta *m = clt_file_meta_find(f, keys[i].key);
        int64_t id;
        if (!m) continue;
        if (m->is_array || !clt_meta_int(m, 0, &id) || id < 0 || id >= v->size) {
            return clt_fail(err, CLT_E_FILE, "%s: %s is not an id from 0 to %d", clt_file_path(f), keys[i].key,
                            (int)v->size - 1);
        }
        *keys[i].role = (int32_t)id;
    }
    return CLT_OK;
}

clt_status clt_vocab_read_gguf(const clt_file *f, clt_vocab **out, clt_err *err) {
    clt_vocab_algorithm algorithm = CLT_VOCAB_BPE;
    clt_vocab *v = NULL;
    clt_status status = read_algorithm(f, &algorithm, err);
    if (status == CLT_OK) status = read_pieces(f, algorithm, &v, err);
    if (status == CLT_OK) status = clt_vocab_seal(v, clt_file_path(f), err);
    if (status == CLT_OK) status = algorithm == CLT_VOCAB_BPE ? read_merges(f, v, err) : read_scores(f, v, err);
    if (status == CLT_OK) status = read_roles(f, v, err);
    if (status == CLT_OK) {
        *out = v;
    } else {
        clt_vocab_free(v);
    }
    return status;
}
