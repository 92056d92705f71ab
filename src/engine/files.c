/* Files made of files: quantised ones, converted folders. Opens what is read, makes the manifest, has it written. */
#include <string.h>
#include <strings.h>
#include "base/mem.h"
#include "base/os.h"
#include "convert/auto.h"
#include "convert/folder.h"
#include "convert/quantize.h"
#include "engine/impl.h"
#include "hub/folder.h"

/* What a run reads, holds and writes. */
typedef struct files {
    clt_file *file;
    clt_manifest manifest;
    clt_imatrix imatrix;
    bool has_imatrix;
    clt_type_override *overrides;
    char *patterns; /* their texts, one block */
    size_t n_overrides;
    clt_pool *pool;
    clt_fit_fn fit;
} files;

static void free_files(files *f) {
    clt_manifest_free(&f->manifest);
    if (f->has_imatrix) clt_imatrix_free(&f->imatrix);
    clt_file_close(f->file);
    clt_free(f->overrides);
    clt_free(f->patterns);
    clt_pool_free(f->pool);
}

static clt_status open_input(files *f, const char *input, clt_err *err) {
    clt_buf path = {0};
    clt_status status = clt_hub_find(input, &path, err);
    if (status == CLT_OK) status = clt_file_open(path.data, &f->file, err);
    if (status == CLT_OK) status = clt_manifest_init(&f->manifest, err);
    clt_buf_free(&path);
    return status;
}

static clt_status open_machine(files *f, int threads, clt_err *err) {
    clt_cpu_level level;
    clt_status status = clt_cpu_choose(&level, err);
    if (status != CLT_OK) return status;
    f->fit = clt_fit_get(level);
    return clt_pool_create(threads > 0 ? threads : clt_threads_default(), &f->pool, err);
}

/* "REGEX=TYPE": the last "=" parts them. */
static clt_status read_override(const char *text, char *pattern, clt_type_override *out, clt_err *err) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text)
        return clt_fail(err, CLT_E_USAGE, "--tensor-type: '%s' is not of the form REGEX=TYPE", text);
    for (uint32_t t = 0; t < 64; t++) {
        const clt_type_info *info = clt_type_get(t);
        if (!info || strcasecmp(info->name, equals + 1) != 0) continue;
        memcpy(pattern, text, (size_t)(equals - text));
        pattern[equals - text] = 0;
        *out = (clt_type_override){pattern, info->type};
        return CLT_OK;
    }
    clt_fail(err, CLT_E_USAGE, "--tensor-type: '%s' is no type that culet writes", equals + 1);
    return clt_hint(err, "types are F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS");
}

static clt_status read_overrides(files *f, const char *const *texts, size_t n, clt_err *err) {
    size_t bytes = 1;
    for (size_t i = 0; i < n; i++) bytes += strlen(texts[i]) + 1;
    f->overrides = clt_calloc(n + 1, sizeof *f->overrides);
    f->patterns = clt_calloc(bytes, 1);
    if (!f->overrides || !f->patterns) return clt_fail_memory(err, "patterns", bytes);
    char *at = f->patterns;
    for (; f->n_overrides < n; f->n_overrides++) {
        clt_status status = read_override(texts[f->n_overrides], at, &f->overrides[f->n_overrides], err);
        if (status != CLT_OK) return status;
        at += strlen(at) + 1;
    }
    return CLT_OK;
}

/* auto_bytes: 0, or the budget of auto:SIZE, which is no recipe of the table. */
static clt_status find_recipe(const char *name, const clt_recipe **out, uint64_t *auto_bytes, clt_err *err) {
    *auto_bytes = 0;
    *out = clt_recipe_find(name);
    if (*out || clt_auto_size(name, auto_bytes)) return CLT_OK;
    clt_fail(err, CLT_E_USAGE, "quantize: '%s' is no type", name);
    return clt_hint(err, "types are %s", clt_recipe_names());
}

/* Two names of one file would end with neither. */
static clt_status check_distinct(const files *f, const char *output, clt_err *err) {
    for (int i = 0; i < clt_file_shards(f->file); i++)
        if (clt_same_file(clt_file_shard_path(f->file, i), output))
            return clt_fail(err, CLT_E_USAGE, "%s: the output would take the place of the input", output);
    return CLT_OK;
}

static void note_imatrix(files *f) {
    clt_gguf_head *h = &f->manifest.head;
    clt_gguf_put_str(h, "quantize.imatrix.file", f->imatrix.path, strlen(f->imatrix.path));
    if (f->imatrix.text[0]) clt_gguf_put_str(h, "quantize.imatrix.dataset", f->imatrix.text, strlen(f->imatrix.text));
    clt_gguf_put_u32(h, "quantize.imatrix.entries_count", (uint32_t)f->imatrix.n);
    if (f->imatrix.chunks) clt_gguf_put_u32(h, "quantize.imatrix.chunks_count", f->imatrix.chunks);
}

static uint64_t bytes_of(const clt_manifest *m) {
    uint64_t sum = 0;
    for (size_t i = 0; i < m->n; i++) sum += clt_manifest_tensor_bytes(&m->tensors[i]);
    return sum;
}

