/* nodes.cu - a kernel for each opcode of the graph, over rows of any slots.
 *
 * The arithmetic is docs/arithmetic.md's to the bit: `--arith exact` is the
 * kernels of this file and nothing else but products of integers. Rows are independent
 * of each other and of how many there are, so decode, batch and prefill agree by
 * construction. Compiled with -ffp-contract=off: what is fused here says fma_rn.
 *
 *   product, floats     16 threads an output, lane = k mod 16, tree 8 4 2 1
 *   product, integers   a warp an output: dp4a, exact inside a block; blocks
 *                       into four chains
 *   attention           a thread block a row and query head; folds of 256 keys
 *
 * and, where bits need not be the reference tier's or are so anyway, on tensor
 * cores: node_mma.cuh, node_flash.cuh.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "exact.cuh"

#ifndef ARGS /* mega_nodes.cu: parts of one kernel, which are told their block */
#define KERNEL  extern "C" __global__ void
#define ARGS    const struct br_nd_args a
#define PART    const struct br_nd_args &a /* of a kernel's function */
#define OF_PART a
#define BR_TILE BR_ND_TILE
#endif
enum { THREADS = BR_ND_WARPS * 32, TILE = BR_TILE };
/* Rows of a tile that are there: a register array has constant indices only. */
#define EACH(r)                                           \
    _Pragma("unroll") for (u32 r = 0; r < TILE; r++)      \
        if (t0 + r < end)

BR_DEV float *
row(const struct br_nd_rows &v, u32 t)
{
    return v.p + (u64)t * v.stride;
}
#define thread_of_grid() ((u64)bid() * block_dim() + tid())

/* Rows of a product that a block takes: a tile of the step's, or one pair. */
BR_DEV u32
first_row(PART)
{
    return a.e.ids ? bid_y() : bid_y() * TILE;
}
BR_DEV u32
end_row(PART)
{
    return a.e.ids ? bid_y() + 1 : a.n_rows;
}
/* The expert of pair t. */
BR_DEV u32
picked(const struct br_nd_args &a, u32 t)
{
    return (u32)a.e.ids[(u64)(t / a.e.k) * a.e.stride + t % a.e.k];
}
/* Where row n of the output lies among those of all experts. */
BR_DEV u64
weight_row(PART, u32 n)
{
    return a.e.ids ? (u64)picked(a, bid_y()) * a.e.rows + a.e.first + n : n;
}
BR_DEV u32
input_row(const struct br_nd_args &a, u32 t)
{
    return a.e.ids ? t / a.e.share : t;
}
/* What every kernel begins with that may be launched before the one ahead of it
 * has ended. */
BR_DEV void
begin(void)
{
#ifndef BR_PORTABLE
    grid_go();
    grid_wait();
#endif
}

#ifndef BR_PORTABLE
/* A block that is to be alone of its kind on a multiprocessor has warps that do nothing:
 * their registers leave no room for another. A warp that ends gives its own back, so they
 * wait until `tell` of the `working` threads have said that they are done (H200, 1B, ms a
 * step of 16, 64 rows: .824 1.25 where they end, .815 1.22 where they wait). */
BR_DEV bool
is_spare(u32 working, u32 tell)
{
    if (tid() < working)
        return false;
    bar(2, block_dim() - working + tell);
    return true;
}
BR_DEV void
let_spare_go(u32 working, u32 tell)
{
    bar_arrive(2, block_dim() - working + tell);
}

/* How a block waits for what it reads: for the launch ahead, which made queries,
 * too. */
struct after_launch {
    enum { NEAR = false };
    BR_MEMBER void
    wait(u32) const
    {
        grid_wait();
    }
};
#endif

/* ---- numbers one by one --------------------------------------------------- */

/* Columns that stand apart, into rows that stand together, or back. */
KERNEL
br_nd_runs(ARGS)
{
    const u32 cols = a.width * a.count;
    const u64 i = thread_of_grid();
    const u32 t = (u32)(i / cols), c = (u32)(i % cols);

    begin();
    if (t >= a.n_rows)
        return;
    float *far = row(a.x, t) + a.off + c / a.width * a.pitch + c % a.width;
    float *near = row(a.y, t) + c;
    if (a.scatter)
        *far = *near;
    else
        *near = *far;
}

