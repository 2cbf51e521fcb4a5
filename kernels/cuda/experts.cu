/* experts.cu - products of experts whose matrices are tiles (node_tiles.cuh,
 * node_packed.cuh): each row of a step by the k matrices that it picked.
 *
 *   matrix   an expert's tiles lie together, in whole tiles of rows: it may be in
 *            the device's memory or in the host's, which bulk copies read as well
 *   pairs    (row, rank), row * k + rank. Of few pairs each is a product of its own
 *   lists    of more, the pairs of an expert come together (br_nd_lists), so that
 *            its matrix is read once for `tokens` of them
 *   gather   what a pair reads, as f16 with a factor, at its place; what it reads may
 *            be silu(gate) * up
 *   ask      128 weight rows x an expert's next rows; the sum of node_tiles.cuh, all
 *            pieces of the columns in one block, or of a pair alone in the blocks of a
 *            cluster, added in the same order: a pair's bits depend on nothing
 *            beside it, neither on its place nor on how it came there. Two matrices of
 *            one input (gate, up) are a launch: tiles of the one, then of the other
 *   mx       MXFP4's codes stay e2m1: as the upper bits of an f16 they are the number
 *            times 2^-14, so a weight is two masks and a multiplication
 *   f8       so do E5M2, the upper half of an f16, and E4M3, 2^8 times too small after a
 *            shift. Not of experts alone: a matrix that all rows pass is one expert
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "exact.cuh"
#include "node_table.h"

#ifndef ARGS
#    define KERNEL extern "C" __global__ void
#    define ARGS   const struct br_nd_args a
#endif
#include "node_packed.cuh"
#include "tile_parts.cuh"

enum { ASK_WARPS = TILE_ROWS / 16 };
enum ask_form { ASK_F16, ASK_PACK, ASK_MX, ASK_F8 };

/* ---- at load ------------------------------------------------------------------ */

/* Blocks of a file at x.p, 17 bytes each, to rows a.off .. of tiles xq; a warp a row.
 * A scale is 2^(e - 127); the row's largest is kept as 2^14, which makes up for how
 * codes become f16, those below 2^-39 of it as 0. */
KERNEL
br_nd_pack_mx(ARGS)
{
    const u32 lane = tid() & 31, r = bid() * BR_ND_WARPS + (tid() >> 5);
    const u32 K = a.m.n_in, to = a.off + r;
    const u8 *p = (const u8 *)a.x.p + (u64)r * (K / 32) * 17;
    u32 top = 0;

    if (r >= a.m.n_out)
        return;
    for (u32 b = lane; b < K / 32; b += 32)
        top = max_u32(top, p[b * 17]);
    for (u32 m = 16; m; m >>= 1)
        top = max_u32(top, shfl_xor(top, m));
    top = top < 254 ? top : 254; /* 255 is no number */
    if (lane == 0)
        a.xd[to] = as_f32(top ? top << 23 : 0x00400000);
    const u64 step = (u64)(a.lows / 16) * BR_ND_MX_BYTES;
    u8 *out = (u8 *)a.xq + (u64)(to / TILE_ROWS) * BR_ND_MX_BYTES;
    for (u32 i = lane; i < K / 8; i += 32) { /* eight columns of a lane's: */
        const u32 at = i % 8, c = at % 4 * 2;
        const u8 *q = p + (i / 8 * 2 + at / 4) * 17 + 1;
        u32 v = 0;
        for (u32 n = 0; n < 8; n++) { /* as br_nd_pack has them */
            const u32 pair = n % 4, col = pair / 2 * 16 + pair % 2 * 8 + c + n / 4;
            v |= (u32)(q[col % 16] >> col / 16 * 4 & 15) << 4 * n;
        }
        *(u32 *)(out + i / 8 * step + pack_code_at(BR_ND_PACK_4_MIN, to, at)) = v;
    }
    for (u32 b = lane; b < K / 32; b += 32) {
        u8 *s = out + b / 2 * step + TILE_ROWS * 32 + to % TILE_ROWS / 16 * 64 +
                to % 8 * 8 + b % 2 * 4 + to % 16 / 8 * 2;
        const u32 e = 127 + 14 + p[b * 17];
        *(u16 *)s = (u16)pack_f16(e > top ? as_f32((e - top) << 23) : 0.0f, 0.0f);
    }
}

