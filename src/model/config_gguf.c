/* GGUF metadata -> configuration.
 *
 * Keys carry the architecture as prefix ("gemma4.block_count"). Per-layer values come as one number or as an array of L
 * numbers; both are read. What the converter does not write has a default only where one is stated in MODEL.md. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/internal.h"

typedef struct reader {
    clt_model *m;
    const clt_file *f;
    char arch[32];
    clt_err *err;
    clt_status st; /* the first failure; later reads do nothing */
} reader;

static const clt_meta *find(const reader *r, const char *suffix, char key[128]) {
    snprintf(key, 128, "%s.%s", r->arch, suffix);
    return clt_file_meta_find(r->f, key);
}

static void bad(reader *r, const char *key, const char *what) {
    if (r->st == CLT_OK) r->st = clt_fail(r->err, CLT_E_FILE, "%s: key %s %s", clt_file_path(r->f), key, what);
}

/* A whole number, or item i of an array of them. `fallback` < 0: required. */
static int64_t integer_at(reader *r, const char *suffix, uint64_t i, int64_t min, int64_t max, int64_t fallback) {
    char key[128], what[128];
    int64_t v = 0;
    const clt_meta *m = find(r, suffix, key);
    if (r->st != CLT_OK) return min;
    if (!m && fallback >= 0) return fallback;
    if (!m) {
        bad(r, key, "is missing");
        return min;
    }
    bool flag;
    if (m->is_array && m->count != (uint64_t)r->m->config.layers) {
        snprintf(what, sizeof what, "has %llu items, expected one per layer (%d)", (unsigned long long)m->count,
                 r->m->config.layers);
        bad(r, key, what);
    } else if (clt_meta_bool(m, m->is_array ? i : 0, &flag)) {
        v = flag;
    } else if (!clt_meta_int(m, m->is_array ? i : 0, &v)) {
        bad(r, key, "is not a whole number");
    }
    if (r->st == CLT_OK && (v < min || v > max)) {
        snprintf(what, sizeof what, "is %lld, expected %lld to %lld", (long long)v, (long long)min, (long long)max);
        bad(r, key, what);
    }
    return r->st == CLT_OK ? v : min;
}

static int integer(reader *r, const char *suffix, int64_t min, int64_t max, int64_t fallback) {
    return (int)integer_at(r, suffix, 0, min, max, fallback);
}

static double number(reader *r, const char *suffix, double fallback) {
    char key[128];
    double v = fallback;
    const clt_meta *m = find(r, suffix, key);
    if (r->st != CLT_OK) return fallback;
    if (!m && isnan(fallback)) bad(r, key, "is missing");
    else if (m && !clt_meta_num(m, 0, &v)) bad(r, key, "is not a number");
    return v;
}

static bool text(const clt_file *f, const char *key, const char **s, uint64_t *n) {
    const clt_meta *m = clt_file_meta_find(f, key);
    return m && clt_meta_str(m, s, n);
}

/* The pattern is one bool per layer (true = sliding) or a period p: every p-th layer is full. */
static void read_pattern(reader *r, int default_period) {
    char key[128];
    clt_config *c = &r->m->config;
    const clt_meta *m = find(r, "attention.sliding_window_pattern", key);
    if (!m && !default_period) bad(r, key, "is missing");
    if (m && m->is_array) {
        for (int l = 0; l < c->layers && r->st == CLT_OK; l++)
            c->layer[l].sliding = integer_at(r, "attention.sliding_window_pattern", (uint64_t)l, 0, 1, -1);
    } else {
        int period = integer(r, "attention.sliding_window_pattern", 1, CLT_MAX_LAYERS, default_period);
        for (int l = 0; l < c->layers; l++) c->layer[l].sliding = (l + 1) % period != 0;
    }
}

static void check_length(reader *r, const char *suffix, int found, int expected, const char *why) {
    char key[128], what[96];
    find(r, suffix, key);
    snprintf(what, sizeof what, "is %d, expected %d, %s", found, expected, why);
    if (found != expected) bad(r, key, what);
}

