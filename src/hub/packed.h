/* Packed copies: the weights of a model as they lie in memory, kept in ${CULET_HOME:-~/.cache/culet}/packed for fast
 * loading.
 *
 * A copy is a header and the bytes. The header names the model and the layout (the key), the state of the model's file
 * when it was packed (the stamp) and a checksum for every slice of 8 MiB. Nothing of a copy is believed before it was
 * checked: one that is damaged, foreign or stale is refused, and the caller packs anew. Copies appear whole or not at
 * all, whatever happens to the process that writes them, and any number of processes may write, use and remove them at
 * once. */
#ifndef CLT_HUB_PACKED_H
#define CLT_HUB_PACKED_H
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/pool.h"

typedef struct clt_packed_key {
    uint64_t model[2]; /* digest of the model: names, shapes, types, samples of its weights */
    uint64_t layout;   /* digest of what lies where */
    uint64_t stamp;    /* digest of size, time and identity of the model's files */
    uint64_t bytes;    /* of the packed weights */
} clt_packed_key;

/* Adds to a stamp what the system says of a file. */
uint64_t clt_packed_stamp(uint64_t stamp, const char *path);

typedef struct clt_packed clt_packed;
/* Opens and checks the copy of a key. CLT_OK with *out NULL: there is none. Failures (CLT_E_FILE, CLT_E_MEMORY) say why
 * the copy that is there cannot be used. */
clt_status clt_packed_open(const clt_packed_key *key, clt_pool *pool, clt_packed **out, clt_err *err);
void clt_packed_close(clt_packed *p); /* NULL is fine */
const uint8_t *clt_packed_data(const clt_packed *p); /* [key.bytes], 64-byte aligned */
const char *clt_packed_path(const clt_packed *p);
bool clt_packed_is_mapped(const clt_packed *p); /* false: read into memory of its own */

/* Writes the copy of a key, over an older one; `model` = the path that `ls` shows. Appends the path of the copy to
 * `path`. On failure nothing is left behind. */
clt_status clt_packed_write(const clt_packed_key *key, const char *model, const uint8_t *data, clt_pool *pool, clt_buf *path,
                            clt_err *err);

typedef struct clt_packed_entry {
    const char *name;  /* of the file, without folder */
    const char *path;
    const char *model; /* the path it was packed from; "" if the header cannot be read */
    uint64_t bytes;    /* on the disk */
} clt_packed_entry;
/* Calls fn for every copy in order of names. A folder that does not exist is empty. */
clt_status clt_packed_each(void (*fn)(void *user, const clt_packed_entry *e), void *user, clt_err *err);

#endif
