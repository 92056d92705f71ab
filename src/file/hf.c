/* A Hugging Face folder: its path comes in; its documents are parsed or mapped, its weights (one safetensors file or shards
 * with an index) are opened and checked against the index both ways. Knows no key of config.json. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/os.h"
#include "file/impl.h"

#define MAX_JSON_BYTES 100000000ull
/* Brackets and commas of a document: what a parsed tree costs, about 100 bytes each. A header of the largest published
 * model has some ten thousand. */
#define MAX_JSON_MARKS (16ull * CLT_FILE_MAX_TENSORS)

static const char single_name[] = "model.safetensors", index_name[] = "model.safetensors.index.json";
static const char *const json_names[CLT_HF_JSONS] = {"config.json", "generation_config.json", "tokenizer_config.json",
                                                     "processor_config.json", "preprocessor_config.json"};
static const char *const text_names[CLT_HF_TEXTS] = {"tokenizer.json", "chat_template.jinja"};

const clt_json *clt_file_json(const clt_file *f, const char *name) {
    for (int i = 0; i < CLT_HF_JSONS; i++)
        if (strcmp(json_names[i], name) == 0) return f->jsons[i];
    return NULL;
}

const char *clt_file_text(const clt_file *f, const char *name, uint64_t *len) {
    *len = 0;
    for (int i = 0; i < CLT_HF_TEXTS; i++)
        if (f->texts[i].data && strcmp(text_names[i], name) == 0) {
            *len = f->texts[i].size;
            return (const char *)f->texts[i].data;
        }
    return NULL;
}

clt_status clt_hf_parse(const char *text, uint64_t len, const char *what, clt_json **doc, clt_err *err) {
    uint64_t marks = 0;
    *doc = NULL;
    if (len > MAX_JSON_BYTES)
        return clt_fail(err, CLT_E_FILE, "%s: %" PRIu64 " bytes of JSON, the limit is %llu", what, len, MAX_JSON_BYTES);
    for (uint64_t i = 0; i < len; i++) marks += text[i] == ',' || text[i] == '[' || text[i] == '{';
    if (marks > MAX_JSON_MARKS)
        return clt_fail(err, CLT_E_FILE, "%s: a JSON document of %" PRIu64 " brackets and commas, the limit is %llu",
                        what, marks, MAX_JSON_MARKS);
    clt_status st = clt_json_parse(text, (size_t)len, what, doc, err);
    if (st == CLT_E_UNSUPPORTED || st == CLT_E_MEMORY || st == CLT_OK) return st;
    err->code = CLT_E_FILE; /* malformed JSON is damage here, whatever it is to other callers */
    return CLT_E_FILE;
}

/* DIR/NAME in the file's arena; NULL after reporting. */
static const char *join(clt_file *f, const char *name, clt_err *err) {
    size_t dir = strlen(f->path), n = strlen(name);
    while (dir > 1 && f->path[dir - 1] == '/') dir--;
    char *p = clt_arena_alloc(f->arena, dir + 1 + n + 1, 1);
    if (!p) {
        clt_fail_memory(err, "file names", dir + n + 2);
        return NULL;
    }
    snprintf(p, dir + n + 2, "%.*s/%s", (int)dir, f->path, name);
    return p;
}

static clt_status load_json(clt_file *f, const char *name, clt_json **doc, clt_err *err) {
    clt_map map = {0};
    const char *path = join(f, name, err);
    if (!path) return err->code;
    clt_status st = clt_map_open(path, &map, err);
    if (!st) st = clt_sniff(path, &map, err);
    if (!st) st = clt_hf_parse((const char *)map.data, map.size, path, doc, err);
    if (!st && clt_json_kind(*doc) != CLT_JSON_OBJECT)
        st = clt_fail(err, CLT_E_FILE, "%s: expected a JSON object, found %s", path,
                      clt_json_kind_name(clt_json_kind(*doc)));
    clt_map_close(&map);
    return st;
}

static bool has(clt_file *f, const char *name) {
    clt_err ignored;
    const char *path = join(f, name, &ignored);
    return path && clt_is_file(path);
}

static clt_status load_documents(clt_file *f, clt_err *err) {
    for (int i = 0; i < CLT_HF_JSONS; i++) {
        if (!has(f, json_names[i])) continue;
        clt_status st = load_json(f, json_names[i], &f->jsons[i], err);
        if (st) return st;
    }
    for (int i = 0; i < CLT_HF_TEXTS; i++) {
        if (!has(f, text_names[i])) continue;
        const char *path = join(f, text_names[i], err);
        if (!path) return err->code;
        clt_status st = clt_map_open(path, &f->texts[i], err);
        if (!st) st = clt_sniff(path, &f->texts[i], err);
        if (st) return st;
    }
    return CLT_OK;
}

