/* ptx_lower_mem.c - memory, addresses, calls.
 *
 * A call's .param variables are bytes of the caller's frame; call passes their
 * local addresses, and whoever runs it copies what they hold into the frame of
 * the function that is called, and its results back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

/* In a .func the space .param is the frame's. */
static unsigned
space_of(const px_lower *l, const px_opnd *o)
{
    unsigned space = px_space(l->opc);
    const px_opnd *b =
        o->kind == O_MEM && o->a != BR_KNONE ? &l->p->ops.at[o->a] : NULL;

    if (b && b->kind == O_VAR) {
        const px_sym *s = &l->p->syms.at[b->a];

        if (s->kind == S_FRAME)
            return BR_KM_SPACE_LOCAL;
        if (space == 0 && s->kind == S_VAR) /* a name says its space */
            return l->m->vars.at[s->id].space;
    }
    if (space == BR_KM_SPACE_PARAM && !l->f->entry)
        return BR_KM_SPACE_LOCAL;
    return space;
}

static uint32_t
order_of(const px_opcode *o)
{
    unsigned sem = px_has(o, PM_VOLATILE)  ? BR_KM_SEM_VOLATILE
                   : px_has(o, PM_MMIO)    ? BR_KM_SEM_VOLATILE
                   : px_has(o, PM_RELAXED) ? BR_KM_SEM_RELAXED
                   : px_has(o, PM_ACQUIRE) ? BR_KM_SEM_ACQUIRE
                   : px_has(o, PM_RELEASE) ? BR_KM_SEM_RELEASE
                   : px_has(o, PM_ACQ_REL) ? BR_KM_SEM_ACQ_REL
                   : px_has(o, PM_SC)      ? BR_KM_SEM_SC
                                           : 0;
    unsigned scope = px_has(o, PM_CTA)       ? BR_KM_SCOPE_CTA
                     : px_has(o, PM_GPU)     ? BR_KM_SCOPE_GPU
                     : px_has(o, PM_GL)      ? BR_KM_SCOPE_GPU
                     : px_has(o, PM_CLUSTER) ? BR_KM_SCOPE_GPU
                     : px_has(o, PM_SYS)     ? BR_KM_SCOPE_SYS
                                             : 0;

    return br_kmod_put(BR_KF_SEM, sem) | br_kmod_put(BR_KF_SCOPE, scope);
}

static unsigned
lanes_of(const px_lower *l, const px_opnd *o)
{
    unsigned say = px_has(l->opc, PM_V2)   ? 2
                   : px_has(l->opc, PM_V4) ? 4
                   : px_has(l->opc, PM_V8) ? 8
                                           : 1;

    return say == (o->kind == O_VEC ? o->b : 1) ? say : 0;
}

/* .b128 with an order: both halves at once. from: what is compared, NULL: nothing; to:
 * what is put there; was: NULL, or where what was there goes. */
static bool
both_halves(px_lower *l, const px_opnd *at, const px_opnd *from,
            const px_opnd *to, const px_opnd *was)
{
    br_kins i = {
        .op = from ? BR_K_CAS2 : BR_K_XCHG2, .n_arg = from ? 5 : 3, .n_res = 2};
    const px_opnd *src[2] = {from ? from : to, to};
    uint32_t args[5], v[2];

    for (unsigned k = 0; k < (from ? 2 : 1); k++) {
        if (src[k]->kind != O_VEC || src[k]->b != 2)
            return PX_NO(l, "the vector does not fit");
        for (unsigned h = 0; h < 2; h++)
            if (!px_src(l, &l->p->ops.at[src[k]->a + h], BR_KT_B64,
                        &args[1 + 2 * k + h]))
                return false;
    }
    if (!px_addr(l, at, &args[0], &i.imm))
        return false;
    i.mods = order_of(l->opc) | br_kmod_put(BR_KF_SPACE, space_of(l, at));
    v[0] = px_emit(l, &i, args);
    v[1] = v[0] + 1;
    return !was || was->kind == O_SINK || px_dst_words(l, was, BR_KT_B64, v, 2);
}

