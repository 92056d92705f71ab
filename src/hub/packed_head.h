/* The header of a packed copy, and the folder of copies: what the files of packed copies share. */
#ifndef CLT_HUB_PACKED_HEAD_H
#define CLT_HUB_PACKED_HEAD_H
#include "hub/packed.h"

#define CLT_PACKED_END ".packed"
#define CLT_PACKED_TEMP ".tmp"
#define CLT_PACKED_SLICE ((uint64_t)8 << 20)

typedef struct clt_packed_head {
    clt_packed_key key;
    char *model;        /* path, NUL-terminated */
    uint64_t *slice;    /* [slices] checksums */
    uint64_t slices;
    uint64_t offset;    /* of the weights in the file, a multiple of CLT_MAP_HUGE */
} clt_packed_head;

/* For `bytes` of weights, with room for their checksums. Release with clt_packed_head_free. */
clt_status clt_packed_head_make(const clt_packed_key *key, const char *model, clt_packed_head *out, clt_err *err);
/* Reads and checks the header of an open copy, the size of the file included. */
clt_status clt_packed_head_read(int fd, const char *path, clt_packed_head *out, clt_err *err);
/* The header as bytes, appended. */
void clt_packed_head_put(const clt_packed_head *h, clt_buf *out);
void clt_packed_head_free(clt_packed_head *h);

/* Appends the folder of copies, or with a key the path of its copy. */
clt_status clt_packed_place(const clt_packed_key *key, clt_buf *out, clt_err *err);

/* Checksums of all slices of `data`, in parallel, into slice[slices]. Before a slice is summed, `read` (may be NULL) is
 * called to bring it there; what it returns false for gets the sum of nothing. */
typedef struct clt_packed_sums {
    const uint8_t *data;
    uint64_t bytes;
    bool (*read)(void *user, uint64_t at, uint64_t n);
    void *user;
    uint64_t *sum; /* out */
} clt_packed_sums;
void clt_packed_sum(const clt_packed_sums *s, clt_pool *pool);

#endif
