/* Recognising templates: the known ones, small edits of them, and strangers. */
#include "chats.h"

static const clt_chat_facts large = {0}, small = {.small = true}, gemma3 = {.gemma3 = true};

/* Facts of Gemma 3's official template; the rest of the test needs only its constructs. */
static const char gemma3_text[] =
    "{{ bos_token }}\n{%- if messages[0]['role'] == 'system' -%}"
    "{%- set prefix = messages[0]['content'] + '\n\n' -%}{%- endif -%}\n"
    "{%- for message in messages -%}\n{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}\n"
    "{{ raise_exception(\"Conversation roles must alternate user/assistant/user/assistant/...\") }}{%- endif -%}\n"
    "{%- set role = \"model\" if (message['role'] == 'assistant') else message['role'] -%}\n"
    "{{ '<start_of_turn>' + role + '\n' }}{{ message['content'] | trim }}{{ '<start_of_image>' }}{{ '<end_of_turn>\n' }}\n"
    "{%- endfor -%}\n{%- if add_generation_prompt -%}{{'<start_of_turn>model\n'}}{%- endif -%}\n";

static const char chatml[] = "{% for message in messages %}"
                             "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
                             "'<|im_end|>' + '\n'}}{% endfor %}"
                             "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

static clt_chat_template recognise(const char *text, size_t len, const clt_chat_facts *facts) {
    clt_chat_template t;
    clt_chat_recognise(text, len, facts, &t);
    return t;
}

/* The text with every `from` replaced; free(). */
static char *replaced(const char *text, const char *from, const char *to, size_t *len) {
    clt_buf out = {0};
    size_t n = strlen(from), count = 0;
    for (const char *s = text, *at; *s; s = at) {
        at = strstr(s, from);
        clt_buf_put(&out, s, at ? (size_t)(at - s) : strlen(s));
        if (!at) break;
        clt_buf_puts(&out, to);
        at += n;
        count++;
    }
    if (!count) fail_msg("the template holds no \"%s\"", from);
    char *copy = strdup(out.data);
    *len = out.len;
    clt_buf_free(&out);
    return copy;
}

static void test_known_files(void **state) {
    (void)state;
    clt_chat_template t = recognise_golden("chat_template.jinja");
    assert_int_equal(t.generation, CLT_CHAT_GEMMA4);
    assert_true(t.recognised && t.closed_thought);
    if (t.digest[0]) assert_string_equal(t.digest, "85a08664d16d8f3be4416c92427b3ac10df1024ac566cc0b4bc3bab409393f98");
    t = recognise_golden("chat_template_first.jinja");
    assert_int_equal(t.generation, CLT_CHAT_GEMMA4_FIRST);
    assert_true(t.recognised && t.closed_thought);
    t = recognise_golden("chat_template_interleaved.jinja");
    assert_int_equal(t.generation, CLT_CHAT_GEMMA4_INTERLEAVED);
    assert_true(t.recognised && t.closed_thought);
    t = recognise(gemma3_text, strlen(gemma3_text), &gemma3);
    assert_int_equal(t.generation, CLT_CHAT_GEMMA3);
    assert_true(t.recognised && !t.closed_thought);
}

static void test_without_template(void **state) {
    (void)state;
    clt_chat_template t = recognise(NULL, 0, &large);
    assert_int_equal(t.generation, CLT_CHAT_GEMMA4_JULY);
    assert_true(t.recognised && t.closed_thought && !t.digest[0]);
    t = recognise(NULL, 0, &small);
    assert_int_equal(t.generation, CLT_CHAT_GEMMA4_JULY);
    assert_true(t.recognised && !t.closed_thought);
    t = recognise(NULL, 0, &gemma3);
    assert_int_equal(t.generation, CLT_CHAT_GEMMA3);
    assert_true(t.recognised && !t.closed_thought);
}

