/* culet doctor: what this machine and this build offer, and advice where something is in the way. Opens no model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cores.h"
#include "base/cpu.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/os.h"
#include "base/sysfile.h"
#include "out.h"
#include "verbs.h"

typedef struct feature {
    const char *name, *package, *purpose;
    bool built;
    const char *without; /* what is lost */
} feature;

#ifdef CLT_HAVE_JANSSON
#define HAVE_JANSSON true
#else
#define HAVE_JANSSON false
#endif
#ifdef CLT_HAVE_YAJL
#define HAVE_YAJL true
#else
#define HAVE_YAJL false
#endif
#ifdef CLT_HAVE_OPENSSL
#define HAVE_OPENSSL true
#else
#define HAVE_OPENSSL false
#endif
#ifdef CLT_HAVE_ZSTD
#define HAVE_ZSTD true
#else
#define HAVE_ZSTD false
#endif
#ifdef CLT_HAVE_LIBEDIT
#define HAVE_LIBEDIT true
#else
#define HAVE_LIBEDIT false
#endif
#ifdef CLT_HAVE_UTF8PROC
#define HAVE_UTF8PROC true
#else
#define HAVE_UTF8PROC false
#endif
#ifdef CLT_HAVE_TURBOJPEG
#define HAVE_TURBOJPEG true
#else
#define HAVE_TURBOJPEG false
#endif
#ifdef CLT_HAVE_PNG
#define HAVE_PNG true
#else
#define HAVE_PNG false
#endif
#ifdef CLT_HAVE_WEBP
#define HAVE_WEBP true
#else
#define HAVE_WEBP false
#endif
#ifdef CLT_HAVE_SNDFILE
#define HAVE_SNDFILE true
#else
#define HAVE_SNDFILE false
#endif
#ifdef CLT_HAVE_SOXR
#define HAVE_SOXR true
#else
#define HAVE_SOXR false
#endif

static const feature features[] = {
    {"jansson", "libjansson-dev", "chat requests and Hugging Face folders", HAVE_JANSSON,
     "built without libjansson-dev: chat, render and Hugging Face folders do not work"},
    {"yajl", "libyajl-dev", "tokenizer.json", HAVE_YAJL,
     "built without libyajl-dev: Hugging Face folders do not work"},
    {"openssl", "libssl-dev", "SHA-256", HAVE_OPENSSL,
     "built without libssl-dev: SHA-256 digests are not computed"},
    {"zstd", "libzstd-dev", "saved sessions", HAVE_ZSTD,
     "built without libzstd-dev: chat cannot save or load sessions"},
    {"libedit", "libedit-dev", "line editing in chat", HAVE_LIBEDIT,
     "built without libedit-dev: chat has no line editing"},
    {"utf8proc", "libutf8proc-dev", "upper and lower case beyond ASCII", HAVE_UTF8PROC,
     "built without libutf8proc-dev: tools whose parameters have names beyond ASCII are refused"},
    {"turbojpeg", "libturbojpeg0-dev", "JPEG pictures", HAVE_TURBOJPEG,
     "built without libturbojpeg0-dev: JPEG pictures are not read"},
    {"png", "libpng-dev", "PNG pictures", HAVE_PNG,
     "built without libpng-dev: PNG pictures are not read"},
    {"webp", "libwebp-dev", "WebP pictures", HAVE_WEBP,
     "built without libwebp-dev: WebP pictures are not read"},
    {"sndfile", "libsndfile1-dev", "sound files", HAVE_SNDFILE,
     "built without libsndfile1-dev: sound files are not read"},
    {"soxr", "libsoxr-dev", "sound of other rates than 16 kHz", HAVE_SOXR,
     "built without libsoxr-dev: sound of other rates than 16 kHz is refused"},
};
enum { N_FEATURES = sizeof(features) / sizeof(features[0]), MAX_ADVICE = 16 };

/* Transparent huge pages, as /sys states them; the packed weights ask for them. */
typedef enum huge_pages { HUGE_UNKNOWN, HUGE_NEVER, HUGE_MADVISE, HUGE_ALWAYS } huge_pages;
static const struct {
    const char *name, *effect;
} huge_page_texts[] = {
    [HUGE_UNKNOWN] = {"unknown", "this system has no such setting"},
    [HUGE_NEVER] = {"never", "weights lie in small pages, which the memory delivers more slowly"},
    [HUGE_MADVISE] = {"madvise", "weights lie in huge pages"},
    [HUGE_ALWAYS] = {"always", "weights lie in huge pages"},
};

