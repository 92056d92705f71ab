/* Speculation never lies: random models, prompts, kinds, lengths, seeds, passes, predictions and ends; with it and without it
 * a reply has the same ids, texts and reason to end, and leaves the same saved session, byte for byte. */
#include "engine/tiny.h"
#include "base/buf.h"
#include "base/os.h"
#include "engine/speculate.h"

/* ---- random numbers of the test ---- */

static uint64_t state_of_numbers = 1;

static unsigned below(unsigned n) {
    state_of_numbers = state_of_numbers * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state_of_numbers >> 33) % n;
}

/* Ids that repeat themselves: pieces of what came before, with changes, among new ones. */
static size_t random_ids(int32_t *ids, size_t room, int vocab) {
    size_t n = 3 + below((unsigned)room - 3), i = 0;
    ids[i++] = 2;
    while (i < n) {
        size_t piece = 1 + below(12), from = below((unsigned)i);
        bool old = below(3) > 0;
        for (size_t k = 0; k < piece && i < n; k++, i++)
            ids[i] = old && from + k < i && below(8) ? ids[from + k] : 200 + (int32_t)below((unsigned)vocab - 300);
    }
    return n;
}

/* ---- one case ---- */

typedef struct outcome {
    culet_reply reply;
    culet_status status;
    clt_buf saved;
} outcome;

static void outcome_free(outcome *o) {
    culet_reply_free(&o->reply);
    clt_buf_free(&o->saved);
}

static void run(culet_session *s, const culet_generate_params *p, outcome *o) {
    culet_error err;
    clt_err inner;
    char path[512];
    memset(o, 0, sizeof *o);
    o->status = culet_generate(s, p, &o->reply, &err);
    if (o->status != CULET_OK && o->status != CULET_CANCELLED) fail_msg("%s", err.text);
    snprintf(path, sizeof path, "%s/spec.session", tiny_folder());
    culet_status st = culet_session_save(s, path, NULL, 0, &err);
    if (st == CULET_UNSUPPORTED) return; /* a build without compression */
    if (st != CULET_OK) fail_msg("%s", err.text);
    if (clt_read_file(path, 1 << 26, &o->saved, &inner) != CLT_OK) fail_msg("%s", inner.text);
}

static void same(const outcome *a, const outcome *b) {
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->reply.n_ids, b->reply.n_ids);
    assert_memory_equal(a->reply.ids, b->reply.ids, a->reply.n_ids * sizeof *a->reply.ids);
    assert_int_equal(a->reply.finish, b->reply.finish);
    assert_string_equal(a->reply.text, b->reply.text);
    assert_int_equal(a->reply.timings.predicted_n, b->reply.timings.predicted_n);
    assert_int_equal(a->saved.len, b->saved.len);
    if (a->saved.len) assert_memory_equal(a->saved.data, b->saved.data, a->saved.len);
}

typedef struct trial {
    culet_generate_params p;
    int32_t ids[160], prediction[200];
    const char *stops[1];
    tiny_view view;
} trial;

static bool cancel_soon(void *user, culet_delta kind, const char *text, size_t len) {
    tiny_view *v = user;
    (void)kind, (void)text, (void)len;
    return ++v->deltas < v->stop_after;
}

/* Parameters without speculation. */
static void draw(trial *t, int vocab) {
    memset(t, 0, sizeof *t);
    t->p.prompt = t->ids;
    t->p.n_prompt = random_ids(t->ids, 150, vocab);
    t->p.max_tokens = (int)below(60);
    t->p.sampling = tiny_greedy();
    t->p.sampling.ignore_eos = below(3) > 0;
    if (below(2)) t->p.sampling.temperature = 0.3f + (float)below(10) / 10, t->p.sampling.top_k = 40, t->p.sampling.seed = below(1000);
    if (below(4) == 0) t->p.sampling.repeat_penalty = 1.2f, t->p.sampling.repeat_last_n = 64;
    t->p.raw = below(2);
    if (below(5) == 0) {
        t->stops[0] = "e";
        t->p.stops = t->stops, t->p.n_stops = 1;
    }
    if (below(8) == 0) t->view.stop_after = 3 + below(10), t->p.on_delta = cancel_soon, t->p.user = &t->view;
}

