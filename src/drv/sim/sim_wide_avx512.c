/* sim_wide_avx512.c - see sim_wide.h. Compiled for AVX-512; elsewhere nobody
 * calls it.
 *
 * Lanes that lie one behind another, or all at one place, are whole loads and
 * stores; words of others are gathered, pairs and fours of them loaded lane by
 * lane and put in order by shuffles: half the time of a gather for each word.
 * Stores of others are the caller's: a scatter of the processor's takes as long
 * as 32 stores, and its elements come in any order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_wide.h"

#include <stddef.h>

#ifdef __AVX512F__
#    include <immintrin.h>

/* ---- where lanes are -------------------------------------------------- */

/* at[i] = base + low[i] + 2^32 high[i], where base is from[0]; whether none of
 * those in exec is greater than from[1]. */
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

/* Whether low[i] = low[0] + i * step, and high is the same everywhere. */
static inline bool
is_row(const uint32_t *low, const uint32_t *high, uint32_t step)
{
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i first = _mm512_set1_epi32((int)low[0]), odd;
    __m512i want = _mm512_add_epi32(
        first, _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)step)));

    odd = _mm512_xor_si512(want, _mm512_loadu_si512(low));
    want = _mm512_add_epi32(want, _mm512_set1_epi32((int)(16 * step)));
    odd = _mm512_or_si512(odd,
                          _mm512_xor_si512(want, _mm512_loadu_si512(low + 16)));
    if (high) {
        first = _mm512_set1_epi32((int)high[0]);
        odd = _mm512_or_si512(
            odd, _mm512_xor_si512(first, _mm512_loadu_si512(high)));
        odd = _mm512_or_si512(
            odd, _mm512_xor_si512(first, _mm512_loadu_si512(high + 16)));
    }
    return !_mm512_test_epi32_mask(odd, odd);
}

/* ---- words to registers ----------------------------------------------- */

/* Lanes of exec from k on get what stands in v. */
static inline void
keep(uint32_t *reg, unsigned k, uint32_t exec, __m512i v)
{
    if (exec != UINT32_MAX)
        v = _mm512_mask_mov_epi32(_mm512_loadu_si512(reg + k),
                                  (__mmask16)(exec >> k), v);
    _mm512_storeu_si512(reg + k, v);
}

/* Offsets of 16 lanes; of those that do not run 0, which is there. */
static inline void
places(uint64_t to[16], const uint64_t *at, uint32_t exec)
{
    for (unsigned i = 0; i < 16; i += 8)
        _mm512_storeu_si512(
            to + i, _mm512_maskz_loadu_epi64((__mmask8)(exec >> i), at + i));
}

static inline __m512i
four(const uint8_t *host, const uint64_t at[16], unsigned j)
{
    __m512i v = _mm512_castsi128_si512(
        _mm_loadu_si128((const __m128i_u *)(host + at[j])));

    v = _mm512_inserti32x4(
        v, _mm_loadu_si128((const __m128i_u *)(host + at[j + 4])), 1);
    v = _mm512_inserti32x4(
        v, _mm_loadu_si128((const __m128i_u *)(host + at[j + 8])), 2);
    return _mm512_inserti32x4(
        v, _mm_loadu_si128((const __m128i_u *)(host + at[j + 12])), 3);
}

/* Four registers of 16 lanes, that is of four times four words each. */
static inline void
turned(__m512i v[4])
{
    __m512i a = _mm512_unpacklo_epi32(v[0], v[1]);
    __m512i b = _mm512_unpackhi_epi32(v[0], v[1]);
    __m512i c = _mm512_unpacklo_epi32(v[2], v[3]);
    __m512i d = _mm512_unpackhi_epi32(v[2], v[3]);

    v[0] = _mm512_unpacklo_epi64(a, c);
    v[1] = _mm512_unpackhi_epi64(a, c);
    v[2] = _mm512_unpacklo_epi64(b, d);
    v[3] = _mm512_unpackhi_epi64(b, d);
}

