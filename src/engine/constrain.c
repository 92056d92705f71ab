/* What a reply must be: a grammar or schema for its content, tools for its calls. Decides which of the grammars holds at
 * each id.
 *
 *   BEGIN --channel--> THOUGHT --channel end--> BEGIN     thoughts are free; no end before the content has come
 *   BEGIN, CONTENT: the content's grammar, or free
 *   BEGIN, FREE, AFTER --call--> CALL --call end--> AFTER  a call is held to the tools
 *
 * A special id stands in a mask only where this machine puts it, so no grammar can be met by half a marker. */
#include "engine/constrain.h"
#include <pthread.h>
#include <string.h>
#include "base/mem.h"

typedef enum phase { THOUGHT, BEGIN, CONTENT, CALL, AFTER } phase;

struct clt_constraint {
    const culet_engine *engine;
    const clt_vocab_roles *roles;
    phase phase;
    bool may_think, ignore_eos, one_call;
    culet_tool_choice choice;
    clt_grammar *content_grammar, *call_grammar;
    clt_matcher *content, *call; /* NULL: free; no tools */
    size_t words;
    uint64_t *bits;              /* [words] */
    bool ended;
};

/* ---- creation ---- */

/* Shared by all sessions of the engine, and made by the first that needs them. */
static clt_status get_tokens(culet_engine *e, clt_err *err) {
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&making);
    clt_status status = e->tokens ? CLT_OK : clt_constraint_tokens(e->vocab, e->info.vocab, &e->tokens, err);
    pthread_mutex_unlock(&making);
    return status;
}

static clt_status compile_content(const char *grammar, const char *schema, clt_grammar **out, clt_err *err) {
    *out = NULL;
    if (grammar && schema) return clt_fail(err, CLT_E_USAGE, "grammar and json_schema: only one of them can hold");
    if (grammar) return clt_grammar_from_gbnf(grammar, strlen(grammar), out, err);
    return schema ? clt_grammar_from_schema(schema, strlen(schema), "json_schema", out, err) : CLT_OK;
}

static clt_status compile_call(const culet_generate_params *p, clt_grammar **out, clt_err *err) {
    clt_json *tools = NULL;
    *out = NULL;
    if (!p->tools || p->tool_choice == CULET_TOOLS_NONE) return CLT_OK;
    clt_status status = clt_json_parse(p->tools, strlen(p->tools), "tools", &tools, err);
    if (status == CLT_OK) status = clt_grammar_from_tools(tools, p->tool_name, out, err);
    clt_json_free(tools);
    return status;
}

static clt_status compile(const culet_generate_params *p, clt_grammar **content, clt_grammar **call, clt_err *err) {
    *content = *call = NULL;
    if (p->tool_name && p->tool_choice != CULET_TOOLS_REQUIRED)
        return clt_fail(err, CLT_E_USAGE, "tool_name: it needs tool_choice to be required");
    if (p->tool_choice == CULET_TOOLS_REQUIRED && !p->tools)
        return clt_fail(err, CLT_E_REQUEST, "tool_choice: a call is required, but there are no tools");
    clt_status status = compile_content(p->grammar, p->json_schema, content, err);
    return status == CLT_OK ? compile_call(p, call, err) : status;
}

culet_status culet_constraint_check(const culet_generate_params *p, culet_error *err) {
    clt_err inner;
    clt_grammar *content, *call;
    clt_status status = compile(p, &content, &call, &inner);
    clt_grammar_free(content);
    clt_grammar_free(call);
    return clt_report(status, &inner, err);
}

static clt_status prepare(clt_constraint *c, culet_engine *e, const culet_generate_params *p, clt_err *err) {
    clt_status status = compile(p, &c->content_grammar, &c->call_grammar, err);
    if (status == CLT_OK && c->call_grammar && (c->roles->call_open < 0 || c->roles->call_close < 0))
        status = clt_fail(err, CLT_E_UNSUPPORTED, "tools: this model has no tokens for calls");
    if (status == CLT_OK) status = get_tokens(e, err);
    if (status == CLT_OK && c->content_grammar) status = clt_matcher_create(c->content_grammar, e->tokens, &c->content, err);
    if (status == CLT_OK && c->call_grammar) status = clt_matcher_create(c->call_grammar, e->tokens, &c->call, err);
    c->bits = clt_calloc(c->words, sizeof *c->bits);
    return status == CLT_OK && !c->bits ? clt_fail_memory(err, "grammar", c->words * sizeof *c->bits) : status;
}

clt_status clt_constraint_create(culet_engine *e, const culet_generate_params *p, clt_constraint **out, clt_err *err) {
    *out = NULL;
    if (!p->grammar && !p->json_schema && !p->tools && p->tool_choice == CULET_TOOLS_AUTO) return CLT_OK;
    clt_constraint *c = clt_calloc(1, sizeof *c);
    if (!c) return clt_fail_memory(err, "grammar", sizeof *c);
    *c = (clt_constraint){.engine = e, .roles = clt_vocab_get_roles(e->vocab), .may_think = p->may_think && !p->raw,
                          .phase = p->in_thought && !p->raw ? THOUGHT : BEGIN, .one_call = p->one_call,
                          .ignore_eos = p->sampling.ignore_eos,
                          .choice = p->tool_choice, .words = ((size_t)e->info.vocab + 63) / 64};
    clt_status status = prepare(c, e, p, err);
    if (status == CLT_OK) *out = c;
    else clt_constraint_free(c);
    return status;
}

