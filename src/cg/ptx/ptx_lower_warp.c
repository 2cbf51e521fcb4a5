/* ptx_lower_warp.c - what concerns other lanes, the block, copies in flight.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

/* d or d|p */
static bool
dst_pair(px_lower *l, const px_opnd *d, unsigned type, uint32_t v)
{
    if (d->kind != O_PAIR)
        return px_dst(l, d, type, v);
    return px_dst(l, &l->p->ops.at[d->a], type, v) &&
           px_dst(l, &l->p->ops.at[d->b], BR_KT_PRED, v + 1);
}

/* The mask, or all lanes in the forms before .sync. */
static bool
mask(px_lower *l, const px_ins *ins, unsigned n, uint32_t *v)
{
    if (px_has(l->opc, PM_SYNC))
        return PX_SRC(l, ins, n, BR_KT_B32, v);
    *v = px_do(l, BR_K_ACTIVE, 0, NULL, 0);
    return true;
}

static unsigned
one_of(const px_opcode *o, const uint8_t (*table)[2], size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (px_has(o, (px_mod)table[k][0]))
            return table[k][1];
    return 0;
}

bool
px_l_shfl(px_lower *l, const px_ins *ins)
{
    static const uint8_t modes[][2] = {{PM_UP, BR_KM_SHFL_UP},
                                       {PM_DOWN, BR_KM_SHFL_DOWN},
                                       {PM_BFLY, BR_KM_SHFL_BFLY},
                                       {PM_IDX, BR_KM_SHFL_IDX}};
    br_kins i = {.op = BR_K_SHFL, .type = BR_KT_B32, .n_arg = 4};
    uint32_t args[4];

    i.mods = br_kmod_put(BR_KF_SUB, one_of(l->opc, modes, BR_COUNT(modes)));
    for (unsigned k = 0; k < 3; k++)
        if (!PX_SRC(l, ins, k + 1, BR_KT_B32, &args[k]))
            return false;
    return mask(l, ins, 4, &args[3]) &&
           dst_pair(l, px_op(l, ins, 0), BR_KT_B32, px_emit(l, &i, args));
}

bool
px_l_vote(px_lower *l, const px_ins *ins)
{
    static const uint8_t modes[][2] = {{PM_ANY, BR_KM_VOTE_ANY},
                                       {PM_ALL, BR_KM_VOTE_ALL},
                                       {PM_UNI, BR_KM_VOTE_UNI}};
    bool ballot = px_has(l->opc, PM_BALLOT);
    br_kins i = {.op = ballot ? BR_K_BALLOT : BR_K_VOTE, .n_arg = 2};
    uint32_t args[2];

    if (!PX_SRC(l, ins, 1, BR_KT_PRED, &args[0]) || !mask(l, ins, 2, &args[1]))
        return false;
    if (!ballot)
        i.mods = br_kmod_put(BR_KF_SUB, one_of(l->opc, modes, BR_COUNT(modes)));
    return px_dst(l, px_op(l, ins, 0), ballot ? BR_KT_B32 : BR_KT_PRED,
                  px_emit(l, &i, args));
}

bool
px_l_match(px_lower *l, const px_ins *ins)
{
    br_kins i = {.op = px_has(l->opc, PM_ALL) ? BR_K_MATCHALL : BR_K_MATCHANY,
                 .type = l->opc->types[0],
                 .n_arg = 2};
    uint32_t args[2];

    if (!PX_SRC(l, ins, 1, i.type, &args[0]) || !mask(l, ins, 2, &args[1]))
        return false;
    return dst_pair(l, px_op(l, ins, 0), BR_KT_B32, px_emit(l, &i, args));
}

