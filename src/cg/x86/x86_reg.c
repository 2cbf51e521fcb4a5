/* x86_reg.c - registers of a region: one pass, the value whose next use is
 * furthest gives way.
 *
 * A region is straight code, so next uses are known exactly, and what is stored
 * in its row anyway costs nothing to drop (Belady, 1966). Two kinds of values
 * come from nowhere and are never stored: constants, and the masks EXEC of the
 * lanes that run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

#include <string.h>

/* ---- single instructions -------------------------------------------------- */

/* In code for 16 lanes an instruction on vectors is its twin. */
static void
emit(gen *g, br_x86_op op, const br_x86_arg *args)
{
    br_x86_put(g->a, g->z ? x86_twin(op) : op, args);
}

void
e3(gen *g, br_x86_op op, unsigned d, unsigned a, unsigned b)
{
    emit(g, op, (br_x86_arg[]){br_x86_reg(d), br_x86_reg(a), br_x86_reg(b)});
}

/* The fourth operand is an immediate, or of vblendv a register. */
void
e3i(gen *g, br_x86_op op, unsigned d, unsigned a, unsigned b, int imm)
{
    bool r = op == BR_X_BLENDVPS || op == BR_X_BLENDVPD;

    emit(g, op,
         (br_x86_arg[]){br_x86_reg(d), br_x86_reg(a), br_x86_reg(b),
                        r ? br_x86_reg((unsigned)imm) : br_x86_imm(imm)});
}

void
e2(gen *g, br_x86_op op, unsigned d, unsigned a)
{
    emit(g, op, (br_x86_arg[]){br_x86_reg(d), br_x86_reg(a)});
}

void
e2i(gen *g, br_x86_op op, unsigned d, unsigned a, int imm)
{
    emit(g, op, (br_x86_arg[]){br_x86_reg(d), br_x86_reg(a), br_x86_imm(imm)});
}

void
em(gen *g, br_x86_op op, unsigned d, br_x86_arg m)
{
    emit(g, op, (br_x86_arg[]){br_x86_reg(d), m});
}

void
e3m(gen *g, br_x86_op op, unsigned d, unsigned a, br_x86_arg m)
{
    emit(g, op, (br_x86_arg[]){br_x86_reg(d), br_x86_reg(a), m});
}

void
es(gen *g, br_x86_op op, br_x86_arg m, unsigned s)
{
    emit(g, op, (br_x86_arg[]){m, br_x86_reg(s)});
}

void
ei(gen *g, br_x86_op op, br_x86_arg m, int64_t imm)
{
    emit(g, op, (br_x86_arg[]){m, br_x86_imm(imm)});
}

void
ej(gen *g, br_x86_op op, uint32_t label)
{
    emit(g, op, (br_x86_arg[]){br_x86_lab(label)});
}

br_x86_arg
x86_ctx_at(size_t offset)
{
    return br_x86_mem(RBX, (int32_t)offset);
}

/* A constant of 8 bytes behind the code. */
br_x86_arg
x86_const(gen *g, uint64_t bits)
{
    size_t k = 0;

    while (k < g->consts.n && g->consts.at[k] != bits)
        k++;
    if (k == g->consts.n &&
        (!br_vec_push(&g->consts, bits) ||
         !br_vec_push(&g->const_label, br_x86_label(g->a)))) {
        g->consts.n = g->const_label.n;
        g->a->oom = true;
        return br_x86_at(0);
    }
    return br_x86_at(g->const_label.at[k]);
}

/* The same of 16 lanes. */
br_x86_arg
x86_const_row(gen *g, const uint32_t lanes[X86_MOST])
{
    uint64_t bits[X86_MOST / 2];
    size_t k = 0;

    memcpy(bits, lanes, sizeof bits);
    while (k < g->consts.n &&
           (k + BR_COUNT(bits) > g->consts.n ||
            memcmp(g->consts.at + k, bits, sizeof bits) != 0))
        k++;
    for (size_t n = 0; k == g->consts.n - n && n < BR_COUNT(bits); n++)
        if (!br_vec_push(&g->consts, bits[n]) ||
            !br_vec_push(&g->const_label, br_x86_label(g->a))) {
            g->consts.n = g->const_label.n;
            g->a->oom = true;
            return br_x86_at(0);
        }
    return br_x86_at(g->const_label.at[k]);
}