static void read_layers(reader *r) {
    clt_config *c = &r->m->config;
    int dim_full = integer(r, "attention.key_length", 2, CLT_MAX_HEAD_DIM, -1),
        dim_value = integer(r, "attention.value_length", 2, CLT_MAX_HEAD_DIM, dim_full);
    int dim_sliding = integer(r, "attention.key_length_swa", 2, CLT_MAX_HEAD_DIM, dim_full);
    int value_sliding = integer(r, "attention.value_length_swa", 2, CLT_MAX_HEAD_DIM, dim_sliding);
    check_length(r, "attention.value_length", dim_value, dim_full, "the length of the keys");
    check_length(r, "attention.value_length_swa", value_sliding, dim_sliding, "the length of the keys");
    if (c->family == CLT_GEMMA3) check_length(r, "attention.key_length_swa", dim_sliding, dim_full, "as in full layers");
    for (int l = 0; l < c->layers && r->st == CLT_OK; l++) {
        clt_layer_config *lc = &c->layer[l];
        lc->head_dim = lc->sliding ? dim_sliding : dim_full;
        lc->heads = (int)integer_at(r, "attention.head_count", (uint64_t)l, 1, 65536, -1);
        lc->kv_heads = (int)integer_at(r, "attention.head_count_kv", (uint64_t)l, 1, 65536, lc->heads);
        lc->ffn = (int)integer_at(r, "feed_forward_length", (uint64_t)l, 1, CLT_MAX_WIDTH, -1);
    }
}

static void read_common(reader *r) {
    clt_config *c = &r->m->config;
    int layers = integer(r, "block_count", 1, CLT_MAX_LAYERS, -1);
    if (r->st == CLT_OK) r->st = clt_config_alloc(r->m, layers, r->err);
    c->width = integer(r, "embedding_length", 1, CLT_MAX_WIDTH, -1);
    c->context_limit = integer(r, "context_length", 1, CLT_MAX_CONTEXT, -1);
    c->window = integer(r, "attention.sliding_window", 1, CLT_MAX_CONTEXT, -1);
    c->rms_eps = (float)number(r, "attention.layer_norm_rms_epsilon", NAN);
    c->rope_theta_full = number(r, "rope.freq_base", 1e6);
    c->rope_theta_sliding = number(r, "rope.freq_base_swa", 1e4);
    c->final_softcap = (float)number(r, "final_logit_softcapping", 0);
    c->embed_scale = sqrtf((float)c->width);
    c->rope_divisor_full = 1;
    if (number(r, "attn_logit_softcapping", 0) != 0)
        r->st = clt_fail(r->err, CLT_E_UNSUPPORTED, "%s: attention softcapping is not part of any known Gemma 3 or 4",
                         clt_file_path(r->f));
}

/* rope_freqs.weight divides the frequencies of full layers: 1 for pairs that turn, 1e30 for those that do not. */
static void read_rope_pairs(reader *r, int head_dim_full) {
    clt_config *c = &r->m->config;
    const clt_tensor *t = clt_file_find(r->f, "rope_freqs.weight");
    c->rope_pairs_full = head_dim_full / 8;
    if (!t || r->st != CLT_OK) return;
    if (t->type != CLT_F32 || t->dims[0] != head_dim_full / 2 || clt_tensor_rows(t) != 1) {
        r->st = clt_fail(r->err, CLT_E_FILE, "%s: tensor rope_freqs.weight has %lld numbers of type %s, expected %d of F32",
                         clt_file_path(r->f), (long long)t->dims[0], clt_type_name((uint32_t)t->type), head_dim_full / 2);
        return;
    }
    int n = 0;
    for (int i = 0; i < head_dim_full / 2; i++) {
        float v;
        memcpy(&v, t->data + 4 * (size_t)i, sizeof v);
        if (v == 1.0f && n == i) n = i + 1;
        else if (!(v >= 1e20f)) {
            r->st = clt_fail(r->err, CLT_E_UNSUPPORTED,
                             "%s: tensor rope_freqs.weight holds %g at %d, expected 1 for turning "
                             "pairs, then 1e30",
                             clt_file_path(r->f), (double)v, i);
            return;
        }
    }
    c->rope_pairs_full = n;
}