/* The same with speculation; the prediction is what was said, with one of so many ids exchanged. */
static void speculate(trial *t, const culet_reply *said) {
    static const unsigned wrong[] = {0, 7, 3, 2};
    unsigned every = wrong[below(4)];
    t->p.spec = below(2) ? CULET_SPEC_LOOKUP : CULET_SPEC_AUTO;
    t->p.draft_max = (int)below(CLT_DRAFT_MOST + 1);
    t->view.deltas = 0;
    if (below(2)) return;
    for (size_t i = 0; i < said->n_ids && i < 200; i++)
        t->prediction[t->p.n_prediction++] = every && below(every) == 0 ? 7 + (int32_t)below(90) : said->ids[i];
    t->p.prediction = t->prediction;
}

static void check_model(const char *model, int cases, size_t *drafted, size_t *right) {
    culet_engine *e = tiny_open(model, CULET_OPEN_FULL, 1);
    int vocab = culet_engine_info(e)->vocab;
    for (int i = 0; i < cases; i++) {
        trial t;
        outcome off, on;
        /* Both sessions alike but for their passes: drafts meet every place of a chunk. */
        culet_kv_type kv = (culet_kv_type)below(3);
        culet_session *a = tiny_session_kv(e, 224, 0, kv);
        draw(&t, vocab);
        run(a, &t.p, &off);
        culet_session *b = tiny_session_kv(e, 224, below(2) ? 0 : 2 + (int)below(40), kv);
        speculate(&t, &off.reply);
        run(b, &t.p, &on);
        same(&off, &on);
        *drafted += on.reply.timings.draft_n, *right += on.reply.timings.draft_n_accepted;
        assert_true(on.reply.timings.draft_n_accepted <= on.reply.timings.draft_n);
        outcome_free(&off), outcome_free(&on);
        culet_session_close(a), culet_session_close(b);
    }
    culet_engine_close(e);
}

static void test_replies_stay_the_same(void **state) {
    (void)state;
    static const char *const models[] = {"tiny-dense", "tiny-e2b", "tiny-moe", "tiny-gemma3", "tiny-unified"};
    size_t drafted = 0, right = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) check_model(models[i], 80, &drafted, &right);
    assert_true(drafted > 1000 && right > 300); /* else nothing was tried */
}

/* ---- lookup ---- */

static void add_all(clt_lookup *l, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) clt_lookup_add(l, ids[i]);
}

static void test_lookup(void **state) {
    (void)state;
    clt_err err;
    clt_lookup *l;
    static const int32_t ids[] = {1, 2, 3, 4, 9, 2, 3, 5, 7, 1, 2, 3};
    int32_t out[8];
    assert_int_equal(clt_lookup_create(14, &l, &err), CLT_OK);
    add_all(l, ids, 12);
    clt_match m = clt_lookup_find(l, ids, 12); /* 1 2 3 stood at the front, 2 3 later */
    assert_int_equal(m.length, 3);
    assert_int_equal(m.next, 3);
    assert_int_equal(clt_lookup_copy(l, m.next, out, 4), 4);
    assert_memory_equal(out, ((int32_t[]){4, 9, 2, 3}), 4 * sizeof *out);
    assert_int_equal(clt_lookup_find(l, (int32_t[]){8, 8}, 2).length, 0);
    assert_int_equal(clt_lookup_find(l, ids, 1).length, 0);
    m = clt_lookup_find(l, (int32_t[]){6, 2, 3}, 3); /* the latest of equally long ones */
    assert_int_equal(m.next, 7);
    add_all(l, (int32_t[]){6, 6, 6, 6}, 4); /* two fit */
    assert_int_equal(clt_lookup_length(l), 14);
    assert_int_equal(clt_lookup_copy(l, 12, out, 5), 5); /* what was written goes on */
    assert_memory_equal(out, ((int32_t[]){6, 6, 6, 6, 6}), 5 * sizeof *out);
    assert_int_equal(clt_lookup_copy(l, 14, out, 5), 0);
    clt_lookup_free(l);
}

