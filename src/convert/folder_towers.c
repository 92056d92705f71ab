/* The towers of a Hugging Face folder as a vision file. The binding of the towers says which tensor has which name there. */
#include <stdio.h>
#include <string.h>
#include "convert/folder.h"
#include "model/audio.h"
#include "model/vision.h"

typedef struct towers {
    const clt_file *f;
    clt_type type;
    clt_manifest *out;
    clt_keys keys;
    clt_model text;
    clt_vision_model vision;
    clt_audio_model audio;
    bool sees, hears;
    const char **names; /* [tensors]: in GGUF; NULL: not a tower's */
    bool no_memory;
} towers;

static void heard(void *user, const char *gguf, const clt_tensor *t) {
    towers *w = user;
    char *name = clt_arena_strndup(w->out->arena, gguf, strlen(gguf));
    w->names[t - clt_file_tensor(w->f, 0)] = name;
    w->no_memory |= !name;
}

/* ---- tensors ---- */

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }
static bool ends(const char *s, const char *with) {
    size_t n = strlen(s), m = strlen(with);
    return n >= m && !strcmp(s + n - m, with);
}

/* Convolutions, tables of positions and whatever is no weight stay as precise as they can be. */
static clt_type type_for(const towers *w, const char *name, const clt_tensor *t, int n_dims) {
    bool sound = starts(name, "a.") || starts(name, "mm.a.");
    if (n_dims <= 1 || !ends(name, ".weight") || !strcmp(name, "v.position_embd.weight")) return CLT_F32;
    if (sound && (strstr(t->name, ".conv") || strstr(t->name, "_conv"))) return CLT_F32;
    if (!strcmp(name, "v.patch_embd.weight")) return w->type == CLT_F16 ? CLT_F16 : CLT_F32;
    return t->dims[0] % clt_type_get((uint32_t)w->type)->block_len == 0 ? w->type : CLT_F16;
}

static void set_shape(clt_manifest_tensor *m, int n, int64_t a, int64_t b, int64_t c, int64_t d) {
    m->n_dims = n;
    m->dims[0] = a, m->dims[1] = b, m->dims[2] = c, m->dims[3] = d;
}

/* Patches are planes of colour there, not pixels; the 12B's positions are two planes, too; the scale of the queries is taken
 * through its softplus; a depthwise convolution loses its dimension of one. */
static void reshape(const towers *w, clt_manifest_tensor *m) {
    const clt_vision_config *c = &w->vision.config;
    bool unified = c->kind == CLT_VISION_UNIFIED;
    if (!strcmp(m->name, "v.patch_embd.weight") || starts(m->name, "v.patch_norm.1.")) m->source.change = CLT_PLANAR;
    if (!strcmp(m->name, "v.patch_embd.weight") && !unified) set_shape(m, 4, c->patch, c->patch, 3, c->width);
    if (!strcmp(m->name, "v.position_embd.weight") && unified) {
        m->source.change = CLT_SWAP_ROWS;
        m->source.swap = m->dims[2];
        set_shape(m, 3, m->dims[0], m->dims[2], m->dims[1], 1);
    }
    if (ends(m->name, ".per_dim_scale.weight")) m->source.change = CLT_SOFTPLUS;
    if (ends(m->name, ".conv_dw.weight")) set_shape(m, 2, m->dims[0], m->dims[2], 1, 1);
}

static clt_status add_tensors(towers *w, clt_err *err) {
    for (size_t i = 0; i < clt_file_tensors(w->f); i++) {
        const clt_tensor *t = clt_file_tensor(w->f, i);
        if (!w->names[i]) continue;
        clt_manifest_tensor m = {.name = w->names[i], .n_dims = t->n_dims,
                                 .source = {.file = w->f, .tensor = t, .cols = t->dims[0], .rows = clt_tensor_rows(t)}};
        memcpy(m.dims, t->dims, sizeof m.dims);
        reshape(w, &m);
        m.type = type_for(w, m.name, t, m.n_dims);
        if (!clt_manifest_add(w->out, &m, err)) return err->code;
    }
    return CLT_OK;
}

/* ---- configuration ---- */

/* Colours as the folder's processor normalises them. */
static void put_colours(const towers *w, const char *key, const char *name, float usual) {
    const clt_json *p = clt_json_get(clt_file_json(w->f, "processor_config.json"), "image_processor");
    if (!p) p = clt_file_json(w->f, "preprocessor_config.json");
    float v[3];
    for (size_t i = 0; i < 3; i++) {
        double x = (double)usual;
        clt_json_num(clt_json_at(clt_json_get(p, name), i), &x);
        v[i] = (float)x;
    }
    clt_gguf_put_array(w->keys.head, key, CLT_META_F32, 3, v, sizeof v);
}

