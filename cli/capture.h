/* Where the pictures of culet caption come from: files, a video, a camera. One interface, one shot at a time.
 *
 * A shot is what the engine takes as it is: the bytes of a picture file, pixels, or samples. Nothing here is encoded or
 * kept. */
#ifndef CLI_CAPTURE_H
#define CLI_CAPTURE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

typedef struct cli_shot {
    char *name;              /* the file; owned */
    clt_buf bytes;           /* of a picture file, or: */
    uint8_t *rgb;            /* [height][width][3], owned */
    int width, height;
    float *samples;          /* a clip: 16 kHz, one channel; owned */
    size_t n_samples;
    size_t index;            /* of the frame or clip, as its source counts */
    double seconds;          /* behind the first frame; where a clip begins; 0 of a file */
    double end_seconds;      /* of a clip */
    double ms;               /* it took to get hold of it */
    double taken_ms;         /* when that was done; clt_now_ms */
} cli_shot;
void cli_shot_free(cli_shot *s);

typedef struct cli_capture cli_capture;
struct cli_capture {
    /* The next shot; *end: there is none. Blocks; gives up (CLT_E_CANCELLED) soon after *stop becomes true. A failure with
     * out->name set concerns that file alone, and the next call goes on behind it. */
    clt_status (*next)(cli_capture *c, cli_shot *out, bool *end, const atomic_bool *stop, clt_err *err);
    void (*close)(cli_capture *c);
    bool live;               /* what is not taken is gone: the next shot is the newest there is, whenever it is asked for */
    size_t n;                /* shots in all; 0 = not known */
};
void cli_capture_close(cli_capture *c); /* NULL is fine */

/* Files in the order given. Paths are copied. */
clt_status cli_capture_files(const char *const *paths, size_t n, cli_capture **out, clt_err *err);
/* Pictures below a folder, told by the ends of their names, in the order of these. Links to folders are passed over. */
clt_status cli_capture_folder(const char *path, cli_capture **out, clt_err *err);
/* A video file, a frame every so many seconds. */
clt_status cli_capture_video(const char *path, double every, cli_capture **out, clt_err *err);
/* Sound files, each cut into clips of at most `limit` seconds (0 = 30). */
clt_status cli_capture_sounds(const char *const *paths, size_t n, double limit, cli_capture **out, clt_err *err);
/* A V4L2 camera that gives MJPEG or YUYV. */
clt_status cli_capture_camera(const char *path, cli_capture **out, clt_err *err);

#endif
