/* cpu_att_pairs.h - attention in pairs of BF16, for cpu_ops_avx512.c.
 *
 * vdpbf16ps has the work of two fma and takes the time of one on Zen 4 and 5.
 * Beside weights in integers heads of F16 go through it, but for `exact`. Blocks,
 * pages and the fold are those of cpu_att_body.h, products are
 *
 *   scores   bf16(q * scale) and bf16(k), pairs of columns ascending, a sum
 *   weights  2^((score - top) / ln 2), summed in f32, then bf16
 *   values   bf16(v), pairs of keys ascending: keys 2 i and 2 i + 1 of the page
 *
 *   made     [pair][16][2]: for many lines, a page is turned into pairs once;
 *            up to eight do it as they go
 *
 * A pair of which a line sees one half has zeros in the other. So a line's
 * numbers do not depend on its company here either. Error against f32: that of
 * rounding each number to 8 bits, 1e-5 of NMSE or so (tests/unit/test_cpu_att.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_ATT_PAIRS_H
#define BR_CPU_ATT_PAIRS_H

enum {
    PAIR_LINES = 4, /* that go through a block together */
    PAIRS_ONCE = 8, /* lines for which nothing is kept in pairs */
    PAIR_PAGES = BR_CPU_BLOCK / BR_PAGE_TOKENS
};

/* The keys and values of a block. */
typedef struct pair_block {
    const uint16_t *k[PAIR_PAGES], *v[PAIR_PAGES]; /* as they lie */
    const uint16_t *made_k, *made_v;               /* NULL: not made */
    const uint16_t *next[2 * PAIR_PAGES]; /* of the next block: keys, values */
    uint32_t n_next;                      /* 0: there is none */
} pair_block;

/* Numbers i of both, side by side. */
V_INLINE __m512i
pair_up(const uint16_t *lo, const uint16_t *hi)
{
    const __m512i beside = _mm512_set_epi16(
        31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
        6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512bh x = _mm512_cvtne2ps_pbh(v_load_f16(hi).r[0], v_load_f16(lo).r[0]);

    return _mm512_permutexvar_epi16(beside, (__m512i)x);
}

/* *x is a pair for all lanes. */
V_INLINE __m512
pairs_add(__m512 sum, const uint32_t *x, __m512i y)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)y,
                            (__m512bh)_mm512_set1_epi32((int)*x));
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
            vf y = x ? v_mul(v_load(x), v_set(s->a->scale)) : v_set(0);

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
    if (s->n <= PAIRS_ONCE)
        return;
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

/* Of n lines with so many pages: k as it lies in them, or in pairs. Meanwhile
 * so many cache lines of `ahead` come, of the first page or of each. */
V_INLINE void
pair_scores(const att *s, const uint16_t *const *k, size_t to, uint32_t i0,
            int n, int pages, bool made, const uint8_t *const *ahead,
            size_t come)
{
    const size_t pairs = s->a->head_k / 2;
    const uint32_t *q = (const uint32_t *)(const void *)s->q + i0 * pairs;
    float *x = scores_of(s, 0) + to;
    __m512 sum[16];

    V_UNROLL
    for (int i = 0; i < n * pages; i++)
        sum[i] = _mm512_setzero_ps();
    for (size_t d = 0; d < pairs; d++, q += 4) {
        V_UNROLL
        for (int j = 0; j < pages; j++) {
            const uint16_t *at = k[j] + 32 * d;
            __m512i y = made ? _mm512_loadu_si512(at) : pair_up(at, at + 16);

            if (d < come && (j == 0 || !made))
                __builtin_prefetch(ahead[j] + 64 * d, 0, 2);
            V_UNROLL
            for (int i = 0; i < n; i++)
                sum[j * n + i] = pairs_add(sum[j * n + i], q + i, y);
        }
    }
    V_UNROLL
    for (int i = 0; i < n * pages; i++)
        _mm512_storeu_ps(x + i % n * BR_CPU_SCORES + 16 * (i / n), sum[i]);
}

V_INLINE void
pair_scores_of(const att *s, const uint16_t *const *k, size_t to, uint32_t i0,
               int n, int pages, bool made, const uint8_t *const *ahead,
               size_t come)
{
    switch (pages) {
    case 1: pair_scores(s, k, to, i0, n, 1, made, ahead, come); break;
    case 2: pair_scores(s, k, to, i0, n, 2, made, ahead, come); break;
    case 3: pair_scores(s, k, to, i0, n, 3, made, ahead, come); break;
    default: pair_scores(s, k, to, i0, n, 4, made, ahead, come); break;
    }
}

