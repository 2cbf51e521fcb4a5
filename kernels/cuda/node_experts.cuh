/* node_experts.cuh - who is asked, and how answers are summed: a part of
 * nodes.cu. The products of experts are the kernels there: a row of theirs is a
 * pair (row of the step, rank), whose matrix is what the row has picked.
 * Ties go to the lowest id; sums run in order of rank (docs/arithmetic.md).
 * SPDX-License-Identifier: Apache-2.0 */

/* A row of logits in a warp. Shared, so many numbers: probs n, choice n, score
 * of groups, which groups are kept, weight k. */
struct router {
    u32 n, k, lane;
    float *probs, *choice, *score, *kept, *weight;
    i32 *ids;
};

/* Of logits, in place. The sum ascends, so every lane adds all. */
BR_DEV void
rt_softmax(float *p, u32 n, u32 lane)
{
    float m = -as_f32(0x7f800000), sum = 0.0f;

    for (u32 i = lane; i < n; i += 32)
        m = p[i] > m ? p[i] : m;
    for (u32 b = 16; b; b >>= 1) {
        const float o = shfl_xor_f(m, b);
        m = o > m ? o : m;
    }
    for (u32 i = lane; i < n; i += 32)
        p[i] = ex_exp(p[i] - m);
    warp_sync();
#pragma unroll 16
    for (u32 i = 0; i < n; i++)
        sum = sum + p[i];
    warp_sync();
    for (u32 i = lane; i < n; i += 32)
        p[i] = p[i] / sum;
    warp_sync();
}

/* Experts of groups that are not among the best cannot be chosen. A group's
 * score: its best, or the two best added. */
BR_DEV void
rt_drop(const struct router *r, u32 groups, u32 used, bool two)
{
    const u32 per = r->n / groups;

    for (u32 g = r->lane; g < groups; g += 32) {
        float a = -as_f32(0x7f800000), b = a;

        for (u32 i = g * per; i < (g + 1) * per; i++) {
            const float v = r->choice[i];
            if (v > a)
                b = a, a = v;
            else if (v > b)
                b = v;
        }
        r->score[g] = two ? a + b : a;
        r->kept[g] = 0.0f;
    }
    warp_sync();
    for (u32 i = 0; r->lane == 0 && i < used; i++) {
        u32 best = groups;

        for (u32 g = 0; g < groups; g++)
            if (r->kept[g] == 0.0f &&
                (best == groups || r->score[g] > r->score[best]))
                best = g;
        r->kept[best] = 1.0f;
    }
    warp_sync();
    for (u32 i = r->lane; i < groups * per; i += 32)
        if (r->kept[i / per] == 0.0f)
            r->choice[i] = -as_f32(0x7f800000);
    warp_sync();
}

/* Who is taken becomes NaN, which nobody takes. */
BR_DEV void
rt_pick(const struct router *r)
{
    for (u32 rank = 0; rank < r->k; rank++) {
        float v = 0.0f;
        u32 best = r->n;

        for (u32 i = r->lane; i < r->n; i += 32) {
            const float c = r->choice[i];
            if (c == c && (best == r->n || c > v))
                v = c, best = i;
        }
        for (u32 m = 16; m; m >>= 1) {
            const float o = shfl_xor_f(v, m);
            const u32 i = shfl_xor(best, m);
            if (i < r->n &&
                (best == r->n || o > v || (o == v && i < best)))
                v = o, best = i;
        }
        if (best == r->n)
            best = rank; /* all are NaN: anyone, but there */
        warp_sync();
        if (r->lane == 0) {
            r->ids[rank] = (i32)best;
            r->weight[rank] = r->probs[best];
            r->choice[best] = as_f32(0x7fc00000);
        }
        warp_sync();
    }
}

/* Each weight by the sum of all, which is `least` at least. */
BR_DEV void
rt_share(const struct router *r, float least)
{
    float sum = 0.0f;

    for (u32 i = 0; i < r->k; i++)
        sum = sum + r->weight[i];
    sum = sum > least || least == 0.0f ? sum : least;
    warp_sync();
    for (u32 i = r->lane; i < r->k; i += 32)
        r->weight[i] = r->weight[i] / sum;
    warp_sync();
}

BR_DEV void
rt_weigh(const struct br_nd_args &a, const struct router *r, float *y)
{
    float m = -as_f32(0x7f800000);

    if (a.e.gating == BR_ND_PICKED) {
        for (u32 i = 0; i < r->k; i++)
            m = r->weight[i] > m ? r->weight[i] : m;
        warp_sync();
        for (u32 i = r->lane; i < r->k; i += 32)
            r->weight[i] = ex_exp(r->weight[i] - m);
        warp_sync();
        rt_share(r, 0.0f);
    }
    if (a.e.norm_w)
        rt_share(r, 6.103515625e-5f);
    for (u32 i = r->lane; i < r->k; i += 32)
        y[i] = a.scale != 0.0f && a.scale != 1.0f ? r->weight[i] * a.scale
                                                  : r->weight[i];
}

/* x: logits, b: a bias of theirs, w: one of the choice, y: weights. A warp of
 * a block a row. */
KERNEL
br_nd_topk(ARGS)
{
    const u32 n = a.m.n_out, t = bid_y();
    float *shared = (float *)dyn_shared();
    const struct router r = {n,
                             a.e.k,
                             tid(),
                             shared,
                             shared + n,
                             shared + 2 * n,
                             shared + 2 * n + a.e.groups,
                             shared + 2 * n + 2 * a.e.groups,
                             a.e.ids + (u64)t * a.e.stride};
    float *x = row(a.x, t);

    begin();
    if (tid() >= 32)
        return;
    for (u32 i = r.lane; i < n; i += 32) {
        const float v = a.b.p ? x[i] + a.b.p[i] : x[i];
        x[i] = v;
        r.probs[i] = a.e.gating == BR_ND_SIGMOIDS
                         ? ex_act(BR_ND_SIGMOID, v)
                         : v;
    }
    warp_sync();
    if (a.e.gating == BR_ND_SOFTMAX)
        rt_softmax(r.probs, n, r.lane);
    for (u32 i = r.lane; i < n; i += 32)
        r.choice[i] = a.w.p ? r.probs[i] + a.w.p[i] : r.probs[i];
    warp_sync();
    if (a.e.groups > 1)
        rt_drop(&r, a.e.groups, a.e.groups_used, a.w.p);
    rt_pick(&r);
    rt_weigh(a, &r, row(a.y, t));
}

/* y = sum over ranks of weight (b) * what an expert said (x, a row a pair)
 * [* its scale, w], then + c. */
KERNEL
br_nd_fold(ARGS)
{
    const u64 i = thread_of_grid();
    const u32 t = (u32)(i / a.y.cols), c = (u32)(i % a.y.cols);
    float y = 0.0f;

    begin();
    if (t >= a.n_rows)
        return;
#pragma unroll 4
    for (u32 r = 0; r < a.e.k; r++) {
        float v = row(a.x, t * a.e.k + r)[c];

        if (a.w.p)
            v = v * a.w.p[a.e.ids[(u64)t * a.e.stride + r]];
        y = fma_rn(v, row(a.b, t)[r], y);
    }
    row(a.y, t)[c] = a.c.p ? y + row(a.c, t)[c] : y;
}
