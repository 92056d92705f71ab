/* Sets of code points, and how they are written as bytes: plain UTF-8, or escaped as inside a JSON string. */
#include <stdlib.h>
#include "base/utf8.h"
#include "grammar/impl.h"

enum { LAST = 0x10FFFF, SURROGATES = 0xD800, AFTER_SURROGATES = 0xE000 };

void clt_points_add(clt_points *p, uint32_t lo, uint32_t hi) {
    if (hi > LAST) hi = LAST;
    if (lo > hi || p->failed) return;
    if (!CLT_ROOM(p->ranges, p->cap, p->n + 1)) {
        p->failed = true;
        return;
    }
    p->ranges[p->n].lo = lo;
    p->ranges[p->n++].hi = hi;
}

void clt_points_free(clt_points *p) {
    clt_free(p->ranges);
    *p = (clt_points){0};
}

static int compare_ranges(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b; /* lo comes first in a range */
    return x < y ? -1 : x > y;
}

void clt_points_settle(clt_points *p) {
    size_t kept = 0;
    if (p->n == 0) return;
    qsort(p->ranges, p->n, sizeof *p->ranges, compare_ranges);
    for (size_t i = 1; i < p->n; i++) {
        if (p->ranges[i].lo <= p->ranges[kept].hi + 1) {
            if (p->ranges[i].hi > p->ranges[kept].hi) p->ranges[kept].hi = p->ranges[i].hi;
        } else {
            p->ranges[++kept] = p->ranges[i];
        }
    }
    p->n = kept + 1;
}

void clt_points_negate(clt_points *p) {
    clt_points other = {0};
    uint32_t from = 0;
    clt_points_settle(p);
    for (size_t i = 0; i < p->n; i++) {
        if (p->ranges[i].lo > from) clt_points_add(&other, from, p->ranges[i].lo - 1);
        from = p->ranges[i].hi + 1;
    }
    if (from <= LAST) clt_points_add(&other, from, LAST);
    other.failed |= p->failed;
    clt_points_free(p);
    *p = other;
}

/* ---- as bytes ---- */

typedef struct target {
    clt_nfa *n;
    uint32_t from, to;
    clt_edge_kind kind; /* of the first byte */
} target;

static void put_sequence(const target *t, const char *lo, const char *hi, size_t len) {
    uint32_t at = t->from;
    for (size_t i = 0; i < len; i++) {
        uint32_t next = i + 1 == len ? t->to : clt_nfa_state(t->n);
        clt_nfa_bytes(t->n, at, (uint8_t)lo[i], (uint8_t)hi[i], i == 0 ? t->kind : CLT_PLAIN, next);
        at = next;
    }
}

/* A range whose ends have the same length in UTF-8. It is cut until all bytes behind the first that differs are free. */
static void put_range(const target *t, uint32_t lo, uint32_t hi) {
    char first[4], last[4];
    size_t len = clt_utf8_encode(lo, first);
    clt_utf8_encode(hi, last);
    for (size_t tail = len - 1; tail > 0; tail--) {
        uint32_t free_bits = (UINT32_C(1) << 6 * tail) - 1;
        if ((lo & ~free_bits) == (hi & ~free_bits)) continue;
        if (lo & free_bits) {
            put_range(t, lo, lo | free_bits);
            put_range(t, (lo | free_bits) + 1, hi);
            return;
        }
        if ((hi & free_bits) != free_bits) {
            put_range(t, lo, (hi & ~free_bits) - 1);
            put_range(t, hi & ~free_bits, hi);
            return;
        }
    }
    put_sequence(t, first, last, len);
}

static void put_utf8(const target *t, uint32_t lo, uint32_t hi) {
    static const uint32_t ends[] = {0x7F, 0x7FF, SURROGATES - 1, 0xFFFF, LAST};
    for (size_t i = 0; i < sizeof ends / sizeof *ends && lo <= hi; i++) {
        if (lo >= SURROGATES && lo < AFTER_SURROGATES) lo = AFTER_SURROGATES;
        if (lo > ends[i] || lo > hi) continue;
        put_range(t, lo, hi < ends[i] ? hi : ends[i]);
        lo = ends[i] + 1;
    }
}

/* Whether a character may not stand in a string as it is; `out`: how it is written then. */
static size_t escape(uint32_t c, clt_spelling spelling, char out[8]) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", hex[] = "0123456789abcdef";
    if (spelling != CLT_SPELL_JSON || (c >= 0x20 && c != '"' && c != '\\')) return 0;
    const char *known = c ? strchr(from, (int)c) : NULL;
    memcpy(out, "\\u0000", 7);
    out[4] = hex[c >> 4 & 15];
    out[5] = hex[c & 15];
    if (known) out[1] = to[known - from];
    return known ? 2 : 6;
}

void clt_nfa_points(clt_nfa *n, uint32_t from, const clt_points *p, clt_spelling spelling, clt_edge_kind kind, uint32_t to) {
    target t = {n, from, to, kind};
    char text[8];
    if (p->failed) n->no_memory = true;
    for (size_t i = 0; i < p->n && clt_nfa_ok(n); i++) {
        uint32_t lo = p->ranges[i].lo, hi = p->ranges[i].hi, plain = lo;
        if (spelling == CLT_SPELL_CALL && lo == 0) plain = lo = 1; /* no reader of calls keeps a NUL */
        for (uint32_t c = lo; c <= hi && c < 0x80; c++) {
            size_t len = escape(c, spelling, text);
            if (len == 0) continue;
            if (plain < c) put_utf8(&t, plain, c - 1);
            put_sequence(&t, text, text, len);
            plain = c + 1;
        }
        if (plain <= hi) put_utf8(&t, plain, hi);
    }
}

void clt_spell(clt_buf *out, const char *s, size_t len, clt_spelling spelling) {
    char text[8];
    for (size_t i = 0; i < len; i++) {
        size_t n = escape((uint8_t)s[i], spelling, text);
        if (n) clt_buf_put(out, text, n);
        else clt_buf_putc(out, s[i]);
    }
}
