/* kir_uniform.c - what is the same on all lanes that run together.
 *
 *   b: cbr %t c d       %t differs by lane: lanes part at b and meet again at
 *   c: ...              its immediate post-dominator e, and a phi in e may then
 *   d: ...              hold two values
 *   e: %v = phi ...
 *
 * A value is uniform when those who read it may read one number for all lanes:
 * a pure operation of uniform values, a load from a uniform address, a phi of
 * uniform values where no lanes meet that came by different ways. Lanes that
 * leave a loop one by one see values of different rounds: what such a loop
 * makes and somebody reads outside is not uniform. Where lanes part in a
 * loop some may run ahead, and only pure values of what is outside that loop
 * are trusted; where all but one way leaves the loop, those left keep in step.
 *
 * What is not uniform may still go evenly from lane to lane: tid.x by 1, an
 * address made of it by 4, or 12, or -4. Two's complement makes that true of sums and
 * products whatever overflows; extensions to 64 bits are the exception, and who
 * uses the step has to look there.
 *
 * References: Coutinho et al., Divergence analysis and optimizations, 2011.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir.h"

#include <string.h>

/* A loop: positions from the target of a back edge to its last source. */
typedef struct range {
    uint32_t from, to;
} range;

typedef struct uni {
    const br_kfn *f;
    bool warps; /* lanes of several run together */
    const uint32_t *order, *place;
    uint32_t n;
    uint32_t *ipdom; /* by block; n: the end; BR_KNONE: never ends */
    BR_VEC(range) loops;
    uint8_t *join, *ahead, *mixed, *parted; /* by block */
    uint8_t *some; /* by block: lanes may have parted on their way there */
    uint8_t *uniform, *step; /* by value */
    br_ksteps *odd;          /* or NULL */
    uint32_t *reach, *stack;
    uint32_t *where; /* position at which an instruction stands */
    /* By position: where all loops around it that lanes leave one by one have
     * begun, and none has ended. */
    uint32_t *lo, *hi;
    bool change, apart; /* apart: lanes leave a loop at different times */
} uni;

/* ---- post-dominators ------------------------------------------------------ */

/* Blocks in reverse post order of the graph turned round, from the end. */
static uint32_t
reverse_order(const br_kfn *f, uint32_t *out, uint32_t *at, uint32_t *stack)
{
    uint32_t n = (uint32_t)f->blks.n, left = n;

    memset(at, 0, n * sizeof *at);
    for (uint32_t e = 0; e < n; e++) {
        uint32_t top = 0;

        if (f->blks.at[e].succ.n || at[e])
            continue;
        stack[top++] = e;
        at[e] = 1;
        while (top) {
            const br_kblk *b = &f->blks.at[stack[top - 1]];

            if (at[stack[top - 1]] <= b->pred.n) {
                uint32_t p = b->pred.at[at[stack[top - 1]]++ - 1];

                if (!at[p]) {
                    at[p] = 1;
                    stack[top++] = p;
                }
            } else {
                out[--left] = stack[--top];
            }
        }
    }
    memmove(out, out + left, (n - left) * sizeof *out);
    return n - left;
}

static void
post_dominators(uni *u, uint32_t *rpo, uint32_t *num)
{
    uint32_t n = u->n, reached = reverse_order(u->f, rpo, num, u->stack);
    bool change = true;

    for (uint32_t b = 0; b < n; b++)
        u->ipdom[b] = BR_KNONE;
    for (uint32_t k = 0; k < reached; k++)
        num[rpo[k]] = k + 1; /* the end has number 0 */
    while (change) {
        change = false;
        for (uint32_t k = 0; k < reached; k++) {
            const br_kblk *b = &u->f->blks.at[rpo[k]];
            uint32_t d = b->succ.n ? BR_KNONE : n;

            for (size_t s = 0; s < b->succ.n; s++) {
                uint32_t x = b->succ.at[s], y = d;

                if (u->ipdom[x] == BR_KNONE)
                    continue;
                while (y != BR_KNONE && x != y) {
                    uint32_t nx = x == n ? 0 : num[x], ny = y == n ? 0 : num[y];

                    if (nx > ny)
                        x = u->ipdom[x];
                    else
                        y = u->ipdom[y];
                }
                d = x;
            }
            change |= u->ipdom[rpo[k]] != d;
            u->ipdom[rpo[k]] = d;
        }
    }
}

/* ---- what a branch that lanes take differently does ----------------------- */

