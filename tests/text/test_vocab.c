/* Opening a vocabulary: pieces, kinds, roles, both forms of one vocabulary, and GGUF files that must be refused. */
#include <math.h>
#include "text/vocabs.h"

static void gemma4_pieces(void **state) {
    (void)state;
    clt_vocab *v = open_golden(0, false);
    size_t len;
    assert_int_equal(clt_vocab_size(v), 1280);
    assert_int_equal(clt_vocab_get_algorithm(v), CLT_VOCAB_BPE);
    assert_string_equal(clt_vocab_piece(v, 0, &len), "<pad>");
    assert_int_equal(len, 5);
    assert_string_equal(clt_vocab_piece(v, 139, NULL), "\xE2\x96\x81\xE2\x96\x81\xE2\x96\x81");
    assert_null(clt_vocab_piece(v, -1, &len));
    assert_null(clt_vocab_piece(v, 1280, NULL));
    assert_int_equal(clt_vocab_find(v, "<|turn>"), 105);
    assert_int_equal(clt_vocab_find(v, "<0x0A>"), 248);
    assert_int_equal(clt_vocab_find(v, "<|turn"), -1);
    assert_int_equal(clt_vocab_find(v, ""), -1);
    assert_int_equal(clt_vocab_kind(v, 2), CLT_TOKEN_CONTROL);
    assert_int_equal(clt_vocab_kind(v, 48), CLT_TOKEN_USER);
    assert_int_equal(clt_vocab_kind(v, 107), CLT_TOKEN_NORMAL);
    assert_int_equal(clt_vocab_kind(v, 238), CLT_TOKEN_BYTE);
    assert_int_equal(clt_vocab_kind(v, -5), CLT_TOKEN_UNUSED);
    const int32_t special[] = {0, 1, 2, 3, 4, 46, 47, 48, 49, 50, 51, 52, 98, 100, 101, 105, 106};
    for (int32_t id = 0, at = 0; id < 1273; id++) {
        bool expected = at < 17 && special[at] == id;
        at += expected;
        assert_int_equal(clt_vocab_is_special(v, id), expected);
    }
    for (int32_t id = 1273; id < 1280; id++) assert_true(clt_vocab_is_special(v, id));
    assert_false(clt_vocab_is_special(v, 1280));
    clt_vocab_free(v);
    clt_vocab_free(NULL);
}

static void gemma4_roles(void **state) {
    (void)state;
    clt_vocab *v = open_golden(0, false);
    const clt_vocab_roles expected = {
        .bos = 2,
        .eos = 1,
        .unk = 3,
        .pad = 0,
        .turn_open = 105,
        .turn_close = 106,
        .channel_open = 100,
        .channel_close = 101,
        .tool_open = 46,
        .tool_close = 47,
        .call_open = 48,
        .call_close = 49,
        .response_open = 50,
        .response_close = 51,
        .quote = 52,
        .think = 98,
        .image_begin = 1273,
        .image_slot = 1275,
        .image_end = 1277,
        .audio_begin = 1274,
        .audio_slot = 1276,
        .audio_end = 1278,
        .video_slot = 1279,
    };
    assert_memory_equal(clt_vocab_get_roles(v), &expected, sizeof expected);
    clt_vocab_free(v);
}

static void gemma3_roles(void **state) {
    (void)state;
    static const made_piece pieces[] = {{"<bos>", 3, 0},
                                        {"<start_of_turn>", 4, 0},
                                        {"<end_of_turn>", 3, 0},
                                        {"<start_of_image>", 4, 0},
                                        {"<end_of_image>", 4, 0},
                                        {"<image_soft_token>", 1, 0},
                                        {"a", 1, 0}};
    clt_vocab *v = open_vocab(write_made(&(made_vocab){.model = "llama", MADE(pieces), .bos = 6}));
    const clt_vocab_roles *r = clt_vocab_get_roles(v);
    assert_int_equal(r->bos, 6); /* the key decides */
    assert_int_equal(r->eos, -1);
    assert_int_equal(r->turn_open, 1);
    assert_int_equal(r->turn_close, 2);
    assert_int_equal(r->image_begin, 3);
    assert_int_equal(r->image_end, 4);
    assert_int_equal(r->image_slot, 5);
    assert_int_equal(r->call_open, -1);
    for (int32_t id = 0; id < 6; id++) assert_true(clt_vocab_is_special(v, id));
    assert_false(clt_vocab_is_special(v, 6));
    clt_vocab_free(v);
}

