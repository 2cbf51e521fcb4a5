/* mat_avx512.c - the kernels in AVX-512 (F BW DQ VL VNNI, BF16 where it is).
 *
 * A tile is 16 outputs, one register, times up to eight rows, or 32 times four
 * (docs/decisions/0029: fewer loads). vpdpbusd does it all: 16 outputs x 4 k of
 * unsigned weights times four signed activations broadcast from memory, added
 * to 32 bits. Weights that are signed, or kept with an offset, are made unsigned
 * by adding `bias`; blocks of 32 take it off at once by starting from
 * -bias * sum(q), blocks of 256 with the same trick as minimums, by one vpdpwssd
 * for two sub-blocks.
 *
 * Bounds on Zen 4, where a register of 64 bytes takes both multipliers for a
 * cycle: 8 vpdpbusd of a flat block come with 2 multiplications of floats, so
 * 80 % of the peak; 64 of a Q4_K block with 8 vpmulld and 4 vpdpwssd, 84 %.
 *
 * A block of Q8_0 for eight rows came to 110 to 130 cycles instead of 80: what
 * bounds it is how far the processor looks ahead (dot4) and what comes from the
 * second cache (spans); 95 to 115 now. Zen 5: docs/decisions/0029.
 *
 * Floats (mat_floats.h): a lane of 16 outputs is one register, two of them times
 * eight rows. BF16 pairs likewise with vdpbf16ps, which is twice as fast,
 * flushes subnormals, and is left out where the exact bits are asked for.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/mat_int.h"

#ifdef __AVX512VNNI__
#    include "drv/cpu/mat_avx512.h"

enum {
    TILE_ROWS = 8,
    HANDFULS = MAT_MAX_ROWS / 6 + 3, /* at most, of six rows and the rest */
};

/* ---- weights ------------------------------------------------------------- */

static MAT_INLINE bool
is_signed(const mat_format *f)
{
    return f->low == 8 || f->level != MAT_PLAIN;
}

/* What is added to weights so that they are unsigned: a power of two, or 0. */
static MAT_INLINE int
bias_bits(const mat_format *f)
{
    return is_signed(f) ? 7 : f->off == 0 ? 0 : __builtin_ctz((unsigned)f->off);
}

/* Weights of group g of a step, biased. */
static MAT_INLINE __m512i
load_group(const mat_format *f, const uint8_t *p, int g)
{
    __m512i v = load_number(f, p, g);

    return is_signed(f) ? _mm512_xor_si512(v, _mm512_set1_epi8(-128)) : v;
}

/* Rows of activations, and how far from a row's start its scales and its sums
 * are: one register a row, one for each of the three ways into it. */
typedef struct rows8 {
    const uint8_t *row[TILE_ROWS];
    size_t d, sum;
    ptrdiff_t soon;
} rows8;

static MAT_INLINE rows8
rows_at(const mat_tile *t, const mat_format *f, int r0, int n)
{
    act_view a = act_at(t->m->form, t->m->n_in, t->row[r0]);
    const void *sum = f->class == MAT_FLAT ? (const void *)a.nsum
                      : f->sub == 16       ? a.sum16
                                           : a.sum32;
    rows8 x = {.d = (size_t)((const uint8_t *)a.d - t->row[r0]),
               .sum = (size_t)((const uint8_t *)sum - t->row[r0]),
               .soon = t->soon};

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        x.row[r] = t->row[r0 + r];
    return x;
}

/* The rows that come next go to the second cache while these are multiplied for
 * the last time: those of spans are streams too short to be foreseen. Of K
 * blocks, which go past whole, it brings nothing. */
static MAT_INLINE void
call_rows(const rows8 *x, int n, size_t at)
{
    if (x->soon == 0)
        return;
    MAT_UNROLL
    for (int r = 0; r < n; r++)
        _mm_prefetch((const void *)(x->row[r] + x->soon + at), _MM_HINT_T1);
}

/* A pointer in a register of its own: gcc 12 makes eight of its sum and eight
 * constants, and keeps them in vector registers. */
