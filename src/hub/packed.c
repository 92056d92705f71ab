/* Using a packed copy: a key in, checked weights in memory out.
 *
 * Where the page cache holds the file in huge pages, its mapping itself serves: nothing is copied and the weights of
 * several processes are one. Elsewhere mappings come in small pages, which cost speed at every token, so the copy is
 * read into huge pages of our own. Either way every slice is checked before the first use. */
#include "hub/packed.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "base/map.h"
#include "base/mem.h"
#include "base/os.h"
#include "hub/packed_head.h"

struct clt_packed {
    clt_buf path;
    clt_packed_head head;
    clt_map map;      /* data NULL: not mapped */
    uint8_t *pages;   /* or this */
    int fd;
};

enum { PROBE_BYTES = 16 << 20 };

static bool read_step(void *user, uint64_t at, uint64_t n) {
    const clt_packed *p = user;
    return clt_read_at(p->fd, p->pages + at, (size_t)n, p->head.offset + at);
}

/* Announces the whole step behind this one: a cold copy is read in large pieces. */
static bool expect_step(void *user, uint64_t at, uint64_t n) {
    const clt_packed *p = user;
    if (at % CLT_PACKED_SLICE == 0) clt_map_advise(&p->map, at + 4 * CLT_PACKED_SLICE, CLT_PACKED_SLICE, CLT_MAP_WILLNEED);
    (void)n;
    return true;
}

static clt_status check_slices(const clt_packed *p, const uint64_t *sum, clt_err *err) {
    for (uint64_t i = 0; i < p->head.slices; i++)
        if (sum[i] != p->head.slice[i])
            return clt_fail(err, CLT_E_FILE, "%s: damaged packed copy: the checksum of slice %llu of %llu is wrong",
                            p->path.data, (unsigned long long)i + 1, (unsigned long long)p->head.slices);
    return CLT_OK;
}

static clt_status load(clt_packed *p, clt_pool *pool, clt_err *err) {
    uint64_t bytes = p->head.key.bytes, *sum = clt_calloc((size_t)p->head.slices, sizeof *sum);
    if (!sum) return clt_fail_memory(err, "packed copy", p->head.slices * sizeof *sum);
    clt_packed_sums s = {.bytes = bytes, .user = p, .sum = sum};
    if (clt_map_part(p->fd, p->head.offset, bytes, &p->map) && clt_map_is_huge(&p->map, PROBE_BYTES)) {
        s.data = p->map.data;
        s.read = expect_step;
    } else {
        clt_map_close(&p->map);
        s.data = p->pages = clt_pages_alloc((size_t)bytes);
        s.read = read_step;
    }
    clt_status status = CLT_OK;
    if (!s.data) {
        status = clt_fail_memory(err, "packed copy", bytes);
    } else {
        clt_packed_sum(&s, pool);
        status = check_slices(p, sum, err);
    }
    clt_free(sum);
    return status;
}

static clt_status check_key(const clt_packed *p, const clt_packed_key *key, clt_err *err) {
    const clt_packed_key *k = &p->head.key;
    if (k->model[0] != key->model[0] || k->model[1] != key->model[1] || k->layout != key->layout || k->bytes != key->bytes)
        return clt_fail(err, CLT_E_FILE, "%s: packed copy of another model", p->path.data);
    if (k->stamp != key->stamp)
        return clt_fail(err, CLT_E_FILE, "%s: packed copy of an earlier state of the model's file", p->path.data);
    return CLT_OK;
}

clt_status clt_packed_open(const clt_packed_key *key, clt_pool *pool, clt_packed **out, clt_err *err) {
    clt_status status;
    *out = NULL;
    clt_packed *p = clt_calloc(1, sizeof *p);
    if (!p) return clt_fail_memory(err, "packed copy", sizeof *p);
    p->fd = -1;
    status = clt_packed_place(key, &p->path, err);
    if (status == CLT_OK) {
        p->fd = open(p->path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (p->fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
            clt_packed_close(p);
            return CLT_OK;
        }
        if (p->fd < 0) status = clt_fail(err, CLT_E_FILE, "%s: %s", p->path.data, strerror(errno));
    }
    if (status == CLT_OK) status = clt_packed_head_read(p->fd, p->path.data, &p->head, err);
    if (status == CLT_OK) status = check_key(p, key, err);
    if (status == CLT_OK) status = load(p, pool, err);
    if (status == CLT_OK) *out = p;
    else clt_packed_close(p);
    return status;
}

void clt_packed_close(clt_packed *p) {
    if (!p) return;
    clt_map_close(&p->map);
    clt_pages_free(p->pages, (size_t)p->head.key.bytes);
    if (p->fd >= 0) close(p->fd);
    clt_packed_head_free(&p->head);
    clt_buf_free(&p->path);
    clt_free(p);
}

const uint8_t *clt_packed_data(const clt_packed *p) { return p->map.data ? p->map.data : p->pages; }
const char *clt_packed_path(const clt_packed *p) { return p->path.data; }
bool clt_packed_is_mapped(const clt_packed *p) { return p->map.data != NULL; }
