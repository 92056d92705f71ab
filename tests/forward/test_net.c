/* What stands around a pass: planned bytes, failing allocations, loading that is cancelled, passes that are cancelled. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "golden.h"

static const char *const models[] = {"tiny-e2b/gguf/tiny-e2b-Q4_0.gguf", "tiny-dense/gguf/tiny-dense-Q4_0.gguf",
                                     "tiny-moe/gguf/tiny-moe-Q4_0.gguf", "tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf",
                                     "tiny-e/gguf/tiny-e-Q4_K_M.gguf"};
enum { N_MODELS = sizeof models / sizeof *models, N = 90 };

static void test_plans_are_kept(void **state) {
    (void)state;
    static clt_err err;
    for (int m = 0; m < N_MODELS; m++) {
        golden g;
        golden_open(&g, models[m], GOLDEN_DEFAULTS);
        assert_int_equal(clt_net_bytes(g.net), clt_net_plan_bytes(&g.model));
        assert_int_equal(clt_scratch_bytes(g.scratch), clt_scratch_plan_bytes(&g.model, 64, 2));
        for (int rows = 1; rows < 600; rows += 149) {
            clt_scratch *s;
            assert_int_equal(clt_scratch_create(g.net, rows, &s, &err), CLT_OK);
            assert_int_equal(clt_scratch_bytes(s), clt_scratch_plan_bytes(&g.model, rows, 2));
            clt_scratch_free(s);
        }
        golden_close(&g);
    }
}

static clt_status create_all(const golden *g, clt_net **net, clt_scratch **s, clt_kv **kv, clt_err *err) {
    clt_status st = clt_net_create(&g->model, clt_kernels_get(golden_best_level()), g->pool, NULL, NULL, net, err);
    if (st == CLT_OK) st = clt_scratch_create(*net, 32, s, err);
    if (st == CLT_OK) st = clt_kv_create(&g->model, 200, 32, CLT_F16, CLT_Q8_0, kv, err);
    return st;
}

static void test_failing_allocations(void **state) {
    (void)state;
    static clt_err err;
    for (int m = 0; m < N_MODELS; m++) {
        golden g;
        golden_open(&g, models[m], GOLDEN_DEFAULTS);
        long total = 0, live = clt_mem_live();
        for (long n = 0; n <= total; n++) {
            clt_net *net = NULL;
            clt_scratch *s = NULL;
            clt_kv *kv = NULL;
            long start = clt_mem_count();
            clt_mem_fail_after(n); /* first never, to count them */
            clt_status st = create_all(&g, &net, &s, &kv, &err);
            clt_mem_fail_after(0);
            if (!n) total = clt_mem_count() - start;
            if (st != (n ? CLT_E_MEMORY : CLT_OK))
                fail_msg("%s: allocation %ld of %ld gave %s", models[m], n, total, clt_status_name(st));
            clt_kv_free(kv), clt_scratch_free(s), clt_net_free(net);
            if (clt_mem_live() != live) fail_msg("%s: allocation %ld of %ld leaks", models[m], n, total);
        }
        assert_true(total > 8);
        golden_close(&g);
    }
}

typedef struct watch { int calls, stop_at; double last; } watch;

static bool on_progress(void *user, double done) {
    watch *w = user;
    assert_true(done > w->last && done <= 1);
    w->last = done;
    return ++w->calls != w->stop_at;
}

static void test_loading_is_cancelled(void **state) {
    (void)state;
    static clt_err err;
    golden g;
    golden_open(&g, models[2], GOLDEN_DEFAULTS);
    watch w = {0};
    clt_net *net;
    const clt_kernels *k = clt_kernels_get(golden_best_level());
    assert_int_equal(clt_net_create(&g.model, k, g.pool, on_progress, &w, &net, &err), CLT_OK);
    assert_true(w.calls > 10 && w.last == 1);
    clt_net_free(net);
    long live = clt_mem_live();
    for (int stop = 1, all = w.calls; stop <= all; stop += 7) {
        w = (watch){.stop_at = stop};
        assert_int_equal(clt_net_create(&g.model, k, g.pool, on_progress, &w, &net, &err), CLT_E_CANCELLED);
        assert_int_equal(w.calls, stop);
        assert_null(net);
        assert_int_equal(clt_mem_live(), live);
    }
    golden_close(&g);
}

