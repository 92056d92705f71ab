/* The binding of picture towers: the two forms of file name the same tensors, and what does not fit is refused by name. */
#include <math.h>

#include "file/files.h"
#include "model/vision.h"

#define MODELS CLT_TEST_DIR "/golden/models/"
static const char small_dir[] = MODELS "tiny-vision", small_mmproj[] = MODELS "tiny-vision/gguf/tiny-vision-mmproj-f32.gguf";
static const char large_dir[] = MODELS "tiny-dense", large_mmproj[] = MODELS "tiny-dense/gguf/tiny-dense-mmproj-f32.gguf";
static const char unified_dir[] = MODELS "tiny-unified";
static const char unified_mmproj[] = MODELS "tiny-unified/gguf/tiny-unified-mmproj-f32.gguf";

/* A text model of width 64, as all golden towers want; only its width and its name count. */
typedef struct bound { clt_file *file; clt_model text; clt_vision_model m; } bound;

static clt_status try_bind(const char *path, int width, bound *b, clt_err *err) {
    *b = (bound){0};
    clt_status st = clt_file_open(path, &b->file, err);
    if (st == CLT_E_UNSUPPORTED) skip(); /* a build that cannot read folders */
    if (st != CLT_OK) return st;
    b->text.file = b->file, b->text.config.width = width;
    return clt_vision_bind(b->file, &b->text, &b->m, err);
}

static void close_bound(bound *b) {
    if (b->m.arena) clt_vision_model_free(&b->m);
    clt_file_close(b->file);
}

static bound bind_ok(const char *path) {
    bound b;
    clt_err err;
    if (try_bind(path, 64, &b, &err)) fail_msg("%s (%s)", err.text, err.hint);
    return b;
}

#define BIND_REFUSED(path, code, ...) bind_refused(__LINE__, path, 64, code, (const char *const[]){__VA_ARGS__, NULL})
static void bind_refused(int line, const char *path, int width, clt_status code, const char *const *words) {
    bound b;
    clt_err err = {0};
    long live = clt_mem_live();
    clt_status st = try_bind(path, width, &b, &err);
    if (st != code) fail_msg("line %d: %s, expected %s: %s", line, clt_status_name(st), clt_status_name(code), err.text);
    assert_one_line(err.text);
    for (; *words; words++)
        if (!strstr(err.text, *words)) fail_msg("line %d: '%s' is not in: %s", line, *words, err.text);
    close_bound(&b);
    assert_int_equal(clt_mem_live(), live);
}

/* ---- files with something about them changed ---- */

static clt_buf bytes_of(const char *path) {
    clt_buf b = {0};
    clt_err err;
    assert_int_equal(clt_read_file(path, 16 << 20, &b, &err), CLT_OK);
    return b;
}

static size_t place_of(const clt_buf *b, const char *text) {
    const char *at = memmem(b->data, b->len, text, strlen(text));
    assert_non_null(at);
    return (size_t)(at - b->data);
}

/* A vision file, with one text in it replaced by another of the same length. */
static const char *renamed(const char *file, const char *from, const char *to) {
    clt_buf b = bytes_of(file);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(b.data + place_of(&b, from), to, strlen(to));
    return write_buf("renamed.gguf", &b);
}

/* The number of a key of the small vision file replaced: behind a key stand its type (u32) and its value. */
static const char *renumbered(const char *key, uint32_t v) {
    clt_buf b = bytes_of(small_mmproj);
    memcpy(b.data + place_of(&b, key) + strlen(key) + 4, &v, sizeof v);
    return write_buf("renumbered.gguf", &b);
}

/* Dimensions of a tensor replaced: behind its name stand their number (u32) and they (u64 each). */
static const char *reshaped(const char *file, const char *name, int n, const uint64_t *dims) {
    clt_buf b = bytes_of(file);
    memcpy(b.data + place_of(&b, name) + strlen(name) + 4, dims, (size_t)n * sizeof *dims);
    return write_buf("reshaped.gguf", &b);
}

static const char *with_scalar(const char *name, float v) {
    clt_buf b = bytes_of(small_mmproj);
    clt_file *f = open_ok(small_mmproj);
    memcpy(b.data + clt_file_find(f, name)->offset, &v, sizeof v);
    clt_file_close(f);
    return write_buf("scalar.gguf", &b);
}

