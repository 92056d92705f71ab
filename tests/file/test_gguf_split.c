/* Split sets: opened from any member; missing, renamed and foreign parts. */
#include "file/files.h"

/* Part no (from 0) of a set under the name that `as` of count gives; one tensor each. `model`: the architecture, or NULL. */
static const char *part(const char *stem, int as, int of, int no, int count, int tensors, const char *model,
                        const char *tensor) {
    clt_buf b = {0};
    char name[64];
    gguf_header(&b, 3, 1, model ? 4 : 3);
    gguf_u16(&b, "split.no", (uint16_t)no);
    gguf_u16(&b, "split.count", (uint16_t)count);
    gguf_key(&b, "split.tensors.count", CLT_META_I32);
    put_u32(&b, (uint32_t)tensors);
    if (model) gguf_string(&b, "general.architecture", model);
    gguf_tensor(&b, tensor, 1, (const uint64_t[]){8}, CLT_F32, 0);
    gguf_align(&b, 32);
    put_zeros(&b, 32);
    snprintf(name, sizeof name, "%s-%05d-of-%05d.gguf", stem, as + 1, of);
    return write_buf(name, &b);
}

static void make_set(const char *stem) {
    part(stem, 0, 3, 0, 3, 3, "gemma4", "a");
    part(stem, 1, 3, 1, 3, 3, NULL, "b");
    part(stem, 2, 3, 2, 3, 3, NULL, "c");
}

static void test_any_member_opens_the_set(void **state) {
    (void)state;
    make_set("m");
    static const char *const names[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"};
    for (int i = 0; i < 3; i++) {
        clt_file *f = open_ok(in_folder(names[i]));
        assert_int_equal(clt_file_shards(f), 3);
        assert_string_equal(clt_file_shard_path(f, 2), in_folder(names[2]));
        assert_string_equal(clt_file_path(f), in_folder(names[i]));
        assert_int_equal(clt_file_tensors(f), 3);
        assert_string_equal(clt_file_tensor(f, 0)->name, "a");
        assert_int_equal(clt_file_find(f, "c")->shard, 2);
        assert_int_equal(clt_file_metas(f), 4);
        assert_int_equal(clt_file_bytes(f), clt_file_shard_bytes(f, 0) + 2 * clt_file_shard_bytes(f, 1));
        touch_all(f);
        clt_file_close(f);
    }
}

static void test_every_missing_part_is_named(void **state) {
    (void)state;
    part("gone", 1, 4, 1, 4, 4, NULL, "b");
    REFUSED(in_folder("gone-00002-of-00004.gguf"), CLT_E_FILE, "3 of the 4 files of this model are missing",
            "gone-00001-of-00004.gguf, gone-00003-of-00004.gguf, gone-00004-of-00004.gguf", "one folder");
    part("huge", 0, 99999, 0, 3, 4, NULL, "b");
    REFUSED(in_folder("huge-00001-of-99999.gguf"), CLT_E_FILE, "99998 of the 99999 files", "and 99898 more");
}

static void test_renamed_parts(void **state) {
    (void)state;
    make_set("r");
    part("r", 1, 3, 2, 3, 3, NULL, "b");
    REFUSED(in_folder("r-00001-of-00003.gguf"), CLT_E_FILE, "r-00002-of-00003.gguf", "named like part 2 of 3",
            "it is part 3 of 3");
    part("r", 1, 3, 1, 2, 3, NULL, "b");
    REFUSED(in_folder("r-00001-of-00003.gguf"), CLT_E_FILE, "named like part 2 of 3", "it is part 2 of 2");
    clt_buf b = {0};
    gguf_header(&b, 3, 0, 0);
    write_buf("r-00002-of-00003.gguf", &b);
    REFUSED(in_folder("r-00003-of-00003.gguf"), CLT_E_FILE, "r-00002-of-00003.gguf", "no split.no and split.count");
    char lone[512];
    snprintf(lone, sizeof lone, "%s", in_folder("lone.gguf"));
    assert_int_equal(rename(in_folder("r-00003-of-00003.gguf"), lone), 0);
    REFUSED(lone, CLT_E_FILE, "one part of a model in 3 files", "original names", "-of-00003.gguf");
}

static void test_parts_of_other_models(void **state) {
    (void)state;
    make_set("o");
    part("o", 1, 3, 1, 3, 3, "llama", "b");
    REFUSED(in_folder("o-00001-of-00003.gguf"), CLT_E_FILE, "o-00002-of-00003.gguf", "a part of another model",
            "'general.architecture' differ");
    part("o", 1, 3, 1, 3, 4, NULL, "b");
    REFUSED(in_folder("o-00001-of-00003.gguf"), CLT_E_FILE, "a part of another model", "'split.tensors.count' differ");
    part("o", 1, 3, 1, 3, 3, NULL, "a");
    REFUSED(in_folder("o-00001-of-00003.gguf"), CLT_E_FILE, "o-00002-of-00003.gguf", "'a' appears twice",
            "first in", "o-00001-of-00003.gguf");
    for (int i = 0; i < 3; i++) part("n", i, 3, i, 3, 7, NULL, i == 0 ? "a" : i == 1 ? "b" : "c");
    REFUSED(in_folder("n-00001-of-00003.gguf"), CLT_E_FILE, "the 3 files hold 3 tensors, expected 7");
}

static void test_damage_in_a_later_part(void **state) {
    (void)state;
    make_set("d");
    write_text("d-00003-of-00003.gguf", "<!DOCTYPE html><html>");
    REFUSED(in_folder("d-00001-of-00003.gguf"), CLT_E_FILE, "d-00003-of-00003.gguf", "an HTML page");
    clt_buf b = {0};
    clt_err err;
    assert_int_equal(clt_read_file(in_folder("d-00002-of-00003.gguf"), 4096, &b, &err), CLT_OK);
    write_bytes("d-00003-of-00003.gguf", b.data, b.len - 1);
    clt_buf_free(&b);
    REFUSED(in_folder("d-00001-of-00003.gguf"), CLT_E_FILE, "d-00003-of-00003.gguf", "runs past the end");
}

static void test_impossible_names(void **state) {
    (void)state;
    part("i", 3, 3, 0, 3, 3, NULL, "a");
    REFUSED(in_folder("i-00004-of-00003.gguf"), CLT_E_FILE, "part 4 of 3, which cannot be");
    part("i", -1, 3, 0, 3, 3, NULL, "a");
    REFUSED(in_folder("i-00000-of-00003.gguf"), CLT_E_FILE, "part 0 of 3");
    part("i", 0, 0, 0, 3, 3, NULL, "a");
    REFUSED(in_folder("i-00001-of-00000.gguf"), CLT_E_FILE, "part 1 of 0");
}

static void test_a_set_of_one(void **state) {
    (void)state;
    clt_file *f = open_ok(part("one", 0, 1, 0, 1, 1, "gemma4", "a"));
    assert_int_equal(clt_file_shards(f), 1);
    clt_file_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_member_opens_the_set), cmocka_unit_test(test_every_missing_part_is_named),
        cmocka_unit_test(test_renamed_parts),            cmocka_unit_test(test_parts_of_other_models),
        cmocka_unit_test(test_damage_in_a_later_part),   cmocka_unit_test(test_impossible_names),
        cmocka_unit_test(test_a_set_of_one),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
