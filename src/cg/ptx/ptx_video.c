/* ptx_video.c - the scalar video instructions: vadd, vsub, vabsdiff, vmin, vmax, vshl,
 * vshr, vset, vmad.
 *
 *   d{.to} = op2(saturate(op(a{.from}, b{.from})), c)
 *
 * Bytes and halves of registers are extended as their types say, the operation has more
 * bits than the result (here 64), .sat cuts it to the result's type and place. What goes
 * into a place leaves the rest of c; else c is the second operation's.
 *
 * Those of several numbers in a word (vadd4 ...) are in ptx_lower_alu.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

static bool
is_signed(unsigned type)
{
    return type == BR_KT_S32;
}

/* Where a place of a register begins, and its bits. */
static unsigned
place_of(const px_opnd *o, unsigned *bits)
{
    const unsigned sel = o->kind == O_REG ? (unsigned)o->imm : 0;

    *bits = sel == 0 ? 32 : sel <= 4 ? 8 : 16;
    return sel == 0 ? 0 : sel <= 4 ? 8 * (sel - 1) : 16 * (sel - 5);
}

/* An operand as 64 bits. */
static bool
source(px_lower *l, const px_ins *ins, unsigned n, unsigned type, uint32_t *v)
{
    px_opnd o = *px_op(l, ins, n);
    unsigned bits, at = place_of(&o, &bits);
    uint32_t args[3];

    o.imm = o.kind == O_REG ? 0 : o.imm;
    o.neg = false; /* vmad looks at it */
    if (!px_src(l, &o, BR_KT_B32, v))
        return false;
    if (bits < 32) {
        args[0] = *v;
        args[1] = px_k(l, BR_KC_B32, at);
        args[2] = px_k(l, BR_KC_B32, bits);
        *v = px_do(l, BR_K_BFE, type, args, 3);
    }
    *v = px_resize(l, *v, BR_KC_B64, is_signed(type));
    return true;
}

static uint32_t
compare(px_lower *l, unsigned cmp, uint32_t a, uint32_t b)
{
    br_kins i = {.op = BR_K_SETP, .type = BR_KT_S64, .n_arg = 2};

    i.mods = br_kmod_put(BR_KF_CMP, cmp);
    return px_emit(l, &i, (uint32_t[]){a, b});
}

/* vset: 1 or 0. */
static bool
compared(px_lower *l, uint32_t a, uint32_t b, uint32_t *v)
{
    static const uint8_t cmp[][2] = {
        {PM_EQ, BR_KM_CMP_EQ}, {PM_NE, BR_KM_CMP_NE}, {PM_LT, BR_KM_CMP_LT},
        {PM_LE, BR_KM_CMP_LE}, {PM_GT, BR_KM_CMP_GT}, {PM_GE, BR_KM_CMP_GE}};

    for (size_t k = 0; k < BR_COUNT(cmp); k++)
        if (px_has(l->opc, (px_mod)cmp[k][0])) {
            const uint32_t args[3] = {px_k(l, BR_KC_B64, 1),
                                      px_k(l, BR_KC_B64, 0),
                                      compare(l, cmp[k][1], a, b)};

            *v = px_do(l, BR_K_SELECT, BR_KT_B64, args, 3);
            return true;
        }
    return PX_NO(l, "the comparison is missing");
}

/* Left by 32 bits no number fits into 64: what is to be cut goes by 31 at most, is cut to
 * more than any result has, and goes on by the last one. */
static uint32_t
shifted_far(px_lower *l, uint32_t a, uint32_t b)
{
    const uint32_t most = px_k(l, BR_KC_B64, 1ull << 40);
    const uint32_t least = px_k(l, BR_KC_B64, -(1ull << 40));
    const uint32_t by =
        px_do2(l, BR_K_MIN, BR_KT_U32, b, px_k(l, BR_KC_B32, 31));
    uint32_t v = px_do2(l, BR_K_SHL, BR_KT_B64, a, by);

    v = px_do2(l, BR_K_MIN, BR_KT_S64, v, most);
    v = px_do2(l, BR_K_MAX, BR_KT_S64, v, least);
    return px_do2(l, BR_K_SHL, BR_KT_B64, v,
                  px_do2(l, BR_K_SUB, BR_KT_U32, b, by));
}

