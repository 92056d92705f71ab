/* Read-only file mappings. The bytes may change under us if somebody writes to the file: readers check before use and
 * never trust a value read twice. */
#ifndef CLT_BASE_MAP_H
#define CLT_BASE_MAP_H
#include <stdint.h>
#include "base/err.h"

typedef struct clt_map {
    const uint8_t *data; /* NULL if size is 0 */
    uint64_t size;       /* bytes */
} clt_map;

/* Fails with CLT_E_FILE: missing, a folder, not readable, not a regular file. */
clt_status clt_map_open(const char *path, clt_map *map, clt_err *err);
void clt_map_close(clt_map *map);
typedef enum clt_map_use { CLT_MAP_SEQUENTIAL, CLT_MAP_RANDOM, CLT_MAP_WILLNEED, CLT_MAP_DONTNEED } clt_map_use;
void clt_map_advise(const clt_map *map, uint64_t offset, uint64_t bytes, clt_map_use use); /* rounded inwards for DONTNEED */

#endif
