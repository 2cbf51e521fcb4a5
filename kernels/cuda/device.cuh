/* device.cuh - what a kernel needs of CUDA, without CUDA's headers.
 *
 * The kernels build with clang (no toolkit installed) and with nvcc; both get
 * the same words from here. Everything below is PTX, one instruction a line,
 * so what the source says is what the machine does.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DEVICE_CUH
#define BR_DEVICE_CUH

#ifndef __NVCC__
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif
#define BR_DEV    static BR_MEMBER
#define BR_MEMBER __device__ inline __attribute__((always_inline))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;

/* Aligned, or a compiler loads and stores their numbers one by one. */
struct __attribute__((aligned(8))) u32x2 {
    u32 x, y;
};
struct __attribute__((aligned(16))) u32x4 {
    u32 x, y, z, w;
};

/* ---- where am I ------------------------------------------------------- */
BR_DEV u32
tid(void)
{
    u32 r;
    asm("mov.u32 %0, %%tid.x;" : "=r"(r));
    return r;
}
BR_DEV u32
bid(void)
{
    u32 r;
    asm("mov.u32 %0, %%ctaid.x;" : "=r"(r));
    return r;
}
/* The same, read anew: what is derived from it is not kept in registers from
 * before. */
BR_DEV u32
tid_again(void)
{
    u32 r;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(r)::"memory");
    return r;
}
BR_DEV u32
bid_again(void)
{
    u32 r;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(r)::"memory");
    return r;
}
BR_DEV u32
bid_y(void)
{
    u32 r;
    asm("mov.u32 %0, %%ctaid.y;" : "=r"(r));
    return r;
}
BR_DEV u32
grid_dim(void)
{
    u32 r;
    asm("mov.u32 %0, %%nctaid.x;" : "=r"(r));
    return r;
}
BR_DEV u32
block_dim(void)
{
    u32 r;
    asm("mov.u32 %0, %%ntid.x;" : "=r"(r));
    return r;
}
BR_DEV u32
min_u32(u32 a, u32 b)
{
    return a < b ? a : b;
}
/* 1, which the compiler does not know: what is multiplied by it stays a multiplication,
 * which waits for no shift or permutation. */
BR_DEV u32
opaque_one(void)
{
    u32 r;
    asm("mov.u32 %0, %%nctaid.z;" : "=r"(r));
    return r;
}
/* What v is, is found out here, not where it is used. */
#define HERE(v) asm volatile("" : "+r"(v))
BR_DEV u64
clock_cycles(void)
{
    u64 r;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(r)::"memory");
    return r;
}

/* ---- bits and numbers -------------------------------------------------- */
BR_DEV float
as_f32(u32 u)
{
    return __builtin_bit_cast(float, u);
}
BR_DEV u32
as_u32(float f)
{
    return __builtin_bit_cast(u32, f);
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
/* Four bytes of a (0-3) and b (4-7), a nibble each. */
BR_DEV u32
prmt(u32 a, u32 b, u32 sel)
{
    u32 r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(sel));
    return r;
}
/* The halves of a pair of f16. */
BR_DEV float
f16_lo(u32 p)
{
    float r;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, l; }"
        : "=f"(r)
        : "r"(p));
    return r;
}
BR_DEV float
f16_hi(u32 p)
{
    float r;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f32.f16 %0, h; }"
        : "=f"(r)
        : "r"(p));
    return r;
}
BR_DEV u32
f16_of(float x)
{
    u32 r;
    asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b32 %0, {h, 0}; }"
        : "=r"(r)
        : "f"(x));
    return r;
}
/* To the nearest integer, ties to even. */
BR_DEV i32
rint_s32(float x)
{
    i32 r;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}