/* What to do about a folder without `what`, judged by what it holds instead. */
static clt_status fail_folder(const clt_file *f, const char *what, clt_err *err) {
    clt_err ignored;
    char **names = NULL;
    size_t n = 0, gguf = SIZE_MAX, torch = SIZE_MAX, weights = SIZE_MAX;
    if (clt_list_dir(f->path, &names, &n, &ignored)) n = 0;
    for (size_t i = n; i-- > 0;) {
        if (clt_ends_with(names[i], ".gguf")) gguf = i;
        if (clt_ends_with(names[i], ".bin") || clt_ends_with(names[i], ".pt") || clt_ends_with(names[i], ".pth")) torch = i;
        if (clt_ends_with(names[i], ".safetensors")) weights = i;
    }
    clt_fail(err, CLT_E_FILE, "%s: not a model folder: it holds no %s", f->path, what);
    if (gguf != SIZE_MAX) clt_hint(err, "give the GGUF file itself: %s/%s", f->path, names[gguf]);
    else if (weights != SIZE_MAX) clt_hint(err, "it holds %s: fetch the files beside it, too", names[weights]);
    else if (torch != SIZE_MAX) clt_hint(err, "%s is a PyTorch file: fetch the model as safetensors", names[torch]);
    else clt_hint(err,
                  "a Hugging Face folder holds config.json, tokenizer.json and model.safetensors (or shards with an index)");
    for (size_t i = 0; i < n; i++) clt_free(names[i]);
    clt_free(names);
    return CLT_E_FILE;
}

/* ---- shards with an index ---- */

typedef struct index_doc {
    clt_json *doc;
    const clt_json *weights; /* {"tensor name": "shard file"} */
    clt_names shards;        /* file name -> number of its shard, in order of names */
    const char **names;
    const char *path;
} index_doc;

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A shard's file name must be a plain name inside the folder: an index may not point anywhere else. */
static bool is_plain_name(const char *s, size_t len) {
    return len > 0 && strlen(s) == len && len < 256 && s[0] != '.' && !strchr(s, '/') && clt_ends_with(s, ".safetensors");
}

/* Collects the distinct shard names, sorted. */
static clt_status collect_shards(index_doc *x, clt_err *err) {
    void *iter = NULL;
    const char *key = NULL;
    size_t key_len = 0, n = clt_json_len(x->weights), used = 0;
    const clt_json *value = NULL;
    x->names = clt_calloc(n + 1, sizeof *x->names);
    if (!x->names) return clt_fail_memory(err, "shard names", (n + 1) * sizeof *x->names);
    while (clt_json_next(x->weights, &iter, &key, &key_len, &value)) {
        const clt_name *old = NULL;
        char a[CLT_SHOWN_BYTES], b[CLT_SHOWN_BYTES];
        size_t len = 0;
        const char *file = clt_json_str(value, &len);
        if (!file || !is_plain_name(file, len))
            return clt_fail(err, CLT_E_FILE,
                            "%s: damaged: weight_map: the file of '%s' is '%s', expected a safetensors file of this folder",
                            x->path, clt_shown(a, key, key_len), file ? clt_shown(b, file, len) : "no string");
        clt_status st = clt_names_add(&x->shards, file, 0, 0, &old, err);
        if (st) return st;
        if (!old) x->names[used++] = file;
    }
    if (used == 0) return clt_fail(err, CLT_E_FILE, "%s: damaged: weight_map is empty", x->path);
    qsort(x->names, used, sizeof *x->names, by_text);
    clt_names_free(&x->shards);
    for (size_t i = 0; i < used; i++) {
        const clt_name *old = NULL;
        clt_status st = clt_names_add(&x->shards, x->names[i], (uint32_t)i, 0, &old, err);
        if (st) return st;
    }
    return CLT_OK;
}

static clt_status read_index(clt_file *f, index_doc *x, clt_err *err) {
    x->path = join(f, index_name, err);
    if (!x->path) return err->code;
    clt_status st = load_json(f, index_name, &x->doc, err);
    if (st) return st;
    x->weights = clt_json_get(x->doc, "weight_map");
    if (clt_json_kind(x->weights) != CLT_JSON_OBJECT)
        return clt_fail(err, CLT_E_FILE, "%s: damaged: weight_map is missing or no object", x->path);
    return collect_shards(x, err);
}

