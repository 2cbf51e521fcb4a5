/* mega_decode.cu - a whole decode step of a dense transformer in one launch.
 *
 *   gather x (words of other workers) -> tensor cores over 12 slots of 16 KiB
 *   -> finish rows -> publish words
 *
 * One lane loads: it copies a worker's stream chunk after chunk, as far ahead
 * as slots are free, but never with more than `depth` chunks under way. Weights
 * depend on nothing, so it runs ahead across phases, layers and steps; what a
 * phase waits for is only its activations. The depth matters: a word that a
 * worker publishes or polls queues behind the copies under way, 0.5 us for
 * each chunk, and with all 12 under way every exchange cost 3 us more.
 *
 * Numbers: each row's dot product is segments of 512 columns, each a chain of
 * 32 mma from zero, added in ascending order in f32: a function of the shape
 * alone, the same for one token and for many (numbers contract).
 * SPDX-License-Identifier: Apache-2.0 */
#include "device.cuh"
#include "mega_table.h"

#define SLOTS BR_MK_SLOTS
#define SPIN_LIMIT (1u << 22) /* polls: seconds */

/* Shared memory: slots, x in fragment order, partial sums, scratch, barriers */
struct smem {
    unsigned char ring[SLOTS][BR_MK_CHUNK];
    u32 x[BR_MK_MAX_K / 2];
    float part[BR_MK_MAX_PARTS * 16];
    float rope[128];               /* cos, sin of this position */
    u32 pages[BR_MK_TASKS * 16];   /* of this worker's attention tasks */
    float red[64];
    u64 full[SLOTS], empty[SLOTS];
};
static_assert(SLOTS <= BR_MK_WARPS, "a warp for each slot");
static_assert(sizeof(struct smem) == BR_MK_SHARED, "host asks for this");

/* Written by the host once after the module is loaded; the compiler reads it
 * as operands from the constant bank, so it costs no registers. */
extern "C" {
__constant__ struct br_mk_args args;
}

/* The block's shared memory: a constant address, so no register holds it. */
extern __shared__ __attribute__((aligned(1024))) unsigned char raw[];
#define S ((struct smem *)raw)
#define SCRATCH ((float *)S->x) /* q, k, v, scores: attention leaves x free */

struct worker {
    u32 sm, t;
    u32 count; /* chunks consumed by this block before this phase */
    u32 epoch, token, pos;
    u32 phase;
};

/* Clocks of a phase: start, input there, product done, published. Built only
 * for bench-cuda-decode --profile. */
#ifdef BR_MK_PROFILE
#define STAMP(i)                                                               \
    do {                                                                       \
        if (w->t == 0 && args.profile)                                         \
            args.profile[((u64)w->sm * args.n_inst + w->phase) * 4 + (i)] =    \
                clock_cycles();                                                \
    } while (0)
#else
#define STAMP(i) (void)0
#endif

/* ---- exchange ------------------------------------------------------------ */

BR_DEV void
give_up(void)
{
    *(volatile u32 *)args.abort_flag = 1;
    asm volatile("trap;");
}

BR_DEV u32
take(const struct worker *w, const u64 *p)
{
#pragma unroll 1
    for (u32 n = 0; n < SPIN_LIMIT; n++) {
        u64 v = ld_relaxed64(p);
        if ((u32)(v >> 32) == w->epoch)
            return (u32)v;
    }
    give_up();
    return 0;
}

BR_DEV u32x2
take2(const struct worker *w, const u64 *p)
{
#pragma unroll 1
    for (u32 n = 0; n < SPIN_LIMIT; n++) {
        u64x2 v = ld_relaxed64x2(p);
        if ((u32)(v.x >> 32) == w->epoch && (u32)(v.y >> 32) == w->epoch)
            return u32x2{(u32)v.x, (u32)v.y};
    }
    give_up();
    return u32x2{0, 0};
}

/* Thread 0 waits until most of the n workers of a phase said "out", or a while;
 * then the words themselves decide. Most, because the last ones come while the
 * first look is on its way: waiting for all cost one round trip more. */
#define HINT_LIMIT (1u << 16)
enum { HINT_H, HINT_ATTN, HINT_MID, HINT_ACT }; /* HINT_H: what h_in holds */

BR_DEV u32 *
hint_of(u32 layer, u32 which)
{
    return args.hints + (layer * 4 + which) * 32;
}

BR_DEV void
await_hint(const struct worker *w, const u32 *hint, u32 n)
{
    if (w->t == 0)
#pragma unroll 1
        for (u32 s = 0; s < HINT_LIMIT; s++)
            if (ld_relaxed32(hint) + n / 8 >= w->epoch * n)
                break;
    bar(1, BR_MK_THREADS);
}

BR_DEV void
give_hint(const struct worker *w, u32 layer, u32 which)
{
    if (w->t == 0)
        red_relaxed_add(hint_of(layer, which), 1);
}

BR_DEV void
give(const struct worker *w, u64 *p, u32 bits)
{
    st_relaxed64(p, (u64)w->epoch << 32 | bits);
}

BR_DEV u64 *
words(const struct worker *w, u32 layer, u64 off)
{
    return args.words + args.map.layer * layer + off;
}

