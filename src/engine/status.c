/* Inner statuses and errors -> the public ones. */
#include <string.h>
#include "base/mem.h"
#include "engine/impl.h"

static const struct {
    clt_status inner;
    culet_status outer;
} pairs[] = {
    {CLT_OK, CULET_OK}, {CLT_E_FAILED, CULET_FAILED}, {CLT_E_USAGE, CULET_USAGE}, {CLT_E_CONTEXT, CULET_CONTEXT},
    {CLT_E_REQUEST, CULET_REQUEST}, {CLT_E_FILE, CULET_FILE}, {CLT_E_MEMORY, CULET_MEMORY}, {CLT_E_NETWORK, CULET_NETWORK},
    {CLT_E_UNSUPPORTED, CULET_UNSUPPORTED}, {CLT_E_CANCELLED, CULET_CANCELLED},
};
enum { N_PAIRS = sizeof pairs / sizeof *pairs };

static culet_status outer_of(clt_status inner) {
    for (int i = 0; i < N_PAIRS; i++)
        if (pairs[i].inner == inner) return pairs[i].outer;
    return CULET_FAILED;
}

static clt_status inner_of(culet_status outer) {
    for (int i = 0; i < N_PAIRS; i++)
        if (pairs[i].outer == outer) return pairs[i].inner;
    return CLT_E_FAILED;
}

culet_status clt_report(clt_status status, const clt_err *inner, culet_error *out) {
    _Static_assert(sizeof out->text == sizeof inner->text && sizeof out->hint == sizeof inner->hint, "a text fits");
    out->status = outer_of(status);
    if (status == CLT_OK) {
        out->text[0] = 0;
        out->hint[0] = 0;
    } else {
        memcpy(out->text, inner->text, strlen(inner->text) + 1);
        memcpy(out->hint, inner->hint, strlen(inner->hint) + 1);
    }
    return out->status;
}

int culet_status_exit(culet_status s) {
    return clt_status_exit(inner_of(s));
}

int culet_status_http(culet_status s) {
    return clt_status_http(inner_of(s));
}

void culet_free(void *p) {
    clt_free(p);
}
