/* pass_flow.c - a few cheap instructions are no reason to branch.
 *
 *   b1: cbr %3 b2 b3                   b1: %5 = neg.s32 %4
 *   b2: %5 = neg.s32 %4           ->       %7 = select.b32 %5 %4 %3
 *       br b3
 *   b3: %7 = phi b1:%4 b2:%5
 *
 * Why       Lanes that part run one after another, and values that cross from
 *           block to block lie in memory: a branch costs as much as some ten
 *           instructions.
 * Requires  br_kir_verify.
 * Changes   blocks of at most MAX_CHEAP instructions without effect that one
 *           branch leads around or between; phis become selects. Then blocks in
 *           a row become one.
 * Cost      two walks over the blocks, last first, so that inner ones go first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

#include <string.h>

enum { MAX_CHEAP = 6, MAX_PHIS = 4 };

static bool
is_cheap(const br_kins *i)
{
    switch (i->op) {
    case BR_K_ADD:
    case BR_K_SUB:
    case BR_K_MUL:
    case BR_K_FMA:
    case BR_K_NEG:
    case BR_K_ABS:
    case BR_K_MIN:
    case BR_K_MAX:
    case BR_K_CVT:
    case BR_K_MULWIDE:
    case BR_K_AND:
    case BR_K_OR:
    case BR_K_XOR:
    case BR_K_SHL:
    case BR_K_SHR:
    case BR_K_LOP3:
    case BR_K_PACK:
    case BR_K_UNPACK:
    case BR_K_SETP:
    case BR_K_SELECT: return true;
    default: return false;
    }
}

/* Whether b alone leads to a block that does little and goes on to one. */
static bool
is_arm(const br_kfn *f, uint32_t b, uint32_t arm)
{
    const br_kblk *k = &f->blks.at[arm];

    if (k->pred.n != 1 || k->pred.at[0] != b || k->succ.n != 1 ||
        k->succ.at[0] == arm || k->ins.n > MAX_CHEAP + 1)
        return false;
    for (size_t n = 0; n + 1 < k->ins.n; n++)
        if (!is_cheap(&f->ins.at[k->ins.at[n]]))
            return false;
    return true;
}

static size_t
edge_from(const br_kblk *to, uint32_t from)
{
    size_t e = 0;

    while (to->pred.at[e] != from)
        e++;
    return e;
}

/* The arm's instructions to the end of b, whose terminator is away. */
static void
take_arm(br_kir *m, br_kfn *f, uint32_t b, uint32_t arm)
{
    br_kblk *k = &f->blks.at[arm], *to = &f->blks.at[b];

    for (size_t n = 0; n + 1 < k->ins.n; n++)
        if (!br_vec_push(&to->ins, k->ins.at[n]))
            m->oom = true;
    if (k->ins.n && !m->oom) {
        k->ins.at[0] = k->ins.at[k->ins.n - 1];
        k->ins.n = 1;
    }
}

/* In b: of each phi of join a select between what comes from yes and from no;
 * the edge from `keep` has it. */
static void
selects(br_kir *m, br_kfn *f, uint32_t b, uint32_t join, uint32_t c,
        const uint32_t from[3])
{
    size_t n = br_kblk_phis(f, &f->blks.at[join]);

    for (size_t k = 0; k < n && !m->oom; k++) {
        uint32_t phi = f->blks.at[join].ins.at[k];
        const br_kins *i = &f->ins.at[phi];
        br_kins sel = {.op = BR_K_SELECT,
                       .type = i->type,
                       .n_arg = 3,
                       .line = i->line,
                       .sym = BR_KNONE};
        size_t e[3];
        uint32_t a[3], id;

        for (int x = 0; x < 3; x++)
            e[x] = edge_from(&f->blks.at[join], from[x]);
        a[0] = br_kargs(f, i)[e[0]];
        a[1] = br_kargs(f, i)[e[1]];
        a[2] = c;
        if (a[0] == a[1]) {
            br_kargs(f, i)[e[2]] = a[0];
            continue;
        }
        id = br_kfn_ins(m, f, b, &sel, a);
        br_kargs(f, &f->ins.at[phi])[e[2]] = f->ins.at[id].res;
    }
}

