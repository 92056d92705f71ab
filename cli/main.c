/* culet: finds the command, reads its flags, runs it. Holds the table of commands and writes all help texts. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "out.h"
#include "signals.h"
#include "verbs.h"

typedef struct command {
    const char *name;
    int (*run)(const cli_args *args);
    const char *usage, *summary, *notes;
} command;

/* In the order of cli_verb. */
static const command commands[CLI_VERBS] = {
    {"run", cli_run, "[-m MODEL] -p TEXT | -f FILE | --ids IDS", "one reply to one prompt",
     "Without -p, -f and --ids the prompt comes from standard input. Standard output carries the reply alone."},
    {"chat", cli_chat, "[-m MODEL]", "a conversation", "/? inside the chat lists its commands."},
    {"tokenize", cli_tokenize, "[-m MODEL] -p TEXT | -f FILE", "text to token ids", ""},
    {"detokenize", cli_detokenize, "[-m MODEL] --ids IDS", "token ids to bytes", ""},
    {"render", cli_render, "[-m MODEL] FILE.json", "the exact prompt of an OpenAI chat request",
     "Reads messages, tools, add_generation_prompt, continue_final_message and chat_template_kwargs.enable_thinking."},
    {"logits", cli_logits, "[-m MODEL] --ids IDS --out FILE [--all]", "the model's logits as raw float32",
     "Rows of V values, V = rows of the embedding table; after the softcap, before suppression and bias."},
    {"score", cli_score, "[-m MODEL] -f FILE", "negative log-likelihood, perplexity, divergence from saved logits",
     "The text is cut into windows of the context's size. Each begins with BOS, unless --no-bos; its first token is not "
     "scored.\n"
     "FILE of --save-logits holds float32 [rows, V], FILE.ids int32 [rows], both little-endian; every row of every window "
     "counts."},
    {"show", cli_show, "[-m MODEL] [--json]", "configuration, tensors and memory plan of a model", ""},
    {"ls", cli_ls, "[--json]", "the models in the model folder, and packed copies", ""},
    {"pack", cli_pack, "[-m MODEL]", "a packed copy of a model's weights, for faster loading",
     "The copy lies in $CULET_HOME/packed and is used by itself as long as the model's file stays as it is."},
    {"rm", cli_rm, "NAME… | --packed [MODEL…]", "remove packed copies",
     "NAME is the name of a copy as ls shows it. With --packed: the copies of these models, or all copies."},
    {"doctor", cli_doctor, "[--json]", "this machine: CPU, memory, disk, model folder, what was built in", ""},
    {"bench", cli_bench, "[-m MODEL]… [-p N,…] [-n N,…] [-d N,…] [-t N,…]", "speed: a grid of tests, or one of the modes below",
     "Lists take ranges (64-256+64, 1-8*2) and repeated flags, and are combined into a grid of tests. Every test warms up, "
     "then runs\n-r times: depth tokens first (not timed), then the prompt at once, then generation token by token, of random "
     "ids, without\nsampling. pp512 is a prompt of 512 tokens, tg128 generation of 128, @ d2048 behind 2048 others.\n"
     "--load, --ttft, --memory, --image and --rows measure other things, each in a process of its own, and leave out the grid unless "
     "-p, -n\nor -pg is given. --compare runs another program in turns with this one; --suite lays published tables beside "
     "ours.\n"
     "Fields have llama-bench's names. --output json is one array, jsonl an object per line."},
    {"quantize", cli_quantize, "[--imatrix FILE] [--tensor-type REGEX=TYPE]… MODEL OUTPUT.gguf TYPE", "a smaller copy of a model",
     "TYPE is Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q2_K_S Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ4_NL IQ4_XS F32 F16 BF16."},
    {"convert", cli_convert, "[--outtype TYPE] [--mmproj] FOLDER OUTPUT.gguf", "a Hugging Face folder as a GGUF file",
     "Text models and drafters; with --mmproj the towers for pictures and sound."},
    {"imatrix", cli_imatrix, "[-m MODEL] -f FILE -o OUTPUT", "how much each input of a model's matrices matters, for quantize",
     "Any text of the kind that the model will meet serves; a few thousand tokens suffice."},
    {"caption", cli_caption, "[-m MODEL] --image FILE… | --dir DIR | --video FILE | --camera DEVICE | --audio FILE…",
     "what is to be seen in pictures, or said in recordings",
     "-p replaces the question that the model is asked about each of them. While one caption is generated the next picture is\n"
     "captured and encoded; of a camera, the newest frame is next. --json writes a line for each caption, with the milliseconds\n"
     "of its capture, its encoding, the wait for both, reading, generating, and of the cycle as a whole.\n"
     "With --out FILE captions are added to FILE, and pictures that have one there are left out: a run may be interrupted."},
};