br_x86_arg
x86_steps32(gen *g, uint32_t v)
{
    unsigned step = g->fn->step[v];
    int64_t by = x86_step_by(g->fn, v);
    uint32_t lanes[X86_MOST];

    if (step <= X86_STEPS)
        return x86_ctx_at(offsetof(x86_ctx, steps32) +
                          sizeof lanes * (step - 1));
    for (int k = 0; k < X86_MOST; k++)
        lanes[k] = (uint32_t)(k * by);
    return x86_const_row(g, lanes);
}

br_x86_arg
x86_steps64(gen *g, uint32_t v, unsigned part)
{
    unsigned step = g->fn->step[v], from = g->z ? 0 : 4 * part;
    int64_t by = x86_step_by(g->fn, v);
    uint32_t halves[X86_MOST];

    if (step <= X86_STEPS)
        return x86_ctx_at(offsetof(x86_ctx, steps) + 8 * X86_MOST * (step - 1) +
                          8 * from);
    for (unsigned k = 0; k < X86_MOST; k++)
        halves[k] = (uint32_t)((uint64_t)((from + k / 2) * by) >> 32 * (k % 2));
    return x86_const_row(g, halves);
}

/* ---- rows ----------------------------------------------------------------- */

static br_x86_arg
row_at(const gen *g, uint32_t v, unsigned part)
{
    int32_t at = (int32_t)g->fn->slot[v];

    if (g->fn->uniform[v])
        return br_x86_mem(R12, at);
    switch (cls_of(g, v)) {
    case BR_KC_PRED:
        return g->z ? br_x86_memx(R12, R15, 1, at) : br_x86_mem(R12, at);
    case BR_KC_B64:
        return br_x86_memx(R12, R14, 2, at + PART(g) * (int32_t)part);
    default: return br_x86_memx(R12, R14, 1, at);
    }
}

static br_x86_arg
spill_place(const gen *g, unsigned slot)
{
    return br_x86_mem(R12,
                      (int32_t)(g->spill_at + (unsigned)PART(g) * (slot - 1)));
}

/* 32 bits, one a lane, at [rbx + offset] or so, as lanes of all ones or zero. */
static void
expand(gen *g, unsigned to, br_x86_arg from)
{
    br_x86_arg bits =
        br_x86_memx(RBX, R14, 1, (int32_t)offsetof(x86_ctx, bits));

    em(g, BR_X_BCASTD, to, from);
    e3m(g, BR_X_PAND, to, to, bits);
    e3m(g, BR_X_PCMPEQD, to, to, bits);
}

void
x86_mask_row(gen *g, unsigned to, unsigned offset)
{
    expand(g, to, x86_ctx_at(offset));
}

void
x86_ones(gen *g, unsigned to)
{
    if (g->z)
        e3i(g, BR_X_ZPTERNLOGD, to, to, to, 0xff);
    else
        e3(g, BR_X_PCMPEQD, to, to, to);
}

static void
load_const(gen *g, uint32_t v, unsigned to)
{
    uint64_t bits = g->f->vals.at[v].bits;
    unsigned cls = cls_of(g, v);

    if (cls == BR_KC_PRED)
        bits = bits ? ~0ull : 0;
    if (bits == 0)
        e3(g, BR_X_PXOR, to, to, to);
    else if (bits == ~0ull || (cls != BR_KC_B64 && bits == 0xffffffff))
        x86_ones(g, to);
    else
        em(g, cls == BR_KC_B64 ? BR_X_BCASTQ : BR_X_BCASTD, to,
           x86_const(g, bits));
}

