/* node_few.cuh - attention of node_flash.cuh for up to 16 queries.
 *
 *   block    a block of 64 keys is a warp's, eight queries its columns; the next
 *            keys are on their way as soon as these have been read
 *   round    as many blocks of keys as warps have room for, then they are folded
 *   turn     of rows each of a slot of its own: the heads are turned here, the
 *            key is kept here (br_nd_turn and this in one launch)
 *   cluster  where such rows are fewer than multiprocessors, its blocks have
 *            blocks of keys in turns; each folds a part of the results, from
 *            all the others' shared memory
 *
 * SPDX-License-Identifier: Apache-2.0 */

/* The sums of a block of eight queries, HD of each and a gap: no bank twice. */
template <u32 HD>
BR_DEV u32
sums_at(u32 query, u32 d)
{
    return (query * (HD + 4) + d) * 4;
}

/* Eight queries and the keys at `stage`, which are rows here, queries columns:
 * weights p, and of the lane's queries 2 c, 2 c + 1 the top and sum. */
template <u32 HD>
BR_DEV void
flash_scores8(const struct br_nd_args &a, const struct flash_tile &f,
              const u32 (&q)[HD / 16][2], u32 from, u32 base, u32 stage,
              u32 (&p)[KEYS / 16][2], float (&m)[2], float (&sum)[4])
{
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3;
    const float none = as_f32(0xff800000);
    /* a lane's row of the four tiles of 16 keys x 16 dimensions */
    const u32 r = (lane >> 3 & 1) * 8 + (lane & 7), odd = lane >> 4;
    float s[KEYS / 16][4] = {};

#pragma unroll
    for (u32 t = 0; t < KEYS / 16; t++)
#pragma unroll
        for (u32 k = 0; k < HD / 16; k++)
            mma_f16(s[t], ldmatrix(stage + key_at(16 * t + r, 2 * k + odd)),
                    {q[k][0], q[k][1]});
    flash_caps<KEYS / 4>(a, s[0]);
#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        const u32 i = (from + 2 * c + h) / a.per_kv, hi = f.pos + i;
        const u32 lo = i >= f.n                       ? 0xffffffff
                       : a.window && hi >= a.window ? hi - a.window + 1
                                                    : 0;
        m[h] = none;
#pragma unroll
        for (u32 e = 0; e < KEYS / 8; e++) {
            float &v = s[e / 2][e % 2 * 2 + h];
            const u32 key = base + e * 8 + g;
            if (key < lo || key > hi)
                v = none;
            m[h] = max_f32(m[h], v);
        }
#pragma unroll
        for (u32 x = 4; x < 32; x *= 2)
            m[h] = max_f32(m[h], shfl_xor_f(m[h], x));
    }
    const struct flash_unit u = unit_of(a, m);
#pragma unroll
    for (u32 t = 0; t < KEYS / 16; t++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            s[t][i] = ex2(fma_rn(s[t][i], u.by, -u.less[i % 2]));
        p[t][0] = transposed(pack_f16(s[t][0], s[t][1]));
        p[t][1] = transposed(pack_f16(s[t][2], s[t][3]));
        mma_f16(sum, {ONES, ONES, ONES, ONES}, {p[t][0], p[t][1]});
    }
}

/* Sums of values, of the first `per` queries, to shared memory at `to`; values
 * are columns of the tiles. */
template <u32 HD>
BR_DEV void
flash_values8(const u32 (&p)[KEYS / 16][2], u32 stage, u32 to, u32 per)
{
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3;
    const u32 r = (lane >> 4) * 8 + (lane & 7), odd = lane >> 3 & 1;

#pragma unroll
    for (u32 d = 0; d < HD / 16; d++) {
        float o[4] = {};
#pragma unroll
        for (u32 k = 0; k < KEYS / 16; k++)
            mma_f16(o,
                    ldmatrix_t(stage + KEYS * HD * 2 +
                               key_at(16 * k + r, 2 * d + odd)),
                    {p[k][0], p[k][1]});
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            if (2 * c + i % 2 < per)
                sts32(to + sums_at<HD>(2 * c + i % 2, 16 * d + g + i / 2 * 8),
                      as_u32(o[i]));
    }
}

