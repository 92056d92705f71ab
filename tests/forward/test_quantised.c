/* Quantised golden files: the error of the 64 best log-probabilities of the last token of `main`, against the float32 run of
 * the same dequantised weights. The bar is the error that llama.cpp made on the same file (recorded in golden_gguf.json).
 *
 * CULET_GOLDENS, if set, names a folder with all golden models; files that are not in the checkout are then tested too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

static void log_softmax(const float *x, int n, double *out) {
    double top = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    for (int i = 0; i < n; i++) sum += exp((double)x[i] - top);
    for (int i = 0; i < n; i++) out[i] = (double)x[i] - top - log(sum);
}

/* Mean |difference| over the 64 ids that the reference likes best. */
static double top64_error(const float *got, const float *want, int n) {
    double *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b), sum = 0;
    assert_true(a && b && n >= 64);
    log_softmax(got, n, a);
    log_softmax(want, n, b);
    for (int i = 0; i < 64; i++) {
        int best = 0;
        for (int j = 1; j < n; j++) best = b[j] > b[best] ? j : best;
        sum += fabs(a[best] - b[best]);
        b[best] = -INFINITY;
    }
    free(a), free(b);
    return sum / 64;
}

static void check_file(const char *dir, const char *file, const clt_json *entry, int *n_files) {
    char path[256], want_name[256];
    double bar;
    clt_json *doc = golden_json(dir, "golden.json");
    const clt_json *text = clt_json_get(clt_json_get(doc, "text"), "main");
    const clt_json *peer = clt_json_get(clt_json_get(clt_json_get(entry, "llama_cpp"), "main"), "top64_logprob_error");
    snprintf(path, sizeof path, "%s/gguf/%s", dir, file);
    if (!golden_exists(path) || !clt_json_get(entry, "dequantized_float32")) {
        clt_json_free(doc);
        return;
    }
    assert_true(clt_json_num(clt_json_get(peer, "mean"), &bar));
    size_t stem = strlen(file) - strlen(".gguf"), n_want;
    snprintf(want_name, sizeof want_name, "gguf/%.*s.main.last_logits.f32", (int)stem, file);
    golden g;
    golden_open(&g, path, GOLDEN_DEFAULTS);
    int n;
    int32_t *ids = golden_ids(clt_json_get(text, "prompt_ids"), &n);
    float *want = golden_array(dir, want_name, &n_want), *got = malloc((size_t)g.vocab * sizeof *got);
    assert_int_equal(n_want, (size_t)g.vocab);
    golden_run(&g, ids, n, 64, false, got);
    double error = top64_error(got, want, g.vocab);
    printf("    %s: %.4f, bar %.4f\n", file, error, bar);
    assert_true(error <= bar);
    ++*n_files;
    free(ids), free(want), free(got);
    clt_json_free(doc);
    golden_close(&g);
}

static void test_errors_stay_below_the_peers(void **state) {
    (void)state;
    static const char *const dirs[] = {"tiny-gemma3", "tiny-e", "tiny-e2b", "tiny-dense", "tiny-moe", "tiny-unified"};
    int n_files = 0;
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        clt_json *doc = golden_json(dirs[i], "gguf/golden_gguf.json");
        const clt_json *entry;
        const char *name;
        size_t len;
        void *iter = NULL;
        while (clt_json_next(clt_json_get(doc, "files"), &iter, &name, &len, &entry))
            check_file(dirs[i], name, entry, &n_files);
        clt_json_free(doc);
    }
    assert_true(n_files >= 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors_stay_below_the_peers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
