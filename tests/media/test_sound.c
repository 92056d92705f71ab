/* Files of sound: every format and rate, and files that are empty, cut off, damaged or no sound at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "media/sound.h"

static const char *const files[] = {"chirp.wav", "short.flac", "short.ogg", "opus.ogg", "short.mp3"};
enum { N_FILES = sizeof files / sizeof *files };

static clt_buf golden(const char *name) {
    clt_buf b = {0}, path = {0};
    clt_err err;
    clt_buf_printf(&path, CLT_TEST_DIR "/golden/sounds/%s", name);
    assert_int_equal(clt_read_file(path.data, 1 << 20, &b, &err), CLT_OK);
    clt_buf_free(&path);
    return b;
}

/* Ends the test where the build or its library lacks what it needs. */
static clt_sound decode(const clt_buf *b, double max_seconds) {
    clt_sound s;
    clt_err err;
    clt_status st = clt_sound_decode((const uint8_t *)b->data, b->len, "x", max_seconds, &s, &err);
    if (st == CLT_E_UNSUPPORTED) skip();
    if (st != CLT_OK) fail_msg("%s", err.text);
    return s;
}

/* Refused in one line that names the file and holds `why`; nothing is left behind. */
static void refused(const clt_buf *b, const char *why) {
    clt_sound s = {.n = 1};
    clt_err err = {0};
    clt_status st = clt_sound_decode((const uint8_t *)b->data, b->len, "the-name", 30, &s, &err);
    if (st == CLT_E_UNSUPPORTED) skip();
    assert_int_equal(st, CLT_E_FAILED);
    assert_true(strncmp(err.text, "the-name: ", 10) == 0 && !strchr(err.text, '\n'));
    if (!strstr(err.text, why)) fail_msg("%s: lacks \"%s\"", err.text, why);
    assert_true(!s.samples && !s.n);
}

/* ---- wav files made here ---- */

enum { PCM = 1, FLOATS = 3 };
static void put_number(clt_buf *b, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) clt_buf_putc(b, (char)(v >> 8 * i));
}

static void put_sample(clt_buf *b, double v, int format, int bits) {
    if (format == FLOATS) {
        float f = (float)v;
        clt_buf_put(b, &f, sizeof f);
    } else if (bits == 8) {
        clt_buf_putc(b, (char)(uint8_t)(lround(v * 127) + 128));
    } else {
        put_number(b, (uint64_t)lround(v * (double)((INT64_C(1) << (bits - 1)) - 1)), bits / 8);
    }
}

static clt_buf wav_header(int format, int bits, int rate, int channels, int64_t frames) {
    clt_buf b = {0};
    uint64_t bytes = (uint64_t)frames * (uint64_t)channels * (uint64_t)bits / 8;
    clt_buf_puts(&b, "RIFF"), put_number(&b, bytes + 36, 4), clt_buf_puts(&b, "WAVEfmt "), put_number(&b, 16, 4);
    put_number(&b, (uint64_t)format, 2), put_number(&b, (uint64_t)channels, 2), put_number(&b, (uint64_t)rate, 4);
    put_number(&b, (uint64_t)rate * (uint64_t)channels * (uint64_t)bits / 8, 4);
    put_number(&b, (uint64_t)(channels * bits / 8), 2), put_number(&b, (uint64_t)bits, 2);
    clt_buf_puts(&b, "data"), put_number(&b, bytes, 4);
    return b;
}

static double tone(double t) { return 0.5 * sin(6.283185307179586 * 440 * t); }

/* Channel c holds the tone times (c + 1): their average is known. */
static clt_buf wav_tone(int format, int bits, int rate, int channels, double seconds) {
    int64_t frames = (int64_t)(seconds * rate);
    clt_buf b = wav_header(format, bits, rate, channels, frames);
    for (int64_t i = 0; i < frames; i++)
        for (int c = 0; c < channels; c++) put_sample(&b, tone((double)i / rate) * (c + 1) / channels, format, bits);
    return b;
}

/* ---- what is read ---- */

