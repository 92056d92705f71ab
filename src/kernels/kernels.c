/* The table of kernels for each CPU level: climbs from the level below and replaces what a level does better. */
#include <pthread.h>
#include "kernels/internal.h"

static clt_kernels tables[CLT_CPU_LEVELS];
static bool present[CLT_CPU_LEVELS];

static clt_kernels *start_level(clt_cpu_level level, clt_cpu_level below) {
    tables[level] = tables[below];
    tables[level].level = level;
    present[level] = clt_cpu_has(level) != 0;
    return &tables[level];
}

static void fill_tables(void) {
    clt_kernels *k = start_level(CLT_CPU_SCALAR, CLT_CPU_SCALAR);
    k->quantize = clt_quantize_scalar;
    k->quantize_pair = clt_quantize_pair_scalar;
    k->matmul = clt_matmul_scalar;
    clt_vec_fill_scalar(k);
#ifdef CLT_BUILD_X86
    k = start_level(CLT_CPU_AVX2, CLT_CPU_SCALAR);
    k->quantize = clt_quantize_avx2;
    k->quantize_pair = clt_quantize_pair_avx2;
    k->matmul = clt_matmul_avx2;
    clt_vec_fill_avx2(k);
    start_level(CLT_CPU_AVXVNNI, CLT_CPU_AVX2)->matmul = clt_matmul_avxvnni;
    k = start_level(CLT_CPU_AVX512, CLT_CPU_AVX2);
    k->quantize = clt_quantize_avx512;
    k->quantize_pair = clt_quantize_pair_avx512;
    k->matmul = clt_matmul_avx512;
    clt_vec_fill_avx512(k);
    start_level(CLT_CPU_AVX512VNNI, CLT_CPU_AVX512)->matmul = clt_matmul_avx512vnni;
#endif
#ifdef CLT_BUILD_ARM
    k = start_level(CLT_CPU_NEON, CLT_CPU_SCALAR);
    k->quantize = clt_quantize_neon;
    k->quantize_pair = clt_quantize_pair_neon;
    k->matmul = clt_matmul_neon;
    clt_vec_fill_neon(k);
    start_level(CLT_CPU_DOTPROD, CLT_CPU_NEON)->matmul = clt_matmul_dotprod;
    start_level(CLT_CPU_I8MM, CLT_CPU_DOTPROD)->matmul = clt_matmul_i8mm;
#endif
}

const clt_kernels *clt_kernels_get(clt_cpu_level level) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables);
    return (unsigned)level < CLT_CPU_LEVELS && present[level] ? &tables[level] : NULL;
}