/* A branch with an arm, or two that meet. False: it is none. */
static bool
convert(br_kir *m, br_kfn *f, uint32_t b)
{
    br_kblk *k = &f->blks.at[b];
    uint32_t last = k->ins.at[k->ins.n - 1], yes, no, join, c;
    bool y, n;

    if (f->ins.at[last].op != BR_K_CBR || k->succ.at[0] == k->succ.at[1] ||
        (k->ins.n > 1 &&
         (br_kopinfo_of[f->ins.at[k->ins.at[k->ins.n - 2]].op].props &
          BR_KP_BAR)))
        return false;
    yes = k->succ.at[0];
    no = k->succ.at[1];
    y = is_arm(f, b, yes);
    n = is_arm(f, b, no);
    if (y && n && f->blks.at[yes].succ.at[0] == f->blks.at[no].succ.at[0])
        join = f->blks.at[yes].succ.at[0];
    else if (y && f->blks.at[yes].succ.at[0] == no)
        join = no;
    else if (n && f->blks.at[no].succ.at[0] == yes)
        join = yes;
    else
        return false;
    if (join == b || br_kblk_phis(f, &f->blks.at[join]) > MAX_PHIS)
        return false;
    c = br_kargs(f, &f->ins.at[last])[0];
    k->ins.n--;
    if (join != yes)
        take_arm(m, f, b, yes);
    if (join != no)
        take_arm(m, f, b, no);
    selects(m, f, b, join, c,
            (uint32_t[]){join == yes ? b : yes, join == no ? b : no,
                         join == yes || join == no ? b : no});
    if (m->oom)
        return false;
    f->ins.at[last].op = BR_K_BR;
    f->ins.at[last].n_arg = 0;
    if (!br_vec_push(&f->blks.at[b].ins, last)) {
        m->oom = true;
        return false;
    }
    if (join != yes) {
        br_kfn_cut(f, yes, 0);
        br_kfn_cut(f, b, 0);
    } else {
        br_kfn_cut(f, no, 0);
        br_kfn_cut(f, b, 1);
    }
    return true;
}

/* What follows b alone, and only b leads to, becomes its end. */
static bool
join(br_kir *m, br_kfn *f, uint32_t b)
{
    br_kblk *k = &f->blks.at[b], *next;
    uint32_t to = k->succ.n == 1 ? k->succ.at[0] : 0;

    if (!to || to == b || f->blks.at[to].pred.n != 1 ||
        br_kblk_phis(f, &f->blks.at[to]) ||
        f->ins.at[k->ins.at[k->ins.n - 1]].op != BR_K_BR ||
        (k->ins.n > 1 &&
         (br_kopinfo_of[f->ins.at[k->ins.at[k->ins.n - 2]].op].props &
          BR_KP_BAR)))
        return false;
    next = &f->blks.at[to];
    if (!br_vec_reserve(&k->ins, k->ins.n + next->ins.n) ||
        !br_vec_reserve(&k->succ, next->succ.n)) {
        m->oom = true;
        return false;
    }
    memcpy(&k->ins.at[k->ins.n - 1], next->ins.at,
           next->ins.n * sizeof *next->ins.at);
    k->ins.n += next->ins.n - 1;
    if (next->succ.n)
        memcpy(k->succ.at, next->succ.at, next->succ.n * sizeof *k->succ.at);
    k->succ.n = next->succ.n;
    next->ins.n = next->succ.n = next->pred.n = 0;
    for (size_t s = 0; s < k->succ.n; s++) {
        br_kblk *x = &f->blks.at[k->succ.at[s]];

        for (size_t p = 0; p < x->pred.n; p++)
            if (x->pred.at[p] == to)
                x->pred.at[p] = b;
        br_kfn_sort_preds(f, x);
    }
    return true;
}

/* All blocks by one or the other; what nothing reaches then goes. */
static void
walk(br_kir *m, br_kfn *f, bool (*what)(br_kir *, br_kfn *, uint32_t))
{
    uint32_t *rpo = br_try_alloc((2 * f->blks.n + 1) * sizeof *rpo), n;
    bool any = false;

    if (!rpo) {
        m->oom = true;
        return;
    }
    n = br_kfn_rpo(f, rpo, rpo + f->blks.n);
    for (uint32_t k = n; k-- > 0 && !m->oom;)
        while (f->blks.at[rpo[k]].ins.n && !m->oom && what(m, f, rpo[k]))
            any = true;
    br_free(rpo);
    if (any && !m->oom)
        br_kfn_drop_dead(m, f);
}

bool
br_kpass_flow(br_kir *m, br_kfn *f)
{
    walk(m, f, convert);
    if (!m->oom)
        (void)br_kpass_ssa(m, f); /* phis of one edge */
    if (!m->oom)
        walk(m, f, join);
    return true;
}
