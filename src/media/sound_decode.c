/* wav, flac, ogg and mp3 -> mono floats, through libsndfile, block by block: nothing grows with what a file claims. */
#include <math.h>
#include "base/mem.h"
#include "media/sound_impl.h"

#ifdef CLT_HAVE_SNDFILE
#include <sndfile.h>
#include <stdio.h>
#include <string.h>

enum {
    BLOCK_NUMBERS = 1 << 16, /* of all channels */
    RATE_LEAST = 1000, RATE_MOST = 768000
};
#define FULL_SCALE 0.99996f /* the largest number of 16 bits is 32767/32768 */
#define LOUDEST 16.0f       /* what lies beyond this was not written as sound */

enum { FORMAT_MPEG = 0x230000 }; /* older headers do not name it */

/* ---- the source, as libsndfile wants it ---- */

static sf_count_t source_bytes(void *user) { return ((const clt_sound_source *)user)->bytes; }

static sf_count_t source_seek(sf_count_t offset, int whence, void *user) {
    clt_sound_source *s = user;
    int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->bytes;
    if (offset < -from || offset > s->bytes - from) return -1;
    return s->at = from + offset;
}

static sf_count_t source_read(void *dst, sf_count_t n, void *user) {
    clt_sound_source *s = user;
    int64_t got = clt_sound_source_read(s, dst, n, s->at);
    s->at += got;
    return got;
}

static sf_count_t source_write(const void *src, sf_count_t n, void *user) {
    (void)src, (void)n, (void)user;
    return 0;
}

static sf_count_t source_tell(void *user) { return ((const clt_sound_source *)user)->at; }

/* ---- decoding ---- */

static bool library_reads_mp3(void) {
    int n = 0;
    sf_command(NULL, SFC_GET_FORMAT_MAJOR_COUNT, &n, sizeof n);
    for (int i = 0; i < n; i++) {
        SF_FORMAT_INFO f = {.format = i};
        if (sf_command(NULL, SFC_GET_FORMAT_MAJOR, &f, sizeof f) == 0 && f.format == FORMAT_MPEG) return true;
    }
    return false;
}

static clt_status refuse(const clt_sound_source *s, clt_err *err) {
    uint8_t head[4] = {0};
    int why = sf_error(NULL);
    clt_sound_source_read(s, head, sizeof head, 0);
    bool mp3 = memcmp(head, "ID3", 3) == 0 || head[0] == 0xFF;
    if (mp3 && !library_reads_mp3()) {
        clt_fail(err, CLT_E_UNSUPPORTED, "%s: this build's libsndfile (%s) reads no mp3", s->name, sf_version_string());
        return clt_hint(err, "libsndfile reads mp3 from version 1.1 on; or convert the file to wav or flac");
    }
    return clt_fail(err, CLT_E_FAILED, "%s: damaged: %s", s->name, sf_error_number(why));
}

/* Averages n frames in place, counts what is at full scale. Frames done: fewer than n if the next one holds a number that no
 * sound holds, put into *bad. */
static int64_t mix_down(float *x, int channels, int64_t n, int64_t *full, float *bad) {
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int c = 0; c < channels; c++) {
            float v = x[i * channels + c];
            if (!(fabsf(v) <= LOUDEST)) {
                *bad = v;
                return i;
            }
            *full += fabsf(v) >= FULL_SCALE;
            sum += v;
        }
        x[i] = sum / (float)channels;
    }
    return n;
}

/* -1: the file does not say. */
static int64_t frames_of(const SF_INFO *info) { return info->frames < INT64_MAX >> 8 ? info->frames : -1; }

static clt_status pump(const clt_sound_source *s, SNDFILE *f, const SF_INFO *info, clt_sound_sink *sink, float *block,
                       clt_err *err) {
    int64_t done = 0, n, step = BLOCK_NUMBERS / info->channels;
    clt_status st = CLT_OK;
    float bad;
    while (st == CLT_OK && (n = sf_readf_float(f, block, step)) > 0) {
        int64_t fine = mix_down(block, info->channels, n, &sink->at_full_scale, &bad);
        if (fine < n)
            return clt_fail(err, CLT_E_FAILED, "%s: holds the sample %g at %.3f s, expected numbers from -1 to 1", s->name,
                            (double)bad, (double)(done + fine) / info->samplerate);
        st = sink->put(sink->user, block, n, err);
        done += n;
    }
    if (st != CLT_OK) return st;
    if (sf_error(f))
        return clt_fail(err, CLT_E_FAILED, "%s: damaged after %.3f s: %s", s->name, (double)done / info->samplerate,
                        sf_error_number(sf_error(f)));
    /* Of mp3 the library only estimates the length; its frames were counted before. */
    if (frames_of(info) > done && (info->format & SF_FORMAT_TYPEMASK) != FORMAT_MPEG)
        return clt_fail(err, CLT_E_FAILED, "%s: damaged or cut off: ends after %.3f of %.3f s", s->name,
                        (double)done / info->samplerate, (double)info->frames / info->samplerate);
    return CLT_OK;
}

clt_status clt_sound_decode_source(clt_sound_source *s, clt_sound_sink *sink, clt_err *err) {
    SF_VIRTUAL_IO io = {source_bytes, source_seek, source_read, source_write, source_tell};
    SF_INFO info = {0};
    float *block = NULL;
    clt_status st;
    SNDFILE *f = sf_open_virtual(&io, SFM_READ, &info, s);
    if (!f) return refuse(s, err);
    if (info.samplerate < RATE_LEAST || info.samplerate > RATE_MOST || info.channels < 1 || info.channels > BLOCK_NUMBERS) {
        st = clt_fail(err, CLT_E_FAILED, "%s: %d samples a second in %d channels, expected %d to %d a second", s->name,
                      info.samplerate, info.channels, RATE_LEAST, RATE_MOST);
    } else if (!(block = clt_alloc(BLOCK_NUMBERS * sizeof *block))) {
        st = clt_fail_memory(err, s->name, BLOCK_NUMBERS * sizeof *block);
    } else {
        st = sink->start(sink->user, info.samplerate, info.channels, frames_of(&info), err);
        if (st == CLT_OK) st = pump(s, f, &info, sink, block, err);
    }
    clt_free(block);
    sf_close(f);
    return st;
}
#else
clt_status clt_sound_decode_source(clt_sound_source *s, clt_sound_sink *sink, clt_err *err) {
    (void)s, (void)sink;
    return clt_fail_not_built(err, "sound files", "libsndfile1-dev");
}
#endif