/* The same of numbers of eight bits, of kind op. A row's factor is its largest scale, which
 * the others are parts of: where all are alike, as of a matrix or a row with one scale, no
 * product is rounded. E4M3's codes become 1.75 at most and their scale 2^14. */
KERNEL
br_nd_pack_f8(ARGS)
{
    const u32 lane = tid() & 31, r = bid() * BR_ND_WARPS + (tid() >> 5);
    const u32 K = a.m.n_in, to = a.off + r;
    const bool e4m3 = a.op == BR_ND_PACK_E4M3;
    const u8 *p = (const u8 *)a.x.p + (u64)r * (K / 64) * BR_ND_F8_BLOCK;
    u32 top = 0;

    if (r >= a.m.n_out)
        return;
    for (u32 b = lane; b < K / 64; b += 32)
        top = max_u32(top, bits_of(*(const float *)(p + b * BR_ND_F8_BLOCK)));
    for (u32 m = 16; m; m >>= 1)
        top = max_u32(top, shfl_xor(top, m));
    const float most = as_f32(top), by = top ? (e4m3 ? 16384.0f : 1.0f) : 0.0f;
    if (lane == 0)
        a.xd[to] = e4m3 ? most * 0.015625f : most;
    const u64 step = (u64)(a.lows / 16) * BR_ND_F8_BYTES;
    u8 *out = (u8 *)a.xq + (u64)(to / TILE_ROWS) * BR_ND_F8_BYTES;
    for (u32 i = lane; i < K / 4; i += 32) { /* four columns of a lane's */
        const u32 at = i % 16;
        const u8 *q = p + i / 16 * BR_ND_F8_BLOCK + 4 + at / 4 * 16 + at % 4 * 2;
        *(u32 *)(out + i / 16 * step + pack_code_at(BR_ND_PACK_8, to, at)) =
            q[0] | (u32)q[1] << 8 | (u32)q[8] << 16 | (u32)q[9] << 24;
    }
    for (u32 b = lane; b < K / 64; b += 32) {
        u8 *s = out + b * step + TILE_ROWS * 64 + to % TILE_ROWS / 16 * 32 + to % 8 * 4 +
                to % 16 / 8 * 2;
        const float own = *(const float *)(p + b * BR_ND_F8_BLOCK);
        *(u16 *)s = (u16)pack_f16(top ? own / most * by : 0.0f, 0.0f);
    }
}

/* ---- who asks whom ---------------------------------------------------------------- */

#define ROUTED const struct br_nd_routed r

/* Lanes' numbers, each plus all before it. */
BR_DEV u32
sum_up(u32 v, u32 lane)
{
    for (u32 m = 1; m < 32; m *= 2) {
        const u32 o = shfl_from(v, lane >= m ? lane - m : lane);
        v += lane >= m ? o : 0;
    }
    return v;
}

/* One block. Pairs by their experts, those in order of their numbers; an expert's
 * places are filled in any order. */
KERNEL __launch_bounds__(BR_ND_LIST_THREADS) br_nd_lists(ROUTED)
{
    u32 *count = (u32 *)dyn_shared(); /* [n_experts], then: the next place */
    const struct br_nd_route &e = r.a.e;
    const u32 n = r.l.n_experts, lane = tid() & 31;

    grid_go();
    grid_wait();
    for (u32 i = tid(); i < n; i += block_dim())
        count[i] = 0;
    bar(0, block_dim());
    for (u32 i = tid(); i < r.a.n_rows; i += block_dim())
        sts_take32(&count[e.ids[(u64)(i / e.k) * e.stride + i % e.k]], 1);
    bar(0, block_dim());
    u32 place = 0, part = 0;
    for (u32 from = 0; tid() < 32 && from < n; from += 32) {
        const u32 c = from + lane < n ? count[from + lane] : 0;
        const u32 parts = (c + r.l.tokens - 1) / r.l.tokens;
        const u32 ends = sum_up((c + 7) / 8 * 8, lane), last = sum_up(parts, lane);
        const u32 first = place + ends - (c + 7) / 8 * 8;
        struct br_nd_part *p = r.l.part + part + last - parts;

        for (u32 i = 0; i < parts; i++) {
            const u32 at = i * r.l.tokens;
            p[i] = {from + lane, first + at, c - at < r.l.tokens ? c - at : r.l.tokens,
                    0};
        }
        for (u32 i = c; i % 8; i++)
            r.l.pair[first + i] = -1;
        if (from + lane < n)
            count[from + lane] = first;
        place += shfl_from(ends, 31);
        part += shfl_from(last, 31);
    }
    if (tid() == 0) {
        r.l.n[0] = part;
        r.l.n[1] = place;
    }
    bar(0, block_dim());
    for (u32 i = tid(); i < r.a.n_rows; i += block_dim()) {
        const i32 id = e.ids[(u64)(i / e.k) * e.stride + i % e.k];
        r.l.pair[sts_take32(&count[id], 1)] = (i32)i;
    }
}

