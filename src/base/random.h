/* Random draws that depend on nothing but (seed, position): the same seed gives the same text whatever the batch, the
 * speculation or the order of evaluation. */
#ifndef CLT_BASE_RANDOM_H
#define CLT_BASE_RANDOM_H
#include <stdint.h>

uint64_t clt_random_u64(uint64_t seed, uint64_t position, uint64_t stream);
double clt_random_unit(uint64_t seed, uint64_t position, uint64_t stream); /* in [0, 1), 53 bits */
uint64_t clt_random_entropy(void); /* a fresh seed from the system */

#endif