void clt_constraint_free(clt_constraint *c) {
    if (!c) return;
    clt_matcher_free(c->content);
    clt_matcher_free(c->call);
    clt_grammar_free(c->content_grammar);
    clt_grammar_free(c->call_grammar);
    clt_free(c->bits);
    clt_free(c);
}

/* ---- masks ---- */

static void set(clt_constraint *c, int32_t id, bool allowed) {
    if (id < 0 || id >= c->engine->info.vocab) return;
    uint64_t bit = UINT64_C(1) << id % 64;
    if (allowed) c->bits[id / 64] |= bit;
    else c->bits[id / 64] &= ~bit;
}

static void set_ends(clt_constraint *c, bool allowed) {
    const culet_model_info *info = &c->engine->info;
    for (size_t i = 0; i < info->n_end_ids; i++) set(c, info->end_ids[i], allowed);
}

/* Everything but what would leave the thought for another place than the content, or end the reply before it. */
static void allow_thought(clt_constraint *c) {
    bool bound = c->content || c->choice == CULET_TOOLS_REQUIRED;
    memset(c->bits, 0xFF, c->words * sizeof *c->bits);
    if (bound) set_ends(c, false);
    if (bound || c->choice == CULET_TOOLS_NONE) set(c, c->roles->call_open, false);
}

static bool may_call(const clt_constraint *c) {
    return c->call && !(c->phase == AFTER && c->one_call);
}

/* Where no grammar holds: everything, or what tool_choice leaves. */
static void allow_free(clt_constraint *c) {
    bool required = c->choice == CULET_TOOLS_REQUIRED && c->phase != AFTER;
    memset(c->bits, required ? 0 : 0xFF, c->words * sizeof *c->bits);
    set(c, c->roles->call_open, may_call(c));
    if (c->phase == BEGIN && c->may_think) set(c, c->roles->channel_open, true);
}

/* Behind a call: another, or the end; free text too where nothing bound the content. */
static void allow_after(clt_constraint *c) {
    if (!c->content && c->choice == CULET_TOOLS_AUTO && !c->one_call) {
        allow_free(c);
        return;
    }
    memset(c->bits, 0, c->words * sizeof *c->bits);
    set(c, c->roles->call_open, may_call(c));
    set_ends(c, !c->ignore_eos || !may_call(c));
}

static clt_status allow_content(clt_constraint *c, clt_err *err) {
    clt_status status = clt_matcher_mask(c->content, c->bits, err);
    if (status != CLT_OK) return status;
    set(c, c->roles->quote, false); /* a mask of content holds text alone */
    if (clt_matcher_may_end(c->content)) set_ends(c, !c->ignore_eos || clt_matcher_must_end(c->content));
    if (c->phase != BEGIN) return CLT_OK;
    if (c->may_think) set(c, c->roles->channel_open, true);
    if (may_call(c)) set(c, c->roles->call_open, true);
    return CLT_OK;
}

clt_status clt_constraint_allowed(clt_constraint *c, const uint64_t **bits, clt_err *err) {
    clt_status status = CLT_OK;
    *bits = c->bits;
    if (c->phase == THOUGHT) allow_thought(c);
    else if (c->phase == CALL) status = clt_matcher_mask(c->call, c->bits, err);
    else if (c->phase == AFTER) allow_after(c);
    else if (c->content) status = allow_content(c, err);
    else allow_free(c);
    return status;
}

/* ---- ids ---- */

static clt_status refused(const clt_matcher *m, int32_t id, clt_err *err) {
    clt_status status = clt_matcher_check(m, err);
    return status == CLT_OK ? clt_fail(err, CLT_E_FAILED, "grammar: id %d cannot follow", id) : status;
}

static clt_status take_call(clt_constraint *c, int32_t id, clt_err *err) {
    if (!clt_matcher_accept(c->call, id)) return refused(c->call, id, err);
    if (clt_matcher_must_end(c->call)) c->phase = AFTER;
    return CLT_OK;
}

static bool is_end(const clt_constraint *c, int32_t id) {
    for (size_t i = 0; i < c->engine->info.n_end_ids; i++)
        if (c->engine->info.end_ids[i] == id) return true;
    return false;
}

clt_status clt_constraint_take(clt_constraint *c, int32_t id, clt_err *err) {
    const clt_vocab_roles *roles = c->roles;
    if (c->phase == CALL) return take_call(c, id, err);
    if (is_end(c, id)) {
        c->ended = c->content || c->choice == CULET_TOOLS_REQUIRED || c->phase == AFTER;
        return CLT_OK;
    }
    if (id == roles->call_open && c->call && (c->phase != CONTENT || !c->content)) {
        clt_matcher_reset(c->call);
        c->phase = CALL;
        return take_call(c, id, err);
    }
    if (c->phase == THOUGHT) {
        if (id == roles->channel_close) c->phase = BEGIN;
        return CLT_OK;
    }
    if (id == roles->channel_open && (!c->content || (c->phase == BEGIN && c->may_think))) {
        c->phase = THOUGHT;
        return CLT_OK;
    }
    if (c->phase == AFTER) return CLT_OK;
    c->phase = CONTENT;
    if (!c->content) return CLT_OK;
    if (!clt_matcher_accept(c->content, id)) return refused(c->content, id, err);
    c->ended = clt_matcher_must_end(c->content);
    return CLT_OK;
}

bool clt_constraint_ended(const clt_constraint *c) {
    return c->ended;
}
