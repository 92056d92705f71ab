/* What the files of this room share: readers that fill a configuration, and the difference list. */
#ifndef CLT_MODEL_INTERNAL_H
#define CLT_MODEL_INTERNAL_H
#include "base/buf.h"
#include "model/model.h"

enum { CLT_MAX_LAYERS = 1024, CLT_MAX_WIDTH = 1 << 20, CLT_MAX_CONTEXT = 1 << 24, CLT_MAX_EXPERTS = 4096 };

/* config_gguf.c, config_hf.c: fill m->config (all but k_is_v and vocab of GGUF files; vocab 0 = as many as the embedding has
 * rows), architecture, name, generation defaults and the template. */
clt_status clt_config_from_gguf(clt_model *m, clt_err *err);
clt_status clt_config_from_hf(clt_model *m, clt_err *err);

/* config.c: what both forms have in common. */
clt_status clt_config_alloc(clt_model *m, int64_t layers, clt_err *err);
/* Which layers keep keys and values: the last n_shared read the last earlier layer of their own kind. */
clt_status clt_config_share_kv(clt_model *m, int64_t n_shared, clt_err *err);
clt_status clt_config_check(const clt_model *m, clt_err *err);
const char *clt_config_family_name(clt_model *m);
bool clt_name_is_instruct(const char *s, size_t len);
/* An architecture or model_type of a model that proposes tokens for a Gemma 4. */
bool clt_type_is_drafter(const char *type);
void clt_model_add_end_id(clt_model *m, int64_t id);
void clt_model_add_suppressed_id(clt_model *m, int64_t id);

/* bind.c */
clt_status clt_bind_tensors(clt_model *m, clt_err *err);

#endif
