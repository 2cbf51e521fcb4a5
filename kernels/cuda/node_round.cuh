/* node_round.cuh - the products of node_tiles.cuh for a step's rows, of more tiles'
 * pieces than are at work at once: blocks that stay.
 *
 *   whole    a block has all pieces of as many tiles as each block can have
 *   alone    pieces of the tiles that are left, a block one each, ahead of those: they
 *            meet in the device's memory while others are on their way
 *   copies   a thread that never waits for an end of a piece
 *
 * Of gate and up, 192 tiles of two pieces on 132 multiprocessors (8B), blocks that came
 * and went all met, the last 6 us after all had been read (H200, 64 rows). Here 60
 * tiles' pieces meet, early, and each block has three pieces, or two.
 * SPDX-License-Identifier: Apache-2.0 */

/* A place in the ring: the stage, and how often the ring has been gone round. */
struct round_place {
    u32 s, round;
};

/* Eight warps: the sums of 64s of columns first .. end, as they come. */
template <u32 N, u32 STAGES, u32 FORM>
BR_DEV void
piece_sum(float (&sum)[N / 2], const struct dense_lane &lane, u32 base,
          u32 first, u32 end, struct round_place &at)
{
    enum { AT = form_place<FORM>(), BYTES = AT + N / 8 * ATOM };
    const u32 mine = base + tid() / 128 * (W_BYTES / 2);
    const ring_bars<STAGES, BYTES> bars(base);
    const bool arrives = FORM != FORM_TILES || (tid() & 31) == 0;
    u32 held = STAGES; /* the stage that may still be read */

#pragma unroll 1
    for (u32 kb = first; kb < end; kb++) {
        const u64 w = wg_tile(mine + at.s * BYTES);
        const u64 x = wg_tile(base + at.s * BYTES + AT);
        u32x4 in[4];

        bars.await(at.s, at.round);
        form_read<FORM>(pack_form{}, lane, base + at.s * BYTES, in);
        wg_begin();
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            tile_mma<FORM != FORM_TILES>(sum, in[k], w + 2 * k, x + 2 * k,
                                         kb > first || k);
        wg_commit();
        if (FORM == FORM_TILES)
            wg_wait<1>();
        if (held < STAGES && arrives)
            mbar_arrive(bars.empty + held * 8, 1);
        held = at.s;
        if (++at.s == STAGES)
            at.s = 0, at.round++;
    }
    wg_wait<0>();
    if (arrives)
        mbar_arrive(bars.empty + held * 8, 1);
}

/* Piece number q of a block. */
struct round_piece {
    u32 tile, seg;
    bool alone;
};
BR_DEV u32
round_left(const struct br_nd_args &a) /* pieces that are alone */
{
    return a.count % grid_dim() * a.segs;
}
BR_DEV u32
round_alone(const struct br_nd_args &a) /* of this block */
{
    const u32 left = round_left(a), n = grid_dim();

    return left > bid() ? (left - bid() + n - 1) / n : 0;
}
BR_DEV struct round_piece
round_piece_of(const struct br_nd_args &a, u32 q)
{
    const u32 alone = round_alone(a), n = grid_dim();

    if (q < alone)
        return {(bid() + q * n) / a.segs, (bid() + q * n) % a.segs, true};
    q -= alone;
    return {a.count % n + bid() + q / a.segs * n, q % a.segs, false};
}

/* 64 columns of a piece: where their weights and tokens are. */
struct round_at {
    u32 q, kb, end;
    const u8 *w, *x;
};
template <u32 FORM>
BR_DEV void
round_begin(const struct br_nd_args &a, struct round_at &p)
{
    const struct round_piece z = round_piece_of(a, p.q);

    p.kb = z.seg * a.m.block;
    p.end = min_u32(p.kb + a.m.block, a.m.n_in / 64);
    p.w = (const u8 *)a.m.q +
          (p.kb * (u64)(a.m.sub / 16) + z.tile) * form_bytes<FORM>(a.m.kind);
    p.x = (const u8 *)a.xq + p.kb * (u64)a.lows * ATOM;
}
template <u32 FORM>
BR_DEV void
round_next(const struct br_nd_args &a, struct round_at &p, u32 n)
{
    p.w += (u64)(a.m.sub / 16) * form_bytes<FORM>(a.m.kind);
    p.x += (u64)a.lows * ATOM;
    if (++p.kb < p.end)
        return;
    if (++p.q < n)
        round_begin<FORM>(a, p);
}

