/* One rule: a nondeterministic automaton -> a deterministic one, by subsets. Calls are edges like bytes, told apart by rule
 * and bounds; what may take no byte is passed. Alternatives that begin alike, a list of 100,000 words say, become one tree.
 *
 * Where subsets become too many the states stay as they were written, less the empty edges: the matcher follows several at
 * once. */
#include <stdlib.h>
#include "base/hash.h"
#include "grammar/impl.h"

enum { SPARE_SETS = 64, SETS_PER_STATE = 3, SPARE_MEMBERS = 1 << 16, MEMBERS_PER_STATE = 8 };
enum { MAX_WORK = 1 << 25, MAX_WORK_APART = 2 * MAX_WORK }; /* a step is some nanoseconds */

typedef struct subset {
    uint32_t at, n, hash;
} subset;
typedef struct span {
    uint32_t to;
    uint8_t lo, hi;
} span;

typedef struct maker {
    clt_grammar *g;
    const clt_nfa *n;
    clt_facts *f;
    uint32_t rule, end;     /* the rule and its last state */
    uint32_t base;          /* state of g that stands for subset 0 */
    bool apart;             /* give every state a subset of its own */
    uint32_t *pool;         /* members of all subsets; behind n_pool the one that is being made */
    size_t n_pool, cap_pool, n_made;
    subset *sets;
    size_t n_sets, cap_sets;
    uint32_t *index;        /* hash table: 1 + subset */
    size_t n_index;
    span *spans;
    size_t n_spans, cap_spans;
    clt_call_edge *calls;
    size_t n_calls, cap_calls;
    bool no_memory;
} maker;

static int compare_ids(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- the subset that is being made ---- */

static void begin_subset(maker *m) {
    m->n_made = 0;
    m->f->round++;
}

static void put_state(maker *m, uint32_t state) {
    if (m->f->stamp[state] == m->f->round || !m->f->alive[state]) return;
    m->f->stamp[state] = m->f->round;
    if (!CLT_ROOM(m->pool, m->cap_pool, m->n_pool + m->n_made + 1)) m->no_memory = true;
    else m->pool[m->n_pool + m->n_made++] = state;
}

/* Adds what is reached without a byte, then keeps the states that do something. */
static void close_subset(maker *m) {
    const clt_nfa *n = m->n;
    size_t kept = 0;
    for (size_t i = 0; i < m->n_made && !m->no_memory; i++) {
        uint32_t at = m->pool[m->n_pool + i];
        bool acts = at == m->end;
        for (uint32_t e = n->first[at]; e != CLT_NONE; e = n->edges[e].next) {
            const clt_nfa_edge *edge = &n->edges[e];
            m->f->work++;
            bool call = edge->type == CLT_NFA_CALL;
            if (call ? clt_call_nullable(n, m->f, &n->calls[edge->call]) : edge->type == CLT_NFA_EMPTY)
                put_state(m, edge->to);
            if (edge->type != CLT_NFA_EMPTY) acts = true;
        }
        if (acts) m->pool[m->n_pool + kept++] = at;
    }
    m->n_made = kept;
    m->f->work += 4 * kept;
    if (kept > 1) qsort(m->pool + m->n_pool, kept, sizeof *m->pool, compare_ids);
}

static bool grow_index(maker *m) {
    size_t size = m->n_index ? 2 * m->n_index : 64;
    uint32_t *grown = clt_calloc(size, sizeof *grown);
    if (!grown) return false;
    for (size_t i = 0; i < m->n_sets; i++) {
        size_t at = m->sets[i].hash & (size - 1);
        while (grown[at]) at = (at + 1) & (size - 1);
        grown[at] = (uint32_t)i + 1;
    }
    clt_free(m->index);
    m->index = grown;
    m->n_index = size;
    return true;
}

/* Ends the subset; the state of g that stands for it. */
static uint32_t end_subset(maker *m) {
    close_subset(m);
    if (2 * m->n_sets >= m->n_index && !grow_index(m)) m->no_memory = true;
    if (!CLT_ROOM(m->sets, m->cap_sets, m->n_sets + 1)) m->no_memory = true;
    if (m->no_memory) return 0;
    const uint32_t *made = m->n_made ? m->pool + m->n_pool : NULL;
    uint32_t hash = (uint32_t)clt_hash64(made, m->n_made * sizeof *made, 0);
    size_t at = hash & (m->n_index - 1);
    for (; m->index[at]; at = (at + 1) & (m->n_index - 1)) {
        const subset *s = &m->sets[m->index[at] - 1];
        if (s->hash == hash && s->n == m->n_made && (s->n == 0 || !memcmp(m->pool + s->at, made, s->n * sizeof *made)))
            return m->base + m->index[at] - 1;
    }
    m->sets[m->n_sets] = (subset){(uint32_t)m->n_pool, (uint32_t)m->n_made, hash};
    m->n_pool += m->n_made;
    m->index[at] = (uint32_t)++m->n_sets;
    return m->base + (uint32_t)m->n_sets - 1;
}

static uint32_t subset_of(maker *m, uint32_t state) {
    begin_subset(m);
    put_state(m, state);
    return end_subset(m);
}

/* ---- edges ---- */

/* The edges of a subset of one kind; calls are gathered in m->calls. */
static void gather(maker *m, const subset *s, clt_edge_kind kind) {
    m->n_spans = m->n_calls = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        for (uint32_t e = m->n->first[m->pool[s->at + i]]; e != CLT_NONE; e = m->n->edges[e].next) {
            const clt_nfa_edge *edge = &m->n->edges[e];
            m->f->work++;
            if (!m->f->alive[edge->to]) continue;
            if (edge->type == CLT_NFA_BYTES && edge->kind == kind) {
                if (!CLT_ROOM(m->spans, m->cap_spans, m->n_spans + 1)) m->no_memory = true;
                else m->spans[m->n_spans++] = (span){edge->to, edge->lo, edge->hi};
            } else if (edge->type == CLT_NFA_CALL && clt_call_usable(m->n, m->f, &m->n->calls[edge->call])) {
                if (!CLT_ROOM(m->calls, m->cap_calls, m->n_calls + 1)) m->no_memory = true;
                else m->calls[m->n_calls++] = (clt_call_edge){m->n->calls[edge->call], edge->to};
            }
            if (m->no_memory) return;
        }
    }
}

