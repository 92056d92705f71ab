/* What the files of pictures share: one decoder for each format, and what EXIF says of turning. */
#ifndef CLT_MEDIA_PICTURE_IMPL_H
#define CLT_MEDIA_PICTURE_IMPL_H
#include "media/picture.h"

/* Bytes that are a picture of the decoder's format by their beginning. Each judges the size before it allocates, and fills
 * *orientation (1..8, EXIF's numbers) where the file says one. out->rgb as the file stores it, not turned. */
typedef struct clt_picture_source {
    const uint8_t *data;
    size_t n;
    const char *name; /* for errors */
} clt_picture_source;
clt_status clt_jpeg_decode(const clt_picture_source *s, clt_picture *out, int *orientation, clt_err *err);
clt_status clt_png_decode(const clt_picture_source *s, clt_picture *out, int *orientation, clt_err *err);
clt_status clt_webp_decode(const clt_picture_source *s, clt_picture *out, int *orientation, clt_err *err);

/* ---- picture.c ---- */
/* Refuses sizes beyond the limits, with what was found and what is allowed. */
clt_status clt_picture_check_size(const clt_picture_source *s, int64_t width, int64_t height, clt_err *err);
clt_status clt_picture_damaged(const clt_picture_source *s, const char *why, clt_err *err);
/* rgba [pixels][4] -> [pixels][3] in place, transparency over white. */
void clt_picture_flatten(uint8_t *rgba, size_t pixels);

/* ---- exif.c ---- */
/* The orientation in a TIFF structure ("II*" or "MM"), 1 where there is none. */
int clt_exif_orientation(const uint8_t *tiff, size_t n);
/* Turns and mirrors a picture as orientation 2..8 says. */
clt_status clt_exif_apply(clt_picture *p, int orientation, clt_err *err);

#endif
