/* culet.h - the public interface of culet, a C runtime for Google's Gemma models.
 *
 * Two nouns: an *engine* is an opened model (immutable, shared by any number of threads and sessions); a *session* is one
 * timeline of tokens with its keys and values (one thread at a time). A session is brought to a token prefix (sync),
 * continued (extend), or cut back (rewind); from any of these roads the same tokens give the same logits, bit for bit.
 *
 * Conventions. Functions that can fail return a status and fill `err` (never NULL). Texts are UTF-8. Strings and arrays that
 * a function hands over are released with culet_free; what is returned as const belongs to the object that returned it.
 * The library never prints, exits or installs signal handlers. */
#ifndef CULET_H
#define CULET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CULET_VERSION "0.1.0"

/* The values are the exit codes of the command line (HTTP statuses: culet_status_http). */
typedef enum culet_status {
    CULET_OK = 0,
    CULET_FAILED = 1,         /* failure while running */
    CULET_USAGE = 2,          /* the caller asked for something impossible */
    CULET_FILE = 3,           /* model file missing, truncated, corrupt or mismatched */
    CULET_MEMORY = 4,         /* does not fit in memory */
    CULET_NETWORK = 5,
    CULET_UNSUPPORTED = 6,    /* model, feature or CPU */
    CULET_CANCELLED = 130,
    CULET_CONTEXT = 1001,     /* prompt longer than the context; exit code 1 */
    CULET_REQUEST = 1002      /* a request document that cannot be honoured; exit code 1 */
} culet_status;

typedef struct culet_error {
    culet_status status;
    char text[8192];          /* one line: what, where, expected, found */
    char hint[512];           /* what to do, or empty */
} culet_error;

int culet_status_exit(culet_status s);
int culet_status_http(culet_status s);
void culet_free(void *p);

/* ---------------------------------------------------------------- engine */

typedef enum culet_kv_type { CULET_KV_F32, CULET_KV_F16, CULET_KV_Q8_0 } culet_kv_type;
typedef enum culet_open_mode {
    CULET_OPEN_FULL,          /* ready to evaluate */
    CULET_OPEN_INSPECT,       /* checked and described, weights not prepared: show */
    CULET_OPEN_TEXT           /* vocabulary and template only: tokenize, render */
} culet_open_mode;

typedef struct culet_engine_params {
    const char *model;              /* a GGUF file, a Hugging Face folder, or a name in the model folder; NULL = default */
    culet_open_mode mode;
    int threads;                    /* 0 = the fast physical cores this process may use, within its CPU quota */
    int threads_batch;              /* for passes over more than one token; 0 = as threads */
    int poll;                       /* 1..100: how long idle threads look for work, then sleep; 0 = 50; -1 = not at all */
    int priority;                   /* -1 low, 0 as it is, 1 medium, 2 high, 3 realtime: nice 5, -5, -10, -20 */
    const char *cpu_mask;           /* CPUs to run on, hexadecimal; NULL = wherever the process may */
    const char *cpu_range;          /* the same as "lo-hi"; both given: either */
    bool cpu_strict;                /* each thread on one CPU of its own. Placement and priority hold for the opening
                                     * thread too; placement until culet_engine_close. A refusal is a warning. */
    /* With plan: weights and plan_sessions (0 = 1) such sessions that do not fit into the free memory are refused before
     * weights are read, with the largest context that fits. A context beyond the model's limit counts as the limit.
     * NULL: the weights alone are judged. */
    const struct culet_session_params *plan;
    int plan_sessions;
    bool skip_memory_check;         /* never refuse by what is free: for systems that state it wrongly */
    const char *mmproj;             /* the vision file (llama.cpp's mmproj, pictures and sound); NULL = what the model's folder
                                     * holds, or the folder's own towers; "" = none */
    const char *chat_template_file; /* overrides the model's own template; NULL = none */
    void (*log)(void *user, const char *line); /* warnings, one line each, no newline; NULL = dropped */
    void (*note)(void *user, const char *line); /* what was done unasked or on request: packed copies; NULL = dropped */
    bool (*progress)(void *user, double done); /* loading, 0..1; false cancels; NULL = none */
    bool pack_cache;                /* write a packed copy of the weights, unless there is a sound one (culet_engine_pack) */
    void *user;
} culet_engine_params;

