/* Threads, placement and priority: what a caller asks of an engine in, the parameters of its pool out. Values that make no
 * sense are refused here, before any file is opened; what the system refuses later is a warning. */
#include "engine/impl.h"

enum { MAX_THREADS = 1024 };

static clt_status check_range(const char *what, int value, int least, int most, clt_err *err) {
    if (value >= least && value <= most) return CLT_OK;
    return clt_fail(err, CLT_E_USAGE, "%s: %d is not between %d and %d", what, value, least, most);
}

static clt_status read_cpus(const culet_engine_params *p, clt_cpus *out, clt_err *err) {
    clt_cores_info here;
    if (p->cpu_mask && clt_cpus_add_mask(out, "--cpu-mask", p->cpu_mask, err) != CLT_OK) return err->code;
    if (p->cpu_range && clt_cpus_add_range(out, "--cpu-range", p->cpu_range, err) != CLT_OK) return err->code;
    if (clt_cpus_count(out) == 0) return CLT_OK; /* none given, or a mask of zeros: no placement, as in llama.cpp */
    clt_cores_look(out, &here);
    if (here.logical == 0) {
        const char *flag = p->cpu_mask ? "--cpu-mask" : "--cpu-range", *text = p->cpu_mask ? p->cpu_mask : p->cpu_range;
        clt_cores_look(NULL, &here);
        clt_fail(err, CLT_E_USAGE, "%s: '%s' names none of the %d CPUs that this process may use", flag, text, here.logical);
        return clt_hint(err, "culet doctor lists them");
    }
    *out = here.allowed;
    return CLT_OK;
}

clt_status clt_engine_place(const culet_engine_params *p, culet_engine *e, clt_err *err) {
    static const int nice_of[] = {5, 0, -5, -10, -20};
    clt_pool_params *out = &e->placement;
    clt_status status = check_range("threads", p->threads, 0, MAX_THREADS, err);
    if (status == CLT_OK) status = check_range("threads for batches", p->threads_batch, 0, MAX_THREADS, err);
    if (status == CLT_OK) status = check_range("priority", p->priority, -1, 3, err);
    if (status == CLT_OK) status = check_range("poll", p->poll, -1, 100, err);
    if (status == CLT_OK) status = read_cpus(p, &out->cpus, err);
    if (status != CLT_OK) return status;
    clt_cores_info here;
    clt_cores_look(clt_cpus_count(&out->cpus) ? &out->cpus : NULL, &here);
    e->info.threads = p->threads ? p->threads : here.threads;
    e->info.threads_batch = p->threads_batch ? p->threads_batch : e->info.threads;
    out->threads = e->info.threads > e->info.threads_batch ? e->info.threads : e->info.threads_batch;
    out->poll = p->poll == 0 ? CLT_POLL_USUAL : p->poll < 0 ? 0 : p->poll;
    out->strict = p->cpu_strict;
    out->nice = nice_of[p->priority + 1];
    return CLT_OK;
}
