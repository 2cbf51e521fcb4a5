/* mat_avx512.h - what the kernels of mat_avx512.c and mat_amx.c share: how
 * packed weights and their scales become registers.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MAT_AVX512_H
#define BR_MAT_AVX512_H

#include "drv/cpu/mat_int.h"
#include "model/quant_int.h"

#include <immintrin.h>

static MAT_INLINE __m512i
load(const void *p)
{
    return _mm512_loadu_si512(p);
}

static MAT_INLINE __m512i
splat4(const void *p)
{
    int32_t v;

    memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
}

/* acc + w times the four activations, or the two in BF16, at p, which every
 * output takes. The instruction reads and spreads them by itself; gcc 12 makes
 * two of it with a register in between, and those, 192, are what bounds how
 * far the processor looks ahead: 4 to 9 % of Q8_0. */
#if defined MAT_BY_FUNCTIONS || defined BR_ONE_COPY || defined BR_ONE_TILE
#    define DOT(instruction, acc, w, p, in_c) ((acc) = (in_c))
#else
typedef int32_t any_four __attribute__((may_alias, aligned(1)));
#    define DOT(instruction, acc, w, p, in_c)      \
        __asm__(instruction " %2%{1to16%}, %1, %0" \
                : "+v"(acc)                        \
                : "v"(w), "m"(*(const any_four *)(const void *)(p)))
#endif

static MAT_INLINE __m512i
dot4(__m512i acc, __m512i w, const uint8_t *p)
{
    DOT("vpdpbusd", acc, w, p, _mm512_dpbusd_epi32(acc, w, splat4(p)));
    return acc;
}

static MAT_INLINE __m512i
dot2(__m512i acc, __m512i w, const uint8_t *p)
{
    DOT("vpdpwssd", acc, w, p, _mm512_dpwssd_epi32(acc, w, splat4(p)));
    return acc;
}

/* ---- weights ------------------------------------------------------------- */

/* Bits of v's bytes from position `from` to 4 and up. */
static MAT_INLINE __m512i
high_bits(__m512i v, int from, int mask)
{
    v = from <= 4 ? _mm512_slli_epi16(v, (unsigned)(4 - from))
                  : _mm512_srli_epi16(v, (unsigned)(from - 4));
    return _mm512_and_si512(v, _mm512_set1_epi8((char)mask));
}

static MAT_INLINE __m512i
levels(mat_level level)
{
    const int8_t *t = level == MAT_IQ4 ? br_iq4_levels : br_fp4_levels;

    return _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)t));
}

/* Weights of group g of a step as stored, or by their table of levels. */
static MAT_INLINE __m512i
load_number(const mat_format *f, const uint8_t *p, int g)
{
    __m512i v;

    if (f->low == 8)
        return load(p + 64 * g);
    v = load(p + 64 * (g / 2));
    v = _mm512_and_si512(g % 2 ? _mm512_srli_epi16(v, 4) : v,
                         _mm512_set1_epi8(15));
    if (f->high == 1)
        v = _mm512_or_si512(v, high_bits(load(p + 256), g, 0x10));
    else if (f->high == 2)
        v = _mm512_or_si512(
            v, high_bits(load(p + 256 + 64 * (g / 4)), 2 * (g % 4), 0x30));
    return f->level == MAT_PLAIN ? v : _mm512_shuffle_epi8(levels(f->level), v);
}

/* ---- scales -------------------------------------------------------------- */

static MAT_INLINE __m512
halves(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}

/* 2^(e - 128); the two smallest are subnormal. */
static MAT_INLINE __m512
mx_scales(const uint8_t *p)
{
    __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
    __m512i big =
        _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    __mmask16 small = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(2), e);

    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(big, small, tiny));
}

/* Byte i of each output's four as a number of 32 bits, or bytes i and i + 1 as
 * two of 16. At the top first, where a sign is to come down. */
