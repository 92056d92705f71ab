/* The bytes of a sound, wherever they lie, and what they are: told by content, never by name. */
#include <string.h>
#include "base/os.h"
#include "media/sound_impl.h"

int64_t clt_sound_source_read(const clt_sound_source *s, void *dst, int64_t n, int64_t at) {
    if (at < 0 || at >= s->bytes || n <= 0) return 0;
    if (n > s->bytes - at) n = s->bytes - at;
    if (s->data) memcpy(dst, s->data + at, (size_t)n);
    else if (!clt_read_at(s->fd, dst, (size_t)n, (uint64_t)at)) return 0;
    return n;
}

/* Sound that people have, but that is not read here. */
static const char *foreign(const uint8_t *b) {
    if (memcmp(b + 4, "ftyp", 4) == 0) return "an MP4 or M4A file";
    if (memcmp(b, "\x1A\x45\xDF\xA3", 4) == 0) return "a Matroska or WebM file";
    if (memcmp(b, "FORM", 4) == 0) return "an AIFF file";
    if (memcmp(b, "caff", 4) == 0) return "a CAF file";
    if (memcmp(b, ".snd", 4) == 0) return "an AU file";
    if (memcmp(b, "#!AMR", 5) == 0) return "an AMR file";
    if (memcmp(b, "\x30\x26\xB2\x75", 4) == 0) return "a WMA file";
    if (b[0] == 0xFF && (b[1] & 0xF6) == 0xF0) return "an AAC file";
    return NULL;
}

clt_status clt_sound_source_check(const clt_sound_source *s, clt_err *err) {
    uint8_t b[12] = {0};
    if (!s->bytes) return clt_fail(err, CLT_E_FAILED, "%s: is empty, expected a wav, flac, ogg or mp3 file", s->name);
    clt_sound_source_read(s, b, sizeof b, 0);
    if (memcmp(b, "RIFF", 4) == 0 && memcmp(b + 8, "WAVE", 4) == 0) return clt_sound_check_wav(s, err);
    if ((memcmp(b, "RIFX", 4) == 0 || memcmp(b, "RF64", 4) == 0) && memcmp(b + 8, "WAVE", 4) == 0) return CLT_OK;
    if (memcmp(b, "fLaC", 4) == 0) return CLT_OK;
    if (memcmp(b, "OggS", 4) == 0) return clt_sound_check_ogg(s, err);
    const char *what = foreign(b);
    if (what) {
        clt_fail(err, CLT_E_FAILED, "%s: is %s, expected wav, flac, ogg or mp3", s->name, what);
        return clt_hint(err, "convert it first, for example: ffmpeg -i FILE -ac 1 -ar 16000 out.wav");
    }
    if (memcmp(b, "ID3", 3) == 0 || (b[0] == 0xFF && (b[1] & 0xE0) == 0xE0)) return clt_sound_check_mp3(s, err);
    return clt_fail(err, CLT_E_FAILED, "%s: no sound: begins with %02x %02x %02x %02x, expected wav, flac, ogg or mp3",
                    s->name, b[0], b[1], b[2], b[3]);
}
