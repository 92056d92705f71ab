/* What the towers for pictures and sound share: finding their tensors in a Hugging Face folder or in a vision file
 * ("mmproj") of llama.cpp, and their clipped matrices. No arithmetic. */
#ifndef CLT_MODEL_TOWER_H
#define CLT_MODEL_TOWER_H
#include "base/buf.h"
#include "model/model.h"

/* y = clamp(W clamp(x, in_min, in_max), out_min, out_max) */
typedef struct clt_tower_matrix {
    const clt_tensor *w;  /* [rows, cols] = [out, in] */
    bool clipped;         /* false: the bounds are infinite */
    float in_min, in_max, out_min, out_max;
} clt_tower_matrix;

/* ---- binding: roles to tensors; what is missing, misshapen or left over is collected and reported together ---- */
/* Hears of every tensor that a binding finds, bounds included, with its name in GGUF: what a converter needs. */
typedef struct clt_tower_listener {
    void (*heard)(void *user, const char *gguf, const clt_tensor *t);
    void *user;
} clt_tower_listener;

typedef struct clt_tower_binder {
    const clt_file *f;
    bool gguf;
    const char *prefix;     /* HF: "model." or nothing, before every name */
    unsigned char *claimed; /* [tensors] */
    const clt_tower_listener *listener; /* NULL: nobody listens */
    clt_buf missing, misshapen, extra;
} clt_tower_binder;

/* probe: the HF name, without prefix, of a tensor that every tower of the kind has. */
clt_status clt_tower_begin(clt_tower_binder *b, const clt_file *f, const char *probe, clt_err *err);
void clt_tower_end(clt_tower_binder *b);
/* The tensor of a role, by its name in either form. Shapes innermost first; rows: of all dimensions but the first, so that
 * [5, 1, W] and [5, W] are the same. vector: read as plain numbers, of a float type. */
const clt_tensor *clt_tower_find(clt_tower_binder *b, const char *gguf, const char *hf, int64_t cols, int64_t rows,
                                 bool vector);
/* The same for a matrix with bounds beside it: "x.weight" or "x.linear.weight" has "x.input_min" and three more. */
void clt_tower_find_bounded(clt_tower_binder *b, const char *gguf, const char *hf, int64_t cols, int64_t rows,
                            clt_tower_matrix *out);
/* Ends the binding: CLT_E_FILE with the lists, if there is anything on them. what: "sound tower". hf, gguf: beginnings of
 * the tower's names, two of each; a tensor of such a name that nobody claimed is a tower that is not exactly understood. */
clt_status clt_tower_report(clt_tower_binder *b, const char *what, const char *const hf[2], const char *const gguf[2],
                            clt_err *err);
/* CLT_E_FILE with both widths and files unless the projection `p` (NULL: fine) leads to the width of the text model. */
clt_status clt_tower_check_width(const clt_file *f, const clt_tensor *p, const clt_model *text, const char *what,
                                 clt_err *err);

/* ---- configuration: numbers of "clip.vision.…" metadata, or of an object of config.json ---- */
typedef struct clt_tower_reader {
    const clt_file *f;
    const clt_json *json;   /* HF: the object that describes the tower; NULL: GGUF */
    const char *object;     /* its name, "audio_config" */
    const char *keys;       /* beginning of the keys in GGUF, "clip.audio." */
    clt_err *err;
    clt_status st;          /* the first failure; later reads do nothing */
} clt_tower_reader;
/* The HF object must be there in a folder. */
clt_tower_reader clt_tower_reader_open(const clt_file *f, const char *object, const char *keys, const char *what,
                                       clt_err *err);
void clt_tower_bad(clt_tower_reader *r, const char *key, const char *what);
void clt_tower_unsupported(clt_tower_reader *r, const char *what);
/* A number in [min, max]; fallback < 0: required. */
double clt_tower_number(clt_tower_reader *r, const char *key, double min, double max, double fallback);
int clt_tower_integer(clt_tower_reader *r, const char *key, int min, int max, int fallback);
/* Whether metadata `key` is this text. */
bool clt_tower_meta_is(const clt_file *f, const char *key, const char *expected);

#endif
