/* Prompts with media: one placeholder for each becomes what the model was trained on.
 *
 *   picture   begin, n placeholders, end
 *   sound     the same with its own three
 *   video     "MM:SS " begin, n video placeholders, end; frames apart by one space
 *
 * Times of a video are text, and text is tokenised together with what stands before it, as if it had been written there. */
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "engine/impl.h"

typedef struct expansion {
    const clt_vocab *vocab;
    const clt_vocab_roles *roles;
    const int32_t *ids;
    size_t n;
    culet_media *const *media;
    size_t n_media, next; /* the medium whose turn it is */
    clt_ids out;
} expansion;

/* The three ids around and of a kind; slot -1 where the vocabulary has none. */
typedef struct marks { int32_t begin, slot, end; } marks;

static marks marks_of(const clt_vocab_roles *r, culet_media_kind kind) {
    if (kind == CULET_AUDIO) return (marks){r->audio_begin, r->audio_slot, r->audio_end};
    return (marks){r->image_begin, kind == CULET_VIDEO ? r->video_slot : r->image_slot, r->image_end};
}

static bool kind_of(const clt_vocab_roles *r, int32_t id, culet_media_kind *out) {
    for (int kind = CULET_IMAGE; kind <= CULET_VIDEO; kind++) {
        *out = (culet_media_kind)kind;
        if (id >= 0 && id == marks_of(r, *out).slot) return true;
    }
    return false;
}

static const char *name_of(culet_media_kind kind) {
    static const char *const names[] = {"picture", "sound", "video"};
    return names[kind];
}

static size_t run_length(const expansion *x, size_t at) {
    size_t end = at;
    while (end < x->n && x->ids[end] == x->ids[at]) end++;
    return end - at;
}

static clt_status put_span(expansion *x, marks m, size_t tokens, clt_err *err) {
    if (m.begin < 0 || m.end < 0) return clt_fail(err, CLT_E_FILE, "vocabulary: it lacks the tokens that surround media");
    clt_ids_push(&x->out, m.begin);
    for (size_t i = 0; i < tokens; i++) clt_ids_push(&x->out, m.slot);
    clt_ids_push(&x->out, m.end);
    return CLT_OK;
}

/* ---- video ---- */

/* Takes the text tokens off the end of what is out; only special tokens are no text. */
static void take_text(expansion *x, clt_buf *text) {
    size_t first = x->out.len;
    while (first > 0 && !clt_vocab_is_special(x->vocab, x->out.data[first - 1])) first--;
    for (size_t i = first; i < x->out.len; i++) clt_vocab_append_bytes(x->vocab, x->out.data[i], false, text);
    x->out.len = first;
}

static clt_status put_frames(expansion *x, const culet_media *video, clt_err *err) {
    clt_buf text = {0};
    clt_status status = CLT_OK;
    marks m = marks_of(x->roles, CULET_VIDEO);
    take_text(x, &text);
    for (size_t i = 0; i < video->n_parts && status == CLT_OK; i++) {
        unsigned long at = (unsigned long)video->seconds[i];
        clt_buf_printf(&text, "%s%02lu:%02lu ", i ? " " : "", at / 60, at % 60);
        if (text.failed) status = clt_fail_memory(err, "prompt", text.len);
        if (status == CLT_OK) status = clt_tokenize(x->vocab, text.data, text.len, false, &x->out, err);
        if (status == CLT_OK) status = put_span(x, m, video->part[i]->tokens, err);
        clt_buf_reset(&text);
    }
    clt_buf_free(&text);
    return status;
}

/* ---- one place ---- */

/* A video that is expanded already: its frames stand apart, each with its own begin and end. */
static bool is_whole_video(const expansion *x, size_t at, const culet_media *video, size_t *end) {
    marks m = marks_of(x->roles, CULET_VIDEO);
    for (size_t i = 0; i < video->n_parts; i++) {
        while (at < x->n && x->ids[at] != m.slot) at++;
        if (at >= x->n || run_length(x, at) != video->part[i]->tokens) return false;
        at += video->part[i]->tokens;
    }
    *end = at;
    return true;
}

static clt_status wrong_length(const expansion *x, size_t at, size_t found, const culet_media *m, clt_err *err) {
    return clt_fail(err, CLT_E_USAGE, "prompt: at position %zu stand %zu placeholders, %s %zu has %zu soft tokens: expected "
                    "one placeholder or as many", at, found, name_of(m->info.kind), x->next + 1, m->info.tokens);
}

/* The place at x->ids[at]; *taken: ids of the prompt that belong to it. */
static clt_status put_place(expansion *x, size_t at, culet_media_kind kind, size_t *taken, clt_err *err) {
    const culet_media *m = x->media[x->next];
    size_t run = run_length(x, at), end = 0;
    marks around = marks_of(x->roles, kind);
    bool inside = at > 0 && x->ids[at - 1] == around.begin;
    if (m->info.kind != kind)
        return clt_fail(err, CLT_E_USAGE, "prompt: its place %zu is for a %s, a %s was given", x->next + 1, name_of(kind),
                        name_of(m->info.kind));
    *taken = run;
    if (!inside) { /* n placeholders side by side are n places */
        *taken = 1;
        return kind == CULET_VIDEO ? put_frames(x, m, err) : put_span(x, around, m->info.tokens, err);
    }
    bool whole = kind == CULET_VIDEO ? is_whole_video(x, at, m, &end) : run == m->info.tokens;
    if (!whole) return wrong_length(x, at, run, m, err);
    if (kind == CULET_VIDEO) *taken = end - at;
    clt_ids_append(&x->out, x->ids + at, *taken);
    return CLT_OK;
}

static clt_status expand(expansion *x, clt_err *err) {
    culet_media_kind kind;
    size_t taken, places = 0;
    for (size_t i = 0; i < x->n; i += taken) {
        taken = 1;
        if (!kind_of(x->roles, x->ids[i], &kind)) {
            clt_ids_push(&x->out, x->ids[i]);
            continue;
        }
        places++;
        if (x->next == x->n_media) continue; /* counted for the error below */
        clt_status status = put_place(x, i, kind, &taken, err);
        if (status != CLT_OK) return status;
        x->next++;
    }
    if (places != x->n_media)
        return clt_fail(err, CLT_E_USAGE, "prompt: it has %zu places for pictures, sounds and videos, %zu were given",
                        places, x->n_media);
    return x->out.failed ? clt_fail_memory(err, "prompt", x->n * sizeof *x->ids) : CLT_OK;
}

culet_status culet_media_expand(const culet_engine *e, const int32_t *ids, size_t n, culet_media *const *media,
                                size_t n_media, int32_t **out, size_t *n_out, culet_error *err) {
    clt_err inner;
    expansion x = {.vocab = e->vocab, .roles = clt_vocab_get_roles(e->vocab), .ids = ids, .n = n, .media = media,
                   .n_media = n_media};
    *out = NULL;
    *n_out = 0;
    clt_status status = expand(&x, &inner);
    if (status == CLT_OK && !x.out.data) clt_ids_push(&x.out, 0), x.out.len = 0; /* no ids: not NULL */
    if (status == CLT_OK && x.out.failed) status = clt_fail_memory(&inner, "prompt", sizeof *ids);
    if (status == CLT_OK) *out = x.out.data, *n_out = x.out.len;
    else clt_ids_free(&x.out);
    return clt_report(status, &inner, err);
}