/* Number d of head h of row t, from its sums. */
template <u32 HD>
BR_DEV void
put_query(const struct br_nd_args &a, u32 t, u32 h, u32 d, float A, float M,
          float L)
{
    A = A * fold_sink(a, h, M, L);
    const float v = A / L;
    const u32 col = h * HD + d;
    if (a.y.p)
        row(a.y, t)[col] = v;
    if (a.xq)
        *(u16 *)(a.xq + tile_at16(a.lows, t, col / 8) + col % 8 * 2) =
            (u16)f16_of(v);
}

/* Where sums of blocks of keys lie: block i's at i * each. FAR: a cluster's blocks,
 * 1 << shift of them, have those in turns. */
template <bool FAR> struct flash_sums {
    u32 at, each, shift;
    BR_MEMBER u32
    of(u32 i) const
    {
        return FAR ? shared_of(at + (i >> shift) * each,
                               i & ((1u << shift) - 1))
                   : at + i * each;
    }
    BR_MEMBER float
    number(u32 from) const
    {
        return FAR ? lds_far(from) : as_f32(lds32(from));
    }
};

/* Number d of a query and n blocks more, AT_ONCE of which are on their way. */
template <u32 HD, u32 AT_ONCE, bool FAR>
BR_DEV void
fold_blocks(float &A, float &M, float &L, const flash_sums<FAR> &sums, u32 d,
            u32 n)
{
#pragma unroll 1
    for (u32 k = 0; k < n; k += AT_ONCE) {
        float v[AT_ONCE], m[AT_ONCE], l[AT_ONCE];
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) {
            const u32 from = sums.of(min_u32(k + j, n - 1));
            v[j] = sums.number(from + d * 4);
            m[j] = sums.number(from + HD * 4);
            l[j] = sums.number(from + HD * 4 + 4);
        }
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) {
            const bool in = k + j < n;
            const struct flash_fold f =
                fold_of(M, L, in ? m[j] : as_f32(0xff800000), l[j]);
            const float sum = fma_rn(v[j], f.now, A * f.old);
            A = in ? sum : A;
        }
    }
}

/* The largest score of a block and sum of weights, of a lane's two queries. */
template <u32 HD>
BR_DEV void
put_tops(u32 sums, u32 per, const float (&m)[2], const float (&sum)[4])
{
    const u32 lane = tid() & 31;

#pragma unroll
    for (u32 h = 0; h < 2; h++)
        if (lane < 4 && 2 * lane + h < per) {
            sts32(sums + sums_at<HD>(2 * lane + h, HD), as_u32(m[h]));
            sts32(sums + sums_at<HD>(2 * lane + h, HD + 1), as_u32(sum[h]));
        }
}

/* A warp of a block of few queries: where its keys come from and lie. */
struct flash_warp {
    struct flash_kept keys, values;
    u32 kv, stage;
};

/* One warp: keys or values at `base`, whose pages lane `first` and those after it
 * know, from page page0 on. It has no registers for all of them at once. */
template <u32 HD>
BR_DEV void
few_bring(const struct flash_kept &k, const struct flash_tile &f, u32 kv,
          u32 base, u32 to, u32 pages, u32 first, u32 page0 = 0)
{
    const u32 lane = tid() & 31;
    const u16 *pool = k.pool + kv * HD + lane % (HD / 8) * 8;

#pragma unroll 1
    for (u32 p = page0; p < KEYS / 16; p++)
        bring_page<HD, 32, true>(pool + shfl_from(pages, first + p) * k.page,
                                 k.cols, f, base, p, to, lane);
}

/* What it has first of all. Keys of earlier steps are there before the launch ahead
 * has ended: only pages with others are brought again behind the wait. */
template <u32 HD, class AFTER>
BR_DEV void
few_begin(const struct flash_tile &f, const struct flash_warp &z, u32 b,
          bool has, u32 first_stage, const AFTER &after)
{
    enum { VALUES = KEYS * HD * 2, PAGES = KEYS / 16 };
    const bool early = min_u32(b + KEYS - 1, f.last) < f.old;
    const u32 pages = has ? pages_of(z.keys.table, z.values.table, f, b) : 0;

#pragma unroll 1
    for (u32 turn = 0; turn < 2; turn++) {
        if (has && (turn == 0 || !early)) {
            const u32 page = turn && f.old > b ? (f.old - b) / 16 : 0;

            copies_wait_but<0>();
            few_bring<HD>(z.keys, f, z.kv, b, z.stage, pages, 0, page);
            copies_end();
            copies_wait_but<0>(); /* half of what is on its way: ring_bars.pace */
            few_bring<HD>(z.values, f, z.kv, b, z.stage + VALUES, pages, PAGES,
                          page);
            copies_end();
        }
        if (turn == 0)
            after.wait(first_stage);
    }
}

