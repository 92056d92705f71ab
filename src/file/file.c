/* The open file: decides what a path is, has it checked, and answers questions about it afterwards. The formats themselves
 * are in gguf*.c, safetensors.c and hf.c. */
#include <stdio.h>
#include "base/os.h"
#include "file/impl.h"

/* ---- building, for the formats ---- */

clt_status clt_file_set_shards(clt_file *f, const char *const *paths, int n, clt_err *err) {
    f->shards = CLT_ARENA_NEW(f->arena, clt_shard, n);
    if (!f->shards) return clt_fail_memory(err, "shards", (unsigned long long)n * sizeof *f->shards);
    for (int i = 0; i < n; i++) {
        f->shards[i].path = clt_arena_strndup(f->arena, paths[i], strlen(paths[i]));
        if (!f->shards[i].path) return clt_fail_memory(err, "shard names", strlen(paths[i]) + 1);
    }
    f->n_shards = n;
    return CLT_OK;
}

clt_status clt_file_map_shard(clt_file *f, int i, clt_err *err) {
    clt_shard *s = &f->shards[i];
    clt_status st = clt_map_open(s->path, &s->map, err);
    return st ? st : clt_sniff(s->path, &s->map, err);
}

static clt_status push_tensor(clt_file *f, const clt_tensor *t, clt_err *err) {
    if (f->n_tensors == f->cap_tensors) {
        size_t cap = f->cap_tensors ? f->cap_tensors * 2 : 512;
        clt_tensor *grown = clt_realloc(f->tensors, cap * sizeof *grown);
        if (!grown) return clt_fail_memory(err, "tensor table", cap * sizeof *grown);
        f->tensors = grown;
        f->cap_tensors = cap;
    }
    f->tensors[f->n_tensors++] = *t;
    return CLT_OK;
}

clt_status clt_file_add(clt_file *f, const char *name, int shard, const clt_tensor *t, clt_err *err) {
    char shown[CLT_SHOWN_BYTES];
    const clt_name *old = NULL;
    if (f->names.len == CLT_FILE_MAX_TENSORS)
        return clt_fail(err, CLT_E_FILE, "%s: more than %u tensors", f->path, CLT_FILE_MAX_TENSORS);
    uint32_t id = t ? (uint32_t)f->n_tensors : CLT_FILE_NO_ID;
    clt_status st = clt_names_add(&f->names, name, id, (uint32_t)shard, &old, err);
    if (st) return st;
    if (old)
        return clt_fail(err, CLT_E_FILE, "%s: damaged: tensor '%s' appears twice, first in %s", f->shards[shard].path,
                        clt_shown(shown, name, strlen(name)), f->shards[old->shard].path);
    return t ? push_tensor(f, t, err) : CLT_OK;
}

void clt_file_lack(clt_file *f, int shard, const char *name, const char *type_words) {
    char shown[CLT_SHOWN_BYTES];
    if (f->lacks++) return;
    f->lack_shard = shard;
    snprintf(f->lack, sizeof f->lack, "tensor '%s' is of %s", clt_shown(shown, name, strlen(name)), type_words);
}

/* ---- opening and closing ---- */

/* A file out of a Hugging Face folder where the folder itself is wanted. */
static clt_status fail_lone_file(const char *path, clt_err *err) {
    const char *slash = strrchr(path, '/');
    clt_fail(err, CLT_E_FILE, "%s: one file of a Hugging Face folder does not make a model", path);
    return clt_hint(err, "give the folder that holds config.json, tokenizer.json and the safetensors files: %.*s",
                    slash ? (int)(slash - path) + 1 : 2, slash ? path : "./");
}

static clt_status open_kind(clt_file *f, clt_err *err) {
    clt_status st;
    if (clt_is_dir(f->path)) st = clt_hf_open(f, err);
    else if (clt_is_file(f->path) && (clt_ends_with(f->path, ".safetensors") || clt_ends_with(f->path, ".json")))
        st = fail_lone_file(f->path, err);
    else st = clt_gguf_open(f, err);
    if (st || !f->lacks) return st;
    clt_fail(err, CLT_E_UNSUPPORTED, "%s: %s, which is not supported (%zu such tensors in all)",
             f->shards[f->lack_shard].path, f->lack, f->lacks);
    return clt_hint(err, "supported are F32 F16 BF16 in folders, and in GGUF files also Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 "
                         "Q2_K to Q6_K IQ4_NL IQ4_XS");
}

clt_status clt_file_open(const char *path, clt_file **out, clt_err *err) {
    *out = NULL;
    clt_file *f = clt_calloc(1, sizeof *f);
    if (!f) return clt_fail_memory(err, "model file", sizeof *f);
    f->arena = clt_arena_create(64 * 1024);
    f->path = f->arena ? clt_arena_strndup(f->arena, path, strlen(path)) : NULL;
    clt_status st = f->path ? open_kind(f, err) : clt_fail_memory(err, "model file", strlen(path) + 1);
    if (st) {
        clt_file_close(f);
        return st;
    }
    *out = f;
    return CLT_OK;
}

