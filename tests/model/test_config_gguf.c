/* The metadata of GGUF files: numbers and arrays, what is required, what is refused, what is read for generating. */
#include "model/models.h"

static void test_numbers_and_arrays_mean_the_same(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_DENSE);
    sketch_set_list(s, ".attention.head_count", 6, (const int[]){2, 2, 2, 2, 2, 2});
    sketch_set_list(s, ".attention.head_count_kv", 6, (const int[]){1, 1, 1, 1, 1, 1});
    sketch_set_list(s, ".feed_forward_length", 6, (const int[]){48, 48, 48, 96, 48, 48});
    sketch_set_list(s, ".attention.sliding_window_pattern", 6, (const int[]){1, 1, 0, 1, 1, 0});
    sketch_find(s, "blk.3.ffn_gate.weight")->dims[1] = sketch_find(s, "blk.3.ffn_up.weight")->dims[1] = 96;
    sketch_find(s, "blk.3.ffn_down.weight")->dims[0] = 96;
    bound *b = sketch_bind(s);
    const clt_config *c = &b->model.config;
    assert_int_equal(c->layer[3].ffn, 96);
    assert_int_equal(c->layer[2].ffn, 48);
    for (int l = 0; l < 6; l++) assert_int_equal(c->layer[l].sliding, l % 3 != 2);
    bound_close(b);
    s = sketch_gguf(GEMMA4_DENSE);
    sketch_set(s, ".attention.sliding_window_pattern", 3);
    b = sketch_bind(s);
    for (int l = 0; l < 6; l++) assert_int_equal(b->model.config.layer[l].sliding, l % 3 != 2);
    bound_close(b);
}

static void test_values(void **state) {
    (void)state;
    bound *b = sketch_bind(sketch_gguf(GEMMA4_DENSE));
    const clt_config *c = &b->model.config;
    assert_int_equal(c->family, CLT_GEMMA4);
    assert_int_equal(c->width, SKETCH_D);
    assert_int_equal(c->context_limit, 4096);
    assert_int_equal(c->window, 8);
    assert_true(c->attn_scale == 1 && c->final_softcap == 30 && c->rope_divisor_full == 1 && c->rms_eps == 1e-6f);
    assert_true(c->rope_theta_full == 1e6 && c->rope_theta_sliding == 1e4);
    assert_int_equal(c->rope_pairs_full, 4);
    assert_false(b->model.norm_plus_one);
    assert_string_equal(b->model.architecture, "gemma4");
    assert_string_equal(b->model.family_name, "Gemma 4 (dense, 6 layers)");
    bound_close(b);
    b = sketch_bind(sketch_gguf(GEMMA3));
    c = &b->model.config;
    assert_true(c->attn_scale == 0.25f && c->final_softcap == 0);
    assert_int_equal(c->rope_pairs_full, 8);
    assert_string_equal(b->model.family_name, "Gemma 3 (dense, 6 layers)");
    bound_close(b);
}

static void refuse_number(sketch_kind kind, const char *key, uint32_t v, const char *words) {
    sketch *s = sketch_gguf(kind);
    sketch_set(s, key, v);
    BIND_REFUSED(s, CLT_E_FILE, key, words);
}

static void test_numbers_out_of_range(void **state) {
    (void)state;
    refuse_number(GEMMA3, ".block_count", 0, "is 0, expected 1 to 1024");
    refuse_number(GEMMA3, ".block_count", 1025, "is 1025, expected 1 to 1024");
    refuse_number(GEMMA3, ".block_count", UINT32_MAX, "is 4294967295, expected");
    refuse_number(GEMMA3, ".embedding_length", 0, "is 0, expected 1");
    refuse_number(GEMMA3, ".context_length", 0, "is 0, expected 1");
    refuse_number(GEMMA3, ".attention.head_count", 65537, "is 65537, expected 1 to 65536");
    refuse_number(GEMMA3, ".attention.head_count_kv", 0, "is 0, expected 1 to 65536");
    refuse_number(GEMMA3, ".attention.key_length", 1, "is 1, expected 2 to 4096");
    refuse_number(GEMMA3, ".attention.sliding_window", 0, "is 0, expected 1");
    refuse_number(GEMMA3, ".attention.sliding_window_pattern", 0, "is 0, expected 1 to 1024");
    refuse_number(GEMMA4_E, ".attention.shared_kv_layers", 1025, "is 1025, expected 0 to 1024");
    refuse_number(GEMMA4_MOE, ".expert_count", 4097, "is 4097, expected 0 to 4096");
    refuse_number(GEMMA4_DENSE, ".attention.value_length", 16, "is 16, expected 32, the length of the keys");
    refuse_number(GEMMA4_DENSE, ".attention.value_length_swa", 32, "is 32, expected 16, the length of the keys");
}

