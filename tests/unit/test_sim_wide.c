/* test_sim_wide.c - memory of 32 lanes at once is memory of each lane.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "drv/sim/sim_wide.h"
#include "t.h"

#include <string.h>

enum { LANES = 32, WORDS = 4, MEMORY = 4096 };

typedef struct bench {
    br_rng rng;
    uint8_t memory[MEMORY], want[MEMORY];
    uint32_t low[LANES], high[LANES];
    uint32_t reg[WORDS * LANES], want_reg[WORDS * LANES];
    sim_wide x;
} bench;

static uint32_t
below(bench *b, uint32_t n)
{
    return br_rng_u32(&b->rng) % n;
}

/* Lanes in a row, nearly so, at one place, anywhere. */
static void
draw_lanes(bench *b, unsigned each)
{
    unsigned how = below(b, 5), step = how == 2 ? 0 : each;
    uint32_t room =
        b->x.bytes > 32 * each ? (uint32_t)b->x.bytes - 32 * each : 1;
    uint32_t from = below(b, room);

    for (unsigned i = 0; i < LANES; i++) {
        uint64_t at =
            how > 2 ? below(b, (uint32_t)b->x.bytes) : from + i * step;
        uint64_t v = at - b->x.base;

        b->low[i] = (uint32_t)v;
        b->high[i] = (uint32_t)(v >> 32);
    }
    if (how == 1)
        b->low[below(b, LANES)] = b->low[0];
}

static void
draw(bench *b)
{
    static const uint8_t parts[] = {1, 2, 4, 4, 4, 4};

    b->x = (sim_wide){.low = b->low,
                      .high = below(b, 2) ? b->high : NULL,
                      .reg = b->reg,
                      .host = b->memory,
                      .part = parts[below(b, 6)],
                      .store = below(b, 2),
                      .sign = below(b, 2)};
    b->x.bytes = below(b, 4) ? MEMORY : 64 + below(b, 200);
    b->x.n = b->x.part == 4 ? 1 + below(b, WORDS) : 1;
    b->x.exec = below(b, 3) ? UINT32_MAX : br_rng_u32(&b->rng);
    b->x.base = b->x.high ? (uint64_t)br_rng_u32(&b->rng) << 20 : 0;
    draw_lanes(b, b->x.part * b->x.n);
    for (unsigned k = 0; k < MEMORY; k++)
        b->want[k] = b->memory[k] = (uint8_t)br_rng_u32(&b->rng);
    for (unsigned k = 0; k < WORDS * LANES; k++)
        b->want_reg[k] = b->reg[k] = br_rng_u32(&b->rng);
}

static uint64_t
place(const bench *b, unsigned lane)
{
    return b->x.base + b->low[lane] +
           (b->x.high ? (uint64_t)b->high[lane] << 32 : 0);
}

/* What the lanes do, one after another. False: one is outside. */
static bool
lanes(bench *b)
{
    const sim_wide *x = &b->x;
    unsigned each = x->part * x->n;

    for (unsigned i = 0; i < LANES; i++)
        if (x->exec >> i & 1 &&
            (each > x->bytes || place(b, i) > x->bytes - each))
            return false;
    for (unsigned i = 0; i < LANES; i++)
        for (unsigned k = 0; x->exec >> i & 1 && k < x->n; k++) {
            uint8_t *p = b->want + place(b, i) + 4 * k;
            uint32_t *r = b->want_reg + 32 * k + i, v = 0;

            if (x->store) {
                memcpy(p, r, x->part);
                continue;
            }
            memcpy(&v, p, x->part);
            *r = !x->sign || x->part == 4 ? v
                 : x->part == 1           ? (uint32_t)(int8_t)v
                                          : (uint32_t)(int16_t)v;
        }
    return true;
}

TEST(sim_wide_memory_is_that_of_each_lane)
{
    static bench b;
    unsigned done = 0;

    if (!sim_has_avx512())
        return;
    br_rng_init(&b.rng, 5, 0);
    for (unsigned k = 0; k < 20000; k++) {
        uint64_t at[LANES];
        sim_wide_end end;
        bool inside;

        draw(&b);
        end = sim_wide_words(&b.x, at);
        inside = lanes(&b);
        ck_assert_msg(inside || end == SIM_WIDE_FAR, "case %u", k);
        for (unsigned i = 0; end == SIM_WIDE_AT && i < LANES; i++)
            ck_assert(!(b.x.exec >> i & 1) || at[i] == place(&b, i));
        if (end == SIM_WIDE_FAR || end == SIM_WIDE_AT)
            continue;
        ck_assert(end == SIM_WIDE_DONE || at[0] == place(&b, 0));
        done++;
        ck_assert_msg(memcmp(b.memory, b.want, MEMORY) == 0, "case %u", k);
        ck_assert_msg(memcmp(b.reg, b.want_reg, sizeof b.reg) == 0, "case %u",
                      k);
    }
    ck_assert_uint_gt(done, 5000);
}

TEST(sim_wide_permutes_as_each_lane_reads)
{
    uint32_t data[LANES], at[LANES], to[LANES], want[LANES];
    br_rng rng;

    if (!sim_has_avx512())
        return;
    br_rng_init(&rng, 6, 0);
    for (unsigned n = 0; n < 1000; n++) {
        uint32_t off = br_rng_u32(&rng) & 0xffff;
        uint32_t exec = n & 1 ? UINT32_MAX : br_rng_u32(&rng);

        for (unsigned i = 0; i < LANES; i++) {
            data[i] = br_rng_u32(&rng);
            at[i] = br_rng_u32(&rng);
            want[i] = to[i] = br_rng_u32(&rng);
        }
        for (unsigned i = 0; i < LANES; i++) {
            unsigned k = (at[i] + off) / 4 % LANES;

            if (exec >> i & 1)
                want[i] = exec >> k & 1 ? data[k] : 0;
        }
        sim_wide_permute(to, data, at, off, exec);
        ck_assert(memcmp(to, want, sizeof to) == 0);
    }
}
