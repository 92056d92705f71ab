/* Hugging Face config.json and generation_config.json -> configuration.
 *
 * The text part stands at the top level of a text-only model and under "text_config" of a multimodal one. Published Gemma 3
 * files leave out what equals the class defaults of the reference implementation; those defaults stand here. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/internal.h"

typedef struct reader {
    clt_model *m;
    const clt_json *text; /* the object that describes the text model */
    clt_err *err;
    clt_status st;
} reader;

static void bad(reader *r, const char *key, const char *what) {
    if (r->st == CLT_OK)
        r->st = clt_fail(r->err, CLT_E_FILE, "%s/config.json: key %s %s", clt_file_path(r->m->file), key, what);
}

static bool is_null(const clt_json *n) { return clt_json_kind(n) == CLT_JSON_NULL; }

/* A whole number in [min, max]; absent or null: fallback, or an error if fallback < 0. */
static int64_t integer(reader *r, const char *key, int64_t min, int64_t max, int64_t fallback) {
    const clt_json *n = clt_json_get(r->text, key);
    int64_t v = fallback;
    char what[128];
    if (is_null(n) && fallback >= 0) return fallback;
    if (is_null(n)) bad(r, key, "is missing");
    else if (!clt_json_int(n, &v)) bad(r, key, "is not a whole number");
    else if (v < min || v > max) {
        snprintf(what, sizeof what, "is %lld, expected %lld to %lld", (long long)v, (long long)min, (long long)max);
        bad(r, key, what);
    }
    return r->st == CLT_OK ? v : min;
}

static double number(reader *r, const clt_json *object, const char *key, double fallback) {
    const clt_json *n = clt_json_get(object, key);
    double v = fallback;
    if (is_null(n)) return fallback;
    if (!clt_json_num(n, &v)) bad(r, key, "is not a number");
    return v;
}

static bool is_string(const clt_json *n, const char *expected) {
    size_t len;
    const char *s = clt_json_str(n, &len);
    return s && len == strlen(expected) && !memcmp(s, expected, len);
}

static void read_layer_types(reader *r, int default_period) {
    clt_config *c = &r->m->config;
    const clt_json *types = clt_json_get(r->text, "layer_types");
    if (is_null(types) && !default_period) bad(r, "layer_types", "is missing");
    if (is_null(types)) {
        int period = (int)integer(r, "sliding_window_pattern", 1, CLT_MAX_LAYERS, default_period);
        for (int l = 0; l < c->layers && r->st == CLT_OK; l++) c->layer[l].sliding = (l + 1) % period != 0;
        return;
    }
    if (clt_json_len(types) != (size_t)c->layers) bad(r, "layer_types", "does not have one item per layer");
    for (int l = 0; l < c->layers && r->st == CLT_OK; l++) {
        const clt_json *t = clt_json_at(types, (size_t)l);
        c->layer[l].sliding = is_string(t, "sliding_attention");
        if (!c->layer[l].sliding && !is_string(t, "full_attention"))
            bad(r, "layer_types", "holds something else than \"sliding_attention\" and \"full_attention\"");
    }
}

/* rope_parameters.{full,sliding}_attention; NULL object: the older flat keys. */
static const clt_json *rope_of(const reader *r, const char *layer_type) {
    return clt_json_get(clt_json_get(r->text, "rope_parameters"), layer_type);
}

/* What either family reads nothing from must not be there: another scaling of sliding layers, one object for both kinds. */
static void check_rope(reader *r) {
    const clt_json *full = rope_of(r, "full_attention"), *sliding = rope_of(r, "sliding_attention");
    const clt_json *kind = clt_json_get(sliding, "rope_type");
    if (is_null(clt_json_get(r->text, "rope_parameters"))) return;
    if (clt_json_kind(full) != CLT_JSON_OBJECT || clt_json_kind(sliding) != CLT_JSON_OBJECT)
        bad(r, "rope_parameters", "lacks full_attention or sliding_attention");
    if (!is_null(kind) && !is_string(kind, "default"))
        bad(r, "rope_parameters", "has an unknown rope_type for sliding_attention");
}

