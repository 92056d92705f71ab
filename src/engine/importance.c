/* Importances and sensitivities, measured: a text goes through the model, and every product of a pass is looked at.
 *
 * Importance of a matrix's input: its mean square. Sensitivity of a matrix: how far the next-token distribution moves (KL
 * divergence) for each unit of noise energy in its results. Noise is added to one tensor's results at a time, as much as a
 * coarse quantisation would add; what moves is linear in its energy as long as it is small. */
#include <math.h>
#include <string.h>
#include "base/mem.h"
#include "convert/imatrix.h"
#include "engine/impl.h"

enum { USUAL_CHUNK = 512, PROBE_TOKENS = 96 };
static const double NOISE = 0.01; /* energy, relative to that of the results */

typedef struct measure {
    culet_engine *engine;
    const culet_imatrix_params *p;
    culet_session *session;
    clt_imatrix matrix;      /* values hold sums until they are divided */
    double *energy, *results; /* [entries]: of the results of the probe text, per token; how many results */
    clt_err *err;
    clt_status status;       /* of the observer */
    /* the probe */
    const char *noisy;       /* the tensor whose results get noise; NULL: none */
    double noise_energy;     /* of each result */
    uint64_t random;
    float *base, *row;       /* [PROBE_TOKENS][V] probabilities; [V] */
    double entropy[PROBE_TOKENS], divergence;
    size_t tokens;           /* of the probe */
} measure;

/* ---- looking at products ---- */

static clt_imatrix_entry *entry_of(measure *m, const clt_observed *o) {
    for (size_t i = 0; i < m->matrix.n; i++)
        if (!strcmp(m->matrix.entries[i].name, o->name)) return &m->matrix.entries[i];
    return clt_imatrix_add(&m->matrix, o->name, strlen(o->name), o->cols, o->matrices, m->err);
}

static void add_squares(void *user, const clt_observed *o) {
    measure *m = user;
    clt_imatrix_entry *e = m->status == CLT_OK ? entry_of(m, o) : NULL;
    if (!e) {
        if (m->status == CLT_OK) m->status = m->err->code;
        return;
    }
    float *sums = e->values + o->matrix * o->cols;
    for (int t = 0; t < o->rows; t++)
        for (int64_t i = 0; i < o->cols; i++) sums[i] += o->x[t * o->ldx + i] * o->x[t * o->ldx + i];
    e->counts[o->matrix] += (float)o->rows;
}

static void add_energy(void *user, const clt_observed *o) {
    measure *m = user;
    for (size_t k = 0; k < m->matrix.n; k++) {
        if (strcmp(m->matrix.entries[k].name, o->name) != 0) continue;
        for (int t = 0; t < o->rows; t++)
            for (int64_t i = 0; i < o->outputs; i++) {
                double y = (double)o->y[t * o->ldy + i];
                m->energy[k] += y * y / (double)m->tokens;
            }
        m->results[k] += (double)o->rows * (double)o->outputs / (double)m->tokens;
    }
}

/* Uniform in (-1, 1), variance 1/3. */
static float draw(measure *m) {
    m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(m->random >> 32) * 0x1p-31f;
}

static void add_noise(void *user, const clt_observed *o) {
    measure *m = user;
    if (strcmp(o->name, m->noisy) != 0) return;
    float scale = (float)sqrt(3 * m->noise_energy);
    for (int t = 0; t < o->rows; t++)
        for (int64_t i = 0; i < o->outputs; i++) o->y[t * o->ldy + i] += scale * draw(m);
}

/* ---- windows ---- */

static bool ignore_row(void *user, size_t row, const float *logits) {
    (void)row, (void)logits;
    return ((measure *)user)->status == CLT_OK;
}

/* BOS and `n` tokens of the text from `at`; fn sees the logits of each. */
static clt_status window(measure *m, size_t at, size_t n, bool (*fn)(void *, size_t, const float *)) {
    culet_error failure;
    int32_t *ids = clt_alloc((n + 1) * sizeof *ids);
    if (!ids) return clt_fail_memory(m->err, "ids", n * sizeof *ids);
    ids[0] = m->engine->info.bos_id;
    memcpy(ids + 1, m->p->ids + at, n * sizeof *ids);
    culet_status status = culet_session_logits_all(m->session, ids, n + 1, fn, m, &failure);
    clt_free(ids);
    if (status == CULET_CANCELLED && m->status != CLT_OK) return m->status;
    return status ? clt_fail(m->err, status == CULET_MEMORY ? CLT_E_MEMORY : CLT_E_FAILED, "%s", failure.text) : CLT_OK;
}

static bool report(const measure *m, double done) { return !m->p->progress || m->p->progress(m->p->user, done); }

static clt_status stopped(measure *m) { return clt_fail(m->err, CLT_E_CANCELLED, "interrupted: nothing was written"); }

static clt_status collect(measure *m, size_t chunk, double share) {
    size_t per_window = chunk - 1 < m->p->n ? chunk - 1 : m->p->n, windows = m->p->n / per_window;
    clt_status status = CLT_OK;
    clt_scratch_set_observer(m->session->scratch, add_squares, m);
    for (size_t i = 0; status == CLT_OK && i < windows; i++) {
        status = window(m, i * per_window, per_window, ignore_row);
        if (status == CLT_OK) status = m->status;
        if (status == CLT_OK && !report(m, share * (double)(i + 1) / (double)windows)) status = stopped(m);
    }
    clt_scratch_set_observer(m->session->scratch, NULL, NULL);
    m->matrix.chunks = (uint32_t)windows;
    m->matrix.chunk_tokens = (uint32_t)per_window + 1;
    for (size_t k = 0; k < m->matrix.n; k++) {
        clt_imatrix_entry *e = &m->matrix.entries[k];
        for (int64_t i = 0; i < e->cols * e->matrices; i++) {
            float count = e->counts[i / e->cols];
            e->values[i] = count > 0 ? e->values[i] / count : 1.0f;
        }
    }
    return status;
}