#    define KEEP(p) __asm__("" : "+r"(p))
#    define ONCE(v) __asm__("" : "+v"(v))

/* How many panels side by side, of how many in the tile, and how far apart.
 * Their sums of a chain follow each other, TILE_ROWS each: 16 KiB apart, every
 * load of one seemed to hit a store to the other. */
typedef struct beside {
    int n, of;
    size_t next;
    bool wide;   /* one panel, unpacked: see unpack() */
    bool called; /* its weights are in the first cache, or soon */
    bool slow;   /* rows enough that a line takes long: see ahead() */
    size_t ahead, pages;
} beside;

/* The processor looks only so far ahead, and while it multiplies nothing comes:
 * one row of Q4_K went at 20 GB/s where a plain read has 39, eight at 8 where
 * the first cache gives 24. So all that is loaded is called for 6 KiB before
 * (br_mat's ahead; on a Zen 4 it is 0, a call of the line itself), or, where
 * three rows and more make a line last longer, 10 KiB before and to
 * the second cache: calls to the first hold what it may wait for until they are
 * answered, and 4 and 8 rows of Q8_0 came to 85 and 153 GOPS on a Zen 4 where
 * they have 180 and 300 (docs/decisions/0029). On a Zen 5, where calls to the
 * second are forgotten, only K blocks go that way (br_mat's slow_rows). */
enum { AHEAD_SLOW = 10 << 10 };

static MAT_INLINE void
ahead(beside e, const uint8_t *p)
{
    if (e.slow)
        _mm_prefetch((const void *)(p + AHEAD_SLOW), _MM_HINT_T1);
    else
        _mm_prefetch((const void *)(p + e.ahead), _MM_HINT_T0);
}

/* A line or more of each page of 4 KB well before the others of one or two rows:
 * where a page lies takes the processor to memory, too (br_mat's pages; a Zen 5
 * reads 6 to 20 % more of Q8_0 and BF16 for it, of K blocks up to 16). K blocks
 * are 2 to 3 KB, so each calls: four of them, 9 to 13 KB, would pass pages by. */
static MAT_INLINE void
ahead_of_page(beside e, const uint8_t *p)
{
    if (!e.slow && e.pages > 0)
        _mm_prefetch((const void *)(p + e.pages), _MM_HINT_T0);
}

static MAT_INLINE void
ahead_of_group(const mat_format *f, beside e, const uint8_t *p, int g)
{
    if (f->low == 8)
        ahead(e, p + 64 * g);
    else if (g % 2 == 0)
        ahead(e, p + 64 * (g / 2));
    else if (f->high == 1 && g == 1)
        ahead(e, p + 256);
    else if (f->high == 2 && g % 4 == 1)
        ahead(e, p + 256 + 64 * (g / 4));
}

static MAT_INLINE __m512i
weights(const mat_format *f, beside e, const uint8_t *p, int g)
{
    if (e.wide)
        return load(p + 64 * g);
    if (!e.called)
        ahead_of_group(f, e, p, g);
    return load_group(f, p, g);
}

/* acc[panel][row] += groups g0..g1 of a step. at: its activations in each row.
 * Beside one panel they come from memory with the instruction, beside two in a
 * register: 10 loads for 16 products instead of 18. */
static MAT_INLINE void
dot_groups(const mat_format *f, const uint8_t *p, int g0, int n, beside e,
           const uint8_t *const *row, size_t at, __m512i (*acc)[TILE_ROWS])
{
    int g1 = g0 + (f->sub == 16 ? 4 : 8);
    const uint8_t *second = p + e.next;

    KEEP(second);
    MAT_UNROLL
    for (int g = g0; g < g1; g++) {
        __m512i w = weights(f, e, p, g), v = w;

        if (e.n == 2)
            v = weights(f, e, second, g);
        MAT_UNROLL
        for (int r = 0; r < n; r++) {
            const uint8_t *x = row[r] + at + 4 * g;

            if (e.n == 1) {
                acc[0][r] = dot4(acc[0][r], w, x);
            } else {
                __m512i a = splat4(x);

                acc[0][r] = _mm512_dpbusd_epi32(acc[0][r], w, a);
                acc[1][r] = _mm512_dpbusd_epi32(acc[1][r], v, a);
            }
        }
    }
}

