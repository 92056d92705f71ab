/* Inside grammars: the two forms of a grammar and what the files of this room call of each other.
 *
 * Front ends (gbnf.c, schema*.c, tools.c) write rules as nondeterministic automata over bytes (nfa.c). compile.c checks them
 * and makes each a deterministic one (determinise.c), with calls between rules kept as edges. A position in a reply is a set
 * of items (sets.c); an item is a state with the set of items that continues when its rule ends, a stack that shares its
 * parts. */
#ifndef CLT_GRAMMAR_IMPL_H
#define CLT_GRAMMAR_IMPL_H
#include <string.h>
#include "base/mem.h"
#include "grammar/grammar.h"

#define CLT_NONE UINT32_MAX
#define CLT_MANY UINT32_MAX /* a count without limit */

enum {
    CLT_MAX_GRAMMAR_BYTES = 4 << 20, /* of the text of a grammar or schema */
    CLT_MAX_NFA_STATES = 1 << 21,
    CLT_MAX_ITEMS = 1 << 17,         /* of one position: more is an ambiguity that nobody means */
    CLT_MAX_STACK = 512,             /* rules within rules in a reply; what needs more is no way to go */
    CLT_MAX_COPIES = 16,             /* of what is repeated, and the states of all copies: */
    CLT_MAX_COPIED = 1024            /* a repetition with more is counted, so that its positions are alike to most tokens */
};

/* Room for one more in a growing array; false if there is no memory. */
static inline bool clt_room(void **data, size_t *cap, size_t need, size_t size) {
    if (need <= *cap) return true;
    size_t grown = *cap * 2 > need ? *cap * 2 : need < 16 ? 16 : need;
    void *moved = grown > SIZE_MAX / size ? NULL : clt_realloc(*data, grown * size);
    if (!moved) return false;
    *data = moved;
    *cap = grown;
    return true;
}
#define CLT_ROOM(array, cap, need) clt_room((void **)&(array), &(cap), (need), sizeof *(array))

/* ---- rules as they are written (nfa.c) ---- */

/* Strings with a least and a greatest length count their characters: the item carries how many are still needed and how
 * many are left. */
typedef enum clt_edge_kind {
    CLT_PLAIN,
    CLT_COUNT, /* begins a character */
    CLT_EXIT   /* leaves the counted part: only when no more are needed */
} clt_edge_kind;
typedef enum clt_nfa_type { CLT_NFA_EMPTY, CLT_NFA_BYTES, CLT_NFA_CALL } clt_nfa_type;

typedef struct clt_nfa_edge {
    uint32_t to, next; /* next: of the same state, CLT_NONE = last */
    uint32_t call;     /* index into calls */
    uint8_t type, lo, hi, kind;
} clt_nfa_edge;
typedef struct clt_call {
    uint32_t rule, need, left;
} clt_call;
typedef struct clt_nfa_rule {
    uint32_t start, end;  /* NFA states; CLT_NONE: not defined yet */
    uint32_t body;        /* the rule that is repeated, `need` to `left` times as the call says; CLT_NONE: no repetition */
    uint32_t fixed;       /* first state of a rule of prelude.c; CLT_NONE: none of them */
    bool counts;          /* has edges that count */
    char *name;           /* for errors; NULL: none */
} clt_nfa_rule;
typedef struct clt_nfa {
    uint32_t *first; /* [n_states]: first edge */
    size_t n_states, cap_states;
    clt_nfa_edge *edges;
    size_t n_edges, cap_edges;
    clt_call *calls;
    size_t n_calls, cap_calls;
    clt_nfa_rule *rules;
    size_t n_rules, cap_rules;
    bool no_memory, too_large; /* either makes all further writing void */
} clt_nfa;

typedef struct clt_part { /* a piece of a rule: bytes lead from start to end. Its states are those made since it began. */
    uint32_t start, end;
} clt_part;

