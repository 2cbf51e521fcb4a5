/* cpu_att_body.h - attention, for cpu_ops_body.h.
 *
 * A tile's lines (heads of queries, of one row or of several that follow each
 * other) go through the blocks of 256 keys together:
 *
 *   scores   four lines at a time: 16 keys are a vector, so nothing is summed
 *            across lanes, and a lane of docs/arithmetic.md is a register at a
 *            time. Meanwhile the block's values come to the second cache.
 *   weights  exp(score - top), and on AVX2 their sum
 *   values   sums in registers for some pages, on AVX-512 the sum of the
 *            weights, too; meanwhile the keys of the next block come
 *   fold     into what the blocks before came to
 *
 * A line's numbers do not depend on its company: lines that see other parts of
 * a page than their neighbours go through it alone.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_ATT_BODY_H
#define BR_CPU_ATT_BODY_H

/* Pages whose values go together: their sums are loaded and stored once. */
enum { ATT_PAGES = 4 };

/* What a line sees of a block (empty: to <= from), and what it came to. */
typedef struct att_part {
    int32_t from, to;
    float top, sum;
} att_part;

/* What keys and values are when the loops see them. */
typedef enum att_kind { ATT_F32, ATT_F16, ATT_Q8 } att_kind;

/* A head's keys or values of a page. */
typedef struct att_piece {
    const void *x;
    const float *by; /* ATT_Q8: scales */
} att_piece;

typedef struct att att;
struct att {
    const br_cpu_att *a;
    const br_cpu_line *lines; /* of one head of keys, */
    uint32_t n, first;        /* so many of them; which of a's are they? */
    size_t k_at, v_at;
    const att *next; /* the head whose keys come after these, */
    int32_t next_by; /* and so many positions later */
    float *sums;     /* [n][line] */
    size_t line;
    float *q;    /* [n / 4][head_k][4 lines] */
    float *page; /* keys or values of pages, widened; or Q8_0's scales */
    size_t k_bytes, v_bytes; /* of a head's keys and values in a page */
    uint32_t wide;           /* numbers of a token's values in a page */
    int pages;               /* that the loops take at a time */
    att_kind kind;
    const uint8_t *ahead[ATT_PAGES]; /* come to the second cache meanwhile, */
    size_t come;                     /* so many bytes of each; 0: nothing */
    int32_t from, to;                /* what any line sees of the block */
    att_part part[BR_CPU_LINES], fold[BR_CPU_LINES];
};

/* Scratch of a line: scores of a block; its fold, what a block came to. */
static float *
scores_of(const att *s, uint32_t i)
{
    return s->a->s + i * BR_CPU_SCORES;
}

static float *
fold_of(const att *s, uint32_t i)
{
    return s->sums + i * s->line;
}

static float *
block_of(const att *s, uint32_t i)
{
    return fold_of(s, i) + s->a->head_v;
}

static const uint8_t *
page_at(const att *s, int32_t pos, bool keys)
{
    const br_cpu_att *a = s->a;
    uint32_t page = a->pages[pos / 16];
    size_t at = keys || !a->has_v ? s->k_at : s->v_at;
    size_t bytes = keys || !a->has_v ? s->k_bytes : s->v_bytes;

    return a->pool + (a->sheets ? br_kv_piece(a->page_bytes, page, at, bytes)
                                : page * a->page_bytes + at);
}

static void
fetch(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        __builtin_prefetch(p + i, 0, 2);
}

V_INLINE vf
load_kv(const void *p, size_t i, att_kind kind)
{
    switch (kind) {
    case ATT_F32: return v_load((const float *)p + i);
    case ATT_F16: return v_load_f16((const uint16_t *)p + i);
    case ATT_Q8: break;
    }
    return v_load_i8((const int8_t *)p + i);
}

/* Where number i of a piece is. */
V_INLINE const void *
load_at(const void *p, size_t i, att_kind kind)
{
    return (const uint8_t *)p + (kind == ATT_F32   ? 4 * i
                                 : kind == ATT_F16 ? 2 * i
                                                   : i);
}

/* A Q8_0 piece of n numbers, as f32. Blocks of 32 are columns: of 16 tokens
 * side by side where they lie across, else of one token after the other. */
