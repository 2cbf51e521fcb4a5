/* pass_gvn.c - global value numbering: the same computation only once.
 *
 *   b1: %4 = add.u32 %1, %2         a computation is replaced by an equal one
 *   b2: %7 = add.u32 %2, %1   ->    that dominates it: %7 is %4
 *
 * Requires  br_kir_verify; blocks in any order.
 * Changes   uses; deletes instructions. PURE ones and special registers that
 *           do not change; never what concerns memory or other lanes.
 * Cost      one hash table of (operation, types, modifiers, arguments); in a
 *           chain of equal ones the first that dominates is taken.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

#include <string.h>

typedef struct numbering {
    br_kir *m;
    br_kfn *f;
    uint32_t *same, *table, *next, *blk; /* next, blk: per instruction */
    uint32_t *place, *idom;
    uint32_t mask;
    uint8_t *gone;
} numbering;

static bool
eligible(const br_kins *i)
{
    if (i->op == BR_K_SREG)
        return i->imm < BR_KS_CLOCK || i->imm > BR_KS_GLOBALTIMER_HI;
    return (br_kopinfo_of[i->op].props & BR_KP_PURE) && i->n_arg <= 4;
}

/* Arguments in their places; of a commutative operation the smaller first. */
static void
key_args(const numbering *s, const br_kins *i, uint32_t out[4])
{
    memset(out, 0xff, 4 * sizeof *out);
    for (unsigned k = 0; k < i->n_arg; k++)
        out[k] = br_ksame_find(s->same, br_kargs(s->f, i)[k]);
    if ((br_kopinfo_of[i->op].props & BR_KP_COMM) && out[0] > out[1]) {
        uint32_t t = out[0];

        out[0] = out[1];
        out[1] = t;
    }
}

static uint32_t
hash(const br_kins *i, const uint32_t a[4])
{
    uint64_t h = (uint64_t)i->op << 16 | (uint64_t)i->type << 8 | i->type2;

    h = (h ^ i->mods) * 0x9e3779b97f4a7c15ull;
    h = (h ^ (uint64_t)i->imm) * 0x9e3779b97f4a7c15ull;
    h = (h ^ i->sym) * 0x9e3779b97f4a7c15ull;
    for (int k = 0; k < 4; k++)
        h = (h ^ (h >> 29) ^ a[k]) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)(h >> 32);
}

static bool
equal(const numbering *s, const br_kins *i, const uint32_t a[4],
      const br_kins *j)
{
    uint32_t b[4];

    if (i->op != j->op || i->type != j->type || i->type2 != j->type2 ||
        i->mods != j->mods || i->imm != j->imm || i->sym != j->sym ||
        i->n_arg != j->n_arg)
        return false;
    key_args(s, j, b);
    return memcmp(a, b, sizeof b) == 0;
}

static void
number(numbering *s, uint32_t id, uint32_t b)
{
    const br_kins *i = &s->f->ins.at[id];
    uint32_t a[4], *at, k;

    if (!eligible(i))
        return;
    key_args(s, i, a);
    at = &s->table[hash(i, a) & s->mask];
    for (k = *at; k != BR_KNONE; k = s->next[k]) {
        const br_kins *j = &s->f->ins.at[k];

        if (!equal(s, i, a, j) ||
            !br_kdominates(s->idom, s->place, s->blk[k], b))
            continue;
        for (unsigned r = 0; r < i->n_res; r++)
            s->same[i->res + r] = j->res + r;
        s->gone[id] = 1;
        return;
    }
    s->blk[id] = b;
    s->next[id] = *at;
    *at = id;
}

void
br_kpass_gvn(br_kir *m, br_kfn *f)
{
    size_t nb = f->blks.n, ni = f->ins.n, size = 64;
    uint32_t *mem, *rpo, reached;
    numbering s = {.m = m, .f = f};

    while (size < ni)
        size *= 2;
    mem = br_try_alloc((3 * nb + 2 * ni + size) * sizeof *mem);
    s.gone = br_try_calloc(ni + 1, 1);
    s.same = br_ksame_new(m, f);
    if (!mem || !s.gone || !s.same) {
        m->oom = true;
        goto done;
    }
    rpo = mem;
    s.place = mem + nb;
    s.idom = mem + 2 * nb;
    s.next = mem + 3 * nb;
    s.blk = s.next + ni;
    s.table = s.blk + ni;
    s.mask = (uint32_t)size - 1;
    memset(s.table, 0xff, size * sizeof *s.table);
    reached = br_kfn_rpo(f, rpo, s.place);
    br_kfn_idom(f, rpo, reached, s.place, s.idom);
    for (uint32_t k = 0; k < reached; k++) {
        const br_kblk *b = &f->blks.at[rpo[k]];

        for (size_t at = 0; at < b->ins.n; at++)
            number(&s, b->ins.at[at], rpo[k]);
    }
    br_ksame_apply(f, s.same);
    br_kfn_sweep(f, s.gone);
done:
    br_free(mem);
    br_free(s.gone);
    br_free(s.same);
}