static void test_rates_channels_and_types(void **state) {
    (void)state;
    const int rates[] = {16000, 8000, 11025, 22050, 32000, 44100, 48000, 96000, 192000};
    const int kinds[][2] = {{PCM, 16}, {PCM, 8}, {PCM, 24}, {PCM, 32}, {FLOATS, 32}};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (int channels = 1; channels <= 8; channels = channels * 2 + (channels == 1 && r % 2)) {
            const int *kind = kinds[(r + (size_t)channels) % 5];
            clt_buf b = wav_tone(kind[0], kind[1], rates[r], channels, 0.3);
            clt_sound s = decode(&b, 30);
            assert_true(s.rate == rates[r] && s.channels == channels && fabs(s.seconds - 0.3) < 1e-4);
            assert_true(llabs(s.n - 4800) <= 1);
            double gain = (channels + 1) / (2.0 * channels), slack = kind[1] == 8 ? 0.02 : 2e-4;
            for (int64_t i = 800; i < 4000; i++) /* the ends ring: the tone begins and ends suddenly */
                assert_true(fabs(s.samples[i] - gain * tone((double)i / CLT_SOUND_RATE)) < slack);
            clt_sound_free(&s);
            clt_buf_free(&b);
        }
}

/* All of the files hold the same half second of chirp.wav. */
static void test_formats(void **state) {
    (void)state;
    clt_buf wav = golden("chirp.wav");
    clt_sound whole = decode(&wav, 0);
    assert_int_equal(whole.n, 18080);
    const float *want = whole.samples + 3200;
    for (int f = 1; f < N_FILES; f++) {
        clt_buf b = golden(files[f]);
        clt_sound s = decode(&b, 0);
        double xy = 0, xx = 0, yy = 0;
        assert_true(s.n >= 7900 && s.n <= 8100 && s.channels == 1);
        for (int64_t i = 400; i < 7600; i++) {
            xy += (double)want[i] * (double)s.samples[i], xx += (double)want[i] * (double)want[i];
            yy += (double)s.samples[i] * (double)s.samples[i];
        }
        assert_true(xy / sqrt(xx * yy) > 0.95);
        if (f == 1) assert_memory_equal(s.samples, want, 8000 * sizeof(float)); /* flac loses nothing */
        clt_sound_free(&s);
        clt_buf_free(&b);
    }
    clt_sound_free(&whole);
    clt_buf_free(&wav);
}

static void test_memory_and_file_give_the_same(void **state) {
    (void)state;
    for (int f = 0; f < N_FILES; f++) {
        clt_buf b = golden(files[f]);
        clt_sound s = decode(&b, 0), t = decode(&b, 0), u;
        clt_err err;
        char path[512];
        snprintf(path, sizeof path, CLT_TEST_DIR "/golden/sounds/%s", files[f]);
        assert_int_equal(clt_sound_read(path, 0, &u, &err), CLT_OK);
        assert_true(s.n == t.n && s.n == u.n);
        assert_memory_equal(s.samples, t.samples, (size_t)s.n * sizeof(float));
        assert_memory_equal(s.samples, u.samples, (size_t)s.n * sizeof(float));
        clt_sound_free(&s), clt_sound_free(&t), clt_sound_free(&u);
        clt_buf_free(&b);
    }
}

/* Lengths that writers of streams state: unknown. */
static void test_streamed_wav(void **state) {
    (void)state;
    const uint32_t lengths[] = {0xFFFFFFFF, 0x7FFFFFFF, 0x7FFFF000};
    clt_buf b = golden("chirp.wav");
    for (int i = 0; i < 3; i++) {
        memcpy(b.data + 40, &lengths[i], 4);
        clt_sound s = decode(&b, 30);
        assert_int_equal(s.n, 18080);
        clt_sound_free(&s);
    }
    clt_buf_free(&b);
}

/* Tags before and behind the sound, and two files in one. */
static void test_tags(void **state) {
    (void)state;
    static const char id3[10 + 32] = "ID3\4\0\0\0\0\0\40TIT2\0\0\0\6\0\0\3hello";
    for (int f = 1; f < N_FILES; f++) {
        clt_buf plain = golden(files[f]), b = {0};
        if (strstr(files[f], "ogg")) {
            clt_buf_free(&plain);
            continue;
        }
        bool mp3 = strstr(files[f], "mp3") != NULL;
        clt_buf_put(&b, id3, sizeof id3);
        clt_buf_put(&b, plain.data, plain.len);
        for (int i = 0; mp3 && i < 128; i++) clt_buf_putc(&b, "TAG"[i < 3 ? i : 2]);
        clt_sound s = decode(&plain, 0), t = decode(&b, 0);
        assert_int_equal(s.n, t.n);
        assert_memory_equal(s.samples, t.samples, (size_t)s.n * sizeof(float));
        clt_sound_free(&t);
        if (mp3) {
            clt_buf_put(&b, plain.data, plain.len);
            refused(&b, "several files in one?"); /* a decoder would stop behind the first */
        }
        clt_sound_free(&s);
        clt_buf_free(&plain), clt_buf_free(&b);
    }
}

