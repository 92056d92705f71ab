/* The sampler: draws against the exact distribution, truncation at its edges, penalties against values worked out by hand,
 * ids that never win, and independence of a draw from all others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "sample/exp.h"
#include "sample/sample.h"

enum { V = 1000, DRAWS = 5000 };

static clt_sampler *new_sampler(int32_t vocab) {
    clt_err err;
    clt_sampler *s;
    assert_int_equal(clt_sampler_create(vocab, &s, &err), CLT_OK);
    return s;
}

static clt_sample_params plain(void) {
    return (clt_sample_params){.temperature = 1, .top_p = 1, .repeat_penalty = 1, .seed = 7};
}

static int32_t pick_at(clt_sampler *s, const clt_sample_params *p, const float *logits, uint64_t position) {
    return clt_sampler_pick(s, p, logits, NULL, 0, position);
}

/* Logits without order, some of them equal. */
static void fill(float *logits, int n) {
    for (int i = 0; i < n; i++) logits[i] = (float)((i * 7919) % 997 % 90) / 10.0f - 4.0f;
}

static void fill_distinct(float *logits, int n) {
    for (int i = 0; i < n; i++) logits[i] = (float)((i * 7919) % n) * 0.01f;
}

/* The chain written down once more, slowly: probabilities of all ids. */
static void expected(const clt_sample_params *p, const float *logits, int n, double *prob) {
    bool *kept = calloc((size_t)n, sizeof *kept);
    int *order = calloc((size_t)n, sizeof *order);
    assert_true(kept && order);
    for (int i = 0; i < n; i++) { /* insertion sort: logit descending, id ascending */
        int at = i;
        for (; at > 0 && logits[order[at - 1]] < logits[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    double max = (double)logits[order[0]], total = 0, sum = 0;
    int limit = p->top_k > 0 && p->top_k < n ? p->top_k : n;
    for (int i = 0; i < limit; i++) total += exp((double)logits[order[i]] - max);
    for (int i = 0; i < limit; i++) {
        double w = exp((double)logits[order[i]] - max);
        if (i > 0 && p->top_p < 1 && sum >= (double)p->top_p * total) break;
        if (i > 0 && w < (double)p->min_p) break;
        kept[order[i]] = true;
        sum += w;
    }
    total = 0;
    for (int i = 0; i < n; i++) {
        prob[i] = kept[i] ? exp(((double)logits[i] - max) / (double)p->temperature) : 0;
        total += prob[i];
    }
    for (int i = 0; i < n; i++) prob[i] /= total;
    free(kept);
    free(order);
}

/* Pearson's statistic over ids with at least 5 expected draws, the others together; must lie within 5 standard deviations of
 * its mean. An id without probability must never come. */
static void assert_distribution(const clt_sample_params *p, const float *logits, int n) {
    double *prob = calloc((size_t)n, sizeof *prob), chi = 0, rest = 0;
    int *seen = calloc((size_t)n, sizeof *seen), bins = 0, rest_seen = 0;
    clt_sampler *s = new_sampler(n);
    assert_true(prob && seen);
    expected(p, logits, n, prob);
    for (uint64_t i = 0; i < DRAWS; i++) seen[pick_at(s, p, logits, i)]++;
    for (int i = 0; i < n; i++) {
        double want = prob[i] * DRAWS;
        if (prob[i] == 0) assert_int_equal(seen[i], 0);
        if (want >= 5) chi += (seen[i] - want) * (seen[i] - want) / want, bins++;
        else rest += want, rest_seen += seen[i];
    }
    if (rest >= 5) chi += (rest_seen - rest) * (rest_seen - rest) / rest, bins++;
    assert_true(bins >= 2);
    assert_true(chi < (bins - 1) + 5 * sqrt(2.0 * (bins - 1)));
    clt_sampler_free(s);
    free(prob);
    free(seen);
}

static void test_draws_follow_the_distribution(void **state) {
    (void)state;
    static const struct { float temperature; int top_k; float top_p, min_p; } cases[] = {
        {1, 0, 1, 0}, {0.7f, 0, 1, 0}, {2, 0, 1, 0}, {1, 64, 1, 0}, {1, 64, 0.95f, 0}, {1, 0, 0.5f, 0}, {1, 0, 1, 0.05f},
        {1.5f, 40, 0.9f, 0.1f}, {1, 300, 1, 0}, {1, 305, 0.8f, 0}, {1, 2, 1, 0}, {0.5f, 0, 0.999f, 0.001f}};
    enum { N = 300 };
    float logits[N];
    fill(logits, N);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            clt_sample_params p = plain();
            p.temperature = cases[i].temperature, p.top_k = cases[i].top_k, p.seed = seed;
            p.top_p = cases[i].top_p, p.min_p = cases[i].min_p;
            assert_distribution(&p, logits, N);
        }
}

/* Draws at one position are the quantile function of the seed's unit: top_k = V and off must agree, id by id. */
static void test_top_k_of_all_is_off(void **state) {
    (void)state;
    float logits[V];
    clt_sampler *s = new_sampler(V);
    clt_sample_params off = plain(), all = plain(), more = plain();
    fill(logits, V);
    all.top_k = V;
    more.top_k = V - 1; /* another way through the code; differs only where the last id is drawn */
    for (uint64_t i = 0; i < 500; i++) {
        assert_int_equal(pick_at(s, &off, logits, i), pick_at(s, &all, logits, i));
        assert_int_equal(pick_at(s, &off, logits, i), pick_at(s, &more, logits, i));
    }
    clt_sampler_free(s);
}

static void test_draw_depends_on_seed_and_position_alone(void **state) {
    (void)state;
    enum { N = 400 };
    float logits[V];
    int32_t forward[N], changed = 0;
    clt_sampler *s = new_sampler(V), *other = new_sampler(V);
    clt_sample_params p = plain(), q = plain();
    p.top_k = 64;
    q.top_k = 64;
    q.seed = 8;
    fill_distinct(logits, V);
    for (int i = 0; i < N; i++) forward[i] = pick_at(s, &p, logits, (uint64_t)i);
    for (int i = N; i-- > 0;) { /* backwards, in another sampler, with other draws between */
        changed += pick_at(other, &q, logits, (uint64_t)i) != forward[i];
        assert_int_equal(pick_at(other, &p, logits, (uint64_t)i), forward[i]);
    }
    assert_true(changed > N / 2);
    clt_sampler_free(s);
    clt_sampler_free(other);
}

/* ---- greedy ---- */

static void test_greedy_takes_the_first_of_the_largest(void **state) {
    (void)state;
    float logits[V];
    clt_sample_params p = plain();
    p.temperature = 0;
    for (int32_t n = 1; n <= V; n += n < 70 ? 1 : 31) { /* every rest of a block */
        clt_sampler *s = new_sampler(n);
        for (int32_t at = 0; at < n; at += n < 70 ? 1 : 13) {
            for (int i = 0; i < n; i++) logits[i] = -1;
            logits[at] = 3;
            if (at + 5 < n) logits[at + 5] = 3;
            assert_int_equal(pick_at(s, &p, logits, 0), at);
        }
        clt_sampler_free(s);
    }
}

static void test_top_k_1_is_greedy(void **state) {
    (void)state;
    float logits[V];
    clt_sampler *s = new_sampler(V);
    clt_sample_params p = plain();
    fill(logits, V);
    p.top_k = 1;
    int32_t best = 0;
    for (int i = 0; i < V; i++) best = logits[i] > logits[best] ? i : best;
    for (uint64_t i = 0; i < 50; i++) assert_int_equal(pick_at(s, &p, logits, i), best);
    clt_sampler_free(s);
}

static void test_nan_and_infinities(void **state) {
    (void)state;
    float logits[V];
    clt_sampler *s = new_sampler(V);
    clt_sample_params greedy = plain(), warm = plain(), top = plain();
    greedy.temperature = 0;
    top.top_k = 5;
    const clt_sample_params *all[] = {&greedy, &warm, &top};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < V; i++) logits[i] = NAN;
        assert_int_equal(pick_at(s, all[k], logits, 3), 0);
        for (int i = 0; i < V; i++) logits[i] = -INFINITY;
        assert_int_equal(pick_at(s, all[k], logits, 3), 0);
        logits[500] = -1e30f;
        logits[0] = NAN;
        for (uint64_t at = 0; at < 50; at++) assert_int_equal(pick_at(s, all[k], logits, at), 500);
        fill(logits, V);
        logits[17] = INFINITY;
        for (uint64_t at = 0; at < 50; at++) assert_int_equal(pick_at(s, all[k], logits, at), 17);
    }
    clt_sampler_free(s);
}

