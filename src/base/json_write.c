/* The JSON writer: values in, text out, commas placed. Needs no library. A failure is the buffer's `failed`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/utf8.h"

enum { MAX_DEPTH = 64 }; /* one bit of has_item per level */

/* Writes the comma that is due before a value or key and remembers that the next one needs it. */
static void begin_item(clt_jsonw *w) {
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->depth == 0) return;
    uint64_t bit = UINT64_C(1) << (w->depth - 1);
    if (w->has_item & bit) clt_buf_putc(w->out, ',');
    w->has_item |= bit;
}

void clt_jsonw_open(clt_jsonw *w, char bracket) {
    begin_item(w);
    if (w->depth == MAX_DEPTH) {
        w->out->failed = true;
        return;
    }
    clt_buf_putc(w->out, bracket);
    w->depth++;
    w->has_item &= ~(UINT64_C(1) << (w->depth - 1));
}

void clt_jsonw_close(clt_jsonw *w, char bracket) {
    clt_buf_putc(w->out, bracket);
    if (w->depth > 0) w->depth--;
    w->after_key = false;
}

static void put_escaped_byte(clt_buf *out, unsigned char c) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    const char *at = c ? strchr(from, c) : NULL;
    if (at) {
        const char escape[] = {'\\', to[at - from]};
        clt_buf_put(out, escape, sizeof escape);
    } else {
        clt_buf_printf(out, "\\u%04x", c);
    }
}

/* Writes a quoted string whose bytes are known to be UTF-8. */
static void put_quoted(clt_buf *out, const char *s, size_t len) {
    size_t plain = 0; /* start of the bytes that need no escape and are not yet written */
    clt_buf_putc(out, '"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        clt_buf_put(out, s + plain, i - plain);
        put_escaped_byte(out, c);
        plain = i + 1;
    }
    clt_buf_put(out, s + plain, len - plain);
    clt_buf_putc(out, '"');
}

static void put_string(clt_buf *out, const char *s, size_t len) {
    if (clt_utf8_valid(s, len)) {
        put_quoted(out, s, len);
        return;
    }
    clt_buf repaired = {0};
    clt_utf8_repair(&repaired, s, len);
    if (repaired.failed) out->failed = true;
    else put_quoted(out, repaired.data, repaired.len);
    clt_buf_free(&repaired);
}

void clt_jsonw_key(clt_jsonw *w, const char *key) {
    begin_item(w);
    put_string(w->out, key, strlen(key));
    clt_buf_putc(w->out, ':');
    w->after_key = true;
}

void clt_jsonw_str(clt_jsonw *w, const char *s, size_t len) {
    begin_item(w);
    put_string(w->out, len ? s : "", len);
}

void clt_jsonw_cstr(clt_jsonw *w, const char *s) {
    if (s) clt_jsonw_str(w, s, strlen(s));
    else clt_jsonw_null(w);
}

void clt_jsonw_int(clt_jsonw *w, int64_t v) {
    begin_item(w);
    clt_buf_printf(w->out, "%lld", (long long)v);
}

void clt_jsonw_num(clt_jsonw *w, double v) {
    char text[40];
    if (!isfinite(v)) {
        clt_jsonw_null(w);
        return;
    }
    begin_item(w);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v) break;
    }
    char *comma = strchr(text, ','); /* a decimal comma of the user's locale */
    if (comma) *comma = '.';
    if (v == 0 && signbit(v)) strcpy(text, "-0.0"); /* "-0" would read back as the integer 0 */
    clt_buf_puts(w->out, text);
}

void clt_jsonw_bool(clt_jsonw *w, bool v) {
    begin_item(w);
    clt_buf_puts(w->out, v ? "true" : "false");
}

void clt_jsonw_null(clt_jsonw *w) {
    begin_item(w);
    clt_buf_puts(w->out, "null");
}

void clt_jsonw_raw(clt_jsonw *w, const char *json, size_t len) {
    begin_item(w);
    clt_buf_put(w->out, json, len);
}
