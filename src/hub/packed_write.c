/* Writing a packed copy: a key and packed weights in, a file in the folder of copies out, whole or not at all.
 *
 * The copy grows under a temporary name that its writer holds locked, is synced and then renamed. A temporary file that
 * nobody holds is what a killed writer left: the next writer removes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "hub/packed_head.h"

/* Also the folders above, as far as they are missing. */
static clt_status make_folder(char *path, clt_err *err) {
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(path, 0777); /* the last one's failure is the one that counts */
        *slash = '/';
    }
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return clt_fail(err, CLT_E_FAILED, "%s: %s", path, strerror(errno));
    return CLT_OK;
}

static void sweep(const char *folder) {
    clt_err err;
    char **names;
    size_t n;
    clt_buf path = {0};
    if (clt_list_dir(folder, &names, &n, &err) != CLT_OK) return;
    for (size_t i = 0; i < n; i++) {
        clt_buf_reset(&path);
        clt_buf_printf(&path, "%s/%s", folder, names[i]);
        bool is_temp = clt_ends_with(names[i], CLT_PACKED_TEMP) && !path.failed;
        int fd = is_temp ? open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
        if (fd >= 0) {
            if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(path.data);
            close(fd);
        }
        clt_free(names[i]);
    }
    clt_free(names);
    clt_buf_free(&path);
}

static bool write_at(int fd, const void *data, size_t n, uint64_t at) {
    for (const char *from = data; n > 0;) {
        ssize_t done = pwrite(fd, from, n < CLT_PACKED_SLICE ? n : CLT_PACKED_SLICE, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        from += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return true;
}

static clt_status check_space(const char *folder, uint64_t needed, clt_err *err) {
    uint64_t left = clt_disk_free_bytes(folder);
    if (left > needed) return CLT_OK;
    clt_fail(err, CLT_E_FAILED, "%s: a packed copy needs %.1f MB, the disk has %.1f MB left", folder, (double)needed / 1e6,
             (double)left / 1e6);
    return clt_hint(err, "remove copies with `culet rm --packed`, or set CULET_HOME to a folder on another disk");
}

/* Weights first, header last: until then nothing could take the file for a copy. */
static clt_status fill(int fd, const char *path, const clt_packed_head *h, const uint8_t *data, clt_err *err) {
    clt_buf head = {0};
    clt_packed_head_put(h, &head);
    clt_status status = head.failed ? clt_fail_memory(err, "packed copy", head.len) : CLT_OK;
    if (status == CLT_OK && (!write_at(fd, data, (size_t)h->key.bytes, h->offset) || !write_at(fd, head.data, head.len, 0) ||
                             fsync(fd) != 0))
        status = clt_fail(err, CLT_E_FAILED, "%s: cannot write: %s", path, strerror(errno));
    clt_buf_free(&head);
    return status;
}

static void sync_folder(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

/* A file that is there but not yet locked looks like one that a dead writer left, and another writer may just be sweeping it
 * away: then that one holds the lock, or the name is gone. Where there are no locks at all, nobody sweeps. */
static bool is_ours(int fd, const char *temp) {
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
    return access(temp, F_OK) == 0;
}

/* Opens a temporary file beside `path` that no other writer will sweep away; its name goes to `temp`. */
static clt_status open_temp(const char *path, clt_buf *temp, int *out, clt_err *err) {
    for (;;) {
        clt_buf_reset(temp);
        clt_buf_printf(temp, "%s.%08llx" CLT_PACKED_TEMP, path, (unsigned long long)clt_random_entropy() & 0xFFFFFFFF);
        if (temp->failed) return clt_fail_memory(err, "packed copy", strlen(path));
        int fd = open(temp->data, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0) return clt_fail(err, CLT_E_FAILED, "%s: cannot write: %s", temp->data, strerror(errno));
        if (is_ours(fd, temp->data)) {
            *out = fd;
            return CLT_OK;
        }
        close(fd);
    }
}

static clt_status write_whole(const char *path, const clt_packed_head *h, const uint8_t *data, clt_err *err) {
    clt_buf temp = {0};
    int fd = -1;
    clt_status status = open_temp(path, &temp, &fd, err);
    if (status == CLT_OK) status = fill(fd, temp.data, h, data, err);
    if (status == CLT_OK && rename(temp.data, path) != 0)
        status = clt_fail(err, CLT_E_FAILED, "%s: cannot write: %s", path, strerror(errno));
    if (fd >= 0) {
        if (status != CLT_OK) unlink(temp.data);
        close(fd);
    }
    clt_buf_free(&temp);
    return status;
}

clt_status clt_packed_write(const clt_packed_key *key, const char *model, const uint8_t *data, clt_pool *pool, clt_buf *path,
                            clt_err *err) {
    clt_buf folder = {0}, final = {0};
    clt_packed_head h = {0};
    clt_status status = clt_packed_place(NULL, &folder, err);
    if (status == CLT_OK) status = clt_packed_place(key, &final, err);
    if (status == CLT_OK) status = make_folder(folder.data, err);
    if (status == CLT_OK) sweep(folder.data);
    if (status == CLT_OK) status = clt_packed_head_make(key, model, &h, err);
    if (status == CLT_OK) status = check_space(folder.data, h.offset + key->bytes, err);
    if (status == CLT_OK) {
        clt_packed_sum(&(clt_packed_sums){.data = data, .bytes = key->bytes, .sum = h.slice}, pool);
        status = write_whole(final.data, &h, data, err);
    }
    if (status == CLT_OK) {
        sync_folder(folder.data);
        clt_buf_puts(path, final.data);
        if (path->failed) status = clt_fail_memory(err, "packed copy", final.len);
    }
    clt_packed_head_free(&h);
    clt_buf_free(&folder);
    clt_buf_free(&final);
    return status;
}

/* ---- the list ---- */

static clt_status report(const char *path, const char *name, void (*fn)(void *user, const clt_packed_entry *e), void *user,
                         clt_err *err) {
    struct stat st;
    clt_err ignored;
    clt_packed_head h = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return CLT_OK; /* removed meanwhile, or not ours to read */
    clt_status status = clt_packed_head_read(fd, path, &h, &ignored);
    if (status == CLT_E_MEMORY) {
        *err = ignored;
    } else {
        uint64_t bytes = fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
        fn(user, &(clt_packed_entry){name, path, status == CLT_OK ? h.model : "", bytes});
        status = CLT_OK;
    }
    clt_packed_head_free(&h);
    close(fd);
    return status;
}

clt_status clt_packed_each(void (*fn)(void *user, const clt_packed_entry *e), void *user, clt_err *err) {
    clt_buf folder = {0}, path = {0};
    char **names = NULL;
    size_t n = 0;
    clt_status status = clt_packed_place(NULL, &folder, err);
    if (status == CLT_OK && clt_is_dir(folder.data)) status = clt_list_dir(folder.data, &names, &n, err);
    for (size_t i = 0; i < n; i++) {
        if (status == CLT_OK && clt_ends_with(names[i], CLT_PACKED_END)) {
            clt_buf_reset(&path);
            clt_buf_printf(&path, "%s/%s", folder.data, names[i]);
            status = path.failed ? clt_fail_memory(err, names[i], strlen(names[i]))
                                 : report(path.data, names[i], fn, user, err);
        }
        clt_free(names[i]);
    }
    clt_free(names);
    clt_buf_free(&folder);
    clt_buf_free(&path);
    return status;
}
