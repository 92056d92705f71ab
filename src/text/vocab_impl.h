/* Inside the tokenizers: the vocabulary's memory and what its files call of each other. Only src/text includes this.
 *
 * A reader (vocab_gguf.c, vocab_json.c) creates a vocabulary, fills its pieces, seals it and then adds merges or scores.
 * All memory of a vocabulary is one arena, so that it is freed whole also when opening fails half-way. */
#ifndef CLT_TEXT_VOCAB_IMPL_H
#define CLT_TEXT_VOCAB_IMPL_H
#include <string.h>
#include "base/mem.h"
#include "text/vocab.h"

#define CLT_MARK "\xE2\x96\x81" /* U+2581, what a space becomes before merging */
#define CLT_MARK_BYTES 3
#define CLT_NO_RANK UINT32_MAX  /* this pair does not merge */

typedef struct clt_vocab_entry {
    const char *text; /* NUL-terminated copy in the arena; "" where an id has no piece */
    uint32_t len;     /* bytes, without the NUL */
    uint8_t kind;     /* clt_token_kind */
    bool special;
    bool mergeable;   /* plain text may become this piece: normal and not special */
} clt_vocab_entry;

typedef struct clt_index_slot {
    uint32_t tag;       /* upper half of the hash, spares most comparisons of text */
    uint32_t id_plus_1; /* 0 = empty */
} clt_index_slot;

typedef struct clt_bpe_slot {
    uint32_t left, right, rank;
    uint32_t merged_plus_1; /* 0 = empty */
} clt_bpe_slot;

/* Pieces found by their text before anything is merged, as a trie over bytes. */
typedef struct clt_match_node {
    uint32_t child, sibling; /* 0 = none */
    int32_t id;              /* piece that ends here, or -1 */
    uint8_t byte;
} clt_match_node;
typedef struct clt_matcher {
    clt_match_node *nodes; /* node 0 is no node */
    uint32_t n_nodes;
    uint32_t root[256];
    bool starts[2][256]; /* [special?]: a byte that some allowed piece starts with */
} clt_matcher;

struct clt_vocab {
    clt_arena *arena;
    clt_vocab_algorithm algorithm;
    int32_t size;
    clt_vocab_entry *entries; /* [size] */
    char *texts;              /* their texts, one block */
    size_t texts_used, texts_bytes;
    clt_index_slot *index;
    size_t index_mask;
    clt_vocab_roles roles;
    clt_matcher matcher;
    int32_t ascii_ids[128];   /* mergeable piece of one ASCII character, or -1 */
    int32_t byte_ids[256];    /* what a byte becomes where no piece fits: its byte piece, else <unk> */
    uint8_t joins[65536 / 8]; /* see clt_vocab_joins */
    clt_bpe_slot *pairs;      /* BPE: (left, right) -> rank and merged piece */
    size_t pairs_mask;
    uint32_t *ranks;          /* SPM: [size] rank of the merge that makes a piece, or CLT_NO_RANK */
};

/* ---- building (vocab.c, vocab_seal.c) ---- */
/* `text_bytes` is what all texts given to clt_vocab_set will take, a NUL for each included. All
 * pieces are empty and unused. */
clt_status clt_vocab_create(int64_t size, uint64_t text_bytes, clt_vocab_algorithm algorithm, clt_vocab **out,
                            clt_err *err);
/* Copies the text. The caller has checked that id is in range. */
clt_status clt_vocab_set(clt_vocab *v, int32_t id, const char *text, size_t len, clt_token_kind kind, clt_err *err);
/* Index, special pieces, roles, byte pieces, matcher. `what` names the file in errors. Two pieces of one text are
 * CLT_E_FILE. */
clt_status clt_vocab_seal(clt_vocab *v, const char *what, clt_err *err);
bool clt_vocab_text_is_byte(const char *text, size_t len, unsigned *byte); /* "<0xHH>" */
/* One of the seven pieces that GGUF types as user-defined although they structure a reply. */
bool clt_vocab_text_is_structure(const char *text, size_t len);

/* ---- readers ---- */
clt_status clt_vocab_read_gguf(const clt_file *f, clt_vocab **out, clt_err *err);
clt_status clt_vocab_read_json(const char *json, size_t len, const char *what, clt_vocab_algorithm algorithm,
                               clt_vocab **out, clt_err *err);

