/* decode_told.c - launches that find in memory what they are to do.
 *
 *   begin[epoch], how[turn]  -> graph of one launch, the same each time
 *
 * A launch with parameters of its own takes 4 to 9 us of the thread, the driver's all; a
 * graph of one cooperative launch 2, if nothing of it is changed. So a step that
 * follows the one before it is a graph without anything (the device knows where it
 * stands); one that begins elsewhere, and a draw, read their number's entry of a
 * ring in the host's memory. An entry is written again when the launch that had it is known
 * to be over: 64 may be under way.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/decode_int.h"

enum { GO_ON, TOLD, PICK }; /* graphs */

static br_code
start(br_cu_decode *d, size_t which, br_status *st)
{
    struct br_mk_launch l = {.end = d->plan.n_inst,
                             .n_steps = 1,
                             .seek = which == TOLD ? BR_MK_TOLD : BR_MK_GO_ON};
    struct br_pick_args a = {
        .logits = (const void *)d->logits,
        .weights = (void *)d->pick_weights,
        .space = (void *)d->pick_space,
        .n = d->shape.vocab,
        .tokens = (void *)d->tokens,
        .step = (void *)d->step,
        .how = d->how,
        .told = (void *)d->pick_told,
        .drawn = &d->host->drawn,
        .hung = &d->host->hung,
    };
    const bool draws = which == PICK;

    return BR_CU(d->cu, st,
                 cuLaunchCooperativeKernel(
                     draws ? d->pick : d->fn, d->plan.n_workers, 1, 1,
                     draws ? BR_PICK_THREADS : BR_MK_BLOCK, 1, 1,
                     draws ? BR_PICK_SHARED : BR_MK_SHARED, d->cu->stream,
                     (void *[]){draws ? (void *)&a : (void *)&l}));
}

static br_code
make(br_cu_decode *d, size_t which, br_status *st)
{
    void *graph;

    BR_TRY(br_cuda_record(d->cu, NULL, st));
    BR_TRY(br_cuda_recorded(d->cu, start(d, which, st), &graph, st));
    return br_cuda_graph(d->cu, &d->graph[which], graph, st);
}

br_code
br_cu_told_open(br_cu_decode *d, br_status *st)
{
    BR_TRY(BR_CU(
        d->cu, st,
        cuMemAllocHost((void **)&d->how, BR_PICK_TURNS * sizeof *d->how)));
    for (size_t i = 0; i < BR_COUNT(d->graph); i++)
        BR_TRY(make(d, i, st));
    return BR_OK;
}

void
br_cu_told_close(br_cu_decode *d)
{
    for (size_t i = 0; i < BR_COUNT(d->graph); i++)
        if (d->graph[i])
            d->cu->cuGraphExecDestroy(d->graph[i]);
    if (d->how)
        d->cu->cuMemFreeHost(d->how);
}

/* The step that is next, by itself. */
br_code
br_cu_told_step(br_cu_decode *d, br_status *st)
{
    const uint32_t epoch = d->epoch;
    const size_t which = d->sought ? TOLD : GO_ON;

    if (br_cuda_hung(d->cu))
        return br_cuda_overdue(d->cu, 0, st);
    if (d->sought) {
        unsigned long long *e = d->host->begin[epoch % BR_MK_RING_STEPS];

        if (epoch - d->heard >= BR_MK_RING_STEPS)
            BR_TRY(br_cu_decode_wait(d, st));
        e[0] = (uint64_t)epoch << 32 | d->token;
        e[1] = (uint64_t)epoch << 32 | BR_MK_PLACE(d->pos, d->block);
    }
    d->sought = false;
    d->launches++;
    d->epoch++;
    d->pos++;
    return BR_CU(d->cu, st, cuGraphLaunch(d->graph[which], d->cu->stream));
}

br_code
br_cu_told_pick(br_cu_decode *d, const br_cu_pick *p, br_status *st)
{
    const uint32_t turn = d->picks + 1;

    if (br_cuda_hung(d->cu))
        return br_cuda_overdue(d->cu, 0, st);
    if (turn - d->picked > BR_PICK_TURNS)
        BR_TRY(br_cu_decode_wait(d, st));
    d->how[turn % BR_PICK_TURNS] =
        (struct br_pick_how){.seed = p->seed,
                             .temperature = p->temperature,
                             .top_k = p->top_k,
                             .top_p = p->top_p,
                             .min_p = p->min_p,
                             .turn = turn};
    d->picks = turn;
    return BR_CU(d->cu, st, cuGraphLaunch(d->graph[PICK], d->cu->stream));
}
