/* Masks: a position -> the tokens that may come next.
 *
 * A walk over the trie of all tokens, with the steps between sets remembered, gives every mask; where a grammar leaves few
 * ways it touches few nodes. Inside strings whose characters are free it would touch them all: there the table of the
 * vocabulary takes its place, and only what tokens say behind the closing quote is walked. Masks are kept by position,
 * counts that no token can tell apart counting as equal. */
#include "grammar/impl.h"

enum { MAX_MASK_BYTES = 16 << 20 };

static inline void allow(uint64_t *bits, int32_t id) {
    bits[id / 64] |= UINT64_C(1) << id % 64;
}

/* Allows the tokens that lead from `set` somewhere. At a string's end: if the counts of its item are met. */
static bool walk(clt_sets *s, const clt_trie *t, uint32_t set, const clt_item *string, uint64_t *bits) {
    uint32_t path[CLT_MAX_TOKEN_BYTES + 2]; /* rows */
    path[0] = clt_sets_row(s, set);
    for (uint32_t i = 0; i < t->n_nodes;) {
        const struct clt_trie_node *node = &t->nodes[i];
        if (i) {
            uint32_t next = s->rows[path[node->depth - 1] + s->g->class_of[node->byte]];
            if (next == CLT_NONE) next = clt_sets_walk(s, path[node->depth - 1], node->byte);
            if (next == 0) {
                i = node->skip;
                continue;
            }
            path[node->depth] = next;
            if (node->below && clt_sets_stays(s, next, &t->below[node->below])) {
                uint32_t end = t->nodes[node->skip].first; /* the whole subtree, this node too */
                for (uint32_t k = node->first; k < end; k++) allow(bits, t->ids[k]);
                i = node->skip;
                continue;
            }
        }
        for (uint32_t k = node->first; k < node[1].first; k++) {
            if (!string || (t->counts[k] >= string->need && t->counts[k] <= string->left)) allow(bits, t->ids[k]);
        }
        i++;
    }
    return !s->no_memory && !s->too_large;
}

static bool in_string(const clt_sets *s, const clt_item *i) {
    return s->g->states[i->state].body != CLT_BODY_NONE;
}

static bool add_string(clt_sets *s, const clt_tokens *t, clt_item i, uint64_t *bits) {
    const clt_string_table *table = &t->tables[s->g->states[i.state].body];
    clt_string_table_mask(table, t->words, i.left, bits);
    return walk(s, &table->leave, i.node, &i, bits);
}

/* Splits the items that take bytes into those inside free strings and the rest. */
static bool make(clt_sets *s, const clt_tokens *t, uint32_t set, uint64_t *bits) {
    uint32_t n, strings = 0;
    const clt_item *open = clt_sets_open(s, set, &n);
    for (uint32_t i = 0; i < n; i++) strings += in_string(s, &open[i]);
    if (strings == 0) return walk(s, &t->trie, set, NULL, bits);
    clt_item *apart = clt_calloc(n, sizeof *apart); /* the rest from the front, strings from the back */
    if (!apart) {
        s->no_memory = true;
        return false;
    }
    uint32_t rest = 0, first = n;
    for (uint32_t i = 0; i < n; i++) {
        if (in_string(s, &open[i])) apart[--first] = open[i];
        else apart[rest++] = open[i];
    }
    bool ok = rest == 0 || walk(s, &t->trie, clt_sets_private(s, apart, rest), NULL, bits);
    for (uint32_t i = first; ok && i < n; i++) ok = add_string(s, t, apart[i], bits);
    clt_free(apart);
    return ok;
}

/* ---- masks that are kept ---- */

static void forget_masks(clt_sets *s) {
    for (size_t i = 0; i < s->n_masks; i++) {
        clt_free(s->masks[i].bits);
        clt_free(s->masks[i].few);
    }
    for (size_t i = 0; i < s->n_sets; i++) s->sets[i].mask = CLT_NONE;
    s->n_masks = s->mask_bytes = 0;
}

/* As a list where that is shorter. Without memory nothing is kept, which is no failure. */
static void keep(clt_sets *s, uint32_t set, const uint64_t *bits, size_t words) {
    size_t n = 0, at = 0, bytes;
    for (size_t i = 0; i < words; i++) n += (size_t)__builtin_popcountll(bits[i]);
    bytes = 2 * n < words ? n * sizeof(int32_t) : words * sizeof *bits;
    if (s->mask_bytes + bytes > MAX_MASK_BYTES) forget_masks(s);
    if (!CLT_ROOM(s->masks, s->cap_masks, s->n_masks + 1)) return;
    clt_mask m = {.n = (uint32_t)n};
    if (2 * n < words) {
        m.few = clt_calloc(n + 1, sizeof *m.few);
        if (!m.few) return;
        for (size_t i = 0; i < words; i++)
            for (uint64_t left = bits[i]; left; left &= left - 1) m.few[at++] = (int32_t)(64 * i) + __builtin_ctzll(left);
    } else {
        m.bits = clt_alloc(bytes);
        if (!m.bits) return;
        memcpy(m.bits, bits, bytes);
    }
    s->mask_bytes += bytes;
    s->sets[set].mask = (uint32_t)s->n_masks;
    s->masks[s->n_masks++] = m;
}

bool clt_mask_write(clt_sets *s, const clt_tokens *t, uint32_t set, uint64_t *bits) {
    uint32_t near = clt_sets_near(s, set);
    if (s->no_memory || s->too_large) return false;
    uint32_t kept = s->sets[near].mask;
    if (kept != CLT_NONE && s->masks[kept].bits) {
        memcpy(bits, s->masks[kept].bits, t->words * sizeof *bits);
        return true;
    }
    memset(bits, 0, t->words * sizeof *bits);
    if (kept != CLT_NONE) {
        for (uint32_t i = 0; i < s->masks[kept].n; i++) allow(bits, s->masks[kept].few[i]);
        return true;
    }
    if (!make(s, t, near, bits)) return false;
    keep(s, near, bits, t->words);
    return true;
}
