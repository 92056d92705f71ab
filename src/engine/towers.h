/* What an engine sees and hears with: where its towers lie, and the towers, loaded with the first picture or sound. */
#ifndef CLT_ENGINE_TOWERS_H
#define CLT_ENGINE_TOWERS_H
#include "engine/media.h"
#include "forward/audio.h"
#include "forward/vision.h"

typedef struct clt_towers clt_towers;

/* Finds and checks the towers: those of params->mmproj, else of a vision file beside the model, else of the model's own
 * folder. Reads no weights. A vision file that was named must fit; one that was found by itself and does not is a warning,
 * and the reason why later pictures are refused. */
clt_status clt_towers_open(culet_engine *e, const culet_engine_params *p, clt_err *err);
void clt_towers_free(clt_towers *t);       /* NULL is fine */
bool clt_towers_see(const clt_towers *t);  /* NULL: false */
bool clt_towers_hear(const clt_towers *t);
/* NULL where the model cannot see, or hear. */
const clt_vision_config *clt_towers_vision_config(const clt_towers *t);
const clt_audio_config *clt_towers_audio_config(const clt_towers *t);
/* CLT_E_UNSUPPORTED, with the reason: the model cannot see (hear). */
clt_status clt_towers_refuse(const culet_engine *e, culet_media_kind kind, clt_err *err);

clt_soft_cache *clt_towers_cache(clt_towers *t);

/* A call of these, and the layers in it, takes turns with the passes of sessions; it ends with CLT_E_CANCELLED soon after
 * clt_towers_cancel. The first one loads the tower. soft [tokens of the picture (sound)][width of the model]. */
clt_status clt_towers_see_picture(culet_engine *e, const uint8_t *rgb, int width, int height, float *soft, clt_err *err);
clt_status clt_towers_hear_sound(culet_engine *e, const float *x, int64_t frames, float *soft, clt_err *err);
void clt_towers_cancel(clt_towers *t);     /* async-signal-safe */

#endif
