/* Products over the pool: how far pairs and single rows of 8 bits are from exact arithmetic, and
 * that no cut changes a bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "forward/internal.h"
#include "golden.h"

static const char quantised[] = "tiny-e/gguf/tiny-e-Q4_K_M.gguf";
enum { MOST = 300 };

typedef struct product { const clt_mat *mat; const clt_tensor *tensor; } product;

/* Matrices of one layer: several types, more and fewer rows than columns. */
static int products(const golden *g, product out[6]) {
    const clt_net_layer *n = &g->net->layer[0];
    const clt_layer_tensors *t = &g->model.layer[0];
    const product all[] = {{&n->q, t->q}, {&n->k, t->k},       {&n->v, t->v},
                           {&n->o, t->o}, {&n->down, t->down}, {&n->ple_gate, t->ple_gate}};
    int count = 0;
    for (int i = 0; i < 6; i++)
        if (all[i].tensor && clt_mat_wants_q8(all[i].tensor->type)) out[count++] = all[i];
    return count;
}

/* Numbers of very different sizes, a block of zeros among them. */
static float *numbers(int64_t n, uint32_t seed) {
    float *x = malloc((size_t)n * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = ((float)(seed >> 8) / 8388608.0f - 1) * (float)(1 + i / 32 % 5 * 3);
        if (i / 32 % 11 == 7) x[i] = 0;
    }
    return x;
}

/* |error| of one output: each input is off by half a step; a step of the second row is 2 * 127.3 times finer. */
static void check_output(const float *w, const float *x, int64_t cols, double got, bool pairs, double *worst) {
    double want = 0, bound = 0, size = 0;
    for (int64_t b = 0; b < cols; b += CLT_QBLOCK) {
        double top = 0, weights = 0;
        for (int64_t k = b; k < b + CLT_QBLOCK && k < cols; k++) {
            want += (double)w[k] * (double)x[k];
            size += fabs((double)w[k] * (double)x[k]);
            weights += fabs((double)w[k]);
            top = fmax(top, fabs((double)x[k]));
        }
        bound += weights * top / (double)CLT_Q8_STEPS / 2 / (pairs ? 2 * (double)CLT_Q8_STEPS : 1);
    }
    double error = fabs(got - want);
    if (!(error <= bound * 1.02 + size * 3e-6))
        fail_msg("%s: %g, expected %g within %g", pairs ? "pairs" : "single", got, want, bound);
    *worst = fmax(*worst, error);
}

static void test_errors_are_bounded(void **state) {
    (void)state;
    enum { T = 5 };
    golden g;
    golden_open(&g, quantised, GOLDEN_DEFAULTS);
    product p[6];
    int count = products(&g, p);
    assert_true(count >= 4);
    for (int i = 0; i < count; i++) {
        int64_t cols = p[i].mat->cols, rows = p[i].mat->rows;
        float *x = numbers(T * cols, (uint32_t)i), *w = malloc((size_t)cols * sizeof *w),
              *y = malloc((size_t)(T * rows) * sizeof *y);
        double worst[2] = {0, 0};
        assert_true(w && y);
        for (int pairs = 0; pairs < 2; pairs++) {
            if (pairs && p[i].tensor == g.model.layer[0].down)
                continue; /* wider than pairs have room for: one row must do */
            clt_linear_one(g.scratch, CLT_ROLE_FFN, p[i].mat, x, cols, T, pairs ? CLT_FINE : CLT_COARSE, y, rows);
            for (int64_t r = 0; r < rows; r++) {
                clt_type_get((uint32_t)p[i].tensor->type)->decode(clt_tensor_row(p[i].tensor, r), w, cols);
                for (int t = 0; t < T; t++)
                    check_output(w, x + t * cols, cols, (double)y[t * rows + r], pairs, &worst[pairs]);
            }
        }
        assert_true(worst[0] > 20 * worst[1]); /* the second row does pay */
        free(x), free(w), free(y);
    }
    golden_close(&g);
}

