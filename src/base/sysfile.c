/* Reads the small text files in which Linux states what a machine has and what a process may use. In: a path below /proc or
 * /sys. Out: a line, a number. It knows no single file's meaning. */
#include "base/sysfile.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_PATH = 4608 };

static const char *system_root;

void clt_sysfile_set_root(const char *root) {
    system_root = root;
}

FILE *clt_sysfile_open(const char *path) {
    char full[LONGEST_PATH];
    if (!system_root) return fopen(path, "re");
    int n = snprintf(full, sizeof full, "%s%s", system_root, path);
    return n > 0 && (size_t)n < sizeof full ? fopen(full, "re") : NULL;
}

bool clt_sysfile_next(FILE *f, char *line, size_t size) {
    if (!fgets(line, (int)size, f)) return false;
    size_t n = strcspn(line, "\n");
    bool cut = line[n] == 0;
    line[n] = 0;
    for (int c = 0; cut && c != '\n' && c != EOF;) c = getc(f);
    return true;
}

bool clt_sysfile_line(const char *path, char *out, size_t size) {
    FILE *f = clt_sysfile_open(path);
    if (!f) return false;
    bool got = fgets(out, (int)size, f) != NULL;
    fclose(f);
    if (!got) return false;
    size_t n = strcspn(out, "\n");
    bool whole = out[n] == '\n' || n + 1 < size;
    out[n] = 0;
    return whole && n > 0;
}

/* A whole decimal number, possibly followed by a space and a unit. */
static bool read_number(const char *text, uint64_t *out) {
    char *end;
    text += strspn(text, " \t");
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || (*end && *end != ' ' && *end != '\t')) return false;
    *out = v;
    return true;
}

bool clt_sysfile_number(const char *path, uint64_t *out) {
    char line[64];
    return clt_sysfile_line(path, line, sizeof line) && read_number(line, out);
}

bool clt_sysfile_field(const char *path, const char *label, uint64_t *out) {
    char line[256];
    size_t len = strlen(label);
    bool found = false;
    FILE *f = clt_sysfile_open(path);
    if (!f) return false;
    while (!found && clt_sysfile_next(f, line, sizeof line)) {
        if (strncmp(line, label, len) != 0 || (line[len] != ':' && line[len] != ' ')) continue;
        found = read_number(line + len + 1, out);
    }
    fclose(f);
    return found;
}
