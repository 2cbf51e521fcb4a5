/* cpu_ops_body.h - the functions of cpu_ops.h, compiled once for each
 * instruction set by cpu_ops_c.c and its sisters.
 *
 * Polynomials and orders: docs/arithmetic.md; ref_math.c is the same text one
 * number at a time. Nothing is contracted: v_fma stands where one rounding is
 * meant.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_OPS_BODY_H
#define BR_CPU_OPS_BODY_H

#include "drv/cpu/cpu_ops.h"
#include "drv/cpu/cpu_vec.h"
#include "model/model.h"

/* ---- elementary functions ----------------------------------------------- */

/* Of x from -105 to 88.73. */
V_LONG vf
v_exp_near(vf x)
{
    vf k = v_rint(v_mul(x, v_set(0x1.715476p+0f)));
    vf r = v_fma(k, v_set(-0x1.62e4p-1f), x), p;

    r = v_fma(k, v_set(-0x1.7f7d1cp-20f), r);
    p = v_set(0x1.6d10fcp-10f);
    p = v_fma(p, r, v_set(0x1.120b62p-7f));
    p = v_fma(p, r, v_set(0x1.55551ap-5f));
    p = v_fma(p, r, v_set(0x1.5554dep-3f));
    p = v_fma(p, r, v_set(0.5f));
    return v_ldexp(v_add(v_fma(v_mul(p, r), r, r), v_set(1)), k);
}

V_LONG vf
v_exp(vf x)
{
    vf e = v_exp_near(x);

    e = v_less(x, v_set(88.73f), e, v_add(x, v_set(INFINITY)));
    return v_less(x, v_set(-104.0f), v_set(0), e);
}

/* Of no positive x: what is below -104 comes to 0 by rounding. */
V_LONG vf
v_exp_down(vf x)
{
    return v_exp_near(v_max(v_set(-105), x));
}

V_LONG vf
v_tanh(vf x)
{
    vf a = v_abs(x), z = v_mul(x, x), p, q;

    p = v_set(-0x1.8f8de4p-8f);
    p = v_fma(p, z, v_set(0x1.58048ep-6f));
    p = v_fma(p, z, v_set(-0x1.b9258ap-5f));
    p = v_fma(p, z, v_set(0x1.110e1cp-3f));
    p = v_fma(p, z, v_set(-0x1.555552p-2f));
    p = v_fma(v_mul(p, z), x, x);
    q = v_add(v_exp(v_mul(v_set(2), a)), v_set(1));
    q = v_sub(v_set(1), v_div(v_set(2), q));
    return v_less(a, v_set(0.625f), p, v_less(x, v_set(0), v_neg(q), q));
}

V_LONG vf
v_silu(vf x)
{
    return v_div(x, v_add(v_set(1), v_exp(v_neg(x))));
}

V_LONG vf
v_gelu(vf x)
{
    vf u = v_mul(v_set(0x1.6e4e26p-5f), x);

    u = v_mul(x, v_fma(u, x, v_set(1)));
    u = v_tanh(v_mul(v_set(0x1.988454p-1f), u));
    return v_mul(v_mul(v_set(0.5f), x), v_add(v_set(1), u));
}

V_LONG vf
v_oai(vf g, vf u)
{
    g = v_less(g, v_set(7), g, v_set(7));
    u = v_less(u, v_set(7), u, v_set(7));
    u = v_less(v_set(-7), u, u, v_set(-7));
    g = v_div(g, v_add(v_set(1), v_exp(v_mul(v_set(-1.702f), g))));
    return v_mul(g, v_add(u, v_set(1)));
}

/* ---- rows --------------------------------------------------------------- */

static float
dot(const float *a, const float *b, size_t n)
{
    vf sum = v_set(0);
    float lane[16];
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        sum = v_fma(v_load(a + k), v_load(b + k), sum);
    if (k == n)
        return v_sum(sum);
    v_store(lane, sum);
    for (size_t l = 0; k + l < n; l++)
        lane[l] = fmaf(a[k + l], b[k + l], lane[l]);
    return v_sum(v_load(lane));
}

static void
norm(const float *x, const float *w, float *y, size_t n, float eps)
{
    float r = 1.0f / sqrtf(dot(x, x, n) / (float)n + eps);
    vf by = v_set(r);
    size_t k = 0;

    for (; w && k + 16 <= n; k += 16)
        v_store(y + k, v_mul(v_mul(v_load(x + k), by), v_load(w + k)));
    for (; k < n; k++)
        y[k] = w ? (x[k] * r) * w[k] : x[k] * r;
}

V_INLINE vf
act_of(int act, vf x, vf up, bool glu)
{
    vf y;

    if (act == BR_ACT_OAI)
        return v_oai(x, up);
    y = act == BR_ACT_SILU ? v_silu(x)
        : act == BR_ACT_GELU
            ? v_gelu(x)
            : v_div(v_set(1), v_add(v_set(1), v_exp(v_neg(x))));
    return glu ? v_mul(y, up) : y;
}

V_LONG void
act_rows(int act, const float *x, const float *up, float *y, size_t n)
{
    bool glu = up != NULL;
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        v_store(y + k, act_of(act, v_load(x + k),
                              glu ? v_load(up + k) : v_set(0), glu));
    if (k < n)
        v_store_n(y + k,
                  act_of(act, v_load_n(x + k, n - k),
                         glu ? v_load_n(up + k, n - k) : v_set(0), glu),
                  n - k);
}