void clt_file_close(clt_file *f) {
    if (!f) return;
    for (int i = 0; i < f->n_shards; i++) clt_map_close(&f->shards[i].map);
    for (int i = 0; i < CLT_HF_TEXTS; i++) clt_map_close(&f->texts[i]);
    for (int i = 0; i < CLT_HF_JSONS; i++)
        if (f->jsons[i]) clt_json_free(f->jsons[i]);
    clt_names_free(&f->names);
    clt_names_free(&f->metas.names);
    clt_free(f->tensors);
    if (f->arena) clt_arena_free(f->arena);
    clt_free(f);
}

/* ---- questions ---- */

clt_file_kind clt_file_get_kind(const clt_file *f) { return f->kind; }
const char *clt_file_path(const clt_file *f) { return f->path; }
uint32_t clt_file_version(const clt_file *f) { return f->version; }
int clt_file_shards(const clt_file *f) { return f->n_shards; }
const char *clt_file_shard_path(const clt_file *f, int shard) { return f->shards[shard].path; }
uint64_t clt_file_shard_bytes(const clt_file *f, int shard) { return f->shards[shard].map.size; }

uint64_t clt_file_bytes(const clt_file *f) {
    uint64_t sum = 0;
    for (int i = 0; i < f->n_shards; i++) sum += f->shards[i].map.size;
    return sum;
}

size_t clt_file_tensors(const clt_file *f) { return f->n_tensors; }

const clt_tensor *clt_file_tensor(const clt_file *f, size_t i) {
    return i < f->n_tensors ? &f->tensors[i] : NULL;
}

const clt_tensor *clt_file_find(const clt_file *f, const char *name) {
    const clt_name *at = clt_names_find(&f->names, name);
    return at && at->id != CLT_FILE_NO_ID ? &f->tensors[at->id] : NULL;
}

int64_t clt_tensor_rows(const clt_tensor *t) {
    return t->dims[1] * t->dims[2] * t->dims[3]; /* checked at open not to overflow */
}

const uint8_t *clt_tensor_row(const clt_tensor *t, int64_t row) {
    return t->data + (uint64_t)row * (t->bytes / (uint64_t)clt_tensor_rows(t));
}

/* Rows are decoded in pieces of whole blocks of any type, on the stack. */
enum { PIECE_NUMBERS = 4096, PIECE_BYTES = 4 * PIECE_NUMBERS };

bool clt_file_read(const clt_file *f, const clt_tensor *t, uint64_t at, void *dst, size_t n) {
    return at <= t->bytes && n <= t->bytes - at && clt_map_read(&f->shards[t->shard].map, t->offset + at, dst, n);
}

bool clt_file_decode_row(const clt_file *f, const clt_tensor *t, int64_t row, float *dst) {
    const clt_type_info *type = clt_type_get((uint32_t)t->type);
    uint64_t at = (uint64_t)(clt_tensor_row(t, row) - t->data);
    uint8_t piece[PIECE_BYTES];
    for (int64_t i = 0; i < t->dims[0]; i += PIECE_NUMBERS) {
        int64_t n = t->dims[0] - i < PIECE_NUMBERS ? t->dims[0] - i : PIECE_NUMBERS;
        size_t bytes = clt_type_row_bytes(type, n);
        if (!clt_file_read(f, t, at, piece, bytes)) return false;
        type->decode(piece, dst + i, n);
        at += bytes;
    }
    return true;
}

static void advise_rows(const clt_file *f, const clt_tensor *t, int64_t first, int64_t n, clt_map_use use) {
    uint64_t row_bytes = t->bytes / (uint64_t)clt_tensor_rows(t);
    clt_map_advise(&f->shards[t->shard].map, t->offset + (uint64_t)first * row_bytes, (uint64_t)n * row_bytes, use);
}

void clt_file_expect(const clt_file *f, const clt_tensor *t, int64_t first, int64_t n) {
    advise_rows(f, t, first, n, CLT_MAP_WILLNEED);
}

void clt_file_release(const clt_file *f, const clt_tensor *t, int64_t first, int64_t n) {
    advise_rows(f, t, first, n, CLT_MAP_DONTNEED);
}

size_t clt_file_metas(const clt_file *f) { return f->metas.n; }

const clt_meta *clt_file_meta(const clt_file *f, size_t i) {
    return i < f->metas.n ? &f->metas.items[i] : NULL;
}

const clt_meta *clt_file_meta_find(const clt_file *f, const char *key) {
    return clt_metas_find(&f->metas, key);
}
