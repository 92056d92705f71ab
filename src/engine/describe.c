/* What `show` prints: configuration, tensors and the memory plan of an opened model, as JSON or as text for a person.
 *
 * Shapes follow the file: a GGUF lists the innermost dimension (columns) first, a Hugging Face folder last; "shape_order"
 * says which. */
#include <string.h>
#include "base/json.h"
#include "engine/impl.h"

/* ---- JSON ---- */

static void put_int(clt_jsonw *w, const char *key, int64_t v) {
    clt_jsonw_key(w, key);
    clt_jsonw_int(w, v);
}

static void put_num(clt_jsonw *w, const char *key, double v) {
    clt_jsonw_key(w, key);
    clt_jsonw_num(w, v);
}

static void put_str(clt_jsonw *w, const char *key, const char *v) {
    clt_jsonw_key(w, key);
    clt_jsonw_cstr(w, v);
}

static void put_bool(clt_jsonw *w, const char *key, bool v) {
    clt_jsonw_key(w, key);
    clt_jsonw_bool(w, v);
}

static void put_ids(clt_jsonw *w, const char *key, const int32_t *ids, size_t n) {
    clt_jsonw_key(w, key);
    clt_jsonw_open(w, '[');
    for (size_t i = 0; i < n; i++) clt_jsonw_int(w, ids[i]);
    clt_jsonw_close(w, ']');
}

static void put_layers(clt_jsonw *w, const clt_config *c) {
    clt_jsonw_key(w, "layer");
    clt_jsonw_open(w, '[');
    for (int l = 0; l < c->layers; l++) {
        const clt_layer_config *lc = &c->layer[l];
        clt_jsonw_open(w, '{');
        put_bool(w, "sliding", lc->sliding);
        put_bool(w, "own_kv", lc->own_kv);
        put_int(w, "kv_donor", lc->kv_donor);
        put_int(w, "heads", lc->heads);
        put_int(w, "kv_heads", lc->kv_heads);
        put_int(w, "head_dim", lc->head_dim);
        put_bool(w, "k_is_v", lc->k_is_v);
        put_int(w, "ffn", lc->ffn);
        clt_jsonw_close(w, '}');
    }
    clt_jsonw_close(w, ']');
}

static void put_config(clt_jsonw *w, const clt_config *c) {
    clt_jsonw_key(w, "config");
    clt_jsonw_open(w, '{');
    put_int(w, "layers", c->layers);
    put_int(w, "width", c->width);
    put_int(w, "vocab", c->vocab);
    put_int(w, "context_limit", c->context_limit);
    put_int(w, "window", c->window);
    put_num(w, "rms_eps", (double)c->rms_eps);
    put_num(w, "attention_scale", (double)c->attn_scale);
    put_num(w, "final_softcap", (double)c->final_softcap);
    put_num(w, "embedding_scale", (double)c->embed_scale);
    put_num(w, "rope_theta_sliding", c->rope_theta_sliding);
    put_num(w, "rope_theta_full", c->rope_theta_full);
    put_int(w, "rope_pairs_full", c->rope_pairs_full);
    put_num(w, "rope_divisor_full", (double)c->rope_divisor_full);
    put_int(w, "per_layer_width", c->ple_dim);
    put_int(w, "experts", c->experts);
    put_int(w, "experts_used", c->experts_used);
    put_int(w, "expert_ffn", c->expert_ffn);
    put_layers(w, c);
    clt_jsonw_close(w, '}');
}

static bool innermost_first(const culet_engine *e) {
    return clt_file_get_kind(e->file) == CLT_FILE_GGUF;
}

static void put_tensors(clt_jsonw *w, const culet_engine *e) {
    put_str(w, "shape_order", innermost_first(e) ? "innermost first" : "innermost last");
    clt_jsonw_key(w, "tensors");
    clt_jsonw_open(w, '[');
    for (size_t i = 0; i < clt_file_tensors(e->file); i++) {
        const clt_tensor *t = clt_file_tensor(e->file, i);
        clt_jsonw_open(w, '{');
        put_str(w, "name", t->name);
        put_str(w, "type", clt_type_name((uint32_t)t->type));
        clt_jsonw_key(w, "shape");
        clt_jsonw_open(w, '[');
        for (int d = 0; d < t->n_dims; d++) clt_jsonw_int(w, t->dims[innermost_first(e) ? d : t->n_dims - 1 - d]);
        clt_jsonw_close(w, ']');
        put_int(w, "offset", (int64_t)t->offset);
        put_int(w, "bytes", (int64_t)t->bytes);
        put_int(w, "shard", t->shard);
        clt_jsonw_close(w, '}');
    }
    clt_jsonw_close(w, ']');
}

