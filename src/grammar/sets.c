/* Positions in a reply: sets of items, each set stored once, so that a position is a number, equal positions are equal
 * numbers, and going back is remembering one.
 *
 * An item is a state and a node: the set that continues when the state's rule ends. Nodes are sets like any other; stacks
 * share their lower parts, and callers of one rule at one place share the whole call, so ambiguity costs no more than the
 * number of states. A set is kept in a settled form: where an item's rule may end, what continues there is in the set too,
 * and items that can do nothing themselves are left out. So a rule that ends in a call leaves nothing behind. */
#include <stdlib.h>
#include "base/hash.h"
#include "grammar/impl.h"

typedef struct clt_pending pending;

static const clt_item end_item = {0, 0, 0, 0};

bool clt_sets_init(clt_sets *s, const clt_grammar *g, size_t longest_token) {
    *s = (clt_sets){.g = g, .far = g->far + (uint32_t)longest_token + 1};
    s->index_mask = 255;
    s->index = clt_calloc(s->index_mask + 1, sizeof *s->index);
    s->sets = clt_calloc(16, sizeof *s->sets);
    s->cap_sets = s->sets ? 16 : 0;
    s->n_sets = 1;
    s->no_memory = !s->index || !s->sets;
    return clt_sets_start(s) != 0 && clt_sets_row(s, CLT_SET_DEAD) == 0 && !s->no_memory;
}

static void free_masks(clt_sets *s) {
    for (size_t i = 0; i < s->n_masks; i++) {
        clt_free(s->masks[i].bits);
        clt_free(s->masks[i].few);
    }
    s->n_masks = s->mask_bytes = 0;
}

void clt_sets_free(clt_sets *s) {
    free_masks(s);
    clt_free(s->masks);
    clt_free(s->items);
    clt_free(s->sets);
    clt_free(s->rows);
    clt_free(s->row_info);
    clt_free(s->index);
    clt_free(s->work);
    clt_free(s->heap);
    *s = (clt_sets){0};
}

size_t clt_sets_bytes(const clt_sets *s) {
    return s->cap_items * sizeof *s->items + s->cap_sets * sizeof *s->sets + s->cap_rows * sizeof *s->rows +
           (s->index_mask + 1) * sizeof *s->index + s->cap_work * sizeof *s->work + s->mask_bytes;
}

/* ---- the set that is being made ---- */

static void put(clt_sets *s, clt_item item) {
    if (s->n_work >= CLT_MAX_ITEMS) s->too_large = true;
    else if (!CLT_ROOM(s->work, s->cap_work, s->n_work + 1)) s->no_memory = true;
    else s->work[s->n_work++] = item;
}

static bool repeats(const clt_sets *s, uint32_t state) {
    return s->g->states[state].repeats != CLT_NONE;
}

/* Whether the rule of an item may end here. */
static bool accepts(const clt_sets *s, const clt_item *i) {
    return repeats(s, i->state) ? i->need == 0 : s->g->states[i->state].accepts;
}

/* Whether the rest of an item's rule still finds room on the stack. */
static bool fits(const clt_sets *s, const clt_item *i) {
    const clt_state *st = &s->g->states[i->state];
    uint32_t height = st->height;
    if (st->repeats != CLT_NONE && i->need) height = s->g->states[s->g->rules[st->repeats].start].height + 1;
    return s->sets[i->node].depth + height <= CLT_MAX_STACK;
}

static bool acts(const clt_sets *s, const clt_item *i) {
    const clt_state *st = &s->g->states[i->state];
    return i->state == 0 || (repeats(s, i->state) ? i->left > 0 : st->n_edges > 0 || st->n_calls > 0);
}

static int compare_items(const void *a, const void *b) {
    return memcmp(a, b, sizeof(clt_item));
}

/* Adds what continues where items may end, drops items that do nothing, sorts, drops doubles. */
static void settle(clt_sets *s) {
    size_t n = s->n_work, kept = 0;
    for (size_t i = 0; i < n && !s->no_memory && !s->too_large; i++) {
        clt_item item = s->work[i];
        if (!accepts(s, &item)) continue;
        const clt_set *node = &s->sets[item.node];
        for (uint32_t k = 0; k < node->n; k++) put(s, s->items[node->at + k]);
    }
    for (size_t i = 0; i < s->n_work; i++)
        if (acts(s, &s->work[i]) && fits(s, &s->work[i])) s->work[kept++] = s->work[i];
    if (kept > 1) qsort(s->work, kept, sizeof *s->work, compare_items);
    s->n_work = kept > 0;
    for (size_t i = 1; i < kept; i++)
        if (compare_items(&s->work[i], &s->work[s->n_work - 1])) s->work[s->n_work++] = s->work[i];
}

