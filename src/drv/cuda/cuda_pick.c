/* cuda_pick.c - tokens drawn where the logits are: only ids cross the bus.
 *
 * The kernel of the decode tier (kernels/cuda/pick.cu), a row of its grid a
 * row of logits; all blocks of a launch are there at once, so a launch has as
 * many rows as there are multiprocessors at most.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

#include "../../../kernels/cuda/pick_table.h"

extern const char br_ptx_pick[], br_cubin_pick[];

/* One block of host memory that the device reads and writes: how, tokens. */
typedef struct pick_stage {
    struct br_pick_how *how;
    int32_t *token;
} pick_stage;

static pick_stage
stage_of(br_cun *x)
{
    return (pick_stage){
        x->pick_stage, (int32_t *)(void *)((struct br_pick_how *)x->pick_stage +
                                           x->pick_rows)};
}

static uint32_t
most_rows(const br_cun *x)
{
    return BR_MIN(x->c.max_want, (uint32_t)x->cu.n_sm);
}

uint64_t
cun_pick_bytes(const br_cun *x)
{
    return (uint64_t)most_rows(x) *
           (2 * sizeof(struct br_pick_space) + sizeof(struct br_pick_how) +
            sizeof(int32_t) + 8ull * (uint64_t)x->v.m->hp.n_vocab);
}

static br_code
open_spaces(br_cun *x, br_status *st)
{
    const uint32_t rows = most_rows(x);
    const uint64_t spaces = 2ull * rows * sizeof(struct br_pick_space);
    const size_t bytes = rows * (sizeof(struct br_pick_how) + sizeof(int32_t));

    if (x->pick_rows)
        return BR_OK;
    if (!x->pick_mod)
        BR_TRY(br_cuda_module(&x->cu, &x->pick_mod, "pick",
                              br_cuda_image(&x->cu, br_ptx_pick, br_cubin_pick),
                              st));
    BR_TRY(BR_CU(&x->cu, st,
                 cuModuleGetFunction(&x->pick, x->pick_mod, "br_pick")));
    BR_TRY(br_cuda_all_shared(&x->cu, x->pick, st));
    /* what another try has taken is still there */
    if (!x->pick_space)
        BR_TRY(cun_alloc(x, &x->pick_space, spaces, st));
    BR_TRY(br_cuda_fill(&x->cu, x->pick_space, 0, spaces / 4, st));
    if (!x->pick_io)
        BR_TRY(cun_alloc(x, &x->pick_io, bytes, st));
    if (!x->pick_stage)
        BR_TRY(BR_CU(&x->cu, st, cuMemAllocHost(&x->pick_stage, bytes)));
    x->pick_turn = br_arena_new(&x->arena, uint32_t, rows);
    if (!x->pick_turn)
        return br_fail(st, BR_E_OOM, "tier cuda: out of memory");
    x->pick_rows = rows;
    return BR_OK;
}

br_code
cun_open_pick(br_cun *x, bool weighs, br_status *st)
{
    BR_TRY(open_spaces(x, st));
    if (!weighs || x->pick_weights)
        return BR_OK;
    return cun_alloc(x, &x->pick_weights,
                     8ull * x->pick_rows * (uint64_t)x->v.m->hp.n_vocab, st);
}

bool
cun_draws_at_once(const br_cun *x, uint32_t n)
{
    return n <= most_rows(x);
}

uint64_t
cun_drawn(const br_cun *x)
{
    return x->pick_io + x->pick_rows * sizeof(struct br_pick_how);
}

struct br_pick_how
cun_how(br_cun *x, uint32_t i, const br_cun_pick *p)
{
    return (struct br_pick_how){.seed = p->seed,
                                .temperature = p->temperature,
                                .top_k = p->top_k,
                                .top_p = p->top_p,
                                .min_p = p->min_p,
                                .position = p->position,
                                .turn = x->pick_turn[i]++};
}

/* A draw clears the space of the one after it: after one that may not have run,
 * both are cleared, as at first. */
void
cun_forget_draws(br_cun *x)
{
    if (!x->pick_rows || br_cuda_hung(&x->cu))
        return;
    memset(x->pick_turn, 0, x->pick_rows * sizeof *x->pick_turn);
    /* what it says the next step will say */
    (void)!br_cuda_fill(&x->cu, x->pick_space, 0,
                        2ull * x->pick_rows * sizeof(struct br_pick_space) / 4,
                        NULL);
}

br_code
cun_start_pick(br_cun *x, uint32_t from, uint32_t n, br_status *st)
{
    const br_value_mem *v = &x->v.at[x->v.logits];
    struct br_pick_args a = {
        .logits = v->p + (size_t)from * (size_t)v->cols,
        .weights = (void *)(uintptr_t)x->pick_weights,
        .space = (void *)(uintptr_t)x->pick_space,
        .n = (uint32_t)v->cols,
        .tokens = (void *)(uintptr_t)cun_drawn(x),
        .rows = (const void *)(uintptr_t)x->pick_io,
        .hung = &x->stay.host->hung,
    };

    return BR_CU(&x->cu, st,
                 cuLaunchCooperativeKernel(
                     x->pick, (uint32_t)x->cu.n_sm / n, n, 1, BR_PICK_THREADS,
                     1, 1, BR_PICK_SHARED, x->cu.stream, (void *[]){&a}));
}

/* Rows from .. from + n of those that wanted logits. */
static br_code
pick_some(br_cun *x, const br_cun_pick *p, uint32_t from, uint32_t n,
          int32_t *out, br_status *st)
{
    const pick_stage s = stage_of(x);

    for (uint32_t i = 0; i < n; i++)
        s.how[i] = cun_how(x, i, &p[i]);
    BR_TRY(BR_CU(
        &x->cu, st,
        cuMemcpyHtoDAsync(x->pick_io, s.how, n * sizeof *s.how, x->cu.stream)));
    BR_TRY(cun_start_pick(x, from, n, st));
    BR_TRY(BR_CU(
        &x->cu, st,
        cuMemcpyDtoHAsync(s.token, cun_drawn(x), n * 4ull, x->cu.stream)));
    BR_TRY(cun_wait(x, st));
    x->busy = false;
    for (uint32_t i = 0; i < n; i++)
        out[i] = s.token[i];
    return BR_OK;
}

br_code
br_cun_draw(br_cun *x, const br_cun_pick *p, uint32_t n, int32_t *out,
            br_status *st)
{
    bool weighs = false;

    br_check(n == x->n_want && "rows that wanted logits");
    cun_leave(x);
    BR_TRY(cun_use(x, st));
    for (uint32_t i = 0; i < n; i++)
        weighs = weighs || (p[i].temperature > 0 && p[i].top_k != 1);
    BR_TRY(cun_open_pick(x, weighs, st));
    for (uint32_t i = 0; i < n; i += x->pick_rows) {
        const br_code code =
            pick_some(x, p + i, i, BR_MIN(n - i, x->pick_rows), out + i, st);

        if (code != BR_OK)
            return cun_forget_draws(x), code;
    }
    return BR_OK;
}
