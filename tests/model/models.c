/* Sketches of tiny models for the tests of src/model; see models.h. */
#include "model/models.h"

typedef enum when { EVERY, OWN, OWN_VALUE, E_ONLY, MOE_ONLY, GEMMA4_ONLY } when;
typedef struct part {
    const char *gguf, *hf;
    int rows, cols;
    when when;
} part; /* rows 0: a vector; sizes below 0: see size_of */
enum { QD = -1, KD = -2, HD = -3 };

static const part parts[] = {
    {"attn_norm.weight", "input_layernorm.weight", 0, SKETCH_D, EVERY},
    {"attn_q.weight", "self_attn.q_proj.weight", QD, SKETCH_D, EVERY},
    {"attn_k.weight", "self_attn.k_proj.weight", KD, SKETCH_D, OWN},
    {"attn_v.weight", "self_attn.v_proj.weight", KD, SKETCH_D, OWN_VALUE},
    {"attn_output.weight", "self_attn.o_proj.weight", SKETCH_D, QD, EVERY},
    {"attn_q_norm.weight", "self_attn.q_norm.weight", 0, HD, EVERY},
    {"attn_k_norm.weight", "self_attn.k_norm.weight", 0, HD, OWN},
    {"post_attention_norm.weight", "post_attention_layernorm.weight", 0, SKETCH_D, EVERY},
    {"ffn_norm.weight", "pre_feedforward_layernorm.weight", 0, SKETCH_D, EVERY},
    {"ffn_gate.weight", "mlp.gate_proj.weight", SKETCH_F, SKETCH_D, EVERY},
    {"ffn_up.weight", "mlp.up_proj.weight", SKETCH_F, SKETCH_D, EVERY},
    {"ffn_down.weight", "mlp.down_proj.weight", SKETCH_D, SKETCH_F, EVERY},
    {"post_ffw_norm.weight", "post_feedforward_layernorm.weight", 0, SKETCH_D, EVERY},
    {"layer_output_scale.weight", "layer_scalar", 0, 1, GEMMA4_ONLY},
    {"inp_gate.weight", "per_layer_input_gate.weight", SKETCH_P, SKETCH_D, E_ONLY},
    {"proj.weight", "per_layer_projection.weight", SKETCH_D, SKETCH_P, E_ONLY},
    {"post_norm.weight", "post_per_layer_input_norm.weight", 0, SKETCH_D, E_ONLY},
    {"ffn_gate_inp.weight", "router.proj.weight", SKETCH_E, SKETCH_D, MOE_ONLY},
    {"ffn_gate_inp.scale", "router.scale", 0, SKETCH_D, MOE_ONLY},
    {"ffn_down_exps.scale", "router.per_expert_scale", 0, SKETCH_E, MOE_ONLY},
    {"post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight", 0, SKETCH_D, MOE_ONLY},
    {"pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight", 0, SKETCH_D, MOE_ONLY},
    {"post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight", 0, SKETCH_D, MOE_ONLY},
};

static bool sliding(int l) { return l % 3 != 2; }
static bool own_kv(const sketch *s, int l) { return s->kind != GEMMA4_E || l < 3; }

static int size_of(const sketch *s, int l, int size) {
    int head = sliding(l) || s->kind == GEMMA3 ? 16 : 32, kv = s->kind == GEMMA4_MOE && sliding(l) ? 2 : 1;
    return size == QD ? 2 * head : size == KD ? kv * head : size == HD ? head : size;
}

static bool has_part(const sketch *s, int l, when w) {
    switch (w) {
    case EVERY: return true;
    case OWN: return own_kv(s, l);
    case OWN_VALUE: return own_kv(s, l) && (sliding(l) || s->kind == GEMMA3 || s->kind == GEMMA4_E);
    case E_ONLY: return s->kind == GEMMA4_E;
    case MOE_ONLY: return s->kind == GEMMA4_MOE;
    case GEMMA4_ONLY: return s->kind != GEMMA3;
    }
    return false;
}

void sketch_add(sketch *s, const char *name, int64_t d0, int64_t d1, int64_t d2) {
    assert_true(s->n_tensors < (int)(sizeof s->tensor / sizeof *s->tensor));
    sketch_tensor *t = &s->tensor[s->n_tensors++];
    *t = (sketch_tensor){.type = CLT_F32, .dims = {d0, d1, d2}};
    snprintf(t->name, sizeof t->name, "%s", name);
}