/* Nothing is compared with nothing, and put there. */
static bool
load_both(px_lower *l, const px_opnd *d, const px_opnd *at)
{
    br_kins i = {.op = BR_K_CAS2, .n_arg = 5, .n_res = 2};
    uint32_t args[5], v[2];

    if (!px_addr(l, at, &args[0], &i.imm))
        return false;
    for (unsigned k = 1; k < 5; k++)
        args[k] = px_k(l, BR_KC_B64, 0);
    i.mods = order_of(l->opc) | br_kmod_put(BR_KF_SPACE, space_of(l, at));
    v[0] = px_emit(l, &i, args);
    v[1] = v[0] + 1;
    return px_dst_words(l, d, BR_KT_B64, v, 2);
}

static bool
at_once(const px_opcode *o)
{
    return px_has(o, PM_B128) && br_kmod(order_of(o), BR_KF_SEM) != 0;
}

bool
px_l_ld(px_lower *l, const px_ins *ins)
{
    const px_opnd *d = px_op(l, ins, 0), *a = px_op(l, ins, 1);
    br_kins i = {.op = BR_K_LD, .type = l->opc->types[0], .n_arg = 1};
    unsigned n = lanes_of(l, d);
    uint32_t base, v;

    if (!n || l->opc->n_types != 1)
        return PX_NO(l, "the vector does not fit");
    if (at_once(l->opc))
        return load_both(l, d, a);
    if (!px_addr(l, a, &base, &i.imm))
        return false;
    i.n_res = (uint8_t)n;
    i.mods = order_of(l->opc) | br_kmod_put(BR_KF_SPACE, space_of(l, a));
    v = px_emit(l, &i, &base);
    for (unsigned k = 0; k < n; k++)
        if (!px_dst(l, d->kind == O_VEC ? &l->p->ops.at[d->a + k] : d, i.type,
                    v + k))
            return false;
    return true;
}

/* st.async, red.async: shared memory is written, and the mbarrier behind it hears
 * of the bytes. Here at once, as copies are. */
static bool
tell_bytes(px_lower *l, const px_ins *ins, unsigned bytes)
{
    br_kins i = {.op = BR_K_MBAR, .n_arg = 2};
    uint32_t args[2];

    if (!px_addr(l, px_op(l, ins, 2), &args[0], &i.imm))
        return false;
    args[1] = px_k(l, BR_KC_B32, bytes);
    i.mods = br_kmod_put(BR_KF_SUB, BR_KM_MB_COMPLETE);
    px_emit(l, &i, args);
    return true;
}

static bool
is_async(px_lower *l, const px_ins *ins)
{
    if (px_has(l->opc, PM_MBARTX) && px_space(l->opc) == BR_KM_SPACE_SHARED &&
        ins->n_op == 3 && l->opc->n_types == 1)
        return true;
    return PX_NO(l, "only what an mbarrier hears of is supported");
}

bool
px_l_st(px_lower *l, const px_ins *ins)
{
    const px_opnd *a = px_op(l, ins, 0), *s = px_op(l, ins, 1);
    br_kins i = {.op = BR_K_ST, .type = l->opc->types[0]};
    unsigned n = lanes_of(l, s);
    bool async = px_has(l->opc, PM_ASYNC);
    uint32_t args[9];

    if (!n || l->opc->n_types != 1)
        return PX_NO(l, "the vector does not fit");
    if (at_once(l->opc))
        return both_halves(l, a, NULL, s, NULL);
    if ((async && !is_async(l, ins)) || !px_addr(l, a, &args[0], &i.imm))
        return false;
    for (unsigned k = 0; k < n; k++)
        if (!px_src(l, s->kind == O_VEC ? &l->p->ops.at[s->a + k] : s, i.type,
                    &args[1 + k]))
            return false;
    i.n_arg = (uint16_t)(1 + n);
    i.mods = order_of(l->opc) | br_kmod_put(BR_KF_SPACE, space_of(l, a));
    px_emit(l, &i, args);
    return !async || tell_bytes(l, ins, n * br_ktinfo_of[i.type].bytes);
}

