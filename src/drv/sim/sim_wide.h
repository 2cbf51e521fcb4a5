/* sim_wide.h - memory of 32 lanes at a time, where the processor has AVX-512.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_WIDE_H
#define BR_SIM_WIDE_H

#include <stdbool.h>
#include <stdint.h>

static inline bool
sim_has_avx512(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

/* Each call only where the processor has it. high may be NULL: no high words. */

/* Lanes of exec: word k of n at host + at[i] to reg[32 k + i]. An aligned word
 * is read whole. */
void sim_wide_gather(uint32_t *reg, unsigned n, const uint8_t *host,
                     const uint64_t at[32], uint32_t exec);
/* The same of all lanes, right behind each other. */
void sim_wide_row(uint32_t *reg, unsigned n, const uint8_t *host);
void sim_wide_row_out(const uint32_t *reg, unsigned n, uint8_t *host);
/* to[i] = data[(at[i] + off) / 4 % 32]; 0 where that lane is not in
 * exec. Lanes of exec are written. */
void sim_wide_permute(uint32_t *to, const uint32_t *data, const uint32_t *at,
                      uint32_t off, uint32_t exec);
/* Words of 32 lanes in one piece of memory. */
typedef struct sim_wide {
    uint32_t *reg;              /* of n, 32 words each */
    const uint32_t *low, *high; /* of where a lane's are, from base on */
    uint64_t base;
    uint8_t *host; /* the piece, and how long it is */
    uint64_t bytes;
    uint32_t exec;
    unsigned n;
    uint8_t part; /* bytes of a word: 1, 2, 4; fewer than 4 of n 1 */
    bool store, sign;
} sim_wide;
typedef enum sim_wide_end {
    SIM_WIDE_FAR,  /* a lane of exec is, or may be, outside: nothing was done */
    SIM_WIDE_ROW,  /* all lanes, each right behind the one before; done */
    SIM_WIDE_ONE,  /* all lanes at one place; done */
    SIM_WIDE_DONE, /* at says where */
    SIM_WIDE_AT,   /* at says where each is to be moved */
} sim_wide_end;
sim_wide_end sim_wide_words(const sim_wide *x, uint64_t at[32]);

#endif
