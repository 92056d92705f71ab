/* Mel frames -> one row per token: two convolutions of 3 x 3 with stride 2 in time and frequency, each followed by a
 * LayerNorm over its channels and ReLU.
 *
 * A task makes a few tokens from end to end, so that the large result of the first convolution is never stored; the one
 * step of it that two tasks share is computed by both. Numbers of one step lie as [frequency][channel]. */
#include <string.h>
#include "forward/audio_impl.h"

enum { TASK_TOKENS = 8, TASK_STEPS = 2 * TASK_TOKENS + 1, TAPS = 3 };

typedef struct subsample {
    const clt_audio *a;
    const float *mel;      /* [frames][bands] */
    int64_t frames, tokens;
    float *out;            /* [tokens][frequencies of the second][channels of the second] */
    float *work;           /* [threads][work_floats] */
} subsample;

static int half(int64_t n) { return (int)((n + 1) / 2); }

static int64_t step_floats(const clt_audio *a) { return (int64_t)half(a->config->bands) * a->conv[0].mat.rows; }

static int64_t patch_floats(const clt_audio *a, int stage) {
    int rows = half(stage ? half(a->config->bands) : a->config->bands);
    return rows * a->conv[stage].mat.cols;
}

static int64_t work_floats(const clt_audio *a) {
    int64_t first = patch_floats(a, 0), second = patch_floats(a, 1);
    return TASK_STEPS * step_floats(a) + (first > second ? first : second);
}

/* The 3 x 3 neighbourhood of every second number of a step: patch [ceil(width / 2)][3 steps][3 places][channels], zero
 * outside. src [3]: the steps, NULL outside. */
static void gather(const float *const src[TAPS], int width, int64_t channels, float *patch) {
    size_t place = (size_t)channels * sizeof(float);
    for (int f = 0; f < half(width); f++)
        for (int t = 0; t < TAPS; t++)
            for (int k = 0; k < TAPS; k++, patch += channels) {
                int at = 2 * f + k - 1;
                if (src[t] && at >= 0 && at < width) memcpy(patch, src[t] + at * channels, place);
                else memset(patch, 0, place);
            }
}

/* LayerNorm without bias over n channels, then ReLU. */
static void normalise(const clt_audio *a, const float *w, float *x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    float mean = (float)(sum / (double)n);
    for (int64_t i = 0; i < n; i++) x[i] -= mean;
    a->k->rms_norm(x, w, a->config->rms_eps, x, n);
    for (int64_t i = 0; i < n; i++) x[i] = x[i] > 0 ? x[i] : 0;
}

/* One step of the output of a convolution: y [ceil(width / 2)][channels]. */
static void convolve(const clt_audio *a, int stage, const float *const src[TAPS], int width, float *patch, float *y) {
    const clt_audio_conv *c = &a->conv[stage];
    int rows = half(width);
    gather(src, width, c->mat.cols / (TAPS * TAPS), patch);
    clt_acts acts = {.cols = c->mat.cols, .x = patch, .ldx = c->mat.cols};
    a->k->matmul(&c->mat, &acts, rows, y, c->mat.rows, 0, clt_mat_panels(&c->mat));
    for (int f = 0; f < rows; f++) normalise(a, c->norm, y + f * c->mat.rows, c->mat.rows);
}

static void make_tokens(void *ctx, int task, int thread) {
    const subsample *s = ctx;
    const clt_audio *a = s->a;
    int bands = a->config->bands, width = half(bands);
    int64_t step = step_floats(a), token = half(width) * a->conv[1].mat.rows, first_steps = (s->frames + 1) / 2;
    int64_t t0 = (int64_t)task * TASK_TOKENS, t1 = t0 + TASK_TOKENS < s->tokens ? t0 + TASK_TOKENS : s->tokens;
    float *steps = s->work + thread * work_floats(a), *patch = steps + TASK_STEPS * step;
    const float *src[TAPS];
    for (int64_t u = 2 * t0 - 1; u < 2 * t1; u++) { /* of the first convolution; outside stays unused */
        if (u < 0 || u >= first_steps) continue;
        for (int k = 0; k < TAPS; k++) {
            int64_t at = 2 * u + k - 1;
            src[k] = at >= 0 && at < s->frames ? s->mel + at * bands : NULL;
        }
        convolve(a, 0, src, bands, patch, steps + (u - (2 * t0 - 1)) * step);
    }
    for (int64_t t = t0; t < t1; t++) {
        for (int k = 0; k < TAPS; k++) {
            int64_t u = 2 * t + k - 1;
            src[k] = u >= 0 && u < first_steps ? steps + (u - (2 * t0 - 1)) * step : NULL;
        }
        convolve(a, 1, src, width, patch, s->out + t * token);
    }
}

int64_t clt_audio_subsample_work(const clt_audio *a) { return clt_pool_threads(a->pool) * work_floats(a); }

void clt_audio_subsample(const clt_audio *a, const float *mel, int64_t frames, float *work, float *out) {
    int64_t tokens = clt_audio_tokens(a->config, frames);
    subsample s = {a, mel, frames, tokens, out, work};
    clt_pool_run(a->pool, make_tokens, &s, (int)((tokens + TASK_TOKENS - 1) / TASK_TOKENS));
}

bool clt_audio_pack_conv(clt_audio *a, int stage, const float *weights) {
    clt_audio_conv *c = &a->conv[stage];
    int64_t out = a->config->channels[stage], in = stage ? a->config->channels[0] : 1, cols = in * TAPS * TAPS;
    size_t bytes = clt_mat_panel_bytes(CLT_F32, cols);
    c->mat = (clt_mat){CLT_F32, out, cols, NULL, bytes};
    int64_t panels = clt_mat_panels(&c->mat);
    uint8_t *packed = clt_arena_alloc(a->arena, (size_t)panels * bytes, 64);
    float *order = clt_alloc((size_t)(out * cols) * sizeof *order);
    if (!packed || !order) {
        clt_free(order);
        return false;
    }
    for (int64_t o = 0; o < out; o++) /* the file has [out][in][time][frequency] */
        for (int64_t i = 0; i < in; i++)
            for (int64_t k = 0; k < TAPS * TAPS; k++) order[o * cols + k * in + i] = weights[(o * in + i) * TAPS * TAPS + k];
    clt_mat_pack(CLT_F32, out, cols, (const uint8_t *)order, packed, 0, panels);
    clt_free(order);
    c->mat.data = packed;
    return true;
}
