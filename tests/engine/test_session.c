/* Sessions: the numbers of the golden models through the public interface; equal bits from every chunking, thread count and
 * road to the same tokens (N1, N2); limits; cancellation; a token loop that allocates nothing. */
#include "engine/tiny.h"
#include <math.h>
#include <pthread.h>
#include "base/mem.h"
#include "base/os.h"

enum { V = 1280 };

static void sync_to(culet_session *s, const int32_t *ids, size_t n, size_t want_reused) {
    culet_error err;
    size_t reused = 999999;
    if (culet_session_sync(s, ids, n, &reused, &err) != CULET_OK) fail_msg("%s", err.text);
    assert_int_equal(reused, want_reused);
    size_t len;
    assert_memory_equal(culet_session_tokens(s, &len), ids, n * sizeof *ids);
    assert_int_equal(len, n);
    assert_non_null(culet_session_logits(s));
}

static void assert_logits(culet_session *s, const float *want) {
    assert_non_null(culet_session_logits(s));
    assert_memory_equal(culet_session_logits(s), want, V * sizeof *want);
}

/* The logits after ids, from a session of its own. */
static void fresh_logits(culet_engine *e, culet_kv_type kv, const int32_t *ids, size_t n, float *out) {
    culet_session *s = tiny_session_kv(e, 512, 0, kv);
    sync_to(s, ids, n, 0);
    memcpy(out, culet_session_logits(s), V * sizeof *out);
    culet_session_close(s);
}

/* ---- truth ---- */

typedef struct rows {
    const float *want;
    size_t n;
    double worst; /* error in units of the tolerance */
} rows;

static bool compare_row(void *user, size_t row, const float *logits) {
    rows *r = user;
    assert_int_equal(row, r->n);
    for (int i = 0; i < V; i++) {
        double want = (double)r->want[row * V + (size_t)i];
        double error = fabs((double)logits[i] - want) / (2e-3 + 1e-3 * fabs(want));
        if (!(error <= r->worst)) r->worst = error;
    }
    r->n++;
    return true;
}

static void check_golden(const char *model) {
    char name[128];
    clt_err inner;
    culet_error err;
    clt_buf file = {0};
    culet_engine *e = tiny_open(model, CULET_OPEN_FULL, 2);
    culet_session *s = tiny_session(e, 512, 0);
    tiny_ids ids = tiny_golden(model, "main", "prompt_ids");
    snprintf(name, sizeof name, "%s/main.logits.f32", model);
    assert_int_equal(clt_read_file(tiny_path(name), 1 << 24, &file, &inner), CLT_OK);
    rows r = {.want = (const float *)(void *)file.data};
    assert_int_equal(culet_session_logits_all(s, ids.data, ids.n, compare_row, &r, &err), CULET_OK);
    assert_int_equal(r.n, ids.n);
    assert_true(r.worst <= 1);
    assert_non_null(culet_session_logits(s));
    clt_buf_free(&file);
    culet_session_close(s);
    culet_engine_close(e);
}

static void test_golden_logits(void **state) {
    (void)state;
    check_golden("tiny-gemma3");
    check_golden("tiny-unified");
}

/* ---- N1, N2 ---- */

typedef struct all_rows {
    float *logits;
    size_t n;
} all_rows;

static bool keep_row(void *user, size_t row, const float *logits) {
    all_rows *a = user;
    memcpy(a->logits + row * V, logits, V * sizeof *logits);
    a->n = row + 1;
    return true;
}

static void check_chunks(culet_engine *e, culet_kv_type kv, const tiny_ids *ids, const float *want) {
    static const int chunks[] = {1, 2, 3, 7, 32, 64, 128, 512};
    all_rows got = {.logits = calloc(ids->n * V, sizeof(float))};
    assert_non_null(got.logits);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        culet_error err;
        culet_session *s = tiny_session_kv(e, 512, chunks[i], kv);
        memset(got.logits, 0, ids->n * V * sizeof(float));
        assert_int_equal(culet_session_logits_all(s, ids->data, ids->n, keep_row, &got, &err), CULET_OK);
        assert_memory_equal(got.logits, want, ids->n * V * sizeof(float));
        culet_session_close(s);
        s = tiny_session_kv(e, 512, chunks[i], kv); /* the way of sync, which skips logits in between */
        sync_to(s, ids->data, ids->n, 0);
        assert_logits(s, want + (ids->n - 1) * V);
        culet_session_close(s);
    }
    free(got.logits);
}

