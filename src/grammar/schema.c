/* JSON Schema -> rules. A place that is more than a scalar gets a rule of its own, made once however often it is referred
 * to, so that recursion in a schema is recursion of rules. Places wait in a list: nothing here recurses over references.
 *
 * What is written is a part of what the schema allows, never more: members come in the order of `properties`, members that
 * are not declared only where `additionalProperties` asks for them or nothing is declared, a place without a type has the
 * type that its keys speak of, white space is one space, or one or two line ends and at most 20 spaces or tabs. */
#include "grammar/schema.h"
#include <stdarg.h>
#include <stdio.h>
#include "base/hash.h"

enum { MAX_PLACES = 20000 };

bool clt_schema_ok(const clt_schema *s) {
    return s->status == CLT_OK && clt_nfa_ok(&s->nfa);
}

bool clt_schema_fail(clt_schema *s, const char *path, const char *key, const char *fmt, ...) {
    char text[1024];
    va_list args;
    if (s->status != CLT_OK) return false;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    s->status = clt_fail(s->err, CLT_E_REQUEST, "%s: %s: %s%s%s", s->what, path, key ? key : "", key ? ": " : "", text);
    return false;
}

/* ---- rules of places ---- */

static uint32_t hash_of(const clt_together *all) {
    uint64_t h = clt_hash64(all->node, all->n * sizeof *all->node, all->never);
    return (uint32_t)clt_hash64(all->done, all->n, h) % 256;
}

static bool same(const clt_together *a, const clt_together *b) {
    return a->n == b->n && a->never == b->never && !memcmp(a->node, b->node, a->n * sizeof *a->node) &&
           !memcmp(a->done, b->done, a->n);
}

static uint32_t rule_of(clt_schema *s, const clt_together *all, const char *path) {
    uint32_t head = hash_of(all);
    for (uint32_t i = s->heads[head]; i; i = s->rules[i - 1]->next)
        if (same(&s->rules[i - 1]->all, all)) return s->rules[i - 1]->rule;
    if (s->n_rules == MAX_PLACES) {
        clt_schema_fail(s, path, NULL, "more than %d places, or branches of branches, cannot be honoured", MAX_PLACES);
        return 0;
    }
    clt_schema_rule *r = clt_calloc(1, sizeof *r);
    if (!r || !CLT_ROOM(s->rules, s->cap_rules, s->n_rules + 1)) {
        clt_free(r);
        s->nfa.no_memory = true;
        return 0;
    }
    *r = (clt_schema_rule){.all = *all, .rule = clt_nfa_rule_new(&s->nfa, path, strlen(path)), .next = s->heads[head],
                           .path = clt_strdup(path)};
    if (!r->path) s->nfa.no_memory = true;
    s->rules[s->n_rules++] = r;
    s->heads[head] = (uint32_t)s->n_rules;
    return r->rule;
}

static void call(clt_schema *s, uint32_t rule, uint32_t from, uint32_t to) {
    clt_nfa_call(&s->nfa, from, (clt_call){rule, 0, CLT_MANY}, to);
}

/* ---- rules that many places share ---- */

static uint32_t new_rule(clt_schema *s, clt_part *part) {
    uint32_t rule = clt_nfa_rule_new(&s->nfa, NULL, 0);
    *part = (clt_part){clt_nfa_state(&s->nfa), clt_nfa_state(&s->nfa)};
    clt_nfa_define(&s->nfa, rule, *part);
    return rule;
}

/* Bounded, so that no reply drowns in it. Tool calls have none. */
void clt_schema_space(clt_schema *s, uint32_t from, uint32_t to) {
    enum { MOST_INDENT = 20 };
    clt_part part;
    if (s->spelling == CLT_SPELL_CALL) {
        clt_nfa_empty(&s->nfa, from, to);
        return;
    }
    if (!s->space) {
        s->space = new_rule(s, &part);
        uint32_t line = clt_nfa_state(&s->nfa), at = clt_nfa_state(&s->nfa);
        clt_nfa_empty(&s->nfa, part.start, part.end);
        clt_nfa_literal(&s->nfa, part.start, " ", 1, part.end);
        clt_nfa_literal(&s->nfa, part.start, "\n", 1, line);
        clt_nfa_literal(&s->nfa, line, "\n", 1, at);
        clt_nfa_empty(&s->nfa, line, at);
        for (int i = 0; i <= MOST_INDENT; i++) {
            uint32_t next = i < MOST_INDENT ? clt_nfa_state(&s->nfa) : part.end;
            clt_nfa_empty(&s->nfa, at, part.end);
            if (i == MOST_INDENT) break;
            clt_nfa_literal(&s->nfa, at, " ", 1, next);
            clt_nfa_literal(&s->nfa, at, "\t", 1, next);
            at = next;
        }
    }
    call(s, s->space, from, to);
}

void clt_schema_any(clt_schema *s, uint32_t from, uint32_t to) {
    static const clt_together everything = {.n = 0};
    call(s, rule_of(s, &everything, "#"), from, to);
}

/* ---- values ---- */

static void put_literal(clt_schema *s, uint32_t from, const char *text, uint32_t to) {
    clt_nfa_literal(&s->nfa, from, text, strlen(text), to);
}

static void put_scalars(clt_schema *s, const clt_together *all, unsigned types, const char *path, uint32_t from,
                        uint32_t to) {
    if (types & CLT_T_NULL) put_literal(s, from, "null", to);
    if (types & CLT_T_BOOL) {
        put_literal(s, from, "true", to);
        put_literal(s, from, "false", to);
    }
    if (types & CLT_T_NUM) clt_schema_number(s, all, false, path, from, to);
    else if (types & CLT_T_INT) clt_schema_number(s, all, true, path, from, to);
    if (types & CLT_T_STR) clt_schema_string(s, all, path, from, to);
}

