/* Counter-based random numbers: (seed, position, stream) in, bits out; no state. The Philox-4x32-10 block function of
 * Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011): the seed is its key, position and
 * stream are its counter. */
#include "base/random.h"
#include <errno.h>
#include <sys/random.h>
#include <time.h>

enum { ROUNDS = 10 };

uint64_t clt_random_u64(uint64_t seed, uint64_t position, uint64_t stream) {
    uint32_t c0 = (uint32_t)position, c1 = (uint32_t)(position >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(b >> 32) ^ c1 ^ k0, n2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c0 = n0;
        c1 = (uint32_t)b;
        c2 = n2;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (uint64_t)c1 << 32 | c0;
}

double clt_random_unit(uint64_t seed, uint64_t position, uint64_t stream) {
    return (double)(clt_random_u64(seed, position, stream) >> 11) * 0x1p-53;
}

uint64_t clt_random_entropy(void) {
    uint64_t seed = 0;
    ssize_t got;
    do got = getrandom(&seed, sizeof seed, 0);
    while (got < 0 && errno == EINTR);
    if (got == (ssize_t)sizeof seed) return seed;
    struct timespec t; /* a system without getrandom */
    clock_gettime(CLOCK_REALTIME, &t);
    return clt_random_u64((uint64_t)t.tv_sec, (uint64_t)t.tv_nsec, (uint64_t)(uintptr_t)&seed);
}
