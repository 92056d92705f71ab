/* Named tensors -> a checked picture tower, of the model's own folder or of a vision file (GGUF, architecture "clip").
 *
 * Two kinds: an encoder with 2-D positions and pooling (E2B, E4B, 26B, 31B), and the 12B's projection of merged patches.
 * Points into its clt_file, which must outlive it. Immutable after binding. */
#ifndef CLT_MODEL_VISION_H
#define CLT_MODEL_VISION_H
#include "model/tower.h"

typedef enum clt_vision_kind { CLT_VISION_NONE, CLT_VISION_ENCODER, CLT_VISION_UNIFIED } clt_vision_kind;

typedef struct clt_vision_config {
    clt_vision_kind kind;
    int patch, pool;       /* pixels; patches: a soft token covers (patch * pool)^2 pixels */
    int layers, width, ffn, heads, head_dim; /* of the encoder */
    int positions;         /* rows of each plane of the position table */
    double rope_theta;
    float rms_eps, norm_eps; /* norm_eps: LayerNorm of the unified kind */
    bool standardise;      /* (p - std_bias) * std_scale after pooling */
    bool planar;           /* columns of the patch matrix run channel, row, column (GGUF), not row, column, channel */
    int text_width;        /* D of the text model that the soft tokens are for */
    int default_tokens;    /* budget for a picture: 280 unless the file says otherwise */
} clt_vision_config;

typedef struct clt_vision_layer {
    const clt_tensor *attn_norm, *post_attn_norm, *ffn_norm, *post_ffn_norm, *q_norm, *k_norm;
    clt_tower_matrix q, k, v, o, gate, up, down;
} clt_vision_layer;

typedef struct clt_vision_model {
    const clt_file *file;
    clt_vision_config config;
    const clt_tensor *patch, *patch_bias;              /* [width, side^2 * 3], side: of a patch, or of pool x pool (unified) */
    const clt_tensor *position;                        /* rows of both planes; clt_vision_position_row says which is where */
    const clt_tensor *std_bias, *std_scale;            /* [width] */
    const clt_tensor *norm[3], *norm_bias[3];          /* unified: LayerNorms around patch and position */
    const clt_tensor *projection;                      /* [D, width] */
    clt_vision_layer *layer;                           /* [layers] */
    clt_arena *arena;
} clt_vision_model;

/* Row of m->position for coordinate `at` (column for plane 0, row for plane 1). */
int64_t clt_vision_position_row(const clt_vision_model *m, int plane, int at);

/* Whether f holds a picture tower at all (config.kind would not be NONE); cheap. */
bool clt_vision_present(const clt_file *f);
/* text: the model that the soft tokens are for. CLT_E_FILE: missing or misshapen tensors, all listed, or a file for a model
 * of another width (both widths and files named); CLT_E_UNSUPPORTED: no picture tower in f, or one of another family. */
clt_status clt_vision_bind(const clt_file *f, const clt_model *text, clt_vision_model *out, clt_err *err);
/* The same; listener, if not NULL, hears of the tensors. */
clt_status clt_vision_bind_heard(const clt_file *f, const clt_model *text, const clt_tower_listener *listener,
                                 clt_vision_model *out, clt_err *err);
void clt_vision_model_free(clt_vision_model *m);

#endif
