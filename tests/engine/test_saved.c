/* Saved sessions: the same bytes as if it had never stopped; every damaged byte and every truncation refused with the
 * session unchanged; foreign models, types and contexts refused; lengths of a hostile file checked although its hashes are
 * right. */
#include "engine/tiny.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/os.h"

enum { V = 1280, HEADER = 128 };

static const char *file_name(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", tiny_folder(), name);
    return path;
}

static clt_buf read_all(const char *path) {
    clt_err err;
    clt_buf file = {0};
    assert_int_equal(clt_read_file(path, 1 << 26, &file, &err), CLT_OK);
    return file;
}

static void write_all(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void save(const culet_session *s, const char *path, const char *extra) {
    culet_error err;
    culet_status status = culet_session_save(s, path, extra, extra ? strlen(extra) : 0, &err);
    if (status == CULET_UNSUPPORTED) { /* built without libzstd */
        assert_non_null(strstr(err.hint, "libzstd-dev"));
        skip();
    }
    if (status != CULET_OK) fail_msg("%s", err.text);
}

static void load(culet_session *s, const char *path, const char *want_extra) {
    culet_error err;
    char *extra;
    size_t len;
    if (culet_session_load(s, path, &extra, &len, &err) != CULET_OK) fail_msg("%s", err.text);
    assert_int_equal(len, want_extra ? strlen(want_extra) : 0);
    if (want_extra) assert_string_equal(extra, want_extra);
    else assert_null(extra);
    culet_free(extra);
}

static void sync_to(culet_session *s, const int32_t *ids, size_t n) {
    culet_error err;
    if (culet_session_sync(s, ids, n, NULL, &err) != CULET_OK) fail_msg("%s", err.text);
}

static tiny_ids long_timeline(void) {
    tiny_ids a = tiny_golden("tiny-gemma3", "long", "prompt_ids");
    for (size_t i = 0; a.n < 400; i++) a.data[a.n++] = a.data[1 + i * 7 % 180]; /* beyond what the rings hold */
    return a;
}

static culet_reply reply(culet_session *s, const int32_t *ids, size_t n) {
    culet_error err;
    culet_reply r;
    culet_generate_params p = {.prompt = ids, .n_prompt = n, .max_tokens = 24, .sampling = tiny_greedy(), .raw = true};
    if (culet_generate(s, &p, &r, &err) != CULET_OK) fail_msg("%s", err.text);
    return r;
}

/* ---- round trips ---- */

static void check_round_trip(culet_engine *e, culet_kv_type kv, size_t n) {
    tiny_ids a = long_timeline();
    culet_session *s = tiny_session_kv(e, 512, 64, kv), *other = tiny_session_kv(e, 512, 64, kv);
    size_t len;
    sync_to(s, a.data, n);
    save(s, file_name("a.session"), "[\"history\"]");
    sync_to(other, a.data + 200, 17); /* something to be replaced */
    load(other, file_name("a.session"), "[\"history\"]");
    assert_memory_equal(culet_session_tokens(other, &len), a.data, n * sizeof *a.data);
    assert_int_equal(len, n);
    assert_memory_equal(culet_session_logits(other), culet_session_logits(s), V * sizeof(float)); /* nothing to evaluate */
    culet_reply x = reply(s, a.data, n), y = reply(other, a.data, n);
    assert_memory_equal(x.ids, y.ids, 24 * sizeof *x.ids);
    assert_int_equal(y.timings.prompt_n, 0);
    assert_memory_equal(culet_session_logits(other), culet_session_logits(s), V * sizeof(float));
    culet_reply_free(&x);
    culet_reply_free(&y);

    load(other, file_name("a.session"), "[\"history\"]"); /* a step back right after */
    sync_to(other, a.data, n - 2);
    sync_to(s, a.data, n - 2);
    assert_memory_equal(culet_session_logits(other), culet_session_logits(s), V * sizeof(float));
    load(other, file_name("a.session"), "[\"history\"]"); /* and a long one */
    sync_to(other, a.data, n / 2);
    sync_to(s, a.data, n / 2);
    assert_memory_equal(culet_session_logits(other), culet_session_logits(s), V * sizeof(float));
    culet_session_close(s);
    culet_session_close(other);
}

static void test_round_trips(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 2);
    for (int kv = CULET_KV_F32; kv <= CULET_KV_Q8_0; kv++) {
        check_round_trip(e, (culet_kv_type)kv, 400);
        check_round_trip(e, (culet_kv_type)kv, 5);
    }
    culet_engine_close(e);
}

static void test_shared_layers(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-e/gguf/tiny-e-Q4_K_M.gguf", CULET_OPEN_FULL, 1);
    check_round_trip(e, CULET_KV_F16, 300);
    culet_engine_close(e);
}

