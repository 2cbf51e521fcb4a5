/* kinterp.c - launch, blocks, warps, one instruction after another.
 *
 *   launch -> block -> warp -> frame -> basic block -> instruction -> lanes
 *
 * Divergence: every block has a mask of lanes that are to run it. The lowest
 * block (kir_order.c) with any runs next, under that mask; a branch puts its
 * lanes into the masks of its targets. Phis are copied on the edge, for the
 * lanes that take it: all are read before one is written.
 *
 * Lanes that spin for a lock keep those that hold it from running: where there
 * are atomics, now and then the other blocks with lanes have a turn, all but
 * those with instructions that concern other lanes.
 *
 * A barrier holds its lanes before the terminator of their block until enough
 * have come. Warps run to a barrier or the end, or for SLICE instructions,
 * then the next one runs; blocks one after another, unless one does not end in
 * its turn: then as many again start, up to MAX_RESIDENT (a kernel may wait
 * for another block).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kinterp_int.h"

#include "cg/x86/x86_int.h"

#include <stdio.h>
#include <string.h>

enum { SLICE = 1 << 18, SHORT_SLICE = 1 << 12, MAX_RESIDENT = 1024 };

/* A warp that waits for another block of many takes its time from that one. */
static uint64_t
slice(const ki_run *r)
{
    return r->resident > 1 ? SHORT_SLICE : SLICE;
}

/* ---- special registers -------------------------------------------------- */

static uint64_t
ticks(const ki_warp *w)
{
    const br_klaunch *l = w->b->r->l;

    return l->now ? (uint64_t)l->now() : l->steps + w->steps;
}

/* Of blocks side by side, x first. */
static uint64_t
of_cluster(const ki_block *b, br_ksreg s)
{
    const uint32_t *c = b->r->cluster, *at = b->ctaid;
    const uint32_t *grid = b->r->l->grid;

    if (s <= BR_KS_CL_CTAID_Z)
        return at[s - BR_KS_CL_CTAID_X] % c[s - BR_KS_CL_CTAID_X];
    if (s <= BR_KS_CL_NCTAID_Z)
        return c[s - BR_KS_CL_NCTAID_X];
    if (s <= BR_KS_CLUSTERID_Z)
        return at[s - BR_KS_CLUSTERID_X] / c[s - BR_KS_CLUSTERID_X];
    if (s <= BR_KS_NCLUSTERID_Z)
        return grid[s - BR_KS_NCLUSTERID_X] / c[s - BR_KS_NCLUSTERID_X];
    if (s == BR_KS_CL_NCTARANK)
        return c[0] * c[1] * c[2];
    return at[0] % c[0] + c[0] * (at[1] % c[1] + c[1] * (at[2] % c[2]));
}

uint64_t
ki_special(const ki_warp *w, br_ksreg s, unsigned lane)
{
    const ki_block *b = w->b;
    const br_klaunch *l = b->r->l;
    uint32_t t = w->id * KI_LANES + lane, one = 1u << lane;

    switch (s) {
    case BR_KS_TID_X: return t % l->block[0];
    case BR_KS_TID_Y: return t / l->block[0] % l->block[1];
    case BR_KS_TID_Z: return t / l->block[0] / l->block[1];
    case BR_KS_NTID_X:
    case BR_KS_NTID_Y:
    case BR_KS_NTID_Z: return l->block[s - BR_KS_NTID_X];
    case BR_KS_CTAID_X:
    case BR_KS_CTAID_Y:
    case BR_KS_CTAID_Z: return b->ctaid[s - BR_KS_CTAID_X];
    case BR_KS_NCTAID_X:
    case BR_KS_NCTAID_Y:
    case BR_KS_NCTAID_Z: return l->grid[s - BR_KS_NCTAID_X];
    case BR_KS_LANEID: return lane;
    case BR_KS_WARPID: return w->id;
    case BR_KS_NWARPID: return b->n_warps;
    case BR_KS_SMID:
    case BR_KS_GRIDID: return 0;
    case BR_KS_NSMID: return 1;
    case BR_KS_MASK_EQ: return one;
    case BR_KS_MASK_LE: return one | (one - 1);
    case BR_KS_MASK_LT: return one - 1;
    case BR_KS_MASK_GE: return ~(one - 1) & 0xffffffff;
    case BR_KS_MASK_GT: return ~(one | (one - 1)) & 0xffffffff;
    case BR_KS_CLOCK:
    case BR_KS_GLOBALTIMER_LO: return ticks(w) & 0xffffffff;
    case BR_KS_CLOCK_HI:
    case BR_KS_GLOBALTIMER_HI: return ticks(w) >> 32;
    case BR_KS_CLOCK64:
    case BR_KS_GLOBALTIMER: return ticks(w);
    case BR_KS_DYN_SMEM: return l->shared_bytes;
    case BR_KS_TOTAL_SMEM: return b->shared_bytes;
    case BR_KS_CL_CTAID_X:
    case BR_KS_CL_CTAID_Y:
    case BR_KS_CL_CTAID_Z:
    case BR_KS_CL_NCTAID_X:
    case BR_KS_CL_NCTAID_Y:
    case BR_KS_CL_NCTAID_Z:
    case BR_KS_CLUSTERID_X:
    case BR_KS_CLUSTERID_Y:
    case BR_KS_CLUSTERID_Z:
    case BR_KS_NCLUSTERID_X:
    case BR_KS_NCLUSTERID_Y:
    case BR_KS_NCLUSTERID_Z:
    case BR_KS_CL_CTARANK:
    case BR_KS_CL_NCTARANK: return of_cluster(b, s);
    case BR_KS_COUNT: break;
    }
    br_unreachable("closed list of registers");
}

