/* bench_base.c - speed of hashing, maps, random numbers and wake-ups.
 *
 * Prints the best of REPEATS runs: on a shared machine the fastest run is the
 * one least disturbed. What is timed is checked in the same run: a map that
 * loses a key, or a digest that differs, ends it with exit code 1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 7, KEYS = 100000, BYTES = 1 << 20, ROUNDS = 20000 };

static char names[KEYS][24];
static char bytes[BYTES];
static br_map map;
static uint64_t sink;

static void
must(bool c, const char *what)
{
    if (c)
        return;
    fprintf(stderr, "bench_base: %s\n", what);
    exit(1);
}

/* ---- what is timed: each returns how many things it did ----------------- */

static double
map_put(void)
{
    br_map_fini(&map);
    for (int i = 0; i < KEYS; i++) {
        br_map_value *v = br_map_put(&map, br_text_z(names[i]), NULL);

        must(v != NULL, "out of memory");
        v->i = i;
    }
    must(map.n_live == KEYS, "a key is lost");
    return KEYS;
}

static double
map_get(void)
{
    for (int i = 0; i < KEYS; i++) {
        int k = (int)((int64_t)i * 7919 % KEYS);
        const br_map_value *v = br_map_get(&map, br_text_z(names[k]));

        must(v && v->i == k, "a key is lost");
    }
    return KEYS;
}

static double
map_get_few(void)
{
    static br_map few;

    for (int i = few.n_live ? 200 : 0; i < 200; i++)
        must(br_map_put(&few, br_text_z(names[i]), NULL), "out of memory");
    for (int i = 0; i < KEYS; i++)
        must(br_map_get(&few, br_text_z(names[i % 200])), "a key is lost");
    return KEYS;
}

static double
siphash(void)
{
    sink += br_siphash((br_hash_key){1, 2}, bytes, BYTES);
    return BYTES;
}

static double
siphash13(void)
{
    sink += br_siphash13((br_hash_key){1, 2}, bytes, BYTES);
    return BYTES;
}

static double
sha256(void)
{
    char hex[BR_SHA256_HEX];

    /* sha256sum of 1 MiB of zeros */
    br_sha256_hex(bytes, BYTES, hex);
    must(strncmp(hex, "30e14955ebf13522", 16) == 0, "the digest differs");
    return BYTES;
}

static double
philox(void)
{
    br_rng r;

    br_rng_init(&r, 1, 2);
    for (int i = 0; i < 1000000; i++)
        sink += br_rng_u32(&r);
    return 1e6;
}

/* ---- wake-ups ----------------------------------------------------------- */

typedef struct ball {
    _Alignas(64) br_event event[2];
    _Alignas(64) _Atomic int turn;
} ball;
typedef struct side {
    ball *b;
    int me, want;
} side;
static int spins;

static bool
my_turn(void *arg)
{
    const side *s = arg;

    /* acquire, with the release in hit */
    return atomic_load_explicit(&s->b->turn, memory_order_acquire) == s->want;
}

static void
hit(void *arg)
{
    side *s = arg;

    for (s->want = s->me; s->want < ROUNDS; s->want += 2) {
        br_event_await(&s->b->event[s->me], my_turn, s, spins, -1);
        /* release, with the acquire in my_turn */
        atomic_store_explicit(&s->b->turn, s->want + 1, memory_order_release);
        br_event_signal(&s->b->event[!s->me]);
    }
}

static double
wake_ups(void)
{
    ball b = {0};
    side s[2] = {{&b, 0, 0}, {&b, 1, 0}};
    br_status st = {0};
    br_thread t;

    must(br_thread_start(&t, "hit", hit, &s[1], &st) == BR_OK, st.msg);
    hit(&s[0]);
    br_thread_join(&t);
    must(b.turn == ROUNDS, "a wake-up is lost");
    return ROUNDS;
}

static double
signals(void)
{
    br_event e = {0};

    for (int i = 0; i < 1000000; i++)
        br_event_signal(&e);
    return 1e6;
}

/* ------------------------------------------------------------------------- */

static void
report(const char *what, double (*fn)(void), const char *unit, bool rate)
{
    double best = 1e300;

    for (int i = 0; i < REPEATS; i++) {
        int64_t begin = br_now_ns();
        double n = fn();

        best = BR_MIN(best, (double)(br_now_ns() - begin) / n);
    }
    printf("%-42s %8.2f %s\n", what, rate ? 1 / best : best, unit);
}

int
main(void)
{
    for (int i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof names[i], "blk.%d.attn_q", i);
    report("map: put of 100,000 names", map_put, "ns", false);
    report("map: get among 100,000", map_get, "ns", false);
    report("map: get among 200", map_get_few, "ns", false);
    report("siphash 2-4 of 1 MiB", siphash, "GB/s", true);
    report("siphash 1-3 of 1 MiB", siphash13, "GB/s", true);
    report("sha256 of 1 MiB", sha256, "GB/s", true);
    report("philox word", philox, "ns", false);
    report("signal nobody waits for", signals, "ns", false);
    report("hand-over between threads, asleep", wake_ups, "ns", false);
    spins = 2000;
    report("hand-over between threads, spinning", wake_ups, "ns", false);
    br_map_fini(&map);
    return sink == 42;
}