static void check_bits(const char *model, const char *name) {
    static const int threads[] = {1, 2, 3, 4, 8};
    tiny_ids ids = tiny_golden(model, "long", "prompt_ids");
    float *want = calloc(ids.n * V, sizeof *want);
    assert_non_null(want);
    for (int kv = CULET_KV_F32; kv <= CULET_KV_Q8_0; kv++) {
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            culet_engine *e = tiny_open(name, CULET_OPEN_FULL, threads[t]);
            if (t == 0) {
                culet_error err;
                all_rows first = {.logits = want};
                culet_session *s = tiny_session_kv(e, 512, 0, (culet_kv_type)kv);
                assert_int_equal(culet_session_logits_all(s, ids.data, ids.n, keep_row, &first, &err), CULET_OK);
                culet_session_close(s);
                check_chunks(e, (culet_kv_type)kv, &ids, want);
            } else {
                culet_session *s = tiny_session_kv(e, 512, 64, (culet_kv_type)kv);
                sync_to(s, ids.data, ids.n, 0);
                assert_logits(s, want + (ids.n - 1) * V);
                culet_session_close(s);
            }
            culet_engine_close(e);
        }
    }
    free(want);
}

static void test_bits_of_a_float_model(void **state) {
    (void)state;
    check_bits("tiny-gemma3", "tiny-gemma3");
}

static void test_bits_of_a_quantised_model(void **state) {
    (void)state;
    check_bits("tiny-e", "tiny-e/gguf/tiny-e-Q4_K_M.gguf");
}

/* ---- roads to the same tokens ---- */

static void test_roads(void **state) {
    (void)state;
    culet_error err;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 2);
    tiny_ids a = tiny_golden("tiny-gemma3", "long", "prompt_ids"), b;
    for (size_t i = 0; a.n < 400; i++) a.data[a.n++] = a.data[1 + i * 7 % 180]; /* beyond what the rings hold */
    b = a;
    float want_all[V], want_half[V], want_b[V];
    fresh_logits(e, CULET_KV_F16, a.data, a.n, want_all);
    fresh_logits(e, CULET_KV_F16, a.data, a.n / 2, want_half);
    b.data[a.n - 3]++; /* another ending */
    fresh_logits(e, CULET_KV_F16, b.data, b.n, want_b);
    assert_memory_not_equal(want_all, want_b, sizeof want_b);

    culet_session *s = tiny_session_kv(e, 512, 16, CULET_KV_F16);
    sync_to(s, a.data, a.n, 0);
    assert_logits(s, want_all);
    sync_to(s, a.data, a.n, a.n); /* the same again: nothing to do */
    assert_logits(s, want_all);
    sync_to(s, b.data, b.n, b.n - 3); /* a step back */
    assert_logits(s, want_b);
    sync_to(s, a.data, a.n, a.n - 3);
    assert_logits(s, want_all);
    sync_to(s, a.data, a.n / 2, 0); /* further than sliding layers hold: from the beginning */
    assert_logits(s, want_half);
    assert_int_equal(culet_session_extend(s, a.data + a.n / 2, a.n - a.n / 2, &err), CULET_OK);
    assert_logits(s, want_all);

    assert_int_equal(culet_session_rewind(s, a.n - 1, &err), CULET_OK);
    assert_null(culet_session_logits(s));
    assert_int_equal(culet_session_extend(s, a.data + a.n - 1, 1, &err), CULET_OK);
    assert_logits(s, want_all);
    assert_int_equal(culet_session_rewind(s, 5, &err), CULET_OK);
    size_t n;
    culet_session_tokens(s, &n);
    assert_int_equal(n, 5);
    assert_int_equal(culet_session_extend(s, a.data + 5, a.n - 5, &err), CULET_OK);
    assert_logits(s, want_all);
    assert_int_equal(culet_session_rewind(s, 0, &err), CULET_OK);
    sync_to(s, b.data, b.n, 0);
    assert_logits(s, want_b);
    culet_session_close(s);
    culet_engine_close(e);
}

static void test_a_prefix_needs_its_last_token_only(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    tiny_ids a = tiny_golden("tiny-gemma3", "main", "prompt_ids");
    float want[V];
    culet_session *s = tiny_session(e, 512, 0);
    fresh_logits(e, CULET_KV_F32, a.data, a.n - 4, want);
    sync_to(s, a.data, a.n, 0);
    sync_to(s, a.data, a.n - 4, a.n - 5);
    assert_logits(s, want);
    culet_session_close(s);
    culet_engine_close(e);
}

