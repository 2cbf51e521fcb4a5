/* test_cpu_att.c - attention of the CPU tier beside docs/arithmetic.md, on
 * every instruction set that is here: random heads, windows, sinks, pages in
 * disorder, any lines together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "drv/cpu/cpu_ops.h"
#include "drv/ref/ref.h"
#include "model/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "t.h"

enum { TRIES = 60, KEYS = 800, PAGES = 64, HEAD = 144, GUARD = 77 };

typedef struct att_case {
    br_cpu_att a;
    uint64_t seed;
    uint8_t *pool;
    uint32_t pages[PAGES], kv, head;
    float q[BR_CPU_LINES * HEAD], y[BR_CPU_LINES * HEAD], sink[BR_CPU_LINES];
    float *keys, *values; /* as they lie in the pages: [KEYS][HEAD] */
} att_case;

static uint32_t
below(att_case *c, uint32_t n)
{
    return (uint32_t)(t_rand(&c->seed) >> 33) % n;
}

static float
number(att_case *c)
{
    return (float)(int32_t)below(c, 1u << 30) * 0x1p-29f - 1;
}

/* Number i of a piece of n, whose scale is number k of its scales. To the
 * pages, and what it is there; unseen ones are NaN. */
static float
put(att_case *c, uint8_t *piece, size_t n, size_t i, size_t k, bool seen)
{
    float x = seen ? number(c) : NAN;
    uint16_t h = br_f32_to_f16(x);
    int8_t q = (int8_t)(below(c, 255) - 127);

    switch (c->a.kv) {
    case BR_Q_F32: memcpy(piece + 4 * i, &x, 4); return x;
    case BR_Q_F16: memcpy(piece + 2 * i, &h, 2); return br_f16_to_f32(h);
    default: break;
    }
    h = br_f32_to_f16(seen ? (float)(1 + k * 3 % 7) * 0x1p-9f : NAN);
    memcpy(piece + i, &q, 1);
    memcpy(piece + n + 2 * k, &h, 2);
    return br_f16_to_f32(h) * (float)q;
}
/* A row at a position, across ([n][16], columns as scales go) or along. */
static void
write_row(att_case *c, size_t at, int32_t pos, size_t n, bool across, bool seen,
          float *row)
{
    uint32_t page = c->pages[pos / 16];
    size_t bytes = br_kv_bytes(c->a.kv, 16 * (uint64_t)n);
    uint8_t *piece =
        c->pool + (c->a.sheets ? br_kv_piece(c->a.page_bytes, page, at, bytes)
                               : page * c->a.page_bytes + at);
    size_t j = (size_t)pos % 16;

    for (size_t d = 0; d < n; d++)
        row[d] = put(c, piece, 16 * n, across ? d * 16 + j : j * n + d,
                     across ? d / 32 * 16 + j : j * (n / 32) + d / 32, seen);
}

/* A key at a position: of its page [head_k][16] and [16][head_v], or both as
 * [16][head_k]. What no line sees is NaN. */
static void
write_key(att_case *c, int32_t pos, bool seen)
{
    const br_cpu_att *a = &c->a;
    float *k = c->keys + (size_t)pos * HEAD,
          *v = c->values + (size_t)pos * HEAD;

    write_row(c, a->k_at, pos, a->head_k, a->has_v, seen, k);
    if (a->has_v)
        write_row(c, a->v_at, pos, a->head_v, false, seen, v);
    else
        memcpy(v, k, a->head_v * sizeof *v);
}

static void
make_lines(att_case *c, int32_t *lo, int32_t *hi)
{
    br_cpu_att *a = &c->a;
    int32_t window = below(c, 2) ? (int32_t)(1 + below(c, 400)) : KEYS;
    int32_t pos = (int32_t)below(c, KEYS - BR_CPU_LINES);
    uint32_t per = 1 + below(c, 8);

    a->n = 1 + below(c, BR_CPU_LINES);
    *lo = INT32_MAX;
    *hi = pos;
    for (uint32_t i = 0; i < a->n; i++) {
        br_cpu_line *l = &a->line[i];

        l->q = c->q + i * a->head_k;
        l->y = c->y + i * a->head_v;
        l->sink = per % 3 == 0 ? &c->sink[i] : NULL;
        l->pos = pos + (int32_t)(i / per);
        l->lo = BR_MAX(0, l->pos - window + 1);
        *lo = BR_MIN(*lo, l->lo);
        *hi = l->pos;
    }
}

