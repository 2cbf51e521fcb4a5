/* cpu_pack.c - the weights of a model as cpu_mat.h wants them, by all threads.
 *
 * One block holds them all, in the order of the graph. The pages of the file
 * are read once, in order, and can be dropped afterwards.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include "base/thread.h"

/* The file is in memory beside what was packed: so much of it. */
enum { TILE_BYTES = 1 << 20, FORGET_BYTES = 16 << 20 };

typedef struct pack {
    br_cpu *c;
    uint8_t *to;
    const cpu_mat **mat; /* a phase each */
    uint64_t done;
    _Atomic uint64_t read; /* since pages of the file were dropped */
    uint32_t per;          /* panels of a tile */
} pack;

static uint32_t
begin(void *ctx, uint32_t phase)
{
    pack *k = ctx;
    const cpu_mat *m = k->mat[phase];
    uint64_t panels = br_mat_panels(&m->m) * m->slices;

    if (phase > 0)
        k->done += k->mat[phase - 1]->slices * k->mat[phase - 1]->m.bytes;
    if (k->c->c.progress)
        k->c->c.progress(k->c->c.ctx, k->done, k->c->packed_bytes);
    k->per = (uint32_t)BR_MAX(TILE_BYTES / m->m.panel_bytes,
                              panels / (BR_CPU_MAX_TILES / 2) + 1);
    k->per = BR_MAX(BR_MIN(k->per, br_mat_panels(&m->m)), 1);
    return (uint32_t)(m->slices *
                      ((br_mat_panels(&m->m) + k->per - 1) / k->per));
}

static void
tile(void *ctx, uint32_t phase, uint32_t i, uint32_t worker)
{
    pack *k = ctx;
    const cpu_mat *m = k->mat[phase];
    uint32_t panels = br_mat_panels(&m->m), each, p0;
    uint64_t slice, row_bytes = 0, bytes = k->per * m->m.panel_bytes;

    (void)worker;
    if (br_is_told(k->c->c.stop))
        return;
    each = (panels + k->per - 1) / k->per;
    slice = i / each;
    p0 = i % each * k->per;
    (void)br_qtype_bytes(m->m.type, m->m.n_in, &row_bytes);
    br_mat_pack(&m->m, m->t->data + slice * m->m.n_out * row_bytes,
                k->to + m->at + slice * m->m.bytes, p0,
                BR_MIN(p0 + k->per, panels));
    /* relaxed: a count; whose pages go, too, reads them again */
    if (atomic_fetch_add_explicit(&k->read, bytes, memory_order_relaxed) +
            bytes >
        FORGET_BYTES) {
        atomic_store_explicit(&k->read, 0, memory_order_relaxed);
        br_gguf_forget(k->c->v.m->gguf);
    }
}

br_code
cpu_pack(br_cpu *c, br_status *st)
{
    pack k = {.c = c};
    br_cpu_job job = {.ctx = &k, .begin = begin, .tile = tile};
    size_t bytes;

    if (__builtin_add_overflow(c->packed_bytes, BR_MAT_ALIGN, &bytes))
        return br_fail(st, BR_E_LIMIT, "cpu tier: weights too large");
    k.to = cpu_cache_room(c);
    if (!k.to)
        c->packed_block = br_try_pages(bytes, 1);
    k.mat = br_try_calloc(c->v.g->n_values + 1, sizeof *k.mat);
    if ((!k.to && !c->packed_block) || !k.mat) {
        br_free(k.mat);
        return br_fail(st, BR_E_OOM,
                       "cpu tier: no memory for %llu MB of weights",
                       (unsigned long long)(bytes >> 20));
    }
    if (!k.to) {
        br_cpu_pool_spread(c->c.pool, c->packed_block, bytes);
        k.to = c->packed_block +
               (BR_MAT_ALIGN - (uintptr_t)c->packed_block % BR_MAT_ALIGN) %
                   BR_MAT_ALIGN;
    }
    c->packed = k.to;
    for (uint32_t v = 0; v < c->v.g->n_values; v++)
        if (c->mat[v].t)
            k.mat[job.n_phases++] = &c->mat[v];
    br_cpu_pool_run(c->c.pool, &job);
    if (br_is_told(c->c.stop)) {
        br_free(k.mat);
        return br_fail(st, BR_E_CANCELLED, "stopped while weights were packed");
    }
    br_gguf_forget(c->v.m->gguf); /* what is read again is rows of EMBED */
    if (c->c.progress)
        c->c.progress(c->c.ctx, c->packed_bytes, c->packed_bytes);
    br_free(k.mat);
    return BR_OK;
}
