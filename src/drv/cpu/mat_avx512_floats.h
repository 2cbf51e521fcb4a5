/* mat_avx512_floats.h - floats in AVX-512: a part of mat_avx512.c, whose beside,
 * feed and prefetches it takes.
 *
 * As in mat_floats.h a lane of 16 outputs is a register. Sums of a piece meet
 * those of the pieces before while they are in registers; the last piece's go
 * where they belong. 512 rows of 2048 in BF16 on a Zen 4: 227 GFLOP/s a core of
 * 235, 207 by passes over all rows between the pieces.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MAT_AVX512_FLOATS_H
#define BR_MAT_AVX512_FLOATS_H

#define MAT_OWN_FLOATS
#include "drv/cpu/mat_floats.h"

enum { FLOAT_ROWS = 8, PAIRS = -1, PAIRS_AGAIN = 6 << 10 };

typedef __m512 float_sums[MAT_PANELS][FLOAT_ROWS][2];

/* Lane l of a line of BF16. */
static MAT_INLINE __m512
bf16_lane(__m512i w, int l)
{
    return _mm512_castsi512_ps(
        l == 0 ? _mm512_slli_epi32(w, 16)
               : _mm512_and_si512(w, _mm512_set1_epi32((int)0xffff0000)));
}

/* Lane l of a line. */
static MAT_INLINE __m512
widen(int type, const uint8_t *line, int l)
{
    if (type == BR_Q_F32)
        return _mm512_loadu_ps(line + 64 * l);
    if (type == BR_Q_F16)
        return _mm512_cvtph_ps(
            _mm256_loadu_si256((const void *)(line + 32 * l)));
    return bf16_lane(load(line), l);
}

static MAT_INLINE __m512
dot_pairs(__m512 acc, __m512i w, const uint8_t *p)
{
    DOT("vdpbf16ps", acc, w, p,
        _mm512_dpbf16_ps(acc, (__m512bh)splat4(p), (__m512bh)w));
    return acc;
}

#include "drv/cpu/mat_avx512_tight.h"

/* sum[r] += a line times row r. */
static MAT_INLINE void
pair_line(__m512 *sum, const uint8_t *p, int n, beside e,
          const uint8_t *const *x, uint32_t i)
{
    __m512i w = load(p);

    if (!e.called)
        ahead(e, p);
    if (!e.called && e.slow && n == 4) /* too fast for all calls to be heard */
        _mm_prefetch((const void *)(p + PAIRS_AGAIN), _MM_HINT_T1);
    MAT_UNROLL
    for (int r = 0; r < n; r++)
        sum[r] = dot_pairs(sum[r], w, x[r] + 4 * i);
}

/* BF16 as it is, times BF16: a sum has both lanes, and lines take turns at two
 * sums, since vdpbf16ps takes six cycles: of eight on their way, any hiccup
 * shows. The sums are arrays of its own: of acc gcc 12 left a copy in memory at each
 * line, and eight rows took 2.2 times as long (0024). */
static MAT_INLINE void
pair_lines(const mat_tile *t, const uint8_t *p, int n, beside e,
           const uint8_t *const *x, float_sums acc)
{
    uint32_t lines = mat_lines(t->m->n_in), i = 0;
    __m512 even[FLOAT_ROWS], odd[FLOAT_ROWS];

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        even[r] = odd[r] = _mm512_setzero_ps();
    for (; i + 2 <= lines; i += 2, p += 128) {
        if (!e.called && i % 32 == 0)
            ahead_of_page(e, p);
        pair_line(even, p, n, e, x, i);
        pair_line(odd, p + 64, n, e, x, i + 1);
    }
    if (i < lines)
        pair_line(even, p, n, e, x, i);
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        acc[0][r][0] = even[r];
        acc[0][r][1] = odd[r];
    }
}

/* Panels side by side as they are in memory, where those that are multiplied
 * were laid out anew. */
static MAT_INLINE beside
as_packed(const mat_tile *t, beside e)
{
    e.next = t->m->panel_bytes;
    return e;
}

/* A line of each of two panels times some rows, into one of the two lanes.
 * Activations come in a register, as in dot_groups. */
static MAT_INLINE void
pair_line_of_two(const uint8_t *p, int n, beside e, const uint8_t *const *x,
                 uint32_t i, float_sums acc, int lane)
{
    __m512bh w = (__m512bh)load(p), v = (__m512bh)load(p + e.next);

    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        __m512bh a = (__m512bh)splat4(x[r] + 4 * i);

        acc[0][r][lane] = _mm512_dpbf16_ps(acc[0][r][lane], a, w);
        acc[1][r][lane] = _mm512_dpbf16_ps(acc[1][r][lane], a, v);
    }
}

