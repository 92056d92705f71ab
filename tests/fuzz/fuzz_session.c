/* Fuzzes the loading of saved sessions: arbitrary bytes either are refused with the session unchanged, or give a session
 * that goes on.
 *
 * The first byte chooses: odd, the rest is a file as it stands. Even, the rest is the numbers of a header (bytes 32 to 88)
 * and unpacked content, and everything that guards them is made right, so that mutations reach what lies behind the hashes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if CLT_HAVE_ZSTD
#include <zstd.h>
#endif
#include "base/hash.h"
#include "base/mem.h"
#include "culet.h"

enum { HEADER = 128, NUMBERS = 32, NUMBERS_END = 88, MAX_FILE = 1 << 20 };
static culet_engine *engine;
static culet_session *session;
static unsigned char guard[HEADER]; /* the header of a real session of this model */

static int memory_file(char path[64]) {
    int fd = memfd_create("culet-fuzz", MFD_CLOEXEC);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void reset(void) {
    culet_error err;
    const int32_t ids[3] = {2, 646, 526};
    if (culet_session_sync(session, ids, 3, NULL, &err) != CULET_OK) abort();
}

/* Saving renames, so it needs a folder. */
static void read_guard(void) {
    char folder[] = "/tmp/culet-fuzz-XXXXXX", path[64];
    culet_error err;
    if (!mkdtemp(folder)) abort();
    snprintf(path, sizeof path, "%s/s", folder);
    if (culet_session_save(session, path, NULL, 0, &err) != CULET_OK) exit(77);
    FILE *f = fopen(path, "rb");
    if (!f || fread(guard, 1, HEADER, f) != HEADER) abort();
    fclose(f);
    unlink(path);
    rmdir(folder);
}

/* The leak checker does not look into system pages, so what only they point to must not be left. */
static void stop(void) {
    culet_session_close(session);
    culet_engine_close(engine);
}

static void start(void) {
    culet_error err;
    atexit(stop);
    culet_engine_params p = {.model = CLT_TEST_DIR "/golden/models/tiny-gemma3", .threads = 1};
    culet_session_params sp = {.context = 32, .ubatch = 8, .kv_k = CULET_KV_Q8_0, .kv_v = CULET_KV_Q8_0};
    if (culet_engine_open(&p, &engine, &err) != CULET_OK) abort();
    if (culet_session_open(engine, &sp, &session, &err) != CULET_OK) abort();
    reset();
    read_guard();
}

static void put64(unsigned char *to, uint64_t v) {
    for (int i = 0; i < 8; i++) to[i] = (unsigned char)(v >> 8 * i);
}

/* Numbers and content -> a file whose hashes are right. Returns its size, 0 if the input is too short. */
static size_t build(const uint8_t *data, size_t size, unsigned char *file) {
#if CLT_HAVE_ZSTD
    size_t n = NUMBERS_END - NUMBERS;
    if (size < n) return 0;
    memcpy(file, guard, HEADER);
    memcpy(file + NUMBERS, data, n);
    size_t frame = ZSTD_compress(file + HEADER, MAX_FILE - HEADER, data + n, size - n, 1);
    if (ZSTD_isError(frame)) return 0;
    put64(file + 88, frame);
    put64(file + 96, clt_hash64(file + HEADER, frame, 1));
    put64(file + 120, clt_hash64(file, 120, 2));
    return HEADER + frame;
#else
    (void)data, (void)size, (void)file, (void)put64;
    return 0;
#endif
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned char file[MAX_FILE];
    char path[64], *extra;
    size_t len, n;
    culet_error err;
    if (!engine) start();
    if (size < 1 || size > MAX_FILE / 2) return 0;
    if (data[0] & 1) memcpy(file, data + 1, len = size - 1);
    else if ((len = build(data + 1, size - 1, file)) == 0) return 0;
    int fd = memory_file(path);
    if (fd < 0 || write(fd, file, len) != (ssize_t)len) abort();
    long live = clt_mem_live();
    if (culet_session_load(session, path, &extra, &len, &err) == CULET_OK) {
        culet_free(extra);
        culet_session_tokens(session, &n);
        const int32_t next = 7;
        if (n < 32 && culet_session_extend(session, &next, 1, &err) != CULET_OK) abort();
        culet_session_rewind(session, 0, &err);
        reset();
    } else {
        culet_session_tokens(session, &n);
        if (n != 3 || !culet_session_logits(session) || !err.text[0] || strchr(err.text, '\n')) abort();
    }
    if (clt_mem_live() != live) abort();
    close(fd);
    return 0;
}