static void
make_case(att_case *c)
{
    static const uint32_t widths[] = {32, 64, 96, 128, 1, 7, 8, 16, 20, 80};
    static const int kinds[] = {BR_Q_F32, BR_Q_F16, BR_Q_Q8_0};
    br_cpu_att *a = &c->a;
    size_t head;
    uint32_t n;
    int32_t lo, hi;

    a->kv = kinds[below(c, BR_COUNT(kinds))];
    a->has_v = below(c, 4) > 0;
    a->sheets = below(c, 2);
    a->once = below(c, 2);
    n = a->kv == BR_Q_Q8_0 ? 4 : BR_COUNT(widths); /* whole blocks */
    a->head_k = widths[below(c, n)];
    a->head_v = widths[below(c, n)];
    if (!a->has_v)
        a->head_v = BR_MIN(a->head_k, a->head_v);
    a->scale = 0.3f;
    a->cap = below(c, 3) ? 0 : 5;
    head = br_kv_bytes(a->kv,
                       16 * ((uint64_t)a->head_k + (a->has_v ? a->head_v : 0)));
    a->page_bytes = 3 * head; /* heads or layers beside it */
    a->k_at = below(c, 3) * head;
    a->v_at = a->k_at + br_kv_bytes(a->kv, 16 * (uint64_t)a->head_k);
    for (uint32_t i = 0; i < PAGES; i++)
        c->pages[i] = (i * 17 + 3) % PAGES;
    for (size_t i = 0; i < BR_CPU_LINES * HEAD; i++)
        c->q[i] = number(c);
    for (size_t i = 0; i < BR_CPU_LINES; i++)
        c->sink[i] = 4 * number(c);
    c->pool = t_keep(malloc(PAGES * a->page_bytes));
    a->pool = c->pool;
    a->pages = c->pages;
    make_lines(c, &lo, &hi);
    for (int32_t p = 0; p < PAGES * 16; p++)
        write_key(c, p, p >= lo && p <= hi);
}

typedef struct fold {
    float m, l, a[HEAD];
} fold;

static void
block_of(const att_case *c, const br_cpu_line *l, int32_t b, fold *f)
{
    int32_t from = BR_MAX(l->lo, b * 256),
            to = BR_MIN(l->pos + 1, b * 256 + 256);
    float s[256], e;

    *f = (fold){.m = -INFINITY};
    for (int32_t j = from; j < to; j++) {
        float x = br_ref_dot(l->q, c->keys + (size_t)j * HEAD, c->a.head_k) *
                  c->a.scale;

        s[j - from] = c->a.cap > 0 ? c->a.cap * br_ref_tanh(x / c->a.cap) : x;
        f->m = s[j - from] > f->m ? s[j - from] : f->m;
    }
    for (int32_t j = from; j < to; j++) {
        e = br_ref_exp(s[j - from] - f->m);
        f->l = f->l + e;
        for (size_t d = 0; d < c->a.head_v; d++)
            f->a[d] = fmaf(e, c->values[(size_t)j * HEAD + d], f->a[d]);
    }
}

/* Section 4 of docs/arithmetic.md. */
static void
slowly(const att_case *c, const br_cpu_line *l, float *y)
{
    fold all, b;
    float top, o, f;

    block_of(c, l, l->lo / 256, &all);
    for (int32_t i = l->lo / 256 + 1; i <= l->pos / 256; i++) {
        block_of(c, l, i, &b);
        top = all.m > b.m ? all.m : b.m;
        o = br_ref_exp(all.m - top);
        f = br_ref_exp(b.m - top);
        all.l = fmaf(b.l, f, all.l * o);
        for (size_t d = 0; d < c->a.head_v; d++)
            all.a[d] = fmaf(b.a[d], f, all.a[d] * o);
        all.m = top;
    }
    if (l->sink) {
        top = all.m > *l->sink ? all.m : *l->sink;
        o = br_ref_exp(all.m - top);
        all.l = all.l * o + br_ref_exp(*l->sink - top);
        for (size_t d = 0; d < c->a.head_v; d++)
            all.a[d] *= o;
    }
    for (size_t d = 0; d < c->a.head_v; d++)
        y[d] = all.a[d] / all.l;
}

