/* The sound tower against the reference: both kinds, from both forms of file; and that nothing but sound and weights decides
 * a bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "forward/audio.h"
#include "golden.h"

/* A tower of `path`, for the text model of `text`. */
typedef struct tower {
    clt_file *file, *text_file;
    clt_model text;
    clt_audio_model model;
    clt_pool *pool;
    clt_audio *a;
} tower;

static void must(clt_status st, const clt_err *err) {
    if (st != CLT_OK) fail_msg("%s", err->text);
}

static clt_file *open_golden(const char *path) {
    clt_err err;
    clt_file *f;
    char full[1024];
    golden_path(full, path, NULL);
    clt_status st = clt_file_open(full, &f, &err);
    if (st == CLT_E_UNSUPPORTED) skip(); /* a build that cannot read folders */
    must(st, &err);
    return f;
}

static tower tower_open(const char *path, const char *text, clt_cpu_level level, int threads) {
    static tower t;
    clt_err err;
    t = (tower){.file = open_golden(path), .text_file = open_golden(text)};
    must(clt_model_bind(t.text_file, &t.text, &err), &err);
    must(clt_audio_bind(t.file, &t.text, &t.model, &err), &err);
    must(clt_pool_create(threads, &t.pool, &err), &err);
    must(clt_audio_create(&t.model, clt_kernels_get(level), t.pool, &t.a, &err), &err);
    return t;
}

static void tower_close(tower *t) {
    clt_audio_free(t->a);
    clt_pool_free(t->pool);
    clt_audio_model_free(&t->model);
    clt_model_free(&t->text);
    clt_file_close(t->file), clt_file_close(t->text_file);
}

static float *soft_of(const tower *t, const float *x, int64_t frames) {
    clt_err err;
    float *soft = malloc((size_t)(clt_audio_tokens(&t->model.config, frames) * t->model.config.text_width) * sizeof *soft);
    must(clt_audio_run(t->a, x, frames, soft, NULL, NULL, &err), &err);
    return soft;
}

static void near(const float *got, const float *want, int64_t n, double limit, const char *what) {
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double error = fabs((double)got[i] - (double)want[i]) - 1e-3 * fabs((double)want[i]);
        worst = error > worst || isnan(error) ? error : worst;
    }
    if (!(worst <= limit)) fail_msg("%s: error %g, allowed %g", what, worst, limit);
}

/* ---- against the reference ---- */

enum { CHIRP_FRAMES = 112, CHIRP_TOKENS = 28 };
static const char audio_dir[] = "tiny-audio", audio_mmproj[] = "tiny-audio/gguf/tiny-audio-mmproj-f32.gguf";
/* The sound tower alone: feed-forwards, queries and relative keys in Q8_0, other matrices in F16 and BF16. */
static const char audio_mixed[] = "tiny-audio/gguf/tiny-audio-mmproj-mixed.gguf";
static const char unified_dir[] = "tiny-unified", unified_mmproj[] = "tiny-unified/gguf/tiny-unified-mmproj-f32.gguf";

typedef struct hidden { const float *want; int64_t rows; int seen; } hidden; /* rows: of the reference, one of them masked */

static void compare_hidden(void *user, const char *stage, int layer, const float *x, int64_t rows, int64_t width) {
    hidden *h = user;
    assert_string_equal(stage, layer < 0 ? "subsampled" : "layer");
    assert_int_equal(layer + 1, h->seen++);
    near(x, h->want + (layer + 1) * h->rows * width, rows * width, 5e-4, stage);
}

static void check_conformer(const char *path) {
    size_t n, n_soft, n_hidden;
    clt_err err;
    float *mel = golden_array(audio_dir, "sound.chirp.features.f32", &n);
    float *want = golden_array(audio_dir, "sound.chirp.soft.f32", &n_soft), *soft = malloc(n_soft * sizeof *soft);
    float *states = golden_array(audio_dir, "sound.chirp.hidden.f32", &n_hidden);
    tower t = tower_open(path, audio_dir, golden_best_level(), 2);
    const clt_audio_config *c = &t.model.config;
    assert_int_equal(clt_audio_tokens(c, CHIRP_FRAMES), CHIRP_TOKENS);
    assert_int_equal(n_soft, CHIRP_TOKENS * c->text_width);
    hidden h = {states, (int64_t)n_hidden / (c->layers + 1) / c->width, 0};
    must(clt_audio_run_probed(t.a, mel, CHIRP_FRAMES, soft, compare_hidden, &h, &err), &err);
    assert_int_equal(h.seen, c->layers + 1);
    near(soft, want, (int64_t)n_soft, 5e-4, path);
    tower_close(&t);
    free(mel), free(want), free(soft), free(states);
}

