/* Tool declarations: an OpenAI function with its JSON schema -> <|tool>declaration:NAME{…}<tool|>.
 *
 * Follows the official templates byte for byte, their oddities included, wherever a schema is made of plain types. What
 * those templates cannot express is brought into their terms first (see `view`):
 *   "type": ["null", "T", …]     type T, nullable:true
 *   "$ref": "#/…"                what it points to inside the parameters; fields beside the $ref win
 *   anyOf, oneOf                 the first alternative that is not null; nullable:true if there is a null one
 *   allOf                        its first schema
 *   parameters without a type    OBJECT (the templates leave the braces open)
 *   no type at all               an empty type, as the templates have it
 *   a $ref inside itself         description and type only
 * Inside `items` only a $ref is resolved: the templates print everything else there as it is. */
#include <string.h>
#include "base/mem.h"
#include "text/casing.h"
#include "text/chat_impl.h"

enum {
    MAX_VIEW = 8,        /* steps from a $ref to a plain type */
    MAX_NESTED = 48,     /* $refs being expanded at once */
    MAX_EXPANDED = 1000, /* $refs expanded in one tool: definitions that multiply must not explode, */
    MAX_GROWN = 4 << 20  /* nor may their bytes; a $ref beyond either limit is shown like a recursive one */
};

typedef struct schema {
    clt_chat_render_state *r;
    const clt_json *root;               /* the parameters, which $refs are relative to */
    const clt_json *active[MAX_NESTED]; /* targets being expanded */
    size_t n_active, n_expanded, start; /* start: length of the prompt before the tool */
    size_t tool;                        /* index, for errors */
} schema;

/* A property in the templates' terms. */
typedef struct view {
    const clt_json *nodes[MAX_VIEW]; /* the schema as written, then what it stands for; earlier fields win */
    size_t n;
    const clt_json *type;            /* a scalar; NULL if there is none */
    size_t n_refs;                   /* targets pushed on the active list; popped with leave() */
    bool nullable;
    bool closed;                     /* a recursive $ref: nothing below it is shown */
} view;

static const clt_json *field(const view *v, const char *key) {
    for (size_t i = 0; i < v->n; i++) {
        const clt_json *found = clt_json_get(v->nodes[i], key);
        if (found) return found;
    }
    return NULL;
}

/* ---- bringing schemas into the templates' terms ---- */

static bool is_null_type(const clt_json *type) {
    const char *s = clt_json_str(type, NULL);
    return s && strcmp(s, "null") == 0;
}

/* "type" of one schema: a list gives its first entry that is not null. */
static void take_type(view *v, const clt_json *type) {
    if (clt_json_kind(type) != CLT_JSON_ARRAY) {
        v->type = type;
        return;
    }
    for (size_t i = 0; i < clt_json_len(type); i++) {
        const clt_json *entry = clt_json_at(type, i);
        if (is_null_type(entry)) v->nullable = true;
        else if (clt_json_str(entry, NULL) && !v->type) v->type = entry;
    }
    if (!v->type && v->nullable) { /* only null: that is its type */
        v->type = clt_json_at(type, 0);
        v->nullable = false;
    }
}

/* One step of a JSON pointer, "~1" and "~0" unescaped: the member or item of `node`, or NULL. */
static const clt_json *pointer_step(const clt_json *node, const char *s, size_t n) {
    char key[256];
    size_t len = 0, index = 0;
    for (size_t i = 0; i < n; i++) {
        if (len + 1 >= sizeof key) return NULL;
        char c = s[i];
        if (c == '~' && i + 1 < n && (s[i + 1] == '0' || s[i + 1] == '1')) c = s[++i] == '0' ? '~' : '/';
        key[len++] = c;
    }
    key[len] = '\0';
    if (clt_json_kind(node) != CLT_JSON_ARRAY) return clt_json_get(node, key);
    for (size_t i = 0; i < len; i++) {
        if (key[i] < '0' || key[i] > '9' || i > 8) return NULL;
        index = index * 10 + (size_t)(key[i] - '0');
    }
    return len ? clt_json_at(node, index) : NULL;
}

static const clt_json *ref_target(const schema *c, const clt_json *node) {
    const char *s = clt_json_str(clt_json_get(node, "$ref"), NULL);
    if (!s || s[0] != '#') return NULL;
    const clt_json *target = c->root;
    for (s++; *s == '/' && target;) {
        size_t n = strcspn(s + 1, "/");
        target = pointer_step(target, s + 1, n);
        s += n + 1;
    }
    return *s == '\0' ? target : NULL;
}

