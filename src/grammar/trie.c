/* A trie over byte strings in one array, in depth-first order: a walk goes forward and jumps over what it refuses, or over
 * what it takes whole: large subtrees know the characters that occur in them (`below`). */
#include <stdlib.h>
#include "grammar/impl.h"

static int compare_entries(const void *a, const void *b) {
    const clt_trie_entry *x = a, *y = b;
    uint32_t shorter = x->len < y->len ? x->len : y->len;
    int order = shorter ? memcmp(x->bytes, y->bytes, shorter) : 0;
    if (order) return order;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The first bytes as a number, which spares most comparisons their way to the text. */
static uint64_t key_of(const clt_trie_entry *e) {
    uint64_t key = 0;
    for (uint32_t i = 0; i < sizeof key; i++) key = key << 8 | (i < e->len ? e->bytes[i] : 0);
    return key;
}

static uint32_t common(const clt_trie_entry *a, const clt_trie_entry *b) {
    uint32_t n = 0;
    while (n < a->len && n < b->len && a->bytes[n] == b->bytes[n]) n++;
    return n;
}

/* Node 0 stands for the empty string. */
static size_t count_nodes(const clt_trie_entry *entries, size_t n) {
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) nodes += entries[i].len - (i ? common(&entries[i - 1], &entries[i]) : 0);
    return nodes;
}

static void fill(clt_trie *t, const clt_trie_entry *entries, size_t n) {
    uint32_t path[CLT_MAX_TOKEN_BYTES + 1] = {0}, depth = 0; /* nodes that are still open */
    uint32_t at = 0;
    t->nodes[at++] = (struct clt_trie_node){0};
    for (size_t i = 0; i < n; i++) {
        uint32_t shared = i ? common(&entries[i - 1], &entries[i]) : 0;
        for (; depth > shared; depth--) t->nodes[path[depth]].skip = at;
        while (depth < entries[i].len) {
            uint8_t byte = entries[i].bytes[depth];
            path[++depth] = at;
            t->nodes[at++] = (struct clt_trie_node){.first = (uint32_t)i, .byte = byte, .depth = (uint8_t)depth};
        }
        t->ids[i] = entries[i].id;
        if (t->counts) t->counts[i] = entries[i].count;
        if (depth > t->deepest) t->deepest = depth;
    }
    for (; depth > 0; depth--) t->nodes[path[depth]].skip = at;
    t->nodes[0].skip = at;
    t->nodes[at] = (struct clt_trie_node){.skip = at, .first = (uint32_t)n};
}

/* ---- sorting ---- */

typedef struct place {
    uint64_t key;
    uint32_t at;
} place;

/* By key, eight passes over its bytes. Returns the buffer that holds the result. */
static place *sort_places(place *from, place *to, size_t n) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t next[257] = {0};
        for (size_t i = 0; i < n; i++) next[(from[i].key >> shift & 255) + 1]++;
        for (size_t b = 0; b < 256; b++) next[b + 1] += next[b];
        for (size_t i = 0; i < n; i++) to[next[from[i].key >> shift & 255]++] = from[i];
        place *swapped = from;
        from = to;
        to = swapped;
    }
    return from;
}

static bool sort_entries(clt_trie_entry *entries, size_t n) {
    place *places = clt_calloc(2 * n + 1, sizeof *places);
    clt_trie_entry *sorted = clt_calloc(n + 1, sizeof *sorted);
    bool ok = places && sorted;
    for (size_t i = 0; ok && i < n; i++) {
        entries[i].key = key_of(&entries[i]);
        places[i] = (place){entries[i].key, (uint32_t)i};
    }
    const place *order = ok ? sort_places(places, places + n, n) : NULL;
    for (size_t i = 0; ok && i < n; i++) sorted[i] = entries[order[i].at];
    for (size_t i = 0, end; ok && i < n; i = end) { /* what the key does not tell apart */
        for (end = i + 1; end < n && sorted[end].key == sorted[i].key;) end++;
        if (end - i > 1) qsort(sorted + i, end - i, sizeof *sorted, compare_entries);
    }
    if (ok) memcpy(entries, sorted, n * sizeof *sorted);
    clt_free(places);
    clt_free(sorted);
    return ok;
}

