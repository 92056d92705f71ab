/* Large files that appear whole or not at all: a path and pieces come in, a named file goes out. */
#include "base/outfile.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"

/* The folder that holds path, to be freed; NULL without memory. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? clt_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : clt_strdup(".");
}

static char *temp_name(const char *path) {
    clt_buf name = {0};
    clt_buf_printf(&name, "%s.%08llx.tmp", path, (unsigned long long)clt_random_entropy() & 0xFFFFFFFF);
    if (name.failed) clt_buf_free(&name);
    return name.data;
}

static clt_status check_target(const char *path, const char *folder, uint64_t bytes, clt_err *err) {
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && !S_ISREG(st.st_mode))
        return clt_fail(err, CLT_E_USAGE, "%s: cannot write: %s, expected a file", path,
                        S_ISDIR(st.st_mode) ? "a folder" : "a device or a pipe");
    if (!clt_is_dir(folder)) return clt_fail(err, CLT_E_FAILED, "%s: cannot write: there is no folder %s", path, folder);
    uint64_t left = clt_disk_free_bytes(folder);
    if (left >= bytes) return CLT_OK;
    clt_fail(err, CLT_E_FAILED, "%s: the file takes %.1f MB, the disk has %.1f MB left", path, (double)bytes / 1e6,
             (double)left / 1e6);
    return clt_hint(err, "free some space, or write to another disk");
}

static clt_status fail_write(const char *path, clt_err *err) {
    return clt_fail(err, CLT_E_FAILED, "%s: cannot write: %s", path, strerror(errno));
}

static clt_status open_bytes(clt_outfile *f, const char *folder, clt_err *err) {
    f->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (f->fd >= 0) return CLT_OK;
    f->temp = temp_name(f->path);
    if (!f->temp) return clt_fail_memory(err, f->path, strlen(f->path) + 16);
    f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (f->fd >= 0) return CLT_OK;
    clt_free(f->temp);
    f->temp = NULL;
    return fail_write(f->path, err);
}

clt_status clt_outfile_open(const char *path, uint64_t bytes, clt_outfile *out, clt_err *err) {
    *out = (clt_outfile){.fd = -1, .path = clt_strdup(path)};
    char *folder = folder_of(path);
    clt_status status = out->path && folder ? check_target(path, folder, bytes, err)
                                            : clt_fail_memory(err, path, strlen(path) + 1);
    if (status == CLT_OK) status = open_bytes(out, folder, err);
    clt_free(folder);
    if (status != CLT_OK) clt_outfile_abandon(out);
    return status;
}

bool clt_outfile_write(const clt_outfile *f, const void *data, size_t n, uint64_t at) {
    enum { PIECE = 1 << 30 };
    for (const char *from = data; n > 0;) {
        ssize_t done = pwrite(f->fd, from, n < PIECE ? n : PIECE, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = ENOSPC;
        if (done <= 0) return false;
        from += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return true;
}

clt_status clt_outfile_fail(const clt_outfile *f, clt_err *err) { return fail_write(f->path, err); }

static bool link_as(const clt_outfile *f, const char *name) {
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

/* A link cannot take the place of a file, a rename can: there the nameless file first gets a temporary name. */
static clt_status give_name(clt_outfile *f, clt_err *err) {
    if (!f->temp && link_as(f, f->path)) return CLT_OK;
    if (!f->temp && errno != EEXIST) return fail_write(f->path, err);
    if (!f->temp) {
        char *temp = temp_name(f->path);
        if (!temp) return clt_fail_memory(err, f->path, strlen(f->path) + 16);
        if (!link_as(f, temp)) {
            clt_free(temp);
            return fail_write(f->path, err);
        }
        f->temp = temp;
    }
    if (rename(f->temp, f->path) != 0) return fail_write(f->path, err);
    clt_free(f->temp);
    f->temp = NULL;
    return CLT_OK;
}

static void sync_folder(const char *path) {
    char *folder = folder_of(path);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    clt_free(folder);
}

clt_status clt_outfile_commit(clt_outfile *f, clt_err *err) {
    clt_status status = fsync(f->fd) == 0 ? CLT_OK : fail_write(f->path, err);
    if (status == CLT_OK) status = give_name(f, err);
    if (status == CLT_OK) sync_folder(f->path);
    clt_outfile_abandon(f);
    return status;
}

void clt_outfile_abandon(clt_outfile *f) {
    if (f->fd >= 0) close(f->fd);
    if (f->temp) unlink(f->temp);
    clt_free(f->temp);
    clt_free(f->path);
    *f = (clt_outfile){.fd = -1};
}