/* ---- blocks of 32 -------------------------------------------------------- */

static MAT_INLINE void
flat_block(const mat_format *f, mat_place at, int n, beside e, const rows8 *x,
           __m512 (*chain)[TILE_ROWS])
{
    size_t to_d = x->d + 4 * (size_t)at.b, to_sum = x->sum + 4 * (size_t)at.b;
    __m512i acc[MAT_PANELS][TILE_ROWS];

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        acc[0][r] = acc[1][r] =
            bias_bits(f) == 0 ? _mm512_setzero_si512()
                              : _mm512_slli_epi32(splat4(x->row[r] + to_sum),
                                                  (unsigned)bias_bits(f));
    /* In the order in which they lie: so the processor foresees them, too. */
    if (!e.called && at.b % MAT_CHAINS == 0) {
        ahead_of_page(e, at.head);
        for (uint32_t i = 0; i < mat_head_bytes(f); i += 64)
            ahead(e, at.head + i);
    }
    dot_groups(f, at.block, 0, n, e, x->row, 32 * (size_t)at.b, acc);
    MAT_UNROLL
    for (int i = 0; i < e.n; i++, at.head += e.next) {
        __m512 d = f->level == MAT_FP4 ? mx_scales(at.head) : halves(at.head);

        MAT_UNROLL
        for (int r = 0; r < n; r++) {
            __m512 dx = _mm512_castsi512_ps(splat4(x->row[r] + to_d));
            __m512 y = _mm512_mul_ps(_mm512_mul_ps(d, dx),
                                     _mm512_cvtepi32_ps(acc[i][r]));

            if (f->min)
                y = _mm512_fnmadd_ps(
                    _mm512_mul_ps(halves(at.head + 128), dx),
                    _mm512_cvtepi32_ps(splat4(x->row[r] + to_sum)), y);
            chain[i][r] = _mm512_add_ps(chain[i][r], y);
        }
    }
}

/* ---- blocks of 256 ------------------------------------------------------- */

/* low[row] += what goes with sums times the sums, two sub-blocks at once. */
static MAT_INLINE void
add_low(const mat_format *f, const scales *k, uint32_t b, int n, const rows8 *x,
        __m512i *low)
{
    size_t at = x->sum + (f->sub == 16 ? 32 : 16) * (size_t)b;

    MAT_UNROLL
    for (int i = 0; i < 128 / f->sub; i++) {
        __m512i v = spread_pair(f, k->low[i / 2], 2 * (i % 2));

        MAT_UNROLL
        for (int r = 0; r < n; r++)
            low[r] = dot2(low[r], v, x->row[r] + at + 4 * i);
    }
}

/* The lowest byte of each output's four: a sub-block's scale. */
static MAT_INLINE __m512i
lowest(const mat_format *f, __m512i s)
{
    return f->sub == 16 ? _mm512_srai_epi32(_mm512_slli_epi32(s, 24), 24)
                        : _mm512_and_si512(s, _mm512_set1_epi32(255));
}

/* Do the products of four sub-blocks and their scales fit 24 bits? Then sums in
 * f32 are exact, and conversion and fma are two operations where vpmulld (two
 * of them on Intel's) and vpaddd are three: 32 products of 15 x 127 by 63. */
static MAT_INLINE bool
sums_in_f32(const mat_format *f)
{
    return f->sub == 32 && f->low == 4 && f->high == 0;
}