static const uint8_t atom_ops[][2] = {
    {PM_ADD, BR_KM_ATOM_ADD},   {PM_MIN, BR_KM_ATOM_MIN},
    {PM_MAX, BR_KM_ATOM_MAX},   {PM_AND, BR_KM_ATOM_AND},
    {PM_OR, BR_KM_ATOM_OR},     {PM_XOR, BR_KM_ATOM_XOR},
    {PM_EXCH, BR_KM_ATOM_EXCH}, {PM_INC, BR_KM_ATOM_INC},
    {PM_DEC, BR_KM_ATOM_DEC}};

uint32_t
px_atom_op(const px_opcode *o)
{
    unsigned sub = 0;

    for (size_t k = 0; k < BR_COUNT(atom_ops); k++)
        if (px_has(o, (px_mod)atom_ops[k][0]))
            sub = atom_ops[k][1];
    return br_kmod_put(BR_KF_SUB, sub);
}

/* Of vectors each number is an atomic operation of its own, PTX says. */
static bool
atom_vector(px_lower *l, const px_ins *ins, br_kins *i, uint32_t base)
{
    const px_opnd *d = px_op(l, ins, 0);
    const px_opnd *s = px_op(l, ins, l->opc->root->dst + 1u);
    const unsigned n = lanes_of(l, s), bytes = br_ktinfo_of[i->type].bytes;
    uint32_t args[2] = {base}, v[8], was[8];

    if (br_ktinfo_of[i->type].cat != 'h' &&
        (i->type != BR_KT_F32 || !px_has(l->opc, PM_ADD)))
        return PX_NO(l, "of vectors only floats are changed");
    if (i->op == BR_K_CAS || n < 2 || n * bytes > 16)
        return PX_NO(l, "the vector does not fit");
    for (unsigned k = 0; k < n; k++)
        if (!px_src(l, &l->p->ops.at[s->a + k], i->type, &v[k]))
            return false;
    i->n_arg = 2;
    for (unsigned k = 0; k < n; k++, i->imm += bytes) {
        args[1] = v[k];
        was[k] = px_emit(l, i, args);
    }
    return !l->opc->root->dst || d->kind == O_SINK ||
           px_dst_words(l, d, i->type, was, n);
}

static bool
atom_128(px_lower *l, const px_ins *ins)
{
    const bool cas = px_has(l->opc, PM_CAS);

    if (!l->opc->root->dst || (!cas && !px_has(l->opc, PM_EXCH)))
        return PX_NO(l, "128 bits are exchanged, or compared and exchanged");
    return both_halves(l, px_op(l, ins, 1), cas ? px_op(l, ins, 2) : NULL,
                       px_op(l, ins, cas ? 3 : 2), px_op(l, ins, 0));
}

bool
px_l_atom(px_lower *l, const px_ins *ins)
{
    unsigned first = l->opc->root->dst;
    bool cas = px_has(l->opc, PM_CAS);
    br_kins i = {.op = cas ? BR_K_CAS : BR_K_ATOM, .type = l->opc->types[0]};
    uint32_t args[3], v;

    if (l->opc->n_types != 1)
        return PX_NO(l, "one type is needed");
    if (!px_addr(l, px_op(l, ins, first), &args[0], &i.imm))
        return false;
    i.mods = order_of(l->opc) |
             br_kmod_put(BR_KF_SPACE, space_of(l, px_op(l, ins, first))) |
             (cas ? 0 : px_atom_op(l->opc));
    if (px_has(l->opc, PM_B128))
        return atom_128(l, ins);
    if (px_has(l->opc, PM_V2) || px_has(l->opc, PM_V4) || px_has(l->opc, PM_V8))
        return atom_vector(l, ins, &i, args[0]);
    if (!PX_SRC(l, ins, first + 1, i.type, &args[1]) ||
        (cas && !PX_SRC(l, ins, first + 2, i.type, &args[2])))
        return false;
    i.n_arg = cas ? 3 : 2;
    v = px_emit(l, &i, args);
    return !first || px_dst(l, px_op(l, ins, 0), i.type, v);
}

