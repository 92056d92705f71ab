/* Control groups: the limits that containers and services set. */
#ifndef CLT_BASE_CGROUP_H
#define CLT_BASE_CGROUP_H
#include <stdbool.h>

/* One group: its folder below /sys/fs/cgroup (or wherever it is mounted), and its name as a person knows it ("/" for the
 * outermost that is visible). */
typedef struct clt_cgroup { const char *folder, *name; } clt_cgroup;

/* Calls fn for the group of this process in the unified hierarchy (v2), or in that of a v1 controller ("memory", "cpu"), and
 * then for each ancestor that is visible; limits of all of them hold at once. fn is not called where there is none. */
void clt_cgroup_walk_v2(void (*fn)(void *user, const clt_cgroup *g), void *user);
void clt_cgroup_walk_v1(const char *controller, void (*fn)(void *user, const clt_cgroup *g), void *user);

#endif
