/* Compiling: rules as they were written -> automata that can be matched. Rules that nobody calls are left out; a grammar
 * that can never end is refused. */
#include "grammar/impl.h"

/* ---- the finished form ---- */

uint32_t clt_grammar_state(clt_grammar *g) {
    if (g->n_states >= CLT_NONE / 2 || !CLT_ROOM(g->states, g->cap_states, g->n_states + 1)) return CLT_NONE;
    g->states[g->n_states] = (clt_state){.edge = (uint32_t)g->n_edges, .call = (uint32_t)g->n_calls, .most = CLT_MANY,
                                         .repeats = CLT_NONE};
    return (uint32_t)g->n_states++;
}

bool clt_grammar_edge(clt_grammar *g, unsigned lo, unsigned hi, clt_edge_kind kind, uint32_t to) {
    if (g->n_edges >= CLT_NONE / 2 || !CLT_ROOM(g->edges, g->cap_edges, g->n_edges + 1)) return false;
    g->edges[g->n_edges++] = (clt_edge){.to = to, .lo = (uint8_t)lo, .hi = (uint8_t)hi, .kind = (uint8_t)kind};
    g->states[g->n_states - 1].n_edges++;
    return true;
}

bool clt_grammar_call(clt_grammar *g, clt_call call, uint32_t to) {
    if (g->n_calls >= CLT_NONE / 2 || !CLT_ROOM(g->calls, g->cap_calls, g->n_calls + 1)) return false;
    g->calls[g->n_calls++] = (clt_call_edge){call, to};
    g->states[g->n_states - 1].n_calls++;
    return true;
}

void clt_grammar_free(clt_grammar *g) {
    if (!g) return;
    clt_free(g->states);
    clt_free(g->edges);
    clt_free(g->calls);
    clt_free(g->rules);
    clt_free(g);
}

/* ---- lengths of counted strings ---- */

/* The fewest characters from each state to the end. Edges lead mostly onwards, so going backwards settles fast. */
static void find_least(clt_grammar *g, size_t from) {
    for (size_t s = from; s < g->n_states; s++) g->states[s].least = g->states[s].accepts ? 0 : CLT_NONE;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t s = g->n_states; s-- > from;) {
            clt_state *st = &g->states[s];
            for (uint32_t e = st->edge; e < st->edge + st->n_edges; e++) {
                uint32_t rest = g->states[g->edges[e].to].least;
                if (rest == CLT_NONE) continue;
                rest += g->edges[e].kind == CLT_COUNT;
                if (rest >= st->least) continue;
                st->least = rest;
                changed = true;
            }
        }
    }
}

/* The most characters, for states that no circle follows; CLT_MANY stays for the others. */
static void find_most(clt_grammar *g, size_t from) {
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t s = g->n_states; s-- > from;) {
            clt_state *st = &g->states[s];
            uint32_t most = 0;
            for (uint32_t e = st->edge; e < st->edge + st->n_edges && most != CLT_MANY; e++) {
                uint32_t rest = g->states[g->edges[e].to].most;
                if (rest != CLT_MANY) rest += g->edges[e].kind == CLT_COUNT;
                if (rest > most) most = rest;
            }
            if (st->most != CLT_MANY || most == CLT_MANY) continue;
            st->most = most;
            changed = true;
        }
    }
}

static void find_lengths(clt_grammar *g, size_t from) {
    find_least(g, from);
    find_most(g, from);
    for (size_t s = from; s < g->n_states; s++) {
        const clt_state *st = &g->states[s];
        if (st->least != CLT_NONE && st->least > g->far) g->far = st->least;
        if (st->most != CLT_MANY && st->most > g->far) g->far = st->most;
    }
}

/* ---- nesting ---- */

static uint32_t height_of_call(const clt_grammar *g, const clt_call_edge *e) {
    const clt_state *start = &g->states[g->rules[e->call.rule].start];
    uint32_t called = start->height;
    if (start->repeats != CLT_NONE) called = e->call.need ? g->states[g->rules[start->repeats].start].height + 1 : 0;
    return called < CLT_MAX_STACK ? called + 1 : CLT_MAX_STACK;
}

/* Rules stand behind those that call them, so going backwards settles fast; what a strange order leaves unsettled counts as
 * too deep. */
static void find_heights(clt_grammar *g) {
    for (size_t s = 0; s < g->n_states; s++)
        g->states[s].height = g->states[s].accepts || g->states[s].repeats != CLT_NONE || s == 0 ? 0 : CLT_MAX_STACK;
    bool changed = true;
    for (int round = 0; changed && round < 1000; round++) {
        changed = false;
        for (size_t s = g->n_states; s-- > 0;) {
            clt_state *st = &g->states[s];
            uint32_t least = st->height;
            for (uint32_t e = st->edge; e < st->edge + st->n_edges; e++)
                if (g->states[g->edges[e].to].height < least) least = g->states[g->edges[e].to].height;
            for (uint32_t c = st->call; c < st->call + st->n_calls; c++) {
                uint32_t called = height_of_call(g, &g->calls[c]), rest = g->states[g->calls[c].to].height;
                if (called < rest) called = rest;
                if (called < least) least = called;
            }
            changed |= least < st->height;
            st->height = least;
        }
    }
}

