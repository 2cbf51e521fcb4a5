/* atomics.cu - cuda::atomic, cuda::atomic_ref, semaphores and latches of libcu++;
 * __nv_atomic_ functions; what is not there between processes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cuda/atomic>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda/std/atomic>

enum { BLOCKS = 24, THREADS = 96, ALL = BLOCKS * THREADS };

struct Counts {
    cuda::atomic<int, cuda::thread_scope_device> up;
    cuda::std::atomic<unsigned long long> wide;
    cuda::atomic<float> sum;
    cuda::atomic<double> exact;
    cuda::atomic<unsigned char> narrow;
    cuda::atomic<int> least, most;
    cuda::atomic<float> fleast, fmost;
    cuda::atomic<unsigned> bits, turns;
    cuda::atomic<int *> place;
};

__global__ void count(Counts *c)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    c->up.fetch_add(2, cuda::memory_order_relaxed);
    c->up.fetch_sub(1, cuda::std::memory_order_acq_rel);
    c->wide += 1ull << 33;
    c->sum.fetch_add(1.0f, cuda::memory_order_relaxed);
    c->exact += 0.5;
    c->narrow++;
    c->least.fetch_min(i - 100);
    c->most.fetch_max(i);
    c->fleast.fetch_min((float)-i);
    c->fmost.fetch_max((float)i / 2);
    c->bits.fetch_or(1u << i % 32);
    c->turns ^= 1u << i % 32;
    c->place++;
}

/* A histogram by references; each old count is seen once. */
__global__ void refs(const int *in, int *bins, int *seen)
{
    __shared__ int mine[4];
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

    if (threadIdx.x < 4)
        mine[threadIdx.x] = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block>(mine[in[i]]).fetch_add(1);
    __syncthreads();
    if (threadIdx.x < 4) {
        cuda::atomic_ref<int, cuda::thread_scope_device> b(bins[threadIdx.x]);
        b += mine[threadIdx.x];
    }
    cuda::atomic_ref<int> next(seen[0]);
    seen[1 + next.fetch_add(1, cuda::memory_order_relaxed)]++;
}

struct Pair {
    int a, b;
};
/* Both halves at once: they stay equal. */
__global__ void pairs(cuda::atomic<Pair, cuda::thread_scope_device> *p)
{
    Pair was = p->load(), now;

    do {
        now.a = was.a + 1;
        now.b = was.b + 1;
    } while (!p->compare_exchange_weak(was, now, cuda::memory_order_acq_rel,
                                       cuda::memory_order_acquire));
}

/* What a block writes before its flag is there for who sees the flag. */
struct Hand {
    int data;
    cuda::atomic<int, cuda::thread_scope_device> ready;
    cuda::atomic_flag once;
    int firsts;
};
__global__ void hand(Hand *h, int *got)
{
    if (threadIdx.x)
        return;
    if (!h->once.test_and_set())
        h->firsts++;
    if (blockIdx.x == 0) {
        h->data = 4711;
        cuda::atomic_thread_fence(cuda::memory_order_release,
                                  cuda::thread_scope_device);
        h->ready.store(1, cuda::memory_order_release);
        h->ready.notify_all();
    } else {
        h->ready.wait(0, cuda::memory_order_acquire);
        got[blockIdx.x] = h->data;
    }
}

typedef cuda::counting_semaphore<cuda::thread_scope_device, 3> Sem;
struct Room {
    Sem sem;
    cuda::latch<cuda::thread_scope_device> all;
    cuda::atomic<int> inside, most;
    int after;
    __host__ __device__ Room() : sem(3), all(BLOCKS), inside(0), most(0), after(0)
    {
    }
};
__global__ void room(Room *r)
{
    if (threadIdx.x)
        return;
    r->sem.acquire();
    r->most.fetch_max(++r->inside);
    r->inside--;
    r->sem.release();
    r->all.count_down();
    if (blockIdx.x == 0) {
        r->all.wait();
        r->after = r->all.try_wait();
    }
}

/* Nothing is shared between processes, and the calls say so. */
static void between_processes()
{
    cudaIpcMemHandle_t m;
    cudaIpcEventHandle_t h;
    cudaEvent_t e;
    void *p, *q = NULL;

    CHECK(cudaMalloc(&p, 64));
    CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    memset(&m, 0, sizeof m);
    EXPECT(cudaIpcGetMemHandle(&m, p) == cudaErrorNotSupported);
    EXPECT(cudaIpcOpenMemHandle(&q, m, cudaIpcMemLazyEnablePeerAccess) ==
           cudaErrorNotSupported);
    EXPECT(cudaIpcGetEventHandle(&h, e) == cudaErrorNotSupported);
    EXPECT(cudaGetLastError() == cudaErrorNotSupported);
    EXPECT(cudaGetLastError() == cudaSuccess);
    CHECK(cudaFree(p));
}

static void counts()
{
    Counts *c;
    int base[1];

    CHECK(cudaMallocManaged(&c, sizeof *c));
    memset((void *)c, 0, sizeof *c);
    c->place = base;
    count<<<BLOCKS, THREADS>>>(c);
    CHECK(cudaDeviceSynchronize());
    EXPECT(c->up == ALL);
    EXPECT(c->wide.load() == (unsigned long long)ALL << 33);
    EXPECT(c->sum == (float)ALL && c->exact == ALL / 2.0);
    EXPECT(c->narrow == (unsigned char)ALL);
    EXPECT(c->least == -100 && c->most == ALL - 1);
    EXPECT(c->fleast == (float)(1 - ALL) && c->fmost == (ALL - 1) / 2.0f);
    EXPECT(c->bits == 0xffffffffu && c->turns == 0);
    EXPECT(c->place.load() == base + ALL);
    EXPECT(c->up.exchange(5) == ALL && c->up == 5); /* and on the host */
    EXPECT(c->sum.fetch_add(1.5f) == (float)ALL && c->sum == ALL + 1.5f);
    EXPECT(c->up.is_lock_free());
    CHECK(cudaFree(c));
}

