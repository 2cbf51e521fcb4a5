/* x86_lanes.c - steps that code does by itself, with AVX-512: votes, shuffles, and
 * atomics of shared memory.
 *
 * A step concerns all lanes of a warp, whose values lie in rows. Votes are words
 * already; a shuffle is two permutations of the two halves of a row; a block's
 * shared memory is its thread's alone, so that what is atomic there is one lane
 * after another. What is left goes to C (x86_step).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

static br_x86_arg
slot_at(const gen *g, uint32_t v, unsigned offset)
{
    return br_x86_mem(R12, (int32_t)(g->fn->slot[v] + offset));
}

/* One number for all lanes. */
static bool
alike(const gen *g, uint32_t v)
{
    return is_const(g, v) || g->fn->uniform[v];
}

static void
number(gen *g, uint32_t v, unsigned to)
{
    bool pred = cls_of(g, v) == BR_KC_PRED;
    uint64_t bits = is_const(g, v) ? g->f->vals.at[v].bits : 0;

    if (is_const(g, v))
        ei(g, BR_X_MOV32_I, br_x86_reg(to),
           (int32_t)(pred ? 0u - (uint32_t)bits : (uint32_t)bits));
    else
        em(g, BR_X_MOV32, to, slot_at(g, v, 0));
}

/* ---- votes ---------------------------------------------------------------- */

/* eax: lanes that say yes, ecx: those that are asked. */
static void
decide(gen *g, const br_kins *i)
{
    unsigned mode = br_kmod(i->mods, BR_KF_SUB);
    br_x86_arg at = slot_at(g, i->res, 0);
    uint32_t out = br_x86_label(g->a), yes = br_x86_label(g->a);

    ei(g, BR_X_MOVM32_I, at, mode == BR_KM_VOTE_ANY ? 0 : -1);
    if (mode == BR_KM_VOTE_ANY) {
        e2(g, BR_X_TEST32, RAX, RAX);
        ej(g, BR_X_JE, out);
        ei(g, BR_X_MOVM32_I, at, -1);
    } else {
        e2(g, BR_X_CMP32, RAX, RCX);
        ej(g, BR_X_JE, out);
        if (mode != BR_KM_VOTE_ALL) {
            e2(g, BR_X_TEST32, RAX, RAX);
            ej(g, BR_X_JE, yes);
        }
        ei(g, BR_X_MOVM32_I, at, 0);
        br_x86_bind(g->a, yes);
    }
    br_x86_bind(g->a, out);
}

static bool
vote(gen *g, const br_kins *i)
{
    if (!g->fn->uniform[i->res])
        return false;
    if (i->op == BR_K_ACTIVE) {
        es(g, BR_X_MOV32_S, slot_at(g, i->res, 0), R13);
        return true;
    }
    if (!alike(g, arg_of(g, i, 1)))
        return false;
    number(g, arg_of(g, i, 1), RCX);
    e2(g, BR_X_AND32, RCX, R13);
    number(g, arg_of(g, i, 0), RAX);
    e2(g, BR_X_AND32, RAX, RCX);
    if (i->op == BR_K_BALLOT)
        es(g, BR_X_MOV32_S, slot_at(g, i->res, 0), RAX);
    else
        decide(g, i);
    return true;
}

/* ---- shuffles ------------------------------------------------------------- */

/* 16 lanes of 32 bits. */
static void
lanes_of(gen *g, uint32_t v, unsigned half, unsigned to)
{
    if (is_const(g, v)) {
        em(g, BR_X_BCASTD, to, x86_const(g, g->f->vals.at[v].bits));
    } else if (g->fn->uniform[v]) {
        em(g, BR_X_BCASTD, to, slot_at(g, v, 0));
    } else if (x86_even(g->fn, v)) {
        em(g, BR_X_BCASTD, to, slot_at(g, v, 8 * half));
        if (g->fn->step[v])
            e3m(g, BR_X_PADDD, to, to, x86_steps32(g, v));
    } else {
        em(g, BR_X_MOVUPS_L, to, slot_at(g, v, 64 * half));
    }
}

