/* node_stay.cuh - attention of node_flash.cuh for many rows, each of a slot of its
 * own: blocks that stay and take row after row.
 *
 *   item     a row and a KV head; block i has items i, i + blocks, ...
 *   block    twelve warps with a block of 64 keys each (so up to 768 keys are
 *            one round), and three that bring such blocks, item after item, into
 *            a ring, never waiting for an end of an item. A stage is one
 *            warp's, as a parity says nothing two rounds ahead
 *   fold     all twelve warps, blocks of keys ascending
 *   turn     three warps more turn the next items' heads and keep their keys, unless a
 *            launch of its own has (br_nd_turn): of heads of 64, whose blocks have
 *            registers for it (H200, 1B at 64 rows: 1.12 ms a step, not 1.16). Up to
 *            four items ahead: with two, an item's turn waited until the keys of the one
 *            before had been asked for, and all warps for it (1.134 ms, not 1.125)
 *
 * A block of flash_few has little on its way while it computes, and two on a
 * multiprocessor begin together: 27 us with the turn for 67 MB of keys (H200, heads
 * of 64), 24 here. Heads of 128, with half of the stages, gain where weights are dense
 * (8B, 64 rows: 5.55 ms a step, not 5.66). The sums are those of flash_few, number for number.
 *
 * SPDX-License-Identifier: Apache-2.0 */

enum {
    STAY_WARPS = BR_ND_STAY_WARPS,
    STAY_AHEAD = BR_ND_STAY_AHEAD,
    STAY_SUMS = STAY_WARPS * 32,     /* threads with sums */
    STAY_TURNS = BR_ND_STAY_THREADS, /* from here on heads are turned */
    STAY_ALL = STAY_TURNS + BR_ND_STAY_TURN * 32
};

/* Where what a block shares lies: stages, two barriers each; a round's sums; queries of
 * the next items, and that they are there and have been read. */
struct stay_mem {
    u32 ring, stages, full, empty, sums, queries, turned, heard;
};
template <u32 HD>
BR_DEV struct stay_mem
stay_mem_of(const struct br_nd_args &a)
{
    struct stay_mem z;

    z.ring = smem_of(dyn_shared());
    z.stages = a.segs;
    z.full = z.ring + z.stages * BR_ND_FLASH_STAGE(HD);
    z.empty = z.full + z.stages * 8;
    z.sums = z.empty + z.stages * 8;
    z.queries = z.sums + BR_ND_STAY_SUMS(HD, a.per_kv);
    z.turned = z.queries + BR_ND_STAY_QUERIES(HD, a.per_kv) - STAY_AHEAD * 16;
    z.heard = z.turned + STAY_AHEAD * 8;
    return z;
}
/* Item m of a block has one of STAY_AHEAD places for its queries. */
template <u32 HD>
BR_DEV u32
stay_queries_at(const struct br_nd_args &a, const struct stay_mem &z, u32 m)
{
    return z.queries + m % STAY_AHEAD * a.per_kv * (HD + 4) * 4;
}
BR_DEV void
stay_await_turn(const struct stay_mem &z, u32 m)
{
    while (!mbar_try(z.turned + m % STAY_AHEAD * 8, m / STAY_AHEAD & 1))
        ;
}

/* What a lane knows of one of the next 32 items. */
struct stay_row {
    u32 t, n, pos, old, keys, values; /* keys, values: where tables begin */
};
BR_DEV struct stay_row
stay_row_of(const struct br_nd_args &a, u32 item, u32 items)
{
    const u32 i = item < items ? item / a.count : 0;
    const u32 t = a.s.tile[i].t, at = t * a.s.n_groups;

    return {t,
            item < items ? a.s.tile[i].n : 0,
            (u32)a.s.position[t],
            a.s.tile[i].old,
            a.s.at[at + a.k.group],
            a.s.at[at + a.v.group]};
}
BR_DEV struct flash_tile
stay_tile(const struct br_nd_args &a, const struct stay_row &r, u32 lane)
{
    const u32 pos = shfl_from(r.pos, lane);

    return {shfl_from(r.t, lane), shfl_from(r.n, lane), pos,
            a.window && pos >= a.window ? pos - a.window + 1 : 0, pos,
            shfl_from(r.old, lane)};
}

