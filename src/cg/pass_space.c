/* pass_space.c - generic accesses say which memory they mean, where it is known.
 *
 *   %2 = togen.shared %1               %2 = togen.shared %1
 *   %4 = add.u64 %2 %3           ->    %4 = add.u64 %2 %3
 *   %5 = ld.f32 %4                     %6 = add.u64 %1 %3
 *                                      %5 = ld.shared.f32 %6
 *
 * Why       A generic access looks at each lane's address for its space: in code
 *           for x86-64 one to shared memory is C's work, lane by lane; on AMD it
 *           waits for both memories. Functions take generic pointers, so calls
 *           that became blocks are full of them.
 * Requires  br_kir_verify; parameters that are values (pass_inline.c).
 * Changes   spaces of loads, stores and atomics, and adds their addresses before
 *           them; tests of a known space become constants, fromgen of togen goes.
 * Cost      walks over the function until nothing changes: three, mostly.
 *
 * A pointer plus a number that is no pointer stays in its space, as in C; what
 * was loaded, or came from a call, may be anything.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

#include <string.h>

enum { MAX_ROUNDS = 16, MAX_DEPTH = 4 };
/* Of a value of 64 bits: nothing known yet; a BR_KM_SPACE_; a number; any. */
enum { TOP = 0, NUMBER = 8, ANY = 9 };

typedef struct spaces {
    br_kir *m;
    br_kfn *f;
    uint8_t *is; /* by value */
} spaces;

static unsigned
state(const spaces *s, uint32_t v)
{
    switch (s->f->vals.at[v].kind) {
    case BR_KV_CONST: return NUMBER;
    case BR_KV_UNDEF: return TOP;
    default: return s->is[v];
    }
}

static unsigned
meet(unsigned a, unsigned b)
{
    return a == TOP ? b : b == TOP || a == b ? a : ANY;
}

static bool
pointer(unsigned a)
{
    return a != TOP && a < NUMBER;
}

/* One of two is a pointer, the other a number; or both are numbers. */
static unsigned
sum(unsigned a, unsigned b, bool minus)
{
    if (a == TOP || b == TOP)
        return TOP;
    if (b == NUMBER)
        return a;
    if (minus)
        return pointer(a) && a == b ? NUMBER : ANY;
    return a == NUMBER ? b : ANY;
}

static unsigned
all_numbers(const spaces *s, const br_kins *i)
{
    unsigned is = NUMBER;

    for (unsigned a = 0; a < i->n_arg; a++) {
        uint32_t v = br_kargs(s->f, i)[a];

        if (s->f->vals.at[v].cls == BR_KC_B64)
            is = is == ANY ? ANY : meet(state(s, v), NUMBER);
    }
    return is;
}

static unsigned
result(const spaces *s, const br_kins *i)
{
    const uint32_t *a = br_kargs(s->f, i);
    unsigned is = TOP;

    switch (i->op) {
    case BR_K_PHI:
        for (unsigned k = 0; k < i->n_arg; k++)
            is = meet(is, state(s, a[k]));
        return is;
    case BR_K_SELECT: return meet(state(s, a[0]), state(s, a[1]));
    case BR_K_TOGEN: return br_kmod(i->mods, BR_KF_SPACE);
    case BR_K_ADD: return sum(state(s, a[0]), state(s, a[1]), false);
    case BR_K_SUB: return sum(state(s, a[0]), state(s, a[1]), true);
    case BR_K_AND: /* with a mask: aligned downwards */
        return s->f->vals.at[a[1]].kind == BR_KV_CONST ? state(s, a[0])
                                                       : all_numbers(s, i);
    case BR_K_SREG: return NUMBER;
    case BR_K_CVT: /* from fewer bits; of 64 it is what it was */
        return s->f->vals.at[a[0]].cls == BR_KC_B64 ? all_numbers(s, i)
                                                    : NUMBER;
    case BR_K_MULWIDE: return NUMBER;
    case BR_K_MUL:
    case BR_K_DIV:
    case BR_K_REM:
    case BR_K_SHL:
    case BR_K_SHR:
    case BR_K_OR:
    case BR_K_XOR:
    case BR_K_NEG:
    case BR_K_MIN:
    case BR_K_MAX: return all_numbers(s, i);
    default: return ANY;
    }
}

/* False: it does not come to rest, so nothing is known. */
static bool
settle(spaces *s, const uint32_t *rpo, uint32_t n)
{
    bool more = true;

    for (int round = 0; more && round < MAX_ROUNDS; round++) {
        more = false;
        for (uint32_t k = 0; k < n; k++) {
            const br_kblk *b = &s->f->blks.at[rpo[k]];

            for (size_t at = 0; at < b->ins.n; at++) {
                const br_kins *i = &s->f->ins.at[b->ins.at[at]];
                unsigned is;

                if (!i->n_res || s->f->vals.at[i->res].cls != BR_KC_B64)
                    continue;
                is = i->n_res == 1 ? result(s, i) : ANY;
                for (unsigned r = 0; r < i->n_res; r++) {
                    more |= s->is[i->res + r] != is;
                    s->is[i->res + r] = (uint8_t)is;
                }
            }
        }
    }
    return !more;
}

/* The space that a generic access has; 0: it stays generic. */
static unsigned
space_of(const spaces *s, const br_kins *i)
{
    unsigned is;

    if ((i->op != BR_K_LD && i->op != BR_K_ST && i->op != BR_K_ATOM &&
         i->op != BR_K_CAS && i->op != BR_K_CAS2 && i->op != BR_K_XCHG2) ||
        br_kmod(i->mods, BR_KF_SPACE))
        return 0;
    is = state(s, br_kargs(s->f, i)[0]);
    return is == BR_KM_SPACE_GLOBAL || is == BR_KM_SPACE_SHARED ||
                   is == BR_KM_SPACE_LOCAL
               ? is
               : 0;
}

