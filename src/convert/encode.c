/* Rows of floats into the blocks of a type. Sixteen blocks at a time are laid side by side for the search; what it finds is
 * put into their bytes. */
#include <math.h>
#include <string.h>
#include "convert/convert.h"

typedef struct group {
    float x[CLT_FIT_MAX_LEN * CLT_FIT_LANES], w[CLT_FIT_MAX_LEN * CLT_FIT_LANES];
    clt_fit fit;
} group;

static bool all_below(float limit, const float *x, int64_t n) {
    bool below = true;
    for (int64_t i = 0; i < n; i++) below &= fabsf(x[i]) < limit;
    return below;
}

/* A weight counts by the mean square of the inputs that it meets. Errors of large weights count a little more: they are the
 * ones that inputs which the sample did not show would hurt most. */
static void lay_lane(group *g, int lane, const float *x, const float *importance, int n) {
    float squares = 0;
    for (int i = 0; i < n; i++) squares += x[i] * x[i];
    float mean = squares / (float)n;
    for (int i = 0; i < n; i++) {
        float w = importance ? importance[i] * sqrtf(mean + x[i] * x[i]) : 1.0f;
        g->x[i * CLT_FIT_LANES + lane] = x[i];
        g->w[i * CLT_FIT_LANES + lane] = w;
    }
}

static void clear_lane(group *g, int lane, int n) {
    for (int i = 0; i < n; i++) g->x[i * CLT_FIT_LANES + lane] = g->w[i * CLT_FIT_LANES + lane] = 0;
}

static void put_lane(const group *g, int lane, const clt_type_info *info, uint8_t *dst) {
    int sub_len = clt_fit_sub_len(info->type);
    memset(dst, 0, info->block_bytes);
    for (int run = 0; run < (int)info->block_len / CLT_RUN; run++) {
        clt_run r = {.d = g->fit.d[lane], .m = g->fit.m[lane]};
        for (int h = 0; h < 2; h++) {
            int sub = (run * CLT_RUN + h * CLT_RUN / 2) / sub_len;
            r.scale[h] = (int8_t)g->fit.scale[sub][lane];
            r.min[h] = (uint8_t)g->fit.min[sub][lane];
        }
        for (int i = 0; i < CLT_RUN; i++) r.code[i] = g->fit.code[run * CLT_RUN + i][lane];
        clt_run_put(info->type, dst, run, &r);
    }
}

bool clt_encode_rows(clt_type t, clt_fit_fn fit, const float *x, const float *importance, int64_t cols, int64_t rows,
                     uint8_t *dst) {
    const clt_type_info *info = clt_type_get((uint32_t)t);
    if (!all_below(info->block_len == 1 ? INFINITY : 1e18f, x, cols * rows)) return false;
    if (info->block_len == 1) {
        info->encode(x, dst, cols * rows);
        return true;
    }
    int len = (int)info->block_len;
    int64_t blocks_per_row = cols / len, blocks = blocks_per_row * rows;
    group g;
    for (int64_t first = 0; first < blocks; first += CLT_FIT_LANES) {
        int lanes = blocks - first < CLT_FIT_LANES ? (int)(blocks - first) : CLT_FIT_LANES;
        for (int lane = 0; lane < CLT_FIT_LANES; lane++) {
            int64_t b = first + lane;
            const float *w = importance ? importance + b % blocks_per_row * len : NULL;
            if (lane < lanes) lay_lane(&g, lane, x + b * len, w, len);
            else clear_lane(&g, lane, len);
        }
        fit(t, g.x, g.w, &g.fit);
        for (int lane = 0; lane < lanes; lane++) put_lane(&g, lane, info, dst + (first + lane) * info->block_bytes);
    }
    return true;
}
