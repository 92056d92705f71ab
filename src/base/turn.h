/* A lock that serves its callers in the order in which they came. A plain mutex may be taken again and again by the thread
 * that lets it go for a moment, and the others starve: passes of several sessions and the layers of a picture take turns. */
#ifndef CLT_BASE_TURN_H
#define CLT_BASE_TURN_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct clt_turn {
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    uint64_t next, serving; /* numbers drawn so far; the number whose turn it is */
} clt_turn;

bool clt_turn_init(clt_turn *t);    /* false: the system has no more locks */
void clt_turn_destroy(clt_turn *t); /* nobody holds it or waits */
void clt_turn_take(clt_turn *t);
void clt_turn_give(clt_turn *t);

#endif
