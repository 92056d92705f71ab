/* The commands. Each takes its checked flags and returns the exit code; errors are printed where they occur. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H
#include "args.h"

int cli_run(const cli_args *args);
int cli_chat(const cli_args *args);
int cli_tokenize(const cli_args *args);
int cli_detokenize(const cli_args *args);
int cli_render(const cli_args *args);
int cli_logits(const cli_args *args);
int cli_score(const cli_args *args);
int cli_show(const cli_args *args);
int cli_ls(const cli_args *args);
int cli_pack(const cli_args *args);
int cli_rm(const cli_args *args);
int cli_doctor(const cli_args *args);
int cli_bench(const cli_args *args);
int cli_quantize(const cli_args *args);
int cli_convert(const cli_args *args);
int cli_imatrix(const cli_args *args);
int cli_caption(const cli_args *args);

#endif
