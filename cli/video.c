/* Frames through ffmpeg. It writes one PPM picture after another, each with its size, on standard output, and one line for
 * each with its time on standard error (the showinfo filter): a frame's line leaves ffmpeg before its picture does. */
#include "video.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "child.h"
#include "signals.h"

enum {
    MAX_SIDE = 65500, MAX_PIXELS = 128 * 1000 * 1000, MAX_LINE = 4096, MAX_SAMPLES = 1000, HEADER_BYTES = 32,
    LOOK_MS = 100 /* between looks at `stop` */
};
#define COUNT_LIMIT_MS (600 * 1000.0)

struct cli_video {
    char *path;
    cli_process ffmpeg;
    clt_buf line;            /* of standard error, not yet whole */
    char complaint[512];     /* its last error, or its last line */
    bool complaint_is_error;
    clt_buf times;           /* doubles: of all frames so far */
    size_t frames;           /* handed out */
    bool err_open;
    const atomic_bool *stop; /* of the call that runs */
};

/* ---- what ffmpeg is asked ---- */

/* No other protocol is allowed: a playlist may not reach beyond this machine's files. */
static void common_words(cli_words *w, const char *path, const char *level) {
    static const char *const before[] = {"-hide_banner", "-nostdin", "-nostats", "-protocol_whitelist", "file,crypto,data"};
    cli_words_add(w, "ffmpeg");
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) cli_words_add(w, before[i]);
    cli_words_add(w, "-loglevel");
    cli_words_add(w, level);
    cli_words_add(w, "-max_pixels");
    cli_words_addf(w, "%d", (int)MAX_PIXELS);
    clt_buf name = {0};
    clt_buf_printf(&name, "file:%s", path); /* also keeps a name that begins with '-' from being a flag */
    cli_words_add(w, "-i");
    cli_words_add(w, name.data ? name.data : "");
    w->failed |= name.failed;
    clt_buf_free(&name);
    cli_words_add(w, "-map");
    cli_words_add(w, "0:V:0"); /* the first video that is no cover picture */
}

static clt_status check_path(const char *path, clt_err *err) {
    if (clt_is_dir(path)) return clt_fail(err, CLT_E_FAILED, "%s: is a folder, expected a video file", path);
    if (access(path, R_OK) != 0) return clt_fail(err, CLT_E_FAILED, "%s: %s", path, strerror(errno));
    if (!clt_is_file(path)) return clt_fail(err, CLT_E_FAILED, "%s: is no regular file, expected a video file", path);
    if (cli_child_exists("ffmpeg")) return CLT_OK;
    clt_fail(err, CLT_E_UNSUPPORTED, "%s: videos are decoded by the program ffmpeg, which is not in PATH", path);
    return clt_hint(err, "install it: apt install ffmpeg");
}

/* The line without "[part @ 0x…]" and "[level]". */
static const char *without_brackets(const char *line) {
    while (line[0] == '[') {
        const char *end = strchr(line, ']');
        if (!end) break;
        line = end + 1 + strspn(end + 1, " ");
    }
    return line;
}

static clt_status ffmpeg_failed(const char *path, const char *complaint, clt_err *err) {
    if (!complaint[0]) complaint = "it ended without a word";
    return clt_fail(err, CLT_E_FAILED, "%s: ffmpeg: %s", path, complaint);
}

/* ---- what it says ---- */

/* "[Parsed_showinfo_1 @ 0x…] [info] n:   3 pts:  45045 pts_time:1.5015 …" */
static bool take_time(cli_video *v, const char *line) {
    static const char tag[] = " pts_time:";
    const char *at = strncmp(line, "[Parsed_showinfo", 16) == 0 ? strstr(line, tag) : NULL;
    if (!at) return false;
    double seconds = strtod(at + sizeof tag - 1, NULL); /* "NOPTS" gives 0 */
    clt_buf_put(&v->times, &seconds, sizeof seconds);
    return true;
}

static void take_line(cli_video *v, const char *line) {
    if (take_time(v, line)) return;
    bool is_error = strstr(line, "[error]") || strstr(line, "[fatal]") || strstr(line, "[panic]");
    if (!line[0] || (v->complaint_is_error && !is_error)) return;
    const char *text = without_brackets(line);
    if (!text[0]) return;
    snprintf(v->complaint, sizeof v->complaint, "%s", text);
    v->complaint_is_error = is_error;
}

/* Reads what standard error holds now. */
static void read_lines(cli_video *v) {
    char block[4096];
    ssize_t n = read(v->ffmpeg.err, block, sizeof block);
    if (n <= 0) {
        v->err_open = n < 0 && (errno == EINTR || errno == EAGAIN);
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (block[i] != '\n' && block[i] != '\r') {
            if (v->line.len < MAX_LINE) clt_buf_putc(&v->line, block[i]);
            continue;
        }
        if (v->line.len) take_line(v, v->line.data);
        clt_buf_reset(&v->line);
    }
}