/* Two f32 to bf16, nearest even; lo in the low half. */
BR_DEV u32
pack_bf16(float lo, float hi)
{
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
/* The same to f16. */
BR_DEV u32
pack_f16(float lo, float hi)
{
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
BR_DEV float
fma_rn(float a, float b, float c)
{
    float r;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
    return r;
}
BR_DEV float
add_rn(float a, float b)
{
    float r;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
BR_DEV float
mul_rn(float a, float b)
{
    float r;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
BR_DEV float
sqrt_rn(float x)
{
    float r;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
/* To a whole number, ties to even. */
BR_DEV float
rint_f32(float x)
{
    float r;
    asm("cvt.rni.f32.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
/* c + the sum of four products of signed bytes */
BR_DEV i32
dp4a(u32 a, u32 b, i32 c)
{
    i32 r;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
BR_DEV float
ex2(float x)
{
    float r;
    asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
BR_DEV float
rcp(float x)
{
    float r;
    asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
BR_DEV float
rsqrt_fast(float x)
{
    float r;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
BR_DEV float
max_f32(float a, float b)
{
    float r;
    asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
BR_DEV float
abs_f32(float x)
{
    return as_f32(as_u32(x) & 0x7fffffffu);
}
/* Doubles, one rounding each. */
#define F64_OP(name, op)                                            \
    BR_DEV double name(double a, double b)                          \
    {                                                               \
        double r;                                                   \
        asm(#op ".rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));  \
        return r;                                                   \
    }
F64_OP(add_f64, add)
F64_OP(sub_f64, sub)
F64_OP(mul_f64, mul)
F64_OP(div_f64, div)
BR_DEV double
as_f64(u64 u)
{
    return __builtin_bit_cast(double, u);
}
/* Towards zero. */
BR_DEV i32
f64_to_s32(double x)
{
    i32 r;
    asm("cvt.rzi.s32.f64 %0, %1;" : "=r"(r) : "d"(x));
    return r;
}
BR_DEV u64
f64_to_u64(double x)
{
    u64 r;
    asm("cvt.rzi.u64.f64 %0, %1;" : "=l"(r) : "d"(x));
    return r;
}
BR_DEV u64
mul_hi64(u64 a, u64 b)
{
    u64 r;
    asm("mul.hi.u64 %0, %1, %2;" : "=l"(r) : "l"(a), "l"(b));
    return r;
}
#define LOG2E 1.4426950408889634f

/* ---- warps and blocks --------------------------------------------------- */
BR_DEV u32
shfl_xor(u32 v, u32 m)
{
    u32 r;
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=r"(r)
                 : "r"(v), "r"(m));
    return r;
}
BR_DEV float
shfl_xor_f(float v, u32 m)
{
    return as_f32(shfl_xor(as_u32(v), m));
}
BR_DEV u32
shfl_from(u32 v, u32 lane)
{
    u32 r;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=r"(r)
                 : "r"(v), "r"(lane));
    return r;
}
/* Lanes in which it holds; the lowest of those. */
BR_DEV u32
ballot(bool yes)
{
    u32 r;
    asm volatile("{ .reg .pred p;\n"
                 "setp.ne.b32 p, %1, 0;\n"
                 "vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                 : "=r"(r)
                 : "r"((u32)yes));
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
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}
/* Named barrier over n threads: the loader warp takes no part in barrier 1.
 * BR_PORTABLE, for other processors than NVIDIA's: all threads, one barrier. */
BR_DEV void
bar(u32 id, u32 n)
{
#ifdef BR_PORTABLE
    (void)id, (void)n;
    asm volatile("bar.sync 0;" ::: "memory");
#else
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory");
#endif
}
#ifndef BR_PORTABLE
BR_DEV void
bar_arrive(u32 id, u32 n)
{
    asm volatile("barrier.cta.arrive %0, %1;" ::"r"(id), "r"(n) : "memory");
}
#endif

BR_DEV void
trap(void)
{
    asm volatile("trap;");
}
/* Hands registers of this group of four warps back, or takes some: dec, inc. */
#define SET_REGISTERS(how, n) \
    asm volatile("setmaxnreg." #how ".sync.aligned.u32 " #n ";")

/* ---- shared memory by address ------------------------------------------- */
/* The block's shared memory: a constant address, so no register holds it. */
extern __shared__ __attribute__((aligned(1024))) unsigned char br_shared[];
BR_DEV unsigned char *
dyn_shared(void)
{
    return br_shared;
}
/* BR_FOLD_SHARED: the compiler sees what it is, and folds sums of it into loads. */
BR_DEV u32
smem_of(const void *p)
{
#ifndef BR_FOLD_SHARED
    u64 a;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(a) : "l"(p));
    return (u32)a;
#elif defined(__NVCC__)
    return (u32)__cvta_generic_to_shared(p);
#else
    return (u32)(u64)(const __attribute__((address_space(3))) void *)p;
#endif
}
BR_DEV u32x4
lds128(u32 a)
{
    u32x4 r;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "r"(a));
    return r;
}
BR_DEV u32x2
lds64(u32 a)
{
    u32x2 r;
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];"
                 : "=r"(r.x), "=r"(r.y)
                 : "r"(a));
    return r;
}
/* Only where `yes`; else r stays as it is. */
BR_DEV void
lds64_if(u32x2 *r, u32 a, bool yes)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0;\n"
                 "@p ld.shared.v2.u32 {%0,%1}, [%2]; }"
                 : "+r"(r->x), "+r"(r->y)
                 : "r"(a), "r"((u32)yes));
}
BR_DEV void
sts32(u32 a, u32 v)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(a), "r"(v) : "memory");
}
BR_DEV void
sts16(u32 a, u32 v)
{
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(a), "h"((u16)v) : "memory");
}
BR_DEV void
sts128(u32 a, u32x4 v)
{
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(a), "r"(v.x),
                 "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
BR_DEV u32
lds32(u32 a)
{
    u32 r;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(a));
    return r;
}
BR_DEV u32
lds16(u32 a)
{
    u16 r;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(r) : "r"(a));
    return r;
}
/* ---- global memory that other blocks write ------------------------------ */
BR_DEV u64
ld_relaxed64(const u64 *p)
{
    u64 r;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                 : "=l"(r)
                 : "l"(p)
                 : "memory");
    return r;
}
BR_DEV u32
ld_relaxed32(const u32 *p)
{
    u32 r;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                 : "=r"(r)
                 : "l"(p)
                 : "memory");
    return r;
}
BR_DEV void
st_relaxed32(u32 *p, u32 v)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v)
                 : "memory");
}
BR_DEV void
red_relaxed_add(u32 *p, u32 v)
{
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v)
                 : "memory");
}
BR_DEV u32
add_relaxed32(u32 *p, u32 v) /* what was there */
{
    u32 r;
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(r)
                 : "l"(p), "r"(v)
                 : "memory");
    return r;
}
/* What was there; orders this thread's reads and writes. */
BR_DEV u32
atom_add32(u32 *p, u32 v)
{
    u32 r;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(r)
                 : "l"(p), "r"(v)
                 : "memory");
    return r;
}
BR_DEV void
red_add64(u64 *p, u64 v)
{
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"(v)
                 : "memory");
}
BR_DEV void
red_max64(u64 *p, u64 v)
{
    asm volatile("red.relaxed.gpu.global.max.u64 [%0], %1;" ::"l"(p), "l"(v)
                 : "memory");
}
/* Of shared memory. */
BR_DEV void
sts_add64(u64 *p, u64 v)
{
    asm volatile("red.shared.add.u64 [%0], %1;" ::"r"(smem_of(p)), "l"(v)
                 : "memory");
}
/* The same; what was there. */
BR_DEV u32
sts_take32(u32 *p, u32 v)
{
    u32 r;
    asm volatile("atom.shared.add.u32 %0, [%1], %2;"
                 : "=r"(r)
                 : "r"(smem_of(p)), "r"(v)
                 : "memory");
    return r;
}
struct u64x2 {
    u64 x, y;
};
BR_DEV u64x2
ld_relaxed64x2(const u64 *p)
{
    u64x2 r;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0,%1}, [%2];"
                 : "=l"(r.x), "=l"(r.y)
                 : "l"(p)
                 : "memory");
    return r;
}
BR_DEV void
st_relaxed64(u64 *p, u64 v)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v)
                 : "memory");
}
BR_DEV u32x4
ld_relaxed128(const void *p)
{
    u32x4 r;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "l"(p)
                 : "memory");
    return r;
}
/* One word of 16 bytes that others poll. */
BR_DEV u32x4
ld_word(const u32x4 *p)
{
    return ld_relaxed128(p);
}
BR_DEV void
st_word(u32x4 *p, u32x4 v)
{
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
/* Memory of the host. */
BR_DEV u32x4
ld_system128(const void *p)
{
    u32x4 r;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "l"(p)
                 : "memory");
    return r;
}
BR_DEV void
st_system64(u64 *p, u64 v)
{
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v)
                 : "memory");
}
BR_DEV void
fence_system(void)
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}
BR_DEV void
fence_gpu(void)
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* Between reads and writes of threads and those of the bulk copy engine. */
BR_DEV void
fence_copies(void)
{
    asm volatile("fence.proxy.async;" ::: "memory");
}

