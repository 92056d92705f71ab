/* Helpers for tests of the engine; see tiny.h. */
#include "engine/tiny.h"
#include <unistd.h>
#include "base/buf.h"
#include "base/json.h"
#include "base/os.h"

int tiny_cannot_run(void) {
#if CLT_HAVE_JANSSON && CLT_HAVE_YAJL
    return 0;
#else
    return 77;
#endif
}

const char *tiny_path(const char *sub) {
    static char path[1024];
    const char *goldens = getenv("CULET_GOLDENS");
    if (goldens) snprintf(path, sizeof path, "%s/models/%s", goldens, sub);
    else snprintf(path, sizeof path, "%s/golden/models/%s", CLT_TEST_DIR, sub);
    return path;
}

culet_engine *tiny_open(const char *sub, culet_open_mode mode, int threads) {
    culet_error err;
    culet_engine *e = NULL;
    culet_engine_params p = {.model = tiny_path(sub), .mode = mode, .threads = threads};
    if (culet_engine_open(&p, &e, &err) != CULET_OK) fail_msg("%s", err.text);
    return e;
}

culet_session *tiny_session_kv(culet_engine *e, int context, int ubatch, culet_kv_type kv) {
    culet_error err;
    culet_session *s = NULL;
    culet_session_params p = {.context = context, .ubatch = ubatch, .kv_k = kv, .kv_v = kv};
    if (culet_session_open(e, &p, &s, &err) != CULET_OK) fail_msg("%s", err.text);
    return s;
}

culet_session *tiny_session(culet_engine *e, int context, int ubatch) {
    return tiny_session_kv(e, context, ubatch, CULET_KV_F32);
}

tiny_ids tiny_golden(const char *model, const char *prompt, const char *key) {
    char name[256];
    clt_err err;
    clt_buf text = {0};
    clt_json *doc;
    tiny_ids ids = {.n = 0};
    snprintf(name, sizeof name, "%s/golden.json", model);
    if (clt_read_file(tiny_path(name), 1 << 24, &text, &err) != CLT_OK) fail_msg("%s", err.text);
    if (clt_json_parse(text.data, text.len, name, &doc, &err) != CLT_OK) fail_msg("%s", err.text);
    const clt_json *list = clt_json_get(clt_json_get(clt_json_get(doc, "text"), prompt), key);
    assert_true(clt_json_len(list) > 0 && clt_json_len(list) <= 512);
    for (; ids.n < clt_json_len(list); ids.n++) {
        int64_t id;
        assert_true(clt_json_int(clt_json_at(list, ids.n), &id));
        ids.data[ids.n] = (int32_t)id;
    }
    clt_json_free(doc);
    clt_buf_free(&text);
    return ids;
}

culet_sampling tiny_greedy(void) {
    return (culet_sampling){.top_p = 1, .repeat_penalty = 1, .ignore_eos = true};
}

/* Each id has a bias above all that follow, and loses far more once it has been said. */
void tiny_dictate(tiny_script *script, const int32_t *ids, size_t n) {
    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++) {
        script->ids[i] = ids[i];
        script->bias[i] = 20000.0f - 250.0f * (float)i;
    }
    script->sampling = (culet_sampling){.top_p = 1, .repeat_penalty = 1, .repeat_last_n = -1, .presence_penalty = 100000,
                                        .bias_ids = script->ids, .bias_values = script->bias, .n_bias = n};
}

size_t tiny_tokens(const culet_engine *e, const char *text, int32_t *out, size_t room) {
    culet_error err;
    int32_t *ids;
    size_t n, len;
    const char *piece;
    for (int32_t id = 0; strncmp(text, "<0x", 3) == 0 && (piece = culet_piece(e, id, &len)); id++) {
        if (len != strlen(text) || memcmp(piece, text, len) != 0) continue;
        *out = id;
        return 1;
    }
    assert_int_equal(culet_tokenize(e, text, strlen(text), true, false, &ids, &n, &err), CULET_OK);
    assert_true(n <= room);
    memcpy(out, ids, n * sizeof *ids);
    culet_free(ids);
    return n;
}

bool tiny_on_delta(void *user, culet_delta kind, const char *text, size_t len) {
    tiny_view *v = user;
    char *to = kind == CULET_DELTA_CONTENT ? v->content : v->thought;
    size_t *n = kind == CULET_DELTA_CONTENT ? &v->n_content : &v->n_thought;
    assert_true(len > 0 && *n + len < sizeof v->content);
    memcpy(to + *n, text, len);
    *n += len;
    to[*n] = 0;
    v->deltas++;
    return v->stop_after == 0 || v->deltas < v->stop_after;
}

static char folder[64];

const char *tiny_folder(void) {
    if (!folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%.40s/culet-XXXXXX", base && strlen(base) <= 40 ? base : "/tmp");
        assert_non_null(mkdtemp(folder));
    }
    return folder;
}

void tiny_remove_folder(void) {
    char **names, path[512];
    size_t n;
    clt_err err;
    if (!folder[0] || clt_list_dir(folder, &names, &n, &err) != CLT_OK) return;
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
        culet_free(names[i]);
    }
    culet_free(names);
    rmdir(folder);
    folder[0] = 0;
}
