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
 * and wgmma reads them. Two groups of four warps have 64 queries as rows and all
 * blocks, by wgmma; four warps bring keys. Up to 16 queries: node_few.cuh. Both
 * are the same sums, step by step of 16: a query's numbers depend on its
 * position alone.
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

/* Pages of the keys, then the values of the block at `base`, a lane each: all at once,
 * before there is room for what is on them. */
BR_DEV u32
pages_of(const u32 *keys, const u32 *values, const struct flash_tile &f, u32 base)
{
    enum { PAGES = KEYS / 16 };
    const u32 lane = tid() & 31;

    return (lane < PAGES ? keys
                         : values)[within(base + lane % PAGES * 16, f) / 16];
}

/* Rows of page p of the block at `base` to shared memory; x: where the page has thread
 * `me` of N's 16 bytes of a KV head. ONCE: no other block reads them. They would drive out
 * of the L2, into the memory, what products have just written there for a norm or a turn,
 * and the next layer's will over it: 1B at 64 rows 1.103 ms a step, not 1.078 (H200). */
template <u32 HD, u32 N, bool ONCE>
BR_DEV void
bring_page(const u16 *x, u32 cols, const struct flash_tile &f, u32 base, u32 p,
           u32 to, u32 me)
{
    enum { RUNS = HD / 8, ROWS = N / RUNS };

#pragma unroll
    for (u32 i = 0; i < 16 / ROWS; i++) {
        const u32 r = p * 16 + i * ROWS + me / RUNS;
        const u32 at = to + key_at(r, me % RUNS);
        const u16 *from = x + within(base + r, f) % 16 * cols;
        if (ONCE)
            copy16_once(at, from);
        else
            copy16(at, from);
    }
}

/* A block's keys (or values) of a KV head there, by N threads of which this is thread
 * `me`. */
template <u32 HD, u32 N>
BR_DEV void
flash_bring(const struct flash_kept &k, const struct flash_tile &f, u32 kv,
            u32 base, u32 to, u32 me)
{
    enum { RUNS = HD / 8, ROWS = N / RUNS, PAGES = KEYS / 16 };
    static_assert(N % RUNS == 0 && 16 % ROWS == 0, "a turn has rows of one page");
    const u32 d = me % RUNS;

#pragma unroll
    for (u32 p = 0; p < PAGES; p++)
        bring_page<HD, N, false>(
            k.pool + k.table[within(base + p * 16, f) / 16] * k.page + kv * HD +
                d * 8,
            k.cols, f, base, p, to, me);
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

/* A block has a tile, if it is one of many queries. What it writes as f16 are means of
 * what is kept as f16: no factor. */
template <u32 HD>
BR_DEV void
flash(const struct br_nd_args &a)
{
    struct flash_tile f;

    grid_go();
    grid_wait(); /* who waits for this launch waits for those before it */
    if (!find_tile(a, f) || f.n * a.per_kv <= BR_ND_FLASH_FEW) {
        grid_wait(); /* else ptxas 13.0 has registers of the rest spilled */
        return;
    }
    flash_many<HD>(a, f);
}
#define FLASH(HD)                                        \
    KERNEL __launch_bounds__(BR_ND_FLASH_THREADS, 1)     \
        br_nd_flash_##HD(ARGS)                           \
    {                                                    \
        flash<HD>(a);                                    \
    }
FLASH(64)
FLASH(128)
