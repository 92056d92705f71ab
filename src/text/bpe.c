/* Gemma 4's tokenizer: byte-pair merges by rank. In: pairs of pieces in the file's order. Out: the rank of a pair and the
 * piece that it makes. The loop that applies them is merge.c; tokenize.c splits the text and handles newlines. */
#include "text/vocab_impl.h"

static size_t start_of(const clt_vocab *v, uint32_t left, uint32_t right) {
    uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(key ^ key >> 29) & v->pairs_mask;
}

clt_status clt_bpe_reserve(clt_vocab *v, uint64_t count, clt_err *err) {
    size_t capacity = 16;
    if (count > UINT32_MAX / 2) return clt_fail_memory(err, "the merges", count * sizeof(clt_bpe_slot));
    while (capacity < count * 3 / 2) capacity *= 2;
    v->pairs = CLT_ARENA_NEW(v->arena, clt_bpe_slot, capacity);
    if (!v->pairs) return clt_fail_memory(err, "the merges", capacity * sizeof *v->pairs);
    v->pairs_mask = capacity - 1;
    return CLT_OK;
}

/* A pair that is listed twice keeps its first rank. */
void clt_bpe_add(clt_vocab *v, int32_t left, int32_t right, int32_t merged, uint32_t rank) {
    uint32_t l = (uint32_t)left, r = (uint32_t)right;
    for (size_t at = start_of(v, l, r);; at = (at + 1) & v->pairs_mask) {
        clt_bpe_slot *slot = &v->pairs[at];
        if (slot->merged_plus_1 && (slot->left != l || slot->right != r)) continue;
        if (!slot->merged_plus_1) *slot = (clt_bpe_slot){l, r, rank, (uint32_t)merged + 1};
        return;
    }
}

void clt_bpe_pair(const clt_vocab *v, clt_symbol *a, const clt_symbol *b) {
    if (a->id < 0 || b->id < 0) return;
    uint32_t l = (uint32_t)a->id, r = (uint32_t)b->id;
    for (size_t at = start_of(v, l, r);; at = (at + 1) & v->pairs_mask) {
        const clt_bpe_slot *slot = &v->pairs[at];
        if (!slot->merged_plus_1) return;
        if (slot->left != l || slot->right != r) continue;
        a->rank = slot->rank;
        a->merged = (int32_t)slot->merged_plus_1 - 1;
        return;
    }
}
