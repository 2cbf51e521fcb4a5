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

#define SPIN_LIMIT (1u << 22) /* polls: seconds */

/* Shared memory: slots, x in fragment order, partial sums, scratch, barriers */
struct smem {
    unsigned char ring[BR_MK_RING];
    u32 x[BR_MK_MAX_K / 2];
    float part[BR_MK_MAX_PARTS * 16];
    float rope[128];               /* cos, sin of this position */
    u32 pages[BR_MK_TASKS * 16];   /* of this worker's attention tasks */
    float red[64];
    u64 full[BR_MK_MAX_SLOTS], empty[BR_MK_MAX_SLOTS];
    u32x4 inst[2], stand[2]; /* of this phase, of the next */
    u32 token, pos;
    u64 unused;
};
static_assert(sizeof(struct smem) == BR_MK_SHARED, "host asks for this");

/* Written by the host once after the module is loaded; the compiler reads it
 * as operands from the constant bank, so it costs no registers. */
extern "C" {
__constant__ struct br_mk_args args;
}

#define S ((struct smem *)dyn_shared())

struct worker {
    u32 sm, t;
    u32 count; /* chunks consumed by this block before this phase */
    u32 epoch;
#ifdef BR_MK_PROFILE
    u32 phase;
#endif
};

/* What a phase needs only here and there lives in shared memory: a register
 * more over all phases, and the attention spills. A spilled word comes back
 * from the L2 (640 threads' stacks do not fit in what is left of the L1), 0.5
 * us behind the copies: 120 bytes of stack made the step 14 % slower. */
BR_DEV u32
token_now(void)
{
    return lds32(smem_of(&S->token));
}
BR_DEV u32
pos_now(void)
{
    return lds32(smem_of(&S->pos));
}

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
    trap();
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
give_hint(const struct worker *w, u32 layer, u32 which, u32 n)
{
    if (w->t == 0)
        red_relaxed_add(hint_of(layer, which), n);
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

#include "mega_product.cuh"

/* ---- input vectors -------------------------------------------------------- */

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

/* The input vector of a phase, n words at p, as the format wants it in x. With a weight the
 * words are f32: x = h * weight, and each warp leaves its sum of h^2 in
 * red: the factor rsqrt(mean(h^2) + eps) is the same for all columns, so it
 * waits for the product and multiplies the rows (row_scale). Without, a word is
 * a bf16 pair already. row: h is this embedding row instead.
 * One piece of code for all phases: it runs cold, and every 128 bytes of it
 * cost 100 to 200 cycles to fetch. */
template <class F>
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
                F::put2(k, mul_rn(a, as_f32(g[i].x)),
                        mul_rn(b, as_f32(g[i].y)));
                sum = fma_rn(a, a, sum);
                sum = fma_rn(b, b, sum);
            } else {
                F::put4(k * 2, v[i]);
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

/* ---- after the product ------------------------------------------------------ */

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

#include "mega_attn.cuh"

/* ---- phases -------------------------------------------------------------------- */

/* A phase is gather, multiply, finish; multiply is the same code for all, so
 * that it is in the instruction cache once. */

/* What a phase reads. HEAD comes in groups of tiles with one input. */
template <class F>
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
        row = (const u32 *)(args.embed + (u64)token_now() * hidden);
    }
    if (!row)
        await_hint(w, hint_of(layer, hint), in->n_wait);
    take_input<F>(w, words(w, layer, at), n, weight, row);
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
                               (u64)token_now() * args.hidden))[row >> 1];
        return (u64)w->epoch << 32 | (row & 1 ? p & 0xffff0000u : p << 16);
    }
    return ld_relaxed64(words(w, in->layer,
                              in->op == BR_MK_OUT ? args.map.h_in
                                                  : args.map.h_mid) +
                        row);
}

#define NO_BEST as_f32(0xff800000u)

/* The best logit of each thread so far, between the groups of HEAD: behind x,
 * which is 8 KiB of 24 there. */
