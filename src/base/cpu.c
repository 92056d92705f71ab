/* CPU levels: what this processor offers and the system saves across task switches, and which level to use. Computes
 * nothing with them: the kernels climb the levels themselves. */
#include "base/cpu.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const level_names[CLT_CPU_LEVELS] = {
    [CLT_CPU_SCALAR] = "scalar", [CLT_CPU_AVX2] = "avx2",
    [CLT_CPU_AVXVNNI] = "avxvnni", [CLT_CPU_AVX512] = "avx512",
    [CLT_CPU_AVX512VNNI] = "avx512vnni", [CLT_CPU_NEON] = "neon",
    [CLT_CPU_DOTPROD] = "dotprod", [CLT_CPU_I8MM] = "i8mm",
};

static pthread_once_t probed = PTHREAD_ONCE_INIT;
static unsigned ours;                     /* bit l: level l belongs to this architecture */
static char lacks[CLT_CPU_LEVELS][192]; /* what it still needs, as the kernel names it; "" = it can be used */
static char model[128];

static void need(clt_cpu_level l, const char *name, unsigned present) {
    size_t len = strlen(lacks[l]);
    ours |= 1u << l;
    if (!present) snprintf(lacks[l] + len, sizeof lacks[l] - len, "%s%s", len ? ", " : "", name);
}

/* A level stands on the one below. */
static void need_level(clt_cpu_level l, clt_cpu_level below) {
    memcpy(lacks[l], lacks[below], sizeof lacks[l]);
}

#if defined(__x86_64__)
#include <cpuid.h>

