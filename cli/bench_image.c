/* Encodes, feeds and captions one picture again and again. */
#include "bench_image.h"
#include <string.h>
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "content.h"
#include "out.h"
#include "prompt.h"
#include "signals.h"

typedef struct work {
    const cli_args *args;
    culet_engine *engine;
    culet_session *session;
    clt_buf file;           /* the picture's bytes, and room for one more */
    size_t file_bytes;
    clt_ids before, after, ids; /* of the prompt around the picture; the whole */
    culet_media *media;
    cli_image_times t;
    size_t tokens, resized_width, resized_height, width, height;
} work;

static bool make_room(cli_image_times *t, size_t n) {
    double *v = clt_calloc(n, 7 * sizeof(*v));
    *t = (cli_image_times){v, v + n, v + 2 * n, v + 3 * n, v + 4 * n, v + 5 * n, v + 6 * n, 0};
    return v;
}

/* Decoders stop at the end of the picture: a byte behind it makes another file of the same picture. */
static culet_status encode(work *w, size_t i, culet_error *err) {
    w->file.data[w->file_bytes] = (char)i;
    culet_media_source source = {.kind = CULET_IMAGE, .data = w->file.data, .n_bytes = w->file_bytes + 1 + i / 256,
                                 .name = w->args->parts[0].value, .tokens = w->args->image_tokens};
    culet_media_free(w->media);
    return culet_media_encode(w->engine, &source, &w->media, err);
}

static culet_status expand(work *w, culet_error *err) {
    int32_t *whole = NULL;
    size_t n;
    clt_ids short_ids = {0};
    clt_ids_append(&short_ids, w->before.data, w->before.len);
    clt_ids_push(&short_ids, cli_placeholder(w->engine, CLI_PART_IMAGE));
    clt_ids_append(&short_ids, w->after.data, w->after.len);
    culet_status st = culet_media_expand(w->engine, short_ids.data, short_ids.len, &w->media, 1, &whole, &n, err);
    w->ids.len = 0;
    clt_ids_append(&w->ids, whole, n);
    culet_free(whole);
    clt_ids_free(&short_ids);
    return st;
}

static culet_status caption(work *w, int n, culet_timings *t, culet_error *err) {
    culet_generate_params g = {.prompt = w->ids.data, .n_prompt = w->ids.len, .media = &w->media, .n_media = 1, .max_tokens = n,
                               .sampling = culet_engine_info(w->engine)->sampling, .raw = true};
    culet_reply reply = {0};
    g.sampling.temperature = 0;
    g.sampling.ignore_eos = true; /* every run has the same length */
    culet_status st = culet_generate(w->session, &g, &reply, err);
    *t = reply.timings;
    culet_reply_free(&reply);
    return st;
}

/* As many tokens of text as the picture has, behind the same beginning. */
static culet_status feed_text(work *w, double *ms, culet_error *err) {
    clt_ids ids = {0};
    int vocab = culet_engine_info(w->engine)->vocab;
    clt_ids_append(&ids, w->before.data, w->before.len);
    for (size_t i = 0; i < w->tokens + 2; i++) { /* and its marks */
        clt_ids_push(&ids, (int32_t)(clt_random_u64(1, i, 0) % (uint64_t)vocab));
    }
    culet_status st = culet_session_sync(w->session, ids.data, w->before.len, NULL, err);
    double start = clt_now_ms();
    st = st ? st : culet_session_sync(w->session, ids.data, ids.len, NULL, err);
    *ms = clt_now_ms() - start;
    clt_ids_free(&ids);
    return st;
}

/* The same span with the picture. */
static culet_status feed_picture(work *w, double *ms, culet_error *err) {
    culet_status st = culet_session_sync(w->session, w->before.data, w->before.len, NULL, err);
    double start = clt_now_ms();
    st = st ? st : culet_session_sync_media(w->session, w->ids.data, w->ids.len - w->after.len, &w->media, 1, NULL, err);
    *ms = clt_now_ms() - start;
    return st;
}

static culet_status once(work *w, size_t i, culet_error *err) {
    cli_image_times *t = &w->t;
    culet_timings timings;
    double start = clt_now_ms();
    culet_status st = encode(w, i, err);
    st = st ? st : culet_session_rewind(w->session, 0, err);
    st = st ? st : expand(w, err);
    st = st ? st : caption(w, 1, &timings, err);
    if (st) {
        return st;
    }
    t->first[t->n] = clt_now_ms() - start;
    const culet_media_info *info = culet_media_get_info(w->media);
    t->decode[t->n] = info->decode_ms;
    t->encode[t->n] = info->encode_ms;
    w->tokens = info->tokens;
    w->width = (size_t)info->width, w->height = (size_t)info->height;
    w->resized_width = (size_t)info->resized_width, w->resized_height = (size_t)info->resized_height;
    st = feed_text(w, &t->text[t->n], err);
    st = st ? st : feed_picture(w, &t->feed[t->n], err);
    /* The loop of captions: this picture is encoded, the session holds another one. */
    st = st ? st : culet_session_sync(w->session, w->before.data, w->before.len, NULL, err);
    start = clt_now_ms();
    st = st ? st : encode(w, i, err);
    st = st ? st : expand(w, err);
    st = st ? st : caption(w, CLI_CAPTION_TOKENS, &timings, err);
    t->cycle[t->n] = clt_now_ms() - start;
    t->parts[t->n] = timings.prompt_ms + timings.predicted_ms;
    return st;
}