bool
px_l_redux(px_lower *l, const px_ins *ins)
{
    static const uint8_t modes[][2] = {
        {PM_ADD, BR_KM_ATOM_ADD}, {PM_MIN, BR_KM_ATOM_MIN},
        {PM_MAX, BR_KM_ATOM_MAX}, {PM_AND, BR_KM_ATOM_AND},
        {PM_OR, BR_KM_ATOM_OR},   {PM_XOR, BR_KM_ATOM_XOR}};
    br_kins i = {.op = BR_K_REDUX, .type = l->opc->types[0], .n_arg = 2};
    uint32_t args[2];

    i.mods = br_kmod_put(BR_KF_SUB, one_of(l->opc, modes, BR_COUNT(modes))) |
             br_kmod_put(BR_KF_NAN, px_has(l->opc, PM_NAN)) |
             br_kmod_put(BR_KF_XABS, px_has(l->opc, PM_ABS));
    if (br_ktinfo_of[i.type].bytes != 4)
        return PX_NO(l, "the type does not fit");
    if (!PX_SRC(l, ins, 1, i.type, &args[0]) || !mask(l, ins, 2, &args[1]))
        return false;
    return px_dst(l, px_op(l, ins, 0), i.type, px_emit(l, &i, args));
}

bool
px_l_elect(px_lower *l, const px_ins *ins)
{
    br_kins i = {.op = BR_K_ELECT, .n_arg = 1};
    uint32_t m;

    if (!PX_SRC(l, ins, 1, BR_KT_B32, &m))
        return false;
    return dst_pair(l, px_op(l, ins, 0), BR_KT_B32, px_emit(l, &i, &m));
}

/* ---- matrices ----------------------------------------------------------- */

uint32_t
px_lane(px_lower *l)
{
    br_kins i = {.op = BR_K_SREG, .type = BR_KT_B32, .imm = BR_KS_LANEID};

    return px_emit(l, &i, NULL);
}

uint32_t
px_from_lane(px_lower *l, uint32_t v, uint32_t lane)
{
    br_kins i = {.op = BR_K_SHFL, .type = BR_KT_B32, .n_arg = 4};
    const uint32_t args[4] = {v, lane, px_k(l, BR_KC_B32, 31),
                              px_k(l, BR_KC_B32, UINT32_MAX)};

    i.mods = br_kmod_put(BR_KF_SUB, BR_KM_SHFL_IDX);
    return px_emit(l, &i, args);
}

void
px_lines(px_lower *l, uint32_t *row, uint32_t *col)
{
    const uint32_t lane = px_lane(l);

    *row = px_do2(l, BR_K_AND, BR_KT_B32, lane, px_k(l, BR_KC_B32, 28));
    *col = px_do2(l, BR_K_SHL, BR_KT_B32,
                  px_do2(l, BR_K_AND, BR_KT_B32, lane, px_k(l, BR_KC_B32, 3)),
                  px_k(l, BR_KC_B32, 3));
}

/* All elements of a vector operand, or the one register. */
bool
px_words(px_lower *l, const px_opnd *o, br_kclass c, uint32_t *args,
         uint16_t *n, unsigned most)
{
    uint32_t count = o->kind == O_VEC ? o->b : 1;

    if (count > most)
        return PX_NO(l, "the fragment has too many registers");
    for (uint32_t k = 0; k < count; k++)
        if (!px_src_class(l, o->kind == O_VEC ? &l->p->ops.at[o->a + k] : o, c,
                          &args[(*n)++]))
            return false;
    return true;
}

bool
px_dst_words(px_lower *l, const px_opnd *d, unsigned type, const uint32_t *v,
             unsigned n)
{
    if ((d->kind == O_VEC ? d->b : 1) != n)
        return PX_NO(l, "the number of result registers is wrong");
    for (unsigned k = 0; k < n; k++)
        if (!px_dst(l, d->kind == O_VEC ? &l->p->ops.at[d->a + k] : d, type,
                    v[k]))
            return false;
    return true;
}

/* All results of one instruction, of which v is the first. */
static bool
dst_results(px_lower *l, const px_opnd *d, uint32_t v, unsigned n)
{
    uint32_t all[4] = {v, v + 1, v + 2, v + 3};

    br_assert(n <= BR_COUNT(all));
    return px_dst_words(l, d, BR_KT_B32, all, n);
}