typedef struct report {
    clt_cpu_level level;
    bool level_known;
    clt_err level_error;
    clt_cores_info cores;
    char threads_reason[160];
    clt_memory_room memory;
    huge_pages huge;
    uint64_t disk_free;
    clt_buf folder, packed;
    bool folder_there, packed_there, default_there;
    size_t packed_files;
    char *default_path;
    const char *advice[MAX_ADVICE];
    size_t n_advice;
} report;

static void advise(report *r, bool when, const char *line) {
    if (when && r->n_advice < MAX_ADVICE) {
        r->advice[r->n_advice++] = line;
    }
}

/* ---- looking ---- */

static huge_pages look_at_huge_pages(void) {
    char line[128];
    if (!clt_sysfile_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof(line))) {
        return HUGE_UNKNOWN;
    }
    return strstr(line, "[always]")    ? HUGE_ALWAYS
           : strstr(line, "[madvise]") ? HUGE_MADVISE
           : strstr(line, "[never]")   ? HUGE_NEVER
                                       : HUGE_UNKNOWN;
}

static void look_at_cores(report *r) {
    const clt_cores_info *c = &r->cores;
    clt_cores_look(NULL, &r->cores);
    bool limited = c->quota > 0 && c->quota < c->fast;
    int n = snprintf(r->threads_reason, sizeof(r->threads_reason), "%s cores%s",
                     c->fast < c->physical ? "the fast ones of the physical" : "physical",
                     c->logical < c->online ? " that the affinity allows" : "");
    if (limited && n > 0) {
        snprintf(r->threads_reason + n, sizeof(r->threads_reason) - (size_t)n,
                 ", within the control group's quota of %.2f processors", c->quota);
    }
}

/* The folders below CULET_HOME; where there is none yet, its nearest existing parent tells the disk. */
static void look_at_folders(report *r) {
    clt_err err;
    clt_err_clear(&err);
    if (clt_home_path("models", &r->folder, &err) == CLT_OK) {
        r->folder_there = clt_is_dir(r->folder.data);
        clt_buf home = {0};
        clt_buf_puts(&home, r->folder.data);
        while (home.data && !clt_is_dir(home.data) && strrchr(home.data, '/') > home.data) {
            *strrchr(home.data, '/') = 0;
        }
        r->disk_free = home.data ? clt_disk_free_bytes(home.data) : 0;
        clt_buf_free(&home);
    }
    if (clt_home_path("packed", &r->packed, &err) == CLT_OK && clt_is_dir(r->packed.data)) {
        char **names = NULL;
        r->packed_there = true;
        if (clt_list_dir(r->packed.data, &names, &r->packed_files, &err) == CLT_OK) {
            for (size_t i = 0; i < r->packed_files; i++) {
                clt_free(names[i]);
            }
            clt_free(names);
        }
    }
}

