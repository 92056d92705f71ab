/* Opening a model: a path or name in, an engine out; and closing it. Every check that can fail does so here, before the
 * first weight is prepared. What the model says about itself is read in facts.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "base/os.h"
#include "engine/impl.h"
#include "hub/folder.h"

static void say(void (*to)(void *user, const char *line), void *user, const char *fmt, va_list args) {
    char line[1024];
    if (!to) return;
    vsnprintf(line, sizeof line, fmt, args);
    to(user, line);
}

void clt_engine_warn(const culet_engine_params *p, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    say(p->log, p->user, fmt, args);
    va_end(args);
}

void clt_engine_note(const culet_engine_params *p, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    say(p->note, p->user, fmt, args);
    va_end(args);
}

/* ---- steps of opening ---- */

static clt_status open_file(culet_engine *e, const char *model, clt_err *err) {
    clt_buf path = {0};
    clt_status status = clt_hub_find(model, &path, err);
    if (status == CLT_OK) status = clt_file_open(path.data, &e->file, err);
    if (status == CLT_OK) {
        e->info.path = clt_arena_strndup(e->arena, path.data, path.len);
        if (!e->info.path) status = clt_fail_memory(err, path.data, path.len);
    }
    clt_buf_free(&path);
    return status;
}

static clt_status bind_model(culet_engine *e, clt_err *err) {
    if (e->mode == CULET_OPEN_TEXT && clt_file_tensors(e->file) == 0) return CLT_OK;
    clt_status status = clt_model_bind(e->file, &e->model, err);
    if (status != CLT_OK) return status;
    e->has_model = true;
    return CLT_OK;
}

/* Text must never become an id without a row. Special ids may stand beyond the rows (Gemma 3's <image_soft_token> does):
 * they arise only where their writer says so, and a session refuses them. */
static clt_status check_vocab(const culet_engine *e, clt_err *err) {
    int rows = e->model.config.vocab, ids = clt_vocab_size(e->vocab), id = rows;
    if (!e->has_model) return CLT_OK;
    while (id < ids && (clt_vocab_is_special(e->vocab, id) || clt_vocab_kind(e->vocab, id) == CLT_TOKEN_UNUSED)) id++;
    if (id >= ids) return CLT_OK;
    return clt_fail(err, CLT_E_FILE, "%s: tensor %s has %d rows, the vocabulary %d ids", e->info.path, e->model.embed->name,
                    rows, ids);
}

static clt_status read_vocab(culet_engine *e, const culet_engine_params *p, clt_err *err) {
    clt_status status = clt_vocab_open(e->file, &e->vocab, err);
    if (status == CLT_OK) status = check_vocab(e, err);
    if (status == CLT_OK) status = clt_engine_read_template(e, p, err);
    if (status != CLT_OK) return status;
    clt_engine_read_ids(e, p->chat_template_file != NULL);
    clt_engine_read_sampling(e);
    return CLT_OK;
}

/* The kernels of the chosen level, or of the next lower one that this build has: all levels give the same bits. */
static clt_status choose_kernels(const clt_kernels **out, clt_err *err) {
    clt_cpu_level level;
    *out = NULL;
    clt_status status = clt_cpu_choose(&level, err);
    if (status != CLT_OK) return status;
    for (int l = (int)level; l >= 0 && !*out; l--) *out = clt_kernels_get((clt_cpu_level)l);
    if (!*out) return clt_fail(err, CLT_E_UNSUPPORTED, "CPU level %s: no kernels in this build", clt_cpu_level_name(level));
    return CLT_OK;
}

/* Before the first weight is read. */
static clt_status check_memory(const culet_engine *e, const culet_engine_params *p, clt_err *err) {
    clt_plan plan;
    culet_session_params wanted;
    int sessions = !p->plan ? 0 : p->plan_sessions > 0 ? p->plan_sessions : 1;
    culet_session_defaults(&wanted);
    if (p->plan) wanted = *p->plan;
    if (wanted.context > e->info.context_limit) wanted.context = e->info.context_limit;
    clt_status status = clt_plan_make(e, &wanted, sessions, &plan, err);
    return status == CLT_OK ? clt_plan_check(e, &plan, false, err) : status;
}