/* A step's sub-blocks into the sums, each by its scale. */
static MAT_INLINE __m512i
k_step(const mat_format *f, __m512i s, const uint8_t *p, int n, beside e,
       const rows8 *x, size_t q, __m512i *sum)
{
    int step = f->sub == 16 ? 4 : 8;

    MAT_UNROLL
    for (int g = 0; g < 8; g += step, s = _mm512_srli_epi32(s, 8)) {
        __m512i scale = lowest(f, s), acc[1][TILE_ROWS];
        __m512 by = _mm512_cvtepi32_ps(scale);

        MAT_UNROLL
        for (int r = 0; r < n; r++)
            acc[0][r] = _mm512_setzero_si512();
        dot_groups(f, p, g, n, e, x->row, q, acc);
        MAT_UNROLL
        for (int r = 0; r < n; r++)
            sum[r] = sums_in_f32(f)
                         ? _mm512_castps_si512(
                               _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[0][r]),
                                               by, _mm512_castsi512_ps(sum[r])))
                         : _mm512_add_epi32(
                               sum[r], _mm512_mullo_epi32(acc[0][r], scale));
    }
    return s;
}

/* Sums of a block, of which only weights count here: integers, or floats and
 * the first half's apart. Its loops are not unrolled: 64 or 72 multiplications
 * are enough code, and gcc 12 would unpack them all at once. */
static MAT_INLINE void
k_sums(const mat_format *f, mat_place at, const scales *k, int n, beside e,
       const rows8 *x, __m512i *sum, __m512 *first)
{
    const uint8_t *p = at.block;
    size_t q = 256 * (size_t)at.b;

    MAT_UNROLL
    for (int r = 0; r < n; r++)
        sum[r] = _mm512_setzero_si512();
    for (int i = 0; i < 64 / f->sub; i++) {
        __m512i s = k->s[i];

        if (sums_in_f32(f)) {
            MAT_UNROLL
            for (int r = 0; r < n; r++) {
                first[r] = _mm512_castsi512_ps(sum[r]);
                sum[r] = _mm512_setzero_si512();
            }
        }
        for (int j = 0; j < f->sub / 8; j++) {
            s = k_step(f, s, p, n, e, x, q, sum);
            p += e.wide ? 512 : mat_step_bytes(f);
            q += 32;
        }
    }
}

/* A block's sum, an integer rounded once: that of two floats that are exact,
 * too. */
static MAT_INLINE __m512
k_sum(const mat_format *f, __m512i sum, __m512 first)
{
    return sums_in_f32(f) ? _mm512_add_ps(first, _mm512_castsi512_ps(sum))
                          : _mm512_cvtepi32_ps(sum);
}

static MAT_INLINE void
k_block(const mat_format *f, mat_place at, const uint8_t *w, int n, beside e,
        const rows8 *x, __m512 *chain)
{
    __m512i sum[TILE_ROWS], low[TILE_ROWS];
    __m512 first[TILE_ROWS], dw, dmin;
    scales k;

    load_scales(f, at.block, &k);
    for (uint32_t i = 0; i < mat_scale_bytes(f) && !e.wide; i += 64)
        ahead(e, at.block + i);
    if (!e.wide) {
        /* n, though e.slow says it: eight rows were 5 % slower without */
        if (n < MAT_SLOW_ROWS)
            ahead_of_page(e, at.block);
        ahead(e, at.head);
    }
    if (f->min && !e.wide)
        ahead(e, at.head + 128);
    k_sums(f, (mat_place){.block = w, .b = at.b}, &k, n, e, x, sum, first);
    MAT_UNROLL
    for (int r = 0; r < n; r++)
        low[r] = _mm512_setzero_si512();
    add_low(f, &k, at.b, n, x, low);
    dw = halves(at.head);
    dmin = f->min ? halves(at.head + 128) : dw;
    /* gcc 12 would read and convert them again for each row. */
    ONCE(dw);
    ONCE(dmin);
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        __m512 d = _mm512_castsi512_ps(
                   splat4(x->row[r] + x->d + 4 * (size_t)at.b)),
               y;

        if (!f->min)
            sum[r] = _mm512_sub_epi32(
                sum[r], _mm512_slli_epi32(low[r], (unsigned)bias_bits(f)));
        y = _mm512_mul_ps(_mm512_mul_ps(dw, d), k_sum(f, sum[r], first[r]));
        if (f->min)
            y = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, d),
                                 _mm512_cvtepi32_ps(low[r]), y);
        chain[r] = _mm512_add_ps(chain[r], y);
    }
}