static bool is_stopped(const cli_video *v) {
    return v->stop && atomic_load(v->stop);
}

/* n bytes of standard output, fewer at its end or when it is to stop; standard error is read meanwhile. */
static size_t read_bytes(cli_video *v, void *to, size_t n) {
    size_t done = 0;
    while (done < n && !is_stopped(v)) {
        struct pollfd fds[2] = {{.fd = v->ffmpeg.out, .events = POLLIN},
                                {.fd = v->err_open ? v->ffmpeg.err : -1, .events = POLLIN}};
        int ready = poll(fds, 2, LOOK_MS);
        if (ready < 0 && errno != EINTR) break;
        if (ready <= 0) continue;
        if (fds[1].revents) read_lines(v);
        if (!fds[0].revents) continue;
        ssize_t got = read(v->ffmpeg.out, (char *)to + done, n - done);
        if (got == 0 || (got < 0 && errno != EINTR)) break;
        done += got > 0 ? (size_t)got : 0;
    }
    return done;
}

/* ---- frames ---- */

static clt_status start(cli_video *v, const char *filter, clt_err *err) {
    cli_words w = {0};
    static const char *const after[] = {"-fps_mode", "passthrough", "-c:v", "ppm", "-f", "image2pipe", "pipe:1"};
    common_words(&w, v->path, "repeat+level+info");
    cli_words_add(&w, "-vf");
    cli_words_add(&w, filter);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) cli_words_add(&w, after[i]);
    clt_status st = cli_process_start(&w, &v->ffmpeg, err);
    if (st != CLT_OK) v->ffmpeg = (cli_process){0};
    else cli_signals_group(v->ffmpeg.id);
    v->err_open = true;
    cli_words_free(&w);
    return st;
}

static clt_status create(const char *path, cli_video **out, clt_err *err) {
    *out = NULL;
    clt_status st = check_path(path, err);
    if (st != CLT_OK) return st;
    *out = clt_calloc(1, sizeof **out);
    if (*out) (*out)->path = clt_strdup(path);
    return *out && (*out)->path ? CLT_OK : clt_fail_memory(err, path, sizeof **out);
}

static clt_status finish_open(clt_status st, cli_video **out) {
    if (st == CLT_OK) return CLT_OK;
    cli_video_close(*out);
    *out = NULL;
    return st;
}

clt_status cli_video_open(const char *path, double every, cli_video **out, clt_err *err) {
    char filter[256] = "showinfo=checksum=0";
    clt_status st = create(path, out, err);
    if (every > 0)
        snprintf(filter, sizeof filter,
                 "select='isnan(prev_selected_t)+gt(floor((t-start_t)/%.6f)\\,floor((prev_selected_t-start_t)/%.6f))',"
                 "showinfo=checksum=0", every, every);
    if (st == CLT_OK) st = start(*out, filter, err);
    return finish_open(st, out);
}

/* Frames of the video, counted without decoding them: one line of framecrc for each. */
static clt_status count(const char *path, int64_t *total, clt_err *err) {
    cli_words w = {0};
    cli_child c;
    static const char *const after[] = {"-c", "copy", "-f", "framecrc", "pipe:1"};
    common_words(&w, path, "error");
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) cli_words_add(&w, after[i]);
    clt_status st = cli_child_run(&w, COUNT_LIMIT_MS, &c, err);
    *total = 0;
    if (st == CLT_OK && (c.exit_code != 0 || c.too_much || c.timed_out)) {
        char *text = c.err.data ? c.err.data : "", *end = text + strlen(text);
        while (end > text && end[-1] == '\n') *--end = 0;
        char *last = strrchr(text, '\n');
        st = ffmpeg_failed(path, c.too_much ? "more frames than can be counted" : c.timed_out ? "it took too long"
                                 : without_brackets(last ? last + 1 : text), err);
    }
    for (const char *s = c.out.data; st == CLT_OK && s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
        *total += *s != '#';
    cli_child_free(&c);
    cli_words_free(&w);
    return st;
}

clt_status cli_video_open_sampled(const char *path, int n, cli_video **out, clt_err *err) {
    clt_buf filter = {0};
    int64_t total = 0;
    clt_status st = create(path, out, err);
    n = n < 1 ? 1 : n < MAX_SAMPLES ? n : MAX_SAMPLES;
    if (st == CLT_OK) st = count(path, &total, err);
    for (int64_t i = 0; i < n && total > n; i++)
        clt_buf_printf(&filter, "%seq(n\\,%lld)", i ? "+" : "select='", (long long)(i * total / n));
    clt_buf_printf(&filter, "%sshowinfo=checksum=0", total > n ? "'," : "");
    if (st == CLT_OK && filter.failed) st = clt_fail_memory(err, path, filter.len);
    if (st == CLT_OK) st = start(*out, filter.data, err);
    clt_buf_free(&filter);
    return finish_open(st, out);
}

