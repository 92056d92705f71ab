/* Importances in memory, and the GGUF form of their files. The older form is in imatrix_dat.c. */
#include "convert/imatrix.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/map.h"
#include "base/os.h"
#include "base/outfile.h"
#include "convert/imatrix_dat.h"
#include "file/gguf_write.h"

static const char sums_end[] = ".in_sum2", counts_end[] = ".counts", sensitivity_end[] = ".sensitivity";

clt_status clt_imatrix_init(clt_imatrix *m, const char *path, clt_err *err) {
    *m = (clt_imatrix){.arena = clt_arena_create(1 << 16)};
    if (m->arena) m->path = clt_arena_strndup(m->arena, path, strlen(path));
    if (m->arena) m->text = clt_arena_strndup(m->arena, "", 0);
    return m->path && m->text ? CLT_OK : clt_fail_memory(err, "importances", 1 << 16);
}

void clt_imatrix_free(clt_imatrix *m) {
    clt_free(m->entries);
    if (m->arena) clt_arena_free(m->arena);
    *m = (clt_imatrix){0};
}

clt_imatrix_entry *clt_imatrix_add(clt_imatrix *m, const char *name, size_t name_len, int64_t cols, int64_t matrices,
                                   clt_err *err) {
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 256;
        clt_imatrix_entry *grown = clt_realloc(m->entries, cap * sizeof *grown);
        if (!grown) {
            clt_fail_memory(err, "importances", cap * sizeof *grown);
            return NULL;
        }
        m->entries = grown;
        m->cap = cap;
    }
    clt_imatrix_entry e = {.cols = cols, .matrices = matrices};
    e.name = clt_arena_strndup(m->arena, name, name_len);
    e.values = CLT_ARENA_NEW(m->arena, float, cols * matrices);
    e.counts = CLT_ARENA_NEW(m->arena, float, matrices);
    if (!e.name || !e.values || !e.counts) {
        clt_fail_memory(err, "importances", (unsigned long long)(cols * matrices) * sizeof(float));
        return NULL;
    }
    m->entries[m->n] = e;
    return &m->entries[m->n++];
}

const clt_imatrix_entry *clt_imatrix_find(const clt_imatrix *m, const char *name) {
    for (size_t i = 0; i < m->n; i++)
        if (!strcmp(m->entries[i].name, name)) return &m->entries[i];
    return NULL;
}

/* ---- reading GGUF ---- */

static clt_status fail_damaged(const char *path, const char *name, const char *what, clt_err *err) {
    return clt_fail(err, CLT_E_FILE, "%s: damaged: %s %s", path, name, what);
}

static clt_status read_numbers(const clt_file *f, const clt_tensor *t, float *out, clt_err *err) {
    if (t->type != CLT_F32) return fail_damaged(clt_file_path(f), t->name, "is not of type F32", err);
    for (int64_t row = 0; row < clt_tensor_rows(t); row++)
        if (!clt_file_decode_row(f, t, row, out + row * t->dims[0]))
            return fail_damaged(clt_file_path(f), t->name, "cannot be read", err);
    return CLT_OK;
}

/* Sums become means. A matrix that saw nothing counts all its inputs alike. */
static clt_status to_means(clt_imatrix_entry *e, const char *path, clt_err *err) {
    for (int64_t m = 0; m < e->matrices; m++)
        for (int64_t i = 0; i < e->cols; i++) {
            float *v = &e->values[m * e->cols + i];
            *v = e->counts[m] > 0 ? *v / e->counts[m] : 1.0f;
            if (!(isfinite(*v) && *v >= 0)) return fail_damaged(path, e->name, "holds a number that is no mean square", err);
        }
    return CLT_OK;
}

static clt_status read_entry(const clt_file *f, const clt_tensor *sums, clt_imatrix *out, clt_err *err) {
    char name[128];
    size_t len = strlen(sums->name) - (sizeof sums_end - 1);
    snprintf(name, sizeof name, "%.*s%s", (int)len, sums->name, counts_end);
    const clt_tensor *counts = clt_file_find(f, name);
    if (!counts || counts->dims[0] * clt_tensor_rows(counts) != clt_tensor_rows(sums))
        return fail_damaged(clt_file_path(f), sums->name, "has no counts that fit", err);
    clt_imatrix_entry *e = clt_imatrix_add(out, sums->name, len, sums->dims[0], clt_tensor_rows(sums), err);
    clt_status status = e ? read_numbers(f, sums, e->values, err) : err->code;
    if (status == CLT_OK) status = read_numbers(f, counts, e->counts, err);
    snprintf(name, sizeof name, "%.*s%s", (int)len, sums->name, sensitivity_end);
    const clt_tensor *s = clt_file_find(f, name);
    if (status == CLT_OK && s && s->dims[0] == 1 && clt_tensor_rows(s) == 1)
        status = read_numbers(f, s, &e->sensitivity, err);
    if (status == CLT_OK && !(isfinite(e->sensitivity) && e->sensitivity >= 0))
        status = fail_damaged(clt_file_path(f), name, "holds a number that is no sensitivity", err);
    return status ? status : to_means(e, clt_file_path(f), err);
}

static void read_text_name(const clt_file *f, clt_imatrix *out) {
    const char *s;
    uint64_t pos = 0, len;
    const clt_meta *names = clt_file_meta_find(f, "imatrix.datasets");
    int64_t v;
    while (clt_meta_next_str(names, &pos, &s, &len)) {
        char *copy = clt_arena_strndup(out->arena, s, (size_t)len);
        if (copy) out->text = copy;
    }
    if (clt_meta_int(clt_file_meta_find(f, "imatrix.chunk_count"), 0, &v) && v >= 0) out->chunks = (uint32_t)v;
    if (clt_meta_int(clt_file_meta_find(f, "imatrix.chunk_size"), 0, &v) && v >= 0) out->chunk_tokens = (uint32_t)v;
}

