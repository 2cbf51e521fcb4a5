/* cpu_pack.c - the weights of a model as cpu_mat.h wants them, by all threads.
 *
 * One block holds them all, in the order of the graph. The pages of the file
 * are read once, in order, and can be dropped afterwards.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include "base/thread.h"

#include <stdlib.h>

/* The file is in memory beside what was packed: so much of it. */
enum { TILE_BYTES = 1 << 20, FORGET_BYTES = 16 << 20 };

typedef struct pack {
    br_cpu *c;
    uint8_t *to;
    const cpu_mat **mat; /* a phase each */
    uint64_t done;
    _Atomic uint64_t read; /* since pages of the file were dropped */
    _Atomic bool misfit;   /* a matrix is not as tight as it was planned */
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
    /* relaxed: it ends sooner, no more */
    if (br_is_told(k->c->c.stop) ||
        atomic_load_explicit(&k->misfit, memory_order_relaxed))
        return;
    each = (panels + k->per - 1) / k->per;
    slice = i / each;
    p0 = i % each * k->per;
    (void)br_qtype_bytes(m->m.type, m->m.n_in, &row_bytes);
    if (!br_mat_pack(&m->m, m->t->data + slice * m->m.n_out * row_bytes,
                     k->to + m->at + slice * m->m.bytes, p0,
                     BR_MIN(p0 + k->per, panels)))
        atomic_store_explicit(&k->misfit, true, memory_order_relaxed);
    /* relaxed: a count; whose pages go, too, reads them again */
    if (atomic_fetch_add_explicit(&k->read, bytes, memory_order_relaxed) +
            bytes >
        FORGET_BYTES) {
        atomic_store_explicit(&k->read, 0, memory_order_relaxed);
        br_gguf_forget(k->c->v.m->gguf);
    }
}

static int
by_place(const void *a, const void *b)
{
    const cpu_mat *const *x = a, *const *y = b;

    return (*x)->at < (*y)->at ? -1 : (*x)->at > (*y)->at;
}

/* All matrices once more, in their order, none of them tight. */
br_code
cpu_loosen(br_cpu *c, br_status *st)
{
    cpu_mat **all = br_try_calloc(c->v.g->n_values + 1, sizeof *all);
    size_t n = 0;

    if (!all)
        return br_fail(st, BR_E_OOM, "cpu tier: out of memory");
    for (uint32_t v = 0; v < c->v.g->n_values; v++)
        if (c->mat[v].t)
            all[n++] = &c->mat[v];
    qsort(all, n, sizeof *all, by_place);
    c->loose = true;
    c->packed_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        br_mat_loosen(&all[i]->m);
        all[i]->at = c->packed_bytes;
        c->packed_bytes += all[i]->slices * all[i]->m.bytes;
    }
    br_free(all);
    return BR_OK;
}

/* Where they are packed to: a new file's memory, or a block. */
static br_code
find_room(br_cpu *c, pack *k, br_status *st)
{
    size_t bytes;

    if (__builtin_add_overflow(c->packed_bytes, BR_MAT_ALIGN, &bytes))
        return br_fail(st, BR_E_LIMIT, "cpu tier: weights too large");
    k->to = cpu_cache_room(c);
    if (k->to)
        return BR_OK;
    c->packed_block = br_try_pages(bytes, 1);
    if (!c->packed_block)
        return br_fail(st, BR_E_OOM,
                       "cpu tier: no memory for %llu MB of weights",
                       (unsigned long long)(bytes >> 20));
    br_cpu_pool_spread(c->c.pool, c->packed_block, bytes);
    k->to = c->packed_block +
            (BR_MAT_ALIGN - (uintptr_t)c->packed_block % BR_MAT_ALIGN) %
                BR_MAT_ALIGN;
    return BR_OK;
}

static br_code
pack_all(br_cpu *c, pack *k, br_status *st)
{
    br_cpu_job job = {.ctx = k, .begin = begin, .tile = tile};

    BR_TRY(find_room(c, k, st));
    k->done = 0;
    /* relaxed: nobody else is here yet */
    atomic_store_explicit(&k->misfit, false, memory_order_relaxed);
    for (uint32_t v = 0; v < c->v.g->n_values; v++)
        if (c->mat[v].t)
            k->mat[job.n_phases++] = &c->mat[v];
    br_cpu_pool_run(c->c.pool, &job);
    if (br_is_told(c->c.stop))
        return br_fail(st, BR_E_CANCELLED, "stopped while weights were packed");
    return BR_OK;
}

/* What does not fit twelve bits is found where it is packed, and then all are
 * packed once more: a model of such weights is rare, to look first as slow. */
br_code
cpu_pack(br_cpu *c, br_status *st)
{
    pack k = {.c = c};
    br_code code;

    k.mat = br_try_calloc(c->v.g->n_values + 1, sizeof *k.mat);
    if (!k.mat)
        return br_fail(st, BR_E_OOM, "cpu tier: out of memory");
    code = pack_all(c, &k, st);
    /* relaxed: the pool's end told all */
    if (code == BR_OK &&
        atomic_load_explicit(&k.misfit, memory_order_relaxed)) {
        cpu_cache_unroom(c);
        br_free(c->packed_block);
        c->packed_block = NULL;
        code = cpu_loosen(c, st);
        code = code == BR_OK ? pack_all(c, &k, st) : code;
    }
    br_free(k.mat);
    BR_TRY(code);
    c->packed = k.to;
    br_gguf_forget(c->v.m->gguf); /* what is read again is rows of EMBED */
    if (c->c.progress)
        c->c.progress(c->c.ctx, c->packed_bytes, c->packed_bytes);
    return BR_OK;
}
