/* Sampling: logits [V] and the history of a timeline in, one id out. Does not know what ids mean.
 *
 * The chain, in the order that users of local runtimes know:
 *   suppression and bias -> repeat, presence and frequency penalties -> top-k -> top-p -> min-p -> temperature -> draw.
 * Top-p and min-p therefore look at the distribution at temperature 1. The draw is a walk over the candidates, best first
 * (equal logits: the smaller id first), until their weights exceed a number that depends on (seed, position) alone.
 *
 * Few ids are changed by bias and penalties, so logits are read where they lie: changed ids live in a short list, marked in
 * `slot`. Candidates are a heap that is sorted only as far as somebody asks. Nothing is allocated per pick.
 *
 * Ids that are not allowed are no candidates: the best of the others wins, and where the best of all is allowed, it does. */
#include "sample/sample.h"
#include <math.h>
#include <string.h>
#include "base/mem.h"
#include "base/random.h"
#include "sample/exp.h"

typedef struct candidate {
    float logit;
    int32_t id;
} candidate;

typedef struct change {
    int32_t id, count; /* occurrences in the history that penalties look at */
    float logit;
} change;

struct clt_sampler {
    int32_t vocab;
    int32_t *slot;   /* [V]: 1 + index into `changed`, 0 = the logit counts as it is */
    change *changed; /* [V] */
    int32_t n_changed;
    candidate *list; /* [V]: [0, n - sorted) a heap with the best on top, behind it the best ones, best last */
    int32_t n, sorted;
    double max;      /* logit of the best candidate */
};

clt_status clt_sampler_create(int32_t vocab, clt_sampler **out, clt_err *err) {
    *out = NULL;
    if (vocab <= 0) return clt_fail(err, CLT_E_USAGE, "sampler: a vocabulary of %d ids", vocab);
    size_t v = (size_t)vocab;
    clt_sampler *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_fail_memory(err, "sampler", sizeof *s);
    s->vocab = vocab;
    s->slot = clt_calloc(v, sizeof *s->slot);
    s->changed = clt_calloc(v, sizeof *s->changed);
    s->list = clt_calloc(v, sizeof *s->list);
    if (!s->slot || !s->changed || !s->list) {
        clt_sampler_free(s);
        return clt_fail_memory(err, "sampler", v * (sizeof *s->slot + sizeof *s->changed + sizeof *s->list));
    }
    *out = s;
    return CLT_OK;
}

void clt_sampler_free(clt_sampler *s) {
    if (!s) return;
    clt_free(s->slot);
    clt_free(s->changed);
    clt_free(s->list);
    clt_free(s);
}

/* ---- changed logits ---- */

/* The list entry of an id, made on first use; NULL for an id that the vocabulary lacks. */
static change *change_of(clt_sampler *s, const float *logits, int32_t id) {
    if (id < 0 || id >= s->vocab) return NULL;
    if (s->slot[id] == 0) {
        s->changed[s->n_changed] = (change){.id = id, .logit = logits[id]};
        s->slot[id] = ++s->n_changed;
    }
    return &s->changed[s->slot[id] - 1];
}

static void count_history(clt_sampler *s, const clt_sample_params *p, const float *logits, const int32_t *history,
                          size_t n) {
    bool wanted = p->repeat_penalty != 1 || p->presence_penalty != 0 || p->frequency_penalty != 0;
    if (!wanted || p->repeat_last_n == 0) return;
    size_t last = p->repeat_last_n < 0 || (size_t)p->repeat_last_n > n ? n : (size_t)p->repeat_last_n;
    for (size_t i = n - last; i < n; i++) {
        change *c = change_of(s, logits, history[i]);
        if (c) c->count++;
    }
}

static float penalised(const clt_sample_params *p, float logit, int32_t count) {
    logit = logit > 0 ? logit / p->repeat_penalty : logit * p->repeat_penalty;
    return logit - p->presence_penalty - p->frequency_penalty * (float)count;
}

static void collect_changes(clt_sampler *s, const clt_sample_params *p, const float *logits, const int32_t *history,
                            size_t n) {
    for (size_t i = 0; i < p->n_bias; i++) {
        change *c = change_of(s, logits, p->bias_ids[i]);
        if (c) c->logit += p->bias_values[i];
    }
    count_history(s, p, logits, history, n);
    for (int32_t i = 0; i < s->n_changed; i++) {
        change *c = &s->changed[i];
        if (c->count > 0) c->logit = penalised(p, c->logit, c->count);
    }
    for (size_t i = 0; i < p->n_suppressed; i++) {
        change *c = change_of(s, logits, p->suppressed[i]);
        if (c) c->logit = -INFINITY; /* last, so that no bias brings it back */
    }
}

static void forget_changes(clt_sampler *s) {
    for (int32_t i = 0; i < s->n_changed; i++) s->slot[s->changed[i].id] = 0;
    s->n_changed = 0;
}

/* ---- candidates ---- */

static inline bool is_allowed(const uint64_t *allowed, int32_t id) {
    return !allowed || allowed[id / 64] >> id % 64 & 1;
}

static inline bool better(candidate a, candidate b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Sinks list[at] in a heap of n; the best on top, or the worst on top if `worst`. */
static void sink(candidate *list, int32_t n, int32_t at, bool worst) {
    candidate moving = list[at];
    for (int32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && better(list[child + 1], list[child]) != worst) child++;
        if (better(list[child], moving) == worst) break;
        list[at] = list[child];
    }
    list[at] = moving;
}

static void heapify(candidate *list, int32_t n, bool worst) {
    for (int32_t i = n / 2; i-- > 0;) sink(list, n, i, worst);
}

