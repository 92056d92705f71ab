/* Roles and tensors: every member of the family binds, and whatever does not fit is listed, all of it, in one error. */
#include "model/models.h"

static void check_roles(bound *b, sketch_kind kind) {
    const clt_config *c = &b->model.config;
    assert_int_equal(c->layers, SKETCH_LAYERS);
    assert_int_equal(c->vocab, SKETCH_V);
    for (int l = 0; l < SKETCH_LAYERS; l++) {
        const clt_layer_config *lc = &c->layer[l];
        const clt_layer_tensors *t = &b->model.layer[l];
        bool full = l % 3 == 2, k_is_v = full && (kind == GEMMA4_DENSE || kind == GEMMA4_MOE);
        int dh = full && kind != GEMMA3 ? 32 : 16, kv = kind == GEMMA4_MOE && !full ? 2 : 1;
        assert_int_equal(lc->sliding, !full);
        assert_int_equal(lc->head_dim, dh);
        assert_int_equal(lc->kv_heads, kv);
        assert_int_equal(lc->k_is_v, k_is_v);
        assert_int_equal(lc->own_kv, kind != GEMMA4_E || l < 3);
        assert_int_equal(lc->kv_donor, lc->own_kv ? l : full ? 2 : 1);
        assert_true(t->attn_norm && t->q && t->o && t->q_norm && t->post_attn_norm && t->ffn_norm && t->gate && t->up &&
                    t->down);
        assert_int_equal(t->q->dims[1], 2 * dh);
        assert_int_equal(t->o->dims[0], 2 * dh);
        assert_int_equal(t->k != NULL, lc->own_kv);
        assert_int_equal(t->k_norm != NULL, lc->own_kv);
        assert_int_equal(t->v != NULL, lc->own_kv && !k_is_v);
        if (t->k) assert_int_equal(t->k->dims[1], kv * dh);
        assert_int_equal(t->scalar != NULL, kind != GEMMA3);
        assert_int_equal(t->ple_gate && t->ple_proj && t->ple_norm, kind == GEMMA4_E);
        assert_int_equal(t->router && t->gate_up_exps && t->down_exps && t->expert_scale, kind == GEMMA4_MOE);
        assert_null(t->qkv);
    }
    assert_int_equal(b->model.ple_embed && b->model.ple_proj && b->model.ple_proj_norm, kind == GEMMA4_E);
    assert_ptr_equal(b->model.output, b->model.embed);
}

static void test_every_member_binds_from_gguf(void **state) {
    (void)state;
    for (int kind = GEMMA3; kind <= GEMMA4_MOE; kind++) {
        bound *b = sketch_bind(sketch_gguf((sketch_kind)kind));
        check_roles(b, (sketch_kind)kind);
        bound_close(b);
    }
}

static void test_every_member_binds_from_a_folder(void **state) {
    (void)state;
    static const char *const prefixes[] = {"model.language_model.", "language_model.model.", "model.", ""};
    for (int kind = GEMMA3; HAVE_HF && kind <= GEMMA4_MOE; kind++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            bound *b = sketch_bind(sketch_hf((sketch_kind)kind, prefixes[i]));
            check_roles(b, (sketch_kind)kind);
            bound_close(b);
        }
}

/* without: a layer that lacks its up projections, -1 for none. */
static sketch *split(int without) {
    sketch *s = sketch_gguf(GEMMA4_MOE);
    for (int l = 0; l < SKETCH_LAYERS; l++) {
        char name[96];
        snprintf(name, sizeof name, "blk.%d.ffn_gate_up_exps.weight", l);
        sketch_drop(s, name);
        snprintf(name, sizeof name, "blk.%d.ffn_gate_exps.weight", l);
        sketch_add(s, name, SKETCH_D, SKETCH_FE, SKETCH_E);
        snprintf(name, sizeof name, "blk.%d.ffn_up_exps.weight", l);
        if (l != without) sketch_add(s, name, SKETCH_D, SKETCH_FE, SKETCH_E);
    }
    return s;
}

