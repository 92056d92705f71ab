/* Names: a hash table from tensor names and metadata keys to numbers, and the ways that names appear in error texts.
 * The table is seeded anew for each file, so that a file cannot choose names that collide. */
#include "base/hash.h"
#include "base/random.h"
#include "base/utf8.h"
#include "file/impl.h"

enum { FIRST_CAP = 256, LIST_NAMES = 100, SHOWN_MAX = 300 };

/* The slot that holds the name, or the free slot where it belongs. The table is never full. */
static clt_name *slot_of(clt_name *slots, size_t cap, const char *name, uint64_t hash) {
    size_t i = (size_t)hash & (cap - 1);
    while (slots[i].name && (slots[i].hash != hash || strcmp(slots[i].name, name) != 0)) i = (i + 1) & (cap - 1);
    return &slots[i];
}

static clt_status grow(clt_names *t, clt_err *err) {
    size_t cap = t->cap ? t->cap * 2 : FIRST_CAP;
    clt_name *slots = clt_calloc(cap, sizeof *slots);
    if (!slots) return clt_fail_memory(err, "table of names", cap * sizeof *slots);
    if (!t->cap) t->seed = clt_random_entropy();
    for (size_t i = 0; i < t->cap; i++)
        if (t->slots[i].name) *slot_of(slots, cap, t->slots[i].name, t->slots[i].hash) = t->slots[i];
    clt_free(t->slots);
    t->slots = slots;
    t->cap = cap;
    return CLT_OK;
}

clt_status clt_names_add(clt_names *t, const char *name, uint32_t id, uint32_t shard, const clt_name **old, clt_err *err) {
    *old = NULL;
    if (t->len * 2 >= t->cap) {
        clt_status st = grow(t, err);
        if (st) return st;
    }
    uint64_t hash = clt_hash64(name, strlen(name), t->seed);
    clt_name *slot = slot_of(t->slots, t->cap, name, hash);
    if (slot->name) {
        *old = slot;
        return CLT_OK;
    }
    *slot = (clt_name){name, hash, id, shard};
    t->len++;
    return CLT_OK;
}

const clt_name *clt_names_find(const clt_names *t, const char *name) {
    if (!t->cap) return NULL;
    const clt_name *slot = slot_of(t->slots, t->cap, name, clt_hash64(name, strlen(name), t->seed));
    return slot->name ? slot : NULL;
}

void clt_names_free(clt_names *t) {
    clt_free(t->slots);
    *t = (clt_names){0};
}

void clt_name_list_add(clt_name_list *l, const char *name) {
    char shown[CLT_SHOWN_BYTES];
    if (l->n++ >= LIST_NAMES) return;
    clt_buf_printf(&l->text, "%s%s", l->n > 1 ? ", " : "", clt_shown(shown, name, strlen(name)));
}

const char *clt_name_list_end(clt_name_list *l) {
    if (l->n > LIST_NAMES) clt_buf_printf(&l->text, " and %zu more", l->n - LIST_NAMES);
    return l->text.data && !l->text.failed ? l->text.data : "(no memory to list them)";
}

const char *clt_shown(char out[CLT_SHOWN_BYTES], const void *bytes, uint64_t n) {
    static const char hex[] = "0123456789ABCDEF";
    const char *s = bytes;
    size_t used = 0;
    uint64_t i = 0;
    while (i < n && used < SHOWN_MAX) {
        uint32_t cp = 0;
        size_t len = clt_utf8_decode(s + i, n - i > 4 ? 4 : (size_t)(n - i), &cp);
        if (len == 0 || cp < 0x20 || (cp >= 0x7F && cp < 0xA0)) {
            unsigned c = (unsigned char)s[i++];
            const char esc[6] = {'<', '0', 'x', hex[c >> 4], hex[c & 15], '>'};
            memcpy(out + used, esc, sizeof esc);
            used += sizeof esc;
            continue;
        }
        memcpy(out + used, s + i, len);
        used += len;
        i += len;
    }
    memcpy(out + used, i < n ? "\xe2\x80\xa6" : "", i < n ? 4 : 1);
    return out;
}
