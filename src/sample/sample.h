/* logits -> a token: suppression, bias, penalties, truncation, a keyed draw. Knows no model and no text.
 *
 * Deterministic: the same logits, history, parameters, seed and position give the same token on every machine. */
#ifndef CLT_SAMPLE_SAMPLE_H
#define CLT_SAMPLE_SAMPLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

typedef struct clt_sample_params {
    float temperature;        /* <= 0: greedy */
    int top_k;                /* 0 = off */
    float top_p, min_p;       /* 1 and 0 = off */
    float repeat_penalty;     /* 1 = off */
    int repeat_last_n;        /* -1 = all of history, 0 = off */
    float presence_penalty, frequency_penalty;
    uint64_t seed;
    const int32_t *bias_ids; const float *bias_values; size_t n_bias;
    const int32_t *suppressed; size_t n_suppressed; /* never win */
    const uint64_t *allowed;  /* [(V + 63) / 64]: only ids whose bit is set can win; NULL = all */
} clt_sample_params;

/* Refuses values that make no sense (NaN, temperature < 0, top_p outside (0,1], …): CLT_E_USAGE naming the parameter. */
clt_status clt_sample_check(const clt_sample_params *p, int32_t vocab, clt_err *err);

typedef struct clt_sampler clt_sampler; /* working memory for V logits; one caller at a time */
clt_status clt_sampler_create(int32_t vocab, clt_sampler **out, clt_err *err);
void clt_sampler_free(clt_sampler *s);
/* history: the tokens before this one (for penalties). position: index in the timeline of the token to be drawn; it keys the
 * draw together with the seed. Where `allowed` and what is suppressed leave nothing, 0 is returned, allowed or not. */
int32_t clt_sampler_pick(clt_sampler *s, const clt_sample_params *p, const float *logits, const int32_t *history,
                         size_t n_history, uint64_t position);

#endif
