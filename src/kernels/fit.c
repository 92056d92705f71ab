/* Which implementation of the search a CPU level uses. */
#include "kernels/fit.h"

clt_fit_fn clt_fit_get(clt_cpu_level level) {
#ifdef CLT_BUILD_X86
    if (level == CLT_CPU_AVX512 || level == CLT_CPU_AVX512VNNI) return clt_fit_avx512;
    if (level == CLT_CPU_AVX2 || level == CLT_CPU_AVXVNNI) return clt_fit_avx2;
#else
    (void)level;
#endif
    return clt_fit_scalar;
}

int clt_fit_sub_len(clt_type t) {
    return t == CLT_Q2_K || t == CLT_Q3_K || t == CLT_Q6_K ? 16 : 32;
}
