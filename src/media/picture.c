/* The bytes of a picture, told by their beginning, to the decoder of their format; and sizes: what is refused, what a tower
 * gets. */
#include "media/picture.h"
#include <math.h>
#include <string.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/os.h"
#include "media/picture_impl.h"

#define MAX_FILE_BYTES (512ull << 20)

/* ---- what it is ---- */

typedef struct format { const char *name, *beginning; size_t n, at; } format;

#define FORMAT(name, beginning, at) {name, beginning, sizeof beginning - 1, at}
/* Pictures, and files taken for pictures, that are not read here. */
static const format foreign[] = {
    FORMAT("a GIF", "GIF8", 0), FORMAT("a BMP", "BM", 0), FORMAT("a TIFF", "II*\0", 0), FORMAT("a TIFF", "MM\0*", 0),
    FORMAT("a HEIC picture", "ftyphe", 4), FORMAT("a HEIF picture", "ftypmif1", 4), FORMAT("an AVIF picture", "ftypavi", 4),
    FORMAT("an MP4 video", "ftyp", 4), FORMAT("a JPEG XL picture", "\xFF\x0A", 0), FORMAT("a JPEG XL picture", "JXL ", 4),
    FORMAT("a JPEG 2000 picture", "jP  ", 4), FORMAT("a PDF", "%PDF", 0), FORMAT("a Photoshop file", "8BPS", 0),
    FORMAT("an icon", "\0\0\1\0", 0), FORMAT("an SVG", "<svg", 0), FORMAT("an XML or SVG document", "<?xml", 0),
    FORMAT("an HTML page", "<!DOCTYPE", 0), FORMAT("an HTML page", "<!doctype", 0), FORMAT("an HTML page", "<html", 0),
    FORMAT("a Git LFS pointer", "version https://git-lfs", 0), FORMAT("a WAV sound", "WAVE", 8),
    FORMAT("a Matroska or WebM video", "\x1A\x45\xDF\xA3", 0), FORMAT("an AVI video", "AVI ", 8),
};

static bool begins(const clt_picture_source *s, const char *with, size_t n, size_t at) {
    return s->n >= at + n && memcmp(s->data + at, with, n) == 0;
}

static clt_status no_picture(const clt_picture_source *s, clt_err *err) {
    if (s->n == 0) return clt_fail(err, CLT_E_FAILED, "%s: is empty, expected a JPEG, PNG or WebP picture", s->name);
    clt_picture_source text = *s; /* white space may stand before markup */
    while (text.n > 0 && strchr(" \t\r\n", text.data[0]) && text.data[0]) text.data++, text.n--;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        bool markup = foreign[i].beginning[0] == '<';
        if (!begins(markup ? &text : s, foreign[i].beginning, foreign[i].n, foreign[i].at)) continue;
        clt_fail(err, CLT_E_FAILED, "%s: is %s, expected a JPEG, PNG or WebP picture", s->name, foreign[i].name);
        return clt_hint(err, "convert it first");
    }
    char found[16] = "";
    for (size_t i = 0; i < 4 && i < s->n; i++) {
        static const char hex[] = "0123456789abcdef";
        found[3 * i] = hex[s->data[i] >> 4], found[3 * i + 1] = hex[s->data[i] & 15], found[3 * i + 2] = ' ';
        found[3 * i + 3] = 0;
    }
    return clt_fail(err, CLT_E_FAILED, "%s: no picture: %zu bytes that begin with %s, expected JPEG, PNG or WebP", s->name,
                    s->n, found);
}

clt_status clt_picture_damaged(const clt_picture_source *s, const char *why, clt_err *err) {
    return clt_fail(err, CLT_E_FAILED, "%s: damaged picture: %s", s->name, why);
}

clt_status clt_picture_check_size(const clt_picture_source *s, int64_t width, int64_t height, clt_err *err) {
    if (width < 1 || height < 1)
        return clt_fail(err, CLT_E_FAILED, "%s: a picture of %lld x %lld pixels, expected at least one", s->name,
                        (long long)width, (long long)height);
    if (width <= CLT_PICTURE_MAX_SIDE && height <= CLT_PICTURE_MAX_SIDE && width * height <= CLT_PICTURE_MAX_PIXELS)
        return CLT_OK;
    clt_fail(err, CLT_E_FAILED, "%s: a picture of %lld x %lld pixels, at most %d in all and %d a side are taken", s->name,
             (long long)width, (long long)height, (int)CLT_PICTURE_MAX_PIXELS, (int)CLT_PICTURE_MAX_SIDE);
    return clt_hint(err, "make it smaller first");
}

void clt_picture_flatten(uint8_t *rgba, size_t pixels) {
    uint8_t *to = rgba;
    for (size_t i = 0; i < pixels; i++, rgba += 4, to += 3) {
        unsigned a = rgba[3], white = (255 - a) * 255;
        for (int c = 0; c < 3; c++) to[c] = (uint8_t)((rgba[c] * a + white + 127) / 255);
    }
}

/* ---- decoding ---- */

clt_status clt_picture_decode(const uint8_t *data, size_t n, const char *name, clt_picture *out, clt_err *err) {
    clt_picture_source s = {data, n, name};
    int orientation = 1;
    clt_status st;
    *out = (clt_picture){0};
    if (begins(&s, "\xFF\xD8\xFF", 3, 0)) st = clt_jpeg_decode(&s, out, &orientation, err);
    else if (begins(&s, "\x89PNG\r\n\x1A\n", 8, 0)) st = clt_png_decode(&s, out, &orientation, err);
    else if (begins(&s, "RIFF", 4, 0) && begins(&s, "WEBP", 4, 8)) st = clt_webp_decode(&s, out, &orientation, err);
    else return no_picture(&s, err);
    if (st == CLT_OK) st = clt_exif_apply(out, orientation, err);
    if (st != CLT_OK) clt_picture_free(out);
    return st;
}

clt_status clt_picture_read(const char *path, uint64_t max_bytes, clt_picture *out, clt_err *err) {
    clt_buf file = {0};
    *out = (clt_picture){0};
    clt_status st = clt_read_regular(path, max_bytes ? max_bytes : MAX_FILE_BYTES, &file, err);
    if (st == CLT_OK) st = clt_picture_decode((const uint8_t *)(file.data ? file.data : ""), file.len, path, out, err);
    clt_buf_free(&file);
    return st;
}

void clt_picture_free(clt_picture *p) {
    clt_free(p->rgb);
    *p = (clt_picture){0};
}

/* ---- the size for a tower ---- */

/* One side is less than a unit: it gets one, the other as many as the whole quotient of the sides. */
static int long_side(int64_t larger, int64_t smaller, int tokens, int unit) {
    int64_t units = larger / smaller < tokens ? larger / smaller : tokens;
    return (int)(units < 1 ? 1 : units) * unit;
}

clt_status clt_picture_fit(int width, int height, int tokens, int unit, const char *name, int *out_width, int *out_height,
                           clt_err *err) {
    double f = sqrt((double)tokens * unit * unit / ((double)height * width));
    int h = (int)floor(f * height / unit) * unit, w = (int)floor(f * width / unit) * unit;
    if (h == 0 && w == 0)
        return clt_fail(err, CLT_E_FAILED, "%s: a picture of %d x %d pixels does not fill one of %d x %d", name, width,
                        height, unit, unit);
    if (h == 0) h = unit, w = long_side(width, height, tokens, unit);
    else if (w == 0) w = unit, h = long_side(height, width, tokens, unit);
    *out_width = w, *out_height = h;
    return CLT_OK;
}
