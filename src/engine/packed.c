/* Packed copies of an engine: decides whether the model's copy can be used, writes one on request, and lists and removes
 * them. What a copy is made of is the business of src/hub/packed*.c. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "base/json.h"
#include "base/mem.h"
#include "base/os.h"
#include "engine/impl.h"
#include "hub/folder.h"

static clt_packed_key key_of(const culet_engine *e) {
    clt_packed_key key = {.model = {e->fingerprint[0], e->fingerprint[1]}, .layout = clt_net_layout_digest(&e->model),
                          .bytes = clt_net_plan_bytes(&e->model)};
    for (int i = 0; i < clt_file_shards(e->file); i++)
        key.stamp = clt_packed_stamp(key.stamp, clt_file_shard_path(e->file, i));
    return key;
}

void clt_engine_use_packed(culet_engine *e, const culet_engine_params *p) {
    clt_err why;
    clt_packed_key key = key_of(e);
    if (clt_packed_open(&key, e->pool, &e->packed, &why) != CLT_OK) {
        clt_engine_warn(p, "%s; the weights are packed anew", why.text);
        return;
    }
    if (!e->packed) return;
    e->info.packed_path = clt_packed_path(e->packed);
    clt_engine_note(p, "weights from the packed copy %s", clt_packed_path(e->packed));
}

static clt_status write_copy(culet_engine *e, clt_buf *path, clt_err *err) {
    clt_packed_key key = key_of(e);
    if (!e->net) return clt_fail(err, CLT_E_USAGE, "%s: opened without its weights: nothing to pack", e->info.path);
    clt_turn_take(&e->busy);
    clt_status status = clt_packed_write(&key, e->info.path, clt_net_packed(e->net), e->pool, path, err);
    clt_turn_give(&e->busy);
    return status;
}

void clt_engine_pack_cache(culet_engine *e, const culet_engine_params *p) {
    clt_err why;
    clt_buf path = {0};
    if (e->packed) return;
    if (write_copy(e, &path, &why) == CLT_OK) clt_engine_note(p, "packed copy written: %s", path.data);
    else clt_engine_warn(p, "no packed copy: %s", why.text);
    clt_buf_free(&path);
}

culet_status culet_engine_pack(culet_engine *e, char **path, culet_error *err) {
    clt_err inner;
    clt_buf text = {0};
    clt_status status = CLT_OK;
    if (path) *path = NULL;
    if (e->packed) clt_buf_puts(&text, e->info.packed_path);
    else status = write_copy(e, &text, &inner);
    if (status == CLT_OK && text.failed) status = clt_fail_memory(&inner, "packed copy", text.len);
    if (status == CLT_OK && path) *path = text.data;
    else clt_buf_free(&text);
    return clt_report(status, &inner, err);
}

/* ---- the folder of copies ---- */

static void put_text(clt_jsonw *w, const char *key, const char *text) {
    clt_jsonw_key(w, key);
    clt_jsonw_cstr(w, text);
}

static void write_entry(void *user, const clt_packed_entry *e) {
    clt_jsonw *w = user;
    clt_jsonw_open(w, '{');
    put_text(w, "name", e->name);
    put_text(w, "path", e->path);
    clt_jsonw_key(w, "bytes");
    clt_jsonw_int(w, (int64_t)e->bytes);
    put_text(w, "format", "packed");
    put_text(w, "model", e->model);
    clt_jsonw_close(w, '}');
}

culet_status culet_packed_list(char **json, culet_error *err) {
    clt_err inner;
    clt_buf text = {0};
    clt_jsonw w = {.out = &text};
    *json = NULL;
    clt_jsonw_open(&w, '[');
    clt_status status = clt_packed_each(write_entry, &w, &inner);
    clt_jsonw_close(&w, ']');
    if (status == CLT_OK && text.failed) status = clt_fail_memory(&inner, "list of packed copies", text.len);
    if (status == CLT_OK) *json = text.data;
    else clt_buf_free(&text);
    return clt_report(status, &inner, err);
}

typedef struct removal {
    const char *name;  /* NULL: all */
    const char *model; /* the path that the name means as a model, or NULL */
    size_t n;
    clt_status status;
    clt_err *err;
} removal;

/* "x" and "x.packed" name the copy x.packed. */
static bool names_copy(const char *name, const char *copy) {
    size_t n = strlen(name);
    return strncmp(copy, name, n) == 0 && (copy[n] == 0 || strcmp(copy + n, ".packed") == 0);
}

static void remove_entry(void *user, const clt_packed_entry *e) {
    removal *r = user;
    bool meant = !r->name || names_copy(r->name, e->name) || strcmp(r->name, e->model) == 0 ||
                 (r->model && strcmp(r->model, e->model) == 0);
    if (!meant || r->status != CLT_OK) return;
    if (unlink(e->path) == 0 || errno == ENOENT) r->n++;
    else r->status = clt_fail(r->err, CLT_E_FAILED, "%s: cannot remove: %s", e->path, strerror(errno));
}

culet_status culet_packed_remove(const char *name, size_t *n, culet_error *err) {
    clt_err inner, ignored;
    clt_buf model = {0};
    removal r = {.name = name, .status = CLT_OK, .err = &inner};
    if (name && clt_hub_find(name, &model, &ignored) == CLT_OK) r.model = model.data;
    clt_status status = clt_packed_each(remove_entry, &r, &inner);
    if (status == CLT_OK) status = r.status;
    if (status == CLT_OK && name && r.n == 0) {
        clt_fail(&inner, CLT_E_FILE, "%s: no packed copy of that name, or of a model of that name", name);
        status = clt_hint(&inner, "`culet ls` lists the copies that are there");
    }
    clt_buf_free(&model);
    if (n) *n = r.n;
    return clt_report(status, &inner, err);
}
