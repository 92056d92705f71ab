/* culet caption: a caption for each picture of files, a folder, a video or a camera; a transcript for each clip of a sound.
 *
 * The picture stands before the text: all that comes before it (the system text, the beginning of the turn) is evaluated
 * once, and from the second picture on only its span and what follows it. */
#include "caption.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "args.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/os.h"
#include "bound.h"
#include "content.h"
#include "media.h"
#include "open.h"
#include "out.h"
#include "prompt.h"
#include "reply.h"
#include "signals.h"
#include "verbs.h"

enum {
    LONG_CAPTION = 1024,
    AROUND = 2,      /* tokens that begin and end a span */
    DAMAGED_MOST = 30 /* frames of a camera, one after another */
};
static const char default_picture_text[] = "Describe what is to be seen, in one or two sentences.";
static const char default_sound_text[] = "Write down word for word what is said, in the language in which it is said.";

typedef enum origin { FILES, FOLDER, VIDEO, CAMERA, SOUNDS } origin;

typedef struct caption {
    const cli_args *args;
    origin from;
    cli_strings files;       /* FILES, SOUNDS */
    culet_engine *engine;
    culet_session *session;
    cli_capture *capture;
    cli_ahead *ahead;
    clt_ids prompt;          /* with one placeholder */
    bool raw, in_thought;
    cli_bound bound;
    culet_sampling sampling;
    int32_t *bias_ids;
    float *bias_values;
    clt_ids prediction;      /* --predict-file, or the caption of the frame before: what changes little is told alike */
    cli_lines_file lines;    /* of --out */
    size_t seen, done, failed, known, damaged;
    double last_end_ms;
} caption;

/* What one caption took, milliseconds. */
typedef struct cycle {
    double wait, all;
    double age;              /* of the shot when its caption was begun */
} cycle;

/* ---- what is asked ---- */

static void add_file(caption *c, const char *path) {
    c->files.items[c->files.n++] = path;
}

/* Media of the flags, and operands, which are further files of the same kind: --image *.jpg. */
static int collect_files(caption *c, bool *pictures, bool *sounds) {
    const cli_args *a = c->args;
    c->files.items = clt_calloc(a->n_parts + a->operands.n + 1, sizeof(*c->files.items));
    if (!c->files.items) {
        return cli_failf(CLT_E_MEMORY, "caption: out of memory");
    }
    for (size_t i = 0; i < a->n_parts; i++) {
        const cli_part *p = &a->parts[i];
        *pictures |= p->kind == CLI_PART_IMAGE;
        *sounds |= p->kind == CLI_PART_AUDIO;
        if (p->kind == CLI_PART_IMAGE || p->kind == CLI_PART_AUDIO) {
            add_file(c, p->value);
        }
    }
    for (size_t i = 0; i < a->operands.n; i++) {
        add_file(c, a->operands.items[i]);
    }
    *pictures |= a->operands.n && !*sounds;
    return 0;
}

static int check_asked(caption *c) {
    const cli_args *a = c->args;
    bool pictures = false, sounds = false;
    int code = collect_files(c, &pictures, &sounds);
    if (code) {
        return code;
    }
    int given = pictures + sounds + (a->dir != NULL) + (a->video != NULL) + (a->camera != NULL);
    if (given != 1) {
        return cli_failf(CLT_E_USAGE, "caption: %s of --image, --audio, --dir, --video and --camera, expected one",
                         given ? "more than one" : "none");
    }
    c->from = pictures ? FILES : sounds ? SOUNDS : a->dir ? FOLDER : a->video ? VIDEO : CAMERA;
    if (a->out_file && c->from != FILES && c->from != FOLDER) {
        return cli_failf(CLT_E_USAGE, "--out: only files have captions that can be kept; elsewhere, redirect --json");
    }
    if (!isnan(a->every) && c->from != VIDEO && c->from != CAMERA) {
        return cli_failf(CLT_E_USAGE, "--every: only for --video and --camera");
    }
    return 0;
}

