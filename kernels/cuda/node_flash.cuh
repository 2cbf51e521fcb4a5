/* node_flash.cuh - attention on tensor cores over pages of f16.
 *
 * A block has one KV head and up to 16 queries: its query heads times
 * consecutive rows of one slot. Keys come in blocks of 256 positions; each of
 * the eight warps has 32 of them:
 *
 *   scores   16 queries x 32 keys     f16, f32 sums
 *   weights  exp(score - the query's maximum in this block), as f16
 *   sums     16 x head_dim = weights x values; eight warps' added in order
 *   fold     docs/arithmetic.md's; a query that sees no key of a block is left
 *            as it is
 *
 * A query's numbers depend on its position alone: not on what else is in the
 * tile or the step. Lane (g, c) reads 16 bytes of key g: which dimension a
 * product stands at does not matter. Of values it reads dimensions 8 g .. + 7
 * of keys 2 c, 2 c + 1, 2 c + 8, 2 c + 9, and column n of step j is 8 n + j.
 * SPDX-License-Identifier: Apache-2.0 */

struct flash_tile {
    u32 t, n;        /* rows */
    u32 first, last; /* keys that any of them sees */
};

/* Row t begins a tile: a slot's first row of the step, or one whose position
 * is a multiple of the rows of a tile. */
BR_DEV bool
tile_at(const struct br_nd_args &a, u32 t, u32 most, struct flash_tile *f)
{
    const i32 *slot = a.s.slot, *pos = a.s.position;
    const i32 p = pos[t];

    if (t > 0 && slot[t - 1] == slot[t] && pos[t - 1] + 1 == p &&
        (u32)p % most != 0)
        return false;
    f->t = t;
    f->n = 1;
    while (f->n < most && t + f->n < a.n_rows && slot[t + f->n] == slot[t] &&
           pos[t + f->n] == p + (i32)f->n && (u32)(p + (i32)f->n) % most != 0)
        f->n++;
    f->first = a.window && (u32)p >= a.window ? (u32)p - a.window + 1 : 0;
    f->last = (u32)p + f->n - 1;
    return true;
}

/* Sixteen bytes of a kept row: dimensions d .. d + 7 of position pos. */
BR_DEV u32x4
kept8(const struct br_nd_args &a, const struct br_nd_cache &c, u32 t, u32 pos,
      u32 d)
{
    return ld16((const u16 *)c.pool + place(a.s, c, t, pos) + d);
}

template <u32 HD>
BR_DEV void
flash(const struct br_nd_args &a)
{
    __shared__ float top[BR_ND_WARPS][16], sums[BR_ND_WARPS][16];
    enum { MINE = 16 * HD / THREADS }; /* results of a thread */
    float *part = (float *)dyn_shared(); /* [warp][16][HD] */
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3, w = tid() >> 5;
    const u32 kvh = bid(), per = a.per_kv;
    const float none = as_f32(0xff800000);
    float A[MINE], M[MINE], L[MINE];
    u32 q[HD / 32][8];
    struct flash_tile f;

    if (!tile_at(a, bid_y(), 16 / per, &f))
        return;
    const u32 pos = (u32)a.s.position[f.t];
    /* of this lane's two queries */
    u32 lo[2], hi[2];
#pragma unroll
    for (u32 h = 0; h < 2; h++) {
        const u32 m = g + 8 * h, i = m / per;
        const bool in = i < f.n;
        const float *x =
            row(a.x, f.t + (in ? i : 0)) + (kvh * per + m % per) * HD + c * 8;
        hi[h] = pos + i;
        lo[h] = a.window && hi[h] >= a.window ? hi[h] - a.window + 1 : 0;
        if (!in)
            lo[h] = 0xffffffff;
#pragma unroll
        for (u32 k = 0; k < HD / 32; k++)
#pragma unroll
            for (u32 j = 0; j < 4; j++)
                q[k][2 * j + h] =
                    pack_f16(x[k * 32 + 2 * j], x[k * 32 + 2 * j + 1]);
    }
#pragma unroll
    for (u32 i = 0; i < MINE; i++) {
        A[i] = L[i] = 0.0f;
        M[i] = none;
    }
    for (u32 b = f.first / BR_ND_BLOCK; b <= f.last / BR_ND_BLOCK; b++) {
        const u32 base = b * BR_ND_BLOCK + w * 32;
        float s[4][4] = {}, o[HD / 8][4] = {}, m[2] = {none, none}, l[2] = {};

        if (base <= f.last && base + 31 >= f.first) {
#pragma unroll
            for (u32 j = 0; j < 4; j++) {
                u32 key = base + 8 * j + g;
                key = key > f.last ? f.last : key < f.first ? f.first : key;
#pragma unroll
                for (u32 k = 0; k < HD / 32; k++) {
                    const u32x4 y =
                        kept8(a, a.k, f.t, key, kvh * HD + k * 32 + c * 8);
                    mma_f16(s[j], {q[k][0], q[k][1], q[k][2], q[k][3]},
                            {y.x, y.y});
                    mma_f16(s[j], {q[k][4], q[k][5], q[k][6], q[k][7]},
                            {y.z, y.w});
                }
            }
        }
#pragma unroll
        for (u32 j = 0; j < 4; j++)
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                const u32 key = base + 8 * j + 2 * c + i % 2, h = i / 2;
                float v = s[j][i] * a.scale;
                if (a.cap > 0.0f)
                    v = a.cap * ex_tanh(v / a.cap);
                s[j][i] = key >= lo[h] && key <= hi[h] ? v : none;
                m[h] = max_f32(m[h], s[j][i]);
            }
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            m[h] = max_f32(m[h], shfl_xor_f(m[h], 1));
            m[h] = max_f32(m[h], shfl_xor_f(m[h], 2));
            if (c == 0)
                top[w][g + 8 * h] = m[h];
        }
        bar(0, THREADS);
