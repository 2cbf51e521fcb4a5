/* exact.cuh - elementary functions from IEEE operations only: on the device
 * what src/drv/ref/ref_math.c is on the host, and docs/arithmetic.md says. To
 * be compiled with -ffp-contract=off.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_EXACT_CUH
#define BR_EXACT_CUH

#include "device.cuh"
#include "node_table.h"

/* 16 bytes at once, which nobody writes meanwhile. */
BR_DEV u32x4
ld16(const void *p)
{
    return *(const u32x4 *)p;
}

BR_DEV float
ex_pow2(i32 k)
{
    return as_f32((u32)(127 + k) << 23);
}

BR_DEV float
ex_exp(float x)
{
    float k, r, p;
    i32 n;

    if (!(x < 88.73f))
        return x + as_f32(0x7f800000);
    if (x < -104.0f)
        return 0.0f;
    k = rint_f32(x * 0x1.715476p+0f);
    r = fma_rn(k, -0x1.62e4p-1f, x);
    r = fma_rn(k, -0x1.7f7d1cp-20f, r);
    p = 0x1.6d10fcp-10f;
    p = fma_rn(p, r, 0x1.120b62p-7f);
    p = fma_rn(p, r, 0x1.55551ap-5f);
    p = fma_rn(p, r, 0x1.5554dep-3f);
    p = fma_rn(p, r, 0.5f);
    p = fma_rn(p * r, r, r) + 1.0f;
    n = (i32)k;
    return p * ex_pow2(n / 2) * ex_pow2(n - n / 2);
}

/* Of positive normal numbers, which is all that asks. */
BR_DEV float
ex_log(float x)
{
    i32 b = (i32)as_u32(x);
    const i32 k = (i32)(((i64)b - 0x3f3504f3 + (512ll << 23)) >> 23) - 512;
    float f, s, z, p;

    b -= k * 0x800000;
    f = as_f32((u32)b) - 1.0f;
    s = f / (2.0f + f);
    z = s * s;
    p = 0x1.ddced8p-3f;
    p = fma_rn(p, z, 0x1.245c44p-2f);
    p = fma_rn(p, z, 0x1.9999ecp-2f);
    p = fma_rn(p, z, 0x1.555556p-1f);
    p = fma_rn(p * z, s, 2.0f * s);
    p = fma_rn((float)k, 0x1.7f7d1cp-20f, p);
    return fma_rn((float)k, 0x1.62e4p-1f, p);
}

/* max(x, 0) + log(1 + e^-|x|) */
BR_DEV float
ex_softplus(float x)
{
    const float e = ex_exp(-abs_f32(x)), w = 1.0f + e;

    if (!(w >= 1.0f))
        return w; /* NaN */
    return (x > 0.0f ? x : 0.0f) + (ex_log(w) + (e - (w - 1.0f)) / w);
}

BR_DEV float
ex_tanh(float x)
{
    const float a = abs_f32(x);
    float z, p;

    if (a < 0.625f) {
        z = x * x;
        p = -0x1.8f8de4p-8f;
        p = fma_rn(p, z, 0x1.58048ep-6f);
        p = fma_rn(p, z, -0x1.b9258ap-5f);
        p = fma_rn(p, z, 0x1.110e1cp-3f);
        p = fma_rn(p, z, -0x1.555552p-2f);
        return fma_rn(p * z, x, x);
    }
    p = 1.0f - 2.0f / (ex_exp(2.0f * a) + 1.0f);
    return x < 0.0f ? -p : p;
}

BR_DEV void
ex_sincos(float n, float f, float *sin, float *cos)
{
    const float hi = n * f, lo = fma_rn(n, f, -hi);
    const float k = rint_f32(hi * 0x1.45f306p-1f);
    float r, z, s, c;

    r = fma_rn(k, -0x1.921fb6p+0f, hi);
    r = fma_rn(k, 0x1.777a5cp-25f, r);
    r = fma_rn(k, 0x1.ee59dap-50f, r);
    r = r + lo;
    z = r * r;
    s = 0x1.6dbe08p-19f;
    s = fma_rn(s, z, -0x1.a013a8p-13f);
    s = fma_rn(s, z, 0x1.11110ep-7f);
    s = fma_rn(s, z, -0x1.555556p-3f);
    s = fma_rn(s * z, r, r);
    c = 0x1.9bd89cp-16f;
    c = fma_rn(c, z, -0x1.6c12d2p-10f);
    c = fma_rn(c, z, 0x1.555554p-5f);
    c = fma_rn(c * z, z, fma_rn(z, -0.5f, 1.0f));
    switch ((i32)k & 3) {
    case 0: *sin = s, *cos = c; return;
    case 1: *sin = c, *cos = -s; return;
    case 2: *sin = -s, *cos = -c; return;
    default: *sin = -c, *cos = s; return;
    }
}

BR_DEV float
ex_act(u32 act, float x)
{
    switch (act) {
    case BR_ND_GELU: {
        const float u = x * fma_rn(0x1.6e4e26p-5f * x, x, 1.0f);
        return (0.5f * x) * (1.0f + ex_tanh(0x1.988454p-1f * u));
    }
    case BR_ND_SIGMOID: return 1.0f / (1.0f + ex_exp(-x));
    default: return x / (1.0f + ex_exp(-x)); /* SILU */
    }
}

BR_DEV float
ex_glu(u32 act, float gate, float up)
{
    if (act != BR_ND_OAI)
        return ex_act(act, gate) * up;
    gate = gate < 7.0f ? gate : 7.0f;
    up = up < 7.0f ? up : 7.0f;
    up = up > -7.0f ? up : -7.0f;
    return gate / (1.0f + ex_exp(-1.702f * gate)) * (up + 1.0f);
}

#endif
