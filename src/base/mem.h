/* Memory: the only file of the project that calls malloc, plus arenas.
 *
 * Three lifetimes: the map (weights, see map.h), the arena (an engine's or a session's memory, freed whole) and single
 * blocks (strings, growing buffers). The loop that produces tokens allocates nothing. All functions are thread-safe
 * except those of one arena used by two threads at once. */
#ifndef CLT_BASE_MEM_H
#define CLT_BASE_MEM_H
#include <stddef.h>
#include <stdint.h>

/* Like malloc, calloc, realloc, free, strdup; NULL on failure, also when count*size overflows. clt_free(NULL) is fine. */
void *clt_alloc(size_t bytes);
void *clt_calloc(size_t count, size_t size);
void *clt_realloc(void *p, size_t bytes);
char *clt_strdup(const char *s);
char *clt_strndup(const char *s, size_t n);
void clt_free(void *p);

/* Large page-aligned zeroed memory straight from the system, in huge pages where the system grants them. NULL on failure. */
void *clt_pages_alloc(size_t bytes);
void clt_pages_free(void *p, size_t bytes);

/* Tests only: let the n-th allocation from now (1 = next) and all after it fail, or 0 for never; count of live blocks
 * (pages included). The count is exact when no other thread allocates. */
void clt_mem_fail_after(long n);
long clt_mem_live(void);
long clt_mem_count(void); /* allocations so far; two equal readings prove that nothing was allocated between */

/* An arena hands out zeroed memory that lives until clt_arena_free. Blocks of its own of at least `chunk_bytes`. */
typedef struct clt_arena clt_arena;
clt_arena *clt_arena_create(size_t chunk_bytes); /* NULL on failure */
void *clt_arena_alloc(clt_arena *a, size_t bytes, size_t align /* power of two, <= 4096 */);
char *clt_arena_strndup(clt_arena *a, const char *s, size_t n);
size_t clt_arena_bytes(const clt_arena *a); /* bytes held from the system */
void clt_arena_free(clt_arena *a);
#define CLT_ARENA_NEW(a, T, n) \
    ((T *)((size_t)(n) > SIZE_MAX / sizeof(T) ? NULL : clt_arena_alloc((a), (size_t)(n) * sizeof(T), _Alignof(T))))

#endif
