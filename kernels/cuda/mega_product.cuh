/* mega_product.cuh - weights times the input vector, for each weight format.
 *
 * A format says in how many copies a chunk comes (16 rows x 512 columns,
 * mega_table.h), how many slots for copies that gives, how x lies in shared
 * memory, and how a warp turns a chunk into 16 partial sums. As many warps as
 * divide the slots: a slot is then always taken by the same warp, and a warp never waits for a
 * barrier two rounds ahead, which its parity could not tell from the last one.
 * SPDX-License-Identifier: Apache-2.0 */

/* What hangs on a read. */
BR_DEV u32
any_of(u32x4 a)
{
    return a.x ^ a.y ^ a.z ^ a.w;
}

/* bf16: one chain of 32 mma for the segment. */
struct bf16_weights {
    enum {
        COPY = BR_MK_CHUNK_BF16 / 2,
        ROOM = COPY,
        COPIES = 2,
        SLOTS = 24,
        WARPS = 12,
        TILES = 2,
        LOADERS = 2,
        EIGHTS = 1 /* attention's output and the activations come in words of 8 */
    };

    /* Lane t of k-step j reads its B operand, pairs of columns t and t + 4 of
     * the tile, at j*32 + t*8: pairs of a tile lie as 0 4 1 5 2 6 3 7. */
    BR_DEV void
    put_pairs(u32 tile, u32x4 a, u32x4 b)
    {
        const u32 to = smem_of(S->x) + tile * 32;

        sts128(to, u32x4{a.x, b.x, a.y, b.y});
        sts128(to + 16, u32x4{a.z, b.z, a.w, b.w});
    }
    BR_DEV void
    put_tile(u32 tile, const float *x)
    {
        put_pairs(tile,
                  u32x4{pack_bf16(x[0], x[1]), pack_bf16(x[2], x[3]),
                        pack_bf16(x[4], x[5]), pack_bf16(x[6], x[7])},
                  u32x4{pack_bf16(x[8], x[9]), pack_bf16(x[10], x[11]),
                        pack_bf16(x[12], x[13]), pack_bf16(x[14], x[15])});
    }
    /* The words of a tile, pairs 0 1 2 | 4 5 6 | 3 7 and the sum of squares. */
    enum { X_WORDS = BR_MK_X_BF16 };
    BR_DEV float
    put_words(u32 tile, const u32x4 *v)
    {
        put_pairs(tile, u32x4{v[0].x, v[0].y, v[0].z, v[2].x},
                  u32x4{v[1].x, v[1].y, v[1].z, v[2].y});
        return as_f32(v[2].z);
    }
    /* Lane i of 16 has value i of a tile, and the square that it adds. */
    BR_DEV void
    give_tile(u32x4 *to, u32 tiles, u32 i, float x, float sum, u32 epoch,
              bool send)
    {
#pragma unroll
        for (u32 m = 1; m < 16; m <<= 1)
            sum = add_rn(sum, shfl_xor_f(sum, m));
        const u32 p = pack_bf16(x, shfl_xor_f(x, 1));
        const u32 p1 = shfl_xor(p, 2), p2 = shfl_xor(p, 4), p4 = shfl_xor(p, 8);

        if (send && (i & 7) == 0)
            st_word(to + (i >> 3) * tiles, u32x4{p, p1, p2, epoch});
        if (send && i == 6)
            st_word(to + 2 * tiles, u32x4{p, p4, as_u32(sum), epoch});
    }
    /* 32 columns from 32 b on. */
    BR_DEV void
    put_eights(u32 b, const u32x4 *v)
    {
        put_pairs(b * 2, v[0], v[1]);
        put_pairs(b * 2 + 1, v[2], v[3]);
    }

