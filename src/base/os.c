/* Small facts of the running system: time, peak memory, free disk. Files are in os_files.c, memory in limits.c,
 * processors in cores.c. */
#include "base/os.h"
#include <sys/statvfs.h>
#include <time.h>
#include "base/sysfile.h"

double clt_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

uint64_t clt_rss_peak_bytes(void) {
    uint64_t kb = 0;
    clt_sysfile_field("/proc/self/status", "VmHWM", &kb);
    return kb * 1024;
}

uint64_t clt_disk_free_bytes(const char *path) {
    struct statvfs st;
    if (statvfs(path, &st) != 0) return 0;
    return (uint64_t)st.f_bavail * (uint64_t)st.f_frsize;
}
