/* sim_wide_avx512.c - see sim_wide.h. Compiled for AVX-512; elsewhere nobody
 * calls it.
 *
 * Reads alone: a scatter of the processor's takes as long as 32 stores, and its
 * elements come in any order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_wide.h"

#ifdef __AVX512F__
#    include <immintrin.h>
#    include <string.h>

/* high != NULL is asked once, not in the loop. */
static inline bool
offsets(const uint32_t *low, const uint32_t *high, const uint64_t from[2],
        uint32_t exec, uint64_t at[32])
{
    __m512i b = _mm512_set1_epi64((long long)from[0]);
    __m512i most = _mm512_set1_epi64((long long)from[1]);
    uint32_t far = 0;

#    pragma GCC unroll 4
    for (unsigned k = 0; k < 32; k += 8) {
        __m512i v =
            _mm512_add_epi64(b, _mm512_cvtepu32_epi64(_mm256_loadu_si256(
                                    (const __m256i_u *)(low + k))));

        if (high)
            v = _mm512_add_epi64(
                v, _mm512_slli_epi64(_mm512_cvtepu32_epi64(_mm256_loadu_si256(
                                         (const __m256i_u *)(high + k))),
                                     32));
        _mm512_storeu_si512(at + k, v);
        far |= (uint32_t)_mm512_cmpgt_epu64_mask(v, most) << k;
    }
    return !(far & exec);
}

bool
sim_wide_offsets(const uint32_t *low, const uint32_t *high, uint64_t base,
                 uint64_t most, uint32_t exec, uint64_t at[32])
{
    uint64_t from[2] = {base, most};

    return high ? offsets(low, high, from, exec, at)
                : offsets(low, NULL, from, exec, at);
}

bool
sim_wide_is_row(const uint32_t *low, const uint32_t *high, uint32_t step)
{
    __m512i first = _mm512_set1_epi32((int)low[0]);
    __m512i s = _mm512_set1_epi32((int)step), odd = _mm512_setzero_si512();
    __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    for (unsigned k = 0; k < 32; k += 16) {
        __m512i i = _mm512_add_epi32(lane, _mm512_set1_epi32((int)k));
        __m512i want = _mm512_add_epi32(first, _mm512_mullo_epi32(i, s));

        odd = _mm512_or_si512(
            odd, _mm512_xor_si512(want, _mm512_loadu_si512(low + k)));
        if (high)
            odd = _mm512_or_si512(
                odd, _mm512_xor_si512(_mm512_set1_epi32((int)high[0]),
                                      _mm512_loadu_si512(high + k)));
    }
    return !_mm512_test_epi32_mask(odd, odd);
}

void
sim_wide_gather(uint32_t *reg, unsigned n, const uint8_t *host,
                const uint64_t at[32], uint32_t exec)
{
    for (unsigned k = 0; k < 32; k += 8) {
        __m512i off = _mm512_loadu_si512(at + k);
        __mmask8 m = (__mmask8)(exec >> k);

        for (unsigned i = 0; m && i < n; i++)
            _mm256_mask_storeu_epi32(
                reg + 32 * i + k, m,
                _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), m, off,
                                            host + 4 * i, 1));
    }
}

void
sim_wide_row(uint32_t *reg, unsigned n, const uint8_t *host)
{
    __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i off = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)(4 * n)));

    for (unsigned k = 0; k < 32; k += 16, host += 64 * n)
        for (unsigned i = 0; i < n; i++)
            _mm512_storeu_si512(reg + 32 * i + k,
                                _mm512_i32gather_epi32(off, host + 4 * i, 1));
}

/* Row after row of words that lie as lanes do: n of each lane. */
static inline void
row_out(const uint32_t *reg, unsigned n, uint8_t *host)
{
    if (n == 1) {
        _mm512_storeu_si512(host, _mm512_loadu_si512(reg));
        _mm512_storeu_si512(host + 64, _mm512_loadu_si512(reg + 16));
        return;
    }
    for (unsigned i = 0; i < 32; i++, host += 4 * n)
        for (unsigned k = 0; k < n; k++)
            memcpy(host + 4 * k, reg + 32 * k + i, 4);
}

static inline void
row_in(uint32_t *reg, unsigned n, const uint8_t *host)
{
    if (n == 1) {
        _mm512_storeu_si512(reg, _mm512_loadu_si512(host));
        _mm512_storeu_si512(reg + 16, _mm512_loadu_si512(host + 64));
        return;
    }
    sim_wide_row(reg, n, host);
}

sim_wide_end
sim_wide_words(const sim_wide *x, uint64_t at[32])
{
    uint64_t most = x->bytes - 4ull * x->n, size = 128ull * x->n;
    uint64_t first =
        x->base + x->low[0] + (x->high ? (uint64_t)x->high[0] << 32 : 0);

    if (x->bytes < 4ull * x->n)
        return SIM_WIDE_FAR;
    if (x->exec == UINT32_MAX && x->low[1] == x->low[0] + 4 * x->n &&
        first < x->bytes && size <= x->bytes - first &&
        x->low[0] <= UINT32_MAX - size &&
        sim_wide_is_row(x->low, x->high, 4 * x->n)) {
        if (x->store)
            row_out(x->reg, x->n, x->host + first);
        else
            row_in(x->reg, x->n, x->host + first);
        return SIM_WIDE_DONE;
    }
    if (!sim_wide_offsets(x->low, x->high, x->base, most, x->exec, at))
        return SIM_WIDE_FAR;
    if (x->store || !(x->exec >> 8))
        return SIM_WIDE_AT;
    sim_wide_gather(x->reg, x->n, x->host, at, x->exec);
    return SIM_WIDE_DONE;
}

#else

sim_wide_end
sim_wide_words(const sim_wide *x, uint64_t at[32])
{
    (void)x, (void)at;
    return SIM_WIDE_FAR;
}

bool
sim_wide_offsets(const uint32_t *low, const uint32_t *high, uint64_t base,
                 uint64_t most, uint32_t exec, uint64_t at[32])
{
    (void)low, (void)high, (void)base, (void)most, (void)exec, (void)at;
    return false;
}

bool
sim_wide_is_row(const uint32_t *low, const uint32_t *high, uint32_t step)
{
    (void)low, (void)high, (void)step;
    return false;
}

void
sim_wide_gather(uint32_t *reg, unsigned n, const uint8_t *host,
                const uint64_t at[32], uint32_t exec)
{
    (void)reg, (void)n, (void)host, (void)at, (void)exec;
}

void
sim_wide_row(uint32_t *reg, unsigned n, const uint8_t *host)
{
    (void)reg, (void)n, (void)host;
}
#endif