    /* Sums so far of rows lane / 4 and lane / 4 + 8. */
    struct sums {
        float c[4];
    };
    BR_DEV struct sums
    none(void)
    {
        return {{0.0f, 0.0f, 0.0f, 0.0f}};
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
    /* Copy `part` of a chunk of segment seg, at `from`, times x: a chain.
     * Returns what hangs on all reads of the slot that may be under way. */
    BR_DEV u32
    rows(struct sums *s, u32 from, u32 seg, u32 part, u32 lane)
    {
        const u32 A = from + lane * 16;
        const u32 X =
            smem_of(S->x) + seg * 1024 + part * 512 + (lane & 3) * 8;
        u32x4 a0[4], a1[4];
        u32x2 x0[4], x1[4];

        operands(a0, x0, A, X, 0);
#pragma unroll 1
        for (u32 j = 0; j < 16; j += 8) { /* a chain: feed it without gaps */
            operands(a1, x1, A, X, j + 4);
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                mma_bf16(s->c, a0[k], x0[k]);
            if (j + 8 < 16)
                operands(a0, x0, A, X, j + 8);
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                mma_bf16(s->c, a1[k], x1[k]);
        }
        u32 tie = 0;
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            tie ^= any_of(a0[k]) ^ any_of(a1[k]);
        return tie;
    }
    BR_DEV float
    low(const struct sums *s)
    {
        return s->c[0];
    }
    BR_DEV float
    high(const struct sums *s)
    {
        return s->c[2];
    }
};

/* What takes x in bytes, 16 values with one d = max / 127: who makes them
 * rounds them, once for all that read them. LEAST: sums of 32 values as well,
 * as bf16 and what that leaves, and d of every second block of 32 is d / 16. */
template <bool LEAST>
struct bytes_of_x {
    /* Behind x: d, sums, the best logits (BEST). */
    enum {
        D_AT = BR_MK_MAX_K,
        SUMS_AT = D_AT + BR_MK_MAX_K / 16 * 4,
        SUMS = BR_MK_MAX_K / 32 * 2,
        EIGHTS = 0
    };
    static_assert(SUMS_AT + 2 * SUMS <= BR_MK_MAX_K * 2, "fits");

    BR_DEV u32
    d_at(u32 tile)
    {
        return smem_of(S->x) + D_AT + tile * 4;
    }
    /* Four bytes of value 4 i of a tile: lane t of a block reads
     * (k 4t.. 4t+3 | 4t+16..) at b*32 + t*8. */
    BR_DEV void
    put_four(u32 tile, u32 i, u32 v)
    {
        sts32(smem_of(S->x) + tile / 2 * 32 + (tile & 1) * 4 + i * 8, v);
    }
    /* The bytes q of a tile; the block's other tile is in the lane beside. */
    BR_DEV void
    put_bytes(u32 tile, u32x4 q, float d)
    {
        put_four(tile, 0, q.x);
        put_four(tile, 1, q.y);
        put_four(tile, 2, q.z);
        put_four(tile, 3, q.w);
        if (LEAST) {
            const float s = mul_rn(
                d, (float)sum_of_bytes(
                       q.x, sum_of_bytes(
                                q.y, sum_of_bytes(q.z, sum_of_bytes(q.w, 0)))));
            const float all = add_rn(s, shfl_xor_f(s, 1));
            const u32 high = pack_bf16(all, 0.0f);
            const u32 v =
                tile & 1 ? pack_bf16(all - bf16_lo(high), 0.0f) : high;
            sts16(smem_of(S->x) + SUMS_AT + (tile & 1) * SUMS + tile / 2 * 2,
                  v);
            if (tile & 2)
                d = mul_rn(d, 0.0625f);
        }
        sts32(d_at(tile), as_u32(d));
    }
    BR_DEV u32
    byte_of(float x, float f)
    {
        return (u32)rint_s32(mul_rn(x, f)) & 255;
    }
    BR_DEV float
    factor(float big)
    {
        return big > 0.0f ? mul_rn(127.0f, rcp(big)) : 0.0f;
    }
    BR_DEV void
    put_tile(u32 tile, const float *x)
    {
        float big = 0.0f;
        u32 v[4];

#pragma unroll
        for (u32 i = 0; i < 16; i++)
            big = max_f32(big, abs_f32(x[i]));
        const float f = factor(big);
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            v[i] = byte_of(x[i * 4], f) | byte_of(x[i * 4 + 1], f) << 8 |
                   byte_of(x[i * 4 + 2], f) << 16 |
                   byte_of(x[i * 4 + 3], f) << 24;
        put_bytes(tile, u32x4{v[0], v[1], v[2], v[3]},
                  mul_rn(big, 1.0f / 127.0f));
    }
    /* The words of a tile: bytes 0..11 | 12..15, d, the sum of squares. */
    enum { X_WORDS = BR_MK_X_Q8_0 };
    BR_DEV float
    put_words(u32 tile, const u32x4 *v)
    {
        put_bytes(tile, u32x4{v[0].x, v[0].y, v[0].z, v[1].x}, as_f32(v[1].y));
        return as_f32(v[1].z);
    }
    /* Lane i of 16 has value i of a tile, and the square that it adds. */
    BR_DEV void
    give_tile(u32x4 *to, u32 tiles, u32 i, float x, float sum, u32 epoch,
              bool send)
    {
        float big = abs_f32(x);

#pragma unroll
        for (u32 m = 1; m < 16; m <<= 1) {
            big = max_f32(big, shfl_xor_f(big, m));
            sum = add_rn(sum, shfl_xor_f(sum, m));
        }
        u32 v = byte_of(x, factor(big)) << (i & 3) * 8;
        v |= shfl_xor(v, 1);
        v |= shfl_xor(v, 2);
        const u32 v4 = shfl_xor(v, 4), v8 = shfl_xor(v, 8);
        if (send && i == 0)
            st_word(to, u32x4{v, v4, v8, epoch});
        if (send && i == 12)
            st_word(to + tiles, u32x4{v, as_u32(mul_rn(big, 1.0f / 127.0f)),
                                      as_u32(sum), epoch});
    }

