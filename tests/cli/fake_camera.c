/* A camera that is none: preloaded into the program under test, it answers for one path and leaves all others alone.
 *
 * FAKE_CAMERA        the path
 * FAKE_CAMERA_KIND   mjpeg, yuyv, colours (YUYV, all frames the same), other (a format nobody reads), busy, nocapture,
 *                    nodevice, refused (may not be opened), huge, index (names a buffer that is none), long (states more
 *                    bytes than a buffer has), silent, unplug (in the middle of frame FAKE_CAMERA_FRAMES), cut (each
 *                    FAKE_CAMERA_EVERY-th frame is cut off)
 * FAKE_CAMERA_JPEGS  mjpeg: files "PREFIX0.jpg", "PREFIX1.jpg", … shown in turn
 * FAKE_CAMERA_MS     a new frame so often (20)
 *
 * A driver fills its buffers in the order in which it got them and stops when it has none: what waits then is old. Frame k
 * of YUYV is grey of brightness 16 + k % 200. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BUFFERS = 4, WIDTH = 64, HEIGHT = 48, BYTES = 1 << 18, OFFSET = 1 << 20 };

static int device = -1;
static int on, queue[BUFFERS], n_queue, done[BUFFERS], n_done, used[BUFFERS], sequence_of[BUFFERS], next_frame;
static double started, stamp_of[BUFFERS];
static unsigned char *memory;
static unsigned format;

static const char *kind(void) { return getenv("FAKE_CAMERA_KIND") ? getenv("FAKE_CAMERA_KIND") : "mjpeg"; }
static int is(const char *k) { return strcmp(kind(), k) == 0; }
static int number(const char *name, int otherwise) { return getenv(name) ? atoi(getenv(name)) : otherwise; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int is_jpeg(void) { return !is("yuyv") && !is("colours"); }

static void fill(int b, int frame) {
    unsigned char *to = memory + (size_t)b * BYTES;
    used[b] = WIDTH * HEIGHT * 2;
    if (!is_jpeg()) {
        for (int i = 0; i < WIDTH * HEIGHT; i++) {
            int x = i % WIDTH, chroma = x % 2 ? 240 - x / 2 * 5 : 16 + x / 2 * 7;
            to[2 * i] = (unsigned char)(is("colours") ? 60 + x * 2 + i / WIDTH : 16 + frame % 200);
            to[2 * i + 1] = (unsigned char)(is("colours") ? chroma : 128);
        }
        return;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s%d.jpg", getenv("FAKE_CAMERA_JPEGS"), frame % number("FAKE_CAMERA_PICTURES", 1));
    FILE *f = fopen(path, "rb");
    used[b] = f ? (int)fread(to, 1, BYTES, f) : 0;
    if (f) fclose(f);
    if (is("cut") && frame % number("FAKE_CAMERA_EVERY", 2) == 0) used[b] = frame % 4 == 0 ? 20 : 80;
    if (is("unplug") && frame == number("FAKE_CAMERA_FRAMES", 3) - 1) used[b] /= 2; /* in the middle of it */
}

/* What the driver did since the last look. */
static void go_on(void) {
    double step = number("FAKE_CAMERA_MS", 20) / 1e3;
    while (on && !is("silent") && started + next_frame * step <= now()) {
        int frame = next_frame++;
        if (n_queue == 0) continue; /* nowhere to put it */
        int b = queue[0];
        memmove(queue, queue + 1, sizeof(int) * (size_t)--n_queue);
        fill(b, frame);
        sequence_of[b] = frame;
        stamp_of[b] = started + frame * step;
        done[n_done++] = b;
    }
}

static int gone(void) { return is("unplug") && on && next_frame >= number("FAKE_CAMERA_FRAMES", 3); }

static int fail(int why) {
    errno = why;
    return -1;
}

static int set_format(struct v4l2_format *f) {
    unsigned asked = f->fmt.pix.pixelformat;
    format = is("other") ? V4L2_PIX_FMT_NV12 : !is_jpeg() ? V4L2_PIX_FMT_YUYV : V4L2_PIX_FMT_MJPEG;
    if (is("busy")) return fail(EBUSY);
    if (!is_jpeg() && asked == V4L2_PIX_FMT_JPEG) return fail(EINVAL); /* drivers differ: some refuse, some answer */
    f->fmt.pix.pixelformat = format;
    f->fmt.pix.width = is("huge") ? 1u << 30 : WIDTH;
    f->fmt.pix.height = is("huge") ? 1u << 30 : HEIGHT;
    f->fmt.pix.bytesperline = !is_jpeg() ? WIDTH * 2 : 0;
    return 0;
}

