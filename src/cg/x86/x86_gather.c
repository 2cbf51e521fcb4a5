/* x86_gather.c - loads and stores of lanes that are anywhere, or not all there.
 *
 * With AVX-512, 16 lanes at a time: those that run lie in the memory that this
 * instruction found last, and at places for what they read? Then it is a gather
 * or scatter under their mask; lanes that store to one place do so in order.
 * Else C takes them one by one. SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

bool
x86_gathers(const br_kins *i)
{
    unsigned bytes = br_ktinfo_of[i->type].bytes, all = x86_access(i);

    return (bytes == 4 || bytes == 8) && all <= 16 && !(all & (all - 1)) &&
           i->imm % (int64_t)all == 0;
}

/* What gather needs, so that nothing gives way on one of two paths. */
void
x86_gather_begin(gen *g)
{
    unsigned k[2];

    if (!g->wide)
        (void)x86_use(g, EXEC(g), 0);
    for (unsigned n = 0; n < 2; n++)
        k[n] = x86_ktmp(g);
    for (unsigned n = 0; n < 2; n++)
        x86_kdrop(g, k[n]);
}

/* rdx: windows. rax: what an address is counted from, less imm; then its end,
 * behind the last place to begin. rcx: where address 0 is. */
static void
memory(gen *g, const br_kins *i, uint32_t site, uint32_t slow, unsigned from,
       unsigned end)
{
    int64_t bytes = x86_access(i);
    int32_t at = (int32_t)(site * sizeof(x86_window));

    if (br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED) {
        ei(g, BR_X_MOV64_I, br_x86_reg(RAX), -i->imm);
        e2(g, BR_X_ZBCASTQ_R, from, RAX);
        em(g, BR_X_MOV64, RAX, x86_ctx_at(offsetof(x86_ctx, shared_bytes)));
        ei(g, BR_X_SUB64_I, br_x86_reg(RAX), bytes - 1);
        ej(g, BR_X_JB, slow);
        em(g, BR_X_MOV64, RCX, x86_ctx_at(offsetof(x86_ctx, shared)));
    } else {
        at += (int32_t)offsetof(x86_window, any_lo);
        em(g, BR_X_MOV64, RDX, x86_ctx_at(offsetof(x86_ctx, windows)));
        em(g, BR_X_MOV64, RAX, br_x86_mem(RDX, at));
        ei(g, BR_X_SUB64_I, br_x86_reg(RAX), i->imm);
        e2(g, BR_X_ZBCASTQ_R, from, RAX);
        em(g, BR_X_MOV64, RAX, br_x86_mem(RDX, at + 8));
        ei(g, BR_X_SUB64_I, br_x86_reg(RAX), bytes - 1);
        ej(g, BR_X_JB, slow); /* there is none yet */
        em(g, BR_X_MOV64, RCX, br_x86_mem(RDX, at + 16));
    }
    e2(g, BR_X_ZBCASTQ_R, end, RAX);
}

/* k: lanes of part p that run. */
static void
running(gen *g, unsigned k, unsigned p)
{
    if (g->wide)
        e3(g, BR_X_KXNORW, k, k, k);
    else
        e2i(g, BR_X_KSHIFTRW, k, x86_use(g, EXEC(g), 0), p ? 8 : 0);
}

/* To slow unless the lanes of k are inside and aligned. */
static void
look(gen *g, const br_kins *i, unsigned a, unsigned from, unsigned end,
     unsigned k, uint32_t slow)
{
    unsigned off = x86_tmp(g), out = x86_ktmp(g);
    br_x86_arg r[] = {br_x86_reg(out), br_x86_reg(off), br_x86_reg(end),
                      br_x86_imm(5), br_x86_reg(k)};
    br_x86_arg low[] = {br_x86_reg(out), br_x86_reg(a),
                        x86_const(g, x86_access(i) - 1u), br_x86_reg(k)};

    e3(g, BR_X_PSUBQ, off, a, from);
    br_x86_put(g->a, BR_X_ZPCMPUQ_K, r);
    e2(g, BR_X_KORTESTW, out, out);
    ej(g, BR_X_JNE, slow);
    br_x86_put(g->a, BR_X_ZPTESTMQ_KB, low);
    e2(g, BR_X_KORTESTW, out, out);
    ej(g, BR_X_JNE, slow);
    x86_drop(g, off);
    x86_kdrop(g, out);
}

static void
gather(gen *g, br_x86_op op, unsigned d, br_x86_arg at, unsigned k)
{
    e3(g, BR_X_PXOR, d, d, d);
    br_x86_put(g->a, op, (br_x86_arg[]){br_x86_reg(d), at, br_x86_reg(k)});
}