/* A shift is by 32 at most, or by the low five bits. */
static bool
shifted(px_lower *l, uint32_t a, uint32_t b, uint32_t *v)
{
    const bool wrap = px_has(l->opc, PM_WRAP);

    if (wrap == px_has(l->opc, PM_CLAMP))
        return PX_NO(l, "a shift is .clamp or .wrap");
    b = wrap ? px_do2(l, BR_K_AND, BR_KT_B64, b, px_k(l, BR_KC_B64, 31))
             : px_do2(l, BR_K_MIN, BR_KT_S64, b, px_k(l, BR_KC_B64, 32));
    b = px_resize(l, b, BR_KC_B32, false);
    *v = l->opc->root->kop == BR_K_SHR ? px_do2(l, BR_K_SHR, BR_KT_S64, a, b)
         : px_has(l->opc, PM_SAT)      ? shifted_far(l, a, b)
                                       : px_do2(l, BR_K_SHL, BR_KT_B64, a, b);
    return true;
}

static bool
operation(px_lower *l, uint32_t a, uint32_t b, uint32_t *v)
{
    const br_kop op = (br_kop)l->opc->root->kop;

    switch (op) {
    case BR_K_SETP: return compared(l, a, b, v);
    case BR_K_SHL:
    case BR_K_SHR: return shifted(l, a, b, v);
    case BR_K_ABSDIFF:
        *v =
            px_do2(l, BR_K_SUB, BR_KT_S64, px_do2(l, BR_K_MAX, BR_KT_S64, a, b),
                   px_do2(l, BR_K_MIN, BR_KT_S64, a, b));
        return true;
    default: *v = px_do2(l, op, BR_KT_S64, a, b); return true;
    }
}

/* To the range of `bits` bits of the result's type. */
static uint32_t
saturated(px_lower *l, uint32_t v, unsigned type, unsigned bits)
{
    const int64_t high = (1ll << (bits - is_signed(type))) - 1;
    const int64_t low = is_signed(type) ? -high - 1 : 0;

    v = px_do2(l, BR_K_MIN, BR_KT_S64, v, px_k(l, BR_KC_B64, (uint64_t)high));
    return px_do2(l, BR_K_MAX, BR_KT_S64, v, px_k(l, BR_KC_B64, (uint64_t)low));
}

/* With c: into a place of it, or with the second operation. */
static bool
second(px_lower *l, const px_ins *ins, unsigned type, uint32_t *v)
{
    unsigned bits, at = place_of(px_op(l, ins, 0), &bits);
    const bool add = px_has(l->opc, PM_ADD), min = px_has(l->opc, PM_MIN);
    uint32_t c, args[4];

    if ((bits < 32) == (add || min || px_has(l->opc, PM_MAX)) ||
        !PX_SRC(l, ins, 3, BR_KT_B32, &c))
        return PX_NO(l, "the fourth operand has no use");
    args[0] = *v;
    args[1] = c;
    args[2] = px_k(l, BR_KC_B32, at);
    args[3] = px_k(l, BR_KC_B32, bits);
    *v = bits < 32 ? px_do(l, BR_K_BFI, BR_KT_B32, args, 4)
         : add     ? px_do2(l, BR_K_ADD, type, *v, c)
                   : px_do2(l, min ? BR_K_MIN : BR_K_MAX, type, *v, c);
    return true;
}

/* vadd.dtype.atype.btype, vset.atype.btype. */
bool
px_l_video(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    const bool set = o->root->kop == BR_K_SETP;
    const unsigned dt = set ? BR_KT_U32 : o->types[0];
    const unsigned at = o->types[!set], bt = o->types[set ? 1 : 2];
    px_opnd d = *px_op(l, ins, 0);
    unsigned bits;
    uint32_t a, b, v;

    (void)place_of(&d, &bits);
    if (o->n_types != 3u - set || (ins->n_op != 3 && ins->n_op != 4) ||
        (bits < 32 && ins->n_op != 4))
        return PX_NO(l, "the number of operands is wrong");
    for (unsigned k = 0; k < o->n_types; k++)
        if (o->types[k] != BR_KT_S32 && o->types[k] != BR_KT_U32)
            return PX_NO(l, "the types do not fit");
    if (!source(l, ins, 1, at, &a) || !source(l, ins, 2, bt, &b) ||
        !operation(l, a, b, &v))
        return false;
    if (px_has(o, PM_SAT))
        v = saturated(l, v, dt, bits);
    v = px_resize(l, v, BR_KC_B32, false);
    if (ins->n_op == 4 && !second(l, ins, dt, &v))
        return false;
    d.imm = 0;
    return px_dst(l, &d, BR_KT_B32, v);
}