static void test_conformer(void **state) {
    (void)state;
    check_conformer(audio_dir);
}

static void test_conformer_of_a_vision_file(void **state) {
    (void)state;
    check_conformer(audio_mmproj);
}

/* Rounded weights and inputs of 8 bits: near, and not the same. */
static void test_quantised_conformer(void **state) {
    (void)state;
    size_t n, n_soft;
    double off = 0, size = 0;
    float *mel = golden_array(audio_dir, "sound.chirp.features.f32", &n);
    float *want = golden_array(audio_dir, "sound.chirp.soft.f32", &n_soft);
    tower t = tower_open(audio_mixed, audio_dir, golden_best_level(), 2);
    float *soft = soft_of(&t, mel, CHIRP_FRAMES);
    for (size_t i = 0; i < n_soft; i++) {
        off += pow((double)soft[i] - (double)want[i], 2);
        size += pow((double)want[i], 2);
    }
    if (!(sqrt(off / size) > 1e-4 && sqrt(off / size) < 2e-2)) fail_msg("relative error %g", sqrt(off / size));
    tower_close(&t);
    free(mel), free(want), free(soft);
}

static void check_unified(const char *path) {
    size_t n, n_soft;
    float *frames = golden_array(unified_dir, "sound.chirp.features.f32", &n);
    float *want = golden_array(unified_dir, "sound.chirp.soft.f32", &n_soft);
    tower t = tower_open(path, unified_dir, golden_best_level(), 2);
    assert_int_equal(n_soft, 29 * t.model.config.text_width);
    float *soft = soft_of(&t, frames, 18080); /* the last frame holds 160 samples */
    near(soft, want, (int64_t)n_soft, 2e-4, path);
    tower_close(&t);
    free(frames), free(want), free(soft);
}

static void test_unified(void **state) {
    (void)state;
    check_unified(unified_dir);
}

static void test_unified_of_a_vision_file(void **state) {
    (void)state;
    check_unified(unified_mmproj);
}

/* ---- bits ---- */

static void test_levels_and_threads_change_no_bit(void **state) {
    (void)state;
    const char *const paths[] = {audio_mmproj, unified_mmproj, audio_mixed};
    const char *const texts[] = {audio_dir, unified_dir, audio_dir};
    size_t n;
    for (int kind = 0; kind < 3; kind++) {
        float *x = golden_array(texts[kind], "sound.chirp.features.f32", &n), *want = NULL;
        int64_t frames = kind == 1 ? 18080 : CHIRP_FRAMES;
        for (int level = 0; level < CLT_CPU_LEVELS; level++)
            for (int threads = 1; threads <= 4 && clt_kernels_get((clt_cpu_level)level); threads++) {
                tower t = tower_open(paths[kind], texts[kind], (clt_cpu_level)level, threads);
                int64_t numbers = clt_audio_tokens(&t.model.config, frames) * t.model.config.text_width;
                float *soft = soft_of(&t, x, frames);
                if (want) assert_memory_equal(soft, want, (size_t)numbers * sizeof *soft);
                else want = soft, soft = NULL;
                free(soft);
                tower_close(&t);
            }
        free(x), free(want);
    }
}

/* A row hears what came before it, the half of a row that sub-sampling looks ahead, and nothing later. */
static void test_rows_do_not_hear_the_future(void **state) {
    (void)state;
    size_t n;
    float *mel = golden_array(audio_dir, "sound.chirp.features.f32", &n);
    tower t = tower_open(audio_mmproj, audio_dir, golden_best_level(), 2);
    int64_t d = t.model.config.text_width;
    float *whole = soft_of(&t, mel, CHIRP_FRAMES);
    for (int64_t frames = 1; frames < CHIRP_FRAMES; frames += 5) {
        float *part = soft_of(&t, mel, frames);
        int64_t same = (frames - 3) / 4;
        if (same > 0) assert_memory_equal(part, whole, (size_t)(same * d) * sizeof *part);
        free(part);
    }
    tower_close(&t);
    free(mel), free(whole);
}

