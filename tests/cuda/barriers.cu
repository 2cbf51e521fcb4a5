/* barriers.cu - cuda::barrier, pipelines of a thread and of a block, and the
 * addresses of shared memory that PTX by hand takes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/std/array>
#include <cuda/std/type_traits>

namespace cg = cooperative_groups;
enum { N = 128, ROUNDS = 5, STAGES = 3 };

/* Each round adds what the neighbour wrote before the barrier. */
__global__ void
rounds(int *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int a[2][N];
    int t = threadIdx.x, mine = t;

    if (t == 0)
        init(&bar, N);
    __syncthreads();
    for (int r = 0; r < ROUNDS; r++) {
        a[r % 2][t] = mine;
        if (r % 2) {
            bar.arrive_and_wait();
        } else {
            auto token = bar.arrive();

            mine++; /* what needs no neighbour */
            bar.wait(std::move(token));
        }
        mine += a[r % 2][(t + 1) % N];
    }
    out[t] = mine;
}

/* A copy that the barrier hears of; the group shares it. */
__global__ void
copied(const float *in, float *out)
{
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ alignas(alignof(float4)) float a[N], b[N];
    cg::thread_block block = cg::this_thread_block();
    int t = threadIdx.x;

    if (block.thread_rank() == 0)
        init(&bar, block.size());
    block.sync();
    cuda::memcpy_async(block, a, in, sizeof a, bar);
    cuda::memcpy_async(&b[t], &in[N - 1 - t], sizeof(float), bar);
    bar.arrive_and_wait();
    out[t] = a[N - 1 - t] + b[(t + 1) % N];
}

/* Half of the block fills stages, the other half empties them. */
__global__ void
roles(const int *in, int *out, int batches)
{
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> s;
    __shared__ int stage[STAGES][N / 2];
    cg::thread_block block = cg::this_thread_block();
    bool producer = threadIdx.x < N / 2;
    int t = threadIdx.x % (N / 2), sum = 0;
    auto pipe = cuda::make_pipeline(block, &s,
                                    producer ? cuda::pipeline_role::producer
                                             : cuda::pipeline_role::consumer);

    for (int k = 0; k < batches; k++)
        if (producer) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[k % STAGES][t], &in[k * (N / 2) + t],
                               cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            sum = sum * 3 + stage[k % STAGES][N / 2 - 1 - t];
            pipe.consumer_release();
        }
    if (!producer)
        out[t] = sum;
}

/* Everybody does both, a batch ahead. */
__global__ void
ahead(const int *in, int *out, int batches)
{
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> s;
    __shared__ int stage[2][N];
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &s);
    cuda::pipeline<cuda::thread_scope_thread> own = cuda::make_pipeline();
    __shared__ int local[N];
    int t = threadIdx.x, sum = 0;

    for (int k = 0; k <= batches; k++) {
        if (k < batches) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, stage[k % 2], in + k * N, sizeof stage[0],
                               pipe);
            pipe.producer_commit();
        }
        if (k > 0) {
            pipe.consumer_wait();
            sum = sum * 3 + stage[(k - 1) % 2][N - 1 - t];
            pipe.consumer_release();
        }
    }
    own.producer_acquire();
    cuda::memcpy_async(&local[t], &sum, sizeof sum, own);
    own.producer_commit();
    cuda::pipeline_consumer_wait_prior<0>(own);
    out[t] = local[t];
}

__constant__ int offset = 1000;

/* By hand, in the windows that PTX names. */
__global__ void
by_hand(const int *in, int *out)
{
    __shared__ __align__(16) int a[N];
    int t = threadIdx.x, x, y, z, local = t * 5;
    unsigned at = (unsigned)__cvta_generic_to_shared(&a[t]);

    if (t % 4 == 0)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at),
                     "l"(__cvta_generic_to_global(in + t)));
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;");
    __syncthreads();
    at = (unsigned)__cvta_generic_to_shared(&a[(t + 1) % N]);
    asm volatile("ld.shared.s32 %0, [%1];" : "=r"(x) : "r"(at));
    asm volatile("ld.const.s32 %0, [%1];"
                 : "=r"(y)
                 : "l"(__cvta_generic_to_constant(&offset)));
    z = *(int *)__cvta_local_to_generic(__cvta_generic_to_local(&local));
    out[t] = x + y + z + *(const int *)__cvta_shared_to_generic(at);
}

