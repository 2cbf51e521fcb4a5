/* ptx_lower.c - registers become values, block by block in reverse post order.
 *
 * The driver, what operands become, and arithmetic. What a register is written
 * with or read as has a class; where the register is wider it is extended or
 * cut, as PTX says of ld, st and cvt. An instruction that cannot be lowered
 * leaves a note, a trap and undefined results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <stdio.h>
#include <string.h>

/* ---- values ------------------------------------------------------------- */

uint32_t
px_k(px_lower *l, br_kclass c, uint64_t bits)
{
    return br_kfn_const(l->m, l->f, c, bits);
}

uint32_t
px_emit(px_lower *l, br_kins *i, const uint32_t *args)
{
    uint32_t at;

    i->line = l->ins ? l->ins->line : 0;
    if (!(br_kopinfo_of[i->op].props & BR_KP_SYM))
        i->sym = BR_KNONE;
    at = br_kfn_ins(l->m, l->f, l->blk, i, args);
    return l->f->ins.at[at].res;
}

uint32_t
px_do(px_lower *l, br_kop op, unsigned type, const uint32_t *args, unsigned n)
{
    br_kins i = {
        .op = (uint8_t)op, .type = (uint8_t)type, .n_arg = (uint16_t)n};

    return px_emit(l, &i, args);
}

uint32_t
px_do2(px_lower *l, br_kop op, unsigned type, uint32_t a, uint32_t b)
{
    uint32_t args[2] = {a, b};

    return px_do(l, op, type, args, 2);
}

uint32_t
px_resize(px_lower *l, uint32_t v, br_kclass to, bool is_signed)
{
    static const uint8_t types[2][4] = {
        {BR_KT_PRED, BR_KT_U16, BR_KT_U32, BR_KT_U64},
        {BR_KT_PRED, BR_KT_S16, BR_KT_S32, BR_KT_S64}};
    const br_kval *k = &l->f->vals.at[v];
    br_kins i = {.op = BR_K_CVT, .n_arg = 1};

    if (k->cls == to)
        return v;
    if (k->kind == BR_KV_CONST) {
        unsigned w = br_kclass_bits((br_kclass)k->cls);
        uint64_t bits = k->bits;

        if (is_signed && w < 64 && bits >> (w - 1) & 1)
            bits |= ~0ull << w;
        return px_k(l, to, bits);
    }
    i.type = types[is_signed][to];
    i.type2 = types[is_signed][k->cls];
    return px_emit(l, &i, &v);
}

static br_kclass
reg_class(const px_lower *l, uint32_t reg)
{
    return (br_kclass)br_ktinfo_of[l->p->regs.at[reg]].cls;
}

static uint32_t
read_reg(px_lower *l, uint32_t reg)
{
    uint32_t m = l->multi[reg];
    uint32_t v = m == BR_KNONE ? l->single[reg] : l->cur[m];

    return v != BR_KNONE ? v : br_kfn_undef(l->m, l->f, reg_class(l, reg));
}

static void
write_reg(px_lower *l, uint32_t reg, uint32_t v)
{
    uint32_t m = l->multi[reg];

    if (m == BR_KNONE) {
        l->single[reg] = v;
        return;
    }
    if (l->ins && l->ins->guard != BR_KNONE && l->opc->root &&
        l->opc->root->flow == F_PURE) {
        uint32_t args[3] = {v, read_reg(l, reg), read_reg(l, l->ins->guard)};
        static const uint8_t types[] = {BR_KT_PRED, BR_KT_B16, BR_KT_B32,
                                        BR_KT_B64};

        if (l->ins->guard_not) {
            args[0] = args[1];
            args[1] = v;
        }
        v = px_do(l, BR_K_SELECT, types[reg_class(l, reg)], args, 3);
    }
    l->cur[m] = v;
}

/* ---- operands ----------------------------------------------------------- */

const px_opnd *
px_op(const px_lower *l, const px_ins *i, unsigned n)
{
    static const px_opnd none = {.kind = O_SINK};

    return n < i->n_op ? &l->p->ops.at[i->op + n] : &none;
}

