/* A session: one timeline of tokens with its keys and values. In: ids to agree with. Out: logits of the last one.
 *
 * The timeline `ids[0..n)` is what the caller sees; the cache has evaluated a beginning of it. What is missing (after a
 * rewind further than the sliding layers can cut back, or behind the last sampled token) is evaluated when logits are next
 * wanted.
 * Passes are cut into pieces of `chunk` tokens; the bits do not depend on where. Where tokens of a picture see each other, a
 * picture is never cut, and a timeline that is cut within one is evaluated again from the picture's first row on. */
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
    if (p->image_tokens < 0 || p->image_tokens > MAX_ROWS)
        return clt_fail(err, CLT_E_USAGE, "image_tokens: %d is not between 0 and %d", p->image_tokens, MAX_ROWS);
    if (out->image_tokens == 0) out->image_tokens = e->info.image_tokens;
    if (out->context == 0) out->context = limit < CLT_DEFAULT_CONTEXT ? limit : CLT_DEFAULT_CONTEXT;
    if (out->batch == 0) out->batch = DEFAULT_BATCH;
    if (out->ubatch == 0) out->ubatch = DEFAULT_UBATCH;
    if (out->ubatch > out->batch) out->ubatch = out->batch;
    if (out->ubatch > out->context) out->ubatch = out->context;
    if (out->ubatch > MAX_ROWS) out->ubatch = MAX_ROWS;
    return CLT_OK;
}

int clt_session_rows(const culet_engine *e, const culet_session_params *p) {
    int picture = p->image_tokens;
    if (!clt_towers_see(e->towers) || !e->model.config.picture_blocks) return p->ubatch;
    if (picture < p->ubatch) return p->ubatch;
    return picture < p->context ? picture : p->context;
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
    s->chunk = settled.ubatch;
    s->rows = clt_session_rows(e, &settled);
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
    clt_spans_free(&s->spans);
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

/* Tokens of a picture see each other. */
static bool in_blocks(const culet_session *s) {
    return s->engine->model.config.picture_blocks;
}

static bool is_block(const culet_session *s, const clt_span *p) {
    return p && p->soft->kind == CULET_IMAGE && in_blocks(s);
}

/* What the row of token i is made of: an embedding, or a soft token, whose per-layer embedding is that of padding. */
static clt_row row_at(const culet_session *s, size_t i) {
    clt_row row = {.kv = s->kv, .id = s->ids[i]};
    const clt_span *p = clt_spans_at(&s->spans, i);
    if (!p) return row;
    int32_t pad = clt_vocab_get_roles(s->engine->vocab)->pad;
    row.id = pad < 0 ? 0 : pad;
    row.soft = p->soft->rows + (i - p->first) * (size_t)p->soft->width;
    if (is_block(s, p)) row.block_end = (int)(p->first + p->n);
    return row;
}

/* How many of the waiting tokens go into the next pass: at most `most`, or a whole picture that does not fit into that. */
static size_t pass_length(const culet_session *s, size_t most) {
    size_t done = (size_t)clt_kv_length(s->kv), end = s->n - done < most ? s->n : done + most;
    const clt_span *p = end < s->n ? clt_spans_at(&s->spans, end) : NULL;
    if (is_block(s, p) && p->first < end) end = p->first > done ? p->first : p->first + p->n;
    return end - done;
}

/* One pass over the next `count` waiting tokens; every: logits of all rows, else of the last row if it ends the timeline. */
clt_status clt_session_pass(culet_session *s, size_t count, bool every, float *logits, clt_err *err) {
    size_t done = (size_t)clt_kv_length(s->kv);
    for (size_t i = 0; i < count; i++) {
        s->row[i] = row_at(s, done + i);
        s->row[i].want_logits = every || done + i + 1 == s->n;
    }
    s->has_logits = false;
    clt_turn_take(&s->engine->busy);
    clt_pool_limit(s->engine->pool, count > 1 ? s->engine->info.threads_batch : s->engine->info.threads);
    clt_scratch_set_profile(s->scratch, s->engine->profiling ? s->engine->profile : NULL);
    clt_status status = clt_forward(s->engine->net, s->scratch, s->row, (int)count, logits, &s->cancelled, err);
    clt_turn_give(&s->engine->busy);
    return status;
}

void clt_session_profile_sampling(culet_session *s, double ms) {
    if (!s->engine->profiling) return;
    clt_turn_take(&s->engine->busy);
    clt_profile_add(s->engine->profile, CLT_STAGE_SAMPLING, ms);
    clt_turn_give(&s->engine->busy);
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
        size_t count = pass_length(s, (size_t)s->chunk);
        if (atomic_load(&s->cancelled)) return cancelled(err);
        clt_status status = clt_session_pass(s, count, false, s->logits, err);
        if (status != CLT_OK) return status;
        if (!report_progress(s, done + count)) return cancelled(err);
    }
    s->has_logits = s->n > 0;
    return CLT_OK;
}

