/* Results of bench or llama-bench, read back: a JSON array, or a JSON object per line. */
#ifndef CLI_BENCH_READ_H
#define CLI_BENCH_READ_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"
#include "base/json.h"

typedef struct cli_seen {
    int64_t n_prompt, n_gen, n_depth, n_threads; /* n_threads 0 = not said */
    double *ts;              /* [n_ts] tokens per second of each run; the average alone where runs are not listed */
    size_t n_ts;
    char model[256], commit[64], cpu[128]; /* as the program calls them; may be empty */
} cli_seen;

typedef struct cli_seen_list {
    cli_seen *items;
    size_t n;
} cli_seen_list;

/* `what` names the text in errors. CLT_E_FAILED if it is not such results; free the list in any case. Other measurements of
 * bench are passed over. */
clt_status cli_seen_read(const char *text, size_t len, const char *what, cli_seen_list *out, clt_err *err);
void cli_seen_free(cli_seen_list *list);

#endif
