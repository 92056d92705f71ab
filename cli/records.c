/* Builds and writes records. Every field is appended to the text of all formats at once; one of them is written. */
#include "records.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "args.h"
#include "out.h"

/* ---- fields ---- */

void cli_record_begin(cli_record *r, const char *table) {
    *r = (cli_record){.table = table};
    r->json.out = &r->object;
    clt_jsonw_open(&r->json, '{');
}

/* `v` in quotes; quotes inside are doubled, as CSV and SQL both have it. */
static void put_quoted(clt_buf *out, char quote, const char *v) {
    clt_buf_putc(out, quote);
    for (; *v; v++) {
        if (*v == quote) {
            clt_buf_putc(out, quote);
        }
        clt_buf_putc(out, *v);
    }
    clt_buf_putc(out, quote);
}

/* All formats but JSON. `v` NULL = not known. */
static void put_plain(cli_record *r, const char *key, const char *type, const char *v) {
    bool first = !r->names.len;
    clt_buf_printf(&r->names, "%s%s", first ? "" : ",", key);
    clt_buf_printf(&r->columns, "%s  %s %s", first ? "" : ",\n", key, type);
    clt_buf_puts(&r->values, first ? "" : ",");
    put_quoted(&r->values, '"', v ? v : "");
    clt_buf_puts(&r->literals, first ? "" : ", ");
    if (v) {
        put_quoted(&r->literals, '\'', v);
    } else {
        clt_buf_puts(&r->literals, "NULL");
    }
}

void cli_record_text(cli_record *r, const char *key, const char *v) {
    put_plain(r, key, "TEXT", v);
    clt_jsonw_key(&r->json, key);
    clt_jsonw_cstr(&r->json, v);
}

void cli_record_int(cli_record *r, const char *key, int64_t v) {
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)v);
    put_plain(r, key, "INTEGER", text);
    clt_jsonw_key(&r->json, key);
    clt_jsonw_int(&r->json, v);
}

void cli_record_bool(cli_record *r, const char *key, bool v) {
    put_plain(r, key, "INTEGER", v ? "1" : "0");
    clt_jsonw_key(&r->json, key);
    clt_jsonw_bool(&r->json, v);
}

/* Six digits after the point are a nanosecond of a millisecond: more would be noise. */
static double rounded(double v) {
    return fabs(v) < 1e9 ? round(v * 1e6) / 1e6 : v;
}

void cli_record_num(cli_record *r, const char *key, double v) {
    char text[64];
    snprintf(text, sizeof(text), "%.6f", v);
    put_plain(r, key, "REAL", isfinite(v) ? text : NULL);
    clt_jsonw_key(&r->json, key);
    clt_jsonw_num(&r->json, rounded(v));
}

void cli_record_nums(cli_record *r, const char *key, const double *v, size_t n) {
    clt_jsonw_key(&r->json, key);
    clt_jsonw_open(&r->json, '[');
    for (size_t i = 0; i < n; i++) {
        clt_jsonw_num(&r->json, rounded(v[i]));
    }
    clt_jsonw_close(&r->json, ']');
}

clt_jsonw *cli_record_json(cli_record *r, const char *key) {
    clt_jsonw_key(&r->json, key);
    return &r->json;
}

/* ---- cells ---- */

/* Columns of UTF-8 text: code points, which is right for what is written here. */
static size_t columns_of(const char *s) {
    size_t n = 0;
    for (; *s; s++) {
        n += ((unsigned char)*s & 0xc0) != 0x80;
    }
    return n;
}

static void put_padded(clt_buf *out, const char *text, size_t width, bool right) {
    size_t len = columns_of(text), pad = len < width ? width - len : 0;
    clt_buf_printf(out, "%*s%s%*s |", right ? (int)pad + 1 : 1, "", text, right ? 0 : (int)pad, "");
}

