/* ids -> logits: the forward pass of every text member of the family.
 *
 * A clt_net holds packed weights (immutable, shared). A clt_kv holds one timeline's keys and values. A clt_scratch holds the
 * working memory of one caller. clt_forward evaluates a batch of rows; the bits of a row depend on nothing but its own
 * timeline (numerical contract, N1-N3). */
#ifndef CLT_FORWARD_FORWARD_H
#define CLT_FORWARD_FORWARD_H
#include <stdatomic.h>
#include "base/pool.h"
#include "forward/observe.h"
#include "forward/profile.h"
#include "kernels/kernels.h"
#include "model/model.h"

/* ---- weights ---- */
typedef struct clt_net clt_net;
/* Packs the weights of a bound model, with all threads of the pool; the source pages are released as they are consumed.
 * progress may be NULL; false cancels (CLT_E_CANCELLED). The model must outlive the net. */
clt_status clt_net_create(const clt_model *m, const clt_kernels *k, clt_pool *pool,
                          bool (*progress)(void *user, double done), void *user, clt_net **out, clt_err *err);
/* The same from weights that were packed before: plan_bytes of them, 64-byte aligned, laid out as layout_digest says. They
 * stay the caller's and must outlive the net. */
clt_status clt_net_create_packed(const clt_model *m, const clt_kernels *k, clt_pool *pool, const uint8_t *packed,
                                 clt_net **out, clt_err *err);
void clt_net_free(clt_net *n);
const uint8_t *clt_net_packed(const clt_net *n);          /* [bytes] */
uint64_t clt_net_bytes(const clt_net *n);                 /* packed weights, private memory */
uint64_t clt_net_plan_bytes(const clt_model *m);          /* the same, before creating */

/* Of everything that decides which byte lies where: equal digests, equal layouts, also between versions of this program. */
uint64_t clt_net_layout_digest(const clt_model *m);

/* ---- keys and values ---- */
typedef struct clt_kv clt_kv;
/* Sliding layers keep a ring that holds the window and the largest batch (`max_rows`) plus the slack for drafts; full layers
 * keep `context` positions; layers without own keys keep nothing. k_type, v_type: CLT_F32, CLT_F16 or CLT_Q8_0. */
clt_status clt_kv_create(const clt_model *m, int context, int max_rows, clt_type k_type, clt_type v_type, clt_kv **out,
                         clt_err *err);
void clt_kv_free(clt_kv *kv);
uint64_t clt_kv_bytes(const clt_kv *kv);
uint64_t clt_kv_plan_bytes(const clt_model *m, int context, int max_rows, clt_type k_type, clt_type v_type);
int clt_kv_length(const clt_kv *kv);                      /* positions evaluated */
/* Cuts to n positions if the rings still hold what position n needs; else returns false and changes nothing. */
bool clt_kv_rewind(clt_kv *kv, int n);
/* Smallest n that clt_kv_rewind accepts now. */
int clt_kv_rewind_min(const clt_kv *kv);
/* All stored keys and values that a continuation can read, as bytes, for saved sessions. Import needs a kv created with
 * equal types and context >= length; lengths are checked against expected sizes. */
uint64_t clt_kv_export_bytes(const clt_kv *kv);
void clt_kv_export(const clt_kv *kv, uint8_t *dst);
clt_status clt_kv_import(clt_kv *kv, int length, const uint8_t *src, uint64_t bytes, clt_err *err);

/* ---- evaluation ---- */
typedef struct clt_scratch clt_scratch;
clt_status clt_scratch_create(const clt_net *n, int max_rows, clt_scratch **out, clt_err *err);
void clt_scratch_free(clt_scratch *s);
uint64_t clt_scratch_bytes(const clt_scratch *s);
uint64_t clt_scratch_plan_bytes(const clt_model *m, int max_rows, int threads);

/* One row of a batch. Rows of one kv must be consecutive and in ascending position, starting at clt_kv_length(kv). */
typedef struct clt_row {
    clt_kv *kv;
    int32_t id;
    bool want_logits;
    const float *soft; /* [D]: stands in for the scaled embedding of id (id then serves per-layer embeddings alone); or NULL */
    int block_end;     /* rows of a block see each other on sliding layers: the position behind its last row, which must be
                        * in the same batch; 0 = the row sees nothing behind itself */
} clt_row;
/* Evaluates n rows (1..max_rows) and appends them to their timelines. logits: [number of wanted rows][V] after softcap, in
 * row order. ids must be in [0, V). When *cancel (may be NULL) becomes nonzero the pass ends with CLT_E_CANCELLED between
 * layers, and no timeline has grown. */
clt_status clt_forward(const clt_net *net, clt_scratch *s, const clt_row *rows, int n, float *logits,
                       const atomic_int *cancel, clt_err *err);

/* Debugging and tests: called with every intermediate state, x [n][width]; stage "embed" (layer -1), "ple" [n][L*P], "layer"
 * (after layer l), "norm". In passes with a probe all rows run through all layers. */
typedef void (*clt_probe_fn)(void *user, const char *stage, int layer, const float *x, int rows, int64_t width);
void clt_scratch_set_probe(clt_scratch *s, clt_probe_fn fn, void *user);
/* Shows every product of passes from now on; NULL: no longer. */
void clt_scratch_set_observer(clt_scratch *s, clt_observe_fn fn, void *user);
/* Counts the time of passes from now on; NULL: no longer. The profile must have been made for as many threads as the pool. */
void clt_scratch_set_profile(clt_scratch *s, clt_profile *p);

#endif
