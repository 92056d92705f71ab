/* Patterns: the part of regular expressions that describes a regular language -> an automaton over the characters of a
 * string.
 *
 *   a|b  (ab)  (?:ab)  (?<name>ab)  [a-z]  [^a-z]  .  a* a+ a? a{2} a{2,} a{2,5} (also lazy)
 *   ^ at the beginning, $ at the end
 *   \d \D \w \W \s \S  \n \r \t \f \v \0  \xHH \uHHHH \u{H…} \cX  and any escaped punctuation
 *
 * A pattern that is not anchored may stand anywhere in the text, as JSON Schema says. Everything else (looking around, back
 * references, \b, \p{…}, flags) is refused by name. */
#include <stdio.h>
#include "base/utf8.h"
#include "grammar/impl.h"

enum { MAX_DEPTH = 64, MAX_REPEAT = 100000, MAX_COPIED = 50000 /* states */, LAST_POINT = 0x10FFFF };

typedef struct parser {
    const char *s;
    size_t n, i;
    clt_nfa *nfa;
    clt_spelling spelling;
    clt_edge_kind kind;
    bool whole; /* the pattern is the whole text, anchored or not */
    unsigned depth;
    const char *what;
    clt_status status;
    clt_err *err;
} parser;

static clt_part read_alternatives(parser *p, bool outermost);

static void fail(parser *p, size_t at, const char *why) {
    if (p->status != CLT_OK || !clt_nfa_ok(p->nfa)) return;
    p->status = clt_fail(p->err, CLT_E_REQUEST, "%s: %s at character %zu of \"%.*s\"", p->what, why, at + 1, (int)p->n,
                         p->s);
}

static bool going(const parser *p) {
    return p->i < p->n && p->status == CLT_OK && clt_nfa_ok(p->nfa);
}

static bool next_is(const parser *p, char c) {
    return p->i < p->n && p->s[p->i] == c;
}

static clt_part new_part(parser *p) {
    return (clt_part){clt_nfa_state(p->nfa), clt_nfa_state(p->nfa)};
}

/* ---- characters ---- */

