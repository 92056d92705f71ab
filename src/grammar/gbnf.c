/* GBNF, the notation of llama.cpp's grammars -> rules.
 *
 *   name ::= "text" [a-z] [^"\\] . other-name ( a | b ) x* x+ x? x{3} x{3,} x{3,5}     # comment
 *
 * Escapes in texts and classes: \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH. A line ends a rule, except inside parentheses
 * and after "|" or "::=". The parser recurses only over parentheses, to a limit. */
#include "base/hash.h"
#include "base/utf8.h"
#include "grammar/impl.h"

enum { MAX_DEPTH = 256, MAX_REPEAT = 100000000 };

typedef struct parser {
    const char *s;
    size_t n, i;
    clt_nfa nfa;
    uint32_t *names; /* hash table: 1 + rule */
    size_t n_names, names_size;
    unsigned depth;
    clt_status status;
    clt_err *err;
} parser;

static clt_part read_alternatives(parser *p);

/* ---- errors ---- */

static unsigned line_of(const parser *p, size_t at) {
    unsigned line = 1;
    for (size_t i = 0; i < at && i < p->n; i++) line += p->s[i] == '\n';
    return line;
}

/* Fails once; later failures follow from the first. */
static void fail_at(parser *p, size_t at, const char *why) {
    if (p->status != CLT_OK || !clt_nfa_ok(&p->nfa)) return;
    size_t line_end = at, shown;
    while (line_end < p->n && p->s[line_end] != '\n' && line_end - at < 24) line_end++;
    shown = clt_utf8_complete(p->s + at, line_end - at);
    if (shown == 0) p->status = clt_fail(p->err, CLT_E_REQUEST, "grammar: line %u: %s", line_of(p, at), why);
    else
        p->status = clt_fail(p->err, CLT_E_REQUEST, "grammar: line %u: %s at \"%.*s\"", line_of(p, at), why, (int)shown,
                             p->s + at);
}

/* ---- words ---- */

static bool at_end(const parser *p) {
    return p->i >= p->n || p->status != CLT_OK;
}

static bool next_is(const parser *p, char c) {
    return p->i < p->n && p->s[p->i] == c;
}

static void skip_space(parser *p, bool lines) {
    for (; p->i < p->n; p->i++) {
        char c = p->s[p->i];
        if (c == '#') {
            while (p->i + 1 < p->n && p->s[p->i + 1] != '\n' && p->s[p->i + 1] != '\r') p->i++;
        } else if (c != ' ' && c != '\t' && !(lines && (c == '\n' || c == '\r'))) {
            return;
        }
    }
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The rule of a name, made at its first mention. */
static uint32_t rule_of(parser *p, const char *name, size_t len) {
    if (2 * p->n_names >= p->names_size) {
        size_t size = p->names_size ? 2 * p->names_size : 64;
        uint32_t *grown = clt_calloc(size, sizeof *grown);
        if (!grown) {
            p->nfa.no_memory = true;
            return 0;
        }
        for (uint32_t r = 0; r < p->nfa.n_rules; r++) {
            const char *known = p->nfa.rules[r].name;
            if (!known) continue;
            size_t at = clt_hash64(known, strlen(known), 0) & (size - 1);
            while (grown[at]) at = (at + 1) & (size - 1);
            grown[at] = r + 1;
        }
        clt_free(p->names);
        p->names = grown;
        p->names_size = size;
    }
    size_t at = clt_hash64(name, len, 0) & (p->names_size - 1);
    for (; p->names[at]; at = (at + 1) & (p->names_size - 1)) {
        const char *known = p->nfa.rules[p->names[at] - 1].name;
        if (!strncmp(known, name, len) && known[len] == 0) return p->names[at] - 1;
    }
    uint32_t rule = clt_nfa_rule_new(&p->nfa, name, len);
    if (!clt_nfa_ok(&p->nfa)) return 0;
    p->names[at] = rule + 1;
    p->n_names++;
    return rule;
}

/* ---- characters ---- */

static uint32_t read_hex(parser *p, size_t digits) {
    uint32_t value = 0;
    for (size_t k = 0; k < digits; k++, p->i++) {
        unsigned char c = p->i < p->n ? (unsigned char)p->s[p->i] : 0, lower = c | 0x20;
        if (is_digit((char)c)) value = value << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f') value = value << 4 | (uint32_t)(lower - 'a' + 10);
        else {
            fail_at(p, p->i, "expected a hexadecimal digit");
            return 0;
        }
    }
    return value;
}

/* One character of a text or class, escapes read. */
static uint32_t read_character(parser *p) {
    size_t start = p->i;
    uint32_t c = 0;
    if (p->s[p->i] != '\\') {
        size_t len = clt_utf8_decode(p->s + p->i, p->n - p->i, &c);
        if (len == 0) fail_at(p, start, "not valid UTF-8");
        p->i += len ? len : 1;
        return c;
    }
    p->i++;
    char kind = p->i < p->n ? p->s[p->i++] : 0;
    switch (kind) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case '\\': case '"': case '[': case ']': case '-': case '^': case '/': return (uint32_t)kind;
    case 'x': return read_hex(p, 2);
    case 'u': c = read_hex(p, 4); break;
    case 'U': c = read_hex(p, 8); break;
    default: fail_at(p, start, "unknown escape");
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) fail_at(p, start, "no such character");
    return c;
}

