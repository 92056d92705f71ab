/* Helpers for tests on the golden models: open one, run ids through it, compare arrays. */
#ifndef TESTS_FORWARD_GOLDEN_H
#define TESTS_FORWARD_GOLDEN_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/os.h"
#include "forward/forward.h"

typedef struct golden {
    clt_file *file;
    clt_model model;
    clt_pool *pool;
    clt_net *net;
    clt_scratch *scratch;
    clt_kv *kv;
    clt_json *doc; /* golden.json; NULL if not read */
    int vocab;
} golden;

typedef struct golden_options {
    clt_cpu_level level;
    int threads, max_rows, context;
    clt_type k_type, v_type;
} golden_options;

#define GOLDEN_DEFAULTS ((golden_options){golden_best_level(), 2, 64, 4096, CLT_F32, CLT_F32})

clt_cpu_level golden_best_level(void);
/* The goldens stand in tests/golden/models/, or in $CULET_GOLDENS/models/. */
bool golden_exists(const char *path);
/* dir/name, or dir where name is NULL. */
void golden_path(char out[1024], const char *dir, const char *name);
/* path is below that folder. Fails the test on any error. */
void golden_open(golden *g, const char *path, golden_options o);
void golden_close(golden *g);
/* Read <dir>/<name> below that folder. */
clt_json *golden_json(const char *dir, const char *name);
float *golden_array(const char *dir, const char *name, size_t *n);
/* Evaluates ids in passes of `chunk` rows; logits of the wanted rows (all, or the last) go to out in order. */
void golden_run(golden *g, const int32_t *ids, int n, int chunk, bool all, float *out);
int32_t *golden_ids(const clt_json *array, int *n);

#endif
