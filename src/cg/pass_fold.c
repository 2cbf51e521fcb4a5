/* pass_fold.c - phis of one value, constants, identities, decided branches.
 *
 * Why       PTX of compilers folds little: addresses are zero-extended again
 *           and again, guards become selects, macros leave x * 1. A division
 *           by 8 is a shift: strength reduction is done here, too.
 * Requires  br_kir_verify.
 * Changes   uses; deletes phis, computed instructions, edges and blocks that
 *           nothing reaches. Never adds an instruction.
 * Cost      one walk in reverse post order; a phi that becomes trivial through
 *           a back edge waits for the next run of the pass.
 *
 * Identities hold for every bit pattern: x + 0 of floats is none (-0 + 0 = 0).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

typedef struct folder {
    br_kir *m;
    br_kfn *f;
    uint32_t *same;
    uint8_t *gone;
} folder;

static bool
constant(const folder *s, uint32_t v, uint64_t *bits)
{
    const br_kval *k = &s->f->vals.at[v];

    *bits = k->bits;
    return k->kind == BR_KV_CONST;
}

static uint32_t
arg(const folder *s, const br_kins *i, unsigned n)
{
    return br_ksame_find(s->same, br_kargs(s->f, i)[n]);
}

/* The one value a phi has besides itself; BR_KNONE: several. An undefined one
 * beside it does not count where the other is a constant: that is defined
 * everywhere. */
static uint32_t
phi_value(const folder *s, const br_kins *i)
{
    uint32_t one = BR_KNONE, undef = BR_KNONE;

    for (unsigned a = 0; a < i->n_arg; a++) {
        uint32_t v = arg(s, i, a);

        if (v == i->res || v == one)
            continue;
        if (s->f->vals.at[v].kind == BR_KV_UNDEF) {
            undef = v;
            continue;
        }
        if (one != BR_KNONE)
            return BR_KNONE;
        one = v;
    }
    if (one == BR_KNONE)
        return undef;
    if (undef != BR_KNONE && s->f->vals.at[one].kind != BR_KV_CONST)
        return BR_KNONE;
    return one;
}

/* x op 0, x & -1, select of equals, ...: the value, or BR_KNONE. */
static uint32_t
identity(const folder *s, const br_kins *i)
{
    bool whole = br_ktinfo_of[i->type].kind != 'F' &&
                 br_ktinfo_of[i->type].lanes == 1 && !i->mods;
    uint32_t a = i->n_arg ? arg(s, i, 0) : 0;
    uint32_t b = i->n_arg > 1 ? arg(s, i, 1) : 0;
    uint64_t x = 0, y = 0;
    bool ka = i->n_arg && constant(s, a, &x);
    bool kb = i->n_arg > 1 && constant(s, b, &y);

    switch (i->op) {
    case BR_K_SELECT:
        if (constant(s, arg(s, i, 2), &x))
            return x ? a : b;
        return a == b ? a : BR_KNONE;
    case BR_K_ADD:
        if (whole && kb && y == 0)
            return a;
        return whole && ka && x == 0 ? b : BR_KNONE;
    case BR_K_OR:
    case BR_K_XOR:
        if (kb && y == 0)
            return a;
        return ka && x == 0 ? b : BR_KNONE;
    case BR_K_SUB:
    case BR_K_SHL:
    case BR_K_SHR: return whole && kb && y == 0 ? a : BR_KNONE;
    case BR_K_MUL:
        if (whole && kb && y == 1)
            return a;
        return whole && ka && x == 1 ? b : BR_KNONE;
    case BR_K_AND:
        if (a == b)
            return a;
        if (kb && (y == 0 || (i->type == BR_KT_PRED && y == 1)))
            return y ? a : b;
        if (ka && (x == 0 || (i->type == BR_KT_PRED && x == 1)))
            return x ? b : a;
        return BR_KNONE;
    default: return BR_KNONE;
    }
}

/* A chain of two conversions between whole numbers that one can do: the inner
 * one's argument takes the place of its result. */
static void
shorten(folder *s, br_kins *i)
{
    const br_kval *v = &s->f->vals.at[arg(s, i, 0)];
    const br_kins *in;
    uint32_t x;

    if (i->op != BR_K_CVT || i->mods || v->kind != BR_KV_INS)
        return;
    in = &s->f->ins.at[v->def];
    /* Down to no more bits than the inner one got: only low bits matter. */
    if (in->op != BR_K_CVT || in->mods || br_ktinfo_of[in->type].cat != 'i' ||
        br_ktinfo_of[in->type2].cat != 'i' ||
        br_ktinfo_of[i->type].cat != 'i' || br_ktinfo_of[i->type2].cat != 'i' ||
        br_ktinfo_of[i->type].bytes > br_ktinfo_of[in->type2].bytes ||
        br_ktinfo_of[i->type].bytes > br_ktinfo_of[in->type].bytes)
        return;
    x = arg(s, in, 0);
    i->type2 = in->type2;
    br_kargs(s->f, i)[0] = x;
}