/* The lane's query of eight: of row x, or (NEAR) where after_turn left it. */
template <u32 HD, bool NEAR>
BR_DEV void
few_queries(const float *x, u32 near, u32 (&q)[HD / 16][2])
{
    const u32 c = tid() & 3;

#pragma unroll
    for (u32 k = 0; k < HD / 8; k++) {
        const u32 at = near + (8 * k + c * 2) * 4;
        q[k / 2][k % 2] =
            NEAR ? pack_f16(as_f32(lds32(at)), as_f32(lds32(at + 4)))
                 : pack_f16(x[8 * k], x[8 * k + 1]);
    }
    if (NEAR)
        bar(0, THREADS); /* sums come there */
}

/* The warp's block of keys at `base`: sums of the first `per` queries; the one at
 * `next` is asked for. waits: until the cluster has read what lies there. */
template <u32 HD>
BR_DEV void
few_block(const struct br_nd_args &a, const struct flash_tile &f,
          const struct flash_warp &z, const u32 (&q)[HD / 16][2], u32 from,
          u32 base, u32 next, u32 sums, u32 per, bool waits)
{
    enum { VALUES = KEYS * HD * 2, PAGES = KEYS / 16 };
    const bool more = next <= f.last;
    const u32 pages = more ? pages_of(z.keys.table, z.values.table, f, next) : 0;
    u32 p[KEYS / 16][2];
    float m[2], sum[4] = {};

    copies_wait_but<1>();
    warp_sync();
    flash_scores8<HD>(a, f, q, from, base, z.stage, p, m, sum);
    warp_sync(); /* keys have been read */
    if (more)
        few_bring<HD>(z.keys, f, z.kv, next, z.stage, pages, 0);
    copies_end();
    if (waits)
        cluster_wait();
    put_tops<HD>(sums, per, m, sum);
    copies_wait_but<1>();
    warp_sync();
    flash_values8<HD>(p, z.stage, sums, per);
    warp_sync();
    if (more)
        few_bring<HD>(z.values, f, z.kv, next, z.stage + VALUES, pages, PAGES);
    copies_end();
}

/* Of the pairs of row and head from `from` on, eight. */
template <u32 HD, class AFTER>
BR_DEV void
flash_few(const struct br_nd_args &a, const struct flash_tile &f, u32 from,
          const AFTER &after)
{
    enum { STAGE = BR_ND_FLASH_FEW_STAGE(HD), SUMS = BR_ND_FLASH_STAGE(HD) };
    enum { MINE = 8 * HD / THREADS }; /* results of a thread */
    const u32 WARPS = a.count;        /* that have blocks of keys */
    const u32 g = (tid() & 31) >> 2, w = tid() >> 5;
    const u32 per = a.per_kv, end = f.last / KEYS + 1, b1 = f.first / KEYS;
    const u32 first_stage = smem_of(dyn_shared());
    const struct flash_warp z = {kept_of(a, a.k, f.t), kept_of(a, a.v, f.t),
                                 bid(), first_stage + w * STAGE};
    const u32 mine = (from + g) / per; /* row of the lane's query */
    float A[MINE] = {}, M[MINE], L[MINE] = {};
    u32 q[HD / 16][2];

    few_begin<HD>(f, z, (b1 + w) * KEYS, w < WARPS && b1 + w < end, first_stage,
                  after);
    few_queries<HD, AFTER::NEAR>(row(a.x, f.t + (mine < f.n ? mine : 0)) +
                                     (bid() * per + (from + g) % per) * HD +
                                     (tid() & 3) * 2,
                                 first_stage + SUMS + sums_at<HD>(g % per, 0),
                                 q);
#pragma unroll
    for (u32 i = 0; i < MINE; i++)
        M[i] = as_f32(0xff800000);
#pragma unroll 1
    for (u32 b0 = b1; b0 < end; b0 += WARPS) {
        if (w < WARPS && b0 + w < end)
            few_block<HD>(a, f, z, q, from, (b0 + w) * KEYS,
                          (b0 + w + WARPS) * KEYS, z.stage + SUMS, 8, false);
        bar(0, THREADS);
#pragma unroll
        for (u32 i = 0; i < MINE; i++) {
            const u32 e = tid() + i * THREADS, r = e / HD;
            const flash_sums<false> sums = {
                first_stage + SUMS + sums_at<HD>(r, 0), STAGE, 0};
            if ((from + r) / per < f.n)
                fold_blocks<HD, HD == 64 ? 6 : 2>(A[i], M[i], L[i], sums,
                                                  e % HD,
                                                  min_u32(WARPS, end - b0));
        }
        bar(0, THREADS);
    }
#pragma unroll
    for (u32 i = 0; i < MINE; i++) {
        const u32 e = tid() + i * THREADS, r = from + e / HD;
        if (r / per < f.n)
            put_query<HD>(a, f.t + r / per, bid() * per + r % per, e % HD,
                          A[i], M[i], L[i]);
    }
}

