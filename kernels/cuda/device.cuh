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

struct u32x2 {
    u32 x, y;
};
struct u32x4 {
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
BR_DEV u32
smem_of(const void *p)
{
    u64 a;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(a) : "l"(p));
    return (u32)a;
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
/* To memory of the host. */
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

/* ---- the tensor core ------------------------------------------------------ */
/* c[16x8] += a[16x16] b[16x8], bf16 in, f32 accumulate. Lane l holds rows
 * l/4 and l/4+8; c[0], c[2] are column 2(l%4), c[1], c[3] the next. */
BR_DEV void
mma_bf16(float c[4], u32x4 a, u32x2 b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}
/* The same of f16. */
BR_DEV void
mma_f16(float c[4], u32x4 a, u32x2 b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}
/* Rows for columns, of 8 x 8 halves: lane l has two of row l / 4. */
BR_DEV u32
transposed(u32 v)
{
    u32 r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"
                 : "=r"(r)
                 : "r"(v));
    return r;
}
/* c = a b */
BR_DEV void
mma_bf16_zero(float c[4], u32x4 a, u32x2 b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
                 : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y),
                   "f"(0.0f));
}
/* c[16x8] = a[16x32] b[32x8], signed bytes, exact. */
BR_DEV void
mma_s8(i32 c[4], u32x4 a, u32x2 b)
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
                 : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y),
                   "r"(0));
}

/* The same of 16 columns: a[16x16] b[16x8], of which lane l has columns
 * 4(l%4).. + 3; weights of u8: without a sign. */
