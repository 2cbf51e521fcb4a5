/* ptx_lower_alu.c - arithmetic, bits, comparisons, moves, conversions.
 *
 * Most roots are an operation of KIR with the same operands: L_alu takes them by
 * its signature. The others are spelled out: mad is a product and a sum, set a
 * comparison and a choice, sub.cc an addition of the complement.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

/* ---- arithmetic --------------------------------------------------------- */

/* Modifiers of the operation's groups, from PTX's. */
static uint32_t
mods_for(const px_opcode *o, br_kop op)
{
    static const struct {
        uint8_t mod;
        char letter;
        uint16_t field;
        uint8_t value;
    } map[] = {
        {PM_RN, 'r', BR_KF_RND, 1},       {PM_RZ, 'r', BR_KF_RND, 2},
        {PM_RM, 'r', BR_KF_RND, 3},       {PM_RP, 'r', BR_KF_RND, 4},
        {PM_RNA, 'r', BR_KF_RND, 5},      {PM_RNI, 'r', BR_KF_RND, 6},
        {PM_RZI, 'r', BR_KF_RND, 7},      {PM_RMI, 'r', BR_KF_RND, 8},
        {PM_RPI, 'r', BR_KF_RND, 9},      {PM_APPROX, 'a', BR_KF_APPROX, 1},
        {PM_FULL, 'a', BR_KF_APPROX, 2},  {PM_FTZ, 'z', BR_KF_FTZ, 1},
        {PM_SAT, 's', BR_KF_SAT, 1},      {PM_SATFINITE, 's', BR_KF_SAT, 2},
        {PM_RELU, 'u', BR_KF_RELU, 1},    {PM_NAN, 'N', BR_KF_NAN, 1},
        {PM_XORSIGN, 'x', BR_KF_XABS, 1}, {PM_F4E, '1', BR_KF_SUB, 1},
        {PM_B4E, '1', BR_KF_SUB, 2},      {PM_RC8, '1', BR_KF_SUB, 3},
        {PM_ECL, '1', BR_KF_SUB, 4},      {PM_ECR, '1', BR_KF_SUB, 5},
        {PM_RC16, '1', BR_KF_SUB, 6},     {PM_CLAMP, '2', BR_KF_SUB, 1},
        {PM_WRAP, '2', BR_KF_SUB, 2},     {PM_SHIFTAMT, '3', BR_KF_SUB, 1},
        {PM_LO, '4', BR_KF_SUB, 1},       {PM_HI, '4', BR_KF_SUB, 2},
    };
    uint32_t mods = 0;

    for (size_t k = 0; k < BR_COUNT(map); k++)
        if (px_has(o, (px_mod)map[k].mod) &&
            strchr(br_kopinfo_of[op].groups, map[k].letter))
            mods |= br_kmod_put(map[k].field, map[k].value);
    return mods;
}

/* What says nothing about rounding rounds to nearest. */
static br_kins
start(const px_lower *l, br_kop op, unsigned type)
{
    br_kins i = {.op = (uint8_t)op, .type = (uint8_t)type};

    i.mods = mods_for(l->opc, op);
    if (br_ktinfo_of[type].kind == 'F' && !br_kmod(i.mods, BR_KF_RND) &&
        !br_kmod(i.mods, BR_KF_APPROX) &&
        strchr(br_kopinfo_of[op].groups, 'r') && op != BR_K_CVT)
        i.mods |= br_kmod_put(BR_KF_RND, BR_KM_RND_RN);
    return i;
}

/* Two f32 side by side: each by itself. */
static bool
two(px_lower *l, const px_ins *ins)
{
    br_kins i = start(l, l->opc->root->kop, BR_KT_F32);
    br_kins un = {.op = BR_K_UNPACK, .type = BR_KT_B64, .n_arg = 1};
    const unsigned n = i.op == BR_K_FMA ? 3 : 2;
    uint32_t args[2][3], v;

    if (l->opc->n_types != 1 || ins->n_op != n + 1)
        return PX_NO(l, "the number of operands is wrong");
    for (unsigned k = 0; k < n; k++) {
        if (!PX_SRC(l, ins, k + 1, BR_KT_B64, &v))
            return false;
        args[0][k] = px_emit(l, &un, &v);
        args[1][k] = args[0][k] + 1;
    }
    i.n_arg = (uint16_t)n;
    v = px_emit(l, &i, args[0]);
    return px_dst(l, px_op(l, ins, 0), BR_KT_B64,
                  px_do2(l, BR_K_PACK, BR_KT_B64, v, px_emit(l, &i, args[1])));
}