/* Aligned as it asks, behind what lies there. */
__global__ void
aligned(unsigned *out)
{
    __shared__ int some[5];
    extern __shared__ alignas(256) char more[];
    cuda::std::array<unsigned, 2> none = {0, 0};
    unsigned at;

    static_assert(cuda::std::is_same<cuda::std::decay_t<const int>, int>::value,
                  "as std has it");
    some[threadIdx.x] = (int)threadIdx.x;
    more[threadIdx.x] = (char)threadIdx.x;
    __syncthreads();
    /* The compiler believes what it says, so it is not asked. */
    asm volatile("rem.u32 %0, %1, 256;"
                 : "=r"(at)
                 : "r"((unsigned)__cvta_generic_to_shared(more)));
    *out = none[1] + at + (unsigned)(some[4] + more[3]);
}

static void
check_by_hand()
{
    std::vector<int> in(N), got;
    Dev<unsigned> sum(1);
    Dev<int> out(N);
    int bad = 0;

    for (int t = 0; t < N; t++)
        in[t] = t * t - 7 * t;
    Dev<int> d(in);
    by_hand<<<1, N>>>(d, out);
    aligned<<<1, 5, 64>>>(sum);
    CHECK(cudaDeviceSynchronize());
    EXPECT(sum.get()[0] == 7);
    got = out.get();
    for (int t = 0; t < N; t++)
        bad += got[t] != 2 * in[(t + 1) % N] + 1000 + 5 * t;
    EXPECT(bad == 0);
}

static void
check_rounds()
{
    std::vector<int> want(N), before(N);
    Dev<int> out(N);

    for (int t = 0; t < N; t++)
        want[t] = t;
    for (int r = 0; r < ROUNDS; r++) {
        before = want;
        for (int t = 0; t < N; t++)
            want[t] += before[(t + 1) % N] + (r % 2 == 0);
    }
    rounds<<<3, N>>>(out);
    CHECK(cudaDeviceSynchronize());
    EXPECT(out.get() == want);
}

static void
check_copied()
{
    std::vector<float> in(N), got;
    Dev<float> out(N);
    int bad = 0;

    for (float &x : in)
        x = rnd();
    Dev<float> d(in);
    copied<<<2, N>>>(d, out);
    CHECK(cudaDeviceSynchronize());
    got = out.get();
    for (int t = 0; t < N; t++)
        bad += got[t] != in[N - 1 - t] + in[N - 1 - (t + 1) % N];
    EXPECT(bad == 0);
}

static void
check_pipelines(int batches)
{
    std::vector<int> in(N * batches), half(N / 2), whole(N);

    for (size_t k = 0; k < in.size(); k++)
        in[k] = (int)(k * 2654435761u >> 20);
    for (int k = 0; k < batches; k++) {
        for (int t = 0; t < N / 2; t++)
            half[t] = half[t] * 3 + in[k * (N / 2) + N / 2 - 1 - t];
        for (int t = 0; t < N; t++)
            whole[t] = whole[t] * 3 + in[k * N + N - 1 - t];
    }
    Dev<int> d(in), a(N / 2), b(N);
    roles<<<2, N>>>(d, a, batches);
    ahead<<<2, N>>>(d, b, batches);
    CHECK(cudaDeviceSynchronize());
    EXPECT(a.get() == half);
    EXPECT(b.get() == whole);
}

int
main()
{
    check_by_hand();
    check_rounds();
    check_copied();
    check_pipelines(1);
    check_pipelines(7);
    return done();
}