/* Eight numbers of a row, and of the other. */
BR_DEV void
gather8(const struct br_nd_args &a, const float *from, const float *up, u32 c,
        float (&x)[8])
{
    float y[8];

    load4(x, from + c * 8);
    load4(x + 4, from + c * 8 + 4);
    if (!up)
        return;
    load4(y, up + c * 8);
    load4(y + 4, up + c * 8 + 4);
    for (u32 i = 0; i < 8; i++)
        x[i] = ex_glu(a.act, x[i], y[i]);
}

/* A block a place: x's row of its pair as f16; b: up, where x is a gate. */
KERNEL
br_nd_gather(ROUTED)
{
    __shared__ u32 tops[32], none[32];
    const struct br_nd_args &a = r.a;
    const u32 K = a.x.cols;
    u32 place = bid() * 8, pair = bid(), top = 0;
    float x[8], d, inv, sum = 0.0f;

    grid_go();
    grid_wait();
    if (r.l.pair) {
        place = bid();
        if (place >= r.l.n[1] || r.l.pair[place] < 0)
            return; /* nobody looks at what is there */
        pair = (u32)r.l.pair[place];
    }
    const float *from = a.x.p + (u64)(pair / a.e.share) * a.x.stride;
    const float *up = a.b.p ? a.b.p + (u64)(pair / a.e.share) * a.b.stride : a.b.p;
    for (u32 c = tid(); c < K / 8; c += block_dim()) {
        gather8(a, from, up, c, x);
        for (u32 i = 0; i < 8; i++)
            top = max_u32(top, bits_of(x[i]));
    }
    row_scale(block_max(top, &sum, tops, none), &d, &inv);
    if (tid() == 0)
        a.xd[place] = d;
    for (u32 c = tid(); c < K / 8; c += block_dim()) {
        gather8(a, from, up, c, x);
        *(u32x4 *)(a.xq + tile_at16(a.lows, place, c)) = pack8(x, inv);
    }
}

/* ---- products --------------------------------------------------------------------- */

template <u32 FORM>
BR_DEV u32
ask_bytes(u32 kind)
{
    return FORM == ASK_F16    ? (u32)W_BYTES
           : FORM == ASK_PACK ? pack_bytes(kind)
           : FORM == ASK_MX   ? (u32)BR_ND_MX_BYTES
                              : BR_ND_F8_BYTES;
}
/* Where tokens begin in a stage: whole kilobytes. */
template <u32 FORM>
BR_DEV constexpr u32
ask_tokens()
{
    return FORM == ASK_F16    ? (u32)W_BYTES
           : FORM == ASK_PACK ? (u32)PACK_MOST
           : FORM == ASK_MX   ? BR_ND_MX_BYTES + 512
                              : BR_ND_F8_BYTES + 768;
}

/* Weights of 16 columns of a lane's two rows. */
BR_DEV u32x2
mx_row(u32 v, u32 scale, u32 odd)
{
    const u32 a = v >> 8 * odd, b = a >> 4;

    return {fma_f16x2((a & 0x00080008) << 12 | (a & 0x00070007) << 9, scale, 0),
            fma_f16x2((b & 0x00080008) << 12 | (b & 0x00070007) << 9, scale, 0)};
}
BR_DEV void
mx_halves(u32 from, u32x4 (&out)[4])
{
    const u32 lane = tid() & 31, w = tid() >> 5;
    const u32x4 code = lds128(from + (w * 32 + lane) * 16);
    const u32x2 scale = lds64(from + TILE_ROWS * 32 + w * 64 + lane / 4 * 8);

    wg_wait<0>();
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        const u32 s = j / 2 ? scale.y : scale.x;
        const u32x2 one = mx_row(j / 2 ? code.z : code.x, prmt(s, 0, 0x1010), j % 2);
        const u32x2 two = mx_row(j / 2 ? code.w : code.y, prmt(s, 0, 0x3232), j % 2);
        out[j] = {one.x, two.x, one.y, two.y};
    }
}

