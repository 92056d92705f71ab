/* What differs between systems: time, memory, cores. Reads the system's own files and calls; files are in os_files.c. */
#include "base/os.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

double clt_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* The number behind `label` in one of the system's "Label:  123 kB" files, as bytes; 0 if absent. */
static uint64_t read_kb_field(const char *path, const char *label) {
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    char line[256];
    unsigned long long kb = 0;
    size_t len = strlen(label);
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, label, len) != 0 || line[len] != ':') continue;
        if (sscanf(line + len + 1, "%llu", &kb) != 1) kb = 0;
        break;
    }
    fclose(f);
    return (uint64_t)kb * 1024;
}

/* The number that a control-group file holds alone; UINT64_MAX for "max", a missing file or a foreign form. */
static uint64_t read_limit(const char *path) {
    FILE *f = fopen(path, "re");
    if (!f) return UINT64_MAX;
    unsigned long long bytes = 0;
    int got = fscanf(f, "%llu", &bytes);
    fclose(f);
    return got == 1 ? bytes : UINT64_MAX;
}

uint64_t clt_rss_peak_bytes(void) {
    return read_kb_field("/proc/self/status", "VmHWM");
}

uint64_t clt_memory_total_bytes(void) {
    uint64_t total = read_kb_field("/proc/meminfo", "MemTotal");
    uint64_t limit = read_limit("/sys/fs/cgroup/memory.max"); /* a container sees its own limit here */
    return limit < total ? limit : total;
}

uint64_t clt_memory_available_bytes(void) {
    uint64_t available = read_kb_field("/proc/meminfo", "MemAvailable");
    uint64_t limit = read_limit("/sys/fs/cgroup/memory.max");
    uint64_t used = read_limit("/sys/fs/cgroup/memory.current");
    if (limit == UINT64_MAX || used == UINT64_MAX) return available;
    uint64_t left = used < limit ? limit - used : 0;
    return left < available ? left : available;
}

uint64_t clt_disk_free_bytes(const char *path) {
    struct statvfs st;
    if (statvfs(path, &st) != 0) return 0;
    return (uint64_t)st.f_bavail * (uint64_t)st.f_frsize;
}

/* The first CPU among those that share a physical core with `cpu`; `cpu` itself where the system does not say. */
static size_t first_sibling(size_t cpu) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (!f) return cpu;
    size_t first = cpu;
    if (fscanf(f, "%zu", &first) != 1) first = cpu;
    fclose(f);
    return first;
}

int clt_cores(void) {
    cpu_set_t allowed, counted;
    CPU_ZERO(&counted);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than a cpu_set_t holds */
        return online > 0 && online < 1024 ? (int)online : 1024;
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        size_t core = first_sibling(cpu);
        CPU_SET(core < CPU_SETSIZE ? core : cpu, &counted);
    }
    int n = CPU_COUNT(&counted);
    return n > 0 ? n : 1;
}
