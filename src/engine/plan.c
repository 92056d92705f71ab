/* The memory plan: model, session parameters and threads in; bytes out, before any weight is read. And the judgement whether
 * they fit into what this process may take, with the largest context that does.
 *
 * What the plan counts is what is allocated: the packed weights, keys and values, working memory and tables. The mapped file
 * is not counted: its pages are read once, or row by row, and the system drops them at will. */
#include <stdio.h>
#include <string.h>
#include "base/limits.h"
#include "engine/impl.h"

enum {
    PAGE_TABLE_SHARE = 512,      /* 8 bytes of page table for each 4 KiB page */
    PROCESS_BYTES = 4 << 20,     /* heap and stack beside what is counted */
    SAMPLER_BYTES_PER_ID = 32,
    CONTEXT_STEP = CLT_ATTN_CHUNK
};
static const uint64_t MOST_MARGIN = UINT64_C(16) << 20;

static uint64_t plus(uint64_t a, uint64_t b) { return b > UINT64_MAX - a ? UINT64_MAX : a + b; }
static uint64_t times(uint64_t a, uint64_t n) { return n && a > UINT64_MAX / n ? UINT64_MAX : a * n; }

/* Norms, scales and the descriptions of experts: small, and large enough to count. */
static uint64_t norm_bytes(const clt_config *c) {
    uint64_t per_layer = 8 * (uint64_t)c->width * sizeof(float) + (uint64_t)c->experts * 3 * sizeof(clt_mat), sum = 0;
    for (int l = 0; l < c->layers; l++) sum += per_layer + 2 * (uint64_t)c->layer[l].head_dim * sizeof(float);
    return sum;
}

/* What a session holds beside keys, values and working memory. */
static uint64_t session_tables(const culet_engine *e, const culet_session_params *p) {
    uint64_t vocab = (uint64_t)e->model.config.vocab;
    return (uint64_t)clt_session_rows(e, p) * sizeof(clt_row) + (uint64_t)p->context * sizeof(int32_t) +
           vocab * (sizeof(float) + SAMPLER_BYTES_PER_ID);
}

static void count_kv(const culet_engine *e, clt_plan *out) {
    const clt_config *c = &e->model.config;
    clt_type k = clt_kv_type_of(out->params.kv_k), v = clt_kv_type_of(out->params.kv_v);
    size_t chunks = ((size_t)out->params.context + CLT_ATTN_CHUNK - 1) / CLT_ATTN_CHUNK;
    int rows = clt_session_rows(e, &out->params);
    uint64_t full = 0, all = clt_kv_plan_bytes(&e->model, out->params.context, rows, k, v);
    for (int l = 0; l < c->layers; l++) {
        const clt_layer_config *lc = &c->layer[l];
        size_t chunk = clt_kv_chunk_bytes(k, lc->head_dim) + clt_kv_chunk_bytes(v, lc->head_dim);
        if (!lc->own_kv) out->shared_layers++;
        else if (lc->sliding) out->sliding_layers++;
        else out->full_layers++, full = plus(full, times(chunks * chunk, (uint64_t)lc->kv_heads));
    }
    out->kv_full = times(full, (uint64_t)out->sessions);
    out->kv_sliding = times(all > full ? all - full : 0, (uint64_t)out->sessions);
}

