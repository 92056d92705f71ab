/* Files of pictures: every form of each format against the pixels it was made of, turned by EXIF in all ways; and files that
 * are empty, cut off, damaged, too large or no picture at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "media/picture.h"
#include "media/picture_impl.h"
#include "media/pictures.h"

enum { W = 48, H = 32, BYTES = W * H * 3 }; /* of tests/golden/pictures/small.u8, which most files show */

static clt_picture small_scene(void) {
    clt_buf b = pictures_golden("pictures", "small.u8");
    assert_int_equal(b.len, BYTES);
    return (clt_picture){W, H, (uint8_t *)b.data};
}

/* Refused in one line that names the file and holds `why`; nothing is left behind. */
static void refused(const void *data, size_t n, const char *why) {
    clt_picture p = {1, 1, NULL};
    clt_err err = {0};
    long live = clt_mem_live();
    clt_status st = clt_picture_decode(data, n, "the-name", &p, &err);
    if (st == CLT_E_UNSUPPORTED) skip();
    assert_int_equal(st, CLT_E_FAILED);
    assert_true(strncmp(err.text, "the-name: ", 10) == 0 && !strchr(err.text, '\n'));
    if (!strstr(err.text, why)) fail_msg("%s: lacks \"%s\"", err.text, why);
    assert_true(!p.rgb && !p.width && !p.height && clt_mem_live() == live);
}

/* ---- PNG ---- */

#if CLT_HAVE_PNG
#include <png.h>

typedef struct png_form { int type, depth, interlace, transparent, orientation; } png_form;

static void put_bytes(png_structp png, png_bytep data, size_t n) { clt_buf_put(png_get_io_ptr(png), data, n); }

/* A pattern of which every sample has its own value: an edge, a gradient and a little disorder. */
static unsigned sample(int x, int y, int c, int depth) {
    unsigned v = (unsigned)(x * 1471 + y * 3203 + c * 17011 + (x > 8 ? 30000 : 0)) & 0xFFFF;
    return v >> (16 - depth);
}

static const png_color palette[16] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {9, 8, 7}, {250, 251, 252}, {1, 2, 3},
                                      {100, 0, 50}, {0, 77, 33}, {5, 5, 5}, {66, 77, 88}, {12, 34, 56}, {78, 90, 12},
                                      {255, 255, 0}, {0, 255, 255}, {255, 0, 255}, {128, 128, 128}};
static const png_byte palette_alpha[4] = {0, 128, 255, 10};
enum { PW = 19, PH = 13 };

static void png_row(const png_form *f, int y, uint8_t *row) {
    int channels = f->type == PNG_COLOR_TYPE_PALETTE ? 1 : (f->type & 2 ? 3 : 1) + (f->type & 4 ? 1 : 0);
    memset(row, 0, PW * 8);
    for (int x = 0; x < PW; x++)
        for (int c = 0; c < channels; c++) {
            unsigned v = sample(x, y, c, f->depth);
            if (f->type == PNG_COLOR_TYPE_PALETTE) v &= 15;
            int at = (x * channels + c) * f->depth;
            if (f->depth == 16) row[at / 8] = (uint8_t)(v >> 8), row[at / 8 + 1] = (uint8_t)v;
            else row[at / 8] = (uint8_t)(row[at / 8] | v << (8 - f->depth - at % 8));
        }
}

