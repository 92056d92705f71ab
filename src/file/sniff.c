/* What a file is when it is not a model: the usual accidents of downloading, recognised by their first bytes and named.
 * Says nothing about files that look like none of them. */
#include <strings.h>
#include "file/impl.h"

static bool starts(const char *s, size_t n, const char *with) {
    size_t len = strlen(with);
    return n >= len && strncasecmp(s, with, len) == 0;
}

static clt_status fail_foreign(const char *path, const char *what, const char *hint, clt_err *err) {
    clt_fail(err, CLT_E_FILE, "%s: %s, not model data", path, what);
    return clt_hint(err, "%s", hint);
}

clt_status clt_sniff(const char *path, const clt_map *map, clt_err *err) {
    if (map->size == 0) {
        clt_fail(err, CLT_E_FILE, "%s: the file is empty", path);
        return clt_hint(err, "the download may have failed: fetch the file again");
    }
    const char *s = (const char *)map->data;
    size_t n = map->size < 512 ? (size_t)map->size : 512;
    if (starts(s, n, "version https://git-lfs"))
        return fail_foreign(path, "a Git LFS pointer",
                            "the repository was cloned without its large files: run 'git lfs pull' there", err);
    if (starts(s, n, "PK\x03\x04")) return fail_foreign(path, "a ZIP archive", "unpack it first", err);
    if (starts(s, n, "\x1f\x8b")) return fail_foreign(path, "gzip-compressed data", "unpack it first", err);
    if (starts(s, n, "\xef\xbb\xbf")) s += 3, n -= 3;
    while (n > 0 && (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n')) s++, n--;
    if (starts(s, n, "<!doctype") || starts(s, n, "<html") || starts(s, n, "<?xml") || starts(s, n, "<head"))
        return fail_foreign(path, "an HTML page",
                            "the server answered with a web page (a login or an error?): fetch the file again", err);
    return CLT_OK;
}
