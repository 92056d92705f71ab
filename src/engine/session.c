/* A session: one timeline of tokens with its keys and values. In: ids to agree with. Out: logits of the last one.
 *
 * The timeline `ids[0..n)` is what the caller sees; the cache has evaluated a beginning of it. What is missing (after a
 * rewind further than the sliding layers can cut back, or behind the last sampled token) is evaluated when logits are next
 * wanted.
 * Passes are cut into pieces of `rows` tokens; the bits do not depend on where. */
#include <string.h>
#include "base/mem.h"
#include "base/os.h"
#include "engine/impl.h"

enum { DEFAULT_BATCH = 2048, DEFAULT_UBATCH = 512, MAX_ROWS = 1 << 16, LOGITS_BYTES = 64 << 20 };

/* ---- opening ---- */

void culet_session_defaults(culet_session_params *p) {
    *p = (culet_session_params){.kv_k = CULET_KV_F16, .kv_v = CULET_KV_F16};
}

clt_type clt_kv_type_of(culet_kv_type t) {
    switch (t) {
    case CULET_KV_F32: return CLT_F32;
    case CULET_KV_F16: return CLT_F16;
    case CULET_KV_Q8_0: return CLT_Q8_0;
    }
    return CLT_IQ4_XS;
}

clt_status clt_session_settle(const culet_engine *e, const culet_session_params *p, culet_session_params *out,
                              clt_err *err) {
    int limit = e->info.context_limit;
    *out = *p;
    if (p->context < 0) return clt_fail(err, CLT_E_USAGE, "context: %d is less than 0 (0 = as large as usual)", p->context);
    if (p->batch < 0 || p->ubatch < 0)
        return clt_fail(err, CLT_E_USAGE, "batch: %d and %d, expected at least 0 (0 = as usual)", p->batch, p->ubatch);
    if (p->context > limit) {
        clt_fail(err, CLT_E_USAGE, "context: %d tokens are more than the model's limit of %d", p->context, limit);
        return clt_hint(err, "ask for at most %d", limit);
    }
    if (clt_kv_type_of(p->kv_k) == CLT_IQ4_XS || clt_kv_type_of(p->kv_v) == CLT_IQ4_XS)
        return clt_fail(err, CLT_E_UNSUPPORTED, "KV types: %d and %d are not among f32, f16 and q8_0", p->kv_k, p->kv_v);
    if (out->context == 0) out->context = limit < CLT_DEFAULT_CONTEXT ? limit : CLT_DEFAULT_CONTEXT;
    if (out->batch == 0) out->batch = DEFAULT_BATCH;
    if (out->ubatch == 0) out->ubatch = DEFAULT_UBATCH;
    if (out->ubatch > out->batch) out->ubatch = out->batch;
    if (out->ubatch > out->context) out->ubatch = out->context;
    if (out->ubatch > MAX_ROWS) out->ubatch = MAX_ROWS;
    return CLT_OK;
}

static clt_status allocate(culet_session *s, clt_err *err) {
    const culet_engine *e = s->engine;
    size_t vocab = (size_t)e->info.vocab;
    s->row = clt_calloc((size_t)s->rows, sizeof *s->row);
    s->ids = clt_calloc((size_t)s->context, sizeof *s->ids);
    s->logits = clt_calloc(vocab, sizeof *s->logits);
    if (!s->row || !s->ids || !s->logits)
        return clt_fail_memory(err, "session", (size_t)s->rows * sizeof *s->row + (size_t)s->context * 4 + vocab * 4);
    clt_status status = clt_sampler_create(e->info.vocab, &s->sampler, err);
    if (status == CLT_OK) status = clt_scratch_create(e->net, s->rows, &s->scratch, err);
    if (status == CLT_OK) status = clt_kv_create(&e->model, s->context, s->rows, s->k_type, s->v_type, &s->kv, err);
    return status;
}

