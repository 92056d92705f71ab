/* The forward pass against the golden models: logits, states of every layer, greedy ids; and against itself: the same bits
 * for any chunking, thread count and CPU level. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden.h"

static const char *const float_models[] = {"tiny-gemma3", "tiny-e2b", "tiny-dense", "tiny-moe", "tiny-unified", "tiny-e"};
enum { N_FLOAT = sizeof float_models / sizeof *float_models };

/* tiny-e's float weights are too large for the checkout; CULET_GOLDENS may name a folder that has them. */
static bool has_weights(const char *dir) {
    char path[256];
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    return golden_exists(path);
}

/* The tolerance of the references for float32 arithmetic in any order. */
static void near(const char *what, const float *got, const float *want, size_t n) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        double diff = fabs((double)got[i] - (double)want[i]), allowed = 2e-3 + 1e-3 * fabs((double)want[i]);
        if (!(diff <= allowed)) fail_msg("%s[%zu]: got %.7g, expected %.7g", what, i, (double)got[i], (double)want[i]);
        if (diff > worst) worst = diff;
    }
    printf("    %s: largest difference %.2e\n", what, worst);
}

static int32_t best(const float *x, int n, const clt_json *banned) {
    int at = -1;
    for (int i = 0; i < n; i++) {
        bool ban = false;
        int64_t id;
        for (size_t b = 0; b < clt_json_len(banned); b++) ban |= clt_json_int(clt_json_at(banned, b), &id) && id == i;
        if (!ban && (at < 0 || x[i] > x[at])) at = i;
    }
    return at;
}

static void check_greedy(golden *g, const clt_json *text, float *logits, const char *what) {
    int n_ids, n_greedy;
    int64_t safe;
    int32_t *ids = golden_ids(clt_json_get(text, "prompt_ids"), &n_ids),
            *greedy = golden_ids(clt_json_get(text, "greedy_ids"), &n_greedy);
    assert_true(clt_json_int(clt_json_get(text, "safe_steps"), &safe));
    clt_kv_rewind(g->kv, 0);
    golden_run(g, ids, n_ids, 64, false, logits);
    for (int i = 0; i < n_greedy && i < safe; i++) {
        int32_t id = best(logits, g->vocab, clt_json_get(g->doc, "suppressed_ids"));
        if (id != greedy[i]) fail_msg("%s: step %d gave id %d, expected %d", what, i, id, greedy[i]);
        golden_run(g, &id, 1, 1, false, logits);
    }
    free(ids);
    free(greedy);
}

static void test_golden_logits(void **state) {
    (void)state;
    static const char *const texts[] = {"short", "mid", "main", "long", "chat"};
    for (int m = 0; m < N_FLOAT; m++) {
        const char *dir = float_models[m];
        golden g;
        if (!has_weights(dir)) continue;
        golden_open(&g, dir, GOLDEN_DEFAULTS);
        g.doc = golden_json(dir, "golden.json");
        for (size_t t = 0; t < 5; t++) {
            const clt_json *text = clt_json_get(clt_json_get(g.doc, "text"), texts[t]);
            char name[64], what[128];
            bool all = !strcmp(texts[t], "main");
            int n;
            size_t n_want;
            int32_t *ids = golden_ids(clt_json_get(text, "prompt_ids"), &n);
            float *logits = malloc((size_t)n * (size_t)g.vocab * sizeof *logits);
            assert_non_null(logits);
            snprintf(name, sizeof name, all ? "%s.logits.f32" : "%s.last_logits.f32", texts[t]);
            snprintf(what, sizeof what, "%s %s", dir, name);
            float *want = golden_array(dir, name, &n_want);
            assert_int_equal(n_want, (size_t)(all ? n : 1) * (size_t)g.vocab);
            clt_kv_rewind(g.kv, 0);
            golden_run(&g, ids, n, 64, all, logits);
            near(what, logits, want, n_want);
            check_greedy(&g, text, logits, what);
            free(ids);
            free(logits);
            free(want);
        }
        golden_close(&g);
    }
}

typedef struct probe_check {
    const char *dir;
    float *hidden, *normed, *ple;
    size_t n_hidden, n_normed, n_ple;
    int seen;
} probe_check;