static clt_buf png_file(const png_form *f) {
    clt_buf b = {0};
    uint8_t rows[PH][PW * 8];
    png_bytep row[PH];
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png))) fail_msg("libpng");
    png_set_write_fn(png, &b, put_bytes, NULL);
    png_set_IHDR(png, info, PW, PH, f->depth, f->type, f->interlace ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, 0, 0);
    if (f->type == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, f->depth < 4 ? 1 << f->depth : 16);
    if (f->transparent && f->type == PNG_COLOR_TYPE_PALETTE) {
        png_set_tRNS(png, info, palette_alpha, f->depth == 1 ? 2 : 4, NULL);
    } else if (f->transparent) {
        png_color_16 clear = {0, (png_uint_16)sample(3, 4, 0, f->depth), (png_uint_16)sample(3, 4, 1, f->depth),
                              (png_uint_16)sample(3, 4, 2, f->depth), (png_uint_16)sample(3, 4, 0, f->depth)};
        png_set_tRNS(png, info, NULL, 0, &clear);
    }
    uint8_t exif[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, (uint8_t)f->orientation,
                      0, 0, 0, 0, 0, 0};
    if (f->orientation) png_set_eXIf_1(png, info, sizeof exif, exif);
    for (int y = 0; y < PH; y++) png_row(f, y, rows[y]), row[y] = rows[y];
    png_write_info(png, info);
    png_write_image(png, row);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return b;
}

/* One channel as 8 bits: small depths spread over 0..255, 16 bits lose their low byte. */
static unsigned as_byte(unsigned v, int depth) { return depth == 16 ? v >> 8 : v * 255 / ((1u << depth) - 1); }

static void png_pixel(const png_form *f, int x, int y, unsigned rgb[3]) {
    unsigned alpha = 255;
    bool grey = !(f->type & 2), clear = f->transparent != 0;
    if (f->type == PNG_COLOR_TYPE_PALETTE) {
        unsigned v = sample(x, y, 0, f->depth) & 15;
        rgb[0] = palette[v].red, rgb[1] = palette[v].green, rgb[2] = palette[v].blue;
        if (f->transparent && v < 4) alpha = palette_alpha[v];
    } else {
        for (int c = 0; c < 3; c++) {
            unsigned v = sample(x, y, grey ? 0 : c, f->depth);
            clear = clear && v == sample(3, 4, grey ? 0 : c, f->depth);
            rgb[c] = as_byte(v, f->depth);
        }
        if (f->type & 4) alpha = as_byte(sample(x, y, grey ? 1 : 3, f->depth), f->depth);
        if (clear) alpha = 0;
    }
    for (int c = 0; c < 3; c++) rgb[c] = (rgb[c] * alpha + 255 * (255 - alpha) + 127) / 255;
}

static void check_png(const png_form *f) {
    clt_buf b = png_file(f);
    clt_picture p = pictures_decode(&b);
    assert_true(p.width == PW && p.height == PH);
    for (int y = 0; y < PH; y++)
        for (int x = 0; x < PW; x++) {
            unsigned rgb[3];
            png_pixel(f, x, y, rgb);
            for (int c = 0; c < 3; c++)
                if (p.rgb[(y * PW + x) * 3 + c] != rgb[c])
                    fail_msg("type %d depth %d interlace %d tRNS %d at %d,%d channel %d: %d, expected %u", f->type, f->depth,
                             f->interlace, f->transparent, x, y, c, p.rgb[(y * PW + x) * 3 + c], rgb[c]);
        }
    clt_picture_free(&p);
    clt_buf_free(&b);
}

static void every_form_of_png(void **state) {
    (void)state;
    static const struct { int type, depths[6]; } forms[] = {
        {PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}}, {PNG_COLOR_TYPE_RGB, {8, 16}}, {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}},
        {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}}, {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (const int *depth = forms[i].depths; *depth; depth++)
            for (int k = 0; k < 4; k++) {
                if ((forms[i].type & 4) && k >= 2) break; /* an alpha channel excludes tRNS */
                check_png(&(png_form){forms[i].type, *depth, k & 1, k >> 1, 0});
            }
}