static void test_split_experts_bind(void **state) {
    (void)state;
    bound *b = sketch_bind(split(-1));
    for (int l = 0; l < SKETCH_LAYERS; l++) {
        const clt_layer_tensors *t = &b->model.layer[l];
        assert_true(t->gate_exps && t->up_exps && t->down_exps && !t->gate_up_exps);
    }
    bound_close(b);
    BIND_REFUSED(split(4), CLT_E_FILE, "missing tensors: blk.4.ffn_up_exps.weight");
    assert_null(strstr(refusal(), "gate_up"));
}

static void test_fused_experts_beside_split_ones_are_extra(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_MOE);
    sketch_add(s, "blk.1.ffn_gate_exps.weight", SKETCH_D, SKETCH_FE, SKETCH_E);
    BIND_REFUSED(s, CLT_E_FILE, "extra tensors: blk.1.ffn_gate_exps.weight");
}

static sketch *fused(void) {
    sketch *s = sketch_gguf(GEMMA3);
    for (int l = 0; l < SKETCH_LAYERS; l++) {
        char name[96];
        for (const char *p = "qkv"; *p; p++)
            snprintf(name, sizeof name, "blk.%d.attn_%c.weight", l, *p), sketch_drop(s, name);
        snprintf(name, sizeof name, "blk.%d.attn_qkv.weight", l);
        sketch_add(s, name, SKETCH_D, (2 + 2) * 16, 1);
    }
    return s;
}

static void test_fused_queries_keys_and_values(void **state) {
    (void)state;
    bound *b = sketch_bind(fused());
    for (int l = 0; l < SKETCH_LAYERS; l++) {
        assert_non_null(b->model.layer[l].qkv);
        assert_null(b->model.layer[l].q);
    }
    bound_close(b);
    sketch *s = fused();
    sketch_find(s, "blk.3.attn_qkv.weight")->dims[1] = 48;
    BIND_REFUSED(s, CLT_E_FILE, "wrong tensors: blk.3.attn_qkv.weight has shape [32, 48, 1, 1], expected [32, 64, 1, 1]");
    s = fused();
    sketch_add(s, "blk.3.attn_k.weight", SKETCH_D, 16, 1);
    BIND_REFUSED(s, CLT_E_FILE, "extra tensors: blk.3.attn_k.weight");
}

static void test_one_error_lists_everything(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_E);
    sketch_drop(s, "blk.0.attn_k.weight");
    sketch_drop(s, "blk.2.ffn_norm.weight");
    sketch_drop(s, "output_norm.weight");
    sketch_find(s, "blk.5.ffn_up.weight")->dims[1] = 47;
    sketch_find(s, "blk.1.proj.weight")->dims[0] = 9;
    sketch_find(s, "per_layer_model_proj.weight")->dims[1] = 5;
    sketch_find(s, "blk.3.attn_norm.weight")->type = CLT_Q8_0;
    sketch_add(s, "blk.6.attn_norm.weight", SKETCH_D, 1, 1);
    sketch_add(s, "surprise", 3, 1, 1);
    BIND_REFUSED(s, CLT_E_FILE, "missing tensors: ", "blk.0.attn_k.weight", "blk.2.ffn_norm.weight", "output_norm.weight",
                 "wrong tensors: ", "blk.5.ffn_up.weight has shape [32, 47, 1, 1], expected [32, 48, 1, 1]",
                 "blk.1.proj.weight", "per_layer_model_proj.weight has shape [32, 5, 1, 1], expected [32, 48, 1, 1]",
                 "blk.3.attn_norm.weight has type Q8_0, expected F32, F16 or BF16",
                 "extra tensors: ", "blk.6.attn_norm.weight", "surprise", "convert it again");
}

