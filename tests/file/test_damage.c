/* Random damage: single bytes of a reference model are flipped, or the file is cut. Each damaged file is either refused in
 * one line or harmless: it opens and everything it offers can be read. Run under AddressSanitizer, too. */
#include "file/files.h"
#include "base/random.h"

#define GEMMA3 CLT_TEST_DIR "/golden/models/tiny-gemma3"
enum { ROUNDS = 500, SEED = 20260401 };

static uint64_t draw(uint64_t *position, uint64_t below) {
    return clt_random_u64(SEED, (*position)++, 0) % below;
}

/* true if the path was refused. */
static bool open_damaged(const char *path, const char *what, uint64_t at) {
    clt_err err;
    clt_file *f = NULL;
    long live = clt_mem_live();
    clt_status st = clt_file_open(path, &f, &err);
    if (!st) {
        touch_all(f);
        clt_file_close(f);
    } else {
        assert_true(st == CLT_E_FILE || st == CLT_E_UNSUPPORTED);
        assert_null(f);
        assert_one_line(err.text);
        if (!strstr(err.text, folder)) fail_msg("%s at %llu: no file name in: %s", what, (unsigned long long)at, err.text);
    }
    assert_int_equal(clt_mem_live(), live);
    return st != CLT_OK;
}

static void patch(const char *name, uint64_t at, char byte) {
    FILE *f = fopen(in_folder(name), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fputc((unsigned char)byte, f), (unsigned char)byte);
    assert_int_equal(fclose(f), 0);
}

/* Flips single bytes of the file `name`, most in its first `head` bytes, where the structure is, and opens `path` each time.
 * Returns the refusals. */
static int flip(const clt_buf *b, uint64_t head, const char *name, const char *path) {
    uint64_t position = 0;
    int refusals = 0;
    write_bytes(name, b->data, b->len);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t at = draw(&position, i % 5 ? head : b->len);
        patch(name, at, (char)(b->data[at] ^ (char)(1 + draw(&position, 255))));
        refusals += open_damaged(path, "flip", at);
        patch(name, at, b->data[at]);
    }
    return refusals;
}

static int descending(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? -1 : x < y;
}

/* Every truncation of a file whose tensors end with it is refused. */
static void cut(const clt_buf *b, uint64_t head, const char *name, const char *path) {
    uint64_t position = 1000000, at[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) at[i] = i < 20 ? b->len - 1 - (uint64_t)i : draw(&position, i % 2 ? head : b->len);
    qsort(at, ROUNDS, sizeof at[0], descending);
    write_bytes(name, b->data, b->len);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(truncate(in_folder(name), (off_t)at[i]), 0);
        if (!open_damaged(path, "cut", at[i])) fail_msg("a file cut at %llu was opened", (unsigned long long)at[i]);
    }
}

static void load(const char *path, clt_buf *b) {
    clt_err err;
    if (clt_read_file(path, 10000000, b, &err)) fail_msg("%s", err.text);
}

static void test_gguf(void **state) {
    (void)state;
    clt_buf b = {0};
    load(GEMMA3 "/gguf/tiny-gemma3-Q4_0.gguf", &b);
    clt_file *f = open_ok(GEMMA3 "/gguf/tiny-gemma3-Q4_0.gguf");
    uint64_t head = clt_file_tensor(f, 0)->offset;
    const clt_tensor *last = clt_file_tensor(f, clt_file_tensors(f) - 1);
    b.len = (size_t)(last->offset + last->bytes); /* without padding, so that no byte is one too many */
    clt_file_close(f);
    char path[512];
    snprintf(path, sizeof path, "%s", in_folder("damaged.gguf"));
    assert_true(flip(&b, head, "damaged.gguf", path) > ROUNDS / 10);
    assert_true(flip(&b, 512, "damaged.gguf", path) > ROUNDS / 5);
    cut(&b, head, "damaged.gguf", path);
    clt_buf_free(&b);
}

static void test_safetensors(void **state) {
    (void)state;
#if !CLT_HAVE_JANSSON
    skip();
#endif
    clt_buf b = {0};
    load(GEMMA3 "/model.safetensors", &b);
    uint64_t head = 8;
    for (int i = 7; i >= 0; i--) head += (uint64_t)(unsigned char)b.data[i] << (8 * i);
    char path[512];
    snprintf(path, sizeof path, "%s", in_folder("hf"));
    assert_int_equal(mkdir(path, 0700), 0);
    write_text("hf/config.json", "{}");
    assert_true(flip(&b, head, "hf/model.safetensors", path) > ROUNDS / 4);
    cut(&b, head, "hf/model.safetensors", path);
    clt_buf_free(&b);
}

static void test_documents(void **state) {
    (void)state;
#if !CLT_HAVE_JANSSON
    skip();
#endif
    clt_buf weights = {0}, b = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", in_folder("docs"));
    assert_int_equal(mkdir(path, 0700), 0);
    load(GEMMA3 "/model.safetensors", &weights);
    write_bytes("docs/model.safetensors", weights.data, weights.len);
    load(GEMMA3 "/config.json", &b);
    assert_true(flip(&b, b.len, "docs/config.json", path) > ROUNDS / 4);
    clt_buf_free(&weights);
    clt_buf_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_documents),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
