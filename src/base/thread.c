/* thread.c - threads and the event.
 *
 * Why no wake-up of br_event is lost. Let S be the one order of all seq_cst
 * operations.
 *
 *   signaller                          waiter
 *   C: makes the condition true        p: waiters += 1      (seq_cst)
 *   s: epoch += 1     (seq_cst)        q: seen = epoch      (seq_cst)
 *   t: reads waiters  (seq_cst)        L: looks at the condition
 *      > 0: futex wake                 f: futex wait while epoch == seen
 *
 * If q reads what s wrote, or later, s synchronises with q: L sees C.
 * Else q comes before s in S, so p < q < s < t, and t reads at least 1: a wake
 * follows s. It finds the waiter asleep, or the waiter not yet in f, where
 * epoch != seen ends the wait at once. The epoch is 32 bits: a waiter would
 * have to be held up between q and f for exactly 2^32 signals.
 *
 * A fence instead of the addition would do on paper, but ThreadSanitizer does
 * not understand fences.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

bool
br_is_told(const _Atomic bool *flag)
{
    /* relaxed: nothing comes with it */
    return flag && atomic_load_explicit(flag, memory_order_relaxed);
}

static void *
thread_main(void *arg)
{
    br_thread *t = arg;

    br_os_thread_name(t->name);
    t->fn(t->arg);
    return NULL;
}

br_code
br_thread_start(br_thread *t, const char *name, void (*fn)(void *arg),
                void *arg, br_status *st)
{
    static const int by_people[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t blocked, before;
    int err;

    sigemptyset(&blocked);
    *t = (br_thread){.fn = fn, .arg = arg};
    snprintf(t->name, sizeof t->name, "%s", name);
    for (size_t i = 0; i < BR_COUNT(by_people); i++)
        sigaddset(&blocked, by_people[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    err = pthread_create(&t->id, NULL, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err == 0)
        return BR_OK;
    br_fail(st, BR_E_OOM, "thread %s: %s", name, strerror(err));
    if (st)
        st->sys = err;
    return BR_E_OOM;
}

void
br_thread_join(br_thread *t)
{
    int err = pthread_join(t->id, NULL);

    br_check(err == 0 && "joined once, not by itself");
}

void
br_thread_yield(void)
{
    sched_yield();
}

void
br_cpu_relax(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb" ::: "memory");
#endif
}

void
br_mutex_lock(br_mutex *m)
{
    int err = pthread_mutex_lock(&m->m);

    br_check(err == 0 && "a mutex is initialised and not broken");
}

void
br_mutex_unlock(br_mutex *m)
{
    int err = pthread_mutex_unlock(&m->m);

    br_check(err == 0 && "a mutex is initialised and not broken");
}

void
br_once_run(br_once *o, void (*fn)(void))
{
    int err = pthread_once(&o->o, fn);

    br_check(err == 0);
}

/* ---- event -------------------------------------------------------------- */

void
br_event_signal(br_event *e)
{
    /* seq_cst, with the two of br_event_prepare: s and t above */
    atomic_fetch_add_explicit(&e->epoch, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&e->waiters, memory_order_seq_cst) > 0)
        br_futex_wake(&e->epoch, INT_MAX);
}

uint32_t
br_event_prepare(br_event *e)
{
    /* seq_cst, with the two of br_event_signal: p and q above */
    atomic_fetch_add_explicit(&e->waiters, 1, memory_order_seq_cst);
    return atomic_load_explicit(&e->epoch, memory_order_seq_cst);
}

void
br_event_cancel(br_event *e)
{
    /* relaxed: too high a count only costs the signaller a system call */
    atomic_fetch_sub_explicit(&e->waiters, 1, memory_order_relaxed);
}

bool
br_event_sleep(br_event *e, uint32_t seen, int64_t timeout_ns)
{
    br_futex_end end = br_futex_wait(&e->epoch, seen, timeout_ns);

    br_event_cancel(e);
    return end != BR_FUTEX_TIMEOUT;
}

bool
br_event_await(br_event *e, bool (*ready)(void *arg), void *arg, int spins,
               int64_t timeout_ns)
{
    int64_t end = 0, left = -1;

    for (int i = 0; i < spins; i++) {
        if (ready(arg))
            return true;
        br_cpu_relax();
    }
    if (timeout_ns >= 0 &&
        __builtin_add_overflow(br_now_ns(), timeout_ns, &end))
        timeout_ns = -1; /* in 292 years */
    for (;;) {
        uint32_t seen = br_event_prepare(e);

        if (ready(arg)) {
            br_event_cancel(e);
            return true;
        }
        if (timeout_ns >= 0) {
            left = end - br_now_ns();
            if (left <= 0) {
                br_event_cancel(e);
                return false;
            }
        }
        br_event_sleep(e, seen, left);
    }
}

int
br_cpu_count(void)
{
    int n = br_os_cpus(NULL, 0), quota;
    char self[4096];

    br_os_read("/proc/self/cgroup", self, sizeof self);
    quota = br_os_cpu_quota("/sys/fs/cgroup", self);
    if (quota > 0 && quota < n)
        n = quota;
    return BR_MAX(n, 1);
}
