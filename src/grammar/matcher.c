/* The matcher: follows one reply through a grammar. Its state is the number of a set; the numbers of earlier steps are kept,
 * so going back costs nothing. When the sets of a long reply take too much memory, all but the last steps are dropped. */
#include "grammar/impl.h"

enum { MAX_BYTES = 48 << 20, MAX_FORCED = 4096 };

struct clt_matcher {
    clt_sets sets;
    const clt_tokens *tokens;
    uint32_t *steps; /* steps[0] = before the first of those that are known */
    size_t n_steps, cap_steps;
};

clt_status clt_matcher_check(const clt_matcher *m, clt_err *err) {
    if (m->sets.no_memory) return clt_fail_memory(err, "grammar", clt_sets_bytes(&m->sets));
    if (m->sets.too_large)
        return clt_fail(err, CLT_E_REQUEST, "grammar: more than %d ways to continue at one place", CLT_MAX_ITEMS);
    return CLT_OK;
}

clt_status clt_matcher_create(const clt_grammar *g, const clt_tokens *t, clt_matcher **out, clt_err *err) {
    clt_matcher *m = clt_calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return clt_fail_memory(err, "grammar", sizeof *m);
    m->tokens = t;
    bool ok = clt_sets_init(&m->sets, g, t->trie.deepest) && CLT_ROOM(m->steps, m->cap_steps, 1);
    if (!ok) {
        clt_status status = m->sets.too_large ? clt_matcher_check(m, err) : clt_fail_memory(err, "grammar", sizeof *m);
        clt_matcher_free(m);
        return status;
    }
    clt_matcher_reset(m);
    *out = m;
    return CLT_OK;
}

void clt_matcher_free(clt_matcher *m) {
    if (!m) return;
    clt_sets_free(&m->sets);
    clt_free(m->steps);
    clt_free(m);
}

void clt_matcher_reset(clt_matcher *m) {
    m->steps[0] = clt_sets_start(&m->sets);
    m->n_steps = 1;
}

size_t clt_matcher_bytes(const clt_matcher *m) {
    return clt_sets_bytes(&m->sets) + m->cap_steps * sizeof *m->steps;
}

static uint32_t now(const clt_matcher *m) {
    return m->steps[m->n_steps - 1];
}

/* Keeps the last steps alone, so that the sets of the others can go. */
static void shrink(clt_matcher *m) {
    size_t kept = m->n_steps <= CLT_MATCHER_STEPS ? m->n_steps : CLT_MATCHER_STEPS + 1;
    uint32_t *steps = m->steps + (m->n_steps - kept);
    if (!clt_sets_shrink(&m->sets, steps, kept)) return; /* it stays as large as it is */
    memmove(m->steps, steps, kept * sizeof *steps);
    m->n_steps = kept;
}

bool clt_matcher_accept_bytes(clt_matcher *m, const char *bytes, size_t n) {
    if (clt_sets_bytes(&m->sets) > MAX_BYTES) shrink(m);
    uint32_t set = now(m);
    for (size_t i = 0; i < n && set != CLT_SET_DEAD; i++) set = clt_sets_step(&m->sets, set, (uint8_t)bytes[i]);
    if (set == CLT_SET_DEAD) return false;
    if (!CLT_ROOM(m->steps, m->cap_steps, m->n_steps + 1)) {
        m->sets.no_memory = true;
        return false;
    }
    m->steps[m->n_steps++] = set;
    return true;
}

bool clt_matcher_accept(clt_matcher *m, int32_t id) {
    const clt_tokens *t = m->tokens;
    if (id < 0 || id >= t->n || t->offsets[id] == t->offsets[id + 1]) return false;
    return clt_matcher_accept_bytes(m, (const char *)t->bytes + t->offsets[id], t->offsets[id + 1] - t->offsets[id]);
}

bool clt_matcher_rollback(clt_matcher *m, size_t n) {
    if (n >= m->n_steps) return false;
    m->n_steps -= n;
    return true;
}

clt_status clt_matcher_copy(const clt_matcher *m, clt_matcher **out, clt_err *err) {
    clt_status status = clt_matcher_create(m->sets.g, m->tokens, out, err);
    if (status != CLT_OK) return status;
    size_t kept = m->n_steps <= CLT_MATCHER_STEPS ? m->n_steps : CLT_MATCHER_STEPS + 1;
    clt_matcher *copy = *out;
    bool ok = CLT_ROOM(copy->steps, copy->cap_steps, kept);
    if (ok) {
        memcpy(copy->steps, m->steps + (m->n_steps - kept), kept * sizeof *m->steps);
        copy->n_steps = kept;
        ok = clt_sets_copy(&m->sets, &copy->sets, copy->steps, kept);
    }
    if (ok) return CLT_OK;
    clt_matcher_free(copy);
    *out = NULL;
    return clt_fail_memory(err, "grammar", clt_sets_bytes(&m->sets));
}

clt_status clt_matcher_mask(clt_matcher *m, uint64_t *bits, clt_err *err) {
    if (clt_sets_bytes(&m->sets) > MAX_BYTES) shrink(m);
    return clt_mask_write(&m->sets, m->tokens, now(m), bits) ? CLT_OK : clt_matcher_check(m, err);
}

bool clt_matcher_may_end(const clt_matcher *m) {
    return clt_sets_ends(&m->sets, now(m));
}

bool clt_matcher_must_end(clt_matcher *m) {
    return now(m) == CLT_SET_END;
}

/* The one byte that can follow, or -1. */
static int only_byte(clt_sets *s, uint32_t set) {
    uint32_t n;
    int only = -1;
    const clt_item *open = clt_sets_open(s, set, &n);
    if (clt_sets_ends(s, set)) return -1;
    for (uint32_t k = 0; k < n; k++) {
        const clt_state *st = &s->g->states[open[k].state];
        for (uint32_t e = st->edge; e < st->edge + st->n_edges; e++) {
            const clt_edge *edge = &s->g->edges[e];
            if (edge->lo != edge->hi || (only >= 0 && only != edge->lo)) return -1;
            only = edge->lo;
        }
    }
    return only;
}

void clt_matcher_forced(clt_matcher *m, clt_buf *out) {
    uint32_t set = now(m);
    for (size_t i = 0; i < MAX_FORCED; i++) {
        int byte = only_byte(&m->sets, set);
        if (byte < 0) return;
        set = clt_sets_step(&m->sets, set, (uint8_t)byte);
        if (set == CLT_SET_DEAD) return;
        clt_buf_putc(out, (char)(uint8_t)byte);
    }
}
