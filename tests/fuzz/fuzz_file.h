/* Shared by the fuzz targets of src/file: bytes into files without touching a disk, and what is asked of an open model. */
#ifndef CLT_TESTS_FUZZ_FILE_H
#define CLT_TESTS_FUZZ_FILE_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/mem.h"
#include "file/file.h"

#define FUZZ_UNUSED __attribute__((unused))

/* A file in memory with these bytes; its path is good while the descriptor is open. */
static FUZZ_UNUSED int fuzz_memory_file(const uint8_t *data, size_t size, char *path, size_t path_size) {
    int fd = memfd_create("culet-fuzz", MFD_CLOEXEC);
    if (fd < 0) return fd;
    if (write(fd, data, size) != (ssize_t)size) abort();
    snprintf(path, path_size, "/proc/self/fd/%d", fd);
    return fd;
}

static FUZZ_UNUSED void fuzz_write(const char *folder, const char *name, const void *data, size_t size) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) abort();
}

static FUZZ_UNUSED void fuzz_remove(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static void fuzz_read_metas(const clt_file *f, volatile uint64_t *sum) {
    int64_t whole;
    double num;
    bool flag;
    const char *s;
    uint64_t len;
    for (size_t i = 0; i < clt_file_metas(f); i++) {
        const clt_meta *m = clt_file_meta(f, i);
        if (clt_file_meta_find(f, m->key) != m) abort();
        for (uint64_t k = 0; k < m->count && k < 100; k++)
            *sum += (uint64_t)clt_meta_int(m, k, &whole) + clt_meta_num(m, k, &num) + clt_meta_bool(m, k, &flag);
        if (m->count) *sum += clt_meta_num(m, m->count - 1, &num);
        if (clt_meta_str(m, &s, &len) && len) *sum += (unsigned char)s[len - 1];
        for (uint64_t pos = 0; clt_meta_next_str(m, &pos, &s, &len);)
            if (len) *sum += (unsigned char)s[len - 1];
    }
}

/* Opens the path and reads what it offers; aborts on a broken promise, on a text of several lines and on a leak. */
static void fuzz_open(const char *path) {
    volatile uint64_t sum = 0;
    clt_err err;
    clt_file *f = NULL;
    long live = clt_mem_live();
    if (clt_file_open(path, &f, &err)) {
        if (f || !err.text[0] || strpbrk(err.text, "\r\n\t\x1b")) abort();
    } else {
        for (size_t i = 0; i < clt_file_tensors(f); i++) {
            const clt_tensor *t = clt_file_tensor(f, i);
            if (clt_file_find(f, t->name) != t || !t->bytes) abort();
            if (t->offset + t->bytes > clt_file_shard_bytes(f, t->shard)) abort();
            sum += (uint64_t)t->data[0] + t->data[t->bytes - 1] + *clt_tensor_row(t, clt_tensor_rows(t) - 1);
        }
        fuzz_read_metas(f, &sum);
        clt_file_close(f);
    }
    if (clt_mem_live() != live) abort();
}

#endif
