/* Orientation: how a camera was held, in the TIFF structure that picture files carry; and turning a picture upright.
 *
 * Specification: Exif 2.3, 4.6.4 (tag 274) over TIFF 6.0, 2. The bytes are hostile: nothing is read beyond n. */
#include "base/mem.h"
#include "media/picture_impl.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12, TILE = 32 };

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
    bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8; /* of the stored one */
    bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    int width = swap ? p->height : p->width, height = swap ? p->width : p->height;
    size_t bytes = (size_t)width * (size_t)height * 3;
    uint8_t *turned = clt_alloc(bytes);
    if (!turned) return clt_fail_memory(err, "a turned picture", bytes);
    ptrdiff_t stride = (ptrdiff_t)p->width * 3, along_x = flip_x ? -3 : 3, along_y = flip_y ? -stride : stride;
    ptrdiff_t right = swap ? along_y : along_x, down = swap ? along_x : along_y;
    const uint8_t *corner = p->rgb + (flip_x ? stride - 3 : 0) + (flip_y ? stride * (p->height - 1) : 0);
    /* In tiles, so that columns of the stored picture are read from the cache. */
    for (int y0 = 0; y0 < height; y0 += TILE)
        for (int x0 = 0; x0 < width; x0 += TILE)
            for (int y = y0; y < height && y < y0 + TILE; y++) {
                int n = width - x0 < TILE ? width - x0 : TILE;
                uint8_t *to = turned + ((ptrdiff_t)y * width + x0) * 3;
                const uint8_t *from = corner + x0 * right + y * down;
                for (int x = 0; x < n; x++, to += 3, from += right) to[0] = from[0], to[1] = from[1], to[2] = from[2];
            }
    clt_free(p->rgb);
    *p = (clt_picture){width, height, turned};
    return CLT_OK;
}