/* The rows that want logits. */
KERNEL
br_nd_wanted(ARGS)
{
    const u64 i = thread_of_grid();
    const u32 t = (u32)(i / a.x.cols), c = (u32)(i % a.x.cols);

    begin();
    if (t < a.n_rows)
        row(a.y, t)[c] = row(a.x, (u32)a.s.want[t])[c];
}

KERNEL
br_nd_each(ARGS)
{
    const u64 i = thread_of_grid();
    const u32 t = (u32)(i / a.y.cols), c = (u32)(i % a.y.cols);
    float x, y;

    begin();
    if (t >= a.n_rows)
        return;
    x = row(a.x, t)[c];
    y = a.e.ids ? a.b.p[(u64)picked(a, t) * a.y.cols + c]
        : a.b.p ? row(a.b, t)[a.b.cols == 1 ? 0 : c]
                : 0.0f;
    switch (a.op) {
    case BR_ND_ADD: x = x + y; break;
    case BR_ND_MUL: x = x * y; break;
    case BR_ND_SCALE: x = x * a.scale; break;
    case BR_ND_SOFTCAP: x = a.scale * ex_tanh(x / a.scale); break;
    case BR_ND_ACT: x = ex_act(a.act, x); break;
    case BR_ND_GLU: x = ex_glu(a.act, x, y); break;
    case BR_ND_TEMP: {
        const float n = (float)(a.s.position[t] / (i32)a.width + 1);
        x = x * fma_rn(ex_log(n), a.scale, 1.0f);
        break;
    }
    default: break;
    }
    row(a.y, t)[c] = x;
}

/* ---- norms ------------------------------------------------------------------ */

/* The sum of the 16 lanes of lane 0, 8-4-2-1. All threads of the warp call. */
BR_DEV float
lanes16(float v)
{
    v = v + shfl_xor_f(v, 8);
    v = v + shfl_xor_f(v, 4);
    v = v + shfl_xor_f(v, 2);
    return v + shfl_xor_f(v, 1);
}

/* A block a piece of `width` columns of a row. */
KERNEL
br_nd_norm(ARGS)
{
    __shared__ float part[2048];
    __shared__ float factor;
    const u32 t = bid_y(), n = a.width, l = tid() & 15;
    const float *x = row(a.x, t) + (u64)bid() * n;
    float *y = row(a.y, t) + (u64)bid() * n;
    float sum = 0.0f;

    begin();
    for (u32 from = 0; from < n; from += 2048) {
        const u32 m = n - from < 2048 ? n - from : 2048;
        bar(0, THREADS);
        for (u32 i = tid(); i < m; i += THREADS)
            part[i] = x[from + i];
        bar(0, THREADS);
        if (tid() < 16)
            for (u32 i = l; i < m; i += 16)
                sum = fma_rn(part[i], part[i], sum);
    }
    if (tid() < 32) {
        sum = lanes16(tid() < 16 ? sum : 0.0f);
        if (tid() == 0)
            factor = 1.0f / sqrt_rn(sum / (float)n + a.eps);
    }
    bar(0, THREADS);
    for (u32 i = tid(); i < n; i += THREADS) {
        const float v = x[i] * factor;
        y[i] = a.w.p ? v * a.w.p[i] : v;
    }
}

/* The same of short pieces: 16 threads a piece, count of them a row. */
KERNEL
br_nd_norm_heads(ARGS)
{
    const u64 i = thread_of_grid() >> 4;
    const u32 t = (u32)(i / a.count), n = a.width, l = tid() & 15;
    const bool in = t < a.n_rows;
    const u64 at = (i % a.count) * n;
    float sum = 0.0f;

    begin();
    const float *x = row(a.x, in ? t : 0) + at;
#pragma unroll 8
    for (u32 k = l; k < n; k += 16)
        sum = fma_rn(x[k], x[k], sum);
    sum = 1.0f / sqrt_rn(lanes16(sum) / (float)n + a.eps);
    if (in)
#pragma unroll 8
        for (u32 k = l; k < n; k += 16) {
            const float v = x[k] * sum;
            row(a.y, t)[at + k] = a.w.p ? v * a.w.p[k] : v;
        }
}