/* A folder, with one text of config.json from "vision_config" on replaced. */
static const char *configured(const char *model, const char *from, const char *to) {
    char path[1024];
    snprintf(path, sizeof path, "%s/config.json", model);
    clt_buf b = bytes_of(path), out = {0};
    const char *at = strstr(b.data + place_of(&b, "\"vision_config\""), from);
    assert_non_null(at);
    clt_buf_put(&out, b.data, (size_t)(at - b.data));
    clt_buf_puts(&out, to);
    clt_buf_puts(&out, at + strlen(from));
    mkdir(in_folder("dir"), 0777);
    unlink(in_folder("dir/model.safetensors"));
    snprintf(path, sizeof path, "%s/model.safetensors", model);
    assert_int_equal(symlink(path, in_folder("dir/model.safetensors")), 0);
    write_buf("dir/config.json", &out);
    clt_buf_free(&b);
    return in_folder("dir");
}

/* ---- what binds ---- */

static void row_of(const bound *b, const clt_tensor *t, int64_t r, float *row) {
    assert_true(t && t->dims[0] <= 2048 && clt_file_decode_row(b->file, t, r, row));
}

static void same_numbers(const bound *a, const clt_tensor *x, const bound *b, const clt_tensor *y) {
    float u[2048], v[2048];
    assert_true(x && y && x->dims[0] == y->dims[0] && clt_tensor_rows(x) == clt_tensor_rows(y));
    for (int64_t r = 0; r < clt_tensor_rows(x); r++) {
        row_of(a, x, r, u), row_of(b, y, r, v);
        if (memcmp(u, v, (size_t)x->dims[0] * sizeof *u) != 0) fail_msg("%s is not %s", x->name, y->name);
    }
}

static void same_matrix(const bound *a, const clt_tower_matrix *x, const bound *b, const clt_tower_matrix *y) {
    same_numbers(a, x->w, b, y->w);
    assert_true(x->clipped == y->clipped && x->in_min == y->in_min && x->in_max == y->in_max);
    assert_true(x->out_min == y->out_min && x->out_max == y->out_max);
}

/* Row (plane, at) of both tables is the same position, wherever it stands. */
static void same_positions(const bound *a, const bound *b) {
    float u[2048], v[2048];
    int n = a->m.config.positions, width = a->m.config.width;
    assert_int_equal(n, b->m.config.positions);
    for (int i = 0; i < 2 * n; i++) {
        row_of(a, a->m.position, clt_vision_position_row(&a->m, i / n, i % n), u);
        row_of(b, b->m.position, clt_vision_position_row(&b->m, i / n, i % n), v);
        assert_memory_equal(u, v, (size_t)width * sizeof *u);
    }
}

/* The columns of the patch matrix: row, column, channel in folders, channel, row, column in vision files of the encoder. */
static void same_patches(const bound *a, const bound *b, int side) {
    float u[2048], v[2048];
    const clt_tensor *stored = b->m.patch;
    assert_true(a->m.patch->dims[0] == side * side * 3 && stored->dims[0] == side * side * 3);
    assert_true(a->m.patch->dims[1] == a->m.config.width && stored->dims[1] == a->m.config.width);
    for (int64_t r = 0; r < a->m.config.width; r++) {
        row_of(a, a->m.patch, r, u), row_of(b, stored, r, v);
        for (int i = 0; i < side * side * 3; i++) assert_true(u[i] == v[i % 3 * side * side + i / 3]);
    }
}

static void same_layer(const bound *a, const clt_vision_layer *x, const bound *b, const clt_vision_layer *y) {
    same_numbers(a, x->attn_norm, b, y->attn_norm), same_numbers(a, x->post_attn_norm, b, y->post_attn_norm);
    same_numbers(a, x->ffn_norm, b, y->ffn_norm), same_numbers(a, x->post_ffn_norm, b, y->post_ffn_norm);
    same_numbers(a, x->q_norm, b, y->q_norm), same_numbers(a, x->k_norm, b, y->k_norm);
    same_matrix(a, &x->q, b, &y->q), same_matrix(a, &x->k, b, &y->k), same_matrix(a, &x->v, b, &y->v);
    same_matrix(a, &x->o, b, &y->o), same_matrix(a, &x->gate, b, &y->gate), same_matrix(a, &x->up, b, &y->up);
    same_matrix(a, &x->down, b, &y->down);
}

