/* Pictures and sound at the public door: bytes or pixels in, counted soft tokens out.
 *
 * What was made lately is known by the digest of the bytes it was made of and the budget; then nothing is decoded. */
#include "engine/media.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/hash.h"
#include "base/mem.h"
#include "base/os.h"
#include "engine/impl.h"
#include "engine/towers.h"
#include "media/picture.h"
#include "media/sound.h"

enum { MAX_FILE_BYTES = 512 << 20 };

/* One call: its source, settled, and what it found on the way. */
typedef struct intake {
    culet_engine *e;
    const culet_media_source *source;
    const char *name;
    int tokens;            /* budget of a picture */
    const uint8_t *data;   /* the file's bytes; NULL: pixels were given */
    size_t n;
    clt_buf file;          /* where data lies if a path was given */
    char key[80];
    double begin, decode_ms, encode_ms;
} intake;

/* ---- what was given ---- */

static clt_status check_source(const culet_media_source *s, clt_err *err) {
    int given = (s->path != NULL) + (s->data != NULL) + (s->rgb != NULL) + (s->samples != NULL);
    if (s->kind != CULET_IMAGE && s->kind != CULET_AUDIO)
        return clt_fail(err, CLT_E_USAGE, "media: kind %d is neither a picture nor a sound", (int)s->kind);
    if (given != 1) return clt_fail(err, CLT_E_USAGE, "media: %d of path, data, rgb and samples are set, expected one", given);
    if (s->samples && s->kind != CULET_AUDIO) return clt_fail(err, CLT_E_USAGE, "media: samples are no picture");
    if (!s->rgb) return CLT_OK;
    if (s->kind != CULET_IMAGE) return clt_fail(err, CLT_E_USAGE, "media: pixels are no sound");
    if (s->width < 1 || s->height < 1 || s->width > CLT_PICTURE_MAX_SIDE || s->height > CLT_PICTURE_MAX_SIDE ||
        (int64_t)s->width * s->height > CLT_PICTURE_MAX_PIXELS)
        return clt_fail(err, CLT_E_FAILED, "media: a picture of %d x %d pixels, expected at least one and at most %d in all",
                        s->width, s->height, (int)CLT_PICTURE_MAX_PIXELS);
    return CLT_OK;
}

static clt_status check_budget(const culet_engine *e, int tokens, int *out, clt_err *err) {
    static const int budgets[] = {70, 140, 280, 560, 1120};
    *out = tokens ? tokens : e->info.image_tokens;
    if (*out == e->info.image_tokens) return CLT_OK;
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++)
        if (tokens == budgets[i]) return CLT_OK;
    return clt_fail(err, CLT_E_USAGE, "image tokens: %d, expected 70, 140, 280, 560 or 1120", tokens);
}

/* Says of what kind the file is that cannot be read; a picture's file is not a model's. */
static clt_status read_bytes(intake *in, clt_err *err) {
    const culet_media_source *s = in->source;
    if (s->rgb || s->samples) return CLT_OK;
    if (s->data) {
        in->data = s->data, in->n = s->n_bytes;
        return CLT_OK;
    }
    clt_status status = clt_read_regular(s->path, MAX_FILE_BYTES, &in->file, err);
    in->data = (const uint8_t *)(in->file.data ? in->file.data : "");
    in->n = in->file.len;
    return status;
}

/* Without a digest there is no key: then nothing is kept, and nothing wrong is ever found. */
static void make_key(intake *in) {
    const culet_media_source *s = in->source;
    const void *bytes = s->rgb ? s->rgb : s->samples ? (const void *)s->samples : in->data;
    size_t n = s->rgb ? (size_t)s->width * (size_t)s->height * 3 : s->samples ? s->n_samples * sizeof(float) : in->n;
    char hex[65];
    clt_err ignored;
    if (n == 0 || clt_sha256_hex(bytes, n, hex, &ignored) != CLT_OK) return;
    /* 64 digits would leave no room for kind, size and budget; 40 tell pictures apart. */
    snprintf(in->key, sizeof in->key, "%.40s %d %d %d %d", hex, (int)s->kind, s->rgb ? s->width : s->samples ? -1 : 0,
             s->rgb ? s->height : 0, in->tokens);
}