/* ---- truncation edges ---- */

static void assert_kept(const clt_sample_params *p, const float *logits, int n, const bool *kept) {
    clt_sampler *s = new_sampler(n);
    bool *seen = calloc((size_t)n, sizeof *seen);
    assert_non_null(seen);
    for (uint64_t i = 0; i < 4000; i++) seen[pick_at(s, p, logits, i)] = true;
    for (int i = 0; i < n; i++) assert_int_equal(seen[i], kept[i]);
    clt_sampler_free(s);
    free(seen);
}

static void test_top_p_keeps_the_id_that_crosses(void **state) {
    (void)state;
    /* 1/2, 1/4, 1/8, 1/8 up to rounding */
    float logits[4] = {logf(2), logf(8), logf(2), logf(4)};
    clt_sample_params p = plain();
    p.top_p = 0.49f;
    assert_kept(&p, logits, 4, (bool[]){false, true, false, false});
    p.top_p = 0.51f;
    assert_kept(&p, logits, 4, (bool[]){false, true, false, true});
    p.top_p = 0.76f; /* of two equal ids the smaller one */
    assert_kept(&p, logits, 4, (bool[]){true, true, false, true});
    p.top_p = 1e-6f;
    assert_kept(&p, logits, 4, (bool[]){false, true, false, false});
    p.top_p = 0.99f;
    assert_kept(&p, logits, 4, (bool[]){true, true, true, true});
}

