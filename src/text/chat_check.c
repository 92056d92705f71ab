/* The shape of a chat request: what must hold before anything is rendered, and its options.
 *
 * In: the request document. Out: yes, or CLT_E_REQUEST with the path of the first thing that is wrong. The renderers rely on
 * it and check no types again. Conditions of a single template generation are not its business. */
#include <math.h>
#include <string.h>
#include "text/chat_impl.h"

static const char *kind_of(const clt_json *n) {
    return n ? clt_json_kind_name(clt_json_kind(n)) : "nothing";
}

static bool is_string(const clt_json *n) {
    return clt_json_kind(n) == CLT_JSON_STRING;
}

bool clt_chat_has_role(const clt_json *message, const char *role) {
    const char *s = clt_json_str(clt_json_get(message, "role"), NULL);
    return s && strcmp(s, role) == 0;
}

bool clt_chat_is_system(const clt_json *message) {
    return clt_chat_has_role(message, "system") || clt_chat_has_role(message, "developer");
}

bool clt_chat_is_model(const clt_json *message) {
    return clt_chat_has_role(message, "assistant") || clt_chat_has_role(message, "model");
}

clt_chat_part clt_chat_part_kind(const clt_json *part) {
    static const struct {
        const char *type;
        clt_chat_part kind;
    } kinds[] = {
        {"text", CLT_PART_TEXT},         {"image", CLT_PART_IMAGE}, {"image_url", CLT_PART_IMAGE}, {"audio", CLT_PART_AUDIO},
        {"input_audio", CLT_PART_AUDIO}, {"video", CLT_PART_VIDEO}, {"video_url", CLT_PART_VIDEO},
    };
    const char *type = clt_json_str(clt_json_get(part, "type"), NULL);
    for (size_t i = 0; type && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(type, kinds[i].type) == 0) return kinds[i].kind;
    }
    return CLT_PART_UNKNOWN;
}

static clt_status check_role(const clt_json *message, size_t i, clt_err *err) {
    static const char *const roles[] = {"system", "developer", "user", "assistant", "model", "tool"};
    const clt_json *role = clt_json_get(message, "role");
    if (!is_string(role)) {
        return clt_fail(err, CLT_E_REQUEST, "messages[%zu].role: expected a string, found %s", i, kind_of(role));
    }
    for (size_t k = 0; k < sizeof roles / sizeof roles[0]; k++) {
        if (strcmp(clt_json_str(role, NULL), roles[k]) == 0) return CLT_OK;
    }
    return clt_fail(err, CLT_E_REQUEST,
                    "messages[%zu].role: unknown role \"%.64s\", expected system, developer, user, assistant "
                    "or tool", i, clt_json_str(role, NULL));
}

static clt_status check_part(const clt_json *part, size_t i, size_t k, clt_err *err) {
    if (clt_json_kind(part) != CLT_JSON_OBJECT) {
        return clt_fail(err, CLT_E_REQUEST, "messages[%zu].content[%zu]: expected an object, found %s", i, k, kind_of(part));
    }
    const clt_json *type = clt_json_get(part, "type"), *text = clt_json_get(part, "text");
    clt_chat_part kind = clt_chat_part_kind(part);
    if (kind == CLT_PART_UNKNOWN) {
        const char *name = clt_json_str(type, NULL);
        return clt_fail(err, CLT_E_REQUEST,
                        "messages[%zu].content[%zu].type: expected text, image_url, input_audio or video, "
                        "found %.64s", i, k, name ? name : kind_of(type));
    }
    if (kind == CLT_PART_TEXT && !is_string(text)) {
        return clt_fail(err, CLT_E_REQUEST, "messages[%zu].content[%zu].text: expected a string, found %s", i, k,
                        kind_of(text));
    }
    return CLT_OK;
}

static clt_status check_content(const clt_json *message, size_t i, clt_err *err) {
    const clt_json *content = clt_json_get(message, "content");
    switch (clt_json_kind(content)) {
    case CLT_JSON_NULL:
    case CLT_JSON_STRING: return CLT_OK;
    case CLT_JSON_ARRAY:
        for (size_t k = 0; k < clt_json_len(content); k++) {
            const clt_json *part = clt_json_at(content, k);
            clt_status status = check_part(part, i, k, err);
            if (status != CLT_OK) return status;
            if (clt_chat_is_system(message) && clt_chat_part_kind(part) != CLT_PART_TEXT) {
                return clt_fail(err, CLT_E_REQUEST, "messages[%zu].content[%zu]: a system message holds text only", i, k);
            }
        }
        return CLT_OK;
    case CLT_JSON_BOOL:
    case CLT_JSON_INT:
    case CLT_JSON_REAL:
    case CLT_JSON_OBJECT: break;
    }
    return clt_fail(err, CLT_E_REQUEST, "messages[%zu].content: expected a string or an array of parts, found %s", i,
                    kind_of(content));
}

