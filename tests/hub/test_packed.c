/* Packed copies: what was written comes back; whatever is damaged, foreign, stale or cut off is refused and never used;
 * nothing is left behind by a writer that fails or dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "base/random.h"
#include "hub/packed_head.h"

enum { BYTES = (17 << 20) + 12345 }; /* three slices, the last one short */

static char home[64];
static clt_pool *pool;
static uint8_t *weights;
static const clt_packed_key key = {{11, 22}, 33, 44, BYTES};

static int setup(void **state) {
    (void)state;
    clt_err err;
    snprintf(home, sizeof home, "/tmp/culet-packed-XXXXXX");
    if (!mkdtemp(home) || setenv("CULET_HOME", home, 1) != 0) return -1;
    weights = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++) weights[i] = (uint8_t)(i * 2654435761u >> 11);
    return clt_pool_create(2, &pool, &err) == CLT_OK ? 0 : -1;
}

static void count_one(void *user, const clt_packed_entry *e) {
    (void)e;
    ++*(int *)user;
}

static int copies(void) {
    clt_err err;
    int n = 0;
    assert_int_equal(clt_packed_each(count_one, &n, &err), CLT_OK);
    return n;
}

/* Files in the folder of copies, whatever they are. */
static size_t files(void) {
    clt_err err;
    char path[128], **names;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/packed", home);
    if (!clt_is_dir(path)) return 0;
    assert_int_equal(clt_list_dir(path, &names, &n, &err), CLT_OK);
    for (size_t i = 0; i < n; i++) clt_free(names[i]);
    clt_free(names);
    return n;
}

static const char *place(const clt_packed_key *k) {
    static char path[256];
    clt_err err;
    clt_buf b = {0};
    assert_int_equal(clt_packed_place(k, &b, &err), CLT_OK);
    snprintf(path, sizeof path, "%s", b.data);
    clt_buf_free(&b);
    return path;
}

static void write_copy(const clt_packed_key *k) {
    clt_err err;
    clt_buf path = {0};
    if (clt_packed_write(k, "/models/a.gguf", weights, pool, &path, &err) != CLT_OK) fail_msg("%s", err.text);
    assert_string_equal(path.data, place(k));
    clt_buf_free(&path);
}

static int teardown(void **state) {
    (void)state;
    char path[128];
    unlink(place(&key));
    snprintf(path, sizeof path, "%s/packed", home);
    rmdir(path);
    clt_pool_free(pool);
    free(weights);
    return rmdir(home) == 0 && clt_mem_live() == 0 ? 0 : -1;
}

static void refused(const clt_packed_key *k, const char *words) {
    clt_err err;
    clt_packed *p;
    long live = clt_mem_live();
    assert_int_equal(clt_packed_open(k, pool, &p, &err), CLT_E_FILE);
    assert_null(p);
    if (!strstr(err.text, words)) fail_msg("'%s' lacks '%s'", err.text, words);
    assert_int_equal(clt_mem_live(), live);
}

static void used(const clt_packed_key *k) {
    clt_err err;
    clt_packed *p;
    if (clt_packed_open(k, pool, &p, &err) != CLT_OK) fail_msg("%s", err.text);
    assert_non_null(p);
    assert_memory_equal(clt_packed_data(p), weights, (size_t)k->bytes);
    assert_int_equal((uintptr_t)clt_packed_data(p) % 64, 0);
    assert_string_equal(clt_packed_path(p), place(k));
    clt_packed_close(p);
}

static void show_one(void *user, const clt_packed_entry *e) {
    snprintf(user, 256, "%s %llu", e->model, (unsigned long long)e->bytes);
}

