/* mega_nodes.cu - a whole step of any graph in one launch of groups that stay:
 * the kernels of nodes.cu as functions, by the list of the step.
 *
 *     group 0:  phase 0 blocks 0, G, 2G ..  | all | phase 1 ... | all | ...
 *     group 1:  phase 0 blocks 1, G+1 ..    | all |
 *
 * As many groups as can be there at once; else those wait for ever.
 * SPDX-License-Identifier: Apache-2.0 */
#define BR_PORTABLE
#include "exact.cuh"

#define KERNEL  BR_DEV void
#define ARGS    const struct br_nd_args &a, u32 bx, u32 by
#define PART    ARGS
#define OF_PART a, bx, by
#define BR_TILE BR_ND_MEGA_TILE
#define bid()   bx
#define bid_y() by
#include "nodes.cu"
#undef bid
#undef bid_y

enum fn {
#define K(name) FN_##name,
#include "../../src/drv/cuda/cuda_nodes.def"
};

BR_DEV void
block_of(const struct br_nd_phase &p, u32 bx, u32 by)
{
    switch (p.fn) {
    case FN_runs: br_nd_runs(p.a, bx, by); break;
    case FN_wanted: br_nd_wanted(p.a, bx, by); break;
    case FN_each: br_nd_each(p.a, bx, by); break;
    case FN_norm: br_nd_norm(p.a, bx, by); break;
    case FN_norm_heads: br_nd_norm_heads(p.a, bx, by); break;
    case FN_quantise: br_nd_quantise(p.a, bx, by); break;
    case FN_mul_f32: br_nd_mul_f32(p.a, bx, by); break;
    case FN_mul_f16: br_nd_mul_f16(p.a, bx, by); break;
    case FN_mul_bf16: br_nd_mul_bf16(p.a, bx, by); break;
    case FN_mul_int32: br_nd_mul_int32(p.a, bx, by); break;
    case FN_mul_int256: br_nd_mul_int256(p.a, bx, by); break;
    case FN_embed: br_nd_embed(p.a, bx, by); break;
    case FN_rope: br_nd_rope(p.a, bx, by); break;
    case FN_keep: br_nd_keep(p.a, bx, by); break;
    case FN_attend: br_nd_attend(p.a, bx, by); break;
    case FN_topk: br_nd_topk(p.a, bx, by); break;
    case FN_fold: br_nd_fold(p.a, bx, by); break;
    case FN_conv: br_nd_conv(p.a, bx, by); break;
    case FN_delta: br_nd_delta(p.a, bx, by); break;
    case FN_scan: br_nd_scan(p.a, bx, by); break;
    case FN_gated: br_nd_gated(p.a, bx, by); break;
    default: trap();
    }
}

BR_DEV u32
ld_host(const u32 *p)
{
    u32 r;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];"
                 : "=r"(r)
                 : "l"(p)
                 : "memory");
    return r;
}
BR_DEV void
st_host(u32 *p, u32 v)
{
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v)
                 : "memory");
}

/* What any group wrote before is there for all. How many phases the step has
 * from then on: none, when the host wants an end. */
BR_DEV u32
wait_for_all(const struct br_nd_mega &m, u32 group, u32 want, u32 phases)
{
    bar(0, THREADS);
    if (tid() == 0) {
        if (m.bell && group == 0)
            st_relaxed32(m.state + 1, ld_host(&m.bell->quit) ? 0 : phases);
        fence_gpu();
        red_relaxed_add(m.state, 1);
        while ((i32)(ld_relaxed32(m.state) - want) < 0)
            ;
        fence_gpu();
    }
    bar(0, THREADS);
    return m.bell ? ld_relaxed32(m.state + 1) : phases;
}

/* The host's next step. */
BR_DEV u32
wait_for_host(const struct br_nd_mega &m, u32 step)
{
    while (ld_host(&m.bell->go) != step && !ld_host(&m.bell->quit))
        ;
    fence_system();
    return ld_host(&m.bell->n_phases);
}

BR_DEV void
phase(const struct br_nd_mega &m, const struct br_nd_phase &p, u32 group)
{
    const u32 nx = p.blocks[0], n = nx * p.blocks[1];

    for (u32 b = group; b < n; b += m.n_groups) {
        block_of(p, b % nx, b / nx);
        bar(0, THREADS); /* shared memory is the next block's */
    }
}

extern "C" __global__ void
br_nd_mega(const struct br_nd_mega m)
{
    u32 group, arrived = 0, n = m.n_phases;

    asm("mov.u32 %0, %%ctaid.x;" : "=r"(group));
    for (u32 step = 1;; step++) {
        if (m.bell) {
            if (group == 0 && tid() == 0)
                n = wait_for_host(m, step);
            n = wait_for_all(m, group, arrived += m.n_groups, n);
        }
        for (u32 i = 0; i < n; i++) {
            phase(m, m.phase[i], group);
            n = wait_for_all(m, group, arrived += m.n_groups, n);
            if (m.bell && group == 0 && tid() == 0)
                st_host(&m.bell->alive, i + 1);
        }
        if (!m.bell || n == 0)
            return;
        if (group == 0 && tid() == 0) {
            fence_system();
            st_host(&m.bell->done, step);
        }
    }
}
