/* Fuzzes reply parsing: bytes -> ids of the tiny vocabulary -> parser, and the bytes themselves as tool arguments. Content
 * and thought are valid UTF-8 and only grow; arguments are one JSON object.
 *
 * Bytes 1 to 6 are the ids that structure a reply, all others the token of that character or of that byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "file/file.h"
#include "text/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static clt_file *file;
static clt_vocab *v;

static void close_vocab(void) {
    clt_vocab_free(v);
    clt_file_close(file);
}

static const clt_vocab *vocab(void) {
    static const char path[] = CLT_TEST_DIR "/golden/models/tiny-dense";
    clt_err err;
    if (v) return v;
    if (clt_file_open(path, &file, &err) != CLT_OK || clt_vocab_open(file, &v, &err) != CLT_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    atexit(close_vocab);
    return v;
}

static int32_t id_of(uint8_t byte) {
    const clt_vocab_roles *o = clt_vocab_get_roles(vocab());
    const int32_t markers[] = {o->channel_open, o->channel_close, o->call_open, o->call_close, o->quote, o->response_open};
    char character[2] = {(char)byte, '\0'}, piece[8];
    if (byte >= 1 && byte <= 6) return markers[byte - 1];
    int32_t id = byte >= 0x20 && byte < 0x80 ? clt_vocab_find(v, character) : -1;
    snprintf(piece, sizeof piece, "<0x%02X>", byte);
    return id >= 0 ? id : clt_vocab_find(v, piece);
}

static void check_object(const char *json, size_t len) {
    clt_json *doc;
    clt_err err;
    if (clt_json_parse(json, len, "arguments", &doc, &err) != CLT_OK || clt_json_kind(doc) != CLT_JSON_OBJECT) abort();
    clt_json_free(doc);
}

static void check_growth(const clt_reply *r, size_t *content, size_t *thought) {
    size_t n, m;
    const char *s = clt_reply_content(r, &n), *u = clt_reply_thought(r, &m);
    if (n < *content || m < *thought) abort();
    if (!clt_utf8_valid(s + *content, n - *content) || !clt_utf8_valid(u + *thought, m - *thought)) abort();
    *content = n;
    *thought = m;
}

static void parse_reply(const uint8_t *data, size_t size) {
    clt_err err;
    clt_reply *r;
    size_t content = 0, thought = 0;
    if (clt_reply_create(vocab(), size % 2, size % 7 == 0, &r, &err) != CLT_OK) abort();
    for (size_t i = 0; i < size; i++) {
        if (clt_reply_push(r, id_of(data[i]), &err) != CLT_OK) abort();
        check_growth(r, &content, &thought);
    }
    if (clt_reply_end(r, size % 3 == 0, &err) != CLT_OK) abort();
    check_growth(r, &content, &thought);
    for (size_t i = 0; i < clt_reply_calls(r); i++) {
        clt_reply_call call;
        clt_reply_call_at(r, i, &call);
        if (!call.name[0]) abort();
        check_object(call.arguments, strlen(call.arguments));
    }
    clt_reply_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clt_buf json = {0};
    parse_reply(data, size);
    if (clt_arguments_to_json((const char *)data, size, &json)) check_object(json.data, json.len);
    else if (json.len) abort();
    clt_buf_free(&json);
    return 0;
}
