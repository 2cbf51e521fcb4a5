/* node_flash.cuh - attention on tensor cores over pages of f16.
 *
 * A block has one KV head and the query heads of it times consecutive rows of
 * one slot (the step's tiles). Keys come in blocks of 64 positions; a warp has
 * 16 queries and a block:
 *
 *   scores   16 queries x 64 keys     f16, f32 sums
 *   weights  exp(score - the query's maximum in this block), as f16
 *   sums     16 x head_dim = weights x values
 *   fold     docs/arithmetic.md's, blocks ascending; a query that sees no key
 *            of a block is left as it is
 *
 * Keys and values pass through shared memory, 64 dimensions of a key in 128
 * bytes, chunks of 16 at chunk ^ key % 8, so that ldmatrix meets no bank twice
 * and wgmma reads them. Up to 16 queries (few): a block is a warp's, eight
 * queries its columns, as many blocks at a time as there is room for, then they
 * are folded; the next keys are on their way as soon as these have been read.
 * Where rows are fewer than multiprocessors a cluster has the blocks in turns.
 * More: two groups of four warps have 64 as rows and all blocks, by wgmma; four
 * warps bring keys. Both are the same sums, step by step of 16: a query's
 * numbers depend on its position alone.
 * SPDX-License-Identifier: Apache-2.0 */

enum { KEYS = BR_ND_FLASH_KEYS };

struct flash_tile {
    u32 t, n;        /* rows */
    u32 pos;         /* of the first */
    u32 first, last; /* keys that any of them sees */
    u32 old;         /* those before it were there when the step began */
};

/* Two queries of a lane, g and g + 8 of a warp's 16. */
template <u32 HD>
struct flash_queries {
    u32x4 q[HD / 16];
    u32 lo[2], hi[2]; /* keys that they see */
};

/* Of the pairs of row and head from `from` on. */
template <u32 HD>
BR_DEV void
take_queries(const struct br_nd_args &a, const struct flash_tile &f, u32 from,
             flash_queries<HD> &s)
{
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3;
    const float *x[2];

#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        const u32 m = from + g + 8 * h, i = m / a.per_kv;
        const bool in = i < f.n;
        x[h] = row(a.x, f.t + (in ? i : 0)) +
               (bid() * a.per_kv + m % a.per_kv) * HD + c * 2;
        s.hi[h] = f.pos + i;
        s.lo[h] = a.window && s.hi[h] >= a.window ? s.hi[h] - a.window + 1 : 0;
        if (!in)
            s.lo[h] = 0xffffffff;
    }
#pragma unroll
    for (u32 k = 0; k < HD / 16; k++)
        s.q[k] = {pack_f16(x[0][16 * k], x[0][16 * k + 1]),
                  pack_f16(x[1][16 * k], x[1][16 * k + 1]),
                  pack_f16(x[0][16 * k + 8], x[0][16 * k + 9]),
                  pack_f16(x[1][16 * k + 8], x[1][16 * k + 9])};
}

enum { ONES = 0x3c003c00 }; /* of f16 */

/* cap tanh(score / cap), to 1e-6 */
template <u32 N>
BR_DEV void
flash_caps(const struct br_nd_args &a, float *s)
{
    const float twice = 2.0f * a.cap, by = 2.0f * LOG2E * a.scale / a.cap;

    if (a.cap > 0.0f)
#pragma unroll
        for (u32 i = 0; i < N; i++)
            s[i] = a.cap - twice * rcp(1.0f + ex2(s[i] * by));
}

/* A weight is exp2(s by - less); of a query that sees no key here it is zero.
 * m: of s so far, from here on of scores. */
struct flash_unit {
    float by, less[2];
};
BR_DEV struct flash_unit
unit_of(const struct br_nd_args &a, float (&m)[2])
{
    const float unit = a.cap > 0.0f ? 1.0f : a.scale, by = unit * LOG2E;
    const float none = as_f32(0xff800000);
    const struct flash_unit u = {by,
                                 {m[0] > none ? m[0] * by : 0.0f,
                                  m[1] > none ? m[1] * by : 0.0f}};

    m[0] = m[0] * unit;
    m[1] = m[1] * unit;
    return u;
}

BR_DEV u32
min_u32(u32 a, u32 b)
{
    return a < b ? a : b;
}