/* Codes of eight bits as f16, of a row's 16 columns: the first eight, the others. */
BR_DEV u32x2
f8_row(u32 v, u32 scale, u32 shift)
{
    const u32 a = prmt(v, 0, 0x1404), b = prmt(v, 0, 0x3424);

    return {fma_f16x2((a & 0x80008000) | (a & 0x7f007f00) >> shift, scale, 0),
            fma_f16x2((b & 0x80008000) | (b & 0x7f007f00) >> shift, scale, 0)};
}
BR_DEV void
f8_halves(u32 kind, u32 from, u32x4 (&out)[4])
{
    const u32 lane = tid() & 31, w = tid() >> 5, shift = kind == BR_ND_PACK_E4M3;
    const u32x4 code[2] = {lds128(from + (w * 64 + lane) * 16),
                           lds128(from + (w * 64 + 32 + lane) * 16)};
    const u32 scale = lds32(from + TILE_ROWS * 64 + w * 32 + lane / 4 * 4);
    const u32 up = prmt(scale, 0, 0x1010), low = prmt(scale, 0, 0x3232);

    wg_wait<0>();
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        const u32x4 c = code[j / 2];
        const u32x2 one = f8_row(j % 2 ? c.z : c.x, up, shift);
        const u32x2 two = f8_row(j % 2 ? c.w : c.y, low, shift);
        out[j] = {one.x, two.x, one.y, two.y};
    }
}
template <u32 FORM>
BR_DEV void
ask_read(const struct pack_form &f, u32 kind, u32 from, u32x4 (&out)[4])
{
    if constexpr (FORM == ASK_PACK) {
        const struct pack_words p = pack_read(f, from);
        wg_wait<0>();
        pack_halves(f, p, out);
    }
    if constexpr (FORM == ASK_MX)
        mx_halves(from, out);
    if constexpr (FORM == ASK_F8)
        f8_halves(kind, from, out);
}

/* The warp that copies: 64s of columns from .. to, into STAGES places. What the
 * step needs once is the first to leave the L2; an expert of several parts stays. */
template <u32 N, u32 STAGES, u32 FORM>
BR_DEV void
ask_bring(const struct br_nd_routed &r, u32 bytes, const u8 *w, u32 first, u32 from,
          u32 to)
{
    enum { AT = ask_tokens<FORM>() };
    enum { BYTES = AT + N / 8 * ATOM };
    const u32 base = smem_of(dyn_shared()), full = base + STAGES * BYTES;
    const u64 policy = policy_evict_first();
    const u64 step = (u64)(r.a.e.rows / TILE_ROWS) * bytes;
    const u8 *x = (const u8 *)r.a.xq + (u64)first / 8 * ATOM;

    for (u32 i = from, s = 0, round = 0; i < to; i++) {
        while (round > 0 && !mbar_try(full + (STAGES + s) * 8, (round & 1) ^ 1))
            ;
        mbar_expect(full + s * 8, bytes + N / 8 * ATOM);
        if (r.l.pair)
            bulk_copy_kept(base + s * BYTES, w + i * step, bytes, full + s * 8);
        else
            bulk_copy(base + s * BYTES, w + i * step, bytes, full + s * 8, policy);
        bulk_copy_kept(base + s * BYTES + AT, x + (u64)i * r.a.lows * ATOM,
                       N / 8 * ATOM, full + s * 8);
        if (++s == STAGES)
            s = 0, round++;
    }
}

/* One of the launch's two matrices: its tiles and factors, the tile of it that is
 * asked, the first row that counts, where answers go. */