static bool
red_async(px_lower *l, const px_ins *ins)
{
    br_kins i = {
        .op = BR_K_ATOM, .type = l->opc->types[0], .n_arg = 2, .n_res = 1};
    uint32_t args[2];

    if (!is_async(l, ins) || !px_addr(l, px_op(l, ins, 0), &args[0], &i.imm) ||
        !PX_SRC(l, ins, 1, i.type, &args[1]))
        return false;
    i.mods = br_kmod_put(BR_KF_SPACE, BR_KM_SPACE_SHARED) | px_atom_op(l->opc);
    px_emit(l, &i, args);
    return tell_bytes(l, ins, br_ktinfo_of[i.type].bytes);
}

bool
px_l_red(px_lower *l, const px_ins *ins)
{
    return px_has(l->opc, PM_ASYNC) ? red_async(l, ins) : px_l_atom(l, ins);
}

bool
px_l_fence(px_lower *l, const px_ins *ins)
{
    br_kins i = {.op = BR_K_FENCE, .mods = order_of(l->opc)};

    (void)ins;
    px_emit(l, &i, NULL);
    return true;
}

/* ---- addresses ---------------------------------------------------------- */

bool
px_l_cvta(px_lower *l, const px_ins *ins)
{
    unsigned space = px_space(l->opc), t = l->opc->types[0];
    br_kins i = {.op = px_has(l->opc, PM_TO) ? BR_K_FROMGEN : BR_K_TOGEN,
                 .n_arg = 1};
    const px_opnd *o = px_op(l, ins, 1);
    uint32_t a;

    if (!space)
        return PX_NO(l, "the space is missing");
    if (!PX_SRC(l, ins, 1, t, &a))
        return false;
    if (o->kind == O_VAR && l->p->syms.at[o->a].kind == S_FRAME)
        space = BR_KM_SPACE_LOCAL;
    a = px_resize(l, a, BR_KC_B64, false);
    i.mods = br_kmod_put(BR_KF_SPACE, space);
    a = px_resize(l, px_emit(l, &i, &a), (br_kclass)br_ktinfo_of[t].cls, false);
    return px_dst(l, px_op(l, ins, 0), t, a);
}

/* Of another block's shared memory the address has that block's number in the cluster,
 * and one, from bit 24 on; of this one's it is what it was. */
enum { RANK_BIT = 24 };

static uint32_t
own_rank(px_lower *l)
{
    br_kins i = {.op = BR_K_SREG, .type = BR_KT_B32, .imm = BR_KS_CL_CTARANK};

    return px_emit(l, &i, NULL);
}

static uint32_t
choose(px_lower *l, unsigned type, uint32_t a, uint32_t b, uint32_t x,
       uint32_t y)
{
    br_kins i = {.op = BR_K_SETP, .type = BR_KT_U32, .n_arg = 2};
    uint32_t args[3] = {x, y};

    i.mods = br_kmod_put(BR_KF_CMP, BR_KM_CMP_EQ);
    args[2] = px_emit(l, &i, (uint32_t[]){a, b});
    return px_do(l, BR_K_SELECT, type, args, 3);
}

uint32_t
px_if_alone(px_lower *l, uint32_t addr)
{
    br_kins i = {.op = BR_K_SREG, .type = BR_KT_B32, .imm = BR_KS_CL_NCTARANK};

    return choose(l, BR_KT_B64, px_emit(l, &i, NULL), px_k(l, BR_KC_B32, 1),
                  addr, px_k(l, BR_KC_B64, 0xfffff0));
}

