/* Arrays, and values that a schema gives as they are. */
#include <math.h>
#include <stdio.h>
#include "base/utf8.h"
#include "grammar/schema.h"

static void put(clt_schema *s, uint32_t from, const char *text, uint32_t to) {
    clt_nfa_literal(&s->nfa, from, text, strlen(text), to);
}

static uint32_t state(clt_schema *s) {
    return clt_nfa_state(&s->nfa);
}

/* ---- arrays ---- */

/* The schemas of the item at an index: of prefixItems where it reaches, else of what `items` says. */
static bool item_at(clt_schema *s, const clt_together *all, size_t index, const char *path, clt_together *out) {
    char piece[CLT_MAX_PATH];
    *out = (clt_together){0};
    for (uint32_t i = 0; i < all->n; i++) {
        const clt_json *items = clt_json_get(all->node[i], "items"), *prefix = clt_json_get(all->node[i], "prefixItems");
        if (clt_json_kind(items) == CLT_JSON_ARRAY) { /* drafts before 2020 */
            prefix = items;
            items = clt_json_get(all->node[i], "additionalItems");
        }
        const clt_json *item = clt_json_at(prefix, index);
        if (!item) item = items;
        snprintf(piece, sizeof piece, "%.900s/%s", path, item == items ? "items" : "prefixItems");
        if (item && !clt_together_add(s, out, item, piece)) return false;
    }
    return true;
}

static size_t prefix_of(const clt_together *all) {
    size_t longest = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const clt_json *items = clt_json_get(all->node[i], "items"), *prefix = clt_json_get(all->node[i], "prefixItems");
        if (clt_json_kind(items) == CLT_JSON_ARRAY) prefix = items;
        if (clt_json_len(prefix) > longest) longest = clt_json_len(prefix);
    }
    return longest;
}

static void put_item(clt_schema *s, const clt_together *item, const char *path, bool comma, uint32_t from, uint32_t to) {
    char piece[CLT_MAX_PATH];
    uint32_t at = from;
    if (comma) {
        uint32_t after = state(s);
        at = state(s);
        put(s, from, ",", after);
        clt_schema_space(s, after, at);
    }
    clt_path_join(piece, path, "items");
    clt_schema_value(s, item, piece, at, to);
}

/* Items behind the first `done` ones, all alike. */
static void put_rest(clt_schema *s, const clt_together *all, const char *path, size_t done, uint32_t least, uint32_t most,
                     uint32_t from, uint32_t to) {
    clt_together item;
    if (least <= done) clt_nfa_empty(&s->nfa, from, to);
    if (most <= done || !item_at(s, all, done, path, &item) || item.never) return;
    if (done > 0 && item.n == 0 && least <= done && prefix_of(all) == done) return; /* a tuple is not continued unasked */
    uint32_t at = from;
    if (done == 0) {
        at = state(s);
        put_item(s, &item, path, false, from, at);
        done = 1;
    }
    size_t made = s->nfa.n_states;
    clt_part part = {state(s), state(s)};
    put_item(s, &item, path, true, part.start, part.end);
    part = clt_nfa_repeat(&s->nfa, part, made, least > done ? least - (uint32_t)done : 0,
                          most == CLT_MANY ? CLT_MANY : most - (uint32_t)done);
    clt_nfa_empty(&s->nfa, at, part.start);
    clt_nfa_empty(&s->nfa, part.end, to);
}

void clt_schema_array(clt_schema *s, const clt_together *all, const char *path, uint32_t from, uint32_t to) {
    uint32_t least = 0, most = CLT_MANY, open = state(s), at = state(s), last = state(s), end = state(s);
    if (!clt_together_count(s, all, "minItems", true, path, &least) ||
        !clt_together_count(s, all, "maxItems", false, path, &most))
        return;
    if (least > most) {
        clt_schema_fail(s, path, "minItems", "%u is more than maxItems, %u", least, most);
        return;
    }
    put(s, from, "[", open);
    clt_schema_space(s, open, at);
    uint32_t empty = at;
    size_t prefix = prefix_of(all);
    for (size_t i = 0; i < prefix && i < most && clt_schema_ok(s); i++) {
        clt_together item;
        uint32_t next = state(s);
        if (i >= least) clt_nfa_empty(&s->nfa, at, i ? last : end);
        if (!item_at(s, all, i, path, &item)) return;
        put_item(s, &item, path, i > 0, at, next);
        at = next;
    }
    if (prefix > most) prefix = most;
    if (least == 0 && prefix == 0) clt_nfa_empty(&s->nfa, empty, end);
    if (prefix > 0 || most > 0) put_rest(s, all, path, prefix, prefix == 0 && least == 0 ? 1 : least, most, at, last);
    clt_schema_space(s, last, end);
    put(s, end, "]", to);
}

