/* The configuration of a sound tower, from config.json or from the metadata of a vision file. Shapes that neither states are
 * taken from the tensors and checked against the others by the binding. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "model/audio_impl.h"
#include "model/internal.h"

/* The window of attention. The reference works in chunks; the same as a plain window only for equal chunk and context. */
static void read_window(clt_tower_reader *r, clt_audio_config *c) {
    int chunk = clt_tower_integer(r, "attention_chunk_size", 1, INT_MAX / 4, 12);
    int left = clt_tower_integer(r, "attention_context_left", 1, INT_MAX / 4, 13);
    int right = clt_tower_integer(r, "attention_context_right", 0, INT_MAX / 4, 0);
    c->window = left - 1;
    if (chunk != c->window || right || c->window < 1 || c->window > CLT_AUDIO_WINDOW_MOST)
        clt_tower_unsupported(r, "a sound tower whose attention sees other than the last chunk of rows");
}

static void read_hf(clt_tower_reader *r, clt_audio_config *c) {
    size_t len = 4;
    const clt_json *channels = clt_json_get(r->json, "subsampling_conv_channels");
    const char *act = clt_json_str(clt_json_get(r->json, "hidden_act"), &len);
    c->layers = clt_tower_integer(r, "num_hidden_layers", 1, CLT_MAX_LAYERS, -1);
    c->width = clt_tower_integer(r, "hidden_size", 1, CLT_MAX_WIDTH / 4, -1);
    c->ffn = 4 * c->width;
    c->heads = clt_tower_integer(r, "num_attention_heads", 1, 65536, -1);
    c->conv_kernel = clt_tower_integer(r, "conv_kernel_size", 1, 64, 5);
    c->out_width = clt_tower_integer(r, "output_proj_dims", 1, CLT_MAX_WIDTH, 1536);
    for (size_t i = 0; i < 2; i++) {
        int64_t v = i ? 32 : 128;
        const clt_json *n = clt_json_at(channels, i);
        if (n && !clt_json_int(n, &v)) v = 0;
        if (v < 1 || v > 4096) clt_tower_bad(r, "subsampling_conv_channels", "is not a list of two numbers from 1 to 4096");
        c->channels[i] = (int)v;
    }
    c->rms_eps = (float)clt_tower_number(r, "rms_norm_eps", 0, 1, 1e-6);
    c->logit_cap = (float)clt_tower_number(r, "attention_logit_cap", 1e-3, 1e6, 50);
    c->residual_weight = (float)clt_tower_number(r, "residual_weight", 0, 1e3, 0.5);
    read_window(r, c);
    if (act && (len != 4 || memcmp(act, "silu", 4) != 0))
        clt_tower_unsupported(r, "a sound tower with another activation than silu");
}

static void read_gguf(clt_tower_reader *r, clt_audio_config *c) {
    const clt_tensor *conv0 = clt_file_find(r->f, "a.conv1d.0.weight"), *conv1 = clt_file_find(r->f, "a.conv1d.1.weight");
    const clt_tensor *out = clt_file_find(r->f, "a.pre_encode.out.weight");
    const clt_tensor *taps = clt_file_find(r->f, "a.blk.0.conv_dw.weight");
    c->layers = clt_tower_integer(r, "block_count", 1, CLT_MAX_LAYERS, -1);
    c->width = clt_tower_integer(r, "embedding_length", 1, CLT_MAX_WIDTH / 4, -1);
    c->ffn = clt_tower_integer(r, "feed_forward_length", 1, CLT_MAX_WIDTH, 4 * c->width);
    c->heads = clt_tower_integer(r, "attention.head_count", 1, 65536, -1);
    c->conv_kernel = taps && taps->dims[0] <= 64 ? (int)taps->dims[0] : 5;
    c->out_width = out && out->dims[1] <= CLT_MAX_WIDTH ? (int)out->dims[1] : 1536;
    c->channels[0] = conv0 && conv0->dims[3] <= 4096 ? (int)conv0->dims[3] : 128;
    c->channels[1] = conv1 && conv1->dims[3] <= 4096 ? (int)conv1->dims[3] : 32;
    c->window = 12, c->logit_cap = 50, c->residual_weight = 0.5f, c->rms_eps = 1e-6f; /* no key, or (eps) a wrong one */
    clt_tower_integer(r, "num_mel_bins", CLT_AUDIO_BANDS, CLT_AUDIO_BANDS, CLT_AUDIO_BANDS);
}

static clt_audio_kind kind_of(clt_tower_reader *r) {
    if (r->json) return clt_json_get(r->json, "audio_embed_dim") ? CLT_AUDIO_UNIFIED : CLT_AUDIO_CONFORMER;
    if (clt_tower_meta_is(r->f, "clip.audio.projector_type", "gemma4a")) return CLT_AUDIO_CONFORMER;
    if (clt_tower_meta_is(r->f, "clip.audio.projector_type", "gemma4ua")) return CLT_AUDIO_UNIFIED;
    clt_tower_unsupported(r, "a sound tower of another family: clip.audio.projector_type is neither gemma4a nor gemma4ua");
    return CLT_AUDIO_NONE;
}

clt_status clt_audio_config_read(const clt_file *f, clt_audio_config *c, clt_err *err) {
    clt_tower_reader r = clt_tower_reader_open(f, "audio_config", "clip.audio.", "sound tower", err);
    if (r.st != CLT_OK) return r.st;
    c->kind = kind_of(&r);
    if (c->kind == CLT_AUDIO_UNIFIED) {
        c->bands = clt_tower_integer(&r, r.json ? "audio_embed_dim" : "embedding_length", 1, CLT_MAX_WIDTH, -1);
        c->rms_eps = r.json ? (float)clt_tower_number(&r, "rms_norm_eps", 0, 1, 1e-6) : 1e-6f;
    } else if (c->kind == CLT_AUDIO_CONFORMER) {
        c->bands = CLT_AUDIO_BANDS;
        c->max_seconds = 30;
        if (r.json) read_hf(&r, c);
        else read_gguf(&r, c);
        if (r.st != CLT_OK) return r.st;
        const char *heads = r.json ? "num_attention_heads" : "attention.head_count";
        if (c->width % c->heads) clt_tower_bad(&r, heads, "does not divide the width");
        if (c->width % 2) clt_tower_bad(&r, r.json ? "hidden_size" : "embedding_length", "is odd");
        c->head_dim = c->width / c->heads;
    }
    return r.st;
}
