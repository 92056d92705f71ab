/* A reply as it arrives and after it ended: streaming to the terminal or pipe, the timings, the JSON document. */
#ifndef CLI_REPLY_H
#define CLI_REPLY_H
#include "args.h"

/* Where streamed text goes. Content to standard output, thoughts to standard error. */
typedef struct cli_stream {
    bool silent;          /* nothing is shown (--json) */
    bool hide_thoughts;   /* -q */
    bool in_thought;      /* the last delta was a thought: a line break is due before content */
    bool any, newline;    /* something was written; it ended in a newline */
} cli_stream;
bool cli_stream_delta(void *stream, culet_delta kind, const char *text, size_t len);
/* Ends the last line on a terminal, or always if `always`. */
void cli_stream_end(cli_stream *s, bool always);

/* Everything that --stats tells about one reply. */
typedef struct cli_timings {
    culet_timings t;
    culet_finish finish;
    double load_ms, vision_ms; /* vision_ms: decoding and encoding of pictures and sounds, before the prompt is read */
    uint64_t kv_bytes;
    const char *spec, *cpu_level;
    int threads;
} cli_timings;
void cli_timings_read(const cli_args *args, const culet_engine *e, const culet_session *s, const culet_reply *r,
                      double vision_ms, cli_timings *out);
/* One JSON object on one line, without a newline. */
void cli_timings_json(const cli_timings *m, clt_buf *out);
/* As --stats asks, to standard error. */
void cli_timings_print(const cli_timings *m, int stats);

/* {"prompt_ids","ids","text","reasoning","tool_calls","finish_reason","timings"} and a newline. */
void cli_reply_json(const culet_reply *r, const int32_t *prompt, size_t n_prompt, const cli_timings *m, clt_buf *out);
/* Tool calls as notes on standard error: they have no place in plain text. */
void cli_reply_note_calls(const culet_reply *r);

#endif
