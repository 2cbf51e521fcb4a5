/* x86_warp.c - what concerns several lanes, from row to row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_int.h"

#include <string.h>

/* What all lanes share of a constant or a uniform value; false: it is none. */
static bool
shared_by_all(const ki_frame *f, uint32_t v, uint32_t *x)
{
    const br_kval *k = &f->f->vals.at[v];

    if (k->kind == BR_KV_INS && !f->native->uniform[v])
        return false;
    *x = (uint32_t)(k->kind == BR_KV_INS ? x86_get_lane(f, v, 0) : k->bits);
    return true;
}

/* Whom a lane takes from: itself where that is out of range. As kinterp_warp.c
 * has it. */
uint32_t
x86_lane_from(unsigned mode, uint32_t lane, uint32_t by, uint32_t c,
              bool *in_range)
{
    uint32_t seg = c >> 8 & 31, least = lane & seg;
    uint32_t most = least | (c & 31 & ~seg), from;

    by &= 31;
    from = mode == BR_KM_SHFL_UP     ? lane - by
           : mode == BR_KM_SHFL_DOWN ? lane + by
           : mode == BR_KM_SHFL_BFLY ? lane ^ by
                                     : least | (by & ~seg);
    *in_range =
        mode == BR_KM_SHFL_UP ? (int32_t)from >= (int32_t)most : from <= most;
    return *in_range ? from & 31 : lane;
}

/* A shuffle of 32 bits by the same for all, all lanes there: from row to row.
 * Without the ways there and back. */
bool
x86_shuffle(const ki_frame *f, const br_kins *i, uint32_t exec)
{
    uint32_t v = f->f->args.at[i->arg], in[KI_LANES], out[KI_LANES], ok = 0;
    uint32_t by, c, mode = br_kmod(i->mods, BR_KF_SUB);
    uint32_t to = f->native->slot[i->res], hit = f->native->slot[i->res + 1];

    if (exec != UINT32_MAX || f->f->vals.at[v].cls != BR_KC_B32 ||
        f->f->vals.at[v].kind != BR_KV_INS ||
        !shared_by_all(f, f->f->args.at[i->arg + 1u], &by) ||
        !shared_by_all(f, f->f->args.at[i->arg + 2u], &c))
        return false;
    if (f->native->uniform[v] || x86_even(f->native, v))
        for (unsigned lane = 0; lane < KI_LANES; lane++)
            in[lane] = (uint32_t)x86_get_lane(f, v, lane);
    else
        memcpy(in, f->slots + f->native->slot[v], sizeof in);
    for (uint32_t lane = 0; lane < KI_LANES; lane++) {
        bool in_range;

        out[lane] = in[x86_lane_from(mode, lane, by, c, &in_range)];
        ok |= (uint32_t)in_range << lane;
    }
    if (to != X86_NO_SLOT)
        memcpy(f->slots + to, out, sizeof out);
    if (hit != X86_NO_SLOT)
        memcpy(f->slots + hit, &ok, sizeof ok);
    return true;
}
