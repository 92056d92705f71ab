/* What the towers for pictures and sound share: packing their matrices, reading their vectors, multiplying within bounds. */
#ifndef CLT_FORWARD_TOWER_H
#define CLT_FORWARD_TOWER_H
#include "base/mem.h"
#include "forward/packing.h"
#include "model/tower.h"

/* y = clamp(W clamp(x)) */
typedef struct clt_bounded { clt_mat mat; const clt_tower_matrix *bounds; } clt_bounded;

/* Hands out parts of one block of working memory, 64-byte aligned; with base NULL it only adds up. */
typedef struct clt_cutter { uint8_t *base; size_t at; } clt_cutter;
void *clt_cut(clt_cutter *c, int64_t count, size_t size);

/* Adds a matrix (NULL: nothing) to a plan. */
void clt_tower_plan(clt_pack_plan *p, clt_mat *mat, const clt_tensor *t);
void clt_tower_plan_bounded(clt_pack_plan *p, clt_bounded *mat, const clt_tower_matrix *m);
/* Plans every matrix of a tower; tower NULL: they are only counted. */
typedef void (*clt_tower_list_fn)(clt_pack_plan *p, const void *model, void *tower);
/* Packs what list plans. *packed is freed with clt_pages_free, also after a failure. what: "the sound tower". */
clt_status clt_tower_pack(clt_tower_list_fn list, const void *model, void *tower, const clt_file *f, clt_pool *pool,
                          uint8_t **packed, size_t *bytes, const char *what, clt_err *err);
/* All numbers of a tensor (NULL: none), row after row, in the arena. Does nothing once *st is a failure. */
float *clt_tower_numbers(clt_arena *arena, const clt_file *f, const clt_tensor *t, clt_status *st);

/* A scratch of kernels and pool alone, whose matrices take up to n rows of `wide` columns, or 2 n of `fine`. */
void clt_tower_scratch(clt_scratch *s, clt_net *net, int64_t n, int64_t fine, int64_t wide, clt_cutter *m);
/* y [n][rows] = clamp(W clamp(x [n][cols])); clamped [n][cols] serves the work. */
void clt_tower_multiply(clt_scratch *s, clt_role role, const clt_bounded *m, const float *x, int n, float *clamped,
                        float *y);

#endif
