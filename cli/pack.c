/* culet pack, culet rm: writes and removes packed copies of models' weights. */
#include <string.h>
#include "base/json.h"
#include "open.h"
#include "out.h"
#include "verbs.h"

static void write_document(const char *path, bool written, uint64_t bytes) {
    clt_buf text = {0};
    clt_jsonw w = {.out = &text};
    clt_jsonw_open(&w, '{');
    clt_jsonw_key(&w, "path");
    clt_jsonw_cstr(&w, path);
    clt_jsonw_key(&w, "weight_bytes");
    clt_jsonw_int(&w, (int64_t)bytes);
    clt_jsonw_key(&w, "written");
    clt_jsonw_bool(&w, written);
    clt_jsonw_close(&w, '}');
    clt_buf_putc(&text, '\n');
    cli_out_buf(&text);
    clt_buf_free(&text);
}

int cli_pack(const cli_args *args) {
    culet_engine *e = NULL;
    culet_error failure = {0};
    char *path = NULL;
    cli_args named = *args;
    int code = cli_check_operands(args, args->model ? 0 : 1);
    if (!code) {
        named.model = args->model || !args->operands.n ? args->model : args->operands.items[0];
        code = cli_open_engine(&named, CULET_OPEN_FULL, args->threads, &e);
    }
    if (!code && culet_engine_pack(e, &path, &failure)) {
        code = cli_fail_engine(&failure);
    }
    if (!code) {
        bool written = !culet_engine_info(e)->packed_path;
        uint64_t bytes = culet_engine_info(e)->weight_bytes;
        if (args->json) {
            write_document(path, written, bytes);
        } else {
            cli_say("%s: %s (%.1f MB)", written ? "packed copy written" : "packed copy is there already", path,
                    (double)bytes / 1e6);
        }
    }
    culet_free(path);
    culet_engine_close(e);
    return code;
}

/* Models themselves are not removed: a name that is no copy's is refused with what it would take. */
static int remove_one(const char *name, bool by_model) {
    culet_error failure = {0};
    size_t n = 0;
    size_t len = strlen(name);
    if (!by_model && (len < 7 || strcmp(name + len - 7, ".packed"))) {
        return cli_failf(CLT_E_UNSUPPORTED, "%s: not a packed copy; removing models is not in this version (with --packed: "
                                            "a model's packed copies)", name);
    }
    if (culet_packed_remove(name, &n, &failure)) {
        return cli_fail_engine(&failure);
    }
    cli_say("%s: %zu packed %s removed", name, n, n == 1 ? "copy" : "copies");
    return 0;
}

int cli_rm(const cli_args *args) {
    culet_error failure = {0};
    size_t n = 0;
    int code = 0;
    if (!args->operands.n && !args->packed) {
        return cli_failf(CLT_E_USAGE, "rm: what is to be removed is missing: NAME, or --packed for all packed copies");
    }
    if (!args->operands.n) {
        if (culet_packed_remove(NULL, &n, &failure)) {
            return cli_fail_engine(&failure);
        }
        cli_say("%zu packed %s removed", n, n == 1 ? "copy" : "copies");
    }
    for (size_t i = 0; i < args->operands.n && !code; i++) {
        code = remove_one(args->operands.items[i], args->packed);
    }
    return code;
}