struct ask_one {
    const u8 *q;
    const float *d;
    u32 tile, first;
    struct br_nd_rows y;
};
BR_DEV struct ask_one
ask_one_of(const struct br_nd_args &a, u32 tile)
{
    if (tile < a.part_end[0])
        return {(const u8 *)a.m.q, a.m.d, a.e.first / TILE_ROWS + tile, a.e.first,
                a.y};
    return {(const u8 *)a.w2.p, a.w3.p,
            a.part_end[1] / TILE_ROWS + tile - a.part_end[0], a.part_end[1],
            a.part[0]};
}

template <u32 N>
BR_DEV void
ask_put(const struct ask_one &m, const float (&all)[N / 2], const float *x,
        const i32 *whose, const float (&w)[2])
{
    const u32 lane = tid() & 31, c = lane & 3;
    /* of m.first .., those before it wrap around */
    const u32 n = m.tile * TILE_ROWS + (tid() >> 5) * 16 + (lane >> 2) - m.first;

#pragma unroll
    for (u32 j = 0; j < N / 8; j++)
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            const u32 t = j * 8 + c * 2 + i % 2, col = n + i / 2 * 8;
            if (col < m.y.cols && whose[t] >= 0)
                m.y.p[(u64)whose[t] * m.y.stride + col] =
                    all[j * 4 + i] * x[t] * w[i / 2];
        }
}

/* A pair's sums of the cluster's blocks, in all of them that are first, in order of the
 * pieces. Of its one row, lanes 0, 4 .. have two. True: this block is the first. */
template <u32 N>
BR_DEV bool
ask_meet(u32 segs, float (&all)[N / 2])
{
    const u32 mine = smem_of(dyn_shared()) + (tid() >> 2) * 8, rank = cluster_rank();

    bar(1, ASK_WARPS * 32); /* weights have been read: sums in their place */
    if ((tid() & 3) == 0) {
        sts32(mine, as_u32(all[0]));
        sts32(mine + 4, as_u32(all[2]));
    }
    cluster_arrive();
    cluster_wait();
    for (u32 s = 1; rank == 0 && s < segs; s++) {
        all[0] = all[0] + lds_far(shared_of(mine, s));
        all[2] = all[2] + lds_far(shared_of(mine + 4, s));
    }
    cluster_arrive(); /* nobody's memory goes while others read it */
    cluster_wait();
    return rank == 0;
}

/* Which rows of whom block i takes; n 0: none. */
BR_DEV struct br_nd_part
ask_part(const struct br_nd_routed &r, u32 i)
{
    const struct br_nd_route &e = r.a.e;

    if (!r.l.pair)
        return {(u32)e.ids[(u64)(i / e.k) * e.stride + i % e.k], i * 8, 1, 0};
    if (i >= r.l.n[0])
        return {0, 0, 0, 0};
    return r.l.part[i];
}

