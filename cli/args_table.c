/* The one table of all flags: which verbs take them, how their value is read, and their line in the help.
 * The spelling is llama.cpp's where llama.cpp has the flag. A flag may stand here twice with different verbs. */
#include <float.h>
#include <stddef.h>
#include "args.h"

#define V(verb) CLI_IN(CLI_##verb)
#define GENERATE (V(RUN) | V(CHAT))
#define EVALUATE (GENERATE | V(LOGITS) | V(SCORE))
#define TEXTS (V(RUN) | V(TOKENIZE) | V(LOGITS) | V(SCORE))
#define MODEL (EVALUATE | V(TOKENIZE) | V(DETOKENIZE) | V(RENDER) | V(SHOW) | V(BENCH))
#define EVERY ((1u << CLI_VERBS) - 1)
#define AT(field) offsetof(cli_args, field)
#define LATER(names, verbs, value) {names, verbs, CLI_K_ABSENT, 0, 0, 0, value, NULL}

const cli_option cli_options[] = {
    {"-m --model", MODEL, CLI_K_PATH, AT(model), 0, 0, "MODEL",
     "a GGUF file, a Hugging Face folder, or a name in the model folder"},
    {"--chat-template-file", GENERATE | V(RENDER) | V(SHOW), CLI_K_PATH, AT(chat_template_file), 0, 0, "FILE",
     "use this chat template instead of the model's own"},

    {"-p --prompt", TEXTS, CLI_K_TEXTS, AT(prompts), 0, 0, "TEXT", "the text; given several times, the texts are joined"},
    {"-f --file", TEXTS, CLI_K_PATH, AT(file), 0, 0, "FILE",
     "read the text from FILE (- = standard input); one final newline is dropped"},
    {"--ids", TEXTS | V(DETOKENIZE), CLI_K_TEXT, AT(ids), 0, 0, "IDS",
     "token ids, 2,1841,…, or @FILE; no BOS is added and no template applied"},
    {"--ids", V(RENDER), CLI_K_FLAG, AT(ids_only), 0, 0, NULL, "write {\"ids\":[…]} instead of the text"},
    {"--raw", V(RUN), CLI_K_FLAG, AT(raw), 0, 0, NULL,
     "complete the text without a chat template (implied for a base model)"},
    {"--special", TEXTS | V(DETOKENIZE), CLI_K_FLAG, AT(special), 0, 0, NULL,
     "text of special tokens becomes special tokens, and back"},
    {"--no-bos", TEXTS, CLI_K_FLAG, AT(no_bos), 0, 0, NULL, "do not begin with the BOS token"},
    {"-sys --system-prompt", GENERATE, CLI_K_TEXT, AT(system), 0, 0, "TEXT", "system text; needs a chat model"},
    {"--think", GENERATE, CLI_K_CHOICE, AT(think), 0, 0, "off|on",
     "let the model think first; thoughts go to standard error (off)"},
    {"--reasoning-budget", GENERATE, CLI_K_INT, AT(reasoning_budget), -1, INT_MAX, "N",
     "0 = no thinking, -1 = unlimited (-1)"},

    {"-n --predict --n-predict", GENERATE, CLI_K_INT, AT(predict), -1, INT_MAX, "N",
     "tokens to generate at most; -1 = until the model ends or the context is full (-1)"},
    {"-c --ctx-size", EVALUATE | V(SHOW) | V(BENCH), CLI_K_INT, AT(context), 0, INT_MAX, "N",
     "context in tokens; 0 = 8192 or what prompt and -n need, within the model's limit (0)"},
    {"-t --threads", EVALUATE, CLI_K_INT, AT(threads), -1, 1024, "N", "threads; 0 or -1 = all cores (0)"},
    {"-b --batch-size", EVALUATE | V(SHOW), CLI_K_INT, AT(batch), 0, 1 << 20, "N",
     "tokens per request to the engine; 0 = its default (0)"},
    {"-ub --ubatch-size", EVALUATE | V(SHOW), CLI_K_INT, AT(ubatch), 0, 1 << 20, "N",
     "tokens per pass; 0 = its default (0)"},
    {"-ctk --cache-type-k", EVALUATE | V(SHOW), CLI_K_KV, AT(kv_k), 0, 0, "f32|f16|q8_0",
     "type of the keys in the cache (f16)"},
    {"-ctv --cache-type-v", EVALUATE | V(SHOW), CLI_K_KV, AT(kv_v), 0, 0, "f32|f16|q8_0",
     "type of the values in the cache (f16)"},

    {"-s --seed", GENERATE, CLI_K_SEED, AT(seed), 0, 0, "N", "seed of the draws; -1 = a fresh one (-1)"},
    {"--temp --temperature", GENERATE, CLI_K_REAL, AT(temperature), 0, FLT_MAX, "X",
     "temperature; 0 = greedy (the model's)"},
    {"--top-k", GENERATE, CLI_K_INT, AT(top_k), 0, INT_MAX, "N", "keep the N likeliest tokens; 0 = all (the model's)"},
    {"--top-p", GENERATE, CLI_K_REAL, AT(top_p), FLT_MIN, 1, "X",
     "keep the likeliest tokens up to probability X; 1 = all (the model's)"},
    {"--min-p", GENERATE, CLI_K_REAL, AT(min_p), 0, 1, "X",
     "drop tokens below X times the likeliest; 0 = none (the model's)"},
    {"--repeat-penalty", GENERATE, CLI_K_REAL, AT(repeat_penalty), FLT_MIN, FLT_MAX, "X",
     "penalise repeated tokens; 1 = off (1)"},
    {"--repeat-last-n", GENERATE, CLI_K_INT, AT(repeat_last_n), -1, INT_MAX, "N",
     "tokens that penalties look back on; 0 = none, -1 = all (64)"},
    {"--presence-penalty", GENERATE, CLI_K_REAL, AT(presence_penalty), -FLT_MAX, FLT_MAX, "X",
     "penalise tokens that occurred (0)"},
    {"--frequency-penalty", GENERATE, CLI_K_REAL, AT(frequency_penalty), -FLT_MAX, FLT_MAX, "X",
     "penalise tokens by how often they occurred (0)"},
    {"-l --logit-bias", GENERATE, CLI_K_BIAS, AT(biases), 0, 0, "ID+BIAS",
     "add to a token's logit: 15043+1, 15043-1.5; 15043=false bans"},
    {"-r --reverse-prompt", GENERATE, CLI_K_TEXTS, AT(stops), 0, 0, "TEXT", "stop before TEXT; may be given several times"},
    {"--ignore-eos", GENERATE, CLI_K_FLAG, AT(ignore_eos), 0, 0, NULL, "end tokens do not stop the reply"},
    {"--spec", EVALUATE | V(BENCH), CLI_K_CHOICE, AT(spec), 0, 0, "off|lookup|mtp|auto",
     "speculation; this version drafts nothing under auto"},
    {"--spec-draft-n-max", EVALUATE | V(BENCH), CLI_K_INT, AT(draft_max), 1, 32, "N", "tokens drafted at most"},

    {"--all", V(LOGITS), CLI_K_FLAG, AT(all), 0, 0, NULL, "write every row, not only the last"},
    {"--out", V(LOGITS), CLI_K_PATH, AT(out_file), 0, 0, "FILE", "where the little-endian float32 [rows, V] go"},
    {"--save-logits", V(SCORE), CLI_K_PATH, AT(save_logits), 0, 0, "FILE",
     "write the logits of every row to FILE and the ids to FILE.ids"},
    {"--kl-base", V(SCORE), CLI_K_PATH, AT(kl_base), 0, 0, "FILE", "compare with logits saved by --save-logits"},

    {"-p --n-prompt", V(BENCH), CLI_K_INTS, AT(bench_prompt), 0, INT_MAX / 4, "N,…", "prompt tokens to evaluate (512)"},
    {"-n --n-gen", V(BENCH), CLI_K_INTS, AT(bench_gen), 0, INT_MAX / 4, "N,…", "tokens to generate (128)"},
    {"-pg", V(BENCH), CLI_K_PAIRS, AT(bench_pairs), 0, INT_MAX / 4, "PP,TG",
     "a prompt followed by generation, timed together"},
    {"-d --n-depth", V(BENCH), CLI_K_INTS, AT(bench_depth), 0, INT_MAX / 4, "N,…",
     "tokens in the context before the test (0)"},
    {"-t --threads", V(BENCH), CLI_K_INTS, AT(bench_threads), 0, 1024, "N,…", "threads; 0 = all cores (0)"},
    {"-b --batch-size", V(BENCH), CLI_K_INTS, AT(bench_batch), 0, 1 << 20, "N,…", "tokens per request to the engine (2048)"},
    {"-ub --ubatch-size", V(BENCH), CLI_K_INTS, AT(bench_ubatch), 0, 1 << 20, "N,…", "tokens per pass (512)"},
    {"-ctk --cache-type-k", V(BENCH), CLI_K_KVS, AT(bench_kv_k), 0, 0, "f32|f16|q8_0,…",
     "type of the keys in the cache (f16)"},
    {"-ctv --cache-type-v", V(BENCH), CLI_K_KVS, AT(bench_kv_v), 0, 0, "f32|f16|q8_0,…",
     "type of the values in the cache (f16)"},
    {"-r --repetitions", V(BENCH), CLI_K_INT, AT(repetitions), 1, 100000, "N",
     "timed runs of each test, after one warm-up (5)"},
    {"-o --output", V(BENCH), CLI_K_CHOICE, AT(format), 0, 0, "md|csv|json|jsonl", "output format (md)"},

    {"--json", V(RUN) | V(TOKENIZE) | V(LOGITS) | V(SCORE) | V(SHOW) | V(LS) | V(DOCTOR), CLI_K_FLAG, AT(json), 0, 0, NULL,
     "write one JSON document"},
    {"--stats", GENERATE, CLI_K_STATS, AT(stats), 0, 0, "json", "timings on standard error; --stats=json for one JSON line"},
    {"-q --quiet", EVERY, CLI_K_FLAG, AT(quiet), 0, 0, NULL, "no warnings, no progress, no thoughts"},
    {"-v --verbose", EVERY, CLI_K_FLAG, AT(verbose), 0, 0, NULL, "say more on standard error (the seed, counts, times)"},
    {"-h --help", EVERY, CLI_K_FLAG, AT(help), 0, 0, NULL, "this text"},
    {"--version", EVERY, CLI_K_FLAG, AT(version), 0, 0, NULL, NULL},

    {"-md --model-draft", EVALUATE | V(BENCH), CLI_K_ABSENT, AT(draft_model), 0, 0, "FILE", NULL},
    LATER("-mm --mmproj", EVALUATE | V(BENCH) | V(SHOW), "FILE"),
    LATER("--image", EVALUATE, "FILE"),
    LATER("--audio", EVALUATE, "FILE"),
    LATER("--video", GENERATE, "FILE"),
    LATER("--image-tokens", EVALUATE, "N"),
    LATER("--grammar", GENERATE, "TEXT"),
    LATER("--grammar-file", GENERATE, "FILE"),
    LATER("-j --json-schema", GENERATE, "SCHEMA"),
    LATER("--predict-file", GENERATE, "FILE"),
    LATER("--verify-spec", GENERATE, NULL),
    LATER("--quantize-on-load", EVALUATE | V(BENCH), "TYPE"),
    LATER("--profile", EVALUATE | V(BENCH), NULL),
    LATER("--pack-cache", EVALUATE | V(BENCH), NULL),
    LATER("--compare", V(BENCH), "PROGRAM|FILE"),
    LATER("--suite", V(BENCH), "NAME"),
};
const size_t cli_n_options = sizeof(cli_options) / sizeof(cli_options[0]);