/* Any number of rows, through all cuts into blocks of rows and panels, gives each row the bits that it has alone. */
static void test_rows_do_not_depend_on_their_number(void **state) {
    (void)state;
    static const int counts[] = {1, 2, 3, 5, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257, MOST};
    for (int threads = 1; threads <= 3; threads += 2) {
        golden g;
        golden_options o = GOLDEN_DEFAULTS;
        o.max_rows = MOST, o.threads = threads;
        golden_open(&g, quantised, o);
        product p[6];
        for (int i = products(&g, p) - 1; i >= 0; i--)
            for (int fine = 0; fine < 2; fine++) {
                if (fine && p[i].tensor == g.model.layer[0].down) continue;
                int64_t cols = p[i].mat->cols, rows = p[i].mat->rows, ldy = rows + 3;
                clt_precision precision = fine ? CLT_FINE : CLT_COARSE;
                float *x = numbers(MOST * cols, 7), *alone = malloc((size_t)(MOST * rows) * 4),
                      *y = malloc((size_t)(MOST * ldy) * 4);
                assert_true(alone && y);
                for (int t = 0; t < MOST; t++)
                    clt_linear_one(g.scratch, CLT_ROLE_FFN, p[i].mat, x + t * cols, cols, 1, precision, alone + t * rows, rows);
                for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                    memset(y, 0x55, (size_t)(MOST * ldy) * 4);
                    clt_linear_one(g.scratch, CLT_ROLE_FFN, p[i].mat, x, cols, counts[c], precision, y, ldy);
                    for (int t = 0; t < MOST; t++) {
                        if (t < counts[c]) assert_memory_equal(y + t * ldy, alone + t * rows, (size_t)rows * 4);
                        for (int64_t k = t < counts[c] ? rows : 0; k < ldy; k++) /* nothing else is written */
                            if (memcmp(&y[t * ldy + k], "UUUU", 4) != 0)
                                fail_msg("row %d, number %lld was written", t, (long long)k);
                    }
                }
                free(x), free(alone), free(y);
            }
        golden_close(&g);
    }
}

/* Up to three matrices in one call, floats beside quantised ones, are what each is alone. */
static void test_matrices_that_share_an_input(void **state) {
    (void)state;
    enum { T = 37 };
    golden g;
    golden_open(&g, quantised, GOLDEN_DEFAULTS);
    const clt_net_layer *n = &g.net->layer[0];
    int64_t cols = n->q.cols;
    float *x = numbers(T * cols, 3);
    clt_mat floats = {CLT_F32, 24, cols, NULL, clt_mat_panel_bytes(CLT_F32, cols)};
    uint8_t *packed = aligned_alloc(64, 2 * floats.panel_bytes);
    float *weights = numbers(24 * cols, 5);
    assert_non_null(packed);
    clt_mat_pack(CLT_F32, 24, cols, (const uint8_t *)weights, packed, 0, 2);
    floats.data = packed;
    const clt_mat *const mats[3] = {&n->q, &floats, &n->k}, none = {.rows = 0, .type = CLT_Q4_0};
    float *y[3], *alone;
    clt_linear lin[3];
    for (int i = 0; i < 3; i++) {
        assert_non_null(y[i] = malloc((size_t)(T * mats[i]->rows) * 4));
        lin[i] = (clt_linear){mats[i], y[i], mats[i]->rows};
    }
    assert_int_equal(clt_precision_for(mats, 3, CLT_FINE), CLT_FINE);
    assert_int_equal(clt_precision_for((const clt_mat *[]){&floats, &none}, 2, CLT_FINE), CLT_FLOATS);
    clt_linear_input(g.scratch, x, cols, cols, T, CLT_FINE);
    clt_linear_run(g.scratch, CLT_ROLE_FFN, lin, 3, T);
    for (int i = 0; i < 3; i++) {
        assert_non_null(alone = malloc((size_t)(T * mats[i]->rows) * 4));
        clt_linear_one(g.scratch, CLT_ROLE_FFN, mats[i], x, cols, T, CLT_FINE, alone, mats[i]->rows);
        assert_memory_equal(y[i], alone, (size_t)(T * mats[i]->rows) * 4);
        free(alone), free(y[i]);
    }
    free(x), free(packed), free(weights);
    golden_close(&g);
}

typedef struct marks { int seen[MOST]; int threads; atomic_int strangers; } marks;

static void mark(void *ctx, int row, int thread) {
    marks *m = ctx;
    if (thread < 0 || thread >= m->threads) atomic_fetch_add(&m->strangers, 1); /* no assertion on a thread of the pool */
    m->seen[row]++;
}

static void test_every_row_runs_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        golden g;
        golden_options o = GOLDEN_DEFAULTS;
        o.threads = threads;
        golden_open(&g, quantised, o);
        for (int n = 0; n <= MOST; n++) {
            marks m = {.threads = threads};
            clt_rows_run(g.scratch, CLT_STAGE_ROWS, mark, &m, n);
            assert_int_equal(atomic_load(&m.strangers), 0);
            for (int r = 0; r < MOST; r++) assert_int_equal(m.seen[r], r < n);
        }
        golden_close(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_are_bounded),
        cmocka_unit_test(test_rows_do_not_depend_on_their_number),
        cmocka_unit_test(test_matrices_that_share_an_input),
        cmocka_unit_test(test_every_row_runs_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