static clt_status check_call(const clt_json *call, size_t i, size_t k, clt_err *err) {
    const clt_json *function = clt_json_get(call, "function"), *id = clt_json_get(call, "id");
    const clt_json *name = clt_json_get(function, "name"), *arguments = clt_json_get(function, "arguments");
    if (!is_string(name)) {
        return clt_fail(err, CLT_E_REQUEST, "messages[%zu].tool_calls[%zu].function.name: expected a string, found %s", i, k,
                        kind_of(name));
    }
    if (id && clt_json_kind(id) != CLT_JSON_NULL && !is_string(id)) {
        return clt_fail(err, CLT_E_REQUEST, "messages[%zu].tool_calls[%zu].id: expected a string, found %s", i, k,
                        kind_of(id));
    }
    clt_json_type kind = clt_json_kind(arguments);
    if (kind != CLT_JSON_NULL && kind != CLT_JSON_STRING && kind != CLT_JSON_OBJECT) {
        return clt_fail(err, CLT_E_REQUEST,
                        "messages[%zu].tool_calls[%zu].function.arguments: expected a string of JSON or an "
                        "object, found %s", i, k, kind_of(arguments));
    }
    return CLT_OK;
}

/* A field of message i that may be absent, null or an array; the items are checked by `check`. */
static clt_status check_list(const clt_json *message, const char *field, size_t i,
                             clt_status (*check)(const clt_json *, size_t, size_t, clt_err *), clt_err *err) {
    const clt_json *list = clt_json_get(message, field);
    clt_status status = CLT_OK;
    if (clt_json_kind(list) != CLT_JSON_NULL && clt_json_kind(list) != CLT_JSON_ARRAY) {
        return clt_fail(err, CLT_E_REQUEST, "messages[%zu].%s: expected an array, found %s", i, field, kind_of(list));
    }
    for (size_t k = 0; k < clt_json_len(list) && status == CLT_OK; k++) status = check(clt_json_at(list, k), i, k, err);
    return status;
}

static clt_status check_response(const clt_json *response, size_t i, size_t k, clt_err *err) {
    const clt_json *name = clt_json_get(response, "name");
    if (clt_json_kind(response) != CLT_JSON_OBJECT) {
        return clt_fail(err, CLT_E_REQUEST, "messages[%zu].tool_responses[%zu]: expected an object, found %s", i, k,
                        kind_of(response));
    }
    if (clt_json_kind(name) == CLT_JSON_NULL || is_string(name)) return CLT_OK;
    return clt_fail(err, CLT_E_REQUEST, "messages[%zu].tool_responses[%zu].name: expected a string, found %s", i, k,
                    kind_of(name));
}

static clt_status check_message(const clt_json *message, size_t i, clt_err *err) {
    static const char *const strings[] = {"name", "tool_call_id", "reasoning", "reasoning_content"};
    if (clt_json_kind(message) != CLT_JSON_OBJECT) {
        return clt_fail(err, CLT_E_REQUEST, "messages[%zu]: expected an object, found %s", i, kind_of(message));
    }
    clt_status status = check_role(message, i, err);
    if (status == CLT_OK) status = check_content(message, i, err);
    if (status == CLT_OK) status = check_list(message, "tool_calls", i, check_call, err);
    if (status == CLT_OK) status = check_list(message, "tool_responses", i, check_response, err);
    for (size_t k = 0; k < sizeof strings / sizeof strings[0] && status == CLT_OK; k++) {
        const clt_json *field = clt_json_get(message, strings[k]);
        if (clt_json_kind(field) == CLT_JSON_NULL || is_string(field)) continue;
        status = clt_fail(err, CLT_E_REQUEST, "messages[%zu].%s: expected a string, found %s", i, strings[k],
                          kind_of(field));
    }
    return status;
}

static clt_status check_tool(const clt_json *tool, size_t i, clt_err *err) {
    const clt_json *function = clt_json_get(tool, "function");
    const clt_json *name = clt_json_get(function, "name"), *parameters = clt_json_get(function, "parameters");
    if (!is_string(name)) {
        return clt_fail(err, CLT_E_REQUEST, "tools[%zu].function.name: expected a string, found %s", i, kind_of(name));
    }
    if (!clt_chat_is_scalar(clt_json_get(function, "description"))) {
        return clt_fail(err, CLT_E_REQUEST, "tools[%zu].function.description: expected a string, found %s", i,
                        kind_of(clt_json_get(function, "description")));
    }
    if (clt_chat_truthy(parameters) && clt_json_kind(parameters) != CLT_JSON_OBJECT) {
        return clt_fail(err, CLT_E_REQUEST, "tools[%zu].function.parameters: expected an object, found %s", i,
                        kind_of(parameters));
    }
    return CLT_OK;
}

