/* Errors: how every part of culet says what went wrong.
 *
 * A function that can fail returns clt_status and takes `clt_err *err` last (never NULL). The text is written once, where
 * the facts are known, and names what, where, expected and found; the hint, where there is one, says what to do. The text
 * has neither a "culet:" prefix nor a final newline: the command line and the server add their own frame. */
#ifndef CLT_BASE_ERR_H
#define CLT_BASE_ERR_H

/* code, name, HTTP status, exit code of the command line */
#define CLT_STATUS_MAP(X)                                                                                                  \
    X(CLT_OK, "ok", 200, 0)                                                                                                \
    X(CLT_E_FAILED, "failed", 500, 1)           /* failure while running */                                                \
    X(CLT_E_USAGE, "usage", 400, 2)             /* the caller asked for something impossible */                            \
    X(CLT_E_CONTEXT, "context_exceeded", 400, 1)/* prompt longer than the context */                                       \
    X(CLT_E_REQUEST, "invalid_request", 400, 1) /* a request document that cannot be honoured */                           \
    X(CLT_E_FILE, "file", 500, 3)               /* model file missing, truncated, corrupt or mismatched */                 \
    X(CLT_E_MEMORY, "out_of_memory", 500, 4)    /* does not fit in memory */                                               \
    X(CLT_E_NETWORK, "network", 502, 5)                                                                                    \
    X(CLT_E_UNSUPPORTED, "unsupported", 400, 6) /* unsupported model, feature or CPU */                                    \
    X(CLT_E_CANCELLED, "cancelled", 499, 130)

typedef enum clt_status {
#define X(code, name, http, exit) code,
    CLT_STATUS_MAP(X)
#undef X
} clt_status;

typedef struct clt_err {
    clt_status code;
    char text[8192]; /* one line, UTF-8, NUL-terminated; control bytes of outside data appear as <0xHH> */
    char hint[512];  /* what to do; empty if there is nothing useful to say */
} clt_err;

const char *clt_status_name(clt_status code);
int clt_status_http(clt_status code);
int clt_status_exit(clt_status code);

/* Fills `err` and returns `code`, so that a failure is one statement: `return clt_fail(err, CLT_E_FILE, "…", …);`
 * Text that does not fit ends in "…", cut at a code point. */
clt_status clt_fail(clt_err *err, clt_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Sets the hint of a failure that was just reported; returns err->code. */
clt_status clt_hint(clt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The usual text for a failed allocation of `bytes` for `what`. */
clt_status clt_fail_memory(clt_err *err, const char *what, unsigned long long bytes);
/* A feature left out at build time: names the feature and the Debian package that brings it. Code CLT_E_UNSUPPORTED. */
clt_status clt_fail_not_built(clt_err *err, const char *feature, const char *package);
void clt_err_clear(clt_err *err);

#endif
