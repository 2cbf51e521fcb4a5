/* file.c - whole files: read into memory, replaced in one step.
 *
 * A write goes to a new file in the same folder, is synced and renamed over
 * the target, so a crash or a full disk leaves the old file or the new one.
 * Where the file system can, the new file has no name until it is whole: who
 * interrupts a command that writes gigabytes finds none of them left. Elsewhere
 * (NFS, FUSE) the next write to that folder removes what a killed one left:
 * whoever writes one has it locked, on whichever machine.
 * What is not a regular file (a device, a pipe) is written in place: renaming
 * over /dev/null would replace the device. So is /dev/stdout, whatever it is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_READ = 64 << 10 };

static br_code
fail_errno(br_status *st, const char *verb, const char *path, int err)
{
    br_code code = err == ENOENT || err == ENOTDIR ? BR_E_NOT_FOUND : BR_E_IO;
    bool first = st && st->code == BR_OK;

    br_fail(st, code, "%s: cannot %s: %s", path, verb, strerror(err));
    if (first)
        st->sys = err;
    return code;
}

/* Reads to the end of fd into *out, which grows; one byte more than the limit
 * is asked for, so that a file of exactly max_bytes passes. */
static br_code
read_all(int fd, const char *path, size_t max_bytes, br_str *s, br_status *st)
{
    for (;;) {
        size_t room = s->cap - s->n - 1;
        ssize_t got = read(fd, s->at + s->n, room);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(st, "read", path, errno);
        if (got == 0)
            return BR_OK;
        s->n += (size_t)got;
        if (s->n > max_bytes)
            return br_fail(st, BR_E_LIMIT, "%s: more than %zu bytes", path,
                           max_bytes);
        if (s->n + 1 == s->cap) {
            size_t cap;
            char *p;

            if (__builtin_mul_overflow(s->cap, 2, &cap) ||
                !(p = br_try_realloc(s->at, cap)))
                return br_fail(st, BR_E_OOM,
                               "%s: out of memory after %zu bytes", path, s->n);
            s->at = p;
            s->cap = cap;
        }
    }
}

static br_code
read_fd(int fd, const char *path, size_t max_bytes, br_str *s, br_status *st)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return fail_errno(st, "read", path, errno);
    if (S_ISDIR(info.st_mode)) /* a wrong file, not a failing disk */
        return br_fail(st, BR_E_FORMAT, "%s: cannot read: %s", path,
                       strerror(EISDIR));
    s->cap = FIRST_READ;
    if (S_ISREG(info.st_mode) && info.st_size > 0) {
        if ((uintmax_t)info.st_size > max_bytes)
            return br_fail(st, BR_E_LIMIT, "%s: %jd bytes, the limit is %zu",
                           path, (intmax_t)info.st_size, max_bytes);
        /* +1 for the NUL, +1 so that the end is seen without growing. */
        s->cap = (size_t)info.st_size + 2;
    }
    s->at = br_try_alloc(s->cap);
    if (!s->at)
        return br_fail(st, BR_E_OOM, "%s: out of memory for %zu bytes", path,
                       s->cap);
    return read_all(fd, path, max_bytes, s, st);
}

static br_code
read_whole(int fd, const char *path, size_t max_bytes, char **out, size_t *n,
           br_status *st)
{
    br_str s = {0};
    br_code code;

    *out = NULL;
    *n = 0;
    if (fd < 0)
        return fail_errno(st, "open", path, errno);
    code = read_fd(fd, path, max_bytes, &s, st);
    if (code != BR_OK) {
        br_str_fini(&s);
        return code;
    }
    s.at[s.n] = 0;
    *out = s.at;
    *n = s.n;
    return BR_OK;
}

br_code
br_file_read(const char *path, size_t max_bytes, char **out, size_t *n,
             br_status *st)
{
    bool std_in = strcmp(path, "-") == 0;
    int fd = std_in ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    br_code code =
        read_whole(fd, std_in ? "standard input" : path, max_bytes, out, n, st);

    if (!std_in && fd >= 0)
        close(fd);
    return code;
}

br_code
br_file_read_disk(const char *path, size_t max_bytes, char **out, size_t *n,
                  br_status *st)
{
    /* O_NONBLOCK: a pipe would wait here for somebody to write to it */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    br_code code;

    *out = NULL;
    *n = 0;
    if (fd >= 0 && fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) &&
        !S_ISDIR(info.st_mode))
        code = br_fail(
            st, BR_E_FORMAT,
            "%s: cannot read: it is a pipe or device, not a file on disk",
            path);
    else
        code = read_whole(fd, path, max_bytes, out, n, st);
    if (fd >= 0)
        close(fd);
    return code;
}

/* ---- writing ------------------------------------------------------------ */

static int
folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (int)(slash + 1 - path) : 0;
}

/* Where a file without a name can be found to give it one. */
static void
path_of(int fd, char out[32])
{
    snprintf(out, 32, "/proc/self/fd/%d", fd);
}

