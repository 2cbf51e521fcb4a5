/* clocks.cu - a kernel that waits by its clock, at the rate that the device says,
 * and the lanes that read it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <chrono>

__global__ void wait(long long *took, int *apart, long long ticks)
{
    long long from = clock64(), now = from;
    unsigned low = (unsigned)clock();

    while (now - from < ticks)
        now = clock64();
    took[threadIdx.x] = now - from;
    apart[threadIdx.x] = from != __shfl_sync(~0u, from, 5) ||
                         (unsigned)clock() - low < (unsigned)ticks;
}

__global__ void nanoseconds(long long *took, long long ns)
{
    unsigned long long from, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(from));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - from < ns);
    *took = now - from;
}

static double ms_since(std::chrono::steady_clock::time_point t)
{
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now() - t)
        .count();
}

int main()
{
    Dev<long long> took(32);
    Dev<int> apart(32);
    int khz;

    CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    wait<<<1, 32>>>(took, apart, 0); /* is compiled */
    CHECK(cudaDeviceSynchronize());

    auto t = std::chrono::steady_clock::now();
    wait<<<1, 32>>>(took, apart, 20LL * khz);
    CHECK(cudaDeviceSynchronize());
    double ms = ms_since(t);

    EXPECT(ms >= 20 && ms < 2000);
    for (long long v : took.get())
        EXPECT(v >= 20LL * khz && v == took.get()[0]);
    for (int v : apart.get())
        EXPECT(!v);

    t = std::chrono::steady_clock::now();
    nanoseconds<<<1, 1>>>(took, 20000000);
    CHECK(cudaDeviceSynchronize());
    ms = ms_since(t);
    EXPECT(ms >= 20 && ms < 2000);
    return done();
}
