/* Norms of the unified kind: about the mean, with weight and bias. In double and in one written order: three of them for each
 * soft token cost nothing beside the matrix between them. */
#include <math.h>
#include "forward/vision_impl.h"

typedef struct norm { float *x; const float *weight, *bias; int64_t n; double eps; } norm;

static void norm_row(void *ctx, int row, int thread) {
    (void)thread;
    const norm *c = ctx;
    float *x = c->x + row * c->n;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < c->n; i++) mean += (double)x[i];
    mean /= (double)c->n;
    for (int64_t i = 0; i < c->n; i++) variance += ((double)x[i] - mean) * ((double)x[i] - mean);
    double scale = 1 / sqrt(variance / (double)c->n + c->eps);
    for (int64_t i = 0; i < c->n; i++) x[i] = (float)(((double)x[i] - mean) * scale) * c->weight[i] + c->bias[i];
}

void clt_vision_layer_norm(clt_vision_work *w, float *x, int rows, int64_t n, const float *weight, const float *bias) {
    clt_vision_rows(w, norm_row, &(norm){x, weight, bias, n, (double)w->v->config->norm_eps}, rows);
}
