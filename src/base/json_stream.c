/* The JSON stream for documents that are too big for a tree: text in, events out. A thin face over yajl. Duplicate keys
 * pass: the reader of the events has the table that can tell. */
#include "base/json.h"
#include "base/json_check.h"

#if CLT_HAVE_YAJL
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

typedef struct stream {
    const clt_json_events *ev;
    void *ctx;
} stream;

static int scalar(void *ctx, clt_json_type t, const char *text, size_t len) {
    stream *s = ctx;
    return !s->ev->on_scalar || s->ev->on_scalar(s->ctx, t, text, len);
}

static int on_null(void *ctx) {
    return scalar(ctx, CLT_JSON_NULL, "null", 4);
}

static int on_boolean(void *ctx, int is_true) {
    return is_true ? scalar(ctx, CLT_JSON_BOOL, "true", 4) : scalar(ctx, CLT_JSON_BOOL, "false", 5);
}

static int on_number(void *ctx, const char *text, size_t len) {
    bool real = memchr(text, '.', len) || memchr(text, 'e', len) || memchr(text, 'E', len);
    return scalar(ctx, real ? CLT_JSON_REAL : CLT_JSON_INT, text, len);
}

static int on_string(void *ctx, const unsigned char *text, size_t len) {
    stream *s = ctx;
    return !s->ev->on_string || s->ev->on_string(s->ctx, (const char *)text, len);
}

static int on_key(void *ctx, const unsigned char *text, size_t len) {
    stream *s = ctx;
    return !s->ev->on_key || s->ev->on_key(s->ctx, (const char *)text, len);
}

static int opened(void *ctx, bool is_array) {
    stream *s = ctx;
    return !s->ev->on_open || s->ev->on_open(s->ctx, is_array);
}

static int closed(void *ctx, bool is_array) {
    stream *s = ctx;
    return !s->ev->on_close || s->ev->on_close(s->ctx, is_array);
}

static int on_object_open(void *ctx) {
    return opened(ctx, false);
}

static int on_object_close(void *ctx) {
    return closed(ctx, false);
}

static int on_array_open(void *ctx) {
    return opened(ctx, true);
}

static int on_array_close(void *ctx) {
    return closed(ctx, true);
}

static clt_status report(yajl_handle h, yajl_status status, const char *what, clt_err *err) {
    if (status == yajl_status_client_canceled) {
        if (err->code != CLT_OK) return err->code;
        return clt_fail(err, CLT_E_FAILED, "%s: reading stopped at byte %zu", what, yajl_get_bytes_consumed(h));
    }
    unsigned char *text = yajl_get_error(h, 0, NULL, 0);
    int len = text ? (int)strcspn((char *)text, "\n") : 0;
    clt_fail(err, CLT_E_REQUEST, "%s: not valid JSON: %.*s (byte %zu)", what, len, text ? (char *)text : "",
             yajl_get_bytes_consumed(h));
    yajl_free_error(h, text);
    return err->code;
}

clt_status clt_json_stream(const char *text, size_t len, const char *what, const clt_json_events *ev, void *ctx,
                           clt_err *err) {
    static const yajl_callbacks callbacks = {
        .yajl_null = on_null, .yajl_boolean = on_boolean,
        .yajl_number = on_number, .yajl_string = on_string,
        .yajl_start_map = on_object_open, .yajl_map_key = on_key,
        .yajl_end_map = on_object_close, .yajl_start_array = on_array_open,
        .yajl_end_array = on_array_close,
    };
    clt_err_clear(err);
    clt_status status = clt_json_check(text, len, what, err);
    if (status != CLT_OK) return status;
    stream s = {ev, ctx};
    yajl_handle h = yajl_alloc(&callbacks, NULL, &s); /* libc's memory: yajl does not survive an allocator that fails */
    if (!h) return clt_fail_memory(err, what, len);
    yajl_status parsed = yajl_parse(h, (const unsigned char *)text, len);
    if (parsed == yajl_status_ok) parsed = yajl_complete_parse(h);
    if (parsed != yajl_status_ok) status = report(h, parsed, what, err);
    yajl_free(h);
    return status;
}
#else
clt_status clt_json_stream(const char *text, size_t len, const char *what, const clt_json_events *ev, void *ctx,
                           clt_err *err) {
    (void)text, (void)len, (void)what, (void)ev, (void)ctx;
    return clt_fail_not_built(err, "reading large JSON files", "libyajl-dev");
}
#endif