clt_status clt_plan_make(const culet_engine *e, const culet_session_params *p, int sessions, clt_plan *out, clt_err *err) {
    culet_session_params asked;
    culet_session_defaults(&asked);
    memset(out, 0, sizeof *out);
    clt_status status = clt_session_settle(e, p ? p : &asked, &out->params, err);
    if (status != CLT_OK) return status;
    out->sessions = sessions;
    out->threads = e->placement.threads;
    count_kv(e, out);
    out->scratch = clt_scratch_plan_bytes(&e->model, clt_session_rows(e, &out->params), out->threads);
    out->scratch = times(out->scratch, (uint64_t)sessions);
    out->weights = clt_net_plan_bytes(&e->model);
    out->vocabulary = clt_vocab_bytes(e->vocab);
    out->mapped = e->info.file_bytes;
    out->engine_tables = norm_bytes(&e->model.config) + out->weights / PAGE_TABLE_SHARE +
                         (uint64_t)(out->threads - 1) * CLT_POOL_STACK_BYTES + PROCESS_BYTES;
    uint64_t session = plus(out->scratch, plus(out->kv_full, out->kv_sliding));
    out->session_tables = times(session_tables(e, &out->params), (uint64_t)sessions) + session / PAGE_TABLE_SHARE;
    out->total = plus(plus(out->weights, session), out->engine_tables + out->session_tables + out->vocabulary);
    return CLT_OK;
}

/* ---- does it fit? ---- */

/* What of the plan is not held yet. */
static uint64_t missing(const clt_plan *p, bool loaded) {
    return p->total - p->vocabulary - (loaded ? p->weights + p->engine_tables : 0);
}

/* The largest context, in steps, whose plan takes at most `room`; 0 if none does. */
static int largest_context(const culet_engine *e, const clt_plan *plan, bool loaded, uint64_t room) {
    clt_err err;
    clt_plan tried;
    culet_session_params p = plan->params;
    int lo = 0, hi = plan->params.context / CONTEXT_STEP;
    while (lo < hi) {
        int mid = lo + (hi - lo + 1) / 2;
        p.context = mid * CONTEXT_STEP;
        bool fits = clt_plan_make(e, &p, plan->sessions, &tried, &err) == CLT_OK && missing(&tried, loaded) <= room;
        if (fits) lo = mid;
        else hi = mid - 1;
    }
    return lo * CONTEXT_STEP;
}

static double mib(uint64_t bytes) { return (double)bytes / 1048576; }

static clt_status advise(const culet_engine *e, const clt_plan *plan, bool loaded, uint64_t room, clt_err *err) {
    uint64_t margin = room / 256 < MOST_MARGIN ? room / 256 : MOST_MARGIN; /* free memory wavers between two starts */
    int context = plan->sessions ? largest_context(e, plan, loaded, room - margin) : 0;
    if (context > 0) return clt_hint(err, "the largest context that fits is -c %d", context);
    return clt_hint(err, "%s: close other programs, or use a smaller model or a smaller quantisation of it",
                    plan->sessions ? "no context fits, however small" : "the weights alone do not fit");
}

clt_status clt_plan_check(const culet_engine *e, const clt_plan *plan, bool loaded, clt_err *err) {
    clt_memory_room room;
    uint64_t needed = missing(plan, loaded);
    if (e->skip_memory_check) return CLT_OK;
    clt_memory_look(&room);
    if (needed <= room.free_bytes) return CLT_OK;
    char parts[160], weights[40] = "";
    uint64_t tables = plan->session_tables + (loaded ? 0 : plan->engine_tables);
    if (!loaded) snprintf(weights, sizeof weights, "weights %.1f, ", mib(plan->weights));
    snprintf(parts, sizeof parts, "%skeys and values %.1f, working memory %.1f, tables %.1f", weights,
             mib(plan->kv_full + plan->kv_sliding), mib(plan->scratch), mib(tables));
    if (plan->sessions)
        clt_fail(err, CLT_E_MEMORY, "%s: %s with a context of %d tokens needs %.1f MiB (%s), %.1f MiB are left (%s)",
                 e->info.path, loaded ? "a session" : "the model", plan->params.context, mib(needed), parts,
                 mib(room.free_bytes), room.source);
    else
        clt_fail(err, CLT_E_MEMORY, "%s: the weights need %.1f MiB, %.1f MiB are left (%s)", e->info.path, mib(needed),
                 mib(room.free_bytes), room.source);
    return advise(e, plan, loaded, room.free_bytes, err);
}
