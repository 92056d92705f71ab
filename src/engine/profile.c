/* The public face of the forward pass's profile: switched per engine, because its passes share one pool. */
#include "engine/impl.h"

enum { MAX_STAGES = 128 };

culet_status culet_engine_profile(culet_engine *e, bool on, culet_error *err) {
    clt_err inner;
    clt_status status = CLT_OK;
    if (!e->net) status = clt_fail(&inner, CLT_E_USAGE, "profile: the model was not opened to be run");
    else if (on && !e->profile) status = clt_profile_create(clt_pool_threads(e->pool), &e->profile, &inner);
    else if (on) clt_profile_clear(e->profile);
    if (status == CLT_OK) e->profiling = on;
    return clt_report(status, &inner, err);
}

size_t culet_engine_stages(const culet_engine *e, culet_stage *out, size_t max) {
    clt_profile_entry entry[MAX_STAGES];
    if (!e->profile) return 0;
    size_t n = clt_profile_read(e->profile, entry, MAX_STAGES);
    for (size_t i = 0; i < n && i < max; i++)
        out[i] = (culet_stage){entry[i].stage, entry[i].type, entry[i].wall_ms, entry[i].busy_ms,
                               entry[i].calls, entry[i].macs, entry[i].bytes};
    return n;
}
