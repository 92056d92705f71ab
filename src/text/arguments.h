/* Gemma's argument notation with a quote token of the caller's choice. Internal to text. */
#ifndef CLT_TEXT_ARGUMENTS_H
#define CLT_TEXT_ARGUMENTS_H
#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"

/* As clt_arguments_to_json, for UTF-8 text in which `quote` stands for every quote token. */
bool clt_arguments_read(const char *text, size_t len, const char *quote, clt_buf *json);

#endif
