/* Checks on JSON text that the libraries leave out or make differently: encoding, depth, surrogate escapes, NUL bytes
 * (which jansson takes for the end). */
#include "base/json_check.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "base/utf8.h"

/* The value of the four hex digits at s, or 0 if they are not. No surrogate is 0, so 0 can stand for "none". */
static unsigned hex4(const char *s, size_t n) {
    unsigned value = 0;
    if (n < 4) return 0;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        unsigned digit;
        if (c >= '0' && c <= '9') digit = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f') digit = (unsigned)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F') digit = (unsigned)(c - 'A') + 10;
        else return 0;
        value = value << 4 | digit;
    }
    return value;
}

/* Bytes of the escape at s (s[0] is the backslash), or 0 if it is half a surrogate pair. */
static size_t escape_len(const char *s, size_t n) {
    if (n < 2 || s[1] != 'u') return n < 2 ? n : 2;
    unsigned first = hex4(s + 2, n - 2);
    if (first < 0xD800 || first > 0xDFFF) return n < 6 ? n : 6;
    if (first >= 0xDC00 || n < 12 || s[6] != '\\' || s[7] != 'u') return 0;
    unsigned second = hex4(s + 8, n - 8);
    return second >= 0xDC00 && second <= 0xDFFF ? 12 : 0;
}

/* Index after the string whose opening quote is at s[i], or 0 if it holds half a surrogate pair. */
static size_t skip_string(const char *s, size_t n, size_t i) {
    for (i++; i < n && s[i] != '"';) {
        if (s[i] != '\\') {
            i++;
            continue;
        }
        size_t len = escape_len(s + i, n - i);
        if (len == 0) return 0;
        i += len;
    }
    return i < n ? i + 1 : n;
}

clt_status clt_json_check(const char *text, size_t len, const char *what, clt_err *err) {
    size_t depth = 0;
    if (!clt_utf8_valid(text, len)) return clt_fail(err, CLT_E_REQUEST, "%s: not valid JSON: not UTF-8", what);
    for (size_t i = 0; i < len;) {
        char c = text[i];
        if (c == '"') {
            size_t after = skip_string(text, len, i);
            if (after == 0)
                return clt_fail(err, CLT_E_REQUEST, "%s: not valid JSON: half a surrogate pair in the string at byte %zu",
                                what, i);
            i = after;
            continue;
        }
        if (c == 0) return clt_fail(err, CLT_E_REQUEST, "%s: not valid JSON: a NUL at byte %zu", what, i);
        if ((c == '[' || c == '{') && ++depth > CLT_JSON_MAX_DEPTH)
            return clt_fail(err, CLT_E_REQUEST, "%s: nested deeper than %d at byte %zu", what, CLT_JSON_MAX_DEPTH, i);
        if ((c == ']' || c == '}') && depth > 0) depth--;
        i++;
    }
    return CLT_OK;
}
