/* os_linux.c - the only file of base that knows the kernel is Linux.
 *
 * Control groups: version 2 grants "quota period" in cpu.max of every folder
 * from the process's own up to the root, version 1 in cpu.cfs_quota_us and
 * cpu.cfs_period_us below the mount of the cpu controller. The least wins.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

static struct timespec
timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

/* ---- futex -------------------------------------------------------------- */

br_futex_end
br_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
    struct timespec t = timespec_of(BR_MAX(timeout_ns, (int64_t)0));
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected,
                      timeout_ns < 0 ? NULL : &t, NULL, 0);

    if (rc == 0 || errno == EINTR)
        return BR_FUTEX_WOKEN;
    if (errno == ETIMEDOUT)
        return BR_FUTEX_TIMEOUT;
    br_check(errno == EAGAIN && "a futex is an aligned word of ours");
    return BR_FUTEX_CHANGED;
}

void
br_futex_wake(_Atomic uint32_t *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* ---- clocks ------------------------------------------------------------- */

static int64_t
clock_ns(clockid_t id)
{
    struct timespec t;
    int rc = clock_gettime(id, &t);

    br_check(rc == 0);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t
br_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t
br_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

int64_t
br_thread_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static br_once thread_clock = BR_ONCE;
static bool thread_clock_is_fine;

/* By how often it is another: a clock of the kernel's ticks moves twice here. */
static void
look_at_thread_clock(void)
{
    enum { LOOK_NS = 2000000, MOVES = 100 };
    int64_t end = br_now_ns() + LOOK_NS, last = br_thread_ns();
    int moved = 0;

    do {
        int64_t t = br_thread_ns();

        moved += t != last;
        last = t;
    } while (br_now_ns() < end && moved < MOVES);
    thread_clock_is_fine = moved >= MOVES;
}

bool
br_thread_ns_is_fine(void)
{
    br_once_run(&thread_clock, look_at_thread_clock);
    return thread_clock_is_fine;
}

void
br_sleep_ns(int64_t ns)
{
    struct timespec t = timespec_of(BR_MAX(ns, (int64_t)0));

    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
        ;
}

/* ---- random, names ------------------------------------------------------ */

void
br_os_random(void *p, size_t n)
{
    char *at = p;

    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);

        if (got < 0 && errno == EINTR)
            continue;
        br_check(got > 0 && "the kernel has random bytes");
        at += got;
        n -= (size_t)got;
    }
}

uint32_t
br_os_thread_id(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

void
br_os_thread_name(const char *name)
{
    char cut[16];

    snprintf(cut, sizeof cut, "%s", name);
    pthread_setname_np(pthread_self(), cut);
}

/* The kernel's, which the C library has no header for. */
typedef struct sched_words {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period; /* ns */
} sched_words;

bool
br_os_thread_soon(void)
{
    sched_words w = {.size = sizeof w};

    if (syscall(SYS_sched_getattr, 0, &w, sizeof w, 0) != 0 ||
        w.policy != SCHED_OTHER)
        return false;
    w.runtime = BR_OS_SOON_NS;
    w.nice -= BR_OS_SOON_NICE;
    if (syscall(SYS_sched_setattr, 0, &w, 0) == 0)
        return true;
    w.nice += BR_OS_SOON_NICE; /* that takes a right */
    return syscall(SYS_sched_setattr, 0, &w, 0) == 0;
}

void
br_os_thread_later(void)
{
    sched_words w = {.size = sizeof w};

    if (syscall(SYS_sched_getattr, 0, &w, sizeof w, 0) != 0 ||
        w.policy != SCHED_OTHER)
        return; /* whoever asked for that knows why */
    w.nice = 19;
    (void)syscall(SYS_sched_setattr, 0, &w, 0);
}

/* ---- processors --------------------------------------------------------- */

bool
br_os_allowed(br_os_cpuset *set)
{
    *set = (br_os_cpuset){0};
    return sched_getaffinity(0, sizeof set->bits, (void *)set->bits) == 0;
}

int
br_os_cpus(int *out, int max)
{
    br_os_cpuset set;
    int n = 0;

    if (!br_os_allowed(&set)) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);

        for (; n < online; n++)
            if (n < max)
                out[n] = n;
        return n;
    }
    for (int cpu = 0; cpu < BR_OS_MAX_CPUS; cpu++) {
        if (!br_os_has(&set, cpu))
            continue;
        if (n < max)
            out[n] = cpu;
        n++;
    }
    return n;
}

bool
br_os_run_on(const br_os_cpuset *set)
{
    br_os_cpuset mine;
    uint64_t any = 0;

    if (!br_os_allowed(&mine))
        return false;
    for (size_t i = 0; i < BR_COUNT(mine.bits); i++)
        any |= mine.bits[i] &= set->bits[i];
    return any &&
           sched_setaffinity(0, sizeof mine.bits, (void *)mine.bits) == 0;
}

enum { INTERLEAVE = 3 }; /* MPOL_INTERLEAVE of libnuma's header */

