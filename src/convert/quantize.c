/* Applies a recipe, overrides and importances to a manifest. What its file says of itself is read from its metadata. */
#include "convert/quantize.h"
#include <regex.h>
#include <stdio.h>
#include <string.h>

/* ---- copying ---- */

/* Keys that the new file gets anew, or that speak of the parts of a split file. */
static bool is_replaced(const char *key) {
    return !strcmp(key, "general.file_type") || !strcmp(key, "general.quantization_version") || !strncmp(key, "split.", 6);
}

static void read_model(const clt_file *f, clt_manifest *p) {
    const clt_meta *arch = clt_file_meta_find(f, "general.architecture");
    const char *s = "";
    uint64_t len = 0;
    clt_meta_str(arch, &s, &len);
    static const struct { const char *suffix; size_t field; } keys[] = {
        {"block_count", offsetof(clt_manifest_facts, layers)},
        {"expert_count", offsetof(clt_manifest_facts, experts)},
        {"attention.head_count", offsetof(clt_manifest_facts, heads)},
        {"attention.head_count_kv", offsetof(clt_manifest_facts, kv_heads)},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[128];
        int64_t v = 0;
        snprintf(key, sizeof key, "%.*s.%s", (int)(len < 64 ? len : 64), s, keys[i].suffix);
        if (clt_meta_int(clt_file_meta_find(f, key), 0, &v) && v >= 0 && v <= INT32_MAX)
            *(int *)(void *)((char *)&p->facts + keys[i].field) = (int)v;
    }
}

clt_status clt_manifest_copy(const clt_file *f, clt_manifest *p, clt_err *err) {
    int64_t alignment = 0;
    if (clt_meta_int(clt_file_meta_find(f, "general.alignment"), 0, &alignment)) p->head.alignment = (uint32_t)alignment;
    for (size_t i = 0; i < clt_file_metas(f); i++)
        if (!is_replaced(clt_file_meta(f, i)->key)) clt_gguf_put_meta(&p->head, clt_file_meta(f, i));
    read_model(f, p);
    int64_t file_type = 0;
    if (clt_meta_int(clt_file_meta_find(f, "general.file_type"), 0, &file_type)) p->file_type = (uint32_t)file_type;
    for (size_t i = 0; i < clt_file_tensors(f); i++) {
        const clt_tensor *t = clt_file_tensor(f, i);
        clt_manifest_tensor listed = {.name = t->name, .type = t->type, .n_dims = t->n_dims,
                               .source = {.file = f, .tensor = t, .cols = t->dims[0], .rows = clt_tensor_rows(t)}};
        memcpy(listed.dims, t->dims, sizeof listed.dims);
        if (!clt_manifest_add(p, &listed, err)) return err->code;
    }
    return CLT_OK;
}

/* ---- types ---- */

typedef struct patterns {
    regex_t *compiled;
    size_t n;
} patterns;

static clt_status compile(const clt_quantize_request *r, patterns *out, clt_err *err) {
    out->compiled = clt_calloc(r->n_overrides + 1, sizeof *out->compiled);
    if (!out->compiled) return clt_fail_memory(err, "patterns", r->n_overrides * sizeof *out->compiled);
    for (; out->n < r->n_overrides; out->n++) {
        char why[128];
        int code = regcomp(&out->compiled[out->n], r->overrides[out->n].pattern, REG_EXTENDED | REG_NOSUB);
        if (!code) continue;
        regerror(code, &out->compiled[out->n], why, sizeof why);
        return clt_fail(err, CLT_E_USAGE, "--tensor-type: '%s' is no regular expression: %s", r->overrides[out->n].pattern,
                        why);
    }
    return CLT_OK;
}

static void free_patterns(patterns *p) {
    for (size_t i = 0; i < p->n; i++) regfree(&p->compiled[i]);
    clt_free(p->compiled);
}

static bool override(const clt_quantize_request *r, const patterns *p, const char *name, clt_type *type) {
    for (size_t i = 0; i < p->n; i++)
        if (regexec(&p->compiled[i], name, 0, NULL, 0) == 0) {
            *type = r->overrides[i].type;
            return true;
        }
    return false;
}

static clt_recipe_model model_of(const clt_manifest *p, const clt_quantize_request *r) {
    clt_recipe_model m = {.layers = p->facts.layers, .experts = p->facts.experts, .tied = true,
                          .has_importance = r->imatrix != NULL};
    m.query_groups = p->facts.kv_heads ? p->facts.heads / p->facts.kv_heads : 1;
    for (size_t i = 0; i < p->n; i++) {
        m.value_matrices += clt_is_value_matrix(p->tensors[i].name);
        if (!strcmp(p->tensors[i].name, "output.weight")) m.tied = false;
    }
    return m;
}

/* Value matrices of lower layers. */
static int value_index(const clt_manifest *p, const char *name) {
    int n = 0;
    if (!clt_is_value_matrix(name)) return 0;
    for (size_t i = 0; i < p->n; i++)
        n += clt_is_value_matrix(p->tensors[i].name) && clt_layer_of(p->tensors[i].name) < clt_layer_of(name);
    return n;
}

/* The importance of a tensor's columns, for each of its matrices. The embedding's is that of the output it may serve as. */
static clt_status set_importance(clt_manifest_tensor *t, const clt_imatrix *im, clt_err *err) {
    int64_t matrices = t->dims[2] * t->dims[3];
    const clt_imatrix_entry *e = im ? clt_imatrix_find(im, t->name) : NULL;
    if (!e) return CLT_OK;
    if (e->cols * e->matrices != t->dims[0] * matrices)
        return clt_fail(err, CLT_E_FILE, "%s: the importance of %s is for %lld inputs, expected %lld x %lld", im->path,
                        t->name, (long long)(e->matrices * e->cols), (long long)matrices, (long long)t->dims[0]);
    t->importance = e->values;
    return CLT_OK;
}

clt_status clt_manifest_quantize(clt_manifest *p, const clt_quantize_request *r, bool *overridden, clt_err *err) {
    patterns compiled = {0};
    clt_recipe_model m = model_of(p, r);
    clt_status status = compile(r, &compiled, err);
    for (size_t i = 0; status == CLT_OK && i < p->n; i++) {
        clt_manifest_tensor *t = &p->tensors[i];
        if (!clt_recipe_applies(t->name, t->n_dims)) continue;
        bool named = override(r, &compiled, t->name, &t->type);
        if (overridden) overridden[i] = named;
        if (named) t->type = clt_type_fitting(t->type, t->dims[0]);
        else if (r->recipe) t->type = clt_recipe_type(r->recipe, &m, t->name, t->dims[0], value_index(p, t->name));
        if (clt_type_get((uint32_t)t->type)->block_len > 1) status = set_importance(t, r->imatrix, err);
    }
    free_patterns(&compiled);
    if (r->recipe) p->file_type = r->recipe->file_type;
    return status;
}
