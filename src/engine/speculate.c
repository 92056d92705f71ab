/* Drafts and their worth.
 *
 * For every token that is picked, each source is asked what it would have said; so its share of right answers is known,
 * for each length of match, without evaluating anything. A draft of k tokens gives 1 + p1 + p1 p2 + … tokens, p_i being the
 * share at the match's length i tokens on; it costs a pass over 1 + k rows instead of one. auto takes the k with the most tokens per
 * millisecond, none if none is better than going on token by token. */
#include "engine/speculate.h"
#include <math.h>
#include <string.h>
#include "base/mem.h"

enum { LENGTHS = 33 /* of a match; the last one stands for all longer ones */, SOURCES = 2 };
typedef enum source { LOOKUP, PREDICTION } source;

/* Shares before anything is known, as if so many tokens had been seen. */
#define PRIOR_SEEN 2.0
#define LENGTH_SEEN 3.0   /* what all lengths together say counts as so many tokens of one length */
#define FADE 0.97         /* of what is counted, with every new token of its length: texts change */
#define ROW_COST 0.15     /* of one more row, before any is measured */
#define WORTH 1.02        /* a draft must promise so much more than none */

static const double prior_share[SOURCES] = {0.35, 0.8};

typedef struct tally { double hits, seen; } tally;

/* What a source says comes next. */
typedef struct guess { bool there; size_t next; int length; int32_t id; } guess;

struct clt_speculator {
    clt_spec_kind kind;
    size_t most;
    clt_lookup *history, *prediction; /* prediction NULL: none */
    const int32_t *expected;          /* [n_expected], owned */
    size_t n_expected, cursor;        /* the next expected token, if the text goes on as expected */
    int run;                          /* tokens in a row that came as expected */
    tally of_length[SOURCES][LENGTHS], of_source[SOURCES];
    guess guess[SOURCES];             /* for the next token */
    double ms[CLT_DRAFT_MOST + 2];    /* of a pass over so many rows; 0: not measured */
};

clt_status clt_speculator_create(clt_spec_kind kind, int draft, const int32_t *prediction, size_t n_prediction,
                                 size_t context, clt_speculator **out, clt_err *err) {
    clt_speculator *s = clt_calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return clt_fail_memory(err, "speculation", sizeof *s);
    s->kind = kind;
    s->most = draft > 0 ? (size_t)draft : kind == CLT_SPEC_FIXED ? CLT_DRAFT_USUAL : CLT_DRAFT_MOST;
    if (s->most > CLT_DRAFT_MOST) s->most = CLT_DRAFT_MOST;
    clt_status st = clt_lookup_create(context, &s->history, err);
    if (st == CLT_OK && n_prediction) st = clt_lookup_create(n_prediction, &s->prediction, err);
    int32_t *copy = st == CLT_OK && n_prediction ? clt_calloc(n_prediction, sizeof *copy) : NULL;
    if (st == CLT_OK && n_prediction && !copy) st = clt_fail_memory(err, "speculation", n_prediction * sizeof *copy);
    if (st != CLT_OK) {
        clt_speculator_free(s);
        return st;
    }
    for (size_t i = 0; i < n_prediction; i++) clt_lookup_add(s->prediction, copy[i] = prediction[i]);
    s->expected = copy, s->n_expected = n_prediction;
    *out = s;
    return CLT_OK;
}

void clt_speculator_free(clt_speculator *s) {
    if (!s) return;
    clt_lookup_free(s->history), clt_lookup_free(s->prediction);
    clt_free((void *)(uintptr_t)s->expected);
    clt_free(s);
}

/* ---- guesses ---- */

static void look(clt_speculator *s, const int32_t *ids, size_t n) {
    clt_match m = clt_lookup_find(s->history, ids, n);
    guess *g = s->guess;
    g[LOOKUP] = (guess){.there = m.length > 0, .next = m.next, .length = m.length};
    if (g[LOOKUP].there) clt_lookup_copy(s->history, m.next, &g[LOOKUP].id, 1);
    g[PREDICTION] = (guess){.there = s->cursor < s->n_expected, .next = s->cursor, .length = s->run};
    if (g[PREDICTION].there) g[PREDICTION].id = s->expected[s->cursor];
}

void clt_speculator_read(clt_speculator *s, const int32_t *ids, size_t n) {
    for (size_t i = clt_lookup_length(s->history); i < n; i++) clt_lookup_add(s->history, ids[i]);
    look(s, ids, n);
}

/* Where the expected text goes on after a token that it did not expect: behind one more of its tokens, as if a single one
 * had been exchanged, until the last tokens are found elsewhere in it. */
