/* What both forms of a configuration share: sharing of keys, plausibility, names. */
#include <math.h>

#include "model/internal.h"
#include "model/models.h"

static void test_instruct_names(void **state) {
    (void)state;
    static const char *const yes[] = {"it",       "gemma-3-1b-it",   "IT",   "Gemma 4 E2B It Q4",
                                      "Instruct", "x_instruct.gguf", "it-x", "a/it"};
    static const char *const no[] = {"",           "bit", "gemma-4-bits", "item", "italic",
                                     "instructed", "pt",  "reinstruct",   "i t",  "it2"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!clt_name_is_instruct(yes[i], strlen(yes[i]))) fail_msg("'%s' is an instruct name", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (clt_name_is_instruct(no[i], strlen(no[i]))) fail_msg("'%s' is no instruct name", no[i]);
    assert_false(clt_name_is_instruct("item", 3));
    assert_true(clt_name_is_instruct("item", 2)); /* the length decides, not a NUL */
}

static void test_drafters(void **state) {
    (void)state;
    assert_true(clt_type_is_drafter("gemma4-assistant") && clt_type_is_drafter("gemma4_assistant") &&
                clt_type_is_drafter("gemma4_mtp"));
    assert_false(clt_type_is_drafter("gemma4") || clt_type_is_drafter("gemma3-assistant") ||
                 clt_type_is_drafter("gemma4_text"));
}

static void test_family_names(void **state) {
    (void)state;
    static const struct { clt_family family; int width, ple, experts; const char *name;
    } named[] = {{CLT_GEMMA4, 1536, 256, 0, "Gemma 4 E2B"},
                 {CLT_GEMMA4, 2560, 256, 0, "Gemma 4 E4B"},
                 {CLT_GEMMA4, 3840, 0, 0, "Gemma 4 12B"},
                 {CLT_GEMMA4, 2816, 0, 128, "Gemma 4 26B-A4B"},
                 {CLT_GEMMA4, 5376, 0, 0, "Gemma 4 31B"},
                 {CLT_GEMMA3, 640, 0, 0, "Gemma 3 270M"},
                 {CLT_GEMMA3, 1152, 0, 0, "Gemma 3 1B"},
                 {CLT_GEMMA3, 2560, 0, 0, "Gemma 3 4B"},
                 {CLT_GEMMA3, 3840, 0, 0, "Gemma 3 12B"},
                 {CLT_GEMMA3, 5376, 0, 0, "Gemma 3 27B"},
                 {CLT_GEMMA4, 64, 8, 0, "Gemma 4 (per-layer embeddings, 6 layers)"},
                 {CLT_GEMMA4, 64, 0, 4, "Gemma 4 (experts, 6 layers)"},
                 {CLT_GEMMA3, 64, 0, 0, "Gemma 3 (dense, 6 layers)"}};
    clt_model m = {.arena = clt_arena_create(4096)};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        m.config = (clt_config){.family = named[i].family, .width = named[i].width, .layers = 6, .ple_dim = named[i].ple,
                                .experts = named[i].experts};
        assert_string_equal(clt_config_family_name(&m), named[i].name);
    }
    clt_arena_free(m.arena);
}

static void test_lists_of_ids(void **state) {
    (void)state;
    clt_model m = {.n_end_ids = 0};
    for (int64_t id = 0; id < 40; id++) clt_model_add_end_id(&m, id / 2);
    assert_int_equal(m.n_end_ids, 16);
    for (int i = 0; i < 16; i++) assert_int_equal(m.end_ids[i], i);
    clt_model_add_suppressed_id(&m, -1);
    clt_model_add_suppressed_id(&m, (int64_t)INT32_MAX + 1);
    assert_int_equal(m.n_suppressed_ids, 0);
    for (int64_t id = 0; id < 100; id++) clt_model_add_suppressed_id(&m, id);
    assert_int_equal(m.n_suppressed_ids, 64);
}

static void test_layers_read_the_last_of_their_own_kind(void **state) {
    (void)state;
    bound *b = sketch_bind(sketch_gguf(GEMMA4_E));
    static clt_err err;
    static const int donors[][6] = {
        [0] = {0, 1, 2, 3, 4, 5}, [1] = {0, 1, 2, 3, 4, 2}, [2] = {0, 1, 2, 3, 3, 2}, [3] = {0, 1, 2, 1, 1, 2}};
    for (int shared = 0; shared < 4; shared++) {
        assert_int_equal(clt_config_share_kv(&b->model, shared, &err), CLT_OK);
        for (int l = 0; l < 6; l++) {
            assert_int_equal(b->model.config.layer[l].kv_donor, donors[shared][l]);
            assert_int_equal(b->model.config.layer[l].own_kv, l < 6 - shared);
        }
    }
    assert_int_equal(clt_config_share_kv(&b->model, -1, &err), CLT_E_FILE);
    assert_int_equal(clt_config_share_kv(&b->model, 6, &err), CLT_E_FILE);
    bound_close(b);
}

/* One value at a time is made senseless. */
static void test_senseless_values(void **state) {
    (void)state;
    bound *b = sketch_bind(sketch_gguf(GEMMA4_MOE));
    static clt_err err;
    clt_config *c = &b->model.config, good = *c;
    clt_layer_config first = c->layer[0];
    assert_int_equal(clt_config_check(&b->model, &err), CLT_OK);
#define SENSELESS(change, words)                                                             \
    do {                                                                                     \
        change;                                                                              \
        assert_int_equal(clt_config_check(&b->model, &err), CLT_E_FILE);                     \
        if (!strstr(err.text, words)) fail_msg("'%s' is not in: %s", words, err.text);       \
        *c = good, c->layer[0] = first;                                                      \
    } while (0)
    SENSELESS(c->rms_eps = 0, "RMS epsilon is 0");
    SENSELESS(c->rms_eps = (float)NAN, "RMS epsilon");
    SENSELESS(c->rope_theta_full = 1, "rope bases");
    SENSELESS(c->rope_theta_sliding = (double)INFINITY, "rope bases");
    SENSELESS(c->rope_divisor_full = 0.5f, "rope scaling factor is 0.5");
    SENSELESS(c->rope_divisor_full = (float)NAN, "rope scaling factor");
    SENSELESS(c->final_softcap = -30, "softcap -30");
    SENSELESS(c->attn_scale = (float)INFINITY, "attention scale inf");
    SENSELESS(c->window = 0, "sliding window is 0");
    SENSELESS(c->experts_used = 0, "0 of 4 experts");
    SENSELESS(c->experts_used = 5, "5 of 4 experts");
    SENSELESS(c->expert_ffn = 0, "experts of width 0");
    SENSELESS(c->layer[0].kv_heads = 3, "layer 0 has 2 heads over 3 KV heads");
    SENSELESS(c->layer[0].head_dim = 17, "layer 0 has 2 heads of width 17, expected an even width");
    SENSELESS(c->layer[0].kv_donor = 2, "layer 0 reads the keys of layer 2");
    SENSELESS(c->layer[0].ffn = 0, "layer 0 has a feed-forward width of 0");
    assert_int_equal(clt_config_check(&b->model, &err), CLT_OK);
    bound_close(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instruct_names),
        cmocka_unit_test(test_drafters),
        cmocka_unit_test(test_family_names),
        cmocka_unit_test(test_lists_of_ids),
        cmocka_unit_test(test_layers_read_the_last_of_their_own_kind),
        cmocka_unit_test(test_senseless_values),
    };
    return cmocka_run_group_tests(tests, models_setup, models_teardown);
}
