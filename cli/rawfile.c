/* Raw output files, over stdio: rows of logits are large and come one at a time. */
#include "rawfile.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "base/os.h"

clt_status cli_rawfile_create(const char *path, cli_rawfile *f, clt_err *err) {
    f->path = path;
    f->stream = fopen(path, "we");
    return f->stream ? CLT_OK : clt_fail(err, CLT_E_FAILED, "%s: cannot write: %s", path, strerror(errno));
}

clt_status cli_rawfile_write(cli_rawfile *f, const void *values, size_t n, clt_err *err) {
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    const unsigned char *bytes = values;
    for (size_t i = 0; i < n * 4; i++) {
        if (putc(bytes[(i & ~(size_t)3) + 3 - (i & 3)], f->stream) == EOF) {
            return clt_fail(err, CLT_E_FAILED, "%s: cannot write: %s", f->path, strerror(errno));
        }
    }
    return CLT_OK;
#else
    return fwrite(values, 4, n, f->stream) == n
               ? CLT_OK
               : clt_fail(err, CLT_E_FAILED, "%s: cannot write: %s", f->path, strerror(errno));
#endif
}

clt_status cli_rawfile_close(cli_rawfile *f, bool keep, clt_err *err) {
    if (!f->stream) {
        return CLT_OK;
    }
    clt_status st = CLT_OK;
    if (fclose(f->stream) && keep) {
        st = clt_fail(err, CLT_E_FAILED, "%s: cannot write: %s", f->path, strerror(errno));
    }
    f->stream = NULL;
    if ((st || !keep) && clt_is_file(f->path)) {
        unlink(f->path);
    }
    return st;
}
