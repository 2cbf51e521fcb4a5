/* mat_avx2.h - what the kernels of mat_avx2.c and mat_avx2_many.c share: how
 * packed weights become bytes, and the products of weights below eight bits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MAT_AVX2_H
#define BR_MAT_AVX2_H

#include "drv/cpu/mat_int.h"
#include "model/quant_int.h"

#include <immintrin.h>

/* From MANY rows on a panel is unpacked once for all of them. */
enum { TILE_ROWS = 4, MANY = 24 };

static MAT_INLINE __m256i
load(const void *p)
{
    return _mm256_loadu_si256(p);
}

static MAT_INLINE __m256i
splat4(const void *p)
{
    int32_t v;

    memcpy(&v, p, 4);
    return _mm256_set1_epi32(v);
}

/* A sum stays where it is: without this gcc 12 multiplies first, 64 products
 * in memory, and adds later. */
static MAT_INLINE __m256i
pin(__m256i v)
{
    __asm__ volatile("" : "+x"(v));
    return v;
}

/* ---- weights ------------------------------------------------------------- */

/* Bits of v's bytes from position `from` to 4 and up. */
static MAT_INLINE __m256i
high_bits(__m256i v, int from, int mask)
{
    v = from <= 4 ? _mm256_slli_epi16(v, 4 - from)
                  : _mm256_srli_epi16(v, from - 4);
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}

static MAT_INLINE __m256i
level_table(mat_level level)
{
    __m128i t = _mm_loadu_si128(
        (const void *)(level == MAT_IQ4 ? br_iq4_levels : br_fp4_levels));

    /* so that they are unsigned; off_bits tells */
    if (level == MAT_FP4)
        t = _mm_add_epi8(t, _mm_set1_epi8(16));
    return _mm256_broadcastsi128_si256(t);
}

/* Weights of group g: outputs 0-7 and 8-15. */
static MAT_INLINE void
load_group(const mat_format *f, const uint8_t *p, int g, __m256i w[2])
{
    const __m256i low = _mm256_set1_epi8(15);

    MAT_UNROLL
    for (int h = 0; h < 2; h++) {
        __m256i v, top;

        if (f->low == 8) {
            w[h] = load(p + 64 * g + 32 * h);
            continue;
        }
        v = load(p + 64 * (g / 2) + 32 * h);
        v = _mm256_and_si256(g % 2 ? _mm256_srli_epi16(v, 4) : v, low);
        if (f->high == 1) {
            top = load(p + 256 + 32 * h);
            v = _mm256_or_si256(v, high_bits(top, g, 0x10));
        } else if (f->high == 2) {
            top = load(p + 256 + 64 * (g / 4) + 32 * h);
            v = _mm256_or_si256(v, high_bits(top, 2 * (g % 4), 0x30));
        }
        w[h] = f->level == MAT_PLAIN
                   ? v
                   : _mm256_shuffle_epi8(level_table(f->level), v);
    }
}

/* Eight bits do not pile up in 16. */
static MAT_INLINE bool
is_wide(const mat_format *f)
{
    return f->low == 8 || f->level == MAT_IQ4;
}

/* k whose products fit into a 16-bit lane (two of every four k meet there). */
static MAT_INLINE int
pile(const mat_format *f)
{
    return f->sub == 16 || (f->high == 1 && f->off == 0) ? 16 : 32;
}

static MAT_INLINE int
off_bits(const mat_format *f)
{
    return f->level == MAT_FP4 ? 4 : f->off == 0 ? 0 : __builtin_ctz(f->off);
}

/* ---- products ------------------------------------------------------------ */

/* The rows of a tile, at the step or block that is multiplied. */
typedef struct rows {
    const int8_t *q[TILE_ROWS];
    const int16_t *npair[TILE_ROWS];
} tile_rows;

/* Part 0 or 1 of a step, or all of it, piled up in 16-bit lanes. bytes: the
 * step is unpacked. */