static clt_part read_text(parser *p) {
    size_t start = p->i++;
    clt_part part = {clt_nfa_state(&p->nfa), 0};
    part.end = part.start;
    while (!at_end(p) && !next_is(p, '"')) {
        char utf8[4];
        size_t len = clt_utf8_encode(read_character(p), utf8);
        uint32_t next = clt_nfa_state(&p->nfa);
        clt_nfa_literal(&p->nfa, part.end, utf8, len, next);
        part.end = next;
    }
    if (at_end(p)) fail_at(p, start, "a text without its closing quote");
    p->i++;
    return part;
}

static clt_part part_of_points(parser *p, const clt_points *points) {
    clt_part part = {clt_nfa_state(&p->nfa), clt_nfa_state(&p->nfa)};
    clt_nfa_points(&p->nfa, part.start, points, CLT_SPELL_RAW, CLT_PLAIN, part.end);
    return part;
}

static clt_part read_class(parser *p) {
    size_t start = p->i++;
    clt_points points = {0};
    bool negated = next_is(p, '^');
    p->i += negated;
    while (!at_end(p) && !next_is(p, ']')) {
        uint32_t lo = read_character(p), hi = lo;
        if (next_is(p, '-') && p->i + 1 < p->n && p->s[p->i + 1] != ']') {
            p->i++;
            hi = read_character(p);
        }
        if (lo > hi) fail_at(p, start, "a range that runs backwards");
        clt_points_add(&points, lo, hi);
    }
    if (at_end(p)) fail_at(p, start, "a class without its closing bracket");
    p->i++;
    if (negated) clt_points_negate(&points);
    else clt_points_settle(&points);
    clt_part part = part_of_points(p, &points);
    clt_points_free(&points);
    return part;
}

static clt_part any_character(parser *p) {
    clt_points points = {0};
    p->i++;
    clt_points_add(&points, 0, 0x10FFFF);
    clt_part part = part_of_points(p, &points);
    clt_points_free(&points);
    return part;
}

/* ---- rules ---- */

static clt_part read_name(parser *p) {
    size_t start = p->i;
    while (p->i < p->n && is_word(p->s[p->i])) p->i++;
    clt_part part = {clt_nfa_state(&p->nfa), clt_nfa_state(&p->nfa)};
    uint32_t rule = rule_of(p, p->s + start, p->i - start);
    clt_nfa_call(&p->nfa, part.start, (clt_call){rule, 0, CLT_MANY}, part.end);
    return part;
}

static clt_part read_group(parser *p) {
    size_t start = p->i++;
    if (p->depth++ == MAX_DEPTH) fail_at(p, start, "parentheses nested too deeply");
    clt_part part = {0};
    if (p->status == CLT_OK) part = read_alternatives(p);
    p->depth--;
    if (!next_is(p, ')')) fail_at(p, start, "parentheses that are not closed");
    p->i++;
    return part;
}

static uint32_t read_number(parser *p) {
    uint64_t value = 0;
    size_t start = p->i;
    for (; p->i < p->n && is_digit(p->s[p->i]); p->i++)
        if (value <= MAX_REPEAT) value = 10 * value + (uint64_t)(p->s[p->i] - '0');
    if (p->i == start) fail_at(p, start, "expected a number");
    if (value > MAX_REPEAT) fail_at(p, start, "a repetition beyond 100,000,000");
    return (uint32_t)value;
}

static void read_bounds(parser *p, uint32_t *least, uint32_t *most) {
    size_t start = p->i++;
    skip_space(p, true);
    *least = next_is(p, ',') ? 0 : read_number(p);
    *most = *least;
    skip_space(p, true);
    if (next_is(p, ',')) {
        p->i++;
        skip_space(p, true);
        *most = next_is(p, '}') ? CLT_MANY : read_number(p);
        skip_space(p, true);
    }
    if (!next_is(p, '}')) fail_at(p, start, "expected {n}, {n,} or {n,m}");
    else if (*most < *least) fail_at(p, start, "a repetition whose bounds run backwards");
    p->i++;
}

