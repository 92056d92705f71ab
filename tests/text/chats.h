/* Helpers of the chat tests: files, requests, rendering. */
#ifndef TEST_TEXT_CHATS_H
#define TEST_TEXT_CHATS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "base/mem.h"
#include "text/chat.h"

/* A whole file of tests/golden, NUL-terminated; free(). */
static inline char *read_golden(const char *name, size_t *len) {
    char path[512];
    snprintf(path, sizeof path, "%s/golden/%s", CLT_TEST_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("%s is missing", path);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    char *text = malloc((size_t)size + 1);
    rewind(f);
    assert_int_equal(fread(text, 1, (size_t)size, f), size);
    fclose(f);
    text[size] = '\0';
    *len = (size_t)size;
    return text;
}

static inline clt_json *parse(const char *text) {
    clt_err err;
    clt_json *doc;
    clt_status status = clt_json_parse(text, strlen(text), "request", &doc, &err);
    if (status == CLT_E_UNSUPPORTED) skip();
    if (status != CLT_OK) fail_msg("%s", err.text);
    return doc;
}

static inline clt_json *parse_golden(const char *name) {
    size_t len;
    char *text = read_golden(name, &len);
    clt_json *doc = parse(text);
    free(text);
    return doc;
}

static inline clt_chat_template recognise_golden(const char *name) {
    char path[128];
    size_t len;
    clt_chat_template t;
    snprintf(path, sizeof path, "templates/%s", name);
    char *text = read_golden(path, &len);
    clt_chat_recognise(text, len, &(clt_chat_facts){0}, &t);
    free(text);
    return t;
}

/* Renders a request given as text; on failure err says why and the status is returned. */
static inline clt_status render(const clt_chat_template *t, const char *request, clt_prompt *p, clt_err *err) {
    clt_chat_options o;
    clt_json *doc = parse(request);
    *p = (clt_prompt){0};
    clt_status status = clt_chat_read_options(doc, &o, err);
    if (status == CLT_OK) status = clt_chat_render(t, doc, &o, p, err);
    clt_json_free(doc);
    return status;
}

static inline void expect(const clt_chat_template *t, const char *request, const char *rendered) {
    clt_err err;
    clt_prompt p;
    if (render(t, request, &p, &err) != CLT_OK) fail_msg("%s: %s", request, err.text);
    assert_string_equal(p.text.data, rendered);
    clt_prompt_free(&p);
}

/* The request is refused and the text begins with `path`. */
static inline void expect_refusal(const clt_chat_template *t, const char *request, const char *path) {
    clt_err err;
    clt_prompt p;
    clt_status status = render(t, request, &p, &err);
    if (status != CLT_E_REQUEST) fail_msg("%s: not refused: %s", request, status ? err.text : p.text.data);
    if (strncmp(err.text, path, strlen(path)) != 0) fail_msg("%s: %s", request, err.text);
    assert_null(p.text.data);
}

#endif
