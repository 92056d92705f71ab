/* culet ls: the models in the model folder and the packed copies, as a table or as JSON. */
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
        const char *model = text_of(entry, "model");
        clt_buf_printf(&table, "%-48s %10.1f MB  %s%s%s\n", text_of(entry, "name"), (double)bytes / 1e6,
                       text_of(entry, "format"), model[0] ? " copy of " : "", model);
    }
    cli_out_buf(&table);
    if (!clt_json_len(document)) {
        cli_note("ls: the model folder is empty");
    }
    clt_buf_free(&table);
    clt_json_free(document);
    return 0;
}

/* Two JSON arrays as one. */
static void join(clt_buf *out, const char *first, const char *second) {
    size_t n = strlen(first);
    clt_buf_put(out, first, n - 1);
    clt_buf_puts(out, n > 2 && strlen(second) > 2 ? "," : "");
    clt_buf_puts(out, second + 1);
}

int cli_ls(const cli_args *args) {
    char *models = NULL, *copies = NULL;
    clt_buf list = {0};
    culet_error failure = {0};
    int code = args->operands.n ? cli_failf(CLT_E_USAGE, "%s: ls takes no argument", args->operands.items[0]) : 0;
    if (!code && (culet_model_list(&models, &failure) || culet_packed_list(&copies, &failure))) {
        code = cli_fail_engine(&failure);
    }
    if (!code) {
        join(&list, models, copies);
        code = list.failed ? cli_failf(CLT_E_MEMORY, "ls: out of memory") : 0;
    }
    if (!code && args->json) {
        clt_buf_putc(&list, '\n');
        cli_out_buf(&list);
    } else if (!code) {
        code = write_table(list.data);
    }
    clt_buf_free(&list);
    culet_free(models);
    culet_free(copies);
    return code;
}
