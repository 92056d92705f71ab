/* A camera through V4L2: JPEG pictures as they come (MJPEG), or YUYV turned into RGB.
 *
 * Frames are fetched only when one is asked for. What waits in the driver's buffers then is old: it is given back, and the
 * next frame to come is taken. Every size, index and length that the driver states is checked. */
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/mem.h"
#include "base/os.h"
#include "capture.h"

enum {
    BUFFERS = 4, WANTED_WIDTH = 1280, WANTED_HEIGHT = 720,
    MOST_SIDE = 16384, LEAST_JPEG = 64,
    LOOK_MS = 100,
    SILENT_MS = 5000, /* without a frame for so long it is taken for gone */
    DAMAGED_MOST = 30 /* one after another */
};

typedef struct camera {
    cli_capture base;
    char *path;
    int fd;
    bool jpeg, streams;
    int width, height;
    size_t stride;           /* bytes of a row of YUYV */
    struct { uint8_t *at; size_t bytes; } map[BUFFERS];
    unsigned buffers;
    double first;            /* time of the first frame, seconds */
    bool any;
} camera;

/* ---- opening ---- */

static int control(int fd, unsigned long request, void *what) {
    int r;
    do {
        r = ioctl(fd, request, what);
    } while (r < 0 && errno == EINTR);
    return r;
}

static clt_status refuse(const camera *c, const char *doing, clt_err *err) {
    int why = errno;
    if (why == EBUSY) {
        clt_fail(err, CLT_E_FAILED, "%s: the camera is in use by another program", c->path);
        return clt_hint(err, "end the program that shows its picture, then try again");
    }
    if (why == ENODEV || why == EIO) {
        return clt_fail(err, CLT_E_FAILED, "%s: the camera is gone (%s: %s)", c->path, doing, strerror(why));
    }
    return clt_fail(err, CLT_E_FAILED, "%s: %s: %s", c->path, doing, strerror(why));
}