typedef struct culet_sampling {
    float temperature;              /* 0 = greedy */
    int top_k;                      /* 0 = off */
    float top_p;                    /* 1 = off */
    float min_p;                    /* 0 = off */
    float repeat_penalty;           /* 1 = off */
    int repeat_last_n;              /* tokens looked back for penalties; -1 = whole context, 0 = off */
    float presence_penalty, frequency_penalty; /* 0 = off */
    uint64_t seed;
    bool ignore_eos;                /* end ids neither stop nor are suppressed */
    const int32_t *bias_ids;        /* n_bias pairs; -INFINITY bans */
    const float *bias_values;
    size_t n_bias;
} culet_sampling;

typedef struct culet_engine culet_engine;
typedef struct culet_model_info {
    const char *path;
    const char *format;             /* "GGUF v3", "Hugging Face" */
    const char *architecture;       /* "gemma4", "gemma3" */
    const char *name;               /* as the file calls itself, or "" */
    const char *family;             /* "Gemma 4 E4B", "Gemma 3 270M", or "Gemma 4 (dense, 60 layers)" for unknown sizes */
    int layers, width, heads, vocab; /* vocab = embedding rows = V of logits */
    int context_limit;              /* tokens */
    bool is_base;                   /* no chat: neither a template, nor an end-of-turn id, nor a name that says so */
    const char *template_name;      /* built-in template in use, "" for a base model */
    const char *template_digest;    /* SHA-256 of the file's own template, or "" */
    bool template_recognised;
    culet_sampling sampling;        /* the model's own defaults */
    const int32_t *end_ids;      size_t n_end_ids;
    const int32_t *suppressed_ids; size_t n_suppressed_ids;
    int32_t bos_id;
    const char *cpu_level;          /* "avx2", … */
    int threads, threads_batch;
    double load_ms;
    uint64_t file_bytes, weight_bytes /* packed */, parameters;
    const char *packed_path;        /* the packed copy in use, or NULL */
    const char *vision_path, *audio_path; /* the file or folder with the tower, or NULL: the model cannot see (hear) */
    const char *vision_kind, *audio_kind; /* "encoder", "unified"; "conformer", "unified"; or "" */
    int image_tokens;               /* default budget of a picture */
    double audio_limit_seconds;     /* longest clip; 0 = only the context limits it */
} culet_model_info;

/* Opens and checks a model. The engine is immutable afterwards. */
culet_status culet_engine_open(const culet_engine_params *p, culet_engine **out, culet_error *err);
/* All its sessions must be closed before. NULL is fine. */
void culet_engine_close(culet_engine *e);
const culet_model_info *culet_engine_info(const culet_engine *e);

/* Packed copies: weights as they lie in memory, in ${CULET_HOME:-~/.cache/culet}/packed, keyed by digests of the model
 * and of the layout. Opening a model uses its copy if there is one that is sound and of the same state of the model's
 * file; else it says why not (log) and packs anew. A copy is written only on request, whole or not at all; several
 * processes may do so at once. */
/* Writes the copy of an opened model, unless the engine itself runs from one. *path (may be NULL) = its file. */
culet_status culet_engine_pack(culet_engine *e, char **path, culet_error *err);
/* All copies: one JSON array of {"name","path","bytes","format":"packed","model"}; "model" is "" where the header is
 * damaged. */
culet_status culet_packed_list(char **json, culet_error *err);
/* Removes the copies that `name` means: the file name of one (with or without ".packed"), or a model's path or name, for its
 * copies; NULL for all. *n (may be NULL) = how many. CULET_FILE if there is none of that name. */
culet_status culet_packed_remove(const char *name, size_t *n, culet_error *err);

/* Everything that `culet show --json` prints: config, tensors (name, type, shape, offset, bytes), memory plan for the given
 * session parameters. `text`: a person's view of the same. Needs CULET_OPEN_INSPECT or FULL. */
struct culet_session_params;
culet_status culet_engine_describe(const culet_engine *e, const struct culet_session_params *p, bool text, char **out,
                                   culet_error *err);

/* A path or a name -> an existing file or folder; NULL name = the default model. Names are looked up in the model folder. */
culet_status culet_model_find(const char *name, char **path, culet_error *err);
/* The model folder's entries as lines of JSON objects {"name","path","bytes","format"}: one JSON array. */
culet_status culet_model_list(char **json, culet_error *err);

