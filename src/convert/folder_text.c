/* The text model, or a drafter, of a Hugging Face folder: its tensors and its configuration as GGUF has them. */
#include <stdio.h>
#include <string.h>
#include "convert/folder.h"
#include "model/model.h"

typedef enum family { GEMMA3, GEMMA4, ASSISTANT } family;

typedef struct folder {
    const clt_file *f;
    family family;
    clt_type type;
    const clt_json *root, *text; /* config.json; its text part, which may be the same */
    clt_keys keys;
    clt_manifest *out;
    int64_t layers;
    bool tied;                   /* a stored output matrix repeats the embedding */
} folder;

/* ---- layers of two kinds ---- */

/* The last layer of a Gemma 4 is full, whatever the list says, as in the reference implementation. */
static bool is_sliding(const folder *d, int64_t layer) {
    size_t n;
    if (d->family == GEMMA4 && layer == d->layers - 1) return false;
    const char *s = clt_json_str(clt_json_at(clt_json_get(d->text, "layer_types"), (size_t)layer), &n);
    return s && n == 17 && !memcmp(s, "sliding_attention", 17);
}

/* What a full layer has of a key: its own ("global") key, or that of the first full layer that per_layer_config lists. */
static int64_t of_full_layer(const folder *d, const char *global, const char *key) {
    const clt_json *list = clt_json_get(d->text, "per_layer_config");
    int64_t v = clt_json_int_or(d->text, global, -1);
    for (int64_t l = 0; v < 0 && l < d->layers; l++) {
        char index[24];
        snprintf(index, sizeof index, "%lld", (long long)l);
        if (!is_sliding(d, l)) v = clt_json_int_or(clt_json_get(list, index), key, -1);
    }
    return v;
}

static int64_t full_head(const folder *d) {
    int64_t v = of_full_layer(d, "global_head_dim", "head_dim");
    return v > 0 ? v : 512; /* the default of the reference implementation */
}

/* ---- tensors ---- */

