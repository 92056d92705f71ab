/* Gemma 3's tokenizer: SentencePiece merges by the score of the piece that they make. In: scores, or the merges of a
 * tokenizer.json, which list the pieces in the order of their scores. Out: the rank of a pair of neighbours. Any two
 * neighbours whose text is a piece may merge, whether a merge list names the pair or not: that is why both forms of a
 * vocabulary give the same ids. The loop is merge.c. */
#include "text/vocab_impl.h"

clt_status clt_spm_reserve(clt_vocab *v, clt_err *err) {
    v->ranks = CLT_ARENA_NEW(v->arena, uint32_t, v->size);
    if (!v->ranks) return clt_fail_memory(err, "the scores", (unsigned long long)v->size * sizeof *v->ranks);
    memset(v->ranks, 0xFF, (size_t)v->size * sizeof *v->ranks);
    return CLT_OK;
}

/* The bits of a float in an order that integers compare, turned round so that the best score has the lowest rank. */
void clt_spm_set_score(clt_vocab *v, int32_t id, float score) {
    if (!v->entries[id].mergeable) return;
    float unsigned_zero = score + 0.0f; /* -0 would sort below +0 */
    uint32_t bits;
    memcpy(&bits, &unsigned_zero, sizeof bits);
    uint32_t ascending = bits >> 31 ? ~bits : bits | UINT32_C(0x80000000);
    v->ranks[id] = ~ascending;
}

void clt_spm_set_rank(clt_vocab *v, int32_t id, uint32_t rank) {
    if (v->entries[id].mergeable && rank < v->ranks[id]) v->ranks[id] = rank;
}

void clt_spm_pair(const clt_vocab *v, const char *text, clt_symbol *a, const clt_symbol *b) {
    int32_t id = clt_index_find(v, text + a->start, (size_t)a->len + b->len);
    if (id < 0) return;
    a->rank = v->ranks[id];
    a->merged = id;
}
