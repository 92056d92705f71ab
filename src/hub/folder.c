/* The model folder: a name in, a path out; or every entry in turn. Looks at names and sizes only: whether a file is a sound
 * model is decided where it is opened. */
#include "hub/folder.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/mem.h"
#include "base/os.h"

/* A part of a split model other than the first: not an entry of its own. */
static bool is_later_part(const char *name) {
    const char *of = strstr(name, "-of-");
    return of && of - name >= 6 && of[-6] == '-' && strncmp(of - 5, "00001", 5) != 0 && strspn(of - 5, "0123456789") == 5;
}

bool clt_hub_is_model(const char *name) {
    return clt_ends_with(name, ".gguf") && !strstr(name, "mmproj") && !is_later_part(name);
}

static void join(clt_buf *out, const char *folder, const char *name) {
    clt_buf_reset(out);
    clt_buf_printf(out, "%s/%s", folder, name);
}

static uint64_t file_bytes(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* What a folder is as a model: its config.json makes it a Hugging Face folder; else it may hold one GGUF model (projectors
 * beside it do not count), whose path is left in `file`. */
typedef struct folder_view {
    bool is_hf;
    int models;
    uint64_t bytes;
    clt_buf file;
} folder_view;

static clt_status view_folder(const char *path, folder_view *view, clt_err *err) {
    char **names;
    size_t n;
    clt_buf entry = {0};
    clt_status status = clt_list_dir(path, &names, &n, err);
    if (status != CLT_OK) return status;
    for (size_t i = 0; i < n; i++) {
        join(&entry, path, names[i]);
        if (!entry.failed) {
            view->bytes += file_bytes(entry.data);
            view->is_hf |= strcmp(names[i], "config.json") == 0;
            if (clt_hub_is_model(names[i])) {
                if (view->models++ == 0) clt_buf_puts(&view->file, entry.data);
            }
        }
        clt_free(names[i]);
    }
    clt_free(names);
    if (entry.failed || view->file.failed) status = clt_fail_memory(err, path, strlen(path));
    clt_buf_free(&entry);
    return status;
}

/* Appends the path of the model that an existing path stands for. */
static clt_status settle(const char *path, clt_buf *out, clt_err *err) {
    folder_view view = {0};
    clt_status status = CLT_OK;
    if (clt_is_dir(path)) status = view_folder(path, &view, err);
    if (status == CLT_OK) {
        clt_buf_puts(out, !view.is_hf && view.models == 1 ? view.file.data : path);
        if (out->failed) status = clt_fail_memory(err, path, strlen(path));
    }
    clt_buf_free(&view.file);
    return status;
}

static bool exists(const char *path) {
    return clt_is_file(path) || clt_is_dir(path);
}

static clt_status not_found(const char *name, bool is_default, const char *folder, clt_err *err) {
    if (is_default) {
        clt_fail(err, CLT_E_FILE, "%s/%s: the default model is not there", folder, name);
        return clt_hint(err, "run ./quickstart to fetch it, or name a model with -m");
    }
    clt_fail(err, CLT_E_FILE, "%s: neither a file or folder, nor a model in %s", name, folder);
    return clt_hint(err, "`culet ls` lists the models that are there");
}

/* "~/x", which a shell leaves alone in --model=~/x; nothing for other names. */
static void put_home_path(const char *name, clt_buf *out) {
    const char *home = getenv("HOME");
    if (home && *home && strncmp(name, "~/", 2) == 0) clt_buf_printf(out, "%s%s", home, name + 1);
}

clt_status clt_hub_find(const char *name, clt_buf *path, clt_err *err) {
    bool is_default = !name;
    clt_buf folder = {0}, tried = {0};
    clt_status status;
    if (is_default) name = CLT_DEFAULT_MODEL;
    else if (exists(name)) return settle(name, path, err);
    put_home_path(name, &tried);
    if (tried.len && !tried.failed && exists(tried.data)) {
        status = settle(tried.data, path, err);
        goto out;
    }
    status = clt_home_path("models", &folder, err);
    if (status != CLT_OK) goto out;
    static const char *const endings[] = {"", ".gguf"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings && *name; i++) {
        clt_buf_reset(&tried);
        clt_buf_printf(&tried, "%s/%s%s", folder.data, name, endings[i]);
        if (tried.failed) {
            status = clt_fail_memory(err, name, strlen(name));
            goto out;
        }
        if (exists(tried.data)) {
            status = settle(tried.data, path, err);
            goto out;
        }
    }
    status = not_found(name, is_default, folder.data, err);
out:
    clt_buf_free(&folder);
    clt_buf_free(&tried);
    return status;
}

/* Reports one name of the folder if it is a model. */
static clt_status report(const char *path, const char *name, void (*fn)(void *user, const clt_hub_entry *e), void *user,
                         clt_err *err) {
    clt_hub_entry e = {.name = name, .path = path, .format = "GGUF"};
    if (!clt_is_dir(path)) {
        e.bytes = file_bytes(path);
        if (clt_hub_is_model(name)) fn(user, &e);
        return CLT_OK;
    }
    folder_view view = {0};
    clt_status status = view_folder(path, &view, err);
    e.bytes = view.bytes;
    if (view.is_hf) e.format = "Hugging Face";
    if (status == CLT_OK && (view.is_hf || view.models == 1)) fn(user, &e);
    clt_buf_free(&view.file);
    return status;
}

clt_status clt_hub_each(void (*fn)(void *user, const clt_hub_entry *e), void *user, clt_err *err) {
    clt_buf folder = {0}, entry = {0};
    char **names = NULL;
    size_t n = 0;
    clt_status status = clt_home_path("models", &folder, err);
    if (status == CLT_OK && clt_is_dir(folder.data)) status = clt_list_dir(folder.data, &names, &n, err);
    for (size_t i = 0; i < n; i++) {
        if (status == CLT_OK) {
            join(&entry, folder.data, names[i]);
            status = entry.failed ? clt_fail_memory(err, names[i], strlen(names[i]))
                                  : report(entry.data, names[i], fn, user, err);
        }
        clt_free(names[i]);
    }
    clt_free(names);
    clt_buf_free(&folder);
    clt_buf_free(&entry);
    return status;
}
