/* A folder that stands for "/" in tests of what the system's files say. */
#ifndef TESTS_BASE_FAKE_ROOT_H
#define TESTS_BASE_FAKE_ROOT_H

void fake_root_begin(void);                              /* an empty one, in use from now on */
void fake_root_put(const char *path, const char *text);  /* a file and its folders */
void fake_root_end(void);                                /* removes it; the system's own root is in use again */

#endif
