/* rng.c - Philox4x32-10 and what is drawn from it.
 *
 *   counter = (block number, stream)    key = seed
 *   word i of a sequence = word i % 4 of block i / 4
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <string.h>

br_philox_block
br_philox(br_philox_key key, br_philox_block c)
{
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xd2511f53 * c.w[0];
        uint64_t b = (uint64_t)0xcd9e8d57 * c.w[2];

        c = (br_philox_block){
            {(uint32_t)(b >> 32) ^ c.w[1] ^ key.k[0], (uint32_t)b,
             (uint32_t)(a >> 32) ^ c.w[3] ^ key.k[1], (uint32_t)a}};
        key.k[0] += 0x9e3779b9;
        key.k[1] += 0xbb67ae85;
    }
    return c;
}

void
br_rng_init(br_rng *r, uint64_t seed, uint64_t stream)
{
    *r = (br_rng){.key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}},
                  .stream = stream};
}

static void
fill(br_rng *r)
{
    uint64_t n = r->at / 4;

    r->block =
        br_philox(r->key, (br_philox_block){{(uint32_t)n, (uint32_t)(n >> 32),
                                             (uint32_t)r->stream,
                                             (uint32_t)(r->stream >> 32)}});
}

void
br_rng_seek(br_rng *r, uint64_t at)
{
    r->at = at;
    if (at % 4)
        fill(r);
}

uint32_t
br_rng_u32(br_rng *r)
{
    if (r->at % 4 == 0)
        fill(r);
    return r->block.w[r->at++ % 4];
}

uint64_t
br_rng_u64(br_rng *r)
{
    uint64_t low = br_rng_u32(r);

    return low | (uint64_t)br_rng_u32(r) << 32;
}

/* Lemire, 2019: the high word of a product is uniform once the few products
 * whose low word is below 2^32 mod n are drawn again. */
uint32_t
br_rng_below(br_rng *r, uint32_t n)
{
    uint64_t m;

    br_check(n > 0 && "one of nothing cannot be drawn");
    m = (uint64_t)br_rng_u32(r) * n;
    if ((uint32_t)m < n) {
        uint32_t unfair = (0u - n) % n;

        while ((uint32_t)m < unfair)
            m = (uint64_t)br_rng_u32(r) * n;
    }
    return (uint32_t)(m >> 32);
}

uint64_t
br_rng_below_u64(br_rng *r, uint64_t n)
{
    uint64_t v, unfair;

    br_check(n > 0 && "one of nothing cannot be drawn");
    if (n <= UINT32_MAX)
        return br_rng_below(r, (uint32_t)n);
    /* The lowest 2^64 mod n values are drawn again; the rest is a multiple. */
    unfair = (0u - n) % n;
    do
        v = br_rng_u64(r);
    while (v < unfair);
    return v % n;
}

int64_t
br_rng_between(br_rng *r, int64_t lo, int64_t hi)
{
    uint64_t span = (uint64_t)hi - (uint64_t)lo;

    br_check(lo <= hi);
    if (span == UINT64_MAX)
        return (int64_t)br_rng_u64(r);
    return (int64_t)((uint64_t)lo + br_rng_below_u64(r, span + 1));
}

double
br_rng_f64(br_rng *r)
{
    return (double)(br_rng_u64(r) >> 11) * 0x1p-53;
}

float
br_rng_f32(br_rng *r)
{
    return (float)(br_rng_u32(r) >> 8) * 0x1p-24f;
}

void
br_rng_shuffle(br_rng *r, uint32_t *at, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = br_rng_below_u64(r, i);
        uint32_t t = at[i - 1];

        at[i - 1] = at[j];
        at[j] = t;
    }
}
