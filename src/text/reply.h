/* Reply parsing: the ids that a model produced -> content, thought and tool calls, as they arrive.
 *
 * Works on token ids, so text that merely looks like a marker stays content; the result does not depend on how the ids were
 * split into calls. No end id is fed to it. One parser per reply; not thread-safe. */
#ifndef CLT_TEXT_REPLY_H
#define CLT_TEXT_REPLY_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"
#include "text/vocab.h"

typedef struct clt_reply clt_reply;
typedef struct clt_reply_call {
    const char *name;       /* everything between "call:" and the first brace; valid until the next call into the parser */
    const char *arguments;  /* one JSON object */
} clt_reply_call;

/* in_thought: the prompt ended inside an open thought. raw: everything is content (completions), special ids print
 * nothing. */
clt_status clt_reply_create(const clt_vocab *v, bool in_thought, bool raw, clt_reply **out, clt_err *err);
clt_status clt_reply_push(clt_reply *r, int32_t id, clt_err *err);
/* The reply is over: an unfinished thought stays thought, a call cut by the length limit is dropped (finish "length"), a
 * complete text that cannot be read as a call becomes content. */
clt_status clt_reply_end(clt_reply *r, bool cut_by_length, clt_err *err);
void clt_reply_free(clt_reply *r);

/* What has been parsed so far; whole valid UTF-8, only ever growing, so a caller streams what is beyond its last length. */
const char *clt_reply_content(const clt_reply *r, size_t *len);
const char *clt_reply_thought(const clt_reply *r, size_t *len);
size_t clt_reply_calls(const clt_reply *r);
void clt_reply_call_at(const clt_reply *r, size_t i, clt_reply_call *out);

/* Gemma's argument notation {key:<|"|>text<|"|>,n:3} -> a JSON object, tolerant of plain quotes and bare words.
 * false if it cannot be read. text holds quote tokens as their text `<|"|>`. */
bool clt_arguments_to_json(const char *text, size_t len, clt_buf *json);

#endif
