/* cpu_att_pairs.h - attention in pairs of BF16, for cpu_ops_avx512.c.
 *
 * vdpbf16ps has the work of two fma and takes the time of one on Zen 4 and 5.
 * Beside weights in integers heads of F16 go through it, but for `exact`. Blocks,
 * pages and the fold are those of cpu_att_body.h, products are
 *
 *   scores   bf16(q * scale) and bf16(k), pairs of columns ascending, every
 *            other one to a sum, and both sums added
 *   weights  2^((score - top) / ln 2), summed in f32, then bf16
 *   values   bf16(v), pairs of keys ascending: keys 2 i and 2 i + 1 of the page
 *
 *   made     [pair][16][2]: a page is turned into pairs once, for all lines; one
 *            row does it as it goes (cpu_att_row.h)
 *
 * From F16 to BF16 are three operations of integers, for 32 numbers: rounded
 * half away from zero to seven bits, the exponent stays as it is, so that all
 * are 2^-112 of what they were. What they are multiplied by makes up for it.
 * Below 2^-14 a number of F16 counts as nothing, infinities and NaN as finite.
 *
 * Of a pair of which a line sees one half the other has the weight 0. So a line's
 * numbers do not depend on its company here either. Error against f32: that of
 * rounding each number to 8 bits, 1e-5 of NMSE or so (tests/unit/test_cpu_att.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_ATT_PAIRS_H
#define BR_CPU_ATT_PAIRS_H

enum {
    PAIR_LINES = 4, /* that go through a block together */
    PAIR_PAGES = BR_CPU_BLOCK / BR_PAGE_TOKENS,
    PAIR_SUMS = 2 /* of a score */
};

/* Numbers are 2^-112 of what they were: queries are 2^64 times as large, scores
 * again when they are done, weights 2^112 times. So what f32 can hold is less
 * by 2^63 for queries, and nothing that counts is lost below. */
static const float PAIR_QUERY = 0x1p64f, PAIR_SCORE = 0x1p48f,
                   PAIR_WEIGHT = 0x1p112f;

/* The keys and values of a block. */
typedef struct pair_block {
    const uint16_t *k[PAIR_PAGES], *v[PAIR_PAGES]; /* as they lie */
    const uint16_t *made_k, *made_v;
    const uint16_t *next[2 * PAIR_PAGES]; /* of the next block: keys, values */
    uint32_t n_next;                      /* 0: there is none */
} pair_block;

/* 32 numbers of F16, as BF16 and 2^-112 of them. */
V_INLINE __m512i
near_f16(__m512i x)
{
    x = _mm512_srai_epi16(_mm512_add_epi16(x, _mm512_set1_epi16(4)), 3);
    return _mm512_and_si512(x, _mm512_set1_epi16((short)0x8fff));
}

/* Numbers i of both halves, side by side. */
V_INLINE __m512i
halves_up(__m512i x)
{
    const __m512i beside = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
        6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);

    return _mm512_permutexvar_epi16(beside, near_f16(x));
}

/* Numbers i of both, side by side. */
V_INLINE __m512i
pair_up(const uint16_t *lo, const uint16_t *hi)
{
    __m512i x = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)lo));

    return halves_up(
        _mm512_inserti64x4(x, _mm256_loadu_si256((const void *)hi), 1));
}