/* The thread that copies. */
template <u32 N, u32 STAGES, u32 FORM>
BR_DEV void
round_bring(const struct br_nd_args &a, u32 pieces)
{
    enum { AT = form_place<FORM>(), BYTES = AT + N / 8 * ATOM };
    const u32 base = smem_of(dyn_shared());
    const ring_bars<STAGES, BYTES> bars(base);
    const u32 bytes = form_bytes<FORM>(a.m.kind);
    const u64 policy = policy_evict_first();
    struct round_at w = {0}, x;
    u32 n = 0;

    if (pieces > 0)
        round_begin<FORM>(a, w);
    x = w;
    for (; n < STAGES && w.q < pieces; n++, round_next<FORM>(a, w, pieces)) {
        bars.pace(n);
        mbar_expect(bars.came + n * 8, bytes);
        bulk_copy(base + n * BYTES, w.w, bytes, bars.came + n * 8, policy);
    }
    grid_wait();
    for (u32 i = 0; i < n; i++, round_next<FORM>(a, x, pieces)) {
        mbar_expect(bars.full + i * 8, N / 8 * ATOM);
        bulk_copy_kept(base + i * BYTES + AT, x.x, N / 8 * ATOM,
                       bars.full + i * 8);
    }
    for (u32 s = 0, round = 0; w.q < pieces; round_next<FORM>(a, w, pieces)) {
        while (!mbar_try(bars.empty + s * 8, round & 1))
            ;
        mbar_expect(bars.full + s * 8, bytes + N / 8 * ATOM);
        bulk_copy(base + s * BYTES, w.w, bytes, bars.full + s * 8, policy);
        bulk_copy_kept(base + s * BYTES + AT, w.x, N / 8 * ATOM,
                       bars.full + s * 8);
        if (++s == STAGES)
            s = 0, round++;
    }
}

template <u32 N, u32 STAGES, u32 FORM>
BR_DEV void
round_product(const struct br_nd_args &a)
{
    enum { BYTES = form_place<FORM>() + N / 8 * ATOM, WARPS = TILE_ROWS / 16 };
    const u32 base = smem_of(dyn_shared()), blocks = a.m.n_in / 64;
    const ring_bars<STAGES, BYTES> bars(base);
    const u32 pieces = round_alone(a) + a.count / grid_dim() * a.segs;
    struct round_place at = {0, 0};
    float sum[N / 2], all[N / 2];

    if (tid() == 0)
        bars.init(FORM == FORM_TILES ? WARPS : WARPS * 32);
    bar(0, BR_ND_TILE_THREADS);
    grid_go();
    if (tid() >= WARPS * 32) {
        if (tid() == WARPS * 32)
            round_bring<N, STAGES, FORM>(a, pieces);
        return;
    }
    struct tile_d f = factors_of(a, 0, 0);
    const struct dense_lane lane = dense_lane_of();
    grid_wait();
    if (tid() == 0)
        mbar_arrive(bars.go, 1);
    factors_near<N>(f, a.z.p);
#pragma unroll 1
    for (u32 q = 0; q < pieces; q++) {
        const struct round_piece z = round_piece_of(a, q);
        const struct tile_d own = factors_of(a, z.tile, 0);
        const u32 first = z.seg * a.m.block;
        bool whole = z.seg + 1 == a.segs;

        f.w[0] = own.w[0], f.w[1] = own.w[1];
        piece_sum<N, STAGES, FORM>(sum, lane, base, first,
                                   min_u32(first + a.m.block, blocks), at);
        if (z.alone && a.segs > 1)
            whole = meet_pieces<N>(a, sum, z.tile, z.seg);
#pragma unroll
        for (u32 i = 0; i < N / 2; i++)
            all[i] = z.alone || z.seg == 0 ? sum[i] : all[i] + sum[i];
        if (whole)
            put_tile<N>(a, all, z.tile, 0, f);
    }
}
/* Registers for so many threads, 152 each: a norm's blocks are beside it. */
enum { ROUND_MOST = 416 };
#define ROUND(name, N, STAGES, FORM, shared)                        \
    KERNEL __launch_bounds__(ROUND_MOST, 1)                         \
        br_nd_round_##name(ARGS)                                    \
    {                                                               \
        static_assert(shared(N, STAGES) <= 227u * 1024,             \
                      "shared memory");                             \
        round_product<N, STAGES, FORM>(a);                          \
    }
ROUND(16, 16, 12, FORM_TILES, BR_ND_TILE_SHARED)
ROUND(32, 32, 10, FORM_TILES, BR_ND_TILE_SHARED)
ROUND(64, 64, 9, FORM_TILES, BR_ND_TILE_SHARED)
ROUND(dense_16, 16, 15, FORM_DENSE, BR_ND_DENSE_SHARED)
ROUND(dense_32, 32, 13, FORM_DENSE, BR_ND_DENSE_SHARED)
ROUND(dense_64, 64, 10, FORM_DENSE, BR_ND_DENSE_SHARED)
