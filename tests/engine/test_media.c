/* Soft tokens in timelines: the golden prompts with their golden soft tokens; the same bits from every chunking, every road
 * to the same timeline, and from saved sessions, with pictures at the front, in the middle and at the end; what is refused.
 * Towers do not run here: the soft tokens are those that the reference made, or the test's own. */
#include "engine/tiny.h"
#include <math.h>
#include "base/buf.h"
#include "base/json.h"
#include "base/os.h"
#include "engine/media.h"

enum { V = 1280, WIDTH = 64, SLOT = 1275, BEGIN = 1273, END = 1277 };

/* ---- media without towers ---- */

static culet_media *wrap(clt_soft *soft) {
    culet_media *m = calloc(1, sizeof *m);
    m->part = calloc(1, sizeof *m->part);
    atomic_init(&m->holders, 2); /* the test frees the struct itself: the engine did not make it */
    m->info = soft->info;
    m->part[0] = soft;
    m->n_parts = 1;
    return m;
}

static void drop(culet_media *m) {
    clt_soft_free(m->part[0]);
    free(m->part);
    free(m);
}

static culet_media *golden_media(const char *name) {
    char path[128];
    clt_err err;
    clt_buf file = {0};
    snprintf(path, sizeof path, "tiny-dense/image.%s.soft.f32", name);
    if (clt_read_file(tiny_path(path), 1 << 20, &file, &err) != CLT_OK) fail_msg("%s", err.text);
    clt_soft *soft = clt_soft_new(CULET_IMAGE, file.len / (WIDTH * sizeof(float)), WIDTH);
    memcpy(soft->rows, file.data, file.len);
    clt_buf_free(&file);
    return wrap(soft);
}