/* zmm2: the lanes that those of a half take; k3: whether they are in range. */
static void
sources(gen *g, const br_kins *i, unsigned half)
{
    unsigned mode = br_kmod(i->mods, BR_KF_SUB);
    enum { FROM = 2, BY, C, LOW, SEG, MOST, LANE, LEAST };

    lanes_of(g, arg_of(g, i, 1), half, BY);
    lanes_of(g, arg_of(g, i, 2), half, C);
    em(g, BR_X_BCASTD, LOW, x86_const(g, 31));
    e3(g, BR_X_PAND, BY, BY, LOW);
    e2i(g, BR_X_PSRLD_I, SEG, C, 8);
    e3(g, BR_X_PAND, SEG, SEG, LOW);
    e3(g, BR_X_PANDN, MOST, SEG, C);
    e3(g, BR_X_PAND, MOST, MOST, LOW);
    em(g, BR_X_MOVUPS_L, LANE,
       x86_ctx_at(offsetof(x86_ctx, lanes) + 64 * (size_t)half));
    e3(g, BR_X_PAND, LEAST, LANE, SEG);
    e3(g, BR_X_POR, MOST, MOST, LEAST);
    switch (mode) {
    case BR_KM_SHFL_UP: e3(g, BR_X_PSUBD, FROM, LANE, BY); break;
    case BR_KM_SHFL_DOWN: e3(g, BR_X_PADDD, FROM, LANE, BY); break;
    case BR_KM_SHFL_BFLY: e3(g, BR_X_PXOR, FROM, LANE, BY); break;
    default:
        e3(g, BR_X_PANDN, FROM, SEG, BY);
        e3(g, BR_X_POR, FROM, FROM, LEAST);
        break;
    }
    e3i(g, BR_X_ZPCMPD, 3, FROM, MOST, mode == BR_KM_SHFL_UP ? 5 : 2);
    br_x86_put(g->a, BR_X_ZBLENDD,
               (br_x86_arg[]){br_x86_reg(FROM), br_x86_reg(LANE),
                              br_x86_reg(FROM), br_x86_reg(3)});
}

/* The same where all is known. */
static void
known_sources(gen *g, const br_kins *i, unsigned half)
{
    uint32_t by = (uint32_t)g->f->vals.at[arg_of(g, i, 1)].bits;
    uint32_t c = (uint32_t)g->f->vals.at[arg_of(g, i, 2)].bits;
    uint32_t from[X86_MOST], in_range = 0;

    for (unsigned k = 0; k < X86_MOST; k++) {
        bool ok;

        from[k] = x86_lane_from(br_kmod(i->mods, BR_KF_SUB),
                                half * X86_MOST + k, by, c, &ok);
        in_range |= (uint32_t)ok << k;
    }
    em(g, BR_X_MOVUPS_L, 2, x86_const_row(g, from));
    if (in_range == 0xffff) {
        e3(g, BR_X_KXNORW, 3, 3, 3);
    } else {
        em(g, BR_X_KMOVW, 3, x86_const(g, in_range));
    }
}

static bool
shuffle(gen *g, const br_kins *i)
{
    bool known = is_const(g, arg_of(g, i, 1)) && is_const(g, arg_of(g, i, 2));
    int32_t exec = (int32_t)offsetof(x86_ctx, exec);

    if (cls_of(g, arg_of(g, i, 0)) != BR_KC_B32)
        return false;
    g->z = true;
    for (unsigned h = 0; h < 2; h++) {
        lanes_of(g, arg_of(g, i, 0), h, h);
        if (g->wide)
            continue;
        em(g, BR_X_KMOVW, 1 + h, br_x86_mem(RBX, exec + 2 * (int32_t)h));
        br_x86_put(
            g->a, BR_X_ZMOVAPS_Z, /* a lane that does not run gives 0 */
            (br_x86_arg[]){br_x86_reg(h), br_x86_reg(h), br_x86_reg(1 + h)});
    }
    for (unsigned h = 0; h < 2; h++) {
        br_x86_arg to = slot_at(g, i->res, 64 * h);
        br_x86_arg hit = slot_at(g, i->res + 1, 2 * h);

        (known ? known_sources : sources)(g, i, h);
        e3(g, BR_X_ZPERMI2D, 2, 0, 1);
        if (g->wide) {
            es(g, BR_X_MOVUPS_S, to, 2);
            es(g, BR_X_KMOVW_S, hit, 3);
            continue;
        }
        br_x86_put(g->a, BR_X_ZMOVUPS_SK,
                   (br_x86_arg[]){to, br_x86_reg(2), br_x86_reg(1 + h)});
        em(g, BR_X_KMOVW, 4, hit);
        e3(g, BR_X_KANDNW, 4, 1 + h, 4);
        e3(g, BR_X_KANDW, 3, 3, 1 + h);
        e3(g, BR_X_KORW, 3, 3, 4);
        es(g, BR_X_KMOVW_S, hit, 3);
    }
    g->z = false;
    return true;
}

/* ---- atomics of shared memory --------------------------------------------- */

static br_x86_op
combine(const br_kins *i)
{
    switch (br_kmod(i->mods, BR_KF_SUB)) {
    case BR_KM_ATOM_ADD: return BR_X_ADD32;
    case BR_KM_ATOM_AND: return BR_X_AND32;
    case BR_KM_ATOM_OR: return BR_X_OR32;
    case BR_KM_ATOM_XOR: return BR_X_XOR32;
    default: return BR_X_COUNT;
    }
}

