/* Reply parsing over the tiny Gemma 4 vocabulary: thoughts, content, calls, and that no split of the ids changes
 * anything. */
#include "chats.h"
#include "base/utf8.h"
#include "file/file.h"
#include "text/reply.h"

typedef struct fixture {
    clt_file *file;
    clt_vocab *vocab;
} fixture;

static int open_vocab(void **state, const char *folder) {
    static fixture f;
    char path[512];
    clt_err err;
    snprintf(path, sizeof path, "%s/golden/models/%s", CLT_TEST_DIR, folder);
    f = (fixture){0};
    clt_status status = clt_file_open(path, &f.file, &err);
    if (status == CLT_OK) status = clt_vocab_open(f.file, &f.vocab, &err);
    if (status == CLT_E_UNSUPPORTED) exit(77); /* built without a JSON library */
    if (status != CLT_OK) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    *state = &f;
    return 0;
}

static int open_gemma4(void **state) {
    return open_vocab(state, "tiny-dense");
}

static int open_gemma3(void **state) {
    return open_vocab(state, "tiny-gemma3");
}

static int close_vocab(void **state) {
    fixture *f = *state;
    clt_vocab_free(f->vocab);
    clt_file_close(f->file);
    return 0;
}

/* ---- feeding ---- */

static clt_ids ids_of(const fixture *f, const char *text, bool special) {
    clt_err err;
    clt_ids ids = {0};
    assert_int_equal(clt_tokenize(f->vocab, text, strlen(text), special, &ids, &err), CLT_OK);
    return ids;
}

static clt_reply *begin(const fixture *f, bool in_thought, bool raw) {
    clt_reply *r;
    clt_err err;
    assert_int_equal(clt_reply_create(f->vocab, in_thought, raw, &r, &err), CLT_OK);
    return r;
}

static char *copy_of(const char *s, size_t n) {
    char *copy = malloc(n + 1);
    memcpy(copy, s, n);
    return copy;
}

/* Pushes ids one by one and checks at each step that what is there is valid UTF-8 and only grows. */
static void feed(clt_reply *r, const clt_ids *ids) {
    clt_err err;
    for (size_t i = 0; i < ids->len; i++) {
        size_t content, thought, n;
        const char *text = clt_reply_content(r, &content), *musing = clt_reply_thought(r, &thought);
        char *before = copy_of(text, content), *mused = copy_of(musing, thought);
        size_t calls = clt_reply_calls(r);
        assert_int_equal(clt_reply_push(r, ids->data[i], &err), CLT_OK);
        assert_memory_equal(clt_reply_content(r, &n), before, content);
        assert_true(n >= content && clt_utf8_valid(clt_reply_content(r, NULL), n));
        assert_memory_equal(clt_reply_thought(r, &n), mused, thought);
        assert_true(n >= thought && clt_utf8_valid(clt_reply_thought(r, NULL), n));
        assert_true(clt_reply_calls(r) >= calls);
        free(before);
        free(mused);
    }
}

/* Everything a reply holds, as one text: T thought, C content, F calls. */
static char *summary(const clt_reply *r) {
    clt_buf out = {0};
    size_t n;
    const char *s = clt_reply_thought(r, &n);
    clt_buf_puts(&out, "T:");
    clt_buf_put(&out, s, n);
    s = clt_reply_content(r, &n);
    clt_buf_puts(&out, "|C:");
    clt_buf_put(&out, s, n);
    for (size_t i = 0; i < clt_reply_calls(r); i++) {
        clt_reply_call c;
        clt_reply_call_at(r, i, &c);
        clt_buf_printf(&out, "|F:%s%s", c.name, c.arguments);
    }
    char *text = strdup(out.data);
    clt_buf_free(&out);
    return text;
}

typedef enum how { WHOLE, CUT, THINKING, THINKING_CUT } how;