V_APART void
scores_once(const att *s, const uint16_t *const *k, size_t to, uint32_t i0,
            uint32_t n, int pages, const uint8_t *const *ahead)
{
    size_t come = i0 ? 0 : s->v_bytes / 64;

    switch (n) {
    case 1: pair_scores_of(s, k, to, i0, 1, pages, false, ahead, come); break;
    case 2: pair_scores_of(s, k, to, i0, 2, pages, false, ahead, come); break;
    default: pair_scores_of(s, k, to, i0, 4, pages, false, ahead, come); break;
    }
}

V_APART void
scores_made(const att *s, const uint16_t *const *k, size_t to, uint32_t i0,
            int pages, const uint8_t *ahead)
{
    pair_scores_of(s, k, to, i0, 4, pages, true, &ahead,
                   ahead ? s->k_bytes / 64 : 0);
}

/* Of lines i0 to i0 + n - 1, with the pages that one of them sees. */
static void
lines_scores(const att *s, const pair_block *b, uint32_t i0, uint32_t n,
             att_part see)
{
    const uint16_t *k[ATT_PAGES];
    int32_t j = see.from % BR_CPU_BLOCK / 16;
    int32_t end = j + (see.to + 15) / 16 - see.from / 16;

    for (int32_t pages; j < end; j += pages) {
        uint32_t next = i0 + (uint32_t)j / 4;

        pages = BR_MIN(end - j, ATT_PAGES);
        if (!b->made_k) {
            scores_once(s, b->k + j, 16 * (size_t)j, i0, n, pages,
                        (const uint8_t *const *)(const void *)(b->v + j));
            continue;
        }
        for (int32_t i = 0; i < pages; i++)
            k[i] = b->made_k + 16 * (size_t)(j + i) * s->a->head_k;
        scores_made(s, k, 16 * (size_t)j, i0, pages,
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

/* Weights take the place of the first half of the scores. */
static void
pairs_weights(float *x, att_part *p)
{
    int32_t from = p->from % BR_CPU_BLOCK, to = from + p->to - p->from;
    uint16_t *e = (void *)x;
    vf sum = v_set(0), top = v_set(p->top);

    for (int32_t i = from / 16 * 16; i < to; i += 16) {
        vf y = v_mul(v_sub(v_load(x + i), top), v_set(0x1.715476p+0f));

        y = pair_exp2(v_max(v_set(-150), y));
        sum = v_add(sum, y);
        _mm256_storeu_si256((void *)(e + i),
                            (__m256i)_mm512_cvtneps_pbh(y.r[0]));
    }
    p->sum = v_sum(sum);
}

/* ---- values ------------------------------------------------------------- */

typedef enum pair_kind { PAIR_MADE, PAIR_RAW, PAIR_LOW, PAIR_HIGH } pair_kind;

/* Sixteen columns of a pair of keys; of a half, the other being zero. */
V_INLINE __m512i
pair_values(const uint16_t *v, size_t width, pair_kind kind)
{
    if (kind == PAIR_MADE)
        return _mm512_loadu_si512(v);
    if (kind == PAIR_RAW)
        return pair_up(v, v + width);
    return _mm512_and_si512(
        pair_up(v, v + width),
        _mm512_set1_epi32(kind == PAIR_LOW ? 0xffff : (int)0xffff0000));
}

/* sum += a pair's weights times nv vectors of columns, of n lines. */
V_INLINE void
weigh_pair(__m512 *sum, const uint32_t *e, const uint16_t *v, size_t width,
           int n, int nv, pair_kind kind)
{
    V_UNROLL
    for (int c = 0; c < nv; c++) {
        __m512i y =
            pair_values(v + (kind == PAIR_MADE ? 32 : 16) * c, width, kind);

        V_UNROLL
        for (int i = 0; i < n; i++)
            sum[c * n + i] =
                pairs_add(sum[c * n + i], e + i * BR_CPU_SCORES, y);
    }
}

/* Pairs k to end - 1 as they lie; the next block's keys come. */
V_INLINE void
weigh_raw(const att *s, const pair_block *b, __m512 *sum, const uint32_t *e,
          int32_t k, int32_t end, uint32_t d, bool come, int n, int nv)
{
    const size_t wide = s->wide, of = s->k_bytes * d / wide;
    size_t step = s->k_bytes * (size_t)nv / wide * 2;

    for (; k < end; k++) {
        if (come && b->n_next > (uint32_t)k / 8) {
            const uint8_t *next =
                (const uint8_t *)b->next[k / 8] + of + step * (size_t)(k % 8);

            for (size_t i = 0; i < step; i += 64)
                __builtin_prefetch(next + i, 0, 2);
        }
        weigh_pair(sum, e + k, b->v[k / 8] + (size_t)(k % 8) * 2 * wide + d,
                   wide, n, nv, PAIR_RAW);
    }
}

/* nv vectors of columns from d on, of n lines from i0 on, whose weights are
 * those of lines e0 .. : all of the block that they see. */
V_INLINE void
weigh_pairs(const att *s, const pair_block *b, const att_part *see, uint32_t d,
            uint32_t i0, uint32_t e0, int n, int nv, bool made)
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
    if (from % 2)
        weigh_pair(sum, e + from / 2,
                   b->v[from / 16] + (size_t)(from % 16 - 1) * wide + d, wide,
                   n, nv, PAIR_HIGH);
    if (made)
        for (int32_t k = (from + 1) / 2; k < to / 2; k++)
            weigh_pair(sum, e + k, b->made_v + ((size_t)k * wide + d) * 2, wide,
                       n, nv, PAIR_MADE);
    else
        weigh_raw(s, b, sum, e, (from + 1) / 2, to / 2, d, i0 == 0, n, nv);
    if (to % 2)
        weigh_pair(sum, e + to / 2,
                   b->v[to / 16] + (size_t)(to % 16 - 1) * wide + d, wide, n,
                   nv, PAIR_LOW);
    V_UNROLL
    for (int i = 0; i < nv * n; i++)
        _mm512_storeu_ps(acc + (size_t)(i % n) * line + 16 * (i / n), sum[i]);
}

/* All columns of n lines, four vectors of them at a time. */
V_INLINE void
pair_columns(const att *s, const pair_block *b, const att_part *see,
             uint32_t i0, uint32_t e0, int n, bool made)
{
    uint32_t d = 0;

    for (; d + 64 <= s->wide; d += 64)
        weigh_pairs(s, b, see, d, i0, e0, n, 4, made);
    for (; d < s->wide; d += 16)
        weigh_pairs(s, b, see, d, i0, e0, n, 1, made);
}

V_APART void
columns_once(const att *s, const pair_block *b, const att_part *see,
             uint32_t i0, uint32_t e0, uint32_t n)
{
    switch (n) {
    case 1: pair_columns(s, b, see, i0, e0, 1, false); break;
    case 2: pair_columns(s, b, see, i0, e0, 2, false); break;
    case 3: pair_columns(s, b, see, i0, e0, 3, false); break;
    default: pair_columns(s, b, see, i0, e0, 4, false); break;
    }
}

V_APART void
columns_made(const att *s, const pair_block *b, const att_part *see,
             uint32_t i0, uint32_t e0, uint32_t n)
{
    switch (n) {
    case 1: pair_columns(s, b, see, i0, e0, 1, true); break;
    case 2: pair_columns(s, b, see, i0, e0, 2, true); break;
    case 3: pair_columns(s, b, see, i0, e0, 3, true); break;
    default: pair_columns(s, b, see, i0, e0, 4, true); break;
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
        if (see->from >= see->to)
            continue;
        if (b->made_v)
            columns_made(s, b, see, i, i - i0, same);
        else
            columns_once(s, b, see, i, i - i0, same);
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
    lines_scores(s, b, i0, n, see);
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
    pair_block b = {.made_k = NULL};

    find_pages(s, hi, &b);
    if (s->n > PAIRS_ONCE)
        make_block(s, &b);
    for (uint32_t i = 0; i < s->n; i += PAIR_LINES)
        lines_through(s, &b, i, BR_MIN(s->n - i, (uint32_t)PAIR_LINES));
}

/* Of heads that are not for pairs: as ever. */
static void
attend_pairs(const br_cpu_att *a)
{
    if (a->has_v && br_cpu_att_pairs(a->kv, a->head_k, a->head_v))
        walk_blocks(a, pair_queries, through_pairs);
    else
        attend(a);
}

#endif