static void test_min_p_is_relative_to_the_best(void **state) {
    (void)state;
    float logits[4] = {logf(2), logf(8), logf(2), logf(4)};
    clt_sample_params p = plain();
    p.min_p = 0.3f;
    assert_kept(&p, logits, 4, (bool[]){false, true, false, true});
    p.min_p = 0.2f;
    assert_kept(&p, logits, 4, (bool[]){true, true, true, true});
    p.min_p = 1;
    assert_kept(&p, logits, 4, (bool[]){false, true, false, false});
}

/* Top-p comes before temperature: heat does not let more ids in. */
static void test_temperature_comes_last(void **state) {
    (void)state;
    float logits[3] = {3, 0, -3};
    clt_sample_params p = plain();
    p.top_p = 0.9f;
    p.temperature = 50;
    assert_kept(&p, logits, 3, (bool[]){true, false, false});
    p.top_p = 1;
    assert_kept(&p, logits, 3, (bool[]){true, true, true});
}

static void test_ties_at_top_k_keep_the_smaller_ids(void **state) {
    (void)state;
    float logits[70];
    bool kept[70] = {false};
    for (int i = 0; i < 70; i++) logits[i] = i == 60 ? 1.0f : 0.0f;
    clt_sample_params p = plain();
    p.top_k = 4;
    kept[60] = kept[0] = kept[1] = kept[2] = true;
    assert_kept(&p, logits, 70, kept);
    p.bias_ids = (int32_t[]){60, 1}; /* the same when ids of the list are changed ones */
    p.bias_values = (float[]){-1, 0};
    p.n_bias = 2;
    kept[60] = false;
    kept[3] = true;
    assert_kept(&p, logits, 70, kept);
}

/* ---- bias, suppression, penalties: greedy picks show which logit is the largest ---- */

static int32_t greedy(clt_sample_params p, const float *logits, int n, const int32_t *history, size_t n_history) {
    clt_sampler *s = new_sampler(n);
    p.temperature = 0;
    int32_t first = clt_sampler_pick(s, &p, logits, history, n_history, 9);
    int32_t again = clt_sampler_pick(s, &p, logits, history, n_history, 9); /* nothing is left over from a pick */
    assert_int_equal(first, again);
    clt_sampler_free(s);
    return first;
}

