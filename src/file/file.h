/* Bytes on disk -> named tensors and metadata. Knows no model.
 *
 * Opens a GGUF file (v2, v3; single, or any member of a split "-00001-of-000NN" set) or a Hugging Face folder
 * (config.json, model.safetensors or shards with an index, tokenizer.json, generation_config.json, chat_template.jinja).
 * Everything is mapped read-only and nothing is copied. Every count, length, offset, shape, alignment, duplicate name and
 * type is checked before use, so that after a successful open each tensor's bytes lie inside its mapping.
 * An open file is immutable and may be read by several threads. */
#ifndef CLT_FILE_FILE_H
#define CLT_FILE_FILE_H
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/json.h"
#include "quant/quant.h"

typedef struct clt_file clt_file;
typedef enum clt_file_kind { CLT_FILE_GGUF, CLT_FILE_HF } clt_file_kind;

typedef struct clt_tensor {
    const char *name;     /* NUL-terminated, owned by the file */
    clt_type type;
    int n_dims;           /* 1..4 */
    int64_t dims[4];      /* innermost first, as GGUF lists them: dims[0] = columns (input width), dims[1] = rows; unused
                             = 1. Rows are whole blocks of the type. An HF shape [rows, cols] arrives as dims {cols, rows};
                             a scalar (no dimension) as {1}. */
    const uint8_t *data;  /* inside the mapping, aligned as in the file: a safetensors tensor may begin at any byte, so read
                             it with unaligned loads or memcpy, never through a float pointer */
    uint64_t bytes;
    uint64_t offset;      /* from the start of its shard file */
    int shard;
} clt_tensor;

/* CLT_E_FILE for anything missing, truncated or malformed; CLT_E_UNSUPPORTED for a tensor type that we lack (named with
 * its tensor) or an unknown container version. Says so if the file is an HTML page or a Git LFS pointer. */
clt_status clt_file_open(const char *path, clt_file **out, clt_err *err);
void clt_file_close(clt_file *f); /* NULL is fine */

clt_file_kind clt_file_get_kind(const clt_file *f);
const char *clt_file_path(const clt_file *f);      /* as given to clt_file_open */
uint32_t clt_file_version(const clt_file *f);      /* GGUF version; 0 for HF */
int clt_file_shards(const clt_file *f);
const char *clt_file_shard_path(const clt_file *f, int shard);
uint64_t clt_file_shard_bytes(const clt_file *f, int shard);
uint64_t clt_file_bytes(const clt_file *f);        /* all shards */
size_t clt_file_tensors(const clt_file *f);
const clt_tensor *clt_file_tensor(const clt_file *f, size_t i);         /* file order */
const clt_tensor *clt_file_find(const clt_file *f, const char *name);   /* NULL if absent; O(1) */
int64_t clt_tensor_rows(const clt_tensor *t);      /* dims[1]*dims[2]*dims[3] */
const uint8_t *clt_tensor_row(const clt_tensor *t, int64_t row);
/* Reads bytes [at, at + n) of a tensor past the mapping: what they lie in does not become resident. False if they can no
 * longer be read. */
bool clt_file_read(const clt_file *f, const clt_tensor *t, uint64_t at, void *dst, size_t n);
/* Decodes one row, read past the mapping: what a table's rows lie in does not become resident. A row is read once per
 * call, so that a file that changes meanwhile gives some numbers, never a crash. False if the row can no longer be read. */
bool clt_file_decode_row(const clt_file *f, const clt_tensor *t, int64_t row, float *dst /* [dims[0]] */);
/* Tells the system that rows [first, first + n) will be needed soon; or that they are not needed now. */
void clt_file_expect(const clt_file *f, const clt_tensor *t, int64_t first, int64_t n);
void clt_file_release(const clt_file *f, const clt_tensor *t, int64_t first, int64_t n);

/* ---- GGUF metadata ---- */
typedef enum clt_meta_type {
    CLT_META_U8, CLT_META_I8, CLT_META_U16, CLT_META_I16, CLT_META_U32, CLT_META_I32, CLT_META_F32, CLT_META_BOOL,
    CLT_META_STRING, CLT_META_ARRAY, CLT_META_U64, CLT_META_I64, CLT_META_F64
} clt_meta_type;

typedef struct clt_meta {
    const char *key;         /* NUL-terminated; a key that holds a NUL byte is refused at open */
    clt_meta_type type;      /* of the value, or of the items if is_array */
    bool is_array;
    uint64_t count;          /* 1 unless is_array */
    const uint8_t *data;     /* first value: little-endian, unaligned; strings as u64 length + bytes, all inside the file */
    uint64_t bytes;          /* of all values */
} clt_meta;

size_t clt_file_metas(const clt_file *f); /* 0 for HF */
const clt_meta *clt_file_meta(const clt_file *f, size_t i);
const clt_meta *clt_file_meta_find(const clt_file *f, const char *key); /* NULL if absent */
/* Typed reads of item i with widening (any integer type to int64, any number to double). false: m is NULL, i or the value is
 * out of range, or the type is another. */
bool clt_meta_int(const clt_meta *m, uint64_t i, int64_t *out);
bool clt_meta_num(const clt_meta *m, uint64_t i, double *out);
bool clt_meta_bool(const clt_meta *m, uint64_t i, bool *out);
bool clt_meta_str(const clt_meta *m, const char **s, uint64_t *len);  /* a single string */
const char *clt_meta_type_name(clt_meta_type t);
/* Walks an array of strings in order: *pos starts at 0 (a byte offset). false at the end or if m is no array of strings. */
bool clt_meta_next_str(const clt_meta *m, uint64_t *pos, const char **s, uint64_t *len);

/* ---- HF folder ---- */
/* A parsed JSON document of the folder ("config.json", "generation_config.json", "tokenizer_config.json"), parsed at open;
 * NULL if the folder has none. */
const clt_json *clt_file_json(const clt_file *f, const char *name);
/* The text of a file of the folder ("tokenizer.json", "chat_template.jinja"), mapped at open; NULL if there is none. */
const char *clt_file_text(const clt_file *f, const char *name, uint64_t *len);

#endif
