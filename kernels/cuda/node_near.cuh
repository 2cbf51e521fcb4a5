/* node_near.cuh - a norm of x + b as row16<ADD> (node_rows.cuh) makes it, where b is a
 * product in pieces that nobody has added, by a cluster of blocks a row.
 *
 *   block    a part of the row's warps: eight pieces are 64 KB of a row, too much
 *            for one multiprocessor's way to the L2 while others do nothing, and 512
 *            threads leave no room beside them for the next product's blocks
 *   meeting  a warp sends its three numbers to all blocks (st.async), each waits
 *            for its own barrier; they are added in the order of row_meets: the
 *            same bits as by one block
 *
 * What no send waits for, the row's sum, is written behind it. Blocks end when all
 * have been heard, so nobody sends to one that has gone.
 * SPDX-License-Identifier: Apache-2.0 */

/* Warps of the cluster, some of which may have no columns; this one. */
BR_DEV u32
near_warps(void)
{
    return cluster_blocks() * block_dim() / 32;
}
BR_DEV u32
near_warp(void)
{
    return (cluster_rank() * block_dim() + tid()) / 32;
}
/* Where the thread's e-th run of four columns begins, or beyond the row. */
BR_DEV u32
near_run(const struct br_nd_pieces &p, u32 e)
{
    const u32 me = cluster_rank() * block_dim() + tid();

    return me < p.threads ? (e * p.threads + me) * 4 : ~3u;
}

/* A thread's runs of four columns of row t, of a product in pieces, where its
 * weights' factors are: four or eight pieces are asked for at once. */
template <u32 EACH_>
BR_DEV void
add_pieces(float (&x)[EACH_][4], const struct br_nd_pieces &p, u32 t, u32 K)
{
    enum { AT_ONCE = EACH_ == 1 ? 8 : 4 };
    const u64 step = (u64)BR_ND_APART * p.pitch;
    const float xd = p.xd[t];
    float all[EACH_][4];

#pragma unroll 1
    for (u32 from = 0; from < p.segs; from += AT_ONCE) {
        float v[EACH_][AT_ONCE][4];
#pragma unroll
        for (u32 e = 0; e < EACH_; e++) {
            const u32 k = near_run(p, e);
            const float *s =
                p.sums + from * step + (u64)t * p.pitch + (k < K ? k : 0);
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
                if (from + i < p.segs)
                    load4(v[e][i], s + i * step);
        }
#pragma unroll
        for (u32 e = 0; e < EACH_; e++)
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
#pragma unroll
                for (u32 k = 0; k < 4; k++)
                    if (from + i < p.segs)
                        all[e][k] = from + i ? all[e][k] + v[e][i][k]
                                             : v[e][i][k];
    }
#pragma unroll
    for (u32 e = 0; e < EACH_; e++)
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            x[e][k] = all[e][k] * xd * x[e][k];
}

/* Before all else: the barrier of what is sent here, and that others may send. */
BR_DEV void
near_begin(u32 base)
{
    const u32 met = base + BR_ND_NEAR_SUMS;

    if (tid() == 0) {
        mbar_init(met, 1);
        fence_mbar_init();
        mbar_expect(met, near_warps() * 16);
    }
    cluster_arrive();
}
BR_DEV void
near_send(const struct row_sums &s, u32 base)
{
    const u32 lane = tid() & 31, mine = base + near_warp() * 16;

    if (lane < cluster_blocks())
        send128(shared_of(mine, lane),
                {as_u32(s.sum), s.top, as_u32(s.square), 0},
                shared_of(base + BR_ND_NEAR_SUMS, lane));
}
BR_DEV struct row_sums
near_meets(u32 base)
{
    const u32 lane = tid() & 31;
    u32x4 v = {};

    while (!mbar_try_sent(base + BR_ND_NEAR_SUMS, 0))
        ;
    if (lane < near_warps())
        v = lds128(base + lane * 16);
    return lanes_of({as_f32(v.x), v.y, as_f32(v.z)});
}

template <u32 EACH_>
BR_DEV void
row16_pieces(const struct br_nd_args &a, const struct br_nd_pieces &in)
{
    const u32 t = bid() / cluster_blocks(), K = a.x.cols;
    const u32 base = smem_of(dyn_shared());
    float v[EACH_][4], w[EACH_][4], b[EACH_][4], none;
    struct row_sums s = {};

    near_begin(base);
    grid_go();
#pragma unroll
    for (u32 e = 0; e < EACH_; e++) { /* while the launch ahead ends */
        const u32 k = near_run(in, e);
        for (u32 i = 0; i < 4; i++)
            w[e][i] = 1.0f;
        if (a.w.p && k < K)
            load4(w[e], a.w.p + k);
        if (k < K)
            load4(b[e], in.d + k);
    }
    cluster_wait();
    grid_wait();
#pragma unroll
    for (u32 e = 0; e < EACH_; e++) {
        const u32 k = near_run(in, e);
        if (k < K)
            load4(v[e], row(a.x, t) + k);
    }
    add_pieces<EACH_>(b, in, t, K);
#pragma unroll
    for (u32 e = 0; e < EACH_; e++) {
        if (near_run(in, e) >= K)
            break;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            v[e][i] = v[e][i] + b[e][i];
            const float u = v[e][i] * w[e][i];
            s.top = max_u32(s.top, bits_of(u));
            s.square = fma_rn(u, u, s.square);
            s.sum = fma_rn(v[e][i], v[e][i], s.sum);
        }
    }
    near_send(lanes_of(s), base);
#pragma unroll
    for (u32 e = 0; e < EACH_; e++) {
        const u32 k = near_run(in, e);
        if (k < K)
            store4(row(a.z, t) + k, v[e]);
    }
    s = near_meets(base);
    const float by = 1.0f / sqrt_rn(s.sum / (float)K + a.eps);
    float d, inv;
    row_scale(bits_of(as_f32(s.top) * by), &d, &inv);
    if (near_warp() == 0 && tid() == 0)
        a.xd[t] = d;
    if (near_warp() == 0 && tid() == 0 && a.state)
        row_scale(bits_of(s.square * by * by * a.cap), &a.state[t], &none);
#pragma unroll
    for (u32 e = 0; e < EACH_; e++) {
        const u32 k = near_run(in, e);
        if (k >= K)
            break;
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            v[e][i] = v[e][i] * by * w[e][i];
        put_row16(a, t, k / 4, v[e], inv);
    }
}
KERNEL __launch_bounds__(BR_ND_ROW_THREADS / 2 / BR_ND_ROW_BLOCKS)
    br_nd_row16_pieces(const struct br_nd_joined j)
{
    row16_pieces<2>(j.a, j.in);
}
KERNEL __launch_bounds__(BR_ND_ROW_THREADS / 2 / BR_ND_ROW_BLOCKS)
    br_nd_row16_pieces_short(const struct br_nd_joined j)
{
    row16_pieces<1>(j.a, j.in);
}