/* Where the time of an engine's passes went. One entry for each stage that was met; what has weights is told apart by their
 * type. The wall times add up to the time of the passes (and of the sampling). */
typedef struct culet_stage {
    const char *stage;              /* "ffn", "attention projections", "attention", "norms and rows", "lm_head", … */
    const char *type;               /* of the weights, "Q4_0"; "" where there are none */
    double ms;                      /* on the clock */
    double busy_ms;                 /* all threads at work together: threads * ms - busy_ms were spent waiting */
    uint64_t calls;
    uint64_t macs;                  /* multiply-accumulates of weights and inputs. An input that is taken as two 8-bit rows
                                       counts once. */
    uint64_t bytes;                 /* packed weights that were read, once for each group of rows that passed over them */
} culet_stage;
/* Starts counting, or starts anew (on), or stops (off; what was counted can still be read). Costs about 0.1 us per task
 * while it is on, one comparison per job otherwise. Changes no result. No pass of the engine may be running meanwhile. */
culet_status culet_engine_profile(culet_engine *e, bool on, culet_error *err);
/* Fills out with at most max stages, in a fixed order; returns how many there are. 0 if nothing was ever counted. */
size_t culet_engine_stages(const culet_engine *e, culet_stage *out, size_t max);

/* ---------------------------------------------------------------- text */

/* Appends nothing by itself: with `bos` exactly one BOS stands first, also when text begins with its text and `special` is
 * on. */
culet_status culet_tokenize(const culet_engine *e, const char *text, size_t len, bool special, bool bos, int32_t **ids,
                            size_t *n, culet_error *err);
/* The bytes of ids, not repaired. */
culet_status culet_detokenize(const culet_engine *e, const int32_t *ids, size_t n, bool special, char **text, size_t *len,
                              culet_error *err);
/* The stored piece of an id ("▁the", "<0x0A>"); NULL if out of range. Not NUL-terminated beyond len. */
const char *culet_piece(const culet_engine *e, int32_t id, size_t *len);

typedef struct culet_prompt {
    char *text; size_t text_len;    /* exact rendered bytes */
    int32_t *ids; size_t n_ids;
    bool in_thought;                /* the reply begins inside an open thought */
} culet_prompt;
/* Renders an OpenAI-style chat request (messages, tools, add_generation_prompt, continue_final_message,
 * chat_template_kwargs.enable_thinking). CULET_UNSUPPORTED for a base model without --chat-template-file. */
culet_status culet_render(const culet_engine *e, const char *request_json, size_t len, culet_prompt *out, culet_error *err);
/* The same without ids: works also where the vocabulary lacks a token of the template. */
culet_status culet_render_text(const culet_engine *e, const char *request_json, size_t len, culet_prompt *out,
                               culet_error *err);
void culet_prompt_free(culet_prompt *p);

/* ---------------------------------------------------------------- pictures and sound */

/* What a model makes of one picture, sound or video: soft tokens, rows of its width that take the place of embeddings.
 * Immutable, counted, and free of the session: any number of threads and sessions of its engine may share it. */
typedef struct culet_media culet_media;
typedef enum culet_media_kind { CULET_IMAGE, CULET_AUDIO, CULET_VIDEO } culet_media_kind;

/* Exactly one of path, data, rgb and samples. Formats are told by content: JPEG, PNG, WebP; wav, flac, ogg, mp3. */
typedef struct culet_media_source {
    culet_media_kind kind;          /* CULET_IMAGE or CULET_AUDIO */
    const char *path;               /* a file */
    const void *data; size_t n_bytes; /* the bytes of a file */
    const uint8_t *rgb; int width, height; /* a picture that is decoded already: [height][width][3] */
    const float *samples; size_t n_samples; /* a sound that is decoded already: 16 kHz, one channel, full scale is 1 */
    const char *name;               /* for error texts; NULL = path, "image", "audio" */
    int tokens;                     /* budget of a picture: 70, 140, 280, 560, 1120; 0 = the model's default */
} culet_media_source;

typedef struct culet_media_info {
    culet_media_kind kind;
    size_t tokens;                  /* soft tokens; of a video: of all its frames */
    size_t frames;                  /* of a video, else 1 */
    int width, height;              /* of the picture as it was given */
    int resized_width, resized_height;
    double seconds;                 /* of the sound */
    double decode_ms, encode_ms;    /* encode_ms: 0 if `cached` */
    bool cached;                    /* its soft tokens were at hand: same picture or sound, same budget */
    char remark[128];               /* what a person should know of a sound that was taken ("clipped: …"), or "" */
} culet_media_info;