/* ---- products ----------------------------------------------------------------- */

/* A warp a block of 32 or 256 activations. */
KERNEL
br_nd_quantise(ARGS)
{
    const u32 lane = tid() & 31, t = bid_y(), n = a.m.block;
    const u32 b = bid() * BR_ND_WARPS + (tid() >> 5);
    const u32 blocks = a.m.n_in / n;
    const float *x = row(a.x, t) + (u64)b * n;
    float top = 0.0f, d;

    begin();
    if (b >= blocks)
        return;
    for (u32 i = lane; i < n; i += 32)
        top = abs_f32(x[i]) > top ? abs_f32(x[i]) : top;
    for (u32 m = 16; m; m >>= 1) {
        const float o = shfl_xor_f(top, m);
        top = o > top ? o : top;
    }
    d = top / 127.0f;
    for (u32 i = lane; i < n; i += 32) {
        const float v = d < 0x1p-126f ? 0.0f : rint_f32(x[i] / d);
        a.xq[(u64)t * a.m.n_in + (u64)b * n + i] =
            (signed char)(v >= -127.0f && v <= 127.0f ? (i32)v : 0);
    }
    if (lane == 0)
        a.xd[(u64)t * blocks + b] = d;
}

#include "node_float.cuh"
KERNEL
br_nd_mul_f32(ARGS)
{
    mul_float<BR_ND_F32>(OF_PART);
}
KERNEL
br_nd_mul_f16(ARGS)
{
    mul_float<BR_ND_F16>(OF_PART);
}
KERNEL
br_nd_mul_bf16(ARGS)
{
    mul_float<BR_ND_BF16>(OF_PART);
}

/* Blocks of 32: eight lanes a block, so lanes 8c..8c+7 are chain c. */
KERNEL
br_nd_mul_int32(ARGS)
{
    const u32 lane = tid() & 31, n = bid() * BR_ND_WARPS + (tid() >> 5);
    const u32 t0 = first_row(OF_PART), end = end_row(OF_PART), K = a.m.n_in;
    const u32 blocks = K / 32;
    const u64 wn = weight_row(OF_PART, n);
    const signed char *w = (const signed char *)a.m.q + wn * K;
    float chain[TILE];

    if (n >= a.m.n_out)
        return;
    EACH (r)
        chain[r] = 0.0f;
#pragma unroll 2
    for (u32 from = 0; from < K; from += 128) {
        const u32 k = from + lane * 4, b = k / 32;
        const bool in = k < K;
        const u32 q = in ? *(const u32 *)(w + k) : 0;
        const float d = in ? a.m.d[wn * blocks + b] : 0.0f;
        const float dm = in && a.m.dmin ? a.m.dmin[wn * blocks + b] : 0.0f;
        EACH (r) {
            const u32 t = input_row(a, t0 + r);
            const u32 x = in ? *(const u32 *)(a.xq + (u64)t * K + k) : 0;
            const float xd = in ? a.xd[(u64)t * blocks + b] : 0.0f;
            i32 s = dp4a(q, x, 0);
            float v;

            s += (i32)shfl_xor((u32)s, 1);
            s += (i32)shfl_xor((u32)s, 2);
            s += (i32)shfl_xor((u32)s, 4);
            v = (d * xd) * (float)s;
            if (a.m.dmin) {
                i32 low = dp4a(x, 0x01010101, 0);
                low += (i32)shfl_xor((u32)low, 1);
                low += (i32)shfl_xor((u32)low, 2);
                low += (i32)shfl_xor((u32)low, 4);
                v = fma_rn(-(dm * xd), (float)low, v);
            }
            if (in)
                chain[r] = chain[r] + v;
        }
    }
    EACH (r) {
        chain[r] = chain[r] + shfl_xor_f(chain[r], 8);
        chain[r] = chain[r] + shfl_xor_f(chain[r], 16);
        if (lane == 0)
            row(a.y, t0 + r)[n] = chain[r];
    }
}