static MAT_INLINE void
pair_lines_of_two(const mat_tile *t, const uint8_t *p, int n, beside e,
                  const uint8_t *const *x, const feed *next, float_sums acc)
{
    uint32_t lines = mat_lines(t->m->n_in), i = 0;
    const beside packed = as_packed(t, e);

    for (; i + 2 <= lines; i += 2, p += 128) {
        call_lines(next, i / 2, packed);
        pair_line_of_two(p, n, e, x, i, acc, 0);
        pair_line_of_two(p + 64, n, e, x, i + 1, acc, 1);
    }
    if (i < lines)
        pair_line_of_two(p, n, e, x, i, acc, 0);
}

static MAT_INLINE void
float_lines(const mat_tile *t, int type, const uint8_t *p, int n, beside e,
            const uint8_t *const *x, const feed *next, float_sums acc)
{
    const beside packed = as_packed(t, e);

    for (uint32_t i = 0; i < mat_lines(t->m->n_in);
         i++, p += mat_line_bytes(type)) {
        if (e.n == 2)
            call_lines(next, i, packed);
        else if (!e.called && i % 16 == 0)
            ahead_of_page(e, p);
        MAT_UNROLL
        for (int l = 0; l < 2; l++) {
            __m512 w = widen(type, p, l), v = w;

            if (e.n == 2)
                v = widen(type, p + e.next, l);
            else if (!e.called && (l == 0 || type == BR_Q_F32))
                ahead(e, p + 64 * l);
            MAT_UNROLL
            for (int r = 0; r < n; r++) {
                __m512 a = _mm512_castsi512_ps(splat4(x[r] + 8 * i + 4 * l));

                acc[0][r][l] = _mm512_fmadd_ps(a, w, acc[0][r][l]);
                if (e.n == 2)
                    acc[1][r][l] = _mm512_fmadd_ps(a, v, acc[1][r][l]);
            }
        }
    }
}

static MAT_INLINE int
bf16_or(int type)
{
    return type == PAIRS ? BR_Q_BF16 : type;
}

/* Some rows' share of the piece that comes next: a line of each panel at every
 * line that goes past (of pairs, two lines), again where rows are many. */
static MAT_INLINE feed
piece_feed(const mat_tile *t, int type, uint32_t piece, int r0, int n, beside e)
{
    const br_mat *m = t->m;
    size_t lines = mat_lines(m->n_in), rows = (size_t)t->n_rows;
    size_t bytes = m->tight ? (size_t)tight_groups(m->n_in) * TIGHT_GROUP
                            : lines * mat_line_bytes(bf16_or(type));
    size_t head = m->tight ? tight_head_bytes(m->n_in) : 0;

    return (feed){.at = t->panel +
                        (piece < 7 ? head + (piece + 1) * bytes
                                   : (size_t)e.n * m->panel_bytes) +
                        bytes * (size_t)r0 / rows,
                  .step = (type == PAIRS ? 2 : 1) * bytes / lines * (size_t)n /
                          rows,
                  .calls = 1};
}

/* What pieces before came to that wait for their like: three at most, and of
 * rows not taken together a sum of each lane. */
typedef float waiting[3][MAT_PANELS][MAT_MAX_ROWS][2][BR_MAT_PANEL];

/* Pairs have both lanes in one sum, or in two that took turns. */
static MAT_INLINE int
lanes_apart(int type)
{
    return type == PAIRS ? 1 : 2;
}

/* Row by row, all of them unrolled: sums that a loop counts are in memory. */
static MAT_INLINE void
store_floats(const mat_tile *t, int type, int r0, int n, beside e,
             float_sums acc)
{
    MAT_UNROLL
    for (int i = 0; i < e.n * n; i++) {
        int r = i / e.n, p = i % e.n;
        __m512 y = acc[p][r][0];

        if (lanes_apart(type) == 2)
            y = _mm512_add_ps(y, acc[p][r][1]);
        if (r0 + r < t->n_rows)
            _mm512_storeu_ps(t->out[r0 + r] + p * BR_MAT_PANEL, y);
    }
}

/* acc += what waits at `at`. */
static MAT_INLINE void
add_waiting(int type, int r0, int n, beside e, float_sums acc, waiting of,
            int at)
{
    MAT_UNROLL
    for (int p = 0; p < e.n; p++) {
        MAT_UNROLL
        for (int r = 0; r < n; r++) {
            MAT_UNROLL
            for (int l = 0; l < lanes_apart(type); l++)
                acc[p][r][l] = _mm512_add_ps(
                    _mm512_loadu_ps(of[at][p][r0 + r][l]), acc[p][r][l]);
        }
    }
}

