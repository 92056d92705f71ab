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

/* Flips one bit pattern in the first `head` bytes (where the structure is), every fifth one anywhere; `name` is written and
 * `path` opened. Returns the refusals. */
static int flip(clt_buf *b, uint64_t head, const char *name, const char *path) {
    uint64_t position = 0;
    int refusals = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t at = draw(&position, i % 5 ? head : b->len);
        char xor = (char)(1 + draw(&position, 255));
        b->data[at] ^= xor;
        write_bytes(name, b->data, b->len);
        refusals += open_damaged(path, "flip", at);
        b->data[at] ^= xor;
    }
    return refusals;
}

/* Every truncation of a file whose tensors end with it is refused. */
static void cut(const clt_buf *b, uint64_t head, const char *name, const char *path) {
    uint64_t position = 1000000;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t at = i < 20 ? b->len - 1 - (uint64_t)i : draw(&position, i % 2 ? head : b->len);
        write_bytes(name, b->data, (size_t)at);
        if (!open_damaged(path, "cut", at)) fail_msg("a file cut at %llu was opened", (unsigned long long)at);
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
