/* What the commands that make model files say of them. */
#ifndef CLI_QUANTIZE_H
#define CLI_QUANTIZE_H
#include "args.h"

/* For progress callbacks; user: the label, "quantising". */
bool cli_on_file_progress(void *user, double done);
/* The result on standard error, or as a document with --json; type may be NULL. Returns 0. */
int cli_file_written(const cli_args *args, const char *path, const char *type, const culet_quantized *q);

#endif