static MAT_INLINE __m512i
spread(const mat_format *f, __m512i v, int i)
{
    const __m512i base = _mm512_broadcast_i32x4(
        f->sub == 16
            ? _mm_setr_epi8(-128, -128, -128, 0, -128, -128, -128, 4, -128,
                            -128, -128, 8, -128, -128, -128, 12)
            : _mm_setr_epi8(0, -128, -128, -128, 4, -128, -128, -128, 8, -128,
                            -128, -128, 12, -128, -128, -128));

    if (f->sub == 16)
        return _mm512_srai_epi32(
            _mm512_shuffle_epi8(
                v, _mm512_add_epi8(base, _mm512_set1_epi32(i << 24))),
            24);
    return _mm512_shuffle_epi8(v, _mm512_add_epi8(base, _mm512_set1_epi32(i)));
}

static MAT_INLINE __m512i
spread_pair(const mat_format *f, __m512i v, int i)
{
    const __m512i base = _mm512_broadcast_i32x4(
        f->sub == 16 ? _mm_setr_epi8(-128, 0, -128, 1, -128, 4, -128, 5, -128,
                                     8, -128, 9, -128, 12, -128, 13)
                     : _mm_setr_epi8(0, -128, 1, -128, 4, -128, 5, -128, 8,
                                     -128, 9, -128, 12, -128, 13, -128));

    if (f->sub == 16)
        return _mm512_srai_epi16(
            _mm512_shuffle_epi8(
                v, _mm512_add_epi8(base, _mm512_set1_epi16((int16_t)(i << 8)))),
            8);
    return _mm512_shuffle_epi8(
        v, _mm512_add_epi8(base, _mm512_set1_epi16((int16_t)i)));
}

/* Scales as bytes, four sub-blocks to a register; what goes with the sums of
 * activations: minimums, or scales where the bias is to be taken off. */
typedef struct scales {
    __m512i s[4], low[4];
} scales;

static MAT_INLINE void
load_scales(const mat_format *f, const uint8_t *p, scales *k)
{
    const __m512i four = _mm512_set1_epi8(15), two = _mm512_set1_epi8(0x30);
    __m512i s = load(p), m = load(p + 64), top = load(p + 128);

    if (f->sub == 16) {
        k->s[0] = k->low[0] = s;
        k->s[1] = k->low[1] = m;
        k->s[2] = k->low[2] = top;
        k->s[3] = k->low[3] = load(p + 192);
        return;
    }
    k->s[0] = _mm512_or_si512(_mm512_and_si512(s, four),
                              _mm512_and_si512(_mm512_slli_epi16(top, 4), two));
    k->s[1] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(s, 4), four),
                              _mm512_and_si512(_mm512_slli_epi16(top, 2), two));
    k->low[0] =
        _mm512_or_si512(_mm512_and_si512(m, four), _mm512_and_si512(top, two));
    k->low[1] =
        _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(m, 4), four),
                        _mm512_and_si512(_mm512_srli_epi16(top, 2), two));
}

/* ---- a panel of blocks --------------------------------------------------- */

typedef struct span {
    const uint8_t *head;
    uint32_t b0, b1; /* blocks */
    size_t bytes;
    const uint8_t *wide; /* its weights, unpacked, where they are */
} span;

/* Sums of all rows wait in memory, `hand` rows of a chain together, a hand's
 * chains after each other, `step` apart. */
static MAT_INLINE void
clear_sums(__m512 *of, int n)
{
    for (int i = 0; i < n; i++)
        of[i] = _mm512_setzero_ps();
}

static MAT_INLINE void
store_sums(const mat_tile *t, int panel, const __m512 *of, int hand, int step)
{
    for (int r = 0; r < t->n_rows; r++) {
        const __m512 *c = of + r / hand * MAT_CHAINS * step + r % hand;

        _mm512_storeu_ps(
            t->out[r] + panel * BR_MAT_PANEL,
            _mm512_add_ps(_mm512_add_ps(c[0], c[step]),
                          _mm512_add_ps(c[2 * step], c[3 * step])));
    }
}

#endif