/* ---- making ---- */

static clt_status encode_pixels(intake *in, const clt_picture *p, clt_soft **out, clt_err *err) {
    const clt_vision_config *c = clt_towers_vision_config(in->e->towers);
    clt_picture fitted = {0};
    int unit = c->patch * c->pool, width, height;
    clt_status status = clt_picture_fit(p->width, p->height, in->tokens, unit, in->name, &width, &height, err);
    if (status == CLT_OK) status = clt_picture_resize(p, width, height, &fitted, err);
    if (status != CLT_OK) return status;
    size_t tokens = (size_t)(width / unit) * (size_t)(height / unit);
    clt_soft *soft = clt_soft_new(CULET_IMAGE, tokens, in->e->info.width);
    in->decode_ms = clt_now_ms() - in->begin;
    if (!soft) status = clt_fail_memory(err, in->name, tokens * (size_t)in->e->info.width * sizeof(float));
    else status = clt_towers_see_picture(in->e, fitted.rgb, width, height, soft->rows, err);
    clt_picture_free(&fitted);
    if (status != CLT_OK) {
        clt_soft_free(soft);
        return status;
    }
    soft->info.width = p->width, soft->info.height = p->height;
    soft->info.resized_width = width, soft->info.resized_height = height;
    *out = soft;
    return CLT_OK;
}

static clt_status make_picture(intake *in, clt_soft **out, clt_err *err) {
    const culet_media_source *s = in->source;
    clt_picture decoded = {0}, given = {.width = s->width, .height = s->height, .rgb = (uint8_t *)(uintptr_t)s->rgb};
    if (s->rgb) return encode_pixels(in, &given, out, err);
    clt_status status = clt_picture_decode(in->data, in->n, in->name, &decoded, err);
    if (status == CLT_OK) status = encode_pixels(in, &decoded, out, err);
    clt_picture_free(&decoded);
    return status;
}

/* What the tower hears: mel frames, or the samples themselves. */
static clt_status hear(intake *in, const clt_sound *sound, clt_soft **out, clt_err *err) {
    const clt_audio_config *c = clt_towers_audio_config(in->e->towers);
    bool raw = c->kind == CLT_AUDIO_UNIFIED;
    int64_t frames = raw ? sound->n : clt_mel_frames(sound->n), tokens = clt_audio_tokens(c, frames);
    float *mel = NULL;
    clt_status status = CLT_OK;
    if (tokens < 1)
        return clt_fail(err, CLT_E_FAILED, "%s: %.0f ms of sound are too short to be heard", in->name,
                        sound->seconds * 1000);
    clt_soft *soft = clt_soft_new(CULET_AUDIO, (size_t)tokens, in->e->info.width);
    if (!raw) mel = clt_alloc((size_t)frames * CLT_MEL_BANDS * sizeof *mel);
    if (!soft || (!raw && !mel)) status = clt_fail_memory(err, in->name, (size_t)frames * CLT_MEL_BANDS * sizeof *mel);
    if (status == CLT_OK && !raw) status = clt_mel_features(sound->samples, sound->n, mel, err);
    in->decode_ms = clt_now_ms() - in->begin;
    if (status == CLT_OK)
        status = clt_towers_hear_sound(in->e, raw ? sound->samples : mel, frames, soft->rows, err);
    clt_free(mel);
    if (status == CLT_OK) {
        soft->info.seconds = sound->seconds;
        clt_sound_remark(sound, soft->info.remark, sizeof soft->info.remark);
        *out = soft;
    } else {
        clt_soft_free(soft);
    }
    return status;
}

/* Samples that were given: the numbers and the length are judged as those of a file. */
static clt_status hear_samples(intake *in, double limit, clt_soft **out, clt_err *err) {
    const culet_media_source *s = in->source;
    double seconds = (double)s->n_samples / CLT_SOUND_RATE;
    clt_sound given = {.samples = (float *)(uintptr_t)s->samples, .n = (int64_t)s->n_samples, .seconds = seconds,
                       .rate = CLT_SOUND_RATE, .channels = 1};
    if (s->n_samples == 0) return clt_fail(err, CLT_E_FAILED, "%s: holds no sound: 0 samples", in->name);
    if (limit > 0 && seconds > limit)
        return clt_fail(err, CLT_E_FAILED, "%s: lasts %.2f s, %.2f s at most are allowed", in->name, seconds, limit);
    for (size_t i = 0; i < s->n_samples; i++)
        if (!isfinite(s->samples[i])) return clt_fail(err, CLT_E_FAILED, "%s: sample %zu is no number", in->name, i);
    return hear(in, &given, out, err);
}

