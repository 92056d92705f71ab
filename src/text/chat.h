/* Chat rendering: an OpenAI-style request -> the prompt that a Gemma expects.
 *
 * The official templates are built in, per generation; a model's own template text is recognised by its features and only
 * selects one of them. Text of users, tools and history stays plain text: only the renderer places special tokens. */
#ifndef CLT_TEXT_CHAT_H
#define CLT_TEXT_CHAT_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "text/vocab.h"

typedef enum clt_chat_generation {
    CLT_CHAT_GEMMA3,
    CLT_CHAT_GEMMA4_FIRST,        /* launch: media between blank lines, no tool role */
    CLT_CHAT_GEMMA4_INTERLEAVED,  /* reasoning kept between tool calls, tool role still a turn of its own */
    CLT_CHAT_GEMMA4,              /* OpenAI tool messages folded into the model turn */
    CLT_CHAT_GEMMA4_JULY,         /* header dated 2026-07-09: null, merged turns, thought opened after a tool result */
    CLT_CHAT_GENERATIONS
} clt_chat_generation;

typedef struct clt_chat_template {
    clt_chat_generation generation;
    bool closed_thought;   /* thinking off: the generation prompt ends in a closed empty thought */
    bool recognised;       /* false: the file's template was unknown and `generation` is the nearest of its family */
    char digest[65];       /* SHA-256 of the file's template text; empty if there was none or no libcrypto */
} clt_chat_template;

/* What decides where a file has no template: family and size. */
typedef struct clt_chat_facts {
    bool gemma3;
    bool small;  /* Gemma 4 E sizes (per-layer embeddings): no closed empty thought */
} clt_chat_facts;

const char *clt_chat_generation_name(clt_chat_generation g);
/* text NULL: by facts, newest generation. Never fails; look at `recognised`. */
void clt_chat_recognise(const char *text, size_t len, const clt_chat_facts *facts, clt_chat_template *out);

/* A rendered prompt: plain text and special tokens in order. */
typedef enum clt_piece_kind {
    CLT_PIECE_TEXT, CLT_PIECE_SPECIAL, CLT_PIECE_IMAGE, CLT_PIECE_AUDIO, CLT_PIECE_VIDEO
} clt_piece_kind;
typedef struct clt_piece {
    clt_piece_kind kind;
    size_t offset, len; /* into clt_prompt.text */
} clt_piece;
typedef struct clt_prompt {
    clt_buf text;          /* the exact rendered bytes, "<bos>" included */
    clt_piece *pieces;
    size_t n_pieces, cap_pieces;
    bool in_thought;       /* the prompt ends inside an open thought: the reply starts as reasoning */
} clt_prompt;
void clt_prompt_free(clt_prompt *p); /* a zeroed prompt is empty; freeing it twice is fine */

typedef struct clt_chat_options {
    bool add_generation_prompt;
    bool continue_final_message;
    bool enable_thinking;
    bool continue_reasoning; /* continue_final_message is "reasoning_content": the prompt ends inside that thought */
    bool preserve_thinking;  /* July generation: thoughts of older turns that called tools stay */
} clt_chat_options;
/* Reads add_generation_prompt (true), continue_final_message (false; true, "content" or "reasoning_content") and
 * chat_template_kwargs.enable_thinking and .preserve_thinking (false) of a request. Continuing a message means that no
 * generation prompt follows, unless the request asks for both, which is CLT_E_REQUEST. */
clt_status clt_chat_read_options(const clt_json *request, clt_chat_options *o, clt_err *err);
/* Renders request.messages and request.tools. A request that the template refuses or that has wrong types is
 * CLT_E_REQUEST and names the path ("messages[2].content"). */
clt_status clt_chat_render(const clt_chat_template *t, const clt_json *request, const clt_chat_options *o, clt_prompt *out,
                           clt_err *err);
/* The ids of a rendered prompt: BOS once, special pieces by id, text between them with specials off. Media pieces
 * become one placeholder id each. */
clt_status clt_prompt_tokenize(const clt_prompt *p, const clt_vocab *v, clt_ids *out, clt_err *err);

#endif