static bool
find_loops(uni *u)
{
    for (uint32_t b = 0; b < u->n; b++)
        for (size_t s = 0; s < u->f->blks.at[b].succ.n; s++) {
            uint32_t to = u->place[u->f->blks.at[b].succ.at[s]];
            range r = {to, u->place[b]};
            size_t k = 0;

            while (k < u->loops.n && u->loops.at[k].from != to)
                k++;
            if (to > u->place[b])
                continue;
            if (k < u->loops.n)
                u->loops.at[k].to = BR_MAX(u->loops.at[k].to, r.to);
            else if (!br_vec_push(&u->loops, r))
                return false;
        }
    return true;
}

static bool
inside(const range *r, uint32_t pos)
{
    return pos >= r->from && pos <= r->to;
}

static void
reach(uni *u, uint32_t x, uint32_t way, uint32_t *top)
{
    if (u->reach[x] == way + 1)
        return;
    if (u->reach[x] && !u->join[x])
        u->join[x] = u->change = true;
    u->reach[x] = way + 1;
    u->stack[(*top)++] = x;
}

/* Blocks reached from a successor before the lanes meet; those that another
 * successor reached before are joins. */
static void
walk(uni *u, uint32_t b, uint32_t way)
{
    uint32_t top = 0;

    reach(u, u->f->blks.at[b].succ.at[way], way, &top);
    while (top) {
        uint32_t x = u->stack[--top];

        if (x == u->ipdom[b] || x == b)
            continue;
        u->some[x] = true;
        for (size_t s = 0; s < u->f->blks.at[x].succ.n; s++)
            reach(u, u->f->blks.at[x].succ.at[s], way, &top);
    }
}

/* Lanes that part in a loop may go round it while others wait in it, and see
 * what they make of other rounds. */
static void
part(uni *u, uint32_t b)
{
    u->parted[b] = u->change = true;
    memset(u->reach, 0, u->n * sizeof *u->reach);
    for (uint32_t s = 0; s < u->f->blks.at[b].succ.n; s++)
        walk(u, b, s);
    for (size_t k = 0; k < u->loops.n; k++) {
        range *r = &u->loops.at[k];
        unsigned stay = 0;

        if (!inside(r, u->place[b]))
            continue;
        for (uint32_t s = 0; s < u->f->blks.at[b].succ.n; s++)
            stay += inside(r, u->place[u->f->blks.at[b].succ.at[s]]);
        u->apart = true;
        for (uint32_t p = r->from; p <= r->to; p++) {
            u->lo[p] = BR_MAX(u->lo[p], r->from);
            u->hi[p] = BR_MIN(u->hi[p], r->to);
            u->mixed[u->order[p]] = true;
            u->ahead[u->order[p]] |= stay > 1;
        }
    }
}

/* ---- values --------------------------------------------------------------- */

/* Warps that run together do not load together: what others write meanwhile, one
 * may see and one not. */
static bool
uniform_load(const uni *u, const br_kins *i)
{
    unsigned space = br_kmod(i->mods, BR_KF_SPACE);

    return space != 0 && space != BR_KM_SPACE_LOCAL &&
           !(u->warps && br_kmod(i->mods, BR_KF_SEM));
}

/* Whether an instruction of uniform arguments has uniform results. */
static bool
keeps(const uni *u, uint32_t blk, const br_kins *i)
{
    if (br_kopinfo_of[i->op].props & BR_KP_PURE)
        return true;
    switch (i->op) {
    case BR_K_PHI: return !u->join[blk] && !u->ahead[blk];
    case BR_K_SREG: return i->imm >= BR_KS_NTID_X && i->imm <= BR_KS_NCTAID_Z;
    case BR_K_LD: return uniform_load(u, i) && !u->ahead[blk];
    default: return false;
    }
}

/* Votes are the same for all of a warp whatever the lanes say; the mask has to be,
 * too. */
static bool
vote(const uni *u, uint32_t blk, const br_kins *i)
{
    uint32_t mask;

    if (u->ahead[blk] || u->warps)
        return false;
    switch (i->op) {
    case BR_K_ACTIVE: return true;
    case BR_K_VOTE:
    case BR_K_BALLOT:
    case BR_K_REDUX:
    case BR_K_MATCHALL:
        mask = u->f->args.at[i->arg + i->n_arg - 1u];
        return u->uniform[mask];
    default: return false;
    }
}

static void
differs(uni *u, uint32_t v)
{
    u->change |= u->uniform[v];
    u->uniform[v] = false;
}

