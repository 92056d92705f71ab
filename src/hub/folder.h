/* The model folder, ${CULET_HOME:-~/.cache/culet}/models: names -> paths, and what lies there. Reads only, downloads
 * nothing. */
#ifndef CLT_HUB_FOLDER_H
#define CLT_HUB_FOLDER_H
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

#define CLT_DEFAULT_MODEL "gemma-3-270m-q4_k_m.gguf"

/* Appends to `path` what `name` stands for: an existing path as it is, else an entry of the model folder, with or without
 * ".gguf"; a folder that holds exactly one GGUF model and no config.json stands for that file. NULL: the default model.
 * CLT_E_FILE if nothing is there. */
clt_status clt_hub_find(const char *name, clt_buf *path, clt_err *err);

/* Whether a name of a folder is that of a GGUF model: no vision file, no part of a split model but the first. */
bool clt_hub_is_model(const char *name);
/* Appends the path of the vision file (mmproj) that belongs to the GGUF file `model`, or nothing: a file of the same folder
 * whose name holds "mmproj" and, beside that and its type, the beginning of the model's name, or nothing else where the
 * folder holds no other model. BF16 is preferred, then F16, F32, Q8_0. */
clt_status clt_hub_find_vision(const char *model, clt_buf *path, clt_err *err);

typedef struct clt_hub_entry {
    const char *name;   /* what clt_hub_find takes */
    const char *path;
    uint64_t bytes;     /* of the file, or of all files of the folder */
    const char *format; /* "GGUF" or "Hugging Face" */
} clt_hub_entry;
/* Calls fn for every model of the folder in order of names; a folder that does not exist is empty. */
clt_status clt_hub_each(void (*fn)(void *user, const clt_hub_entry *e), void *user, clt_err *err);

#endif