culet_status culet_session_open(culet_engine *e, const culet_session_params *p, culet_session **out, culet_error *err) {
    clt_err inner;
    culet_session_params settled;
    *out = NULL;
    if (!e->net)
        return clt_report(clt_fail(&inner, CLT_E_USAGE, "session: the model was not opened to be run"), &inner, err);
    clt_plan plan;
    clt_status status = clt_session_settle(e, p, &settled, &inner);
    if (status == CLT_OK) status = clt_plan_make(e, &settled, 1, &plan, &inner);
    if (status == CLT_OK) status = clt_plan_check(e, &plan, true, &inner);
    if (status != CLT_OK) return clt_report(status, &inner, err);
    culet_session *s = clt_calloc(1, sizeof *s);
    if (!s) return clt_report(clt_fail_memory(&inner, "session", sizeof *s), &inner, err);
    s->engine = e;
    s->context = settled.context;
    s->rows = settled.ubatch;
    s->k_type = clt_kv_type_of(settled.kv_k);
    s->v_type = clt_kv_type_of(settled.kv_v);
    status = allocate(s, &inner);
    if (status != CLT_OK) culet_session_close(s);
    else *out = s;
    return clt_report(status, &inner, err);
}

void culet_session_close(culet_session *s) {
    if (!s) return;
    clt_kv_free(s->kv);
    clt_scratch_free(s->scratch);
    clt_sampler_free(s->sampler);
    clt_free(s->row);
    clt_free(s->ids);
    clt_free(s->logits);
    if (s->every) clt_pages_free(s->every, s->every_rows * (size_t)s->engine->info.vocab * sizeof *s->every);
    clt_free(s);
}

int culet_session_context(const culet_session *s) {
    return s->context;
}

uint64_t culet_session_kv_bytes(const culet_session *s) {
    return clt_kv_bytes(s->kv);
}

const int32_t *culet_session_tokens(const culet_session *s, size_t *n) {
    *n = s->n;
    return s->ids;
}

const float *culet_session_logits(const culet_session *s) {
    return s->has_logits ? s->logits : NULL;
}

void culet_session_cancel(culet_session *s) {
    atomic_store(&s->cancelled, 1);
}

/* ---- evaluation ---- */

/* One pass over the next `count` waiting tokens; every: logits of all rows, else of the last row if it ends the timeline. */
static clt_status pass(culet_session *s, size_t count, bool every, float *logits, clt_err *err) {
    size_t done = (size_t)clt_kv_length(s->kv);
    for (size_t i = 0; i < count; i++)
        s->row[i] = (clt_row){.kv = s->kv, .id = s->ids[done + i], .want_logits = every || done + i + 1 == s->n};
    s->has_logits = false;
    pthread_mutex_lock(&s->engine->busy);
    clt_pool_limit(s->engine->pool, count > 1 ? s->engine->info.threads_batch : s->engine->info.threads);
    clt_scratch_set_profile(s->scratch, s->engine->profiling ? s->engine->profile : NULL);
    clt_status status = clt_forward(s->engine->net, s->scratch, s->row, (int)count, logits, &s->cancelled, err);
    pthread_mutex_unlock(&s->engine->busy);
    return status;
}

void clt_session_profile_sampling(culet_session *s, double ms) {
    if (!s->engine->profiling) return;
    pthread_mutex_lock(&s->engine->busy);
    clt_profile_add(s->engine->profile, CLT_STAGE_SAMPLING, ms);
    pthread_mutex_unlock(&s->engine->busy);
}

static bool report_progress(culet_session *s, size_t done) {
    return !s->on_progress || s->on_progress(s->progress_user, done, s->n);
}

static clt_status cancelled(clt_err *err) {
    return clt_fail(err, CLT_E_CANCELLED, "cancelled");
}

clt_status clt_session_catch_up(culet_session *s, clt_err *err) {
    size_t done;
    while ((done = (size_t)clt_kv_length(s->kv)) < s->n) {
        size_t count = s->n - done < (size_t)s->rows ? s->n - done : (size_t)s->rows;
        if (atomic_load(&s->cancelled)) return cancelled(err);
        clt_status status = pass(s, count, false, s->logits, err);
        if (status != CLT_OK) return status;
        if (!report_progress(s, done + count)) return cancelled(err);
    }
    s->has_logits = s->n > 0;
    return CLT_OK;
}