bool clt_nfa_init(clt_nfa *n); /* with the rules of prelude.c */
void clt_nfa_free(clt_nfa *n);
bool clt_nfa_ok(const clt_nfa *n);
clt_status clt_nfa_check(const clt_nfa *n, const char *what, clt_err *err); /* reports no_memory and too_large */
uint32_t clt_nfa_state(clt_nfa *n);
void clt_nfa_empty(clt_nfa *n, uint32_t from, uint32_t to);
void clt_nfa_bytes(clt_nfa *n, uint32_t from, unsigned lo, unsigned hi, clt_edge_kind kind, uint32_t to);
void clt_nfa_call(clt_nfa *n, uint32_t from, clt_call call, uint32_t to);
void clt_nfa_literal(clt_nfa *n, uint32_t from, const char *s, size_t len, uint32_t to);
uint32_t clt_nfa_rule_new(clt_nfa *n, const char *name, size_t len);
void clt_nfa_define(clt_nfa *n, uint32_t rule, clt_part part);
/* part{least,most}; `made` = number of states before the part was begun. */
clt_part clt_nfa_repeat(clt_nfa *n, clt_part part, size_t made, uint32_t least, uint32_t most);
/* The same without calls, for rules that count; too large ones set too_large. */
clt_part clt_nfa_repeat_copies(clt_nfa *n, clt_part part, size_t made, uint32_t least, uint32_t most);

/* ---- code points (points.c) ---- */

typedef struct clt_points { /* sets of code points: ranges, after clt_points_settle ascending and apart */
    struct { uint32_t lo, hi; } *ranges;
    size_t n, cap;
    bool failed;
} clt_points;
typedef enum clt_spelling {
    CLT_SPELL_RAW,  /* UTF-8 */
    CLT_SPELL_JSON, /* as inside a JSON string: what must be escaped is */
    CLT_SPELL_CALL  /* UTF-8 inside a string of a tool call */
} clt_spelling;
void clt_points_add(clt_points *p, uint32_t lo, uint32_t hi);
void clt_points_settle(clt_points *p);
void clt_points_negate(clt_points *p); /* settles */
void clt_points_free(clt_points *p);
/* One of the code points, from -> to. Surrogates are left out. */
void clt_nfa_points(clt_nfa *n, uint32_t from, const clt_points *p, clt_spelling spelling, clt_edge_kind kind, uint32_t to);
/* Text as a string of that spelling has it, without its quotes. */
void clt_spell(clt_buf *out, const char *s, size_t len, clt_spelling spelling);

/* ---- rules as they are matched (compile.c) ---- */

typedef struct clt_edge {
    uint32_t to;
    uint8_t lo, hi, kind;
} clt_edge;
typedef struct clt_call_edge {
    clt_call call;
    uint32_t to;
} clt_call_edge;
enum { CLT_BODY_NONE, CLT_BODY_JSON, CLT_BODY_CALL, CLT_BODIES };
typedef struct clt_state {
    uint32_t edge, n_edges, call, n_calls;
    uint32_t least, most;  /* characters from here to the end of a counted part */
    uint32_t repeats;      /* the rule that this state repeats, or CLT_NONE */
    uint32_t height;       /* the fewest rules within each other that the rest of its rule takes */
    bool accepts;
    uint8_t body;          /* inside a string that may go on in any way: see strings.c */
} clt_state;
typedef struct clt_rule {
    uint32_t start;
    uint32_t rank;         /* a rule calls, before it takes a byte, only rules of higher rank */
    bool counts;           /* its items carry the counts of the call */
} clt_rule;
struct clt_grammar {
    clt_state *states; /* 0: the end of the reply; then those of prelude.c */
    size_t n_states, cap_states;
    clt_edge *edges;
    size_t n_edges, cap_edges;
    clt_call_edge *calls;
    size_t n_calls, cap_calls;
    clt_rule *rules;
    size_t n_rules;
    uint32_t root;
    uint32_t far;      /* counts above this many more than a token's length make no difference to it */
    uint8_t class_of[256]; /* bytes of one class are alike in every state */
    uint32_t n_classes;
    uint8_t sample_of[256]; /* [n_classes]: a byte of the class */
};
/* Checks and compiles; frees n. `what` begins error texts. */
clt_status clt_grammar_compile(clt_nfa *n, uint32_t root, const char *what, clt_grammar **out, clt_err *err);

uint32_t clt_grammar_state(clt_grammar *g); /* a fresh state; CLT_NONE: no memory */
/* For the state that was made last. */
bool clt_grammar_edge(clt_grammar *g, unsigned lo, unsigned hi, clt_edge_kind kind, uint32_t to);
bool clt_grammar_call(clt_grammar *g, clt_call call, uint32_t to);

