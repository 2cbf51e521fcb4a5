/* kinterp_bar.c - barriers: who waits, when they open, who waits for ever.
 *
 * Lanes wait in their warp, by barrier; a block opens what is full. Exited
 * threads count as come.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kinterp_int.h"

#include "cg/x86/x86_int.h"

static bool
is_const(const ki_frame *f, const br_kins *i, unsigned n)
{
    return f->f->vals.at[f->f->args.at[i->arg + n]].kind == BR_KV_CONST;
}

/* Lanes that wait at a barrier in the block that runs. */
static void
wait_at(ki_run *r, ki_warp *w, unsigned id, uint32_t lanes)
{
    bool first = w->wait[id] == 0;

    w->bar_from[id] = first ? r->pos : BR_MIN(w->bar_from[id], r->pos);
    w->bar_to[id] = first ? r->pos : BR_MAX(w->bar_to[id], r->pos);
    w->wait[id] |= lanes;
    w->red_lanes &= ~lanes;
}

void
ki_barrier(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    ki_frame *f = ki_top(w);

    if (r->l->check)
        ki_check_barrier(r, w, exec);
    if (i->op == BR_K_BAR && is_const(f, i, 0) && is_const(f, i, 1)) {
        unsigned id = (unsigned)ki_arg(f, i, 0)[0] % KI_BARRIERS;

        w->b->count[id] = (uint32_t)ki_arg(f, i, 1)[0];
        w->b->used |= 1u << id;
        wait_at(r, w, id, exec);
        for (unsigned lane = 0; lane < KI_LANES; lane++)
            w->bar_line[lane] = exec >> lane & 1 ? i->line : w->bar_line[lane];
        return;
    }
    ki_each_lane(lane, exec)
    {
        unsigned id = (unsigned)ki_arg(f, i, 0)[lane] % KI_BARRIERS;

        w->b->count[id] = (uint32_t)ki_arg(f, i, 1)[lane];
        w->b->used |= 1u << id;
        w->bar_line[lane] = i->line;
        if (i->op == BR_K_BARRIVE) {
            w->arrived[id]++;
            continue;
        }
        wait_at(r, w, id, 1u << lane);
        if (i->op == BR_K_BARRED) {
            w->red_lanes |= 1u << lane;
            w->red_res[lane] = i->res;
            w->red_op[lane] = (uint8_t)br_kmod(i->mods, BR_KF_SUB);
            w->red_true &= ~(1u << lane);
            w->red_true |= (uint32_t)ki_arg(f, i, 2)[lane] << lane;
        }
    }
}

/* What barred gives its lanes: of n that came, for `holds` it was true. */
static void
tell_lanes(ki_warp *w, uint32_t lanes, uint32_t n, uint32_t holds)
{
    ki_frame *f = ki_top(w);

    ki_each_lane(lane, lanes)
    {
        uint64_t v = w->red_op[lane] == BR_KM_BARRED_RPOPC  ? holds
                     : w->red_op[lane] == BR_KM_BARRED_RAND ? holds == n
                                                            : holds > 0;

        if (f->slots)
            x86_put_lane(f, w->red_res[lane], lane, v);
        else
            f->vals[w->red_res[lane]][lane] = v;
    }
}

static void
release(ki_block *b, unsigned id)
{
    uint32_t lanes[KI_LANES] = {0}, n = 0, holds = 0;

    for (uint32_t k = 0; k < b->n_warps; k++) {
        lanes[k] = b->warps[k].wait[id];
        n += (uint32_t)__builtin_popcount(lanes[k]);
        holds += (uint32_t)__builtin_popcount(lanes[k] & b->warps[k].red_true);
    }
    if (b->r->l->check)
        ki_check_met(b, lanes);
    for (uint32_t k = 0; k < b->n_warps; k++) {
        ki_warp *w = &b->warps[k];
        ki_frame *f;

        w->wait[id] = w->arrived[id] = 0;
        if (!lanes[k])
            continue;
        f = ki_top(w);
        if (lanes[k] & w->red_lanes)
            tell_lanes(w, lanes[k] & w->red_lanes, n, holds);
        for (uint32_t p = w->bar_from[id]; p <= w->bar_to[id]; p++) {
            f->tail[p] |= f->hold[p] & lanes[k];
            f->hold[p] &= ~lanes[k];
        }
        f->low = BR_MIN(f->low, w->bar_from[id]);
    }
}

