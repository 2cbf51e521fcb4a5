/* node_tiles.cuh - products of F16 and BF16 weights by wgmma, weights as rows,
 * tokens as columns.
 *
 *   number   f16 times a power of two of its row (weight row, token), chosen
 *            so that the row's largest is in 2^15 .. 2^16 (a token's in 2^14 ..
 *            2^15). BF16 weights are kept to 2^-40 of the row's largest,
 *            activations have 11 bits.
 *   memory   eight rows x 64 columns are 1 KiB, as wgmma reads them from
 *            shared memory; [n_in / 64][rows / 8] of those, so that any
 *            number of rows, 64 columns of each, is one bulk copy
 *   block    128 weight rows x N tokens: two groups of four warps with 64 rows
 *            each, and a warp that copies. It asks for weights before the
 *            launch ahead of it has ended.
 *   sum      a matrix's columns are cut into `segs` pieces, by its shape alone
 *            (cuda_plan.c); each is a sum from zero in the order of the tensor
 *            core, pieces are added ascending. Few tokens: a block a piece, the
 *            last to arrive adds. Many: a block has all of them.
 *
 *   glu      of gate and up, rows of both in turns: silu(gate) * up, as what the
 *            next product reads; the factor was known when the row was made
 *
 * So a token's bits depend on nothing beside it.
 * SPDX-License-Identifier: Apache-2.0 */

/* Weights x.p of kind m.kind to rows a.off .. of tiles q; a warp a row. pitch:
 * eight rows, then eight places for another matrix's. sums: of each row's
 * squares, or NULL. */
KERNEL
br_nd_tile(ARGS)
{
    const u32 lane = tid() & 31, r = bid() * BR_ND_WARPS + (tid() >> 5);
    const u32 K = a.m.n_in;
    const u64 from = (u64)r * K;
    u32 top = 0;
    float d, inv;

    if (r >= a.m.n_out)
        return;
    for (u32 k = lane; k < K; k += 32)
        top = max_u32(top, bits_of(a.m.kind == BR_ND_F16
                                       ? weight<BR_ND_F16>(a.m.q, from + k)
                                       : weight<BR_ND_BF16>(a.m.q, from + k)));
    for (u32 m = 16; m; m >>= 1)
        top = max_u32(top, shfl_xor(top, m));
    row_scale(top, &d, &inv);
    d = d * 0.5f, inv = inv * 2.0f; /* 11 bits are never rounded up to 2^16 */
    const u32 to = a.off + r + (a.pitch ? r / 8 * 8 : 0);
    float squares = 0.0f;
    if (lane == 0)
        a.xd[to] = d;
    for (u32 c = lane; c < K / 8; c += 32) {
        float x[8];
#pragma unroll
        for (u32 i = 0; i < 8; i++)
            x[i] = a.m.kind == BR_ND_F16
                       ? weight<BR_ND_F16>(a.m.q, from + c * 8 + i)
                       : weight<BR_ND_BF16>(a.m.q, from + c * 8 + i);
        *(u32x4 *)(a.xq + tile_at16(a.lows, to, c)) = pack8(x, inv);
#pragma unroll
        for (u32 i = 0; i < 8; i++)
            squares = fma_rn(x[i], x[i], squares);
    }
    for (u32 m = 16; m; m >>= 1)
        squares = squares + shfl_xor_f(squares, m);
    if (a.sums && lane == 0)
        a.sums[r] = squares;
}

/* ---- products -------------------------------------------------------------- */

/* Of 64 columns of a tile's weights: as they are, packed, dense (node_dense.cuh). */
enum tile_form { FORM_TILES, FORM_PACKED, FORM_DENSE };

template <u32 FORM>
BR_DEV constexpr u32
form_place(void) /* tokens begin behind it */
{
    return FORM == FORM_TILES    ? (u32)W_BYTES
           : FORM == FORM_PACKED ? (u32)PACK_MOST
                                 : (u32)BR_ND_DENSE_PLACE;
}
template <u32 FORM>
BR_DEV u32
form_bytes(u32 kind)
{
    return FORM == FORM_TILES    ? (u32)W_BYTES
           : FORM == FORM_PACKED ? pack_bytes(kind)
                                 : (u32)BR_ND_DENSE_BYTES;
}
/* Weights of a stage as wgmma's operands, where they are not read from there: as soon as
 * the product of those before is done. */
