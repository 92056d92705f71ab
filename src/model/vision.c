/* The binding of a picture tower: configuration, and roles to tensors by the names of both forms. */
#include "model/vision.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/internal.h"

enum { DEFAULT_TOKENS = 280, MOST_SIDE = 256 };

/* ---- configuration ---- */

static void read_encoder(clt_tower_reader *r, clt_vision_config *c) {
    bool hf = r->json != NULL;
    c->layers = clt_tower_integer(r, hf ? "num_hidden_layers" : "block_count", 1, CLT_MAX_LAYERS, -1);
    c->width = clt_tower_integer(r, hf ? "hidden_size" : "embedding_length", 1, CLT_MAX_WIDTH, -1);
    c->ffn = clt_tower_integer(r, hf ? "intermediate_size" : "feed_forward_length", 1, CLT_MAX_WIDTH, -1);
    c->heads = clt_tower_integer(r, hf ? "num_attention_heads" : "attention.head_count", 1, 65536, -1);
    if (hf && clt_tower_integer(r, "num_key_value_heads", 1, 65536, c->heads) != c->heads)
        clt_tower_unsupported(r, "a picture tower that shares keys between heads");
    c->head_dim = c->width / c->heads;
    if (hf) c->head_dim = clt_tower_integer(r, "head_dim", 4, 4096, c->head_dim);
    if (r->st == CLT_OK && (c->width % c->heads || c->head_dim * c->heads != c->width || c->head_dim % 4))
        clt_tower_bad(r, hf ? "num_attention_heads" : "attention.head_count", "does not divide the width into heads of 4, 8, …");
    c->standardise = clt_json_is_true(clt_json_get(r->json, "standardize"));
    c->rope_theta = 100;
    const clt_json *rope = clt_json_get(r->json, "rope_parameters");
    double theta;
    if (clt_json_num(clt_json_get(rope, "rope_theta"), &theta) && theta >= 1 && theta <= 1e9) c->rope_theta = theta;
    size_t len;
    const char *act = clt_json_str(clt_json_get(r->json, "hidden_activation"), &len);
    if (act && strcmp(act, "gelu_pytorch_tanh") != 0)
        clt_tower_unsupported(r, "a picture tower with another activation than gelu_pytorch_tanh");
    if (clt_json_is_true(clt_json_get(r->json, "attention_bias")))
        clt_tower_unsupported(r, "a picture tower whose projections have biases");
}

/* The budget that the folder's processor gives pictures. */
static int default_tokens(const clt_file *f) {
    const clt_json *p = clt_json_get(clt_file_json(f, "processor_config.json"), "image_processor");
    int64_t n;
    if (!p) p = clt_file_json(f, "preprocessor_config.json");
    return clt_json_int(clt_json_get(p, "max_soft_tokens"), &n) && n >= 1 && n <= 1 << 16 ? (int)n : DEFAULT_TOKENS;
}

static clt_vision_kind kind_of(clt_tower_reader *r) {
    if (r->json) return clt_json_get(r->json, "mm_embed_dim") ? CLT_VISION_UNIFIED : CLT_VISION_ENCODER;
    if (clt_tower_meta_is(r->f, "clip.vision.projector_type", "gemma4v")) return CLT_VISION_ENCODER;
    if (clt_tower_meta_is(r->f, "clip.vision.projector_type", "gemma4uv")) return CLT_VISION_UNIFIED;
    clt_tower_unsupported(r, "a picture tower of another family: clip.vision.projector_type is neither gemma4v nor gemma4uv");
    return CLT_VISION_NONE;
}

static clt_status read_config(const clt_file *f, clt_vision_config *c, clt_err *err) {
    clt_tower_reader r = clt_tower_reader_open(f, "vision_config", "clip.vision.", "picture tower", err);
    if (r.st != CLT_OK) return r.st;
    c->kind = kind_of(&r);
    c->planar = !r.json;
    c->patch = clt_tower_integer(&r, "patch_size", 1, MOST_SIDE, 16);
    c->pool = clt_tower_integer(&r, r.json ? "pooling_kernel_size" : "projector.scale_factor", 1, 16, 3);
    c->rms_eps = 1e-6f, c->norm_eps = 1e-5f; /* what a file says of them is unused by the reference, or wrong */
    c->default_tokens = r.json ? default_tokens(f) : DEFAULT_TOKENS;
    if (c->kind == CLT_VISION_UNIFIED)
        c->width = clt_tower_integer(&r, r.json ? "mm_embed_dim" : "embedding_length", 1, CLT_MAX_WIDTH, -1);
    else if (r.st == CLT_OK) read_encoder(&r, c);
    return r.st;
}

/* ---- tensors ---- */

typedef enum dim { ONE, WIDTH, FFN, HEAD } dim;

typedef struct role {
    size_t slot; /* of the tensor in clt_vision_layer */
    const char *gguf, *hf;
    dim cols, rows;
} role;

