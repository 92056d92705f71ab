/* The binding of a sound tower: roles to tensors, by the names of both forms.
 *
 * Whatever is missing, misshapen or left over is collected and reported together, each tensor by its name. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
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
    const clt_file *f;
    bool gguf;
    const char *prefix;     /* HF: "model." or nothing */
    unsigned char *claimed; /* [tensors] */
    clt_buf missing, misshapen, extra;
} binder;

/* ---- single tensors ---- */

static const clt_tensor *claim(binder *b, const char *name) {
    const clt_tensor *t = clt_file_find(b->f, name);
    if (t) b->claimed[t - clt_file_tensor(b->f, 0)] = 1;
    return t;
}

/* rows: of all dimensions but the first, so that [5, 1, W] and [5, W] are the same. vector: read as plain numbers. */
static void check(binder *b, const clt_tensor *t, int64_t cols, int64_t rows, bool vector) {
    if (!t) return;
    if (t->dims[0] != cols || clt_tensor_rows(t) != rows || (!vector && t->dims[1] != rows))
        clt_buf_printf(&b->misshapen, "; %s has shape [%lld, %lld, %lld, %lld], expected %lld columns and %lld rows",
                       t->name, (long long)t->dims[0], (long long)t->dims[1], (long long)t->dims[2], (long long)t->dims[3],
                       (long long)cols, (long long)rows);
    else if (vector && t->type != CLT_F32 && t->type != CLT_F16 && t->type != CLT_BF16)
        clt_buf_printf(&b->misshapen, "; %s has type %s, expected F32, F16 or BF16", t->name,
                       clt_type_name((uint32_t)t->type));
}

static const clt_tensor *global(binder *b, const char *gguf, const char *hf, int64_t cols, int64_t rows, bool vector) {
    char name[192];
    snprintf(name, sizeof name, "%s%s", b->gguf ? "" : b->prefix, b->gguf ? gguf : hf);
    const clt_tensor *t = claim(b, name);
    if (!t) clt_buf_printf(&b->missing, "; %s", name);
    check(b, t, cols, rows, vector);
    return t;
}

/* ---- bounds: beside "x.weight" or "x.linear.weight" stand "x.input_min" and three more ---- */

static float bound(binder *b, const char *stem, const char *which, float none) {
    char name[256];
    float v = none;
    snprintf(name, sizeof name, "%s.%s", stem, which);
    const clt_tensor *t = claim(b, name);
    if (!t) return none;
    check(b, t, 1, 1, true);
    if (t->dims[0] != 1 || clt_tensor_rows(t) != 1 || !clt_file_decode_row(b->f, t, 0, &v)) return none;
    if (isnan(v)) clt_buf_printf(&b->misshapen, "; %s is no number", name);
    return v;
}

static void read_bounds(binder *b, clt_tower_matrix *m) {
    char stem[224];
    snprintf(stem, sizeof stem, "%s", m->w->name);
    size_t n = strlen(stem), tail = clt_ends_with(stem, ".linear.weight") ? 14 : 7;
    stem[n - tail] = 0;
    m->in_min = bound(b, stem, "input_min", -INFINITY), m->in_max = bound(b, stem, "input_max", INFINITY);
    m->out_min = bound(b, stem, "output_min", -INFINITY), m->out_max = bound(b, stem, "output_max", INFINITY);
    if (m->in_min > m->in_max || m->out_min > m->out_max)
        clt_buf_printf(&b->misshapen, "; %s has bounds of which the lower is above the upper", m->w->name);
    m->clipped = isfinite(m->in_min) || isfinite(m->in_max) || isfinite(m->out_min) || isfinite(m->out_max);
}

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
        snprintf(gguf, sizeof gguf, "a.blk.%d.%s", l, r->gguf);
        snprintf(hf, sizeof hf, "audio_tower.layers.%d.%s", l, r->hf);
        const clt_tensor *t = global(b, gguf, hf, value(c, r->cols), value(c, r->rows), r->rows == ONE || r->cols == KERNEL);
        if (!r->clipped) {
            *(const clt_tensor **)slot = t;
            continue;
        }
        clt_tower_matrix *m = slot;
        m->w = t;
        if (t) read_bounds(b, m);
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
        m->conv[i] = global(b, gguf, hf, 3, 3 * in * c->channels[i], true);
        snprintf(gguf, sizeof gguf, "a.conv1d.%d.norm.weight", i);
        snprintf(hf, sizeof hf, "audio_tower.subsample_conv_projection.layer%d.norm.weight", i);
        m->conv_norm[i] = global(b, gguf, hf, c->channels[i], 1, true);
        in = c->channels[i];
    }
    m->input_proj = global(b, "a.input_projection.weight",
                           "audio_tower.subsample_conv_projection.input_proj_linear.weight", flat, c->width, false);
    for (int l = 0; l < c->layers; l++) bind_layer(b, l);
    m->output_proj = global(b, "a.pre_encode.out.weight", "audio_tower.output_proj.weight", c->width, c->out_width, false);
    m->output_bias = global(b, "a.pre_encode.out.bias", "audio_tower.output_proj.bias", c->out_width, 1, true);
}

