/* culet render: an OpenAI chat request (a JSON file) -> the exact prompt text, or its ids. Opens no media. */
#include "base/json.h"
#include "open.h"
#include "out.h"
#include "prompt.h"
#include "verbs.h"

static void write_ids(const culet_prompt *p) {
    clt_buf document = {0};
    clt_jsonw w = {.out = &document};
    clt_jsonw_open(&w, '{');
    clt_jsonw_key(&w, "ids");
    clt_jsonw_open(&w, '[');
    for (size_t i = 0; i < p->n_ids; i++) {
        clt_jsonw_int(&w, p->ids[i]);
    }
    clt_jsonw_close(&w, ']');
    clt_jsonw_close(&w, '}');
    clt_buf_putc(&document, '\n');
    cli_out_buf(&document);
    clt_buf_free(&document);
}

int cli_render(const cli_args *args) {
    culet_engine *e = NULL;
    clt_buf request = {0};
    culet_prompt prompt = {0};
    culet_error failure = {0};
    int code = cli_check_operands(args, 1);
    if (!code && !args->operands.n && cli_in_terminal()) {
        code = cli_failf(CLT_E_USAGE, "render: no request file was given");
    }
    if (!code) {
        code = cli_open_engine(args, CULET_OPEN_TEXT, 0, &e);
    }
    if (!code) {
        code = cli_read_source(args->operands.n ? args->operands.items[0] : "-", &request);
    }
    const char *json = request.data ? request.data : "";
    if (!code && (args->ids_only ? culet_render(e, json, request.len, &prompt, &failure)
                                 : culet_render_text(e, json, request.len, &prompt, &failure))) {
        code = cli_fail_engine(&failure);
    } else if (!code && args->ids_only) {
        write_ids(&prompt);
    } else if (!code) {
        cli_out(prompt.text, prompt.text_len);
    }
    culet_prompt_free(&prompt);
    clt_buf_free(&request);
    culet_engine_close(e);
    return code;
}