/* Cuts the timeline, and the cache as far as it can be cut. */
static void cut(culet_session *s, size_t n) {
    if (n < s->n) s->n = n;
    if ((size_t)clt_kv_length(s->kv) <= n) return;
    s->has_logits = false;
    if (!clt_kv_rewind(s->kv, (int)n)) clt_kv_rewind(s->kv, 0);
}

/* After a failure or a cancellation the timeline is what has been evaluated. */
static clt_status settle_failure(culet_session *s, clt_status status) {
    if (status != CLT_OK) s->n = (size_t)clt_kv_length(s->kv);
    return status;
}

void clt_session_append(culet_session *s, int32_t id) {
    s->ids[s->n++] = id;
}

static clt_status check_ids(const culet_session *s, const int32_t *ids, size_t n, size_t before, clt_err *err) {
    if (n > (size_t)s->context - before) {
        clt_fail(err, CLT_E_CONTEXT, "the prompt has %zu tokens, the context holds %d", n + before, s->context);
        int limit = s->engine->info.context_limit;
        if (s->context < limit) return clt_hint(err, "use a larger context (-c, at most %d) or a shorter prompt", limit);
        return clt_hint(err, "the model's limit is %d tokens: shorten the prompt", limit);
    }
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= s->engine->info.vocab)
            return clt_fail(err, CLT_E_USAGE, "id %d at position %zu is not in the vocabulary of %d ids", ids[i], before + i,
                            s->engine->info.vocab);
    return CLT_OK;
}

static size_t common_prefix(const culet_session *s, const int32_t *ids, size_t n) {
    size_t limit = n < s->n ? n : s->n, i = 0;
    while (i < limit && s->ids[i] == ids[i]) i++;
    return i;
}

clt_status clt_session_sync(culet_session *s, const int32_t *ids, size_t n, size_t *reused, clt_err *err) {
    clt_status status = check_ids(s, ids, n, 0, err);
    if (status != CLT_OK) return status;
    size_t kept = common_prefix(s, ids, n);
    bool ready = kept == n && (size_t)clt_kv_length(s->kv) == n && s->has_logits;
    if (ready) {
        s->n = n;
    } else {
        /* At least the last token is evaluated, because its logits are wanted. */
        cut(s, kept < n || n == 0 ? kept : n - 1);
        memcpy(s->ids + s->n, ids + s->n, (n - s->n) * sizeof *ids);
        s->n = n;
    }
    if (reused) *reused = (size_t)clt_kv_length(s->kv);
    return settle_failure(s, clt_session_catch_up(s, err));
}

culet_status culet_session_sync(culet_session *s, const int32_t *ids, size_t n, size_t *reused, culet_error *err) {
    clt_err inner;
    atomic_store(&s->cancelled, 0);
    return clt_report(clt_session_sync(s, ids, n, reused, &inner), &inner, err);
}

culet_status culet_session_extend(culet_session *s, const int32_t *ids, size_t n, culet_error *err) {
    clt_err inner;
    atomic_store(&s->cancelled, 0);
    clt_status status = n > 0 ? check_ids(s, ids, n, s->n, &inner) : clt_fail(&inner, CLT_E_USAGE, "extend: no ids given");
    if (status == CLT_OK) {
        memcpy(s->ids + s->n, ids, n * sizeof *ids);
        s->n += n;
        status = settle_failure(s, clt_session_catch_up(s, &inner));
    }
    return clt_report(status, &inner, err);
}

culet_status culet_session_rewind(culet_session *s, size_t n, culet_error *err) {
    clt_err inner;
    if (n > s->n) {
        clt_fail(&inner, CLT_E_USAGE, "rewind: to %zu tokens, the timeline has %zu", n, s->n);
        return clt_report(CLT_E_USAGE, &inner, err);
    }
    cut(s, n);
    return clt_report(CLT_OK, &inner, err);
}

