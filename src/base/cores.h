/* Which processors this process may use, and how many threads suit them. */
#ifndef CLT_BASE_CORES_H
#define CLT_BASE_CORES_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

enum { CLT_MAX_CPUS = 1024 };

/* A set of logical CPUs, by the system's numbers. */
typedef struct clt_cpus { uint64_t bits[CLT_MAX_CPUS / 64]; } clt_cpus;

static inline bool clt_cpus_has(const clt_cpus *s, int cpu) { return s->bits[cpu / 64] >> (cpu % 64) & 1; }
static inline void clt_cpus_add(clt_cpus *s, int cpu) { s->bits[cpu / 64] |= UINT64_C(1) << (cpu % 64); }
int clt_cpus_count(const clt_cpus *s);
/* Adds what `text` names: hexadecimal digits with or without 0x, lowest CPU last; "lo-hi", where either end may be left out.
 * `what` names the flag in the message. CLT_E_USAGE for another form or a CPU beyond CLT_MAX_CPUS. */
clt_status clt_cpus_add_mask(clt_cpus *s, const char *what, const char *text, clt_err *err);
clt_status clt_cpus_add_range(clt_cpus *s, const char *what, const char *text, clt_err *err);

typedef struct clt_cores_info {
    int online;                /* logical CPUs of the machine */
    clt_cpus allowed;          /* those this process may use */
    int logical, physical;     /* count of `allowed`, and of the physical cores they belong to */
    int fast;                  /* of the physical ones, those that are not of a slower kind */
    double quota;              /* processors that a control group grants per second; 0 = no quota */
    int threads;               /* the default: fast cores, within the quota, >= 1 */
} clt_cores_info;

/* within: a narrower set to count in; NULL = all that the process may use. */
void clt_cores_look(const clt_cpus *within, clt_cores_info *out);

#endif