/* A place in the ring: the stage, and how often the ring has been gone round. */
struct stay_place {
    u32 s, round;
};
BR_DEV struct stay_place
stay_after(struct stay_place p, u32 n, u32 stages)
{
    p.s += n;
    while (p.s >= stages)
        p.s -= stages, p.round++;
    return p;
}

/* The warp has seen item m's turn and needs nothing more of it. Item m + STAY_AHEAD has its
 * place, and a barrier's parity says nothing two phases on: so those that bring keys say
 * it, too, and none before it has seen the turn, or it would speak for the one before. */
BR_DEV void
stay_heard(const struct stay_mem &z, u32 m)
{
    warp_sync();
    if ((tid() & 31) == 0)
        mbar_arrive(z.heard + m % STAY_AHEAD * 8, 1);
}

/* One warp: all of a block's keys and values; pages: of pages_of. */
template <u32 HD>
BR_DEV void
stay_bring(const struct br_nd_args &a, u32 pages, const struct flash_tile &f,
           u32 kv, u32 base, u32 to)
{
    enum { PAGES = KEYS / 16 };
    const u32 lane = tid() & 31, d = lane % (HD / 8);

#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        const u16 *pool = (const u16 *)(h ? a.v.pool : a.k.pool) +
                          (h ? a.v.first : a.k.first) + kv * HD + d * 8;
        const u64 page = h ? a.v.page : a.k.page;
        const u32 cols = h ? a.v.cols : a.k.cols;
#pragma unroll
        for (u32 q = 0; q < PAGES; q++)
            bring_page<HD, 32, true>(pool + shfl_from(pages, h * PAGES + q) * page,
                                     cols, f, base, q, to + h * KEYS * HD * 2,
                                     lane);
    }
}

/* Warps that bring blocks in turns; those with a key of this step once it is there. */
template <u32 HD, bool TURN>
BR_DEV void
stay_feed(const struct br_nd_args &a, u32 items, const struct stay_mem &z)
{
    const u32 me = (tid() - STAY_SUMS) / 32;
    struct stay_place at = {0, 0};
    bool waited = false;
    u32 n = 0, m = 0; /* blocks, items so far */

#pragma unroll 1
    for (u32 i0 = bid(); i0 < items; i0 += 32 * grid_dim()) {
        const struct stay_row row =
            stay_row_of(a, i0 + (tid() & 31) * grid_dim(), items);
#pragma unroll 1
        for (u32 j = 0, i = i0; j < 32 && i < items;
             j++, i += grid_dim(), m++) {
            const struct flash_tile f = stay_tile(a, row, j);
            const u64 tables = (u64)shfl_from(row.values, j) << 32 |
                               shfl_from(row.keys, j);

#pragma unroll 1
            for (u32 b = f.first & ~(KEYS - 1u); f.n && b <= f.last;
                 b += KEYS, at = stay_after(at, 1, z.stages)) {
                if (n++ % BR_ND_STAY_FEED != me)
                    continue;
                if (min_u32(b + KEYS - 1, f.last) >= f.old) {
                    if (TURN)
                        stay_await_turn(z, m);
                    else if (!waited)
                        grid_wait();
                    waited = true;
                }
                const u32 pages =
                    pages_of(a.s.tables + (u32)tables,
                             a.s.tables + (u32)(tables >> 32), f, b);
                while (!mbar_try(z.empty + at.s * 8, ~at.round & 1))
                    ;
                stay_bring<HD>(a, pages, f, i % a.count, b,
                               z.ring + at.s * BR_ND_FLASH_STAGE(HD));
                copies_arrive(z.full + at.s * 8);
            }
            if (TURN && m > 0) { /* not of m: its turn would be waited for here */
                stay_await_turn(z, m - 1);
                stay_heard(z, m - 1);
            }
        }
    }
}