static bool grow_index(clt_sets *s) {
    size_t mask = 2 * s->index_mask + 1;
    uint32_t *grown = clt_calloc(mask + 1, sizeof *grown);
    if (!grown) return false;
    for (uint32_t i = 1; i < s->n_sets; i++) {
        if (s->sets[i].hash == 0) continue;
        size_t at = s->sets[i].hash & mask;
        while (grown[at]) at = (at + 1) & mask;
        grown[at] = i;
    }
    clt_free(s->index);
    s->index = grown;
    s->index_mask = mask;
    return true;
}

static uint32_t depth_of_work(const clt_sets *s) {
    uint32_t depth = 0;
    for (size_t i = 0; i < s->n_work; i++) {
        uint32_t below = s->sets[s->work[i].node].depth + (s->work[i].state != 0);
        if (below > depth) depth = below;
    }
    return depth;
}

/* Makes a set of the items in `work`. */
static uint32_t new_set(clt_sets *s, uint32_t hash) {
    size_t most = UINT32_MAX / 2;
    if (s->n_items > most || s->n_sets > most || !CLT_ROOM(s->items, s->cap_items, s->n_items + s->n_work) ||
        !CLT_ROOM(s->sets, s->cap_sets, s->n_sets + 1)) {
        s->no_memory = true;
        return CLT_SET_DEAD;
    }
    if (s->n_work) memcpy(s->items + s->n_items, s->work, s->n_work * sizeof *s->work);
    s->sets[s->n_sets] = (clt_set){.at = (uint32_t)s->n_items, .n = (uint32_t)s->n_work, .open = CLT_NONE, .row = CLT_NONE,
                                   .mask = CLT_NONE, .depth = depth_of_work(s), .hash = hash};
    s->n_items += s->n_work;
    return (uint32_t)s->n_sets++;
}

/* The set of the items in `work`, in their settled form: an old one if there is one. */
static uint32_t find_set(clt_sets *s) {
    if (s->no_memory || s->too_large) return CLT_SET_DEAD;
    settle(s);
    if (2 * s->n_sets > s->index_mask && !grow_index(s)) s->no_memory = true;
    if (s->no_memory || s->too_large) return CLT_SET_DEAD;
    uint32_t hash = (uint32_t)clt_hash64(s->n_work ? s->work : NULL, s->n_work * sizeof *s->work, 0);
    hash += hash == 0; /* 0 marks private sets */
    size_t at = hash & s->index_mask;
    for (; s->index[at]; at = (at + 1) & s->index_mask) {
        const clt_set *old = &s->sets[s->index[at]];
        if (old->hash == hash && old->n == s->n_work &&
            (old->n == 0 || !memcmp(s->items + old->at, s->work, old->n * sizeof *s->work)))
            return s->index[at];
    }
    uint32_t set = new_set(s, hash);
    if (!s->no_memory) s->index[at] = set;
    return set;
}

uint32_t clt_sets_private(clt_sets *s, const clt_item *items, uint32_t n) {
    s->n_work = 0;
    uint32_t set = new_set(s, 0);
    if (s->no_memory || !CLT_ROOM(s->items, s->cap_items, s->n_items + n)) {
        s->no_memory = true;
        return CLT_SET_DEAD;
    }
    memcpy(s->items + s->n_items, items, n * sizeof *items);
    s->sets[set].open = (uint32_t)s->n_items;
    s->sets[set].n_open = n;
    s->sets[set].near = set;
    s->n_items += n;
    return set;
}

/* ---- calls ---- */

/* Rules are opened in the order of their ranks, so that all callers of one are known when it is opened. */
static bool before(const clt_sets *s, const pending *a, const pending *b) {
    if (a->call.rule != b->call.rule) {
        uint32_t x = s->g->rules[a->call.rule].rank, y = s->g->rules[b->call.rule].rank;
        return x < y || (x == y && a->call.rule < b->call.rule);
    }
    return a->call.need != b->call.need ? a->call.need < b->call.need : a->call.left < b->call.left;
}