static int dequeue(struct v4l2_buffer *v) {
    if (gone()) return fail(ENODEV);
    if (n_done == 0) return fail(EAGAIN);
    int b = done[0];
    memmove(done, done + 1, sizeof(int) * (size_t)--n_done);
    v->index = is("index") ? 77 : (unsigned)b;
    v->bytesused = is("long") ? 0x7fffffffu : (unsigned)used[b];
    v->sequence = (unsigned)sequence_of[b];
    v->timestamp.tv_sec = (long)stamp_of[b];
    v->timestamp.tv_usec = (long)((stamp_of[b] - (double)(long)stamp_of[b]) * 1e6);
    return 0;
}

static int answer(unsigned long request, void *arg) {
    struct v4l2_buffer *b = arg;
    go_on();
    switch (request) {
    case VIDIOC_QUERYCAP:
        if (is("nodevice")) return fail(ENOTTY);
        memset(arg, 0, sizeof(struct v4l2_capability));
        ((struct v4l2_capability *)arg)->capabilities = V4L2_CAP_DEVICE_CAPS | V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
        ((struct v4l2_capability *)arg)->device_caps =
            is("nocapture") ? V4L2_CAP_META_CAPTURE : V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
        return 0;
    case VIDIOC_S_FMT:
        return set_format(arg);
    case VIDIOC_REQBUFS:
        ((struct v4l2_requestbuffers *)arg)->count = BUFFERS;
        return 0;
    case VIDIOC_QUERYBUF:
        b->length = BYTES;
        b->m.offset = OFFSET + b->index;
        return 0;
    case VIDIOC_QBUF:
        if (gone()) return fail(ENODEV);
        queue[n_queue++] = (int)b->index;
        return 0;
    case VIDIOC_DQBUF:
        return dequeue(b);
    case VIDIOC_STREAMON:
        on = 1;
        started = now();
        return 0;
    case VIDIOC_STREAMOFF:
        on = 0;
        return 0;
    default:
        return fail(EINVAL);
    }
}

/* ---- what the program calls ---- */

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int is_ours(const char *path) { return getenv("FAKE_CAMERA") && strcmp(path, getenv("FAKE_CAMERA")) == 0; }

static int open_ours(void) {
    if (is("refused")) return fail(EACCES);
    if (!memory) memory = calloc(BUFFERS, BYTES);
    int (*real_open)(const char *, int, ...) = (int (*)(const char *, int, ...))real("open");
    return device = real_open("/dev/null", O_RDWR | O_CLOEXEC);
}

int open(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    if (is_ours(path)) return open_ours();
    return ((int (*)(const char *, int, ...))real("open"))(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    if (is_ours(path)) return open_ours();
    return ((int (*)(const char *, int, ...))real("open64"))(path, flags, mode);
}

int ioctl(int fd, unsigned long request, ...) {
    va_list args;
    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    if (fd == device && fd >= 0) return answer(request, arg);
    return ((int (*)(int, unsigned long, ...))real("ioctl"))(fd, request, arg);
}

static void *map_ours(off_t offset) { return memory + (size_t)(offset - OFFSET) * BYTES; }

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) {
    if (fd == device && fd >= 0) return map_ours(offset);
    return ((void *(*)(void *, size_t, int, int, int, off_t))real("mmap"))(at, n, prot, flags, fd, offset);
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset) {
    if (fd == device && fd >= 0) return map_ours(offset);
    return ((void *(*)(void *, size_t, int, int, int, off64_t))real("mmap64"))(at, n, prot, flags, fd, offset);
}

int munmap(void *at, size_t n) {
    unsigned char *p = at;
    if (memory && p >= memory && p < memory + (size_t)BUFFERS * BYTES) return 0;
    return ((int (*)(void *, size_t))real("munmap"))(at, n);
}

int poll(struct pollfd *fds, nfds_t n, int timeout) {
    int (*real_poll)(struct pollfd *, nfds_t, int) = (int (*)(struct pollfd *, nfds_t, int))real("poll");
    if (n != 1 || fds[0].fd != device || device < 0) return real_poll(fds, n, timeout);
    double until = now() + timeout / 1e3;
    for (;;) {
        go_on();
        fds[0].revents = (short)(gone() ? POLLERR | POLLIN : n_done ? POLLIN : 0);
        if (fds[0].revents) return 1;
        if (timeout >= 0 && now() > until) return 0;
        real_poll(NULL, 0, 2);
    }
}

int close(int fd) {
    if (fd == device && fd >= 0) device = -1, on = 0, n_queue = n_done = 0;
    return ((int (*)(int))real("close"))(fd);
}