/* The prompt around the picture: a chat request where the model chats. */
static int read_prompt(work *w) {
    static const char text[] = "Describe this picture.";
    const culet_model_info *info = culet_engine_info(w->engine);
    int32_t slot = cli_placeholder(w->engine, CLI_PART_IMAGE);
    clt_buf request = {0};
    culet_prompt p = {0};
    culet_error failure = {0};
    if (slot < 0) {
        return cli_failf(CLT_E_UNSUPPORTED, "%s: its vocabulary has no place for pictures", info->path);
    }
    if (info->is_base) {
        clt_ids_push(&w->before, info->bos_id);
        return cli_tokenize_text(w->engine, text, sizeof(text) - 1, false, false, &w->after);
    }
    clt_buf_printf(&request, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"%s\"}]}]}",
                   text);
    int code = culet_render(w->engine, request.data ? request.data : "", request.len, &p, &failure) ? cli_fail_engine(&failure) : 0;
    bool behind = false;
    for (size_t i = 0; i < p.n_ids; i++) {
        if (p.ids[i] == slot) {
            behind = true;
        } else {
            clt_ids_push(behind ? &w->after : &w->before, p.ids[i]);
        }
    }
    culet_prompt_free(&p);
    clt_buf_free(&request);
    return code;
}

static void put_times(clt_jsonw *json, const char *key, const double *v, size_t n) {
    clt_jsonw_key(json, key);
    clt_jsonw_open(json, '[');
    for (size_t i = 0; i < n; i++) {
        clt_jsonw_num(json, v[i]);
    }
    clt_jsonw_close(json, ']');
}

static void put_count(clt_jsonw *json, const char *key, size_t v) {
    clt_jsonw_key(json, key);
    clt_jsonw_int(json, (int64_t)v);
}

static void put_all(const work *w, clt_jsonw *json) {
    const cli_image_times *t = &w->t;
    put_times(json, "decode_ms", t->decode, t->n);
    put_times(json, "encode_ms", t->encode, t->n);
    put_times(json, "ttft_ms", t->first, t->n);
    put_times(json, "feed_ms", t->feed, t->n);
    put_times(json, "text_ms", t->text, t->n);
    put_times(json, "cycle_ms", t->cycle, t->n);
    put_times(json, "parts_ms", t->parts, t->n);
    put_count(json, "image_tokens", w->tokens);
    put_count(json, "width", w->width);
    put_count(json, "height", w->height);
    put_count(json, "resized_width", w->resized_width);
    put_count(json, "resized_height", w->resized_height);
    put_count(json, "threads", (size_t)culet_engine_info(w->engine)->threads);
}

int cli_bench_image(const cli_args *args, culet_engine *e, culet_session *s, clt_jsonw *json) {
    work w = {.args = args, .engine = e, .session = s};
    size_t n = (size_t)args->repetitions;
    culet_error failure = {0};
    int code = cli_read_source(args->parts[0].value, &w.file);
    w.file_bytes = w.file.len;
    for (size_t i = 0; i <= 1 + n / 256; i++) { /* room for what tells repetitions apart */
        clt_buf_putc(&w.file, 0);
    }
    if (!code && (!make_room(&w.t, n) || w.file.failed)) {
        code = cli_failf(CLT_E_MEMORY, "bench: out of memory for %zu times", n);
    }
    code = code ? code : read_prompt(&w);
    cli_signals_hold(s);
    for (size_t i = args->no_warmup ? 1 : 0; i <= n && !code && !cli_signals_caught(); i++) {
        code = once(&w, i, &failure) ? cli_fail_engine(&failure) : 0;
        w.t.n += i > 0; /* the first was for warmth */
    }
    cli_signals_release();
    code = cli_signals_caught() ? cli_signals_exit() : code;
    if (!code) {
        put_all(&w, json);
    }
    culet_media_free(w.media);
    clt_ids_free(&w.before);
    clt_ids_free(&w.after);
    clt_ids_free(&w.ids);
    clt_buf_free(&w.file);
    clt_free(w.t.decode);
    return code;
}
