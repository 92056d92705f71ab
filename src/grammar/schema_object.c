/* Objects: members in the order in which they are declared, each optional one left out at will, then those that are not
 * declared, where the schema lets them in. */
#include <stdlib.h>
#include "grammar/schema.h"

typedef struct member {
    const char *name;
    bool required, doubled;
} member;

typedef struct object {
    clt_schema *s;
    const clt_together *all;
    const char *path;
    member *members; /* what is declared, and what is required without being declared */
    size_t n, cap;
    const char **names; /* [n] */
    clt_together rest, name; /* schemas of further members and of their names */
    const clt_json *pattern; /* the one key of patternProperties that names them instead */
    const char *pattern_text;
    bool open;          /* there may be further members */
} object;

static uint32_t state(const object *o) {
    return clt_nfa_state(&o->s->nfa);
}

static void put(const object *o, uint32_t from, const char *text, uint32_t to) {
    clt_nfa_literal(&o->s->nfa, from, text, strlen(text), to);
}

/* ---- what is declared ---- */

static member *add(object *o, const char *name) {
    if (!CLT_ROOM(o->members, o->cap, o->n + 1)) {
        o->s->nfa.no_memory = true;
        return NULL;
    }
    o->members[o->n] = (member){.name = name};
    return &o->members[o->n++];
}

static bool read_members(object *o) {
    for (uint32_t i = 0; i < o->all->n; i++) {
        const clt_json *properties = clt_json_get(o->all->node[i], "properties"), *value;
        const char *name;
        void *iter = NULL;
        if (properties && clt_json_kind(properties) != CLT_JSON_OBJECT)
            return clt_schema_fail(o->s, o->path, "properties", "expected an object of schemas");
        while (clt_json_next(properties, &iter, &name, NULL, &value))
            if (!add(o, name)) return false;
    }
    return true;
}