static uint32_t
symbol(px_lower *l, const px_opnd *o)
{
    const px_sym *s = &l->p->syms.at[o->a];
    br_kins i = {.sym = s->id, .imm = (int64_t)o->imm};

    if (s->kind == S_PARAM)
        return px_k(l, BR_KC_B64, s->id + o->imm);
    if (s->kind == S_FRAME) {
        i.op = BR_K_FRAME;
        i.imm += s->id;
    } else {
        i.op = BR_K_ADDR;
        i.sym |= s->kind == S_FN ? BR_KFN_SYM : 0;
    }
    return px_emit(l, &i, NULL);
}

static bool
unknown_name(px_lower *l, const px_opnd *o)
{
    br_text t = o->kind == O_NAME ? l->p->names.at[o->a].name : BR_TEXT("");

    if (!t.n)
        return PX_NO(l, "an operand of this form does not fit");
    snprintf(l->why_buf, sizeof l->why_buf, "'%.*s' is not declared",
             (int)BR_MIN(t.n, (size_t)60), t.p);
    return PX_NO(l, l->why_buf);
}

/* Elements of {a, b}, low first, packed into one value. */
static bool
packed(px_lower *l, const px_opnd *o, br_kclass c, uint32_t *v)
{
    uint32_t part[4], n = o->b;
    br_kclass half = br_kclass_half(c);

    if ((n != 2 && n != 4) || c < BR_KC_B32 || (n == 4 && c != BR_KC_B64))
        return PX_NO(l, "the vector does not fit");
    for (uint32_t k = 0; k < n; k++)
        if (!px_src_class(l, &l->p->ops.at[o->a + k], n == 4 ? BR_KC_B16 : half,
                          &part[k]))
            return false;
    for (uint32_t k = 0; n == 4 && k < 2; k++)
        part[k] = px_do2(l, BR_K_PACK, BR_KT_B32, part[2 * k], part[2 * k + 1]);
    *v = px_do2(l, BR_K_PACK, c == BR_KC_B64 ? BR_KT_B64 : BR_KT_B32, part[0],
                part[1]);
    return true;
}

bool
px_src_class(px_lower *l, const px_opnd *o, br_kclass c, uint32_t *v)
{
    br_kins i = {.op = BR_K_SREG, .imm = o->a};

    switch (o->kind) {
    case O_REG:
        *v = read_reg(l, o->a);
        if (l->f->vals.at[*v].cls < (uint8_t)c)
            return PX_NO(l, "a register is too narrow");
        if (c == BR_KC_PRED && l->f->vals.at[*v].cls != BR_KC_PRED)
            return PX_NO(l, "a predicate is needed");
        *v = px_resize(l, *v, c, false);
        break;
    case O_INT: *v = px_k(l, c, o->imm); break;
    case O_F32:
        if (c == BR_KC_B64) {
            float f;
            double d;

            memcpy(&f, &o->imm, sizeof f);
            d = (double)f;
            memcpy(&i.imm, &d, sizeof d);
            *v = px_k(l, c, (uint64_t)i.imm);
        } else {
            *v = px_k(l, c, o->imm);
        }
        break;
    case O_F64:
        if (c == BR_KC_B32) {
            double d;
            float f;

            memcpy(&d, &o->imm, sizeof d);
            f = (float)d;
            i.imm = 0;
            memcpy(&i.imm, &f, sizeof f);
            *v = px_k(l, c, (uint64_t)i.imm);
        } else {
            *v = px_k(l, c, o->imm);
        }
        break;
    case O_SREG:
        i.type = br_ksreg_class[o->a] == BR_KC_B64 ? BR_KT_B64 : BR_KT_B32;
        *v = px_resize(l, px_emit(l, &i, NULL), c, false);
        break;
    case O_VAR: *v = px_resize(l, symbol(l, o), c, false); break;
    case O_VEC: return packed(l, o, c, v);
    default: return unknown_name(l, o);
    }
    if (o->neg) {
        if (c != BR_KC_PRED)
            return PX_NO(l, "only a predicate can be negated");
        *v = px_do2(l, BR_K_XOR, BR_KT_PRED, *v, px_k(l, BR_KC_PRED, 1));
    }
    return true;
}

bool
px_src(px_lower *l, const px_opnd *o, unsigned type, uint32_t *v)
{
    return px_src_class(l, o, (br_kclass)br_ktinfo_of[type].cls, v);
}

