/* Numbers: a free one, or one within bounds or in steps, as an automaton over its digits.
 *
 * The automaton reads digits from the left and remembers how what it has read compares with the digits of each bound, how
 * many digits there were, and the remainder by the step. Bounds are taken as decimals, so nothing is rounded. Numbers have
 * at most 18 digits before the point (15 without bounds) and 16 behind it, no exponent where there are bounds, and no zeros
 * that say nothing in front. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "grammar/schema.h"

enum { MOST_WHOLE = 18, MOST_PART = 16, MOST_STEP = 1000, MAX_DIGITS = 360 };

typedef struct decimal { /* digits of a magnitude */
    char whole[MAX_DIGITS], part[MAX_DIGITS]; /* part: without zeros at its end */
    int n_whole, n_part;
    bool negative, given, strict;
    double value;
} decimal;

typedef struct range { /* of magnitudes, for one sign */
    const decimal *low, *high; /* NULL: none */
} range;

typedef struct writer {
    clt_schema *s;
    range r;
    uint32_t step;      /* value * 10^places is a multiple of it; 0 = none */
    int places;         /* digits behind the point at most */
    uint32_t to;
    uint32_t *known;    /* states by what they remember; CLT_NONE: not made */
} writer;

typedef struct digits { /* what has been read */
    int n;              /* digits before the point; behind it once `point` is set */
    bool point, zero;   /* zero: the only digit before the point was 0 */
    int low, high;      /* -1, 0, 1: below, as, above the bound's first digits */
    uint32_t rest;      /* by the step */
} digits;

/* ---- bounds as decimals ---- */

