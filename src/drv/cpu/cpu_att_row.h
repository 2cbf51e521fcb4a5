/* cpu_att_row.h - one row's attention in pairs of BF16, for cpu_ops_avx512.c.
 *
 * Memory is the bound of one row, so what is done with it has to go on beside
 * it all the time. Keys and values of a head are read as they lie, a page after
 * the other, ROW_TURN bytes of the one and then of the other:
 *
 *   keys     of the next head (or of the first one's next block): scores
 *   weights  of this one, a page at a time
 *   values   of this one
 *
 * so no part of the work reads nothing, and both streams of memory go on from
 * head to head. What is ROW_AHEAD bytes later in a stream is called for,
 * wherever that is; nearer and the processor's own prefetchers are in the way,
 * further and lines are held for longer than there are places (0026). A call that
 * finds no place is forgotten, so each line is called for again a page later.
 *
 * That is a Zen 4. On a Zen 5 calls to the first cache wait for a place, so one is
 * enough, and what is late is where a page of 4 KB lies: lines of each page are
 * called for ROW_PAGES pages ahead (br_cpu_att.once). Calls stand one after the
 * other there: in a loop as long as a page says attention took a ninth longer (0026).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_ATT_ROW_H
#define BR_CPU_ATT_ROW_H

enum {
    ROW_LINES = 8,
    ROW_TURN = 4 << 10,
    ROW_AHEAD = 6 << 10,
    ROW_PAGES = 8,
    ROW_PARTS = 4 /* of a page: a call each */
};

/* How lines are called for. */
typedef enum row_calls { LINES_TWICE, LINES_ONCE } row_calls;

/* What the walk's first head has of a block. The other heads' lie so many bytes
 * later, wherever the pages are. */
typedef struct row_pages {
    const uint16_t *k[PAIR_PAGES], *v[PAIR_PAGES];
} row_pages;

/* A head and a block: pages first to first + n - 1 of it. */
typedef struct row_part {
    att *s;
    const row_pages *pages;
    size_t k_at, v_at; /* from the first head's */
    int32_t from, to;
    int32_t first, n, by_k, by_v; /* ROW_AHEAD is so many later, */
    int32_t turn;                 /* ROW_TURN so many */
    uint32_t line;                /* scores are those of so many lines later */
    float top[ROW_LINES];
    vf max[ROW_LINES], sum[ROW_LINES];
} row_part;

/* Where the walk is. */
typedef struct row_walk {
    att_walk w;
    int32_t b;
    uint32_t h, t;            /* parts so far */
    int32_t by_k, by_v, turn; /* pages */
    row_pages pages[3];       /* of block b % 3: parts are three at a time */
} row_walk;

static const uint16_t *
keys_of(const row_part *u, int32_t j)
{
    return (const void *)((const uint8_t *)u->pages->k[j] + u->k_at);
}

static const uint16_t *
values_of(const row_part *u, int32_t j)
{
    return (const void *)((const uint8_t *)u->pages->v[j] + u->v_at);
}

/* Page j of a stream, or one of the next part's. */
static const uint8_t *
page_ahead(const row_part *u, const row_part *next, int32_t j,
           const uint16_t *(*at)(const row_part *u, int32_t j))
{
    if (j >= u->n && next)
        return (const uint8_t *)at(next, BR_MIN(j - u->n, next->n - 1));
    return (const uint8_t *)at(u, BR_MIN(j, u->n - 1));
}

/* What is called for beside a page. */
typedef struct row_soon {
    const uint8_t *far, *near;
} row_soon;

/* Beside page j of u's keys or values, after which come those of `next`. */
V_INLINE row_soon
soon_of(const row_part *u, const row_part *next, int32_t j, int32_t by,
        const uint16_t *(*at)(const row_part *u, int32_t j))
{
    return (row_soon){page_ahead(u, next, j + by, at),
                      page_ahead(u, next, j + BR_MAX(by - 1, 1), at)};
}

V_INLINE void
call_lines(const row_soon *soon, size_t at, size_t bytes, row_calls calls)
{
    if (calls == LINES_TWICE) {
        fetch(soon->far + at, bytes);
        fetch(soon->near + at, bytes);
        return;
    }
    V_UNROLL
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(soon->far + at + i, 0, 3);
}

