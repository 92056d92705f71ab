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
static unsigned levels; /* bit l: level l can be used */
static char model[128];

#if defined(__x86_64__)
#include <cpuid.h>

/* Register sets that the system saves (XCR0): bits 1 and 2 for ymm, 5 to 7 for zmm as well. */
static uint64_t saved_registers(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static unsigned probe_levels(void) {
    unsigned a, b, c, d, a1 = 0, b1, c1, d1, found = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    unsigned fma = c >> 12 & 1, osxsave = c >> 27 & 1, avx = c >> 28 & 1, f16c = c >> 29 & 1;
    if (!osxsave || !avx || !fma || !f16c || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    uint64_t saved = saved_registers();
    unsigned avx2 = b >> 5 & 1, bmi2 = b >> 8 & 1;
    if (!avx2 || !bmi2 || (saved & 0x06) != 0x06) return 0;
    found |= 1u << CLT_CPU_AVX2;
    if (a >= 1 && __get_cpuid_count(7, 1, &a1, &b1, &c1, &d1) && (a1 >> 4 & 1)) found |= 1u << CLT_CPU_AVXVNNI;
    unsigned foundation = b >> 16 & 1, dq = b >> 17 & 1, bw = b >> 30 & 1, vl = b >> 31 & 1;
    if (!foundation || !dq || !bw || !vl || (saved & 0xE6) != 0xE6) return found;
    found |= 1u << CLT_CPU_AVX512;
    if (c >> 11 & 1) found |= 1u << CLT_CPU_AVX512VNNI;
    return found;
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

static unsigned probe_levels(void) {
    unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    unsigned found = 0;
    if (!(first >> HWCAP_ASIMD_BIT & 1)) return 0;
    found |= 1u << CLT_CPU_NEON;
    if (!(first >> HWCAP_ASIMDDP_BIT & 1)) return found;
    found |= 1u << CLT_CPU_DOTPROD;
    if (second >> HWCAP2_I8MM_BIT & 1) found |= 1u << CLT_CPU_I8MM;
    return found;
}

/* The board's name; the processor itself only tells numbers. */
static void probe_model(void) {
    FILE *f = fopen("/sys/firmware/devicetree/base/model", "re");
    if (!f) return;
    model[fread(model, 1, sizeof model - 1, f)] = 0;
    fclose(f);
}
#else
static unsigned probe_levels(void) {
    return 0;
}

static void probe_model(void) {
}
#endif

static void probe(void) {
    levels = probe_levels() | 1u << CLT_CPU_SCALAR;
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
    return (unsigned)l < CLT_CPU_LEVELS && (levels >> l & 1);
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
