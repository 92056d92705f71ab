/* The table of names, and the binding of roles to tensors.
 *
 * One table says for each role: its GGUF name, its Hugging Face name, its shape, and when a layer has it. Whatever is
 * missing, misshapen or left over is collected and reported together, each tensor by its name. If that is more than an error
 * holds, missing layers of one kind share an entry ("blk.{0-3,7}.attn_k.weight"). */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/internal.h"

typedef enum dim { NONE, WIDTH, Q_DIM, K_DIM, QKV_DIM, HEAD, FFN, PLE, EXPERTS, EXPERT_FFN, EXPERT_FFN2, ONE } dim;
typedef enum need {
    ALWAYS, OWN_KV, OWN_V, IF_PLE, IF_MOE, IF_GEMMA4, IF_FUSED_QKV, IF_FUSED_EXPERTS, IF_SPLIT_EXPERTS
} need;

/* Shapes innermost first: {columns, rows, experts}. */
typedef struct role {
    size_t slot; /* offset of the pointer in clt_layer_tensors */
    const char *gguf, *hf;
    dim shape[3];
    need when;
    bool vector; /* read as plain numbers, so it must be F32, F16 or BF16 */
} role;

#define SLOT(field) offsetof(clt_layer_tensors, field)
static const role roles[] = {
    {SLOT(attn_norm), "attn_norm.weight", "input_layernorm.weight", {WIDTH}, ALWAYS, true},
    {SLOT(q), "attn_q.weight", "self_attn.q_proj.weight", {WIDTH, Q_DIM}, ALWAYS, false},
    {SLOT(k), "attn_k.weight", "self_attn.k_proj.weight", {WIDTH, K_DIM}, OWN_KV, false},
    {SLOT(v), "attn_v.weight", "self_attn.v_proj.weight", {WIDTH, K_DIM}, OWN_V, false},
    {SLOT(qkv), "attn_qkv.weight", NULL, {WIDTH, QKV_DIM}, IF_FUSED_QKV, false},
    {SLOT(o), "attn_output.weight", "self_attn.o_proj.weight", {Q_DIM, WIDTH}, ALWAYS, false},
    {SLOT(q_norm), "attn_q_norm.weight", "self_attn.q_norm.weight", {HEAD}, ALWAYS, true},
    {SLOT(k_norm), "attn_k_norm.weight", "self_attn.k_norm.weight", {HEAD}, OWN_KV, true},
    {SLOT(post_attn_norm), "post_attention_norm.weight", "post_attention_layernorm.weight", {WIDTH}, ALWAYS, true},
    {SLOT(ffn_norm), "ffn_norm.weight", "pre_feedforward_layernorm.weight", {WIDTH}, ALWAYS, true},
    {SLOT(gate), "ffn_gate.weight", "mlp.gate_proj.weight", {WIDTH, FFN}, ALWAYS, false},
    {SLOT(up), "ffn_up.weight", "mlp.up_proj.weight", {WIDTH, FFN}, ALWAYS, false},
    {SLOT(down), "ffn_down.weight", "mlp.down_proj.weight", {FFN, WIDTH}, ALWAYS, false},
    {SLOT(post_ffn_norm), "post_ffw_norm.weight", "post_feedforward_layernorm.weight", {WIDTH}, ALWAYS, true},
    {SLOT(scalar), "layer_output_scale.weight", "layer_scalar", {ONE}, IF_GEMMA4, true},
    {SLOT(ple_gate), "inp_gate.weight", "per_layer_input_gate.weight", {WIDTH, PLE}, IF_PLE, false},
    {SLOT(ple_proj), "proj.weight", "per_layer_projection.weight", {PLE, WIDTH}, IF_PLE, false},
    {SLOT(ple_norm), "post_norm.weight", "post_per_layer_input_norm.weight", {WIDTH}, IF_PLE, true},
    {SLOT(router), "ffn_gate_inp.weight", "router.proj.weight", {WIDTH, EXPERTS}, IF_MOE, false},
    {SLOT(router_scale), "ffn_gate_inp.scale", "router.scale", {WIDTH}, IF_MOE, true},
    {SLOT(expert_scale), "ffn_down_exps.scale", "router.per_expert_scale", {EXPERTS}, IF_MOE, true},
    {SLOT(gate_up_exps), "ffn_gate_up_exps.weight", "experts.gate_up_proj", {WIDTH, EXPERT_FFN2, EXPERTS}, IF_FUSED_EXPERTS,
     false},
    {SLOT(gate_exps), "ffn_gate_exps.weight", NULL, {WIDTH, EXPERT_FFN, EXPERTS}, IF_SPLIT_EXPERTS, false},
    {SLOT(up_exps), "ffn_up_exps.weight", NULL, {WIDTH, EXPERT_FFN, EXPERTS}, IF_SPLIT_EXPERTS, false},
    {SLOT(down_exps), "ffn_down_exps.weight", "experts.down_proj", {EXPERT_FFN, WIDTH, EXPERTS}, IF_MOE, false},
    {SLOT(post_ffn_norm_1), "post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight", {WIDTH}, IF_MOE, true},
    {SLOT(pre_ffn_norm_2), "pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight", {WIDTH}, IF_MOE, true},
    {SLOT(post_ffn_norm_2), "post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight", {WIDTH}, IF_MOE, true},
};
enum { N_ROLES = sizeof roles / sizeof *roles };

