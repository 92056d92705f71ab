/* The configuration of a sound tower, from config.json or from the metadata of a vision file. Shapes that neither states are
 * taken from the tensors and checked against the others by the binding. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "model/audio_impl.h"
#include "model/internal.h"

typedef struct reader {
    const clt_file *f;
    const clt_json *json; /* HF: the object that describes the tower */
    clt_err *err;
    clt_status st;        /* the first failure; later reads do nothing */
} reader;

static void bad(reader *r, const char *key, const char *what) {
    const char *where = r->json ? "/config.json" : "", *prefix = r->json ? "audio_config." : "clip.audio.";
    if (r->st == CLT_OK)
        r->st = clt_fail(r->err, CLT_E_FILE, "%s%s: key %s%s %s", clt_file_path(r->f), where, prefix, key, what);
}

/* False: absent. */
static bool find_number(reader *r, const char *key, double *v) {
    char name[96];
    if (r->json) {
        const clt_json *n = clt_json_get(r->json, key);
        if (clt_json_kind(n) == CLT_JSON_NULL) return false;
        if (!clt_json_num(n, v)) bad(r, key, "is not a number");
        return true;
    }
    snprintf(name, sizeof name, "clip.audio.%s", key);
    const clt_meta *m = clt_file_meta_find(r->f, name);
    if (m && !clt_meta_num(m, 0, v)) bad(r, key, "is not a number");
    return m != NULL;
}

/* A number in [min, max]; fallback < 0: required. */
static double number(reader *r, const char *key, double min, double max, double fallback) {
    double v = fallback;
    char what[128];
    if (!find_number(r, key, &v)) {
        if (fallback < 0) bad(r, key, "is missing");
        return fallback;
    }
    if (!(v >= min && v <= max)) {
        snprintf(what, sizeof what, "is %g, expected %g to %g", v, min, max);
        bad(r, key, what);
    }
    return r->st == CLT_OK ? v : min;
}

static int integer(reader *r, const char *key, int min, int max, int fallback) {
    double v = number(r, key, min, max, fallback);
    if (r->st == CLT_OK && v != (double)(int)v) bad(r, key, "is not a whole number");
    return r->st == CLT_OK ? (int)v : min;
}

static void unsupported(reader *r, const char *what) {
    if (r->st == CLT_OK) r->st = clt_fail(r->err, CLT_E_UNSUPPORTED, "%s: %s", clt_file_path(r->f), what);
}

/* The window of attention. The reference works in chunks; the same as a plain window only for equal chunk and context. */
static void read_window(reader *r, clt_audio_config *c) {
    int chunk = integer(r, "attention_chunk_size", 1, INT_MAX / 4, 12);
    int left = integer(r, "attention_context_left", 1, INT_MAX / 4, 13);
    int right = integer(r, "attention_context_right", 0, INT_MAX / 4, 0);
    c->window = left - 1;
    if (chunk != c->window || right || c->window < 1 || c->window > CLT_AUDIO_WINDOW_MOST)
        unsupported(r, "a sound tower whose attention sees other than the last chunk of rows");
}

static void read_hf(reader *r, clt_audio_config *c) {
    size_t len = 4;
    const clt_json *channels = clt_json_get(r->json, "subsampling_conv_channels");
    const char *act = clt_json_str(clt_json_get(r->json, "hidden_act"), &len);
    c->layers = integer(r, "num_hidden_layers", 1, CLT_MAX_LAYERS, -1);
    c->width = integer(r, "hidden_size", 1, CLT_MAX_WIDTH / 4, -1);
    c->ffn = 4 * c->width;
    c->heads = integer(r, "num_attention_heads", 1, 65536, -1);
    c->conv_kernel = integer(r, "conv_kernel_size", 1, 64, 5);
    c->out_width = integer(r, "output_proj_dims", 1, CLT_MAX_WIDTH, 1536);
    for (size_t i = 0; i < 2; i++) {
        int64_t v = i ? 32 : 128;
        const clt_json *n = clt_json_at(channels, i);
        if (n && !clt_json_int(n, &v)) v = 0;
        if (v < 1 || v > 4096) bad(r, "subsampling_conv_channels", "is not a list of two numbers from 1 to 4096");
        c->channels[i] = (int)v;
    }
    c->rms_eps = (float)number(r, "rms_norm_eps", 0, 1, 1e-6);
    c->logit_cap = (float)number(r, "attention_logit_cap", 1e-3, 1e6, 50);
    c->residual_weight = (float)number(r, "residual_weight", 0, 1e3, 0.5);
    read_window(r, c);
    if (act && (len != 4 || memcmp(act, "silu", 4) != 0)) unsupported(r, "a sound tower with another activation than silu");
}

