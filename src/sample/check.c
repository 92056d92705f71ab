/* Checks sampling parameters: what a person or a request asks for in, a refusal that names the parameter out. */
#include <math.h>
#include "sample/sample.h"

static clt_status refuse(clt_err *err, const char *name, double value, const char *wanted) {
    return clt_fail(err, CLT_E_USAGE, "%s: %g is not %s", name, value, wanted);
}

static clt_status check_bias(const clt_sample_params *p, int32_t vocab, clt_err *err) {
    for (size_t i = 0; i < p->n_bias; i++) {
        if (p->bias_ids[i] < 0 || p->bias_ids[i] >= vocab)
            return clt_fail(err, CLT_E_USAGE, "logit_bias: id %d is not in the vocabulary of %d ids", p->bias_ids[i], vocab);
        if (isnan(p->bias_values[i]) || p->bias_values[i] == INFINITY)
            return clt_fail(err, CLT_E_USAGE, "logit_bias: the value %g of id %d is neither a finite number nor -inf",
                            (double)p->bias_values[i], p->bias_ids[i]);
    }
    return CLT_OK;
}

clt_status clt_sample_check(const clt_sample_params *p, int32_t vocab, clt_err *err) {
    if (!(p->temperature >= 0 && isfinite(p->temperature)))
        return refuse(err, "temperature", (double)p->temperature, "a number of at least 0");
    if (p->top_k < 0) return refuse(err, "top_k", p->top_k, "a number of at least 0 (0 = off)");
    if (!(p->top_p > 0 && p->top_p <= 1)) return refuse(err, "top_p", (double)p->top_p, "above 0 and at most 1 (1 = off)");
    if (!(p->min_p >= 0 && p->min_p <= 1)) return refuse(err, "min_p", (double)p->min_p, "between 0 and 1 (0 = off)");
    if (!(p->repeat_penalty > 0 && isfinite(p->repeat_penalty)))
        return refuse(err, "repeat_penalty", (double)p->repeat_penalty, "a number above 0 (1 = off)");
    if (p->repeat_last_n < -1)
        return refuse(err, "repeat_last_n", p->repeat_last_n, "at least -1 (-1 = the whole context, 0 = off)");
    if (!isfinite(p->presence_penalty))
        return refuse(err, "presence_penalty", (double)p->presence_penalty, "a finite number");
    if (!isfinite(p->frequency_penalty))
        return refuse(err, "frequency_penalty", (double)p->frequency_penalty, "a finite number");
    return check_bias(p, vocab, err);
}
