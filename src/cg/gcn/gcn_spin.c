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
 *            found has failed: then somebody else's did not
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
    case BR_K_LD: return br_kmod(i->mods, BR_KF_SEM) != 0;
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

        if (i && i->op == BR_K_CAS && a[!n] == s->g->f->args.at[i->arg + 1] &&
            maker(s, a[!n]))
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

static bool
inside(const spin *s, uint32_t blk)
{
    return s->g->turn[blk] >= s->from && s->g->turn[blk] <= s->to;
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

    if (!waits(s, &line) || only_retries(s) || nobody_needs(s))
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