bool
px_l_mma(px_lower *l, const px_ins *ins)
{
    static const struct {
        uint8_t mod;
        uint8_t m, n, k;
    } shapes[] = {{PM_M8N8K16, 8, 8, 16},
                  {PM_M16N8K4, 16, 8, 4},
                  {PM_M16N8K8, 16, 8, 8},
                  {PM_M16N8K16, 16, 8, 16},
                  {PM_M16N8K32, 16, 8, 32}};
    const px_opcode *o = l->opc;
    br_kins i = {.op = BR_K_MMA, .type2 = o->types[1]};
    unsigned a_bits, m = 0, n = 0, k = 0, d_words;
    uint32_t args[16];

    for (size_t s = 0; s < BR_COUNT(shapes); s++)
        if (px_has(o, (px_mod)shapes[s].mod)) {
            m = shapes[s].m;
            n = shapes[s].n;
            k = shapes[s].k;
        }
    if (px_has(o, PM_S4) || px_has(o, PM_U4) || px_has(o, PM_B1))
        return px_mma_narrow(l, ins);
    if (px_has(o, PM_M8N8K4) && o->n_types == 4 && o->types[0] == BR_KT_F64 &&
        o->types[1] == BR_KT_F64 && o->types[2] == BR_KT_F64 &&
        o->types[3] == BR_KT_F64)
        return px_mma_f64(l, ins);
    if (!m || o->n_types != 4 || o->types[0] != o->types[3])
        return PX_NO(l, "this shape or these types are not supported");
    i.type = o->types[0] == BR_KT_F16 ? BR_KT_F16X2 : o->types[0];
    a_bits = i.type2 == BR_KT_TF32 ? 32 : br_ktinfo_of[i.type2].bytes * 8u;
    if ((i.type != BR_KT_F32 && i.type != BR_KT_F16X2 && i.type != BR_KT_S32) ||
        (i.type == BR_KT_S32) != (br_ktinfo_of[i.type2].cat == '8') ||
        br_ktinfo_of[o->types[2]].bytes != br_ktinfo_of[i.type2].bytes)
        return PX_NO(l, "this combination of types is not supported");
    d_words = m * n / 32 / (i.type == BR_KT_F16X2 ? 2 : 1);
    i.imm = (int64_t)o->types[2] << 24 | (int64_t)(m << 16 | n << 8 | k);
    if (px_has(o, PM_SATFINITE))
        i.mods = br_kmod_put(BR_KF_SAT, BR_KM_SAT_SATFINITE);
    for (unsigned s = 1; s < 4; s++)
        if (!px_words(l, px_op(l, ins, s), BR_KC_B32, args, &i.n_arg, 4))
            return false;
    if (i.n_arg != m * k * a_bits / 1024 + n * k * a_bits / 1024 + d_words)
        return PX_NO(l, "the number of registers does not fit the shape");
    i.n_res = (uint8_t)d_words;
    return dst_results(l, px_op(l, ins, 0), px_emit(l, &i, args), d_words);
}

bool
px_l_ldmat(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    bool load = o->root->kop == BR_K_LDMATRIX;
    br_kins i = {.op = o->root->kop};
    unsigned n = px_has(o, PM_X4) ? 4 : px_has(o, PM_X2) ? 2 : 1;
    uint32_t args[8];

    if (!px_addr(l, px_op(l, ins, load), &args[i.n_arg++], &i.imm))
        return false;
    i.mods = br_kmod_put(BR_KF_SUB, px_has(o, PM_TRANS)) |
             br_kmod_put(BR_KF_SPACE, px_space(o));
    if (o->types[0] != BR_KT_B16 || !px_has(o, PM_M8N8))
        return PX_NO(l, "only 8x8 matrices of 16 bits are supported");
    if (load) {
        i.n_res = (uint8_t)n;
        return dst_results(l, px_op(l, ins, 0), px_emit(l, &i, args), n);
    }
    if (!px_words(l, px_op(l, ins, 1), BR_KC_B32, args, &i.n_arg, 4) ||
        i.n_arg != 1 + n)
        return PX_NO(l, "the number of registers does not fit");
    px_emit(l, &i, args);
    return true;
}

