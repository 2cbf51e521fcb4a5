/* mega_input.cuh - a part of mega_decode.cu: words of other workers become the input
 * vectors that the tensor cores read, a tile a thread.
 * SPDX-License-Identifier: Apache-2.0 */

/* Which tile of 16 values a thread brings: the last warps, which finish no rows,
 * the first ones. A tile a thread, two or three words, where 128 threads had four
 * tiles of the activations each: Q4_K 6 % faster, Q8_0 2.4, BF16 0.3 slower. */
BR_DEV u32
first_tile(const struct worker *w)
{
    return w->t ^ POLLER;
}

/* Squares' sums of the tiles of x, one each, behind what bytes_of_x keeps and 8192
 * columns of bf16. */
#define SQUARES ((float *)((unsigned char *)S->x + 20480))

/* Tile t of an input vector, if its W words are there. */
template <class F, int W, bool EIGHTS>
BR_DEV bool
take_tile(const u32x4 *p, u32 plane, u32 t, u32 epoch, struct from_tile *g)
{
    u32x4 v[W];

#pragma unroll
    for (u32 j = 0; j < W; j++)
        v[j] = ld_word(p + j * plane);
#pragma unroll
    for (u32 j = 0; j < W; j++)
        if (!(EIGHTS ? v[j].w != 0xffffffffu : v[j].w == epoch))
            return false;
    if constexpr (EIGHTS)
        F::put_pairs(t, v[0], v[1]);
    else
        *g = F::put_words(t, v);
    return true;
}

/* The tiles of an input vector. Of x = h * weight the squares of h are summed: the
 * factor rsqrt(mean(h^2) + eps) is the same for all columns, so it waits for the
 * product and multiplies the rows (scale_rows). */
struct source {
    const u32x4 *p;
    u32 plane, epoch;
};
template <class F, int W, bool EIGHTS>
BR_DEV void
take_tiles(const struct worker *w, const u32x4 *words, u32 tiles, bool squares)
{
    const u32 epoch = epoch_now(), plane = EIGHTS ? tiles / 2 : tiles;

#pragma unroll 1
    for (u32 t = first_tile(w); t < tiles; t += BR_MK_THREADS) {
        const u32x4 *p =
            EIGHTS ? words + (t & 1) * 2 * plane + t / 2 : words + t;
        struct from_tile g = {0.0f, 0.0f};
#pragma unroll 1
        for (u32 s = 0; !take_tile<F, W, EIGHTS>(p, plane, t, epoch, &g); s++)
            if (s > SPIN_LIMIT)
                give_up();
        warp_sync();
        if (squares)
            SQUARES[t] = g.square;
        F::end_tile(t, g.all);
    }
}

/* The same of an embedding row: h in layer 0. */
template <class F>
BR_DEV void
take_row(const struct worker *w, const u32 *row, const float *weight)
{
#pragma unroll 1
    for (u32 t = first_tile(w); t < args.hidden / 16; t += BR_MK_THREADS) {
        float x[16], s = 0.0f;
#pragma unroll
        for (u32 i = 0; i < 8; i++) {
            const u32 h = row[t * 8 + i];
            x[2 * i] = bf16_lo(h);
            x[2 * i + 1] = bf16_hi(h);
        }
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            s = fma_rn(x[i], x[i], s);
            x[i] = mul_rn(x[i], weight[t * 16 + i]);
        }
        F::put_tile(t, x);
        SQUARES[t] = s;
    }
}

/* The factor of this phase's rows, by a warp: squares' sums of 32 tiles by shuffles,
 * four at once, then those in a fixed tree. Here and not where tiles are taken, where
 * all wait for it: Q4_K 1.2 % faster, BF16 0.4. */
BR_DEV void
scale_rows(u32 segs, u32 lane)
{
    float all = 0.0f;

#pragma unroll 1
    for (u32 g = 0; g < segs; g += 4) {
        float v[4];
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            v[k] = g + k < segs ? SQUARES[(g + k) * 32 + lane] : 0.0f;
#pragma unroll
        for (u32 m = 16; m; m >>= 1)
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                v[k] = add_rn(v[k], shfl_xor_f(v[k], m));
        all = add_rn(all, add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3])));
    }
    if (lane == 0)
        S->scale = rsqrt_fast(
            fma_rn(all, rcp((float)(segs * BR_MK_SEG)), args.eps));
}
