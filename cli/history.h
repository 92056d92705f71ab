/* A conversation: its messages, and the tokens and text of its last prompt and reply.
 *
 * Past replies are kept as the ids that the model produced, not as their text tokenised again, so that the next turn
 * evaluates only what is new. That holds wherever the newly rendered prompt still begins with the same text; where it does
 * not (a thought that the template drops), the prompt is taken as rendered. */
#ifndef CLI_HISTORY_H
#define CLI_HISTORY_H
#include "base/json.h"
#include "content.h"
#include "culet.h"
#include "media.h"

typedef struct cli_history_message {
    char *json;
    size_t n_media;          /* pictures and sounds in it */
} cli_history_message;

typedef struct cli_history {
    cli_history_message *messages;
    size_t n, cap;
    cli_media media;         /* of all messages in order; behind them, what waits for the next one */
    size_t n_media;          /* of them, those of messages */
    bool replied;            /* the last message is a reply */
    clt_ids ids;             /* last prompt and reply; one placeholder for each medium */
    clt_buf text;            /* what the template writes for them */
    size_t prompt_ids, prompt_text; /* where the reply begins */
} cli_history;

void cli_history_free(cli_history *h);
/* False only if memory ran out. */
bool cli_history_add(cli_history *h, const char *role, const char *text, size_t len);
/* The same for a message with media, which have been put behind h->media before. */
bool cli_history_add_content(cli_history *h, const char *role, const cli_content *content);
/* Drops the last message with its media. */
void cli_history_drop_last(cli_history *h);

/* Renders the conversation: afterwards ids and text hold the new prompt, and no reply. */
culet_status cli_history_prompt(cli_history *h, const culet_engine *e, bool think, bool *in_thought, culet_error *err);
/* Takes the reply to that prompt into messages, ids and text. */
culet_status cli_history_reply(cli_history *h, const culet_engine *e, const culet_reply *reply, culet_error *err);

/* The history's members, written into and read from an open JSON object. Media are not among them: a saved session holds
 * them. Reading takes them over from `media`, the session's, and replaces *h only on success. */
void cli_history_write(const cli_history *h, clt_jsonw *w);
clt_status cli_history_read(cli_history *h, const clt_json *document, int vocab, cli_media *media, clt_err *err);

#endif
