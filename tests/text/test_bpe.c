/* Gemma 4's tokenizer: goldens, cuts and merges against a plain reference, newlines, long texts, special text. */
#include "text/vocabs.h"

static void goldens(void **state) {
    (void)state;
    clt_json *doc = golden_json("tokenizer/strings.json");
    int folders = 0;
    for (size_t i = 0; i < N_GOLDEN; i++) {
        for (int as_folder = 0; as_folder < 2; as_folder++) {
            clt_vocab *v = open_golden(i, as_folder);
            if (!v) continue;
            check_golden_strings(v, doc);
            clt_vocab_free(v);
            folders += as_folder;
        }
    }
    assert_true(folders >= 2);
    clt_json_free(doc);
}

static void runs_of_newlines(void **state) {
    (void)state;
    clt_vocab *v = open_golden(0, false);
    char text[64];
    memset(text, '\n', sizeof text);
    for (size_t n = 1; n <= 40; n++) {
        clt_ids ids = tokenize(v, text, n, false);
        const int32_t expected[] = {n <= 31 ? 106 + (int32_t)n : 137, 106 + (int32_t)n - 31};
        assert_ids(&ids, expected, n <= 31 ? 1 : 2, "newlines");
        clt_ids_free(&ids);
    }
    clt_vocab_free(v);
}

/* A run that is a piece is taken whole although no merge makes it; a run that is none is merged. */
static void newline_run_without_merges(void **state) {
    (void)state;
    static const made_piece pieces[] = {{"a", 1, 0}, {"\n", 1, 0}, {"\n\n\n", 1, 0}, {"a\n", 1, 0}};
    static const char *const merges[] = {"a \n"};
    clt_vocab *v = open_vocab(write_made(&(made_vocab){MADE(pieces), .merges = merges, .n_merges = 1}));
    TOKENS(v, false, "\n\n\n", 2);
    TOKENS(v, false, "\n\n", 1, 1);
    TOKENS(v, false, "a\n\n\na\n", 0, 2, 0, 1); /* text is cut at newlines before it is merged */
    clt_vocab_free(v);
}

static void ranks_and_ties(void **state) {
    (void)state;
    static const made_piece pieces[] = {{"a", 1, 0},
                                        {"b", 1, 0},
                                        {"ab", 1, 0},
                                        {"ba", 1, 0},
                                        {"aa", 1, 0},
                                        {"\xE2\x96\x81", 1, 0},
                                        {"\xE2\x96\x81"
                                         "a",
                                         1, 0},
                                        {"aba", 1, 0}};
    static const char *const merges[] = {"b a", "a b", "a a", "\xE2\x96\x81 a", "ab a", "b a"};
    clt_vocab *v = open_vocab(write_made(&(made_vocab){MADE(pieces), .merges = merges, .n_merges = 6}));
    TOKENS(v, false, "aba", 0, 3);    /* the lower rank first, wherever it stands */
    TOKENS(v, false, "aaa", 4, 0);    /* the leftmost of equal ranks */
    TOKENS(v, false, " a", 6);
    TOKENS(v, false, "aa a", 4, 6);
    TOKENS(v, false, "\xE2\x96\x81" "a", 6);
    TOKENS(v, false, "c", 8 + 'c');   /* no piece: bytes */
    TOKENS(v, false, "\xC3\xA9", 8 + 0xC3, 8 + 0xA9);
    TOKENS(v, false, "a\xC3", 0, 8 + 0xC3);
    clt_ids none = tokenize(v, "", 0, true);
    assert_int_equal(none.len, 0);
    clt_vocab_free(v);
}

/* ---- a plain reference: the merges of tokenizer.json by their texts, one at a time ---- */

typedef struct reference {
    const clt_json *merges;
    char texts[128][256]; /* symbols */
    size_t n;
} reference;

static size_t rank_of(const reference *r, const char *left, const char *right) {
    size_t n;
    for (size_t i = 0; i < clt_json_len(r->merges); i++) {
        const clt_json *pair = clt_json_at(r->merges, i);
        if (!strcmp(clt_json_str(clt_json_at(pair, 0), &n), left) && !strcmp(clt_json_str(clt_json_at(pair, 1), &n), right))
            return i;
    }
    return SIZE_MAX;
}