static void references()
{
    std::vector<int> in(ALL), want(4, 0);

    for (int i = 0; i < ALL; i++)
        want[in[i] = (int)(rnd() * 4)]++;
    Dev<int> d(in), bins(std::vector<int>(4, 0)),
        seen(std::vector<int>(1 + ALL, 0));
    refs<<<BLOCKS, THREADS>>>(d, bins, seen);
    EXPECT(bins.get() == want);
    std::vector<int> s = seen.get();
    EXPECT(s[0] == ALL);
    for (int i = 1; i <= ALL; i++)
        EXPECT(s[i] == 1);
}

/* The functions of CUDA 12.8. */
struct Nv {
    unsigned up, low, high, bits, flips, turns;
    unsigned long long wide;
    float sum;
    double slow;
    short narrow;
    int ready, data, seen;
};

__global__ void nv_count(Nv *c)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x), turn;
    double was = __nv_atomic_load_n(&c->slow, __NV_ATOMIC_RELAXED);

    __nv_atomic_fetch_add(&c->up, 2, __NV_ATOMIC_RELAXED,
                          __NV_THREAD_SCOPE_DEVICE);
    __nv_atomic_sub(&c->up, 1u, __NV_ATOMIC_ACQ_REL);
    __nv_atomic_add(&c->wide, 1ull << 33, __NV_ATOMIC_RELAXED);
    __nv_atomic_fetch_add(&c->sum, 1, __NV_ATOMIC_SEQ_CST);
    __nv_atomic_min(&c->low, i + 7, __NV_ATOMIC_RELAXED);
    __nv_atomic_fetch_max(&c->high, i, __NV_ATOMIC_RELAXED);
    __nv_atomic_or(&c->bits, 1u << i % 32, __NV_ATOMIC_RELAXED);
    __nv_atomic_and(&c->flips, ~(1u << i % 32), __NV_ATOMIC_RELAXED);
    __nv_atomic_fetch_xor(&c->turns, 1u << i % 32, __NV_ATOMIC_RELAXED);
    while (!__nv_atomic_compare_exchange_n(&c->slow, &was, was + 0.5, true,
                                           __NV_ATOMIC_RELAXED,
                                           __NV_ATOMIC_RELAXED)) {
    }
    if (i == 0) {
        short to, five = 5;

        __nv_atomic_store_n(&c->narrow, -3, __NV_ATOMIC_RELAXED);
        __nv_atomic_exchange(&c->narrow, &five, &to, __NV_ATOMIC_RELAXED);
        c->data = to;
        __nv_atomic_thread_fence(__NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_BLOCK);
        turn = 1;
        __nv_atomic_store(&c->ready, &turn, __NV_ATOMIC_RELEASE);
        __nv_atomic_load(&c->ready, &turn, __NV_ATOMIC_ACQUIRE);
        c->seen = turn + (int)__nv_atomic_exchange_n(&c->ready, 9,
                                                     __NV_ATOMIC_SEQ_CST);
    }
}

static void nv_counts()
{
    Nv *c;

    CHECK(cudaMallocManaged(&c, sizeof *c));
    memset((void *)c, 0, sizeof *c);
    c->low = ~0u;
    c->flips = ~0u;
    nv_count<<<BLOCKS, THREADS>>>(c);
    CHECK(cudaDeviceSynchronize());
    EXPECT(c->up == ALL && c->wide == (unsigned long long)ALL << 33);
    EXPECT(c->sum == (float)ALL && c->slow == ALL / 2.0);
    EXPECT(c->low == 7 && c->high == ALL - 1);
    EXPECT(c->bits == ~0u && c->flips == 0 && c->turns == 0);
    EXPECT(c->narrow == 5 && c->data == -3 && c->seen == 2 && c->ready == 9);
    CHECK(cudaFree(c));
}

int main()
{
    cuda::atomic<Pair, cuda::thread_scope_device> *p;
    Hand *h;
    Room *r;

    counts();
    nv_counts();
    references();
    between_processes();
    CHECK(cudaMallocManaged(&p, sizeof *p));
    p->store(Pair{0, 0});
    pairs<<<BLOCKS, THREADS>>>(p);
    CHECK(cudaDeviceSynchronize());
    EXPECT(p->load().a == ALL && p->load().b == ALL);
    CHECK(cudaMallocManaged(&h, sizeof *h));
    memset((void *)h, 0, sizeof *h);
    Dev<int> got(std::vector<int>(BLOCKS, 0));
    hand<<<BLOCKS, 32>>>(h, got);
    std::vector<int> g = got.get();
    for (int i = 1; i < BLOCKS; i++)
        EXPECT(g[i] == 4711);
    EXPECT(h->firsts == 1);
    CHECK(cudaMallocManaged(&r, sizeof *r));
    new (r) Room;
    room<<<BLOCKS, 32>>>(r);
    CHECK(cudaDeviceSynchronize());
    EXPECT(r->most >= 1 && r->most <= 3 && r->inside == 0 && r->after == 1);
    return done();
}
