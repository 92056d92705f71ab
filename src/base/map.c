/* Read-only file mappings: a path in, the file's bytes out, mapped or read piece by piece. Refuses what is not a regular
 * file; parses nothing. */
#include "base/map.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/os.h"

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
    map->fd = fd;
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
    if (!map->data) close(fd);
    return status;
}

bool clt_map_part(int fd, uint64_t offset, uint64_t bytes, clt_map *map) {
    *map = (clt_map){0};
    if (bytes == 0 || bytes > SIZE_MAX / 2) return false;
    /* A place is reserved first, because huge pages need an address that is a multiple of their size. */
    size_t size = (size_t)bytes, reserved = size + CLT_MAP_HUGE;
    char *place = mmap(NULL, reserved, PROT_NONE, MAP_SHARED, fd, (off_t)offset);
    if (place == MAP_FAILED) return false;
    size_t before = (CLT_MAP_HUGE - ((uintptr_t)place & (CLT_MAP_HUGE - 1))) & (CLT_MAP_HUGE - 1);
    void *data = mmap(place + before, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);
    if (data == MAP_FAILED) {
        munmap(place, reserved);
        return false;
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE), end = (before + size + page - 1) / page * page;
    if (before) munmap(place, before);
    if (end < reserved) munmap(place + end, reserved - end);
    madvise(data, size, MADV_HUGEPAGE); /* a wish: also reads a cold file in huge pages */
    *map = (clt_map){data, bytes, -1};
    return true;
}

/* The kilobytes that /proc/self/smaps counts under `label` for the mapping that begins at `address`; 0 if it does not
 * say. */
static uint64_t mapped_kb(const void *address, const char *label) {
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[512], head[32], form[64];
    unsigned long long kb = 0;
    bool here = false;
    if (!f) return 0;
    int n = snprintf(head, sizeof head, "%llx-", (unsigned long long)(uintptr_t)address);
    snprintf(form, sizeof form, "%s: %%llu", label);
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, head, (size_t)n) == 0) here = true;
        else if (here && sscanf(line, form, &kb) == 1) break;
    }
    fclose(f);
    return kb;
}

bool clt_map_is_huge(const clt_map *part, uint64_t bytes) {
    volatile uint8_t sink = 0;
    if (bytes > part->size) bytes = part->size;
    bytes = bytes / CLT_MAP_HUGE * CLT_MAP_HUGE;
    for (uint64_t at = 0; at < bytes; at += CLT_MAP_HUGE) sink = (uint8_t)(sink + part->data[at]);
    return bytes > 0 && mapped_kb(part->data, "FilePmdMapped") >= bytes / 1024 / 10 * 9;
}

void clt_map_close(clt_map *map) {
    if (map->data) {
        munmap((void *)(uintptr_t)map->data, (size_t)map->size);
        if (map->fd >= 0) close(map->fd);
    }
    *map = (clt_map){0};
}

bool clt_map_read(const clt_map *map, uint64_t offset, void *dst, size_t bytes) {
    if (!map->data || offset > map->size || bytes > map->size - offset) return false;
    return clt_read_at(map->fd, dst, bytes, offset);
}

void clt_map_advise(const clt_map *map, uint64_t offset, uint64_t bytes, clt_map_use use) {
    static const int advice[] = {MADV_SEQUENTIAL, MADV_RANDOM, MADV_WILLNEED, MADV_DONTNEED};
    if (!map->data || offset >= map->size || bytes == 0) return;
    if (bytes > map->size - offset) bytes = map->size - offset;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t begin = offset / page * page; /* whoever still uses a page that is let go finds it in the page cache */
    madvise((void *)(uintptr_t)(map->data + begin), (size_t)(offset + bytes - begin), advice[use]);
}
