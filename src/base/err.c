/* Error texts: formats a failure once, where its facts are known. Knows the codes and their frames (HTTP, exit); prints
 * nothing and allocates nothing, so that a failed allocation can still be reported. */
#include "base/err.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {
#define X(code, name, http, exit) name,
    CLT_STATUS_MAP(X)
#undef X
};
static const int https[] = {
#define X(code, name, http, exit) http,
    CLT_STATUS_MAP(X)
#undef X
};
static const int exits[] = {
#define X(code, name, http, exit) exit,
    CLT_STATUS_MAP(X)
#undef X
};
enum { N_CODES = sizeof names / sizeof names[0] };

static clt_status known(clt_status code) {
    return (unsigned)code < N_CODES ? code : CLT_E_FAILED;
}

const char *clt_status_name(clt_status code) {
    return names[known(code)];
}

int clt_status_http(clt_status code) {
    return https[known(code)];
}

int clt_status_exit(clt_status code) {
    return exits[known(code)];
}

/* Ends a text that filled its buffer in "…", cut at a code point. */
static void mark_cut(char *text, size_t size) {
    static const char dots[] = "\xe2\x80\xa6";
    size_t at = size - sizeof dots;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80) at--;
    memcpy(text + at, dots, sizeof dots);
}

/* Replaces control bytes by <0xHH>; the result stays one line whatever names and strings of outside data hold. */
static void show_controls(char *text, size_t size) {
    static const char hex[] = "0123456789ABCDEF";
    size_t len = strlen(text);
    size_t extra = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7F) extra += 5;
    }
    if (extra == 0) return;
    size_t to = len + extra; /* one past the last byte, were there room for all */
    int cut = to >= size;
    for (size_t i = len; i-- > 0;) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != 0x7F) {
            if (--to < size) text[to] = (char)c;
            continue;
        }
        const char shown[] = {'<', '0', 'x', hex[c >> 4], hex[c & 15], '>'};
        for (int k = 5; k >= 0; k--)
            if (--to < size) text[to] = shown[k];
    }
    if (cut) mark_cut(text, size);
    else text[len + extra] = 0;
}

static void write_text(char *text, size_t size, const char *fmt, va_list args) {
    int n = vsnprintf(text, size, fmt, args);
    if (n < 0) text[0] = 0;
    else if ((size_t)n >= size) mark_cut(text, size);
    show_controls(text, size);
}

clt_status clt_fail(clt_err *err, clt_status code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    err->code = code;
    err->hint[0] = 0;
    write_text(err->text, sizeof err->text, fmt, args);
    va_end(args);
    return code;
}

clt_status clt_hint(clt_err *err, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    write_text(err->hint, sizeof err->hint, fmt, args);
    va_end(args);
    return err->code;
}

clt_status clt_fail_memory(clt_err *err, const char *what, unsigned long long bytes) {
    return clt_fail(err, CLT_E_MEMORY, "%s: cannot allocate %llu bytes", what, bytes);
}

clt_status clt_fail_not_built(clt_err *err, const char *feature, const char *package) {
    clt_fail(err, CLT_E_UNSUPPORTED, "%s: this culet was built without it", feature);
    return clt_hint(err, "install the package %s and build again", package);
}

void clt_err_clear(clt_err *err) {
    err->code = CLT_OK;
    err->text[0] = 0;
    err->hint[0] = 0;
}
