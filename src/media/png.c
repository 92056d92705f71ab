/* PNG, over libpng. Errors of the library arrive by longjmp; whatever must survive one lives in a struct outside. */
#include <string.h>
#include "base/mem.h"
#include "media/picture_impl.h"

#if !CLT_HAVE_PNG

clt_status clt_png_decode(const clt_picture_source *s, clt_picture *out, int *orientation, clt_err *err) {
    (void)s, (void)out, (void)orientation;
    return clt_fail_not_built(err, "PNG pictures", "libpng-dev");
}

#else

#include <png.h>
#include <stdio.h>

enum { MAX_CHUNK_BYTES = 16 << 20, MAX_CHUNKS = 1000 };

typedef struct decoder {
    const clt_picture_source *s;
    size_t at;
    png_structp png;
    png_infop info;
    clt_picture *out;
    uint8_t **row;   /* [height] */
    char why[128];
    clt_status status; /* of what is not the library's failure */
    clt_err *err;
    int orientation;
    bool alpha;
} decoder;

static void on_error(png_structp png, png_const_charp text) {
    decoder *d = png_get_error_ptr(png);
    snprintf(d->why, sizeof d->why, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png, (void)text; /* of chunks beside the picture */
}

static void on_read(png_structp png, png_bytep to, size_t n) {
    decoder *d = png_get_io_ptr(png);
    if (n > d->s->n - d->at) png_error(png, "the file ends early");
    memcpy(to, d->s->data + d->at, n);
    d->at += n;
}

/* Everything to 8-bit RGB, with alpha where the file has any, or one colour that is transparent. */
static void set_transforms(decoder *d) {
    png_set_expand(d->png);
    png_set_strip_16(d->png);
    png_set_gray_to_rgb(d->png);
    png_set_interlace_handling(d->png);
    png_read_update_info(d->png, d->info);
}

static void read_orientation(decoder *d) {
    png_bytep exif = NULL;
    png_uint_32 n = 0;
    if (png_get_eXIf_1(d->png, d->info, &n, &exif) && exif) d->orientation = clt_exif_orientation(exif, n);
}

static void decode(decoder *d) {
    png_read_info(d->png, d->info);
    int64_t width = png_get_image_width(d->png, d->info), height = png_get_image_height(d->png, d->info);
    d->status = clt_picture_check_size(d->s, width, height, d->err);
    if (d->status != CLT_OK) return;
    set_transforms(d);
    size_t channels = png_get_channels(d->png, d->info), stride = (size_t)width * channels, bytes = stride * (size_t)height;
    if ((channels != 3 && channels != 4) || png_get_rowbytes(d->png, d->info) != stride)
        png_error(d->png, "rows of an unknown form");
    d->alpha = channels == 4;
    *d->out = (clt_picture){(int)width, (int)height, clt_alloc(bytes)};
    d->row = clt_calloc((size_t)height, sizeof *d->row);
    if (!d->out->rgb || !d->row) {
        d->status = clt_fail_memory(d->err, d->s->name, bytes);
        return;
    }
    for (int64_t y = 0; y < height; y++) d->row[y] = d->out->rgb + (size_t)y * stride;
    png_read_image(d->png, d->row);
    png_read_end(d->png, d->info);
    read_orientation(d);
}

/* The frame that errors jump back to; it holds nothing that they could spoil. */
static void decode_guarded(decoder *d) {
    if (setjmp(png_jmpbuf(d->png)) == 0) decode(d);
}

clt_status clt_png_decode(const clt_picture_source *s, clt_picture *out, int *orientation, clt_err *err) {
    decoder d = {.s = s, .out = out, .status = CLT_OK, .err = err, .orientation = 1};
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
    d.info = d.png ? png_create_info_struct(d.png) : NULL;
    if (!d.info) {
        png_destroy_read_struct(&d.png, NULL, NULL);
        return clt_fail_memory(err, s->name, s->n);
    }
    png_set_read_fn(d.png, &d, on_read);
    /* Larger ones than the limit pass here, so that they are refused with both numbers. */
    png_set_user_limits(d.png, 0x7FFFFFFF, 0x7FFFFFFF);
    png_set_chunk_malloc_max(d.png, MAX_CHUNK_BYTES);
    png_set_chunk_cache_max(d.png, MAX_CHUNKS);
    decode_guarded(&d);
    png_destroy_read_struct(&d.png, &d.info, NULL);
    clt_free(d.row);
    if (d.why[0] && d.status == CLT_OK) d.status = clt_picture_damaged(s, d.why, err);
    if (d.status == CLT_OK) {
        if (d.alpha) clt_picture_flatten(out->rgb, (size_t)out->width * (size_t)out->height);
        *orientation = d.orientation;
    }
    return d.status;
}

#endif
