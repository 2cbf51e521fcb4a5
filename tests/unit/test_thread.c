/* test_thread.c - threads, wake-ups that must not get lost, processors, clocks.
 *
 * Run under SAN=thread as well: the tests share nothing but what the thing
 * under test is said to order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "run/turns.h"

#include "t.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MS       1000000
/* Longer than any turn of a player, also where the machine stands still for a while. */
#define PATIENCE (10000 * (int64_t)MS)

static void
start(br_thread *t, void (*fn)(void *), void *arg)
{
    br_status st = {0};

    t_ok(br_thread_start(t, "test", fn, arg, &st), &st);
}

/* ---- threads and mutex --------------------------------------------------- */

typedef struct counted {
    br_mutex mutex;
    int n; /* guarded by mutex */
} counted;

static void
count_up(void *arg)
{
    counted *c = arg;

    for (int i = 0; i < 5000; i++) {
        br_mutex_lock(&c->mutex);
        c->n++;
        br_mutex_unlock(&c->mutex);
    }
}

TEST(mutex_keeps_others_out)
{
    counted c = {.mutex = BR_MUTEX};
    br_thread t[4];

    for (int i = 0; i < 4; i++)
        start(&t[i], count_up, &c);
    for (int i = 0; i < 4; i++)
        br_thread_join(&t[i]);
    ck_assert_int_eq(c.n, 20000);
}

static int once_runs; /* written inside br_once_run only */
static br_once once = BR_ONCE;

static void
run_once(void)
{
    br_sleep_ns(MS);
    once_runs++;
}

static void
see_once(void *arg)
{
    br_once_run(&once, run_once);
    *(int *)arg = once_runs;
}

TEST(once_runs_once_and_is_seen_by_all)
{
    br_thread t[4];
    int seen[4];

    for (int i = 0; i < 4; i++)
        start(&t[i], see_once, &seen[i]);
    for (int i = 0; i < 4; i++) {
        br_thread_join(&t[i]);
        ck_assert_int_eq(seen[i], 1);
    }
}

static void
read_name(void *arg)
{
    br_os_read("/proc/thread-self/comm", arg, 32);
}

TEST(thread_has_its_name_cut_to_15)
{
    br_status st = {0};
    br_thread t;
    char name[32];

    t_ok(br_thread_start(&t, "brass-worker-number-7", read_name, name, &st),
         &st);
    br_thread_join(&t);
    ck_assert_str_eq(name, "brass-worker-nu\n");
    ck_assert_uint_gt(br_os_thread_id(), 0);
}

/* ---- futex --------------------------------------------------------------- */

TEST(futex_says_why_it_came_back)
{
    _Atomic uint32_t word = 5;
    int64_t begin = br_now_ns(), took;

    ck_assert_int_eq(br_futex_wait(&word, 4, -1), BR_FUTEX_CHANGED);
    ck_assert_int_eq(br_futex_wait(&word, 5, 20 * MS), BR_FUTEX_TIMEOUT);
    took = br_now_ns() - begin;
    ck_assert_int_ge(took, 20 * MS);
    ck_assert_int_eq(br_futex_wait(&word, 5, 0), BR_FUTEX_TIMEOUT);
    br_futex_wake(&word, INT_MAX);
}

/* ---- event --------------------------------------------------------------- */

/* Two threads hand a number to and fro. Each sleeps until it is its turn, and
 * one lost wake-up leaves both asleep: the wait's timeout fails the test.
 *
 * Both dawdle for 0 to `jitter` pauses, before they pass the turn and between
 * look and sleep, so that every order of the few instructions that matter
 * comes up. Two faults were planted: the epoch read after the look goes red
 * every time; waiters read before the epoch is raised needs a store to be late
 * by chance, and goes red in two runs of six. */
typedef struct rally {
    _Alignas(64) br_event event[2];
    _Alignas(64) _Atomic uint32_t turn; /* a line apart: stores may be late */
    _Alignas(64) uint32_t rounds, jitter;
    int spins;
    uint64_t sum;      /* of whoever has the turn: ordered by turn */
    _Atomic bool lost; /* somebody waited in vain */
} rally;
typedef struct player {
    rally *r;
    uint32_t me, want;
    uint64_t rand;
} player;

static void
dawdle(player *p)
{
    /* volatile: some 5 cycles a round; a pause would be 40 to 140 */
    volatile uint64_t n = p->r->jitter ? t_rand(&p->rand) % p->r->jitter : 0;

    while (n > 0)
        n--;
}

static bool
my_turn(void *arg)
{
    player *p = arg;
    /* acquire, with the release in play: sum is the other's */
    bool mine =
        atomic_load_explicit(&p->r->turn, memory_order_acquire) == p->want;

    if (!mine)
        dawdle(p);
    return mine;
}