/* ---- given values ---- */

void clt_schema_text(clt_schema *s, const char *text, size_t len, uint32_t from, uint32_t to) {
    static const char marks[] = {'"', (char)(uint8_t)CLT_BYTE_QUOTE};
    const char *mark = &marks[s->spelling == CLT_SPELL_CALL];
    clt_buf b = {0};
    clt_buf_put(&b, mark, 1);
    clt_spell(&b, text, len, s->spelling);
    clt_buf_put(&b, mark, 1);
    if (b.failed) s->nfa.no_memory = true;
    else clt_nfa_literal(&s->nfa, from, b.data, b.len, to);
    clt_buf_free(&b);
}

static void put_name(clt_schema *s, const char *name, uint32_t from, uint32_t to) {
    clt_part part = {state(s), state(s)};
    clt_nfa_empty(&s->nfa, from, part.start);
    clt_nfa_empty(&s->nfa, part.end, to);
    if (s->spelling == CLT_SPELL_CALL) put(s, part.start, name, part.end);
    else clt_schema_text(s, name, strlen(name), part.start, part.end);
}

/* The members or items of a value, with the white space that is free everywhere. */
static void put_list(clt_schema *s, const clt_json *value, uint32_t from, uint32_t to) {
    bool object = clt_json_kind(value) == CLT_JSON_OBJECT;
    uint32_t at = state(s), next;
    size_t i = 0, len;
    const char *key = NULL;
    const clt_json *item;
    void *iter = NULL;
    clt_schema_space(s, from, at);
    while (object ? clt_json_next(value, &iter, &key, &len, &item) : (item = clt_json_at(value, i)) != NULL) {
        if (i++) {
            uint32_t comma = state(s);
            put(s, at, ",", comma);
            at = state(s);
            clt_schema_space(s, comma, at);
        }
        if (object) {
            uint32_t named = state(s), colon = state(s);
            put_name(s, key, at, named);
            put(s, named, ":", colon);
            at = state(s);
            clt_schema_space(s, colon, at);
        }
        next = state(s);
        clt_schema_constant(s, item, at, next);
        at = next;
    }
    if (i) clt_schema_space(s, at, to);
    else clt_nfa_empty(&s->nfa, at, to);
}

void clt_schema_constant(clt_schema *s, const clt_json *value, uint32_t from, uint32_t to) {
    clt_json_type kind = clt_json_kind(value);
    if (kind == CLT_JSON_STRING) {
        size_t len;
        const char *text = clt_json_str(value, &len);
        clt_schema_text(s, text, len, from, to);
    } else if (kind == CLT_JSON_ARRAY || kind == CLT_JSON_OBJECT) {
        uint32_t open = state(s), close = state(s);
        put(s, from, kind == CLT_JSON_ARRAY ? "[" : "{", open);
        put_list(s, value, open, close);
        put(s, close, kind == CLT_JSON_ARRAY ? "]" : "}", to);
    } else {
        clt_buf b = {0};
        clt_json_text(value, &b);
        if (b.failed) s->nfa.no_memory = true;
        else clt_nfa_literal(&s->nfa, from, b.data, b.len, to);
        clt_buf_free(&b);
    }
}

/* ---- enum and const ---- */

static unsigned type_of(const clt_json *value) {
    int64_t whole;
    switch (clt_json_kind(value)) {
    case CLT_JSON_NULL: return CLT_T_NULL;
    case CLT_JSON_BOOL: return CLT_T_BOOL;
    case CLT_JSON_INT:
    case CLT_JSON_REAL: return clt_json_int(value, &whole) ? CLT_T_INT : CLT_T_NUM;
    case CLT_JSON_STRING: return CLT_T_STR;
    case CLT_JSON_ARRAY: return CLT_T_ARR;
    case CLT_JSON_OBJECT: return CLT_T_OBJ;
    }
    return 0;
}

