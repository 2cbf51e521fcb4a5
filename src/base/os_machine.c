/* os_machine.c - what processes of one machine share: its memory, its devices.
 *
 * A lock is flock(2) on a file that stays: the kernel lets go of it when the
 * last descriptor is closed, so no kill can leave it behind, and the number in
 * the file is only there to say who has it.
 *
 *   device lock   /run/lock/brass-cuda-0.lock, for every user of the machine
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- memory -------------------------------------------------------------- */

/* "MemAvailable:   123 kB" in bytes; 0: not told. */
static uint64_t
meminfo(const char *text, const char *key)
{
    const char *p = strstr(text, key);

    return p ? strtoull(p + strlen(key), NULL, 10) << 10 : 0;
}

static bool
group_number(const char *file, uint64_t *out)
{
    char path[64], text[32], *end;

    snprintf(path, sizeof path, "/sys/fs/cgroup/%s", file);
    if (!br_os_read(path, text, sizeof text))
        return false;
    *out = strtoull(text, &end, 10);
    return end != text; /* "max": no limit */
}

void
br_os_memory(uint64_t *total, uint64_t *left)
{
    char text[4096];
    uint64_t most, used;

    br_os_read("/proc/meminfo", text, sizeof text);
    *total = meminfo(text, "MemTotal:");
    *left = meminfo(text, "MemAvailable:");
    /* The root of what we see: in a container its own group. */
    if (!group_number("memory.max", &most) || most >= *total)
        return;
    *total = most;
    if (group_number("memory.current", &used))
        *left = BR_MIN(*left, most > used ? most - used : 0);
}

/* ---- locks --------------------------------------------------------------- */

/* A folder like /tmp refuses O_CREAT on a file of somebody else's, and the
 * lock needs no right to write. */
static int
open_lock(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);

    if (fd < 0 && errno == EACCES)
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd;
}

static void
sign(int fd)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());

    (void)fchmod(fd, 0666); /* whatever the umask: the next may be another */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
        return; /* the lock holds without a name */
}

br_code
br_os_lock_take(br_os_lock *l, const char *path, br_status *st)
{
    char holder[24] = "";
    int err;

    l->fd = open_lock(path);
    if (l->fd < 0)
        return br_fail(st, BR_E_IO, "%s: cannot open the lock: %s", path,
                       strerror(errno));
    if (flock(l->fd, LOCK_EX | LOCK_NB) == 0) {
        sign(l->fd);
        return BR_OK;
    }
    err = errno;
    br_os_lock_drop(l);
    if (err != EWOULDBLOCK)
        return br_fail(st, BR_E_IO, "%s: cannot lock: %s", path, strerror(err));
    br_os_read(path, holder, sizeof holder);
    holder[strspn(holder, "0123456789")] = 0;
    return br_fail(st, BR_E_NO_DEVICE, "%s: in use by process %s", path,
                   *holder ? holder : "unknown");
}

br_code
br_os_lock_device(br_os_lock *l, const char *device, br_status *st)
{
    char path[128];
    const char *dir = access("/run/lock", W_OK) == 0 ? "/run/lock" : "/tmp";

    snprintf(path, sizeof path, "%s/brass-%s.lock", dir, device);
    if (br_os_lock_take(l, path, st) != BR_OK)
        return br_prefix(st, "%s", device);
    return BR_OK;
}

void
br_os_lock_drop(br_os_lock *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}