static void read_common(reader *r) {
    clt_config *c = &r->m->config;
    int64_t layers = integer(r, "num_hidden_layers", 1, CLT_MAX_LAYERS, -1);
    if (r->st == CLT_OK) r->st = clt_config_alloc(r->m, layers, r->err);
    c->width = (int)integer(r, "hidden_size", 1, CLT_MAX_WIDTH, -1);
    c->vocab = (int)integer(r, "vocab_size", 1, INT32_MAX, 0);
    c->context_limit = (int)integer(r, "max_position_embeddings", 1, CLT_MAX_CONTEXT, 131072);
    c->window = (int)integer(r, "sliding_window", 1, CLT_MAX_CONTEXT, -1);
    c->rms_eps = (float)number(r, r->text, "rms_norm_eps", 1e-6);
    c->final_softcap = (float)number(r, r->text, "final_logit_softcapping", 0);
    c->embed_scale = sqrtf((float)c->width);
    c->rope_divisor_full = 1;
    if (number(r, r->text, "attn_logit_softcapping", 0) != 0)
        bad(r, "attn_logit_softcapping", "is set; no known model has it");
    if (clt_json_is_true(clt_json_get(r->text, "attention_bias")))
        bad(r, "attention_bias", "is true; no known model has biases");
    const clt_json *activation = clt_json_get(r->text, "hidden_activation");
    if (!is_null(activation) && !is_string(activation, "gelu_pytorch_tanh"))
        bad(r, "hidden_activation", "is not \"gelu_pytorch_tanh\"");
    const clt_json *both_ways = clt_json_get(r->text, "use_bidirectional_attention"); /* "vision" concerns pictures alone */
    if (r->st == CLT_OK && (clt_json_is_true(both_ways) || is_string(both_ways, "all")))
        r->st = clt_fail(r->err, CLT_E_UNSUPPORTED,
                         "%s/config.json: key use_bidirectional_attention is set: an embedding model, "
                         "not one that makes text",
                         clt_file_path(r->m->file));
    c->picture_blocks = is_string(both_ways, "vision");
    check_rope(r);
}

/* Files saved by transformers 5.23 and later list what differs from layer to layer under its index, instead of the "global"
 * keys. `lc` holds the values of all layers. */
static void override_layer(reader *r, clt_layer_config *lc, const clt_json *item) {
    static const char *const known[] = {"head_dim", "num_key_value_heads", "intermediate_size"};
    reader one = *r;
    size_t n = 0;
    one.text = item;
    lc->head_dim = (int)integer(&one, known[0], 2, CLT_MAX_HEAD_DIM, lc->head_dim);
    lc->kv_heads = (int)integer(&one, known[1], 1, 65536, lc->kv_heads);
    lc->ffn = (int)integer(&one, known[2], 1, CLT_MAX_WIDTH, lc->ffn);
    r->st = one.st;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) n += clt_json_get(item, known[i]) != NULL;
    if (n != clt_json_len(item))
        bad(r, "per_layer_config", "sets more than head_dim, num_key_value_heads and intermediate_size");
}

static void override_layers(reader *r, const clt_json *list) {
    clt_config *c = &r->m->config;
    int dim[2] = {0, 0}; /* by sliding */
    size_t n = 0;
    for (int l = 0; l < c->layers && r->st == CLT_OK; l++) {
        char index[16];
        clt_layer_config *lc = &c->layer[l];
        snprintf(index, sizeof index, "%d", l);
        const clt_json *item = clt_json_get(list, index);
        if (item) override_layer(r, lc, item), n++;
        if (dim[lc->sliding] && dim[lc->sliding] != lc->head_dim)
            bad(r, "per_layer_config", "gives one kind of layers two widths");
        dim[lc->sliding] = lc->head_dim;
    }
    if (n != clt_json_len(list)) bad(r, "per_layer_config", "names layers that do not exist");
}

static void read_rope_gemma4(reader *r, int head_dim_full) {
    clt_config *c = &r->m->config;
    const clt_json *full = rope_of(r, "full_attention"), *sliding = rope_of(r, "sliding_attention");
    const clt_json *kind = clt_json_get(full, "rope_type");
    if (!is_null(clt_json_get(r->text, "rope_scaling"))) bad(r, "rope_scaling", "is set; no known Gemma 4 has it");
    bool proportional = is_null(kind) || is_string(kind, "proportional");
    if (!proportional && !is_string(kind, "default"))
        bad(r, "rope_parameters", "has an unknown rope_type for full_attention");
    double factor = number(r, full, "partial_rotary_factor", proportional ? 0.25 : 1.0);
    if (!(factor > 0 && factor <= 1)) bad(r, "partial_rotary_factor", "is not in (0, 1]");
    else c->rope_pairs_full = (int)(factor * head_dim_full / 2);
    c->rope_theta_full = number(r, full, "rope_theta", 1e6);
    c->rope_theta_sliding = number(r, sliding, "rope_theta", 1e4);
}

