/* Fuzzes the decoding of sound: arbitrary bytes either are refused in one line or give samples that are numbers, no more
 * than the limit allows, and features of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "media/sound.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_sound s;
    clt_err err;
    char text[128] = "";
    long live = clt_mem_live();
    if (clt_sound_decode(data, size, "x", 2, &s, &err)) {
        if (s.samples || !err.text[0] || strpbrk(err.text, "\r\n\t\x1b")) abort();
    } else {
        if (s.n < 1 || s.n > 2 * CLT_SOUND_RATE || s.channels < 1 || s.rate < 1) abort();
        int64_t numbers = clt_mel_frames(s.n) * CLT_MEL_BANDS;
        float *mel = clt_alloc((size_t)(numbers + 1) * sizeof *mel);
        clt_mel_features(s.samples, s.n, mel, &err);
        for (int64_t i = 0; i < s.n; i++)
            if (!isfinite(s.samples[i])) abort();
        for (int64_t i = 0; i < numbers; i++)
            if (!isfinite(mel[i])) abort();
        clt_sound_remark(&s, text, sizeof text);
        clt_free(mel);
        clt_sound_free(&s);
    }
    if (clt_mem_live() != live) abort();
    return 0;
}
