/* Gemma 3's tokenizer: merges by score, user-defined pieces first, the same ids from scores and from a merge list. */
#include "text/vocabs.h"
#include <math.h>
#include "text/vocab_impl.h"

enum { A, B, AB, BA, MARK, MARK_A, TWO, THREE, TABLE, NL, SOI, UNUSED0, ABA, BYTES };
static const made_piece pieces[] = {
    [A] = {"a", 1, -50},
    [B] = {"b", 1, -51},
    [AB] = {"ab", 1, -2},
    [BA] = {"ba", 1, -1},
    [MARK] = {CLT_MARK, 1, -52},
    [MARK_A] = {CLT_MARK "a", 1, -0.0f},
    [TWO] = {"  ", 4, -1000},
    [THREE] = {"   ", 4, -1000},
    [TABLE] = {"<table>", 4, -1000},
    [NL] = {"\n", 4, -1000},
    [SOI] = {"<start_of_image>", 4, -1000},
    [UNUSED0] = {"<unused0>", 3, -1000},
    [ABA] = {"aba", 1, 0},
};

static clt_vocab *open_made(void) {
    return open_vocab(write_made(&(made_vocab){.model = "llama", MADE(pieces), .without = "merges"}));
}

static void scores_decide(void **state) {
    (void)state;
    clt_vocab *v = open_made();
    assert_int_equal(clt_vocab_get_algorithm(v), CLT_VOCAB_SPM);
    TOKENS(v, false, "ab", AB);
    TOKENS(v, false, "bab", BA, B);
    TOKENS(v, false, "aba", ABA);         /* ba first, then a + ba makes aba */
    TOKENS(v, false, "abab", ABA, B);
    TOKENS(v, false, " a", MARK_A);
    TOKENS(v, false, "b a", B, MARK_A);
    TOKENS(v, false, " ", MARK);
    TOKENS(v, false, "z\xE2\x82", BYTES + 'z', BYTES + 0xE2, BYTES + 0x82);
    clt_vocab_free(v);
}

/* A score of -0 equals 0: of equal scores the leftmost pair merges first. */
static void ties_go_left(void **state) {
    (void)state;
    static const made_piece list[] = {{"a", 1, -9}, {"b", 1, -9}, {"c", 1, -9}, {"ab", 1, -0.0f}, {"bc", 1, 0.0f}};
    clt_vocab *v = open_vocab(write_made(&(made_vocab){.model = "llama", MADE(list)}));
    TOKENS(v, false, "abc", 3, 2);
    clt_vocab_free(v);
}

static void user_defined_pieces_come_first(void **state) {
    (void)state;
    clt_vocab *v = open_made();
    for (int special = 0; special < 2; special++) {
        TOKENS(v, special, "b  a", B, TWO, A);        /* the two spaces go before " a" can form */
        TOKENS(v, special, "     a", THREE, TWO, A);  /* longest first */
        TOKENS(v, special, "a<table>\na", A, TABLE, NL, A);
        TOKENS(v, special, CLT_MARK CLT_MARK, MARK, MARK); /* raw text has no two spaces here */
    }
    assert_false(clt_vocab_is_special(v, TABLE));
    assert_false(clt_vocab_is_special(v, TWO));
    clt_vocab_free(v);
}

static void specials_only_on_request(void **state) {
    (void)state;
    clt_vocab *v = open_made();
    TOKENS(v, true, "<start_of_image>a<unused0>", SOI, A, UNUSED0);
    const char *texts[] = {"<start_of_image>", "<unused0>"};
    for (int i = 0; i < 2; i++) {
        clt_ids ids = tokenize(v, texts[i], strlen(texts[i]), false);
        assert_true(ids.len > 1);
        for (size_t k = 0; k < ids.len; k++) assert_false(clt_vocab_is_special(v, ids.data[k]));
        clt_ids_free(&ids);
    }
    clt_vocab_free(v);
}

/* ---- the same vocabulary as a tokenizer.json: merges in the order of the scores ---- */

static clt_vocab *made_as_json(void) {
    clt_buf b = {0};
    clt_jsonw w = {.out = &b};
    clt_err err;
    clt_vocab *v = NULL;
    clt_buf_puts(&b, "{\"added_tokens\":[");
    const int added[] = {TWO, THREE, TABLE, NL, SOI, UNUSED0};
    for (size_t i = 0; i < 6; i++) {
        clt_buf_printf(&b, "%s{\"id\":%d,\"special\":%s,\"content\":", i ? "," : "", added[i],
                       added[i] == SOI ? "true" : "false");
        if (added[i] == TWO || added[i] == THREE)
            clt_jsonw_cstr(&w, added[i] == TWO ? CLT_MARK CLT_MARK : CLT_MARK CLT_MARK CLT_MARK);
        else clt_jsonw_cstr(&w, pieces[added[i]].text);
        clt_buf_puts(&b, "}");
        w.has_item = 0;
    }
    clt_buf_puts(&b, "],\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (int i = 0; i < BYTES; i++) {
        if (i >= TWO && i <= UNUSED0) continue;
        clt_buf_printf(&b, "\"%s\":%d,", pieces[i].text, i);
    }
    for (int byte = 0; byte < 256; byte++)
        clt_buf_printf(&b, "\"<0x%02X>\":%d%s", (unsigned)byte, BYTES + byte, byte < 255 ? "," : "");
    clt_buf_puts(&b, "},\"merges\":[[\"" CLT_MARK "\",\"a\"],[\"a\",\"ba\"],[\"ab\",\"a\"],[\"b\",\"a\"],[\"a\",\"b\"]]}}");
    assert_false(b.failed);
    if (clt_vocab_read_json(b.data, b.len, "made", CLT_VOCAB_SPM, &v, &err)) fail_msg("%s", err.text);
    clt_buf_free(&b);
    return v;
}

