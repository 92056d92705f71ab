/* What the towers for pictures and sound share: finding their tensors in a Hugging Face folder or in a vision file
 * ("mmproj") of llama.cpp, and their clipped matrices. No arithmetic. */
#ifndef CLT_MODEL_TOWER_H
#define CLT_MODEL_TOWER_H
#include "model/model.h"

/* y = clamp(W clamp(x, in_min, in_max), out_min, out_max) */
typedef struct clt_tower_matrix {
    const clt_tensor *w;  /* [rows, cols] = [out, in] */
    bool clipped;         /* false: the bounds are infinite */
    float in_min, in_max, out_min, out_max;
} clt_tower_matrix;

#endif
