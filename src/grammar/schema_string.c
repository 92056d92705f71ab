/* Strings: free ones with their least and greatest length, patterns, formats; and the names of further members. */
#include <stdlib.h>
#include "base/utf8.h"
#include "grammar/schema.h"

static uint32_t state(clt_schema *s) {
    return clt_nfa_state(&s->nfa);
}

static void put_byte(clt_schema *s, uint32_t from, unsigned byte, clt_edge_kind kind, uint32_t to) {
    clt_nfa_bytes(&s->nfa, from, byte, byte, kind, to);
}

static unsigned quote_of(const clt_schema *s) {
    return s->spelling == CLT_SPELL_CALL ? CLT_BYTE_QUOTE : '"';
}

/* A string that a pattern describes is a rule that counts its characters. */
static void put_pattern(clt_schema *s, const char *pattern, size_t len, clt_call bounds, const char *what, uint32_t from,
                        uint32_t to) {
    clt_part part = {state(s), state(s)};
    uint32_t open = state(s), close = state(s);
    bounds.rule = clt_nfa_rule_new(&s->nfa, NULL, 0);
    if (!clt_schema_ok(s)) return;
    s->nfa.rules[bounds.rule].counts = true;
    put_byte(s, part.start, quote_of(s), CLT_PLAIN, open);
    put_byte(s, close, quote_of(s), CLT_EXIT, part.end);
    clt_status status = clt_regex_write(&s->nfa, pattern, len, s->spelling, open, close, what, s->err);
    if (status != CLT_OK) s->status = status;
    clt_nfa_define(&s->nfa, bounds.rule, part);
    clt_nfa_call(&s->nfa, from, bounds, to);
}

static void put_named_pattern(clt_schema *s, const char *pattern, size_t len, clt_call bounds, const char *path,
                              const char *key, uint32_t from, uint32_t to) {
    clt_buf what = {0};
    clt_buf_printf(&what, "%s: %s: %s", s->what, path, key);
    if (what.failed) s->nfa.no_memory = true;
    else put_pattern(s, pattern, len, bounds, what.data, from, to);
    clt_buf_free(&what);
}

void clt_schema_pattern(clt_schema *s, const char *pattern, const char *path, uint32_t from, uint32_t to) {
    put_named_pattern(s, pattern, strlen(pattern), (clt_call){0, 0, CLT_MANY}, path, pattern, from, to);
}

/* ---- one character again and again ---- */

static size_t end_of_character(const char *p, size_t n) {
    size_t i = 1;
    if (n == 0 || strchr("^$()*+?{|", p[0])) return 0;
    if (p[0] == '\\') return n > 1 && strchr("dDwWsS.-_/", p[1]) && p[1] ? 2 : 0;
    if (p[0] != '[') return (uint8_t)p[0] < 0x80 ? 1 : 0;
    for (; i < n && p[i] != ']'; i++) i += p[i] == '\\';
    return i < n ? i + 1 : 0;
}

static bool read_count(const char *p, size_t n, size_t *i, uint32_t *out) {
    size_t start = *i;
    for (*out = 0; *i < n && p[*i] >= '0' && p[*i] <= '9' && *i - start < 6; (*i)++)
        *out = *out * 10 + (uint32_t)(p[*i] - '0');
    return *i > start;
}

/* Whether a pattern is ^X{m,n}$ with one character or class X. Then the length of the string says as much, and is counted,
 * not written out. *character: the bytes of ^X. */
static bool is_repeated(const char *p, size_t n, size_t *character, uint32_t *least, uint32_t *most) {
    if (n < 5 || p[0] != '^' || p[n - 1] != '$' || p[n - 2] != '}') return false;
    size_t i = end_of_character(p + 1, n - 1);
    if (i == 0 || p[i + 1] != '{') return false;
    *character = i + 1;
    i += 2;
    if (!read_count(p, n, &i, least)) return false;
    *most = *least;
    if (p[i] == ',') {
        i++;
        if (!read_count(p, n, &i, most)) *most = CLT_MANY;
    }
    return i == n - 2 && *least <= *most;
}

/* A pattern as a string of bounded length. */
static void put_string_of(clt_schema *s, const char *pattern, size_t len, clt_call bounds, const char *path, uint32_t from,
                          uint32_t to) {
    size_t character;
    uint32_t least, most;
    clt_buf shorter = {0};
    if (!is_repeated(pattern, len, &character, &least, &most)) {
        put_named_pattern(s, pattern, len, bounds, path, "pattern", from, to);
        return;
    }
    if (least > bounds.need) bounds.need = least;
    if (most < bounds.left) bounds.left = most;
    clt_buf_put(&shorter, pattern, character);
    clt_buf_puts(&shorter, "*$");
    if (bounds.need > bounds.left) clt_schema_fail(s, path, "pattern", "no length is left beside minLength and maxLength");
    else if (shorter.failed) s->nfa.no_memory = true;
    else put_named_pattern(s, shorter.data, shorter.len, bounds, path, "pattern", from, to);
    clt_buf_free(&shorter);
}

/* ---- strings ---- */

/* The one value of a key in a conjunction, as text. false: there are several that differ, or it is no text. */
static bool only_text(clt_schema *s, const clt_together *all, const char *key, const char *path, const char **text,
                      size_t *len) {
    *text = NULL;
    for (int i = clt_together_find(all, key, 0); i >= 0; i = clt_together_find(all, key, (uint32_t)i + 1)) {
        size_t n;
        const char *found = clt_json_str(clt_json_get(all->node[i], key), &n);
        if (!found) return clt_schema_fail(s, path, key, "expected a text");
        if (*text && (n != *len || memcmp(found, *text, n) != 0))
            return clt_schema_fail(s, path, key, "two of them for one place cannot be honoured");
        *text = found;
        *len = n;
    }
    return true;
}

