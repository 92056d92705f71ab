/* Sound features -> soft tokens of the text model's width. The bits depend on the sound and the weights alone. */
#ifndef CLT_FORWARD_AUDIO_H
#define CLT_FORWARD_AUDIO_H
#include "base/pool.h"
#include "kernels/kernels.h"
#include "model/audio.h"

typedef struct clt_audio clt_audio; /* packed weights; immutable */
clt_status clt_audio_create(const clt_audio_model *m, const clt_kernels *k, clt_pool *pool, clt_audio **out, clt_err *err);
void clt_audio_free(clt_audio *a);
uint64_t clt_audio_bytes(const clt_audio *a);
uint64_t clt_audio_plan_bytes(const clt_audio_model *m);

/* Soft tokens that `frames` mel frames (conformer) or n samples (unified: frames = n samples) give. */
int64_t clt_audio_tokens(const clt_audio_config *c, int64_t frames);
/* Conformer: x [frames][bands] log-mel. Unified: x [frames] samples at 16 kHz. soft [clt_audio_tokens][D]. between as in
 * vision.h. */
clt_status clt_audio_run(const clt_audio *a, const float *x, int64_t frames, float *soft, bool (*between)(void *user),
                         void *user, clt_err *err);

/* Tests: stage "subsampled" (layer -1), "layer". */
typedef void (*clt_audio_probe)(void *user, const char *stage, int layer, const float *x, int64_t rows, int64_t width);
clt_status clt_audio_run_probed(const clt_audio *a, const float *x, int64_t frames, float *soft, clt_audio_probe probe,
                                void *user, clt_err *err);

#endif