/* ---- merges as a file lists them (vocab_merges.c) ---- */
typedef struct clt_merge_list {
    clt_vocab *v;
    const char *what;  /* names the file in errors */
    char *joined;      /* room for the longest piece */
    size_t longest;    /* bytes of the longest piece */
    int32_t last;      /* piece that the previous merge made, or -1 */
    uint32_t rank;     /* of the next merge */
} clt_merge_list;
/* After sealing; `count` merges will follow in order. */
clt_status clt_merge_list_begin(clt_merge_list *list, clt_vocab *v, uint64_t count, const char *what, clt_err *err);
/* Unknown pieces are CLT_E_FILE. A merge whose result plain text may not become is skipped. */
clt_status clt_merge_list_add(clt_merge_list *list, const char *left, size_t n_left, const char *right, size_t n_right,
                              clt_err *err);
/* "left right", cut at the first space that leaves something on its left. */
clt_status clt_merge_list_add_text(clt_merge_list *list, const char *text, size_t len, clt_err *err);

/* ---- index (vocab_index.c) ---- */
clt_status clt_index_build(clt_vocab *v, const char *what, clt_err *err);
int32_t clt_index_find(const clt_vocab *v, const char *text, size_t len); /* -1 if absent */

/* ---- matcher (match.c) ---- */
clt_status clt_match_build(clt_vocab *v, const char *what, clt_err *err);
/* Longest piece that text[0..n) starts with; -1 if none. Sets its length in the text. */
int32_t clt_match_longest(const clt_matcher *m, const clt_vocab *v, const char *text, size_t n, bool special, size_t *len);

/* ---- merging (merge.c, bpe.c, spm.c) ---- */
typedef struct clt_symbol {
    uint32_t start, len; /* bytes of the chunk's text */
    int32_t prev, next;  /* -1 at the ends */
    int32_t id;          /* piece, or -1: no piece has this text */
    int32_t merged;      /* piece that this symbol and the next one make */
    uint32_t rank;       /* of that merge; CLT_NO_RANK: none, or this symbol is part of an earlier one now */
} clt_symbol;
typedef struct clt_merge_work { /* zero-initialise; one per thread */
    clt_symbol *symbols;
    size_t n, cap;
    uint64_t *heap; /* rank << 32 | symbol */
    size_t n_heap, cap_heap;
} clt_merge_work;
/* Appends a symbol; false if there is no memory. */
bool clt_merge_add(clt_merge_work *w, uint32_t start, uint32_t len, int32_t id);
/* Merges the symbols by ascending rank, leftmost first. `text` is what the symbols' starts count from. O(n log n). */
clt_status clt_merge_run(const clt_vocab *v, clt_merge_work *w, const char *text, clt_err *err);
void clt_merge_free(clt_merge_work *w);

/* The merge of two neighbours: sets a->rank and a->merged. */
void clt_bpe_pair(const clt_vocab *v, clt_symbol *a, const clt_symbol *b);
void clt_spm_pair(const clt_vocab *v, const char *text, clt_symbol *a, const clt_symbol *b);
clt_status clt_bpe_reserve(clt_vocab *v, uint64_t count, clt_err *err);
void clt_bpe_add(clt_vocab *v, int32_t left, int32_t right, int32_t merged, uint32_t rank);
clt_status clt_spm_reserve(clt_vocab *v, clt_err *err);
void clt_spm_set_score(clt_vocab *v, int32_t id, float score); /* finite */
void clt_spm_set_rank(clt_vocab *v, int32_t id, uint32_t rank); /* the lowest rank given counts */

/* Bytes beside a boundary inside a piece, with 0xFF standing for the mark of a space: `before` the last byte left of it,
 * `after` the first byte right of it. Text may be cut where no mergeable piece has this pair inside, because no merge can
 * reach across; that keeps the pieces of work small. */
static inline uint8_t clt_byte_before(const char *text, size_t at) {
    bool after_mark = at >= CLT_MARK_BYTES && !memcmp(text + at - CLT_MARK_BYTES, CLT_MARK, CLT_MARK_BYTES);
    return after_mark ? 0xFF : (uint8_t)text[at - 1];
}
static inline uint8_t clt_byte_after(const char *text, size_t at, size_t len) {
    return len - at >= CLT_MARK_BYTES && !memcmp(text + at, CLT_MARK, CLT_MARK_BYTES) ? 0xFF : (uint8_t)text[at];
}
static inline bool clt_vocab_joins(const clt_vocab *v, uint8_t before, uint8_t after) {
    size_t bit = (size_t)before << 8 | after;
    return v->joins[bit >> 3] >> (bit & 7) & 1;
}

#endif
