/* Results, written as a Markdown table, CSV, JSON, a JSON object per line, or SQL.
 *
 * A record is built once, for every format: its fields (JSON, CSV, SQL) and its cells (Markdown). Where records of another
 * shape follow, the tables begin anew; a JSON document stays one array. */
#ifndef CLI_RECORDS_H
#define CLI_RECORDS_H
#include "base/json.h"

typedef struct cli_record {
    const char *table;              /* name of the shape, and of the SQL table */
    clt_buf object;                 /* {"key":value,… without the closing brace */
    clt_buf names, columns;         /* a,b,c · a TEXT,b INTEGER,… */
    clt_buf values, literals;       /* "1","x" (CSV) · '1','x' (SQL) */
    clt_buf head, rule, cells;      /* Markdown */
    clt_jsonw json;
} cli_record;

void cli_record_begin(cli_record *r, const char *table);
void cli_record_text(cli_record *r, const char *key, const char *v);
void cli_record_int(cli_record *r, const char *key, int64_t v);
void cli_record_bool(cli_record *r, const char *key, bool v);
/* NaN = not known: null in JSON and SQL, empty in CSV. */
void cli_record_num(cli_record *r, const char *key, double v);
/* A list of numbers; only in the JSON formats. */
void cli_record_nums(cli_record *r, const char *key, const double *v, size_t n);
/* Where the caller writes one value that only the JSON formats carry. Valid until the next call with this record. */
clt_jsonw *cli_record_json(cli_record *r, const char *key);
/* The next cell of the Markdown row, padded to `width` columns; a negative width aligns to the right. */
void cli_record_cell(cli_record *r, const char *title, int width, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void cli_record_free(cli_record *r);

typedef struct cli_records {
    int format;                     /* cli_format */
    bool to_err;                    /* standard error instead of standard output */
    size_t n;                       /* records so far */
    const char *table;              /* of the last one */
} cli_records;

void cli_records_put(cli_records *out, const cli_record *r);
/* A paragraph between tables; only in Markdown. */
void cli_records_say(cli_records *out, const char *text);
void cli_records_end(cli_records *out);

#endif
