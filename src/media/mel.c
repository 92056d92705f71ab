/* Samples at 16 kHz -> log-mel features, as the models were trained on them.
 *
 * Everything is double until the last rounding, by written operations: the same bits on every machine. A frame's bits
 * depend on its own samples alone. */
#include <math.h>
#include "base/exact.h"
#include "media/sound.h"

enum {
    WINDOW = 320, HOP = 160, FFT = 512, FFT_BITS = 9, BINS = FFT / 2 + 1, TOP_HZ = 8000,
    SPAN = WINDOW + 1 /* the reference counts frames by one sample more than it uses */
};

typedef struct tables {
    double window[WINDOW];
    double turn[FFT];         /* cos and sin of k/FFT of a turn, k < FFT / 2 */
    double weight[2 * BINS];  /* of the triangles, one after the other: each bin lies below at most two */
    int first[CLT_MEL_BANDS], bins[CLT_MEL_BANDS], at[CLT_MEL_BANDS];
    uint16_t reversed[FFT];
} tables;

/* Triangles with linear sides in Hz between neighbours of equal distance in mel = 2595 log10(1 + f / 700), height 1. The
 * lowest hold no bin at all. */
static void make_triangles(tables *t) {
    double corner[CLT_MEL_BANDS + 2], bits = clt_exact_log2(1.0 + TOP_HZ / 700.0);
    for (int i = 0; i < CLT_MEL_BANDS + 2; i++)
        corner[i] = 700.0 * (clt_exact_exp2(bits * i / (CLT_MEL_BANDS + 1)) - 1.0);
    int used = 0;
    for (int b = 0; b < CLT_MEL_BANDS; b++) {
        double low = corner[b], top = corner[b + 1], high = corner[b + 2];
        t->at[b] = used, t->first[b] = t->bins[b] = 0;
        for (int k = 0; k < BINS; k++) {
            double hz = k * (double)TOP_HZ / (BINS - 1), up = (hz - low) / (top - low), down = (high - hz) / (high - top);
            double w = up < down ? up : down;
            if (w <= 0) continue;
            if (!t->bins[b]++) t->first[b] = k;
            t->weight[used++] = w;
        }
    }
}

static void make_tables(tables *t) {
    const double turn = 6.283185307179586;
    double s, c;
    for (int n = 0; n < WINDOW; n++) {
        clt_exact_sincos(turn * n / WINDOW, &s, &c);
        t->window[n] = 0.5 - 0.5 * c;
    }
    for (int k = 0; k < FFT / 2; k++) clt_exact_sincos(turn * k / FFT, &t->turn[2 * k + 1], &t->turn[2 * k]);
    for (int i = 0; i < FFT; i++) {
        int r = 0;
        for (int bit = 0; bit < FFT_BITS; bit++) r |= (i >> bit & 1) << (FFT_BITS - 1 - bit);
        t->reversed[i] = (uint16_t)r;
    }
    make_triangles(t);
}

/* In place, decimation in time; z [FFT] (real, imaginary), already in bit-reversed order. */
static void transform(const tables *t, double *z) {
    for (int half = 1; half < FFT; half *= 2)
        for (int start = 0; start < FFT; start += 2 * half)
            for (int k = 0; k < half; k++) {
                const double *w = &t->turn[2 * k * (FFT / 2 / half)];
                double *a = &z[2 * (start + k)], *b = a + 2 * half;
                double re = b[0] * w[0] + b[1] * w[1], im = b[1] * w[0] - b[0] * w[1];
                b[0] = a[0] - re, b[1] = a[1] - im;
                a[0] += re, a[1] += im;
            }
}

/* The frame that begins at sample `at`, which may lie before the first. */
static void frame(const tables *t, const float *samples, int64_t at, float *out) {
    double z[2 * FFT] = {0}, magnitude[BINS];
    for (int i = 0; i < WINDOW; i++)
        if (at + i >= 0) z[2 * t->reversed[i]] = samples[at + i] * t->window[i];
    transform(t, z);
    for (int k = 0; k < BINS; k++) magnitude[k] = sqrt(z[2 * k] * z[2 * k] + z[2 * k + 1] * z[2 * k + 1]);
    for (int b = 0; b < CLT_MEL_BANDS; b++) {
        double mel = 0;
        for (int i = 0; i < t->bins[b]; i++) mel += t->weight[t->at[b] + i] * magnitude[t->first[b] + i];
        out[b] = (float)(clt_exact_log2(mel + 1e-3) * CLT_LN2);
    }
}

int64_t clt_mel_frames(int64_t n) { return n < HOP + 1 ? 0 : (n + HOP - SPAN) / HOP + 1; }

clt_status clt_mel_features(const float *samples, int64_t n, float *out, clt_err *err) {
    tables t;
    int64_t frames = clt_mel_frames(n);
    if (!frames)
        return clt_fail(err, CLT_E_FAILED, "a sound of %.1f ms is too short: %.1f ms are the least",
                        (double)n * 1e3 / CLT_SOUND_RATE, (HOP + 1) * 1e3 / CLT_SOUND_RATE);
    make_tables(&t);
    for (int64_t f = 0; f < frames; f++) frame(&t, samples, (f - 1) * HOP, out + f * CLT_MEL_BANDS);
    return CLT_OK;
}
