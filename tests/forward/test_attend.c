/* Attention by both of its roads, tiles and waves: the same bits for any number of rows, with long pasts, with gaps between
 * rows and with several timelines in one pass. */
#include <stdlib.h>
#include <string.h>

#include "golden.h"

static const char *const models[] = {"tiny-e2b/gguf/tiny-e2b-Q4_0.gguf", "tiny-dense/gguf/tiny-dense-Q4_0.gguf",
                                     "tiny-moe/gguf/tiny-moe-Q4_0.gguf", "tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf"};
enum { N_MODELS = sizeof models / sizeof *models, FAR = 4200 };

static void make_ids(int32_t *ids, int n, int vocab) {
    uint32_t x = 4;
    for (int i = 0; i < n; i++) ids[i] = (int32_t)((x = x * 1664525u + 1013904223u) >> 8) % vocab;
}

/* 66 chunks of keys are more than one wave; few rows go by waves, many by tiles. */
static void test_waves_and_tiles_agree_far_out(void **state) {
    (void)state;
    static const int counts[] = {1, 2, 3, 7, 15, 31, 63};
    for (int threads = 1; threads <= 2; threads++) {
        golden g;
        golden_options o = GOLDEN_DEFAULTS;
        o.context = FAR, o.max_rows = 128, o.threads = threads, o.k_type = o.v_type = CLT_F16;
        golden_open(&g, models[3], o);
        int32_t *ids = malloc(FAR * sizeof *ids);
        size_t bytes = (size_t)g.vocab * sizeof(float);
        float *want = malloc(bytes), *got = malloc(bytes);
        assert_true(ids && want && got);
        make_ids(ids, FAR, g.vocab);
        golden_run(&g, ids, FAR, 128, false, want);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            assert_true(clt_kv_rewind(g.kv, FAR - counts[c]));
            golden_run(&g, ids + FAR - counts[c], counts[c], counts[c], false, got);
            assert_memory_equal(got, want, bytes);
        }
        free(ids), free(want), free(got);
        golden_close(&g);
    }
}

/* Only every `step`-th row is wanted: those that stay have gaps between them. */
static void test_gaps_between_wanted_rows(void **state) {
    (void)state;
    enum { N = 100 };
    for (int m = 0; m < N_MODELS; m++) {
        static clt_err err;
        golden g;
        golden_options o = GOLDEN_DEFAULTS;
        o.max_rows = N;
        golden_open(&g, models[m], o);
        int32_t ids[N];
        size_t bytes = (size_t)g.vocab * sizeof(float);
        float *want = malloc(N * bytes), *got = malloc(N * bytes);
        assert_true(want && got);
        make_ids(ids, N, g.vocab);
        golden_run(&g, ids, N, N, true, want);
        for (int step = 2; step <= 70; step += 17) {
            clt_row rows[N];
            for (int i = 0; i < N; i++) rows[i] = (clt_row){.kv = g.kv, .id = ids[i], .want_logits = i % step == 1};
            clt_kv_rewind(g.kv, 0);
            assert_int_equal(clt_forward(g.net, g.scratch, rows, N, got, NULL, &err), CLT_OK);
            for (int i = 1, k = 0; i < N; i += step, k++)
                assert_memory_equal((char *)got + (size_t)k * bytes, (char *)want + (size_t)i * bytes, bytes);
        }
        clt_row rows[N]; /* and none at all: nothing is written, the keys are there */
        for (int i = 0; i < N; i++) rows[i] = (clt_row){.kv = g.kv, .id = ids[i], .want_logits = i == N - 1};
        clt_kv_rewind(g.kv, 0);
        memset(got, 0x55, bytes);
        assert_int_equal(clt_forward(g.net, g.scratch, rows, N - 1, got, NULL, &err), CLT_OK);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(((uint8_t *)got)[i], 0x55);
        assert_int_equal(clt_forward(g.net, g.scratch, rows + N - 1, 1, got, NULL, &err), CLT_OK);
        assert_memory_equal(got, (char *)want + (N - 1) * bytes, bytes);
        free(want), free(got);
        golden_close(&g);
    }
}

/* Timelines of different lengths; their rows fill tiles in part, go by waves, or both in one pass. */
static void test_several_timelines(void **state) {
    (void)state;
    enum { LINES = 4, ROWS = 64 };
    static const int past[LINES] = {0, 70, 131, 200}, more[LINES] = {17, 1, 31, 5};
    for (int m = 0; m < N_MODELS; m++) {
        static clt_err err;
        golden g;
        golden_open(&g, models[m], GOLDEN_DEFAULTS);
        int32_t ids[300];
        size_t bytes = (size_t)g.vocab * sizeof(float);
        float *want = malloc(ROWS * bytes), *got = malloc(ROWS * bytes);
        clt_kv *kv[LINES], *own = g.kv;
        clt_row rows[ROWS];
        int n = 0;
        assert_true(want && got);
        make_ids(ids, 300, g.vocab);
        for (int i = 0; i < LINES; i++) {
            assert_int_equal(clt_kv_create(&g.model, 300, ROWS, CLT_F32, CLT_F32, &kv[i], &err), CLT_OK);
            g.kv = kv[i];
            golden_run(&g, ids + i, past[i], ROWS, false, got);
            golden_run(&g, ids + i + past[i], more[i], ROWS, true, (float *)(void *)((char *)want + (size_t)n * bytes));
            assert_true(clt_kv_rewind(kv[i], past[i]));
            for (int r = 0; r < more[i]; r++)
                rows[n++] = (clt_row){.kv = kv[i], .id = ids[i + past[i] + r], .want_logits = true};
        }
        assert_int_equal(clt_forward(g.net, g.scratch, rows, n, got, NULL, &err), CLT_OK);
        assert_memory_equal(got, want, (size_t)n * bytes);
        for (int i = 0; i < LINES; i++) {
            assert_int_equal(clt_kv_length(kv[i]), past[i] + more[i]);
            clt_kv_free(kv[i]);
        }
        g.kv = own;
        free(want), free(got);
        golden_close(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waves_and_tiles_agree_far_out),
        cmocka_unit_test(test_gaps_between_wanted_rows),
        cmocka_unit_test(test_several_timelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