/* Whether argument a comes out of a loop that lanes leave one by one, on its
 * way to the place at. */
static bool
comes_out(const uni *u, uint32_t at, const br_kins *i, unsigned a)
{
    uint32_t v = u->f->args.at[i->arg + a], from;

    if (!u->apart || u->f->vals.at[v].kind != BR_KV_INS)
        return false;
    from = u->where[u->f->vals.at[v].def];
    return at < u->lo[from] || at > u->hi[from];
}

static void
look(uni *u, uint32_t blk, const br_kins *i)
{
    bool same = keeps(u, blk, i);

    for (unsigned a = 0; a < i->n_arg; a++) {
        uint32_t at = u->place[blk];

        same &= u->uniform[u->f->args.at[i->arg + a]];
        if (i->op == BR_K_PHI) { /* lanes bring what they left with */
            same &= !comes_out(u, at, i, a);
            at = u->place[u->f->blks.at[blk].pred.at[a]];
        }
        if (comes_out(u, at, i, a))
            differs(u, u->f->args.at[i->arg + a]);
    }
    same |= vote(u, blk, i);
    for (unsigned r = 0; r < i->n_res; r++) /* all of them, or none */
        same &= u->uniform[i->res + r];
    for (unsigned r = 0; r < i->n_res && !same; r++)
        differs(u, i->res + r);
}

static void
settle(uni *u)
{
    for (uint32_t b = 0; b < u->n; b++)
        for (size_t k = 0; k < u->f->blks.at[b].ins.n; k++)
            u->where[u->f->blks.at[b].ins.at[k]] = u->place[b];
    do {
        u->change = false;
        for (uint32_t p = 0; p < u->n; p++) {
            uint32_t b = u->order[p];
            const br_kblk *k = &u->f->blks.at[b];
            const br_kins *t = &u->f->ins.at[k->ins.at[k->ins.n - 1]];

            for (size_t s = 0; s < k->ins.n; s++)
                look(u, b, &u->f->ins.at[k->ins.at[s]]);
            if ((t->op == BR_K_CBR || t->op == BR_K_SWITCH) && !u->parted[b] &&
                !u->uniform[u->f->args.at[t->arg]])
                part(u, b);
        }
    } while (u->change);
}

/* ---- steps ---------------------------------------------------------------- */

enum { NOT_YET = 0xfe };

/* A constant as what one whole number of a type is multiplied by; false: none. */
static bool
factor(const uni *u, uint32_t v, const br_kins *i, int64_t *x)
{
    const br_kval *k = &u->f->vals.at[v];

    if (k->kind != BR_KV_CONST)
        return false;
    *x = br_ktinfo_of[i->type].bytes > 4 ? (int64_t)k->bits
         : i->op == BR_K_MULWIDE && br_ktinfo_of[i->type].kind != 'S'
             ? (int64_t)(uint32_t)k->bits
             : (int64_t)(int32_t)k->bits;
    return *x >= -BR_KSTEP_FAR && *x <= BR_KSTEP_FAR;
}

/* The name of a step of so much: others than powers of two have one where the
 * caller has room for them. */
static uint8_t
step_by(uni *u, int64_t by)
{
    uint32_t k = 0;

    if (by == 0)
        return 0;
    if (by > 0 && !(by & (by - 1)) && by < 1 << BR_KSTEP_MAX)
        return (uint8_t)(1 + __builtin_ctzll((uint64_t)by));
    if (!u->odd || by < -BR_KSTEP_FAR || by > BR_KSTEP_FAR)
        return BR_KSTEP_NONE;
    while (k < u->odd->n && u->odd->by[k] != by)
        k++;
    if (k == BR_KSTEP_ODDS)
        return BR_KSTEP_NONE;
    if (k == u->odd->n)
        u->odd->by[u->odd->n++] = (int32_t)by;
    return (uint8_t)(BR_KSTEP_MAX + 1 + k);
}

static uint8_t
scaled(uni *u, uint8_t step, int64_t by)
{
    return step_by(u, br_kstep_by(u->odd, step) * by);
}

static uint8_t
product(uni *u, const br_kins *i)
{
    const uint32_t *a = &u->f->args.at[i->arg];
    int64_t by;

    if (u->step[a[0]] == 0 && u->step[a[1]] == 0)
        return 0;
    if (u->step[a[1]] == 0 && factor(u, a[1], i, &by))
        return scaled(u, u->step[a[0]], by);
    if (u->step[a[0]] == 0 && factor(u, a[0], i, &by))
        return scaled(u, u->step[a[1]], by);
    return BR_KSTEP_NONE;
}

