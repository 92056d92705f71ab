/* Reading schemas: references, allOf, types, and the keys that cannot be honoured. Knows no automata. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "grammar/schema.h"

/* ---- paths ---- */

void clt_path_join(char out[CLT_MAX_PATH], const char *path, const char *piece) {
    if (snprintf(out, CLT_MAX_PATH, "%s/%s", path, piece) >= CLT_MAX_PATH) memcpy(out + CLT_MAX_PATH - 4, "...", 4);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One step of a JSON pointer, escapes undone: ~0, ~1 and %XX. */
static void read_step(const char *s, size_t n, clt_buf *out) {
    clt_buf_reset(out);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '~' && i + 1 < n && (s[i + 1] == '0' || s[i + 1] == '1')) {
            clt_buf_putc(out, s[++i] == '0' ? '~' : '/');
        } else if (s[i] == '%' && i + 2 < n && hex_digit(s[i + 1]) >= 0 && hex_digit(s[i + 2]) >= 0) {
            clt_buf_putc(out, (char)(uint8_t)(hex_digit(s[i + 1]) * 16 + hex_digit(s[i + 2])));
            i += 2;
        } else {
            clt_buf_putc(out, s[i]);
        }
    }
}

static const clt_json *step_into(const clt_json *at, const clt_buf *step) {
    const char *text = step->data ? step->data : "";
    if (clt_json_kind(at) == CLT_JSON_OBJECT) return clt_json_get(at, text);
    char *end;
    unsigned long index = strtoul(text, &end, 10);
    return *text && *end == 0 ? clt_json_at(at, index) : NULL;
}

/* The schema that "#/a/b" or "#" means; NULL if there is none. */
static const clt_json *follow(const clt_schema *s, const char *ref) {
    const clt_json *at = s->root;
    clt_buf step = {0};
    if (*ref != '#' || (ref[1] && ref[1] != '/')) return NULL;
    for (const char *p = ref + 1; *p == '/' && at;) {
        size_t n = strcspn(++p, "/");
        read_step(p, n, &step);
        at = step.failed ? NULL : step_into(at, &step);
        p += n;
    }
    clt_buf_free(&step);
    return at;
}

/* ---- conjunctions ---- */

static const char *const refused[] = {
    "not", "if", "then", "else", "dependentSchemas", "dependentRequired", "dependencies", "contains", "minContains",
    "maxContains", "unevaluatedItems", "$dynamicRef", "$recursiveRef"};

static bool check_keys(clt_schema *s, const clt_json *node, const char *path) {
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (clt_json_get(node, refused[i])) return clt_schema_fail(s, path, refused[i], "this key cannot be honoured");
    if (clt_json_is_true(clt_json_get(node, "uniqueItems")))
        return clt_schema_fail(s, path, "uniqueItems", "this key cannot be honoured: a grammar cannot compare items");
    const clt_json *rest = clt_json_get(node, "unevaluatedProperties");
    if (rest && !(clt_json_kind(rest) == CLT_JSON_BOOL))
        return clt_schema_fail(s, path, "unevaluatedProperties", "a schema here cannot be honoured, only true or false");
    return true;
}

static bool add_ref(clt_schema *s, clt_together *all, const clt_json *node, const char *path) {
    const clt_json *ref = clt_json_get(node, "$ref");
    if (!ref) return true;
    size_t len;
    const char *text = clt_json_str(ref, &len);
    if (!text || strlen(text) != len) return clt_schema_fail(s, path, "$ref", "expected a text");
    const clt_json *target = follow(s, text);
    if (!target) return clt_schema_fail(s, path, "$ref", "\"%s\" is not in this schema", text);
    return clt_together_add(s, all, target, text);
}

