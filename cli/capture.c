/* Captures of files, folders and videos. A camera has its own file. */
#include "capture.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include "base/mem.h"
#include "base/os.h"
#include "video.h"

enum { MOST_FILE_BYTES = 512 << 20, DEEPEST = 64 };

void cli_shot_free(cli_shot *s) {
    clt_free(s->name);
    clt_buf_free(&s->bytes);
    clt_free(s->rgb);
    clt_free(s->samples);
    *s = (cli_shot){0};
}

void cli_capture_close(cli_capture *c) {
    if (c) {
        c->close(c);
    }
}

/* ---- files ---- */

typedef struct files {
    cli_capture base;
    char **path;
    size_t cap, at;
} files;

static void files_close(cli_capture *c) {
    files *f = (files *)c;
    for (size_t i = 0; i < f->base.n; i++) {
        clt_free(f->path[i]);
    }
    clt_free(f->path);
    clt_free(f);
}

static clt_status files_next(cli_capture *c, cli_shot *out, bool *end, const atomic_bool *stop, clt_err *err) {
    files *f = (files *)c;
    double begin = clt_now_ms();
    (void)stop;
    *end = f->at == f->base.n;
    if (*end) {
        return CLT_OK;
    }
    const char *path = f->path[f->at];
    out->index = f->at++;
    out->name = clt_strdup(path);
    if (!out->name) {
        return clt_fail_memory(err, path, strlen(path));
    }
    clt_status status = clt_read_regular(path, MOST_FILE_BYTES, &out->bytes, err);
    out->ms = clt_now_ms() - begin;
    return status;
}

static clt_status files_create(files **out, clt_err *err) {
    files *f = clt_calloc(1, sizeof(*f));
    *out = f;
    if (!f) {
        return clt_fail_memory(err, "captions", sizeof(*f));
    }
    f->base = (cli_capture){.next = files_next, .close = files_close};
    return CLT_OK;
}

static clt_status files_add(files *f, const char *path, clt_err *err) {
    if (f->base.n == f->cap) {
        size_t cap = f->cap ? 2 * f->cap : 64;
        char **grown = clt_realloc(f->path, cap * sizeof(*grown));
        if (!grown) {
            return clt_fail_memory(err, "a list of files", cap * sizeof(*grown));
        }
        f->path = grown;
        f->cap = cap;
    }
    f->path[f->base.n] = clt_strdup(path);
    if (!f->path[f->base.n]) {
        return clt_fail_memory(err, path, strlen(path));
    }
    f->base.n++;
    return CLT_OK;
}

clt_status cli_capture_files(const char *const *paths, size_t n, cli_capture **out, clt_err *err) {
    files *f;
    clt_status status = files_create(&f, err);
    for (size_t i = 0; i < n && !status; i++) {
        status = files_add(f, paths[i], err);
    }
    if (status) {
        cli_capture_close(f ? &f->base : NULL);
        return status;
    }
    *out = &f->base;
    return CLT_OK;
}

/* ---- folders ---- */

static bool is_picture_name(const char *name) {
    static const char *const ends[] = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        size_t n = strlen(ends[i]);
        if (len > n && !strcasecmp(name + len - n, ends[i])) {
            return true;
        }
    }
    return false;
}

static clt_status walk(files *f, const char *folder, int depth, clt_err *err);

/* One entry: a folder that is no link is entered, a picture is taken, all else is passed over. */
static clt_status visit(files *f, const char *folder, const char *name, int depth, clt_err *err) {
    clt_buf path = {0};
    struct stat at;
    clt_status status = CLT_OK;
    size_t len = strlen(folder);
    clt_buf_printf(&path, "%s%s%s", folder, len && folder[len - 1] == '/' ? "" : "/", name);
    if (path.failed) {
        status = clt_fail_memory(err, name, strlen(name));
    } else if (!lstat(path.data, &at) && S_ISDIR(at.st_mode)) {
        status = walk(f, path.data, depth + 1, err);
    } else if (is_picture_name(name) && clt_is_file(path.data)) {
        status = files_add(f, path.data, err);
    }
    clt_buf_free(&path);
    return status;
}

static clt_status walk(files *f, const char *folder, int depth, clt_err *err) {
    char **names = NULL;
    size_t n = 0;
    if (depth > DEEPEST) {
        return clt_fail(err, CLT_E_FAILED, "%s: folders are nested more than %d deep", folder, DEEPEST);
    }
    clt_status status = clt_list_dir(folder, &names, &n, err);
    for (size_t i = 0; i < n; i++) {
        if (!status) {
            status = visit(f, folder, names[i], depth, err);
        }
        clt_free(names[i]);
    }
    clt_free(names);
    return status == CLT_E_FILE ? err->code = CLT_E_FAILED : status;
}

clt_status cli_capture_folder(const char *path, cli_capture **out, clt_err *err) {
    files *f;
    clt_status status = files_create(&f, err);
    if (!status && !clt_is_dir(path)) {
        status = clt_fail(err, CLT_E_FAILED, "%s: not a folder", path);
    }
    if (!status) {
        status = walk(f, path, 0, err);
    }
    if (!status && !f->base.n) {
        clt_fail(err, CLT_E_FAILED, "%s: it holds no pictures", path);
        status = clt_hint(err, "pictures are files that end in .jpg, .jpeg, .png or .webp");
    }
    if (status) {
        cli_capture_close(f ? &f->base : NULL);
        return status;
    }
    *out = &f->base;
    return CLT_OK;
}

/* ---- videos ---- */

typedef struct movie {
    cli_capture base;
    cli_video *video;
    char *path;
    size_t at;
} movie;

static void movie_close(cli_capture *c) {
    movie *m = (movie *)c;
    cli_video_close(m->video);
    clt_free(m->path);
    clt_free(m);
}

static clt_status movie_next(cli_capture *c, cli_shot *out, bool *end, const atomic_bool *stop, clt_err *err) {
    movie *m = (movie *)c;
    cli_frame frame = {0};
    double begin = clt_now_ms();
    clt_status status = cli_video_next(m->video, &frame, stop, err);
    *end = !status && !frame.rgb;
    if (status || *end) {
        return status;
    }
    out->name = clt_strdup(m->path);
    out->rgb = frame.rgb;
    out->width = frame.width;
    out->height = frame.height;
    out->seconds = frame.seconds;
    out->index = m->at++;
    out->ms = clt_now_ms() - begin;
    return out->name ? CLT_OK : clt_fail_memory(err, m->path, strlen(m->path));
}

clt_status cli_capture_video(const char *path, double every, cli_capture **out, clt_err *err) {
    movie *m = clt_calloc(1, sizeof(*m));
    if (!m) {
        return clt_fail_memory(err, path, sizeof(*m));
    }
    m->base = (cli_capture){.next = movie_next, .close = movie_close};
    clt_status status = cli_video_open(path, every, &m->video, err);
    m->path = clt_strdup(path);
    if (!status && !m->path) {
        status = clt_fail_memory(err, path, strlen(path));
    }
    if (status) {
        movie_close(&m->base);
        return status;
    }
    *out = &m->base;
    return CLT_OK;
}
