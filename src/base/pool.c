/* A persistent thread pool: a function and a number of tasks in, all tasks done out. Knows nothing of what the tasks do.
 *
 * One 64-bit ticket publishes a job: its number above, the count of tasks that nobody has taken below. A task is taken by
 * a compare-and-swap of the ticket. Its success proves that the job is still unfinished, hence that the job's fields, read
 * just before, were those of this job: the caller writes the next job only after every task of this one has been done.
 *
 * Waiting goes in three stages: spin for a moment (decode steps follow each other closely), yield, sleep on a futex. Where
 * other work competes for the cores, endless spinning would steal the time of the very thread that is waited for; so there
 * is no spinning at all where threads outnumber the processors that affinity or a control group's quota leave. */
#include "base/pool.h"
#include <limits.h>
#include <linux/futex.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"

/* For each step of `poll`. The usual 50 steps outlast the sampling of a token; an idle program sleeps 1 ms later. */
#define SPIN_MS 0.001
#define AWAKE_MS 0.02
#define AWAKE_CROWDED_MS 0.005
enum { MAX_THREADS = 1024, CACHE_LINE = 128 };

typedef struct worker {
    clt_pool *pool;
    pthread_t id;
    int thread;
} worker;

struct clt_pool {
    int n_threads, n_started;
    double spin_ms, awake_ms;                     /* spinning, and spinning and yielding together, before a thread sleeps */
    clt_pool_params params;
    pid_t creator;                                /* the thread whose placement is to be taken back */
    cpu_set_t creator_cpus;
    bool placed;
    char refusal[160];
    worker *workers;                              /* n_threads - 1 */
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket; /* job << 32 | tasks not taken */
    _Atomic(clt_task_fn) fn;                      /* the job: atomic because a late worker may read while the next one */
    _Atomic(void *) ctx;                          /* is being written; it then fails to take a task and drops them */
    atomic_int n_tasks;
    _Alignas(CACHE_LINE) _Atomic uint32_t left;   /* tasks not finished; the caller sleeps on it */
    atomic_bool caller_sleeps;
    _Alignas(CACHE_LINE) _Atomic uint32_t signal; /* changes with every job; workers sleep on it */
    atomic_int sleepers;
    atomic_bool stopping;
    _Alignas(CACHE_LINE) _Atomic uint32_t limit;  /* threads that take part; the others sleep on it */
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void pause_cpu(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits without sleeping until *word differs from `from` (is_not) or equals 0. False if it took too long. */
static bool wait_awake(const clt_pool *p, _Atomic uint32_t *word, uint32_t from, bool is_not) {
    double start = -1, waited = 0;
    do {
        for (int i = 0; i < 32; i++) {
            uint32_t now = atomic_load_explicit(word, memory_order_acquire);
            if (is_not ? now != from : now == 0) return true;
            if (waited < p->spin_ms) pause_cpu();
            else if (p->awake_ms > 0) sched_yield();
        }
        double time_ms = clt_now_ms();
        if (start < 0) start = time_ms;
        waited = time_ms - start;
    } while (waited < p->awake_ms);
    return false;
}

/* Takes and runs tasks until the current job has none left to take. */
static void work(clt_pool *p, int thread) {
    uint64_t ticket = atomic_load_explicit(&p->ticket, memory_order_acquire);
    while ((uint32_t)ticket != 0) {
        clt_task_fn fn = atomic_load_explicit(&p->fn, memory_order_relaxed);
        void *ctx = atomic_load_explicit(&p->ctx, memory_order_relaxed);
        int task = atomic_load_explicit(&p->n_tasks, memory_order_relaxed) - (int)(uint32_t)ticket;
        if (!atomic_compare_exchange_weak_explicit(&p->ticket, &ticket, ticket - 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        fn(ctx, task, thread);
        if (atomic_fetch_sub(&p->left, 1) == 1 && atomic_load(&p->caller_sleeps)) futex_wake(&p->left, 1);
        ticket = atomic_load_explicit(&p->ticket, memory_order_acquire);
    }
}

/* The n-th CPU of the set, counted around. */
static int nth_cpu(const clt_cpus *set, int n) {
    int count = clt_cpus_count(set), cpu = 0;
    for (n = count ? n % count : 0; cpu < CLT_MAX_CPUS; cpu++)
        if (clt_cpus_has(set, cpu) && n-- == 0) break;
    return cpu;
}

/* Puts the calling thread where the parameters want it. */
static bool place_thread(const clt_pool *p, int thread) {
    const clt_cpus *set = &p->params.cpus;
    cpu_set_t where;
    if (clt_cpus_count(set) == 0) return true;
    CPU_ZERO(&where);
    if (p->params.strict) CPU_SET((size_t)nth_cpu(set, thread), &where);
    else
        for (int cpu = 0; cpu < CLT_MAX_CPUS; cpu++)
            if (clt_cpus_has(set, cpu)) CPU_SET((size_t)cpu, &where);
    return sched_setaffinity(0, sizeof where, &where) == 0;
}

static void *worker_main(void *arg) {
    worker *w = arg;
    clt_pool *p = w->pool;
    uint32_t seen = 0, limit;
    place_thread(p, w->thread);
    for (;;) {
        while (!wait_awake(p, &p->signal, seen, true)) {
            atomic_fetch_add(&p->sleepers, 1);
            futex_wait(&p->signal, seen);
            atomic_fetch_sub(&p->sleepers, 1);
        }
        /* Looked at after the wait: a thread that has been idle while the limit sank must not take part. */
        while ((limit = atomic_load(&p->limit)) <= (uint32_t)w->thread) futex_wait(&p->limit, limit);
        seen = atomic_load(&p->signal);
        if (atomic_load(&p->stopping)) return NULL;
        work(p, w->thread);
    }
}

static void wake_workers(clt_pool *p, int count) {
    atomic_fetch_add(&p->signal, 1);
    if (atomic_load(&p->sleepers) > 0) futex_wake(&p->signal, count);
}

void clt_pool_limit(clt_pool *p, int n_threads) {
    uint32_t limit = (uint32_t)(n_threads < 1 ? 1 : n_threads > p->n_threads ? p->n_threads : n_threads);
    if (atomic_load_explicit(&p->limit, memory_order_relaxed) == limit) return;
    atomic_store(&p->limit, limit);
    futex_wake(&p->limit, INT_MAX);
}

void clt_pool_run(clt_pool *p, clt_task_fn fn, void *ctx, int n_tasks) {
    if (atomic_load_explicit(&p->limit, memory_order_relaxed) == 1 || n_tasks <= 1) {
        for (int task = 0; task < n_tasks; task++) fn(ctx, task, 0);
        return;
    }
    uint64_t job = (atomic_load_explicit(&p->ticket, memory_order_relaxed) >> 32) + 1;
    atomic_store_explicit(&p->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&p->ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&p->n_tasks, n_tasks, memory_order_relaxed);
    atomic_store_explicit(&p->left, (uint32_t)n_tasks, memory_order_relaxed);
    atomic_store_explicit(&p->ticket, job << 32 | (uint32_t)n_tasks, memory_order_release);
    wake_workers(p, n_tasks - 1);
    work(p, 0);
    if (wait_awake(p, &p->left, 0, false)) return;
    atomic_store(&p->caller_sleeps, true);
    for (uint32_t left; (left = atomic_load(&p->left)) != 0;) futex_wait(&p->left, left);
    atomic_store(&p->caller_sleeps, false);
}

/* Spinning helps only threads that can all run at once. */
static void choose_patience(clt_pool *p, const clt_cores_info *here) {
    bool crowded = p->n_threads > here->logical || (here->quota > 0 && p->n_threads > here->quota);
    p->spin_ms = crowded ? 0 : SPIN_MS * p->params.poll;
    p->awake_ms = (crowded ? AWAKE_CROWDED_MS : AWAKE_MS) * p->params.poll;
}

/* Placement and priority of the calling thread; the workers inherit the priority. */
static void place_caller(clt_pool *p, const clt_cores_info *here) {
    if (p->params.strict && clt_cpus_count(&p->params.cpus) == 0) p->params.cpus = here->allowed;
    p->creator = gettid();
    if (clt_cpus_count(&p->params.cpus) > 0 && sched_getaffinity(0, sizeof p->creator_cpus, &p->creator_cpus) == 0) {
        p->placed = place_thread(p, 0);
        if (!p->placed) snprintf(p->refusal, sizeof p->refusal, "the system refuses the CPU affinity: %s", strerror(errno));
    }
    if (p->params.nice && setpriority(PRIO_PROCESS, 0, p->params.nice) != 0)
        snprintf(p->refusal, sizeof p->refusal, "the system refuses the priority (nice %d): %s", p->params.nice,
                 strerror(errno));
}

static clt_status start_workers(clt_pool *p, clt_err *err) {
    sigset_t all, old;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) return clt_fail_memory(err, "thread pool", sizeof attr);
    pthread_attr_setstacksize(&attr, CLT_POOL_STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the caller's business: workers inherit a full mask */
    clt_status status = CLT_OK;
    for (int i = 0; i < p->n_threads - 1; i++) {
        worker *w = &p->workers[i];
        *w = (worker){.pool = p, .thread = i + 1};
        int failed = pthread_create(&w->id, &attr, worker_main, w);
        if (failed) {
            status = clt_fail(err, CLT_E_FAILED, "threads: cannot start thread %d of %d: %s", i + 2, p->n_threads,
                              strerror(failed));
            break;
        }
        p->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return status;
}

clt_status clt_pool_create_with(const clt_pool_params *params, clt_pool **out, clt_err *err) {
    clt_cores_info here;
    *out = NULL;
    if (params->threads < 1 || params->threads > MAX_THREADS)
        return clt_fail(err, CLT_E_USAGE, "threads: %d is not between 1 and %d", params->threads, MAX_THREADS);
    if (params->poll < 0 || params->poll > 100)
        return clt_fail(err, CLT_E_USAGE, "poll: %d is not between 0 and 100", params->poll);
    clt_pool *p = clt_pages_alloc(sizeof *p); /* pages, because a block is not aligned to a cache line */
    if (!p) return clt_fail_memory(err, "thread pool", sizeof *p);
    p->params = *params;
    p->n_threads = params->threads;
    atomic_store(&p->limit, (uint32_t)params->threads);
    clt_cores_look(clt_cpus_count(&params->cpus) ? &params->cpus : NULL, &here);
    choose_patience(p, &here);
    place_caller(p, &here);
    p->workers = clt_calloc((size_t)p->n_threads, sizeof *p->workers);
    clt_status status = p->workers ? start_workers(p, err) : clt_fail_memory(err, "thread pool", sizeof(worker));
    if (status != CLT_OK) clt_pool_free(p);
    else *out = p;
    return status;
}

clt_status clt_pool_create(int n_threads, clt_pool **out, clt_err *err) {
    return clt_pool_create_with(&(clt_pool_params){.threads = n_threads, .poll = CLT_POLL_USUAL}, out, err);
}

const char *clt_pool_refusal(const clt_pool *p) {
    return p->refusal[0] ? p->refusal : NULL;
}

int clt_pool_threads(const clt_pool *p) {
    return p->n_threads;
}

void clt_pool_free(clt_pool *p) {
    if (!p) return;
    atomic_store(&p->stopping, true);
    clt_pool_limit(p, p->n_threads);
    wake_workers(p, INT_MAX);
    for (int i = 0; i < p->n_started; i++) pthread_join(p->workers[i].id, NULL);
    if (p->placed && p->creator == gettid()) sched_setaffinity(0, sizeof p->creator_cpus, &p->creator_cpus);
    clt_free(p->workers);
    clt_pages_free(p, sizeof *p);
}