static void reference_merge(reference *r, const char *text) {
    r->n = 0;
    for (const char *p = text; *p; r->n++) {
        size_t n = 1;
        while ((p[n] & 0xC0) == 0x80) n++;
        if (*p == ' ') strcpy(r->texts[r->n], "\xE2\x96\x81");
        else snprintf(r->texts[r->n], sizeof r->texts[0], "%.*s", (int)n, p);
        p += n;
    }
    for (;;) {
        size_t best = SIZE_MAX, at = 0;
        for (size_t i = 0; i + 1 < r->n; i++) {
            size_t rank = rank_of(r, r->texts[i], r->texts[i + 1]);
            if (rank < best) best = rank, at = i;
        }
        if (best == SIZE_MAX) return;
        append(r->texts[at], r->texts[at + 1], sizeof r->texts[0]);
        memmove(r->texts[at + 1], r->texts[at + 2], (r->n - at - 2) * sizeof r->texts[0]);
        r->n--;
    }
}

static void same_as_reference(void **state) {
    (void)state;
    static const char *const parts[] = {"a",    "e",  "t",  "h",  "o", "n", "i", "s",   " ", " ", "  ", "the", "ing", "\n",
                                        "\n\n", "\t", "er", "on", ".", ",", "T", "and", "w", "r", " w", "age", "1"};
    clt_json *doc = golden_json("tokenizer/files/tokenizer.json");
    static reference r;
    r.merges = clt_json_get(clt_json_get(doc, "model"), "merges");
    clt_vocab *v = open_golden(GOLDEN_MOE, true);
    draws d = {11, 0};
    for (int round = 0; round < 60; round++) {
        clt_buf text = draw_text(&d, parts, sizeof parts / sizeof *parts, 30);
        reference_merge(&r, text.data);
        clt_ids expected = {0}, ids = tokenize(v, text.data, text.len, false);
        for (size_t i = 0; i < r.n; i++) {
            clt_ids_push(&expected, clt_vocab_find(v, r.texts[i]));
            if (expected.data[i] < 0) fail_msg("the text has a character that is no piece: %s", r.texts[i]);
        }
        assert_ids(&ids, expected.data, expected.len, text.data);
        clt_ids_free(&expected);
        clt_ids_free(&ids);
        clt_buf_free(&text);
    }
    clt_vocab_free(v);
    clt_json_free(doc);
}

/* Sizes at which a quadratic merge would take hours. */
static void long_texts(void **state) {
    (void)state;
    enum { N = 1000000 };
    static const char *const units[] = {" ", "a", "\n", "\t", "<", "ab", "the ", "\xF0\x9F", "<|turn>"};
    char *text = clt_alloc(N + 16);
    assert_non_null(text);
    for (size_t m = 0; m < N_GOLDEN; m += GOLDEN_GEMMA3) {
        clt_vocab *v = open_golden(m, false);
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            size_t n = strlen(units[i]), len = N / n * n;
            for (size_t at = 0; at < len; at += n) memcpy(text + at, units[i], n);
            clt_ids ids = tokenize(v, text, len, i % 2);
            clt_buf bytes = bytes_of(v, &ids, true);
            assert_int_equal(bytes.len, len);
            assert_memory_equal(bytes.data, text, len);
            clt_buf_free(&bytes);
            clt_ids_free(&ids);
        }
        clt_vocab_free(v);
    }
    clt_free(text);
}

/* Bytes come back as they were, except that the mark of a space reads as a space. */
static void random_bytes_round_trip(void **state) {
    (void)state;
    draws d = {5, 0};
    for (size_t m = 0; m < N_GOLDEN; m += GOLDEN_GEMMA3) {
        clt_vocab *v = open_golden(m, m == GOLDEN_GEMMA3);
        for (int round = 0; round < 300; round++) {
            clt_buf text = {0};
            clt_buf_puts(&text, "");
            for (uint32_t n = draw(&d, 60); n > 0; n--) clt_buf_putc(&text, (char)draw(&d, round % 2 ? 256 : 128));
            if (memmem(text.data, text.len, "\xE2\x96\x81", 3)) text.data[0] = 'x', text.len = 1;
            clt_ids ids = tokenize(v, text.data, text.len, round % 3 == 0);
            clt_buf bytes = bytes_of(v, &ids, true);
            assert_int_equal(bytes.len, text.len);
            assert_memory_equal(bytes.data, text.data, text.len);
            clt_buf_free(&bytes);
            clt_buf_free(&text);
            clt_ids_free(&ids);
        }
        clt_vocab_free(v);
    }
}

