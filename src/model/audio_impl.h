/* What the files that bind a sound tower share. */
#ifndef CLT_MODEL_AUDIO_IMPL_H
#define CLT_MODEL_AUDIO_IMPL_H
#include "model/audio.h"

enum { CLT_AUDIO_BANDS = 128 }; /* mel bands that every conformer of the family hears */

/* Everything but text_width. */
clt_status clt_audio_config_read(const clt_file *f, clt_audio_config *c, clt_err *err);

#endif
