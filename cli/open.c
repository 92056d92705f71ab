/* Engine, session and sampling from the flags. Warnings and the loading bar go to standard error. */
#include "open.h"
#include <math.h>
#include <string.h>
#include "base/cpu.h"
#include "base/mem.h"
#include "base/random.h"
#include "out.h"

enum { DEFAULT_CONTEXT = 8192 };

static void on_log(void *user, const char *line) {
    (void)user;
    cli_note("warning: %s", line);
}

static void on_note(void *user, const char *line) {
    (void)user;
    cli_note("%s", line);
}

static bool on_load_progress(void *user, double done) {
    (void)user;
    cli_progress("loading", done);
    return true;
}

static int largest(const clt_ids *list) {
    int most = 0;
    for (size_t i = 0; i < list->len; i++) {
        most = list->data[i] > most ? list->data[i] : most;
    }
    return most;
}

static int first_or(const clt_ids *list, int otherwise) {
    return list->len ? list->data[0] : otherwise;
}

/* The session that will be opened at least, as far as can be known before the prompt is tokenised. A longer prompt is judged
 * when its session is opened. */
static culet_session_params least_session(const cli_args *args) {
    culet_session_params p = {.context = args->context, .batch = args->batch, .ubatch = args->ubatch,
                              .kv_k = (culet_kv_type)args->kv_k, .kv_v = (culet_kv_type)args->kv_v,
                              .image_tokens = args->image_tokens};
    if (args->verb == CLI_BENCH) {
        int prompt = largest(&args->bench_prompt), generated = largest(&args->bench_gen);
        int depth = largest(&args->bench_depth);
        int longest = prompt > generated ? prompt : generated; /* each below INT_MAX / 4 */
        p.context = p.context ? p.context : longest + depth + 1;
        p.batch = first_or(&args->bench_batch, p.batch);
        p.ubatch = first_or(&args->bench_ubatch, p.ubatch);
        p.kv_k = (culet_kv_type)first_or(&args->bench_kv_k, args->kv_k);
        p.kv_v = (culet_kv_type)first_or(&args->bench_kv_v, args->kv_v);
    } else if (!p.context && args->predict > DEFAULT_CONTEXT) {
        p.context = args->predict;
    }
    return p;
}

int cli_open_engine(const cli_args *args, culet_open_mode mode, int threads, culet_engine **out) {
    culet_session_params least = least_session(args);
    clt_cpu_level level;
    clt_err err;
    clt_err_clear(&err);
    /* Judged here for every mode, so that a wrong CULET_CPU never depends on what a command happens to evaluate. */
    if (clt_cpu_choose(&level, &err)) {
        return cli_fail(&err);
    }
    culet_engine_params p = {
        .model = args->model,
        .mode = mode,
        .threads = threads > 0 ? threads : 0,
        .threads_batch = args->threads_batch > 0 ? args->threads_batch : 0,
        .poll = args->poll ? args->poll : -1,
        .priority = args->priority,
        .cpu_mask = args->cpu_mask,
        .cpu_range = args->cpu_range,
        .cpu_strict = args->cpu_strict,
        .plan = &least,
        .skip_memory_check = !args->memory_check,
        .mmproj = args->mmproj,
        .chat_template_file = args->chat_template_file,
        .pack_cache = args->pack_cache,
        .log = on_log,
        .note = on_note,
        .progress = on_load_progress,
    };
    culet_error failure = {0};
    culet_status st = culet_engine_open(&p, out, &failure);
    cli_progress_end();
    return st ? cli_fail_engine(&failure) : 0;
}

void cli_session_params(const cli_args *args, const culet_engine *e, size_t wanted, culet_session_params *out) {
    int limit = culet_engine_info(e)->context_limit;
    culet_session_defaults(out);
    out->context = args->context;
    if (args->context > limit) {
        cli_note("warning: -c %d is more than the model's limit of %d tokens, which is used instead", args->context, limit);
        out->context = limit;
    }
    if (!args->context) {
        int usual = limit < DEFAULT_CONTEXT ? limit : DEFAULT_CONTEXT;
        int grown = wanted > (size_t)limit ? limit : (int)wanted;
        out->context = grown > usual ? grown : usual;
    }
    out->batch = args->batch;
    out->ubatch = args->ubatch;
    out->image_tokens = args->image_tokens;
    out->kv_k = (culet_kv_type)args->kv_k;
    out->kv_v = (culet_kv_type)args->kv_v;
}

int cli_open_session(const cli_args *args, culet_engine *e, size_t wanted, culet_session **out) {
    culet_session_params p;
    culet_error failure = {0};
    cli_session_params(args, e, wanted, &p);
    return culet_session_open(e, &p, out, &failure) ? cli_fail_engine(&failure) : 0;
}

int cli_check_operands(const cli_args *args, size_t most) {
    if (args->operands.n <= most) {
        return 0;
    }
    clt_err err;
    clt_err_clear(&err);
    clt_fail(&err, CLT_E_USAGE, "%s: not a flag, and this command takes no%s argument here", args->operands.items[most],
             most ? " further" : "");
    clt_hint(&err, "a prompt is given with -p TEXT, a model with -m MODEL");
    return cli_fail(&err);
}

static int sampling_biases(const cli_args *args, const culet_model_info *info, int32_t **ids, float **values) {
    *ids = NULL;
    *values = NULL;
    if (!args->n_biases) {
        return 0;
    }
    *ids = clt_calloc(args->n_biases, sizeof(**ids));
    *values = clt_calloc(args->n_biases, sizeof(**values));
    if (!*ids || !*values) {
        return cli_failf(CLT_E_MEMORY, "--logit-bias: out of memory");
    }
    for (size_t i = 0; i < args->n_biases; i++) {
        if (args->biases[i].id >= info->vocab) {
            return cli_failf(CLT_E_USAGE, "--logit-bias: token %d is outside the vocabulary of %d", args->biases[i].id,
                             info->vocab);
        }
        (*ids)[i] = args->biases[i].id;
        (*values)[i] = args->biases[i].value;
    }
    return 0;
}

static void set_real(float *field, float given) {
    if (!isnan(given)) {
        *field = given;
    }
}

int cli_sampling(const cli_args *args, const culet_model_info *info, culet_sampling *out, int32_t **ids, float **values) {
    *out = info->sampling;
    set_real(&out->temperature, args->temperature);
    set_real(&out->top_p, args->top_p);
    set_real(&out->min_p, args->min_p);
    set_real(&out->repeat_penalty, args->repeat_penalty);
    set_real(&out->presence_penalty, args->presence_penalty);
    set_real(&out->frequency_penalty, args->frequency_penalty);
    out->top_k = args->top_k == CLI_INT_UNSET ? out->top_k : args->top_k;
    out->repeat_last_n = args->repeat_last_n == CLI_INT_UNSET ? out->repeat_last_n : args->repeat_last_n;
    out->seed = args->seed_given ? args->seed : clt_random_entropy();
    out->ignore_eos = args->ignore_eos;
    int code = sampling_biases(args, info, ids, values);
    out->bias_ids = *ids;
    out->bias_values = *values;
    out->n_bias = args->n_biases;
    return code;
}

const char *cli_kv_name(int kv_type) {
    switch (kv_type) {
    case CULET_KV_F32:
        return "f32";
    case CULET_KV_F16:
        return "f16";
    default:
        return "q8_0";
    }
}

const char *cli_spec_name(int spec) {
    static const char *const names[] = {"off", "lookup", "mtp", "auto"};
    return names[spec];
}

bool cli_completes_only(const cli_args *args, const culet_model_info *info) {
    return info->is_base && !args->chat_template_file;
}