/* ---- block reductions ------------------------------------------------------ */

/* What 16 warps left in r[0..15], in a fixed tree. */
BR_DEV float
sum16(const float *r)
{
    u32x4 a = lds128(smem_of(r)), b = lds128(smem_of(r + 4));
    u32x4 c = lds128(smem_of(r + 8)), d = lds128(smem_of(r + 12));
    float s0 = add_rn(add_rn(as_f32(a.x), as_f32(a.y)),
                      add_rn(as_f32(a.z), as_f32(a.w)));
    float s1 = add_rn(add_rn(as_f32(b.x), as_f32(b.y)),
                      add_rn(as_f32(b.z), as_f32(b.w)));
    float s2 = add_rn(add_rn(as_f32(c.x), as_f32(c.y)),
                      add_rn(as_f32(c.z), as_f32(c.w)));
    float s3 = add_rn(add_rn(as_f32(d.x), as_f32(d.y)),
                      add_rn(as_f32(d.z), as_f32(d.w)));
    return add_rn(add_rn(s0, s1), add_rn(s2, s3));
}

BR_DEV float
max16(const float *r)
{
    u32x4 a = lds128(smem_of(r)), b = lds128(smem_of(r + 4));
    u32x4 c = lds128(smem_of(r + 8)), d = lds128(smem_of(r + 12));
    float s0 = max_f32(max_f32(as_f32(a.x), as_f32(a.y)),
                       max_f32(as_f32(a.z), as_f32(a.w)));
    float s1 = max_f32(max_f32(as_f32(b.x), as_f32(b.y)),
                       max_f32(as_f32(b.z), as_f32(b.w)));
    float s2 = max_f32(max_f32(as_f32(c.x), as_f32(c.y)),
                       max_f32(as_f32(c.z), as_f32(c.w)));
    float s3 = max_f32(max_f32(as_f32(d.x), as_f32(d.y)),
                       max_f32(as_f32(d.z), as_f32(d.w)));
    return max_f32(max_f32(s0, s1), max_f32(s2, s3));
}

BR_DEV float
warp_sum(float v)
{
    for (u32 m = 16; m; m >>= 1)
        v = add_rn(v, shfl_xor_f(v, m));
    return v;
}

/* Over the 512 consumers, through r[0..15]; the caller sees to it that nobody
 * still reads r from before. */
BR_DEV float
block_sum(const struct worker *w, float v, float *r)
{
    v = warp_sum(v);
    if ((w->t & 31) == 0)
        r[(w->t >> 5)] = v;
    bar(1, BR_MK_THREADS);
    return sum16(r);
}

BR_DEV float
block_max(const struct worker *w, float v, float *r)
{
    for (u32 m = 16; m; m >>= 1)
        v = max_f32(v, shfl_xor_f(v, m));
    if ((w->t & 31) == 0)
        r[(w->t >> 5)] = v;
    bar(1, BR_MK_THREADS);
    return max16(r);
}

/* ---- input vectors -------------------------------------------------------- */

/* Columns k, k+1 (k even) go where lane t of k-step j reads them as its B
 * operand: 8 bytes (k 2t, 2t+1 | 2t+8, 2t+9) at j*32 + t*8. */
BR_DEV void
put_x(const struct worker *w, u32 k, u32 pair)
{
    u32 j = k >> 4, kk = k & 15;

    sts32(smem_of(S->x) + j * 32 + ((kk & 7) >> 1) * 8 + (kk >> 3) * 4, pair);
}

/* Word pairs p[k], p[k + STRIDE].. of this thread: asks for all, and again for
 * what was not there. */
#define PAIRS 4
#define STRIDE (BR_MK_THREADS * 2)

BR_DEV void
take_pairs(const struct worker *w, const u64 *p, u32 k, u32 n, u32x2 *v)
{
    u32 todo = 0;

#pragma unroll
    for (u32 i = 0; i < PAIRS; i++)
        if (k + i * STRIDE < n)
            todo |= 1u << i;
#pragma unroll 1
    for (u32 s = 0; todo; s++) {
        u64x2 r[PAIRS];
#pragma unroll
        for (u32 i = 0; i < PAIRS; i++)
            if (todo >> i & 1)
                r[i] = ld_relaxed64x2(p + k + i * STRIDE);
#pragma unroll
        for (u32 i = 0; i < PAIRS; i++)
            if ((todo >> i & 1) && (u32)(r[i].x >> 32) == w->epoch &&
                (u32)(r[i].y >> 32) == w->epoch) {
                v[i] = u32x2{(u32)r[i].x, (u32)r[i].y};
                todo &= ~(1u << i);
            }
        if (s > SPIN_LIMIT)
            give_up();
    }
}

/* The input vector of a phase, n words at p, as bf16 in x. With a weight the
 * words are f32: x = bf16(h * weight), and each warp leaves its sum of h^2 in
 * red: the factor rsqrt(mean(h^2) + eps) is the same for all columns, so it
 * waits for the product and multiplies the rows (row_scale). Without, a word is
 * a bf16 pair already. row: h is this embedding row instead.
 * One piece of code for all phases: it runs cold, and every 128 bytes of it
 * cost 100 to 200 cycles to fetch. */