static bool same_value(const clt_json *a, const clt_json *b) {
    clt_buf x = {0}, y = {0};
    clt_json_text(a, &x);
    clt_json_text(b, &y);
    bool same = !x.failed && !y.failed && x.len == y.len && !memcmp(x.data, y.data, x.len);
    clt_buf_free(&x);
    clt_buf_free(&y);
    return same;
}

/* Whether all enums and consts of the conjunction have the value, which is from the list `own`. */
static bool in_all_lists(const clt_together *all, const clt_json *own, const clt_json *value) {
    for (uint32_t i = 0; i < all->n; i++) {
        const clt_json *only = clt_json_get(all->node[i], "const"), *list = clt_json_get(all->node[i], "enum");
        if (list == own) list = NULL;
        bool found = !list;
        if (only && !same_value(only, value)) return false;
        for (size_t k = 0; k < clt_json_len(list) && !found; k++) found = same_value(clt_json_at(list, k), value);
        if (!found) return false;
    }
    return true;
}

static bool in_range(const clt_together *all, double value) {
    static const struct { const char *key; bool lower, strict; } bounds[] = {
        {"minimum", true, false}, {"exclusiveMinimum", true, true},
        {"maximum", false, false}, {"exclusiveMaximum", false, true}};
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        for (uint32_t i = 0; i < all->n; i++) {
            double bound, above;
            if (!clt_json_num(clt_json_get(all->node[i], bounds[k].key), &bound)) continue;
            above = bounds[k].lower ? value - bound : bound - value;
            if (above < 0 || (bounds[k].strict && above == 0)) return false;
        }
    }
    return true;
}

static bool of_length(clt_schema *s, const clt_together *all, const char *path, const char *text, size_t len) {
    uint32_t least = 0, most = CLT_MANY, n = 0;
    for (size_t i = 0; i < len; i++) n += ((uint8_t)text[i] & 0xC0) != 0x80;
    if (!clt_together_count(s, all, "minLength", true, path, &least) ||
        !clt_together_count(s, all, "maxLength", false, path, &most))
        return false;
    return n >= least && n <= most;
}

/* Whether the other keys, as far as they speak of scalars, leave a listed value. */
static bool left_over(clt_schema *s, const clt_together *all, unsigned types, const char *path, const clt_json *own,
                      const clt_json *value) {
    double number;
    size_t len;
    const char *text = clt_json_str(value, &len);
    if (!(type_of(value) & types) || !in_all_lists(all, own, value)) return false;
    if (clt_json_num(value, &number) && !in_range(all, number)) return false;
    return !text || of_length(s, all, path, text, len);
}

void clt_schema_enum(clt_schema *s, const clt_together *all, unsigned types, const char *path, uint32_t from, uint32_t to) {
    static const char *const beside[] = {"pattern", "multipleOf", "properties", "items", "prefixItems", "required"};
    int at = clt_together_find(all, "const", 0);
    const clt_json *only = at >= 0 ? clt_json_get(all->node[at], "const") : NULL;
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        if (!clt_together_has(all, beside[i])) continue;
        clt_schema_fail(s, path, beside[i], "this key cannot be honoured beside %s", only ? "const" : "enum");
        return;
    }
    if (only) {
        if (left_over(s, all, types, path, NULL, only)) clt_schema_constant(s, only, from, to);
        return;
    }
    at = clt_together_find(all, "enum", 0);
    const clt_json *list = clt_json_get(all->node[at], "enum");
    if (clt_json_kind(list) != CLT_JSON_ARRAY || clt_json_len(list) == 0) {
        clt_schema_fail(s, path, "enum", "expected a list of values");
        return;
    }
    for (size_t i = 0; i < clt_json_len(list) && clt_schema_ok(s); i++)
        if (left_over(s, all, types, path, list, clt_json_at(list, i)))
            clt_schema_constant(s, clt_json_at(list, i), from, to);
}
