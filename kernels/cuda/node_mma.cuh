/* node_mma.cuh - products on tensor cores, weights as rows, tokens as columns.
 *
 * A lane (g, c) = (lane / 4, lane % 4) reads 16 bytes of weight row g, 8 bytes
 * where weights are integers, and the same columns of token g: which column a
 * product stands at inside a step does not matter, as long as both agree.
 *
 *   bf16   32 columns are two steps of 16. An activation is two bf16s, what
 *          the first leaves out in the second. Segments of 256 from zero,
 *          added ascending.
 *   int    a block of 32 is a step and exact; warp w of four has the chain of
 *          the blocks w mod 4. The bits of docs/arithmetic.md.
 *
 * Neither depends on how many tokens there are. Grid: tiles of tokens, which
 * share weights in the L2, times tiles of rows.
 * SPDX-License-Identifier: Apache-2.0 */

enum { TOKENS = 8 }; /* of a step of the tensor core */

BR_DEV u32x4
ld16(const void *p)
{
    return *(const u32x4 *)p;
}

/* What x is in bf16, and what that leaves out, likewise. */
KERNEL
br_nd_split(ARGS)
{
    const u64 i = thread_of_grid();
    const u32 K = a.m.n_in, t = (u32)(i / (K / 2)), k = (u32)(i % (K / 2)) * 2;

    if (t >= a.n_rows)
        return;
    const float *x = row(a.x, t) + k;
    u32 *hi = (u32 *)a.xq + ((u64)t * K + k) / 2;
    const u32 h = pack_bf16(x[0], x[1]);
    *hi = h;
    hi[(u64)a.lows * K / 2] = pack_bf16(x[0] - bf16_lo(h), x[1] - bf16_hi(h));
}

/* sum += MT * 16 weight rows x NT * 8 tokens, 32 U columns: all weights are
 * asked for before the first is used. */
template <u32 MT, u32 NT, u32 U>
BR_DEV void
steps(float sum[MT][NT][4], const u16 *const w[MT][2], const u16 *x, u64 low,
      u64 tile, u32 k)
{
    u32x4 p[U][MT], q[U][MT];

#pragma unroll
    for (u32 u = 0; u < U; u++)
#pragma unroll
        for (u32 i = 0; i < MT; i++) {
            p[u][i] = ld16(w[i][0] + k + u * 32);
            q[u][i] = ld16(w[i][1] + k + u * 32);
        }
#pragma unroll
    for (u32 u = 0; u < U; u++)
#pragma unroll
        for (u32 j = 0; j < NT; j++) {
            const u32x4 h = ld16(x + j * tile + k + u * 32);
            const u32x4 l = ld16(x + low + j * tile + k + u * 32);
#pragma unroll
            for (u32 i = 0; i < MT; i++) {
                const u32x4 a = p[u][i], b = q[u][i];
                mma_bf16(sum[i][j], {a.x, b.x, a.y, b.y}, {h.x, h.y});
                mma_bf16(sum[i][j], {a.x, b.x, a.y, b.y}, {l.x, l.y});
                mma_bf16(sum[i][j], {a.z, b.z, a.w, b.w}, {h.z, h.w});
                mma_bf16(sum[i][j], {a.z, b.z, a.w, b.w}, {l.z, l.w});
            }
        }
}

/* Columns k to end, a segment at most. */
template <u32 MT, u32 NT>
BR_DEV void
segment(const struct br_nd_args &a, float sum[MT][NT][4], u32 n0, u32 t0, u32 k,
        u32 end)
{
    enum { U = NT * MT <= 2 ? 8 / NT : 2 };
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3, K = a.m.n_in;
    const u32 last = a.m.n_out - 1;
    const u16 *x = (const u16 *)a.xq + (u64)(t0 + g) * K + c * 8;
    const u64 low = (u64)a.lows * K, tile = (u64)TOKENS * K;
    const u16 *w[MT][2];

#pragma unroll
    for (u32 i = 0; i < MT * 2; i++) {
        const u32 n = n0 + i * 8 + g;
        w[i / 2][i % 2] =
            (const u16 *)a.m.q + (u64)(n < last ? n : last) * K + c * 8;
    }
    for (; k + 32 * U <= end; k += 32 * U)
        steps<MT, NT, U>(sum, w, x, low, tile, k);
    for (; k < end; k += 32)
        steps<MT, NT, 1>(sum, w, x, low, tile, k);
}

template <u32 NT>
BR_DEV void
put(const struct br_nd_args &a, const float sum[NT][4], u32 n0, u32 t0)
{
    const u32 g = (tid() & 31) >> 2, c = tid() & 3;

#pragma unroll
    for (u32 j = 0; j < NT; j++)
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            const u32 n = n0 + g + i / 2 * 8, t = t0 + j * TOKENS + c * 2 + i % 2;
            if (n < a.m.n_out && t < a.n_rows)
                row(a.y, t)[n] = sum[j][i];
        }
}