/* A query's sums so far, and those of the next block, of which it sees keys. */
struct flash_fold {
    float old, now;
};
BR_DEV struct flash_fold
fold_of(float &M, float &L, float m, float l)
{
    const bool seen = m > as_f32(0xff800000);
    const float m1 = max_f32(M, m), old = ex2((M - m1) * LOG2E),
                now = ex2((m - m1) * LOG2E), sum = fma_rn(l, now, L * old);

    M = m1; /* no branch: blocks are folded one after another */
    L = seen ? sum : L;
    return {seen ? old : 1.0f, seen ? now : 0.0f};
}

/* A sink of the head: one more score, with no value. */
BR_DEV float
fold_sink(const struct br_nd_args &a, u32 h, float M, float &L)
{
    if (!a.w.p)
        return 1.0f;
    const float m1 = max_f32(M, a.w.p[h]);
    const float old = ex2((M - m1) * LOG2E);
    L = fma_rn(L, old, ex2((a.w.p[h] - m1) * LOG2E));
    return old;
}

BR_DEV u32
within(u32 key, const struct flash_tile &f)
{
    return key > f.last ? f.last : key < f.first ? f.first : key;
}

/* Keys or values of a row's slot. */
struct flash_kept {
    const u16 *pool;
    const u32 *table;
    u64 page;
    u32 cols;
};
BR_DEV struct flash_kept
kept_of(const struct br_nd_args &a, const struct br_nd_cache &c, u32 t)
{
    return {(const u16 *)c.pool + c.first,
            a.s.tables + a.s.at[t * a.s.n_groups + c.group], c.page, c.cols};
}

/* Where 16 bytes of a key are in shared memory; values come after all keys. */
enum { HALF = KEYS * 128 }; /* of 64 dimensions */
BR_DEV u32
key_at(u32 r, u32 chunk)
{
    return chunk / 8 * HALF + r * 128 + ((chunk ^ r) & 7) * 16;
}

/* A block's keys (or values) of a KV head there, from a page of the block on, by N
 * threads of which this is thread `me`. */
template <u32 HD, u32 N>
BR_DEV void
flash_bring(const struct flash_kept &k, const struct flash_tile &f, u32 kv,
            u32 base, u32 to, u32 me, u32 page0 = 0)
{
    enum { RUNS = HD / 8, ROWS = N / RUNS, PAGES = KEYS / 16 };
    static_assert(N % RUNS == 0 && 16 % ROWS == 0, "a turn has rows of one page");
    const u32 d = me % RUNS;

    /* a warp alone has no registers to spare */
#pragma unroll N == 32 ? 1 : PAGES
    for (u32 p = page0; p < PAGES; p++) {
        const u16 *page = k.pool +
                          k.table[within(base + p * 16, f) / 16] * k.page +
                          kv * HD + d * 8;
#pragma unroll
        for (u32 i = 0; i < 16 / ROWS; i++) {
            const u32 r = p * 16 + i * ROWS + me / RUNS;
            copy16(to + key_at(r, d), page + within(base + r, f) % 16 * k.cols);
        }
    }
}

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