/* ---- a panel of blocks ---------------------------------------------------
 *
 * Of few rows blocks go past as they lie, since memory is the bound, and chains
 * wait in memory. Of many rows one handful goes past after the other, and of
 * flat blocks one chain after the other, its sums in registers: 8 rows of Q8_0
 * in the first cache of a Zen 5 reach 65 % of the peak that way, 52 % the other
 * (4 rows of two panels 74 %, 68 %). A store of 64 bytes takes as long as two
 * products there.
 *
 * Weights of eight bits, of which the second cache gives a handful too few, go
 * past in spans, so do K blocks that are unpacked; the others whole: a
 * handful's outputs are then done while they are in the first cache. What comes
 * next is called for meanwhile. A span of three eighths of the first cache,
 * times two panels, leaves room for what passes by: 512 rows of 8192 in Q8_0 at
 * 337 GOPS on a Zen 4 (32 KiB), 313 with spans of 20 KiB. Five sixths were
 * better whole with 48 KiB (docs/decisions/0029). */

enum { WIDE_ROWS = 32, WIDE_BLOCKS = 4, WIDE_BLOCK = 16 * 256 };

static MAT_INLINE size_t
four_bytes(const mat_format *f)
{
    return mat_head_bytes(f) + MAT_CHAINS * mat_block_bytes(f);
}

static MAT_INLINE mat_place
place_of(const mat_format *f, const span *k, uint32_t b)
{
    const uint8_t *p = k->head + (b - k->b0) / MAT_CHAINS * four_bytes(f);
    uint32_t c = b % MAT_CHAINS;

    return (mat_place){p + c * mat_scale_step(f),
                       p + mat_head_bytes(f) + c * mat_block_bytes(f), b};
}

/* A block's weights: after its scales, or where unpack() has put them. */
static MAT_INLINE const uint8_t *
weights_of(const mat_format *f, const span *k, beside e, mat_place at)
{
    return e.wide ? k->wide + (at.b - k->b0) * WIDE_BLOCK
                  : at.block + mat_scale_bytes(f);
}

/* A handful's share of the span that comes next, a block's part of it at each
 * block. All of it at once takes the 16 or so lines that may be on their way
 * for as long as the memory takes: 16 rows of Q8_0 at 209 GOPS, not 249. */
typedef struct feed {
    const uint8_t *at;
    size_t step; /* from a block's part to the next one's */
    int calls;   /* lines of a part; 0: none */
} feed;

static MAT_INLINE void
call_lines(const feed *c, uint32_t i, beside e)
{
    /* no lines are of no address; a feed that is not all 0 costs one row 7 % */
    const uint8_t *p = (const uint8_t *)((uintptr_t)c->at + i * c->step);

    for (int l = 0; l < c->calls; l++, p += 64)
        for (int panel = 0; panel < e.n; panel++)
            _mm_prefetch((const void *)(p + panel * e.next), _MM_HINT_T1);
}

/* What the next block multiplies, of one or two rows: while a panel of 8192
 * columns goes past, 74 or 107 KB, they leave the first cache, and to wait for
 * them costs what is on its way from memory: one thread of a Zen 4 read Q4_K at
 * 29 GB/s, Q6_K at 26, of 32. */
static MAT_INLINE void
call_numbers(const mat_format *f, const rows8 *x, int n, size_t b)
{
    MAT_UNROLL
    for (int r = 0; r < n; r++) {
        const uint8_t *p = x->row[r];

        MAT_UNROLL
        for (int l = 0; l < 256; l += 64)
            _mm_prefetch((const void *)(p + 256 * b + l), _MM_HINT_T0);
        _mm_prefetch((const void *)(p + x->sum + (f->sub == 16 ? 32 : 16) * b),
                     _MM_HINT_T0);
    }
}

