/* Rows of a source: read past the mapping, decoded, and changed as the other format wants them. */
#include <math.h>
#include <string.h>
#include "convert/convert.h"

static void planar(const float *from, float *to, int64_t cols) {
    int64_t pixels = cols / 3;
    for (int64_t i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++) to[c * pixels + i] = from[3 * i + c];
}

/* The two branches are those of the reference implementation, whose results files hold. */
static float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

bool clt_source_row(const clt_source *s, int64_t row, float *dst, float *space) {
    if (!s->tensor) {
        memcpy(dst, s->made + row * s->cols, (size_t)s->cols * sizeof *dst);
        return true;
    }
    if (s->change == CLT_SWAP_ROWS) {
        int64_t other = s->rows / s->swap; /* b rows for each of the a first ones; out row = j * a + i */
        row = row % s->swap * other + row / s->swap;
    }
    if (!clt_file_decode_row(s->file, s->tensor, row, s->change == CLT_PLANAR ? space : dst)) return false;
    if (s->change == CLT_PLANAR) planar(space, dst, s->cols);
    for (int64_t i = 0; i < s->cols && s->change == CLT_PLUS_ONE; i++) dst[i] += 1.0f;
    for (int64_t i = 0; i < s->cols && s->change == CLT_SOFTPLUS; i++) dst[i] = softplus(dst[i]);
    return true;
}