template <u32 N, u32 STAGES, u32 FORM>
BR_DEV void
ask(const struct br_nd_routed &r)
{
    enum { AT = ask_tokens<FORM>() };
    enum { BYTES = AT + N / 8 * ATOM };
    __shared__ float x[N];
    __shared__ i32 whose[N];
    const struct br_nd_args &a = r.a;
    const u32 base = smem_of(dyn_shared()), full = base + STAGES * BYTES;
    const u32 empty = full + STAGES * 8, whole = a.m.n_in / 64;
    const u32 segs = N == BR_ND_ASK_FEW ? r.l.segs : 1; /* pairs alone */
    const u32 who = bid() / segs, from = bid() % segs * a.m.block;
    const u32 end = segs > 1 && from + a.m.block < whole ? from + a.m.block : whole;
    const struct ask_one m = ask_one_of(a, bid_y());
    const u32 bytes = ask_bytes<FORM>(a.m.kind);
    float sum[N / 2], all[N / 2];

    if (tid() == 0) {
        for (u32 i = 0; i < STAGES; i++) {
            mbar_init(full + i * 8, 1);
            mbar_init(empty + i * 8, FORM ? ASK_WARPS * 32 : ASK_WARPS);
        }
        fence_mbar_init();
    }
    bar(0, BR_ND_TILE_THREADS);
    grid_go();
    grid_wait();
    const struct br_nd_part part = ask_part(r, who);
    if (part.n == 0)
        return;
    if (tid() >= ASK_WARPS * 32) {
        const u64 own = (u64)(a.e.rows / TILE_ROWS) * whole * bytes;
        if (tid() == ASK_WARPS * 32)
            ask_bring<N, STAGES, FORM>(
                r, bytes, m.q + part.expert * own + (u64)m.tile * bytes,
                part.first, from, end);
        return;
    }
    const u32 mine = base + tid() / 128 * (W_BYTES / 2);
    const struct pack_form form = pack_form_of(a.m.kind);
    const bool arrives = FORM || (tid() & 31) == 0; /* who reads, itself */
    const float *d = m.d + (u64)part.expert * a.e.rows + m.tile * TILE_ROWS +
                     (tid() >> 5) * 16 + ((tid() & 31) >> 2);
    const float w[2] = {d[0], d[8]};
    if (tid() < N) {
        const bool in = tid() < part.n;
        x[tid()] = in ? a.xd[part.first + tid()] : 0.0f;
        whose[tid()] = !in ? -1 : r.l.pair ? r.l.pair[part.first + tid()] : (i32)who;
    }
    bar(1, ASK_WARPS * 32);
    u32 s = 0, round = 0;
#pragma unroll 1
    for (u32 kb = from; kb < end;) {
        const u32 stop = kb + a.m.block > end ? end : kb + a.m.block;
        const bool begins = kb == from;
        u32 held = STAGES; /* the stage that may still be read */

#pragma unroll 1
        for (bool more = false; kb < stop; kb++, more = true) {
            const u64 q = wg_tile(mine + s * BYTES), t = wg_tile(base + s * BYTES + AT);
            u32x4 in[4]; /* weights of the operands, which nobody reads now */
            while (!mbar_try(full + s * 8, round & 1))
                ;
            ask_read<FORM>(form, a.m.kind, base + s * BYTES, in);
            wg_begin();
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                tile_mma<FORM != ASK_F16>(sum, in[k], q + 2 * k, t + 2 * k, more || k);
            wg_commit();
            if (FORM == ASK_F16)
                wg_wait<1>();
            if (held < STAGES && arrives)
                mbar_arrive(empty + held * 8, 1);
            held = s;
            if (++s == STAGES)
                s = 0, round++;
        }
        wg_wait<0>();
        if (arrives)
            mbar_arrive(empty + held * 8, 1);
#pragma unroll
        for (u32 i = 0; i < N / 2; i++)
            all[i] = begins ? sum[i] : all[i] + sum[i];
    }
    if (segs == 1 || ask_meet<N>(segs, all))
        ask_put<N>(m, all, x, whose, w);
}

#define ASK(name, N, STAGES, FORM, SHARED_, per_sm)                        \
    KERNEL __launch_bounds__(BR_ND_TILE_THREADS, per_sm)                   \
        br_nd_ask_##name(ROUTED)                                           \
    {                                                                      \
        static_assert(SHARED_(N, STAGES) <= 227u * 1024, "shared memory"); \
        ask<N, STAGES, FORM>(r);                                           \
    }
ASK(f16_few, 16, 6, ASK_F16, BR_ND_TILE_SHARED, 2)
ASK(f16_some, 32, 5, ASK_F16, BR_ND_TILE_SHARED, 2)
ASK(f16_many, 128, 6, ASK_F16, BR_ND_TILE_SHARED, 1)
ASK(pack_few, 16, 9, ASK_PACK, BR_ND_PACK_SHARED, 2)
ASK(pack_some, 32, 7, ASK_PACK, BR_ND_PACK_SHARED, 2)
ASK(pack_many, 128, 8, ASK_PACK, BR_ND_PACK_SHARED, 1)
ASK(mx_few, 16, 12, ASK_MX, BR_ND_MX_SHARED, 2)
ASK(mx_some, 32, 10, ASK_MX, BR_ND_MX_SHARED, 2)
ASK(mx_many, 128, 8, ASK_MX, BR_ND_MX_SHARED, 1)
ASK(f8_few, 16, 9, ASK_F8, BR_ND_F8_SHARED, 2)
ASK(f8_some, 32, 7, ASK_F8, BR_ND_F8_SHARED, 2)
ASK(f8_many, 128, 8, ASK_F8, BR_ND_F8_SHARED, 1)
