/* gcn_flow.c - branches that lanes take differently, as masks in a line.
 *
 *   b: cbr %c t f     mask[f] = exec & ~c; exec &= c; if (!exec) goto head f
 *   t: ...            mask[f] |= exec
 *   f: (head)         exec = mask[f]; if (!exec) goto the next head
 *
 * Lanes that go to a place later than the next one wait in its mask; the lowest
 * place where any wait runs next, as in the interpreter. pend[p] is the set of
 * places where lanes may wait while p runs, head[p] the same, p too, when p's
 * mask is looked at. Nothing waits where nothing parted: then a branch is a
 * branch, and a kernel without divergence has no masks at all. A mask that is
 * about to count and for sure holds nobody is made 0 where that begins.
 *
 * Works for every graph. Changes exec, SCC and masks, nothing else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"

#include <string.h>

typedef uint64_t set;

static bool
has(const set *s, uint32_t p)
{
    return s[p / 64] >> p % 64 & 1;
}

static void
put(set *s, uint32_t p)
{
    s[p / 64] |= 1ull << p % 64;
}

static set *
pend(const gm_fn *g, uint32_t p)
{
    return g->pend + p * g->words;
}

static set *
head(const gm_fn *g, uint32_t p)
{
    return g->head + p * g->words;
}

/* The lowest member beyond p, or BR_KNONE. */
static uint32_t
above(const gm_fn *g, const set *s, int64_t p)
{
    for (uint32_t x = (uint32_t)(p + 1); x < g->places.n; x++)
        if (has(s, x))
            return x;
    return BR_KNONE;
}

/* ---- who may wait where ------------------------------------------------ */

/* to |= from without the place itself; whether it grew. */
static bool
merge(const gm_fn *g, set *to, const set *from, uint32_t without)
{
    bool grew = false;

    for (size_t w = 0; w < g->words; w++) {
        set v = from[w];

        if (without / 64 == w)
            v &= ~(1ull << without % 64);
        grew |= (v & ~to[w]) != 0;
        to[w] |= v;
    }
    return grew;
}

/* The lowest of a set is looked at. */
static bool
look(gm_fn *g, const set *after)
{
    uint32_t low = above(g, after, -1);

    if (low == BR_KNONE)
        return false;
    g->places.at[low].headed = true;
    return merge(g, head(g, low), after, BR_KNONE);
}

/* Whether lanes of p go straight to s: nobody waits there, nor before it. */
static bool
straight(const gm_fn *g, uint32_t p, uint32_t s)
{
    uint32_t low = above(g, pend(g, p), -1);

    return low == BR_KNONE || low > s;
}

static bool
jump(gm_fn *g, uint32_t p, uint32_t s, set *tmp)
{
    if (straight(g, p, s))
        return merge(g, pend(g, s), pend(g, p), s);
    memcpy(tmp, pend(g, p), g->words * sizeof *tmp);
    put(tmp, s);
    return look(g, tmp);
}

static bool
part(gm_fn *g, uint32_t p, set *tmp)
{
    const gm_place *l = &g->places.at[p];
    uint32_t first = BR_MIN(l->succ[0], l->succ[1]);
    bool grew;

    memcpy(tmp, pend(g, p), g->words * sizeof *tmp);
    put(tmp, l->succ[0]);
    put(tmp, l->succ[1]);
    if (!straight(g, p, first))
        return look(g, tmp);
    grew = merge(g, pend(g, first), tmp, first);
    tmp[first / 64] &= ~(1ull << first % 64);
    return look(g, tmp) | grew;
}

static bool
step(gm_fn *g, uint32_t p, set *tmp)
{
    const gm_place *l = &g->places.at[p];
    bool grew = false;

    if (l->headed) {
        grew = merge(g, pend(g, p), head(g, p), p);
        memcpy(tmp, head(g, p), g->words * sizeof *tmp);
        tmp[p / 64] &= ~(1ull << p % 64);
        grew |= look(g, tmp);
    }
    if (l->split)
        return part(g, p, tmp) | grew;
    for (uint32_t s = 0; s < l->n_succ; s++)
        grew |= jump(g, p, l->succ[s], tmp);
    if (!l->n_succ)
        grew |= look(g, pend(g, p));
    return grew;
}

static void
settle(gm_fn *g, set *tmp)
{
    bool grew = true;

    while (grew) {
        grew = false;
        for (uint32_t p = 0; p < g->places.n; p++)
            grew |= step(g, p, tmp);
    }
    for (uint32_t p = 0; p < g->places.n; p++)
        if (g->places.at[p].headed)
            g->places.at[p].mask = gm_new_mask(g).v;
}

