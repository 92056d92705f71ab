/* Hugging Face folders -> manifests of GGUF files, as llama.cpp's converter makes them: names, types, transforms, metadata,
 * vocabulary and template. What differs, and why, is in MODEL.md. */
#ifndef CLT_CONVERT_FOLDER_H
#define CLT_CONVERT_FOLDER_H
#include "convert/convert.h"

/* A text model or a drafter. type: of the matrices, F32, F16, BF16 or Q8_0. CLT_E_FILE: a tensor or key is missing or
 * unknown; CLT_E_UNSUPPORTED: not a model of the family. */
clt_status clt_manifest_text(const clt_file *f, clt_type type, clt_manifest *out, clt_err *err);
/* The towers for pictures and sound, as a vision file ("mmproj"). CLT_E_UNSUPPORTED: the folder has none. */
clt_status clt_manifest_towers(const clt_file *f, clt_type type, clt_manifest *out, clt_err *err);
/* F32 where all tensors are, else BF16 or F16, whichever most numbers have. */
clt_type clt_folder_type(const clt_file *f);

/* ---- inside: what the files of folder*.c share ---- */

/* Puts keys into the head of a manifest: "ARCH.suffix" for suffixes that begin with a point, whole keys otherwise. */
typedef struct clt_keys {
    clt_gguf_head *head;
    const char *arch;
} clt_keys;
void clt_keys_u32(const clt_keys *k, const char *key, int64_t v);
void clt_keys_i32(const clt_keys *k, const char *key, int64_t v);
void clt_keys_f32(const clt_keys *k, const char *key, double v);
void clt_keys_bool(const clt_keys *k, const char *key, bool v);
void clt_keys_str(const clt_keys *k, const char *key, const char *s);
/* general.architecture, type, sampling, name, size. experts: 0 = none. */
void clt_keys_general(const clt_keys *k, const clt_file *f, const char *type, const clt_manifest *m, int64_t experts);

/* JSON with a fallback for what is absent or null. */
int64_t clt_json_int_or(const clt_json *object, const char *key, int64_t fallback);
double clt_json_num_or(const clt_json *object, const char *key, double fallback);

/* The vocabulary and the template (folder_tokens.c); *tokens = how many. */
clt_status clt_keys_vocabulary(const clt_keys *k, const clt_file *f, bool gemma3, int64_t *tokens, clt_err *err);
/* tokenizer.model (sentencepiece.c): pieces, scores and kinds of SentencePiece, in order of their ids. */
typedef struct clt_pieces {
    clt_buf texts;          /* end to end */
    clt_ids lens, kinds;    /* kinds: GGUF's token types */
    clt_buf scores;         /* floats */
} clt_pieces;
clt_status clt_pieces_read(const char *path, clt_pieces *out, clt_err *err);
void clt_pieces_free(clt_pieces *p);

#endif