static void read_decimal(double value, decimal *d) {
    char text[400];
    int digits_needed = 15;
    for (; digits_needed < 17; digits_needed++) { /* the shortest text that means this number, as people write it */
        snprintf(text, sizeof text, "%.*e", digits_needed - 1, value);
        if (strtod(text, NULL) == value) break;
    }
    snprintf(text, sizeof text, "%.*e", digits_needed - 1, fabs(value));
    char mantissa[24] = {0};
    int n = 0, exponent = atoi(strchr(text, 'e') + 1);
    for (const char *p = text; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9') mantissa[n++] = *p;
    *d = (decimal){.negative = value < 0, .given = true, .value = value};
    for (int i = 0; i <= exponent && i < MAX_DIGITS; i++) d->whole[d->n_whole++] = i < n ? mantissa[i] : '0';
    if (exponent < 0) d->whole[d->n_whole++] = '0';
    for (int i = exponent + 1; i < n && d->n_part < MAX_DIGITS; i++) d->part[d->n_part++] = i < 0 ? '0' : mantissa[i];
    while (d->n_part && d->part[d->n_part - 1] == '0') d->n_part--;
}

/* The tightest bound that the keys give. */
static bool read_bound(clt_schema *s, const clt_together *all, bool lower, const char *path, decimal *out) {
    static const char *const keys[2][2] = {{"maximum", "exclusiveMaximum"}, {"minimum", "exclusiveMinimum"}};
    for (int strict = 0; strict < 2; strict++) {
        const char *key = keys[lower][strict];
        for (int i = clt_together_find(all, key, 0); i >= 0; i = clt_together_find(all, key, (uint32_t)i + 1)) {
            const clt_json *node = clt_json_get(all->node[i], key);
            double value;
            if (!clt_json_num(node, &value))
                return clt_schema_fail(s, path, key, "expected a number, found %s", clt_json_kind_name(clt_json_kind(node)));
            bool tighter = !out->given || (lower ? value > out->value : value < out->value) ||
                           (value == out->value && strict);
            if (!tighter) continue;
            read_decimal(value, out);
            out->strict = strict;
        }
    }
    return true;
}

/* multipleOf as a whole number of steps of 10^-places. */
static bool read_step(clt_schema *s, const clt_together *all, const char *path, uint32_t *step, int *places) {
    int at = clt_together_find(all, "multipleOf", 0);
    double value;
    decimal d;
    if (at < 0) return true;
    if (clt_together_find(all, "multipleOf", (uint32_t)at + 1) >= 0)
        return clt_schema_fail(s, path, "multipleOf", "two of them for one place cannot be honoured");
    if (!clt_json_num(clt_json_get(all->node[at], "multipleOf"), &value) || value <= 0)
        return clt_schema_fail(s, path, "multipleOf", "expected a number above 0");
    read_decimal(value, &d);
    uint64_t whole = 0;
    for (int i = 0; i < d.n_whole && whole <= MOST_STEP; i++) whole = whole * 10 + (uint64_t)(d.whole[i] - '0');
    for (int i = 0; i < d.n_part && whole <= MOST_STEP; i++) whole = whole * 10 + (uint64_t)(d.part[i] - '0');
    if (whole == 0 || whole > MOST_STEP || d.n_part > 9)
        return clt_schema_fail(s, path, "multipleOf", "%g has too many digits to be honoured", value);
    *step = (uint32_t)whole;
    *places = d.n_part;
    return true;
}

/* ---- the automaton ---- */

static int compare_digit(const decimal *d, int so_far, int n, bool point, char digit) {
    if (!d || so_far != 0) return so_far;
    char other = point ? (n < d->n_part ? d->part[n] : '0') : (n < d->n_whole ? d->whole[n] : '0');
    return digit < other ? -1 : digit > other;
}

/* How the digits before the point compare once they are all there: more digits are more. */
static int compare_whole(const decimal *d, int so_far, int n) {
    if (!d) return 0;
    return n != d->n_whole ? (n < d->n_whole ? -1 : 1) : so_far;
}

static digits end_whole(const writer *w, digits d) {
    d.low = compare_whole(w->r.low, d.low, d.n);
    d.high = compare_whole(w->r.high, d.high, d.n);
    d.point = true;
    d.n = 0;
    return d;
}

static bool may_end(const writer *w, digits d) {
    if (!d.point) d = end_whole(w, d);
    if (d.low == 0 && w->r.low) d.low = w->r.low->n_part > d.n ? -1 : 0;
    if (d.high == 0 && w->r.high) d.high = w->r.high->n_part > d.n ? -1 : 0;
    if (w->r.low && (d.low < 0 || (d.low == 0 && w->r.low->strict))) return false;
    if (w->r.high && (d.high > 0 || (d.high == 0 && w->r.high->strict))) return false;
    if (!w->step) return true;
    uint64_t rest = d.rest;
    for (int i = d.n; i < w->places; i++) rest = rest * 10 % w->step;
    return rest == 0;
}

static uint32_t state_of(writer *w, digits d, bool *fresh) {
    size_t compared = (size_t)(3 * (d.low + 1) + d.high + 1);
    size_t at = ((((size_t)d.point * 2 + d.zero) * (MOST_WHOLE + 1) + (size_t)d.n) * 9 + compared) *
                    (w->step ? w->step : 1) + d.rest;
    *fresh = w->known[at] == CLT_NONE;
    if (*fresh) w->known[at] = clt_nfa_state(&w->s->nfa);
    return w->known[at];
}

static size_t states_at_most(const writer *w) {
    return (size_t)4 * (MOST_WHOLE + 1) * 9 * (w->step ? w->step : 1);
}

/* Writes what follows some digits. Recurses once per digit at most. */
static void write_from(writer *w, digits d, uint32_t at) {
    clt_nfa *n = &w->s->nfa;
    bool fresh;
    if (may_end(w, d)) clt_nfa_empty(n, at, w->to);
    bool more = d.point ? d.n < w->places : d.n < MOST_WHOLE && !d.zero;
    for (char c = '0'; c <= '9' && more && clt_nfa_ok(n); c++) {
        digits next = d;
        next.low = compare_digit(w->r.low, d.low, d.n, d.point, c);
        next.high = compare_digit(w->r.high, d.high, d.n, d.point, c);
        next.rest = w->step ? (d.rest * 10 + (uint32_t)(c - '0')) % w->step : 0;
        next.n++;
        uint32_t to = state_of(w, next, &fresh);
        clt_nfa_bytes(n, at, (uint8_t)c, (uint8_t)c, CLT_PLAIN, to);
        if (fresh) write_from(w, next, to);
    }
    if (d.point || w->places == 0 || !clt_nfa_ok(n)) return;
    digits next = end_whole(w, d);
    next.zero = false;
    uint32_t point = clt_nfa_state(n); /* a digit must follow, so it is no state that may end */
    clt_nfa_bytes(n, at, '.', '.', CLT_PLAIN, point);
    for (char c = '0'; c <= '9' && clt_nfa_ok(n); c++) {
        digits first = next;
        first.low = compare_digit(w->r.low, next.low, 0, true, c);
        first.high = compare_digit(w->r.high, next.high, 0, true, c);
        first.rest = w->step ? (next.rest * 10 + (uint32_t)(c - '0')) % w->step : 0;
        first.n = 1;
        uint32_t to = state_of(w, first, &fresh);
        clt_nfa_bytes(n, point, (uint8_t)c, (uint8_t)c, CLT_PLAIN, to);
        if (fresh) write_from(w, first, to);
    }
}

/* Numbers of one sign. */
static void write_magnitudes(writer *w, range r, bool zero, uint32_t from) {
    bool fresh;
    w->r = r;
    memset(w->known, 0xFF, states_at_most(w) * sizeof *w->known);
    for (char c = zero ? '0' : '1'; c <= '9' && clt_schema_ok(w->s); c++) {
        digits d = {.n = 1, .zero = c == '0', .low = compare_digit(r.low, 0, 0, false, c),
                    .high = compare_digit(r.high, 0, 0, false, c), .rest = w->step ? (uint32_t)(c - '0') % w->step : 0};
        uint32_t to = state_of(w, d, &fresh);
        clt_nfa_bytes(&w->s->nfa, from, (uint8_t)c, (uint8_t)c, CLT_PLAIN, to);
        if (fresh) write_from(w, d, to);
    }
}

static bool is_zero(const decimal *d) {
    return d->n_part == 0 && d->n_whole == 1 && d->whole[0] == '0';
}

static void write_bounded(clt_schema *s, bool integer, const decimal *low, const decimal *high, uint32_t step, int places,
                          clt_part part) {
    writer w = {.s = s, .step = step, .to = part.end};
    uint32_t from = part.start;
    w.places = integer ? 0 : step ? places : MOST_PART;
    w.known = clt_calloc(states_at_most(&w), sizeof *w.known);
    if (!w.known) {
        s->nfa.no_memory = true;
        return;
    }
    bool low_negative = low && low->negative && !is_zero(low), high_negative = high && high->negative && !is_zero(high);
    if (!high_negative) write_magnitudes(&w, (range){low && !low_negative ? low : NULL, high}, true, from);
    if (!low || low_negative) { /* magnitudes run the other way; "-0.5" begins with a zero, "-0" says nothing */
        uint32_t minus = clt_nfa_state(&s->nfa);
        clt_nfa_bytes(&s->nfa, from, '-', '-', CLT_PLAIN, minus);
        write_magnitudes(&w, (range){high_negative ? high : NULL, low_negative ? low : NULL}, !integer, minus);
    }
    clt_free(w.known);
}

/* ---- numbers without bounds ---- */

static void write_free(clt_schema *s, bool integer, const char *path, clt_part part) {
    static const char whole[] = "0|-?[1-9][0-9]{0,14}";
    static const char real[] = "-?(0|[1-9][0-9]{0,14})(\\.[0-9]{1,16})?([eE][+-]?[0-9]{1,2})?";
    const char *text = integer ? whole : real;
    clt_status status = clt_regex_plain(&s->nfa, text, strlen(text), part.start, part.end, path, s->err);
    if (status != CLT_OK) s->status = status;
}

/* "int32" and the like bound a number as well as a key would. */
static void read_format(const clt_together *all, decimal *low, decimal *high) {
    int at = clt_together_find(all, "format", 0);
    const char *format = at >= 0 ? clt_json_str(clt_json_get(all->node[at], "format"), NULL) : NULL;
    if (!format || strcmp(format, "int32") != 0) return;
    if (!low->given) read_decimal(-2147483648.0, low);
    if (!high->given) read_decimal(2147483647.0, high);
}

void clt_schema_number(clt_schema *s, const clt_together *all, bool integer, const char *path, uint32_t from, uint32_t to) {
    decimal low = {0}, high = {0};
    uint32_t step = 0;
    int places = 0;
    if (!read_bound(s, all, true, path, &low) || !read_bound(s, all, false, path, &high) ||
        !read_step(s, all, path, &step, &places))
        return;
    read_format(all, &low, &high);
    if (low.given && high.given && (low.value > high.value || (low.value == high.value && (low.strict || high.strict)))) {
        clt_schema_fail(s, path, low.strict ? "exclusiveMinimum" : "minimum", "no number is left between %g and %g",
                        low.value, high.value);
        return;
    }
    /* A rule of its own: many digits may be the last one, and each would have to know all that can follow. */
    bool is_free = !low.given && !high.given && !step;
    uint32_t rule = is_free ? s->number[integer] : 0;
    clt_part part = {0};
    if (!rule) {
        rule = clt_nfa_rule_new(&s->nfa, NULL, 0);
        part = (clt_part){clt_nfa_state(&s->nfa), clt_nfa_state(&s->nfa)};
        clt_nfa_define(&s->nfa, rule, part);
        if (is_free) write_free(s, integer, path, part);
    }
    clt_nfa_call(&s->nfa, from, (clt_call){rule, 0, CLT_MANY}, to);
    if (is_free) s->number[integer] = rule;
    if (is_free) return;
    if (integer && places > 0) { /* 2.5 * n is whole for n = 2, 4, …: steps of 5 */
        uint32_t tens = 1;
        while (places-- > 0) tens *= 10;
        uint32_t a = step, b = tens;
        while (b) {
            uint32_t rest = a % b;
            a = b;
            b = rest;
        }
        step /= a;
        places = 0;
    }
    write_bounded(s, integer, low.given ? &low : NULL, high.given ? &high : NULL, step, places, part);
}