static clt_status read_gguf(const char *path, clt_imatrix *out, clt_err *err) {
    clt_file *f = NULL;
    clt_status status = clt_file_open(path, &f, err);
    if (status != CLT_OK) return status;
    const char *type = "";
    uint64_t len = 0;
    clt_meta_str(clt_file_meta_find(f, "general.type"), &type, &len);
    if (len != 7 || memcmp(type, "imatrix", 7) != 0) {
        clt_fail(err, CLT_E_FILE, "%s: not an imatrix: its general.type is '%.*s'", path, (int)(len < 40 ? len : 40), type);
        status = clt_hint(err, "culet imatrix makes one");
    }
    for (size_t i = 0; status == CLT_OK && i < clt_file_tensors(f); i++) {
        const clt_tensor *t = clt_file_tensor(f, i);
        if (strlen(t->name) > sizeof sums_end - 1 && clt_ends_with(t->name, sums_end)) status = read_entry(f, t, out, err);
    }
    if (status == CLT_OK) read_text_name(f, out);
    clt_file_close(f);
    return status;
}

clt_status clt_imatrix_read(const char *path, clt_imatrix *out, clt_err *err) {
    clt_map map = {0};
    clt_status status = clt_imatrix_init(out, path, err);
    if (status == CLT_OK) status = clt_map_open(path, &map, err);
    if (status == CLT_OK) {
        bool gguf = map.size >= 4 && memcmp(map.data, "GGUF", 4) == 0;
        status = gguf ? read_gguf(path, out, err) : clt_imatrix_read_dat(path, map.data, map.size, out, err);
    }
    if (status == CLT_OK && out->n == 0) status = clt_fail(err, CLT_E_FILE, "%s: holds no importances", path);
    clt_map_close(&map);
    if (status != CLT_OK) clt_imatrix_free(out);
    return status;
}

/* ---- writing ---- */

static void put_entry_head(clt_gguf_head *h, const clt_imatrix_entry *e) {
    char name[160];
    snprintf(name, sizeof name, "%s%s", e->name, sums_end);
    clt_gguf_put_tensor(h, name, CLT_F32, 2, (const int64_t[]){e->cols, e->matrices});
    snprintf(name, sizeof name, "%s%s", e->name, counts_end);
    clt_gguf_put_tensor(h, name, CLT_F32, 2, (const int64_t[]){1, e->matrices});
    if (!(e->sensitivity > 0)) return;
    snprintf(name, sizeof name, "%s%s", e->name, sensitivity_end);
    clt_gguf_put_tensor(h, name, CLT_F32, 1, (const int64_t[]){1});
}

static void put_padded(clt_buf *b, size_t begin) {
    while ((b->len - begin) % 32 && !b->failed) clt_buf_putc(b, 0);
}

static void put_entry_data(clt_buf *b, const clt_imatrix_entry *e, size_t begin) {
    for (int64_t m = 0; m < e->matrices; m++)
        for (int64_t i = 0; i < e->cols; i++) {
            float sum = e->values[m * e->cols + i] * e->counts[m];
            clt_buf_put(b, &sum, sizeof sum);
        }
    put_padded(b, begin);
    clt_buf_put(b, e->counts, (size_t)e->matrices * sizeof(float));
    put_padded(b, begin);
    if (e->sensitivity > 0) clt_buf_put(b, &e->sensitivity, sizeof e->sensitivity);
    put_padded(b, begin);
}

static clt_status make_gguf(const clt_imatrix *m, clt_buf *out, clt_err *err) {
    clt_gguf_head h = {0};
    clt_gguf_put_str(&h, "general.type", "imatrix", 7);
    clt_gguf_begin_strings(&h, "imatrix.datasets", 1);
    clt_gguf_put_item(&h, m->text, strlen(m->text));
    clt_gguf_put_u32(&h, "imatrix.chunk_count", m->chunks);
    clt_gguf_put_u32(&h, "imatrix.chunk_size", m->chunk_tokens);
    for (size_t i = 0; i < m->n; i++) put_entry_head(&h, &m->entries[i]);
    clt_status status = clt_gguf_head_end(&h, out, err);
    size_t begin = out->len;
    for (size_t i = 0; i < m->n; i++) put_entry_data(out, &m->entries[i], begin);
    clt_gguf_head_free(&h);
    return status;
}

clt_status clt_imatrix_write(const clt_imatrix *m, const char *path, bool old_format, clt_err *err) {
    clt_buf bytes = {0};
    clt_status status = CLT_OK;
    if (old_format) clt_imatrix_make_dat(m, &bytes);
    else status = make_gguf(m, &bytes, err);
    if (status == CLT_OK && bytes.failed) status = clt_fail_memory(err, "importances", bytes.len);
    clt_outfile f = {.fd = -1};
    if (status == CLT_OK) status = clt_outfile_open(path, bytes.len, &f, err);
    if (status == CLT_OK && !clt_outfile_write(&f, bytes.data, bytes.len, 0)) status = clt_outfile_fail(&f, err);
    if (status == CLT_OK) status = clt_outfile_commit(&f, err);
    else clt_outfile_abandon(&f);
    clt_buf_free(&bytes);
    return status;
}
