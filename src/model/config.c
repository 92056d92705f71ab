/* The parts of a configuration that do not depend on the form of the file: layers, KV sharing,
 * plausibility, display name. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "model/internal.h"

clt_status clt_config_alloc(clt_model *m, int64_t layers, clt_err *err) {
    if (layers < 1 || layers > CLT_MAX_LAYERS)
        return clt_fail(err, CLT_E_FILE, "%s: number of layers is %lld, expected 1 to %d", clt_file_path(m->file),
                        (long long)layers, CLT_MAX_LAYERS);
    m->config.layers = (int)layers;
    m->config.layer = CLT_ARENA_NEW(m->arena, clt_layer_config, layers);
    m->layer = CLT_ARENA_NEW(m->arena, clt_layer_tensors, layers);
    if (!m->config.layer || !m->layer) return clt_fail_memory(err, "the layer table", (unsigned long long)layers * 256);
    return CLT_OK;
}

clt_status clt_config_share_kv(clt_model *m, int64_t n_shared, clt_err *err) {
    clt_config *c = &m->config;
    if (n_shared < 0 || n_shared >= c->layers)
        return clt_fail(err, CLT_E_FILE, "%s: %lld of %d layers share keys and values, expected 0 to %d",
                        clt_file_path(m->file), (long long)n_shared, c->layers, c->layers - 1);
    int first_shared = c->layers - (int)n_shared, donor[2] = {-1, -1}; /* by sliding */
    for (int l = 0; l < c->layers; l++) {
        clt_layer_config *lc = &c->layer[l];
        lc->own_kv = l < first_shared;
        if (lc->own_kv) donor[lc->sliding] = l;
        lc->kv_donor = donor[lc->sliding];
        if (lc->kv_donor < 0)
            return clt_fail(err, CLT_E_FILE, "%s: layer %d shares keys and values, but no earlier %s layer has its own",
                            clt_file_path(m->file), l, lc->sliding ? "sliding" : "full");
    }
    return CLT_OK;
}

static clt_status layer_check(const clt_model *m, int l, clt_err *err) {
    const clt_config *c = &m->config;
    const clt_layer_config *lc = &c->layer[l], *donor = &c->layer[lc->kv_donor];
    const char *path = clt_file_path(m->file);
    if (lc->heads < 1 || lc->kv_heads < 1 || lc->heads % lc->kv_heads)
        return clt_fail(err, CLT_E_FILE, "%s: layer %d has %d heads over %d KV heads, expected a multiple", path, l,
                        lc->heads, lc->kv_heads);
    if (lc->head_dim < 2 || lc->head_dim % 2 || lc->head_dim > 4096 || lc->heads > 65536)
        return clt_fail(err, CLT_E_FILE, "%s: layer %d has %d heads of width %d, expected an even width up to 4096", path, l,
                        lc->heads, lc->head_dim);
    if (donor->kv_heads != lc->kv_heads || donor->head_dim != lc->head_dim)
        return clt_fail(err, CLT_E_FILE,
                        "%s: layer %d reads the keys of layer %d, but has %d KV heads of %d against %d of %d", path, l,
                        lc->kv_donor, lc->kv_heads, lc->head_dim, donor->kv_heads, donor->head_dim);
    if (lc->ffn < 1 || lc->ffn > CLT_MAX_WIDTH)
        return clt_fail(err, CLT_E_FILE, "%s: layer %d has a feed-forward width of %d", path, l, lc->ffn);
    return CLT_OK;
}

