/* culet quantize: a model file in, a smaller one out. */
#include "quantize.h"
#include "base/json.h"
#include "out.h"
#include "verbs.h"

bool cli_on_file_progress(void *user, double done) {
    cli_progress(user, done);
    return true;
}

static void write_document(const char *path, const char *type, const culet_quantized *q) {
    clt_buf text = {0};
    clt_jsonw w = {.out = &text};
    clt_jsonw_open(&w, '{');
    clt_jsonw_key(&w, "path");
    clt_jsonw_cstr(&w, path);
    if (type) {
        clt_jsonw_key(&w, "type");
        clt_jsonw_cstr(&w, type);
    }
    clt_jsonw_key(&w, "tensors");
    clt_jsonw_int(&w, (int64_t)q->tensors);
    clt_jsonw_key(&w, "bytes_before");
    clt_jsonw_int(&w, (int64_t)q->bytes_before);
    clt_jsonw_key(&w, "bytes");
    clt_jsonw_int(&w, (int64_t)q->bytes);
    clt_jsonw_close(&w, '}');
    clt_buf_putc(&text, '\n');
    cli_out_buf(&text);
    clt_buf_free(&text);
}

int cli_file_written(const cli_args *args, const char *path, const char *type, const culet_quantized *q) {
    if (args->json) {
        write_document(path, type, q);
    } else {
        cli_say("%s: %zu tensors, %.1f MB (before: %.1f MB)", path, q->tensors, (double)q->bytes / 1e6,
                (double)q->bytes_before / 1e6);
    }
    return 0;
}

int cli_quantize(const cli_args *args) {
    char label[] = "quantising";
    if (args->operands.n != 3) {
        return cli_failf(CLT_E_USAGE, "quantize: %zu arguments, expected three: MODEL OUTPUT TYPE", args->operands.n);
    }
    culet_quantize_params p = {
        .input = args->operands.items[0],
        .output = args->operands.items[1],
        .type = args->operands.items[2],
        .imatrix = args->imatrix,
        .overrides = args->tensor_types.items,
        .n_overrides = args->tensor_types.n,
        .threads = args->threads > 0 ? args->threads : 0,
        .progress = cli_on_file_progress,
        .user = label,
    };
    culet_quantized done;
    culet_error failure = {0};
    culet_status status = culet_quantize(&p, &done, &failure);
    cli_progress_end();
    return status ? cli_fail_engine(&failure) : cli_file_written(args, p.output, p.type, &done);
}
