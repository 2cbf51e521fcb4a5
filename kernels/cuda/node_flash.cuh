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
 * Keys and values pass through shared memory. Up to 16 queries (few): a block
 * is a warp's, eight queries its columns, as many blocks at a time as there is
 * room for, then they are folded. More: a warp has 16 of them as rows, and all
 * blocks. Both are the same sums: a query's numbers depend on
 * its position alone. Lane (g, c) reads 16 bytes of key g: which dimension a
 * product stands at does not matter. Of values it reads dimensions 8 g .. + 7
 * of keys 2 c, 2 c + 1, 2 c + 8, 2 c + 9, and column n of step j is 8 n + j.
 * SPDX-License-Identifier: Apache-2.0 */

enum { KEYS = BR_ND_FLASH_KEYS };

struct flash_tile {
    u32 t, n;        /* rows */
    u32 pos;         /* of the first */
    u32 first, last; /* keys that any of them sees */
};

/* Two queries of a lane, g and g + 8 of a warp's 16. */
template <u32 HD>
struct flash_queries {
    u32 q[HD / 32][8];
    u32 lo[2], hi[2]; /* keys that they see */
};

/* Of the pairs of row and head from `from` on. */
template <u32 HD>
BR_DEV void
take_queries(const struct br_nd_args &a, const struct flash_tile &f, u32 from,
             flash_queries<HD> &s)
{
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3;

#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        const u32 m = from + g + 8 * h, i = m / a.per_kv;
        const bool in = i < f.n;
        const float *x = row(a.x, f.t + (in ? i : 0)) +
                         (bid() * a.per_kv + m % a.per_kv) * HD + c * 8;
        s.hi[h] = f.pos + i;
        s.lo[h] = a.window && s.hi[h] >= a.window ? s.hi[h] - a.window + 1 : 0;
        if (!in)
            s.lo[h] = 0xffffffff;
#pragma unroll
        for (u32 k = 0; k < HD / 32; k++)
#pragma unroll
            for (u32 j = 0; j < 4; j++)
                s.q[k][2 * j + h] =
                    pack_f16(x[k * 32 + 2 * j], x[k * 32 + 2 * j + 1]);
    }
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

/* A block of keys from base on: m, l of the lane's queries, and by take(d, o)
 * 64 columns of sums after 64. key(j, k): 16 bytes of key 8 j + g from
 * dimension 32 k + 8 c; value(k, i, d): key 16 k + 2 c + i % 2 + i / 2 * 8 from
 * 64 d + 8 g. */
template <u32 HD, class Key, class Value, class Fold, class Take>
BR_DEV void
flash_block(const struct br_nd_args &a, const flash_queries<HD> &q, u32 base,
            Key key, Value value, Fold fold, Take take)
{
    const u32 c = tid() & 3;
    const float none = as_f32(0xff800000);
    float s[KEYS / 8][4] = {}, sum[4] = {}, m[2] = {none, none};

#pragma unroll
    for (u32 j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (u32 k = 0; k < HD / 32; k++) {
            const u32x4 y = key(j, k);
            const u32 *p = q.q[k];
            mma_f16(s[j], {p[0], p[1], p[2], p[3]}, {y.x, y.y});
            mma_f16(s[j], {p[4], p[5], p[6], p[7]}, {y.z, y.w});
        }
    flash_caps<KEYS / 2>(a, s[0]);
    if (base + KEYS - 1 > min_u32(q.hi[0], q.hi[1]) ||
        base < max_u32(q.lo[0], q.lo[1])) /* not all are seen */
#pragma unroll
        for (u32 i = 0; i < KEYS / 2; i++) {
            const u32 at = base + i / 4 * 8 + 2 * c + i % 2, h = i / 2 % 2;
            if (at < q.lo[h] || at > q.hi[h])
                s[i / 4][i % 4] = none;
        }
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++)
        m[i / 2 % 2] = max_f32(m[i / 2 % 2], s[i / 4][i % 4]);
#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        m[h] = max_f32(m[h], shfl_xor_f(m[h], 1));
        m[h] = max_f32(m[h], shfl_xor_f(m[h], 2));
    }
    const struct flash_unit u = unit_of(a, m);