/* ---- sensitivities ---- */

/* Probabilities of a row in place of its logits; returns ln of the sum of their exponentials. */
static double normalise(const measure *m, const float *logits, float *out) {
    int v = m->engine->info.vocab;
    int64_t best = m->engine->kernels->argmax(logits, v);
    memcpy(out, logits, (size_t)v * sizeof *out);
    m->engine->kernels->softmax(out, v);
    return (double)logits[best] - log((double)out[best]);
}

static bool keep_base(void *user, size_t row, const float *logits) {
    measure *m = user;
    int v = m->engine->info.vocab;
    float *p = m->base + row * (size_t)v;
    double log_sum = normalise(m, logits, p), mean = 0;
    for (int i = 0; i < v; i++) mean += (double)p[i] * (double)logits[i];
    m->entropy[row] = log_sum - mean;
    return true;
}

/* KL(base || row) = ln sum exp(z) - sum p z - entropy of p. */
static bool add_divergence(void *user, size_t row, const float *logits) {
    measure *m = user;
    int v = m->engine->info.vocab;
    const float *p = m->base + row * (size_t)v;
    double log_sum = normalise(m, logits, m->row), mean = 0;
    for (int i = 0; i < v; i++) mean += (double)p[i] * (double)logits[i];
    m->divergence += log_sum - mean - m->entropy[row];
    return true;
}

static clt_status probe(measure *m, size_t k) {
    clt_imatrix_entry *e = &m->matrix.entries[k];
    m->noisy = e->name;
    m->noise_energy = 0;
    m->divergence = 0;
    m->random = 0x9E3779B97F4A7C15u;
    if (!(m->energy[k] > 0)) return CLT_OK;
    m->noise_energy = NOISE * m->energy[k] / m->results[k];
    clt_scratch_set_observer(m->session->scratch, add_noise, m);
    clt_status status = window(m, 0, m->tokens - 1, add_divergence);
    double kl = m->divergence / (double)m->tokens;
    e->sensitivity = (float)((kl > 1e-9 ? kl : 1e-9) / (NOISE * m->energy[k]));
    return status;
}

static clt_status measure_sensitivities(measure *m, double share) {
    size_t tokens = m->p->n + 1 < PROBE_TOKENS ? m->p->n + 1 : PROBE_TOKENS, v = (size_t)m->engine->info.vocab;
    m->tokens = tokens;
    m->energy = clt_calloc(m->matrix.n + 1, sizeof *m->energy);
    m->results = clt_calloc(m->matrix.n + 1, sizeof *m->results);
    m->base = clt_alloc(tokens * v * sizeof *m->base);
    m->row = clt_alloc(v * sizeof *m->row);
    if (!m->energy || !m->results || !m->base || !m->row)
        return clt_fail_memory(m->err, "the probe", tokens * v * sizeof *m->base);
    clt_scratch_set_observer(m->session->scratch, add_energy, m);
    clt_status status = window(m, 0, tokens - 1, keep_base);
    for (size_t k = 0; status == CLT_OK && k < m->matrix.n; k++) {
        status = probe(m, k);
        if (status == CLT_OK && !report(m, 1 - share * (1 - (double)(k + 1) / (double)m->matrix.n))) status = stopped(m);
    }
    clt_scratch_set_observer(m->session->scratch, NULL, NULL);
    return status;
}

/* ---- all of it ---- */

static clt_status open_session(measure *m, size_t chunk) {
    culet_session_params params;
    culet_error failure;
    culet_session_defaults(&params);
    params.context = chunk > PROBE_TOKENS ? (int)chunk : PROBE_TOKENS;
    params.kv_k = params.kv_v = CULET_KV_F32;
    culet_status status = culet_session_open(m->engine, &params, &m->session, &failure);
    return status ? clt_fail(m->err, status == CULET_MEMORY ? CLT_E_MEMORY : CLT_E_FAILED, "%s", failure.text) : CLT_OK;
}

static clt_status run(measure *m) {
    const culet_imatrix_params *p = m->p;
    size_t chunk = p->chunk > 1 ? (size_t)p->chunk : USUAL_CHUNK;
    if (p->n < 1) return clt_fail(m->err, CLT_E_USAGE, "imatrix: the text has no tokens");
    double collecting = p->sensitivity ? 0.3 : 1;
    clt_status status = clt_imatrix_init(&m->matrix, "", m->err);
    if (status == CLT_OK) m->matrix.text = clt_arena_strndup(m->matrix.arena, p->text, strlen(p->text));
    if (status == CLT_OK && !m->matrix.text) status = clt_fail_memory(m->err, "imatrix", strlen(p->text));
    if (status == CLT_OK) status = open_session(m, chunk);
    if (status == CLT_OK) status = collect(m, chunk, collecting);
    if (status == CLT_OK && p->sensitivity) status = measure_sensitivities(m, 1 - collecting);
    return status == CLT_OK ? clt_imatrix_write(&m->matrix, p->output, p->old_format, m->err) : status;
}

culet_status culet_engine_imatrix(culet_engine *e, const culet_imatrix_params *p, culet_error *err) {
    clt_err inner;
    measure m = {.engine = e, .p = p, .err = &inner};
    clt_status status = run(&m);
    culet_session_close(m.session);
    clt_imatrix_free(&m.matrix);
    clt_free(m.energy);
    clt_free(m.results);
    clt_free(m.base);
    clt_free(m.row);
    return clt_report(status, &inner, err);
}