static void read_gemma4(reader *r) {
    clt_config *c = &r->m->config;
    read_layer_types(r, 0);
    if (r->st != CLT_OK) return;
    c->layer[c->layers - 1].sliding = false; /* whatever the list says, as in the reference implementation */
    int heads = (int)integer(r, "num_attention_heads", 1, 65536, -1),
        kv = (int)integer(r, "num_key_value_heads", 1, 65536, -1);
    int kv_full = (int)integer(r, "num_global_key_value_heads", 1, 65536, kv);
    int dim = (int)integer(r, "head_dim", 2, CLT_MAX_HEAD_DIM, -1), dim_full = (int)integer(r, "global_head_dim", 2, CLT_MAX_HEAD_DIM, 512);
    int ffn = (int)integer(r, "intermediate_size", 1, CLT_MAX_WIDTH / 2, -1);
    int n_shared = (int)integer(r, "num_kv_shared_layers", 0, CLT_MAX_LAYERS, 0);
    bool wide = clt_json_is_true(clt_json_get(r->text, "use_double_wide_mlp"));
    bool k_is_v = clt_json_is_true(clt_json_get(r->text, "attention_k_eq_v"));
    const clt_json *overrides = clt_json_get(r->text, "per_layer_config");
    if (!is_null(overrides)) dim_full = dim, kv_full = kv;
    if (r->st != CLT_OK) return;
    for (int l = 0; l < c->layers; l++) {
        clt_layer_config *lc = &c->layer[l];
        lc->heads = heads;
        lc->kv_heads = lc->sliding || !k_is_v ? kv : kv_full; /* the override belongs to models whose keys serve as values */
        lc->head_dim = lc->sliding ? dim : dim_full;
        lc->k_is_v = k_is_v && !lc->sliding;
        lc->ffn = wide && l >= c->layers - n_shared ? 2 * ffn : ffn;
    }
    if (!is_null(overrides)) override_layers(r, overrides);
    c->attn_scale = 1;
    c->ple_dim = (int)integer(r, "hidden_size_per_layer_input", 0, 65536, 0);
    if (clt_json_is_true(clt_json_get(r->text, "enable_moe_block"))) {
        c->experts = (int)integer(r, "num_experts", 1, CLT_MAX_EXPERTS, -1);
        c->experts_used = (int)integer(r, "top_k_experts", 1, CLT_MAX_EXPERTS, -1);
        c->expert_ffn = (int)integer(r, "moe_intermediate_size", 1, CLT_MAX_WIDTH / 2, -1);
    }
    read_rope_gemma4(r, c->layer[c->layers - 1].head_dim);
    if (r->st == CLT_OK) r->st = clt_config_share_kv(r->m, n_shared, r->err);
}

static void read_gemma3(reader *r) {
    clt_config *c = &r->m->config;
    read_layer_types(r, 6);
    if (r->st != CLT_OK) return;
    int heads = (int)integer(r, "num_attention_heads", 1, 65536, 8),
        kv = (int)integer(r, "num_key_value_heads", 1, 65536, 4);
    int dim = (int)integer(r, "head_dim", 2, CLT_MAX_HEAD_DIM, 256), ffn = (int)integer(r, "intermediate_size", 1, CLT_MAX_WIDTH, -1);
    for (int l = 0; l < c->layers; l++) {
        clt_layer_config *lc = &c->layer[l];
        lc->heads = heads, lc->kv_heads = kv, lc->head_dim = dim, lc->ffn = ffn;
    }
    double scalar = number(r, r->text, "query_pre_attn_scalar", 256);
    if (!(scalar > 0)) bad(r, "query_pre_attn_scalar", "is not positive");
    c->attn_scale = (float)(1 / sqrt(scalar));
    c->rope_pairs_full = dim / 2;
    const clt_json *full = rope_of(r, "full_attention"), *scaling = full ? full : clt_json_get(r->text, "rope_scaling");
    c->rope_theta_full = number(r, full ? full : r->text, "rope_theta", 1e6);
    c->rope_theta_sliding = full ? number(r, rope_of(r, "sliding_attention"), "rope_theta", 1e4)
                                 : number(r, r->text, "rope_local_base_freq", 1e4);
    const clt_json *kind = clt_json_get(scaling, "rope_type");
    if (is_null(kind)) kind = clt_json_get(scaling, "type");
    if (is_string(kind, "linear")) c->rope_divisor_full = (float)number(r, scaling, "factor", 0);
    else if (!is_null(kind) && !is_string(kind, "default")) bad(r, "rope_scaling", "has an unknown rope_type");
    if (r->st == CLT_OK) r->st = clt_config_share_kv(r->m, 0, r->err);
}

