/* Attention over whole pictures: both halves against sums written out, and equality of bits between CPU levels for widths,
 * numbers of positions and of queries; what lies behind the last position must not matter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "vec_levels.h"

typedef struct problem {
    int64_t head_dim, ldq, lds, ldo;
    int n, R;
    uint8_t *chunks;
    float *q, *k, *v; /* k, v [n][head_dim] */
} problem;

static problem make(int64_t head_dim, int n, int R) {
    problem p = {head_dim, head_dim + 3, (n + 63) / 64 * 64 + 16, head_dim + 5, n, R, NULL, NULL, NULL, NULL};
    const clt_kernels *scalar = clt_kernels_get(CLT_CPU_SCALAR);
    size_t side = clt_kv_chunk_bytes(CLT_F32, head_dim), bytes = (size_t)(n + 63) / 64 * 2 * side;
    uint64_t seed = (uint64_t)(head_dim + n + R);
    p.chunks = aligned_alloc(64, bytes);
    memset(p.chunks, 0xff, bytes); /* NaN, behind the last position */
    p.q = malloc((size_t)(R * p.ldq) * sizeof *p.q);
    p.k = malloc((size_t)(n * head_dim) * sizeof *p.k);
    p.v = malloc((size_t)(n * head_dim) * sizeof *p.v);
    for (int64_t i = 0; i < R * p.ldq; i++)
        p.q[i] = draw_float(&seed, 1.0f);
    for (int64_t i = 0; i < n * head_dim; i++) {
        p.k[i] = draw_float(&seed, 1.0f);
        p.v[i] = draw_float(&seed, 1.0f);
    }
    for (int j = 0; j < n; j++) {
        uint8_t *chunk = p.chunks + (size_t)(j / 64) * 2 * side;
        scalar->kv_store((clt_kv_types){CLT_F32, CLT_F32}, head_dim, chunk, chunk + side, j % 64, p.k + j * head_dim,
                         p.v + j * head_dim);
    }
    return p;
}

static void drop(problem *p) {
    free(p->chunks), free(p->q), free(p->k), free(p->v);
}

/* Scores and results of a level, without the softmax between. */
static void run(const clt_kernels *k, const problem *p, float *s, float *o) {
    k->attn_scores(p->head_dim, p->chunks, p->n, p->q, p->ldq, p->R, s, p->lds);
    k->attn_blend(p->head_dim, p->chunks, p->n, s, p->lds, p->R, o, p->ldo);
}

static void check(int64_t head_dim, int n, int R) {
    problem p = make(head_dim, n, R);
    vec_level levels[MAX_LEVELS];
    float *s = malloc((size_t)(R * p.lds) * sizeof *s), *o = malloc((size_t)(R * p.ldo) * sizeof *o);
    for (int l = 0, count = vec_levels(levels); l < count; l++) {
        for (int64_t i = 0; i < R * p.ldo; i++)
            o[i] = 12345;
        run(&levels[l].k, &p, s, o);
        for (int r = 0; r < R; r++) {
            float *weights = s + r * p.lds;
            for (int j = 0; j < n; j++) {
                float sum = 0;
                for (int64_t d = 0; d < head_dim; d++)
                    sum = fmaf(p.q[r * p.ldq + d], p.k[j * head_dim + d], sum);
                if (memcmp(&sum, &weights[j], sizeof sum) != 0)
                    fail_msg("%s: score %d, %d of Dh %d, n %d, R %d", levels[l].name, r, j, (int)head_dim, n, R);
            }
            for (int64_t d = 0; d < p.ldo; d++) {
                float sum = d < head_dim ? 0 : 12345;
                for (int j = 0; j < n && d < head_dim; j++)
                    sum = fmaf(weights[j], p.v[j * head_dim + d], sum);
                if (memcmp(&sum, &o[r * p.ldo + d], sizeof sum) != 0)
                    fail_msg("%s: result %d, %d of Dh %d, n %d, R %d", levels[l].name, r, (int)d, (int)head_dim, n, R);
            }
        }
    }
    free(s), free(o);
    drop(&p);
}

static void test_widths(void **state) {
    static const int64_t widths[] = {4, 16, 32, 60, 64, 72, 96, 100, 128, 200};
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        check(widths[i], 150, 7);
}

static void test_positions(void **state) {
    static const int positions[] = {1, 9, 63, 64, 65, 128, 577};
    (void)state;
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++)
        check(72, positions[i], 13);
}

static void test_queries(void **state) {
    (void)state;
    check(64, 70, 0);
    for (int R = 1; R <= 34; R++)
        check(R % 2 ? 64 : 20, 70, R);
    check(40, 90, 70);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
