/* Chat rendering: a request -> the prompt of its template generation. Here: Gemma 4's turns.
 *
 * In: a checked request (chat_check.c) and the recognised template. Out: text, special tokens and media in order. The text
 * equals what the official templates render; how the generations differ is the table `generations`. Nothing is
 * tokenized and no media is opened. Deliberate differences from the official files, where these print nonsense or lose
 * something without a word: system content given as parts is joined (the first three generations print a Python list),
 * a tool result without any name is "unknown" (they fail), media in a tool result is refused unless the generation
 * renders it, and tool schemas as chat_schema.c says. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "text/chat_impl.h"

static const clt_chat_features generations[CLT_CHAT_GENERATIONS] = {
    [CLT_CHAT_GEMMA4_FIRST] = {.think = "<|think|>",
                               .thoughts = CLT_THOUGHTS_NONE,
                               .blank_lines_around_pictures = true,
                               .primer_after_response = true,
                               .hides_standard_names = true},
    [CLT_CHAT_GEMMA4_INTERLEAVED] = {.think = "<|think|>\n",
                                     .thoughts = CLT_THOUGHTS_TIGHT,
                                     .calls_join_response = true,
                                     .primer_after_response = true,
                                     .hides_standard_names = true},
    [CLT_CHAT_GEMMA4] = {.think = "<|think|>\n",
                         .thoughts = CLT_THOUGHTS_CALLS,
                         .folds_tool_messages = true,
                         .tidy_properties = true,
                         .hides_standard_names = true},
    [CLT_CHAT_GEMMA4_JULY] = {.think = "<|think|>\n",
                              .thoughts = CLT_THOUGHTS_RECENT,
                              .folds_tool_messages = true,
                              .thought_after_response = true,
                              .joins_turns = true,
                              .strict_arguments = true,
                              .prints_null = true,
                              .spaces_system_parts = true,
                              .empty_name_is_unknown = true,
                              .renders_result_media = true,
                              .calls_survive_media = true,
                              .tidy_properties = true},
};

/* What the last rendered message ended with, as far as what follows depends on it. */
typedef enum ending { END_OTHER, END_CALL, END_RESPONSE } ending;

typedef struct turns {
    clt_chat_render_state *r;
    size_t first, n;      /* messages [first, n) are turns; a leading system message is not */
    size_t after_user;    /* index behind the last user message */
    ending ending;
    bool had_responses;   /* the current message carried or was followed by tool results */
    bool had_content;     /* the current message rendered something visible */
} turns;

static const clt_json *message_at(const turns *t, size_t i) {
    return clt_json_at(t->r->messages, i);
}

static bool is_tool(const clt_json *message) {
    return clt_chat_has_role(message, "tool");
}

static void put(turns *t, const char *markup) {
    clt_prompt_put_markup(t->r->out, markup);
}

static void put_string(turns *t, const clt_json *string) {
    clt_chat_put_scalar(t->r, string, false);
}

static const clt_json *truthy(const clt_json *object, const char *key) {
    const clt_json *n = clt_json_get(object, key);
    return clt_chat_truthy(n) ? n : NULL;
}

/* The message whose turn this one could continue or that could continue it: the nearest that is no tool result, or NULL. */
static const clt_json *neighbour(const turns *t, size_t i, int step) {
    for (size_t k = i; step < 0 ? k > t->first : k + 1 < t->n;) {
        k = step < 0 ? k - 1 : k + 1;
        if (!is_tool(message_at(t, k))) return message_at(t, k);
    }
    return NULL;
}

/* ---- text ---- */

/* The bytes of s[0..n) before `marker`, or all n. */
static size_t until(const char *s, size_t n, const char *marker) {
    const char *at = n ? memmem(s, n, marker, strlen(marker)) : NULL;
    return at ? (size_t)(at - s) : n;
}

/* Text of a model turn without thoughts: cut at every <channel|>, each part loses what follows its first <|channel>. */
static void put_model_text(turns *t, const char *s, size_t n, bool keep_end) {
    static const char open[] = "<|channel>", close[] = "<channel|>";
    clt_buf text = {0};
    for (;;) {
        size_t part = until(s, n, close);
        clt_buf_put(&text, s, until(s, part, open));
        if (part == n) break;
        s += part + sizeof close - 1;
        n -= part + sizeof close - 1;
    }
    if (text.failed) t->r->out->text.failed = true;
    const char *start = text.data ? text.data : "";
    size_t len = text.len;
    clt_utf8_trim(&start, &len);
    if (keep_end) len = (size_t)(text.data + text.len - start);
    clt_prompt_put_text(t->r->out, start, text.len ? len : 0);
    clt_buf_free(&text);
}

