/* sim_launch.c - a launch of KIR's by the driver, on the simulated GPU.
 *
 * The whole way each time: the kernel's nodes, address space, memory, a queue,
 * one packet, its signal. Memory comes in pages there, so regions that share
 * pages become one buffer; memory that has the same address on both sides is
 * lent as it is, other is copied to the GPU and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_launch.h"

#include "drv/amd/amd_dev.h"
#include "drv/sim/sim_gpu.h"
#include "drv/sim/sim_host.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 64 };

typedef struct piece {
    br_amd_mem mem;
    size_t first, n; /* of the regions, in order of addresses */
    uint64_t at, end;
    bool same, read_only; /* same: the GPU's addresses are the CPU's */
} piece;

typedef struct way {
    br_simgpu *g;
    br_amd_dev d;
    br_amd_queue q;
    br_amd_mem code, kernarg;
    BR_VEC(br_kregion) regions;
    BR_VEC(piece) pieces;
} way;

static int
by_address(const void *a, const void *b)
{
    uint64_t x = ((const br_kregion *)a)->addr;
    uint64_t y = ((const br_kregion *)b)->addr;

    return (x > y) - (x < y);
}

/* All regions in order; a module's variables may lie in one of the launch's. */
static br_code
gather(way *w, const sim_launch *s, br_status *st)
{
    const br_klaunch *l = s->l;
    const br_kregion *last = NULL;
    size_t n = 0;

    if (s->heap && !br_vec_push(&w->regions, sim_host_region(s->heap)))
        return br_fail(st, BR_E_OOM, "no memory for regions");

    for (size_t k = 0; k < l->n_regions + l->image->regions.n; k++) {
        const br_kregion *r = k < l->n_regions
                                  ? &l->regions[k]
                                  : &l->image->regions.at[k - l->n_regions];

        if (r->bytes && !br_vec_push(&w->regions, *r))
            return br_fail(st, BR_E_OOM, "no memory for regions");
    }
    if (w->regions.n)
        qsort(w->regions.at, w->regions.n, sizeof *w->regions.at, by_address);
    for (size_t k = 0; k < w->regions.n; k++) {
        br_kregion r = w->regions.at[k];

        if (last && r.addr - last->addr < last->bytes) {
            if (r.addr + r.bytes > last->addr + last->bytes)
                return br_fail(st, BR_E_LIMIT, "%s: other memory is there",
                               r.name ? r.name : "memory");
            continue;
        }
        w->regions.at[n] = r;
        last = &w->regions.at[n++];
    }
    w->regions.n = n;
    return BR_OK;
}

static br_code
cut(way *w, br_status *st)
{
    const uint64_t mask = BR_KFD_PAGE - 1;

    for (size_t k = 0; k < w->regions.n; k++) {
        const br_kregion *r = &w->regions.at[k];
        bool same = r->addr == (uint64_t)(uintptr_t)r->host;
        uint64_t at = r->addr & ~mask,
                 end = (r->addr + r->bytes + mask) & ~mask;
        piece *p = w->pieces.n ? &w->pieces.at[w->pieces.n - 1] : NULL;

        if (!p || at >= p->end) {
            piece one = {.first = k,
                         .at = at,
                         .end = end,
                         .same = same,
                         .read_only = true};

            if (!br_vec_push(&w->pieces, one))
                return br_fail(st, BR_E_OOM, "no memory for regions");
            p = &w->pieces.at[w->pieces.n - 1];
        } else if (p->same != same) {
            return br_fail(st, BR_E_LIMIT, "%s: a page of two kinds",
                           r->name ? r->name : "memory");
        }
        p->n++;
        p->end = BR_MAX(p->end, end);
        p->read_only &= r->read_only;
    }
    return BR_OK;
}

static br_code
lend(way *w, br_status *st)
{
    for (size_t k = 0; k < w->pieces.n; k++) {
        piece *p = &w->pieces.at[k];
        br_amd_want want = {.bytes = p->end - p->at,
                            .heap = p->same ? BR_AMD_USER : BR_AMD_BAR,
                            .va = p->at,
                            .user =
                                p->same ? (uint8_t *)(uintptr_t)p->at : NULL,
                            .read_only = p->read_only};

        BR_TRY(br_amd_alloc(&w->d, &p->mem, &want, st));
        for (size_t i = p->first; !p->same && i < p->first + p->n; i++) {
            const br_kregion *r = &w->regions.at[i];

            memcpy(p->mem.host + (r->addr - p->at), r->host, r->bytes);
        }
    }
    return BR_OK;
}

