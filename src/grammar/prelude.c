/* The rules that every grammar has, as finished automata at fixed states: strings whose characters are free. Being the same
 * everywhere, what tokens do inside them is worked out once per vocabulary (strings.c).
 *
 * UTF-8 is well-formed (Unicode 15, table 3-7), an escaped surrogate comes with its other half, and no character is NUL.
 * Each character counts once, however it is written. */
#include "grammar/impl.h"

enum {
    END,
    JSON_OPEN, JSON_BODY, TEXT_OPEN, TEXT_BODY, CLOSED,
    JSON_U1, JSON_U2, JSON_U3, JSON_E0, JSON_ED, JSON_F0, JSON_F4,
    TEXT_U1, TEXT_U2, TEXT_U3, TEXT_E0, TEXT_ED, TEXT_F0, TEXT_F4,
    ESCAPE, HEX4, HEX3, HEX2, HEX1, ZERO3, ZERO2, ZERO1, AFTER_D, HIGH2, HIGH1, LOW_ESCAPE, LOW_U, LOW_D, LOW3,
    STATES
};

typedef struct row {
    uint8_t from, lo, hi, kind, to;
} row;

static const row rows[] = {
    {JSON_OPEN, '"', '"', CLT_PLAIN, JSON_BODY},
    {JSON_BODY, 0x20, 0x21, CLT_COUNT, JSON_BODY}, {JSON_BODY, '"', '"', CLT_EXIT, CLOSED},
    {JSON_BODY, 0x23, 0x5B, CLT_COUNT, JSON_BODY}, {JSON_BODY, '\\', '\\', CLT_COUNT, ESCAPE},
    {JSON_BODY, 0x5D, 0x7F, CLT_COUNT, JSON_BODY},
    {JSON_BODY, 0xC2, 0xDF, CLT_COUNT, JSON_U1}, {JSON_BODY, 0xE0, 0xE0, CLT_COUNT, JSON_E0},
    {JSON_BODY, 0xE1, 0xEC, CLT_COUNT, JSON_U2}, {JSON_BODY, 0xED, 0xED, CLT_COUNT, JSON_ED},
    {JSON_BODY, 0xEE, 0xEF, CLT_COUNT, JSON_U2}, {JSON_BODY, 0xF0, 0xF0, CLT_COUNT, JSON_F0},
    {JSON_BODY, 0xF1, 0xF3, CLT_COUNT, JSON_U3}, {JSON_BODY, 0xF4, 0xF4, CLT_COUNT, JSON_F4},
    {TEXT_OPEN, CLT_BYTE_QUOTE, CLT_BYTE_QUOTE, CLT_PLAIN, TEXT_BODY},
    {TEXT_BODY, 0x01, 0x7F, CLT_COUNT, TEXT_BODY}, {TEXT_BODY, CLT_BYTE_QUOTE, CLT_BYTE_QUOTE, CLT_EXIT, CLOSED},
    {TEXT_BODY, 0xC2, 0xDF, CLT_COUNT, TEXT_U1}, {TEXT_BODY, 0xE0, 0xE0, CLT_COUNT, TEXT_E0},
    {TEXT_BODY, 0xE1, 0xEC, CLT_COUNT, TEXT_U2}, {TEXT_BODY, 0xED, 0xED, CLT_COUNT, TEXT_ED},
    {TEXT_BODY, 0xEE, 0xEF, CLT_COUNT, TEXT_U2}, {TEXT_BODY, 0xF0, 0xF0, CLT_COUNT, TEXT_F0},
    {TEXT_BODY, 0xF1, 0xF3, CLT_COUNT, TEXT_U3}, {TEXT_BODY, 0xF4, 0xF4, CLT_COUNT, TEXT_F4},
    {JSON_U1, 0x80, 0xBF, CLT_PLAIN, JSON_BODY}, {JSON_U2, 0x80, 0xBF, CLT_PLAIN, JSON_U1},
    {JSON_U3, 0x80, 0xBF, CLT_PLAIN, JSON_U2}, {JSON_E0, 0xA0, 0xBF, CLT_PLAIN, JSON_U1},
    {JSON_ED, 0x80, 0x9F, CLT_PLAIN, JSON_U1}, {JSON_F0, 0x90, 0xBF, CLT_PLAIN, JSON_U2},
    {JSON_F4, 0x80, 0x8F, CLT_PLAIN, JSON_U2},
    {TEXT_U1, 0x80, 0xBF, CLT_PLAIN, TEXT_BODY}, {TEXT_U2, 0x80, 0xBF, CLT_PLAIN, TEXT_U1},
    {TEXT_U3, 0x80, 0xBF, CLT_PLAIN, TEXT_U2}, {TEXT_E0, 0xA0, 0xBF, CLT_PLAIN, TEXT_U1},
    {TEXT_ED, 0x80, 0x9F, CLT_PLAIN, TEXT_U1}, {TEXT_F0, 0x90, 0xBF, CLT_PLAIN, TEXT_U2},
    {TEXT_F4, 0x80, 0x8F, CLT_PLAIN, TEXT_U2},
    {ESCAPE, '"', '"', CLT_PLAIN, JSON_BODY}, {ESCAPE, '\\', '\\', CLT_PLAIN, JSON_BODY},
    {ESCAPE, '/', '/', CLT_PLAIN, JSON_BODY}, {ESCAPE, 'b', 'b', CLT_PLAIN, JSON_BODY},
    {ESCAPE, 'f', 'f', CLT_PLAIN, JSON_BODY}, {ESCAPE, 'n', 'n', CLT_PLAIN, JSON_BODY},
    {ESCAPE, 'r', 'r', CLT_PLAIN, JSON_BODY}, {ESCAPE, 't', 't', CLT_PLAIN, JSON_BODY},
    {ESCAPE, 'u', 'u', CLT_PLAIN, HEX4},
    /* \uXXXX: 0000 and the halves of surrogate pairs go ways of their own */
    {HEX4, '0', '0', CLT_PLAIN, ZERO3}, {HEX4, '1', '9', CLT_PLAIN, HEX3}, {HEX4, 'A', 'C', CLT_PLAIN, HEX3},
    {HEX4, 'D', 'D', CLT_PLAIN, AFTER_D}, {HEX4, 'E', 'F', CLT_PLAIN, HEX3}, {HEX4, 'a', 'c', CLT_PLAIN, HEX3},
    {HEX4, 'd', 'd', CLT_PLAIN, AFTER_D}, {HEX4, 'e', 'f', CLT_PLAIN, HEX3},
    {HEX3, '0', '9', CLT_PLAIN, HEX2}, {HEX3, 'A', 'F', CLT_PLAIN, HEX2}, {HEX3, 'a', 'f', CLT_PLAIN, HEX2},
    {HEX2, '0', '9', CLT_PLAIN, HEX1}, {HEX2, 'A', 'F', CLT_PLAIN, HEX1}, {HEX2, 'a', 'f', CLT_PLAIN, HEX1},
    {HEX1, '0', '9', CLT_PLAIN, JSON_BODY}, {HEX1, 'A', 'F', CLT_PLAIN, JSON_BODY}, {HEX1, 'a', 'f', CLT_PLAIN, JSON_BODY},
    {ZERO3, '0', '0', CLT_PLAIN, ZERO2}, {ZERO3, '1', '9', CLT_PLAIN, HEX2}, {ZERO3, 'A', 'F', CLT_PLAIN, HEX2},
    {ZERO3, 'a', 'f', CLT_PLAIN, HEX2},
    {ZERO2, '0', '0', CLT_PLAIN, ZERO1}, {ZERO2, '1', '9', CLT_PLAIN, HEX1}, {ZERO2, 'A', 'F', CLT_PLAIN, HEX1},
    {ZERO2, 'a', 'f', CLT_PLAIN, HEX1},
    {ZERO1, '1', '9', CLT_PLAIN, JSON_BODY}, {ZERO1, 'A', 'F', CLT_PLAIN, JSON_BODY},
    {ZERO1, 'a', 'f', CLT_PLAIN, JSON_BODY},
    {AFTER_D, '0', '7', CLT_PLAIN, HEX2}, {AFTER_D, '8', '9', CLT_PLAIN, HIGH2}, {AFTER_D, 'A', 'B', CLT_PLAIN, HIGH2},
    {AFTER_D, 'a', 'b', CLT_PLAIN, HIGH2},
    {HIGH2, '0', '9', CLT_PLAIN, HIGH1}, {HIGH2, 'A', 'F', CLT_PLAIN, HIGH1}, {HIGH2, 'a', 'f', CLT_PLAIN, HIGH1},
    {HIGH1, '0', '9', CLT_PLAIN, LOW_ESCAPE}, {HIGH1, 'A', 'F', CLT_PLAIN, LOW_ESCAPE},
    {HIGH1, 'a', 'f', CLT_PLAIN, LOW_ESCAPE},
    {LOW_ESCAPE, '\\', '\\', CLT_PLAIN, LOW_U}, {LOW_U, 'u', 'u', CLT_PLAIN, LOW_D},
    {LOW_D, 'D', 'D', CLT_PLAIN, LOW3}, {LOW_D, 'd', 'd', CLT_PLAIN, LOW3},
    {LOW3, 'C', 'F', CLT_PLAIN, HEX2}, {LOW3, 'c', 'f', CLT_PLAIN, HEX2},
};

bool clt_prelude_rules(clt_nfa *n) {
    static const uint32_t starts[CLT_PRELUDE_RULES] = {JSON_OPEN, JSON_BODY, TEXT_OPEN, TEXT_BODY};
    for (size_t i = 0; i < CLT_PRELUDE_RULES; i++) {
        uint32_t rule = clt_nfa_rule_new(n, NULL, 0);
        if (clt_nfa_ok(n)) n->rules[rule].fixed = starts[i];
    }
    return clt_nfa_ok(n);
}

bool clt_prelude_states(clt_grammar *g) {
    for (uint32_t s = END; s < STATES; s++) {
        if (clt_grammar_state(g) != s) return false;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            if (rows[i].from == s && !clt_grammar_edge(g, rows[i].lo, rows[i].hi, rows[i].kind, rows[i].to)) return false;
        }
    }
    g->states[CLOSED].accepts = true;
    g->states[JSON_BODY].body = CLT_BODY_JSON;
    g->states[TEXT_BODY].body = CLT_BODY_CALL;
    return true;
}