BR_DEV void
take_input(const struct worker *w, const u64 *p, u32 n, const float *weight,
           const u32 *row)
{
    float sum = 0.0f;

#pragma unroll 1
    for (u32 k0 = w->t * 2; k0 < n; k0 += PAIRS * STRIDE) {
        u32x2 v[PAIRS], g[PAIRS];
        if (weight)
#pragma unroll
            for (u32 i = 0; i < PAIRS; i++)
                if (k0 + i * STRIDE < n)
                    g[i] = *(const u32x2 *)(weight + k0 + i * STRIDE);
        if (row) {
#pragma unroll
            for (u32 i = 0; i < PAIRS; i++)
                if (k0 + i * STRIDE < n) {
                    u32 h = row[(k0 + i * STRIDE) >> 1];
                    v[i] = u32x2{as_u32(bf16_lo(h)), as_u32(bf16_hi(h))};
                }
        } else {
            take_pairs(w, p, k0, n, v);
        }
#pragma unroll
        for (u32 i = 0; i < PAIRS; i++) {
            const u32 k = k0 + i * STRIDE;
            if (k >= n)
                continue;
            if (weight) {
                float a = as_f32(v[i].x), b = as_f32(v[i].y);
                put_x(w, k, pack_bf16(mul_rn(a, as_f32(g[i].x)),
                                      mul_rn(b, as_f32(g[i].y))));
                sum = fma_rn(a, a, sum);
                sum = fma_rn(b, b, sum);
            } else {
                put_x(w, k * 2, v[i].x);
                put_x(w, k * 2 + 2, v[i].y);
            }
        }
    }
    if (weight) {
        sum = warp_sum(sum);
        if ((w->t & 31) == 0)
            S->red[w->t >> 5] = sum;
    }
    bar(1, BR_MK_THREADS);
}

BR_DEV float
row_scale(const struct worker *w)
{
    return rsqrt_fast(
        fma_rn(sum16(S->red), rcp((float)args.hidden), args.eps));
}

/* ---- the product ------------------------------------------------------------ */

