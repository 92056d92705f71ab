/* Reads argv with the table of flags: finds the flag, takes its value, checks it, stores it.
 * A usage error wins over a feature that this version lacks, so that a wrong line is never mistaken for a missing feature.
 */
#include "args.h"
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

/* ---- numbers ---- */

bool cli_read_int(const char *text, long long min, long long max, long long *out) {
    if (!text[0] || strspn(text, "+-0123456789") != strlen(text)) {
        return false;
    }
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < min || v > max) {
        return false;
    }
    *out = v;
    return true;
}

bool cli_read_real(const char *text, double *out) {
    /* The set of characters keeps out spaces, hexadecimal numbers, "inf" and "nan", which strtod would take. */
    if (!text[0] || strspn(text, "+-.0123456789eE") != strlen(text)) {
        return false;
    }
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v)) {
        return false;
    }
    *out = v;
    return true;
}

static bool read_seed(const char *text, uint64_t *seed, bool *given) {
    *given = strcmp(text, "-1") != 0;
    if (!*given) {
        return true;
    }
    if (!text[0] || strspn(text, "0123456789") != strlen(text)) {
        return false;
    }
    errno = 0;
    unsigned long long v = strtoull(text, NULL, 10);
    *seed = v;
    return errno == 0;
}

/* ---- suggestions ---- */

/* Levenshtein distance of short words; longer ones count as far apart. */
static size_t edit_distance(const char *a, const char *b) {
    enum { LONGEST = 40 };
    size_t m = strlen(a), n = strlen(b), row[LONGEST + 1];
    if (m > LONGEST || n > LONGEST) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= n; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= m; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            size_t insert = row[j] + 1, delete = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = replace < insert ? replace : insert;
            row[j] = delete < row[j] ? delete : row[j];
        }
    }
    return row[n];
}

const char *cli_nearest(const char *word, const char *const *candidates, size_t n) {
    const char *best = NULL;
    size_t limit = strlen(word) / 3 + 1, least = limit + 1;
    for (size_t i = 0; i < n; i++) {
        size_t d = edit_distance(word, candidates[i]);
        if (d < least) {
            least = d;
            best = candidates[i];
        }
    }
    return best;
}

/* ---- the table ---- */

/* Copies the next of the space-separated names; false at the end. */
static bool next_name(const char **names, char *out, size_t size) {
    const char *s = *names + strspn(*names, " ");
    size_t n = strcspn(s, " ");
    if (!n || n >= size) {
        return false;
    }
    memcpy(out, s, n);
    out[n] = 0;
    *names = s + n;
    return true;
}

static const cli_option *find_option(const char *name, unsigned verbs) {
    char each[64];
    for (size_t i = 0; i < cli_n_options; i++) {
        const char *names = cli_options[i].names;
        while ((cli_options[i].verbs & verbs) && next_name(&names, each, sizeof(each))) {
            if (!strcmp(each, name)) {
                return &cli_options[i];
            }
        }
    }
    return NULL;
}

static clt_status unknown_option(cli_verb verb, const char *name, clt_err *err) {
    enum { MOST = 256 };
    static char each[MOST][64];
    const char *candidates[MOST];
    size_t n = 0;
    for (size_t i = 0; i < cli_n_options; i++) {
        const char *names = cli_options[i].names;
        while ((cli_options[i].verbs & CLI_IN(verb)) && n < MOST && next_name(&names, each[n], sizeof(each[n]))) {
            candidates[n] = each[n];
            n++;
        }
    }
    if (find_option(name, ~0u)) {
        clt_fail(err, CLT_E_USAGE, "%s: not a flag of this command", name);
    } else {
        clt_fail(err, CLT_E_USAGE, "%s: unknown flag", name);
    }
    const char *near = cli_nearest(name, candidates, n);
    return near ? clt_hint(err, "did you mean %s?", near) : err->code;
}

/* ---- values ---- */

static clt_status bad_value(clt_err *err, const char *name, const char *value, const char *expected) {
    return clt_fail(err, CLT_E_USAGE, "%s: '%s' is not %s", name, value, expected);
}

static clt_status bad_int(clt_err *err, const cli_option *o, const char *name, const char *value) {
    if (o->max >= INT_MAX) {
        return clt_fail(err, CLT_E_USAGE, "%s: '%s' is not a whole number of at least %g", name, value, o->min);
    }
    return clt_fail(err, CLT_E_USAGE, "%s: '%s' is not a whole number from %g to %.0f", name, value, o->min, o->max);
}