/* After a reply the last token waits; after a rewind there are no logits; before anything there is nothing. */
static void test_every_state_of_a_timeline(void **state) {
    (void)state;
    culet_error err;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    tiny_ids a = tiny_golden("tiny-gemma3", "mid", "prompt_ids");
    culet_session *s = tiny_session(e, 128, 0), *other = tiny_session(e, 200, 7);
    size_t n;
    save(s, file_name("b.session"), NULL);
    sync_to(other, a.data, a.n);
    load(other, file_name("b.session"), NULL);
    culet_session_tokens(other, &n);
    assert_int_equal(n, 0);
    assert_null(culet_session_logits(other));

    culet_reply x = reply(s, a.data, a.n), y;
    size_t len = a.n + x.n_ids;
    memcpy(a.data + a.n, x.ids, x.n_ids * sizeof *x.ids);
    save(s, file_name("b.session"), "");
    load(other, file_name("b.session"), NULL);
    assert_memory_equal(culet_session_tokens(other, &n), a.data, len * sizeof *a.data);
    assert_int_equal(n, len);
    y = reply(other, a.data, len);
    culet_reply_free(&x);
    x = reply(s, a.data, len);
    assert_memory_equal(x.ids, y.ids, x.n_ids * sizeof *x.ids);
    assert_int_equal(y.timings.prompt_n, 1);
    culet_reply_free(&x);
    culet_reply_free(&y);

    assert_int_equal(culet_session_rewind(s, 10, &err), CULET_OK);
    save(s, file_name("b.session"), NULL);
    load(other, file_name("b.session"), NULL);
    assert_null(culet_session_logits(other));
    sync_to(s, a.data, 12);
    sync_to(other, a.data, 12);
    assert_memory_equal(culet_session_logits(other), culet_session_logits(s), V * sizeof(float));
    culet_session_close(s);
    culet_session_close(other);
    culet_engine_close(e);
}

/* ---- damage ---- */

typedef struct keeper {
    culet_session *s;
    float logits[V];
    int32_t ids[8];
} keeper;

static void keep(keeper *k, culet_session *s) {
    k->s = s;
    for (int i = 0; i < 8; i++) k->ids[i] = 600 + i;
    sync_to(s, k->ids, 8);
    memcpy(k->logits, culet_session_logits(s), sizeof k->logits);
}

/* Loading fails, says why, and has not touched the session. */
static void refused(keeper *k, const char *path, culet_status status, const char *word) {
    culet_error err;
    char *extra = (char *)k;
    size_t len = 99, n;
    culet_status got = culet_session_load(k->s, path, &extra, &len, &err);
    if (got != status) fail_msg("status %d, expected %d: %s", got, status, err.text);
    assert_non_null(strstr(err.text, word));
    assert_null(extra);
    assert_int_equal(len, 0);
    assert_memory_equal(culet_session_tokens(k->s, &n), k->ids, sizeof k->ids);
    assert_int_equal(n, 8);
    assert_memory_equal(culet_session_logits(k->s), k->logits, sizeof k->logits);
}

static void test_every_damaged_byte_is_refused(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    culet_session *s = tiny_session_kv(e, 64, 0, CULET_KV_Q8_0), *other = tiny_session_kv(e, 64, 0, CULET_KV_Q8_0);
    keeper k;
    keep(&k, other);
    char path[512];
    snprintf(path, sizeof path, "%s", file_name("c.session"));
    sync_to(s, (int32_t[]){2, 646, 526}, 3);
    save(s, path, "extra");
    clt_buf file = read_all(path);
    size_t step = file.len > 1000 ? file.len / 500 : 1;
    for (size_t i = 0; i < file.len; i += i < 200 || i + 40 > file.len ? 1 : step) {
        for (int bit = 0; bit < 8; bit += i < HEADER ? 1 : 5) {
            file.data[i] ^= (char)(1 << bit);
            write_all(path, file.data, file.len);
            refused(&k, path, CULET_FILE, path);
            file.data[i] ^= (char)(1 << bit);
        }
    }
    for (size_t len = 0; len < file.len; len += len < 200 ? 1 : file.len / 50) {
        write_all(path, file.data, len);
        refused(&k, path, CULET_FILE, path);
    }
    clt_buf_putc(&file, 'x');
    write_all(path, file.data, file.len); /* one byte too many */
    refused(&k, path, CULET_FILE, path);
    write_all(path, file.data, file.len - 1);
    load(k.s, path, "extra"); /* whole again */
    clt_buf_free(&file);
    keep(&k, other);
    refused(&k, "/nowhere/d.session", CULET_FILE, "/nowhere/d.session");
    culet_session_close(s);
    culet_session_close(other);
    culet_engine_close(e);
}

static void put(clt_buf *file, size_t at, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) file->data[at + (size_t)i] = (char)(v >> 8 * i);
    uint64_t hash = clt_hash64(file->data, 120, 2); /* somebody who knows the format repairs the hash */
    for (int i = 0; i < 8; i++) file->data[120 + i] = (char)(hash >> 8 * i);
}

