/* What holds for the rules of a grammar before they are compiled: which may take no byte at all, which can ever end, and in
 * what order they begin with each other. Left recursion, for which there is no such order, is refused by name. Everything
 * takes time in proportion to the grammar. */
#include "grammar/impl.h"

typedef struct search {
    const clt_nfa *n;
    uint32_t *owner;      /* [n_states]: the rule from whose start the state was reached; CLT_NONE: not reached */
    uint32_t *queue;      /* [n_states] */
    size_t done, queued;
    uint32_t *waiting;    /* [n_rules]: first edge that waits for the rule to get through; CLT_NONE */
    uint32_t *next_edge;  /* [n_edges]: the next that waits for the same */
    uint32_t *edge_owner; /* [n_edges] */
    bool bytes;           /* may edges of bytes be passed? */
} search;

static bool search_init(search *s, const clt_nfa *n) {
    *s = (search){.n = n};
    s->owner = clt_calloc(n->n_states + 1, sizeof *s->owner);
    s->queue = clt_calloc(n->n_states + 1, sizeof *s->queue);
    s->waiting = clt_calloc(n->n_rules + 1, sizeof *s->waiting);
    s->next_edge = clt_calloc(n->n_edges + 1, sizeof *s->next_edge);
    s->edge_owner = clt_calloc(n->n_edges + 1, sizeof *s->edge_owner);
    return s->owner && s->queue && s->waiting && s->next_edge && s->edge_owner;
}

static void search_free(search *s) {
    clt_free(s->owner);
    clt_free(s->queue);
    clt_free(s->waiting);
    clt_free(s->next_edge);
    clt_free(s->edge_owner);
}

static void reach(search *s, uint32_t state, uint32_t owner) {
    if (s->owner[state] != CLT_NONE) return;
    s->owner[state] = owner;
    s->queue[s->queued++] = state;
}

/* A call gets through once its rule does; a repetition, once its body does, or at once if it may be left out. */
static void pass_call(search *s, uint32_t e, uint32_t owner, const bool *through) {
    const clt_nfa *n = s->n;
    const clt_call *c = &n->calls[n->edges[e].call];
    uint32_t body = n->rules[c->rule].body, rule = body == CLT_NONE ? c->rule : body;
    if (through[rule] || (body != CLT_NONE && c->need == 0)) {
        reach(s, n->edges[e].to, owner);
        return;
    }
    s->edge_owner[e] = owner;
    s->next_edge[e] = s->waiting[rule];
    s->waiting[rule] = e;
}

/* Which rules lead from start to end, with or without bytes. Leaves in `owner` what was reached. */
static void find_through(search *s, bool bytes, bool *through) {
    const clt_nfa *n = s->n;
    s->done = s->queued = 0;
    s->bytes = bytes;
    memset(s->owner, 0xFF, n->n_states * sizeof *s->owner);
    memset(s->waiting, 0xFF, n->n_rules * sizeof *s->waiting);
    for (uint32_t r = 0; r < n->n_rules; r++) {
        if (n->rules[r].fixed != CLT_NONE) through[r] = bytes;
        else if (n->rules[r].body == CLT_NONE) reach(s, n->rules[r].start, r);
    }
    while (s->done < s->queued) {
        uint32_t at = s->queue[s->done++], owner = s->owner[at];
        for (uint32_t e = n->first[at]; e != CLT_NONE; e = n->edges[e].next) {
            const clt_nfa_edge *edge = &n->edges[e];
            if (edge->type == CLT_NFA_CALL) pass_call(s, e, owner, through);
            else if (edge->type == CLT_NFA_EMPTY || bytes) reach(s, edge->to, owner);
        }
        if (at != n->rules[owner].end || through[owner]) continue;
        through[owner] = true;
        for (uint32_t e = s->waiting[owner]; e != CLT_NONE; e = s->next_edge[e]) reach(s, n->edges[e].to, s->edge_owner[e]);
    }
}