/* Operands 1.. by the signature; operand 0 takes the result. */
bool
px_l_alu(px_lower *l, const px_ins *ins)
{
    const char *sig = br_kopinfo_of[l->opc->root->kop].sig;
    br_kins i = start(l, l->opc->root->kop, l->opc->types[0]);
    uint32_t args[4], v;
    unsigned n = 0, type = i.type;
    bool relu = br_kmod(i.mods, BR_KF_RELU) && br_ktinfo_of[type].kind != 'F';
    bool three = (i.op == BR_K_MIN || i.op == BR_K_MAX) && ins->n_op == 4 &&
                 type == BR_KT_F32;

    if (px_has(l->opc, PM_F32X2))
        return two(l, ins);
    i.type2 = l->opc->types[1];
    if (br_kopinfo_of[i.op].types[0] == 0)
        i.type = 0;
    else if (!strchr(br_kopinfo_of[i.op].types, br_ktinfo_of[type].cat) &&
             strchr(br_kopinfo_of[i.op].types, 'b')) /* selp.f32 moves bits */
        i.type = (uint8_t)px_bits_type(type);
    if (!strchr(br_kopinfo_of[i.op].types, '/'))
        i.type2 = 0;
    for (sig = strchr(sig, ':') + 1; *sig; sig++, n++)
        if (!px_src_class(l, px_op(l, ins, n + 1), br_kclass_of(*sig, &i),
                          &args[n]))
            return false;
    i.n_arg = (uint16_t)n;
    if (ins->n_op != n + 1 + three)
        return PX_NO(l, "the number of operands is wrong");
    if (relu) /* of integers it is one more max */
        i.mods &= ~br_kmod_put(BR_KF_RELU, 1);
    v = px_emit(l, &i, args);
    if (relu)
        v = px_do2(l, BR_K_MAX, type, v, px_k(l, BR_KC_B32, 0));
    if (three) {
        args[0] = v;
        if (!PX_SRC(l, ins, 3, type, &args[1]))
            return false;
        v = px_emit(l, &i, args);
    }
    return px_dst(l, px_op(l, ins, 0), type, v);
}

static void
write_cc(px_lower *l, uint32_t carry)
{
    if (px_has(l->opc, PM_CC))
        px_write_reg(l, REG_CC, carry);
}

/* a + b + carry. A subtraction adds the complement: the flag is the carry of
 * that, so set where nothing was borrowed. */
static bool
with_carry(px_lower *l, const px_ins *ins, bool minus, uint32_t carry)
{
    unsigned t = l->opc->types[0];
    br_kins i = {.op = BR_K_ADDC, .type = (uint8_t)t, .n_arg = 3};
    uint32_t args[3] = {0, 0, carry}, v;

    if (!PX_SRC(l, ins, 1, t, &args[0]) || !PX_SRC(l, ins, 2, t, &args[1]))
        return false;
    if (minus)
        args[1] = px_do2(l, BR_K_XOR, px_bits_type(t), args[1],
                         px_k(l, (br_kclass)br_ktinfo_of[t].cls, ~0ull));
    v = px_emit(l, &i, args);
    write_cc(l, v + 1);
    return px_dst(l, px_op(l, ins, 0), t, v);
}

bool
px_l_add(px_lower *l, const px_ins *ins)
{
    bool minus = l->opc->root->kop == BR_K_SUB;

    if (!px_has(l->opc, PM_CC))
        return px_l_alu(l, ins);
    return with_carry(l, ins, minus, px_k(l, BR_KC_PRED, minus));
}

bool
px_l_carry(px_lower *l, const px_ins *ins)
{
    return with_carry(l, ins, l->opc->root->name[0] == 's',
                      px_read_reg(l, REG_CC));
}

static unsigned
wider(unsigned t)
{
    return t == BR_KT_U16   ? BR_KT_U32
           : t == BR_KT_S16 ? BR_KT_S32
           : t == BR_KT_U32 ? BR_KT_U64
           : t == BR_KT_S32 ? BR_KT_S64
                            : 0;
}

