/* KL divergence against a file of saved logits. */
#include "score_base.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include "base/mem.h"

static clt_status file_bytes(const char *path, FILE *f, uint64_t *bytes, clt_err *err) {
    struct stat st;
    if (fstat(fileno(f), &st) || !S_ISREG(st.st_mode)) {
        return clt_fail(err, CLT_E_FILE, "%s: not a regular file", path);
    }
    *bytes = (uint64_t)st.st_size;
    return CLT_OK;
}

/* The ids beside the logits, if they are there. */
static clt_status open_ids(cli_score_base *b, clt_err *err) {
    clt_buf path = {0};
    uint64_t bytes;
    clt_status st = CLT_OK;
    clt_buf_printf(&path, "%s.ids", b->path);
    if (path.failed) {
        st = clt_fail_memory(err, "a file name", path.len);
    } else if ((b->ids = fopen(path.data, "re")) != NULL) {
        st = file_bytes(path.data, b->ids, &bytes, err);
        if (!st && bytes != (uint64_t)b->rows_in_file * 4) {
            st = clt_fail(err, CLT_E_FILE, "%s: %llu bytes, but %s has %zu rows, for which %zu are expected", path.data,
                          (unsigned long long)bytes, b->path, b->rows_in_file, b->rows_in_file * 4);
        }
    }
    clt_buf_free(&path);
    return st;
}

clt_status cli_score_base_open(const char *path, size_t vocab, cli_score_base *b, clt_err *err) {
    uint64_t bytes, row_bytes = (uint64_t)vocab * 4;
    b->path = path;
    b->vocab = vocab;
    b->stream = fopen(path, "re");
    if (!b->stream) {
        return clt_fail(err, CLT_E_FILE, "%s: cannot read: %s", path, strerror(errno));
    }
    clt_status st = file_bytes(path, b->stream, &bytes, err);
    if (st) {
        return st;
    }
    if (!bytes || bytes % row_bytes) {
        return clt_fail(err, CLT_E_FILE,
                        "%s: %llu bytes are not whole rows of %zu float32 values: made with another vocabulary?", path,
                        (unsigned long long)bytes, vocab);
    }
    b->rows_in_file = (size_t)(bytes / row_bytes);
    b->row = clt_alloc((size_t)row_bytes);
    return b->row ? open_ids(b, err) : clt_fail_memory(err, "a row of logits", row_bytes);
}

static clt_status read_values(cli_score_base *b, FILE *f, void *values, size_t n, clt_err *err) {
    if (fread(values, 4, n, f) != n) {
        return clt_fail(err, CLT_E_FILE, "%s: has %zu rows, the text needs more: made from another text or context?",
                        b->path, b->rows_in_file);
    }
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    uint32_t *words = values;
    for (size_t i = 0; i < n; i++) {
        words[i] = __builtin_bswap32(words[i]);
    }
#endif
    return CLT_OK;
}

static size_t best_of(const float *logits, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

static double margin_of(const float *logits, size_t n, size_t best) {
    float second = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        second = i != best && logits[i] > second ? logits[i] : second;
    }
    return (double)logits[best] - (double)second;
}

static void compare_best(cli_score_base *b, const float *logits) {
    size_t base = best_of(b->row, b->vocab), model = best_of(logits, b->vocab);
    if (base == model) {
        b->agreed++;
    } else if (!b->diverged) {
        b->diverged = true;
        b->diverged_row = b->rows;
        b->base_best = (int32_t)base;
        b->model_best = (int32_t)model;
        b->base_margin = margin_of(b->row, b->vocab, base);
    }
}

clt_status cli_score_base_row(cli_score_base *b, int32_t id, const float *logits, double log_sum, clt_err *err) {
    clt_status st = read_values(b, b->stream, b->row, b->vocab, err);
    int32_t expected = id;
    if (!st && b->ids) {
        st = read_values(b, b->ids, &expected, 1, err);
    }
    if (st) {
        return st;
    }
    if (expected != id) {
        return clt_fail(err, CLT_E_FILE,
                        "%s: row %zu is of token %d, the text has %d there: made from another text or context?", b->path,
                        b->rows, expected, id);
    }
    double base_sum = cli_log_sum_exp(b->row, b->vocab), kl = 0;
    for (size_t i = 0; i < b->vocab; i++) {
        double p_log = (double)b->row[i] - base_sum;
        kl += exp(p_log) * (p_log - ((double)logits[i] - log_sum));
    }
    b->kl += kl;
    b->kl_most = kl > b->kl_most ? kl : b->kl_most;
    compare_best(b, logits);
    b->rows++;
    return CLT_OK;
}

clt_status cli_score_base_end(cli_score_base *b, clt_err *err) {
    if (b->rows != b->rows_in_file) {
        return clt_fail(err, CLT_E_FILE, "%s: has %zu rows, the text only %zu: made from another text or context?", b->path,
                        b->rows_in_file, b->rows);
    }
    return CLT_OK;
}

void cli_score_base_json(const cli_score_base *b, clt_jsonw *w) {
    clt_jsonw_open(w, '{');
    clt_jsonw_key(w, "rows");
    clt_jsonw_int(w, (int64_t)b->rows);
    clt_jsonw_key(w, "mean");
    clt_jsonw_num(w, b->kl / (double)b->rows);
    clt_jsonw_key(w, "max");
    clt_jsonw_num(w, b->kl_most);
    clt_jsonw_key(w, "top1_agreement");
    clt_jsonw_num(w, (double)b->agreed / (double)b->rows);
    clt_jsonw_key(w, "first_divergence");
    if (b->diverged) {
        clt_jsonw_open(w, '{');
        clt_jsonw_key(w, "row");
        clt_jsonw_int(w, (int64_t)b->diverged_row);
        clt_jsonw_key(w, "base_id");
        clt_jsonw_int(w, b->base_best);
        clt_jsonw_key(w, "model_id");
        clt_jsonw_int(w, b->model_best);
        clt_jsonw_key(w, "base_margin");
        clt_jsonw_num(w, b->base_margin);
        clt_jsonw_close(w, '}');
    } else {
        clt_jsonw_null(w);
    }
    clt_jsonw_close(w, '}');
}

void cli_score_base_text(const cli_score_base *b, clt_buf *out) {
    clt_buf_printf(out, "kl          %.8f per row (base to model), at most %.8f\n", b->kl / (double)b->rows, b->kl_most);
    clt_buf_printf(out, "agreement   best token equal in %zu of %zu rows (%.4f %%)\n", b->agreed, b->rows,
                   100 * (double)b->agreed / (double)b->rows);
    if (b->diverged) {
        clt_buf_printf(out, "divergence  first in row %zu: base %d, model %d; the base's margin there is %.6f\n",
                       b->diverged_row, b->base_best, b->model_best, b->base_margin);
    }
}

void cli_score_base_close(cli_score_base *b) {
    if (b->stream) {
        fclose(b->stream);
    }
    if (b->ids) {
        fclose(b->ids);
    }
    clt_free(b->row);
    b->stream = b->ids = NULL;
    b->row = NULL;
}
