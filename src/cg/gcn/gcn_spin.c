/* gcn_spin.c - loops in which lanes wait for what others write.
 *
 *   L: atom.exch %r, [lock], 1      a lane of the other warp holds the lock, and
 *      @(%r != 0) bra L             waits behind the loop for its turn
 *      ...
 *
 * In a wave of 64 lanes two warps take turns as lanes of one do: the lowest place
 * runs first. A warp that goes round a loop until memory changes does so for ever
 * where its neighbour, who would change it, waits for the loop to end. Such loops are
 * refused unless all that wait meanwhile come to a barrier of the block, or their end,
 * before they write anything: nobody waits for those.
 *
 *   waits    a way out of the loop hangs on a load that is not weak, an exchange,
 *            a compare and swap, on sums that add nothing; on shared or local memory
 *            that the loop writes beside one of those
 *   does not  a lane goes round only when a compare and swap with what that turn
 *            found has failed: then somebody else's did not; or when what it found,
 *            while it wrote nothing else, is not what it found the turn before
 *   does not  a count goes its way in each turn and ends the loop, whatever memory says
 *
 * Requires  places and who waits where      Changes   nothing; fails
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"

#include <string.h>

enum { MAX_DEPTH = 16 };

typedef struct spin {
    gm_fn *g;
    uint32_t from, to; /* turns of the loop's blocks */
    uint32_t *todo;    /* values or places */
    uint8_t *seen;     /* the same */
    uint32_t *turn;    /* of each value's block */
    uint8_t *calm;     /* by turn: in a loop that only retries */
} spin;

static const br_kins *
maker(const spin *s, uint32_t v)
{
    const br_kfn *f = s->g->f;

    return f->vals.at[v].kind == BR_KV_INS && s->turn[v] >= s->from &&
                   s->turn[v] <= s->to
               ? &f->ins.at[f->vals.at[v].def]
               : NULL;
}

/* Whether a lane that saw this may have to see something else to go on. */
static bool
is_waited_for(const spin *s, const br_kins *i)
{
    unsigned how = br_kmod(i->mods, BR_KF_SUB);
    uint64_t by;

    switch (i->op) {
    case BR_K_LD: /* a lane's own memory nobody else writes */
        return br_kmod(i->mods, BR_KF_SEM) != 0 &&
               br_kmod(i->mods, BR_KF_SPACE) != BR_KM_SPACE_LOCAL;
    case BR_K_CAS: return true;
    case BR_K_ATOM:
        return (how != BR_KM_ATOM_ADD && how != BR_KM_ATOM_INC &&
                how != BR_KM_ATOM_DEC) ||
               (gm_literal(s->g, i, 1, &by) && !by);
    default: return false;
    }
}

/* ---- turns that are another's success ------------------------------------- */

static bool tried(const spin *s, uint32_t cond, bool is, int depth);

static bool
is_head(const spin *s, uint32_t v)
{
    return s->turn[v] == s->from;
}

/* Whether a value is made of what this turn found in memory and of what no turn
 * changes. joined: of a phi, which may stand for itself: a count is none. */
static bool
is_found(const spin *s, uint32_t v, bool joined, int depth)
{
    const br_kins *i = maker(s, v);

    if (!i)
        return true;
    if (i->op == BR_K_LD || i->op == BR_K_CAS)
        return true;
    if (depth > MAX_DEPTH || (i->op == BR_K_PHI && is_head(s, v)) ||
        (i->op != BR_K_PHI &&
         (joined || !(br_kopinfo_of[i->op].props & BR_KP_PURE))))
        return false;
    for (unsigned n = 0; n < i->n_arg; n++)
        if (!is_found(s, s->g->f->args.at[i->arg + n], i->op == BR_K_PHI,
                      depth + 1))
            return false;
    return true;
}

/* Whether the loop does nothing to memory but try to swap. */
static bool
only_swaps(const spin *s)
{
    const br_kfn *f = s->g->f;

    for (uint32_t t = s->from; t <= s->to; t++) {
        const br_kblk *b = &f->blks.at[s->g->order[t]];

        for (size_t k = 0; k < b->ins.n; k++) {
            const br_kins *i = &f->ins.at[b->ins.at[k]];

            if (br_kopinfo_of[i->op].props & BR_KP_WRITE && i->op != BR_K_CAS &&
                i->op != BR_K_FENCE)
                return false;
        }
    }
    return true;
}