/* A file in the target's folder that has no name yet; -1: not there. */
static int
open_nameless(br_str *scratch, const char *path, mode_t mode)
{
    int n = folder_length(path), fd;
    char self[32];

    br_str_printf(scratch, "%.*s", n ? n : 1, n ? path : ".");
    if (scratch->oom)
        return -1;
    fd = open(scratch->at, O_RDWR | O_TMPFILE | O_CLOEXEC, mode);
    br_str_clear(scratch);
    path_of(fd, self);
    if (fd < 0 || access(self, F_OK) == 0)
        return fd;
    close(fd); /* without /proc it would never get a name */
    return -1;
}

/* A new file FOLDER/.brass-PID-N.tmp, its name in *name: made, or the name
 * given to the file fd, which has none. The name does not contain the
 * target's, which may be as long as names get. */
static int
name_beside(br_str *name, const char *path, int fd, mode_t mode)
{
    char self[32];
    int i, rc;

    path_of(fd, self);
    for (i = 0; i < 100; i++) {
        br_str_clear(name);
        br_str_printf(name, "%.*s.brass-%ld-%d.tmp", folder_length(path), path,
                      (long)getpid(), i);
        if (name->oom) {
            errno = ENOMEM;
            return -1;
        }
        rc =
            fd < 0
                ? open(name->at, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode)
                : linkat(AT_FDCWD, self, AT_FDCWD, name->at, AT_SYMLINK_FOLLOW);
        if (rc >= 0 || errno != EEXIST)
            return rc;
    }
    return -1;
}

