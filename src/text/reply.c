/* Reply parsing: sampled ids -> content, thought, calls.
 *
 * A machine with four states, driven by ids alone, so that text which looks like a marker stays text:
 *
 *   CONTENT --<|channel>--> NAME --newline--> THOUGHT --<channel|>--> CONTENT
 *   CONTENT, NAME, THOUGHT --<|tool_call>--> CALL --<tool_call|>--> CONTENT
 *
 * Framing that is not shown: the channel's name with its newline, and the one newline before <channel|>. A first line that
 * cannot be a name (more than one word) is thought. A lone <channel|> and all other special tokens show nothing.
 * Thoughts are concatenated as they come. A call is call:NAME{…}; one that cannot be read is shown as content. */
#include "text/reply.h"
#include <string.h>
#include "base/mem.h"
#include "base/utf8.h"
#include "text/arguments.h"

enum { MAX_NAME_BYTES = 64 }; /* a channel name longer than this is none */

/* Stands for a quote token inside the text of a call: no valid UTF-8 holds this byte. */
#define QUOTE "\xFF"

typedef enum state { IN_CONTENT, IN_NAME, IN_THOUGHT, IN_CALL } state;

typedef struct call {
    char *name;
    clt_buf arguments;
} call;

struct clt_reply {
    const clt_vocab *vocab;
    const clt_vocab_roles *roles;
    bool raw;
    state state;
    bool held_newline; /* a newline of the thought that may turn out to be framing */
    clt_detok detok;
    clt_buf fresh;     /* text of one id */
    clt_buf line;      /* IN_NAME: what came since <|channel>; IN_CALL: since <|tool_call> */
    clt_buf content, thought;
    call *calls;
    size_t n_calls, cap_calls;
};

clt_status clt_reply_create(const clt_vocab *v, bool in_thought, bool raw, clt_reply **out, clt_err *err) {
    clt_reply *r = clt_calloc(1, sizeof *r);
    *out = r;
    if (!r) return clt_fail_memory(err, "reply", sizeof *r);
    r->vocab = v;
    r->roles = clt_vocab_get_roles(v);
    r->raw = raw;
    r->state = in_thought && !raw ? IN_THOUGHT : IN_CONTENT;
    clt_detok_init(&r->detok, v, false);
    return CLT_OK;
}

void clt_reply_free(clt_reply *r) {
    if (!r) return;
    for (size_t i = 0; i < r->n_calls; i++) {
        clt_free(r->calls[i].name);
        clt_buf_free(&r->calls[i].arguments);
    }
    clt_free(r->calls);
    clt_buf_free(&r->fresh);
    clt_buf_free(&r->line);
    clt_buf_free(&r->content);
    clt_buf_free(&r->thought);
    clt_free(r);
}

/* ---- thought ---- */

static void put_thought(clt_reply *r, const char *s, size_t n) {
    if (n == 0) return;
    if (r->held_newline) clt_buf_putc(&r->thought, '\n');
    r->held_newline = s[n - 1] == '\n';
    clt_buf_put(&r->thought, s, r->held_newline ? n - 1 : n);
}

static bool is_name(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (s[i] == ' ' || s[i] == '\t') return false;
    }
    return n <= MAX_NAME_BYTES;
}

/* The first line after <|channel>, as far as it came: decides whether it is a name as soon as that is certain. */
static void take_name(clt_reply *r) {
    const char *newline = r->line.len ? memchr(r->line.data, '\n', r->line.len) : NULL;
    size_t first = newline ? (size_t)(newline - r->line.data) : r->line.len;
    if (!newline && is_name(r->line.data, first)) return;
    size_t skipped = newline && is_name(r->line.data, first) ? first + 1 : 0;
    put_thought(r, r->line.data + skipped, r->line.len - skipped);
    clt_buf_reset(&r->line);
    r->state = IN_THOUGHT;
}

/* <channel|>, or whatever else ends a thought. closed: by its own marker, so a newline before it is framing. */
static void end_thought(clt_reply *r, bool closed) {
    if (r->state == IN_NAME) {
        static const char known[] = "thought"; /* without a newline only this name, or its beginning, is one */
        bool name = r->line.len < sizeof known && memcmp(known, r->line.len ? r->line.data : "", r->line.len) == 0;
        if (!name) put_thought(r, r->line.data, r->line.len);
        clt_buf_reset(&r->line);
    }
    if (r->held_newline && !closed) clt_buf_putc(&r->thought, '\n');
    r->held_newline = false;
    r->state = IN_CONTENT;
}

/* ---- calls ---- */

/* The text of an unreadable call, its quote tokens spelled out. */
static void put_call_as_content(clt_reply *r) {
    const char *s = r->line.data, *end = s + r->line.len;
    while (s < end) {
        const char *quote = memchr(s, QUOTE[0], (size_t)(end - s));
        clt_buf_put(&r->content, s, (size_t)((quote ? quote : end) - s));
        if (!quote) break;
        clt_buf_puts(&r->content, "<|\"|>");
        s = quote + 1;
    }
}

