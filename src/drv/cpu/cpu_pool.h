/* cpu_pool.h - threads that run a list of phases, tile by tile.
 *
 *   phase 0: 40 tiles     phase 1: 1 tile     phase 2: 16 tiles    ...
 *   thread 0  t0 t2 t3 .. t39 | t0             | t0 t1 ...
 *   thread 1  t1 t4 ..        |                | t2 ...
 *
 * Tiles of a phase are independent; a phase begins when every tile of the one
 * before is done. Nobody has a share: whoever is there takes the next tile, so
 * a thread that the system has taken off its core, or that never woke, delays
 * nobody unless it holds a tile. That is why more threads than free cores cost
 * next to nothing.
 *
 * One word says everything a claim needs to know:
 *
 *     63     epoch     40 39   tiles   20 19    next    0
 *
 * fetch_add(1) yields epoch, number of tiles and a tile of one's own at once.
 * Who finishes the last tile opens the next phase; phases of one tile it runs
 * itself and tells nobody. Between phases the others spin for some
 * microseconds, then sleep on a futex.
 *
 * Cost: an atomic addition a tile and two a phase; 0.2 us from phase to phase.
 *
 * Who waits may know what it is to read next (br_cpu_pool_soon): then it brings
 * that to its second cache meanwhile, a KiB between one look and the next.
 *
 * A job may want fewer threads than there are: the others sleep apart, so that
 * nobody wakes them from phase to phase.
 *
 * On a machine with several memory nodes the threads are dealt to them in turn
 * (cpu_nodes.h), and so are the packed weights' pages (br_cpu_pool_spread).
 * Within a node the kernel moves them: docs/decisions/0027.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_POOL_H
#define BR_CPU_POOL_H

#include "drv/cpu/cpu_nodes.h"

enum {
    BR_CPU_MAX_THREADS = 256,
    BR_CPU_MAX_TILES = (1 << 20) - 4096, /* of a phase */
    /* Looks of who waits, before it sleeps. About 80 us of a Zen 5: longer than
     * most phases of attention lag behind on an idle machine, where sleeping and
     * being woken is 100 us of a virtual one; beside as much other work as
     * threads no slower than 20 us (0027). */
    BR_CPU_SPINS = 4000
};

typedef struct br_cpu_job {
    void *ctx;
    uint32_t n_phases;
    /* How many tiles a phase has, 0 to BR_CPU_MAX_TILES. Called once, when all
     * phases before are done. */
    uint32_t (*begin)(void *ctx, uint32_t phase);
    /* worker: below the pool's number of threads; nobody else has it now. */
    void (*tile)(void *ctx, uint32_t phase, uint32_t tile, uint32_t worker);
    /* How many threads share it, 0: all; one that has not heard yet may take a
     * tile still. And how often who waits looks, 0: BR_CPU_SPINS; more threads
     * than processors never do. */
    uint32_t threads, looks;
} br_cpu_job;

typedef struct br_cpu_pool br_cpu_pool;

/* n_threads 0: as many as processors. The caller of br_cpu_pool_run is one of
 * them. */
br_code br_cpu_pool_new(br_cpu_pool **out, uint32_t n_threads,
                        br_status *st) BR_MUST_USE;
/* The same on a machine whose memory nodes the caller knows better. */
br_code br_cpu_pool_on(br_cpu_pool **out, uint32_t n_threads,
                       const br_cpu_nodes *nodes, br_status *st) BR_MUST_USE;
void br_cpu_pool_free(br_cpu_pool *p);
uint32_t br_cpu_pool_threads(const br_cpu_pool *p);
/* Memory that all will read and nobody has touched: its pages to the nodes of
 * the threads in turn. Where there is one node, nothing. */
void br_cpu_pool_spread(br_cpu_pool *p, void *at, size_t n);
/* Said by a worker in a tile: when it next waits in this job, it may well be for
 * at..at + n, which it then reads, and nobody writes until the job is over. */
void br_cpu_pool_soon(br_cpu_pool *p, uint32_t id, const void *at, size_t n);
/* Returns when all phases are done. One caller at a time. */
void br_cpu_pool_run(br_cpu_pool *p, const br_cpu_job *job);

#endif
