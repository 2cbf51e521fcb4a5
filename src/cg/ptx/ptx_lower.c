/* ptx_lower.c - registers become values, block by block in reverse post order.
 *
 * The driver, and what operands become. What a register is written
 * with or read as has a class; where the register is wider it is extended or
 * cut, as PTX says of ld, st and cvt. An instruction that cannot be lowered
 * leaves a note, a trap and undefined results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include "base/bits.h"

#include <stdio.h>
#include <string.h>

/* ---- values ------------------------------------------------------------- */

uint32_t
px_k(px_lower *l, br_kclass c, uint64_t bits)
{
    return br_kfn_const(l->m, l->f, c, bits);
}

static bool
as_pairs(const px_lower *l, const br_kins *i)
{
    return l->p->pairs && !l->in_pairs && i->type == BR_KT_F64 &&
           (i->op == BR_K_ADD || i->op == BR_K_SUB || i->op == BR_K_MUL ||
            i->op == BR_K_FMA || i->op == BR_K_DIV || i->op == BR_K_RCP ||
            i->op == BR_K_SQRT);
}

uint32_t
px_emit(px_lower *l, br_kins *i, const uint32_t *args)
{
    uint32_t at;

    if (as_pairs(l, i))
        return px_pairs(l, i, args);
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

unsigned
px_bits_type(unsigned t)
{
    static const uint8_t of[] = {BR_KT_PRED, BR_KT_B16, BR_KT_B32, BR_KT_B64};

    return of[br_ktinfo_of[t].cls];
}

static br_kclass
reg_class(const px_lower *l, uint32_t reg)
{
    return (br_kclass)br_ktinfo_of[l->p->regs.at[reg]].cls;
}

uint32_t
px_read_reg(px_lower *l, uint32_t reg)
{
    uint32_t m = l->multi[reg];
    uint32_t v = m == BR_KNONE ? l->single[reg] : l->cur[m];

    return v != BR_KNONE ? v : br_kfn_undef(l->m, l->f, reg_class(l, reg));
}

void
px_write_reg(px_lower *l, uint32_t reg, uint32_t v)
{
    uint32_t m = l->multi[reg];

    if (m == BR_KNONE) {
        l->single[reg] = v;
        return;
    }
    if (l->ins && l->ins->guard != BR_KNONE && l->opc->root &&
        l->opc->root->flow == F_PURE) {
        uint32_t args[3] = {v, px_read_reg(l, reg),
                            px_read_reg(l, l->ins->guard)};
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

uint32_t
px_bytes(px_lower *l, uint32_t low, uint32_t high)
{
    return px_do2(l, BR_K_OR, BR_KT_B16,
                  px_do2(l, BR_K_AND, BR_KT_B16, low, px_k(l, BR_KC_B16, 0xff)),
                  px_do2(l, BR_K_SHL, BR_KT_B16, high, px_k(l, BR_KC_B32, 8)));
}

/* Two or four registers of .b8, low first. */
static bool
packed_bytes(px_lower *l, const px_opnd *o, uint32_t *v)
{
    uint32_t part[4];

    for (uint32_t k = 0; k < o->b; k++)
        if (!px_src_class(l, &l->p->ops.at[o->a + k], BR_KC_B16, &part[k]))
            return false;
    *v = px_bytes(l, part[0], part[1]);
    if (o->b == 4)
        *v = px_do2(l, BR_K_PACK, BR_KT_B32, *v, px_bytes(l, part[2], part[3]));
    return true;
}

/* Elements of {a, b}, low first, packed into one value. */
static bool
packed(px_lower *l, const px_opnd *o, br_kclass c, uint32_t *v)
{
    uint32_t part[4], n = o->b;
    br_kclass half = br_kclass_half(c);

    if ((c == BR_KC_B16 && n == 2) || (c == BR_KC_B32 && n == 4))
        return packed_bytes(l, o, v);
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
        if (o->imm)
            return PX_NO(l, "a part of a register does not fit");
        *v = px_read_reg(l, o->a);
        if (l->f->vals.at[*v].cls < (uint8_t)c)
            return PX_NO(l, "a register is too narrow");
        if (c == BR_KC_PRED && l->f->vals.at[*v].cls != BR_KC_PRED)
            return PX_NO(l, "a predicate is needed");
        *v = px_resize(l, *v, c, false);
        break;
    case O_INT: *v = px_k(l, c, o->imm); break;
    case O_F32:
        *v = px_k(l, c,
                  c == BR_KC_B64
                      ? br_f64_bits((double)br_f32_of((uint32_t)o->imm))
                      : o->imm);
        break;
    case O_F64:
        *v = px_k(l, c,
                  c == BR_KC_B32 ? br_f32_bits((float)br_f64_of(o->imm))
                                 : o->imm);
        break;
    case O_SREG:
        i.type = br_ksreg_class[o->a] == BR_KC_B64 ? BR_KT_B64 : BR_KT_B32;
        *v = px_resize(l, px_emit(l, &i, NULL), c, false);
        break;
    case O_VAR:
        *v = symbol(l, o);
        if (o->b)
            *v = px_do2(l, BR_K_SHR, BR_KT_U64, *v, px_k(l, BR_KC_B32, o->b));
        *v = px_resize(l, *v, c, false);
        break;
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
        if (l->f->vals.at[v].cls < BR_KC_B16)
            return PX_NO(l, "the vector does not fit");
        if (l->f->vals.at[v].cls == BR_KC_B16) { /* bytes */
            r = px_do2(l, BR_K_AND, BR_KT_B16, v, px_k(l, BR_KC_B16, 0xff));
            v = px_do2(l, BR_K_SHR, BR_KT_U16, v, px_k(l, BR_KC_B32, 8));
            return px_dst(l, &l->p->ops.at[o->a], BR_KT_B8, r) &&
                   px_dst(l, &l->p->ops.at[o->a + 1], BR_KT_B8, v);
        }
        r = px_emit(l, &i, &v);
        return px_dst(l, &l->p->ops.at[o->a], BR_KT_B16, r) &&
               px_dst(l, &l->p->ops.at[o->a + 1], BR_KT_B16, r + 1);
    }
    if (o->kind == O_VEC && o->b == 4 && l->f->vals.at[v].cls >= BR_KC_B32) {
        px_opnd halves = {.kind = O_VEC, .b = 2};
        br_kins i = {.op = BR_K_UNPACK, .n_arg = 1};
        uint32_t r;

        i.type = l->f->vals.at[v].cls == BR_KC_B64 ? BR_KT_B64 : BR_KT_B32;
        r = px_emit(l, &i, &v);

        halves.a = o->a;
        if (!px_dst(l, &halves, BR_KT_B32, r))
            return false;
        halves.a = o->a + 2;
        return px_dst(l, &halves, BR_KT_B32, r + 1);
    }
    if (o->kind != O_REG || o->imm)
        return PX_NO(l, "the result needs a register");
    c = reg_class(l, o->a);
    if (c < (br_kclass)l->f->vals.at[v].cls ||
        (c != BR_KC_PRED) != (l->f->vals.at[v].cls != BR_KC_PRED))
        return PX_NO(l, "the register of the result is too narrow");
    px_write_reg(l, o->a, px_resize(l, v, c, br_ktinfo_of[type].kind == 'S'));
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
    if (b->kind == O_REG && !b->imm) {
        *base = px_read_reg(l, b->a);
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

/* ---- the driver --------------------------------------------------------- */

static void
undefine(px_lower *l, uint32_t reg, bool write, void *arg)
{
    (void)arg;
    if (write)
        px_write_reg(l, reg, br_kfn_undef(l->m, l->f, reg_class(l, reg)));
}

/* A note, and a trap that says it. */
static br_code
trap_here(px_lower *l, uint32_t line, const char *says)
{
    br_kins trap = {.op = BR_K_TRAP};

    if (l->p->opts && l->p->opts->strict) {
        l->p->line = line;
        return px_fail(l->p, "%s", says);
    }
    trap.imm = (int64_t)br_kir_note(l->m, line, "%s", says) + 1;
    px_emit(l, &trap, NULL);
    return BR_OK;
}

/* The instruction costs itself: a note, a trap, undefined results. */
static br_code
refuse(px_lower *l, const px_ins *i)
{
    const px_opcode *o = l->opc;
    char buf[300];
    int n = (int)BR_MIN(o->text.n, (size_t)80);

    if (o->bad.n)
        snprintf(buf, sizeof buf, "%.*s: '%.*s' is not known", n, o->text.p,
                 (int)BR_MIN(o->bad.n, (size_t)60), o->bad.p);
    else
        snprintf(buf, sizeof buf, "%.*s: %s", n, o->text.p, l->why);
    BR_TRY(trap_here(l, i->line, buf));
    px_each_reg(l, i, undefine, NULL);
    return BR_OK;
}

/* Is a number of a kind that the instruction's types have? 0f... are bits of 32,
 * decimals and 0d... of 64. */
static bool
is_of_types(const px_opcode *c, const px_opnd *o)
{
    unsigned bits = o->kind == O_F32 ? BR_KT_B32 : BR_KT_B64;
    bool is = o->kind != O_F32 && o->kind != O_F64;

    for (unsigned k = 0; k < c->n_types; k++)
        is = is || c->types[k] == bits || br_ktinfo_of[c->types[k]].kind == 'F';
    return is || c->n_types == 0; /* a call's arguments */
}

static bool
has_numbers_of_its_types(px_lower *l, const px_ins *ins)
{
    for (uint32_t n = 0; n < ins->n_op; n++) {
        const px_opnd *o = px_op(l, ins, n);
        uint32_t count = o->kind == O_VEC ? o->b : 1;

        for (uint32_t k = 0; k < count; k++)
            if (!is_of_types(l->opc,
                             o->kind == O_VEC ? &l->p->ops.at[o->a + k] : o))
                return PX_NO(l, "a decimal is none of its types");
    }
    return true;
}

static br_code
lower_ins(px_lower *l, const px_ins *i)
{
    size_t ins_mark = l->f->ins.n, blk_mark = l->f->blks.at[l->blk].ins.n;

    l->ins = i;
    l->opc = &l->p->opcodes.at[i->opcode];
    l->why = "this is not supported";
    if (l->opc->root && !l->opc->bad.n && has_numbers_of_its_types(l, i) &&
        l->opc->root->how(l, i)) {
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
                 .type = (uint8_t)px_bits_type(l->p->regs.at[reg]),
                 .n_arg = 1,
                 .n_res = 1};
    uint32_t base = px_emit(l, &f, NULL);

    i.mods = br_kmod_put(BR_KF_SPACE, BR_KM_SPACE_LOCAL);
    px_write_reg(l, reg, px_emit(l, &i, &base));
}

static void
frame_store(px_lower *l, uint32_t reg, uint32_t at)
{
    br_kins f = {.op = BR_K_FRAME, .imm = at};
    br_kins i = {.op = BR_K_ST,
                 .type = (uint8_t)px_bits_type(l->p->regs.at[reg]),
                 .n_arg = 2};
    uint32_t args[2] = {px_emit(l, &f, NULL), px_read_reg(l, reg)};

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
        arg = px_read_reg(l, b->guard);
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
    for (size_t w = 0; k->pred.n && w < words; w++)
        for (uint64_t left = l->live[b * words + w]; left; left &= left - 1) {
            size_t m = 64 * w + (size_t)__builtin_ctzll(left);
            br_kins phi = {.op = BR_K_PHI, .sym = BR_KNONE};

            phi.type = types[reg_class(l, l->reg_of[m])];
            phi.imm = l->reg_of[m]; /* until its arguments are known */
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
