/* How much memory this process may still take. */
#ifndef CLT_BASE_LIMITS_H
#define CLT_BASE_LIMITS_H
#include <stdint.h>

#define CLT_UNLIMITED UINT64_MAX

typedef struct clt_memory_room {
    uint64_t machine_total, machine_free; /* bytes; free = what the kernel calls available: with caches it can drop */
    uint64_t group_limit, group_used;     /* of the control group that leaves least; CLT_UNLIMITED, 0 where none limits */
    char group[128];                      /* its name and file: "/box (memory.max)" */
    uint64_t free_bytes;                  /* the least of machine, groups and ulimits; CLT_UNLIMITED where nothing says */
    char source[192];                     /* what sets free_bytes, for a message: "free memory", "control group /box …" */
} clt_memory_room;

/* Pages of files that the kernel can drop (those of a model, too) count as free, once. */
void clt_memory_look(clt_memory_room *out);

#endif
