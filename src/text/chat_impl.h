/* What the files of the chat renderer share. Internal to text.
 *
 *   chat_prompt.c     the rendered prompt: pieces, tokenizing
 *   chat_value.c      JSON values as the templates print them
 *   chat_schema.c     tool declarations
 *   chat_check.c      the shape of a request, its options
 *   chat.c            turns, Gemma 4
 *   chat_gemma3.c     turns, Gemma 3
 *   chat_recognise.c  which generation a template text is */
#ifndef CLT_TEXT_CHAT_IMPL_H
#define CLT_TEXT_CHAT_IMPL_H
#include "text/chat.h"

/* Which thoughts of past assistant messages are rendered. */
typedef enum clt_chat_thoughts {
    CLT_THOUGHTS_NONE,
    CLT_THOUGHTS_TIGHT,  /* with tool calls, after the last user message, no newline before the closing marker */
    CLT_THOUGHTS_CALLS,  /* with tool calls, after the last user message */
    CLT_THOUGHTS_RECENT  /* everything after the last user message */
} clt_chat_thoughts;

/* How the Gemma 4 generations differ. */
typedef struct clt_chat_features {
    const char *think;                /* first thing in the system turn when thinking is on */
    clt_chat_thoughts thoughts;
    bool blank_lines_around_pictures; /* images and videos */
    bool folds_tool_messages;         /* role "tool" becomes a response in the model's turn */
    bool calls_join_response;         /* no new turn between a native tool response and further calls */
    bool primer_after_response;       /* the closed thought also follows a tool response */
    bool thought_after_response;      /* thinking on: a tool response is followed by an open thought */
    bool joins_turns;                 /* adjacent assistant messages share one turn, closed once */
    bool strict_arguments;            /* call arguments that are no object are refused */
    bool prints_null;                 /* "null" where the others print "None" */
    bool spaces_system_parts;         /* every part of the system text is followed by a space */
    bool empty_name_is_unknown;       /* a tool result named "" is "unknown" */
    bool renders_result_media;        /* media of a tool message follow its response */
    bool calls_survive_media;         /* media after a call do not end the wait for its result */
    bool tidy_properties;             /* tool parameters: commas only between fields, nullable after enum and items */
    bool hides_standard_names;        /* parameters named "type", "required" … are left out */
} clt_chat_features;

typedef struct clt_chat_render {
    const clt_chat_template *chosen;
    const clt_chat_options *options;
    const clt_chat_features *features; /* NULL for Gemma 3 */
    const clt_json *messages;          /* checked by clt_chat_check_messages */
    clt_prompt *out;
    clt_err *err;
} clt_chat_render_state;

/* ---- chat_prompt.c: a failed allocation sets out->text.failed, which the caller checks once ---- */
/* Text of users, tools and files: never a special token. */
void clt_prompt_put_text(clt_prompt *p, const char *s, size_t len);
/* Text of the renderer itself: the spellings of special tokens in it become special or media pieces. */
void clt_prompt_put_markup(clt_prompt *p, const char *markup);
/* Length of the special token's spelling that s starts with, or 0. */
size_t clt_chat_marker(const char *s, size_t n);

/* ---- chat_value.c ---- */
typedef struct clt_chat_entry {
    const char *key;
    size_t key_len, order;
    const clt_json *value;
} clt_chat_entry;
/* The entries of up to `n` objects, sorted by key without regard to case as Jinja's dictsort does. A key of an earlier
 * object hides that of a later one. *out is one block for clt_free. */
clt_status clt_chat_sort(const clt_json *const *objects, size_t n, clt_chat_entry **out, size_t *count, clt_err *err);
bool clt_chat_truthy(const clt_json *n); /* as Python sees it; NULL (absent) is false */
bool clt_chat_is_scalar(const clt_json *n); /* neither array nor object; NULL counts */
/* Python's str() of a scalar; absent prints nothing. */
void clt_chat_scalar(const clt_json *n, bool upper, clt_buf *out);
void clt_chat_put_scalar(clt_chat_render_state *r, const clt_json *n, bool upper);
/* A value in the notation of tool arguments. quote_keys: keys stand between quote tokens. */
clt_status clt_chat_put_value(clt_chat_render_state *r, const clt_json *n, bool quote_keys);
/* {key:value,…} without the braces, keys bare. */
clt_status clt_chat_put_members(clt_chat_render_state *r, const clt_json *object);

/* ---- chat_schema.c: <|tool>…<tool|> for every tool ---- */
clt_status clt_chat_put_tools(clt_chat_render_state *r, const clt_json *tools);

/* ---- chat_check.c ---- */
typedef enum clt_chat_part { CLT_PART_TEXT, CLT_PART_IMAGE, CLT_PART_AUDIO, CLT_PART_VIDEO, CLT_PART_UNKNOWN } clt_chat_part;
clt_chat_part clt_chat_part_kind(const clt_json *part);
/* Checks messages and tools once, so that the renderers need not: known roles, content a string, null or known parts, calls
 * with names. What is wrong is CLT_E_REQUEST with its path. */
clt_status clt_chat_check_request(const clt_json *request, clt_err *err);
/* Refuses a document in which the parser met a whole number beyond 64 bits: from then on it reads all numbers as reals,
 * and 2 would print as 2.0. Such a document has no integers and a huge real; the rare one that was written so is
 * refused as well. */
clt_status clt_chat_check_numbers(const clt_json *doc, const char *where, clt_err *err);
bool clt_chat_has_role(const clt_json *message, const char *role);
bool clt_chat_is_system(const clt_json *message); /* system or developer */
bool clt_chat_is_model(const clt_json *message);  /* assistant or model */

/* ---- chat_gemma3.c ---- */
clt_status clt_chat_render_gemma3(clt_chat_render_state *r, const clt_json *tools);

#endif
