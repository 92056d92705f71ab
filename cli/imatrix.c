/* culet imatrix: how much each input of the model's matrices matters, measured over a text. */
#include <string.h>
#include "base/mem.h"
#include "open.h"
#include "out.h"
#include "prompt.h"
#include "quantize.h"
#include "verbs.h"

static bool is_old_format(const cli_args *args) {
    size_t n = args->out_file ? strlen(args->out_file) : 0;
    return args->imatrix_format == 1 || (args->imatrix_format < 0 && n > 4 && !strcmp(args->out_file + n - 4, ".dat"));
}

static int measure(const cli_args *args, culet_engine *e, const clt_ids *ids) {
    char label[] = "measuring";
    culet_error failure = {0};
    culet_imatrix_params p = {
        .ids = ids->data,
        .n = ids->len,
        .chunk = args->context,
        .text = args->file ? args->file : "",
        .output = args->out_file,
        .old_format = is_old_format(args),
        .sensitivity = args->sensitivity,
        .progress = cli_on_file_progress,
        .user = label,
    };
    culet_status status = culet_engine_imatrix(e, &p, &failure);
    cli_progress_end();
    if (status) {
        return cli_fail_engine(&failure);
    }
    cli_say("%s: %zu tokens", p.output, p.n);
    return 0;
}

int cli_imatrix(const cli_args *args) {
    culet_engine *e = NULL;
    clt_ids ids = {0};
    cli_args plain = *args;
    int code = cli_check_operands(args, 0);
    plain.no_bos = true; /* every window brings its own */
    if (!code && !args->out_file) {
        code = cli_failf(CLT_E_USAGE, "imatrix: -o FILE is missing");
    }
    if (!code && args->sensitivity && is_old_format(args)) {
        code = cli_failf(CLT_E_USAGE, "--sensitivity: the .dat format has no place for it");
    }
    if (!code) {
        code = cli_open_engine(args, CULET_OPEN_FULL, args->threads, &e);
    }
    if (!code) {
        code = cli_read_tokens(&plain, e, &ids);
    }
    if (!code) {
        code = measure(args, e, &ids);
    }
    clt_ids_free(&ids);
    culet_engine_close(e);
    return code;
}
