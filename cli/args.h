/* The command line: argv -> one checked cli_args.
 *
 * In: argv after the verb. Out: every flag's value with its range checked, or one usage error that names the flag. The table
 * of flags is args_table.c; it also feeds the help. Nothing here opens a file. Strings point into argv. */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H
#include <limits.h>
#include "base/buf.h"
#include "base/err.h"
#include "culet.h"

typedef enum cli_verb {
    CLI_RUN,
    CLI_CHAT,
    CLI_TOKENIZE,
    CLI_DETOKENIZE,
    CLI_RENDER,
    CLI_LOGITS,
    CLI_SCORE,
    CLI_SHOW,
    CLI_LS,
    CLI_PACK,
    CLI_RM,
    CLI_DOCTOR,
    CLI_BENCH,
    CLI_QUANTIZE,
    CLI_CONVERT,
    CLI_IMATRIX,
    CLI_CAPTION,
    CLI_VERBS
} cli_verb;

typedef enum cli_stats { CLI_STATS_NONE, CLI_STATS_TEXT, CLI_STATS_JSON } cli_stats;
typedef enum cli_spec { CLI_SPEC_OFF, CLI_SPEC_LOOKUP, CLI_SPEC_MTP, CLI_SPEC_AUTO } cli_spec; /* order of the choices */
typedef enum cli_format { CLI_MD, CLI_CSV, CLI_JSON, CLI_JSONL, CLI_SQL } cli_format;           /* order of the choices */

typedef struct cli_strings {
    const char **items;
    size_t n;
} cli_strings;

/* What a prompt is made of, in the order of its flags. */
typedef enum cli_part_kind { CLI_PART_TEXT, CLI_PART_FILE, CLI_PART_IMAGE, CLI_PART_AUDIO, CLI_PART_VIDEO } cli_part_kind;
typedef struct cli_part {
    cli_part_kind kind;
    const char *value; /* the text, or a file's name */
} cli_part;

typedef struct cli_bias {
    int32_t id;
    float value; /* -INFINITY bans */
} cli_bias;

/* Marks a value that was not given, so that the model's own default applies. */
#define CLI_INT_UNSET INT_MIN
/* Floats that were not given are NaN. */

typedef struct cli_args {
    cli_verb verb;
    bool help, version;

    const char *model, *chat_template_file;
    const char *draft_model;          /* only to tell a missing drafter from a missing feature */
    cli_strings prompts;              /* every -p, in order */
    const char *file, *system;
    cli_part *parts;                  /* -p, -f, --image, --audio and --video as they came */
    size_t n_parts, n_media;          /* n_media: of them, those that are no text */
    const char *mmproj;               /* NULL = the model's own */
    int image_tokens;                 /* budget of a picture; 0 = the model's */
    const char *dir, *video, *camera; /* of caption */
    float every;                      /* seconds between frames */
    int frames;                       /* captions at most; 0 = all */
    const char *ids;                  /* "2,1841" or "@FILE" */
    bool ids_only;                    /* render --ids */
    cli_strings operands;             /* arguments that are no flags */
    bool raw, special, no_bos, json, all, quiet, verbose;
    int stats;                        /* cli_stats */

    int context, predict, threads, threads_batch, batch, ubatch;
    int priority, poll, cpu_strict;   /* poll 0..100 */
    const char *cpu_mask, *cpu_range;
    bool pack_cache, packed;
    int memory_check;                 /* order of the choices: 0 = off, 1 = on */
    int kv_k, kv_v;                   /* culet_kv_type */

    float temperature, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty;
    int top_k, repeat_last_n;
    uint64_t seed;
    bool seed_given, ignore_eos;
    cli_bias *biases;
    size_t n_biases;
    cli_strings stops;

    const char *grammar, *grammar_file, *json_schema, *json_schema_file; /* at most one, see bound.h */

    int think;                        /* order of the choices: 0 = off, 1 = on */
    int reasoning_budget;             /* -1 = unlimited, 0 = no thinking */
    int spec, draft_max;              /* cli_spec */
    const char *predict_file;         /* what the reply is expected to be; NULL = nothing */
    bool verify_spec;

    const char *out_file, *save_logits, *kl_base;
    const char *imatrix;              /* of quantize */
    cli_strings tensor_types;         /* every --tensor-type, in order */
    const char *outtype;              /* of convert */
    bool towers;                      /* convert: the vision file instead of the text model */
    bool sensitivity;                 /* imatrix: measure that, too */
    int imatrix_format;               /* order of the choices: 0 = GGUF, 1 = .dat; -1 = as the name of the file says */

    clt_ids bench_prompt, bench_gen, bench_pairs /* pp,tg,pp,tg… */, bench_depth, bench_threads, bench_batch, bench_ubatch;
    clt_ids bench_kv_k, bench_kv_v;   /* culet_kv_type */
    clt_ids bench_rows;               /* --rows */
    cli_strings bench_models;         /* every -m of bench, in order */
    int repetitions, delay_s, timeout_s; /* timeout_s: of each run of the other program; 0 = chosen from our own time */
    int bandwidth_mib;                /* read in each pass of the bandwidth's measurement; 0 = its default */
    int format, format_err;           /* cli_format; format_err -1 = none */
    bool no_warmup, show_tests, profile, bandwidth, load, ttft, memory, sha256;
    const char *compare;              /* a program or a file of earlier results */
    int suite, probe;                 /* -1 = none; probe: cli_probe, the work of a process that bench started */
    const char *since;                /* of a probe: when it was started, milliseconds of the monotonic clock */

    const char *absent;               /* first flag given whose feature this version lacks */
} cli_args;

