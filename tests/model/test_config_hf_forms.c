/* config.json and generation_config.json of sketched Hugging Face folders: old and new forms, defaults, refusals. What later
 * versions of the reference library write, on a golden model, is in test_config_hf.c. */
#include "model/models.h"

#define GEMMA4_PREFIX "model.language_model."
static const char model3[] = "{\"model_type\"", end4[] = "\"full_attention\"]",
                  end3[] = "\"max_position_embeddings\": 4096}";

/* The tiny dense Gemma 4 with more keys at the end of its text configuration, or Gemma 3 with more at its end. */
static sketch *with4(const char *more) {
    char to[1024];
    sketch *s = sketch_hf(GEMMA4_DENSE, GEMMA4_PREFIX);
    snprintf(to, sizeof to, "%s, %s", end4, more);
    sketch_edit(s, end4, to);
    return s;
}

static sketch *with3(const char *more) {
    char to[1024];
    sketch *s = sketch_hf(GEMMA3, "model.");
    snprintf(to, sizeof to, "\"max_position_embeddings\": 4096, %s}", more);
    sketch_edit(s, end3, to);
    return s;
}

static void check_rope(sketch *s, double full, double sliding, int pairs, float divisor) {
    bound *b = sketch_bind(s);
    const clt_config *c = &b->model.config;
    if (c->rope_theta_full != full || c->rope_theta_sliding != sliding || c->rope_pairs_full != pairs ||
        c->rope_divisor_full != divisor)
        fail_msg("rope is %g, %g, %d pairs, divided by %g", c->rope_theta_full, c->rope_theta_sliding, c->rope_pairs_full,
                 (double)c->rope_divisor_full);
    bound_close(b);
}

static void test_rope_of_gemma4(void **state) {
    (void)state;
    check_rope(sketch_hf(GEMMA4_DENSE, GEMMA4_PREFIX), 1e6, 1e4, 4, 1);
    check_rope(
        with4("\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"proportional\", \"rope_theta\": 5e5, "
              "\"partial_rotary_factor\": 0.5}, \"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 2e4}}"),
        5e5, 2e4, 8, 1);
    check_rope(with4("\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"default\", \"rope_theta\": 5e5}, "
                     "\"sliding_attention\": {\"rope_theta\": 2e4}}"), 5e5, 2e4, 16, 1);
    BIND_REFUSED(with4("\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"yarn\"}, \"sliding_attention\": {}}"),
                 CLT_E_FILE, "rope_parameters has an unknown rope_type for full_attention");
    BIND_REFUSED(with4("\"rope_parameters\": {\"full_attention\": {}, \"sliding_attention\": {\"rope_type\": \"linear\", "
                       "\"factor\": 8}}"), CLT_E_FILE, "rope_parameters has an unknown rope_type for sliding_attention");
    BIND_REFUSED(
        with4("\"rope_parameters\": {\"full_attention\": {\"partial_rotary_factor\": 1.5}, \"sliding_attention\": {}}"),
        CLT_E_FILE, "partial_rotary_factor is not in (0, 1]");
    BIND_REFUSED(with4("\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 5e5}"), CLT_E_FILE,
                 "rope_parameters lacks full_attention or sliding_attention");
    BIND_REFUSED(with4("\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}"), CLT_E_FILE, "rope_scaling is set");
}