static inline void
fours(uint32_t *reg, const uint8_t *host, const uint64_t *at, uint32_t exec)
{
    for (unsigned k = 0; k < 32; k += 16) {
        uint64_t from[16];
        __m512i v[4];

        places(from, at + k, exec >> k);
        for (unsigned j = 0; j < 4; j++)
            v[j] = four(host, from, j);
        turned(v);
        for (unsigned j = 0; j < 4; j++)
            keep(reg + 32 * j, k, exec, v[j]);
    }
}

static inline __m512i
evens(void)
{
    return _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                             28, 30);
}

/* Two registers of 16 lanes of pairs in memory's order. */
static inline void
unpaired(uint32_t *reg, unsigned k, uint32_t exec, __m512i a, __m512i b)
{
    __m512i odd = _mm512_add_epi32(evens(), _mm512_set1_epi32(1));

    keep(reg, k, exec, _mm512_permutex2var_epi32(a, evens(), b));
    keep(reg + 32, k, exec, _mm512_permutex2var_epi32(a, odd, b));
}

static inline void
pairs(uint32_t *reg, const uint8_t *host, const uint64_t *at, uint32_t exec)
{
    for (unsigned k = 0; k < 32; k += 16) {
        __m512i v[2];

        for (unsigned i = 0; i < 2; i++)
            v[i] = _mm512_mask_i64gather_epi64(
                _mm512_setzero_si512(), (__mmask8)(exec >> (k + 8 * i)),
                _mm512_loadu_si512(at + k + 8 * i), host, 1);
        unpaired(reg, k, exec, v[0], v[1]);
    }
}

/* One word of each lane. */
static inline __m512i
gathered(const uint8_t *host, const uint64_t *at, uint32_t exec)
{
    __m256i v[2];

    for (unsigned i = 0; i < 2; i++)
        v[i] = _mm512_mask_i64gather_epi32(
            _mm256_setzero_si256(), (__mmask8)(exec >> 8 * i),
            _mm512_loadu_si512(at + 8 * i), host, 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(v[0]), v[1], 1);
}

void
sim_wide_gather(uint32_t *reg, unsigned n, const uint8_t *host,
                const uint64_t at[32], uint32_t exec)
{
    if (n == 4) {
        fours(reg, host, at, exec);
        return;
    }
    if (n == 2) {
        pairs(reg, host, at, exec);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < 32; k += 16)
            keep(reg + 32 * i, k, exec,
                 gathered(host + 4 * i, at + k, exec >> k));
}

/* ---- lanes that read each other ---------------------------------------- */

void
sim_wide_permute(uint32_t *to, const uint32_t *data, const uint32_t *at,
                 uint32_t off, uint32_t exec)
{
    __m512i a = _mm512_loadu_si512(data), b = _mm512_loadu_si512(data + 16);
    __m512i run = _mm512_set1_epi32((int)exec), v[2];

    for (unsigned k = 0; k < 2; k++) {
        __m512i i = _mm512_add_epi32(_mm512_loadu_si512(at + 16 * k),
                                     _mm512_set1_epi32((int)off));
        __mmask16 there;

        i = _mm512_and_si512(_mm512_srli_epi32(i, 2), _mm512_set1_epi32(31));
        there = _mm512_test_epi32_mask(_mm512_srlv_epi32(run, i),
                                       _mm512_set1_epi32(1));
        v[k] = _mm512_maskz_permutex2var_epi32(there, a, i, b);
    }
    keep(to, 0, exec, v[0]);
    keep(to, 16, exec, v[1]);
}

/* ---- rows ------------------------------------------------------------- */