bool
px_dst(px_lower *l, const px_opnd *o, unsigned type, uint32_t v)
{
    br_kclass c;

    if (o->kind == O_SINK)
        return true;
    if (o->kind == O_VEC && o->b == 2) {
        br_kins i = {.op = BR_K_UNPACK, .n_arg = 1};
        uint32_t r;

        i.type = l->f->vals.at[v].cls == BR_KC_B64 ? BR_KT_B64 : BR_KT_B32;
        if (l->f->vals.at[v].cls < BR_KC_B32)
            return PX_NO(l, "the vector does not fit");
        r = px_emit(l, &i, &v);
        return px_dst(l, &l->p->ops.at[o->a], BR_KT_B16, r) &&
               px_dst(l, &l->p->ops.at[o->a + 1], BR_KT_B16, r + 1);
    }
    if (o->kind == O_VEC && o->b == 4 && l->f->vals.at[v].cls == BR_KC_B64) {
        px_opnd halves = {.kind = O_VEC, .b = 2};
        br_kins i = {.op = BR_K_UNPACK, .type = BR_KT_B64, .n_arg = 1};
        uint32_t r = px_emit(l, &i, &v);

        halves.a = o->a;
        if (!px_dst(l, &halves, BR_KT_B32, r))
            return false;
        halves.a = o->a + 2;
        return px_dst(l, &halves, BR_KT_B32, r + 1);
    }
    if (o->kind != O_REG)
        return PX_NO(l, "the result needs a register");
    c = reg_class(l, o->a);
    if (c < (br_kclass)l->f->vals.at[v].cls ||
        (c != BR_KC_PRED) != (l->f->vals.at[v].cls != BR_KC_PRED))
        return PX_NO(l, "the register of the result is too narrow");
    write_reg(l, o->a, px_resize(l, v, c, br_ktinfo_of[type].kind == 'S'));
    return true;
}

bool
px_addr(px_lower *l, const px_opnd *o, uint32_t *base, int64_t *plus)
{
    const px_opnd *b;

    if (o->kind != O_MEM || o->neg)
        return PX_NO(l, "an address in brackets is needed");
    *plus = (int64_t)o->imm;
    if (o->a == BR_KNONE) {
        *base = px_k(l, BR_KC_B64, 0);
        return true;
    }
    b = &l->p->ops.at[o->a];
    if (b->kind == O_REG) {
        *base = read_reg(l, b->a);
        if (l->f->vals.at[*base].cls < BR_KC_B32)
            return PX_NO(l, "an address has 32 or 64 bits");
        *base = px_resize(l, *base, BR_KC_B64, false);
        return true;
    }
    if (b->kind != O_VAR)
        return unknown_name(l, b);
    *base = symbol(l, b);
    return true;
}

unsigned
px_space(const px_opcode *o)
{
    return px_has(o, PM_GLOBAL)       ? BR_KM_SPACE_GLOBAL
           : px_has(o, PM_SHARED)     ? BR_KM_SPACE_SHARED
           : px_has(o, PM_CLUSTERMEM) ? BR_KM_SPACE_SHARED
           : px_has(o, PM_CONST)      ? BR_KM_SPACE_CONST
           : px_has(o, PM_LOCAL)      ? BR_KM_SPACE_LOCAL
           : px_has(o, PM_PARAM)      ? BR_KM_SPACE_PARAM
                                      : 0;
}

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

static unsigned
bits_type(unsigned t)
{
    static const uint8_t of[] = {BR_KT_PRED, BR_KT_B16, BR_KT_B32, BR_KT_B64};

    return of[br_ktinfo_of[t].cls];
}