/* Blocks of 256, two turns of the warp each; chain b mod 4. */
KERNEL
br_nd_mul_int256(ARGS)
{
    const u32 lane = tid() & 31, n = bid() * BR_ND_WARPS + (tid() >> 5);
    const u32 t0 = first_row(OF_PART), end = end_row(OF_PART), K = a.m.n_in;
    const u32 blocks = K / 256, subs = K / a.m.sub;
    const u64 wn = weight_row(OF_PART, n);
    const signed char *w = (const signed char *)a.m.q + wn * K;
    float chain[TILE][4];

    if (n >= a.m.n_out)
        return;
    EACH (r)
        chain[r][0] = chain[r][1] = chain[r][2] = chain[r][3] = 0.0f;
    for (u32 b0 = 0; b0 < blocks; b0 += 4)
#pragma unroll
        for (u32 c = 0; c < 4; c++) {
            const u32 b = b0 + c, k = b * 256 + lane * 4;
            u32 q[2];
            i32 sc[2], mn[2] = {0, 0};
            float d, dm = 0.0f;

            if (b >= blocks)
                break;
#pragma unroll
            for (u32 h = 0; h < 2; h++) {
                const u64 at = wn * subs + (k + h * 128) / a.m.sub;
                q[h] = *(const u32 *)(w + k + h * 128);
                sc[h] = a.m.scale[at];
                if (a.m.min)
                    mn[h] = a.m.min[at];
            }
            d = a.m.d[wn * blocks + b];
            if (a.m.min)
                dm = a.m.dmin[wn * blocks + b];
            EACH (r) {
                const u32 t = input_row(a, t0 + r);
                const u32 *x = (const u32 *)(a.xq + (u64)t * K + k);
                const float xd = a.xd[(u64)t * blocks + b];
                i32 s = sc[0] * dp4a(q[0], x[0], 0) +
                        sc[1] * dp4a(q[1], x[32], 0);
                float v;

                for (u32 m = 16; m; m >>= 1)
                    s += (i32)shfl_xor((u32)s, m);
                v = (d * xd) * (float)s;
                if (a.m.min) {
                    i32 low = mn[0] * dp4a(x[0], 0x01010101, 0) +
                              mn[1] * dp4a(x[32], 0x01010101, 0);
                    for (u32 m = 16; m; m >>= 1)
                        low += (i32)shfl_xor((u32)low, m);
                    v = fma_rn(-(dm * xd), (float)low, v);
                }
                chain[r][c] = chain[r][c] + v;
            }
        }
    EACH (r)
        if (lane == 0)
            row(a.y, t0 + r)[n] =
                (chain[r][0] + chain[r][1]) + (chain[r][2] + chain[r][3]);
}

#ifndef BR_PORTABLE
#include "node_mma.cuh"
#include "node_packed.cuh"
#include "node_pack.cuh"
#include "tile_parts.cuh"
#include "node_rows.cuh"
#include "node_near.cuh"
#include "node_dense.cuh"
#include "node_tiles.cuh"
#include "node_wide.cuh"
#include "node_round.cuh"
#endif

/* The rows of a table that are the tokens'. */
KERNEL
br_nd_embed(ARGS)
{
    const u32 K = a.m.n_in;
    const u64 i = thread_of_grid();
    const u32 t = (u32)(i / K), k = (u32)(i % K);

    begin();
    if (t >= a.n_rows)
        return;
    const u32 r = (u32)a.s.token[t];
    const u64 at = (u64)r * K + k;
    float v;
#ifndef BR_PORTABLE
    if (a.m.kind == BR_ND_TILES)
        v = f16_lo(((const u16 *)((const u8 *)a.m.q +
                                  tile_at16(a.m.sub, r, k / 8)))[k % 8]) *
            a.m.d[r];
    else if (a.m.kind > BR_ND_TILES)
        v = pack_number(a.m, r, k) * a.m.d[r];
    else
#endif
    if (a.m.kind == BR_ND_F32)
        v = weight<BR_ND_F32>(a.m.q, at);
    else if (a.m.kind == BR_ND_F16)
        v = weight<BR_ND_F16>(a.m.q, at);
    else
        v = weight<BR_ND_BF16>(a.m.q, at);
    row(a.y, t)[k] = v;
}

