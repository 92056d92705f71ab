/* The system's own small files below /proc and /sys. */
#ifndef CLT_BASE_SYSFILE_H
#define CLT_BASE_SYSFILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Tests only: a folder that stands for "/" from now on; NULL = the system's own. Not copied. */
void clt_sysfile_set_root(const char *root);
/* NULL where the file is missing. Close with fclose. */
FILE *clt_sysfile_open(const char *path);
/* The first line, without its end; false if the file is missing, empty or longer. */
bool clt_sysfile_line(const char *path, char *out, size_t size);
/* The number that stands alone in a file; false for words ("max"), a missing file or a foreign form. */
bool clt_sysfile_number(const char *path, uint64_t *out);
/* The number behind `label` in a file of lines "label 123" or "label:  123 kB"; false if there is none. */
bool clt_sysfile_field(const char *path, const char *label, uint64_t *out);
/* Like fgets without the line's end; a line that does not fit is cut, its rest skipped. false at the end of the file. */
bool clt_sysfile_next(FILE *f, char *line, size_t size);

#endif
