/* Pictures, sounds and videos of the command line: files in, soft tokens out, in the order in which their flags were given. */
#ifndef CLI_MEDIA_H
#define CLI_MEDIA_H
#include "args.h"

typedef struct cli_media {
    culet_media **item;
    size_t n, cap;
    double ms; /* decoding and encoding of all */
} cli_media;

/* Encodes what --image, --audio and --video name. Returns 0, or prints the error and returns the exit code. */
int cli_media_load(const cli_args *args, culet_engine *e, cli_media *out);
/* The same for one more file. kind: CLI_PART_IMAGE, CLI_PART_AUDIO or CLI_PART_VIDEO. */
int cli_media_add(cli_media *m, culet_engine *e, cli_part_kind kind, const char *path, int tokens);
/* Takes all media of a session's timeline, the others are dropped. */
int cli_media_of_session(cli_media *m, const culet_session *s);
void cli_media_remove(cli_media *m, size_t at, size_t count);
/* Drops the last ones, down to n. */
void cli_media_cut(cli_media *m, size_t n);
void cli_media_free(cli_media *m);
/* One placeholder for each medium becomes all of its tokens; ids that are whole already stay. */
int cli_media_expand(const cli_media *m, const culet_engine *e, clt_ids *ids);

#endif
