/* Which vision file belongs to a model: names of one folder in, a path out. Whether it fits is decided where it is opened. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "base/mem.h"
#include "base/os.h"
#include "hub/folder.h"

enum { MAX_NAME = 256 };

/* A name without ".gguf" and split suffix, in pieces between '-', '_' and '.'; the pieces that only say of what type the
 * weights are, or that it is a vision file, left out, joined by '-'. "mmproj-gemma-4-E4B-it-BF16.gguf" -> "gemma-4-e4b-it". */
static void stem_of(const char *name, char out[MAX_NAME]) {
    static const char *const types[] = {"f16", "f32", "bf16", "fp16", "mmproj", "model", "gguf", "ud", "qat"};
    size_t n = 0;
    while (*name) {
        size_t len = strcspn(name, "-_.");
        bool kept = len > 0 && n + len + 2 < MAX_NAME;
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (strlen(types[i]) == len && !strncasecmp(name, types[i], len)) kept = false;
        bool quant = len > 1 && (name[0] == 'q' || name[0] == 'Q') && isdigit((unsigned char)name[1]);
        if (quant) break; /* Q4_K_M, Q4_0-00001-of-00002: all that follows says how */
        if (len > 2 && !strncasecmp(name, "iq", 2) && isdigit((unsigned char)name[2])) break;
        if (kept && n) out[n++] = '-';
        for (size_t i = 0; kept && i < len; i++) out[n++] = (char)tolower((unsigned char)name[i]);
        name += len + (name[len] != 0);
    }
    out[n] = 0;
}

/* Less is better. */
static int type_rank(const char *name) {
    static const char *const types[] = {"bf16", "f16", "f32", "q8_0"};
    int i = 0;
    while (i < 4 && !strcasestr(name, types[i])) i++;
    return i;
}

static bool is_vision_file(const char *name) { return clt_ends_with(name, ".gguf") && strcasestr(name, "mmproj"); }

/* Do all models of the folder have this stem? */
static bool is_alone(char *const *names, size_t n, const char *stem) {
    char other[MAX_NAME];
    for (size_t i = 0; i < n; i++) {
        if (!clt_hub_is_model(names[i])) continue;
        stem_of(names[i], other);
        if (strcmp(other, stem) != 0) return false;
    }
    return true;
}

/* Index of the best name; n: none. The longest stem wins, then the type. */
static size_t choose(char *const *names, size_t n, const char *stem) {
    size_t best = n, best_len = 0;
    bool alone = is_alone(names, n, stem);
    char other[MAX_NAME];
    for (size_t i = 0; i < n; i++) {
        if (!is_vision_file(names[i])) continue;
        stem_of(names[i], other);
        size_t len = strlen(other);
        if (len == 0 ? !alone : strncmp(stem, other, len) != 0) continue;
        if (best < n && (len < best_len || (len == best_len && type_rank(names[i]) >= type_rank(names[best])))) continue;
        best = i, best_len = len;
    }
    return best;
}

clt_status clt_hub_find_vision(const char *model, clt_buf *path, clt_err *err) {
    const char *slash = strrchr(model, '/');
    char stem[MAX_NAME];
    char **names;
    size_t n, folder_len = slash ? (size_t)(slash - model) : 1;
    clt_buf folder = {0};
    clt_buf_put(&folder, slash == model ? "/" : slash ? model : ".", folder_len ? folder_len : 1);
    if (folder.failed) return clt_fail_memory(err, model, folder_len);
    stem_of(slash ? slash + 1 : model, stem);
    clt_status status = clt_list_dir(folder.data, &names, &n, err);
    if (status == CLT_OK) {
        size_t best = choose(names, n, stem);
        if (best < n) clt_buf_printf(path, "%s/%s", folder.data, names[best]);
        if (path->failed) status = clt_fail_memory(err, model, folder.len);
        for (size_t i = 0; i < n; i++) clt_free(names[i]);
        clt_free(names);
    } else {
        status = CLT_OK; /* a folder that may be entered but not listed: nothing can be found there */
    }
    clt_buf_free(&folder);
    return status;
}