/* What a layer of this model has no use for is left over, though another member of the family knows the name. */
static void test_known_names_in_the_wrong_model_are_extra(void **state) {
    (void)state;
    static const struct { sketch_kind kind; const char *name; int cols, rows, experts; } extra[] = {
        {GEMMA4_DENSE, "blk.1.post_norm.weight", SKETCH_D, 1, 1},
        {GEMMA4_DENSE, "blk.1.inp_gate.weight", SKETCH_D, 8, 1},
        {GEMMA4_DENSE, "blk.1.post_ffw_norm_1.weight", SKETCH_D, 1, 1},
        {GEMMA4_E, "blk.0.ffn_gate_inp.scale", SKETCH_D, 1, 1},
        {GEMMA4_E, "blk.0.ffn_down_exps.weight", SKETCH_FE, SKETCH_D, 4},
        {GEMMA3, "blk.5.layer_output_scale.weight", 1, 1, 1},
        {GEMMA3, "rope_freqs.weight", 8, 1, 1},
        {GEMMA4_DENSE, "per_layer_proj_norm.weight", SKETCH_P, 1, 1}};
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++) {
        char want[128];
        sketch *s = sketch_gguf(extra[i].kind);
        sketch_add(s, extra[i].name, extra[i].cols, extra[i].rows, extra[i].experts);
        snprintf(want, sizeof want, ": extra tensors: %s", extra[i].name);
        BIND_REFUSED(s, CLT_E_FILE, want);
    }
    if (!HAVE_HF) return;
    sketch *s = sketch_hf(GEMMA4_DENSE, "model.");
    sketch_add(s, "model.layers.2.self_attn.v_proj.weight", SKETCH_D, 32, 1);
    BIND_REFUSED(s, CLT_E_FILE, ": extra tensors: model.layers.2.self_attn.v_proj.weight");
}

static void test_a_missing_embedding_is_not_blamed_on_others(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_E);
    sketch_drop(s, "token_embd.weight");
    BIND_REFUSED(s, CLT_E_FILE, "missing tensors: token_embd.weight");
    assert_null(strstr(refusal(), "wrong tensors"));
}

/* A list longer than an error puts the layers of a role together. */
static void test_long_lists_are_grouped_by_layers(void **state) {
    (void)state;
    enum { MANY = 120 };
    sketch *s = sketch_gguf(GEMMA3);
    sketch_set(s, ".block_count", MANY);
    BIND_REFUSED(s, CLT_E_FILE, "blk.{6-119}.attn_norm.weight", "blk.{6-119}.post_ffw_norm.weight");
    assert_null(strstr(refusal(), "blk.6."));
    s = sketch_gguf(GEMMA3);
    sketch_set(s, ".block_count", MANY);
    sketch_drop(s, "blk.0.attn_q.weight");
    sketch_drop(s, "blk.2.attn_q.weight");
    sketch_drop(s, "blk.3.attn_q.weight");
    BIND_REFUSED(s, CLT_E_FILE, "blk.{0,2-3,6-119}.attn_q.weight");
}

static void test_vectors_may_be_half_floats_only(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_DENSE);
    sketch_find(s, "blk.0.attn_norm.weight")->type = CLT_F16;
    sketch_find(s, "output_norm.weight")->type = CLT_BF16;
    sketch_find(s, "blk.1.ffn_gate.weight")->type = CLT_Q4_0;
    bound_close(sketch_bind(s));
    s = sketch_gguf(GEMMA4_DENSE);
    sketch_find(s, "output_norm.weight")->type = CLT_Q8_0;
    BIND_REFUSED(s, CLT_E_FILE, "wrong tensors: output_norm.weight has type Q8_0");
}

static void test_sharing_layers_may_carry_unused_keys(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA4_E);
    sketch_add(s, "blk.4.attn_k.weight", SKETCH_D, 16, 1);
    sketch_add(s, "blk.4.attn_v.weight", SKETCH_D, 16, 1);
    sketch_add(s, "blk.4.attn_k_norm.weight", 16, 1, 1);
    bound *b = sketch_bind(s);
    assert_null(b->model.layer[4].k);
    assert_null(b->model.layer[4].v);
    assert_null(b->model.layer[4].k_norm);
    bound_close(b);
}

