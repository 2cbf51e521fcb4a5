/* test_cpu_att.c - attention of the CPU tier beside docs/arithmetic.md, on
 * every instruction set that is here: random heads, windows, sinks, pages in
 * disorder, any lines together.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "drv/cpu/cpu_ops.h"
#include "drv/ref/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "t.h"

enum { TRIES = 60, KEYS = 800, PAGES = KEYS / 16 + 3, HEAD = 144, GUARD = 77 };

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

/* To the pages, and what it is there. */
static float
put(att_case *c, size_t at, float x)
{
    if (c->a.f16) {
        uint16_t h = br_f32_to_f16(x);

        memcpy(c->pool + 2 * at, &h, 2);
        return br_f16_to_f32(h);
    }
    memcpy(c->pool + 4 * at, &x, 4);
    return x;
}

/* A key at a position: of its page [head_k][16] and [16][head_v], or both as
 * [16][head_k]. What no line sees is NaN. */
static void
write_key(att_case *c, int32_t pos, bool seen)
{
    const br_cpu_att *a = &c->a;
    size_t size = a->f16 ? 2 : 4, j = (size_t)pos % 16;
    size_t page = c->pages[pos / 16] * a->page_bytes / size;

    for (size_t d = 0; d < a->head_k; d++)
        c->keys[(size_t)pos * HEAD + d] = put(
            c,
            page + a->k_at / size + (a->has_v ? d * 16 + j : j * a->head_k + d),
            seen ? number(c) : NAN);
    for (size_t d = 0; d < a->head_v; d++)
        c->values[(size_t)pos * HEAD + d] =
            a->has_v ? put(c, page + a->v_at / size + j * a->head_v + d,
                           seen ? number(c) : NAN)
                     : c->keys[(size_t)pos * HEAD + d];
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
    static const uint32_t widths[] = {1, 7, 8, 16, 20, 32, 64, 80, 96, 128};
    br_cpu_att *a = &c->a;
    size_t size, head;
    int32_t lo, hi;

    a->f16 = below(c, 2);
    a->has_v = below(c, 4) > 0;
    a->head_k = widths[below(c, BR_COUNT(widths))];
    a->head_v = widths[below(c, BR_COUNT(widths))];
    if (!a->has_v)
        a->head_v = BR_MIN(a->head_k, a->head_v);
    a->scale = 0.3f;
    a->cap = below(c, 3) ? 0 : 5;
    size = a->f16 ? 2 : 4;
    head = 16 * ((size_t)a->head_k + (a->has_v ? a->head_v : 0)) * size;
    a->page_bytes = 3 * head; /* heads or layers beside it */
    a->k_at = below(c, 3) * head;
    a->v_at = a->k_at + 16 * a->head_k * size;
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
check_case(att_case *c, br_isa isa)
{
    size_t n = br_cpu_att_floats(c->a.head_k, c->a.head_v);
    float want[HEAD];

    c->a.s = t_keep(malloc((n + 1) * sizeof(float)));
    memset(c->a.s, 0xff, n * sizeof(float)); /* NaNs */
    c->a.s[n] = GUARD;
    br_cpu_ops_of(isa)->attend(&c->a);
    ck_assert(c->a.s[n] == GUARD);
    for (uint32_t i = 0; i < c->a.n; i++) {
        const br_cpu_line *l = &c->a.line[i];

        slowly(c, l, want);
        for (uint32_t d = 0; d < c->a.head_v; d++)
            ck_assert_msg(
                memcmp(&l->y[d], &want[d], sizeof *want) == 0,
                "%s: line %u of %u, column %u is %.9g, not %.9g: keys %d..%d, "
                "heads of %u and %u, %s, %s values, cap %g",
                br_isa_name(isa), i, c->a.n, d, (double)l->y[d],
                (double)want[d], l->lo, l->pos, c->a.head_k, c->a.head_v,
                c->a.f16 ? "F16" : "F32", c->a.has_v ? "own" : "no",
                (double)c->a.cap);
    }
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
