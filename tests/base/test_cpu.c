/* CPU levels: names, CULET_CPU, and agreement with what the system itself reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cpu.h"

static void test_names(void **state) {
    (void)state;
    static const char *const names[] = {"scalar", "avx2", "avxvnni", "avx512", "avx512vnni", "neon", "dotprod", "i8mm"};
    for (int l = 0; l < CLT_CPU_LEVELS; l++) assert_string_equal(clt_cpu_level_name((clt_cpu_level)l), names[l]);
    assert_string_equal(clt_cpu_level_name(CLT_CPU_LEVELS), "unknown");
    assert_true(strlen(clt_cpu_model()) > 0);
}

/* The system lists a flag only if it also saves the registers, so the two must agree. */
static void test_levels_agree_with_the_system(void **state) {
    (void)state;
    static char flags[16384];
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f) skip();
    while (fgets(flags, sizeof flags, f))
        if (strncmp(flags, "flags", 5) == 0) break;
    fclose(f);
    if (strncmp(flags, "flags", 5) != 0) skip();
    flags[strcspn(flags, "\n")] = ' ';
    assert_int_equal(clt_cpu_has(CLT_CPU_AVX2),
                     strstr(flags, " avx2 ") && strstr(flags, " fma ") && strstr(flags, " bmi2 "));
    assert_int_equal(clt_cpu_has(CLT_CPU_AVXVNNI), strstr(flags, " avx_vnni ") != NULL);
    assert_int_equal(clt_cpu_has(CLT_CPU_AVX512), strstr(flags, " avx512bw ") && strstr(flags, " avx512vl "));
    assert_int_equal(clt_cpu_has(CLT_CPU_AVX512VNNI), strstr(flags, " avx512_vnni ") != NULL);
    assert_false(clt_cpu_has(CLT_CPU_NEON));
}

/* A level can be used exactly if it was built and lacks nothing, and what a lower one lacks the higher one lacks too. */
static void test_what_is_lacking(void **state) {
    (void)state;
    for (int l = 0; l < CLT_CPU_LEVELS; l++)
        assert_int_equal(clt_cpu_has((clt_cpu_level)l),
                         clt_cpu_built((clt_cpu_level)l) && clt_cpu_lacks((clt_cpu_level)l)[0] == 0);
    assert_true(clt_cpu_built(CLT_CPU_SCALAR) && clt_cpu_has(CLT_CPU_SCALAR));
    assert_false(clt_cpu_built(CLT_CPU_LEVELS));
    assert_true(clt_cpu_built(CLT_CPU_AVX2) + clt_cpu_built(CLT_CPU_NEON) <= 1);
    assert_non_null(strstr(clt_cpu_lacks(CLT_CPU_AVX512VNNI), clt_cpu_lacks(CLT_CPU_AVX512)));
    assert_non_null(strstr(clt_cpu_lacks(CLT_CPU_I8MM), clt_cpu_lacks(CLT_CPU_DOTPROD)));
}

static void test_choice(void **state) {
    (void)state;
    clt_err err;
    clt_cpu_level best, chosen;
    unsetenv("CULET_CPU");
    assert_int_equal(clt_cpu_choose(&best, &err), CLT_OK);
    assert_true(clt_cpu_has(best));
    for (int l = (int)best + 1; l < CLT_CPU_LEVELS; l++) assert_false(clt_cpu_has((clt_cpu_level)l));
    setenv("CULET_CPU", "", 1);
    assert_int_equal(clt_cpu_choose(&chosen, &err), CLT_OK);
    assert_int_equal(chosen, best);
    for (int l = 0; l < CLT_CPU_LEVELS; l++) {
        setenv("CULET_CPU", clt_cpu_level_name((clt_cpu_level)l), 1);
        clt_status expected = clt_cpu_has((clt_cpu_level)l) ? CLT_OK : CLT_E_UNSUPPORTED;
        assert_int_equal(clt_cpu_choose(&chosen, &err), expected);
        if (expected == CLT_OK) assert_int_equal(chosen, l);
        else assert_non_null(strstr(err.hint, "scalar"));
    }
    setenv("CULET_CPU", "AVX2", 1);
    assert_int_equal(clt_cpu_choose(&chosen, &err), CLT_E_USAGE);
    assert_non_null(strstr(err.text, "AVX2"));
    assert_non_null(strstr(err.hint, "avx512vnni"));
    unsetenv("CULET_CPU");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_levels_agree_with_the_system),
        cmocka_unit_test(test_what_is_lacking),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
