/* Metadata that every converted file has, and the small helpers that put keys. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "convert/folder.h"

static const char *key_of(const clt_keys *k, const char *key, char out[160]) {
    snprintf(out, 160, "%s%s", key[0] == '.' ? k->arch : "", key);
    return out;
}

void clt_keys_u32(const clt_keys *k, const char *key, int64_t v) {
    char full[160];
    clt_gguf_put_u32(k->head, key_of(k, key, full), (uint32_t)v);
}

void clt_keys_i32(const clt_keys *k, const char *key, int64_t v) {
    char full[160];
    clt_gguf_put_i32(k->head, key_of(k, key, full), (int32_t)v);
}

void clt_keys_f32(const clt_keys *k, const char *key, double v) {
    char full[160];
    clt_gguf_put_f32(k->head, key_of(k, key, full), (float)v);
}

void clt_keys_bool(const clt_keys *k, const char *key, bool v) {
    char full[160];
    clt_gguf_put_bool(k->head, key_of(k, key, full), v);
}

void clt_keys_str(const clt_keys *k, const char *key, const char *s) {
    char full[160];
    clt_gguf_put_str(k->head, key_of(k, key, full), s, strlen(s));
}

int64_t clt_json_int_or(const clt_json *object, const char *key, int64_t fallback) {
    int64_t v;
    return clt_json_int(clt_json_get(object, key), &v) ? v : fallback;
}

double clt_json_num_or(const clt_json *object, const char *key, double fallback) {
    double v;
    return clt_json_num(clt_json_get(object, key), &v) ? v : fallback;
}

/* A word in small letters gets a capital, unless it is a number or a version ("v2", "4b"). */
static void put_word(clt_buf *out, const char *s, size_t n) {
    bool lower = false, upper = false;
    for (size_t i = 0; i < n; i++) {
        lower |= islower((unsigned char)s[i]) != 0;
        upper |= isupper((unsigned char)s[i]) != 0;
    }
    bool number = isdigit((unsigned char)s[0]) || (n > 1 && s[0] == 'v' && isdigit((unsigned char)s[1]));
    bool title = lower && !upper && !number;
    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || !isalpha((unsigned char)s[i - 1]);
        clt_buf_putc(out, title && first ? (char)toupper((unsigned char)s[i]) : s[i]);
    }
}

/* "…/gemma-4-e4b-it" -> "Gemma 4 E4b It"; in the form that llama.cpp gives a folder without a model card. */
static void put_name(clt_buf *out, const char *path) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    while (begin < end) {
        size_t n = 0;
        while (begin + n < end && path[begin + n] != '-' && path[begin + n] != ' ') n++;
        if (n && out->len) clt_buf_putc(out, ' ');
        if (n) put_word(out, path + begin, n);
        begin += n + 1;
    }
}

/* Two digits at least: "3.1M", "328K", "27B". */
static void put_count(clt_buf *out, double count) {
    static const struct { double unit; char suffix; } units[] = {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}, {1e3, 'K'}};
    size_t i = 0;
    while (i < 3 && count < units[i].unit) i++;
    double v = count / units[i].unit;
    clt_buf_printf(out, "%.*f%c", v < 9.5 ? 1 : 0, v, units[i].suffix);
}

static void put_size(clt_buf *out, const clt_manifest *m, int64_t experts) {
    double shared = 0, in_experts = 0;
    for (size_t i = 0; i < m->n; i++) {
        const clt_manifest_tensor *t = &m->tensors[i];
        double n = (double)t->source.cols * (double)t->source.rows;
        if (strstr(t->name, "_exps.weight")) in_experts += n;
        else shared += n;
    }
    if (experts > 0) clt_buf_printf(out, "%lldx", (long long)experts);
    put_count(out, experts > 0 ? shared + in_experts / (double)experts : shared + in_experts);
}

void clt_keys_general(const clt_keys *k, const clt_file *f, const char *type, const clt_manifest *m, int64_t experts) {
    const clt_json *g = clt_file_json(f, "generation_config.json");
    clt_buf name = {0}, size = {0};
    int64_t whole;
    double v;
    clt_keys_str(k, "general.architecture", k->arch);
    clt_keys_str(k, "general.type", type);
    if (clt_json_int(clt_json_get(g, "top_k"), &whole)) clt_keys_i32(k, "general.sampling.top_k", whole);
    if (clt_json_num(clt_json_get(g, "top_p"), &v)) clt_keys_f32(k, "general.sampling.top_p", v);
    if (clt_json_num(clt_json_get(g, "min_p"), &v)) clt_keys_f32(k, "general.sampling.min_p", v);
    if (clt_json_num(clt_json_get(g, "temperature"), &v)) clt_keys_f32(k, "general.sampling.temp", v);
    put_name(&name, clt_file_path(f));
    put_size(&size, m, experts);
    if (name.len) clt_keys_str(k, "general.name", name.data);
    if (size.len) clt_keys_str(k, "general.size_label", size.data);
    k->head->metas.failed |= name.failed | size.failed;
    clt_buf_free(&name);
    clt_buf_free(&size);
}