/* Operands 1.. by the signature; operand 0 takes the result. */
bool
px_l_alu(px_lower *l, const px_ins *ins)
{
    const char *sig = br_kopinfo_of[l->opc->root->kop].sig;
    br_kins i = start(l, l->opc->root->kop, l->opc->types[0]);
    uint32_t args[4], v;
    unsigned n = 0, type = i.type;

    i.type2 = l->opc->types[1];
    if (br_kopinfo_of[i.op].types[0] == 0)
        i.type = 0;
    else if (!strchr(br_kopinfo_of[i.op].types, br_ktinfo_of[type].cat) &&
             strchr(br_kopinfo_of[i.op].types, 'b')) /* selp.f32 moves bits */
        i.type = (uint8_t)bits_type(type);
    if (!strchr(br_kopinfo_of[i.op].types, '/'))
        i.type2 = 0;
    for (sig = strchr(sig, ':') + 1; *sig; sig++, n++)
        if (!px_src_class(l, px_op(l, ins, n + 1), br_kclass_of(*sig, &i),
                          &args[n]))
            return false;
    i.n_arg = (uint16_t)n;
    if (ins->n_op != n + 1)
        return PX_NO(l, "the number of operands is wrong");
    v = px_emit(l, &i, args);
    return px_dst(l, px_op(l, ins, 0), type, v);
}

static void
write_cc(px_lower *l, uint32_t carry)
{
    if (px_has(l->opc, PM_CC))
        write_reg(l, REG_CC, carry);
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
        args[1] = px_do2(l, BR_K_XOR, bits_type(t), args[1],
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
                      read_reg(l, REG_CC));
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
        args[2] = carry ? read_reg(l, REG_CC) : px_k(l, BR_KC_PRED, 0);
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
    return px_dst(l, px_op(l, ins, 0), BR_KT_B32, px_emit(l, &i, args));
}

/* ---- bits --------------------------------------------------------------- */

