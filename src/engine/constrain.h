/* What a reply must be: grammars and tools of one generation, from the first id to the last. One thread at a time. */
#ifndef CLT_ENGINE_CONSTRAIN_H
#define CLT_ENGINE_CONSTRAIN_H
#include "engine/impl.h"

typedef struct clt_constraint clt_constraint;
/* *out = NULL if the parameters ask for nothing. Makes the tokens of the engine's vocabulary ready at first use. */
clt_status clt_constraint_create(culet_engine *e, const culet_generate_params *p, clt_constraint **out, clt_err *err);
void clt_constraint_free(clt_constraint *c);

/* constrain_tokens.c: n = rows of logits, which may be more than the vocabulary has. */
clt_status clt_constraint_tokens(const clt_vocab *v, int32_t n, clt_tokens **out, clt_err *err);

/* The ids that may come next, as clt_sample_params takes them; *bits = NULL: all. */
clt_status clt_constraint_allowed(clt_constraint *c, const uint64_t **bits, clt_err *err);
/* Takes an id that was allowed. */
clt_status clt_constraint_take(clt_constraint *c, int32_t id, clt_err *err);
/* The reply is complete and nothing can follow. */
bool clt_constraint_ended(const clt_constraint *c);

#endif
