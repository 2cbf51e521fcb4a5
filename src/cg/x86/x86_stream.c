/* x86_stream.c - stores that go past the caches.
 *
 * A store of 64 bytes to a line that is not in a cache reads it first, to change
 * all of it. Of arrays larger than the caches each line is gone again before
 * somebody wants it, so that reading is for nothing, and by columns it is what
 * takes the time: transposing 4096 x 4096 floats by 16 x 16 took 16.0 ms on Zen
 * 4 (2 cores), 5.1 ms with stores past the caches (loops in C).
 *
 *   launch small? memory small? address no multiple of 64?  yes: as ever
 *                                                           no:  vmovntps
 *
 * Such stores come in any order to others. They are there when the thread's part
 * of the launch ends (x86_launch.c); kernels that talk to other blocks before, by
 * fences, atomics or volatile accesses, have none. What the kernel reads from
 * the same address it has in the cache anyway.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

/* Whether other blocks may hear in which order it is done. */
static bool
talks(const br_kins *i)
{
    switch (i->op) {
    case BR_K_LD:
    case BR_K_ST: return br_kmod(i->mods, BR_KF_SEM) != 0;
    case BR_K_FENCE:
    case BR_K_ATOM:
    case BR_K_CAS: return true;
    default: return false;
    }
}

void
x86_stream_find(gen *g)
{
    g->streams = g->wide && g->zmm;
    for (size_t b = 0; g->streams && b < g->f->blks.n; b++)
        for (size_t s = 0; s < g->f->blks.at[b].ins.n; s++)
            g->streams &= !talks(&g->f->ins.at[g->f->blks.at[b].ins.at[s]]);
}

bool
x86_is_loaded(const gen *g, uint32_t addr)
{
    for (size_t b = 0; b < g->f->blks.n; b++)
        for (size_t s = 0; s < g->f->blks.at[b].ins.n; s++) {
            const br_kins *i = &g->f->ins.at[g->f->blks.at[b].ins.at[s]];

            if (i->op == BR_K_LD && arg_of(g, i, 0) == addr)
                return true;
        }
    return false;
}

/* A store of whole lines, if it is aligned to one. */
static bool
able(const gen *g, const br_kins *i)
{
    unsigned bytes = br_ktinfo_of[i->type].bytes;

    return g->streams && g->z && i->op == BR_K_ST && i->n_arg == 2 &&
           (bytes == 4 || bytes == 8) &&
           br_kmod(i->mods, BR_KF_SPACE) != BR_KM_SPACE_SHARED &&
           !x86_is_loaded(g, arg_of(g, i, 0));
}

/* Of r to at, where window `site` is; false: nothing is written. rax, rdx. */
bool
x86_stream(gen *g, const br_kins *i, const uint8_t *r, br_x86_arg at,
           uint32_t site)
{
    uint32_t plain, done;
    int32_t size =
        (int32_t)(site * sizeof(x86_window) + offsetof(x86_window, size));

    if (!able(g, i))
        return false;
    plain = br_x86_label(g->a);
    done = br_x86_label(g->a);
    ei(g, BR_X_CMP8_I, x86_ctx_at(offsetof(x86_ctx, streams)), 0);
    ej(g, BR_X_JE, plain);
    em(g, BR_X_MOV64, RDX, x86_ctx_at(offsetof(x86_ctx, windows)));
    em(g, BR_X_MOV64, RAX, x86_ctx_at(offsetof(x86_ctx, stream_from)));
    em(g, BR_X_CMP64, RAX, br_x86_mem(RDX, size));
    ej(g, BR_X_JA, plain);
    em(g, BR_X_LEA64, RAX, at);
    ei(g, BR_X_TEST32_I, br_x86_reg(RAX), 63);
    ej(g, BR_X_JNE, plain);
    es(g, BR_X_ZMOVNTPS, br_x86_mem(RAX, 0), r[0]);
    if (br_ktinfo_of[i->type].bytes == 8)
        es(g, BR_X_ZMOVNTPS, br_x86_mem(RAX, 64), r[1]);
    ej(g, BR_X_JMP, done);
    br_x86_bind(g->a, plain);
    x86_store_row(g, i, r, at);
    br_x86_bind(g->a, done);
    return true;
}