/* The product that lo, hi or wide names; *t becomes its type. */
static bool
product(px_lower *l, const px_ins *ins, unsigned *t, uint32_t *v)
{
    br_kop op = px_has(l->opc, PM_HI)     ? BR_K_MULHI
                : px_has(l->opc, PM_WIDE) ? BR_K_MULWIDE
                                          : BR_K_MUL;
    uint32_t a, b;

    if (op == BR_K_MULWIDE && !wider(*t))
        return PX_NO(l, "nothing is twice as wide");
    if (!PX_SRC(l, ins, 1, *t, &a) || !PX_SRC(l, ins, 2, *t, &b))
        return false;
    *v = px_do2(l, op, *t, a, b);
    if (op == BR_K_MULWIDE)
        *t = wider(*t);
    return true;
}

bool
px_l_mul(px_lower *l, const px_ins *ins)
{
    unsigned t = l->opc->types[0];
    uint32_t v;

    if (br_ktinfo_of[t].kind == 'F')
        return px_l_alu(l, ins);
    return product(l, ins, &t, &v) && px_dst(l, px_op(l, ins, 0), t, v);
}

bool
px_l_mad(px_lower *l, const px_ins *ins)
{
    unsigned t = l->opc->types[0];
    bool carry = br_text_is(br_text_z(l->opc->root->name), "madc");
    br_kins i = {.n_arg = 3};
    uint32_t args[3], v;

    if (br_ktinfo_of[t].kind == 'F') {
        i = start(l, BR_K_FMA, t);
        i.n_arg = 3;
        for (unsigned k = 0; k < 3; k++)
            if (!PX_SRC(l, ins, k + 1, t, &args[k]))
                return false;
        return px_dst(l, px_op(l, ins, 0), t, px_emit(l, &i, args));
    }
    if (!product(l, ins, &t, &args[0]) || !PX_SRC(l, ins, 3, t, &args[1]))
        return false;
    i.type = (uint8_t)t;
    if (carry || px_has(l->opc, PM_CC)) {
        i.op = BR_K_ADDC;
        args[2] = carry ? px_read_reg(l, REG_CC) : px_k(l, BR_KC_PRED, 0);
        v = px_emit(l, &i, args);
        write_cc(l, v + 1);
    } else {
        i.op = BR_K_ADD;
        i.n_arg = 2;
        if (px_has(l->opc, PM_SAT))
            i.mods = br_kmod_put(BR_KF_SAT, BR_KM_SAT_SAT);
        v = px_emit(l, &i, args);
    }
    return px_dst(l, px_op(l, ins, 0), t, v);
}

/* mul24, mad24: the operands' low 24 bits, extended; 48 bits of product. */
bool
px_l_mul24(px_lower *l, const px_ins *ins)
{
    unsigned t = l->opc->types[0];
    bool is_signed = t == BR_KT_S32, hi = px_has(l->opc, PM_HI);
    br_kins add = {.op = BR_K_ADD, .type = (uint8_t)t, .n_arg = 2};
    uint32_t a[3], v, args[2];

    if (t != BR_KT_S32 && t != BR_KT_U32)
        return PX_NO(l, "the type does not fit");
    for (unsigned k = 0; k < 2; k++) {
        if (!PX_SRC(l, ins, k + 1, t, &a[0]))
            return false;
        a[1] = px_k(l, BR_KC_B32, 0);
        a[2] = px_k(l, BR_KC_B32, 24);
        args[k] = px_do(l, BR_K_BFE, t, a, 3);
    }
    v = px_do(l, BR_K_MULWIDE, t, args, 2);
    if (hi)
        v = px_do2(l, BR_K_SHR, is_signed ? BR_KT_S64 : BR_KT_U64, v,
                   px_k(l, BR_KC_B32, 16));
    args[0] = px_resize(l, v, BR_KC_B32, false);
    if (ins->n_op == 4) {
        if (!PX_SRC(l, ins, 3, t, &args[1]))
            return false;
        if (px_has(l->opc, PM_SAT))
            add.mods = br_kmod_put(BR_KF_SAT, BR_KM_SAT_SAT);
        args[0] = px_emit(l, &add, args);
    }
    return px_dst(l, px_op(l, ins, 0), t, args[0]);
}

bool
px_l_sad(px_lower *l, const px_ins *ins)
{
    unsigned t = l->opc->types[0];
    uint32_t a, b, c, d;

    if (!PX_SRC(l, ins, 1, t, &a) || !PX_SRC(l, ins, 2, t, &b) ||
        !PX_SRC(l, ins, 3, t, &c))
        return false;
    d = px_do2(l, BR_K_SUB, t, px_do2(l, BR_K_MAX, t, a, b),
               px_do2(l, BR_K_MIN, t, a, b));
    return px_dst(l, px_op(l, ins, 0), t, px_do2(l, BR_K_ADD, t, c, d));
}

