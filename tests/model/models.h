/* For the tests of src/model: a sketch of a tiny model, written as a GGUF file or as a Hugging Face folder, with whatever a
 * test changes about it; and the expectations that it binds, or is refused with given words. */
#ifndef TESTS_MODEL_MODELS_H
#define TESTS_MODEL_MODELS_H
#include "file/files.h"
#include "model/model.h"

typedef enum sketch_kind { GEMMA3, GEMMA4_E, GEMMA4_DENSE, GEMMA4_MOE } sketch_kind;

enum { SKETCH_LAYERS = 6, SKETCH_D = 32, SKETCH_F = 48, SKETCH_V = 40, SKETCH_P = 8, SKETCH_E = 4, SKETCH_FE = 24 };

typedef struct sketch_tensor { char name[96]; clt_type type; int64_t dims[3]; float fill; } sketch_tensor;
typedef struct sketch_meta { char key[64]; clt_buf value; } sketch_meta; /* value: type and bytes, as in the file */

/* Layers 2 and 5 are full. Heads 2 over 1 (MoE: sliding 2 over 2), widths 16 sliding and 32 full (Gemma 3: 16). The E-like
 * model shares keys in its last three layers; full layers of the dense and the MoE model have no values. */
typedef struct sketch {
    sketch_kind kind;
    sketch_tensor tensor[192];
    int n_tensors;
    sketch_meta meta[64];
    int n_metas;
    char config[4096], generation[1024]; /* Hugging Face only; generation empty: no such file */
} sketch;

/* The folder of a test program: the setup and teardown of its group. */
int models_setup(void **state);
int models_teardown(void **state);
/* Folders need the JSON library. */
#if CLT_HAVE_JANSSON
enum { HAVE_HF = 1 };
#else
enum { HAVE_HF = 0 };
#endif

sketch *sketch_gguf(sketch_kind kind);
/* prefix: what stands before "layers."; all tensors are F32. */
sketch *sketch_hf(sketch_kind kind, const char *prefix);
void sketch_free(sketch *s);

void sketch_add(sketch *s, const char *name, int64_t d0, int64_t d1, int64_t d2);
void sketch_drop(sketch *s, const char *name); /* a final '*' drops all that begin so */
sketch_tensor *sketch_find(sketch *s, const char *name);
bool sketch_has(const sketch *s, const char *name);

/* Keys are given without "gemma3." or "gemma4." when they begin with a dot. Setting replaces. */
void sketch_set(sketch *s, const char *key, uint32_t v);
void sketch_set_float(sketch *s, const char *key, float v);
void sketch_set_string(sketch *s, const char *key, const char *v);
void sketch_set_bools(sketch *s, const char *key, int n, const bool *v);
void sketch_set_list(sketch *s, const char *key, int n, const int *v);
void sketch_unset(sketch *s, const char *key);
/* Replaces the one place of `from` in config.json. */
void sketch_edit(sketch *s, const char *from, const char *to);

/* Writes the file or the folder; the path is good until the next call. */
const char *sketch_write(sketch *s);

typedef struct bound { clt_file *file; clt_model model; } bound;
/* Writes, frees, opens and binds; fails the test where that is refused. */
bound *sketch_bind(sketch *s);
void bound_close(bound *b);
/* Writes and frees; binding is refused with this code, the text or the hint holds each of the words, and nothing leaks. */
#define BIND_REFUSED(sketch, code, ...)                                                                                     \
    bind_refused(__FILE__, __LINE__, sketch, code, (const char *const[]){__VA_ARGS__, NULL})
void bind_refused(const char *file, int line, sketch *s, clt_status code, const char *const *words);
/* The text of the last refusal. */
const char *refusal(void);

#endif