/* mapa d, a, rank */
bool
px_l_mapa(px_lower *l, const px_ins *ins)
{
    const unsigned t = l->opc->types[0];
    const bool wide = t == BR_KT_U64;
    const br_kclass c = wide ? BR_KC_B64 : BR_KC_B32;
    const unsigned bits = wide ? BR_KT_B64 : BR_KT_B32;
    uint32_t a, rank, far;

    if ((t != BR_KT_U32 && !wide) || l->opc->n_types != 1 || ins->n_op != 3)
        return PX_NO(l, "an address has 32 or 64 bits");
    if (!PX_SRC(l, ins, 1, t, &a) || !PX_SRC(l, ins, 2, BR_KT_B32, &rank))
        return false;
    far = px_do2(l, BR_K_ADD, BR_KT_U32, rank, px_k(l, BR_KC_B32, 1));
    far = px_do2(l, BR_K_SHL, BR_KT_B32, far, px_k(l, BR_KC_B32, RANK_BIT));
    far = px_do2(
        l, BR_K_OR, bits, px_resize(l, far, c, false),
        px_do2(l, BR_K_AND, bits, a, px_k(l, c, ~(0xffull << RANK_BIT))));
    return px_dst(l, px_op(l, ins, 0), t,
                  choose(l, bits, rank, own_rank(l), a, far));
}

/* The number of the block in its cluster. */
bool
px_l_first(px_lower *l, const px_ins *ins)
{
    uint32_t a, own = own_rank(l), rank;

    if (!PX_SRC(l, ins, 1, l->opc->types[0], &a))
        return false;
    a = px_resize(l, a, BR_KC_B32, false);
    rank = px_do2(l, BR_K_SHR, BR_KT_U32, a, px_k(l, BR_KC_B32, RANK_BIT));
    a = px_do2(l, BR_K_SUB, BR_KT_U32, rank, px_k(l, BR_KC_B32, 1));
    a = choose(l, BR_KT_B32, rank, px_k(l, BR_KC_B32, 0), own, a);
    return px_dst(l, px_op(l, ins, 0), BR_KT_B32, a);
}

bool
px_l_issp(px_lower *l, const px_ins *ins)
{
    br_kins i = {.op = BR_K_ISSPACE, .n_arg = 1};
    uint32_t a;

    if (!px_space(l->opc))
        return PX_NO(l, "the space is missing");
    if (!PX_SRC(l, ins, 1, BR_KT_B64, &a))
        return false;
    i.mods = br_kmod_put(BR_KF_SPACE, px_space(l->opc));
    return px_dst(l, px_op(l, ins, 0), BR_KT_PRED, px_emit(l, &i, &a));
}

bool
px_l_alloca(px_lower *l, const px_ins *ins)
{
    const px_opnd *align = px_op(l, ins, 2);
    br_kins i = {.op = BR_K_ALLOCA, .n_arg = 1, .imm = 8};
    unsigned t = l->opc->types[0];
    uint32_t n;

    if (align->kind == O_INT && align->imm) /* clang 19 writes 0 for alloca() */
        i.imm = (int64_t)align->imm;
    if (i.imm < 1 || i.imm > 4096 || (i.imm & (i.imm - 1)))
        return PX_NO(l, "an alignment is a power of two up to 4096");
    if (!PX_SRC(l, ins, 1, t, &n))
        return false;
    n = px_resize(l, n, BR_KC_B64, false);
    n = px_resize(l, px_emit(l, &i, &n), (br_kclass)br_ktinfo_of[t].cls, false);
    return px_dst(l, px_op(l, ins, 0), t, n);
}

bool
px_l_stack(px_lower *l, const px_ins *ins)
{
    br_kins i = {.op = l->opc->root->kop};
    unsigned t = l->opc->types[0];
    uint32_t v;

    if (i.op == BR_K_STACK) {
        v = px_resize(l, px_emit(l, &i, NULL), (br_kclass)br_ktinfo_of[t].cls,
                      false);
        return px_dst(l, px_op(l, ins, 0), t, v);
    }
    if (!PX_SRC(l, ins, 0, t, &v))
        return false;
    v = px_resize(l, v, BR_KC_B64, false);
    i.n_arg = 1;
    px_emit(l, &i, &v);
    return true;
}

/* ---- calls -------------------------------------------------------------- */

/* A place in the frame for a value that is no variable; its address. */
static bool
call_place(px_lower *l, uint32_t bytes, uint32_t *at, uint32_t *addr)
{
    br_kins f = {.op = BR_K_FRAME};

    if (px_place(l->p, &l->f->frame_bytes, bytes, 8, at) != BR_OK)
        return PX_NO(l, "the frame is too large");
    f.imm = *at;
    *addr = px_emit(l, &f, NULL);
    return true;
}