#define MMA_16(name, type)                                                    \
    BR_DEV void name(i32 c[4], u32 a, u32 a8, u32 b)                          \
    {                                                                         \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.s32." type            \
                     ".s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "                 \
                     "{%7,%7,%7,%7};"                                         \
                     : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])         \
                     : "r"(a), "r"(a8), "r"(b), "r"(0));                      \
    }
MMA_16(mma_s8_16, "s8")
MMA_16(mma_u8_16, "u8")
/* The sum of four signed bytes. */
BR_DEV i32
sum_of_bytes(u32 v, i32 c)
{
    i32 r;
    asm("dp4a.s32.s32 %0, %1, %2, %3;"
        : "=r"(r)
        : "r"(v), "r"(0x01010101), "r"(c));
    return r;
}
/* Pairs of f16: a - b, a b + c. In order with wgmma, whose operands they make. */
BR_DEV u32
sub_f16x2(u32 a, u32 b)
{
    u32 r;
    asm volatile("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
BR_DEV u32
fma_f16x2(u32 a, u32 b, u32 c)
{
    u32 r;
    asm volatile("fma.rn.f16x2 %0, %1, %2, %3;"
                 : "=r"(r)
                 : "r"(a), "r"(b), "r"(c));
    return r;
}
/* Two bytes < 128 as bf16, from 128 + each: exact. */
BR_DEV u32
bf16_of_bytes(u32 v, u32 sel)
{
    u32 r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;"
        : "=r"(r)
        : "r"(prmt(v, 0x43434343, sel)), "r"(0x3f803f80), "r"(0xc300c300));
    return r;
}

/* Four warps together: d[64 x N] += a[64 x 16] b[16 x N], f16 in, f32 sums;
 * from zero where `more` is false. a and b are descriptors: rows of 128 bytes,
 * chunks of 16 at chunk ^ row % 8, eight rows together (1 KiB, aligned so); 32
 * bytes further along a row is a descriptor + 2. Done when wg_wait says so. */
BR_DEV u64
wg_tile(u32 shared)
{
    return (u64)(shared >> 4 & 0x3fff) | (u64)1 << 16 | (u64)64 << 32 |
           (u64)1 << 62;
}
BR_DEV void
wg_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
BR_DEV void
wg_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Until all but the latest N commits are done. */
template <u32 N>
BR_DEV void
wg_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
#define WG_D4(d, i)  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WG_D16(d, i) \
    WG_D4(d, i), WG_D4(d, i + 4), WG_D4(d, i + 8), WG_D4(d, i + 12)
#define WG_MMA(N, DS, A, B, P, ...)                                           \
    BR_DEV void wg_mma(float(&d)[N / 2], u64 a, u64 b, bool more)             \
    {                                                                         \
        asm volatile("{ .reg .pred p;\n"                                      \
                     "setp.ne.b32 p, " P ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N                   \
                     "k16.f32.f16.f16 {" DS "}, " A ", " B                    \
                     ", p, 1, 1, 0, 0; }"                                     \
                     : __VA_ARGS__                                            \
                     : "l"(a), "l"(b), "r"((u32)more));                       \
    }
#define WG_R4 "%0,%1,%2,%3"
#define WG_R8 WG_R4 ",%4,%5,%6,%7"
#define WG_R16 \
    WG_R8 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define WG_R32 \
    WG_R16 ",%16,%17,%18,%19,%20,%21,%22,%23" \
           ",%24,%25,%26,%27,%28,%29,%30,%31"
#define WG_R64 \
    WG_R32 ",%32,%33,%34,%35,%36,%37,%38,%39" \
           ",%40,%41,%42,%43,%44,%45,%46,%47" \
           ",%48,%49,%50,%51,%52,%53,%54,%55" \
           ",%56,%57,%58,%59,%60,%61,%62,%63"
#define WG_R96 \
    WG_R64 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79" \
           ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define WG_R128 \
    WG_R96 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107" \
           ",%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119" \
           ",%120,%121,%122,%123,%124,%125,%126,%127"
WG_MMA(8, WG_R4, "%4", "%5", "%6", WG_D4(d, 0))
WG_MMA(16, WG_R8, "%8", "%9", "%10", WG_D4(d, 0), WG_D4(d, 4))
WG_MMA(32, WG_R16, "%16", "%17", "%18", WG_D16(d, 0))
WG_MMA(64, WG_R32, "%32", "%33", "%34", WG_D16(d, 0), WG_D16(d, 16))
WG_MMA(128, WG_R64, "%64", "%65", "%66", WG_D16(d, 0), WG_D16(d, 16), WG_D16(d, 32),
       WG_D16(d, 48))
WG_MMA(192, WG_R96, "%96", "%97", "%98", WG_D16(d, 0), WG_D16(d, 16), WG_D16(d, 32),
       WG_D16(d, 48), WG_D16(d, 64), WG_D16(d, 80))
WG_MMA(256, WG_R128, "%128", "%129", "%130", WG_D16(d, 0), WG_D16(d, 16),
       WG_D16(d, 32), WG_D16(d, 48), WG_D16(d, 64), WG_D16(d, 80), WG_D16(d, 96),
       WG_D16(d, 112))

/* The same with a in registers (see wg_mma64). */
#define WG_MMA_R(N, DS, A, B, P, ...)                                         \
    BR_DEV void wg_mma_r(float(&d)[N / 2], u32x4 a, u64 b, bool more)         \
    {                                                                         \
        asm volatile("{ .reg .pred p;\n"                                      \
                     "setp.ne.b32 p, " P ", 0;\n"                             \
                     "wgmma.mma_async.sync.aligned.m64n" #N                   \
                     "k16.f32.f16.f16 {" DS "}, {" A "}, " B                  \
                     ", p, 1, 1, 0; }"                                        \
                     : __VA_ARGS__                                            \
                     : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b),        \
                       "r"((u32)more));                                       \
    }
WG_MMA_R(16, WG_R8, "%8,%9,%10,%11", "%12", "%13", WG_D4(d, 0), WG_D4(d, 4))
WG_MMA_R(32, WG_R16, "%16,%17,%18,%19", "%20", "%21", WG_D16(d, 0))
WG_MMA_R(64, WG_R32, "%32,%33,%34,%35", "%36", "%37", WG_D16(d, 0),
         WG_D16(d, 16))
WG_MMA_R(128, WG_R64, "%64,%65,%66,%67", "%68", "%69", WG_D16(d, 0),
         WG_D16(d, 16), WG_D16(d, 32), WG_D16(d, 48))

/* The same with N = 64 and a in registers, four of 16 columns: rows l / 4 and
 * l / 4 + 8 of the warp's 16, columns 2 (l % 4) .. and 8 more. BY_ROWS: b's rows
 * are the sum's index, 64 columns of the result in a row of 128 bytes. */
template <bool BY_ROWS>
BR_DEV void
wg_mma64(float (&d)[32], u32x4 a, u64 b, bool more)
{
    asm volatile("{ .reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" WG_R32
                 "}, {%32,%33,%34,%35}, %36, p, 1, 1, %38; }"
                 : WG_D16(d, 0), WG_D16(d, 16)
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b),
                   "r"((u32)more), "n"(BY_ROWS ? 1 : 0));
}
/* A tile as rows that are a sum's index: eight of them and 64 columns are 1 KiB. */
BR_DEV u64
wg_tile_by_rows(u32 shared)
{
    return (u64)(shared >> 4 & 0x3fff) | (u64)64 << 16 | (u64)64 << 32 |
           (u64)1 << 62;
}
/* Four 8 x 8 tiles of halves; lane l says where row l % 8 of tile l / 8 is and
 * gets, of each tile, two of row l / 4; or of column l / 4. */
BR_DEV u32x4
ldmatrix(u32 a)
{
    u32x4 r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "r"(a)
                 : "memory");
    return r;
}
BR_DEV u32x4
ldmatrix_t(u32 a)
{
    u32x4 r;
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
        : "r"(a)
        : "memory");
    return r;
}

#endif