static void
scatter(gen *g, br_x86_op op, br_x86_arg at, unsigned s, unsigned k)
{
    br_x86_put(g->a, op, (br_x86_arg[]){at, br_x86_reg(s), br_x86_reg(k)});
}

/* One value of each lane, between at[] and r, under the lanes that run; a, b:
 * free. */
static void
all_lanes(gen *g, const br_kins *i, const uint8_t *r, const br_x86_arg *at,
          unsigned a, unsigned b, unsigned k)
{
    bool load = i->op == BR_K_LD, wide = br_ktinfo_of[i->type].bytes == 8;

    for (unsigned p = 0; p < 2; p++) {
        running(g, k, p);
        if (load && wide) {
            gather(g, BR_X_ZGATHERQQ, r[p], at[p], k);
        } else if (load) {
            gather(g, BR_X_ZGATHERQD, p ? a : b, at[p], k);
        } else if (wide) {
            scatter(g, BR_X_ZSCATTERQQ, at[p], r[p], k);
        } else {
            if (p)
                e2i(g, BR_X_ZEXTRACT256, a, r[0], 1);
            scatter(g, BR_X_ZSCATTERQD, at[p], p ? a : r[0], k);
        }
    }
    if (load && !wide)
        e3i(g, BR_X_ZINSERT256, r[0], b, a, 1);
}

/* All values of each lane, which lie one after another at at[]. */
static void
all_values(gen *g, const br_kins *i, const uint8_t *r, br_x86_arg *at,
           unsigned a, unsigned b, unsigned k)
{
    unsigned bytes = br_ktinfo_of[i->type].bytes;

    r += 2; /* the addresses */
    for (unsigned n = 0; n < x86_access(i) / bytes; n++) {
        all_lanes(g, i, r, at, a, b, k);
        r += bytes == 8 ? 2 : 1;
        at[0].disp += (int32_t)bytes;
        at[1].disp += (int32_t)bytes;
    }
}

void
x86_gather(gen *g, const br_kins *i, uint32_t site, uint32_t slow)
{
    const uint8_t *r = g->fn->sites.at[site].reg;
    unsigned from = x86_tmp(g), end = x86_tmp(g), k = x86_ktmp(g);
    br_x86_arg at[2];

    memory(g, i, site, slow, from, end);
    for (unsigned p = 0; p < 2; p++) {
        running(g, k, p);
        look(g, i, r[p], from, end, k, slow);
        at[p] = br_x86_memx(RCX, r[p], 1, (int32_t)i->imm);
    }
    all_values(g, i, r, at, from, end, k);
    x86_drop(g, from);
    x86_drop(g, end);
    x86_kdrop(g, k);
}

/* Local memory: lane l's begins l times its size behind lane 0's. */
void
x86_gather_local(gen *g, const br_kins *i, uint32_t site, uint32_t slow)
{
    const uint8_t *r = g->fn->sites.at[site].reg;
    unsigned from = x86_tmp(g), end = x86_tmp(g), k = x86_ktmp(g), index[2];
    int32_t lanes = (int32_t)offsetof(x86_ctx, lanes);
    br_x86_arg at[2];

    if (!g->parted)
        x86_wide_warp(g);
    em(g, BR_X_MOV64, RDX, x86_ctx_at(offsetof(x86_ctx, warp)));
    em(g, BR_X_MOV32, RAX,
       br_x86_mem(RDX, (int32_t)offsetof(ki_warp, local_bytes)));
    em(g, BR_X_MOV64, RCX, br_x86_mem(RDX, (int32_t)offsetof(ki_warp, local)));
    for (unsigned p = 0; p < 2; p++) {
        index[p] = x86_tmp(g);
        em(g, BR_X_PMOVZXDQ, index[p],
           br_x86_memx(RBX, R14, 1, lanes + 32 * (int32_t)p));
        e2(g, BR_X_ZBCASTQ_R, from, RAX);
        e3(g, BR_X_PMULUDQ, index[p], index[p], from);
        e3(g, BR_X_PADDQ, index[p], index[p], r[p]);
    }
    ei(g, BR_X_SUB64_I, br_x86_reg(RAX), x86_access(i) - 1);
    ej(g, BR_X_JB, slow);
    e2(g, BR_X_ZBCASTQ_R, end, RAX);
    ei(g, BR_X_MOV64_I, br_x86_reg(RAX), -i->imm);
    e2(g, BR_X_ZBCASTQ_R, from, RAX);
    for (unsigned p = 0; p < 2; p++) {
        running(g, k, p);
        look(g, i, r[p], from, end, k, slow);
        at[p] = br_x86_memx(RCX, index[p], 1, (int32_t)i->imm);
    }
    all_values(g, i, r, at, from, end, k);
    x86_drop(g, from);
    x86_drop(g, end);
    x86_drop(g, index[0]);
    x86_drop(g, index[1]);
    x86_kdrop(g, k);
}