/* ---- positions ------------------------------------------------------------------ */

/* A thread a pair, and one for each column that does not turn. */
KERNEL
br_nd_rope(ARGS)
{
    const u32 per = a.n_rot / 2 + (a.head_k - a.n_rot), all = per * a.heads;
    const u64 i = thread_of_grid();
    const u32 t = (u32)(i / all), j = (u32)(i % all), h = j / per;
    const u32 p = j % per, half = a.n_rot / 2;

    begin();
    if (t >= a.n_rows)
        return;
    const float *x = row(a.x, t) + h * a.head_k;
    float *y = row(a.y, t) + h * a.head_k;
    if (p >= half) {
        y[half + p] = x[half + p];
        return;
    }
    const u32 one = a.neighbours ? 2 * p : p;
    const u32 two = a.neighbours ? 2 * p + 1 : p + half;
    const float u = x[one], v = x[two];
    float s, c;
    ex_sincos((float)a.s.position[t], a.w.p[p], &s, &c);
    s = s * a.scale;
    c = c * a.scale;
    y[one] = fma_rn(u, c, -(v * s));
    y[two] = fma_rn(u, s, v * c);
}

/* Where a position's numbers begin in the pool, row t's slot. */
BR_DEV u64
place(const struct br_nd_step &s, const struct br_nd_cache &c, u32 t, u32 pos)
{
    const u32 *table = s.tables + s.at[t * s.n_groups + c.group];

    return table[pos / 16] * c.page + c.first + (u64)(pos % 16) * c.cols;
}
BR_DEV float
kept(const struct br_nd_cache &c, u64 i)
{
    return c.half ? f16_lo(((const u16 *)c.pool)[i])
                  : ((const float *)c.pool)[i];
}

KERNEL
br_nd_keep(ARGS)
{
    const u64 i = thread_of_grid();
    const u32 both = a.x.cols + a.b.cols, t = (u32)(i / both);
    const u32 j = (u32)(i % both), c = j < a.x.cols ? j : j - a.x.cols;

    begin();
    if (t >= a.n_rows)
        return;
    const struct br_nd_cache &to = j < a.x.cols ? a.k : a.v;
    const u64 at = place(a.s, to, t, (u32)a.s.position[t]) + c;
    const float x = row(j < a.x.cols ? a.x : a.b, t)[c];
    if (to.half)
        ((u16 *)to.pool)[at] = (u16)f16_of(x);
    else
        ((float *)to.pool)[at] = x;
}

#ifndef BR_PORTABLE
/* Sine and cosine, times scale, of every row's angles: once a step, z[t][2 p]. */
KERNEL
br_nd_angles(ARGS)
{
    const u64 i = thread_of_grid();
    const u32 n = a.n_rot / 2, t = (u32)(i / n), p = (u32)(i % n);
    float s, c;

    begin();
    if (t >= a.n_rows)
        return;
    ex_sincos((float)a.s.position[t], a.w.p[p], &s, &c);
    *(u32x2 *)(row(a.z, t) + 2 * p) = {as_u32(s * a.scale),
                                       as_u32(c * a.scale)};
}

/* Of two numbers that are there: a choice of the arguments of a kernel by their
 * address would make clang copy all of them to each thread's stack. */
template <class T>
BR_DEV T
pick(bool first, T x, T y)
{
    return first ? x : y;
}

