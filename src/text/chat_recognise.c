/* Which template generation a template text is.
 *
 * In: the Jinja text that came with a model. Out: the generation whose rendering stands for it. The text is not run: it is
 * brought into a normal form without comments, layout and whitespace control, so that small edits do not matter, and
 * searched for constructs that tell the generations apart. A text that writes anything the official templates do not write
 * (other markers, sentences of its own) is not recognised. */
#include <string.h>
#include "base/hash.h"
#include "text/chat_impl.h"

const char *clt_chat_generation_name(clt_chat_generation g) {
    static const char *const names[CLT_CHAT_GENERATIONS] = {
        [CLT_CHAT_GEMMA3] = "gemma3",
        [CLT_CHAT_GEMMA4_FIRST] = "gemma4-first",
        [CLT_CHAT_GEMMA4_INTERLEAVED] = "gemma4-interleaved",
        [CLT_CHAT_GEMMA4] = "gemma4",
        [CLT_CHAT_GEMMA4_JULY] = "gemma4-july",
    };
    return (unsigned)g < CLT_CHAT_GENERATIONS ? names[g] : "unknown";
}

/* ---- normal form ---- */

typedef struct scanner {
    const char *s;
    size_t n, i;
    bool in_tag;    /* between {{ }} or {% %} */
    bool sentences; /* writes words of its own, outside of raise_exception() */
    clt_buf out;
} scanner;

static bool at(const scanner *c, const char *text) {
    size_t len = strlen(text);
    return c->n - c->i >= len && memcmp(c->s + c->i, text, len) == 0;
}

static bool ends_with(const clt_buf *b, const char *text) {
    size_t len = strlen(text);
    return b->len >= len && memcmp(b->data + b->len - len, text, len) == 0;
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A string of a tag: delimiters become ', a newline becomes \n. Two spaces in it make it a sentence, which is fine as the
 * text of an exception (given in one or several adjacent strings). */
static void take_string(scanner *c) {
    char quote = c->s[c->i++];
    unsigned spaces = 0;
    bool refusal = ends_with(&c->out, "raise_exception(") || ends_with(&c->out, "'");
    clt_buf_putc(&c->out, '\'');
    for (; c->i < c->n && c->s[c->i] != quote; c->i++) {
        char ch = c->s[c->i];
        if (ch == ' ') spaces++;
        if (ch == '\n') {
            clt_buf_puts(&c->out, "\\n");
            continue;
        }
        clt_buf_putc(&c->out, ch);
        if (ch == '\\' && c->i + 1 < c->n) clt_buf_putc(&c->out, c->s[++c->i]);
    }
    clt_buf_putc(&c->out, '\'');
    c->i++;
    if (spaces >= 2 && !refusal) c->sentences = true;
}

/* {{- or {% and their like open a tag, -}} and %} close it; the signs for whitespace control are dropped. */
static bool take_delimiter(scanner *c) {
    if (!c->in_tag && (at(c, "{{") || at(c, "{%"))) {
        clt_buf_put(&c->out, c->s + c->i, 2);
        c->i += 2;
        if (at(c, "-") || at(c, "+")) c->i++;
        c->in_tag = true;
        return true;
    }
    size_t sign = at(c, "-") || at(c, "+") ? 1 : 0;
    c->i += sign;
    if (c->in_tag && (at(c, "}}") || at(c, "%}"))) {
        clt_buf_put(&c->out, c->s + c->i, 2);
        c->i += 2;
        c->in_tag = false;
        return true;
    }
    c->i -= sign;
    return false;
}

static void take_character(scanner *c) {
    char ch = c->s[c->i];
    bool words = ch == ' ' && c->i > 0 && c->i + 1 < c->n && is_letter(c->s[c->i - 1]) && is_letter(c->s[c->i + 1]);
    if (words && !c->in_tag) c->sentences = true;
    if (!is_space(ch)) clt_buf_putc(&c->out, ch);
    c->i++;
}

static void skip_comment(scanner *c) {
    const char *end = memmem(c->s + c->i, c->n - c->i, "#}", 2);
    c->i = end ? (size_t)(end - c->s) + 2 : c->n;
}

static void normalise(scanner *c) {
    while (c->i < c->n) {
        if (!c->in_tag && at(c, "{#")) skip_comment(c);
        else if (take_delimiter(c)) continue;
        else if (c->in_tag && (c->s[c->i] == '\'' || c->s[c->i] == '"')) take_string(c);
        else take_character(c);
    }
}

/* ---- features ---- */

static const char *find(const clt_buf *t, const char *what) {
    return t->len ? memmem(t->data, t->len, what, strlen(what)) : NULL;
}

static bool has_all(const clt_buf *t, const char *const *what, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!find(t, what[i])) return false;
    }
    return true;
}