#pragma unroll
    for (u32 i = 0; i < KEYS / 2; i++)
        s[i / 4][i % 4] =
            ex2(fma_rn(s[i / 4][i % 4], u.by, -u.less[i / 2 % 2]));
    u32x4 p[KEYS / 16];
#pragma unroll
    for (u32 k = 0; k < KEYS / 16; k++) {
        p[k] = {pack_f16(s[2 * k][0], s[2 * k][1]),
                pack_f16(s[2 * k][2], s[2 * k][3]),
                pack_f16(s[2 * k + 1][0], s[2 * k + 1][1]),
                pack_f16(s[2 * k + 1][2], s[2 * k + 1][3])};
        mma_f16(sum, p[k], {ONES, ONES});
    }
    const float l[2] = {sum[0], sum[2]};
    fold(m, l);
#pragma unroll
    for (u32 d = 0; d < HD / 64; d++) {
        float o[8][4] = {};
#pragma unroll
        for (u32 k = 0; k < KEYS / 16; k++) {
            u32 v[4][4];
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                const u32x4 y = value(k, i, d);
                v[i][0] = y.x, v[i][1] = y.y;
                v[i][2] = y.z, v[i][3] = y.w;
            }
#pragma unroll
            for (u32 j = 0; j < 8; j++) {
                const u32 sel = j % 2 ? 0x7632 : 0x5410;
                mma_f16(o[j], p[k],
                        {prmt(v[0][j / 2], v[1][j / 2], sel),
                         prmt(v[2][j / 2], v[3][j / 2], sel)});
            }
        }
        take(d, o);
    }
}