bool
px_l_movmat(px_lower *l, const px_ins *ins)
{
    br_kins i = {.op = BR_K_MOVMATRIX, .n_arg = 1};
    uint32_t a;

    if (!px_has(l->opc, PM_TRANS) || !PX_SRC(l, ins, 1, BR_KT_B32, &a))
        return false;
    i.mods = br_kmod_put(BR_KF_SUB, BR_KM_TRANS_TRANS);
    return px_dst(l, px_op(l, ins, 0), BR_KT_B32, px_emit(l, &i, &a));
}

/* ---- the block ---------------------------------------------------------- */

bool
px_l_bar(px_lower *l, const px_ins *ins)
{
    static const uint8_t reds[][2] = {{PM_POPC, BR_KM_BARRED_RPOPC},
                                      {PM_AND, BR_KM_BARRED_RAND},
                                      {PM_OR, BR_KM_BARRED_ROR}};
    const px_opcode *o = l->opc;
    bool red = px_has(o, PM_RED), warp = px_has(o, PM_WARP);
    br_kins i = {.op = red                    ? BR_K_BARRED
                       : warp                 ? BR_K_WARPBAR
                       : px_has(o, PM_ARRIVE) ? BR_K_BARRIVE
                                              : BR_K_BAR,
                 .n_arg = 2};
    unsigned n = ins->n_op - red * 2u, c;
    uint32_t args[3];

    if (px_has(o,
               PM_CLUSTER)) { /* who waits waits for all, who comes does not */
        if (px_has(o, PM_WAIT) == px_has(o, PM_ARRIVE) || ins->n_op)
            return PX_NO(l, "this barrier is not supported");
        args[0] = px_k(l, BR_KC_B32, BR_KBAR_CLUSTER);
        args[1] = px_k(l, BR_KC_B32, 0);
        if (px_has(o, PM_WAIT))
            px_emit(l, &i, args);
        return true;
    }
    if (!red && !px_has(o, PM_SYNC) && !px_has(o, PM_ARRIVE))
        return PX_NO(l, "this barrier is not supported");
    if (!PX_SRC(l, ins, red, BR_KT_B32, &args[0]))
        return false;
    args[1] = px_k(l, BR_KC_B32, 0);
    if (n > 1 && !PX_SRC(l, ins, red + 1u, BR_KT_B32, &args[1]))
        return false;
    if (warp)
        i.n_arg = 1;
    if (red) {
        c = ins->n_op - 1u;
        i.type = px_has(o, PM_POPC) ? BR_KT_B32 : BR_KT_PRED;
        i.mods = br_kmod_put(BR_KF_SUB, one_of(o, reds, BR_COUNT(reds)));
        i.n_arg = 3;
        if (!PX_SRC(l, ins, c, BR_KT_PRED, &args[2]))
            return false;
        /* Nothing may follow the barrier in its block: no extension. */
        if (px_op(l, ins, 0)->kind == O_REG &&
            br_ktinfo_of[l->p->regs.at[px_op(l, ins, 0)->a]].cls !=
                br_ktinfo_of[i.type].cls)
            return PX_NO(l, "the register of the result does not fit");
        return px_dst(l, px_op(l, ins, 0), i.type, px_emit(l, &i, args));
    }
    px_emit(l, &i, args);
    return true;
}

/* ---- copies and their barriers ------------------------------------------ */

/* cp.async.bulk: [to], [from], bytes, [mbarrier] or, out of shared memory, in a
 * group. To several blocks of a cluster it copies nothing. */
