/* node_mma.cuh - integer products on tensor cores, weights as rows, tokens as
 * columns.
 *
 * A lane (g, c) = (lane / 4, lane % 4) reads 8 bytes of weight row g and the
 * same columns of token g: which column a product stands at inside a step does
 * not matter, as long as both agree. A block of 32 is a step and exact; warp w
 * of four has the chain of the blocks w mod 4. The bits of docs/arithmetic.md.
 * Grid: tiles of tokens, which share weights in the L2, times tiles of rows.
 * SPDX-License-Identifier: Apache-2.0 */

enum { TOKENS = 8 }; /* of a step of the tensor core */

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