static clt_status make_sound(intake *in, clt_soft **out, clt_err *err) {
    clt_sound sound = {0};
    double limit = clt_towers_audio_config(in->e->towers)->max_seconds;
    if (in->source->samples) return hear_samples(in, limit, out, err);
    clt_status status = clt_sound_decode(in->data, in->n, in->name, limit, &sound, err);
    if (status == CLT_OK) status = hear(in, &sound, out, err);
    clt_sound_free(&sound);
    return status;
}

culet_status culet_sound_read(const char *path, float **samples, size_t *n, culet_error *err) {
    clt_err inner;
    clt_sound sound = {0};
    clt_status status = clt_sound_read(path, 0, &sound, &inner);
    *samples = sound.samples;
    *n = (size_t)sound.n;
    return clt_report(status, &inner, err);
}

/* ---- handles ---- */

static clt_status wrap(clt_soft *const *part, size_t n, const culet_media_info *info, culet_media **out, clt_err *err) {
    culet_media *m = clt_calloc(1, sizeof *m);
    if (m) m->part = clt_calloc(n, sizeof *m->part);
    if (!m || !m->part) {
        clt_free(m);
        return clt_fail_memory(err, "media", sizeof *m + n * sizeof *m->part);
    }
    atomic_init(&m->holders, 1);
    m->info = *info;
    m->n_parts = n;
    for (size_t i = 0; i < n; i++) m->part[i] = clt_soft_keep(part[i]);
    *out = m;
    return CLT_OK;
}

static void free_all(culet_media **list, size_t n) {
    for (size_t i = 0; i < n; i++) culet_media_free(list[i]);
    clt_free(list);
}

culet_status culet_session_media(const culet_session *s, culet_media ***out, size_t *n, culet_error *err) {
    clt_err inner;
    clt_status status = CLT_OK;
    culet_media **list = clt_calloc(s->spans.n + 1, sizeof *list);
    *out = NULL, *n = 0;
    if (!list) return clt_report(clt_fail_memory(&inner, "media", s->spans.n * sizeof *list), &inner, err);
    for (size_t i = 0; i < s->spans.n && status == CLT_OK; i++) {
        clt_soft *soft = s->spans.item[i].soft;
        status = wrap(&soft, 1, &soft->info, &list[i], &inner);
        if (status == CLT_OK) list[i]->info.cached = true, *n = i + 1;
    }
    if (status != CLT_OK) free_all(list, *n), *n = 0;
    else *out = list;
    return clt_report(status, &inner, err);
}

culet_media *culet_media_keep(culet_media *m) {
    atomic_fetch_add(&m->holders, 1);
    return m;
}

void culet_media_free(culet_media *m) {
    if (!m || atomic_fetch_sub(&m->holders, 1) != 1) return;
    for (size_t i = 0; i < m->n_parts; i++) clt_soft_free(m->part[i]);
    clt_free(m->part);
    clt_free(m->seconds);
    clt_free(m);
}

const culet_media_info *culet_media_get_info(const culet_media *m) { return &m->info; }

void culet_media_cancel(culet_engine *e) {
    if (e->towers) clt_towers_cancel(e->towers);
}

/* ---- encoding ---- */

static clt_status can_take(const culet_engine *e, culet_media_kind kind, clt_err *err) {
    if (!e->net) return clt_fail(err, CLT_E_USAGE, "media: the model was not opened to be run");
    bool can = kind == CULET_AUDIO ? clt_towers_hear(e->towers) : clt_towers_see(e->towers);
    return can ? CLT_OK : clt_towers_refuse(e, kind, err);
}