static bool
bulk(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    bool fold = px_has(o, PM_REDUCE);
    br_kins i = {.op = fold ? BR_K_CPREDUCE : BR_K_CPBULK};
    unsigned n = px_has(o, PM_MBARTX) ? 4 : 3;
    uint32_t args[4];
    int64_t plus;

    if ((!px_has(o, PM_MBARTX) && !px_has(o, PM_BULKGROUP)) ||
        o->n_types != fold)
        return PX_NO(l, "this copy is not supported");
    for (unsigned k = 0; k < n; k++) {
        if (k == 2) {
            if (!PX_SRC(l, ins, k, BR_KT_B32, &args[k]))
                return false;
            continue;
        }
        if (!px_addr(l, px_op(l, ins, k), &args[k], &plus))
            return false;
        if (plus)
            args[k] = px_do2(l, BR_K_ADD, BR_KT_U64, args[k],
                             px_k(l, BR_KC_B64, (uint64_t)plus));
    }
    if (px_has(o, PM_MULTICAST)) {
        if (l->f->cluster[0] * l->f->cluster[1] * l->f->cluster[2] > 1)
            return PX_NO(l, "copies to several blocks are not supported");
        args[0] = px_if_alone(l, args[0]);
    }
    if (n == 4 && !px_has(o, PM_GLOBAL)) { /* from shared memory, too */
        br_kins to = {.op = BR_K_TOGEN, .n_arg = 1};

        to.mods = br_kmod_put(BR_KF_SPACE, BR_KM_SPACE_SHARED);
        args[1] = px_emit(l, &to, &args[1]);
    }
    i.mods = br_kmod_put(BR_KF_SPACE,
                         n == 4 ? BR_KM_SPACE_SHARED : BR_KM_SPACE_GLOBAL);
    if (fold) {
        i.type = o->types[0];
        i.mods |= px_atom_op(o);
    }
    i.n_arg = (uint16_t)n;
    px_emit(l, &i, args);
    return true;
}

/* cp.async.mbarrier.arrive: an mbarrier hears when the thread's copies are there.
 * Here the thread waits for them and arrives itself, with .noinc: without, its
 * phase waits for one more, which that arrival is. */
static bool
arrive_after_copies(px_lower *l, const px_ins *ins)
{
    br_kins wait = {.op = BR_K_CPWAIT, .imm = -2};
    br_kins i = {.op = BR_K_MBARRIVE, .n_arg = 2};
    uint32_t args[2];

    if (!px_has(l->opc, PM_ARRIVE) ||
        !px_addr(l, px_op(l, ins, 0), &args[0], &i.imm))
        return PX_NO(l, "this copy is not supported");
    px_emit(l, &wait, NULL);
    if (!px_has(l->opc, PM_NOINC))
        return true;
    args[1] = px_k(l, BR_KC_B32, 1);
    px_emit(l, &i, args);
    return true;
}

bool
px_l_cp(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    const px_opnd *n = px_op(l, ins, px_has(o, PM_WAIT_GROUP) ? 0 : 2);
    br_kins i = {.op = BR_K_CPWAIT};
    int64_t plus[2];
    uint32_t args[3];

    if (!px_has(o, PM_ASYNC))
        return PX_NO(l, "this copy is not supported");
    if (px_has(o, PM_PREFETCH)) /* into a cache */
        return true;
    if (px_has(o, PM_BULK) && !px_has(o, PM_COMMIT_GROUP) &&
        !px_has(o, PM_WAIT_GROUP))
        return bulk(l, ins);
    if (px_has(o, PM_MBARRIER))
        return arrive_after_copies(l, ins);
    if (px_has(o, PM_COMMIT_GROUP) || px_has(o, PM_WAIT_ALL)) {
        i.imm = px_has(o, PM_WAIT_ALL) ? -2 : -1;
        px_emit(l, &i, NULL);
        return true;
    }
    if (n->kind != O_INT || n->imm > 1 << 20)
        return PX_NO(l, "a number is needed");
    i.imm = (int64_t)n->imm;
    if (px_has(o, PM_WAIT_GROUP)) {
        px_emit(l, &i, NULL);
        return true;
    }
    i.op = BR_K_CPASYNC;
    i.n_arg = 3;
    if (i.imm != 4 && i.imm != 8 && i.imm != 16)
        return PX_NO(l, "4, 8 or 16 bytes are copied");
    for (unsigned k = 0; k < 2; k++) {
        if (!px_addr(l, px_op(l, ins, k), &args[k], &plus[k]))
            return false;
        if (plus[k])
            args[k] = px_do2(l, BR_K_ADD, BR_KT_U64, args[k],
                             px_k(l, BR_KC_B64, (uint64_t)plus[k]));
    }
    args[2] = px_k(l, BR_KC_B32, (uint64_t)i.imm);
    if (ins->n_op > 3) {
        const px_opnd *s = px_op(l, ins, 3);

        /* The fourth says that nothing is read, or is a size, or the policy of a
         * cache: 64 bits. */
        if (s->kind == O_REG && l->p->regs.at[s->a] == BR_KT_PRED) {
            uint32_t pick[3] = {px_k(l, BR_KC_B32, 0), args[2], 0};

            if (!px_src_class(l, s, BR_KC_PRED, &pick[2]))
                return false;
            args[2] = px_do(l, BR_K_SELECT, BR_KT_B32, pick, 3);
        } else if (!(s->kind == O_REG && l->p->regs.at[s->a] == BR_KT_B64) &&
                   !px_src_class(l, s, BR_KC_B32, &args[2])) {
            return false;
        }
    }
    px_emit(l, &i, args);
    return true;
}

