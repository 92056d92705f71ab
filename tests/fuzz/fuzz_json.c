/* Fuzzes the JSON readers and the writer: what the tree accepts, the stream accepts too, and what is written from it reads
 * back as the same values. */
#include <stdlib.h>
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_value(clt_jsonw *w, const clt_json *n) {
    const char *key, *s;
    const clt_json *v;
    void *iter = NULL;
    size_t len;
    int64_t i;
    double r;
    switch (clt_json_kind(n)) {
    case CLT_JSON_NULL: clt_jsonw_null(w); break;
    case CLT_JSON_BOOL: clt_jsonw_bool(w, clt_json_is_true(n)); break;
    case CLT_JSON_INT: clt_json_int(n, &i) ? clt_jsonw_int(w, i) : abort(); break;
    case CLT_JSON_REAL: clt_json_num(n, &r) ? clt_jsonw_num(w, r) : abort(); break;
    case CLT_JSON_STRING:
        s = clt_json_str(n, &len);
        clt_jsonw_str(w, s, len);
        break;
    case CLT_JSON_ARRAY:
        clt_jsonw_open(w, '[');
        for (size_t k = 0; k < clt_json_len(n); k++) write_value(w, clt_json_at(n, k));
        clt_jsonw_close(w, ']');
        break;
    case CLT_JSON_OBJECT:
        clt_jsonw_open(w, '{');
        while (clt_json_next(n, &iter, &key, &len, &v)) {
            clt_jsonw_key(w, key);
            write_value(w, v);
        }
        clt_jsonw_close(w, '}');
        break;
    }
}

/* Writes the document as text; the caller frees the buffer. */
static clt_buf written(const clt_json *doc) {
    clt_buf out = {0};
    clt_jsonw w = {.out = &out};
    write_value(&w, doc);
    if (out.failed) abort();
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const clt_json_events none;
    clt_err err;
    clt_json *doc, *again;
    clt_status tree = clt_json_parse((const char *)data, size, "input", &doc, &err);
    clt_status stream = clt_json_stream((const char *)data, size, "input", &none, NULL, &err);
    if (tree != CLT_OK) return 0;
    if (stream != CLT_OK) abort();
    clt_buf first = written(doc);
    if (clt_json_parse(first.data, first.len, "written", &again, &err) != CLT_OK) abort();
    clt_buf second = written(again);
    /* Whole reals lose their point on the first writing and nothing on the second. */
    if (first.len != second.len) abort();
    clt_buf_free(&first);
    clt_buf_free(&second);
    clt_json_free(doc);
    clt_json_free(again);
    return 0;
}
