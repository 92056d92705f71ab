/* culet show: what a model file holds and what it would need in memory. Reads no weights. */
#include "open.h"
#include "out.h"
#include "verbs.h"

int cli_show(const cli_args *args) {
    cli_args named = *args;
    culet_engine *e = NULL;
    culet_session_params p;
    culet_error failure = {0};
    char *text = NULL;
    int code = cli_check_operands(args, args->model ? 0 : 1);
    if (!code) {
        named.model = args->model || !args->operands.n ? args->model : args->operands.items[0];
        code = cli_open_engine(&named, CULET_OPEN_INSPECT, args->threads, &e);
    }
    if (!code) {
        cli_session_params(args, e, 0, &p);
        if (culet_engine_describe(e, &p, !args->json, &text, &failure)) {
            code = cli_fail_engine(&failure);
        } else {
            clt_buf shown = {0};
            clt_buf_puts(&shown, text);
            if (shown.len && shown.data[shown.len - 1] != '\n') {
                clt_buf_putc(&shown, '\n');
            }
            cli_out_buf(&shown);
            clt_buf_free(&shown);
        }
    }
    culet_free(text);
    culet_engine_close(e);
    return code;
}