static void follow(clt_speculator *s, const int32_t *ids, size_t n) {
    if (!s->n_expected) return;
    bool as_expected = s->cursor < s->n_expected && s->expected[s->cursor] == ids[n - 1];
    s->run = as_expected ? s->run + 1 : 0;
    if (s->cursor < s->n_expected) s->cursor++;
    if (s->run >= CLT_LOOKUP_LEAST) return;
    clt_match m = clt_lookup_find(s->prediction, ids, n);
    if (m.length > s->run && m.length > CLT_LOOKUP_LEAST) s->cursor = m.next, s->run = m.length;
}

static int bucket(int length) { return length < LENGTHS ? length : LENGTHS - 1; }

static void count(tally *t, bool hit) {
    t->hits = t->hits * FADE + hit;
    t->seen = t->seen * FADE + 1;
}

void clt_speculator_take(clt_speculator *s, const int32_t *ids, size_t n) {
    for (int i = 0; i < SOURCES; i++) {
        const guess *g = &s->guess[i];
        if (!g->there) continue;
        count(&s->of_length[i][bucket(g->length)], g->id == ids[n - 1]);
        count(&s->of_source[i], g->id == ids[n - 1]);
    }
    follow(s, ids, n);
    clt_lookup_add(s->history, ids[n - 1]);
    look(s, ids, n);
}

/* ---- worth ---- */

/* The share of right answers of a source at a length of match. */
static double share(const clt_speculator *s, source from, int length) {
    const tally *all = &s->of_source[from], *one = &s->of_length[from][bucket(length)];
    double any = (all->hits + PRIOR_SEEN * prior_share[from]) / (all->seen + PRIOR_SEEN);
    return (one->hits + LENGTH_SEEN * any) / (one->seen + LENGTH_SEEN);
}

/* Milliseconds of a pass over `rows`, in units of one over a single row. */
static double cost(const clt_speculator *s, size_t rows) {
    size_t below = 0, above = 0;
    double one = s->ms[1] > 0 ? s->ms[1] : 0;
    for (size_t i = 1; i <= CLT_DRAFT_MOST + 1 && one <= 0; i++)
        if (s->ms[i] > 0) one = s->ms[i] / (1 + ROW_COST * (double)(i - 1));
    if (one <= 0) return 1 + ROW_COST * (double)(rows - 1);
    for (size_t i = 1; i <= CLT_DRAFT_MOST + 1; i++) {
        if (s->ms[i] <= 0) continue;
        if (i <= rows) below = i;
        else if (!above) above = i;
    }
    double base = below ? s->ms[below] / one : 1, from = below ? (double)below : 1, step = ROW_COST;
    if (above) step = (s->ms[above] / one - base) / ((double)above - from);
    else if (below > 1) step = fmax(ROW_COST / 2, (base - 1) / (from - 1));
    return base + fmax(0, step) * ((double)rows - from);
}

/* How many tokens of a guess to draft, and how much better than none that is. */
static size_t best_length(const clt_speculator *s, source from, size_t room, double *gain) {
    double expected = 1, all_right = 1, best = WORTH;
    size_t k = 0;
    for (size_t i = 1; i <= room; i++) {
        all_right *= share(s, from, s->guess[from].length + (int)i - 1);
        expected += all_right;
        double rate = expected / cost(s, i + 1) * cost(s, 1);
        if (rate > best) best = rate, k = i;
    }
    *gain = best;
    return k;
}

static size_t write_draft(const clt_speculator *s, source from, size_t k, int32_t *out) {
    if (from == LOOKUP) return clt_lookup_copy(s->history, s->guess[LOOKUP].next, out, k);
    size_t there = s->n_expected - s->cursor;
    if (k > there) k = there;
    memcpy(out, s->expected + s->cursor, k * sizeof *out);
    return k;
}

size_t clt_speculator_draft(const clt_speculator *s, size_t room, int32_t *out) {
    if (room > s->most) room = s->most;
    if (s->kind == CLT_SPEC_NONE || room == 0) return 0;
    if (s->kind == CLT_SPEC_FIXED)
        return s->guess[PREDICTION].there ? write_draft(s, PREDICTION, room, out)
               : s->guess[LOOKUP].there   ? write_draft(s, LOOKUP, room, out) : 0;
    double gain, best = 0;
    size_t k = 0;
    source from = LOOKUP;
    for (int i = 0; i < SOURCES; i++) {
        if (!s->guess[i].there) continue;
        size_t length = best_length(s, (source)i, room, &gain);
        if (length && gain > best) best = gain, k = length, from = (source)i;
    }
    return k ? write_draft(s, from, k, out) : 0;
}

/* Times waver upwards only: what is quicker than was thought counts more than what is slower. */
void clt_speculator_timed(clt_speculator *s, size_t drafted, double ms) {
    double *t = &s->ms[drafted + 1];
    if (*t <= 0) *t = ms;
    else *t += (ms - *t) * (ms < *t ? 0.5 : 0.1);
}