/* Soft tokens that no tower made: rows of different numbers. */
static culet_media *made_media(const culet_engine *e, culet_media_kind kind, size_t n, unsigned seed) {
    size_t width = (size_t)culet_engine_info(e)->width;
    clt_soft *soft = clt_soft_new(kind, n, (int64_t)width);
    for (size_t i = 0; i < n * width; i++) {
        seed = seed * 1664525u + 1013904223u;
        soft->rows[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    return wrap(soft);
}

/* ---- prompts ---- */

typedef struct prompt {
    int32_t ids[256];
    size_t n;
    culet_media *media[4];
    size_t n_media;
} prompt;

static void put_ids(prompt *p, int32_t first, size_t n) {
    for (size_t i = 0; i < n; i++) p->ids[p->n++] = first + (int32_t)i;
}

/* begin, slots, end; the media stay the test's. */
static void put_media(prompt *p, culet_media *m) {
    p->ids[p->n++] = BEGIN;
    for (size_t i = 0; i < m->info.tokens; i++) p->ids[p->n++] = SLOT;
    p->ids[p->n++] = END;
    p->media[p->n_media++] = m;
}

static culet_status sync(culet_session *s, const prompt *p, size_t *reused, culet_error *err) {
    return culet_session_sync_media(s, p->ids, p->n, p->media, p->n_media, reused, err);
}

static void sync_ok(culet_session *s, const prompt *p, size_t want_reused) {
    culet_error err;
    size_t reused = 999999;
    if (sync(s, p, &reused, &err) != CULET_OK) fail_msg("%s", err.text);
    assert_int_equal(reused, want_reused);
}

static culet_session *open_session(culet_engine *e, int ubatch, int image_tokens) {
    culet_session_params p;
    culet_session *s;
    culet_error err;
    culet_session_defaults(&p);
    p.context = 256, p.ubatch = ubatch, p.image_tokens = image_tokens, p.kv_k = p.kv_v = CULET_KV_F32;
    if (culet_session_open(e, &p, &s, &err) != CULET_OK) fail_msg("%s", err.text);
    return s;
}

/* The logits after a prompt, from a session of its own. */
static void fresh(culet_engine *e, const prompt *p, float *out) {
    culet_session *s = open_session(e, 0, 0);
    sync_ok(s, p, 0);
    memcpy(out, culet_session_logits(s), V * sizeof *out);
    culet_session_close(s);
}

static void assert_logits(const culet_session *s, const float *want) {
    assert_non_null(culet_session_logits(s));
    assert_memory_equal(culet_session_logits(s), want, V * sizeof *want);
}

/* ---- truth ---- */

static void read_case(const char *name, prompt *p, int32_t *greedy, size_t *n_greedy) {
    clt_err err;
    clt_buf text = {0};
    clt_json *doc;
    int64_t id;
    if (clt_read_file(tiny_path("tiny-dense/golden.json"), 1 << 24, &text, &err) != CLT_OK ||
        clt_json_parse(text.data, text.len, "golden.json", &doc, &err) != CLT_OK)
        fail_msg("%s", err.text);
    const clt_json *c = clt_json_get(clt_json_get(clt_json_get(doc, "media"), "cases"), name);
    const clt_json *ids = clt_json_get(c, "prompt_ids"), *out = clt_json_get(c, "greedy_ids");
    for (size_t i = 0; i < clt_json_len(ids) && clt_json_int(clt_json_at(ids, i), &id); i++) p->ids[p->n++] = (int32_t)id;
    for (*n_greedy = 0; *n_greedy < clt_json_len(out) && clt_json_int(clt_json_at(out, *n_greedy), &id); (*n_greedy)++)
        greedy[*n_greedy] = (int32_t)id;
    assert_true(p->n > 0 && *n_greedy > 8);
    clt_json_free(doc);
    clt_buf_free(&text);
}

static void check_logits(const culet_session *s, const char *name) {
    char path[128];
    clt_err err;
    clt_buf file = {0};
    const float *got = culet_session_logits(s);
    snprintf(path, sizeof path, "tiny-dense/case.%s.last_logits.f32", name);
    if (clt_read_file(tiny_path(path), 1 << 20, &file, &err) != CLT_OK) fail_msg("%s", err.text);
    assert_int_equal(file.len, V * sizeof *got);
    for (int i = 0; i < V; i++) {
        float want;
        memcpy(&want, file.data + (size_t)i * sizeof want, sizeof want);
        assert_true(fabs((double)(got[i] - want)) <= 2e-3 + 1e-3 * fabs((double)want));
    }
    clt_buf_free(&file);
}

static void check_case(culet_engine *e, const char *name, culet_media **media, size_t n_media) {
    prompt p = {.n_media = n_media};
    int32_t greedy[64];
    size_t n_greedy;
    culet_error err;
    culet_reply reply;
    read_case(name, &p, greedy, &n_greedy);
    memcpy(p.media, media, n_media * sizeof *media);
    culet_session *s = open_session(e, 0, 0);
    sync_ok(s, &p, 0);
    check_logits(s, name);
    culet_generate_params g = {.prompt = p.ids, .n_prompt = p.n, .media = p.media, .n_media = n_media,
                               .max_tokens = (int)n_greedy, .sampling = tiny_greedy(), .raw = true};
    if (culet_generate(s, &g, &reply, &err) != CULET_OK) fail_msg("%s", err.text);
    assert_int_equal(reply.timings.cache_n, p.n);
    assert_int_equal(reply.n_ids, n_greedy);
    assert_memory_equal(reply.ids, greedy, n_greedy * sizeof *greedy);
    culet_reply_free(&reply);
    culet_session_close(s);
}

static void test_golden_prompts(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-dense", CULET_OPEN_FULL, 2);
    culet_media *wide = golden_media("wide"), *exact = golden_media("exact");
    check_case(e, "wide", &wide, 1);
    check_case(e, "exact", &exact, 1);
    check_case(e, "two_images", (culet_media *[]){wide, exact}, 2);
    drop(wide);
    drop(exact);
    culet_engine_close(e);
}

/* ---- the same bits ---- */

/* Pictures at the front, in the middle and at the end; one longer than the window of 8, one of a single token. */
static void mixed(prompt *p, culet_media *a, culet_media *b, culet_media *c) {
    *p = (prompt){0};
    put_media(p, a);
    put_ids(p, 300, 20);
    put_media(p, b);
    put_ids(p, 500, 3);
    put_media(p, c);
}

static void test_bits_do_not_depend_on_chunks(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-dense", CULET_OPEN_FULL, 2);
    culet_media *a = made_media(e, CULET_IMAGE, 21, 1), *b = made_media(e, CULET_IMAGE, 1, 2);
    culet_media *c = made_media(e, CULET_IMAGE, 9, 3);
    prompt p;
    float want[V];
    static const int ubatches[] = {1, 2, 5, 21, 22, 23, 64};
    mixed(&p, a, b, c);
    fresh(e, &p, want);
    for (size_t i = 0; i < sizeof ubatches / sizeof *ubatches; i++) {
        culet_session *s = open_session(e, ubatches[i], 21);
        sync_ok(s, &p, 0);
        assert_logits(s, want);
        culet_session_close(s);
        s = open_session(e, ubatches[i], 20); /* a pass of such a session holds no whole picture */
        culet_error err;
        culet_status st = sync(s, &p, NULL, &err);
        assert_int_equal(st, ubatches[i] < 21 ? CULET_USAGE : CULET_OK);
        if (st == CULET_OK) assert_logits(s, want);
        else assert_non_null(strstr(err.text, "21 tokens"));
        culet_session_close(s);
    }
    drop(a), drop(b), drop(c);
    culet_engine_close(e);
}

/* Every prefix, then on to the whole: the cut falls into pictures and between them. */
static void check_roads(culet_engine *e, const prompt *p) {
    float want[V], part[V];
    culet_error err;
    fresh(e, p, want);
    for (size_t cut = 1; cut < p->n; cut += 3) {
        culet_session *s = open_session(e, 0, 0);
        sync_ok(s, p, 0);
        if (culet_session_rewind(s, cut, &err) != CULET_OK) fail_msg("%s", err.text);
        assert_int_equal(culet_session_extend(s, (int32_t[]){77}, 1, &err), CULET_OK); /* a truncated picture, and text */
        memcpy(part, culet_session_logits(s), sizeof part);
        if (culet_session_rewind(s, cut, &err) != CULET_OK) fail_msg("%s", err.text);
        assert_int_equal(culet_session_extend(s, (int32_t[]){77}, 1, &err), CULET_OK);
        assert_logits(s, part);
        if (sync(s, p, NULL, &err) != CULET_OK) fail_msg("%s", err.text);
        assert_logits(s, want);
        culet_session_close(s);
    }
}

static void test_every_road_leads_to_the_same(void **state) {
    (void)state;
    static const char *const models[] = {"tiny-dense", "tiny-e2b"}; /* blocks; causal with per-layer embeddings */
    for (size_t i = 0; i < 2; i++) {
        culet_engine *e = tiny_open(models[i], CULET_OPEN_FULL, 1);
        culet_media *a = made_media(e, CULET_IMAGE, 21, 1), *b = made_media(e, CULET_IMAGE, 1, 2);
        culet_media *c = made_media(e, CULET_IMAGE, 9, 3);
        prompt p;
        mixed(&p, a, b, c);
        check_roads(e, &p);
        drop(a), drop(b), drop(c);
        culet_engine_close(e);
    }
}

static void test_what_is_reused(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-dense", CULET_OPEN_FULL, 1);
    culet_media *a = made_media(e, CULET_IMAGE, 6, 1), *same = made_media(e, CULET_IMAGE, 6, 1);
    culet_media *other = made_media(e, CULET_IMAGE, 6, 2), *longer = made_media(e, CULET_IMAGE, 7, 1);
    prompt p = {0}, q = {0}, r = {0}, t = {0};
    float want[V];
    put_ids(&p, 100, 4), put_media(&p, a), put_ids(&p, 200, 5);
    put_ids(&q, 100, 4), put_media(&q, same), put_ids(&q, 200, 4), put_ids(&q, 300, 2);
    put_ids(&r, 100, 4), put_media(&r, other), put_ids(&r, 200, 5);
    put_ids(&t, 100, 4), put_media(&t, longer), put_ids(&t, 200, 5);
    culet_session *s = open_session(e, 0, 0);
    sync_ok(s, &p, 0);
    sync_ok(s, &q, 16); /* equal soft tokens are the same picture, whoever holds them: all up to the changed text */
    sync_ok(s, &r, 5);  /* another picture: up to its begin */
    fresh(e, &r, want);
    assert_logits(s, want);
    sync_ok(s, &t, 5);  /* its first rows are equal, but a longer picture looks different to its first row, too */
    fresh(e, &t, want);
    assert_logits(s, want);
    prompt bare = p;
    bare.n_media = 0;
    sync_ok(s, &bare, 5); /* placeholders as tokens */
    fresh(e, &bare, want);
    assert_logits(s, want);
    culet_session_close(s);
    drop(a), drop(same), drop(other), drop(longer);
    culet_engine_close(e);
}

static void test_saved_sessions(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-dense", CULET_OPEN_FULL, 1);
    culet_media *a = made_media(e, CULET_IMAGE, 21, 1), *b = made_media(e, CULET_IMAGE, 1, 2);
    culet_media *c = made_media(e, CULET_IMAGE, 9, 3);
    prompt p, longer;
    float want[V];
    char path[512];
    culet_error err;
    culet_media **held;
    size_t n_held;
    mixed(&p, a, b, c);
    longer = p;
    put_ids(&longer, 600, 4);
    fresh(e, &longer, want);
    snprintf(path, sizeof path, "%s/media.session", tiny_folder());
    culet_session *s = open_session(e, 0, 0), *t = open_session(e, 0, 0);
    sync_ok(s, &p, 0);
    if (culet_session_save(s, path, NULL, 0, &err) != CULET_OK) fail_msg("%s", err.text);
    if (culet_session_load(t, path, NULL, NULL, &err) != CULET_OK) fail_msg("%s", err.text);
    assert_logits(t, culet_session_logits(s));
    assert_int_equal(culet_session_media(t, &held, &n_held, &err), CULET_OK);
    assert_int_equal(n_held, 3);
    assert_int_equal(culet_media_get_info(held[0])->tokens, 21);
    for (size_t i = 0; i < n_held; i++) culet_media_free(held[i]);
    culet_free(held);
    sync_ok(t, &longer, p.n); /* the pictures of the file are those of the prompt */
    assert_logits(t, want);
    if (culet_session_load(t, path, NULL, NULL, &err) != CULET_OK) fail_msg("%s", err.text);
    assert_int_equal(culet_session_rewind(t, 3, &err), CULET_OK); /* within the first picture: its rows are evaluated anew */
    assert_int_equal(sync(t, &longer, NULL, &err), CULET_OK);
    assert_logits(t, want);
    culet_session_close(t);
    t = open_session(e, 8, 20); /* one token less than the first picture */
    assert_int_equal(culet_session_load(t, path, NULL, NULL, &err), CULET_CONTEXT);
    culet_session_close(s);
    culet_session_close(t);
    drop(a), drop(b), drop(c);
    culet_engine_close(e);
}

/* ---- refusals ---- */

static void refused(culet_session *s, const prompt *p, const char *words) {
    culet_error err;
    assert_int_equal(sync(s, p, NULL, &err), CULET_USAGE);
    if (!strstr(err.text, words)) fail_msg("'%s' lacks '%s'", err.text, words);
}

static void test_refusals(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-dense", CULET_OPEN_FULL, 1);
    culet_media *a = made_media(e, CULET_IMAGE, 4, 1), *sound = made_media(e, CULET_AUDIO, 4, 1);
    prompt p = {0};
    float want[V];
    put_ids(&p, 100, 4), put_media(&p, a), put_ids(&p, 200, 5);
    fresh(e, &p, want);
    culet_session *s = open_session(e, 0, 0);
    sync_ok(s, &p, 0);
    prompt two = p, none = {0}, shorter = p, heard = p;
    two.media[two.n_media++] = a;
    refused(s, &two, "2 were given");
    put_ids(&none, 100, 4);
    none.media[none.n_media++] = a;
    refused(s, &none, "places for 0");
    memmove(shorter.ids + 6, shorter.ids + 7, (shorter.n - 7) * sizeof *shorter.ids);
    shorter.n--;
    refused(s, &shorter, "4 soft tokens");
    heard.media[0] = sound;
    refused(s, &heard, "a sound was given");
    assert_logits(s, want); /* what was refused has changed nothing */
    sync_ok(s, &p, p.n);
    culet_session_close(s);
    drop(a), drop(sound);
    culet_engine_close(e);
}

/* ---- expansion ---- */

static void expands_to(culet_engine *e, const int32_t *ids, size_t n, culet_media **media, size_t n_media, const prompt *want) {
    int32_t *out;
    size_t n_out;
    culet_error err;
    if (culet_media_expand(e, ids, n, media, n_media, &out, &n_out, &err) != CULET_OK) fail_msg("%s", err.text);
    assert_int_equal(n_out, want->n);
    assert_memory_equal(out, want->ids, n_out * sizeof *out);
    culet_free(out);
}

static void test_expansion(void **state) {
    (void)state;
    culet_engine *e = tiny_open("tiny-dense", CULET_OPEN_TEXT, 1);
    culet_media *a = made_media(e, CULET_IMAGE, 4, 1), *b = made_media(e, CULET_IMAGE, 2, 2);
    culet_error err;
    int32_t *out;
    size_t n;
    prompt want = {0};
    put_ids(&want, 100, 2), put_media(&want, a), put_media(&want, b), put_ids(&want, 200, 1);
    expands_to(e, (int32_t[]){100, 101, SLOT, SLOT, 200}, 5, (culet_media *[]){a, b}, 2, &want);
    expands_to(e, want.ids, want.n, (culet_media *[]){a, b}, 2, &want); /* whole already */
    expands_to(e, want.ids, 2, NULL, 0, &(prompt){.ids = {100, 101}, .n = 2});
    expands_to(e, NULL, 0, NULL, 0, &(prompt){0});
    assert_int_equal(culet_media_expand(e, (int32_t[]){SLOT}, 1, (culet_media *[]){a, b}, 2, &out, &n, &err), CULET_USAGE);
    assert_non_null(strstr(err.text, "1 place"));
    assert_int_equal(culet_media_expand(e, want.ids, want.n, (culet_media *[]){b, a}, 2, &out, &n, &err), CULET_USAGE);
    assert_non_null(strstr(err.text, "stand 4 placeholders"));
    drop(a), drop(b);
    culet_engine_close(e);
}

/* Times are text: tokenised with what stands before them, a space between frames. */
static void put_text(prompt *p, const culet_engine *e, const char *text) {
    p->n += tiny_tokens(e, text, p->ids + p->n, 64);
}

static void test_videos(void **state) {
    (void)state;
    enum { VIDEO = 1279 };
    culet_engine *e = tiny_open("tiny-dense", CULET_OPEN_FULL, 1);
    if (!culet_engine_info(e)->vision_path) skip();
    culet_media *a = made_media(e, CULET_IMAGE, 4, 1), *b = made_media(e, CULET_IMAGE, 2, 2), *video, *sound;
    culet_error err;
    sound = made_media(e, CULET_AUDIO, 2, 1);
    prompt p = {0}, want = {0};
    put_text(&p, e, "<|turn>user\nLook");
    want.ids[want.n++] = p.ids[0];
    put_text(&want, e, "user\nLook00:09 ");
    want.ids[want.n++] = BEGIN;
    for (int i = 0; i < 4; i++) want.ids[want.n++] = VIDEO;
    want.ids[want.n++] = END;
    put_text(&want, e, " 61:01 ");
    want.ids[want.n++] = BEGIN, want.ids[want.n++] = VIDEO, want.ids[want.n++] = VIDEO, want.ids[want.n++] = END;
    put_text(&want, e, "now?");
    p.ids[p.n++] = VIDEO;
    put_text(&p, e, "now?");
    assert_int_equal(culet_media_video(e, (culet_media *[]){a, b}, (double[]){9.99, 3661}, 2, &video, &err), CULET_OK);
    assert_int_equal(culet_media_get_info(video)->tokens, 6);
    expands_to(e, p.ids, p.n, &video, 1, &want);
    expands_to(e, want.ids, want.n, &video, 1, &want);
    want.media[want.n_media++] = video;
    culet_session *s = open_session(e, 0, 0);
    sync_ok(s, &want, 0);
    culet_session_close(s);
    culet_media_free(video);
    assert_int_equal(culet_media_video(e, &sound, (double[]){0}, 1, &video, &err), CULET_USAGE);
    assert_int_equal(culet_media_video(e, &a, (double[]){-1}, 1, &video, &err), CULET_USAGE);
    assert_int_equal(culet_media_video(e, NULL, NULL, 0, &video, &err), CULET_USAGE);
    drop(a), drop(b), drop(sound);
    culet_engine_close(e);
}

/* ---- the cache ---- */

static clt_soft *keyed(const char *key, size_t tokens) {
    clt_soft *s = clt_soft_new(CULET_IMAGE, tokens, WIDTH);
    snprintf(s->key, sizeof s->key, "%s", key);
    return s;
}

static void test_cache(void **state) {
    (void)state;
    size_t one = sizeof(clt_soft) + 4 * WIDTH * sizeof(float);
    clt_soft_cache *c = clt_soft_cache_create(2 * one);
    clt_soft *a = keyed("a", 4), *b = keyed("b", 4), *d = keyed("d", 4), *nameless = keyed("", 4), *large = keyed("l", 100);
    clt_soft_cache_put(c, a);
    clt_soft_cache_put(c, b);
    clt_soft_cache_put(c, nameless);
    clt_soft_cache_put(c, large);
    clt_soft *found = clt_soft_cache_find(c, "a");
    assert_ptr_equal(found, a);
    clt_soft_free(found);
    clt_soft_cache_put(c, d); /* b was used least lately */
    assert_null(clt_soft_cache_find(c, "b"));
    assert_null(clt_soft_cache_find(c, ""));
    assert_null(clt_soft_cache_find(c, "l"));
    found = clt_soft_cache_find(c, "d");
    assert_ptr_equal(found, d);
    clt_soft_cache_free(c); /* those who hold one keep it */
    assert_int_equal(found->tokens, 4);
    clt_soft_free(found);
    clt_soft_free(a), clt_soft_free(b), clt_soft_free(d), clt_soft_free(nameless), clt_soft_free(large);
}

static int clean(void **state) {
    (void)state;
    tiny_remove_folder();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_prompts),
        cmocka_unit_test(test_bits_do_not_depend_on_chunks),
        cmocka_unit_test(test_every_road_leads_to_the_same),
        cmocka_unit_test(test_what_is_reused),
        cmocka_unit_test(test_saved_sessions),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_expansion),
        cmocka_unit_test(test_videos),
        cmocka_unit_test(test_cache),
    };
    int skip = tiny_cannot_run();
    return skip ? skip : cmocka_run_group_tests(tests, NULL, clean);
}