template <u32 FORM>
BR_DEV void
form_read(const struct pack_form &form, const struct dense_lane &lane,
          u32 from, u32x4 (&in)[4])
{
    if constexpr (FORM == FORM_PACKED) {
        const struct pack_words p = pack_read(form, from);
        wg_wait<0>();
        pack_halves(form, p, in);
    } else if constexpr (FORM == FORM_DENSE) {
        const struct dense_words p = dense_read(lane, from);
        wg_wait<0>();
        dense_halves(lane, p, from, in);
    }
}

/* Which of the outputs the tile belongs to. */
BR_DEV u32
part_of_tile(const struct br_nd_args &a, u32 tile)
{
    return tile < a.part_end[0] ? 0 : tile < a.part_end[1] ? 1 : 2;
}

/* Factors: of a lane's two rows of weights, of tokens from the first of a tile
 * on, of those in the next product. */
struct tile_d {
    float w[2];
    const float *x, *to;
};
BR_DEV struct tile_d
factors_of(const struct br_nd_args &a, u32 tile, u32 t0)
{
    const u32 r = tile * TILE_ROWS + (tid() >> 5) * 16 + ((tid() & 31) >> 2);

    return {{a.m.d[r], a.m.d[r + 8]}, a.xd + t0, a.state + t0};
}
/* Tokens' to shared memory, before they are waited for; the first N threads. */
template <u32 N>
BR_DEV void
factors_near(struct tile_d &f, bool next)
{
    __shared__ float x[N], to[N];

    if (tid() < N) {
        x[tid()] = f.x[tid()];
        if (next)
            to[tid()] = f.to[tid()];
    }
    f.x = x;
    f.to = to;
    bar(1, TILE_ROWS * 2);
}

/* silu(gate) * up, where rows of both alternate, as f16: rows 64 tile .. of what
 * the next product reads. A warp's eight rows and eight tokens change places. */
template <u32 N>
BR_DEV void
put_glu(const struct br_nd_args &a, const float (&all)[N / 2], u32 tile, u32 t0,
        const struct tile_d &f)
{
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3, w = tid() >> 5;
    const float wg = f.w[0], wu = f.w[1];
    const float *d = f.x + c * 2, *to = f.to + c * 2;
    u8 *out = (u8 *)a.z.p + tile_at16(a.lows, t0 + g, tile * 8 + w) + c * 4;

#pragma unroll
    for (u32 j = 0; j < N / 8; j++) {
        float v[2];
#pragma unroll
        for (u32 i = 0; i < 2; i++) /* divided by a power of two */
            v[i] = fast_glu(all[j * 4 + i] * d[j * 8 + i] * wg,
                            all[j * 4 + 2 + i] * d[j * 8 + i] * wu) *
                   as_f32((254u << 23) - as_u32(to[j * 8 + i]));
        const u32 both = transposed(pack_f16(v[0], v[1]));
        if (t0 + j * 8 + g < a.n_rows)
            *(u32 *)(out + j * ATOM) = both;
    }
}

template <u32 N>
BR_DEV void
put_tile(const struct br_nd_args &a, const float (&all)[N / 2], u32 tile, u32 t0,
         const struct tile_d &f)
{
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3;
    const u32 part = a.pitch ? 0 : part_of_tile(a, tile);
    const u32 r = tile * TILE_ROWS + (tid() >> 5) * 16 + g;
    const u32 first = part ? a.part_end[part - 1] * TILE_ROWS : 0;
    float *y[2] = {part == 0   ? a.y.p
                   : part == 1 ? a.part[0].p
                               : a.part[1].p};
    u32 n[2] = {r - first, r - first + 8};
    const u32 cols = part == 0   ? a.y.cols
                     : part == 1 ? a.part[0].cols
                                 : a.part[1].cols;
    const u32 stride = part == 0   ? a.y.stride
                       : part == 1 ? a.part[0].stride
                                   : a.part[1].stride;

    if (a.z.p) {
        put_glu<N>(a, all, tile, t0, f);
        return;
    }
    y[1] = y[0];
    if (a.pitch) { /* of as many columns and as wide rows */
        n[0] = n[1] = r / 16 * 8 + g;
        y[1] = a.part[0].p;
    }
#pragma unroll
    for (u32 j = 0; j < N / 8; j++)
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            const u32 t = t0 + j * 8 + c * 2 + i % 2;
            if (n[i / 2] < cols && t < a.n_rows)
                y[i / 2][(u64)t * stride + n[i / 2]] =
                    all[j * 4 + i] * f.x[t - t0] * f.w[i / 2];
        }
}

