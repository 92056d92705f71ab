/* Frames of a video file, decoded by an ffmpeg process: no shell, no network, nothing but the file that was named.
 *
 * Sizes are checked before memory is taken; an ffmpeg that is missing, or fails midway, is an error with its last line. */
#ifndef CLI_VIDEO_H
#define CLI_VIDEO_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

typedef struct cli_frame {
    uint8_t *rgb;            /* [height][width][3], the caller's: clt_free */
    int width, height;
    double seconds;          /* behind the video's first frame */
} cli_frame;

typedef struct cli_video cli_video;

/* The first frame at or behind each multiple of `every` seconds; 0 = every frame. */
clt_status cli_video_open(const char *path, double every, cli_video **out, clt_err *err);
/* Frame floor(i * total / n) for each i below n, as Gemma is shown a video; all of them if there are no more than n. */
clt_status cli_video_open_sampled(const char *path, int n, cli_video **out, clt_err *err);
/* Waits for the next frame; out->rgb is NULL at the end. A video without any frame is an error. Gives up soon after *stop
 * (may be NULL) becomes true: CLT_E_CANCELLED. */
clt_status cli_video_next(cli_video *v, cli_frame *out, const atomic_bool *stop, clt_err *err);
/* Also ends an ffmpeg that still runs. NULL is fine. */
void cli_video_close(cli_video *v);

#endif
