/* Measures grammars over a real vocabulary: what making its tokens ready takes, compiling, and each mask along a reply,
 * every grammar with caches that know nothing yet.
 *   grammar_speed MODEL.gguf [-v] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "engine/constrain.h"

typedef struct sample {
    const char *name, *text; /* text: a grammar if it contains "::=", else a schema */
    const char *reply;
} sample;

#define ADDRESS \
    "{\"type\":\"object\",\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"},\"zip\":{" \
    "\"type\":\"string\",\"pattern\":\"^\\\\d{5}$\"}},\"required\":[\"street\",\"city\",\"zip\"],\"additionalProperties\":" \
    "false}"

static const sample samples[] = {
    {"person",
     "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":60},\"age\":{\"type"
     "\":\"integer\","
     "\"minimum\":0,\"maximum\":130},\"email\":{\"type\":\"string\",\"format\":\"email\"},\"born\":{\"type\":\"string\",\"fo"
     "rmat\":\"date\"},"
     "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"red\",\"green\",\"blue\"]},\"maxItems\":5},\"h"
     "ome\":" ADDRESS
     ",\"score\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1}},\"required\":[\"name\",\"age\",\"email\",\"born\",\"tags"
     "\",\"home\","
     "\"score\"],\"additionalProperties\":false}",
     "{\n  \"name\": \"Ada Lovelace of London\",\n  \"age\": 36,\n  \"email\": \"ada.lovelace@example.com\",\n  \"born\": "
     "\"1815-12-10\",\n  "
     "\"tags\": [\"red\", \"blue\"],\n  \"home\": {\n    \"street\": \"12 St. James's Square\",\n    \"city\": "
     "\"London\",\n    \"zip\": "
     "\"12345\"\n  },\n  \"score\": 0.975\n}"},
    {"any object", "{\"type\":\"object\"}",
     "{\"title\": \"A report on the weather in Norway\", \"items\": [1, 2.5, true, null, {\"deep\": [\"one\", \"two\", "
     "{\"x\": {}}]}], "
     "\"summary\": \"It rained, then it \\\"cleared\\\" \\u2014 and the sun came out: \xC3\xA9t\xC3\xA9, \xE5\xA4\x8F, "
     "\xF0\x9F\x98\x80.\"}"},
    {"steps",
     "{\"$defs\":{\"step\":{\"type\":\"object\",\"properties\":{\"explanation\":{\"type\":\"string\"},\"output\":{\"type\":"
     "\"string\"}},"
     "\"required\":[\"explanation\",\"output\"],\"additionalProperties\":false}},\"type\":\"object\",\"properties\":{\"steps"
     "\":{\"type\":"
     "\"array\",\"items\":{\"$ref\":\"#/$defs/step\"}},\"final_answer\":{\"type\":\"string\"}},\"required\":[\"steps\",\"fin"
     "al_answer\"],"
     "\"additionalProperties\":false}",
     "{\"steps\":[{\"explanation\":\"Start with the equation 8x + 7 = -23.\",\"output\":\"8x + 7 = "
     "-23\"},{\"explanation\":\"Subtract 7 "
     "from both sides to isolate the term with the variable.\",\"output\":\"8x = -30\"},{\"explanation\":\"Divide both "
     "sides by 8.\","
     "\"output\":\"x = -30 / 8\"}],\"final_answer\":\"x = -15/4\"}"},
    {"bounded strings", "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":24},\"maxItems\":100}",
     "[\"alpha beta gamma delta\", \"epsilon zeta eta theta\", \"iota kappa lambda mu nu\", \"xi omicron\", \"pi rho sigma "
     "tau\"]"},
    {"GBNF JSON",
     "root ::= object\nvalue ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\nobject ::= \"{\" "
     "ws ( string "
     "\":\" ws value (\",\" ws string \":\" ws value)* )? \"}\" ws\narray ::= \"[\" ws ( value (\",\" ws value)* )? \"]\" "
     "ws\nstring ::= "
     "\"\\\"\" ( [^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" [0-9a-fA-F]{4}) )* \"\\\"\" ws\nnumber ::= "
     "(\"-\"? ([0-9] | "
     "[1-9] [0-9]{0,15})) (\".\" [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws\nws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n",
     "{\"title\": \"A report on the weather\", \"items\": [1, 2.5, true, null, {\"deep\": [\"one\", \"two\"]}], \"more\": "
     "{\"a\": \"b c d\"}}"},
    {"GBNF list", "root ::= item+\nitem ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\"\n",
     "- a first point about the matter\n- another one, with more words in it\n- and the last\n"},
};