/* Looks for <word>, <|word>, <word|> or <|word|> that no official template of the family writes. */
static bool has_foreign_marker(const clt_buf *t, bool gemma3) {
    for (size_t i = 0; i < t->len; i++) {
        if (t->data[i] != '<') continue;
        size_t end = i + 1;
        while (end < t->len && (is_letter(t->data[end]) || strchr("|_/\"", t->data[end]))) end++;
        if (end == i + 1 || end >= t->len || t->data[end] != '>') continue;
        size_t len = clt_chat_marker(t->data + i, end + 1 - i);
        bool of_gemma3 = memcmp(t->data + i, "<start_of_", 10) == 0 || memcmp(t->data + i, "<end_of_", 8) == 0;
        bool of_both = memcmp(t->data + i, "<bos>", 5) == 0;
        if (len != end + 1 - i || (of_gemma3 != gemma3 && !of_both)) return true;
    }
    return false;
}

static bool is_gemma4(const clt_buf *t) {
    static const char *const all[] = {
        "<|turn>", "<turn|>", "<|tool>", "<tool|>", "declaration:", "<|tool_call>call:", "<tool_call|>", "<|tool_response>",
        "response:", "<|think|>", "<|channel>", "<channel|>", "tool_responses", "dictsort", "add_generation_prompt",
    };
    return has_all(t, all, sizeof all / sizeof all[0]);
}

static bool is_gemma3(const clt_buf *t) {
    static const char *const all[] = {"<start_of_turn>", "<end_of_turn>", "'model'", "'system'", "'assistant'",
                                      "add_generation_prompt"};
    return has_all(t, all, sizeof all / sizeof all[0]) && !find(t, "System role not supported"); /* that is Gemma 2's */
}

/* The generation by its constructs. *certain: all of them agree. */
static clt_chat_generation gemma4_generation(const clt_buf *t, bool *certain) {
    bool folds = find(t, "tool_call_id") != NULL, keeps = find(t, "preserve_thinking") != NULL;
    bool null = find(t, "'null'") != NULL, blank = find(t, "\\n\\n<|image|>\\n\\n") != NULL;
    bool thoughts = find(t, "reasoning_content") != NULL, newline = find(t, "<|think|>\\n") != NULL;
    if (folds && null) {
        *certain = keeps && thoughts && newline && !blank;
        return CLT_CHAT_GEMMA4_JULY;
    }
    if (folds) {
        *certain = !keeps && thoughts && newline && !blank;
        return CLT_CHAT_GEMMA4;
    }
    *certain = !keeps && !null && blank != thoughts && blank != newline;
    return blank || !(thoughts || newline) ? CLT_CHAT_GEMMA4_FIRST : CLT_CHAT_GEMMA4_INTERLEAVED;
}

/* Whether the generation prompt ends in the closed empty thought: the E sizes' templates lack it. */
static bool writes_closed_thought(const clt_buf *t) {
    const char *last = NULL, *end = t->data + t->len;
    for (const char *s = t->data; (s = memmem(s, (size_t)(end - s), "add_generation_prompt", 21)) != NULL; s++) last = s;
    if (!last) return false;
    static const char primer[] = "<|channel>thought\\n<channel|>";
    return memmem(last, (size_t)(end - last), primer, sizeof primer - 1) != NULL;
}

static void decide(const scanner *c, const clt_chat_facts *facts, clt_chat_template *out) {
    const clt_buf *t = &c->out;
    if (find(t, "<|turn>")) {
        bool certain;
        out->generation = gemma4_generation(t, &certain);
        out->closed_thought = writes_closed_thought(t);
        out->recognised = certain && is_gemma4(t) && !c->sentences && !has_foreign_marker(t, false);
    } else if (find(t, "<start_of_turn>")) {
        out->generation = CLT_CHAT_GEMMA3;
        out->closed_thought = false;
        out->recognised = is_gemma3(t) && !c->sentences && !has_foreign_marker(t, true);
    } else {
        out->recognised = false; /* of another family: what the facts said stays */
    }
    if (!out->recognised && out->generation != CLT_CHAT_GEMMA3 && facts->gemma3) {
        out->generation = CLT_CHAT_GEMMA3;
        out->closed_thought = false;
    } else if (!out->recognised && out->generation == CLT_CHAT_GEMMA3 && !facts->gemma3) {
        out->generation = CLT_CHAT_GEMMA4_JULY;
        out->closed_thought = !facts->small;
    }
}

void clt_chat_recognise(const char *text, size_t len, const clt_chat_facts *facts, clt_chat_template *out) {
    clt_err ignored; /* without libcrypto there is no digest */
    *out = (clt_chat_template){
        .generation = facts->gemma3 ? CLT_CHAT_GEMMA3 : CLT_CHAT_GEMMA4_JULY,
        .closed_thought = !facts->gemma3 && !facts->small,
        .recognised = true,
    };
    if (!text) return;
    if (clt_sha256_hex(text, len, out->digest, &ignored) != CLT_OK) out->digest[0] = '\0';
    scanner c = {.s = text, .n = len};
    normalise(&c);
    if (!c.out.failed) decide(&c, facts, out);
    else out->recognised = false;
    clt_buf_free(&c.out);
}