static void
widen_q8(float *to, const uint8_t *p, size_t n, bool across)
{
    const uint16_t *d = (const void *)(p + n);

    for (size_t i = 0; i < n; i += 16) {
        vf by = across ? v_load_f16(d + i / 512 * 16)
                       : v_set(br_f16_to_f32(d[i / 32]));

        v_store(to + i, v_mul(v_load_i8((const int8_t *)p + i), by));
    }
}

/* n numbers, a multiple of 16, of page i of those at a time: as they lie, or
 * as f32. */
static att_piece
widened(const att *s, const uint8_t *p, size_t n, bool across, int i_page)
{
    const uint16_t *h = (const void *)p, *d = (const void *)(p + n);
    float *to = s->page + (size_t)i_page * (s->kind == ATT_Q8 ? n / 32 : n);

    if (s->kind == ATT_Q8) {
        for (size_t i = 0; i < n / 32; i += 16)
            v_store(to + i, v_load_f16(d + i));
        return (att_piece){p, to};
    }
    if (s->kind != ATT_F32 || s->a->kv == BR_Q_F32)
        return (att_piece){p, NULL};
    if (s->a->kv == BR_Q_Q8_0)
        widen_q8(to, p, n, across);
    else
        for (size_t i = 0; i < n; i += 16)
            v_store(to + i, v_load_f16(h + i));
    return (att_piece){to, NULL};
}

/* ---- scores ------------------------------------------------------------- */

static void
interleave(const att *s)
{
    if (!s->a->has_v)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t d = 0; d < s->a->head_k; d++)
            s->q[(i / 4 * s->a->head_k + d) * 4 + i % 4] = s->lines[i].q[d];
}

/* Lanes that are summed side by side: the four sums of one alone would wait for
 * each other, and as many registers are there in AVX-512 only. There numbers are
 * widened as they are multiplied, however many lines there are: a conversion
 * for four fma is free, as long as what they multiply by comes from memory each
 * time (as registers 19 cycles for 16 fma and four conversions, as operands 16).
 * Weights are summed with the first columns of values, and what is ahead comes a
 * line or two at a time between. AVX2 loses by the latter two, 13.3 GB/s of one
 * row's keys to 11.7, as its loads are what it lacks. */
#if defined VEC_AVX512
enum { ATT_LANES = 4, ATT_COLUMNS = 4, ATT_BETWEEN = true };
#else
enum { ATT_LANES = 1, ATT_COLUMNS = 1, ATT_BETWEEN = false };
#endif

/* sum[line] += a column of a page's 16 keys times the lines' q. */
V_INLINE void
add_column(const float *q, const void *k, size_t at, const float *by, int n,
           att_kind kind, vf *sum)
{
    vf y = load_kv(k, at * 16, kind);

    if (kind == ATT_Q8)
        y = v_mul(y, v_load(by));
    V_UNROLL
    for (int i = 0; i < n; i++)
        sum[i] = v_fma_at(q + at * 4 + i, y, sum[i]);
}

/* What is ahead comes `step` bytes at a time, spread over the work: bursts are
 * lost where many are on their way. */
typedef struct coming {
    const uint8_t *at;
    size_t step;
} coming;

/* The next step's, mostly of so many lines: loops of few turns cost more than
 * what they do. */
V_INLINE void
come(coming *c, int lines)
{
    if (!c->step)
        return;
    V_UNROLL
    for (int i = 0; i < lines; i++)
        __builtin_prefetch(c->at + 64 * i, 0, 2);
    for (size_t i = 64 * (size_t)lines; i < c->step; i += 64)
        __builtin_prefetch(c->at + i, 0, 2);
    c->at += c->step;
}

/* Lines of n numbers of a piece. */
V_INLINE int
lines_of(int n, att_kind kind)
{
    return n * (kind == ATT_F32 ? 4 : kind == ATT_F16 ? 2 : 1) / 64;
}

/* Lanes l, l + 8, l + 4, l + 12 (the first ATT_LANES of these) of the dot
 * products of a page's keys with n lines, joined. q: [head_k][4], k: [head_k][16
 * keys]. */