/* A thread's numbers of a row's per x HD, which a cluster's blocks share out; warps
 * that have no blocks of keys first. */
template <u32 HD> struct far_fold {
    enum { MINE = 8 * HD / 2 / THREADS };
    float A[MINE], M[MINE], L[MINE];
    u32 first, end; /* of the thread, every THREADS-th; of the block's */
};
/* n blocks of keys more. */
template <u32 HD>
BR_DEV void
far_add(far_fold<HD> &z, flash_sums<true> sums, u32 n)
{
    const u32 at = sums.at;

#pragma unroll
    for (u32 i = 0; i < z.MINE; i++) {
        const u32 e = z.first + i * THREADS;
        sums.at = at + sums_at<HD>(e / HD, 0);
        if (e < z.end) /* 200 cycles each */
            fold_blocks<HD, 8>(z.A[i], z.M[i], z.L[i], sums, e % HD, n);
    }
}

/* One row by a cluster a KV head: round by round a block of keys a warp, ranks
 * before warps; a round is folded while the next one is computed, whose sums lie
 * beside its own. */
template <u32 HD, class AFTER>
BR_DEV void
flash_far(const struct br_nd_args &a, const struct flash_tile &f, u32 kv,
          u32 shift, const AFTER &after)
{
    enum { SUMS = BR_ND_FLASH_STAGE(HD) };
    const u32 w = tid() >> 5, per = a.per_kv, rank = cluster_rank();
    const u32 sums = per * (HD + 4) * 4, each = BR_ND_FLASH_FAR_STAGE(HD, per);
    const u32 end = f.last / KEYS + 1, b1 = f.first / KEYS;
    const u32 round = a.count << shift, results = per * HD >> shift;
    const u32 first_stage = smem_of(dyn_shared());
    const struct flash_warp z = {kept_of(a, a.k, f.t), kept_of(a, a.v, f.t), kv,
                                 first_stage + w * each};
    flash_sums<true> others = {first_stage + SUMS, each, shift};
    far_fold<HD> y = {};
    u32 q[HD / 16][2], b = b1 + (w << shift) + rank, n = 0;

    if (w >= a.count)
        b = end;
    few_begin<HD>(f, z, b * KEYS, b < end, first_stage, after);
    few_queries<HD, true>(
        nullptr, first_stage + SUMS + sums_at<HD>((tid() & 31) / 4 % per, 0),
        q);
    y.first = rank * results + (tid() ^ (THREADS - 32));
    y.end = (rank + 1) * results;
#pragma unroll
    for (u32 i = 0; i < y.MINE; i++)
        y.M[i] = as_f32(0xff800000);
#pragma unroll 1
    for (u32 b0 = b1, r = 0; b0 < end; b0 += round, b += round, r ^= 1) {
        const u32 mine = z.stage + SUMS + (r ? sums : 0);

        if (b < end)
            few_block<HD>(a, f, z, q, 0, b * KEYS, (b + round) * KEYS, mine,
                          per, b0 > b1);
        else if (b0 > b1)
            cluster_wait();
        if (b0 > b1) {
            others.at = first_stage + SUMS + (r ? 0 : sums);
            far_add<HD>(y, others, n);
        }
        cluster_arrive();
        n = min_u32(round, end - b0);
    }
    others.at = first_stage + SUMS + ((end - b1 - 1) / round % 2 ? sums : 0);
    cluster_wait();
    far_add<HD>(y, others, n);
    cluster_arrive();
#pragma unroll
    for (u32 i = 0; i < y.MINE; i++) {
        const u32 e = y.first + i * THREADS;
        if (e < y.end)
            put_query<HD>(a, f.t, kv * per + e / HD, e % HD, y.A[i], y.M[i],
                          y.L[i]);
    }
    cluster_wait(); /* others read what is here */
}