static void push_call(clt_sets *s, pending p) {
    if (s->n_heap >= CLT_MAX_ITEMS) s->too_large = true;
    else if (!CLT_ROOM(s->heap, s->cap_heap, s->n_heap + 1)) s->no_memory = true;
    if (s->no_memory || s->too_large) return;
    size_t at = s->n_heap++;
    for (; at && before(s, &p, &s->heap[(at - 1) / 2]); at = (at - 1) / 2) s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = p;
}

static pending pop_call(clt_sets *s) {
    pending top = s->heap[0], moving = s->heap[--s->n_heap];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < s->n_heap; at = child) {
        if (child + 1 < s->n_heap && before(s, &s->heap[child + 1], &s->heap[child])) child++;
        if (!before(s, &s->heap[child], &moving)) break;
        s->heap[at] = s->heap[child];
    }
    s->heap[at] = moving;
    return top;
}

static void push_calls_of(clt_sets *s, clt_item i) {
    const clt_state *st = &s->g->states[i.state];
    if (st->repeats != CLT_NONE) {
        clt_item back = i;
        if (i.left == 0) return;
        back.need -= back.need > 0;
        back.left -= back.left != CLT_MANY;
        push_call(s, (pending){{st->repeats, 0, 0}, back});
        return;
    }
    for (uint32_t c = st->call; c < st->call + st->n_calls; c++) {
        const clt_call_edge *e = &s->g->calls[c];
        push_call(s, (pending){e->call, {e->to, 0, 0, i.node}});
    }
}

/* Whether a counted string can still be ended from a state. */
static bool in_bounds(const clt_sets *s, uint32_t state, uint32_t need, uint32_t left) {
    const clt_state *st = &s->g->states[state];
    return st->least <= left && need <= st->most;
}

static void put_open(clt_sets *s, clt_item i) {
    if (s->g->states[i.state].n_edges == 0) return;
    if (!CLT_ROOM(s->items, s->cap_items, s->n_items + 1)) s->no_memory = true;
    else s->items[s->n_items++] = i;
}

/* The calls of equal rule and bounds that wait, as one item that begins the rule. false: it may not be opened. */
static bool next_opened(clt_sets *s, clt_item *out) {
    pending first = pop_call(s);
    s->n_work = 0;
    put(s, first.back);
    while (s->n_heap && !before(s, &first, &s->heap[0])) put(s, pop_call(s).back);
    uint32_t node = find_set(s);
    const clt_rule *rule = &s->g->rules[first.call.rule];
    *out = (clt_item){rule->start, 0, 0, node};
    if (rule->counts) {
        out->need = first.call.need;
        out->left = first.call.left;
    }
    return s->sets[node].n && fits(s, out) && in_bounds(s, out->state, out->need, out->left);
}

const clt_item *clt_sets_open(clt_sets *s, uint32_t set, uint32_t *n) {
    *n = 0;
    if (s->sets[set].open == CLT_NONE && !s->no_memory && !s->too_large) {
        clt_item opened;
        s->n_heap = 0;
        for (uint32_t i = 0; i < s->sets[set].n; i++) push_calls_of(s, s->items[s->sets[set].at + i]);
        /* Nodes are made meanwhile and take the end of `items`: what was begun waits in a list of its own. */
        size_t begun = 0, cap = 0;
        clt_item *list = NULL;
        while (s->n_heap && !s->no_memory && !s->too_large) {
            if (!next_opened(s, &opened)) continue;
            push_calls_of(s, opened);
            if (!CLT_ROOM(list, cap, begun + 1)) s->no_memory = true;
            else list[begun++] = opened;
        }
        uint32_t open = (uint32_t)s->n_items;
        for (uint32_t i = 0; i < s->sets[set].n && !s->no_memory; i++) put_open(s, s->items[s->sets[set].at + i]);
        for (size_t i = 0; i < begun && !s->no_memory; i++) put_open(s, list[i]);
        clt_free(list);
        s->sets[set].n_open = (uint32_t)s->n_items - open;
        s->sets[set].open = open;
    }
    if (s->no_memory || s->too_large) return s->items;
    *n = s->sets[set].n_open;
    return s->items + s->sets[set].open;
}