/* Whether `was` is what `now` was in the turn before, or both are the same of such
 * two: made wider. */
static bool
is_before(const spin *s, uint32_t was, uint32_t now)
{
    const br_kfn *f = s->g->f;
    const br_kins *i = maker(s, was), *x = maker(s, now);
    const br_kblk *h = &f->blks.at[s->g->order[s->from]];

    for (int depth = 0;
         i && x && i->op == BR_K_CVT && x->op == BR_K_CVT &&
         i->type == x->type && i->type2 == x->type2 && depth < MAX_DEPTH;
         depth++) {
        was = f->args.at[i->arg];
        now = f->args.at[x->arg];
        i = maker(s, was);
        x = maker(s, now);
    }
    if (!i || i->op != BR_K_PHI || !is_head(s, was))
        return false; /* where `now` is the same phi, it stays what it is */
    for (size_t k = 0; k < h->pred.n; k++)
        if (s->g->turn[h->pred.at[k]] >= s->from &&
            f->args.at[i->arg + k] != now)
            return false;
    return true;
}

/* Whether a value that is k, or is not, says that a try failed. */
static bool
tried_value(const spin *s, uint32_t v, uint64_t k, bool is, int depth)
{
    const br_kval *x = &s->g->f->vals.at[v];
    const br_kins *i = maker(s, v);
    const uint32_t *a = i ? &s->g->f->args.at[i->arg] : NULL;
    uint64_t yes, no;

    if (x->kind == BR_KV_CONST)
        return (x->bits == k) != is; /* never so */
    if (!i || depth > MAX_DEPTH)
        return false;
    if (i->op == BR_K_PHI) {
        for (unsigned n = 0; n < i->n_arg; n++)
            if (!tried_value(s, a[n], k, is, depth + 1))
                return false;
        return true;
    }
    if (i->op != BR_K_SELECT || !gm_literal(s->g, i, 0, &yes) ||
        !gm_literal(s->g, i, 1, &no))
        return false;
    return ((yes == k) != is || tried(s, a[2], true, depth + 1)) &&
           ((no == k) != is || tried(s, a[2], false, depth + 1));
}

/* The same of a condition: a compare and swap with what is found anew each turn did
 * not find it. */
static bool
tried(const spin *s, uint32_t cond, bool is, int depth)
{
    const br_kins *c = maker(s, cond);
    const uint32_t *a = c ? &s->g->f->args.at[c->arg] : NULL;
    unsigned cmp = c ? br_kmod(c->mods, BR_KF_CMP) : 0;
    uint64_t k;

    if (!c || c->op != BR_K_SETP || depth > MAX_DEPTH ||
        (cmp != BR_KM_CMP_EQ && cmp != BR_KM_CMP_NE))
        return false;
    for (unsigned n = 0; n < 2; n++) {
        const br_kins *i = maker(s, a[n]);

        if ((i && i->op == BR_K_CAS && a[!n] == s->g->f->args.at[i->arg + 1] &&
             maker(s, a[!n])) ||
            (is_before(s, a[!n], a[n]) && is_found(s, a[n], false, 0) &&
             only_swaps(s)))
            return is == (cmp == BR_KM_CMP_NE);
    }
    return gm_literal(s->g, c, 1, &k) &&
           tried_value(s, a[0], k, is == (cmp == BR_KM_CMP_EQ), depth + 1);
}

/* Whether a lane goes round only after a try that failed. */
static bool
only_retries(const spin *s)
{
    const br_kfn *f = s->g->f;
    uint32_t head = s->g->order[s->from];
    const br_kblk *h = &f->blks.at[head];

    for (size_t k = 0; k < h->pred.n; k++) {
        uint32_t to = head, b = h->pred.at[k];
        const br_kins *i;

        if (s->g->turn[b] < s->from)
            continue;
        while (f->blks.at[b].succ.n == 1 && f->blks.at[b].pred.n == 1 &&
               b != head) {
            to = b;
            b = f->blks.at[b].pred.at[0];
        }
        i = &f->ins.at[f->blks.at[b].ins.at[f->blks.at[b].ins.n - 1]];
        if (i->op != BR_K_CBR ||
            f->blks.at[b].succ.at[0] == f->blks.at[b].succ.at[1] ||
            !tried(s, f->args.at[i->arg], f->blks.at[b].succ.at[0] == to, 0))
            return false;
    }
    return true;
}

/* ---- counts --------------------------------------------------------------- */

