/* The picture tower against the reference: three kinds, from both forms of file; and that nothing but picture and weights
 * decides a bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "forward/vision.h"
#include "golden.h"

/* A tower of `path`, for the text model of `text`. */
typedef struct tower {
    clt_file *file, *text_file;
    clt_model text;
    clt_vision_model model;
    clt_pool *pool;
    clt_vision *v;
} tower;

typedef struct picture { uint8_t *rgb; int width, height; } picture;

static void must(clt_status st, const clt_err *err) {
    if (st != CLT_OK) fail_msg("%s", err->text);
}

static clt_file *open_golden(const char *path) {
    clt_err err;
    clt_file *f;
    char full[1024];
    golden_path(full, path, NULL);
    clt_status st = clt_file_open(full, &f, &err);
    if (st == CLT_E_UNSUPPORTED) skip(); /* a build that cannot read folders */
    must(st, &err);
    return f;
}

static tower tower_open(const char *path, const char *text, clt_cpu_level level, int threads) {
    static tower t;
    clt_err err;
    t = (tower){.file = open_golden(path), .text_file = open_golden(text)};
    must(clt_model_bind(t.text_file, &t.text, &err), &err);
    must(clt_vision_bind(t.file, &t.text, &t.model, &err), &err);
    must(clt_pool_create(threads, &t.pool, &err), &err);
    must(clt_vision_create(&t.model, clt_kernels_get(level), t.pool, &t.v, &err), &err);
    return t;
}

static void tower_close(tower *t) {
    clt_vision_free(t->v);
    clt_pool_free(t->pool);
    clt_vision_model_free(&t->model);
    clt_model_free(&t->text);
    clt_file_close(t->file), clt_file_close(t->text_file);
}

/* A golden picture, resized by the reference. */
static picture read_picture(const char *dir, const char *name, int width, int height) {
    char path[1024];
    clt_err err;
    clt_buf file = {0};
    picture p = {.width = width, .height = height};
    golden_path(path, dir, name);
    must(clt_read_file(path, 1 << 24, &file, &err), &err);
    assert_int_equal(file.len, width * height * 3);
    p.rgb = malloc(file.len);
    memcpy(p.rgb, file.data, file.len);
    clt_buf_free(&file);
    return p;
}

/* A scene that no reference knows: a slope of colour, a bright disc, dark bars. */
static picture draw(int width, int height) {
    picture p = {malloc((size_t)width * (size_t)height * 3), width, height};
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint8_t *to = p.rgb + ((size_t)y * (size_t)width + (size_t)x) * 3;
            int dx = x - width / 3, dy = y - height / 2;
            bool disc = dx * dx + dy * dy < height * height / 9, bar = x % 40 < 6;
            to[0] = (uint8_t)(disc ? 250 : 255 * x / width), to[1] = (uint8_t)(disc ? 220 : 255 * y / height);
            to[2] = (uint8_t)(bar ? 10 : 128);
        }
    return p;
}

static int64_t tokens_of(const tower *t, const picture *p) {
    int unit = t->model.config.patch * t->model.config.pool;
    return (int64_t)(p->width / unit) * (p->height / unit);
}

static float *soft_of(const tower *t, const picture *p) {
    clt_err err;
    float *soft = malloc((size_t)(tokens_of(t, p) * t->model.config.text_width) * sizeof *soft);
    must(clt_vision_run(t->v, p->rgb, p->width, p->height, soft, NULL, NULL, &err), &err);
    return soft;
}

static void near(const float *got, const float *want, int64_t n, double limit, const char *what) {
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double error = fabs((double)got[i] - (double)want[i]) - 1e-3 * fabs((double)want[i]);
        worst = error > worst || isnan(error) ? error : worst;
    }
    if (!(worst <= limit)) fail_msg("%s: error %g, allowed %g", what, worst, limit);
}

/* ---- against the reference ---- */

static const char e_dir[] = "tiny-vision", e_mmproj[] = "tiny-vision/gguf/tiny-vision-mmproj-f32.gguf";
static const char large_dir[] = "tiny-dense", large_mmproj[] = "tiny-dense/gguf/tiny-dense-mmproj-f32.gguf";
static const char unified_dir[] = "tiny-unified", unified_mmproj[] = "tiny-unified/gguf/tiny-unified-mmproj-f32.gguf";

typedef struct hidden { const float *states, *encoder; int seen; } hidden;