void
sim_wide_row(uint32_t *reg, unsigned n, const uint8_t *host)
{
    const __m512i lane =
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i off = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)(4 * n)));

    for (unsigned k = 0; k < 32; k += 16, host += 64 * n) {
        static const uint64_t in_order[16] = {0,   16,  32,  48,  64,  80,
                                              96,  112, 128, 144, 160, 176,
                                              192, 208, 224, 240};

        if (n == 1) {
            _mm512_storeu_si512(reg + k, _mm512_loadu_si512(host));
        } else if (n == 2) {
            unpaired(reg, k, UINT32_MAX, _mm512_loadu_si512(host),
                     _mm512_loadu_si512(host + 64));
        } else if (n == 4) {
            __m512i v[4];

            for (unsigned j = 0; j < 4; j++)
                v[j] = four(host, in_order, j);
            turned(v);
            for (unsigned j = 0; j < 4; j++)
                _mm512_storeu_si512(reg + 32 * j + k, v[j]);
        } else {
            for (unsigned i = 0; i < n; i++)
                _mm512_storeu_si512(
                    reg + 32 * i + k,
                    _mm512_i32gather_epi32(off, host + 4 * i, 1));
        }
    }
}

static inline void
pairs_out(const uint32_t *reg, uint8_t *host)
{
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                          21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));

    for (unsigned k = 0; k < 32; k += 16, host += 128) {
        __m512i a = _mm512_loadu_si512(reg + k);
        __m512i b = _mm512_loadu_si512(reg + 32 + k);

        _mm512_storeu_si512(host, _mm512_permutex2var_epi32(a, low, b));
        _mm512_storeu_si512(host + 64, _mm512_permutex2var_epi32(a, high, b));
    }
}

static inline void
fours_out(const uint32_t *reg, uint8_t *host)
{
    for (unsigned k = 0; k < 32; k += 16, host += 256) {
        __m512i v[4];

        for (unsigned j = 0; j < 4; j++)
            v[j] = _mm512_loadu_si512(reg + 32 * j + k);
        turned(v); /* v[j]: lanes j, j + 4, j + 8, j + 12 */
        for (unsigned j = 0; j < 4; j++) {
            uint8_t *p = host + 16 * j;

            _mm_storeu_si128((__m128i_u *)p, _mm512_castsi512_si128(v[j]));
            _mm_storeu_si128((__m128i_u *)(p + 64),
                             _mm512_extracti32x4_epi32(v[j], 1));
            _mm_storeu_si128((__m128i_u *)(p + 128),
                             _mm512_extracti32x4_epi32(v[j], 2));
            _mm_storeu_si128((__m128i_u *)(p + 192),
                             _mm512_extracti32x4_epi32(v[j], 3));
        }
    }
}

/* Row after row of words that lie as lanes do: n of each lane. */
void
sim_wide_row_out(const uint32_t *reg, unsigned n, uint8_t *host)
{
    if (n == 2) {
        pairs_out(reg, host);
        return;
    }
    if (n == 4) {
        fours_out(reg, host);
        return;
    }
    for (unsigned k = 0; n == 1 && k < 32; k += 16)
        _mm512_storeu_si512(host + 4 * k, _mm512_loadu_si512(reg + k));
    for (unsigned i = 0; n > 1 && i < 32; i++, host += 4 * n)
        for (unsigned k = 0; k < n; k++)
            __builtin_memcpy(host + 4 * k, reg + 32 * k + i, 4);
}

/* ---- bytes and halves ------------------------------------------------- */

/* The low bits of words. */
static inline __m512i
part_of(const sim_wide *x, __m512i v)
{
    __m128i by = _mm_cvtsi32_si128(32 - 8 * (int)x->part);

    v = _mm512_sll_epi32(v, by);
    return x->sign ? _mm512_sra_epi32(v, by) : _mm512_srl_epi32(v, by);
}

static inline __m512i
widened(const sim_wide *x, const uint8_t *p)
{
    if (x->part == 2) {
        __m256i v = _mm256_loadu_si256((const __m256i_u *)p);

        return x->sign ? _mm512_cvtepi16_epi32(v) : _mm512_cvtepu16_epi32(v);
    }
    __m128i v = _mm_loadu_si128((const __m128i_u *)p);

    return x->sign ? _mm512_cvtepi8_epi32(v) : _mm512_cvtepu8_epi32(v);
}