static void write_edge(maker *m, unsigned lo, unsigned hi, clt_edge_kind kind, uint32_t to) {
    clt_grammar *g = m->g;
    clt_edge *last = g->n_edges > g->states[g->n_states - 1].edge ? &g->edges[g->n_edges - 1] : NULL;
    if (last && last->kind == kind && last->to == to && last->hi + 1u == lo && !m->apart) last->hi = (uint8_t)hi;
    else if (!clt_grammar_edge(g, lo, hi, kind, to)) m->no_memory = true;
}

static void write_bytes(maker *m, clt_edge_kind kind) {
    bool cut[257] = {false};
    for (size_t i = 0; i < m->n_spans; i++) {
        cut[m->spans[i].lo] = true;
        cut[m->spans[i].hi + 1] = true;
    }
    for (unsigned lo = 0, hi; lo < 256 && m->n_spans && !m->no_memory; lo = hi + 1) {
        for (hi = lo; hi < 255 && !cut[hi + 1];) hi++;
        begin_subset(m);
        m->f->work += m->n_spans;
        for (size_t i = 0; i < m->n_spans; i++)
            if (m->spans[i].lo <= lo && m->spans[i].hi >= hi) put_state(m, m->spans[i].to);
        if (m->n_made == 0) continue;
        write_edge(m, lo, hi, kind, end_subset(m));
    }
}

static void write_bytes_apart(maker *m, clt_edge_kind kind) {
    for (size_t i = 0; i < m->n_spans && !m->no_memory && m->f->work <= MAX_WORK_APART; i++)
        write_edge(m, m->spans[i].lo, m->spans[i].hi, kind, subset_of(m, m->spans[i].to));
}