/* What positions of full layers are divided by: 1, or the factor of linear scaling, which is also what a factor without a
 * type means. No Gemma 4 stretches its positions; a file that says so is not one that this arithmetic fits. */
static void read_scaling(reader *r) {
    char key[128], factor_key[128];
    const char *kind = "linear";
    uint64_t n = 6;
    bool gemma3 = r->m->config.family == CLT_GEMMA3;
    const clt_meta *type = find(r, "rope.scaling.type", key), *factor = find(r, "rope.scaling.factor", factor_key);
    if (!type && !factor) return;
    if (type && !clt_meta_str(type, &kind, &n)) bad(r, key, "is not a string");
    if (r->st != CLT_OK || (n == 4 && !memcmp(kind, "none", 4))) return;
    if (n != 6 || memcmp(kind, "linear", 6) != 0 || (!gemma3 && type)) {
        r->st = clt_fail(r->err, CLT_E_UNSUPPORTED, "%s: key %s is \"%.*s\", expected %s in a Gemma %d model",
                         clt_file_path(r->f), key, (int)(n < 40 ? n : 40), kind, gemma3 ? "linear" : "none", gemma3 ? 3 : 4);
        return;
    }
    double divisor = number(r, "rope.scaling.factor", NAN);
    if (gemma3) r->m->config.rope_divisor_full = (float)divisor;
    else if (r->st == CLT_OK && divisor != 1)
        r->st = clt_fail(r->err, CLT_E_UNSUPPORTED, "%s: key %s is %g, expected none in a Gemma 4 model",
                         clt_file_path(r->f), factor_key, divisor);
}

static void read_gemma4(reader *r) {
    clt_config *c = &r->m->config;
    read_pattern(r, 0);
    read_layers(r);
    c->attn_scale = 1;
    c->unified = c->width == 3840; /* no key says so; the one published size has this width */
    c->ple_dim = integer(r, "embedding_length_per_layer_input", 0, 65536, 0);
    c->picture_blocks = c->ple_dim == 0; /* no key for this either: sizes with per-layer embeddings are causal throughout */
    c->experts = integer(r, "expert_count", 0, CLT_MAX_EXPERTS, 0);
    c->experts_used = integer(r, "expert_used_count", 0, CLT_MAX_EXPERTS, 0);
    c->expert_ffn = integer(r, "expert_feed_forward_length", 0, CLT_MAX_WIDTH, 0);
    read_rope_pairs(r, integer(r, "attention.key_length", 2, CLT_MAX_HEAD_DIM, -1));
    int n_shared = integer(r, "attention.shared_kv_layers", 0, CLT_MAX_LAYERS, 0);
    read_scaling(r);
    if (r->st == CLT_OK) r->st = clt_config_share_kv(r->m, n_shared, r->err);
}

static void read_gemma3(reader *r) {
    clt_config *c = &r->m->config;
    read_pattern(r, 6);
    read_layers(r);
    if (r->st != CLT_OK) return;
    int dim = c->layer[0].head_dim; /* of all layers */
    /* The one published size with heads of 128 scales by D/H instead of Dh; no key says so. */
    c->attn_scale = 1.0f / sqrtf(dim == 128 ? (float)c->width / (float)c->layer[0].heads : (float)dim);
    c->rope_pairs_full = dim / 2;
    read_scaling(r);
    if (r->st == CLT_OK) r->st = clt_config_share_kv(r->m, 0, r->err);
}