static bool
inside(const spin *s, uint32_t blk)
{
    return s->g->turn[blk] >= s->from && s->g->turn[blk] <= s->to;
}

/* What is added to a value's phi of the loop's head: *phi, or 0 of that itself. */
static bool
counts_on(const spin *s, uint32_t v, uint32_t *phi, int64_t *by)
{
    const br_kins *i = maker(s, v);
    const uint32_t *a = i ? &s->g->f->args.at[i->arg] : NULL;
    uint64_t k;
    bool second;

    if (!i)
        return false;
    *by = 0;
    *phi = v;
    if (i->op == BR_K_PHI)
        return is_head(s, v);
    if (i->op != BR_K_ADD && i->op != BR_K_SUB)
        return false;
    second = gm_literal(s->g, i, 1, &k);
    if (!second && (i->op == BR_K_SUB || !gm_literal(s->g, i, 0, &k)))
        return false;
    *by = br_ktinfo_of[i->type].bytes == 8 ? (int64_t)k : (int32_t)k;
    if (i->op == BR_K_SUB)
        *by = -*by;
    *phi = a[!second];
    i = maker(s, *phi);
    return i && i->op == BR_K_PHI && is_head(s, *phi);
}

/* What each turn adds to a value, or to what it was made of: 0: it is no count. */
static int64_t
step_of(const spin *s, uint32_t v)
{
    const br_kfn *f = s->g->f;
    const br_kblk *h = &f->blks.at[s->g->order[s->from]];
    uint32_t phi, of;
    int64_t step = 0, by;

    if (!counts_on(s, v, &phi, &by))
        return 0;
    for (size_t k = 0; k < h->pred.n; k++) {
        uint32_t next = f->args.at[f->ins.at[f->vals.at[phi].def].arg + k];

        if (s->g->turn[h->pred.at[k]] < s->from)
            continue;
        if (!counts_on(s, next, &of, &by) || of != phi || !by ||
            (step && (step > 0) != (by > 0)))
            return 0;
        /* Where ways add different numbers, none counts as 1. */
        step = !step || step == by ? by : by > 0 ? 2 : -2;
    }
    return step;
}

/* Whether turns in which a condition is so come to an end, as it compares a count
 * with what stays. */
static bool
runs_out(const spin *s, uint32_t cond, bool is, int depth)
{
    const br_kins *i = maker(s, cond);
    const uint32_t *a = i ? &s->g->f->args.at[i->arg] : NULL;
    unsigned cmp = i ? br_kmod(i->mods, BR_KF_CMP) : 0;
    int64_t step;
    uint64_t k;

    if (!i || depth > MAX_DEPTH)
        return false;
    if ((i->op == BR_K_AND && is) || (i->op == BR_K_OR && !is))
        return runs_out(s, a[0], is, depth + 1) ||
               runs_out(s, a[1], is, depth + 1);
    if (i->op == BR_K_XOR && gm_literal(s->g, i, 1, &k))
        return runs_out(s, a[0], is == !(k & 1), depth + 1);
    if (i->op != BR_K_SETP || br_ktinfo_of[i->type].kind == 'F')
        return false;
    for (unsigned n = 0; n < 2; n++) {
        bool less, more;

        if ((maker(s, a[!n]) && !is_before(s, a[!n], a[!n])) ||
            !(step = step_of(s, a[n])))
            continue;
        less = cmp == BR_KM_CMP_LT || cmp == BR_KM_CMP_LE;
        more = cmp == BR_KM_CMP_GT || cmp == BR_KM_CMP_GE;
        if (less || more) /* the count is less, each turn that it goes on */
            return ((step > 0) == (less == (n == 0))) == is;
        return (step == 1 || step == -1) && is == (cmp == BR_KM_CMP_NE);
    }
    return false;
}

/* Whether each turn comes by a block. */
static bool
is_on_all_ways(const spin *s, uint32_t blk)
{
    const br_kfn *f = s->g->f;
    uint32_t head = s->g->order[s->from], n = 0;

    if (blk == head)
        return true;
    memset(s->seen, 0, f->blks.n);
    s->todo[n++] = head;
    while (n) {
        const br_kblk *b = &f->blks.at[s->todo[--n]];

        for (size_t k = 0; k < b->succ.n; k++) {
            uint32_t to = b->succ.at[k];

            if (to == head)
                return false;
            if (to == blk || !inside(s, to) || s->seen[to])
                continue;
            s->seen[to] = 1;
            s->todo[n++] = to;
        }
    }
    return true;
}

