/* Starts a process, reads what it writes, waits for its end. Judges nothing: exit codes and output are the caller's. */
#include "child.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "signals.h"

enum { MOST_OUT_BYTES = 64 << 20, ERR_BYTES = 16 << 10 };

/* ---- words ---- */

void cli_words_add(cli_words *w, const char *word) {
    char **grown = w->failed ? NULL : clt_realloc(w->items, (w->n + 2) * sizeof(*grown));
    if (!grown) {
        w->failed = true;
        return;
    }
    w->items = grown;
    w->items[w->n + 1] = NULL;
    w->items[w->n] = clt_strdup(word);
    w->failed = !w->items[w->n];
    w->n += !w->failed;
}

void cli_words_addf(cli_words *w, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    cli_words_add(w, text);
}

void cli_words_list(cli_words *w, const char *flag, const clt_ids *list) {
    clt_buf text = {0};
    for (size_t i = 0; i < list->len; i++) {
        clt_buf_printf(&text, "%s%d", i ? "," : "", list->data[i]);
    }
    cli_words_add(w, flag);
    cli_words_add(w, text.data ? text.data : "");
    w->failed |= text.failed;
    clt_buf_free(&text);
}

void cli_words_split(cli_words *w, const char *text) {
    while (*(text += strspn(text, " \t\n"))) {
        size_t n = strcspn(text, " \t\n");
        char *word = clt_strndup(text, n);
        if (word) {
            cli_words_add(w, word);
        }
        w->failed |= !word;
        clt_free(word);
        text += n;
    }
}

void cli_words_free(cli_words *w) {
    for (size_t i = 0; i < w->n; i++) {
        clt_free(w->items[i]);
    }
    clt_free(w->items);
    *w = (cli_words){0};
}

/* ---- the process ---- */

/* In the child, between fork and exec: only calls that are safe there. */
static void become(const cli_words *words, int out, int err, int report, pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if we are killed without a chance to end it */
    int in = open("/dev/null", O_RDONLY);
    if (in >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err, 2) == 2 && getppid() == parent) {
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGPIPE, SIG_DFL);
        execvp(words->items[0], words->items);
    }
    int why = errno;
    ssize_t ignored = write(report, &why, sizeof(why));
    (void)ignored;
    _exit(127);
}

clt_status cli_process_start(const cli_words *words, cli_process *p, clt_err *err) {
    if (words->failed || !words->n) {
        return clt_fail_memory(err, "arguments", words->n * sizeof(char *));
    }
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, why = 0;
    const char *name = words->items[0];
    pid_t parent = getpid();
    bool ok = true;
    for (int i = 0; i < 3 && ok; i++) {
        ok = !pipe2(pipes[i], O_CLOEXEC);
    }
    p->id = ok ? fork() : -1;
    if (p->id == 0) {
        become(words, pipes[0][1], pipes[1][1], pipes[2][1], parent);
    }
    why = p->id < 0 ? errno : 0;
    for (int i = 0; i < 3; i++) {
        if (pipes[i][1] >= 0) {
            close(pipes[i][1]);
        }
    }
    if (p->id > 0 && read(pipes[2][0], &why, sizeof(why)) != sizeof(why)) {
        why = 0; /* closed by a successful exec */
    }
    if (pipes[2][0] >= 0) {
        close(pipes[2][0]);
    }
    p->out = pipes[0][0];
    p->err = pipes[1][0];
    if (!why) {
        setpgid(p->id, p->id); /* both sides do this, so that it is done before either goes on */
        return CLT_OK;
    }
    for (int i = 0; i < 2; i++) {
        if (pipes[i][0] >= 0) {
            close(pipes[i][0]);
        }
    }
    if (p->id > 0) {
        waitpid(p->id, NULL, 0);
    }
    return clt_fail(err, CLT_E_FAILED, "%s: cannot be started: %s", name, strerror(why));
}

void cli_process_kill(cli_process *p) {
    if (p->id > 0) {
        kill(-p->id, SIGKILL);
        waitpid(p->id, NULL, 0);
        close(p->out);
        close(p->err);
    }
    p->id = 0;
}

/* Reads what is there; false at the end. */
static bool take(int fd, clt_buf *into) {
    char block[16384];
    ssize_t n = read(fd, block, sizeof(block));
    if (n > 0) {
        clt_buf_put(into, block, (size_t)n);
    }
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static void keep_end(clt_buf *b) {
    if (b->len > 2 * ERR_BYTES) {
        memmove(b->data, b->data + b->len - ERR_BYTES, ERR_BYTES);
        b->len = ERR_BYTES;
        b->data[b->len] = 0;
    }
}

/* Until both pipes are closed or a limit is reached. */
static void listen_to(cli_process *p, double limit_ms, cli_child *c) {
    struct pollfd fds[2] = {{.fd = p->out, .events = POLLIN}, {.fd = p->err, .events = POLLIN}};
    while (fds[0].fd >= 0 || fds[1].fd >= 0) {
        double left = c->started_ms + limit_ms - clt_now_ms();
        c->timed_out = left <= 0;
        c->too_much = c->out.len > MOST_OUT_BYTES;
        if (c->timed_out || c->too_much || c->out.failed) {
            return;
        }
        poll(fds, 2, left < 1000 ? (int)left + 1 : 1000);
        clt_buf *into[2] = {&c->out, &c->err};
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd >= 0 && fds[i].revents && !take(fds[i].fd, into[i])) {
                fds[i].fd = -1;
            }
        }
        keep_end(&c->err);
    }
}

/* Its pipes are closed, but it may still run. False when the limit passed first. */
static bool wait_for_end(pid_t id, double until_ms, int *status) {
    for (;;) {
        pid_t got = waitpid(id, status, WNOHANG);
        if (got == id || (got < 0 && errno != EINTR)) {
            return true;
        }
        if (clt_now_ms() > until_ms) {
            return false;
        }
        poll(NULL, 0, 1);
    }
}

clt_status cli_child_run(const cli_words *words, double limit_ms, cli_child *out, clt_err *err) {
    cli_process p;
    int status = 0;
    *out = (cli_child){.started_ms = clt_now_ms()};
    clt_status st = cli_process_start(words, &p, err);
    if (st) {
        return st;
    }
    cli_signals_group(p.id);
    listen_to(&p, limit_ms, out);
    if (!out->timed_out && !out->too_much && !wait_for_end(p.id, out->started_ms + limit_ms, &status)) {
        out->timed_out = true;
    }
    if (out->timed_out || out->too_much || out->out.failed) {
        kill(-p.id, SIGKILL);
        waitpid(p.id, &status, 0);
    }
    cli_signals_group(0);
    out->ms = clt_now_ms() - out->started_ms;
    close(p.out);
    close(p.err);
    out->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return out->out.failed ? clt_fail_memory(err, "output of another program", out->out.len) : CLT_OK;
}

void cli_child_free(cli_child *c) {
    clt_buf_free(&c->out);
    clt_buf_free(&c->err);
}

bool cli_child_exists(const char *name) {
    const char *path = getenv("PATH");
    if (strchr(name, '/') || !path) {
        return clt_is_file(name) && !access(name, X_OK);
    }
    while (*path) {
        char full[4096];
        size_t n = strcspn(path, ":");
        int len = snprintf(full, sizeof(full), "%.*s/%s", (int)n, n ? path : ".", name);
        if (len < (int)sizeof(full) && clt_is_file(full) && !access(full, X_OK)) {
            return true;
        }
        path += n + (path[n] == ':');
    }
    return false;
}
