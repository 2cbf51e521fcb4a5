/* mega_product.cuh - weights times the input vector, for each weight format.
 *
 * A format says in how many copies a chunk comes (16 rows x 512 columns,
 * mega_table.h), how many slots for copies that gives, how x lies in shared
 * memory, and how a warp turns a chunk into 16 partial sums. As many warps as
 * divide the slots: a slot is then always taken by the same warp, and a warp never waits for a
 * barrier two rounds ahead, which its parity could not tell from the last one.
 * SPDX-License-Identifier: Apache-2.0 */

/* bf16: one chain of 32 mma for the segment. */
struct bf16_weights {
    enum {
        COPY = BR_MK_CHUNK_BF16 / 2,
        ROOM = COPY,
        COPIES = 2,
        SLOTS = 24,
        WARPS = 12,
        TILES = 2
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
    /* Lane i of 16 has value i of a tile. */
    BR_DEV void
    give_tile(u32x4 *to, u32 tiles, u32 i, float x, float sum, u32 epoch,
              bool send)
    {
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
    /* Sums so far of rows lane / 4 and lane / 4 + 8. */
    struct sums {
        float c[4];
    };
    BR_DEV struct sums
    none(void)
    {
        return {{0.0f, 0.0f, 0.0f, 0.0f}};
    }
    /* Copy `part` of the chunk, which lies at `from`: half of the k-steps. */
    BR_DEV void
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

/* What takes x in blocks of 32, d = max / 127, bytes; SUMS: d times the sum of
 * a block's bytes as well. */
template <bool SUMS>
struct bytes_of_x {
    BR_DEV float *
    scales(void)
    {
        return (float *)((unsigned char *)S->x + BR_MK_MAX_K);
    }
    /* Of halves of blocks; the best logits begin at 16384, where K is small. */
    BR_DEV float *
    sums_of_x(void)
    {
        return scales() + BR_MK_MAX_K / 32;
    }
    /* Half h of block b, whose largest value is big. Lane t of block b reads
     * (k 4t.. 4t+3 | 4t+16..) at b*32 + t*8. */
    BR_DEV void
    put_half(u32 b, u32 h, const float *x, float big)
    {
        const float f = big > 0.0f ? mul_rn(127.0f, rcp(big)) : 0.0f;

        const float d = mul_rn(big, 1.0f / 127.0f);
        i32 sum = 0;
        if (h == 0)
            scales()[b] = d;
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 v = 0;
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                const i32 q = rint_s32(mul_rn(x[i * 4 + k], f));
                sum += q;
                v |= ((u32)q & 255) << 8 * k;
            }
            sts32(smem_of(S->x) + b * 32 + i * 8 + h * 4, v);
        }
        if (SUMS)
            sums_of_x()[b * 2 + h] = mul_rn(d, (float)sum);
    }
    BR_DEV float
    largest(const float *x)
    {
        float big = 0.0f;

#pragma unroll
        for (u32 i = 0; i < 16; i++)
            big = max_f32(big, abs_f32(x[i]));
        return big;
    }
    /* The other half of the block is in the lane beside this one. */
    BR_DEV void
    put_tile(u32 tile, const float *x)
    {
        const float big = largest(x);

        put_half(tile / 2, tile & 1, x, max_f32(big, shfl_xor_f(big, 1)));
    }
    /* The words of a tile: 0 1 2 | 4 5 6 | 8 9 10 | 12 13 14 | 3 7 11 | 15 and
     * the sum of squares. */
    enum { X_WORDS = BR_MK_X_Q8_0 };
    BR_DEV float
    put_words(u32 tile, const u32x4 *v)
    {
        float x[16];

#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            x[4 * i] = as_f32(v[i].x);
            x[4 * i + 1] = as_f32(v[i].y);
            x[4 * i + 2] = as_f32(v[i].z);
        }
        x[3] = as_f32(v[4].x);
        x[7] = as_f32(v[4].y);
        x[11] = as_f32(v[4].z);
        x[15] = as_f32(v[5].x);
        put_tile(tile, x);
        return as_f32(v[5].y);
    }
    BR_DEV void
    give_tile(u32x4 *to, u32 tiles, u32 i, float x, float sum, u32 epoch,
              bool send)
    {
        const u32 v = as_u32(x), v1 = shfl_xor(v, 1), v2 = shfl_xor(v, 2);
        const u32 v4 = shfl_xor(v, 4), v8 = shfl_xor(v, 8);

        if (send && (i & 3) == 0)
            st_word(to + (i >> 2) * tiles, u32x4{v, v1, v2, epoch});
        if (send && i == 3)
            st_word(to + 4 * tiles, u32x4{v, v4, v8, epoch});
        if (send && i == 15)
            st_word(to + 5 * tiles, u32x4{v, as_u32(sum), 0, epoch});
    }
    BR_DEV void
    put_eights(u32 b, const u32x4 *v)
    {
        float x[32];

#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            const u32 p = (&v[i / 4].x)[i & 3];
            x[2 * i] = bf16_lo(p);
            x[2 * i + 1] = bf16_hi(p);
        }
        const float big = max_f32(largest(x), largest(x + 16));
        put_half(b, 0, x, big);
        put_half(b, 1, x + 16, big);
    }

    struct sums { /* of four chains */
        float u[4], v[4];
    };
    BR_DEV struct sums
    none(void)
    {
        return {{0, 0, 0, 0}, {0, 0, 0, 0}};
    }
    BR_DEV float
    low(const struct sums *s)
    {
        return add_rn(add_rn(s->u[0], s->u[1]), add_rn(s->u[2], s->u[3]));
    }
    BR_DEV float
    high(const struct sums *s)
    {
        return add_rn(add_rn(s->v[0], s->v[1]), add_rn(s->v[2], s->v[3]));
    }
};

