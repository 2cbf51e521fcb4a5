/* sim_plain.h - the usual vector instruction: 32 lanes, sources as they are.
 *
 * Decoding leaves in sim_args where each source is, so that running one asks
 * nothing: constants lie in all lanes already, scalars are put there here, a
 * vector register is its own 32 words. Included where code for each instruction
 * set is made: sim_lane.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_PLAIN_H
#define BR_SIM_PLAIN_H

#include "drv/sim/sim_int.h"

#include <string.h>
#ifdef __AVX2__
#    include <immintrin.h>
#endif

/* The words of a source; buf: where a scalar is put in all lanes. */
static inline const uint32_t *
sim_arg_as_is(const sim_wave *w, const sim_args *a, unsigned k,
              uint32_t buf[2 * SIM_LANES])
{
    unsigned reg = a->from[k] & ~SIM_ARG_SCALAR;
    uint32_t v;

    if (a->k[k])
        return a->k[k];
    if (!(a->from[k] & SIM_ARG_SCALAR))
        return w->v + a->from[k];
    v = sim_word(w, reg, 0);
    for (unsigned i = 0; i < SIM_LANES; i++)
        buf[i] = v;
    if (a->wide & 1u << k) {
        v = sim_word(w, reg, 1);
        for (unsigned i = 0; i < SIM_LANES; i++)
            buf[SIM_LANES + i] = v;
    }
    return buf;
}

/* The same with its sign as it is asked for. */
static __attribute__((noinline)) const uint32_t *
sim_arg_odd(const sim_wave *w, const sim_args *a, unsigned k,
            uint32_t buf[2 * SIM_LANES])
{
    const uint32_t *p = sim_arg_as_is(w, a, k, buf);
    uint32_t keep = a->abs & 1u << k ? 0x7fffffff : UINT32_MAX;
    uint32_t turn = a->neg & 1u << k ? 0x80000000 : 0;

    if (!((a->neg | a->abs) & 1u << k))
        return p;
    for (unsigned i = 0; i < SIM_LANES; i++)
        buf[i] = (p[i] & keep) ^ turn;
    return buf;
}

/* Most are vector registers or constants, and where they are is one addition. */
static inline const uint32_t *
sim_arg(const sim_wave *w, const sim_args *a, unsigned k,
        uint32_t buf[2 * SIM_LANES])
{
    if (__builtin_expect(a->odd & 1u << k, 0))
        return sim_arg_odd(w, a, k, buf);
    return a->k[k] ? a->k[k] : w->v + a->from[k];
}

/* Lanes of mask get what stands in from. What a masked store left is there for
 * the next load after 24 cycles of a Zen 4, of a whole one after 13. */
static inline void
sim_blend(uint32_t *to, const uint32_t *from, uint32_t mask)
{
#ifdef __AVX512F__
    for (unsigned k = 0; k < SIM_LANES; k += 16) {
        __m512i v = _mm512_mask_loadu_epi32(_mm512_loadu_si512(to + k),
                                            (__mmask16)(mask >> k), from + k);

        _mm512_storeu_si512(to + k, v);
    }
#else
#    define M(n)                                                    \
        {                                                           \
            0u - ((n)&1), 0u - ((n) >> 1 & 1), 0u - ((n) >> 2 & 1), \
                0u - ((n) >> 3)                                     \
        }
    static const uint32_t fours[16][4] = {
        M(0u), M(1u), M(2u),  M(3u),  M(4u),  M(5u),  M(6u),  M(7u),
        M(8u), M(9u), M(10u), M(11u), M(12u), M(13u), M(14u), M(15u)};
#    undef M

    if (mask == UINT32_MAX) {
        memcpy(to, from, SIM_LANES * sizeof *to);
        return;
    }
    for (unsigned k = 0; k < SIM_LANES; k += 4) {
        const uint32_t *m = fours[mask >> k & 15];

        for (unsigned i = 0; i < 4; i++)
            to[k + i] = (from[k + i] & m[i]) | (to[k + i] & ~m[i]);
    }
#endif
}

#endif