static void
act(int kind, const float *x, const float *up, float *y, size_t n)
{
    switch ((br_act)kind) {
    case BR_ACT_SILU: act_rows(BR_ACT_SILU, x, up, y, n); return;
    case BR_ACT_GELU: act_rows(BR_ACT_GELU, x, up, y, n); return;
    case BR_ACT_SIGMOID: act_rows(BR_ACT_SIGMOID, x, up, y, n); return;
    case BR_ACT_OAI:
        br_assert(up && "a gate that is clamped with its other half");
        act_rows(BR_ACT_OAI, x, up, y, n);
        return;
    case BR_ACT_COUNT: break;
    }
    br_unreachable("act");
}

static void
softcap(const float *x, float *y, size_t n, float cap)
{
    vf c = v_set(cap);

    for (; n >= 16; n -= 16, x += 16, y += 16)
        v_store(y, v_mul(c, v_tanh(v_div(v_load(x), c))));
    if (n)
        v_store_n(y, v_mul(c, v_tanh(v_div(v_load_n(x, n), c))), n);
}

static void
two(br_cpu_two op, const float *a, const float *b, float *y, size_t n)
{
    size_t k = 0;

    for (; op == BR_CPU_ADD && k + 16 <= n; k += 16)
        v_store(y + k, v_add(v_load(a + k), v_load(b + k)));
    for (; op == BR_CPU_MUL && k + 16 <= n; k += 16)
        v_store(y + k, v_mul(v_load(a + k), v_load(b + k)));
    for (; k < n; k++)
        y[k] = op == BR_CPU_ADD ? a[k] + b[k] : a[k] * b[k];
}

static void
scale(const float *x, float *y, size_t n, float by)
{
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        v_store(y + k, v_mul(v_load(x + k), v_set(by)));
    for (; k < n; k++)
        y[k] = x[k] * by;
}

static void
axpy(const float *x, float by, float *y, size_t n)
{
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        v_store(y + k, v_fma(v_load(x + k), v_set(by), v_load(y + k)));
    for (; k < n; k++)
        y[k] = fmaf(x[k], by, y[k]);
}

static void
turn(const float *u, const float *v, const float *c, const float *s, float *yu,
     float *yv, size_t n)
{
    size_t k = 0;

    for (; k + 16 <= n; k += 16) {
        vf a = v_load(u + k), b = v_load(v + k);
        vf co = v_load(c + k), si = v_load(s + k);

        v_store(yu + k, v_fma(a, co, v_neg(v_mul(b, si))));
        v_store(yv + k, v_fma(a, si, v_mul(b, co)));
    }
    for (; k < n; k++) {
        float a = u[k], b = v[k];

        yu[k] = fmaf(a, c[k], -(b * s[k]));
        yv[k] = fmaf(a, s[k], b * c[k]);
    }
}

/* One by one: vectors of them, taken apart in memory, wait for the stores of
 * that and are slower. */
static void
turn_pairs(const float *x, const float *c, const float *s, float *y, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        float a = x[2 * k], b = x[2 * k + 1];

        y[2 * k] = fmaf(a, c[k], -(b * s[k]));
        y[2 * k + 1] = fmaf(a, s[k], b * c[k]);
    }
}

static void
to_f16(const float *x, uint16_t *y, size_t n)
{
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        v_store_f16(y + k, v_load(x + k));
    for (; k < n; k++)
        y[k] = br_f32_to_f16(x[k]);
}

#include "drv/cpu/cpu_att_body.h"

/* ---- states ------------------------------------------------------------- */

/* S *= decay; d = beta (v - S'k); S += k d'; y = S'q; sums over keys ascend. */
static void
delta(const br_cpu_delta *e)
{
    size_t n = e->n;

    for (size_t j = 0; j < n; j++)
        e->d[j] = e->y[j] = 0;
    for (size_t i = 0; i < n; i++) {
        float *s = e->s + i * n;
        size_t j = 0;

        for (; j + 16 <= n; j += 16) {
            vf x = v_mul(v_load(s + j), v_set(e->decay));

            v_store(s + j, x);
            v_store(e->d + j, v_fma(x, v_set(e->k[i]), v_load(e->d + j)));
        }
        for (; j < n; j++) {
            s[j] = s[j] * e->decay;
            e->d[j] = fmaf(s[j], e->k[i], e->d[j]);
        }
    }
    for (size_t j = 0; j < n; j++)
        e->d[j] = e->beta * (e->v[j] - e->d[j]);
    for (size_t i = 0; i < n; i++) {
        float *s = e->s + i * n;
        size_t j = 0;

        for (; j + 16 <= n; j += 16) {
            vf x = v_fma(v_set(e->k[i]), v_load(e->d + j), v_load(s + j));

            v_store(s + j, x);
            v_store(e->y + j, v_fma(x, v_set(e->q[i]), v_load(e->y + j)));
        }
        for (; j < n; j++) {
            s[j] = fmaf(e->k[i], e->d[j], s[j]);
            e->y[j] = fmaf(s[j], e->q[i], e->y[j]);
        }
    }
}

static void
scan(float *row, const float *b, float xd, float decay, size_t n)
{
    size_t j = 0;

    for (; j + 16 <= n; j += 16)
        v_store(row + j, v_fma(v_load(b + j), v_set(xd),
                               v_mul(v_load(row + j), v_set(decay))));
    for (; j < n; j++)
        row[j] = fmaf(b[j], xd, row[j] * decay);
}

#define CPU_OPS(pairs)                                                       \
    {                                                                        \
        dot, norm, act, softcap, two, scale, axpy, turn, turn_pairs, to_f16, \
            attend, pairs, fold_kept, delta, scan                            \
    }

#endif