/* x[j] is number 16 j + l of a head of n, turned by turn[j]. */
template <u32 MOST>
BR_DEV void
turn_pairs(u32 n, bool neighbours, float (&x)[MOST], const float (&turn)[MOST][2])
{
    const u32 l = tid() & 15, half = n / 32;
    float other[MOST];

#pragma unroll
    for (u32 j = 0; j < MOST; j++)
        other[j] = shfl_xor_f(x[j], 1);
#pragma unroll
    for (u32 j = 0; j < MOST; j++) {
        if (j * 16 >= n || (!neighbours && j >= half))
            break;
        const float s = turn[j][0], c = turn[j][1];
        if (neighbours) {
            const float u = l % 2 ? other[j] : x[j];
            const float z = l % 2 ? x[j] : other[j];
            x[j] = l % 2 ? fma_rn(u, s, z * c) : fma_rn(u, c, -(z * s));
        } else {
#pragma unroll
            for (u32 o = 0; o < MOST; o++) /* a constant index */
                if (o == j + half) {
                    const float u = x[j], z = x[o];
                    x[j] = fma_rn(u, c, -(z * s));
                    x[o] = fma_rn(u, s, z * c);
                }
        }
    }
}

/* Every 16th number, from number `at` of row t on, of a product in pieces, where
 * the factors of its weights are: all pieces are asked for at once. */
template <u32 MOST>
BR_DEV void
head_of_pieces(float (&x)[MOST], const struct br_nd_pieces &p, u32 t, u32 at)
{
    const u64 step = (u64)BR_ND_APART * p.pitch;
    const float *s = p.sums + (u64)t * p.pitch + at;
    const float xd = p.xd[t];
    float v[BR_ND_PIECES][MOST];

#pragma unroll
    for (u32 i = 0; i < BR_ND_PIECES; i++)
#pragma unroll
        for (u32 j = 0; j < MOST; j++)
            if (i < p.segs)
                v[i][j] = s[i * step + j * 16];
#pragma unroll
    for (u32 i = 1; i < BR_ND_PIECES; i++)
#pragma unroll
        for (u32 j = 0; j < MOST; j++)
            if (i < p.segs)
                v[0][j] = v[0][j] + v[i][j];
#pragma unroll
    for (u32 j = 0; j < MOST; j++)
        x[j] = v[0][j] * xd * x[j];
}

/* What br_nd_norm_heads, br_nd_rope and br_nd_keep do to head h of row t, of
 * queries x, then keys b, then values c: 16 threads, a thread every 16th number
 * of it. op: 1 queries have a norm, 2 keys. z: from br_nd_angles. in: unless
 * segs is 0, the three are there so. HD: numbers of a head, or 0: a.head_k, no
 * pieces; a launch of few rows waits for its instructions, of which a constant
 * leaves a quarter. near: unless 0, where queries go in shared memory. */