static void png_turned_by_exif(void **state) {
    (void)state;
    clt_buf b = png_file(&(png_form){PNG_COLOR_TYPE_RGB, 8, 0, 0, 6});
    clt_picture p = pictures_decode(&b);
    assert_true(p.width == PH && p.height == PW);
    for (int y = 0; y < PW; y++) /* a quarter clockwise: the upper row becomes the right column */
        for (int x = 0; x < PH; x++) assert_int_equal(p.rgb[(y * PH + x) * 3], sample(y, PH - 1 - x, 0, 8));
    clt_picture_free(&p);
    clt_buf_free(&b);
}
#endif

/* ---- JPEG ---- */

#if CLT_HAVE_TURBOJPEG
#include <turbojpeg.h>

static clt_buf jpeg_file(const clt_picture *p, int sampling, int flags) {
    clt_buf b = {0};
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    tjhandle t = tjInitCompress();
    if (tjCompress2(t, p->rgb, p->width, 0, p->height, TJPF_RGB, &bytes, &n, sampling, 95, flags)) fail_msg("turbojpeg");
    clt_buf_put(&b, bytes, n);
    tjFree(bytes);
    tjDestroy(t);
    return b;
}

/* The file with an APP1 segment of these bytes behind its first marker. */
static clt_buf with_exif(const clt_buf *file, const uint8_t *tiff, size_t n) {
    clt_buf b = {0};
    uint8_t head[10] = {0xFF, 0xE1, (uint8_t)((n + 8) >> 8), (uint8_t)(n + 8), 'E', 'x', 'i', 'f', 0, 0};
    clt_buf_put(&b, file->data, 2);
    clt_buf_put(&b, head, sizeof head);
    clt_buf_put(&b, tiff, n);
    clt_buf_put(&b, file->data + 2, file->len - 2);
    return b;
}

static size_t tiff_of(int orientation, bool big, uint8_t *out) {
    uint8_t le[] = {'I', 'I', 42, 0, 8, 0, 0, 0, 2, 0, 0x0F, 1, 2, 0, 1, 0, 0, 0, 'x', 0, 0, 0, 0x12, 1, 3, 0, 1, 0, 0, 0,
                    (uint8_t)orientation, 0, 0, 0, 0, 0, 0, 0};
    uint8_t be[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 2, 1, 0x0F, 0, 2, 0, 0, 0, 1, 'x', 0, 0, 0, 1, 0x12, 0, 3, 0, 0, 0, 1,
                    0, (uint8_t)orientation, 0, 0, 0, 0, 0, 0};
    memcpy(out, big ? be : le, sizeof le);
    return sizeof le;
}

/* How a picture is stored that orientation o turns upright: o says where row 0 and column 0 of the stored one are seen. */
static clt_picture stored_for(const clt_picture *upright, int o) {
    bool swap = o >= 5;
    int w = swap ? upright->height : upright->width, h = swap ? upright->width : upright->height;
    clt_picture p = {w, h, clt_alloc((size_t)w * (size_t)h * 3)};
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            bool row_from_far = o == 3 || o == 4 || o == 6 || o == 7; /* row 0 is seen at the bottom, or at the right */
            bool column_from_far = o == 2 || o == 3 || o == 7 || o == 8;
            int r = row_from_far ? h - 1 - y : y, c = column_from_far ? w - 1 - x : x;
            int ux = swap ? r : c, uy = swap ? c : r;
            memcpy(p.rgb + (y * w + x) * 3, upright->rgb + (uy * upright->width + ux) * 3, 3);
        }
    return p;
}

static void every_form_of_jpeg(void **state) {
    (void)state;
    clt_picture scene = small_scene();
    static const int samplings[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_411};
    for (int k = 0; k < 10; k++) {
        clt_buf b = jpeg_file(&scene, samplings[k / 2], k % 2 ? TJFLAG_PROGRESSIVE : 0);
        clt_picture p = pictures_decode(&b);
        pictures_same(&p, &scene, 255, k < 2 ? 3 : 15);
        clt_buf_free(&b);
    }
    clt_buf grey = jpeg_file(&scene, TJSAMP_GRAY, 0);
    clt_picture p = pictures_decode(&grey);
    for (size_t i = 0; i < W * H; i++) {
        const uint8_t *s = scene.rgb + 3 * i, *g = p.rgb + 3 * i;
        assert_true(g[0] == g[1] && g[1] == g[2] && abs(g[0] - (299 * s[0] + 587 * s[1] + 114 * s[2]) / 1000) < 24);
    }
    clt_picture_free(&p);
    clt_buf_free(&grey);
    clt_picture_free(&scene);
}