static void merge_list_gives_the_same_ids(void **state) {
    (void)state;
    static const char *const parts[] = {"a",         "b", " ",      "  ", "\n",  "<table>", "<start_of_image>",
                                        "<unused0>", "<", CLT_MARK, "c",  "\xC3"};
    clt_vocab *scores = open_made(), *merges = made_as_json();
    draws d = {21, 0};
    for (int round = 0; round < 2000; round++) {
        clt_buf text = draw_text(&d, parts, sizeof parts / sizeof *parts, 16);
        clt_ids one = tokenize(scores, text.data, text.len, round & 1),
                other = tokenize(merges, text.data, text.len, round & 1);
        assert_ids(&other, one.data, one.len, text.data);
        clt_ids_free(&one);
        clt_ids_free(&other);
        clt_buf_free(&text);
    }
    clt_vocab_free(scores);
    clt_vocab_free(merges);
}

/* Both forms of the golden Gemma 3, on texts that no golden file lists. */
static void golden_forms_agree(void **state) {
    (void)state;
    static const char *const parts[] = {"a",       "e",
                                        "t",       "h",
                                        "the",     "ing",
                                        " ",       "  ",
                                        "\n",      "\t\t",
                                        "and",     "is",
                                        "<s>",     "<h1>",
                                        "<td>",    "ber",
                                        "ore",     "<",
                                        "T",       "he",
                                        ".",       "<mask>",
                                        "<|turn>", "<unused0>",
                                        CLT_MARK,  "\xF0\x9F\x99\x82",
                                        "\xFF"};
    clt_vocab *gguf = open_golden(GOLDEN_GEMMA3, false), *json = open_golden(GOLDEN_GEMMA3, true);
    assert_int_equal(clt_vocab_get_algorithm(gguf), CLT_VOCAB_SPM);
    assert_int_equal(clt_vocab_get_algorithm(json), CLT_VOCAB_SPM);
    draws d = {8, 0};
    for (int round = 0; round < 3000; round++) {
        clt_buf text = draw_text(&d, parts, sizeof parts / sizeof *parts, 30);
        clt_ids one = tokenize(gguf, text.data, text.len, round & 1), other = tokenize(json, text.data, text.len, round & 1);
        assert_ids(&other, one.data, one.len, text.data);
        clt_ids_free(&one);
        clt_ids_free(&other);
        clt_buf_free(&text);
    }
    clt_vocab_free(gguf);
    clt_vocab_free(json);
}

/* ---- a plain reference: merge the best-scored pair of neighbours, one at a time ---- */

static void same_as_reference(void **state) {
    (void)state;
    static const char *const letters[] = {"a", "b", " "};
    clt_vocab *v = open_made();
    draws d = {4, 0};
    for (int round = 0; round < 2000; round++) {
        clt_buf text = {0};
        clt_buf_puts(&text, "");
        char symbols[64][64];
        size_t n = 0;
        for (uint32_t count = draw(&d, 14); count > 0; count--) {
            const char *letter = letters[draw(&d, text.len && text.data[text.len - 1] == ' ' ? 2 : 3)]; /* no two spaces */
            clt_buf_puts(&text, letter);
            strcpy(symbols[n++], *letter == ' ' ? CLT_MARK : letter);
        }
        for (;;) {
            float best = -INFINITY;
            size_t at = SIZE_MAX;
            for (size_t i = 0; i + 1 < n; i++) {
                char joined[128];
                snprintf(joined, sizeof joined, "%s%s", symbols[i], symbols[i + 1]);
                int32_t id = clt_vocab_find(v, joined);
                if (id >= 0 && id < BYTES && pieces[id].score > best) best = pieces[id].score, at = i;
            }
            if (at == SIZE_MAX) break;
            append(symbols[at], symbols[at + 1], sizeof symbols[0]);
            memmove(symbols[at + 1], symbols[at + 2], (n - at - 2) * sizeof symbols[0]);
            n--;
        }
        clt_ids expected = {0}, ids = tokenize(v, text.data, text.len, false);
        for (size_t i = 0; i < n; i++) clt_ids_push(&expected, clt_vocab_find(v, symbols[i]));
        assert_ids(&ids, expected.data, expected.len, text.data);
        clt_ids_free(&expected);
        clt_ids_free(&ids);
        clt_buf_free(&text);
    }
    clt_vocab_free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_decide),
        cmocka_unit_test(ties_go_left),
        cmocka_unit_test(user_defined_pieces_come_first),
        cmocka_unit_test(specials_only_on_request),
        cmocka_unit_test(merge_list_gives_the_same_ids),
        cmocka_unit_test(golden_forms_agree),
        cmocka_unit_test(same_as_reference),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
