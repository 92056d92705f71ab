/* Manifests: lists of what a file will hold. Nothing is read or written here. */
#include <string.h>
#include "convert/convert.h"

enum { ARENA_BYTES = 1 << 16 };

clt_status clt_manifest_init(clt_manifest *p, clt_err *err) {
    *p = (clt_manifest){.arena = clt_arena_create(ARENA_BYTES)};
    return p->arena ? CLT_OK : clt_fail_memory(err, "the list of tensors", ARENA_BYTES);
}

clt_manifest_tensor *clt_manifest_add(clt_manifest *p, const clt_manifest_tensor *t, clt_err *err) {
    if (p->n == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 256;
        clt_manifest_tensor *grown = clt_realloc(p->tensors, cap * sizeof *grown);
        if (!grown) {
            clt_fail_memory(err, "the list of tensors", cap * sizeof *grown);
            return NULL;
        }
        p->tensors = grown;
        p->cap = cap;
    }
    clt_manifest_tensor *added = &p->tensors[p->n];
    *added = *t;
    added->name = clt_arena_strndup(p->arena, t->name, strlen(t->name));
    if (!added->name) {
        clt_fail_memory(err, "the list of tensors", strlen(t->name) + 1);
        return NULL;
    }
    p->n++;
    return added;
}

void clt_manifest_free(clt_manifest *p) {
    clt_gguf_head_free(&p->head);
    clt_free(p->tensors);
    if (p->arena) clt_arena_free(p->arena);
    *p = (clt_manifest){0};
}

uint64_t clt_manifest_tensor_bytes(const clt_manifest_tensor *t) {
    int64_t rows = 1;
    for (int i = 1; i < t->n_dims; i++) rows *= t->dims[i];
    return (uint64_t)rows * clt_type_row_bytes(clt_type_get((uint32_t)t->type), t->dims[0]);
}
