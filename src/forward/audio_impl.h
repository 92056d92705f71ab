/* What the files of the sound tower share. T rows (tokens), W width, H heads, Dh head width. */
#ifndef CLT_FORWARD_AUDIO_IMPL_H
#define CLT_FORWARD_AUDIO_IMPL_H
#include "forward/audio.h"
#include "forward/tower.h"

typedef struct clt_audio_conv {
    clt_mat mat;       /* [channels out, 3 steps * 3 places * channels in], floats */
    const float *norm; /* [channels out] */
} clt_audio_conv;

typedef struct clt_audio_net_layer {
    const float *ffn_norm[2], *ffn_post_norm[2], *attn_norm, *attn_post_norm; /* [W], all of them */
    const float *out_norm, *conv_pre_norm, *conv_norm;
    clt_bounded ffn_up[2], ffn_down[2], q, k, v, post, conv_start, conv_end;
    clt_mat relative_k;
    const float *per_dim; /* [Dh]: what queries are multiplied by */
    const float *rel;     /* [window][W]: keys of distances 0, 1, … */
    const float *taps;    /* [kernel][W] of the depthwise convolution */
} clt_audio_net_layer;

struct clt_audio {
    const clt_audio_model *model;
    const clt_audio_config *config;
    const clt_kernels *k;
    clt_pool *pool;
    clt_arena *arena;
    uint8_t *packed;
    size_t packed_bytes;
    clt_audio_conv conv[2];
    clt_mat input_proj, output_proj, projection;
    const float *output_bias; /* [out_width] */
    float key_scale;
    clt_audio_net_layer *layer;
};

/* ---- audio_work.c: the working memory of one clip ---- */
typedef struct clt_audio_work {
    const clt_audio *a;
    clt_net net;         /* kernels and pool for s */
    clt_scratch s;       /* inputs of matrices */
    int n;               /* rows */
    uint8_t *memory;
    size_t bytes;
    float *x, *h;        /* [n][W] residual stream; branch */
    float *q, *k, *v, *att; /* [n][W] */
    float *wide;         /* [n][the widest of ffn, 2W, flat, out_width]: hidden numbers; what sub-sampling gives */
    float *clamped;      /* like wide */
    float *subsample;
} clt_audio_work;
clt_status clt_audio_work_create(const clt_audio *a, int64_t n, clt_audio_work **out, clt_err *err);
void clt_audio_work_free(clt_audio_work *w);
/* y [n][rows] = clamp(W clamp(x [n][cols])) */
void clt_audio_multiply(clt_audio_work *w, clt_role role, const clt_bounded *m, const float *x, float *y);
/* fn(ctx, row, thread) for every row. */
void clt_audio_rows(clt_audio_work *w, clt_row_fn fn, void *ctx);
/* Columns of input_proj: frequencies times channels that sub-sampling leaves. */
int64_t clt_audio_flat(const clt_audio_config *c);

/* ---- audio_subsample.c ---- */
/* weights [out][in][3][3] as in the file; false: no memory. */
bool clt_audio_pack_conv(clt_audio *a, int stage, const float *weights);
int64_t clt_audio_subsample_work(const clt_audio *a); /* floats */
/* mel [frames][bands] -> out [tokens][flat] */
void clt_audio_subsample(const clt_audio *a, const float *mel, int64_t frames, float *work, float *out);

/* ---- audio_attend.c ---- */
/* w->q, w->k, w->v as projected -> w->att; scales q and k in place. */
void clt_audio_attend(clt_audio_work *w, const clt_audio_net_layer *l);

#endif