/* ---- what is remarked ---- */

static void remark_of(clt_buf b, const char *want) {
    char text[128] = "";
    clt_sound s = decode(&b, 0);
    assert_int_equal(clt_sound_remark(&s, text, sizeof text), want[0] != 0);
    assert_string_equal(text, want);
    clt_sound_free(&s);
    clt_buf_free(&b);
}

static void test_remarks(void **state) {
    (void)state;
    clt_buf clipped = wav_header(FLOATS, 32, 16000, 1, 4000), silent = wav_header(PCM, 16, 16000, 1, 4000);
    for (int i = 0; i < 4000; i++) {
        put_sample(&clipped, i % 4 ? 0.25 : 1.5, FLOATS, 32);
        put_sample(&silent, 0, PCM, 16);
    }
    remark_of(clipped, "clipped: 25 % of the samples are at full scale");
    remark_of(silent, "silent: no sample is louder than 0.0001 of full scale");
    remark_of(wav_tone(PCM, 16, 48000, 8, 0.2), "8 channels were averaged into one");
    remark_of(wav_tone(PCM, 16, 48000, 2, 0.2), "");
}

/* ---- what is refused ---- */

static void test_limits(void **state) {
    (void)state;
    clt_buf fits = wav_header(PCM, 16, 8000, 1, 240000), longer = wav_header(PCM, 16, 8000, 1, 252000);
    for (int i = 0; i < 252000; i++) put_number(&longer, 99, 2);
    for (int i = 0; i < 240000; i++) put_number(&fits, 99, 2);
    clt_sound s = decode(&fits, 30);
    assert_int_equal(s.n, 480000); /* never a sample more than the limit has */
    clt_sound_free(&s);
    refused(&longer, "lasts 31.50 s, 30.00 s at most are allowed");
    const uint32_t unknown = 0xFFFFFFFF; /* the length shows only as it is read */
    memcpy(longer.data + 40, &unknown, 4);
    refused(&longer, "30.00 s at most are allowed");
    clt_buf_free(&fits), clt_buf_free(&longer);
}

