/* The written order of every sum over a row. */
#ifndef CLT_KERNELS_LANES_SCALAR_H
#define CLT_KERNELS_LANES_SCALAR_H
#include "kernels/kernels.h"

/* The tree that ends a reduction: lane i += lane i + 8, then + 4, + 2, + 1. */
static inline float clt_sum_lanes(float lanes[CLT_LANES]) {
    for (int width = CLT_LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++)
            lanes[i] += lanes[i + width];
    return lanes[0];
}

#endif