/* ---- bytes that are alike everywhere ---- */

static void find_classes(clt_grammar *g) {
    bool cut[257] = {false};
    for (size_t i = 0; i < g->n_edges; i++) {
        cut[g->edges[i].lo] = true;
        cut[g->edges[i].hi + 1] = true;
    }
    cut[0] = true;
    for (unsigned b = 0; b < 256; b++) {
        if (cut[b]) g->sample_of[g->n_classes++] = (uint8_t)b;
        g->class_of[b] = (uint8_t)(g->n_classes - 1);
    }
}

/* ---- rules ---- */

static bool compile_rule(clt_grammar *g, clt_nfa *n, clt_facts *f, uint32_t r) {
    const clt_nfa_rule *rule = &n->rules[r];
    size_t from = g->n_states;
    g->rules[r].rank = f->rank[r];
    g->rules[r].counts = rule->counts || rule->fixed != CLT_NONE || rule->body != CLT_NONE;
    if (rule->fixed != CLT_NONE) {
        g->rules[r].start = rule->fixed;
        return true;
    }
    if (rule->body != CLT_NONE) {
        uint32_t state = clt_grammar_state(g);
        f->no_memory = state == CLT_NONE;
        if (state == CLT_NONE) return false;
        g->states[state].repeats = rule->body;
        g->rules[r].start = state;
        return true;
    }
    if (!clt_grammar_determinise(g, n, f, r)) return false;
    if (rule->counts) find_lengths(g, from);
    return true;
}

/* Compiles the rules that root leads to. */
static bool compile_rules(clt_grammar *g, clt_nfa *n, clt_facts *f, uint32_t root) {
    uint32_t *queue = clt_calloc(n->n_rules, sizeof *queue);
    bool *queued = clt_calloc(n->n_rules, sizeof *queued), ok = queue && queued;
    f->no_memory = !ok;
    size_t done = 0, n_queued = 0;
    if (ok) {
        queue[n_queued++] = root;
        queued[root] = true;
    }
    while (ok && done < n_queued) {
        uint32_t r = queue[done++], body = n->rules[r].body;
        size_t call = g->n_calls;
        ok = compile_rule(g, n, f, r);
        if (body != CLT_NONE && !queued[body]) {
            queued[body] = true;
            queue[n_queued++] = body;
        }
        for (; ok && call < g->n_calls; call++) {
            uint32_t to = g->calls[call].call.rule;
            if (queued[to]) continue;
            queued[to] = true;
            queue[n_queued++] = to;
        }
    }
    clt_free(queue);
    clt_free(queued);
    return ok;
}

static clt_status compile(clt_grammar *g, clt_nfa *n, clt_facts *f, uint32_t root, const char *what, clt_err *err) {
    if (!f->usable[root]) return clt_fail(err, CLT_E_REQUEST, "%s: nothing can satisfy it: the reply could never end", what);
    for (size_t i = 0; i < n->n_calls; i++) { /* what may take no byte need not be repeated */
        uint32_t body = n->rules[n->calls[i].rule].body;
        if (body != CLT_NONE && f->nullable[body]) n->calls[i].need = 0;
    }
    g->rules = clt_calloc(n->n_rules, sizeof *g->rules);
    g->n_rules = n->n_rules;
    g->root = root;
    if (!g->rules || !clt_prelude_states(g)) return clt_fail_memory(err, what, n->n_rules * sizeof *g->rules);
    if (!compile_rules(g, n, f, root)) {
        if (f->no_memory) return clt_fail_memory(err, what, g->n_edges * sizeof *g->edges);
        return clt_fail(err, CLT_E_REQUEST, "%s: too large: its states lead to each other in too many ways", what);
    }
    find_classes(g);
    find_heights(g);
    if (g->states[g->rules[root].start].height >= CLT_MAX_STACK)
        return clt_fail(err, CLT_E_REQUEST, "%s: its rules lie more than %d deep within each other", what, CLT_MAX_STACK);
    return CLT_OK;
}

clt_status clt_grammar_compile(clt_nfa *n, uint32_t root, const char *what, clt_grammar **out, clt_err *err) {
    clt_facts facts = {0};
    clt_grammar *g = clt_calloc(1, sizeof *g);
    *out = NULL;
    clt_status status = g ? clt_nfa_check(n, what, err) : clt_fail_memory(err, what, sizeof *g);
    if (status == CLT_OK) status = clt_facts_find(&facts, n, what, err);
    if (status == CLT_OK) status = compile(g, n, &facts, root, what, err);
    clt_facts_free(&facts);
    clt_nfa_free(n);
    if (status == CLT_OK) *out = g;
    else clt_grammar_free(g);
    return status;
}