/* An argument that is a value: as many bytes of it as the parameter has. */
static bool
call_value(px_lower *l, const px_opnd *x, uint32_t bytes, uint32_t *addr)
{
    br_kins st = {.op = BR_K_ST, .n_arg = 2};
    uint32_t at, args[2];

    st.type = bytes == 8   ? BR_KT_B64
              : bytes == 4 ? BR_KT_B32
              : bytes == 2 ? BR_KT_B16
                           : BR_KT_B8;
    if (bytes > 8 || (bytes & (bytes - 1)))
        return PX_NO(l, "a value for a parameter that is an array");
    if (!px_src(l, x, st.type, &args[1]) ||
        !call_place(l, bytes, &at, &args[0]))
        return false;
    st.mods = br_kmod_put(BR_KF_SPACE, BR_KM_SPACE_LOCAL);
    px_emit(l, &st, args);
    *addr = args[0];
    return true;
}

/* The address of one of a call's operands: a .param variable, or a place for a
 * register or number. bytes 0: a call through a pointer, which has no list. */
static bool
call_operand(px_lower *l, const px_opnd *x, bool result, uint32_t bytes,
             uint32_t *addr)
{
    if (x->kind == O_VAR && l->p->syms.at[x->a].kind == S_FRAME)
        return px_src_class(l, x, BR_KC_B64, addr);
    if (!bytes)
        return PX_NO(l, "a call through a pointer takes .param variables");
    if (!result)
        return call_value(l, x, bytes, addr);
    if (x->kind != O_REG || x->imm || l->n_ret == BR_COUNT(l->ret) ||
        br_ktinfo_of[l->p->regs.at[x->a]].bytes != bytes)
        return PX_NO(l, "a result needs a register of its size");
    l->ret[l->n_ret].reg = x->a;
    return call_place(l, bytes, &l->ret[l->n_ret++].at, addr);
}

static bool
call_list(px_lower *l, const px_opnd *o, const br_kfn *fn, uint32_t *args,
          uint16_t *n)
{
    bool result = o == px_op(l, l->ins, 0);

    for (uint32_t k = 0; o->kind == O_LIST && k < o->b; k++, ++*n) {
        uint32_t bytes = fn && *n < fn->params.n ? fn->params.at[*n].bytes : 0;

        if (*n == 128)
            return PX_NO(l, "too many arguments");
        if (!call_operand(l, &l->p->ops.at[o->a + k], result, bytes, &args[*n]))
            return false;
    }
    return true;
}

bool
px_l_call(px_lower *l, const px_ins *ins)
{
    unsigned at = px_op(l, ins, 0)->kind == O_LIST;
    const px_opnd *fn = px_op(l, ins, at);
    br_kins i = {.op = BR_K_CALL, .n_arg = 0};
    uint32_t args[130];
    const px_sym *s = fn->kind == O_VAR ? &l->p->syms.at[fn->a] : NULL;
    const br_kfn *to = NULL;

    l->n_ret = 0;
    if (s && s->kind == S_FN) {
        i.sym = s->id | BR_KFN_SYM;
        to = &l->m->fns.at[s->id];
    } else if (fn->kind == O_REG) {
        i.op = BR_K_CALLI;
        if (!px_src_class(l, fn, BR_KC_B64, &args[i.n_arg++]))
            return false;
    } else {
        return PX_NO(l, "the function is not declared");
    }
    if ((at && !call_list(l, px_op(l, ins, 0), to, args, &i.n_arg)) ||
        !call_list(l, px_op(l, ins, at + 1), to, args, &i.n_arg))
        return false;
    if (to && (to->params.n != i.n_arg || to->entry))
        return PX_NO(l, "the arguments do not fit the function");
    px_emit(l, &i, args);
    return true;
}

bool
px_l_trap(px_lower *l, const px_ins *ins)
{
    br_kins i = {.op = BR_K_TRAP};

    (void)ins;
    px_emit(l, &i, NULL);
    return true;
}

bool
px_l_nop(px_lower *l, const px_ins *ins)
{
    (void)l;
    (void)ins;
    return true;
}