/* prefix NULL: a GGUF file. */
static void add_tensors(sketch *s, const char *prefix) {
    char name[96];
    const char *before = prefix ? prefix : "";
    for (int l = 0; l < SKETCH_LAYERS; l++) {
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            const part *p = &parts[i];
            if (!has_part(s, l, p->when)) continue;
            snprintf(name, sizeof name, prefix ? "%slayers.%d.%s" : "%sblk.%d.%s", before, l, prefix ? p->hf : p->gguf);
            sketch_add(s, name, size_of(s, l, p->cols), p->rows ? size_of(s, l, p->rows) : 1, 1);
        }
        if (s->kind != GEMMA4_MOE) continue;
        snprintf(name, sizeof name, prefix ? "%slayers.%d.experts.gate_up_proj" : "%sblk.%d.ffn_gate_up_exps.weight", before,
                 l);
        sketch_add(s, name, SKETCH_D, 2 * SKETCH_FE, SKETCH_E);
        snprintf(name, sizeof name, prefix ? "%slayers.%d.experts.down_proj" : "%sblk.%d.ffn_down_exps.weight", before, l);
        sketch_add(s, name, SKETCH_FE, SKETCH_D, SKETCH_E);
    }
    static const struct { const char *gguf, *hf; int cols, rows; bool e; } globals[] = {
        {"token_embd.weight", "embed_tokens.weight", SKETCH_D, SKETCH_V, false},
        {"output_norm.weight", "norm.weight", SKETCH_D, 1, false},
        {"per_layer_token_embd.weight", "embed_tokens_per_layer.weight", SKETCH_LAYERS * SKETCH_P, SKETCH_V, true},
        {"per_layer_model_proj.weight", "per_layer_model_projection.weight", SKETCH_D, SKETCH_LAYERS * SKETCH_P, true},
        {"per_layer_proj_norm.weight", "per_layer_projection_norm.weight", SKETCH_P, 1, true}};
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++) {
        if (globals[i].e && s->kind != GEMMA4_E) continue;
        snprintf(name, sizeof name, "%s%s", before, prefix ? globals[i].hf : globals[i].gguf);
        sketch_add(s, name, globals[i].cols, globals[i].rows, 1);
    }
}

/* ---- metadata ---- */

static clt_buf *value_of(sketch *s, const char *key, uint32_t type) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", *key != '.' ? "" : s->kind == GEMMA3 ? "gemma3" : "gemma4", key);
    sketch_unset(s, full);
    assert_true(s->n_metas < (int)(sizeof s->meta / sizeof *s->meta));
    sketch_meta *m = &s->meta[s->n_metas++];
    *m = (sketch_meta){.value = {0}};
    memcpy(m->key, full, sizeof full);
    put_u32(&m->value, type);
    return &m->value;
}

void sketch_unset(sketch *s, const char *key) {
    char full[64];
    snprintf(full, sizeof full, "%s%s", *key != '.' ? "" : s->kind == GEMMA3 ? "gemma3" : "gemma4", key);
    for (int i = 0; i < s->n_metas; i++) {
        if (strcmp(s->meta[i].key, full) != 0) continue;
        clt_buf_free(&s->meta[i].value);
        s->meta[i] = s->meta[--s->n_metas];
        return;
    }
}

void sketch_set(sketch *s, const char *key, uint32_t v) { put_u32(value_of(s, key, CLT_META_U32), v); }

void sketch_set_float(sketch *s, const char *key, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_u32(value_of(s, key, CLT_META_F32), bits);
}

void sketch_set_string(sketch *s, const char *key, const char *v) { put_str(value_of(s, key, CLT_META_STRING), v); }

void sketch_set_bools(sketch *s, const char *key, int n, const bool *v) {
    clt_buf *b = value_of(s, key, CLT_META_ARRAY);
    put_u32(b, CLT_META_BOOL);
    put_u64(b, (uint64_t)n);
    for (int i = 0; i < n; i++) put_le(b, v[i], 1);
}

void sketch_set_list(sketch *s, const char *key, int n, const int *v) {
    clt_buf *b = value_of(s, key, CLT_META_ARRAY);
    put_u32(b, CLT_META_I32);
    put_u64(b, (uint64_t)n);
    for (int i = 0; i < n; i++) put_u32(b, (uint32_t)v[i]);
}

