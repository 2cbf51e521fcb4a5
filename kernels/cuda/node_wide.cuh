/* node_wide.cuh - the products of node_tiles.cuh for many tokens: blocks that
 * stay and take tile after tile.
 *
 *   block    128 weight rows x N tokens: two groups of four warps with 64 rows
 *            each, and a warp that copies and never waits for an end of a tile,
 *            so that the next one's numbers are there when it begins. It hands
 *            its registers to the groups: 192 of a thread's are sums.
 *   order    tokens first: blocks that run at once share what they read
 *
 * SPDX-License-Identifier: Apache-2.0 */

enum { WIDE_THREADS = BR_ND_WIDE_THREADS, WIDE_WARPS = TILE_ROWS / 16 };

/* Tile i: of rows, and its first token. */
struct wide_at {
    u32 tile, t0;
};
template <u32 N>
BR_DEV struct wide_at
wide_tile(const struct br_nd_args &a, u32 i)
{
    const u32 across = (a.n_rows + N - 1) / N;

    return {i / across, i % across * N};
}
template <u32 N>
BR_DEV u32
wide_tiles(const struct br_nd_args &a)
{
    return a.count * ((a.n_rows + N - 1) / N);
}

/* The thread that copies. */
template <u32 N, u32 STAGES>
BR_DEV void
wide_bring(const struct br_nd_args &a, u32 base, u32 full, u32 empty)
{
    enum { BYTES = W_BYTES + N / 8 * ATOM };
    const u32 blocks = a.m.n_in / 64, n = wide_tiles<N>(a);
    const u64 step = (u64)a.m.sub * ATOM, xstep = (u64)a.lows * ATOM;
    u32 s = 0, round = 0;

    grid_wait();
#pragma unroll 1
    for (u32 i = bid(); i < n; i += grid_dim()) {
        const struct wide_at at = wide_tile<N>(a, i);
        const u8 *w = (const u8 *)a.m.q + at.tile * W_BYTES;
        const u8 *x = (const u8 *)a.xq + (u64)at.t0 / 8 * ATOM;

#pragma unroll 1
        for (u32 kb = 0; kb < blocks; kb++, w += step, x += xstep) {
            const u32 to = base + s * BYTES;

            while (!mbar_try(empty + s * 8, ~round & 1))
                ;
            mbar_expect(full + s * 8, BYTES);
            bulk_copy_kept(to, w, W_BYTES, full + s * 8);
            bulk_copy_kept(to + W_BYTES, x, N / 8 * ATOM, full + s * 8);
            if (++s == STAGES)
                s = 0, round++;
        }
    }
}

/* Eight warps with sums. */
template <u32 N, u32 STAGES>
BR_DEV void
wide_sums(const struct br_nd_args &a, u32 base, u32 full, u32 empty)
{
    enum { BYTES = W_BYTES + N / 8 * ATOM };
    const u32 blocks = a.m.n_in / 64, n = wide_tiles<N>(a);
    const u32 mine = base + tid() / 128 * (W_BYTES / 2);
    const u32 lane = tid() & 31;
    float sum[N / 2], all[N / 2];
    u32 s = 0, round = 0;

    grid_wait();
#pragma unroll 1
    for (u32 i = bid(); i < n; i += grid_dim()) {
#pragma unroll 1
        for (u32 kb = 0; kb < blocks;) {
            const u32 stop = kb + a.m.block < blocks ? kb + a.m.block : blocks;
            const bool begins = kb == 0;
            u32 held = STAGES; /* the stage that may still be read */

#pragma unroll 1
            for (bool more = false; kb < stop; kb++, more = true) {
                const u64 w = wg_tile(mine + s * BYTES);
                const u64 x = wg_tile(base + s * BYTES + W_BYTES);
                while (!mbar_try(full + s * 8, round & 1))
                    ;
                wg_begin();
#pragma unroll
                for (u32 k = 0; k < 4; k++)
                    wg_mma(sum, w + 2 * k, x + 2 * k, more || k);
                wg_commit();
                wg_wait<1>();
                if (held < STAGES && lane == 0)
                    mbar_arrive(empty + held * 8, 1);
                held = s;
                if (++s == STAGES)
                    s = 0, round++;
            }
            wg_wait<0>();
            if (lane == 0)
                mbar_arrive(empty + held * 8, 1);
#pragma unroll
            for (u32 i = 0; i < N / 2; i++)
                all[i] = begins ? sum[i] : all[i] + sum[i];
        }
        const struct wide_at at = wide_tile<N>(a, i);
        put_tile<N>(a, all, at.tile, at.t0, factors_of(a, at.tile, at.t0));
    }
}

template <u32 N, u32 STAGES>
BR_DEV void
wide_product(const struct br_nd_args &a)
{
    const u32 base = smem_of(dyn_shared());
    const u32 full = base + STAGES * (W_BYTES + N / 8 * ATOM);
    const u32 empty = full + STAGES * 8;

    if (tid() == 0) {
        for (u32 i = 0; i < STAGES; i++) {
            mbar_init(full + i * 8, 1);
            mbar_init(empty + i * 8, WIDE_WARPS);
        }
        fence_mbar_init();
    }
    bar(0, WIDE_THREADS);
    grid_go();
    if (tid() >= WIDE_WARPS * 32) {
        SET_REGISTERS(dec, 24);
        if (tid() == WIDE_WARPS * 32)
            wide_bring<N, STAGES>(a, base, full, empty);
    } else {
        SET_REGISTERS(inc, 240);
        wide_sums<N, STAGES>(a, base, full, empty);
    }
}

KERNEL __launch_bounds__(WIDE_THREADS, 1) br_nd_tiles_wide(ARGS)
{
    enum { STAGES = 5 };
    static_assert(BR_ND_TILE_SHARED(BR_ND_WIDE_TOKENS, STAGES) <= 227u * 1024,
                  "shared memory");
    wide_product<BR_ND_WIDE_TOKENS, STAGES>(a);
}