/* Files of processes that are gone, on this machine and any other. */
static void
sweep(const char *folder)
{
    DIR *d = opendir(folder);

    for (struct dirent *e; d && (e = readdir(d));) {
        int fd = -1;

        if (br_out_is_left_over(e->d_name))
            fd = openat(dirfd(d), e->d_name,
                        O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)unlinkat(dirfd(d), e->d_name, 0);
        if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
}

static int
open_beside(br_str *name, const char *path, mode_t mode)
{
    int fd = open_nameless(name, path, mode), n = folder_length(path);

    if (fd < 0 && !name->oom) {
        br_str_printf(name, "%.*s", n ? n : 1, n ? path : ".");
        if (!name->oom)
            sweep(name->at);
        fd = name_beside(name, path, -1, mode);
    }
    if (fd >= 0)
        (void)flock(fd, LOCK_EX | LOCK_NB);
    return fd;
}

/* False: somebody writes it (EWOULDBLOCK), or it is no file. */
static bool
remove_left(const char *part)
{
    int fd = open(part, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat is, there;

    if (fd < 0)
        return errno == ENOENT;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        errno = EWOULDBLOCK;
        return false;
    }
    /* Whoever wrote it may have given it its own name meanwhile. */
    if (fstat(fd, &is) == 0 && lstat(part, &there) == 0 &&
        S_ISREG(is.st_mode) && is.st_ino == there.st_ino)
        (void)unlink(part);
    close(fd);
    errno = EEXIST;
    return S_ISREG(is.st_mode);
}

static int
open_part(br_str *name, const char *path)
{
    br_str_printf(name, "%s.part", path);
    for (int i = 0; !name->oom && i < 100; i++) {
        int fd = open(name->at, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (fd < 0 && (errno != EEXIST || !remove_left(name->at)))
            return -1;
        if (fd >= 0 &&
            (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static br_code
begin_beside(br_out *o, const char *path, bool exists, mode_t mode,
             br_status *st)
{
    char real[PATH_MAX];
    br_code code;

    /* Through a symbolic link: the file it names is replaced, not the link. */
    if (exists && realpath(path, real))
        path = real;
    br_str_puts(&o->path, path);
    /* A file keeps its mode, and is never readable by more on the way. */
    o->mode = exists ? (int)(mode & 0777) : -1;
    if (!o->path.oom)
        o->fd = o->part ? open_part(&o->temp, path)
                        : open_beside(&o->temp, path, exists ? 0600 : 0644);
    if (o->fd >= 0)
        return BR_OK;
    if (o->path.oom || o->temp.oom)
        return br_fail(st, BR_E_OOM, "%s: out of memory", path);
    if (!o->part)
        code = fail_errno(st, "create a file beside", path, errno);
    else if (errno == EWOULDBLOCK)
        code =
            br_fail(st, BR_E_BUSY, "%s: another process writes it", o->temp.at);
    else
        code = fail_errno(st, "create", o->temp.at, errno);
    br_str_clear(&o->temp); /* the name is somebody else's */
    return code;
}

/* The N of /dev/fd/N and /proc/self/fd/N, or -1. */
static int
fd_named(const char *path)
{
    static const char *const folders[] = {"/proc/self/fd/", "/dev/fd/"};

    for (size_t i = 0; i < BR_COUNT(folders); i++) {
        size_t skip = strlen(folders[i]), n;

        if (strncmp(path, folders[i], skip) != 0)
            continue;
        n = strspn(path + skip, "0123456789");
        if (n > 0 && n < 9 && !path[skip + n])
            return (int)strtol(path + skip, NULL, 10);
    }
    return -1;
}

/* The same of a link to one, as /dev/stdout is. */
static int
own_fd(const char *path)
{
    enum { LINKS = 8 };
    int fd = fd_named(path);
    char a[PATH_MAX], b[PATH_MAX];

    for (int i = 0; fd < 0 && i < LINKS; i++) {
        char *to = i % 2 ? a : b;
        ssize_t n = readlink(i == 0 ? path : i % 2 ? b : a, to, PATH_MAX - 1);

        if (n < 1)
            return -1;
        to[n] = 0;
        fd = fd_named(to);
    }
    return fd;
}

/* What this process has open itself goes on where it is: a file there may hold
 * more than what comes now, have no name any more, or be none (a socket). */
static br_code
begin_own(br_out *o, int fd, const char *path, br_status *st)
{
    int flags = fcntl(fd, F_GETFL);

    br_str_puts(&o->path, path);
    o->in_place = true;
    if (o->path.oom)
        return br_fail(st, BR_E_OOM, "%s: out of memory", path);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return fail_errno(st, "write", path, EBADF);
    o->fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return o->fd < 0 ? fail_errno(st, "open", path, errno) : BR_OK;
}

static br_code
begin(br_out *o, const char *path, bool part, br_status *st)
{
    struct stat old;
    bool exists = stat(path, &old) == 0;
    int own = own_fd(path);
    br_code code;

    *o = (br_out){.fd = -1, .part = part};
    if (own < 0 && exists && S_ISDIR(old.st_mode))
        return fail_errno(st, "write", path, EISDIR);
    if (own >= 0) {
        code = begin_own(o, own, path, st);
    } else if (exists && !S_ISREG(old.st_mode)) {
        br_str_puts(&o->path, path);
        o->in_place = true;
        o->fd = open(path, O_WRONLY | O_CLOEXEC);
        code = o->path.oom ? br_fail(st, BR_E_OOM, "%s: out of memory", path)
               : o->fd < 0 ? fail_errno(st, "open", path, errno)
                           : BR_OK;
    } else {
        code = begin_beside(o, path, exists, exists ? old.st_mode : 0, st);
    }
    if (code != BR_OK)
        br_out_drop(o);
    return code;
}

br_code
br_out_begin(br_out *o, const char *path, br_status *st)
{
    return begin(o, path, false, st);
}

br_code
br_out_begin_part(br_out *o, const char *path, br_status *st)
{
    return begin(o, path, true, st);
}

br_code
br_out_put(br_out *o, const void *data, size_t n, br_status *st)
{
    const char *p = data;

    while (n > 0) {
        ssize_t put = write(o->fd, p, n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail_errno(st, "write", o->path.at, errno);
        p += put;
        n -= (size_t)put;
    }
    return BR_OK;
}

/* Not between its two names: a signal waits for so long. */
static void
hold_signals(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

br_code
br_out_end(br_out *o, br_status *st)
{
    const char *path = o->path.at;
    int lock = o->part ? dup(o->fd) : -1; /* until it is renamed */
    br_code code = BR_OK;
    sigset_t before;

    if (o->mode >= 0 && !o->in_place && fchmod(o->fd, (mode_t)o->mode) != 0)
        code = fail_errno(st, "set the mode", path, errno);
    if (code == BR_OK && !o->in_place && !o->mapped && fsync(o->fd) != 0)
        code = fail_errno(st, "sync", path, errno);
    hold_signals(&before);
    if (code == BR_OK && !o->in_place && o->temp.n == 0 &&
        name_beside(&o->temp, path, o->fd, 0) < 0) {
        code = o->temp.oom
                   ? br_fail(st, BR_E_OOM, "%s: out of memory", path)
                   : fail_errno(st, "create a file beside", path, errno);
        br_str_clear(&o->temp); /* the name is somebody else's */
    }
    if (close(o->fd) != 0 && code == BR_OK)
        code = fail_errno(st, "write", path, errno);
    o->fd = -1;
    if (code == BR_OK && !o->in_place && rename(o->temp.at, path) != 0)
        code = fail_errno(st, "replace", path, errno);
    if (lock >= 0)
        close(lock);
    if (code == BR_OK || o->part)
        br_str_clear(&o->temp); /* nothing left to remove */
    br_out_drop(o);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

void
br_out_drop(br_out *o)
{
    if (o->fd >= 0)
        close(o->fd);
    if (o->temp.n > 0 && !o->temp.oom)
        unlink(o->temp.at);
    br_str_fini(&o->temp);
    br_str_fini(&o->path);
    o->fd = -1;
}

void
br_out_leave(br_out *o)
{
    if (o->part)
        br_str_clear(&o->temp);
    br_out_drop(o);
}

br_code
br_file_write(const char *path, const void *p, size_t n, br_status *st)
{
    br_out o;
    br_code code;

    BR_TRY(br_out_begin(&o, path, st));
    code = br_out_put(&o, p, n, st);
    if (code == BR_OK)
        return br_out_end(&o, st);
    br_out_drop(&o);
    return code;
}
