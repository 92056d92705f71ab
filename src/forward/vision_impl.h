/* What the files of the picture tower share. N patches, W width, H heads, Dh head width, F feed-forward width, D width of the
 * text model. */
#ifndef CLT_FORWARD_VISION_IMPL_H
#define CLT_FORWARD_VISION_IMPL_H
#include "forward/tower.h"
#include "forward/vision.h"

enum { CLT_VISION_SLAB = 512 /* patches that pass through a block together */, CLT_VISION_TILE = 30 /* queries of a task */ };

typedef struct clt_vision_net_layer {
    const float *attn_norm, *post_attn_norm, *ffn_norm, *post_ffn_norm; /* [W] */
    const float *q_norm, *k_norm;                                       /* [Dh] */
    clt_bounded q, k, v, o, gate, up, down;
} clt_vision_net_layer;

struct clt_vision {
    const clt_vision_model *model;
    const clt_vision_config *config;
    const clt_kernels *k;
    clt_pool *pool;
    clt_arena *arena;
    uint8_t *packed;
    size_t packed_bytes;
    clt_mat patch, projection;
    bool planar;                                    /* columns of `patch` run channel, row, column */
    const float *std_bias, *std_scale;              /* [W] */
    const float *patch_bias;                        /* unified, as the norms */
    float *norm[3], *norm_bias[3];
    float value[256];                               /* of a byte of a pixel */
    float *inv_freq;                                /* [Dh / 4] */
    clt_vision_net_layer *layer;
};

/* ---- vision_work.c: the working memory of one picture ---- */
typedef struct clt_vision_work {
    const clt_vision *v;
    clt_net net;           /* kernels and pool for s */
    clt_scratch s;         /* inputs of matrices */
    int columns, lines;    /* the grid of patches, or of merged patches (unified) */
    int n, slab, chunks;   /* columns * lines; rows of the buffers below; chunks of keys */
    uint8_t *memory;
    size_t bytes;
    float *x;              /* [N][W] residual stream */
    float *turns[2];       /* [columns], [lines][Dh / 2]: cos and sin of a half head at each coordinate */
    float *position[2];    /* [columns], [lines][W] */
    uint8_t *keys;         /* [H][chunks]{keys, values}: float32 chunks of the attention kernel */
    size_t chunk_bytes;    /* of one side of a chunk */
    /* of a slab */
    float *h, *q, *k, *att; /* [slab][W] */
    float *gate, *up;      /* [slab][F] */
    float *clamped;        /* [slab][larger of W and F] */
    float *patches;        /* [slab][columns of the patch matrix] */
    float *scores;         /* [threads][CLT_VISION_TILE][chunks * CLT_ATTN_CHUNK] */
} clt_vision_work;
/* width and height in pixels, multiples of patch * pool. */
clt_status clt_vision_work_create(const clt_vision *v, int width, int height, clt_vision_work **out, clt_err *err);
void clt_vision_work_free(clt_vision_work *w);

/* fn(ctx, row, thread) for rows [0, n). */
static inline void clt_vision_rows(clt_vision_work *w, clt_row_fn fn, void *ctx, int n) {
    clt_rows_run(&w->s, CLT_STAGE_ROWS, fn, ctx, n);
}

/* ---- vision_attend.c ---- */
/* Keys w->k and values w->att of n patches from `first`, as projected -> normed, turned and stored. */
void clt_vision_store(clt_vision_work *w, const clt_vision_net_layer *l, int first, int n);
/* Queries w->q of n patches from `first`, as projected -> w->att: softmax(q k) v over all patches. */
void clt_vision_attend(clt_vision_work *w, const clt_vision_net_layer *l, int first, int n);

/* ---- vision_norm.c: norms of the 12B's kind ---- */
/* x [rows][n] = (x - mean) / sqrt(variance + eps) * weight + bias, in place. */
void clt_vision_layer_norm(clt_vision_work *w, float *x, int rows, int64_t n, const float *weight, const float *bias);

#endif