    struct sums { /* of two chains */
        float u[2], v[2];
    };
    BR_DEV struct sums
    none(void)
    {
        return {{0, 0}, {0, 0}};
    }
    BR_DEV float
    low(const struct sums *s)
    {
        return add_rn(s->u[0], s->u[1]);
    }
    BR_DEV float
    high(const struct sums *s)
    {
        return add_rn(s->v[0], s->v[1]);
    }
};

/* q8_0: products of 16 are exact, then two chains of blocks, even
 * and odd, inside the segment. */
struct q8_0_weights : bytes_of_x<false> {
    enum {
        COPY = BR_MK_CHUNK_Q8_0 / 2, /* 8 blocks and their scales */
        ROOM = COPY,
        COPIES = 2,
        SLOTS = 44,
        WARPS = 11,
        TILES = 4,
        LOADERS = 4
    };
    BR_DEV u32
    rows(struct sums *s, u32 from, u32 seg, u32 part, u32 lane)
    {
        const u32 A = from + lane * 16;
        const u32 W = from + 4096 + (lane >> 2) * 16;
        const u32 X = smem_of(S->x) + seg * BR_MK_SEG + part * (BR_MK_SEG / 2) +
                      (lane & 3) * 8;
        const u32 D = d_at(seg * 32 + part * 16);
        u32 tie = 0;

#pragma unroll
        for (u32 b = 0; b < 8; b += 4) {
            const u32x2 wu = lds64(W + b * 2), wv = lds64(W + 128 + b * 2);
            tie ^= wu.x ^ wu.y ^ wv.x ^ wv.y;
            const float su[4] = {f16_lo(wu.x), f16_hi(wu.x), f16_lo(wu.y),
                                 f16_hi(wu.y)};
            const float sv[4] = {f16_lo(wv.x), f16_hi(wv.x), f16_lo(wv.y),
                                 f16_hi(wv.y)};
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                const u32x4 a = lds128(A + (b + k) * 512);
                tie ^= any_of(a);
                const u32x2 x = lds64(X + (b + k) * 32);
                const u32x2 d = lds64(D + (b + k) * 8);
                i32 c[4], e[4];
                mma_s8_16(c, a.x, a.y, x.x);
                mma_s8_16(e, a.z, a.w, x.y);
                const float u = fma_rn((float)e[0], as_f32(d.y),
                                       mul_rn((float)c[0], as_f32(d.x)));
                const float v = fma_rn((float)e[2], as_f32(d.y),
                                       mul_rn((float)c[2], as_f32(d.x)));
                s->u[k & 1] = fma_rn(u, su[k], s->u[k & 1]);
                s->v[k & 1] = fma_rn(v, sv[k], s->v[k & 1]);
            }
        }
        return tie;
    }
};

/* q4_k: bytes 0..15 of a pair of blocks, low nibbles the first one's, high ones
 * as 16 times their value; a block's scale is d * 6 bits, rounded to f16. The
 * minima stay 6 bits, an operand of one mma with the sums of x: columns are
 * sums and what bf16 leaves of them, of the first 256 values and the others. */
