/* The index of a vocabulary: text -> id. In: the pieces. Out: an open-addressing table over them.
 * Knows nothing of kinds: whoever looks up decides what may be used. */
#include "base/hash.h"
#include "text/vocab_impl.h"

static bool same_text(const clt_vocab_entry *e, const char *text, size_t len) {
    return e->len == len && !memcmp(e->text, text, len);
}

/* The slot that holds the text, or the empty one where it belongs. */
static clt_index_slot *slot_of(const clt_vocab *v, const char *text, size_t len, uint32_t *tag) {
    uint64_t hash = clt_hash64(text, len, 0);
    *tag = (uint32_t)(hash >> 32);
    for (size_t at = (size_t)hash & v->index_mask;; at = (at + 1) & v->index_mask) {
        clt_index_slot *slot = &v->index[at];
        if (!slot->id_plus_1) return slot;
        if (slot->tag == *tag && same_text(&v->entries[slot->id_plus_1 - 1], text, len)) return slot;
    }
}

int32_t clt_index_find(const clt_vocab *v, const char *text, size_t len) {
    uint32_t tag;
    return (int32_t)slot_of(v, text, len, &tag)->id_plus_1 - 1;
}

clt_status clt_index_build(clt_vocab *v, const char *what, clt_err *err) {
    size_t capacity = 16;
    while (capacity < (size_t)v->size * 3 / 2) capacity *= 2;
    v->index = CLT_ARENA_NEW(v->arena, clt_index_slot, capacity);
    if (!v->index) return clt_fail_memory(err, "the vocabulary's index", capacity * sizeof *v->index);
    v->index_mask = capacity - 1;
    for (int32_t id = 0; id < v->size; id++) {
        const clt_vocab_entry *e = &v->entries[id];
        if (!e->len) continue;
        uint32_t tag;
        clt_index_slot *slot = slot_of(v, e->text, e->len, &tag);
        if (slot->id_plus_1) {
            return clt_fail(err, CLT_E_FILE, "%s: vocabulary: the pieces %d and %d have the same text \"%.40s\"", what,
                            (int)slot->id_plus_1 - 1, (int)id, e->text);
        }
        *slot = (clt_index_slot){tag, (uint32_t)id + 1};
    }
    return CLT_OK;
}