static void
check_lines(const att_case *c, br_isa isa, const char *how)
{
    float want[HEAD];

    for (uint32_t i = 0; i < c->a.n; i++) {
        const br_cpu_line *l = &c->a.line[i];

        slowly(c, l, want);
        for (uint32_t d = 0; d < c->a.head_v; d++)
            ck_assert_msg(
                memcmp(&l->y[d], &want[d], sizeof *want) == 0,
                "%s, %s: line %u of %u, column %u is %.9g, not %.9g: keys "
                "%d..%d, heads of %u and %u, %s, %s values, cap %g",
                br_isa_name(isa), how, i, c->a.n, d, (double)l->y[d],
                (double)want[d], l->lo, l->pos, c->a.head_k, c->a.head_v,
                br_qinfo_of(c->a.kv)->name, c->a.has_v ? "own" : "no",
                (double)c->a.cap);
    }
}

/* For blocks from .. end - 1 of each line, and a guard behind them, *guard. */
static void
make_room(att_case *c, int32_t from, int32_t end, float **guard)
{
    br_cpu_att *a = &c->a;
    size_t n;

    a->kept_from = from;
    a->n_kept = (uint32_t)(end - from);
    n = (size_t)a->n * a->n_kept * (a->head_v + 2);
    a->kept = t_keep(malloc((n + 1) * sizeof(float)));
    memset(a->kept, 0xff, n * sizeof(float));
    *guard = a->kept + n;
    **guard = GUARD;
    memset(c->y, 0xff, sizeof c->y);
}

/* The blocks in spans, the last ones first, as threads may take them. */
static void
attend_in_spans(att_case *c, void (*attend)(const br_cpu_att *a),
                void (*join)(const br_cpu_att *a))
{
    br_cpu_att *a = &c->a;
    int32_t end = a->line[a->n - 1].pos / 256 + 1,
            by = 1 + (int32_t)below(c, 3);
    float *guard;

    make_room(c, a->line[0].lo / 256, end, &guard);
    for (a->b1 = end; a->b1 > a->kept_from; a->b1 = a->b0) {
        a->b0 = BR_MAX(a->b1 - by, a->kept_from);
        attend(a);
    }
    join(a);
    ck_assert(*guard == GUARD);
    a->kept = NULL;
}

/* One row's last blocks by themselves, and those before as one. */
static void
attend_as_one(att_case *c, void (*attend)(const br_cpu_att *a),
              void (*join)(const br_cpu_att *a))
{
    br_cpu_att *a = &c->a;
    int32_t first = a->line[0].lo / 256, end = a->line[0].pos / 256 + 1;
    float *guard;

    make_room(c, first + (int32_t)below(c, (uint32_t)(end - first)), end,
              &guard);
    a->b0 = a->kept_from + 1;
    a->b1 = end;
    if (a->b0 < a->b1)
        attend(a);
    a->b1 = a->b0;
    a->b0 = first;
    a->as_one = true;
    attend(a);
    join(a);
    ck_assert(*guard == GUARD);
    a->as_one = false;
    a->kept = NULL;
}

static bool
is_one_row(const br_cpu_att *a)
{
    for (uint32_t i = 1; i < a->n; i++)
        if (a->line[i].lo != a->line[0].lo || a->line[i].pos != a->line[0].pos)
            return false;
    return true;
}

static void
check_case(att_case *c, br_isa isa)
{
    size_t n = br_cpu_att_floats(c->a.head_k, c->a.head_v);

    c->a.s = t_keep(malloc((n + 1) * sizeof(float)));
    memset(c->a.s, 0xff, n * sizeof(float)); /* NaNs */
    c->a.s[n] = GUARD;
    br_cpu_ops_of(isa)->attend(&c->a);
    check_lines(c, isa, "at once");
    attend_in_spans(c, br_cpu_ops_of(isa)->attend, br_cpu_ops_of(isa)->fold);
    check_lines(c, isa, "in spans");
    if (is_one_row(&c->a)) {
        attend_as_one(c, br_cpu_ops_of(isa)->attend, br_cpu_ops_of(isa)->fold);
        check_lines(c, isa, "as one");
    }
    ck_assert(c->a.s[n] == GUARD);
}

