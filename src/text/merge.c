/* The merge loop that both tokenizers share: a list of symbols in, the same list merged out.
 *
 * A heap holds every pair that can merge, ordered by rank and then from left to right. A pair that has changed since it was
 * pushed is recognised by its rank, which the symbol carries: stale entries are dropped when they surface. Every merge
 * removes one symbol and pushes at most two pairs, so n symbols take O(n log n). */
#include "text/vocab_impl.h"

static bool grow(void **array, size_t *cap, size_t need, size_t item) {
    if (need <= *cap) return true;
    size_t want = need + need / 2 + 64;
    if (want > SIZE_MAX / item) return false;
    void *bigger = clt_realloc(*array, want * item);
    if (!bigger) return false;
    *array = bigger;
    *cap = want;
    return true;
}

bool clt_merge_add(clt_merge_work *w, uint32_t start, uint32_t len, int32_t id) {
    if (w->n >= INT32_MAX) return false;
    void *symbols = w->symbols;
    if (!grow(&symbols, &w->cap, w->n + 1, sizeof *w->symbols)) return false;
    w->symbols = symbols;
    w->symbols[w->n] = (clt_symbol){start, len, (int32_t)w->n - 1, (int32_t)w->n + 1, id, -1, CLT_NO_RANK};
    w->n++;
    return true;
}

void clt_merge_free(clt_merge_work *w) {
    clt_free(w->symbols);
    clt_free(w->heap);
    *w = (clt_merge_work){0};
}

/* Four children per node: half the levels of a binary heap, and children share a cache line. */
static void sift_down(uint64_t *heap, size_t n, size_t at, uint64_t key) {
    for (;;) {
        size_t child = 4 * at + 1;
        if (child >= n) break;
        size_t end = child + 4 < n ? child + 4 : n, least = child;
        for (size_t i = child + 1; i < end; i++) {
            if (heap[i] < heap[least]) least = i;
        }
        if (heap[least] >= key) break;
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = key;
}

static void push(clt_merge_work *w, uint64_t key) {
    size_t at = w->n_heap++;
    while (at && w->heap[(at - 1) / 4] > key) {
        w->heap[at] = w->heap[(at - 1) / 4];
        at = (at - 1) / 4;
    }
    w->heap[at] = key;
}

static uint64_t pop(clt_merge_work *w) {
    uint64_t least = w->heap[0];
    w->n_heap--;
    if (w->n_heap) sift_down(w->heap, w->n_heap, 0, w->heap[w->n_heap]);
    return least;
}

static uint64_t key_of(const clt_symbol *s, int32_t at) {
    return (uint64_t)s->rank << 32 | (uint32_t)at;
}

/* Looks up what symbol `at` makes with its right neighbour. */
static void refresh(const clt_vocab *v, clt_merge_work *w, const char *text, int32_t at) {
    clt_symbol *s = &w->symbols[at];
    s->rank = CLT_NO_RANK;
    if (s->next < 0) return;
    if (v->algorithm == CLT_VOCAB_BPE) clt_bpe_pair(v, s, &w->symbols[s->next]);
    else clt_spm_pair(v, text, s, &w->symbols[s->next]);
}

static void refresh_and_push(const clt_vocab *v, clt_merge_work *w, const char *text, int32_t at) {
    refresh(v, w, text, at);
    if (w->symbols[at].rank != CLT_NO_RANK) push(w, key_of(&w->symbols[at], at));
}

static void merge_with_next(clt_merge_work *w, int32_t at) {
    clt_symbol *s = &w->symbols[at], *gone = &w->symbols[s->next];
    s->len += gone->len;
    s->id = s->merged;
    s->next = gone->next;
    gone->rank = CLT_NO_RANK;
    if (s->next >= 0) w->symbols[s->next].prev = at;
}

clt_status clt_merge_run(const clt_vocab *v, clt_merge_work *w, const char *text, clt_err *err) {
    if (w->n == 0) return CLT_OK;
    w->symbols[w->n - 1].next = -1;
    if (w->n == 1) return CLT_OK;
    void *heap = w->heap;
    if (!grow(&heap, &w->cap_heap, 2 * w->n, sizeof *w->heap)) { /* each merge pops one pair and pushes two */
        return clt_fail_memory(err, "tokenizing", 2ULL * w->n * sizeof *w->heap);
    }
    w->heap = heap;
    w->n_heap = 0;
    for (int32_t i = 0; (size_t)i < w->n; i++) {
        refresh(v, w, text, i);
        if (w->symbols[i].rank != CLT_NO_RANK) w->heap[w->n_heap++] = key_of(&w->symbols[i], i);
    }
    for (size_t i = w->n_heap / 4 + 1; i-- > 0;) {
        if (i < w->n_heap) sift_down(w->heap, w->n_heap, i, w->heap[i]);
    }
    while (w->n_heap) {
        uint64_t key = pop(w);
        int32_t at = (int32_t)(uint32_t)key;
        if (w->symbols[at].rank != (uint32_t)(key >> 32)) continue;
        merge_with_next(w, at);
        refresh_and_push(v, w, text, at);
        if (w->symbols[at].prev >= 0) refresh_and_push(v, w, text, w->symbols[at].prev);
    }
    return CLT_OK;
}