V_INLINE void
lanes_of(const float *q, const att_piece *k, size_t end, size_t l, int n,
         att_kind kind, coming *ahead, vf *x)
{
    static const uint8_t beside[4] = {0, 8, 4, 12};
    size_t d = l;
    vf sum[ATT_LANES][4];

    if (!ATT_BETWEEN) {
        fetch(ahead->at, end / 16 * ahead->step);
        ahead->at += end / 16 * ahead->step;
    }
    V_UNROLL
    for (int i = 0; i < ATT_LANES * n; i++)
        sum[i / n][i % n] = v_set(0);
    for (; d + 16 <= end + l; d += 16) {
        const float *by = kind == ATT_Q8 ? k->by + d / 32 * 16 : k->by;

        if (ATT_BETWEEN)
            come(ahead, lines_of(16 * ATT_LANES, kind));
        V_UNROLL
        for (int j = 0; j < ATT_LANES; j++)
            add_column(q + 4 * d, load_at(k->x, 16 * d, kind), beside[j], by, n,
                       kind, sum[j]);
    }
    V_UNROLL
    for (int j = 0; j < ATT_LANES; j++)
        if (d + beside[j] < end)
            add_column(q + 4 * d, load_at(k->x, 16 * d, kind), beside[j], k->by,
                       n, kind, sum[j]);
    V_UNROLL
    for (int i = 0; i < n; i++) {
        vf of[ATT_LANES];

        V_UNROLL
        for (int j = 0; j < ATT_LANES; j++)
            of[j] = sum[j][i];
        V_UNROLL
        for (int half = ATT_LANES / 2; half > 0; half /= 2)
            for (int j = 0; j < half; j++)
                of[j] = v_add(of[2 * j], of[2 * j + 1]);
        x[i] = of[0];
    }
}

/* Products of n lines from i0 on with a page's sixteen keys. Lanes come in the
 * order in which they are joined as 8-4-2-1, so that few of them wait. */
V_LONG void
scores16(const att *s, const att_piece *k, const uint8_t *ahead, size_t to,
         uint32_t i0, int n, att_kind kind)
{
    static const uint8_t order[16] = {0, 8, 4, 12, 2, 10, 6, 14,
                                      1, 9, 5, 13, 3, 11, 7, 15};
    const size_t width = s->a->head_k;
    const float *q = s->q + (size_t)i0 * width;
    coming soon = {ahead, i0 ? 0 : s->come * ATT_LANES / width};
    vf wait[4][4]; /* sums of 1, 2, 4, 8 times ATT_LANES lanes that wait */
    vf x[4];
    int n_wait = 0;

    V_UNROLL
    for (int p = 0; p < 16; p += ATT_LANES) {
        lanes_of(q, k, width, order[p], n, kind, &soon, x);
        for (int w = p / ATT_LANES; w & 1; w >>= 1) {
            n_wait--;
            V_UNROLL
            for (int i = 0; i < n; i++)
                x[i] = v_add(wait[n_wait][i], x[i]);
        }
        if (p + ATT_LANES == 16)
            break;
        V_UNROLL
        for (int i = 0; i < n; i++)
            wait[n_wait][i] = x[i];
        n_wait++;
    }
    V_UNROLL
    for (int i = 0; i < n; i++)
        v_store(scores_of(s, i0 + (uint32_t)i) + to, x[i]);
}

/* Products of all lines with the keys of s->pages pages. */
V_INLINE void
page_scores(const att *s, const att_piece *k, size_t at, att_kind kind)
{
    uint32_t n = s->n;

    for (int j = 0; j < s->pages; j++, k++, at += 16)
        for (uint32_t i = 0; i < n; i += 4)
            switch (n - i) {
            case 1: scores16(s, k, s->ahead[j], at, i, 1, kind); break;
            case 2: scores16(s, k, s->ahead[j], at, i, 2, kind); break;
            case 3: scores16(s, k, s->ahead[j], at, i, 3, kind); break;
            default: scores16(s, k, s->ahead[j], at, i, 4, kind); break;
            }
}

/* A function of each kind: in one of all gcc 12 gives the loops of F32 other
 * registers, and they take a tenth longer. */
V_APART void
scores_f32(const att *s, const att_piece *k, size_t at)
{
    page_scores(s, k, at, ATT_F32);
}

V_APART void
scores_f16(const att *s, const att_piece *k, size_t at)
{
    page_scores(s, k, at, ATT_F16);
}

