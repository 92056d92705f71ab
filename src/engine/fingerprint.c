/* Tells models apart: an open file in, 128 bits out. Covers configuration, every tensor's name, type and shape, and samples
 * of the weights, so that another training of the same shape differs. Not a digest of the file: reading all of it would take
 * longer than loading a session. */
#include <string.h>
#include "base/hash.h"
#include "engine/impl.h"

enum { SAMPLED_TENSORS = 24, SAMPLE_BYTES = 256 };

typedef struct mixer {
    uint64_t a, b;
} mixer;

static void mix(mixer *m, const void *data, size_t n) {
    m->a = clt_hash64(data, n, m->a);
    m->b = clt_hash64(data, n, m->b);
}

static void mix_int(mixer *m, int64_t v) {
    mix(m, &v, sizeof v);
}

static void mix_config(mixer *m, const clt_model *model) {
    const clt_config *c = &model->config;
    mix(m, model->architecture, strlen(model->architecture));
    mix_int(m, c->layers);
    mix_int(m, c->width);
    mix_int(m, c->vocab);
    mix_int(m, c->window);
    mix(m, &c->rope_theta_full, sizeof c->rope_theta_full);
    mix(m, &c->rope_theta_sliding, sizeof c->rope_theta_sliding);
    mix_int(m, c->rope_pairs_full);
    mix(m, &c->rope_divisor_full, sizeof c->rope_divisor_full);
    mix(m, &c->attn_scale, sizeof c->attn_scale);
    mix(m, &c->rms_eps, sizeof c->rms_eps);
}

static void mix_tensor(mixer *m, const clt_tensor *t) {
    mix(m, t->name, strlen(t->name));
    mix_int(m, (int64_t)t->type);
    mix(m, t->dims, sizeof t->dims);
}

/* Read past the mapping: a page fault would bring in far more than the sample. */
static void mix_sample(mixer *m, const clt_file *f, const clt_tensor *t) {
    uint8_t sample[SAMPLE_BYTES] = {0};
    uint64_t bytes = t->bytes < SAMPLE_BYTES ? t->bytes : SAMPLE_BYTES;
    clt_file_read(f, t, (t->bytes - bytes) / 2, sample, (size_t)bytes); /* what cannot be read counts as zeros */
    mix(m, sample, (size_t)bytes);
}

void clt_engine_fingerprint(culet_engine *e) {
    mixer m = {.a = 0x63756c6574, .b = 0x73657373696f6e};
    mix_config(&m, &e->model);
    size_t n = clt_file_tensors(e->file), step = n / SAMPLED_TENSORS + 1;
    for (size_t i = 0; i < n; i++) {
        const clt_tensor *t = clt_file_tensor(e->file, i);
        mix_tensor(&m, t);
        if (i % step == 0 || i + 1 == n) mix_sample(&m, e->file, t);
    }
    e->fingerprint[0] = m.a;
    e->fingerprint[1] = m.b;
}
