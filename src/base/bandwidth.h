/* How fast this machine's memory can be read. */
#ifndef CLT_BASE_BANDWIDTH_H
#define CLT_BASE_BANDWIDTH_H
#include <stdint.h>
#include "base/err.h"

/* Medians over the passes; GB = 1e9 bytes. */
typedef struct clt_bandwidth {
    double plain_gb_s;    /* each thread loads its part from end to end: what bandwidth usually means */
    double streams_gb_s;  /* two streams per thread, fetched ahead: the most that reading was seen to give */
    uint64_t bytes;       /* read in each pass */
    int passes, threads;
} clt_bandwidth;

/* Reads one buffer from end to end with `threads` threads, several times. It holds at most `most_bytes` (0 = 2 GiB, many times
 * the usual caches) and a quarter of the free memory. Takes one to three seconds. CLT_E_MEMORY where even a small buffer
 * does not fit. */
clt_status clt_bandwidth_measure(int threads, uint64_t most_bytes, clt_bandwidth *out, clt_err *err);

#endif
