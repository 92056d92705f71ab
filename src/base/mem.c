/* Memory: single blocks and system pages, counted so that tests can fail the n-th allocation and prove that a loop
 * allocates nothing. The only file that calls malloc or maps anonymous pages. Arenas stand on it in arena.c. */
#include "base/mem.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static atomic_long allocations, live, fail_at; /* fail_at: the count from which every allocation fails; 0 = never */

/* Counts one attempt; false if a test wants it to fail. */
static int may_allocate(void) {
    long n = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    long limit = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return limit == 0 || n < limit;
}

static void *counted(void *p) {
    if (p) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return p;
}

void clt_mem_fail_after(long n) {
    atomic_store(&fail_at, n > 0 ? atomic_load(&allocations) + n : 0);
}

long clt_mem_live(void) {
    return atomic_load(&live);
}

long clt_mem_count(void) {
    return atomic_load(&allocations);
}

void *clt_alloc(size_t bytes) {
    return may_allocate() ? counted(malloc(bytes ? bytes : 1)) : NULL;
}

void *clt_calloc(size_t count, size_t size) {
    if (!may_allocate() || (size && count > SIZE_MAX / size)) return NULL;
    return counted(count && size ? calloc(count, size) : calloc(1, 1));
}

void *clt_realloc(void *p, size_t bytes) {
    if (!may_allocate()) return NULL;
    void *moved = realloc(p, bytes ? bytes : 1);
    return p ? moved : counted(moved);
}

char *clt_strndup(const char *s, size_t n) {
    size_t len = strnlen(s, n);
    char *copy = clt_alloc(len + 1);
    if (!copy) return NULL;
    memcpy(copy, s, len);
    copy[len] = 0;
    return copy;
}

char *clt_strdup(const char *s) {
    return clt_strndup(s, strlen(s));
}

void clt_free(void *p) {
    if (!p) return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    free(p);
}

/* Blocks of at least one huge page begin on a huge-page boundary, without which the system cannot back their first bytes. */
enum { HUGE_PAGE = 2 << 20 };

static void *map_aligned(size_t bytes) {
    size_t slack = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    if (bytes > SIZE_MAX - slack) return NULL;
    char *p = mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    if (slack == 0) return p;
    size_t before = (HUGE_PAGE - ((uintptr_t)p & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
    if (before) munmap(p, before);
    if (slack - before) munmap(p + before + bytes, slack - before);
    madvise(p + before, bytes, MADV_HUGEPAGE); /* refused by kernels without huge pages: then small ones serve */
    return p + before;
}

static size_t whole_pages(size_t bytes) {
    return bytes == 0 ? 4096 : (bytes + 4095) & ~(size_t)4095;
}

void *clt_pages_alloc(size_t bytes) {
    if (!may_allocate() || bytes > SIZE_MAX - 4095) return NULL;
    return counted(map_aligned(whole_pages(bytes)));
}

void clt_pages_free(void *p, size_t bytes) {
    if (!p) return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    munmap(p, whole_pages(bytes));
}