static void test_bias_and_suppression(void **state) {
    (void)state;
    float logits[4] = {1, 4, 2, 3};
    clt_sample_params p = plain();
    p.suppressed = (int32_t[]){1, 99, -1};
    p.n_suppressed = 3;
    assert_int_equal(greedy(p, logits, 4, NULL, 0), 3);
    p.bias_ids = (int32_t[]){1, 3, 0, 0};
    p.bias_values = (float[]){1000, -INFINITY, 0.75f, 0.5f};
    p.n_bias = 4;
    assert_int_equal(greedy(p, logits, 4, NULL, 0), 0); /* no bias revives a suppressed id; two on one id add up: 2.25 */
    p.n_bias = 3;
    assert_int_equal(greedy(p, logits, 4, NULL, 0), 2);
}

static void test_repeat_penalty(void **state) {
    (void)state;
    float logits[3] = {4, 2.5f, -1};
    int32_t history[] = {0, 0, 2};
    clt_sample_params p = plain();
    p.repeat_last_n = -1;
    p.repeat_penalty = 1.5f; /* 4 / 1.5 = 2.67, whatever the count */
    assert_int_equal(greedy(p, logits, 3, history, 3), 0);
    p.repeat_penalty = 2; /* 4 / 2 = 2 < 2.5 */
    assert_int_equal(greedy(p, logits, 3, history, 3), 1);
    p.repeat_last_n = 1; /* sees only id 2 */
    assert_int_equal(greedy(p, logits, 3, history, 3), 0);
    p.repeat_last_n = 0;
    assert_int_equal(greedy(p, logits, 3, history, 3), 0);
    float negative[2] = {-1, -1.5f}; /* a negative logit is multiplied: -2 */
    p.repeat_last_n = 64;
    assert_int_equal(greedy(p, negative, 2, history, 3), 1);
}

static void test_presence_and_frequency(void **state) {
    (void)state;
    float logits[3] = {4, 3, 2.4f};
    int32_t history[] = {0, 0, 0, 1, 77, -5};
    clt_sample_params p = plain();
    p.repeat_last_n = -1;
    p.presence_penalty = 1.5f; /* 2.5, 1.5, 2.4 */
    assert_int_equal(greedy(p, logits, 3, history, 6), 0);
    p.presence_penalty = 1.7f; /* 2.3, 1.3, 2.4 */
    assert_int_equal(greedy(p, logits, 3, history, 6), 2);
    p.presence_penalty = 0;
    p.frequency_penalty = 0.5f; /* 2.5, 2.5, 2.4: the smaller id of equals */
    assert_int_equal(greedy(p, logits, 3, history, 6), 0);
    p.frequency_penalty = 0.55f; /* 2.35, 2.45, 2.4 */
    assert_int_equal(greedy(p, logits, 3, history, 6), 1);
    p.presence_penalty = 0.5f; /* 1.85, 1.95, 2.4 */
    assert_int_equal(greedy(p, logits, 3, history, 6), 2);
}

/* ---- ids that are allowed ---- */

/* What is not allowed might as well be suppressed: the same id, drawn or greedy, for every setting. */
static void test_allowed_ids(void **state) {
    (void)state;
    float logits[V];
    uint64_t allowed[(V + 63) / 64];
    int32_t banned[V], bias_ids[] = {1, 500, 998}, history[] = {2, 2, 500, 7};
    float bias_values[] = {9, 3, 4};
    clt_sampler *s = new_sampler(V);
    fill(logits, V);
    for (int i = 0; i < 300; i++) {
        clt_sample_params p = plain(), q;
        size_t n_banned = 0;
        memset(allowed, 0, sizeof allowed);
        for (int32_t id = 0; id < V; id++) {
            bool in = (id * 7919 + i * 17) % (2 + i % 40) == 0;
            if (in) allowed[id / 64] |= UINT64_C(1) << id % 64;
            else banned[n_banned++] = id;
        }
        p.temperature = i % 5 == 0 ? 0 : 0.8f;
        p.top_k = i % 3 * 20;
        p.top_p = i % 2 ? 0.9f : 1;
        p.min_p = i % 7 == 0 ? 0.05f : 0;
        p.repeat_penalty = 1.2f;
        p.repeat_last_n = -1;
        p.bias_ids = bias_ids;
        p.bias_values = bias_values;
        p.n_bias = 3;
        q = p;
        p.allowed = allowed;
        q.suppressed = banned;
        q.n_suppressed = n_banned;
        int32_t id = clt_sampler_pick(s, &p, logits, history, 4, (uint64_t)i);
        assert_int_equal(id, clt_sampler_pick(s, &q, logits, history, 4, (uint64_t)i));
        assert_true(allowed[id / 64] >> id % 64 & 1);
    }
    clt_sampler_free(s);
}