/* ---- instructions ------------------------------------------------------- */

/* Lanes that read a clock together read the same. */
static void
special(ki_frame *f, const br_kins *i, const ki_warp *w, uint32_t exec)
{
    br_ksreg s = (br_ksreg)i->imm;
    bool clock = s >= BR_KS_CLOCK && s <= BR_KS_GLOBALTIMER_HI;
    unsigned first = (unsigned)__builtin_ctz(exec);
    uint64_t one = ki_special(w, s, first);

    ki_each_lane(lane, exec) f->vals[i->res][lane] =
        clock ? one : ki_special(w, s, lane);
}

static void
pure(ki_frame *f, const br_kins *i, uint32_t exec)
{
    uint64_t *args[4] = {0}, a[4], r[2] = {0, 0};

    for (unsigned n = 0; n < i->n_arg; n++)
        args[n] = ki_arg(f, i, n);
    ki_each_lane(lane, exec)
    {
        for (unsigned n = 0; n < i->n_arg; n++)
            a[n] = args[n][lane];
        br_keval(i, a, r);
        for (unsigned n = 0; n < i->n_res; n++)
            f->vals[i->res + n][lane] = r[n];
    }
}

uint64_t
ki_address(ki_run *r, const ki_frame *f, const br_kins *i, uint64_t a)
{
    uint64_t window = ki_window(br_kmod(i->mods, BR_KF_SPACE));

    switch (i->op) {
    case BR_K_ADDR:
        if (i->sym & BR_KFN_SYM)
            return KI_CODE + 16ull * (i->sym & ~BR_KFN_SYM);
        return r->l->image->addr[i->sym] + (uint64_t)i->imm;
    case BR_K_FRAME: return f->base + (uint64_t)i->imm;
    case BR_K_TOGEN: return a + window;
    case BR_K_FROMGEN: return a - window;
    default: break;
    }
    if (window)
        return a >> 32 == window >> 32;
    return a >> 32 < KI_PARAM >> 32 || a >> 32 > KI_SHARED >> 32;
}

static br_code
trap(ki_run *r, const br_kins *i)
{
    const br_knote *n = i->imm ? &r->m->notes.at[i->imm - 1] : NULL;

    if (!n)
        return ki_fault(r, "trap");
    r->l->fault = BR_KFAULT_UNKNOWN;
    return ki_fault(r, "%.*s", (int)BR_MIN(n->text.n, (size_t)200), n->text.p);
}