/* Every place of a long text of few words is found by what stands before it. */
static void test_lookup_finds_the_longest(void **state) {
    (void)state;
    enum { N = 3000 };
    clt_err err;
    clt_lookup *l;
    static int32_t ids[N];
    assert_int_equal(clt_lookup_create(N, &l, &err), CLT_OK);
    for (size_t i = 0; i < N; i++) ids[i] = (int32_t)below(40);
    for (size_t i = 0; i < N; i++) {
        clt_match m = clt_lookup_find(l, ids, i);
        int best = 0;
        for (size_t end = i; end-- > 2 && i - end < 2000;) { /* by hand, the nearest first */
            int k = 0;
            while ((size_t)k < end && k < CLT_LOOKUP_MOST && ids[end - 1 - (size_t)k] == ids[i - 1 - (size_t)k]) k++;
            if (k > best) best = k;
        }
        if (best >= CLT_LOOKUP_LEAST) assert_true(m.length >= CLT_LOOKUP_LEAST && m.length <= CLT_LOOKUP_MOST);
        if (m.length) {
            assert_true(m.next < i);
            for (int k = 0; k < m.length; k++) assert_int_equal(ids[m.next - 1 - (size_t)k], ids[i - 1 - (size_t)k]);
        }
        clt_lookup_add(l, ids[i]);
    }
    clt_lookup_free(l);
}

/* ---- how many ---- */

/* Lets `text` go by with passes that cost `ms` for one row and `more` for each further one; returns the drafts that were asked for
 * in its second half. */
static size_t drafts_of(const int32_t *text, size_t n, double ms, double more, size_t *steps) {
    clt_err err;
    clt_speculator *s;
    int32_t draft[CLT_DRAFT_MOST];
    size_t asked = 0;
    *steps = 0;
    assert_int_equal(clt_speculator_create(CLT_SPEC_AUTO, 0, NULL, 0, n, &s, &err), CLT_OK);
    clt_speculator_read(s, text, 4);
    for (size_t i = 4; i < n;) {
        size_t k = clt_speculator_draft(s, CLT_DRAFT_MOST, draft), right = 0;
        while (right < k && i + right < n && draft[right] == text[i + right]) right++;
        clt_speculator_timed(s, k, ms + more * (double)k);
        if (i > n / 2) asked += k, ++*steps;
        for (size_t j = 0; j <= right && i < n; j++) clt_speculator_take(s, text, ++i);
    }
    clt_speculator_free(s);
    return asked;
}

static void test_auto_drafts_what_pays(void **state) {
    (void)state;
    enum { N = 800 };
    static int32_t copied[N], noise[N];
    size_t steps;
    for (size_t i = 0; i < N; i++) copied[i] = (int32_t)(i % 97), noise[i] = (int32_t)below(12);
    size_t asked = drafts_of(copied, N, 10, 1, &steps);
    assert_true(asked / steps > 10); /* always right, cheap rows: long drafts */
    asked = drafts_of(copied, N, 10, 40, &steps);
    assert_true(asked < steps / 4); /* a row more costs four passes */
    asked = drafts_of(noise, N, 10, 3, &steps);
    assert_true(asked < steps / 10); /* pairs recur, what follows them does not */
}

static int clean(void **state) {
    (void)state;
    tiny_remove_folder();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_lookup_finds_the_longest),
        cmocka_unit_test(test_auto_drafts_what_pays),
        cmocka_unit_test(test_replies_stay_the_same),
    };
    int skip = tiny_cannot_run();
    return skip ? skip : cmocka_run_group_tests(tests, NULL, clean);
}