static void expect_reply(const fixture *f, const char *text, how h, const char *expected) {
    clt_err err;
    clt_ids ids = ids_of(f, text, true);
    clt_reply *r = begin(f, h == THINKING || h == THINKING_CUT, false);
    feed(r, &ids);
    assert_int_equal(clt_reply_end(r, h == CUT || h == THINKING_CUT, &err), CLT_OK);
    char *found = summary(r);
    if (strcmp(found, expected) != 0) fail_msg("%s\n got %s\nwant %s", text, found, expected);
    free(found);
    clt_reply_free(r);
    clt_ids_free(&ids);
}

#define Q "<|\"|>"
#define OPEN "<|channel>thought\n"
#define CLOSE "\n<channel|>"
#define CALL(text) "<|tool_call>call:" text "<tool_call|>"

/* ---- tests ---- */

static void test_thoughts(void **state) {
    const fixture *f = *state;
    expect_reply(f, "Hello", WHOLE, "T:|C:Hello");
    expect_reply(f, OPEN "a\nb" CLOSE "Yes", WHOLE, "T:a\nb|C:Yes");
    expect_reply(f, OPEN "a\n" CLOSE "Yes", WHOLE, "T:a\n|C:Yes"); /* one newline is framing, the other is text */
    expect_reply(f, OPEN "<channel|>Yes", WHOLE, "T:|C:Yes");
    expect_reply(f, "<|channel>thought<channel|>Yes", WHOLE, "T:|C:Yes");
    expect_reply(f, "Yes<channel|>", WHOLE, "T:|C:Yes");
    expect_reply(f, OPEN "a" CLOSE "b" OPEN "c" CLOSE CALL("f{}") "d", WHOLE, "T:ac|C:bd|F:f{}");
    expect_reply(f, "<|channel>I think so\nyes" CLOSE "x", WHOLE, "T:I think so\nyes|C:x");
    expect_reply(f, "<|channel>final\nyes" CLOSE "x", WHOLE, "T:yes|C:x");
    expect_reply(f, "a " Q "b" Q "<turn|>", WHOLE, "T:|C:a b");
    expect_reply(f, "thought\nplain", WHOLE, "T:|C:thought\nplain");
}

static void test_cut_thoughts(void **state) {
    const fixture *f = *state;
    expect_reply(f, OPEN "half a thou", CUT, "T:half a thou|C:");
    expect_reply(f, OPEN "line\n", CUT, "T:line\n|C:");
    expect_reply(f, "<|channel>thou", CUT, "T:|C:");
    expect_reply(f, "going on" CLOSE "Yes", THINKING, "T:going on|C:Yes");
    expect_reply(f, "going on", THINKING_CUT, "T:going on|C:");
    expect_reply(f, "so:" CALL("f{a:1}"), THINKING, "T:so:|C:|F:f{\"a\":1}");
}

static void test_calls(void **state) {
    const fixture *f = *state;
    expect_reply(f, CALL("get_weather{city:" Q "Oslo" Q ",days:2}"), WHOLE,
                 "T:|C:|F:get_weather{\"city\":\"Oslo\",\"days\":2}");
    expect_reply(f, CALL("f{}") CALL("f{}") CALL("g{a:[1]}"), WHOLE, "T:|C:|F:f{}|F:f{}|F:g{\"a\":[1]}");
    expect_reply(f, CALL("a-b.c/d1é{x:1}"), WHOLE, "T:|C:|F:a-b.c/d1é{\"x\":1}");
    expect_reply(f, CALL("f{unit:celsius,ids:[\"a\"]}"), WHOLE, "T:|C:|F:f{\"unit\":\"celsius\",\"ids\":[\"a\"]}");
    expect_reply(f, "Text " CALL("f{}") " more", WHOLE, "T:|C:Text  more|F:f{}");
    expect_reply(f, CALL("f{t:" Q "a, } b\n" Q "}"), WHOLE, "T:|C:|F:f{\"t\":\"a, } b\\n\"}");
    expect_reply(f, "<|tool_call>call:f{a:1}<|tool_call>call:g{}<tool_call|>", WHOLE, "T:|C:|F:f{\"a\":1}|F:g{}");
}

