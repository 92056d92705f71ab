/* UTF-8: decode, check, repair, trim. One scanner knows the well-formed sequences (Unicode 15, table 3-7). */
#include "base/utf8.h"
#include <string.h>

typedef enum scan_end { WHOLE, BROKEN, CUT_SHORT } scan_end; /* CUT_SHORT: well-formed so far, the input ends */

/* Reads one sequence at s[0..n), n > 0. Returns its bytes, or those of the maximal ill-formed subpart (>= 1). */
static size_t scan(const unsigned char *s, size_t n, uint32_t *cp, scan_end *end) {
    unsigned char lead = s[0], low = 0x80, high = 0xBF; /* bounds of the second byte */
    size_t need;
    *cp = lead;
    *end = WHOLE;
    if (lead < 0x80) return 1;
    *end = BROKEN;
    if (lead < 0xC2 || lead > 0xF4) return 1;
    if (lead < 0xE0) need = 2;
    else if (lead < 0xF0) need = 3;
    else need = 4;
    if (lead == 0xE0) low = 0xA0;       /* shorter forms exist below */
    else if (lead == 0xED) high = 0x9F; /* surrogates above */
    else if (lead == 0xF0) low = 0x90;
    else if (lead == 0xF4) high = 0x8F; /* beyond U+10FFFF above */
    uint32_t value = lead & (0x7Fu >> need);
    for (size_t i = 1; i < need; i++) {
        if (i == n) {
            *end = CUT_SHORT;
            return i;
        }
        if (s[i] < low || s[i] > high) return i;
        value = value << 6 | (s[i] & 0x3F);
        low = 0x80;
        high = 0xBF;
    }
    *cp = value;
    *end = WHOLE;
    return need;
}

size_t clt_utf8_decode(const char *s, size_t n, uint32_t *cp) {
    scan_end end;
    uint32_t value;
    if (n == 0) return 0;
    size_t len = scan((const unsigned char *)s, n, &value, &end);
    if (end != WHOLE) return 0;
    *cp = value;
    return len;
}

size_t clt_utf8_encode(uint32_t cp, char out[4]) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) return 0;
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

/* Bytes of the ASCII run at s, counted in steps of eight: most text is ASCII. */
static size_t ascii_run(const char *s, size_t n) {
    size_t i = 0;
    for (uint64_t word; n - i >= sizeof word; i += sizeof word) {
        memcpy(&word, s + i, sizeof word);
        if (word & UINT64_C(0x8080808080808080)) break;
    }
    return i;
}

bool clt_utf8_valid(const char *s, size_t n) {
    uint32_t cp;
    for (size_t i = 0; i < n;) {
        i += ascii_run(s + i, n - i);
        if (i == n) break;
        size_t len = clt_utf8_decode(s + i, n - i, &cp);
        if (len == 0) return false;
        i += len;
    }
    return true;
}

size_t clt_utf8_complete(const char *s, size_t n) {
    uint32_t cp;
    scan_end end;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char lead = (unsigned char)s[n - back];
        if (lead < 0x80) break;
        if (lead < 0xC0) continue;
        size_t len = scan((const unsigned char *)s + n - back, back, &cp, &end);
        return end == CUT_SHORT && len == back ? n - back : n;
    }
    return n;
}

void clt_utf8_repair(clt_buf *out, const char *s, size_t n) {
    if (n == 0) s = ""; /* NULL is fine for no bytes */
    size_t good = 0; /* start of the bytes that are well-formed and not yet appended */
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        scan_end end;
        size_t len = scan((const unsigned char *)s + i, n - i, &cp, &end);
        if (end != WHOLE) {
            clt_buf_put(out, s + good, i - good);
            clt_buf_puts(out, "\xEF\xBF\xBD");
            good = i + len;
        }
        i += len;
    }
    clt_buf_put(out, s + good, n - good);
}

bool clt_utf8_is_space(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= 0x09 && cp <= 0x0D) || (cp >= 0x1C && cp <= 0x1F);
    return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

/* Bytes of the white-space character that ends s[0..n), or 0. */
static size_t space_before(const char *s, size_t n) {
    uint32_t cp;
    for (size_t back = 1; back <= 4 && back <= n; back++) {
        if (((unsigned char)s[n - back] & 0xC0) == 0x80) continue;
        return clt_utf8_decode(s + n - back, back, &cp) == back && clt_utf8_is_space(cp) ? back : 0;
    }
    return 0;
}

void clt_utf8_trim(const char **s, size_t *n) {
    uint32_t cp;
    for (size_t len; (len = clt_utf8_decode(*s, *n, &cp)) > 0 && clt_utf8_is_space(cp);) {
        *s += len;
        *n -= len;
    }
    for (size_t len; (len = space_before(*s, *n)) > 0;) *n -= len;
}