static void test_no_sound(void **state) {
    (void)state;
    const struct { const char *bytes; size_t n; const char *why; } cases[] = {
        {"", 0, "is empty, expected a wav, flac, ogg or mp3 file"}, {"<html><body>", 12, "begins with 3c 68 74 6d"},
        {"R", 1, "no sound"}, {"RIFF\x24\0\0\0AVI LIST", 16, "no sound"}, {"fLaC", 4, "damaged"}, {"OggS", 4, "cut off"},
        {"ID3\4\0\0\0\0\0\1", 10, "no frame of mp3"}, {"\xFF\xFB\x90\x64", 4, "cut off within the frame at byte 0"},
        {"\0\0\0\x20" "ftypM4A ", 12, "is an MP4 or M4A file"},
        {"\x1A\x45\xDF\xA3\1\0\0\0\0\0\0\0", 12, "is a Matroska or WebM"},
        {"RIFF\x24\0\0\0WAVE", 12, "without a chunk of sound"}, {"\xFF\xF1\x50\x80\0\0\0\0", 8, "is an AAC file"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(&(clt_buf){.data = (char *)(uintptr_t)cases[i].bytes, .len = cases[i].n}, cases[i].why);
}

static void test_numbers_that_are_no_sound(void **state) {
    (void)state;
    const double bad[] = {NAN, INFINITY, -INFINITY, 30000};
    const char *const text[] = {"sample nan at 0.500 s", "sample inf at", "sample -inf at", "sample 30000 at"};
    for (int i = 0; i < 4; i++) {
        clt_buf b = wav_tone(FLOATS, 32, 16000, 1, 1);
        float v = (float)bad[i];
        memcpy(b.data + 44 + 8000 * sizeof v, &v, sizeof v);
        refused(&b, text[i]);
        clt_buf_free(&b);
    }
}

static void test_headers_that_lie(void **state) {
    (void)state;
    const struct { size_t at; uint32_t value; int bytes; } lies[] = {
        {22, 0, 2}, {24, 0, 4}, {24, 999, 4}, {24, 0x7FFFFFFF, 4}, {34, 0, 2}, {40, 0, 4}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        clt_buf b = golden("chirp.wav");
        memcpy(b.data + lies[i].at, &lies[i].value, (size_t)lies[i].bytes);
        refused(&b, "");
        clt_buf_free(&b);
    }
}

/* No part of a file passes for the whole. */
static void test_cut_files(void **state) {
    (void)state;
    for (int f = 0; f < N_FILES; f++) {
        clt_buf b = golden(files[f]);
        for (size_t n = 1; n < b.len; n += 1 + b.len / 97) refused(&(clt_buf){.data = b.data, .len = n}, "");
        refused(&(clt_buf){.data = b.data, .len = b.len - 1}, "");
        clt_buf_free(&b);
    }
}

/* Damage is refused in one line, or changes numbers; it never crashes, grows or leaks. In ogg it is always seen. */
static void test_damaged_files(void **state) {
    (void)state;
    for (int f = 0; f < N_FILES; f++) {
        clt_buf b = golden(files[f]);
        long live = clt_mem_live();
        for (uint64_t i = 0; i < 200; i++) {
            size_t at = (size_t)clt_random_u64(7, i, (uint64_t)f) % b.len;
            clt_sound s;
            clt_err err = {0};
            b.data[at] ^= (char)(1 << i % 8);
            clt_status st = clt_sound_decode((const uint8_t *)b.data, b.len, "x", 30, &s, &err);
            b.data[at] ^= (char)(1 << i % 8);
            if (st == CLT_E_UNSUPPORTED) skip();
            if (st == CLT_OK) {
                assert_true(s.n > 0 && s.n <= 480000 && strncmp(files[f] + strlen(files[f]) - 3, "ogg", 3) != 0);
                clt_sound_free(&s);
            } else {
                assert_true(st == CLT_E_FAILED && err.text[0] && !strchr(err.text, '\n'));
            }
            assert_int_equal(clt_mem_live(), live);
        }
        clt_buf_free(&b);
    }
}

static void test_paths(void **state) {
    (void)state;
    clt_sound s;
    clt_err err;
    assert_int_equal(clt_sound_read("/nowhere/x.wav", 0, &s, &err), CLT_E_FAILED);
    assert_string_equal(err.text, "/nowhere/x.wav: No such file or directory");
    assert_int_equal(clt_sound_read("/", 0, &s, &err), CLT_E_FAILED);
    assert_string_equal(err.text, "/: not a file");
}

static void test_memory_that_fails(void **state) {
    (void)state;
    clt_buf b = wav_tone(PCM, 16, 44100, 2, 2);
    clt_sound s = decode(&b, 0);
    clt_sound_free(&s);
    long live = clt_mem_live();
    clt_status st = CLT_E_MEMORY;
    clt_err err;
    for (long n = 1; st != CLT_OK; n++) {
        clt_mem_fail_after(n);
        st = clt_sound_decode((const uint8_t *)b.data, b.len, "x", 0, &s, &err);
        clt_mem_fail_after(0);
        assert_true(st == CLT_OK || st == CLT_E_MEMORY);
        if (st == CLT_OK) clt_sound_free(&s);
        assert_int_equal(clt_mem_live(), live);
        assert_true(n < 100);
    }
    clt_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates_channels_and_types), cmocka_unit_test(test_formats),
        cmocka_unit_test(test_memory_and_file_give_the_same), cmocka_unit_test(test_streamed_wav),
        cmocka_unit_test(test_tags), cmocka_unit_test(test_remarks), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_sound), cmocka_unit_test(test_numbers_that_are_no_sound),
        cmocka_unit_test(test_headers_that_lie),
        cmocka_unit_test(test_cut_files), cmocka_unit_test(test_damaged_files), cmocka_unit_test(test_paths),
        cmocka_unit_test(test_memory_that_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
