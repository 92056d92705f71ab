/* What the reply must be, from flags and files to texts for the engine. Knows no grammar: the library checks them. */
#include "bound.h"
#include <string.h>
#include "out.h"
#include "prompt.h"

/* The one flag of the four that was given; *twice: another was, too. */
static const char *flag_of(const cli_args *args, const char **twice) {
    const char *found = NULL;
    const struct {
        const char *name, *value;
    } flags[] = {{"--grammar", args->grammar},
                 {"--grammar-file", args->grammar_file},
                 {"--json-schema", args->json_schema},
                 {"--json-schema-file", args->json_schema_file}};
    *twice = NULL;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!flags[i].value) {
            continue;
        }
        *twice = found;
        found = flags[i].name;
    }
    return found;
}

static int read_file(const char *flag, const char *path, clt_buf *out) {
    int code = cli_read_file_text(path, out);
    if (!code && out->data && strlen(out->data) != out->len) {
        code = cli_failf(CLT_E_USAGE, "%s: %s holds a NUL byte", flag, path);
    }
    if (!code && !out->data) {
        clt_buf_put(out, "", 0);
        code = out->data ? 0 : cli_failf(CLT_E_MEMORY, "%s: out of memory", flag);
    }
    return code;
}

int cli_bound_read(const cli_args *args, cli_bound *out) {
    const char *twice, *flag = flag_of(args, &twice);
    culet_error failure = {0};
    int code = 0;
    *out = (cli_bound){.grammar = args->grammar, .json_schema = args->json_schema};
    if (!flag) {
        return 0;
    }
    if (twice) {
        return cli_failf(CLT_E_USAGE, "%s: it does not go together with %s", flag, twice);
    }
    if (args->grammar_file) {
        code = read_file(flag, args->grammar_file, &out->text);
        out->grammar = out->text.data;
    } else if (args->json_schema_file) {
        code = read_file(flag, args->json_schema_file, &out->text);
        out->json_schema = out->text.data;
    }
    culet_generate_params p = {.grammar = out->grammar, .json_schema = out->json_schema};
    if (!code && culet_constraint_check(&p, &failure)) {
        if (failure.status == CULET_REQUEST) {
            failure.status = CULET_USAGE; /* here the request is the command line */
        }
        code = cli_fail_engine(&failure);
    }
    return code;
}

void cli_bound_apply(const cli_bound *b, const cli_args *args, culet_generate_params *p) {
    p->grammar = b->grammar;
    p->json_schema = b->json_schema;
    p->may_think = args->think;
}

void cli_bound_free(cli_bound *b) {
    clt_buf_free(&b->text);
}
