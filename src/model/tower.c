/* Finding the tensors and numbers of a tower, in a Hugging Face folder or in a vision file; knows no kind of tower.
 *
 * Whatever is missing, misshapen or left over is collected and reported together, each tensor by its name. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "model/internal.h"
#include "model/tower.h"

/* ---- single tensors ---- */

static const clt_tensor *claim(clt_tower_binder *b, const char *name) {
    const clt_tensor *t = clt_file_find(b->f, name);
    if (t) b->claimed[t - clt_file_tensor(b->f, 0)] = 1;
    return t;
}

static void check(clt_tower_binder *b, const clt_tensor *t, int64_t cols, int64_t rows, bool vector) {
    if (!t) return;
    if (t->dims[0] != cols || clt_tensor_rows(t) != rows || (!vector && t->dims[1] != rows))
        clt_buf_printf(&b->misshapen, "; %s has shape [%lld, %lld, %lld, %lld], expected %lld columns and %lld rows",
                       t->name, (long long)t->dims[0], (long long)t->dims[1], (long long)t->dims[2], (long long)t->dims[3],
                       (long long)cols, (long long)rows);
    else if (vector && t->type != CLT_F32 && t->type != CLT_F16 && t->type != CLT_BF16)
        clt_buf_printf(&b->misshapen, "; %s has type %s, expected F32, F16 or BF16", t->name,
                       clt_type_name((uint32_t)t->type));
}

const clt_tensor *clt_tower_find(clt_tower_binder *b, const char *gguf, const char *hf, int64_t cols, int64_t rows,
                                 bool vector) {
    char name[192];
    snprintf(name, sizeof name, "%s%s", b->gguf ? "" : b->prefix, b->gguf ? gguf : hf);
    const clt_tensor *t = claim(b, name);
    if (!t) clt_buf_printf(&b->missing, "; %s", name);
    check(b, t, cols, rows, vector);
    if (t && b->listener) b->listener->heard(b->listener->user, gguf, t);
    return t;
}

/* ---- bounds ---- */

/* gguf: the name of the matrix there. */
static float bound(clt_tower_binder *b, const char *gguf, const char *stem, const char *which, float none) {
    char name[256];
    float v = none;
    snprintf(name, sizeof name, "%s.%s", stem, which);
    const clt_tensor *t = claim(b, name);
    if (!t) return none;
    check(b, t, 1, 1, true);
    snprintf(name, sizeof name, "%.*s.%s", (int)(strlen(gguf) - strlen(".weight")), gguf, which);
    if (b->listener) b->listener->heard(b->listener->user, name, t);
    snprintf(name, sizeof name, "%s.%s", stem, which);
    if (t->dims[0] != 1 || clt_tensor_rows(t) != 1 || !clt_file_decode_row(b->f, t, 0, &v)) return none;
    if (isnan(v)) clt_buf_printf(&b->misshapen, "; %s is no number", name);
    return v;
}

static void read_bounds(clt_tower_binder *b, const char *gguf, clt_tower_matrix *m) {
    char stem[224];
    snprintf(stem, sizeof stem, "%s", m->w->name);
    size_t n = strlen(stem), tail = clt_ends_with(stem, ".linear.weight") ? 14 : 7;
    stem[n - tail] = 0;
    m->in_min = bound(b, gguf, stem, "input_min", -INFINITY), m->in_max = bound(b, gguf, stem, "input_max", INFINITY);
    m->out_min = bound(b, gguf, stem, "output_min", -INFINITY), m->out_max = bound(b, gguf, stem, "output_max", INFINITY);
    if (m->in_min > m->in_max || m->out_min > m->out_max)
        clt_buf_printf(&b->misshapen, "; %s has bounds of which the lower is above the upper", m->w->name);
    m->clipped = isfinite(m->in_min) || isfinite(m->in_max) || isfinite(m->out_min) || isfinite(m->out_max);
}

void clt_tower_find_bounded(clt_tower_binder *b, const char *gguf, const char *hf, int64_t cols, int64_t rows,
                            clt_tower_matrix *out) {
    *out = (clt_tower_matrix){.w = clt_tower_find(b, gguf, hf, cols, rows, false)};
    if (out->w) read_bounds(b, gguf, out);
}

/* ---- beginning and end ---- */

clt_status clt_tower_begin(clt_tower_binder *b, const clt_file *f, const char *probe, clt_err *err) {
    *b = (clt_tower_binder){.f = f, .gguf = clt_file_get_kind(f) == CLT_FILE_GGUF};
    b->prefix = b->gguf || clt_file_find(f, probe) ? "" : "model.";
    b->claimed = clt_calloc(clt_file_tensors(f) + 1, 1);
    return b->claimed ? CLT_OK : clt_fail_memory(err, "the tower", clt_file_tensors(f));
}

void clt_tower_end(clt_tower_binder *b) {
    clt_free(b->claimed);
    clt_buf_free(&b->missing), clt_buf_free(&b->misshapen), clt_buf_free(&b->extra);
}

