/* cpu_lend.c - attention of one row, shared by threads that are not as fast.
 *
 * Where heads are many, one row has a tile for each thread: two streams of memory
 * that go on for all of its heads, so a tile is not cut without need, and all wait
 * for the slowest one.
 * That is a quarter of the phase where a core shares its arithmetic with somebody
 * (a virtual one, 1.27 times as slow for seconds: 0026). So each thread measures
 * what a block takes it, and a slow one's last blocks are a tile of their own, for
 * who comes first:
 *
 *   thread 0   tile 0: b0 ................. b31 | blocks b28 .. b31 of tile 1
 *   thread 1   tile 1: b0 ......... b27                      then: the fold
 *
 * What b0 to b27 come to is kept like a block, so the fold has few, in the order
 * that it always has: the same bits, whoever lends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

enum {
    LEND_BLOCKS = 8, /* of a tile, at least: less ends before it was shared */
    LEND_LATELY = 8, /* a pace is a mean of about so many tiles */
};

/* Another beginning, the fold and its phase: .03 of a tile of 32 blocks. */
static const double lend_least = 1.5; /* blocks */

void
cpu_lend_pace(cpu_worker *w, int64_t ns, uint32_t blocks)
{
    double now = (double)ns / blocks;

    w->pace += w->pace > 0 ? (now - w->pace) / LEND_LATELY : now;
}

uint32_t
cpu_lend(br_cpu *c, uint32_t tiles, uint32_t blocks, size_t kept)
{
    cpu_split *s = &c->split;
    uint32_t most = 0;
    double rate = 0; /* blocks a ns, of all */

    s->n_tiles = tiles;
    s->n_lent = s->most_lent = 0;
    s->paced = tiles == c->n_threads && blocks >= LEND_BLOCKS;
    if (!s->paced || !c->tune.at[BR_CPU_KNOB_lends])
        return tiles;
    for (uint32_t i = 0; i < tiles; i++) {
        if (c->worker[i].pace <= 0)
            return tiles;
        rate += 1 / c->worker[i].pace;
    }
    for (uint32_t i = 0; i < tiles; i++) {
        double fair = blocks * tiles / (c->worker[i].pace * rate);
        double more = BR_MIN(blocks - fair, .5 * blocks);

        if (more < lend_least)
            continue;
        s->lent[s->n_lent++] = (cpu_lent){i, (uint32_t)more};
        most = BR_MAX(most, (uint32_t)more);
    }
    if ((most + 1) * kept > c->most_kept)
        s->n_lent = most = 0;
    s->most_lent = most;
    c->n_lent += s->n_lent;
    return tiles + s->n_lent;
}

/* Blocks that a tile lends, as a.b0 to a.b1 - 1 are all that it has. */
static uint32_t
lent_by(const cpu_split *s, uint32_t tile)
{
    for (uint32_t i = 0; i < s->n_lent; i++)
        if (s->lent[i].tile == tile)
            return s->lent[i].blocks;
    return 0;
}

uint32_t
cpu_lend_tile(const br_cpu *c, uint32_t tile)
{
    const cpu_split *s = &c->split;

    return tile < s->n_tiles ? tile : s->lent[tile - s->n_tiles].tile;
}

bool
cpu_lend_part(const br_cpu *c, uint32_t tile, br_cpu_att *a)
{
    uint32_t n = lent_by(&c->split, cpu_lend_tile(c, tile));
    bool borrows = tile >= c->split.n_tiles;

    if (n == 0)
        return true;
    a->kept = c->kept_blocks;
    a->n_kept = c->split.most_lent + 1;
    a->kept_from = a->b1 - (int32_t)n - 1;
    br_assert(a->kept_from >= a->b0);
    if (borrows)
        a->b0 = a->kept_from + 1;
    else
        a->b1 = a->kept_from + 1;
    a->as_one = !borrows;
    return borrows;
}