/* Where page j + ROW_PAGES of a stream lies, which is so long. */
V_INLINE void
call_page(const row_part *u, const row_part *next, int32_t j, size_t bytes,
          const uint16_t *(*at)(const row_part *u, int32_t j), row_calls calls)
{
    const uint8_t *p;

    if (calls == LINES_TWICE)
        return;
    p = page_ahead(u, next, j + ROW_PAGES, at);
    V_UNROLL
    for (size_t i = 0; i < ROW_PARTS; i++)
        __builtin_prefetch(p + bytes / ROW_PARTS * i, 0, 3);
}

/* So many pages of `bytes` later. Heads of 128 have 4 KB, so 4 or 8 KB: calls that
 * wait want the nearer one. */
static int32_t
pages_ahead(size_t bytes, row_calls calls)
{
    size_t up = calls == LINES_TWICE ? bytes / 2 : 0;

    return (int32_t)BR_MAX((ROW_AHEAD + up) / bytes, (size_t)1);
}

/* sum[i] += the products of y with *x[i], four pairs for all lanes. In one: of a
 * loop of pairs_add() gcc 12 keeps the sums twice and copies them, a third of what
 * the loop is (0026). */
V_INLINE void
pairs_add4(__m512 *sum, const uint32_t *const *x, __m512i y)
{
#if !defined MAT_BY_FUNCTIONS
    __asm__("vdpbf16ps %5%{1to16%}, %4, %0\n\t"
            "vdpbf16ps %6%{1to16%}, %4, %1\n\t"
            "vdpbf16ps %7%{1to16%}, %4, %2\n\t"
            "vdpbf16ps %8%{1to16%}, %4, %3"
            : "+&v"(sum[0]), "+&v"(sum[1]), "+&v"(sum[2]), "+&v"(sum[3])
            : "v"(y), "m"(*x[0]), "m"(*x[1]), "m"(*x[2]), "m"(*x[3]));
#else
    for (int i = 0; i < 4; i++)
        sum[i] = pairs_add(sum[i], x[i], y);
#endif
}

/* ---- scores and weights ------------------------------------------------- */

/* Of up to so many fours of lines from i0 on. Beside them `soon` comes. */
V_INLINE void
row_scores(row_part *u, int32_t j, uint32_t i0, int fours, const row_soon *soon,
           row_calls calls)
{
    const att *s = u->s;
    const size_t pairs = s->a->head_k / 2;
    const uint32_t *q = (const uint32_t *)(const void *)s->q + i0 * pairs;
    const uint16_t *k = keys_of(u, j);
    float *x = scores_of(s, u->line + i0) + 16 * (u->first + j);
    __m512 sum[2 * 4 * PAIR_SUMS];

    V_UNROLL
    for (int i = 0; i < fours * 4 * PAIR_SUMS; i++)
        sum[i] = _mm512_setzero_ps();
    for (size_t d = 0; d < pairs; d += PAIR_SUMS, k += 32 * PAIR_SUMS) {
        V_UNROLL
        for (int of = 0; of < PAIR_SUMS; of++, q += 4) {
            __m512i y = halves_up(_mm512_loadu_si512(k + 32 * of));

            call_lines(soon, 64 * (d + (size_t)of), 64, calls);
            V_UNROLL
            for (int f = 0; f < fours; f++) {
                const uint32_t *of4 = q + (size_t)f * 4 * pairs;

                pairs_add4(
                    sum + 4 * (f * PAIR_SUMS + of),
                    (const uint32_t *const[]){of4, of4 + 1, of4 + 2, of4 + 3},
                    y);
            }
        }
    }
    V_UNROLL
    for (uint32_t i = 0; i < 4 * (uint32_t)fours; i++) {
        const __m512 *of = sum + i / 4 * 4 * PAIR_SUMS + i % 4;
        vf score = {{score_of(of[0], of[4])}};

        v_store(x + i * BR_CPU_SCORES, score);
        u->max[i0 + i] = j == 0 ? score : v_max(score, u->max[i0 + i]);
    }
}

