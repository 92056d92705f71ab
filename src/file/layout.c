/* Where tensors lie inside one file: spans of bytes come in; past the end, overlapping or (packed) leaving holes is refused.
 * Knows neither types nor formats. */
#include <inttypes.h>
#include <stdlib.h>
#include "file/impl.h"

static clt_status check_end(const char *path, const clt_span *spans, size_t n, uint64_t file_bytes, clt_err *err) {
    const clt_span *first = NULL;
    uint64_t need = 0;
    size_t beyond = 0;
    for (size_t i = 0; i < n; i++) {
        if (spans[i].end > need) need = spans[i].end;
        if (spans[i].end <= file_bytes) continue;
        if (!first) first = &spans[i];
        beyond++;
    }
    if (!first) return CLT_OK;
    char shown[CLT_SHOWN_BYTES];
    clt_fail(err, CLT_E_FILE,
             "%s: truncated or damaged: tensor '%s' (offset %" PRIu64 ", %" PRIu64 " bytes) runs past the end of the file: "
             "expected %" PRIu64 " bytes in all, found %" PRIu64 " (%zu of %zu tensors are affected)",
             path, clt_shown(shown, first->name, strlen(first->name)), first->begin, first->end - first->begin, need,
             file_bytes, beyond, n);
    return clt_hint(err, "the download may be incomplete: fetch the file again");
}

static int by_begin(const void *a, const void *b) {
    const clt_span *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Files list their tensors in order almost always: then there is nothing to sort. */
static void sort_spans(clt_span *spans, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (by_begin(&spans[i - 1], &spans[i]) <= 0) continue;
        qsort(spans, n, sizeof *spans, by_begin);
        return;
    }
}

static clt_status fail_hole(const char *path, uint64_t begin, uint64_t end, clt_err *err) {
    return clt_fail(err, CLT_E_FILE, "%s: damaged: bytes %" PRIu64 " to %" PRIu64 " belong to no tensor", path, begin, end);
}

static clt_status fail_overlap(const char *path, const clt_span *span, const char *before, uint64_t end, clt_err *err) {
    char a[CLT_SHOWN_BYTES], b[CLT_SHOWN_BYTES];
    return clt_fail(err, CLT_E_FILE, "%s: damaged: tensor '%s' at offset %" PRIu64 " overlaps '%s', which ends at %" PRIu64,
                    path, clt_shown(a, span->name, strlen(span->name)), span->begin,
                    clt_shown(b, before, strlen(before)), end);
}

clt_status clt_layout_check(const char *path, clt_span *spans, size_t n, uint64_t data_begin, uint64_t file_bytes,
                            bool packed, clt_err *err) {
    clt_status st = check_end(path, spans, n, file_bytes, err);
    if (st) return st;
    sort_spans(spans, n);
    uint64_t end = data_begin; /* all bytes before this one are taken */
    for (size_t i = 0; i < n; i++) {
        if (spans[i].begin < end) return fail_overlap(path, &spans[i], i ? spans[i - 1].name : "the header", end, err);
        if (packed && spans[i].begin > end) return fail_hole(path, end, spans[i].begin, err);
        end = spans[i].end;
    }
    if (packed && end != file_bytes) return fail_hole(path, end, file_bytes, err);
    return CLT_OK;
}