#define SLOT(field) offsetof(clt_vision_layer, field)
static const role norms[] = {
    {SLOT(attn_norm), "ln1.weight", "input_layernorm.weight", WIDTH, ONE},
    {SLOT(post_attn_norm), "attn_post_norm.weight", "post_attention_layernorm.weight", WIDTH, ONE},
    {SLOT(ffn_norm), "ln2.weight", "pre_feedforward_layernorm.weight", WIDTH, ONE},
    {SLOT(post_ffn_norm), "ffn_post_norm.weight", "post_feedforward_layernorm.weight", WIDTH, ONE},
    {SLOT(q_norm), "attn_q_norm.weight", "self_attn.q_norm.weight", HEAD, ONE},
    {SLOT(k_norm), "attn_k_norm.weight", "self_attn.k_norm.weight", HEAD, ONE},
};
static const role matrices[] = {
    {SLOT(q), "attn_q.weight", "self_attn.q_proj.linear.weight", WIDTH, WIDTH},
    {SLOT(k), "attn_k.weight", "self_attn.k_proj.linear.weight", WIDTH, WIDTH},
    {SLOT(v), "attn_v.weight", "self_attn.v_proj.linear.weight", WIDTH, WIDTH},
    {SLOT(o), "attn_out.weight", "self_attn.o_proj.linear.weight", WIDTH, WIDTH},
    {SLOT(gate), "ffn_gate.weight", "mlp.gate_proj.linear.weight", WIDTH, FFN},
    {SLOT(up), "ffn_up.weight", "mlp.up_proj.linear.weight", WIDTH, FFN},
    {SLOT(down), "ffn_down.weight", "mlp.down_proj.linear.weight", FFN, WIDTH},
};

static int64_t value(const clt_vision_config *c, dim d) {
    return d == WIDTH ? c->width : d == FFN ? c->ffn : d == HEAD ? c->head_dim : 1;
}

static void names(int l, const role *r, char gguf[160], char hf[160]) {
    snprintf(gguf, 160, "v.blk.%d.%s", l, r->gguf);
    snprintf(hf, 160, "vision_tower.encoder.layers.%d.%s", l, r->hf);
}

static void bind_layer(clt_tower_binder *b, const clt_vision_config *c, int l, clt_vision_layer *out) {
    char gguf[160], hf[160];
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        names(l, &norms[i], gguf, hf);
        *(const clt_tensor **)((char *)out + norms[i].slot) = clt_tower_find(b, gguf, hf, value(c, norms[i].cols), 1, true);
    }
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        names(l, &matrices[i], gguf, hf);
        clt_tower_find_bounded(b, gguf, hf, value(c, matrices[i].cols), value(c, matrices[i].rows),
                               (clt_tower_matrix *)((char *)out + matrices[i].slot));
    }
}

/* The table of positions: [plane][coordinate][width]; in folders of the 12B [coordinate][plane][width]. */
static void bind_positions(clt_tower_binder *b, clt_vision_model *m, const char *hf) {
    clt_vision_config *c = &m->config;
    const char *name = b->gguf ? "v.position_embd.weight" : hf;
    char full[96];
    snprintf(full, sizeof full, "%s%s", b->gguf ? "" : b->prefix, name);
    const clt_tensor *t = clt_file_find(b->f, full);
    bool inner = c->kind == CLT_VISION_UNIFIED && !b->gguf;
    int64_t n = t ? t->dims[inner ? 2 : 1] : 1;
    m->position = clt_tower_find(b, "v.position_embd.weight", hf, c->width, 2 * n, true);
    if (m->position && (n < 1 || n > 1 << 20 || t->dims[inner ? 1 : 2] != 2))
        clt_buf_printf(&b->misshapen, "; %s has not two planes", full);
    c->positions = (int)(n < 1 << 20 ? n : 1 << 20);
}

int64_t clt_vision_position_row(const clt_vision_model *m, int plane, int at) {
    bool inner = m->config.kind == CLT_VISION_UNIFIED && !m->config.planar;
    return inner ? 2 * (int64_t)at + plane : (int64_t)plane * m->config.positions + at;
}

/* As a matrix [width, side * side * 3]; in vision files the columns are three dimensions. */
static const clt_tensor *bind_patch(clt_tower_binder *b, clt_vision_model *m, const char *hf, int side) {
    const clt_vision_config *c = &m->config;
    int64_t cols = (int64_t)side * side * 3;
    const clt_tensor *t = b->gguf ? clt_file_find(b->f, "v.patch_embd.weight") : NULL;
    if (!t || t->n_dims < 3) return clt_tower_find(b, "v.patch_embd.weight", hf, cols, c->width, false);
    t = clt_tower_find(b, "v.patch_embd.weight", hf, side, (int64_t)side * 3 * c->width, true);
    clt_tensor *flat = CLT_ARENA_NEW(m->arena, clt_tensor, 1);
    if (!t || !flat) return NULL;
    *flat = *t;
    flat->n_dims = 2;
    flat->dims[0] = cols, flat->dims[1] = c->width, flat->dims[2] = flat->dims[3] = 1;
    return flat;
}

