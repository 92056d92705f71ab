/* culet caption: what its files share. */
#ifndef CLI_CAPTION_H
#define CLI_CAPTION_H
#include "capture.h"
#include "culet.h"

/* ---- one picture ahead: captured, decoded and encoded in a thread of its own while a caption is generated ---- */

typedef struct cli_ready {
    culet_media *media;      /* NULL: it could not be had, see failure */
    cli_shot shot;           /* its bytes and pixels are gone */
    char digest[65];         /* SHA-256 of the file; "" of a frame */
    double encode_ms;
    bool end;                /* there are no more */
    bool known;              /* its digest was among those to be left out: not encoded */
    culet_error failure;
} cli_ready;
void cli_ready_free(cli_ready *r);

/* Digests of files that have their caption. */
typedef struct cli_digests {
    char (*item)[65];
    size_t n, cap;
    bool failed;
} cli_digests;
void cli_digests_add(cli_digests *d, const char *hex); /* 64 digits */
void cli_digests_sort(cli_digests *d);                 /* before the first look */
bool cli_digests_have(const cli_digests *d, const char *hex);
void cli_digests_free(cli_digests *d);

/* ---- the file of captions ---- */

typedef struct cli_lines_file {
    const char *path;
    int fd;                  /* -1: none */
    cli_digests known;       /* of pictures that have their caption in it */
} cli_lines_file;
/* Creates it, or goes on with one of an earlier run. One process at a time. */
clt_status cli_lines_file_open(const char *path, cli_lines_file *f, clt_err *err);
clt_status cli_lines_file_put(cli_lines_file *f, const clt_buf *line, clt_err *err);
void cli_lines_file_close(cli_lines_file *f); /* fd -1 is fine */

typedef struct cli_ahead_params {
    culet_engine *engine;
    cli_capture *capture;
    culet_media_kind kind;
    int tokens;              /* budget of a picture */
    double every_ms;         /* of a live capture: from shot to shot at least */
    const cli_digests *known; /* NULL: digests are not taken */
} cli_ahead_params;

typedef struct cli_ahead cli_ahead;
clt_status cli_ahead_start(const cli_ahead_params *p, cli_ahead **out, clt_err *err);
/* Waits for the next picture. False: a signal came first. The picture after it is begun as soon as this one is taken. Of a
 * live capture no picture is given of which a newer shot was taken. */
bool cli_ahead_next(cli_ahead *a, cli_ready *out);
void cli_ahead_stop(cli_ahead *a); /* ends what runs; NULL is fine */

#endif