static double seconds_between(const caption *c) {
    return !isnan(c->args->every) ? (double)c->args->every : c->from == VIDEO ? 5 : 1;
}

static int open_capture(caption *c) {
    clt_err err;
    clt_err_clear(&err);
    clt_status status = CLT_OK;
    switch (c->from) {
    case FILES:
        status = cli_capture_files(c->files.items, c->files.n, &c->capture, &err);
        break;
    case SOUNDS:
        status = cli_capture_sounds(c->files.items, c->files.n, culet_engine_info(c->engine)->audio_limit_seconds,
                                    &c->capture, &err);
        break;
    case FOLDER:
        status = cli_capture_folder(c->args->dir, &c->capture, &err);
        break;
    case VIDEO:
        status = cli_capture_video(c->args->video, seconds_between(c), &c->capture, &err);
        break;
    case CAMERA:
        status = cli_capture_camera(c->args->camera, &c->capture, &err);
        break;
    }
    return status ? cli_fail(&err) : 0;
}

static int start_ahead(caption *c) {
    cli_ahead_params p = {.engine = c->engine, .capture = c->capture, .tokens = c->args->image_tokens,
                          .kind = c->from == SOUNDS ? CULET_AUDIO : CULET_IMAGE, .every_ms = seconds_between(c) * 1000,
                          .known = c->args->out_file ? &c->lines.known : NULL};
    clt_err err;
    clt_err_clear(&err);
    return cli_ahead_start(&p, &c->ahead, &err) ? cli_fail(&err) : 0;
}

/* ---- the prompt ---- */

static int read_prompt(caption *c) {
    const cli_args *a = c->args;
    cli_item items[2] = {{.kind = c->from == SOUNDS ? CLI_PART_AUDIO : CLI_PART_IMAGE}, {.kind = CLI_PART_TEXT}};
    cli_content content = {.item = items, .n = 2};
    clt_buf *text = &items[1].text;
    int code = 0;
    c->raw = cli_completes_only(a, culet_engine_info(c->engine));
    if (c->raw && a->system) {
        return cli_failf(CLT_E_USAGE, "--system-prompt: there is no place for it in a raw completion; this is a base model");
    }
    if (a->prompts.n || a->file) {
        code = cli_read_text(a, text);
    } else {
        clt_buf_puts(text, c->from == SOUNDS ? default_sound_text : default_picture_text);
    }
    if (!code && text->failed) {
        code = cli_failf(CLT_E_MEMORY, "--prompt: out of memory");
    }
    content.n = text->len ? 2 : 1;
    if (!code) {
        code = c->raw ? cli_content_tokenize(a, &content, c->engine, &c->prompt)
                      : cli_content_render(a, &content, c->engine, &c->prompt, &c->in_thought);
    }
    clt_buf_free(text);
    return !code && c->prompt.failed ? cli_failf(CLT_E_MEMORY, "--prompt: out of memory") : code;
}

/* Room for the text, the first picture and a caption; later pictures take no more than the budget. */
static int open_session(caption *c, const cli_ready *first) {
    const culet_model_info *info = culet_engine_info(c->engine);
    size_t budget = (size_t)(c->args->image_tokens ? c->args->image_tokens : info->image_tokens);
    size_t tokens = first->media ? culet_media_get_info(first->media)->tokens : budget;
    size_t span = (c->from != SOUNDS && budget > tokens ? budget : tokens) + AROUND;
    size_t after = c->args->predict >= 0 ? (size_t)c->args->predict : LONG_CAPTION;
    return cli_open_session(c->args, c->engine, c->prompt.len + span + after, &c->session);
}

/* ---- what is written ---- */

static void put_text(clt_jsonw *w, const char *key, const char *v) {
    clt_jsonw_key(w, key);
    clt_jsonw_cstr(w, v);
}