/* CULET_UNSUPPORTED: the model cannot see (hear), or has no vision file; CULET_FAILED: damaged or unusable data. The tower is
 * loaded with the first picture (sound). Another thread may call culet_media_cancel on the engine: CULET_CANCELLED. */
culet_status culet_media_encode(culet_engine *e, const culet_media_source *source, culet_media **out, culet_error *err);
/* A sound file of up to three hours as samples, 16 kHz, one channel: a long one is heard in clips (audio_limit_seconds). Free
 * with culet_free. */
culet_status culet_sound_read(const char *path, float **samples, size_t *n, culet_error *err);
/* Frames (CULET_IMAGE, in order) become one video; seconds[i] = where frame i lies. Keeps its own hold on the frames. */
culet_status culet_media_video(culet_engine *e, culet_media *const *frames, const double *seconds, size_t n,
                               culet_media **out, culet_error *err);
const culet_media_info *culet_media_get_info(const culet_media *m);
culet_media *culet_media_keep(culet_media *m); /* one more holder */
void culet_media_free(culet_media *m);         /* one holder less; NULL is fine */
/* Ends running encodes of the engine soon. May be called from a signal handler. */
void culet_media_cancel(culet_engine *e);

/* A prompt of ids in which pictures, sounds and videos have one placeholder each (as culet_render leaves it), or stand as
 * complete spans begin, n placeholders, end -> the same with complete spans. The k-th of them takes media[k]. CULET_USAGE:
 * another number of media than of places, another kind, a span of another length: both numbers are named. */
culet_status culet_media_expand(const culet_engine *e, const int32_t *ids, size_t n, culet_media *const *media,
                                size_t n_media, int32_t **out, size_t *n_out, culet_error *err);

/* ---------------------------------------------------------------- session */

typedef struct culet_session culet_session;
typedef struct culet_session_params {
    int context;                    /* tokens; 0 = min(model limit, 8192) */
    int batch, ubatch;              /* tokens per pass; 0 = 2048 / 512. Results do not depend on them. */
    culet_kv_type kv_k, kv_v;       /* zero-initialised means f32: use culet_session_defaults */
    int image_tokens;               /* largest picture that is to pass whole, where tokens of a picture see each other; 0 =
                                     * the model's default budget. Larger ones are refused (CULET_USAGE). */
} culet_session_params;
void culet_session_defaults(culet_session_params *p); /* context 0, batch 0, KV f16 */

culet_status culet_session_open(culet_engine *e, const culet_session_params *p, culet_session **out, culet_error *err);
void culet_session_close(culet_session *s);
int culet_session_context(const culet_session *s);
uint64_t culet_session_kv_bytes(const culet_session *s);
/* The timeline. Its last tokens may still wait for evaluation, after a rewind or a generate. */
const int32_t *culet_session_tokens(const culet_session *s, size_t *n);
/* Makes the timeline equal to ids[0..n): keeps the longest common prefix that can be kept, evaluates the rest, and leaves
 * the logits of the last token ready. *reused (may be NULL) = tokens not evaluated again. CULET_CONTEXT if n exceeds the
 * context; CULET_CANCELLED after culet_session_cancel (the timeline then holds what was evaluated). */
culet_status culet_session_sync(culet_session *s, const int32_t *ids, size_t n, size_t *reused, culet_error *err);
/* The same with pictures and sounds: ids as culet_media_expand makes them, the k-th span of placeholders takes media[k]. Two
 * prompts are equal only as far as ids and media are. The session keeps its own hold on the media. Rows of a placeholder
 * without media are embeddings of the placeholder itself. */
culet_status culet_session_sync_media(culet_session *s, const int32_t *ids, size_t n, culet_media *const *media,
                                      size_t n_media, size_t *reused, culet_error *err);
/* The pictures and sounds of the timeline in order, a frame of a video each by itself, also those of a saved session. Each
 * is held for the caller (culet_media_free), who also frees the array (culet_free). */