static void test_step_by_step_gives_the_golden_ids(void **state) {
    (void)state;
    culet_error err;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 2);
    tiny_ids prompt = tiny_golden("tiny-gemma3", "mid", "prompt_ids");
    tiny_ids want = tiny_golden("tiny-gemma3", "mid", "greedy_ids");
    culet_session *s = tiny_session(e, 128, 0);
    sync_to(s, prompt.data, prompt.n, 0);
    long before = clt_mem_count();
    for (size_t i = 0; i < want.n; i++) {
        const float *logits = culet_session_logits(s);
        int32_t best = 0;
        for (int32_t id = 1; id < V; id++) best = logits[id] > logits[best] ? id : best;
        assert_int_equal(best, want.data[i]);
        assert_int_equal(culet_session_extend(s, &best, 1, &err), CULET_OK);
    }
    assert_int_equal(clt_mem_count(), before); /* the token loop allocates nothing */
    culet_session_close(s);
    culet_engine_close(e);
}

/* Two sessions that take turns do not see each other. */
static void test_sessions_are_apart(void **state) {
    (void)state;
    culet_error err;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 2);
    tiny_ids a = tiny_golden("tiny-gemma3", "main", "prompt_ids"), b = tiny_golden("tiny-gemma3", "mid", "prompt_ids");
    float want_a[V], want_b[V];
    fresh_logits(e, CULET_KV_F32, a.data, a.n, want_a);
    fresh_logits(e, CULET_KV_F32, b.data, b.n, want_b);
    culet_session *one = tiny_session(e, 64, 0), *two = tiny_session(e, 64, 0);
    for (size_t i = 0; i < a.n || i < b.n; i++) {
        if (i < a.n) assert_int_equal(culet_session_extend(one, a.data + i, 1, &err), CULET_OK);
        if (i < b.n) assert_int_equal(culet_session_extend(two, b.data + i, 1, &err), CULET_OK);
    }
    assert_logits(one, want_a);
    assert_logits(two, want_b);
    culet_session_close(one);
    culet_session_close(two);
    culet_engine_close(e);
}

typedef struct worker {
    culet_engine *e;
    tiny_ids ids;
    float logits[V];
} worker;

static void *work(void *arg) {
    worker *w = arg;
    culet_error err;
    culet_session *s;
    culet_session_params p = {.context = 256};
    if (culet_session_open(w->e, &p, &s, &err) != CULET_OK) return NULL;
    for (size_t i = 0; i < w->ids.n; i++)
        if (culet_session_extend(s, w->ids.data + i, 1, &err) != CULET_OK) break;
    if (culet_session_logits(s)) memcpy(w->logits, culet_session_logits(s), sizeof w->logits);
    culet_session_close(s);
    return NULL;
}

static void test_sessions_of_two_threads(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 2);
    worker w[2] = {{.e = e, .ids = tiny_golden("tiny-gemma3", "main", "prompt_ids")},
                   {.e = e, .ids = tiny_golden("tiny-gemma3", "mid", "prompt_ids")}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &w[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        float want[V];
        fresh_logits(e, CULET_KV_F32, w[i].ids.data, w[i].ids.n, want);
        assert_memory_equal(w[i].logits, want, sizeof want);
    }
    culet_engine_close(e);
}

/* ---- limits ---- */

static void test_limits(void **state) {
    (void)state;
    culet_error err;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    tiny_ids a = tiny_golden("tiny-gemma3", "main", "prompt_ids");
    culet_session *s = tiny_session(e, 20, 0);
    assert_int_equal(culet_session_context(s), 20);
    assert_int_equal(culet_session_sync(s, a.data, a.n, NULL, &err), CULET_CONTEXT);
    assert_non_null(strstr(err.text, "34"));
    assert_non_null(strstr(err.text, "20"));
    assert_int_equal(culet_status_exit(err.status), 1);
    assert_int_equal(culet_status_http(err.status), 400);
    sync_to(s, a.data, 20, 0);
    assert_int_equal(culet_session_extend(s, a.data, 1, &err), CULET_CONTEXT);
    assert_int_equal(culet_session_extend(s, a.data, 0, &err), CULET_USAGE);
    static const int32_t outside[] = {-1, V, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        int32_t bad[2] = {2, outside[i]};
        assert_int_equal(culet_session_sync(s, bad, 2, NULL, &err), CULET_USAGE);
        assert_non_null(strstr(err.text, "position 1"));
    }
    size_t n;
    culet_session_tokens(s, &n);
    assert_int_equal(n, 20); /* refusals change nothing */
    assert_non_null(culet_session_logits(s));
    assert_int_equal(culet_session_rewind(s, 21, &err), CULET_USAGE);
    assert_int_equal(culet_session_sync(s, a.data, 0, &n, &err), CULET_OK); /* an empty timeline has no logits */
    assert_int_equal(n, 0);
    assert_null(culet_session_logits(s));
    culet_session_close(s);
    culet_engine_close(e);
}

