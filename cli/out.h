/* What the commands write: replies on standard output, everything else on standard error.
 *
 * Standard output is written at once (no buffer that a signal could lose). The first failed write is remembered; nothing is
 * written after it, and the command ends with exit code 1. */
#ifndef CLI_OUT_H
#define CLI_OUT_H
#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"
#include "base/err.h"
#include "culet.h"

/* Called once at the start: looks at the terminals and NO_COLOR, opens what was closed, ignores SIGPIPE. */
void cli_out_init(void);
void cli_out_quiet(bool quiet); /* no notes, no progress */

bool cli_out_terminal(void);    /* standard output is a terminal */
bool cli_err_terminal(void);    /* standard error is a terminal (progress, colour) */
bool cli_in_terminal(void);

/* False after a failed write, now or earlier. */
bool cli_out(const void *bytes, size_t n);
bool cli_out_buf(const clt_buf *b);  /* also false if the buffer ran out of memory */
bool cli_outf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Like cli_out; on a terminal, control bytes other than newline and tab are shown as U+FFFD, so that a model's text cannot
 * steer the terminal. */
bool cli_out_text(const char *text, size_t n);
/* The same on standard error; `dim` where colour is allowed. */
void cli_err_text(const char *text, size_t n, bool dim);

/* A line on standard error: a note (silent with -q) or an answer to the user (always). */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* "culet: TEXT", then the hint on a line of its own; returns the exit code. */
int cli_fail(const clt_err *e);
int cli_fail_engine(const culet_error *e);
/* The same for a failure known here. */
int cli_failf(clt_status status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of a command that did its work: 1 with an error line if standard output failed. */
int cli_finish(int code);

/* A progress line on a terminal: label and share done (0..1). cli_progress_end removes it. */
void cli_progress(const char *label, double done);
void cli_progress_end(void);
/* For culet_generate_params.on_progress: shows how far the prompt has been read. */
bool cli_on_prompt_progress(void *user, size_t done, size_t total);

#endif