/* keep_end: the message is to be continued, so its trailing space stays. */
static void put_message_text(turns *t, const clt_json *message, const clt_json *string, bool keep_end) {
    size_t len;
    const char *s = clt_json_str(string, &len);
    if (clt_chat_is_model(message)) {
        put_model_text(t, s, len, keep_end);
        return;
    }
    clt_utf8_trim(&s, &len);
    clt_prompt_put_text(t->r->out, s, len);
}

static void put_media(turns *t, clt_chat_part kind, bool blank_lines) {
    switch (kind) {
    case CLT_PART_IMAGE: put(t, blank_lines ? "\n\n<|image|>\n\n" : "<|image|>"); break;
    case CLT_PART_AUDIO: put(t, "<|audio|>"); break;
    case CLT_PART_VIDEO: put(t, blank_lines ? "\n\n<|video|>\n\n" : "<|video|>"); break;
    case CLT_PART_TEXT:
    case CLT_PART_UNKNOWN: break;
    }
}

static void put_content(turns *t, const clt_json *message, bool keep_end) {
    const clt_json *content = clt_json_get(message, "content");
    size_t start = t->r->out->text.len, n = clt_json_len(content);
    if (clt_json_kind(content) == CLT_JSON_STRING) put_message_text(t, message, content, keep_end);
    for (size_t k = 0; clt_json_kind(content) == CLT_JSON_ARRAY && k < n; k++) {
        const clt_json *part = clt_json_at(content, k);
        clt_chat_part kind = clt_chat_part_kind(part);
        if (kind == CLT_PART_TEXT) {
            put_message_text(t, message, clt_json_get(part, "text"), keep_end && k + 1 == n);
            continue;
        }
        put_media(t, kind, t->r->features->blank_lines_around_pictures);
        if (!t->r->features->calls_survive_media) t->ending = END_OTHER;
    }
    if (t->r->out->text.failed) return;
    const char *s = t->r->out->text.data + start;
    size_t len = t->r->out->text.len - start;
    clt_utf8_trim(&s, &len);
    t->had_content = len > 0;
}

/* ---- thoughts, calls, results ---- */

static void put_thought(turns *t, const clt_json *message, size_t i) {
    const clt_chat_features *f = t->r->features;
    const clt_json *thought = f->thoughts == CLT_THOUGHTS_TIGHT ? NULL : truthy(message, "reasoning");
    bool recent = i >= t->after_user, calls = truthy(message, "tool_calls") != NULL, wanted = false;
    if (!thought) thought = truthy(message, "reasoning_content");
    switch (f->thoughts) {
    case CLT_THOUGHTS_NONE: break;
    case CLT_THOUGHTS_TIGHT:
    case CLT_THOUGHTS_CALLS: wanted = recent && calls; break;
    case CLT_THOUGHTS_RECENT: wanted = recent || (calls && t->r->options->preserve_thinking); break;
    }
    if (!wanted || !thought) return;
    put(t, "<|channel>thought\n");
    put_string(t, thought);
    put(t, f->thoughts == CLT_THOUGHTS_TIGHT ? "<channel|>" : "\n<channel|>");
}

static bool notice_scalar(void *ctx, clt_json_type type, const char *text, size_t len) {
    char digits[24];
    bool *too_big = ctx;
    if (type != CLT_JSON_INT) return true;
    snprintf(digits, sizeof digits, "%.*s", len < sizeof digits ? (int)len : (int)sizeof digits - 1, text);
    errno = 0;
    strtoll(digits, NULL, 10);
    *too_big = *too_big || errno != 0;
    return true;
}

static bool notice_text(void *ctx, const char *s, size_t len) {
    return (void)ctx, (void)s, (void)len, true;
}

static bool notice_bracket(void *ctx, bool is_array) {
    return (void)ctx, (void)is_array, true;
}

/* Whether text is one JSON value, however often its keys repeat; *too_big: it holds a whole number beyond 64 bits. */
static bool is_json(const char *text, size_t len, bool *too_big) {
    static const clt_json_events notice = {notice_scalar, notice_text, notice_text, notice_bracket, notice_bracket};
    clt_err ignored;
    *too_big = false;
    return clt_json_stream(text, len, "arguments", &notice, too_big, &ignored) == CLT_OK;
}

/* Parsed arguments. A number that might have been beyond 64 bits is looked up in the text. */
static clt_status put_parsed_arguments(turns *t, const clt_json *doc, const char *s, size_t len, const char *where) {
    bool too_big;
    clt_status status = clt_chat_check_numbers(doc, where, t->r->err);
    if (status != CLT_OK && (!is_json(s, len, &too_big) || too_big)) return status;
    return clt_chat_put_members(t->r, doc);
}

