/* wide_atomics.cu - atomic operations on vectors, of sm_90, and arithmetic of two floats
 * in a register, of sm_100.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>

enum { N = 128 };

/* v4.f32 and v2.f32 of one line, what was there once; halves without it. */
__global__ void
floats(float *sum, float *was)
{
    const float t = (float)threadIdx.x;
    float4 x;
    float2 y;

    asm volatile("atom.global.v4.f32.add {%0,%1,%2,%3}, [%4], {%5,%6,%7,%8};"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "l"(sum), "f"(t), "f"(2.f), "f"(-t), "f"(0.5f) : "memory");
    asm volatile("atom.global.relaxed.gpu.add.v2.f32 {%0,%1}, [%2+16], {%3,%4};"
                 : "=f"(y.x), "=f"(y.y) : "l"(sum), "f"(1.f), "f"(3.f) : "memory");
    asm volatile("red.global.add.v2.f32 [%0+24], {%1,%2};" ::"l"(sum), "f"(t), "f"(1.f)
                 : "memory");
    was[threadIdx.x] = y.x * 3 - y.y + 1000 * (x.y - 4 * x.w) + x.x + x.z;
}

__global__ void
halves(unsigned short *h, unsigned short *b)
{
    const unsigned short one = __half_as_ushort(__float2half(1));
    const unsigned two = 0x40003c00, three = 0x40403f80; /* 1, 2 of f16; 1, 3 of bf16 */
    const unsigned short t = __half_as_ushort(__float2half((float)threadIdx.x));
    const unsigned short bt =
        __bfloat16_as_ushort(__float2bfloat16((float)threadIdx.x - 60));

    asm volatile("red.global.v2.f16.add.noftz [%0], {%1,%1};" ::"l"(h), "h"(one)
                 : "memory");
    asm volatile("red.global.add.noftz.v4.f16x2 [%0+16], {%1,%1,%1,%1};" ::"l"(h),
                 "r"(two) : "memory");
    asm volatile("red.global.max.noftz.v8.f16 [%0+32], {%1,%2,%1,%2,%1,%2,%1,%2};" ::"l"(
                     h), "h"(t), "h"(one) : "memory");
    asm volatile("red.global.add.noftz.v2.bf16x2 [%0], {%1,%1};" ::"l"(b), "r"(three)
                 : "memory");
    asm volatile("red.global.min.noftz.v4.bf16 [%0+16], {%1,%1,%1,%1};" ::"l"(b), "h"(bt)
                 : "memory");
}

/* a + b, a - b, a * b, a * b + a, and one rounded up. */
__global__ void
twice(const float2 *a, const float2 *b, float2 *out)
{
    const unsigned t = threadIdx.x;
    unsigned long long x, y, r[5];

    memcpy(&x, &a[t], 8);
    memcpy(&y, &b[t], 8);
    asm("add.f32x2 %0, %1, %2;" : "=l"(r[0]) : "l"(x), "l"(y));
    asm("sub.rn.f32x2 %0, %1, %2;" : "=l"(r[1]) : "l"(x), "l"(y));
    asm("mul.rn.ftz.f32x2 %0, %1, %2;" : "=l"(r[2]) : "l"(x), "l"(y));
    asm("fma.rn.f32x2 %0, %1, %2, %1;" : "=l"(r[3]) : "l"(x), "l"(y));
    asm("add.rp.f32x2 %0, %1, %2;" : "=l"(r[4]) : "l"(x), "l"(y));
    for (int k = 0; k < 5; k++)
        memcpy(&out[k * N + t], &r[k], 8);
}

static float
up(float a, float b)
{
    const double exact = (double)a + (double)b; /* of these numbers it is */
    const float f = (float)exact;

    return (double)f < exact ? nextafterf(f, INFINITY) : f;
}

static void
check_twice()
{
    std::vector<float2> a(N), b(N);

    for (int k = 0; k < N; k++) {
        a[k] = make_float2(rnd() * 10 - 5, rnd());
        b[k] = make_float2(rnd() + 0.1f, rnd() * 3 - 1);
    }
    Dev<float2> da(a), db(b), dout(5 * N);
    twice<<<1, N>>>(da.p, db.p, dout.p);
    std::vector<float2> r = dout.get();
    for (int k = 0; k < N; k++) {
        const float x[2] = {a[k].x, a[k].y}, y[2] = {b[k].x, b[k].y};

        for (int e = 0; e < 2; e++) {
            const float want[5] = {x[e] + y[e], x[e] - y[e], x[e] * y[e],
                                   fmaf(x[e], y[e], x[e]), up(x[e], y[e])};

            for (int n = 0; n < 5; n++)
                EXPECT((e ? r[n * N + k].y : r[n * N + k].x) == want[n]);
        }
    }
}

int
main()
{
    Dev<float> sum(std::vector<float>(8, 0.f)), was(N);
    Dev<unsigned short> h(std::vector<unsigned short>(32, 0)),
        b(std::vector<unsigned short>(32, 0));
    const float s = N * (N - 1) / 2;
    float threes = 0;

    floats<<<1, N>>>(sum.p, was.p);
    std::vector<float> f = sum.get(), w = was.get();
    EXPECT(f[0] == s && f[1] == 2 * N && f[2] == -s && f[3] == N / 2);
    EXPECT(f[4] == N && f[5] == 3 * N && f[6] == s && f[7] == N);
    for (int k = 0; k < N; k++)
        EXPECT(w[k] == 0); /* here vectors are changed in one order */
    halves<<<1, N>>>(h.p, b.p);
    std::vector<unsigned short> x = h.get(), y = b.get();
    for (int k = 0; k < 24; k++) {
        const float v = __half2float(__ushort_as_half(x[k]));

        EXPECT(v == (k < 2    ? N
                     : k < 8  ? 0
                     : k < 16 ? (k % 2 ? 2 : 1) * N
                              : (k % 2 ? 1 : N - 1)));
    }
    for (int k = 0; k < N; k++) /* every sum is rounded */
        threes = __bfloat162float(__float2bfloat16(threes + 3));
    for (int k = 0; k < 16; k++) {
        const float v = __bfloat162float(__ushort_as_bfloat16(y[k]));

        EXPECT(v == (k < 4 ? (k % 2 ? threes : N) : k >= 8 && k < 12 ? -60 : 0));
    }
    check_twice();
    return done();
}