/* The pieces of a tile, of which this block has one; true in the one that has
 * their sum. */
template <u32 N>
BR_DEV bool
meet_pieces(const struct br_nd_args &a, float (&all)[N / 2], u32 at, u32 seg)
{
    enum { THREADS_ = TILE_ROWS * 2, EACH_ = N / 2 * THREADS_ };
    __shared__ u32 before;
    float *p = a.sums + (u64)at * a.segs * EACH_ + tid();

#pragma unroll
    for (u32 i = 0; i < N / 2; i++)
        p[(u64)seg * EACH_ + i * THREADS_] = all[i];
    fence_gpu();
    bar(1, THREADS_);
    if (tid() == 0)
        before = atom_add32(&a.met[at], 1);
    bar(1, THREADS_);
    if (before + 1 < a.segs)
        return false;
    fence_gpu();
    if (tid() == 0)
        a.met[at] = 0;
#pragma unroll
    for (u32 i = 0; i < N / 2; i++)
        all[i] = p[i * THREADS_];
#pragma unroll 2
    for (u32 s = 1; s < a.segs; s++)
#pragma unroll
        for (u32 i = 0; i < N / 2; i++)
            all[i] = all[i] + p[(u64)s * EACH_ + i * THREADS_];
    return true;
}

/* The same where the blocks of a tile's pieces are a cluster: each adds, in
 * order, and writes its share of the numbers. */
template <u32 N>
BR_DEV void
meet_near(const struct br_nd_args &a, float (&sum)[N / 2], u32 tile, u32 t0,
          const struct tile_d &f)
{
    enum { THREADS_ = TILE_ROWS * 2 };
    const u32 mine = smem_of(dyn_shared()) + tid() * 4, n = a.segs;
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3;
    const u32 part = part_of_tile(a, tile), rank = cluster_rank();
    const u32 r = tile * TILE_ROWS + (tid() >> 5) * 16 + g;
    const u32 first = part ? a.part_end[part - 1] * TILE_ROWS : 0;
    const struct br_nd_rows y = part == 0   ? a.y
                                : part == 1 ? a.part[0]
                                            : a.part[1];

    bar(1, THREADS_); /* weights have been read: sums in their place */
#pragma unroll
    for (u32 i = 0; i < N / 2; i++)
        sts32(mine + i * THREADS_ * 4, as_u32(sum[i]));
    cluster_arrive();
    cluster_wait();
#pragma unroll 1
    for (u32 i = rank; i < N / 2; i += n) {
        const u32 t = t0 + i / 4 * 8 + c * 2 + i % 2;
        const u32 col = r - first + i / 2 % 2 * 8;
        float v[BR_ND_PIECES], all;
#pragma unroll
        for (u32 s = 0; s < BR_ND_PIECES; s++)
            if (s < n)
                v[s] = lds_far(shared_of(mine + i * THREADS_ * 4, s));
        all = v[0];
#pragma unroll
        for (u32 s = 1; s < BR_ND_PIECES; s++)
            if (s < n)
                all = all + v[s];
        if (col < y.cols && t < a.n_rows)
            y.p[(u64)t * y.stride + col] =
                all * f.x[t - t0] * (i / 2 % 2 ? f.w[1] : f.w[0]);
    }
    cluster_arrive(); /* nobody's memory goes while others read it */
    cluster_wait();
}

/* This block's piece of a tile, for who reads it. The last tile of a matrix has
 * rows that nobody reads: they have room, too (m.sub eights of rows a token). */
