/* ref_math.c - elementary functions from IEEE operations only.
 *
 * Additions, multiplications, fused multiply-adds, divisions, square roots and
 * roundings to integer, each correctly rounded, in the order written: the same
 * bits on every machine that has them. No libm result enters. Coefficients:
 * interpolation in Chebyshev nodes, then rounded (docs/arithmetic.md).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/ref/ref.h"

#include <math.h> /* fmaf, rintf, sqrtf: IEEE operations, not functions */

typedef union bits {
    float f;
    uint32_t u;
    int32_t i;
} bits;

/* 2^k, -126 <= k <= 127. */
static float
pow2(int k)
{
    bits b = {.u = (uint32_t)(127 + k) << 23};

    return b.f;
}

float
br_ref_exp(float x)
{
    float k, r, p;
    int n;

    if (!(x < 88.73f))
        return x + INFINITY; /* inf; a NaN stays */
    if (x < -104.0f)
        return 0;
    k = rintf(x * 0x1.715476p+0f);
    r = fmaf(k, -0x1.62e4p-1f, x);
    r = fmaf(k, -0x1.7f7d1cp-20f, r);
    p = 0x1.6d10fcp-10f;
    p = fmaf(p, r, 0x1.120b62p-7f);
    p = fmaf(p, r, 0x1.55551ap-5f);
    p = fmaf(p, r, 0x1.5554dep-3f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p * r, r, r) + 1.0f;
    n = (int)k;
    /* Two factors, so that 2^128 and subnormals come out with one rounding. */
    return p * pow2(n / 2) * pow2(n - n / 2);
}

float
br_ref_log(float x)
{
    bits b = {.f = x};
    float f, s, z, p;
    int e = 0, k;

    if (!(x > 0))
        return x == 0 ? -INFINITY : NAN;
    if (x == INFINITY)
        return x;
    if (b.u < 0x00800000u) { /* subnormal */
        b.f = x * 0x1p23f;
        e = -23;
    }
    /* x = 2^e m, m from sqrt(1/2) to sqrt(2) */
    k = (int)(((int64_t)b.i - 0x3f3504f3 + (512LL << 23)) >> 23) - 512;
    e += k;
    b.i -= k * 0x800000;
    f = b.f - 1.0f;
    s = f / (2.0f + f);
    z = s * s;
    p = 0x1.ddced8p-3f;
    p = fmaf(p, z, 0x1.245c44p-2f);
    p = fmaf(p, z, 0x1.9999ecp-2f);
    p = fmaf(p, z, 0x1.555556p-1f);
    p = fmaf(p * z, s, 2.0f * s);
    p = fmaf((float)e, 0x1.7f7d1cp-20f, p);
    return fmaf((float)e, 0x1.62e4p-1f, p);
}

float
br_ref_log1p(float x)
{
    float w = 1.0f + x;

    return br_ref_log(w) + (x - (w - 1.0f)) / w;
}

float
br_ref_tanh(float x)
{
    float a = fabsf(x), z, p;

    if (a < 0.625f) {
        z = x * x;
        p = -0x1.8f8de4p-8f;
        p = fmaf(p, z, 0x1.58048ep-6f);
        p = fmaf(p, z, -0x1.b9258ap-5f);
        p = fmaf(p, z, 0x1.110e1cp-3f);
        p = fmaf(p, z, -0x1.555552p-2f);
        return fmaf(p * z, x, x);
    }
    p = 1.0f - 2.0f / (br_ref_exp(2.0f * a) + 1.0f);
    return x < 0 ? -p : p;
}

/* hi + lo = n * f exactly; reduced by multiples of pi/2 in three pieces, the
 * first exact while k < 2^17. */
void
br_ref_sincos(float n, float f, float *sin, float *cos)
{
    float hi = n * f, lo = fmaf(n, f, -hi);
    float k = rintf(hi * 0x1.45f306p-1f);
    float r, z, s, c;
    int q;

    r = fmaf(k, -0x1.921fb6p+0f, hi);
    r = fmaf(k, 0x1.777a5cp-25f, r);
    r = fmaf(k, 0x1.ee59dap-50f, r);
    r = r + lo;
    z = r * r;
    s = 0x1.6dbe08p-19f;
    s = fmaf(s, z, -0x1.a013a8p-13f);
    s = fmaf(s, z, 0x1.11110ep-7f);
    s = fmaf(s, z, -0x1.555556p-3f);
    s = fmaf(s * z, r, r);
    c = 0x1.9bd89cp-16f;
    c = fmaf(c, z, -0x1.6c12d2p-10f);
    c = fmaf(c, z, 0x1.555554p-5f);
    c = fmaf(c * z, z, fmaf(z, -0.5f, 1.0f));
    q = (int)k & 3;
    *sin = q == 0 ? s : q == 1 ? c : q == 2 ? -s : -c;
    *cos = q == 0 ? c : q == 1 ? -s : q == 2 ? -c : s;
}

float
br_ref_rsqrt(float x)
{
    return 1.0f / sqrtf(x);
}

float
br_ref_sigmoid(float x)
{
    return 1.0f / (1.0f + br_ref_exp(-x));
}

float
br_ref_softplus(float x)
{
    return (x > 0 ? x : 0.0f) + br_ref_log1p(br_ref_exp(-fabsf(x)));
}

float
br_ref_silu(float x)
{
    return x / (1.0f + br_ref_exp(-x));
}

float
br_ref_gelu(float x)
{
    float u = x * fmaf(0x1.6e4e26p-5f * x, x, 1.0f); /* 0.044715 */

    return (0.5f * x) *
           (1.0f + br_ref_tanh(0x1.988454p-1f * u)); /* (2/pi)^.5 */
}

float
br_ref_act1(int act, float x)
{
    switch ((br_act)act) {
    case BR_ACT_SILU: return br_ref_silu(x);
    case BR_ACT_GELU: return br_ref_gelu(x);
    case BR_ACT_SIGMOID: return br_ref_sigmoid(x);
    case BR_ACT_OAI:
    case BR_ACT_COUNT: break;
    }
    br_unreachable("act");
}

float
br_ref_glu1(int act, float gate, float up)
{
    if (act != BR_ACT_OAI)
        return br_ref_act1(act, gate) * up;
    gate = gate < 7.0f ? gate : 7.0f;
    up = up < 7.0f ? up : 7.0f;
    up = up > -7.0f ? up : -7.0f;
    return gate / (1.0f + br_ref_exp(-1.702f * gate)) * (up + 1.0f);
}