struct q4_k_weights : bytes_of_x<true> {
    enum {
        COPY = BR_MK_CHUNK_Q4_K,
        ROOM = 5376,
        COPIES = 1,
        SLOTS = 36,
        WARPS = 12,
        TILES = 4,
        LOADERS = 4
    };
    /* The minima's part. */
    BR_DEV u32
    least(struct sums *s, u32 from, u32 seg, u32 lane)
    {
        const u32 col = lane >> 2;
        const u32 at = smem_of(S->x) + SUMS_AT + (col & 1) * SUMS + seg * 32 +
                       (col & 2) * 8 + (lane & 3) * 4;
        const u32x2 m = lds64(from + 4096 + 512 + lane * 8);
        const u32 d = from + 4096 + 512 + 256 + col * 4;
        const u32 x = lds32(at);
        /* d of the minima, for lanes 0, 1 of four */
        const u32 du = lds32(d) >> (lane & 1) * 16;
        const u32 dv = lds32(d + 32) >> (lane & 1) * 16;
        float c[4];

        mma_bf16_zero(
            c,
            u32x4{bf16_of_bytes(m.x, 0x4140), bf16_of_bytes(m.x, 0x4342),
                  bf16_of_bytes(m.y, 0x4140), bf16_of_bytes(m.y, 0x4342)},
            u32x2{col < 2 ? x : 0, col - 2 < 2 ? x : 0});
        const float u = mul_rn(f16_lo(du), add_rn(c[0], c[1]));
        const float v = mul_rn(f16_lo(dv), add_rn(c[2], c[3]));
        s->u[0] = -add_rn(u, shfl_xor_f(u, 1));
        s->v[0] = -add_rn(v, shfl_xor_f(v, 1));
        return m.x ^ m.y ^ du ^ dv;
    }
    BR_DEV u32
    rows(struct sums *s, u32 from, u32 seg, u32 part, u32 lane)
    {
        const u32 A = from + lane * 16;
        const u32 W = from + 4096 + (lane >> 2) * 32;
        const u32 X = smem_of(S->x) + seg * BR_MK_SEG + (lane & 3) * 8;
        const u32 D = d_at(seg * 32);
        u32 tie = least(s, from, seg, lane);

        (void)part;
#pragma unroll
        for (u32 b = 0; b < 16; b += 4) {
            const u32x2 wu = lds64(W + b * 2), wv = lds64(W + 256 + b * 2);
            tie ^= wu.x ^ wu.y ^ wv.x ^ wv.y;
            const float su[4] = {f16_lo(wu.x), f16_hi(wu.x), f16_lo(wu.y),
                                 f16_hi(wu.y)};
            const float sv[4] = {f16_lo(wv.x), f16_hi(wv.x), f16_lo(wv.y),
                                 f16_hi(wv.y)};
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                const u32x4 two = lds128(A + (b + k) / 2 * 512);
                tie ^= k & 1 ? 0 : any_of(two);
                const u32 half = k & 1 ? 0xf0f0f0f0 : 0x0f0f0f0f;
                const u32x2 x = lds64(X + (b + k) * 32);
                const u32x2 d = lds64(D + (b + k) * 8);
                i32 c[4], e[4];
                mma_u8_16(c, two.x & half, two.y & half, x.x);
                mma_u8_16(e, two.z & half, two.w & half, x.y);
                const float u = fma_rn((float)e[0], as_f32(d.y),
                                       mul_rn((float)c[0], as_f32(d.x)));
                const float v = fma_rn((float)e[2], as_f32(d.y),
                                       mul_rn((float)c[2], as_f32(d.x)));
                s->u[k & 1] = fma_rn(u, su[k], s->u[k & 1]);
                s->v[k & 1] = fma_rn(v, sv[k], s->v[k & 1]);
            }
        }
        return tie;
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

/* The chunks of a phase: chunk i goes to warp i mod WARPS and leaves its 16
 * partial sums at part[16 i].
 *
 * A slot goes back only when what was read has arrived. An mbarrier's arrival
 * orders reads against other accesses of the same kind, and a copy is of another
 * one: ptxas issued it with reads under way, and a kernel that kept weights in
 * registers gave other bits now and then. So an arrival follows what hangs on
 * all the reads: the sums' store, or in a chunk's first copy a count of which
 * they are a part (& 0, which ptxas does not know). */
template <class F>
BR_DEV void
multiply(const struct worker *w, const struct br_mk_inst *in)
{
    const u32 lane = w->t & 31, warp = w->t >> 5, segs = in->segs;
    const u32 end = warp < F::WARPS ? in->n_tiles * segs : 0;

#pragma unroll 1
    for (u32 i = warp; i < end; i += F::WARPS) {
        struct F::sums s = F::none();

#pragma unroll
        for (u32 c = 0; c < F::COPIES; c++) {
            const u32 at = (w->count + i) * F::COPIES + c, slot = at % F::SLOTS;
            const u32 empty = smem_of(S->empty) + slot * 8;
            u32 n = READERS / 32;

            mbar_wait(smem_of(S->full) + slot * 8, (at / F::SLOTS) & 1);
            const u32 read = F::rows(&s, smem_of(S->ring) + slot * F::ROOM,
                                     i % segs, c, lane);
            if (c < F::COPIES - 1) { /* 0.2 % slower for it, 1B Q8_0 1.4 */
                n += read & args.n_workers >> 8;
            } else if ((lane & 3) == 0) {
                S->part[i * 16 + (lane >> 2)] = F::low(&s);
                S->part[i * 16 + 8 + (lane >> 2)] = F::high(&s);
            }
            mbar_arrive(empty, n);
        }
    }
}