static clt_status prepare(culet_engine *e, const culet_engine_params *p, clt_err *err) {
    clt_status status = check_memory(e, p, err);
    if (status == CLT_OK) status = clt_pool_create_with(&e->placement, &e->pool, err);
    if (status != CLT_OK) return status;
    if (clt_pool_refusal(e->pool)) clt_engine_warn(p, "%s", clt_pool_refusal(e->pool));
    clt_engine_fingerprint(e);
    clt_engine_use_packed(e, p);
    if (e->packed)
        status = clt_net_create_packed(&e->model, e->kernels, e->pool, clt_packed_data(e->packed), &e->net, err);
    else
        status = clt_net_create(&e->model, e->kernels, e->pool, p->progress, p->user, &e->net, err);
    if (status != CLT_OK) return status;
    e->info.weight_bytes = clt_net_bytes(e->net);
    if (p->pack_cache) clt_engine_pack_cache(e, p);
    return CLT_OK;
}

/* ---- info ---- */

static void fill_model_info(culet_engine *e) {
    const clt_model *m = &e->model;
    culet_model_info *i = &e->info;
    i->architecture = m->architecture;
    i->name = m->name ? m->name : "";
    i->family = m->family_name ? m->family_name : "";
    i->vocab = clt_vocab_size(e->vocab);
    i->bos_id = clt_vocab_get_roles(e->vocab)->bos;
    i->is_base = !e->has_chat;
    i->template_name = e->has_chat ? clt_chat_generation_name(e->chat.generation) : "";
    i->template_digest = e->chat.digest;
    i->template_recognised = e->has_chat && e->chat.recognised;
    i->file_bytes = clt_file_bytes(e->file);
    if (!e->has_model) return;
    i->layers = m->config.layers;
    i->width = m->config.width;
    i->heads = m->config.layer[0].heads;
    i->vocab = m->config.vocab;
    i->context_limit = m->config.context_limit;
    i->parameters = m->parameters;
}

static clt_status fill_format(culet_engine *e, clt_err *err) {
    char text[32];
    if (clt_file_get_kind(e->file) == CLT_FILE_GGUF) snprintf(text, sizeof text, "GGUF v%u", clt_file_version(e->file));
    else snprintf(text, sizeof text, "Hugging Face");
    e->info.format = clt_arena_strndup(e->arena, text, strlen(text));
    return e->info.format ? CLT_OK : clt_fail_memory(err, "engine", sizeof text);
}

static clt_status open_all(culet_engine *e, const culet_engine_params *p, clt_err *err) {
    const clt_kernels *kernels;
    clt_status status = clt_engine_place(p, e, err);
    if (status == CLT_OK) status = choose_kernels(&kernels, err);
    if (status == CLT_OK) status = open_file(e, p->model, err);
    if (status == CLT_OK) status = bind_model(e, err);
    if (status == CLT_OK) status = read_vocab(e, p, err);
    if (status == CLT_OK) status = fill_format(e, err);
    if (status != CLT_OK) return status;
    e->kernels = kernels;
    e->info.cpu_level = clt_cpu_level_name(kernels->level);
    fill_model_info(e);
    if (e->has_model) status = clt_towers_open(e, p, err);
    return status == CLT_OK && e->mode == CULET_OPEN_FULL ? prepare(e, p, err) : status;
}

/* ---- public ---- */

culet_status culet_engine_open(const culet_engine_params *p, culet_engine **out, culet_error *err) {
    clt_err inner;
    clt_status status;
    double start = clt_now_ms();
    *out = NULL;
    culet_engine *e = clt_calloc(1, sizeof *e);
    if (!e) return clt_report(clt_fail_memory(&inner, "engine", sizeof *e), &inner, err);
    e->mode = p->mode;
    e->skip_memory_check = p->skip_memory_check;
    e->arena = clt_arena_create(4096);
    e->has_busy = clt_turn_init(&e->busy);
    if (!e->arena || !e->has_busy) status = clt_fail_memory(&inner, "engine", 4096);
    else status = open_all(e, p, &inner);
    e->info.load_ms = clt_now_ms() - start;
    if (status != CLT_OK) culet_engine_close(e);
    else *out = e;
    return clt_report(status, &inner, err);
}

void culet_engine_close(culet_engine *e) {
    if (!e) return;
    clt_towers_free(e->towers);
    clt_net_free(e->net);
    clt_packed_close(e->packed);
    clt_profile_free(e->profile);
    clt_pool_free(e->pool);
    if (e->has_model) clt_model_free(&e->model);
    clt_tokens_free(e->tokens);
    clt_vocab_free(e->vocab);
    clt_file_close(e->file);
    clt_arena_free(e->arena);
    if (e->has_busy) clt_turn_destroy(&e->busy);
    clt_free(e);
}

const culet_model_info *culet_engine_info(const culet_engine *e) {
    return &e->info;
}
