/* Evaluating ahead: a token of the timeline and drafts behind it share one pass; the cache is cut back to what came true.
 *
 * What the cache holds then is what it would hold without drafts: slots beyond the end are never read, and rings have slack
 * for the longest draft. */
#include <string.h>
#include "engine/impl.h"
#include "engine/speculate.h"

size_t clt_session_ahead_room(const culet_session *s) {
    size_t rows = (size_t)s->chunk - 1, left = (size_t)s->context - s->n;
    if (rows > CLT_DRAFT_MOST) rows = CLT_DRAFT_MOST;
    return rows < left ? rows : left;
}

clt_status clt_session_try(culet_session *s, const int32_t *draft, size_t n, clt_err *err) {
    clt_status status = clt_session_reserve_rows(s, n + 1, err);
    if (status != CLT_OK) return status;
    memcpy(s->ids + s->n, draft, n * sizeof *draft);
    status = clt_session_pass(s, n + 1, true, s->every, err);
    if (status == CLT_OK) s->ahead_from = s->n - 1, s->ahead = n + 1;
    return status;
}

/* Of the token at position `at`, which the last pass evaluated. */
static const float *row_of(const culet_session *s, size_t at) {
    return s->every + (at - s->ahead_from) * (size_t)s->engine->info.vocab;
}

const float *clt_session_current(const culet_session *s) {
    if (s->ahead) return row_of(s, s->n - 1);
    return s->has_logits && (size_t)clt_kv_length(s->kv) == s->n ? s->logits : NULL;
}

/* Leaves the cache as it is after `length` tokens, with the logits of the last of them. */
static void settle(culet_session *s, size_t length) {
    memcpy(s->logits, row_of(s, length - 1), (size_t)s->engine->info.vocab * sizeof *s->logits);
    s->has_logits = true;
    s->ahead = 0;
    if ((size_t)clt_kv_length(s->kv) > length) clt_kv_rewind(s->kv, (int)length);
}

void clt_session_append(culet_session *s, int32_t id) {
    bool drafted = s->ahead && s->n < s->ahead_from + s->ahead && s->ids[s->n] == id;
    if (s->ahead && !drafted) settle(s, s->n);
    s->ids[s->n++] = id;
}

void clt_session_end_ahead(culet_session *s, bool keep) {
    if (s->ahead) settle(s, keep ? s->n : s->n - 1);
}
