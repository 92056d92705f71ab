/* What the user asks: text from -p, -f or standard input, ids from --ids, and chat requests made of texts. */
#ifndef CLI_PROMPT_H
#define CLI_PROMPT_H
#include "args.h"

/* The bytes of the given text (every -p joined; -f without one final newline; standard input as it is). Returns 0, or prints
 * the error and returns the exit code. Texts may hold any bytes, NUL included. */
int cli_read_text(const cli_args *args, clt_buf *out);
/* What -f FILE gives: the file without one final newline, or standard input as it is ("-"). */
int cli_read_file_text(const char *path, clt_buf *out);
/* All of standard input, or a file up to 1 GiB ("-" = standard input). */
int cli_read_source(const char *path, clt_buf *out);
/* Reads --ids ("2,1841", spaces allowed, or "@FILE") and checks them against the vocabulary. */
int cli_read_ids(const char *text, int vocab, clt_ids *out);
/* Whatever the flags give, as ids: --ids as they stand, else the text, tokenised with --special and --no-bos. */
int cli_read_tokens(const cli_args *args, const culet_engine *e, clt_ids *out);
/* Tokenises into `out` (appended). */
int cli_tokenize_text(const culet_engine *e, const char *text, size_t len, bool special, bool bos, clt_ids *out);

/* The tokens of --predict-file; none without it. Returns 0, or prints the error and returns the exit code. */
int cli_read_prediction(const cli_args *args, const culet_engine *e, clt_ids *out);
/* Sets the speculation that the flags ask for. */
void cli_speculation(const cli_args *args, const clt_ids *prediction, culet_generate_params *p);

/* One chat message {"role","content"} as JSON. */
void cli_message(clt_buf *out, const char *role, const char *text, size_t len);
/* A chat request: `messages` = JSON objects separated by commas. */
void cli_request(clt_buf *out, const char *messages, size_t len, bool think);

/* True if ids end inside an open thought channel: the reply then begins as a thought. */
bool cli_ids_in_thought(const culet_engine *e, const int32_t *ids, size_t n);

#endif
