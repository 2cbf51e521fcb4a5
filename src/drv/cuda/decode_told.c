/* decode_told.c - launches that find in memory what they are to do.
 *
 *   begin[epoch], how[turn]  -> graph of one launch, the same each time, or of a step
 *                               and the draw from its logits
 *
 * A launch with parameters of its own takes 4 to 9 us of the thread, the driver's all; a
 * graph of one cooperative launch 2, if nothing of it is changed. So a step that
 * follows the one before it is a graph without anything (the device knows where it
 * stands); one that begins elsewhere, and a draw, read their number's entry of a
 * ring in the host's memory. An entry is written again when the launch that had it is known
 * to be over: 64 may be under way.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/decode_int.h"

enum {
    NO_STEP,
    GO_ON,
    TOLD,
    STEPS
}; /* graphs: a step; from STEPS on with a draw */

static br_code
start_step(br_cu_decode *d, size_t which, br_status *st)
{
    struct br_mk_launch l = {.end = d->plan.n_inst,
                             .n_steps = 1,
                             .seek = which == TOLD ? BR_MK_TOLD : BR_MK_GO_ON};

    return BR_CU(d->cu, st,
                 cuLaunchCooperativeKernel(d->fn, d->plan.n_workers, 1, 1,
                                           BR_MK_BLOCK, 1, 1, BR_MK_SHARED,
                                           d->cu->stream, (void *[]){&l}));
}

static br_code
start_pick(br_cu_decode *d, br_status *st)
{
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

    return BR_CU(d->cu, st,
                 cuLaunchCooperativeKernel(
                     d->pick, d->plan.n_workers, 1, 1, BR_PICK_THREADS, 1, 1,
                     BR_PICK_SHARED, d->cu->stream, (void *[]){&a}));
}

static br_code
start(br_cu_decode *d, size_t which, br_status *st)
{
    if (which % STEPS != NO_STEP)
        BR_TRY(start_step(d, which % STEPS, st));
    return which < STEPS ? BR_OK : start_pick(d, st);
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
    br_assert(BR_COUNT(d->graph) == 2 * STEPS);
    for (size_t i = GO_ON; i < BR_COUNT(d->graph); i++)
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

/* The step that is next: where it begins, if not behind the one before. */
static br_code
tell_step(br_cu_decode *d, size_t *which, br_status *st)
{
    const uint32_t epoch = d->epoch;

    *which = d->sought ? TOLD : GO_ON;
    if (d->sought) {
        unsigned long long *e = d->host->begin[epoch % BR_MK_RING_STEPS];

        if (epoch - d->heard >= BR_MK_RING_STEPS)
            BR_TRY(br_cu_decode_wait(d, st));
        e[0] = (uint64_t)epoch << 32 | d->token;
        e[1] = (uint64_t)epoch << 32 | BR_MK_PLACE(d->pos, d->block);
    }
    return BR_OK;
}

static br_code
tell_pick(br_cu_decode *d, const br_cu_pick *p, br_status *st)
{
    const uint32_t turn = d->picks + 1;

    if (turn - d->picked > BR_PICK_TURNS)
        BR_TRY(br_cu_decode_wait(d, st));
    d->how[turn % BR_PICK_TURNS] =
        (struct br_pick_how){.seed = p->seed,
                             .temperature = p->temperature,
                             .top_k = p->top_k,
                             .top_p = p->top_p,
                             .min_p = p->min_p,
                             .turn = turn};
    return BR_OK;
}

/* step: the one that is next; p: the draw after it; or NULL, false. */
br_code
br_cu_told(br_cu_decode *d, bool step, const br_cu_pick *p, br_status *st)
{
    size_t which = NO_STEP;

    if (br_cuda_hung(d->cu))
        return br_cuda_overdue(d->cu, 0, st);
    if (p)
        BR_TRY(tell_pick(d, p, st));
    if (step)
        BR_TRY(tell_step(d, &which, st));
    BR_TRY(
        BR_CU(d->cu, st,
              cuGraphLaunch(d->graph[which + (p ? STEPS : 0)], d->cu->stream)));
    /* a launch that was not taken counts nothing: the device does not, either */
    if (step) {
        d->sought = false;
        d->launches++;
        d->epoch++;
        d->pos++;
    }
    d->picks += p != NULL;
    return BR_OK;
}
