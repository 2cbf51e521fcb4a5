/* emu.h - the CUDA words of kernels/cuda/device.cuh, for a machine without a
 * GPU.
 *
 * Put before a kernel by `g++ -include`, it takes device.cuh's place: every
 * thread of a launch is a fiber (emu_core.c), a word that waits for others (a
 * barrier, a shuffle, a poll) lets the next fiber run. So what is tested is
 * the kernel's own text: indices, fragments, protocol, deadlocks. What is not:
 * weak memory order, speed, and how the real tensor core rounds inside a sum.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_EMU_H
#define BR_EMU_H
#define BR_DEVICE_CUH /* that header then says nothing */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

/* ---- emu_core.c --------------------------------------------------------- */

struct emu_bar {
    volatile u32 count, gen;
};
enum { EMU_WORDS = 12 }; /* of a lane's, at once */
struct emu_warp { /* values of a collective, of this one and the one before */
    struct emu_bar bar;
    u32 v[2][32][EMU_WORDS];
};
struct emu_block {
    unsigned char *shared, *own; /* dynamic; declared */
    struct emu_bar bar[16];
    struct emu_warp warp[32];
};
struct emu_fiber {
    void *sp;
    struct emu_block *block;
    struct emu_block *cluster; /* its first block */
    struct emu_bar *cluster_bar;
    u32 cluster_size, cluster_gen;
    int cluster_met;          /* it has waited for all of the cluster */
    const volatile u32 *wait; /* asleep while *wait == old */
    u32 old, tid, bid, bid_y, block_dim, grid_dim;
    int done;
};
#ifdef __cplusplus
extern "C" {
#endif
extern struct emu_fiber *emu_me;
void emu_yield(void);
void emu_trap(void);
void emu_arrive(struct emu_bar *b, u32 n); /* returns when n have */
void emu_pass(struct emu_bar *b, u32 n);   /* returns at once */
void emu_cluster_arrive(void);
void emu_call(const void *kernel, void **params); /* emu_kernels.cc */
const char *emu_has(const char *kernel);          /* the same name, for ever */
const void *emu_find(const char *kernel);         /* what emu_call takes */
size_t emu_size(const char *kernel); /* bytes of its only parameter, or 0 */
void cudaGraphSetConditional(unsigned long long handle, unsigned value);
#ifdef __cplusplus
}

/* ---- words -------------------------------------------------------------- */

#    define __device__
#    define __global__
#    define __shared__ /* of the block at hand: emu_core.c changes them */ \
        static __attribute__((section("emu_shared")))
#    define __constant__ __attribute__((visibility("default")))
#    define __launch_bounds__(...)
#    define BR_DEV              static inline
#    define BR_MEMBER           inline
#    define SET_REGISTERS(d, n) (void)0
#    define LOG2E               1.4426950408889634f

struct u32x2 {
    u32 x, y;
};
struct alignas(16) u32x4 {
    u32 x, y, z, w;
};
struct u64x2 {
    u64 x, y;
};

BR_DEV u32
tid(void)
{
    return emu_me->tid;
}
BR_DEV u32
bid(void)
{
    return emu_me->bid;
}
BR_DEV u32
tid_again(void)
{
    return emu_me->tid;
}
BR_DEV u32
bid_again(void)
{
    return emu_me->bid;
}
BR_DEV u32
bid_y(void)
{
    return emu_me->bid_y;
}
BR_DEV u32
block_dim(void)
{
    return emu_me->block_dim;
}
BR_DEV u32
grid_dim(void)
{
    return emu_me->grid_dim;
}
BR_DEV u32
min_u32(u32 a, u32 b)
{
    return a < b ? a : b;
}
BR_DEV u32
opaque_one(void)
{
    return 1;
}
#    define HERE(v) (void)(v)
BR_DEV u64
clock_cycles(void)
{
    return 0;
}
BR_DEV u64
now_ns(void)
{
    return 0;
}
BR_DEV unsigned char *
dyn_shared(void)
{
    return emu_me->block->shared;
}
BR_DEV void
trap(void)
{
    emu_trap();
}

