/* The memory plan: what does not fit is refused before weights are read, what the hint names fits, and the plan is what is
 * then taken. A folder stands for the system's files, so that the free memory is what a test says. */
#include "engine/tiny.h"
#include <sys/stat.h>
#include <unistd.h>
#include "base/sysfile.h"
#include "engine/impl.h"

#define MODEL "tiny-gemma3/gguf/tiny-gemma3-Q4_0.gguf"

static char root[256];

static void put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(full, 0700);
    }
    FILE *f = fopen(full, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) fail_msg("%s", full);
}

static void set_free(uint64_t bytes) {
    char text[128];
    snprintf(text, sizeof text, "MemTotal: 67108864 kB\nMemAvailable: %llu kB\n", (unsigned long long)(bytes / 1024));
    put("/proc/meminfo", text);
}

static int begin(void **state) {
    (void)state;
    snprintf(root, sizeof root, "%s/root", tiny_folder());
    mkdir(root, 0700);
    clt_sysfile_set_root(root);
    return 0;
}

static int end(void **state) {
    static const char *const paths[] = {"/cg/box/memory.max", "/cg/box/memory.current", "/cg/box", "/cg",
                                        "/proc/self/cgroup", "/proc/self/mountinfo", "/proc/self", "/proc/meminfo", "/proc",
                                        ""};
    char full[512];
    (void)state;
    clt_sysfile_set_root(NULL);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        snprintf(full, sizeof full, "%s%s", root, paths[i]);
        remove(full);
    }
    tiny_remove_folder();
    return 0;
}

/* What an engine with one session of this context needs beside its vocabulary. */
static uint64_t needed(int context) {
    culet_session_params sp;
    clt_plan plan;
    clt_err err;
    culet_engine *e = tiny_open(MODEL, CULET_OPEN_INSPECT, 1);
    culet_session_defaults(&sp);
    sp.context = context;
    assert_int_equal(clt_plan_make(e, &sp, 1, &plan, &err), CLT_OK);
    culet_engine_close(e);
    return plan.total - plan.vocabulary;
}

/* What a session of an open engine needs. */
static uint64_t session_needs(const culet_engine *e, int context) {
    culet_session_params sp;
    clt_plan plan;
    clt_err err;
    culet_session_defaults(&sp);
    sp.context = context;
    assert_int_equal(clt_plan_make(e, &sp, 1, &plan, &err), CLT_OK);
    return plan.kv_full + plan.kv_sliding + plan.scratch + plan.session_tables;
}

static int progress_calls;

static bool count_progress(void *user, double done) {
    (void)user, (void)done;
    progress_calls++;
    return true;
}

static culet_status open_with(int context, int sessions, culet_error *err) {
    culet_session_params sp;
    culet_session_defaults(&sp);
    sp.context = context;
    culet_engine_params p = {.model = tiny_path(MODEL), .threads = 1, .plan = &sp, .plan_sessions = sessions,
                             .progress = count_progress};
    culet_engine *e;
    progress_calls = 0;
    culet_status status = culet_engine_open(&p, &e, err);
    assert_true((e != NULL) == (status == CULET_OK));
    if (status != CULET_OK) assert_int_equal(progress_calls, 0); /* no weight was read */
    culet_engine_close(e);
    return status;
}

static int hinted(const culet_error *err) {
    const char *at = strstr(err->hint, "-c ");
    return at ? atoi(at + 3) : 0;
}

static void test_refused_before_loading(void **state) {
    (void)state;
    culet_error err;
    uint64_t enough = needed(16384);
    set_free(enough + 1024);
    assert_int_equal(open_with(16384, 0, &err), CULET_OK);
    set_free(enough - 1024);
    assert_int_equal(open_with(16384, 0, &err), CULET_MEMORY);
    assert_int_equal(culet_status_exit(err.status), 4);
    assert_non_null(strstr(err.text, "16384 tokens"));
    assert_non_null(strstr(err.text, "(free memory)"));
    assert_null(strchr(err.text, '\n'));
}

/* The hint's context fits, and a little more than the hint's margin does not. */
static void test_hint_is_the_largest(void **state) {
    (void)state;
    culet_error err;
    static const int contexts[] = {1024, 5000, 12352};
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++) {
        uint64_t room = needed(contexts[i]) + 1024;
        set_free(room);
        assert_int_equal(open_with(30000, 0, &err), CULET_MEMORY);
        int best = hinted(&err);
        if (best <= 0 || best > contexts[i]) fail_msg("-c %d for a room of %d", best, contexts[i]);
        assert_int_equal(best % CLT_ATTN_CHUNK, 0);
        assert_true(needed(best + CLT_ATTN_CHUNK) > room - room / 256);
        assert_int_equal(open_with(best, 0, &err), CULET_OK);
    }
}