template <u32 N>
BR_DEV void
put_piece(const struct br_nd_args &a, const float (&sum)[N / 2], u32 tile,
          u32 seg)
{
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3;
    const u32 n = tile * TILE_ROWS + (tid() >> 5) * 16 + g;
    const u64 pitch = a.m.sub * 8;
    float *p = a.sums + seg * BR_ND_APART * pitch + n;

#pragma unroll
    for (u32 i = 0; i < N / 2; i++) {
        const u32 t = i / 4 * 8 + c * 2 + i % 2;
        if (t < a.n_rows)
            p[t * pitch + i / 2 % 2 * 8] = sum[i];
    }
}

/* A ring's barriers, behind STAGES places: weights and tokens are there; they have been
 * read; of the first round the weights, which are asked for before the launch ahead has
 * ended; that it has. */
template <u32 STAGES, u32 BYTES> struct ring_bars {
    enum { FLY = 2 };
    u32 full, empty, came, go;
    BR_MEMBER
    ring_bars(u32 base)
        : full(base + STAGES * BYTES), empty(full + STAGES * 8),
          came(empty + STAGES * 8), go(came + STAGES * 8)
    {
    }
    /* By one thread; readers: who arrive when they have read. */
    BR_MEMBER void
    init(u32 readers) const
    {
        for (u32 i = 0; i < STAGES; i++) {
            mbar_init(full + i * 8, 1);
            mbar_init(empty + i * 8, readers);
            mbar_init(came + i * 8, 1);
        }
        mbar_init(go, 1);
        fence_mbar_init();
    }
    /* Before stage i of the first round is asked for: FLY of them are on their way at
     * once, as long as nobody needs them. All at once, 11 MB of all blocks, they stood
     * before what the launch ahead reads of the L2, a norm's or attention's 1.2 us: 1B at
     * 1, 8, 16, 64 rows .704 .765 .810 1.154 ms a step, by two .688 .731 .767 1.148, by one
     * .743 .774 .781 1.172, by three .684 .732 .777 1.148 (H200). */
    BR_MEMBER void
    pace(u32 i) const
    {
        while (i >= FLY && !mbar_test(came + (i - FLY) * 8, 0) &&
               !mbar_test(go, 0))
            ;
    }
    BR_MEMBER void
    await(u32 s, u32 round) const
    {
        while (round == 0 && !mbar_try(came + s * 8, 0))
            ;
        while (!mbar_try(full + s * 8, round & 1))
            ;
    }
};

/* The warp that copies: 64 columns after 64 columns, into STAGES places. */
template <u32 N, u32 STAGES, u32 FORM>
BR_DEV void
bring(const struct br_nd_args &a, u32 tile, u32 t0, u32 kb, u32 end)
{
    enum { AT = form_place<FORM>(), BYTES = AT + N / 8 * ATOM };
    const u32 bytes = form_bytes<FORM>(a.m.kind);
    const u32 base = smem_of(dyn_shared());
    const ring_bars<STAGES, BYTES> bars(base);
    const u32 n = end - kb, ahead = n < STAGES ? n : STAGES;
    const u64 policy = policy_evict_first();
    const u64 step = (u64)(a.m.sub / 16) * bytes, xstep = (u64)a.lows * ATOM;
    const u8 *w = (const u8 *)a.m.q + kb * step + (u64)tile * bytes;
    const u8 *x = (const u8 *)a.xq + kb * xstep + (u64)t0 / 8 * ATOM;

    for (u32 i = 0; i < ahead; i++) {
        bars.pace(i);
        mbar_expect(bars.came + i * 8, bytes);
        bulk_copy(base + i * BYTES, w + i * step, bytes, bars.came + i * 8,
                  policy);
    }
    grid_wait();
    for (u32 i = 0; i < ahead; i++) {
        mbar_expect(bars.full + i * 8, N / 8 * ATOM);
        bulk_copy_kept(base + i * BYTES + AT, x + i * xstep, N / 8 * ATOM,
                       bars.full + i * 8);
    }
    for (u32 i = ahead, s = 0, round = 0; i < n; i++) {
        while (!mbar_try(bars.empty + s * 8, round & 1))
            ;
        mbar_expect(bars.full + s * 8, bytes + N / 8 * ATOM);
        bulk_copy(base + s * BYTES, w + i * step, bytes, bars.full + s * 8,
                  policy);
        bulk_copy_kept(base + s * BYTES + AT, x + i * xstep, N / 8 * ATOM,
                       bars.full + s * 8);
        if (++s == STAGES)
            s = 0, round++;
    }
}

