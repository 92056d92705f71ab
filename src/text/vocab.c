/* The vocabulary: opening it from either kind of file, and looking at it. In: an open file. Out: pieces, their kinds and
 * their roles. The readers are vocab_gguf.c and vocab_json.c, the work common to both is vocab_seal.c. */
#include "text/vocab_impl.h"

enum { CHUNK_BYTES = 64 * 1024 }; /* the big tables get chunks of their own */

clt_status clt_vocab_create(int64_t size, uint64_t text_bytes, clt_vocab_algorithm algorithm, clt_vocab **out,
                            clt_err *err) {
    *out = NULL;
    clt_arena *arena = size > INT32_MAX || text_bytes > SIZE_MAX / 2 ? NULL : clt_arena_create(CHUNK_BYTES);
    clt_vocab *v = arena ? CLT_ARENA_NEW(arena, clt_vocab, 1) : NULL;
    if (v) v->entries = CLT_ARENA_NEW(arena, clt_vocab_entry, size);
    if (v) v->texts = clt_arena_alloc(arena, (size_t)text_bytes, 1);
    if (!v || !v->entries || !v->texts) {
        clt_arena_free(arena);
        return clt_fail_memory(err, "the vocabulary", (uint64_t)size * sizeof(clt_vocab_entry) + text_bytes);
    }
    v->arena = arena;
    v->algorithm = algorithm;
    v->size = (int32_t)size;
    v->texts_bytes = (size_t)text_bytes;
    for (int32_t id = 0; id < v->size; id++) v->entries[id] = (clt_vocab_entry){.text = "", .kind = CLT_TOKEN_UNUSED};
    *out = v;
    return CLT_OK;
}

clt_status clt_vocab_set(clt_vocab *v, int32_t id, const char *text, size_t len, clt_token_kind kind, clt_err *err) {
    if (len > UINT32_MAX || len >= v->texts_bytes - v->texts_used) return clt_fail_memory(err, "the vocabulary", len);
    char *copy = memcpy(v->texts + v->texts_used, text, len); /* the NUL after it is there: arenas are zeroed */
    v->texts_used += len + 1;
    v->entries[id] = (clt_vocab_entry){.text = copy, .len = (uint32_t)len, .kind = (uint8_t)kind};
    return CLT_OK;
}

/* Every Gemma 3 says so in its configuration; anything else that has merges is read as Gemma 4. */
static clt_vocab_algorithm algorithm_of_folder(const clt_file *f) {
    size_t len = 0;
    const char *type = clt_json_str(clt_json_get(clt_file_json(f, "config.json"), "model_type"), &len);
    return type && len >= 6 && !memcmp(type, "gemma3", 6) ? CLT_VOCAB_SPM : CLT_VOCAB_BPE;
}

static clt_status open_folder(const clt_file *f, clt_vocab **out, clt_err *err) {
    uint64_t len = 0;
    const char *json = clt_file_text(f, "tokenizer.json", &len);
    if (!json) return clt_fail(err, CLT_E_FILE, "%s: tokenizer.json is missing", clt_file_path(f));
    clt_buf what = {0};
    clt_buf_printf(&what, "%s/tokenizer.json", clt_file_path(f));
    clt_status status = what.failed ? clt_fail_memory(err, "the vocabulary", len)
                                    : clt_vocab_read_json(json, (size_t)len, what.data, algorithm_of_folder(f), out, err);
    clt_buf_free(&what);
    return status;
}

clt_status clt_vocab_open(const clt_file *f, clt_vocab **out, clt_err *err) {
    *out = NULL;
    return clt_file_get_kind(f) == CLT_FILE_GGUF ? clt_vocab_read_gguf(f, out, err) : open_folder(f, out, err);
}

void clt_vocab_free(clt_vocab *v) {
    if (v) clt_arena_free(v->arena);
}

uint64_t clt_vocab_bytes(const clt_vocab *v) {
    return v ? clt_arena_bytes(v->arena) : 0;
}

static const clt_vocab_entry *entry_of(const clt_vocab *v, int32_t id) {
    return id >= 0 && id < v->size ? &v->entries[id] : NULL;
}

int32_t clt_vocab_size(const clt_vocab *v) {
    return v->size;
}

clt_vocab_algorithm clt_vocab_get_algorithm(const clt_vocab *v) {
    return v->algorithm;
}

const char *clt_vocab_piece(const clt_vocab *v, int32_t id, size_t *len) {
    const clt_vocab_entry *e = entry_of(v, id);
    if (len) *len = e ? e->len : 0;
    return e ? e->text : NULL;
}

clt_token_kind clt_vocab_kind(const clt_vocab *v, int32_t id) {
    const clt_vocab_entry *e = entry_of(v, id);
    return e ? (clt_token_kind)e->kind : CLT_TOKEN_UNUSED;
}

bool clt_vocab_is_special(const clt_vocab *v, int32_t id) {
    const clt_vocab_entry *e = entry_of(v, id);
    return e && e->special;
}

int32_t clt_vocab_find(const clt_vocab *v, const char *piece) {
    size_t len = strlen(piece);
    return len ? clt_index_find(v, piece, len) : -1;
}

const clt_vocab_roles *clt_vocab_get_roles(const clt_vocab *v) {
    return &v->roles;
}
