/* node_dense.cuh - tiles of node_tiles.cuh whose numbers came from BF16, in 12 bits
 * each, nothing lost: for steps of few rows, which are bound by their bytes.
 *
 *   number   f16 whose exponent is 16 to 30 and whose last 3 bits are 0 (BF16 has 7 of
 *            10): s 1 eeee mmmmmmm 000, of which 12 bits are told. Of a normal
 *            distribution all but one of 5,000 to 10,000 are such, as a row's largest
 *            is in 2^15 .. 2^16
 *   listed   what is not, up to 32 of 128 rows x 64 columns: as f16, put among the
 *            others before they are multiplied, so sums are those of tiles
 *   memory   64 columns of 128 rows are one piece, [n_in / 64][tiles] of them
 *   lane     (g, c) of warp w has what pack_halves has: of each 16 columns four pairs,
 *            of rows g, g + 8, g, g + 8 of the warp's, columns 2 c, 2 c, 2 c + 8,
 *            2 c + 8. A number >> 3 is 000s1eee emmmmmmm: low bytes of pairs 0, 1 and 2,
 *            3 are words, high bytes of all four half a byte each (s at bit 4, eee at
 *            0 of a byte; of pairs 2, 3 s at bit 3, eee at 5)
 *
 * SPDX-License-Identifier: Apache-2.0 */

enum {
    DENSE_WARP = 32 * 48, /* bytes of 16 rows: two pieces of low bytes, one of high */
    DENSE_LISTED = TILE_ROWS / 16 * DENSE_WARP
};

/* ---- at load ------------------------------------------------------------------ */

BR_DEV bool
is_dense(u32 h)
{
    return (h & 0x4007) == 0x4000 && (h & 0x7c00) != 0x7c00;
}
/* Number h at `place` of its piece goes to the list; which: as dense_put reads it. */
BR_DEV void
list_number(u32 *list, u32 *n, u32 place, u32 h)
{
    const u32 i = sts_take32(n, 1);

    if (i < BR_ND_DENSE_LISTED)
        list[i] = 1u << 31 | place << 16 | h;
}

/* Tiles m, a block 128 rows x 64 columns, to pieces xq, or NULL. *met: those whose list
 * was too short. */
KERNEL
br_nd_dense(ARGS)
{
    __shared__ u32 list[BR_ND_DENSE_LISTED], listed;
    const u32 lane = tid() & 31, w = tid() >> 5, g = lane >> 2, c = lane & 3;
    const u32 tile = bid(), kb = bid_y();
    u8 *to = (u8 *)a.xq + ((u64)kb * (a.m.sub / 16) + tile) * BR_ND_DENSE_BYTES;

    if (tid() < BR_ND_DENSE_LISTED)
        list[tid()] = 0;
    if (tid() == 0)
        listed = 0;
    bar(0, THREADS);
    for (u32 j = 0; j < 4; j++) {
        u32 low[2] = {0, 0}, high = 0;
        for (u32 i = 0; i < 4; i++) {
            const u32 r = tile * TILE_ROWS + w * 16 + i % 2 * 8 + g;
            const u8 *from = (const u8 *)a.m.q +
                             tile_at16(a.m.sub, r, kb * 8 + j * 2 + i / 2);
            const u32 pair = *(const u32 *)(from + c * 4);
            for (u32 odd = 0; odd < 2; odd++) {
                const u32 h = pair >> 16 * odd & 0xffff, b = i % 2 * 2 + odd;
                const u32 s = h >> 15, e = h >> 11 & 7;
                low[i / 2] |= (h >> 3 & 255) << 8 * b;
                high |= (i < 2 ? s << 4 | e : s << 3 | e << 5) << 8 * b;
                if (!is_dense(h) && a.m.d[r] != 0.0f) /* else nobody reads it */
                    list_number(list, &listed,
                                j << 11 | i / 2 << 10 | c << 8 | odd << 7 |
                                    w << 4 | (i & 1) << 3 | g,
                                h);
            }
        }
        u32 *mine = (u32 *)(to + w * DENSE_WARP + lane * 16);
        if (!a.xq)
            continue;
        mine[j / 2 * 128 + j % 2 * 2] = low[0];
        mine[j / 2 * 128 + j % 2 * 2 + 1] = low[1];
        mine[256 + j] = high;
    }
    bar(0, THREADS);
    if (a.xq && tid() < BR_ND_DENSE_LISTED)
        ((u32 *)(to + DENSE_LISTED))[tid()] = list[tid()];
    if (tid() == 0 && listed > BR_ND_DENSE_LISTED)
        red_relaxed_add(a.met, 1);
}

/* ---- in a product ---------------------------------------------------------------- */

struct dense_words { /* of a lane */
    u32x4 low[2], high;
    u32 listed; /* one of the piece's */
};
BR_DEV struct dense_words
dense_read(u32 from)
{
    const u32 lane = tid() & 31, at = from + tid() / 32 * DENSE_WARP + lane * 16;

    return {{lds128(at), lds128(at + 512)},
            lds128(at + 1024),
            lds32(from + DENSE_LISTED + lane * 4)};
}
/* What is listed of this warp's rows takes its place. Places of a piece: 16 columns,
 * second eight, pair, odd; warp, second eight rows, row. */
BR_DEV void
dense_put(u32 listed, u32x4 (&out)[4])
{
    const u32 lane = tid() & 31, w = tid() >> 5;
    u32 mine = ballot(listed >> 31 && (listed >> 20 & 7) == w);

#pragma unroll 1
    for (; mine; mine &= mine - 1) {
        const u32 e = shfl_from(listed, lowest_bit(mine));
        const u32 who = (e >> 16 & 7) * 4 + (e >> 24 & 3);
        const u32 at = (e >> 27 & 3) * 4 + (e >> 26 & 1) * 2 + (e >> 19 & 1);
        const u32 how = e >> 23 & 1 ? 0x5410 : 0x3254;
        const u32 here = lane == who ? at : ~0u; /* lanes stay together */

#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            u32 &x = (&out[i / 4].x)[i % 4];
            x = i == here ? prmt(x, e, how) : x;
        }
    }
}
BR_DEV void
dense_halves(const struct dense_words &p, u32x4 (&out)[4])
{
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        const u32x4 both = p.low[j / 2];
        const u32 a = j % 2 ? both.z : both.x, b = j % 2 ? both.w : both.y;
        const u32 n = j == 0   ? p.high.x
                      : j == 1 ? p.high.y
                      : j == 2 ? p.high.z
                               : p.high.w;
        const u32 h = (n & 0x17171717) | 0x08080808;
        const u32 k =
            (n >> 5 & 0x07070707) | (n << 1 & 0x10101010) | 0x08080808;

        out[j] = {prmt(a, h, 0x5140) << 3, prmt(a, h, 0x7362) << 3,
                  prmt(b, k, 0x5140) << 3, prmt(b, k, 0x7362) << 3};
        /* here, not before what is waited for: more registers */
        asm volatile("" : "+r"(out[j].x), "+r"(out[j].y), "+r"(out[j].z), "+r"(out[j].w));
    }
    dense_put(p.listed, out);
}
