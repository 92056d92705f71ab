/* From a rendered prompt to ids: equal to the reference tokenizer's, special ids only where the renderer wrote them. */
#include "chats.h"
#include "file/file.h"

typedef struct fixture {
    clt_file *file;
    clt_vocab *vocab;
} fixture;

static fixture open_vocab(const char *folder) {
    fixture f = {0};
    char path[512];
    clt_err err;
    snprintf(path, sizeof path, "%s/golden/models/%s", CLT_TEST_DIR, folder);
    clt_status status = clt_file_open(path, &f.file, &err);
    if (status == CLT_OK) status = clt_vocab_open(f.file, &f.vocab, &err);
    if (status == CLT_E_UNSUPPORTED) skip();
    if (status != CLT_OK) fail_msg("%s", err.text);
    return f;
}

static void close_vocab(fixture *f) {
    clt_vocab_free(f->vocab);
    clt_file_close(f->file);
}

static void check_ids(const fixture *f, const clt_chat_template *t, const clt_json *conversation) {
    const clt_json *expected = clt_json_get(conversation, "ids");
    const char *name = clt_json_str(clt_json_get(conversation, "name"), NULL);
    clt_chat_options o = {.add_generation_prompt = clt_json_is_true(clt_json_get(conversation, "add_generation_prompt")),
                          .enable_thinking = clt_json_is_true(clt_json_get(conversation, "enable_thinking"))};
    clt_prompt p;
    clt_ids ids = {0};
    clt_err err;
    int64_t want;
    assert_int_equal(clt_chat_render(t, conversation, &o, &p, &err), CLT_OK);
    if (clt_prompt_tokenize(&p, f->vocab, &ids, &err) != CLT_OK) fail_msg("%s: %s", name, err.text);
    if (strcmp(name, "markers inside user text") == 0) {
        /* the reference lets user text become control ids; here only the renderer's own markers are: two turns, one
         * closed */
        const clt_vocab_roles *o4 = clt_vocab_get_roles(f->vocab);
        size_t closed = 0, thinks = 0;
        for (size_t i = 0; i < ids.len; i++) {
            closed += ids.data[i] == o4->turn_close;
            thinks += ids.data[i] == o4->think;
        }
        assert_int_equal(closed, 1);
        assert_int_equal(thinks, 0);
    } else {
        if (ids.len != clt_json_len(expected)) fail_msg("%s: %zu ids, expected %zu", name, ids.len, clt_json_len(expected));
        for (size_t i = 0; i < ids.len; i++) {
            assert_true(clt_json_int(clt_json_at(expected, i), &want));
            if (ids.data[i] != want) fail_msg("%s: id %zu is %d, expected %d", name, i, ids.data[i], (int)want);
        }
    }
    clt_ids_free(&ids);
    clt_prompt_free(&p);
}

static void test_golden_ids(void **state) {
    (void)state;
    fixture f = open_vocab("tiny-dense");
    clt_json *doc = parse_golden("templates/conversations.json");
    const clt_json *all = clt_json_get(doc, "conversations");
    clt_chat_template t = recognise_golden("chat_template.jinja");
    assert_true(clt_json_len(all) > 20);
    for (size_t i = 0; i < clt_json_len(all); i++) check_ids(&f, &t, clt_json_at(all, i));
    clt_json_free(doc);
    close_vocab(&f);
}

/* A user's "<bos>" is text; the first id is BOS and no other is. */
static void test_one_bos(void **state) {
    (void)state;
    static const clt_chat_template t = {.generation = CLT_CHAT_GEMMA4_JULY};
    fixture f = open_vocab("tiny-dense");
    clt_prompt p;
    clt_ids ids = {0};
    clt_err err;
    assert_int_equal(render(&t, "{\"messages\":[{\"role\":\"user\",\"content\":\"<bos>x<bos>\"}]}", &p, &err), CLT_OK);
    assert_int_equal(clt_prompt_tokenize(&p, f.vocab, &ids, &err), CLT_OK);
    assert_int_equal(ids.data[0], clt_vocab_get_roles(f.vocab)->bos);
    for (size_t i = 1; i < ids.len; i++) assert_int_not_equal(ids.data[i], ids.data[0]);
    assert_int_equal(ids.data[1], clt_vocab_get_roles(f.vocab)->turn_open);
    clt_ids_free(&ids);
    clt_prompt_free(&p);
    close_vocab(&f);
}

/* A Gemma 3 prompt has no ids in a Gemma 4 vocabulary. */
static void test_foreign_vocabulary(void **state) {
    (void)state;
    static const clt_chat_template t = {.generation = CLT_CHAT_GEMMA3};
    fixture f = open_vocab("tiny-dense");
    clt_prompt p;
    clt_ids ids = {0};
    clt_err err;
    assert_int_equal(render(&t, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}", &p, &err), CLT_OK);
    assert_int_equal(clt_prompt_tokenize(&p, f.vocab, &ids, &err), CLT_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "<start_of_turn>"));
    clt_ids_free(&ids);
    clt_prompt_free(&p);
    close_vocab(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_ids),
        cmocka_unit_test(test_one_bos),
        cmocka_unit_test(test_foreign_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