/* Until the barrier has passed the round with this parity. */
BR_DEV void
mbar_wait(u32 bar_addr, u32 parity)
{
#pragma unroll 1
    for (u32 s = 0; !mbar_try(bar_addr, parity); s++)
        if (s > SPIN_LIMIT)
            give_up();
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

/* The n chunks of a phase: chunk i goes to warp i mod 12 and leaves its 16
 * partial sums at part[16 i]. As many warps as slots, no more: a slot is then
 * always taken by the same warp, and a warp never waits for a barrier two
 * rounds ahead, which its parity could not tell from the last round. */
BR_DEV void
multiply(const struct worker *w, const struct br_mk_inst *in, u32 n)
{
    const u32 lane = w->t & 31;

#pragma unroll 1
    for (u32 i = (w->t >> 5); i < n && (w->t >> 5) < SLOTS; i += SLOTS) {
        const u32 at = w->count + i, slot = at % SLOTS;
        const u32 A = smem_of(S->ring) + slot * BR_MK_CHUNK + lane * 16;
        const u32 X = smem_of(S->x) + (i % in->segs) * 1024 + (lane & 3) * 8;
        float c[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        u32x4 a0[4], a1[4];
        u32x2 x0[4], x1[4];

        mbar_wait(smem_of(S->full) + slot * 8, (at / SLOTS) & 1);
        operands(a0, x0, A, X, 0);
#pragma unroll 1
        for (u32 j = 0; j < 32; j += 8) { /* a chain: feed it without gaps */
            operands(a1, x1, A, X, j + 4);
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                mma_bf16(c, a0[k], x0[k]);
            if (j + 8 < 32)
                operands(a0, x0, A, X, j + 8);
#pragma unroll
            for (u32 k = 0; k < 4; k++)
                mma_bf16(c, a1[k], x1[k]);
        }
        warp_sync();
        if (lane == 0)
            mbar_arrive(smem_of(S->empty) + slot * 8);
        if ((lane & 3) == 0) {
            S->part[i * 16 + (lane >> 2)] = c[0];
            S->part[i * 16 + 8 + (lane >> 2)] = c[2];
        }
    }
    bar(1, BR_MK_THREADS);
}

/* Row r of tile i of this phase: segments ascending. */
BR_DEV float
row_sum(const struct worker *w, const struct br_mk_inst *in, u32 i, u32 r)
{
    const float *p = S->part + i * in->segs * 16 + r;
    float y = p[0];

#pragma unroll 4
    for (u32 s = 1; s < in->segs; s++)
        y = add_rn(y, p[s * 16]);
    return y;
}

BR_DEV float
silu(float x)
{
    return mul_rn(x, rcp(add_rn(1.0f, ex2(mul_rn(-x, LOG2E)))));
}

/* ---- attention ---------------------------------------------------------------- */

/* Where the 16 positions of a page keep their keys or values of a head. */
BR_DEV unsigned short *
kv_at(u32 page, u32 layer, u32 is_v, u32 kvh, u32 pos)
{
    u64 plane = ((u64)page * args.n_layers + layer) * 2 + is_v;

    return args.kv +
           ((plane * args.n_kv + kvh) * BR_MK_PAGE + pos % BR_MK_PAGE) *
               args.head_dim;
}

/* Page ids of this worker's attention tasks and the rotation of this position,
 * once a step: read in every layer they would come from DRAM every time,
 * 2 to 4 us behind the weights' queue. */
BR_DEV void
prepare_step(const struct worker *w)
{
    const u32 H = args.n_heads, hd = args.head_dim;
    const u32 n_blk = w->pos / BR_MK_KV_BLOCK + 1;

    bar(1, BR_MK_THREADS);
    if (w->t < BR_MK_TASKS * 16) {
        u32 task = w->sm + w->t / 16 * args.n_workers;
        u32 page = task / H * 16 + w->t % 16;
        if (task < H * n_blk && page <= w->pos / BR_MK_PAGE)
            S->pages[w->t] = args.pages[page];
    } else if (w->t >= 256 && w->t < 256 + hd) {
        S->rope[w->t - 256] = args.rope[(u64)w->pos * hd + w->t - 256];
    }
    bar(1, BR_MK_THREADS);
}

/* Page of position p0 + r of this worker's k-th task. */
BR_DEV u32
page_of(const struct worker *w, u32 k, u32 p0, u32 r)
{
    return k < BR_MK_TASKS ? S->pages[k * 16 + r / BR_MK_PAGE]
                           : args.pages[(p0 + r) / BR_MK_PAGE];
}

/* Norm over one head in shared memory by one warp (Qwen3); HD values. */
template <int HD>
BR_DEV void
head_norm(const struct worker *w, float *x, const float *weight)
{
    float s = 0.0f;

    for (u32 i = (w->t & 31); i < HD; i += 32)
        s = fma_rn(x[i], x[i], s);
    for (u32 m = 16; m; m >>= 1)
        s = add_rn(s, shfl_xor_f(s, m));
    s = rsqrt_fast(fma_rn(s, 1.0f / HD, args.eps));
    for (u32 i = (w->t & 31); i < HD; i += 32)
        x[i] = mul_rn(mul_rn(x[i], s), weight[i]);
}

template <int HD>
BR_DEV void
head_rope(const struct worker *w, float *x)
{
#pragma unroll
    for (u32 j = 0; j < HD / 64; j++) {
        u32 i = (w->t & 31) + j * 32;
        u32 p = args.interleaved_rope ? 2 * i : i;
        u32 q = args.interleaved_rope ? 2 * i + 1 : i + HD / 2;
        float c = S->rope[2 * i], s = S->rope[2 * i + 1];
        float u = x[p], v = x[q];
        x[p] = fma_rn(u, c, -mul_rn(v, s));
        x[q] = fma_rn(u, s, mul_rn(v, c));
    }
}

/* q, k, v of this position into shared memory, normed and rotated; k, v are
 * rounded to bf16, as the cache keeps them. */
template <int HD>
BR_DEV void
take_qkv(const struct worker *w, u32 layer, u32 head, u32 kvh, float *q)
{
    const u64 *p = words(w, layer, args.map.qkv);
    const u32 H = args.n_heads, KV = args.n_kv, part = w->t / HD;
    float *k = q + HD;

    if (part < 3) {
        u32 from = part == 0 ? head : part == 1 ? H + kvh : H + KV + kvh;
        float x = as_f32(take(w, p + from * HD + w->t % HD));
        if (part == 2)
            x = bf16_lo(pack_bf16(x, 0.0f));
        q[w->t] = x;
    }
    bar(1, BR_MK_THREADS);
    if ((w->t >> 5) < 2) {
        float *x = (w->t >> 5) ? k : q;
        if (args.qk_norms) {
            head_norm<HD>(w, x,
                          args.qk_norms + ((u64)layer * 2 + (w->t >> 5)) * HD);
            warp_sync();
        }
        head_rope<HD>(w, x);
        warp_sync();
        if ((w->t >> 5) == 1)
            for (u32 i = (w->t & 31); i < HD; i += 32)
                k[i] = bf16_lo(pack_bf16(k[i], 0.0f));
    }
    bar(1, BR_MK_THREADS);
}

/* Appends k and v of this position; one worker per KV head does. */
template <int HD>
BR_DEV void
append(const struct worker *w, u32 layer, u32 kvh, u32 page, const float *k,
       const float *v)
{
    if (w->t < HD / 2) {
        u32 *to = (u32 *)kv_at(page, layer, 0, kvh, w->pos);
        to[w->t] = pack_bf16(k[2 * w->t], k[2 * w->t + 1]);
    } else if (w->t < HD) {
        u32 i = w->t - HD / 2;
        u32 *to = (u32 *)kv_at(page, layer, 1, kvh, w->pos);
        to[i] = pack_bf16(v[2 * i], v[2 * i + 1]);
    }
}

BR_DEV float
dot8(u32x4 a, const float *b, float s)
{
    s = fma_rn(bf16_lo(a.x), b[0], s);
    s = fma_rn(bf16_hi(a.x), b[1], s);
    s = fma_rn(bf16_lo(a.y), b[2], s);
    s = fma_rn(bf16_hi(a.y), b[3], s);
    s = fma_rn(bf16_lo(a.z), b[4], s);
    s = fma_rn(bf16_hi(a.z), b[5], s);
    s = fma_rn(bf16_lo(a.w), b[6], s);
    return fma_rn(bf16_hi(a.w), b[7], s);
}

/* One query head over one block of up to 256 positions. The keys and values
 * of earlier steps are asked for before q is there: they depend on nothing.
 * Thread 2i, 2i+1 share key i; for the values a thread keeps 8 columns of
 * every (512*8/HD)-th position. Returns column t of the
 * sum in thread t < HD, and max and denominator in all. */
template <int HD>
BR_DEV float
attend(const struct worker *w, u32 layer, u32 task, u32 nth, float *max_out,
       float *sum_out)
{
    constexpr u32 KQ = HD / 16;               /* 16-byte loads: half a key */
    constexpr u32 GROUPS = 512 * 8 / HD;      /* positions side by side */
    constexpr u32 VQ = BR_MK_KV_BLOCK / GROUPS;
    const u32 head = task % args.n_heads, blk = task / args.n_heads;
    const u32 kvh = head / (args.n_heads / args.n_kv);
    const u32 p0 = blk * BR_MK_KV_BLOCK;
    const u32 n = w->pos + 1 - p0 < BR_MK_KV_BLOCK ? w->pos + 1 - p0
                                                   : BR_MK_KV_BLOCK;
    const u32 key = w->t >> 1, half = w->t & 1;
    const u32 vd = w->t % (HD / 8), vg = w->t / (HD / 8);
    float *q = SCRATCH, *k = q + HD, *v = k + HD, *s = v + HD;
    u32x4 kr[KQ], vr[VQ];

    if (key < n && p0 + key < w->pos) {
        const u32x4 *from =
            (const u32x4 *)kv_at(page_of(w, nth, p0, key), layer, 0, kvh,
                                 p0 + key) +
            half * KQ;
#pragma unroll
        for (u32 i = 0; i < KQ; i++)
            kr[i] = ld_relaxed128(from + i);
    }
#pragma unroll
    for (u32 i = 0; i < VQ; i++) {
        u32 r = vg + i * GROUPS;
        vr[i] = u32x4{0, 0, 0, 0};
        if (r < n && p0 + r < w->pos)
            vr[i] = ld_relaxed128(
                (const u32x4 *)kv_at(page_of(w, nth, p0, r), layer, 1, kvh,
                                     p0 + r) +
                vd);
    }
    take_qkv<HD>(w, layer, head, kvh, q);
    STAMP(1);
    float x = 0.0f;
    if (key < n) {
        const float *qh = q + half * (HD / 2), *kh = k + half * (HD / 2);
        if (p0 + key < w->pos) {
#pragma unroll
            for (u32 i = 0; i < KQ; i++)
                x = dot8(kr[i], qh + i * 8, x);
        } else {
#pragma unroll 4
            for (u32 i = 0; i < HD / 2; i++)
                x = fma_rn(kh[i], qh[i], x);
        }
    }
    x = mul_rn(add_rn(x, shfl_xor_f(x, 1)), args.scale);
    float m = block_max(w, key < n ? x : as_f32(0xff800000u), S->red);
    float e = key < n ? ex2(mul_rn(x - m, LOG2E)) : 0.0f;
    if (half == 0)
        s[key] = e;
    float l = block_sum(w, half == 0 ? e : 0.0f, S->red + 16);

    float acc[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll
    for (u32 i = 0; i < VQ; i++) {
        u32 r = vg + i * GROUPS;
        if (r >= n)
            continue;
        float p = s[r];
        if (p0 + r < w->pos) {
            acc[0] = fma_rn(p, bf16_lo(vr[i].x), acc[0]);
            acc[1] = fma_rn(p, bf16_hi(vr[i].x), acc[1]);
            acc[2] = fma_rn(p, bf16_lo(vr[i].y), acc[2]);
            acc[3] = fma_rn(p, bf16_hi(vr[i].y), acc[3]);
            acc[4] = fma_rn(p, bf16_lo(vr[i].z), acc[4]);
            acc[5] = fma_rn(p, bf16_hi(vr[i].z), acc[5]);
            acc[6] = fma_rn(p, bf16_lo(vr[i].w), acc[6]);
            acc[7] = fma_rn(p, bf16_hi(vr[i].w), acc[7]);
        } else {
            for (u32 d = 0; d < 8; d++)
                acc[d] = fma_rn(p, v[vd * 8 + d], acc[d]);
        }
    }
    /* over the groups of a warp, then over warps, in a fixed order */
    for (u32 g = 16; g >= HD / 8; g >>= 1)
        for (u32 d = 0; d < 8; d++)
            acc[d] = add_rn(acc[d], shfl_xor_f(acc[d], g));
    float *all = S->part; /* free in this phase: 16 x HD floats */
    if ((w->t & 31) < HD / 8)
        for (u32 d = 0; d < 8; d++)
            all[(w->t >> 5) * HD + (w->t & 31) * 8 + d] = acc[d];
    bar(1, BR_MK_THREADS);
    float y = 0.0f;
    if (w->t < HD) {
        y = all[w->t];
#pragma unroll
        for (u32 i = 1; i < BR_MK_WARPS; i++)
            y = add_rn(y, all[i * HD + w->t]);
    }
    *max_out = m;
    *sum_out = l;
    return y;
}

/* Thread t < HD has column t: pairs go out through the even ones. */
template <int HD>
BR_DEV void
give_head(const struct worker *w, u32 layer, u32 head, float y)
{
    float other = shfl_xor_f(y, 1);

    if (w->t < HD && !(w->t & 1))
        give(w, words(w, layer, args.map.attn) + (head * HD + w->t) / 2,
             pack_bf16(y, other));
}

/* Folds the blocks of one head in ascending order. */
template <int HD>
BR_DEV float
fold(const struct worker *w, u32 layer, u32 head, u32 n_blk)
{
    const u64 *p =
        words(w, layer, args.map.part) + (u64)head * BR_MK_MAX_BLOCKS * (HD + 2);
    float y = 0.0f;

    if (w->t < HD) {
        float m = as_f32(take(w, p + HD)), l = as_f32(take(w, p + HD + 1));
        float acc = as_f32(take(w, p + w->t));
#pragma unroll 1
        for (u32 b = 1; b < n_blk; b++) {
            const u64 *pb = p + (u64)b * (HD + 2);
            float mb = as_f32(take(w, pb + HD));
            float lb = as_f32(take(w, pb + HD + 1));
            float ab = as_f32(take(w, pb + w->t));
            float mn = max_f32(m, mb);
            float ca = ex2(mul_rn(m - mn, LOG2E));
            float cb = ex2(mul_rn(mb - mn, LOG2E));
            acc = fma_rn(acc, ca, mul_rn(ab, cb));
            l = fma_rn(l, ca, mul_rn(lb, cb));
            m = mn;
        }
        y = mul_rn(acc, rcp(l));
    }
    return y;
}

/* Task i = head + heads * block goes to worker i mod workers; with more than
 * one block worker "head" folds them afterwards. */
template <int HD>
BR_DEV void
phase_attn(const struct worker *w, u32 layer)
{
    const u32 H = args.n_heads, W = args.n_workers;
    const u32 n_blk = w->pos / BR_MK_KV_BLOCK + 1;
    const u32 group = H / args.n_kv;

    u32 nth = 0;
#pragma unroll 1
    for (u32 i = w->sm; i < H * n_blk; i += W, nth++) {
        u32 head = i % H, blk = i / H;
        float m, l, y = attend<HD>(w, layer, i, nth, &m, &l);
        STAMP(2);
        if (n_blk == 1) {
            give_head<HD>(w, layer, head, mul_rn(y, rcp(l)));
            give_hint(w, layer, HINT_ATTN);
        } else if (w->t < HD + 2) {
            u64 *p = words(w, layer, args.map.part) +
                     ((u64)head * BR_MK_MAX_BLOCKS + blk) * (HD + 2);
            give(w, p + w->t, as_u32(w->t < HD ? y : w->t == HD ? m : l));
        }
        if (head % group == 0 && blk == n_blk - 1)
            append<HD>(w, layer, head / group,
                       page_of(w, nth, blk * BR_MK_KV_BLOCK,
                               w->pos % BR_MK_KV_BLOCK),
                       SCRATCH + HD, SCRATCH + 2 * HD);
        bar(1, BR_MK_THREADS);
    }
    if (n_blk > 1)
#pragma unroll 1
        for (u32 head = w->sm; head < H; head += W) {
            give_head<HD>(w, layer, head, fold<HD>(w, layer, head, n_blk));
            give_hint(w, layer, HINT_ATTN);
        }
}

/* ---- phases -------------------------------------------------------------------- */

/* A phase is gather, multiply, finish; multiply is the same code for all, so
 * that it is in the instruction cache once. */

/* What a phase reads. HEAD comes in groups of tiles with one input. */
BR_DEV void
gather(const struct worker *w, const struct br_mk_inst *in)
{
    const bool mid = in->op == BR_MK_GLU;
    const u32 layer = in->layer, hidden = args.hidden;
    const u32 *row = (const u32 *)0;
    const float *weight = args.norms + ((u64)layer * 2 + mid) * hidden;
    u64 at = mid ? args.map.h_mid : args.map.h_in;
    u32 n = hidden, hint = mid ? HINT_MID : HINT_H;

    if (in->op == BR_MK_HEAD && !(in->flags & BR_MK_FIRST))
        return;
    if (in->op == BR_MK_OUT) {
        at = args.map.attn;
        n = args.n_heads * args.head_dim / 2;
        hint = HINT_ATTN;
        weight = (const float *)0;
    } else if (in->op == BR_MK_DOWN) {
        at = args.map.act;
        n = args.inter / 2;
        hint = HINT_ACT;
        weight = (const float *)0;
    } else if (in->op == BR_MK_QKV && layer == 0) {
        row = (const u32 *)(args.embed + (u64)w->token * hidden);
    }
    if (!row)
        await_hint(w, hint_of(layer, hint), in->n_wait);
    take_input(w, words(w, layer, at), n, weight, row);
}

/* The residual that row t of this worker adds, asked for before the wait and
 * looked at after the product. The embedding row plays h in layer 0. */
BR_DEV u64
ask_residual(const struct worker *w, const struct br_mk_inst *in)
{
    const u32 row = in->tile0 * 16 + w->t;

    if (w->t >= in->n_tiles * 16u ||
        (in->op != BR_MK_OUT && in->op != BR_MK_DOWN))
        return 0;
    if (in->layer == 0 && in->op == BR_MK_OUT) {
        u32 p = ((const u32 *)(args.embed +
                               (u64)w->token * args.hidden))[row >> 1];
        return (u64)w->epoch << 32 | (row & 1 ? p & 0xffff0000u : p << 16);
    }
    return ld_relaxed64(words(w, in->layer,
                              in->op == BR_MK_OUT ? args.map.h_in
                                                  : args.map.h_mid) +
                        row);
}

/* A larger value wins, the lower index on ties. */
BR_DEV void
better(float *v, u32 *i, float v2, u32 i2)
{
    if (v2 > *v || (v2 == *v && i2 < *i)) {
        *v = v2;
        *i = i2;
    }
}

/* Thread t has row t of this worker's tiles (32 tiles at most): y, scaled. */
BR_DEV void
finish(const struct worker *w, const struct br_mk_inst *in, u64 asked,
       float *best, u32 *id)
{
    const u32 row = in->tile0 * 16 + w->t, op = in->op, layer = in->layer;
    const bool mine = w->t < in->n_tiles * 16u;
    float y = mine ? row_sum(w, in, w->t / 16, w->t % 16) : 0.0f;
    u32 bits, at = row, hint = HINT_ACT, next = layer;
    bool send = mine;
    u64 off;

    if (op == BR_MK_OUT || op == BR_MK_DOWN) {
        const bool out = op == BR_MK_OUT;
        u32 h = (u32)asked;
        if (mine && (u32)(asked >> 32) != w->epoch) /* not there when asked */
            h = take(w,
                     words(w, layer, out ? args.map.h_in : args.map.h_mid) +
                         row);
        bits = as_u32(add_rn(as_f32(h), y));
        off = out ? args.map.h_mid : args.map.h_in;
        hint = out ? HINT_MID : HINT_H;
        next += !out;
    } else {
        y = mul_rn(y, row_scale(w));
        bits = as_u32(y);
        off = args.map.qkv;
        if (op == BR_MK_HEAD) {
            if (mine && row < args.vocab) {
                if (args.logits)
                    args.logits[row] = y;
                better(best, id, y, row);
            }
            bar(1, BR_MK_THREADS); /* the next group writes part again */
            return;
        }
        if (op == BR_MK_GLU) { /* 8 gates, then 8 ups; pairs go out */
            float act = mul_rn(silu(y), shfl_xor_f(y, 8));
            bits = pack_bf16(act, shfl_xor_f(act, 1));
            send = mine && (w->t & 9) == 0;
            off = args.map.act;
            at = in->tile0 * 4 + w->t / 16 * 4 + (w->t & 7) / 2;
        }
    }
    if (send)
        give(w, words(w, next, off) + at, bits);
    if (op != BR_MK_QKV)
        give_hint(w, next, hint);
}

/* Best of the 512 consumers in every thread. */
BR_DEV void
block_best(const struct worker *w, float *v, u32 *i)
{
    for (u32 m = 16; m; m >>= 1)
        better(v, i, shfl_xor_f(*v, m), shfl_xor(*i, m));
    if ((w->t & 31) == 0) {
        S->red[(w->t >> 5)] = *v;
        S->red[32 + (w->t >> 5)] = as_f32(*i);
    }
    bar(1, BR_MK_THREADS);
    *v = S->red[0];
    *i = as_u32(S->red[32]);
#pragma unroll 1
    for (u32 k = 1; k < BR_MK_WARPS; k++)
        better(v, i, S->red[k], as_u32(S->red[32 + k]));
    bar(1, BR_MK_THREADS);
}

#define NO_BEST as_f32(0xff800000u)

/* Every worker publishes its best, every worker reads all of them and knows
 * the next token without asking anybody. The fences order this step's cache
 * writes before the next step's reads. */
BR_DEV u32
phase_token(const struct worker *w, float v, u32 id)
{
    u64 *best = args.words + args.map.best;

    block_best(w, &v, &id);
    if (w->t == 0) {
        fence_gpu();
        give(w, best + 2 * w->sm, as_u32(v));
        give(w, best + 2 * w->sm + 1, id);
    }
    v = NO_BEST;
    id = 0xffffffffu;
    if (w->t < args.n_workers) {
        u32x2 b = take2(w, best + 2 * w->t);
        v = as_f32(b.x);
        id = b.y;
    }
    fence_gpu();
    block_best(w, &v, &id);
    return id;
}

BR_DEV void
phase_product(const struct worker *w, const struct br_mk_inst *in, float *best,
              u32 *id)
{
    if (!in->n_tiles)
        return;
    u64 asked = ask_residual(w, in);
    gather(w, in);
    STAMP(1);
    multiply(w, in, (u32)in->n_tiles * in->segs);
    STAMP(2);
    finish(w, in, asked, best, id);
}

/* ---- the two roles ------------------------------------------------------------- */

/* n_steps times the chunks [first, first + period) of this worker's stream.
 * DEPTH_HEAD chunks are under way at once where no exchange waits behind them.
 * Tried: fetching chunks beyond the slots into the L2 while no slot is free:
 * no gain at 8, 12, 16 or 20 chunks (the L2 gives them no faster). */
#define DEPTH_HEAD 6

BR_DEV void
load_stream(u32 sm, u32 first, u32 period, u32 n_steps)
{
    const unsigned char *from = args.stream + args.stream_at[sm];
    const u32 full = smem_of(S->full), empty = smem_of(S->empty);
    const u64 policy = policy_evict_first();
    const u32 head =
        args.inst[(u64)sm * args.n_inst + args.n_layers * 5].chunk0;
    u32 c = first;

#pragma unroll 1
    for (u32 n = 0; n < period * n_steps; n++) {
        const u32 slot = n % SLOTS;
        if (n >= SLOTS)
            mbar_wait(empty + slot * 8, (n / SLOTS - 1) & 1);
        const u32 depth = c >= head ? DEPTH_HEAD : args.depth;
        if (n >= depth) {
            const u32 late = n - depth;
            mbar_wait(full + late % SLOTS * 8, (late / SLOTS) & 1);
        }
        mbar_expect(full + slot * 8, BR_MK_CHUNK);
        bulk_copy(smem_of(S->ring) + slot * BR_MK_CHUNK,
                  from + (u64)c * BR_MK_CHUNK, BR_MK_CHUNK, full + slot * 8,
                  policy);
        if (++c == first + period)
            c = first;
    }
}

template <int HD>
BR_DEV void
consume(struct worker *w, const struct br_mk_inst *queue, u32 first, u32 end,
        u32 n_steps)
{
#pragma unroll 1
    for (u32 step = 0; step < n_steps; step++) {
        float best = NO_BEST;
        u32 id = 0xffffffffu;
        prepare_step(w);
        struct br_mk_inst next = queue[first];
#pragma unroll 1
        for (u32 i = first; i < end; i++) {
            const struct br_mk_inst in = next;
            next = queue[i + 1 < end ? i + 1 : first];
            w->phase = i;
            STAMP(0);
            if (in.op == BR_MK_ATTN) {
                phase_attn<HD>(w, in.layer);
            } else if (in.op == BR_MK_TOKEN) {
                w->token = phase_token(w, best, id);
                if (w->sm == 0 && w->t == 0)
                    args.tokens[(w->epoch - 1) % BR_MK_TOKENS] = w->token;
                w->epoch++;
                w->pos++;
            } else {
                phase_product(w, &in, &best, &id);
                w->count += (u32)in.n_tiles * in.segs;
            }
            STAMP(3);
        }
    }
}

/* Runs phases [first, end) of n_steps steps: all of them (mega), or one launch
 * for each phase (packets). HEAD and TOKEN go together. */
template <int HD>
BR_DEV void
decode(u32 first, u32 end, u32 n_steps)
{
    struct worker w;

    w.sm = bid();
    w.t = tid();
    w.count = 0;
    w.epoch = args.step->epoch;
    w.token = args.step->token;
    w.pos = args.step->pos;
    if (w.t == 0) {
        for (u32 i = 0; i < SLOTS; i++) {
            mbar_init(smem_of(&S->full[i]), 1);
            mbar_init(smem_of(&S->empty[i]), 1);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    bar(0, BR_MK_BLOCK);

    const struct br_mk_inst *queue = args.inst + (u64)w.sm * args.n_inst;
    if (w.t >= BR_MK_THREADS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (w.t == BR_MK_THREADS) {
            u32 c0 = queue[first].chunk0;
            u32 c1 = end == args.n_inst ? args.stream_chunks[w.sm]
                                        : queue[end].chunk0;
            load_stream(w.sm, c0, c1 - c0, n_steps);
        }
        return;
    }
    /* 640 x 96 registers were given: 128 x 24 + 512 x 112 of them are used */
    asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
    consume<HD>(&w, queue, first, end, n_steps);
    /* The next launch begins where this one ends. Only a launch that ran the
     * TOKEN phase moved on; every block has read step by then, because its
     * best is among those that TOKEN waited for. */
    if (end == args.n_inst && w.sm == 0 && w.t == 0) {
        args.step->epoch = w.epoch;
        args.step->token = w.token;
        args.step->pos = w.pos;
    }
}

extern "C" __global__ void
__launch_bounds__(BR_MK_BLOCK, 1)
br_mega_decode_64(u32 first, u32 end, u32 n_steps)
{
    decode<64>(first, end, n_steps);
}

extern "C" __global__ void
__launch_bounds__(BR_MK_BLOCK, 1)
br_mega_decode_128(u32 first, u32 end, u32 n_steps)
{
    decode<128>(first, end, n_steps);
}
