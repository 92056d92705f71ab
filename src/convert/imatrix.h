/* Importance of matrix inputs: the mean square of each column's input over a text, as llama.cpp's imatrix files hold it.
 *
 * Two formats: GGUF (general.type "imatrix"; NAME.in_sum2 and NAME.counts) and the older one (.dat):
 *
 *   0  i32 entries; for each: i32 length, name | i32 calls | i32 numbers | f32 sums of squares, times calls
 *   then i32 chunks | i32 length, name of the text
 *
 * Ours may also hold NAME.sensitivity, which llama.cpp passes over.
 *
 * Importances are relative within a matrix, so a scale common to all columns of one does not matter. */
#ifndef CLT_CONVERT_IMATRIX_H
#define CLT_CONVERT_IMATRIX_H
#include "base/mem.h"
#include "file/file.h"

typedef struct clt_imatrix_entry {
    const char *name;       /* of the tensor: "blk.0.attn_q.weight" */
    int64_t cols, matrices; /* matrices: experts, else 1 */
    float *values;          /* [matrices][cols]: mean squares; of a matrix without inputs: ones */
    float *counts;          /* [matrices]: rows seen */
    float sensitivity;      /* divergence for each unit of noise energy in a token's results; 0 = not measured */
} clt_imatrix_entry;

typedef struct clt_imatrix {
    clt_arena *arena;
    char *path;             /* of its file; "" if it was measured here */
    clt_imatrix_entry *entries;
    size_t n, cap;
    uint32_t chunks, chunk_tokens;
    char *text;             /* name of the text, or "" */
} clt_imatrix;

clt_status clt_imatrix_init(clt_imatrix *m, const char *path, clt_err *err);
void clt_imatrix_free(clt_imatrix *m);
/* An entry of zeros; NULL without memory. */
clt_imatrix_entry *clt_imatrix_add(clt_imatrix *m, const char *name, size_t name_len, int64_t cols, int64_t matrices,
                                   clt_err *err);
const clt_imatrix_entry *clt_imatrix_find(const clt_imatrix *m, const char *name);

/* Either format, told by its first bytes. CLT_E_FILE: damaged, or no imatrix. */
clt_status clt_imatrix_read(const char *path, clt_imatrix *out, clt_err *err);
clt_status clt_imatrix_write(const clt_imatrix *m, const char *path, bool old_format, clt_err *err);

#endif