static void both_forms_are_equal(void **state) {
    (void)state;
    int compared = 0;
    for (size_t i = 0; i < N_GOLDEN; i++) {
        clt_vocab *gguf = open_golden(i, false), *json = open_golden(i, true);
        for (int32_t id = 0; json && id < 1280; id++) {
            assert_string_equal(clt_vocab_piece(gguf, id, NULL), clt_vocab_piece(json, id, NULL));
            assert_int_equal(clt_vocab_is_special(gguf, id), clt_vocab_is_special(json, id));
            if (i != GOLDEN_GEMMA3) assert_int_equal(clt_vocab_kind(gguf, id), clt_vocab_kind(json, id));
        }
        if (json) {
            assert_int_equal(clt_vocab_size(gguf), clt_vocab_size(json));
            assert_int_equal(clt_vocab_get_algorithm(gguf), clt_vocab_get_algorithm(json));
            assert_memory_equal(clt_vocab_get_roles(gguf), clt_vocab_get_roles(json), sizeof(clt_vocab_roles));
            compared++;
        }
        clt_vocab_free(gguf);
        clt_vocab_free(json);
    }
    assert_true(compared >= 2);
}

/* ---- refusals ---- */

static void refuse(const made_vocab *m, clt_status code, const char *word) {
    clt_err err;
    clt_vocab *v = NULL;
    clt_file *f = open_ok(write_made(m));
    long live = clt_mem_live();
    clt_status status = clt_vocab_open(f, &v, &err);
    if (status == CLT_OK) fail_msg("opened, expected: %s", word);
    if (!strstr(err.text, word)) fail_msg("'%s' is not in: %s", word, err.text);
    assert_int_equal(status, code);
    assert_non_null(strstr(err.text, "made.gguf")); /* the error names the file */
    assert_one_line(err.text);
    assert_null(v);
    assert_int_equal(clt_mem_live(), live);
    clt_file_close(f);
}

static void hostile_gguf(void **state) {
    (void)state;
    static const made_piece ab[] = {{"a", 1, 0}, {"b", 1, 0}, {"ab", 1, 0}};
    static const made_piece bad_kind[] = {{"a", 7, 0}}, zero_kind[] = {{"a", 0, 0}}, minus_kind[] = {{"a", -1, 0}};
    static const made_piece twice[] = {{"a", 1, 0}, {"b", 1, 0}, {"a", 1, 0}};
    static const made_piece bad_byte[] = {{"<0xZZ>", 6, 0}}, nan_score[] = {{"a", 1, NAN}},
                            infinite[] = {{"a", 1, INFINITY}};
    static const char *const unknown[] = {"a b", "a c"}, *const no_result[] = {"b a"}, *const no_space[] = {"ab"},
                             *const empty[] = {""};
    static const char *const no_right[] = {"a "}, *const only_space[] = {" "};
    static const char *const keys[] = {"model", "tokens", "token_type", "merges"};
    for (size_t i = 0; i < 4; i++) refuse(&(made_vocab){MADE(ab), .without = keys[i]}, CLT_E_FILE, keys[i]);
    refuse(&(made_vocab){MADE(ab), .model = "llama", .without = "scores"}, CLT_E_FILE, "scores is missing");
    refuse(&(made_vocab){MADE(ab), .model = "gpt2"}, CLT_E_UNSUPPORTED, "gpt2");
    refuse(&(made_vocab){MADE(ab), .model = "gemma4x"}, CLT_E_UNSUPPORTED, "gemma4x");
    refuse(&(made_vocab){MADE(ab), .model = "a\nb"}, CLT_E_UNSUPPORTED, "tokenizer.ggml.model");
    refuse(&(made_vocab){.no_bytes = true}, CLT_E_FILE, "0 pieces");
    refuse(&(made_vocab){MADE(ab), .extra_types = 1}, CLT_E_FILE, "260 items, expected 259");
    refuse(&(made_vocab){MADE(ab), .extra_types = -1}, CLT_E_FILE, "258 items, expected 259");
    refuse(&(made_vocab){MADE(ab), .model = "llama", .extra_scores = -2}, CLT_E_FILE, "257 items");
    refuse(&(made_vocab){MADE(bad_kind)}, CLT_E_FILE, "token_type: item 0");
    refuse(&(made_vocab){MADE(zero_kind)}, CLT_E_FILE, "token_type: item 0");
    refuse(&(made_vocab){MADE(minus_kind)}, CLT_E_FILE, "token_type: item 0");
    refuse(&(made_vocab){MADE(twice)}, CLT_E_FILE, "0 and 2 have the same text");
    refuse(&(made_vocab){MADE(bad_byte)}, CLT_E_FILE, "<0xZZ>");
    refuse(&(made_vocab){MADE(ab), .no_bytes = true}, CLT_E_FILE, "<0x00> is missing");
    refuse(&(made_vocab){MADE(nan_score), .model = "llama"}, CLT_E_FILE, "finite");
    refuse(&(made_vocab){MADE(infinite), .model = "llama"}, CLT_E_FILE, "finite");
    refuse(&(made_vocab){MADE(ab), .bos = 259}, CLT_E_FILE, "bos_token_id");
    refuse(&(made_vocab){MADE(ab), .bos = 0xFFFFFFFF}, CLT_E_FILE, "bos_token_id");
    refuse(&(made_vocab){MADE(ab), .merges = unknown, .n_merges = 2}, CLT_E_FILE, "merge 1 joins \"a\" and \"c\"");
    refuse(&(made_vocab){MADE(ab), .merges = no_result, .n_merges = 1}, CLT_E_FILE, "merge 0");
    refuse(&(made_vocab){MADE(ab), .merges = no_space, .n_merges = 1}, CLT_E_FILE, "merge 0");
    refuse(&(made_vocab){MADE(ab), .merges = no_right, .n_merges = 1}, CLT_E_FILE, "merge 0");
    refuse(&(made_vocab){MADE(ab), .merges = only_space, .n_merges = 1}, CLT_E_FILE, "merge 0");
    refuse(&(made_vocab){MADE(ab), .merges = empty, .n_merges = 1}, CLT_E_FILE, "merge 0");
}

