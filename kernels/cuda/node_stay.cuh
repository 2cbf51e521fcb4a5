/* node_stay.cuh - attention of node_flash.cuh for many rows, each of a slot of its
 * own: blocks that stay and take row after row.
 *
 *   item     a row and a KV head; block i has items i, i + blocks, ...
 *   block    twelve warps with a block of 64 keys each (so up to 768 keys are
 *            one round), and three that bring such blocks, item after item, into
 *            a ring, never waiting for an end of an item. A stage is one
 *            warp's, as a parity says nothing two rounds ahead
 *   fold     all twelve warps, blocks of keys ascending
 *
 * A block of flash_few has little on its way while it computes, and two on a
 * multiprocessor begin together: 27 us with the turn for 67 MB of keys (H200, heads
 * of 64), 24 here. Heads of 128, with half of the stages, gain where weights are dense
 * (8B, 64 rows: 5.55 ms a step, not 5.66). The sums are those of flash_few, number for number.
 *
 * SPDX-License-Identifier: Apache-2.0 */

enum {
    STAY_WARPS = BR_ND_STAY_WARPS,
    STAY_SUMS = STAY_WARPS * 32 /* threads with sums */
};

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
            bring_page<HD, 32>(pool + shfl_from(pages, h * PAGES + q) * page, cols,
                               f, base, q, to + h * KEYS * HD * 2, lane);
    }
}

/* Warps that bring blocks in turns. */
template <u32 HD>
BR_DEV void
stay_feed(const struct br_nd_args &a, u32 items, u32 base, u32 full, u32 empty,
          u32 stages)
{
    const u32 me = (tid() - STAY_SUMS) / 32;
    struct stay_place at = {0, 0};
    bool waited = false;
    u32 n = 0; /* blocks so far */

#pragma unroll 1
    for (u32 i0 = bid(); i0 < items; i0 += 32 * grid_dim()) {
        const struct stay_row row =
            stay_row_of(a, i0 + (tid() & 31) * grid_dim(), items);
#pragma unroll 1
        for (u32 j = 0, i = i0; j < 32 && i < items; j++, i += grid_dim()) {
            const struct flash_tile f = stay_tile(a, row, j);
            const u64 tables = (u64)shfl_from(row.values, j) << 32 |
                               shfl_from(row.keys, j);

#pragma unroll 1
            for (u32 b = f.first & ~(KEYS - 1u); f.n && b <= f.last;
                 b += KEYS, at = stay_after(at, 1, stages)) {
                if (n++ % BR_ND_STAY_FEED != me)
                    continue;
                if (!waited && min_u32(b + KEYS - 1, f.last) >= f.old) {
                    grid_wait(); /* keys of this step */
                    waited = true;
                }
                const u32 pages =
                    pages_of(a.s.tables + (u32)tables,
                             a.s.tables + (u32)(tables >> 32), f, b);
                while (!mbar_try(empty + at.s * 8, ~at.round & 1))
                    ;
                stay_bring<HD>(a, pages, f, i % a.count, b,
                               base + at.s * BR_ND_FLASH_STAGE(HD));
                copies_arrive(full + at.s * 8);
            }
        }
    }
}

