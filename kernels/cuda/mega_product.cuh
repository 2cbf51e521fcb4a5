/* mega_product.cuh - weights times the input vector, for each weight format.
 *
 * A format says in how many copies a chunk comes (16 rows x 512 columns,
 * mega_table.h) or how many chunks in a copy, how many slots for copies that gives,
 * how x lies in shared memory, and how a warp turns a chunk into 16 partial sums.
 *
 * A warp never waits for a barrier two rounds ahead, which its parity could not tell
 * from the last one: either its copies always come to the same slots, or the copy
 * before in a slot is so far back that the loader of both had seen it arrive before
 * it asked for the copy that this warp took last (free_slot).
 * SPDX-License-Identifier: Apache-2.0 */

BR_DEV u32x4
masked(u32x4 a, u32 m)
{
    return {a.x & m, a.y & m, a.z & m, a.w & m};
}

template <class F>
constexpr bool
tells_rounds(void)
{
    constexpr int step = F::WARPS * F::COPIES / F::CHUNKS;

    return F::SLOTS % F::LOADERS == 0 && F::WARPS % F::CHUNKS == 0 &&
           (F::SLOTS % step == 0 || (step % F::LOADERS == 0 &&
                                     F::SLOTS >= step + BR_MK_MAX_DEEP));
}

/* Where a chunk's first copy is; the others lie behind it. */
struct slot {
    u32 from, full, empty, parity;
};

/* A slot goes back only when what was read has arrived. An mbarrier's arrival
 * orders reads against other accesses of the same kind, and a copy is of another
 * one: ptxas issued it with reads under way, and a kernel that kept weights in
 * registers gave other bits now and then. So an arrival follows what hangs on
 * all the reads: the sums' store, or in a chunk's first copy a count of which
 * the sums so far are a part (& 0, which ptxas does not know). */
BR_DEV void
free_after(u32 empty, u32 sums)
{
    mbar_arrive(empty, READERS / 32 + (sums & args.n_workers >> 8));
}

/* 2^n */
BR_DEV float
power(i32 n)
{
    return as_f32((u32)(n + 127) << 23);
}

/* What the words of a tile say besides: the squares' sum, that of x. */
struct from_tile {
    float square, all;
};

/* What takes x as bf16; LIFT: times 2^BR_MK_LIFT, which who makes it does. */
template <bool LIFT>
struct bf16_of_x {
    enum { EIGHTS = 1 }; /* attention's output and the activations come in words of 8 */

    BR_DEV float
    lift(float x)
    {
        return LIFT ? mul_rn(x, power(BR_MK_LIFT)) : x;
    }
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
        u32 p[8];

#pragma unroll
        for (u32 i = 0; i < 8; i++)
            p[i] = pack_bf16(lift(x[2 * i]), lift(x[2 * i + 1]));
        put_pairs(tile, u32x4{p[0], p[1], p[2], p[3]},
                  u32x4{p[4], p[5], p[6], p[7]});
    }
    /* The words of a tile, pairs 0 1 2 | 4 5 6 | 3 7 and the sum of squares. */
    enum { X_WORDS = BR_MK_X_BF16 };
    BR_DEV struct from_tile
    put_words(u32 tile, const u32x4 *v)
    {
        put_pairs(tile, u32x4{v[0].x, v[0].y, v[0].z, v[2].x},
                  u32x4{v[1].x, v[1].y, v[1].z, v[2].y});
        return {as_f32(v[2].z), 0.0f};
    }
    BR_DEV void
    end_tile(u32 tile, float all)
    {
        (void)tile, (void)all;
    }
    /* Lane i of 16 has value i of a tile, and the square that it adds. */
    BR_DEV void
    give_tile(u32x4 *to, u32 tiles, u32 i, float x, float sum, u32 epoch,
              bool send)
    {
#pragma unroll
        for (u32 m = 1; m < 16; m <<= 1)
            sum = add_rn(sum, shfl_xor_f(sum, m));
        x = lift(x);
        const u32 p = pack_bf16(x, shfl_xor_f(x, 1));
        const u32 p1 = shfl_xor(p, 2), p2 = shfl_xor(p, 4), p4 = shfl_xor(p, 8);

        if (send && (i & 7) == 0)
            st_word(to + (i >> 3) * tiles, u32x4{p, p1, p2, epoch});
        if (send && i == 6)
            st_word(to + 2 * tiles, u32x4{p, p4, as_u32(sum), epoch});
    }
};

