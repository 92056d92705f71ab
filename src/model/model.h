/* Named tensors -> a checked Gemma: configuration, the table of names, and a binding of roles to tensors. No arithmetic.
 *
 * Everything is read from the file; no list of sizes exists. A model that is not exactly understood is refused with the list
 * of differences. A bound model points into its clt_file, which must outlive it. Immutable after clt_model_bind. */
#ifndef CLT_MODEL_MODEL_H
#define CLT_MODEL_MODEL_H
#include <stdbool.h>
#include "base/err.h"
#include "base/mem.h"
#include "file/file.h"

enum { CLT_MAX_HEAD_DIM = 4096 };

typedef enum clt_family { CLT_GEMMA3, CLT_GEMMA4 } clt_family;

/* What one layer is made of. */
typedef struct clt_layer_config {
    bool sliding;          /* sees only the last `window` positions, itself included */
    bool own_kv;           /* false: reads keys and values of layer `kv_donor` */
    int kv_donor;          /* own index if own_kv */
    int heads, kv_heads;   /* H, K: query head j uses KV head j / (H/K) */
    int head_dim;          /* Dh */
    bool k_is_v;           /* full layers of large models: values are the raw key projection */
    int ffn;               /* F */
} clt_layer_config;

typedef struct clt_config {
    clt_family family;
    int layers, width;             /* L, D */
    int vocab;                     /* V: rows of the embedding table */
    int context_limit;             /* tokens */
    int window;                    /* sliding layers: position j is visible from i iff j <= i and i - j < window */
    float rms_eps;
    float attn_scale;              /* 1 for Gemma 4; query_pre_attn_scalar^-0.5 for Gemma 3 */
    float final_softcap;           /* 0 = none */
    float embed_scale;             /* sqrt(D) */
    double rope_theta_sliding, rope_theta_full;
    int rope_pairs_full;           /* rotated pairs of a full layer's head: Dh/2, or a quarter of it (proportional rope) */
    float rope_divisor_full;       /* linear scaling of positions on full layers (Gemma 3 4B and up: 8), else 1 */
    bool picture_blocks;           /* tokens of one picture see each other on sliding layers */
    int ple_dim;                   /* width of per-layer embeddings, 0 = none */
    int experts, experts_used, expert_ffn; /* 0 = dense */
    bool unified;                  /* the 12B: pictures and sound enter without an encoder */
    clt_layer_config *layer;       /* [L] */
} clt_config;

/* Role -> tensor; NULL where the model has none. Shapes are checked: [rows, cols] below is [out, in]. */
typedef struct clt_layer_tensors {
    const clt_tensor *attn_norm, *q, *k, *v, *o, *q_norm, *k_norm,
        *post_attn_norm;   /* q [H*Dh, D], k v [K*Dh, D], o [D, H*Dh] */
    const clt_tensor *qkv; /* fused form: [(H+2K)*Dh, D]; then q k v are NULL */
    const clt_tensor *ffn_norm, *gate, *up, *down, *post_ffn_norm;                   /* gate up [F, D], down [D, F] */
    const clt_tensor *ple_gate, *ple_proj, *ple_norm;                                /* [P, D], [D, P], [D] */
    const clt_tensor *scalar;                                                        /* [1] */
    const clt_tensor *router, *router_scale, *expert_scale;                          /* [E, D], [D], [E] */
    const clt_tensor *gate_up_exps, *gate_exps, *up_exps, *down_exps; /* [E, 2Fe, D] or two [E, Fe, D]; [E, D, Fe] */
    const clt_tensor *post_ffn_norm_1, *pre_ffn_norm_2, *post_ffn_norm_2;
} clt_layer_tensors;

typedef struct clt_model {
    const clt_file *file;
    clt_config config;
    const clt_tensor *embed, *output;      /* [V, D]; output == embed if tied */
    const clt_tensor *output_norm;
    const clt_tensor *ple_embed, *ple_proj, *ple_proj_norm; /* [Vp, L*P], [L*P, D], [P] */
    clt_layer_tensors *layer;              /* [L] */
    bool norm_plus_one;                    /* norms are stored minus one (HF Gemma 3) */
    const char *architecture, *name, *family_name;
    uint64_t parameters;
    bool is_instruct_name;                 /* the file's name or finetune keys say it/instruct */
    /* From the generation config; n = 0 where the file has none. */
    int32_t end_ids[16]; int n_end_ids;
    int32_t suppressed_ids[64]; int n_suppressed_ids;
    bool has_temperature, has_top_k, has_top_p;
    float temperature, top_p; int top_k;
    const char *chat_template; uint64_t chat_template_len; /* NULL if the file has none */
    clt_arena *arena;
} clt_model;

/* Reads configuration and tensors. CLT_E_FILE: missing, extra or misshapen tensors, all of them listed, contradictory keys;
 * CLT_E_UNSUPPORTED: another architecture (named), a drafter or a vision file given as a text model. */
clt_status clt_model_bind(const clt_file *f, clt_model *out, clt_err *err);
void clt_model_free(clt_model *m);

/* The GGUF name of a tensor of a folder's text model or drafter, by the table that binds both; false if it has none. */
bool clt_name_to_gguf(const char *hf, char *out, size_t size);
/* Whether a name of a folder belongs to no text model: towers, cached tables. */
bool clt_name_is_elsewhere(const char *hf);

#endif
