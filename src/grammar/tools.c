/* Tools: the functions that a model may call -> one grammar of calls, in the notation that Gemma writes:
 *
 *   <CLT_BYTE_CALL>call:NAME{key:<CLT_BYTE_QUOTE>text<CLT_BYTE_QUOTE>,n:3}<CLT_BYTE_CALL_END>
 *
 * Arguments follow the function's own schema, without white space; keys stand bare, texts between quote tokens. */
#include <stdio.h>
#include "grammar/schema.h"

typedef struct tool {
    const char *name;
    size_t name_len;
    const clt_json *parameters; /* NULL: any object */
} tool;

static clt_status read_tool(const clt_json *node, size_t index, tool *out, clt_err *err) {
    const clt_json *function = clt_json_get(node, "function");
    if (!function) function = node; /* {"type":"function","name":…} of newer APIs */
    out->name = clt_json_str(clt_json_get(function, "name"), &out->name_len);
    out->parameters = clt_json_get(function, "parameters");
    if (clt_json_kind(out->parameters) == CLT_JSON_OBJECT && clt_json_len(out->parameters) == 0) out->parameters = NULL;
    if (clt_json_kind(out->parameters) == CLT_JSON_NULL) out->parameters = NULL;
    if (!out->name || out->name_len == 0 || strpbrk(out->name, "{\n") || strlen(out->name) != out->name_len)
        return clt_fail(err, CLT_E_REQUEST, "tools: %zu: a function needs a name, without braces", index);
    return CLT_OK;
}

/* The call of one function. */
static void put_tool(clt_schema *s, const tool *t, uint32_t from, uint32_t to) {
    static const char anything[] = "{\"type\":\"object\"}";
    clt_nfa *n = &s->nfa;
    clt_buf head = {0};
    clt_json *own = NULL;
    uint32_t named = clt_nfa_state(n), end = clt_nfa_state(n);
    clt_buf_printf(&head, "%ccall:%s", CLT_BYTE_CALL, t->name);
    if (head.failed) n->no_memory = true;
    else clt_nfa_literal(n, from, head.data, head.len, named);
    clt_buf_free(&head);
    s->root = t->parameters;
    if (!s->root && s->status == CLT_OK) {
        s->status = clt_json_parse(anything, sizeof anything - 1, "tools", &own, s->err);
        s->root = own;
    }
    if (clt_schema_ok(s)) {
        uint32_t rule = clt_schema_run(s, s->root, "#");
        clt_nfa_call(n, named, (clt_call){rule, 0, CLT_MANY}, end);
    }
    clt_schema_forget(s); /* its places mean nothing to the next function */
    clt_json_free(own);
    clt_nfa_bytes(n, end, CLT_BYTE_CALL_END, CLT_BYTE_CALL_END, CLT_PLAIN, to);
}

static clt_status put_tools(clt_schema *s, const clt_json *tools, const char *only, clt_part part) {
    bool found = false;
    for (size_t i = 0; i < clt_json_len(tools); i++) {
        tool t;
        char what[256];
        clt_status status = read_tool(clt_json_at(tools, i), i, &t, s->err);
        if (status != CLT_OK) return status;
        if (only && strcmp(only, t.name) != 0) continue;
        found = true;
        snprintf(what, sizeof what, "tools: %s", t.name);
        s->what = what;
        put_tool(s, &t, part.start, part.end);
        s->what = "tools";
        if (s->status != CLT_OK) return s->status;
    }
    if (found) return CLT_OK;
    if (only) return clt_fail(s->err, CLT_E_REQUEST, "tools: there is no function \"%s\" among them", only);
    return clt_fail(s->err, CLT_E_REQUEST, "tools: expected a list of functions");
}

clt_status clt_grammar_from_tools(const clt_json *tools, const char *only, clt_grammar **out, clt_err *err) {
    clt_schema s = {.what = "tools", .spelling = CLT_SPELL_CALL, .err = err};
    *out = NULL;
    clt_nfa_init(&s.nfa);
    uint32_t rule = clt_nfa_rule_new(&s.nfa, "call", 4);
    clt_part part = {clt_nfa_state(&s.nfa), clt_nfa_state(&s.nfa)};
    clt_nfa_define(&s.nfa, rule, part);
    clt_status status = put_tools(&s, tools, only, part);
    if (status == CLT_OK) status = clt_nfa_check(&s.nfa, "tools", err);
    if (status == CLT_OK) status = clt_grammar_compile(&s.nfa, rule, "tools", out, err);
    clt_schema_end(&s);
    return status;
}