/* To slow unless all lanes that run are inside and aligned. */
static void
inside(gen *g, const br_kins *i, uint32_t slow)
{
    uint32_t addr = arg_of(g, i, 0);
    int32_t exec = (int32_t)offsetof(x86_ctx, exec);

    em(g, BR_X_MOV64, RAX, x86_ctx_at(offsetof(x86_ctx, shared_bytes)));
    ei(g, BR_X_SUB64_I, br_x86_reg(RAX), 4);
    ej(g, BR_X_JB, slow);
    g->z = true;
    e2(g, BR_X_ZBCASTQ_R, 1, RAX);
    em(g, BR_X_BCASTQ, 2, x86_const(g, (uint64_t)i->imm));
    e3(g, BR_X_KXORW, 2, 2, 2);
    e3(g, BR_X_KXNORW, 1, 1, 1);
    for (unsigned p = 0; p < KI_LANES / 8; p++) {
        if (!g->wide)
            em(g, BR_X_KMOVB, 1, br_x86_mem(RBX, exec + (int32_t)p));
        e3m(g, BR_X_PADDQ, 0, 2, slot_at(g, addr, 64 * p));
        br_x86_put(g->a, BR_X_ZPCMPUQ_K,
                   (br_x86_arg[]){br_x86_reg(3), br_x86_reg(0), br_x86_reg(1),
                                  br_x86_imm(6), br_x86_reg(1)});
        br_x86_put(g->a, BR_X_ZPTESTMQ_KB,
                   (br_x86_arg[]){br_x86_reg(4), br_x86_reg(0), x86_const(g, 3),
                                  br_x86_reg(1)});
        e3(g, BR_X_KORW, 2, 2, 3);
        e3(g, BR_X_KORW, 2, 2, 4);
    }
    e2(g, BR_X_KORTESTW, 2, 2);
    g->z = false;
    ej(g, BR_X_JNE, slow);
}

/* ecx: the lane; rsi: shared memory; edi: the value, if it is one for all. */
static bool
atomic(gen *g, const br_kins *i, uint32_t slow)
{
    uint32_t addr = arg_of(g, i, 0), v = arg_of(g, i, 1);
    uint32_t top = br_x86_label(g->a), next = br_x86_label(g->a);
    const br_ktinfo *t = &br_ktinfo_of[i->type];
    br_x86_op op = combine(i);
    br_x86_arg at;

    if (op == BR_X_COUNT || t->kind == 'F' || t->cls != BR_KC_B32 ||
        br_kmod(i->mods, BR_KF_SPACE) != BR_KM_SPACE_SHARED ||
        i->imm != (int32_t)i->imm || alike(g, addr) || x86_even(g->fn, addr) ||
        (!alike(g, v) && x86_even(g->fn, v)))
        return false;
    inside(g, i, slow);
    em(g, BR_X_MOV64, RSI, x86_ctx_at(offsetof(x86_ctx, shared)));
    if (alike(g, v))
        number(g, v, RDI);
    e2(g, BR_X_XOR32, RCX, RCX);
    br_x86_bind(g->a, top);
    if (!g->wide) {
        e2(g, BR_X_BT32, R13, RCX);
        ej(g, BR_X_JAE, next);
    }
    em(g, BR_X_MOV64, RDX,
       br_x86_memx(R12, RCX, 8, (int32_t)g->fn->slot[addr]));
    at = br_x86_memx(RSI, RDX, 1, (int32_t)i->imm);
    em(g, BR_X_MOV32, RAX, at);
    es(g, BR_X_MOV32_S, br_x86_memx(R12, RCX, 4, (int32_t)g->fn->slot[i->res]),
       RAX);
    if (alike(g, v))
        e2(g, op, RAX, RDI);
    else
        em(g, op, RAX, br_x86_memx(R12, RCX, 4, (int32_t)g->fn->slot[v]));
    es(g, BR_X_MOV32_S, at, RAX);
    br_x86_bind(g->a, next);
    ei(g, BR_X_SUB32_I, br_x86_reg(RCX), -1);
    ei(g, BR_X_CMP32_I, br_x86_reg(RCX), KI_LANES);
    ej(g, BR_X_JNE, top);
    return true;
}

/* ---- the choice ----------------------------------------------------------- */

x86_by
x86_lanes(gen *g, const br_kins *i, uint32_t slow)
{
    bool ok = false;

    if (!g->zmm)
        return X86_BY_C;
    switch (i->op) {
    case BR_K_WARPBAR: ok = true; break; /* memory is in order */
    case BR_K_VOTE:
    case BR_K_BALLOT:
    case BR_K_ACTIVE: ok = vote(g, i); break;
    case BR_K_SHFL: ok = shuffle(g, i); break;
    case BR_K_ATOM: return atomic(g, i, slow) ? X86_BY_BOTH : X86_BY_C;
    default: break;
    }
    return ok ? X86_BY_CODE : X86_BY_C;
}