static void test_unreadable_and_cut_calls(void **state) {
    const fixture *f = *state;
    expect_reply(f, CALL("name:\nBEGIN_ARG x END_ARG"), WHOLE, "T:|C:call:name:\nBEGIN_ARG x END_ARG");
    expect_reply(f, CALL("f{a:" Q "x}"), WHOLE, "T:|C:call:f{a:" Q "x}");
    expect_reply(f, CALL("{a:1}"), WHOLE, "T:|C:call:{a:1}");
    expect_reply(f, "<|tool_call>nonsense<tool_call|>", WHOLE, "T:|C:nonsense");
    expect_reply(f, "<|tool_call><tool_call|>", WHOLE, "T:|C:");
    expect_reply(f, "<tool_call|>x", WHOLE, "T:|C:x");
    expect_reply(f, OPEN "t" CLOSE "<|tool_call>call:f{a:1", CUT, "T:t|C:");
    expect_reply(f, "<|tool_call>call:f{a:1}", WHOLE, "T:|C:|F:f{\"a\":1}"); /* ended by an end id: complete as it is */
    expect_reply(f, "<|tool_call>call:f{a:" Q "x", WHOLE, "T:|C:call:f{a:" Q "x");
}

/* Text that spells markers, made of ordinary ids, is text: in content, and inside the string of a call. */
static void test_spelled_markers(void **state) {
    const fixture *f = *state;
    clt_err err;
    clt_reply *r = begin(f, false, false);
    clt_ids ids = ids_of(f, "<|channel>thought\n<|tool_call>", false);
    feed(r, &ids);
    clt_ids_free(&ids);
    ids = ids_of(f, "<|tool_call>call:f{a:" Q, true);
    feed(r, &ids);
    clt_ids_free(&ids);
    ids = ids_of(f, "say " Q " now<tool_call|>", false);
    feed(r, &ids);
    clt_ids_free(&ids);
    ids = ids_of(f, Q "}<tool_call|>", true);
    feed(r, &ids);
    clt_ids_free(&ids);
    assert_int_equal(clt_reply_end(r, false, &err), CLT_OK);
    char *found = summary(r);
    assert_string_equal(found, "T:|C:<|channel>thought\n<|tool_call>|F:f{\"a\":\"say <|\\\"|> now<tool_call|>\"}");
    free(found);
    clt_reply_free(r);
}

/* Characters in byte tokens appear whole; what a marker interrupts becomes U+FFFD. */
static void test_bytes(void **state) {
    const fixture *f = *state;
    static const char smile[] = "\xF0\x9F\x99\x82";
    clt_err err;
    for (size_t stop = 1; stop <= 4; stop++) {
        size_t n;
        clt_reply *r = begin(f, false, false);
        for (size_t i = 0; i < stop; i++) {
            char piece[8];
            snprintf(piece, sizeof piece, "<0x%02X>", (unsigned char)smile[i]);
            assert_true(clt_vocab_find(f->vocab, piece) >= 0);
            assert_int_equal(clt_reply_push(r, clt_vocab_find(f->vocab, piece), &err), CLT_OK);
            clt_reply_content(r, &n);
            assert_int_equal(n, i == 3 ? 4 : 0);
        }
        assert_int_equal(clt_reply_push(r, clt_vocab_get_roles(f->vocab)->channel_close, &err), CLT_OK);
        assert_int_equal(clt_reply_end(r, false, &err), CLT_OK);
        assert_string_equal(clt_reply_content(r, &n), stop == 4 ? smile : "\xEF\xBF\xBD");
        clt_reply_free(r);
    }
}

static void test_raw(void **state) {
    const fixture *f = *state;
    clt_err err;
    clt_reply *r = begin(f, true, true);
    clt_ids ids = ids_of(f, OPEN "a" CLOSE CALL("f{}"), true);
    feed(r, &ids);
    assert_int_equal(clt_reply_end(r, false, &err), CLT_OK);
    char *found = summary(r);
    assert_string_equal(found, "T:|C:thought\na\ncall:f{}");
    free(found);
    clt_ids_free(&ids);
    clt_reply_free(r);
}

