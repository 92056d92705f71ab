/* JSON values as the chat templates print them.
 *
 * In: JSON nodes. Out: prompt text, byte for byte what Jinja (in Python) makes of them: dictsort, truth, str() of numbers.
 * It knows nothing of messages, turns or schemas. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "base/utf8.h"
#include "text/casing.h"
#include "text/chat_impl.h"

/* ---- dictsort ---- */

static uint32_t next_lower(const char **s, size_t *n) {
    uint32_t cp = (unsigned char)**s; /* keys are UTF-8: the parser refuses others */
    size_t len = clt_utf8_decode(*s, *n, &cp);
    if (len == 0) len = 1;
    *s += len;
    *n -= len;
    return clt_case_lower(cp);
}

static int compare_entries(const void *a, const void *b) {
    const clt_chat_entry *x = a, *y = b;
    const char *s = x->key, *t = y->key;
    size_t n = x->key_len, m = y->key_len;
    while (n && m) {
        uint32_t c = next_lower(&s, &n), d = next_lower(&t, &m);
        if (c != d) return c < d ? -1 : 1;
    }
    if (n || m) return n ? 1 : -1;
    return x->order < y->order ? -1 : x->order > y->order; /* a stable sort, as Python's */
}

clt_status clt_chat_sort(const clt_json *const *objects, size_t n, clt_chat_entry **out, size_t *count, clt_err *err) {
    size_t total = 0;
    *out = NULL;
    *count = 0;
    for (size_t i = 0; i < n; i++) total += clt_json_len(objects[i]);
    if (total == 0) return CLT_OK;
    clt_chat_entry *entries = clt_calloc(total, sizeof *entries);
    if (!entries) return clt_fail_memory(err, "sorted keys", total * sizeof *entries);
    for (size_t i = 0; i < n; i++) {
        clt_chat_entry e = {0};
        for (void *iter = NULL; clt_json_next(objects[i], &iter, &e.key, &e.key_len, &e.value);) {
            bool hidden = false;
            for (size_t before = 0; before < i && !hidden; before++) hidden = clt_json_get(objects[before], e.key) != NULL;
            e.order = *count;
            if (!hidden) entries[(*count)++] = e;
        }
    }
    clt_status status = CLT_OK;
    for (size_t i = 0; i < *count && *count > 1 && status == CLT_OK; i++)
        status = clt_case_check(entries[i].key, entries[i].key_len, err);
    if (status != CLT_OK) {
        clt_free(entries);
        *count = 0;
        return status;
    }
    qsort(entries, *count, sizeof *entries, compare_entries);
    *out = entries;
    return CLT_OK;
}

/* ---- scalars ---- */

bool clt_chat_truthy(const clt_json *n) {
    double number;
    size_t len;
    switch (clt_json_kind(n)) {
    case CLT_JSON_NULL: return false;
    case CLT_JSON_BOOL: return clt_json_is_true(n);
    case CLT_JSON_INT:
    case CLT_JSON_REAL: return clt_json_num(n, &number) && number != 0;
    case CLT_JSON_STRING: return clt_json_str(n, &len) && len > 0;
    case CLT_JSON_ARRAY:
    case CLT_JSON_OBJECT: break;
    }
    return clt_json_len(n) > 0;
}

bool clt_chat_is_scalar(const clt_json *n) {
    clt_json_type kind = clt_json_kind(n);
    return kind != CLT_JSON_ARRAY && kind != CLT_JSON_OBJECT;
}

/* repr() of a Python float: the shortest digits that read back equal, an exponent from 1e16 and below 1e-4. */
static void put_float(double v, clt_buf *out) {
    char text[40], digits[24];
    size_t n = 0;
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, v);
        if (strtod(text, NULL) == v) break;
    }
    char *e = strchr(text, 'e');
    if (!e) return; /* not finite: no JSON document holds that */
    for (char *s = text; s < e; s++) {
        if (isdigit((unsigned char)*s)) digits[n++] = *s; /* the separator depends on the locale */
    }
    while (n > 1 && digits[n - 1] == '0') n--;
    int exponent = atoi(e + 1);
    if (signbit(v)) clt_buf_putc(out, '-');
    if (exponent < -4 || exponent >= 16) {
        clt_buf_putc(out, digits[0]);
        if (n > 1) clt_buf_putc(out, '.');
        clt_buf_put(out, digits + 1, n - 1);
        clt_buf_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) {
        clt_buf_puts(out, "0.");
        for (int i = -1; i > exponent; i--) clt_buf_putc(out, '0');
        clt_buf_put(out, digits, n);
        return;
    }
    for (size_t i = 0; i <= (size_t)exponent; i++) clt_buf_putc(out, i < n ? digits[i] : '0');
    clt_buf_putc(out, '.');
    if (n > (size_t)exponent + 1) clt_buf_put(out, digits + exponent + 1, n - (size_t)exponent - 1);
    else clt_buf_putc(out, '0');
}