static void read_generation(clt_model *m, const clt_json *config) {
    const clt_json *g = clt_file_json(m->file, "generation_config.json");
    const clt_json *eos = clt_json_get(g ? g : config, "eos_token_id"), *bans = clt_json_get(g, "suppress_tokens");
    int64_t id;
    double v;
    if (clt_json_int(eos, &id)) clt_model_add_end_id(m, id);
    for (size_t i = 0; i < clt_json_len(eos); i++)
        if (clt_json_int(clt_json_at(eos, i), &id)) clt_model_add_end_id(m, id);
    for (size_t i = 0; i < clt_json_len(bans); i++)
        if (clt_json_int(clt_json_at(bans, i), &id)) clt_model_add_suppressed_id(m, id);
    if (clt_json_num(clt_json_get(g, "temperature"), &v) && v >= 0 && v <= 100)
        m->has_temperature = true, m->temperature = (float)v;
    if (clt_json_int(clt_json_get(g, "top_k"), &id) && id >= 0 && id <= INT_MAX) m->has_top_k = true, m->top_k = (int)id;
    if (clt_json_num(clt_json_get(g, "top_p"), &v) && v > 0 && v <= 1) m->has_top_p = true, m->top_p = (float)v;
}

/* A template stands in chat_template.jinja, in older folders in tokenizer_config.json. */
static void read_template(clt_model *m) {
    uint64_t n;
    const char *s = clt_file_text(m->file, "chat_template.jinja", &n);
    size_t len = 0;
    if (s && n) {
        m->chat_template = s, m->chat_template_len = n;
    } else if ((s = clt_json_str(clt_json_get(clt_file_json(m->file, "tokenizer_config.json"), "chat_template"), &len)) &&
               len) {
        m->chat_template = s, m->chat_template_len = len;
    }
}

static clt_status read_family(clt_model *m, const char *type, clt_err *err) {
    static const char *const gemma4[] = {"gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"};
    const char *path = clt_file_path(m->file);
    for (size_t i = 0; i < sizeof gemma4 / sizeof *gemma4; i++)
        if (!strcmp(type, gemma4[i])) {
            m->config.family = CLT_GEMMA4, m->architecture = "gemma4";
            m->config.unified = i >= 2;
            return CLT_OK;
        }
    if (!strcmp(type, "gemma3") || !strcmp(type, "gemma3_text"))
        return m->config.family = CLT_GEMMA3, m->architecture = "gemma3", CLT_OK;
    if (clt_type_is_drafter(type)) {
        clt_fail(err, CLT_E_UNSUPPORTED, "%s: is a drafter (model_type \"%s\"), not a text model", path, type);
        return clt_hint(err, "give the target model with -m and this folder with --model-draft");
    }
    clt_fail(err, CLT_E_UNSUPPORTED, "%s: model_type is \"%s\", expected \"gemma4\" or \"gemma3\"", path, type);
    return clt_hint(err, "culet runs Gemma 4 and Gemma 3 text models only");
}

clt_status clt_config_from_hf(clt_model *m, clt_err *err) {
    const clt_json *config = clt_file_json(m->file, "config.json"), *text = clt_json_get(config, "text_config");
    size_t len;
    const char *type = clt_json_str(clt_json_get(config, "model_type"), &len);
    if (!type)
        return clt_fail(err, CLT_E_FILE, "%s/config.json: key model_type is missing or not a string",
                        clt_file_path(m->file));
    char shown[64];
    snprintf(shown, sizeof shown, "%.*s", (int)(len < 63 ? len : 63), type);
    for (char *p = shown; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
    clt_status st = read_family(m, shown, err);
    if (st != CLT_OK) return st;
    reader r = {.m = m, .text = clt_json_kind(text) == CLT_JSON_OBJECT ? text : config, .err = err, .st = CLT_OK};
    m->norm_plus_one = m->config.family == CLT_GEMMA3;
    m->name = "";
    read_common(&r);
    if (r.st == CLT_OK && m->config.family == CLT_GEMMA4) read_gemma4(&r);
    else if (r.st == CLT_OK) read_gemma3(&r);
    if (r.st != CLT_OK) return r.st;
    read_generation(m, config);
    read_template(m);
    return CLT_OK;
}
