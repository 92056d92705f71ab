/* Fuzzes chat rendering: a request as JSON -> every generation. What is rendered starts with one <bos> and its pieces cover
 * it; what is refused says why. The bytes also serve as a template text to be recognised. */
#include <stdlib.h>
#include <string.h>
#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const clt_prompt *p) {
    size_t covered = 0;
    if (p->n_pieces == 0 || p->text.len < 5 || memcmp(p->text.data, "<bos>", 5) != 0) abort();
    for (size_t i = 0; i < p->n_pieces; i++) {
        if (p->pieces[i].offset != covered || p->pieces[i].len == 0) abort();
        if (i && p->pieces[i].kind == CLT_PIECE_TEXT && p->pieces[i - 1].kind == CLT_PIECE_TEXT) abort();
        covered += p->pieces[i].len;
    }
    if (covered != p->text.len) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_json *request;
    clt_err err;
    clt_chat_options options;
    clt_chat_template t;
    clt_chat_recognise((const char *)data, size, &(clt_chat_facts){0}, &t);
    if (clt_json_parse((const char *)data, size, "request", &request, &err) != CLT_OK) return 0;
    clt_status status = clt_chat_read_options(request, &options, &err);
    for (int g = 0; g < CLT_CHAT_GENERATIONS && status == CLT_OK; g++) {
        clt_prompt p;
        t = (clt_chat_template){.generation = (clt_chat_generation)g, .closed_thought = size % 2};
        clt_err_clear(&err);
        if (clt_chat_render(&t, request, &options, &p, &err) == CLT_OK) check(&p);
        else if (err.code != CLT_E_REQUEST || !err.text[0] || p.text.data) abort();
        clt_prompt_free(&p);
    }
    clt_json_free(request);
    return 0;
}