TEST_WITHIN(attention_has_the_bits_of_the_contract, 60)
{
    att_case *c = t_keep(calloc(1, sizeof *c));
    int tries = t_sanitized() ? TRIES / 6 : TRIES;

    c->keys = t_keep(calloc(PAGES * 16 * HEAD, sizeof(float)));
    c->values = t_keep(calloc(PAGES * 16 * HEAD, sizeof(float)));
    for (int i = 0; i < tries; i++) {
        c->seed = (uint64_t)i + 1;
        make_case(c);
        for (int isa = 0; isa < BR_ISA_COUNT; isa++)
            if (br_isa_here((br_isa)isa))
                check_case(c, (br_isa)isa);
    }
}

/* ---- in pairs of BF16 ---------------------------------------------------- */

/* Squares of differences to the contract's numbers, and of those. */
static void
add_errors(const att_case *c, double *wrong, double *all)
{
    float want[HEAD];

    for (uint32_t i = 0; i < c->a.n; i++) {
        slowly(c, &c->a.line[i], want);
        for (uint32_t d = 0; d < c->a.head_v; d++) {
            double y = (double)c->a.line[i].y[d], e = y - (double)want[d];

            ck_assert_msg(e * e < 1e-3, "line %u, column %u: %g, not %g", i, d,
                          y, (double)want[d]);
            *wrong += e * e;
            *all += (double)want[d] * (double)want[d];
        }
    }
}

/* The same lines by themselves, by twos and so on: the same bits. */
static void
check_company(att_case *c, const br_cpu_ops *ops, const float *want)
{
    br_cpu_att *a = &c->a, few = *a;

    for (uint32_t i = 0; i < a->n; i += few.n) {
        few.n = 1 + below(c, 12);
        few.n = BR_MIN(few.n, a->n - i);
        memcpy(few.line, a->line + i, few.n * sizeof *few.line);
        memset(c->y + i * a->head_v, 0xff, few.n * a->head_v * sizeof *c->y);
        few.once = !few.once;
        ops->attend_pairs(&few);
    }
    for (uint32_t i = 0; i < a->n * a->head_v; i++)
        ck_assert_msg(memcmp(&c->y[i], &want[i], sizeof *want) == 0,
                      "line %u of %u, column %u: %.9g with all, %.9g with few: "
                      "keys %d..%d, heads of %u and %u",
                      i / a->head_v, a->n, i % a->head_v, (double)want[i],
                      (double)c->y[i], a->line[i / a->head_v].lo,
                      a->line[i / a->head_v].pos, a->head_k, a->head_v);
}

/* Exact zeros of the instruction: what a line does not see may be anything. */
TEST_WITHIN(attention_in_pairs_is_near_the_contract_in_any_company, 60)
{
    att_case *c = t_keep(calloc(1, sizeof *c));
    float *all = t_keep(calloc(1, sizeof c->y));
    const br_cpu_ops *ops = br_cpu_ops_of(BR_ISA_AVX512);
    double wrong = 0, of = 0;
    int tries = t_sanitized() ? TRIES / 6 : 4 * TRIES, n_pairs = 0;

    if (!br_isa_pairs(BR_ISA_AVX512))
        t_skip("no processor that multiplies pairs of BF16");
    c->keys = t_keep(calloc(PAGES * 16 * HEAD, sizeof(float)));
    c->values = t_keep(calloc(PAGES * 16 * HEAD, sizeof(float)));
    for (int i = 0; i < tries || n_pairs == 0; i++) {
        br_cpu_att *a = &c->a;
        bool pairs;
        size_t n;

        ck_assert_int_lt(i, 4 * TRIES);
        c->seed = (uint64_t)i + 1;
        make_case(c);
        pairs = a->has_v && br_cpu_att_pairs(a->kv, a->head_k, a->head_v);
        n = br_cpu_att_floats(a->head_k, a->head_v);
        a->s = t_keep(malloc((n + 1) * sizeof(float)));
        memset(a->s, 0xff, n * sizeof(float)); /* NaNs */
        a->s[n] = GUARD;
        ops->attend_pairs(a);
        if (!pairs) {
            check_lines(c, BR_ISA_AVX512, "not in pairs");
            continue;
        }
        n_pairs++;
        add_errors(c, &wrong, &of);
        memcpy(all, c->y, sizeof c->y);
        check_company(c, ops, all);
        attend_in_spans(c, ops->attend_pairs, ops->fold);
        ck_assert(memcmp(c->y, all, a->n * a->head_v * sizeof *all) == 0);
        if (is_one_row(a)) {
            attend_as_one(c, ops->attend_pairs, ops->fold);
            ck_assert(memcmp(c->y, all, a->n * a->head_v * sizeof *all) == 0);
        }
        ck_assert(a->s[n] == GUARD);
    }
    ck_assert_int_ge(n_pairs, tries / 20);
    ck_assert_double_lt(wrong, 1e-5 * of);
    ck_assert_double_gt(wrong, 1e-9 * of); /* or it was not in pairs */
}