static uint8_t
sum(uni *u, uint8_t a, uint8_t b, int sign)
{
    return step_by(u, br_kstep_by(u->odd, a) + sign * br_kstep_by(u->odd, b));
}

static uint8_t
phi_step(const uni *u, uint32_t blk, const br_kins *i)
{
    uint8_t s = NOT_YET;

    if (u->join[blk] || u->ahead[blk])
        return BR_KSTEP_NONE;
    for (unsigned a = 0; a < i->n_arg; a++) {
        uint8_t x = u->step[u->f->args.at[i->arg + a]];

        if ((x != NOT_YET && s != NOT_YET && x != s) ||
            comes_out(u, u->place[blk], i, a))
            return BR_KSTEP_NONE;
        s = x == NOT_YET ? s : x;
    }
    return s;
}

static bool
whole(uint8_t type)
{
    const br_ktinfo *t = &br_ktinfo_of[type];

    return t->kind != 'F' && t->kind != 'P' && t->lanes == 1 && t->bytes >= 4;
}

/* An unsigned difference that becomes wider where lanes have parted, as in `if (t
 * >= d) ... s[t - d]`: of lanes that are not there it often runs over, and then a
 * step is dearer than none. */
static bool
runs_over(const uni *u, uint32_t blk, const br_kins *i)
{
    const br_kval *v = &u->f->vals.at[u->f->args.at[i->arg]], *c;
    const br_kins *of;

    if (!u->some[blk] || v->kind != BR_KV_INS ||
        br_ktinfo_of[i->op == BR_K_CVT ? i->type2 : i->type].kind == 'S')
        return false;
    of = &u->f->ins.at[v->def];
    if (of->op != BR_K_ADD)
        return of->op == BR_K_SUB;
    c = &u->f->vals.at[u->f->args.at[of->arg + 1u]];
    return c->kind == BR_KV_CONST && c->bits >> 31 & 1;
}

/* Of operations that every target has for whole numbers of 32 and 64 bits. */
static uint8_t
step_of(uni *u, uint32_t blk, const br_kins *i)
{
    const uint32_t *a = &u->f->args.at[i->arg];
    unsigned zero = 0;

    if (i->op == BR_K_PHI)
        return br_ktinfo_of[i->type].bytes >= 4 ? phi_step(u, blk, i)
                                                : BR_KSTEP_NONE;
    if (i->op == BR_K_SREG)
        return i->imm == BR_KS_TID_X || i->imm == BR_KS_LANEID ? 1
               : i->imm <= BR_KS_TID_Z || i->imm == BR_KS_WARPID
                   ? 0
                   : BR_KSTEP_NONE;
    for (unsigned n = 0; n < i->n_arg; n++) {
        if (u->step[a[n]] >= NOT_YET)
            return u->step[a[n]];
        zero += u->step[a[n]] == 0;
    }
    if (i->op == BR_K_TOGEN || i->op == BR_K_FROMGEN)
        return u->step[a[0]];
    if (!whole(i->type) || i->n_res != 1 || br_kmod(i->mods, BR_KF_SAT))
        return BR_KSTEP_NONE;
    switch (i->op) {
    case BR_K_ADD: return sum(u, u->step[a[0]], u->step[a[1]], 1);
    case BR_K_SUB: return sum(u, u->step[a[0]], u->step[a[1]], -1);
    case BR_K_NEG: return scaled(u, u->step[a[0]], -1);
    case BR_K_MULWIDE:
        if (runs_over(u, blk, i))
            return BR_KSTEP_NONE;
        return product(u, i);
    case BR_K_MUL: return product(u, i);
    case BR_K_SHL:
        if (u->f->vals.at[a[1]].kind == BR_KV_CONST &&
            u->f->vals.at[a[1]].bits < 16)
            return scaled(u, u->step[a[0]], 1 << u->f->vals.at[a[1]].bits);
        return zero == 2 ? 0 : BR_KSTEP_NONE;
    case BR_K_AND:
    case BR_K_OR:
    case BR_K_XOR: return zero == 2 ? 0 : BR_KSTEP_NONE;
    case BR_K_CVT:
        return whole(i->type2) && !br_kmod(i->mods, BR_KF_FTZ) &&
                       !br_kmod(i->mods, BR_KF_RELU) && !runs_over(u, blk, i)
                   ? u->step[a[0]]
                   : BR_KSTEP_NONE;
    default: return BR_KSTEP_NONE;
    }
}

