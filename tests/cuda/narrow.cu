/* narrow.cu - half, bfloat16 and fp8: every conversion rounds once, on the device
 * as on the host. The oracle knows no bits: the nearest of all values of a type,
 * ties to the even code.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <string.h>
#include <type_traits>

/* What the codes 0, 1, 2... of a type mean, up to the largest finite one; then
 * one step more, from whose half on numbers are too large. */
static std::vector<double>
values(int bits, int bias, int codes)
{
    std::vector<double> v;

    for (int c = 0; c <= codes; c++) {
        int e = c >> bits, m = c & ((1 << bits) - 1);

        v.push_back(e ? ldexp(m + (1 << bits), e - bias - bits)
                      : ldexp(m, 1 - bias - bits));
    }
    return v;
}
static int
nearest(const std::vector<double> &v, double x)
{
    size_t lo = 0, hi = v.size() - 1;

    if (x >= v[hi])
        return (int)hi;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;

        (v[mid] <= x ? lo : hi) = mid;
    }
    double below = x - v[lo], above = v[hi] - x;

    return (int)(below < above || (below == above && lo % 2 == 0) ? lo : hi);
}

struct Got {
    unsigned char e4m3, e5m2, e4m3n, e5m2n, d4m3, d5m2;
    unsigned short half, bf16, dhalf, dbf16;
};
static __host__ __device__ Got
convert(double x)
{
    Got g;
    float f = (float)x;

    g.e4m3 = __nv_fp8_e4m3(f).__x;
    g.e5m2 = __nv_fp8_e5m2(f).__x;
    g.e4m3n = __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E4M3);
    g.e5m2n = __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E5M2);
    g.d4m3 = __nv_fp8_e4m3(x).__x;
    g.d5m2 = __nv_fp8_e5m2(x).__x;
    g.half = __half_as_ushort(__float2half(f));
    g.bf16 = __bfloat16_as_ushort(__float2bfloat16(f));
    g.dhalf = __half_as_ushort(__double2half(x));
    g.dbf16 = __bfloat16_as_ushort(__double2bfloat16(x));
    return g;
}
__global__ void
convert_all(const double *x, Got *g, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        g[i] = convert(x[i]);
}

static void
conversions()
{
    std::vector<double> e4 = values(3, 7, 0x7f), e5 = values(2, 15, 0x7c);
    std::vector<double> h = values(10, 15, 0x7c00), b = values(7, 127, 0x7f80);
    std::vector<double> x;

    for (size_t k = 0; k < e4.size(); k++)
        for (int s = -2; s <= 2; s++) { /* beside values and ties */
            x.push_back(e4[k] * (1 + s * 0x1p-23));
            x.push_back((e4[k] + e4[k ? k - 1 : 0]) / 2 * (1 + s * 0x1p-50));
            x.push_back((e5[k < 124 ? k : 0] + e5[k < 123 ? k + 1 : 0]) / 2 *
                        (1 + s * 0x1p-23));
        }
    for (int k = 0; k < 3000; k++) {
        int c = (int)(rnd() * 0x7bff);

        x.push_back((h[c] + h[c + 1]) / 2 * (1 + (k % 3 - 1) * 0x1p-45));
        c = (int)(rnd() * 0x7f7f);
        x.push_back((b[c] + b[c + 1]) / 2 * (1 + (k % 3 - 1) * 0x1p-45));
    }
    Dev<double> dx(x);
    Dev<Got> dg(x.size());

    convert_all<<<(x.size() + 127) / 128, 128>>>(dx.p, dg.p, (int)x.size());
    std::vector<Got> g = dg.get();
    int bad = 0;

    for (size_t k = 0; k < x.size(); k++) {
        float f = (float)x[k];
        Got host = convert(x[k]);
        int c4 = nearest(e4, f), c5 = nearest(e5, f);

        bad += memcmp(&host, &g[k], sizeof host) != 0;
        bad += g[k].e4m3 != (c4 > 0x7e ? 0x7e : c4) || g[k].e4m3n != c4;
        bad += g[k].e5m2 != (c5 > 0x7b ? 0x7b : c5) || g[k].e5m2n != c5;
        bad += g[k].half != nearest(h, f) || g[k].dhalf != nearest(h, x[k]);
        bad += g[k].bf16 != nearest(b, f) || g[k].dbf16 != nearest(b, x[k]);
        c4 = nearest(e4, x[k]), c5 = nearest(e5, x[k]);
        bad += g[k].d4m3 != (c4 > 0x7e ? 0x7e : c4);
        bad += g[k].d5m2 != (c5 > 0x7b ? 0x7b : c5);
    }
    EXPECT(bad == 0);
    EXPECT(__nv_fp8_e4m3(NAN).__x == 0x7f && __nv_fp8_e5m2(-INFINITY).__x == 0xfb);
    EXPECT(isnan((float)__nv_fp8_e4m3(NAN)) && __nv_fp8_e4m3(-0.0f).__x == 0x80);
    for (int c = 0; c < 256; c++) { /* there and back */
        __nv_fp8_e4m3 p;
        __nv_fp8_e5m2 q;

        p.__x = q.__x = (unsigned char)c;
        EXPECT((c & 0x7f) == 0x7f || __nv_fp8_e4m3((float)p).__x == c);
        EXPECT((c & 0x7f) > 0x7b || __nv_fp8_e5m2((float)q).__x == c);
        EXPECT((c & 0x7f) > 0x7c ||
               __half_as_ushort((__half)q) == (unsigned)c << 8);
    }
}

