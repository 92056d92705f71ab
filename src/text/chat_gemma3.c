/* The turns of Gemma 3: no system role, no tools, no thoughts; roles must alternate. */
#include "text/chat_impl.h"
#include "base/utf8.h"

/* The system text goes in front of the first user turn, as it is, followed by a blank line. */
static void put_system(clt_chat_render_state *r, const clt_json *message) {
    const clt_json *content = clt_json_get(message, "content");
    size_t len;
    const char *s = clt_json_str(content, &len);
    if (s) clt_prompt_put_text(r->out, s, len);
    for (size_t k = 0; clt_json_kind(content) == CLT_JSON_ARRAY && k < clt_json_len(content); k++) {
        s = clt_json_str(clt_json_get(clt_json_at(content, k), "text"), &len);
        if (s) clt_prompt_put_text(r->out, s, len);
    }
    clt_prompt_put_markup(r->out, "\n\n");
}

/* keep_end: the text is a beginning to be continued, so its trailing space stays. */
static void put_trimmed(clt_chat_render_state *r, const char *s, size_t len, bool keep_end) {
    const char *end = s + len;
    clt_utf8_trim(&s, &len);
    clt_prompt_put_text(r->out, s, keep_end ? (size_t)(end - s) : len);
}

static clt_status put_content(clt_chat_render_state *r, const clt_json *message, size_t i, bool keep_end) {
    const clt_json *content = clt_json_get(message, "content");
    size_t len;
    const char *s = clt_json_str(content, &len);
    if (s) {
        put_trimmed(r, s, len, keep_end);
        return CLT_OK;
    }
    if (clt_json_kind(content) != CLT_JSON_ARRAY) {
        return clt_fail(r->err, CLT_E_REQUEST, "messages[%zu].content: Invalid content type", i);
    }
    for (size_t k = 0; k < clt_json_len(content); k++) {
        const clt_json *part = clt_json_at(content, k);
        switch (clt_chat_part_kind(part)) {
        case CLT_PART_TEXT:
            s = clt_json_str(clt_json_get(part, "text"), &len);
            put_trimmed(r, s, len, keep_end && k + 1 == clt_json_len(content));
            break;
        case CLT_PART_IMAGE: clt_prompt_put_markup(r->out, "<start_of_image>"); break;
        case CLT_PART_AUDIO:
        case CLT_PART_VIDEO:
        case CLT_PART_UNKNOWN:
            return clt_fail(r->err, CLT_E_REQUEST, "messages[%zu].content[%zu]: Gemma 3 takes text and images only", i, k);
        }
    }
    return CLT_OK;
}

/* Gemma 3's template would drop these without a word, and the model would answer as if they had never been sent. */
static clt_status refuse_tools(clt_chat_render_state *r, const clt_json *tools) {
    if (clt_json_len(tools)) return clt_fail(r->err, CLT_E_REQUEST, "tools: Gemma 3 has no tools");
    for (size_t i = 0; i < clt_json_len(r->messages); i++) {
        const clt_json *message = clt_json_at(r->messages, i);
        if (clt_chat_has_role(message, "tool")) {
            return clt_fail(r->err, CLT_E_REQUEST, "messages[%zu].role: Gemma 3 has no tool messages", i);
        }
        if (clt_json_len(clt_json_get(message, "tool_calls")) || clt_json_len(clt_json_get(message, "tool_responses"))) {
            return clt_fail(r->err, CLT_E_REQUEST, "messages[%zu].tool_calls: Gemma 3 has no tools", i);
        }
    }
    return CLT_OK;
}

clt_status clt_chat_render_gemma3(clt_chat_render_state *r, const clt_json *tools) {
    size_t n = clt_json_len(r->messages);
    size_t first = clt_chat_is_system(clt_json_at(r->messages, 0)) ? 1 : 0;
    clt_status status = refuse_tools(r, tools);
    if (status != CLT_OK) return status;
    if (first == n) return clt_fail(r->err, CLT_E_REQUEST, "messages: a user message must follow the system message");
    if (r->options->continue_reasoning) {
        return clt_fail(r->err, CLT_E_REQUEST, "continue_final_message: Gemma 3 has no reasoning");
    }
    clt_prompt_put_markup(r->out, "<bos>");
    for (size_t i = first; i < n && status == CLT_OK; i++) {
        const clt_json *message = clt_json_at(r->messages, i);
        bool open = r->options->continue_final_message && i + 1 == n, model = (i - first) % 2 == 1;
        if (clt_chat_has_role(message, "user") == model || clt_chat_is_model(message) != model) {
            return clt_fail(r->err, CLT_E_REQUEST,
                            "messages[%zu].role: Conversation roles must alternate user/assistant/user/assistant/...", i);
        }
        clt_prompt_put_markup(r->out, model ? "<start_of_turn>model\n" : "<start_of_turn>user\n");
        if (i == first && first == 1) put_system(r, clt_json_at(r->messages, 0));
        status = put_content(r, message, i, open);
        if (!open) clt_prompt_put_markup(r->out, "<end_of_turn>\n");
    }
    if (r->options->add_generation_prompt) clt_prompt_put_markup(r->out, "<start_of_turn>model\n");
    return status;
}
