/* An index of token pairs, built as tokens are added: for each pair, the places behind its occurrences, newest first.
 *
 * A lookup walks the newest places of the last pair and counts how far back they agree; a bounded number of them, so that a
 * step costs microseconds however often a pair occurs. */
#include "engine/lookup.h"
#include "base/mem.h"

enum { CANDIDATES = 64, TABLE_FACTOR = 2 };

struct clt_lookup {
    int32_t *ids;      /* [capacity] */
    uint32_t *before;  /* [capacity]: the earlier place of the same slot, plus one; 0: none */
    uint32_t *newest;  /* [slots]: likewise */
    size_t n, capacity, mask;
};

static size_t slot_of(const clt_lookup *l, int32_t a, int32_t b) {
    uint64_t pair = (uint64_t)(uint32_t)a << 32 | (uint32_t)b;
    return (size_t)((pair * UINT64_C(0x9E3779B97F4A7C15)) >> 24) & l->mask;
}

clt_status clt_lookup_create(size_t capacity, clt_lookup **out, clt_err *err) {
    clt_lookup *l = clt_calloc(1, sizeof *l);
    size_t slots = 256;
    *out = NULL;
    if (!l) return clt_fail_memory(err, "the index of tokens", sizeof *l);
    if (capacity > UINT32_MAX / TABLE_FACTOR) capacity = UINT32_MAX / TABLE_FACTOR;
    while (slots < TABLE_FACTOR * capacity) slots *= 2;
    l->capacity = capacity, l->mask = slots - 1;
    l->ids = clt_calloc(capacity + 1, sizeof *l->ids);
    l->before = clt_calloc(capacity + 1, sizeof *l->before);
    l->newest = clt_calloc(slots, sizeof *l->newest);
    if (!l->ids || !l->before || !l->newest) {
        clt_lookup_free(l);
        return clt_fail_memory(err, "the index of tokens", (8 * capacity + 4 * slots));
    }
    *out = l;
    return CLT_OK;
}

void clt_lookup_free(clt_lookup *l) {
    if (!l) return;
    clt_free(l->ids), clt_free(l->before), clt_free(l->newest);
    clt_free(l);
}

void clt_lookup_add(clt_lookup *l, int32_t id) {
    if (l->n == l->capacity) return;
    /* The pair in front of the new token now has something that follows it. */
    if (l->n >= 2) {
        size_t slot = slot_of(l, l->ids[l->n - 2], l->ids[l->n - 1]);
        l->before[l->n] = l->newest[slot];
        l->newest[slot] = (uint32_t)l->n + 1;
    }
    l->ids[l->n++] = id;
}

size_t clt_lookup_length(const clt_lookup *l) { return l->n; }

static int agreement(const clt_lookup *l, size_t place, const int32_t *ids, size_t n) {
    int length = 0;
    while (length < CLT_LOOKUP_MOST && (size_t)length < place && (size_t)length < n &&
           l->ids[place - 1 - (size_t)length] == ids[n - 1 - (size_t)length])
        length++;
    return length;
}

clt_match clt_lookup_find(const clt_lookup *l, const int32_t *ids, size_t n) {
    clt_match best = {0, 0};
    if (n < CLT_LOOKUP_LEAST) return best;
    uint32_t place = l->newest[slot_of(l, ids[n - 2], ids[n - 1])];
    for (int i = 0; place && i < CANDIDATES && best.length < CLT_LOOKUP_MOST; i++, place = l->before[place - 1]) {
        int length = agreement(l, place - 1, ids, n);
        if (length >= CLT_LOOKUP_LEAST && length > best.length) best = (clt_match){place - 1, length};
    }
    return best;
}

size_t clt_lookup_copy(const clt_lookup *l, size_t next, int32_t *out, size_t k) {
    size_t there = next < l->n ? l->n - next : 0;
    for (size_t i = 0; i < k && there; i++) out[i] = i < there ? l->ids[next + i] : out[i - there];
    return there ? k : 0;
}
