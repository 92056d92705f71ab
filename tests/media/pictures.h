/* What the tests of pictures share: golden files, and the comparison of two pictures. */
#ifndef CLT_TESTS_MEDIA_PICTURES_H
#define CLT_TESTS_MEDIA_PICTURES_H
#include "base/buf.h"
#include "media/picture.h"

/* The bytes of tests/golden/FOLDER/NAME. */
clt_buf pictures_golden(const char *folder, const char *name);
/* Ends the test where the build lacks the library. */
clt_picture pictures_decode(const clt_buf *b);
/* Of every byte at most `most`, on average at most `mean`. Frees p. */
void pictures_same(clt_picture *p, const clt_picture *expected, int most, double mean);

#endif
