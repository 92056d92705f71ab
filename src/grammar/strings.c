/* What the tokens of a vocabulary do inside a string whose characters are free: stay within it, with how many characters,
 * or close it, and with what behind the quote. Nearly all tokens are possible there, so this is worked out once, for all
 * grammars; a mask inside a string is then a copy and a walk over what closing tokens go on with. */
#include "grammar/impl.h"

enum { MAX_STATES = 64 };

/* The automaton of a string's inside as a table. */
typedef struct automaton {
    uint8_t next[MAX_STATES][256]; /* 0: refused */
    uint8_t kind[MAX_STATES][256];
    uint8_t body;                  /* state */
} automaton;

static bool read_automaton(automaton *a, int body) {
    clt_grammar *g = clt_calloc(1, sizeof *g);
    memset(a, 0, sizeof *a);
    bool ok = g && clt_prelude_states(g) && g->n_states <= MAX_STATES;
    for (size_t s = 0; ok && s < g->n_states; s++) {
        if (g->states[s].body == body) a->body = (uint8_t)s;
        for (uint32_t e = g->states[s].edge; e < g->states[s].edge + g->states[s].n_edges; e++) {
            for (unsigned b = g->edges[e].lo; b <= g->edges[e].hi; b++) {
                a->next[s][b] = (uint8_t)g->edges[e].to;
                a->kind[s][b] = g->edges[e].kind;
            }
        }
    }
    clt_grammar_free(g);
    return ok;
}

typedef enum fate { REFUSED, STAYS, LEAVES } fate;

/* Reads one token from inside the string. *at: behind the closing quote. */
static fate read_token(const automaton *a, const uint8_t *bytes, uint32_t len, uint8_t *count, uint32_t *at) {
    uint8_t state = a->body;
    *count = 0;
    for (*at = 0; *at < len;) {
        uint8_t byte = bytes[(*at)++], kind = a->kind[state][byte];
        state = a->next[state][byte];
        if (state == 0) return REFUSED;
        if (kind == CLT_EXIT) return LEAVES;
        *count = (uint8_t)(*count + (kind == CLT_COUNT));
    }
    return len ? STAYS : REFUSED;
}

typedef struct survey {
    uint32_t most;
    size_t n_leave;
} survey;

static survey survey_tokens(const clt_tokens *t, const automaton *a) {
    survey found = {0};
    uint8_t count;
    uint32_t at;
    for (int32_t id = 0; id < t->n; id++) {
        fate f = read_token(a, t->bytes + t->offsets[id], t->offsets[id + 1] - t->offsets[id], &count, &at);
        found.n_leave += f == LEAVES;
        if (f == STAYS && count > found.most) found.most = count;
    }
    return found;
}

static void fill(clt_string_table *s, const clt_tokens *t, const automaton *a, clt_trie_entry *leave) {
    uint8_t count;
    uint32_t at;
    size_t n_leave = 0;
    for (int32_t id = 0; id < t->n; id++) {
        const uint8_t *bytes = t->bytes + t->offsets[id];
        uint32_t len = t->offsets[id + 1] - t->offsets[id];
        fate f = read_token(a, bytes, len, &count, &at);
        if (f == LEAVES) leave[n_leave++] = (clt_trie_entry){.bytes = bytes + at, .len = len - at, .id = id, .count = count};
        if (f == STAYS) s->stay[count * t->words + (size_t)id / 64] |= UINT64_C(1) << id % 64;
    }
    for (size_t i = t->words; i < (s->most + 1) * t->words; i++) s->stay[i] |= s->stay[i - t->words];
}

bool clt_string_table_build(clt_tokens *t, int body) {
    clt_string_table *s = &t->tables[body];
    automaton *a = clt_alloc(sizeof *a);
    clt_trie_entry *leave = NULL;
    bool ok = a && read_automaton(a, body);
    if (ok) {
        survey found = survey_tokens(t, a);
        s->most = found.most;
        s->stay = clt_calloc((s->most + 1) * t->words, sizeof *s->stay);
        leave = clt_calloc(found.n_leave + 1, sizeof *leave);
        ok = s->stay && leave;
        if (ok) fill(s, t, a, leave);
        ok = ok && clt_trie_build(&s->leave, leave, found.n_leave, true);
        t->held += ok ? (s->most + 1) * t->words * sizeof *s->stay : 0;
    }
    clt_free(leave);
    clt_free(a);
    return ok;
}

void clt_string_table_free(clt_string_table *s) {
    clt_free(s->stay);
    clt_trie_free(&s->leave);
}

void clt_string_table_mask(const clt_string_table *s, size_t words, uint32_t left, uint64_t *bits) {
    const uint64_t *stay = s->stay + (left < s->most ? left : s->most) * words;
    for (size_t i = 0; i < words; i++) bits[i] |= stay[i];
}
