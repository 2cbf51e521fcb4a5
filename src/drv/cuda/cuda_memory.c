/* cuda_memory.c - memory of the device that nodes run on: NVIDIA's, or another
 * that a table of calls leads to (drv/nodes/node_dev.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

#include "base/thread.h"

const char *
cun_tier(const br_cun *x)
{
    return x->dev ? x->dev->tier : "cuda";
}

enum { ALIGNED = 256, NOWHERE = 1 << 20 /* where nothing is */ };

br_code
cun_alloc(br_cun *x, uint64_t *p, size_t bytes, br_status *st)
{
    if (x->dev)
        return x->dev->ops->alloc(x->dev, p, bytes, false, st);
    if (x->counts) {
        *p = NOWHERE + (x->costs.rest + ALIGNED - 1) / ALIGNED * ALIGNED;
        x->costs.rest += bytes;
        return BR_OK;
    }
    BR_TRY(br_cuda_alloc(&x->cu, p, bytes, st));
    x->costs.rest += bytes;
    if (br_vec_push(&x->held, *p))
        return BR_OK;
    br_cuda_free(&x->cu, *p);
    *p = 0;
    return br_fail(st, BR_E_OOM, "tier %s: out of memory", cun_tier(x));
}

br_code
cun_pile_up(br_cun *x, enum cun_class c, uint64_t bytes, br_status *st)
{
    cun_pile *p = &x->pile[c];

    if (x->dev || !bytes)
        return BR_OK;
    BR_TRY(cun_alloc(x, &p->at, bytes, st));
    p->end = p->at + bytes;
    x->costs.weights += bytes;
    x->costs.weight_allocations++;
    return BR_OK;
}

br_code
cun_take(br_cun *x, enum cun_class c, uint64_t *p, uint64_t bytes,
         br_status *st)
{
    cun_pile *from = &x->pile[c];

    if (x->dev)
        return cun_alloc(x, p, bytes, st);
    if (bytes > from->end - from->at)
        return br_fail(st, BR_E_INTERNAL,
                       "weights of class %d: %zu bytes more than were counted",
                       (int)c, (size_t)(bytes - (from->end - from->at)));
    *p = from->at;
    from->at +=
        BR_MIN((bytes + ALIGNED - 1) / ALIGNED * ALIGNED, from->end - from->at);
    return BR_OK;
}

br_code
cun_shared(br_cun *x, uint64_t *p, size_t bytes, br_status *st)
{
    return x->dev ? x->dev->ops->alloc(x->dev, p, bytes, true, st)
                  : cun_alloc(x, p, bytes, st);
}

br_code
cun_zero(br_cun *x, uint64_t p, uint64_t numbers, br_status *st)
{
    if (x->counts)
        return BR_OK;
    return x->dev ? x->dev->ops->zero(x->dev, p, numbers, st)
                  : br_cuda_fill(&x->cu, p, 0, numbers, st);
}

br_code
cun_put(br_cun *x, uint64_t to, const void *from, size_t bytes, br_status *st)
{
    if (x->counts)
        return BR_OK;
    if (x->upload)
        return br_cuda_upload_put(x->upload, to, from, bytes, st);
    return x->dev ? x->dev->ops->put(x->dev, to, from, bytes, st)
                  : br_cuda_put(&x->cu, to, from, bytes, st);
}

br_code
cun_send(br_cun *x, uint64_t to, const void *from, size_t bytes, br_status *st)
{
    return x->dev ? x->dev->ops->put(x->dev, to, from, bytes, st)
                  : BR_CU(&x->cu, st,
                          cuMemcpyHtoDAsync(to, from, bytes, x->cu.stream));
}

br_code
cun_get(br_cun *x, void *to, uint64_t from, size_t bytes, br_status *st)
{
    return x->dev ? x->dev->ops->get(x->dev, to, from, bytes, st)
                  : br_cuda_get(&x->cu, to, from, bytes, st);
}

br_code
cun_why(const br_cun *x, br_code code, br_status *st)
{
    return x->stay.host ? br_cuda_why(&x->cu, &x->stay.host->hung, code, st)
                        : code;
}

br_code
cun_use(br_cun *x, br_status *st)
{
    if (x->dev)
        return BR_OK;
    if (br_cuda_hung(&x->cu))
        return br_cuda_overdue(&x->cu, 0, st);
    br_cuda_say(&x->cu);
    if (x->stay.host && x->stay.host->hung)
        return cun_why(x, BR_E_TIMEOUT, st);
    return BR_CU(&x->cu, st, cuCtxSetCurrent(x->cu.ctx));
}

br_code
cun_wait(br_cun *x, br_status *st)
{
    return x->dev ? x->dev->ops->wait(x->dev, st)
                  : cun_why(x, br_cuda_wait(&x->cu, st), st);
}

br_cun_costs
br_cun_costs_of(const br_cun *x)
{
    br_cun_costs c = x->costs;

    c.steps = x->steps;
    c.load_bytes = x->sent;
    c.graphs = x->cu.graphs;
    c.all = x->cu.used;
    c.rest -= c.weights + c.pages + c.states;
    return c;
}

br_nd_stats
br_cun_stats(const br_cun *x)
{
    const br_nd_stats *s = &x->dev->stats, *o = &x->opened;

    return (br_nd_stats){.steps = x->steps,
                         .launches = s->launches - o->launches,
                         .recorded = s->recorded - o->recorded,
                         .by_hand = s->by_hand - o->by_hand,
                         .submits = s->submits - o->submits,
                         .ioctls = s->ioctls - o->ioctls};
}

bool
br_cun_draws(const br_cun *x)
{
    return !x->plain;
}

double
br_cun_probe(br_cun *x)
{
    enum { MOST = 1 << 30, SHARE = 64 }; /* 1 GiB where there are 64 and more */
    br_cuda *cu = &x->cu;
    const uint64_t bytes = BR_MIN((uint64_t)MOST, cu->total_bytes / SHARE);
    uint64_t p = 0;
    int64_t least = INT64_MAX;

    if (x->dev)
        return x->dev->ops->probe(x->dev);
    cun_leave(x);
    if (cu->cuMemAlloc(&p, 2 * bytes))
        return 0;
    for (int i = 0; i < 4; i++) {
        int64_t t0 = br_now_ns();
        bool bad =
            cu->cuMemcpyDtoD(p, p + bytes, bytes) || cu->cuCtxSynchronize();

        least = bad ? INT64_MAX : BR_MIN(least, br_now_ns() - t0);
    }
    cu->cuMemFree(p);
    return least == INT64_MAX ? 0 : 2.0 * (double)bytes / (double)least;
}