/* The alternative that stands for the schema, or NULL if it has none. */
static const clt_json *alternative(const clt_json *node, view *v) {
    static const char *const keys[] = {"anyOf", "oneOf", "allOf"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const clt_json *list = clt_json_get(node, keys[k]), *chosen = NULL;
        for (size_t i = 0; clt_json_kind(list) == CLT_JSON_ARRAY && i < clt_json_len(list); i++) {
            const clt_json *item = clt_json_at(list, i);
            if (is_null_type(clt_json_get(item, "type"))) v->nullable = true;
            else if (!chosen && clt_json_kind(item) == CLT_JSON_OBJECT) chosen = item;
        }
        if (chosen) return chosen;
    }
    return NULL;
}

/* Follows a $ref; false if it leads nowhere or back into what is being expanded. */
static bool follow(schema *c, const clt_json **node, view *v) {
    const clt_json *target = ref_target(c, *node);
    if (clt_json_kind(target) != CLT_JSON_OBJECT) return false;
    bool recursive = c->n_active == MAX_NESTED || c->n_expanded == MAX_EXPANDED || target == c->root ||
                     c->r->out->text.len - c->start > MAX_GROWN;
    for (size_t i = 0; i < c->n_active; i++) recursive = recursive || c->active[i] == target;
    if (recursive) {
        take_type(v, clt_json_get(target, "type"));
        v->closed = true;
        return false;
    }
    c->active[c->n_active++] = target;
    c->n_expanded++;
    v->n_refs++;
    *node = target;
    return true;
}

static view enter(schema *c, const clt_json *node) {
    view v = {0};
    while (v.n < MAX_VIEW) {
        v.nodes[v.n++] = node;
        const clt_json *type = clt_json_get(node, "type");
        if (type) {
            take_type(&v, type);
            break;
        }
        if (follow(c, &node, &v)) continue;
        const clt_json *chosen = v.closed ? NULL : alternative(node, &v);
        if (!chosen) break;
        node = chosen;
    }
    const clt_json *nullable = field(&v, "nullable");
    v.nullable = v.nullable || clt_chat_truthy(nullable);
    return v;
}

static void leave(schema *c, const view *v) {
    c->n_active -= v->n_refs;
}

/* ---- printing ---- */

static clt_status put_properties(schema *c, const clt_json *properties, bool hide_standard_names);

static void put(schema *c, const char *markup) {
    clt_prompt_put_markup(c->r->out, markup);
}

/* The comma before a field, unless it is the first. */
static void separate(schema *c, bool *comma) {
    if (*comma) put(c, ",");
    *comma = true;
}

static bool type_is(const view *v, const char *name) {
    clt_buf text = {0};
    clt_chat_scalar(v->type, true, &text);
    bool same = text.data && !text.failed && strcmp(text.data, name) == 0;
    clt_buf_free(&text);
    return same;
}

static void put_quoted(schema *c, const clt_json *scalar) {
    put(c, "<|\"|>");
    clt_chat_put_scalar(c->r, scalar, false);
    put(c, "<|\"|>");
}

/* The name of a type, which the templates print in capitals. */
static clt_status put_type(schema *c, const clt_json *type) {
    size_t len;
    const char *name = clt_json_str(type, &len);
    put(c, "<|\"|>");
    clt_chat_put_scalar(c->r, type, true);
    put(c, "<|\"|>");
    return name ? clt_case_check(name, len, c->r->err) : CLT_OK;
}

static clt_status wrong(schema *c, const char *key, const char *expected, const clt_json *found) {
    return clt_fail(c->r->err, CLT_E_REQUEST, "tools[%zu].function.parameters: \"%s\": expected %s, found %s", c->tool, key,
                    expected, clt_json_kind_name(clt_json_kind(found)));
}

/* ["a","b"] of names, quoted; what is no list (a boolean of old schema drafts) gives an empty one. */
static clt_status put_names(schema *c, const clt_json *list) {
    put(c, "required:[");
    for (size_t i = 0; clt_json_kind(list) == CLT_JSON_ARRAY && i < clt_json_len(list); i++) {
        const clt_json *name = clt_json_at(list, i);
        if (!clt_chat_is_scalar(name)) return wrong(c, "required", "strings", name);
        if (i) put(c, ",");
        put_quoted(c, name);
    }
    put(c, "]");
    return CLT_OK;
}

static bool has_names(const clt_json *list) {
    return clt_json_kind(list) == CLT_JSON_ARRAY && clt_json_len(list) > 0;
}