/* The branches of an anyOf or oneOf, each together with all the rest. */
static void put_branches(clt_schema *s, const clt_together *all, int at, bool one, const char *path, uint32_t from,
                         uint32_t to) {
    const char *key = one ? "oneOf" : "anyOf";
    const clt_json *list = clt_json_get(all->node[at], key);
    char branch[CLT_MAX_PATH], index[32];
    if (clt_json_kind(list) != CLT_JSON_ARRAY || clt_json_len(list) == 0) {
        clt_schema_fail(s, path, key, "expected a list of schemas");
        return;
    }
    for (size_t i = 0; i < clt_json_len(list) && clt_schema_ok(s); i++) {
        clt_together with = *all;
        clt_together_branch(&with, at, one ? CLT_DONE_ONE : CLT_DONE_ANY);
        for (size_t j = 0; one && j < i; j++) {
            if (!clt_schema_apart(s, clt_json_at(list, j), clt_json_at(list, i), path))
                clt_schema_fail(s, path, key, "a value could match branches %zu and %zu; anyOf allows that", j, i);
        }
        snprintf(index, sizeof index, "%s/%zu", key, i);
        clt_path_join(branch, path, index);
        if (clt_together_add(s, &with, clt_json_at(list, i), branch)) clt_schema_value(s, &with, branch, from, to);
    }
}

static int find_branches(const clt_together *all, const char *key, uint8_t done) {
    for (int i = clt_together_find(all, key, 0); i >= 0; i = clt_together_find(all, key, (uint32_t)i + 1))
        if (!(all->done[i] & done)) return i;
    return -1;
}

static void write_rule(clt_schema *s, const clt_schema_rule *r) {
    clt_part part = {clt_nfa_state(&s->nfa), clt_nfa_state(&s->nfa)};
    clt_nfa_define(&s->nfa, r->rule, part);
    if (r->all.never) return;
    int any = find_branches(&r->all, "anyOf", CLT_DONE_ANY), one = find_branches(&r->all, "oneOf", CLT_DONE_ONE);
    if (any >= 0 || one >= 0) {
        put_branches(s, &r->all, any >= 0 ? any : one, any < 0, r->path, part.start, part.end);
        return;
    }
    unsigned types = clt_together_types(s, &r->all, r->path);
    put_scalars(s, &r->all, types, r->path, part.start, part.end);
    if (types & CLT_T_ARR) clt_schema_array(s, &r->all, r->path, part.start, part.end);
    if (types & CLT_T_OBJ) clt_schema_object(s, &r->all, r->path, part.start, part.end);
}

void clt_schema_value(clt_schema *s, const clt_together *all, const char *path, uint32_t from, uint32_t to) {
    if (all->never || !clt_schema_ok(s)) return;
    bool branches = find_branches(all, "anyOf", CLT_DONE_ANY) >= 0 || find_branches(all, "oneOf", CLT_DONE_ONE) >= 0;
    unsigned types = clt_together_types(s, all, path);
    bool listed = clt_together_has(all, "enum") || clt_together_has(all, "const");
    if (listed && !branches) clt_schema_enum(s, all, types, path, from, to);
    else if (branches || types & (CLT_T_ARR | CLT_T_OBJ)) call(s, rule_of(s, all, path), from, to);
    else put_scalars(s, all, types, path, from, to);
}

/* ---- whole schemas ---- */

uint32_t clt_schema_run(clt_schema *s, const clt_json *root, const char *path) {
    clt_together all = {0};
    clt_part part;
    uint32_t rule = new_rule(s, &part);
    if (clt_together_add(s, &all, root, path)) clt_schema_value(s, &all, path, part.start, part.end);
    while (s->done < s->n_rules && clt_schema_ok(s)) write_rule(s, s->rules[s->done++]);
    return rule;
}

void clt_schema_forget(clt_schema *s) {
    for (size_t i = 0; i < s->n_rules; i++) {
        clt_free(s->rules[i]->path);
        clt_free(s->rules[i]);
    }
    s->n_rules = s->done = 0;
    memset(s->heads, 0, sizeof s->heads);
}

void clt_schema_end(clt_schema *s) {
    clt_schema_forget(s);
    clt_free(s->rules);
    clt_nfa_free(&s->nfa);
}

clt_status clt_grammar_from_schema_node(const clt_json *schema, const char *what, clt_grammar **out, clt_err *err) {
    clt_schema s = {.root = schema, .what = what, .spelling = CLT_SPELL_JSON, .err = err};
    *out = NULL;
    clt_nfa_init(&s.nfa);
    uint32_t root = clt_schema_run(&s, schema, "#");
    clt_status status = s.status;
    if (status == CLT_OK) status = clt_nfa_check(&s.nfa, what, err);
    if (status == CLT_OK) status = clt_grammar_compile(&s.nfa, root, what, out, err);
    clt_schema_end(&s);
    return status;
}

clt_status clt_grammar_from_schema(const char *json, size_t len, const char *what, clt_grammar **out, clt_err *err) {
    clt_json *doc;
    *out = NULL;
    if (len > CLT_MAX_GRAMMAR_BYTES)
        return clt_fail(err, CLT_E_REQUEST, "%s: %zu bytes are more than the %d that are read", what, len,
                        CLT_MAX_GRAMMAR_BYTES);
    clt_status status = clt_json_parse(json, len, what, &doc, err);
    if (status != CLT_OK) return status;
    status = clt_grammar_from_schema_node(doc, what, out, err);
    clt_json_free(doc);
    return status;
}