static void read_gguf(reader *r, clt_audio_config *c) {
    const clt_tensor *conv0 = clt_file_find(r->f, "a.conv1d.0.weight"), *conv1 = clt_file_find(r->f, "a.conv1d.1.weight");
    const clt_tensor *out = clt_file_find(r->f, "a.pre_encode.out.weight");
    const clt_tensor *taps = clt_file_find(r->f, "a.blk.0.conv_dw.weight");
    c->layers = integer(r, "block_count", 1, CLT_MAX_LAYERS, -1);
    c->width = integer(r, "embedding_length", 1, CLT_MAX_WIDTH / 4, -1);
    c->ffn = integer(r, "feed_forward_length", 1, CLT_MAX_WIDTH, 4 * c->width);
    c->heads = integer(r, "attention.head_count", 1, 65536, -1);
    c->conv_kernel = taps && taps->dims[0] <= 64 ? (int)taps->dims[0] : 5;
    c->out_width = out && out->dims[1] <= CLT_MAX_WIDTH ? (int)out->dims[1] : 1536;
    c->channels[0] = conv0 && conv0->dims[3] <= 4096 ? (int)conv0->dims[3] : 128;
    c->channels[1] = conv1 && conv1->dims[3] <= 4096 ? (int)conv1->dims[3] : 32;
    c->window = 12, c->logit_cap = 50, c->residual_weight = 0.5f, c->rms_eps = 1e-6f; /* no key, or (eps) a wrong one */
    integer(r, "num_mel_bins", CLT_AUDIO_BANDS, CLT_AUDIO_BANDS, CLT_AUDIO_BANDS);
}

static bool is_type(const clt_file *f, const char *key, const char *expected) {
    const char *s;
    uint64_t len;
    const clt_meta *m = clt_file_meta_find(f, key);
    return m && clt_meta_str(m, &s, &len) && len == strlen(expected) && memcmp(s, expected, len) == 0;
}

static clt_audio_kind kind_of(reader *r) {
    if (r->json) return clt_json_get(r->json, "audio_embed_dim") ? CLT_AUDIO_UNIFIED : CLT_AUDIO_CONFORMER;
    if (is_type(r->f, "clip.audio.projector_type", "gemma4a")) return CLT_AUDIO_CONFORMER;
    if (is_type(r->f, "clip.audio.projector_type", "gemma4ua")) return CLT_AUDIO_UNIFIED;
    unsupported(r, "a sound tower of another family: clip.audio.projector_type is neither gemma4a nor gemma4ua");
    return CLT_AUDIO_NONE;
}

clt_status clt_audio_config_read(const clt_file *f, clt_audio_config *c, clt_err *err) {
    reader r = {.f = f, .err = err, .st = CLT_OK};
    if (clt_file_get_kind(f) == CLT_FILE_HF) {
        r.json = clt_json_get(clt_file_json(f, "config.json"), "audio_config");
        if (clt_json_kind(r.json) != CLT_JSON_OBJECT)
            return clt_fail(err, CLT_E_FILE, "%s/config.json: audio_config is missing, but there is a sound tower",
                            clt_file_path(f));
    }
    c->kind = kind_of(&r);
    if (c->kind == CLT_AUDIO_UNIFIED) {
        c->bands = integer(&r, r.json ? "audio_embed_dim" : "embedding_length", 1, CLT_MAX_WIDTH, -1);
        c->rms_eps = r.json ? (float)number(&r, "rms_norm_eps", 0, 1, 1e-6) : 1e-6f;
    } else if (c->kind == CLT_AUDIO_CONFORMER) {
        c->bands = CLT_AUDIO_BANDS;
        c->max_seconds = 30;
        if (r.json) read_hf(&r, c);
        else read_gguf(&r, c);
        if (r.st != CLT_OK) return r.st;
        const char *heads = r.json ? "num_attention_heads" : "attention.head_count";
        if (c->width % c->heads) bad(&r, heads, "does not divide the width");
        if (c->width % 2) bad(&r, r.json ? "hidden_size" : "embedding_length", "is odd");
        c->head_dim = c->width / c->heads;
    }
    return r.st;
}