static uint32_t
made(spaces *s, br_kblk *to, br_kins proto, const uint32_t *args)
{
    uint32_t id;

    proto.sym = BR_KNONE;
    id = br_kfn_ins(s->m, s->f, BR_KNONE, &proto, args);
    if (!br_vec_push(&to->ins, id))
        s->m->oom = true;
    return s->f->ins.at[id].res;
}

/* A generic address as one of the space, computed at the end of `to`: of togen
 * its argument, of a sum with a number the sum of that. */
static uint32_t
in_space(spaces *s, br_kblk *to, uint32_t v, unsigned depth)
{
    const br_kval *k = &s->f->vals.at[v];
    unsigned space = state(s, v);
    br_kins i = {.op = BR_K_FROMGEN,
                 .n_arg = 1,
                 .mods = br_kmod_put(BR_KF_SPACE, space)};
    uint32_t a[2];

    if (space == BR_KM_SPACE_GLOBAL)
        return v; /* the same number */
    if (k->kind == BR_KV_INS) {
        const br_kins *d = &s->f->ins.at[k->def];

        if (d->op == BR_K_TOGEN)
            return br_kargs(s->f, d)[0];
        if (d->op == BR_K_ADD && depth < MAX_DEPTH) {
            unsigned p = pointer(state(s, br_kargs(s->f, d)[0])) ? 0 : 1;

            i = *d;
            a[0] = br_kargs(s->f, d)[p];
            a[1] = br_kargs(s->f, d)[1 - p];
            a[0] = in_space(s, to, a[0], depth + 1);
            return made(s, to, i, a);
        }
    }
    return made(s, to, i, &v);
}

/* A block anew, with what has to stand before its accesses. */
static void
rewrite(spaces *s, uint32_t b)
{
    br_kblk old = s->f->blks.at[b];
    br_kblk *to = &s->f->blks.at[b];

    memset(&to->ins, 0, sizeof to->ins);
    for (size_t at = 0; at < old.ins.n && !s->m->oom; at++) {
        uint32_t id = old.ins.at[at], v;
        unsigned space = space_of(s, &s->f->ins.at[id]);

        if (space) {
            v = in_space(s, to, br_kargs(s->f, &s->f->ins.at[id])[0], 0);
            br_kargs(s->f, &s->f->ins.at[id])[0] = v;
            s->f->ins.at[id].mods |= br_kmod_put(BR_KF_SPACE, space);
        }
        if (!br_vec_push(&to->ins, id))
            s->m->oom = true;
    }
    br_vec_fini(&old.ins);
}

/* isspace of a known space; fromgen of its own togen. */
static void
shorten(spaces *s, uint32_t b, uint32_t *same, uint8_t *gone)
{
    for (size_t at = 0; at < s->f->blks.at[b].ins.n; at++) {
        uint32_t id = s->f->blks.at[b].ins.at[at];
        const br_kins *i = &s->f->ins.at[id], *of;
        unsigned space = br_kmod(i->mods, BR_KF_SPACE), is;
        const br_kval *v;

        if (i->op != BR_K_ISSPACE && i->op != BR_K_FROMGEN)
            continue;
        v = &s->f->vals.at[br_kargs(s->f, i)[0]];
        is = state(s, br_kargs(s->f, i)[0]);
        if (i->op == BR_K_ISSPACE && pointer(is) && is < BR_KM_SPACE_CONST &&
            space < BR_KM_SPACE_CONST) {
            same[i->res] = br_kfn_const(s->m, s->f, BR_KC_PRED, is == space);
            gone[id] = 1;
            continue;
        }
        of = v->kind == BR_KV_INS ? &s->f->ins.at[v->def] : NULL;
        if (i->op == BR_K_FROMGEN && of && of->op == BR_K_TOGEN &&
            br_kmod(of->mods, BR_KF_SPACE) == space &&
            space < BR_KM_SPACE_PARAM) {
            same[i->res] = br_kargs(s->f, of)[0];
            gone[id] = 1;
        }
    }
}

static bool
concerned(const br_kfn *f)
{
    for (size_t k = 0; k < f->ins.n; k++)
        if (f->ins.at[k].op == BR_K_TOGEN)
            return true;
    return false;
}

bool
br_kpass_space(br_kir *m, br_kfn *f)
{
    spaces s = {.m = m, .f = f};
    uint32_t *rpo, *same, n;
    uint8_t *gone;

    if (!concerned(f))
        return false;
    rpo = br_try_alloc((2 * f->blks.n + 1) * sizeof *rpo);
    s.is = br_try_calloc(f->vals.n + 1, 1);
    same = br_ksame_new(m, f);
    gone = br_try_calloc(f->ins.n + 1, 1);
    if (!rpo || !s.is || !same || !gone) {
        m->oom = true;
        goto done;
    }
    n = br_kfn_rpo(f, rpo, rpo + f->blks.n);
    if (!settle(&s, rpo, n))
        goto done;
    for (uint32_t k = 0; k < n; k++)
        shorten(&s, rpo[k], same, gone);
    br_ksame_apply(f, same);
    br_kfn_sweep(f, gone);
    for (uint32_t k = 0; k < n && !m->oom; k++)
        rewrite(&s, rpo[k]);
done:
    br_free(rpo);
    br_free(s.is);
    br_free(same);
    br_free(gone);
    return true;
}