static void put_int(clt_jsonw *w, const char *key, size_t v) {
    clt_jsonw_key(w, key);
    clt_jsonw_int(w, (int64_t)v);
}

static void put_ms(clt_jsonw *w, const char *key, double v) {
    clt_jsonw_key(w, key);
    clt_jsonw_num(w, round(v * 1000) / 1000);
}

/* Where it comes from. */
static void put_origin(const caption *c, const cli_ready *r, clt_jsonw *w) {
    const cli_shot *s = &r->shot;
    put_text(w, c->from == CAMERA ? "camera" : "file", s->name);
    if (r->digest[0]) {
        put_text(w, "sha256", r->digest);
    }
    if (c->from == VIDEO || c->from == CAMERA) {
        put_int(w, "frame", s->index);
        put_ms(w, "seconds", s->seconds);
    } else if (c->from == SOUNDS) {
        put_int(w, "clip", s->index);
        put_ms(w, "start", s->seconds);
        put_ms(w, "end", s->end_seconds);
    }
    if (c->from != SOUNDS) {
        put_int(w, "width", (size_t)culet_media_get_info(r->media)->width);
        put_int(w, "height", (size_t)culet_media_get_info(r->media)->height);
    }
    put_int(w, "tokens", culet_media_get_info(r->media)->tokens);
}

static void make_line(const caption *c, const cli_ready *r, const culet_reply *reply, const cycle *k, clt_buf *out) {
    clt_jsonw w = {.out = out};
    const culet_timings *t = &reply->timings;
    clt_jsonw_open(&w, '{');
    put_origin(c, r, &w);
    clt_jsonw_key(&w, "text");
    clt_jsonw_str(&w, reply->text ? reply->text : "", reply->text_len);
    put_text(&w, "finish_reason", culet_finish_name(reply->finish));
    put_int(&w, "cache_n", t->cache_n);
    put_int(&w, "prompt_n", t->prompt_n);
    put_int(&w, "predicted_n", t->predicted_n);
    put_int(&w, "draft_n", t->draft_n);
    put_int(&w, "draft_n_accepted", t->draft_n_accepted);
    put_ms(&w, "capture_ms", r->shot.ms);
    put_ms(&w, "encode_ms", r->encode_ms);
    put_ms(&w, "wait_ms", k->wait);
    put_ms(&w, "age_ms", k->age);
    put_ms(&w, "feed_ms", t->prompt_ms);
    put_ms(&w, "generate_ms", t->predicted_ms);
    put_ms(&w, "cycle_ms", k->all);
    clt_jsonw_close(&w, '}');
    clt_buf_putc(out, '\n');
}