V_APART void
scores_q8(const att *s, const att_piece *k, size_t at)
{
    page_scores(s, k, at, ATT_Q8);
}

/* Products of the lines with the keys of the pages from p on, not scaled. */
static void
key_products(const att *s, int32_t p)
{
    const br_cpu_att *a = s->a;
    size_t at = (size_t)p % BR_CPU_BLOCK;
    att_piece k[ATT_PAGES];

    for (int j = 0; j < s->pages; j++)
        k[j] = widened(s, page_at(s, p + 16 * j, true), (size_t)a->head_k * 16,
                       a->has_v, j);
    if (a->has_v) {
        switch (s->kind) {
        case ATT_F32: scores_f32(s, k, at); return;
        case ATT_F16: scores_f16(s, k, at); return;
        case ATT_Q8: scores_q8(s, k, at); return;
        }
    }
    for (uint32_t i = 0; i < s->n; i++)
        for (size_t j = 0; j < 16 * (size_t)s->pages; j++)
            scores_of(s, i)[at + j] =
                dot(s->lines[i].q,
                    (const float *)k[j / 16].x + j % 16 * a->head_k, a->head_k);
}

/* ---- weights ------------------------------------------------------------ */

/* The highest score; from products to scores. */
static float
block_top(const att *s, float *x, const att_part *p)
{
    const br_cpu_att *a = s->a;
    int32_t from = p->from % BR_CPU_BLOCK, first = from / 16 * 16;
    int32_t end = p->to % BR_CPU_BLOCK ? p->to % BR_CPU_BLOCK : BR_CPU_BLOCK;
    vf m = v_set(-INFINITY), by = v_set(a->scale), cap = v_set(a->cap);

    for (int32_t i = first; i < end; i += 16) {
        vf y = v_mul(v_load(x + i), by);

        if (a->cap > 0)
            y = v_mul(cap, v_tanh(v_div(y, cap)));
        v_store(x + i, y);
        if (i < from || end - i < 16) {
            for (int32_t j = i; j < from; j++)
                x[j] = -INFINITY; /* not seen: outside of the window */
            for (int32_t j = BR_MAX(i, end); j < i + 16; j++)
                x[j] = -INFINITY; /* not yet written, or of a later row */
            y = v_load(x + i);
        }
        m = v_max(y, m);
    }
    return v_top(m);
}

/* exp(score - top); 0 for what other lines see and this one does not. */
static void
block_weights(const att *s, float *x, const att_part *p)
{
    int32_t i = s->from % BR_CPU_BLOCK, end = i + s->to - s->from;
    int32_t from = p->from % BR_CPU_BLOCK / 16 * 16;
    int32_t to = from + BR_MAX(p->to - p->from / 16 * 16, 0);

    for (; i < end; i += 16)
        v_store(x + i, i < from || i >= to
                           ? v_set(0)
                           : v_exp_down(v_sub(v_load(x + i), v_set(p->top))));
}

/* Additions that wait for the one before: of so many lines side by side. */
enum { ATT_SUMS = 8 };

/* Weights that are 0 change nothing. */
static void
sum_weights(att *s, uint32_t i0)
{
    size_t n = BR_MIN(s->n - i0, (uint32_t)ATT_SUMS);
    const float *x[ATT_SUMS];
    float sum[ATT_SUMS] = {0};

    for (size_t i = 0; i < ATT_SUMS; i++)
        x[i] = scores_of(s, i0 + (uint32_t)BR_MIN(i, n - 1)) +
               s->from % BR_CPU_BLOCK;
    for (int32_t j = 0; j < s->to - s->from; j++) {
        V_UNROLL
        for (size_t i = 0; i < ATT_SUMS; i++)
            sum[i] += x[i][j];
    }
    for (size_t i = 0; i < n; i++)
        s->part[i0 + i].sum = sum[i];
}

/* ---- values ------------------------------------------------------------- */

/* acc[d] += e[j] v[j][d] for nv vectors of columns from d on, of n lines from
 * i0 on; the keys p of the pages v, ascending. With the first columns the sums
 * of e, too: additions that wait for each other, beside work that does not. */
