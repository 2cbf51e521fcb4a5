/* workspace.cu - what NVIDIA's driver has ready for cooperative groups, as nvcc's headers
 * ask for it in PTX: the barrier of a grid, and shared memory for tiles of several warps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { BLOCKS = 6, N = 64, ROUNDS = 4, BYTES = 288 };

__device__ static unsigned *
grid_barrier()
{
    unsigned high, low;

    asm("mov.u32 %0, %%envreg1;" : "=r"(high));
    asm("mov.u32 %0, %%envreg2;" : "=r"(low));
    return (unsigned *)((unsigned long long)high << 32 | low);
}

/* The last that comes turns the highest bit. */
__device__ static void
sync_grid()
{
    unsigned *const barrier = grid_barrier() + 1;
    unsigned was, now;

    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned mine = blockIdx.x == 0 ? 0x80000000 - (gridDim.x - 1) : 1;

        asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;"
                     : "=r"(was) : "l"(barrier), "r"(mine) : "memory");
        do
            asm volatile("ld.acquire.gpu.u32 %0, [%1];"
                         : "=r"(now) : "l"(barrier) : "memory");
        while (!((was ^ now) & 0x80000000));
    }
    __syncthreads();
}

__global__ void
rounds(int *a, unsigned *bytes)
{
    const unsigned i = blockIdx.x * N + threadIdx.x;

    if (i == 0)
        *bytes = *grid_barrier();
    for (int r = 0; r < ROUNDS; r++) {
        const int next = a[(i + 1) % (BLOCKS * N)];

        sync_grid();
        a[i] = next + 1;
        sync_grid();
    }
}

/* Nobody else's: not static, not dynamic shared memory. */
__global__ void
reserved(int *bad)
{
    __shared__ unsigned own[N];
    extern __shared__ unsigned more[];
    unsigned at, v;

    own[threadIdx.x] = more[threadIdx.x] = threadIdx.x;
    asm("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(at));
    for (unsigned k = threadIdx.x * 4; k < BYTES; k += N * 4)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at + k), "r"(k + 1000) : "memory");
    __syncthreads();
    for (unsigned k = threadIdx.x * 4; k < BYTES; k += N * 4) {
        asm volatile("ld.shared.u32 %0, [%1];"
                     : "=r"(v) : "r"(at + (BYTES - 4 - k)) : "memory");
        if (v != BYTES - 4 - k + 1000)
            atomicAdd(bad, 1);
    }
    if (own[threadIdx.x] != threadIdx.x || more[threadIdx.x] != threadIdx.x)
        atomicAdd(bad, 1);
}

int
main()
{
    std::vector<int> a(BLOCKS * N);
    Dev<unsigned> bytes(1);
    Dev<int> bad(std::vector<int>(1, 0));

    for (int k = 0; k < BLOCKS * N; k++)
        a[k] = k;
    Dev<int> d(a);
    void *args[] = {&d.p, &bytes.p};
    for (int launch = 0; launch < 2; launch++)
        CHECK(cudaLaunchCooperativeKernel((const void *)rounds, dim3(BLOCKS), dim3(N), args,
                                          0, 0));
    a = d.get();
    for (int k = 0; k < BLOCKS * N; k++)
        EXPECT(a[k] == (k + 2 * ROUNDS) % (BLOCKS * N) + 2 * ROUNDS);
    EXPECT(bytes.get()[0] == 8);
    reserved<<<3, N, N * sizeof(unsigned)>>>(bad.p);
    EXPECT(bad.get()[0] == 0);
    return done();
}