/* ---- what is below ---- */

enum { LARGE = 8 }; /* nodes of a subtree that is worth a look before it is walked */

typedef struct clt_charset set;

static void add_byte(set *s, unsigned byte) {
    unsigned bit = clt_charset_bit(byte);
    s->bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

static unsigned bytes_after(unsigned lead) {
    return lead < 0xC2 || lead > 0xF4 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
}

/* Whether a byte may follow a lead as the first of its tail (Unicode 15, table 3-7). */
static bool fits_lead(unsigned lead, unsigned byte) {
    unsigned lo = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80, hi = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    return byte >= lo && byte <= hi;
}

/* Walks the trie and adds what each node is, as a character or a part of one, to all nodes above it. */
typedef struct survey {
    set at[CLT_MAX_TOKEN_BYTES + 1];      /* by depth: what has been met below the open node */
    uint32_t open[CLT_MAX_TOKEN_BYTES + 1];
    uint8_t left[CLT_MAX_TOKEN_BYTES + 1]; /* bytes that its character still lacks */
} survey;

static void close_node(clt_trie *t, survey *v, unsigned depth) {
    uint32_t node = v->open[depth];
    if (v->left[depth] == 0 && t->nodes[node].skip - node > LARGE) {
        t->nodes[node].below = (uint32_t)++t->n_below;
        if (t->below) t->below[t->n_below] = v->at[depth];
    }
    if (depth == 0) return;
    for (int k = 0; k < 3; k++) v->at[depth - 1].bits[k] |= v->at[depth].bits[k];
}

/* Run twice: to count, then, with t->below at hand, to fill. */
static void find_below(clt_trie *t, survey *v) {
    unsigned depth = 0;
    t->n_below = 0;
    v->at[0] = (set){{0}};
    v->open[0] = v->left[0] = 0;
    for (uint32_t i = 1; i < t->n_nodes; i++) {
        const struct clt_trie_node *n = &t->nodes[i];
        for (; depth >= n->depth; depth--) close_node(t, v, depth);
        bool tail = v->left[depth] > 0;
        bool begins_tail = tail && v->left[depth] == bytes_after(t->nodes[v->open[depth]].byte);
        bool good = !tail || (begins_tail ? fits_lead(t->nodes[v->open[depth]].byte, n->byte) : n->byte >> 6 == 2);
        if (!tail || !good) add_byte(&v->at[depth], good ? n->byte : 0x80);
        depth = n->depth;
        v->at[depth] = (set){{0}};
        v->open[depth] = i;
        v->left[depth] = (uint8_t)(tail ? v->left[depth - 1] - 1u : bytes_after(n->byte));
    }
    for (; depth > 0; depth--) close_node(t, v, depth);
    close_node(t, v, 0);
}

bool clt_trie_survey(clt_trie *t) {
    survey *v = clt_alloc(sizeof *v);
    if (v) find_below(t, v);
    t->below = v ? clt_calloc(t->n_below + 1, sizeof *t->below) : NULL;
    if (t->below) find_below(t, v);
    clt_free(v);
    return t->below != NULL;
}

bool clt_trie_build(clt_trie *t, clt_trie_entry *entries, size_t n, bool counts) {
    *t = (clt_trie){0};
    if (!sort_entries(entries, n)) return false;
    t->n_nodes = count_nodes(entries, n);
    t->n_ids = n;
    if (t->n_nodes >= UINT32_MAX) return false;
    t->nodes = clt_calloc(t->n_nodes + 1, sizeof *t->nodes);
    t->ids = clt_calloc(n + 1, sizeof *t->ids);
    t->counts = counts ? clt_calloc(n + 1, 1) : NULL;
    bool ok = t->nodes && t->ids && (t->counts || !counts);
    if (ok) fill(t, entries, n);
    else clt_trie_free(t);
    return ok;
}

void clt_trie_free(clt_trie *t) {
    clt_free(t->nodes);
    clt_free(t->ids);
    clt_free(t->counts);
    clt_free(t->below);
    *t = (clt_trie){0};
}