static bool grow_calls(clt_reply *r) {
    if (r->n_calls < r->cap_calls) return true;
    size_t cap = r->cap_calls ? r->cap_calls * 2 : 4;
    call *grown = clt_realloc(r->calls, cap * sizeof *grown);
    if (!grown) return false;
    r->calls = grown;
    r->cap_calls = cap;
    return true;
}

/* Reads call:NAME{…} into the next call; false if it is not that. */
static bool read_call(clt_reply *r, call *out) {
    const char *s = r->line.data, *end = s + r->line.len;
    size_t n = r->line.len;
    clt_utf8_trim(&s, &n);
    if (n < 5 || memcmp(s, "call:", 5) != 0) return false;
    s += 5;
    const char *brace = memchr(s, '{', (size_t)(end - s)), *name = s;
    if (!brace || memchr(s, QUOTE[0], (size_t)(brace - s))) return false;
    size_t name_len = (size_t)(brace - s);
    clt_utf8_trim(&name, &name_len);
    if (name_len == 0 || memchr(name, '\0', name_len)) return false;
    if (!clt_arguments_read(brace, (size_t)(end - brace), QUOTE, &out->arguments)) return false;
    out->name = clt_strndup(name, name_len);
    if (!out->name) r->content.failed = true;
    return true;
}

static void end_call(clt_reply *r) {
    call c = {0};
    r->state = IN_CONTENT;
    if (r->line.len == 0) return;
    if (!grow_calls(r)) r->content.failed = true;
    else if (read_call(r, &c)) r->calls[r->n_calls++] = c;
    else if (c.arguments.failed) r->content.failed = true;
    else put_call_as_content(r);
    if (!c.name) clt_buf_free(&c.arguments);
    clt_buf_reset(&r->line);
}

/* ---- ids ---- */

/* Gives text to whatever the state collects. */
static void take_text(clt_reply *r, const char *s, size_t n) {
    if (n == 0) return;
    switch (r->state) {
    case IN_CONTENT: clt_buf_put(&r->content, s, n); break;
    case IN_THOUGHT: put_thought(r, s, n); break;
    case IN_CALL: clt_buf_put(&r->line, s, n); break;
    case IN_NAME:
        clt_buf_put(&r->line, s, n);
        if (!r->line.failed) take_name(r);
        break;
    }
}

/* Bytes of an unfinished code point cannot be continued across a marker. */
static void flush_bytes(clt_reply *r) {
    clt_buf_reset(&r->fresh);
    clt_detok_end(&r->detok, &r->fresh);
    take_text(r, r->fresh.data, r->fresh.len);
}

/* Ends what is open and enters a state. */
static void enter(clt_reply *r, state next) {
    if (r->state == IN_CALL) end_call(r);
    if (r->state == IN_NAME || r->state == IN_THOUGHT) end_thought(r, true);
    r->state = next;
}

/* Whether id is one that structures a reply, and if so, acts on it. */
static bool take_marker(clt_reply *r, int32_t id) {
    const clt_vocab_roles *o = r->roles;
    if (id != o->channel_open && id != o->channel_close && id != o->call_open && id != o->call_close && id != o->quote &&
        id != o->response_open) {
        return false;
    }
    flush_bytes(r);
    if (id == o->channel_open) enter(r, IN_NAME);
    else if (id == o->call_open) enter(r, IN_CALL);
    else if (id == o->quote) take_text(r, QUOTE, r->state == IN_CALL ? 1 : 0);
    else if (id == o->channel_close && r->state != IN_CALL) enter(r, IN_CONTENT);
    else if (id != o->channel_close && r->state == IN_CALL) enter(r, IN_CONTENT);
    return true;
}

static clt_status check(const clt_reply *r, clt_err *err) {
    bool failed = r->fresh.failed || r->line.failed || r->content.failed || r->thought.failed;
    return failed ? clt_fail_memory(err, "reply text", r->content.len + r->thought.len + r->line.len) : CLT_OK;
}

clt_status clt_reply_push(clt_reply *r, int32_t id, clt_err *err) {
    if (id < 0) return CLT_OK; /* roles that a vocabulary lacks are -1 */
    if (r->raw || !take_marker(r, id)) {
        clt_buf_reset(&r->fresh);
        clt_detok_push(&r->detok, id, &r->fresh);
        take_text(r, r->fresh.data, r->fresh.len);
    }
    return check(r, err);
}

clt_status clt_reply_end(clt_reply *r, bool cut_by_length, clt_err *err) {
    flush_bytes(r);
    if (r->state == IN_CALL && cut_by_length) clt_buf_reset(&r->line);
    if (r->state == IN_CALL) end_call(r);
    if (r->state == IN_NAME || r->state == IN_THOUGHT) end_thought(r, false);
    return check(r, err);
}

const char *clt_reply_content(const clt_reply *r, size_t *len) {
    if (len) *len = r->content.len;
    return r->content.data ? r->content.data : "";
}

const char *clt_reply_thought(const clt_reply *r, size_t *len) {
    if (len) *len = r->thought.len;
    return r->thought.data ? r->thought.data : "";
}

size_t clt_reply_calls(const clt_reply *r) {
    return r->n_calls;
}

void clt_reply_call_at(const clt_reply *r, size_t i, clt_reply_call *out) {
    *out = (clt_reply_call){r->calls[i].name, r->calls[i].arguments.data};
}
