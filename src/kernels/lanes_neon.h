/* The tree that ends a reduction, and comparisons that pass over NaN, for registers of 4 floats. */
#ifndef CLT_KERNELS_LANES_NEON_H
#define CLT_KERNELS_LANES_NEON_H
#include <arm_neon.h>

/* x where x > top, else top: NaN in x leaves top. (FMAXNM does so only for quiet NaN.) */
static inline float32x4_t larger4(float32x4_t x, float32x4_t top) { return vbslq_f32(vcgtq_f32(x, top), x, top); }

/* Lanes 0-3 in v[0], … 12-15 in v[3]: the tree of clt_sum_lanes. */
static inline float sum_lanes4(const float32x4_t v[4]) {
    float32x4_t v4 = vaddq_f32(vaddq_f32(v[0], v[2]), vaddq_f32(v[1], v[3]));
    float32x2_t v2 = vadd_f32(vget_low_f32(v4), vget_high_f32(v4));
    return vget_lane_f32(v2, 0) + vget_lane_f32(v2, 1);
}

/* The largest of sixteen lanes, which hold no NaN. */
static inline float max_lanes4(const float32x4_t v[4]) {
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(v[0], v[1]), vmaxq_f32(v[2], v[3])));
}

#endif