static void jpeg_of_inks(void **state) {
    (void)state;
    clt_picture scene = small_scene();
    clt_buf b = pictures_golden("pictures", "cmyk.jpg");
    clt_picture p = pictures_decode(&b);
    pictures_same(&p, &scene, 12, 2);
    clt_buf_free(&b);
    clt_picture_free(&scene);
}

static void every_orientation(void **state) {
    (void)state;
    clt_picture scene = small_scene();
    for (int o = 1; o <= 8; o++)
        for (int big = 0; big < 2; big++) {
            uint8_t tiff[64];
            size_t n = tiff_of(o, big, tiff);
            clt_picture stored = stored_for(&scene, o);
            clt_buf plain = jpeg_file(&stored, TJSAMP_444, 0), turned = with_exif(&plain, tiff, n);
            clt_picture p = pictures_decode(&turned);
            pictures_same(&p, &scene, 60, 3);
            clt_picture_free(&stored);
            clt_buf_free(&plain);
            clt_buf_free(&turned);
        }
    clt_picture_free(&scene);
}

/* Whatever an EXIF segment holds, the picture is decoded, and nothing beyond the segment is read. */
static void hostile_exif(void **state) {
    (void)state;
    clt_picture scene = small_scene();
    clt_buf plain = jpeg_file(&scene, TJSAMP_444, 0);
    for (uint64_t round = 0; round < 600; round++) {
        uint8_t tiff[64];
        size_t n = tiff_of(6, round & 1, tiff), cut = round % (n + 1);
        for (uint64_t k = 0; k < 3 && round > 80; k++)
            tiff[clt_random_u64(1, round, k) % n] = (uint8_t)clt_random_u64(2, round, k);
        uint8_t *exact = clt_alloc(cut + 1); /* a sanitizer sees what is read behind it */
        memcpy(exact, tiff, cut);
        int o = clt_exif_orientation(exact, cut);
        assert_true(o >= 1 && o <= 8);
        clt_buf b = with_exif(&plain, exact, cut);
        clt_picture p = pictures_decode(&b);
        assert_int_equal(p.width * p.height, W * H);
        clt_picture_free(&p);
        clt_buf_free(&b);
        clt_free(exact);
    }
    clt_buf_free(&plain);
    clt_picture_free(&scene);
}

/* Cameras leave the usual Huffman tables out of the frames of a film. */
static void jpeg_without_huffman_tables(void **state) {
    (void)state;
    clt_picture scene = small_scene();
    clt_buf whole = jpeg_file(&scene, TJSAMP_422, 0), bare = {0};
    const uint8_t *d = (const uint8_t *)whole.data;
    size_t at = 2;
    clt_buf_put(&bare, d, 2);
    while (at + 4 < whole.len && d[at + 1] != 0xDA) {
        size_t n = 2 + ((size_t)d[at + 2] << 8 | d[at + 3]);
        if (d[at + 1] != 0xC4) clt_buf_put(&bare, d + at, n);
        at += n;
    }
    clt_buf_put(&bare, d + at, whole.len - at);
    assert_true(bare.len + 400 < whole.len);
    clt_picture a = pictures_decode(&bare), b = pictures_decode(&whole);
    pictures_same(&a, &b, 0, 0);
    clt_picture_free(&b);
    clt_buf_free(&whole);
    clt_buf_free(&bare);
    clt_picture_free(&scene);
}
#endif