/* First lanes of the quarters, or the lanes of one made of its first. */
void
x86_load_even(gen *g, uint32_t v, unsigned part, unsigned to)
{
    bool wide = cls_of(g, v) == BR_KC_B64;
    int32_t at = (int32_t)g->fn->slot[v];

    if (g->uniform) {
        em(g, wide ? BR_X_MOVUPS_L : BR_X_MOVUPS_LX, to, br_x86_mem(R12, at));
        return;
    }
    em(g, wide ? BR_X_BCASTQ : BR_X_BCASTD, to,
       br_x86_memx(R12, R15, wide ? 8 : 4,
                   at + (g->z && wide ? 8 * (int32_t)part : 0)));
    if (g->fn->step[v] == 0)
        return;
    if (wide)
        e3m(g, BR_X_PADDQ, to, to, x86_steps64(g, v, part));
    else
        e3m(g, BR_X_PADDD, to, to, x86_steps32(g, v));
}

/* Whether a value is in a mask register. */
static bool
in_mask(const gen *g, uint32_t v)
{
    return g->z && (v >= g->f->vals.n || cls_of(g, v) == BR_KC_PRED);
}

static void
load_mask(gen *g, uint32_t v, unsigned part, unsigned to)
{
    int32_t exec = (int32_t)offsetof(x86_ctx, exec);
    unsigned slot = g->spill[v * 2 + part];

    if (v == EXEC(g))
        em(g, BR_X_KMOVW, to, br_x86_memx(RBX, R15, 1, exec));
    else if (v == EXEC64(g))
        em(g, BR_X_KMOVB, to, br_x86_memx(RBX, R15, 1, exec + (int32_t)part));
    else if (is_const(g, v))
        e3(g, g->f->vals.at[v].bits ? BR_X_KXNORW : BR_X_KXORW, to, to, to);
    else
        em(g, BR_X_KMOVW, to, slot ? spill_place(g, slot) : row_at(g, v, 0));
}

static void
load(gen *g, uint32_t v, unsigned part, unsigned to)
{
    unsigned slot = g->spill[v * 2 + part];
    unsigned cls = cls_of(g, v);

    if (in_mask(g, v)) {
        load_mask(g, v, part, to);
    } else if (v == EXEC(g)) {
        x86_mask_row(g, to, offsetof(x86_ctx, exec));
    } else if (v == EXEC64(g)) {
        unsigned e = x86_use(g, EXEC(g), 0);

        if (part)
            e2i(g, BR_X_EXTRACT128, to, e, 1);
        e2(g, BR_X_PMOVSXDQ, to, part ? to : e);
    } else if (is_const(g, v)) {
        load_const(g, v, to);
    } else if (slot) {
        em(g, BR_X_MOVUPS_L, to, spill_place(g, slot));
    } else if (g->fn->uniform[v]) {
        em(g, cls == BR_KC_B64 ? BR_X_BCASTQ : BR_X_BCASTD, to,
           row_at(g, v, 0));
    } else if (cls == BR_KC_PRED) {
        expand(g, to, row_at(g, v, 0));
    } else if (x86_even(g->fn, v)) {
        x86_load_even(g, v, part, to);
    } else {
        em(g, BR_X_MOVUPS_L, to, row_at(g, v, part));
    }
}

/* A predicate's byte of the quarter; other lanes keep theirs if masked. */
static void
store_bits(gen *g, uint32_t v, unsigned from)
{
    br_x86_arg at = br_x86_memx(R12, R15, 1, (int32_t)g->fn->slot[v]);

    e2(g, BR_X_MOVMSKPS, RAX, from);
    if (g->masked[v] && !g->fast && !g->wide) {
        em(g, BR_X_MOVZX8, RCX, at);
        e2(g, BR_X_XOR32, RAX, RCX);
        em(g, BR_X_MOVZX8, RDX,
           br_x86_memx(RBX, R15, 1, (int32_t)offsetof(x86_ctx, exec)));
        e2(g, BR_X_AND32, RAX, RDX);
        e2(g, BR_X_XOR32, RAX, RCX);
    }
    es(g, BR_X_MOV8_S, at, RAX);
}

