/* A folder that stands for "/" in tests of what the system's files say. */
#ifndef TESTS_BASE_FAKE_ROOT_H
#define TESTS_BASE_FAKE_ROOT_H

int fake_root_begin(void **state);                       /* an empty one, in use from now on; returns 0, as cmocka wants */
void fake_root_put(const char *path, const char *text);  /* a file and its folders */
int fake_root_end(void **state);                         /* removes it; the system's own root is in use again */

#endif