static const char *kv_name(culet_kv_type t) {
    return clt_type_get((uint32_t)clt_kv_type_of(t))->name;
}

static void put_plan(clt_jsonw *w, const clt_plan *p) {
    clt_jsonw_key(w, "memory");
    clt_jsonw_open(w, '{');
    put_int(w, "context", p->params.context);
    put_int(w, "ubatch", p->params.ubatch);
    put_str(w, "kv_type_k", kv_name(p->params.kv_k));
    put_str(w, "kv_type_v", kv_name(p->params.kv_v));
    put_int(w, "threads", p->threads);
    put_int(w, "mapped_file_bytes", (int64_t)p->mapped);
    put_int(w, "weight_bytes", (int64_t)p->weights);
    put_int(w, "vocabulary_bytes", (int64_t)p->vocabulary);
    put_int(w, "kv_full_layers", p->full_layers);
    put_int(w, "kv_full_bytes", (int64_t)p->kv_full);
    put_int(w, "kv_sliding_layers", p->sliding_layers);
    put_int(w, "kv_sliding_bytes", (int64_t)p->kv_sliding);
    put_int(w, "kv_shared_layers", p->shared_layers);
    put_int(w, "kv_bytes", (int64_t)(p->kv_full + p->kv_sliding));
    put_int(w, "scratch_bytes", (int64_t)p->scratch);
    put_int(w, "table_bytes", (int64_t)(p->engine_tables + p->session_tables));
    put_int(w, "total_bytes", (int64_t)p->total);
    clt_jsonw_close(w, '}');
}

static void put_template(clt_jsonw *w, const culet_model_info *i) {
    clt_jsonw_key(w, "template");
    clt_jsonw_open(w, '{');
    put_str(w, "name", i->template_name);
    put_str(w, "digest", i->template_digest);
    put_bool(w, "recognised", i->template_recognised);
    clt_jsonw_close(w, '}');
}

/* One tower: where it lies, of what kind it is; null where there is none. */
static void put_tower(clt_jsonw *w, const char *key, const char *path, const char *kind, const char *number, double value) {
    clt_jsonw_key(w, key);
    if (!path) {
        clt_jsonw_raw(w, "null", 4);
        return;
    }
    clt_jsonw_open(w, '{');
    put_str(w, "path", path);
    put_str(w, "kind", kind);
    put_num(w, number, value);
    clt_jsonw_close(w, '}');
}

static void put_sampling(clt_jsonw *w, const culet_sampling *s) {
    clt_jsonw_key(w, "sampling");
    clt_jsonw_open(w, '{');
    put_num(w, "temperature", (double)s->temperature);
    put_int(w, "top_k", s->top_k);
    put_num(w, "top_p", (double)s->top_p);
    clt_jsonw_close(w, '}');
}

static void write_json(const culet_engine *e, const clt_plan *p, clt_buf *out) {
    clt_jsonw w = {.out = out};
    const culet_model_info *i = &e->info;
    clt_jsonw_open(&w, '{');
    put_str(&w, "path", i->path);
    put_str(&w, "format", i->format);
    put_str(&w, "architecture", i->architecture);
    put_str(&w, "name", i->name);
    put_str(&w, "family", i->family);
    put_int(&w, "parameters", (int64_t)i->parameters);
    put_int(&w, "file_bytes", (int64_t)i->file_bytes);
    put_int(&w, "shards", clt_file_shards(e->file));
    put_bool(&w, "is_base", i->is_base);
    put_tower(&w, "vision", i->vision_path, i->vision_kind, "image_tokens", i->image_tokens);
    put_tower(&w, "audio", i->audio_path, i->audio_kind, "limit_seconds", i->audio_limit_seconds);
    put_template(&w, i);
    put_sampling(&w, &i->sampling);
    put_int(&w, "bos_id", i->bos_id);
    put_ids(&w, "end_ids", i->end_ids, i->n_end_ids);
    put_ids(&w, "suppressed_ids", i->suppressed_ids, i->n_suppressed_ids);
    put_config(&w, &e->model.config);
    put_plan(&w, p);
    put_tensors(&w, e);
    clt_jsonw_close(&w, '}');
}

/* ---- text ---- */

static double mib(uint64_t bytes) {
    return (double)bytes / 1048576;
}

static void say_ids(clt_buf *out, const char *label, const int32_t *ids, size_t n) {
    clt_buf_puts(out, label);
    for (size_t i = 0; i < n; i++) clt_buf_printf(out, "%s%d", i ? " " : "", ids[i]);
    clt_buf_puts(out, n ? "\n" : "none\n");
}