/* A predicate's lanes of two quarters, likewise. */
static void
store_mask(gen *g, uint32_t v, unsigned from)
{
    unsigned t = 0, e;

    if (g->masked[v] && !g->fast && !g->wide) {
        e = x86_use(g, EXEC(g), 0);
        t = x86_ktmp(g);
        em(g, BR_X_KMOVW, t, row_at(g, v, 0));
        e3(g, BR_X_KXORW, t, t, from);
        e3(g, BR_X_KANDNW, t, e, t);
        e3(g, BR_X_KXORW, t, t, from);
    }
    es(g, BR_X_KMOVW_S, row_at(g, v, 0), t ? t : from);
    if (t)
        x86_kdrop(g, t);
}

static void
store_z(gen *g, uint32_t v, unsigned part, unsigned from)
{
    bool wide = cls_of(g, v) == BR_KC_B64;
    unsigned e = x86_use(g, wide ? EXEC64(g) : EXEC(g), part);

    br_x86_put(
        g->a, wide ? BR_X_ZMOVUPD_SK : BR_X_ZMOVUPS_SK,
        (br_x86_arg[]){row_at(g, v, part), br_x86_reg(from), br_x86_reg(e)});
}

static void
store(gen *g, uint32_t v, unsigned part, unsigned from)
{
    unsigned cls = cls_of(g, v), t;

    if (g->uniform && x86_even(g->fn, v)) {
        es(g, cls == BR_KC_B64 ? BR_X_MOVUPS_S : BR_X_MOVUPS_SX,
           br_x86_mem(R12, (int32_t)g->fn->slot[v]), from);
        return;
    }
    if (g->uniform) {
        es(g, cls == BR_KC_B64 ? BR_X_MOVQ_RX : BR_X_MOVD_RX, row_at(g, v, 0),
           from);
        return;
    }
    if (cls == BR_KC_PRED) {
        (g->z ? store_mask : store_bits)(g, v, from);
        return;
    }
    if (!g->masked[v] || g->fast || g->wide) {
        es(g, BR_X_MOVUPS_S, row_at(g, v, part), from);
        return;
    }
    if (g->z) {
        store_z(g, v, part, from);
        return;
    }
    t = x86_tmp(g);
    em(g, BR_X_MOVUPS_L, t, row_at(g, v, part));
    if (cls == BR_KC_B64)
        e3i(g, BR_X_BLENDVPD, t, t, from, (int)x86_use(g, EXEC64(g), part));
    else
        e3i(g, BR_X_BLENDVPS, t, t, from, (int)x86_use(g, EXEC(g), 0));
    es(g, BR_X_MOVUPS_S, row_at(g, v, part), t);
    x86_drop(g, t);
}

/* ---- registers ------------------------------------------------------------ */

static void
forget(gen *g, unsigned r)
{
    if (g->reg[r].busy && !g->reg[r].temp)
        g->regs[g->reg[r].val * 2 + g->reg[r].part] = NO_REG;
    g->reg[r].busy = g->reg[r].pinned = g->reg[r].temp = false;
}

static bool
has_row(const gen *g, uint32_t v)
{
    return v >= g->f->vals.n || is_const(g, v) || g->fn->slot[v] != X86_NO_SLOT;
}

static void
evict(gen *g, unsigned r)
{
    uint32_t v = g->reg[r].val, p = g->reg[r].part;

    if (!has_row(g, v) && !g->spill[v * 2 + p] && g->next[v] != NEVER) {
        if (g->spilled == g->n_spills) {
            g->too_many = true;
        } else {
            g->spill[v * 2 + p] = ++g->spilled;
            es(g, r >= MASK_REGS ? BR_X_KMOVW_S : BR_X_MOVUPS_S,
               spill_place(g, g->spilled), r % MASK_REGS);
        }
    }
    forget(g, r);
}

