/* The head of a GGUF v3 file being made: metadata and tensor table, as bytes. The tensors' data follow it, each at a
 * multiple of the alignment; whoever writes them keeps to the offsets that clt_gguf_put_tensor gives.
 *
 * Zero-initialise. A failed allocation sets metas.failed or tensors.failed; clt_gguf_head_end reports it. */
#ifndef CLT_FILE_GGUF_WRITE_H
#define CLT_FILE_GGUF_WRITE_H
#include "base/buf.h"
#include "file/file.h"

typedef struct clt_gguf_head {
    clt_buf metas, tensors;
    uint64_t n_metas, n_tensors;
    uint64_t data_bytes; /* of the tensors so far, aligned */
    uint32_t alignment;  /* 0 = 32 */
} clt_gguf_head;

void clt_gguf_put_u32(clt_gguf_head *h, const char *key, uint32_t v);
void clt_gguf_put_i32(clt_gguf_head *h, const char *key, int32_t v);
void clt_gguf_put_f32(clt_gguf_head *h, const char *key, float v);
void clt_gguf_put_bool(clt_gguf_head *h, const char *key, bool v);
void clt_gguf_put_str(clt_gguf_head *h, const char *key, const char *s, size_t len);
/* An array of count numbers: their little-endian bytes follow in one piece. */
void clt_gguf_put_array(clt_gguf_head *h, const char *key, clt_meta_type item, uint64_t count, const void *bytes, size_t n);
/* An array of strings, each put by clt_gguf_put_item. */
void clt_gguf_begin_strings(clt_gguf_head *h, const char *key, uint64_t count);
void clt_gguf_put_item(clt_gguf_head *h, const char *s, size_t len);
/* An entry of another file as it is. */
void clt_gguf_put_meta(clt_gguf_head *h, const clt_meta *m);
/* All metadata of another head. */
void clt_gguf_append(clt_gguf_head *h, const clt_gguf_head *from);
/* Adds a tensor behind the others; returns its offset in the data section. */
uint64_t clt_gguf_put_tensor(clt_gguf_head *h, const char *name, clt_type type, int n_dims, const int64_t *dims);

/* The whole head with its padding, appended to out; the data section begins where it ends. */
clt_status clt_gguf_head_end(const clt_gguf_head *h, clt_buf *out, clt_err *err);
void clt_gguf_head_free(clt_gguf_head *h);

#endif