static void
play(void *arg)
{
    player *p = arg;
    rally *r = p->r;

    for (p->want = p->me; p->want < r->rounds; p->want += 2) {
        int64_t begin = br_now_ns();

        br_event_await(&r->event[p->me], my_turn, p, r->spins, PATIENCE);
        if (br_now_ns() - begin >= PATIENCE) {
            atomic_store(&r->lost, true);
            return;
        }
        r->sum += p->want;
        dawdle(p);
        /* release, with the acquire in my_turn */
        atomic_store_explicit(&r->turn, p->want + 1, memory_order_release);
        br_event_signal(&r->event[!p->me]);
    }
}

static void
rally_with(int spins, uint32_t jitter, uint32_t rounds)
{
    rally r = {.rounds = rounds, .jitter = jitter, .spins = spins};
    player p[2] = {{&r, 0, 0, 1}, {&r, 1, 0, 2}};
    br_thread t[2];

    start(&t[0], play, &p[0]);
    start(&t[1], play, &p[1]);
    br_thread_join(&t[0]);
    br_thread_join(&t[1]);
    ck_assert(!atomic_load(&r.lost));
    ck_assert_uint_eq(r.sum, (uint64_t)rounds * (rounds - 1) / 2);
    ck_assert_uint_eq(atomic_load(&r.event[0].waiters), 0);
    ck_assert_uint_eq(atomic_load(&r.event[1].waiters), 0);
}

TEST(event_loses_no_wake_up_of_two)
{
    for (uint32_t jitter = 0; jitter < 100; jitter += 10)
        rally_with(0, jitter, 6000);
    rally_with(50, 100, 20000);
}

/* Many producers and consumers around one counter of things to take. */
typedef struct store {
    br_event filled;
    _Atomic int things, taken, left; /* left: still to be made */
    int spins;
} store;

static bool
any_thing(void *arg)
{
    store *s = arg;

    /* relaxed: take_one decides by compare and exchange */
    return atomic_load_explicit(&s->things, memory_order_relaxed) > 0 ||
           atomic_load_explicit(&s->left, memory_order_relaxed) == 0;
}