/* ---- passes ---- */

typedef struct brake { atomic_int stop; int layer; } brake;

static void pull(void *user, const char *stage, int layer, const float *x, int rows, int64_t width) {
    (void)stage, (void)x, (void)rows, (void)width;
    brake *b = user;
    if (layer == b->layer) atomic_store(&b->stop, 1);
}

/* Two timelines run on in one pass; logits of both last rows. */
static clt_status run_pair(golden *g, clt_kv *const kv[2], int32_t shift, const atomic_int *cancel, float *logits) {
    static clt_err err;
    clt_row rows[40];
    for (int i = 0; i < 40; i++)
        rows[i] = (clt_row){.kv = kv[i >= 25], .id = (i * 37 + shift) % g->vocab, .want_logits = i == 24 || i == 39};
    return clt_forward(g->net, g->scratch, rows, 40, logits, cancel, &err);
}

/* A pass that ends after any of its layers has not happened: also where it wrote over what the ring held. */
static void test_a_cancelled_pass_leaves_no_trace(void **state) {
    (void)state;
    static clt_err err;
    for (int m = 0; m < N_MODELS; m++) {
        golden g;
        golden_open(&g, models[m], GOLDEN_DEFAULTS);
        size_t bytes = 2 * (size_t)g.vocab * sizeof(float);
        float *want = malloc(bytes), *got = malloc(bytes);
        clt_kv *kv[2], *spare[2];
        assert_true(want && got);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(clt_kv_create(&g.model, 2000, 64, CLT_F32, CLT_F32, &kv[i], &err), CLT_OK);
            assert_int_equal(clt_kv_create(&g.model, 2000, 64, CLT_F32, CLT_F32, &spare[i], &err), CLT_OK);
        }
        for (int step = 0; step < 2 * g.model.config.layers; step++) {
            int first = clt_kv_length(kv[0]), second = clt_kv_length(kv[1]);
            assert_int_equal(run_pair(&g, spare, step, NULL, want), CLT_OK);
            brake b = {.layer = step % g.model.config.layers - 1};
            clt_scratch_set_probe(g.scratch, pull, &b);
            assert_int_equal(run_pair(&g, kv, step + 1, &b.stop, got), CLT_E_CANCELLED);
            clt_scratch_set_probe(g.scratch, NULL, NULL);
            assert_true(clt_kv_length(kv[0]) == first && clt_kv_length(kv[1]) == second);
            atomic_store(&b.stop, 0);
            assert_int_equal(run_pair(&g, kv, step, &b.stop, got), CLT_OK);
            assert_memory_equal(got, want, bytes);
        }
        for (int i = 0; i < 2; i++) clt_kv_free(kv[i]), clt_kv_free(spare[i]);
        free(want), free(got);
        golden_close(&g);
    }
}

static void test_a_pass_allocates_nothing(void **state) {
    (void)state;
    golden g;
    golden_open(&g, models[2], GOLDEN_DEFAULTS);
    int32_t ids[N];
    float *logits = malloc((size_t)N * (size_t)g.vocab * sizeof *logits);
    for (int i = 0; i < N; i++) ids[i] = i % g.vocab;
    long count = clt_mem_count();
    golden_run(&g, ids, N, 64, true, logits);
    golden_run(&g, ids, 5, 1, false, logits);
    assert_int_equal(clt_mem_count(), count);
    free(logits);
    golden_close(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_are_kept),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_loading_is_cancelled),
        cmocka_unit_test(test_a_cancelled_pass_leaves_no_trace),
        cmocka_unit_test(test_a_pass_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