static void test_best_of_all_wins_if_allowed(void **state) {
    (void)state;
    float logits[V];
    uint64_t allowed[(V + 63) / 64] = {0};
    clt_sampler *s = new_sampler(V);
    clt_sample_params p = plain();
    p.temperature = 0;
    fill_distinct(logits, V);
    int32_t best = pick_at(s, &p, logits, 0);
    allowed[best / 64] |= UINT64_C(1) << best % 64;
    allowed[0] |= 1;
    p.allowed = allowed;
    assert_int_equal(pick_at(s, &p, logits, 0), best);
    memset(allowed, 0, sizeof allowed);
    assert_int_equal(pick_at(s, &p, logits, 0), 0); /* nothing is left: 0, which is not allowed either */
    clt_sampler_free(s);
}

/* ---- resources ---- */

static void test_pick_allocates_nothing(void **state) {
    (void)state;
    float logits[V];
    int32_t history[64];
    clt_sampler *s = new_sampler(V);
    clt_sample_params p = plain();
    p.repeat_penalty = 1.1f;
    p.repeat_last_n = -1;
    fill(logits, V);
    long before = clt_mem_count();
    for (int i = 0; i < 64; i++) {
        p.top_k = i % 3 * 32;
        p.top_p = i % 2 ? 0.9f : 1;
        history[i] = clt_sampler_pick(s, &p, logits, history, (size_t)i, (uint64_t)i);
    }
    assert_int_equal(clt_mem_count(), before);
    clt_sampler_free(s);
}

static void test_create_fails_cleanly(void **state) {
    (void)state;
    clt_err err;
    clt_sampler *s;
    long live = clt_mem_live();
    for (long n = 1; n <= 4; n++) {
        clt_mem_fail_after(n);
        assert_int_equal(clt_sampler_create(V, &s, &err), CLT_E_MEMORY);
        assert_null(s);
        clt_mem_fail_after(0);
        assert_int_equal(clt_mem_live(), live);
    }
    assert_int_equal(clt_sampler_create(0, &s, &err), CLT_E_USAGE);
}

static void test_exp(void **state) {
    (void)state;
    for (int i = 0; i <= 70000; i++) {
        double x = -i / 100.0, want = exp(x), got = clt_sample_exp(x);
        assert_true(fabs(got - want) <= 4 * DBL_EPSILON * want);
    }
    assert_true(clt_sample_exp(0) == 1);
    assert_true(clt_sample_exp(-1e-320) == 1);
    assert_true(clt_sample_exp(-701) == 0);
    assert_true(clt_sample_exp(-INFINITY) == 0);
    assert_true(clt_sample_exp(NAN) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_draws_follow_the_distribution),
        cmocka_unit_test(test_top_k_of_all_is_off),
        cmocka_unit_test(test_draw_depends_on_seed_and_position_alone),
        cmocka_unit_test(test_greedy_takes_the_first_of_the_largest),
        cmocka_unit_test(test_top_k_1_is_greedy),
        cmocka_unit_test(test_nan_and_infinities),
        cmocka_unit_test(test_top_p_keeps_the_id_that_crosses),
        cmocka_unit_test(test_min_p_is_relative_to_the_best),
        cmocka_unit_test(test_temperature_comes_last),
        cmocka_unit_test(test_ties_at_top_k_keep_the_smaller_ids),
        cmocka_unit_test(test_bias_and_suppression),
        cmocka_unit_test(test_repeat_penalty),
        cmocka_unit_test(test_presence_and_frequency),
        cmocka_unit_test(test_allowed_ids),
        cmocka_unit_test(test_best_of_all_wins_if_allowed),
        cmocka_unit_test(test_pick_allocates_nothing),
        cmocka_unit_test(test_create_fails_cleanly),
        cmocka_unit_test(test_exp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