culet_status culet_session_media(const culet_session *s, culet_media ***out, size_t *n, culet_error *err);
/* Appends and evaluates ids; logits of the last are ready afterwards. n >= 1. */
culet_status culet_session_extend(culet_session *s, const int32_t *ids, size_t n, culet_error *err);
/* Cuts the timeline to its first n tokens. What sliding layers no longer hold is evaluated again at the next sync or extend,
 * so any n is allowed. */
culet_status culet_session_rewind(culet_session *s, size_t n, culet_error *err);
/* Like extend, in passes of as many tokens as the session takes at once and 64 MB of logits hold. The logits [V] of
 * each appended token are handed to fn in order; false from fn cancels (CULET_CANCELLED). fn NULL: they are computed, and only
 * the last are kept. */
culet_status culet_session_extend_all(culet_session *s, const int32_t *ids, size_t n,
                                      bool (*fn)(void *user, size_t row, const float *logits), void *user, culet_error *err);
/* Logits of the last evaluated token: [V] after softcap, before suppression and bias. NULL if nothing was evaluated. */
const float *culet_session_logits(const culet_session *s);
/* Like sync from an empty timeline, and hands the logits [V] of every row to fn in order; false from fn cancels. */
culet_status culet_session_logits_all(culet_session *s, const int32_t *ids, size_t n,
                                      bool (*fn)(void *user, size_t row, const float *logits), void *user, culet_error *err);
culet_status culet_session_logits_all_media(culet_session *s, const int32_t *ids, size_t n, culet_media *const *media,
                                            size_t n_media, bool (*fn)(void *user, size_t row, const float *logits),
                                            void *user, culet_error *err);
/* Asks a running sync, extend, logits_all or generate to stop soon. The only session call that another thread or a signal
 * handler may make. */
void culet_session_cancel(culet_session *s);
/* A saved session continues with the same bytes as if it had never stopped. Loading checks version, model and integrity and
 * leaves the session untouched on failure. Needs libzstd. `extra` is a caller's document (a chat's history); may be NULL. */
culet_status culet_session_save(const culet_session *s, const char *path, const char *extra, size_t extra_len,
                                culet_error *err);
culet_status culet_session_load(culet_session *s, const char *path, char **extra, size_t *extra_len, culet_error *err);

/* ---------------------------------------------------------------- generate */

typedef enum culet_finish {
    CULET_FINISH_STOP, CULET_FINISH_LENGTH, CULET_FINISH_TOOL_CALLS, CULET_FINISH_CANCELLED
} culet_finish;
const char *culet_finish_name(culet_finish f); /* stop length tool_calls cancelled */
typedef enum culet_delta { CULET_DELTA_CONTENT, CULET_DELTA_THOUGHT } culet_delta;

typedef enum culet_tool_choice {
    CULET_TOOLS_AUTO,               /* a call, where the model begins one, is held to the tools */
    CULET_TOOLS_REQUIRED,           /* the reply is one call or more */
    CULET_TOOLS_NONE                /* no call may begin */
} culet_tool_choice;

/* Speculation: tokens that are likely to follow are evaluated in the pass of the one before. It never changes a reply: the
 * same logits are sampled in the same order. */
typedef enum culet_spec {
    CULET_SPEC_OFF,
    CULET_SPEC_LOOKUP,              /* always draft_max tokens of what followed the same words before, or of the prediction */
    CULET_SPEC_AUTO                 /* as many as pay, by what they cost and earn while the reply is made; often none */
} culet_spec;

typedef struct culet_generate_params {
    const int32_t *prompt; size_t n_prompt;
    culet_media *const *media; size_t n_media; /* of the prompt, as in culet_session_sync_media */
    culet_spec spec;
    int draft_max;                  /* 1..32; 0 = as usual: 6 for lookup, 32 for auto */
    const int32_t *prediction; size_t n_prediction; /* what the reply is expected to be, in part or whole; NULL = none */
    int max_tokens;                 /* -1 = until an end id or the context is full */
    culet_sampling sampling;
    const char *const *stops; size_t n_stops; /* stop strings, matched in content; not part of the reply */
    bool raw;                       /* completion: no thought or tool-call parsing */
    bool in_thought;                /* from culet_prompt */
    /* What the content must be, thoughts apart: a GBNF grammar whose rule is `root`, or a JSON Schema; at most one. NULL = free.
     * CULET_REQUEST names what cannot be honoured. A reply that max_tokens cut is a beginning of what was asked for. */
    const char *grammar, *json_schema;
    const char *tools;              /* JSON: OpenAI's list of functions; calls are held to their parameters. NULL = free */
    culet_tool_choice tool_choice;  /* with tools */
    const char *tool_name;          /* CULET_TOOLS_REQUIRED: the one function that may be called; NULL = any */
    bool one_call;                  /* one call at most */
    bool may_think;                 /* a thought may stand before the content that is bound by one of these */
    /* Whole code points only. false cancels. May be NULL. */
    bool (*on_delta)(void *user, culet_delta kind, const char *text, size_t len);
    bool (*on_progress)(void *user, size_t done, size_t total); /* prompt tokens */
    void *user;
} culet_generate_params;

