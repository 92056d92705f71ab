/* Cuts texts to a number of tokens. A chat prompt is rendered again and again with fewer words until it fits; what is then
 * still missing is filled with short words. */
#include "bench_prompts.h"
#include <string.h>
#include "open.h"
#include "out.h"
#include "prompt.h"

/* Bytes of the text's first `words` words; the text is read again from its start when it ends. */
static void first_words(size_t words, clt_buf *out) {
    const char *s = cli_bench_user_text;
    for (size_t i = 0; i < words; i++) {
        size_t n = strcspn(s, " ");
        clt_buf_printf(out, "%s%.*s", i ? " " : "", (int)n, s);
        s += n + (s[n] == ' ');
        s = *s ? s : cli_bench_user_text;
    }
}

/* Renders the chat with so many words and fillers. */
static int render(const culet_engine *e, size_t words, size_t fillers, clt_ids *out) {
    clt_buf user = {0}, messages = {0}, request = {0};
    culet_prompt prompt = {0};
    culet_error failure = {0};
    int code = 0;
    first_words(words, &user);
    for (size_t i = 0; i < fillers; i++) {
        clt_buf_puts(&user, " a");
    }
    cli_message(&messages, "system", cli_bench_system_text, strlen(cli_bench_system_text));
    clt_buf_putc(&messages, ',');
    cli_message(&messages, "user", user.data ? user.data : "", user.len);
    cli_request(&request, messages.data, messages.len, false);
    out->len = 0;
    if (user.failed || messages.failed || request.failed) {
        code = cli_failf(CLT_E_MEMORY, "bench: out of memory for a prompt");
    } else if (culet_render(e, request.data, request.len, &prompt, &failure)) {
        code = cli_fail_engine(&failure);
    } else {
        clt_ids_append(out, prompt.ids, prompt.n_ids);
        code = out->failed ? cli_failf(CLT_E_MEMORY, "bench: out of memory for a prompt") : 0;
    }
    culet_prompt_free(&prompt);
    clt_buf_free(&user);
    clt_buf_free(&messages);
    clt_buf_free(&request);
    return code;
}

/* The most words that fit into n tokens, then fillers. *fits = false if not even no word fits, or n is not met. */
static int render_exactly(const culet_engine *e, size_t n, clt_ids *out, bool *fits) {
    size_t few = 0, many = n + 1; /* a word is at least a token: n + 1 words are too many */
    int code = render(e, 0, 0, out);
    *fits = out->len <= n;
    while (!code && *fits && few + 1 < many) {
        size_t middle = few + (many - few) / 2;
        code = render(e, middle, 0, out);
        few = out->len <= n ? middle : few;
        many = out->len <= n ? many : middle;
    }
    for (size_t fillers = 0; !code && *fits; fillers++) {
        code = render(e, few, fillers, out);
        if (out->len >= n || fillers > n) {
            break;
        }
    }
    *fits = *fits && out->len == n;
    return code;
}

int cli_bench_prompt(const culet_engine *e, size_t n, clt_ids *out, bool *is_chat) {
    int code = 0;
    *is_chat = false;
    if (!culet_engine_info(e)->is_base) {
        code = render_exactly(e, n, out, is_chat);
    }
    if (code || *is_chat) {
        return code;
    }
    clt_buf text = {0};
    first_words(n, &text); /* a word is at least a token */
    out->len = 0;
    code = text.failed ? cli_failf(CLT_E_MEMORY, "bench: out of memory for a prompt")
                       : cli_tokenize_text(e, text.data ? text.data : "", text.len, false, true, out);
    if (!code && out->len < n) {
        code = cli_failf(CLT_E_FAILED, "bench: the prompt has %zu tokens, expected at least %zu", out->len, n);
    }
    out->len = code ? out->len : n;
    clt_buf_free(&text);
    return code;
}
