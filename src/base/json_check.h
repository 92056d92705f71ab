/* What both JSON readers check before their library sees the text. Internal to base. */
#ifndef CLT_BASE_JSON_CHECK_H
#define CLT_BASE_JSON_CHECK_H
#include <stddef.h>
#include "base/err.h"

enum { CLT_JSON_MAX_DEPTH = 64 };

/* Refuses text that is not UTF-8, nests deeper than CLT_JSON_MAX_DEPTH, escapes half a surrogate pair or holds a NUL
 * outside a string. Everything else about the grammar is the library's to judge. `what` names the document in errors;
 * the code is CLT_E_REQUEST. */
clt_status clt_json_check(const char *text, size_t len, const char *what, clt_err *err);

#endif
