/* scattered.cu - several values a lane, at places that have no order: in device,
 * shared and local memory, by all lanes of a warp and by some; and what lies
 * beside them. SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <string.h>

enum { N = 1 << 10, PLACES = 3 * N };

/* Which place thread i has: none twice. */
static __host__ __device__ int place(int i)
{
    return (int)((unsigned)i * 1237u % N) * 3 + i % 3;
}

template <class T> __global__ void move(const T *in, T *out, int some)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (i % 7 < some)
        out[place(i)] = in[place((i + 5) % N)];
}

template <class T> __global__ void turn(const T *in, T *out, int by)
{
    __shared__ T tile[128];
    int t = (int)threadIdx.x;
    T own[5];

    tile[t * 37 % 128] = in[blockIdx.x * 128 + t];
    __syncthreads();
    for (int k = 0; k < 5; k++)
        own[(k + t) % 5] = tile[(t * by + k) % 128];
    if (t % 5 != 3)
        out[blockIdx.x * 128 + t] = own[(t * by) % 5];
}

template <class T, class F> static void both(F make)
{
    std::vector<T> in(PLACES), none(PLACES), got;

    memset((void *)none.data(), 0x5a, PLACES * sizeof(T));
    for (int i = 0; i < PLACES; i++)
        in[i] = make(i);
    Dev<T> d(in);
    for (int some = 7; some > 0; some -= 3) {
        std::vector<T> want = none;

        Dev<T> o(none);
        move<<<N / 64, 64>>>((const T *)d, (T *)o, some);
        for (int i = 0; i < N; i++)
            if (i % 7 < some)
                want[place(i)] = in[place((i + 5) % N)];
        got = o.get();
        EXPECT(memcmp(got.data(), want.data(), PLACES * sizeof(T)) == 0);
    }
    std::vector<T> want = none;

    Dev<T> o(none);
    turn<<<3, 128>>>((const T *)d, (T *)o, 11);
    for (int b = 0; b < 3; b++)
        for (int t = 0; t < 128; t++) {
            int k = ((t * 11 - t) % 5 + 5) % 5, at = (t * 11 + k) % 128, u = 0;

            while (u * 37 % 128 != at)
                u++;
            if (t % 5 != 3)
                want[b * 128 + t] = in[b * 128 + u];
        }
    got = o.get();
    EXPECT(memcmp(got.data(), want.data(), PLACES * sizeof(T)) == 0);
}

/* The last place of an allocation that has no neighbour behind it, and what comes
 * after the bytes that are nobody's. */
__global__ void last(const float4 *in, float4 *out, int n)
{
    int t = (int)threadIdx.x;

    out[t] = in[t == 31 ? n : t * 29 % 31];
}

static void ends()
{
    std::vector<float4> in(300);

    for (int i = 0; i < 300; i++)
        in[i] = make_float4((float)i, (float)-i, i * 0.5f, 1);
    Dev<float4> o(32), d(in);
    last<<<1, 32>>>((const float4 *)d, (float4 *)o, 299);
    EXPECT(o.get()[31].x == 299 && o.get()[31].w == 1 && o.get()[3].y == -25);
    if (getenv("BRASS_CUDA_ON")) /* a simulated GPU has pages, as others do */
        return;
    last<<<1, 32>>>((const float4 *)d, (float4 *)o, 300 + 4096 / 16);
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

int main()
{
    both<float>([](int i) { return (float)i; });
    both<float2>([](int i) { return make_float2((float)i, (float)-i); });
    both<int4>([](int i) { return make_int4(i, -i, i * i, ~i); });
    both<double>([](int i) { return i * 0.5; });
    both<double2>([](int i) { return make_double2(i * 0.5, -i); });
    both<short>([](int i) { return (short)(i * 77); });
    both<signed char>([](int i) { return (signed char)(i * 7); });
    both<uchar4>([](int i) {
        return make_uchar4((unsigned char)i, (unsigned char)(i >> 8), 3, 4);
    });
    ends();
    return done();
}
