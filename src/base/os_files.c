/* Files and folders of the system: read whole, write whole or not at all, list, and the place where culet keeps things. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"

bool clt_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool clt_is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool clt_same_file(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool clt_ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

bool clt_read_at(int fd, void *dst, size_t n, uint64_t at) {
    for (char *to = dst; n > 0;) {
        ssize_t got = pread(fd, to, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) errno = 0;
        if (got <= 0) return false;
        to += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

static clt_status read_fd(int fd, const char *path, uint64_t max_bytes, clt_buf *out, clt_err *err) {
    char block[16384];
    uint64_t total = 0;
    for (;;) {
        ssize_t n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return clt_fail(err, CLT_E_FILE, "%s: %s", path, strerror(errno));
        if (n == 0) break;
        if ((uint64_t)n > max_bytes - total)
            return clt_fail(err, CLT_E_FILE, "%s: larger than %llu bytes", path, (unsigned long long)max_bytes);
        total += (uint64_t)n;
        clt_buf_put(out, block, (size_t)n);
        if (out->failed) return clt_fail_memory(err, path, total);
    }
    clt_buf_put(out, "", 0);
    return out->failed ? clt_fail_memory(err, path, 1) : CLT_OK;
}

clt_status clt_read_file(const char *path, uint64_t max_bytes, clt_buf *out, clt_err *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return clt_fail(err, CLT_E_FILE, "%s: %s", path, strerror(errno));
    clt_status status = read_fd(fd, path, max_bytes, out, err);
    close(fd);
    return status;
}

clt_status clt_read_regular(const char *path, uint64_t max_bytes, clt_buf *out, clt_err *err) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer is refused below, not waited for */
    if (fd < 0) return clt_fail(err, CLT_E_FAILED, "%s: %s", path, strerror(errno));
    clt_status status = CLT_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        status = clt_fail(err, CLT_E_FAILED, "%s: is %s, expected a regular file", path,
                          S_ISDIR(st.st_mode) ? "a folder" : "a pipe or a device");
    else if (read_fd(fd, path, max_bytes, out, err) == CLT_E_FILE) status = err->code = CLT_E_FAILED;
    else status = out->failed ? CLT_E_MEMORY : CLT_OK;
    close(fd);
    return status;
}

static bool write_all(int fd, const char *data, size_t n) {
    while (n > 0) {
        ssize_t done = write(fd, data, n < 1u << 30 ? n : 1u << 30);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        data += done;
        n -= (size_t)done;
    }
    return true;
}

/* Makes the rename itself durable; a file system that cannot sync a folder is no reason to fail. */
static void sync_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? clt_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : clt_strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    clt_free(folder);
}

/* Writes, syncs and closes; false with errno set. */
static bool write_and_close(int fd, const void *data, size_t n) {
    bool ok = write_all(fd, data, n) && fsync(fd) == 0;
    int why = errno;
    if (close(fd) != 0) return false;
    errno = why;
    return ok;
}

/* A rename would put a file in the place of a device or a pipe. */
static bool is_special(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

clt_status clt_write_file_atomic(const char *path, const void *data, size_t n, bool private_mode, clt_err *err) {
    clt_buf temp = {0};
    clt_status status = CLT_OK;
    if (is_special(path)) return clt_fail(err, CLT_E_FILE, "%s: cannot write: a device or a pipe, expected a file", path);
    clt_buf_printf(&temp, "%s.%08llx.tmp", path, (unsigned long long)clt_random_entropy() & 0xFFFFFFFF);
    if (temp.failed) return clt_fail_memory(err, path, strlen(path));
    int fd = open(temp.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, private_mode ? 0600 : 0666);
    if (fd < 0) {
        status = clt_fail(err, CLT_E_FILE, "%s: cannot write: %s", path, strerror(errno));
    } else if (!write_and_close(fd, data, n) || rename(temp.data, path) != 0) {
        status = clt_fail(err, CLT_E_FILE, "%s: cannot write: %s", path, strerror(errno));
        unlink(temp.data);
    } else {
        sync_folder_of(path);
    }
    clt_buf_free(&temp);
    return status;
}

clt_status clt_home_path(const char *sub, clt_buf *out, clt_err *err) {
    const char *set = getenv("CULET_HOME"), *home = getenv("HOME");
    if (set && *set) {
        clt_buf_puts(out, set);
    } else {
        struct passwd entry, *found = NULL;
        char space[4096];
        if (!home || !*home) {
            getpwuid_r(getuid(), &entry, space, sizeof space, &found);
            home = found ? found->pw_dir : NULL;
        }
        if (!home || !*home) {
            clt_fail(err, CLT_E_FAILED, "no folder for models: neither CULET_HOME nor HOME is set");
            return clt_hint(err, "set CULET_HOME to a folder");
        }
        clt_buf_printf(out, "%s/.cache/culet", home);
    }
    if (sub) clt_buf_printf(out, "/%s", sub);
    return out->failed ? clt_fail_memory(err, "path", 4096) : CLT_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

clt_status clt_list_dir(const char *path, char ***names, size_t *n, clt_err *err) {
    clt_status status = CLT_OK;
    char **list = NULL;
    size_t len = 0, cap = 0;
    *names = NULL;
    *n = 0;
    DIR *dir = opendir(path);
    if (!dir) return clt_fail(err, CLT_E_FILE, "%s: %s", path, strerror(errno));
    for (struct dirent *e; (errno = 0, e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (len == cap) {
            size_t more = cap ? cap * 2 : 32;
            char **grown = clt_realloc(list, more * sizeof *list);
            if (!grown) goto no_memory;
            list = grown;
            cap = more;
        }
        list[len] = clt_strdup(e->d_name);
        if (!list[len]) goto no_memory;
        len++;
    }
    if (errno) {
        status = clt_fail(err, CLT_E_FILE, "%s: %s", path, strerror(errno));
        goto out;
    }
    if (len) qsort(list, len, sizeof *list, by_name);
    *names = list;
    *n = len;
    list = NULL;
    len = 0;
    goto out;
no_memory:
    status = clt_fail_memory(err, path, (len + 1) * sizeof *list);
out:
    for (size_t i = 0; i < len; i++) clt_free(list[i]);
    clt_free(list);
    closedir(dir);
    return status;
}