/* analysis.c: what holds for rules and states before they are compiled. */
typedef struct clt_facts {
    bool *nullable, *usable; /* [n_rules]: may take no byte; can end at all */
    bool *alive;             /* [n_states]: leads to the end of its rule */
    uint32_t *rank;          /* [n_rules] */
    uint32_t *stamp, round;  /* [n_states]: marks of one search */
    uint64_t work;           /* steps that determinise.c has spent */
    bool no_memory;          /* determinise.c ran out of it */
} clt_facts;
clt_status clt_facts_find(clt_facts *f, const clt_nfa *n, const char *what, clt_err *err);
void clt_facts_free(clt_facts *f);
bool clt_call_nullable(const clt_nfa *n, const clt_facts *f, const clt_call *c);
bool clt_call_usable(const clt_nfa *n, const clt_facts *f, const clt_call *c);

/* determinise.c: one rule -> states of g. false: no memory, which f then says, or it is too much work. */
bool clt_grammar_determinise(clt_grammar *g, const clt_nfa *n, clt_facts *f, uint32_t rule);

/* ---- strings whose characters are free (prelude.c) ---- */

enum { /* rules that every grammar has, and states at fixed places */
    CLT_RULE_STRING,      /* a JSON string with its quotes */
    CLT_RULE_STRING_TAIL, /* the rest of one */
    CLT_RULE_TEXT,        /* a string of a tool call, with its quotes */
    CLT_RULE_TEXT_TAIL,
    CLT_PRELUDE_RULES
};
bool clt_prelude_rules(clt_nfa *n);
bool clt_prelude_states(clt_grammar *g);

/* ---- front ends ---- */

/* A regular expression as patterns of JSON Schema are, from -> to: the characters of a whole string, spelled. Counts. */
clt_status clt_regex_write(clt_nfa *n, const char *pattern, size_t len, clt_spelling spelling, uint32_t from, uint32_t to,
                           const char *what, clt_err *err);
/* One that is the whole text, in plain UTF-8. */
clt_status clt_regex_plain(clt_nfa *n, const char *pattern, size_t len, uint32_t from, uint32_t to, const char *what,
                           clt_err *err);

/* ---- tokens (tokens.c, strings.c) ---- */

/* Sets of bytes that begin a character: 128 of ASCII, 64 leads of longer ones. The bit of 0xC0, which begins none, stands
 * for whatever is not UTF-8. */
typedef struct clt_charset {
    uint64_t bits[3];
} clt_charset;
static inline unsigned clt_charset_bit(unsigned byte) {
    return byte < 0x80 ? byte : byte < 0xC0 ? 128 : byte - 64;
}

typedef struct clt_trie { /* byte strings with ids, in depth-first order */
    struct clt_trie_node {
        uint32_t skip;  /* the node behind this one's subtree */
        uint32_t first; /* ids that end here: ids[first .. first of the next node) */
        uint32_t below; /* index into `below`: at the end of a character with a large subtree; else 0 */
        uint8_t byte, depth; /* of the root's children: 1 */
    } *nodes;
    size_t n_nodes;     /* a node more stands at the end, for `first` */
    int32_t *ids;
    uint8_t *counts;    /* characters before the string closed, by place in ids; NULL: none */
    clt_charset *below; /* [n_below + 1]: the characters of subtrees */
    size_t n_ids, n_below, deepest;
} clt_trie;
typedef struct clt_trie_entry {
    const uint8_t *bytes;
    uint32_t len;
    int32_t id;
    uint64_t key; /* set by clt_trie_build */
    uint8_t count;
} clt_trie_entry;
enum { CLT_MAX_TOKEN_BYTES = 250 };
/* Sorts the entries. */
bool clt_trie_build(clt_trie *t, clt_trie_entry *entries, size_t n, bool counts);
bool clt_trie_survey(clt_trie *t); /* fills `below` */
void clt_trie_free(clt_trie *t);