/* The lane's query of eight, of which there are per_kv. */
template <u32 HD>
BR_DEV void
stay_queries(const struct br_nd_args &a, const struct flash_tile &f, u32 kv,
             u32 (&q)[HD / 16][2])
{
    const u32 g = (tid() & 31) >> 2, c = tid() & 3, per = a.per_kv;
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
            fold_blocks<HD>(z.A[i], z.M[i], z.L[i],
                            flash_sums<false>{
                                sums + sums_at<HD>(e / HD, 0), each, 0},
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
           const u32 (&q)[HD / 16][2], u32 base, u32 ring, u32 sums, u32 full,
           u32 empty, u32 stages, struct stay_place at)
{
    const u32 lane = tid() & 31, w = tid() >> 5;
    const struct stay_place to = stay_after(at, w, stages);
    const u32 stage = ring + to.s * BR_ND_FLASH_STAGE(HD);
    u32 p[KEYS / 16][2];
    float m[2], sum[4] = {};

    for (u32 r = to.s < at.s ? at.round + 1 : at.round; r <= to.round; r++)
        while (!mbar_try(full + to.s * 8, r & 1))
            ;
    flash_scores8<HD>(a, f, q, 0, base, stage, p, m, sum);
    flash_values8<HD>(p, stage, sums, a.per_kv);
    warp_sync();
    if (lane == 0)
        mbar_arrive(empty + to.s * 8, 1);
    put_tops<HD>(sums, a.per_kv, m, sum);
}

template <u32 HD>
BR_DEV void
stay_sums(const struct br_nd_args &a, u32 items, u32 ring, u32 full, u32 empty,
          u32 stages)
{
    const u32 w = tid() >> 5, sums = empty + stages * 8;
    const u32 mine = sums + w * a.per_kv * (HD + 4) * 4;
    struct stay_place at = {0, 0};
    u32 q[HD / 16][2];

#pragma unroll 1
    for (u32 i0 = bid(); i0 < items; i0 += 32 * grid_dim()) {
        const struct stay_row row =
            stay_row_of(a, i0 + (tid() & 31) * grid_dim(), items);

        grid_wait();
        stay_queries<HD>(a, stay_tile(a, row, 0), i0 % a.count, q);
#pragma unroll 1
        for (u32 j = 0, i = i0; j < 32 && i < items; j++, i += grid_dim()) {
            const struct flash_tile f = stay_tile(a, row, j);
            const struct flash_tile next = stay_tile(a, row, (j + 1) % 32);
            struct stay_fold<HD> z;

#pragma unroll
            for (u32 k = 0; k < z.MINE; k++)
                z.A[k] = z.L[k] = 0.0f, z.M[k] = as_f32(0xff800000);
#pragma unroll 1
            for (u32 b = f.first / KEYS; f.n && b <= f.last / KEYS;
                 b += STAY_WARPS) {
                const u32 n = min_u32(f.last / KEYS + 1 - b, STAY_WARPS);

                if (w < n)
                    stay_block<HD>(a, f, q, (b + w) * KEYS, ring, mine, full,
                                   empty, stages, at);
                at = stay_after(at, n, stages);
                if (b + STAY_WARPS > f.last / KEYS) /* while others end */
                    stay_queries<HD>(a, next, (i + grid_dim()) % a.count, q);
                bar(1, STAY_SUMS);
                stay_add<HD>(a, z, sums, n);
                bar(1, STAY_SUMS);
            }
            if (f.n)
                stay_put<HD>(a, z, f.t, i % a.count);
        }
    }
}

/* a.count KV heads; a.segs stages. */
template <u32 HD>
BR_DEV void
flash_stay(const struct br_nd_args &a)
{
    const u32 ring = smem_of(dyn_shared()), stages = a.segs;
    const u32 full = ring + stages * BR_ND_FLASH_STAGE(HD);
    const u32 empty = full + stages * 8, items = a.n_rows * a.count;

    if (tid() == 0) {
        for (u32 i = 0; i < stages; i++) {
            mbar_init(full + i * 8, 32);
            mbar_init(empty + i * 8, 1);
        }
        fence_mbar_init();
    }
    bar(0, BR_ND_STAY_THREADS);
    grid_go();
    if (tid() >= STAY_SUMS)
        stay_feed<HD>(a, items, ring, full, empty, stages);
    else
        stay_sums<HD>(a, items, ring, full, empty, stages);
}
KERNEL __launch_bounds__(BR_ND_STAY_THREADS, 1) br_nd_flash_stay_64(ARGS)
{
    flash_stay<64>(a);
}
KERNEL __launch_bounds__(BR_ND_STAY_THREADS, 1) br_nd_flash_stay_128(ARGS)
{
    flash_stay<128>(a);
}