static void read_generation(reader *r) {
    static const char *const end_keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                           "tokenizer.ggml.eom_token_id", "tokenizer.ggml.eos_token_ids"};
    clt_model *m = r->m;
    int64_t id;
    for (size_t k = 0; k < sizeof end_keys / sizeof *end_keys; k++) {
        const clt_meta *v = clt_file_meta_find(r->f, end_keys[k]);
        for (uint64_t i = 0; v && i < v->count && clt_meta_int(v, i, &id); i++) clt_model_add_end_id(m, id);
    }
    const clt_meta *s = clt_file_meta_find(r->f, "tokenizer.ggml.suppress_tokens");
    for (uint64_t i = 0; s && i < s->count && clt_meta_int(s, i, &id); i++) clt_model_add_suppressed_id(m, id);
    double v;
    const clt_meta *t = clt_file_meta_find(r->f, "general.sampling.temp"),
                   *k = clt_file_meta_find(r->f, "general.sampling.top_k"),
                   *p = clt_file_meta_find(r->f, "general.sampling.top_p");
    if (t && clt_meta_num(t, 0, &v) && v >= 0 && v <= 100) m->has_temperature = true, m->temperature = (float)v;
    if (k && clt_meta_int(k, 0, &id) && id >= 0 && id <= INT_MAX) m->has_top_k = true, m->top_k = (int)id;
    if (p && clt_meta_num(p, 0, &v) && v > 0 && v <= 1) m->has_top_p = true, m->top_p = (float)v;
}

static clt_status read_names(clt_model *m, clt_err *err) {
    static const char *const keys[] = {"general.finetune", "general.name", "general.basename"};
    const char *s;
    uint64_t n;
    m->name = "";
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (!text(m->file, keys[i], &s, &n)) continue;
        m->is_instruct_name |= clt_name_is_instruct(s, (size_t)n);
        if (i == 1) m->name = clt_arena_strndup(m->arena, s, (size_t)n);
    }
    if (!m->name) return clt_fail_memory(err, "the model's name", 64);
    if (text(m->file, "tokenizer.chat_template", &s, &n) && n) m->chat_template = s, m->chat_template_len = n;
    return CLT_OK;
}

static clt_status check_architecture(const clt_file *f, const char *arch, clt_err *err) {
    const char *path = clt_file_path(f);
    if (!strcmp(arch, "gemma3") || !strcmp(arch, "gemma4")) return CLT_OK;
    if (!strcmp(arch, "clip")) {
        clt_fail(err, CLT_E_UNSUPPORTED, "%s: is a vision or audio file (architecture \"clip\"), not a text model", path);
        return clt_hint(err, "give the text model with -m and this file with --mmproj");
    }
    if (clt_type_is_drafter(arch)) {
        clt_fail(err, CLT_E_UNSUPPORTED, "%s: is a drafter (architecture \"%s\"), not a text model", path, arch);
        return clt_hint(err, "give the target model with -m and this file with --model-draft");
    }
    clt_fail(err, CLT_E_UNSUPPORTED, "%s: architecture is \"%s\", expected \"gemma4\" or \"gemma3\"", path, arch);
    return clt_hint(err, "culet runs Gemma 4 and Gemma 3 text models only");
}

clt_status clt_config_from_gguf(clt_model *m, clt_err *err) {
    reader r = {.m = m, .f = m->file, .err = err, .st = CLT_OK};
    const char *arch;
    uint64_t n;
    if (!text(m->file, "general.architecture", &arch, &n))
        return clt_fail(err, CLT_E_FILE, "%s: key general.architecture is missing or not a string", clt_file_path(m->file));
    snprintf(r.arch, sizeof r.arch, "%.*s", (int)(n < 31 ? n : 31), arch);
    for (char *p = r.arch; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
    clt_status st = check_architecture(m->file, r.arch, err);
    if (st != CLT_OK) return st;
    m->config.family = strcmp(r.arch, "gemma3") ? CLT_GEMMA4 : CLT_GEMMA3;
    m->architecture = m->config.family == CLT_GEMMA3 ? "gemma3" : "gemma4";
    read_common(&r);
    if (r.st == CLT_OK && m->config.family == CLT_GEMMA4) read_gemma4(&r);
    else if (r.st == CLT_OK) read_gemma3(&r);
    if (r.st != CLT_OK) return r.st;
    read_generation(&r);
    return read_names(m, err);
}
