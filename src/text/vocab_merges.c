/* Merges as a file lists them: texts of two pieces, in the order of their rank. In: the texts. Out: pairs of ids for
 * Gemma 4, ranks of the merged pieces for Gemma 3. */
#include "text/vocab_impl.h"

clt_status clt_merge_list_begin(clt_merge_list *list, clt_vocab *v, uint64_t count, const char *what, clt_err *err) {
    *list = (clt_merge_list){.v = v, .what = what, .longest = 1, .last = -1};
    for (int32_t id = 0; id < v->size; id++) {
        if (v->entries[id].len > list->longest) list->longest = v->entries[id].len;
    }
    list->joined = clt_arena_alloc(v->arena, list->longest, 1);
    if (!list->joined) return clt_fail_memory(err, "the merges", list->longest);
    return v->algorithm == CLT_VOCAB_BPE ? clt_bpe_reserve(v, count, err) : clt_spm_reserve(v, err);
}

static bool joins_to(const clt_vocab_entry *e, const char *left, size_t n_left, const char *right, size_t n_right) {
    return e->len == n_left + n_right && !memcmp(e->text, left, n_left) && !memcmp(e->text + n_left, right, n_right);
}

/* Lists come sorted by what they make, so the last piece is the most likely one. */
static int32_t find_joined(clt_merge_list *list, const char *left, size_t n_left, const char *right, size_t n_right) {
    const clt_vocab *v = list->v;
    if (list->last >= 0 && joins_to(&v->entries[list->last], left, n_left, right, n_right)) return list->last;
    if (n_left + n_right > list->longest) return -1;
    memcpy(list->joined, left, n_left);
    memcpy(list->joined + n_left, right, n_right);
    return clt_index_find(v, list->joined, n_left + n_right);
}

static clt_status fail_unknown(const clt_merge_list *list, const char *left, size_t n_left, const char *right,
                               size_t n_right, clt_err *err) {
    int l = n_left < 60 ? (int)n_left : 60, r = n_right < 60 ? (int)n_right : 60;
    return clt_fail(err, CLT_E_FILE, "%s: merge %u joins \"%.*s\" and \"%.*s\": one of them or the result is no piece of "
                    "the vocabulary", list->what, (unsigned)list->rank, l, left, r, right);
}

clt_status clt_merge_list_add(clt_merge_list *list, const char *left, size_t n_left, const char *right, size_t n_right,
                              clt_err *err) {
    clt_vocab *v = list->v;
    int32_t l = n_left ? clt_index_find(v, left, n_left) : -1;
    int32_t r = n_right ? clt_index_find(v, right, n_right) : -1;
    int32_t merged = l < 0 || r < 0 ? -1 : find_joined(list, left, n_left, right, n_right);
    if (merged < 0) return fail_unknown(list, left, n_left, right, n_right, err);
    list->last = merged;
    uint32_t rank = list->rank++;
    if (v->algorithm == CLT_VOCAB_SPM) clt_spm_set_rank(v, merged, rank);
    else if (v->entries[merged].mergeable) clt_bpe_add(v, l, r, merged, rank);
    return CLT_OK;
}

clt_status clt_merge_list_add_text(clt_merge_list *list, const char *text, size_t len, clt_err *err) {
    const char *space = len > 1 ? memchr(text + 1, ' ', len - 1) : NULL;
    if (!space) {
        return clt_fail(err, CLT_E_FILE, "%s: merge %u is \"%.*s\", expected two pieces with a space between them",
                        list->what, (unsigned)list->rank, len < 60 ? (int)len : 60, text);
    }
    size_t n_left = (size_t)(space - text);
    return clt_merge_list_add(list, text, n_left, space + 1, len - n_left - 1, err);
}
