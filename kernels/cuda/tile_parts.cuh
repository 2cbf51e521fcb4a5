/* tile_parts.cuh - where numbers of tiles lie (node_tiles.cuh), and how a row becomes
 * such.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TILE_PARTS_CUH
#define BR_TILE_PARTS_CUH

enum {
    ATOM = 1024,                  /* bytes of 8 rows x 64 columns */
    W_BYTES = TILE_ROWS / 8 * ATOM /* of 64 columns of a tile's weights */
};

/* Where the 16 bytes of columns 8 c .. of a row are, in bytes. */
BR_DEV u64
tile_at16(u32 groups, u32 r, u32 c)
{
    return ((u64)(c / 8) * groups + r / 8) * ATOM + r % 8 * 128 +
           ((c ^ r) % 8) * 16;
}

/* x[0..7] as f16 */
BR_DEV u32x4
pack8(const float *x, float by)
{
    return {pack_f16(x[0] * by, x[1] * by), pack_f16(x[2] * by, x[3] * by),
            pack_f16(x[4] * by, x[5] * by), pack_f16(x[6] * by, x[7] * by)};
}

/* The block's largest v and sum of s, in all threads; each, sums: a word a warp. */
BR_DEV u32
block_max(u32 v, float *s, u32 *each, u32 *sums)
{
    const u32 lane = tid() & 31, n = block_dim() / 32;

    for (u32 m = 16; m; m >>= 1) {
        v = max_u32(v, shfl_xor(v, m));
        *s = *s + shfl_xor_f(*s, m);
    }
    if (lane == 0) {
        each[tid() >> 5] = v;
        sums[tid() >> 5] = as_u32(*s);
    }
    bar(0, block_dim());
    v = lane < n ? each[lane] : 0;
    *s = as_f32(lane < n ? sums[lane] : 0);
    for (u32 m = 16; m; m >>= 1) {
        v = max_u32(v, shfl_xor(v, m));
        *s = *s + shfl_xor_f(*s, m);
    }
    return v;
}
BR_DEV void
load4(float *x, const float *p)
{
    const u32x4 a = ld16(p);

    x[0] = as_f32(a.x), x[1] = as_f32(a.y);
    x[2] = as_f32(a.z), x[3] = as_f32(a.w);
}

#endif