/* q8_0: block products are exact, then four chains of blocks (block mod 4)
 * inside the segment. */
struct q8_0_weights : bytes_of_x<false> {
    enum {
        COPY = BR_MK_CHUNK_Q8_0,
        ROOM = COPY,
        COPIES = 1,
        SLOTS = 22,
        WARPS = 11,
        TILES = 1
    };
    BR_DEV void
    rows(struct sums *s, u32 from, u32 seg, u32 part, u32 lane)
    {
        const u32 A = from + lane * 16;
        const u32 W = from + 8192 + (lane >> 2) * 32;
        const u32 X = smem_of(S->x) + seg * BR_MK_SEG + (lane & 3) * 8;
        const u32 D = smem_of(scales()) + seg * 64;

        (void)part; /* there is one */
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
                s->u[k] = fma_rn((float)c[0], mul_rn(su[k], sx[k]), s->u[k]);
                s->v[k] = fma_rn((float)c[2], mul_rn(sv[k], sx[k]), s->v[k]);
            }
        }
    }
};

/* q4_k: bytes 0..15 of a pair of blocks, low nibbles the first one's; a block's
 * scale and minimum are d * 6 bits, rounded to f16. Slots have the room of two
 * pages. */
struct q4_k_weights : bytes_of_x<true> {
    enum {
        COPY = BR_MK_CHUNK_Q4_K,
        ROOM = 8192,
        COPIES = 1,
        SLOTS = 24,
        WARPS = 12,
        TILES = 1
    };
    /* A row's scales of four blocks at `at`, their minima 512 bytes on. */
    BR_DEV void
    four(u32 at, float *scale, float *least)
    {
        const u32x2 d = lds64(at), m = lds64(at + 512);

        scale[0] = f16_lo(d.x), scale[1] = f16_hi(d.x);
        scale[2] = f16_lo(d.y), scale[3] = f16_hi(d.y);
        least[0] = f16_lo(m.x), least[1] = f16_hi(m.x);
        least[2] = f16_lo(m.y), least[3] = f16_hi(m.y);
    }
    BR_DEV void
    rows(struct sums *s, u32 from, u32 seg, u32 part, u32 lane)
    {
        const u32 A = from + lane * 16;
        const u32 W = from + 4096 + (lane >> 2) * 32;
        const u32 X = smem_of(S->x) + seg * BR_MK_SEG + (lane & 3) * 8;
        const u32 D = smem_of(scales()) + seg * 64;
        const u32 M = smem_of(sums_of_x()) + seg * 128;

        (void)part;
#pragma unroll 1
        for (u32 b = 0; b < 16; b += 4) {
            float su[4], mu[4], sv[4], mv[4];
            const u32x4 d = lds128(D + b * 4);
            const float sx[4] = {as_f32(d.x), as_f32(d.y), as_f32(d.z),
                                 as_f32(d.w)};
            four(W + b * 2, su, mu);
            four(W + 256 + b * 2, sv, mv);
#pragma unroll
            for (u32 k = 0; k < 4; k++) {
                const u32x4 two = lds128(A + (b + k) / 2 * 512);
                const u32 shift = k & 1 ? 4 : 0, low = 0x0f0f0f0f;
                const u32x2 h = lds64(M + (b + k) * 8);
                const float xs = add_rn(as_f32(h.x), as_f32(h.y));
                i32 c[4];
                mma_s8(c,
                       u32x4{two.x >> shift & low, two.y >> shift & low,
                             two.z >> shift & low, two.w >> shift & low},
                       lds64(X + (b + k) * 32));
                s->u[k] = fma_rn((float)c[0], mul_rn(su[k], sx[k]), s->u[k]);
                s->v[k] = fma_rn((float)c[2], mul_rn(sv[k], sx[k]), s->v[k]);
                s->u[k] = fma_rn(-mu[k], xs, s->u[k]);
                s->v[k] = fma_rn(-mv[k], xs, s->v[k]);
            }
        }
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
        struct F::sums s = F::none();

#pragma unroll
        for (u32 c = 0; c < F::COPIES; c++) {
            const u32 at = (w->count + i) * F::COPIES + c, slot = at % F::SLOTS;
            mbar_wait(smem_of(S->full) + slot * 8, (at / F::SLOTS) & 1);
            F::rows(&s, smem_of(S->ring) + slot * F::ROOM, i % in->segs, c,
                    lane);
            mbar_arrive(smem_of(S->empty) + slot * 8, READERS / 32);
        }
        if ((lane & 3) == 0) {
            S->part[i * 16 + (lane >> 2)] = F::low(&s);
            S->part[i * 16 + 8 + (lane >> 2)] = F::high(&s);
        }
    }
    if (w->t == 0)
        copies_wait(); /* the next phase's instruction */
    bar(1, BR_MK_THREADS);
}