/* ---- bits --------------------------------------------------------------- */

static uint32_t
is(px_lower *l, unsigned cmp, unsigned type, uint32_t a, uint32_t b)
{
    br_kins i = {.op = BR_K_SETP, .type = (uint8_t)type, .n_arg = 2};
    uint32_t args[2] = {a, b};

    i.mods = br_kmod_put(BR_KF_CMP, cmp);
    return px_emit(l, &i, args);
}

bool
px_l_lop3(px_lower *l, const px_ins *ins)
{
    br_kins i = {.op = BR_K_LOP3, .n_arg = 3};
    const px_opnd *table = px_op(l, ins, 4), *d = px_op(l, ins, 0);
    bool and = px_has(l->opc, PM_AND), or = px_has(l->opc, PM_OR);
    uint32_t args[3], v, p, q;

    for (unsigned k = 0; k < 3; k++)
        if (!PX_SRC(l, ins, k + 1, BR_KT_B32, &args[k]))
            return false;
    if (table->kind != O_INT || table->imm > 255 ||
        ins->n_op != 5u + (and || or))
        return PX_NO(l, "the truth table is a number up to 255");
    i.imm = (int64_t)table->imm;
    v = px_emit(l, &i, args);
    if (!and&&! or)
        return px_dst(l, d, BR_KT_B32, v);
    if (d->kind != O_PAIR || !PX_SRC(l, ins, 5, BR_KT_PRED, &q))
        return PX_NO(l, "a predicate is missing");
    p = is(l, BR_KM_CMP_NE, BR_KT_B32, v, px_k(l, BR_KC_B32, 0));
    p = px_do2(l, and? BR_K_AND : BR_K_OR, BR_KT_PRED, p, q);
    return px_dst(l, &l->p->ops.at[d->a], BR_KT_B32, v) &&
           px_dst(l, &l->p->ops.at[d->b], BR_KT_PRED, p);
}

bool
px_l_shf(px_lower *l, const px_ins *ins)
{
    br_kins i = start(l, px_has(l->opc, PM_L) ? BR_K_FSHL : BR_K_FSHR, 0);
    uint32_t args[3];

    for (unsigned k = 0; k < 3; k++)
        if (!PX_SRC(l, ins, k + 1, BR_KT_B32, &args[k]))
            return false;
    i.n_arg = 3;
    return px_dst(l, px_op(l, ins, 0), BR_KT_B32, px_emit(l, &i, args));
}

bool
px_l_not(px_lower *l, const px_ins *ins)
{
    unsigned t = l->opc->types[0];
    uint32_t a;

    if (!PX_SRC(l, ins, 1, t, &a))
        return false;
    return px_dst(l, px_op(l, ins, 0), t,
                  px_do2(l, BR_K_XOR, t, a,
                         px_k(l, (br_kclass)br_ktinfo_of[t].cls, ~0ull)));
}

bool
px_l_cnot(px_lower *l, const px_ins *ins)
{
    unsigned t = l->opc->types[0];
    br_kclass c = (br_kclass)br_ktinfo_of[t].cls;
    uint32_t a, args[3] = {px_k(l, c, 1), px_k(l, c, 0), 0};

    if (!PX_SRC(l, ins, 1, t, &a))
        return false;
    args[2] = is(l, BR_KM_CMP_EQ, t, a, args[1]);
    return px_dst(l, px_op(l, ins, 0), t, px_do(l, BR_K_SELECT, t, args, 3));
}

bool
px_l_shr(px_lower *l, const px_ins *ins)
{
    unsigned t = l->opc->types[0];
    uint32_t a, b;

    t = t == BR_KT_B16   ? BR_KT_U16
        : t == BR_KT_B32 ? BR_KT_U32
        : t == BR_KT_B64 ? BR_KT_U64
                         : t;
    if (!PX_SRC(l, ins, 1, t, &a) || !PX_SRC(l, ins, 2, BR_KT_U32, &b))
        return false;
    return px_dst(l, px_op(l, ins, 0), t, px_do2(l, BR_K_SHR, t, a, b));
}

/* ---- comparisons and choices -------------------------------------------- */

