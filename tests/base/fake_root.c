/* Builds and removes the folder of fake_root.h, and points the readers of system files at it. */
#include "base/fake_root.h"
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/sysfile.h"

static char root[64];

int fake_root_begin(void **state) {
    (void)state;
    strcpy(root, "/tmp/culet-root-XXXXXX");
    if (!mkdtemp(root)) abort();
    clt_sysfile_set_root(root);
    return 0;
}

void fake_root_put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(full, 0700);
    }
    FILE *f = fopen(full, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) abort();
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) {
    (void)st, (void)kind, (void)where;
    return remove(path);
}

int fake_root_end(void **state) {
    (void)state;
    clt_sysfile_set_root(NULL);
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return 0;
}