bool clt_call_nullable(const clt_nfa *n, const clt_facts *f, const clt_call *c) {
    uint32_t body = n->rules[c->rule].body;
    return body == CLT_NONE ? f->nullable[c->rule] : c->need == 0 || f->nullable[body];
}

bool clt_call_usable(const clt_nfa *n, const clt_facts *f, const clt_call *c) {
    uint32_t body = n->rules[c->rule].body;
    return body == CLT_NONE ? f->usable[c->rule] : c->need == 0 || f->usable[body];
}

/* ---- states that lead to the end of their rule ---- */

static bool edge_usable(const clt_nfa *n, const clt_facts *f, const clt_nfa_edge *e) {
    return e->type != CLT_NFA_CALL || clt_call_usable(n, f, &n->calls[e->call]);
}

/* Walks backwards from the ends of all rules. `from` lists, by the state they lead to, where edges come from. */
static void walk_back(const search *s, clt_facts *f, const uint32_t *begin, const uint32_t *from) {
    size_t done = 0, queued = 0;
    for (size_t r = 0; r < s->n->n_rules; r++) {
        uint32_t end = s->n->rules[r].end;
        if (end == CLT_NONE || f->alive[end]) continue;
        f->alive[end] = true;
        s->queue[queued++] = end;
    }
    while (done < queued) {
        uint32_t at = s->queue[done++];
        for (uint32_t i = begin[at]; i < begin[at + 1]; i++) {
            if (f->alive[from[i]]) continue;
            f->alive[from[i]] = true;
            s->queue[queued++] = from[i];
        }
    }
}

static bool find_alive(const search *s, clt_facts *f) {
    const clt_nfa *n = s->n;
    uint32_t *begin = clt_calloc(n->n_states + 2, sizeof *begin), *from = clt_calloc(n->n_edges + 1, sizeof *from);
    if (begin && from) {
        for (size_t i = 0; i < n->n_edges; i++) begin[n->edges[i].to + 2] += edge_usable(n, f, &n->edges[i]);
        for (size_t i = 2; i < n->n_states + 2; i++) begin[i] += begin[i - 1];
        for (uint32_t at = 0; at < n->n_states; at++) {
            for (uint32_t e = n->first[at]; e != CLT_NONE; e = n->edges[e].next)
                if (edge_usable(n, f, &n->edges[e])) from[begin[n->edges[e].to + 1]++] = at;
        }
        walk_back(s, f, begin, from);
    }
    bool ok = begin && from;
    clt_free(begin);
    clt_free(from);
    return ok;
}

/* ---- the order in which rules begin with each other ---- */

typedef struct order {
    const clt_nfa *n;
    const clt_facts *f;
    const uint32_t *owner;       /* of states that are reached without a byte */
    uint32_t *begin, *to;        /* rules that a rule begins with: to[begin[r] .. begin[r + 1]) */
    uint32_t *before, *queue;    /* [n_rules]: rules that begin with it and are not ranked yet */
    const char *what;
} order;

/* Calls fn-like code twice: first counts, then fills. */
static void list_beginnings(order *o, bool fill) {
    const clt_nfa *n = o->n;
    for (uint32_t at = 0; at < n->n_states; at++) {
        if (o->owner[at] == CLT_NONE) continue;
        for (uint32_t e = n->first[at]; e != CLT_NONE; e = n->edges[e].next) {
            if (n->edges[e].type != CLT_NFA_CALL || !edge_usable(n, o->f, &n->edges[e])) continue;
            if (fill) o->to[o->begin[o->owner[at] + 1]++] = n->calls[n->edges[e].call].rule;
            else o->begin[o->owner[at] + 2]++;
        }
    }
    for (uint32_t r = 0; r < n->n_rules; r++) {
        if (n->rules[r].body == CLT_NONE) continue;
        if (fill) o->to[o->begin[r + 1]++] = n->rules[r].body;
        else o->begin[r + 2]++;
    }
}