static bool add_all_of(clt_schema *s, clt_together *all, const clt_json *node, const char *path) {
    const clt_json *list = clt_json_get(node, "allOf");
    char piece[CLT_MAX_PATH], index[32];
    if (list && clt_json_kind(list) != CLT_JSON_ARRAY)
        return clt_schema_fail(s, path, "allOf", "expected a list of schemas");
    for (size_t i = 0; i < clt_json_len(list); i++) {
        snprintf(index, sizeof index, "allOf/%zu", i);
        clt_path_join(piece, path, index);
        if (!clt_together_add(s, all, clt_json_at(list, i), piece)) return false;
    }
    return true;
}

/* Whether a schema asks for more than what is followed already: references, allOf, and the branches that are `done`. */
static bool says_more(const clt_json *node, uint8_t done) {
    static const char *const silent[] = {
        "$ref", "allOf", "$defs", "definitions", "$schema", "$id", "$comment", "title", "description", "default", "examples",
        "example", "deprecated", "readOnly", "writeOnly", "discriminator"};
    const char *key;
    const clt_json *value;
    void *iter = NULL;
    while (clt_json_next(node, &iter, &key, NULL, &value)) {
        bool asks = !(done & CLT_DONE_ANY && !strcmp(key, "anyOf")) && !(done & CLT_DONE_ONE && !strcmp(key, "oneOf"));
        for (size_t i = 0; i < sizeof silent / sizeof *silent && asks; i++) asks = strcmp(key, silent[i]) != 0;
        if (asks) return true;
    }
    return false;
}

void clt_together_branch(clt_together *all, int at, uint8_t done) {
    all->done[at] |= done;
    if (says_more(all->node[at], all->done[at])) return;
    all->n--;
    memmove(all->node + at, all->node + at + 1, (all->n - (uint32_t)at) * sizeof *all->node);
    memmove(all->done + at, all->done + at + 1, all->n - (uint32_t)at);
}

static bool add_node(clt_schema *s, clt_together *all, const clt_json *node, const char *path) {
    for (uint32_t i = 0; i < all->n; i++) {
        if (all->node[i] != node) continue;
        if (!all->done[i]) return true;
        return clt_schema_fail(s, path, NULL, "a branch that leads back to its own place cannot be honoured");
    }
    if (all->n == CLT_MAX_TOGETHER)
        return clt_schema_fail(s, path, "allOf", "more than %d schemas at once", CLT_MAX_TOGETHER);
    all->done[all->n] = 0;
    all->node[all->n++] = node;
    return true;
}

bool clt_together_add(clt_schema *s, clt_together *all, const clt_json *node, const char *path) {
    enum { MAX_STEPS = 64 };
    clt_json_type kind = clt_json_kind(node);
    if (kind == CLT_JSON_BOOL) {
        all->never |= !clt_json_is_true(node);
        return true;
    }
    if (kind != CLT_JSON_OBJECT)
        return clt_schema_fail(s, path, NULL, "expected a schema (an object, true or false), found %s",
                               clt_json_kind_name(kind));
    if (s->steps == MAX_STEPS) return clt_schema_fail(s, path, "$ref", "it leads back to itself");
    s->steps++;
    bool ok = (!says_more(node, 0) || add_node(s, all, node, path)) && check_keys(s, node, path) &&
              add_ref(s, all, node, path) && add_all_of(s, all, node, path);
    s->steps--;
    return ok;
}

int clt_together_find(const clt_together *all, const char *key, uint32_t from) {
    for (uint32_t i = from; i < all->n; i++)
        if (clt_json_get(all->node[i], key)) return (int)i;
    return -1;
}

bool clt_together_has(const clt_together *all, const char *key) {
    return clt_together_find(all, key, 0) >= 0;
}

bool clt_together_count(clt_schema *s, const clt_together *all, const char *key, bool largest, const char *path,
                        uint32_t *out) {
    for (int i = clt_together_find(all, key, 0); i >= 0; i = clt_together_find(all, key, (uint32_t)i + 1)) {
        double value;
        if (!clt_json_num(clt_json_get(all->node[i], key), &value) || value < 0 || floor(value) != value)
            return clt_schema_fail(s, path, key, "expected a whole number of at least 0");
        uint32_t count = value >= CLT_MANY ? CLT_MANY : (uint32_t)value;
        if (largest ? count > *out : count < *out) *out = count;
    }
    return true;
}

