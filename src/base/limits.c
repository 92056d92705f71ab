/* Looks at everything that bounds the memory of this process, and names the one that leaves least. In: the system's files
 * and the process's own limits. Out: bytes, and where they come from. It decides nothing.
 *
 *   the machine        /proc/meminfo MemAvailable: free pages and what can be dropped without swapping. Swap is not counted:
 *                      weights are read whole for every token.
 *   strict overcommit  CommitLimit - Committed_AS, where vm.overcommit_memory is 2
 *   control groups     v2: memory.max and memory.high; v1: memory.limit_in_bytes; of the own group and all its ancestors.
 *                      Used is what is charged minus the pages of files, which give way.
 *   ulimit             -v against VmSize, -d against VmData
 */
#include "base/limits.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include "base/cgroup.h"
#include "base/os.h"
#include "base/sysfile.h"

enum { LONGEST_PATH = 8448 };
#define NO_LIMIT_V1 (UINT64_C(1) << 62) /* v1 writes "none" as the largest number of whole pages */

static void offer(clt_memory_room *r, uint64_t bytes, const char *source) {
    if (bytes >= r->free_bytes) return;
    r->free_bytes = bytes;
    snprintf(r->source, sizeof r->source, "%s", source);
}

static bool meminfo(const char *label, uint64_t *bytes) {
    if (!clt_sysfile_field("/proc/meminfo", label, bytes)) return false;
    *bytes *= 1024;
    return true;
}

/* ---- control groups ---- */

static bool group_number(const clt_cgroup *g, const char *file, uint64_t *out) {
    char path[LONGEST_PATH];
    int n = snprintf(path, sizeof path, "%s/%s", g->folder, file);
    return n > 0 && (size_t)n < sizeof path && clt_sysfile_number(path, out);
}

/* The sum of some fields of memory.stat. */
static uint64_t group_stat(const clt_cgroup *g, const char *const *fields, int n) {
    char path[LONGEST_PATH];
    uint64_t sum = 0, one;
    snprintf(path, sizeof path, "%s/memory.stat", g->folder);
    for (int i = 0; i < n; i++)
        if (clt_sysfile_field(path, fields[i], &one)) sum += one;
    return sum;
}

static void take_limit(clt_memory_room *r, const clt_cgroup *g, const char *file, uint64_t limit, uint64_t used) {
    uint64_t left = used < limit ? limit - used : 0;
    uint64_t least = r->group_limit == CLT_UNLIMITED ? CLT_UNLIMITED
                                                     : r->group_used < r->group_limit ? r->group_limit - r->group_used : 0;
    if (left < least) {
        r->group_limit = limit;
        r->group_used = used;
        snprintf(r->group, sizeof r->group, "%.90s (%s)", g->name, file);
    }
    char source[sizeof r->source];
    snprintf(source, sizeof source, "control group %.90s, %s %.1f MiB", g->name, file, (double)limit / 1048576);
    offer(r, left, source);
}

static void look_at_v2(void *user, const clt_cgroup *g) {
    static const char *const droppable[] = {"active_file", "inactive_file", "slab_reclaimable"};
    static const char *const limits[] = {"memory.max", "memory.high"};
    uint64_t limit, current, files = group_stat(g, droppable, 3);
    if (!group_number(g, "memory.current", &current)) return;
    for (int i = 0; i < 2; i++)
        if (group_number(g, limits[i], &limit)) take_limit(user, g, limits[i], limit, current > files ? current - files : 0);
}

static void look_at_v1(void *user, const clt_cgroup *g) {
    static const char *const droppable[] = {"total_active_file", "total_inactive_file"};
    uint64_t limit, current, files = group_stat(g, droppable, 2);
    if (!group_number(g, "memory.usage_in_bytes", &current)) return;
    if (!group_number(g, "memory.limit_in_bytes", &limit) || limit >= NO_LIMIT_V1) return;
    take_limit(user, g, "memory.limit_in_bytes", limit, current > files ? current - files : 0);
}

/* ---- the process ---- */

static void look_at_ulimit(clt_memory_room *r, int resource, const char *used_label, const char *name) {
    struct rlimit limit;
    uint64_t used = 0;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    if (clt_sysfile_field("/proc/self/status", used_label, &used)) used *= 1024;
    char source[64];
    snprintf(source, sizeof source, "ulimit %s %.1f MiB", name, (double)limit.rlim_cur / 1048576);
    offer(r, used < limit.rlim_cur ? (uint64_t)limit.rlim_cur - used : 0, source);
}

static void look_at_commit_limit(clt_memory_room *r) {
    uint64_t mode, limit, committed;
    if (!clt_sysfile_number("/proc/sys/vm/overcommit_memory", &mode) || mode != 2) return;
    if (!meminfo("CommitLimit", &limit) || !meminfo("Committed_AS", &committed)) return;
    offer(r, committed < limit ? limit - committed : 0, "commit limit, vm.overcommit_memory 2");
}

void clt_memory_look(clt_memory_room *out) {
    *out = (clt_memory_room){.group_limit = CLT_UNLIMITED, .free_bytes = CLT_UNLIMITED};
    meminfo("MemTotal", &out->machine_total);
    if (meminfo("MemAvailable", &out->machine_free)) offer(out, out->machine_free, "free memory");
    look_at_commit_limit(out);
    clt_cgroup_walk_v2(look_at_v2, out);
    clt_cgroup_walk_v1("memory", look_at_v1, out);
    look_at_ulimit(out, RLIMIT_AS, "VmSize", "-v");
    look_at_ulimit(out, RLIMIT_DATA, "VmData", "-d");
}

uint64_t clt_memory_total_bytes(void) {
    clt_memory_room r;
    clt_memory_look(&r);
    return r.group_limit < r.machine_total ? r.group_limit : r.machine_total;
}

uint64_t clt_memory_available_bytes(void) {
    clt_memory_room r;
    clt_memory_look(&r);
    return r.free_bytes == CLT_UNLIMITED ? 0 : r.free_bytes;
}