/* a * b + c rounded once: against long double, which holds it exactly. */
__global__ void
fmas(const unsigned short *in, unsigned short *h, unsigned short *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    h[i] = __half_as_ushort(__hfma(__ushort_as_half(in[3 * i]),
                                   __ushort_as_half(in[3 * i + 1]),
                                   __ushort_as_half(in[3 * i + 2])));
    b[i] = __bfloat16_as_ushort(__hfma(__ushort_as_bfloat16(in[3 * i]),
                                       __ushort_as_bfloat16(in[3 * i + 1]),
                                       __ushort_as_bfloat16(in[3 * i + 2])));
}
static void
fused()
{
    const int n = 4096;
    std::vector<double> hv = values(10, 15, 0x7c00);
    std::vector<unsigned short> in(3 * n);
    Dev<unsigned short> h(n), b(n);
    int bad = 0;

    for (int k = 0; k < n; k++) { /* c far below a * b, and at ties */
        in[3 * k] = (unsigned short)(0x3c00 + (int)(rnd() * 1024));
        in[3 * k + 1] = (unsigned short)(0x3c00 + (int)(rnd() * 4) * 256);
        in[3 * k + 2] = (unsigned short)(rnd() * (k & 2 ? 0x0800 : 8)) |
                        (k & 1 ? 0x8000 : 0);
    }
    Dev<unsigned short> d(in);

    fmas<<<n / 128, 128>>>(d.p, h.p, b.p, n);
    std::vector<unsigned short> gh = h.get();
    for (int k = 0; k < n; k++) {
        long double e = (long double)__half2float(__ushort_as_half(in[3 * k])) *
                            __half2float(__ushort_as_half(in[3 * k + 1])) +
                        __half2float(__ushort_as_half(in[3 * k + 2]));
        double near = (double)e; /* 24 bits and tiny ones: odd by hand */

        if ((long double)near == e)
            near += 0;
        else
            near = (double)e + ((long double)near < e ? 1 : -1) * 0x1p-40;
        bad += gh[k] != nearest(hv, near);
        bad += gh[k] != __half_as_ushort(__hfma(
                            __ushort_as_half(in[3 * k]),
                            __ushort_as_half(in[3 * k + 1]),
                            __ushort_as_half(in[3 * k + 2])));
    }
    EXPECT(bad == 0);
    EXPECT(__bfloat16_as_ushort(__hfma(CUDART_ONE_BF16, CUDART_ONE_BF16,
                                       __float2bfloat16(0x1p-8f))) == 0x3f80);
    EXPECT(__bfloat16_as_ushort(
               __hfma(__ushort_as_bfloat16(0x3f81), CUDART_ONE_BF16,
                      __float2bfloat16(0x1p-8f + 0x1p-30f))) == 0x3f82);
}

