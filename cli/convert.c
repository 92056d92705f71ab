/* culet convert: a Hugging Face folder in, a GGUF file out. */
#include "out.h"
#include "quantize.h"
#include "verbs.h"

int cli_convert(const cli_args *args) {
    char label[] = "converting";
    if (args->operands.n != 2) {
        return cli_failf(CLT_E_USAGE, "convert: %zu arguments, expected two: FOLDER OUTPUT", args->operands.n);
    }
    culet_convert_params p = {
        .input = args->operands.items[0],
        .output = args->operands.items[1],
        .type = args->outtype,
        .towers = args->towers,
        .threads = args->threads > 0 ? args->threads : 0,
        .progress = cli_on_file_progress,
        .user = label,
    };
    culet_quantized done;
    culet_error failure = {0};
    culet_status status = culet_convert(&p, &done, &failure);
    cli_progress_end();
    return status ? cli_fail_engine(&failure) : cli_file_written(args, p.output, p.type, &done);
}