/* The comparison of an instruction, without its arguments. */
static br_kins
comparison(const px_lower *l)
{
    static const uint8_t cmp[][2] = {
        {PM_EQ, 1},   {PM_NE, 2},   {PM_LT, 3},   {PM_LE, 4},     {PM_GT, 5},
        {PM_GE, 6},   {PM_EQU, 7},  {PM_NEU, 8},  {PM_LTU, 9},    {PM_LEU, 10},
        {PM_GTU, 11}, {PM_GEU, 12}, {PM_NUM, 13}, {PM_ISNAN, 14}, {PM_LO, 3},
        {PM_LS, 4},   {PM_HI, 5},   {PM_HS, 6}};
    const px_opcode *o = l->opc;
    br_kins i =
        start(l, BR_K_SETP, br_ktinfo_of[o->types[o->n_types - 1]].elem);

    i.n_arg = 2;
    for (size_t k = 0; k < BR_COUNT(cmp); k++)
        if (px_has(o, (px_mod)cmp[k][0]))
            i.mods |= br_kmod_put(BR_KF_CMP, cmp[k][1]);
    return i;
}

/* Comparison and its third predicate, combined as .and .or .xor say; the second
 * result is the inverse or, of pairs, that of the high halves. */
static bool
compared(px_lower *l, const px_ins *ins, uint32_t v[2])
{
    const px_opcode *o = l->opc;
    br_kins i, un = {.op = BR_K_UNPACK, .type = BR_KT_B32, .n_arg = 1};
    br_kop with = px_has(o, PM_AND)   ? BR_K_AND
                  : px_has(o, PM_OR)  ? BR_K_OR
                  : px_has(o, PM_XOR) ? BR_K_XOR
                                      : BR_K_PHI;
    uint32_t args[2], third;
    unsigned type;

    if (!o->n_types)
        return PX_NO(l, "the type is missing");
    type = o->types[o->n_types - 1];
    i = comparison(l);
    if (!br_kmod(i.mods, BR_KF_CMP))
        return PX_NO(l, "the comparison is missing");
    if (!PX_SRC(l, ins, 1, type, &args[0]) ||
        !PX_SRC(l, ins, 2, type, &args[1]))
        return false;
    if (br_ktinfo_of[type].lanes == 2) {
        args[0] = px_emit(l, &un, &args[0]);
        args[1] = px_emit(l, &un, &args[1]);
        v[0] = px_emit(l, &i, args);
        args[0]++;
        args[1]++;
        v[1] = px_emit(l, &i, args);
    } else {
        v[0] = v[1] = px_emit(l, &i, args);
        if (px_op(l, ins, 0)->kind == O_PAIR)
            v[1] =
                px_do2(l, BR_K_XOR, BR_KT_PRED, v[0], px_k(l, BR_KC_PRED, 1));
    }
    if (with == BR_K_PHI)
        return true;
    if (!PX_SRC(l, ins, 3, BR_KT_PRED, &third))
        return false;
    if (v[0] != v[1])
        v[1] = px_do2(l, with, BR_KT_PRED, v[1], third);
    v[0] = px_do2(l, with, BR_KT_PRED, v[0], third);
    return true;
}

bool
px_l_setp(px_lower *l, const px_ins *ins)
{
    const px_opnd *d = px_op(l, ins, 0);
    uint32_t v[2];

    if (!compared(l, ins, v))
        return false;
    if (d->kind != O_PAIR)
        return px_dst(l, d, BR_KT_PRED, v[0]);
    return px_dst(l, &l->p->ops.at[d->a], BR_KT_PRED, v[0]) &&
           px_dst(l, &l->p->ops.at[d->b], BR_KT_PRED, v[1]);
}

bool
px_l_set(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    unsigned t = o->types[0], elem = br_ktinfo_of[t].elem;
    bool pair = o->n_types == 2 && br_ktinfo_of[o->types[1]].lanes == 2;
    br_kclass c = pair ? BR_KC_B16 : (br_kclass)br_ktinfo_of[t].cls;
    uint64_t yes = elem == BR_KT_F32    ? 0x3f800000
                   : elem == BR_KT_F16  ? 0x3c00
                   : elem == BR_KT_BF16 ? 0x3f80
                                        : ~0ull;
    unsigned bits = c == BR_KC_B16 ? BR_KT_B16 : BR_KT_B32;
    uint32_t args[3], v[2];

    if (o->n_types != 2 || c == BR_KC_PRED || c == BR_KC_B64 ||
        (pair && br_ktinfo_of[t].cls != BR_KC_B32) ||
        (pair && br_ktinfo_of[t].kind == 'F' && br_ktinfo_of[t].lanes != 2))
        return PX_NO(l, "the types do not fit");
    if (!compared(l, ins, v))
        return false;
    args[0] = px_k(l, c, yes);
    args[1] = px_k(l, c, 0);
    for (int k = 0; k <= pair; k++) {
        args[2] = v[k];
        v[k] = px_do(l, BR_K_SELECT, bits, args, 3);
    }
    if (pair)
        v[0] = px_do2(l, BR_K_PACK, BR_KT_B32, v[0], v[1]);
    return px_dst(l, px_op(l, ins, 0), t, v[0]);
}