/* ---- steps ---- */

uint32_t clt_sets_start(clt_sets *s) {
    s->n_work = 0;
    if (s->n_sets == 1) {
        uint32_t dead = find_set(s);
        put(s, end_item);
        uint32_t end = find_set(s);
        if (dead != CLT_SET_DEAD || end != CLT_SET_END) return 0;
    }
    s->n_work = 0;
    put(s, (clt_item){s->g->rules[s->g->root].start, 0, 0, CLT_SET_END});
    return find_set(s);
}

bool clt_sets_ends(const clt_sets *s, uint32_t set) {
    return s->sets[set].n && s->items[s->sets[set].at].state == 0;
}

static void put_step(clt_sets *s, const clt_item *i, const clt_edge *e) {
    clt_item next = {e->to, i->need, i->left, i->node};
    if (e->kind == CLT_EXIT) {
        if (i->need) return;
        next.left = 0;
    } else if (e->kind == CLT_COUNT) {
        if (i->left == 0) return;
        next.left -= next.left != CLT_MANY;
        next.need -= next.need > 0;
    }
    if (e->kind == CLT_EXIT || in_bounds(s, next.state, next.need, next.left)) put(s, next);
}

uint32_t clt_sets_step(clt_sets *s, uint32_t set, uint8_t byte) {
    uint32_t n;
    const clt_item *open = clt_sets_open(s, set, &n);
    s->n_work = 0;
    for (uint32_t k = 0; k < n; k++) {
        const clt_state *st = &s->g->states[open[k].state];
        for (uint32_t e = st->edge; e < st->edge + st->n_edges; e++) {
            const clt_edge *edge = &s->g->edges[e];
            if (byte >= edge->lo && byte <= edge->hi) put_step(s, &open[k], edge);
        }
    }
    return find_set(s);
}

uint32_t clt_sets_row(clt_sets *s, uint32_t set) {
    uint32_t width = s->g->n_classes, row = s->sets[set].row;
    if (row != CLT_NONE) return row;
    if (s->n_rows > UINT32_MAX / 2 || !CLT_ROOM(s->rows, s->cap_rows, s->n_rows + width) ||
        !CLT_ROOM(s->row_info, s->cap_row_info, s->n_rows / width + 1)) {
        s->no_memory = true;
        return 0;
    }
    row = s->sets[set].row = (uint32_t)s->n_rows;
    s->row_info[row / width] = (struct clt_row){.set = set};
    memset(s->rows + row, set == CLT_SET_DEAD ? 0 : 0xFF, width * sizeof *s->rows);
    s->n_rows += width;
    return row;
}

uint32_t clt_sets_walk(clt_sets *s, uint32_t row, uint8_t byte) {
    uint32_t *known = &s->rows[row + s->g->class_of[byte]];
    if (*known != CLT_NONE) return *known;
    uint32_t next = clt_sets_step(s, s->row_info[row / s->g->n_classes].set, byte);
    uint32_t next_row = s->no_memory || s->too_large ? 0 : clt_sets_row(s, next);
    if (s->no_memory || s->too_large) return 0;
    s->rows[row + s->g->class_of[byte]] = next_row;
    return next_row;
}

/* ---- characters that change nothing ---- */

/* Whether bytes lo..hi, and then tail - 1 more of any, lead from `at` to `home`. Bytes of one class are tried once. */
static bool all_return(clt_sets *s, uint32_t home, uint32_t at, unsigned lo, unsigned hi, unsigned tail) {
    const uint8_t *class_of = s->g->class_of;
    for (unsigned b = lo; b <= hi; b++) {
        if (b > lo && class_of[b] == class_of[b - 1]) continue;
        uint32_t next = clt_sets_walk(s, at, (uint8_t)b);
        if (next == 0 || (tail == 1 ? next != home : !all_return(s, home, next, 0x80, 0xBF, tail - 1))) return false;
    }
    return true;
}

static bool lead_returns(clt_sets *s, uint32_t home, unsigned lead) {
    unsigned lo = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80, hi = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    uint32_t next = clt_sets_walk(s, home, (uint8_t)lead);
    return next != 0 && all_return(s, home, next, lo, hi, lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3);
}

