/* The matcher: finds the pieces that are taken from raw text as a whole, before anything is merged: special pieces (where
 * the writer of the text asks for them) and user-defined ones. In: sealed kinds. Out: the longest piece at a position.
 * A trie whose depth is bounded, so a scan over n bytes is O(n). */
#include "text/vocab_impl.h"

enum { LONGEST = 255 }; /* bytes of a piece; Gemma's longest is a run of 31 */

static bool is_matched(const clt_vocab_entry *e) {
    return e->len && (e->special || e->kind == CLT_TOKEN_USER);
}

/* Child of `parent` (0 = the root) for `byte`, made if it is missing. */
static uint32_t step(clt_matcher *m, uint32_t parent, uint8_t byte) {
    uint32_t *link = parent ? &m->nodes[parent].child : &m->root[byte];
    while (*link && m->nodes[*link].byte != byte) link = &m->nodes[*link].sibling;
    if (!*link) {
        *link = m->n_nodes++;
        m->nodes[*link] = (clt_match_node){0, 0, -1, byte};
    }
    return *link;
}

/* Raw text has spaces where the piece may be stored with marks. */
static void add(clt_matcher *m, const clt_vocab_entry *e, int32_t id) {
    uint32_t node = 0;
    for (uint32_t i = 0; i < e->len; i++) {
        bool mark = e->len - i >= CLT_MARK_BYTES && !memcmp(e->text + i, CLT_MARK, CLT_MARK_BYTES);
        uint8_t byte = mark ? ' ' : (uint8_t)e->text[i];
        if (!node) {
            m->starts[true][byte] = true;
            if (!e->special) m->starts[false][byte] = true;
        }
        node = step(m, node, byte);
        if (mark) i += CLT_MARK_BYTES - 1;
    }
    if (m->nodes[node].id < 0) m->nodes[node].id = id;
}

clt_status clt_match_build(clt_vocab *v, const char *what, clt_err *err) {
    clt_matcher *m = &v->matcher;
    size_t bytes = 1;
    for (int32_t id = 0; id < v->size; id++) {
        const clt_vocab_entry *e = &v->entries[id];
        if (!is_matched(e)) continue;
        if (e->len > LONGEST) {
            return clt_fail(err, CLT_E_FILE, "%s: vocabulary: the special or user-defined piece %d has %u bytes, at most %d "
                            "are allowed", what, (int)id, (unsigned)e->len, LONGEST);
        }
        bytes += e->len;
    }
    m->nodes = bytes > UINT32_MAX ? NULL : CLT_ARENA_NEW(v->arena, clt_match_node, bytes);
    if (!m->nodes) return clt_fail_memory(err, "the vocabulary's matcher", bytes * sizeof *m->nodes);
    m->n_nodes = 1;
    for (int32_t id = 0; id < v->size; id++) {
        const clt_vocab_entry *e = &v->entries[id];
        if (is_matched(e)) add(m, e, id);
    }
    return CLT_OK;
}

int32_t clt_match_longest(const clt_matcher *m, const clt_vocab *v, const char *text, size_t n, bool special, size_t *len) {
    int32_t best = -1;
    uint32_t node = n ? m->root[(uint8_t)text[0]] : 0;
    for (size_t i = 1; node; i++) {
        int32_t id = m->nodes[node].id;
        if (id >= 0 && (special || !v->entries[id].special)) {
            best = id;
            *len = i;
        }
        if (i == n) break;
        node = m->nodes[node].child;
        while (node && m->nodes[node].byte != (uint8_t)text[i]) node = m->nodes[node].sibling;
    }
    return best;
}