static const char *const later[] = {"serve", "verify", "pull"};
enum { N_LATER = sizeof(later) / sizeof(later[0]) };

static int help_all(void) {
    clt_buf text = {0};
    clt_buf_puts(&text, "culet " CULET_VERSION ": runs Google's Gemma models\n\nusage: culet COMMAND [FLAGS]\n\n");
    for (size_t i = 0; i < CLI_VERBS; i++) {
        clt_buf_printf(&text, "  %-12s %s\n", commands[i].name, commands[i].summary);
    }
    clt_buf_puts(
        &text,
        "\nculet COMMAND -h lists the flags of a command; culet --version prints the version.\n"
        "exit codes: 0 ok, 1 failed, 2 usage, 3 model file, 4 memory, 5 network, 6 unsupported, 130 and 143 interrupted\n");
    cli_out_buf(&text);
    clt_buf_free(&text);
    return 0;
}

static int help_of(cli_verb verb) {
    const command *c = &commands[verb];
    clt_buf text = {0};
    clt_buf_printf(&text, "usage: culet %s %s\n%s.\n", c->name, c->usage, c->summary);
    if (c->notes[0]) {
        clt_buf_printf(&text, "%s\n", c->notes);
    }
    clt_buf_puts(&text, "\n");
    cli_args_help(verb, &text);
    cli_out_buf(&text);
    clt_buf_free(&text);
    return 0;
}

static int print_version(void) {
    cli_out("culet " CULET_VERSION "\n", sizeof("culet " CULET_VERSION "\n") - 1);
    return 0;
}

static int unknown_command(const char *name) {
    const char *names[CLI_VERBS + N_LATER];
    clt_err err;
    for (size_t i = 0; i < N_LATER; i++) {
        if (!strcmp(name, later[i])) {
            return cli_failf(CLT_E_UNSUPPORTED, "%s: this command is not in this version", name);
        }
        names[CLI_VERBS + i] = later[i];
    }
    for (size_t i = 0; i < CLI_VERBS; i++) {
        names[i] = commands[i].name;
    }
    clt_err_clear(&err);
    clt_fail(&err, CLT_E_USAGE, "%s: unknown %s", name, name[0] == '-' ? "flag; a command comes first" : "command");
    const char *near = cli_nearest(name, names, CLI_VERBS + N_LATER);
    if (near) {
        clt_hint(&err, "did you mean culet %s?", near);
    } else {
        clt_hint(&err, "culet -h lists the commands");
    }
    return cli_fail(&err);
}

static int run_command(cli_verb verb, int argc, char **argv) {
    cli_args args;
    clt_err err;
    clt_err_clear(&err);
    int code;
    if (cli_args_parse(verb, argc, argv, &args, &err)) {
        if (!err.hint[0] && err.code == CLT_E_USAGE) {
            clt_hint(&err, "culet %s -h lists the flags", commands[verb].name);
        }
        code = cli_fail(&err);
    } else if (args.help) {
        code = help_of(verb);
    } else if (args.version) {
        code = print_version();
    } else {
        cli_out_quiet(args.quiet);
        code = commands[verb].run(&args);
    }
    cli_args_free(&args);
    return code;
}

static int dispatch(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name) {
        clt_err err;
        clt_err_clear(&err);
        clt_fail(&err, CLT_E_USAGE, "usage: a command is missing");
        clt_hint(&err, "culet -h lists the commands");
        return cli_fail(&err);
    }
    bool help = !strcmp(name, "help");
    const char *topic = help && argc > 2 ? argv[2] : name;
    for (size_t i = 0; i < CLI_VERBS; i++) {
        if (!strcmp(topic, commands[i].name)) {
            return help ? help_of((cli_verb)i) : run_command((cli_verb)i, argc - 2, argv + 2);
        }
    }
    if (!strcmp(name, "-h") || !strcmp(name, "--help") || (help && argc == 2)) {
        return help_all();
    }
    return !strcmp(name, "--version") ? print_version() : unknown_command(topic);
}

int main(int argc, char **argv) {
    /* Only the character set, for line editing: numbers keep their decimal point. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) {
        setlocale(LC_CTYPE, "C.UTF-8");
    }
    cli_out_init();
    cli_signals_init();
    return cli_finish(dispatch(argc, argv));
}
