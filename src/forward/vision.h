/* A resized picture -> soft tokens of the text model's width.
 *
 * The bits of a soft token depend on the picture and the weights alone: not on threads or CPU. */
#ifndef CLT_FORWARD_VISION_H
#define CLT_FORWARD_VISION_H
#include <stdatomic.h>
#include "base/pool.h"
#include "kernels/kernels.h"
#include "model/vision.h"

typedef struct clt_vision clt_vision; /* packed weights; immutable */
/* The model must outlive it; its file's pages are let go. */
clt_status clt_vision_create(const clt_vision_model *m, const clt_kernels *k, clt_pool *pool, clt_vision **out, clt_err *err);
void clt_vision_free(clt_vision *v);
uint64_t clt_vision_bytes(const clt_vision *v);                    /* packed weights */
uint64_t clt_vision_plan_bytes(const clt_vision_model *m);         /* the same, before creating */

/* rgb [height][width][3], sides multiples of patch * pool. soft: [height/unit * width/unit][D]. between (may be NULL) is called
 * between layers, while no job runs on the pool: others may use it then; false cancels (CLT_E_CANCELLED). */
clt_status clt_vision_run(const clt_vision *v, const uint8_t *rgb, int width, int height, float *soft,
                          bool (*between)(void *user), void *user, clt_err *err);

/* Tests: every state, x [rows][width]; stage "embed" (layer -1), "layer"; "pool" (after scaling, before standardising) and
 * "encoder", soft tokens from number `layer` on. */
typedef void (*clt_vision_probe)(void *user, const char *stage, int layer, const float *x, int64_t rows, int64_t width);
clt_status clt_vision_run_probed(const clt_vision *v, const uint8_t *rgb, int width, int height, float *soft,
                                 clt_vision_probe probe, void *user, clt_err *err);

#endif
