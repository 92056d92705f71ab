/* Means, medians, percentiles. */
#include <math.h>
#include <stdlib.h>
#include "bench.h"

double cli_mean(const double *v, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += v[i];
    }
    return n ? sum / (double)n : NAN;
}

double cli_stddev(const double *v, size_t n) {
    double mean = cli_mean(v, n), sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (v[i] - mean) * (v[i] - mean);
    }
    return n > 1 ? sqrt(sum / (double)(n - 1)) : 0;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cli_percentile(double *v, size_t n, double share) {
    if (!n) {
        return NAN;
    }
    qsort(v, n, sizeof(*v), ascending);
    double rank = ceil(share * (double)n);
    return v[rank < 1 ? 0 : (size_t)rank - 1];
}

double cli_median(double *v, size_t n) {
    if (!n) {
        return NAN;
    }
    qsort(v, n, sizeof(*v), ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}
