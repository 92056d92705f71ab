/* Lines from standard input: edited with libedit on a terminal where it was built in, plain otherwise. */
#ifndef CLI_LINES_H
#define CLI_LINES_H
#include "base/buf.h"

typedef struct cli_lines cli_lines;
typedef enum cli_line_result { CLI_LINE, CLI_LINE_END, CLI_LINE_SIGNAL, CLI_LINE_FAILED } cli_line_result;

cli_lines *cli_lines_open(void); /* NULL if memory ran out */
/* Replaces *line by the next line without its newline. `prompt` is shown on a terminal only. CLI_LINE_SIGNAL: see
 * cli_signals_caught; what was typed is dropped. */
cli_line_result cli_lines_next(cli_lines *l, const char *prompt, clt_buf *line);
void cli_lines_close(cli_lines *l); /* restores the terminal; NULL is fine */

#endif