/* *x is a pair for all lanes; see v_fma_at. */
V_INLINE __m512
pairs_add(__m512 sum, const uint32_t *x, __m512i y)
{
#if !defined MAT_BY_FUNCTIONS
    __asm__("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(y), "m"(*x));
    return sum;
#else
    return _mm512_dpbf16_ps(sum, (__m512bh)y,
                            (__m512bh)_mm512_set1_epi32((int)*x));
#endif
}

/* Queries, [n / 4][head_k / 2][4 lines] pairs. Lines that are not there are
 * zero, and multiplied with. */
static void
pair_queries(const att *s)
{
    const uint32_t width = s->a->head_k;
    uint32_t *q = (void *)s->q, of[8];

    for (uint32_t i = 0; i < (s->n + 3) / 4 * 4; i++, q++) {
        for (uint32_t d = 0; d < width; d += 16) {
            const float *x = i < s->n ? s->lines[i].q + d : NULL;
            vf y = x ? v_mul(v_load(x), v_set(s->a->scale * PAIR_QUERY))
                     : v_set(0);

            _mm256_storeu_si256((void *)of,
                                (__m256i)_mm512_cvtneps_pbh(y.r[0]));
            for (uint32_t k = 0; k < 8; k++)
                q[(d / 2 + k) * 4] = of[k];
        }
        q += i % 4 == 3 ? width / 2 * 4 - 4 : 0;
    }
}

/* ---- a block's pages ---------------------------------------------------- */

/* Pages of rows of `width`, as pairs. */
static void
make_pairs(const uint16_t *x, size_t rows, size_t width, uint16_t *to)
{
    for (size_t r = 0; r < rows; r += 2, x += 2 * width)
        for (size_t d = 0; d < width; d += 16, to += 32)
            _mm512_storeu_si512(to, pair_up(x + d, x + d + width));
}

/* A head's keys or values of the pages from position p on; they mostly follow
 * each other. */
static void
find_pieces(const att *s, int32_t p, int32_t n, bool keys, const uint16_t **to)
{
    const uint32_t *page = s->a->pages + p / 16;
    size_t bytes = keys ? s->k_bytes : s->v_bytes;

    for (int32_t j = 0; j < n; j++)
        to[j] = j && s->a->sheets && page[j] == page[j - 1] + 1 &&
                        page[j] % BR_SHEET
                    ? to[j - 1] + bytes / 2
                    : (const void *)page_at(s, p + 16 * j, keys);
}

static void
find_pages(const att *s, int32_t hi, pair_block *b)
{
    const int32_t first = s->from / BR_CPU_BLOCK * BR_CPU_BLOCK;
    const int32_t skip = (s->from - first) / 16;
    const int32_t n = (s->to - s->from + 15) / 16;
    /* Pages that a window has left behind are not there any more. */
    const int32_t next = s->next_by ? first + s->next_by : s->from;
    const int32_t n_next =
        s->next_by ? BR_MIN((hi - next + 16) / 16, (int32_t)PAIR_PAGES) : n;

    find_pieces(s, s->from, n, true, b->k + skip);
    find_pieces(s, s->from, n, false, b->v + skip);
    b->n_next = (uint32_t)BR_MAX(n_next, 0);
    find_pieces(s->next, next, (int32_t)b->n_next, true, b->next);
    find_pieces(s->next, next, (int32_t)b->n_next, false, b->next + b->n_next);
    b->n_next *= 2;
}

static void
make_block(const att *s, pair_block *b)
{
    const int32_t first = s->from / BR_CPU_BLOCK * BR_CPU_BLOCK;
    uint16_t *k = (void *)s->page, *v = k + BR_CPU_BLOCK * s->a->head_k;

    b->made_k = k;
    b->made_v = v;
    for (int32_t j = (s->from - first) / 16; j < (s->to - first + 15) / 16;
         j++) {
        make_pairs(b->k[j], s->a->head_k, 16,
                   k + 16 * (size_t)j * s->a->head_k);
        make_pairs(b->v[j], 16, s->wide, v + 16 * (size_t)j * s->wide);
    }
}

/* ---- scores ------------------------------------------------------------- */

/* Both sums of a score. */
V_INLINE __m512
score_of(__m512 even, __m512 odd)
{
    return _mm512_mul_ps(_mm512_add_ps(even, odd), _mm512_set1_ps(PAIR_SCORE));
}

/* Of four lines with so many pages of pairs from k on, PAIR_SUMS at most.
 * Meanwhile a page comes. */
V_INLINE void
pair_scores(const att *s, const uint16_t *k, size_t to, uint32_t i0, int pages,
            const uint8_t *ahead)
{
    const size_t pairs = s->a->head_k / 2, page = 32 * pairs;
    const uint32_t *q = (const uint32_t *)(const void *)s->q + i0 * pairs;
    size_t come = ahead ? s->k_bytes / 64 : 0;
    float *x = scores_of(s, 0) + to;
    __m512 sum[4 * PAIR_SUMS * PAIR_SUMS];

    V_UNROLL
    for (int i = 0; i < 4 * PAIR_SUMS * pages; i++)
        sum[i] = _mm512_setzero_ps();
    for (size_t d = 0; d < pairs; d += PAIR_SUMS, k += 32 * PAIR_SUMS) {
        if (d < come)
            fetch(ahead + 64 * d, 64 * PAIR_SUMS);
        V_UNROLL
        for (int j = 0; j < PAIR_SUMS * pages; j++) {
            int of = j % PAIR_SUMS;
            __m512i y = _mm512_loadu_si512(k + page * (size_t)(j / PAIR_SUMS) +
                                           32 * of);

            V_UNROLL
            for (int i = 0; i < 4; i++)
                sum[4 * j + i] =
                    pairs_add(sum[4 * j + i], q + 4 * (d + (size_t)of) + i, y);
        }
    }
    V_UNROLL
    for (int i = 0; i < 4 * pages; i++)
        _mm512_storeu_ps(
            x + i % 4 * BR_CPU_SCORES + 16 * (i / 4),
            score_of(sum[i / 4 * 8 + i % 4], sum[i / 4 * 8 + 4 + i % 4]));
}

V_APART void
scores_made(const att *s, const uint16_t *k, size_t to, uint32_t i0, int pages,
            const uint8_t *ahead)
{
    if (pages == 1)
        pair_scores(s, k, to, i0, 1, ahead);
    else
        pair_scores(s, k, to, i0, 2, ahead);
}

/* Of four lines from i0 on, with the pages that one of them sees. */
static void
lines_scores(const att *s, const pair_block *b, uint32_t i0, att_part see)
{
    int32_t j = see.from % BR_CPU_BLOCK / 16;
    int32_t end = j + (see.to + 15) / 16 - see.from / 16;

    for (int32_t pages; j < end; j += pages) {
        uint32_t next = 2 * i0 + (uint32_t)j / 2;

        pages = BR_MIN(end - j, PAIR_SUMS);
        scores_made(s, b->made_k + 16 * (size_t)j * s->a->head_k,
                    16 * (size_t)j, i0, pages,
                    next < b->n_next ? (const uint8_t *)b->next[next] : NULL);
    }
}

/* ---- weights ------------------------------------------------------------ */

/* 2^x, relative error 3e-6; 1 for 0. */
V_INLINE vf
pair_exp2(vf x)
{
    vf r = {{_mm512_reduce_ps(x.r[0], 1)}}, p; /* x - floor(x) */

    p = v_fma(v_set(0x1.b7f732p-7f), r, v_set(0x1.abf868p-5f));
    p = v_fma(p, r, v_set(0x1.ee245p-3f));
    p = v_fma(p, r, v_set(0x1.62d6c6p-1f));
    p = v_fma(p, r, v_set(1));
    p.r[0] = _mm512_scalef_ps(p.r[0], x.r[0]);
    return p;
}

/* The highest score of a block. */
static float
pairs_top(const att *s, float *x, const att_part *p)
{
    int32_t from = p->from % BR_CPU_BLOCK, to = from + p->to - p->from;
    int32_t i = from / 16 * 16;
    vf m = v_set(-INFINITY), m2 = m, cap = v_set(s->a->cap);

    for (int32_t j = i; j < to && s->a->cap > 0; j += 16)
        v_store(x + j, v_mul(cap, v_tanh(v_div(v_load(x + j), cap))));
    for (int32_t j = i; j < from; j++)
        x[j] = -INFINITY; /* not seen: outside of the window */
    for (int32_t j = to; j % 16; j++)
        x[j] = -INFINITY; /* not yet written, or of a later row */
    for (; i + 16 < to; i += 32) {
        m = v_max(v_load(x + i), m);
        m2 = v_max(v_load(x + i + 16), m2);
    }
    if (i < to)
        m = v_max(v_load(x + i), m);
    return v_top(v_max(m2, m));
}

/* Of 16 scores, in pairs; to the sum, too. */
V_INLINE void
pair_weights(const float *x, float top, vf *sum, uint16_t *e)
{
    vf y = v_mul(v_sub(v_load(x), v_set(top)), v_set(0x1.715476p+0f));

    y = pair_exp2(v_max(v_set(-300), y)); /* 0 of what is not seen */
    *sum = v_add(*sum, y);
    y = v_mul(y, v_set(PAIR_WEIGHT));
    _mm256_storeu_si256((void *)e, (__m256i)_mm512_cvtneps_pbh(y.r[0]));
}

/* Weights take the place of the first half of the scores. */
static void
pairs_weights(float *x, att_part *p)
{
    int32_t from = p->from % BR_CPU_BLOCK, to = from + p->to - p->from;
    vf sum = v_set(0);

    for (int32_t i = from / 16 * 16; i < to; i += 16)
        pair_weights(x + i, p->top, &sum, (uint16_t *)(void *)x + i);
    p->sum = v_sum(sum);
}

/* ---- values ------------------------------------------------------------- */

/* sum += a pair's weights times nv vectors of columns, of n lines. */
V_INLINE void
weigh_pair(__m512 *sum, const uint32_t *e, const uint16_t *v, int n, int nv)
{
    V_UNROLL
    for (int c = 0; c < nv; c++) {
        __m512i y = _mm512_loadu_si512(v + 32 * c);

        V_UNROLL
        for (int i = 0; i < n; i++)
            sum[c * n + i] =
                pairs_add(sum[c * n + i], e + i * BR_CPU_SCORES, y);
    }
}

/* nv vectors of columns from d on, of n lines from i0 on, whose weights are
 * those of lines e0 .. : all of the block that they see. */
V_INLINE void
weigh_pairs(const att *s, const pair_block *b, const att_part *see, uint32_t d,
            uint32_t i0, uint32_t e0, int n, int nv)
{
    const uint32_t *e = (const uint32_t *)(const void *)scores_of(s, e0);
    const int32_t from = see->from % BR_CPU_BLOCK;
    const int32_t to = from + see->to - see->from;
    const size_t wide = s->wide;
    float *acc = block_of(s, i0) + d;
    size_t line = s->line;
    __m512 sum[16];

    V_UNROLL
    for (int i = 0; i < nv * n; i++)
        sum[i] = _mm512_setzero_ps();
    for (int32_t k = from / 2; k < (to + 1) / 2; k++)
        weigh_pair(sum, e + k, b->made_v + ((size_t)k * wide + d) * 2, n, nv);
    V_UNROLL
    for (int i = 0; i < nv * n; i++)
        _mm512_storeu_ps(acc + (size_t)(i % n) * line + 16 * (i / n), sum[i]);
}

/* All columns of n lines, four vectors of them at a time. */
V_INLINE void
pair_columns(const att *s, const pair_block *b, const att_part *see,
             uint32_t i0, uint32_t e0, int n)
{
    uint32_t d = 0;

    for (; d + 64 <= s->wide; d += 64)
        weigh_pairs(s, b, see, d, i0, e0, n, 4);
    for (; d < s->wide; d += 16)
        weigh_pairs(s, b, see, d, i0, e0, n, 1);
}

V_APART void
columns_made(const att *s, const pair_block *b, const att_part *see,
             uint32_t i0, uint32_t e0, uint32_t n)
{
    switch (n) {
    case 1: pair_columns(s, b, see, i0, e0, 1); break;
    case 2: pair_columns(s, b, see, i0, e0, 2); break;
    case 3: pair_columns(s, b, see, i0, e0, 3); break;
    default: pair_columns(s, b, see, i0, e0, 4); break;
    }
}

/* Of n lines from i0 on, those together that see the same. */
static void
lines_values(const att *s, const pair_block *b, uint32_t i0, uint32_t n)
{
    for (uint32_t i = i0, same; i < i0 + n; i += same) {
        const att_part *see = &s->part[i];

        for (same = 1; i + same < i0 + n; same++)
            if (see[same].from != see->from || see[same].to != see->to)
                break;
        if (see->from < see->to)
            columns_made(s, b, see, i, i - i0, same);
    }
}

/* ---- all of it ---------------------------------------------------------- */

/* Four lines through the block. */
static void
lines_through(att *s, const pair_block *b, uint32_t i0, uint32_t n)
{
    att_part see = {.from = INT32_MAX};

    for (uint32_t i = i0; i < i0 + n; i++)
        if (s->part[i].from < s->part[i].to) {
            see.from = BR_MIN(see.from, s->part[i].from);
            see.to = BR_MAX(see.to, s->part[i].to);
        }
    if (see.from >= see.to)
        return;
    lines_scores(s, b, i0, see);
    for (uint32_t i = 0; i < n; i++) {
        att_part *p = &s->part[i0 + i];

        if (p->from < p->to)
            p->top = pairs_top(s, scores_of(s, i), p);
    }
    for (uint32_t i = 0; i < n; i++)
        if (s->part[i0 + i].from < s->part[i0 + i].to)
            pairs_weights(scores_of(s, i), &s->part[i0 + i]);
    lines_values(s, b, i0, n);
    for (uint32_t i = i0; i < i0 + n; i++)
        leave_block(s, i);
}

/* As through_block. */
static void
through_pairs(att *s, int32_t hi)
{
    pair_block b;

    find_pages(s, hi, &b);
    make_block(s, &b);
    for (uint32_t i = 0; i < s->n; i += PAIR_LINES)
        lines_through(s, &b, i, BR_MIN(s->n - i, (uint32_t)PAIR_LINES));
}

#endif