/* Warps that turn heads of one item after another, with two of them at once a warp. */
template <u32 HD>
BR_DEV void
stay_turn(const struct br_nd_joined &j, u32 items, const struct stay_mem &z)
{
    const u32 per = j.a.per_kv, mine = (tid() - STAY_TURNS) / 16;
    u32 m = 0;

#pragma unroll 1
    for (u32 i = bid(); i < items; i += grid_dim(), m++) {
        const struct br_nd_tile tile = j.a.s.tile[i / j.a.count];
        const u32 kv = i % j.a.count;
        const u32 queries = stay_queries_at<HD>(j.a, z, m);

        while (!mbar_try(z.heard + m % STAY_AHEAD * 8, ~(m / STAY_AHEAD) & 1))
            ;
#pragma unroll 1
        for (u32 h = mine; h - mine < per + 2; h += BR_ND_STAY_TURN * 2) {
            const u32 head = h < per    ? kv * per + h
                             : h == per ? j.turn.heads + kv
                                        : j.turn.heads + j.turn.count + kv;
            turn_head<HD>(j.turn, tile.t, head, h < per + 2 && tile.n, j.in,
                          queries + sums_at<HD>(h, 0));
        }
        mbar_arrive(z.turned + m % STAY_AHEAD * 8, 1);
    }
}

/* The lane's query of eight, of which there are per_kv; of item m. */
template <u32 HD, bool TURN>
BR_DEV void
stay_queries(const struct br_nd_args &a, const struct flash_tile &f, u32 kv,
             const struct stay_mem &z, u32 m, u32 (&q)[HD / 16][2])
{
    const u32 g = (tid() & 31) >> 2, c = tid() & 3, per = a.per_kv;

    if (TURN) {
        const u32 at =
            stay_queries_at<HD>(a, z, m) + sums_at<HD>(g % per, c * 2);

        stay_await_turn(z, m);
#pragma unroll
        for (u32 k = 0; k < HD / 8; k++)
            q[k / 2][k % 2] = pack_f16(as_f32(lds32(at + k * 32)),
                                       as_f32(lds32(at + k * 32 + 4)));
        stay_heard(z, m);
        return;
    }
    const float *x = row(a.x, f.t) + (kv * per + g % per) * HD + c * 2;
#pragma unroll
    for (u32 k = 0; k < HD / 8; k++)
        q[k / 2][k % 2] = pack_f16(x[8 * k], x[8 * k + 1]);
}

/* A thread's numbers of an item: every STAY_SUMS-th of per_kv x HD. */
template <u32 HD> struct stay_fold {
    enum { MINE = (8 * HD + STAY_SUMS - 1) / STAY_SUMS };
    float A[MINE], M[MINE], L[MINE];
};
/* n blocks more. */
template <u32 HD>
BR_DEV void
stay_add(const struct br_nd_args &a, struct stay_fold<HD> &z, u32 sums, u32 n)
{
    const u32 each = a.per_kv * (HD + 4) * 4;

#pragma unroll
    for (u32 i = 0; i < z.MINE; i++) {
        const u32 e = tid() + i * STAY_SUMS;
        if (e < a.per_kv * HD)
            fold_blocks<HD, HD == 64 ? 9 : 2>(
                z.A[i], z.M[i], z.L[i],
                flash_sums<false>{sums + sums_at<HD>(e / HD, 0), each, 0},
                e % HD, n);
    }
}
template <u32 HD>
BR_DEV void
stay_put(const struct br_nd_args &a, struct stay_fold<HD> &z, u32 t, u32 kv)
{
#pragma unroll
    for (u32 i = 0; i < z.MINE; i++) {
        const u32 e = tid() + i * STAY_SUMS, h = kv * a.per_kv + e / HD;
        if (e < a.per_kv * HD)
            put_query<HD>(a, t, h, e % HD, z.A[i], z.M[i], z.L[i]);
    }
}

/* This warp's block of the round: key block `base`, n-th of the round that
 * begins at `at`. Other warps' stages lie between: each phase of this one is
 * waited for, as a parity says nothing two rounds ahead. */
template <u32 HD>
BR_DEV void
stay_block(const struct br_nd_args &a, const struct flash_tile &f,
           const u32 (&q)[HD / 16][2], u32 base, u32 sums,
           const struct stay_mem &z, struct stay_place at)
{
    const u32 lane = tid() & 31, w = tid() >> 5;
    const struct stay_place to = stay_after(at, w, z.stages);
    const u32 stage = z.ring + to.s * BR_ND_FLASH_STAGE(HD);
    u32 p[KEYS / 16][2];
    float m[2], sum[4] = {};

    for (u32 r = to.s < at.s ? at.round + 1 : at.round; r <= to.round; r++)
        while (!mbar_try(z.full + to.s * 8, r & 1))
            ;
    flash_scores8<HD>(a, f, q, 0, base, stage, p, m, sum);
    flash_values8<HD>(p, stage, sums, a.per_kv);
    warp_sync();
    if (lane == 0)
        mbar_arrive(z.empty + to.s * 8, 1);
    put_tops<HD>(sums, a.per_kv, m, sum);
}