static inline void
parts_row(const sim_wide *x, uint8_t *p)
{
    for (unsigned k = 0; k < 32; k += 16, p += 16 * x->part) {
        __m512i v;

        if (!x->store) {
            _mm512_storeu_si512(x->reg + k, widened(x, p));
            continue;
        }
        v = _mm512_loadu_si512(x->reg + k);
        if (x->part == 2)
            _mm256_storeu_si256((__m256i_u *)p, _mm512_cvtepi32_epi16(v));
        else
            _mm_storeu_si128((__m128i_u *)p, _mm512_cvtepi32_epi8(v));
    }
}

/* By the words that begin there: the caller knows that they are there. */
static inline void
parts(const sim_wide *x, const uint64_t at[32])
{
    for (unsigned k = 0; k < 32; k += 16)
        keep(x->reg, k, x->exec,
             part_of(x, gathered(x->host, at + k, x->exec >> k)));
}

/* ---- all -------------------------------------------------------------- */

/* All lanes that run read one place. */
static inline void
splat(const sim_wide *x, const uint8_t *p)
{
    for (unsigned i = 0; i < x->n; i++) {
        uint32_t word = 0;
        __m512i v;

        __builtin_memcpy(&word, p + 4 * i, x->part);
        v = _mm512_set1_epi32((int)word);
        v = x->part < 4 ? part_of(x, v) : v;
        keep(x->reg + 32 * i, 0, x->exec, v);
        keep(x->reg + 32 * i, 16, x->exec, v);
    }
}

static inline void
move_row(const sim_wide *x, uint8_t *p)
{
    if (x->part < 4)
        parts_row(x, p);
    else if (x->store)
        sim_wide_row_out(x->reg, x->n, p);
    else
        sim_wide_row(x->reg, x->n, p);
}

/* Where lanes lie as a row, or all at one place. FAR: they do not. */
static inline sim_wide_end
in_one(const sim_wide *x, uint64_t first, uint64_t each)
{
    uint32_t step = x->low[1] - x->low[0];
    uint64_t size = 32 * each;

    if (x->exec != UINT32_MAX || first >= x->bytes)
        return SIM_WIDE_FAR;
    if (!step && !x->store && each <= x->bytes - first &&
        is_row(x->low, x->high, 0)) {
        splat(x, x->host + first);
        return SIM_WIDE_ONE;
    }
    if (step != each || size > x->bytes - first ||
        x->low[0] > UINT32_MAX - size || !is_row(x->low, x->high, step))
        return SIM_WIDE_FAR;
    move_row(x, x->host + first);
    return SIM_WIDE_ROW;
}

sim_wide_end
sim_wide_words(const sim_wide *x, uint64_t at[32])
{
    uint64_t each = x->part * x->n, need = !x->store && x->part < 4 ? 4 : each;
    uint64_t from[2];
    sim_wide_end end;

    if (x->bytes < need)
        return SIM_WIDE_FAR;
    at[0] = x->base + x->low[0] + (x->high ? (uint64_t)x->high[0] << 32 : 0);
    end = in_one(x, at[0], each);
    if (end != SIM_WIDE_FAR)
        return end;
    from[0] = x->base;
    from[1] = x->bytes - need;
    /* high != NULL is asked once, not in the loop. */
    if (x->high ? !offsets(x->low, x->high, from, x->exec, at)
                : !offsets(x->low, NULL, from, x->exec, at))
        return SIM_WIDE_FAR;
    if (x->store || !(x->exec >> 8))
        return SIM_WIDE_AT;
    if (x->part < 4)
        parts(x, at);
    else
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

void
sim_wide_permute(uint32_t *to, const uint32_t *data, const uint32_t *at,
                 uint32_t off, uint32_t exec)
{
    (void)to, (void)data, (void)at, (void)off, (void)exec;
}

void
sim_wide_row_out(const uint32_t *reg, unsigned n, uint8_t *host)
{
    (void)reg, (void)n, (void)host;
}
#endif