/* Cuts the timeline, and the cache as far as it can be cut. */
static void cut(culet_session *s, size_t n) {
    size_t kept = n;
    const clt_span *p = clt_spans_at(&s->spans, n);
    if (is_block(s, p) && p->first < n) kept = p->first;
    if (n < s->n) s->n = n;
    clt_spans_cut(&s->spans, n);
    if ((size_t)clt_kv_length(s->kv) <= kept) return;
    s->has_logits = false;
    if (!clt_kv_rewind(s->kv, (int)kept)) clt_kv_rewind(s->kv, 0);
}

/* After a failure or a cancellation the timeline is what has been evaluated. */
static clt_status settle_failure(culet_session *s, clt_status status) {
    if (status != CLT_OK) {
        s->n = (size_t)clt_kv_length(s->kv);
        clt_spans_cut(&s->spans, s->n);
    }
    return status;
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

static size_t common_prefix(const culet_session *s, const int32_t *ids, size_t n, const clt_spans *spans) {
    size_t limit = n < s->n ? n : s->n, i = 0;
    while (i < limit && s->ids[i] == ids[i]) i++;
    return clt_spans_common(&s->spans, spans, i, in_blocks(s));
}

/* Where the media of a prompt lie in it; checks all that can be wrong with either. */
static clt_status check_prompt(const culet_session *s, const int32_t *ids, size_t n, culet_media *const *media,
                               size_t n_media, clt_spans *spans, clt_err *err) {
    const culet_engine *e = s->engine;
    clt_status status = check_ids(s, ids, n, 0, err);
    if (status == CLT_OK) status = clt_spans_place(clt_vocab_get_roles(e->vocab), ids, n, media, n_media, spans, err);
    for (size_t i = 0; status == CLT_OK && i < spans->n; i++) {
        const clt_span *p = &spans->item[i];
        if (p->soft->width != e->info.width)
            status = clt_fail(err, CLT_E_USAGE,
                              "prompt: its media have width %lld, the model has %d: they are another model's",
                              (long long)p->soft->width, e->info.width);
        else if (is_block(s, p) && p->n > (size_t)s->rows) {
            clt_fail(err, CLT_E_USAGE, "prompt: a picture of %zu tokens, this session passes %d at once", p->n, s->rows);
            status = clt_hint(err, "open the session for larger pictures (--image-tokens %zu or -ub %zu)", p->n, p->n);
        }
    }
    if (status != CLT_OK) clt_spans_free(spans);
    return status;
}

clt_status clt_session_sync(culet_session *s, const int32_t *ids, size_t n, culet_media *const *media, size_t n_media,
                            size_t *reused, clt_err *err) {
    clt_spans spans = {0};
    clt_status status = check_prompt(s, ids, n, media, n_media, &spans, err);
    if (status != CLT_OK) return status;
    size_t kept = common_prefix(s, ids, n, &spans);
    bool ready = kept == n && (size_t)clt_kv_length(s->kv) == n && s->has_logits;
    /* At least the last token is evaluated, because its logits are wanted. */
    if (!ready) cut(s, kept < n || n == 0 ? kept : n - 1);
    if (n > s->n) memcpy(s->ids + s->n, ids + s->n, (n - s->n) * sizeof *ids);
    s->n = n;
    clt_spans_free(&s->spans);
    s->spans = spans;
    if (reused) *reused = (size_t)clt_kv_length(s->kv);
    return settle_failure(s, clt_session_catch_up(s, err));
}

culet_status culet_session_sync_media(culet_session *s, const int32_t *ids, size_t n, culet_media *const *media,
                                      size_t n_media, size_t *reused, culet_error *err) {
    clt_err inner;
    atomic_store(&s->cancelled, 0);
    return clt_report(clt_session_sync(s, ids, n, media, n_media, reused, &inner), &inner, err);
}

culet_status culet_session_sync(culet_session *s, const int32_t *ids, size_t n, size_t *reused, culet_error *err) {
    return culet_session_sync_media(s, ids, n, NULL, 0, reused, err);
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

/* Room for the logits of n rows, kept from call to call: clearing the pages anew takes as long as a few rows. */
clt_status clt_session_reserve_rows(culet_session *s, size_t n, clt_err *err) {
    size_t row_bytes = (size_t)s->engine->info.vocab * sizeof(float);
    if (n <= s->every_rows) return CLT_OK;
    float *logits = clt_pages_alloc(n * row_bytes);
    if (!logits) return clt_fail_memory(err, "logits", n * row_bytes);
    if (s->every) clt_pages_free(s->every, s->every_rows * row_bytes);
    s->every = logits;
    s->every_rows = n;
    return CLT_OK;
}

/* For n tokens, pass by pass. A picture that passes whole needs as many rows as it has. */
static clt_status reserve_rows(culet_session *s, size_t n, const clt_spans *spans, clt_err *err) {
    size_t row_bytes = (size_t)s->engine->info.vocab * sizeof(float), rows = LOGITS_BYTES / row_bytes;
    if (rows > (size_t)s->chunk) rows = (size_t)s->chunk;
    if (rows > n) rows = n;
    if (rows == 0) rows = 1;
    for (size_t i = 0; i < spans->n; i++)
        if (is_block(s, &spans->item[i]) && spans->item[i].n > rows) rows = spans->item[i].n;
    return clt_session_reserve_rows(s, rows, err);
}

/* Evaluates all that waits, behind which nothing has logits yet. */
static clt_status every_row(culet_session *s, row_fn fn, void *user, clt_err *err) {
    size_t vocab = (size_t)s->engine->info.vocab, first = (size_t)clt_kv_length(s->kv), done;
    float *logits = s->every;
    while ((done = (size_t)clt_kv_length(s->kv)) < s->n) {
        size_t count = pass_length(s, s->every_rows < (size_t)s->chunk ? s->every_rows : (size_t)s->chunk);
        if (atomic_load(&s->cancelled)) return cancelled(err);
        clt_status status = clt_session_pass(s, count, true, logits, err);
        if (status != CLT_OK) return status;
        for (size_t i = 0; fn && i < count; i++)
            if (!fn(user, done - first + i, logits + i * vocab)) return cancelled(err);
        if (done + count == s->n) memcpy(s->logits, logits + (count - 1) * vocab, vocab * sizeof *logits);
    }
    s->has_logits = s->n > 0;
    return CLT_OK;
}

culet_status culet_session_logits_all_media(culet_session *s, const int32_t *ids, size_t n, culet_media *const *media,
                                            size_t n_media, row_fn fn, void *user, culet_error *err) {
    clt_err inner;
    clt_spans spans = {0};
    atomic_store(&s->cancelled, 0);
    clt_status status = check_prompt(s, ids, n, media, n_media, &spans, &inner);
    if (status == CLT_OK) status = reserve_rows(s, n, &spans, &inner);
    if (status != CLT_OK) {
        clt_spans_free(&spans);
        return clt_report(status, &inner, err);
    }
    cut(s, 0);
    if (n) memcpy(s->ids, ids, n * sizeof *ids);
    s->n = n;
    s->spans = spans;
    return clt_report(settle_failure(s, every_row(s, fn, user, &inner)), &inner, err);
}

culet_status culet_session_logits_all(culet_session *s, const int32_t *ids, size_t n, row_fn fn, void *user,
                                      culet_error *err) {
    return culet_session_logits_all_media(s, ids, n, NULL, 0, fn, user, err);
}

culet_status culet_session_extend_all(culet_session *s, const int32_t *ids, size_t n, row_fn fn, void *user,
                                      culet_error *err) {
    clt_err inner;
    atomic_store(&s->cancelled, 0);
    clt_status status = n > 0 ? check_ids(s, ids, n, s->n, &inner) : clt_fail(&inner, CLT_E_USAGE, "extend: no ids given");
    if (status == CLT_OK) status = reserve_rows(s, n, &(clt_spans){0}, &inner);
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

void clt_session_adopt(culet_session *s, clt_kv *kv, const int32_t *ids, size_t n, clt_spans *spans, const float *logits) {
    clt_kv_free(s->kv);
    clt_spans_free(&s->spans);
    s->kv = kv;
    s->spans = *spans;
    *spans = (clt_spans){0};
    if (n) memcpy(s->ids, ids, n * sizeof *ids);
    s->n = n;
    s->has_logits = logits != NULL;
    if (logits) memcpy(s->logits, logits, (size_t)s->engine->info.vocab * sizeof *logits);
}