V_LONG void
weigh(att *s, const att_piece *v, const att_part *p, uint32_t d, uint32_t i0,
      int n, int nv, att_kind kind, bool first)
{
    const float *e = scores_of(s, i0) + p->from % BR_CPU_BLOCK;
    float *acc = block_of(s, i0) + d;
    size_t line = s->line, step = s->wide, all = i0 ? 0 : s->come;
    const uint8_t *const *ahead = s->ahead;
    float total[4];
    vf sum[16];

    for (int j = 0; j < s->pages && !ATT_BETWEEN; j++)
        fetch(s->ahead[j] + all * d / step, all * 16 * (size_t)nv / step);
    V_UNROLL
    for (int i = 0; i < n; i++)
        total[i] = s->part[i0 + (uint32_t)i].sum;
    V_UNROLL
    for (int i = 0; i < nv * n; i++)
        sum[i] = v_load(acc + (size_t)(i % n) * line + 16 * (i / n));
    for (int32_t from = p->from, to; from < p->to; from = to, v++, ahead++) {
        const void *x = load_at(v->x, d + (size_t)(from % 16) * step, kind);
        size_t by = (d + (size_t)(from % 16) * step) / 32;
        coming soon = {*ahead + all * d / step, all * (size_t)nv / step};

        to = BR_MIN(from / 16 * 16 + 16, p->to);
        for (const float *end = e + (to - from); e < end; e++) {
            if (ATT_BETWEEN)
                come(&soon, lines_of(16 * nv, kind));
            V_UNROLL
            for (int i = 0; i < n && first && ATT_BETWEEN; i++)
                total[i] += e[i * BR_CPU_SCORES];
            V_UNROLL
            for (int i = 0; i < nv; i++) {
                vf y = load_kv(x, 16 * (size_t)i, kind);

                if (kind == ATT_Q8)
                    y = v_mul(y, v_set(v->by[by + (d % 32 / 16 + i) / 2]));
                V_UNROLL
                for (int q = 0; q < n; q++)
                    sum[i * n + q] =
                        v_fma_at(e + q * BR_CPU_SCORES, y, sum[i * n + q]);
            }
            x = load_at(x, step, kind);
            by += step / 32;
        }
    }
    V_UNROLL
    for (int i = 0; i < n && first && ATT_BETWEEN; i++)
        s->part[i0 + (uint32_t)i].sum = total[i];
    V_UNROLL
    for (int i = 0; i < nv * n; i++)
        v_store(acc + (size_t)(i % n) * line + 16 * (i / n), sum[i]);
}

static void
weigh_tail(const att *s, const att_piece *v, const att_part *p, uint32_t i)
{
    const float *e = scores_of(s, i); /* Q8_0 has whole vectors only */

    for (uint32_t d = s->a->head_v / 16 * 16; d < s->a->head_v; d++)
        for (int32_t j = p->from; j < p->to; j++) {
            const void *of = v[j / 16 - p->from / 16].x;
            size_t at = (size_t)(j % 16) * s->wide + d;
            float x = s->kind == ATT_F16
                          ? br_f16_to_f32(((const uint16_t *)of)[at])
                          : ((const float *)of)[at];

            block_of(s, i)[d] = fmaf(e[j % BR_CPU_BLOCK], x, block_of(s, i)[d]);
        }
}

/* All whole vectors of columns of n lines, nv at a time. */
V_INLINE void
columns_of_kind(att *s, const att_piece *v, const att_part *p, uint32_t i0,
                int n, int nv, att_kind kind)
{
    uint32_t d = 0, end = s->a->head_v / 16 * 16, by = 16 * (uint32_t)nv;

    if (by <= end) {
        weigh(s, v, p, d, i0, n, nv, kind, true);
        d += by;
    } else if (end > 0) {
        weigh(s, v, p, d, i0, n, 1, kind, true);
        d += 16;
    }
    for (; d + by <= end; d += by)
        weigh(s, v, p, d, i0, n, nv, kind, false);
    for (; d < end; d += 16)
        weigh(s, v, p, d, i0, n, 1, kind, false);
}

V_LONG void
columns(att *s, const att_piece *v, const att_part *p, uint32_t i0, int n,
        int nv)
{
    switch (s->kind) {
    case ATT_F32: columns_of_kind(s, v, p, i0, n, nv, ATT_F32); return;
    case ATT_F16: columns_of_kind(s, v, p, i0, n, nv, ATT_F16); return;
    case ATT_Q8: columns_of_kind(s, v, p, i0, n, nv, ATT_Q8); return;
    }
}