template <u32 HD, bool TURN>
BR_DEV void
stay_sums(const struct br_nd_args &a, u32 items, const struct stay_mem &z)
{
    const u32 w = tid() >> 5, mine = z.sums + w * a.per_kv * (HD + 4) * 4;
    struct stay_place at = {0, 0};
    u32 q[HD / 16][2], m = 0;

#pragma unroll 1
    for (u32 i0 = bid(); i0 < items; i0 += 32 * grid_dim()) {
        const struct stay_row row =
            stay_row_of(a, i0 + (tid() & 31) * grid_dim(), items);

        grid_wait();
        if (!TURN || m == 0)
            stay_queries<HD, TURN>(a, stay_tile(a, row, 0), i0 % a.count, z, m,
                                   q);
#pragma unroll 1
        for (u32 j = 0, i = i0; j < 32 && i < items;
             j++, i += grid_dim(), m++) {
            const struct flash_tile f = stay_tile(a, row, j);
            const struct flash_tile next = stay_tile(a, row, (j + 1) % 32);
            struct stay_fold<HD> fold;

#pragma unroll
            for (u32 k = 0; k < fold.MINE; k++)
                fold.A[k] = fold.L[k] = 0.0f, fold.M[k] = as_f32(0xff800000);
#pragma unroll 1
            for (u32 b = f.first / KEYS; f.n && b <= f.last / KEYS;
                 b += STAY_WARPS) {
                const u32 n = min_u32(f.last / KEYS + 1 - b, STAY_WARPS);

                if (w < n)
                    stay_block<HD>(a, f, q, (b + w) * KEYS, mine, z, at);
                at = stay_after(at, n, z.stages);
                if (b + STAY_WARPS > f.last / KEYS && /* while others end */
                    (!TURN || i + grid_dim() < items))
                    stay_queries<HD, TURN>(a, next, (i + grid_dim()) % a.count,
                                           z, m + 1, q);
                bar(1, STAY_SUMS);
                stay_add<HD>(a, fold, z.sums, n);
                bar(1, STAY_SUMS);
            }
            if (f.n)
                stay_put<HD>(a, fold, f.t, i % a.count);
        }
    }
}

/* a.count KV heads; a.segs stages. turn: the launch's, where heads are turned here. */
template <u32 HD, bool TURN>
BR_DEV void
flash_stay(const struct br_nd_args &a, const struct br_nd_joined *turn)
{
    const struct stay_mem z = stay_mem_of<HD>(a);
    const u32 items = a.n_rows * a.count;

    if (tid() == 0) {
        for (u32 i = 0; i < z.stages; i++) {
            mbar_init(z.full + i * 8, 32);
            mbar_init(z.empty + i * 8, 1);
        }
        for (u32 i = 0; i < STAY_AHEAD && TURN; i++) {
            mbar_init(z.turned + i * 8, BR_ND_STAY_TURN * 32);
            mbar_init(z.heard + i * 8, STAY_WARPS + BR_ND_STAY_FEED);
        }
        fence_mbar_init();
    }
    bar(0, TURN ? STAY_ALL : STAY_TURNS);
    grid_go();
    if (TURN && tid() >= STAY_TURNS)
        stay_turn<HD>(*turn, items, z);
    else if (tid() >= STAY_SUMS)
        stay_feed<HD, TURN>(a, items, z);
    else
        stay_sums<HD, TURN>(a, items, z);
}
KERNEL __launch_bounds__(BR_ND_STAY_THREADS, 1) br_nd_flash_stay_64(ARGS)
{
    flash_stay<64, false>(a, nullptr);
}
KERNEL __launch_bounds__(BR_ND_STAY_THREADS, 1) br_nd_flash_stay_128(ARGS)
{
    flash_stay<128, false>(a, nullptr);
}
KERNEL __launch_bounds__(STAY_ALL, 1)
    br_nd_flash_stay_turn_64(const struct br_nd_joined j)
{
    flash_stay<64, true>(j.a, &j);
}
