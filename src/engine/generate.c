/* Generation: a prompt and parameters in, a reply out, piece by piece while it grows. The loop is sample -> parse -> show ->
 * evaluate; each part lives in its own room, and this file only decides when to stop.
 *
 * The token loop allocates nothing of its own: ids have their room from the start, texts grow by doubling in the parser, and
 * a grammar remembers what it has met. */
#include <math.h>
#include <string.h>
#include "base/mem.h"
#include "base/os.h"
#include "engine/constrain.h"
#include "engine/impl.h"
#include "engine/speculate.h"
#include "engine/stops.h"
#include "text/reply.h"

typedef struct run {
    culet_session *s;
    const culet_generate_params *p;
    clt_sample_params sampling;
    clt_reply *parser;
    clt_stops stops;
    clt_constraint *constraint; /* NULL: the reply is free */
    clt_speculator *speculator; /* NULL: nothing is drafted */
    int32_t *ids;       /* [room] sampled */
    size_t n, room;     /* room: max_tokens, or what the context leaves */
    size_t shown, shown_thought; /* bytes handed to on_delta */
    size_t content_end; /* where a stop string begins; SIZE_MAX = none found */
    culet_finish finish;
    bool evaluated;     /* the last token: nothing was taken since */
    bool deaf;          /* on_delta has returned false: it is not called again */
} run;

const char *culet_finish_name(culet_finish f) {
    static const char *const names[] = {"stop", "length", "tool_calls", "cancelled"};
    return (unsigned)f < sizeof names / sizeof *names ? names[f] : "unknown";
}

/* ---- before the loop ---- */

static clt_status read_sampling(run *r, clt_err *err) {
    const culet_sampling *q = &r->p->sampling;
    const culet_model_info *info = &r->s->engine->info;
    r->sampling = (clt_sample_params){
        .temperature = q->temperature, .top_k = q->top_k, .top_p = q->top_p, .min_p = q->min_p,
        .repeat_penalty = q->repeat_penalty, .repeat_last_n = q->repeat_last_n,
        .presence_penalty = q->presence_penalty, .frequency_penalty = q->frequency_penalty, .seed = q->seed,
        .bias_ids = q->bias_ids, .bias_values = q->bias_values, .n_bias = q->n_bias,
        .suppressed = info->suppressed_ids, .n_suppressed = info->n_suppressed_ids};
    return clt_sample_check(&r->sampling, info->vocab, err);
}

static clt_status prepare_speculation(run *r, clt_err *err) {
    static const clt_spec_kind kinds[] = {CLT_SPEC_NONE, CLT_SPEC_FIXED, CLT_SPEC_AUTO};
    const culet_generate_params *p = r->p;
    if ((unsigned)p->spec > CULET_SPEC_AUTO)
        return clt_fail(err, CLT_E_USAGE, "spec: %d is neither off, lookup nor auto", (int)p->spec);
    if (p->draft_max < 0 || p->draft_max > CLT_DRAFT_MOST)
        return clt_fail(err, CLT_E_USAGE, "draft_max: %d is not between 0 and %d", p->draft_max, (int)CLT_DRAFT_MOST);
    if (p->spec == CULET_SPEC_OFF) return CLT_OK;
    return clt_speculator_create(kinds[p->spec], p->draft_max, p->prediction, p->n_prediction, (size_t)r->s->context,
                                 &r->speculator, err);
}