static clt_status open_device(camera *c, clt_err *err) {
    struct v4l2_capability can = {0};
    c->fd = open(c->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (c->fd < 0) {
        int why = errno;
        refuse(c, "cannot be opened", err);
        return why == EACCES ? clt_hint(err, "a user needs to be in the group of the device, mostly 'video'") : err->code;
    }
    if (control(c->fd, VIDIOC_QUERYCAP, &can) < 0) {
        return errno == EBUSY || errno == ENODEV
                   ? refuse(c, "asked what it can do", err)
                   : clt_fail(err, CLT_E_FAILED, "%s: not a camera (no V4L2 device)", c->path);
    }
    uint32_t caps = can.capabilities & V4L2_CAP_DEVICE_CAPS ? can.device_caps : can.capabilities;
    if (!(caps & V4L2_CAP_VIDEO_CAPTURE) || !(caps & V4L2_CAP_STREAMING)) {
        clt_fail(err, CLT_E_FAILED, "%s: a V4L2 device that captures no video", c->path);
        return clt_hint(err, "a camera often has two devices, of which the first gives pictures");
    }
    return CLT_OK;
}

/* Asks for one format; the driver answers with what it will do. False: something else. */
static bool try_format(camera *c, uint32_t format, struct v4l2_format *f) {
    *f = (struct v4l2_format){.type = V4L2_BUF_TYPE_VIDEO_CAPTURE};
    f->fmt.pix.width = WANTED_WIDTH;
    f->fmt.pix.height = WANTED_HEIGHT;
    f->fmt.pix.pixelformat = format;
    f->fmt.pix.field = V4L2_FIELD_ANY;
    return control(c->fd, VIDIOC_S_FMT, f) == 0 && f->fmt.pix.pixelformat == format;
}

static clt_status choose_format(camera *c, clt_err *err) {
    struct v4l2_format f;
    c->jpeg = true;
    if (!try_format(c, V4L2_PIX_FMT_MJPEG, &f) && !try_format(c, V4L2_PIX_FMT_JPEG, &f)) {
        int why = errno;
        c->jpeg = false;
        if (!try_format(c, V4L2_PIX_FMT_YUYV, &f)) {
            errno = why == EBUSY ? EBUSY : errno;
            return errno == EBUSY || errno == ENODEV
                       ? refuse(c, "asked for a format", err)
                       : clt_fail(err, CLT_E_UNSUPPORTED, "%s: the camera gives neither MJPEG nor YUYV", c->path);
        }
    }
    const struct v4l2_pix_format *p = &f.fmt.pix;
    if (p->width < 2 || p->height < 1 || p->width > MOST_SIDE || p->height > MOST_SIDE || (!c->jpeg && p->width % 2)) {
        return clt_fail(err, CLT_E_FAILED, "%s: the camera gives %u x %u pixels, expected up to %d a side", c->path,
                        p->width, p->height, (int)MOST_SIDE);
    }
    c->width = (int)p->width;
    c->height = (int)p->height;
    c->stride = p->bytesperline > 2 * p->width && p->bytesperline <= 8 * MOST_SIDE ? p->bytesperline : 2 * (size_t)p->width;
    return CLT_OK;
}

static struct v4l2_buffer buffer_of(unsigned index) {
    return (struct v4l2_buffer){.index = index, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
}

static clt_status map_buffers(camera *c, clt_err *err) {
    struct v4l2_requestbuffers r = {.count = BUFFERS, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
    if (control(c->fd, VIDIOC_REQBUFS, &r) < 0) {
        return refuse(c, "asked for buffers", err);
    }
    if (r.count < 2) {
        return clt_fail(err, CLT_E_FAILED, "%s: the driver gives %u buffers, at least 2 are needed", c->path, r.count);
    }
    for (unsigned i = 0; i < r.count && i < BUFFERS; i++) {
        struct v4l2_buffer b = buffer_of(i);
        if (control(c->fd, VIDIOC_QUERYBUF, &b) < 0) {
            return refuse(c, "asked for a buffer", err);
        }
        void *at = mmap(NULL, b.length, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, b.m.offset);
        if (at == MAP_FAILED) {
            return refuse(c, "its memory cannot be mapped", err);
        }
        c->map[i].at = at;
        c->map[i].bytes = b.length;
        c->buffers = i + 1;
        if (control(c->fd, VIDIOC_QBUF, &b) < 0) {
            return refuse(c, "a buffer was refused", err);
        }
    }
    return CLT_OK;
}

static clt_status start(camera *c, clt_err *err) {
    int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    if (control(c->fd, VIDIOC_STREAMON, &type) < 0) {
        return refuse(c, "it does not start", err);
    }
    c->streams = true;
    return CLT_OK;
}

static void camera_close(cli_capture *base) {
    camera *c = (camera *)base;
    int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    if (c->streams) {
        control(c->fd, VIDIOC_STREAMOFF, &type);
    }
    for (unsigned i = 0; i < c->buffers; i++) {
        munmap(c->map[i].at, c->map[i].bytes);
    }
    if (c->fd >= 0) {
        close(c->fd);
    }
    clt_free(c->path);
    clt_free(c);
}

/* ---- pictures ---- */

static uint8_t clamp(int v) {
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* One pixel of BT.601, studio range, as cameras send it; sums are scaled by 256. */
static void put_pixel(uint8_t *rgb, int y, int u, int v) {
    int c = 298 * (y - 16) + 128, d = u - 128, e = v - 128;
    rgb[0] = clamp((c + 409 * e) >> 8);
    rgb[1] = clamp((c - 100 * d - 208 * e) >> 8);
    rgb[2] = clamp((c + 516 * d) >> 8);
}

static clt_status take_yuyv(const camera *c, const uint8_t *data, cli_shot *out, clt_err *err) {
    size_t bytes = (size_t)c->width * (size_t)c->height * 3;
    out->rgb = clt_alloc(bytes);
    if (!out->rgb) {
        return clt_fail_memory(err, c->path, bytes);
    }
    out->width = c->width;
    out->height = c->height;
    for (int row = 0; row < c->height; row++) {
        const uint8_t *in = data + (size_t)row * c->stride;
        uint8_t *to = out->rgb + (size_t)row * (size_t)c->width * 3;
        for (int x = 0; x < c->width; x += 2, in += 4, to += 6) {
            put_pixel(to, in[0], in[1], in[3]);
            put_pixel(to + 3, in[2], in[1], in[3]);
        }
    }
    return CLT_OK;
}

/* A frame that was cut, or is marked as damaged, is none: cameras send such ones when they start. */
static bool is_whole(const camera *c, const struct v4l2_buffer *b) {
    const uint8_t *data = c->map[b->index].at;
    if (b->flags & V4L2_BUF_FLAG_ERROR || b->bytesused > c->map[b->index].bytes) {
        return false;
    }
    if (c->jpeg) {
        return b->bytesused >= LEAST_JPEG && data[0] == 0xFF && data[1] == 0xD8;
    }
    return b->bytesused >= c->stride * (size_t)(c->height - 1) + 2 * (size_t)c->width;
}

static clt_status take_picture(camera *c, const struct v4l2_buffer *b, cli_shot *out, clt_err *err) {
    const uint8_t *data = c->map[b->index].at;
    double at = (double)b->timestamp.tv_sec + (double)b->timestamp.tv_usec / 1e6;
    if (!c->any) {
        c->first = at;
        c->any = true;
    }
    out->seconds = at > c->first ? at - c->first : 0;
    out->index = b->sequence;
    if (!c->jpeg) {
        return take_yuyv(c, data, out, err);
    }
    clt_buf_put(&out->bytes, data, b->bytesused);
    return out->bytes.failed ? clt_fail_memory(err, c->path, b->bytesused) : CLT_OK;
}

/* ---- frames ---- */

/* 1: a buffer was fetched; 0: there is none now; -1: *err says why. */
static int fetch(const camera *c, struct v4l2_buffer *b, clt_err *err) {
    *b = buffer_of(0);
    if (control(c->fd, VIDIOC_DQBUF, b) < 0) {
        if (errno == EAGAIN) {
            return 0;
        }
        refuse(c, "fetching a frame", err);
        return -1;
    }
    if (b->index >= c->buffers) {
        clt_fail(err, CLT_E_FAILED, "%s: the driver names buffer %u of %u", c->path, b->index, c->buffers);
        return -1;
    }
    return 1;
}

static clt_status give_back(const camera *c, unsigned index, clt_err *err) {
    struct v4l2_buffer b = buffer_of(index);
    return control(c->fd, VIDIOC_QBUF, &b) < 0 ? refuse(c, "giving a buffer back", err) : CLT_OK;
}

/* What was filled before now is old. At most as many as there are, should the driver be faster than we. */
static clt_status drop_old(const camera *c, clt_err *err) {
    for (unsigned i = 0; i < c->buffers; i++) {
        struct v4l2_buffer b;
        int got = fetch(c, &b, err);
        if (got <= 0) {
            return got < 0 ? err->code : CLT_OK;
        }
        if (give_back(c, b.index, err)) {
            return err->code;
        }
    }
    return CLT_OK;
}

static clt_status wait_for_frame(const camera *c, struct v4l2_buffer *b, const atomic_bool *stop, clt_err *err) {
    double until = clt_now_ms() + SILENT_MS;
    for (;;) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        if (atomic_load(stop)) {
            return clt_fail(err, CLT_E_CANCELLED, "%s: cancelled", c->path);
        }
        int n = poll(&p, 1, LOOK_MS);
        int got = n > 0 ? fetch(c, b, err) : 0;
        if (got) {
            return got < 0 ? err->code : CLT_OK;
        }
        if (n > 0 && p.revents & (POLLERR | POLLHUP | POLLNVAL)) {
            return clt_fail(err, CLT_E_FAILED, "%s: the camera is gone", c->path);
        }
        if (clt_now_ms() > until) {
            return clt_fail(err, CLT_E_FAILED, "%s: the camera has sent no frame for %d s", c->path, SILENT_MS / 1000);
        }
    }
}

static clt_status camera_next(cli_capture *base, cli_shot *out, bool *end, const atomic_bool *stop, clt_err *err) {
    camera *c = (camera *)base;
    double begin = clt_now_ms();
    clt_status status = drop_old(c, err);
    bool whole = false;
    *end = false;
    for (int damaged = 0; !status && !whole; damaged++) {
        struct v4l2_buffer b = {0};
        if (damaged == DAMAGED_MOST) {
            return clt_fail(err, CLT_E_FAILED, "%s: the camera sends damaged frames only", c->path);
        }
        status = wait_for_frame(c, &b, stop, err);
        whole = !status && is_whole(c, &b);
        if (whole) {
            status = take_picture(c, &b, out, err);
        }
        if (!status) {
            status = give_back(c, b.index, err);
        }
    }
    if (!status) {
        out->name = clt_strdup(c->path);
        status = out->name ? CLT_OK : clt_fail_memory(err, c->path, strlen(c->path));
    }
    out->ms = clt_now_ms() - begin;
    return status;
}

clt_status cli_capture_camera(const char *path, cli_capture **out, clt_err *err) {
    camera *c = clt_calloc(1, sizeof(*c));
    if (!c) {
        return clt_fail_memory(err, path, sizeof(*c));
    }
    c->base = (cli_capture){.next = camera_next, .close = camera_close, .live = true};
    c->fd = -1;
    c->path = clt_strdup(path);
    clt_status status = c->path ? open_device(c, err) : clt_fail_memory(err, path, strlen(path));
    if (!status) {
        status = choose_format(c, err);
    }
    if (!status) {
        status = map_buffers(c, err);
    }
    if (!status) {
        status = start(c, err);
    }
    if (status) {
        camera_close(&c->base);
        return status;
    }
    *out = &c->base;
    return CLT_OK;
}