static void put_upper(const char *s, size_t n, clt_buf *out) {
    for (size_t len; n > 0; s += len, n -= len) {
        uint32_t cp;
        char utf8[4];
        len = clt_utf8_decode(s, n, &cp);
        if (len == 0) return;
        clt_buf_put(out, utf8, clt_utf8_encode(clt_case_upper(cp), utf8));
    }
}

void clt_chat_scalar(const clt_json *n, bool upper, clt_buf *out) {
    int64_t integer;
    double real;
    size_t len;
    if (!n) return;
    switch (clt_json_kind(n)) {
    case CLT_JSON_NULL: clt_buf_puts(out, upper ? "NONE" : "None"); break;
    case CLT_JSON_BOOL:
        if (upper) clt_buf_puts(out, clt_json_is_true(n) ? "TRUE" : "FALSE");
        else clt_buf_puts(out, clt_json_is_true(n) ? "True" : "False");
        break;
    case CLT_JSON_INT:
        if (clt_json_int(n, &integer)) clt_buf_printf(out, "%lld", (long long)integer);
        break;
    case CLT_JSON_REAL: {
        size_t start = out->len;
        if (clt_json_num(n, &real)) put_float(real, out);
        char *e = upper && !out->failed ? memchr(out->data + start, 'e', out->len - start) : NULL;
        if (e) *e = 'E';
        break;
    }
    case CLT_JSON_STRING: {
        const char *s = clt_json_str(n, &len);
        if (upper) put_upper(s, len, out);
        else clt_buf_put(out, s, len);
        break;
    }
    case CLT_JSON_ARRAY:
    case CLT_JSON_OBJECT: break;
    }
}

void clt_chat_put_scalar(clt_chat_render_state *r, const clt_json *n, bool upper) {
    size_t len;
    const char *s = clt_json_str(n, &len);
    if (s && !upper) {
        clt_prompt_put_text(r->out, s, len);
        return;
    }
    clt_buf text = {0};
    clt_chat_scalar(n, upper, &text);
    if (text.failed) r->out->text.failed = true;
    else clt_prompt_put_text(r->out, text.data, text.len);
    clt_buf_free(&text);
}

/* ---- the notation of tool arguments ---- */

static clt_status put_object(clt_chat_render_state *r, const clt_json *object, bool quote_keys) {
    clt_chat_entry *entries;
    size_t n;
    clt_status status = clt_chat_sort(&object, 1, &entries, &n, r->err);
    for (size_t i = 0; i < n && status == CLT_OK; i++) {
        if (i) clt_prompt_put_markup(r->out, ",");
        if (quote_keys) clt_prompt_put_markup(r->out, "<|\"|>");
        clt_prompt_put_text(r->out, entries[i].key, entries[i].key_len);
        clt_prompt_put_markup(r->out, quote_keys ? "<|\"|>:" : ":");
        status = clt_chat_put_value(r, entries[i].value, quote_keys);
    }
    clt_free(entries);
    return status;
}

clt_status clt_chat_put_members(clt_chat_render_state *r, const clt_json *object) {
    return put_object(r, object, false);
}

static clt_status put_array(clt_chat_render_state *r, const clt_json *array, bool quote_keys) {
    clt_prompt_put_markup(r->out, "[");
    for (size_t i = 0; i < clt_json_len(array); i++) {
        if (i) clt_prompt_put_markup(r->out, ",");
        clt_status status = clt_chat_put_value(r, clt_json_at(array, i), quote_keys);
        if (status != CLT_OK) return status;
    }
    clt_prompt_put_markup(r->out, "]");
    return CLT_OK;
}

clt_status clt_chat_put_value(clt_chat_render_state *r, const clt_json *n, bool quote_keys) {
    clt_status status = CLT_OK;
    switch (clt_json_kind(n)) {
    case CLT_JSON_STRING:
        clt_prompt_put_markup(r->out, "<|\"|>");
        clt_chat_put_scalar(r, n, false);
        clt_prompt_put_markup(r->out, "<|\"|>");
        break;
    case CLT_JSON_BOOL: clt_prompt_put_markup(r->out, clt_json_is_true(n) ? "true" : "false"); break;
    case CLT_JSON_OBJECT:
        clt_prompt_put_markup(r->out, "{");
        status = put_object(r, n, quote_keys);
        clt_prompt_put_markup(r->out, "}");
        break;
    case CLT_JSON_ARRAY: status = put_array(r, n, quote_keys); break;
    case CLT_JSON_NULL:
        if (r->features->prints_null) {
            clt_prompt_put_markup(r->out, "null");
            break;
        }
        clt_chat_put_scalar(r, n, false);
        break;
    case CLT_JSON_INT:
    case CLT_JSON_REAL: clt_chat_put_scalar(r, n, false); break;
    }
    return status;
}
