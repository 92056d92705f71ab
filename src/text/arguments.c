/* Tool arguments: the notation that Gemma writes -> one JSON object.
 *
 * In: {key:<|"|>text<|"|>,n:3,list:[true,null]}, also with what models make of it: quotes of other kinds, bare words,
 * spaces, a comma too many, closing brackets that are missing or doubled at the very end. Out: a JSON object whose keys are
 * unique (the last value of a repeated key wins), at most 64 levels deep, or false. Values are typed: numbers that fit
 * 64 bits or a double, true, false, null; all other bare words are strings. It knows no schemas and no tool names. */
#include "text/arguments.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/reply.h"

enum { MAX_DEPTH = 64 };

typedef struct reader {
    const char *s;
    size_t n, i;
    const char *quote;
    size_t quote_len;
    unsigned depth;
    bool hopeless[2][2]; /* [single][key]: no later quote ends such a string, so nobody looks again */
} reader;

static bool read_value(reader *r, clt_buf *json);

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(reader *r) {
    while (r->i < r->n && is_space(r->s[r->i])) r->i++;
}

static bool next_is(const reader *r, char c) {
    return r->i < r->n && r->s[r->i] == c;
}

static bool at_quote(const reader *r, size_t i) {
    return r->n - i >= r->quote_len && memcmp(r->s + i, r->quote, r->quote_len) == 0;
}

/* ---- strings ---- */

/* Text between quote tokens: no escapes. */
static bool read_token_string(reader *r, clt_buf *out) {
    size_t start = r->i + r->quote_len;
    const char *end = memmem(r->s + start, r->n - start, r->quote, r->quote_len);
    if (!end) return false;
    clt_buf_put(out, r->s + start, (size_t)(end - r->s) - start);
    r->i = (size_t)(end - r->s) + r->quote_len;
    return true;
}

/* Whether the quote at i ends its string: what follows must be able to. A key is followed by a colon. */
static bool ends_string(const reader *r, size_t i, bool key) {
    for (i++; i < r->n && is_space(r->s[i]);) i++;
    if (key) return i < r->n && r->s[i] == ':';
    return i == r->n || r->s[i] == ',' || r->s[i] == '}' || r->s[i] == ']';
}

/* The index of the quote that ends the string which starts at r->i, or 0. An apostrophe inside a text is none. */
static size_t closing_quote(const reader *r, bool key) {
    char quote = r->s[r->i];
    for (size_t i = r->i + 1; i < r->n; i++) {
        if (r->s[i] == '\\') i++;
        else if (r->s[i] == quote && ends_string(r, i, key)) return i;
    }
    return 0;
}

static bool read_hex(const char *s, size_t n, uint32_t *out) {
    *out = 0;
    if (n < 4) return false;
    for (size_t i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)s[i], lower = c | 0x20;
        if (c >= '0' && c <= '9') *out = *out << 4 | (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f') *out = *out << 4 | (uint32_t)(lower - 'a' + 10);
        else return false;
    }
    return true;
}

/* \uXXXX at s, or a pair of them; returns the bytes read, 0 if it is none. Half a pair is U+FFFD. */
static size_t put_unicode_escape(const char *s, size_t n, clt_buf *out) {
    uint32_t high, low;
    char utf8[4];
    size_t used = 6;
    if (n < 6 || s[1] != 'u' || !read_hex(s + 2, n - 2, &high)) return 0;
    if (high >= 0xD800 && high < 0xDC00 && n >= 12 && s[6] == '\\' && s[7] == 'u' && read_hex(s + 8, n - 8, &low) &&
        low >= 0xDC00 && low < 0xE000) {
        high = 0x10000 + ((high - 0xD800) << 10 | (low - 0xDC00));
        used = 12;
    }
    if (high >= 0xD800 && high < 0xE000) high = 0xFFFD;
    clt_buf_put(out, utf8, clt_utf8_encode(high, utf8));
    return used;
}

/* What is between plain quotes. Escapes of JSON; other backslashes are text, because patterns are common arguments, and in
 * single quotes so are \b \f \/ \u, which JSON does not promise there. */
static void unescape(const char *s, size_t n, bool single, clt_buf *out) {
    static const char from[] = "\"'\\nrt/bf", to[] = "\"'\\\n\r\t/\b\f";
    for (size_t i = 0; i < n;) {
        const char *known = s[i] == '\\' && i + 1 < n && s[i + 1] ? strchr(from, s[i + 1]) : NULL;
        size_t used = s[i] == '\\' && !single ? put_unicode_escape(s + i, n - i, out) : 0;
        if (used) {
            i += used;
        } else if (known && !(single && known - from > 5)) {
            clt_buf_putc(out, to[known - from]);
            i += 2;
        } else {
            clt_buf_putc(out, s[i++]);
        }
    }
}

