/* The header of a packed copy: bytes in, checked fields out, and back. Believes nothing that a checksum does not cover.
 *
 *     0  "CULETPAK"        8  u64 version        16 u64 model[2]      32 u64 layout      40 u64 stamp
 *     48 u64 bytes         56 u64 slice bytes    64 u64 length of the model's path, then the path
 *     .. u64 checksum of each slice, then u64 checksum of the header up to here
 *
 * All integers are little-endian. The weights begin at the next multiple of a huge page and end with the file. */
#include "hub/packed_head.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/os.h"

enum { FIXED_BYTES = 72, VERSION = 1, MAX_PATH_BYTES = 4096 };
#define MAX_WEIGHTS ((uint64_t)1 << 44)
static const char magic[8] = "CULETPAK";

static uint64_t slices_of(uint64_t bytes) { return (bytes + CLT_PACKED_SLICE - 1) / CLT_PACKED_SLICE; }

static uint64_t offset_of(uint64_t head_bytes) {
    return (head_bytes + CLT_MAP_HUGE - 1) / CLT_MAP_HUGE * CLT_MAP_HUGE;
}

static uint64_t get(const uint8_t *p) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void put(clt_buf *b, uint64_t v) {
    for (int i = 0; i < 8; i++) clt_buf_putc(b, (char)(v >> (8 * i) & 0xff));
}

static uint64_t head_bytes(const clt_packed_head *h) { return FIXED_BYTES + strlen(h->model) + 8 * h->slices + 8; }

clt_status clt_packed_head_make(const clt_packed_key *key, const char *model, clt_packed_head *out, clt_err *err) {
    size_t len = strlen(model);
    /* The end of a long path says more than its beginning. */
    const char *shown = len > MAX_PATH_BYTES ? model + len - MAX_PATH_BYTES : model;
    *out = (clt_packed_head){.key = *key, .slices = slices_of(key->bytes)};
    out->model = clt_strdup(shown);
    out->slice = clt_calloc((size_t)out->slices, sizeof *out->slice);
    if (!out->model || !out->slice) {
        clt_packed_head_free(out);
        return clt_fail_memory(err, "packed copy", out->slices * sizeof *out->slice);
    }
    out->offset = offset_of(head_bytes(out));
    return CLT_OK;
}

void clt_packed_head_put(const clt_packed_head *h, clt_buf *out) {
    size_t start = out->len;
    clt_buf_put(out, magic, sizeof magic);
    put(out, VERSION);
    put(out, h->key.model[0]);
    put(out, h->key.model[1]);
    put(out, h->key.layout);
    put(out, h->key.stamp);
    put(out, h->key.bytes);
    put(out, CLT_PACKED_SLICE);
    put(out, strlen(h->model));
    clt_buf_puts(out, h->model);
    for (uint64_t i = 0; i < h->slices; i++) put(out, h->slice[i]);
    if (!out->failed) put(out, clt_hash_bulk(out->data + start, out->len - start, VERSION));
}

void clt_packed_head_free(clt_packed_head *h) {
    clt_free(h->model);
    clt_free(h->slice);
    h->model = NULL;
    h->slice = NULL;
}

static clt_status damaged(const char *path, const char *what, clt_err *err) {
    return clt_fail(err, CLT_E_FILE, "%s: damaged packed copy: %s", path, what);
}

/* The checked sizes of a header; `all` = its whole length. */
static clt_status check_fixed(const uint8_t *fixed, uint64_t file_bytes, const char *path, uint64_t *all, clt_err *err) {
    uint64_t bytes = get(fixed + 48), len = get(fixed + 64);
    if (memcmp(fixed, magic, sizeof magic) != 0) return damaged(path, "it does not begin with CULETPAK", err);
    if (get(fixed + 8) != VERSION)
        return clt_fail(err, CLT_E_FILE, "%s: packed copy of form %llu, expected %d", path,
                        (unsigned long long)get(fixed + 8), VERSION);
    if (bytes == 0 || bytes > MAX_WEIGHTS || get(fixed + 56) != CLT_PACKED_SLICE || len > MAX_PATH_BYTES)
        return damaged(path, "sizes that cannot be", err);
    *all = FIXED_BYTES + len + 8 * slices_of(bytes) + 8;
    if (file_bytes != offset_of(*all) + bytes)
        return clt_fail(err, CLT_E_FILE, "%s: damaged packed copy: %llu bytes, expected %llu", path,
                        (unsigned long long)file_bytes, (unsigned long long)(offset_of(*all) + bytes));
    return CLT_OK;
}