static void test_written_is_read(void **state) {
    (void)state;
    clt_err err;
    clt_packed *p = (clt_packed *)1;
    char shown[256] = "";
    struct stat st;
    assert_int_equal(copies(), 0);
    assert_int_equal(clt_packed_open(&key, pool, &p, &err), CLT_OK);
    assert_null(p); /* there is none */
    write_copy(&key);
    used(&key);
    assert_int_equal(files(), 1);
    assert_int_equal(clt_packed_each(show_one, shown, &err), CLT_OK);
    assert_int_equal(stat(place(&key), &st), 0);
    char want[256];
    snprintf(want, sizeof want, "/models/a.gguf %llu", (unsigned long long)st.st_size);
    assert_string_equal(shown, want);
    write_copy(&key); /* over the old one */
    used(&key);
    assert_int_equal(files(), 1);
    for (uint64_t bytes = 1; bytes < 20000000; bytes = bytes * 37 + 64) {
        clt_packed_key k = {{1, 2}, bytes, 4, bytes < BYTES ? bytes : BYTES};
        write_copy(&k);
        used(&k);
        unlink(place(&k));
    }
}

static void test_foreign_and_stale(void **state) {
    (void)state;
    clt_packed_key k = key;
    write_copy(&key);
    k.stamp++;
    refused(&k, "earlier state");
    k = key;
    k.bytes--;
    refused(&k, "another model");
    /* Renamed to the place of another key. */
    clt_packed_key others[] = {key, key, key};
    others[0].model[0]++, others[1].model[1]++, others[2].layout++;
    for (int i = 0; i < 3; i++) {
        char from[256];
        snprintf(from, sizeof from, "%s", place(&key));
        assert_int_equal(rename(from, place(&others[i])), 0);
        refused(&others[i], "another model");
        char at[256];
        snprintf(at, sizeof at, "%s", place(&others[i]));
        assert_int_equal(rename(at, from), 0);
    }
    used(&key);
}