/* "type" inside items: one name or, unlike elsewhere, the list as it is. */
static clt_status put_item_type(schema *c, const clt_json *type) {
    if (clt_json_kind(type) == CLT_JSON_OBJECT) return wrong(c, "type", "a string", type);
    put(c, "type:");
    if (clt_json_kind(type) != CLT_JSON_ARRAY) {
        return put_type(c, type);
    }
    put(c, "[");
    for (size_t i = 0; i < clt_json_len(type); i++) {
        if (!clt_chat_is_scalar(clt_json_at(type, i))) return wrong(c, "type", "strings", clt_json_at(type, i));
        if (i) put(c, ",");
        clt_status status = put_type(c, clt_json_at(type, i));
        if (status != CLT_OK) return status;
    }
    put(c, "]");
    return CLT_OK;
}

static clt_status put_item_field(schema *c, const clt_chat_entry *e) {
    if (strcmp(e->key, "properties") == 0) {
        put(c, "properties:{");
        clt_status status = CLT_OK;
        if (clt_json_kind(e->value) == CLT_JSON_OBJECT) {
            status = put_properties(c, e->value, c->r->features->hides_standard_names);
        }
        put(c, "}");
        return status;
    }
    if (strcmp(e->key, "required") == 0) return put_names(c, e->value);
    if (strcmp(e->key, "type") == 0) return put_item_type(c, e->value);
    clt_prompt_put_text(c->r->out, e->key, e->key_len);
    put(c, ":");
    return clt_chat_put_value(c->r, e->value, true);
}

/* A key that `view` has resolved, so that it is not shown beside its meaning. */
static bool is_resolved(const char *key) {
    return strcmp(key, "$ref") == 0 || strcmp(key, "anyOf") == 0 || strcmp(key, "oneOf") == 0 || strcmp(key, "allOf") == 0;
}

static clt_status put_items(schema *c, const clt_json *items) {
    view v = {.nodes = {items}, .n = 1};
    clt_chat_entry *entries;
    size_t n;
    bool is_ref = ref_target(c, items) && !clt_json_get(items, "type"), comma = false;
    if (is_ref) v = enter(c, items);
    put(c, "items:{");
    clt_status status = clt_chat_sort(v.nodes, v.n, &entries, &n, c->r->err);
    for (size_t i = 0; i < n && status == CLT_OK; i++) {
        if (clt_json_kind(entries[i].value) == CLT_JSON_NULL || (is_ref && is_resolved(entries[i].key))) continue;
        separate(c, &comma);
        status = put_item_field(c, &entries[i]);
    }
    if (v.closed && v.type && status == CLT_OK) {
        separate(c, &comma);
        status = put_item_type(c, v.type);
    }
    put(c, "}");
    clt_free(entries);
    leave(c, &v);
    return status;
}

/* properties and required of an object. In the older layout a comma always comes first. */
static clt_status put_object_fields(schema *c, const view *v, bool *comma) {
    bool tidy = c->r->features->tidy_properties;
    const clt_json *properties = field(v, "properties"), *required = field(v, "required");
    if (tidy) separate(c, comma);
    else put(c, ",");
    put(c, "properties:{");
    clt_status status = CLT_OK;
    if (clt_json_kind(properties) == CLT_JSON_OBJECT) {
        status = put_properties(c, properties, c->r->features->hides_standard_names);
    } else if (!v->closed) {
        status = put_properties(c, v->nodes[v->n - 1], true); /* the templates then take the schema itself for properties */
    }
    put(c, "}");
    if (status != CLT_OK || !has_names(required)) return status;
    if (tidy) separate(c, comma);
    else put(c, ",");
    return put_names(c, required);
}

static void put_nullable(schema *c, const view *v, bool *comma) {
    if (!v->nullable) return;
    separate(c, comma);
    put(c, "nullable:true");
}

static clt_status put_enum(schema *c, const view *v, bool *comma) {
    const clt_json *values = field(v, "enum");
    if (!clt_chat_truthy(values)) return CLT_OK;
    separate(c, comma);
    put(c, "enum:");
    return clt_chat_put_value(c->r, values, true);
}

static clt_status put_array_fields(schema *c, const view *v, bool *comma) {
    const clt_json *items = field(v, "items");
    if (clt_json_kind(items) != CLT_JSON_OBJECT || clt_json_len(items) == 0) return CLT_OK;
    if (c->r->features->tidy_properties) separate(c, comma);
    else put(c, ",");
    return put_items(c, items);
}

/* The fields between description and type, in the order of the generation. */
static clt_status put_details(schema *c, const view *v, bool *comma) {
    bool tidy = c->r->features->tidy_properties;
    clt_status status = CLT_OK;
    if (!tidy) put_nullable(c, v, comma);
    if (type_is(v, "STRING")) status = put_enum(c, v, comma);
    else if (type_is(v, "ARRAY")) status = put_array_fields(c, v, comma);
    if (tidy) put_nullable(c, v, comma);
    if (status == CLT_OK && type_is(v, "OBJECT") && !v->closed) status = put_object_fields(c, v, comma);
    return status;
}

