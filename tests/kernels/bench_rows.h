/* Timings of row operations and of attention, for kernels_check --bench. Attention walks 16 chunks, as prefill does (they
 * stay in the cache), and 1024 chunks, as decoding at depth 65536 does (they come from memory). */
#ifndef CLT_TESTS_KERNELS_BENCH_ROWS_H
#define CLT_TESTS_KERNELS_BENCH_ROWS_H
#include <stdlib.h>
#include <time.h>
#include "kernels/vec_levels.h"

enum { BENCH_ROW = 2560, BENCH_WIDTH = 256, BENCH_QUERIES = 64, BENCH_CHUNKS = 1024 };

typedef struct row_bench {
    const clt_kernels *k;
    float a[BENCH_ROW], b[BENCH_ROW], y[BENCH_ROW], turn[BENCH_ROW];
    clt_type type;
    uint8_t *keys, *values;
    int chunks, R;
    float q[BENCH_QUERIES * BENCH_WIDTH], o[BENCH_QUERIES * BENCH_WIDTH];
} row_bench;

static void bench_rms_norm(row_bench *b) { b->k->rms_norm(b->a, b->b, 1e-6f, b->y, BENCH_ROW); }
static void bench_axpy(row_bench *b) { b->k->axpy(0.5f, b->a, b->y, BENCH_ROW); }
static void bench_gelu_mul(row_bench *b) { b->k->gelu_mul(b->a, b->b, b->y, BENCH_ROW); }
static void bench_sigmoid_mul(row_bench *b) { b->k->sigmoid_mul(b->a, b->b, b->y, BENCH_ROW); }
static void bench_dot(row_bench *b) { b->y[0] = b->k->dot(b->a, b->b, BENCH_ROW); }
static void bench_softcap(row_bench *b) { b->k->softcap(b->y, 30.0f, BENCH_ROW); }
static void bench_softmax(row_bench *b) { b->k->softmax(b->y, BENCH_ROW); }
static void bench_argmax(row_bench *b) { b->y[0] = (float)b->k->argmax(b->a, BENCH_ROW); }
static void bench_rope(row_bench *b) { b->k->rope(b->y, b->turn, BENCH_ROW, BENCH_ROW / 2); }

static void bench_attn(row_bench *b) {
    size_t bytes = clt_kv_chunk_bytes(b->type, BENCH_WIDTH);
    int lo[BENCH_QUERIES] = {0}, hi[BENCH_QUERIES];
    float m[BENCH_QUERIES], l[BENCH_QUERIES];
    for (int r = 0; r < b->R; r++)
        hi[r] = CLT_ATTN_CHUNK;
    for (int c = 0; c < b->chunks; c++) {
        clt_kv_chunk chunk = {b->keys + (size_t)c * bytes, b->values + (size_t)c * bytes};
        b->k->attn_chunk((clt_kv_types){b->type, b->type}, BENCH_WIDTH, &chunk, b->q, BENCH_WIDTH, b->R, lo, hi, 1.0f, m, l,
                         b->o, BENCH_WIDTH);
    }
}

/* Seconds per call: the best of at least three spells, together a fifth of a second or more. */
static double bench_best(row_bench *b, void (*run)(row_bench *), int calls) {
    double best = 1e9, total = 0;
    for (int i = 0; i < 3 || total < 0.2; i++) {
        struct timespec t0, t1;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        for (int c = 0; c < calls; c++)
            run(b);
        clock_gettime(CLOCK_MONOTONIC, &t1);
        double s = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
        total += s;
        best = s < best ? s : best;
    }
    return best / calls;
}

static void bench_attention(row_bench *b, const char *level) {
    static const int queries[] = {1, 4, 8, 32, BENCH_QUERIES};
    for (int deep = 0; deep < 2; deep++) {
        b->chunks = deep ? BENCH_CHUNKS : 16;
        printf("attn    %-8s %-5s %4d chunks", level, clt_type_name(b->type), b->chunks);
        for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
            b->R = queries[i];
            double s = bench_best(b, bench_attn, 1) / b->chunks;
            printf("  R%-2d %5.1f GB/s %5.1f GMAC/s", b->R, 2e-9 * (double)clt_kv_chunk_bytes(b->type, BENCH_WIDTH) / s,
                   2e-9 * CLT_ATTN_CHUNK * BENCH_WIDTH * b->R / s);
        }
        printf("\n");
    }
}

/* Prints a line per operation and level whose "NAME level" holds the filter. */
static inline void bench_rows(const char *filter) {
    static const struct { const char *name; void (*run)(row_bench *); } ops[] = {
        {"rms_norm", bench_rms_norm}, {"axpy", bench_axpy}, {"gelu_mul", bench_gelu_mul}, {"sigmoid_mul", bench_sigmoid_mul},
        {"dot", bench_dot}, {"softcap", bench_softcap},
        {"argmax", bench_argmax}, {"rope", bench_rope}, {"softmax", bench_softmax}};
    static const clt_type types[] = {CLT_F32, CLT_F16, CLT_Q8_0};
    static row_bench b;
    vec_level levels[MAX_LEVELS];
    uint64_t seed = 1;
    for (int i = 0; i < BENCH_ROW; i++) {
        b.a[i] = draw_float(&seed, 2.0f);
        b.b[i] = draw_float(&seed, 2.0f);
        b.y[i] = draw_float(&seed, 2.0f);
        b.turn[i] = i % 2 ? 0.6f : 0.8f;
    }
    for (int i = 0; i < BENCH_QUERIES * BENCH_WIDTH; i++)
        b.q[i] = draw_float(&seed, 0.2f);
    size_t most = clt_kv_chunk_bytes(CLT_F32, BENCH_WIDTH) * BENCH_CHUNKS;
    b.keys = aligned_alloc(64, most);
    b.values = aligned_alloc(64, most);
    for (int l = 0, n = vec_levels(levels); b.keys && b.values && l < n; l++) {
        char name[64];
        b.k = &levels[l].k;
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            snprintf(name, sizeof name, "%s %s", ops[i].name, levels[l].name);
            if (strstr(name, filter))
                printf("%-17s %6.2f ns a number\n", name, 1e9 * bench_best(&b, ops[i].run, 200) / BENCH_ROW);
        }
        snprintf(name, sizeof name, "attn %s", levels[l].name);
        for (int t = 0; t < 3 && l > 0 && strstr(name, filter); t++) {
            b.type = types[t];
            memset(b.keys, 0x2c, most); /* small positive numbers in every type */
            memset(b.values, 0x2c, most);
            bench_attention(&b, levels[l].name);
        }
    }
    free(b.keys);
    free(b.values);
}

#endif
