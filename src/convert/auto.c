/* Chooses types for a byte budget. Each tensor has a few candidates (bytes, predicted loss); which of them to take is a
 * knapsack problem, solved by dynamic programming over the bytes. */
#include "convert/auto.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "convert/recipe.h"

enum {
    SAMPLE_ROWS = 192,
    TOGETHER = 16, /* rows encoded in one go */
    UNITS = 20000  /* that a budget is counted in */
};

static const clt_type candidates[] = {CLT_Q2_K, CLT_Q3_K, CLT_IQ4_XS, CLT_IQ4_NL, CLT_Q4_K, CLT_Q4_1,
                                      CLT_Q5_K, CLT_Q5_0, CLT_Q5_1, CLT_Q6_K, CLT_Q8_0, CLT_F16};
enum { N_CANDIDATES = sizeof candidates / sizeof *candidates };

typedef struct choice {
    clt_type type;
    uint64_t bytes;
    double loss;
} choice;

typedef struct item {
    clt_manifest_tensor *t;
    const clt_imatrix_entry *entry;
    double weight;           /* of relative noise */
    double signal, noise[N_CANDIDATES]; /* energies of the sample */
    choice choices[N_CANDIDATES];
    int n;
    uint64_t least;          /* bytes of the smallest choice */
    bool failed;             /* a row could not be read, or holds no numbers */
} item;

typedef struct work {
    item *items;
    size_t n;
    const clt_convert_run *run;
    double tokens;           /* of the text of the importances */
} work;

bool clt_auto_size(const char *recipe, uint64_t *bytes) {
    static const struct { const char *name; double unit; } units[] = {
        {"", 1},      {"K", 1e3},     {"KB", 1e3},       {"M", 1e6},          {"MB", 1e6},
        {"G", 1e9},   {"GB", 1e9},    {"KIB", 1024},     {"MIB", 1048576},    {"GIB", 1073741824},
    };
    char *end = NULL;
    if (strncasecmp(recipe, "auto:", 5) != 0) return false;
    double v = strtod(recipe + 5, &end);
    if (end == recipe + 5 || !(v > 0)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcasecmp(end, units[i].name) && v * units[i].unit < 1e15) return *bytes = (uint64_t)(v * units[i].unit), true;
    return false;
}

/* ---- what each type loses ---- */

/* Rows that expert m's inputs pass for each token of the text. */
static double share_of(const work *w, const item *it, int64_t m) {
    return it->entry && w->tokens > 0 && it->entry->matrices > 1 ? (double)it->entry->counts[m] / w->tokens : 1;
}

/* Adds the energies of n rows of one matrix. y: [n][cols], bytes: as much. */
static void add_rows(const work *w, item *it, int64_t matrix, const float *x, int64_t n, float *y, uint8_t *bytes) {
    int64_t cols = it->t->dims[0];
    const float *importance = it->entry ? it->entry->values + matrix * cols : NULL;
    double share = share_of(w, it, matrix);
    for (int64_t i = 0; i < n * cols; i++)
        it->signal += share * (importance ? (double)importance[i % cols] : 1) * (double)x[i] * (double)x[i];
    for (int k = 0; k < N_CANDIDATES; k++) {
        const clt_type_info *info = clt_type_get((uint32_t)candidates[k]);
        if (cols % info->block_len != 0) continue;
        if (!clt_encode_rows(candidates[k], w->run->fit, x, importance, cols, n, bytes)) it->failed = true;
        info->decode(bytes, y, n * cols);
        for (int64_t i = 0; i < n * cols; i++) {
            double e = (double)x[i] - (double)y[i];
            it->noise[k] += share * (importance ? (double)importance[i % cols] : 1) * e * e;
        }
    }
}

/* Sample row i of n, spread evenly over the tensor. */
static int64_t sample_row(const item *it, int64_t i, int64_t n) { return (2 * i + 1) * it->t->source.rows / (2 * n); }

