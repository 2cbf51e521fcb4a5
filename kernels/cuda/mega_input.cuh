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
 * product and multiplies the rows (row_scale). */
template <class F, int W, bool EIGHTS>
BR_DEV void
take_tiles(const struct worker *w, const u32x4 *words, u32 tiles, float *sums)
{
    const u32 epoch = epoch_now(), plane = EIGHTS ? tiles / 2 : tiles;
    float sum = 0.0f;

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
        sum = add_rn(sum, g.square);
        F::end_tile(t, g.all);
    }
    if (!sums)
        return;
    sum = warp_sum(sum);
    if ((w->t & 31) == 0)
        sums[first_tile(w) >> 5] = sum;
}

/* The same of an embedding row: h in layer 0. */
template <class F>
BR_DEV void
take_row(const struct worker *w, const u32 *row, const float *weight,
         float *sums)
{
    float sum = 0.0f;

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
        sum = add_rn(sum, s);
    }
    sum = warp_sum(sum);
    if ((w->t & 31) == 0)
        sums[first_tile(w) >> 5] = sum;
}

/* Of up to 8 warps (hidden <= 4096), the others' are 0: GLU's, and those of QKV and
 * HEAD. */
BR_DEV float *
sums_of(u32 op)
{
    return S->sums + (op == BR_MK_GLU ? 8 : 0);
}

BR_DEV float
row_scale(u32 op)
{
    const u32x4 s = lds128(smem_of(sums_of(op)));
    const u32x4 t = lds128(smem_of(sums_of(op) + 4));
    const float sum =
        add_rn(add_rn(add_rn(as_f32(s.x), as_f32(s.y)),
                      add_rn(as_f32(s.z), as_f32(s.w))),
               add_rn(add_rn(as_f32(t.x), as_f32(t.y)),
                      add_rn(as_f32(t.z), as_f32(t.w))));

    return rsqrt_fast(fma_rn(sum, rcp((float)args.hidden), args.eps));
}
