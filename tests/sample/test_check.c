/* Checks of sampling parameters: every sensible set passes, every senseless value is refused by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "sample/sample.h"

static clt_sample_params plain(void) {
    return (clt_sample_params){.temperature = 1, .top_p = 1, .repeat_penalty = 1};
}

static void assert_refused(clt_sample_params p, const char *name) {
    clt_err err;
    assert_int_equal(clt_sample_check(&p, 100, &err), CLT_E_USAGE);
    assert_ptr_equal(strstr(err.text, name), err.text);
}

static void test_accepts(void **state) {
    (void)state;
    clt_err err;
    clt_sample_params p = plain();
    assert_int_equal(clt_sample_check(&p, 100, &err), CLT_OK);
    p = (clt_sample_params){.temperature = 0, .top_k = 1000000, .top_p = 0.001f, .min_p = 1, .repeat_penalty = 0.5f,
                            .repeat_last_n = -1, .presence_penalty = -2, .frequency_penalty = 2,
                            .bias_ids = (int32_t[]){0, 99}, .bias_values = (float[]){-INFINITY, 100}, .n_bias = 2};
    assert_int_equal(clt_sample_check(&p, 100, &err), CLT_OK);
}

#define REFUSED(field, value)                 \
    do {                                      \
        clt_sample_params bad_ = plain();     \
        bad_.field = (value);                 \
        assert_refused(bad_, #field);         \
    } while (0)

static void test_refuses(void **state) {
    (void)state;
    REFUSED(temperature, -0.1f);
    REFUSED(temperature, NAN);
    REFUSED(temperature, INFINITY);
    REFUSED(top_k, -1);
    REFUSED(top_p, 0);
    REFUSED(top_p, 1.01f);
    REFUSED(top_p, NAN);
    REFUSED(min_p, -0.01f);
    REFUSED(min_p, 1.01f);
    REFUSED(min_p, NAN);
    REFUSED(repeat_penalty, 0);
    REFUSED(repeat_penalty, NAN);
    REFUSED(repeat_penalty, INFINITY);
    REFUSED(repeat_last_n, -2);
    REFUSED(presence_penalty, NAN);
    REFUSED(frequency_penalty, INFINITY);
}

static void test_refuses_bias(void **state) {
    (void)state;
    static const struct { int32_t id; float value; } bad[] = {{-1, 0}, {100, 0}, {5, NAN}, {5, INFINITY}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        clt_sample_params p = plain();
        p.bias_ids = &bad[i].id;
        p.bias_values = &bad[i].value;
        p.n_bias = 1;
        assert_refused(p, "logit_bias");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_refuses_bias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