/* Adds a candidate to the k best seen so far. list is a plain array until it holds k, then a heap with the worst on top. */
static void offer(clt_sampler *s, int32_t k, candidate c) {
    if (s->n < k) {
        s->list[s->n++] = c;
        if (s->n == k) heapify(s->list, k, true);
    } else if (better(c, s->list[0])) {
        s->list[0] = c;
        sink(s->list, k, 0, true);
    }
}

/* The k best of all finite logits. Whole blocks whose largest logit cannot enter are passed over; a NaN compares false and
 * so neither raises the largest nor enters. */
static void select_best(clt_sampler *s, const float *logits, const uint64_t *allowed, int32_t k) {
    enum { BLOCK = 32, LANES = 8 };
    float bar = -INFINITY; /* a logit must exceed this to enter */
    for (int32_t base = 0; base < s->vocab; base += BLOCK) {
        int32_t end = s->vocab - base < BLOCK ? s->vocab : base + BLOCK;
        if (allowed && (uint32_t)(allowed[base / 64] >> base % 64) == 0) continue;
        if (end - base == BLOCK) {
            float top[LANES];
            for (int j = 0; j < LANES; j++) top[j] = -INFINITY;
            for (int i = 0; i < BLOCK; i += LANES)
                for (int j = 0; j < LANES; j++) top[j] = logits[base + i + j] > top[j] ? logits[base + i + j] : top[j];
            bool enters = false;
            for (int j = 0; j < LANES; j++) enters |= top[j] > bar;
            if (!enters) continue;
        }
        for (int32_t id = base; id < end; id++) {
            if (!(logits[id] > bar) || s->slot[id] != 0 || !is_allowed(allowed, id)) continue;
            offer(s, k, (candidate){.logit = logits[id], .id = id});
            if (s->n == k) bar = s->list[0].logit;
        }
    }
    for (int32_t i = 0; i < s->n_changed; i++) {
        change c = s->changed[i];
        if (c.logit > -INFINITY && is_allowed(allowed, c.id)) offer(s, k, (candidate){.logit = c.logit, .id = c.id});
    }
}

static void take_all(clt_sampler *s, const float *logits, const uint64_t *allowed) {
    for (int32_t id = 0; id < s->vocab; id++) {
        float logit = s->slot[id] == 0 ? logits[id] : s->changed[s->slot[id] - 1].logit;
        if (logit > -INFINITY && is_allowed(allowed, id)) s->list[s->n++] = (candidate){.logit = logit, .id = id};
    }
}

/* The i-th best candidate, i = 0, 1, …; sorts as far as that. */
static candidate nth(clt_sampler *s, int32_t i) {
    while (s->sorted <= i) {
        int32_t last = s->n - 1 - s->sorted;
        candidate best = s->list[0];
        s->list[0] = s->list[last];
        s->list[last] = best;
        s->sorted++;
        sink(s->list, last, 0, false);
    }
    return s->list[s->n - 1 - i];
}

/* Weight relative to the best candidate, 1 for itself (also where the best is infinite). */
static double weight(const clt_sampler *s, float logit, double temperature) {
    return (double)logit == s->max ? 1 : clt_sample_exp(((double)logit - s->max) / temperature);
}

static double sum_of_weights(const clt_sampler *s, int32_t from, int32_t to, double temperature) {
    double sum = 0;
    for (int32_t i = from; i < to; i++) sum += weight(s, s->list[i].logit, temperature);
    return sum;
}

/* How many of the best candidates remain after top-p and min-p; at least 1. */
static int32_t truncate(clt_sampler *s, const clt_sample_params *p) {
    int32_t kept = s->n;
    if (p->top_p < 1) {
        double wanted = (double)p->top_p * sum_of_weights(s, 0, s->n, 1), sum = 0;
        for (kept = 0; kept < s->n && (kept == 0 || sum < wanted); kept++) sum += weight(s, nth(s, kept).logit, 1);
    }
    if (p->min_p > 0) {
        int32_t limit = kept;
        for (kept = 1; kept < limit && weight(s, nth(s, kept).logit, 1) >= (double)p->min_p;) kept++;
    }
    return kept;
}

static int32_t draw(clt_sampler *s, int32_t kept, double temperature, double unit) {
    double target = unit * sum_of_weights(s, s->n - kept, s->n, temperature), sum = 0;
    candidate c = nth(s, 0);
    for (int32_t i = 0; i < kept; i++) {
        candidate next = nth(s, i);
        double w = weight(s, next.logit, temperature);
        if (w == 0) break; /* rounding left a rest of the sum: the last one that has a weight */
        c = next;
        sum += w;
        if (sum > target) break;
    }
    return c.id;
}

int32_t clt_sampler_pick(clt_sampler *s, const clt_sample_params *p, const float *logits, const int32_t *history,
                         size_t n_history, uint64_t position) {
    bool greedy = p->temperature <= 0 || p->top_k == 1;
    s->n = s->sorted = 0;
    collect_changes(s, p, logits, history, n_history);
    if (greedy) select_best(s, logits, p->allowed, 1);
    else if (p->top_k > 0 && p->top_k < s->vocab) select_best(s, logits, p->allowed, p->top_k);
    else take_all(s, logits, p->allowed);
    forget_changes(s);
    if (s->n == 0) return 0; /* nothing but NaN and -inf: what argmax says of them */
    heapify(s->list, s->n, false);
    s->max = (double)s->list[0].logit;
    if (greedy) return s->list[0].id;
    int32_t kept = truncate(s, p);
    return draw(s, kept, (double)p->temperature, clt_random_unit(p->seed, position, 0));
}