/* A row's lines, as many as a head of keys has of queries: each goes by itself, too,
 * through a kernel of its own. */
TEST_WITHIN(attention_of_one_row_in_pairs_is_near_the_contract, 60)
{
    enum { MOST = 8, EACH = 4 };
    att_case *c = t_keep(calloc(1, sizeof *c));
    const br_cpu_ops *ops = br_cpu_ops_of(BR_ISA_AVX512);
    int done[MOST + 1] = {0}, n = 0;
    double wrong = 0, of = 0;

    if (!br_isa_pairs(BR_ISA_AVX512))
        t_skip("no processor that multiplies pairs of BF16");
    c->keys = t_keep(calloc(PAGES * 16 * HEAD, sizeof(float)));
    c->values = t_keep(calloc(PAGES * 16 * HEAD, sizeof(float)));
    for (uint64_t seed = 1; n < MOST * EACH; seed++) {
        const uint32_t per = 1 + (uint32_t)n % MOST;
        br_cpu_att *a = &c->a;

        ck_assert_uint_lt(seed, 100 * MOST * EACH);
        c->seed = seed;
        make_case(c);
        if (!a->has_v || !br_cpu_att_pairs(a->kv, a->head_k, a->head_v))
            continue;
        for (uint32_t i = 0; i < per; i++)
            a->line[i] =
                (br_cpu_line){c->q + i * a->head_k, c->y + i * a->head_v,
                              a->line[0].sink ? &c->sink[i] : NULL,
                              a->line[0].lo, a->line[0].pos};
        a->n = per;
        a->s = t_keep(
            malloc(br_cpu_att_floats(a->head_k, a->head_v) * sizeof(float)));
        ops->attend_pairs(a);
        add_errors(c, &wrong, &of);
        done[per]++;
        n++;
    }
    for (int i = 1; i <= MOST; i++)
        ck_assert_int_eq(done[i], EACH);
    ck_assert_double_lt(wrong, 1e-5 * of);
}

/* One row of keys that are 0 but for the last one's first column, and values
 * that are all v: what they come to, the highest score being `score`. */
static float
of_values(att_case *c, uint16_t v, float score)
{
    br_cpu_att *a = &c->a;
    uint16_t one = br_f32_to_f16(1), *page;

    *a = (br_cpu_att){.n = 1, .kv = BR_Q_F16, .has_v = true, .head_k = 32};
    a->head_v = 32;
    a->scale = 1;
    a->v_at = br_kv_bytes(a->kv, 16 * 32);
    a->page_bytes = 2 * a->v_at;
    a->pages = c->pages;
    a->pool = c->pool = t_keep(calloc(PAGES, a->page_bytes));
    a->s = t_keep(calloc(br_cpu_att_floats(32, 32), sizeof(float)));
    for (uint32_t i = 0; i < PAGES; i++) {
        c->pages[i] = i;
        page = (uint16_t *)(void *)(c->pool + i * a->page_bytes + a->v_at);
        for (int k = 0; k < 16 * 32; k++)
            page[k] = v;
    }
    page = (uint16_t *)(void *)(c->pool + (PAGES - 1) * a->page_bytes);
    page[15] = one;
    memset(c->q, 0, sizeof c->q);
    c->q[0] = score;
    a->line[0] = (br_cpu_line){c->q, c->y, NULL, 0, PAGES * 16 - 1};
    br_cpu_ops_of(BR_ISA_AVX512)->attend_pairs(a);
    for (uint32_t d = 1; d < a->head_v; d++)
        ck_assert(memcmp(&c->y[d], c->y, sizeof *c->y) == 0);
    return c->y[0];
}

