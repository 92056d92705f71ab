/* What the tests of grammars share: a small vocabulary, and texts put through a grammar. */
#ifndef CLT_TESTS_GRAMMAR_FIXTURE_H
#define CLT_TESTS_GRAMMAR_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "grammar/grammar.h"

enum { N_TOKENS = 256 + 96 }; /* every byte, then words */

clt_tokens *small_vocabulary(void);           /* made once, freed by drop_vocabulary */
void drop_vocabulary(void);
const clt_token_text *token_text(int32_t id); /* of it */

/* Compile, failing the test with the error's text. */
clt_grammar *gbnf(const char *text);
clt_grammar *schema(const char *json);
/* The refusal of a text; its status must be CLT_E_REQUEST. Valid until the next call. */
const char *gbnf_error(const char *text);
const char *schema_error(const char *json);

clt_matcher *matcher_of(const clt_grammar *g);
typedef enum verdict { REFUSED, UNFINISHED, COMPLETE } verdict;
verdict judge(const clt_grammar *g, const char *text, size_t len);
/* Judges lines of texts against a grammar: "+text" complete, "~text" a beginning, "-text" refused. */
void assert_verdicts(const clt_grammar *g, const char *const *lines);
/* Walks random replies and compares each mask with what accept says of every token. Returns the masks compared. */
size_t compare_masks(const clt_grammar *g, unsigned seed, size_t steps);

#endif
