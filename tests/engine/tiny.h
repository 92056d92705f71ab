/* What the tests of the engine share: tiny models opened through the public interface, their expected ids, and replies whose
 * tokens a test dictates. Everything fails the running test on error. */
#ifndef TESTS_ENGINE_TINY_H
#define TESTS_ENGINE_TINY_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "culet.h"

/* The exit status of a test program that cannot run here, or 0: the models need the JSON libraries. */
int tiny_cannot_run(void);
/* A path below tests/golden/models/; static storage, good until the next call. */
const char *tiny_path(const char *sub);
culet_engine *tiny_open(const char *sub, culet_open_mode mode, int threads);
/* context 0 and ubatch 0 as in culet_session_params; float32 keys and values. */
culet_session *tiny_session(culet_engine *e, int context, int ubatch);
culet_session *tiny_session_kv(culet_engine *e, int context, int ubatch, culet_kv_type kv);

typedef struct tiny_ids {
    int32_t data[512];
    size_t n;
} tiny_ids;
/* A list of golden.json: text.<prompt>.<key>, key "prompt_ids" or "greedy_ids". */
tiny_ids tiny_golden(const char *model, const char *prompt, const char *key);

/* Greedy sampling without end. */
culet_sampling tiny_greedy(void);

/* Dictated replies: greedy sampling whose bias makes the model say exactly these ids, in this order. They must be distinct,
 * at most 64 and not in the prompt. Good as long as the script lives. */
typedef struct tiny_script {
    int32_t ids[64];
    float bias[64];
    culet_sampling sampling;
} tiny_script;
void tiny_dictate(tiny_script *script, const int32_t *ids, size_t n);
/* The ids of a text with specials, or of one stored piece in angle brackets ("<0x74>"); returns how many, at most room. */
size_t tiny_tokens(const culet_engine *e, const char *text, int32_t *out, size_t room);

/* The bytes of all deltas of one reply, by kind. */
typedef struct tiny_view {
    char content[8192], thought[8192];
    size_t n_content, n_thought, deltas;
    size_t stop_after; /* returns false at this many deltas; 0 = never */
} tiny_view;
bool tiny_on_delta(void *view, culet_delta kind, const char *text, size_t len);

/* A folder of its own for files of this test program; removed by tiny_remove_folder. */
const char *tiny_folder(void);
void tiny_remove_folder(void);

#endif