void cli_record_cell(cli_record *r, const char *title, int width, const char *fmt, ...) {
    bool right = width < 0;
    size_t wide = (size_t)(right ? -width : width), least = columns_of(title);
    char text[512], dashes[64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    for (char *c = text; *c; c++) {
        *c = *c == '|' || (unsigned char)*c < 0x20 ? '/' : *c; /* would end the cell */
    }
    wide = wide > least ? wide : least;
    wide = wide < sizeof(dashes) - 2 ? wide : sizeof(dashes) - 2;
    memset(dashes, '-', wide);
    dashes[wide] = 0;
    if (right) {
        dashes[wide - 1] = ':';
    }
    const char *edge = r->head.len ? "" : "|";
    clt_buf_puts(&r->head, edge);
    clt_buf_puts(&r->rule, edge);
    clt_buf_puts(&r->cells, edge);
    put_padded(&r->head, title, wide, right);
    put_padded(&r->rule, dashes, wide, right);
    put_padded(&r->cells, text, wide, right);
}

void cli_record_free(cli_record *r) {
    clt_buf *all[] = {&r->object, &r->names, &r->columns, &r->values, &r->literals, &r->head, &r->rule, &r->cells};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        clt_buf_free(all[i]);
    }
}

/* ---- formats ---- */

static void write_out(const cli_records *out, const clt_buf *text) {
    if (!out->to_err) {
        cli_out_buf(text);
    } else if (text->data) {
        cli_err_text(text->data, text->len, false);
    }
}

static void put_sql(const cli_record *r, bool new_table, clt_buf *text) {
    if (new_table) {
        clt_buf_printf(text, "CREATE TABLE IF NOT EXISTS %s (\n%s\n);\n\n", r->table, r->columns.data);
    }
    clt_buf_printf(text, "INSERT INTO %s (%s) VALUES (%s);\n", r->table, r->names.data, r->literals.data);
}

void cli_records_put(cli_records *out, const cli_record *r) {
    const clt_buf *all[] = {&r->object, &r->names, &r->columns, &r->values, &r->literals, &r->head, &r->rule, &r->cells};
    clt_buf text = {0};
    bool first = !out->n++, new_table = !out->table || strcmp(out->table, r->table) != 0;
    const char *gap = out->table && new_table ? "\n" : ""; /* a paragraph brings its own */
    out->table = r->table;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        text.failed |= all[i]->failed || !all[i]->data; /* a record without memory is a failed write */
    }
    if (text.failed) {
        write_out(out, &text);
        return;
    }
    switch (out->format) {
    case CLI_MD:
        if (new_table) {
            clt_buf_printf(&text, "%s%s\n%s\n", gap, r->head.data, r->rule.data);
        }
        clt_buf_printf(&text, "%s\n", r->cells.data);
        break;
    case CLI_CSV:
        if (new_table) {
            clt_buf_printf(&text, "%s%s\n", gap, r->names.data);
        }
        clt_buf_printf(&text, "%s\n", r->values.data);
        break;
    case CLI_SQL:
        put_sql(r, new_table, &text);
        break;
    default:
        clt_buf_puts(&text, out->format == CLI_JSONL ? "" : first ? "[\n  " : ",\n  ");
        clt_buf_printf(&text, "%s}%s", r->object.data, out->format == CLI_JSONL ? "\n" : "");
    }
    write_out(out, &text);
    clt_buf_free(&text);
}

void cli_records_say(cli_records *out, const char *text) {
    clt_buf all = {0};
    if (out->format != CLI_MD) {
        return;
    }
    clt_buf_printf(&all, "%s%s\n\n", out->table ? "\n" : "", text);
    out->table = NULL; /* what follows begins a table */
    write_out(out, &all);
    clt_buf_free(&all);
}

void cli_records_end(cli_records *out) {
    clt_buf text = {0};
    if (out->format == CLI_JSON) {
        clt_buf_puts(&text, out->n ? "\n]\n" : "[]\n");
        write_out(out, &text);
        clt_buf_free(&text);
    }
}