/* ---- types ---- */

static unsigned type_of_name(const char *name) {
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    for (unsigned i = 0; name && i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return 1u << i | (i == 3 ? CLT_T_INT : 0);
    return 0;
}

static bool has_one_of(const clt_json *node, const char *const *keys) {
    for (; *keys; keys++)
        if (clt_json_get(node, *keys)) return true;
    return false;
}

/* A schema without a type means the type that its keys speak of. */
static unsigned implied_types(const clt_json *node) {
    static const char *const of_object[] = {"properties", "required", "additionalProperties", "patternProperties",
                                            "propertyNames", "minProperties", "maxProperties", NULL};
    static const char *const of_array[] = {"items", "prefixItems", "minItems", "maxItems", NULL};
    static const char *const of_string[] = {"pattern", "minLength", "maxLength", "format", NULL};
    static const char *const of_number[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
                                            NULL};
    unsigned types = (has_one_of(node, of_object) ? CLT_T_OBJ : 0) | (has_one_of(node, of_array) ? CLT_T_ARR : 0) |
                     (has_one_of(node, of_string) ? CLT_T_STR : 0) |
                     (has_one_of(node, of_number) ? CLT_T_NUM | CLT_T_INT : 0);
    return types ? types : CLT_T_ALL;
}

static unsigned types_of(clt_schema *s, const clt_json *node, const char *path) {
    const clt_json *type = clt_json_get(node, "type");
    unsigned types = 0;
    if (!type) return clt_json_get(node, "enum") || clt_json_get(node, "const") ? CLT_T_ALL : implied_types(node);
    if (clt_json_kind(type) != CLT_JSON_ARRAY) types = type_of_name(clt_json_str(type, NULL));
    for (size_t i = 0; i < clt_json_len(type); i++) {
        unsigned one = type_of_name(clt_json_str(clt_json_at(type, i), NULL));
        if (!one) types = 0;
        if (!one) break;
        types |= one;
    }
    if (!types)
        clt_schema_fail(s, path, "type",
                        "expected null, boolean, integer, number, string, array, object, or a list of them");
    if (clt_json_is_true(clt_json_get(node, "nullable"))) types |= CLT_T_NULL;
    return types;
}

unsigned clt_together_types(clt_schema *s, const clt_together *all, const char *path) {
    unsigned types = CLT_T_ALL;
    for (uint32_t i = 0; i < all->n; i++) types &= types_of(s, all->node[i], path);
    return types;
}

/* ---- values as text ---- */

static void write_node(const clt_json *n, clt_jsonw *w) {
    const char *key, *text;
    const clt_json *value;
    void *iter = NULL;
    size_t len;
    double real;
    int64_t whole;
    switch (clt_json_kind(n)) {
    case CLT_JSON_NULL: clt_jsonw_null(w); break;
    case CLT_JSON_BOOL: clt_jsonw_bool(w, clt_json_is_true(n)); break;
    case CLT_JSON_STRING:
        text = clt_json_str(n, &len);
        clt_jsonw_str(w, text, len);
        break;
    case CLT_JSON_INT:
    case CLT_JSON_REAL:
        if (clt_json_int(n, &whole)) clt_jsonw_int(w, whole);
        else if (clt_json_num(n, &real)) clt_jsonw_num(w, real);
        break;
    case CLT_JSON_ARRAY:
        clt_jsonw_open(w, '[');
        for (size_t i = 0; i < clt_json_len(n); i++) write_node(clt_json_at(n, i), w);
        clt_jsonw_close(w, ']');
        break;
    case CLT_JSON_OBJECT:
        clt_jsonw_open(w, '{');
        while (clt_json_next(n, &iter, &key, &len, &value)) {
            clt_jsonw_key(w, key);
            write_node(value, w);
        }
        clt_jsonw_close(w, '}');
        break;
    }
}

void clt_json_text(const clt_json *n, clt_buf *out) {
    clt_jsonw w = {.out = out};
    write_node(n, &w);
}

/* ---- branches that exclude each other ---- */

static bool equal(const clt_json *a, const clt_json *b) {
    clt_buf x = {0}, y = {0};
    clt_json_text(a, &x);
    clt_json_text(b, &y);
    bool same = x.failed || y.failed || (x.len == y.len && !memcmp(x.data, y.data, x.len));
    clt_buf_free(&x);
    clt_buf_free(&y);
    return same;
}

/* The i-th value that a conjunction lists, by const or by its first enum; NULL beyond the end. */
static const clt_json *listed(const clt_together *all, size_t i) {
    int at = clt_together_find(all, "const", 0);
    if (at >= 0) return i == 0 ? clt_json_get(all->node[at], "const") : NULL;
    at = clt_together_find(all, "enum", 0);
    return at >= 0 ? clt_json_at(clt_json_get(all->node[at], "enum"), i) : NULL;
}

static bool lists_apart(const clt_together *a, const clt_together *b) {
    if (!listed(a, 0) || !listed(b, 0)) return false;
    for (size_t i = 0; listed(a, i); i++)
        for (size_t j = 0; listed(b, j); j++)
            if (equal(listed(a, i), listed(b, j))) return false;
    return true;
}

static bool requires(const clt_together *all, const char *name) {
    for (uint32_t i = 0; i < all->n; i++) {
        const clt_json *list = clt_json_get(all->node[i], "required");
        for (size_t k = 0; k < clt_json_len(list); k++) {
            const char *text = clt_json_str(clt_json_at(list, k), NULL);
            if (text && !strcmp(text, name)) return true;
        }
    }
    return false;
}

static bool property_of(clt_schema *s, const clt_together *all, const char *name, const char *path, clt_together *out) {
    *out = (clt_together){0};
    bool found = false;
    for (uint32_t i = 0; i < all->n; i++) {
        const clt_json *value = clt_json_get(clt_json_get(all->node[i], "properties"), name);
        if (value && clt_together_add(s, out, value, path)) found = true;
    }
    return found;
}

static bool closed_without(const clt_together *all, const char *name) {
    for (uint32_t i = 0; i < all->n; i++) {
        const clt_json *rest = clt_json_get(all->node[i], "additionalProperties");
        if (clt_json_kind(rest) == CLT_JSON_BOOL && !clt_json_is_true(rest) &&
            !clt_json_get(clt_json_get(all->node[i], "properties"), name) &&
            !clt_json_get(all->node[i], "patternProperties"))
            return true;
    }
    return false;
}

/* A member that one of them must have and that the other cannot, or must have with another value. */
static bool members_apart(clt_schema *s, const clt_together *a, const clt_together *b, const char *path) {
    for (uint32_t i = 0; i < a->n; i++) {
        const clt_json *list = clt_json_get(a->node[i], "required");
        for (size_t k = 0; k < clt_json_len(list); k++) {
            const char *name = clt_json_str(clt_json_at(list, k), NULL);
            clt_together x, y;
            if (!name) continue;
            if (closed_without(b, name)) return true;
            if (requires(b, name) && property_of(s, a, name, path, &x) && property_of(s, b, name, path, &y) &&
                lists_apart(&x, &y))
                return true;
        }
    }
    return false;
}

bool clt_schema_apart(clt_schema *s, const clt_json *a, const clt_json *b, const char *path) {
    clt_together x = {0}, y = {0};
    if (!clt_together_add(s, &x, a, path) || !clt_together_add(s, &y, b, path)) return false;
    if (x.never || y.never || lists_apart(&x, &y)) return true;
    unsigned types = clt_together_types(s, &x, path) & clt_together_types(s, &y, path);
    /* Keys that say nothing of a type would let other types through. */
    bool typed = clt_together_has(&x, "type") && clt_together_has(&y, "type");
    if (typed && types == 0) return true;
    return typed && types == CLT_T_OBJ && (members_apart(s, &x, &y, path) || members_apart(s, &y, &x, path));
}