bool
br_os_interleave(void *p, size_t n, uint64_t nodes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t head = (page - (uintptr_t)p % page) % page;
    size_t whole = n > head ? (n - head) / page * page : 0;

    /* The kernel reads one bit less than it is told. */
    return whole == 0 || syscall(SYS_mbind, (uint8_t *)p + head, whole,
                                 INTERLEAVE, &nodes, 65, 0) == 0;
}

bool
br_os_read(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    out[0] = 0;
    if (fd < 0)
        return false;
    while (n < size - 1) {
        ssize_t got = read(fd, out + n, size - 1 - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    out[n] = 0;
    close(fd);
    return true;
}

/* Both in microseconds, rounded up to whole processors; 0: no limit ("max",
 * "-1", or a text that is no number) */
static int
quota_of(const char *quota, const char *period)
{
    long long q = strtoll(quota, NULL, 10), p = strtoll(period, NULL, 10);

    if (q <= 0 || p <= 0)
        return 0;
    return (int)BR_MIN(q / p + (q % p != 0), (long long)INT_MAX);
}

/* The quota written in one folder: one file "150000 100000", or two. */
static int
folder_quota(const char *folder, bool v1)
{
    char path[PATH_MAX + 32], quota[64], period[64];

    if (v1) {
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        br_os_read(path, period, sizeof period);
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        br_os_read(path, quota, sizeof quota);
        return quota_of(quota, period);
    }
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    br_os_read(path, quota, sizeof quota);
    return quota_of(quota, quota + strcspn(quota, " "));
}

/* The least quota from mount/group up to mount. */
static int
least_quota(const char *mount, br_text group, bool v1)
{
    char path[PATH_MAX];
    size_t top = strlen(mount);
    int least = 0;

    if (snprintf(path, sizeof path, "%s%.*s", mount, (int)group.n, group.p) >=
        (int)sizeof path)
        return 0;
    for (;;) {
        int n = folder_quota(path, v1);
        char *slash = strrchr(path, '/');

        if (n > 0 && (least == 0 || n < least))
            least = n;
        if (!slash || (size_t)(slash - path) < top)
            return least;
        *slash = 0;
    }
}

static bool
has_word(br_text list, const char *word)
{
    while (list.n > 0) {
        const char *comma = memchr(list.p, ',', list.n);
        size_t n = comma ? (size_t)(comma - list.p) : list.n;

        if (br_text_is((br_text){list.p, n}, word))
            return true;
        n += comma != NULL;
        list = (br_text){list.p + n, list.n - n};
    }
    return false;
}

/* The quota of one line: "0::/user.slice/x" (version 2), "4:cpu,cpuacct:/x"
 * (version 1; the controllers are mounted under their names). */
static int
line_quota(const char *root, br_text line)
{
    const char *a = memchr(line.p, ':', line.n);
    const char *b =
        a ? memchr(a + 1, ':', (size_t)(line.p + line.n - a - 1)) : NULL;
    char mount[PATH_MAX];
    br_text names, group;

    if (!b)
        return 0;
    names = (br_text){a + 1, (size_t)(b - a - 1)};
    group = (br_text){b + 1, (size_t)(line.p + line.n - b - 1)};
    if (names.n == 0)
        return least_quota(root, group, false);
    if (!has_word(names, "cpu"))
        return 0;
    snprintf(mount, sizeof mount, "%s/cpu", root);
    return least_quota(mount, group, true);
}

int
br_os_cpu_quota(const char *root, const char *self)
{
    int least = 0;

    while (*self) {
        size_t n = strcspn(self, "\n");
        int q = line_quota(root, (br_text){self, n});

        if (q > 0 && (least == 0 || q < least))
            least = q;
        self += n + (self[n] == '\n');
    }
    return least;
}

/* ---- zeros ---------------------------------------------------------------- */

void
br_os_zero(void *p, size_t n)
{
    uint8_t *at = p;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t head = (page - (uintptr_t)p % page) % page;
    size_t whole = n > head ? (n - head) / page * page : 0;

    if (whole == 0 || madvise(at + head, whole, MADV_DONTNEED) != 0) {
        memset(at, 0, n);
        return;
    }
    (void)madvise(at + head, whole, MADV_HUGEPAGE); /* a kernel may lack it */
    memset(at, 0, head);
    memset(at + head + whole, 0, n - head - whole);
}

enum { POPULATE_WRITE = 23 }; /* older headers lack its name */

bool
br_os_touch(void *p, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t head = (page - (uintptr_t)p % page) % page;
    size_t whole = n > head ? (n - head) / page * page : 0;

    return whole == 0 ||
           madvise((uint8_t *)p + head, whole, POPULATE_WRITE) == 0;
}

/* ---- code ----------------------------------------------------------------- */

uint8_t *
br_os_code_new(const void *p, size_t n)
{
    void *at = mmap(NULL, n, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return NULL;
    memcpy(at, p, n);
    if (mprotect(at, n, PROT_READ | PROT_EXEC) == 0)
        return at;
    munmap(at, n);
    return NULL;
}

void
br_os_code_free(uint8_t *code, size_t n)
{
    if (code)
        munmap(code, n);
}
