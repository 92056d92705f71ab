/* UTF-8: decode, check, repair. Pure functions. */
#ifndef CLT_BASE_UTF8_H
#define CLT_BASE_UTF8_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"

/* Bytes of the code point at s (1..4) and its value, or 0 if s[0..n) does not start with a valid sequence. */
size_t clt_utf8_decode(const char *s, size_t n, uint32_t *cp);
size_t clt_utf8_encode(uint32_t cp, char out[4]); /* bytes written; 0 for a surrogate or a value beyond U+10FFFF */
bool clt_utf8_valid(const char *s, size_t n);
/* Length of the longest prefix that ends at a code point boundary: what follows is the valid beginning of a sequence that
 * more bytes could complete. Bytes that can never become valid do not hold anything back. */
size_t clt_utf8_complete(const char *s, size_t n);
/* Appends s with every maximal ill-formed subpart replaced by U+FFFD (Unicode 15, section 3.9). */
void clt_utf8_repair(clt_buf *out, const char *s, size_t n);
/* White space as Python's str.strip() sees it. */
bool clt_utf8_is_space(uint32_t cp);
void clt_utf8_trim(const char **s, size_t *n); /* moves both ends inwards over white space */

#endif