/* Of page j. `after`: the part whose keys come after these, or NULL. */
V_INLINE void
scores_of_page(row_part *u, const row_part *after, int32_t j, row_calls calls)
{
    row_soon soon = soon_of(u, after, j, u->by_k, keys_of);

    call_page(u, after, j, u->s->k_bytes, keys_of, calls);
    if (u->s->n > PAIR_LINES) /* keys are widened once for all of them */
        row_scores(u, j, 0, 2, &soon, calls);
    else
        row_scores(u, j, 0, 1, &soon, calls);
}

V_APART void
scores_twice(row_part *u, const row_part *after, int32_t j)
{
    scores_of_page(u, after, j, LINES_TWICE);
}

V_APART void
scores_once(row_part *u, const row_part *after, int32_t j)
{
    scores_of_page(u, after, j, LINES_ONCE);
}

V_INLINE void
score_page(row_part *u, const row_part *after, int32_t j, row_calls calls)
{
    if (calls == LINES_TWICE)
        scores_twice(u, after, j);
    else
        scores_once(u, after, j);
}

V_APART void
weigh_page(row_part *u, int32_t j)
{
    for (uint32_t i = 0; i < u->s->n; i++) {
        float *x = scores_of(u->s, u->line + i);
        int32_t at = 16 * (u->first + j);

        pair_weights(x + at, u->top[i], &u->sum[i], (uint16_t *)(void *)x + at);
    }
}

/* ---- values ------------------------------------------------------------- */

/* sum += a pair's weights times twice nv vectors of columns, of n lines. Of 32
 * columns the first vector has 0-3, 8-11, .., the second 4-7, 12-15, .. */
V_INLINE void
row_pair(__m512 *sum, const uint32_t *e, const uint16_t *v, size_t width, int n,
         int nv)
{
    V_UNROLL
    for (int c = 0; c < nv; c++) {
        __m512i a = near_f16(_mm512_loadu_si512(v + 32 * c));
        __m512i b = near_f16(_mm512_loadu_si512(v + width + 32 * c));
        __m512i y[2] = {_mm512_unpacklo_epi16(a, b),
                        _mm512_unpackhi_epi16(a, b)};

        V_UNROLL
        for (int i = 0; i < 2 * n; i++)
            sum[2 * c * n + i] = pairs_add(sum[2 * c * n + i],
                                           e + i % n * BR_CPU_SCORES, y[i / n]);
    }
}

/* Columns as they should be. */
V_INLINE void
in_order(__m512 *x, __m512 *y)
{
    __m512 lo = _mm512_shuffle_f32x4(*x, *y, 0x44);
    __m512 hi = _mm512_shuffle_f32x4(*x, *y, 0xee);

    *x = _mm512_shuffle_f32x4(lo, lo, 0xd8);
    *y = _mm512_shuffle_f32x4(hi, hi, 0xd8);
}

/* Pages j to end - 1 times 32 nv columns from d on, of all n lines. Sums
 * rest where the block's are, and are in order when the last page is done. */
V_INLINE void
row_values(const row_part *u, const row_part *next, int32_t j, int32_t end,
           uint32_t d, int n, int nv, row_calls calls)
{
    const att *s = u->s;
    const size_t wide = s->wide, line = s->line;
    float *acc = block_of(s, 0) + d;
    __m512 sum[16];

    V_UNROLL
    for (int i = 0; i < 2 * nv * n; i++)
        sum[i] =
            j == 0
                ? _mm512_setzero_ps()
                : _mm512_loadu_ps(acc + (size_t)(i % n) * line + 16 * (i / n));
    for (; j < end; j++) {
        row_soon soon = soon_of(u, next, j, u->by_v, values_of);
        const uint16_t *v = values_of(u, j) + d;
        int32_t from = j == 0 ? u->from % 16 : 0;
        int32_t to = j == u->n - 1 ? (u->to - 1) % 16 + 1 : 16;
        const uint32_t *e =
            (const uint32_t *)(const void *)scores_of(s, u->line) +
            8 * (u->first + j);

        if (d == 0)
            call_page(u, next, j, s->v_bytes, values_of, calls);
        for (int32_t k = from / 2; k < (to + 1) / 2; k++) {
            call_lines(&soon, 32 * (size_t)d + 128 * (size_t)(nv * k),
                       128 * (size_t)nv, calls);
            row_pair(sum, e + k, v + (size_t)k * 2 * wide, wide, n, nv);
        }
    }
    if (end == u->n) {
        V_UNROLL
        for (int i = 0; i < nv * n; i++)
            in_order(&sum[i / n * 2 * n + i % n],
                     &sum[i / n * 2 * n + n + i % n]);
    }
    V_UNROLL
    for (int i = 0; i < 2 * nv * n; i++)
        _mm512_storeu_ps(acc + (size_t)(i % n) * line + 16 * (i / n), sum[i]);
}