static bool ends(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

/* Vectors, norms and routers are kept as float32, and so is whatever is no weight. */
static clt_type type_for(const folder *d, const char *name, const clt_tensor *t) {
    bool plain = t->n_dims <= 1 || !ends(name, ".weight") || ends(name, "_norm.weight") || ends(name, "ffn_gate_inp.weight");
    if (plain) return CLT_F32;
    return t->dims[0] % clt_type_get((uint32_t)d->type)->block_len == 0 ? d->type : CLT_F16;
}

/* Of a token table, only the rows that have a token. */
static int64_t rows_for(const char *name, const clt_tensor *t, int64_t tokens) {
    bool table = !strcmp(name, "token_embd.weight");
    return table && tokens > 0 && tokens < t->dims[1] ? tokens : t->dims[1];
}

static clt_status add_tensor(folder *d, const clt_tensor *t, const char *name, int64_t tokens, clt_err *err) {
    clt_manifest_tensor m = {.name = name, .type = type_for(d, name, t), .n_dims = t->n_dims};
    memcpy(m.dims, t->dims, sizeof m.dims);
    if (t->n_dims > 1) m.dims[1] = d->family == GEMMA3 ? rows_for(name, t, tokens) : t->dims[1];
    m.source = (clt_source){.file = d->f, .tensor = t, .cols = t->dims[0], .rows = m.dims[1] * m.dims[2] * m.dims[3]};
    if (d->family == GEMMA3 && ends(t->name, "norm.weight")) m.source.change = CLT_PLUS_ONE;
    return clt_manifest_add(d->out, &m, err) ? CLT_OK : err->code;
}

/* Of each pair of dimensions that full layers turn, 1; of those that stand still, what makes their angle vanish. */
static clt_status add_rope_factors(folder *d, clt_err *err) {
    const clt_json *full = clt_json_get(clt_json_get(d->text, "rope_parameters"), "full_attention");
    int64_t width = full_head(d), pairs = width / 2;
    int64_t turning = (int64_t)((double)width * clt_json_num_or(full, "partial_rotary_factor", 0.25) / 2);
    float *values = pairs > 0 ? CLT_ARENA_NEW(d->out->arena, float, pairs) : NULL;
    if (!values) return clt_fail_memory(err, "rope factors", (unsigned long long)pairs * sizeof *values);
    for (int64_t i = 0; i < pairs; i++) values[i] = i < turning ? 1.0f : 1e30f;
    clt_manifest_tensor m = {.name = "rope_freqs.weight", .type = CLT_F32, .n_dims = 1, .dims = {pairs, 1, 1, 1},
                             .source = {.made = values, .cols = pairs, .rows = 1}};
    return clt_manifest_add(d->out, &m, err) ? CLT_OK : err->code;
}

/* Drafters' tables of the clustered output head: llama.cpp has no place for them. */
static bool is_left_out(const folder *d, const char *name) {
    return clt_name_is_elsewhere(name) || (d->family == ASSISTANT && strstr(name, "masked_embedding")) ||
           (!strcmp(name, "lm_head.weight") && d->tied);
}

static clt_status add_tensors(folder *d, int64_t tokens, clt_err *err) {
    clt_status status = d->family == GEMMA3 ? CLT_OK : add_rope_factors(d, err);
    for (size_t i = 0; status == CLT_OK && i < clt_file_tensors(d->f); i++) {
        const clt_tensor *t = clt_file_tensor(d->f, i);
        char name[128];
        if (is_left_out(d, t->name)) continue;
        if (!clt_name_to_gguf(t->name, name, sizeof name))
            return clt_fail(err, CLT_E_FILE, "%s: tensor %s has no place in a model of this family", clt_file_path(d->f),
                            t->name);
        status = add_tensor(d, t, name, tokens, err);
    }
    return status;
}

/* ---- configuration ---- */

/* An array with one number for each layer. */
static void put_layers(const folder *d, const char *key, int64_t sliding, int64_t full, bool by_kind, int64_t first_wide) {
    char name[96];
    int32_t *v = CLT_ARENA_NEW(d->out->arena, int32_t, d->layers);
    snprintf(name, sizeof name, "%s%s", d->keys.arch, key);
    for (int64_t l = 0; v && l < d->layers; l++)
        v[l] = (int32_t)((by_kind ? is_sliding(d, l) : l < first_wide) ? sliding : full);
    if (v) clt_gguf_put_array(d->keys.head, name, CLT_META_I32, (uint64_t)d->layers, v, (size_t)d->layers * sizeof *v);
    else d->keys.head->metas.failed = true;
}

static void put_pattern(const folder *d) {
    char name[96];
    uint8_t *v = CLT_ARENA_NEW(d->out->arena, uint8_t, d->layers);
    snprintf(name, sizeof name, "%s.attention.sliding_window_pattern", d->keys.arch);
    for (int64_t l = 0; v && l < d->layers; l++) v[l] = is_sliding(d, l);
    if (v) clt_gguf_put_array(d->keys.head, name, CLT_META_BOOL, (uint64_t)d->layers, v, (size_t)d->layers);
    else d->keys.head->metas.failed = true;
}

static void put_rope(const folder *d) {
    const clt_keys *k = &d->keys;
    const clt_json *rope = clt_json_get(d->text, "rope_parameters");
    const clt_json *full = clt_json_get(rope, "full_attention"), *sliding = clt_json_get(rope, "sliding_attention");
    const clt_json *scaling = full ? full : clt_json_get(d->text, "rope_scaling");
    size_t n = 0;
    const char *kind = clt_json_str(clt_json_get(scaling, "rope_type"), &n);
    if (kind && n == 6 && !memcmp(kind, "linear", 6)) {
        clt_keys_str(k, ".rope.scaling.type", "linear");
        clt_keys_f32(k, ".rope.scaling.factor", clt_json_num_or(scaling, "factor", 1));
    }
    clt_keys_f32(k, ".rope.freq_base", clt_json_num_or(full ? full : d->text, "rope_theta", 1e6));
    double local = sliding ? clt_json_num_or(sliding, "rope_theta", 1e4)
                           : clt_json_num_or(d->text, "rope_local_base_freq", 0);
    if (local > 0) clt_keys_f32(k, ".rope.freq_base_swa", local);
}

static void put_common(const folder *d) {
    const clt_keys *k = &d->keys;
    bool wide = clt_json_is_true(clt_json_get(d->text, "use_double_wide_mlp"));
    int64_t ffn = clt_json_int_or(d->text, "intermediate_size", 0), kv = clt_json_int_or(d->text, "num_key_value_heads", 4);
    int64_t kv_full = d->family == GEMMA3 ? -1 : of_full_layer(d, "num_global_key_value_heads", "num_key_value_heads");
    int64_t head = d->family == GEMMA3 ? clt_json_int_or(d->text, "head_dim", 256) : full_head(d);
    double softcap = clt_json_num_or(d->text, "final_logit_softcapping", 0);
    clt_keys_u32(k, ".block_count", d->layers);
    clt_keys_u32(k, ".context_length", clt_json_int_or(d->text, "max_position_embeddings", 131072));
    clt_keys_u32(k, ".embedding_length", clt_json_int_or(d->text, "hidden_size", 0));
    if (wide) put_layers(d, ".feed_forward_length", ffn, 2 * ffn, false,
                         d->layers - clt_json_int_or(d->text, "num_kv_shared_layers", 0));
    else clt_keys_u32(k, ".feed_forward_length", ffn);
    clt_keys_u32(k, ".attention.head_count", clt_json_int_or(d->text, "num_attention_heads", 8));
    if (kv_full >= 0) put_layers(d, ".attention.head_count_kv", kv, kv_full, true, 0);
    else clt_keys_u32(k, ".attention.head_count_kv", kv);
    put_rope(d);
    clt_keys_f32(k, ".attention.layer_norm_rms_epsilon", clt_json_num_or(d->text, "rms_norm_eps", 1e-6));
    int64_t experts = clt_json_int_or(d->text, "num_experts", 0);
    if (experts > 0) {
        clt_keys_u32(k, ".expert_count", experts);
        clt_keys_u32(k, ".expert_used_count", clt_json_int_or(d->text, "top_k_experts", 0));
    }
    clt_keys_u32(k, ".attention.key_length", head);
    clt_keys_u32(k, ".attention.value_length", head);
    if (softcap != 0) clt_keys_f32(k, ".final_logit_softcapping", softcap);
    clt_keys_u32(k, ".attention.sliding_window", clt_json_int_or(d->text, "sliding_window", 0));
}

static void put_gemma4(const folder *d) {
    const clt_keys *k = &d->keys;
    int64_t head = clt_json_int_or(d->text, "head_dim", 256);
    int64_t expert_ffn = clt_json_int_or(d->text, "moe_intermediate_size", 0);
    clt_keys_u32(k, ".attention.shared_kv_layers", clt_json_int_or(d->text, "num_kv_shared_layers", 0));
    clt_keys_u32(k, ".embedding_length_per_layer_input", clt_json_int_or(d->text, "hidden_size_per_layer_input", 0));
    put_pattern(d);
    clt_keys_u32(k, ".attention.key_length_swa", head);
    clt_keys_u32(k, ".attention.value_length_swa", head);
    if (expert_ffn > 0) clt_keys_u32(k, ".expert_feed_forward_length", expert_ffn);
    clt_keys_u32(k, ".rope.dimension_count", full_head(d));
    clt_keys_u32(k, ".rope.dimension_count_swa", head);
}

/* Only the unified model's file states them; the others' converter does not. */
static void put_suppressed(const folder *d) {
    const clt_json *list = clt_json_get(clt_file_json(d->f, "generation_config.json"), "suppress_tokens");
    size_t n = clt_json_len(list);
    int32_t *v = n ? CLT_ARENA_NEW(d->out->arena, int32_t, n) : NULL;
    for (size_t i = 0; v && i < n; i++) {
        int64_t id = 0;
        clt_json_int(clt_json_at(list, i), &id);
        v[i] = (int32_t)id;
    }
    if (v) clt_gguf_put_array(d->keys.head, "tokenizer.ggml.suppress_tokens", CLT_META_I32, n, v, n * sizeof *v);
}

static void put_config(const folder *d, bool unified) {
    clt_keys_general(&d->keys, d->f, "model", d->out, clt_json_int_or(d->text, "num_experts", 0));
    put_common(d);
    if (d->family != GEMMA3) put_gemma4(d);
    if (unified) put_suppressed(d);
    if (d->family != ASSISTANT) return;
    clt_keys_u32(&d->keys, ".embedding_length_out", clt_json_int_or(d->root, "backbone_hidden_size", 0));
    clt_keys_u32(&d->keys, ".nextn_predict_layers", d->layers);
}

/* ---- all of it ---- */

static bool starts(const char *s, size_t n, const char *with) { return n >= strlen(with) && !memcmp(s, with, strlen(with)); }

/* What a drafter needs to be one; everything else is checked by the binding. */
static clt_status check(const folder *d, clt_err *err) {
    static const char *const needed[] = {"pre_projection.weight", "post_projection.weight", "model.embed_tokens.weight",
                                         "model.norm.weight"};
    clt_model m;
    if (d->family != ASSISTANT) {
        clt_status status = clt_model_bind(d->f, &m, err);
        if (status == CLT_OK) clt_model_free(&m);
        return status;
    }
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!clt_file_find(d->f, needed[i]))
            return clt_fail(err, CLT_E_FILE, "%s: missing tensors: %s", clt_file_path(d->f), needed[i]);
    if (clt_json_int_or(d->root, "backbone_hidden_size", 0) < 1 || d->layers < 1)
        return clt_fail(err, CLT_E_FILE, "%s/config.json: key backbone_hidden_size or num_hidden_layers is missing",
                        clt_file_path(d->f));
    return CLT_OK;
}

