/* Reads results by the names that llama-bench gives them. Trusts nothing: the text is another program's. */
#include "bench_read.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"

static void take_text(const clt_json *row, const char *key, char *out, size_t size) {
    size_t len;
    const char *s = clt_json_str(clt_json_get(row, key), &len);
    snprintf(out, size, "%.*s", s ? (int)(len < size ? len : size) : 0, s ? s : "");
}

static bool take_count(const clt_json *row, const char *key, int64_t *out) {
    const clt_json *n = clt_json_get(row, key);
    *out = 0;
    return !n || (clt_json_int(n, out) && *out >= 0);
}

static bool is_speed(const clt_json *n, double *out) {
    return clt_json_num(n, out) && isfinite(*out) && *out > 0;
}

static clt_status take_speeds(const clt_json *row, const char *where, cli_seen *s, clt_err *err) {
    const clt_json *samples = clt_json_get(row, "samples_ts");
    size_t n = clt_json_len(samples);
    double average;
    if (!is_speed(clt_json_get(row, "avg_ts"), &average)) {
        return clt_fail(err, CLT_E_FAILED, "%s: avg_ts is missing or not a positive number", where);
    }
    s->ts = clt_calloc(n ? n : 1, sizeof(*s->ts));
    if (!s->ts) {
        return clt_fail_memory(err, where, n * sizeof(*s->ts));
    }
    s->ts[0] = average;
    s->n_ts = n ? n : 1;
    for (size_t i = 0; i < n; i++) {
        if (!is_speed(clt_json_at(samples, i), &s->ts[i])) {
            return clt_fail(err, CLT_E_FAILED, "%s: samples_ts[%zu] is not a positive number", where, i);
        }
    }
    return CLT_OK;
}

static clt_status take_row(const clt_json *row, const char *what, cli_seen_list *out, clt_err *err) {
    char where[512];
    snprintf(where, sizeof(where), "%s: result %zu", what, out->n + 1);
    if (clt_json_kind(row) != CLT_JSON_OBJECT) {
        return clt_fail(err, CLT_E_FAILED, "%s: expected an object, found %s", where,
                        clt_json_kind_name(clt_json_kind(row)));
    }
    if (!clt_json_get(row, "n_prompt") && !clt_json_get(row, "n_gen") && clt_json_get(row, "measurement")) {
        return CLT_OK;
    }
    cli_seen *grown = clt_realloc(out->items, (out->n + 1) * sizeof(*grown));
    if (!grown) {
        return clt_fail_memory(err, what, (out->n + 1) * sizeof(*grown));
    }
    out->items = grown;
    cli_seen *s = &grown[out->n];
    *s = (cli_seen){0};
    if (!clt_json_get(row, "n_prompt") || !clt_json_get(row, "n_gen")) {
        return clt_fail(err, CLT_E_FAILED, "%s: n_prompt or n_gen is missing", where);
    }
    if (!take_count(row, "n_prompt", &s->n_prompt) || !take_count(row, "n_gen", &s->n_gen) ||
        !take_count(row, "n_depth", &s->n_depth) || !take_count(row, "n_threads", &s->n_threads)) {
        return clt_fail(err, CLT_E_FAILED, "%s: n_prompt, n_gen, n_depth or n_threads is not a count", where);
    }
    take_text(row, "model_filename", s->model, sizeof(s->model));
    take_text(row, "build_commit", s->commit, sizeof(s->commit));
    take_text(row, "cpu_info", s->cpu, sizeof(s->cpu));
    out->n++; /* from here on the list frees it */
    return take_speeds(row, where, s, err);
}

/* A document: one object, or an array of them. */
static clt_status take_document(const char *text, size_t len, const char *what, cli_seen_list *out, clt_err *err) {
    clt_json *doc = NULL;
    clt_status st = clt_json_parse(text, len, what, &doc, err);
    if (st == CLT_E_REQUEST) {
        err->code = st = CLT_E_FAILED;
    }
    if (!st && clt_json_kind(doc) == CLT_JSON_ARRAY) {
        for (size_t i = 0; i < clt_json_len(doc) && !st; i++) {
            st = take_row(clt_json_at(doc, i), what, out, err);
        }
    } else if (!st) {
        st = take_row(doc, what, out, err);
    }
    clt_json_free(doc);
    return st;
}

clt_status cli_seen_read(const char *text, size_t len, const char *what, cli_seen_list *out, clt_err *err) {
    static const char blank[] = " \t\r\n";
    clt_status st = CLT_OK;
    *out = (cli_seen_list){0};
    while (len && memchr(blank, *text, sizeof(blank) - 1)) {
        text++;
        len--;
    }
    if (!len) {
        return clt_fail(err, CLT_E_FAILED, "%s: it is empty", what);
    }
    if (*text != '{') {
        return take_document(text, len, what, out, err);
    }
    while (len && !st) {
        const char *end = memchr(text, '\n', len);
        size_t line = end ? (size_t)(end - text) : len;
        bool empty = true;
        for (size_t i = 0; i < line && empty; i++) {
            empty = memchr(blank, text[i], sizeof(blank) - 1) != NULL;
        }
        st = empty ? CLT_OK : take_document(text, line, what, out, err);
        text += line + (end != NULL);
        len -= line + (end != NULL);
    }
    return st;
}

void cli_seen_free(cli_seen_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        clt_free(list->items[i].ts);
    }
    clt_free(list->items);
    *list = (cli_seen_list){0};
}
