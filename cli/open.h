/* Opens what a command works on: the engine and a session, with the flags that all commands share. */
#ifndef CLI_OPEN_H
#define CLI_OPEN_H
#include "args.h"

/* Opens the model of `args`. Returns 0, or prints the error and returns the exit code. Close with culet_engine_close. */
int cli_open_engine(const cli_args *args, culet_open_mode mode, int threads, culet_engine **out);
/* The session parameters that the flags ask for; `wanted` = tokens that prompt and reply need, used when -c is 0. */
void cli_session_params(const cli_args *args, const culet_engine *e, size_t wanted, culet_session_params *out);
/* As cli_open_engine, for a session. */
int cli_open_session(const cli_args *args, culet_engine *e, size_t wanted, culet_session **out);
/* No command but render takes operands: says so for the first one. 0 if there are no more than `most`. */
int cli_check_operands(const cli_args *args, size_t most);

/* The model's sampling defaults with the flags laid over them. `ids` and `values` receive the bias arrays that `out` points
 * to: free both with clt_free. A fresh seed if none was given. */
int cli_sampling(const cli_args *args, const culet_model_info *info, culet_sampling *out, int32_t **ids, float **values);

const char *cli_kv_name(int kv_type);
const char *cli_spec_name(int spec);
/* A base model that nothing forces to chat. */
bool cli_completes_only(const cli_args *args, const culet_model_info *info);

#endif