static void
take_back(way *w)
{
    for (size_t k = 0; k < w->pieces.n; k++) {
        piece *p = &w->pieces.at[k];

        for (size_t i = p->first; !p->same && i < p->first + p->n; i++) {
            const br_kregion *r = &w->regions.at[i];

            if (!r->read_only && p->mem.host)
                memcpy(r->host, p->mem.host + (r->addr - p->at), r->bytes);
        }
        br_amd_free(&w->d, &p->mem);
    }
}

/* Memory with these bytes in it. */
static br_code
put(way *w, br_amd_mem *m, const void *p, uint64_t bytes, bool exec,
    br_status *st)
{
    br_amd_want want = {
        .bytes = BR_MAX(bytes, 1u), .heap = BR_AMD_BAR, .exec = exec};

    BR_TRY(br_amd_alloc(&w->d, m, &want, st));
    if (bytes)
        memcpy(m->host, p, bytes);
    return BR_OK;
}

static br_code
prepare(way *w, const sim_launch *s, br_status *st)
{
    br_simgpu_opts o = {.cpu = s->co->isa.cpu->name,
                        .max_steps = s->l->max_steps};
    br_amd_node n;

    BR_TRY(br_simgpu_new(&w->g, &o, st));
    BR_TRY(br_amd_node_get(&n, br_simgpu_os(w->g), 0, st));
    BR_TRY(br_amd_open(&w->d, br_simgpu_os(w->g), &n, st));
    BR_TRY(br_amd_queue_init(&w->q, &w->d, false, SLOTS, st));
    BR_TRY(put(w, &w->code, s->co->image, s->co->bytes, true, st));
    BR_TRY(put(w, &w->kernarg, s->kernarg, s->kernarg_bytes, false, st));
    BR_TRY(gather(w, s, st));
    BR_TRY(cut(w, st));
    return lend(w, st);
}

static br_code
go(way *w, const sim_launch *s, br_status *st)
{
    br_aql_launch a = {.kernel = w->code.va + s->kd_at,
                       .kernarg = w->kernarg.va,
                       .group_bytes = s->lds_bytes};
    br_sim *waves = br_simgpu_waves(w->g);
    br_code c;

    memcpy(a.groups, s->l->grid, sizeof a.groups);
    memcpy(a.group, s->l->block, sizeof a.group);
    memcpy(&a.private_bytes, s->co->image + s->kd_at + 4, 4);
    br_amd_flush(&w->d);
    BR_TRY(br_amd_launch(&w->q, &a, st));
    c = br_amd_wait(&w->q, -1, NULL);
    if (c != BR_OK && br_simgpu_fault(w->g, st) != BR_OK)
        c = st->code;
    else if (c != BR_OK)
        br_fail(st, c, "the simulated GPU stopped");
    return s->mod ? sim_host_end(s->mod, waves, s->l, c, st) : c;
}

br_code
sim_launch_run(const sim_launch *s, br_status *st)
{
    way w = {.g = NULL};
    br_status mine = {0};
    br_code c = prepare(&w, s, &mine);

    if (c == BR_OK)
        c = go(&w, s, &mine);
    if (c != BR_OK)
        br_fail(st, c, "%s", mine.msg);
    take_back(&w);
    br_amd_queue_fini(&w.q);
    br_amd_free(&w.d, &w.code);
    br_amd_free(&w.d, &w.kernarg);
    br_amd_close(&w.d);
    if (w.g) {
        s->l->steps = br_simgpu_waves(w.g)->steps;
        if (s->l->fault == BR_KFAULT_OTHER)
            s->l->fault = br_simgpu_waves(w.g)->fault;
    }
    br_check(br_simgpu_free(w.g));
    br_vec_fini(&w.regions);
    br_vec_fini(&w.pieces);
    return c;
}