static void test_output_of_its_own(void **state) {
    (void)state;
    sketch *s = sketch_gguf(GEMMA3);
    sketch_add(s, "output.weight", SKETCH_D, SKETCH_V, 1);
    bound *b = sketch_bind(s);
    assert_string_equal(b->model.output->name, "output.weight");
    bound_close(b);
    s = sketch_gguf(GEMMA3);
    sketch_add(s, "output.weight", SKETCH_D, SKETCH_V - 1, 1);
    BIND_REFUSED(s, CLT_E_FILE, "output.weight has shape [32, 39, 1, 1], expected [32, 40, 1, 1]");
}

static void test_tied_and_untied_heads_of_folders(void **state) {
    (void)state;
    if (!HAVE_HF) return;
    sketch *s = sketch_hf(GEMMA3, "model.");
    sketch_add(s, "lm_head.weight", SKETCH_D, SKETCH_V, 1); /* a stored copy; tied is the default */
    bound *b = sketch_bind(s);
    assert_ptr_equal(b->model.output, b->model.embed);
    bound_close(b);
    s = sketch_hf(GEMMA3, "model.");
    sketch_add(s, "lm_head.weight", SKETCH_D, SKETCH_V, 1);
    sketch_edit(s, "{\"model_type\"", "{\"tie_word_embeddings\": false, \"model_type\"");
    b = sketch_bind(s);
    assert_string_equal(b->model.output->name, "lm_head.weight");
    bound_close(b);
    s = sketch_hf(GEMMA3, "model.");
    sketch_edit(s, "{\"model_type\"", "{\"tie_word_embeddings\": false, \"model_type\"");
    BIND_REFUSED(s, CLT_E_FILE, "missing tensors: lm_head.weight");
    s = sketch_hf(GEMMA4_DENSE, "model.language_model."); /* said outside of text_config only */
    sketch_add(s, "lm_head.weight", SKETCH_D, SKETCH_V, 1);
    sketch_edit(s, "{\"model_type\"", "{\"tie_word_embeddings\": false, \"model_type\"");
    b = sketch_bind(s);
    assert_string_equal(b->model.output->name, "lm_head.weight");
    bound_close(b);
}

static void test_pictures_and_sound_are_left_alone(void **state) {
    (void)state;
    static const char *const others[] = {"model.vision_tower.patch.weight",
                                         "model.audio_tower.x",
                                         "model.embed_vision.proj.weight",
                                         "vision_tower.a",
                                         "multi_modal_projector.b",
                                         "model.embed_audio.c",
                                         "model.layers.0.self_attn.rotary_emb.inv_freq"};
    if (!HAVE_HF) return;
    sketch *s = sketch_hf(GEMMA4_E, "model.language_model.");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) sketch_add(s, others[i], 4, 2, 1);
    bound_close(sketch_bind(s));
    s = sketch_hf(GEMMA4_E, "model.language_model.");
    sketch_add(s, "model.visions.patch.weight", 4, 2, 1);
    BIND_REFUSED(s, CLT_E_FILE, ": extra tensors: model.visions.patch.weight");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member_binds_from_gguf),
        cmocka_unit_test(test_every_member_binds_from_a_folder),
        cmocka_unit_test(test_split_experts_bind),
        cmocka_unit_test(test_fused_experts_beside_split_ones_are_extra),
        cmocka_unit_test(test_fused_queries_keys_and_values),
        cmocka_unit_test(test_one_error_lists_everything),
        cmocka_unit_test(test_known_names_in_the_wrong_model_are_extra),
        cmocka_unit_test(test_a_missing_embedding_is_not_blamed_on_others),
        cmocka_unit_test(test_long_lists_are_grouped_by_layers),
        cmocka_unit_test(test_vectors_may_be_half_floats_only),
        cmocka_unit_test(test_sharing_layers_may_carry_unused_keys),
        cmocka_unit_test(test_output_of_its_own),
        cmocka_unit_test(test_tied_and_untied_heads_of_folders),
        cmocka_unit_test(test_pictures_and_sound_are_left_alone),
    };
    return cmocka_run_group_tests(tests, models_setup, models_teardown);
}
