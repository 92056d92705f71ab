/* Finding, loading and running towers.
 *
 * A tower is bound when the model is opened, so that what does not fit is said then; its weights are packed with the first
 * picture or sound, so that who sends none pays nothing. One picture is encoded at a time; between its layers the pool is
 * free for the passes of sessions. */
#include "engine/towers.h"
#include <stdio.h>
#include <string.h>
#include "base/limits.h"
#include "base/mem.h"
#include "engine/impl.h"
#include "hub/folder.h"

enum { CACHE_BYTES = 256 << 20 };

struct clt_towers {
    clt_file *file;              /* the vision file; NULL: the model's own folder, or nothing */
    bool sees, hears;
    clt_vision_model vision_model;
    clt_audio_model audio_model;
    clt_vision *vision;          /* NULL until the first picture */
    clt_audio *audio;
    clt_turn encoding;           /* one picture or sound at a time */
    bool has_encoding;
    clt_soft_cache *cache;
    atomic_uint cancels;         /* so far: an encode ends when one is added */
    char refusal[1024];          /* why a file that lies beside the model is not used; "" = none does */
};

/* ---- finding ---- */

static clt_status bind(culet_engine *e, const clt_file *f, clt_err *err) {
    clt_towers *t = e->towers;
    clt_status status = CLT_OK;
    if (clt_vision_present(f)) {
        status = clt_vision_bind(f, &e->model, &t->vision_model, err);
        t->sees = status == CLT_OK;
    }
    if (status == CLT_OK && clt_audio_present(f)) {
        status = clt_audio_bind(f, &e->model, &t->audio_model, err);
        t->hears = status == CLT_OK;
    }
    return status;
}

static void unbind(clt_towers *t) {
    if (t->sees) clt_vision_model_free(&t->vision_model);
    if (t->hears) clt_audio_model_free(&t->audio_model);
    t->sees = t->hears = false;
}

static clt_status open_file(culet_engine *e, const char *path, clt_err *err) {
    clt_towers *t = e->towers;
    clt_status status = clt_file_open(path, &t->file, err);
    if (status != CLT_OK) return status;
    status = bind(e, t->file, err);
    if (status == CLT_OK && !t->sees && !t->hears) {
        clt_fail(err, CLT_E_FILE, "%s: holds neither a picture tower nor a sound tower", path);
        status = clt_hint(err, "give a vision file (mmproj) of this model");
    }
    if (status == CLT_OK) return CLT_OK;
    unbind(t);
    clt_file_close(t->file);
    t->file = NULL;
    return status;
}

static void go_without(culet_engine *e, const culet_engine_params *p, const clt_err *why) {
    snprintf(e->towers->refusal, sizeof e->towers->refusal, "%.1000s", why->text);
    clt_engine_warn(p, "%s; going on without pictures and sound", why->text);
}

/* A file that nobody named is used if it fits, and named if it does not. */
static clt_status try_beside(culet_engine *e, const culet_engine_params *p, clt_err *err) {
    clt_buf path = {0};
    clt_err inner;
    clt_status status = clt_hub_find_vision(e->info.path, &path, err);
    if (status == CLT_OK && path.len && open_file(e, path.data, &inner) != CLT_OK) go_without(e, p, &inner);
    clt_buf_free(&path);
    return status;
}

static clt_status find(culet_engine *e, const culet_engine_params *p, clt_err *err) {
    clt_err inner;
    if (p->mmproj) return *p->mmproj ? open_file(e, p->mmproj, err) : CLT_OK;
    if (e->model.config.family != CLT_GEMMA4) return CLT_OK;
    if (bind(e, e->file, &inner) != CLT_OK) {
        unbind(e->towers);
        go_without(e, p, &inner);
    }
    if (e->towers->sees || e->towers->hears || clt_file_get_kind(e->file) != CLT_FILE_GGUF) return CLT_OK;
    return try_beside(e, p, err);
}

static void fill_info(culet_engine *e) {
    static const char *const vision_kinds[] = {"", "encoder", "unified"};
    static const char *const audio_kinds[] = {"", "conformer", "unified"};
    const clt_towers *t = e->towers;
    culet_model_info *i = &e->info;
    const char *path = t->file ? clt_file_path(t->file) : i->path;
    i->vision_path = t->sees ? path : NULL;
    i->audio_path = t->hears ? path : NULL;
    i->vision_kind = vision_kinds[t->sees ? t->vision_model.config.kind : CLT_VISION_NONE];
    i->audio_kind = audio_kinds[t->hears ? t->audio_model.config.kind : CLT_AUDIO_NONE];
    i->image_tokens = t->sees ? t->vision_model.config.default_tokens : 0;
    i->audio_limit_seconds = t->hears ? t->audio_model.config.max_seconds : 0;
}

clt_status clt_towers_open(culet_engine *e, const culet_engine_params *p, clt_err *err) {
    clt_towers *t = e->towers = clt_calloc(1, sizeof *t);
    if (!t) return clt_fail_memory(err, "towers", sizeof *t);
    atomic_init(&t->cancels, 0);
    t->has_encoding = clt_turn_init(&t->encoding);
    t->cache = clt_soft_cache_create(CACHE_BYTES);
    if (!t->cache || !t->has_encoding) return clt_fail_memory(err, "towers", sizeof *t);
    clt_status status = find(e, p, err);
    if (status == CLT_OK) fill_info(e);
    return status;
}

void clt_towers_free(clt_towers *t) {
    if (!t) return;
    clt_vision_free(t->vision);
    clt_audio_free(t->audio);
    unbind(t);
    clt_file_close(t->file);
    clt_soft_cache_free(t->cache);
    if (t->has_encoding) clt_turn_destroy(&t->encoding);
    clt_free(t);
}

