/* Quantising: a model file and a recipe in, a manifest out. */
#ifndef CLT_CONVERT_QUANTIZE_H
#define CLT_CONVERT_QUANTIZE_H
#include "convert/imatrix.h"
#include "convert/recipe.h"

typedef struct clt_type_override {
    const char *pattern; /* a POSIX extended regular expression, found anywhere in a tensor's name */
    clt_type type;
} clt_type_override;

typedef struct clt_quantize_request {
    const clt_recipe *recipe;            /* NULL: only the overrides apply */
    const clt_imatrix *imatrix;          /* NULL = none */
    const clt_type_override *overrides;  /* the first that fits counts */
    size_t n_overrides;
} clt_quantize_request;

/* A manifest that copies a GGUF file as it is. */
clt_status clt_manifest_copy(const clt_file *f, clt_manifest *p, clt_err *err);
/* Changes the types of a manifest. overridden: [tensors], becomes true where an override applied; may be NULL. CLT_E_USAGE:
 * a pattern that is none; CLT_E_FILE: an importance that does not fit. */
clt_status clt_manifest_quantize(clt_manifest *p, const clt_quantize_request *r, bool *overridden, clt_err *err);

#endif
