/* Compares matmul of every CPU level with the scalar one, bit for bit, and measures all kernels.
 *
 *     kernels_check                          compare; exit 1 on a difference
 *     kernels_check --bench [FILTER] [THREADS]
 *                                            time matmul and row operations whose "NAME level" holds FILTER */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include "kernels/bench_rows.h"
#include "kernels/matrices.h"

static int compare_matmul(const clt_kernels *k, clt_type type) {
    enum { ROWS = 100, T = 13 };
    int64_t cols = 768;
    uint8_t *file = matrix_make(type, ROWS, cols, FILL_RANDOM, 7);
    clt_mat m = matrix_pack(type, ROWS, cols, file);
    clt_acts a = acts_make(T, cols, 8);
    static float expected[T * ROWS], got[T * ROWS];

    k->quantize(&a, 0, T);
    clt_kernels_get(CLT_CPU_SCALAR)->matmul(&m, &a, T, expected, ROWS, 0, clt_mat_panels(&m));
    k->matmul(&m, &a, T, got, ROWS, 0, clt_mat_panels(&m));
    int differs = memcmp(expected, got, sizeof got) != 0;
    if (differs)
        printf("matmul %s: %s differs from scalar\n", clt_type_name(type), clt_cpu_level_name(k->level));
    free(file);
    free((void *)(uintptr_t)m.data);
    acts_free(&a);
    return differs;
}

static int compare(void) {
    int differences = 0, levels = 0;
    for (int level = 0; level < CLT_CPU_LEVELS; level++) {
        const clt_kernels *k = clt_kernels_get((clt_cpu_level)level);
        if (!k)
            continue;
        levels++;
        for (int i = 0; i < MATRIX_TYPES; i++)
            differences += compare_matmul(k, matrix_types[i]);
    }
    printf("%d levels, %d differences\n", levels, differences);
    return differences != 0;
}

static double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct job {
    const clt_kernels *k;
    const clt_mat *m;
    const clt_acts *a;
    float *y;
    int64_t T, p0, p1;
} job;

static void *run_job(void *arg) {
    job *j = arg;
    j->k->matmul(j->m, j->a, j->T, j->y, j->m->rows, j->p0, j->p1);
    return NULL;
}

static double seconds_once(const clt_kernels *k, const clt_mat *m, const clt_acts *a, float *y, int64_t T, int threads) {
    pthread_t id[16];
    job jobs[16];
    int64_t panels = clt_mat_panels(m);
    double start = now_seconds();

    for (int i = 0; i < threads; i++) {
        jobs[i] = (job){k, m, a, y, T, panels * i / threads, panels * (i + 1) / threads};
        if (i > 0)
            pthread_create(&id[i], NULL, run_job, &jobs[i]);
    }
    run_job(&jobs[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(id[i], NULL);
    return now_seconds() - start;
}

/* The best of several runs, at least three and about a third of a second of them. */
static double seconds_best(const clt_kernels *k, const clt_mat *m, const clt_acts *a, float *y, int64_t T, int threads) {
    double best = 1e9, total = 0;
    for (int i = 0; i < 3 || (total < 0.35 && i < 1000); i++) {
        double s = seconds_once(k, m, a, y, T, threads);
        total += s;
        best = s < best ? s : best;
    }
    return best;
}

static void bench_shape(const clt_kernels *k, clt_type type, int64_t rows, int64_t cols, int threads) {
    static const int64_t tokens[] = {1, 2, 4, 8, 128};
    enum { T_MAX = 128, HUGE_PAGE = 2 << 20 };
    size_t panel_bytes = clt_mat_panel_bytes(type, cols), n = panel_bytes * (size_t)(rows / CLT_PANEL);
    uint8_t *file = matrix_make(type, CLT_PANEL, cols, FILL_RANDOM, 1);
    uint8_t *packed = aligned_alloc(HUGE_PAGE, (n + HUGE_PAGE) / HUGE_PAGE * HUGE_PAGE);
    float *y = malloc((size_t)(rows * T_MAX) * sizeof *y);
    clt_mat m = {type, rows, cols, packed, panel_bytes};
    clt_acts a = acts_make(T_MAX, cols, 2);

    madvise(packed, n, MADV_HUGEPAGE);
    clt_mat_pack(type, CLT_PANEL, cols, file, packed, 0, 1);
    for (int64_t p = 1; p < rows / CLT_PANEL; p++)
        memcpy(packed + (size_t)p * panel_bytes, packed, panel_bytes);
    k->quantize(&a, 0, T_MAX);
    printf("%-7s %-10s %6lldx%-6lld", clt_type_name(type), clt_cpu_level_name(k->level), (long long)rows, (long long)cols);
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        double s = seconds_best(k, &m, &a, y, tokens[i], threads);
        printf("  T%-3lld %5.1f GB/s %6.1f GMAC/s", (long long)tokens[i], (double)n / s / 1e9,
               (double)(rows * cols * tokens[i]) / s / 1e9);
    }
    printf("\n");
    fflush(stdout);
    free(file);
    free(packed);
    free(y);
    acts_free(&a);
}

static int bench(const char *filter, int threads) {
    for (int i = 0; i < MATRIX_TYPES; i++)
        for (int level = 1; level < CLT_CPU_LEVELS; level++) {
            const clt_kernels *k = clt_kernels_get((clt_cpu_level)level);
            char name[64];
            if (!k)
                continue;
            snprintf(name, sizeof name, "%s %s", clt_type_name(matrix_types[i]), clt_cpu_level_name(k->level));
            if (!strstr(name, filter))
                continue;
            bench_shape(k, matrix_types[i], 2048, 768, threads);
            bench_shape(k, matrix_types[i], 640, 2048, threads);
            bench_shape(k, matrix_types[i], 10240, 2560, threads);
            bench_shape(k, matrix_types[i], 262144, 512, threads);
        }
    bench_rows(filter);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        int threads = argc > 3 ? atoi(argv[3]) : 1;
        return bench(argc > 2 ? argv[2] : "", threads < 1 ? 1 : threads > 16 ? 16 : threads);
    }
    return compare();
}