/* Rules are left, each begun by another that is left: going back from one to the next ends in a circle. */
static clt_status refuse_recursion(const order *o, clt_err *err) {
    const clt_nfa *n = o->n;
    uint32_t at = 0, *begun_by = o->queue;
    for (uint32_t r = 0; r < n->n_rules; r++) {
        for (uint32_t i = o->begin[r]; i < o->begin[r + 1] && o->before[r]; i++) begun_by[o->to[i]] = r;
    }
    while (o->before[at] == 0) at++;
    for (size_t step = 0; step < 2 * n->n_rules && !(step > n->n_rules && n->rules[at].name); step++) at = begun_by[at];
    const char *name = n->rules[at].name ? n->rules[at].name : "(a repetition)";
    clt_fail(err, CLT_E_REQUEST, "%s: rule \"%s\" begins with itself (left recursion)", o->what, name);
    return clt_hint(err, "write a repetition, or let the rule call itself at its end");
}

static clt_status rank_rules(order *o, clt_facts *f, clt_err *err) {
    size_t done = 0, queued = 0, n = o->n->n_rules;
    for (size_t i = 0; i < o->begin[n]; i++) o->before[o->to[i]]++;
    for (uint32_t r = 0; r < n; r++)
        if (o->before[r] == 0) o->queue[queued++] = r;
    while (done < queued) {
        uint32_t r = o->queue[done];
        f->rank[r] = (uint32_t)done++;
        for (uint32_t i = o->begin[r]; i < o->begin[r + 1]; i++)
            if (--o->before[o->to[i]] == 0) o->queue[queued++] = o->to[i];
    }
    return done == n ? CLT_OK : refuse_recursion(o, err);
}

static clt_status find_order(const search *s, clt_facts *f, const char *what, clt_err *err) {
    const clt_nfa *n = s->n;
    order o = {.n = n, .f = f, .owner = s->owner, .what = what};
    o.begin = clt_calloc(n->n_rules + 3, sizeof *o.begin);
    o.to = clt_calloc(n->n_edges + n->n_rules + 1, sizeof *o.to);
    o.before = clt_calloc(n->n_rules + 1, sizeof *o.before);
    o.queue = clt_calloc(n->n_rules + 1, sizeof *o.queue);
    clt_status status = CLT_OK;
    if (!o.begin || !o.to || !o.before || !o.queue) {
        status = clt_fail_memory(err, what, n->n_edges * sizeof *o.to);
    } else {
        list_beginnings(&o, false);
        for (size_t i = 2; i < n->n_rules + 2; i++) o.begin[i] += o.begin[i - 1];
        list_beginnings(&o, true);
        status = rank_rules(&o, f, err);
    }
    clt_free(o.begin);
    clt_free(o.to);
    clt_free(o.before);
    clt_free(o.queue);
    return status;
}

/* ---- all of it ---- */

clt_status clt_facts_find(clt_facts *f, const clt_nfa *n, const char *what, clt_err *err) {
    search s;
    clt_status status = CLT_OK;
    *f = (clt_facts){0};
    f->nullable = clt_calloc(n->n_rules + 1, sizeof *f->nullable);
    f->usable = clt_calloc(n->n_rules + 1, sizeof *f->usable);
    f->rank = clt_calloc(n->n_rules + 1, sizeof *f->rank);
    f->alive = clt_calloc(n->n_states + 1, sizeof *f->alive);
    f->stamp = clt_calloc(n->n_states + 1, sizeof *f->stamp);
    bool ok = search_init(&s, n) && f->nullable && f->usable && f->rank && f->alive && f->stamp;
    if (ok) {
        find_through(&s, true, f->usable);
        ok = find_alive(&s, f);
    }
    if (ok) {
        find_through(&s, false, f->nullable);
        status = find_order(&s, f, what, err);
    }
    search_free(&s);
    return ok ? status : clt_fail_memory(err, what, n->n_states * sizeof *s.owner);
}

void clt_facts_free(clt_facts *f) {
    clt_free(f->nullable);
    clt_free(f->usable);
    clt_free(f->rank);
    clt_free(f->alive);
    clt_free(f->stamp);
    *f = (clt_facts){0};
}