/* bf16: one chain of 32 mma for the segment. */
struct bf16_weights : bf16_of_x<false> {
    enum {
        COPY = BR_MK_CHUNK_BF16 / 2,
        COPIES = 2,
        CHUNKS = 1,
        SLOTS = 24,
        WARPS = 12,
        LOADERS = 2,
        LATE = 8 /* of so many makers one may be when words are looked at */
    };

    /* Sums so far of rows lane / 4 and lane / 4 + 8. */
    struct sums {
        float c[4];
    };
    BR_DEV struct sums
    none(void)
    {
        return {{0.0f, 0.0f, 0.0f, 0.0f}};
    }
    /* Four k-steps of both operands, from k on. Only column 0 of x is looked at, so
     * only its four lanes read it: 12 warps that begin at once are bound by shared
     * memory. */
    BR_DEV void
    take4(u32x4 *a, u32x2 *x, u32 A, u32 X, u32 k, u32 lane)
    {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            a[i] = lds128(A + (k + i) * 512);
            lds64_if(&x[i], X + (k + i) * 32, lane < 4);
        }
    }
    /* Both copies in one chain: the second one's operands are asked for while the
     * first one's last products run. All places are one and a constant. (Copy by copy,
     * in a loop of 8 k-steps: 1.6 % slower.) */
    BR_DEV void
    chunk(struct sums *s, const struct slot *at, u32 seg, u32 lane)
    {
        const u32 A = at->from + lane * 16;
        const u32 X = smem_of(S->x) + seg * 1024 + (lane & 3) * 8;
        u32x4 a[2][4];
        u32x2 x[2][4] = {};

        mbar_wait(at->full, at->parity);
        take4(a[0], x[0], A, X, 0, lane);
#pragma unroll
        for (u32 g = 0; g < 8; g++) {
            if (g < 7 && g != 3)
                take4(a[(g + 1) & 1], x[(g + 1) & 1], A, X, (g + 1) * 4, lane);
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                mma_bf16(s->c, a[g & 1][k], x[g & 1][k]);
            if (g == 3) {
                free_after(at->empty, as_u32(s->c[0]));
                mbar_wait(at->full + 8, at->parity);
                take4(a[0], x[0], A, X, 16, lane);
            }
        }
    }
    BR_DEV void
    put_sums(float *part, const struct sums *s, u32 lane)
    {
        if ((lane & 3) == 0) {
            part[lane >> 2] = s->c[0];
            part[8 + (lane >> 2)] = s->c[2];
        }
    }
};

/* bf16 in 12 bits, without a loss: of 8 exponent bits a row's weights use 4, but for
 * one of 8192 or so (a normal distribution), which is listed (mega_table.h). A pair
 * is s0000eee e mmmmmmm twice: an and makes four high bytes of the nibbles, another one
 * of the word turned by 4 bits the other four, and four prmt put low bytes beside
 * them; 7 instructions for 8 weights. So exponents begin at 1, and zero is zero; what
 * that takes from products, 2^-126 and less, x has more, and the row's factor gives
 * back: a sum is that of bf16_weights, to the bit, but for the listed. */