static clt_status encode(intake *in, clt_soft **out, bool *cached, clt_err *err) {
    clt_soft_cache *cache = clt_towers_cache(in->e->towers);
    clt_status status = read_bytes(in, err);
    if (status != CLT_OK) return status;
    make_key(in);
    *out = clt_soft_cache_find(cache, in->key);
    *cached = *out != NULL;
    in->decode_ms = clt_now_ms() - in->begin;
    if (*cached) return CLT_OK;
    status = in->source->kind == CULET_IMAGE ? make_picture(in, out, err) : make_sound(in, out, err);
    if (status != CLT_OK) return status;
    in->encode_ms = clt_now_ms() - in->begin - in->decode_ms;
    memcpy((*out)->key, in->key, sizeof in->key);
    clt_soft_cache_put(cache, *out);
    return CLT_OK;
}

culet_status culet_media_encode(culet_engine *e, const culet_media_source *source, culet_media **out, culet_error *err) {
    clt_err inner;
    clt_soft *soft = NULL;
    bool cached = false;
    intake in = {.e = e, .source = source, .begin = clt_now_ms()};
    *out = NULL;
    in.name = source->name ? source->name : source->path ? source->path : source->kind == CULET_AUDIO ? "audio" : "image";
    clt_status status = check_source(source, &inner);
    if (status == CLT_OK) status = can_take(e, source->kind, &inner);
    if (status == CLT_OK && source->kind == CULET_IMAGE) status = check_budget(e, source->tokens, &in.tokens, &inner);
    if (status == CLT_OK) status = encode(&in, &soft, &cached, &inner);
    if (status == CLT_OK) {
        culet_media_info info = soft->info;
        info.decode_ms = in.decode_ms, info.encode_ms = in.encode_ms, info.cached = cached;
        status = wrap(&soft, 1, &info, out, &inner);
    }
    clt_soft_free(soft);
    clt_buf_free(&in.file);
    return clt_report(status, &inner, err);
}

/* ---- video ---- */

static clt_status add_up(culet_media *const *frames, const double *seconds, size_t n, culet_media_info *out, clt_err *err) {
    *out = (culet_media_info){.kind = CULET_VIDEO, .frames = n, .cached = true};
    for (size_t i = 0; i < n; i++) {
        const culet_media_info *f = &frames[i]->info;
        if (f->kind != CULET_IMAGE) return clt_fail(err, CLT_E_USAGE, "video: frame %zu is no picture", i);
        if (!(seconds[i] >= 0 && seconds[i] < 1e7))
            return clt_fail(err, CLT_E_USAGE, "video: frame %zu lies at %g seconds", i, seconds[i]);
        if (i == 0) *out = (culet_media_info){.kind = CULET_VIDEO, .frames = n, .width = f->width, .height = f->height,
                                              .resized_width = f->resized_width, .resized_height = f->resized_height,
                                              .cached = true};
        out->tokens += f->tokens;
        out->decode_ms += f->decode_ms, out->encode_ms += f->encode_ms;
        out->cached &= f->cached;
        out->seconds = seconds[i];
    }
    return CLT_OK;
}

culet_status culet_media_video(culet_engine *e, culet_media *const *frames, const double *seconds, size_t n,
                               culet_media **out, culet_error *err) {
    clt_err inner;
    culet_media_info info;
    clt_soft **part = NULL;
    *out = NULL;
    clt_status status = can_take(e, CULET_VIDEO, &inner);
    if (status == CLT_OK && n == 0) status = clt_fail(&inner, CLT_E_USAGE, "video: it has no frames");
    if (status == CLT_OK) status = add_up(frames, seconds, n, &info, &inner);
    if (status != CLT_OK) return clt_report(status, &inner, err);
    part = clt_calloc(n, sizeof *part);
    for (size_t i = 0; part && i < n; i++) part[i] = frames[i]->part[0];
    status = part ? wrap(part, n, &info, out, &inner) : clt_fail_memory(&inner, "video", n * sizeof *part);
    clt_free(part);
    if (status == CLT_OK) {
        (*out)->seconds = clt_calloc(n, sizeof *seconds);
        if ((*out)->seconds) memcpy((*out)->seconds, seconds, n * sizeof *seconds);
        else status = clt_fail_memory(&inner, "video", n * sizeof *seconds);
    }
    if (status != CLT_OK) {
        culet_media_free(*out);
        *out = NULL;
    }
    return clt_report(status, &inner, err);
}
