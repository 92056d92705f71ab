/* Positions up to 20,000 against transformers (tests/golden/long/make_long.py): faults of rope and of windows show only
 * there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "golden.h"

enum { TAIL = 256, CHUNK = 500 };

static int64_t integer(const clt_json *n) {
    int64_t v;
    assert_true(clt_json_int(n, &v));
    return v;
}

static double number(const clt_json *n) {
    double v;
    assert_true(clt_json_num(n, &v));
    return v;
}

/* The generator of make_long.py. */
static void make_ids(int32_t *ids, int n, int vocab) {
    uint32_t x = 12345;
    ids[0] = 2;
    for (int i = 1; i < n; i++) ids[i] = (int32_t)(((x = x * 1664525u + 1013904223u) >> 8) % (uint32_t)(vocab - 16));
}

static int best_of(const float *x, int n) {
    int best = 0;
    for (int i = 1; i < n; i++) best = x[i] > x[best] ? i : best;
    return best;
}

static void check_tail(const char *name, const clt_json *want, const float *logits, int vocab) {
    int clear = 0;
    for (int i = 0; i < TAIL; i++) {
        if (number(clt_json_at(clt_json_get(want, "margins"), (size_t)i)) < 0.01) continue;
        int got = best_of(logits + (int64_t)i * vocab, vocab),
            id = (int)integer(clt_json_at(clt_json_get(want, "best_ids"), (size_t)i));
        if (got != id) fail_msg("%s: %d before the end the best id is %d, expected %d", name, TAIL - i, got, id);
        clear++;
    }
    assert_true(clear > TAIL / 2);
    const float *last = logits + (int64_t)(TAIL - 1) * vocab;
    double worst = 0;
    for (size_t i = 0; i < clt_json_len(clt_json_get(want, "last_ids")); i++) {
        double w = number(clt_json_at(clt_json_get(want, "last_logits"), i));
        double diff = fabs((double)last[integer(clt_json_at(clt_json_get(want, "last_ids"), i))] - w);
        assert_true(diff <= 2e-3 + 1e-3 * fabs(w));
        worst = diff > worst ? diff : worst;
    }
    printf("    %s: %d clear positions, largest difference %.2e\n", name, clear, worst);
}

static void test_far_positions(void **state) {
    (void)state;
    clt_json *doc = NULL;
    static clt_err err;
    clt_buf text = {0};
    assert_int_equal(clt_read_file(CLT_TEST_DIR "/golden/long/long.json", 1 << 20, &text, &err), CLT_OK);
    assert_int_equal(clt_json_parse(text.data, text.len, "long.json", &doc, &err), CLT_OK);
    clt_buf_free(&text);
    const clt_json *want;
    const char *name;
    size_t len;
    void *iter = NULL;
    while (clt_json_next(doc, &iter, &name, &len, &want)) {
        golden g;
        golden_options o = GOLDEN_DEFAULTS;
        int n = (int)integer(clt_json_get(want, "n"));
        o.max_rows = CHUNK, o.context = n;
        golden_open(&g, name, o);
        int32_t *ids = malloc((size_t)n * sizeof *ids);
        float *logits = malloc((size_t)CHUNK * (size_t)g.vocab * sizeof *logits);
        assert_true(ids && logits);
        make_ids(ids, n, g.vocab);
        golden_run(&g, ids, n - TAIL, CHUNK, false, logits);
        golden_run(&g, ids + n - TAIL, TAIL, CHUNK, true, logits);
        check_tail(name, want, logits, g.vocab);
        free(ids), free(logits);
        golden_close(&g);
    }
    clt_json_free(doc);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_far_positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
