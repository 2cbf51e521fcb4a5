/* thread.h - threads, sleeping and waking, clocks, processors.
 *
 * Between threads Brass shares C11 atomics, and each of them says beside its
 * order who its partner is. What is here is how to start a thread, how to
 * sleep until a word of memory changes (futex), and how to wait for a
 * condition without losing a wake-up (br_event). br_mutex is for cold paths.
 *
 * thread.c is portable; what needs the kernel is in os_linux.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_THREAD_H
#define BR_THREAD_H

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- threads ------------------------------------------------------------- */

typedef struct br_thread {
    pthread_t id;
    void (*fn)(void *arg);
    void *arg;
    char name[16]; /* the kernel's limit; longer names are cut */
} br_thread;

/* The struct stays where it is until br_thread_join. SIGINT, SIGTERM and SIGHUP
 * are not for the thread: who blocks them in its own holds them back for all. */
br_code br_thread_start(br_thread *t, const char *name, void (*fn)(void *arg),
                        void *arg, br_status *st) BR_MUST_USE;
void br_thread_join(br_thread *t);
void br_thread_yield(void);
/* Eases the other hyperthread while this one polls. */
void br_cpu_relax(void);

/* Whether another thread or a signal handler has set it; nothing else is told by
 * it. NULL: nobody ever does. */
bool br_is_told(const _Atomic bool *flag);

/* ---- mutex, once ----------------------------------------------------------*/

typedef struct br_mutex {
    pthread_mutex_t m;
} br_mutex;
#define BR_MUTEX                  \
    {                             \
        PTHREAD_MUTEX_INITIALIZER \
    }
void br_mutex_lock(br_mutex *m);
void br_mutex_unlock(br_mutex *m);

typedef struct br_once {
    pthread_once_t o;
} br_once;
#define BR_ONCE           \
    {                     \
        PTHREAD_ONCE_INIT \
    }
/* Runs fn in the first call; returns after it has run, in every thread. */
void br_once_run(br_once *o, void (*fn)(void));

/* ---- event: wait for a condition that others make true ------------------- */

/* Whoever makes a condition true calls br_event_signal after it; whoever needs
 * it calls br_event_await with a function that looks. No wake-up is lost: see
 * the proof in thread.c. A signal nobody waits for costs one atomic addition
 * and one load, no system call. Zero-initialise. Any number of threads. */
typedef struct br_event {
    _Atomic uint32_t epoch;   /* goes up by one with every signal */
    _Atomic uint32_t waiters; /* between br_event_prepare and its end */
} br_event;

void br_event_signal(br_event *e);
/* Looks `spins` times, then sleeps between looks. False: timeout_ns passed and
 * the condition was still false; negative: no timeout. */
bool br_event_await(br_event *e, bool (*ready)(void *arg), void *arg, int spins,
                    int64_t timeout_ns);

/* The pieces, for a waiter that looks at many things:
 *     uint32_t seen = br_event_prepare(e);
 *     if (ready()) br_event_cancel(e);
 *     else         br_event_sleep(e, seen, timeout_ns);
 * and then look again: sleep may return early. False: the timeout passed. */
uint32_t br_event_prepare(br_event *e);
void br_event_cancel(br_event *e);
bool br_event_sleep(br_event *e, uint32_t seen, int64_t timeout_ns);

/* ---- the operating system (os_linux.c) ----------------------------------- */

typedef enum br_futex_end {
    BR_FUTEX_WOKEN,   /* by a wake, a signal handler, or for no reason */
    BR_FUTEX_CHANGED, /* *word was not `expected` */
    BR_FUTEX_TIMEOUT,
} br_futex_end;

/* Sleeps while *word == expected; timeout_ns negative: for ever. Threads of
 * this process only. */
br_futex_end br_futex_wait(_Atomic uint32_t *word, uint32_t expected,
                           int64_t timeout_ns);
void br_futex_wake(_Atomic uint32_t *word, int n); /* INT_MAX: all */