/* ---- WebP ---- */

static void webp(void **state) {
    (void)state;
    clt_picture scene = small_scene();
    static const char *const names[] = {"animated.webp", "turned.webp"};
    for (size_t i = 0; i < 2; i++) {
        clt_buf b = pictures_golden("pictures", names[i]);
        clt_picture p = pictures_decode(&b);
        pictures_same(&p, &scene, 0, 0);
        clt_buf_free(&b);
    }
    clt_buf b = pictures_golden("pictures", "alpha.webp"); /* column x is 5 x of 255 opaque */
    clt_picture p = pictures_decode(&b);
    for (int i = 0; i < W * H * 3; i++) {
        unsigned a = (unsigned)(i / 3 % W) * 5;
        assert_int_equal(p.rgb[i], (scene.rgb[i] * a + 255 * (255 - a) + 127) / 255);
    }
    clt_picture_free(&p);
    clt_buf_free(&b);
    clt_picture_free(&scene);
}

/* ---- damage ---- */

static const char *const whole[] = {"scene.png", "cmyk.jpg", "animated.webp", "turned.webp", "alpha.webp"};
enum { N_WHOLE = sizeof whole / sizeof *whole };

static void cut_off(void **state) {
    (void)state;
    for (int i = 0; i < N_WHOLE; i++) {
        clt_buf b = pictures_golden("pictures", whole[i]);
        clt_picture p = pictures_decode(&b);
        clt_picture_free(&p);
        for (size_t n = 0; n < b.len; n++) {
            uint8_t *exact = clt_alloc(n + 1);
            memcpy(exact, b.data, n);
            refused(exact, n, n == 0 ? "empty" : "picture");
            clt_free(exact);
        }
        clt_buf_free(&b);
    }
}

static void disturbed(void **state) {
    (void)state;
    for (int i = 0; i < N_WHOLE; i++) {
        clt_buf b = pictures_golden("pictures", whole[i]);
        for (uint64_t round = 0; round < 800; round++) {
            clt_buf bad = {0};
            clt_picture p;
            clt_err err = {0};
            long live = clt_mem_live();
            clt_buf_put(&bad, b.data, b.len);
            for (uint64_t k = 0; k <= round % 4; k++)
                bad.data[clt_random_u64(3, round, k) % (round % 3 ? 80 : b.len)] = (char)clt_random_u64(4, round, k);
            if (clt_picture_decode((const uint8_t *)bad.data, bad.len, "x", &p, &err) == CLT_OK) {
                assert_true(p.width > 0 && p.height > 0 && p.rgb);
                clt_picture_free(&p);
            } else {
                assert_true(err.text[0] && !strchr(err.text, '\n') && !p.rgb);
            }
            clt_buf_free(&bad);
            assert_int_equal(clt_mem_live(), live);
        }
        clt_buf_free(&b);
    }
}

static void memory_runs_out(void **state) {
    (void)state;
    for (int i = 0; i < N_WHOLE; i++) {
        clt_buf b = pictures_golden("pictures", whole[i]);
        long live = clt_mem_live();
        for (long k = 1;; k++) {
            clt_picture p;
            clt_err err = {0};
            clt_mem_fail_after(k);
            clt_status st = clt_picture_decode((const uint8_t *)b.data, b.len, "x", &p, &err);
            clt_mem_fail_after(0);
            if (st == CLT_OK) {
                clt_picture_free(&p);
                break;
            }
            if (st == CLT_E_UNSUPPORTED) skip();
            assert_int_equal(st, CLT_E_MEMORY);
        }
        assert_int_equal(clt_mem_live(), live);
        clt_buf_free(&b);
    }
}