static void test_rope_of_gemma3(void **state) {
    (void)state;
    check_rope(sketch_hf(GEMMA3, "model."), 1e6, 1e4, 8, 1);
    check_rope(with3("\"rope_theta\": 5e5, \"rope_local_base_freq\": 2e4"), 5e5, 2e4, 8, 1);
    check_rope(with3("\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8.0}"), 1e6, 1e4, 8, 8);
    check_rope(with3("\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4.0}"), 1e6, 1e4, 8, 4);
    check_rope(with3("\"rope_scaling\": null"), 1e6, 1e4, 8, 1);
    check_rope(
        with3("\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", \"factor\": 8.0, \"rope_theta\": 5e5}, "
              "\"sliding_attention\": {\"rope_type\": \"default\", \"rope_theta\": 2e4}}"),
        5e5, 2e4, 8, 8);
    BIND_REFUSED(with3("\"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 8.0}"), CLT_E_FILE,
                 "rope_scaling has an unknown rope_type");
    BIND_REFUSED(with3("\"rope_scaling\": {\"rope_type\": \"linear\"}"), CLT_E_FILE, "rope scaling factor is 0");
    BIND_REFUSED(with3("\"rope_parameters\": {\"full_attention\": {}, \"sliding_attention\": {\"rope_type\": \"linear\"}}"),
                 CLT_E_FILE, "rope_parameters has an unknown rope_type for sliding_attention");
    BIND_REFUSED(with3("\"rope_parameters\": {\"rope_theta\": 5e5}"), CLT_E_FILE, "rope_parameters lacks full_attention");
}

static void test_values_and_nesting(void **state) {
    (void)state;
    bound *b = sketch_bind(sketch_hf(GEMMA3, "model."));
    const clt_config *c = &b->model.config;
    assert_int_equal(c->family, CLT_GEMMA3);
    assert_true(b->model.norm_plus_one);
    assert_true(c->attn_scale == 0.25f && c->final_softcap == 0 && c->rms_eps == 1e-6f);
    bound_close(b);
    sketch *s = sketch_hf(GEMMA3, "language_model.model."); /* as the multimodal sizes have it */
    sketch_edit(s, "{\"model_type\": \"gemma3_text\", ", "{\"model_type\": \"gemma3\", \"text_config\": {");
    sketch_edit(s, end3, "\"max_position_embeddings\": 4096}}");
    b = sketch_bind(s);
    assert_int_equal(b->model.config.family, CLT_GEMMA3);
    bound_close(b);
    b = sketch_bind(with4("\"dtype\": \"bfloat16\""));
    assert_true(b->model.config.final_softcap == 30 && b->model.config.attn_scale == 1);
    assert_false(b->model.norm_plus_one);
    bound_close(b);
}

static void test_layer_types(void **state) {
    (void)state;
    bound *b = sketch_bind(with3("\"layer_types\": [\"full_attention\", \"sliding_attention\", \"sliding_attention\", "
                                 "\"sliding_attention\", \"sliding_attention\", \"sliding_attention\"]"));
    for (int l = 0; l < 6; l++) assert_int_equal(b->model.config.layer[l].sliding, l > 0);
    bound_close(b);
    BIND_REFUSED(with3("\"layer_types\": [\"full_attention\"]"), CLT_E_FILE, "layer_types does not have one item per layer");
    BIND_REFUSED(with3("\"layer_types\": \"full_attention\""), CLT_E_FILE, "layer_types does not have one item per layer");
    BIND_REFUSED(with3("\"layer_types\": [1, 2, 3, 4, 5, 6]"), CLT_E_FILE, "layer_types holds something else");
    sketch *s = sketch_hf(GEMMA4_DENSE, GEMMA4_PREFIX);
    sketch_edit(s, "\"layer_types\"", "\"layer_kinds\"");
    BIND_REFUSED(s, CLT_E_FILE, "layer_types is missing");
    s = sketch_hf(GEMMA3, "model.");
    sketch_edit(s, "\"sliding_window_pattern\": 3", "\"sliding_window_pattern\": 0");
    BIND_REFUSED(s, CLT_E_FILE, "sliding_window_pattern is 0, expected 1 to 1024");
}