/* Many tokens: a warp 32 rows, all segments. */
KERNEL
br_nd_mma_many(ARGS)
{
    enum { MT = BR_ND_MANY_ROWS / BR_ND_WARPS / 16, NT = BR_ND_WIDE / TOKENS };
    const u32 n0 = (bid_y() * BR_ND_WARPS + (tid() >> 5)) * MT * 16;
    const u32 t0 = bid() * BR_ND_WIDE, K = a.m.n_in;
    float sum[MT][NT][4] = {}, all[MT][NT][4] = {};

    if (n0 >= a.m.n_out)
        return;
    for (u32 k = 0; k < K; k += BR_ND_SEG) {
        segment<MT, NT>(a, sum, n0, t0, k,
                        k + BR_ND_SEG < K ? k + BR_ND_SEG : K);
#pragma unroll
        for (u32 i = 0; i < MT * NT * 4; i++) {
            float *s = &sum[i / 4 / NT][i / 4 % NT][i % 4];
            float *all_of = &all[i / 4 / NT][i / 4 % NT][i % 4];
            *all_of = *all_of + *s;
            *s = 0.0f;
        }
    }
#pragma unroll
    for (u32 i = 0; i < MT; i++)
        put<NT>(a, all[i], n0 + i * 16, t0);
}

/* Few tokens: a block 16 rows, a warp every eighth segment. */
template <u32 NT>
BR_DEV void
few(const struct br_nd_args &a)
{
    __shared__ float part[BR_ND_WARPS][NT * 4][32];
    const u32 n0 = bid_y() * 16, t0 = bid() * NT * TOKENS, K = a.m.n_in;
    const u32 w = tid() >> 5, lane = tid() & 31;
    float all[NT][4] = {};

    for (u32 k0 = 0; k0 < K; k0 += BR_ND_SEG * BR_ND_WARPS) {
        const u32 k = k0 + w * BR_ND_SEG;
        float sum[1][NT][4] = {};
        if (k < K)
            segment<1, NT>(a, sum, n0, t0, k,
                           k + BR_ND_SEG < K ? k + BR_ND_SEG : K);
#pragma unroll
        for (u32 i = 0; i < NT * 4; i++)
            part[w][i][lane] = sum[0][i / 4][i % 4];
        bar(0, THREADS);
        if (w == 0)
#pragma unroll
            for (u32 i = 0; i < NT * 4; i++)
                for (u32 v = 0; v < BR_ND_WARPS; v++)
                    if (k0 + v * BR_ND_SEG < K)
                        all[i / 4][i % 4] = all[i / 4][i % 4] + part[v][i][lane];
        bar(0, THREADS);
    }
    if (w == 0)
        put<NT>(a, all, n0, t0);
}
KERNEL
br_nd_mma_8(ARGS)
{
    few<1>(a);
}
KERNEL
br_nd_mma_16(ARGS)
{
    few<2>(a);
}
KERNEL
br_nd_mma_32(ARGS)
{
    few<4>(a);
}

/* ---- integers in blocks of 32 ------------------------------------------------ */

/* A block of threads: 32 weight rows x NT * 8 tokens; warp = 4 * half + chain. */
template <u32 NT>
BR_DEV void
imma(const struct br_nd_args &a)
{
    __shared__ float part[2][4][NT * 4][32];
    const u32 lane = tid() & 31, g = lane >> 2, c = lane & 3, w = tid() >> 5;
    const u32 n0 = bid_y() * 32 + w / 4 * 16, t0 = bid() * NT * TOKENS;
    const u32 K = a.m.n_in, blocks = K / 32, last = a.m.n_out - 1;
    const u32 r0 = n0 + g < last ? n0 + g : last;
    const u32 r1 = n0 + g + 8 < last ? n0 + g + 8 : last;
    const signed char *w0 = (const signed char *)a.m.q + (u64)r0 * K + c * 8;
    const signed char *w1 = (const signed char *)a.m.q + (u64)r1 * K + c * 8;
    const signed char *x = a.xq + (u64)(t0 + g) * K + c * 8;
    const float *xd = a.xd + (u64)(t0 + c * 2) * blocks;
    float sum[NT][4] = {};

#pragma unroll 4
    for (u32 b = w % 4; b < blocks; b += 4) {
        const u32x2 p = *(const u32x2 *)(w0 + b * 32);
        const u32x2 q = *(const u32x2 *)(w1 + b * 32);
        const float d0 = a.m.d[(u64)r0 * blocks + b];
        const float d1 = a.m.d[(u64)r1 * blocks + b];
#pragma unroll
        for (u32 j = 0; j < NT; j++) {
            const u32x2 h = *(const u32x2 *)(x + (u64)j * TOKENS * K + b * 32);
            const float e0 = xd[(u64)j * TOKENS * blocks + b];
            const float e1 = xd[(u64)(j * TOKENS + 1) * blocks + b];
            i32 s[4];
            mma_s8(s, {p.x, q.x, p.y, q.y}, h);
            sum[j][0] = sum[j][0] + (d0 * e0) * (float)s[0];
            sum[j][1] = sum[j][1] + (d0 * e1) * (float)s[1];
            sum[j][2] = sum[j][2] + (d1 * e0) * (float)s[2];
            sum[j][3] = sum[j][3] + (d1 * e1) * (float)s[3];
        }
    }
#pragma unroll
    for (u32 i = 0; i < NT * 4; i++)
        part[w / 4][w % 4][i][lane] = sum[i / 4][i % 4];
    bar(0, THREADS);
    if (w % 4)
        return;
#pragma unroll
    for (u32 i = 0; i < NT * 4; i++)
        sum[i / 4][i % 4] = (part[w / 4][0][i][lane] + part[w / 4][1][i][lane]) +
                            (part[w / 4][2][i][lane] + part[w / 4][3][i][lane]);
    put<NT>(a, sum, n0, t0);
}
KERNEL
br_nd_imma_8(ARGS)
{
    imma<1>(a);
}
KERNEL
br_nd_imma_32(ARGS)
{
    imma<4>(a);
}
