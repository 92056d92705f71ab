/* Numbers are drawn as at a counter; whoever holds the number that is served has the turn. */
#include "base/turn.h"

bool clt_turn_init(clt_turn *t) {
    *t = (clt_turn){0};
    if (pthread_mutex_init(&t->mutex, NULL) != 0) return false;
    if (pthread_cond_init(&t->moved, NULL) == 0) return true;
    pthread_mutex_destroy(&t->mutex);
    return false;
}

void clt_turn_destroy(clt_turn *t) {
    pthread_cond_destroy(&t->moved);
    pthread_mutex_destroy(&t->mutex);
}

void clt_turn_take(clt_turn *t) {
    pthread_mutex_lock(&t->mutex);
    uint64_t number = t->next++;
    while (t->serving != number) pthread_cond_wait(&t->moved, &t->mutex);
    pthread_mutex_unlock(&t->mutex);
}

void clt_turn_give(clt_turn *t) {
    pthread_mutex_lock(&t->mutex);
    t->serving++;
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->mutex);
}