/* What stands behind an element: *, +, ? or bounds, several of them too. */
static clt_part read_repetition(parser *p, clt_part part, size_t made) {
    while (p->status == CLT_OK && clt_nfa_ok(&p->nfa)) {
        uint32_t least = 0, most = CLT_MANY;
        skip_space(p, p->depth > 0);
        if (next_is(p, '{')) read_bounds(p, &least, &most);
        else if (next_is(p, '*')) p->i++;
        else if (next_is(p, '+')) least = 1, p->i++;
        else if (next_is(p, '?')) most = 1, p->i++;
        else break;
        if (p->status == CLT_OK) part = clt_nfa_repeat(&p->nfa, part, made, least, most);
    }
    return part;
}

/* Elements one after the other. */
static clt_part read_sequence(parser *p) {
    clt_part whole = {clt_nfa_state(&p->nfa), 0};
    whole.end = whole.start;
    while (!at_end(p) && clt_nfa_ok(&p->nfa)) {
        size_t made = p->nfa.n_states;
        char c = p->s[p->i];
        clt_part part;
        if (c == '"') part = read_text(p);
        else if (c == '[') part = read_class(p);
        else if (c == '.') part = any_character(p);
        else if (c == '(') part = read_group(p);
        else if (is_word(c)) part = read_name(p);
        else break;
        part = read_repetition(p, part, made);
        clt_nfa_empty(&p->nfa, whole.end, part.start);
        whole.end = part.end;
    }
    return whole;
}

static clt_part read_alternatives(parser *p) {
    clt_part whole = {clt_nfa_state(&p->nfa), clt_nfa_state(&p->nfa)};
    for (;;) {
        skip_space(p, true);
        clt_part part = read_sequence(p);
        clt_nfa_empty(&p->nfa, whole.start, part.start);
        clt_nfa_empty(&p->nfa, part.end, whole.end);
        skip_space(p, p->depth > 0);
        if (!next_is(p, '|') || p->status != CLT_OK) return whole;
        p->i++;
    }
}

static void read_rule(parser *p) {
    size_t start = p->i;
    while (p->i < p->n && is_word(p->s[p->i])) p->i++;
    if (p->i == start) {
        fail_at(p, start, "expected the name of a rule");
        return;
    }
    uint32_t rule = rule_of(p, p->s + start, p->i - start);
    skip_space(p, false);
    if (p->n - p->i < 3 || memcmp(p->s + p->i, "::=", 3) != 0) {
        fail_at(p, p->i, "expected ::= after the name of a rule");
        return;
    }
    p->i += 3;
    if (clt_nfa_ok(&p->nfa) && p->nfa.rules[rule].start != CLT_NONE) fail_at(p, start, "a rule that stands here twice");
    clt_nfa_define(&p->nfa, rule, read_alternatives(p));
    if (!at_end(p) && p->s[p->i] != '\n' && p->s[p->i] != '\r') fail_at(p, p->i, "unexpected text");
}

static clt_status read_all(parser *p, uint32_t *root) {
    static const char what[] = "grammar";
    if (p->n > CLT_MAX_GRAMMAR_BYTES)
        return clt_fail(p->err, CLT_E_REQUEST, "grammar: %zu bytes are more than the %d that are read", p->n,
                        CLT_MAX_GRAMMAR_BYTES);
    for (skip_space(p, true); !at_end(p) && clt_nfa_ok(&p->nfa); skip_space(p, true)) read_rule(p);
    *root = rule_of(p, "root", 4);
    if (p->status == CLT_OK) p->status = clt_nfa_check(&p->nfa, what, p->err);
    for (uint32_t r = 0; r < p->nfa.n_rules && p->status == CLT_OK; r++) {
        const clt_nfa_rule *rule = &p->nfa.rules[r];
        if (rule->start != CLT_NONE || rule->body != CLT_NONE || rule->fixed != CLT_NONE) continue;
        if (r == *root) p->status = clt_fail(p->err, CLT_E_REQUEST, "grammar: there is no rule \"root\"");
        else p->status = clt_fail(p->err, CLT_E_REQUEST, "grammar: rule \"%s\" is used but not defined", rule->name);
    }
    return p->status;
}

clt_status clt_grammar_from_gbnf(const char *text, size_t len, clt_grammar **out, clt_err *err) {
    parser p = {.s = text, .n = len, .err = err};
    uint32_t root = 0;
    *out = NULL;
    clt_status status = clt_nfa_init(&p.nfa) ? read_all(&p, &root) : clt_fail_memory(err, "grammar", len);
    clt_free(p.names);
    if (status == CLT_OK) return clt_grammar_compile(&p.nfa, root, "grammar", out, err);
    clt_nfa_free(&p.nfa);
    return status;
}