static void find_stays(clt_sets *s, uint32_t row) {
    clt_charset stays = {{0}};
    for (unsigned b = 0; b < 0xF5 && !s->no_memory && !s->too_large; b = b == 0x7F ? 0xC2 : b + 1) {
        if (b < 0x80 ? clt_sets_walk(s, row, (uint8_t)b) != row : !lead_returns(s, row, b)) continue;
        unsigned bit = clt_charset_bit(b);
        stays.bits[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    s->row_info[row / s->g->n_classes].stays = stays;
}

bool clt_sets_stays(clt_sets *s, uint32_t row, const clt_charset *characters) {
    enum { WORTH = 4 };
    struct clt_row *info = &s->row_info[row / s->g->n_classes];
    if (info->met < WORTH && ++info->met < WORTH) return false;
    if (info->met == WORTH) {
        info->met++;
        find_stays(s, row);
        info = &s->row_info[row / s->g->n_classes];
    }
    for (int k = 0; k < 3; k++)
        if (characters->bits[k] & ~info->stays.bits[k]) return false;
    return true;
}

/* ---- counts that no token can tell apart ---- */

uint32_t clt_sets_near(clt_sets *s, uint32_t set) {
    if (s->sets[set].near) return s->sets[set].near;
    uint32_t n = s->sets[set].n, near = set;
    bool same = true;
    for (uint32_t i = 0; i < n; i++) { /* nodes first: they are older sets, no deeper than the stack may be */
        clt_item item = s->items[s->sets[set].at + i];
        same &= item.node == 0 || clt_sets_near(s, item.node) == item.node;
        same &= item.need <= s->far && (item.left <= s->far || item.left == CLT_MANY);
    }
    if (!same) {
        s->n_work = 0;
        for (uint32_t i = 0; i < n; i++) {
            clt_item item = s->items[s->sets[set].at + i];
            if (item.node) item.node = s->sets[item.node].near;
            if (item.need > s->far) item.need = s->far;
            if (item.left > s->far) item.left = CLT_MANY;
            put(s, item);
        }
        near = find_set(s);
    }
    if (s->no_memory || s->too_large) return CLT_SET_DEAD;
    s->sets[near].near = near;
    s->sets[set].near = near;
    return near;
}

/* ---- less memory ---- */

/* Copies the items of an old set, whose nodes have been copied before, as a new one. */
static uint32_t copy_set(clt_sets *to, const clt_sets *from, uint32_t set, const uint32_t *now) {
    to->n_work = 0;
    for (uint32_t i = 0; i < from->sets[set].n; i++) {
        clt_item item = from->items[from->sets[set].at + i];
        if (item.node) item.node = now[item.node];
        put(to, item);
    }
    return find_set(to);
}

bool clt_sets_copy(const clt_sets *from, clt_sets *to, uint32_t *kept, size_t n) {
    uint32_t *now = clt_calloc(from->n_sets, sizeof *now);
    if (!now) return false;
    for (size_t i = 0; i < n; i++) now[kept[i]] = 1;
    for (uint32_t set = (uint32_t)from->n_sets; set-- > 1;) { /* nodes are older than the sets that hold them */
        for (uint32_t i = 0; now[set] && i < from->sets[set].n; i++) now[from->items[from->sets[set].at + i].node] = 1;
    }
    for (uint32_t set = 1; set < from->n_sets; set++)
        if (now[set]) now[set] = copy_set(to, from, set, now);
    for (size_t i = 0; i < n; i++) kept[i] = now[kept[i]];
    clt_free(now);
    return !to->no_memory && !to->too_large;
}

bool clt_sets_shrink(clt_sets *s, uint32_t *kept, size_t n) {
    clt_sets fresh;
    uint32_t *copied = clt_calloc(n, sizeof *copied);
    bool ok = clt_sets_init(&fresh, s->g, 0) && copied;
    fresh.far = s->far;
    if (ok) memcpy(copied, kept, n * sizeof *kept);
    ok = ok && clt_sets_copy(s, &fresh, copied, n);
    if (ok) {
        memcpy(kept, copied, n * sizeof *kept);
        clt_sets_free(s);
        *s = fresh;
    } else {
        clt_sets_free(&fresh);
    }
    clt_free(copied);
    return ok;
}