static MAT_INLINE void
in_order(const mat_format *f, const span *k, int n, beside e, const rows8 *x,
         const feed *next, __m512 *sum)
{
    for (int i = 0; k->b0 == 0 && i < MAT_CHAINS * e.of; i++)
        clear_sums(sum + i * TILE_ROWS, i % e.of < e.n ? n : 0);
    for (uint32_t b = k->b0; b < k->b1; b++) {
        __m512 *chain = sum + b % MAT_CHAINS * (uint32_t)e.of * TILE_ROWS;
        mat_place at = place_of(f, k, b);

        call_lines(next, b - k->b0, e);
        if (f->class == MAT_K && n < MAT_SLOW_ROWS)
            call_numbers(f, x, n, (size_t)b + 1);
        if (f->class == MAT_K)
            k_block(f, at, weights_of(f, k, e, at), n, e, x, chain);
        else
            flat_block(f, at, n, e, x, (__m512(*)[TILE_ROWS])chain);
    }
}

static MAT_INLINE void
by_chain(const mat_format *f, const span *k, int n, beside e, const rows8 *x,
         const feed *next, __m512 *sum)
{
    e.called = true;
    for (uint32_t c = 0; c < MAT_CHAINS; c++, sum += e.of * TILE_ROWS) {
        __m512 chain[MAT_PANELS][TILE_ROWS];
        mat_place at;

        MAT_UNROLL
        for (int i = 0; i < e.n * n; i++)
            chain[i / n][i % n] = _mm512_setzero_ps();
        if (k->b0 > 0) {
            MAT_UNROLL
            for (int i = 0; i < e.n * n; i++)
                chain[i / n][i % n] = sum[i / n * TILE_ROWS + i % n];
        }
        for (at = place_of(f, k, k->b0 + c); at.b < k->b1; at.b += MAT_CHAINS) {
            call_lines(next, at.b - k->b0, e);
            if (c % 2 == 0) /* a line has two blocks */
                call_rows(x, n, 32 * (size_t)at.b);
            flat_block(f, at, n, e, x, chain);
            at.head += four_bytes(f);
            at.block += four_bytes(f);
        }
        MAT_UNROLL
        for (int i = 0; i < e.n * n; i++)
            sum[i / n * TILE_ROWS + i % n] = chain[i / n][i % n];
    }
}

/* Many rows: a span's K blocks as bytes, biased, once for all of them. What
 * takes a weight apart is two to five operations for eight products, and on
 * Intel's those share two pipes: 64 rows of Q6_K at 297 GOPS, not 245. Flat
 * blocks, of which two panels share the work, gain nothing. */
static MAT_INLINE void
unpack(const mat_format *f, const span *k, uint8_t *to)
{
    for (uint32_t b = k->b0; b < k->b1; b++) {
        const uint8_t *p = place_of(f, k, b).block + mat_scale_bytes(f);

        for (int step = 0; step < 8;
             step++, p += mat_step_bytes(f), to += 512) {
            MAT_UNROLL
            for (int g = 0; g < 8; g++)
                _mm512_store_si512(to + 64 * g, load_group(f, p, g));
        }
    }
}

static MAT_INLINE void
rows_of_span(const mat_tile *t, int type, const span *k, int r0, int n,
             beside e, const feed *next, __m512 *sum)
{
    const mat_format *f = mat_format_of(type);
    rows8 x = rows_at(t, f, r0, n);

    e.slow = (uint32_t)n >=
             (f->class == MAT_K ? (uint32_t)MAT_SLOW_ROWS : t->m->slow_rows);
    if (f->class == MAT_FLAT && t->n_rows > TILE_ROWS &&
        (n == TILE_ROWS || e.n == 2))
        by_chain(f, k, n, e, &x, next, sum);
    else
        in_order(f, k, n, e, &x, next, sum);
}

/* Rows r.. are done: what their chains, at `of`, come to. */
static MAT_INLINE void
store_rows(const mat_tile *t, int r, int n, int panels, const __m512 *of)
{
    int step = panels * TILE_ROWS;

    for (int i = 0; i < n; i++)
        for (int panel = 0; panel < panels; panel++) {
            const __m512 *c = of + panel * TILE_ROWS + i;

            _mm512_storeu_ps(
                t->out[r + i] + panel * BR_MAT_PANEL,
                _mm512_add_ps(_mm512_add_ps(c[0], c[step]),
                              _mm512_add_ps(c[2 * step], c[3 * step])));
        }
}

