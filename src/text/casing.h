/* Upper and lower case of single code points. Internal to text. */
#ifndef CLT_TEXT_CASING_H
#define CLT_TEXT_CASING_H
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* CLT_E_UNSUPPORTED, with the package, if s holds a code point whose case this build does not know. */
clt_status clt_case_check(const char *s, size_t n, clt_err *err);
/* One code point to one code point; "ß" and its like, whose other case is longer, stay as they are. Without libutf8proc
 * only ASCII letters change: see clt_case_check. */
uint32_t clt_case_upper(uint32_t cp);
uint32_t clt_case_lower(uint32_t cp);

#endif
