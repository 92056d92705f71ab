/* Comparison with saved logits: KL divergence of the model from the base, agreement of the best token, first disagreement.
 * Reads the base row by row; keeps one row. */
#ifndef CLI_SCORE_BASE_H
#define CLI_SCORE_BASE_H
#include <stdio.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

typedef struct cli_score_base {
    FILE *stream, *ids;      /* FILE and FILE.ids; ids NULL if there is no such file */
    const char *path;
    float *row;              /* [V] */
    size_t vocab, rows, rows_in_file, agreed;
    double kl, kl_most;      /* nats: sum and largest of one row */
    bool diverged;           /* the first row whose best tokens differ */
    size_t diverged_row;
    int32_t base_best, model_best;
    double base_margin;      /* of that row in the base: best minus second logit */
} cli_score_base;

/* Opens both files and checks their sizes against the vocabulary V. CLT_E_FILE if they do not fit. */
clt_status cli_score_base_open(const char *path, size_t vocab, cli_score_base *b, clt_err *err);
/* The next row: `id` = the token evaluated, logits [V] of the model, log_sum = ln of the sum of their exponentials. */
clt_status cli_score_base_row(cli_score_base *b, int32_t id, const float *logits, double log_sum, clt_err *err);
/* CLT_E_FILE if the base has rows left. */
clt_status cli_score_base_end(cli_score_base *b, clt_err *err);
void cli_score_base_json(const cli_score_base *b, clt_jsonw *w);
void cli_score_base_text(const cli_score_base *b, clt_buf *out);
void cli_score_base_close(cli_score_base *b);

/* ln(sum(exp(logits[0..n)))), n >= 1. */
double cli_log_sum_exp(const float *logits, size_t n);

#endif