br_code
ki_step(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);

    r->ins = i;
    r->lane = (unsigned)__builtin_ctz(exec);
    if (br_kevals((br_kop)i->op)) {
        pure(f, i, exec);
        return BR_OK;
    }
    switch (i->op) {
    case BR_K_ADDR:
    case BR_K_FRAME:
    case BR_K_TOGEN:
    case BR_K_FROMGEN:
    case BR_K_ISSPACE:
        ki_each_lane(lane, exec) f->vals[i->res][lane] =
            ki_address(r, f, i, i->n_arg ? ki_arg(f, i, 0)[lane] : 0);
        return BR_OK;
    case BR_K_SREG: special(f, i, w, exec); return BR_OK;
    case BR_K_LD:
    case BR_K_ST:
    case BR_K_ATOM:
    case BR_K_CAS:
    case BR_K_CAS2:
    case BR_K_XCHG2:
    case BR_K_FENCE:
    case BR_K_CPASYNC:
    case BR_K_CPBULK:
    case BR_K_CPREDUCE:
    case BR_K_CPWAIT:
    case BR_K_MBAR:
    case BR_K_MBARRIVE:
    case BR_K_MBTEST:
    case BR_K_MBPARITY:
    case BR_K_ALLOCA:
    case BR_K_STACK:
    case BR_K_UNSTACK: return ki_memory(r, w, i, exec);
    case BR_K_BAR:
    case BR_K_BARRIVE:
    case BR_K_BARRED: ki_barrier(r, w, i, exec); return BR_OK;
    case BR_K_CALL:
    case BR_K_CALLI: return ki_call(r, w, i, exec);
    case BR_K_TRAP: return trap(r, i);
    default: return ki_lanes(r, w, i, exec);
    }
}

/* ---- edges -------------------------------------------------------------- */

/* Lanes go along the e-th edge out of a block: its phis take their values. */
static br_code
go(ki_frame *f, uint32_t from, uint32_t e, uint32_t mask)
{
    uint32_t to = f->f->blks.at[from].succ.at[e], pos = f->k->place[to];
    const br_kblk *b = &f->f->blks.at[to];
    uint32_t edge = 0, seen = 0, n = 0;
    ki_row *tmp;

    if (!mask)
        return BR_OK;
    /* Which predecessor that is: the k-th edge from this block to that one. */
    for (uint32_t s = 0; s < e; s++)
        seen += f->f->blks.at[from].succ.at[s] == to;
    while (b->pred.at[edge] != from || seen-- > 0)
        edge++;
    while (n < b->ins.n && f->f->ins.at[b->ins.at[n]].op == BR_K_PHI)
        n++;
    if (n) {
        tmp = br_try_alloc(n * sizeof *tmp);
        if (!tmp)
            return BR_E_OOM;
        for (uint32_t k = 0; k < n; k++)
            memcpy(tmp[k], ki_arg(f, &f->f->ins.at[b->ins.at[k]], edge),
                   sizeof *tmp);
        for (uint32_t k = 0; k < n; k++)
            ki_each_lane(lane, mask)
                f->vals[f->f->ins.at[b->ins.at[k]].res][lane] = tmp[k][lane];
        br_free(tmp);
    }
    f->pend[pos] |= mask;
    f->low = BR_MIN(f->low, pos);
    return BR_OK;
}

static br_code
switch_to(ki_run *r, ki_frame *f, uint32_t blk, const br_kins *i, uint32_t exec)
{
    size_t n = f->f->blks.at[blk].succ.n;

    for (uint32_t t = 0; t < n; t++) {
        uint32_t mask = 0;

        ki_each_lane(lane, exec) mask |= (uint32_t)(ki_arg(f, i, 0)[lane] == t)
                                         << lane;
        BR_TRY(go(f, blk, t, mask));
        exec &= ~mask;
    }
    return exec ? ki_fault(r, "a jump beyond its table of %zu targets", n)
                : BR_OK;
}

void
ki_end_lanes(ki_warp *w, uint32_t mask)
{
    w->live &= ~mask;
    w->b->n_done +=
        mask == UINT32_MAX ? KI_LANES : (uint32_t)__builtin_popcount(mask);
    for (size_t k = 0; k < w->frames.n; k++)
        w->frames.at[k].mask &= ~mask;
}

br_code
ki_leave(ki_run *r, ki_warp *w, const br_kins *i, uint32_t mask)
{
    if (i->op == BR_K_RET && w->frames.n > 1)
        return ki_return(r, w, mask);
    ki_end_lanes(w, mask);
    return BR_OK;
}

