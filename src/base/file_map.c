/* file_map.c - a file as memory, read, or written where it is new.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What an empty file maps to: there is no mapping of no bytes. */
static const uint8_t nothing[1];

static br_code
fail(const char *path, int err, br_status *st)
{
    br_code code = err == ENOENT || err == ENOTDIR  ? BR_E_NOT_FOUND
                   : err == ENOMEM                  ? BR_E_OOM
                   : err == EISDIR || err == ESPIPE ? BR_E_FORMAT
                                                    : BR_E_IO;

    br_fail(st, code, "%s: cannot map: %s", path,
            err == ESPIPE ? "it is a pipe or device, not a file on disk"
                          : strerror(err));
    if (st && st->sys == 0)
        st->sys = err;
    return code;
}

/* The size of a regular file, or -1 with errno. */
static off_t
look(int fd, br_file_map *m)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return -1;
    m->device = (uint64_t)info.st_dev;
    m->inode = (uint64_t)info.st_ino;
    m->written_ns =
        (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    if (S_ISREG(info.st_mode))
        return info.st_size;
    errno = S_ISDIR(info.st_mode) ? EISDIR : ESPIPE;
    return -1;
}

br_code
br_file_map_open(br_file_map *m, const char *path, br_status *st)
{
    /* O_NONBLOCK: a pipe would wait here for somebody to write to it */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    br_code code = BR_OK;
    off_t n;
    void *p;

    *m = (br_file_map){.p = nothing};
    if (fd < 0)
        return fail(path, errno, st);
    n = look(fd, m);
    if (n < 0) {
        code = fail(path, errno, st);
    } else if ((uintmax_t)n > SIZE_MAX) {
        code = fail(path, EOVERFLOW, st);
    } else if (n > 0) {
        p = mmap(NULL, (size_t)n, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            code = fail(path, errno, st);
        } else {
            m->p = p;
            m->n = (size_t)n;
        }
    }
    close(fd);
    return code;
}

void
br_file_map_close(br_file_map *m)
{
    if (m->n > 0)
        munmap((void *)(uintptr_t)m->p, m->n);
    *m = (br_file_map){.p = nothing};
}

void
br_file_map_forget(const br_file_map *m)
{
    if (m->n > 0)
        (void)madvise((void *)(uintptr_t)m->p, m->n, MADV_DONTNEED);
}

bool
br_file_map_is(const br_file_map *m, const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && (uint64_t)info.st_dev == m->device &&
           (uint64_t)info.st_ino == m->inode;
}

br_code
br_out_map(br_out *o, size_t n, uint8_t **p, br_status *st)
{
    void *m = MAP_FAILED;

    /* Room now: a full disk met by a store would be a SIGBUS. */
    if (fallocate(o->fd, 0, 0, (off_t)n) == 0)
        m = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, o->fd, 0);
    if (m == MAP_FAILED)
        return fail(o->path.at, errno, st);
    /* Touched out of order, pages of a file are small ones, and a start that maps
     * 2 GB of them takes .3 s longer. */
    (void)madvise(m, n, MADV_HUGEPAGE);
    o->mapped = true;
    *p = m;
    return BR_OK;
}

br_code
br_out_look(const br_out *o, uint8_t **p, size_t *n, br_status *st)
{
    struct stat info;
    void *m = MAP_FAILED;

    *p = NULL;
    *n = 0;
    if (o->in_place)
        return BR_OK;
    if (fstat(o->fd, &info) == 0 && info.st_size > 0)
        m = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, o->fd, 0);
    if (m == MAP_FAILED)
        return fail(o->path.at, errno, st);
    *p = m;
    *n = (size_t)info.st_size;
    return BR_OK;
}

void
br_file_unmap(uint8_t *p, size_t n)
{
    munmap(p, n);
}

bool
br_file_settle(const char *path, size_t mark, const _Atomic bool *stop)
{
    enum { PIECE = 8 << 20 }; /* what stop may have to wait for */
    unsigned how = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                   SYNC_FILE_RANGE_WAIT_AFTER;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t n = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    bool ok = n > (off_t)mark;

    for (off_t at = 0; ok && at < n; at += PIECE)
        ok = !br_is_told(stop) && sync_file_range(fd, at, PIECE, how) == 0;
    ok = ok && fdatasync(fd) == 0 &&
         pwrite(fd, &(char){1}, 1, (off_t)mark) == 1 && fdatasync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}