/* A query's sums so far, and those of the next block, of which it sees keys. */
struct flash_fold {
    float old, now;
};
BR_DEV struct flash_fold
fold_of(float &M, float &L, float m, float l)
{
    struct flash_fold f = {1.0f, 0.0f};

    if (m > as_f32(0xff800000)) {
        const float m1 = max_f32(M, m);
        f.old = ex2((M - m1) * LOG2E);
        f.now = ex2((m - m1) * LOG2E);
        L = fma_rn(l, f.now, L * f.old);
        M = m1;
    }
    return f;
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
BR_DEV const u16 *
kept8(const struct flash_kept &k, u32 pos, u32 d)
{
    return k.pool + k.table[pos / 16] * k.page + pos % 16 * k.cols + d;
}

/* Where 16 bytes of a key or value are in shared memory, so that eight lanes
 * that read together meet no bank twice. */
template <u32 HD>
BR_DEV u32
key_at(u32 r, u32 chunk)
{
    return r * HD * 2 + (chunk ^ (r & 1) << 2) * 16;
}
template <u32 HD>
BR_DEV u32
value_at(u32 r, u32 chunk)
{
    return KEYS * HD * 2 + r * HD * 2 + (chunk ^ (r >> 1 & 3) << 1) * 16;
}

/* What a lane reads first of them: keys 8 j + g of even and odd k, values. */
struct flash_lane {
    u32 k0, k1, v;
};
template <u32 HD>
BR_DEV struct flash_lane
lane_of(void)
{
    const u32 g = tid() >> 2 & 7, c = tid() & 3;

    return {key_at<HD>(g, c), key_at<HD>(g, 4 + c), value_at<HD>(2 * c, g)};
}
template <u32 HD>
BR_DEV u32x4
lane_key(const struct flash_lane &at, u32 stage, u32 j, u32 k)
{
    return lds128(stage + (k % 2 ? at.k1 : at.k0) + k / 2 * 128 +
                  j * 8 * HD * 2);
}
template <u32 HD>
BR_DEV u32x4
lane_value(const struct flash_lane &at, u32 stage, u32 k, u32 i, u32 d)
{
    return lds128(stage + at.v + (16 * k + i % 2 + i / 2 * 8) * HD * 2 +
                  d * 128);
}

/* A block's there, by n threads of which this is thread `me`. */
template <u32 HD>
BR_DEV void
flash_bring(const struct flash_kept &k, const struct flash_kept &v,
            const struct flash_tile &f, u32 base, u32 to, u32 me, u32 n)
{
#pragma unroll 4
    for (u32 i = me; i < KEYS * HD / 8; i += n) {
        const u32 r = i / (HD / 8), d = i % (HD / 8);
        const u32 pos = within(base + r, f), at = bid() * HD + d * 8;
        copy16(to + key_at<HD>(r, d), kept8(k, pos, at));
        copy16(to + value_at<HD>(r, d), kept8(v, pos, at));
    }
}

/* Eight queries and a block of keys: keys are rows here, queries columns. The
 * sums are flash_block's, product by product. */
template <u32 HD>
BR_DEV void
flash_block8(const struct br_nd_args &a, const struct flash_tile &f,
             const u32 (&q)[HD / 16][2], u32 from, u32 base, u32 stage,
             float *top, float *sums)
{
    const u32 g = tid() >> 2 & 7, c = tid() & 3;
    const struct flash_lane at = lane_of<HD>();
    const float none = as_f32(0xff800000);
    float s[KEYS / 16][4] = {}, sum[4] = {}, m[2] = {none, none};
    u32 p[KEYS / 16][2];

#pragma unroll
    for (u32 t = 0; t < KEYS / 16; t++)
#pragma unroll
        for (u32 k = 0; k < HD / 32; k++) {
            const u32x4 x = lane_key<HD>(at, stage, 2 * t, k);
            const u32x4 y = lane_key<HD>(at, stage, 2 * t + 1, k);
            mma_f16(s[t], {x.x, y.x, x.y, y.y}, {q[2 * k][0], q[2 * k][1]});
            mma_f16(s[t], {x.z, y.z, x.w, y.w},
                    {q[2 * k + 1][0], q[2 * k + 1][1]});
        }
    flash_caps<KEYS / 4>(a, s[0]);
#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        const u32 i = (from + 2 * c + h) / a.per_kv, hi = f.pos + i;
        const u32 lo = i >= f.n                       ? 0xffffffff
                       : a.window && hi >= a.window ? hi - a.window + 1
                                                    : 0;
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
    if (g == 0)
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            top[2 * c + h] = m[h];
            sums[2 * c + h] = sum[h];
        }
    warp_sync(); /* keys have been read: sums in their place */
#pragma unroll
    for (u32 d = 0; d < HD / 64; d++) {
        float o[4][4] = {};
#pragma unroll
        for (u32 k = 0; k < KEYS / 16; k++) {
            u32 v[4][4];
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                const u32x4 y = lane_value<HD>(at, stage, k, i, d);
                v[i][0] = y.x, v[i][1] = y.y;
                v[i][2] = y.z, v[i][3] = y.w;
            }
#pragma unroll
            for (u32 j = 0; j < 4; j++)
                mma_f16(o[j],
                        {prmt(v[0][j], v[1][j], 0x5410),
                         prmt(v[0][j], v[1][j], 0x7632),
                         prmt(v[2][j], v[3][j], 0x5410),
                         prmt(v[2][j], v[3][j], 0x7632)},
                        {p[k][0], p[k][1]});
        }
#pragma unroll
        for (u32 j = 0; j < 4; j++)
#pragma unroll
            for (u32 i = 0; i < 4; i++)
                sts32(stage + ((2 * c + i % 2) * HD + d * 64 + 8 * g + 2 * j +
                               i / 2) *
                                  4,
                      as_u32(o[j][i]));
    }
}

