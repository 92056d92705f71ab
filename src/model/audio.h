/* Named tensors -> a checked sound tower, of the model's own folder or of a vision file (GGUF, architecture "clip").
 *
 * Two kinds: the conformer (E2B, E4B), and the 12B's projection of raw frames. Points into its clt_file, which must outlive
 * it. Immutable after binding. */
#ifndef CLT_MODEL_AUDIO_H
#define CLT_MODEL_AUDIO_H
#include "model/tower.h"

enum { CLT_AUDIO_WINDOW_MOST = 64 };
typedef enum clt_audio_kind { CLT_AUDIO_NONE, CLT_AUDIO_CONFORMER, CLT_AUDIO_UNIFIED } clt_audio_kind;

typedef struct clt_audio_config {
    clt_audio_kind kind;
    int layers, width, ffn, heads, head_dim;
    int window;             /* positions that a query sees, itself included: 12 */
    int conv_kernel;        /* of the depthwise convolution */
    int channels[2];        /* of the two sub-sampling convolutions */
    int bands;              /* mel bands, or samples of a raw frame */
    int out_width;          /* of output_proj */
    float rms_eps;          /* of the sub-sampling, the convolutions and the norm before the projection; 1e-6 elsewhere */
    float logit_cap;
    float residual_weight;  /* of the feed-forwards: a half */
    double max_seconds;     /* of one clip; 0 = only the context limits it */
    int text_width;         /* D */
} clt_audio_config;

typedef struct clt_audio_layer {
    const clt_tensor *ffn_norm[2], *ffn_post_norm[2];
    clt_tower_matrix ffn_up[2], ffn_down[2];
    const clt_tensor *attn_norm, *attn_post_norm, *out_norm, *per_dim_scale;
    clt_tower_matrix q, k, v, post;
    const clt_tensor *relative_k;
    const clt_tensor *conv_pre_norm, *conv_norm, *depthwise;
    clt_tower_matrix conv_start, conv_end;
} clt_audio_layer;

typedef struct clt_audio_model {
    const clt_file *file;
    clt_audio_config config;
    const clt_tensor *conv[2], *conv_norm[2], *input_proj; /* sub-sampling */
    const clt_tensor *output_proj, *output_bias;
    const clt_tensor *projection;                          /* [D, out_width or samples] */
    bool scale_is_softplus;                                /* per_dim_scale holds softplus of itself already (GGUF) */
    clt_audio_layer *layer;                                /* [layers] */
    clt_arena *arena;
} clt_audio_model;

bool clt_audio_present(const clt_file *f);
/* Errors as clt_vision_bind. */
clt_status clt_audio_bind(const clt_file *f, const clt_model *text, clt_audio_model *out, clt_err *err);
/* The same; listener, if not NULL, hears of the tensors. */
clt_status clt_audio_bind_heard(const clt_file *f, const clt_model *text, const clt_tower_listener *listener,
                                clt_audio_model *out, clt_err *err);
void clt_audio_model_free(clt_audio_model *m);

#endif
