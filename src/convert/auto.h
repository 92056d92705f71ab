/* The recipe auto:SIZE: types for all tensors that fit a number of bytes and lose least.
 *
 * What a type loses on a tensor is predicted: the noise that quantising puts into the results of the tensor, measured on a
 * sample of its rows with the importances of an imatrix, times how much such noise moves the model (its sensitivity). */
#ifndef CLT_CONVERT_AUTO_H
#define CLT_CONVERT_AUTO_H
#include "convert/convert.h"
#include "convert/imatrix.h"

/* "auto:1.5G", "auto:250MiB", "auto:250000000": the size of the whole file. False if it is none. */
bool clt_auto_size(const char *recipe, uint64_t *bytes);
/* Sets the types (and importances) of a manifest whose types are those of its source. imatrix NULL: all inputs count alike;
 * without sensitivities all tensors do. fixed[i]: leaves tensor i as it is. CLT_E_USAGE: it cannot be that small. */
clt_status clt_manifest_auto(clt_manifest *m, const clt_imatrix *imatrix, const bool *fixed, uint64_t bytes,
                             const clt_convert_run *run, clt_err *err);

#endif