/* From the best guess down: no step, then its own, then none. */
static void
steps(uni *u)
{
    for (size_t v = 0; v < u->f->vals.n; v++)
        u->step[v] = u->uniform[v]                        ? 0
                     : u->f->vals.at[v].kind == BR_KV_INS ? NOT_YET
                                                          : BR_KSTEP_NONE;
    for (uint32_t p = 0; p < u->n; p++) {
        const br_kblk *b = &u->f->blks.at[u->order[p]];

        for (size_t k = 0; k < b->ins.n; k++) {
            const br_kins *i = &u->f->ins.at[b->ins.at[k]];

            for (unsigned a = 0; a < i->n_arg; a++) {
                uint32_t at = i->op == BR_K_PHI ? u->place[b->pred.at[a]] : p;

                if (comes_out(u, at, i, a))
                    u->step[u->f->args.at[i->arg + a]] = BR_KSTEP_NONE;
            }
        }
    }
    do {
        u->change = false;
        for (uint32_t p = 0; p < u->n; p++) {
            const br_kblk *b = &u->f->blks.at[u->order[p]];

            for (size_t k = 0; k < b->ins.n; k++) {
                const br_kins *i = &u->f->ins.at[b->ins.at[k]];
                uint8_t was, now;

                if (!i->n_res || u->uniform[i->res] ||
                    u->step[i->res] == BR_KSTEP_NONE)
                    continue;
                was = u->step[i->res];
                now = step_of(u, u->order[p], i);
                if (was != NOT_YET && now != was)
                    now = BR_KSTEP_NONE;
                for (unsigned r = 0; r < i->n_res; r++)
                    u->step[i->res + r] = now;
                u->change |= now != was;
            }
        }
    } while (u->change);
    for (size_t v = 0; v < u->f->vals.n; v++)
        if (u->step[v] == NOT_YET)
            u->step[v] = BR_KSTEP_NONE;
}

int64_t
br_kstep_by(const br_ksteps *odd, uint8_t step)
{
    br_assert(step <= BR_KSTEP_MAX + (odd ? odd->n : 0) && "none");
    return step == 0              ? 0
           : step <= BR_KSTEP_MAX ? (int64_t)1 << (step - 1)
                                  : odd->by[step - BR_KSTEP_MAX - 1];
}

/* Of each block, where all ways from it meet again. */
bool
br_kfn_meet(const br_kfn *f, uint32_t *meet)
{
    size_t n = f->blks.n;
    uint32_t *mem = br_try_calloc(3 * n + 1, sizeof *mem);
    uni u = {.f = f, .n = (uint32_t)n, .ipdom = meet, .stack = mem};

    if (!mem)
        return false;
    post_dominators(&u, mem + n, mem + 2 * n);
    br_free(mem);
    return true;
}

bool
br_kfn_uniform(const br_kfn *f, bool warps, const uint32_t *order,
               const uint32_t *place, uint8_t *uniform, uint8_t *step,
               uint8_t *mixed, br_ksteps *odd)
{
    size_t n = f->blks.n;
    uint32_t *mem = br_try_calloc(8 * n + f->ins.n + 1, sizeof *mem);
    uint8_t *flags = br_try_calloc(4 * n + 1, 1);
    uni u = {.f = f,
             .warps = warps,
             .order = order,
             .place = place,
             .n = (uint32_t)n};
    bool ok = mem && flags;

    if (ok) {
        u.ipdom = mem;
        u.reach = mem + n;
        u.stack = mem + 2 * n;
        u.lo = mem + 6 * n;
        u.hi = mem + 7 * n;
        u.where = mem + 8 * n;
        memset(u.hi, 0xff, n * sizeof *u.hi);
        u.join = flags;
        u.ahead = flags + n;
        u.parted = flags + 2 * n;
        u.some = flags + 3 * n;
        u.mixed = mixed;
        u.uniform = uniform;
        u.step = step;
        u.odd = odd;
        memset(uniform, 1, f->vals.n);
        memset(mixed, 0, n);
        ok = find_loops(&u);
        post_dominators(&u, mem + 4 * n, mem + 5 * n);
        if (ok) {
            settle(&u);
            steps(&u);
        }
    }
    br_vec_fini(&u.loops);
    br_free(mem);
    br_free(flags);
    return ok;
}
