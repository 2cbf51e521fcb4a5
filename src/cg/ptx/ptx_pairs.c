/* ptx_pairs.c - doubles computed as pairs of floats, for --fp64=emulate.
 *
 *   x = h + l     h the float nearest to x, l the one nearest to the rest
 *
 * Why       A program that is meant for processors without doubles can be tried
 *           here: some 46 bits, and the range of floats. .pragma "brass fp64
 *           emulate" in the module asks for it; brasscc writes it.
 * What      add sub mul fma div rcp sqrt of f64, rounded to the nearest pair
 *           whatever they ask for. Comparisons, conversions, minima and atomics
 *           stay what they are. Where the floats alone overflow, or are no
 *           number, that is the result.
 *
 * References: Dekker, A floating-point technique for extending the available
 * precision, 1971; Joldes, Muller, Popescu, Tight and rigorous error bounds for
 * basic building blocks of double-word arithmetic, 2017: sums within 3 u^2,
 * products 5 u^2, u = 2^-24; Ogita, Rump, Oishi, Accurate sum and dot product, 2005.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

typedef struct pair {
    uint32_t h, l;
} pair;

static uint32_t
make(px_lower *l, br_kop op, uint32_t mods, const uint32_t *a, unsigned n)
{
    br_kins i = {.op = (uint8_t)op,
                 .type = BR_KT_F32,
                 .n_arg = (uint16_t)n,
                 .mods = mods};

    return px_emit(l, &i, a);
}

/* Rounded by itself: never fused with another. */
static uint32_t
op2(px_lower *l, br_kop op, uint32_t a, uint32_t b)
{
    return make(l, op, br_kmod_put(BR_KF_RND, BR_KM_RND_RN), (uint32_t[]){a, b},
                2);
}

static uint32_t
fused(px_lower *l, uint32_t a, uint32_t b, uint32_t c)
{
    return make(l, BR_K_FMA, br_kmod_put(BR_KF_RND, BR_KM_RND_RN),
                (uint32_t[]){a, b, c}, 3);
}

static uint32_t
minus(px_lower *l, uint32_t a)
{
    return make(l, BR_K_NEG, 0, &a, 1);
}

static uint32_t
convert(px_lower *l, unsigned to, unsigned from, uint32_t v)
{
    br_kins i = {.op = BR_K_CVT,
                 .type = (uint8_t)to,
                 .type2 = (uint8_t)from,
                 .n_arg = 1};

    if (to == BR_KT_F32)
        i.mods = br_kmod_put(BR_KF_RND, BR_KM_RND_RN);
    return px_emit(l, &i, &v);
}

static uint32_t
wide(px_lower *l, br_kop op, uint32_t a, uint32_t b)
{
    br_kins i = {.op = (uint8_t)op,
                 .type = BR_KT_F64,
                 .n_arg = 2,
                 .mods = br_kmod_put(BR_KF_RND, BR_KM_RND_RN)};

    return px_emit(l, &i, (uint32_t[]){a, b});
}

/* ---- exactly: a sum, a product, a double -------------------------------- */

static pair
sum(px_lower *l, uint32_t a, uint32_t b)
{
    uint32_t s = op2(l, BR_K_ADD, a, b), t = op2(l, BR_K_SUB, s, a);
    uint32_t e = op2(l, BR_K_SUB, a, op2(l, BR_K_SUB, s, t));

    return (pair){s, op2(l, BR_K_ADD, e, op2(l, BR_K_SUB, b, t))};
}

/* Where a is not smaller than b. */
static pair
quick_sum(px_lower *l, uint32_t a, uint32_t b)
{
    uint32_t s = op2(l, BR_K_ADD, a, b);

    return (pair){s, op2(l, BR_K_SUB, b, op2(l, BR_K_SUB, s, a))};
}

static pair
product(px_lower *l, uint32_t a, uint32_t b)
{
    uint32_t p = op2(l, BR_K_MUL, a, b);

    return (pair){p, fused(l, a, b, minus(l, p))};
}

static pair
apart(px_lower *l, uint32_t x)
{
    uint32_t h = convert(l, BR_KT_F32, BR_KT_F64, x);
    uint32_t rest = wide(l, BR_K_SUB, x, convert(l, BR_KT_F64, BR_KT_F32, h));

    return (pair){h, convert(l, BR_KT_F32, BR_KT_F64, rest)};
}

/* ---- operations on pairs ------------------------------------------------- */

static pair
add(px_lower *l, pair x, pair y)
{
    pair s = sum(l, x.h, y.h), t = sum(l, x.l, y.l);

    s = quick_sum(l, s.h, op2(l, BR_K_ADD, s.l, t.h));
    return quick_sum(l, s.h, op2(l, BR_K_ADD, s.l, t.l));
}

static pair
negative(px_lower *l, pair x)
{
    return (pair){minus(l, x.h), minus(l, x.l)};
}

static pair
mul(px_lower *l, pair x, pair y)
{
    pair p = product(l, x.h, y.h);
    uint32_t t = op2(l, BR_K_MUL, x.l, y.l);

    t = fused(l, x.l, y.h, fused(l, x.h, y.l, t));
    return quick_sum(l, p.h, op2(l, BR_K_ADD, p.l, t));
}