/* Where eight rows' outputs go is to be at hand by then. All 64 rows at once
 * are in the way of what is multiplied: 512 rows of Q4_K at 600 GOPS, not 680. */
static MAT_INLINE void
call_out(const mat_tile *t, int r, int n, int panels)
{
    for (int i = r; i < r + n; i++)
        for (int panel = 0; panel < panels; panel++)
            __builtin_prefetch(t->out[i] + panel * BR_MAT_PANEL, 1);
}

/* The last rows, fewer than eight: four, two, one of a panel; three as four, as
 * one pass costs less than two (of Q8_0 from memory 130 GOPS, not 80). */
static MAT_INLINE void
last_rows(const mat_tile *t, int type, const span *k, beside e, int r,
          __m512 *sum)
{
    /* of more rows those before have brought the panel, and its pages */
    size_t pages = t->n_rows < MAT_SLOW_ROWS ? e.pages : 0;
    const beside one = {1, e.of, 0, e.wide, e.called, false, e.ahead, pages};
    const feed none = {0};
    int left = t->n_rows - r;

    left += left == 3;
    if (left & 4) {
        rows_of_span(t, type, k, r, 4, one, &none, sum);
        r += 4;
        sum += 4;
    }
    if (left & 2) {
        rows_of_span(t, type, k, r, 2, one, &none, sum);
        r += 2;
        sum += 2;
    }
    if (left & 1)
        rows_of_span(t, type, k, r, 1, one, &none, sum);
}

/* How many rows of those that are left go together: eight; of two panels six,
 * so that twelve products wait for none, or four; 0: the last ones. */
static MAT_INLINE int
handful(beside e, int left)
{
    if (e.n == 1)
        return left >= TILE_ROWS ? TILE_ROWS : 0;
    return left >= 6 && left != 8 ? 6 : left >= 4 ? 4 : 0;
}

/* Rows r.. of all; next: where the span begins. */
static MAT_INLINE feed
feed_of(const mat_tile *t, int type, const uint8_t *next, int r, int rows)
{
    size_t block = four_bytes(mat_format_of(type)) / MAT_CHAINS;
    size_t n = (size_t)t->n_rows;

    return (feed){.at = next + block * (size_t)r / n,
                  .step = block,
                  .calls = (int)((block * (size_t)rows / n + 63) / 64)};
}

/* A handful at a time. After the last span their sums go to where they belong
 * at once: 64 rows' at the end took 24 cycles a row, of 400. sum: of the first
 * ones, the next ones' `each` on. */
static MAT_INLINE void
span_rows(const mat_tile *t, int type, const span *k, beside e, __m512 *sum,
          int each)
{
    int n = t->n_rows, r = 0, now;
    bool last =
        k->b1 == t->m->n_in / (mat_format_of(type)->class == MAT_K ? 256 : 32);
    const uint8_t *next =
        last ? t->panel + (size_t)e.n * e.next : k->head + k->bytes;

    for (; (now = handful(e, n - r)) > 0; r += now, sum += each) {
        feed c = {0};

        if (n > TILE_ROWS)
            c = feed_of(t, type, next, r, now);
        if (last)
            call_out(t, r, now, e.n);
        if (e.n == 1)
            rows_of_span(t, type, k, r, TILE_ROWS, e, &c, sum);
        else if (now == 6)
            rows_of_span(t, type, k, r, 6, e, &c, sum);
        else
            rows_of_span(t, type, k, r, 4, e, &c, sum);
        if (last)
            store_rows(t, r, now, e.n, sum);
    }
    for (int i = 0; i < e.n && r < n; i++) {
        span of = *k;

        of.head += (size_t)i * e.next;
        last_rows(t, type, &of, e, r, sum + i * TILE_ROWS);
    }
    if (last)
        store_rows(t, r, n - r, e.n, sum);
}

