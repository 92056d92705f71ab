/* Upper and lower case of single code points: ASCII by ourselves, the rest by libutf8proc where it is built in. */
#include "text/casing.h"
#if CLT_HAVE_UTF8PROC
#include <utf8proc.h>
#endif

clt_status clt_case_check(const char *s, size_t n, clt_err *err) {
#if CLT_HAVE_UTF8PROC
    (void)s, (void)n, (void)err;
#else
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] >= 0x80) return clt_fail_not_built(err, "tool parameters beyond ASCII", "libutf8proc-dev");
#endif
    return CLT_OK;
}

uint32_t clt_case_upper(uint32_t cp) {
    if (cp < 0x80) return cp >= 'a' && cp <= 'z' ? cp - 0x20 : cp;
#if CLT_HAVE_UTF8PROC
    if (cp != 0xDF) return (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp);
#endif
    return cp;
}

uint32_t clt_case_lower(uint32_t cp) {
    if (cp < 0x80) return cp >= 'A' && cp <= 'Z' ? cp + 0x20 : cp;
#if CLT_HAVE_UTF8PROC
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
#else
    return cp;
#endif
}