bool
px_l_lop3(px_lower *l, const px_ins *ins)
{
    br_kins i = {.op = BR_K_LOP3, .n_arg = 3};
    const px_opnd *table = px_op(l, ins, 4);
    uint32_t args[3];

    for (unsigned k = 0; k < 3; k++)
        if (!PX_SRC(l, ins, k + 1, BR_KT_B32, &args[k]))
            return false;
    if (table->kind != O_INT || table->imm > 255 || ins->n_op != 5)
        return PX_NO(l, "the truth table is a number up to 255");
    i.imm = (int64_t)table->imm;
    return px_dst(l, px_op(l, ins, 0), BR_KT_B32, px_emit(l, &i, args));
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

static uint32_t
is(px_lower *l, unsigned cmp, unsigned type, uint32_t a, uint32_t b)
{
    br_kins i = {.op = BR_K_SETP, .type = (uint8_t)type, .n_arg = 2};
    uint32_t args[2] = {a, b};

    i.mods = br_kmod_put(BR_KF_CMP, cmp);
    return px_emit(l, &i, args);
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
    unsigned type = o->types[o->n_types - 1];
    br_kins i = comparison(l),
            un = {.op = BR_K_UNPACK, .type = BR_KT_B32, .n_arg = 1};
    br_kop with = px_has(o, PM_AND)   ? BR_K_AND
                  : px_has(o, PM_OR)  ? BR_K_OR
                  : px_has(o, PM_XOR) ? BR_K_XOR
                                      : BR_K_PHI;
    uint32_t args[2], third;

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
    unsigned t = bits_type(l->opc->types[0]), tc = l->opc->types[1];
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
    a = px_do2(l, BR_K_AND, bits_type(t), a,
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
    return px_dst(l, d, bits_type(t), v);
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
static uint32_t
bytes_of(px_lower *l, uint32_t low, uint32_t high)
{
    return px_do2(l, BR_K_OR, BR_KT_B16,
                  px_do2(l, BR_K_AND, BR_KT_B16, low, px_k(l, BR_KC_B16, 0xff)),
                  px_do2(l, BR_K_SHL, BR_KT_B16, high, px_k(l, BR_KC_B32, 8)));
}

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
    a = small_to ? bytes_of(l, lo, hi)
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

/* ---- the driver --------------------------------------------------------- */

static void
undefine(px_lower *l, uint32_t reg, bool write, void *arg)
{
    (void)arg;
    if (write)
        write_reg(l, reg, br_kfn_undef(l->m, l->f, reg_class(l, reg)));
}

/* The instruction costs itself: a note, a trap, undefined results. */
static br_code
refuse(px_lower *l, const px_ins *i)
{
    const px_opcode *o = l->opc;
    br_kins trap = {.op = BR_K_TRAP};
    uint32_t note;
    char buf[300];
    int n = (int)BR_MIN(o->text.n, (size_t)80);

    if (o->bad.n)
        snprintf(buf, sizeof buf, "%.*s: '%.*s' is not known", n, o->text.p,
                 (int)BR_MIN(o->bad.n, (size_t)60), o->bad.p);
    else
        snprintf(buf, sizeof buf, "%.*s: %s", n, o->text.p, l->why);
    if (l->p->opts && l->p->opts->strict) {
        l->p->line = i->line;
        return px_fail(l->p, "%s", buf);
    }
    note = br_kir_note(l->m, i->line, "%s", buf);
    trap.imm = (int64_t)note + 1;
    px_emit(l, &trap, NULL);
    px_each_reg(l, i, undefine, NULL);
    return BR_OK;
}

static br_code
lower_ins(px_lower *l, const px_ins *i)
{
    size_t ins_mark = l->f->ins.n, blk_mark = l->f->blks.at[l->blk].ins.n;

    l->ins = i;
    l->opc = &l->p->opcodes.at[i->opcode];
    l->why = "this is not supported";
    if (l->opc->root && !l->opc->bad.n && l->opc->root->how(l, i)) {
        /* What the tables of KIR say of types checks PTX's, too. */
        for (l->why = NULL; ins_mark < l->f->ins.n && !l->why; ins_mark++)
            l->why = br_kins_rule(&l->f->ins.at[ins_mark]);
        if (!l->why)
            return BR_OK;
    }
    /* What was emitted for it goes, the values stay unused. */
    l->f->blks.at[l->blk].ins.n = blk_mark;
    return refuse(l, i);
}

/* A register from or to its place in the frame. */
static void
frame_load(px_lower *l, uint32_t reg, uint32_t at)
{
    br_kins f = {.op = BR_K_FRAME, .imm = at};
    br_kins i = {.op = BR_K_LD,
                 .type = (uint8_t)bits_type(l->p->regs.at[reg]),
                 .n_arg = 1,
                 .n_res = 1};
    uint32_t base = px_emit(l, &f, NULL);

    i.mods = br_kmod_put(BR_KF_SPACE, BR_KM_SPACE_LOCAL);
    write_reg(l, reg, px_emit(l, &i, &base));
}

static void
frame_store(px_lower *l, uint32_t reg, uint32_t at)
{
    br_kins f = {.op = BR_K_FRAME, .imm = at};
    br_kins i = {.op = BR_K_ST,
                 .type = (uint8_t)bits_type(l->p->regs.at[reg]),
                 .n_arg = 2};
    uint32_t args[2] = {px_emit(l, &f, NULL), read_reg(l, reg)};

    i.mods = br_kmod_put(BR_KF_SPACE, BR_KM_SPACE_LOCAL);
    px_emit(l, &i, args);
}

static void
params_in_registers(px_lower *l, bool result)
{
    for (size_t k = 0; k < l->p->regparams.n; k++) {
        const px_regparam *q = &l->p->regparams.at[k];

        if (q->result == result && result)
            frame_store(l, q->reg, q->offset);
        else if (q->result == result)
            frame_load(l, q->reg, q->offset);
    }
}

static void
terminate(px_lower *l, const px_blk *b)
{
    br_kins i = {.sym = BR_KNONE};
    uint32_t arg = 0, table[2];

    if (b->end == E_RET)
        params_in_registers(l, true);
    l->ins = b->n ? &l->p->ins.at[b->first + b->n - 1] : NULL;
    switch ((px_end)b->end) {
    case E_FALL:
    case E_JUMP: i.op = BR_K_BR; break;
    case E_COND:
        i.op = BR_K_CBR;
        i.n_arg = 1;
        arg = read_reg(l, b->guard);
        if (b->guard_not)
            arg = px_do2(l, BR_K_XOR, BR_KT_PRED, arg, px_k(l, BR_KC_PRED, 1));
        break;
    case E_SWITCH:
        i.op = BR_K_SWITCH;
        i.n_arg = 1;
        if (!px_src(l, &l->p->ops.at[b->op], BR_KT_B32, &arg))
            arg = px_k(l, BR_KC_B32, 0);
        break;
    case E_RET: i.op = BR_K_RET; break;
    case E_EXIT: i.op = BR_K_EXIT; break;
    }
    table[0] = arg;
    px_emit(l, &i, table);
}

/* What holds at the start of a block: phis where edges join, else what the one
 * predecessor ended with. */
static void
enter(px_lower *l, uint32_t b)
{
    const br_kblk *k = &l->f->blks.at[b];
    size_t words = (l->n_multi + 63) / 64;
    static const uint8_t types[] = {BR_KT_PRED, BR_KT_B16, BR_KT_B32,
                                    BR_KT_B64};
    l->blk = b;
    l->ins = NULL;
    l->cur = l->out + (size_t)b * l->n_multi;
    if (k->pred.n == 1) {
        memcpy(l->cur, l->out + (size_t)k->pred.at[0] * l->n_multi,
               l->n_multi * sizeof *l->cur);
        return;
    }
    memset(l->cur, 0xff, l->n_multi * sizeof *l->cur);
    for (uint32_t r = 0; k->pred.n && r < l->p->regs.n; r++) {
        uint32_t m = l->multi[r];
        br_kins phi = {.op = BR_K_PHI, .sym = BR_KNONE};

        if (m == BR_KNONE || !(l->live[b * words + m / 64] >> (m % 64) & 1))
            continue;
        phi.type = types[reg_class(l, r)];
        phi.imm = r; /* until its arguments are known */
        l->cur[m] = px_emit(l, &phi, NULL);
    }
}

/* Arguments of the phis, now that every block has its end. */
static void
fill_phis(px_lower *l)
{
    for (uint32_t b = 0; b < l->f->blks.n; b++) {
        br_kblk *k = &l->f->blks.at[b];

        for (size_t at = 0; at < k->ins.n; at++) {
            uint32_t id = k->ins.at[at];
            uint32_t reg = (uint32_t)l->f->ins.at[id].imm;

            if (l->f->ins.at[id].op != BR_K_PHI)
                break;
            l->f->ins.at[id].arg = (uint32_t)l->f->args.n;
            l->f->ins.at[id].n_arg = (uint16_t)k->pred.n;
            l->f->ins.at[id].imm = 0;
            for (size_t e = 0; e < k->pred.n; e++) {
                uint32_t v =
                    l->out[(size_t)k->pred.at[e] * l->n_multi + l->multi[reg]];

                if (v == BR_KNONE)
                    v = br_kfn_undef(l->m, l->f, reg_class(l, reg));
                if (!br_vec_push(&l->f->args, v))
                    l->m->oom = true;
            }
        }
    }
}

static br_code
lower_blocks(px_lower *l)
{
    size_t cells = (size_t)l->n_multi * l->blks.n + 1;

    l->out = br_try_alloc(cells * sizeof *l->out);
    if (!l->out)
        return px_oom(l->p);
    for (uint32_t b = 0; b < l->blks.n; b++) {
        const px_blk *k = &l->blks.at[b];
        uint32_t n = k->n;

        enter(l, b);
        if (b == 0)
            params_in_registers(l, false);
        for (unsigned r = 0; k->after_call && r < l->n_ret; r++)
            frame_load(l, l->ret[r].reg, l->ret[r].at);
        l->n_ret = 0;
        if (n && k->end != E_FALL)
            n -= k->end == E_COND || k->end == E_JUMP || k->end == E_SWITCH ||
                 k->end == E_RET || k->end == E_EXIT;
        for (uint32_t i = 0; i < n; i++)
            BR_TRY(lower_ins(l, &l->p->ins.at[k->first + i]));
        terminate(l, k);
        if (l->m->oom)
            return px_oom(l->p);
    }
    for (size_t b = 0; b < l->f->blks.n; b++)
        if (l->f->blks.at[b].pred.n > BR_KMAX_ARGS)
            return br_fail(l->p->st, BR_E_LIMIT,
                           "over %d branches to one place", BR_KMAX_ARGS);
    fill_phis(l);
    return l->m->oom ? px_oom(l->p) : BR_OK;
}

br_code
px_lower_fn(px_parser *p)
{
    px_lower l = {.p = p, .m = p->m, .f = &p->m->fns.at[p->fn]};
    br_code code = px_flow_build(&l);

    if (code == BR_OK)
        code = lower_blocks(&l);
    br_vec_fini(&l.blks);
    br_free(l.rpo);
    br_free(l.multi);
    br_free(l.single);
    br_free(l.live);
    br_free(l.out);
    return code;
}
