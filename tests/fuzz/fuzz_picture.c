/* Fuzzes the decoding of pictures: arbitrary bytes either are refused in one line or give a picture within the limits, which
 * can be fitted and resized. */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "media/picture.h"

enum { LARGEST = 1 << 22 }; /* pixels, of what is resized: the rest costs time and finds nothing */

static void resize(const clt_picture *p) {
    clt_picture resized;
    clt_err err;
    int width, height;
    if (clt_picture_fit(p->width, p->height, 70, 48, "x", &width, &height, &err)) return;
    if (width < 48 || height < 48 || (width / 48) * (height / 48) > 70) abort();
    if (p->width > LARGEST / p->height || clt_picture_resize(p, width, height, &resized, &err)) return;
    clt_picture_free(&resized);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_picture p;
    clt_err err;
    long live = clt_mem_live();
    if (clt_picture_decode(data, size, "x", &p, &err)) {
        if (p.rgb || !err.text[0] || strpbrk(err.text, "\r\n\t\x1b")) abort();
    } else {
        if (p.width < 1 || p.height < 1 || p.width > CLT_PICTURE_MAX_PIXELS / p.height) abort();
        volatile uint8_t last = p.rgb[(size_t)p.width * (size_t)p.height * 3 - 1];
        (void)last;
        resize(&p);
        clt_picture_free(&p);
    }
    if (clt_mem_live() != live) abort();
    return 0;
}