static MAT_INLINE void
pile_up(const mat_format *f, bool bytes, const uint8_t *p, int part, int n,
        const tile_rows *x, __m256i acc[TILE_ROWS][2])
{
    int g0 = part * pile(f) / 4, g1 = g0 + pile(f) / 4;

    MAT_UNROLL
    for (int g = g0; g < g1; g++) {
        __m256i w[2];

        load_group(bytes ? &mat_format_Q8_0 : f, p, g, w);
        MAT_UNROLL
        for (int r = 0; r < n; r++) {
            __m256i a = splat4(x->q[r] + 4 * g);

            acc[r][0] =
                pin(_mm256_add_epi16(acc[r][0], _mm256_maddubs_epi16(w[0], a)));
            acc[r][1] =
                pin(_mm256_add_epi16(acc[r][1], _mm256_maddubs_epi16(w[1], a)));
        }
    }
}

/* A step of 32 k: sum[row][half] += scale * dot, 32 bits. scale[part]: of the
 * first and the last 16 k, as pairs of 16 bits. */
static MAT_INLINE void
narrow_step(const mat_format *f, bool bytes, const uint8_t *p, int n,
            const tile_rows *x, __m256i scale[2][2], __m256i sum[TILE_ROWS][2])
{
    MAT_UNROLL
    for (int part = 0; part < 32 / pile(f); part++) {
        __m256i acc[TILE_ROWS][2];

        MAT_UNROLL
        for (int r = 0; r < n; r++)
            acc[r][0] = acc[r][1] =
                off_bits(f) == 0
                    ? _mm256_setzero_si256()
                    : _mm256_slli_epi16(splat4(x->npair[r] + 2 * part),
                                        off_bits(f));
        pile_up(f, bytes, p, part, n, x, acc);
        MAT_UNROLL
        for (int r = 0; r < n; r++)
            for (int h = 0; h < 2; h++)
                sum[r][h] = _mm256_add_epi32(
                    sum[r][h], _mm256_madd_epi16(acc[r][h], scale[part][h]));
    }
}

/* ---- scales --------------------------------------------------------------- */

static MAT_INLINE __m256
halves(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}

/* 2^(e - 128); the two smallest are subnormal. */
static MAT_INLINE __m256
mx_scales(const uint8_t *p)
{
    __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
    __m256i two = _mm256_set1_epi32(2), one = _mm256_set1_epi32(1);
    __m256i big = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
    __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);

    return _mm256_castsi256_ps(
        _mm256_blendv_epi8(big, tiny, _mm256_cmpgt_epi32(two, e)));
}

/* Bytes i and j of each output's four, as two numbers of 16 bits. */
static MAT_INLINE __m256i
spread(__m256i v, int i, int j)
{
    const __m128i first = _mm_setr_epi8(0, -128, 0, -128, 4, -128, 4, -128, 8,
                                        -128, 8, -128, 12, -128, 12, -128);

    return _mm256_shuffle_epi8(
        v, _mm256_add_epi8(_mm256_broadcastsi128_si256(first),
                           _mm256_set1_epi32(i | j << 16)));
}

static MAT_INLINE __m256i
spread_signed(__m256i v, int i)
{
    v = _mm256_slli_epi16(spread(v, i, i), 8);
    return _mm256_srai_epi16(v, 8);
}

/* Scales as bytes: s[v][h] holds sub-blocks 4 v.. of eight outputs. */
typedef struct scales {
    __m256i s[4][2], min[2][2];
} scales;

static MAT_INLINE void
load_scales(const mat_format *f, const uint8_t *p, scales *k)
{
    const __m256i low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);

    MAT_UNROLL
    for (int h = 0; h < 2; h++) {
        __m256i s = load(p + 32 * h), m = load(p + 64 + 32 * h);
        __m256i top = load(p + 128 + 32 * h);

        if (f->sub == 16) {
            k->s[0][h] = s;
            k->s[1][h] = m;
            k->s[2][h] = top;
            k->s[3][h] = load(p + 192 + 32 * h);
            continue;
        }
        k->s[0][h] =
            _mm256_or_si256(_mm256_and_si256(s, low),
                            _mm256_and_si256(_mm256_slli_epi16(top, 4), two));
        k->s[1][h] =
            _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(s, 4), low),
                            _mm256_and_si256(_mm256_slli_epi16(top, 2), two));
        k->min[0][h] = _mm256_or_si256(_mm256_and_si256(m, low),
                                       _mm256_and_si256(top, two));
        k->min[1][h] =
            _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(m, 4), low),
                            _mm256_and_si256(_mm256_srli_epi16(top, 2), two));
    }
}

/* Formats below eight bits only. */
void mat_avx2_many(const mat_tile *t);

#endif
