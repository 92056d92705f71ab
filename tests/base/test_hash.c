/* Hashes: SHA-256 against its published vectors; the 64-bit hash is stable and spreads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "base/hash.h"
#include "base/mem.h"

static void test_sha256_vectors(void **state) {
    (void)state;
    clt_err err;
    char hex[65];
    if (clt_sha256_hex("", 0, hex, &err) == CLT_E_UNSUPPORTED) skip();
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    clt_sha256_hex("abc", 3, hex, &err);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    clt_sha256 *h;
    assert_int_equal(clt_sha256_create(&h, &err), CLT_OK);
    static char as[1000];
    memset(as, 'a', sizeof as);
    for (int i = 0; i < 1000; i++) clt_sha256_update(h, as, sizeof as);
    clt_sha256_final(h, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_sha256_without_memory(void **state) {
    (void)state;
    clt_err err;
    char hex[65];
    if (clt_sha256_hex("", 0, hex, &err) == CLT_E_UNSUPPORTED) skip();
    clt_mem_fail_after(1);
    assert_int_equal(clt_sha256_hex("", 0, hex, &err), CLT_E_MEMORY);
    clt_mem_fail_after(0);
}

static void test_hash64_is_stable(void **state) {
    (void)state;
    /* Values of this project's own definition: files may be keyed by them, so they must never change. */
    assert_true(clt_hash64("", 0, 0) == UINT64_C(0xb87c4a0a48a36166));
    assert_true(clt_hash64("culet", 5, 7) == UINT64_C(0x31f8d0fa6a65a5f3));
    assert_true(clt_hash64("0123456789abcdef!", 17, 1) == UINT64_C(0x9d607d8891b6ca5a));
}

static void test_hash64_spreads(void **state) {
    (void)state;
    enum { N = 20000, SLOTS = 1 << 16 };
    static unsigned char low[SLOTS], high[SLOTS];
    int collisions = 0;
    for (uint32_t i = 0; i < N; i++) {
        uint64_t h = clt_hash64(&i, sizeof i, 0);
        collisions += low[h % SLOTS]++ > 0;
        collisions += high[h >> 48]++ > 0;
    }
    /* N - SLOTS * (1 - exp(-N/SLOTS)) = 2757 expected for each half of a random function */
    assert_in_range(collisions, 2 * 2757 - 500, 2 * 2757 + 500);
}

/* The definition, written out: eight chains over words, then what is left over. */
static void test_bulk_is_stable(void **state) {
    (void)state;
    static unsigned char data[1000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 7 + 3);
    for (size_t n = 0; n <= sizeof data; n += n < 140 ? 1 : 43) {
        uint64_t h[8], sum = clt_hash64(data + n / 64 * 64, n % 64, 9 ^ n);
        for (size_t i = 0; i < 8; i++) h[i] = 9 + i * UINT64_C(0x94D049BB133111EB);
        for (size_t at = 0; at < n / 64 * 64; at += 8) {
            uint64_t word = 0, *lane = &h[at / 8 % 8];
            for (size_t b = 0; b < 8; b++) word |= (uint64_t)data[at + b] << (8 * b);
            *lane = (*lane ^ word) * UINT64_C(0x9E3779B97F4A7C15);
            *lane = *lane << 29 | *lane >> 35;
        }
        for (size_t i = 0; i < 8; i++) {
            sum ^= h[i] * UINT64_C(0x9E3779B97F4A7C15);
            sum = (sum << 29 | sum >> 35) * UINT64_C(0xBF58476D1CE4E5B9);
        }
        assert_true(clt_hash_bulk(data, n, 9) == (sum ^ sum >> 31));
    }
}

static void test_bulk_sees_every_bit_and_the_length(void **state) {
    (void)state;
    static unsigned char data[300];
    uint64_t none = clt_hash_bulk(data, sizeof data, 1);
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_true(clt_hash_bulk(data, sizeof data, 1) != none);
        data[bit / 8] = 0;
    }
    for (size_t n = 0; n < sizeof data; n++) assert_true(clt_hash_bulk(data, n, 1) != none);
    assert_true(clt_hash_bulk(data, sizeof data, 2) != none);
}

static void test_hash64_sees_every_byte_and_the_length(void **state) {
    (void)state;
    unsigned char data[40] = {0};
    for (size_t n = 0; n < sizeof data; n++) {
        uint64_t h = clt_hash64(data, n, 0);
        assert_true(h != clt_hash64(data, n + 1, 0)); /* zero bytes count */
        assert_true(h != clt_hash64(data, n, 1));
        for (size_t i = 0; i < n; i++) {
            data[i] = 1;
            assert_true(h != clt_hash64(data, n, 0));
            data[i] = 0;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_vectors),   cmocka_unit_test(test_sha256_without_memory),
        cmocka_unit_test(test_hash64_is_stable),
        cmocka_unit_test(test_bulk_is_stable),
        cmocka_unit_test(test_bulk_sees_every_bit_and_the_length), cmocka_unit_test(test_hash64_spreads),
        cmocka_unit_test(test_hash64_sees_every_byte_and_the_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