typedef struct binder {
    clt_model *m;
    bool gguf;
    const char *prefix;      /* HF: what stands before "layers." */
    unsigned char *claimed;  /* [tensors] */
    clt_buf missing, grouped, misshapen, extra; /* grouped: the missing ones, in few words */
} binder;

static const clt_tensor **slot_of(clt_model *m, int l, const role *r) {
    return (const clt_tensor **)(void *)((char *)&m->layer[l] + r->slot);
}

static void layer_name(const binder *b, const role *r, int l, char *out, size_t n) {
    if (b->gguf) snprintf(out, n, "blk.%d.%s", l, r->gguf);
    else snprintf(out, n, "%slayers.%d.%s", b->prefix, l, r->hf);
}

/* Finds a tensor and marks it as understood. */
static const clt_tensor *claim(binder *b, const char *name) {
    const clt_tensor *t = clt_file_find(b->m->file, name);
    if (t) b->claimed[t - clt_file_tensor(b->m->file, 0)] = 1;
    return t;
}

static int64_t dim_value(const clt_config *c, const clt_layer_config *lc, dim d) {
    switch (d) {
    case WIDTH: return c->width;
    case Q_DIM: return (int64_t)lc->heads * lc->head_dim;
    case K_DIM: return (int64_t)lc->kv_heads * lc->head_dim;
    case QKV_DIM: return ((int64_t)lc->heads + 2 * (int64_t)lc->kv_heads) * lc->head_dim;
    case HEAD: return lc->head_dim;
    case FFN: return lc->ffn;
    case PLE: return c->ple_dim;
    case EXPERTS: return c->experts;
    case EXPERT_FFN: return c->expert_ffn;
    case EXPERT_FFN2: return 2 * (int64_t)c->expert_ffn;
    case NONE: case ONE: break;
    }
    return 1;
}

/* Layer l has no working model without this tensor. */
static bool wanted(const clt_model *m, int l, need when) {
    const clt_config *c = &m->config;
    const clt_layer_config *lc = &c->layer[l];
    const clt_layer_tensors *t = &m->layer[l];
    switch (when) {
    case ALWAYS: return true;
    case OWN_KV: return lc->own_kv;
    case OWN_V: return lc->own_kv && !lc->k_is_v;
    case IF_PLE: return c->ple_dim > 0;
    case IF_MOE: return c->experts > 0;
    case IF_FUSED_EXPERTS: return c->experts > 0 && !t->gate_exps && !t->up_exps;
    case IF_SPLIT_EXPERTS: return c->experts > 0 && !t->gate_up_exps && (t->gate_exps || t->up_exps);
    case IF_GEMMA4: case IF_FUSED_QKV: break;
    }
    return false;
}

static bool one_of_qkv(const role *r) { return r->slot == SLOT(q) || r->slot == SLOT(k) || r->slot == SLOT(v); }

/* Layer l reads this tensor where the file has it; fused forms go before split ones. */
static bool usable(const clt_model *m, int l, const role *r) {
    const clt_layer_tensors *t = &m->layer[l];
    if (one_of_qkv(r) && t->qkv) return false;
    switch (r->when) {
    case IF_GEMMA4: return m->config.family == CLT_GEMMA4;
    case IF_FUSED_QKV: return true;
    case IF_FUSED_EXPERTS: return m->config.experts > 0;
    case IF_SPLIT_EXPERTS: return m->config.experts > 0 && !t->gate_up_exps;
    default: return wanted(m, l, r->when);
    }
}