/* Of the pairs of row and head from `from` on, eight. */
template <u32 HD>
BR_DEV void
flash_few(const struct br_nd_args &a, const struct flash_tile &f, u32 from)
{
    enum { STAGE = BR_ND_FLASH_STAGE(HD) };
    enum { MINE = 8 * HD / THREADS }; /* results of a thread */
    __shared__ float top[BR_ND_WARPS][8], sums[BR_ND_WARPS][8];
    const u32 WARPS = a.count; /* that have blocks of keys */
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3, w = tid() >> 5;
    const u32 per = a.per_kv, end = f.last / KEYS + 1;
    const u32 stage = smem_of(dyn_shared()) + w * STAGE;
    const struct flash_kept keys = kept_of(a, a.k, f.t);
    const struct flash_kept values = kept_of(a, a.v, f.t);
    const u32 mine = (from + g) / per; /* row of the lane's query */
    const float *x = row(a.x, f.t + (mine < f.n ? mine : 0)) +
                     (bid() * per + (from + g) % per) * HD + c * 8;
    float A[MINE] = {}, M[MINE], L[MINE] = {};
    u32 q[HD / 16][2];

#pragma unroll
    for (u32 i = 0; i < MINE; i++)
        M[i] = as_f32(0xff800000);
    for (u32 b0 = f.first / KEYS; b0 < end; b0 += WARPS) {
        const bool busy = w < WARPS && b0 + w < end;
        const u32 base = (b0 + w) * KEYS;

        if (busy)
            flash_bring<HD>(keys, values, f, base, stage, lane, 32);
        if (b0 == f.first / KEYS)
#pragma unroll
            for (u32 k = 0; k < HD / 8; k++)
                q[k / 2][k % 2] =
                    pack_f16(x[k / 4 * 32 + k % 4 * 2],
                             x[k / 4 * 32 + k % 4 * 2 + 1]);
        if (busy) {
            copies_wait();
            warp_sync();
            flash_block8<HD>(a, f, q, from, base, stage, top[w], sums[w]);
        }
        bar(0, THREADS);
#pragma unroll
        for (u32 i = 0; i < MINE; i++) {
            const u32 e = tid() + i * THREADS, r = e / HD;
            if ((from + r) / per < f.n)
                for (u32 k = 0; k < WARPS && b0 + k < end; k++) {
                    const struct flash_fold z =
                        fold_of(M[i], L[i], top[k][r], sums[k][r]);
                    const float v =
                        as_f32(lds32(stage + (k - w) * STAGE + e * 4));
                    A[i] = fma_rn(v, z.now, A[i] * z.old);
                }
        }
        bar(0, THREADS);
    }
#pragma unroll
    for (u32 i = 0; i < MINE; i++) {
        const u32 e = tid() + i * THREADS, r = from + e / HD;
        const u32 h = bid() * per + r % per, t = f.t + r / per;
        if (r / per >= f.n)
            continue;
        A[i] = A[i] * fold_sink(a, h, M[i], L[i]);
        const float v = A[i] / L[i];
        const u32 col = h * HD + e % HD;
        row(a.y, t)[col] = v;
        if (a.xq)
            *(u16 *)(a.xq + tile_at16(a.lows, t, col / 8) + col % 8 * 2) =
                (u16)f16_of(v);
    }
}

