/* The binding of a sound tower: roles to tensors, by the names of both forms. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/audio_impl.h"
#include "model/internal.h"

typedef enum dim { NONE, ONE, WIDTH, WIDTH2, FFN, HEAD, KERNEL } dim;

/* Shapes innermost first. A matrix may have bounds beside it. */
typedef struct role {
    size_t slot; /* of the tensor in clt_audio_layer */
    const char *gguf, *hf;
    dim cols, rows;
    bool clipped;
} role;

#define SLOT(field) offsetof(clt_audio_layer, field)
/* The names of the two norms of the convolution are swapped in GGUF. */
static const role roles[] = {
    {SLOT(ffn_norm[0]), "ffn_norm.weight", "feed_forward1.pre_layer_norm.weight", WIDTH, ONE, false},
    {SLOT(ffn_up[0]), "ffn_up.weight", "feed_forward1.ffw_layer_1.linear.weight", WIDTH, FFN, true},
    {SLOT(ffn_down[0]), "ffn_down.weight", "feed_forward1.ffw_layer_2.linear.weight", FFN, WIDTH, true},
    {SLOT(ffn_post_norm[0]), "ffn_post_norm.weight", "feed_forward1.post_layer_norm.weight", WIDTH, ONE, false},
    {SLOT(attn_norm), "attn_pre_norm.weight", "norm_pre_attn.weight", WIDTH, ONE, false},
    {SLOT(q), "attn_q.weight", "self_attn.q_proj.linear.weight", WIDTH, WIDTH, true},
    {SLOT(k), "attn_k.weight", "self_attn.k_proj.linear.weight", WIDTH, WIDTH, true},
    {SLOT(v), "attn_v.weight", "self_attn.v_proj.linear.weight", WIDTH, WIDTH, true},
    {SLOT(post), "attn_out.weight", "self_attn.post.linear.weight", WIDTH, WIDTH, true},
    {SLOT(relative_k), "attn_k_rel.weight", "self_attn.relative_k_proj.weight", WIDTH, WIDTH, false},
    {SLOT(per_dim_scale), "per_dim_scale.weight", "self_attn.per_dim_scale", HEAD, ONE, false},
    {SLOT(attn_post_norm), "attn_post_norm.weight", "norm_post_attn.weight", WIDTH, ONE, false},
    {SLOT(conv_pre_norm), "conv_norm.weight", "lconv1d.pre_layer_norm.weight", WIDTH, ONE, false},
    {SLOT(conv_start), "conv_pw1.weight", "lconv1d.linear_start.linear.weight", WIDTH, WIDTH2, true},
    {SLOT(depthwise), "conv_dw.weight", "lconv1d.depthwise_conv1d.weight", KERNEL, WIDTH, false},
    {SLOT(conv_norm), "norm_conv.weight", "lconv1d.conv_norm.weight", WIDTH, ONE, false},
    {SLOT(conv_end), "conv_pw2.weight", "lconv1d.linear_end.linear.weight", WIDTH, WIDTH, true},
    {SLOT(ffn_norm[1]), "ffn_norm_1.weight", "feed_forward2.pre_layer_norm.weight", WIDTH, ONE, false},
    {SLOT(ffn_up[1]), "ffn_up_1.weight", "feed_forward2.ffw_layer_1.linear.weight", WIDTH, FFN, true},
    {SLOT(ffn_down[1]), "ffn_down_1.weight", "feed_forward2.ffw_layer_2.linear.weight", FFN, WIDTH, true},
    {SLOT(ffn_post_norm[1]), "ffn_post_norm_1.weight", "feed_forward2.post_layer_norm.weight", WIDTH, ONE, false},
    {SLOT(out_norm), "ln2.weight", "norm_out.weight", WIDTH, ONE, false},
};
enum { N_ROLES = sizeof roles / sizeof *roles };

typedef struct binder {
    clt_audio_model *m;
    clt_tower_binder b;
} binder;

/* ---- all of them ---- */

static int64_t value(const clt_audio_config *c, dim d) {
    switch (d) {
    case WIDTH: return c->width;
    case WIDTH2: return 2 * (int64_t)c->width;
    case FFN: return c->ffn;
    case HEAD: return c->head_dim;
    case KERNEL: return c->conv_kernel;
    case NONE: case ONE: break;
    }
    return 1;
}

static void bind_layer(binder *b, int l) {
    const clt_audio_config *c = &b->m->config;
    char gguf[160], hf[160];
    for (int i = 0; i < N_ROLES; i++) {
        const role *r = &roles[i];
        void *slot = (char *)&b->m->layer[l] + r->slot;
        int64_t cols = value(c, r->cols), rows = value(c, r->rows);
        snprintf(gguf, sizeof gguf, "a.blk.%d.%s", l, r->gguf);
        snprintf(hf, sizeof hf, "audio_tower.layers.%d.%s", l, r->hf);
        if (r->clipped) clt_tower_find_bounded(&b->b, gguf, hf, cols, rows, slot);
        else *(const clt_tensor **)slot = clt_tower_find(&b->b, gguf, hf, cols, rows, r->rows == ONE || r->cols == KERNEL);
    }
}