/* Up to four lines go through 64 columns at once, more through 32: there are sums
 * for as much in registers, and values are widened once for all lines. */
V_INLINE void
row_columns(const row_part *u, const row_part *next, int32_t j, int32_t end,
            int n, row_calls calls)
{
    uint32_t d = 0;

    for (; n <= PAIR_LINES && d + 64 <= u->s->wide; d += 64)
        row_values(u, next, j, end, d, n, 2, calls);
    for (; d < u->s->wide; d += 32)
        row_values(u, next, j, end, d, n, 1, calls);
}

V_INLINE void
values_of_pages(const row_part *u, const row_part *next, int32_t j, int32_t end,
                row_calls calls)
{
    switch (u->s->n) {
    case 1: row_columns(u, next, j, end, 1, calls); break;
    case 2: row_columns(u, next, j, end, 2, calls); break;
    case 3: row_columns(u, next, j, end, 3, calls); break;
    case 4: row_columns(u, next, j, end, 4, calls); break;
    case 5: row_columns(u, next, j, end, 5, calls); break;
    case 6: row_columns(u, next, j, end, 6, calls); break;
    case 7: row_columns(u, next, j, end, 7, calls); break;
    default: row_columns(u, next, j, end, ROW_LINES, calls); break;
    }
}

V_APART void
values_twice(const row_part *u, const row_part *next, int32_t j, int32_t end)
{
    values_of_pages(u, next, j, end, LINES_TWICE);
}

V_APART void
values_once(const row_part *u, const row_part *next, int32_t j, int32_t end)
{
    values_of_pages(u, next, j, end, LINES_ONCE);
}

V_INLINE void
add_values(const row_part *u, const row_part *next, int32_t j, int32_t end,
           row_calls calls)
{
    if (calls == LINES_TWICE)
        values_twice(u, next, j, end);
    else
        values_once(u, next, j, end);
}

/* ---- all of it ---------------------------------------------------------- */

/* The walk's next part; false: there is none. */
static bool
next_part(row_walk *r, row_part *u)
{
    att *s = &r->w.head[r->h];
    int32_t first = r->b * BR_CPU_BLOCK;
    row_pages *pages = &r->pages[r->b % 3];
    const size_t sheet = s->a->sheets ? BR_SHEET : 1;

    if (first > r->w.hi)
        return false;
    u->s = s;
    u->from = BR_MAX(r->w.lo, first);
    u->to = BR_MIN(r->w.hi + 1, first + BR_CPU_BLOCK);
    u->first = (u->from - first) / 16;
    u->n = (u->to - first + 15) / 16 - u->first;
    u->by_k = r->by_k;
    u->by_v = r->by_v;
    u->turn = r->turn;
    u->line = r->t++ % 2 * ROW_LINES;
    u->pages = pages;
    u->k_at = (s->k_at - r->w.head[0].k_at) * sheet;
    u->v_at = (s->v_at - r->w.head[0].v_at) * sheet;
    if (r->h == 0) {
        find_pieces(s, u->from, u->n, true, pages->k);
        find_pieces(s, u->from, u->n, false, pages->v);
    }
    if (++r->h == r->w.n_heads) {
        r->h = 0;
        r->b++;
    }
    return true;
}

/* Scores of u are there. */
static void
have_scores(row_part *u)
{
    const bool as_they_are =
        u->from % 16 == 0 && u->to % 16 == 0 && !(u->s->a->cap > 0);
    const att_part see = {.from = u->from, .to = u->to};

    for (uint32_t i = 0; i < u->s->n; i++) {
        u->top[i] = as_they_are
                        ? v_top(u->max[i])
                        : pairs_top(u->s, scores_of(u->s, u->line + i), &see);
        u->sum[i] = v_set(0);
    }
}

