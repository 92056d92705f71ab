/* Names: the table at scale, lists for error texts, and outside bytes made printable. */
#include "file/files.h"
#include "base/utf8.h"
#include "file/impl.h"

static void test_the_table_grows(void **state) {
    (void)state;
    enum { N = 20000 };
    static char names[N][12];
    clt_names t = {0};
    clt_err err;
    const clt_name *old = NULL;
    assert_null(clt_names_find(&t, "n0"));
    for (uint32_t i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        assert_int_equal(clt_names_add(&t, names[i], i, i % 7, &old, &err), CLT_OK);
        assert_null(old);
    }
    assert_int_equal(t.len, N);
    assert_true(t.cap >= 2 * (size_t)N);
    for (uint32_t i = 0; i < N; i++) {
        const clt_name *at = clt_names_find(&t, names[i]);
        assert_true(at && at->id == i && at->shard == i % 7 && at->name == names[i]);
    }
    assert_int_equal(clt_names_add(&t, "n7", 99, 0, &old, &err), CLT_OK);
    assert_true(old && old->id == 7);
    assert_int_equal(t.len, N);
    assert_null(clt_names_find(&t, "m7"));
    clt_names_free(&t);
    assert_null(clt_names_find(&t, "n7"));
}

static void test_lists(void **state) {
    (void)state;
    clt_name_list l = {0};
    clt_name_list_add(&l, "one");
    assert_string_equal(clt_name_list_end(&l), "one");
    clt_name_list_add(&l, "tw\no");
    assert_string_equal(clt_name_list_end(&l), "one, tw<0x0A>o");
    for (int i = 2; i < 150; i++) clt_name_list_add(&l, "n");
    const char *text = clt_name_list_end(&l);
    assert_string_equal(text + strlen(text) - strlen(", n and 50 more"), ", n and 50 more");
    clt_buf_free(&l.text);
}

static void assert_shown(const char *bytes, size_t n, const char *want) {
    char out[CLT_SHOWN_BYTES];
    assert_ptr_equal(clt_shown(out, bytes, n), out);
    assert_string_equal(out, want);
}

static void test_shown(void **state) {
    (void)state;
    assert_shown("", 0, "");
    assert_shown("blk.0.attn_q.weight", 19, "blk.0.attn_q.weight");
    assert_shown("a\0\t\x1b\x7f", 5, "a<0x00><0x09><0x1B><0x7F>");
    assert_shown("\xC3\xA9\xC2\x85\xFF\xE2\x82", 7, "\xC3\xA9<0xC2><0x85><0xFF><0xE2><0x82>");
    char out[CLT_SHOWN_BYTES], bytes[5000];
    for (int fill = 0; fill < 256; fill++) {
        memset(bytes, fill, sizeof bytes);
        clt_shown(out, bytes, sizeof bytes);
        assert_true(strlen(out) < CLT_SHOWN_BYTES && clt_utf8_valid(out, strlen(out)));
        assert_string_equal(out + strlen(out) - 3, "\xe2\x80\xa6");
        assert_one_line(out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_grows),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
