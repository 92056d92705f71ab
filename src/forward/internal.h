/* What the files of the forward pass share: packed layers, the rings of keys and values, and the working memory. */
#ifndef CLT_FORWARD_INTERNAL_H
#define CLT_FORWARD_INTERNAL_H
#include "forward/forward.h"

/* ---- net.c ---- */
typedef struct clt_expert { clt_mat gate, up, down; } clt_expert; /* [Fe, D], [Fe, D], [D, Fe] */

typedef struct clt_net_layer {
    clt_mat q, k, v, o, gate, up, down, ple_gate, ple_proj, router; /* rows == 0: the layer has none */
    clt_expert *experts;                                            /* [E] */
    const float *attn_norm, *q_norm, *k_norm, *post_attn_norm;      /* [D] [Dh] [Dh] [D] */
    const float *ffn_norm, *post_ffn_norm, *ple_norm;               /* [D] */
    const float *post_ffn_norm_1, *pre_ffn_norm_2, *post_ffn_norm_2;
    const float *router_scale;                                      /* [D], times D^-0.5 */
    const float *expert_scale;                                      /* [E] */
    float scalar;                                                   /* multiplies the residual stream at the end of the layer */
} clt_net_layer;

struct clt_net {
    const clt_model *model;
    const clt_config *config;
    const clt_kernels *k;
    clt_pool *pool;
    clt_arena *arena;
    const uint8_t *packed;  /* the matrices; own_packed, or the caller's */
    uint8_t *own_packed;
    size_t packed_bytes;
    clt_net_layer *layer;
    clt_mat output, ple_proj;
    const float *output_norm, *ple_proj_norm;
    const float *freq_sliding, *freq_full; /* [pairs] */
    int pairs_sliding, pairs_full, max_head_dim;
    int last_kv_layer;                     /* after its keys are stored, rows whose logits nobody wants are done */
};

/* ---- kv.c ---- */
typedef struct clt_kv_layer {
    uint8_t *data;      /* [chunks][kv_heads]{K chunk, V chunk} */
    size_t bytes;
    int chunks;         /* of the ring, or of the whole context */
    int kv_heads, head_dim;
    size_t k_bytes, v_bytes; /* of one chunk */
} clt_kv_layer;

struct clt_kv {
    const clt_model *model;
    clt_kv_types types;
    int context, length;
    int window;         /* 0: no sliding layer */
    int ring_chunks;
    int floor;          /* sliding layers hold nothing before this position */
    clt_kv_layer *layer; /* [L]; data NULL for layers that read another's */
};

/* The chunk of KV head h that holds absolute position chunk*64. */
clt_kv_chunk clt_kv_chunk_at(const clt_kv *kv, int layer, int chunk, int h);
/* Announces that positions up to `end` are about to be written. */
void clt_kv_reserve(clt_kv *kv, int end);

/* ---- scratch.c ---- */
/* How finely the input of quantised weights is rounded; linear.c says why there are two ways. */
typedef enum clt_precision { CLT_FLOATS /* no quantised weights */, CLT_COARSE, CLT_FINE } clt_precision;

typedef struct clt_group { clt_kv *kv; int first, count; } clt_group; /* active rows of one timeline */

/* Queries of one attention task: what the kernels take in one go. Chunks whose partial results are kept at a time in a decode step. */
enum { CLT_TILE_QUERIES = 30, CLT_WAVE_CHUNKS = 64 };
/* Rows that pass together over a panel; panels of one tile of paired results. */
enum { CLT_ROW_BLOCK = 128, CLT_PAIR_PANELS = 8 };