static void test_nothing_fits(void **state) {
    (void)state;
    culet_error err;
    set_free(needed(64) / 2);
    assert_int_equal(open_with(4096, 0, &err), CULET_MEMORY);
    assert_non_null(strstr(err.hint, "no context fits"));
    set_free(4096);
    culet_engine_params p = {.model = tiny_path(MODEL), .threads = 1};
    culet_engine *e;
    assert_int_equal(culet_engine_open(&p, &e, &err), CULET_MEMORY);
    assert_non_null(strstr(err.text, "the weights need"));
    p.skip_memory_check = true;
    assert_int_equal(culet_engine_open(&p, &e, &err), CULET_OK);
    culet_engine_close(e);
}

static void test_defaults_and_limits(void **state) {
    (void)state;
    culet_error err;
    culet_engine *e = tiny_open(MODEL, CULET_OPEN_INSPECT, 1);
    int limit = culet_engine_info(e)->context_limit;
    culet_engine_close(e);
    set_free(needed(8192) + 1024);
    assert_int_equal(open_with(0, 0, &err), CULET_OK); /* 8192, or the model's limit */
    assert_int_equal(open_with(0, 2, &err), CULET_MEMORY);
    set_free(needed(8192) - 4096);
    assert_int_equal(open_with(0, 0, &err), CULET_MEMORY);
    assert_true(hinted(&err) > 0 && hinted(&err) < 8192);
    set_free(needed(limit) + 1024);
    assert_int_equal(open_with(INT32_MAX, 0, &err), CULET_OK); /* counts as the limit */
    assert_int_equal(open_with(-1, 0, &err), CULET_USAGE);
}

static void test_the_group_is_named(void **state) {
    (void)state;
    culet_error err;
    char text[32];
    set_free(UINT64_C(1) << 34);
    put("/proc/self/cgroup", "0::/box\n");
    put("/proc/self/mountinfo", "30 25 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
    put("/cg/box/memory.current", "1048576\n");
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)needed(8192) + (1 << 20) + 4096);
    put("/cg/box/memory.max", text);
    assert_int_equal(open_with(8192, 0, &err), CULET_OK);
    assert_int_equal(open_with(16384, 0, &err), CULET_MEMORY);
    assert_non_null(strstr(err.text, "control group /box, memory.max"));
    assert_int_equal(open_with(hinted(&err), 0, &err), CULET_OK);
}

/* Sessions are judged as well: what was free at opening may be gone. */
static void test_sessions(void **state) {
    (void)state;
    culet_error err;
    culet_session *s;
    culet_session_params sp;
    set_free(UINT64_C(1) << 34);
    culet_engine *e = tiny_open(MODEL, CULET_OPEN_FULL, 1);
    uint64_t rest = session_needs(e, 2048);
    culet_session_defaults(&sp);
    sp.context = 16384;
    set_free(rest + 1024);
    assert_int_equal(culet_session_open(e, &sp, &s, &err), CULET_MEMORY);
    assert_null(s);
    assert_true(hinted(&err) > 0 && hinted(&err) <= 2048);
    sp.context = hinted(&err);
    assert_int_equal(culet_session_open(e, &sp, &s, &err), CULET_OK);
    culet_session_close(s);
    culet_engine_close(e);
}

static uint64_t private_bytes(void) {
    uint64_t kb = 0;
    clt_sysfile_set_root(NULL);
    clt_sysfile_field("/proc/self/status", "VmData", &kb);
    return kb * 1024;
}

/* The plan's sum against what the process maps for an engine and its session. */
static void test_plan_is_what_is_taken(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    culet_error err;
    clt_err inner;
    clt_plan plan;
    culet_session *s;
    uint64_t before = private_bytes();
    if (before == 0) skip();
    culet_engine *e = tiny_open(MODEL, CULET_OPEN_FULL, 4);
    culet_session_params sp = {.context = culet_engine_info(e)->context_limit, .ubatch = 2048};
    assert_int_equal(culet_session_open(e, &sp, &s, &err), CULET_OK);
    assert_int_equal(clt_plan_make(e, &sp, 1, &plan, &inner), CLT_OK);
    /* 4 MiB of the plan are for heap and stack that this program had already. */
    double taken = (double)(private_bytes() - before), planned = (double)(plan.total - (4 << 20));
    if (taken > 1.05 * planned || taken < 0.95 * planned) fail_msg("planned %.0f, taken %.0f", planned, taken);
    assert_true(planned > 12 * (1 << 20)); /* large enough for the comparison to say something */
    culet_session_close(s);
    culet_engine_close(e);
}

int main(void) {
    if (tiny_cannot_run()) return tiny_cannot_run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refused_before_loading, begin, end),
        cmocka_unit_test_setup_teardown(test_hint_is_the_largest, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_fits, begin, end),
        cmocka_unit_test_setup_teardown(test_defaults_and_limits, begin, end),
        cmocka_unit_test_setup_teardown(test_the_group_is_named, begin, end),
        cmocka_unit_test_setup_teardown(test_sessions, begin, end),
        cmocka_unit_test(test_plan_is_what_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
