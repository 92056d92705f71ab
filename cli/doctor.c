/* culet doctor: what this machine and this build offer, and advice where something is in the way. Opens no model. */
#include <string.h>
#include <unistd.h>
#include "base/cpu.h"
#include "base/json.h"
#include "base/os.h"
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
};
enum { N_FEATURES = sizeof(features) / sizeof(features[0]), MAX_ADVICE = 16 };

typedef struct report {
    clt_cpu_level level;
    bool level_known;
    clt_err level_error;
    uint64_t memory_total, memory_free, disk_free;
    clt_buf folder;
    bool folder_there, default_there;
    char *default_path;
    const char *advice[MAX_ADVICE];
    size_t n_advice;
} report;

static void advise(report *r, bool when, const char *line) {
    if (when && r->n_advice < MAX_ADVICE) {
        r->advice[r->n_advice++] = line;
    }
}

static void look(report *r) {
    culet_error failure = {0};
    clt_err err;
    clt_err_clear(&err);
    clt_err_clear(&r->level_error);
    r->level_known = clt_cpu_choose(&r->level, &r->level_error) == CLT_OK;
    r->memory_total = clt_memory_total_bytes();
    r->memory_free = clt_memory_available_bytes();
    if (clt_home_path("models", &r->folder, &err) == CLT_OK) {
        r->folder_there = clt_is_dir(r->folder.data);
        clt_buf home = {0};
        /* The folder may not exist yet: then its nearest existing parent tells the disk. */
        clt_buf_puts(&home, r->folder.data);
        while (home.data && !clt_is_dir(home.data) && strrchr(home.data, '/') > home.data) {
            *strrchr(home.data, '/') = 0;
        }
        r->disk_free = home.data ? clt_disk_free_bytes(home.data) : 0;
        clt_buf_free(&home);
    }
    r->default_there = culet_model_find(NULL, &r->default_path, &failure) == CULET_OK;

    static const uint64_t gib = 1ull << 30;
    advise(r, !r->level_known, "CULET_CPU asks for something this CPU or program does not have: unset it");
    advise(r, r->level_known && r->level == CLT_CPU_SCALAR, "no vector instructions are in use: evaluation will be slow");
    advise(r, r->memory_free && r->memory_free < gib, "less than 1 GiB of memory is available: close other programs");
    advise(r, r->disk_free && r->disk_free < gib, "less than 1 GiB of disk is free where models are kept");
    advise(r, !r->default_there,
           "the default model is not in the model folder: ./quickstart fetches it, or give a file with -m");
    for (size_t i = 0; i < N_FEATURES; i++) {
        advise(r, !features[i].built, features[i].without);
    }
}

static void write_json(const report *r) {
    clt_buf document = {0};
    clt_jsonw w = {.out = &document};
    clt_jsonw_open(&w, '{');
    clt_jsonw_key(&w, "version");
    clt_jsonw_cstr(&w, CULET_VERSION);
    clt_jsonw_key(&w, "cpu_model");
    clt_jsonw_cstr(&w, clt_cpu_model());
    clt_jsonw_key(&w, "cores");
    clt_jsonw_int(&w, clt_cores());
    clt_jsonw_key(&w, "cpu_levels");
    clt_jsonw_open(&w, '[');
    for (int l = 0; l < CLT_CPU_LEVELS; l++) {
        if (clt_cpu_has((clt_cpu_level)l)) {
            clt_jsonw_cstr(&w, clt_cpu_level_name((clt_cpu_level)l));
        }
    }
    clt_jsonw_close(&w, ']');
    clt_jsonw_key(&w, "cpu_level");
    if (r->level_known) {
        clt_jsonw_cstr(&w, clt_cpu_level_name(r->level));
    } else {
        clt_jsonw_null(&w);
    }
    clt_jsonw_key(&w, "memory_total_bytes");
    clt_jsonw_int(&w, (int64_t)r->memory_total);
    clt_jsonw_key(&w, "memory_available_bytes");
    clt_jsonw_int(&w, (int64_t)r->memory_free);
    clt_jsonw_key(&w, "disk_free_bytes");
    clt_jsonw_int(&w, (int64_t)r->disk_free);
    clt_jsonw_key(&w, "model_folder");
    clt_jsonw_str(&w, r->folder.data ? r->folder.data : "", r->folder.len);
    clt_jsonw_key(&w, "model_folder_exists");
    clt_jsonw_bool(&w, r->folder_there);
    clt_jsonw_key(&w, "default_model");
    if (r->default_there) {
        clt_jsonw_cstr(&w, r->default_path);
    } else {
        clt_jsonw_null(&w);
    }
    clt_jsonw_key(&w, "features");
    clt_jsonw_open(&w, '{');
    for (size_t i = 0; i < N_FEATURES; i++) {
        clt_jsonw_key(&w, features[i].name);
        clt_jsonw_bool(&w, features[i].built);
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

static void write_text(const report *r) {
    clt_buf out = {0};
    clt_buf_printf(&out, "culet    %s\n", CULET_VERSION);
    clt_buf_printf(&out, "cpu      %s, %d cores\n", clt_cpu_model(), clt_cores());
    clt_buf_puts(&out, "levels  ");
    for (int l = 0; l < CLT_CPU_LEVELS; l++) {
        if (clt_cpu_has((clt_cpu_level)l)) {
            clt_buf_printf(&out, " %s", clt_cpu_level_name((clt_cpu_level)l));
        }
    }
    clt_buf_printf(&out, "\nin use   %s\n", r->level_known ? clt_cpu_level_name(r->level) : r->level_error.text);
    clt_buf_printf(&out, "memory   %.1f GiB, %.1f GiB available\n", (double)r->memory_total / 1073741824.0,
                   (double)r->memory_free / 1073741824.0);
    clt_buf_printf(&out, "disk     %.1f GiB free\n", (double)r->disk_free / 1073741824.0);
    clt_buf_printf(&out, "models   %s%s\n", r->folder.data ? r->folder.data : "?",
                   r->folder_there ? "" : " (does not exist yet)");
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
    return r.level_known ? 0
                         : cli_fail(&r.level_error); /* the report is there to explain what every other command refuses */
}
