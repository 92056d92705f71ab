/* Ids to text: byte pieces that assemble to characters, ill-formed bytes, every split alike, what special pieces print. */
#include "base/utf8.h"
#include "text/vocabs.h"

#define FFFD "\xEF\xBF\xBD"
enum { BYTE_0 = 238 }; /* id of <0x00> in the golden vocabularies */

static clt_vocab *v;

static int setup(void **state) {
    if (files_setup(state)) return -1;
    v = open_golden(0, false);
    return 0;
}

static int teardown(void **state) {
    clt_vocab_free(v);
    return files_teardown(state);
}

/* The bytes as byte pieces, one id each, or as bytes in one go. */
static void check_bytes(const char *bytes, size_t n, const char *expected) {
    for (int whole = 0; whole < 2; whole++) {
        clt_detok d;
        clt_buf out = {0};
        clt_detok_init(&d, v, false);
        if (whole) clt_detok_push_bytes(&d, bytes, n, &out);
        for (size_t i = 0; !whole && i < n; i++) {
            clt_detok_push(&d, BYTE_0 + (uint8_t)bytes[i], &out);
            assert_true(clt_utf8_valid(out.data ? out.data : "", out.len));
        }
        clt_detok_end(&d, &out);
        assert_string_equal(out.data, expected);
        clt_buf_free(&out);
    }
}
#define BYTES(bytes, expected) check_bytes(bytes, sizeof bytes - 1, expected)

static void ill_formed_bytes(void **state) {
    (void)state;
    BYTES("\xE2\x82\xAC", "\xE2\x82\xAC");
    BYTES("\xF0\x9F\x99\x82", "\xF0\x9F\x99\x82");
    BYTES("\xED\xA0\x80", FFFD FFFD FFFD);
    BYTES("\xF0\x80\x80" "A", FFFD FFFD FFFD "A");
    BYTES("\xF0\x9F\x99" "A", FFFD "A");
    BYTES("\xE2\x82\xE2\x82\xAC", FFFD "\xE2\x82\xAC");
    BYTES("\xE2\x82", FFFD);
    BYTES("\xC0\xAF" "x\xFF", FFFD FFFD "x" FFFD);
    BYTES("\x80" "A\xC3\xA9\xC3", FFFD "A\xC3\xA9" FFFD);
    BYTES("\xF4\x90\x80\x80", FFFD FFFD FFFD FFFD);
}

static void half_a_character_is_held_back(void **state) {
    (void)state;
    clt_detok d;
    clt_buf out = {0};
    clt_detok_init(&d, v, false);
    clt_detok_push(&d, BYTE_0 + 0xF0, &out);
    clt_detok_push(&d, BYTE_0 + 0x9F, &out);
    clt_detok_push(&d, BYTE_0 + 0x99, &out);
    assert_int_equal(out.len, 0);
    clt_detok_push(&d, BYTE_0 + 0x82, &out);
    assert_string_equal(out.data, "\xF0\x9F\x99\x82");
    clt_detok_push(&d, BYTE_0 + 0xC3, &out);
    clt_detok_push(&d, clt_vocab_find(v, "a"), &out);
    assert_string_equal(out.data, "\xF0\x9F\x99\x82" FFFD "a");
    clt_detok_end(&d, &out);
    clt_detok_end(&d, &out); /* nothing is held any more */
    assert_string_equal(out.data, "\xF0\x9F\x99\x82" FFFD "a");
    clt_buf_free(&out);
}

static void any_split_gives_the_same(void **state) {
    (void)state;
    draws r = {17, 0};
    for (int round = 0; round < 2000; round++) {
        static const unsigned char likely[] = {0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0x99, 0xED,
                                               0xA0, 0x80, 0xC3, 0xF4, 0x90, 'a',  0xFF};
        char bytes[24];
        size_t n = draw(&r, sizeof bytes + 1);
        for (size_t i = 0; i < n; i++) bytes[i] = (char)likely[draw(&r, sizeof likely)];
        clt_buf whole = {0}, parts = {0};
        clt_utf8_repair(&whole, bytes, n);
        clt_detok d;
        clt_detok_init(&d, v, false);
        for (size_t at = 0; at < n;) {
            size_t take = 1 + draw(&r, (uint32_t)(n - at));
            clt_detok_push_bytes(&d, bytes + at, take, &parts);
            assert_true(clt_utf8_valid(parts.data ? parts.data : "", parts.len));
            at += take;
        }
        clt_detok_end(&d, &parts);
        assert_int_equal(parts.len, whole.len);
        if (whole.len) assert_memory_equal(parts.data, whole.data, whole.len);
        clt_buf_free(&whole);
        clt_buf_free(&parts);
    }
}

static void print(int32_t id, bool special, const char *expected) {
    clt_buf bytes = {0}, text = {0};
    clt_detok d;
    clt_buf_puts(&bytes, "");
    clt_buf_puts(&text, "");
    clt_vocab_append_bytes(v, id, special, &bytes);
    clt_detok_init(&d, v, special);
    clt_detok_push(&d, id, &text);
    assert_string_equal(bytes.data, expected);
    assert_string_equal(text.data, expected);
    clt_buf_free(&bytes);
    clt_buf_free(&text);
}

static void what_pieces_print(void **state) {
    (void)state;
    print(2, false, "");
    print(2, true, "<bos>");
    print(48, false, ""); /* user-defined in the file, and special none the less */
    print(48, true, "<|tool_call>");
    print(138, false, "  ");
    print(107, false, "\n");
    print(BYTE_0 + 'A', false, "A");
    print(6, false, "<unused0>");
    print(-1, true, "");
    print(INT32_MIN, true, "");
    print(clt_vocab_size(v), true, "");
    print(INT32_MAX, true, "");
}

static void streaming_allocates_nothing(void **state) {
    (void)state;
    clt_buf out = {0};
    clt_detok d;
    for (int i = 0; i < 4096; i++) clt_buf_putc(&out, 'x');
    clt_buf_reset(&out);
    clt_detok_init(&d, v, true);
    long before = clt_mem_count();
    for (int32_t id = 0; id < 300; id++) clt_detok_push(&d, id, &out);
    assert_int_equal(clt_mem_count(), before);
    assert_true(out.len > 1000);
    clt_buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ill_formed_bytes),
        cmocka_unit_test(half_a_character_is_held_back),
        cmocka_unit_test(any_split_gives_the_same),
        cmocka_unit_test(what_pieces_print),
        cmocka_unit_test(streaming_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
