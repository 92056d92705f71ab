/* What a model says about itself beyond its weights: template, end ids, ids that never win, sampling defaults. In: the file
 * as read by the rooms below. Out: fields of the engine, with the constants of the family where a file is silent. */
#include <string.h>
#include "base/os.h"
#include "engine/impl.h"

enum { MAX_TEMPLATE_BYTES = 4 << 20 };

/* ---- files without tensors: the little that text needs ---- */

static bool meta_string(const clt_file *f, const char *key, const char **s, size_t *len) {
    uint64_t n = 0;
    const clt_meta *m = clt_file_meta_find(f, key);
    if (!m || !clt_meta_str(m, s, &n)) return false;
    *len = (size_t)n;
    return true;
}

static void read_text_only(culet_engine *e) {
    clt_model *m = &e->model;
    const char *s;
    size_t len;
    int64_t ple = 0, end;
    m->config.family = CLT_GEMMA4;
    m->architecture = "gemma4";
    if (meta_string(e->file, "general.architecture", &s, &len) && len >= 6 && memcmp(s, "gemma3", 6) == 0) {
        m->config.family = CLT_GEMMA3;
        m->architecture = "gemma3";
    }
    const clt_meta *width = clt_file_meta_find(e->file, "gemma4.embedding_length_per_layer_input");
    if (width && clt_meta_int(width, 0, &ple) && ple > 0) m->config.ple_dim = 1;
    if (meta_string(e->file, "tokenizer.chat_template", &s, &len) && len > 0) {
        m->chat_template = s;
        m->chat_template_len = len;
    }
    const clt_meta *eos = clt_file_meta_find(e->file, "tokenizer.ggml.eos_token_id");
    if (eos && clt_meta_int(eos, 0, &end) && end >= 0 && end < clt_vocab_size(e->vocab))
        m->end_ids[m->n_end_ids++] = (int32_t)end;
}

/* ---- template ---- */

/* "No template, no end of turn among the end ids, and no name that says instruct" is a base model. */
static bool looks_base(const culet_engine *e) {
    const clt_model *m = &e->model;
    if (m->chat_template || m->is_instruct_name) return false;
    int32_t turn_close = clt_vocab_get_roles(e->vocab)->turn_close;
    for (int i = 0; i < m->n_end_ids; i++)
        if (m->end_ids[i] == turn_close) return false;
    return true;
}

static clt_status read_template_file(culet_engine *e, const char *path, const clt_chat_facts *facts, clt_err *err) {
    clt_buf text = {0};
    clt_status status = clt_read_file(path, MAX_TEMPLATE_BYTES, &text, err);
    if (status == CLT_OK) {
        clt_chat_recognise(text.data, text.len, facts, &e->chat);
        e->has_chat = e->chat.recognised;
        if (!e->has_chat) {
            status = clt_fail(err, CLT_E_UNSUPPORTED, "%s: not a chat template of Gemma that is known here", path);
            clt_hint(err, "culet renders the official templates of Gemma 3 and Gemma 4; without this file, the model's own");
        }
    }
    clt_buf_free(&text);
    return status;
}

clt_status clt_engine_read_template(culet_engine *e, const culet_engine_params *p, clt_err *err) {
    if (!e->has_model) read_text_only(e);
    const clt_model *m = &e->model;
    clt_chat_facts facts = {.gemma3 = m->config.family == CLT_GEMMA3, .small = m->config.ple_dim > 0};
    if (p->chat_template_file) return read_template_file(e, p->chat_template_file, &facts, err);
    e->has_chat = !looks_base(e);
    if (!e->has_chat) return CLT_OK;
    clt_chat_recognise(m->chat_template, (size_t)m->chat_template_len, &facts, &e->chat);
    if (m->chat_template && !e->chat.recognised)
        clt_engine_warn(p, "%s: chat template %s is not known; rendering with \"%s\"", clt_file_path(e->file),
                        e->chat.digest[0] ? e->chat.digest : "of the file", clt_chat_generation_name(e->chat.generation));
    return CLT_OK;
}

/* ---- ids ---- */

static void add_id(int32_t *list, size_t *n, size_t cap, int32_t id) {
    if (id < 0) return;
    for (size_t i = 0; i < *n; i++)
        if (list[i] == id) return;
    if (*n < cap) list[(*n)++] = id;
}

/* A GGUF file without a list of end ids names one (end of text) and means more: what ends a turn of an instruct model. */
static bool end_ids_are_complete(const culet_engine *e) {
    if (e->model.n_end_ids == 0) return false;
    return clt_file_get_kind(e->file) == CLT_FILE_HF || clt_file_meta_find(e->file, "tokenizer.ggml.eos_token_ids");
}

void clt_engine_read_ids(culet_engine *e, bool forced_chat) {
    const clt_model *m = &e->model;
    const clt_vocab_roles *roles = clt_vocab_get_roles(e->vocab);
    culet_model_info *info = &e->info;
    info->end_ids = e->end_ids;
    info->suppressed_ids = e->suppressed_ids;
    for (int i = 0; i < m->n_end_ids; i++) add_id(e->end_ids, &info->n_end_ids, CLT_MAX_END_IDS, m->end_ids[i]);
    if (m->n_end_ids == 0) add_id(e->end_ids, &info->n_end_ids, CLT_MAX_END_IDS, roles->eos);
    if (e->has_chat && (forced_chat || !end_ids_are_complete(e))) {
        add_id(e->end_ids, &info->n_end_ids, CLT_MAX_END_IDS, clt_vocab_find(e->vocab, "<eos>"));
        add_id(e->end_ids, &info->n_end_ids, CLT_MAX_END_IDS, roles->turn_close);
        add_id(e->end_ids, &info->n_end_ids, CLT_MAX_END_IDS, roles->response_open);
    }
    for (int i = 0; i < m->n_suppressed_ids; i++)
        add_id(e->suppressed_ids, &info->n_suppressed_ids, CLT_MAX_SUPPRESSED_IDS, m->suppressed_ids[i]);
    /* The unified model holds projected media ends in these two rows; as output they mean nothing. */
    if (m->n_suppressed_ids == 0 && e->has_model && m->config.unified) {
        add_id(e->suppressed_ids, &info->n_suppressed_ids, CLT_MAX_SUPPRESSED_IDS, roles->image_end);
        add_id(e->suppressed_ids, &info->n_suppressed_ids, CLT_MAX_SUPPRESSED_IDS, roles->audio_end);
    }
}

/* ---- sampling ---- */

void clt_engine_read_sampling(culet_engine *e) {
    const clt_model *m = &e->model;
    e->info.sampling = (culet_sampling){
        .temperature = m->has_temperature ? m->temperature : 1.0f,
        .top_k = m->has_top_k ? m->top_k : 64,
        .top_p = m->has_top_p ? m->top_p : 0.95f,
        .repeat_penalty = 1,
        .repeat_last_n = 64,
    };
}
