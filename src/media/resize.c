/* Resizing: bicubic (a = -0.5) with antialiasing, first along rows, then along columns, each pass rounded to bytes.
 *
 * Weights are rounded to 22 bits behind the point, sums are integers: the result is the same on every machine, and that of
 * the reference's picture library, which computes so, too. */
#include <math.h>
#include <string.h>
#include "base/mem.h"
#include "media/picture.h"

enum { BITS = 22, CHANNELS = 3 };

/* Which pixels make up one pixel of the result, and with what weights. */
typedef struct taps {
    int n;          /* room for each pixel of the result */
    int *first, *count; /* [result] */
    int32_t *weight;    /* [result][n] */
} taps;

static double cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

static void taps_free(taps *t) {
    clt_free(t->first), clt_free(t->count), clt_free(t->weight);
}

/* Weights of result pixel i from `in` pixels, `scale` of them wide. */
static void fill(taps *t, int i, int in, double scale, double *w) {
    double wide = scale < 1 ? 1 : scale, support = 2 * wide, center = (i + 0.5) * scale, sum = 0;
    int first = (int)(center - support + 0.5), last = (int)(center + support + 0.5);
    if (first < 0) first = 0;
    if (last > in) last = in;
    int n = last - first;
    for (int k = 0; k < n; k++) sum += w[k] = cubic((k + first - center + 0.5) / wide);
    for (int k = 0; k < n; k++) {
        double exact = (sum != 0 ? w[k] / sum : w[k]) * (1 << BITS);
        t->weight[(int64_t)i * t->n + k] = (int32_t)(exact < 0 ? exact - 0.5 : exact + 0.5);
    }
    t->first[i] = first, t->count[i] = n;
}

static bool taps_make(taps *t, int in, int out) {
    double scale = (double)in / out, *w;
    *t = (taps){.n = (int)ceil(2 * (scale < 1 ? 1 : scale)) * 2 + 1};
    t->first = clt_calloc((size_t)out, sizeof *t->first), t->count = clt_calloc((size_t)out, sizeof *t->count);
    t->weight = clt_calloc((size_t)out * (size_t)t->n, sizeof *t->weight);
    w = clt_calloc((size_t)t->n, sizeof *w);
    bool ok = t->first && t->count && t->weight && w;
    for (int i = 0; ok && i < out; i++) fill(t, i, in, scale, w);
    clt_free(w);
    return ok;
}

static uint8_t to_byte(int32_t sum) {
    int32_t v = sum >> BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* One row of pixels, `out` of them. */
static void along_row(const taps *t, const uint8_t *from, int out, uint8_t *to) {
    for (int i = 0; i < out; i++, to += CHANNELS) {
        const int32_t *w = t->weight + (int64_t)i * t->n;
        const uint8_t *p = from + (int64_t)t->first[i] * CHANNELS;
        int32_t r = 1 << (BITS - 1), g = r, b = r;
        for (int k = 0; k < t->count[i]; k++, p += CHANNELS) r += p[0] * w[k], g += p[1] * w[k], b += p[2] * w[k];
        to[0] = to_byte(r), to[1] = to_byte(g), to[2] = to_byte(b);
    }
}

/* Row i of the result from the rows of `from`, n bytes each; sums [n]. */
static void along_columns(const taps *t, const uint8_t *from, int i, int64_t n, int32_t *sums, uint8_t *to) {
    const int32_t *w = t->weight + (int64_t)i * t->n;
    for (int64_t x = 0; x < n; x++) sums[x] = 1 << (BITS - 1);
    for (int k = 0; k < t->count[i]; k++) {
        const uint8_t *row = from + (t->first[i] + k) * n;
        for (int64_t x = 0; x < n; x++) sums[x] += row[x] * w[k];
    }
    for (int64_t x = 0; x < n; x++) to[x] = to_byte(sums[x]);
}

static clt_status both_passes(const clt_picture *p, clt_picture *out, clt_err *err) {
    int64_t row = (int64_t)out->width * CHANNELS;
    taps x = {0}, y = {0};
    uint8_t *between = clt_alloc((size_t)row * (size_t)p->height);
    int32_t *sums = clt_calloc((size_t)row, sizeof *sums);
    bool ok = between && sums && taps_make(&x, p->width, out->width) && taps_make(&y, p->height, out->height);
    for (int i = 0; ok && i < p->height; i++)
        along_row(&x, p->rgb + (int64_t)i * p->width * CHANNELS, out->width, between + i * row);
    for (int i = 0; ok && i < out->height; i++) along_columns(&y, between, i, row, sums, out->rgb + i * row);
    taps_free(&x), taps_free(&y);
    clt_free(between), clt_free(sums);
    return ok ? CLT_OK : clt_fail_memory(err, "a resized picture", (size_t)row * (size_t)p->height);
}

clt_status clt_picture_resize(const clt_picture *p, int width, int height, clt_picture *out, clt_err *err) {
    size_t bytes = (size_t)width * (size_t)height * CHANNELS;
    *out = (clt_picture){width, height, clt_alloc(bytes)};
    if (!out->rgb) return clt_fail_memory(err, "a resized picture", bytes);
    clt_status st = CLT_OK;
    if (width == p->width && height == p->height) memcpy(out->rgb, p->rgb, bytes);
    else st = both_passes(p, out, err);
    if (st != CLT_OK) clt_picture_free(out);
    return st;
}