/* Arguments that came as text, as OpenAI's clients send them: an object is rendered like one, other text stays as it is
 * where the generation allows that. JSON beyond our limits (64-bit numbers, unique keys) is refused, not passed on as
 * text. */
static clt_status put_arguments_text(turns *t, const char *s, size_t len, const char *where) {
    clt_json *doc = NULL;
    clt_err parse_error;
    const char *trimmed = s;
    size_t trimmed_len = len;
    bool too_big;
    clt_utf8_trim(&trimmed, &trimmed_len);
    if (trimmed_len == 0) return CLT_OK;
    clt_status status = clt_json_parse(s, len, where, &doc, &parse_error);
    if (status == CLT_OK && clt_json_kind(doc) == CLT_JSON_OBJECT) {
        status = put_parsed_arguments(t, doc, s, len, where);
    } else if (status == CLT_E_MEMORY || (status != CLT_OK && is_json(s, len, &too_big))) {
        *t->r->err = parse_error;
    } else if (t->r->features->strict_arguments) {
        status = clt_fail(t->r->err, CLT_E_REQUEST, "%s: expected a JSON object", where);
    } else {
        clt_prompt_put_text(t->r->out, s, len);
        status = CLT_OK;
    }
    clt_json_free(doc);
    return status;
}

static clt_status put_calls(turns *t, const clt_json *calls, size_t i) {
    clt_status status = CLT_OK;
    for (size_t k = 0; k < clt_json_len(calls) && status == CLT_OK; k++) {
        const clt_json *function = clt_json_get(clt_json_at(calls, k), "function");
        const clt_json *arguments = clt_json_get(function, "arguments");
        char where[96];
        size_t len;
        const char *text = clt_json_str(arguments, &len);
        snprintf(where, sizeof where, "messages[%zu].tool_calls[%zu].function.arguments", i, k);
        put(t, "<|tool_call>call:");
        put_string(t, clt_json_get(function, "name"));
        put(t, "{");
        if (text) status = put_arguments_text(t, text, len, where);
        else status = clt_chat_put_members(t->r, arguments);
        put(t, "}<tool_call|>");
    }
    t->ending = END_CALL;
    return status;
}

static void begin_response(turns *t, const clt_json *name) {
    put(t, "<|tool_response>response:");
    bool unknown = t->r->features->empty_name_is_unknown ? !clt_chat_truthy(name) : clt_json_kind(name) == CLT_JSON_NULL;
    if (unknown) put(t, "unknown");
    else put_string(t, name);
}

static void end_response(turns *t) {
    put(t, "}<tool_response|>");
    t->ending = END_RESPONSE;
    t->had_responses = true;
}

/* <|tool_response>response:NAME{…}<tool_response|>; `absent` stands for a response that is not there. */
static clt_status put_response(turns *t, const clt_json *name, const clt_json *response, const char *absent) {
    clt_status status = CLT_OK;
    bool object = clt_json_kind(response) == CLT_JSON_OBJECT;
    begin_response(t, name);
    put(t, object ? "{" : "{value:");
    if (object) status = clt_chat_put_members(t->r, response);
    else if (response) status = clt_chat_put_value(t->r, response, false);
    else put(t, absent);
    end_response(t);
    return status;
}

/* Results in Google's own form, inside the assistant message. */
static clt_status put_native_responses(turns *t, const clt_json *responses) {
    clt_status status = CLT_OK;
    for (size_t k = 0; k < clt_json_len(responses) && status == CLT_OK; k++) {
        const clt_json *item = clt_json_at(responses, k), *name = clt_json_get(item, "name");
        status = put_response(t, name, clt_json_get(item, "response"), "[]");
    }
    return status;
}

static bool same_id(const clt_json *a, const clt_json *b) {
    const char *s = clt_json_str(a, NULL), *u = clt_json_str(b, NULL);
    return s && u ? strcmp(s, u) == 0 : !s && !u;
}

/* The function that a tool message answers: by id among the calls (the last one wins), else the message's own name. */
static const clt_json *answered_name(const clt_json *result, const clt_json *calls) {
    const clt_json *name = clt_json_get(result, "name"), *id = clt_json_get(result, "tool_call_id");
    for (size_t k = 0; k < clt_json_len(calls); k++) {
        const clt_json *call = clt_json_at(calls, k);
        if (same_id(clt_json_get(call, "id"), id)) name = clt_json_get(clt_json_get(call, "function"), "name");
    }
    return name;
}