/* ---- places ------------------------------------------------------------ */

static bool
has_phi(const br_kfn *f, uint32_t b)
{
    return f->ins.at[f->blks.at[b].ins.at[0]].op == BR_K_PHI;
}

/* An edge is a place where its moves cannot be done in the block before. */
static bool
is_place(const gm_fn *g, uint32_t from, uint32_t to)
{
    return g->f->blks.at[from].succ.n > 1 && has_phi(g->f, to);
}

static bool
add_edge(gm_fn *g, uint32_t from, uint32_t nth)
{
    gm_place e = {.blk = BR_KNONE,
                  .from = from,
                  .nth = nth,
                  .n_succ = 1,
                  .mask = BR_KNONE};

    return br_vec_push(&g->places, e);
}

/* Edges back to a block stand before it, for there is nothing between their turn
 * and the block's; others behind the block that they leave. */
static bool
add_back_edges(gm_fn *g, uint32_t to)
{
    const br_kblk *blk = &g->f->blks.at[to];

    for (uint32_t k = 0; k < blk->pred.n; k++) {
        uint32_t from = blk->pred.at[k];
        const br_kblk *b = &g->f->blks.at[from];
        bool seen = false;

        for (uint32_t x = 0; x < k; x++)
            seen |= blk->pred.at[x] == from;
        if (seen || g->turn[from] < g->turn[to] || !is_place(g, from, to))
            continue;
        for (uint32_t s = 0; s < b->succ.n; s++)
            if (b->succ.at[s] == to && !add_edge(g, from, s))
                return false;
    }
    return true;
}

static bool
add_places(gm_fn *g)
{
    const br_kfn *f = g->f;

    for (uint32_t k = 0; k < f->blks.n; k++) {
        uint32_t b = g->order[k];
        const br_kblk *blk = &f->blks.at[b];
        const br_kins *t = &f->ins.at[blk->ins.at[blk->ins.n - 1]];
        gm_place p = {.blk = b, .mask = BR_KNONE};

        if (blk->succ.n > 2) {
            g->line = t->line;
            gm_refuse(g, t);
            return false;
        }
        p.n_succ = (uint32_t)blk->succ.n;
        p.split = t->op == BR_K_CBR && !g->uniform[f->args.at[t->arg]];
        if (!add_back_edges(g, b))
            return false;
        g->at[b] = (uint32_t)g->places.n;
        if (!br_vec_push(&g->places, p))
            return false;
        for (uint32_t s = 0; s < blk->succ.n; s++)
            if (g->turn[blk->succ.at[s]] > k &&
                is_place(g, b, blk->succ.at[s]) && !add_edge(g, b, s))
                return false;
    }
    br_assert(g->at[g->order[0]] == 0 && "nothing leads back to the entry");
    return true;
}

static void
wire(gm_fn *g)
{
    for (uint32_t p = 0; p < g->places.n; p++) {
        gm_place *l = &g->places.at[p];
        const br_kfn *f = g->f;

        for (uint32_t s = 0; l->blk != BR_KNONE && s < l->n_succ; s++)
            l->succ[s] = g->at[f->blks.at[l->blk].succ.at[s]];
    }
    for (uint32_t p = 0; p < g->places.n; p++) {
        gm_place *l = &g->places.at[p];

        if (l->blk != BR_KNONE)
            continue;
        l->succ[0] = g->at[g->f->blks.at[l->from].succ.at[l->nth]];
        g->places.at[g->at[l->from]].succ[l->nth] = p;
    }
    for (uint32_t p = 0; p < g->places.n; p++) {
        gm_place *l = &g->places.at[p];

        if (l->n_succ == 2 && l->succ[0] == l->succ[1]) {
            l->n_succ = 1;
            l->split = false;
        }
    }
}

bool
gm_flow_begin(gm_fn *g)
{
    set *tmp;

    if (!add_places(g)) {
        if (g->code == BR_OK)
            gm_oom(g);
        return false;
    }
    if (g->places.n > GM_MAX_PLACES) {
        gm_fail(g, BR_E_LIMIT,
                "more than %d blocks, edges that "
                "are some counted: make two kernels of it",
                GM_MAX_PLACES);
        return false;
    }
    wire(g);
    g->words = (g->places.n + 63) / 64;
    g->pend = br_try_calloc((2 * g->places.n + 1) * g->words, sizeof *g->pend);
    if (!g->pend || !br_vec_reserve(&g->blks, GM_NODES * g->places.n + 2)) {
        gm_oom(g);
        return false;
    }
    g->head = g->pend + g->places.n * g->words;
    tmp = g->head + g->places.n * g->words;
    g->blks.n = GM_NODES * g->places.n + 2;
    memset(g->blks.at, 0, g->blks.n * sizeof *g->blks.at);
    settle(g, tmp);
    return g->code == BR_OK;
}