/* Keys and values that the attention behind this product begins with: the first a.calls
 * pages of each row, a thread one, of the warp of each block that copies. It looks them up,
 * and calls them once `asks` has asked for all of the product: the memory has nothing else
 * to do while that ends and attention begins (H200, 1B at 64 rows: none 1.125 ms a step,
 * two 1.111, four 1.110, ten 1.114). */
template <class ASKS>
BR_DEV void
call_pages(const struct br_nd_args &a, const ASKS &asks)
{
    const u32 blocks = grid_dim() * (a.m.sub / 16), all = a.calls * a.n_rows;
    const u32 each = (all + blocks - 1) / blocks, lane = tid() & 31;
    const u32 i = (bid() + bid_y() * grid_dim()) * each + lane;
    const u16 *keys = nullptr, *values = nullptr;

    if (lane < each && i < all) {
        const struct br_nd_tile tile = a.s.tile[i % a.n_rows];
        const u32 *at = a.s.at + tile.t * a.s.n_groups, page = i / a.n_rows;
        if (tile.n && (page + 1) * 16 <= tile.old) {
            keys = (const u16 *)a.k.pool + a.k.first +
                   a.s.tables[at[a.k.group] + page] * a.k.page;
            values = (const u16 *)a.v.pool + a.v.first +
                     a.s.tables[at[a.v.group] + page] * a.v.page;
        }
    }
    if (lane == 0)
        asks();
    warp_sync();
    if (keys) {
        bulk_call(keys, 32 * a.k.cols);
        bulk_call(values, 32 * a.v.cols);
    }
}

/* A block: a tile's piece, or all its pieces, for N tokens. */
template <u32 N, u32 STAGES, bool FEW, u32 FORM, bool ALONE = false>
BR_DEV void
tile_product(const struct br_nd_args &a)
{
    enum { AT = form_place<FORM>(), BYTES = AT + N / 8 * ATOM };
    enum { WARPS = TILE_ROWS / 16, READ = FORM != FORM_TILES };
    const u32 base = smem_of(dyn_shared()), blocks = a.m.n_in / 64;
    const ring_bars<STAGES, BYTES> bars(base);
    const u32 seg = FEW ? bid() % a.segs : 0, tile = bid_y();
    const u32 tt = FEW ? bid() / a.segs : bid(), t0 = tt * N;
    const u32 first = seg * a.m.block;
    const u32 end = FEW && first + a.m.block < blocks ? first + a.m.block
                                                      : blocks;
    float sum[N / 2], all[N / 2];

    if (ALONE && is_spare(BR_ND_TILE_THREADS, WARPS * 32))
        return;
    if (tid() == 0)
        bars.init(READ ? WARPS * 32 : WARPS);
    bar(0, BR_ND_TILE_THREADS);
    grid_go();
    if (tid() >= WARPS * 32) {
        const auto asks = [&] {
            bring<N, STAGES, FORM>(a, tile, t0, first, end);
        };
        if (FEW && !ALONE && N == BR_ND_APART && a.calls)
            call_pages(a, asks);
        else if (tid() == WARPS * 32)
            asks();
        return;
    }
    const u32 mine = base + tid() / 128 * (W_BYTES / 2);
    const struct pack_form form = pack_form_of(a.m.kind);
    const bool arrives = READ || (tid() & 31) == 0; /* who reads, itself */
    struct tile_d f = factors_of(a, tile, t0);
    u32 s = 0, round = 0;
    const struct dense_lane lane = dense_lane_of();
    grid_wait();
    if (tid() == 0)
        mbar_arrive(bars.go, 1);
    factors_near<N>(f, a.z.p);
#pragma unroll 1
    for (u32 kb = first; kb < end;) {
        const u32 stop = FEW || kb + a.m.block > end ? end : kb + a.m.block;
        const bool begins = kb == first;
        u32 held = STAGES; /* the stage that may still be read */

#pragma unroll 1
        for (bool more = false; kb < stop; kb++, more = true) {
            const u64 w = wg_tile(mine + s * BYTES);
            const u64 x = wg_tile(base + s * BYTES + AT);
            u32x4 in[4]; /* weights of the operands, which nobody reads now */
            bars.await(s, round);
            form_read<FORM>(form, lane, base + s * BYTES, in);
            wg_begin();
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                tile_mma<READ>(sum, in[k], w + 2 * k, x + 2 * k, more || k);
            wg_commit();
            if (!READ)
                wg_wait<1>();
            if (held < STAGES && arrives)
                mbar_arrive(bars.empty + held * 8, 1);
            held = s;
            if (++s == STAGES)
                s = 0, round++;
        }
        wg_wait<0>();
        if (arrives)
            mbar_arrive(bars.empty + held * 8, 1);
        if (!FEW)
#pragma unroll
            for (u32 i = 0; i < N / 2; i++)
                all[i] = begins ? sum[i] : all[i] + sum[i];
    }
    if (FEW && N <= BR_ND_APART && a.op == BR_ND_MEET_READERS)
        put_piece<N>(a, sum, tile, seg);
    else if (FEW && !ALONE && a.op == BR_ND_MEET_NEAR)
        meet_near<N>(a, sum, tile, t0, f);
    else if (!FEW)
        put_tile<N>(a, all, tile, t0, f);
    else if (a.segs == 1 ||
             meet_pieces<N>(a, sum, tile * (grid_dim() / a.segs) + tt, seg))
        put_tile<N>(a, sum, tile, t0, f);
    if (ALONE)
        let_spare_go(BR_ND_TILE_THREADS, WARPS * 32);
}

