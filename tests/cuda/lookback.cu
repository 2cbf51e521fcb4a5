/* lookback.cu - prefix sums in one pass: a block waits for what the blocks
 * before it have published, and takes its number when it starts, so that those
 * have started too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { SIZE = 128 };
enum : unsigned long long { NONE, OWN, ALL }; /* in the upper half of a state */

__device__ unsigned next_block;

__global__ void
prefix(const int *in, int *out, int n, volatile unsigned long long *state)
{
    __shared__ int warp[SIZE / 32], before;
    __shared__ unsigned number;
    int lane = threadIdx.x % 32, v, sum;

    if (threadIdx.x == 0)
        number = atomicAdd(&next_block, 1);
    __syncthreads();
    int i = number * SIZE + threadIdx.x;
    v = i < n ? in[i] : 0;
    for (int by = 1; by < 32; by *= 2) {
        int from = __shfl_up_sync(0xffffffff, v, by);

        if (lane >= by)
            v += from;
    }
    if (lane == 31)
        warp[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0, left = 0;

        for (int k = 0; k < SIZE / 32; k++) {
            int mine = warp[k];

            warp[k] = total;
            total += mine;
        }
        state[number] = (number ? OWN : ALL) << 32 | (unsigned)total;
        __threadfence();
        for (int k = (int)number - 1; k >= 0; k--) {
            unsigned long long s;

            while ((s = state[k]) >> 32 == NONE)
                ;
            left += (int)(unsigned)s;
            if (s >> 32 == ALL)
                break;
        }
        state[number] = ALL << 32 | (unsigned)(left + total);
        before = left;
    }
    __syncthreads();
    sum = before + warp[threadIdx.x / 32] + v;
    if (i < n)
        out[i] = sum;
}

int
main()
{
    const int n = 3000, blocks = (n + SIZE - 1) / SIZE;
    std::vector<int> in(n);
    unsigned zero = 0;
    int sum = 0;

    for (int &x : in)
        x = (int)(rnd() * 100) - 40;
    Dev<int> d(in), out(n);
    Dev<unsigned long long> state(std::vector<unsigned long long>(blocks, 0));

    CHECK(cudaMemcpyToSymbol(next_block, &zero, sizeof zero));
    prefix<<<blocks, SIZE>>>(d, out, n, state);
    std::vector<int> got = out.get();
    for (int i = 0; i < n; i++) {
        sum += in[i];
        EXPECT(got[i] == sum);
    }
    return done();
}