static void test_numbers(void **state) {
    (void)state;
    static const struct { const char *from, *to, *words;
    } edits[] = {
        {"\"num_hidden_layers\": 6", "\"num_hidden_layers\": 0", "num_hidden_layers is 0, expected 1 to 1024"},
        {"\"num_hidden_layers\": 6", "\"num_hidden_layers\": 9223372036854775807",
         "num_hidden_layers is 9223372036854775807"},
        {"\"hidden_size\": 32", "\"hidden_size\": null", "hidden_size is missing"},
        {"\"hidden_size\": 32", "\"hidden_size\": \"32\"", "hidden_size is not a whole number"},
        {"\"hidden_size\": 32", "\"hidden_size\": 32.5", "hidden_size is not a whole number"},
        {"\"sliding_window\": 8", "\"sliding_window\": -1", "sliding_window is -1"},
        {"\"head_dim\": 16", "\"head_dim\": 1", "head_dim is 1, expected 2 to 4096"},
        {"\"query_pre_attn_scalar\": 16", "\"query_pre_attn_scalar\": 0", "query_pre_attn_scalar is not positive"},
        {"\"query_pre_attn_scalar\": 16", "\"rms_norm_eps\": 0", "RMS epsilon is 0"},
        {"\"query_pre_attn_scalar\": 16", "\"rms_norm_eps\": \"x\"", "rms_norm_eps is not a number"},
        {"\"query_pre_attn_scalar\": 16", "\"attn_logit_softcapping\": 50", "attn_logit_softcapping is set"},
        {"\"query_pre_attn_scalar\": 16", "\"attention_bias\": true", "attention_bias is true"},
        {"\"query_pre_attn_scalar\": 16", "\"vocab_size\": 12345", "expected [32, 12345, 1, 1]"},
        {"\"query_pre_attn_scalar\": 16", "\"hidden_activation\": \"silu\"",
         "hidden_activation is not \"gelu_pytorch_tanh\""},
        {"\"query_pre_attn_scalar\": 16", "\"use_bidirectional_attention\": true", "use_bidirectional_attention"},
        {"\"query_pre_attn_scalar\": 16", "\"use_bidirectional_attention\": \"all\"", "use_bidirectional_attention"}};
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        sketch *s = sketch_hf(GEMMA3, "model.");
        sketch_edit(s, edits[i].from, edits[i].to);
        BIND_REFUSED(s, strstr(edits[i].words, "bidirectional") ? CLT_E_UNSUPPORTED : CLT_E_FILE, edits[i].words);
    }
    bound_close(sketch_bind(with4("\"use_bidirectional_attention\": \"vision\""))); /* between pictures' tokens only */
    bound_close(sketch_bind(with4("\"use_bidirectional_attention\": null")));
}

static void refuse_type(const char *type, const char *words, const char *hint) {
    char to[96];
    sketch *s = sketch_hf(GEMMA4_DENSE, GEMMA4_PREFIX);
    snprintf(to, sizeof to, "{\"model_type\": \"%s\"", type);
    sketch_edit(s, "{\"model_type\": \"gemma4\"", to);
    BIND_REFUSED(s, CLT_E_UNSUPPORTED, words, hint);
}

static void test_model_types(void **state) {
    (void)state;
    static const char *const gemma4[] = {"gemma4_text", "gemma4_unified", "gemma4_unified_text"};
    for (size_t i = 0; i < 3; i++) {
        char to[64];
        sketch *s = sketch_hf(GEMMA4_DENSE, GEMMA4_PREFIX);
        snprintf(to, sizeof to, "{\"model_type\": \"%s\"", gemma4[i]);
        sketch_edit(s, "{\"model_type\": \"gemma4\"", to);
        bound *b = sketch_bind(s);
        assert_true(b->model.config.unified == (i > 0));
        bound_close(b);
    }
    refuse_type("gemma3n", "model_type is \"gemma3n\"", "text models only");
    refuse_type("llama", "model_type is \"llama\"", "text models only");
    refuse_type("gemma4_assistant", "is a drafter (model_type \"gemma4_assistant\")", "--model-draft");
    refuse_type("gemma4_unified_assistant", "is a drafter", "--model-draft");
    refuse_type("gemma4_mtp", "is a drafter", "--model-draft");
    refuse_type("a\\u0007b", "model_type is \"a?b\"", "");
    sketch *s = sketch_hf(GEMMA3, "model.");
    sketch_edit(s, model3, "{\"kind\"");
    BIND_REFUSED(s, CLT_E_FILE, "key model_type is missing");
}