/* Edits that change nothing of what a template writes. */
static void test_harmless_edits(void **state) {
    (void)state;
    static const char *const edits[][2] = {
        {"{%- endmacro -%}", "{%- endmacro -%}\n{# a comment with <|im_start|> and words of its own #}"},
        {"\n", "\n  "},
        {"{%-", "{%"},
        {"'tool_calls'", "\"tool_calls\""},
        {"{#- Loop through messages -#}", ""},
        {"    ", "\t"},
    };
    static const char *const files[] = {"chat_template.jinja", "chat_template_first.jinja",
                                        "chat_template_interleaved.jinja"};
    for (size_t f = 0; f < 3; f++) {
        char path[64];
        size_t len;
        snprintf(path, sizeof path, "templates/%s", files[f]);
        char *text = read_golden(path, &len);
        clt_chat_template whole = recognise(text, len, &small);
        for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
            char *edited = replaced(text, edits[i][0], edits[i][1], &len);
            clt_chat_template t = recognise(edited, len, &small);
            if (!t.recognised || t.generation != whole.generation || !t.closed_thought) fail_msg("%s, edit %zu", files[f],
                                                                                                 i);
            free(edited);
        }
        free(text);
    }
}

/* The E sizes' form of a template: no closed thought in the generation prompt. */
static void test_without_closed_thought(void **state) {
    (void)state;
    size_t len;
    char *text = read_golden("templates/chat_template.jinja", &len);
    char *edited = replaced(text, "{{- '<|channel>thought\\n<channel|>' -}}", "", &len);
    clt_chat_template t = recognise(edited, len, &large);
    assert_true(t.recognised && !t.closed_thought);
    assert_int_equal(t.generation, CLT_CHAT_GEMMA4);
    free(edited);
    /* and what the July file has more: null and preserved thoughts */
    edited = replaced(text, "{{- argument -}}", "{{- 'null' if argument is none else preserve_thinking -}}", &len);
    t = recognise(edited, len, &large);
    assert_true(t.recognised && t.closed_thought);
    assert_int_equal(t.generation, CLT_CHAT_GEMMA4_JULY);
    free(edited);
    free(text);
}

/* Edits that change what a template writes: unknown, and the nearest generation stays. */
static void test_meaningful_edits(void **state) {
    (void)state;
    static const char *const edits[][2] = {
        {"{{- bos_token -}}", "{{- bos_token -}}You are a helpful assistant."},
        {"{{- bos_token -}}", "{{- bos_token + 'You are a helpful assistant.' -}}"},
        {"'<|turn>system\\n'", "'<|im_start|>system\\n'"},
        {"<|think|>", "<think>"},
        {"declaration:", "function:"},
    };
    size_t len;
    char *text = read_golden("templates/chat_template.jinja", &len);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        char *edited = replaced(text, edits[i][0], edits[i][1], &len);
        clt_chat_template t = recognise(edited, len, &large);
        if (t.recognised) fail_msg("edit %zu", i);
        assert_int_equal(t.generation, CLT_CHAT_GEMMA4);
        free(edited);
    }
    free(text);
}

static void test_strangers(void **state) {
    (void)state;
    static const char *const texts[] = {chatml, "", "{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}",
                                        "{{", "{#", "{% '",
                                        "{{ '<start_of_turn>model\n' }}",
                                        "{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}<turn|>\n{% endfor %}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        clt_chat_template t = recognise(texts[i], strlen(texts[i]), &small);
        if (t.recognised) fail_msg("text %zu", i);
        assert_true(t.generation != CLT_CHAT_GEMMA3 && !t.closed_thought);
        t = recognise(texts[i], strlen(texts[i]), &gemma3);
        assert_false(t.recognised);
        assert_int_equal(t.generation, CLT_CHAT_GEMMA3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_files),
        cmocka_unit_test(test_without_template),
        cmocka_unit_test(test_harmless_edits),
        cmocka_unit_test(test_without_closed_thought),
        cmocka_unit_test(test_meaningful_edits),
        cmocka_unit_test(test_strangers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
