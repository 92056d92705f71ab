/* Counts processors as a user means it: physical cores (two hardware threads of one core share its multipliers and its
 * way to the memory), fast ones where a machine has two kinds, within what affinity and control groups leave. In: the
 * system's files. Out: counts and the default number of threads. It starts and pins nothing.
 *
 *   allowed    Cpus_allowed_list of /proc/thread-self/status, of those in /sys/devices/system/cpu/online
 *   physical   one per topology/thread_siblings_list
 *   fast       /sys/devices/cpu_core/cpus where the kernel tells two kinds apart (x86); else cpu_capacity, where the slow
 *              kind has less than FAST_SHARE of the largest
 *   quota      v2 cpu.max "QUOTA PERIOD", v1 cpu.cfs_quota_us and cpu.cfs_period_us; the least of all ancestors */
#include "base/cores.h"
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cgroup.h"
#include "base/os.h"
#include "base/sysfile.h"

#define FAST_SHARE 0.6
#define CPU_DIR "/sys/devices/system/cpu"

int clt_cpus_count(const clt_cpus *s) {
    int n = 0;
    for (int i = 0; i < CLT_MAX_CPUS / 64; i++) n += __builtin_popcountll(s->bits[i]);
    return n;
}

/* ---- what a person writes ---- */

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

clt_status clt_cpus_add_mask(clt_cpus *s, const char *what, const char *text, clt_err *err) {
    const char *hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? text + 2 : text;
    size_t n = strlen(hex);
    if (n == 0) return clt_fail(err, CLT_E_USAGE, "%s: '%s' is not a hexadecimal mask such as 0xF", what, text);
    for (size_t i = 0; i < n; i++) {
        int v = hex_digit(hex[n - 1 - i]);
        if (v < 0) return clt_fail(err, CLT_E_USAGE, "%s: '%s' is not a hexadecimal mask such as 0xF", what, text);
        for (int b = 0; b < 4; b++) {
            if (!(v >> b & 1)) continue;
            if (i >= CLT_MAX_CPUS / 4)
                return clt_fail(err, CLT_E_USAGE, "%s: '%s' names a CPU beyond %d", what, text, CLT_MAX_CPUS - 1);
            clt_cpus_add(s, (int)i * 4 + b);
        }
    }
    return CLT_OK;
}

/* A CPU's number at *s, which is moved behind it; `missing` where no digit stands there; -1 if it is too large. */
static int read_cpu(const char **s, int missing) {
    int v = 0;
    if (**s < '0' || **s > '9') return missing;
    for (; **s >= '0' && **s <= '9'; (*s)++)
        if (v >= 0) v = v * 10 + (**s - '0') < CLT_MAX_CPUS ? v * 10 + (**s - '0') : -1;
    return v;
}

clt_status clt_cpus_add_range(clt_cpus *s, const char *what, const char *text, clt_err *err) {
    const char *at = text;
    int lo = read_cpu(&at, 0), dash = *at == '-';
    at += dash;
    int hi = read_cpu(&at, CLT_MAX_CPUS - 1);
    if (!dash || *at || !text[1]) return clt_fail(err, CLT_E_USAGE, "%s: '%s' is not a range such as 0-3", what, text);
    if (lo < 0 || hi < 0) return clt_fail(err, CLT_E_USAGE, "%s: '%s' names a CPU beyond %d", what, text, CLT_MAX_CPUS - 1);
    if (lo > hi) return clt_fail(err, CLT_E_USAGE, "%s: '%s' ends before it begins", what, text);
    for (int cpu = lo; cpu <= hi; cpu++) clt_cpus_add(s, cpu);
    return CLT_OK;
}

/* ---- what the system writes ---- */

/* A list such as "0-3,8"; false if it is none. */
static bool parse_list(const char *text, clt_cpus *out) {
    memset(out, 0, sizeof *out);
    for (const char *s = text + strspn(text, " \t"); *s; s += *s == ',') {
        int lo = read_cpu(&s, -1), hi = lo;
        if (*s == '-') s++, hi = read_cpu(&s, -1);
        if (lo < 0 || hi < lo || (*s && *s != ',')) return false;
        for (int cpu = lo; cpu <= hi; cpu++) clt_cpus_add(out, cpu);
    }
    return true;
}

static bool read_list(const char *path, clt_cpus *out) {
    char line[2048];
    return clt_sysfile_line(path, line, sizeof line) && parse_list(line, out);
}

static bool read_affinity(clt_cpus *out) {
    static const char label[] = "Cpus_allowed_list:";
    char line[2048];
    bool found = false;
    FILE *f = clt_sysfile_open("/proc/thread-self/status");
    if (!f) return false;
    while (!found && clt_sysfile_next(f, line, sizeof line))
        found = strncmp(line, label, sizeof label - 1) == 0 && parse_list(line + sizeof label - 1, out);
    fclose(f);
    return found;
}

