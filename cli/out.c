/* Standard output, standard error, error lines and progress. Knows no command. */
#include "out.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/os.h"

static struct {
    bool in_terminal, out_terminal, err_terminal, colour, quiet;
    int out_errno;         /* of the first failed write to standard output */
    bool progress_shown;
    double progress_ms;    /* when the line was last drawn */
} state;

void cli_out_init(void) {
    /* A descriptor closed by the caller would be reused by the next file opened. Standard output is reopened read-only, so
     * that writing to it still fails. */
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF && open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) != fd) {
            _exit(CULET_FAILED);
        }
    }
    signal(SIGPIPE, SIG_IGN);
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool dumb = !term || !strcmp(term, "dumb");
    state.in_terminal = isatty(STDIN_FILENO) == 1;
    state.out_terminal = isatty(STDOUT_FILENO) == 1;
    state.err_terminal = isatty(STDERR_FILENO) == 1 && !dumb;
    state.colour = state.err_terminal && !(no_color && no_color[0]);
}

void cli_out_quiet(bool quiet) {
    state.quiet = quiet;
}

bool cli_out_terminal(void) {
    return state.out_terminal;
}

bool cli_err_terminal(void) {
    return state.err_terminal;
}

bool cli_in_terminal(void) {
    return state.in_terminal;
}

/* Writes all bytes; 0 or errno. */
static int write_all(int fd, const char *bytes, size_t n) {
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR) {
            return errno;
        }
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
    return 0;
}

bool cli_out(const void *bytes, size_t n) {
    cli_progress_end();
    if (!state.out_errno) {
        state.out_errno = write_all(STDOUT_FILENO, bytes, n);
    }
    return !state.out_errno;
}

bool cli_out_buf(const clt_buf *b) {
    if (b->failed && !state.out_errno) {
        state.out_errno = ENOMEM;
    }
    return cli_out(b->data, b->len);
}

bool cli_outf(const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return n >= 0 && cli_out(text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

/* Control codes of a terminal: C0 but newline and tab, DEL, and C1, which UTF-8 writes as C2 80..9F. */
static size_t control_bytes(const char *s, size_t n) {
    unsigned char c = (unsigned char)s[0];
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
        return 1;
    }
    bool c1 = c == 0xc2 && n > 1 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] < 0xa0;
    return c1 ? 2 : 0;
}

static void neutralise(clt_buf *out, const char *text, size_t n) {
    for (size_t i = 0; i < n;) {
        size_t control = control_bytes(text + i, n - i);
        if (control) {
            clt_buf_puts(out, "\xef\xbf\xbd");
            i += control;
        } else {
            clt_buf_putc(out, text[i++]);
        }
    }
}

bool cli_out_text(const char *text, size_t n) {
    if (!state.out_terminal) {
        return cli_out(text, n);
    }
    clt_buf safe = {0};
    neutralise(&safe, text, n);
    bool ok = cli_out_buf(&safe);
    clt_buf_free(&safe);
    return ok;
}

void cli_err_text(const char *text, size_t n, bool dim) {
    clt_buf safe = {0};
    cli_progress_end();
    if (dim && state.colour) {
        clt_buf_puts(&safe, "\x1b[2m");
    }
    if (state.err_terminal) {
        neutralise(&safe, text, n);
    } else {
        clt_buf_put(&safe, text, n);
    }
    if (dim && state.colour) {
        clt_buf_puts(&safe, "\x1b[0m");
    }
    write_all(STDERR_FILENO, safe.data, safe.len);
    clt_buf_free(&safe);
}

static void say(const char *prefix, const char *fmt, va_list args) {
    char text[8192];
    int n = snprintf(text, sizeof(text) - 1, "%s", prefix);
    int more = vsnprintf(text + n, sizeof(text) - 1 - (size_t)n, fmt, args);
    size_t len = more < 0 ? (size_t)n : (size_t)(n + more);
    len = len < sizeof(text) - 2 ? len : sizeof(text) - 2;
    text[len++] = '\n';
    cli_err_text(text, len, false);
}

void cli_note(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    if (!state.quiet) {
        say("culet: ", fmt, args);
    }
    va_end(args);
}

void cli_say(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    say("", fmt, args);
    va_end(args);
}

static void print_error(const char *text, const char *hint) {
    clt_buf line = {0};
    clt_buf_printf(&line, "culet: %s\n", text);
    if (hint[0]) {
        clt_buf_printf(&line, "%s\n", hint);
    }
    cli_err_text(line.data, line.len, false);
    clt_buf_free(&line);
}

int cli_fail(const clt_err *e) {
    print_error(e->text, e->hint);
    return clt_status_exit(e->code);
}

int cli_fail_engine(const culet_error *e) {
    print_error(e->text, e->hint);
    return culet_status_exit(e->status);
}

int cli_failf(clt_status status, const char *fmt, ...) {
    char text[4096];
    clt_err err;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    clt_err_clear(&err);
    clt_fail(&err, status, "%s", text);
    return cli_fail(&err);
}

int cli_finish(int code) {
    cli_progress_end();
    if (!state.out_errno) {
        return code;
    }
    cli_failf(CLT_E_FAILED, "standard output: %s", strerror(state.out_errno));
    return code ? code : CULET_FAILED;
}

void cli_progress(const char *label, double done) {
    enum { WIDTH = 30, BETWEEN_MS = 100 };
    double now = clt_now_ms();
    if (!state.err_terminal || state.quiet || (state.progress_shown && now - state.progress_ms < BETWEEN_MS)) {
        return;
    }
    char bar[WIDTH + 1], line[128];
    int full = done < 0 ? 0 : done > 1 ? WIDTH : (int)(done * WIDTH);
    for (int i = 0; i < WIDTH; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[WIDTH] = 0;
    int n = snprintf(line, sizeof(line), "\r%-10.10s [%s] %3d%%", label, bar, full * 100 / WIDTH);
    write_all(STDERR_FILENO, line, (size_t)n);
    state.progress_shown = true;
    state.progress_ms = now;
}

void cli_progress_end(void) {
    static const char erase[] = "\r\x1b[K";
    if (state.progress_shown) {
        state.progress_shown = false;
        write_all(STDERR_FILENO, erase, sizeof(erase) - 1);
    }
}

bool cli_on_prompt_progress(void *user, size_t done, size_t total) {
    (void)user;
    if (done < total) cli_progress("reading", (double)done / (double)total);
    else cli_progress_end();
    return true;
}
