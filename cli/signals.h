/* SIGINT and SIGTERM. What a signal does depends on what the command is doing: outside of a session the process leaves at
 * once (130, 143); while a session evaluates, the session is asked to stop and the command ends in order; while chat waits
 * for a line, the wait ends. A second signal during a session leaves at once. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H
#include <stdbool.h>
#include "culet.h"

void cli_signals_init(void);
/* From here to cli_signals_release a signal cancels `s`. One that was caught while media are held is not forgotten. */
void cli_signals_hold(culet_session *s);
/* The same for a picture or sound that is being encoded. */
void cli_signals_hold_media(culet_engine *e);
void cli_signals_release(void);
/* From here on a signal that ends us also ends this group of processes; 0 = none. */
void cli_signals_group(int id);
/* The signal caught since the last cli_signals_hold or cli_signals_begin_line, or 0. */
int cli_signals_caught(void);
/* Between these two a signal ends the waits for input, also one that comes before the wait begins: the prompt that invites a
 * Ctrl-C is on the screen earlier. */
void cli_signals_begin_line(void);
void cli_signals_end_line(void);
/* Between them: waits until standard input can be read (true) or a signal came (false; see cli_signals_caught). */
bool cli_signals_wait_input(void);
/* Prints "culet: interrupted" and returns 128 + the signal caught. */
int cli_signals_exit(void);

#endif