static void bind_conformer(binder *b) {
    clt_audio_model *m = b->m;
    const clt_audio_config *c = &m->config;
    int64_t in = 1, flat = (int64_t)(c->bands + 3) / 4 * c->channels[1];
    char gguf[64], hf[96];
    for (int i = 0; i < 2; i++) {
        snprintf(gguf, sizeof gguf, "a.conv1d.%d.weight", i);
        snprintf(hf, sizeof hf, "audio_tower.subsample_conv_projection.layer%d.conv.weight", i);
        m->conv[i] = clt_tower_find(&b->b, gguf, hf, 3, 3 * in * c->channels[i], true);
        snprintf(gguf, sizeof gguf, "a.conv1d.%d.norm.weight", i);
        snprintf(hf, sizeof hf, "audio_tower.subsample_conv_projection.layer%d.norm.weight", i);
        m->conv_norm[i] = clt_tower_find(&b->b, gguf, hf, c->channels[i], 1, true);
        in = c->channels[i];
    }
    m->input_proj = clt_tower_find(&b->b, "a.input_projection.weight",
                           "audio_tower.subsample_conv_projection.input_proj_linear.weight", flat, c->width, false);
    for (int l = 0; l < c->layers; l++) bind_layer(b, l);
    m->output_proj = clt_tower_find(&b->b, "a.pre_encode.out.weight", "audio_tower.output_proj.weight", c->width,
                                    c->out_width, false);
    m->output_bias = clt_tower_find(&b->b, "a.pre_encode.out.bias", "audio_tower.output_proj.bias", c->out_width, 1, true);
}

static const char probe[] = "embed_audio.embedding_projection.weight";

static const clt_tensor *projection_of(const clt_file *f) {
    const clt_tensor *t = clt_file_find(f, probe);
    if (clt_file_get_kind(f) == CLT_FILE_GGUF) return clt_file_find(f, "mm.a.input_projection.weight");
    return t ? t : clt_file_find(f, "model.embed_audio.embedding_projection.weight");
}

bool clt_audio_present(const clt_file *f) {
    bool has = false;
    if (clt_file_get_kind(f) != CLT_FILE_GGUF) return projection_of(f) != NULL;
    return clt_meta_bool(clt_file_meta_find(f, "clip.has_audio_encoder"), 0, &has) && has;
}

static clt_status bind_all(binder *b, const clt_model *text, clt_err *err) {
    static const char *const hf[] = {"audio_tower.", "embed_audio."}, *const gguf[] = {"a.", "mm.a."};
    clt_audio_model *m = b->m;
    clt_audio_config *c = &m->config;
    c->text_width = text->config.width;
    int64_t in = c->kind == CLT_AUDIO_UNIFIED ? c->bands : c->out_width;
    clt_status st = clt_tower_check_width(m->file, projection_of(m->file), text, "sound tower", err);
    if (st != CLT_OK) return st;
    m->projection = clt_tower_find(&b->b, "mm.a.input_projection.weight", probe, in, c->text_width, false);
    if (c->kind == CLT_AUDIO_CONFORMER) {
        m->layer = CLT_ARENA_NEW(m->arena, clt_audio_layer, c->layers);
        if (!m->layer) return clt_fail_memory(err, "the sound tower", (size_t)c->layers * sizeof *m->layer);
        bind_conformer(b);
    }
    return clt_tower_report(&b->b, "sound tower", hf, gguf, err);
}

clt_status clt_audio_bind(const clt_file *f, const clt_model *text, clt_audio_model *out, clt_err *err) {
    return clt_audio_bind_heard(f, text, NULL, out, err);
}

clt_status clt_audio_bind_heard(const clt_file *f, const clt_model *text, const clt_tower_listener *listener,
                                clt_audio_model *out, clt_err *err) {
    binder b = {.m = out};
    *out = (clt_audio_model){.file = f, .scale_is_softplus = clt_file_get_kind(f) == CLT_FILE_GGUF};
    if (!clt_audio_present(f)) return clt_fail(err, CLT_E_UNSUPPORTED, "%s: holds no sound tower", clt_file_path(f));
    clt_status st = clt_tower_begin(&b.b, f, probe, err);
    b.b.listener = listener;
    out->arena = clt_arena_create(64 << 10);
    if (st == CLT_OK && !out->arena) st = clt_fail_memory(err, "the sound tower", 64 << 10);
    if (st == CLT_OK) st = clt_audio_config_read(f, &out->config, err);
    if (st == CLT_OK) st = bind_all(&b, text, err);
    clt_tower_end(&b.b);
    if (st != CLT_OK) clt_audio_model_free(out);
    return st;
}

void clt_audio_model_free(clt_audio_model *m) {
    if (m->arena) clt_arena_free(m->arena);
    memset(m, 0, sizeof *m);
}