bool
px_l_slct(px_lower *l, const px_ins *ins)
{
    unsigned t = px_bits_type(l->opc->types[0]), tc = l->opc->types[1];
    br_kins i = start(l, BR_K_SETP, tc);
    uint32_t args[3], cmp[2];

    if (l->opc->n_types != 2)
        return PX_NO(l, "two types are needed");
    if (!PX_SRC(l, ins, 1, t, &args[0]) || !PX_SRC(l, ins, 2, t, &args[1]) ||
        !PX_SRC(l, ins, 3, tc, &cmp[0]))
        return false;
    cmp[1] = px_k(l, BR_KC_B32, 0);
    i.mods |= br_kmod_put(BR_KF_CMP, BR_KM_CMP_GE);
    i.n_arg = 2;
    args[2] = px_emit(l, &i, cmp);
    return px_dst(l, px_op(l, ins, 0), t, px_do(l, BR_K_SELECT, t, args, 3));
}

/* ---- several numbers in a word ------------------------------------------- */

static uint32_t
element(px_lower *l, uint32_t v, unsigned k, unsigned bits, bool is_signed)
{
    uint32_t args[] = {v, px_k(l, BR_KC_B32, k * bits),
                       px_k(l, BR_KC_B32, bits)};

    return px_do(l, BR_K_BFE, is_signed ? BR_KT_S32 : BR_KT_U32, args, 3);
}

/* With .add the elements' sum and the last operand. */
static bool
elements_dst(px_lower *l, const px_ins *ins, uint32_t v, unsigned bits,
             bool is_signed)
{
    uint32_t sum;

    if (!px_has(l->opc, PM_ADD))
        return px_dst(l, px_op(l, ins, 0), BR_KT_B32, v);
    if (!PX_SRC(l, ins, 3, BR_KT_B32, &sum))
        return false;
    for (unsigned k = 0; k < 32 / bits; k++)
        sum = px_do2(l, BR_K_ADD, BR_KT_S32, sum,
                     element(l, v, k, bits, is_signed));
    return px_dst(l, px_op(l, ins, 0), BR_KT_B32, sum);
}

/* One of vset, 0 or 1; of vavrg, halves go away from zero. */
static uint32_t
each_of(px_lower *l, uint32_t x, uint32_t y, bool is_signed)
{
    unsigned type = is_signed ? BR_KT_S32 : BR_KT_U32;
    uint32_t zero = px_k(l, BR_KC_B32, 0), one = px_k(l, BR_KC_B32, 1);
    uint32_t args[3] = {one, zero}, cmp[2] = {x, y}, up = one;
    br_kins i = comparison(l);

    if (l->opc->root->kop == BR_K_SETP) {
        args[2] = px_emit(l, &i, cmp);
        return px_do(l, BR_K_SELECT, BR_KT_B32, args, 3);
    }
    x = px_do2(l, BR_K_ADD, type, x, y);
    if (is_signed) {
        cmp[0] = x;
        cmp[1] = zero;
        i.mods |= br_kmod_put(BR_KF_CMP, BR_KM_CMP_GE);
        args[2] = px_emit(l, &i, cmp);
        up = px_do(l, BR_K_SELECT, BR_KT_B32, args, 3);
    }
    return px_do2(l, BR_K_SHR, type, px_do2(l, BR_K_ADD, type, x, up), one);
}