/* Unsigned division by a power of two, and products with one: shifts. */
static void
weaken(folder *s, br_kins *i)
{
    const br_ktinfo *t = &br_ktinfo_of[i->type];
    uint32_t b = i->n_arg > 1 ? arg(s, i, 1) : 0;
    br_ktype bits = t->bytes == 8   ? BR_KT_B64
                    : t->bytes == 4 ? BR_KT_B32
                                    : BR_KT_B16;
    uint64_t y;

    if (i->n_arg != 2 || i->mods || t->cat != 'i' || t->lanes != 1 ||
        t->bytes == 1 || !constant(s, b, &y) || !y || (y & (y - 1)) ||
        !(i->op == BR_K_MUL ||
          (t->kind == 'U' && (i->op == BR_K_DIV || i->op == BR_K_REM))))
        return;
    if (i->op == BR_K_REM) {
        i->op = BR_K_AND;
        b = br_kfn_const(s->m, s->f, (br_kclass)t->cls, y - 1);
    } else {
        i->op = i->op == BR_K_MUL ? BR_K_SHL : BR_K_SHR;
        b = br_kfn_const(s->m, s->f, BR_KC_B32, (uint64_t)__builtin_ctzll(y));
    }
    if (i->op != BR_K_SHR)
        i->type = (uint8_t)bits;
    br_kargs(s->f, i)[1] = b;
}

static void
replace(folder *s, uint32_t id, uint32_t by)
{
    s->same[s->f->ins.at[id].res] = by;
    s->gone[id] = 1;
}

static void
fold_ins(folder *s, uint32_t id, bool phis_only)
{
    br_kins *i = &s->f->ins.at[id];
    uint64_t a[4] = {0}, r[2] = {0};
    uint32_t v;
    bool all = i->n_arg > 0;

    if (i->op == BR_K_PHI) {
        v = phi_value(s, i);
        if (v != BR_KNONE)
            replace(s, id, v);
        return;
    }
    if (phis_only || !br_kevals((br_kop)i->op))
        return;
    for (unsigned k = 0; k < i->n_arg; k++)
        all &= constant(s, arg(s, i, k), &a[k]);
    if (all) {
        br_kins copy = *i;

        br_keval(&copy, a, r);
        for (unsigned k = 0; k < copy.n_res; k++)
            s->same[copy.res + k] = br_kfn_const(
                s->m, s->f, (br_kclass)s->f->vals.at[copy.res + k].cls, r[k]);
        s->gone[id] = 1;
        return;
    }
    shorten(s, i);
    weaken(s, i);
    /* A conversion to what it is already. */
    if (i->op == BR_K_CVT && !i->mods && i->type == i->type2 &&
        br_ktinfo_of[i->type].cat == 'i') {
        replace(s, id, arg(s, i, 0));
        return;
    }
    v = identity(s, i);
    if (v != BR_KNONE)
        replace(s, id, v);
}

/* A branch whose condition is known, a switch whose index is. */
static void
decide(folder *s, uint32_t b)
{
    br_kblk *k = &s->f->blks.at[b];
    br_kins *i = &s->f->ins.at[k->ins.at[k->ins.n - 1]];
    uint64_t x;
    size_t keep;

    if ((i->op != BR_K_CBR && i->op != BR_K_SWITCH) ||
        !constant(s, arg(s, i, 0), &x))
        return;
    keep = i->op == BR_K_CBR ? !x : x;
    if (keep >= k->succ.n) /* beyond the table: a fault at run time */
        return;
    for (size_t e = k->succ.n; e-- > 0;)
        if (e != keep)
            br_kfn_cut(s->f, b, e);
    i->op = BR_K_BR;
    i->n_arg = 0;
}

static void
run(br_kir *m, br_kfn *f, bool phis_only)
{
    size_t n = f->blks.n;
    uint32_t *rpo = br_try_calloc(2 * n + 1, sizeof *rpo);
    folder s = {m, f, br_ksame_new(m, f), br_try_calloc(f->ins.n + 1, 1)};
    uint32_t reached;

    if (!rpo || !s.gone)
        m->oom = true;
    if (m->oom)
        goto done;
    reached = br_kfn_rpo(f, rpo, rpo + n);
    for (uint32_t k = 0; k < reached; k++) {
        const br_kblk *b = &f->blks.at[rpo[k]];

        for (size_t at = 0; at < b->ins.n; at++)
            fold_ins(&s, b->ins.at[at], phis_only);
    }
    br_ksame_apply(f, s.same);
    br_kfn_sweep(f, s.gone);
    for (uint32_t b = 0; !phis_only && b < n; b++)
        decide(&s, b);
    br_kfn_drop_dead(m, f);
done:
    br_free(rpo);
    br_free(s.same);
    br_free(s.gone);
}

bool
br_kpass_ssa(br_kir *m, br_kfn *f)
{
    run(m, f, true);
    return true;
}

bool
br_kpass_fold(br_kir *m, br_kfn *f)
{
    run(m, f, false);
    return true;
}
