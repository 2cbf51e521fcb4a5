/* node_packed.cuh - weights in blocks, packed, for the products of node_tiles.cuh.
 *
 * What a file keeps as integers with a scale (and a minimum) a block stays so in
 * memory and becomes f16 in registers, as wgmma's first operand; all else is the
 * product of F16 weights. Fast arithmetic: a scale has 11 bits, and so has a weight
 * (scale * q - minimum is rounded once), under a power of two of its row; activations
 * are f16, where exact arithmetic rounds them to 8 bits.
 *
 *   memory   64 columns of 128 rows are one piece, [n_in / 64][tiles] of them:
 *            codes, then scales; pack_code_at and pack_scale_at say where.
 *   lane     (g, c) = (lane / 4, lane % 4) of warp w has rows 16 w + g and + 8, of
 *            each 16 columns 2 c, 2 c + 1 and those + 8: 16 or 32 bytes of codes,
 *            16 bytes of scales.
 *   number   a byte or four bits b below 0x64: 1024 + b as f16, exact
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_NODE_PACKED_CUH
#define BR_NODE_PACKED_CUH

enum { TILE_ROWS = BR_ND_TILE_ROWS, PACK_MOST = BR_ND_PACK_BYTES(BR_ND_PACK_8) };

BR_DEV u32
pack_bytes(u32 kind)
{
    return BR_ND_PACK_BYTES(kind);
}

/* The factor that the largest number of a row, as bits, is stored under, and
 * what numbers are multiplied by. Infinities and what is no number stay so. */
BR_DEV void
row_scale(u32 top, float *d, float *inv)
{
    u32 e = top >> 23;

    if (e == 0xff)
        e = 127 + 14;
    e = e < 16 ? 16 : e;
    *d = as_f32((e - 14) << 23);
    *inv = as_f32((127 + 127 + 14 - e) << 23);
}

BR_DEV u32
max_u32(u32 a, u32 b)
{
    return a > b ? a : b;
}
BR_DEV u32
bits_of(float x)
{
    return as_u32(x) & 0x7fffffff;
}

/* ---- at load ------------------------------------------------------------------ */

/* Of row `to`, in its piece: word i of its codes, of four or eight columns. */
BR_DEV u32
pack_code_at(u32 kind, u32 to, u32 i)
{
    const u32 w = to % TILE_ROWS / 16, half = to % 16 / 8, g = to % 8;
    const u32 c = i % 4, j = i / 4; /* of 16 or 32 columns */

    if (kind == BR_ND_PACK_4_MIN)
        return (w * 32 + g * 4 + c) * 16 + j * 8 + half * 4;
    return ((w * 2 + j / 2) * 32 + g * 4 + c) * 16 + j % 2 * 8 + half * 4;
}
/* Two f16 of 32 columns. */
BR_DEV u32
pack_scale_at(u32 kind, u32 to, u32 i)
{
    return pack_bytes(kind) - BR_ND_PACK_SCALES + to % TILE_ROWS / 16 * 128 +
           to % 8 * 16 + i * 8 + to % 16 / 8 * 4;
}

/* w = s (code - off) - m of what holds for the 16 columns from k on. */
struct pack_scale {
    float s, m;
    i32 off;
};
BR_DEV struct pack_scale
pack_scale_of(const struct br_nd_args &a, u32 r, u32 k)
{
    const u32 K = a.m.n_in;
    const u64 b = (u64)r * (K / a.m.block) + k / a.m.block;
    const u64 i = (u64)r * (K / a.m.sub) + k / a.m.sub;
    struct pack_scale p = {a.m.d[b], a.m.dmin ? a.m.dmin[b] : 0.0f, 0};

    if (a.m.scale)
        p.s = p.s * (float)a.m.scale[i];
    if (a.m.min)
        p.m = p.m * (float)a.m.min[i];
    if (a.op == BR_ND_PACK_8)
        p.off = 128;
    if (a.op == BR_ND_PACK_4_MIN && !a.m.dmin) { /* -8 .. 7 */
        p.off = 8;
        p.m = p.s * 8.0f;
    }
    return p;
}

BR_DEV u32
half_at(const u8 *p)
{
    return p[0] | (u32)p[1] << 8;
}

/* Number k of the block at p, as model/qint.h has it. */
BR_DEV u32
unpacked(u32 file, const u8 *p, u32 k)
{
    switch (file) {
    case BR_ND_FILE_Q8_0: return p[2 + k];
    case BR_ND_FILE_Q4_0: return (p[2 + k % 16] >> k / 16 * 4 & 15) - 8u;
    case BR_ND_FILE_Q6_K: {
        const u32 half = k / 128, row = k / 32 % 4, col = k % 32;
        return ((p[half * 64 + row % 2 * 32 + col] >> row / 2 * 4 & 15) |
                (p[128 + half * 32 + col] >> 2 * row & 3) << 4) -
               32u;
    }
    default: {
        const u32 j = k / 32, i = k % 32;
        const bool five = file == BR_ND_FILE_Q5_K;
        const u32 q =
            p[(five ? 48 : 16) + j / 2 * 32 + i] >> j % 2 * 4 & 15;
        return five ? q | (u32)(p[16 + i] >> j & 1) << 4 : q;
    }
    }
}

