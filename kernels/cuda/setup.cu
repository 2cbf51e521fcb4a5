/* setup.cu - fills, re-lays and checks weights on the device.
 *
 * fill_*     random weights of a real shape, for benchmarks
 * repack     row-major bf16 -> the workers' streams (mega_table.h)
 * naive_*    the same transformer the obvious way: one thread block a row,
 *            f32 sums in whatever order; what the fast kernels are checked by
 * SPDX-License-Identifier: Apache-2.0 */
#include "device.cuh"
#include "mega_table.h"

BR_DEV u64
gtid(void)
{
    return (u64)bid() * block_dim() + tid();
}
BR_DEV u64
gsize(void)
{
    return (u64)grid_dim() * block_dim();
}

/* splitmix64: a good enough hash of the index */
BR_DEV u64
mix(u64 x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* Near-normal: the sum of four uniforms, variance scale^2. */
BR_DEV float
noise(u64 i, u64 seed, float scale)
{
    u64 r = mix(i ^ mix(seed));
    float s = 0.0f;

    for (u32 k = 0; k < 4; k++)
        s += (float)(u32)((r >> (16 * k)) & 0xffff) * (1.0f / 65536.0f) - 0.5f;
    return s * scale * 1.7320508f;
}

extern "C" __global__ void
br_fill_bf16(u32 *dst, u64 pairs, u64 seed, float scale)
{
    for (u64 i = gtid(); i < pairs; i += gsize())
        dst[i] = pack_bf16(noise(2 * i, seed, scale),
                           noise(2 * i + 1, seed, scale));
}

extern "C" __global__ void
br_fill_f32(float *dst, u64 n, u64 seed, float mean, float scale)
{
    for (u64 i = gtid(); i < n; i += gsize())
        dst[i] = mean + noise(i, seed, scale);
}

/* Blocks of Q8_0 as a model file has them: f16 scale, 32 bytes; variance
 * scale^2. */
extern "C" __global__ void
br_fill_q8_0(u16 *dst, u64 n_blocks, u64 seed, float scale)
{
    for (u64 i = gtid(); i < n_blocks; i += gsize()) {
        u64 r = mix(i ^ mix(seed));
        u16 *b = dst + i * 17;
        /* uniform bytes -127..127 have deviation 73.3 */
        b[0] = (u16)f16_of(scale / 73.3f *
                           (0.75f + (float)(u32)(r & 0xffff) / 131072.0f));
        for (u32 k = 0; k < 16; k++) {
            r = mix(r);
            u32 lo = ((u32)(r & 0xffff) * 255 >> 16) - 127;
            u32 hi = ((u32)(r >> 16 & 0xffff) * 255 >> 16) - 127;
            b[1 + k] = (u16)((lo & 255) | hi << 8);
        }
    }
}

/* Block j of 8 of a superblock of Q4_K (d, dmin, 12 bytes of 6-bit numbers, 128
 * bytes of nibbles): its numbers, its scale and minimum. */
BR_DEV void
numbers_of_q4_k(const unsigned char *b, u32 j, u32 *s, u32 *m)
{
    const unsigned char *q = b + 4;

    *s = j < 4 ? q[j] & 63 : (q[j + 4] & 15) | (q[j - 4] >> 6) << 4;
    *m = j < 4 ? q[j + 4] & 63 : q[j + 4] >> 4 | (q[j] >> 6) << 4;
}
BR_DEV void
scale_of_q4_k(const unsigned char *b, u32 j, float *scale, float *least)
{
    const u32 d = *(const u32 *)b;
    u32 s, m;

    numbers_of_q4_k(b, j, &s, &m);
    *scale = f16_lo(d) * (float)s;
    *least = f16_hi(d) * (float)m;
}

/* Superblocks of Q4_K; mean 0, variance scale^2: d s q - 7.5 d m with uniform s,
 * m < 64 and q < 16 has a deviation of 258 d. */
extern "C" __global__ void
br_fill_q4_k(u32 *dst, u64 n, u64 seed, float scale)
{
    for (u64 i = gtid(); i < n; i += gsize()) {
        u64 r = mix(i ^ mix(seed));
        u32 *b = dst + i * 36;
        b[0] = f16_of(scale / 258.0f) | f16_of(scale / 34.4f) << 16;
        for (u32 k = 1; k < 36; k++) {
            r = mix(r);
            b[k] = (u32)r;
        }
    }
}

/* Row r of tile: with b, a tile is 8 rows of a and 8 of b (gate, up). */
BR_DEV u32
source_row(u32 tile, u32 row, bool two)
{
    return two ? tile * 8 + (row & 7) : tile * 16 + row;
}

/* The same for Q8_0: twice 8 blocks of 32 lanes, then their scales. */
extern "C" __global__ void
br_repack_q8_0(unsigned char *stream, const u64 *tile_at, const u16 *a,
               const u16 *b, u32 n_rows, u32 K, u64 stride)
{
    const u32 tile = bid(), seg = bid_y(), lane = tid() & 31;
    unsigned char *to = stream + tile_at[tile] + seg * stride;
    const u64 row_words = K / 32 * 17;

    for (u32 r = 0; r < 4; r++) {
        const u32 row = (lane >> 2) + (r & 1) * 8, blk = tid() >> 5;
        const u16 *m = b && row >= 8 ? b : a;
        const u32 src = source_row(tile, row, b), k = (lane & 3) * 4 + (r >> 1) * 16;
        u32 v = 0;
        if (src < n_rows) {
            const u16 *p = m + src * row_words + (seg * 16 + blk) * 17 + 1 + k / 2;
            v = p[0] | (u32)p[1] << 16;
        }
        ((u32 *)(to + blk / 8 * (BR_MK_CHUNK_Q8_0 / 2)))
            [(blk % 8 * 32 + lane) * 4 + r] = v;
    }
    if (tid() < 256) {
        const u32 row = tid() >> 4, blk = tid() & 15;
        const u16 *m = b && row >= 8 ? b : a;
        const u32 src = source_row(tile, row, b);
        ((u16 *)(to + blk / 8 * (BR_MK_CHUNK_Q8_0 / 2) +
                 4096))[row * 8 + blk % 8] =
            src < n_rows ? m[src * row_words + (seg * 16 + blk) * 17] : 0;
    }
}

/* The same for Q4_K: a register's four bytes are those of the file. Chunks lie in
 * pairs, stride is from one to the next. */
extern "C" __global__ void
br_repack_q4_k(unsigned char *stream, const u64 *tile_at,
               const unsigned char *a, const unsigned char *b, u32 n_rows,
               u32 K, u64 stride)
{
    const u32 tile = bid(), seg = bid_y();
    const u32 half = tile_at[tile] / BR_MK_CHUNK_Q4_K & 1, at = half + seg;
    unsigned char *to = stream + tile_at[tile] + at / 2 * stride +
                        (int)(at % 2 - half) * BR_MK_CHUNK_Q4_K;
    const u64 row_bytes = K / 256 * 144;

    for (u32 i = tid(); i < 1024; i += 512) {
        const u32 r = i & 3, lane = i >> 2 & 31, pair = i >> 7;
        const u32 row = (lane >> 2) + (r & 1) * 8;
        const u32 src = source_row(tile, row, b);
        const unsigned char *p =
            (b && row >= 8 ? b : a) + src * row_bytes +
            (u64)(seg * 2 + pair / 4) * 144 + 16 + (pair & 3) * 32 +
            (lane & 3) * 4 + (r >> 1) * 16;
        ((u32 *)to)[i] = src < n_rows ? *(const u32 *)p : 0;
    }
    if (tid() < 256) {
        const u32 row = tid() >> 4, blk = tid() & 15;
        const u32 src = source_row(tile, row, b);
        u32 scale = 0, least = 0, d = 0;
        if (src < n_rows) {
            const unsigned char *p = (b && row >= 8 ? b : a) + src * row_bytes +
                                     (u64)(seg * 2 + blk / 8) * 144;
            d = *(const u32 *)p;
            numbers_of_q4_k(p, blk & 7, &scale, &least);
        }
        ((u16 *)(to + 4096))[tid()] = (u16)f16_of(f16_lo(d) * (float)scale);
        /* lane (row % 8, blk / 2 % 4), its register (blk / 8, row / 8) */
        (to + 4096 + 512)[((row & 7) * 4 + (blk >> 1 & 3)) * 8 +
                          (blk >> 3) * 4 + (row >> 3) * 2 + (blk & 1)] =
            (unsigned char)least;
        if ((blk & 7) == 0)
            ((u16 *)(to + 4096 + 768))[row * 2 + blk / 8] = (u16)(d >> 16);
    }
}

/* One block a chunk: grid (tiles, segs), 512 threads: k-step j = t/16 and two
 * lanes a thread. Rows beyond n_rows are zero. */
extern "C" __global__ void
br_repack_bf16(unsigned char *stream, const u64 *tile_at, const unsigned short *a,
          const unsigned short *b, u32 n_rows, u32 K, u64 stride)
{
    const u32 tile = bid(), seg = bid_y(), j = tid() >> 4;
    u32 *to = (u32 *)(stream + tile_at[tile] + seg * stride);

    for (u32 half = 0; half < 2; half++) {
        const u32 lane = (tid() & 15) * 2 + half;
        for (u32 r = 0; r < 4; r++) {
            u32 row = (lane >> 2) + (r & 1) * 8;
            u32 k = seg * 512 + j * 16 + (lane & 3) * 2 + (r >> 1) * 8;
            const unsigned short *m = b && row >= 8 ? b : a;
            u32 src = source_row(tile, row, b), v = 0;
            if (src < n_rows)
                v = *(const u32 *)(m + (u64)src * K + k);
            to[(j * 32 + lane) * 4 + r] = v;
        }
    }
}

/* ---- bf12 (mega_table.h) ------------------------------------------------------ */

/* The least of 15 exponents of which most of a row's weights have one: by a warp, from
 * how often there is each. The largest of equals. Above 192 a factor is none of f32. */
BR_DEV u32
least_of_15(const u32 *count, u32 lane)
{
    u32 best = 0;

    for (u32 i = 1; i <= 6; i++) {
        const u32 e = lane * 6 + i;
        u32 n = 0;
        for (u32 k = 0; k < 15; k++)
            n += count[e + k];
        best = (n << 8 | e) > best ? n << 8 | e : best;
    }
    for (u32 m = 16; m; m >>= 1) {
        const u32 other = shfl_xor(best, m);
        best = other > best ? other : best;
    }
    return best & 255;
}
/* Its 12 bits; ~0: it has to be listed. */
BR_DEV u32
code_of_bf16(u32 w, u32 least)
{
    const u32 e = w >> 7 & 255, sign = w >> 15 << 11;

    if (!(w & 0x7fff))
        return sign;
    return e >= least && e < least + 15 ? sign | (e - least + 1) << 7 | (w & 127)
                                        : ~0u;
}
/* Where a column of a segment is in x, in bytes (bf16_of_x). */
BR_DEV u32
place_in_x(u32 col)
{
    const u32 pair = col >> 1 & 7;

    return col / 16 * 32 + ((pair & 3) * 2 + pair / 4) * 4 + (col & 1) * 2;
}
/* Word of four high nibbles of a (signs at bit 7 of a byte, the others at 0) and four of
 * b (3; 4 of the byte before, of the last one for the first). */
BR_DEV u32
nibbles_of(const u32 *a, const u32 *b)
{
    u32 n = 0;

    for (u32 i = 0; i < 4; i++) {
        n |= (a[i] >> 11) << (8 * i + 7) | (a[i] >> 8 & 7) << 8 * i;
        n |= (b[i] >> 11) << (8 * i + 3) | (b[i] >> 8 & 7) << (8 * i + 28) % 32;
    }
    return n;
}
BR_DEV u32
low_of(const u32 *c)
{
    return (c[0] & 255) | (c[1] & 255) << 8 | (c[2] & 255) << 16 | c[3] << 24;
}
/* Word i of a chunk's list of n. */
BR_DEV u32
word_of_list(const u32 *sorted, u32 n, u32 i, u32 group)
{
    if (i == BR_MK_LISTED - 1 && n > BR_MK_LISTED)
        return group << 15 | BR_MK_LINK;
    return i < n ? sorted[i] : 0;
}
/* What is more of it: thread t of 512 has every 512th word of the groups. */
BR_DEV void
put_groups(u32 *more, const u32 *sorted, u32 n, u32 group, u32 t)
{
    const u32 first = BR_MK_LISTED - 1, each = BR_MK_GROUP - 1;
    const u32 groups = (n - first + each - 1) / each;

    for (u32 i = t; i < groups * BR_MK_GROUP; i += 512) {
        const u32 g = i / BR_MK_GROUP, k = i % BR_MK_GROUP, at = first + g * each + k;
        u32 v = at < n ? sorted[at] : 0;
        if (k == each)
            v = g + 1 < groups ? (group + g + 1) << 15 | BR_MK_LINK : 0;
        more[(u64)group * BR_MK_GROUP + i] = v;
    }
}

/* The same in 12 bits; a warp a row, then a k-step and two lanes a thread. Adds to
 * odd[0] the chunks that had to list too many, to odd[1] the weights that are listed, to
 * odd[2] the groups, of which there is room for so many in `more`. */
extern "C" __global__ void
br_repack_bf12(unsigned char *stream, const u64 *tile_at, const u16 *a,
               const u16 *b, u32 n_rows, u32 K, u64 stride, u32 *odd, u32 *more,
               u32 room)
{
    __shared__ u32 count[16][256], least[16], n_listed, group;
    __shared__ u32 list[BR_MK_MOST_LISTED], sorted[BR_MK_MOST_LISTED];
    __shared__ u16 code[16][512];
    const u32 tile = bid(), seg = bid_y(), row = tid() >> 5, lane = tid() & 31;
    const u32 src = source_row(tile, row, b);
    const u16 *from = (b && row >= 8 ? b : a) + (u64)src * K + seg * 512;
    unsigned char *to = stream + tile_at[tile] + seg * stride;

    for (u32 i = lane; i < 256; i += 32)
        count[row][i] = 0;
    n_listed = 0;
    bar(0, 512);
    for (u32 i = lane; i < 512 && src < n_rows; i += 32)
        if (from[i] & 0x7fff)
            sts_take32(&count[row][from[i] >> 7 & 255], 1);
    bar(0, 512);
    const u32 lo = least_of_15(count[row], lane);
    least[row] = lo;
    for (u32 i = lane; i < 512; i += 32) {
        const u32 w = src < n_rows ? from[i] : 0, c = code_of_bf16(w, lo);
        code[row][i] = (u16)(c == ~0u ? 0 : c);
        if (c == ~0u) {
            const u32 k = sts_take32(&n_listed, 1);
            if (k < BR_MK_MOST_LISTED)
                list[k] = w << 16 | row << 10 | place_in_x(i);
        }
    }
    bar(0, 512);
    for (u32 half = 0; half < 2; half++) {
        const u32 j = tid() >> 4, l = (tid() & 15) * 2 + half;
        u32 c[4][2];
        for (u32 r = 0; r < 4; r++)
            for (u32 h = 0; h < 2; h++)
                c[r][h] = code[(l >> 2) + (r & 1) * 8]
                              [j * 16 + (l & 3) * 2 + (r >> 1) * 8 + h];
        u32 *four = (u32 *)(to + j / 16 * BR_MK_BF12_HALF + j % 16 / 4 * 1536);
        four[j % 4 / 2 * 128 + l * 4 + j % 2 * 2] = low_of(c[0]);
        four[j % 4 / 2 * 128 + l * 4 + j % 2 * 2 + 1] = low_of(c[2]);
        four[256 + l * 4 + j % 4] = nibbles_of(c[0], c[2]);
    }
    const u32 n = n_listed < BR_MK_MOST_LISTED ? n_listed : BR_MK_MOST_LISTED;
    for (u32 i = tid(); i < n; i += 512) { /* by row, then place */
        u32 rank = 0;
        for (u32 k = 0; k < n; k++)
            rank += (list[k] & 0x3fff) < (list[i] & 0x3fff);
        sorted[rank] = list[i];
    }
    if (tid() == 0) {
        const u32 groups = n > BR_MK_LISTED ? (n - BR_MK_LISTED + BR_MK_GROUP - 1) /
                                                  (BR_MK_GROUP - 1)
                                            : 0;
        group = groups ? add_relaxed32(odd + 2, groups) : 0;
        if (n_listed > BR_MK_MOST_LISTED || group + groups > room) {
            red_relaxed_add(odd, 1);
            group = ~0u;
        }
        red_relaxed_add(odd + 1, n);
    }
    bar(0, 512);
    if (tid() < BR_MK_LISTED)
        *(u32 *)(to + BR_MK_BF12_LIST + tid() * 4) = word_of_list(sorted, n, tid(), group);
    if (tid() < 16) /* exponent e is e - least + 1 in the chunk */
        to[BR_MK_BF12_ROWS + tid()] = (unsigned char)(
            least[tid() / 2 + (tid() & 1) * 8] - 1 + 127 - BR_MK_LIFT);
    if (n > BR_MK_LISTED && group != ~0u)
        put_groups(more, sorted, n, group, tid());
}

/* ---- the obvious way --------------------------------------------------------- */

/* Sum over a block of 256 threads. */
BR_DEV float
sum256(float v)
{
    __shared__ float red[8];

    for (u32 m = 16; m; m >>= 1)
        v += shfl_xor_f(v, m);
    if ((tid() & 31) == 0)
        red[tid() >> 5] = v;
    bar(0, 256);
    v = 0.0f;
    for (u32 i = 0; i < 8; i++)
        v += red[i];
    bar(0, 256);
    return v;
}

extern "C" __global__ void
br_naive_embed(float *h, const unsigned short *embed, u32 token, u32 n)
{
    for (u32 i = tid(); i < n; i += 256)
        h[i] = as_f32((u32)embed[(u64)token * n + i] << 16);
}

extern "C" __global__ void
br_naive_norm(float *x, const float *h, const float *w, u32 n, float eps,
              u32 round)
{
    float s = 0.0f;

    for (u32 i = tid(); i < n; i += 256)
        s += h[i] * h[i];
    s = rsqrt_fast(sum256(s) / (float)n + eps);
    for (u32 i = tid(); i < n; i += 256) {
        float y = h[i] * s * w[i];
        x[i] = round ? bf16_lo(pack_bf16(y, 0.0f)) : y;
    }
}

/* y[row] (+)= W[row] . x, one block a row */
extern "C" __global__ void
br_naive_matvec(float *y, const unsigned short *W, const float *x, u32 K,
                u32 add)
{
    const unsigned short *row = W + (u64)bid() * K;
    float s = 0.0f;

    for (u32 k = tid(); k < K; k += 256)
        s += as_f32((u32)row[k] << 16) * x[k];
    s = sum256(s);
    if (tid() == 0)
        y[bid()] = add ? y[bid()] + s : s;
}

/* x to what a product with packed weights sees of it: tiles of 16 by their
 * largest / 127, rounded. */
extern "C" __global__ void
br_naive_round_q8(float *x, u32 n)
{
    for (u64 b = gtid(); b < n / 16; b += gsize()) {
        float big = 0.0f;
        for (u32 i = 0; i < 16; i++)
            big = max_f32(big, abs_f32(x[b * 16 + i]));
        for (u32 i = 0; i < 16 && big > 0.0f; i++)
            x[b * 16 + i] =
                (float)rint_s32(x[b * 16 + i] * (127.0f / big)) * (big / 127.0f);
    }
}

/* The same for blocks of Q8_0. */
extern "C" __global__ void
br_naive_matvec_q8_0(float *y, const u16 *W, const float *x, u32 K, u32 add)
{
    const u16 *row = W + (u64)bid() * (K / 32 * 17);
    float s = 0.0f;

    for (u32 k = tid(); k < K; k += 256) {
        const u16 *b = row + k / 32 * 17;
        i32 q = (signed char)(b[1 + k % 32 / 2] >> (k & 1) * 8);
        s += f16_lo(b[0]) * (float)q * x[k];
    }
    s = sum256(s);
    if (tid() == 0)
        y[bid()] = add ? y[bid()] + s : s;
}

/* The same for superblocks of Q4_K. */
extern "C" __global__ void
br_naive_matvec_q4_k(float *y, const unsigned char *W, const float *x, u32 K,
                     u32 add)
{
    const unsigned char *row = W + (u64)bid() * (K / 256 * 144);
    float s = 0.0f;

    for (u32 k = tid(); k < K; k += 256) {
        const unsigned char *b = row + k / 256 * 144;
        const u32 j = k % 256, q = b[16 + j / 64 * 32 + j % 32];
        float scale, least;
        scale_of_q4_k(b, j / 32, &scale, &least);
        s += (scale * (float)(j & 32 ? q >> 4 : q & 15) - least) * x[k];
    }
    s = sum256(s);
    if (tid() == 0)
        y[bid()] = add ? y[bid()] + s : s;
}

/* act = bf16(silu(gate) * up) */
extern "C" __global__ void
br_naive_glu(float *act, const float *gate, const float *up, u32 n)
{
    for (u64 i = gtid(); i < n; i += gsize()) {
        float g = gate[i];
        act[i] = bf16_lo(
            pack_bf16(g / (1.0f + ex2(-g * LOG2E)) * up[i], 0.0f));
    }
}

/* One block per head of q (blocks < H) or k: norm and rope in place. */
extern "C" __global__ void
br_naive_rope(float *qkv, const float *norms, const float *rope, u32 H, u32 hd,
              u32 pos, u32 interleaved, float eps)
{
    float *x = qkv + (u64)bid() * hd;
    const float *cs = rope + (u64)pos * hd;
    float s = 0.0f;

    if (norms) {
        for (u32 i = tid(); i < hd; i += 256)
            s += x[i] * x[i];
        s = rsqrt_fast(sum256(s) / (float)hd + eps);
        for (u32 i = tid(); i < hd; i += 256)
            x[i] = x[i] * s * norms[(bid() >= H ? hd : 0) + i];
        bar(0, 256);
    }
    for (u32 i = tid(); i < hd / 2; i += 256) {
        u32 p = interleaved ? 2 * i : i, q = interleaved ? 2 * i + 1 : i + hd / 2;
        float u = x[p], v = x[q];
        x[p] = u * cs[2 * i] - v * cs[2 * i + 1];
        x[q] = u * cs[2 * i + 1] + v * cs[2 * i];
    }
}

/* k, v (f32, rounded to bf16) into a plain cache [layer][2][kv][pos][hd] */
extern "C" __global__ void
br_naive_append(unsigned short *cache, const float *kv, u32 layer, u32 n_kv,
                u32 hd, u32 pos, u32 max_pos)
{
    for (u64 i = gtid(); i < 2ull * n_kv * hd; i += gsize()) {
        u64 head = i / hd; /* k heads, then v heads */
        cache[(((u64)layer * 2 * n_kv + head) * max_pos + pos) * hd + i % hd] =
            (unsigned short)pack_bf16(kv[i], 0.0f);
    }
}

/* One block per query head; scores in global scratch [H][max_pos]. */
extern "C" __global__ void
br_naive_attn(float *out, float *score, const float *q,
              const unsigned short *cache, u32 layer, u32 H, u32 n_kv, u32 hd,
              u32 pos, u32 max_pos, float scale)
{
    const u32 kvh = bid() / (H / n_kv);
    const unsigned short *K =
        cache + ((u64)layer * 2 * n_kv + kvh) * max_pos * hd;
    const unsigned short *V = K + (u64)n_kv * max_pos * hd;
    float *s = score + (u64)bid() * max_pos;
    float m = -1e30f, l = 0.0f;

    for (u32 p = tid(); p <= pos; p += 256) {
        float d = 0.0f;
        for (u32 i = 0; i < hd; i++)
            d += q[bid() * hd + i] * as_f32((u32)K[(u64)p * hd + i] << 16);
        s[p] = d * scale;
    }
    bar(0, 256);
    for (u32 p = 0; p <= pos; p++)
        m = max_f32(m, s[p]);
    for (u32 p = 0; p <= pos; p++)
        l += ex2((s[p] - m) * LOG2E);
    for (u32 i = tid(); i < hd; i += 256) {
        float a = 0.0f;
        for (u32 p = 0; p <= pos; p++)
            a += ex2((s[p] - m) * LOG2E) * as_f32((u32)V[(u64)p * hd + i] << 16);
        out[bid() * hd + i] = bf16_lo(pack_bf16(a / l, 0.0f));
    }
}

/* Copies the plain cache's positions [0, n) into pages. */
extern "C" __global__ void
br_naive_to_pages(unsigned short *kv, const u32 *pages,
                  const unsigned short *cache, u32 layers, u32 n_kv, u32 hd,
                  u32 n, u32 max_pos)
{
    u64 total = (u64)layers * 2 * n_kv * n * hd;

    for (u64 i = gtid(); i < total; i += gsize()) {
        u64 d = i % hd, p = i / hd % n, plane = i / hd / n; /* l*2*n_kv + .. */
        u64 h = plane % n_kv, is_v = plane / n_kv % 2, l = plane / n_kv / 2;
        u64 page = pages[p / BR_MK_PAGE];
        kv[((((page * layers + l) * n_kv + h) * 2 + is_v) * BR_MK_PAGE +
            p % BR_MK_PAGE) *
               hd +
           BR_MK_COLUMN(d, p)] = cache[(plane * max_pos + p) * hd + d];
    }
}