bool clt_towers_see(const clt_towers *t) { return t && t->sees; }

bool clt_towers_hear(const clt_towers *t) { return t && t->hears; }

const clt_vision_config *clt_towers_vision_config(const clt_towers *t) {
    return clt_towers_see(t) ? &t->vision_model.config : NULL;
}

const clt_audio_config *clt_towers_audio_config(const clt_towers *t) {
    return clt_towers_hear(t) ? &t->audio_model.config : NULL;
}

clt_soft_cache *clt_towers_cache(clt_towers *t) { return t->cache; }

/* What the model could be: the published sizes without per-layer embeddings other than the 12B have no ears. */
static bool deaf_by_nature(const culet_engine *e) {
    const clt_config *c = &e->model.config;
    return c->family == CLT_GEMMA4 && !c->ple_dim && !c->unified;
}

clt_status clt_towers_refuse(const culet_engine *e, culet_media_kind kind, clt_err *err) {
    const clt_towers *t = e->towers;
    bool sound = kind == CULET_AUDIO;
    const char *what = sound ? "hear" : "see", *path = e->info.path;
    if (e->model.config.family != CLT_GEMMA4) {
        clt_fail(err, CLT_E_UNSUPPORTED, "%s: a Gemma 3 model is run for its text alone, it cannot %s here", path, what);
        return clt_hint(err, "pictures and sound need a Gemma 4 model");
    }
    if (*t->refusal) return clt_fail(err, CLT_E_UNSUPPORTED, "%s: cannot %s: %s", path, what, t->refusal);
    if (sound && (t->sees || deaf_by_nature(e))) {
        clt_fail(err, CLT_E_UNSUPPORTED, "%s: cannot hear: %s", path,
                 deaf_by_nature(e) ? "models of this size have no sound tower"
                                   : "there is a picture tower, but none for sound");
        return clt_hint(err, "E2B, E4B and the 12B take sound");
    }
    if (!sound && t->hears)
        return clt_fail(err, CLT_E_UNSUPPORTED, "%s: cannot see: there is a sound tower, but none for pictures", path);
    clt_fail(err, CLT_E_UNSUPPORTED, "%s: cannot %s: the file holds text weights alone%s", path, what,
             clt_file_get_kind(e->file) == CLT_FILE_GGUF ? " and no vision file (mmproj) is in use" : "");
    return clt_hint(err, "give the model's vision file with --mmproj, or put it beside the model as mmproj-….gguf");
}

/* ---- running ---- */

/* What an encode is between its layers. */
typedef struct encode {
    culet_engine *e;
    unsigned cancels; /* when it began */
} encode;

static void take_pool(culet_engine *e) {
    clt_turn_take(&e->busy);
    clt_pool_limit(e->pool, e->info.threads_batch);
}

static bool between(void *user) {
    encode *c = user;
    clt_turn_give(&c->e->busy);
    take_pool(c->e);
    return atomic_load(&c->e->towers->cancels) == c->cancels;
}

void clt_towers_cancel(clt_towers *t) { atomic_fetch_add(&t->cancels, 1); }

/* Towers come after the plan was made and before anybody is told no: what they need is asked for here. */
static clt_status check_room(const culet_engine *e, const char *tower, uint64_t needed, clt_err *err) {
    clt_memory_room room;
    if (e->skip_memory_check) return CLT_OK;
    clt_memory_look(&room);
    if (needed <= room.free_bytes) return CLT_OK;
    clt_fail(err, CLT_E_MEMORY, "%s: the %s tower needs %.1f MiB, %.1f MiB are left (%s)", e->info.path, tower,
             (double)needed / 1048576, (double)room.free_bytes / 1048576, room.source);
    return clt_hint(err, "use a smaller context (-c) or close other programs");
}

static clt_status load_vision(culet_engine *e, clt_err *err) {
    clt_towers *t = e->towers;
    if (t->vision) return CLT_OK;
    clt_status status = check_room(e, "picture", clt_vision_plan_bytes(&t->vision_model), err);
    return status == CLT_OK ? clt_vision_create(&t->vision_model, e->kernels, e->pool, &t->vision, err) : status;
}

static clt_status load_audio(culet_engine *e, clt_err *err) {
    clt_towers *t = e->towers;
    if (t->audio) return CLT_OK;
    clt_status status = check_room(e, "sound", clt_audio_plan_bytes(&t->audio_model), err);
    return status == CLT_OK ? clt_audio_create(&t->audio_model, e->kernels, e->pool, &t->audio, err) : status;
}

static encode begin(culet_engine *e) {
    encode c = {e, atomic_load(&e->towers->cancels)};
    clt_turn_take(&e->towers->encoding);
    take_pool(e);
    return c;
}

static void end(culet_engine *e) {
    clt_turn_give(&e->busy);
    clt_turn_give(&e->towers->encoding);
}

clt_status clt_towers_see_picture(culet_engine *e, const uint8_t *rgb, int width, int height, float *soft, clt_err *err) {
    encode c = begin(e);
    clt_status status = load_vision(e, err);
    if (status == CLT_OK) status = clt_vision_run(e->towers->vision, rgb, width, height, soft, between, &c, err);
    end(e);
    return status;
}

clt_status clt_towers_hear_sound(culet_engine *e, const float *x, int64_t frames, float *soft, clt_err *err) {
    encode c = begin(e);
    clt_status status = load_audio(e, err);
    if (status == CLT_OK) status = clt_audio_run(e->towers->audio, x, frames, soft, between, &c, err);
    end(e);
    return status;
}