TEST(attention_in_pairs_rounds_numbers_of_all_sizes)
{
    static const uint16_t v[] = {0x7bff, 0x0400, 0x0401, 0x3c04, 0x3c03, 0x3c0c,
                                 0xbc04, 0xfbff, 0x3555, 0x8400, 0x2e66};
    att_case *c = t_keep(calloc(1, sizeof *c));

    if (!br_isa_pairs(BR_ISA_AVX512))
        t_skip("no processor that multiplies pairs of BF16");
    for (size_t i = 0; i < BR_COUNT(v); i++) {
        /* To seven bits, half away from zero; the last key has all weight. */
        uint16_t near = (v[i] + 4) & 0xfff8;
        float want = near == 0x7c00   ? 65536
                     : near == 0xfc00 ? -65536
                                      : br_f16_to_f32(near);

        ck_assert_double_eq(of_values(c, v[i], 1000), want);
        ck_assert_double_eq(of_values(c, v[i], 1e15f), want);
        ck_assert_double_eq_tol(of_values(c, v[i], 0), want, fabs(want) * 1e-6);
    }
}

/* Nothing times what is small beyond measure is nothing, but what lies beside
 * it is not: keys 301 to 700 are seen, of two lines the second one sees 699. */
TEST(attention_in_pairs_leaves_out_the_other_half)
{
    att_case *c = t_keep(calloc(1, sizeof *c));
    br_cpu_att *a = &c->a;
    static const int32_t beside[] = {300, 701};

    if (!br_isa_pairs(BR_ISA_AVX512))
        t_skip("no processor that multiplies pairs of BF16");
    of_values(c, 0, 1);
    for (int i = 0; i < 2; i++) {
        uint8_t *page = c->pool + (size_t)beside[i] / 16 * a->page_bytes;
        uint16_t *v = (uint16_t *)(void *)(page + a->v_at);

        for (int d = 0; d < 32; d++)
            v[beside[i] % 16 * 32 + d] = 0x7bff;
    }
    a->line[0] = (br_cpu_line){c->q, c->y, NULL, 301, 700};
    a->line[1] = (br_cpu_line){c->q, c->y + 32, NULL, 301, 699};
    for (a->n = 1; a->n <= 2; a->n++) {
        memset(c->y, 0xff, sizeof c->y);
        br_cpu_ops_of(BR_ISA_AVX512)->attend_pairs(a);
        for (uint32_t d = 0; d < 32 * a->n; d++)
            ck_assert_double_eq(c->y[d], 0);
    }
}

/* ---- heads of keys side by side ------------------------------------------ */

/* Some heads' keys, then their values, as a page of random numbers has them;
 * pages before the window are not there. */