static void add_class(clt_points *out, char name) {
    clt_points points = {0};
    static const struct { char name; uint32_t lo, hi; } ranges[] = {
        {'d', '0', '9'}, {'w', '0', '9'}, {'w', 'A', 'Z'}, {'w', '_', '_'}, {'w', 'a', 'z'},
        {'s', '\t', '\r'}, {'s', ' ', ' '}, {'s', 0xA0, 0xA0}, {'s', 0x1680, 0x1680}, {'s', 0x2000, 0x200A},
        {'s', 0x2028, 0x2029}, {'s', 0x202F, 0x202F}, {'s', 0x205F, 0x205F}, {'s', 0x3000, 0x3000}, {'s', 0xFEFF, 0xFEFF}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (ranges[i].name == (name | 0x20)) clt_points_add(&points, ranges[i].lo, ranges[i].hi);
    if (name < 'a') clt_points_negate(&points);
    for (size_t i = 0; i < points.n; i++) clt_points_add(out, points.ranges[i].lo, points.ranges[i].hi);
    out->failed |= points.failed;
    clt_points_free(&points);
}

static uint32_t read_hex(parser *p, size_t least, size_t most) {
    uint32_t value = 0;
    size_t n = 0;
    for (; n < most && p->i < p->n; n++, p->i++) {
        unsigned char c = (unsigned char)p->s[p->i], lower = c | 0x20;
        if (c >= '0' && c <= '9') value = value << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f') value = value << 4 | (uint32_t)(lower - 'a' + 10);
        else break;
    }
    if (n < least) fail(p, p->i, "expected a hexadecimal digit");
    return value;
}

static uint32_t read_unicode(parser *p) {
    if (next_is(p, '{')) {
        p->i++;
        uint32_t c = read_hex(p, 1, 6);
        if (!next_is(p, '}')) fail(p, p->i, "expected }");
        p->i++;
        return c;
    }
    uint32_t high = read_hex(p, 4, 4), low;
    if (high < 0xD800 || high >= 0xDC00 || p->n - p->i < 6 || p->s[p->i] != '\\' || p->s[p->i + 1] != 'u') return high;
    p->i += 2;
    low = read_hex(p, 4, 4);
    if (low < 0xDC00 || low >= 0xE000) fail(p, p->i, "half a surrogate pair");
    return 0x10000 + ((high - 0xD800) << 10 | (low & 0x3FF));
}

/* Behind a backslash. true: a class, which was added to `out`. */
static bool read_escape(parser *p, clt_points *out, uint32_t *c) {
    static const char from[] = "nrtfv", to[] = "\n\r\t\f\v";
    size_t start = p->i - 1;
    char kind = p->i < p->n ? p->s[p->i++] : 0;
    const char *known = kind ? strchr(from, kind) : NULL;
    if (kind && strchr("dDwWsS", kind)) {
        add_class(out, kind);
        return true;
    }
    if (known) *c = (uint32_t)to[known - from];
    else if (kind == '0') *c = 0;
    else if (kind == 'x') *c = read_hex(p, 2, 2);
    else if (kind == 'u') *c = read_unicode(p);
    else if (kind == 'c' && p->i < p->n) *c = (uint8_t)p->s[p->i++] & 31;
    else if (kind == 'b' || kind == 'B') fail(p, start, "\\b cannot be honoured");
    else if (kind == 'p' || kind == 'P') fail(p, start, "\\p{…} cannot be honoured");
    else if ((kind >= '1' && kind <= '9') || kind == 'k') fail(p, start, "a back reference cannot be honoured");
    else if ((kind | 0x20) >= 'a' && (kind | 0x20) <= 'z') fail(p, start, "unknown escape");
    else if (kind == 0) fail(p, start, "a backslash with nothing behind it");
    else *c = (uint8_t)kind;
    if (*c > LAST_POINT || (*c >= 0xD800 && *c < 0xE000)) fail(p, start, "no such character");
    return false;
}

static uint32_t read_plain(parser *p) {
    uint32_t c = 0;
    size_t len = clt_utf8_decode(p->s + p->i, p->n - p->i, &c);
    if (len == 0) fail(p, p->i, "not valid UTF-8");
    p->i += len ? len : 1;
    return c;
}

/* One end of a range in a class. true: a class of its own. */
static bool read_class_item(parser *p, clt_points *out, uint32_t *c) {
    if (!next_is(p, '\\')) {
        *c = read_plain(p);
        return false;
    }
    p->i++;
    if (next_is(p, 'b')) {
        p->i++;
        *c = '\b';
        return false;
    }
    return read_escape(p, out, c);
}

static clt_part put_points(parser *p, clt_points *points) {
    clt_part part = new_part(p);
    clt_points_settle(points);
    clt_nfa_points(p->nfa, part.start, points, p->spelling, p->kind, part.end);
    clt_points_free(points);
    return part;
}

static clt_part read_class(parser *p) {
    size_t start = p->i++;
    clt_points points = {0};
    bool negated = next_is(p, '^');
    p->i += negated;
    while (going(p) && !next_is(p, ']')) {
        uint32_t lo = 0, hi;
        if (read_class_item(p, &points, &lo)) continue;
        hi = lo;
        if (next_is(p, '-') && p->i + 1 < p->n && p->s[p->i + 1] != ']') {
            size_t dash = p->i++;
            if (read_class_item(p, &points, &hi)) {
                clt_points_add(&points, '-', '-');
                hi = lo;
            }
            if (hi < lo) fail(p, dash, "a range that runs backwards");
        }
        clt_points_add(&points, lo, hi);
    }
    if (!next_is(p, ']')) fail(p, start, "a class without its closing bracket");
    p->i++;
    if (negated) clt_points_negate(&points);
    return put_points(p, &points);
}

static clt_part any_point(parser *p, bool lines) {
    clt_points points = {0};
    if (!lines) { /* . stops at the ends of lines */
        clt_points_add(&points, '\n', '\n');
        clt_points_add(&points, '\r', '\r');
        clt_points_add(&points, 0x2028, 0x2029);
        clt_points_negate(&points);
    } else {
        clt_points_add(&points, 0, LAST_POINT);
    }
    return put_points(p, &points);
}

/* Any text: what may stand beside a pattern that is not anchored. */
static clt_part any_text(parser *p) {
    size_t made = p->nfa->n_states;
    clt_part part = any_point(p, true);
    return clt_nfa_repeat_copies(p->nfa, part, made, 0, CLT_MANY);
}

/* ---- structure ---- */

static clt_part read_group(parser *p) {
    size_t start = p->i++;
    if (next_is(p, '?')) {
        bool named = p->i + 2 < p->n && p->s[p->i + 1] == '<' && p->s[p->i + 2] != '=' && p->s[p->i + 2] != '!';
        if (named) {
            while (p->i < p->n && p->s[p->i] != '>') p->i++;
        } else if (p->i + 1 < p->n && p->s[p->i + 1] == ':') {
            p->i++;
        } else {
            fail(p, start, "looking around and flags cannot be honoured");
        }
        p->i++;
    }
    if (p->depth++ == MAX_DEPTH) fail(p, start, "parentheses nested too deeply");
    clt_part part = p->status == CLT_OK ? read_alternatives(p, false) : (clt_part){0};
    p->depth--;
    if (!next_is(p, ')')) fail(p, start, "parentheses that are not closed");
    p->i++;
    return part;
}

static bool read_number(parser *p, uint32_t *out) {
    size_t start = p->i;
    for (*out = 0; p->i < p->n && p->s[p->i] >= '0' && p->s[p->i] <= '9'; p->i++)
        if (*out <= MAX_REPEAT) *out = *out * 10 + (uint32_t)(p->s[p->i] - '0');
    if (*out > MAX_REPEAT) fail(p, start, "a repetition beyond 100,000");
    return p->i > start;
}

/* {n}, {n,} or {n,m}; false, and nothing is read, if it is none: then the brace is a character. */
static bool read_bounds(parser *p, uint32_t *least, uint32_t *most) {
    size_t start = p->i++;
    bool ok = read_number(p, least);
    *most = *least;
    if (ok && next_is(p, ',')) {
        p->i++;
        if (!read_number(p, most)) *most = CLT_MANY;
    }
    ok = ok && next_is(p, '}');
    if (ok && *most < *least) fail(p, start, "a repetition whose bounds run backwards");
    p->i = ok ? p->i + 1 : start;
    return ok;
}

static clt_part read_repetition(parser *p, clt_part part, size_t made) {
    uint32_t least = 0, most = CLT_MANY;
    size_t start = p->i;
    if (!going(p)) return part;
    if (next_is(p, '*')) p->i++;
    else if (next_is(p, '+')) least = 1, p->i++;
    else if (next_is(p, '?')) most = 1, p->i++;
    else if (!next_is(p, '{') || !read_bounds(p, &least, &most)) return part;
    if (next_is(p, '?')) p->i++; /* lazy: the same texts */
    else if (next_is(p, '+')) fail(p, p->i, "possessive repetition cannot be honoured");
    uint64_t copies = most == CLT_MANY ? least : most;
    if (copies * (p->nfa->n_states - made) > MAX_COPIED) fail(p, start, "a repetition that is too large");
    return p->status == CLT_OK ? clt_nfa_repeat_copies(p->nfa, part, made, least, most) : part;
}

static clt_part read_atom(parser *p) {
    clt_points points = {0};
    uint32_t c = 0;
    char next = p->s[p->i];
    if (next == '(') return read_group(p);
    if (next == '[') return read_class(p);
    if (next == '.') {
        p->i++;
        return any_point(p, false);
    }
    if (next == '^' || next == '$') fail(p, p->i, "an anchor inside a pattern cannot be honoured");
    if (next == '*' || next == '+' || next == '?') fail(p, p->i, "nothing to repeat");
    if (next == '\\') {
        p->i++;
        if (!read_escape(p, &points, &c)) clt_points_add(&points, c, c);
    } else {
        c = read_plain(p);
        clt_points_add(&points, c, c);
    }
    return put_points(p, &points);
}

static void append(parser *p, clt_part *whole, clt_part part) {
    clt_nfa_empty(p->nfa, whole->end, part.start);
    whole->end = part.end;
}

/* At the end of an alternative, or of a group that ends the pattern. */
static bool at_closing_anchor(const parser *p) {
    return next_is(p, '$') && (p->i + 1 == p->n || p->s[p->i + 1] == '|');
}

static clt_part read_sequence(parser *p, bool outermost) {
    clt_part whole = {clt_nfa_state(p->nfa), 0};
    bool begins = outermost && next_is(p, '^'), ends = false;
    whole.end = whole.start;
    p->i += begins;
    if (outermost && !begins && !p->whole) append(p, &whole, any_text(p));
    while (going(p) && !next_is(p, '|') && !next_is(p, ')')) {
        if (outermost && at_closing_anchor(p)) {
            ends = true;
            p->i++;
            break;
        }
        size_t made = p->nfa->n_states;
        clt_part part = read_atom(p);
        append(p, &whole, read_repetition(p, part, made));
    }
    if (outermost && !ends && !p->whole) append(p, &whole, any_text(p));
    return whole;
}

static clt_part read_alternatives(parser *p, bool outermost) {
    clt_part whole = new_part(p);
    for (;;) {
        clt_part part = read_sequence(p, outermost);
        clt_nfa_empty(p->nfa, whole.start, part.start);
        clt_nfa_empty(p->nfa, part.end, whole.end);
        if (!going(p) || !next_is(p, '|')) return whole;
        p->i++;
    }
}

static clt_status write(parser *p, uint32_t from, uint32_t to) {
    clt_part part = read_alternatives(p, true);
    if (going(p)) fail(p, p->i, "a closing parenthesis without its opening one");
    clt_nfa_empty(p->nfa, from, part.start);
    clt_nfa_empty(p->nfa, part.end, to);
    return p->status;
}

clt_status clt_regex_write(clt_nfa *n, const char *pattern, size_t len, clt_spelling spelling, uint32_t from, uint32_t to,
                           const char *what, clt_err *err) {
    parser p = {.s = pattern, .n = len, .nfa = n, .spelling = spelling, .kind = CLT_COUNT, .what = what, .err = err};
    return write(&p, from, to);
}

clt_status clt_regex_plain(clt_nfa *n, const char *pattern, size_t len, uint32_t from, uint32_t to, const char *what,
                           clt_err *err) {
    parser p = {.s = pattern, .n = len, .nfa = n, .spelling = CLT_SPELL_RAW, .kind = CLT_PLAIN, .whole = true, .what = what,
                .err = err};
    return write(&p, from, to);
}
