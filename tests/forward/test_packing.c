/* Packed weights: the plan covers every byte once, packing fills what the plan promises, weights packed before give the same
 * bits, and layouts are told apart. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "forward/packing.h"
#include "golden.h"

static const char *const models[] = {"tiny-e2b/gguf/tiny-e2b-Q4_0.gguf", "tiny-dense/gguf/tiny-dense-Q4_0.gguf",
                                     "tiny-moe/gguf/tiny-moe-Q4_0.gguf", "tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf",
                                     "tiny-e/gguf/tiny-e-Q4_K_M.gguf"};
enum { N_MODELS = sizeof models / sizeof *models, N = 40 };

/* Every job against a packing of its rows alone, in the order of the plan; jobs follow one another without overlap. */
static void test_packing_follows_the_plan(void **state) {
    (void)state;
    for (int m = 0; m < N_MODELS; m++) {
        golden g;
        golden_open(&g, models[m], GOLDEN_DEFAULTS);
        clt_pack_plan p = {0};
        clt_pack_plan_add(&p, &g.model, NULL);
        p.jobs = malloc(p.n * sizeof *p.jobs);
        assert_true(p.n > 10);
        size_t bytes = p.bytes, at = 0, n = p.n;
        p.n = 0, p.bytes = 0;
        clt_pack_plan_add(&p, &g.model, g.net);
        assert_true(p.n == n && p.bytes == bytes && bytes == clt_net_bytes(g.net));
        for (size_t i = 0; i < p.n; i++) {
            const clt_pack_job *j = &p.jobs[i];
            const clt_tensor *t = j->tensor;
            int64_t panels = (j->rows + CLT_PANEL - 1) / CLT_PANEL;
            size_t size = (size_t)panels * clt_mat_panel_bytes(t->type, t->dims[0]);
            uint8_t *want = malloc(size);
            assert_true(j->offset == at && at % 64 == 0);
            clt_mat_pack(t->type, j->rows, t->dims[0], clt_tensor_row(t, j->first_row), want, 0, panels);
            assert_memory_equal(clt_net_packed(g.net) + at, want, size);
            assert_true(j->mat->data == clt_net_packed(g.net) + at && j->mat->rows == j->rows && j->mat->cols == t->dims[0]);
            at += (size + 63) / 64 * 64;
            free(want);
        }
        assert_int_equal(at, bytes);
        free(p.jobs);
        golden_close(&g);
    }
}

static void test_packed_before(void **state) {
    (void)state;
    static clt_err err;
    for (int m = 0; m < N_MODELS; m++) {
        golden g;
        golden_open(&g, models[m], GOLDEN_DEFAULTS);
        int32_t ids[N];
        for (int i = 0; i < N; i++) ids[i] = i * 7 % g.vocab;
        size_t bytes = clt_net_bytes(g.net), size = (size_t)g.vocab * sizeof(float);
        uint8_t *copy = aligned_alloc(64, bytes);
        float *want = malloc(size), *got = malloc(size);
        memcpy(copy, clt_net_packed(g.net), bytes);
        golden_run(&g, ids, N, 16, false, want);
        long live = clt_mem_live();
        clt_net_free(g.net);
        assert_int_equal(clt_net_create_packed(&g.model, clt_kernels_get(golden_best_level()), g.pool, copy, &g.net, &err),
                         CLT_OK);
        assert_int_equal(clt_mem_live(), live - 1); /* the block of packed weights */
        assert_ptr_equal(clt_net_packed(g.net), copy);
        assert_int_equal(clt_net_bytes(g.net), bytes);
        clt_scratch_free(g.scratch);
        assert_int_equal(clt_scratch_create(g.net, 64, &g.scratch, &err), CLT_OK);
        assert_true(clt_kv_rewind(g.kv, 0));
        golden_run(&g, ids, N, 16, false, got);
        assert_memory_equal(got, want, size);
        free(want), free(got);
        golden_close(&g);
        free(copy);
    }
}

static void test_layout_digests(void **state) {
    (void)state;
    uint64_t seen[N_MODELS];
    for (int m = 0; m < N_MODELS; m++) {
        golden g;
        golden_open(&g, models[m], GOLDEN_DEFAULTS);
        seen[m] = clt_net_layout_digest(&g.model);
        assert_true(seen[m] == clt_net_layout_digest(&g.model));
        for (int i = 0; i < m; i++) assert_true(seen[i] != seen[m]);
        golden_close(&g);
    }
}

/* The rows of the embedding tables are read when they are needed. A file that has lost them meanwhile ends the pass. */
static void test_a_file_that_shrinks(void **state) {
    (void)state;
    static clt_err err;
    golden g;
    clt_buf bytes = {0};
    char path[] = "/tmp/culet-shrinks-XXXXXX.gguf";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    assert_int_equal(clt_read_file(CLT_TEST_DIR "/golden/models/tiny-e2b/gguf/tiny-e2b-Q4_0.gguf", 64 << 20, &bytes, &err),
                     CLT_OK);
    assert_int_equal(write(fd, bytes.data, bytes.len), bytes.len);
    golden_open(&g, models[0], GOLDEN_DEFAULTS);
    clt_file_close(g.file);
    clt_model_free(&g.model);
    assert_int_equal(clt_file_open(path, &g.file, &err), CLT_OK);
    assert_int_equal(clt_model_bind(g.file, &g.model, &err), CLT_OK);
    clt_net_free(g.net);
    const clt_kernels *k = clt_kernels_get(golden_best_level());
    assert_int_equal(clt_net_create(&g.model, k, g.pool, NULL, NULL, &g.net, &err), CLT_OK);
    clt_scratch_free(g.scratch);
    assert_int_equal(clt_scratch_create(g.net, 64, &g.scratch, &err), CLT_OK);
    clt_kv_free(g.kv);
    assert_int_equal(clt_kv_create(&g.model, 100, 64, CLT_F32, CLT_F32, &g.kv, &err), CLT_OK);
    float *logits = malloc((size_t)g.vocab * sizeof *logits);
    clt_row row = {.kv = g.kv, .id = 5, .want_logits = true};
    assert_int_equal(clt_forward(g.net, g.scratch, &row, 1, logits, NULL, &err), CLT_OK);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(clt_forward(g.net, g.scratch, &row, 1, logits, NULL, &err), CLT_E_FILE);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(clt_kv_length(g.kv), 1);
    free(logits);
    golden_close(&g);
    clt_buf_free(&bytes);
    close(fd);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packing_follows_the_plan),
        cmocka_unit_test(test_packed_before),
        cmocka_unit_test(test_layout_digests),
        cmocka_unit_test(test_a_file_that_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