static clt_status append_string(cli_strings *list, const char *s, clt_err *err) {
    const char **grown = clt_realloc(list->items, (list->n + 1) * sizeof(*grown));
    if (!grown) {
        return clt_fail_memory(err, "arguments", (list->n + 1) * sizeof(*grown));
    }
    list->items = grown;
    list->items[list->n++] = s;
    return CLT_OK;
}

static clt_status store_int(const cli_option *o, const char *name, const char *value, int *out, clt_err *err) {
    long long v;
    if (!cli_read_int(value, (long long)o->min, (long long)o->max, &v)) {
        return bad_int(err, o, name, value);
    }
    *out = (int)v;
    return CLT_OK;
}

static clt_status store_real(const cli_option *o, const char *name, const char *value, float *out, clt_err *err) {
    double v;
    if (!cli_read_real(value, &v)) {
        return bad_value(err, name, value, "a finite number");
    }
    if (v <= 0 && o->min == FLT_MIN) {
        return clt_fail(err, CLT_E_USAGE, "%s: '%s' is not above 0", name, value);
    }
    if (v < o->min || v > o->max) {
        return clt_fail(err, CLT_E_USAGE, "%s: '%s' is outside %g..%g", name, value, o->min, o->max);
    }
    *out = (float)v;
    return CLT_OK;
}

/* ID+BIAS, ID-BIAS, ID=false; -inf bans as well. */
static clt_status store_bias(const char *name, const char *value, cli_args *args, clt_err *err) {
    static const char form[] = "ID+BIAS, ID-BIAS or ID=false";
    size_t digits = strspn(value, "0123456789");
    const char *rest = value + digits;
    char id_text[16];
    long long id;
    double bias;
    if (!digits || digits >= sizeof(id_text)) {
        return bad_value(err, name, value, form);
    }
    memcpy(id_text, value, digits);
    id_text[digits] = 0;
    if (!cli_read_int(id_text, 0, INT_MAX, &id)) {
        return bad_value(err, name, value, form);
    }
    if (!strcmp(rest, "=false") || !strcmp(rest, "-inf")) {
        bias = -INFINITY;
    } else if ((*rest != '+' && *rest != '-') || !strchr(".0123456789", rest[1]) || !cli_read_real(rest, &bias)) {
        return bad_value(err, name, value, form);
    }
    cli_bias *grown = clt_realloc(args->biases, (args->n_biases + 1) * sizeof(*grown));
    if (!grown) {
        return clt_fail_memory(err, "arguments", (args->n_biases + 1) * sizeof(*grown));
    }
    args->biases = grown;
    args->biases[args->n_biases++] = (cli_bias){(int32_t)id, (float)bias};
    return CLT_OK;
}

static clt_status store_choice(const cli_option *o, const char *name, const char *value, int *out, clt_err *err) {
    int index = 0;
    for (const char *s = o->value; *s; index++) {
        size_t n = strcspn(s, "|");
        if (strlen(value) == n && !strncmp(s, value, n)) {
            *out = index;
            return CLT_OK;
        }
        s += n + (s[n] == '|');
    }
    return clt_fail(err, CLT_E_USAGE, "%s: '%s' is not one of %s", name, value, o->value);
}