sketch *sketch_gguf(sketch_kind kind) {
    sketch *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->kind = kind;
    sketch_set_string(s, "general.architecture", kind == GEMMA3 ? "gemma3" : "gemma4");
    sketch_set(s, ".block_count", SKETCH_LAYERS);
    sketch_set(s, ".embedding_length", SKETCH_D);
    sketch_set(s, ".context_length", 4096);
    sketch_set(s, ".feed_forward_length", SKETCH_F);
    sketch_set(s, ".attention.head_count", 2);
    sketch_set(s, ".attention.head_count_kv", 1);
    sketch_set(s, ".attention.key_length", kind == GEMMA3 ? 16 : 32);
    sketch_set(s, ".attention.value_length", kind == GEMMA3 ? 16 : 32);
    sketch_set(s, ".attention.sliding_window", 8);
    sketch_set_float(s, ".attention.layer_norm_rms_epsilon", 1e-6f);
    sketch_set(s, ".attention.sliding_window_pattern", 3);
    if (kind != GEMMA3) {
        sketch_set(s, ".attention.key_length_swa", 16);
        sketch_set(s, ".attention.value_length_swa", 16);
        sketch_set_bools(s, ".attention.sliding_window_pattern", 6, (const bool[]){1, 1, 0, 1, 1, 0});
        sketch_set_float(s, ".final_logit_softcapping", 30);
    }
    if (kind == GEMMA4_E)
        sketch_set(s, ".embedding_length_per_layer_input", SKETCH_P), sketch_set(s, ".attention.shared_kv_layers", 3);
    if (kind == GEMMA4_MOE) {
        sketch_set(s, ".expert_count", SKETCH_E), sketch_set(s, ".expert_used_count", 2);
        sketch_set(s, ".expert_feed_forward_length", SKETCH_FE);
        sketch_set_list(s, ".attention.head_count_kv", 6, (const int[]){2, 2, 1, 2, 2, 1});
    }
    add_tensors(s, NULL);
    return s;
}

/* ---- Hugging Face ---- */

static const char config3[] =
    "{\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 6, \"hidden_size\": 32, \"intermediate_size\": 48, "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 16, \"sliding_window\": 8, "
    "\"sliding_window_pattern\": 3, "
    "\"query_pre_attn_scalar\": 16, \"max_position_embeddings\": 4096}";

static const char config4[] =
    "{\"model_type\": \"gemma4\", \"text_config\": {\"num_hidden_layers\": 6, \"hidden_size\": 32, \"intermediate_size\": "
    "48, "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": %d, \"num_global_key_value_heads\": 1, \"head_dim\": 16, "
    "\"global_head_dim\": 32, \"sliding_window\": 8, \"max_position_embeddings\": 4096, \"final_logit_softcapping\": 30.0, "
    "\"layer_types\": [\"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\", "
    "\"sliding_attention\", \"full_attention\"]%s}}";

sketch *sketch_hf(sketch_kind kind, const char *prefix) {
    static const char *const more[] = {
        [GEMMA4_E] = ", \"hidden_size_per_layer_input\": 8, \"num_kv_shared_layers\": 3",
        [GEMMA4_DENSE] = ", \"attention_k_eq_v\": true",
        [GEMMA4_MOE] = ", \"attention_k_eq_v\": true, \"enable_moe_block\": true, \"num_experts\": 4, \"top_k_experts\": 2, "
                       "\"moe_intermediate_size\": 24"};
    sketch *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->kind = kind;
    if (kind == GEMMA3) snprintf(s->config, sizeof s->config, "%s", config3);
    else snprintf(s->config, sizeof s->config, config4, kind == GEMMA4_MOE ? 2 : 1, more[kind]);
    add_tensors(s, prefix);
    return s;
}

void sketch_edit(sketch *s, const char *from, const char *to) {
    char *at = strstr(s->config, from), rest[sizeof s->config];
    if (!at || strstr(at + 1, from)) fail_msg("'%s' is not once in: %s", from, s->config);
    snprintf(rest, sizeof rest, "%s", at + strlen(from));
    assert_true(strlen(s->config) + strlen(to) < sizeof s->config);
    snprintf(at, sizeof s->config - (size_t)(at - s->config), "%s%s", to, rest);
}

/* ---- tensors ---- */

sketch_tensor *sketch_find(sketch *s, const char *name) {
    for (int i = 0; i < s->n_tensors; i++)
        if (!strcmp(s->tensor[i].name, name)) return &s->tensor[i];
    fail_msg("the sketch has no tensor %s", name);
    return NULL;
}

bool sketch_has(const sketch *s, const char *name) {
    for (int i = 0; i < s->n_tensors; i++)
        if (!strcmp(s->tensor[i].name, name)) return true;
    return false;
}

void sketch_drop(sketch *s, const char *name) {
    size_t n = strlen(name), dropped = 0;
    bool all = name[n - 1] == '*';
    for (int i = s->n_tensors - 1; i >= 0; i--) {
        if (all ? strncmp(s->tensor[i].name, name, n - 1) != 0 : strcmp(s->tensor[i].name, name) != 0) continue;
        memmove(&s->tensor[i], &s->tensor[i + 1], (size_t)(--s->n_tensors - i) * sizeof *s->tensor);
        dropped++;
    }
    if (!dropped) fail_msg("the sketch has no tensor %s", name);
}