/* ---- vmad --------------------------------------------------------------- */

typedef struct sum { /* a * b + c, and what of it is less than 0 */
    uint32_t product;
    bool is_signed, product_neg, c_neg;
} sum;

/* To 32 bits. What is below 0 because it was negated, of factors without a sign, can
 * have 65 bits: such a large product is looked at by itself, which no shift makes small
 * enough to fit. */
static uint32_t
cut(px_lower *l, const sum *s, uint32_t v, bool factors_signed)
{
    const uint32_t large = px_k(l, BR_KC_B64, 1ull << 62);
    const int64_t end = s->product_neg ? INT32_MIN : INT32_MAX;
    br_kins i = {.op = BR_K_SETP, .type = BR_KT_U64, .n_arg = 2};
    uint32_t args[3];

    if (!s->is_signed)
        return px_do2(l, BR_K_MIN, BR_KT_U64, v,
                      px_k(l, BR_KC_B64, UINT32_MAX));
    v = saturated(l, v, BR_KT_S32, 32);
    if (factors_signed)
        return v;
    i.mods = br_kmod_put(BR_KF_CMP, BR_KM_CMP_GE);
    args[0] = px_k(l, BR_KC_B64, (uint64_t)end);
    args[1] = v;
    args[2] = px_emit(l, &i, (uint32_t[]){s->product, large});
    return px_do(l, BR_K_SELECT, BR_KT_B64, args, 3);
}

static uint32_t
total(px_lower *l, const sum *s, uint32_t c)
{
    uint32_t v = s->product_neg ? px_do2(l, BR_K_SUB, BR_KT_S64, c, s->product)
                 : s->c_neg     ? px_do2(l, BR_K_SUB, BR_KT_S64, s->product, c)
                                : px_do2(l, BR_K_ADD, BR_KT_S64, s->product, c);

    return px_has(l->opc, PM_PO)
               ? px_do2(l, BR_K_ADD, BR_KT_S64, v, px_k(l, BR_KC_B64, 1))
               : v;
}

/* vmad.dtype.atype.btype{.po}{.sat}{.shr7, .shr15} d, {-}a, {-}b, {-}c. The product is
 * negated where one of a and b is; that, or c is. */
bool
px_l_vmad(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    const unsigned by = px_has(o, PM_SHR7) ? 7 : px_has(o, PM_SHR15) ? 15 : 0;
    const unsigned at = o->types[1], bt = o->types[2];
    const bool factors = is_signed(at) || is_signed(bt);
    const px_opnd *d = px_op(l, ins, 0);
    px_opnd third = *px_op(l, ins, 3);
    sum s = {.c_neg = third.neg};
    uint32_t a, b, c, v;

    if (o->n_types != 3 || ins->n_op != 4 || d->imm ||
        (third.kind == O_REG && third.imm))
        return PX_NO(l, "the number of operands is wrong");
    for (unsigned k = 0; k < 3; k++)
        if (o->types[k] != BR_KT_S32 && o->types[k] != BR_KT_U32)
            return PX_NO(l, "the types do not fit");
    s.product_neg = px_op(l, ins, 1)->neg != px_op(l, ins, 2)->neg;
    if (s.c_neg && s.product_neg)
        return PX_NO(l, "the product is negated, or c");
    if (px_has(o, PM_PO) &&
        (s.c_neg || px_op(l, ins, 1)->neg || px_op(l, ins, 2)->neg))
        return PX_NO(l, ".po negates nothing");
    third.neg = false;
    s.is_signed = factors || s.product_neg || s.c_neg;
    if (!source(l, ins, 1, at, &a) || !source(l, ins, 2, bt, &b) ||
        !px_src(l, &third, BR_KT_B32, &c))
        return false;
    s.product = px_do2(l, BR_K_MUL, BR_KT_S64, a, b);
    v = total(l, &s, px_resize(l, c, BR_KC_B64, s.is_signed));
    if (by)
        v = px_do2(l, BR_K_SHR, s.is_signed ? BR_KT_S64 : BR_KT_U64, v,
                   px_k(l, BR_KC_B32, by));
    if (px_has(o, PM_SAT))
        v = cut(l, &s, v, factors);
    return px_dst(l, d, BR_KT_B32, px_resize(l, v, BR_KC_B32, false));
}
