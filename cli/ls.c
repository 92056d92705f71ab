/* culet ls: the models in the model folder, as a table or as JSON. */
#include <string.h>
#include "base/json.h"
#include "out.h"
#include "verbs.h"

static const char *text_of(const clt_json *entry, const char *key) {
    const char *s = clt_json_str(clt_json_get(entry, key), NULL);
    return s ? s : "";
}

static int write_table(const char *list) {
    clt_json *document = NULL;
    clt_buf table = {0};
    clt_err err;
    clt_err_clear(&err);
    if (clt_json_parse(list, strlen(list), "model list", &document, &err)) {
        if (err.code == CLT_E_UNSUPPORTED) {
            clt_hint(&err, "culet ls --json needs no reader");
        }
        return cli_fail(&err);
    }
    for (size_t i = 0; i < clt_json_len(document); i++) {
        const clt_json *entry = clt_json_at(document, i);
        int64_t bytes = 0;
        clt_json_int(clt_json_get(entry, "bytes"), &bytes);
        clt_buf_printf(&table, "%-48s %10.1f MB  %s\n", text_of(entry, "name"), (double)bytes / 1e6,
                       text_of(entry, "format"));
    }
    cli_out_buf(&table);
    if (!clt_json_len(document)) {
        cli_note("ls: the model folder is empty");
    }
    clt_buf_free(&table);
    clt_json_free(document);
    return 0;
}

int cli_ls(const cli_args *args) {
    char *list = NULL;
    culet_error failure = {0};
    int code = args->operands.n ? cli_failf(CLT_E_USAGE, "%s: ls takes no argument", args->operands.items[0]) : 0;
    if (!code && culet_model_list(&list, &failure)) {
        code = cli_fail_engine(&failure);
    }
    if (!code && args->json) {
        cli_out(list, strlen(list));
        cli_out("\n", 1);
    } else if (!code) {
        code = write_table(list);
    }
    culet_free(list);
    return code;
}