static clt_status store_kv(const char *name, const char *value, int *out, clt_err *err) {
    static const char *const ours[] = {"f32", "f16", "q8_0"};
    static const char *const others[] = {"bf16", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"};
    static const int types[] = {CULET_KV_F32, CULET_KV_F16, CULET_KV_Q8_0};
    for (size_t i = 0; i < 3; i++) {
        if (!strcmp(value, ours[i])) {
            *out = types[i];
            return CLT_OK;
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (!strcmp(value, others[i])) {
            return clt_fail(err, CLT_E_UNSUPPORTED, "%s: a cache of type %s is not supported; f32, f16 and q8_0 are", name,
                            value);
        }
    }
    return bad_value(err, name, value, "one of f32, f16, q8_0");
}

/* Splits "64-256+64" or "1-8*2" into its numbers; without a step it is 1. False if the text is no range. */
static bool split_range(const char *item, long long *first, long long *last, char *mode, long long *step) {
    char from[24] = "", to[24] = "", by[24] = "";
    *mode = '+';
    *step = 1;
    if (strspn(item, "0123456789-+*") != strlen(item) ||
        sscanf(item, "%23[0-9]-%23[0-9]%c%23[0-9]", from, to, mode, by) < 2) {
        return false;
    }
    char canonical[80];
    snprintf(canonical, sizeof(canonical), by[0] ? "%s-%s%c%s" : "%s-%s", from, to, *mode, by);
    return !strcmp(canonical, item) && (*mode == '+' || *mode == '*') && cli_read_int(from, 0, LLONG_MAX, first) &&
           cli_read_int(to, 0, LLONG_MAX, last) && (!by[0] || cli_read_int(by, 0, LLONG_MAX, step));
}

static clt_status store_range(const cli_option *o, const char *name, const char *item, clt_ids *out, clt_err *err) {
    enum { MOST = 1000 };
    long long first, last, step;
    char mode;
    if (!split_range(item, &first, &last, &mode, &step)) {
        return bad_value(err, name, item, "a number or a range such as 64-256+64 or 1-8*2");
    }
    if (first < (long long)o->min || last > (long long)o->max || first > last) {
        return clt_fail(err, CLT_E_USAGE, "%s: the range '%s' does not rise within %g to %.0f", name, item, o->min, o->max);
    }
    if (mode == '*' ? step < 2 || first < 1 : step < 1) {
        return clt_fail(err, CLT_E_USAGE, "%s: the range '%s' never reaches its end", name, item);
    }
    long long n = 0;
    for (long long v = first; v <= last; v = mode == '*' ? v * step : v + step) {
        if (++n > MOST) {
            return clt_fail(err, CLT_E_USAGE, "%s: the range '%s' has more than %d values", name, item, MOST);
        }
        clt_ids_push(out, (int32_t)v);
        if (step > last) {
            break; /* the next value would be beyond the end, and might not fit */
        }
    }
    return CLT_OK;
}

static clt_status store_item(const cli_option *o, const char *name, const char *item, clt_ids *out, clt_err *err) {
    int v;
    if (o->kind == CLI_K_INTS && strchr(item + (item[0] != 0), '-')) {
        return store_range(o, name, item, out, err);
    }
    clt_status st = o->kind == CLI_K_KVS ? store_kv(name, item, &v, err) : store_int(o, name, item, &v, err);
    if (!st) {
        clt_ids_push(out, v);
    }
    return st;
}

/* Comma-separated items, each stored by the scalar kind that belongs to the list. */
static clt_status store_list(const cli_option *o, const char *name, const char *value, clt_ids *out, clt_err *err) {
    const char *s = value;
    size_t before = out->len;
    for (bool more = true; more;) {
        char item[64];
        size_t n = strcspn(s, ",");
        if (!n || n >= sizeof(item)) {
            return bad_value(err, name, value, "a list such as 1,2");
        }
        memcpy(item, s, n);
        item[n] = 0;
        clt_status st = store_item(o, name, item, out, err);
        if (st) {
            return st;
        }
        more = s[n] == ',';
        s += n + more;
    }
    if (o->kind == CLI_K_PAIRS && out->len - before != 2) {
        return bad_value(err, name, value, "a pair such as 512,128");
    }
    return out->failed ? clt_fail_memory(err, "arguments", out->len * sizeof(int32_t)) : CLT_OK;
}

static clt_status store_part(const cli_option *o, const char *name, const char *value, void *field, cli_args *args,
                             clt_err *err) {
    cli_part_kind kind = (cli_part_kind)(int)o->min;
    if (kind != CLI_PART_TEXT && !value[0]) {
        return bad_value(err, name, value, "a name: it is empty");
    }
    cli_part *grown = clt_realloc(args->parts, (args->n_parts + 1) * sizeof(*grown));
    if (!grown) {
        return clt_fail_memory(err, "arguments", (args->n_parts + 1) * sizeof(*grown));
    }
    args->parts = grown;
    args->parts[args->n_parts++] = (cli_part){kind, value};
    args->n_media += kind != CLI_PART_TEXT && kind != CLI_PART_FILE;
    if (kind == CLI_PART_FILE) {
        *(const char **)field = value;
    }
    return kind == CLI_PART_TEXT ? append_string(field, value, err) : CLT_OK;
}

static clt_status store_value(const cli_option *o, const char *name, const char *value, cli_args *args, clt_err *err) {
    void *field = (char *)args + o->offset;
    switch (o->kind) {
    case CLI_K_FLAG:
        *(bool *)field = true;
        return CLT_OK;
    case CLI_K_STATS:
        if (value && strcmp(value, "json")) {
            return bad_value(err, name, value, "json");
        }
        *(int *)field = value ? CLI_STATS_JSON : CLI_STATS_TEXT;
        return CLT_OK;
    case CLI_K_ABSENT:
        args->absent = args->absent ? args->absent : name;
        if (o->offset) {
            *(const char **)field = value;
        }
        return CLT_OK;
    case CLI_K_PATH:
        if (!value[0]) {
            return bad_value(err, name, value, "a name: it is empty");
        }
        *(const char **)field = value;
        return CLT_OK;
    case CLI_K_PATHS:
        return value[0] ? append_string(field, value, err) : bad_value(err, name, value, "a name: it is empty");
    case CLI_K_TEXT:
        *(const char **)field = value;
        return CLT_OK;
    case CLI_K_TEXTS:
        return append_string(field, value, err);
    case CLI_K_PART:
        return store_part(o, name, value, field, args, err);
    case CLI_K_INT:
        return store_int(o, name, value, field, err);
    case CLI_K_REAL:
        return store_real(o, name, value, field, err);
    case CLI_K_SEED:
        return read_seed(value, &args->seed, &args->seed_given) ? CLT_OK
                                                                : bad_value(err, name, value, "a seed (0..2^64-1, or -1)");
    case CLI_K_BIAS:
        return store_bias(name, value, args, err);
    case CLI_K_CHOICE:
        return store_choice(o, name, value, field, err);
    case CLI_K_KV:
        return store_kv(name, value, field, err);
    case CLI_K_INTS:
    case CLI_K_PAIRS:
    case CLI_K_KVS:
        return store_list(o, name, value, field, err);
    }
    return CLT_OK;
}

/* ---- parsing ---- */

static void set_defaults(cli_verb verb, cli_args *args) {
    *args = (cli_args){.verb = verb, .predict = -1, .reasoning_budget = -1, .repetitions = 5, .draft_max = 0};
    args->kv_k = args->kv_v = CULET_KV_F16;
    args->poll = 50;
    args->memory_check = 1;
    args->format_err = args->suite = args->probe = args->imatrix_format = -1;
    args->spec = verb == CLI_RUN || verb == CLI_CHAT || verb == CLI_CAPTION ? CLI_SPEC_AUTO : CLI_SPEC_OFF;
    args->temperature = args->top_p = args->min_p = args->every = NAN;
    args->repeat_penalty = args->presence_penalty = args->frequency_penalty = NAN;
    args->top_k = args->repeat_last_n = CLI_INT_UNSET;
}

/* Splits "--name=value" and reads '_' in long names as '-'. */
static clt_status split_flag(const char *arg, char *name, size_t size, const char **value, clt_err *err) {
    bool is_long = !strncmp(arg, "--", 2);
    size_t n = is_long ? strcspn(arg, "=") : strlen(arg);
    *value = is_long && arg[n] == '=' ? arg + n + 1 : NULL;
    if (n >= size) {
        return clt_fail(err, CLT_E_USAGE, "%.40s…: unknown flag", arg);
    }
    for (size_t i = 0; i < n; i++) {
        name[i] = is_long && i >= 2 && arg[i] == '_' ? '-' : arg[i];
    }
    name[n] = 0;
    return CLT_OK;
}

static clt_status parse_flag(int argc, char **argv, int *i, cli_args *args, clt_err *err) {
    char name[64];
    const char *value;
    clt_status st = split_flag(argv[*i], name, sizeof(name), &value, err);
    if (st) {
        return st;
    }
    const cli_option *o = find_option(name, CLI_IN(args->verb));
    if (!o) {
        return unknown_option(args->verb, name, err);
    }
    bool takes_value = o->value && o->kind != CLI_K_STATS;
    if (!o->value && value) {
        return clt_fail(err, CLT_E_USAGE, "%s: takes no value", name);
    }
    if (takes_value && !value) {
        if (*i + 1 >= argc) {
            return clt_fail(err, CLT_E_USAGE, "%s: needs a value (%s)", name, o->value);
        }
        value = argv[++*i];
    }
    const char *kept = o->kind == CLI_K_ABSENT ? argv[*i - (takes_value && value == argv[*i])] : name;
    return store_value(o, kept, value, args, err);
}

/* What no single flag can judge. */
static clt_status check_together(const cli_args *args, clt_err *err) {
    int sources = (args->prompts.n > 0) + (args->file != NULL) + (args->ids != NULL);
    if (sources > 1) {
        return clt_fail(err, CLT_E_USAGE, "%s: the text was already given by %s", args->ids ? "--ids" : "--file",
                        args->prompts.n ? "--prompt" : "--file");
    }
    if (args->spec == CLI_SPEC_MTP && !args->draft_model) {
        clt_fail(err, CLT_E_USAGE, "--spec: mtp needs a drafter");
        return clt_hint(err, "give its file with -md FILE");
    }
    for (size_t i = 0; i < args->stops.n; i++) {
        if (!args->stops.items[i][0]) {
            return clt_fail(err, CLT_E_USAGE, "--reverse-prompt: an empty text would stop at once");
        }
    }
    return CLT_OK;
}

static clt_status check_features(const cli_args *args, clt_err *err) {
    if (args->absent) {
        return clt_fail(err, CLT_E_UNSUPPORTED, "%.*s: not in this version", (int)strcspn(args->absent, "="), args->absent);
    }
    if (args->spec == CLI_SPEC_MTP) {
        return clt_fail(err, CLT_E_UNSUPPORTED, "--spec: speculation by a drafter (mtp) is not in this version");
    }
    if (args->reasoning_budget > 0) {
        return clt_fail(err, CLT_E_UNSUPPORTED,
                        "--reasoning-budget: a budget of tokens is not in this version; 0 and -1 are");
    }
    return CLT_OK;
}

clt_status cli_args_parse(cli_verb verb, int argc, char **argv, cli_args *args, clt_err *err) {
    set_defaults(verb, args);
    bool flags = true;
    for (int i = 0; i < argc; i++) {
        clt_status st;
        if (flags && !strcmp(argv[i], "--")) {
            flags = false;
            continue;
        }
        if (flags && argv[i][0] == '-' && argv[i][1]) {
            st = parse_flag(argc, argv, &i, args, err);
        } else {
            st = append_string(&args->operands, argv[i], err);
        }
        if (st || args->help || args->version) {
            return st;
        }
    }
    if (args->reasoning_budget == 0) {
        args->think = 0;
    }
    clt_status st = check_together(args, err);
    return st ? st : check_features(args, err);
}

clt_status cli_args_set(cli_args *args, const char *name, const char *value, clt_err *err) {
    static const char *const settable[] = {"--temp", "--top-k", "--top-p", "--min-p", "--repeat-penalty", "--repeat-last-n",
                                           "--presence-penalty", "--frequency-penalty", "--seed", "--n-predict"};
    enum { SETTABLE = sizeof(settable) / sizeof(settable[0]) };
    char flag[64] = "--";
    size_t n = strlen(name);
    if (n >= sizeof(flag) - 2) {
        n = sizeof(flag) - 3;
    }
    for (size_t i = 0; i < n; i++) {
        flag[i + 2] = name[i] == '_' ? '-' : name[i];
    }
    for (size_t i = 0; i < SETTABLE; i++) {
        if (!strcmp(flag, settable[i])) {
            return store_value(find_option(flag, CLI_IN(CLI_CHAT)), name, value, args, err);
        }
    }
    clt_fail(err, CLT_E_USAGE, "/set: '%s' is not a setting", name);
    return clt_hint(
        err,
        "settings: temp top_k top_p min_p repeat_penalty repeat_last_n presence_penalty frequency_penalty seed n_predict");
}

void cli_args_free(cli_args *args) {
    clt_ids *lists[] = {&args->bench_prompt, &args->bench_gen, &args->bench_pairs, &args->bench_depth, &args->bench_threads,
                        &args->bench_batch, &args->bench_ubatch, &args->bench_kv_k, &args->bench_kv_v, &args->bench_rows};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        clt_ids_free(lists[i]);
    }
    clt_free(args->bench_models.items);
    clt_free(args->prompts.items);
    clt_free(args->parts);
    clt_free(args->stops.items);
    clt_free(args->operands.items);
    clt_free(args->tensor_types.items);
    clt_free(args->biases);
}

void cli_args_help(cli_verb verb, clt_buf *out) {
    for (size_t i = 0; i < cli_n_options; i++) {
        const cli_option *o = &cli_options[i];
        if (!(o->verbs & CLI_IN(verb)) || !o->help) {
            continue;
        }
        clt_buf left = {0};
        char each[64];
        for (const char *names = o->names; next_name(&names, each, sizeof(each));) {
            clt_buf_printf(&left, "%s%s", left.len ? ", " : "", each);
        }
        if (o->value) {
            clt_buf_printf(&left, o->kind == CLI_K_STATS ? "[=%s]" : " %s", o->value);
        }
        int width = 38; /* of characters; printf counts bytes */
        for (size_t k = 0; k < left.len; k++) {
            width += ((unsigned char)left.data[k] & 0xc0) == 0x80;
        }
        clt_buf_printf(out, "  %-*s %s\n", width, left.data ? left.data : "", o->help);
        clt_buf_free(&left);
    }
}
