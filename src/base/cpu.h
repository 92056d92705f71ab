/* Which instruction sets this CPU has and the system allows. */
#ifndef CLT_BASE_CPU_H
#define CLT_BASE_CPU_H
#include "base/err.h"

/* In ascending order of preference within one architecture. */
typedef enum clt_cpu_level {
    CLT_CPU_SCALAR, CLT_CPU_AVX2, CLT_CPU_AVXVNNI, CLT_CPU_AVX512, CLT_CPU_AVX512VNNI,
    CLT_CPU_NEON, CLT_CPU_DOTPROD, CLT_CPU_I8MM, CLT_CPU_LEVELS
} clt_cpu_level;

const char *clt_cpu_level_name(clt_cpu_level l); /* scalar avx2 avxvnni avx512 avx512vnni neon dotprod i8mm */
int clt_cpu_has(clt_cpu_level l);
int clt_cpu_built(clt_cpu_level l);         /* whether it belongs to the architecture this program was built for */
const char *clt_cpu_lacks(clt_cpu_level l); /* what of it this CPU lacks: "avx512bw, avx512vl"; "" = nothing; static */
const char *clt_cpu_model(void); /* "AMD EPYC 7763 …"; "unknown" where the system does not say; static storage */
/* The level to use: CULET_CPU if set and not empty, else the best. CLT_E_USAGE for an unknown name, CLT_E_UNSUPPORTED for a
 * level that this CPU lacks. */
clt_status clt_cpu_choose(clt_cpu_level *out, clt_err *err);

#endif