static void compare_hidden(void *user, const char *stage, int layer, const float *x, int64_t rows, int64_t width) {
    hidden *h = user;
    if (strcmp(stage, "encoder") == 0) near(x, h->encoder + layer * width, rows * width, 1e-3, stage);
    if (strcmp(stage, "embed") != 0 && strcmp(stage, "layer") != 0) return;
    assert_int_equal(layer + 1, h->seen++);
    near(x, h->states + (layer + 1) * rows * width, rows * width, 5e-4, stage);
}

/* The picture "wide": every state; e_dir holds its pixels for both encoders. */
static void check_encoder(const char *path, const char *dir) {
    size_t n, n_soft;
    clt_err err;
    picture p = read_picture(e_dir, "image.wide.resized.u8", 576, 240);
    float *states = golden_array(dir, "image.wide.hidden.f32", &n), *encoder = golden_array(dir, "image.wide.encoder.f32", &n);
    float *want = golden_array(dir, "image.wide.soft.f32", &n_soft), *soft = malloc(n_soft * sizeof *soft);
    tower t = tower_open(path, dir, golden_best_level(), 2);
    hidden h = {states, encoder, 0};
    assert_int_equal(n_soft, tokens_of(&t, &p) * t.model.config.text_width);
    must(clt_vision_run_probed(t.v, p.rgb, p.width, p.height, soft, compare_hidden, &h, &err), &err);
    assert_int_equal(h.seen, t.model.config.layers + 1);
    near(soft, want, (int64_t)n_soft, 5e-4, path);
    tower_close(&t);
    free(p.rgb), free(states), free(encoder), free(want), free(soft);
}

static void check_soft(const char *path, const char *dir, const char *pixels, int width, int height, const char *soft_name) {
    size_t n;
    picture p = read_picture(dir, pixels, width, height);
    float *want = golden_array(dir, soft_name, &n);
    tower t = tower_open(path, dir, golden_best_level(), 2);
    assert_int_equal(n, tokens_of(&t, &p) * t.model.config.text_width);
    float *soft = soft_of(&t, &p);
    near(soft, want, (int64_t)n, 5e-4, path);
    tower_close(&t);
    free(p.rgb), free(want), free(soft);
}

static void test_small_encoder(void **state) {
    (void)state;
    check_encoder(e_dir, e_dir);
    check_encoder(e_mmproj, e_dir);
    check_soft(e_dir, e_dir, "image.square.resized.u8", 384, 384, "image.square.soft.f32");
    check_soft(e_mmproj, e_dir, "image.tall.resized.u8", 144, 816, "image.tall.soft.f32");
}

static void test_large_encoder(void **state) {
    (void)state;
    check_encoder(large_dir, large_dir);
    check_encoder(large_mmproj, large_dir);
}

static void test_unified(void **state) {
    (void)state;
    const char *const paths[] = {unified_dir, unified_mmproj};
    for (int i = 0; i < 2; i++) {
        check_soft(paths[i], unified_dir, "image.wide.resized.u8", 288, 120, "image.wide.soft.f32");
        check_soft(paths[i], unified_dir, "image.tall.resized.u8", 72, 408, "image.tall.soft.f32");
    }
}

/* ---- bits ---- */

/* Both forms hold the same numbers: the folder in BF16, the file in F32, the columns of the patch in another order. */
static void test_forms_give_equal_bits(void **state) {
    (void)state;
    const char *const forms[][2] = {{e_dir, e_mmproj}, {large_dir, large_mmproj}, {unified_dir, unified_mmproj}};
    for (int i = 0; i < 3; i++) {
        picture p = i == 2 ? draw(24 * 4, 24 * 2) : draw(48 * 4, 48 * 2);
        tower a = tower_open(forms[i][0], forms[i][0], golden_best_level(), 2);
        float *one = soft_of(&a, &p);
        size_t bytes = (size_t)(tokens_of(&a, &p) * a.model.config.text_width) * sizeof *one;
        tower_close(&a);
        a = tower_open(forms[i][1], forms[i][0], golden_best_level(), 2);
        float *other = soft_of(&a, &p);
        assert_memory_equal(one, other, bytes);
        tower_close(&a);
        free(one), free(other), free(p.rgb);
    }
}