/* 16 bytes to shared memory; done when copies_wait returns in this thread. */
BR_DEV void
copy16(u32 to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
                 "l"(from)
                 : "memory");
}
/* The same of what nobody reads again: it is the first to leave the L2. */
BR_DEV void
copy16_once(u32 to, const void *from)
{
    asm volatile("{\n\t.reg .b64 p;\n\t"
                 "createpolicy.fractional.L2::evict_first.b64 p, 1.0;\n\t"
                 "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, p;\n\t"
                 "}" ::"r"(to),
                 "l"(from)
                 : "memory");
}
/* The copies so far are a group; until all groups but the latest N are there. */
BR_DEV void
copies_end(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <u32 N>
BR_DEV void
copies_wait_but(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
/* What this thread wrote to shared memory, for wgmma. */
BR_DEV void
fence_shared(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
BR_DEV void
copies_wait(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- mbarriers and the bulk copy engine ---------------------------------- */
BR_DEV void
mbar_init(u32 bar_addr, u32 count)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar_addr),
                 "r"(count)
                 : "memory");
}
BR_DEV void
fence_mbar_init(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/* As n arrivals. */
BR_DEV void
mbar_arrive(u32 bar_addr, u32 n)
{
    asm volatile("mbarrier.arrive.shared.b64 _, [%0], %1;" ::"r"(bar_addr),
                 "r"(n)
                 : "memory");
}
/* This thread arrives once its copies so far are there. */
BR_DEV void
copies_arrive(u32 bar_addr)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(
                     bar_addr)
                 : "memory");
}
BR_DEV void
mbar_expect(u32 bar_addr, u32 bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar_addr),
        "r"(bytes)
        : "memory");
}
BR_DEV bool
mbar_try(u32 bar_addr, u32 parity)
{
    u32 ok;
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(ok)
                 : "r"(bar_addr), "r"(parity)
                 : "memory");
    return ok != 0;
}
/* The same without waiting. */
BR_DEV bool
mbar_test(u32 bar_addr, u32 parity)
{
    u32 ok;
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(ok)
                 : "r"(bar_addr), "r"(parity)
                 : "memory");
    return ok != 0;
}
BR_DEV u64
policy_evict_first(void)
{
    u64 p;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;"
                 : "=l"(p));
    return p;
}
BR_DEV void
bulk_copy(u32 dst, const void *src, u32 bytes, u32 bar_addr, u64 policy)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar_addr), "l"(policy)
                 : "memory");
}