/* How many were missing at the arrival that gave the state. */
static bool
pending_count(px_lower *l, const px_ins *ins)
{
    uint32_t v;

    if (!PX_SRC(l, ins, 1, BR_KT_B64, &v))
        return false;
    v = px_do2(l, BR_K_AND, BR_KT_B64, v, px_k(l, BR_KC_B64, 0xffff));
    return px_dst(l, px_op(l, ins, 0), BR_KT_B32,
                  px_resize(l, v, BR_KC_B32, false));
}

bool
px_l_mbar(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    bool test = px_has(o, PM_TEST_WAIT) || px_has(o, PM_TRY_WAIT);
    bool has_dst = px_op(l, ins, 0)->kind != O_MEM;
    const px_opnd *n = px_op(l, ins, has_dst + 1u);
    br_kins i = {.op = BR_K_MBAR, .n_arg = 2};
    uint32_t args[2], v;
    unsigned sub = px_has(o, PM_INIT)          ? BR_KM_MB_INIT
                   : px_has(o, PM_INVAL)       ? BR_KM_MB_INVAL
                   : px_has(o, PM_EXPECT_TX)   ? BR_KM_MB_EXPECT
                   : px_has(o, PM_COMPLETE_TX) ? BR_KM_MB_COMPLETE
                                               : 0;

    if (px_has(o, PM_PENDING_COUNT))
        return pending_count(l, ins);
    if (!px_addr(l, px_op(l, ins, has_dst), &args[0], &i.imm))
        return false;
    args[1] = px_k(l, BR_KC_B32, sub == BR_KM_MB_INVAL ? 0 : 1);
    if (test && !px_has(o, PM_PARITY)) {
        i.op = BR_K_MBTEST;
        if (!px_src_class(l, n, BR_KC_B64, &args[1]))
            return false;
    } else if (n->kind != O_SINK && !px_src_class(l, n, BR_KC_B32, &args[1])) {
        return false;
    }
    if (test) {
        if (px_has(o, PM_PARITY))
            i.op = BR_K_MBPARITY;
        return px_dst(l, px_op(l, ins, 0), BR_KT_PRED, px_emit(l, &i, args));
    }
    if (sub) {
        i.mods = br_kmod_put(BR_KF_SUB, sub);
        px_emit(l, &i, args);
        i.mods = 0;
        args[1] = px_k(l, BR_KC_B32, 1);
    }
    if (px_has(o, PM_ARRIVE_DROP)) { /* no phase ends before it arrives */
        i.mods = br_kmod_put(BR_KF_SUB, BR_KM_MB_DROP);
        px_emit(l, &i, args);
        i.mods = 0;
    } else if (!px_has(o, PM_ARRIVE)) {
        return sub != 0;
    }
    i.op = BR_K_MBARRIVE;
    v = px_emit(l, &i, args);
    return !has_dst || px_dst(l, px_op(l, ins, 0), BR_KT_B64, v);
}