/* Roundings, integers, comparisons, pairs: one lane writes what it sees. */
__global__ void
words(float *o)
{
    __half one = CUDART_ONE_FP16, nan = CUDART_NAN_FP16;
    __half2 p = __floats2half2_rn(1.5f, -2.5f), q = __half2half2(one);
    int k = 0;

    o[k++] = __half2float(__float2half_rz(-1.0009f));
    o[k++] = __half2float(__float2half_rd(-1.0009f));
    o[k++] = __half2float(__float2half_ru(1e-10f));
    o[k++] = __half2float(__float2half_rd(1e10f));
    o[k++] = (float)__half2int_rn(__float2half(2.5f));
    o[k++] = (float)__half2short_rz(CUDART_INF_FP16);
    o[k++] = (float)__half2uint_ru(__float2half(-3.f));
    o[k++] = (float)__half2ushort_rd(__float2half(7.9f));
    o[k++] = __half2float(__int2half_rz(65519));
    o[k++] = __bfloat162float(__int2bfloat16_rn(0x1010001));
    o[k++] = __bfloat162float(__ull2bfloat16_ru(~0ull));
    o[k++] = __hbeq2(p, p) + 2 * __hbne2(p, q) + 4 * __hbgt2(p, q);
    o[k++] = __hequ(one, nan) + 2 * __heq(one, nan) + 4 * __hltu(nan, one);
    o[k++] = (float)(__hlt2_mask(p, q) >> 16);
    o[k++] = __half2float(__hmax_nan(one, nan)) != 0;
    o[k++] = __half2float(__hmax(one, nan));
    o[k++] = __high2float(__hfma2_relu(p, q, q));
    o[k++] = __low2float(__hadd2_sat(p, q));
    o[k++] = __high2float(__lowhigh2highlow(p));
    o[k++] = __low2float(__highs2half2(p, q));
    o[k++] = __half2float(__ldcs((const __half *)&one));
    __nv_fp8x4_e4m3 four(make_float4(1, 2, -3, 500));
    float4 back = (float4)four;
    o[k++] = back.x + back.y * 10 + back.z * 100 + back.w * 1000;
    o[k++] = __low2float((__half2)__nv_fp8x2_e5m2(p));
    o[k++] = (float)(int)__nv_fp8_e4m3(-17.0f);
    o[k++] = (float)__half2uchar_rz(__float2half(300.f)) + __half2char_rz(__float2half(-7.9f));
    o[k++] = (float)__bfloat162char_rz(__float2bfloat16(-300.f)) +
             __bfloat162uchar_rz(__float2bfloat16(-1.f));
    o[k] = (float)one++;
    o[k] += 10 * (float)one--;
    o[k] += 100 * __high2float(p++);
    o[k++] += 1000 * __high2float(--p);
}
static void
all_words()
{
    static const float want[] = {
        -1, -1.0009765625f, 0x1p-24f, 65504, 2, 32767, 0, 7, 65504,
        0x1p24f + 0x20000, 0x1p64f, 3, 5, 65535, 1, 1, 0, 1, 1.5f, -2.5f, 1,
        1 + 20 - 300 + 448000, 1.5f, -16, 255 - 7, -128, 1 + 20 - 250 - 2500};
    Dev<float> o(std::vector<float>(27, -99.f));

    words<<<1, 1>>>(o.p);
    std::vector<float> got = o.get();
    for (int k = 0; k < 27; k++)
        if (got[k] != want[k]) {
            fprintf(stderr, "word %d: %g, not %g\n", k, got[k], want[k]);
            failures++;
        }
}

/* They are copied as numbers are, by the bits; volatile ones are read. */
static void
copies()
{
    static_assert(std::is_trivially_copyable<__half2>::value, "half");
    static_assert(std::is_trivially_copyable<__nv_bfloat162>::value, "bf16");
    const volatile __half h = __float2half(1.5f);
    volatile __nv_bfloat16 b = __float2bfloat16(-2.5f);

    if ((float)__half(h) != 1.5f || (float)__nv_bfloat16(b) != -2.5f) {
        fprintf(stderr, "copies: %g, %g\n", (float)__half(h),
                (float)__nv_bfloat16(b));
        failures++;
    }
}

int
main()
{
    copies();
    conversions();
    fused();
    all_words();
    return done();
}