/* A string in "" or ''; false if it is not closed, and nothing is read. */
static bool read_plain_string(reader *r, bool key, clt_buf *out) {
    bool single = r->s[r->i] == '\'';
    if (r->hopeless[single][key]) return false;
    size_t end = closing_quote(r, key);
    if (end == 0) {
        r->hopeless[single][key] = true;
        return false;
    }
    unescape(r->s + r->i + 1, end - r->i - 1, single, out);
    r->i = end + 1;
    return true;
}

/* Bare text up to one of `stops`, a quote token or the end, without the spaces around it. */
static void read_bare(reader *r, const char *stops, const char **s, size_t *n) {
    size_t start = r->i;
    while (r->i < r->n && !(r->s[r->i] && strchr(stops, r->s[r->i])) && !at_quote(r, r->i)) r->i++;
    *s = r->s + start;
    *n = r->i - start;
    while (*n && is_space(**s)) (*s)++, (*n)--;
    while (*n && is_space((*s)[*n - 1])) (*n)--;
}

/* ---- scalars ---- */

static size_t digits(const char *s, size_t n) {
    size_t i = 0;
    while (i < n && s[i] >= '0' && s[i] <= '9') i++;
    return i;
}

/* A number as JSON writes it, within what our JSON reader takes. */
static bool is_number(const char *s, size_t n) {
    char text[64];
    size_t i = n && s[0] == '-' ? 1 : 0, whole = digits(s + i, n - i), part;
    bool integer = true;
    if (n >= sizeof text || whole == 0 || (whole > 1 && s[i] == '0')) return false;
    i += whole;
    if (i < n && s[i] == '.') {
        part = digits(s + i + 1, n - i - 1);
        if (part == 0) return false;
        i += part + 1;
        integer = false;
    }
    if (i < n && (s[i] == 'e' || s[i] == 'E')) {
        i++;
        if (i < n && (s[i] == '+' || s[i] == '-')) i++;
        part = digits(s + i, n - i);
        if (part == 0) return false;
        i += part;
        integer = false;
    }
    if (i != n) return false;
    memcpy(text, s, n);
    text[n] = '\0';
    if (!integer) return isfinite(strtod(text, NULL));
    errno = 0;
    strtoll(text, NULL, 10);
    return errno == 0;
}