typedef struct numbers {
    bool whole, huge;
} numbers;

static void count_numbers(const clt_json *n, numbers *found) {
    const char *key;
    const clt_json *value;
    double real;
    clt_json_type kind = clt_json_kind(n);
    if (kind == CLT_JSON_INT) found->whole = true;
    if (kind == CLT_JSON_REAL && clt_json_num(n, &real) && fabs(real) >= 0x1p63) found->huge = true;
    for (size_t i = 0; kind == CLT_JSON_ARRAY && i < clt_json_len(n); i++) count_numbers(clt_json_at(n, i), found);
    for (void *iter = NULL; clt_json_next(n, &iter, &key, NULL, &value);) count_numbers(value, found);
}

clt_status clt_chat_check_numbers(const clt_json *doc, const char *where, clt_err *err) {
    numbers found = {0};
    count_numbers(doc, &found);
    if (!found.huge || found.whole) return CLT_OK;
    return clt_fail(err, CLT_E_REQUEST, "%s: holds a whole number beyond 64 bits", where);
}

clt_status clt_chat_check_request(const clt_json *request, clt_err *err) {
    const clt_json *messages = clt_json_get(request, "messages"), *tools = clt_json_get(request, "tools");
    if (clt_json_kind(messages) != CLT_JSON_ARRAY) {
        return clt_fail(err, CLT_E_REQUEST, "messages: expected an array, found %s", kind_of(messages));
    }
    if (clt_json_len(messages) == 0) return clt_fail(err, CLT_E_REQUEST, "messages: expected at least one message");
    clt_status status = clt_chat_check_numbers(request, "request", err);
    for (size_t i = 0; i < clt_json_len(messages) && status == CLT_OK; i++) {
        status = check_message(clt_json_at(messages, i), i, err);
    }
    if (status != CLT_OK) return status;
    if (clt_json_kind(tools) != CLT_JSON_NULL && clt_json_kind(tools) != CLT_JSON_ARRAY) {
        return clt_fail(err, CLT_E_REQUEST, "tools: expected an array, found %s", kind_of(tools));
    }
    for (size_t i = 0; i < clt_json_len(tools) && status == CLT_OK; i++) status = check_tool(clt_json_at(tools, i), i, err);
    return status;
}

/* ---- options ---- */

/* A boolean of `object`; absent and null leave *out as it is. */
static clt_status read_bool(const clt_json *object, const char *prefix, const char *key, bool *out, clt_err *err) {
    const clt_json *n = clt_json_get(object, key);
    if (clt_json_kind(n) == CLT_JSON_NULL) return CLT_OK;
    if (clt_json_kind(n) != CLT_JSON_BOOL) {
        return clt_fail(err, CLT_E_REQUEST, "%s%s: expected a boolean, found %s", prefix, key, kind_of(n));
    }
    *out = clt_json_is_true(n);
    return CLT_OK;
}

static clt_status read_continue(const clt_json *request, clt_chat_options *o, clt_err *err) {
    const clt_json *n = clt_json_get(request, "continue_final_message");
    const char *field = clt_json_str(n, NULL);
    if (!field) return read_bool(request, "", "continue_final_message", &o->continue_final_message, err);
    o->continue_reasoning = strcmp(field, "reasoning_content") == 0;
    o->continue_final_message = true;
    if (o->continue_reasoning || strcmp(field, "content") == 0) return CLT_OK;
    return clt_fail(err, CLT_E_REQUEST,
                    "continue_final_message: expected a boolean, \"content\" or \"reasoning_content\", found "
                    "\"%.64s\"", field);
}

clt_status clt_chat_read_options(const clt_json *request, clt_chat_options *o, clt_err *err) {
    const clt_json *kwargs = clt_json_get(request, "chat_template_kwargs");
    *o = (clt_chat_options){0};
    if (clt_json_kind(kwargs) != CLT_JSON_NULL && clt_json_kind(kwargs) != CLT_JSON_OBJECT) {
        return clt_fail(err, CLT_E_REQUEST, "chat_template_kwargs: expected an object, found %s", kind_of(kwargs));
    }
    clt_status status = read_continue(request, o, err);
    o->add_generation_prompt = !o->continue_final_message;
    if (status == CLT_OK) status = read_bool(request, "", "add_generation_prompt", &o->add_generation_prompt, err);
    if (status == CLT_OK) {
        status = read_bool(kwargs, "chat_template_kwargs.", "enable_thinking", &o->enable_thinking, err);
    }
    if (status == CLT_OK) {
        status = read_bool(kwargs, "chat_template_kwargs.", "preserve_thinking", &o->preserve_thinking, err);
    }
    if (status == CLT_OK && o->add_generation_prompt && o->continue_final_message) {
        status = clt_fail(err, CLT_E_REQUEST,
                          "continue_final_message: cannot be combined with add_generation_prompt");
    }
    return status;
}
