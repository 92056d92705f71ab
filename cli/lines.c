/* Reads lines. Waits so that a signal ends the wait, whatever reads. */
#include "lines.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#include "base/mem.h"
#include "out.h"
#include "signals.h"
#ifdef CLT_HAVE_LIBEDIT
#include <histedit.h>
#endif

struct cli_lines {
    clt_buf pending;     /* bytes read and not yet handed out */
    size_t taken;        /* of pending */
    bool ended;
    bool terminal;
    const char *prompt;
#ifdef CLT_HAVE_LIBEDIT
    EditLine *edit;
    History *history;
    FILE *in, *out;
#endif
};

/* ---- libedit ---- */

#ifdef CLT_HAVE_LIBEDIT
static char *edit_prompt(EditLine *edit) {
    cli_lines *l = NULL;
    el_get(edit, EL_CLIENTDATA, &l);
    return (char *)(uintptr_t)l->prompt; /* libedit does not write to it */
}

/* One character of the terminal, waiting so that a signal ends the line. */
static int edit_getc(EditLine *edit, wchar_t *out) {
    mbstate_t state = {0};
    (void)edit;
    for (;;) {
        char byte;
        if (!cli_signals_wait_input()) {
            return -1;
        }
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n <= 0) {
            return n == 0 ? 0 : -1;
        }
        size_t used = mbrtowc(out, &byte, 1, &state);
        if (used != (size_t)-2) { /* -2: more bytes are needed */
            if (used == (size_t)-1) {
                *out = L'\xfffd';
            }
            return 1;
        }
    }
}

static void edit_open(cli_lines *l) {
    HistEvent event;
    l->in = fdopen(dup(STDIN_FILENO), "r");
    l->out = fdopen(dup(STDERR_FILENO), "w");
    l->edit = l->in && l->out ? el_init("culet", l->in, l->out, l->out) : NULL;
    l->history = l->edit ? history_init() : NULL;
    if (!l->history) {
        return;
    }
    history(l->history, &event, H_SETSIZE, 1000);
    history(l->history, &event, H_SETUNIQUE, 1);
    el_set(l->edit, EL_CLIENTDATA, l);
    el_set(l->edit, EL_PROMPT, edit_prompt);
    el_set(l->edit, EL_EDITOR, "emacs");
    el_set(l->edit, EL_HIST, history, l->history);
    el_set(l->edit, EL_GETCFN, edit_getc);
}

static void edit_close(cli_lines *l) {
    if (l->edit) {
        el_end(l->edit);
    }
    if (l->history) {
        history_end(l->history);
    }
    if (l->in) {
        fclose(l->in);
    }
    if (l->out) {
        fclose(l->out);
    }
}

static cli_line_result edit_next(cli_lines *l, clt_buf *line) {
    int n = 0;
    const char *text = el_gets(l->edit, &n);
    if (cli_signals_caught()) {
        return CLI_LINE_SIGNAL;
    }
    if (!text || n <= 0) {
        return CLI_LINE_END;
    }
    HistEvent event;
    if (n > 1) {
        history(l->history, &event, H_ENTER, text);
    }
    clt_buf_put(line, text, (size_t)n - (text[n - 1] == '\n'));
    return line->failed ? CLI_LINE_FAILED : CLI_LINE;
}
#endif

/* ---- plain ---- */

/* Reads one more block; false at the end or on a signal. */
static bool read_block(cli_lines *l) {
    char block[4096];
    if (!cli_signals_wait_input()) {
        return false;
    }
    ssize_t n = read(STDIN_FILENO, block, sizeof(block));
    if (n > 0) {
        clt_buf_put(&l->pending, block, (size_t)n);
    }
    l->ended |= n == 0 || (n < 0 && errno != EINTR);
    return !l->ended && !l->pending.failed;
}

static cli_line_result plain_next(cli_lines *l, clt_buf *line) {
    if (l->terminal) {
        cli_err_text(l->prompt, strlen(l->prompt), false);
    }
    for (;;) {
        size_t left = l->pending.len - l->taken;
        const char *start = l->pending.data + l->taken;
        const char *end = left ? memchr(start, '\n', left) : NULL;
        if (end || (l->ended && left)) {
            size_t n = end ? (size_t)(end - start) : left;
            clt_buf_put(line, start, n - (n > 0 && start[n - 1] == '\r')); /* lines of a Windows file */
            l->taken += n + (end != NULL);
            return line->failed ? CLI_LINE_FAILED : CLI_LINE;
        }
        if (l->ended) {
            return CLI_LINE_END;
        }
        /* The rest of an unfinished line moves to the front, so that the buffer stays as long as one line. */
        if (l->taken) {
            memmove(l->pending.data, start, left);
            l->pending.len = left;
            l->taken = 0;
        }
        if (!read_block(l) && !l->ended) {
            return l->pending.failed ? CLI_LINE_FAILED : CLI_LINE_SIGNAL;
        }
    }
}

/* ---- both ---- */

cli_lines *cli_lines_open(void) {
    cli_lines *l = clt_calloc(1, sizeof(*l));
    if (!l) {
        return NULL;
    }
    l->terminal = cli_in_terminal();
#ifdef CLT_HAVE_LIBEDIT
    if (l->terminal && cli_err_terminal()) {
        edit_open(l);
    }
#endif
    return l;
}

cli_line_result cli_lines_next(cli_lines *l, const char *prompt, clt_buf *line) {
    cli_line_result result;
    clt_buf_reset(line);
    l->prompt = prompt;
    cli_signals_begin_line();
#ifdef CLT_HAVE_LIBEDIT
    result = l->history ? edit_next(l, line) : plain_next(l, line);
#else
    result = plain_next(l, line);
#endif
    cli_signals_end_line();
    return result;
}

void cli_lines_close(cli_lines *l) {
    if (!l) {
        return;
    }
#ifdef CLT_HAVE_LIBEDIT
    edit_close(l);
#endif
    clt_buf_free(&l->pending);
    clt_free(l);
}