static void test_hostile_numbers(void **state) {
    (void)state;
    static const struct { size_t at; int bytes; const char *word; culet_status status; } fields[] = {
        {8, 4, "version", CULET_FILE}, {12, 4, "header", CULET_FILE}, {16, 8, "another model", CULET_FILE},
        {24, 8, "another model", CULET_FILE}, {32, 4, "KV types", CULET_FILE}, {36, 4, "KV types", CULET_FILE},
        {40, 4, "", CULET_FILE}, {44, 4, "", CULET_FILE}, {48, 4, "", CULET_FILE},
        {52, 4, "", CULET_FILE}, {56, 8, "", CULET_FILE}, {64, 8, "sizes", CULET_FILE},
        {72, 8, "sizes", CULET_FILE}, {80, 8, "sizes", CULET_FILE}, {88, 8, "follow", CULET_FILE},
        {96, 8, "hash", CULET_FILE}};
    static const uint64_t values[] = {1, 2, 1281, 0x7FFFFFFF, 0x80000000, UINT32_MAX, INT64_MAX, UINT64_MAX};
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    culet_session *s = tiny_session(e, 64, 0), *other = tiny_session(e, 64, 0);
    keeper k;
    keep(&k, other);
    char path[512];
    snprintf(path, sizeof path, "%s", file_name("e.session"));
    sync_to(s, (int32_t[]){2, 646, 526}, 3);
    save(s, path, "extra");
    clt_buf file = read_all(path);
    char header[HEADER];
    memcpy(header, file.data, HEADER);
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            put(&file, fields[f].at, values[v], fields[f].bytes);
            culet_error err;
            write_all(path, file.data, file.len);
            culet_status got = culet_session_load(other, path, NULL, NULL, &err);
            if (got == CULET_OK) { /* what it has anyway, or fewer evaluated tokens than there were: nothing to run into */
                assert_true(memcmp(file.data, header, HEADER) == 0 || (fields[f].at == 44 && values[v] <= 3));
                keep(&k, other);
            } else if (got == CULET_CONTEXT) { /* more tokens than fit: a kind of its own */
                assert_int_equal(fields[f].at, 40);
            } else {
                refused(&k, path, fields[f].status, fields[f].word);
            }
            memcpy(file.data, header, HEADER);
        }
    clt_buf_free(&file);
    culet_session_close(s);
    culet_session_close(other);
    culet_engine_close(e);
}

static void test_foreign_sessions(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    culet_engine *quantised = tiny_open("tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf", CULET_OPEN_FULL, 1);
    culet_session *s = tiny_session(e, 128, 0), *f16 = tiny_session_kv(e, 64, 0, CULET_KV_F16);
    culet_session *small = tiny_session(e, 16, 0), *foreign = tiny_session(quantised, 128, 0);
    tiny_ids a = tiny_golden("tiny-gemma3", "mid", "prompt_ids");
    keeper k;
    sync_to(s, a.data, a.n);
    save(s, file_name("f.session"), NULL);
    keep(&k, foreign);
    refused(&k, file_name("f.session"), CULET_FILE, "another model");
    keep(&k, f16);
    refused(&k, file_name("f.session"), CULET_FILE, "KV types F32");
    keep(&k, small);
    refused(&k, file_name("f.session"), CULET_CONTEXT, "18 tokens");
    refused(&k, tiny_path("tiny-gemma3/config.json"), CULET_FILE, "not a saved session");
    culet_session_close(s);
    culet_session_close(f16);
    culet_session_close(small);
    culet_session_close(foreign);
    culet_engine_close(e);
    culet_engine_close(quantised);
}

static void test_failures_of_saving(void **state) {
    (void)state;
    culet_error err;
    culet_engine *e = tiny_open("tiny-gemma3", CULET_OPEN_FULL, 1);
    culet_session *s = tiny_session(e, 64, 0);
    sync_to(s, (int32_t[]){2, 646}, 2);
    save(s, file_name("g.session"), NULL);
    assert_int_equal(culet_session_save(s, "/nowhere/g.session", NULL, 0, &err), CULET_FILE);
    assert_non_null(strstr(err.text, "/nowhere/g.session"));
    for (long n = 1; n < 4; n++) { /* an old file survives a failure */
        clt_mem_fail_after(n);
        culet_status status = culet_session_save(s, file_name("g.session"), NULL, 0, &err);
        clt_mem_fail_after(0);
        if (status != CULET_OK) assert_int_equal(status, CULET_MEMORY);
        load(s, file_name("g.session"), NULL);
    }
    culet_session_close(s);
    culet_engine_close(e);
}

static int cleanup(void **state) {
    (void)state;
    tiny_remove_folder();
    return 0;
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_shared_layers),
        cmocka_unit_test(test_every_state_of_a_timeline),
        cmocka_unit_test(test_every_damaged_byte_is_refused),
        cmocka_unit_test(test_hostile_numbers),
        cmocka_unit_test(test_foreign_sessions),
        cmocka_unit_test(test_failures_of_saving),
    };
    return cmocka_run_group_tests(tests, NULL, cleanup);
}
