/* The turn is fair: a thread that lets it go for a moment does not get it again before those that waited. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "base/turn.h"

enum { THREADS = 4, ROUNDS = 500 };

typedef struct shared {
    clt_turn turn;
    int inside, worst, served[THREADS];
} shared;
typedef struct worker { shared *s; int index; } worker;

static int fewest(const shared *s) {
    int n = s->served[0];
    for (int i = 1; i < THREADS; i++) n = s->served[i] < n ? s->served[i] : n;
    return n;
}

static void *work(void *arg) {
    worker *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        clt_turn_take(&w->s->turn);
        if (w->s->inside++) w->s->worst = -1;
        w->s->served[w->index]++;
        w->s->inside--;
        clt_turn_give(&w->s->turn);
    }
    return NULL;
}

static void one_at_a_time(void **state) {
    (void)state;
    shared s = {0};
    pthread_t thread[THREADS];
    worker w[THREADS];
    assert_true(clt_turn_init(&s.turn));
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){&s, i};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    assert_int_equal(s.worst, 0);
    assert_int_equal(fewest(&s), ROUNDS);
    clt_turn_destroy(&s.turn);
}

static void *take_once(void *arg) {
    worker *w = arg;
    clt_turn_take(&w->s->turn);
    w->s->served[w->index] = 1;
    clt_turn_give(&w->s->turn);
    return NULL;
}

static void waits(shared *s, uint64_t number) {
    for (uint64_t next = 0; next < number;) {
        pthread_mutex_lock(&s->turn.mutex);
        next = s->turn.next;
        pthread_mutex_unlock(&s->turn.mutex);
    }
}

static void who_waits_comes_first(void **state) {
    (void)state;
    shared s = {0};
    pthread_t thread;
    worker w = {&s, 1};
    assert_true(clt_turn_init(&s.turn));
    clt_turn_take(&s.turn);
    assert_int_equal(pthread_create(&thread, NULL, take_once, &w), 0);
    waits(&s, 2);
    clt_turn_give(&s.turn);
    clt_turn_take(&s.turn);
    assert_int_equal(s.served[1], 1);
    clt_turn_give(&s.turn);
    pthread_join(thread, NULL);
    clt_turn_destroy(&s.turn);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_at_a_time), cmocka_unit_test(who_waits_comes_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