/* ffmpeg closed its output: did it fail? */
static clt_status finish(cli_video *v, clt_err *err) {
    int status = 0;
    while (v->err_open) read_lines(v);
    if (v->ffmpeg.id > 0) {
        while (waitpid(v->ffmpeg.id, &status, 0) < 0 && errno == EINTR) {
        }
        cli_signals_group(0);
        close(v->ffmpeg.out), close(v->ffmpeg.err);
        v->ffmpeg = (cli_process){0};
    }
    if (WIFSIGNALED(status))
        return clt_fail(err, CLT_E_FAILED, "%s: ffmpeg was ended by signal %d after %zu frames", v->path, WTERMSIG(status),
                        v->frames);
    return status ? ffmpeg_failed(v->path, v->complaint, err) : CLT_OK;
}

/* Was that the end of the video? */
static clt_status at_end(cli_video *v, clt_err *err) {
    clt_status st = finish(v, err);
    if (st != CLT_OK) return st;
    return v->frames ? CLT_OK : clt_fail(err, CLT_E_FAILED, "%s: ffmpeg found no frame in it", v->path);
}

/* "P6\n640 480\n255\n", byte by byte: pixels follow at once. False at the end, or for anything else. */
static bool read_header(cli_video *v, int *width, int *height, size_t *bytes) {
    char header[HEADER_BYTES] = "";
    int lines = 0, end = 0;
    for (*bytes = 0; *bytes < HEADER_BYTES - 1 && lines < 3; ++*bytes) {
        if (read_bytes(v, header + *bytes, 1) != 1) return false;
        lines += header[*bytes] == '\n';
    }
    return lines == 3 && sscanf(header, "P6 %6d %6d 255%n", width, height, &end) == 2 && end > 0 &&
           header[end] == '\n';
}

/* Time behind the first frame; never running backwards, whatever a file says. */
static double seconds_of(const cli_video *v, size_t frame) {
    size_t known = v->times.len / sizeof(double);
    double first, at;
    if (known == 0) return 0;
    memcpy(&first, v->times.data, sizeof first);
    memcpy(&at, v->times.data + (frame < known ? frame : known - 1) * sizeof at, sizeof at);
    return isfinite(at - first) && at > first ? at - first : 0;
}

static clt_status stopped(const cli_video *v, clt_err *err) {
    return clt_fail(err, CLT_E_CANCELLED, "%s: cancelled", v->path);
}

clt_status cli_video_next(cli_video *v, cli_frame *out, const atomic_bool *stop, clt_err *err) {
    size_t header, bytes;
    *out = (cli_frame){0};
    v->stop = stop;
    if (v->ffmpeg.id <= 0) return at_end(v, err); /* it had ended before */
    if (!read_header(v, &out->width, &out->height, &header)) {
        if (is_stopped(v)) return stopped(v, err);
        if (header == 0) return at_end(v, err);
        return ffmpeg_failed(v->path, "wrote something that is no frame", err);
    }
    if (out->width < 1 || out->height < 1 || out->width > MAX_SIDE || out->height > MAX_SIDE ||
        (int64_t)out->width * out->height > MAX_PIXELS)
        return clt_fail(err, CLT_E_FAILED, "%s: a frame of %d x %d pixels, at most %d in all are taken", v->path, out->width,
                        out->height, (int)MAX_PIXELS);
    bytes = (size_t)out->width * (size_t)out->height * 3;
    out->rgb = clt_alloc(bytes);
    if (!out->rgb) return clt_fail_memory(err, v->path, bytes);
    if (read_bytes(v, out->rgb, bytes) != bytes) {
        clt_free(out->rgb);
        *out = (cli_frame){0};
        if (is_stopped(v)) return stopped(v, err);
        clt_status st = finish(v, err);
        return st != CLT_OK ? st : ffmpeg_failed(v->path, "its last frame is cut off", err);
    }
    out->seconds = seconds_of(v, v->frames++);
    return CLT_OK;
}

void cli_video_close(cli_video *v) {
    if (!v) return;
    if (v->ffmpeg.id > 0) {
        cli_process_kill(&v->ffmpeg);
        cli_signals_group(0);
    }
    clt_buf_free(&v->line);
    clt_buf_free(&v->times);
    clt_free(v->path);
    clt_free(v);
}