bool
px_l_each(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    unsigned bits = o->text.p[strlen(o->root->name) - 1] == '4' ? 8 : 16;
    unsigned first = o->root->kop == BR_K_SETP ? 0 : 1;
    bool is_signed = o->types[first] == BR_KT_S32;
    uint32_t a, b, all = px_k(l, BR_KC_B32, 0);

    if (o->n_types != 2 + first || o->types[first] != o->types[first + 1] ||
        o->types[0] != o->types[first])
        return PX_NO(l, "mixed signs are not supported");
    if (!first && !br_kmod(comparison(l).mods, BR_KF_CMP))
        return PX_NO(l, "the comparison is missing");
    if (!PX_SRC(l, ins, 1, BR_KT_B32, &a) || !PX_SRC(l, ins, 2, BR_KT_B32, &b))
        return false;
    for (unsigned k = 0; k < 32 / bits; k++) {
        uint32_t v = each_of(l, element(l, a, k, bits, is_signed),
                             element(l, b, k, bits, is_signed), is_signed);
        uint32_t args[] = {v, all, px_k(l, BR_KC_B32, k * bits),
                           px_k(l, BR_KC_B32, bits)};

        all = px_do(l, BR_K_BFI, BR_KT_B32, args, 4);
    }
    return elements_dst(l, ins, all, bits, is_signed);
}

bool
px_l_simd(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    bool four = o->text.p[strlen(o->root->name) - 1] == '4';
    bool is_signed = o->types[1] == BR_KT_S32;
    br_kins i = start(l, o->root->kop,
                      four ? (is_signed ? BR_KT_S8X4 : BR_KT_U8X4)
                           : (is_signed ? BR_KT_S16X2 : BR_KT_U16X2));
    uint32_t args[2];

    if (o->n_types != 3 || o->types[1] != o->types[2] ||
        o->types[0] != o->types[1])
        return PX_NO(l, "mixed signs are not supported");
    if (!PX_SRC(l, ins, 1, i.type, &args[0]) ||
        !PX_SRC(l, ins, 2, i.type, &args[1]))
        return false;
    i.n_arg = 2;
    return elements_dst(l, ins, px_emit(l, &i, args), four ? 8 : 16,
                        is_signed && i.op != BR_K_ABSDIFF);
}

bool
px_l_testp(px_lower *l, const px_ins *ins)
{
    unsigned t = l->opc->types[0];
    bool wide = t == BR_KT_F64;
    br_kclass c = wide ? BR_KC_B64 : BR_KC_B32;
    uint32_t inf = px_k(l, c, wide ? 0x7ffull << 52 : 0x7f800000);
    uint32_t least = px_k(l, c, wide ? 1ull << 52 : 0x00800000);
    unsigned ti = wide ? BR_KT_U64 : BR_KT_U32;
    const px_opcode *o = l->opc;
    uint32_t a, v;

    if (t != BR_KT_F32 && t != BR_KT_F64)
        return PX_NO(l, "the type does not fit");
    if (!PX_SRC(l, ins, 1, t, &a))
        return false;
    a = px_do2(l, BR_K_AND, px_bits_type(t), a,
               px_k(l, c, wide ? ~0ull >> 1 : 0x7fffffff));
    v = px_has(o, PM_FINITE)       ? is(l, BR_KM_CMP_LT, ti, a, inf)
        : px_has(o, PM_INFINITE)   ? is(l, BR_KM_CMP_EQ, ti, a, inf)
        : px_has(o, PM_NUMBER)     ? is(l, BR_KM_CMP_LE, ti, a, inf)
        : px_has(o, PM_NOTANUMBER) ? is(l, BR_KM_CMP_GT, ti, a, inf)
        : px_has(o, PM_NORMAL) /* and zero is: so an H200 says */
            ? px_do2(l, BR_K_OR, BR_KT_PRED,
                     is(l, BR_KM_CMP_EQ, ti, a, px_k(l, c, 0)),
                     px_do2(l, BR_K_AND, BR_KT_PRED,
                            is(l, BR_KM_CMP_GE, ti, a, least),
                            is(l, BR_KM_CMP_LT, ti, a, inf)))
            : px_do2(l, BR_K_AND, BR_KT_PRED, is(l, BR_KM_CMP_LT, ti, a, least),
                     is(l, BR_KM_CMP_NE, ti, a, px_k(l, c, 0)));
    return px_dst(l, px_op(l, ins, 0), BR_KT_PRED, v);
}

/* ---- moves and conversions ---------------------------------------------- */