static void check_encoder(const char *dir, const char *mmproj, int layers, int heads, bool large) {
    bound a = bind_ok(dir), b = bind_ok(mmproj);
    const clt_vision_config *c = &a.m.config, *d = &b.m.config;
    assert_true(c->kind == CLT_VISION_ENCODER && d->kind == CLT_VISION_ENCODER && !c->planar && d->planar);
    assert_true(c->layers == layers && c->heads == heads && c->head_dim == 16 && c->patch == 16 && c->pool == 3);
    assert_true(d->layers == layers && d->heads == heads && d->head_dim == 16 && d->patch == 16 && d->pool == 3);
    assert_true(c->width == d->width && c->ffn == d->ffn && c->rope_theta == 100 && d->rope_theta == 100);
    assert_true(c->standardise == large && d->standardise == large && c->positions == 256 && c->text_width == 64);
    assert_true(c->rms_eps == 1e-6f && d->rms_eps == 1e-6f);
    assert_true(c->default_tokens == 70 && d->default_tokens == 280); /* the folder's processor says so; a file cannot */
    for (int l = 0; l < layers; l++) {
        same_layer(&a, &a.m.layer[l], &b, &b.m.layer[l]);
        assert_true(a.m.layer[l].q.clipped == !large && a.m.layer[l].down.clipped == !large);
        assert_true(large || (a.m.layer[l].q.in_min < a.m.layer[l].q.in_max && isfinite(a.m.layer[l].q.out_max)));
    }
    if (large) same_numbers(&a, a.m.std_bias, &b, b.m.std_bias), same_numbers(&a, a.m.std_scale, &b, b.m.std_scale);
    same_positions(&a, &b);
    same_patches(&a, &b, 16);
    same_numbers(&a, a.m.projection, &b, b.m.projection);
    close_bound(&a), close_bound(&b);
}

static void test_both_forms_hold_the_same(void **state) {
    (void)state;
    check_encoder(small_dir, small_mmproj, 3, 4, false);
    check_encoder(large_dir, large_mmproj, 2, 3, true);
}

static void test_unified(void **state) {
    (void)state;
    bound a = bind_ok(unified_dir), b = bind_ok(unified_mmproj);
    const clt_vision_config *c = &a.m.config;
    assert_true(c->kind == CLT_VISION_UNIFIED && b.m.config.kind == CLT_VISION_UNIFIED);
    assert_true(c->patch == 8 && c->pool == 3 && c->width == 64 && c->positions == 96 && c->norm_eps == 1e-5f);
    for (int i = 0; i < 3; i++) assert_true(a.m.norm[i] && a.m.norm_bias[i]);
    for (int i = 1; i < 3; i++) {
        same_numbers(&a, a.m.norm[i], &b, b.m.norm[i]);
        same_numbers(&a, a.m.norm_bias[i], &b, b.m.norm_bias[i]);
    }
    same_numbers(&a, a.m.patch_bias, &b, b.m.patch_bias);
    same_positions(&a, &b);
    same_patches(&a, &b, 24);
    same_numbers(&a, a.m.projection, &b, b.m.projection);
    close_bound(&a), close_bound(&b);
}

/* Bounds that a file leaves out bind nothing. */
static void test_absent_bounds(void **state) {
    (void)state;
    static const char *const names[] = {"v.blk.0.attn_q.input_min", "v.blk.0.attn_q.input_max", "v.blk.0.attn_q.output_min",
                                        "v.blk.0.attn_q.output_max"};
    clt_buf bytes = bytes_of(small_mmproj);
    for (int i = 0; i < 4; i++) bytes.data[place_of(&bytes, names[i])] = 'x'; /* no longer a part of the tower */
    bound b = bind_ok(write_buf("unbound.gguf", &bytes));
    const clt_tower_matrix *q = &b.m.layer[0].q;
    assert_true(!q->clipped && q->in_min == -INFINITY && q->out_max == INFINITY && b.m.layer[0].k.clipped);
    close_bound(&b);
}

static void test_present(void **state) {
    (void)state;
    static const char text_path[] = MODELS "tiny-unified/gguf/tiny-unified-Q4_0.gguf";
    clt_file *text = open_ok(text_path), *vision = open_ok(small_mmproj);
    assert_false(clt_vision_present(text));
    assert_true(clt_vision_present(vision));
    clt_file_close(text), clt_file_close(vision);
    BIND_REFUSED(text_path, CLT_E_UNSUPPORTED, "holds no picture tower");
}

/* ---- what is refused ---- */

