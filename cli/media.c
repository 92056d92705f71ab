/* Encodes the media of a prompt. What a file is, is judged by the engine; its errors name the file. */
#include "media.h"
#include <string.h>
#include "base/mem.h"
#include "out.h"

static int take(cli_media *m, culet_media *made) {
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 8;
        culet_media **grown = clt_realloc(m->item, cap * sizeof(*grown));
        if (!grown) {
            culet_media_free(made);
            return cli_failf(CLT_E_MEMORY, "media: out of memory");
        }
        m->item = grown;
        m->cap = cap;
    }
    const culet_media_info *info = culet_media_get_info(made);
    m->ms += info->decode_ms + info->encode_ms;
    m->item[m->n++] = made;
    return 0;
}

int cli_media_add(cli_media *m, culet_engine *e, cli_part_kind kind, const char *path, int tokens) {
    culet_media *made = NULL;
    culet_error failure = {0};
    culet_media_source source = {.kind = kind == CLI_PART_AUDIO ? CULET_AUDIO : CULET_IMAGE, .path = path, .tokens = tokens};
    if (culet_media_encode(e, &source, &made, &failure)) return cli_fail_engine(&failure);
    const char *remark = culet_media_get_info(made)->remark;
    if (*remark) cli_note("%s: %s", path, remark);
    return take(m, made);
}

int cli_media_load(const cli_args *args, culet_engine *e, cli_media *out) {
    int code = 0;
    for (size_t i = 0; i < args->n_parts && !code; i++) {
        const cli_part *p = &args->parts[i];
        if (p->kind != CLI_PART_TEXT && p->kind != CLI_PART_FILE) {
            code = cli_media_add(out, e, p->kind, p->value, args->image_tokens);
        }
    }
    return code;
}

int cli_media_of_session(cli_media *m, const culet_session *s) {
    culet_error failure = {0};
    cli_media_free(m);
    if (culet_session_media(s, &m->item, &m->n, &failure)) {
        return cli_fail_engine(&failure);
    }
    m->cap = m->n;
    return 0;
}

void cli_media_remove(cli_media *m, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) {
        culet_media_free(m->item[i]);
    }
    if (count) {
        memmove(m->item + at, m->item + at + count, (m->n - at - count) * sizeof(*m->item));
        m->n -= count;
    }
}

void cli_media_cut(cli_media *m, size_t n) {
    if (m->n > n) {
        cli_media_remove(m, n, m->n - n);
    }
}

void cli_media_free(cli_media *m) {
    cli_media_cut(m, 0);
    clt_free(m->item);
    *m = (cli_media){0};
}

int cli_media_expand(const cli_media *m, const culet_engine *e, clt_ids *ids) {
    int32_t *whole = NULL;
    size_t n = 0;
    culet_error failure = {0};
    if (!m->n) {
        return 0; /* placeholders of a prompt without media are tokens as any other */
    }
    if (culet_media_expand(e, ids->data, ids->len, m->item, m->n, &whole, &n, &failure)) {
        return cli_fail_engine(&failure);
    }
    ids->len = 0;
    clt_ids_append(ids, whole, n);
    culet_free(whole);
    return ids->failed ? cli_failf(CLT_E_MEMORY, "media: out of memory for %zu tokens", n) : 0;
}
