/* Other processes: an argument list, and a run of it with its output caught. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

/* A growing argv. Zero-initialise; a failed allocation is remembered in `failed`. */
typedef struct cli_words {
    char **items;            /* items[n] is NULL once there is a word */
    size_t n;
    bool failed;
} cli_words;
void cli_words_add(cli_words *w, const char *word);
void cli_words_addf(cli_words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A flag and its list of numbers, "1,2,3". */
void cli_words_list(cli_words *w, const char *flag, const clt_ids *list);
/* Words of a text, separated by spaces; no quotes are understood. */
void cli_words_split(cli_words *w, const char *text);
void cli_words_free(cli_words *w);

/* A program that runs beside us, its output not yet read. */
typedef struct cli_process {
    int id;                  /* also of its group */
    int out, err;            /* the reading ends of its pipes, to be closed by the caller */
} cli_process;
/* Starts argv (found in PATH if it has no '/') with empty input, in a group of its own that dies with us. CLT_E_FAILED if it
 * cannot be started: nothing is left then. */
clt_status cli_process_start(const cli_words *words, cli_process *out, clt_err *err);
/* Kills it with what it started, waits for it, closes its pipes. */
void cli_process_kill(cli_process *p);

typedef struct cli_child {
    clt_buf out;             /* its standard output */
    clt_buf err;             /* the end of its standard error */
    int exit_code;           /* -1 if a signal ended it */
    int signal;
    bool timed_out, too_much;
    double started_ms, ms;   /* clt_now_ms before the start; from there to its end */
} cli_child;

/* Runs argv (found in PATH if it has no '/') with empty input until it ends, limit_ms passed, or it wrote too much; it then
 * is killed with what it started. An interrupt of ours ends it too. CLT_E_FAILED if it cannot be started. Free the result
 * also after a failure. */
clt_status cli_child_run(const cli_words *words, double limit_ms, cli_child *out, clt_err *err);
void cli_child_free(cli_child *c);
/* Whether a program of this name can be started: a path, or a name in PATH. */
bool cli_child_exists(const char *name);

#endif