/* A register, of vectors or of masks. */
static unsigned
take(gen *g, bool mask)
{
    unsigned from = mask ? MASK_REGS + 1 : 0;
    unsigned n = mask ? NREGS - MASK_REGS - 1u : g->z ? VEC_REGS : 16;
    unsigned best = NO_REG;
    uint32_t far = 0;

    for (unsigned k = 0; k < n; k++) {
        unsigned r = g->uniform ? n - 1 - k : from + k;

        if (!g->reg[r].busy) /* uniform: x86_fast has the low ones */
            return r;
    }
    for (unsigned r = from; r < from + n; r++) {
        uint32_t next;

        if (g->reg[r].pinned || g->reg[r].temp)
            continue;
        next =
            g->reg[r].val >= g->f->vals.n ? g->at + 4 : g->next[g->reg[r].val];
        if (best == NO_REG || next > far) {
            best = r;
            far = next;
        }
    }
    br_check(best != NO_REG && "an instruction needs fewer");
    evict(g, best);
    return best;
}

static unsigned
give(gen *g, uint32_t v, unsigned part)
{
    unsigned r = take(g, in_mask(g, v));

    g->reg[r].val = v;
    g->reg[r].part = (uint8_t)part;
    g->reg[r].busy = g->reg[r].pinned = true;
    g->reg[r].temp = false;
    g->regs[v * 2 + part] = (uint8_t)r;
    return r % MASK_REGS;
}

unsigned
x86_use(gen *g, uint32_t v, unsigned part)
{
    unsigned r;

    part = g->uniform ? 0 : part;
    if (part && v < g->f->vals.n &&
        (is_const(g, v) || g->fn->uniform[v] ||
         (x86_even(g->fn, v) && g->fn->step[v] == 0)))
        part = 0; /* all lanes are alike */
    r = g->regs[v * 2 + part];
    if (r != NO_REG) {
        g->reg[r].pinned = true;
        return r % MASK_REGS;
    }
    r = give(g, v, part);
    load(g, v, part, r);
    return r;
}

unsigned
x86_def(gen *g, uint32_t v, unsigned part)
{
    return give(g, v, part);
}

unsigned
x86_tmp(gen *g)
{
    unsigned r = take(g, false);

    g->reg[r].busy = g->reg[r].temp = true;
    return r;
}

unsigned
x86_ktmp(gen *g)
{
    unsigned r = take(g, true);

    g->reg[r].busy = g->reg[r].temp = true;
    return r - MASK_REGS;
}

void
x86_kdrop(gen *g, unsigned k)
{
    x86_drop(g, MASK_REGS + k);
}

void
x86_drop(gen *g, unsigned r)
{
    g->reg[r].busy = g->reg[r].temp = false;
}

/* ---- regions -------------------------------------------------------------- */

/* next_use of each argument: the instruction of the region after this one that
 * reads the value, too. */
static void
find_uses(gen *g, const uint32_t *list, size_t n)
{
    for (size_t k = n; k-- > 0;) {
        const br_kins *i = &g->f->ins.at[list[k]];

        for (unsigned a = 0; a < i->n_arg; a++)
            g->next_use[i->arg + a] = g->next[arg_of(g, i, a)];
        for (unsigned a = 0; a < i->n_arg; a++)
            g->next[arg_of(g, i, a)] = (uint32_t)k;
        /* next[] of a result is right when its turn comes: it is made here. */
    }
}

static void
retire(gen *g, const br_kins *i)
{
    for (unsigned r = 0; r < i->n_res; r++)
        for (unsigned p = 0; p < parts_of(g, cls_of(g, i->res + r)) &&
                             g->fn->slot[i->res + r] != X86_NO_SLOT;
             p++)
            store(g, i->res + r, p, g->regs[(i->res + r) * 2 + p] % MASK_REGS);
    for (unsigned r = 0; r < NREGS; r++) {
        g->reg[r].pinned = false;
        if (g->reg[r].temp)
            x86_drop(g, r);
        else if (!g->uniform && g->reg[r].busy &&
                 g->reg[r].val < g->f->vals.n &&
                 g->next[g->reg[r].val] == NEVER)
            forget(g, r);
    }
}

