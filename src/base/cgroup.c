/* Finds the control groups that a process is in. In: /proc/self/cgroup (which group) and /proc/self/mountinfo (where the
 * hierarchy is mounted, and which group its mount point shows). Out: folders, innermost first. It reads no limit itself.
 *
 *   /proc/self/cgroup      ID:CONTROLLERS:PATH                v2: ID 0 and no controllers
 *   /proc/self/mountinfo   id parent dev ROOT MOUNTPOINT opts [fields…] - TYPE source SUPEROPTS
 *
 * In a container PATH may lie outside of what is mounted (the mount shows a group that PATH is below, or PATH begins with
 * "/.."). Then the mount point itself is the innermost group that can be seen. */
#include "base/cgroup.h"
#include <stdio.h>
#include <string.h>
#include "base/sysfile.h"

enum { LONGEST = 4096 };

/* Whether `word` is one of a comma-separated list. */
static bool lists(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *s = list; *s; s += strspn(s, ",")) {
        size_t len = strcspn(s, ",");
        if (len == n && !strncmp(s, word, n)) return true;
        s += len;
    }
    return false;
}

/* controller NULL: the unified hierarchy. */
static bool own_path(const char *controller, char *path, size_t size) {
    char line[LONGEST];
    bool found = false;
    FILE *f = clt_sysfile_open("/proc/self/cgroup");
    if (!f) return false;
    while (!found && clt_sysfile_next(f, line, sizeof line)) {
        char *list = strchr(line, ':'), *where = list ? strchr(list + 1, ':') : NULL;
        if (!where) continue;
        *where++ = 0;
        found = controller ? lists(list + 1, controller) : !strncmp(line, "0:", 2) && !list[1];
        if (found) found = snprintf(path, size, "%s", where) < (int)size;
    }
    fclose(f);
    return found;
}

/* "\040" and the like, as the kernel writes blanks in paths. */
static void unescape(char *s) {
    char *out = s;
    for (; *s; s++) {
        bool octal = s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7';
        *out++ = octal ? (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0')) : *s;
        if (octal) s += 3;
    }
    *out = 0;
}

/* Splits a line of mountinfo in place; false if it is no mount of the wanted hierarchy. */
static bool parse_mount(char *line, const char *controller, char **root, char **point) {
    char *tail = strstr(line, " - "), *save = NULL;
    if (!tail) return false;
    *tail = 0;
    char *type = strtok_r(tail + 3, " ", &save), *options = NULL;
    if (!type || strcmp(type, controller ? "cgroup" : "cgroup2") != 0) return false;
    if (strtok_r(NULL, " ", &save)) options = strtok_r(NULL, " ", &save);
    if (controller && (!options || !lists(options, controller))) return false;
    char *field = strtok_r(line, " ", &save);
    for (int i = 0; field && i < 3; i++) field = strtok_r(NULL, " ", &save);
    *root = field;
    *point = field ? strtok_r(NULL, " ", &save) : NULL;
    if (!*point) return false;
    unescape(*root);
    unescape(*point);
    return true;
}

/* What of `path` lies below the mount's root, "" for nothing; NULL if the mount does not show it. */
static const char *below(const char *path, const char *root) {
    size_t n = strcmp(root, "/") ? strlen(root) : 0;
    if (strncmp(path, root, n) != 0 || (path[n] && path[n] != '/') || strstr(path, "/..")) return NULL;
    return path[n] == '/' && !path[n + 1] ? "" : path + n;
}

/* The mount that shows the path, or else the first one. */
static bool find_mount(const char *controller, const char *path, char *point, size_t size, char *rest) {
    char line[LONGEST], *root, *where;
    bool found = false, exact = false;
    FILE *f = clt_sysfile_open("/proc/self/mountinfo");
    if (!f) return false;
    while (!exact && clt_sysfile_next(f, line, sizeof line)) {
        if (!parse_mount(line, controller, &root, &where)) continue;
        const char *inside = below(path, root);
        exact = inside != NULL;
        if (found && !exact) continue;
        found = snprintf(point, size, "%s", where) < (int)size;
        snprintf(rest, size, "%s", inside ? inside : "");
    }
    fclose(f);
    return found;
}

static void walk(const char *controller, void (*fn)(void *user, const clt_cgroup *g), void *user) {
    char path[LONGEST], point[LONGEST], rest[LONGEST], folder[2 * LONGEST];
    if (!own_path(controller, path, sizeof path) || !find_mount(controller, path, point, LONGEST, rest)) return;
    for (;;) {
        snprintf(folder, sizeof folder, "%s%s", point, rest);
        fn(user, &(clt_cgroup){folder, rest[0] ? rest : "/"});
        char *last = strrchr(rest, '/');
        if (!last) return;
        *last = 0;
    }
}

void clt_cgroup_walk_v2(void (*fn)(void *user, const clt_cgroup *g), void *user) {
    walk(NULL, fn, user);
}

void clt_cgroup_walk_v1(const char *controller, void (*fn)(void *user, const clt_cgroup *g), void *user) {
    walk(controller, fn, user);
}