/* The same where other blocks read it too. */
BR_DEV void
bulk_copy_kept(u32 dst, const void *src, u32 bytes, u32 bar_addr)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes [%0], [%1], %2, [%3];" ::"r"(dst),
                 "l"(src), "r"(bytes), "r"(bar_addr)
                 : "memory");
}

/* n bytes, to the L2. */
BR_DEV void
bulk_call(const void *p, u32 bytes)
{
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p),
                 "r"(bytes)
                 : "memory");
}

/* ---- clusters of blocks ---------------------------------------------------- */
BR_DEV u32
cluster_rank(void)
{
    u32 r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
/* What this block's threads wrote is seen by the others after their wait. */
BR_DEV void
cluster_arrive(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
BR_DEV void
cluster_wait(void)
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
/* An address of this block's shared memory, in block `rank` of the cluster. */
BR_DEV u32
shared_of(u32 a, u32 rank)
{
    u32 r;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(rank));
    return r;
}
BR_DEV float
lds_far(u32 a) /* of shared_of */
{
    float r;
    asm volatile("ld.shared::cluster.f32 %0, [%1];"
                 : "=f"(r)
                 : "r"(a)
                 : "memory");
    return r;
}
/* Blocks of the cluster; one where there is none. */
BR_DEV u32
cluster_blocks(void)
{
    u32 r;
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
    return r;
}
/* 16 bytes to another block (a of shared_of), counted by a barrier there. PTX 8.1. */
BR_DEV void
send128(u32 a, u32x4 v, u32 bar_addr)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 "
                 "[%0], {%1,%2,%3,%4}, [%5];" ::"r"(a),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(bar_addr)
                 : "memory");
}
/* mbar_try where other blocks sent what is waited for. */
BR_DEV bool
mbar_try_sent(u32 bar_addr, u32 parity)
{
    u32 ok;
    asm volatile("{ .reg .pred p;\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, "
                 "[%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(ok)
                 : "r"(bar_addr), "r"(parity)
                 : "memory");
    return ok != 0;
}
/* ---- launches one after another ------------------------------------------- */
/* Until all that the launch before has written is there. */
BR_DEV void
grid_wait(void)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
/* The next launch may begin with what does not need this one's results. */
BR_DEV void
grid_go(void)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

#include "tensor.cuh"

#endif
