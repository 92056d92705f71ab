/* The published numbers. Both publications measured on an Apple M4 Max with the released weights. */
#include "bench_published.h"

#define NOT_YET "not in this version"
const char cli_published_not_yet[] = NOT_YET;

const char cli_published_speed_title[] =
    "A. A benchmark of Gemma 4 on an Apple M4 Max: greedy, thinking off, a prompt of 52 tokens (system and user, an "
    "explanation of 300 words asked for), 256 new tokens. Tokens per second.";

const cli_published_speed cli_published_speeds[] = {
    {"transformers, CPU, bf16", "E4B", "", "8.70"},
    {"transformers, MPS, bf16", "E4B", "", "20.99"},
    {"transformers, MPS, bf16", "E2B", "", "26.77"},
    {"llama.cpp, Metal, BF16 GGUF", "E4B", "499", "21.52"},
    {"llama.cpp, Metal, UD Q4_K_XL", "26B-A4B", "300–345", "41–44"},
    {"transformers, MPS, with the MTP assistant (78 M)", "E2B, E4B", "", "15–19 % slower than without"},
};
const size_t cli_n_published_speeds = sizeof(cli_published_speeds) / sizeof(cli_published_speeds[0]);

const char cli_published_line_title[] =
    "B. A Core ML bundle of E4B with a Swift runtime on an Apple M4 Max: int4 weights, int8 embeddings, context 2048, "
    "greedy.";

const cli_published_line cli_published_lines[] = {
    {"generation", "31.1 tokens/s", CLI_OURS_GENERATION, NULL},
    {"prompt of 512 tokens", "670 tokens/s", CLI_OURS_PREFILL_512, NULL},
    {"time to first token, 28 tokens", "83 ms", CLI_OURS_TTFT_28, NULL},
    {"time to first token, 512 tokens", "764 ms", CLI_OURS_TTFT_512, NULL},
    {"second turn: 53 tokens, 35 reused", "67 ms", CLI_OURS_TTFT_SECOND, NULL},
    {"load, cold", "2.84 s", CLI_OURS_LOAD_COLD, NULL},
    {"load, warm", "2.50 s", CLI_OURS_LOAD_WARM, NULL},
    {"resident memory", "4.0 GB", CLI_OURS_MEMORY, NULL},
    {"on disk", "6.5 GB, and 0.31 GB for pictures", CLI_OURS_DISK, NULL},
    {"prompt lookup, verbatim copy: ratio at draft 6 / 4", "3.49 / 3.13, acceptance 0.86", CLI_OURS_NONE, NOT_YET},
    {"prompt lookup, enumeration", "0.77 / 0.82, acceptance 0.21", CLI_OURS_NONE, NOT_YET},
    {"prompt lookup, JSON", "0.96 / 0.94, acceptance 0.38", CLI_OURS_NONE, NOT_YET},
    {"prompt lookup, prose", "0.98 / 0.98, acceptance 0.29", CLI_OURS_NONE, NOT_YET},
    {"picture 768×768 to 256 tokens: encode on GPU / CPU", "93 / 313 ms", CLI_OURS_NONE, NOT_YET},
    {"time to first token with a picture", "0.75 s", CLI_OURS_NONE, NOT_YET},
    {"warm camera cycle", "1.44 s", CLI_OURS_NONE, NOT_YET},
    {"against transformers float32: greedy tokens equal; argmax", "32 of 32; 20 of 20", CLI_OURS_NONE,
     "not timed here: ./check compares with references"},
    {"largest difference of logits; cosine", "2.98e-4; 0.999997", CLI_OURS_NONE,
     "not timed here: ./check compares with references"},
    {"vision tower against transformers", "658 of 658 tensors", CLI_OURS_NONE, NOT_YET},
};
const size_t cli_n_published_lines = sizeof(cli_published_lines) / sizeof(cli_published_lines[0]);

const char cli_published_differs[] =
    "What differs: the machine (theirs an Apple M4 Max with its GPU or neural engine, ours the one named above, CPU alone); "
    "the model, its weights and their types (theirs as each line says, ours the file named above, whatever it holds); the "
    "prompts (ours are texts of our own of the same kinds and lengths: a chat where the model chats and its template leaves "
    "room, else "
    "bare text; end tokens do not stop generation, so that every run has the same length). Every condition "
    "ran in a process of its own; the first run of each warmed up and does not count; medians. Load is the start of the "
    "process to its first token; resident memory is the peak of a process with a 512-token prompt and 128 tokens.";
