/* x86_atom.c - atomics of global memory, a warp at a time.
 *
 * All lanes that run are looked at first: if one is not in memory that may be
 * written, or not aligned, the interpreter does them all and says what is wrong.
 * Then it is one locked instruction a lane; one for the warp where all add to one
 * place, as counters do: a lane gets what was there and what those before it add.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_int.h"

#include <string.h>

typedef struct lanes {
    uint64_t at[KI_LANES], with[KI_LANES], was[KI_LANES];
} lanes;

/* The region of an address becomes the window; false: there is none to write. */
static bool
find_window(x86_ctx *c, uint32_t site, uint64_t addr, unsigned bytes)
{
    for (size_t k = 0; k < c->run->regions.n; k++) {
        const br_kregion *g = &c->run->regions.at[k];

        if (addr - g->addr >= g->bytes)
            continue;
        if (g->read_only || g->bytes < bytes)
            return false;
        c->windows[site] =
            (x86_window){.lo = g->addr,
                         .size = g->bytes - bytes + 1,
                         .host = (uint64_t)(uintptr_t)g->host - g->addr};
        return true;
    }
    return false;
}

static bool
all_inside(x86_ctx *c, uint32_t site, const lanes *l, uint32_t exec,
           unsigned bytes)
{
    const x86_window *w = &c->windows[site];

    ki_each_lane(k, exec)
    {
        if (l->at[k] % bytes)
            return false;
        if (l->at[k] - w->lo >= w->size &&
            (!find_window(c, site, l->at[k], bytes) ||
             l->at[k] - w->lo >= w->size))
            return false;
    }
    ki_each_lane(k, exec) /* the window may have been another at first */
        if (l->at[k] - w->lo >= w->size) return false;
    return true;
}

static bool
one_place(const lanes *l, uint32_t exec)
{
    uint64_t first = l->at[__builtin_ctz(exec)];

    ki_each_lane(k, exec) if (l->at[k] != first) return false;
    return true;
}

static void
add_to_one(lanes *l, uint32_t exec, uint8_t *p, bool wide)
{
    uint64_t sum = 0, was;

    ki_each_lane(k, exec)
    {
        l->was[k] = sum;
        sum += l->with[k];
    }
    was = wide
              ? __atomic_fetch_add((uint64_t *)(void *)p, sum, __ATOMIC_SEQ_CST)
              : __atomic_fetch_add((uint32_t *)(void *)p, (uint32_t)sum,
                                   __ATOMIC_SEQ_CST);
    ki_each_lane(k, exec) l->was[k] += was;
}

/* Each lane's own, with an instruction that the processor has. */
#define EACH(type, fn)                                                 \
    do {                                                               \
        ki_each_lane(k, exec) l->was[k] =                              \
            fn((type *)(uintptr_t)(host + l->at[k]), (type)l->with[k], \
               __ATOMIC_SEQ_CST);                                      \
    } while (0)

static bool
each(lanes *l, uint32_t exec, uint64_t host, unsigned op, bool wide)
{
    switch (op) {
    case BR_KM_ATOM_ADD:
        if (wide)
            EACH(uint64_t, __atomic_fetch_add);
        else
            EACH(uint32_t, __atomic_fetch_add);
        return true;
    case BR_KM_ATOM_EXCH:
        if (wide)
            EACH(uint64_t, __atomic_exchange_n);
        else
            EACH(uint32_t, __atomic_exchange_n);
        return true;
    case BR_KM_ATOM_AND:
        if (wide)
            EACH(uint64_t, __atomic_fetch_and);
        else
            EACH(uint32_t, __atomic_fetch_and);
        return true;
    case BR_KM_ATOM_OR:
        if (wide)
            EACH(uint64_t, __atomic_fetch_or);
        else
            EACH(uint32_t, __atomic_fetch_or);
        return true;
    case BR_KM_ATOM_XOR:
        if (wide)
            EACH(uint64_t, __atomic_fetch_xor);
        else
            EACH(uint32_t, __atomic_fetch_xor);
        return true;
    default: return false;
    }
}

static bool
able(const x86_ctx *c, const br_kins *i)
{
    const br_ktinfo *t = &br_ktinfo_of[i->type];
    unsigned op = br_kmod(i->mods, BR_KF_SUB);

    return i->op == BR_K_ATOM && t->kind != 'F' && t->lanes == 1 &&
           (t->bytes == 4 || t->bytes == 8) && !c->run->l->watch &&
           br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_GLOBAL &&
           (op == BR_KM_ATOM_ADD || op == BR_KM_ATOM_EXCH ||
            op == BR_KM_ATOM_AND || op == BR_KM_ATOM_OR ||
            op == BR_KM_ATOM_XOR);
}

bool
x86_atomic(x86_ctx *c, uint32_t site, ki_frame *f, const br_kins *i,
           uint32_t exec)
{
    unsigned bytes = br_ktinfo_of[i->type].bytes;
    const uint32_t *arg = &f->f->args.at[i->arg];
    uint64_t host;
    lanes l;

    if (!able(c, i))
        return false;
    ki_each_lane(k, exec) for (unsigned a = 0; a < 2; a++)
    {
        const br_kval *v = &f->f->vals.at[arg[a]];
        uint64_t x =
            v->kind == BR_KV_INS ? x86_get_lane(f, arg[a], k) : v->bits;

        (a ? l.with : l.at)[k] = a ? x : x + (uint64_t)i->imm;
    }
    if (!all_inside(c, site, &l, exec, bytes))
        return false;
    host = c->windows[site].host;
    if (br_kmod(i->mods, BR_KF_SUB) == BR_KM_ATOM_ADD && one_place(&l, exec))
        add_to_one(&l, exec,
                   (uint8_t *)(uintptr_t)(host + l.at[__builtin_ctz(exec)]),
                   bytes == 8);
    else if (!each(&l, exec, host, br_kmod(i->mods, BR_KF_SUB), bytes == 8))
        return false;
    if (f->native->slot[i->res] != X86_NO_SLOT)
        ki_each_lane(k, exec) x86_put_lane(f, i->res, k, l.was[k]);
    return true;
}
