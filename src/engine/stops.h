/* Stop strings: finds the first one in a text that only grows, and says how much of the text cannot belong to one. */
#ifndef CLT_ENGINE_STOPS_H
#define CLT_ENGINE_STOPS_H
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

typedef struct clt_stops {
    const char *const *strings; /* n, none of them empty */
    size_t n, longest;
    size_t searched;            /* no stop string ends at or before this offset */
} clt_stops;

/* CLT_E_USAGE for an empty string. The strings stay the caller's. */
clt_status clt_stops_init(clt_stops *st, const char *const *strings, size_t n, clt_err *err);
/* Searches what has been added since the last call. True: *at is where the stop string begins that ends first, the longest
 * of those that end together; this does not depend on how the text arrived. False: *at is the length that is safe to show;
 * what follows could still become a stop string. */
bool clt_stops_find(clt_stops *st, const char *text, size_t len, size_t *at);

#endif