static int compare_members(const void *a, const void *b) {
    const member *x = *(member *const *)a, *y = *(member *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : x < y ? -1 : x > y; /* of equal names the one that came first */
}

static int compare_name(const void *name, const void *m) {
    return strcmp(name, (*(member *const *)m)->name);
}

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Makes members of the required names that are not declared; one that is listed twice comes twice. */
static void add_required(object *o) {
    size_t n = o->n;
    const char **declared = clt_calloc(n + 1, sizeof *declared);
    if (!declared) o->s->nfa.no_memory = true;
    for (size_t i = 0; i < n && declared; i++) declared[i] = o->members[i].name;
    if (n > 1 && declared) qsort(declared, n, sizeof *declared, compare_texts);
    for (uint32_t i = 0; i < o->all->n && declared; i++) {
        const clt_json *list = clt_json_get(o->all->node[i], "required");
        for (size_t k = 0; k < clt_json_len(list); k++) {
            const char *name = clt_json_str(clt_json_at(list, k), NULL);
            if (n == 0 || !bsearch(&name, declared, n, sizeof *declared, compare_texts)) add(o, name);
        }
    }
    clt_free(declared);
}

static void mark_required(object *o) {
    member **sorted = clt_calloc(o->n + 1, sizeof *sorted);
    if (!sorted) o->s->nfa.no_memory = true;
    for (size_t i = 0; i < o->n && sorted; i++) sorted[i] = &o->members[i];
    if (o->n > 1 && sorted) qsort(sorted, o->n, sizeof *sorted, compare_members);
    for (uint32_t i = 0; i < o->all->n && sorted; i++) {
        const clt_json *list = clt_json_get(o->all->node[i], "required");
        for (size_t k = 0; k < clt_json_len(list); k++) {
            const char *name = clt_json_str(clt_json_at(list, k), NULL);
            member **m = o->n ? bsearch(name, sorted, o->n, sizeof *sorted, compare_name) : NULL;
            if (m) (*m)->required = true;
        }
    }
    clt_free(sorted);
}

/* Leaves the first of members of one name. */
static void drop_doubles(object *o) {
    size_t kept = 0;
    member **sorted = clt_calloc(o->n + 1, sizeof *sorted);
    if (!sorted) o->s->nfa.no_memory = true;
    for (size_t i = 0; i < o->n && sorted; i++) sorted[i] = &o->members[i];
    if (o->n > 1 && sorted) qsort(sorted, o->n, sizeof *sorted, compare_members);
    for (size_t i = 1; i < o->n && sorted; i++)
        if (!strcmp(sorted[i]->name, sorted[i - 1]->name)) sorted[i]->doubled = true;
    for (size_t i = 0; i < o->n && sorted; i++)
        if (!o->members[i].doubled) o->members[kept++] = o->members[i];
    if (sorted) o->n = kept;
    clt_free(sorted);
}

static bool read_required(object *o) {
    for (uint32_t i = 0; i < o->all->n; i++) {
        const clt_json *list = clt_json_get(o->all->node[i], "required");
        bool good = !list || clt_json_kind(list) == CLT_JSON_ARRAY || clt_json_kind(list) == CLT_JSON_BOOL;
        for (size_t k = 0; k < clt_json_len(list) && good; k++) good = clt_json_str(clt_json_at(list, k), NULL) != NULL;
        if (!good) return clt_schema_fail(o->s, o->path, "required", "expected a list of names");
    }
    add_required(o);
    drop_doubles(o);
    mark_required(o);
    return clt_schema_ok(o->s);
}

/* ---- what is not declared ---- */

static bool read_patterns(object *o) {
    for (uint32_t i = 0; i < o->all->n; i++) {
        const clt_json *patterns = clt_json_get(o->all->node[i], "patternProperties"), *value;
        void *iter = NULL;
        if (clt_json_len(patterns) == 0) continue;
        if (clt_json_len(patterns) > 1 || o->pattern || o->n > 0)
            return clt_schema_fail(o->s, o->path, "patternProperties",
                                   "only one pattern, and no properties beside it, can be honoured");
        clt_json_next(patterns, &iter, &o->pattern_text, NULL, &value);
        o->pattern = value;
        o->open = true;
        if (!clt_together_add(o->s, &o->rest, value, o->path)) return false;
    }
    return true;
}

/* Further members come in where additionalProperties asks for them or nothing is declared, and nothing closes the object. */
static bool read_rest(object *o) {
    bool asked = o->n == 0, closed = false;
    for (uint32_t i = 0; i < o->all->n; i++) {
        const clt_json *node = o->all->node[i], *more = clt_json_get(node, "additionalProperties");
        const clt_json *also = clt_json_get(node, "unevaluatedProperties"), *names = clt_json_get(node, "propertyNames");
        if (more) asked = true;
        if (clt_json_kind(more) == CLT_JSON_BOOL) closed |= !clt_json_is_true(more);
        else if (more && !clt_together_add(o->s, &o->rest, more, o->path)) return false;
        if (clt_json_kind(also) == CLT_JSON_BOOL) closed |= !clt_json_is_true(also);
        if (names && o->n > 0 && !closed)
            return clt_schema_fail(o->s, o->path, "propertyNames", "this key cannot be honoured beside properties");
        if (names && !clt_together_add(o->s, &o->name, names, o->path)) return false;
    }
    o->open = asked && !closed && !o->rest.never && !o->name.never;
    return read_patterns(o);
}

/* The schemas of a member: what every schema says of it, by name or as one of the rest. */
static bool schemas_of(const object *o, const char *name, clt_together *out) {
    char path[CLT_MAX_PATH], place[CLT_MAX_PATH];
    clt_path_join(path, o->path, "properties");
    clt_path_join(place, path, name);
    *out = (clt_together){0};
    for (uint32_t i = 0; i < o->all->n; i++) {
        const clt_json *value = clt_json_get(clt_json_get(o->all->node[i], "properties"), name);
        if (!value) value = clt_json_get(o->all->node[i], "additionalProperties");
        if (value && !clt_together_add(o->s, out, value, place)) return false;
    }
    return true;
}

/* ---- writing ---- */

static void put_colon(const object *o, uint32_t from, uint32_t to) {
    uint32_t colon = state(o);
    put(o, from, ":", colon);
    clt_schema_space(o->s, colon, to);
}

static void put_comma(const object *o, uint32_t from, uint32_t to) {
    uint32_t comma = state(o);
    put(o, from, ",", comma);
    clt_schema_space(o->s, comma, to);
}

/* In tool calls a name stands bare, unless it holds what would end it. */
static void put_name(const object *o, const char *name, uint32_t from, uint32_t to) {
    bool bare = o->s->spelling == CLT_SPELL_CALL && *name && !strpbrk(name, ":,{}[]\"' \t\n\r");
    if (bare) put(o, from, name, to);
    else clt_schema_text(o->s, name, strlen(name), from, to);
}

static void put_member(const object *o, const member *m, uint32_t from, uint32_t to) {
    char path[CLT_MAX_PATH], place[CLT_MAX_PATH];
    clt_together value;
    uint32_t named = state(o), at = state(o);
    clt_path_join(path, o->path, "properties");
    clt_path_join(place, path, m->name);
    if (!schemas_of(o, m->name, &value)) return;
    put_name(o, m->name, from, named);
    put_colon(o, named, at);
    clt_schema_value(o->s, &value, place, at, to);
}

static void put_other_name(const object *o, uint32_t from, uint32_t to) {
    char path[CLT_MAX_PATH];
    clt_path_join(path, o->path, o->pattern ? "patternProperties" : "propertyNames");
    bool listed = clt_together_has(&o->name, "enum") || clt_together_has(&o->name, "const");
    if (o->pattern) clt_schema_pattern(o->s, o->pattern_text, path, from, to);
    else if (listed) clt_schema_enum(o->s, &o->name, CLT_T_STR, path, from, to);
    else if (o->name.n) clt_schema_string(o->s, &o->name, path, from, to);
    else clt_schema_other_name(o->s, o->names, o->n, from, to);
}

static void put_other(const object *o, uint32_t from, uint32_t to) {
    char path[CLT_MAX_PATH];
    uint32_t named = state(o), at = state(o);
    clt_path_join(path, o->path, "additionalProperties");
    put_other_name(o, from, named);
    put_colon(o, named, at);
    clt_schema_value(o->s, &o->rest, path, at, to);
}

/* Further members, `least` to `most` of them. first: nothing came before; after: something did. */
static void put_others(const object *o, uint32_t least, uint32_t most, uint32_t first, uint32_t after, uint32_t empty,
                       uint32_t end) {
    if (least == 0) {
        clt_nfa_empty(&o->s->nfa, first, empty);
        clt_nfa_empty(&o->s->nfa, after, end);
    }
    if (!o->open || most == 0) return;
    uint32_t begin = state(o), begun = state(o), more = state(o);
    clt_nfa_empty(&o->s->nfa, first, begin);
    if (after != first) put_comma(o, after, begin);
    put_other(o, begin, begun);
    size_t made = o->s->nfa.n_states;
    clt_part part = {state(o), state(o)};
    uint32_t at = state(o);
    put_comma(o, part.start, at);
    put_other(o, at, part.end);
    part = clt_nfa_repeat(&o->s->nfa, part, made, least > 1 ? least - 1 : 0, most == CLT_MANY ? CLT_MANY : most - 1);
    clt_nfa_empty(&o->s->nfa, begun, part.start);
    clt_nfa_empty(&o->s->nfa, part.end, more);
    clt_nfa_empty(&o->s->nfa, more, end);
}

/* minProperties and maxProperties can be counted where nothing is declared; else they must say nothing new. */
static bool read_counts(const object *o, uint32_t *least, uint32_t *most) {
    uint32_t required = 0;
    *least = 0;
    *most = CLT_MANY;
    if (!clt_together_count(o->s, o->all, "minProperties", true, o->path, least) ||
        !clt_together_count(o->s, o->all, "maxProperties", false, o->path, most))
        return false;
    for (size_t i = 0; i < o->n; i++) required += o->members[i].required;
    if (*least > *most)
        return clt_schema_fail(o->s, o->path, "minProperties", "%u is more than maxProperties, %u", *least, *most);
    if (o->n == 0) return true;
    if (*least > required)
        return clt_schema_fail(o->s, o->path, "minProperties", "cannot be honoured beside optional properties");
    if (*most != CLT_MANY && (*most < o->n || o->open))
        return clt_schema_fail(o->s, o->path, "maxProperties", "cannot be honoured beside optional properties");
    *least = 0;
    *most = CLT_MANY;
    return true;
}

/* Two lines of states run along the members: nothing has been written yet (`first`), or something has (`after`). */
static void write(const object *o, uint32_t from, uint32_t to) {
    uint32_t least, most, open = state(o), first = state(o), after = CLT_NONE, last = state(o), end = state(o);
    if (!read_counts(o, &least, &most)) return;
    bool any = false; /* can something have been written before? */
    put(o, from, "{", open);
    clt_schema_space(o->s, open, first);
    for (size_t i = 0; i < o->n && clt_schema_ok(o->s); i++) {
        uint32_t begin = state(o), written = state(o), skipped = o->members[i].required ? CLT_NONE : state(o);
        if (first != CLT_NONE) clt_nfa_empty(&o->s->nfa, first, begin);
        if (any) put_comma(o, after, begin);
        put_member(o, &o->members[i], begin, written);
        if (any && skipped != CLT_NONE) clt_nfa_empty(&o->s->nfa, after, written);
        if (first != CLT_NONE && skipped != CLT_NONE) clt_nfa_empty(&o->s->nfa, first, skipped);
        first = first != CLT_NONE ? skipped : CLT_NONE;
        after = written;
        any = true;
    }
    uint32_t before = first != CLT_NONE ? first : state(o);
    put_others(o, least, most, before, any ? after : before, end, last);
    clt_schema_space(o->s, last, end);
    put(o, end, "}", to);
}

void clt_schema_object(clt_schema *s, const clt_together *all, const char *path, uint32_t from, uint32_t to) {
    object o = {.s = s, .all = all, .path = path};
    bool ok = read_members(&o) && read_required(&o) && read_rest(&o);
    o.names = clt_calloc(o.n + 1, sizeof *o.names);
    if (!o.names) s->nfa.no_memory = true;
    for (size_t i = 0; i < o.n && o.names; i++) o.names[i] = o.members[i].name;
    if (ok && o.names) write(&o, from, to);
    clt_free(o.members);
    clt_free(o.names);
}