/* A tool message as a response: its text parts joined, then, where the generation renders them, its media. */
static clt_status put_tool_message(turns *t, size_t i, const clt_json *calls) {
    const clt_json *result = message_at(t, i), *content = clt_json_get(result, "content");
    const clt_json *name = answered_name(result, calls);
    const clt_chat_features *f = t->r->features;
    if (clt_json_kind(content) != CLT_JSON_ARRAY) return put_response(t, name, content, f->prints_null ? "null" : "None");
    begin_response(t, name);
    put(t, "{value:<|\"|>");
    for (size_t k = 0; k < clt_json_len(content); k++) {
        const clt_json *part = clt_json_at(content, k);
        if (clt_chat_part_kind(part) == CLT_PART_TEXT) {
            put_string(t, clt_json_get(part, "text"));
        } else if (!f->renders_result_media) {
            return clt_fail(t->r->err, CLT_E_REQUEST,
                            "messages[%zu].content[%zu]: this model's template has no media in tool "
                            "results", i, k);
        }
    }
    put(t, "<|\"|>");
    end_response(t);
    for (size_t k = 0; k < clt_json_len(content); k++) put_media(t, clt_chat_part_kind(clt_json_at(content, k)), false);
    return CLT_OK;
}

static clt_status put_responses(turns *t, const clt_json *message, size_t i) {
    const clt_json *native = truthy(message, "tool_responses"), *calls = truthy(message, "tool_calls");
    clt_status status = CLT_OK;
    if (native) return put_native_responses(t, native);
    if (!calls || !t->r->features->folds_tool_messages) return CLT_OK;
    for (size_t k = i + 1; k < t->n && is_tool(message_at(t, k)) && status == CLT_OK; k++) {
        status = put_tool_message(t, k, calls);
    }
    return status;
}

/* ---- turns ---- */

/* Whether message i continues the turn before it. */
static bool continues(const turns *t, const clt_json *message, size_t i) {
    const clt_chat_features *f = t->r->features;
    if (f->calls_join_response) return t->ending == END_RESPONSE && truthy(message, "tool_calls");
    if (!f->folds_tool_messages || !clt_chat_is_model(message)) return false;
    const clt_json *before = neighbour(t, i, -1);
    return before && clt_chat_has_role(before, "assistant");
}

static void open_turn(turns *t, const clt_json *message) {
    put(t, "<|turn>");
    if (clt_chat_is_model(message)) put(t, "model");
    else put_string(t, clt_json_get(message, "role"));
    put(t, "\n");
}

static void close_turn(turns *t, const clt_json *message, size_t i) {
    const clt_chat_features *f = t->r->features;
    bool calls = truthy(message, "tool_calls") != NULL;
    if (f->folds_tool_messages && t->ending == END_CALL && !t->had_responses) {
        put(t, "<|tool_response>");
        return;
    }
    if (f->joins_turns) {
        const clt_json *next = neighbour(t, i, 1);
        bool joined = clt_chat_is_model(message) && next && clt_chat_has_role(next, "assistant") &&
                      (!calls || t->had_responses);
        if (!joined && !(t->had_responses && !t->had_content && !next)) put(t, "<turn|>\n");
        return;
    }
    if (!(t->had_responses && !truthy(message, "content"))) put(t, "<turn|>\n");
}

/* The last message when it is to be continued: nothing closes it. */
static clt_status put_beginning(turns *t, const clt_json *message, size_t i) {
    if (!clt_chat_is_model(message)) {
        return clt_fail(t->r->err, CLT_E_REQUEST, "continue_final_message: messages[%zu] is not an assistant message", i);
    }
    if (!t->r->options->continue_reasoning) {
        put_content(t, message, true);
        return CLT_OK;
    }
    const clt_json *thought = truthy(message, "reasoning");
    put(t, "<|channel>thought\n");
    put_string(t, thought ? thought : truthy(message, "reasoning_content"));
    t->r->out->in_thought = true;
    return CLT_OK;
}

