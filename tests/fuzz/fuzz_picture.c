/* Fuzzes the decoding of pictures: arbitrary bytes either are refused in one line or give a picture within the limits, which
 * can be fitted and resized. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "media/picture.h"

enum { UNIT = 8, LARGEST = 1 << 20 }; /* pixels: larger ones cost time and find nothing */

static unsigned big16(const uint8_t *p) { return (unsigned)p[0] << 8 | p[1]; }
static unsigned little16(const uint8_t *p) { return p[0] | (unsigned)p[1] << 8; }

/* Whether any place where one of the formats states its size states a large one. */
static bool is_large(const uint8_t *p, size_t n) {
    uint64_t width = 0, height = 0;
    for (size_t i = 0; i + 10 < n; i++) {
        if (p[i] == 0xFF && p[i + 1] >= 0xC0 && p[i + 1] <= 0xCF) height = big16(p + i + 5), width = big16(p + i + 7);
        if (!memcmp(p + i, "\x9d\x01\x2a", 3)) width = little16(p + i + 3) & 0x3FFF, height = little16(p + i + 5) & 0x3FFF;
        if (width * height > LARGEST) return true;
    }
    if (n < 30) return false;
    if (!memcmp(p + 12, "VP8X", 4)) width = little16(p + 24) + 1, height = little16(p + 27) + 1;
    if (!memcmp(p + 12, "VP8X", 4) && (p[26] || p[29])) return true;
    if (!memcmp(p + 12, "VP8L", 4)) /* 14 bits each */
        width = (little16(p + 21) & 0x3FFF) + 1, height = (little16(p + 22) >> 6 | (p[24] & 15u) << 10) + 1;
    if (!memcmp(p + 12, "IHDR", 4)) /* 32 bits each */
        width = big16(p + 18) + (big16(p + 16) ? LARGEST : 0), height = big16(p + 22) + (big16(p + 20) ? LARGEST : 0);
    return width * height > LARGEST;
}

static void resize(const clt_picture *p) {
    clt_picture resized;
    clt_err err;
    int width, height;
    if (clt_picture_fit(p->width, p->height, 70, UNIT, "x", &width, &height, &err)) return;
    if (width < UNIT || height < UNIT || (width / UNIT) * (height / UNIT) > 70) abort();
    if (clt_picture_resize(p, width, height, &resized, &err)) return;
    clt_picture_free(&resized);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_picture p;
    clt_err err;
    long live = clt_mem_live();
    if (is_large(data, size)) return 0;
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