static void test_tensors_that_do_not_fit(void **state) {
    (void)state;
    BIND_REFUSED(renamed(small_mmproj, "v.blk.1.attn_out.weight", "v.blk.1.attn_oux.weight"), CLT_E_FILE,
                 "missing tensors: v.blk.1.attn_out.weight", "extra tensors: ", "v.blk.1.attn_oux.weight", "renamed.gguf");
    BIND_REFUSED(renamed(small_mmproj, "mm.input_projection.weight", "mm.input_projectiox.weight"), CLT_E_FILE,
                 "missing tensors: mm.input_projection.weight");
    BIND_REFUSED(renamed(large_mmproj, "v.std_scale", "v.std_scalx"), CLT_E_FILE, "missing tensors: v.std_scale");
    BIND_REFUSED(renamed(large_mmproj, "v.std_bias", "v.std_biax"), CLT_E_FILE, "v.std_biax");
    BIND_REFUSED(renamed(unified_mmproj, "v.patch_norm.3.bias", "v.patch_norm.4.bias"), CLT_E_FILE,
                 "missing tensors: v.patch_norm.3.bias", "v.patch_norm.4.bias");
    BIND_REFUSED(reshaped(small_mmproj, "v.blk.0.attn_k.weight", 2, (const uint64_t[]){32, 128}), CLT_E_FILE,
                 "wrong tensors: v.blk.0.attn_k.weight has shape [32, 128, 1, 1], expected 64 columns and 64 rows");
    BIND_REFUSED(reshaped(small_mmproj, "v.patch_embd.weight", 4, (const uint64_t[]){8, 32, 3, 64}), CLT_E_FILE,
                 "wrong tensors: v.patch_embd.weight");
    BIND_REFUSED(reshaped(small_mmproj, "v.position_embd.weight", 3, (const uint64_t[]){64, 128, 4}), CLT_E_FILE,
                 "wrong tensors: v.position_embd.weight");
    BIND_REFUSED(reshaped(small_mmproj, "v.position_embd.weight", 3, (const uint64_t[]){64, 512, 1}), CLT_E_FILE,
                 "v.position_embd.weight");
}

/* Everything that is wrong is on the list, not the first alone. */
static void test_all_that_is_missing_is_named(void **state) {
    (void)state;
    static const char *const names[] = {"v.blk.0.ln1.weight", "v.blk.1.ffn_up.weight", "v.blk.2.attn_k_norm.weight"};
    clt_buf b = bytes_of(small_mmproj);
    for (int i = 0; i < 3; i++) b.data[place_of(&b, names[i])] = 'x';
    BIND_REFUSED(write_buf("holes.gguf", &b), CLT_E_FILE, names[0], names[1], names[2]);
}

/* A file for another text model: both files and both widths. */
static void test_other_widths(void **state) {
    (void)state;
    const char *const paths[] = {small_dir, small_mmproj, large_mmproj, unified_dir, unified_mmproj};
    const char *const words[] = {"picture tower is for a text model of width 64", "golden/models/tiny-", "has 65", NULL};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) bind_refused(__LINE__, paths[i], 65, CLT_E_FILE, words);
}

static void test_keys(void **state) {
    (void)state;
    BIND_REFUSED(renamed(small_mmproj, "gemma4v", "gemma9v"), CLT_E_UNSUPPORTED, "another family", "projector_type");
    BIND_REFUSED(renumbered("clip.vision.block_count", 0), CLT_E_FILE, "clip.vision.block_count is 0, expected 1");
    BIND_REFUSED(renumbered("clip.vision.block_count", UINT32_MAX), CLT_E_FILE, "clip.vision.block_count is 4.29497e+09");
    BIND_REFUSED(renumbered("clip.vision.block_count", 4), CLT_E_FILE, "missing tensors: v.blk.3.ln1.weight");
    BIND_REFUSED(renumbered("clip.vision.block_count", 2), CLT_E_FILE, "extra tensors: v.blk.2.");
    BIND_REFUSED(renumbered("clip.vision.attention.head_count", 0), CLT_E_FILE, "head_count is 0, expected 1");
    BIND_REFUSED(renumbered("clip.vision.attention.head_count", 5), CLT_E_FILE, "head_count does not divide the width");
    BIND_REFUSED(renumbered("clip.vision.attention.head_count", 32), CLT_E_FILE, "head_count does not divide the width");
    BIND_REFUSED(renumbered("clip.vision.attention.head_count", 8), CLT_E_FILE, "wrong tensors",
                 "v.blk.0.attn_q_norm.weight");
    BIND_REFUSED(renumbered("clip.vision.embedding_length", 32), CLT_E_FILE, "wrong tensors", "v.blk.0.ln1.weight");
    BIND_REFUSED(renumbered("clip.vision.feed_forward_length", UINT32_MAX), CLT_E_FILE, "feed_forward_length is");
    BIND_REFUSED(renumbered("clip.vision.patch_size", 0), CLT_E_FILE, "clip.vision.patch_size is 0");
    BIND_REFUSED(renumbered("clip.vision.patch_size", 14), CLT_E_FILE, "wrong tensors", "v.patch_embd.weight");
    BIND_REFUSED(renumbered("clip.vision.patch_size", UINT32_MAX), CLT_E_FILE, "clip.vision.patch_size is");
    BIND_REFUSED(renamed(small_mmproj, "clip.vision.embedding_length", "clip.vision.embedding_lengXX"), CLT_E_FILE,
                 "embedding_length is missing");
}

