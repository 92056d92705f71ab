/* Packing: the quick way against the plain one, byte for byte, for every type, full and broken panels, any range. (That the
 * plain way puts each number where the kernels look for it is tested by their products.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "kernels/internal.h"
#include "kernels/matrices.h"

enum { GUARD = 64 };

static void check(clt_type t, int64_t rows, int64_t cols, matrix_fill fill, int64_t p0, int64_t p1) {
    size_t panel = clt_mat_panel_bytes(t, cols), n = panel * (size_t)((rows + CLT_PANEL - 1) / CLT_PANEL) + 2 * GUARD;
    uint8_t *file = matrix_make(t, rows, cols, fill, (uint64_t)(rows * 31 + cols));
    uint8_t *plain = malloc(n), *quick = malloc(n);

    memset(plain, 0x5A, n);
    memset(quick, 0x5A, n);
    clt_mat_pack_plain(t, rows, cols, file, plain + GUARD, p0, p1);
    clt_mat_pack(t, rows, cols, file, quick + GUARD, p0, p1);
    if (memcmp(plain, quick, n) != 0)
        fail_msg("%s %lldx%lld, panels %lld to %lld: packed differently", clt_type_name((uint32_t)t), (long long)rows,
                 (long long)cols, (long long)p0, (long long)p1);
    /* Something was written, and nothing beside the range. */
    for (size_t i = 0; i < n; i++)
        if (i < GUARD + (size_t)p0 * panel || i >= GUARD + (size_t)p1 * panel)
            assert_int_equal(quick[i], 0x5A);
    if (p1 > p0 && fill == FILL_RANDOM)
        assert_memory_not_equal(quick + GUARD + (size_t)p0 * panel, quick, GUARD);
    free(plain);
    free(quick);
    free(file);
}

static void test_quick_is_plain(void **state) {
    (void)state;
    for (int i = 0; i < MATRIX_TYPES; i++) {
        clt_type t = matrix_types[i];
        uint32_t len = clt_type_get((uint32_t)t)->block_len;
        for (int64_t blocks = 1; blocks < 5; blocks++) {
            /* Floats: widths that no square of 4 or 8 divides. */
            int64_t cols = len == 1 ? 32 * blocks - 3 * (blocks - 1) : len * blocks;
            check(t, 16, cols, FILL_RANDOM, 0, 1);
            check(t, 37, cols, FILL_RANDOM, 0, 3);
            check(t, 48, cols, FILL_RANDOM, 1, 2);
            check(t, 37, cols, FILL_RANDOM, 2, 3);
            check(t, 5, cols, FILL_RANDOM, 0, 1);
            check(t, 32, cols, FILL_RANDOM, 1, 1);
            check(t, 32, cols, FILL_ONES, 0, 2);
            check(t, 32, cols, FILL_ZEROS, 0, 2);
        }
        check(t, 64, len == 1 ? 1000 : 2560, FILL_RANDOM, 0, 4);
    }
}

/* Each bit of a block by itself: none is lost, none moves to another place than the plain way's. */
static void test_single_bits(void **state) {
    (void)state;
    for (int i = 0; i < MATRIX_TYPES; i++) {
        clt_type t = matrix_types[i];
        const clt_type_info *info = clt_type_get((uint32_t)t);
        int64_t cols = info->block_len == 1 ? 8 : info->block_len;
        size_t row = clt_type_row_bytes(info, cols), panel = clt_mat_panel_bytes(t, cols);
        uint8_t *file = calloc(CLT_PANEL, row), *plain = malloc(panel), *quick = malloc(panel), *none = malloc(panel);
        clt_mat_pack_plain(t, CLT_PANEL, cols, file, none, 0, 1);
        for (size_t bit = 0; bit < 8 * row; bit++) {
            uint8_t *byte = file + bit % CLT_PANEL * row + bit / 8;
            *byte = (uint8_t)(1u << bit % 8);
            clt_mat_pack_plain(t, CLT_PANEL, cols, file, plain, 0, 1);
            clt_mat_pack(t, CLT_PANEL, cols, file, quick, 0, 1);
            assert_memory_equal(plain, quick, panel);
            assert_memory_not_equal(plain, none, panel);
            *byte = 0;
        }
        free(file), free(plain), free(quick), free(none);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_quick_is_plain), cmocka_unit_test(test_single_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