static void on_probe(void *user, const char *stage, int layer, const float *x, int rows, int64_t width) {
    probe_check *p = user;
    size_t n = (size_t)rows * (size_t)width;
    char what[96];
    snprintf(what, sizeof what, "%s %s %d", p->dir, stage, layer);
    p->seen++;
    if (!strcmp(stage, "norm")) assert_int_equal(n, p->n_normed), near(what, x, p->normed, n);
    else if (!strcmp(stage, "ple")) assert_int_equal(n, p->n_ple), near(what, x, p->ple, n);
    else assert_true((size_t)(layer + 2) * n <= p->n_hidden), near(what, x, p->hidden + (size_t)(layer + 1) * n, n);
}

static void test_golden_states(void **state) {
    (void)state;
    for (int m = 0; m < N_FLOAT; m++) {
        golden g;
        probe_check p = {.dir = float_models[m]};
        if (!has_weights(p.dir)) continue;
        golden_open(&g, p.dir, GOLDEN_DEFAULTS);
        g.doc = golden_json(p.dir, "golden.json");
        p.hidden = golden_array(p.dir, "short.hidden.f32", &p.n_hidden);
        p.normed = golden_array(p.dir, "short.normed.f32", &p.n_normed);
        if (g.model.config.ple_dim) p.ple = golden_array(p.dir, "short.per_layer_inputs.f32", &p.n_ple);
        int n;
        int32_t *ids = golden_ids(clt_json_get(clt_json_get(clt_json_get(g.doc, "text"), "short"), "prompt_ids"), &n);
        float *logits = malloc((size_t)g.vocab * sizeof *logits);
        clt_scratch_set_probe(g.scratch, on_probe, &p);
        golden_run(&g, ids, n, 64, false, logits);
        assert_int_equal(p.seen, g.model.config.layers + 2 + (g.model.config.ple_dim > 0));
        free(ids), free(logits), free(p.hidden), free(p.normed), free(p.ple);
        golden_close(&g);
    }
}

/* ---- the numerical contract ---- */

static const char *const contract_models[] = {"tiny-e2b",
                                              "tiny-moe",
                                              "tiny-e/gguf/tiny-e-Q4_K_M.gguf",
                                              "tiny-dense/gguf/tiny-dense-Q4_0.gguf",
                                              "tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf",
                                              "tiny-moe/gguf/tiny-moe-Q4_0.gguf"};
#ifdef __SANITIZE_THREAD__
enum { N_CONTRACT = 2, LONG = 90 }; /* races show in few passes, and each takes fifty times as long */
#else
enum { N_CONTRACT = sizeof contract_models / sizeof *contract_models, LONG = 600 };
#endif

static void long_ids(int32_t *ids, int n, int vocab) {
    uint32_t x = 12345;
    ids[0] = 2;
    for (int i = 1; i < n; i++) ids[i] = (int32_t)((x = x * 1664525u + 1013904223u) >> 8) % vocab;
}

static float *run_all(const char *path, golden_options o, int n, int chunk, size_t *bytes) {
    golden g;
    golden_open(&g, path, o);
    int32_t *ids = malloc((size_t)n * sizeof *ids);
    *bytes = (size_t)n * (size_t)g.vocab * sizeof(float);
    float *logits = malloc(*bytes);
    assert_true(ids && logits);
    long_ids(ids, n, g.vocab);
    golden_run(&g, ids, n, chunk, true, logits);
    free(ids);
    golden_close(&g);
    return logits;
}

static void same_bits(const char *path, const char *what, int value, const float *want, golden_options o, int n, int chunk) {
    size_t bytes;
    float *got = run_all(path, o, n, chunk, &bytes);
    if (memcmp(got, want, bytes)) fail_msg("%s: %s %d changes the bits", path, what, value);
    free(got);
}

static void test_bits_do_not_depend_on_chunks(void **state) {
    (void)state;
    static const int chunks[] = {1, 2, 3, 7, 32, 64, 128, 512};
    static const clt_type kv[] = {CLT_F32, CLT_F16, CLT_Q8_0};
    for (int m = 0; m < N_CONTRACT; m++)
        for (int t = 0; t < 3; t++) {
            golden_options o = GOLDEN_DEFAULTS;
            o.max_rows = LONG, o.k_type = kv[t], o.v_type = kv[(t + m) % 3];
            size_t bytes;
            float *want = run_all(contract_models[m], o, LONG, LONG, &bytes);
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
                o.max_rows = chunks[c];
                same_bits(contract_models[m], "chunk", chunks[c], want, o, LONG, chunks[c]);
            }
            free(want);
        }
}