template <u32 HD>
BR_DEV void
turn_head(const struct br_nd_args &a, u32 t, u32 h, bool here,
          const struct br_nd_pieces &in, u32 near)
{
    enum { MOST = (HD ? HD : (u32)BR_ND_TURN_MOST) / 16 };
    const u32 n = HD ? HD : a.head_k, l = tid() & 15;
    const u32 k = h - a.heads, v = k - a.count; /* of keys, of values */
    const bool is_q = h < a.heads, is_v = !is_q && k >= a.count;
    const float *w = pick(is_q, a.w.p, a.w2.p);
    const float *rows = pick(is_q, a.x.p, pick(is_v, a.c.p, a.b.p));
    const u32 pitch =
        pick(is_q, a.x.stride, pick(is_v, a.c.stride, a.b.stride));
    const struct br_nd_cache to = {
        pick(is_v, a.v.pool, a.k.pool),   pick(is_v, a.v.page, a.k.page),
        pick(is_v, a.v.first, a.k.first), pick(is_v, a.v.cols, a.k.cols),
        pick(is_v, a.v.group, a.k.group), pick(is_v, a.v.half, a.k.half)};
    const u32 from = (is_q ? h : is_v ? v : k) * n + l;
    const u32 at =
        from + pick(is_q, in.at[0], pick(is_v, in.at[2], in.at[1]));
    const bool pieces = HD && in.segs;
    float x[MOST], sum = 0.0f, by[MOST], turn[MOST][2];

    /* what the host sent and weights are there before the launch ahead ends */
    const u64 place_at =
        is_q || !here ? 0 : place(a.s, to, t, (u32)a.s.position[t]) + from;
#pragma unroll
    for (u32 j = 0; j < MOST; j++) {
        by[j] = j * 16 < n && !is_v && w ? w[j * 16 + l] : 1.0f;
        x[j] = pieces && here ? in.d[at + j * 16] : 0.0f;
    }
    grid_wait();
#pragma unroll
    for (u32 j = 0; j < MOST; j++) {
        const u32 p = a.neighbours ? j * 8 + l / 2 : j * 16 + l;
        if (!is_v && 2 * p < n && here) {
            const u32x2 sc = *(const u32x2 *)(row(a.z, t) + 2 * p);
            turn[j][0] = as_f32(sc.x), turn[j][1] = as_f32(sc.y);
        }
        if (!pieces)
            x[j] = j * 16 < n && here ? rows[(u64)t * pitch + from + j * 16]
                                      : 0.0f;
    }
    if (pieces && here)
        head_of_pieces<MOST>(x, in, t, at);
#pragma unroll
    for (u32 j = 0; j < MOST; j++)
        sum = j * 16 < n ? fma_rn(x[j], x[j], sum) : sum;
    sum = 1.0f / sqrt_rn(lanes16(sum) / (float)n + a.eps);
#pragma unroll
    for (u32 j = 0; j < MOST; j++)
        if (!is_v && (a.op & (is_q ? 1 : 2)) && j * 16 < n)
            x[j] = x[j] * sum * by[j];
    float turned[MOST];
#pragma unroll
    for (u32 j = 0; j < MOST; j++)
        turned[j] = x[j];
    turn_pairs<MOST>(n, a.neighbours, turned, turn);
#pragma unroll
    for (u32 j = 0; j < MOST; j++) {
        const float y = is_v ? x[j] : turned[j];
        if (j * 16 >= n || !here)
            break;
        if (is_q && near)
            sts32(near + (j * 16 + l) * 4, as_u32(y));
        else if (is_q)
            row(a.y, t)[from + j * 16] = y;
        else if (to.half)
            ((u16 *)to.pool)[place_at + j * 16] = (u16)f16_of(y);
        else
            ((float *)to.pool)[place_at + j * 16] = y;
    }
}

template <u32 HD>
BR_DEV void
turn(const struct br_nd_args &a, const struct br_nd_pieces &in)
{
    const u32 heads = a.heads + 2 * a.count;
    const u64 i = thread_of_grid() >> 4;
    const u32 t = (u32)(i / heads);

    grid_go();
    turn_head<HD>(a, t, (u32)(i % heads), t < a.n_rows, in, 0);
}
KERNEL
br_nd_turn(ARGS)
{
    turn<0>(a, br_nd_pieces{});
}
KERNEL
br_nd_turn_64(const struct br_nd_joined j)
{
    turn<64>(j.a, j.in);
}
KERNEL
br_nd_turn_128(const struct br_nd_joined j)
{
    turn<128>(j.a, j.in);
}
#endif

/* ---- attention ------------------------------------------------------------------- */

/* dot(q, the key at) */
BR_DEV float
score_of(const struct br_nd_args &a, const float *q, u64 at)
{
    float lane[16];
    u32 i = 0;

    for (u32 l = 0; l < 16; l++)
        lane[l] = 0.0f;
    for (; i + 16 <= a.head_k; i += 16)
#pragma unroll
        for (u32 l = 0; l < 16; l++)
            lane[l] = fma_rn(q[i + l], kept(a.k, at + i + l), lane[l]);
#pragma unroll
    for (u32 l = 0; l < 16; l++)
        if (i + l < a.head_k)
            lane[l] = fma_rn(q[i + l], kept(a.k, at + i + l), lane[l]);
#pragma unroll
    for (u32 half = 8; half > 0; half /= 2)
        for (u32 l = 0; l < half; l++)
            lane[l] = lane[l] + lane[l + half];
    return lane[0];
}