/* All products and z as nine floats, whose sum is that of three times the bits:
 * what cancels leaves the rest. */
static pair
mul_add(px_lower *l, pair x, pair y, pair z)
{
    pair a = product(l, x.h, y.h), b = product(l, x.h, y.l);
    pair c = product(l, x.l, y.h);
    uint32_t t[9] = {
        op2(l, BR_K_MUL, x.l, y.l), b.l, c.l, z.l, a.l, b.h, c.h, z.h, a.h};
    uint32_t rest;

    for (int pass = 0; pass < 2; pass++)
        for (int k = 1; k < 9; k++) {
            pair s = sum(l, t[k], t[k - 1]);

            t[k] = s.h;
            t[k - 1] = s.l;
        }
    rest = t[0];
    for (int k = 1; k < 8; k++)
        rest = op2(l, BR_K_ADD, rest, t[k]);
    return quick_sum(l, t[8], rest);
}

/* x - q y */
static pair
left_over(px_lower *l, pair x, pair y, uint32_t q)
{
    pair p = product(l, q, y.h);

    p = quick_sum(l, p.h, fused(l, q, y.l, p.l));
    return add(l, x, negative(l, p));
}

static pair
divide(px_lower *l, pair x, pair y)
{
    uint32_t q = op2(l, BR_K_DIV, x.h, y.h), r;
    pair s, rest = left_over(l, x, y, q);

    r = op2(l, BR_K_DIV, rest.h, y.h);
    rest = left_over(l, rest, y, r);
    s = quick_sum(l, q, r);
    return quick_sum(l, s.h,
                     op2(l, BR_K_ADD, s.l, op2(l, BR_K_DIV, rest.h, y.h)));
}

static pair
root(px_lower *l, pair x, uint32_t s)
{
    pair rest = add(l, x, negative(l, product(l, s, s)));

    return quick_sum(l, s, op2(l, BR_K_DIV, rest.h, op2(l, BR_K_ADD, s, s)));
}

/* ---- the double ----------------------------------------------------------- */

static uint32_t
compare(px_lower *l, unsigned how, uint32_t a, uint32_t bits)
{
    return make(l, BR_K_SETP, br_kmod_put(BR_KF_CMP, how),
                (uint32_t[]){a, px_k(l, BR_KC_B32, bits)}, 2);
}

/* What floats alone gave, where that is no finite number, or both are zero and
 * it has the sign. */
static uint32_t
together(px_lower *l, pair x, uint32_t alone)
{
    uint32_t size = make(l, BR_K_ABS, 0, &alone, 1);
    uint32_t finite = compare(l, BR_KM_CMP_LT, size, 0x7f800000);
    uint32_t some =
        px_do2(l, BR_K_OR, BR_KT_PRED, compare(l, BR_KM_CMP_NE, alone, 0),
               compare(l, BR_KM_CMP_NE, x.h, 0));
    uint32_t a[3];

    a[0] = wide(l, BR_K_ADD, convert(l, BR_KT_F64, BR_KT_F32, x.h),
                convert(l, BR_KT_F64, BR_KT_F32, x.l));
    a[1] = convert(l, BR_KT_F64, BR_KT_F32, alone);
    a[2] = px_do2(l, BR_K_AND, BR_KT_PRED, finite, some);
    return px_do(l, BR_K_SELECT, BR_KT_B64, a, 3);
}

uint32_t
px_pairs(px_lower *l, const br_kins *i, const uint32_t *args)
{
    pair x[3], one = {px_k(l, BR_KC_B32, 0x3f800000), px_k(l, BR_KC_B32, 0)};
    uint32_t alone, v;

    l->in_pairs = true;
    for (unsigned k = 0; k < i->n_arg; k++)
        x[k] = apart(l, args[k]);
    if (i->op == BR_K_SUB)
        x[1] = negative(l, x[1]);
    if (i->op == BR_K_RCP) {
        x[1] = x[0];
        x[0] = one;
    }
    switch (i->op) {
    case BR_K_SUB:
    case BR_K_ADD:
        alone = op2(l, BR_K_ADD, x[0].h, x[1].h);
        x[0] = add(l, x[0], x[1]);
        break;
    case BR_K_MUL:
        alone = op2(l, BR_K_MUL, x[0].h, x[1].h);
        x[0] = mul(l, x[0], x[1]);
        break;
    case BR_K_FMA:
        alone = fused(l, x[0].h, x[1].h, x[2].h);
        x[0] = mul_add(l, x[0], x[1], x[2]);
        break;
    case BR_K_RCP:
    case BR_K_DIV:
        alone = op2(l, BR_K_DIV, x[0].h, x[1].h);
        x[0] = divide(l, x[0], x[1]);
        break;
    default: /* sqrt */
        alone = make(l, BR_K_SQRT, br_kmod_put(BR_KF_RND, BR_KM_RND_RN),
                     &x[0].h, 1);
        x[0] = root(l, x[0], alone);
        break;
    }
    v = together(l, x[0], alone);
    l->in_pairs = false;
    return v;
}
