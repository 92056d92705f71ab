/* Orientation: how a camera was held, in the TIFF structure that picture files carry; and turning a picture upright.
 *
 * Specification: Exif 2.3, 4.6.4 (tag 274) over TIFF 6.0, 2. The bytes are hostile: nothing is read beyond n. */
#include "base/mem.h"
#include "media/picture_impl.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12 };

typedef struct tiff { const uint8_t *data; size_t n; int big_endian; } tiff;

static unsigned get16(const tiff *t, size_t at) {
    return t->big_endian ? (unsigned)t->data[at] << 8 | t->data[at + 1] : (unsigned)t->data[at + 1] << 8 | t->data[at];
}

static size_t get32(const tiff *t, size_t at) {
    size_t a = get16(t, at), b = get16(t, at + 2);
    return t->big_endian ? a << 16 | b : b << 16 | a;
}

int clt_exif_orientation(const uint8_t *data, size_t n) {
    tiff t = {data, n, n > 1 && data[0] == 'M'};
    if (n < 10 || data[0] != data[1] || (data[0] != 'I' && data[0] != 'M') || get16(&t, 2) != 42) return 1;
    size_t at = get32(&t, 4);
    if (at > n - 2) return 1;
    unsigned entries = get16(&t, at);
    for (at += 2; entries-- > 0 && n - at >= ENTRY_BYTES; at += ENTRY_BYTES) {
        if (get16(&t, at) != TAG_ORIENTATION || get16(&t, at + 2) != TYPE_SHORT) continue;
        unsigned v = get16(&t, at + 8);
        return v >= 1 && v <= 8 ? (int)v : 1;
    }
    return 1;
}

clt_status clt_exif_apply(clt_picture *p, int orientation, clt_err *err) {
    if (orientation < 2 || orientation > 8) return CLT_OK;
    bool swap = orientation >= 5;                                                  /* rows become columns */
    bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8; /* of the source */
    bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    int width = swap ? p->height : p->width, height = swap ? p->width : p->height;
    uint8_t *turned = clt_alloc((size_t)width * (size_t)height * 3), *to = turned;
    if (!turned) return clt_fail_memory(err, "a turned picture", (size_t)width * (size_t)height * 3);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, to += 3) {
            int sx = swap ? y : x, sy = swap ? x : y;
            if (flip_x) sx = p->width - 1 - sx;
            if (flip_y) sy = p->height - 1 - sy;
            const uint8_t *from = p->rgb + ((size_t)sy * (size_t)p->width + (size_t)sx) * 3;
            to[0] = from[0], to[1] = from[1], to[2] = from[2];
        }
    clt_free(p->rgb);
    *p = (clt_picture){width, height, turned};
    return CLT_OK;
}