clt_status clt_manifest_text(const clt_file *f, clt_type type, clt_manifest *out, clt_err *err) {
    folder d = {.f = f, .type = type, .out = out, .root = clt_file_json(f, "config.json")};
    size_t n = 0;
    int64_t tokens = 0;
    const char *kind = clt_json_str(clt_json_get(d.root, "model_type"), &n);
    const clt_json *text = clt_json_get(d.root, "text_config");
    if (!kind)
        return clt_fail(err, CLT_E_FILE, "%s/config.json: key model_type is missing or not a string", clt_file_path(f));
    d.text = clt_json_kind(text) == CLT_JSON_OBJECT ? text : d.root;
    d.family = starts(kind, n, "gemma3") ? GEMMA3 : n > 9 && !memcmp(kind + n - 9, "assistant", 9) ? ASSISTANT : GEMMA4;
    d.layers = clt_json_int_or(d.text, "num_hidden_layers", 0);
    d.keys = (clt_keys){&out->head, d.family == GEMMA3 ? "gemma3" : d.family == GEMMA4 ? "gemma4" : "gemma4-assistant"};
    const clt_json *tie = clt_json_get(d.root, "tie_word_embeddings");
    d.tied = clt_json_kind(tie) != CLT_JSON_BOOL || clt_json_is_true(tie);
    clt_status status = check(&d, err);
    clt_gguf_head vocabulary = {0};
    clt_keys vocabulary_keys = {&vocabulary, d.keys.arch};
    if (status == CLT_OK) status = clt_keys_vocabulary(&vocabulary_keys, f, d.family == GEMMA3, &tokens, err);
    if (status == CLT_OK) status = add_tensors(&d, tokens, err);
    if (status == CLT_OK) {
        put_config(&d, starts(kind, n, "gemma4_unified"));
        clt_gguf_append(&out->head, &vocabulary);
        out->facts = (clt_manifest_facts){.layers = (int)d.layers, .experts = (int)clt_json_int_or(d.text, "num_experts", 0),
                                          .heads = (int)clt_json_int_or(d.text, "num_attention_heads", 8),
                                          .kv_heads = (int)clt_json_int_or(d.text, "num_key_value_heads", 4)};
    }
    clt_gguf_head_free(&vocabulary);
    return status;
}