static clt_status prepare(run *r, clt_err *err) {
    const culet_generate_params *p = r->p;
    size_t context = (size_t)r->s->context;
    if (p->n_prompt == 0) return clt_fail(err, CLT_E_USAGE, "generate: the prompt is empty");
    if (p->max_tokens < -1)
        return clt_fail(err, CLT_E_USAGE, "max_tokens: %d is less than -1 (-1 = no limit)", p->max_tokens);
    clt_status status = read_sampling(r, err);
    if (status == CLT_OK) status = clt_stops_init(&r->stops, p->stops, p->n_stops, err);
    if (status == CLT_OK) status = clt_reply_create(r->s->engine->vocab, p->in_thought, p->raw, &r->parser, err);
    if (status == CLT_OK) status = clt_constraint_create(r->s->engine, p, &r->constraint, err);
    if (status == CLT_OK) status = prepare_speculation(r, err);
    if (status != CLT_OK) return status;
    r->room = context > p->n_prompt ? context - p->n_prompt : 0;
    if (p->max_tokens >= 0 && (size_t)p->max_tokens < r->room) r->room = (size_t)p->max_tokens;
    r->ids = clt_calloc(r->room, sizeof *r->ids);
    return r->ids ? CLT_OK : clt_fail_memory(err, "reply", r->room * sizeof *r->ids);
}

static clt_status read_prompt(run *r, culet_timings *t, clt_err *err) {
    culet_session *s = r->s;
    double start = clt_now_ms();
    s->on_progress = r->p->on_progress;
    s->progress_user = r->p->user;
    clt_status status = clt_session_sync(s, r->p->prompt, r->p->n_prompt, r->p->media, r->p->n_media, &t->cache_n, err);
    s->on_progress = NULL;
    t->prompt_n = r->p->n_prompt - t->cache_n;
    t->prompt_ms = clt_now_ms() - start;
    return status;
}

/* ---- showing ---- */

static bool show(run *r, culet_delta kind, const char *text, size_t from, size_t to) {
    if (to <= from || !r->p->on_delta) return true;
    if (!r->deaf) r->deaf = !r->p->on_delta(r->p->user, kind, text + from, to - from);
    return !r->deaf;
}

/* Hands over what has become certain, and notes a stop string. false: the caller wants no more. `last`: nothing follows that
 * could complete a stop string. */
static bool show_new(run *r, bool last) {
    size_t len, safe;
    const char *thought = clt_reply_thought(r->parser, &len);
    size_t from = r->shown_thought;
    r->shown_thought = len;
    if (!show(r, CULET_DELTA_THOUGHT, thought, from, len)) return false;
    if (r->content_end != SIZE_MAX) return true;
    const char *content = clt_reply_content(r->parser, &len);
    if (clt_stops_find(&r->stops, content, len, &safe)) r->content_end = safe;
    else if (last) safe = len;
    from = r->shown;
    if (safe > from) r->shown = safe;
    return show(r, CULET_DELTA_CONTENT, content, from, safe);
}

/* ---- the loop ---- */

static bool is_end_id(const culet_engine *e, int32_t id) {
    for (size_t i = 0; i < e->info.n_end_ids; i++)
        if (e->info.end_ids[i] == id) return true;
    return false;
}

static clt_status cancel(run *r, clt_err *err) {
    r->finish = CULET_FINISH_CANCELLED;
    return clt_fail(err, CLT_E_CANCELLED, "cancelled");
}

/* Takes one sampled id into timeline, reply and view. */
static clt_status take(run *r, int32_t id, clt_err *err) {
    clt_status status = CLT_OK;
    clt_session_append(r->s, id);
    r->evaluated = false;
    if (r->speculator) clt_speculator_take(r->speculator, r->s->ids, r->s->n);
    r->ids[r->n++] = id;
    /* An end id that ignore_eos let through is mute. */
    if (!is_end_id(r->s->engine, id)) status = clt_reply_push(r->parser, id, err);
    if (status == CLT_OK && !show_new(r, false)) status = cancel(r, err);
    return status;
}

/* The sampler picks a NaN only if there is nothing else: without this, a damaged model writes <pad> until it is stopped. */
static clt_status no_numbers(const culet_session *s, clt_err *err) {
    clt_fail(err, CLT_E_FAILED, "%s: the logits at position %zu are not numbers", s->engine->info.path, (size_t)s->n);
    return clt_hint(err, "the weights may be damaged: fetch the model again");
}