/* ---- logits of every row ---- */

typedef bool (*row_fn)(void *user, size_t row, const float *logits);

/* Room for the logits of one pass, kept from call to call: clearing the pages anew takes as long as a few rows. */
static clt_status reserve_rows(culet_session *s, size_t n, clt_err *err) {
    size_t row_bytes = (size_t)s->engine->info.vocab * sizeof(float), rows = LOGITS_BYTES / row_bytes;
    if (rows > (size_t)s->rows) rows = (size_t)s->rows;
    if (rows > n) rows = n;
    if (rows == 0) rows = 1;
    if (rows <= s->every_rows) return CLT_OK;
    float *logits = clt_pages_alloc(rows * row_bytes);
    if (!logits) return clt_fail_memory(err, "logits", rows * row_bytes);
    clt_pages_free(s->every, s->every_rows * row_bytes);
    s->every = logits;
    s->every_rows = rows;
    return CLT_OK;
}

/* Evaluates all that waits, behind which nothing has logits yet. */
static clt_status every_row(culet_session *s, row_fn fn, void *user, clt_err *err) {
    size_t vocab = (size_t)s->engine->info.vocab, first = (size_t)clt_kv_length(s->kv), done;
    float *logits = s->every;
    while ((done = (size_t)clt_kv_length(s->kv)) < s->n) {
        size_t count = s->n - done < s->every_rows ? s->n - done : s->every_rows;
        if (atomic_load(&s->cancelled)) return cancelled(err);
        clt_status status = pass(s, count, true, logits, err);
        if (status != CLT_OK) return status;
        for (size_t i = 0; fn && i < count; i++)
            if (!fn(user, done - first + i, logits + i * vocab)) return cancelled(err);
        if (done + count == s->n) memcpy(s->logits, logits + (count - 1) * vocab, vocab * sizeof *logits);
    }
    s->has_logits = s->n > 0;
    return CLT_OK;
}

culet_status culet_session_logits_all(culet_session *s, const int32_t *ids, size_t n, row_fn fn, void *user,
                                      culet_error *err) {
    clt_err inner;
    atomic_store(&s->cancelled, 0);
    clt_status status = check_ids(s, ids, n, 0, &inner);
    if (status == CLT_OK) status = reserve_rows(s, n, &inner);
    if (status != CLT_OK) return clt_report(status, &inner, err);
    cut(s, 0);
    if (n) memcpy(s->ids, ids, n * sizeof *ids);
    s->n = n;
    return clt_report(settle_failure(s, every_row(s, fn, user, &inner)), &inner, err);
}

culet_status culet_session_extend_all(culet_session *s, const int32_t *ids, size_t n, row_fn fn, void *user,
                                      culet_error *err) {
    clt_err inner;
    atomic_store(&s->cancelled, 0);
    clt_status status = n > 0 ? check_ids(s, ids, n, s->n, &inner) : clt_fail(&inner, CLT_E_USAGE, "extend: no ids given");
    if (status == CLT_OK) status = reserve_rows(s, n, &inner);
    if (status != CLT_OK) return clt_report(status, &inner, err);
    /* What an earlier call left waiting goes first; nobody wants its logits. */
    status = clt_session_catch_up(s, &inner);
    if (status == CLT_OK) {
        memcpy(s->ids + s->n, ids, n * sizeof *ids);
        s->n += n;
        status = every_row(s, fn, user, &inner);
    }
    return clt_report(settle_failure(s, status), &inner, err);
}

void clt_session_adopt(culet_session *s, clt_kv *kv, const int32_t *ids, size_t n, const float *logits) {
    clt_kv_free(s->kv);
    s->kv = kv;
    if (n) memcpy(s->ids, ids, n * sizeof *ids);
    s->n = n;
    s->has_logits = logits != NULL;
    if (logits) memcpy(s->logits, logits, (size_t)s->engine->info.vocab * sizeof *logits);
}
