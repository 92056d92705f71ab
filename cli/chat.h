/* What the chat loop and its slash commands share. */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H
#include "args.h"
#include "bound.h"
#include "history.h"
#include "lines.h"
#include "reply.h"

typedef struct cli_chat_state {
    const cli_args *given;   /* as on the command line */
    cli_bound bound;         /* of every reply */
    cli_args args;           /* with what /set, /think and /load changed; borrows given's arrays */
    culet_engine *engine;
    culet_session *session;
    cli_lines *lines;
    cli_history history;
    culet_sampling sampling; /* of the next reply */
    int32_t *bias_ids;
    float *bias_values;
    cli_timings last;        /* of the last reply */
    clt_ids prediction;      /* --predict-file */
    cli_content waiting;     /* pictures and sounds given for the next message */
    double vision_ms;        /* of the media of the message that is answered */
    bool has_last;
    bool leaving;
    int exit_code;
} cli_chat_state;

/* Answers the conversation as it stands; its last message is the user's. Returns 0 or an exit code, the error printed. */
int cli_chat_reply(cli_chat_state *c);
/* Runs a line that begins with '/'. */
void cli_chat_command(cli_chat_state *c, const char *line);
/* Forgets all but the system message, also what waits for the next one. False if memory ran out. */
bool cli_chat_clear(cli_chat_state *c);
/* Resolves args into sampling again. The seed stays as it is unless it was set. */
void cli_chat_resample(cli_chat_state *c);

#endif