static void test_missing_keys_are_named(void **state) {
    (void)state;
    static const char *const keys[] = {".block_count", ".embedding_length", ".context_length", ".feed_forward_length",
                                       ".attention.head_count", ".attention.key_length", ".attention.sliding_window",
                                       ".attention.layer_norm_rms_epsilon", ".attention.sliding_window_pattern"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        sketch *s = sketch_gguf(GEMMA4_DENSE);
        sketch_unset(s, keys[i]);
        BIND_REFUSED(s, CLT_E_FILE, "key gemma4.", keys[i], "is missing");
    }
    sketch *s = sketch_gguf(GEMMA3);
    sketch_unset(s, ".attention.sliding_window_pattern"); /* every sixth, as published */
    bound *b = sketch_bind(s);
    assert_true(b->model.config.layer[2].sliding && !b->model.config.layer[5].sliding);
    bound_close(b);
    s = sketch_gguf(GEMMA3);
    sketch_unset(s, "general.architecture");
    BIND_REFUSED(s, CLT_E_FILE, "general.architecture is missing");
}

static void test_wrong_kinds_of_values(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA3);
    sketch_set_string(s, ".embedding_length", "wide");
    BIND_REFUSED(s, CLT_E_FILE, "gemma3.embedding_length is not a whole number");
    s = sketch_gguf(GEMMA3);
    sketch_set_string(s, ".attention.layer_norm_rms_epsilon", "small");
    BIND_REFUSED(s, CLT_E_FILE, "layer_norm_rms_epsilon is not a number");
    s = sketch_gguf(GEMMA3);
    sketch_set_list(s, ".attention.head_count_kv", 5, (const int[]){1, 1, 1, 1, 1});
    BIND_REFUSED(s, CLT_E_FILE, "head_count_kv has 5 items, expected one per layer (6)");
    s = sketch_gguf(GEMMA4_E);
    sketch_set_bools(s, ".attention.sliding_window_pattern", 5, (const bool[]){1, 1, 0, 1, 1});
    BIND_REFUSED(s, CLT_E_FILE, "sliding_window_pattern has 5 items, expected one per layer (6)");
    s = sketch_gguf(GEMMA4_E);
    sketch_set_list(s, ".attention.sliding_window_pattern", 6, (const int[]){1, 1, 2, 1, 1, 0});
    BIND_REFUSED(s, CLT_E_FILE, "sliding_window_pattern is 2, expected 0 to 1");
    s = sketch_gguf(GEMMA3);
    sketch_set_list(s, ".block_count", 0, NULL);
    BIND_REFUSED(s, CLT_E_FILE, "gemma3.block_count");
}

static void test_gemma3_has_one_head_width(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA3);
    sketch_set(s, ".attention.key_length_swa", 64);
    sketch_set(s, ".attention.value_length_swa", 64);
    BIND_REFUSED(s, CLT_E_FILE, "gemma3.attention.key_length_swa is 64, expected 16");
}

static void test_sharing_without_a_donor(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_E);
    sketch_set(s, ".attention.shared_kv_layers", 4);
    BIND_REFUSED(s, CLT_E_FILE, "layer 2 shares keys and values, but no earlier full layer has its own");
    s = sketch_gguf(GEMMA4_E);
    sketch_set(s, ".attention.shared_kv_layers", 6);
    BIND_REFUSED(s, CLT_E_FILE, "6 of 6 layers share keys and values, expected 0 to 5");
}