struct clt_scratch {
    const clt_net *net;
    int max_rows;
    uint8_t *memory;
    size_t bytes;
    /* active rows */
    int n, n_groups;
    atomic_bool unread;     /* a row of an embedding table could not be read */
    int *pos, *source;      /* [R] absolute position; index in the batch as it was given */
    int *block_end;         /* [R] first position that the row does not see on sliding layers */
    clt_group *group;       /* [R] */
    /* numbers */
    float *x, *h;           /* [R][D] residual stream; branch */
    float *q, *k, *v, *att; /* [R][max H*Dh], [R][max K*Dh] twice, [R][max H*Dh] */
    float *gate, *up;       /* [R][max F] */
    float *ple, *ple_ctx;   /* [R][L*P] */
    float *cs_sliding, *cs_full; /* [R][2*pairs], rows as given in the batch */
    clt_acts acts;          /* its q, d, sums are as large as any input of the net needs */
    clt_precision precision; /* of acts; CLT_FINE: two rows of q, d, sums for each row of x */
    float *pair_tile;       /* [threads][2 * CLT_ROW_BLOCK][CLT_PAIR_PANELS * CLT_PANEL] */
    float *tile;            /* [threads][3][tile queries][max Dh]: queries, sums, and one chunk's part of a tile */
    int *seen;              /* [threads][2][tile queries]: first slot of a chunk that a query sees, and the one behind the last */
    float *softmax;         /* [threads][4][tile queries]: largest score and sum of a tile, and of one chunk's part */
    float *partial;         /* [CLT_WAVE_CHUNKS][CLT_TILE_QUERIES][max Dh + 2] */
    int tile_queries;       /* rows of a tile times query heads per KV head, at most */
    /* experts; rows = R * experts_used */
    float *router, *eh, *egate, *eup, *eout; /* [R][E], [rows][D], [rows][Fe], [rows][Fe], [rows][D] */
    int *choice, *slot, *expert_first;       /* [R][k] expert; [R][k] its row below; [E + 1] first row of each expert */
    int *expert_met, n_met;                  /* [E] experts that have rows, ascending; how many */
    float *choice_weight;                    /* [R][k] */
    clt_probe_fn probe;
    void *probe_user;
    clt_observe_fn observe; /* NULL: nobody looks */
    void *observe_user;
    clt_profile *profile;   /* NULL: nobody counts */
};

/* profile.h's, for the pool and the profile of s. */
static inline void clt_run_job(clt_scratch *s, clt_stage stage, clt_task_fn fn, void *ctx, int n_tasks) {
    clt_profile_run(s->profile, stage, s->net->pool, fn, ctx, n_tasks);
}

/* ---- linear.c: matrices over the pool ---- */
typedef struct clt_linear { const clt_mat *w; float *y; int64_t ldy; } clt_linear;
/* CLT_FLOATS if none of the matrices (those without rows do not count) is quantised, else `wanted`. */
clt_precision clt_precision_for(const clt_mat *const *mats, int n, clt_precision wanted);
/* Makes x [n][ldx], K columns, the input of the next clt_linear_run. */
void clt_linear_input(clt_scratch *s, const float *x, int64_t ldx, int64_t cols, int n, clt_precision precision);
/* y = W x for up to 3 matrices that share the input. role: what for, told to the profile. */
void clt_linear_run(clt_scratch *s, clt_role role, const clt_linear *lin, int n_lin, int n);
void clt_linear_one(clt_scratch *s, clt_role role, const clt_mat *w, const float *x, int64_t ldx, int n, clt_precision precision, float *y,
                    int64_t ldy);
/* Columns of the 8-bit form: whole blocks. */
static inline int64_t clt_padded(int64_t cols) { return (cols + CLT_QBLOCK - 1) / CLT_QBLOCK * CLT_QBLOCK; }
/* Part of the input that begins at row r. */
clt_acts clt_acts_from(const clt_acts *a, int64_t r);

/* ---- observe.c: shows a product to whoever looks ---- */
void clt_observe_product(clt_scratch *s, const clt_mat *w, const float *x, int64_t ldx, float *y, int64_t ldy, int rows);
void clt_observe_expert(clt_scratch *s, int l, int e, const clt_mat *w, const float *x, float *y, int rows);

/* ---- rows.c: steps row by row ---- */
/* fn(ctx, row, thread) for rows [0, n), over the pool where that pays. */
typedef void (*clt_row_fn)(void *ctx, int row, int thread);
void clt_rows_run(clt_scratch *s, clt_stage stage, clt_row_fn fn, void *ctx, int n);
void clt_norm_rows(clt_scratch *s, const float *w); /* h = rms_w(x) of the active rows, w [D] */
void clt_join_rows(clt_scratch *s, const float *w); /* x += rms_w(h) */

/* ---- the blocks of a layer: each adds its branch to s->x ---- */
/* compact: once the keys of all rows are stored, only rows whose logits are wanted stay active (possibly none). */
void clt_attention(clt_scratch *s, int l, const clt_row *rows, bool compact); /* attention.c */
/* Keeps the active rows whose logits are wanted. */
void clt_keep_wanted(clt_scratch *s, const clt_row *rows);
void clt_attend(clt_scratch *s, int l);                                        /* attend.c: s->q -> s->att */
void clt_ffn_dense(clt_scratch *s, int l);                                     /* ffn.c */
void clt_ffn_experts(clt_scratch *s, int l);                                   /* moe.c */
void clt_dense_mlp(clt_scratch *s, int l, float *out);                         /* ffn.c: out [n][D] before the post norm */
void clt_ple_prepare(clt_scratch *s, const clt_row *rows);                     /* ple.c */
void clt_ple_apply(clt_scratch *s, int l);

#endif