/* Register sets that the system saves (XCR0): bits 1 and 2 for ymm, 5 to 7 for zmm as well. */
static uint64_t saved_registers(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static void probe_levels(void) {
    unsigned a, b = 0, c = 0, d, c1 = 0, a7 = 0, a71 = 0, unused;
    if (!__get_cpuid(1, &a, &unused, &c1, &d)) c1 = 0;
    if (!__get_cpuid_count(7, 0, &a7, &b, &c, &d)) a7 = b = c = 0;
    if (a7 < 1 || !__get_cpuid_count(7, 1, &a71, &unused, &unused, &d)) a71 = 0;
    uint64_t saved = c1 >> 27 & 1 ? saved_registers() : 0;
    need(CLT_CPU_AVX2, "avx", c1 >> 28 & 1);
    need(CLT_CPU_AVX2, "avx2", b >> 5 & 1);
    need(CLT_CPU_AVX2, "fma", c1 >> 12 & 1);
    need(CLT_CPU_AVX2, "f16c", c1 >> 29 & 1);
    need(CLT_CPU_AVX2, "bmi2", b >> 8 & 1);
    need(CLT_CPU_AVX2, "ymm registers saved by the system", (saved & 0x06) == 0x06);
    need_level(CLT_CPU_AVXVNNI, CLT_CPU_AVX2);
    need(CLT_CPU_AVXVNNI, "avx_vnni", a71 >> 4 & 1);
    need_level(CLT_CPU_AVX512, CLT_CPU_AVX2);
    need(CLT_CPU_AVX512, "avx512f", b >> 16 & 1);
    need(CLT_CPU_AVX512, "avx512dq", b >> 17 & 1);
    need(CLT_CPU_AVX512, "avx512bw", b >> 30 & 1);
    need(CLT_CPU_AVX512, "avx512vl", b >> 31 & 1);
    need(CLT_CPU_AVX512, "zmm registers saved by the system", (saved & 0xE6) == 0xE6);
    need_level(CLT_CPU_AVX512VNNI, CLT_CPU_AVX512);
    need(CLT_CPU_AVX512VNNI, "avx512_vnni", c >> 11 & 1);
}

static void probe_model(void) {
    unsigned words[12], highest, b, c, d;
    if (!__get_cpuid(0x80000000u, &highest, &b, &c, &d) || highest < 0x80000004u) return;
    for (unsigned i = 0; i < 3; i++) {
        unsigned *w = words + 4 * i;
        if (!__get_cpuid(0x80000002u + i, &w[0], &w[1], &w[2], &w[3])) return;
    }
    memcpy(model, words, sizeof words);
    model[sizeof words] = 0;
}
#elif defined(__aarch64__)
#include <sys/auxv.h>

/* Bits of AT_HWCAP and AT_HWCAP2 as the kernel documents them for AArch64. */
enum { HWCAP_ASIMD_BIT = 1, HWCAP_ASIMDDP_BIT = 20, HWCAP2_I8MM_BIT = 13 };

static void probe_levels(void) {
    unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    need(CLT_CPU_NEON, "asimd", first >> HWCAP_ASIMD_BIT & 1);
    need_level(CLT_CPU_DOTPROD, CLT_CPU_NEON);
    need(CLT_CPU_DOTPROD, "asimddp", first >> HWCAP_ASIMDDP_BIT & 1);
    need_level(CLT_CPU_I8MM, CLT_CPU_DOTPROD);
    need(CLT_CPU_I8MM, "i8mm", second >> HWCAP2_I8MM_BIT & 1);
}

/* The board's name; the processor itself only tells numbers. */
static void probe_model(void) {
    FILE *f = fopen("/sys/firmware/devicetree/base/model", "re");
    if (!f) return;
    model[fread(model, 1, sizeof model - 1, f)] = 0;
    fclose(f);
}
#else
static void probe_levels(void) {
}

static void probe_model(void) {
}
#endif

static void probe(void) {
    ours = 1u << CLT_CPU_SCALAR;
    probe_levels();
    probe_model();
    size_t skip = strspn(model, " ");
    memmove(model, model + skip, strlen(model + skip) + 1);
    for (size_t n = strlen(model); n > 0 && model[n - 1] == ' ';) model[--n] = 0;
    if (!model[0]) strcpy(model, "unknown");
}

const char *clt_cpu_level_name(clt_cpu_level l) {
    return (unsigned)l < CLT_CPU_LEVELS ? level_names[l] : "unknown";
}

int clt_cpu_has(clt_cpu_level l) {
    pthread_once(&probed, probe);
    return (unsigned)l < CLT_CPU_LEVELS && (ours >> l & 1) && !lacks[l][0];
}

int clt_cpu_built(clt_cpu_level l) {
    pthread_once(&probed, probe);
    return (unsigned)l < CLT_CPU_LEVELS && (ours >> l & 1);
}

const char *clt_cpu_lacks(clt_cpu_level l) {
    pthread_once(&probed, probe);
    return (unsigned)l < CLT_CPU_LEVELS ? lacks[l] : "";
}

const char *clt_cpu_model(void) {
    pthread_once(&probed, probe);
    return model;
}

/* Adds the names of all levels, or of those that this CPU has. */
static void list_levels(char *text, size_t size, int only_here) {
    size_t len = 0;
    text[0] = 0;
    for (int l = 0; l < CLT_CPU_LEVELS && len < size; l++) {
        if (only_here && !clt_cpu_has((clt_cpu_level)l)) continue;
        int n = snprintf(text + len, size - len, "%s%s", len ? ", " : "", level_names[l]);
        len += n > 0 ? (size_t)n : 0;
    }
}

clt_status clt_cpu_choose(clt_cpu_level *out, clt_err *err) {
    const char *asked = getenv("CULET_CPU");
    char names[128];
    *out = CLT_CPU_SCALAR;
    if (!asked || !*asked) {
        for (int l = 0; l < CLT_CPU_LEVELS; l++)
            if (clt_cpu_has((clt_cpu_level)l)) *out = (clt_cpu_level)l;
        return CLT_OK;
    }
    for (int l = 0; l < CLT_CPU_LEVELS; l++) {
        if (strcmp(asked, level_names[l]) != 0) continue;
        *out = (clt_cpu_level)l;
        if (clt_cpu_has(*out)) return CLT_OK;
        list_levels(names, sizeof names, 1);
        clt_fail(err, CLT_E_UNSUPPORTED, "CULET_CPU=%s: this CPU (%s) does not have it", asked, clt_cpu_model());
        return clt_hint(err, "levels here: %s", names);
    }
    list_levels(names, sizeof names, 0);
    clt_fail(err, CLT_E_USAGE, "CULET_CPU=%s: no such level", asked);
    return clt_hint(err, "levels: %s", names);
}