static br_code
terminator(ki_run *r, ki_warp *w, uint32_t blk, uint32_t exec)
{
    ki_frame *f = ki_top(w);
    const br_kblk *b = &f->f->blks.at[blk];
    const br_kins *i = &f->f->ins.at[b->ins.at[b->ins.n - 1]];
    uint32_t yes = 0;

    r->ins = i;
    r->lane = (unsigned)__builtin_ctz(exec);
    switch (i->op) {
    case BR_K_BR: return go(f, blk, 0, exec);
    case BR_K_CBR:
        ki_each_lane(lane, exec) yes |= (uint32_t)ki_arg(f, i, 0)[lane] << lane;
        BR_TRY(go(f, blk, 0, yes));
        return go(f, blk, 1, exec & ~yes);
    case BR_K_SWITCH: return switch_to(r, f, blk, i, exec);
    case BR_K_RET:
    case BR_K_EXIT: return ki_leave(r, w, i, exec);
    default: br_unreachable("a terminator");
    }
}

/* ---- warps -------------------------------------------------------------- */

static br_code
run_block_of(ki_run *r, ki_warp *w, uint32_t pos)
{
    ki_frame *f = ki_top(w);
    uint32_t blk = f->k->order[pos], exec = f->tail[pos];
    const br_kblk *b = &f->f->blks.at[blk];
    size_t depth = w->frames.n, at = 0;

    if (exec) {
        f->tail[pos] = 0;
        return terminator(r, w, blk, exec);
    }
    exec = f->pend[pos];
    f->pend[pos] = 0;
    r->pos = pos;
    while (f->f->ins.at[b->ins.at[at]].op == BR_K_PHI)
        at++;
    for (; at + 1 < b->ins.n; at++) {
        const br_kins *i = &f->f->ins.at[b->ins.at[at]];

        w->steps++;
        BR_TRY(ki_step(r, w, i, exec));
        f = &w->frames.at[depth - 1];
        /* At a barrier, or in a function that was called: the terminator's
         * turn comes later. What is not there was called and is done. */
        if (w->frames.n > depth || i->op == BR_K_BAR || i->op == BR_K_BARRED) {
            f->hold[pos] |= exec;
            return BR_OK;
        }
    }
    return terminator(r, w, blk, exec);
}

/* Whether lanes may run a block before those that are to come there. */
static bool
runs_early(const ki_frame *f, uint32_t pos)
{
    const br_kblk *b = &f->f->blks.at[f->k->order[pos]];

    for (size_t s = 0; s < b->ins.n && !f->tail[pos]; s++) {
        unsigned p = br_kopinfo_of[f->f->ins.at[b->ins.at[s]].op].props;

        if ((p & BR_KP_CONV) && !(p & BR_KP_BAR))
            return false;
    }
    return true;
}

/* The lowest block with lanes, or, now and then, the next. */
static uint32_t
pick(ki_frame *f)
{
    uint32_t n = (uint32_t)f->f->blks.n;

    f->picks++;
    if (f->slots || !f->k->waits ||
        f->picks % KI_PATIENCE < KI_PATIENCE - KI_TURNS)
        return f->low;
    for (uint32_t k = 1; k <= n; k++) {
        uint32_t p = (f->turn + k) % n;

        if ((f->pend[p] | f->tail[p]) && runs_early(f, p))
            return f->turn = p;
    }
    return f->low;
}

/* Until the warp ends, waits or has had its turn. Who waits for an mbarrier has had
 * it: another warp has to come, and to ask again a slice long took seconds of code
 * that nobody optimised. */
static br_code
run_warp(ki_run *r, ki_warp *w, bool *progress)
{
    uint64_t until = w->steps + slice(r);

    r->w = w;
    r->gives_way = false;
    while (w->live && w->frames.n && w->steps < until && !r->gives_way) {
        ki_frame *f = ki_top(w);
        uint32_t n = (uint32_t)f->f->blks.n;

        while (f->low < n && !(f->pend[f->low] | f->tail[f->low]))
            f->low++;
        if (f->low == n) {
            if (!f->mask && w->frames.n > 1) {
                BR_TRY(ki_called(r, w));
                *progress = true;
                continue;
            }
            break;
        }
        *progress = true;
        w->steps++;
        BR_TRY(f->slots ? x86_enter(r, w, f->low)
                        : run_block_of(r, w, pick(f)));
        if (r->l->max_steps && w->steps > r->l->max_steps)
            return ki_fault(r, "over %llu instructions",
                            (unsigned long long)r->l->max_steps);
    }
    return BR_OK;
}

/* ---- blocks ------------------------------------------------------------- */

