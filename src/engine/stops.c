/* Stop strings over a growing text. Knows bytes only; all texts are whole UTF-8, so a match begins at a code point. */
#include "engine/stops.h"
#include <string.h>

clt_status clt_stops_init(clt_stops *st, const char *const *strings, size_t n, clt_err *err) {
    *st = (clt_stops){.strings = strings, .n = n};
    for (size_t i = 0; i < n; i++) {
        size_t len = strings[i] ? strlen(strings[i]) : 0;
        if (len == 0) return clt_fail(err, CLT_E_USAGE, "stop string %zu is empty", i + 1);
        if (len > st->longest) st->longest = len;
    }
    return CLT_OK;
}

/* Length of the longest string that ends at text[0..end); 0 if none does. */
static size_t longest_ending(const clt_stops *st, const char *text, size_t end) {
    size_t longest = 0;
    for (size_t i = 0; i < st->n; i++) {
        size_t len = strlen(st->strings[i]);
        if (len > longest && len <= end && memcmp(text + end - len, st->strings[i], len) == 0) longest = len;
    }
    return longest;
}

static bool begins_one(const clt_stops *st, const char *tail, size_t len) {
    for (size_t i = 0; i < st->n; i++)
        if (strncmp(st->strings[i], tail, len) == 0) return true;
    return false;
}

bool clt_stops_find(clt_stops *st, const char *text, size_t len, size_t *at) {
    while (st->searched < len) {
        size_t found = longest_ending(st, text, ++st->searched);
        if (found == 0) continue;
        *at = st->searched - found;
        return true;
    }
    size_t held = st->longest > len ? len : st->longest;
    while (held > 0 && !begins_one(st, text + len - held, held)) held--;
    *at = len - held;
    return false;
}
