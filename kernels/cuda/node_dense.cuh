/* node_dense.cuh - tiles of node_tiles.cuh whose numbers came from BF16, in 12 bits
 * each, nothing lost: for steps of few rows, which are bound by their bytes.
 *
 *   number   f16 whose exponent is 16 to 30 and whose last 3 bits are 0 (BF16 has 7 of
 *            10): s 1 eeee mmmmmmm 000, of which 12 bits are told. Of a normal
 *            distribution all but one of 5,000 to 10,000 are such, as a row's largest
 *            is in 2^15 .. 2^16
 *   listed   what is not, up to 8 of 16 rows x 64 columns: as f16, put among the
 *            others before they are multiplied, so sums are those of tiles
 *   memory   64 columns of 128 rows are one piece, [n_in / 64][tiles] of them
 *   lane     (g, c) of warp w has what pack_halves has: of each 16 columns four pairs,
 *            of rows g, g + 8, g, g + 8 of the warp's, columns 2 c, 2 c, 2 c + 8,
 *            2 c + 8. A number >> 3 is 000s1eee emmmmmmm: low bytes of pairs 0, 1 and 2,
 *            3 are words, high bytes of all four half a byte each (s at bit 4, eee at
 *            0 of a byte; of pairs 2, 3 s at bit 3, eee at 5)
 *   alone    one block a multiprocessor, by registers (is_spare): where two are, each
 *            takes apart its numbers half as fast, and the launch ends with them
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
/* Number h of a warp's goes to its list; where: as dense_put reads it. */
BR_DEV void
list_number(u32 *list, u32 *n, u32 where, u32 h)
{
    const u32 i = sts_take32(n, 1);

    if (i < BR_ND_DENSE_LISTED)
        list[i] = 1u << 31 | where << 16 | h;
}

/* Tiles m, a block 128 rows x 64 columns, to pieces xq, or NULL. *met: warps whose list
 * was too short. */
KERNEL
br_nd_dense(ARGS)
{
    __shared__ u32 list[BR_ND_WARPS][BR_ND_DENSE_LISTED], listed[BR_ND_WARPS];
    const u32 lane = tid() & 31, w = tid() >> 5, g = lane >> 2, c = lane & 3;
    const u32 tile = bid(), kb = bid_y();
    u8 *to = (u8 *)a.xq + ((u64)kb * (a.m.sub / 16) + tile) * BR_ND_DENSE_BYTES;

    if (lane < BR_ND_DENSE_LISTED)
        list[w][lane] = 0;
    if (lane == 0)
        listed[w] = 0;
    warp_sync();
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
                    list_number(list[w], &listed[w],
                                j << 8 | odd << 7 | i << 5 | lane, h);
            }
        }
        u32 *mine = (u32 *)(to + w * DENSE_WARP + lane * 16);
        if (!a.xq)
            continue;
        mine[j / 2 * 128 + j % 2 * 2] = low[0];
        mine[j / 2 * 128 + j % 2 * 2 + 1] = low[1];
        mine[256 + j] = high;
    }
    warp_sync();
    if (a.xq && lane < BR_ND_DENSE_LISTED)
        ((u32 *)(to + DENSE_LISTED))[w * BR_ND_DENSE_LISTED + lane] = list[w][lane];
    if (lane == 0 && listed[w] > BR_ND_DENSE_LISTED)
        red_relaxed_add(a.met, 1);
}

/* ---- in a product ---------------------------------------------------------------- */

struct dense_words { /* of a lane */
    u32x4 low[2], high;
    u32 listed; /* the first of the warp's list, or 0 */
};
/* What a lane has for all pieces: where its words and its warp's list lie, and 8, once:
 * not found out again for each piece. */
struct dense_lane {
    u32 at, list, eight;
};
BR_DEV struct dense_lane
dense_lane_of(void)
{
    const u32 lane = tid() & 31, w = tid() / 32;
    struct dense_lane d = {w * DENSE_WARP + lane * 16,
                           DENSE_LISTED + w * BR_ND_DENSE_LISTED * 4,
                           opaque_one() * 8};

    HERE(d.at);
    HERE(d.list);
    HERE(d.eight);
    return d;
}
BR_DEV struct dense_words
dense_read(const struct dense_lane &d, u32 from)
{
    const u32 at = from + d.at;

    return {{lds128(at), lds128(at + 512)},
            lds128(at + 1024),
            lds32(from + d.list)};
}
/* Number e of the list, which is the same in all lanes, takes its place: lane, pair, odd,
 * 16 columns. */
BR_DEV void
dense_put(u32 e, u32x4 (&out)[4])
{
    const u32 at = e >> 21 & 3, j = e >> 24 & 3;
    const u32 how = e >> 23 & 1 ? 0x5410 : 0x3254;
    const u32 here = (e >> 16 & 31) == (tid() & 31) ? at : 4; /* lanes stay together */

#pragma unroll
    for (u32 i = 0; i < 4; i++)
        if (i == j) {
            out[i].x = here == 0 ? prmt(out[i].x, e, how) : out[i].x;
            out[i].y = here == 1 ? prmt(out[i].y, e, how) : out[i].y;
            out[i].z = here == 2 ? prmt(out[i].z, e, how) : out[i].z;
            out[i].w = here == 3 ? prmt(out[i].w, e, how) : out[i].w;
        }
}
/* What is listed of a warp's piece, e the first: of one piece of seven something is. */
BR_DEV void
dense_put_all(u32 e, u32 list, u32x4 (&out)[4])
{
#pragma unroll 1
    for (u32 i = 1; e; i++) {
        dense_put(e, out);
        e = i < BR_ND_DENSE_LISTED ? lds32(list + i * 4) : 0;
    }
}
BR_DEV void
dense_halves(const struct dense_lane &d, const struct dense_words &p, u32 from,
             u32x4 (&out)[4])
{
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        const u32x4 both = p.low[j / 2];
        const u32 a = j % 2 ? both.z : both.x, b = j % 2 ? both.w : both.y;
        const u32 n = j == 0   ? p.high.x
                      : j == 1 ? p.high.y
                      : j == 2 ? p.high.z
                               : p.high.w;
        const u32 h = n & 0x17171717, top = 0x40004000;
        const u32 k = (n >> 5 & 0x07070707) | (n << 1 & 0x10101010);

        /* a multiplication shifts and sets the exponent's highest bit: a shift and an or
         * would take turns with prmt */
        out[j] = {prmt(a, h, 0x5140) * d.eight + top,
                  prmt(a, h, 0x7362) * d.eight + top,
                  prmt(b, k, 0x5140) * d.eight + top,
                  prmt(b, k, 0x7362) * d.eight + top};
        /* here, not before what is waited for: more registers */
        HERE(out[j].x);
        HERE(out[j].y);
        HERE(out[j].z);
        HERE(out[j].w);
    }
    if (p.listed)
        dense_put_all(p.listed, from + d.list, out);
}