/* Tensors of the tower that no role knows: a tower that is not exactly understood. */
static void collect_extra(binder *b) {
    static const char *const own[2][2] = {{"audio_tower.", "embed_audio."}, {"a.", "mm.a."}};
    for (size_t i = 0; i < clt_file_tensors(b->f); i++) {
        const char *name = clt_file_tensor(b->f, i)->name;
        if (b->claimed[i]) continue;
        if (!b->gguf && strncmp(name, b->prefix, strlen(b->prefix)) == 0) name += strlen(b->prefix);
        for (int k = 0; k < 2; k++)
            if (strncmp(name, own[b->gguf][k], strlen(own[b->gguf][k])) == 0) clt_buf_printf(&b->extra, "; %s", name);
    }
}

static clt_status report(binder *b, clt_err *err) {
    const char *const kinds[] = {"missing tensors", "wrong tensors", "extra tensors"};
    const clt_buf *lists[] = {&b->missing, &b->misshapen, &b->extra};
    clt_buf text = {0};
    for (int i = 0; i < 3; i++) {
        text.failed |= lists[i]->failed;
        if (lists[i]->len) clt_buf_printf(&text, "%s%s: %s", text.len ? ". " : "", kinds[i], lists[i]->data + 2);
    }
    clt_status st = text.failed  ? clt_fail_memory(err, "the list of tensors", 4096)
                    : text.len ? clt_fail(err, CLT_E_FILE, "%s: sound tower: %s", clt_file_path(b->f), text.data)
                               : CLT_OK;
    clt_buf_free(&text);
    return st == CLT_E_FILE ? clt_hint(err, "get the file again or convert it again") : st;
}

static const char *find_prefix(const clt_file *f) {
    return clt_file_find(f, "embed_audio.embedding_projection.weight") ? "" : "model.";
}

static const clt_tensor *projection_of(const clt_file *f) {
    const clt_tensor *t = clt_file_find(f, "embed_audio.embedding_projection.weight");
    if (clt_file_get_kind(f) == CLT_FILE_GGUF) return clt_file_find(f, "mm.a.input_projection.weight");
    return t ? t : clt_file_find(f, "model.embed_audio.embedding_projection.weight");
}

bool clt_audio_present(const clt_file *f) {
    bool has = false;
    if (clt_file_get_kind(f) != CLT_FILE_GGUF) return projection_of(f) != NULL;
    return clt_meta_bool(clt_file_meta_find(f, "clip.has_audio_encoder"), 0, &has) && has;
}

static clt_status bind_all(binder *b, const clt_model *text, clt_err *err) {
    clt_audio_model *m = b->m;
    clt_audio_config *c = &m->config;
    c->text_width = text->config.width;
    int64_t in = c->kind == CLT_AUDIO_UNIFIED ? c->bands : c->out_width;
    const clt_tensor *p = projection_of(b->f);
    if (p && p->dims[1] != c->text_width) {
        clt_fail(err, CLT_E_FILE, "%s: its sound tower is for a text model of width %lld, but %s has %d",
                 clt_file_path(b->f), (long long)p->dims[1], clt_file_path(text->file), c->text_width);
        return clt_hint(err, "give the vision file (mmproj) that belongs to the model");
    }
    m->projection = global(b, "mm.a.input_projection.weight", "embed_audio.embedding_projection.weight", in, c->text_width,
                           false);
    if (c->kind == CLT_AUDIO_CONFORMER) {
        m->layer = CLT_ARENA_NEW(m->arena, clt_audio_layer, c->layers);
        if (!m->layer) return clt_fail_memory(err, "the sound tower", (size_t)c->layers * sizeof *m->layer);
        bind_conformer(b);
    }
    collect_extra(b);
    return report(b, err);
}

clt_status clt_audio_bind(const clt_file *f, const clt_model *text, clt_audio_model *out, clt_err *err) {
    bool gguf = clt_file_get_kind(f) == CLT_FILE_GGUF;
    binder b = {.m = out, .f = f, .gguf = gguf, .prefix = gguf ? "" : find_prefix(f)};
    *out = (clt_audio_model){.file = f, .scale_is_softplus = gguf};
    if (!clt_audio_present(f)) return clt_fail(err, CLT_E_UNSUPPORTED, "%s: holds no sound tower", clt_file_path(f));
    out->arena = clt_arena_create(64 << 10);
    b.claimed = clt_calloc(clt_file_tensors(f) + 1, 1);
    clt_status st = out->arena && b.claimed ? clt_audio_config_read(f, &out->config, err)
                                            : clt_fail_memory(err, "the sound tower", 64 << 10);
    if (st == CLT_OK) st = bind_all(&b, text, err);
    clt_free(b.claimed);
    clt_buf_free(&b.missing), clt_buf_free(&b.misshapen), clt_buf_free(&b.extra);
    if (st != CLT_OK) clt_audio_model_free(out);
    return st;
}

void clt_audio_model_free(clt_audio_model *m) {
    if (m->arena) clt_arena_free(m->arena);
    memset(m, 0, sizeof *m);
}