#define REFUSED(bytes, why) refused(bytes, sizeof bytes - 1, why)
static void foreign_formats(void **state) {
    (void)state;
    REFUSED("GIF89a\1\0\1\0", "is a GIF, expected a JPEG, PNG or WebP");
    REFUSED("BM\x9a\0\0\0\0\0", "is a BMP");
    REFUSED("\0\0\0\x18""ftypheic\0\0\0\0mif1", "is a HEIC");
    REFUSED("\0\0\0\x1c""ftypavif\0\0\0\0", "is an AVIF");
    REFUSED("%PDF-1.7\n", "is a PDF");
    REFUSED("II*\0\x08\0\0\0", "is a TIFF");
    REFUSED("MM\0*\0\0\0\x08", "is a TIFF");
    REFUSED("<svg xmlns=''/>", "is an SVG");
    REFUSED("\n  <!DOCTYPE html><html>", "is an HTML page");
    REFUSED("version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer");
    REFUSED("RIFF\x10\0\0\0WAVEfmt ", "is a WAV sound");
    REFUSED("no picture", "no picture: 10 bytes that begin with 6e 6f 20 70");
    REFUSED("\xFF", "begin with ff");
    REFUSED("", "is empty");
}

/* A head that promises more than is taken is refused before memory is. */
static void too_large(void **state) {
    (void)state;
    /* 50,000 pixels a side, then no data. */
    static const uint8_t png[] = {
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 195, 80, 0, 0, 195, 80, 8, 2, 0, 0, 0,
        196, 205, 170, 157, 0, 0, 0, 0, 73, 68, 65, 84, 53, 175, 6, 30};
    clt_buf jpeg = pictures_golden("pictures", "cmyk.jpg");
    for (size_t i = 0; i + 9 < jpeg.len; i++)
        if ((uint8_t)jpeg.data[i] == 0xFF && (uint8_t)jpeg.data[i + 1] == 0xC0) memcpy(jpeg.data + i + 5, "\xff\0\xff\0", 4);
    refused(jpeg.data, jpeg.len, "65280 x 65280 pixels, at most 128000000 in all");
    clt_buf_free(&jpeg);
    refused(png, sizeof png, "50000 x 50000 pixels, at most 128000000 in all");
}

static void no_file(void **state) {
    (void)state;
    char folder[] = "/tmp/culet-picture-XXXXXX", path[128];
    clt_picture p;
    clt_err err;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(clt_picture_read(folder, 0, &p, &err), CLT_E_FAILED);
    assert_non_null(strstr(err.text, "is a folder"));
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(clt_picture_read(path, 0, &p, &err), CLT_E_FAILED);
    assert_non_null(strstr(err.text, "a pipe or a device"));
    unlink(path);
    assert_int_equal(clt_picture_read("/dev/zero", 0, &p, &err), CLT_E_FAILED);
    snprintf(path, sizeof path, "%s/\xff\n\x1b[2J.png", folder);
    assert_int_equal(clt_picture_read(path, 0, &p, &err), CLT_E_FAILED);
    assert_true(strstr(err.text, "No such file") && !strpbrk(err.text, "\n\x1b"));
    rmdir(folder);
    assert_int_equal(clt_picture_read(CLT_TEST_DIR "/golden/pictures/scene.png", 100, &p, &err), CLT_E_FAILED);
    assert_non_null(strstr(err.text, "larger than 100 bytes"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
#if CLT_HAVE_PNG
        cmocka_unit_test(every_form_of_png),
        cmocka_unit_test(png_turned_by_exif),
#endif
#if CLT_HAVE_TURBOJPEG
        cmocka_unit_test(every_form_of_jpeg),
        cmocka_unit_test(jpeg_of_inks),
        cmocka_unit_test(every_orientation),
        cmocka_unit_test(hostile_exif),
        cmocka_unit_test(jpeg_without_huffman_tables),
#endif
        cmocka_unit_test(webp),
        cmocka_unit_test(cut_off),
        cmocka_unit_test(disturbed),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(foreign_formats),
        cmocka_unit_test(too_large),
        cmocka_unit_test(no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