static void open_refused(culet_engine *e, culet_session_params p, culet_status status) {
    culet_error err;
    culet_session *s = (culet_session *)&err;
    assert_int_equal(culet_session_open(e, &p, &s, &err), status);
    assert_null(s);
    assert_true(err.text[0] != 0);
}

static void test_parameters(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    int limit = culet_engine_info(e)->context_limit;
    open_refused(e, (culet_session_params){.context = -1}, CULET_USAGE);
    open_refused(e, (culet_session_params){.context = limit + 1}, CULET_USAGE);
    open_refused(e, (culet_session_params){.batch = -1}, CULET_USAGE);
    open_refused(e, (culet_session_params){.ubatch = -2}, CULET_USAGE);
    open_refused(e, (culet_session_params){.kv_k = (culet_kv_type)7}, CULET_UNSUPPORTED);
    culet_session_params p;
    culet_session_defaults(&p);
    assert_int_equal(p.kv_k, CULET_KV_F16);
    culet_session *s = tiny_session(e, 0, 0);
    assert_int_equal(culet_session_context(s), limit < 8192 ? limit : 8192);
    culet_session *f16 = tiny_session_kv(e, 0, 0, CULET_KV_F16), *q8 = tiny_session_kv(e, 0, 0, CULET_KV_Q8_0);
    assert_true(culet_session_kv_bytes(f16) < culet_session_kv_bytes(s));
    assert_true(culet_session_kv_bytes(q8) < culet_session_kv_bytes(f16));
    assert_null(culet_session_logits(s));
    culet_session_close(s);
    culet_session_close(f16);
    culet_session_close(q8);
    culet_session_close(NULL);
    culet_engine_close(e);
}

static void test_sessions_need_weights(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_INSPECT, 1);
    open_refused(e, (culet_session_params){.context = 16}, CULET_USAGE);
    culet_engine_close(e);
}

/* ---- cancellation ---- */

typedef struct stopper {
    culet_session *s;
    size_t at;
} stopper;

static bool cancel_at(void *user, size_t row, const float *logits) {
    stopper *st = user;
    (void)logits;
    if (row == st->at) culet_session_cancel(st->s);
    return true;
}

static bool refuse_at(void *user, size_t row, const float *logits) {
    (void)logits;
    return row != ((stopper *)user)->at;
}

static void test_cancel(void **state) {
    (void)state;
    culet_error err;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    tiny_ids a = tiny_golden("tiny-gemma3", "long", "prompt_ids");
    float want[V];
    fresh_logits(e, CULET_KV_F32, a.data, a.n, want);
    culet_session *s = tiny_session(e, 512, 8);
    stopper st = {.s = s, .at = 20};
    size_t n;
    assert_int_equal(culet_session_logits_all(s, a.data, a.n, cancel_at, &st, &err), CULET_CANCELLED);
    assert_int_equal(culet_status_exit(err.status), 130);
    culet_session_tokens(s, &n);
    assert_int_equal(n, 24); /* the chunk in which it was asked for */
    sync_to(s, a.data, a.n, 24); /* goes on as if nothing had happened */
    assert_logits(s, want);
    assert_int_equal(culet_session_logits_all(s, a.data, a.n, refuse_at, &st, &err), CULET_CANCELLED);
    sync_to(s, a.data, a.n, 24);
    assert_logits(s, want);
    culet_session_cancel(s); /* while nothing runs: too early to count */
    sync_to(s, a.data, 30, 29);
    culet_session_close(s);
    culet_engine_close(e);
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_logits),
        cmocka_unit_test(test_bits_of_a_float_model),
        cmocka_unit_test(test_bits_of_a_quantised_model),
        cmocka_unit_test(test_roads),
        cmocka_unit_test(test_a_prefix_needs_its_last_token_only),
        cmocka_unit_test(test_step_by_step_gives_the_golden_ids),
        cmocka_unit_test(test_sessions_are_apart),
        cmocka_unit_test(test_sessions_of_two_threads),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_sessions_need_weights),
        cmocka_unit_test(test_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
