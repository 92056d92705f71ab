/* What the files of this room share: the two nouns from within, and the step from inner errors to public ones. */
#ifndef CLT_ENGINE_IMPL_H
#define CLT_ENGINE_IMPL_H
#include <pthread.h>
#include <stdatomic.h>
#include "base/pool.h"
#include "base/turn.h"
#include "culet.h"
#include "engine/towers.h"
#include "forward/forward.h"
#include "grammar/grammar.h"
#include "hub/packed.h"
#include "model/model.h"
#include "sample/sample.h"
#include "text/chat.h"
#include "text/vocab.h"

enum { CLT_MAX_END_IDS = 24, CLT_MAX_SUPPRESSED_IDS = 72, CLT_DEFAULT_CONTEXT = 8192 };

struct culet_engine {
    culet_model_info info;
    culet_open_mode mode;
    clt_arena *arena;        /* strings of info */
    clt_file *file;
    clt_vocab *vocab;
    clt_model model;
    bool has_model;          /* false: a file without tensors, opened for its text alone */
    clt_chat_template chat;
    bool has_chat;           /* false: a base model */
    int32_t end_ids[CLT_MAX_END_IDS], suppressed_ids[CLT_MAX_SUPPRESSED_IDS];
    clt_pool *pool;          /* these two only after CULET_OPEN_FULL */
    const clt_kernels *kernels;
    clt_net *net;
    clt_packed *packed;      /* the copy that the net's weights lie in; NULL: they are the net's own */
    clt_profile *profile;    /* NULL until it was first asked for */
    bool profiling;
    clt_turn busy;           /* the pool serves one pass, or one layer of a tower, at a time, whatever session it is for */
    bool has_busy;
    clt_towers *towers;      /* what the model sees and hears with; NULL: opened for its text alone */
    clt_tokens *tokens;      /* the vocabulary as grammars need it; made with the first of them */
    uint64_t fingerprint[2]; /* of the model, for saved sessions */
    bool skip_memory_check;
    clt_pool_params placement; /* what the pool is, or would be, created with */
};

struct culet_session {
    culet_engine *engine;
    int context;             /* capacity in tokens */
    int chunk, rows;         /* tokens per pass; the most of one pass, where a picture must pass whole */
    clt_type k_type, v_type;
    clt_kv *kv;              /* has evaluated the first clt_kv_length tokens */
    clt_scratch *scratch;
    clt_sampler *sampler;
    clt_row *row;            /* [rows] */
    int32_t *ids;            /* [context]: the timeline */
    size_t n;                /* its length; what lies beyond clt_kv_length waits for evaluation */
    clt_spans spans;         /* soft tokens within it */
    float *logits;           /* [V]: of token clt_kv_length - 1, if has_logits */
    bool has_logits;
    float *every;            /* [every_rows][V]: of all rows of a pass, where they are asked for */
    size_t every_rows;
    size_t ahead_from, ahead; /* `every` holds the logits of tokens from ahead_from on, this many: a token and its drafts */
    atomic_int cancelled;
    bool (*on_progress)(void *user, size_t done, size_t total); /* of the running call; NULL = none */
    void *progress_user;
};

/* status.c: copies a failure to the public error and returns its public status; CLT_OK clears. */
culet_status clt_report(clt_status status, const clt_err *inner, culet_error *out);