static clt_status put_property(schema *c, const clt_chat_entry *e) {
    view v = enter(c, e->value);
    bool comma = false;
    const clt_json *description = field(&v, "description");
    clt_prompt_put_text(c->r->out, e->key, e->key_len);
    put(c, ":{");
    clt_status status = CLT_OK;
    if (!clt_chat_is_scalar(v.type)) status = wrong(c, "type", "a string", v.type);
    else if (!clt_chat_is_scalar(description) && clt_chat_truthy(description)) {
        status = wrong(c, "description", "a string", description);
    } else if (clt_chat_truthy(description)) {
        put(c, "description:");
        put_quoted(c, description);
        comma = true;
    }
    if (status == CLT_OK) status = put_details(c, &v, &comma);
    if (comma) put(c, ",");
    put(c, "type:");
    if (status == CLT_OK) status = put_type(c, v.type);
    put(c, "}");
    leave(c, &v);
    return status;
}

static bool is_standard_name(const char *key) {
    static const char *const names[] = {"description", "type", "properties", "required", "nullable"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(key, names[i]) == 0) return true;
    }
    return false;
}

static clt_status put_properties(schema *c, const clt_json *properties, bool hide_standard_names) {
    clt_chat_entry *entries;
    size_t n;
    bool comma = false;
    clt_status status = clt_chat_sort(&properties, 1, &entries, &n, c->r->err);
    for (size_t i = 0; i < n && status == CLT_OK; i++) {
        if (hide_standard_names && is_standard_name(entries[i].key)) continue;
        separate(c, &comma);
        status = put_property(c, &entries[i]);
    }
    clt_free(entries);
    return status;
}

static clt_status put_parameters(schema *c, const clt_json *parameters) {
    view v = enter(c, parameters);
    const clt_json *properties = field(&v, "properties");
    clt_status status = CLT_OK;
    if (clt_chat_truthy(properties) && clt_json_kind(properties) != CLT_JSON_OBJECT) {
        return wrong(c, "properties", "an object", properties);
    }
    if (!clt_chat_is_scalar(v.type)) return wrong(c, "type", "a string", v.type);
    put(c, ",parameters:{");
    if (clt_chat_truthy(properties)) {
        put(c, "properties:{");
        status = put_properties(c, properties, c->r->features->hides_standard_names);
        put(c, "},");
    }
    if (status == CLT_OK && has_names(field(&v, "required"))) {
        status = put_names(c, field(&v, "required"));
        put(c, ",");
    }
    if (clt_chat_truthy(v.type)) {
        put(c, "type:");
        if (status == CLT_OK) status = put_type(c, v.type);
        put(c, "}");
    } else {
        put(c, "type:<|\"|>OBJECT<|\"|>}");
    }
    leave(c, &v);
    return status;
}

/* What the function returns, an extension of Google's. Left open if it is no object: the templates do so. */
static clt_status put_response(schema *c, const clt_json *response) {
    view v = {.nodes = {response}, .n = 1, .type = clt_json_get(response, "type")};
    const clt_json *description = field(&v, "description");
    if (!clt_chat_is_scalar(v.type) || !clt_chat_is_scalar(description)) {
        return clt_fail(c->r->err, CLT_E_REQUEST, "tools[%zu].function.response: type and description must be strings",
                        c->tool);
    }
    put(c, ",response:{");
    if (clt_chat_truthy(description)) {
        put(c, "description:");
        put_quoted(c, description);
        put(c, ",");
    }
    if (type_is(&v, "OBJECT")) put(c, "type:<|\"|>OBJECT<|\"|>}");
    return CLT_OK;
}

static clt_status put_tool(schema *c, const clt_json *function) {
    const clt_json *parameters = clt_json_get(function, "parameters"), *response = clt_json_get(function, "response");
    clt_status status = CLT_OK;
    put(c, "<|tool>declaration:");
    clt_chat_put_scalar(c->r, clt_json_get(function, "name"), false);
    put(c, "{description:");
    put_quoted(c, clt_json_get(function, "description"));
    if (clt_chat_truthy(parameters)) status = put_parameters(c, parameters);
    if (response && status == CLT_OK) status = put_response(c, response);
    put(c, "}<tool|>");
    return status;
}

clt_status clt_chat_put_tools(clt_chat_render_state *r, const clt_json *tools) {
    clt_status status = CLT_OK;
    for (size_t i = 0; i < clt_json_len(tools) && status == CLT_OK; i++) {
        const clt_json *function = clt_json_get(clt_json_at(tools, i), "function");
        schema c = {.r = r, .root = clt_json_get(function, "parameters"), .start = r->out->text.len, .tool = i};
        status = put_tool(&c, function);
    }
    return status;
}
