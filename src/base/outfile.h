/* A large file that is written piece by piece and appears whole or not at all.
 *
 * Until clt_outfile_commit the bytes have no name where the system allows that, so that nothing is left even of a process
 * that is killed; elsewhere they lie under a temporary name beside the file. */
#ifndef CLT_BASE_OUTFILE_H
#define CLT_BASE_OUTFILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

typedef struct clt_outfile {
    int fd;
    char *path;
    char *temp; /* NULL while the file has no name */
} clt_outfile;

/* Checks first that the disk has room for `bytes`, and that `path` is no folder, device or pipe. */
clt_status clt_outfile_open(const char *path, uint64_t bytes, clt_outfile *out, clt_err *err);
/* Any order, any thread. False: errno says why. */
bool clt_outfile_write(const clt_outfile *f, const void *data, size_t n, uint64_t at);
/* Reports a failed write. */
clt_status clt_outfile_fail(const clt_outfile *f, clt_err *err);
/* Syncs and gives the file its name, in place of one that is there. Releases f in any case. */
clt_status clt_outfile_commit(clt_outfile *f, clt_err *err);
/* Leaves nothing. Fine after a failed open. */
void clt_outfile_abandon(clt_outfile *f);

#endif