static sketch *with_freqs(int n, float fill) {
    sketch *s = sketch_gguf(GEMMA4_DENSE);
    sketch_add(s, "rope_freqs.weight", n, 1, 1);
    sketch_find(s, "rope_freqs.weight")->fill = fill;
    return s;
}

static void test_rope_divisors(void **state) {
    (void)state;
    bound *b = sketch_bind(with_freqs(16, 1));
    assert_int_equal(b->model.config.rope_pairs_full, 16);
    bound_close(b);
    b = sketch_bind(with_freqs(16, 1e30f));
    assert_int_equal(b->model.config.rope_pairs_full, 0);
    bound_close(b);
    BIND_REFUSED(with_freqs(16, 2), CLT_E_UNSUPPORTED, "rope_freqs.weight holds 2 at 0, expected 1");
    BIND_REFUSED(with_freqs(8, 1), CLT_E_FILE, "rope_freqs.weight has 8 numbers of type F32, expected 16");
    sketch *s = with_freqs(16, 1);
    sketch_find(s, "rope_freqs.weight")->type = CLT_F16;
    BIND_REFUSED(s, CLT_E_FILE, "rope_freqs.weight has 16 numbers of type F16");
}

static float divisor(sketch *s) {
    bound *b = sketch_bind(s);
    float d = b->model.config.rope_divisor_full;
    bound_close(b);
    return d;
}

static void test_rope_scaling(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA3);
    sketch_set_string(s, ".rope.scaling.type", "linear");
    sketch_set_float(s, ".rope.scaling.factor", 8);
    assert_true(divisor(s) == 8);
    s = sketch_gguf(GEMMA3);
    sketch_set_float(s, ".rope.scaling.factor", 8); /* linear where no type is given, as in llama.cpp */
    assert_true(divisor(s) == 8);
    s = sketch_gguf(GEMMA3);
    sketch_set_string(s, ".rope.scaling.type", "none");
    assert_true(divisor(s) == 1);
    s = sketch_gguf(GEMMA3);
    sketch_set_string(s, ".rope.scaling.type", "linear");
    BIND_REFUSED(s, CLT_E_FILE, "gemma3.rope.scaling.factor is missing");
    s = sketch_gguf(GEMMA3);
    sketch_set_string(s, ".rope.scaling.type", "yarn");
    BIND_REFUSED(s, CLT_E_UNSUPPORTED, "rope.scaling.type is \"yarn\"");
    s = sketch_gguf(GEMMA3);
    sketch_set(s, ".rope.scaling.type", 1);
    BIND_REFUSED(s, CLT_E_FILE, "rope.scaling.type is not a string");
    s = sketch_gguf(GEMMA3);
    sketch_set_string(s, ".rope.scaling.type", "linear");
    sketch_set_float(s, ".rope.scaling.factor", 0);
    BIND_REFUSED(s, CLT_E_FILE, "rope scaling factor is 0");
    s = sketch_gguf(GEMMA4_DENSE);
    sketch_set_string(s, ".rope.scaling.type", "linear");
    BIND_REFUSED(s, CLT_E_UNSUPPORTED, "rope.scaling.type is \"linear\", expected none");
    s = sketch_gguf(GEMMA4_DENSE);
    sketch_set_float(s, ".rope.scaling.factor", 8);
    BIND_REFUSED(s, CLT_E_UNSUPPORTED, "rope.scaling.factor");
}

static void test_softcaps(void **state) {
    (void)state;
    for (int kind = GEMMA3; kind <= GEMMA4_DENSE; kind++) {
        sketch *s = sketch_gguf((sketch_kind)kind);
        sketch_set_float(s, ".attn_logit_softcapping", 50);
        BIND_REFUSED(s, CLT_E_UNSUPPORTED, "attention softcapping");
    }
    sketch *s = sketch_gguf(GEMMA4_DENSE);
    sketch_set_float(s, ".final_logit_softcapping", -1);
    BIND_REFUSED(s, CLT_E_FILE, "softcap -1");
}