static void collect_extra(clt_tower_binder *b, const char *const own[2]) {
    for (size_t i = 0; i < clt_file_tensors(b->f); i++) {
        const char *name = clt_file_tensor(b->f, i)->name;
        if (b->claimed[i]) continue;
        if (!b->gguf && strncmp(name, b->prefix, strlen(b->prefix)) == 0) name += strlen(b->prefix);
        for (int k = 0; k < 2; k++)
            if (strncmp(name, own[k], strlen(own[k])) == 0) clt_buf_printf(&b->extra, "; %s", name);
    }
}

clt_status clt_tower_report(clt_tower_binder *b, const char *what, const char *const hf[2], const char *const gguf[2],
                            clt_err *err) {
    const char *const kinds[] = {"missing tensors", "wrong tensors", "extra tensors"};
    const clt_buf *lists[] = {&b->missing, &b->misshapen, &b->extra};
    clt_buf text = {0};
    collect_extra(b, b->gguf ? gguf : hf);
    for (int i = 0; i < 3; i++) {
        text.failed |= lists[i]->failed;
        if (lists[i]->len) clt_buf_printf(&text, "%s%s: %s", text.len ? ". " : "", kinds[i], lists[i]->data + 2);
    }
    clt_status st = text.failed  ? clt_fail_memory(err, "the list of tensors", 4096)
                    : text.len ? clt_fail(err, CLT_E_FILE, "%s: %s: %s", clt_file_path(b->f), what, text.data)
                               : CLT_OK;
    clt_buf_free(&text);
    return st == CLT_E_FILE ? clt_hint(err, "get the file again or convert it again") : st;
}

clt_status clt_tower_check_width(const clt_file *f, const clt_tensor *p, const clt_model *text, const char *what,
                                 clt_err *err) {
    if (!p || p->dims[1] == text->config.width) return CLT_OK;
    clt_fail(err, CLT_E_FILE, "%s: its %s is for a text model of width %lld, but %s has %d", clt_file_path(f), what,
             (long long)p->dims[1], clt_file_path(text->file), text->config.width);
    return clt_hint(err, "give the vision file (mmproj) that belongs to the model");
}

/* ---- configuration ---- */

clt_tower_reader clt_tower_reader_open(const clt_file *f, const char *object, const char *keys, const char *what,
                                       clt_err *err) {
    clt_tower_reader r = {.f = f, .object = object, .keys = keys, .err = err, .st = CLT_OK};
    if (clt_file_get_kind(f) != CLT_FILE_HF) return r;
    r.json = clt_json_get(clt_file_json(f, "config.json"), object);
    if (clt_json_kind(r.json) != CLT_JSON_OBJECT)
        r.st = clt_fail(err, CLT_E_FILE, "%s/config.json: %s is missing, but there is a %s", clt_file_path(f), object, what);
    return r;
}

void clt_tower_bad(clt_tower_reader *r, const char *key, const char *what) {
    if (r->st != CLT_OK) return;
    r->st = clt_fail(r->err, CLT_E_FILE, "%s%s: key %s%s%s %s", clt_file_path(r->f), r->json ? "/config.json" : "",
                     r->json ? r->object : r->keys, r->json ? "." : "", key, what);
}

void clt_tower_unsupported(clt_tower_reader *r, const char *what) {
    if (r->st == CLT_OK) r->st = clt_fail(r->err, CLT_E_UNSUPPORTED, "%s: %s", clt_file_path(r->f), what);
}

/* False: absent. */
static bool find_number(clt_tower_reader *r, const char *key, double *v) {
    char name[96];
    if (clt_file_get_kind(r->f) == CLT_FILE_HF) {
        const clt_json *n = clt_json_get(r->json, key);
        if (clt_json_kind(n) == CLT_JSON_NULL) return false;
        if (!clt_json_num(n, v)) clt_tower_bad(r, key, "is not a number");
        return true;
    }
    snprintf(name, sizeof name, "%s%s", r->keys, key);
    const clt_meta *m = clt_file_meta_find(r->f, name);
    if (m && !clt_meta_num(m, 0, v)) clt_tower_bad(r, key, "is not a number");
    return m != NULL;
}

double clt_tower_number(clt_tower_reader *r, const char *key, double min, double max, double fallback) {
    double v = fallback;
    char what[128];
    if (!find_number(r, key, &v)) {
        if (fallback < 0) clt_tower_bad(r, key, "is missing");
        return fallback;
    }
    if (!(v >= min && v <= max)) {
        snprintf(what, sizeof what, "is %g, expected %g to %g", v, min, max);
        clt_tower_bad(r, key, what);
    }
    return r->st == CLT_OK ? v : min;
}

int clt_tower_integer(clt_tower_reader *r, const char *key, int min, int max, int fallback) {
    double v = clt_tower_number(r, key, min, max, fallback);
    if (r->st == CLT_OK && v != (double)(int)v) clt_tower_bad(r, key, "is not a whole number");
    return r->st == CLT_OK ? (int)v : min;
}

bool clt_tower_meta_is(const clt_file *f, const char *key, const char *expected) {
    const char *s;
    uint64_t len;
    const clt_meta *m = clt_file_meta_find(f, key);
    return m && clt_meta_str(m, &s, &len) && len == strlen(expected) && memcmp(s, expected, len) == 0;
}