/* More rows than are computed together; silence; what does not fill a frame. */
static void test_unified_lengths(void **state) {
    (void)state;
    enum { MOST = 640 * 600 + 17 };
    tower t = tower_open(unified_mmproj, unified_dir, golden_best_level(), 2);
    int64_t d = t.model.config.text_width;
    float *x = calloc(MOST, sizeof *x);
    for (int64_t i = 640; i < MOST; i++) x[i] = sinf((float)i * 0.05f) * (float)(i % 977) / 977;
    float *whole = soft_of(&t, x, MOST);
    for (int64_t i = 0; i < d; i++) assert_true(whole[i] == 0); /* silence divides by no zero */
    for (int64_t r = 0; r < 601; r += 100) {
        float *one = soft_of(&t, x + r * 640, MOST - r * 640 < 640 ? MOST - r * 640 : 640);
        assert_memory_equal(one, whole + r * d, (size_t)d * sizeof *one);
        free(one);
    }
    assert_int_equal(clt_audio_tokens(&t.model.config, 1), 1);
    assert_int_equal(clt_audio_tokens(&t.model.config, 640), 1);
    assert_int_equal(clt_audio_tokens(&t.model.config, 641), 2);
    assert_int_equal(clt_audio_tokens(&t.model.config, 0), 0);
    tower_close(&t);
    free(x), free(whole);
}

/* ---- lengths, cancelling, memory ---- */

static void test_tokens(void **state) {
    (void)state;
    const clt_audio_config c = {.kind = CLT_AUDIO_CONFORMER};
    const int64_t known[][2] = {{99, 25}, {2999, 750}, {1, 1}, {4, 1}, {5, 2}, {0, 0}, {112, 28}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_int_equal(clt_audio_tokens(&c, known[i][0]), known[i][1]);
}

static bool count_down(void *user) { return --*(int *)user >= 0; }

static void test_cancelling(void **state) {
    (void)state;
    clt_err err;
    size_t n;
    long live = clt_mem_live();
    float *mel = golden_array(audio_dir, "sound.chirp.features.f32", &n), *soft = malloc(CHIRP_TOKENS * 64 * sizeof *soft);
    tower t = tower_open(audio_mmproj, audio_dir, golden_best_level(), 2);
    assert_int_equal(t.model.config.text_width, 64);
    for (int left = 0; left <= t.model.config.layers; left++) {
        int count = left;
        clt_status st = clt_audio_run(t.a, mel, CHIRP_FRAMES, soft, count_down, &count, &err);
        assert_int_equal(st, left < t.model.config.layers ? CLT_E_CANCELLED : CLT_OK);
    }
    assert_int_equal(clt_audio_run(t.a, mel, 0, soft, NULL, NULL, &err), CLT_E_FAILED);
    tower_close(&t);
    free(mel), free(soft);
    assert_int_equal(clt_mem_live(), live);
}

static void test_memory_that_fails(void **state) {
    (void)state;
    clt_err err;
    size_t n;
    float *mel = golden_array(audio_dir, "sound.chirp.features.f32", &n), *soft = malloc(CHIRP_TOKENS * 64 * sizeof *soft);
    tower t = tower_open(audio_mmproj, audio_dir, golden_best_level(), 2);
    long live = clt_mem_live();
    clt_status st = CLT_E_MEMORY;
    for (long fail_at = 1; st != CLT_OK; fail_at++) {
        clt_audio *a = NULL;
        clt_mem_fail_after(fail_at);
        st = clt_audio_create(&t.model, clt_kernels_get(golden_best_level()), t.pool, &a, &err);
        if (st == CLT_OK) st = clt_audio_run(a, mel, CHIRP_FRAMES, soft, NULL, NULL, &err);
        clt_mem_fail_after(0);
        assert_true(st == CLT_OK || st == CLT_E_MEMORY);
        clt_audio_free(a);
        assert_int_equal(clt_mem_live(), live);
        assert_true(fail_at < 200);
    }
    tower_close(&t);
    free(mel), free(soft);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conformer), cmocka_unit_test(test_conformer_of_a_vision_file),
        cmocka_unit_test(test_quantised_conformer), cmocka_unit_test(test_unified),
        cmocka_unit_test(test_unified_of_a_vision_file), cmocka_unit_test(test_levels_and_threads_change_no_bit),
        cmocka_unit_test(test_rows_do_not_hear_the_future), cmocka_unit_test(test_unified_lengths),
        cmocka_unit_test(test_tokens), cmocka_unit_test(test_cancelling), cmocka_unit_test(test_memory_that_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
