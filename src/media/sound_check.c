/* Files of sound that were cut off or damaged, found before a decoder sees them: decoders take what is left of a file for
 * the whole, or jump over what they cannot read. Flac needs no check: it knows its length, its decoder stops at errors. */
#include <string.h>
#include "media/sound_impl.h"

static uint32_t little32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t big32(const uint8_t *p) {
    return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}

/* ---- wav: 12 bytes, then chunks of name[4], u32 length, bytes, padded to an even length ---- */

clt_status clt_sound_check_wav(const clt_sound_source *s, clt_err *err) {
    const uint32_t unknown = 0x7FFFF000; /* writers that do not know the length put a number near the largest */
    uint8_t head[8];
    for (int64_t at = 12; clt_sound_source_read(s, head, sizeof head, at) == sizeof head;) {
        uint32_t length = little32(head + 4);
        int64_t left = s->bytes - at - (int64_t)sizeof head;
        if (memcmp(head, "data", 4) == 0) {
            if (length > left && length < unknown)
                return clt_fail(err, CLT_E_FAILED, "%s: cut off: holds %lld of %u bytes of sound", s->name,
                                (long long)left, length);
            return CLT_OK;
        }
        at += (int64_t)sizeof head + length + (length & 1);
    }
    return clt_fail(err, CLT_E_FAILED, "%s: damaged or cut off: a wav file without a chunk of sound", s->name);
}

/* ---- ogg: pages of "OggS", u8 version, u8 flags, u64 position, u32 stream, u32 number, u32 checksum, u8 segments, their
 * lengths, bytes; flag 4 ends the stream; the checksum is a CRC-32 over the page with itself as zero ---- */

static uint32_t ogg_crc(const uint8_t *p, int64_t n) {
    uint32_t crc = 0;
    for (int64_t i = 0; i < n; i++) {
        crc ^= (uint32_t)(i >= 22 && i < 26 ? 0 : p[i]) << 24;
        for (int bit = 0; bit < 8; bit++) crc = crc << 1 ^ (crc >> 31 ? 0x04C11DB7u : 0);
    }
    return crc;
}

clt_status clt_sound_check_ogg(const clt_sound_source *s, clt_err *err) {
    enum { HEAD = 27, PAGE_MOST = HEAD + 255 + 255 * 255 };
    static const uint8_t end_flag = 4;
    uint8_t page[PAGE_MOST];
    bool ended = false;
    for (int64_t at = 0; at < s->bytes;) {
        int64_t got = clt_sound_source_read(s, page, PAGE_MOST, at), length = HEAD + (got < HEAD ? 0 : page[HEAD - 1]);
        if (got < length) break;
        for (int i = HEAD, n = (int)length; i < n; i++) length += page[i];
        if (memcmp(page, "OggS", 4) != 0)
            return clt_fail(err, CLT_E_FAILED, "%s: damaged at byte %lld: no page of ogg", s->name, (long long)at);
        ended = false;
        if (got < length) break;
        if (ogg_crc(page, length) != little32(page + 22))
            return clt_fail(err, CLT_E_FAILED, "%s: damaged: the page of ogg at byte %lld has another checksum", s->name,
                            (long long)at);
        ended = page[5] & end_flag;
        at += length;
    }
    return ended ? CLT_OK : clt_fail(err, CLT_E_FAILED, "%s: cut off: the last page of the stream is missing", s->name);
}

/* ---- mp3: frames without a frame around them; tags before, between and behind ---- */

typedef struct mp3_frame { int64_t bytes; int side_bytes; /* between header and a table of the whole file */ } mp3_frame;

