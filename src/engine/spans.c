/* Where soft tokens stand in a timeline: runs of placeholder ids and media in, spans out; and how two timelines compare. */
#include <string.h>
#include "base/mem.h"
#include "engine/media.h"

void clt_spans_free(clt_spans *s) {
    for (size_t i = 0; i < s->n; i++) clt_soft_free(s->item[i].soft);
    clt_free(s->item);
    *s = (clt_spans){0};
}

clt_status clt_spans_add(clt_spans *s, size_t first, size_t n, clt_soft *soft, clt_err *err) {
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 8;
        clt_span *grown = clt_realloc(s->item, cap * sizeof *grown);
        if (!grown) return clt_fail_memory(err, "the prompt's pictures", cap * sizeof *grown);
        s->item = grown, s->cap = cap;
    }
    s->item[s->n++] = (clt_span){first, n, clt_soft_keep(soft)};
    return CLT_OK;
}

/* ---- placing ---- */

/* The parts of all media, one after the other. */
typedef struct part_cursor {
    culet_media *const *media;
    size_t n_media, m, p;
} part_cursor;

static clt_soft *next_part(part_cursor *c, culet_media_kind *kind) {
    while (c->m < c->n_media && c->p == c->media[c->m]->n_parts) c->m++, c->p = 0;
    if (c->m == c->n_media) return NULL;
    *kind = c->media[c->m]->info.kind;
    return c->media[c->m]->part[c->p++];
}

static bool slot_kind(const clt_vocab_roles *roles, int32_t id, culet_media_kind *kind) {
    if (id < 0) return false;
    if (id == roles->image_slot) *kind = CULET_IMAGE;
    else if (id == roles->audio_slot) *kind = CULET_AUDIO;
    else if (id == roles->video_slot) *kind = CULET_VIDEO;
    else return false;
    return true;
}

static const char *kind_name(culet_media_kind kind) {
    static const char *const names[] = {"picture", "sound", "video frame"};
    return names[kind];
}

static clt_status misplaced(size_t at, culet_media_kind place, size_t n, culet_media_kind given, size_t tokens,
                            clt_err *err) {
    if (place != given)
        return clt_fail(err, CLT_E_USAGE, "prompt: at position %zu a %s is to stand, a %s was given", at, kind_name(place),
                        kind_name(given));
    return clt_fail(err, CLT_E_USAGE, "prompt: the %zu placeholders at position %zu are for a %s of %zu soft tokens, "
                    "expected as many", n, at, kind_name(place), tokens);
}

static clt_status place(const clt_vocab_roles *roles, const int32_t *ids, size_t n, part_cursor *parts, clt_spans *out,
                        clt_err *err) {
    size_t runs = 0;
    for (size_t i = 0, end; i < n; i = end) {
        culet_media_kind kind, given;
        end = i + 1;
        if (!slot_kind(roles, ids[i], &kind)) continue;
        while (end < n && ids[end] == ids[i]) end++;
        clt_soft *soft = next_part(parts, &given);
        runs++;
        if (!soft)
            return clt_fail(err, CLT_E_USAGE, "prompt: it has more places for media than the %zu that were given", runs - 1);
        if (given != kind || soft->tokens != end - i) return misplaced(i, kind, end - i, given, soft->tokens, err);
        clt_status status = clt_spans_add(out, i, end - i, soft, err);
        if (status != CLT_OK) return status;
    }
    culet_media_kind left;
    size_t more = 0;
    while (next_part(parts, &left)) more++;
    if (!more) return CLT_OK;
    return clt_fail(err, CLT_E_USAGE, "prompt: it has places for %zu pictures, sounds or frames, %zu were given", runs,
                    runs + more);
}

clt_status clt_spans_place(const clt_vocab_roles *roles, const int32_t *ids, size_t n, culet_media *const *media,
                           size_t n_media, clt_spans *out, clt_err *err) {
    part_cursor parts = {.media = media, .n_media = n_media};
    if (n_media == 0) return CLT_OK; /* placeholders without media are embeddings of themselves */
    clt_status status = place(roles, ids, n, &parts, out, err);
    if (status != CLT_OK) clt_spans_free(out);
    return status;
}

/* ---- cutting and comparing ---- */

void clt_spans_cut(clt_spans *s, size_t n) {
    while (s->n && s->item[s->n - 1].first >= n) clt_soft_free(s->item[--s->n].soft);
    clt_span *last = s->n ? &s->item[s->n - 1] : NULL;
    if (last && last->first + last->n > n) last->n = n - last->first;
}

const clt_span *clt_spans_at(const clt_spans *s, size_t i) {
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->item[mid].first + s->item[mid].n <= i) lo = mid + 1;
        else hi = mid;
    }
    return lo < s->n && s->item[lo].first <= i ? &s->item[lo] : NULL;
}

static size_t equal_rows(const clt_soft *a, const clt_soft *b, size_t n) {
    size_t i = 0, width = (size_t)a->width;
    if (a == b) return n;
    while (i < n && memcmp(a->rows + i * width, b->rows + i * width, width * sizeof *a->rows) == 0) i++;
    return i;
}

size_t clt_spans_common(const clt_spans *a, const clt_spans *b, size_t limit, bool whole) {
    for (size_t i = 0; i < a->n || i < b->n; i++) {
        const clt_span *p = i < a->n ? &a->item[i] : NULL, *q = i < b->n ? &b->item[i] : NULL;
        size_t first = !p || (q && q->first < p->first) ? q->first : p->first;
        if (first >= limit) return limit;
        if (!p || !q || p->first != q->first) return first; /* soft tokens against embeddings */
        size_t n = p->n < q->n ? p->n : q->n, same = equal_rows(p->soft, q->soft, n);
        if (whole && (same < n || p->n != q->n)) return first;
        if (same < n) return first + same < limit ? first + same : limit;
        if (p->n != q->n) return first + n < limit ? first + n : limit;
    }
    return limit;
}