static void
block_free(ki_block *b)
{
    for (uint32_t k = 0; b->warps && k < b->n_warps; k++) {
        ki_warp *w = &b->warps[k];

        while (w->frames.n)
            ki_pop(b->r, w);
        br_vec_fini(&w->frames);
        br_free(w->local);
        br_free(w->local_init);
    }
    br_free(b->warps);
    br_free(b->shared);
    br_free(b->shared_init);
    br_free(b->wrote);
    br_free(b->read_);
    *b = (ki_block){0};
}

/* Relaxed: whoever launched us made all else ready before. */
static uint64_t
take_block(ki_run *r)
{
    uint32_t n = BR_MAX(r->batch, 1u);

    if (r->mine == r->mine_end) {
        r->mine = atomic_fetch_add_explicit(r->next, n, memory_order_relaxed);
        r->mine_end = r->mine + n;
    }
    return r->mine++;
}

static void
place_block(ki_block *b, uint64_t number)
{
    const uint32_t *grid = b->r->l->grid;
    bool after = number == b->number + 1 && b->ctaid[0] + 1 < grid[0];

    b->number = number;
    if (after) { /* most often, and a division less */
        b->ctaid[0]++;
        return;
    }
    b->ctaid[0] = (uint32_t)(number % grid[0]);
    b->ctaid[1] = (uint32_t)(number / grid[0] % grid[1]);
    b->ctaid[2] = (uint32_t)(number / grid[0] / grid[1]);
}

static uint32_t
lanes_of(const ki_block *b, uint32_t warp)
{
    uint32_t left = b->n_threads - warp * KI_LANES;

    return left >= KI_LANES ? 0xffffffff : (1u << left) - 1;
}

bool
ki_next_block(ki_block *b)
{
    const uint32_t *g = b->r->l->grid;
    uint64_t k = take_block(b->r);

    if (k >= (uint64_t)g[0] * g[1] * g[2] ||
        atomic_load_explicit(b->r->stop, memory_order_relaxed))
        return false;
    place_block(b, k);
    if (b->shared_bytes && !b->r->no_shared)
        memset(b->shared, 0, b->shared_bytes);
    return true;
}

/* A block that ended becomes another one: machine code takes less time than
 * making it anew. */
static br_code
block_again(ki_block *b)
{
    uint32_t used = b->used;

    b->n_done = b->used = 0;
    if (used)
        memset(b->count, 0, sizeof b->count);
    for (uint32_t k = 0; k < b->n_warps; k++) {
        ki_warp *w = &b->warps[k];
        ki_frame *f;

        while (w->frames.n > 1)
            ki_pop(b->r, w);
        f = ki_top(w);
        w->live = lanes_of(b, k);
        if (!f->slots) { /* it went on interpreted */
            ki_pop(b->r, w);
            BR_TRY(ki_push(b->r, w, b->r->l->fn, w->live));
            f = ki_top(w);
        }
        f->came = f->mask = w->live;
        b->r->l->steps += w->steps;
        w->steps = 0;
        w->red_true = w->red_lanes = 0;
        if (used) {
            memset(w->wait, 0, sizeof w->wait);
            memset(w->arrived, 0, sizeof w->arrived);
        }
        if (w->local_bytes) { /* and so perhaps a stack that moved */
            memset(w->local, 0, (size_t)w->local_bytes * KI_LANES);
            for (unsigned lane = 0; lane < KI_LANES; lane++)
                f->top[lane] = f->base + f->f->frame_bytes;
        }
        /* All lanes ended, so none is pending, held or at a tail. */
        f->pend[f->k->place[0]] = w->live;
        f->low = f->picks = f->turn = f->starved = 0;
        x86_again(w, f);
    }
    return BR_OK;
}

static br_code
block_new(ki_run *r, ki_block *b, uint64_t number)
{
    const br_klaunch *l = r->l;
    uint32_t threads = l->block[0] * l->block[1] * l->block[2];

    *b = (ki_block){.r = r, .n_threads = threads};
    place_block(b, number);
    b->n_warps = (threads + KI_LANES - 1) / KI_LANES;
    b->shared_bytes = (uint32_t)l->image->shared[l->fn] + l->shared_bytes;
    b->warps = br_try_calloc(b->n_warps, sizeof *b->warps);
    b->shared = br_try_calloc(b->shared_bytes + 1, 1);
    if (l->check) {
        b->shared_init = br_try_calloc(b->shared_bytes + 1, 1);
        b->wrote = br_try_calloc(b->shared_bytes + 1, sizeof *b->wrote);
        b->read_ = br_try_calloc(b->shared_bytes + 1, sizeof *b->read_);
    }
    if (!b->warps || !b->shared ||
        (l->check && (!b->shared_init || !b->wrote || !b->read_)))
        return br_fail(r->st, BR_E_OOM, "kernel: out of memory");
    for (uint32_t k = 0; k < b->n_warps; k++) {
        ki_warp *w = &b->warps[k];

        w->b = b;
        w->id = k;
        w->live = lanes_of(b, k);
        w->clock[k] = 1;
        BR_TRY(ki_push(r, w, l->fn, w->live));
    }
    return BR_OK;
}

