/* The rendered prompt: bytes, cut into text, special tokens and media, and from there to ids.
 *
 * In: what the renderer writes, in order. Adjacent text is one piece whoever wrote it, because the tokenizer must see it
 * whole. Out: ids. Only markup of the renderer becomes special; it reads no templates and no JSON. */
#include <string.h>
#include "base/mem.h"
#include "text/chat_impl.h"

static const struct marker {
    const char *text;
    clt_piece_kind kind;
} markers[] = {
    {"<|turn>", CLT_PIECE_SPECIAL},          {"<turn|>", CLT_PIECE_SPECIAL},      {"<|\"|>", CLT_PIECE_SPECIAL},
    {"<|tool>", CLT_PIECE_SPECIAL},          {"<tool|>", CLT_PIECE_SPECIAL},      {"<|tool_call>", CLT_PIECE_SPECIAL},
    {"<tool_call|>", CLT_PIECE_SPECIAL},     {"<|tool_response>", CLT_PIECE_SPECIAL},
    {"<tool_response|>", CLT_PIECE_SPECIAL}, {"<|channel>", CLT_PIECE_SPECIAL},   {"<channel|>", CLT_PIECE_SPECIAL},
    {"<|think|>", CLT_PIECE_SPECIAL},        {"<bos>", CLT_PIECE_SPECIAL},        {"<start_of_turn>", CLT_PIECE_SPECIAL},
    {"<end_of_turn>", CLT_PIECE_SPECIAL},    {"<|image|>", CLT_PIECE_IMAGE},      {"<start_of_image>", CLT_PIECE_IMAGE},
    {"<|audio|>", CLT_PIECE_AUDIO},          {"<|video|>", CLT_PIECE_VIDEO},
};

static const struct marker *marker_at(const char *s, size_t n) {
    for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++) {
        size_t len = strlen(markers[i].text);
        if (len <= n && memcmp(s, markers[i].text, len) == 0) return &markers[i];
    }
    return NULL;
}

size_t clt_chat_marker(const char *s, size_t n) {
    const struct marker *m = marker_at(s, n);
    return m ? strlen(m->text) : 0;
}

/* Appends bytes as a piece of `kind`; text continues the text before it. */
static void put(clt_prompt *p, clt_piece_kind kind, const char *s, size_t len) {
    if (len == 0) return;
    clt_piece *last = p->n_pieces ? &p->pieces[p->n_pieces - 1] : NULL;
    size_t offset = p->text.len;
    clt_buf_put(&p->text, s, len);
    if (p->text.failed) return;
    if (kind == CLT_PIECE_TEXT && last && last->kind == CLT_PIECE_TEXT) {
        last->len += len;
        return;
    }
    if (p->n_pieces == p->cap_pieces) {
        size_t cap = p->cap_pieces ? p->cap_pieces * 2 : 32;
        clt_piece *grown = clt_realloc(p->pieces, cap * sizeof *grown);
        if (!grown) {
            p->text.failed = true;
            return;
        }
        p->pieces = grown;
        p->cap_pieces = cap;
    }
    p->pieces[p->n_pieces++] = (clt_piece){kind, offset, len};
}

void clt_prompt_put_text(clt_prompt *p, const char *s, size_t len) {
    put(p, CLT_PIECE_TEXT, s, len);
}

void clt_prompt_put_markup(clt_prompt *p, const char *markup) {
    const char *end = markup + strlen(markup);
    const char *plain = markup; /* start of the text that is not yet written */
    for (const char *s = markup; s < end;) {
        const struct marker *m = *s == '<' ? marker_at(s, (size_t)(end - s)) : NULL;
        if (!m) {
            s++;
            continue;
        }
        size_t len = strlen(m->text);
        put(p, CLT_PIECE_TEXT, plain, (size_t)(s - plain));
        put(p, m->kind, s, len);
        s += len;
        plain = s;
    }
    put(p, CLT_PIECE_TEXT, plain, (size_t)(end - plain));
}

void clt_prompt_free(clt_prompt *p) {
    clt_buf_free(&p->text);
    clt_free(p->pieces);
    *p = (clt_prompt){0};
}

/* The id of a special or media piece, or -1: by role where there is one, so that a vocabulary may spell its slots
 * differently. */
static int32_t piece_id(const clt_prompt *p, const clt_piece *piece, const clt_vocab *v) {
    const clt_vocab_roles *roles = clt_vocab_get_roles(v);
    char text[32];
    if (piece->len >= sizeof text) return -1;
    memcpy(text, p->text.data + piece->offset, piece->len);
    text[piece->len] = '\0';
    int32_t id = -1;
    if (piece->kind == CLT_PIECE_IMAGE) id = roles->image_slot;
    if (piece->kind == CLT_PIECE_AUDIO) id = roles->audio_slot;
    if (piece->kind == CLT_PIECE_VIDEO) id = roles->video_slot;
    if (strcmp(text, "<bos>") == 0) id = roles->bos;
    return id >= 0 ? id : clt_vocab_find(v, text);
}

clt_status clt_prompt_tokenize(const clt_prompt *p, const clt_vocab *v, clt_ids *out, clt_err *err) {
    for (size_t i = 0; i < p->n_pieces; i++) {
        const clt_piece *piece = &p->pieces[i];
        const char *text = p->text.data + piece->offset;
        if (piece->kind == CLT_PIECE_TEXT) {
            clt_status status = clt_tokenize(v, text, piece->len, false, out, err);
            if (status != CLT_OK) return status;
            continue;
        }
        int32_t id = piece_id(p, piece, v);
        if (id < 0) {
            clt_fail(err, CLT_E_UNSUPPORTED, "prompt: the vocabulary has no token %.*s", (int)piece->len, text);
            return clt_hint(err, "the chat template belongs to another model family than the vocabulary");
        }
        clt_ids_push(out, id);
    }
    return out->failed ? clt_fail_memory(err, "prompt ids", out->len * sizeof(int32_t)) : CLT_OK;
}
