/* The older form of importance files, for imatrix.c alone. */
#ifndef CLT_CONVERT_IMATRIX_DAT_H
#define CLT_CONVERT_IMATRIX_DAT_H
#include "base/buf.h"
#include "convert/imatrix.h"

/* Checks every length. An entry says how many numbers it has, not how many matrices: it arrives as one matrix. */
clt_status clt_imatrix_read_dat(const char *path, const uint8_t *data, uint64_t size, clt_imatrix *out, clt_err *err);
void clt_imatrix_make_dat(const clt_imatrix *m, clt_buf *out);

#endif
