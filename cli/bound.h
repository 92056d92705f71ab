/* What the reply must be: --grammar, --grammar-file, --json-schema and --json-schema-file. */
#ifndef CLI_BOUND_H
#define CLI_BOUND_H
#include "args.h"

typedef struct cli_bound {
    clt_buf text; /* what a file held */
    const char *grammar, *json_schema; /* at most one is not NULL */
} cli_bound;

/* Reads and checks, so that a mistake is told before a model is opened. Returns 0, or prints the error and returns the exit
 * code. */
int cli_bound_read(const cli_args *args, cli_bound *out);
/* For one generation. A thought may stand before what is bound if thinking was asked for. */
void cli_bound_apply(const cli_bound *b, const cli_args *args, culet_generate_params *p);
void cli_bound_free(cli_bound *b);

#endif
