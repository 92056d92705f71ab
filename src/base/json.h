/* JSON: a read-only tree for small documents, a stream of events for big ones, and a writer.
 *
 * The tree stands on jansson, the stream on yajl; a build without one of them fails with CLT_E_UNSUPPORTED and names the
 * package. The writer needs neither. Hostile documents are refused with CLT_E_REQUEST: invalid UTF-8, half surrogate
 * pairs, nesting beyond 64, and in the tree duplicate keys and keys that hold a NUL. */
#ifndef CLT_BASE_JSON_H
#define CLT_BASE_JSON_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

typedef struct clt_json clt_json; /* a node; lives as long as its document */
typedef enum clt_json_type {
    CLT_JSON_NULL, CLT_JSON_BOOL, CLT_JSON_INT, CLT_JSON_REAL, CLT_JSON_STRING, CLT_JSON_ARRAY, CLT_JSON_OBJECT
} clt_json_type;

/* Parses a whole document; `what` names it in errors (a file name, "request"). Free with clt_json_free. In a document that
 * holds a whole number beyond 64 bits every number arrives as a real. */
clt_status clt_json_parse(const char *text, size_t len, const char *what, clt_json **doc, clt_err *err);
void clt_json_free(clt_json *doc);

clt_json_type clt_json_kind(const clt_json *n);               /* NULL pointer counts as null */
const clt_json *clt_json_get(const clt_json *object, const char *key); /* NULL if absent or not an object */
const clt_json *clt_json_at(const clt_json *array, size_t i); /* NULL beyond the end */
size_t clt_json_len(const clt_json *n);                       /* items of an array or object, else 0 */
const char *clt_json_str(const clt_json *n, size_t *len);     /* NULL if not a string; may hold NUL bytes */
bool clt_json_is_true(const clt_json *n);
bool clt_json_int(const clt_json *n, int64_t *out);           /* an integer, or a real that is one; else false */
bool clt_json_num(const clt_json *n, double *out);
/* Walks an object in document order: `iter` starts NULL. Returns false at the end. */
bool clt_json_next(const clt_json *object, void **iter, const char **key, size_t *key_len, const clt_json **value);
const char *clt_json_kind_name(clt_json_type t);

/* Events of a document that is too big for a tree. A callback returns false to stop (the parse then returns CLT_E_FAILED
 * unless it filled err itself). Numbers come as their text. Strings are not NUL-terminated. Duplicate keys pass: the reader
 * of the events has the table that can tell. A missing callback accepts everything. */
typedef struct clt_json_events {
    bool (*on_scalar)(void *ctx, clt_json_type t, const char *text, size_t len); /* null, bool ("true"/"false"), number */
    bool (*on_string)(void *ctx, const char *s, size_t len);
    bool (*on_key)(void *ctx, const char *s, size_t len);
    bool (*on_open)(void *ctx, bool is_array);
    bool (*on_close)(void *ctx, bool is_array);
} clt_json_events;
clt_status clt_json_stream(const char *text, size_t len, const char *what, const clt_json_events *ev, void *ctx,
                           clt_err *err);

/* Writer: appends to a buffer and places the commas. Strings that are not UTF-8 get U+FFFD per maximal subpart. */
typedef struct clt_jsonw {
    clt_buf *out;
    unsigned depth;
    uint64_t has_item; /* one bit per depth: a comma is due */
    bool after_key;
} clt_jsonw;
void clt_jsonw_open(clt_jsonw *w, char bracket);  /* '{' or '[' */
void clt_jsonw_close(clt_jsonw *w, char bracket); /* '}' or ']' */
void clt_jsonw_key(clt_jsonw *w, const char *key);
void clt_jsonw_str(clt_jsonw *w, const char *s, size_t len);
void clt_jsonw_cstr(clt_jsonw *w, const char *s);
void clt_jsonw_int(clt_jsonw *w, int64_t v);
void clt_jsonw_num(clt_jsonw *w, double v); /* shortest text that reads back equal; non-finite becomes null */
void clt_jsonw_bool(clt_jsonw *w, bool v);
void clt_jsonw_null(clt_jsonw *w);
void clt_jsonw_raw(clt_jsonw *w, const char *json, size_t len); /* a value that is JSON already */

#endif