typedef struct culet_timings {
    size_t cache_n, prompt_n, predicted_n, draft_n, draft_n_accepted; /* prompt_n = evaluated; end ids are not counted */
    double prompt_ms, predicted_ms, ttft_ms;
} culet_timings;

typedef struct culet_reply {
    int32_t *ids; size_t n_ids;     /* sampled, thoughts included, without the end id */
    char *text; size_t text_len;    /* content */
    char *thought; size_t thought_len;
    struct { char *name, *arguments; } *calls; size_t n_calls; /* arguments: a JSON object */
    culet_finish finish;
    culet_timings timings;
} culet_reply;
/* What culet_generate would say of its grammar, json_schema, tools, tool_choice and tool_name; needs no engine. */
culet_status culet_constraint_check(const culet_generate_params *p, culet_error *err);
/* Syncs the session to the prompt and generates. On CULET_CANCELLED the reply holds what was produced. Afterwards the
 * timeline is prompt + ids (the last sampled token may not be evaluated yet). */
culet_status culet_generate(culet_session *s, const culet_generate_params *p, culet_reply *out, culet_error *err);
void culet_reply_free(culet_reply *r);

/* ---------------------------------------------------------------- files */

typedef struct culet_quantize_params {
    const char *input;              /* a GGUF file, a Hugging Face folder, or a name in the model folder */
    const char *output;             /* a GGUF file: appears whole or not at all */
    const char *type;               /* "Q4_K_M", "Q8_0", "F16", … */
    const char *imatrix;            /* a file of importances, GGUF or the older form; NULL = none */
    const char *const *overrides; size_t n_overrides; /* "REGEX=TYPE": tensors whose names fit; the first that fits counts */
    int threads;                    /* 0 = the fast physical cores */
    bool (*progress)(void *user, double done); /* 0..1; false cancels and leaves nothing; NULL = none */
    void *user;
} culet_quantize_params;

typedef struct culet_quantized {
    size_t tensors;
    uint64_t bytes_before, bytes;   /* of all tensors */
} culet_quantized;

typedef struct culet_convert_params {
    const char *input;              /* a Hugging Face folder */
    const char *output;             /* a GGUF file: appears whole or not at all */
    const char *type;               /* of the matrices: "F32", "F16", "BF16", "Q8_0"; NULL = as in the folder */
    bool towers;                    /* the vision file (pictures and sound) instead of the text model */
    int threads;                    /* 0 = the fast physical cores */
    bool (*progress)(void *user, double done);
    void *user;
} culet_convert_params;

/* A text model, a drafter, or the towers of a folder as a GGUF file, tensors byte for byte as llama.cpp's converter makes them. */
culet_status culet_convert(const culet_convert_params *p, culet_quantized *out, culet_error *err);

typedef struct culet_imatrix_params {
    const int32_t *ids; size_t n;   /* a text, without BOS */
    int chunk;                      /* tokens of a window, BOS included; 0 = 512 */
    const char *text;               /* its name, for the file; "" = none */
    const char *output;             /* GGUF, or the older form */
    bool old_format;
    bool sensitivity;               /* also how much noise in each matrix's results moves the distribution: for auto recipes */
    bool (*progress)(void *user, double done);
    void *user;
} culet_imatrix_params;

/* Measures the importance of every matrix's inputs over a text and writes it as llama.cpp does. */
culet_status culet_engine_imatrix(culet_engine *e, const culet_imatrix_params *p, culet_error *err);

/* Streams: memory does not grow with the model. CULET_FAILED if the disk lacks room, which is checked first. */
culet_status culet_quantize(const culet_quantize_params *p, culet_quantized *out, culet_error *err);

#ifdef __cplusplus
}
#endif
#endif
