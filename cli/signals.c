/* Signal handling: a flag, the session to cancel, and a pipe that wakes a wait for input. */
#include "signals.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>
#include "out.h"

static volatile sig_atomic_t caught;
static volatile sig_atomic_t waiting;       /* chat waits for a line */
static culet_session *volatile held;
static culet_engine *volatile held_media;
static volatile sig_atomic_t group;         /* processes that we started and wait for */
static int wake[2] = {-1, -1};

static void on_signal(int sig) {
    int saved = errno;
    culet_session *s = held;
    if (waiting) {
        ssize_t ignored = write(wake[1], "", 1);
        (void)ignored;
    } else if (s && !caught) {
        culet_session_cancel(s);
    } else if (held_media && !caught) {
        culet_media_cancel(held_media);
    } else {
        if (group > 0) {
            kill(-group, SIGKILL);
        }
        _exit(128 + sig);
    }
    caught = sig;
    errno = saved;
}

void cli_signals_init(void) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void cli_signals_hold(culet_session *s) {
    if (!held_media) {
        caught = 0;
    }
    held = s;
}

void cli_signals_hold_media(culet_engine *e) {
    caught = 0;
    held_media = e;
}

void cli_signals_release(void) {
    held = NULL;
    held_media = NULL;
}

void cli_signals_group(int id) {
    group = id;
}

int cli_signals_caught(void) {
    return caught;
}

void cli_signals_begin_line(void) {
    caught = 0;
    waiting = wake[0] >= 0 || !pipe2(wake, O_CLOEXEC | O_NONBLOCK);
}

void cli_signals_end_line(void) {
    waiting = 0;
}

bool cli_signals_wait_input(void) {
    if (!waiting) {
        return true; /* there is no pipe: the read that follows waits instead */
    }
    struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = wake[0], .events = POLLIN}};
    int n;
    do {
        n = poll(fds, 2, -1);
    } while (n < 0 && errno == EINTR && !caught);
    char byte;
    while (read(wake[0], &byte, 1) > 0) {
    }
    return !caught;
}

int cli_signals_exit(void) {
    cli_say("culet: interrupted");
    return 128 + caught;
}
