/* The public face of the model folder: names -> paths, and a list as JSON. */
#include "base/json.h"
#include "base/mem.h"
#include "engine/impl.h"
#include "hub/folder.h"

culet_status culet_model_find(const char *name, char **path, culet_error *err) {
    clt_err inner;
    clt_buf found = {0};
    *path = NULL;
    clt_status status = clt_hub_find(name, &found, &inner);
    if (status == CLT_OK) *path = found.data;
    else clt_buf_free(&found);
    return clt_report(status, &inner, err);
}

static void write_entry(void *user, const clt_hub_entry *e) {
    clt_jsonw *w = user;
    clt_jsonw_open(w, '{');
    clt_jsonw_key(w, "name");
    clt_jsonw_cstr(w, e->name);
    clt_jsonw_key(w, "path");
    clt_jsonw_cstr(w, e->path);
    clt_jsonw_key(w, "bytes");
    clt_jsonw_int(w, (int64_t)e->bytes);
    clt_jsonw_key(w, "format");
    clt_jsonw_cstr(w, e->format);
    clt_jsonw_close(w, '}');
}

culet_status culet_model_list(char **json, culet_error *err) {
    clt_err inner;
    clt_buf text = {0};
    clt_jsonw w = {.out = &text};
    *json = NULL;
    clt_jsonw_open(&w, '[');
    clt_status status = clt_hub_each(write_entry, &w, &inner);
    clt_jsonw_close(&w, ']');
    if (status == CLT_OK && text.failed) status = clt_fail_memory(&inner, "model list", text.len);
    if (status == CLT_OK) *json = text.data;
    else clt_buf_free(&text);
    return clt_report(status, &inner, err);
}