static void
make_heads(att_case *c)
{
    static const uint32_t widths[] = {32, 64, 96, 128, 16, 80, 20};
    static const int kinds[] = {BR_Q_F32, BR_Q_F16, BR_Q_Q8_0};
    br_cpu_att *a = &c->a;
    uint32_t heads = 2 + below(c, BR_CPU_HEADS - 1), n, per;
    int32_t pos = (int32_t)below(c, KEYS), lo = 0;
    size_t bytes;

    a->kv = kinds[below(c, BR_COUNT(kinds))];
    n = a->kv == BR_Q_Q8_0 ? 4 : BR_COUNT(widths); /* whole blocks */
    a->head_k = widths[below(c, n)];
    a->head_v = widths[below(c, n)];
    a->has_v = a->sheets = true;
    a->scale = 0.3f;
    a->v_at = heads * br_kv_bytes(a->kv, 16 * (uint64_t)a->head_k);
    a->page_bytes =
        a->v_at + heads * br_kv_bytes(a->kv, 16 * (uint64_t)a->head_v);
    bytes = PAGES * a->page_bytes;
    c->pool = t_keep(malloc(bytes));
    a->pool = c->pool;
    for (size_t i = 0; i < bytes; i += 2) { /* below 1 as F16 and as F32 */
        uint16_t x = below(c, 65536) & 0xbbff;

        memcpy(c->pool + i, &x, 2);
    }
    if (below(c, 2)) {
        lo = pos - (int32_t)below(c, 300);
        lo = BR_MAX(0, lo);
    }
    for (uint32_t i = 0; i < PAGES; i++)
        c->pages[i] = i < (uint32_t)lo / 16 ? UINT32_MAX
                      : pos % 2             ? i
                                            : (i * 17 + 3) % PAGES;
    a->pages = c->pages;
    a->heads = heads;
    do
        per = 1 + below(c, BR_CPU_LINES / heads);
    while (!br_cpu_att_fit(heads, per));
    a->n = heads * per;
    for (uint32_t i = 0; i < a->n; i++)
        a->line[i] = (br_cpu_line){c->q + i * a->head_k, c->y + i * a->head_v,
                                   NULL, lo, pos};
}

/* Each by itself, as `want`. */
static void
check_each(att_case *c, void (*attend)(const br_cpu_att *a), const float *want)
{
    uint32_t per = c->a.n / c->a.heads;

    memset(c->y, 0xff, sizeof c->y);
    for (uint32_t h = 0; h < c->a.heads; h++) {
        br_cpu_att one = c->a;

        one.heads = below(c, 2);
        one.n = per;
        memcpy(one.line, c->a.line + h * per, per * sizeof *one.line);
        one.k_at += h * br_kv_bytes(one.kv, 16 * (uint64_t)one.head_k);
        one.v_at += h * br_kv_bytes(one.kv, 16 * (uint64_t)one.head_v);
        attend(&one);
    }
    ck_assert_msg(memcmp(c->y, want, c->a.n * c->a.head_v * sizeof *want) == 0,
                  "%u heads of %u and %u, %u lines each, keys %d..%d, %s",
                  c->a.heads, c->a.head_k, c->a.head_v, per, c->a.line[0].lo,
                  c->a.line[0].pos, br_qinfo_of(c->a.kv)->name);
}

TEST_WITHIN(attention_of_heads_side_by_side_has_the_bits_of_each, 60)
{
    att_case *c = t_keep(calloc(1, sizeof *c));
    float *all = t_keep(calloc(1, sizeof c->y));
    int tries = t_sanitized() ? TRIES / 6 : TRIES;

    for (size_t i = 0; i < BR_CPU_LINES * HEAD; i++)
        c->q[i] = number(c);
    for (int i = 0; i < tries * BR_ISA_COUNT * 2; i++) {
        br_isa isa = (br_isa)(i / 2 % BR_ISA_COUNT);
        const br_cpu_ops *ops = br_cpu_ops_of(isa);
        void (*attend)(const br_cpu_att *a) = NULL;
        size_t n;

        if (br_isa_here(isa))
            attend = i % 2 ? ops->attend_pairs : ops->attend;
        if (!attend || (i % 2 && !br_isa_pairs(isa)))
            continue;
        c->seed = (uint64_t)i + 1;
        make_heads(c);
        n = br_cpu_att_floats(c->a.head_k, c->a.head_v);
        c->a.s = t_keep(malloc((n + 1) * sizeof(float)));
        memset(c->a.s, 0xff, n * sizeof(float)); /* NaNs */
        c->a.s[n] = GUARD;
        attend(&c->a);
        memcpy(all, c->y, sizeof c->y);
        check_each(c, attend, all);
        attend_in_spans(c, attend, ops->fold);
        ck_assert(memcmp(c->y, all, c->a.n * c->a.head_v * sizeof *all) == 0);
        attend_as_one(c, attend, ops->fold);
        ck_assert(memcmp(c->y, all, c->a.n * c->a.head_v * sizeof *all) == 0);
        ck_assert(c->a.s[n] == GUARD);
    }
}
