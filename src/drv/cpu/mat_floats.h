/* mat_floats.h - float weights, on any instruction set.
 *
 * 16 lanes (k mod 16) of an output are summed apart and meet at the end, 8 with
 * 8, 4 with 4.. A vector holds one lane of many outputs, not all lanes of one:
 * the activation is broadcast, a tile's sums stay in registers from the first
 * k to the last, and lanes meet without leaving their place in a vector. Pieces
 * come in the order in which they meet, so that four sums of two lanes are all
 * that is kept.
 *
 * float_piece, which the including file has written before, sums two lanes of
 * 16 outputs for every row, of the second panel from sum[MAT_MAX_ROWS] on.
 * Where MAT_OWN_FLOATS is, it has a floats() of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MAT_FLOATS_H
#define BR_MAT_FLOATS_H

#include "drv/cpu/mat_int.h"

/* Where a piece of the panel begins, and of a row of activations (f32, or BF16
 * in pairs). */
static MAT_INLINE const uint8_t *
piece_weights(const mat_tile *t, int type, uint32_t piece)
{
    return t->panel +
           (size_t)piece * mat_lines(t->m->n_in) * mat_line_bytes(type);
}

static MAT_INLINE const void *
piece_row(const mat_tile *t, uint32_t piece, int r)
{
    return t->row[r] + (size_t)piece * mat_lines(t->m->n_in) *
                           (t->m->form == BR_FORM_BF16 ? 4 : 8);
}

#ifndef MAT_OWN_FLOATS

typedef float two_lanes[2][BR_MAT_PANEL];

/* gcc 12 makes no vectors of a plain loop at -O2. This one it cuts into what
 * the instruction set has. */
static MAT_INLINE void
add_16(float *to, const float *from)
{
    typedef float vec __attribute__((vector_size(64)));
    vec a, b;

    memcpy(&a, to, sizeof a);
    memcpy(&b, from, sizeof b);
    a += b;
    memcpy(to, &a, sizeof a);
}

static MAT_INLINE void float_piece(const mat_tile *t, int type, uint32_t piece,
                                   int panels, two_lanes *sum);

static MAT_INLINE void
add_rows(two_lanes *to, two_lanes *from, int n)
{
    for (int r = 0; r < 2 * n; r++)
        add_16(to[r / 2][r % 2], from[r / 2][r % 2]);
}

/* Where an eighth of the rows' outputs go is to be at hand by the end. */
static MAT_INLINE void
call_eighth(const mat_tile *t, uint32_t i, int panels)
{
    int n = t->n_rows;

    for (int r = n * (int)i / 8; r < n * (int)(i + 1) / 8; r++)
        for (int p = 0; p < panels; p++)
            __builtin_prefetch(t->out[r] + p * BR_MAT_PANEL, 1);
}

static MAT_INLINE void
floats(const mat_tile *t, int type, int panels)
{
    _Alignas(64) two_lanes sum[4][MAT_PANELS][MAT_MAX_ROWS];
    int top = 0;

    for (uint32_t i = 0; i < 8; i++, top++) {
        call_eighth(t, i, panels);
        float_piece(t, type, i, panels, sum[top][0]);
        for (uint32_t n = i; n & 1; n >>= 1, top--)
            for (int p = 0; p < panels; p++)
                add_rows(sum[top - 1][p], sum[top][p], t->n_rows);
    }
    for (int p = 0; p < panels; p++)
        for (int r = 0; r < t->n_rows; r++) {
            add_16(sum[0][p][r][0], sum[0][p][r][1]);
            memcpy(t->out[r] + p * BR_MAT_PANEL, sum[0][p][r][0],
                   sizeof sum[0][p][r][0]);
        }
}

#endif
#endif
