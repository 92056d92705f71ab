/* Helpers for tests on the golden models; see golden.h. */
#include "golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void must(clt_status st, const clt_err *err) {
    if (st != CLT_OK) fail_msg("%s (%s)", err->text, err->hint);
}

void golden_path(char out[1024], const char *dir, const char *name) {
    const char *outside = getenv("CULET_GOLDENS"), *root = outside && *outside ? outside : CLT_TEST_DIR "/golden";
    snprintf(out, 1024, "%s/models/%s%s%s", root, dir, name ? "/" : "", name ? name : "");
}

bool golden_exists(const char *path) {
    char full[1024];
    golden_path(full, path, NULL);
    return clt_is_file(full) || clt_is_dir(full);
}

clt_cpu_level golden_best_level(void) {
    clt_cpu_level best = CLT_CPU_SCALAR;
    for (int l = 0; l < CLT_CPU_LEVELS; l++)
        if (clt_kernels_get((clt_cpu_level)l)) best = (clt_cpu_level)l;
    return best;
}

void golden_open(golden *g, const char *path, golden_options o) {
    static clt_err err;
    char full[1024];
    memset(g, 0, sizeof *g);
    golden_path(full, path, NULL);
    must(clt_file_open(full, &g->file, &err), &err);
    must(clt_model_bind(g->file, &g->model, &err), &err);
    must(clt_pool_create(o.threads, &g->pool, &err), &err);
    must(clt_net_create(&g->model, clt_kernels_get(o.level), g->pool, NULL, NULL, &g->net, &err), &err);
    must(clt_scratch_create(g->net, o.max_rows, &g->scratch, &err), &err);
    must(clt_kv_create(&g->model, o.context, o.max_rows, o.k_type, o.v_type, &g->kv, &err), &err);
    g->vocab = g->model.config.vocab;
}

void golden_close(golden *g) {
    clt_json_free(g->doc);
    clt_kv_free(g->kv);
    clt_scratch_free(g->scratch);
    clt_net_free(g->net);
    clt_pool_free(g->pool);
    clt_model_free(&g->model);
    clt_file_close(g->file);
}

clt_json *golden_json(const char *dir, const char *name) {
    static clt_err err;
    char path[1024];
    clt_buf text = {0};
    clt_json *doc = NULL;
    golden_path(path, dir, name);
    must(clt_read_file(path, 64 << 20, &text, &err), &err);
    must(clt_json_parse(text.data, text.len, path, &doc, &err), &err);
    clt_buf_free(&text);
    return doc;
}

float *golden_array(const char *dir, const char *name, size_t *n) {
    static clt_err err;
    char path[1024];
    clt_buf bytes = {0};
    golden_path(path, dir, name);
    must(clt_read_file(path, 64 << 20, &bytes, &err), &err);
    float *out = malloc(bytes.len + 1);
    assert_non_null(out);
    memcpy(out, bytes.data, bytes.len);
    *n = bytes.len / sizeof(float);
    clt_buf_free(&bytes);
    return out;
}

int32_t *golden_ids(const clt_json *array, int *n) {
    *n = (int)clt_json_len(array);
    assert_true(*n > 0);
    int32_t *ids = malloc((size_t)*n * sizeof *ids);
    assert_non_null(ids);
    for (int i = 0; i < *n; i++) {
        int64_t v;
        assert_true(clt_json_int(clt_json_at(array, (size_t)i), &v));
        ids[i] = (int32_t)v;
    }
    return ids;
}

void golden_run(golden *g, const int32_t *ids, int n, int chunk, bool all, float *out) {
    static clt_err err;
    clt_row *rows = malloc((size_t)chunk * sizeof *rows);
    assert_non_null(rows);
    for (int at = 0; at < n; at += chunk) {
        int count = n - at < chunk ? n - at : chunk, wanted = 0;
        for (int r = 0; r < count; r++) {
            rows[r] = (clt_row){.kv = g->kv, .id = ids[at + r], .want_logits = all || at + r == n - 1};
            wanted += rows[r].want_logits;
        }
        must(clt_forward(g->net, g->scratch, rows, count, out, NULL, &err), &err);
        out += (int64_t)wanted * g->vocab;
    }
    free(rows);
}