static void collect_advice(report *r) {
    static const uint64_t gib = 1ull << 30;
    advise(r, !r->level_known, "CULET_CPU asks for something this CPU or program does not have: unset it");
    const char *asked = getenv("CULET_CPU");
    advise(r, r->level_known && asked && *asked, "CULET_CPU sets the level: unset it to use the best one");
    advise(r, r->level_known && r->level == CLT_CPU_SCALAR, "no vector instructions are in use: evaluation will be slow");
    advise(r, r->memory.free_bytes < gib, "less than 1 GiB of memory is available: close other programs");
    advise(r, r->huge == HUGE_NEVER,
           "huge pages are off: as root, echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    advise(r, r->disk_free && r->disk_free < gib, "less than 1 GiB of disk is free where models are kept");
    advise(r, !r->default_there,
           "the default model is not in the model folder: ./quickstart fetches it, or give a file with -m");
    for (size_t i = 0; i < N_FEATURES; i++) {
        advise(r, !features[i].built, features[i].without);
    }
}

static void look(report *r) {
    culet_error failure = {0};
    clt_err_clear(&r->level_error);
    r->level_known = clt_cpu_choose(&r->level, &r->level_error) == CLT_OK;
    look_at_cores(r);
    clt_memory_look(&r->memory);
    r->huge = look_at_huge_pages();
    look_at_folders(r);
    r->default_there = culet_model_find(NULL, &r->default_path, &failure) == CULET_OK;
    collect_advice(r);
}

/* Why a level is in use, or why not. */
static void explain_level(const report *r, clt_cpu_level l, clt_buf *out) {
    if (!clt_cpu_built(l)) {
        clt_buf_puts(out, "of another architecture");
    } else if (!clt_cpu_has(l)) {
        clt_buf_printf(out, "this CPU lacks %s", clt_cpu_lacks(l));
    } else if (r->level_known && l == r->level) {
        const char *asked = getenv("CULET_CPU");
        clt_buf_puts(out, asked && *asked ? "in use, because CULET_CPU says so" : "in use: the best that this CPU has");
    } else if (!r->level_known || l > r->level) {
        clt_buf_puts(out, "present, masked by CULET_CPU");
    } else {
        clt_buf_puts(out, "present, a better one is in use");
    }
}

/* ---- writing ---- */

static void put_text(clt_jsonw *w, const char *key, const char *text) {
    clt_jsonw_key(w, key);
    if (text) {
        clt_jsonw_cstr(w, text);
    } else {
        clt_jsonw_null(w);
    }
}

static void put_int(clt_jsonw *w, const char *key, uint64_t v) {
    clt_jsonw_key(w, key);
    if (v == CLT_UNLIMITED) {
        clt_jsonw_null(w);
    } else {
        clt_jsonw_int(w, (int64_t)v);
    }
}

static void put_bool(clt_jsonw *w, const char *key, bool v) {
    clt_jsonw_key(w, key);
    clt_jsonw_bool(w, v);
}

static void put_cpu(clt_jsonw *w, const report *r) {
    put_text(w, "cpu_model", clt_cpu_model());
    put_int(w, "cores", (uint64_t)r->cores.physical);
    put_int(w, "fast_cores", (uint64_t)r->cores.fast);
    put_int(w, "logical_cpus", (uint64_t)r->cores.online);
    put_int(w, "allowed_cpus", (uint64_t)r->cores.logical);
    clt_jsonw_key(w, "cpu_quota");
    if (r->cores.quota > 0) {
        clt_jsonw_num(w, r->cores.quota);
    } else {
        clt_jsonw_null(w);
    }
    put_int(w, "threads_default", (uint64_t)r->cores.threads);
    put_text(w, "threads_reason", r->threads_reason);
    clt_jsonw_key(w, "cpu_levels");
    clt_jsonw_open(w, '[');
    for (int l = 0; l < CLT_CPU_LEVELS; l++) {
        if (clt_cpu_has((clt_cpu_level)l)) {
            clt_jsonw_cstr(w, clt_cpu_level_name((clt_cpu_level)l));
        }
    }
    clt_jsonw_close(w, ']');
    put_text(w, "cpu_level", r->level_known ? clt_cpu_level_name(r->level) : NULL);
    clt_jsonw_key(w, "levels");
    clt_jsonw_open(w, '[');
    for (int i = 0; i < CLT_CPU_LEVELS; i++) {
        clt_cpu_level l = (clt_cpu_level)i;
        clt_buf why = {0};
        explain_level(r, l, &why);
        clt_jsonw_open(w, '{');
        put_text(w, "name", clt_cpu_level_name(l));
        put_bool(w, "built", clt_cpu_built(l));
        put_bool(w, "present", clt_cpu_has(l));
        put_text(w, "lacks", clt_cpu_lacks(l));
        put_text(w, "why", why.data);
        clt_jsonw_close(w, '}');
        clt_buf_free(&why);
    }
    clt_jsonw_close(w, ']');
}

static void put_memory(clt_jsonw *w, const report *r) {
    const clt_memory_room *m = &r->memory;
    put_int(w, "memory_total_bytes", m->group_limit < m->machine_total ? m->group_limit : m->machine_total);
    put_int(w, "memory_available_bytes", m->free_bytes);
    put_text(w, "memory_limited_by", m->source);
    put_int(w, "machine_memory_bytes", m->machine_total);
    put_int(w, "machine_available_bytes", m->machine_free);
    put_int(w, "group_limit_bytes", m->group_limit);
    put_int(w, "group_used_bytes", m->group_used);
    put_text(w, "group", m->group[0] ? m->group : NULL);
    put_text(w, "huge_pages", huge_page_texts[r->huge].name);
}

static void put_folders(clt_jsonw *w, const report *r) {
    put_int(w, "disk_free_bytes", r->disk_free);
    clt_jsonw_key(w, "model_folder");
    clt_jsonw_str(w, r->folder.data ? r->folder.data : "", r->folder.len);
    put_bool(w, "model_folder_exists", r->folder_there);
    put_text(w, "default_model", r->default_there ? r->default_path : NULL);
    put_text(w, "packed_folder", r->packed_there ? r->packed.data : NULL);
    put_int(w, "packed_files", r->packed_files);
}

static void write_json(const report *r) {
    clt_buf document = {0};
    clt_jsonw w = {.out = &document};
    clt_jsonw_open(&w, '{');
    put_text(&w, "version", CULET_VERSION);
    put_cpu(&w, r);
    put_memory(&w, r);
    put_folders(&w, r);
    clt_jsonw_key(&w, "features");
    clt_jsonw_open(&w, '{');
    for (size_t i = 0; i < N_FEATURES; i++) {
        put_bool(&w, features[i].name, features[i].built);
    }
    clt_jsonw_close(&w, '}');
    clt_jsonw_key(&w, "advice");
    clt_jsonw_open(&w, '[');
    for (size_t i = 0; i < r->n_advice; i++) {
        clt_jsonw_cstr(&w, r->advice[i]);
    }
    clt_jsonw_close(&w, ']');
    clt_jsonw_close(&w, '}');
    clt_buf_putc(&document, '\n');
    cli_out_buf(&document);
    clt_buf_free(&document);
}

static double gib_of(uint64_t bytes) {
    return (double)bytes / 1073741824.0;
}

static void say_cpu(const report *r, clt_buf *out) {
    const clt_cores_info *c = &r->cores;
    clt_buf_printf(out, "cpu      %s\n", clt_cpu_model());
    clt_buf_printf(out, "cores    %d physical, %d of %d logical may be used", c->physical, c->logical, c->online);
    if (c->fast < c->physical) {
        clt_buf_printf(out, ", %d of the fast kind", c->fast);
    }
    if (c->quota > 0) {
        clt_buf_printf(out, ", quota of %.2f processors", c->quota);
    }
    clt_buf_printf(out, "\nthreads  %d by default: %s\n", c->threads, r->threads_reason);
    for (int i = 0; i < CLT_CPU_LEVELS; i++) {
        clt_cpu_level l = (clt_cpu_level)i;
        if (clt_cpu_built(l)) {
            clt_buf_printf(out, "%s%-11s ", i ? "         " : "levels   ", clt_cpu_level_name(l));
            explain_level(r, l, out);
            clt_buf_putc(out, '\n');
        }
    }
    clt_buf_printf(out, "in use   %s\n", r->level_known ? clt_cpu_level_name(r->level) : r->level_error.text);
}

static void say_memory(const report *r, clt_buf *out) {
    const clt_memory_room *m = &r->memory;
    clt_buf_printf(out, "memory   %.1f GiB, %.1f GiB available\n", gib_of(m->machine_total), gib_of(m->machine_free));
    if (m->group_limit != CLT_UNLIMITED) {
        clt_buf_printf(out, "         %.1f GiB in control group %s, %.1f GiB of it in use\n", gib_of(m->group_limit),
                       m->group, gib_of(m->group_used));
    }
    if (m->free_bytes < m->machine_free) {
        clt_buf_printf(out, "         a model may take %.1f GiB (%s)\n", gib_of(m->free_bytes), m->source);
    }
    clt_buf_printf(out, "pages    huge pages: %s, %s\n", huge_page_texts[r->huge].name, huge_page_texts[r->huge].effect);
}

static void write_text(const report *r) {
    clt_buf out = {0};
    clt_buf_printf(&out, "culet    %s\n", CULET_VERSION);
    say_cpu(r, &out);
    say_memory(r, &out);
    clt_buf_printf(&out, "disk     %.1f GiB free\n", gib_of(r->disk_free));
    clt_buf_printf(&out, "models   %s%s\n", r->folder.data ? r->folder.data : "?",
                   r->folder_there ? "" : " (does not exist yet)");
    if (r->packed_there) {
        clt_buf_printf(&out, "packed   %s, %zu entr%s\n", r->packed.data, r->packed_files,
                       r->packed_files == 1 ? "y" : "ies");
    }
    clt_buf_printf(&out, "default  %s\n", r->default_there ? r->default_path : "not found");
    for (size_t i = 0; i < N_FEATURES; i++) {
        clt_buf_printf(&out, "%s%-9s %-3s  %s (%s)\n", i ? "         " : "built in ", features[i].name,
                       features[i].built ? "yes" : "no", features[i].purpose, features[i].package);
    }
    for (size_t i = 0; i < r->n_advice; i++) {
        clt_buf_printf(&out, "advice   %s\n", r->advice[i]);
    }
    cli_out_buf(&out);
    clt_buf_free(&out);
}

int cli_doctor(const cli_args *args) {
    report r = {0};
    if (args->operands.n) {
        return cli_failf(CLT_E_USAGE, "%s: doctor takes no argument", args->operands.items[0]);
    }
    look(&r);
    if (args->json) {
        write_json(&r);
    } else {
        write_text(&r);
    }
    culet_free(r.default_path);
    clt_buf_free(&r.folder);
    clt_buf_free(&r.packed);
    return r.level_known ? 0
                         : cli_fail(&r.level_error); /* the report is there to explain what every other command refuses */
}