/* bytes: -1 no header of a frame, 0 a frame of unstated length. */
static mp3_frame mp3_header(const uint8_t *b) {
    static const uint16_t kbit[5][15] = {
        {0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448}, /* version 1, layers 1 to 3 */
        {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
        {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
        {0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},    /* versions 2 and 2.5, layers 1, 2 and 3 */
        {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}};
    static const int hz[3] = {44100, 48000, 32000};
    int version = b[1] >> 3 & 3, layer = 4 - (b[1] >> 1 & 3), rate = b[2] >> 4, at = b[2] >> 2 & 3, pad = b[2] >> 1 & 1;
    if (b[0] != 0xFF || (b[1] & 0xE0) != 0xE0 || version == 1 || layer == 4 || rate == 15 || at == 3)
        return (mp3_frame){-1, 0};
    bool first = version == 3, mono = b[3] >> 6 == 3;
    int64_t bits = 1000 * kbit[first ? layer - 1 : layer == 1 ? 3 : 4][rate];
    int rate_hz = hz[at] >> (first ? 0 : version == 2 ? 1 : 2);
    int64_t length = layer == 1 ? (12 * bits / rate_hz + pad) * 4 : (layer == 3 && !first ? 72 : 144) * bits / rate_hz + pad;
    return (mp3_frame){rate ? length : 0, first ? (mono ? 17 : 32) : (mono ? 9 : 17)};
}

/* Bytes of what begins at b and is no sound: tags, and zeros or a stump before the end. 0: none of them. */
static int64_t mp3_tag(const clt_sound_source *s, const uint8_t b[32], int64_t got, int64_t at) {
    if (memcmp(b, "ID3", 3) == 0) {
        int64_t size = (int64_t)(b[6] & 127) << 21 | (b[7] & 127) << 14 | (b[8] & 127) << 7 | (b[9] & 127);
        return 10 + size + (b[5] & 16 ? 10 : 0);
    }
    if (memcmp(b, "TAG", 3) == 0) return 128;
    if (memcmp(b, "APETAGEX", 8) == 0) return 32 + (int64_t)little32(b + 12);
    if (memcmp(b, "LYRICSBEGIN", 11) == 0) return s->bytes - at;
    for (int64_t i = 0; i < got; i++)
        if (b[i]) return 0;
    return got;
}

/* Frames that the table in the first frame promises; 0 if there is none. */
static int64_t mp3_promised(const clt_sound_source *s, int64_t at, int side_bytes) {
    uint8_t b[12];
    if (clt_sound_source_read(s, b, sizeof b, at + 4 + side_bytes) != sizeof b) return 0;
    if (memcmp(b, "Xing", 4) != 0 && memcmp(b, "Info", 4) != 0) return 0;
    return b[7] & 1 ? (int64_t)big32(b + 8) : 0;
}

clt_status clt_sound_check_mp3(const clt_sound_source *s, clt_err *err) {
    int64_t frames = 0, promised = 0;
    for (int64_t at = 0; at < s->bytes;) {
        uint8_t b[32] = {0};
        int64_t got = clt_sound_source_read(s, b, sizeof b, at), tag = mp3_tag(s, b, got, at);
        mp3_frame f = tag ? (mp3_frame){tag, 0} : mp3_header(b);
        if (!frames && memcmp(b, "fLaC", 4) == 0) return CLT_OK; /* behind a tag: the decoder takes it */
        if (f.bytes == 0) return CLT_OK; /* the length is the distance to the next: the decoder's business */
        if (f.bytes < 0)
            return clt_fail(err, CLT_E_FAILED, "%s: damaged at byte %lld: no frame of mp3", s->name, (long long)at);
        if (!tag && f.bytes > s->bytes - at)
            return clt_fail(err, CLT_E_FAILED, "%s: cut off within the frame at byte %lld", s->name, (long long)at);
        if (!tag && !frames++) promised = mp3_promised(s, at, f.side_bytes);
        at += f.bytes;
    }
    if (!frames) return clt_fail(err, CLT_E_FAILED, "%s: damaged or cut off: no frame of mp3", s->name);
    frames -= promised > 0; /* the table stands in a frame of its own; some writers count that too */
    if (frames < promised - 1)
        return clt_fail(err, CLT_E_FAILED, "%s: cut off: holds %lld of %lld frames", s->name, (long long)frames,
                        (long long)promised);
    /* A decoder would stop at the number that the first file states. */
    if (promised && frames > promised + 1)
        return clt_fail(err, CLT_E_FAILED, "%s: holds %lld frames, but its table says %lld: several files in one?", s->name,
                        (long long)frames, (long long)promised);
    return CLT_OK;
}
