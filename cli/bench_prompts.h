/* Prompts of an exact number of tokens, made of bench's own texts. */
#ifndef CLI_BENCH_PROMPTS_H
#define CLI_BENCH_PROMPTS_H
#include "base/buf.h"
#include "culet.h"

extern const char cli_bench_system_text[], cli_bench_user_text[];

/* n tokens: a chat request with a system text where the model chats, cut to length word by word, else the bare text cut to
 * length. *is_chat says which it became: a template may need more room than n. Returns 0 or an exit code, the error
 * printed. */
int cli_bench_prompt(const culet_engine *e, size_t n, clt_ids *out, bool *is_chat);

#endif
