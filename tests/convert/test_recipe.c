/* Recipes: names, which tensors they touch, what each rule gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "convert/auto.h"
#include "convert/recipe.h"

static const clt_recipe_model dense = {.layers = 32, .query_groups = 2, .tied = true, .value_matrices = 32};

static clt_type type_of(const char *recipe, const clt_recipe_model *m, const char *name, int64_t cols) {
    const clt_recipe *r = clt_recipe_find(recipe);
    assert_non_null(r);
    return clt_recipe_type(r, m, name, cols, clt_layer_of(name) < 0 ? 0 : clt_layer_of(name));
}

static void test_names(void **state) {
    char names[512];
    (void)state;
    snprintf(names, sizeof names, "%s", clt_recipe_names());
    for (char *save, *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save))
        assert_true(!strcmp(name, "auto:SIZE") || clt_recipe_find(name));
    assert_ptr_equal(clt_recipe_find("q4_k_m"), clt_recipe_find("Q4_K_M"));
    assert_int_equal(clt_recipe_find("Q4_K")->file_type, clt_recipe_find("Q4_K_M")->file_type);
    assert_null(clt_recipe_find("Q7_0"));
    assert_null(clt_recipe_find(""));
}

static void test_what_stays(void **state) {
    (void)state;
    assert_true(clt_recipe_applies("blk.0.attn_q.weight", 2));
    assert_true(clt_recipe_applies("blk.0.ffn_down_exps.weight", 3));
    assert_true(clt_recipe_applies("per_layer_token_embd.weight", 2));
    assert_false(clt_recipe_applies("blk.0.attn_norm.weight", 1));
    assert_false(clt_recipe_applies("blk.0.ffn_gate_inp.weight", 2));
    assert_false(clt_recipe_applies("blk.0.ffn_down_exps.scale", 2));
    assert_false(clt_recipe_applies("per_layer_model_proj.weight", 2));
    assert_false(clt_recipe_applies("v.patch_embd.weight", 4));
    assert_false(clt_recipe_applies("v.position_embd.weight", 3));
}

static void test_mixes(void **state) {
    (void)state;
    assert_int_equal(type_of("Q4_K_M", &dense, "blk.0.attn_v.weight", 256), CLT_Q6_K);  /* first eighth */
    assert_int_equal(type_of("Q4_K_M", &dense, "blk.4.attn_v.weight", 256), CLT_Q4_K);
    assert_int_equal(type_of("Q4_K_M", &dense, "blk.6.ffn_down.weight", 256), CLT_Q6_K); /* every third */
    assert_int_equal(type_of("Q4_K_M", &dense, "blk.28.ffn_down.weight", 256), CLT_Q6_K); /* last eighth */
    assert_int_equal(type_of("Q4_K_M", &dense, "blk.6.attn_q.weight", 256), CLT_Q4_K);
    assert_int_equal(type_of("Q4_K_S", &dense, "blk.3.ffn_down.weight", 256), CLT_Q5_K);
    assert_int_equal(type_of("Q4_K_S", &dense, "blk.4.ffn_down.weight", 256), CLT_Q4_K);
    assert_int_equal(type_of("Q3_K_M", &dense, "blk.1.attn_v.weight", 256), CLT_Q5_K);
    assert_int_equal(type_of("Q3_K_M", &dense, "blk.2.attn_v.weight", 256), CLT_Q4_K);
    assert_int_equal(type_of("Q2_K", &dense, "blk.9.attn_output.weight", 256), CLT_Q3_K);
    assert_int_equal(type_of("Q5_K_S", &dense, "blk.0.attn_v.weight", 256), CLT_Q5_K);
    clt_recipe_model grouped = dense;
    grouped.query_groups = 4;
    assert_int_equal(type_of("Q2_K", &grouped, "blk.9.attn_v.weight", 256), CLT_Q4_K);
    assert_int_equal(type_of("IQ4_XS", &grouped, "blk.9.attn_v.weight", 256), CLT_Q5_K);
    clt_recipe_model experts = dense;
    experts.experts = 8;
    assert_int_equal(type_of("Q4_K_M", &experts, "blk.9.attn_k.weight", 256), CLT_Q8_0);
    assert_int_equal(type_of("Q4_0", &experts, "blk.9.attn_output.weight", 256), CLT_Q4_0);
}

static void test_importance_changes_types(void **state) {
    clt_recipe_model weighted = dense;
    (void)state;
    weighted.has_importance = true;
    assert_int_equal(type_of("Q4_0", &dense, "blk.0.ffn_down.weight", 256), CLT_Q4_0);
    assert_int_equal(type_of("Q4_0", &weighted, "blk.0.ffn_down.weight", 256), CLT_Q4_1);
    assert_int_equal(type_of("IQ4_NL", &dense, "blk.0.ffn_down.weight", 256), CLT_Q5_K);
    assert_int_equal(type_of("IQ4_NL", &weighted, "blk.0.ffn_down.weight", 256), CLT_IQ4_NL);
}

static void test_embedding_and_output(void **state) {
    clt_recipe_model untied = dense;
    (void)state;
    untied.tied = false;
    assert_int_equal(type_of("Q4_0", &dense, "token_embd.weight", 256), CLT_Q6_K);
    assert_int_equal(type_of("Q4_0", &untied, "token_embd.weight", 256), CLT_Q4_0);
    assert_int_equal(type_of("Q4_0", &untied, "output.weight", 256), CLT_Q6_K);
    assert_int_equal(type_of("Q8_0", &dense, "token_embd.weight", 256), CLT_Q8_0);
    assert_int_equal(type_of("F16", &dense, "token_embd.weight", 256), CLT_F16);
    assert_int_equal(type_of("Q4_K_M", &dense, "token_embd.weight", 640), CLT_Q8_0);
}

static void test_rows_that_are_no_blocks(void **state) {
    (void)state;
    assert_int_equal(clt_type_fitting(CLT_Q4_K, 512), CLT_Q4_K);
    assert_int_equal(clt_type_fitting(CLT_Q2_K, 96), CLT_Q4_0);
    assert_int_equal(clt_type_fitting(CLT_Q4_K, 96), CLT_Q5_0);
    assert_int_equal(clt_type_fitting(CLT_Q5_K, 96), CLT_Q5_1);
    assert_int_equal(clt_type_fitting(CLT_Q6_K, 96), CLT_Q8_0);
    assert_int_equal(clt_type_fitting(CLT_IQ4_XS, 96), CLT_IQ4_NL);
    assert_int_equal(clt_type_fitting(CLT_Q8_0, 40), CLT_F16);
    assert_int_equal(clt_type_fitting(CLT_BF16, 7), CLT_BF16);
}

static void test_sizes(void **state) {
    uint64_t n;
    (void)state;
    assert_true(clt_auto_size("auto:250000000", &n) && n == 250000000);
    assert_true(clt_auto_size("auto:1.5G", &n) && n == 1500000000);
    assert_true(clt_auto_size("AUTO:2GiB", &n) && n == 2147483648);
    assert_true(clt_auto_size("auto:512k", &n) && n == 512000);
    static const char *const wrong[] = {"auto", "auto:", "auto:x", "auto:0", "auto:-5", "auto:5X", "auto:1e300",
                                        "auto:nan", "Q4_0"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_false(clt_auto_size(wrong[i], &n));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_what_stays), cmocka_unit_test(test_mixes),
        cmocka_unit_test(test_importance_changes_types), cmocka_unit_test(test_embedding_and_output),
        cmocka_unit_test(test_rows_that_are_no_blocks), cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