/* n lines from i0 on, which see the same of the pages v. */
V_APART void
page_values(att *s, const att_piece *v, const att_part *p, uint32_t i0,
            uint32_t n)
{
    switch (n) {
    case 1: columns(s, v, p, i0, 1, 4); break;
    case 2: columns(s, v, p, i0, 2, BR_MAX(ATT_COLUMNS, 2)); break;
    case 3: columns(s, v, p, i0, 3, BR_MAX(ATT_COLUMNS, 2)); break;
    default: columns(s, v, p, i0, 4, ATT_COLUMNS); break;
    }
    for (uint32_t i = i0; i < i0 + n; i++)
        weigh_tail(s, v, p, i);
}

/* What line i sees of the pages from p on. */
static att_part
of_pages(const att *s, uint32_t i, int32_t p)
{
    return (att_part){.from = BR_MAX(s->part[i].from, p),
                      .to = BR_MIN(s->part[i].to, p + 16 * s->pages)};
}

static void
value_sums(att *s, int32_t p)
{
    att_piece v[ATT_PAGES];

    for (int j = 0; j < s->pages; j++)
        v[j] = widened(s, page_at(s, p + 16 * j, false), 16 * (size_t)s->wide,
                       false, j);
    for (uint32_t i = 0, n; i < s->n; i += n) {
        att_part x = of_pages(s, i, p);

        for (n = 1; n < 4 && i + n < s->n; n++) {
            att_part y = of_pages(s, i + n, p);

            if (y.from != x.from || y.to != x.to)
                break;
        }
        if (x.from < x.to)
            page_values(s, v + (x.from - p) / 16, &x, i, n);
    }
}

/* ---- the fold ----------------------------------------------------------- */

static float
exp1(float x)
{
    float lane[16];

    v_store(lane, v_exp(v_set(x)));
    return lane[0];
}

/* Of line i, which has no block before the one with key `from`? */
static bool
is_first(const att *s, uint32_t i, int32_t from)
{
    return from / BR_CPU_BLOCK == s->lines[i].lo / BR_CPU_BLOCK;
}

/* What was there counts `old` times, the block `fresh` times. */
static void
fold_by(const att *s, uint32_t i, att_part *f, const att_part *block,
        const float *acc, float old, float fresh)
{
    float *fold = fold_of(s, i);
    uint32_t d = 0;

    f->sum = fmaf(block->sum, fresh, f->sum * old);
    for (; d + 16 <= s->a->head_v; d += 16)
        v_store(fold + d, v_fma(v_load(acc + d), v_set(fresh),
                                v_mul(v_load(fold + d), v_set(old))));
    for (; d < s->a->head_v; d++)
        fold[d] = fmaf(acc[d], fresh, fold[d] * old);
}

static void
fold_block(const att *s, uint32_t i, att_part *f, const att_part *block,
           const float *acc, bool first)
{
    float both = f->top > block->top ? f->top : block->top;

    if (first) {
        memcpy(fold_of(s, i), acc, s->a->head_v * sizeof *acc);
        *f = *block;
        return;
    }
    fold_by(s, i, f, block, acc, exp1(f->top - both), exp1(block->top - both));
    f->top = both;
}

static void
finish_line(const att *s, uint32_t i, att_part f)
{
    const br_cpu_line *l = &s->lines[i];
    float *fold = fold_of(s, i);
    uint32_t d = 0;

    if (l->sink) { /* one more score, with no value */
        float both = f.top > *l->sink ? f.top : *l->sink;
        float old = exp1(f.top - both);

        f.sum = f.sum * old + exp1(*l->sink - both);
        scale(fold, fold, s->a->head_v, old);
    }
    for (; d + 16 <= s->a->head_v; d += 16)
        v_store(l->y + d, v_div(v_load(fold + d), v_set(f.sum)));
    for (; d < s->a->head_v; d++)
        l->y[d] = fold[d] / f.sum;
}

/* Where a line's block is kept: [head_v], its highest score, its sum. */
static float *
kept_of(const br_cpu_att *a, uint32_t i, int32_t b)
{
    return a->kept + (size_t)(i * a->n_kept + (uint32_t)(b - a->kept_from)) *
                         (a->head_v + 2);
}

