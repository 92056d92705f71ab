/* Rules while they are written: states, edges and calls of nondeterministic automata over bytes. Front ends write them;
 * compile.c reads them. Failures stick, so that a writer checks once at its end. */
#include "grammar/impl.h"

bool clt_nfa_init(clt_nfa *n) {
    *n = (clt_nfa){0};
    return clt_prelude_rules(n);
}

void clt_nfa_free(clt_nfa *n) {
    for (size_t i = 0; i < n->n_rules; i++) clt_free(n->rules[i].name);
    clt_free(n->first);
    clt_free(n->edges);
    clt_free(n->calls);
    clt_free(n->rules);
    *n = (clt_nfa){0};
}

bool clt_nfa_ok(const clt_nfa *n) {
    return !n->no_memory && !n->too_large;
}

clt_status clt_nfa_check(const clt_nfa *n, const char *what, clt_err *err) {
    if (n->no_memory) return clt_fail_memory(err, what, n->n_edges * sizeof *n->edges);
    if (n->too_large)
        return clt_fail(err, CLT_E_REQUEST, "%s: too large: it needs more than %d states", what, CLT_MAX_NFA_STATES);
    return CLT_OK;
}

uint32_t clt_nfa_state(clt_nfa *n) {
    if (!clt_nfa_ok(n)) return 0;
    if (n->n_states == CLT_MAX_NFA_STATES) n->too_large = true;
    else if (!CLT_ROOM(n->first, n->cap_states, n->n_states + 1)) n->no_memory = true;
    if (!clt_nfa_ok(n)) return 0;
    n->first[n->n_states] = CLT_NONE;
    return (uint32_t)n->n_states++;
}

static void add_edge(clt_nfa *n, uint32_t from, clt_nfa_edge e) {
    if (!clt_nfa_ok(n)) return;
    if (n->n_edges >= 4 * (size_t)CLT_MAX_NFA_STATES) n->too_large = true;
    else if (!CLT_ROOM(n->edges, n->cap_edges, n->n_edges + 1)) n->no_memory = true;
    if (!clt_nfa_ok(n)) return;
    e.next = n->first[from];
    n->first[from] = (uint32_t)n->n_edges;
    n->edges[n->n_edges++] = e;
}

void clt_nfa_empty(clt_nfa *n, uint32_t from, uint32_t to) {
    add_edge(n, from, (clt_nfa_edge){.to = to, .type = CLT_NFA_EMPTY});
}

void clt_nfa_bytes(clt_nfa *n, uint32_t from, unsigned lo, unsigned hi, clt_edge_kind kind, uint32_t to) {
    add_edge(n, from, (clt_nfa_edge){.to = to, .type = CLT_NFA_BYTES, .lo = (uint8_t)lo, .hi = (uint8_t)hi,
                                     .kind = (uint8_t)kind});
}

void clt_nfa_call(clt_nfa *n, uint32_t from, clt_call call, uint32_t to) {
    if (clt_nfa_ok(n) && !CLT_ROOM(n->calls, n->cap_calls, n->n_calls + 1)) n->no_memory = true;
    if (!clt_nfa_ok(n)) return;
    n->calls[n->n_calls] = call;
    add_edge(n, from, (clt_nfa_edge){.to = to, .type = CLT_NFA_CALL, .call = (uint32_t)n->n_calls++});
}

void clt_nfa_literal(clt_nfa *n, uint32_t from, const char *s, size_t len, uint32_t to) {
    for (size_t i = 0; i < len; i++) {
        uint32_t next = i + 1 == len ? to : clt_nfa_state(n);
        clt_nfa_bytes(n, from, (uint8_t)s[i], (uint8_t)s[i], CLT_PLAIN, next);
        from = next;
    }
    if (len == 0) clt_nfa_empty(n, from, to);
}

uint32_t clt_nfa_rule_new(clt_nfa *n, const char *name, size_t len) {
    if (clt_nfa_ok(n) && n->n_rules == CLT_MAX_NFA_STATES) n->too_large = true;
    if (clt_nfa_ok(n) && !CLT_ROOM(n->rules, n->cap_rules, n->n_rules + 1)) n->no_memory = true;
    if (!clt_nfa_ok(n)) return 0;
    char *copy = name ? clt_strndup(name, len) : NULL;
    if (name && !copy) n->no_memory = true;
    n->rules[n->n_rules] =
        (clt_nfa_rule){.start = CLT_NONE, .end = CLT_NONE, .body = CLT_NONE, .fixed = CLT_NONE, .name = copy};
    return (uint32_t)n->n_rules++;
}

void clt_nfa_define(clt_nfa *n, uint32_t rule, clt_part part) {
    if (!clt_nfa_ok(n)) return;
    n->rules[rule].start = part.start;
    n->rules[rule].end = part.end;
}

/* ---- repetition ---- */

/* A copy of the states [made, until), which know nothing of others. */
static clt_part copy_part(clt_nfa *n, clt_part part, size_t made, size_t until) {
    uint32_t shift = (uint32_t)(n->n_states - made);
    for (size_t i = made; i < until && clt_nfa_ok(n); i++) clt_nfa_state(n);
    for (size_t i = made; i < until && clt_nfa_ok(n); i++) {
        for (uint32_t e = n->first[i]; e != CLT_NONE && clt_nfa_ok(n); e = n->edges[e].next) {
            clt_nfa_edge copy = n->edges[e];
            copy.to += shift;
            add_edge(n, (uint32_t)i + shift, copy);
        }
    }
    return (clt_part){part.start + shift, part.end + shift};
}

clt_part clt_nfa_repeat_copies(clt_nfa *n, clt_part part, size_t made, uint32_t least, uint32_t most) {
    size_t until = n->n_states, size = until - made;
    uint32_t copies = most == CLT_MANY ? (least ? least : 1) : most;
    clt_part whole = {clt_nfa_state(n), clt_nfa_state(n)};
    uint32_t at = whole.start;
    if (copies > CLT_MAX_NFA_STATES / (size + 1)) n->too_large = true;
    for (uint32_t i = 0; i < copies && clt_nfa_ok(n); i++) {
        clt_part next = i + 1 == copies ? part : copy_part(n, part, made, until); /* the original last: copies are clean */
        if (i >= least) clt_nfa_empty(n, at, whole.end);
        clt_nfa_empty(n, at, next.start);
        at = next.end;
        if (most == CLT_MANY && i + 1 == copies) clt_nfa_empty(n, next.end, next.start);
    }
    clt_nfa_empty(n, at, whole.end);
    return whole;
}

clt_part clt_nfa_repeat(clt_nfa *n, clt_part part, size_t made, uint32_t least, uint32_t most) {
    if (!clt_nfa_ok(n)) return part;
    size_t size = n->n_states - made, copies = most == CLT_MANY ? (least ? least : 1) : most;
    if (copies <= 1 || (copies <= CLT_MAX_COPIES && copies <= CLT_MAX_COPIED / (size + 1)))
        return clt_nfa_repeat_copies(n, part, made, least, most);
    uint32_t body = clt_nfa_rule_new(n, NULL, 0), rule = clt_nfa_rule_new(n, NULL, 0);
    clt_nfa_define(n, body, part);
    clt_part whole = {clt_nfa_state(n), clt_nfa_state(n)};
    if (clt_nfa_ok(n)) n->rules[rule].body = body;
    clt_nfa_call(n, whole.start, (clt_call){rule, least, most}, whole.end);
    return whole;
}
