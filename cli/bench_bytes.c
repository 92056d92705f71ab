/* What a generated token must read: the bytes of weights, as the file holds them, that one step of one timeline multiplies
 * with. From the description of an opened model: a tensor's name tells its part. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "bench.h"

typedef struct weights {
    const clt_json *layers;      /* config.layer */
    double experts, used;
    double embedding, head, rest;
} weights;

static bool has(const char *name, const char *part) {
    return strstr(name, part) != NULL;
}

static bool ends(const char *name, const char *part) {
    size_t n = strlen(name), m = strlen(part);
    return n >= m && !strcmp(name + n - m, part);
}

/* Layers that take keys and values from another one do not read what the file may still hold for them. */
static bool borrowed(const weights *w, const char *name) {
    const char *at = strstr(name, "blk."), *digits = at ? at + 4 : NULL;
    if (!digits && (at = strstr(name, "layers.")) != NULL) {
        digits = at + 7;
    }
    if (!digits || !(has(name, ".attn_k.") || has(name, ".attn_v.") || has(name, ".k_proj.") || has(name, ".v_proj."))) {
        return false;
    }
    const clt_json *own = clt_json_get(clt_json_at(w->layers, strtoul(digits, NULL, 10)), "own_kv");
    return own && !clt_json_is_true(own);
}

static void add(weights *w, const char *name, double bytes) {
    bool table = has(name, "per_layer_token_embd") || has(name, "embed_tokens_per_layer"); /* a row of it */
    if (table || has(name, "vision") || has(name, "audio") || borrowed(w, name)) {
        return;
    }
    if (ends(name, "token_embd.weight") || ends(name, "embed_tokens.weight")) {
        w->embedding += bytes;
    } else if (!strcmp(name, "output.weight") || ends(name, "lm_head.weight")) {
        w->head += bytes;
    } else if (w->experts > 0 && (has(name, "_exps.") || has(name, ".experts."))) {
        w->rest += bytes * w->used / w->experts;
    } else {
        w->rest += bytes;
    }
}

double cli_bench_token_bytes(const culet_engine *e) {
    culet_session_params params;
    culet_error failure = {0};
    clt_err err;
    clt_json *doc = NULL;
    char *text = NULL;
    clt_err_clear(&err);
    culet_session_defaults(&params);
    if (culet_engine_describe(e, &params, false, &text, &failure) ||
        clt_json_parse(text, strlen(text), "model", &doc, &err)) {
        culet_free(text);
        return NAN; /* a build without JSON */
    }
    const clt_json *config = clt_json_get(doc, "config"), *tensors = clt_json_get(doc, "tensors");
    weights w = {.layers = clt_json_get(config, "layer")};
    clt_json_num(clt_json_get(config, "experts"), &w.experts);
    clt_json_num(clt_json_get(config, "experts_used"), &w.used);
    for (size_t i = 0; i < clt_json_len(tensors); i++) {
        double bytes = 0;
        size_t len;
        const char *name = clt_json_str(clt_json_get(clt_json_at(tensors, i), "name"), &len);
        if (name && clt_json_num(clt_json_get(clt_json_at(tensors, i), "bytes"), &bytes)) {
            add(&w, name, bytes);
        }
    }
    clt_json_free(doc);
    culet_free(text);
    return w.rest + (w.head > 0 ? w.head : w.embedding); /* without a head of its own the embedding is the head */
}
