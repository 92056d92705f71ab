/* The size that a tower gets, and resizing, against the specification and the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "media/picture.h"
#include "media/pictures.h"

/* ---- sizes ---- */

static void sizes(void **state) {
    (void)state;
    static const struct {
        int w, h, tokens, unit, fit_w, fit_h;
    } cases[] = {
        {768, 768, 280, 48, 768, 768}, {1920, 1080, 280, 48, 1056, 576}, {640, 480, 280, 48, 912, 672},
        {224, 224, 280, 48, 768, 768}, {2000, 100, 280, 48, 3552, 144}, {768, 768, 1120, 48, 1584, 1584},
        {768, 768, 70, 48, 384, 384}, {5000, 10, 70, 48, 3360, 48}, {10, 5000, 70, 48, 48, 3360},
        {600, 10, 70, 48, 3072, 48}, {1, 1, 70, 48, 384, 384}, {65500, 1, 280, 48, 13440, 48}};
    clt_err err;
    int w, h;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(clt_picture_fit(cases[i].w, cases[i].h, cases[i].tokens, cases[i].unit, "x", &w, &h, &err), CLT_OK);
        if (w != cases[i].fit_w || h != cases[i].fit_h)
            fail_msg("%d x %d gives %d x %d, expected %d x %d", cases[i].w, cases[i].h, w, h, cases[i].fit_w,
                     cases[i].fit_h);
    }
    for (int a = 1; a < 3000; a += 37)
        for (int b = 1; b < 3000; b += 53) {
            if (clt_picture_fit(a, b, 280, 48, "x", &w, &h, &err) != CLT_OK) continue;
            assert_true(w % 48 == 0 && h % 48 == 0 && w > 0 && h > 0 && (w / 48) * (h / 48) <= 280);
        }
}

/* ---- resizing ---- */

static void as_the_reference_resizes(const char *model, const char *media, const char *expected, int tokens, int unit) {
    clt_buf file = pictures_golden("media", media), want = pictures_golden(model, expected);
    clt_picture p = pictures_decode(&file), resized;
    clt_err err;
    int w, h;
    assert_int_equal(clt_picture_fit(p.width, p.height, tokens, unit, "x", &w, &h, &err), CLT_OK);
    assert_int_equal(clt_picture_resize(&p, w, h, &resized, &err), CLT_OK);
    assert_int_equal(want.len, w * h * 3);
    pictures_same(&resized, &(clt_picture){w, h, (uint8_t *)want.data}, 1, 0.01);
    clt_picture_free(&p);
    clt_buf_free(&file);
    clt_buf_free(&want);
}

static void resized_for_towers(void **state) {
    (void)state;
    as_the_reference_resizes("models/tiny-vision", "wide.png", "image.wide.resized.u8", 70, 48);
    as_the_reference_resizes("models/tiny-vision", "tall.png", "image.tall.resized.u8", 70, 48);
    as_the_reference_resizes("models/tiny-vision", "square.jpg", "image.square.resized.u8", 70, 48);
    as_the_reference_resizes("models/tiny-unified", "wide.png", "image.wide.resized.u8", 70, 24);
    as_the_reference_resizes("models/tiny-unified", "tall.png", "image.tall.resized.u8", 70, 24);
}

/* Down, up, one side only, to one pixel: bit for bit what Pillow makes. */
static void resized_to_any_size(void **state) {
    (void)state;
    static const struct { int w, h; } to[] = {{48, 48}, {144, 96}, {37, 211}, {1, 1}, {230, 40}};
    clt_buf file = pictures_golden("pictures", "scene.png");
    clt_picture p = pictures_decode(&file), resized;
    clt_err err;
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        char name[64];
        snprintf(name, sizeof name, "scene-%dx%d.u8", to[i].w, to[i].h);
        clt_buf want = pictures_golden("pictures", name);
        assert_int_equal(clt_picture_resize(&p, to[i].w, to[i].h, &resized, &err), CLT_OK);
        pictures_same(&resized, &(clt_picture){to[i].w, to[i].h, (uint8_t *)want.data}, 0, 0);
        clt_buf_free(&want);
    }
    long live = clt_mem_live();
    for (long k = 1; k < 12; k++) {
        clt_mem_fail_after(k);
        clt_status st = clt_picture_resize(&p, 9, 9, &resized, &err);
        clt_mem_fail_after(0);
        if (st == CLT_OK) clt_picture_free(&resized);
        else assert_int_equal(st, CLT_E_MEMORY);
        assert_int_equal(clt_mem_live(), live);
    }
    assert_int_equal(clt_picture_resize(&p, p.width, p.height, &resized, &err), CLT_OK);
    pictures_same(&resized, &p, 0, 0);
    clt_picture_free(&p);
    clt_buf_free(&file);
}

/* A resize keeps what is even, even: no drift of brightness, at any scale. */
static void even_stays_even(void **state) {
    (void)state;
    uint8_t pixels[17 * 11 * 3];
    clt_picture p = {17, 11, pixels}, r;
    clt_err err;
    for (int v = 0; v < 256; v += 5) {
        memset(pixels, v, sizeof pixels);
        assert_int_equal(clt_picture_resize(&p, 3 + v % 29, 1 + v % 31, &r, &err), CLT_OK);
        for (int i = 0; i < r.width * r.height * 3; i++) assert_int_equal(r.rgb[i], v);
        clt_picture_free(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(resized_for_towers),
        cmocka_unit_test(resized_to_any_size),
        cmocka_unit_test(even_stays_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