static void
keep(const att *s, uint32_t i, int32_t b, const att_part *p, const float *acc)
{
    float *to = kept_of(s->a, s->first + i, b);

    memcpy(to, acc, s->a->head_v * sizeof *to);
    to[s->a->head_v] = p->top;
    to[s->a->head_v + 1] = p->sum;
}

/* Is a block kept as it is, or do they come to one? */
static bool
keeps_blocks(const br_cpu_att *a)
{
    return a->kept && !a->as_one;
}

/* What the lines see of block b; nobody: false. */
static bool
enter_block(att *s, int32_t b)
{
    s->from = INT32_MAX;
    s->to = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const br_cpu_line *l = &s->lines[i];
        att_part *p = &s->part[i];

        p->from = BR_MAX(l->lo, b * BR_CPU_BLOCK);
        p->to = BR_MIN(l->pos + 1, (b + 1) * BR_CPU_BLOCK);
        if (p->from >= p->to)
            continue;
        s->from = BR_MIN(s->from, p->from / 16 * 16);
        s->to = BR_MAX(s->to, p->to);
        memset(block_of(s, i), 0, s->a->head_v * sizeof(float));
    }
    return s->from < s->to;
}

/* Are the weights summed with the first columns of values? */
static bool
sums_beside(const att *s)
{
    return ATT_BETWEEN && s->a->head_v >= 16;
}

/* How many pages go together from p on: what is widened has to stay in the
 * first cache. */
static int
pages_from(const att *s, int32_t p)
{
    int most = s->kind == ATT_F32 ? 2 : ATT_BETWEEN ? ATT_PAGES : 1;

    return BR_MIN(most, (s->to - p + 15) / 16);
}

/* What line i's block came to. */
static void
leave_block(att *s, uint32_t i)
{
    const att_part *p = &s->part[i];

    if (p->from < p->to && keeps_blocks(s->a))
        keep(s, i, p->from / BR_CPU_BLOCK, p, block_of(s, i));
    else if (p->from < p->to)
        fold_block(s, i, &s->fold[i], p, block_of(s, i),
                   is_first(s, i, p->from));
}

/* The lines through the keys of s, all of them of one block; keys up to `hi`
 * come after it. */
static void
through_block(att *s, int32_t hi)
{
    const br_cpu_att *a = s->a;

    for (int32_t p = s->from; p < s->to; p += 16 * s->pages) {
        s->pages = pages_from(s, p);
        for (int j = 0; j < s->pages; j++)
            s->ahead[j] = page_at(s, p + 16 * j, false);
        s->come = a->has_v ? s->v_bytes : 0;
        key_products(s, p);
    }
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->part[i].from < s->part[i].to)
            s->part[i].top = block_top(s, scores_of(s, i), &s->part[i]);
        block_weights(s, scores_of(s, i), &s->part[i]);
        s->part[i].sum = 0;
        if (!sums_beside(s) && (i % ATT_SUMS == ATT_SUMS - 1 || i + 1 == s->n))
            sum_weights(s, i / ATT_SUMS * ATT_SUMS);
    }
    for (int32_t p = s->from; p < s->to; p += 16 * s->pages) {
        s->pages = pages_from(s, p);
        s->come = p + s->next_by + 16 * (s->pages - 1) <= hi ? s->k_bytes : 0;
        for (int j = 0; j < s->pages; j++)
            s->ahead[j] =
                page_at(s->next, p + 16 * j + (s->come ? s->next_by : 0), true);
        value_sums(s, p);
    }
    for (uint32_t i = 0; i < s->n; i++)
        leave_block(s, i);
}

static att_kind
kind_of(const br_cpu_att *a, uint32_t n)
{
    if (!a->has_v || a->kv == BR_Q_F32)
        return ATT_F32;
    if (a->kv == BR_Q_F16)
        return ATT_BETWEEN || n <= 4 ? ATT_F16 : ATT_F32;
    return n <= 4 ? ATT_Q8 : ATT_F32;
}

