/* A file of raw little-endian values, written row by row. What was written of a file that failed is removed. */
#ifndef CLI_RAWFILE_H
#define CLI_RAWFILE_H
#include <stdbool.h>
#include <stdio.h>
#include "base/err.h"

typedef struct cli_rawfile {
    FILE *stream;
    const char *path;
} cli_rawfile;

clt_status cli_rawfile_create(const char *path, cli_rawfile *f, clt_err *err);
/* n values of 4 bytes (float or int32_t). */
clt_status cli_rawfile_write(cli_rawfile *f, const void *values, size_t n, clt_err *err);
/* Closes; with `keep` false, or if closing fails, a regular file is removed. A file that was never created is fine. */
clt_status cli_rawfile_close(cli_rawfile *f, bool keep, clt_err *err);

#endif