static void clock_text(double seconds, char out[32]) {
    unsigned long s = (unsigned long)seconds;
    if (s >= 3600) {
        snprintf(out, 32, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    } else {
        snprintf(out, 32, "%02lu:%02lu", s / 60, s % 60);
    }
}

/* One picture gives its caption alone, so that it can be used as it is; of several, each says whose it is. */
static bool write_text(const caption *c, const cli_ready *r, const culet_reply *reply) {
    char from[32], to[32];
    clock_text(r->shot.seconds, from);
    clock_text(r->shot.end_seconds, to);
    if (c->from == VIDEO || c->from == CAMERA) {
        cli_outf("[%s] ", from);
    } else if (c->from == SOUNDS) {
        cli_outf("%s%s[%s - %s] ", c->files.n > 1 ? r->shot.name : "", c->files.n > 1 ? " " : "", from, to);
    } else if (c->from == FOLDER || c->files.n > 1) {
        cli_outf("%s: ", r->shot.name);
    } else {
        return cli_out_text(reply->text ? reply->text : "", reply->text_len) && (!cli_out_terminal() || cli_out("\n", 1));
    }
    return cli_out_text(reply->text ? reply->text : "", reply->text_len) && cli_out("\n", 1);
}

static int write_caption(caption *c, const cli_ready *r, const culet_reply *reply, const cycle *k) {
    clt_buf line = {0};
    clt_err err;
    clt_err_clear(&err);
    int code = 0;
    cli_progress_end();
    if (c->args->json || c->args->out_file) {
        make_line(c, r, reply, k, &line);
    }
    if (c->args->out_file && cli_lines_file_put(&c->lines, &line, &err)) {
        code = cli_fail(&err);
    } else if (!c->args->out_file && !(c->args->json ? cli_out_buf(&line) : write_text(c, r, reply))) {
        code = CULET_FAILED; /* cli_finish says why */
    }
    clt_buf_free(&line);
    return code;
}

/* ---- one caption ---- */

static bool on_delta(void *user, culet_delta kind, const char *text, size_t len) {
    (void)user, (void)kind, (void)text, (void)len;
    return !cli_signals_caught();
}

static culet_generate_params params_of(caption *c, const cli_media *media, const clt_ids *ids) {
    culet_generate_params p = {
        .prompt = ids->data,
        .n_prompt = ids->len,
        .media = media->item,
        .n_media = media->n,
        .max_tokens = c->args->predict,
        .sampling = c->sampling,
        .stops = c->args->stops.items,
        .n_stops = c->args->stops.n,
        .raw = c->raw,
        .in_thought = c->in_thought,
        .on_delta = on_delta,
    };
    cli_bound_apply(&c->bound, c->args, &p);
    cli_speculation(c->args, &c->prediction, &p);
    return p;
}

static int finish(caption *c, const cli_ready *r, const culet_reply *reply, const cycle *k) {
    cli_timings timings;
    int code = write_caption(c, r, reply, k);
    cli_timings_read(c->args, c->engine, c->session, reply, r->shot.ms + r->encode_ms, &timings);
    cli_timings_print(&timings, c->args->stats);
    if (!c->args->predict_file && (c->from == VIDEO || c->from == CAMERA)) {
        c->prediction.len = 0;
        clt_ids_append(&c->prediction, reply->ids, reply->n_ids);
    }
    return code || !c->prediction.failed ? code : cli_failf(CLT_E_MEMORY, "caption: out of memory");
}

static int generate(caption *c, cli_ready *r, double wait_ms) {
    cli_media media = {.item = &r->media, .n = 1};
    clt_ids ids = {0};
    culet_reply reply = {0};
    culet_error failure = {0};
    cycle k = {.wait = wait_ms, .age = clt_now_ms() - r->shot.taken_ms};
    clt_ids_append(&ids, c->prompt.data, c->prompt.len);
    int code = ids.failed ? cli_failf(CLT_E_MEMORY, "caption: out of memory") : cli_media_expand(&media, c->engine, &ids);
    if (!code) {
        culet_generate_params p = params_of(c, &media, &ids);
        culet_status status = culet_generate(c->session, &p, &reply, &failure);
        if (cli_signals_caught()) {
            code = 1; /* the caller tells an interruption */
        } else if (status) {
            code = cli_fail_engine(&failure);
        } else {
            double now = clt_now_ms();
            k.all = now - c->last_end_ms;
            c->last_end_ms = now;
            code = finish(c, r, &reply, &k);
        }
    }
    culet_reply_free(&reply);
    clt_ids_free(&ids);
    return code;
}

/* A picture that could not be had: fatal, unless others follow that are not concerned. */
static int pass_over(caption *c, const cli_ready *r) {
    bool alone = (c->from == FILES || c->from == SOUNDS) && c->files.n == 1;
    cli_progress_end();
    if (c->from == CAMERA && r->failure.status == CULET_FAILED && !r->end && ++c->damaged < DAMAGED_MOST) {
        cli_note("warning: a frame is left out: %s", r->failure.text); /* cables do that */
        return 0;
    }
    int code = cli_fail_engine(&r->failure);
    if (r->failure.status != CULET_FAILED || r->end || alone || c->from == CAMERA) {
        return code;
    }
    c->failed++;
    return 0;
}

static int take(caption *c, cli_ready *r, double wait_ms) {
    const char *remark = r->media ? culet_media_get_info(r->media)->remark : "";
    c->seen++;
    if (r->known) {
        c->known++;
        return 0;
    }
    if (!r->media) {
        return pass_over(c, r);
    }
    c->damaged = 0;
    if (*remark) {
        cli_note("%s: %s", r->shot.name, remark);
    }
    int code = c->session ? 0 : open_session(c, r);
    if (!code) {
        cli_signals_hold(c->session);
        code = generate(c, r, wait_ms);
    }
    c->done += !code;
    return code;
}

/* ---- the loop ---- */

static bool is_over(const caption *c) {
    return c->args->frames && c->done >= (size_t)c->args->frames;
}

static int loop(caption *c) {
    int code = 0;
    bool end = false;
    c->last_end_ms = clt_now_ms();
    while (!code && !end && !is_over(c) && !cli_signals_caught()) {
        cli_ready r;
        double begin = clt_now_ms();
        if (!cli_ahead_next(c->ahead, &r)) {
            break;
        }
        end = r.end && !r.failure.status;
        if (!end) {
            code = take(c, &r, clt_now_ms() - begin);
        }
        cli_ready_free(&r);
        if (c->capture->n > 1) {
            cli_progress("captions", (double)c->seen / (double)c->capture->n);
        }
    }
    cli_progress_end();
    return code;
}

static int sum_up(const caption *c) {
    if (c->args->out_file) {
        cli_note("%zu captions written to %s, %zu were there", c->done, c->args->out_file, c->known);
    }
    return c->failed ? cli_failf(CLT_E_FAILED, "caption: %zu of %zu have no caption", c->failed, c->seen) : 0;
}

static int run_loop(caption *c) {
    int code = start_ahead(c);
    if (code) {
        return code;
    }
    cli_signals_hold_media(c->engine);
    code = loop(c);
    int caught = cli_signals_caught();
    cli_ahead_stop(c->ahead);
    cli_signals_release();
    if (caught) {
        return cli_signals_exit();
    }
    return code ? code : sum_up(c);
}

static int prepare(caption *c) {
    const cli_args *a = c->args;
    clt_err err;
    clt_err_clear(&err);
    int code = check_asked(c);
    if (!code) {
        code = cli_bound_read(a, &c->bound);
    }
    if (!code && a->out_file && cli_lines_file_open(a->out_file, &c->lines, &err)) {
        code = cli_fail(&err);
    }
    if (!code && c->from != SOUNDS) {
        code = open_capture(c); /* before the model: what is missing is told at once */
    }
    if (!code) {
        code = cli_open_engine(a, CULET_OPEN_FULL, a->threads, &c->engine);
    }
    if (!code && c->from == SOUNDS) {
        code = open_capture(c);
    }
    if (!code) {
        code = read_prompt(c);
    }
    if (!code) {
        code = cli_read_prediction(a, c->engine, &c->prediction);
    }
    if (!code) {
        code = cli_sampling(a, culet_engine_info(c->engine), &c->sampling, &c->bias_ids, &c->bias_values);
    }
    return code;
}

int cli_caption(const cli_args *args) {
    caption c = {.args = args, .lines.fd = -1};
    int code = prepare(&c);
    if (!code) {
        code = run_loop(&c);
    }
    cli_capture_close(c.capture);
    cli_lines_file_close(&c.lines);
    culet_session_close(c.session);
    cli_bound_free(&c.bound);
    culet_engine_close(c.engine);
    clt_ids_free(&c.prompt);
    clt_ids_free(&c.prediction);
    clt_free(c.bias_ids);
    clt_free(c.bias_values);
    clt_free(c.files.items);
    return code;
}
