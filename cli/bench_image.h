/* bench --image: what a picture costs. The work of the measuring process, whose times bench_measure.c puts into its table. */
#ifndef CLI_BENCH_IMAGE_H
#define CLI_BENCH_IMAGE_H
#include "args.h"
#include "base/json.h"

/* Per repetition, in milliseconds; the picture's file with other bytes behind it, so that none is known already. */
typedef struct cli_image_times {
    double *decode, *encode; /* [n] */
    double *first;           /* from the file's name to the first token of a reply about it */
    double *feed, *text;     /* prefill of the picture's tokens; of as many tokens of text */
    double *cycle, *parts;   /* a caption of a picture that is encoded already: all of it; feeding and generating alone */
    size_t n;
} cli_image_times;

enum { CLI_CAPTION_TOKENS = 32 };

/* Opens nothing: engine and session are the process's own. Members are written into the open object. */
int cli_bench_image(const cli_args *args, culet_engine *e, culet_session *s, clt_jsonw *w);

#endif
