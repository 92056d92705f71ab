/* Pictures: the bytes of a JPEG, PNG or WebP file -> rows of RGB bytes -> the size that a tower takes.
 *
 * The bytes are hostile: their kind is told by their content, never by a name; sizes are judged before anything is
 * allocated; a damaged file is one clear error. Knows no weights and no model. Nothing here is shared between threads. */
#ifndef CLT_MEDIA_PICTURE_H
#define CLT_MEDIA_PICTURE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum { CLT_PICTURE_MAX_PIXELS = 128 * 1000 * 1000, CLT_PICTURE_MAX_SIDE = 65500 };

typedef struct clt_picture {
    int width, height;
    uint8_t *rgb; /* [height][width][3], owned; NULL: none */
} clt_picture;

/* As a person sees it: turned as EXIF says, CMYK and grey and palettes as RGB, 16 bits as 8, transparency over white; the
 * first image of an animation. name stands in error texts. CLT_E_FAILED: damaged, empty, too large, no such format (what
 * was found is said); CLT_E_UNSUPPORTED: the build lacks the library of this format. */
clt_status clt_picture_decode(const uint8_t *data, size_t n, const char *name, clt_picture *out, clt_err *err);
/* The same from a file; at most max_bytes of it (0 = 512 MB). */
clt_status clt_picture_read(const char *path, uint64_t max_bytes, clt_picture *out, clt_err *err);
void clt_picture_free(clt_picture *p);

/* The size that the reference processor gives a picture for a budget of `tokens` soft tokens: the aspect kept up to
 * rounding, sides multiples of `unit` (patch side * pooling side), at most `tokens` units in all, small pictures scaled up.
 * Specification: Gemma 4 image processor. CLT_E_FAILED: too narrow for one unit. */
clt_status clt_picture_fit(int width, int height, int tokens, int unit, const char *name, int *out_width, int *out_height,
                           clt_err *err);
/* Bicubic (a = -0.5) with antialiasing, columns first, each pass rounded to bytes. The same size: a copy. The result does
 * not depend on threads or CPU. */
clt_status clt_picture_resize(const clt_picture *p, int width, int height, clt_picture *out, clt_err *err);

#endif
