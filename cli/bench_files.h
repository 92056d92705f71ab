/* The files that a model consists of: one, a split set, or those of a folder. */
#ifndef CLI_BENCH_FILES_H
#define CLI_BENCH_FILES_H
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_files {
    char **paths;
    size_t n;
    uint64_t bytes;          /* of all */
} cli_files;

clt_status cli_files_of_model(const char *path, cli_files *out, clt_err *err);
void cli_files_free(cli_files *f);

/* A digest over all files: of every byte, or of their sizes and evenly spread samples. */
clt_status cli_files_digest(const cli_files *f, bool whole, char hex[65], clt_err *err);
/* Asks the system to drop the files from its page cache. False where it cannot, or where so much stays that nothing that
 * reads them would be cold. */
bool cli_files_make_cold(const cli_files *f);
/* Reads up to `most_bytes` of the files through the page cache, from the start; *ms = how long. */
clt_status cli_files_read(const cli_files *f, uint64_t most_bytes, double *ms, clt_err *err);

#endif