struct best {
    float v;
    u32 id;
};
#define BEST ((struct best *)((unsigned char *)S->x + 16384))

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
finish(const struct worker *w, const struct br_mk_inst *in, u64 asked)
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
            struct best b = BEST[w->t];
            if (mine && row < args.vocab) {
                if (args.logits)
                    args.logits[row] = y;
                better(&b.v, &b.id, y, row);
            }
            BEST[w->t] = b;
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
        give_hint(w, next, hint, 1);
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
    *v = S->red[w->t & 15];
    *i = as_u32(S->red[32 + (w->t & 15)]);
    for (u32 m = 8; m; m >>= 1)
        better(v, i, shfl_xor_f(*v, m), shfl_xor(*i, m));
    bar(1, BR_MK_THREADS);
}

/* Every worker publishes its best, every worker reads all of them and knows
 * the next token without asking anybody. The fences order this step's cache
 * writes before the next step's reads. */
BR_DEV u32
phase_token(const struct worker *w)
{
    u64 *best = args.words + args.map.best;
    float v = BEST[w->t].v;
    u32 id = BEST[w->t].id;

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

template <class F>
BR_DEV void
phase_product(const struct worker *w, const struct br_mk_inst *in)
{
    if (in->op == BR_MK_HEAD && (in->flags & BR_MK_FIRST))
        BEST[w->t] = {NO_BEST, 0xffffffffu};
    if (!in->n_tiles)
        return;
    u64 asked = ask_residual(w, in);
    gather<F>(w, in);
    STAMP(1);
    multiply<F>(w, in, (u32)in->n_tiles * in->segs);
    STAMP(2);
    finish(w, in, asked);
}

/* ---- the two roles ------------------------------------------------------------- */

/* n_steps times the chunks [first, first + period) of this worker's stream.
 * HEAD_DEPTH chunks are under way at once where no exchange waits behind them.
 * Tried: fetching chunks beyond the slots into the L2 while no slot is free:
 * no gain at 8, 12, 16 or 20 chunks (the L2 gives them no faster). */
template <class F>
BR_DEV void
load_stream(u32 sm, u32 first, u32 period, u32 n_steps)
{
    const unsigned char *from = args.stream + args.stream_at[sm];
    const u64 stride = args.chunk_stride;
    const u32 full = smem_of(S->full), empty = smem_of(S->empty);
    const u64 policy = policy_evict_first();
    const u32 head =
        args.inst[(u64)sm * args.n_inst + args.n_layers * 5].chunk0;
    u32 c = first;

#pragma unroll 1
    for (u32 n = 0; n < period * n_steps; n++) {
        const u32 slot = n % F::SLOTS;
        if (n >= F::SLOTS)
            mbar_wait(empty + slot * 8, (n / F::SLOTS - 1) & 1);
        const u32 depth = c >= head ? F::HEAD_DEPTH : args.depth;
        if (n >= depth) {
            const u32 late = n - depth;
            mbar_wait(full + late % F::SLOTS * 8, (late / F::SLOTS) & 1);
        }
        mbar_expect(full + slot * 8, F::CHUNK);
        bulk_copy(smem_of(S->ring) + slot * F::CHUNK,
                  from + c * stride, F::CHUNK, full + slot * 8,
                  policy);
        if (++c == first + period)
            c = first;
    }
}

/* Thread 0 writes where the next phase stands when this one begins, and asks
 * for its instruction; turn counts phases, two places suffice. */
BR_DEV void
prepare_phase(const struct worker *w, u32 turn, u32 i, u32 step, u32 count,
              u32 epoch)
{
    sts128(smem_of(&S->stand[turn & 1]), u32x4{i, step, count, epoch});
    copy16(smem_of(&S->inst[turn & 1]),
           args.inst + (u64)w->sm * args.n_inst + i);
}

BR_DEV struct br_mk_inst
unpack(u32x4 r)
{
    struct br_mk_inst in;

    in.op = (unsigned char)r.x;
    in.flags = (unsigned char)(r.x >> 8);
    in.layer = (unsigned short)(r.x >> 16);
    in.segs = (unsigned char)r.y;
    in.n_wait = (unsigned char)(r.y >> 8);
    in.n_tiles = (unsigned short)(r.y >> 16);
    in.tile0 = r.z;
    in.chunk0 = r.w;
    return in;
}

/* Until n_steps are done; leaves the epoch of the step after them in w. */
template <int HD, class F>
BR_DEV void
consume(struct worker *w, u32 first, u32 end, u32 n_steps)
{
#pragma unroll 1
    for (u32 turn = 0;; turn++) {
        w->t = tid_again();
        w->sm = bid_again();
        if (w->t == 0)
            copies_wait();
        bar(1, BR_MK_THREADS);
        const u32x4 at = lds128(smem_of(&S->stand[turn & 1]));
        const struct br_mk_inst in =
            unpack(lds128(smem_of(&S->inst[turn & 1])));
        w->count = at.z;
        w->epoch = at.w;
        if (at.y == n_steps)
            return;
        if (w->t == 0) {
            const bool last = at.x + 1 == end;
            prepare_phase(w, turn + 1, last ? first : at.x + 1, at.y + last,
                          at.z + (u32)in.n_tiles * in.segs,
                          at.w + (in.op == BR_MK_TOKEN));
        }
#ifdef BR_MK_PROFILE
        w->phase = at.x;
#endif
        if (at.x == first)
            prepare_step(w);
        STAMP(0);
        if (in.op == BR_MK_ATTN) {
            phase_attn<HD>(w, in.layer);
        } else if (in.op == BR_MK_TOKEN) {
            const u32 token = phase_token(w);
            if (w->t == 0) {
                if (w->sm == 0)
                    args.tokens[(w->epoch - 1) % BR_MK_TOKENS] = token;
                S->token = token;
                S->pos++;
            }
        } else {
            phase_product<F>(w, &in);
        }
        STAMP(3);
    }
}

/* Runs phases [first, end) of n_steps steps: all of them (mega), or one launch
 * for each phase (packets). HEAD and TOKEN go together. */
template <int HD, class F>
BR_DEV void
decode(u32 first, u32 end, u32 n_steps)
{
    struct worker w;

    w.sm = bid();
    w.t = tid();
    if (w.t == 0) {
        S->token = args.step->token;
        S->pos = args.step->pos;
        for (u32 i = 0; i < F::SLOTS; i++) {
            mbar_init(smem_of(&S->full[i]), 1);
            mbar_init(smem_of(&S->empty[i]), 1);
        }
        fence_mbar_init();
        prepare_phase(&w, 0, first, 0, 0, args.step->epoch);
    }
    bar(0, BR_MK_BLOCK);

    const struct br_mk_inst *queue = args.inst + (u64)w.sm * args.n_inst;
    if (w.t >= BR_MK_THREADS) {
        SET_REGISTERS(dec, 24);
        if (w.t == BR_MK_THREADS) {
            u32 c0 = queue[first].chunk0;
            u32 c1 = end == args.n_inst ? args.stream_chunks[w.sm]
                                        : queue[end].chunk0;
            load_stream<F>(w.sm, c0, c1 - c0, n_steps);
        }
        return;
    }
    /* 640 x 96 registers were given: 128 x 24 + 512 x 112 of them are used */
    SET_REGISTERS(inc, 112);
    consume<HD, F>(&w, first, end, n_steps);
    /* The next launch begins where this one ends. Only a launch that ran the
     * TOKEN phase moved on; every block has read step by then, because its
     * best is among those that TOKEN waited for. */
    if (end == args.n_inst && bid() == 0 && tid() == 0) {
        args.step->epoch = w.epoch;
        args.step->token = S->token;
        args.step->pos = S->pos;
    }
}

#define KERNEL(name, hd, format)                                               \
    extern "C" __global__ void __launch_bounds__(BR_MK_BLOCK, 1)               \
        name(u32 first, u32 end, u32 n_steps)                                  \
    {                                                                          \
        decode<hd, format>(first, end, n_steps);                               \
    }
KERNEL(br_mega_64_bf16, 64, bf16_weights)
KERNEL(br_mega_128_bf16, 128, bf16_weights)
KERNEL(br_mega_64_q8_0, 64, q8_0_weights)
KERNEL(br_mega_128_q8_0, 128, q8_0_weights)
