/* Log-mel features against the reference's, and what their bits depend on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/os.h"
#include "media/sound.h"

enum { WAV_HEADER = 44 };

static clt_buf golden(const char *name) {
    clt_buf b = {0}, path = {0};
    clt_err err;
    clt_buf_printf(&path, CLT_TEST_DIR "/golden/%s", name);
    assert_int_equal(clt_read_file(path.data, 1 << 20, &b, &err), CLT_OK);
    clt_buf_free(&path);
    return b;
}

/* Samples of a wav file of 16 bits, without any library. */
static float *samples_of(const char *name, int64_t *n) {
    clt_buf b = golden(name);
    *n = (int64_t)(b.len - WAV_HEADER) / 2;
    float *x = malloc((size_t)*n * sizeof *x);
    for (int64_t i = 0; i < *n; i++) {
        int16_t v;
        memcpy(&v, b.data + WAV_HEADER + 2 * i, sizeof v);
        x[i] = (float)v / 32768.0f;
    }
    clt_buf_free(&b);
    return x;
}

static float *features_of(const float *x, int64_t n) {
    clt_err err;
    float *mel = malloc((size_t)clt_mel_frames(n) * CLT_MEL_BANDS * sizeof *mel);
    assert_int_equal(clt_mel_features(x, n, mel, &err), CLT_OK);
    return mel;
}

static void test_frames(void **state) {
    (void)state;
    const int64_t known[][2] = {{16000, 99}, {8000, 49}, {480000, 2999}, {320, 1}, {161, 1}, {160, 0},
                                {0, 0}, {321, 2}, {480, 2}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) assert_int_equal(clt_mel_frames(known[i][0]), known[i][1]);
}

static void test_reference(void **state) {
    (void)state;
    int64_t n;
    float *x = samples_of("sounds/chirp.wav", &n), *mel = features_of(x, n);
    clt_buf want = golden("models/tiny-audio/sound.chirp.features.f32");
    assert_int_equal(clt_mel_frames(n), 112);
    assert_true(want.len >= 112 * CLT_MEL_BANDS * sizeof(float));
    for (int64_t i = 0; i < 112 * CLT_MEL_BANDS; i++) {
        float w;
        memcpy(&w, want.data + i * (int64_t)sizeof w, sizeof w);
        assert_true(fabsf(mel[i] - w) < 1e-4f);
    }
    /* Written down once: no machine and no compiler may give other bits. */
    assert_int_equal(clt_hash64(mel, 112 * CLT_MEL_BANDS * sizeof *mel, 0), UINT64_C(0x65284ed533567451));
    clt_buf_free(&want);
    free(mel), free(x);
}

/* What stands before or behind a frame's window never shows in it. */
static void test_a_frame_knows_only_its_window(void **state) {
    (void)state;
    int64_t n;
    float *x = samples_of("sounds/chirp.wav", &n), *whole = features_of(x, n);
    for (int64_t cut = 161; cut < n; cut += 997) {
        float *part = features_of(x, cut);
        assert_memory_equal(part, whole, (size_t)clt_mel_frames(cut) * CLT_MEL_BANDS * sizeof *part);
        free(part);
    }
    float *later = features_of(x + 1600, n - 1600); /* its first frame begins with zeros, the second one does not */
    assert_memory_equal(later + CLT_MEL_BANDS, whole + 11 * CLT_MEL_BANDS, 50 * CLT_MEL_BANDS * sizeof *later);
    assert_memory_not_equal(later, whole + 10 * CLT_MEL_BANDS, CLT_MEL_BANDS * sizeof *later);
    free(later), free(whole), free(x);
}

/* A tone shows in the band that its frequency belongs to; silence is ln(1e-3) everywhere. */
static void test_tones(void **state) {
    (void)state;
    float x[1600] = {0};
    float *mel = features_of(x, 1600);
    for (int64_t i = 0; i < clt_mel_frames(1600) * CLT_MEL_BANDS; i++) assert_true(fabsf(mel[i] - logf(1e-3f)) < 1e-6f);
    free(mel);
    for (double hz = 300; hz < 7800; hz *= 1.37) {
        for (int i = 0; i < 1600; i++) x[i] = (float)sin(6.283185307179586 * hz * i / CLT_SOUND_RATE);
        mel = features_of(x, 1600);
        int best = 0;
        const float *row = mel + 5 * CLT_MEL_BANDS;
        for (int b = 1; b < CLT_MEL_BANDS; b++)
            if (row[b] > row[best]) best = b;
        double mels = log10(1 + hz / 700) / log10(1 + 8000 / 700.0) * (CLT_MEL_BANDS + 1) - 1;
        assert_true(fabs(best - mels) < 2);
        free(mel);
    }
}

static void test_too_short(void **state) {
    (void)state;
    clt_err err;
    float x[160] = {0}, out[CLT_MEL_BANDS];
    assert_int_equal(clt_mel_features(x, 160, out, &err), CLT_E_FAILED);
    assert_string_equal(err.text, "a sound of 10.0 ms is too short: 10.1 ms are the least");
    assert_int_equal(clt_mel_features(x, 0, out, &err), CLT_E_FAILED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames), cmocka_unit_test(test_reference),
                                       cmocka_unit_test(test_a_frame_knows_only_its_window), cmocka_unit_test(test_tones),
                                       cmocka_unit_test(test_too_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