/* How a flag's value is read. */
typedef enum cli_kind {
    CLI_K_FLAG,    /* bool: no value */
    CLI_K_TEXT,    /* const char *: any text, empty included */
    CLI_K_PATH,    /* const char *: not empty */
    CLI_K_PATHS,   /* cli_strings: appended, not empty */
    CLI_K_TEXTS,   /* cli_strings: appended */
    CLI_K_PART,    /* the next part of the prompt; `min` is its cli_part_kind. Texts and files also go to the field */
    CLI_K_INT,     /* int within min..max */
    CLI_K_REAL,    /* float within min..max */
    CLI_K_SEED,    /* uint64_t; -1 = random */
    CLI_K_BIAS,    /* ID+BIAS, ID-BIAS, ID=false */
    CLI_K_CHOICE,  /* int: index of the value within `value`, a list such as "off|on" */
    CLI_K_KV,      /* int: culet_kv_type */
    CLI_K_STATS,   /* int: cli_stats; value optional and only with "=" */
    CLI_K_INTS,    /* clt_ids: comma-separated list, appended; ranges A-B, A-B+STEP, A-B*FACTOR */
    CLI_K_PAIRS,   /* clt_ids: "PP,TG", appended */
    CLI_K_KVS,     /* clt_ids: comma-separated culet_kv_type, appended */
    CLI_K_ABSENT,  /* a feature of a later version; with or without a value, as `value` says */
} cli_kind;

#define CLI_IN(verb) (1u << (verb))

typedef struct cli_option {
    const char *names;  /* "-c --ctx-size" */
    unsigned verbs;     /* CLI_IN(...) | ... */
    cli_kind kind;
    size_t offset;      /* into cli_args */
    double min, max;
    const char *value;  /* the value's name in the help, or the choices; NULL = takes none */
    const char *help;   /* NULL = not listed */
} cli_option;

extern const cli_option cli_options[];
extern const size_t cli_n_options;

/* Fills `args` (defaults first). CLT_E_USAGE names the flag; CLT_E_UNSUPPORTED a feature that this version lacks. With
 * --help or --version given, the rest is not judged. Free with cli_args_free also after a failure. */
clt_status cli_args_parse(cli_verb verb, int argc, char **argv, cli_args *args, clt_err *err);
void cli_args_free(cli_args *args);
/* Changes one sampling value by its long name without dashes ("temp", "top_k"), as chat's /set does. */
clt_status cli_args_set(cli_args *args, const char *name, const char *value, clt_err *err);
/* The flags of a verb, one per line. */
void cli_args_help(cli_verb verb, clt_buf *out);
/* The candidate nearest to `word` among n, or NULL if none is near. */
const char *cli_nearest(const char *word, const char *const *candidates, size_t n);

/* A whole decimal integer within min..max; false otherwise (junk, spaces, overflow). */
bool cli_read_int(const char *text, long long min, long long max, long long *out);
/* A whole finite decimal number; false otherwise. */
bool cli_read_real(const char *text, double *out);

#endif
