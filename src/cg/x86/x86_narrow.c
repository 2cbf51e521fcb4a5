/* x86_narrow.c - loads and stores of 1 and 2 bytes at places without order.
 *
 * Processors gather 4 and 8 bytes. So C takes these lane by lane, but in a loop
 * without calls, once all lanes that run are seen to be in the memory that
 * this instruction found last: 15 ns a lane become 7 (Zen 4).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_int.h"

/* Where address 0 is, and which addresses are good: at - lo < size. */
static x86_window
reach_of(const x86_ctx *c, uint32_t site, const br_kins *i)
{
    bool shared = br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED;
    const x86_window *w = &c->windows[site];
    uint64_t all = shared ? c->shared_bytes : w->any_bytes;
    unsigned bytes = br_ktinfo_of[i->type].bytes;

    return (x86_window){
        .lo = shared ? 0 : w->any_lo,
        .size = all < bytes ? 0 : all - bytes + 1,
        .host = shared ? (uint64_t)(uintptr_t)c->shared : w->any_host,
    };
}

/* All addresses, by lane; false: one of them is somewhere else. */
static bool
find_all(const x86_ctx *c, uint32_t site, const br_kins *i, uint32_t exec,
         uint8_t *at[X86_MOST])
{
    const x86_site *s = &c->fn->sites.at[site];
    unsigned per = c->fn->own->zmm ? X86_MOST / 2 : X86_LANES / 2;
    unsigned bytes = br_ktinfo_of[i->type].bytes;
    x86_window w = reach_of(c, site, i);

    for (uint32_t m = exec; m; m &= m - 1) {
        unsigned k = (unsigned)__builtin_ctz(m);
        uint64_t a = c->save[s->reg[k / per]][k % per] + (uint64_t)i->imm;

        if (a - w.lo >= w.size || (a & (bytes - 1)))
            return false;
        at[k] = (uint8_t *)(uintptr_t)(w.host + a);
    }
    return true;
}

/* Blocks of a program may race; what they race for is still a byte or two. */
static uint32_t
get(const uint8_t *at, bool one)
{
    return one ? __atomic_load_n(at, __ATOMIC_RELAXED)
               : __atomic_load_n((const uint16_t *)(const void *)at,
                                 __ATOMIC_RELAXED);
}

static void
put(uint8_t *at, bool one, uint32_t v)
{
    if (one)
        __atomic_store_n(at, (uint8_t)v, __ATOMIC_RELAXED);
    else
        __atomic_store_n((uint16_t *)(void *)at, (uint16_t)v, __ATOMIC_RELAXED);
}

/* false: nothing is done. */
bool
x86_narrow(x86_ctx *c, uint32_t site, const br_kins *i, uint32_t exec)
{
    const x86_site *s = &c->fn->sites.at[site];
    unsigned space = br_kmod(i->mods, BR_KF_SPACE);
    bool load = i->op == BR_K_LD, one = br_ktinfo_of[i->type].bytes == 1;
    uint32_t *v = (uint32_t *)c->save[s->reg[2]];
    uint8_t *at[X86_MOST];

    if (br_ktinfo_of[i->type].bytes > 2 || s->uniform ||
        (load ? i->n_res : i->n_arg - 1u) != 1 || c->run->l->watch ||
        space == BR_KM_SPACE_LOCAL || !find_all(c, site, i, exec, at))
        return false;
    for (uint32_t m = exec; m; m &= m - 1) {
        unsigned k = (unsigned)__builtin_ctz(m);

        if (load)
            v[k] = get(at[k], one);
        else
            put(at[k], one, v[k]);
        if (load && i->type == BR_KT_S8) /* its class has 16 bits */
            v[k] = (uint16_t)(int8_t)v[k];
    }
    return true;
}
