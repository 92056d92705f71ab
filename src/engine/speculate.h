/* Speculation: which tokens to evaluate ahead of the reply, and how many of them, so that nobody loses.
 *
 * Drafts come from what was read and written before (prompt lookup), or from a text that the caller expects. They never
 * decide a token: the sampler sees the same logits, draft or none. `auto` weighs, before each step, what a pass over more
 * rows costs (measured here) against what it has earned (counted for every token, also while nothing is drafted). */
#ifndef CLT_ENGINE_SPECULATE_H
#define CLT_ENGINE_SPECULATE_H
#include <stdbool.h>
#include "engine/lookup.h"

enum { CLT_DRAFT_MOST = 32, CLT_DRAFT_USUAL = 6 };

typedef enum clt_spec_kind { CLT_SPEC_NONE, CLT_SPEC_FIXED, CLT_SPEC_AUTO } clt_spec_kind;

typedef struct clt_speculator clt_speculator;
/* draft: tokens of a draft (fixed), or at most (auto); 0 = as usual. prediction: what the reply is expected to be, or NULL;
 * copied. context: tokens of the timeline at most. */
clt_status clt_speculator_create(clt_spec_kind kind, int draft, const int32_t *prediction, size_t n_prediction,
                                 size_t context, clt_speculator **out, clt_err *err);
void clt_speculator_free(clt_speculator *s);
/* The timeline so far, before the first token is picked. */
void clt_speculator_read(clt_speculator *s, const int32_t *ids, size_t n);
/* The next token of the timeline ids[0..n), ids[n - 1], was picked: counts what a draft would have been right about. */
void clt_speculator_take(clt_speculator *s, const int32_t *ids, size_t n);
/* Tokens to evaluate behind the timeline: how many, at most `room` and CLT_DRAFT_MOST; 0: none. */
size_t clt_speculator_draft(const clt_speculator *s, size_t room, int32_t *out);
/* A pass over 1 + drafted rows took so long. */
void clt_speculator_timed(clt_speculator *s, size_t drafted, double ms);

#endif
