/* Inside JSON Schema: what its files share. A place of a schema is a conjunction: the schemas that a value there must meet
 * all at once, references and allOf followed. */
#ifndef CLT_GRAMMAR_SCHEMA_H
#define CLT_GRAMMAR_SCHEMA_H
#include "grammar/impl.h"

enum { CLT_MAX_TOGETHER = 32, CLT_MAX_PATH = 1024 };

enum { CLT_T_NULL = 1, CLT_T_BOOL = 2, CLT_T_INT = 4, CLT_T_NUM = 8, CLT_T_STR = 16, CLT_T_ARR = 32, CLT_T_OBJ = 64,
      CLT_T_ALL = 127 };
enum { CLT_DONE_ANY = 1, CLT_DONE_ONE = 2 };

typedef struct clt_together {
    const clt_json *node[CLT_MAX_TOGETHER];
    uint8_t done[CLT_MAX_TOGETHER]; /* of a node: the keys whose branches stand in its place */
    uint32_t n;
    bool never;                     /* the schema false is among them */
} clt_together;

typedef struct clt_schema_rule { /* a place that has a rule of its own */
    clt_together all;
    uint32_t rule, next; /* next: with the same hash */
    char *path;
} clt_schema_rule;

typedef struct clt_schema {
    clt_nfa nfa;
    const clt_json *root;
    const char *what;
    clt_spelling spelling;
    clt_schema_rule **rules; /* written in order; rules[done..] wait */
    size_t n_rules, cap_rules, done;
    uint32_t heads[256];     /* hash table over them: 1 + index */
    uint32_t space, name, number[2]; /* rules made at first use, or 0; number: real, whole */
    unsigned steps;          /* references followed within each other */
    clt_status status;
    clt_err *err;
} clt_schema;

/* Fails once: "what: path: key: …". key NULL: the place itself. Returns false. */
bool clt_schema_fail(clt_schema *s, const char *path, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool clt_schema_ok(const clt_schema *s);
/* A rule for all values that a place allows, and its call. */
void clt_schema_value(clt_schema *s, const clt_together *all, const char *path, uint32_t from, uint32_t to);
void clt_schema_any(clt_schema *s, uint32_t from, uint32_t to); /* any JSON value */
void clt_schema_space(clt_schema *s, uint32_t from, uint32_t to);
/* the rule of a schema; writes all that waits */
uint32_t clt_schema_run(clt_schema *s, const clt_json *root, const char *path);
void clt_schema_forget(clt_schema *s); /* the places of a schema that has been written */
void clt_schema_end(clt_schema *s);

/* ---- reading (schema_read.c) ---- */
/* Adds a schema and all that it refers to. */
bool clt_together_add(clt_schema *s, clt_together *all, const clt_json *node, const char *path);
/* One branch will stand for anyOf or oneOf of a node, which goes if it asks for nothing else. */
void clt_together_branch(clt_together *all, int at, uint8_t done);
unsigned clt_together_types(clt_schema *s, const clt_together *all, const char *path); /* CLT_T_… */
bool clt_together_has(const clt_together *all, const char *key);
/* The node that has the key, from the i-th on; -1: none. */
int clt_together_find(const clt_together *all, const char *key, uint32_t from);
/* The largest (smallest) value of a key that is a count. false: a value that is none. */
bool clt_together_count(clt_schema *s, const clt_together *all, const char *key, bool largest, const char *path,
                        uint32_t *out);
/* path + "/" + piece; what does not fit is cut. */
void clt_path_join(char out[CLT_MAX_PATH], const char *path, const char *piece);
void clt_json_text(const clt_json *n, clt_buf *out); /* compact */
/* Whether no value can meet both. */
bool clt_schema_apart(clt_schema *s, const clt_json *a, const clt_json *b, const char *path);

/* ---- kinds of values ---- */
void clt_schema_object(clt_schema *s, const clt_together *all, const char *path, uint32_t from, uint32_t to);
void clt_schema_array(clt_schema *s, const clt_together *all, const char *path, uint32_t from, uint32_t to);
void clt_schema_string(clt_schema *s, const clt_together *all, const char *path, uint32_t from, uint32_t to);
void clt_schema_number(clt_schema *s, const clt_together *all, bool integer, const char *path, uint32_t from, uint32_t to);
/* One given value, or the values of enum and const that the other keys leave. */
void clt_schema_constant(clt_schema *s, const clt_json *value, uint32_t from, uint32_t to);
void clt_schema_enum(clt_schema *s, const clt_together *all, unsigned types, const char *path, uint32_t from, uint32_t to);
/* A string that a pattern describes. */
void clt_schema_pattern(clt_schema *s, const char *pattern, const char *path, uint32_t from, uint32_t to);
void clt_schema_text(clt_schema *s, const char *text, size_t len, uint32_t from, uint32_t to); /* a string with its quotes */
/* Any name of a member, its quotes included, other than those given. */
void clt_schema_other_name(clt_schema *s, const char *const *names, size_t n, uint32_t from, uint32_t to);

/* formats_table.c: the pattern of a format; "" = it asks nothing of the text; NULL = unknown. */
const char *clt_schema_format(const char *name);

#endif