/* How many blocks go past together: spans of one length. */
static MAT_INLINE uint32_t
span_blocks(const mat_tile *t, const mat_format *f, bool wide)
{
    bool whole = t->n_rows <= TILE_ROWS || f->class == MAT_K ||
                 t->m->panel_bytes <= t->m->near_bytes / 6 * 5;
    uint32_t n = t->m->n_in / (f->class == MAT_K ? 256 : 32);
    uint32_t fours = (n + MAT_CHAINS - 1) / MAT_CHAINS, most, spans;

    if (wide)
        return WIDE_BLOCKS;
    if (whole)
        return n;
    most = (uint32_t)(t->m->near_bytes / 8 * 3 / four_bytes(f));
    most = BR_MAX(most, 1);
    spans = (fours + most - 1) / most;
    return (fours + spans - 1) / spans * MAT_CHAINS;
}

static MAT_INLINE void
panels_of_blocks(const mat_tile *t, int type, int panels, bool wide)
{
    const mat_format *f = mat_format_of(type);
    const beside e = {panels, panels, t->m->panel_bytes, wide,
                      wide,   false,  t->m->ahead,       t->m->pages};
    uint32_t n_blocks = t->m->n_in / (f->class == MAT_K ? 256 : 32);
    uint32_t most = span_blocks(t, f, wide);
    _Alignas(64) uint8_t bytes[WIDE_BLOCKS * WIDE_BLOCK];
    span k = {.head = t->panel, .wide = bytes};
    __m512 sum[HANDFULS * MAT_CHAINS * MAT_PANELS * TILE_ROWS];
    int each = MAT_CHAINS * panels * TILE_ROWS;

    for (; k.b0 < n_blocks; k.b0 = k.b1, k.head += k.bytes) {
        k.b1 = BR_MIN(k.b0 + most, n_blocks);
        k.bytes = (k.b1 - k.b0 + MAT_CHAINS - 1) / MAT_CHAINS * four_bytes(f);
        if (wide)
            unpack(f, &k, bytes);
        span_rows(t, type, &k, e, sum, most < n_blocks ? each : 0);
    }
}

static MAT_INLINE void
blocks(const mat_tile *t, int type)
{
    if (t->n_panels == 2)
        panels_of_blocks(t, type, 2, false);
    else if (mat_format_of(type)->class == MAT_K && t->n_rows >= WIDE_ROWS)
        panels_of_blocks(t, type, 1, true);
    else
        panels_of_blocks(t, type, 1, false);
}

#    include "drv/cpu/mat_avx512_floats.h"

/* ---- which --------------------------------------------------------------- */

static MAT_INLINE void
floats_of(const mat_tile *t, int type, bool tight)
{
    if (tight && t->n_rows <= TIGHT_ROWS)
        floats(t, type, 1, true);
    else if (tight && t->n_panels == 2)
        loosened_floats(t, type, 2);
    else if (tight)
        loosened_floats(t, type, 1);
    else if (t->n_panels == 2)
        floats(t, type, 2, false);
    else
        floats(t, type, 1, false);
}

/* Functions of their own, as gcc gives each more registers alone. */
static MAT_TILE void
bf16(const mat_tile *t)
{
    if (t->m->form == BR_FORM_BF16 && t->m->tight)
        floats_of(t, PAIRS, true);
    else if (t->m->form == BR_FORM_BF16)
        floats_of(t, PAIRS, false);
    else
        floats_of(t, BR_Q_BF16, t->m->tight);
}

/* One function per format. */
static MAT_TILE void
tile(const mat_tile *t, int type)
{
    if (mat_format_of(type)->class != MAT_FLOAT)
        blocks(t, type);
    else if (type == BR_Q_BF16)
        bf16(t);
    else
        floats_of(t, type, false);
}

bool
mat_avx512_tighten(const uint8_t *lines, const uint8_t *high, uint8_t *group,
                   uint8_t *spare)
{
    return tighten_group(lines, high, group, spare);
}

void
mat_avx512_loosen(const br_mat *m, const uint8_t *panel, uint8_t *to)
{
    for (uint32_t piece = 0; piece < 8; piece++)
        loosen_piece(m, panel, piece, to + (size_t)piece * m->n_in * 4);
}

#    define MAT_TILES mat_avx512
#    define MAT_REST  mat_c
#    include "drv/cpu/mat_tiles.h"

#endif