static bool
ends_by_itself(const spin *s)
{
    const br_kfn *f = s->g->f;

    for (uint32_t t = s->from; t <= s->to; t++) {
        uint32_t blk = s->g->order[t];
        const br_kblk *b = &f->blks.at[blk];
        const br_kins *i = &f->ins.at[b->ins.at[b->ins.n - 1]];

        if (i->op == BR_K_CBR &&
            inside(s, b->succ.at[0]) != inside(s, b->succ.at[1]) &&
            runs_out(s, f->args.at[i->arg], inside(s, b->succ.at[0]), 0) &&
            is_on_all_ways(s, blk))
            return true;
    }
    return false;
}

/* ---- ways out ------------------------------------------------------------- */

/* Whether the loop writes to a space, and whether it looks at what others write. */
static void
find_news(const spin *s, unsigned space, bool *writes, bool *looks)
{
    const br_kfn *f = s->g->f;

    *writes = *looks = false;
    for (uint32_t t = s->from; t <= s->to; t++) {
        const br_kblk *b = &f->blks.at[s->g->order[t]];

        for (size_t k = 0; k < b->ins.n; k++) {
            const br_kins *i = &f->ins.at[b->ins.at[k]];

            *writes |=
                i->op == BR_K_ST && br_kmod(i->mods, BR_KF_SPACE) == space;
            *looks |= !s->calm[t] && is_waited_for(s, i);
        }
    }
}

/* A weak load of what may be such a look's result: of a warp's one lane by way of
 * shared memory, of any by way of its own. */
static bool
hands_on(const spin *s, const br_kins *i)
{
    unsigned space = br_kmod(i->mods, BR_KF_SPACE);
    bool writes, looks;

    if (i->op != BR_K_LD ||
        (space != BR_KM_SPACE_SHARED && space != BR_KM_SPACE_LOCAL))
        return false;
    find_news(s, space, &writes, &looks);
    return writes && looks;
}

static bool
hangs_on_memory(const spin *s, uint32_t cond)
{
    const br_kfn *f = s->g->f;
    uint32_t n = 0;

    memset(s->seen, 0, f->vals.n);
    s->todo[n++] = cond;
    s->seen[cond] = 1;
    while (n) {
        const br_kins *i = maker(s, s->todo[--n]);

        if (i && (is_waited_for(s, i) || hands_on(s, i)))
            return true;
        for (unsigned a = 0; i && a < i->n_arg; a++) {
            uint32_t v = f->args.at[i->arg + a];

            if (!s->seen[v])
                s->todo[n++] = v;
            s->seen[v] = 1;
        }
    }
    return false;
}

/* Whether all ways from a block lead to a trap. */
static bool
is_doomed(const spin *s, uint32_t blk)
{
    const br_kfn *f = s->g->f;
    uint32_t n = 0;

    memset(s->seen, 0, f->blks.n);
    s->todo[n++] = blk;
    s->seen[blk] = 1;
    while (n) {
        const br_kblk *b = &f->blks.at[s->todo[--n]];
        bool trap = false;

        for (size_t k = 0; k < b->ins.n; k++)
            trap |= f->ins.at[b->ins.at[k]].op == BR_K_TRAP;
        if (!trap && !b->succ.n)
            return false;
        for (size_t k = 0; !trap && k < b->succ.n; k++) {
            if (inside(s, b->succ.at[k]))
                return false;
            if (!s->seen[b->succ.at[k]])
                s->todo[n++] = b->succ.at[k];
            s->seen[b->succ.at[k]] = 1;
        }
    }
    return true;
}

/* Whether a way out of the loop is one that a lane may have to wait for; *at: its
 * line. */
static bool
waits(const spin *s, uint32_t *at)
{
    const br_kfn *f = s->g->f;
    bool any = false;

    for (uint32_t t = s->from; t <= s->to; t++) {
        const br_kblk *b = &f->blks.at[s->g->order[t]];
        const br_kins *i = &f->ins.at[b->ins.at[b->ins.n - 1]];
        bool out = false;

        for (size_t k = 0; k < b->succ.n; k++)
            out |= !inside(s, b->succ.at[k]) && !is_doomed(s, b->succ.at[k]);
        if (i->op != BR_K_CBR || !out)
            continue;
        if (hangs_on_memory(s, f->args.at[i->arg])) {
            any = true;
            *at = i->line;
        }
    }
    return any;
}