/* ---- in a product ---------------------------------------------------------------- */

/* What a form's bits mean, as selectors and constants: no branch but one. */
struct pack_form {
    bool four;
    u32 scales;            /* where they begin */
    u32 even, odd, lowest; /* prmt: of two f16, a 16's scale and the minimum */
    u32 zero;              /* 1024 + the code that is 0 */
};
BR_DEV struct pack_form
pack_form_of(u32 kind)
{
    const bool eight = kind == BR_ND_PACK_8;

    return {kind == BR_ND_PACK_4_MIN,
            pack_bytes(kind) - BR_ND_PACK_SCALES,
            0x1010,
            eight ? 0x3232u : 0x1010u,
            eight ? 0x4444u : 0x3232u,
            eight ? 0x64806480u : 0x64006400u};
}

struct pack_words { /* of a lane; codes[1] of bytes only */
    u32x4 codes[2], scales;
};
BR_DEV struct pack_words
pack_read(const struct pack_form &f, u32 from)
{
    const u32 lane = tid() & 31, w = tid() >> 5;
    struct pack_words p;

    p.scales = lds128(from + f.scales + w * 128 + lane / 4 * 16);
    if (f.four) {
        p.codes[0] = p.codes[1] = lds128(from + (w * 32 + lane) * 16);
    } else {
        p.codes[0] = lds128(from + (w * 64 + lane) * 16);
        p.codes[1] = lds128(from + (w * 64 + 32 + lane) * 16);
    }
    return p;
}

/* Codes above 1024, of a row's 16 columns: the first eight, the others. */
BR_DEV u32x2
pack_codes(bool four, u32 v, u32 odd)
{
    const u32 low = four ? v >> 8 * odd : v;

    if (four)
        return {(low & 0x000f000f) | 0x64006400,
                (low >> 4 & 0x000f000f) | 0x64006400};
    return {prmt(v, 0x64646464, 0x4140), prmt(v, 0x64646464, 0x4342)};
}
BR_DEV u32x2
pack_row(const struct pack_form &f, u32 v, u32 scale, u32 odd)
{
    const u32x2 code = pack_codes(f.four, v, odd);
    const u32 s = prmt(scale, 0, odd ? f.odd : f.even);
    const u32 m = prmt(scale, 0, f.lowest);

    return {fma_f16x2(sub_f16x2(code.x, f.zero), s, m),
            fma_f16x2(sub_f16x2(code.y, f.zero), s, m)};
}
BR_DEV void
pack_halves(const struct pack_form &f, const struct pack_words &p,
            u32x4 (&out)[4])
{
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        const u32 odd = j % 2, h = j / 2;
        const u32x4 eights = p.codes[h];
        const u32 up = f.four   ? (h ? p.codes[0].z : p.codes[0].x)
                       : odd ? eights.z
                             : eights.x;
        const u32 low = f.four   ? (h ? p.codes[0].w : p.codes[0].y)
                        : odd ? eights.w
                              : eights.y;
        const u32x2 one =
            pack_row(f, up, h ? p.scales.z : p.scales.x, odd);
        const u32x2 two =
            pack_row(f, low, h ? p.scales.w : p.scales.y, odd);
        out[j] = {one.x, two.x, one.y, two.y};
    }
}

/* Number k of row r of packed tiles m, without the row's factor: the bits that a
 * product has. */
BR_DEV float
pack_number(const struct br_nd_mat &m, u32 r, u32 k)
{
    const bool four = m.kind == BR_ND_PACK_4_MIN;
    const struct pack_form f = pack_form_of(m.kind);
    const u32 bytes = pack_bytes(m.kind), c = k % 8 / 2, odd = k % 2;
    const u8 *at = (const u8 *)m.q + (u64)(k / 64) * (m.sub / 16) * bytes +
                   (u64)(r / TILE_ROWS) * bytes;
    const u32 word = k % 64 / (four ? 32 : 16) * 4 + c;
    const u32 n = four ? k % 32 / 8 + odd * 4 : k % 16 / 8 * 2 + odd;
    const u32 code = *(const u32 *)(at + pack_code_at(m.kind, r, word)) >>
                     (four ? 4 : 8) * n;
    const u32 scale = *(const u32 *)(at + pack_scale_at(m.kind, r, k % 64 / 32));

    return f16_lo(fma_f16x2(
        sub_f16x2((code & (four ? 15 : 255)) | 0x6400, f.zero),
        prmt(scale, 0, k % 32 / 16 ? f.odd : f.even), prmt(scale, 0, f.lowest)));
}

/* READ: weights are in registers. */
template <bool READ, u32 HALF>
BR_DEV void
tile_mma(float (&sum)[HALF], u32x4 in, u64 w, u64 x, bool more)
{
    if constexpr (READ)
        wg_mma_r(sum, in, x, more);
    else
        wg_mma(sum, w, x, more);
}

#endif
