/* Keys and values of one timeline: what rings keep, how far back one can go, and that export and import lose nothing. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "forward/internal.h"
#include "golden.h"

static const char *const models[] = {"tiny-e2b/gguf/tiny-e2b-Q4_0.gguf", "tiny-dense/gguf/tiny-dense-Q4_0.gguf",
                                     "tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf"};
enum { N_MODELS = sizeof models / sizeof *models, ROWS = 16, LONG = 420, MORE = 9 };
static const clt_type types[] = {CLT_F32, CLT_F16, CLT_Q8_0};

static void make_ids(int32_t *ids, int n, int vocab) {
    uint32_t x = 99;
    for (int i = 0; i < n; i++) ids[i] = (int32_t)((x = x * 1664525u + 1013904223u) >> 8) % vocab;
}

static golden_options small(clt_type t) {
    golden_options o = GOLDEN_DEFAULTS;
    o.max_rows = ROWS, o.context = 1000, o.k_type = t, o.v_type = t;
    return o;
}

static void test_plans_are_kept(void **state) {
    (void)state;
    static clt_err err;
    golden g;
    golden_open(&g, models[0], small(CLT_F32));
    for (int t = 0; t < 3; t++)
        for (int context = 1; context < 3000; context += 333) {
            clt_kv *kv;
            uint64_t sum = 0;
            assert_int_equal(clt_kv_create(&g.model, context, ROWS, types[t], types[(t + 1) % 3], &kv, &err), CLT_OK);
            assert_int_equal(clt_kv_bytes(kv), clt_kv_plan_bytes(&g.model, context, ROWS, types[t], types[(t + 1) % 3]));
            for (int l = 0; l < g.model.config.layers; l++) {
                assert_int_equal(kv->layer[l].data != NULL, g.model.config.layer[l].own_kv);
                if (kv->layer[l].data) assert_true(kv->layer[l].chunks * CLT_ATTN_CHUNK >= (context < 88 ? context : 88));
                sum += kv->layer[l].data ? kv->layer[l].bytes : 0;
            }
            assert_int_equal(sum, clt_kv_bytes(kv));
            clt_kv_free(kv);
        }
    golden_close(&g);
}

/* Every length that is said to be within reach is, and no other but 0. */
static void test_how_far_back(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        golden g;
        golden_open(&g, models[m], small(CLT_F16));
        int32_t ids[LONG];
        float *logits = malloc((size_t)g.vocab * sizeof *logits);
        assert_non_null(logits);
        make_ids(ids, LONG, g.vocab);
        golden_run(&g, ids, 100, ROWS, false, logits);
        assert_int_equal(clt_kv_rewind_min(g.kv), 0); /* the ring has not wrapped */
        golden_run(&g, ids + 100, LONG - 100, ROWS, false, logits);
        int min = clt_kv_rewind_min(g.kv);
        assert_true(min > 0 && min <= LONG - 64); /* the slack for drafts, at least */
        assert_false(clt_kv_rewind(g.kv, LONG + 1) || clt_kv_rewind(g.kv, -1));
        for (int n = 1; n < min; n++) assert_false(clt_kv_rewind(g.kv, n));
        assert_int_equal(clt_kv_length(g.kv), LONG);
        for (int n = LONG; n >= min; n--) {
            assert_true(clt_kv_rewind(g.kv, n));
            assert_int_equal(clt_kv_length(g.kv), n);
            assert_int_equal(clt_kv_rewind_min(g.kv), min);
        }
        assert_false(clt_kv_rewind(g.kv, min - 1));
        assert_true(clt_kv_rewind(g.kv, 0));
        assert_int_equal(clt_kv_rewind_min(g.kv), 0);
        free(logits);
        golden_close(&g);
    }
}

static void test_a_rewound_timeline_gives_the_same_bits(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++)
        for (int t = 0; t < 3; t++) {
            golden g;
            golden_open(&g, models[m], small(types[t]));
            int32_t ids[LONG], other[LONG];
            size_t bytes = (size_t)g.vocab * sizeof(float);
            float *want = malloc(bytes), *got = malloc(bytes);
            assert_true(want && got);
            make_ids(ids, LONG, g.vocab);
            for (int i = 0; i < LONG; i++) other[i] = (ids[i] + 1) % g.vocab;
            golden_run(&g, ids, LONG, ROWS, false, want);
            int min = clt_kv_rewind_min(g.kv);
            for (int back = 0; back < 3; back++) { /* each time after other tokens stood there */
                int n = back == 0 ? min : back == 1 ? min + 1 : LONG - 1;
                assert_true(clt_kv_rewind(g.kv, n));
                golden_run(&g, other + n, LONG - n, ROWS, false, got);
                assert_true(memcmp(got, want, bytes) != 0);
                assert_true(clt_kv_rewind(g.kv, n));
                golden_run(&g, ids + n, LONG - n, back == 1 ? 1 : ROWS, false, got);
                assert_memory_equal(got, want, bytes);
            }
            free(want), free(got);
            golden_close(&g);
        }
}