static void measure(void *ctx, int task, int thread) {
    const work *w = ctx;
    item *it = &w->items[task];
    int64_t cols = it->t->source.cols, rows = it->t->source.rows, n = rows < SAMPLE_ROWS ? rows : SAMPLE_ROWS;
    float *x = clt_alloc((size_t)cols * (3 * TOGETHER + 1) * sizeof *x), *y = x + TOGETHER * cols, *z = y + TOGETHER * cols;
    (void)thread;
    it->failed = !x;
    for (int64_t i = 0, held = 0; !it->failed && i < n; i++) {
        int64_t row = sample_row(it, i, n), matrix = row / it->t->dims[1];
        it->failed = !clt_source_row(&it->t->source, row, x + held++ * cols, z);
        bool last = i + 1 == n || sample_row(it, i + 1, n) / it->t->dims[1] != matrix || held == TOGETHER;
        if (it->failed || !last) continue;
        add_rows(w, it, matrix, x, held, y, (uint8_t *)z);
        held = 0;
    }
    for (int k = 0; k < N_CANDIDATES; k++) it->noise[k] *= (double)rows / (double)n;
    it->signal *= (double)rows / (double)n;
    clt_free(x);
}

static int by_number(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Tensors that nobody measured weigh like the one in the middle of those that somebody did. */
static clt_status weigh(work *w, clt_err *err) {
    double *known = clt_calloc(w->n + 1, sizeof *known);
    size_t n = 0;
    if (!known) return clt_fail_memory(err, "the recipe", w->n * sizeof *known);
    for (size_t i = 0; i < w->n; i++) {
        item *it = &w->items[i];
        it->weight = it->entry ? (double)it->entry->sensitivity * it->signal : 0;
        if (it->weight > 0) known[n++] = it->weight;
    }
    if (n) qsort(known, n, sizeof *known, by_number);
    for (size_t i = 0; i < w->n; i++)
        if (!(w->items[i].weight > 0)) w->items[i].weight = n ? known[n / 2] : 1;
    clt_free(known);
    return CLT_OK;
}

/* ---- choosing ---- */

static void list_choices(item *it) {
    it->n = 0;
    for (int k = 0; k < N_CANDIDATES; k++) {
        clt_manifest_tensor t = *it->t;
        t.type = candidates[k];
        if (t.dims[0] % clt_type_get((uint32_t)t.type)->block_len != 0) continue;
        it->choices[it->n++] = (choice){t.type, clt_manifest_tensor_bytes(&t),
                                        it->weight * it->noise[k] / (it->signal > 0 ? it->signal : 1)};
        choice *c = &it->choices[it->n - 1];
        if (it->n == 1 || c->bytes < it->least) it->least = c->bytes;
    }
}

/* Of all ways to give the tensors types, the one that loses least within `room` bytes beyond the least. Bytes are counted in
 * `unit`s, each choice's to the nearest one. loss[u]: the least of the tensors so far within u units; from[i][u]: the choice
 * of tensor i in it. */
static void solve(work *w, int units, double unit, double *loss, double *next, uint8_t *from) {
    for (int u = 0; u <= units; u++) loss[u] = 0;
    for (size_t i = 0; i < w->n; i++) {
        const item *it = &w->items[i];
        uint8_t *chosen = from + i * (size_t)(units + 1);
        for (int u = 0; u <= units; u++) next[u] = INFINITY;
        for (int k = 0; k < it->n; k++) {
            double cost = floor((double)(it->choices[k].bytes - it->least) / unit + 0.5);
            for (int u = cost <= units ? (int)cost : units + 1; u <= units; u++) {
                double sum = loss[u - (int)cost] + it->choices[k].loss;
                if (sum < next[u]) next[u] = sum, chosen[u] = (uint8_t)k;
            }
        }
        memcpy(loss, next, (size_t)(units + 1) * sizeof *loss);
    }
}

/* Sets the types along the way that ends at `units`; returns their bytes. */
static uint64_t walk_back(work *w, int units, int all_units, double unit, const uint8_t *from) {
    uint64_t bytes = 0;
    int u = units;
    for (size_t i = w->n; i-- > 0;) {
        item *it = &w->items[i];
        const choice *c = &it->choices[from[i * (size_t)(all_units + 1) + (size_t)u]];
        it->t->type = c->type;
        bytes += c->bytes;
        u -= (int)floor((double)(c->bytes - it->least) / unit + 0.5);
    }
    return bytes;
}

static clt_status choose(work *w, uint64_t budget, uint64_t fixed_bytes, clt_err *err) {
    uint64_t least = fixed_bytes;
    for (size_t i = 0; i < w->n; i++) {
        list_choices(&w->items[i]);
        least += w->items[i].least;
    }
    if (least > budget)
        return clt_fail(err, CLT_E_USAGE, "quantize: this model takes at least %.1f MB, auto was given %.1f MB",
                        (double)least / 1e6, (double)budget / 1e6);
    size_t row = UNITS + 1;
    double *loss = clt_alloc(2 * row * sizeof *loss), unit = (double)(budget - least) / UNITS;
    uint8_t *from = clt_calloc(w->n * row + 1, 1);
    clt_status status = loss && from ? CLT_OK : clt_fail_memory(err, "the recipe", w->n * row);
    if (unit < 1) unit = 1;
    if (status == CLT_OK) solve(w, UNITS, unit, loss, loss + row, from);
    /* What rounding to units added up to decides how many of them there really are. */
    for (int units = UNITS; status == CLT_OK && units >= 0; units--)
        if (walk_back(w, units, UNITS, unit, from) + fixed_bytes <= budget) break;
    clt_free(loss);
    clt_free(from);
    return status;
}

/* ---- all of it ---- */

/* Everything of the file but the data of tensors, a little more than it will be. */
static uint64_t head_bytes(const clt_manifest *m) {
    enum { FIXED = 512, ENTRY = 64 };
    uint64_t sum = m->head.metas.len + FIXED, padding = m->head.alignment ? m->head.alignment : 32;
    for (size_t i = 0; i < m->n; i++) sum += strlen(m->tensors[i].name) + ENTRY + padding;
    return sum;
}

clt_status clt_manifest_auto(clt_manifest *m, const clt_imatrix *imatrix, const bool *fixed, uint64_t bytes,
                             const clt_convert_run *run, clt_err *err) {
    work w = {.run = run, .items = clt_calloc(m->n + 1, sizeof *w.items)};
    uint64_t fixed_bytes = head_bytes(m);
    if (!w.items) return clt_fail_memory(err, "the recipe", m->n * sizeof *w.items);
    if (imatrix) w.tokens = (double)imatrix->chunks * (double)imatrix->chunk_tokens;
    for (size_t i = 0; i < m->n; i++) {
        clt_manifest_tensor *t = &m->tensors[i];
        bool chosen = clt_recipe_applies(t->name, t->n_dims) && !fixed[i] && t->source.cols == t->dims[0];
        const clt_imatrix_entry *e = imatrix && chosen ? clt_imatrix_find(imatrix, t->name) : NULL;
        if (e && (e->cols != t->dims[0] || e->matrices != t->dims[2] * t->dims[3])) e = NULL;
        if (!chosen) fixed_bytes += clt_manifest_tensor_bytes(t);
        else w.items[w.n++] = (item){.t = t, .entry = e};
        if (e) t->importance = e->values;
    }
    clt_pool_run(run->pool, measure, &w, (int)w.n);
    clt_status status = CLT_OK;
    for (size_t i = 0; status == CLT_OK && i < w.n; i++)
        if (w.items[i].failed)
            status = clt_fail(err, CLT_E_FILE, "tensor %s cannot be read, or holds numbers that are not finite",
                              w.items[i].t->name);
    if (status == CLT_OK) status = weigh(&w, err);
    if (status == CLT_OK) status = choose(&w, bytes, fixed_bytes, err);
    clt_free(w.items);
    return status;
}