static uint64_t bytes_of(const sketch_tensor *t) {
    const clt_type_info *info = clt_type_get((uint32_t)t->type);
    return clt_type_row_bytes(info, t->dims[0]) * (uint64_t)(t->dims[1] * t->dims[2]);
}

static void put_data(clt_buf *b, const sketch_tensor *t) {
    uint32_t bits;
    memcpy(&bits, &t->fill, sizeof bits);
    for (uint64_t i = 0; i < bytes_of(t); i++) clt_buf_putc(b, (char)(bits >> (8 * (i % 4))));
}

static const char *write_gguf(sketch *s) {
    clt_buf b = {0};
    uint64_t at = 0;
    gguf_header(&b, 3, (uint64_t)s->n_tensors, (uint64_t)s->n_metas);
    for (int i = 0; i < s->n_metas; i++)
        put_str(&b, s->meta[i].key), clt_buf_put(&b, s->meta[i].value.data, s->meta[i].value.len);
    for (int i = 0; i < s->n_tensors; i++) {
        const sketch_tensor *t = &s->tensor[i];
        uint64_t dims[3] = {(uint64_t)t->dims[0], (uint64_t)t->dims[1], (uint64_t)t->dims[2]};
        gguf_tensor(&b, t->name, dims[2] > 1 ? 3 : dims[1] > 1 ? 2 : 1, dims, (uint32_t)t->type, at);
        at += (bytes_of(t) + 31) / 32 * 32;
    }
    gguf_align(&b, 32);
    for (int i = 0; i < s->n_tensors; i++) put_data(&b, &s->tensor[i]), gguf_align(&b, 32);
    return write_buf("model.gguf", &b);
}

static const char *write_hf(sketch *s) {
    clt_buf b = {0}, header = {0};
    uint64_t at = 0;
    for (int i = 0; i < s->n_tensors; i++) {
        const sketch_tensor *t = &s->tensor[i];
        clt_buf_printf(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "{", t->name,
                       clt_type_name((uint32_t)t->type));
        if (t->dims[2] > 1) clt_buf_printf(&header, "%lld,", (long long)t->dims[2]);
        if (t->dims[2] > 1 || t->dims[1] > 1) clt_buf_printf(&header, "%lld,", (long long)t->dims[1]);
        clt_buf_printf(&header, "%lld],\"data_offsets\":[%llu,%llu]}", (long long)t->dims[0], (unsigned long long)at,
                       (unsigned long long)(at + bytes_of(t)));
        at += bytes_of(t);
    }
    clt_buf_puts(&header, "}");
    put_str_n(&b, header.data, header.len);
    for (int i = 0; i < s->n_tensors; i++) put_data(&b, &s->tensor[i]);
    clt_buf_free(&header);
    mkdir(in_folder("hf"), 0700);
    write_buf("hf/model.safetensors", &b);
    write_text("hf/config.json", s->config);
    unlink(in_folder("hf/generation_config.json"));
    if (*s->generation) write_text("hf/generation_config.json", s->generation);
    return in_folder("hf");
}

const char *sketch_write(sketch *s) { return *s->config ? write_hf(s) : write_gguf(s); }

void sketch_free(sketch *s) {
    for (int i = 0; i < s->n_metas; i++) clt_buf_free(&s->meta[i].value);
    free(s);
}

/* ---- expectations ---- */

int models_setup(void **state) { return files_setup(state); }

int models_teardown(void **state) { return files_teardown(state); }

static clt_err last;

const char *refusal(void) { return last.text; }

bound *sketch_bind(sketch *s) {
    bound *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->file = open_ok(sketch_write(s));
    sketch_free(s);
    if (clt_model_bind(b->file, &b->model, &last) != CLT_OK) fail_msg("%s (hint: %s)", last.text, last.hint);
    return b;
}

void bound_close(bound *b) {
    clt_model_free(&b->model);
    clt_file_close(b->file);
    free(b);
}

void bind_refused(const char *file, int line, sketch *s, clt_status code, const char *const *words) {
    clt_file *f = open_ok(sketch_write(s));
    clt_model m;
    sketch_free(s);
    long live = clt_mem_live();
    clt_status st = clt_model_bind(f, &m, &last);
    if (st == CLT_OK) fail_msg("%s:%d: the model was bound", file, line);
    if (st != code)
        fail_msg("%s:%d: expected %s, got %s: %s", file, line, clt_status_name(code), clt_status_name(st), last.text);
    assert_int_equal(clt_mem_live(), live);
    assert_null(m.arena);
    assert_one_line(last.text);
    for (; *words; words++)
        if (!strstr(last.text, *words) && !strstr(last.hint, *words))
            fail_msg("%s:%d: '%s' is not in: %s | %s", file, line, *words, last.text, last.hint);
    clt_file_close(f);
}