/* An argument that is in a register stays until the instruction is done: this
 * may be its last use, and then it would not be stored. */
static void
pin_args(gen *g, const br_kins *i)
{
    for (unsigned a = 0; a < i->n_arg; a++)
        for (unsigned p = 0; p < 2; p++) {
            unsigned r = g->regs[arg_of(g, i, a) * 2 + p];

            if (r != NO_REG)
                g->reg[r].pinned = true;
            g->next[arg_of(g, i, a)] = g->next_use[i->arg + a];
        }
}

static void
body(gen *g, const uint32_t *list, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const br_kins *i = &g->f->ins.at[list[k]];

        x86_sel sel = g->z ? x86_select_z(g, i) : NULL;

        g->at = (uint32_t)k;
        pin_args(g, i);
        (sel ? sel : x86_select(g, i))(g, i);
        retire(g, i);
    }
    for (size_t k = 0; k < n; k++) {
        const br_kins *i = &g->f->ins.at[list[k]];

        for (unsigned r = 0; r < i->n_res; r++) {
            g->spill[(i->res + r) * 2] = g->spill[(i->res + r) * 2 + 1] = 0;
            g->next[i->res + r] = NEVER;
        }
        for (unsigned a = 0; a < i->n_arg; a++)
            g->next[arg_of(g, i, a)] = NEVER;
    }
    g->spilled = 0;
}

void
x86_forget(gen *g)
{
    for (unsigned r = 0; r < NREGS; r++)
        forget(g, r);
}

/* Once: of a warp, or of a quarter that the caller stands for. */
void
x86_straight(gen *g, const uint32_t *list, size_t n)
{
    x86_forget(g);
    g->z = g->zmm && !g->uniform;
    find_uses(g, list, n);
    body(g, list, n);
    g->z = false;
}

void
x86_quarters(gen *g, const uint32_t *list, size_t n)
{
    br_x86_arg exec =
        br_x86_memx(RBX, R15, 1, (int32_t)offsetof(x86_ctx, exec));
    uint32_t top = br_x86_label(g->a), skip = br_x86_label(g->a);

    find_uses(g, list, n);
    x86_forget(g);
    e2(g, BR_X_XOR32, R15, R15);
    e2(g, BR_X_XOR32, R14, R14);
    br_x86_bind(g->a, top);
    g->z = g->zmm;
    if (!g->wide && g->z) {
        em(g, BR_X_MOVZX16, RAX, exec);
        e2(g, BR_X_TEST32, RAX, RAX);
        ej(g, BR_X_JE, skip);
    } else if (!g->wide) {
        ei(g, BR_X_CMP8_I, exec, 0);
        ej(g, BR_X_JE, skip);
    }
    if (g->fast && !g->lined)
        x86_fast_top(g);
    body(g, list, n);
    br_x86_bind(g->a, skip);
    ei(g, BR_X_ADD64_I, br_x86_reg(R15), LANES(g) / X86_LANES);
    ei(g, BR_X_ADD64_I, br_x86_reg(R14), LANES(g) * 4);
    g->z = false;
    ei(g, BR_X_CMP32_I, br_x86_reg(R15), X86_QUARTERS);
    ej(g, BR_X_JNE, top);
}

void
x86_region(gen *g, const uint32_t *list, size_t n, bool uniform)
{
    uint32_t slow, end;

    if (n == 0)
        return;
    g->uniform = uniform;
    if (uniform) {
        x86_straight(g, list, n);
        return;
    }
    slow = br_x86_label(g->a);
    end = br_x86_label(g->a);
    if (x86_fast(g, list, n, slow)) {
        g->fast = true;
        if (g->rest.n)
            x86_quarters(g, g->rest.at, g->rest.n);
        g->fast = false;
        ej(g, BR_X_JMP, end);
    }
    br_x86_bind(g->a, slow);
    x86_quarters(g, list, n);
    x86_forget(g);
    br_x86_bind(g->a, end);
}
