/* What the flags ask, in their order: texts (-p, -f, or standard input where neither is given) and the places of media. */
#ifndef CLI_CONTENT_H
#define CLI_CONTENT_H
#include "args.h"
#include "base/json.h"

typedef struct cli_item {
    cli_part_kind kind; /* CLI_PART_TEXT, or a medium, which has no text */
    clt_buf text;       /* any bytes */
} cli_item;

typedef struct cli_content {
    cli_item *item;     /* no two texts side by side */
    size_t n;
} cli_content;

/* Returns 0, or prints the error and returns the exit code. */
int cli_content_read(const cli_args *args, cli_content *out);
void cli_content_free(cli_content *c);
/* A raw prompt: texts tokenised one by one with --special and --no-bos, a placeholder for each medium. */
int cli_content_tokenize(const cli_args *args, const cli_content *c, const culet_engine *e, clt_ids *out);
/* A chat of one message, --system-prompt before it, rendered and tokenised. */
int cli_content_render(const cli_args *args, const cli_content *c, const culet_engine *e, clt_ids *out, bool *in_thought);
/* One chat message as JSON; out->failed tells of memory that ran out. */
void cli_content_message(const cli_content *c, const char *role, clt_buf *out);
/* What cli_content_message wrote as "content". *known false: it is something else. False: no memory. */
bool cli_content_parse(const clt_json *content, cli_content *out, bool *known);
/* The id that stands for a medium until it is expanded; -1 if the model knows none. */
int32_t cli_placeholder(const culet_engine *e, cli_part_kind kind);

#endif
