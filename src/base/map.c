/* Read-only file mappings: a path in, the file's bytes out. Refuses what is not a regular file; parses nothing. */
#include "base/map.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static clt_status map_fd(int fd, const char *path, clt_map *map, clt_err *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) return clt_fail(err, CLT_E_FILE, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return clt_fail(err, CLT_E_FILE, "%s: is a folder, not a file", path);
    if (!S_ISREG(st.st_mode)) return clt_fail(err, CLT_E_FILE, "%s: not a regular file", path);
    if (st.st_size == 0) return CLT_OK;
    if ((uint64_t)st.st_size > SIZE_MAX / 2) return clt_fail(err, CLT_E_FILE, "%s: too large for this system", path);
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        clt_status code = errno == ENOMEM ? CLT_E_MEMORY : CLT_E_FILE;
        return clt_fail(err, code, "%s: cannot map %lld bytes: %s", path, (long long)st.st_size, strerror(errno));
    }
    map->data = data;
    map->size = (uint64_t)st.st_size;
    return CLT_OK;
}

clt_status clt_map_open(const char *path, clt_map *map, clt_err *err) {
    *map = (clt_map){0};
    /* Not blocking: opening a FIFO would wait for its writer; the check for a regular file follows. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return clt_fail(err, CLT_E_FILE, "%s: %s", path, strerror(errno));
    clt_status status = map_fd(fd, path, map, err);
    close(fd); /* the mapping keeps the file */
    return status;
}

void clt_map_close(clt_map *map) {
    if (map->data) munmap((void *)(uintptr_t)map->data, (size_t)map->size);
    *map = (clt_map){0};
}

void clt_map_advise(const clt_map *map, uint64_t offset, uint64_t bytes, clt_map_use use) {
    static const int advice[] = {MADV_SEQUENTIAL, MADV_RANDOM, MADV_WILLNEED, MADV_DONTNEED};
    if (!map->data || offset >= map->size) return;
    if (bytes > map->size - offset) bytes = map->size - offset;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t begin = offset, end = offset + bytes;
    if (use == CLT_MAP_DONTNEED) { /* a neighbour may still use the pages at both ends */
        begin = (begin + page - 1) / page * page;
        if (end != map->size) end = end / page * page;
    } else {
        begin = begin / page * page;
    }
    if (begin < end) madvise((void *)(uintptr_t)(map->data + begin), (size_t)(end - begin), advice[use]);
}
