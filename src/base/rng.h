/* rng.h - random numbers that are a function of (key, place).
 *
 * Philox4x32-10 (Salmon and others, 2011) has no state to carry: block i of a
 * key is computed when it is asked for, on any thread, in any order. A sampled
 * token depends on (seed, position) alone, and a failing test names its seed.
 * Not for secrets: br_os_random is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_RNG_H
#define BR_RNG_H

#include "base/base.h"

typedef struct br_philox_key {
    uint32_t k[2];
} br_philox_key;
typedef struct br_philox_block {
    uint32_t w[4];
} br_philox_block;

br_philox_block br_philox(br_philox_key key, br_philox_block counter);

/* A sequence out of it: (seed, stream) name it, `at` is its place. */
typedef struct br_rng {
    br_philox_key key;
    uint64_t stream;
    uint64_t at; /* words handed out so far */
    br_philox_block block;
} br_rng;

void br_rng_init(br_rng *r, uint64_t seed, uint64_t stream);
void br_rng_seek(br_rng *r, uint64_t at); /* word `at` comes next */
uint32_t br_rng_u32(br_rng *r);
uint64_t br_rng_u64(br_rng *r);
/* 0..n-1, each as likely as any other. n > 0. */
uint32_t br_rng_below(br_rng *r, uint32_t n);
uint64_t br_rng_below_u64(br_rng *r, uint64_t n);
int64_t br_rng_between(br_rng *r, int64_t lo, int64_t hi); /* both included */
double br_rng_f64(br_rng *r); /* [0, 1), steps of 2^-53 */
float br_rng_f32(br_rng *r);  /* [0, 1), steps of 2^-24 */
/* Shuffles the numbers of at[0..n), n below 2^32. */
void br_rng_shuffle(br_rng *r, uint32_t *at, size_t n);

#endif