static clt_status bind_encoder(clt_tower_binder *b, clt_vision_model *m, clt_err *err) {
    clt_vision_config *c = &m->config;
    m->layer = CLT_ARENA_NEW(m->arena, clt_vision_layer, c->layers);
    if (!m->layer) return clt_fail_memory(err, "the picture tower", (size_t)c->layers * sizeof *m->layer);
    m->patch = bind_patch(b, m, "vision_tower.patch_embedder.input_proj.weight", c->patch);
    bind_positions(b, m, "vision_tower.patch_embedder.position_embedding_table");
    for (int l = 0; l < c->layers; l++) bind_layer(b, c, l, &m->layer[l]);
    char name[64];
    snprintf(name, sizeof name, "%s%s", b->gguf ? "" : b->prefix, b->gguf ? "v.std_bias" : "vision_tower.std_bias");
    c->standardise |= clt_file_find(b->f, name) != NULL;
    if (c->standardise) {
        m->std_bias = clt_tower_find(b, "v.std_bias", "vision_tower.std_bias", c->width, 1, true);
        m->std_scale = clt_tower_find(b, "v.std_scale", "vision_tower.std_scale", c->width, 1, true);
    }
    return CLT_OK;
}

static void bind_unified(clt_tower_binder *b, clt_vision_model *m) {
    static const char *const hf[] = {"patch_ln1", "patch_ln2", "pos_norm"};
    const clt_vision_config *c = &m->config;
    int side = c->patch * c->pool;
    char gguf_name[64], hf_name[64];
    m->patch = bind_patch(b, m, "vision_embedder.patch_dense.weight", side);
    m->patch_bias = clt_tower_find(b, "v.patch_embd.bias", "vision_embedder.patch_dense.bias", c->width, 1, true);
    bind_positions(b, m, "vision_embedder.pos_embedding");
    for (int i = 0; i < 3; i++) {
        int64_t n = i ? c->width : (int64_t)side * side * 3;
        snprintf(gguf_name, sizeof gguf_name, "v.patch_norm.%d.weight", i + 1);
        snprintf(hf_name, sizeof hf_name, "vision_embedder.%s.weight", hf[i]);
        m->norm[i] = clt_tower_find(b, gguf_name, hf_name, n, 1, true);
        snprintf(gguf_name, sizeof gguf_name, "v.patch_norm.%d.bias", i + 1);
        snprintf(hf_name, sizeof hf_name, "vision_embedder.%s.bias", hf[i]);
        m->norm_bias[i] = clt_tower_find(b, gguf_name, hf_name, n, 1, true);
    }
}

/* ---- public ---- */

static const char probe[] = "embed_vision.embedding_projection.weight";

static const clt_tensor *projection_of(const clt_file *f) {
    const clt_tensor *t = clt_file_find(f, probe);
    if (clt_file_get_kind(f) == CLT_FILE_GGUF) return clt_file_find(f, "mm.input_projection.weight");
    return t ? t : clt_file_find(f, "model.embed_vision.embedding_projection.weight");
}

bool clt_vision_present(const clt_file *f) {
    bool has = false;
    if (clt_file_get_kind(f) != CLT_FILE_GGUF) return projection_of(f) != NULL;
    return clt_meta_bool(clt_file_meta_find(f, "clip.has_vision_encoder"), 0, &has) && has;
}

static clt_status bind_all(clt_tower_binder *b, const clt_model *text, clt_vision_model *m, clt_err *err) {
    static const char *const hf[] = {"vision_", "embed_vision."}, *const gguf[] = {"v.", "mm.input_"};
    m->config.text_width = text->config.width;
    clt_status st = clt_tower_check_width(m->file, projection_of(m->file), text, "picture tower", err);
    if (st != CLT_OK) return st;
    if (m->config.kind == CLT_VISION_UNIFIED) bind_unified(b, m);
    else st = bind_encoder(b, m, err);
    m->projection = clt_tower_find(b, "mm.input_projection.weight", probe, m->config.width, m->config.text_width, false);
    return st == CLT_OK ? clt_tower_report(b, "picture tower", hf, gguf, err) : st;
}

clt_status clt_vision_bind(const clt_file *f, const clt_model *text, clt_vision_model *out, clt_err *err) {
    return clt_vision_bind_heard(f, text, NULL, out, err);
}

clt_status clt_vision_bind_heard(const clt_file *f, const clt_model *text, const clt_tower_listener *listener,
                                 clt_vision_model *out, clt_err *err) {
    clt_tower_binder b;
    *out = (clt_vision_model){.file = f};
    if (!clt_vision_present(f)) return clt_fail(err, CLT_E_UNSUPPORTED, "%s: holds no picture tower", clt_file_path(f));
    clt_status st = clt_tower_begin(&b, f, probe, err);
    b.listener = listener;
    out->arena = clt_arena_create(64 << 10);
    if (st == CLT_OK && !out->arena) st = clt_fail_memory(err, "the picture tower", 64 << 10);
    if (st == CLT_OK) st = read_config(f, &out->config, err);
    if (st == CLT_OK) st = bind_all(&b, text, out, err);
    clt_tower_end(&b);
    if (st != CLT_OK) clt_vision_model_free(out);
    return st;
}

void clt_vision_model_free(clt_vision_model *m) {
    if (m->arena) clt_arena_free(m->arena);
    memset(m, 0, sizeof *m);
}