static void round_trip(golden *g, const golden_options *o, const int32_t *ids, int n) {
    static clt_err err;
    size_t bytes = (size_t)g->vocab * sizeof(float);
    float *want = malloc(bytes), *got = malloc(bytes);
    clt_kv_rewind(g->kv, 0);
    golden_run(g, ids, n, ROWS, false, want);
    uint64_t size = clt_kv_export_bytes(g->kv);
    uint8_t *saved = malloc(size + 1), *again = malloc(size + 1);
    assert_true(want && got && saved && again);
    saved[size] = again[size] = 0xA5;
    clt_kv_export(g->kv, saved);
    assert_int_equal(saved[size], 0xA5);
    golden_run(g, ids + n, MORE, ROWS, false, want);
    clt_kv *first = g->kv;
    /* into another context and another ring, over what stood there before */
    assert_int_equal(clt_kv_create(&g->model, n + MORE, 2 * ROWS, o->k_type, o->v_type, &g->kv, &err), CLT_OK);
    golden_run(g, ids + 1, n < 5 ? n : 5, ROWS, false, got);
    int before = clt_kv_length(g->kv);
    assert_int_equal(clt_kv_import(g->kv, n, saved, size - 1, &err), CLT_E_FILE);
    assert_int_equal(clt_kv_import(g->kv, n, saved, size + 1, &err), CLT_E_FILE);
    assert_int_equal(clt_kv_import(g->kv, n, saved, 0, &err), CLT_E_FILE);
    assert_int_equal(clt_kv_import(g->kv, n + MORE + 1, saved, size, &err), CLT_E_FILE);
    assert_int_equal(clt_kv_import(g->kv, -1, saved, size, &err), CLT_E_FILE);
    assert_int_equal(clt_kv_import(g->kv, 0, saved, size, &err), CLT_E_FILE);
    assert_int_equal(clt_kv_length(g->kv), before);
    assert_int_equal(clt_kv_import(g->kv, n, saved, size, &err), CLT_OK);
    assert_int_equal(clt_kv_length(g->kv), n);
    assert_true(clt_kv_rewind_min(g->kv) <= n && clt_kv_rewind(g->kv, n));
    assert_int_equal(clt_kv_export_bytes(g->kv), size);
    clt_kv_export(g->kv, again);
    assert_memory_equal(again, saved, size + 1);
    golden_run(g, ids + n, MORE, ROWS, false, got);
    assert_memory_equal(got, want, bytes);
    /* rings hold again what was saved, and nothing before it */
    assert_int_equal(clt_kv_import(g->kv, n, saved, size, &err), CLT_OK);
    int min = clt_kv_rewind_min(g->kv), held = (n - g->kv->window + 1) / CLT_ATTN_CHUNK * CLT_ATTN_CHUNK;
    assert_int_equal(min, held > 0 ? held + g->kv->window - 1 : 0);
    if (min > 1) assert_false(clt_kv_rewind(g->kv, 1) || clt_kv_rewind(g->kv, min - 1));
    assert_true(clt_kv_rewind(g->kv, min));
    golden_run(g, ids + min, n + MORE - min, ROWS, false, got);
    assert_memory_equal(got, want, bytes);
    assert_int_equal(clt_kv_import(g->kv, 0, NULL, 0, &err), CLT_OK);
    assert_int_equal(clt_kv_export_bytes(g->kv), 0);
    clt_kv_free(g->kv);
    g->kv = first;
    free(want), free(got), free(saved), free(again);
}

static void test_export_and_import(void **state) {
    (void)state;
    static const int lengths[] = {1, 7, 8, 9, 63, 64, 65, 71, 72, 191, 192, 193, 300, LONG - MORE};
    for (int m = 0; m < N_MODELS; m++)
        for (int t = 0; t < 3; t++) {
            golden g;
            golden_options o = small(types[t]);
            golden_open(&g, models[m], o);
            int32_t ids[LONG];
            make_ids(ids, LONG, g.vocab);
            for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) round_trip(&g, &o, ids, lengths[i]);
            golden_close(&g);
        }
}

static void test_a_full_context_is_refused(void **state) {
    (void)state;
    static clt_err err;
    golden g;
    golden_options o = small(CLT_F32);
    o.context = 10;
    golden_open(&g, models[0], o);
    clt_row rows[ROWS];
    float *logits = malloc((size_t)g.vocab * sizeof *logits);
    for (int i = 0; i < ROWS; i++) rows[i] = (clt_row){.kv = g.kv, .id = i, .want_logits = false};
    assert_int_equal(clt_forward(g.net, g.scratch, rows, 11, logits, NULL, &err), CLT_E_CONTEXT);
    assert_int_equal(clt_kv_length(g.kv), 0);
    assert_int_equal(clt_forward(g.net, g.scratch, rows, 10, logits, NULL, &err), CLT_OK);
    assert_int_equal(clt_forward(g.net, g.scratch, rows, 1, logits, NULL, &err), CLT_E_CONTEXT);
    clt_kv_rewind(g.kv, 0);
    rows[3].id = g.vocab;
    assert_int_equal(clt_forward(g.net, g.scratch, rows, 5, logits, NULL, &err), CLT_E_USAGE);
    rows[3].id = -1;
    assert_int_equal(clt_forward(g.net, g.scratch, rows, 5, logits, NULL, &err), CLT_E_USAGE);
    assert_int_equal(clt_kv_length(g.kv), 0);
    free(logits);
    golden_close(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_are_kept),
        cmocka_unit_test(test_how_far_back),
        cmocka_unit_test(test_a_rewound_timeline_gives_the_same_bits),
        cmocka_unit_test(test_export_and_import),
        cmocka_unit_test(test_a_full_context_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