static void test_configurations(void **state) {
    (void)state;
    bound b = bind_ok(configured(small_dir, "\"rope_theta\": 100.0", "\"rope_theta\": 250.0"));
    assert_true(b.m.config.rope_theta == 250);
    close_bound(&b);
    BIND_REFUSED(configured(small_dir, "gelu_pytorch_tanh", "quick_gelu"), CLT_E_UNSUPPORTED, "gelu_pytorch_tanh");
    BIND_REFUSED(configured(small_dir, "\"attention_bias\": false", "\"attention_bias\": true"), CLT_E_UNSUPPORTED,
                 "biases");
    BIND_REFUSED(configured(small_dir, "\"num_key_value_heads\": 4", "\"num_key_value_heads\": 2"), CLT_E_UNSUPPORTED,
                 "shares keys");
    BIND_REFUSED(configured(small_dir, "\"hidden_size\": 64", "\"hidden_sizes\": 64"), CLT_E_FILE,
                 "vision_config.hidden_size is missing");
    BIND_REFUSED(configured(small_dir, "\"hidden_size\": 64", "\"hidden_size\": 64.5"), CLT_E_FILE, "not a whole number");
    BIND_REFUSED(configured(small_dir, "\"hidden_size\": 64", "\"hidden_size\": \"64\""), CLT_E_FILE, "is not a number");
    BIND_REFUSED(configured(small_dir, "\"hidden_size\": 64", "\"hidden_size\": 1e300"), CLT_E_FILE,
                 "hidden_size is 1e+300");
    BIND_REFUSED(configured(small_dir, "\"num_attention_heads\": 4", "\"num_attention_heads\": 3"), CLT_E_UNSUPPORTED,
                 "keys");
    BIND_REFUSED(configured(small_dir, "\"head_dim\": 16", "\"head_dim\": 8"), CLT_E_FILE, "does not divide the width");
    BIND_REFUSED(configured(small_dir, "\"standardize\": false", "\"standardize\": true"), CLT_E_FILE, "missing tensors",
                 "vision_tower.std_bias", "vision_tower.std_scale");
    BIND_REFUSED(configured(unified_dir, "\"mm_embed_dim\": 64", "\"mm_embed_dim\": 65"), CLT_E_FILE, "wrong tensors",
                 "vision_embedder.patch_dense.weight");
    BIND_REFUSED(configured(small_dir, "\"patch_size\": 16", "\"patch_size\": 1e9"), CLT_E_FILE, "patch_size is 1e+09");
    const char *dir = configured(small_dir, "\"vision_config\"", "\"vision_cinfog\"");
    BIND_REFUSED(dir, CLT_E_FILE, "config.json: vision_config is missing");
}

static void test_bounds_that_are_none(void **state) {
    (void)state;
    BIND_REFUSED(with_scalar("v.blk.1.ffn_down.input_min", NAN), CLT_E_FILE, "v.blk.1.ffn_down.input_min is no number");
    BIND_REFUSED(with_scalar("v.blk.1.ffn_down.output_min", 1e30f), CLT_E_FILE, "the lower is above the upper");
}

static void test_memory_that_fails(void **state) {
    (void)state;
    const char *const paths[] = {small_mmproj, unified_mmproj};
    for (int i = 0; i < 2; i++) {
        clt_file *f = open_ok(paths[i]);
        clt_model text = {.file = f, .config = {.width = 64}};
        clt_vision_model m;
        clt_err err;
        long live = clt_mem_live();
        clt_status st = CLT_E_MEMORY;
        for (long n = 1; st != CLT_OK; n++) {
            clt_mem_fail_after(n);
            st = clt_vision_bind(f, &text, &m, &err);
            clt_mem_fail_after(0);
            assert_true(st == CLT_OK || st == CLT_E_MEMORY);
            if (st == CLT_OK) clt_vision_model_free(&m);
            assert_int_equal(clt_mem_live(), live);
            assert_true(n < 50);
        }
        clt_file_close(f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_forms_hold_the_same), cmocka_unit_test(test_unified),
        cmocka_unit_test(test_absent_bounds), cmocka_unit_test(test_present), cmocka_unit_test(test_tensors_that_do_not_fit),
        cmocka_unit_test(test_all_that_is_missing_is_named), cmocka_unit_test(test_other_widths),
        cmocka_unit_test(test_keys), cmocka_unit_test(test_configurations), cmocka_unit_test(test_bounds_that_are_none),
        cmocka_unit_test(test_memory_that_fails)};
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
