/* JPEG, over libjpeg-turbo. */
#include <string.h>
#include "base/mem.h"
#include "media/picture_impl.h"

#if !CLT_HAVE_TURBOJPEG

clt_status clt_jpeg_decode(const clt_picture_source *s, clt_picture *out, int *orientation, clt_err *err) {
    (void)s, (void)out, (void)orientation;
    return clt_fail_not_built(err, "JPEG pictures", "libturbojpeg0-dev");
}

#else

#include <turbojpeg.h>

/* Walks the segments in front of the picture's data for an EXIF one. */
static int find_orientation(const clt_picture_source *s) {
    static const char exif[] = "Exif\0";
    for (size_t at = 2; at + 4 <= s->n && s->data[at] == 0xFF;) {
        unsigned marker = s->data[at + 1];
        size_t len = (size_t)s->data[at + 2] << 8 | s->data[at + 3];
        if (marker == 0xFF) {
            at++; /* filling */
            continue;
        }
        if (marker == 0xDA || marker == 0xD9 || len < 2 || len > s->n - at - 2) break;
        if (marker == 0xE1 && len >= 8 && memcmp(s->data + at + 4, exif, 6) == 0)
            return clt_exif_orientation(s->data + at + 10, len - 8);
        at += 2 + len;
    }
    return 1;
}

/* Inks as every program stores them, inverted: 255 is no ink. */
static void inks_to_rgb(uint8_t *cmyk, size_t pixels) {
    uint8_t *to = cmyk;
    for (size_t i = 0; i < pixels; i++, cmyk += 4, to += 3) {
        unsigned k = cmyk[3];
        for (int c = 0; c < 3; c++) to[c] = (uint8_t)((cmyk[c] * k + 127) / 255);
    }
}

/* Bytes between segments harm nothing and are common; every other complaint means that pixels are missing or wrong. */
static bool is_harmless(tjhandle t) {
    return tjGetErrorCode(t) == TJERR_WARNING && strstr(tjGetErrorStr2(t), "extraneous bytes") != NULL;
}

/* Stops where damage begins, so that a few bytes cannot ask for hundreds of passes over a large picture. */
static bool decode_pixels(tjhandle t, const clt_picture_source *s, clt_picture *out, int form) {
    int flags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS, stop = TJFLAG_STOPONWARNING;
    unsigned long n = (unsigned long)s->n;
    return tjDecompress2(t, s->data, n, out->rgb, out->width, 0, out->height, form, flags | stop) == 0 ||
           (is_harmless(t) && (tjDecompress2(t, s->data, n, out->rgb, out->width, 0, out->height, form, flags) == 0 ||
                               is_harmless(t)));
}

static clt_status decode(tjhandle t, const clt_picture_source *s, clt_picture *out, clt_err *err) {
    int width = 0, height = 0, sampling, colours;
    if (tjDecompressHeader3(t, s->data, (unsigned long)s->n, &width, &height, &sampling, &colours) != 0 && !is_harmless(t))
        return clt_picture_damaged(s, tjGetErrorStr2(t), err);
    if (width < 1 || height < 1) return clt_picture_damaged(s, "it ends before it says how large it is", err);
    clt_status st = clt_picture_check_size(s, width, height, err);
    if (st != CLT_OK) return st;
    bool inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
    size_t pixels = (size_t)width * (size_t)height, bytes = pixels * (inks ? 4 : 3);
    *out = (clt_picture){width, height, clt_alloc(bytes)};
    if (!out->rgb) return clt_fail_memory(err, s->name, bytes);
    if (!decode_pixels(t, s, out, inks ? TJPF_CMYK : TJPF_RGB)) return clt_picture_damaged(s, tjGetErrorStr2(t), err);
    if (inks) inks_to_rgb(out->rgb, pixels);
    return CLT_OK;
}

clt_status clt_jpeg_decode(const clt_picture_source *s, clt_picture *out, int *orientation, clt_err *err) {
    tjhandle t = tjInitDecompress();
    if (!t) return clt_fail_memory(err, s->name, s->n);
    clt_status st = decode(t, s, out, err);
    tjDestroy(t);
    if (st == CLT_OK) *orientation = find_orientation(s);
    return st;
}

#endif
