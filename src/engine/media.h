/* Soft tokens within the engine: what a tower made of one picture or sound, counted, and where they lie in a timeline. */
#ifndef CLT_ENGINE_MEDIA_H
#define CLT_ENGINE_MEDIA_H
#include <stdatomic.h>
#include "base/buf.h"
#include "base/err.h"
#include "culet.h"
#include "text/vocab.h"

/* ---- soft.c: soft tokens, immutable once made ---- */
typedef struct clt_soft {
    atomic_int holders;
    culet_media_kind kind;      /* CULET_IMAGE or CULET_AUDIO */
    size_t tokens;
    int64_t width;
    culet_media_info info;      /* without the times */
    char key[80];               /* digest of what they were made of, and the budget; "" = cannot be told */
    float rows[];               /* [tokens][width] */
} clt_soft;
clt_soft *clt_soft_new(culet_media_kind kind, size_t tokens, int64_t width); /* one holder; NULL: no memory */
clt_soft *clt_soft_keep(clt_soft *s);
void clt_soft_free(clt_soft *s); /* one holder less */
size_t clt_soft_bytes(const clt_soft *s);

/* What was made lately. Thread-safe; the least recently used ones go. */
typedef struct clt_soft_cache clt_soft_cache;
clt_soft_cache *clt_soft_cache_create(size_t max_bytes);
void clt_soft_cache_free(clt_soft_cache *c);
clt_soft *clt_soft_cache_find(clt_soft_cache *c, const char *key); /* one more holder, the caller; NULL: not there */
void clt_soft_cache_put(clt_soft_cache *c, clt_soft *s);           /* the cache holds it, too */

/* A video is its frames in order. */
struct culet_media {
    atomic_int holders;
    culet_media_info info;
    clt_soft **part;            /* [n_parts] */
    double *seconds;            /* [n_parts] of a video, else NULL */
    size_t n_parts;
};

/* ---- spans.c: where soft tokens stand in a timeline ---- */
typedef struct clt_span {
    size_t first, n;            /* positions; n may be less than the soft tokens where a timeline was cut */
    clt_soft *soft;
} clt_span;
typedef struct clt_spans {
    clt_span *item;             /* ascending, apart from each other */
    size_t n, cap;
} clt_spans;
void clt_spans_free(clt_spans *s);
/* Adds a span behind the others and holds its soft tokens. */
clt_status clt_spans_add(clt_spans *s, size_t first, size_t n, clt_soft *soft, clt_err *err);
/* The runs of placeholders of ids take the parts of the media in order. CLT_E_USAGE: other counts, kinds or lengths. */
clt_status clt_spans_place(const clt_vocab_roles *roles, const int32_t *ids, size_t n, culet_media *const *media,
                           size_t n_media, clt_spans *out, clt_err *err);
void clt_spans_cut(clt_spans *s, size_t n);     /* of a timeline of n tokens */
/* The span that position i lies in; NULL: none. */
const clt_span *clt_spans_at(const clt_spans *s, size_t i);
/* Two timelines whose first `limit` ids are equal: how far their spans are, too. whole: rows of a picture depend on all of
 * it, so that pictures of different length differ from their first row on. */
size_t clt_spans_common(const clt_spans *a, const clt_spans *b, size_t limit, bool whole);

#endif
