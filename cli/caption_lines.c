/* The file of captions (--out): a JSON object a line, each with the SHA-256 of its picture. What stands there already is not
 * done again, whatever its picture is called now. A line that an interruption cut off is removed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/json.h"
#include "base/os.h"
#include "caption.h"

static const uint64_t largest_bytes = 4ull << 30;

static clt_status read_line(const char *path, size_t number, const char *line, size_t len, cli_digests *known,
                            clt_err *err) {
    clt_json *doc = NULL;
    clt_err ignored;
    clt_err_clear(&ignored);
    bool fine = !clt_json_parse(line, len, "line", &doc, &ignored);
    size_t n = 0;
    const char *hex = clt_json_str(clt_json_get(doc, "sha256"), &n);
    if (fine && hex && n == 64) {
        cli_digests_add(known, hex);
    }
    clt_json_free(doc);
    if (ignored.code == CLT_E_UNSUPPORTED) {
        *err = ignored;
        return err->code;
    }
    if (!fine || !hex || n != 64) {
        clt_fail(err, CLT_E_FAILED, "%s: line %zu is no caption of this command", path, number);
        return clt_hint(err, "name a new file with --out, or the one that an earlier run wrote");
    }
    return known->failed ? clt_fail_memory(err, path, known->n * sizeof(*known->item)) : CLT_OK;
}

/* Whole lines; *whole = where the last of them ends. */
static clt_status read_lines(const char *path, const clt_buf *text, cli_digests *known, size_t *whole, clt_err *err) {
    size_t number = 0;
    clt_status status = CLT_OK;
    *whole = 0;
    while (*whole < text->len && !status) {
        const char *line = text->data + *whole;
        const char *end = memchr(line, '\n', text->len - *whole);
        if (!end) {
            break;
        }
        status = read_line(path, ++number, line, (size_t)(end - line), known, err);
        *whole = (size_t)(end + 1 - text->data);
    }
    return status;
}

static clt_status fail_here(const char *path, clt_err *err) {
    return clt_fail(err, CLT_E_FAILED, "%s: %s", path, strerror(errno));
}

static clt_status take_over(cli_lines_file *f, clt_err *err) {
    clt_buf text = {0};
    struct stat st;
    size_t whole = 0;
    if (flock(f->fd, LOCK_EX | LOCK_NB)) {
        return errno == EWOULDBLOCK ? clt_fail(err, CLT_E_FAILED, "%s: another process writes captions to it", f->path)
                                    : fail_here(f->path, err);
    }
    if (fstat(f->fd, &st)) {
        return fail_here(f->path, err);
    }
    if (!S_ISREG(st.st_mode)) {
        return clt_fail(err, CLT_E_FAILED, "%s: not a regular file", f->path);
    }
    clt_status status = clt_read_file(f->path, largest_bytes, &text, err);
    if (status == CLT_E_FILE) {
        status = err->code = CLT_E_FAILED;
    }
    if (!status) {
        status = read_lines(f->path, &text, &f->known, &whole, err);
    }
    if (!status && whole < text.len && ftruncate(f->fd, (off_t)whole)) {
        status = fail_here(f->path, err);
    }
    cli_digests_sort(&f->known);
    clt_buf_free(&text);
    return status;
}

clt_status cli_lines_file_open(const char *path, cli_lines_file *f, clt_err *err) {
    *f = (cli_lines_file){.path = path, .fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666)};
    if (f->fd < 0) {
        return fail_here(path, err);
    }
    clt_status status = take_over(f, err);
    if (status) {
        cli_lines_file_close(f);
    }
    return status;
}

clt_status cli_lines_file_put(cli_lines_file *f, const clt_buf *line, clt_err *err) {
    size_t done = 0;
    if (line->failed) {
        return clt_fail_memory(err, f->path, line->len);
    }
    while (done < line->len) {
        ssize_t n = write(f->fd, line->data + done, line->len - done);
        if (n < 0 && errno != EINTR) {
            return fail_here(f->path, err);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return CLT_OK;
}

void cli_lines_file_close(cli_lines_file *f) {
    if (f->fd >= 0) {
        close(f->fd);
    }
    cli_digests_free(&f->known);
    f->fd = -1;
}