static void check_shape(binder *b, const clt_tensor *t, const int64_t want[3], bool vector) {
    if (t->dims[0] != want[0] || t->dims[1] != want[1] || t->dims[2] != want[2] || t->dims[3] != 1)
        clt_buf_printf(&b->misshapen, "; %s has shape [%lld, %lld, %lld, %lld], expected [%lld, %lld, %lld, 1]", t->name,
                       (long long)t->dims[0], (long long)t->dims[1], (long long)t->dims[2], (long long)t->dims[3],
                       (long long)want[0], (long long)want[1], (long long)want[2]);
    else if (vector && t->type != CLT_F32 && t->type != CLT_F16 && t->type != CLT_BF16)
        clt_buf_printf(&b->misshapen, "; %s has type %s, expected F32, F16 or BF16", t->name,
                       clt_type_name((uint32_t)t->type));
}

/* Notes l in a list like "0-3,7" that is open in `list`; `run` is the start of the current run of layers, -1 for none. */
static void add_layer(clt_buf *list, int l, int *run, int *last) {
    if (*run >= 0 && l == *last + 1) {
        *last = l;
        return;
    }
    if (*run >= 0) clt_buf_printf(list, *run == *last ? "%d," : "%d-%d,", *run, *last);
    *run = *last = l;
}

static void report_missing(binder *b, const role *r) {
    clt_buf list = {0};
    int run = -1, last = -1;
    char name[192];
    for (int l = 0; l < b->m->config.layers; l++) {
        bool fused = b->m->layer[l].qkv && one_of_qkv(r);
        if (*slot_of(b->m, l, r) || fused || !wanted(b->m, l, r->when)) continue;
        add_layer(&list, l, &run, &last);
        layer_name(b, r, l, name, sizeof name);
        clt_buf_printf(&b->missing, "; %s", name);
    }
    if (run >= 0) {
        clt_buf_printf(&list, run == last ? "%d" : "%d-%d", run, last);
        if (b->gguf) clt_buf_printf(&b->grouped, "; blk.{%s}.%s", list.data, r->gguf);
        else clt_buf_printf(&b->grouped, "; %slayers.{%s}.%s", b->prefix, list.data, r->hf);
    }
    b->missing.failed |= list.failed;
    clt_buf_free(&list);
}

static void bind_layers(binder *b) {
    clt_model *m = b->m;
    char name[192];
    for (int l = 0; l < m->config.layers; l++)
        for (int i = 0; i < N_ROLES; i++) {
            if (!b->gguf && !roles[i].hf) continue;
            layer_name(b, &roles[i], l, name, sizeof name);
            *slot_of(m, l, &roles[i]) = claim(b, name);
        }
}

/* Layers that read another layer's keys may still carry their own (older checkpoints do): understood, not used. */
static void drop_unused(clt_model *m) {
    for (int l = 0; l < m->config.layers; l++) {
        clt_layer_tensors *t = &m->layer[l];
        if (!m->config.layer[l].own_kv) t->k = t->v = t->k_norm = NULL;
    }
}

/* GGUF has no key for "keys serve as values": it shows in all full layers lacking a value projection. */
static void infer_k_is_v(clt_model *m) {
    if (m->config.family != CLT_GEMMA4 || m->config.ple_dim) return;
    for (int l = 0; l < m->config.layers; l++)
        if (!m->config.layer[l].sliding && (m->layer[l].v || m->layer[l].qkv)) return;
    for (int l = 0; l < m->config.layers; l++) m->config.layer[l].k_is_v = !m->config.layer[l].sliding;
}

static void check_layers(binder *b) {
    clt_model *m = b->m;
    for (int i = 0; i < N_ROLES; i++) {
        const role *r = &roles[i];
        if (b->gguf || r->hf) report_missing(b, r);
        for (int l = 0; l < m->config.layers; l++) {
            const clt_tensor *t = *slot_of(m, l, r);
            if (!t) continue;
            if (!usable(m, l, r)) {
                b->claimed[t - clt_file_tensor(m->file, 0)] = 0;
                continue;
            }
            int64_t want[3];
            for (int d = 0; d < 3; d++) want[d] = dim_value(&m->config, &m->config.layer[l], r->shape[d]);
            check_shape(b, t, want, r->vector);
        }
    }
}

static void note_missing(binder *b, const char *name) {
    clt_buf_printf(&b->missing, "; %s", name);
    clt_buf_printf(&b->grouped, "; %s", name);
}