static bool equals(const char *s, size_t n, const char *word) {
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

static void put_string(clt_buf *json, const char *s, size_t n) {
    clt_jsonw w = {.out = json};
    clt_jsonw_str(&w, s, n);
}

/* A word without quotes. Python's spellings of the constants count; nothing at all is null. */
static void put_word(clt_buf *json, const char *s, size_t n) {
    if (n == 0 || equals(s, n, "null") || equals(s, n, "None")) clt_buf_puts(json, "null");
    else if (equals(s, n, "true") || equals(s, n, "True")) clt_buf_puts(json, "true");
    else if (equals(s, n, "false") || equals(s, n, "False")) clt_buf_puts(json, "false");
    else if (is_number(s, n)) clt_buf_put(json, s, n);
    else put_string(json, s, n);
}

/* ---- objects and arrays ---- */

typedef struct member {
    size_t key, key_len, value, value_len, order; /* key and value: offsets into the text of all members */
    const char *text;
    bool hidden; /* a later member has the same key */
} member;

typedef struct members {
    member *items;
    size_t n, cap;
    clt_buf text;
} members;

static int compare_members(const void *a, const void *b) {
    const member *x = *(member *const *)a, *y = *(member *const *)b;
    size_t shorter = x->key_len < y->key_len ? x->key_len : y->key_len;
    int order = memcmp(x->text + x->key, y->text + y->key, shorter);
    if (order) return order;
    if (x->key_len != y->key_len) return x->key_len < y->key_len ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Marks every member whose key comes again later. */
static bool hide_repeated(members *m) {
    if (m->n < 2) return true;
    member **sorted = clt_calloc(m->n, sizeof *sorted);
    if (!sorted) return false;
    for (size_t i = 0; i < m->n; i++) {
        m->items[i].text = m->text.data;
        sorted[i] = &m->items[i];
    }
    qsort(sorted, m->n, sizeof *sorted, compare_members);
    for (size_t i = 0; i + 1 < m->n; i++) {
        const member *x = sorted[i], *y = sorted[i + 1];
        sorted[i]->hidden = x->key_len == y->key_len && memcmp(x->text + x->key, y->text + y->key, x->key_len) == 0;
    }
    clt_free(sorted);
    return true;
}

static bool put_members(members *m, clt_buf *json) {
    bool comma = false;
    if (m->text.failed || !hide_repeated(m)) return false;
    clt_buf_putc(json, '{');
    for (size_t i = 0; i < m->n; i++) {
        const member *x = &m->items[i];
        if (x->hidden) continue;
        if (comma) clt_buf_putc(json, ',');
        put_string(json, m->text.data + x->key, x->key_len);
        clt_buf_putc(json, ':');
        clt_buf_put(json, m->text.data + x->value, x->value_len);
        comma = true;
    }
    clt_buf_putc(json, '}');
    return true;
}

static bool read_key(reader *r, clt_buf *out) {
    const char *s;
    size_t n, start = out->len;
    bool quoted = true;
    if (at_quote(r, r->i)) {
        if (!read_token_string(r, out)) return false;
    } else if ((!next_is(r, '"') && !next_is(r, '\'')) || !read_plain_string(r, true, out)) {
        read_bare(r, ":,{}[]", &s, &n);
        clt_buf_put(out, s, n);
        quoted = false;
    }
    skip_space(r);
    if (!next_is(r, ':') || out->failed || (!quoted && out->len == start)) return false;
    r->i++;
    size_t kept = start; /* our JSON reader takes no NUL in keys */
    for (size_t i = start; i < out->len; i++) {
        if (out->data[i]) out->data[kept++] = out->data[i];
    }
    out->len = kept;
    return true;
}

static bool read_member(reader *r, members *m) {
    if (m->n == m->cap) {
        size_t cap = m->cap ? m->cap * 2 : 8;
        member *grown = clt_realloc(m->items, cap * sizeof *grown);
        if (!grown) return false;
        m->items = grown;
        m->cap = cap;
    }
    member x = {.key = m->text.len, .order = m->n};
    if (!read_key(r, &m->text)) return false;
    x.key_len = m->text.len - x.key;
    x.value = m->text.len;
    if (!read_value(r, &m->text)) return false;
    x.value_len = m->text.len - x.value;
    m->items[m->n++] = x;
    return true;
}

/* After an item: a comma, or what closes the list (left in place), or the end. Commas may repeat. */
static bool end_item(reader *r, char close) {
    skip_space(r);
    if (r->i == r->n || next_is(r, close)) return true;
    if (!next_is(r, ',')) return false;
    while (next_is(r, ',')) {
        r->i++;
        skip_space(r);
    }
    return true;
}

/* At {. The end of the text closes what is open: the call itself was complete. */
static bool read_object(reader *r, clt_buf *json) {
    members m = {0};
    bool ok = true;
    r->i++;
    skip_space(r);
    while (ok && r->i < r->n && !next_is(r, '}')) {
        ok = read_member(r, &m) && end_item(r, '}');
    }
    if (next_is(r, '}')) r->i++;
    ok = ok && put_members(&m, json);
    clt_buf_free(&m.text);
    clt_free(m.items);
    return ok;
}

/* At [. */
static bool read_array(reader *r, clt_buf *json) {
    bool comma = false;
    clt_buf_putc(json, '[');
    r->i++;
    skip_space(r);
    while (r->i < r->n && !next_is(r, ']')) {
        if (comma) clt_buf_putc(json, ',');
        if (!read_value(r, json) || !end_item(r, ']')) return false;
        comma = true;
    }
    if (next_is(r, ']')) r->i++;
    clt_buf_putc(json, ']');
    return true;
}

static bool read_string(reader *r, clt_buf *json) {
    clt_buf text = {0};
    bool ok = at_quote(r, r->i) ? read_token_string(r, &text) : read_plain_string(r, false, &text);
    if (ok) put_string(json, text.data ? text.data : "", text.len);
    if (text.failed) json->failed = true;
    clt_buf_free(&text);
    return ok;
}

static bool read_value(reader *r, clt_buf *json) {
    const char *s;
    size_t n;
    skip_space(r);
    if (next_is(r, '{') || next_is(r, '[')) {
        if (r->depth == MAX_DEPTH) return false;
        r->depth++;
        bool ok = next_is(r, '{') ? read_object(r, json) : read_array(r, json);
        r->depth--;
        return ok && !json->failed;
    }
    if (at_quote(r, r->i)) return read_string(r, json);
    if ((next_is(r, '"') || next_is(r, '\'')) && read_string(r, json)) return true;
    read_bare(r, ",}]", &s, &n);
    put_word(json, s, n);
    return !json->failed;
}

bool clt_arguments_read(const char *text, size_t len, const char *quote, clt_buf *json) {
    reader r = {.s = text, .n = len, .quote = quote, .quote_len = strlen(quote)};
    size_t start = json->len;
    skip_space(&r);
    bool ok = next_is(&r, '{') && read_value(&r, json);
    while (r.i < r.n && (is_space(r.s[r.i]) || r.s[r.i] == '}')) r.i++;
    ok = ok && r.i == r.n && !json->failed;
    if (!ok && json->data) {
        json->len = start;
        json->data[start] = '\0';
    }
    return ok;
}

bool clt_arguments_to_json(const char *text, size_t len, clt_buf *json) {
    clt_buf repaired = {0};
    clt_utf8_repair(&repaired, text, len);
    bool ok = !repaired.failed && clt_arguments_read(repaired.data ? repaired.data : "", repaired.len, "<|\"|>", json);
    clt_buf_free(&repaired);
    return ok;
}