static clt_status take(const uint8_t *head, uint64_t all, clt_packed_head *out, clt_err *err) {
    size_t len = (size_t)get(head + 64);
    *out = (clt_packed_head){.key = {{get(head + 16), get(head + 24)}, get(head + 32), get(head + 40), get(head + 48)}};
    out->slices = slices_of(out->key.bytes);
    out->offset = offset_of(all);
    out->model = clt_strndup((const char *)head + FIXED_BYTES, len);
    out->slice = clt_calloc((size_t)out->slices, sizeof *out->slice);
    if (!out->model || !out->slice) {
        clt_packed_head_free(out);
        return clt_fail_memory(err, "packed copy", all);
    }
    for (uint64_t i = 0; i < out->slices; i++) out->slice[i] = get(head + FIXED_BYTES + len + 8 * i);
    return CLT_OK;
}

clt_status clt_packed_head_read(int fd, const char *path, clt_packed_head *out, clt_err *err) {
    uint8_t fixed[FIXED_BYTES];
    uint64_t all = 0;
    struct stat st;
    *out = (clt_packed_head){0};
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return damaged(path, "not a regular file", err);
    if (st.st_size < FIXED_BYTES || !clt_read_at(fd, fixed, sizeof fixed, 0)) return damaged(path, "its header is cut off", err);
    clt_status status = check_fixed(fixed, (uint64_t)st.st_size, path, &all, err);
    if (status != CLT_OK) return status;
    uint8_t *head = clt_alloc((size_t)all);
    if (!head) return clt_fail_memory(err, path, all);
    if (!clt_read_at(fd, head, (size_t)all, 0) || memcmp(head, fixed, sizeof fixed) != 0)
        status = damaged(path, "its header cannot be read", err);
    else if (clt_hash_bulk(head, (size_t)all - 8, VERSION) != get(head + all - 8))
        status = damaged(path, "the checksum of its header is wrong", err);
    else
        status = take(head, all, out, err);
    clt_free(head);
    return status;
}

/* ---- checksums of the weights ---- */

enum { STEP_BYTES = 512 << 10 }; /* read, then summed while it is in the cache */

static void sum_task(void *ctx, int task, int thread) {
    (void)thread;
    const clt_packed_sums *s = ctx;
    uint64_t at = (uint64_t)task * CLT_PACKED_SLICE, end = at + CLT_PACKED_SLICE, sum = 0;
    if (end > s->bytes) end = s->bytes;
    for (uint64_t n; at < end; at += n) {
        n = end - at < STEP_BYTES ? end - at : STEP_BYTES;
        if (s->read && !s->read(s->user, at, n)) {
            sum = 0;
            break;
        }
        sum = clt_hash_bulk(s->data + at, (size_t)n, sum + 1);
    }
    s->sum[task] = sum;
}

void clt_packed_sum(const clt_packed_sums *s, clt_pool *pool) {
    clt_pool_run(pool, sum_task, (void *)(uintptr_t)s, (int)slices_of(s->bytes));
}

/* ---- the folder ---- */

clt_status clt_packed_place(const clt_packed_key *key, clt_buf *out, clt_err *err) {
    clt_status status = clt_home_path("packed", out, err);
    if (status != CLT_OK || !key) return status;
    clt_buf_printf(out, "/%016llx%016llx-%016llx" CLT_PACKED_END, (unsigned long long)key->model[0],
                   (unsigned long long)key->model[1], (unsigned long long)key->layout);
    return out->failed ? clt_fail_memory(err, "packed copy", 64) : CLT_OK;
}

uint64_t clt_packed_stamp(uint64_t stamp, const char *path) {
    struct stat st = {0};
    if (stat(path, &st) != 0) return stamp + 1;
    const int64_t facts[] = {(int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec,
                             (int64_t)st.st_ino};
    return clt_hash64(facts, sizeof facts, stamp);
}