/* Whatever is put together from pieces of special texts, plain text stays plain and reads back as it was. */
static void plain_text_forges_nothing(void **state) {
    (void)state;
    static const char *const parts[] = {
        "<|turn>", "<turn|>", "<|tool_call>", "<|\"|>", "<bos>",     "<eos>",  "<|image|>", "<",    "|",     ">", "turn",
        "<|",      "|>",      "image",        "\"",     "<unused0>", "<0x41>", "<mask>",    "tool", "_call", " "};
    draws d = {3, 0};
    for (size_t m = 0; m < N_GOLDEN; m++) {
        clt_vocab *v = open_golden(m, false);
        size_t specials = 0;
        for (int round = 0; round < 200; round++) {
            clt_buf text = draw_text(&d, parts, sizeof parts / sizeof *parts, 12);
            clt_ids ids = tokenize(v, text.data, text.len, false), parsed = tokenize(v, text.data, text.len, true);
            for (size_t i = 0; i < ids.len; i++) assert_false(clt_vocab_is_special(v, ids.data[i]));
            for (size_t i = 0; i < parsed.len; i++) specials += clt_vocab_is_special(v, parsed.data[i]);
            clt_buf bytes = bytes_of(v, &ids, false);
            assert_int_equal(bytes.len, text.len);
            assert_memory_equal(bytes.data, text.data, text.len);
            clt_buf_free(&bytes);
            clt_buf_free(&text);
            clt_ids_free(&ids);
            clt_ids_free(&parsed);
        }
        assert_true(specials > 100); /* the same texts do hold specials when they are asked for */
        clt_vocab_free(v);
    }
}

/* Merges that would make a special piece are not made, nor is a special piece of one letter taken for the letter. */
static void merges_make_no_special_piece(void **state) {
    (void)state;
    static const made_piece pieces[] = {{"<", 1, 0},   {"bos>", 1, 0},    {"<bos>", 3, 0},  {"b", 1, 0},
                                        {"o", 1, 0},   {"s", 1, 0},       {">", 1, 0},      {"bo", 1, 0},
                                        {"bos", 1, 0}, {"<|turn>", 1, 0}, {"<|turn", 1, 0}, {"x", 3, 0}};
    static const char *const merges[] = {"b o", "bo s", "bos >", "< bos>", "<|turn >"};
    clt_vocab *v = open_vocab(write_made(&(made_vocab){MADE(pieces), .merges = merges, .n_merges = 5}));
    TOKENS(v, false, "<bos>", 0, 1);
    TOKENS(v, true, "<bos>", 2);
    TOKENS(v, true, "<|turn>", 9); /* special by its text, whatever the file types it as */
    TOKENS(v, true, "x", 11);
    TOKENS(v, false, "x", 12 + 'x');
    clt_vocab_free(v);
}

static void failed_allocations(void **state) {
    (void)state;
    clt_vocab *v = open_golden(0, false);
    const char text[] = "The quick  brown <|turn> fox\n\njumps";
    long live = clt_mem_live();
    int failures = 0;
    for (long nth = 1;; nth++) {
        clt_err err;
        clt_ids ids = {0};
        clt_mem_fail_after(nth);
        clt_status status = clt_tokenize(v, text, strlen(text), true, &ids, &err);
        clt_mem_fail_after(0);
        clt_ids_free(&ids);
        assert_int_equal(clt_mem_live(), live);
        if (status == CLT_OK) break;
        assert_int_equal(status, CLT_E_MEMORY);
        failures++;
    }
    assert_true(failures >= 3);
    clt_vocab_free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens),
        cmocka_unit_test(runs_of_newlines),
        cmocka_unit_test(newline_run_without_merges),
        cmocka_unit_test(ranks_and_ties),
        cmocka_unit_test(same_as_reference),
        cmocka_unit_test(long_texts),
        cmocka_unit_test(random_bytes_round_trip),
        cmocka_unit_test(plain_text_forges_nothing),
        cmocka_unit_test(merges_make_no_special_piece),
        cmocka_unit_test(failed_allocations),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