template <u32 HD>
BR_DEV void
flash_many(const struct br_nd_args &a, const struct flash_tile &f)
{
    enum { STAGE = BR_ND_FLASH_STAGE(HD) };
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3, w = tid() >> 5;
    const u32 shared = smem_of(dyn_shared()), end = f.last / KEYS + 1;
    const u32 from = w * 16; /* of the pairs */
    const struct flash_kept keys = kept_of(a, a.k, f.t);
    const struct flash_kept values = kept_of(a, a.v, f.t);
    float A[HD / 8][4] = {}, M[2], L[2] = {};
    const struct flash_lane at = lane_of<HD>();
    flash_queries<HD> q;
    u32 stage = shared;

    take_queries<HD>(a, f, from, q);
    M[0] = M[1] = as_f32(0xff800000);
    /* keys that the warp's queries see */
    const u32 i0 = from / a.per_kv, i1 = (from + 15) / a.per_kv;
    const u32 seen = f.pos + (i1 < f.n ? i1 : f.n - 1);
    const u32 since = a.window && f.pos + i0 >= a.window
                          ? f.pos + i0 - a.window + 1
                          : 0;

    flash_bring<HD>(keys, values, f, f.first / KEYS * KEYS, shared, tid(),
                    THREADS);
#pragma unroll 1
    for (u32 b = f.first / KEYS; b < end; b++) {
        const u32 base = b * KEYS;
        struct flash_fold z[2];

        copies_wait();
        bar(0, THREADS);
        if (b + 1 < end)
            flash_bring<HD>(keys, values, f, base + KEYS,
                            2 * shared + STAGE - stage, tid(), THREADS);
        if (i0 < f.n && base <= seen && base + KEYS > since)
            flash_block<HD>(
                a, q, base,
                [&](u32 j, u32 k) {
                    return lane_key<HD>(at, stage, j, k);
                },
                [&](u32 k, u32 i, u32 d) {
                    return lane_value<HD>(at, stage, k, i, d);
                },
                [&](const float *m, const float *l) {
#pragma unroll
                    for (u32 h = 0; h < 2; h++)
                        z[h] = fold_of(M[h], L[h], m[h], l[h]);
                },
                [&](u32 d, const float (&o)[8][4]) {
#pragma unroll
                    for (u32 j = 0; j < 8; j++)
#pragma unroll
                        for (u32 i = 0; i < 4; i++)
                            A[d * 8 + j][i] =
                                fma_rn(o[j][i], z[i / 2].now,
                                       A[d * 8 + j][i] * z[i / 2].old);
                });
        stage = 2 * shared + STAGE - stage;
    }
#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        const u32 m = from + g + 8 * h, i = m / a.per_kv, t = f.t + i;
        const u32 head = bid() * a.per_kv + m % a.per_kv;
        if (i >= f.n)
            continue;
        const float by = fold_sink(a, head, M[h], L[h]);
#pragma unroll
        for (u32 e = 0; e < HD / 32; e++) {
            const u32 col = head * HD + e / 2 * 64 + 8 * (2 * c + e % 2);
            float v[8];
#pragma unroll
            for (u32 j = 0; j < 8; j++)
                v[j] = A[e / 2 * 8 + j][2 * h + e % 2] * by / L[h];
            store8(row(a.y, t) + col, v);
            if (a.xq)
                *(u32x4 *)(a.xq + tile_at16(a.lows, t, col / 8)) =
                    pack8(v, 1.0f);
        }
    }
}

/* A block has a tile, if it is one of few queries or of many. */
template <u32 HD, bool FEW>
BR_DEV void
flash(const struct br_nd_args &a)
{
    struct flash_tile f;

    begin();
    f.t = a.s.tile[bid_y()].t;
    f.n = a.s.tile[bid_y()].n;
    if (f.n == 0 || (f.n * a.per_kv <= BR_ND_FLASH_FEW) != FEW)
        return;
    f.pos = (u32)a.s.position[f.t];
    f.first = a.window && f.pos >= a.window ? f.pos - a.window + 1 : 0;
    f.last = f.pos + f.n - 1;
    /* the product that follows reads f16 without a factor: these are means of
     * what is kept as f16 */
    if (a.xq && bid() == 0 && tid() < f.n)
        a.xd[f.t + tid()] = 1.0f;
    if (FEW)
#pragma unroll 1
        for (u32 from = 0; from < f.n * a.per_kv; from += 8)
            flash_few<HD>(a, f, from);
    else
        flash_many<HD>(a, f);
}
#define FLASH(name, HD, FEW, per_sm)                                  \
    KERNEL __launch_bounds__(THREADS, per_sm) br_nd_flash_##name(ARGS) \
    {                                                                 \
        flash<HD, FEW>(a);                                            \
    }
FLASH(64, 64, false, 2)
FLASH(128, 128, false, 1)
FLASH(few_64, 64, true, 2)
FLASH(few_128, 128, true, 2)
