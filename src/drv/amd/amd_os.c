/* amd_os.c - the table of amd_os.h over the kernel that is there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/amd/amd_os.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int
real_open(void *ctx, const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    (void)ctx;
    return fd < 0 ? -errno : fd;
}

static void
real_close(void *ctx, int fd)
{
    (void)ctx;
    close(fd);
}

static int
real_ioctl(void *ctx, int fd, unsigned long request, void *arg)
{
    int r;

    (void)ctx;
    do
        r = ioctl(fd, request, arg);
    while (r < 0 && (errno == EINTR || errno == EAGAIN));
    return r < 0 ? -errno : 0;
}

static int
real_map(void *ctx, int fd, void **at, uint64_t bytes, uint64_t offset)
{
    void *p = mmap(*at, bytes, PROT_READ | PROT_WRITE,
                   MAP_SHARED | (*at ? MAP_FIXED : 0), fd, (off_t)offset);

    (void)ctx;
    if (p == MAP_FAILED)
        return -errno;
    *at = p;
    return 0;
}

static void
real_unmap(void *ctx, void *p, uint64_t bytes)
{
    (void)ctx;
    munmap(p, bytes);
}

static int
real_read(void *ctx, const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    (void)ctx;
    if (fd < 0)
        return -errno;
    n = read(fd, out, size - 1);
    out[n > 0 ? n : 0] = 0;
    n = n < 0 ? -errno : n;
    close(fd);
    return (int)n;
}

const br_amd_os br_amd_os_real = {.open = real_open,
                                  .close = real_close,
                                  .ioctl = real_ioctl,
                                  .map = real_map,
                                  .unmap = real_unmap,
                                  .read = real_read};

void *
br_amd_reserve(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void
br_amd_unreserve(void *p, uint64_t bytes)
{
    munmap(p, bytes);
}
