/* Model files into other model files: tensors of one file or folder come in, a GGUF file goes out, streamed.
 *
 * A *manifest* lists what is to be written: metadata, and for each tensor its name, type, shape and source.
 * clt_manifest_write does the work, with all threads of a pool and a few MB for each, whatever the size of the model. Makes
 * no manifest by itself. */
#ifndef CLT_CONVERT_CONVERT_H
#define CLT_CONVERT_CONVERT_H
#include "base/mem.h"
#include "base/pool.h"
#include "file/file.h"
#include "file/gguf_write.h"
#include "kernels/fit.h"

/* What happens to the numbers of a tensor on their way. */
typedef enum clt_change {
    CLT_AS_IS,
    CLT_PLUS_ONE,   /* norms that are stored minus one */
    CLT_SOFTPLUS,   /* log(1 + exp(x)) */
    CLT_PLANAR,     /* columns (row, column, channel) of a patch -> (channel, row, column) */
    CLT_SWAP_ROWS   /* rows [a][b] -> [b][a], a = swap */
} clt_change;

/* Numbers in rows of `cols`; a tensor of the file, or numbers made here. */
typedef struct clt_source {
    const clt_file *file;
    const clt_tensor *tensor; /* NULL: made */
    const float *made;        /* [rows][cols] */
    int64_t cols, rows;       /* rows: of what is read, at most those of the tensor */
    clt_change change;
    int64_t swap;
} clt_source;

/* Row `row` as floats. False if it can no longer be read. space: [cols], used by some changes. */
bool clt_source_row(const clt_source *s, int64_t row, float *dst, float *space);

typedef struct clt_manifest_tensor {
    const char *name;
    clt_type type;
    int n_dims;
    int64_t dims[4];          /* innermost first; their product is cols * rows of the source */
    clt_source source;
    const float *importance;  /* [matrices][dims[0]]: mean squares of the inputs; NULL = unknown */
} clt_manifest_tensor;

/* What recipes ask about a model; 0 where its file does not say. */
typedef struct clt_manifest_facts { int layers, experts, heads, kv_heads; } clt_manifest_facts;

typedef struct clt_manifest {
    clt_arena *arena;         /* of names and numbers that it owns; created by clt_manifest_init */
    clt_gguf_head head;       /* metadata, all but the two keys that state the quantisation: clt_manifest_write adds those */
    uint32_t file_type;       /* general.file_type */
    clt_manifest_facts facts;
    clt_manifest_tensor *tensors;
    size_t n, cap;
} clt_manifest;

clt_status clt_manifest_init(clt_manifest *p, clt_err *err);
/* A copy of *t, to be changed in place until the next call; NULL without memory. */
clt_manifest_tensor *clt_manifest_add(clt_manifest *p, const clt_manifest_tensor *t, clt_err *err);
void clt_manifest_free(clt_manifest *p);
uint64_t clt_manifest_tensor_bytes(const clt_manifest_tensor *t);

typedef struct clt_convert_run {
    clt_pool *pool;
    clt_fit_fn fit;
    bool (*progress)(void *user, double done); /* 0..1; false cancels; NULL = none */
    void *user;
} clt_convert_run;

/* Writes the manifest to `path`: whole, or not at all. CLT_E_CANCELLED if progress said so. */
clt_status clt_manifest_write(clt_manifest *p, const char *path, const clt_convert_run *run, clt_err *err);

/* ---- encode.c ---- */
/* Rows of floats -> blocks. importance: [cols] or NULL. False: a number that is not finite, or beyond 1e18 in a type with
 * blocks, which nobody's weights are. */
bool clt_encode_rows(clt_type t, clt_fit_fn fit, const float *x, const float *importance, int64_t cols, int64_t rows,
                     uint8_t *dst);

#endif
