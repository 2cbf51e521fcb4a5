/* both.cuh - the words of kernels.cu, for PTX and for clang's own AMD code.
 * SPDX-License-Identifier: Apache-2.0 */
#define KERNEL    extern "C" __attribute__((global)) void
#define DEV       static inline __attribute__((device, always_inline))
#define SHARED    static __attribute__((shared))
#define NO_INLINE static __attribute__((device, noinline))
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
#define BLOCKS 4
#define LANES  128 /* of a block */

#ifdef __AMDGCN__
DEV u32 tid() { return __builtin_amdgcn_workitem_id_x(); }
DEV u32 bid() { return __builtin_amdgcn_workgroup_id_x(); }
DEV void
sync()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
DEV void fence() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent"); }
#define AT(op, p, v, how) \
    __hip_atomic_fetch_##op(p, v, how, __HIP_MEMORY_SCOPE_AGENT)
DEV u32 add(u32 *p, u32 v) { return AT(add, p, v, __ATOMIC_RELAXED); }
DEV u32 add_acq_rel(u32 *p, u32 v) { return AT(add, p, v, __ATOMIC_ACQ_REL); }
DEV void add_release(u32 *p, u32 v) { (void)AT(add, p, v, __ATOMIC_RELEASE); }
DEV u32
swap(u32 *p, u32 v)
{
    return __hip_atomic_exchange(p, v, __ATOMIC_ACQUIRE,
                                 __HIP_MEMORY_SCOPE_AGENT);
}
DEV u32
get(const u32 *p, bool acquire)
{
    return acquire ? __hip_atomic_load(p, __ATOMIC_ACQUIRE,
                                       __HIP_MEMORY_SCOPE_AGENT)
                   : __hip_atomic_load(p, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
}
DEV void
put(u32 *p, u32 v, bool release)
{
    if (release)
        __hip_atomic_store(p, v, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    else
        __hip_atomic_store(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
DEV u32
add_shared(u32 *p, u32 v)
{
    return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED,
                                  __HIP_MEMORY_SCOPE_WORKGROUP);
}
DEV u32
from_lane(u32 v, u32 lane)
{
    return (u32)__builtin_amdgcn_ds_bpermute((int)(lane * 4), (int)v);
}
#if __AMDGCN_WAVEFRONT_SIZE == 64
DEV u32 votes(bool b) { return (u32)__builtin_amdgcn_ballot_w64(b); }
#else
DEV u32 votes(bool b) { return (u32)__builtin_amdgcn_ballot_w32(b); }
#endif
DEV void
meet()
{
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}
#else
DEV u32 tid() { return __nvvm_read_ptx_sreg_tid_x(); }
DEV u32 bid() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEV void sync() { __syncthreads(); }
DEV void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
#define ATOM(op, p, v)                                      \
    u32 r;                                                  \
    asm volatile("atom." op ".b32 %0, [%1], %2;"            \
                 : "=r"(r)                                  \
                 : "l"(p), "r"(v)                           \
                 : "memory");                               \
    return r
#define ATOM_U(op, p, v)                                    \
    u32 r;                                                  \
    asm volatile("atom." op ".u32 %0, [%1], %2;"            \
                 : "=r"(r)                                  \
                 : "l"(p), "r"(v)                           \
                 : "memory");                               \
    return r
DEV u32 add(u32 *p, u32 v) { ATOM_U("relaxed.gpu.global.add", p, v); }
DEV u32 add_acq_rel(u32 *p, u32 v) { ATOM_U("acq_rel.gpu.global.add", p, v); }
DEV u32
add_release(u32 *p, u32 v)
{
    ATOM_U("release.gpu.global.add", p, v);
}
DEV u32 swap(u32 *p, u32 v) { ATOM("acquire.gpu.global.exch", p, v); }
DEV u32
get(const u32 *p, bool acquire)
{
    u32 r;
    if (acquire)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                     : "=r"(r)
                     : "l"(p)
                     : "memory");
    else
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                     : "=r"(r)
                     : "l"(p)
                     : "memory");
    return r;
}
DEV void
put(u32 *p, u32 v, bool release)
{
    if (release)
        asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v)
                     : "memory");
    else
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v)
                     : "memory");
}
DEV u32
add_shared(u32 *p, u32 v)
{
    return (u32)__nvvm_atom_add_gen_i((int *)p, (int)v);
}
DEV u32
from_lane(u32 v, u32 lane)
{
    return (u32)__nvvm_shfl_sync_idx_i32(~0u, (int)v, (int)lane, 31);
}
DEV u32 votes(bool b) { return __nvvm_vote_ballot_sync(~0u, b); }
DEV void meet() { asm volatile("bar.warp.sync -1;" ::: "memory"); }
#endif

DEV float
lane_f(float v, u32 lane)
{
    return __builtin_bit_cast(float, from_lane(__builtin_bit_cast(u32, v), lane));
}
DEV u32 gid() { return bid() * LANES + tid(); }