int64_t br_now_ns(void);  /* monotonic; never goes back */
int64_t br_wall_ns(void); /* since 1970, UTC; may jump */
/* What this thread has run: what else is on the machine does not count. On some
 * machines it moves by ticks of 1 to 10 ms only; the first look takes 2 ms. */
int64_t br_thread_ns(void);
bool br_thread_ns_is_fine(void);
void br_sleep_ns(int64_t ns);

/* Bytes of the kernel's generator, fit for keys. Aborts when it has none. */
void br_os_random(void *p, size_t n);
uint32_t br_os_thread_id(void); /* as top and gdb show it */
void br_os_thread_name(const char *name);

/* This thread works for moments and sleeps: where all processors compute it is
 * to begin when it is woken, not when a slice of theirs is over. It asks for
 * slices of 0.1 ms; Linux 6.12 and later put who has short ones first, unless it
 * has just had more than its share: so it takes a larger one (nice) where the
 * process may. False: none of it is to be had here. */
enum { BR_OS_SOON_NS = 100000, BR_OS_SOON_NICE = 10 };
bool br_os_thread_soon(void);
/* The other way round: what it does can wait for all that others do. */
void br_os_thread_later(void);

/* A small file of /proc or /sys, cut to size - 1 bytes, and a NUL. False, and
 * "" in out: it cannot be opened. */
bool br_os_read(const char *path, char *out, size_t size);

/* What of the machine's memory this process may have, and how much of it is
 * free: the least that the kernel and the control groups say. 0: not told. */
void br_os_memory(uint64_t *total_bytes, uint64_t *free_bytes);

/* Zeros in private memory; whole pages of it go back to the kernel, which gives
 * new ones, huge where it can, when they are touched. */
void br_os_zero(void *p, size_t n);
/* The whole pages of it are there from now on, and hold what they held, whoever
 * else uses them. False: this kernel cannot (before Linux 5.14), or has none. */
bool br_os_touch(void *p, size_t n);

/* Bytes as code that this process may run, and never write; NULL: the system
 * gives none. */
uint8_t *br_os_code_new(const void *p, size_t n);
void br_os_code_free(uint8_t *code, size_t n);

/* A lock that ends with the process that holds it, whatever ends it: a SIGKILL
 * leaves nothing behind that somebody has to clear away. NO_DEVICE: another
 * process has it; the message names that process. */
typedef struct br_os_lock {
    int fd;
} br_os_lock;
br_code br_os_lock_take(br_os_lock *l, const char *path,
                        br_status *st) BR_MUST_USE;
/* One process for each GPU: device is "cuda-0" and the like. */
br_code br_os_lock_device(br_os_lock *l, const char *device,
                          br_status *st) BR_MUST_USE;
void br_os_lock_drop(br_os_lock *l);

/* Processors this thread may run on, at most `max` of their numbers; returns
 * how many there are. */
int br_os_cpus(int *out, int max);
/* The same as a set, of as many as Linux can be built for: it refuses one that
 * is smaller than its own. */
enum { BR_OS_MAX_CPUS = 8192 };
typedef struct br_os_cpuset {
    uint64_t bits[BR_OS_MAX_CPUS / 64];
} br_os_cpuset;
bool br_os_allowed(br_os_cpuset *set); /* false: none is known */
static inline bool
br_os_has(const br_os_cpuset *set, int cpu)
{
    return set->bits[cpu / 64] >> cpu % 64 & 1;
}
/* This thread to those of the set that it may run on; false: there are none,
 * or the system will not, and it stays where it is. */
bool br_os_run_on(const br_os_cpuset *set);
/* Pages that are touched from now on come from these memory nodes in turn; the
 * ends that are no whole pages are left out. false: the system will not. */
bool br_os_interleave(void *p, size_t n, uint64_t nodes);
/* How many threads can run at once: the processors allowed, or the quota of
 * the control group where that is less. At least 1. */
int br_cpu_count(void);
/* Processors' worth of time a quota grants, rounded up; 0: no limit. root is
 * "/sys/fs/cgroup", self the text of /proc/self/cgroup. */
int br_os_cpu_quota(const char *root, const char *self);

#endif
