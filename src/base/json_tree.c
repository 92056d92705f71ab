/* The JSON tree for small documents: text in, nodes out. A thin face over jansson, whose values are the nodes. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>
#include "base/json.h"
#include "base/json_check.h"
#include "base/mem.h"

const char *clt_json_kind_name(clt_json_type t) {
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    return (unsigned)t < sizeof names / sizeof names[0] ? names[t] : "unknown";
}

#if CLT_HAVE_JANSSON
#include <jansson.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* jansson does not survive a failed allocation: it reports some as syntax errors and asserts after others. So its allocator
 * never returns NULL; it leaves the parse with a jump, and the ring of the document's blocks tells what to release. */
typedef struct block {
    _Alignas(max_align_t) struct block *previous;
    struct block *next;
} block;

typedef struct parse {
    block ring; /* ties the blocks together while the parse runs */
    jmp_buf no_memory;
} parse;

static _Thread_local parse *current;

static void *linked_alloc(size_t bytes) {
    block *b = bytes > SIZE_MAX - sizeof *b ? NULL : clt_alloc(sizeof *b + bytes);
    if (!b) longjmp(current->no_memory, 1);
    block *ring = &current->ring;
    *b = (block){.previous = ring, .next = ring->next};
    ring->next->previous = b;
    ring->next = b;
    return b + 1;
}

static void unlink_block(block *b) {
    b->previous->next = b->next;
    b->next->previous = b->previous;
}

static void linked_free(void *p) {
    if (!p) return;
    block *b = (block *)p - 1;
    unlink_block(b);
    clt_free(b);
}

static void use_our_memory(void) {
    json_set_alloc_funcs(linked_alloc, linked_free);
}

static json_t *load(const char *text, size_t len, json_error_t *e) {
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_t *root = json_loadb(text, len, flags, e);
    /* Published tokenizer_config.json files write "no limit" as the whole number 1000000000000000019884624838656. */
    if (!root && json_error_code(e) == json_error_numeric_overflow)
        root = json_loadb(text, len, flags | JSON_DECODE_INT_AS_REAL, e);
    return root;
}

/* Loads the document; false if memory ran out, with all of it given back. *root is NULL if the text is at fault. */
static bool load_within_memory(const char *text, size_t len, json_t **root, json_error_t *e) {
    parse p = {.ring = {&p.ring, &p.ring}};
    current = &p;
    bool ran_out = setjmp(p.no_memory) != 0;
    if (ran_out) {
        while (p.ring.next != &p.ring) linked_free(p.ring.next + 1);
    } else {
        *root = load(text, len, e);
    }
    unlink_block(&p.ring); /* the document's blocks stay tied to each other alone */
    current = NULL;
    return !ran_out;
}

/* A node is a jansson value under another name; its functions take non-const pointers even where they only read. */
static json_t *value(const clt_json *n) {
    return (json_t *)(uintptr_t)n;
}

clt_status clt_json_parse(const char *text, size_t len, const char *what, clt_json **doc, clt_err *err) {
    json_error_t e;
    *doc = NULL;
    clt_status status = clt_json_check(text, len, what, err);
    if (status != CLT_OK) return status;
    pthread_once(&once, use_our_memory);
    json_t *root = NULL;
    if (!load_within_memory(text, len, &root, &e)) return clt_fail_memory(err, what, len);
    if (!root)
        return clt_fail(err, CLT_E_REQUEST, "%s: not valid JSON: %s (line %d, column %d)", what, e.text, e.line, e.column);
    *doc = (clt_json *)root;
    return CLT_OK;
}

void clt_json_free(clt_json *doc) {
    json_decref(value(doc));
}

clt_json_type clt_json_kind(const clt_json *n) {
    if (!n) return CLT_JSON_NULL;
    switch (json_typeof(value(n))) {
    case JSON_OBJECT: return CLT_JSON_OBJECT;
    case JSON_ARRAY: return CLT_JSON_ARRAY;
    case JSON_STRING: return CLT_JSON_STRING;
    case JSON_INTEGER: return CLT_JSON_INT;
    case JSON_REAL: return CLT_JSON_REAL;
    case JSON_TRUE:
    case JSON_FALSE: return CLT_JSON_BOOL;
    case JSON_NULL: break;
    }
    return CLT_JSON_NULL;
}

const clt_json *clt_json_get(const clt_json *object, const char *key) {
    return (const clt_json *)json_object_get(value(object), key);
}

const clt_json *clt_json_at(const clt_json *array, size_t i) {
    return (const clt_json *)json_array_get(value(array), i);
}

size_t clt_json_len(const clt_json *n) {
    return json_is_object(value(n)) ? json_object_size(value(n)) : json_array_size(value(n));
}

const char *clt_json_str(const clt_json *n, size_t *len) {
    const char *s = json_string_value(value(n));
    if (len) *len = s ? json_string_length(value(n)) : 0;
    return s;
}

bool clt_json_is_true(const clt_json *n) {
    return json_is_true(value(n));
}

bool clt_json_num(const clt_json *n, double *out) {
    if (!json_is_number(value(n))) return false;
    *out = json_number_value(value(n));
    return true;
}

bool clt_json_int(const clt_json *n, int64_t *out) {
    if (json_is_integer(value(n))) {
        *out = json_integer_value(value(n));
        return true;
    }
    double real = json_is_real(value(n)) ? json_real_value(value(n)) : 0.5;
    if (floor(real) != real || real < -0x1p63 || real >= 0x1p63) return false;
    *out = (int64_t)real;
    return true;
}

bool clt_json_next(const clt_json *object, void **iter, const char **key, size_t *key_len, const clt_json **out) {
    json_t *o = value(object);
    if (!json_is_object(o)) return false;
    *iter = *iter ? json_object_iter_next(o, *iter) : json_object_iter(o);
    if (!*iter) return false;
    *key = json_object_iter_key(*iter);
    if (key_len) *key_len = strlen(*key); /* keys never hold NUL bytes: the parser refuses them */
    *out = (const clt_json *)json_object_iter_value(*iter);
    return true;
}

#else /* without jansson no document is ever made; NULL is the only node there is, and it counts as null */

clt_status clt_json_parse(const char *text, size_t len, const char *what, clt_json **doc, clt_err *err) {
    (void)text, (void)len, (void)what;
    *doc = NULL;
    return clt_fail_not_built(err, "JSON documents", "libjansson-dev");
}

void clt_json_free(clt_json *doc) {
    (void)doc;
}

clt_json_type clt_json_kind(const clt_json *n) {
    (void)n;
    return CLT_JSON_NULL;
}

const clt_json *clt_json_get(const clt_json *object, const char *key) {
    (void)object, (void)key;
    return NULL;
}

const clt_json *clt_json_at(const clt_json *array, size_t i) {
    (void)array, (void)i;
    return NULL;
}

size_t clt_json_len(const clt_json *n) {
    (void)n;
    return 0;
}

const char *clt_json_str(const clt_json *n, size_t *len) {
    (void)n;
    if (len) *len = 0;
    return NULL;
}

bool clt_json_is_true(const clt_json *n) {
    (void)n;
    return false;
}

bool clt_json_num(const clt_json *n, double *out) {
    (void)n, (void)out;
    return false;
}

bool clt_json_int(const clt_json *n, int64_t *out) {
    (void)n, (void)out;
    return false;
}

bool clt_json_next(const clt_json *object, void **iter, const char **key, size_t *key_len, const clt_json **out) {
    (void)object, (void)iter, (void)key, (void)key_len, (void)out;
    return false;
}
#endif