/* ---- code -------------------------------------------------------------- */

/* Behind all places: where lanes go that may not be alone, and the end. */
static uint32_t
trap_node(const gm_fn *g)
{
    return (uint32_t)(GM_NODES * g->places.n);
}

static uint32_t
end_node(const gm_fn *g)
{
    return trap_node(g) + 1;
}

/* Masks of a set that counts from now on, which hold nobody if they are not in
 * what counted before. */
static void
zero(gm_fn *g, const set *now, const set *before, uint32_t but)
{
    for (uint32_t x = above(g, now, -1); x != BR_KNONE; x = above(g, now, x))
        if (!has(before, x) && x != but && g->places.at[x].mask != BR_KNONE)
            GM(g, "s_mov_bm", gm_reg(g->places.at[x].mask, 0), gm_imm(0));
}

/* Lanes of the second operand wait at s, too. */
static void
wait(gm_fn *g, uint32_t p, uint32_t s, const char *how, gm_op lanes)
{
    gm_op mask = gm_reg(g->places.at[s].mask, 0), exec = gm_code(GM_EXEC), t;

    if (!has(pend(g, p), s)) {
        if (how)
            GM(g, how, mask, exec, lanes);
        else
            GM(g, "s_mov_bm", mask, exec);
        return;
    }
    t = exec;
    if (how) {
        t = gm_new_mask(g);
        GM(g, how, t, exec, lanes);
    }
    GM(g, "s_or_bm", mask, mask, t);
}

static void
lane_edge(gm_fn *g, uint32_t p, uint32_t s)
{
    gm_blk *b = &g->blks.at[GM_NODE(p, GM_BODY)];

    if (!br_vec_push(&b->lanes, GM_NODE(s, GM_BODY)))
        gm_oom(g);
}

static void
goto_head(gm_fn *g, const char *how, uint32_t x)
{
    gm_goto(g, how, x == BR_KNONE ? end_node(g) : GM_NODE(x, GM_HEAD));
}

/* All lanes that run go to s. */
static void
emit_jump(gm_fn *g, uint32_t p, uint32_t s)
{
    uint32_t low = above(g, pend(g, p), -1);

    if (straight(g, p, s)) {
        zero(g, pend(g, s), pend(g, p), s);
        gm_goto(g, "s_branch", GM_NODE(s, GM_BODY));
        return;
    }
    if (low == s) { /* those that wait there come along */
        GM(g, "s_or_bm", gm_code(GM_EXEC), gm_code(GM_EXEC),
           gm_reg(g->places.at[s].mask, 0));
        zero(g, pend(g, s), pend(g, p), s);
        gm_goto(g, "s_branch", GM_NODE(s, GM_BODY));
        return;
    }
    low = BR_MIN(low, s);
    zero(g, head(g, low), pend(g, p), s);
    wait(g, p, s, NULL, gm_imm(0));
    goto_head(g, "s_branch", low);
}

static bool
bare(gm_fn *g, uint32_t p, uint32_t s)
{
    const set *now = pend(g, s), *before = pend(g, p);

    if (!straight(g, p, s))
        return false;
    for (uint32_t x = above(g, now, -1); x != BR_KNONE; x = above(g, now, x))
        if (!has(before, x) && x != s)
            return false;
    return true;
}

static void
emit_choice(gm_fn *g, uint32_t p)
{
    const gm_place *l = &g->places.at[p];
    uint32_t a = l->succ[0], b = l->succ[1];

    if (bare(g, p, b) && (a == p + 1 || !bare(g, p, a))) {
        gm_goto(g, "s_cbranch_scc0", GM_NODE(b, GM_BODY));
        emit_jump(g, p, a);
    } else if (bare(g, p, a)) {
        gm_goto(g, "s_cbranch_scc1", GM_NODE(a, GM_BODY));
        emit_jump(g, p, b);
    } else {
        gm_goto(g, "s_cbranch_scc0", GM_NODE(p, GM_STUB));
        emit_jump(g, p, a);
        g->node = GM_NODE(p, GM_STUB);
        emit_jump(g, p, b);
    }
}

static const char *
lanes_of(bool taken)
{
    return taken ? "s_and_bm" : "s_and_not1_bm";
}