/* The launch ahead has ended, and the row's heads of this KV head are turned:
 * queries lie where sums of the first stage's values come, key and value are
 * kept. */
template <u32 HD> struct after_turn {
    enum { NEAR = true };
    const struct br_nd_joined &j;
    u32 t, kv;
    bool keeps; /* of a cluster the block that reads the key */
    BR_MEMBER void
    wait(u32 first_stage) const
    {
        const u32 i = tid() / 16, per = j.a.per_kv;
        const u32 h = i < per    ? kv * per + i
                      : i == per ? j.turn.heads + kv
                                 : j.turn.heads + j.turn.count + kv;

        turn_head<HD>(j.turn, t, h, i < (keeps ? per + 2 : per), j.in,
                      first_stage + BR_ND_FLASH_STAGE(HD) +
                          sums_at<HD>(i, 0));
        bar(0, THREADS);
    }
};

/* A block has a tile, if it is one of few queries. */
template <u32 HD>
BR_DEV void
flash_by_few(const struct br_nd_args &a)
{
    struct flash_tile f;

    grid_go();
    if (!find_tile(a, f) || f.n * a.per_kv > BR_ND_FLASH_FEW) {
        grid_wait(); /* who waits for this launch waits for those before it */
        return;
    }
#pragma unroll 1
    for (u32 from = 0; from < f.n * a.per_kv; from += 8)
        flash_few<HD>(a, f, from, after_launch{});
}
#define FLASH_FEW(HD)                                                    \
    KERNEL __launch_bounds__(THREADS, 2) br_nd_flash_few_##HD(ARGS)      \
    {                                                                    \
        flash_by_few<HD>(a);                                             \
    }
FLASH_FEW(64)
FLASH_FEW(128)

/* Nobody else reads the row's key. FAR: a cluster has the KV head (a row of 1B at depth
 * 8192 has 8 of an H200's 132 multiprocessors without). */
template <u32 HD, bool FAR>
BR_DEV void
flash_turn(const struct br_nd_joined &j)
{
    const u32 n = FAR ? cluster_blocks() : 1;
    const u32 shift = !FAR ? 0 : n == 8 ? 3 : n == 4 ? 2 : 1;
    const u32 kv = bid() >> shift;
    struct flash_tile f;

    grid_go();
    if (find_tile(j.a, f)) {
        const u32 newest = f.last / KEYS - f.first / KEYS;
        const after_turn<HD> turn = {j, f.t, kv,
                                     !FAR || newest % n == cluster_rank()};
        if (FAR)
            flash_far<HD>(j.a, f, kv, shift, turn);
        else
            flash_few<HD>(j.a, f, 0, turn);
    } else {
        grid_wait();
    }
}
/* most: threads; of more than work (is_spare) a block is alone. */
#define FLASH_TURN(name, HD, FAR, most, per_sm)                    \
    KERNEL __launch_bounds__(most, per_sm)                         \
        br_nd_flash_##name(const struct br_nd_joined j)            \
    {                                                              \
        const bool alone = most > (u32)THREADS;                    \
        if (alone && is_spare(THREADS, THREADS))                   \
            return;                                                \
        flash_turn<HD, FAR>(j);                                    \
        if (alone)                                                 \
            let_spare_go(THREADS, THREADS);                        \
    }
FLASH_TURN(turn_64, 64, false, THREADS, 2)
FLASH_TURN(turn_128, 128, false, THREADS, 2)
FLASH_TURN(alone_64, 64, false, 480, 1)
FLASH_TURN(far_64, 64, true, THREADS, 2)
FLASH_TURN(far_128, 128, true, THREADS, 1)
