/* The binding of sound towers: the two forms of file name the same tensors, and what does not fit is refused by name. */
#include <math.h>

#include "file/files.h"
#include "model/audio.h"

#define MODELS CLT_TEST_DIR "/golden/models/"
static const char audio_dir[] = MODELS "tiny-audio", audio_mmproj[] = MODELS "tiny-audio/gguf/tiny-audio-mmproj-f32.gguf";
static const char unified_dir[] = MODELS "tiny-unified";
static const char unified_mmproj[] = MODELS "tiny-unified/gguf/tiny-unified-mmproj-f32.gguf";

/* A text model of width 64, as both golden towers want; only its width and its name count. */
typedef struct bound { clt_file *file; clt_model text; clt_audio_model m; } bound;

static clt_status try_bind(const char *path, int width, bound *b, clt_err *err) {
    *b = (bound){0};
    clt_status st = clt_file_open(path, &b->file, err);
    if (st == CLT_E_UNSUPPORTED) skip(); /* a build that cannot read folders */
    if (st != CLT_OK) return st;
    b->text.file = b->file, b->text.config.width = width;
    st = clt_audio_bind(b->file, &b->text, &b->m, err);
    return st;
}

static void close_bound(bound *b) {
    if (b->m.arena) clt_audio_model_free(&b->m);
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

/* The vision file, with one text in it replaced by another of the same length. */
static const char *renamed(const char *from, const char *to) {
    clt_buf b = bytes_of(audio_mmproj);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(b.data + place_of(&b, from), to, strlen(to));
    return write_buf("renamed.gguf", &b);
}

/* The vision file, with a number at a distance behind the end of a text replaced. */
static const char *renumbered(const char *behind, size_t distance, uint64_t v, int bytes) {
    clt_buf b = bytes_of(audio_mmproj);
    memcpy(b.data + place_of(&b, behind) + strlen(behind) + distance, &v, (size_t)bytes);
    return write_buf("renumbered.gguf", &b);
}

/* The vision file, with the one number of a tensor replaced. */
static const char *with_scalar(const char *name, float v) {
    clt_buf b = bytes_of(audio_mmproj);
    clt_file *f = open_ok(audio_mmproj);
    memcpy(b.data + clt_file_find(f, name)->offset, &v, sizeof v);
    clt_file_close(f);
    return write_buf("scalar.gguf", &b);
}

/* The folder, with one text of config.json behind "audio_config" replaced. */
static const char *configured(const char *from, const char *to) {
    clt_buf b = bytes_of(MODELS "tiny-audio/config.json"), out = {0};
    size_t audio = place_of(&b, "\"audio_config\"");
    const char *at = strstr(b.data + audio, from);
    assert_non_null(at);
    clt_buf_put(&out, b.data, (size_t)(at - b.data));
    clt_buf_puts(&out, to);
    clt_buf_puts(&out, at + strlen(from));
    mkdir(in_folder("dir"), 0777);
    unlink(in_folder("dir/model.safetensors"));
    assert_int_equal(symlink(MODELS "tiny-audio/model.safetensors", in_folder("dir/model.safetensors")), 0);
    write_buf("dir/config.json", &out);
    clt_buf_free(&b);
    return in_folder("dir");
}

/* ---- what binds ---- */

static void same_numbers(const bound *a, const clt_tensor *x, const bound *b, const clt_tensor *y) {
    float u[256], v[256];
    assert_true(x && y && x->dims[0] == y->dims[0] && x->dims[0] <= 256 && clt_tensor_rows(x) == clt_tensor_rows(y));
    for (int64_t r = 0; r < clt_tensor_rows(x); r++) {
        assert_true(clt_file_decode_row(a->file, x, r, u) && clt_file_decode_row(b->file, y, r, v));
        if (memcmp(u, v, (size_t)x->dims[0] * sizeof *u) != 0) fail_msg("%s is not %s", x->name, y->name);
    }
}

static void same_matrix(const bound *a, const clt_tower_matrix *x, const bound *b, const clt_tower_matrix *y) {
    same_numbers(a, x->w, b, y->w);
    assert_true(x->clipped && y->clipped && x->in_min == y->in_min && x->in_max == y->in_max);
    assert_true(x->out_min == y->out_min && x->out_max == y->out_max && x->in_min < x->in_max && isfinite(x->out_max));
}

static void test_both_forms_hold_the_same(void **state) {
    (void)state;
    bound a = bind_ok(audio_dir), b = bind_ok(audio_mmproj);
    const clt_audio_config *c = &a.m.config, *d = &b.m.config;
    assert_memory_equal(c, d, sizeof *c);
    assert_int_equal(c->kind, CLT_AUDIO_CONFORMER);
    assert_true(c->layers == 2 && c->width == 32 && c->ffn == 128 && c->heads == 4 && c->head_dim == 8 && c->window == 12);
    assert_true(c->conv_kernel == 5 && c->channels[0] == 128 && c->channels[1] == 8 && c->out_width == 48 &&
                c->bands == 128);
    assert_true(c->max_seconds == 30 && c->text_width == 64 && c->logit_cap == 50 && c->rms_eps == 1e-6f);
    assert_true(!a.m.scale_is_softplus && b.m.scale_is_softplus);
    for (int i = 0; i < 2; i++) {
        same_numbers(&a, a.m.conv[i], &b, b.m.conv[i]);
        same_numbers(&a, a.m.conv_norm[i], &b, b.m.conv_norm[i]);
    }
    same_numbers(&a, a.m.input_proj, &b, b.m.input_proj);
    same_numbers(&a, a.m.output_proj, &b, b.m.output_proj), same_numbers(&a, a.m.output_bias, &b, b.m.output_bias);
    same_numbers(&a, a.m.projection, &b, b.m.projection);
    for (int l = 0; l < c->layers; l++) {
        const clt_audio_layer *x = &a.m.layer[l], *y = &b.m.layer[l];
        for (int i = 0; i < 2; i++) {
            same_numbers(&a, x->ffn_norm[i], &b, y->ffn_norm[i]);
            same_numbers(&a, x->ffn_post_norm[i], &b, y->ffn_post_norm[i]);
            same_matrix(&a, &x->ffn_up[i], &b, &y->ffn_up[i]), same_matrix(&a, &x->ffn_down[i], &b, &y->ffn_down[i]);
        }
        same_numbers(&a, x->attn_norm, &b, y->attn_norm), same_numbers(&a, x->attn_post_norm, &b, y->attn_post_norm);
        same_numbers(&a, x->out_norm, &b, y->out_norm), same_numbers(&a, x->conv_norm, &b, y->conv_norm);
        same_numbers(&a, x->conv_pre_norm, &b, y->conv_pre_norm);
        same_numbers(&a, x->relative_k, &b, y->relative_k);
        same_matrix(&a, &x->q, &b, &y->q), same_matrix(&a, &x->k, &b, &y->k), same_matrix(&a, &x->v, &b, &y->v);
        same_matrix(&a, &x->post, &b, &y->post);
        same_matrix(&a, &x->conv_start, &b, &y->conv_start), same_matrix(&a, &x->conv_end, &b, &y->conv_end);
    }
    close_bound(&a), close_bound(&b);
}

static void test_unified(void **state) {
    (void)state;
    bound a = bind_ok(unified_dir), b = bind_ok(unified_mmproj);
    assert_memory_equal(&a.m.config, &b.m.config, sizeof a.m.config);
    assert_int_equal(a.m.config.kind, CLT_AUDIO_UNIFIED);
    assert_true(a.m.config.bands == 640 && a.m.config.max_seconds == 0 && a.m.config.text_width == 64);
    float u[640], v[640];
    assert_true(clt_file_decode_row(a.file, a.m.projection, 5, u) && clt_file_decode_row(b.file, b.m.projection, 5, v));
    assert_memory_equal(u, v, sizeof u);
    close_bound(&a), close_bound(&b);
}

/* Bounds that a file leaves out bind nothing. */
static void test_absent_bounds(void **state) {
    (void)state;
    clt_buf bytes = bytes_of(audio_mmproj);
    static const char *const names[] = {"a.blk.0.attn_q.input_min", "a.blk.0.attn_q.input_max", "a.blk.0.attn_q.output_min",
                                        "a.blk.0.attn_q.output_max"};
    for (int i = 0; i < 4; i++) bytes.data[place_of(&bytes, names[i])] = 'x'; /* no longer a part of the tower */
    bound b = bind_ok(write_buf("unbound.gguf", &bytes));
    const clt_tower_matrix *q = &b.m.layer[0].q;
    assert_true(!q->clipped && q->in_min == -INFINITY && q->out_max == INFINITY && b.m.layer[0].k.clipped);
    close_bound(&b);
}

static void test_present(void **state) {
    (void)state;
    clt_file *text = open_ok(MODELS "tiny-unified/gguf/tiny-unified-Q4_0.gguf"), *vision = open_ok(audio_mmproj);
    assert_false(clt_audio_present(text));
    assert_true(clt_audio_present(vision));
    clt_file_close(text), clt_file_close(vision);
    BIND_REFUSED(MODELS "tiny-unified/gguf/tiny-unified-Q4_0.gguf", CLT_E_UNSUPPORTED, "holds no sound tower");
}

/* ---- what is refused ---- */

static void test_tensors_that_do_not_fit(void **state) {
    (void)state;
    BIND_REFUSED(renamed("a.blk.1.conv_dw.weight", "a.blk.1.conv_dx.weight"), CLT_E_FILE,
                 "missing tensors: a.blk.1.conv_dw.weight",
                 "extra tensors: a.blk.1.conv_dx.weight", "renamed.gguf");
    BIND_REFUSED(renamed("mm.a.input_projection.weight", "xx.a.input_projection.weight"), CLT_E_FILE,
                 "missing tensors: mm.a.input_projection.weight");
    /* n_dims (u32), dims (u64 each): 32 x 32 becomes 16 x 64 */
    clt_buf b = bytes_of(audio_mmproj);
    const uint64_t dims[2] = {16, 64};
    memcpy(b.data + place_of(&b, "a.blk.0.attn_k.weight") + strlen("a.blk.0.attn_k.weight") + 4, dims, sizeof dims);
    BIND_REFUSED(write_buf("shape.gguf", &b), CLT_E_FILE,
                 "wrong tensors: a.blk.0.attn_k.weight has shape [16, 64, 1, 1], expected 32 columns and 32 rows");
}

static void test_other_widths(void **state) {
    (void)state;
    const char *const words[] = {"is for a text model of width 64", "golden/models/tiny-", "has 65", NULL};
    bind_refused(__LINE__, audio_mmproj, 65, CLT_E_FILE, words);
    bind_refused(__LINE__, audio_dir, 65, CLT_E_FILE, words);
    bind_refused(__LINE__, unified_mmproj, 65, CLT_E_FILE, words);
}

static void test_keys(void **state) {
    (void)state;
    BIND_REFUSED(renamed("gemma4a", "gemma9a"), CLT_E_UNSUPPORTED, "another family", "clip.audio.projector_type");
    /* behind a key: type (u32), value */
    BIND_REFUSED(renumbered("clip.audio.num_mel_bins", 4, 80, 4), CLT_E_FILE, "clip.audio.num_mel_bins is 80, expected 128");
    BIND_REFUSED(renumbered("clip.audio.block_count", 4, 0, 4), CLT_E_FILE, "clip.audio.block_count is 0, expected 1");
    BIND_REFUSED(renumbered("clip.audio.attention.head_count", 4, 5, 4), CLT_E_FILE, "head_count does not divide the width");
    BIND_REFUSED(renumbered("clip.audio.embedding_length", 4, 64, 4), CLT_E_FILE, "wrong tensors", "a.blk.0.ln2.weight");
    BIND_REFUSED(renumbered("clip.audio.block_count", 4, 3, 4), CLT_E_FILE, "missing tensors: a.blk.2.ffn_norm.weight");
    BIND_REFUSED(renamed("clip.audio.embedding_length", "clip.audio.embedding_lengXX"), CLT_E_FILE,
                 "embedding_length is missing");
}

static void test_configurations(void **state) {
    (void)state;
    bound b = bind_ok(configured("\"residual_weight\": 0.5", "\"residual_weight\": 0.25"));
    assert_true(b.m.config.residual_weight == 0.25f);
    close_bound(&b);
    BIND_REFUSED(configured("\"attention_chunk_size\": 12", "\"attention_chunk_size\": 16"), CLT_E_UNSUPPORTED, "attention");
    BIND_REFUSED(configured("\"attention_context_right\": 0", "\"attention_context_right\": 2"), CLT_E_UNSUPPORTED,
                 "attention");
    BIND_REFUSED(configured("\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\""), CLT_E_UNSUPPORTED, "activation");
    BIND_REFUSED(configured("\"hidden_size\": 32", "\"hidden_sizes\": 32"), CLT_E_FILE,
                 "audio_config.hidden_size is missing");
    BIND_REFUSED(configured("\"hidden_size\": 32", "\"hidden_size\": 32.5"), CLT_E_FILE,
                 "hidden_size is not a whole number");
    BIND_REFUSED(configured("\"hidden_size\": 32", "\"hidden_size\": \"32\""), CLT_E_FILE, "hidden_size is not a number");
    BIND_REFUSED(configured("\"hidden_size\": 32", "\"hidden_size\": 1e300"), CLT_E_FILE, "hidden_size is 1e+300");
    BIND_REFUSED(configured("\"output_proj_dims\": 48", "\"output_proj_dims\": 49"), CLT_E_FILE, "wrong tensors");
    BIND_REFUSED(configured("   8\n", "   0\n"), CLT_E_FILE, "subsampling_conv_channels");
    BIND_REFUSED(configured("\"num_attention_heads\": 4", "\"num_attention_heads\": 3"), CLT_E_FILE, "does not divide");
}

static void test_a_folder_that_does_not_describe_its_tower(void **state) {
    (void)state;
    const char *dir = configured("\"hidden_act\": \"silu\"", "\"hidden_act\": \"silu\"");
    clt_buf b = bytes_of(in_folder("dir/config.json"));
    memcpy(b.data + place_of(&b, "\"audio_config\""), "\"audio_cinfog\"", 14);
    write_buf("dir/config.json", &b);
    BIND_REFUSED(dir, CLT_E_FILE, "config.json: audio_config is missing");
}

static void test_bounds_that_are_none(void **state) {
    (void)state;
    BIND_REFUSED(with_scalar("a.blk.1.ffn_down_1.input_min", NAN), CLT_E_FILE, "a.blk.1.ffn_down_1.input_min is no number");
    BIND_REFUSED(with_scalar("a.blk.1.ffn_down_1.output_min", 1e30f), CLT_E_FILE, "the lower is above the upper");
}

static void test_memory_that_fails(void **state) {
    (void)state;
    clt_file *f = open_ok(audio_mmproj);
    clt_model text = {.file = f, .config = {.width = 64}};
    clt_audio_model m;
    clt_err err;
    long live = clt_mem_live();
    clt_status st = CLT_E_MEMORY;
    for (long n = 1; st != CLT_OK; n++) {
        clt_mem_fail_after(n);
        st = clt_audio_bind(f, &text, &m, &err);
        clt_mem_fail_after(0);
        assert_true(st == CLT_OK || st == CLT_E_MEMORY);
        if (st == CLT_OK) clt_audio_model_free(&m);
        assert_int_equal(clt_mem_live(), live);
        assert_true(n < 50);
    }
    clt_file_close(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_forms_hold_the_same), cmocka_unit_test(test_unified),
        cmocka_unit_test(test_absent_bounds),
        cmocka_unit_test(test_present), cmocka_unit_test(test_tensors_that_do_not_fit), cmocka_unit_test(test_other_widths),
        cmocka_unit_test(test_keys), cmocka_unit_test(test_configurations), cmocka_unit_test(test_bounds_that_are_none),
        cmocka_unit_test(test_a_folder_that_does_not_describe_its_tower),
        cmocka_unit_test(test_memory_that_fails)};
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