/* Number d of a query and n blocks more. */
template <u32 HD, bool FAR>
BR_DEV void
fold_blocks(float &A, float &M, float &L, const flash_sums<FAR> &sums, u32 d,
            u32 n)
{
    enum { AT_ONCE = FAR ? 8 : HD == 64 ? 6 : 2 }; /* FAR: 200 cycles each */

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

/* What it has first of all. Keys of earlier steps are there before the launch ahead
 * has ended: only pages with others are brought again behind the wait. */
template <u32 HD, class AFTER>
BR_DEV void
few_begin(const struct flash_tile &f, const struct flash_warp &z, u32 b,
          bool has, u32 first_stage, const AFTER &after)
{
    enum { VALUES = KEYS * HD * 2 };
    const u32 lane = tid() & 31;
    const bool early = min_u32(b + KEYS - 1, f.last) < f.old;

#pragma unroll 1
    for (u32 turn = 0; turn < 2; turn++) {
        if (has && (turn == 0 || !early)) {
            const u32 page = turn && f.old > b ? (f.old - b) / 16 : 0;

            copies_wait_but<0>();
            flash_bring<HD, 32>(z.keys, f, z.kv, b, z.stage, lane, page);
            copies_end();
            flash_bring<HD, 32>(z.values, f, z.kv, b, z.stage + VALUES, lane,
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
    enum { VALUES = KEYS * HD * 2 };
    const u32 lane = tid() & 31;
    const bool more = next <= f.last;
    u32 p[KEYS / 16][2];
    float m[2], sum[4] = {};

    copies_wait_but<1>();
    warp_sync();
    flash_scores8<HD>(a, f, q, from, base, z.stage, p, m, sum);
    warp_sync(); /* keys have been read */
    if (more)
        flash_bring<HD, 32>(z.keys, f, z.kv, next, z.stage, lane);
    copies_end();
    if (waits)
        cluster_wait();
    put_tops<HD>(sums, per, m, sum);
    copies_wait_but<1>();
    warp_sync();
    flash_values8<HD>(p, z.stage, sums, per);
    warp_sync();
    if (more)
        flash_bring<HD, 32>(z.values, f, z.kv, next, z.stage + VALUES, lane);
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
                fold_blocks<HD>(A[i], M[i], L[i], sums, e % HD,
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
        if (e < z.end)
            fold_blocks<HD>(z.A[i], z.M[i], z.L[i], sums, e % HD, n);
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
    const u32 sums = per * (HD + 4) * 4, each = SUMS + 2 * sums;
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

/* Four warps that bring keys and values to the others, block after block. A
 * stage is told of once the next one's copies are under way. */
template <u32 HD>
BR_DEV void
flash_feed(const struct br_nd_args &a, const struct flash_tile &f, u32 base,
           u32 full, u32 empty)
{
    enum { STAGE = BR_ND_FLASH_STAGE(HD), VALUES = KEYS * HD * 2 };
    enum { N = BR_ND_FLASH_THREADS - THREADS };
    const struct flash_kept keys = kept_of(a, a.k, f.t);
    const struct flash_kept values = kept_of(a, a.v, f.t);
    const u32 me = tid() - THREADS;
    u32 s = 0, round = 0, before = BR_ND_FLASH_STAGES;

#pragma unroll 1
    for (u32 b = f.first / KEYS; b <= f.last / KEYS; b++) {
        while (!mbar_try(empty + s * 8, ~round & 1))
            ;
        flash_bring<HD, N>(keys, f, bid(), b * KEYS, base + s * STAGE, me);
        flash_bring<HD, N>(values, f, bid(), b * KEYS,
                           base + s * STAGE + VALUES, me);
        copies_end();
        if (before < BR_ND_FLASH_STAGES) {
            copies_wait_but<1>();
            fence_shared();
            mbar_arrive(full + before * 8, 1);
        }
        before = s;
        if (++s == BR_ND_FLASH_STAGES)
            s = 0, round++;
    }
    copies_wait_but<0>();
    fence_shared();
    mbar_arrive(full + before * 8, 1);
}

/* Scores of 64 queries and the keys at `stage` become weights p; m and l are
 * those of the lane's two. */
template <u32 HD>
BR_DEV void
flash_scores(const struct br_nd_args &a, const flash_queries<HD> &q, u32 base,
             u32 stage, u32x4 (&p)[KEYS / 16], float (&m)[2], float (&l)[2])
{
    const u32 c = tid() & 3;
    const float none = as_f32(0xff800000);
    float s[KEYS / 2], sum[4] = {};

    wg_begin();
#pragma unroll
    for (u32 k = 0; k < HD / 16; k++)
        wg_mma64<false>(s, q.q[k],
                        wg_tile(stage + k / 4 * HALF) + 2 * (k % 4), k > 0);
    wg_commit();
    wg_wait<0>();
    flash_caps<KEYS / 2>(a, s);
    if (base + KEYS - 1 > min_u32(q.hi[0], q.hi[1]) ||
        base < max_u32(q.lo[0], q.lo[1])) /* not all are seen */
#pragma unroll
        for (u32 i = 0; i < KEYS / 2; i++) {
            const u32 at = base + i / 4 * 8 + 2 * c + i % 2, h = i / 2 % 2;
            if (at < q.lo[h] || at > q.hi[h])
                s[i] = none;
        }
    m[0] = m[1] = none;
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++)
        m[i / 2 % 2] = max_f32(m[i / 2 % 2], s[i]);
#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        m[h] = max_f32(m[h], shfl_xor_f(m[h], 1));
        m[h] = max_f32(m[h], shfl_xor_f(m[h], 2));
    }
    const struct flash_unit u = unit_of(a, m);
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++)
        s[i] = ex2(fma_rn(s[i], u.by, -u.less[i / 2 % 2]));
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++) {
        p[k] = {pack_f16(s[8 * k], s[8 * k + 1]),
                pack_f16(s[8 * k + 2], s[8 * k + 3]),
                pack_f16(s[8 * k + 4], s[8 * k + 5]),
                pack_f16(s[8 * k + 6], s[8 * k + 7])};
        mma_f16(sum, p[k], {ONES, ONES});
    }
    l[0] = sum[0];
    l[1] = sum[2];
}

/* What the lane's two queries have summed becomes outputs. */
template <u32 HD>
BR_DEV void
flash_put(const struct br_nd_args &a, const struct flash_tile &f, u32 from,
          const float (&A)[HD / 64][32], const float (&M)[2], float (&L)[2])
{
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3;

#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        const u32 m = from + g + 8 * h, i = m / a.per_kv, t = f.t + i;
        const u32 head = bid() * a.per_kv + m % a.per_kv;
        if (i >= f.n)
            continue;
        const float by = fold_sink(a, head, M[h], L[h]);
#pragma unroll
        for (u32 j = 0; j < HD / 8; j++) {
            const u32 col = head * HD + 8 * j + 2 * c;
            const float *o = &A[j / 8][j % 8 * 4 + 2 * h];
            const float v = o[0] * by / L[h], w = o[1] * by / L[h];
            if (a.y.p)
                *(u32x2 *)(row(a.y, t) + col) = {as_u32(v), as_u32(w)};
            if (a.xq)
                *(u32 *)(a.xq + tile_at16(a.lows, t, col / 8) + c * 4) =
                    pack_f16(v, w);
        }
    }
}

/* 64 queries of four warps, from `from` on this warp's. */
template <u32 HD>
BR_DEV void
flash_fold_all(const struct br_nd_args &a, const struct flash_tile &f,
               u32 shared, u32 full, u32 empty)
{
    enum { STAGE = BR_ND_FLASH_STAGE(HD), VALUES = KEYS * HD * 2 };
    const u32 w = tid() >> 5, from = w * 16, group = w / 4 * 64;
    float A[HD / 64][32] = {}, M[2], L[2] = {};
    flash_queries<HD> q;
    u32 s = 0, round = 0;

    take_queries<HD>(a, f, from, q);
    M[0] = M[1] = as_f32(0xff800000);
    /* keys that the group's queries see */
    const u32 i0 = group / a.per_kv, i1 = (group + 63) / a.per_kv;
    const u32 seen = f.pos + (i1 < f.n ? i1 : f.n - 1);
    const u32 since = a.window && f.pos + i0 >= a.window
                          ? f.pos + i0 - a.window + 1
                          : 0;

#pragma unroll 1
    for (u32 b = f.first / KEYS; b <= f.last / KEYS; b++) {
        const u32 base = b * KEYS, stage = shared + s * STAGE;

        while (!mbar_try(full + s * 8, round & 1))
            ;
        if (i0 < f.n && base <= seen && base + KEYS > since) {
            float o[HD / 64][32], m[2], l[2];
            struct flash_fold z[2];
            u32x4 p[KEYS / 16];

            flash_scores<HD>(a, q, base, stage, p, m, l);
            wg_begin();
#pragma unroll
            for (u32 k = 0; k < KEYS / 16; k++)
#pragma unroll
                for (u32 d = 0; d < HD / 64; d++)
                    wg_mma64<true>(o[d], p[k],
                                   wg_tile_by_rows(stage + VALUES + d * HALF) +
                                       128 * k,
                                   k > 0);
            wg_commit();
#pragma unroll
            for (u32 h = 0; h < 2; h++)
                z[h] = fold_of(M[h], L[h], m[h], l[h]);
            wg_wait<0>();
#pragma unroll
            for (u32 d = 0; d < HD / 64; d++)
#pragma unroll
                for (u32 i = 0; i < 32; i++)
                    A[d][i] = fma_rn(o[d][i], z[i / 2 % 2].now,
                                     A[d][i] * z[i / 2 % 2].old);
        }
        if ((tid() & 31) == 0)
            mbar_arrive(empty + s * 8, 1);
        if (++s == BR_ND_FLASH_STAGES)
            s = 0, round++;
    }
    flash_put<HD>(a, f, from, A, M, L);
}

template <u32 HD>
BR_DEV void
flash_many(const struct br_nd_args &a, const struct flash_tile &f)
{
    const u32 shared = smem_of(dyn_shared());
    const u32 full = shared + BR_ND_FLASH_STAGES * BR_ND_FLASH_STAGE(HD);
    const u32 empty = full + BR_ND_FLASH_STAGES * 8;

    if (tid() == 0) {
        for (u32 i = 0; i < BR_ND_FLASH_STAGES; i++) {
            mbar_init(full + i * 8, BR_ND_FLASH_THREADS - THREADS);
            mbar_init(empty + i * 8, BR_ND_WARPS);
        }
        fence_mbar_init();
    }
    bar(0, BR_ND_FLASH_THREADS);
    if (tid() >= THREADS) {
        SET_REGISTERS(dec, 40);
        flash_feed<HD>(a, f, shared, full, empty);
    } else {
        SET_REGISTERS(inc, 232);
        flash_fold_all<HD>(a, f, shared, full, empty);
    }
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

/* Of the block's rows; false: there are none. */
BR_DEV bool
find_tile(const struct br_nd_args &a, struct flash_tile &f)
{
    f.t = a.s.tile[bid_y()].t; /* what the host sent is there already */
    f.n = a.s.tile[bid_y()].n;
    f.old = a.s.tile[bid_y()].old;
    if (f.n == 0)
        return false;
    f.pos = (u32)a.s.position[f.t];
    f.first = a.window && f.pos >= a.window ? f.pos - a.window + 1 : 0;
    f.last = f.pos + f.n - 1;
    return true;
}

/* A block has a tile, if it is one of few queries or of many. What it writes as
 * f16 are means of what is kept as f16: no factor. */
template <u32 HD, bool FEW>
BR_DEV void
flash(const struct br_nd_args &a)
{
    struct flash_tile f;

    grid_go();
    if (!FEW)
        grid_wait();
    if (!find_tile(a, f) || (f.n * a.per_kv <= BR_ND_FLASH_FEW) != FEW) {
        grid_wait(); /* who waits for this launch waits for those before it */
        return;
    }
    if (FEW)
#pragma unroll 1
        for (u32 from = 0; from < f.n * a.per_kv; from += 8)
            flash_few<HD>(a, f, from, after_launch{});
    else
        flash_many<HD>(a, f);
}
#define FLASH(name, HD, FEW, threads, per_sm)                          \
    KERNEL __launch_bounds__(threads, per_sm) br_nd_flash_##name(ARGS) \
    {                                                                  \
        flash<HD, FEW>(a);                                             \
    }
FLASH(64, 64, false, BR_ND_FLASH_THREADS, 1)
FLASH(128, 128, false, BR_ND_FLASH_THREADS, 1)
FLASH(few_64, 64, true, THREADS, 2)
FLASH(few_128, 128, true, THREADS, 2)

/* br_nd_turn and few queries in one, of rows each of a slot of its own: nobody
 * else reads the row's key. */
template <u32 HD>
BR_DEV void
flash_turn(const struct br_nd_joined &j)
{
    struct flash_tile f;

    grid_go();
    if (find_tile(j.a, f))
        flash_few<HD>(j.a, f, 0, after_turn<HD>{j, f.t, bid(), true});
    else
        grid_wait();
}
#define FLASH_TURN(HD)                                             \
    KERNEL __launch_bounds__(THREADS, 2)                           \
        br_nd_flash_turn_##HD(const struct br_nd_joined j)         \
    {                                                              \
        flash_turn<HD>(j);                                         \
    }
FLASH_TURN(64)
FLASH_TURN(128)

/* The same where rows are fewer than multiprocessors: a cluster a KV head (a row of
 * 1B at depth 8192 has 8 of an H200's 132 without). */
template <u32 HD>
BR_DEV void
flash_turn_far(const struct br_nd_joined &j)
{
    const u32 n = cluster_blocks(), shift = n == 8 ? 3 : n == 4 ? 2 : 1;
    const u32 kv = bid() >> shift;
    struct flash_tile f;

    grid_go();
    if (find_tile(j.a, f)) {
        const u32 newest = f.last / KEYS - f.first / KEYS;

        flash_far<HD>(j.a, f, kv, shift,
                      after_turn<HD>{j, f.t, kv,
                                     newest % n == cluster_rank()});
    } else {
        grid_wait();
    }
}
#define FLASH_FAR(HD, per_sm)                                      \
    KERNEL __launch_bounds__(THREADS, per_sm)                      \
        br_nd_flash_far_##HD(const struct br_nd_joined j)          \
    {                                                              \
        flash_turn_far<HD>(j);                                     \
    }
FLASH_FAR(64, 2)
FLASH_FAR(128, 1)
