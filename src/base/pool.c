/* A persistent thread pool: a function and a number of tasks in, all tasks done out. One counter hands out the tasks.
 *
 * A job is published in one 64-bit word: the job's number in the upper half, the next task in the lower half. Taking a task
 * is a compare-and-swap of that word, so a worker that woke late can never take a task of a later job under the fields of an
 * earlier one. The caller waits until every taken task is finished, so the job's fields are stable while any task runs.
 *
 * Waiting: workers spin for about 50 µs after a job, because decode steps follow each other closely, then sleep on a futex.
 * Where fewer cores are free than there are threads, spinning steals the time of the thread that is being waited for;
 * then both sides yield almost at once. */
#include "base/pool.h"
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"

enum { MAX_THREADS = 1024, CACHE_LINE = 128, SPIN_US = 50, YIELD_MS = 2 };

typedef struct worker {
    pthread_t id;
    clt_pool *pool;
    int thread;
} worker;

struct clt_pool {
    int n_threads;
    double spin_ms;
    worker *workers; /* n_threads - 1 */
    _Alignas(CACHE_LINE) _Atomic uint64_t ticket; /* job number << 32 | next task */
    _Alignas(CACHE_LINE) atomic_int left;         /* tasks of the job that are not finished */
    atomic_uint caller_sleeps;
    _Alignas(CACHE_LINE) atomic_uint signal;      /* futex word: changes with every job and at the end */
    atomic_uint sleepers;
    atomic_bool stopping;
    /* The job. Atomic only so that a late worker may read them while the next job is written: what it read is used only
     * after its compare-and-swap has proved that the job was still the same. */
    _Atomic(clt_task_fn) fn;
    _Atomic(void *) ctx;
    atomic_int n_tasks;
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(atomic_uint *word, unsigned seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Takes and runs tasks until the current job has none left. */
static void work(clt_pool *p, int thread) {
    uint64_t t = atomic_load_explicit(&p->ticket, memory_order_acquire);
    for (;;) {
        clt_task_fn fn = atomic_load_explicit(&p->fn, memory_order_relaxed);
        void *ctx = atomic_load_explicit(&p->ctx, memory_order_relaxed);
        int n_tasks = atomic_load_explicit(&p->n_tasks, memory_order_relaxed);
        uint32_t task = (uint32_t)t;
        if (task >= (uint32_t)n_tasks) {
            return;
        }
        if (!atomic_compare_exchange_weak_explicit(&p->ticket, &t, t + 1, memory_order_acq_rel, memory_order_acquire)) continue;
        fn(ctx, (int)task, thread);
        if (atomic_fetch_sub_explicit(&p->left, 1, memory_order_acq_rel) == 1 && atomic_load(&p->caller_sleeps)) {
            futex_wake(&p->caller_sleeps);
        }
        t = atomic_load_explicit(&p->ticket, memory_order_acquire);
    }
}