static int compare_calls(const void *a, const void *b) {
    const clt_call *x = &((const clt_call_edge *)a)->call, *y = &((const clt_call_edge *)b)->call;
    if (x->rule != y->rule) return x->rule < y->rule ? -1 : 1;
    if (x->need != y->need) return x->need < y->need ? -1 : 1;
    return x->left < y->left ? -1 : x->left > y->left;
}

static void write_calls(maker *m) {
    if (m->n_calls > 1) qsort(m->calls, m->n_calls, sizeof *m->calls, compare_calls);
    for (size_t i = 0, next; i < m->n_calls && !m->no_memory; i = next) {
        begin_subset(m);
        put_state(m, m->calls[i].to);
        for (next = i + 1; next < m->n_calls && !m->apart && !compare_calls(&m->calls[i], &m->calls[next]); next++)
            put_state(m, m->calls[next].to);
        uint32_t to = end_subset(m);
        if (!m->no_memory && !clt_grammar_call(m->g, m->calls[i].call, to)) m->no_memory = true;
    }
}

/* ---- the rule ---- */

static bool holds(const maker *m, const subset *s, uint32_t state) {
    return s->n && bsearch(&state, m->pool + s->at, s->n, sizeof state, compare_ids) != NULL;
}

/* Writes state after state until no new subset comes up. false: too many, or no memory. */
static bool write_states(maker *m, uint32_t start, size_t states) {
    subset_of(m, start);
    for (size_t i = 0; i < m->n_sets && !m->no_memory; i++) {
        subset s = m->sets[i];
        if (clt_grammar_state(m->g) == CLT_NONE) m->no_memory = true;
        if (m->no_memory) return false;
        int last = m->n->rules[m->rule].counts ? CLT_EXIT : CLT_PLAIN; /* of the kinds that its edges have */
        for (int kind = CLT_PLAIN; kind <= last && !m->no_memory; kind++) {
            gather(m, &s, (clt_edge_kind)kind);
            if (m->apart) write_bytes_apart(m, (clt_edge_kind)kind);
            else write_bytes(m, (clt_edge_kind)kind);
        }
        write_calls(m);
        m->g->states[m->base + i].accepts = holds(m, &s, m->end);
        if (!m->apart && (m->n_sets > SPARE_SETS + SETS_PER_STATE * states ||
                          m->n_pool > SPARE_MEMBERS + MEMBERS_PER_STATE * states))
            return false;
        if (m->f->work > (m->apart ? MAX_WORK_APART : MAX_WORK)) return false;
    }
    return !m->no_memory;
}

static void forget(maker *m) {
    m->n_pool = m->n_sets = 0;
    if (m->index) memset(m->index, 0, m->n_index * sizeof *m->index);
}

/* How many states a rule has as it was written: those that its start leads to. */
static size_t count_states(maker *m, uint32_t start) {
    begin_subset(m);
    put_state(m, start);
    for (size_t i = 0; i < m->n_made && !m->no_memory; i++) {
        for (uint32_t e = m->n->first[m->pool[m->n_pool + i]]; e != CLT_NONE; e = m->n->edges[e].next)
            put_state(m, m->n->edges[e].to);
    }
    return m->n_made;
}

bool clt_grammar_determinise(clt_grammar *g, const clt_nfa *n, clt_facts *f, uint32_t rule) {
    const clt_nfa_rule *r = &n->rules[rule];
    maker m = {.g = g, .n = n, .f = f, .rule = rule, .end = r->end, .base = (uint32_t)g->n_states};
    size_t edges = g->n_edges, calls = g->n_calls, states = count_states(&m, r->start);
    g->rules[rule].start = m.base;
    bool ok = write_states(&m, r->start, states);
    if (!ok && !m.no_memory && f->work <= MAX_WORK_APART) {
        forget(&m);
        g->n_states = m.base;
        g->n_edges = edges;
        g->n_calls = calls;
        m.apart = true;
        ok = write_states(&m, r->start, states);
    }
    f->no_memory |= m.no_memory;
    clt_free(m.pool);
    clt_free(m.sets);
    clt_free(m.index);
    clt_free(m.spans);
    clt_free(m.calls);
    return ok;
}