/* What stands outside of layers. */
enum { EMBED, OUTPUT_NORM, PLE_EMBED, PLE_PROJ, PLE_PROJ_NORM, N_GLOBALS };
static const struct { const char *gguf, *hf; } globals[N_GLOBALS] = {
    [EMBED] = {"token_embd.weight", "embed_tokens.weight"},
    [OUTPUT_NORM] = {"output_norm.weight", "norm.weight"},
    [PLE_EMBED] = {"per_layer_token_embd.weight", "embed_tokens_per_layer.weight"},
    [PLE_PROJ] = {"per_layer_model_proj.weight", "per_layer_model_projection.weight"},
    [PLE_PROJ_NORM] = {"per_layer_proj_norm.weight", "per_layer_projection_norm.weight"},
};

static const clt_tensor *bind_global(binder *b, int which, bool required) {
    char name[192];
    if (b->gguf) snprintf(name, sizeof name, "%s", globals[which].gguf);
    else snprintf(name, sizeof name, "%s%s", b->prefix, globals[which].hf);
    const clt_tensor *t = claim(b, name);
    if (!t && required) note_missing(b, name);
    return t;
}

/* The output is the embedding unless a folder says otherwise, in either place. */
static bool is_tied(const clt_file *f) {
    const clt_json *config = clt_file_json(f, "config.json");
    const clt_json *tie = clt_json_get(clt_json_get(config, "text_config"), "tie_word_embeddings");
    if (clt_json_kind(tie) != CLT_JSON_BOOL) tie = clt_json_get(config, "tie_word_embeddings");
    return clt_json_kind(tie) != CLT_JSON_BOOL || clt_json_is_true(tie);
}

static void check_global(binder *b, const clt_tensor *t, int64_t cols, int64_t rows, bool vector) {
    if (t) check_shape(b, t, (const int64_t[3]){cols, rows, 1}, vector);
}

static void bind_globals(binder *b) {
    clt_model *m = b->m;
    clt_config *c = &m->config;
    m->embed = bind_global(b, EMBED, true);
    m->output_norm = bind_global(b, OUTPUT_NORM, true);
    m->output = b->gguf ? claim(b, "output.weight") : NULL;
    if (!b->gguf) {
        m->output = claim(b, "lm_head.weight");
        if (is_tied(m->file)) m->output = NULL;
        else if (!m->output) note_missing(b, "lm_head.weight");
    }
    if (m->embed && !c->vocab) c->vocab = m->embed->dims[1] <= INT32_MAX ? (int)m->embed->dims[1] : 0;
    if (!m->output) m->output = m->embed;
    check_global(b, m->embed, c->width, c->vocab, false);
    if (m->embed && m->output != m->embed) check_global(b, m->output, c->width, c->vocab, false);
    check_global(b, m->output_norm, c->width, 1, true);
    if (!c->ple_dim) return;
    int64_t all = (int64_t)c->layers * c->ple_dim;
    m->ple_embed = bind_global(b, PLE_EMBED, true);
    m->ple_proj = bind_global(b, PLE_PROJ, true);
    m->ple_proj_norm = bind_global(b, PLE_PROJ_NORM, true);
    if (m->embed) check_global(b, m->ple_embed, all, c->vocab, false);
    check_global(b, m->ple_proj, c->width, all, false);
    check_global(b, m->ple_proj_norm, c->ple_dim, 1, true);
}

/* Parts of a multimodal checkpoint that the text model does not read. */
bool clt_name_is_elsewhere(const char *name) {
    static const char *const others[] = {"vision_tower.",    "audio_tower.",           "embed_vision.", "embed_audio.",
                                         "vision_embedder.", "multi_modal_projector.", "vision_model.", "audio_embedder."};
    if (!strncmp(name, "model.", 6)) name += 6;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strncmp(name, others[i], strlen(others[i]))) return true;
    size_t n = strlen(name);
    return n > 9 && !strcmp(name + n - 9, ".inv_freq"); /* a cached table of older checkpoints */
}

static bool belongs_elsewhere(const binder *b, const char *name) {
    if (b->gguf) return b->m->config.family == CLT_GEMMA4 && !strcmp(name, "rope_freqs.weight"); /* config_gguf.c reads it */
    return clt_name_is_elsewhere(name);
}