static void say_model(const culet_engine *e, clt_buf *out) {
    const culet_model_info *i = &e->info;
    const clt_config *c = &e->model.config;
    clt_buf_printf(out, "%s\n", i->path);
    clt_buf_printf(out, "model      %s%s%s (%s), %s, %.1f MiB, %.1f M parameters\n", i->family, *i->name ? ", " : "",
                   i->name, i->architecture, i->format, mib(i->file_bytes), (double)i->parameters / 1e6);
    clt_buf_printf(out, "shape      %d layers, width %d, %d heads, vocabulary %d, context up to %d, window %d\n", c->layers,
                   c->width, i->heads, c->vocab, c->context_limit, c->window);
    if (c->experts > 0) clt_buf_printf(out, "experts    %d, %d used per token\n", c->experts, c->experts_used);
    if (i->is_base) clt_buf_puts(out, "template   none: a base model, completes text\n");
    else
        clt_buf_printf(out, "template   %s%s%s\n", i->template_name, i->template_recognised ? "" : " (nearest) ",
                       i->template_recognised ? "" : i->template_digest);
    if (i->vision_path)
        clt_buf_printf(out, "pictures   %s, up to %d tokens each, from %s\n", i->vision_kind, i->image_tokens,
                       i->vision_path);
    if (i->audio_path) clt_buf_printf(out, "sound      %s, from %s\n", i->audio_kind, i->audio_path);
    clt_buf_printf(out, "sampling   temperature %g, top-k %d, top-p %g\n", (double)i->sampling.temperature,
                   i->sampling.top_k, (double)i->sampling.top_p);
    say_ids(out, "end ids    ", i->end_ids, i->n_end_ids);
    if (i->n_suppressed_ids) say_ids(out, "suppressed ", i->suppressed_ids, i->n_suppressed_ids);
}

static void say_plan(const clt_plan *p, clt_buf *out) {
    clt_buf_printf(out, "memory for a context of %d tokens, KV %s/%s\n", p->params.context,
                   kv_name(p->params.kv_k), kv_name(p->params.kv_v));
    clt_buf_printf(out, "  weights    %10.1f MiB\n", mib(p->weights));
    clt_buf_printf(out, "  KV full    %10.1f MiB in %d layers\n", mib(p->kv_full), p->full_layers);
    clt_buf_printf(out, "  KV sliding %10.1f MiB in %d layers", mib(p->kv_sliding), p->sliding_layers);
    if (p->shared_layers) clt_buf_printf(out, "; %d layers share and keep nothing", p->shared_layers);
    clt_buf_printf(out, "\n  scratch    %10.1f MiB for %d threads\n", mib(p->scratch), p->threads);
    clt_buf_printf(out, "  vocabulary %10.1f MiB\n", mib(p->vocabulary));
    clt_buf_printf(out, "  tables     %10.1f MiB\n", mib(p->engine_tables + p->session_tables));
    clt_buf_printf(out, "  total      %10.1f MiB, beside %.1f MiB of mapped file that the system may drop\n", mib(p->total),
                   mib(p->mapped));
}

static void say_tensors(const culet_engine *e, clt_buf *out) {
    clt_buf_printf(out, "tensors (%s)\n", innermost_first(e) ? "columns first" : "rows first");
    for (size_t i = 0; i < clt_file_tensors(e->file); i++) {
        const clt_tensor *t = clt_file_tensor(e->file, i);
        clt_buf_printf(out, "  %-44s %-7s ", t->name, clt_type_name((uint32_t)t->type));
        for (int d = 0; d < t->n_dims; d++)
            clt_buf_printf(out, "%s%lld", d ? " x " : "", (long long)t->dims[innermost_first(e) ? d : t->n_dims - 1 - d]);
        clt_buf_puts(out, "\n");
    }
}

culet_status culet_engine_describe(const culet_engine *e, const struct culet_session_params *p, bool text, char **out,
                                   culet_error *err) {
    clt_err inner;
    clt_buf document = {0};
    clt_plan planned;
    *out = NULL;
    if (!e->has_model)
        return clt_report(clt_fail(&inner, CLT_E_USAGE, "%s: opened for its text alone", e->info.path), &inner, err);
    clt_status status = clt_plan_make(e, p, 1, &planned, &inner);
    if (status != CLT_OK) return clt_report(status, &inner, err);
    if (text) {
        say_model(e, &document);
        say_plan(&planned, &document);
        say_tensors(e, &document);
    } else {
        write_json(e, &planned, &document);
    }
    if (document.failed) {
        clt_buf_free(&document);
        return clt_report(clt_fail_memory(&inner, "description", document.len), &inner, err);
    }
    *out = document.data;
    return clt_report(CLT_OK, &inner, err);
}