static clt_status put_turn(turns *t, size_t i) {
    const clt_json *message = message_at(t, i), *calls = truthy(message, "tool_calls");
    bool last = i + 1 == t->n, open = last && t->r->options->continue_final_message;
    if (t->r->features->folds_tool_messages && is_tool(message)) {
        if (!open) return CLT_OK; /* rendered with the call that it answers */
        return clt_fail(t->r->err, CLT_E_REQUEST, "continue_final_message: messages[%zu] is not an assistant message", i);
    }
    bool joined = continues(t, message, i);
    t->ending = END_OTHER;
    t->had_responses = t->had_content = false;
    if (!joined) open_turn(t, message);
    if (open && t->r->options->continue_reasoning) return put_beginning(t, message, i);
    put_thought(t, message, i);
    clt_status status = calls ? put_calls(t, calls, i) : CLT_OK;
    if (status == CLT_OK) status = put_responses(t, message, i);
    if (status != CLT_OK) return status;
    if (open) return put_beginning(t, message, i);
    put_content(t, message, false);
    close_turn(t, message, i);
    return CLT_OK;
}

/* Content of the leading system message. Without content the first three generations print Python's None. */
static void put_system_text(turns *t, const clt_json *message) {
    const clt_json *content = clt_json_get(message, "content");
    if (clt_json_kind(content) == CLT_JSON_STRING) put_message_text(t, message, content, false);
    else if (clt_json_kind(content) == CLT_JSON_NULL && !t->r->features->prints_null) put_string(t, content);
    for (size_t k = 0; clt_json_kind(content) == CLT_JSON_ARRAY && k < clt_json_len(content); k++) {
        put_message_text(t, message, clt_json_get(clt_json_at(content, k), "text"), false);
        if (t->r->features->spaces_system_parts) put(t, " ");
    }
}

static clt_status put_system(turns *t, const clt_json *tools) {
    const clt_json *first = message_at(t, 0);
    bool thinking = t->r->options->enable_thinking;
    if (!thinking && !clt_json_len(tools) && !clt_chat_is_system(first)) return CLT_OK;
    put(t, "<|turn>system\n");
    if (thinking) put(t, t->r->features->think);
    if (clt_chat_is_system(first)) {
        put_system_text(t, first);
        t->first = 1;
    }
    clt_status status = clt_chat_put_tools(t->r, tools);
    put(t, "<turn|>\n");
    return status;
}

/* What the model continues from. After an unanswered call or, in most generations, a tool result, its turn is open
 * already. */
static void put_generation_prompt(turns *t) {
    const clt_chat_features *f = t->r->features;
    bool thinking = t->r->options->enable_thinking;
    bool new_turn = t->ending != END_RESPONSE && (t->ending != END_CALL || !f->folds_tool_messages);
    if (new_turn) put(t, "<|turn>model\n");
    if (!thinking && t->r->chosen->closed_thought && (new_turn || f->primer_after_response)) {
        put(t, "<|channel>thought\n<channel|>");
    }
    if (thinking && f->thought_after_response && t->ending == END_RESPONSE) {
        put(t, "<|channel>thought\n");
        t->r->out->in_thought = true;
    }
}

static clt_status render_gemma4(clt_chat_render_state *r, const clt_json *tools) {
    turns t = {.r = r, .n = clt_json_len(r->messages)};
    put(&t, "<bos>");
    clt_status status = put_system(&t, tools);
    t.after_user = t.first;
    for (size_t i = t.first; i < t.n; i++) {
        if (clt_chat_has_role(message_at(&t, i), "user")) t.after_user = i + 1;
    }
    for (size_t i = t.first; i < t.n && status == CLT_OK; i++) status = put_turn(&t, i);
    if (status == CLT_OK && r->options->continue_final_message && t.first == t.n) {
        status = clt_fail(r->err, CLT_E_REQUEST, "continue_final_message: there is no assistant message");
    }
    if (status == CLT_OK && r->options->add_generation_prompt) put_generation_prompt(&t);
    return status;
}

clt_status clt_chat_render(const clt_chat_template *t, const clt_json *request, const clt_chat_options *o, clt_prompt *out,
                           clt_err *err) {
    const clt_json *tools = clt_json_get(request, "tools");
    clt_chat_render_state r = {.chosen = t, .options = o, .messages = clt_json_get(request, "messages"), .out = out,
                               .err = err};
    *out = (clt_prompt){0};
    clt_status status = clt_chat_check_request(request, err);
    if (status == CLT_OK && o->add_generation_prompt && o->continue_final_message) {
        status = clt_fail(err, CLT_E_REQUEST, "continue_final_message: cannot be combined with add_generation_prompt");
    }
    if (status == CLT_OK && t->generation == CLT_CHAT_GEMMA3) {
        status = clt_chat_render_gemma3(&r, tools);
    } else if (status == CLT_OK) {
        r.features = &generations[t->generation];
        status = render_gemma4(&r, tools);
    }
    if (status == CLT_OK && out->text.failed) status = clt_fail_memory(err, "prompt", out->text.len);
    if (status != CLT_OK) clt_prompt_free(out);
    return status;
}
