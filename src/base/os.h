/* What differs between systems: time, memory, cores, files. */
#ifndef CLT_BASE_OS_H
#define CLT_BASE_OS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

double clt_now_ms(void);              /* monotonic */
uint64_t clt_rss_peak_bytes(void);    /* VmHWM; 0 where unknown */
uint64_t clt_memory_total_bytes(void);     /* of the machine, or a control group's limit; limits.h says more */
uint64_t clt_memory_available_bytes(void); /* 0 = unknown or nothing */
uint64_t clt_disk_free_bytes(const char *path);
int clt_cores(void);                  /* physical cores this process may use, >= 1 */
int clt_threads_default(void);        /* the fast ones among them, within a control group's quota; cores.h says more */
bool clt_is_dir(const char *path);
bool clt_is_file(const char *path);
bool clt_same_file(const char *a, const char *b); /* both exist and are one file */
bool clt_ends_with(const char *name, const char *end);
/* Exactly n bytes from offset `at` of an open file. False: errno says why, 0 where the file ends before. Thread-safe. */
bool clt_read_at(int fd, void *dst, size_t n, uint64_t at);
/* Whole small file into a buffer; refuses more than max_bytes (CLT_E_FILE). */
clt_status clt_read_file(const char *path, uint64_t max_bytes, clt_buf *out, clt_err *err);
/* The same for a file that is no model's: CLT_E_FAILED, also for folders, pipes and devices, which are not waited for. */
clt_status clt_read_regular(const char *path, uint64_t max_bytes, clt_buf *out, clt_err *err);
/* Writes beside `path` and renames, so that the file is whole or absent; fsync before the rename. Mode 0600 if private. */
clt_status clt_write_file_atomic(const char *path, const void *data, size_t n, bool private_mode, clt_err *err);
/* ${CULET_HOME:-~/.cache/culet}[/sub]; sub may be NULL. */
clt_status clt_home_path(const char *sub, clt_buf *out, clt_err *err);
/* Sorted entry names of a folder ('.' and '..' left out). Free each and the array with clt_free. */
clt_status clt_list_dir(const char *path, char ***names, size_t *n, clt_err *err);

#endif
