/* Any rate -> 16 kHz, through soxr: 20 bits, linear phase, one thread. At 20 bits soxr computes in single precision with the
 * vector instructions that every x86-64 or AArch64 has, so that no CPU feature changes a bit. */
#include "base/mem.h"
#include "media/sound_impl.h"

#ifdef CLT_HAVE_SOXR
#include <soxr.h>

struct clt_resampler { soxr_t soxr; };

clt_status clt_resampler_create(int rate, clt_resampler **out, clt_err *err) {
    soxr_error_t why = NULL;
    soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
    clt_resampler *r = *out = clt_calloc(1, sizeof *r);
    if (!r) return clt_fail_memory(err, "the change of rate", sizeof *r);
    r->soxr = soxr_create(rate, CLT_SOUND_RATE, 1, &why, &io, &quality, &runtime);
    if (r->soxr && !why) return CLT_OK;
    clt_resampler_free(r);
    *out = NULL;
    return clt_fail(err, CLT_E_FAILED, "sound of %d Hz cannot be brought to %d Hz: %s", rate, CLT_SOUND_RATE,
                    soxr_strerror(why));
}

void clt_resampler_free(clt_resampler *r) {
    if (!r) return;
    soxr_delete(r->soxr);
    clt_free(r);
}

bool clt_resampler_run(clt_resampler *r, const float *in, size_t *n, float *out, size_t *room) {
    size_t taken = 0, given = 0;
    soxr_error_t why = soxr_process(r->soxr, in, in ? *n : 0, &taken, out, *room, &given);
    *n = taken, *room = given;
    return !why;
}
#else
clt_status clt_resampler_create(int rate, clt_resampler **out, clt_err *err) {
    (void)rate;
    *out = NULL;
    return clt_fail_not_built(err, "sound of other rates than 16 kHz", "libsoxr-dev");
}

void clt_resampler_free(clt_resampler *r) { (void)r; }

bool clt_resampler_run(clt_resampler *r, const float *in, size_t *n, float *out, size_t *room) {
    (void)r, (void)in, (void)n, (void)out, (void)room;
    return false;
}
#endif