typedef struct clt_string_table { /* what tokens do inside a free string */
    uint64_t *stay;       /* [most + 1][words]: tokens that end within it and have at most so many characters */
    uint32_t most;
    clt_trie leave;       /* tokens that close it: what follows the closing quote */
} clt_string_table;
struct clt_tokens {
    int32_t n;
    size_t words;
    uint8_t *bytes;       /* of all tokens */
    uint32_t *offsets;    /* [n + 1] */
    clt_trie trie;
    clt_string_table tables[CLT_BODIES];
    size_t held;          /* memory */
};
bool clt_string_table_build(clt_tokens *t, int body);
void clt_string_table_free(clt_string_table *s);
/* Adds to bits the tokens that stay within such a string, of which `left` characters are left. */
void clt_string_table_mask(const clt_string_table *s, size_t words, uint32_t left, uint64_t *bits);

/* ---- positions (sets.c) ---- */

typedef struct clt_item {
    uint32_t state, need, left;
    uint32_t node; /* the set that continues when the rule ends */
} clt_item;
typedef struct clt_set {
    uint32_t at, n;               /* items */
    uint32_t open, n_open;        /* items that take bytes, calls followed; open CLT_NONE: not known yet */
    uint32_t row;                 /* where its row begins in `rows`; CLT_NONE: none yet */
    uint32_t near;                /* the set with counts that differ only where a token can tell; 0: not known yet */
    uint32_t mask;                /* of `masks`, CLT_NONE: none yet */
    uint32_t depth, hash;
} clt_set;
enum { CLT_SET_DEAD = 1, CLT_SET_END = 2 }; /* nothing can follow; nothing must */

typedef struct clt_mask {
    uint64_t *bits; /* NULL: few */
    int32_t *few;
    uint32_t n;
} clt_mask;
typedef struct clt_sets {
    const clt_grammar *g;
    uint32_t far;        /* counts beyond this are alike to any token */
    clt_item *items;     /* of all sets */
    size_t n_items, cap_items;
    clt_set *sets;       /* 0: no set */
    size_t n_sets, cap_sets;
    uint32_t *rows;      /* [row][n_classes]: the row of the next set; 0 = that of the dead one, CLT_NONE = not known yet */
    struct clt_row {
        uint32_t set;    /* whose row it is */
        uint32_t met;    /* how often it stood before a large subtree */
        clt_charset stays; /* characters that lead back to it; looked for once that is worth it */
    } *row_info;         /* [rows] */
    size_t n_rows, cap_rows, cap_row_info;
    uint32_t *index;     /* hash table of sets */
    size_t index_mask;
    clt_mask *masks;
    size_t n_masks, cap_masks, mask_bytes;
    clt_item *work;      /* the set that is being made */
    size_t n_work, cap_work;
    struct clt_pending { clt_call call; clt_item back; } *heap; /* calls that wait */
    size_t n_heap, cap_heap;
    bool no_memory, too_large; /* sticky */
} clt_sets;
bool clt_sets_init(clt_sets *s, const clt_grammar *g, size_t longest_token);
void clt_sets_free(clt_sets *s);
size_t clt_sets_bytes(const clt_sets *s);
uint32_t clt_sets_start(clt_sets *s);
/* The set after a byte. */
uint32_t clt_sets_step(clt_sets *s, uint32_t set, uint8_t byte);
/* The same by rows, which remember the step for each class of bytes. */
uint32_t clt_sets_row(clt_sets *s, uint32_t set);
uint32_t clt_sets_walk(clt_sets *s, uint32_t row, uint8_t byte);
/* Whether all characters of a set lead from a row back to it. */
bool clt_sets_stays(clt_sets *s, uint32_t row, const clt_charset *characters);
/* Items that take bytes. Valid until the next call. */
const clt_item *clt_sets_open(clt_sets *s, uint32_t set, uint32_t *n);
uint32_t clt_sets_near(clt_sets *s, uint32_t set);
bool clt_sets_ends(const clt_sets *s, uint32_t set);
/* A set that takes bytes by these items alone. It is not found again. */
uint32_t clt_sets_private(clt_sets *s, const clt_item *items, uint32_t n);
/* Copies the sets named, and what they stand on, into others of the same grammar; rewrites their numbers. */
bool clt_sets_copy(const clt_sets *from, clt_sets *to, uint32_t *kept, size_t n);
/* Forgets all but the sets named; rewrites their numbers. */
bool clt_sets_shrink(clt_sets *s, uint32_t *kept, size_t n);

/* mask.c: the tokens that may follow, from the cache where it can. */
bool clt_mask_write(clt_sets *s, const clt_tokens *t, uint32_t set, uint64_t *bits);

#endif
