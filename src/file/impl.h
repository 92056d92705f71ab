/* What the files of this folder share: the open file, its tables of names, a bounds-checked reader and the layout check.
 * Nobody outside src/file includes this. */
#ifndef CLT_FILE_IMPL_H
#define CLT_FILE_IMPL_H
#include <string.h>
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "file/file.h"

/* Far above any published model, low enough that a hostile file cannot make us allocate much. */
#define CLT_FILE_MAX_TENSORS 131072u
#define CLT_FILE_MAX_METAS 65536u
#define CLT_FILE_NO_ID UINT32_MAX /* a name in the table whose tensor is not offered */

/* ---- names.c: a growing hash table of names; the names themselves belong to the caller ---- */
typedef struct clt_name {
    const char *name; /* NULL: free slot */
    uint64_t hash;
    uint32_t id;
    uint32_t shard;
} clt_name;
typedef struct clt_names {
    clt_name *slots;
    size_t cap; /* power of two, at least twice len */
    size_t len;
    uint64_t seed;
} clt_names;
/* *old is the entry of that name that was there before, or NULL if the name is new and was added. */
clt_status clt_names_add(clt_names *t, const char *name, uint32_t id, uint32_t shard, const clt_name **old, clt_err *err);
const clt_name *clt_names_find(const clt_names *t, const char *name);
void clt_names_free(clt_names *t);

/* A list of names for an error text: every name up to a limit, then how many more. */
typedef struct clt_name_list {
    clt_buf text;
    size_t n;
} clt_name_list;
void clt_name_list_add(clt_name_list *l, const char *name);
const char *clt_name_list_end(clt_name_list *l); /* "a, b, c and 5 more"; valid until clt_buf_free(&l->text) */

/* A printable copy of outside bytes: control bytes and invalid UTF-8 as <0xHH>, cut with "…" when long. Returns out. */
#define CLT_SHOWN_BYTES 512
const char *clt_shown(char out[CLT_SHOWN_BYTES], const void *bytes, uint64_t n);

/* ---- the open file ---- */
typedef struct clt_shard {
    char *path;
    clt_map map;
} clt_shard;

typedef struct clt_metas {
    clt_meta *items;
    size_t n;
    clt_names names;
} clt_metas;

enum { CLT_HF_JSONS = 5, CLT_HF_TEXTS = 2 };

struct clt_file {
    clt_file_kind kind;
    char *path;
    uint32_t version;
    clt_arena *arena; /* paths, names, keys, metadata entries */
    clt_shard *shards;
    int n_shards;
    clt_tensor *tensors;
    size_t n_tensors, cap_tensors;
    clt_names names; /* of all tensors, offered or not */
    clt_metas metas; /* GGUF: of the first shard */
    clt_json *jsons[CLT_HF_JSONS];
    clt_map texts[CLT_HF_TEXTS];
    char lack[3 * CLT_SHOWN_BYTES]; /* the first tensor of a type that we lack, in words; its file; how many there are */
    int lack_shard;
    size_t lacks;
};

/* ---- file.c ---- */
/* Reserves n empty shards with these paths (copied). */
clt_status clt_file_set_shards(clt_file *f, const char *const *paths, int n, clt_err *err);
/* Maps shard i and refuses what is recognisably something else than model data. */
clt_status clt_file_map_shard(clt_file *f, int i, clt_err *err);
/* Adds a name of `shard`, with its tensor or (NULL) without. CLT_E_FILE if the name was there already. */
clt_status clt_file_add(clt_file *f, const char *name, int shard, const clt_tensor *t, clt_err *err);
/* Notes a tensor that we cannot read. Reported only after every other check, so that damage comes before support. */
void clt_file_lack(clt_file *f, int shard, const char *name, const char *type_words);

/* ---- sniff.c ---- */
/* CLT_E_FILE if the file is empty, or is known to be something else: a web page, a Git LFS pointer, an archive. */
clt_status clt_sniff(const char *path, const clt_map *map, clt_err *err);

/* ---- layout.c ---- */
typedef struct clt_span {
    const char *name;
    uint64_t begin, end; /* bytes of the shard file */
} clt_span;
/* Refuses tensors that run past the end or overlap. `packed`: also bytes of [data_begin, file_bytes) that belong to no
 * tensor. Reorders the spans. */
clt_status clt_layout_check(const char *path, clt_span *spans, size_t n, uint64_t data_begin, uint64_t file_bytes,
                            bool packed,
                            clt_err *err);

/* ---- reader.c: a position in a mapped file; every read is checked ---- */
typedef struct clt_reader {
    const char *path;
    const uint8_t *data;
    uint64_t pos, size;
    const char *part;  /* for error texts: "metadata entry", "tensor entry" */
    uint64_t index;
    const char *name;  /* of the entry, NULL until it is known */
    clt_err *err;
} clt_reader;
static inline uint64_t clt_reader_left(const clt_reader *r) { return r->size - r->pos; }
/* "PATH: metadata entry 3 ('a.b'): …". Always returns false, so that a check is one statement. */
bool clt_reader_fail(clt_reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for what the file is too short for. */
bool clt_reader_short(clt_reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* NULL after reporting that the file ends inside `what`. */
const uint8_t *clt_reader_take(clt_reader *r, uint64_t bytes, const char *what);
bool clt_reader_u32(clt_reader *r, const char *what, uint32_t *v);
bool clt_reader_u64(clt_reader *r, const char *what, uint64_t *v);
/* A u64 length and its bytes; copied with a NUL into the arena. Refuses 0 bytes, more than max, and NUL bytes inside. */
bool clt_reader_name(clt_reader *r, const char *what, uint64_t max, clt_arena *a, const char **name);

static inline uint64_t clt_le(const uint8_t *p, unsigned bytes) {
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}
static inline uint64_t clt_le64(const uint8_t *p) { return clt_le(p, 8); }

/* ---- gguf*.c ---- */
clt_status clt_gguf_open(clt_file *f, clt_err *err); /* f->path to all shards; gguf_split.c */
/* Checks shard i whole and adds its tensors to f; its metadata go to *metas (in f's arena; free metas->names). gguf.c */
clt_status clt_gguf_scan(clt_file *f, int shard, clt_metas *metas, clt_err *err);
bool clt_gguf_scan_metas(clt_reader *r, uint64_t n, clt_arena *a, clt_metas *out);                /* gguf_meta.c */
bool clt_gguf_scan_tensors(clt_reader *r, uint64_t n, uint64_t align, clt_file *f, int shard);    /* gguf_tensors.c */
const clt_meta *clt_metas_find(const clt_metas *m, const char *key);

/* ---- hf.c, safetensors.c ---- */
clt_status clt_hf_open(clt_file *f, clt_err *err);
clt_status clt_safetensors_scan(clt_file *f, int shard, clt_err *err);
/* Parses JSON of the folder after bounding its size; malformed text is CLT_E_FILE. */
clt_status clt_hf_parse(const char *text, uint64_t len, const char *what, clt_json **doc, clt_err *err);

#endif
