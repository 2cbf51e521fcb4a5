/* kinterp_global.c - global memory: which of the launch's regions an address is in.
 *
 * Regions are sorted and none meets another. Around those of a device's memory
 * some bytes are nobody's, as pages of a GPU go on behind what was asked for;
 * everything else is a fault that says what lies nearest.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kinterp_int.h"

#include <stdio.h>
#include <string.h>

const char *
ki_how_text(ki_access how)
{
    return how == KI_READ    ? "read"
           : how == KI_WRITE ? "write"
                             : "atomic access";
}

static void
note_writer(ki_run *r, uint64_t addr, unsigned bytes)
{
    br_kwatch *w = r->l->watch;
    uint32_t t = r->w->id * KI_LANES + r->lane;
    const uint32_t *n = r->l->block;
    unsigned size = br_ktinfo_of[r->ins->type].bytes;

    if (w->addr - addr >= bytes)
        return;
    w->seen = true;
    memcpy(w->block, r->w->b->ctaid, sizeof w->block);
    w->thread[0] = t % n[0];
    w->thread[1] = t / n[0] % n[1];
    w->thread[2] = t / n[0] / n[1];
    w->line = r->ins->line;
    w->type = r->ins->type;
    w->first = addr + (size ? (w->addr - addr) / size * size : 0);
}

/* A GPU's memory ends at pages, so who reads one element too many, or a row too
 * early, is not stopped there (decisions/0042). Whether it is let through here,
 * too: behind g, and in front of it. */
static bool
has_gap(const ki_run *r, const br_kregion *g)
{
    const br_klaunch *l = r->l;

    return l->gap && !l->check && g->addr >= l->gaps_from &&
           g->addr < l->gaps_to;
}

static bool
is_behind(const ki_run *r, const br_kregion *g, uint64_t addr, unsigned bytes)
{
    uint64_t room = g->bytes + r->l->gap, at = addr - g->addr;

    return has_gap(r, g) && at <= room && room - at >= bytes;
}

static bool
is_in_front(const ki_run *r, const br_kregion *g, uint64_t addr, unsigned bytes)
{
    uint64_t before = g->addr - addr;

    return has_gap(r, g) && before <= r->l->gap && before >= bytes;
}

static br_code
outside_fault(ki_run *r, const br_kregion *g, uint64_t addr, unsigned bytes,
              ki_access how)
{
    bool front = g && addr < g->addr;
    uint64_t far = !g ? 0 : front ? g->addr - addr : addr - g->addr;

    if (!g)
        return ki_fault(r, "%s of %u bytes at 0x%llx: no memory there",
                        ki_how_text(how), bytes, (unsigned long long)addr);
    return ki_fault(r,
                    "%s of %u bytes at 0x%llx, %llu bytes %s the start of "
                    "%s (%llu bytes)",
                    ki_how_text(how), bytes, (unsigned long long)addr,
                    (unsigned long long)far, front ? "before" : "after",
                    g->name, (unsigned long long)g->bytes);
}

/* The first one is told. */
static void
note_outside(ki_run *r, const br_kregion *g, uint64_t addr, unsigned bytes,
             ki_access how)
{
    br_status *was = r->st, st = {0};

    if (r->l->outside[0])
        return;
    r->st = &st;
    (void)outside_fault(r, g, addr, bytes, how);
    r->st = was;
    snprintf(r->l->outside, sizeof r->l->outside, "%.*s",
             (int)sizeof r->l->outside - 1, st.msg);
}

/* How many regions begin at addr or before. */
static size_t
regions_to(const ki_run *r, uint64_t addr)
{
    size_t lo = 0, hi = r->regions.n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (r->regions.at[mid].addr <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Of an access that is not within the region before it: the one whose gap it is
 * in; NULL: a fault, which is told. */
static const br_kregion *
outside(ki_run *r, size_t n_before, uint64_t addr, unsigned bytes,
        ki_access how)
{
    const br_kregion *at = r->regions.at, *g = NULL;

    if (n_before && is_behind(r, &at[n_before - 1], addr, bytes))
        g = &at[n_before - 1];
    else if (n_before < r->regions.n &&
             is_in_front(r, &at[n_before], addr, bytes))
        g = &at[n_before];
    if (g) {
        note_outside(r, g, addr, bytes, how);
        return g;
    }
    r->l->fault = BR_KFAULT_ADDRESS;
    (void)outside_fault(r, n_before ? &at[n_before - 1] : NULL, addr, bytes,
                        how);
    return NULL;
}

void *
ki_global_at(ki_run *r, uint64_t addr, unsigned bytes, ki_access how)
{
    const br_kregion *g =
        r->last < r->regions.n ? &r->regions.at[r->last] : NULL;
    size_t n;

    if (!g || addr - g->addr >= g->bytes) {
        n = regions_to(r, addr);
        r->last = n ? n - 1 : 0;
        g = n ? &r->regions.at[n - 1] : NULL;
    } else {
        n = r->last + 1;
    }
    if (!g || addr - g->addr > g->bytes || g->bytes - (addr - g->addr) < bytes)
        g = outside(r, n, addr, bytes, how);
    if (!g)
        return NULL;
    if (g->read_only && how != KI_READ) {
        r->l->fault = BR_KFAULT_ADDRESS;
        ki_fault(r, "%s at 0x%llx: %s may only be read", ki_how_text(how),
                 (unsigned long long)addr, g->name);
        return NULL;
    }
    if (r->l->watch && how != KI_READ)
        note_writer(r, addr, bytes);
    return g->host + (ptrdiff_t)(addr - g->addr);
}