#pragma unroll
        for (u32 h = 0; h < 2; h++)
            for (u32 v = 0; v < BR_ND_WARPS; v++)
                m[h] = max_f32(m[h], top[v][g + 8 * h]);
#pragma unroll
        for (u32 j = 0; j < 4; j++)
#pragma unroll
            for (u32 i = 0; i < 4; i++) {
                const u32 h = i / 2;
                s[j][i] = s[j][i] > none ? ex2((s[j][i] - m[h]) * LOG2E) : 0.0f;
                l[h] = l[h] + s[j][i];
            }
#pragma unroll
        for (u32 h = 0; h < 2; h++) {
            l[h] = l[h] + shfl_xor_f(l[h], 1);
            l[h] = l[h] + shfl_xor_f(l[h], 2);
            if (c == 0)
                sums[w][g + 8 * h] = l[h];
        }
        if (base <= f.last && base + 31 >= f.first)
#pragma unroll
            for (u32 k = 0; k < 2; k++) {
                const u32x4 p = {pack_f16(s[2 * k][0], s[2 * k][1]),
                                 pack_f16(s[2 * k][2], s[2 * k][3]),
                                 pack_f16(s[2 * k + 1][0], s[2 * k + 1][1]),
                                 pack_f16(s[2 * k + 1][2], s[2 * k + 1][3])};
#pragma unroll
                for (u32 d = 0; d < HD / 64; d++) {
                    u32 v[4][4];
#pragma unroll
                    for (u32 i = 0; i < 4; i++) {
                        u32 key = base + 16 * k + 2 * c + i % 2 + i / 2 * 8;
                        key = key > f.last    ? f.last
                              : key < f.first ? f.first
                                              : key;
                        const u32x4 y = kept8(a, a.v, f.t, key,
                                              kvh * HD + d * 64 + g * 8);
                        v[i][0] = y.x, v[i][1] = y.y;
                        v[i][2] = y.z, v[i][3] = y.w;
                    }
#pragma unroll
                    for (u32 j = 0; j < 8; j++) {
                        const u32 sel = j % 2 ? 0x7632 : 0x5410;
                        mma_f16(o[d * 8 + j], p,
                                {prmt(v[0][j / 2], v[1][j / 2], sel),
                                 prmt(v[2][j / 2], v[3][j / 2], sel)});
                    }
                }
            }
#pragma unroll
        for (u32 d = 0; d < HD / 8; d++)
#pragma unroll
            for (u32 i = 0; i < 4; i++)
                part[(w * 16 + g + i / 2 * 8) * HD + d / 8 * 64 +
                     8 * (2 * c + i % 2) + d % 8] = o[d][i];
        bar(0, THREADS);
#pragma unroll
        for (u32 i = 0; i < MINE; i++) {
            const u32 e = tid() + i * THREADS, r = e / HD;
            float mb = none, lb = 0.0f, v = 0.0f;
            for (u32 k = 0; k < BR_ND_WARPS; k++) {
                mb = max_f32(mb, top[k][r]);
                lb = lb + sums[k][r];
                v = v + part[k * 16 * HD + e];
            }
            if (mb > none) {
                const float m1 = max_f32(M[i], mb);
                const float old = ex2((M[i] - m1) * LOG2E);
                const float now = ex2((mb - m1) * LOG2E);
                L[i] = fma_rn(lb, now, L[i] * old);
                A[i] = fma_rn(v, now, A[i] * old);
                M[i] = m1;
            }
        }
        bar(0, THREADS);
    }
#pragma unroll
    for (u32 i = 0; i < MINE; i++) {
        const u32 e = tid() + i * THREADS, r = e / HD, h = kvh * per + r % per;
        if (r / per >= f.n)
            continue;
        if (a.w.p) { /* a sink: one more score, with no value */
            const float m1 = max_f32(M[i], a.w.p[h]);
            const float old = ex2((M[i] - m1) * LOG2E);
            L[i] = fma_rn(L[i], old, ex2((a.w.p[h] - m1) * LOG2E));
            A[i] = A[i] * old;
        }
        row(a.y, f.t + r / per)[h * HD + e % HD] = A[i] / L[i];
    }
}
KERNEL
br_nd_flash_64(ARGS)
{
    flash<64>(a);
}
KERNEL
br_nd_flash_128(ARGS)
{
    flash<128>(a);
}
