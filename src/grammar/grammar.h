/* Grammars: what a reply may be -> which tokens may come next.
 *
 * A grammar is compiled once from GBNF, a JSON Schema or a list of tools, and is immutable. A matcher follows one reply
 * through it, byte by byte, so that the split into tokens does not matter, and tells the tokens that may follow. The tokens
 * of a vocabulary are prepared once and shared by all matchers. Knows no model: it is handed the bytes of tokens. */
#ifndef CLT_GRAMMAR_GRAMMAR_H
#define CLT_GRAMMAR_GRAMMAR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

/* Tokens that structure a tool call stand in grammars as bytes that UTF-8 never has. */
enum { CLT_BYTE_QUOTE = 0xFF, CLT_BYTE_CALL = 0xFE, CLT_BYTE_CALL_END = 0xFD };

/* ---- compiling ---- */

typedef struct clt_grammar clt_grammar;
/* GBNF as llama.cpp writes it; the rule `root` is the whole reply. Left recursion is refused by the rule's name. */
clt_status clt_grammar_from_gbnf(const char *text, size_t len, clt_grammar **out, clt_err *err);
/* JSON that a schema allows, with bounded white space. CLT_E_REQUEST names the place and the key that cannot be honoured.
 * {"type":"object"} is any JSON object. `what` begins error texts: "json_schema". */
clt_status clt_grammar_from_schema(const char *json, size_t len, const char *what, clt_grammar **out, clt_err *err);
/* The same from a parsed document. */
clt_status clt_grammar_from_schema_node(const clt_json *schema, const char *what, clt_grammar **out, clt_err *err);
/* One call of one of the functions of an OpenAI list of tools, from CLT_BYTE_CALL to CLT_BYTE_CALL_END, in Gemma's notation.
 * only: the one function that may be called, NULL = any. */
clt_status clt_grammar_from_tools(const clt_json *tools, const char *only, clt_grammar **out, clt_err *err);
void clt_grammar_free(clt_grammar *g);

/* ---- tokens ---- */

typedef struct clt_token_text {
    const char *bytes;
    uint32_t len; /* 0: no grammar allows this id */
} clt_token_text;
typedef struct clt_tokens clt_tokens;
/* Copies what it needs. Immutable afterwards; any number of threads may share it. */
clt_status clt_tokens_create(const clt_token_text *texts, int32_t n, clt_tokens **out, clt_err *err);
void clt_tokens_free(clt_tokens *t);
uint64_t clt_tokens_bytes(const clt_tokens *t); /* memory held; 0 for NULL */

/* ---- matching ---- */

typedef struct clt_matcher clt_matcher; /* one thread at a time; grammar and tokens must outlive it */
clt_status clt_matcher_create(const clt_grammar *g, const clt_tokens *t, clt_matcher **out, clt_err *err);
/* The same state with caches of its own. */
clt_status clt_matcher_copy(const clt_matcher *m, clt_matcher **out, clt_err *err);
void clt_matcher_free(clt_matcher *m);
void clt_matcher_reset(clt_matcher *m); /* to the beginning of the reply */

/* Advances over a token (bytes); false, and nothing changes, where the grammar does not allow it, or if memory or a limit
 * ran out (clt_matcher_check tells). Bytes advance as one step for rollback. */
bool clt_matcher_accept(clt_matcher *m, int32_t id);
bool clt_matcher_accept_bytes(clt_matcher *m, const char *bytes, size_t n);
/* Takes back the last n steps. false: that many are no longer known; the last CLT_MATCHER_STEPS always are. */
bool clt_matcher_rollback(clt_matcher *m, size_t n);
enum { CLT_MATCHER_STEPS = 64 };

/* bits[(V + 63) / 64]: bit id % 64 of word id / 64 is set if id may come next. */
clt_status clt_matcher_mask(clt_matcher *m, uint64_t *bits, clt_err *err);
bool clt_matcher_may_end(const clt_matcher *m);  /* the reply so far is complete */
bool clt_matcher_must_end(clt_matcher *m);       /* nothing can follow */
/* Appends the bytes that must come next, as far as they are certain. */
void clt_matcher_forced(clt_matcher *m, clt_buf *out);
clt_status clt_matcher_check(const clt_matcher *m, clt_err *err); /* a failure that accept or must_end met */
size_t clt_matcher_bytes(const clt_matcher *m);  /* memory held */

#endif