bool
px_l_mov(px_lower *l, const px_ins *ins)
{
    unsigned t = l->opc->types[0];
    const px_opnd *d = px_op(l, ins, 0), *x = px_op(l, ins, 1);
    uint32_t v, part[8];

    if (px_has(l->opc, PM_V2) || px_has(l->opc, PM_V4) ||
        px_has(l->opc, PM_V8)) { /* all are read before one is written */
        if (d->kind != O_VEC || x->kind != O_VEC || d->b != x->b || x->b > 8)
            return PX_NO(l, "the vector does not fit");
        for (uint32_t k = 0; k < x->b; k++)
            if (!px_src(l, &l->p->ops.at[x->a + k], t, &part[k]))
                return false;
        for (uint32_t k = 0; k < d->b; k++)
            if (!px_dst(l, &l->p->ops.at[d->a + k], t, part[k]))
                return false;
        return true;
    }
    if (!PX_SRC(l, ins, 1, t, &v))
        return false;
    return px_dst(l, d, px_bits_type(t), v);
}

/* One element as another type. */
static uint32_t
cvt_one(px_lower *l, unsigned to, unsigned from, uint32_t v)
{
    br_kins i = start(l, BR_K_CVT, to);

    i.type2 = (uint8_t)from;
    i.n_arg = 1;
    return px_emit(l, &i, &v);
}

/* e4m3 pairs lie in one 16-bit value. */
static bool
cvt_pairs(px_lower *l, const px_ins *ins, unsigned to, unsigned from)
{
    bool small_to = br_ktinfo_of[to].cat == 'e';
    bool small_from = br_ktinfo_of[from].cat == 'e';
    unsigned te = br_ktinfo_of[to].elem, fe = br_ktinfo_of[from].elem;
    br_kins un = {.op = BR_K_UNPACK, .type = BR_KT_B32, .n_arg = 1};
    uint32_t a, lo, hi;

    if (from == BR_KT_F32) { /* the first operand is the high part */
        if (!PX_SRC(l, ins, 1, from, &hi) || !PX_SRC(l, ins, 2, from, &lo))
            return false;
    } else if (small_from) {
        if (!PX_SRC(l, ins, 1, BR_KT_B16, &a))
            return false;
        lo = px_do2(l, BR_K_AND, BR_KT_B16, a, px_k(l, BR_KC_B16, 0xff));
        hi = px_do2(l, BR_K_SHR, BR_KT_U16, a, px_k(l, BR_KC_B32, 8));
    } else {
        if (!PX_SRC(l, ins, 1, from, &a))
            return false;
        lo = px_emit(l, &un, &a);
        hi = lo + 1;
    }
    lo = cvt_one(l, te, fe, lo);
    hi = cvt_one(l, te, fe, hi);
    a = small_to ? px_bytes(l, lo, hi)
                 : px_do2(l, BR_K_PACK, BR_KT_B32, lo, hi);
    return px_dst(l, px_op(l, ins, 0), BR_KT_B16, a);
}

static bool
cvt_pack(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    br_kins i = {.op = BR_K_CVTPACK, .n_arg = 3};
    uint32_t args[3] = {0, 0, px_k(l, BR_KC_B32, 0)};

    i.type = o->types[0];
    i.type2 = o->types[1];
    i.mods = mods_for(o, BR_K_CVTPACK);
    if (!PX_SRC(l, ins, 1, i.type2, &args[0]) ||
        !PX_SRC(l, ins, 2, i.type2, &args[1]) ||
        (ins->n_op == 4 && !PX_SRC(l, ins, 3, BR_KT_B32, &args[2])))
        return false;
    return px_dst(l, px_op(l, ins, 0), BR_KT_B32, px_emit(l, &i, args));
}

bool
px_l_cvt(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    unsigned to = o->types[0], from = o->types[1];
    uint32_t v;

    if (px_has(o, PM_PACK))
        return cvt_pack(l, ins);
    if (o->n_types != 2 || br_ktinfo_of[to].cat == 'v' ||
        br_ktinfo_of[from].cat == 'v')
        return PX_NO(l, "two types are needed");
    if (br_ktinfo_of[to].lanes == 2 || br_ktinfo_of[to].cat == 'e' ||
        br_ktinfo_of[from].cat == 'e')
        return cvt_pairs(l, ins, to, from);
    if (!PX_SRC(l, ins, 1, from, &v))
        return false;
    return px_dst(l, px_op(l, ins, 0), to, cvt_one(l, to, from, v));
}

/* A policy of caches says nothing here. */
bool
px_l_policy(px_lower *l, const px_ins *ins)
{
    return px_dst(l, px_op(l, ins, 0), BR_KT_B64, px_k(l, BR_KC_B64, 0));
}
