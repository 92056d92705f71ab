/* Encodes the media of a prompt. What a file is, is judged by the engine; its errors name the file. */
#include "media.h"
#include <string.h>
#include "base/mem.h"
#include "out.h"
#include "video.h"

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

/* What the model was trained on; specification: Gemma 4 video processor. */
enum { VIDEO_FRAMES = 32, VIDEO_TOKENS = 70 };

typedef struct frames {
    culet_media *item[VIDEO_FRAMES];
    double seconds[VIDEO_FRAMES];
    size_t n;
} frames;

/* Decodes and encodes one frame after the other; at the end f holds them all. */
static int read_frames(culet_engine *e, cli_video *video, const char *path, int tokens, frames *f) {
    clt_err err;
    culet_error failure = {0};
    cli_frame frame;
    int code = 0;
    clt_err_clear(&err);
    while (!code && f->n < VIDEO_FRAMES) {
        if (cli_video_next(video, &frame, NULL, &err)) {
            return cli_fail(&err);
        }
        if (!frame.rgb) {
            return 0;
        }
        culet_media_source source = {.kind = CULET_IMAGE, .rgb = frame.rgb, .width = frame.width, .height = frame.height,
                                     .name = path, .tokens = tokens ? tokens : VIDEO_TOKENS};
        if (culet_media_encode(e, &source, &f->item[f->n], &failure)) {
            code = cli_fail_engine(&failure);
        } else {
            f->seconds[f->n++] = frame.seconds;
            cli_progress("video", (double)f->n / VIDEO_FRAMES);
        }
        clt_free(frame.rgb);
    }
    return code;
}

static int add_video(cli_media *m, culet_engine *e, const char *path, int tokens) {
    frames f = {0};
    cli_video *video = NULL;
    culet_media *made = NULL;
    culet_error failure = {0};
    clt_err err;
    clt_err_clear(&err);
    if (!culet_engine_info(e)->vision_path) { /* said before ffmpeg is started; the engine knows why */
        culet_media_video(e, NULL, NULL, 0, &made, &failure);
        return cli_fail_engine(&failure);
    }
    int code = cli_video_open_sampled(path, VIDEO_FRAMES, &video, &err) ? cli_fail(&err) : 0;
    if (!code) {
        code = read_frames(e, video, path, tokens, &f);
    }
    cli_progress_end();
    cli_video_close(video);
    if (!code && culet_media_video(e, f.item, f.seconds, f.n, &made, &failure)) {
        code = cli_fail_engine(&failure);
    }
    for (size_t i = 0; i < f.n; i++) {
        culet_media_free(f.item[i]);
    }
    return code ? code : take(m, made);
}

int cli_media_add(cli_media *m, culet_engine *e, cli_part_kind kind, const char *path, int tokens) {
    if (kind == CLI_PART_VIDEO) {
        return add_video(m, e, path, tokens);
    }
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