BR_DEV float
as_f32(u32 u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}
BR_DEV u32
as_u32(float f)
{
    u32 u;
    memcpy(&u, &f, 4);
    return u;
}
BR_DEV float
bf16_lo(u32 p)
{
    return as_f32(p << 16);
}
BR_DEV float
bf16_hi(u32 p)
{
    return as_f32(p & 0xffff0000u);
}
BR_DEV u32
emu_bf16(float f)
{
    u32 u = as_u32(f);
    return f != f ? 0x7fffu : (u + 0x7fffu + (u >> 16 & 1)) >> 16;
}
BR_DEV u32
pack_bf16(float lo, float hi)
{
    return emu_bf16(lo) | emu_bf16(hi) << 16;
}
BR_DEV float
fma_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
BR_DEV float
add_rn(float a, float b)
{
    return a + b;
}
BR_DEV float
mul_rn(float a, float b)
{
    return a * b;
}
BR_DEV float
sqrt_rn(float x)
{
    return sqrtf(x);
}
BR_DEV float
rint_f32(float x)
{
    return rintf(x);
}
BR_DEV i32
dp4a(u32 a, u32 b, i32 c)
{
    for (u32 i = 0; i < 32; i += 8)
        c += (i32)(signed char)(a >> i) * (i32)(signed char)(b >> i);
    return c;
}
BR_DEV float
ex2(float x)
{
    return exp2f(x);
}
BR_DEV float
rcp(float x)
{
    return 1.0f / x;
}
BR_DEV float
rsqrt_fast(float x)
{
    return 1.0f / sqrtf(x);
}
BR_DEV float
abs_f32(float x)
{
    return fabsf(x);
}
BR_DEV float
max_f32(float a, float b)
{
    return fmaxf(a, b);
}
BR_DEV float
emu_f16(u32 h)
{
    const u32 s = (h & 0x8000) << 16, u = (h & 0x7fff) << 13;
    const float v = as_f32(u) * 0x1p112f; /* exact, subnormals too */
    return as_f32(s | (u < 0x0f800000 ? as_u32(v) : u | 0x7f800000));
}
BR_DEV float
f16_lo(u32 p)
{
    return emu_f16(p & 0xffff);
}
BR_DEV float
f16_hi(u32 p)
{
    return emu_f16(p >> 16);
}
BR_DEV u32
f16_of(float x)
{
    const u32 u = as_u32(x), e = u >> 23 & 255, sign = u >> 16 & 0x8000;
    u32 r;

    if (x != x)
        return 0x7fff;
    if (fabsf(x) >= 65520.0f)
        return sign | 0x7c00;
    if (e < 113) /* subnormal: so many 2^-24 */
        return sign | (u32)lrintf(fabsf(x) * 0x1p24f);
    r = (u & 0x7fffffff) - (112u << 23);
    return sign | (r + 0xfff + (r >> 13 & 1)) >> 13;
}
BR_DEV u32
pack_f16(float lo, float hi)
{
    return f16_of(lo) | f16_of(hi) << 16;
}
BR_DEV u32
sub_f16x2(u32 a, u32 b)
{
    return pack_f16(f16_lo(a) - f16_lo(b), f16_hi(a) - f16_hi(b));
}
BR_DEV u32
fma_f16x2(u32 a, u32 b, u32 c)
{
    return pack_f16(fmaf(f16_lo(a), f16_lo(b), f16_lo(c)),
                    fmaf(f16_hi(a), f16_hi(b), f16_hi(c)));
}
BR_DEV i32
rint_s32(float x)
{
    return (i32)lrintf(x);
}
BR_DEV u32
prmt(u32 a, u32 b, u32 sel)
{
    u64 v = (u64)b << 32 | a;
    u32 r = 0;
    for (u32 i = 0; i < 4; i++)
        r |= (u32)(v >> (sel >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return r;
}

/* brass_math.h's */
#    define __nvvm_add_rn_d(a, b)    ((a) + (b))
#    define __nvvm_mul_rn_d(a, b)    ((a) * (b))
#    define __nvvm_fma_rn_d(a, b, c) fma((a), (b), (c))
#    define __nvvm_sqrt_rn_d(a)      sqrt(a)
BR_DEV double
add_f64(double a, double b)
{
    return a + b;
}
BR_DEV double
sub_f64(double a, double b)
{
    return a - b;
}
BR_DEV double
mul_f64(double a, double b)
{
    return a * b;
}
BR_DEV double
div_f64(double a, double b)
{
    return a / b;
}
BR_DEV double
as_f64(u64 u)
{
    double f;
    memcpy(&f, &u, 8);
    return f;
}
BR_DEV i32
f64_to_s32(double x)
{
    return (i32)x;
}
BR_DEV u64
f64_to_u64(double x)
{
    return (u64)x;
}
BR_DEV u64
mul_hi64(u64 a, u64 b)
{
    return (u64)((unsigned __int128)a * b >> 64);
}

/* ---- warps, blocks ------------------------------------------------------ */

/* n words of every lane of this warp, seen by all; valid until the next but
 * one collective. */
BR_DEV u32 (*emu_share(const u32 *v, u32 n))[EMU_WORDS]
{
    struct emu_warp *w = &emu_me->block->warp[emu_me->tid / 32];
    u32(*all)[EMU_WORDS] = w->v[w->bar.gen & 1];

    memcpy(all[emu_me->tid % 32], v, n * 4);
    emu_arrive(&w->bar, 32);
    return all;
}
BR_DEV u32
shfl_xor(u32 v, u32 m)
{
    return emu_share(&v, 1)[(tid() % 32) ^ m][0];
}
BR_DEV float
shfl_xor_f(float v, u32 m)
{
    return as_f32(shfl_xor(as_u32(v), m));
}
BR_DEV u32
shfl_from(u32 v, u32 lane)
{
    return emu_share(&v, 1)[lane][0];
}
BR_DEV u32
ballot(bool yes)
{
    const u32 v = yes;
    const auto all = emu_share(&v, 1);
    u32 r = 0;

    for (u32 i = 0; i < 32; i++)
        r |= all[i][0] << i;
    return r;
}
BR_DEV u32
lowest_bit(u32 v)
{
    return (u32)__builtin_ctz(v);
}
BR_DEV void
warp_sync(void)
{
    emu_share(nullptr, 0);
}
BR_DEV void
bar(u32 id, u32 n)
{
    emu_arrive(&emu_me->block->bar[id], n);
}

BR_DEV void
bar_arrive(u32 id, u32 n)
{
    emu_pass(&emu_me->block->bar[id], n);
}

/* ---- memory ------------------------------------------------------------- */

BR_DEV u32
smem_of(const void *p)
{
    return (u32)((const unsigned char *)p - dyn_shared());
}
template <class T>
BR_DEV T
emu_load(const void *p)
{
    T v;
    if ((uintptr_t)p % sizeof v)
        abort(); /* misaligned: the device would fault */
    memcpy(&v, p, sizeof v);
    return v;
}
BR_DEV u32x4
lds128(u32 a)
{
    return emu_load<u32x4>(dyn_shared() + a);
}
BR_DEV u32x2
lds64(u32 a)
{
    return emu_load<u32x2>(dyn_shared() + a);
}
BR_DEV void
lds64_if(u32x2 *r, u32 a, bool yes)
{
    if (yes)
        *r = lds64(a);
}
BR_DEV u32
lds32(u32 a)
{
    return emu_load<u32>(dyn_shared() + a);
}
BR_DEV u32
lds16(u32 a)
{
    return emu_load<u16>(dyn_shared() + a);
}
BR_DEV void
sts32(u32 a, u32 v)
{
    memcpy(dyn_shared() + a, &v, 4);
}
BR_DEV void
sts16(u32 a, u32 v)
{
    u16 h = (u16)v;
    memcpy(dyn_shared() + a, &h, 2);
}
BR_DEV void
sts128(u32 a, u32x4 v)
{
    if (a % 16)
        abort();
    memcpy(dyn_shared() + a, &v, 16);
}
BR_DEV u64
ld_relaxed64(const u64 *p)
{
    emu_yield();
    return emu_load<u64>(p);
}
BR_DEV u32
ld_relaxed32(const u32 *p)
{
    emu_yield();
    return emu_load<u32>(p);
}
BR_DEV u64x2
ld_relaxed64x2(const u64 *p)
{
    emu_yield();
    if ((uintptr_t)p % 16)
        abort();
    return emu_load<u64x2>(p);
}
BR_DEV u32x4
ld_relaxed128(const void *p)
{
    return emu_load<u32x4>(p);
}
BR_DEV u32x4
ld_word(const u32x4 *p)
{
    emu_yield();
    return emu_load<u32x4>(p);
}
BR_DEV void
st_word(u32x4 *p, u32x4 v)
{
    if ((uintptr_t)p % 16)
        abort();
    *p = v;
}
BR_DEV void
st_relaxed64(u64 *p, u64 v)
{
    *p = v;
}
BR_DEV void
red_relaxed_add(u32 *p, u32 v)
{
    *p += v;
}
BR_DEV u32
add_relaxed32(u32 *p, u32 v)
{
    *p += v;
    return *p - v;
}
BR_DEV u32
atom_add32(u32 *p, u32 v)
{
    const u32 was = *p;
    *p += v;
    return was;
}
BR_DEV void
red_add64(u64 *p, u64 v)
{
    *p += v;
}
BR_DEV void
red_max64(u64 *p, u64 v)
{
    *p = v > *p ? v : *p;
}
BR_DEV void
sts_add64(u64 *p, u64 v)
{
    *p += v;
}
BR_DEV u32
sts_take32(u32 *p, u32 v)
{
    *p += v;
    return *p - v;
}
BR_DEV void
copy16(u32 to, const void *from)
{
    if (to % 16 || (uintptr_t)from % 16)
        abort();
    memcpy(dyn_shared() + to, from, 16);
}
BR_DEV void
copy16_once(u32 to, const void *from)
{
    copy16(to, from);
}
BR_DEV void
copies_wait(void)
{
}
BR_DEV void
copies_end(void)
{
}
template <u32 N>
BR_DEV void
copies_wait_but(void)
{
}
BR_DEV void
fence_shared(void)
{
}
BR_DEV u32x4
ld_system128(const void *p) /* its halves are written by themselves */
{
    const u64 *q = (const u64 *)p;
    const u64 a = __atomic_load_n(q, __ATOMIC_ACQUIRE);
    const u64 b = __atomic_load_n(q + 1, __ATOMIC_ACQUIRE);

    emu_yield();
    return u32x4{(u32)a, (u32)(a >> 32), (u32)b, (u32)(b >> 32)};
}
BR_DEV void
st_system64(u64 *p, u64 v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
BR_DEV void
fence_system(void)
{
}
BR_DEV void
fence_gpu(void)
{
}
BR_DEV void
fence_copies(void)
{
}
BR_DEV void
fence_mbar_init(void)
{
}

/* An mbarrier: arrivals missing, arrivals of a round, bytes missing, round. */
struct emu_mbar {
    u16 missing, count;
    i32 bytes : 31;
    u32 round : 1;
};
static_assert(sizeof(struct emu_mbar) == 8, "a word of 64 bits");
BR_DEV struct emu_mbar *
emu_mbar_at(u32 a)
{
    return (struct emu_mbar *)(dyn_shared() + a);
}
BR_DEV void
emu_mbar_settle(struct emu_mbar *b)
{
    if (b->missing == 0 && b->bytes == 0) {
        b->missing = b->count;
        b->round ^= 1;
    }
}
BR_DEV void
mbar_init(u32 a, u32 count)
{
    *emu_mbar_at(a) = {(u16)count, (u16)count, 0, 0};
}
BR_DEV void
mbar_arrive(u32 a, u32 n)
{
    if (emu_mbar_at(a)->missing < n)
        abort();
    emu_mbar_at(a)->missing -= n;
    emu_mbar_settle(emu_mbar_at(a));
}
BR_DEV void
copies_arrive(u32 a) /* copies are there at once */
{
    mbar_arrive(a, 1);
}
BR_DEV void
mbar_expect(u32 a, u32 bytes)
{
    emu_mbar_at(a)->bytes += (i32)bytes;
    mbar_arrive(a, 1);
}
BR_DEV bool
mbar_try(u32 a, u32 parity)
{
    if (emu_mbar_at(a)->round == parity)
        emu_yield();
    return emu_mbar_at(a)->round != parity;
}
BR_DEV bool
mbar_test(u32 a, u32 parity)
{
    return emu_mbar_at(a)->round != parity;
}
BR_DEV u64
policy_evict_first(void)
{
    return 0;
}
BR_DEV void
bulk_copy(u32 dst, const void *src, u32 bytes, u32 a, u64 policy)
{
    (void)policy;
    memcpy(dyn_shared() + dst, src, bytes);
    emu_yield(); /* it is there before the barrier says so */
    emu_mbar_at(a)->bytes -= (i32)bytes;
    emu_mbar_settle(emu_mbar_at(a));
}

BR_DEV void
bulk_copy_kept(u32 dst, const void *src, u32 bytes, u32 a)
{
    bulk_copy(dst, src, bytes, a, 0);
}
BR_DEV void
bulk_call(const void *p, u32 bytes)
{
    const volatile u8 *at = (const volatile u8 *)p;

    (void)at[0], (void)at[bytes - 1]; /* they are there to be read */
}
/* ---- clusters ------------------------------------------------------------- */

BR_DEV u32
cluster_rank(void)
{
    return (u32)(emu_me->block - emu_me->cluster);
}
BR_DEV void
cluster_arrive(void)
{
    emu_me->cluster_gen = emu_me->cluster_bar->gen;
    emu_cluster_arrive();
}
BR_DEV void
cluster_wait(void)
{
    while (emu_me->cluster_bar->gen == emu_me->cluster_gen)
        emu_yield();
    emu_me->cluster_met = 1;
}
/* The block is in the topmost byte. */
BR_DEV u32
shared_of(u32 a, u32 rank)
{
    if (rank >= emu_me->cluster_size)
        abort();
    return a | (rank + 1) << 24;
}
BR_DEV struct emu_block *
emu_far(u32 a)
{
    if (!emu_me->cluster_met) /* is the other block there? */
        abort();
    return emu_me->cluster + (a >> 24) - 1;
}
BR_DEV float
lds_far(u32 a)
{
    float r;
    memcpy(&r, emu_far(a)->shared + (a & 0xffffff), 4);
    return r;
}
BR_DEV u32
cluster_blocks(void)
{
    return emu_me->cluster_size;
}
BR_DEV void
send128(u32 a, u32x4 v, u32 bar_addr)
{
    struct emu_mbar *b =
        (struct emu_mbar *)(emu_far(bar_addr)->shared + (bar_addr & 0xffffff));

    /* without a cluster the device has no such instruction */
    if (a % 16 || emu_me->cluster_size < 2 || emu_far(a) != emu_far(bar_addr))
        abort();
    memcpy(emu_far(a)->shared + (a & 0xffffff), &v, 16);
    emu_yield(); /* it is there before the barrier says so */
    b->bytes -= 16;
    emu_mbar_settle(b);
}
BR_DEV bool
mbar_try_sent(u32 a, u32 parity)
{
    return mbar_try(a, parity);
}
BR_DEV void
grid_wait(void)
{
}
BR_DEV void
grid_go(void)
{
}

#    include "emu_tensor.h"

#endif
#endif