/* Grid: heads, rows. Shared: the query, the fold's numbers, scores. */
KERNEL
br_nd_attend(ARGS)
{
    __shared__ float score[BR_ND_BLOCK], top[BR_ND_WARPS];
    __shared__ float fold_l, old, now;
    float *q = (float *)dyn_shared(), *acc = q + a.head_k;
    const u32 h = bid(), t = bid_y(), kv = h / a.per_kv;
    const u32 pos = (u32)a.s.position[t];
    const u32 lo = a.window && pos >= a.window ? pos - a.window + 1 : 0;
    float M = 0.0f;

    begin();
    for (u32 i = tid(); i < a.head_k; i += THREADS)
        q[i] = row(a.x, t)[h * a.head_k + i];
    for (u32 b = lo / BR_ND_BLOCK; b <= pos / BR_ND_BLOCK; b++) {
        const u32 b0 = b * BR_ND_BLOCK, from = lo > b0 ? lo : b0;
        const u32 to = pos + 1 < b0 + BR_ND_BLOCK ? pos + 1 : b0 + BR_ND_BLOCK;
        const bool first = b == lo / BR_ND_BLOCK;
        const u32 j = from + tid();
        float s = as_f32(0xff800000), m, l;

        bar(0, THREADS);
        if (j < to) {
            s = score_of(a, q, place(a.s, a.k, t, j) + kv * a.head_k) * a.scale;
            if (a.cap > 0.0f)
                s = a.cap * ex_tanh(s / a.cap);
        }
        m = s;
        for (u32 i = 16; i; i >>= 1)
            m = max_f32(m, shfl_xor_f(m, i));
        if ((tid() & 31) == 0)
            top[tid() >> 5] = m;
        bar(0, THREADS);
        for (u32 i = 0; i < BR_ND_WARPS; i++)
            m = max_f32(m, top[i]);
        score[tid()] = j < to ? ex_exp(s - m) : 0.0f;
        bar(0, THREADS);
        if (tid() == THREADS - 1) {
            const float M1 = !first && M > m ? M : m;
            l = 0.0f;
            for (u32 i = 0; i < to - from; i++)
                l = l + score[i];
            old = first ? 0.0f : ex_exp(M - M1);
            now = first ? 1.0f : ex_exp(m - M1);
            fold_l = first ? l : fma_rn(l, now, fold_l * old);
        }
        for (u32 d0 = 0; d0 < a.head_v; d0 += THREADS) {
            const u32 d = d0 + tid();
            float sum = 0.0f;
            if (d < a.head_v)
                for (u32 i = 0; i < to - from; i++) {
                    const float v =
                        a.v.pool
                            ? kept(a.v, place(a.s, a.v, t, from + i) +
                                            kv * a.head_v + d)
                            : kept(a.k, place(a.s, a.k, t, from + i) +
                                            kv * a.head_k + d);
                    sum = fma_rn(score[i], v, sum);
                }
            if (d0 == 0)
                bar(0, THREADS); /* old and now */
            if (d < a.head_v)
                acc[d] = first ? sum : fma_rn(sum, now, acc[d] * old);
        }
        M = !first && M > m ? M : m;
    }
    bar(0, THREADS);
    if (a.w.p && tid() == 0) { /* a sink: one more score, with no value */
        const float m = a.w.p[h], M1 = M > m ? M : m;
        old = ex_exp(M - M1);
        fold_l = fold_l * old + ex_exp(m - M1);
    }
    bar(0, THREADS);
    for (u32 d = tid(); d < a.head_v; d += THREADS)
        row(a.y, t)[h * a.head_v + d] =
            (a.w.p ? acc[d] * old : acc[d]) / fold_l;
}

#ifndef BR_PORTABLE
#include "node_flash.cuh"
#include "node_few.cuh"
#include "node_stay.cuh"
#endif
#include "node_experts.cuh"
#include "node_states.cuh"
