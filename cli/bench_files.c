/* Finds the files behind a model's path, digests them, drops them from the page cache, reads them back. Understands no
 * format: a name tells a split set, an ending tells what of a folder counts. */
#include "bench_files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/os.h"

enum { COLD_SHARE = 20 /* one part in so many may stay in the cache */, SAMPLES = 256, SAMPLE_BYTES = 64 << 10, BLOCK_BYTES = 4 << 20 };

static clt_status add_file(cli_files *f, const char *path, clt_err *err) {
    struct stat st;
    if (stat(path, &st)) {
        return clt_fail(err, CLT_E_FILE, "%s: %s", path, strerror(errno));
    }
    char **grown = clt_realloc(f->paths, (f->n + 1) * sizeof(*grown));
    if (!grown) {
        return clt_fail_memory(err, "names of files", (f->n + 1) * sizeof(*grown));
    }
    f->paths = grown;
    f->paths[f->n] = clt_strdup(path);
    if (!f->paths[f->n]) {
        return clt_fail_memory(err, "names of files", strlen(path));
    }
    f->n++;
    f->bytes += (uint64_t)st.st_size;
    return CLT_OK;
}

/* model-00001-of-00003.gguf: all three. False if the name is of another form. */
static bool split_set(const char *path, size_t *stem, unsigned *count) {
    static const size_t TAIL = sizeof("-00001-of-00003.gguf") - 1;
    size_t len = strlen(path);
    unsigned number;
    int end = 0;
    if (len <= TAIL || sscanf(path + len - TAIL, "-%5u-of-%5u.gguf%n", &number, count, &end) != 2 || (size_t)end != TAIL) {
        return false;
    }
    *stem = len - TAIL;
    return true;
}

static bool ends_in(const char *name, const char *ending) {
    size_t n = strlen(name), m = strlen(ending);
    return n >= m && !strcmp(name + n - m, ending);
}

static clt_status add_folder(cli_files *f, const char *path, clt_err *err) {
    char **names;
    size_t n;
    clt_status st = clt_list_dir(path, &names, &n, err);
    for (size_t i = 0; i < n; i++) {
        clt_buf full = {0};
        if (!st && (ends_in(names[i], ".safetensors") || ends_in(names[i], ".json") || ends_in(names[i], ".jinja"))) {
            clt_buf_printf(&full, "%s/%s", path, names[i]);
            st = full.failed ? clt_fail_memory(err, path, strlen(path)) : add_file(f, full.data, err);
        }
        clt_buf_free(&full);
        clt_free(names[i]);
    }
    clt_free(names);
    return st;
}

clt_status cli_files_of_model(const char *path, cli_files *out, clt_err *err) {
    size_t stem;
    unsigned count;
    clt_status st = CLT_OK;
    *out = (cli_files){0};
    if (clt_is_dir(path)) {
        st = add_folder(out, path, err);
    } else if (split_set(path, &stem, &count)) {
        for (unsigned i = 1; i <= count && !st; i++) {
            clt_buf part = {0};
            clt_buf_printf(&part, "%.*s-%05u-of-%05u.gguf", (int)stem, path, i, count);
            st = part.failed ? clt_fail_memory(err, path, strlen(path)) : add_file(out, part.data, err);
            clt_buf_free(&part);
        }
    } else {
        st = add_file(out, path, err);
    }
    if (st) {
        cli_files_free(out);
    }
    return st;
}

void cli_files_free(cli_files *f) {
    for (size_t i = 0; i < f->n; i++) {
        clt_free(f->paths[i]);
    }
    clt_free(f->paths);
    *f = (cli_files){0};
}

/* ---- digest ---- */

static clt_status read_at(int fd, const char *path, void *out, size_t n, uint64_t at, clt_err *err) {
    if (clt_read_at(fd, out, n, at)) {
        return CLT_OK;
    }
    return clt_fail(err, CLT_E_FILE, "%s: %s at offset %llu", path, errno ? strerror(errno) : "it ends",
                    (unsigned long long)at);
}

static clt_status digest_file(clt_sha256 *h, const char *path, bool whole, void *block, clt_err *err) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        clt_status failed = clt_fail(err, CLT_E_FILE, "%s: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return failed;
    }
    uint64_t size = (uint64_t)st.st_size, piece = whole ? BLOCK_BYTES : SAMPLE_BYTES, step = piece;
    clt_status status = CLT_OK;
    if (!whole) {
        step = size / SAMPLES > piece ? size / SAMPLES : piece;
        clt_sha256_update(h, &size, sizeof(size));
    }
    for (uint64_t at = 0; at < size && !status; at += step) {
        size_t n = (size_t)(size - at < piece ? size - at : piece);
        status = read_at(fd, path, block, n, at, err);
        if (!status) {
            clt_sha256_update(h, block, n);
        }
    }
    close(fd);
    return status;
}

clt_status cli_files_digest(const cli_files *f, bool whole, char hex[65], clt_err *err) {
    clt_sha256 *h;
    clt_status st = clt_sha256_create(&h, err);
    void *block = st ? NULL : clt_alloc(BLOCK_BYTES);
    if (st) {
        return st;
    }
    if (!block) {
        st = clt_fail_memory(err, "SHA-256", BLOCK_BYTES);
    }
    for (size_t i = 0; i < f->n && !st; i++) {
        st = digest_file(h, f->paths[i], whole, block, err);
    }
    clt_sha256_final(h, hex);
    clt_free(block);
    return st;
}

/* ---- page cache ---- */

/* Bytes of the file that the page cache holds. */
static uint64_t cached_bytes(int fd, uint64_t size) {
    uint64_t pages = (size + 4095) / 4096, held = 0;
    void *map = size ? mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    unsigned char *resident = map == MAP_FAILED ? NULL : clt_alloc((size_t)pages);
    if (resident && !mincore(map, (size_t)size, resident)) {
        for (uint64_t i = 0; i < pages; i++) {
            held += (resident[i] & 1) * 4096u;
        }
    }
    clt_free(resident);
    if (map != MAP_FAILED) {
        munmap(map, (size_t)size);
    }
    return held < size ? held : size;
}

bool cli_files_make_cold(const cli_files *f) {
    bool ok = true;
    uint64_t kept = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct stat st;
        int fd = open(f->paths[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st)) {
            ok = false;
        } else {
            fdatasync(fd); /* pages that are not on the disk yet cannot be dropped */
            ok &= !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
            kept += cached_bytes(fd, (uint64_t)st.st_size);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    return ok && kept <= f->bytes / COLD_SHARE;
}

clt_status cli_files_read(const cli_files *f, uint64_t most_bytes, double *ms, clt_err *err) {
    char *block = clt_alloc(BLOCK_BYTES);
    uint64_t left = most_bytes;
    clt_status st = block ? CLT_OK : clt_fail_memory(err, "reading the model's files", BLOCK_BYTES);
    double start = clt_now_ms();
    for (size_t i = 0; i < f->n && left && !st; i++) {
        int fd = open(f->paths[i], O_RDONLY | O_CLOEXEC);
        ssize_t got = fd < 0 ? -1 : 1;
        if (fd >= 0) {
            posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        }
        while (left && got > 0) {
            got = read(fd, block, left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES);
            left -= got > 0 ? (uint64_t)got : 0;
        }
        if (got < 0) {
            st = clt_fail(err, CLT_E_FILE, "%s: %s", f->paths[i], strerror(errno));
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    *ms = clt_now_ms() - start;
    clt_free(block);
    return st;
}
