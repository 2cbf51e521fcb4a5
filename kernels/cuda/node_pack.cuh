/* node_pack.cuh - a file's blocks become packed tiles (node_packed.cuh): by way of
 * integers, a byte each. A part of nodes.cu.
 * SPDX-License-Identifier: Apache-2.0 */

/* A file's blocks at x.p, width bytes each, the scale at off, as integers m of
 * slot_elems weights; a thread four of them. */
KERNEL
br_nd_unpack(ARGS)
{
    const u64 i = thread_of_grid() * 4, b = i / a.m.block;
    const u32 k = (u32)(i % a.m.block), j = k / 32;
    const u8 *p = (const u8 *)a.x.p + b * a.width;
    u32 v = 0;

    if (i >= a.slot_elems)
        return;
    for (u32 e = 0; e < 4; e++)
        v |= (unpacked(a.op, p, k + e) & 255) << 8 * e;
    *(u32 *)((u8 *)a.m.q + i) = v;
    if (k == 0)
        ((float *)a.m.d)[b] = f16_lo(half_at(p + a.off));
    if (k == 0 && a.m.dmin)
        ((float *)a.m.dmin)[b] = f16_lo(half_at(p + 2));
    if (!a.m.scale || k % a.m.sub)
        return;
    u8 *scale = (u8 *)a.m.scale + i / a.m.sub;
    if (a.op == BR_ND_FILE_Q6_K) {
        *scale = p[192 + k / 16];
        return;
    }
    const u8 *s = p + 4; /* six bits each, the upper two of the last four apart */
    *scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    ((u8 *)a.m.min)[i / a.m.sub] =
        j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
}

/* Integers m of a row, unpacked, to rows a.off .. of packed tiles xq of kind op; a
 * warp a row; pitch, sums as in br_nd_tile. */
KERNEL
br_nd_pack(ARGS)
{
    const u32 lane = tid() & 31, r = bid() * BR_ND_WARPS + (tid() >> 5);
    const u32 K = a.m.n_in, bytes = pack_bytes(a.op);
    const signed char *q = (const signed char *)a.m.q + (u64)r * K;
    const bool four = a.op == BR_ND_PACK_4_MIN;
    float squares = 0.0f, d, inv;
    u32 top = 0;

    if (r >= a.m.n_out)
        return;
    for (u32 c = lane; c < K / 16; c += 32) {
        const struct pack_scale p = pack_scale_of(a, r, c * 16);
        const float m = a.m.dmin ? p.m : 0.0f;
        top = max_u32(top, max_u32(bits_of(p.s), bits_of(p.m)));
        for (u32 i = 0; i < 16; i++) {
            const float v = p.s * (float)q[c * 16 + i] - m;
            top = max_u32(top, bits_of(v));
            squares = fma_rn(v, v, squares);
        }
    }
    for (u32 m = 16; m; m >>= 1) {
        top = max_u32(top, shfl_xor(top, m));
        squares = squares + shfl_xor_f(squares, m);
    }
    row_scale(top, &d, &inv);
    const u32 to = a.off + r + (a.pitch ? r / 8 * 8 : 0);
    if (lane == 0) {
        a.xd[to] = d;
        if (a.sums)
            a.sums[r] = squares;
    }
    const u64 step = (u64)(a.lows / 16) * bytes;
    u8 *out = (u8 *)a.xq + (u64)(to / TILE_ROWS) * bytes;
    const u32 words = four ? 8 : 16; /* of 64 columns */
    for (u32 i = lane; i < K / 64 * words; i += 32) {
        const u32 at = i % words, c = at % 4 * 2;
        const u32 k = i / words * 64 + at / 4 * (four ? 32 : 16);
        const i32 off = pack_scale_of(a, r, k).off;
        u32 v = 0;
        for (u32 n = 0; n < (four ? 8u : 4u); n++) {
            /* four: nibbles n, n + 4 are a pair; bytes: two after each other */
            const u32 pair = four ? n % 4 : n / 2, odd = four ? n / 4 : n % 2;
            const u32 col = k + pair / 2 * 16 + pair % 2 * 8 + c + odd;
            v |= (u32)(q[col] + off) << (four ? 4 : 8) * n;
        }
        *(u32 *)(out + i / words * step + pack_code_at(a.op, to, at)) = v;
    }
    for (u32 i = lane; i < K / 32; i += 32) {
        const struct pack_scale p = pack_scale_of(a, r, i * 32);
        const float other = a.op == BR_ND_PACK_8
                                ? pack_scale_of(a, r, i * 32 + 16).s
                                : -p.m;
        *(u32 *)(out + i / 2 * step + pack_scale_at(a.op, to, i % 2)) =
            pack_f16(p.s * inv, other * inv);
    }
}