static void refuse_architecture(const char *arch, const char *words, const char *hint) {
    sketch *s = sketch_gguf(GEMMA4_DENSE);
    sketch_set_string(s, "general.architecture", arch);
    BIND_REFUSED(s, CLT_E_UNSUPPORTED, words, hint);
}

static void test_other_architectures(void **state) {
    (void)state;
    refuse_architecture("llama", "architecture is \"llama\"", "Gemma 4 and Gemma 3 text models only");
    refuse_architecture("gemma3n", "architecture is \"gemma3n\"", "text models only");
    refuse_architecture("gemma4n", "architecture is \"gemma4n\"", "text models only");
    refuse_architecture("clip", "is a vision or audio file", "--mmproj");
    refuse_architecture("gemma4-assistant", "is a drafter (architecture \"gemma4-assistant\")", "--model-draft");
    refuse_architecture("gemma4_assistant", "is a drafter", "--model-draft");
    refuse_architecture("gemma4_mtp", "is a drafter", "--model-draft");
    refuse_architecture("evil\n\x1b[2J", "architecture is \"evil??[2J\"", "");
    refuse_architecture("an architecture of more than thirty-one bytes", "architecture is \"an architecture of more", "");
}

static void test_generation_keys(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_DENSE);
    sketch_set(s, "tokenizer.ggml.eos_token_id", 1);
    sketch_set(s, "tokenizer.ggml.eot_token_id", 106);
    sketch_set_list(s, "tokenizer.ggml.eos_token_ids", 4, (const int[]){50, 1, 106, -1});
    sketch_set_list(s, "tokenizer.ggml.suppress_tokens", 2, (const int[]){7, 9});
    sketch_set_float(s, "general.sampling.temp", 0.5f);
    sketch_set(s, "general.sampling.top_k", 64);
    sketch_set_float(s, "general.sampling.top_p", 0.25f);
    sketch_set_string(s, "general.name", "Tiny it");
    sketch_set_string(s, "tokenizer.chat_template", "{{ x }}");
    bound *b = sketch_bind(s);
    const clt_model *m = &b->model;
    assert_int_equal(m->n_end_ids, 3);
    assert_true(m->end_ids[0] == 1 && m->end_ids[1] == 106 && m->end_ids[2] == 50);
    assert_int_equal(m->n_suppressed_ids, 2);
    assert_true(m->has_temperature && m->temperature == 0.5f && m->has_top_k && m->top_k == 64 && m->has_top_p &&
                m->top_p == 0.25f);
    assert_string_equal(m->name, "Tiny it");
    assert_true(m->is_instruct_name);
    assert_int_equal(m->chat_template_len, 7);
    bound_close(b);
    s = sketch_gguf(GEMMA4_DENSE);
    sketch_set_float(s, "general.sampling.top_p", 1.5f);
    sketch_set_float(s, "general.sampling.temp", -1);
    b = sketch_bind(s);
    assert_false(b->model.has_top_p || b->model.has_temperature || b->model.has_top_k || b->model.is_instruct_name);
    assert_int_equal(b->model.n_end_ids, 0);
    assert_null(b->model.chat_template);
    bound_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_and_arrays_mean_the_same),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_numbers_out_of_range),
        cmocka_unit_test(test_missing_keys_are_named),
        cmocka_unit_test(test_wrong_kinds_of_values),
        cmocka_unit_test(test_gemma3_has_one_head_width),
        cmocka_unit_test(test_sharing_without_a_donor),
        cmocka_unit_test(test_rope_divisors),
        cmocka_unit_test(test_rope_scaling),
        cmocka_unit_test(test_softcaps),
        cmocka_unit_test(test_other_architectures),
        cmocka_unit_test(test_generation_keys),
    };
    return cmocka_run_group_tests(tests, models_setup, models_teardown);
}