/* A barrier is full when all threads that are left have come or, with a count,
 * so many have; a warp counts whole once all its lanes that are left came. */
static bool
full(const ki_block *b, unsigned id)
{
    uint32_t n = 0, all = 0, some = 0, come = 0;

    while (come < b->n_warps && b->warps[come].wait[id] &&
           b->warps[come].wait[id] == b->warps[come].live)
        come++;
    if (come == b->n_warps && !b->count[id])
        return true; /* the common case, in no time */
    for (uint32_t k = 0; k < b->n_warps; k++) {
        const ki_warp *w = &b->warps[k];
        uint32_t here = (uint32_t)__builtin_popcount(w->wait[id]);

        some |= w->wait[id];
        all += (uint32_t)__builtin_popcount(w->live);
        n += here && w->wait[id] == w->live ? KI_LANES : here;
        n += w->arrived[id];
    }
    if (!some)
        return false;
    if (b->count[id])
        return n >= b->count[id];
    n = 0;
    for (uint32_t k = 0; k < b->n_warps; k++)
        n += (uint32_t)__builtin_popcount(b->warps[k].wait[id]) +
             b->warps[k].arrived[id];
    return n >= all;
}

/* All lanes that are left in all blocks wait there. */
static bool
cluster_full(const ki_run *r)
{
    uint32_t some = 0;

    for (uint32_t p = 0; p < r->n_peers; p++)
        for (uint32_t k = 0; r->peers[p] && k < r->peers[p]->n_warps; k++) {
            const ki_warp *w = &r->peers[p]->warps[k];

            if (w->wait[KI_OF_CLUSTER] != w->live)
                return false;
            some |= w->live;
        }
    return some != 0;
}

bool
ki_open_cluster(ki_run *r)
{
    if (!cluster_full(r))
        return false;
    for (uint32_t p = 0; p < r->n_peers; p++)
        if (r->peers[p])
            release(r->peers[p], KI_OF_CLUSTER);
    return true;
}

bool
ki_open_barriers(ki_block *b)
{
    bool any = false;

    for (uint32_t left = b->used; left; left &= left - 1) {
        unsigned id = (unsigned)__builtin_ctz(left);

        if ((id == KI_OF_CLUSTER && b->r->n_peers) || !full(b, id))
            continue;
        release(b, id);
        any = true;
    }
    return any;
}

br_code
ki_deadlock(ki_run *r, ki_block *b)
{
    uint32_t n = 0, line = 0, other = 0;

    for (uint32_t k = 0; k < b->n_warps; k++)
        for (unsigned id = 0; id < KI_BARRIERS; id++)
            ki_each_lane(lane, b->warps[k].wait[id])
            {
                n++;
                r->w = &b->warps[k];
                r->lane = lane;
                if (line && line != b->warps[k].bar_line[lane])
                    other = b->warps[k].bar_line[lane];
                else
                    line = b->warps[k].bar_line[lane];
            }
    r->ins = NULL;
    r->l->fault = BR_KFAULT_STUCK;
    if (other)
        return ki_fault(r,
                        "deadlock: %u threads wait at the barriers of lines "
                        "%u and %u, and no other can come",
                        n, BR_MIN(line, other), BR_MAX(line, other));
    return ki_fault(r,
                    "deadlock: %u of %u threads wait at the barrier of line "
                    "%u, and no other can come",
                    n, b->n_threads - b->n_done, line);
}
