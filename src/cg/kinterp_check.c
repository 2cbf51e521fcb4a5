/* kinterp_check.c - what a launch with check reports besides faults.
 *
 * A byte of shared memory remembers who wrote it last and who read it: thread,
 * and the time of that thread's warp. Warps have vector clocks: a barrier joins
 * those of all warps that meet. An access races with an earlier one of another
 * thread if at least one writes, not both are atomic, and nothing orders them:
 * across warps a barrier, in a warp bar.warp.sync or a barrier.
 *
 * Of each kind and line one finding is told, the rest is counted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kinterp_int.h"

#include <stdio.h>

void
ki_finding(ki_run *r, const char *kind, const char *fmt, ...)
{
    const br_klaunch *l = r->l;
    uint64_t key =
        (uint64_t)(unsigned char)kind[0] << 32 | (r->ins ? r->ins->line : 0);
    uint32_t t = r->w->id * KI_LANES + r->lane;
    char text[300], line[500];
    va_list ap;

    r->l->findings++;
    for (size_t k = 0; k < r->told.n; k++)
        if (r->told.at[k] == key)
            return;
    if (r->told.n >= BR_KMAX_FINDINGS || !br_vec_push(&r->told, key))
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(line, sizeof line,
             "%s%sline %u: %s: block %u,%u,%u thread %u,%u,%u: %s",
             l->file ? l->file : "", l->file ? ": " : "",
             r->ins ? r->ins->line : 0, kind, r->w->b->ctaid[0],
             r->w->b->ctaid[1], r->w->b->ctaid[2], t % l->block[0],
             t / l->block[0] % l->block[1], t / l->block[0] / l->block[1],
             text);
    if (l->finding)
        l->finding(l->arg, line);
}

/* Whether what thread+1 did then is ordered before what this lane does now. */
static bool
ordered(const ki_run *r, const ki_warp *w, const ki_touch *t)
{
    uint32_t thread = t->thread - 1u, warp = thread / KI_LANES;

    if (thread == w->id * KI_LANES + r->lane)
        return true;
    if (warp == w->id)
        return t->meet != w->meet || t->clock != w->clock[warp];
    return w->clock[warp] >= t->clock;
}

static void
race(ki_run *r, const ki_warp *w, const ki_touch *t, const char *what,
     uint64_t addr)
{
    const br_klaunch *l = r->l;
    uint32_t x = t->thread - 1u;

    (void)w;
    ki_finding(r, "race",
               "shared memory at 0x%llx: %s by thread %u,%u,%u in line %u, no "
               "barrier between",
               (unsigned long long)addr, what, x % l->block[0],
               x / l->block[0] % l->block[1], x / l->block[0] / l->block[1],
               t->line);
}

void
ki_check_shared(ki_run *r, ki_warp *w, uint64_t addr, unsigned bytes,
                ki_access how)
{
    ki_block *b = w->b;
    ki_touch now = {.clock = w->clock[w->id],
                    .meet = w->meet,
                    .line = r->ins ? r->ins->line : 0,
                    .thread = (uint16_t)(w->id * KI_LANES + r->lane + 1),
                    .atomic = how == KI_ATOMIC};

    for (uint64_t a = addr; a < addr + bytes; a++) {
        ki_touch *wr = &b->wrote[a], *rd = &b->read_[a];
        bool both = now.atomic && wr->atomic;

        if (how != KI_WRITE && !b->shared_init[a])
            ki_finding(r, "uninitialised",
                       "shared memory at 0x%llx is read before it is written",
                       (unsigned long long)a);
        if (wr->thread && !both && !ordered(r, w, wr))
            race(r, w, wr, "written", a);
        else if (how == KI_WRITE && rd->thread && !ordered(r, w, rd))
            race(r, w, rd, "read", a);
        if (how == KI_READ) {
            /* The one kept is the one that is harder to be ordered after. */
            if (!rd->thread || ordered(r, w, rd))
                *rd = now;
        } else {
            *wr = now;
            b->shared_init[a] = 1;
        }
    }
}

void
ki_check_local(ki_run *r, ki_warp *w, uint64_t addr, unsigned bytes,
               ki_access how)
{
    uint8_t *init = w->local_init + (size_t)r->lane * w->local_bytes;

    for (uint64_t a = addr; a < addr + bytes; a++) {
        if (how != KI_WRITE && !init[a])
            ki_finding(r, "uninitialised",
                       "local memory at 0x%llx is read before it is written",
                       (unsigned long long)a);
        init[a] = how != KI_READ || init[a];
    }
}

void
ki_check_barrier(ki_run *r, ki_warp *w, uint32_t exec)
{
    if (exec != w->live)
        ki_finding(r, "divergent",
                   "a barrier that only lanes %08x of %08x have reached", exec,
                   w->live);
}

void
ki_check_met(ki_block *b, const uint32_t *lanes)
{
    uint32_t join[KI_LANES] = {0};

    for (uint32_t k = 0; k < b->n_warps; k++)
        for (uint32_t x = 0; lanes[k] && x < b->n_warps; x++)
            join[x] = BR_MAX(join[x], b->warps[k].clock[x]);
    for (uint32_t k = 0; k < b->n_warps; k++)
        if (lanes[k]) {
            for (uint32_t x = 0; x < b->n_warps; x++)
                b->warps[k].clock[x] = join[x];
        }
    /* What comes now is later than what anybody knows of. */
    for (uint32_t k = 0; k < b->n_warps; k++)
        if (lanes[k])
            b->warps[k].clock[k]++;
}