/* Where /proc says nothing the scheduler does, for up to 1024 CPUs; where it does not, one CPU is a safe guess. */
static void ask_scheduler(clt_cpus *out) {
    cpu_set_t set;
    memset(out, 0, sizeof *out);
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0; cpu < CLT_MAX_CPUS && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, &set)) clt_cpus_add(out, cpu);
    if (clt_cpus_count(out) == 0) clt_cpus_add(out, 0);
}

static void find_allowed(clt_cores_info *c) {
    clt_cpus online;
    bool listed = read_list(CPU_DIR "/online", &online);
    if (!read_affinity(&c->allowed)) ask_scheduler(&c->allowed);
    c->online = listed ? clt_cpus_count(&online) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 0; listed && i < CLT_MAX_CPUS / 64; i++) c->allowed.bits[i] &= online.bits[i];
    if (clt_cpus_count(&c->allowed) == 0) ask_scheduler(&c->allowed);
}

/* The lowest CPU of the set among those that share a physical core with `cpu`. */
static int core_of(int cpu, const clt_cpus *set) {
    char path[96];
    clt_cpus siblings;
    snprintf(path, sizeof path, CPU_DIR "/cpu%d/topology/thread_siblings_list", cpu);
    if (!read_list(path, &siblings)) return cpu;
    for (int i = 0; i < cpu; i++)
        if (clt_cpus_has(&siblings, i) && clt_cpus_has(set, i)) return i;
    return cpu;
}

static uint64_t capacity(int cpu) {
    char path[96];
    uint64_t v = 0;
    snprintf(path, sizeof path, CPU_DIR "/cpu%d/cpu_capacity", cpu);
    return clt_sysfile_number(path, &v) ? v : 0;
}

/* The fast ones among one CPU for each physical core; all of them where the system tells no difference. */
static int count_fast(const clt_cpus *cores) {
    clt_cpus named;
    bool by_name = read_list("/sys/devices/cpu_core/cpus", &named);
    uint64_t most = 0;
    int n = 0;
    for (int cpu = 0; cpu < CLT_MAX_CPUS; cpu++)
        if (clt_cpus_has(cores, cpu) && capacity(cpu) > most) most = capacity(cpu);
    for (int cpu = 0; cpu < CLT_MAX_CPUS; cpu++) {
        if (!clt_cpus_has(cores, cpu)) continue;
        if (by_name ? clt_cpus_has(&named, cpu) : (double)capacity(cpu) >= FAST_SHARE * (double)most) n++;
    }
    return n > 0 ? n : clt_cpus_count(cores);
}

/* ---- quota ---- */

static void take_quota(double *least, double quota, double period) {
    if (quota > 0 && period > 0 && (*least == 0 || quota / period < *least)) *least = quota / period;
}

static void quota_v2(void *user, const clt_cgroup *g) {
    char path[8448], line[64];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", g->folder);
    if (clt_sysfile_line(path, line, sizeof line) && sscanf(line, "%lf %lf", &quota, &period) == 2)
        take_quota(user, quota, period);
}

static void quota_v1(void *user, const clt_cgroup *g) {
    char path[8448];
    uint64_t quota, period;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", g->folder);
    if (!clt_sysfile_number(path, &quota)) return; /* "-1" is no number here: no quota */
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", g->folder);
    if (clt_sysfile_number(path, &period)) take_quota(user, (double)quota, (double)period);
}

void clt_cores_look(const clt_cpus *within, clt_cores_info *out) {
    clt_cpus cores = {0};
    memset(out, 0, sizeof *out);
    find_allowed(out);
    for (int i = 0; within && i < CLT_MAX_CPUS / 64; i++) out->allowed.bits[i] &= within->bits[i];
    for (int cpu = 0; cpu < CLT_MAX_CPUS; cpu++)
        if (clt_cpus_has(&out->allowed, cpu)) clt_cpus_add(&cores, core_of(cpu, &out->allowed));
    out->logical = clt_cpus_count(&out->allowed);
    out->physical = clt_cpus_count(&cores);
    out->fast = count_fast(&cores);
    clt_cgroup_walk_v2(quota_v2, &out->quota);
    clt_cgroup_walk_v1("cpu", quota_v1, &out->quota);
    out->threads = out->fast > 0 ? out->fast : 1;
    if (out->quota > 0 && out->quota < out->threads) out->threads = (int)ceil(out->quota);
    if (out->threads < 1) out->threads = 1;
}

int clt_cores(void) {
    clt_cores_info c;
    clt_cores_look(NULL, &c);
    return c.physical > 0 ? c.physical : 1;
}

int clt_threads_default(void) {
    clt_cores_info c;
    clt_cores_look(NULL, &c);
    return c.threads;
}
