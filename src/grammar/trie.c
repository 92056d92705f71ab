/* A trie over byte strings in one array, in depth-first order: a walk goes forward and jumps over what it refuses. */
#include <stdlib.h>
#include "grammar/impl.h"

static int compare_entries(const void *a, const void *b) {
    const clt_trie_entry *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
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

bool clt_trie_build(clt_trie *t, clt_trie_entry *entries, size_t n, bool counts) {
    *t = (clt_trie){0};
    for (size_t i = 0; i < n; i++) entries[i].key = key_of(&entries[i]);
    if (n > 1) qsort(entries, n, sizeof *entries, compare_entries);
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
    *t = (clt_trie){0};
}