/* ---- who waits meanwhile ------------------------------------------------- */

static bool
in_loop(const spin *s, uint32_t p)
{
    const gm_place *l = &s->g->places.at[p];

    if (l->blk != BR_KNONE)
        return inside(s, l->blk);
    return inside(s, l->from) &&
           inside(s, s->g->f->blks.at[l->from].succ.at[l->nth]);
}

/* Whether others may see what it does. */
static bool
writes(const br_kins *i)
{
    if (i->op == BR_K_FENCE || i->op == BR_K_WARPBAR || i->op == BR_K_CPWAIT ||
        i->op == BR_K_TRAP ||
        br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_LOCAL)
        return false;
    return br_kopinfo_of[i->op].props & BR_KP_WRITE;
}

/* A place's block: false where it writes before its barrier; *on: it goes on. */
static bool
passes(const spin *s, uint32_t p, bool *on)
{
    const gm_place *l = &s->g->places.at[p];
    const br_kfn *f = s->g->f;

    *on = true;
    if (l->blk == BR_KNONE)
        return true;
    for (size_t k = 0; k < f->blks.at[l->blk].ins.n; k++) {
        const br_kins *i = &f->ins.at[f->blks.at[l->blk].ins.at[k]];

        *on = i->op != BR_K_BAR;
        if (!*on)
            return true;
        if (writes(i))
            return false;
    }
    return true;
}

static bool
nobody_needs(const spin *s)
{
    const gm_fn *g = s->g;
    uint32_t n = 0;

    memset(s->seen, 0, g->places.n);
    for (uint32_t p = 0; p < g->places.n; p++)
        for (uint32_t x = 0; in_loop(s, p) && x < g->places.n; x++)
            if (g->pend[p * g->words + x / 64] >> x % 64 & 1 &&
                !in_loop(s, x) && !s->seen[x]) {
                s->seen[x] = 1;
                s->todo[n++] = x;
            }
    while (n) {
        uint32_t p = s->todo[--n];
        const gm_place *l = &g->places.at[p];
        bool on;

        if (!passes(s, p, &on))
            return false;
        for (uint32_t k = 0; on && k < l->n_succ; k++)
            if (!s->seen[l->succ[k]]) {
                s->seen[l->succ[k]] = 1;
                s->todo[n++] = l->succ[k];
            }
    }
    return true;
}

static void
look(spin *s)
{
    uint32_t line = 0;

    if (!waits(s, &line) || only_retries(s) || ends_by_itself(s) ||
        nobody_needs(s))
        return;
    s->g->line = line;
    gm_fail(
        s->g, BR_E_UNSUPPORTED,
        "%s has no code for this in waves of 64 lanes (try wave32): a loop "
        "that waits for what others write, and of two warps one may wait for "
        "the other",
        s->g->isa->cpu->name);
}

static void
calm_down(spin *s)
{
    if (only_retries(s))
        memset(s->calm + s->from, 1, s->to - s->from + 1);
}

static void
each_loop(spin *s, void (*fn)(spin *s))
{
    const br_kfn *f = s->g->f;

    for (uint32_t b = 0; s->g->code == BR_OK && b < f->blks.n; b++)
        for (size_t k = 0; k < f->blks.at[b].succ.n; k++) {
            s->from = s->g->turn[f->blks.at[b].succ.at[k]];
            s->to = s->g->turn[b];
            if (s->from <= s->to)
                fn(s);
        }
}

void
gm_refuse_spins(gm_fn *g)
{
    const br_kfn *f = g->f;
    size_t n = f->vals.n + f->blks.n + g->places.n + 1;
    uint32_t *mem = br_try_calloc(2 * n, sizeof *mem);
    uint8_t *flags = br_try_calloc(2 * n, 1);
    spin s = {.g = g, .todo = mem, .seen = flags};

    if (mem && flags) {
        s.turn = mem + n;
        s.calm = flags + n;
        for (uint32_t b = 0; b < f->blks.n; b++)
            for (size_t k = 0; k < f->blks.at[b].ins.n; k++) {
                const br_kins *i = &f->ins.at[f->blks.at[b].ins.at[k]];

                for (unsigned r = 0; r < i->n_res; r++)
                    s.turn[i->res + r] = g->turn[b];
            }
        each_loop(&s, calm_down);
        each_loop(&s, look);
    } else {
        gm_oom(g);
    }
    br_free(mem);
    br_free(flags);
}