/* One turn of every warp, again and again until the block ends, is stuck, or a
 * warp has used its slice. */
static br_code
block_turn(ki_run *r, ki_block *b, bool *progress)
{
    bool any = true, sliced = false;

    while (any && !sliced && b->n_done < b->n_threads) {
        any = false;
        for (uint32_t k = 0; k < b->n_warps; k++) {
            ki_warp *w = &b->warps[k];
            uint64_t from = w->steps;

            BR_TRY(run_warp(r, w, &any));
            sliced |= w->steps - from >= slice(r);
        }
        any |= ki_open_barriers(b);
        *progress |= any;
        sliced |= r->n_peers != 0; /* they may wait for another block */
    }
    if (!any && b->n_done < b->n_threads && !r->n_peers)
        for (uint32_t k = 0; k < b->n_warps; k++)
            for (unsigned id = 0; id < KI_BARRIERS; id++)
                if (b->warps[k].wait[id])
                    return ki_deadlock(r, b);
    return BR_OK;
}

static void
drop_block(ki_block **at, size_t *n, size_t k)
{
    for (uint32_t w = 0; at[k]->warps && w < at[k]->n_warps; w++)
        at[k]->r->l->steps += at[k]->warps[w].steps;
    block_free(at[k]);
    br_free(at[k]);
    memmove(at + k, at + k + 1, (--*n - k) * sizeof *at);
}

static br_code
run_blocks(ki_run *r)
{
    const uint32_t *g = r->l->grid;
    uint64_t n = (uint64_t)g[0] * g[1] * g[2];
    bool more_blocks = true;
    ki_block **at = br_try_calloc(MAX_RESIDENT, sizeof *at);
    size_t resident = 0;
    br_code code = at ? BR_OK : br_fail(r->st, BR_E_OOM, "out of memory");

    while (code == BR_OK && (resident || more_blocks) &&
           !atomic_load_explicit(r->stop, memory_order_relaxed)) {
        for (size_t more = BR_MAX(resident, 1u);
             code == BR_OK && more && more_blocks && resident < MAX_RESIDENT;
             more--) {
            uint64_t k = take_block(r);
            ki_block *b = NULL;

            more_blocks = k < n;
            if (!more_blocks)
                break;
            b = br_try_calloc(1, sizeof *b);
            if (b)
                at[resident++] = b;
            code = b ? block_new(r, b, k)
                     : br_fail(r->st, BR_E_OOM, "out of memory");
            if (code == BR_OK && r->wide)
                code = x86_block(r, b, &more_blocks);
        }
        for (size_t k = 0; code == BR_OK && k < resident;) {
            bool progress = false;

            r->resident = resident;
            code = block_turn(r, at[k], &progress);
            if (code != BR_OK || at[k]->n_done < at[k]->n_threads) {
                k++;
                continue;
            }
            if (r->native && resident == 1 && more_blocks) {
                more_blocks = ki_next_block(at[k]);
                if (more_blocks) {
                    code = block_again(at[k]);
                    if (code == BR_OK && r->wide)
                        code = x86_block(r, at[k], &more_blocks);
                    continue;
                }
            }
            drop_block(at, &resident, k);
        }
    }
    while (resident)
        drop_block(at, &resident, resident - 1);
    br_free(at);
    return code;
}

/* The block of a cluster that has a number in it. */
static uint64_t
block_of(const ki_run *r, uint64_t cluster, uint32_t rank)
{
    const uint32_t *g = r->l->grid, *c = r->cluster;
    const uint64_t nx = g[0] / c[0], ny = g[1] / c[1];
    const uint64_t x = cluster % nx * c[0] + rank % c[0];
    const uint64_t y = cluster / nx % ny * c[1] + rank / c[0] % c[1];
    const uint64_t z = cluster / nx / ny * c[2] + rank / c[0] / c[1];

    return x + g[0] * (y + g[1] * z);
}

