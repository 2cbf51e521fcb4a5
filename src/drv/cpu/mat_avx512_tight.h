/* mat_avx512_tight.h - BF16 in twelve bits (mat_tight.h) in AVX-512: a part of
 * mat_avx512_floats.h, whose products it takes.
 *
 * A group is three loads, nine operations and four registers of weights as they
 * were. Of up to 15 rows they are multiplied at once: memory is the bound,
 * and 192 bytes take some 20 cycles to come. For more rows a piece of each
 * panel is laid out as it was first, in a cache, and goes past as any other; of
 * hundreds, whole panels are (br_mul's loose).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MAT_AVX512_TIGHT_H
#define BR_MAT_AVX512_TIGHT_H

#include "drv/cpu/mat_tight.h"

/* The groups of a piece, one after the other. */
typedef struct tight_walk {
    const uint8_t *group, *spare;
    const uint16_t *at; /* the group that has the next spare */
    __m512i high;       /* the table, in each 16 bytes */
} tight_walk;

static MAT_INLINE tight_walk
tight_piece(const br_mat *m, const uint8_t *panel, uint32_t piece)
{
    const tight_head *h = (const void *)panel;
    uint32_t first = tight_first(m, h, piece);

    return (tight_walk){
        .group = panel + tight_head_bytes(m->n_in) +
                 (size_t)piece * tight_groups(m->n_in) * TIGHT_GROUP,
        .spare = tight_pool_of(m)->spare[tight_spare(m, h) + first],
        .at = h->at + first,
        .high = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)h->high)),
    };
}

/* Four lines of group g of the panel. */
static MAT_INLINE void
tight_group(tight_walk *k, uint32_t g, __m512i *w)
{
    __m512i four = _mm512_set1_epi8(15), places = load(k->group + 128);
    __m512i low0 = load(k->group), low1 = load(k->group + 64), high0, high1;

    if (__builtin_expect(*k->at != g, 1)) {
        high0 = _mm512_shuffle_epi8(k->high, _mm512_and_si512(places, four));
        high1 = _mm512_shuffle_epi8(
            k->high, _mm512_and_si512(_mm512_srli_epi16(places, 4), four));
    } else {
        high0 = load(k->spare);
        high1 = load(k->spare + 64);
        k->spare += TIGHT_HIGHS;
        k->at++;
    }
    w[0] = _mm512_unpacklo_epi8(low0, high0);
    w[1] = _mm512_unpackhi_epi8(low0, high0);
    w[2] = _mm512_unpacklo_epi8(low1, high1);
    w[3] = _mm512_unpackhi_epi8(low1, high1);
    k->group += TIGHT_GROUP;
}

/* Spares lie apart from the stream: those of a piece are called for one before. */
static MAT_INLINE void
call_spares(const br_mat *m, const uint8_t *panel, uint32_t piece)
{
    const tight_head *h = (const void *)panel;
    const uint8_t *p = tight_pool_of(m)->spare[tight_spare(m, h)];
    uint32_t end = tight_first(m, h, BR_MIN(piece + 2, 8u));
    uint32_t i = tight_first(m, h, piece == 0 ? 0 : piece + 1);

    for (; i < end; i++) {
        _mm_prefetch((const void *)(p + i * TIGHT_HIGHS), _MM_HINT_T0);
        _mm_prefetch((const void *)(p + i * TIGHT_HIGHS + 64), _MM_HINT_T0);
    }
}

/* One line as in pair_line, or as in float_lines. */
static MAT_INLINE void
tight_line(int type, __m512i w, int n, const uint8_t *const *x, uint32_t i,
           float_sums acc)
{
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        if (type == PAIRS) {
            acc[0][r][i % 2] = dot_pairs(acc[0][r][i % 2], w, x[r] + 4 * i);
        } else {
            MAT_UNROLL
            for (int l = 0; l < 2; l++)
                acc[0][r][l] = _mm512_fmadd_ps(
                    _mm512_castsi512_ps(splat4(x[r] + 8 * i + 4 * l)),
                    bf16_lane(w, l), acc[0][r][l]);
        }
    }
}

static MAT_INLINE void
tight_lines(const mat_tile *t, int type, uint32_t piece, int n, beside e,
            const uint8_t *const *x, float_sums acc)
{
    tight_walk k = tight_piece(t->m, t->panel, piece);
    uint32_t groups = tight_groups(t->m->n_in);

    call_spares(t->m, t->panel, piece);
    for (uint32_t g = 0; g < groups; g++) {
        __m512i w[TIGHT_LINES];

        if (g % 8 == 0)
            ahead_of_page(e, k.group);
        ahead(e, k.group);
        ahead(e, k.group + 64);
        ahead(e, k.group + 128);
        tight_group(&k, piece * groups + g, w);
        MAT_UNROLL
        for (uint32_t l = 0; l < TIGHT_LINES; l++)
            tight_line(type, w[l], n, x, TIGHT_LINES * g + l, acc);
    }
}

/* The low or the high bytes of two lines, as a group has them. */
static MAT_INLINE __m512i
lows_of(__m512i a, __m512i b)
{
    __m512i low = _mm512_set1_epi16(255);

    return _mm512_packus_epi16(_mm512_and_si512(a, low),
                               _mm512_and_si512(b, low));
}

static MAT_INLINE __m512i
highs_of(__m512i a, __m512i b)
{
    return _mm512_packus_epi16(_mm512_srli_epi16(a, 8),
                               _mm512_srli_epi16(b, 8));
}

/* Places of high bytes in the table; of those that it lacks 0, and not in
 * *found. */
static MAT_INLINE __m512i
places_of(__m512i highs, const uint8_t *high, __mmask64 *found)
{
    __m512i places = _mm512_setzero_si512();

    for (int i = 0; i < 16; i++) {
        __mmask64 is =
            _mm512_cmpeq_epi8_mask(highs, _mm512_set1_epi8((char)high[i]));

        *found |= is;
        places = _mm512_mask_mov_epi8(places, is, _mm512_set1_epi8((char)i));
    }
    return places;
}

static MAT_INLINE bool
tighten_group(const uint8_t *lines, const uint8_t *high, uint8_t *group,
              uint8_t *spare)
{
    __m512i a = load(lines), b = load(lines + 64), c = load(lines + 128),
            d = load(lines + 192), high0 = highs_of(a, b),
            high1 = highs_of(c, d), place0, place1;
    __mmask64 found0 = 0, found1 = 0;

    place0 = places_of(high0, high, &found0);
    place1 = places_of(high1, high, &found1);
    _mm512_storeu_si512(group, lows_of(a, b));
    _mm512_storeu_si512(group + 64, lows_of(c, d));
    _mm512_storeu_si512(group + 128,
                        _mm512_or_si512(place0, _mm512_slli_epi16(place1, 4)));
    _mm512_storeu_si512(spare, high0);
    _mm512_storeu_si512(spare + 64, high1);
    return (found0 & found1) == ~(__mmask64)0;
}

/* A piece of a panel as it was. */
static MAT_INLINE void
loosen_piece(const br_mat *m, const uint8_t *panel, uint32_t piece, uint8_t *to)
{
    tight_walk k = tight_piece(m, panel, piece);
    uint32_t groups = tight_groups(m->n_in);

    for (uint32_t g = 0; g < groups; g++) {
        __m512i w[TIGHT_LINES];

        tight_group(&k, piece * groups + g, w);
        MAT_UNROLL
        for (int l = 0; l < TIGHT_LINES; l++, to += 64)
            _mm512_store_si512((void *)to, w[l]);
    }
}

#endif
