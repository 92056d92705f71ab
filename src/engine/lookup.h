/* Prompt lookup: where the last tokens stood before, and what followed them there. */
#ifndef CLT_ENGINE_LOOKUP_H
#define CLT_ENGINE_LOOKUP_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum { CLT_LOOKUP_LEAST = 2, CLT_LOOKUP_MOST = 64 }; /* tokens that must have been equal; beyond these nobody counts */

typedef struct clt_lookup clt_lookup;
clt_status clt_lookup_create(size_t capacity, clt_lookup **out, clt_err *err); /* tokens that can be added */
void clt_lookup_free(clt_lookup *l);
/* Adds the next token. Past the capacity nothing is added. Allocates nothing. */
void clt_lookup_add(clt_lookup *l, int32_t id);
size_t clt_lookup_length(const clt_lookup *l);

typedef struct clt_match {
    size_t next;   /* place of the token that followed */
    int length;    /* tokens that were equal before it; 0: no match */
} clt_match;
/* The longest match of the last n tokens of `ids` (not necessarily those added), the latest of equally long ones. */
clt_match clt_lookup_find(const clt_lookup *l, const int32_t *ids, size_t n);
/* Up to k tokens that follow from m.next on. Where the end is reached, what was just written goes on: a text that repeats
 * itself repeats on. Returns how many: k, or fewer where nothing follows. */
size_t clt_lookup_copy(const clt_lookup *l, size_t next, int32_t *out, size_t k);

#endif