static void overlong_special_piece(void **state) {
    (void)state;
    char text[300];
    memset(text, 'x', sizeof text);
    text[256] = 0;
    const made_piece list[] = {{text, 4, 0}};
    refuse(&(made_vocab){MADE(list)}, CLT_E_FILE, "256 bytes, at most 255");
    text[255] = 0;
    clt_vocab *v = open_vocab(write_made(&(made_vocab){MADE(list)}));
    TOKENS(v, false, text, 0);
    clt_vocab_free(v);
}

/* What a gemma4 file says as scores is not read. */
static void meaningless_scores(void **state) {
    (void)state;
    static const made_piece list[] = {{"a", 1, NAN}, {"b", 1, INFINITY}};
    clt_vocab_free(open_vocab(write_made(&(made_vocab){MADE(list), .extra_scores = 1})));
    clt_vocab_free(open_vocab(write_made(&(made_vocab){MADE(list), .without = "scores"})));
}

static void failed_allocations(void **state) {
    (void)state;
    static const made_piece list[] = {{"a", 1, 0}, {"b", 1, -1}, {"ab", 1, -2}, {"<bos>", 3, 0}};
    static const char *const merges[] = {"a b"};
    for (int spm = 0; spm < 2; spm++) {
        clt_file *f =
            open_ok(write_made(&(made_vocab){MADE(list), .merges = merges, .n_merges = 1, .model = spm ? "llama" : NULL}));
        long live = clt_mem_live();
        int failures = 0;
        for (long nth = 1;; nth++) {
            clt_err err;
            clt_vocab *v = NULL;
            clt_mem_fail_after(nth);
            clt_status status = clt_vocab_open(f, &v, &err);
            clt_mem_fail_after(0);
            clt_vocab_free(v);
            assert_int_equal(clt_mem_live(), live);
            if (status == CLT_OK) break;
            assert_int_equal(status, CLT_E_MEMORY);
            assert_null(v);
            failures++;
        }
        assert_true(failures >= 2);
        clt_file_close(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemma4_pieces),
        cmocka_unit_test(gemma4_roles),
        cmocka_unit_test(gemma3_roles),
        cmocka_unit_test(both_forms_are_equal),
        cmocka_unit_test(hostile_gguf),
        cmocka_unit_test(overlong_special_piece),
        cmocka_unit_test(meaningless_scores),
        cmocka_unit_test(failed_allocations),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