static void put_vision(const towers *w) {
    enum { IMAGE_SIZE = 224 /* nobody reads it: pictures may have any size */ };
    const clt_vision_config *c = &w->vision.config;
    const clt_keys *k = &w->keys;
    clt_keys_bool(k, ".has_vision_encoder", true);
    clt_keys_u32(k, ".vision.projection_dim", w->text.config.width);
    clt_keys_u32(k, ".vision.image_size", IMAGE_SIZE);
    clt_keys_u32(k, ".vision.patch_size", c->patch);
    clt_keys_u32(k, ".vision.embedding_length", c->width);
    clt_keys_u32(k, ".vision.feed_forward_length", c->ffn);
    clt_keys_u32(k, ".vision.block_count", c->layers);
    clt_keys_u32(k, ".vision.attention.head_count", c->heads);
    put_colours(w, "clip.vision.image_mean", "image_mean", 0);
    put_colours(w, "clip.vision.image_std", "image_std", 1);
}

static void put_audio(const towers *w) {
    const clt_audio_config *c = &w->audio.config;
    const clt_keys *k = &w->keys;
    bool unified = c->kind == CLT_AUDIO_UNIFIED;
    clt_keys_bool(k, ".has_audio_encoder", true);
    clt_keys_u32(k, ".audio.projection_dim", w->text.config.width);
    clt_keys_u32(k, ".audio.embedding_length", unified ? c->bands : c->width);
    clt_keys_u32(k, ".audio.feed_forward_length", unified ? 0 : 4 * (int64_t)c->width);
    clt_keys_u32(k, ".audio.block_count", unified ? 0 : c->layers);
    clt_keys_u32(k, ".audio.attention.head_count", unified ? 0 : c->heads);
}

static void put_config(const towers *w) {
    const clt_json *root = clt_file_json(w->f, "config.json");
    const clt_keys *k = &w->keys;
    clt_keys_general(k, w->f, "mmproj", w->out, 0);
    if (w->sees) put_vision(w);
    if (w->hears) put_audio(w);
    if (w->sees) {
        clt_keys_str(k, ".vision.projector_type", w->vision.config.kind == CLT_VISION_UNIFIED ? "gemma4uv" : "gemma4v");
        clt_keys_f32(k, ".vision.attention.layer_norm_epsilon",
                     clt_json_num_or(clt_json_get(root, "vision_config"), "layer_norm_eps", 1e-6));
    }
    if (!w->hears) return;
    const clt_json *audio = clt_json_get(root, "audio_config");
    clt_keys_str(k, ".audio.projector_type", w->audio.config.kind == CLT_AUDIO_UNIFIED ? "gemma4ua" : "gemma4a");
    clt_keys_u32(k, ".audio.num_mel_bins", clt_json_int_or(audio, "input_feat_size", 128));
    clt_keys_f32(k, ".audio.attention.layer_norm_epsilon", clt_json_num_or(audio, "layer_norm_eps", 1e-6));
}

/* ---- all of it ---- */

static clt_status bind(towers *w, clt_err *err) {
    clt_tower_listener listener = {heard, w};
    clt_status status = CLT_OK;
    if (clt_vision_present(w->f)) {
        status = clt_vision_bind_heard(w->f, &w->text, &listener, &w->vision, err);
        w->sees = status == CLT_OK;
    }
    if (status == CLT_OK && clt_audio_present(w->f)) {
        status = clt_audio_bind_heard(w->f, &w->text, &listener, &w->audio, err);
        w->hears = status == CLT_OK;
    }
    if (status == CLT_OK && w->no_memory) status = clt_fail_memory(err, "tensor names", 4096);
    if (status == CLT_OK && !w->sees && !w->hears)
        status = clt_fail(err, CLT_E_UNSUPPORTED, "%s: has no towers for pictures or sound", clt_file_path(w->f));
    return status;
}

clt_status clt_manifest_towers(const clt_file *f, clt_type type, clt_manifest *out, clt_err *err) {
    towers w = {.f = f, .type = type, .out = out, .keys = {&out->head, "clip"}};
    clt_status status = clt_model_bind(f, &w.text, err);
    if (status != CLT_OK) return status;
    w.names = clt_calloc(clt_file_tensors(f) + 1, sizeof *w.names);
    status = w.names ? bind(&w, err) : clt_fail_memory(err, "tensor names", clt_file_tensors(f) * sizeof *w.names);
    if (status == CLT_OK) status = add_tensors(&w, err);
    if (status == CLT_OK) put_config(&w);
    if (w.sees) clt_vision_model_free(&w.vision);
    if (w.hears) clt_audio_model_free(&w.audio);
    clt_model_free(&w.text);
    clt_free(w.names);
    return status;
}
