/* mega_product.cuh - weights times the input vector, for each weight format.
 *
 * A format says how large a chunk is (16 rows x 512 columns, mega_table.h), how
 * many slots of the ring that gives, how x lies in shared memory, and how a
 * warp turns a chunk into 16 partial sums. As many warps as divide the slots:
 * a slot is then always taken by the same warp, and a warp never waits for a
 * barrier two rounds ahead, which its parity could not tell from the last one.
 * SPDX-License-Identifier: Apache-2.0 */

/* bf16: one chain of 32 mma for the segment. */
struct bf16_weights {
    enum { CHUNK = BR_MK_CHUNK_BF16, SLOTS = 12, WARPS = 12, HEAD_DEPTH = 6 };

    /* Columns k, k+1 (k even) go where lane t of k-step j reads them as its B
     * operand: 8 bytes (k 2t, 2t+1 | 2t+8, 2t+9) at j*32 + t*8. */
    BR_DEV void
    put_pair(u32 k, u32 pair)
    {
        u32 j = k >> 4, kk = k & 15;

        sts32(smem_of(S->x) + j * 32 + ((kk & 7) >> 1) * 8 + (kk >> 3) * 4,
              pair);
    }
    BR_DEV void
    put2(u32 k, float a, float b)
    {
        put_pair(k, pack_bf16(a, b));
    }
    BR_DEV void
    put4(u32 k, u32x2 pairs)
    {
        put_pair(k, pairs.x);
        put_pair(k + 2, pairs.y);
    }

    /* Four k-steps of both operands. */
    BR_DEV void
    operands(u32x4 *a, u32x2 *x, u32 A, u32 X, u32 j)
    {
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            a[k] = lds128(A + (j + k) * 512);
            x[k] = lds64(X + (j + k) * 32);
        }
    }
    /* Rows lane / 4 and lane / 4 + 8 of the chunk at `from`. */
    BR_DEV void
    rows(u32 from, u32 seg, u32 lane, float *lo, float *hi)
    {
        const u32 A = from + lane * 16;
        const u32 X = smem_of(S->x) + seg * 1024 + (lane & 3) * 8;
        float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        u32x4 a0[4], a1[4];
        u32x2 x0[4], x1[4];

        operands(a0, x0, A, X, 0);
#pragma unroll 1
        for (u32 j = 0; j < 32; j += 8) { /* a chain: feed it without gaps */
            operands(a1, x1, A, X, j + 4);
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                mma_bf16(c, a0[k], x0[k]);
            if (j + 8 < 32)
                operands(a0, x0, A, X, j + 8);
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                mma_bf16(c, a1[k], x1[k]);
        }
        *lo = c[0];
        *hi = c[2];
    }
};

/* q8_0: x in blocks of 32, d = max / 127, bytes; block products are exact,
 * then four chains of blocks (block mod 4) inside the segment. */
struct q8_0_weights {
    enum { CHUNK = BR_MK_CHUNK_Q8_0, SLOTS = 22, WARPS = 11, HEAD_DEPTH = 12 };

    BR_DEV float *
    scales(void)
    {
        return (float *)((unsigned char *)S->x + BR_MK_MAX_K);
    }
    /* The largest of a block that lies in `lanes` neighbouring lanes: its
     * scale, and what to multiply by. */
    BR_DEV float
    scale_block(u32 k, float big, u32 lanes)
    {
        for (u32 m = 1; m < lanes; m <<= 1)
            big = max_f32(big, shfl_xor_f(big, m));
        if ((k & 31) == 0)
            scales()[k >> 5] = mul_rn(big, 1.0f / 127.0f);
        return big > 0.0f ? mul_rn(127.0f, rcp(big)) : 0.0f;
    }
    /* Lane t of block b reads (k 4t.. 4t+3 | 4t+16..) at b*32 + t*8. */
    BR_DEV u32
    place(u32 k)
    {
        return smem_of(S->x) + (k & ~31u) + ((k & 15) >> 2) * 8 +
               (k >> 4 & 1) * 4 + (k & 3);
    }
    BR_DEV u32
    byte(float x, float f)
    {
        return (u32)rint_s32(mul_rn(x, f)) & 255;
    }
    BR_DEV void
    put2(u32 k, float a, float b)
    {
        float f = scale_block(k, max_f32(abs_f32(a), abs_f32(b)), 16);

        sts16(place(k), byte(a, f) | byte(b, f) << 8);
    }
    BR_DEV void
    put4(u32 k, u32x2 p)
    {
        float a = bf16_lo(p.x), b = bf16_hi(p.x), c = bf16_lo(p.y),
              d = bf16_hi(p.y);
        float f = scale_block(k,
                              max_f32(max_f32(abs_f32(a), abs_f32(b)),
                                      max_f32(abs_f32(c), abs_f32(d))),
                              8);

        sts32(place(k), byte(a, f) | byte(b, f) << 8 | byte(c, f) << 16 |
                            byte(d, f) << 24);
    }

