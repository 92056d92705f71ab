/* WebP, over libwebp; the first picture of an animation and EXIF over libwebpdemux. */
#include <string.h>
#include "base/mem.h"
#include "media/picture_impl.h"

#if !CLT_HAVE_WEBP

clt_status clt_webp_decode(const clt_picture_source *s, clt_picture *out, int *orientation, clt_err *err) {
    (void)s, (void)out, (void)orientation;
    return clt_fail_not_built(err, "WebP pictures", "libwebp-dev");
}

#else

#include <webp/decode.h>

#if CLT_HAVE_WEBPDEMUX
#include <webp/demux.h>

static clt_status first_frame(const clt_picture_source *s, uint8_t *rgba, size_t bytes, clt_err *err) {
    WebPData data = {s->data, s->n};
    WebPAnimDecoderOptions options;
    uint8_t *frame;
    int at;
    if (!WebPAnimDecoderOptionsInit(&options)) return clt_fail_memory(err, s->name, bytes);
    options.color_mode = MODE_RGBA;
    WebPAnimDecoder *d = WebPAnimDecoderNew(&data, &options);
    bool ok = d && WebPAnimDecoderGetNext(d, &frame, &at);
    if (ok) memcpy(rgba, frame, bytes);
    WebPAnimDecoderDelete(d);
    return ok ? CLT_OK : clt_picture_damaged(s, "its first frame cannot be decoded", err);
}

static int find_orientation(const clt_picture_source *s) {
    static const char prefix[] = "Exif\0";
    WebPData data = {s->data, s->n};
    WebPChunkIterator chunk;
    int orientation = 1;
    WebPDemuxer *d = WebPDemux(&data);
    if (d && WebPDemuxGetChunk(d, "EXIF", 1, &chunk)) {
        size_t skip = chunk.chunk.size >= 6 && memcmp(chunk.chunk.bytes, prefix, 6) == 0 ? 6 : 0;
        orientation = clt_exif_orientation(chunk.chunk.bytes + skip, chunk.chunk.size - skip);
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    WebPDemuxDelete(d);
    return orientation;
}
#else
static clt_status first_frame(const clt_picture_source *s, uint8_t *rgba, size_t bytes, clt_err *err) {
    (void)s, (void)rgba, (void)bytes;
    return clt_fail_not_built(err, "animated WebP pictures", "libwebp-dev");
}

static int find_orientation(const clt_picture_source *s) {
    (void)s;
    return 1;
}
#endif

clt_status clt_webp_decode(const clt_picture_source *s, clt_picture *out, int *orientation, clt_err *err) {
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(s->data, s->n, &f) != VP8_STATUS_OK || f.width < 1)
        return clt_picture_damaged(s, "its header cannot be read", err);
    clt_status st = clt_picture_check_size(s, f.width, f.height, err);
    if (st != CLT_OK) return st;
    bool alpha = f.has_alpha || f.has_animation;
    int stride = f.width * (alpha ? 4 : 3); /* at most 16383 pixels */
    size_t bytes = (size_t)stride * (size_t)f.height;
    *out = (clt_picture){f.width, f.height, clt_alloc(bytes)};
    if (!out->rgb) return clt_fail_memory(err, s->name, bytes);
    if (f.has_animation) st = first_frame(s, out->rgb, bytes, err);
    else if (!(alpha ? WebPDecodeRGBAInto : WebPDecodeRGBInto)(s->data, s->n, out->rgb, bytes, stride))
        st = clt_picture_damaged(s, "its data is cut off or wrong", err);
    if (st != CLT_OK) return st;
    if (alpha) clt_picture_flatten(out->rgb, (size_t)f.width * (size_t)f.height);
    *orientation = find_orientation(s);
    return CLT_OK;
}

#endif
