/* Opens the door of this room: reads the configuration in the form that the file has, then binds the tensors to it. */
#include "model/model.h"

#include <string.h>

#include "model/internal.h"

clt_status clt_model_bind(const clt_file *f, clt_model *out, clt_err *err) {
    memset(out, 0, sizeof *out);
    out->file = f;
    out->arena = clt_arena_create(64 << 10);
    if (!out->arena) return clt_fail_memory(err, "the model description", 64 << 10);
    clt_status st = clt_file_get_kind(f) == CLT_FILE_GGUF ? clt_config_from_gguf(out, err) : clt_config_from_hf(out, err);
    if (st == CLT_OK) st = clt_bind_tensors(out, err);
    if (st == CLT_OK) st = clt_config_check(out, err);
    if (st == CLT_OK) out->family_name = clt_config_family_name(out);
    if (st == CLT_OK && !out->family_name) st = clt_fail_memory(err, "the model description", 64);
    if (st != CLT_OK) clt_model_free(out);
    return st;
}

void clt_model_free(clt_model *m) {
    clt_arena_free(m->arena);
    memset(m, 0, sizeof *m);
}