/* What the lines' blocks came to, which are not their first, to their folds:
 * fold_block of each, with one exp for all. */
static void
fold_part(att *s)
{
    float by[2 * ROW_LINES] = {0}; /* of what was, of what is new */

    for (uint32_t i = 0; i < s->n; i++) {
        float top = s->fold[i].top, now = s->part[i].top;
        float both = top > now ? top : now;

        by[i] = top - both;
        by[ROW_LINES + i] = now - both;
        s->fold[i].top = both;
    }
    v_store(by, v_exp(v_load(by)));
    for (uint32_t i = 0; i < s->n; i++)
        fold_by(s, i, &s->fold[i], &s->part[i], block_of(s, i), by[i],
                by[ROW_LINES + i]);
}

static void
leave_part(const row_part *u)
{
    att *s = u->s;
    bool folds = !keeps_blocks(s->a) && !is_first(s, 0, u->from);

    for (uint32_t i = 0; i < s->n; i++) {
        s->part[i] = (att_part){u->from, u->to, u->top[i], v_sum(u->sum[i])};
        if (!folds)
            leave_block(s, i);
    }
    if (folds)
        fold_part(s);
}

/* Values of u, which has its scores, beside keys of the next one. */
static void
through_part(row_part *u, row_part *next, const row_part *after,
             row_calls calls)
{
    int32_t n = BR_MAX(u->n, next ? next->n : 0);

    for (int32_t j = 0; j < n; j += u->turn) {
        for (int32_t i = j; i < j + u->turn; i++) {
            if (next && i < next->n)
                score_page(next, after, i, calls);
            if (i < u->n)
                weigh_page(u, i);
        }
        if (j < u->n)
            add_values(u, next, j, BR_MIN(j + u->turn, u->n), calls);
    }
    leave_part(u);
    if (next)
        have_scores(next);
}

static void
walk_row(const br_cpu_att *a)
{
    const row_calls calls = a->once ? LINES_ONCE : LINES_TWICE;
    row_walk r;
    row_part part[3]; /* this, the next one and the one after it */
    bool have[3];

    begin_walk(a, &r.w, pair_queries);
    r.b = r.w.lo / BR_CPU_BLOCK;
    r.h = r.t = 0;
    r.by_k = pages_ahead(r.w.head[0].k_bytes, calls);
    r.by_v = pages_ahead(r.w.head[0].v_bytes, calls);
    r.turn = (int32_t)BR_MAX(
        ROW_TURN / BR_MAX(r.w.head[0].k_bytes, r.w.head[0].v_bytes), (size_t)1);
    for (int i = 0; i < 3; i++)
        have[i] = next_part(&r, &part[i]);
    if (have[0]) {
        for (int32_t j = 0; j < part[0].n; j++)
            score_page(&part[0], have[1] ? &part[1] : NULL, j, calls);
        have_scores(&part[0]);
    }
    for (int i = 0; have[i]; i = (i + 1) % 3) {
        int next = (i + 1) % 3, after = (i + 2) % 3;

        through_part(&part[i], have[next] ? &part[next] : NULL,
                     have[after] ? &part[after] : NULL, calls);
        have[i] = next_part(&r, &part[i]);
    }
    end_walk(a, &r.w);
}

/* Few lines that all see the same, and columns for whole vectors? */
static bool
is_row(const br_cpu_att *a)
{
    if (a->n / BR_MAX(a->heads, 1u) > ROW_LINES || a->head_v % 32 != 0)
        return false;
    for (uint32_t i = 1; i < a->n; i++)
        if (a->line[i].lo != a->line[0].lo || a->line[i].pos != a->line[0].pos)
            return false;
    return true;
}

/* Of heads that are not for pairs: as ever. */
static void
attend_pairs(const br_cpu_att *a)
{
    if (!a->has_v || !br_cpu_att_pairs(a->kv, a->head_k, a->head_v))
        attend(a);
    else if (is_row(a))
        walk_row(a);
    else
        walk_blocks(a, pair_queries, through_pairs);
}

#endif