static clt_status choose_types(files *f, const clt_quantize_request *r, uint64_t bytes, const clt_convert_run *run,
                               clt_err *err) {
    enum { UNSTATED = 1024 }; /* general.file_type of files that follow no common recipe */
    bool *fixed = clt_calloc(f->manifest.n + 1, sizeof *fixed);
    clt_status status = fixed ? clt_manifest_quantize(&f->manifest, r, fixed, err)
                              : clt_fail_memory(err, "the recipe", f->manifest.n);
    if (status == CLT_OK) status = clt_manifest_auto(&f->manifest, r->imatrix, fixed, bytes, run, err);
    f->manifest.file_type = UNSTATED;
    clt_free(fixed);
    return status;
}

static clt_status quantize(files *f, const culet_quantize_params *p, culet_quantized *out, clt_err *err) {
    const clt_recipe *recipe;
    uint64_t auto_bytes;
    clt_status status = find_recipe(p->type, &recipe, &auto_bytes, err);
    if (status == CLT_OK) status = read_overrides(f, p->overrides, p->n_overrides, err);
    if (status == CLT_OK) status = open_input(f, p->input, err);
    if (status == CLT_OK) status = check_distinct(f, p->output, err);
    if (status == CLT_OK && p->imatrix) {
        status = clt_imatrix_read(p->imatrix, &f->imatrix, err);
        f->has_imatrix = status == CLT_OK;
    }
    if (status == CLT_OK && clt_file_get_kind(f->file) == CLT_FILE_HF)
        status = clt_manifest_text(f->file, clt_folder_type(f->file), &f->manifest, err);
    else if (status == CLT_OK)
        status = clt_manifest_copy(f->file, &f->manifest, err);
    if (status != CLT_OK) return status;
    *out = (culet_quantized){.tensors = f->manifest.n, .bytes_before = bytes_of(&f->manifest)};
    clt_quantize_request request = {.recipe = recipe, .imatrix = f->has_imatrix ? &f->imatrix : NULL,
                                    .overrides = f->overrides, .n_overrides = f->n_overrides};
    status = open_machine(f, p->threads, err);
    clt_convert_run run = {f->pool, f->fit, p->progress, p->user};
    if (status == CLT_OK && f->has_imatrix) note_imatrix(f);
    if (status == CLT_OK && recipe) status = clt_manifest_quantize(&f->manifest, &request, NULL, err);
    else if (status == CLT_OK) status = choose_types(f, &request, auto_bytes, &run, err);
    out->bytes = bytes_of(&f->manifest);
    return status == CLT_OK ? clt_manifest_write(&f->manifest, p->output, &run, err) : status;
}

/* ---- converting ---- */

static clt_status find_type(const files *f, const char *name, clt_type *out, clt_err *err) {
    static const clt_type types[] = {CLT_F32, CLT_F16, CLT_BF16, CLT_Q8_0};
    *out = clt_folder_type(f->file);
    if (!name) return CLT_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        *out = types[i];
        if (!strcasecmp(clt_type_name((uint32_t)types[i]), name)) return CLT_OK;
    }
    clt_fail(err, CLT_E_USAGE, "--outtype: '%s' is no type that folders are converted to", name);
    return clt_hint(err, "types are F32 F16 BF16 Q8_0; culet quantize makes the others");
}

static clt_status convert(files *f, const culet_convert_params *p, culet_quantized *out, clt_err *err) {
    clt_type type = CLT_F32;
    clt_status status = open_input(f, p->input, err);
    if (status == CLT_OK && clt_file_get_kind(f->file) != CLT_FILE_HF)
        status = clt_fail(err, CLT_E_USAGE, "%s: not a Hugging Face folder", p->input);
    if (status == CLT_OK) status = check_distinct(f, p->output, err);
    if (status == CLT_OK) status = find_type(f, p->type, &type, err);
    if (status == CLT_OK)
        status = (p->towers ? clt_manifest_towers : clt_manifest_text)(f->file, type, &f->manifest, err);
    if (status == CLT_OK) status = open_machine(f, p->threads, err);
    if (status != CLT_OK) return status;
    f->manifest.file_type = type == CLT_F32 ? 0 : type == CLT_F16 ? 1 : type == CLT_BF16 ? 32 : 7;
    *out = (culet_quantized){f->manifest.n, clt_file_bytes(f->file), bytes_of(&f->manifest)};
    return clt_manifest_write(&f->manifest, p->output, &(clt_convert_run){f->pool, f->fit, p->progress, p->user}, err);
}

/* ---- public ---- */

culet_status culet_convert(const culet_convert_params *p, culet_quantized *out, culet_error *err) {
    clt_err inner;
    files f = {0};
    clt_status status = convert(&f, p, out, &inner);
    free_files(&f);
    return clt_report(status, &inner, err);
}

culet_status culet_quantize(const culet_quantize_params *p, culet_quantized *out, culet_error *err) {
    clt_err inner;
    files f = {0};
    clt_status status = quantize(&f, p, out, &inner);
    free_files(&f);
    return clt_report(status, &inner, err);
}