void clt_schema_string(clt_schema *s, const clt_together *all, const char *path, uint32_t from, uint32_t to) {
    const char *pattern, *format, *known = NULL;
    size_t len = 0, format_len = 0;
    clt_call bounds = {s->spelling == CLT_SPELL_CALL ? CLT_RULE_TEXT : CLT_RULE_STRING, 0, CLT_MANY};
    if (!clt_together_count(s, all, "minLength", true, path, &bounds.need) ||
        !clt_together_count(s, all, "maxLength", false, path, &bounds.left) ||
        !only_text(s, all, "pattern", path, &pattern, &len) || !only_text(s, all, "format", path, &format, &format_len))
        return;
    if (bounds.need > bounds.left) {
        clt_schema_fail(s, path, "minLength", "%u is more than maxLength, %u", bounds.need, bounds.left);
        return;
    }
    if (format) known = clt_schema_format(format);
    if (format && !known) clt_schema_fail(s, path, "format", "\"%s\" is not a format that can be checked", format);
    else if (known && *known && pattern) clt_schema_fail(s, path, "pattern", "it cannot be honoured beside a format");
    else if (pattern) put_string_of(s, pattern, len, bounds, path, from, to);
    else if (known && *known) put_named_pattern(s, known, strlen(known), bounds, path, "format", from, to);
    else clt_nfa_call(&s->nfa, from, bounds, to);
}

/* ---- names of members that are not declared ---- */

/* In tool calls names stand bare. */
static void put_bare_name(clt_schema *s, uint32_t from, uint32_t to) {
    enum { MOST = 64 };
    static const struct { uint8_t lo, hi; bool first; } ranges[] = {
        {'A', 'Z', true}, {'a', 'z', true}, {'_', '_', true}, {'0', '9', false}, {'-', '-', false}, {'.', '.', false}};
    if (!s->name) {
        s->name = clt_nfa_rule_new(&s->nfa, NULL, 0);
        clt_part part = {state(s), state(s)};
        uint32_t at = part.start;
        clt_nfa_define(&s->nfa, s->name, part);
        for (int i = 0; i < MOST; i++) {
            uint32_t next = state(s);
            for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++)
                if (i || ranges[k].first) clt_nfa_bytes(&s->nfa, at, ranges[k].lo, ranges[k].hi, CLT_PLAIN, next);
            clt_nfa_empty(&s->nfa, next, part.end);
            at = next;
        }
    }
    clt_nfa_call(&s->nfa, from, (clt_call){s->name, 0, CLT_MANY}, to);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum { MAX_TREE = 200 }; /* bytes of a name that are told apart; put_tree recurses over them */

typedef struct other {
    clt_schema *s;
    const char **names; /* sorted */
    uint32_t to;
} other;

/* Names [first, last) agree up to byte `at`, where `from` is. What leaves their tree is free; what stays in it may end where
 * no name does. Characters beside the tree are written plainly, so that no escape spells a name another way; names with
 * characters that must be escaped, or beyond ASCII, are left on their first such byte, to which nothing else is beside. */
static void put_tree(const other *o, size_t first, size_t last, size_t at, uint32_t from) {
    clt_schema *s = o->s;
    bool taken[256] = {false}, ends = first < last && o->names[first][at] == 0;
    while (first < last && o->names[first][at] == 0) first++;
    if (!ends) put_byte(s, from, '"', CLT_PLAIN, o->to);
    for (size_t i = first, next; i < last && clt_schema_ok(s); i = next) {
        uint8_t byte = (uint8_t)o->names[i][at];
        for (next = i; next < last && (uint8_t)o->names[next][at] == byte;) next++;
        taken[byte] = true;
        if (byte < 0x20 || byte >= 0x7F || byte == '"' || byte == '\\' || at >= MAX_TREE) continue;
        uint32_t inside = state(s);
        put_byte(s, from, byte, CLT_PLAIN, inside);
        put_tree(o, i, next, at + 1, inside);
    }
    uint32_t rest = state(s);
    for (unsigned c = 0x20; c < 0x7F; c++)
        if (!taken[c] && c != '"' && c != '\\') put_byte(s, from, c, CLT_PLAIN, rest);
    clt_nfa_call(&s->nfa, rest, (clt_call){CLT_RULE_STRING_TAIL, 0, CLT_MANY}, o->to);
}

void clt_schema_other_name(clt_schema *s, const char *const *names, size_t n, uint32_t from, uint32_t to) {
    if (s->spelling == CLT_SPELL_CALL) {
        put_bare_name(s, from, to);
        return;
    }
    if (n == 0) {
        clt_nfa_call(&s->nfa, from, (clt_call){CLT_RULE_STRING, 0, CLT_MANY}, to);
        return;
    }
    other o = {.s = s, .names = clt_calloc(n, sizeof *names), .to = to};
    if (!o.names) {
        s->nfa.no_memory = true;
        return;
    }
    memcpy(o.names, names, n * sizeof *names);
    qsort(o.names, n, sizeof *o.names, compare_names);
    uint32_t open = state(s);
    put_byte(s, from, '"', CLT_PLAIN, open);
    put_tree(&o, 0, n, 0, open);
    clt_free(o.names);
}