/* One after another, until all have ended. A block that ended is gone at once: whoever
 * reads its memory hears of it. */
static br_code
run_cluster(ki_run *r, ki_block **at, size_t left)
{
    br_code code = BR_OK;

    while (code == BR_OK && left &&
           !atomic_load_explicit(r->stop, memory_order_relaxed)) {
        bool progress = false;
        ki_block *one = NULL;

        r->resident = left;
        for (uint32_t k = 0; code == BR_OK && k < r->n_peers; k++) {
            if (!at[k])
                continue;
            code = block_turn(r, at[k], &progress);
            one = at[k];
            if (code != BR_OK || one->n_done < one->n_threads)
                continue;
            r->peers[k] = NULL;
            drop_block(&at[k], &(size_t){1}, 0);
            at[k] = NULL;
            progress = true;
            left--;
            one = NULL;
        }
        if (code == BR_OK && left && !ki_open_cluster(r) && !progress && one)
            code = ki_deadlock(r, one);
    }
    return code;
}

/* Clusters of several blocks, one at a time. */
static br_code
run_clusters(ki_run *r)
{
    const uint32_t *g = r->l->grid;
    const uint64_t n = (uint64_t)g[0] * g[1] * g[2] / r->n_peers;
    ki_block *at[BR_KMAX_CLUSTER] = {0};
    br_code code = BR_OK;

    for (uint64_t c; code == BR_OK && (c = take_block(r)) < n;) {
        for (uint32_t k = 0; code == BR_OK && k < r->n_peers; k++) {
            r->peers[k] = at[k] = br_try_calloc(1, sizeof *at[k]);
            code = at[k] ? block_new(r, at[k], block_of(r, c, k))
                         : br_fail(r->st, BR_E_OOM, "out of memory");
        }
        if (code == BR_OK)
            code = run_cluster(r, at, r->n_peers);
        for (uint32_t k = 0; k < r->n_peers; k++)
            if (at[k])
                drop_block(&at[k], &(size_t){1}, 0);
        memset(at, 0, sizeof at);
        if (atomic_load_explicit(r->stop, memory_order_relaxed))
            break;
    }
    return code;
}

br_code
ki_run_grid(ki_run *r)
{
    if (r->n_peers)
        return run_clusters(r);
    return run_blocks(r);
}

/* ---- launches ----------------------------------------------------------- */

static bool
add_regions(ki_run *r, const br_kregion *at, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        size_t p = r->regions.n;

        if (!br_vec_push(&r->regions, at[k]))
            return false;
        for (; p && r->regions.at[p - 1].addr > at[k].addr; p--)
            r->regions.at[p] = r->regions.at[p - 1];
        r->regions.at[p] = at[k];
    }
    return true;
}

br_code
ki_run_init(ki_run *r)
{
    const br_klaunch *l = r->l;
    const uint32_t n = br_kcluster(l, r->cluster);

    r->n_peers = n > 1 ? n : 0;
    r->no_shared =
        !l->shared_bytes && !ki_says_shared(r->m, &r->m->fns.at[l->fn]);
    r->fns = br_try_calloc(r->m->fns.n + 1, sizeof *r->fns);
    if (!r->fns || !add_regions(r, l->regions, l->n_regions) ||
        !add_regions(r, l->image->regions.at, l->image->regions.n))
        return br_fail(r->st, BR_E_OOM, "kernel: out of memory");
    return BR_OK;
}

void
ki_run_fini(ki_run *r)
{
    for (size_t k = 0; r->fns && k < r->m->fns.n; k++)
        br_free(r->fns[k].order);
    br_free(r->fns);
    br_free(r->heap);
    br_vec_fini(&r->regions);
    br_vec_fini(&r->told);
}

br_code
br_kinterp_run(br_klaunch *l, br_status *st)
{
    _Atomic uint64_t next = 0;
    _Atomic bool stop = false;
    ki_run r = {
        .l = l, .m = l->image->m, .st = st, .next = &next, .stop = &stop};
    br_code code;

    l->steps = l->findings = 0;
    l->fault = BR_KFAULT_OTHER;
    BR_TRY(ki_check_launch(l, st));
    code = ki_run_init(&r);
    if (code == BR_OK)
        code = ki_run_grid(&r);
    if (code == BR_E_OOM)
        br_fail(st, code, "kernel: out of memory");
    ki_run_fini(&r);
    return code;
}