/* A piece is done for some rows: its sums meet those that wait for them while
 * they are in registers. Passes over all rows, as mat_floats.h makes them, took
 * a twentieth of 512 rows of 2048. */
static MAT_INLINE void
meet(const mat_tile *t, int type, uint32_t piece, int r0, int n, beside e,
     float_sums acc, waiting of)
{
    int at = __builtin_popcount(piece);

    MAT_UNROLL
    for (int i = 0; i < e.n * n; i++)
        if (lanes_apart(type) == 1)
            acc[i / n][i % n][0] =
                _mm512_add_ps(acc[i / n][i % n][0], acc[i / n][i % n][1]);
    if ((piece & 1) == 1)
        add_waiting(type, r0, n, e, acc, of, --at);
    if ((piece & 3) == 3)
        add_waiting(type, r0, n, e, acc, of, --at);
    if (piece == 7) {
        add_waiting(type, r0, n, e, acc, of, 0);
        store_floats(t, type, r0, n, e, acc);
        return;
    }
    MAT_UNROLL
    for (int p = 0; p < e.n; p++) {
        MAT_UNROLL
        for (int r = 0; r < n; r++) {
            MAT_UNROLL
            for (int l = 0; l < lanes_apart(type); l++)
                _mm512_storeu_ps(of[at][p][r0 + r][l], acc[p][r][l]);
        }
    }
}

/* A piece at p times some rows; p is NULL: it is tight. */
static MAT_INLINE void
float_rows(const mat_tile *t, int type, uint32_t piece, const uint8_t *p,
           int r0, int n, beside e, waiting of)
{
    const uint8_t *x[FLOAT_ROWS];
    feed next = piece_feed(t, type, piece, r0, n, e);
    float_sums acc;

    if (piece == 7)
        call_out(t, r0, BR_MIN(n, t->n_rows - r0), e.n);
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        x[r] = piece_row(t, piece, r0 + r);
        acc[0][r][0] = acc[0][r][1] = _mm512_setzero_ps();
        acc[1][r][0] = acc[1][r][1] = _mm512_setzero_ps();
    }
    if (!p)
        tight_lines(t, type, piece, n, e, x, acc);
    else if (type == PAIRS && e.n == 2)
        pair_lines_of_two(t, p, n, e, x, &next, acc);
    else if (type == PAIRS)
        pair_lines(t, p, n, e, x, acc);
    else
        float_lines(t, type, p, n, e, x, &next, acc);
    meet(t, type, piece, r0, n, e, acc, of);
}

/* Eight rows (or six) of a panel, four (or three) at its end or of two: sums for
 * sixteen registers. */
static MAT_INLINE void
float_piece(const mat_tile *t, int type, uint32_t piece, const uint8_t *p,
            beside e, waiting of)
{
    int r = 0, n = t->n_rows, most = FLOAT_ROWS / e.n;

    for (; n - r >= most / 4 * 3; r += most)
        float_rows(t, type, piece, p, r, most, e, of);
    if (most > 4 && n - r >= 3) {
        float_rows(t, type, piece, p, r, 4, e, of);
        r += 4;
    }
    if (n - r >= 2) {
        float_rows(t, type, piece, p, r, 2, e, of);
        r += 2;
    }
    if (n - r >= 1)
        float_rows(t, type, piece, p, r, 1, e, of);
}

/* Tight: one panel, of up to TIGHT_ROWS rows. */
static MAT_INLINE void
floats(const mat_tile *t, int type, int panels, bool tight)
{
    const beside e = {
        panels,      panels,     t->m->panel_bytes,
        false,       false,      (uint32_t)t->n_rows >= t->m->slow_rows,
        t->m->ahead, t->m->pages};
    _Alignas(64) waiting of;

    for (uint32_t piece = 0; piece < 8; piece++)
        float_piece(t, type, piece,
                    tight ? NULL : piece_weights(t, bf16_or(type), piece), e,
                    of);
}

/* Tight, of more rows: each piece as it was, from a cache. */
static MAT_INLINE void
loosened_floats(const mat_tile *t, int type, int panels)
{
    _Alignas(64) uint8_t loose[MAT_PANELS * TIGHT_MOST * 4];
    size_t next = (size_t)t->m->n_in * 4;
    const beside e = {panels, panels, next, false, true, true, 0, 0};
    _Alignas(64) waiting of;

    for (uint32_t piece = 0; piece < 8; piece++) {
        for (int p = 0; p < panels; p++)
            loosen_piece(t->m, t->panel + (size_t)p * t->m->panel_bytes, piece,
                         loose + (size_t)p * next);
        float_piece(t, type, piece, loose, e, of);
    }
}

#endif