static void collect_extra(binder *b) {
    for (size_t i = 0; i < clt_file_tensors(b->m->file); i++) {
        const clt_tensor *t = clt_file_tensor(b->m->file, i);
        b->m->parameters += (uint64_t)t->dims[0] * (uint64_t)clt_tensor_rows(t);
        if (!b->claimed[i] && !belongs_elsewhere(b, t->name)) clt_buf_printf(&b->extra, "; %s", t->name);
    }
}

static clt_status report(binder *b, clt_err *err) {
    if (b->missing.failed || b->grouped.failed || b->misshapen.failed || b->extra.failed)
        return clt_fail_memory(err, "the list of tensors", 4096);
    if (!b->missing.len && !b->misshapen.len && !b->extra.len) return CLT_OK;
    const char *const kinds[] = {"missing tensors", "wrong tensors", "extra tensors"};
    bool fits = b->missing.len + b->misshapen.len + b->extra.len + strlen(clt_file_path(b->m->file)) + 64 < sizeof err->text;
    const clt_buf *lists[] = {fits ? &b->missing : &b->grouped, &b->misshapen, &b->extra};
    clt_buf text = {0};
    for (int i = 0; i < 3; i++)
        if (lists[i]->len) clt_buf_printf(&text, "%s%s: %s", text.len ? ". " : "", kinds[i], lists[i]->data + 2);
    clt_status st = text.failed ? clt_fail_memory(err, "the list of tensors", 4096)
                                : clt_fail(err, CLT_E_FILE, "%s: %s", clt_file_path(b->m->file), text.data);
    clt_buf_free(&text);
    return st == CLT_E_FILE
               ? clt_hint(err, "the file does not fit its own description of a %s model; get it again or convert it again",
                          b->m->architecture)
               : st;
}

/* What may stand before a name of the text model; the longest first. */
static const char *const prefixes[] = {"model.language_model.", "language_model.model.", "model.", ""};
enum { N_PREFIXES = sizeof prefixes / sizeof *prefixes };

/* Outside of the text model proper: the output matrix, and the two projections of drafters. */
static const struct { const char *gguf, *hf; } outer[] = {
    {"output.weight", "lm_head.weight"},
    {"nextn.pre_projection.weight", "pre_projection.weight"},
    {"nextn.post_projection.weight", "post_projection.weight"},
};

bool clt_name_to_gguf(const char *hf, char *out, size_t size) {
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
        if (!strcmp(hf, outer[i].hf)) return snprintf(out, size, "%s", outer[i].gguf), true;
    size_t p = 0;
    while (strncmp(hf, prefixes[p], strlen(prefixes[p])) != 0) p++; /* the last one is empty */
    const char *name = hf + strlen(prefixes[p]);
    for (int i = 0; i < N_GLOBALS; i++)
        if (!strcmp(name, globals[i].hf)) return snprintf(out, size, "%s", globals[i].gguf), true;
    int layer = 0, used = 0;
    if (sscanf(name, "layers.%d.%n", &layer, &used) != 1 || !used || layer < 0) return false;
    for (int i = 0; i < N_ROLES; i++)
        if (roles[i].hf && !strcmp(name + used, roles[i].hf))
            return snprintf(out, size, "blk.%d.%s", layer, roles[i].gguf), true;
    return false;
}

static const char *find_prefix(const clt_file *f) {
    char name[96];
    for (size_t i = 0; i < N_PREFIXES; i++) {
        snprintf(name, sizeof name, "%sembed_tokens.weight", prefixes[i]);
        if (clt_file_find(f, name)) return prefixes[i];
    }
    return "model.";
}

clt_status clt_bind_tensors(clt_model *m, clt_err *err) {
    binder b = {.m = m, .gguf = clt_file_get_kind(m->file) == CLT_FILE_GGUF};
    b.prefix = b.gguf ? "" : find_prefix(m->file);
    b.claimed = clt_calloc(clt_file_tensors(m->file) + 1, 1);
    clt_status st = b.claimed ? CLT_OK : clt_fail_memory(err, "the list of tensors", clt_file_tensors(m->file));
    if (st == CLT_OK) {
        bind_layers(&b);
        if (b.gguf) infer_k_is_v(m);
        drop_unused(m);
        bind_globals(&b);
        check_layers(&b);
        collect_extra(&b);
        st = report(&b, err);
    }
    clt_free(b.claimed);
    clt_buf_free(&b.missing);
    clt_buf_free(&b.grouped);
    clt_buf_free(&b.misshapen);
    clt_buf_free(&b.extra);
    return st;
}