/* Sets the shards of the file, once all of them are known to be there. */
static clt_status find_shards(clt_file *f, const index_doc *x, clt_err *err) {
    size_t n = x->shards.len;
    clt_name_list missing = {0};
    const char **paths = clt_calloc(n, sizeof *paths);
    clt_status st = paths ? CLT_OK : clt_fail_memory(err, "shard names", n * sizeof *paths);
    for (size_t i = 0; !st && i < n; i++) {
        paths[i] = join(f, x->names[i], err);
        if (!paths[i]) st = err->code;
        else if (!clt_is_file(paths[i])) clt_name_list_add(&missing, x->names[i]);
    }
    if (!st && missing.n) {
        clt_fail(err, CLT_E_FILE, "%s: %zu of the %zu weight files are missing: %s", f->path, missing.n, n,
                 clt_name_list_end(&missing));
        st = clt_hint(err, "fetch the missing files into this folder");
    }
    if (!st) st = clt_file_set_shards(f, paths, (int)n, err);
    clt_buf_free(&missing.text);
    clt_free(paths);
    return st;
}

/* Names that the index promises and the shard does not hold. */
static void list_promised(const clt_file *f, const index_doc *x, clt_name_list *out) {
    void *iter = NULL;
    const char *key = NULL;
    size_t key_len = 0, len = 0;
    const clt_json *value = NULL;
    while (clt_json_next(x->weights, &iter, &key, &key_len, &value)) {
        const clt_name *at = clt_names_find(&f->names, key);
        const clt_name *shard = clt_names_find(&x->shards, clt_json_str(value, &len));
        if (!at || !shard || at->shard != shard->id) clt_name_list_add(out, key);
    }
}

/* Names that the shards hold and the index does not know, in the order of the alphabet (the table has none). */
static clt_status list_unknown(const clt_file *f, const index_doc *x, clt_name_list *out, clt_err *err) {
    const char **names = clt_calloc(f->names.len + 1, sizeof *names);
    size_t n = 0;
    if (!names) return clt_fail_memory(err, "tensor names", (f->names.len + 1) * sizeof *names);
    for (size_t i = 0; i < f->names.cap; i++) {
        const char *name = f->names.slots[i].name;
        if (name && !clt_json_get(x->weights, name)) names[n++] = name;
    }
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++) clt_name_list_add(out, names[i]);
    clt_free(names);
    return CLT_OK;
}

static clt_status check_index(const clt_file *f, const index_doc *x, clt_err *err) {
    clt_name_list promised = {0}, unknown = {0};
    list_promised(f, x, &promised);
    clt_status st = list_unknown(f, x, &unknown, err);
    if (!st && promised.n)
        st = clt_fail(err, CLT_E_FILE,
                      "%s: the weight files do not match it: %zu tensors are not in the file that it names: %s", x->path,
                      promised.n, clt_name_list_end(&promised));
    else if (!st && unknown.n)
        st = clt_fail(err, CLT_E_FILE, "%s: the weight files do not match it: it does not list %zu of their tensors: %s",
                      x->path, unknown.n, clt_name_list_end(&unknown));
    if (st == CLT_E_FILE) clt_hint(err, "fetch the index and all weight files of one version of the model");
    clt_buf_free(&promised.text);
    clt_buf_free(&unknown.text);
    return st;
}

static clt_status scan_shards(clt_file *f, clt_err *err) {
    for (int i = 0; i < f->n_shards; i++) {
        clt_status st = clt_file_map_shard(f, i, err);
        if (!st) st = clt_safetensors_scan(f, i, err);
        if (st) return st;
    }
    return CLT_OK;
}

static clt_status open_indexed(clt_file *f, clt_err *err) {
    index_doc x = {0};
    clt_status st = read_index(f, &x, err);
    if (!st) st = find_shards(f, &x, err);
    if (!st) st = scan_shards(f, err);
    if (!st) st = check_index(f, &x, err);
    clt_names_free(&x.shards);
    clt_free(x.names);
    clt_json_free(x.doc);
    return st;
}

static clt_status open_single(clt_file *f, clt_err *err) {
    const char *path = join(f, single_name, err);
    if (!path) return err->code;
    clt_status st = clt_file_set_shards(f, &path, 1, err);
    return st ? st : scan_shards(f, err);
}

clt_status clt_hf_open(clt_file *f, clt_err *err) {
    f->kind = CLT_FILE_HF;
    if (!has(f, json_names[0])) return fail_folder(f, "config.json", err);
    clt_status st = load_documents(f, err);
    if (st) return st;
    if (has(f, single_name)) return open_single(f, err);
    if (has(f, index_name)) return open_indexed(f, err);
    return fail_folder(f, "model.safetensors and no model.safetensors.index.json", err);
}
