/* Read-only file mappings, and reads of the same file past them. The bytes may change under us if somebody writes to the
 * file: readers check before use and never trust a value read twice. */
#ifndef CLT_BASE_MAP_H
#define CLT_BASE_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

typedef struct clt_map {
    const uint8_t *data; /* NULL if size is 0 */
    uint64_t size;       /* bytes */
    int fd;              /* of the open file; -1: none of its own. Means nothing while data is NULL */
} clt_map;

/* Fails with CLT_E_FILE: missing, a folder, not readable, not a regular file. */
clt_status clt_map_open(const char *path, clt_map *map, clt_err *err);
/* Maps [offset, offset + bytes) of a file that stays open beside it; false if the system refuses. A part of at least a
 * huge page whose offset is a multiple of CLT_MAP_HUGE can be backed by huge pages of the page cache, where the system
 * has them. The map has no descriptor of its own. */
enum { CLT_MAP_HUGE = 2 << 20 };
bool clt_map_part(int fd, uint64_t offset, uint64_t bytes, clt_map *map);
/* Brings the first `bytes` of a part into memory and tells whether huge pages hold nearly all of them. */
bool clt_map_is_huge(const clt_map *part, uint64_t bytes);
void clt_map_close(clt_map *map);
/* Reads without mapping: the pages do not count as resident. False if the file has become shorter, or the disk fails. */
bool clt_map_read(const clt_map *map, uint64_t offset, void *dst, size_t bytes);
typedef enum clt_map_use { CLT_MAP_SEQUENTIAL, CLT_MAP_RANDOM, CLT_MAP_WILLNEED, CLT_MAP_DONTNEED } clt_map_use;
void clt_map_advise(const clt_map *map, uint64_t offset, uint64_t bytes, clt_map_use use); /* of all pages touched */

#endif