static void
emit_part(gm_fn *g, uint32_t p, gm_op cond)
{
    const gm_place *l = &g->places.at[p];
    bool swap = l->succ[1] < l->succ[0];
    uint32_t first = l->succ[swap], second = l->succ[!swap], rest;
    gm_op exec = gm_code(GM_EXEC);
    bool direct = straight(g, p, first);

    rest = above(g, pend(g, p), -1);
    rest = BR_MIN(rest, direct ? second : first);
    for (int k = direct ? 0 : 1; k < 2; k++) {
        const set *to = k ? head(g, rest) : pend(g, first);

        zero(g, to, pend(g, p), second);
    }
    wait(g, p, second, lanes_of(swap), cond);
    if (!direct) {
        wait(g, p, first, lanes_of(!swap), cond);
        goto_head(g, "s_branch", rest);
        return;
    }
    GM(g, lanes_of(!swap), exec, exec, cond);
    if (first > p) {
        goto_head(g, "s_cbranch_execz", rest);
        gm_goto(g, "s_branch", GM_NODE(first, GM_BODY));
    } else {
        gm_goto(g, "s_cbranch_execnz", GM_NODE(first, GM_BODY));
        goto_head(g, "s_branch", rest);
    }
}

void
gm_flow_out(gm_fn *g, uint32_t place, gm_op cond)
{
    const gm_place *l = &g->places.at[place];

    for (uint32_t s = 0; s < l->n_succ; s++)
        lane_edge(g, place, l->succ[s]);
    if (l->split) {
        emit_part(g, place, cond);
    } else if (l->n_succ == 2) {
        emit_choice(g, place);
    } else if (l->n_succ == 1) {
        emit_jump(g, place, l->succ[0]);
    } else {
        uint32_t low = above(g, pend(g, place), -1);

        if (low != BR_KNONE)
            zero(g, head(g, low), pend(g, place), BR_KNONE);
        goto_head(g, "s_branch", low);
    }
}

/* Whether a lane that waits there does nothing but end. */
static bool
only_ends(const gm_fn *g, uint32_t p)
{
    for (;;) {
        const gm_place *l = &g->places.at[p];
        const br_kblk *b = l->blk == BR_KNONE ? NULL : &g->f->blks.at[l->blk];

        for (size_t k = 0; b && k < b->ins.n; k++) {
            unsigned props = br_kopinfo_of[g->f->ins.at[b->ins.at[k]].op].props;

            if (!(props & (BR_KP_PURE | BR_KP_TERM)))
                return false;
        }
        if (!l->n_succ)
            return true;
        if (l->n_succ > 1 || l->succ[0] <= p)
            return false;
        p = l->succ[0];
    }
}

void
gm_flow_gather(gm_fn *g, uint32_t place)
{
    const set *s = pend(g, place);
    gm_op all = gm_imm(0), mask;

    for (uint32_t x = above(g, s, -1); x != BR_KNONE; x = above(g, s, x)) {
        if (g->places.at[x].mask == BR_KNONE || only_ends(g, x))
            continue;
        mask = gm_reg(g->places.at[x].mask, 0);
        if (all.kind == GM_VREG) {
            gm_op t = gm_new_mask(g);

            GM(g, "s_or_bm", t, all, mask);
            mask = t;
        }
        all = mask;
    }
    if (all.kind != GM_VREG)
        return;
    GM(g, "s_cmp_lg_um", all, gm_imm(0));
    gm_goto(g, "s_cbranch_scc1", trap_node(g));
    place = g->node;
    g->node = trap_node(g);
    if (!g->blks.at[g->node].ins.n) {
        gm_trap(g, BR_GCN_TRAPS + BR_GCN_TRAP_APART);
        gm_goto(g, "s_branch", end_node(g));
    }
    g->node = place;
}

/* exec becomes the lanes that wait; none: the next ones. */
void
gm_flow_head(gm_fn *g, uint32_t place)
{
    const gm_place *l = &g->places.at[place];
    uint32_t next = above(g, head(g, place), place);

    if (!l->headed)
        return;
    g->node = GM_NODE(place, GM_HEAD);
    GM(g, "s_mov_bm", gm_code(GM_EXEC), gm_reg(l->mask, 0));
    if (next != BR_KNONE)
        zero(g, head(g, next), head(g, place), BR_KNONE);
    zero(g, pend(g, place), head(g, place), BR_KNONE);
    goto_head(g, "s_cbranch_execz", next);
    gm_goto(g, "s_branch", GM_NODE(place, GM_BODY));
}