static void test_shared_keys_and_wide_layers(void **state) {
    (void)state;
    sketch *s = sketch_hf(GEMMA4_E, GEMMA4_PREFIX);
    sketch_edit(s, "\"num_kv_shared_layers\": 3", "\"num_kv_shared_layers\": 3, \"use_double_wide_mlp\": true");
    for (int i = 0; i < s->n_tensors; i++)
        if (strstr(s->tensor[i].name, ".mlp.") && s->tensor[i].name[strlen(GEMMA4_PREFIX "layers.")] >= '3')
            s->tensor[i].dims[strstr(s->tensor[i].name, "down") ? 0 : 1] *= 2;
    bound *b = sketch_bind(s);
    assert_int_equal(b->model.config.layer[2].ffn, SKETCH_F);
    assert_int_equal(b->model.config.layer[3].ffn, 2 * SKETCH_F);
    bound_close(b);
    s = sketch_hf(GEMMA4_E, GEMMA4_PREFIX);
    sketch_edit(s, "\"num_kv_shared_layers\": 3", "\"num_kv_shared_layers\": 4");
    BIND_REFUSED(s, CLT_E_FILE, "layer 2 shares keys and values, but no earlier full layer");
    s = sketch_hf(GEMMA4_MOE, GEMMA4_PREFIX);
    sketch_edit(s, "\"top_k_experts\": 2", "\"top_k_experts\": 5");
    BIND_REFUSED(s, CLT_E_FILE, "5 of 4 experts");
    s = sketch_hf(GEMMA4_MOE, GEMMA4_PREFIX);
    sketch_edit(s, "\"num_experts\": 4", "\"num_experts\": null");
    BIND_REFUSED(s, CLT_E_FILE, "num_experts is missing");
}

static void test_generation(void **state) {
    (void)state;
    sketch *s = sketch_hf(GEMMA3, "model.");
    snprintf(s->generation, sizeof s->generation, "%s", "{\"eos_token_id\": [1, 106, 1, -3], \"suppress_tokens\": [5, 6], "
             "\"temperature\": 0.5, \"top_k\": 64, \"top_p\": 0.25}");
    bound *b = sketch_bind(s);
    const clt_model *m = &b->model;
    assert_true(m->n_end_ids == 2 && m->end_ids[0] == 1 && m->end_ids[1] == 106);
    assert_true(m->n_suppressed_ids == 2 && m->suppressed_ids[1] == 6);
    assert_true(m->has_temperature && m->temperature == 0.5f && m->has_top_k && m->top_k == 64 && m->has_top_p &&
                m->top_p == 0.25f);
    bound_close(b);
    b = sketch_bind(with3("\"eos_token_id\": 106")); /* no generation_config.json: the model's own key */
    assert_true(b->model.n_end_ids == 1 && b->model.end_ids[0] == 106 && !b->model.has_temperature);
    bound_close(b);
    s = sketch_hf(GEMMA3, "model.");
    snprintf(s->generation, sizeof s->generation, "%s", "{\"temperature\": \"hot\", \"top_k\": -1, \"top_p\": 0}");
    b = sketch_bind(s);
    assert_false(b->model.has_temperature || b->model.has_top_k || b->model.has_top_p);
    bound_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rope_of_gemma4),
        cmocka_unit_test(test_rope_of_gemma3),
        cmocka_unit_test(test_values_and_nesting),
        cmocka_unit_test(test_layer_types),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_model_types),
        cmocka_unit_test(test_shared_keys_and_wide_layers),
        cmocka_unit_test(test_generation),
    };
    if (!HAVE_HF) return 77;
    return cmocka_run_group_tests(tests, models_setup, models_teardown);
}