static void test_levels_and_threads_change_no_bit(void **state) {
    (void)state;
    const char *const paths[] = {e_mmproj, large_dir, unified_mmproj}, *const texts[] = {e_dir, large_dir, unified_dir};
    for (int kind = 0; kind < 3; kind++) {
        picture p = kind == 2 ? draw(24 * 7, 24 * 5) : draw(48 * 9, 48 * 7); /* more patches than a slab holds */
        float *want = NULL;
        for (int level = 0; level < CLT_CPU_LEVELS; level++)
            for (int threads = 1; threads <= 4 && clt_kernels_get((clt_cpu_level)level); threads += level ? 3 : 1) {
                tower t = tower_open(paths[kind], texts[kind], (clt_cpu_level)level, threads);
                int64_t numbers = tokens_of(&t, &p) * t.model.config.text_width;
                float *soft = soft_of(&t, &p);
                if (want) assert_memory_equal(soft, want, (size_t)numbers * sizeof *soft);
                else want = soft, soft = NULL;
                free(soft);
                tower_close(&t);
            }
        free(p.rgb), free(want);
    }
}

/* ---- shapes, cancelling, memory ---- */

static void test_shapes(void **state) {
    (void)state;
    static const int shapes[][2] = {{48, 48}, {48, 48 * 70}, {48 * 70, 48}, {96, 48}};
    clt_err err;
    tower t = tower_open(e_mmproj, e_dir, golden_best_level(), 2);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        picture p = draw(shapes[i][0], shapes[i][1]);
        float *soft = soft_of(&t, &p);
        for (int64_t k = 0; k < tokens_of(&t, &p) * t.model.config.text_width; k++) assert_true(isfinite(soft[k]));
        free(soft), free(p.rgb);
    }
    picture p = draw(96, 96);
    float soft[64];
    assert_int_equal(clt_vision_run(t.v, p.rgb, 95, 96, soft, NULL, NULL, &err), CLT_E_USAGE);
    assert_int_equal(clt_vision_run(t.v, p.rgb, 0, 96, soft, NULL, NULL, &err), CLT_E_USAGE);
    free(p.rgb);
    p = draw(48, 16 * 258); /* 258 lines of patches, the table has 256 positions */
    assert_int_equal(clt_vision_run(t.v, p.rgb, 48, 16 * 258, soft, NULL, NULL, &err), CLT_E_FAILED);
    assert_non_null(strstr(err.text, "256 positions"));
    free(p.rgb);
    tower_close(&t);
}

static bool count_down(void *user) { return --*(int *)user >= 0; }

static void test_cancelling(void **state) {
    (void)state;
    clt_err err;
    picture p = draw(96, 96);
    float *soft = malloc(4 * 64 * sizeof *soft);
    tower t = tower_open(e_mmproj, e_dir, golden_best_level(), 2);
    assert_int_equal(t.model.config.text_width, 64);
    long live = clt_mem_live();
    for (int left = 0; left <= t.model.config.layers; left++) {
        int count = left;
        clt_status st = clt_vision_run(t.v, p.rgb, 96, 96, soft, count_down, &count, &err);
        assert_int_equal(st, left < t.model.config.layers ? CLT_E_CANCELLED : CLT_OK);
        assert_int_equal(clt_mem_live(), live);
    }
    tower_close(&t);
    free(p.rgb), free(soft);
}

static void test_memory_that_fails(void **state) {
    (void)state;
    const char *const paths[] = {e_mmproj, unified_mmproj}, *const texts[] = {e_dir, unified_dir};
    clt_err err;
    picture p = draw(96, 96);
    float *soft = malloc(16 * 64 * sizeof *soft);
    for (int kind = 0; kind < 2; kind++) {
        tower t = tower_open(paths[kind], texts[kind], golden_best_level(), 2);
        long live = clt_mem_live();
        clt_status st = CLT_E_MEMORY;
        for (long fail_at = 1; st != CLT_OK; fail_at++) {
            clt_vision *v = NULL;
            clt_mem_fail_after(fail_at);
            st = clt_vision_create(&t.model, clt_kernels_get(golden_best_level()), t.pool, &v, &err);
            if (st == CLT_OK) st = clt_vision_run(v, p.rgb, 96, 96, soft, NULL, NULL, &err);
            clt_mem_fail_after(0);
            assert_true(st == CLT_OK || st == CLT_E_MEMORY);
            clt_vision_free(v);
            assert_int_equal(clt_mem_live(), live);
            assert_true(fail_at < 200);
        }
        tower_close(&t);
    }
    free(p.rgb), free(soft);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_encoder), cmocka_unit_test(test_large_encoder), cmocka_unit_test(test_unified),
        cmocka_unit_test(test_forms_give_equal_bits), cmocka_unit_test(test_levels_and_threads_change_no_bit),
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_cancelling), cmocka_unit_test(test_memory_that_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