clt_status clt_config_check(const clt_model *m, clt_err *err) {
    const clt_config *c = &m->config;
    const char *path = clt_file_path(m->file);
    if (c->width < 1 || c->width > CLT_MAX_WIDTH) return clt_fail(err, CLT_E_FILE, "%s: model width is %d", path, c->width);
    if (c->context_limit < 1) return clt_fail(err, CLT_E_FILE, "%s: context length is %d", path, c->context_limit);
    bool sliding = false;
    for (int l = 0; l < c->layers; l++) {
        clt_status st = layer_check(m, l, err);
        if (st != CLT_OK) return st;
        sliding |= c->layer[l].sliding;
    }
    if (sliding && c->window < 1)
        return clt_fail(err, CLT_E_FILE, "%s: sliding window is %d, expected at least 1", path, c->window);
    if (!(c->rms_eps > 0 && c->rms_eps < 1))
        return clt_fail(err, CLT_E_FILE, "%s: RMS epsilon is %g", path, (double)c->rms_eps);
    if (!(c->rope_theta_full > 1 && isfinite(c->rope_theta_full) && c->rope_theta_sliding > 1 &&
          isfinite(c->rope_theta_sliding)))
        return clt_fail(err, CLT_E_FILE, "%s: rope bases are %g and %g, expected finite numbers above 1", path,
                        c->rope_theta_full, c->rope_theta_sliding);
    if (!(c->rope_divisor_full >= 1 && isfinite(c->rope_divisor_full)))
        return clt_fail(err, CLT_E_FILE, "%s: rope scaling factor is %g", path, (double)c->rope_divisor_full);
    if (!(c->final_softcap >= 0 && isfinite(c->final_softcap)) || !(c->attn_scale > 0 && isfinite(c->attn_scale)))
        return clt_fail(err, CLT_E_FILE, "%s: softcap %g or attention scale %g makes no sense", path,
                        (double)c->final_softcap, (double)c->attn_scale);
    if (c->experts && (c->experts_used < 1 || c->experts_used > c->experts || c->expert_ffn < 1))
        return clt_fail(err, CLT_E_FILE, "%s: %d of %d experts of width %d", path, c->experts_used, c->experts,
                        c->expert_ffn);
    return CLT_OK;
}

/* Published sizes are told apart by their width; the name is for people and decides nothing. */
const char *clt_config_family_name(clt_model *m) {
    static const struct { clt_family family; int width; const char *name; } known[] = {
        {CLT_GEMMA4, 1536, "Gemma 4 E2B"}, {CLT_GEMMA4, 2560, "Gemma 4 E4B"},     {CLT_GEMMA4, 3840, "Gemma 4 12B"},
        {CLT_GEMMA4, 2816, "Gemma 4 26B-A4B"}, {CLT_GEMMA4, 5376, "Gemma 4 31B"}, {CLT_GEMMA3, 640, "Gemma 3 270M"},
        {CLT_GEMMA3, 1152, "Gemma 3 1B"},  {CLT_GEMMA3, 2560, "Gemma 3 4B"},      {CLT_GEMMA3, 3840, "Gemma 3 12B"},
        {CLT_GEMMA3, 5376, "Gemma 3 27B"}};
    const clt_config *c = &m->config;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].family == c->family && known[i].width == c->width) return known[i].name;
    char text[96];
    const char *kind = c->experts ? "experts" : c->ple_dim ? "per-layer embeddings" : "dense";
    int n = snprintf(text, sizeof text, "Gemma %d (%s, %d layers)", c->family == CLT_GEMMA3 ? 3 : 4, kind, c->layers);
    return clt_arena_strndup(m->arena, text, (size_t)n);
}

/* True if one of the words of s (split at anything but letters and digits) is "it" or "instruct". */
bool clt_name_is_instruct(const char *s, size_t len) {
    size_t start = 0;
    for (size_t i = 0; i <= len; i++) {
        unsigned char ch = i < len ? (unsigned char)s[i] : ' ', lower = ch | 0x20;
        if ((lower >= 'a' && lower <= 'z') || (ch >= '0' && ch <= '9')) continue;
        size_t n = i - start;
        if ((n == 2 && !strncasecmp(s + start, "it", 2)) || (n == 8 && !strncasecmp(s + start, "instruct", 8))) return true;
        start = i + 1;
    }
    return false;
}

bool clt_type_is_drafter(const char *type) {
    return !strncmp(type, "gemma4", 6) && (strstr(type, "assistant") || strstr(type, "mtp"));
}

static void add_id(int32_t *ids, int *n, int max, int64_t id) {
    if (id < 0 || id > INT32_MAX || *n >= max) return;
    for (int i = 0; i < *n; i++)
        if (ids[i] == id) return;
    ids[(*n)++] = (int32_t)id;
}

void clt_model_add_end_id(clt_model *m, int64_t id) {
    add_id(m->end_ids, &m->n_end_ids, (int)(sizeof m->end_ids / sizeof *m->end_ids), id);
}

void clt_model_add_suppressed_id(clt_model *m, int64_t id) {
    add_id(m->suppressed_ids, &m->n_suppressed_ids, (int)(sizeof m->suppressed_ids / sizeof *m->suppressed_ids), id);
}