struct bf12_weights : bf16_of_x<true> {
    enum {
        COPY = BR_MK_CHUNK_BF12,
        COPIES = 1,
        CHUNKS = 1,
        SLOTS = 16,
        WARPS = 16,
        LOADERS = 2,
        LATE = 8
    };
    struct sums {
        float c[4];
        float listed[2]; /* of x that is lifted and whole weights */
    };
    BR_DEV struct sums
    none(void)
    {
        return {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f}};
    }
    /* Four k-steps. */
    struct four {
        u32x4 low[2], high;
        u32x2 x[4];
    };
    BR_DEV void
    take(struct four *f, u32 A, u32 X, u32 lane)
    {
        f->low[0] = lds128(A);
        f->low[1] = lds128(A + 512);
        f->high = lds128(A + 1024);
#pragma unroll
        for (u32 i = 0; i < 4; i++)
            lds64_if(&f->x[i], X + i * 32, lane < 4);
    }
    BR_DEV u32x4
    operand(const struct four *f, u32 k)
    {
        const u32 low = (&f->low[k / 2].x)[k % 2 * 2];
        const u32 more = (&f->low[k / 2].x)[k % 2 * 2 + 1];
        const u32 n = (&f->high.x)[k];
        const u32 h = n & 0x87878787, g = (n << 4 | n >> 28) & 0x87878787;

        return {prmt(low, h, 0x5140), prmt(low, h, 0x7362),
                prmt(more, g, 0x5140), prmt(more, g, 0x7362)};
    }
    BR_DEV void
    add_listed(struct sums *s, u32 e, u32 X, u32 lane)
    {
        const u32 row = (e >> 10 & 15) - (lane >> 2);
        const float y = mul_rn(bf16_hi(e), bf16_lo(lds16(X + (e & 1023))));

        if (row == 0)
            s->listed[0] = add_rn(s->listed[0], y);
        if (row == 8)
            s->listed[1] = add_rn(s->listed[1], y);
    }
    /* Those of groups, which are few or none: 1 us each from memory. */
    BR_DEV void
    add_groups(struct sums *s, u32 link, u32 X, u32 lane)
    {
#pragma unroll 1
        while (link) {
            const u32 v = args.more[(link >> 15) * BR_MK_GROUP + lane];
#pragma unroll 1
            for (u32 i = 0; i < BR_MK_GROUP - 1; i++) {
                const u32 e = shfl_from(v, i);
                if (!e)
                    break;
                add_listed(s, e, X, lane);
            }
            link = shfl_from(v, BR_MK_GROUP - 1);
        }
    }
    /* The listed weights, in their order; what the last one is, if that is no weight.
     * While products run. */
    BR_DEV u32
    listed(struct sums *s, u32 from, u32 X, u32 lane)
    {
#pragma unroll 1
        for (u32 at = from; at != from + BR_MK_LISTED * 4; at += 4) {
            const u32 e = lds32(at);
            if (!e || (e & BR_MK_LINK))
                return e;
            add_listed(s, e, X, lane);
        }
        return 0;
    }
    /* In one chain, as bf16_weights. */
    BR_DEV void
    chunk(struct sums *s, const struct slot *at, u32 seg, u32 lane)
    {
        const u32 A = at->from + lane * 16;
        const u32 X = smem_of(S->x) + seg * 1024, XL = X + (lane & 3) * 8;
        struct four f[2] = {};
        u32 more = 0;

        mbar_wait(at->full, at->parity);
        take(&f[0], A, XL, lane);
#pragma unroll
        for (u32 g = 0; g < 8; g++) {
            if (g < 7)
                take(&f[(g + 1) & 1], A + (g + 1) / 4 * BR_MK_BF12_HALF + (g + 1) % 4 * 1536,
                     XL + (g + 1) * 128, lane);
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                mma_bf16(s->c, operand(&f[g & 1], k), f[g & 1].x[k]);
            if (g == 3)
                more = listed(s, at->from + BR_MK_BF12_LIST, X, lane);
        }
        const u32 by = lds16(at->from + BR_MK_BF12_ROWS + (lane >> 2) * 2);
        add_groups(s, more, X, lane);
#pragma unroll
        for (u32 i = 0; i < 2; i++)
            s->c[2 * i] = fma_rn(s->c[2 * i], as_f32((by >> 8 * i & 255) << 23),
                                 mul_rn(s->listed[i], power(-BR_MK_LIFT)));
    }
    BR_DEV void
    put_sums(float *part, const struct sums *s, u32 lane)
    {
        if ((lane & 3) == 0) {
            part[lane >> 2] = s->c[0];
            part[8 + (lane >> 2)] = s->c[2];
        }
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
    /* The bytes q of a tile; their sum. */
    BR_DEV float
    put_bytes(u32 tile, u32x4 q, float d)
    {
        put_four(tile, 0, q.x);
        put_four(tile, 1, q.y);
        put_four(tile, 2, q.z);
        put_four(tile, 3, q.w);
        sts32(d_at(tile), as_u32(LEAST && (tile & 2) ? mul_rn(d, 0.0625f) : d));
        if (!LEAST)
            return 0.0f;
        return mul_rn(d, (float)sum_of_bytes(
                             q.x, sum_of_bytes(
                                      q.y, sum_of_bytes(
                                               q.z, sum_of_bytes(q.w, 0)))));
    }
    /* For all lanes: the block's other tile is in the lane beside. */
    BR_DEV void
    end_tile(u32 tile, float s)
    {
        if (!LEAST)
            return;
        const float all = add_rn(s, shfl_xor_f(s, 1));
        const u32 high = pack_bf16(all, 0.0f);
        const u32 v = tile & 1 ? pack_bf16(all - bf16_lo(high), 0.0f) : high;
        sts16(smem_of(S->x) + SUMS_AT + (tile & 1) * SUMS + tile / 2 * 2, v);
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
        end_tile(tile, put_bytes(tile, u32x4{v[0], v[1], v[2], v[3]},
                                 mul_rn(big, 1.0f / 127.0f)));
    }
    /* The words of a tile: bytes 0..11 | 12..15, d, the sum of squares. */
    enum { X_WORDS = BR_MK_X_Q8_0 };
    BR_DEV struct from_tile
    put_words(u32 tile, const u32x4 *v)
    {
        const u32x4 q = {v[0].x, v[0].y, v[0].z, v[1].x};

        return {as_f32(v[1].z), put_bytes(tile, q, as_f32(v[1].y))};
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

    /* Two blocks of weights, even and odd, go through one accumulator: column n of x
     * is 0 but for half n & 1 of block n >> 1 & 1, so lane c = lane & 3 of four gets
     * the sums of both halves (each has its d) of block c & 1, for rows lane / 4 and
     * 8 on. It goes on with one of these rows (row_of): 16 rows times two chains of
     * blocks, one a lane. All columns alike took twice the instructions and two words
     * of x a lane and block: Q4_K 2.8 % slower, Q8_0 1.6. */
    struct sums {
        float y;
    };
    BR_DEV struct sums
    none(void)
    {
        return {0.0f};
    }
    template <bool SIGNED>
    BR_DEV void
    pair(struct sums *s, u32x4 even, u32x4 odd, u32 x, u32x2 d, u32 scales,
         u32 lane)
    {
        const u32 part = lane >> 2 & 3;
        const u32x2 x0 = {part == 0 ? x : 0, part == 1 ? x : 0};
        const u32x2 x1 = {part == 2 ? x : 0, part == 3 ? x : 0};
        i32 c[4] = {0, 0, 0, 0};

        if (SIGNED) {
            mma_s8_32(c, even, x0);
            mma_s8_32(c, odd, x1);
        } else {
            mma_u8_32(c, even, x0);
            mma_u8_32(c, odd, x1);
        }
        const float lo = (float)(lane & 2 ? c[2] : c[0]);
        const float hi = (float)(lane & 2 ? c[3] : c[1]);
        const float u = fma_rn(hi, as_f32(d.y), mul_rn(lo, as_f32(d.x)));
        s->y = fma_rn(u, f16_lo(scales >> (lane & 1) * 16), s->y);
    }
    /* Where a lane's part of x is, for a pair of blocks; and its row. */
    BR_DEV u32
    x_at(u32 lane)
    {
        return (lane >> 3 & 1) * 32 + (lane & 3) * 8 + (lane >> 2 & 1) * 4;
    }
    BR_DEV u32
    row_of(u32 lane)
    {
        return (lane >> 2) + (lane & 2) * 4;
    }
    BR_DEV void
    put_sums(float *part, const struct sums *s, u32 lane)
    {
        const float y = add_rn(s->y, shfl_xor_f(s->y, 1));

        if (!(lane & 1))
            part[row_of(lane)] = y;
    }
};

/* q8_0: products of 16 are exact, then two chains of blocks, even
 * and odd, inside the segment. */
struct q8_0_weights : bytes_of_x<false> {
    enum {
        COPY = BR_MK_CHUNK_Q8_0,
        COPIES = 1,
        CHUNKS = 1,
        SLOTS = 22,
        WARPS = 11,
        LOADERS = 2,
        LATE = 4
    };
    /* Half a chunk: 8 blocks and their scales. */
    BR_DEV void
    rows(struct sums *s, u32 from, u32 seg, u32 part, u32 lane)
    {
        const u32 A = from + lane * 16;
        const u32 X = smem_of(S->x) + seg * BR_MK_SEG + part * (BR_MK_SEG / 2) +
                      x_at(lane);
        const u32 D = d_at(seg * 32 + part * 16) + (lane & 1) * 8;
        const u32x4 w = lds128(from + 4096 + row_of(lane) * 16);

#pragma unroll
        for (u32 b = 0; b < 8; b += 2) {
            const u32x4 even = lds128(A + b * 512);
            const u32x4 odd = lds128(A + b * 512 + 512);
            pair<true>(s, even, odd, lds32(X + b * 32), lds64(D + b * 8),
                       (&w.x)[b / 2], lane);
        }
    }
    BR_DEV void
    chunk(struct sums *s, const struct slot *at, u32 seg, u32 lane)
    {
        mbar_wait(at->full, at->parity);
        rows(s, at->from, seg, 0, lane);
        rows(s, at->from + COPY / 2, seg, 1, lane);
    }
};

/* q4_k: bytes 0..15 of a pair of blocks, low nibbles the first one's, high ones
 * as 16 times their value; a block's scale is d * 6 bits, rounded to f16. The
 * minima stay 6 bits, an operand of one mma with the sums of x: columns are
 * sums and what bf16 leaves of them, of the first 256 values and the others.
 * 16 warps, the gatherers too: DOWN's 16 chunks in one round, not two, GLU's 32 in two,
 * not three (1B 1.2 % faster; Q8_0, 22 chunks in slots, 1 % slower). */
struct q4_k_weights : bytes_of_x<true> {
    enum {
        COPY = BR_MK_PAIR_Q4_K,
        COPIES = 1,
        CHUNKS = 2,
        SLOTS = 20,
        WARPS = 16,
        LOADERS = 2,
        LATE = 2
    };
    /* The minima's part, for the even blocks' lanes. */
    BR_DEV void
    least(struct sums *s, u32 from, u32 seg, u32 lane)
    {
        const u32 col = lane >> 2 & 3;
        const u32 at = smem_of(S->x) + SUMS_AT + (col & 1) * SUMS + seg * 32 +
                       (col & 2) * 8 + (lane & 3) * 4;
        const u32x2 m = lds64(from + 4096 + 512 + lane * 8);
        const u32 x = lds32(at);
        /* d of the minima, of the first 256 values and the others */
        const u32 d = lds32(from + 4096 + 512 + 256 + row_of(lane) * 4) >>
                      (lane & 1) * 16;
        float c[4];

        mma_bf16_zero(
            c,
            u32x4{bf16_of_bytes(m.x, 0x4140), bf16_of_bytes(m.x, 0x4342),
                  bf16_of_bytes(m.y, 0x4140), bf16_of_bytes(m.y, 0x4342)},
            u32x2{col & 2 ? 0 : x, col & 2 ? x : 0});
        const float u = mul_rn(f16_lo(d), lane & 2 ? add_rn(c[2], c[3])
                                                   : add_rn(c[0], c[1]));
        const float all = add_rn(u, shfl_xor_f(u, 1));
        s->y = lane & 1 ? 0.0f : -all;
    }
    BR_DEV void
    chunk(struct sums *s, const struct slot *at, u32 seg, u32 lane)
    {
        const u32 from = at->from;
        const u32 A = from + lane * 16;
        const u32 W = from + 4096 + row_of(lane) * 32;
        const u32 X = smem_of(S->x) + seg * BR_MK_SEG + x_at(lane);
        const u32 D = d_at(seg * 32) + (lane & 1) * 8;

        mbar_wait(at->full, at->parity);
        least(s, from, seg, lane);
#pragma unroll
        for (u32 b = 0; b < 16; b += 8) {
            const u32x4 w = lds128(W + b * 2);
#pragma unroll
            for (u32 k = 0; k < 8; k += 2) {
                const u32x4 two = lds128(A + (b + k) / 2 * 512);
                pair<false>(s, masked(two, 0x0f0f0f0f), masked(two, 0xf0f0f0f0),
                            lds32(X + (b + k) * 32), lds64(D + (b + k) * 8),
                            (&w.x)[k / 2], lane);
            }
        }
    }
};

/* Copies that n chunks come in. */
template <class F>
BR_DEV u32
copies_of(u32 n)
{
    return (n * F::COPIES + F::CHUNKS - 1) / F::CHUNKS;
}

/* Where a warp's next chunk is. */
struct turn {
    u32 slot, parity;
};
template <class F>
BR_DEV struct turn
first_turn(const struct worker *w)
{
    const u32 at = w->count + (w->t >> 5) * F::COPIES / F::CHUNKS;

    return {at % F::SLOTS, at / F::SLOTS & 1};
}
template <class F>
BR_DEV void
pass_turn(struct turn *t)
{
    constexpr u32 step = F::WARPS * F::COPIES / F::CHUNKS % F::SLOTS;

    t->slot += step;
    if (!step || t->slot >= F::SLOTS) {
        t->slot -= step ? (u32)F::SLOTS : 0;
        t->parity ^= 1;
    }
}

/* The chunks of a phase: chunk i goes to warp i mod WARPS and leaves its 16
 * partial sums at part[16 i]. Of a copy of two chunks each warp gives its half back, the
 * last one of an odd number both. */
template <class F>
BR_DEV void
multiply(const struct worker *w, const struct br_mk_inst *in, u32 over,
         struct turn turn)
{
    static_assert(tells_rounds<F>(), "slots");
    const u32 lane = w->t & 31, warp = w->t >> 5, segs = in->segs;
    const u32 end = warp < F::WARPS ? in->n_tiles * segs : 0;

#pragma unroll 1
    for (u32 i = warp; i < end; i += F::WARPS) {
        struct F::sums s = F::none();
        const u32 seg = i - (i * over >> 12) * segs, slot = turn.slot;
        const struct slot at = {smem_of(S->ring) + slot * F::COPY +
                                    i % F::CHUNKS * (F::COPY / F::CHUNKS),
                                smem_of(S->full) + slot * 8,
                                smem_of(S->empty) + slot * 8, turn.parity};

        F::chunk(&s, &at, seg, lane);
        F::put_sums(S->part + i * 16, &s, lane);
        const bool both = F::CHUNKS == 2 && i % 2 == 0 && i + 1 == end;
        mbar_arrive(at.empty + (F::COPIES - 1) * 8,
                    READERS / 32 / F::CHUNKS << both);
        pass_turn<F>(&turn);
    }
}
