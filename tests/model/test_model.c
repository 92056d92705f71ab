/* Binding as a whole: every allocation may fail, nothing leaks, and a model freed is empty. */
#include "model/models.h"

static void fail_each(sketch *s) {
    static clt_err err;
    clt_file *f = open_ok(sketch_write(s));
    clt_model m;
    sketch_free(s);
    long start = clt_mem_count(), live = clt_mem_live();
    clt_status whole = clt_model_bind(f, &m, &err);
    if (whole == CLT_OK) clt_model_free(&m);
    long total = clt_mem_count() - start;
    assert_true(total >= 3);
    for (long n = 1; n <= total; n++) {
        clt_mem_fail_after(n);
        clt_status st = clt_model_bind(f, &m, &err);
        clt_mem_fail_after(0);
        if (st != CLT_E_MEMORY) fail_msg("allocation %ld of %ld gave %s: %s", n, total, clt_status_name(st), err.text);
        assert_null(m.arena);
        if (clt_mem_live() != live) fail_msg("allocation %ld of %ld leaves %ld blocks", n, total, clt_mem_live() - live);
    }
    assert_int_equal(clt_model_bind(f, &m, &err), whole);
    if (whole == CLT_OK) clt_model_free(&m);
    assert_int_equal(clt_mem_live(), live);
    clt_file_close(f);
}

static void test_failing_allocations(void **state) {
    (void)state;
    for (int kind = GEMMA3; kind <= GEMMA4_MOE; kind++) {
        fail_each(sketch_gguf((sketch_kind)kind));
        if (HAVE_HF) fail_each(sketch_hf((sketch_kind)kind, "model."));
    }
}

static void test_failing_allocations_of_a_refusal(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_E);
    sketch_drop(s, "blk.0.attn_k.weight");
    sketch_drop(s, "blk.3.attn_q.weight");
    sketch_find(s, "blk.5.ffn_up.weight")->dims[1] = 47;
    sketch_add(s, "surprise", 3, 1, 1);
    fail_each(s);
    s = sketch_gguf(GEMMA3);
    sketch_set(s, ".block_count", 200);
    fail_each(s);
}

static void test_counts_and_free(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_MOE);
    uint64_t parameters = 0;
    for (int i = 0; i < s->n_tensors; i++)
        parameters += (uint64_t)(s->tensor[i].dims[0] * s->tensor[i].dims[1] * s->tensor[i].dims[2]);
    bound *b = sketch_bind(s);
    assert_int_equal(b->model.parameters, parameters);
    assert_ptr_equal(b->model.file, b->file);
    clt_model_free(&b->model);
    static const clt_model empty;
    assert_memory_equal(&b->model, &empty, sizeof empty);
    bound_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_failing_allocations_of_a_refusal),
        cmocka_unit_test(test_counts_and_free),
    };
    return cmocka_run_group_tests(tests, models_setup, models_teardown);
}