/* open.c */
void clt_engine_warn(const culet_engine_params *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void clt_engine_note(const culet_engine_params *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* packed.c: opens the model's packed copy if there is a sound one, and says so, or why not. Needs pool and fingerprint. */
void clt_engine_use_packed(culet_engine *e, const culet_engine_params *p);
/* Writes a copy, unless one is in use. A failure is a warning. */
void clt_engine_pack_cache(culet_engine *e, const culet_engine_params *p);
/* facts.c: end ids, suppressed ids, sampling defaults, whether the model is a base model. Needs file, vocab, model, chat. */
clt_status clt_engine_read_template(culet_engine *e, const culet_engine_params *p, clt_err *err);
void clt_engine_read_ids(culet_engine *e, bool forced_chat);
void clt_engine_read_sampling(culet_engine *e);

/* place.c: threads, placement and priority that the parameters ask for, checked; sets e->placement and info's threads. */
clt_status clt_engine_place(const culet_engine_params *p, culet_engine *e, clt_err *err);

/* plan.c: what an engine with `sessions` such sessions takes, in bytes. */
typedef struct clt_plan {
    culet_session_params params; /* of a session, resolved */
    int sessions, threads;       /* threads of the pool */
    uint64_t weights;            /* packed */
    uint64_t vocabulary;         /* what is held of it, before any weight is read */
    uint64_t kv_full, kv_sliding, scratch; /* of all sessions */
    uint64_t engine_tables;      /* norms, stacks, heap, page tables of the weights */
    uint64_t session_tables;     /* ids, logits and sampler of all sessions, page tables of their memory */
    uint64_t mapped;             /* the file: its pages come and go */
    uint64_t total;              /* without `mapped` */
    int full_layers, sliding_layers, shared_layers;
} clt_plan;
/* p NULL: the defaults. sessions 0: the weights alone. */
clt_status clt_plan_make(const culet_engine *e, const culet_session_params *p, int sessions, clt_plan *out, clt_err *err);
/* CLT_E_MEMORY, with what to do, if the plan does not fit beside what is already held. loaded: the weights are, too. */
clt_status clt_plan_check(const culet_engine *e, const clt_plan *plan, bool loaded, clt_err *err);

/* session.c */
clt_type clt_kv_type_of(culet_kv_type t); /* a value that is none: CLT_IQ4_XS, which no cache takes */
/* Resolves zeros and checks ranges. */
clt_status clt_session_settle(const culet_engine *e, const culet_session_params *p, culet_session_params *out, clt_err *err);
clt_status clt_session_sync(culet_session *s, const int32_t *ids, size_t n, culet_media *const *media, size_t n_media,
                            size_t *reused, clt_err *err);
/* Rows that one pass of such a session may have. p: settled. */
int clt_session_rows(const culet_engine *e, const culet_session_params *p);
/* Puts one id behind the timeline without evaluating it; the caller has checked that there is room. */
void clt_session_append(culet_session *s, int32_t id);
/* Tells a running profile what picking a token took. */
void clt_session_profile_sampling(culet_session *s, double ms);
/* Evaluates what waits, so that the logits of the last token are ready. */
clt_status clt_session_catch_up(culet_session *s, clt_err *err);

/* ahead.c: drafts. They are evaluated behind the timeline and are no part of it; an id that is appended and equal to the
 * draft in its place is evaluated already, any other one drops the drafts that are left. */
/* Drafts that one pass of the session has room for now. */
size_t clt_session_ahead_room(const culet_session *s);
/* catch_up with `n` drafts behind the timeline, 1 <= n <= clt_session_ahead_room; one token waits at most. */
clt_status clt_session_try(culet_session *s, const int32_t *draft, size_t n, clt_err *err);
/* The logits of the last token, wherever they lie; NULL: it waits for evaluation. */
const float *clt_session_current(const culet_session *s);
/* Drops all drafts: the session is what it would be without them. keep: false where it would not have evaluated the last
 * token. */
void clt_session_end_ahead(culet_session *s, bool keep);
/* session.c, for ahead.c: one pass over the `count` tokens behind those evaluated, of which `drafts` are no part of the
 * timeline; every: logits of all rows go to `logits`, else those of the timeline's last token. */
clt_status clt_session_pass(culet_session *s, size_t count, bool every, float *logits, clt_err *err);
clt_status clt_session_reserve_rows(culet_session *s, size_t n, clt_err *err); /* s->every */
/* Gives the session another cache and timeline, of n <= context ids. Takes over kv and spans; logits NULL = none. */
void clt_session_adopt(culet_session *s, clt_kv *kv, const int32_t *ids, size_t n, clt_spans *spans, const float *logits);

/* fingerprint.c: tells models apart by architecture, shapes, types and samples of their weights. */
void clt_engine_fingerprint(culet_engine *e);

#endif