    BR_DEV void
    rows(u32 from, u32 seg, u32 lane, float *lo, float *hi)
    {
        const u32 A = from + lane * 16;
        const u32 W = from + 8192 + (lane >> 2) * 32;
        const u32 X = smem_of(S->x) + seg * BR_MK_SEG + (lane & 3) * 8;
        const u32 D = smem_of(scales()) + seg * 64;
        float u[4] = {0, 0, 0, 0}, v[4] = {0, 0, 0, 0};

#pragma unroll 2
        for (u32 b = 0; b < 16; b += 4) {
            const u32x2 wu = lds64(W + b * 2), wv = lds64(W + 256 + b * 2);
            const u32x4 d = lds128(D + b * 4);
            const float su[4] = {f16_lo(wu.x), f16_hi(wu.x), f16_lo(wu.y),
                                 f16_hi(wu.y)};
            const float sv[4] = {f16_lo(wv.x), f16_hi(wv.x), f16_lo(wv.y),
                                 f16_hi(wv.y)};
            const float sx[4] = {as_f32(d.x), as_f32(d.y), as_f32(d.z),
                                 as_f32(d.w)};
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                i32 c[4];
                mma_s8(c, lds128(A + (b + k) * 512), lds64(X + (b + k) * 32));
                u[k] = fma_rn((float)c[0], mul_rn(su[k], sx[k]), u[k]);
                v[k] = fma_rn((float)c[2], mul_rn(sv[k], sx[k]), v[k]);
            }
        }
        *lo = add_rn(add_rn(u[0], u[1]), add_rn(u[2], u[3]));
        *hi = add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3]));
    }
};

/* Until the barrier has passed the round with this parity. */
BR_DEV void
mbar_wait(u32 bar_addr, u32 parity)
{
#pragma unroll 1
    for (u32 s = 0; !mbar_try(bar_addr, parity); s++)
        if (s > SPIN_LIMIT)
            give_up();
}

/* The n chunks of a phase: chunk i goes to warp i mod WARPS and leaves its 16
 * partial sums at part[16 i]. */
template <class F>
BR_DEV void
multiply(const struct worker *w, const struct br_mk_inst *in, u32 n)
{
    const u32 lane = w->t & 31;

#pragma unroll 1
    for (u32 i = w->t >> 5; i < n && (w->t >> 5) < F::WARPS; i += F::WARPS) {
        const u32 at = w->count + i, slot = at % F::SLOTS;
        float lo, hi;

        mbar_wait(smem_of(S->full) + slot * 8, (at / F::SLOTS) & 1);
        F::rows(smem_of(S->ring) + slot * F::CHUNK, i % in->segs, lane, &lo,
                &hi);
        warp_sync();
        if (lane == 0)
            mbar_arrive(smem_of(S->empty) + slot * 8);
        if ((lane & 3) == 0) {
            S->part[i * 16 + (lane >> 2)] = lo;
            S->part[i * 16 + 8 + (lane >> 2)] = hi;
        }
    }
    bar(1, BR_MK_THREADS);
}
