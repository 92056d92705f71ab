/* A GGUF model of one file or of a set "STEM-00001-of-000NN.gguf": the path of any member comes in, all members are opened
 * in order and checked to be one model. The metadata are those of the first member. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include "base/os.h"
#include "file/impl.h"

enum { SUFFIX_BYTES = sizeof "-00001-of-00002.gguf" - 1 };

typedef struct part_name {
    size_t stem_len; /* path bytes before "-00001-of-…"; 0: not the name of a part */
    int no, count;   /* as in the name: no counts from 1 */
} part_name;

static int five_digits(const char *s) {
    int v = 0;
    for (int i = 0; i < 5; i++) {
        if (!isdigit((unsigned char)s[i])) return -1;
        v = v * 10 + (s[i] - '0');
    }
    return v;
}

static part_name parse_name(const char *path) {
    size_t len = strlen(path);
    if (len <= SUFFIX_BYTES) return (part_name){0};
    const char *s = path + len - SUFFIX_BYTES;
    int no = five_digits(s + 1), count = five_digits(s + 10);
    if (s[0] != '-' || no < 0 || memcmp(s + 6, "-of-", 4) != 0 || count < 0 || strcmp(s + 15, ".gguf") != 0)
        return (part_name){0};
    return (part_name){len - SUFFIX_BYTES, no, count};
}

/* A key of the split.* family; false if it is absent or not one integer. */
static bool split_int(const clt_metas *m, const char *key, int64_t *v) {
    const clt_meta *at = clt_metas_find(m, key);
    return at && !at->is_array && clt_meta_int(at, 0, v);
}

static clt_status open_single(clt_file *f, clt_err *err) {
    const char *path = f->path;
    clt_status st = clt_file_set_shards(f, &path, 1, err);
    if (!st) st = clt_file_map_shard(f, 0, err);
    if (!st) st = clt_gguf_scan(f, 0, &f->metas, err);
    if (st) return st;
    int64_t count = 0;
    if (!split_int(&f->metas, "split.count", &count) || count == 0 || count == 1) return CLT_OK;
    clt_fail(err, CLT_E_FILE, "%s: one part of a model in %" PRId64 " files, but its name does not say which", path, count);
    return clt_hint(err, "give the parts their original names, which end in -00001-of-%05" PRId64 ".gguf and so on", count);
}

/* Fills the shards' paths and reports every file that is missing. */
static clt_status find_parts(clt_file *f, part_name name, clt_err *err) {
    char **paths = clt_calloc((size_t)name.count, sizeof *paths);
    size_t bytes = strlen(f->path) + 1;
    clt_name_list missing = {0};
    clt_status st = paths ? CLT_OK : clt_fail_memory(err, "shard names", (unsigned long long)name.count * sizeof *paths);
    for (int i = 0; !st && i < name.count; i++) {
        paths[i] = clt_alloc(bytes);
        if (!paths[i]) {
            st = clt_fail_memory(err, "shard names", bytes);
            break;
        }
        snprintf(paths[i], bytes, "%.*s-%05d-of-%05d.gguf", (int)name.stem_len, f->path, i + 1, name.count);
        if (clt_is_file(paths[i])) continue;
        const char *base = strrchr(paths[i], '/');
        clt_name_list_add(&missing, base ? base + 1 : paths[i]);
    }
    if (!st && missing.n) {
        clt_fail(err, CLT_E_FILE, "%s: %zu of the %d files of this model are missing: %s", f->path, missing.n, name.count,
                 clt_name_list_end(&missing));
        st = clt_hint(err, "put all parts into one folder");
    }
    if (!st) st = clt_file_set_shards(f, (const char *const *)paths, name.count, err);
    for (int i = 0; paths && i < name.count; i++) clt_free(paths[i]);
    clt_free(paths);
    clt_buf_free(&missing.text);
    return st;
}

static bool same_value(const clt_meta *a, const clt_meta *b) {
    return a->type == b->type && a->is_array == b->is_array && a->count == b->count && a->bytes == b->bytes &&
           memcmp(a->data, b->data, (size_t)a->bytes) == 0;
}

/* What a part says about itself against its name and against the first part. */
static clt_status check_part(const clt_file *f, int shard, const clt_metas *own, clt_err *err) {
    const char *path = f->shards[shard].path;
    int64_t count = 0, no = 0;
    if (!split_int(own, "split.count", &count) || !split_int(own, "split.no", &no))
        return clt_fail(err, CLT_E_FILE, "%s: named like part %d of %d, but it holds no split.no and split.count", path,
                        shard + 1, f->n_shards);
    if (count != f->n_shards || no != shard)
        return clt_fail(err, CLT_E_FILE, "%s: named like part %d of %d, but it says that it is part %" PRId64 " of %" PRId64,
                        path, shard + 1, f->n_shards, no < INT64_MAX ? no + 1 : no, count);
    for (size_t i = 0; i < own->n; i++) {
        const clt_meta *m = &own->items[i], *first = clt_metas_find(&f->metas, m->key);
        bool own_matter = strcmp(m->key, "split.no") == 0 || strcmp(m->key, "general.alignment") == 0;
        if (own_matter || !first || same_value(first, m)) continue;
        char shown[CLT_SHOWN_BYTES];
        clt_fail(err, CLT_E_FILE, "%s: a part of another model than %s: their '%s' differ", path, f->shards[0].path,
                 clt_shown(shown, m->key, strlen(m->key)));
        return clt_hint(err, "fetch all parts of one model");
    }
    return CLT_OK;
}

static clt_status check_total(const clt_file *f, clt_err *err) {
    const clt_meta *m = clt_metas_find(&f->metas, "split.tensors.count");
    int64_t total = 0;
    if (!split_int(&f->metas, "split.tensors.count", &total))
        return clt_fail(err, CLT_E_FILE, "%s: damaged: split.tensors.count is %s", f->shards[0].path,
                        m ? "no integer" : "missing");
    if (total == (int64_t)f->names.len) return CLT_OK;
    clt_fail(err, CLT_E_FILE,
             "%s: the %d files hold %zu tensors, expected %" PRId64 " (split.tensors.count)",
             f->path, f->n_shards, f->names.len, total);
    return clt_hint(err, "fetch all parts of one model");
}

static clt_status open_set(clt_file *f, part_name name, clt_err *err) {
    clt_status st = find_parts(f, name, err);
    for (int i = 0; !st && i < f->n_shards; i++) {
        clt_metas own = {0};
        clt_metas *metas = i == 0 ? &f->metas : &own;
        st = clt_file_map_shard(f, i, err);
        if (!st) st = clt_gguf_scan(f, i, metas, err);
        if (!st) st = check_part(f, i, metas, err);
        clt_names_free(&own.names);
    }
    return st ? st : check_total(f, err);
}

clt_status clt_gguf_open(clt_file *f, clt_err *err) {
    part_name name = parse_name(f->path);
    f->kind = CLT_FILE_GGUF;
    if (!name.stem_len || name.count == 1) return open_single(f, err);
    if (name.count == 0 || name.no == 0 || name.no > name.count)
        return clt_fail(err, CLT_E_FILE, "%s: the name says part %d of %d, which cannot be", f->path, name.no, name.count);
    return open_set(f, name, err);
}