/* Makes the logits of the last token ready, and drafts ahead where that pays. */
static clt_status evaluate(run *r, culet_timings *t, clt_err *err) {
    culet_session *s = r->s;
    int32_t draft[CLT_DRAFT_MOST];
    r->evaluated = true;
    if (clt_session_current(s)) return CLT_OK;
    size_t room = clt_session_ahead_room(s), left = r->room - r->n - 1, n = 0; /* the last token needs nothing behind it */
    bool single = (size_t)clt_kv_length(s->kv) + 1 == s->n;
    if (r->speculator && single) n = clt_speculator_draft(r->speculator, room < left ? room : left, draft);
    double start = clt_now_ms();
    clt_status status = n ? clt_session_try(s, draft, n, err) : clt_session_catch_up(s, err);
    if (r->speculator && single && status == CLT_OK) clt_speculator_timed(r->speculator, n, clt_now_ms() - start);
    t->draft_n += n;
    r->evaluated = status == CLT_OK;
    return status;
}

/* The next id, of those that the constraint leaves. */
static clt_status pick(run *r, int32_t *id, clt_err *err) {
    culet_session *s = r->s;
    double start = clt_now_ms();
    clt_status status = r->constraint ? clt_constraint_allowed(r->constraint, &r->sampling.allowed, err) : CLT_OK;
    if (status != CLT_OK) return status;
    const uint64_t *allowed = r->sampling.allowed;
    const float *logits = clt_session_current(s);
    *id = clt_sampler_pick(s->sampler, &r->sampling, logits, s->ids, s->n, s->n);
    clt_session_profile_sampling(s, clt_now_ms() - start);
    if (isnan(logits[*id])) return no_numbers(s, err);
    if (allowed && !(allowed[*id / 64] >> *id % 64 & 1))
        return clt_fail(err, CLT_E_FAILED, "grammar: no token that may be chosen can continue the reply at position %zu", s->n);
    return r->constraint ? clt_constraint_take(r->constraint, *id, err) : CLT_OK;
}

static clt_status loop(run *r, culet_timings *t, double start, clt_err *err) {
    culet_session *s = r->s;
    r->finish = CULET_FINISH_LENGTH;
    while (r->n < r->room) {
        clt_status status = evaluate(r, t, err);
        if (status == CLT_OK && atomic_load(&s->cancelled)) status = clt_fail(err, CLT_E_CANCELLED, "cancelled");
        if (status == CLT_E_CANCELLED) r->finish = CULET_FINISH_CANCELLED;
        if (status != CLT_OK) return status;
        int32_t id;
        status = pick(r, &id, err);
        if (status != CLT_OK) return status;
        if (t->ttft_ms == 0) t->ttft_ms = clt_now_ms() - start;
        bool ended = r->constraint && clt_constraint_ended(r->constraint);
        if (is_end_id(s->engine, id) && (!r->p->sampling.ignore_eos || ended)) {
            r->finish = CULET_FINISH_STOP;
            return CLT_OK;
        }
        status = take(r, id, err);
        t->draft_n_accepted += clt_session_current(s) != NULL;
        if (status != CLT_OK) return status;
        if (ended || r->content_end != SIZE_MAX) {
            r->finish = CULET_FINISH_STOP;
            return CLT_OK;
        }
    }
    return CLT_OK;
}

/* Ends the parse; the last held bytes may still show a stop string. */
static clt_status close_reply(run *r, clt_err *err) {
    bool cut = r->finish == CULET_FINISH_LENGTH || r->finish == CULET_FINISH_CANCELLED;
    clt_status status = clt_reply_end(r->parser, cut, err);
    if (status != CLT_OK) return status;
    if (!show_new(r, true) && r->finish != CULET_FINISH_CANCELLED) return cancel(r, err);
    if (r->content_end != SIZE_MAX && r->finish == CULET_FINISH_LENGTH) r->finish = CULET_FINISH_STOP;
    if (r->finish == CULET_FINISH_STOP && clt_reply_calls(r->parser) > 0) r->finish = CULET_FINISH_TOOL_CALLS;
    return CLT_OK;
}