#define PRODUCT(name, N, STAGES, FEW, per_sm)                    \
    KERNEL __launch_bounds__(BR_ND_TILE_THREADS, per_sm)               \
        br_nd_tiles_##name(ARGS)                                       \
    {                                                                  \
        static_assert(BR_ND_TILE_SHARED(N, STAGES) <= 227u * 1024,     \
                      "shared memory");                                \
        tile_product<N, STAGES, FEW, FORM_TILES>(a);                   \
    }
PRODUCT(8, 8, 6, true, 2)
PRODUCT(16, 16, 6, true, 2)
PRODUCT(32, 32, 5, true, 2)
PRODUCT(64, 64, 4, true, 2)
PRODUCT(128, 128, 3, true, 2)
PRODUCT(many, 128, 6, false, 1)

#define PACKED_PRODUCT(name, N, STAGES, FEW, per_sm)                   \
    KERNEL __launch_bounds__(BR_ND_TILE_THREADS, per_sm)               \
        br_nd_packed_##name(ARGS)                                      \
    {                                                                  \
        static_assert(BR_ND_PACK_SHARED(N, STAGES) <= 227u * 1024,     \
                      "shared memory");                                \
        tile_product<N, STAGES, FEW, FORM_PACKED>(a);                  \
    }
PACKED_PRODUCT(16, 16, 9, true, 2)
PACKED_PRODUCT(32, 32, 7, true, 2)
PACKED_PRODUCT(64, 64, 6, true, 2)
PACKED_PRODUCT(128, 128, 8, true, 1)
PACKED_PRODUCT(many, 128, 8, false, 1)

/* most: threads, of which the registers that ptxas may take follow. */
#define DENSE_PRODUCT(name, N, STAGES, ALONE, most, per_sm)            \
    KERNEL __launch_bounds__(most, per_sm)                             \
        br_nd_dense_##name(ARGS)                                       \
    {                                                                  \
        static_assert(BR_ND_DENSE_SHARED(N, STAGES) <= 113u * 1024,    \
                      "shared memory of two blocks");                  \
        tile_product<N, STAGES, true, FORM_DENSE, ALONE>(a);           \
    }
DENSE_PRODUCT(16, 16, 7, false, BR_ND_TILE_THREADS, 2)
DENSE_PRODUCT(32, 32, 6, false, BR_ND_TILE_THREADS, 2)
DENSE_PRODUCT(64, 64, 5, false, 384, 2)
DENSE_PRODUCT(alone_16, 16, 7, true, 896, 1)
DENSE_PRODUCT(alone_32, 32, 6, true, 768, 1)
DENSE_PRODUCT(alone_64, 64, 5, true, 768, 1)