static void test_stamps(void **state) {
    (void)state;
    char path[128];
    struct timespec times[2] = {{5, 6}, {7, 8}};
    snprintf(path, sizeof path, "%s/stamped", home);
    FILE *f = fopen(path, "w");
    fputs("x", f);
    fclose(f);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    uint64_t one = clt_packed_stamp(0, path);
    assert_true(one == clt_packed_stamp(0, path) && one != clt_packed_stamp(1, path));
    times[1].tv_nsec++;
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_true(one != clt_packed_stamp(0, path));
    times[1].tv_nsec--;
    assert_int_equal(truncate(path, 2), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    assert_true(one != clt_packed_stamp(0, path));
    unlink(path);
    assert_true(one != clt_packed_stamp(0, path));
}

/* 500 single flips: of every part of the header, and of the weights. Padding in front of the weights is the one place
 * where a flip changes nothing. */
static void test_flips(void **state) {
    (void)state;
    clt_err err;
    clt_packed_head h;
    write_copy(&key);
    int fd = open(place(&key), O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(clt_packed_head_read(fd, "x", &h, &err), CLT_OK);
    uint64_t head = 72 + strlen(h.model) + 8 * h.slices + 8, offset = h.offset;
    clt_packed_head_free(&h);
    for (uint64_t i = 0; i < 500; i++) {
        uint64_t random = clt_random_u64(3, i, 0);
        off_t at = (off_t)(i < 400 ? i % head : offset + random % BYTES);
        uint8_t byte, flipped;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        flipped = (uint8_t)(byte ^ 1u << random / BYTES % 8);
        assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
        refused(&key, "packed copy");
        assert_int_equal(copies(), 1); /* listed all the same, so that it can be removed */
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    used(&key);
    close(fd);
}

static void test_truncations(void **state) {
    (void)state;
    struct stat st;
    write_copy(&key);
    assert_int_equal(stat(place(&key), &st), 0);
    for (int i = 0; i < 60; i++) {
        off_t sizes[] = {0, 1, 71, 72, 73, 100, 4096, 2 << 20, st.st_size - 1, st.st_size + 1};
        off_t size = i < 10 ? sizes[i] : (off_t)(clt_random_u64(4, (uint64_t)i, 0) % (uint64_t)st.st_size);
        write_copy(&key);
        assert_int_equal(truncate(place(&key), size), 0);
        refused(&key, "damaged packed copy");
        assert_int_equal(copies(), 1);
    }
    unlink(place(&key));
    assert_int_equal(mkfifo(place(&key), 0600), 0); /* and does not wait for a writer */
    refused(&key, "not a regular file");
    unlink(place(&key));
}

static void test_failing_allocations(void **state) {
    (void)state;
    clt_err err;
    clt_packed *p;
    write_copy(&key);
    for (long n = 1;; n++) {
        clt_buf path = {0};
        int seen = 0;
        long live = clt_mem_live();
        clt_mem_fail_after(n);
        clt_status wrote = clt_packed_write(&key, "m", weights, pool, &path, &err);
        clt_status opened = clt_packed_open(&key, pool, &p, &err);
        clt_status listed = clt_packed_each(count_one, &seen, &err);
        clt_mem_fail_after(0);
        clt_packed_close(p);
        clt_buf_free(&path);
        assert_int_equal(clt_mem_live(), live);
        assert_int_equal(files(), 1); /* no temporary file, and the old copy or a new one */
        used(&key);
        if (wrote == CLT_OK && opened == CLT_OK && listed == CLT_OK) break;
        assert_true(wrote == CLT_E_MEMORY || opened == CLT_E_MEMORY || listed == CLT_E_MEMORY);
        assert_true(n < 1000);
    }
}

/* A limit of the file size stands for a full disk: writing fails in the middle. */
static void test_a_write_that_fails(void **state) {
    (void)state;
    clt_err err;
    clt_buf path = {0};
    struct rlimit old, small = {8 << 20, RLIM_INFINITY};
    unlink(place(&key));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    small.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    clt_status status = clt_packed_write(&key, "m", weights, pool, &path, &err);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, CLT_E_FAILED);
    assert_non_null(strstr(err.text, "cannot write"));
    assert_int_equal(files(), 0);
    clt_packed_key huge = key; /* more than any disk has: refused before anything is written */
    huge.bytes = (uint64_t)1 << 43;
    assert_int_equal(clt_packed_write(&huge, "m", weights, pool, &path, &err), CLT_E_FAILED);
    assert_non_null(strstr(err.text, "the disk has"));
    assert_int_equal(files(), 0);
    setenv("CULET_HOME", "/proc/nowhere", 1);
    assert_int_equal(clt_packed_write(&key, "m", weights, pool, &path, &err), CLT_E_FAILED);
    setenv("CULET_HOME", home, 1);
    clt_buf_free(&path);
}

static void test_what_the_dead_leave_is_swept(void **state) {
    (void)state;
    char stale[256], held[256];
    write_copy(&key);
    snprintf(stale, sizeof stale, "%s.11111111.tmp", place(&key));
    snprintf(held, sizeof held, "%s.22222222.tmp", place(&key));
    fclose(fopen(stale, "w"));
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) { /* a writer that is at work */
        int fd = open(held, O_RDWR | O_CREAT, 0600);
        if (flock(fd, LOCK_EX) == 0 && write(ready[1], "", 1) == 1) pause();
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(files(), 3);
    write_copy(&key);
    assert_int_equal(access(stale, F_OK), -1);
    assert_int_equal(access(held, F_OK), 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]), close(ready[1]);
    unlink(held);
    used(&key);
}

/* Four processes write and use the same copy over and over. */
static void test_many_at_once(void **state) {
    (void)state;
    pid_t child[4];
    clt_err err;
    clt_packed_key small = {{5, 6}, 7, 8, 3 << 20};
    for (int c = 0; c < 4; c++) {
        child[c] = fork();
        if (child[c]) continue;
        clt_pool *own;
        clt_packed *p;
        clt_buf path = {0};
        int bad = clt_pool_create(1, &own, &err) != CLT_OK;
        for (int i = 0; i < 12 && !bad; i++) {
            bad |= clt_packed_write(&small, "m", weights, own, &path, &err) != CLT_OK;
            bad |= clt_packed_open(&small, own, &p, &err) != CLT_OK || !p;
            bad = bad || memcmp(clt_packed_data(p), weights, (size_t)small.bytes) != 0;
            clt_packed_close(p);
        }
        _exit(bad);
    }
    for (int c = 0; c < 4; c++) {
        int status;
        waitpid(child[c], &status, 0);
        assert_int_equal(status, 0);
    }
    used(&small);
    unlink(place(&small));
    assert_int_equal(files(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_is_read),
        cmocka_unit_test(test_foreign_and_stale),
        cmocka_unit_test(test_stamps),
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_what_the_dead_leave_is_swept),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_a_write_that_fails),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
