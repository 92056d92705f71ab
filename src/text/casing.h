/* Upper and lower case of single code points. Internal to text. */
#ifndef CLT_TEXT_CASING_H
#define CLT_TEXT_CASING_H
#include <stdint.h>

/* One code point to one code point; "ß" and its like, whose other case is longer, stay as they are. Without libutf8proc
 * only ASCII letters change. */
uint32_t clt_case_upper(uint32_t cp);
uint32_t clt_case_lower(uint32_t cp);

#endif