/* ---- the reply ---- */

static char *copy_text(const char *text, size_t len) {
    char *copy = clt_alloc(len + 1);
    if (!copy) return NULL;
    if (len) memcpy(copy, text, len);
    copy[len] = 0;
    return copy;
}

static bool copy_calls(const clt_reply *parser, culet_reply *out) {
    size_t n = clt_reply_calls(parser);
    out->calls = n ? clt_calloc(n, sizeof *out->calls) : NULL;
    if (n && !out->calls) return false;
    for (; out->n_calls < n; out->n_calls++) {
        clt_reply_call call;
        clt_reply_call_at(parser, out->n_calls, &call);
        out->calls[out->n_calls].name = clt_strdup(call.name);
        out->calls[out->n_calls].arguments = clt_strdup(call.arguments);
        if (!out->calls[out->n_calls].name || !out->calls[out->n_calls].arguments) {
            out->n_calls++; /* so that the half of it is freed, too */
            return false;
        }
    }
    return true;
}

static clt_status fill_reply(run *r, culet_reply *out, clt_err *err) {
    const char *text = clt_reply_content(r->parser, &out->text_len);
    if (r->content_end < out->text_len) out->text_len = r->content_end;
    out->text = copy_text(text, out->text_len);
    text = clt_reply_thought(r->parser, &out->thought_len);
    out->thought = copy_text(text, out->thought_len);
    out->ids = r->ids;
    out->n_ids = r->n;
    r->ids = NULL;
    out->finish = r->finish;
    if (out->text && out->thought && copy_calls(r->parser, out)) return CLT_OK;
    culet_reply_free(out);
    return clt_fail_memory(err, "reply", out->text_len);
}

culet_status culet_generate(culet_session *s, const culet_generate_params *p, culet_reply *out, culet_error *err) {
    clt_err inner;
    run r = {.s = s, .p = p, .content_end = SIZE_MAX};
    culet_timings t = {0};
    double start = clt_now_ms();
    memset(out, 0, sizeof *out);
    atomic_store(&s->cancelled, 0);
    clt_status status = prepare(&r, &inner);
    if (status == CLT_OK) status = read_prompt(&r, &t, &inner);
    if (status == CLT_E_CANCELLED) r.finish = CULET_FINISH_CANCELLED;
    if (status == CLT_OK) {
        double begin = clt_now_ms();
        if (r.speculator) clt_speculator_read(r.speculator, s->ids, s->n);
        status = loop(&r, &t, start, &inner);
        clt_session_end_ahead(s, r.evaluated);
        t.predicted_ms = clt_now_ms() - begin;
    }
    if (status == CLT_OK || status == CLT_E_CANCELLED) {
        clt_err late;
        clt_status closed = close_reply(&r, &late);
        if (closed == CLT_OK || closed == CLT_E_CANCELLED) {
            clt_status filled = fill_reply(&r, out, &late);
            if (filled != CLT_OK) closed = filled;
        }
        if (closed != CLT_OK) {
            status = closed;
            inner = late;
        }
        t.predicted_n = r.n;
        out->timings = t;
    }
    clt_reply_free(r.parser);
    clt_constraint_free(r.constraint);
    clt_speculator_free(r.speculator);
    clt_free(r.ids);
    return clt_report(status, &inner, err);
}

void culet_reply_free(culet_reply *r) {
    for (size_t i = 0; i < r->n_calls; i++) {
        clt_free(r->calls[i].name);
        clt_free(r->calls[i].arguments);
    }
    clt_free(r->calls);
    clt_free(r->ids);
    clt_free(r->text);
    clt_free(r->thought);
    memset(r, 0, sizeof *r);
}