static void test_gemma3(void **state) {
    const fixture *f = *state;
    expect_reply(f, "Hello thought\n{a:1}", WHOLE, "T:|C:Hello thought\n{a:1}");
    clt_err err;
    clt_reply *r = begin(f, false, false);
    for (int32_t id = -3; id < clt_vocab_size(f->vocab) + 3; id++) assert_int_equal(clt_reply_push(r, id, &err), CLT_OK);
    assert_int_equal(clt_reply_end(r, false, &err), CLT_OK);
    assert_int_equal(clt_reply_calls(r), 0);
    clt_reply_free(r);
}

/* Any ids: the parser never fails, holds valid UTF-8, and every call's arguments are one JSON object. */
static void test_random_ids(void **state) {
    const fixture *f = *state;
    const clt_vocab_roles *o = clt_vocab_get_roles(f->vocab);
    const int32_t markers[] = {o->channel_open, o->channel_close, o->call_open, o->call_close, o->quote, o->response_open};
    clt_ids brace = ids_of(f, "call:{:,}thought\n", false);
    uint32_t seed = 1;
    for (int round = 0; round < 300; round++) {
        clt_ids ids = {0};
        clt_err err;
        for (int i = 0; i < 60; i++) {
            seed = seed * 1664525 + 1013904223;
            uint32_t draw = seed >> 8;
            if (draw % 3 == 0) clt_ids_push(&ids, markers[draw / 3 % 6]);
            else if (draw % 3 == 1) clt_ids_push(&ids, brace.data[draw / 3 % brace.len]);
            else clt_ids_push(&ids, (int32_t)(draw / 3 % (uint32_t)clt_vocab_size(f->vocab)));
        }
        clt_reply *r = begin(f, round % 2, false);
        feed(r, &ids);
        assert_int_equal(clt_reply_end(r, round % 3 == 0, &err), CLT_OK);
        for (size_t i = 0; i < clt_reply_calls(r); i++) {
            clt_reply_call c;
            clt_json *doc;
            clt_reply_call_at(r, i, &c);
            if (clt_json_parse(c.arguments, strlen(c.arguments), "arguments", &doc, &err) != CLT_OK) fail_msg("%s",
                                                                                                              c.arguments);
            assert_int_equal(clt_json_kind(doc), CLT_JSON_OBJECT);
            clt_json_free(doc);
        }
        clt_reply_free(r);
        clt_ids_free(&ids);
    }
    clt_ids_free(&brace);
}

static void test_failing_allocations(void **state) {
    const fixture *f = *state;
    clt_ids ids = ids_of(f, OPEN "why" CLOSE "Yes" CALL("f{a:[1," Q "x" Q "],a:2}") "and more", true);
    clt_status status = CLT_E_MEMORY;
    for (long n = 1; status != CLT_OK; n++) {
        clt_err err;
        clt_reply *r;
        long live = clt_mem_live();
        clt_mem_fail_after(n);
        status = clt_reply_create(f->vocab, false, false, &r, &err);
        for (size_t i = 0; i < ids.len && status == CLT_OK; i++) status = clt_reply_push(r, ids.data[i], &err);
        if (status == CLT_OK) status = clt_reply_end(r, false, &err);
        clt_mem_fail_after(0);
        if (status != CLT_OK) assert_int_equal(status, CLT_E_MEMORY);
        clt_reply_free(r);
        assert_int_equal(clt_mem_live(), live);
        assert_true(n < 200);
    }
    clt_ids_free(&ids);
}

int main(void) {
    const struct CMUnitTest gemma4[] = {
        cmocka_unit_test(test_thoughts),    cmocka_unit_test(test_cut_thoughts),    cmocka_unit_test(test_calls),
        cmocka_unit_test(test_unreadable_and_cut_calls), cmocka_unit_test(test_spelled_markers),
            cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_raw),         cmocka_unit_test(test_random_ids),
            cmocka_unit_test(test_failing_allocations),
    };
    const struct CMUnitTest gemma3[] = {cmocka_unit_test(test_gemma3)};
    int failed = cmocka_run_group_tests(gemma4, open_gemma4, close_vocab);
    return failed + cmocka_run_group_tests(gemma3, open_gemma3, close_vocab);
}
