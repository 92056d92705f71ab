/* What the tests of pictures share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "base/os.h"
#include "media/pictures.h"

clt_buf pictures_golden(const char *folder, const char *name) {
    clt_buf b = {0}, path = {0};
    clt_err err;
    clt_buf_printf(&path, CLT_TEST_DIR "/golden/%s/%s", folder, name);
    if (clt_read_file(path.data, 2 << 20, &b, &err)) fail_msg("%s", err.text);
    clt_buf_free(&path);
    return b;
}

clt_picture pictures_decode(const clt_buf *b) {
    clt_picture p;
    clt_err err;
    clt_status st = clt_picture_decode((const uint8_t *)b->data, b->len, "x", &p, &err);
    if (st == CLT_E_UNSUPPORTED) skip();
    if (st != CLT_OK) fail_msg("%s", err.text);
    return p;
}

void pictures_same(clt_picture *p, const clt_picture *expected, int most, double mean) {
    assert_int_equal(p->width, expected->width);
    assert_int_equal(p->height, expected->height);
    size_t n = (size_t)p->width * (size_t)p->height * 3;
    double sum = 0;
    int worst = 0;
    for (size_t i = 0; i < n; i++) {
        int d = abs(p->rgb[i] - expected->rgb[i]);
        sum += d;
        worst = d > worst ? d : worst;
    }
    if (worst > most || sum / (double)n > mean) fail_msg("differ by up to %d, on average %g", worst, sum / (double)n);
    clt_picture_free(p);
}