static bool
take_one(store *s)
{
    int n = atomic_load_explicit(&s->things, memory_order_relaxed);

    /* acquire, with the release in make: nothing else is handed over here */
    while (n > 0)
        if (atomic_compare_exchange_weak_explicit(&s->things, &n, n - 1,
                                                  memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void
consume(void *arg)
{
    store *s = arg;

    for (;;) {
        br_event_await(&s->filled, any_thing, s, s->spins, -1);
        if (take_one(s))
            atomic_fetch_add_explicit(&s->taken, 1, memory_order_relaxed);
        else if (atomic_load_explicit(&s->left, memory_order_relaxed) == 0 &&
                 atomic_load_explicit(&s->things, memory_order_relaxed) == 0)
            return;
    }
}

static void
produce(void *arg)
{
    store *s = arg;

    for (int i = 0; i < 4000; i++) {
        atomic_fetch_add_explicit(&s->things, 1, memory_order_release);
        /* release: who sees left at 0 sees the last thing too */
        atomic_fetch_sub_explicit(&s->left, 1, memory_order_release);
        br_event_signal(&s->filled);
        if (i % 64 == 0)
            br_thread_yield();
    }
}

TEST(event_loses_no_wake_up_of_many)
{
    for (int spins = 0; spins < 40; spins += 20) {
        store s = {.left = 12000, .spins = spins};
        br_thread t[7];

        for (int i = 0; i < 4; i++)
            start(&t[i], consume, &s);
        for (int i = 4; i < 7; i++)
            start(&t[i], produce, &s);
        for (int i = 0; i < 7; i++)
            br_thread_join(&t[i]);
        ck_assert_int_eq(atomic_load(&s.taken), 12000);
    }
}

static bool
never(void *arg)
{
    ++*(int *)arg;
    return false;
}

TEST(event_times_out)
{
    br_event e = {0};
    int64_t begin = br_now_ns();
    int looks = 0;

    ck_assert(!br_event_await(&e, never, &looks, 3, 15 * MS));
    ck_assert_int_ge(br_now_ns() - begin, 15 * MS);
    ck_assert_int_ge(looks, 4);
    ck_assert(!br_event_await(&e, never, &looks, 0, 0));
    ck_assert_uint_eq(atomic_load(&e.waiters), 0);
}

TEST(event_sleep_ends_at_a_signal_before_it)
{
    br_event e = {0};
    uint32_t seen = br_event_prepare(&e);

    br_event_signal(&e);
    ck_assert(br_event_sleep(&e, seen, -1));
    seen = br_event_prepare(&e);
    ck_assert(!br_event_sleep(&e, seen, MS));
}

/* ---- clocks, processors -------------------------------------------------- */

TEST(clocks_go_forward)
{
    int64_t a = br_now_ns(), b;

    br_sleep_ns(5 * MS);
    b = br_now_ns();
    ck_assert_int_ge(b - a, 5 * MS);
    /* 2020 to 2100 */
    ck_assert_int_gt(br_wall_ns() / 1000000000, 1577836800);
    ck_assert_int_lt(br_wall_ns() / 1000000000, 4102444800);
}

static void
write_file(const char *root, const char *path, const char *text)
{
    char *full = t_printf("%s/%s", root, path);

    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    t_write(full, text, strlen(text));
}

TEST(quota_is_the_least_on_the_way_up)
{
    const char *root = t_tmpdir();

    ck_assert_int_eq(br_os_cpu_quota(root, "0::/a/b\n"), 0);
    write_file(root, "a/b/cpu.max", "max 100000\n");
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/a/b\n"), 0);
    write_file(root, "a/cpu.max", "250000 100000\n");
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/a/b\n"), 3);
    write_file(root, "a/b/cpu.max", "100000 100000\n");
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/a/b\n"), 1);
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/a\n"), 3);
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/\n"), 0);
    write_file(root, "cpu.max", "1 100000\n");
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/\n"), 1);
    /* A group that this mount does not show: what the mount says counts. */
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/gone/away\n"), 1);
}

TEST(quota_of_version_1)
{
    const char *root = t_tmpdir();

    write_file(root, "cpu/x/cpu.cfs_quota_us", "-1\n");
    write_file(root, "cpu/x/cpu.cfs_period_us", "100000\n");
    ck_assert_int_eq(br_os_cpu_quota(root, "3:memory:/m\n4:cpu,cpuacct:/x\n"),
                     0);
    write_file(root, "cpu/x/cpu.cfs_quota_us", "400000\n");
    ck_assert_int_eq(br_os_cpu_quota(root, "3:memory:/m\n4:cpuacct,cpu:/x"), 4);
    ck_assert_int_eq(br_os_cpu_quota(root, "4:cpuset:/x\n"), 0);
}

TEST(quota_of_broken_texts)
{
    static const char *const self[] = {"",   ":",     "::",   "0",
                                       "0:", "\n\n:", ":cpu", ":cpu:"};
    const char *root = t_tmpdir();

    write_file(root, "cpu.max", "9999999999999999999999 1\n");
    for (size_t i = 0; i < BR_COUNT(self); i++)
        br_os_cpu_quota(root, self[i]);
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/"), INT_MAX);
    write_file(root, "cpu.max", "x\n");
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/"), 0);
    write_file(root, "cpu.max", "100\n");
    ck_assert_int_eq(br_os_cpu_quota(root, "0::/"), 0);
}

/* ---- turns --------------------------------------------------------------- */

typedef struct taker {
    br_turns *t;
    br_turn me;
    br_thread thread;
    int64_t step_ns;
    _Atomic int *inside;
    atomic_bool *over;
} taker;

static void
take_turns(void *arg)
{
    taker *k = arg;

    while (!atomic_load(k->over)) {
        br_turn_take(k->t, &k->me);
        ck_assert_int_eq(atomic_fetch_add(k->inside, 1), 0);
        br_sleep_ns(k->step_ns);
        atomic_fetch_sub(k->inside, 1);
        br_turn_give(k->t, &k->me, k->step_ns);
    }
}

TEST(turns_share_time_and_not_steps)
{
    br_turns t = {.lock = BR_MUTEX};
    _Atomic int inside = 0;
    atomic_bool over = false;
    br_status st = {0};
    taker k[2] = {
        {.t = &t, .step_ns = 300000, .inside = &inside, .over = &over},
        {.t = &t, .step_ns = 1500000, .inside = &inside, .over = &over}};
    double ratio;

    /* What one had before the other came is not made up for. */
    k[0].me.used_ns = t.now_ns = INT64_C(1000000000);
    for (int i = 0; i < 2; i++)
        t_ok(br_thread_start(&k[i].thread, "turns", take_turns, &k[i], &st),
             &st);
    br_sleep_ns(INT64_C(200000000));
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++)
        br_thread_join(&k[i].thread);
    ratio = (double)(k[0].me.used_ns - 1000000000) /
            (double)(k[1].me.used_ns - 1000000000);
    ck_assert_msg(ratio > 0.7 && ratio < 1.4, "%g", ratio);
}