/* Head h of a's: its lines, and its part of the scratch. */
static att
begin_lines(const br_cpu_att *a, uint32_t h)
{
    uint32_t n = a->n / BR_MAX(a->heads, 1u);
    att s = {.a = a,
             .lines = a->line + h * n,
             .n = n,
             .first = h * n,
             .wide = a->has_v ? a->head_v : a->head_k,
             .kind = kind_of(a, n),
             .line = br_cpu_att_line(a->head_v)};

    s.k_bytes = br_kv_bytes(a->kv, BR_PAGE_TOKENS * (size_t)a->head_k);
    s.v_bytes = br_kv_bytes(a->kv, BR_PAGE_TOKENS * (size_t)s.wide);
    s.k_at = a->k_at + h * s.k_bytes;
    s.v_at = a->v_at + h * s.v_bytes;
    s.sums = a->s + BR_CPU_LINES * BR_CPU_SCORES;
    s.q = s.sums + BR_CPU_LINES * s.line;
    s.page = s.q + BR_CPU_LINES * (size_t)a->head_k;
    s.page += (64 - (uintptr_t)s.page % 64) / sizeof(float) % 16;
    s.sums += h * n * s.line;
    s.q += h * ((n + 3) / 4 * 4) * (size_t)a->head_k;
    return s;
}

/* What a walk goes through. */
typedef struct att_walk {
    att head[BR_CPU_HEADS];
    uint32_t n_heads;
    int32_t lo, hi; /* keys that a line sees, in the blocks that are a's */
} att_walk;

static void
begin_walk(const br_cpu_att *a, att_walk *w, void (*begin)(const att *s))
{
    att *head = w->head;

    w->n_heads = BR_MAX(a->heads, 1u);
    w->lo = a->line[0].lo;
    w->hi = a->line[0].pos;
    for (uint32_t h = 0; h < w->n_heads; h++) {
        head[h] = begin_lines(a, h);
        head[h].next = &head[h + 1 < w->n_heads ? h + 1 : 0];
        head[h].next_by = h + 1 < w->n_heads ? 0 : BR_CPU_BLOCK;
        begin(&head[h]);
    }
    for (uint32_t i = 1; i < a->n; i++) {
        w->lo = BR_MIN(w->lo, a->line[i].lo);
        w->hi = BR_MAX(w->hi, a->line[i].pos);
    }
    if (a->kept) {
        w->lo = BR_MAX(w->lo, a->b0 * BR_CPU_BLOCK);
        w->hi = BR_MIN(w->hi, a->b1 * BR_CPU_BLOCK - 1);
    }
}

static void
end_walk(const br_cpu_att *a, const att_walk *w)
{
    for (uint32_t i = 0; i < a->n && !keeps_blocks(a); i++) {
        const att *s = &w->head[i * w->n_heads / a->n];
        uint32_t l = i - s->first;

        if (a->as_one)
            keep(s, l, a->b1 - 1, &s->fold[l], fold_of(s, l));
        else
            finish_line(s, l, s->fold[l]);
    }
}

/* All lines through all blocks of a's that one sees, a block's heads one after
 * the other, as they lie in memory. */
static void
walk_blocks(const br_cpu_att *a, void (*begin)(const att *s),
            void (*through)(att *s, int32_t hi))
{
    att_walk w;

    begin_walk(a, &w, begin);
    for (int32_t b = w.lo / BR_CPU_BLOCK; b <= w.hi / BR_CPU_BLOCK; b++)
        for (uint32_t h = 0; h < w.n_heads; h++)
            if (enter_block(&w.head[h], b))
                through(&w.head[h], w.hi);
    end_walk(a, &w);
}

static void
attend(const br_cpu_att *a)
{
    walk_blocks(a, interleave, through_block);
}

/* What attend() has kept of the lines' blocks, into what they come to. */
static void
fold_kept(const br_cpu_att *a)
{
    att s = begin_lines(a, 0);

    for (uint32_t i = 0; i < a->n; i++) {
        const br_cpu_line *l = &a->line[i];
        const int32_t first = BR_MAX(l->lo / BR_CPU_BLOCK, a->kept_from);

        for (int32_t b = first; b <= l->pos / BR_CPU_BLOCK; b++) {
            const float *kept = kept_of(a, i, b);
            att_part block = {.top = kept[a->head_v],
                              .sum = kept[a->head_v + 1]};

            fold_block(&s, i, &s.fold[i], &block, kept, b == first);
        }
        finish_line(&s, i, s.fold[i]);
    }
}

#endif