static void test_bits_do_not_depend_on_threads(void **state) {
    (void)state;
    static const int threads[] = {2, 3, 4, 8};
    for (int m = 0; m < N_CONTRACT; m++) {
        golden_options o = GOLDEN_DEFAULTS;
        size_t bytes;
        o.threads = 1;
        float *want = run_all(contract_models[m], o, 150, 50, &bytes);
        for (int t = 0; t < 4; t++) {
            o.threads = threads[t];
            same_bits(contract_models[m], "threads", threads[t], want, o, 150, t % 2 ? 50 : 1);
        }
        free(want);
    }
}

static void test_bits_do_not_depend_on_the_cpu(void **state) {
    (void)state;
    for (int m = 0; m < N_CONTRACT; m++)
        for (int t = 0; t < 3; t++) {
            golden_options o = GOLDEN_DEFAULTS;
            size_t bytes;
            o.level = CLT_CPU_SCALAR, o.k_type = o.v_type = (clt_type[]){CLT_F32, CLT_F16, CLT_Q8_0}[t];
            float *want = run_all(contract_models[m], o, 100, 40, &bytes);
            for (int l = CLT_CPU_SCALAR + 1; l < CLT_CPU_LEVELS; l++) {
                if (!clt_kernels_get((clt_cpu_level)l)) continue;
                o.level = (clt_cpu_level)l;
                same_bits(contract_models[m], clt_cpu_level_name(o.level), l, want, o, 100, 40);
            }
            free(want);
        }
}

/* Rows of several timelines in one pass, and rows whose logits nobody wants, leave the others as they are. */
static void test_bits_do_not_depend_on_company(void **state) {
    (void)state;
    for (int m = 0; m < N_CONTRACT; m++) {
        static clt_err err;
        golden g;
        golden_open(&g, contract_models[m], GOLDEN_DEFAULTS);
        enum { N = 40, SLOTS = 5 };
        int32_t ids[N];
        clt_kv *kv[SLOTS];
        float *want = malloc((size_t)N * (size_t)g.vocab * 4), *got = malloc((size_t)64 * (size_t)g.vocab * 4);
        long_ids(ids, N, g.vocab);
        golden_run(&g, ids, N, N, true, want);
        for (int i = 0; i < SLOTS; i++)
            assert_int_equal(clt_kv_create(&g.model, 256, 64, CLT_F32, CLT_F32, &kv[i], &err), CLT_OK);
        for (int step = 0; step < N / 4; step++) { /* slot i evaluates rows of its own length; only the last is wanted */
            clt_row rows[64];
            int n = 0, wanted = 0, at[SLOTS];
            for (int i = 0; i < SLOTS; i++)
                for (int r = 0; r <= i % 3; r++) {
                    int pos = clt_kv_length(kv[i]) + r;
                    if (pos >= N) break;
                    at[i] = pos;
                    rows[n++] = (clt_row){.kv = kv[i], .id = ids[pos], .want_logits = r == i % 3};
                }
            assert_int_equal(clt_forward(g.net, g.scratch, rows, n, got, NULL, &err), CLT_OK);
            for (int i = 0; i < SLOTS; i++)
                if (clt_kv_length(kv[i]) <= N && at[i] % (i % 3 + 1) == i % 3)
                    assert_memory_equal(got + (int64_t)wanted++ * g.vocab, want + (int64_t)at[i] * g.vocab,
                                        (size_t)g.vocab * 4);
        }
        for (int i = 0; i < SLOTS; i++) clt_kv_free(kv[i]);
        free(want), free(got);
        golden_close(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_logits),
        cmocka_unit_test(test_golden_states),
        cmocka_unit_test(test_bits_do_not_depend_on_chunks),
        cmocka_unit_test(test_bits_do_not_depend_on_threads),
        cmocka_unit_test(test_bits_do_not_depend_on_the_cpu),
        cmocka_unit_test(test_bits_do_not_depend_on_company),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