/* Of this thread alone, so that what else runs on the machine does not count. */
static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *name, double *ms, size_t n) {
    qsort(ms, n, sizeof *ms, compare);
    printf("%-16s %4zu masks: median %.4f ms, p99 %.4f ms, largest %.4f ms\n", name, n, ms[n / 2], ms[n * 99 / 100],
           ms[n - 1]);
}

/* Walks a reply; the time of each mask is appended to `all`. */
static size_t measure(const sample *s, const clt_vocab *v, const clt_tokens *t, bool verbose, double *all) {
    clt_err err;
    clt_grammar *g;
    clt_matcher *m;
    clt_ids ids = {0};
    size_t words = ((size_t)clt_vocab_size(v) + 63) / 64;
    uint64_t *bits = calloc(words, sizeof *bits);
    double start = now_ms(), made;
    clt_status status = strstr(s->text, "::=") ? clt_grammar_from_gbnf(s->text, strlen(s->text), &g, &err)
                                               : clt_grammar_from_schema(s->text, strlen(s->text), "schema", &g, &err);
    made = now_ms() - start;
    if (status == CLT_OK) status = clt_matcher_create(g, t, &m, &err);
    if (status == CLT_OK) status = clt_tokenize(v, s->reply, strlen(s->reply), false, &ids, &err);
    for (size_t i = 0; i < ids.len && status == CLT_OK; i++) {
        start = now_ms();
        status = clt_matcher_mask(m, bits, &err);
        all[i] = now_ms() - start;
        if (verbose) printf("  %.4f ms before \"%s\"\n", all[i], clt_vocab_piece(v, ids.data[i], NULL));
        bool allowed = bits[ids.data[i] / 64] >> ids.data[i] % 64 & 1;
        if (status == CLT_OK && (!allowed || !clt_matcher_accept(m, ids.data[i])))
            status = clt_fail(&err, CLT_E_FAILED, "token %zu, \"%s\", is refused", i, clt_vocab_piece(v, ids.data[i], NULL));
    }
    if (status != CLT_OK || !clt_matcher_may_end(m)) {
        printf("%s: %s\n", s->name, status == CLT_OK ? "not complete" : err.text);
        exit(1);
    }
    double own[512];
    memcpy(own, all, ids.len * sizeof *own);
    printf("%-16s compiled in %.2f ms, %zu KiB in the end\n", s->name, made, clt_matcher_bytes(m) / 1024);
    print_times(s->name, own, ids.len);
    size_t n = ids.len;
    clt_ids_free(&ids);
    clt_matcher_free(m);
    clt_grammar_free(g);
    free(bits);
    return n;
}

int main(int argc, char **argv) {
    clt_err err;
    clt_file *f;
    clt_vocab *v;
    clt_tokens *t;
    static double all[4096];
    size_t n = 0;
    bool verbose = argc > 2 && !strcmp(argv[2], "-v");
    if (argc < 2) {
        printf("usage: grammar_speed MODEL.gguf [-v]\n");
        return 2;
    }
    if (clt_file_open(argv[1], &f, &err) || clt_vocab_open(f, &v, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    double start = now_ms();
    if (clt_constraint_tokens(v, clt_vocab_size(v), &t, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    printf("%d tokens made ready in %.1f ms, %.1f MB\n", clt_vocab_size(v), now_ms() - start,
           (double)clt_tokens_bytes(t) / 1e6);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) n += measure(&samples[i], v, t, verbose, all + n);
    print_times("all", all, n);
    clt_tokens_free(t);
    clt_vocab_free(v);
    clt_file_close(f);
    return 0;
}
