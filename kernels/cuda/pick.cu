/* pick.cu - the next token, drawn on the device: the one that src/run/sample.c
 * draws, to the bit.
 *
 *   best -> weights -> top-k -> top-p -> min-p -> draw, then the decode
 *   kernel's next step begins with it: only tokens cross the bus
 *
 * Every thread owns a run of ids, so that order by thread is order by id. A
 * weight is an integer, so sums of all blocks have the same bits in any order; a
 * filter finds its border by the rank's bytes, a round of 256 buckets each, as
 * the host does. Doubles go through single instructions: compilers contract.
 * Costs 1 to 14 meetings of the grid.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device.cuh"
#include "pick_table.h"

struct pick_shared {
    u64 v[256], warps[BR_PICK_THREADS / 32];
    u64 above;
    u32 byte, unused;
    struct br_pick_how how; /* in the first block: on its way from the host */
};
static_assert(sizeof(struct pick_shared) == BR_PICK_SHARED, "host asks");
/* Looks of a block for the others, 0.7 us each: seconds. */
#ifndef MEET_LIMIT
#    define MEET_LIMIT (1u << 22)
#endif
#define P ((struct pick_shared *)dyn_shared())

struct picker {
    u32 t, lo, hi; /* this thread's ids */
    u32 met;
    u32 *hung;
    struct br_pick_told *told; /* to be said by this thread, or NULL */
    struct br_pick_space *s;
    const float *logits;
    u64 *weights;
};

static __device__ __attribute__((noinline)) void
give_up_meeting(u32 *hung)
{
    *(volatile u32 *)hung = 1;
    fence_system();
    trap();
}

BR_DEV void
meet(struct picker *p)
{
    bar(1, BR_PICK_THREADS);
    p->met++;
    if (p->t == 0) {
        fence_gpu();
        red_relaxed_add(&p->s->arrived, 1);
#pragma unroll 1
        for (u32 n = 0; ld_relaxed32(&p->s->arrived) < p->met * grid_dim(); n++)
            if (n > MEET_LIMIT)
                give_up_meeting(p->hung);
        fence_gpu();
    }
    bar(1, BR_PICK_THREADS);
}

BR_DEV u64
shfl_xor64(u64 v, u32 m)
{
    return (u64)shfl_xor((u32)(v >> 32), m) << 32 | shfl_xor((u32)v, m);
}

/* Sum of v over the threads before this one; *all: over all of the block. */
BR_DEV u64
scan_block(u32 t, u64 v, u64 *all)
{
    u64 before = 0, sum = 0;

#pragma unroll
    for (u32 m = 1; m < 32; m *= 2) { /* v: of the lanes that differ below m */
        const u64 o = shfl_xor64(v, m);
        before += t & m ? o : 0;
        v += o;
    }
    bar(1, BR_PICK_THREADS);
    if ((t & 31) == 0)
        P->warps[t >> 5] = v;
    bar(1, BR_PICK_THREADS);
#pragma unroll
    for (u32 i = 0; i < BR_PICK_THREADS / 32; i++) {
        const u64 w = P->warps[i];
        before += i < t >> 5 ? w : 0;
        sum += w;
    }
    *all = sum;
    return before;
}

/* The same over the whole grid. */
BR_DEV u64
scan(struct picker *p, u32 which, u64 v, u64 *all)
{
    u64 sum, inside = scan_block(p->t, v, &sum), before;

    if (p->t == 0)
        st_relaxed64(&p->s->scans[which][bid()], sum);
    meet(p);
    before = scan_block(p->t,
                        p->t < grid_dim()
                            ? ld_relaxed64(&p->s->scans[which][p->t])
                            : 0,
                        all);
    if (p->t == bid())
        P->above = before;
    bar(1, BR_PICK_THREADS);
    before = P->above;
    bar(1, BR_PICK_THREADS);
    return before + inside;
}

/* Unsigned order of the result is the order of floats; -0 and 0 are equal. */
BR_DEV u32
rank_of(float x)
{
    const u32 b = as_u32(add_rn(x, 0.0f));

    return b >> 31 ? ~b : b | 0x80000000u;
}

/* exp(x) in units of 2^-44, x <= 0: the host's steps one by one. */
BR_DEV u64
weight_of(double x)
{
    const double inv_fact[] = {1.0 / 479001600, 1.0 / 39916800,
                               1.0 / 3628800,   1.0 / 362880,
                               1.0 / 40320,     1.0 / 5040,
                               1.0 / 720,       1.0 / 120,
                               1.0 / 24,        1.0 / 6,
                               0.5,             1.0,
                               1.0};
    double y = 1.0 / 6227020800, r;
    i32 k;

    if (!(x > -31.5))
        return 0;
    k = -f64_to_s32(sub_f64(0.5, mul_f64(x, 0x1.71547652b82fep0)));
    r = sub_f64(sub_f64(x, mul_f64((double)k, 0x1.62e42feep-1)),
                mul_f64((double)k, 0x1.a39ef35793c76p-33));
#pragma unroll
    for (u32 i = 0; i < 13; i++)
        y = add_f64(mul_f64(y, r), inv_fact[i]);
    return f64_to_u64(add_f64(
        mul_f64(y, as_f64((u64)(i64)(1023 + 44 + k) << 52)), 0.5));
}

/* Keeps the shortest head of (rank descending, id ascending) whose weights, or
 * number, add up to target; all where they never do. */
BR_DEV void
keep_head(struct picker *p, u32 which, u64 target, bool by_number)
{
    const u32 t = p->t;
    u32 prefix = 0;
    u64 above = 0, ties = 0, all;

#pragma unroll 1
    for (u32 shift = 24, r = 0; r < 4; shift -= 8, r++) {
        u64 *sums = p->s->sums[which][r];
        if (t < 256)
            P->v[t] = 0;
        bar(1, BR_PICK_THREADS);
#pragma unroll 1
        for (u32 i = p->lo; i < p->hi; i++) {
            const u32 rank = rank_of(p->logits[i]);
            const u64 w = p->weights[i];
            if (w && (r == 0 || rank >> (shift + 8) == prefix))
                sts_add64(&P->v[rank >> shift & 255], by_number ? 1 : w);
        }
        bar(1, BR_PICK_THREADS);
        if (t < 256 && P->v[t])
            red_add64(&sums[t], P->v[t]);
        if (t == 0)
            P->byte = 256;
        meet(p);
        const u64 sum = t < 256 ? ld_relaxed64(&sums[255 - t]) : 0;
        const u64 before = above + scan_block(t, sum, &all);
        if (t < 256 && before < target && before + sum >= target) {
            P->byte = 255 - t;
            P->above = before;
        }
        bar(1, BR_PICK_THREADS);
        if (P->byte == 256)
            return; /* in the first round only */
        above = P->above;
        prefix = prefix << 8 | P->byte;
        bar(1, BR_PICK_THREADS);
    }
#pragma unroll 1
    for (u32 i = p->lo; i < p->hi; i++)
        ties += p->weights[i] && rank_of(p->logits[i]) == prefix;
    ties = scan(p, which * 2, ties, &all);
#pragma unroll 1
    for (u32 i = p->lo; i < p->hi; i++) {
        const u32 rank = rank_of(p->logits[i]);
        const u64 w = p->weights[i]; /* equal ranks have equal weights */
        if (w && rank == prefix &&
            above + ties++ * (by_number ? 1 : w) < target)
            continue;
        if (rank <= prefix)
            p->weights[i] = 0;
    }
}

BR_DEV u64
own_sum(const struct picker *p)
{
    u64 sum = 0;

#pragma unroll 1
    for (u32 i = p->lo; i < p->hi; i++)
        sum += p->weights[i];
    return sum;
}

/* A part of all weights, rounded up, at least 1: something always stays. */
BR_DEV u64
part_of(u64 all, float part)
{
    const u64 f = f64_to_u64(mul_f64((double)part, 0x1p32));
    const u64 low = all * f, sum = low + 0xffffffffu;
    const u64 v = (mul_hi64(all, f) + (sum < low)) << 32 | sum >> 32;

    return v ? v : 1;
}

/* Philox4x32-10: block i of the sequence (seed, stream), as base/rng.c. */
BR_DEV u32x4
philox(u64 seed, u32 i, u32 stream)
{
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
    u32x4 c = {i, 0, stream, 0};

#pragma unroll 1
    for (u32 round = 0; round < 10; round++) {
        const u64 x = (u64)0xd2511f53 * c.x, y = (u64)0xcd9e8d57 * c.z;
        c = u32x4{(u32)(y >> 32) ^ c.y ^ k0, (u32)y, (u32)(x >> 32) ^ c.w ^ k1,
                  (u32)x};
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    return c;
}

/* 0..n-1, n >= 2^32. */
BR_DEV u64
draw_below(u64 seed, u32 position, u64 n)
{
    const u64 unfair = (0 - n) % n;

#pragma unroll 1
    for (u32 i = 0;; i++) {
        const u32x4 c = philox(seed, i, position);
        const u64 u = c.x | (u64)c.y << 32, v = c.z | (u64)c.w << 32;
        if (u >= unfair)
            return u % n;
        if (v >= unfair)
            return v % n;
    }
}

/* Number i among the best so far; bad: it is none. */
BR_DEV void
look_at(float x, u32 i, u64 *best, bool *bad)
{
    const u64 key = (u64)rank_of(x) << 32 | (u32)~i;

    *bad |= !(x < as_f32(0x7f800000u));
    *best = key > *best ? key : *best;
}
/* Of all ids; says on whether a logit is no number. In any order: threads of a
 * warp look at neighbours. */
BR_DEV u64
best_of(struct picker *p, u32 from, u32 end)
{
    enum { AT_ONCE = 8 }; /* of 16 bytes: 64 KiB of a block */
    const u32 fours =
        ((u64)(p->logits + from) & 15) == 0 && from < end ? (end - from) / 4 : 0;
    const u32x4 *four = (const u32x4 *)(p->logits + from);
    u64 best = 0;
    bool bad = false;

#pragma unroll 1
    for (u32 i0 = p->t; i0 < fours; i0 += AT_ONCE * BR_PICK_THREADS) {
        u32x4 x[AT_ONCE];
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) /* else the last again */
            x[j] = four[min_u32(i0 + j * BR_PICK_THREADS, fours - 1)];
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) {
            const u32 i = from + min_u32(i0 + j * BR_PICK_THREADS, fours - 1) * 4;
            look_at(as_f32(x[j].x), i, &best, &bad);
            look_at(as_f32(x[j].y), i + 1, &best, &bad);
            look_at(as_f32(x[j].z), i + 2, &best, &bad);
            look_at(as_f32(x[j].w), i + 3, &best, &bad);
        }
    }
#pragma unroll 4
    for (u32 i = from + fours * 4 + p->t; i < end; i += BR_PICK_THREADS)
        look_at(p->logits[i], i, &best, &bad);
#pragma unroll
    for (u32 m = 16; m; m >>= 1) {
        const u64 o = shfl_xor64(best, m);
        best = o > best ? o : best;
    }
    if ((p->t & 31) == 0)
        red_max64(&p->s->best, best);
    if (bad)
        red_relaxed_add(&p->s->bad, 1);
    if (p->told) {
        copies_wait();
        if (P->how.turn != p->told->turn + 1)
            trap();
        p->told->how = P->how;
    }
    meet(p);
    return ld_relaxed64(&p->s->best);
}

BR_DEV void
say(const struct br_pick_args &a, u32 turn, u32 token, u32 best)
{
    if (a.rows) {
        a.tokens[bid_y()] = token;
        return;
    }
    a.step->token = (i32)token < 0 ? best : token;
    a.tokens[(a.step->epoch - 2) % BR_MK_TOKENS] = token;
    a.told->turn = turn;
    st_system64(a.drawn, (u64)turn << 32 | token);
}

/* How to draw is asked for, as it comes over the bus, while logits are looked at; by
 * one thread of all, which says it where all meet first. */
BR_DEV struct br_pick_told *
ask_how(const struct br_pick_args &a, u32 turn)
{
    const u32x4 *from = (const u32x4 *)&a.how[turn % BR_PICK_TURNS];

    if (a.rows || bid() || tid())
        return nullptr;
    copy16(smem_of(&P->how), from);
    copy16(smem_of((u32x4 *)&P->how + 1), from + 1);
    return a.told;
}

extern "C" __global__ void __launch_bounds__(BR_PICK_THREADS, 1)
    br_pick(struct br_pick_args a)
{
    const u32 turn = a.rows ? a.rows[bid_y()].turn : a.told->turn + 1;
    struct br_pick_space *space = a.space + 2 * bid_y();
    const u32 each = ((a.n + grid_dim() - 1) / grid_dim() + 3) / 4 * 4;
    const u32 mine = (each + BR_PICK_THREADS - 1) / BR_PICK_THREADS;
    const u32 from = bid() * each, end = from + each < a.n ? from + each : a.n;
    u64 *other = (u64 *)(space + (~turn & 1));
    struct picker p = {tid(),
                       from + tid() * mine,
                       0,
                       0,
                       a.hung,
                       ask_how(a, turn),
                       space + (turn & 1),
                       a.logits + (u64)bid_y() * a.n,
                       a.weights + (u64)bid_y() * a.n};
    u64 all, at;

    p.hi = p.lo + mine < end ? p.lo + mine : end; /* may be none */
    for (u32 i = bid() * BR_PICK_THREADS + p.t; i < sizeof *a.space / 8;
         i += grid_dim() * BR_PICK_THREADS)
        other[i] = 0;
    const u32 best = ~(u32)best_of(&p, from, end);
    const struct br_pick_how how = a.rows ? a.rows[bid_y()] : a.told->how;
    const float most = p.logits[best];
    const bool bad = ld_relaxed32(&p.s->bad) != 0;
    const bool none = !(most > as_f32(0xff800000u));
    if (bad || none || how.temperature == 0.0f || how.top_k == 1) {
        if (bid() == 0 && p.t == 0)
            say(a, turn,
                bad    ? (u32)BR_PICK_NO_NUMBER
                   : none ? (u32)BR_PICK_NONE
                          : best,
                best);
        return;
    }
#pragma unroll 1
    for (u32 i = p.lo; i < p.hi; i++)
        p.weights[i] = weight_of(div_f64(
            sub_f64((double)p.logits[i], (double)most), (double)how.temperature));
    if (how.top_k > 0)
        keep_head(&p, 0, (u64)how.top_k, true);
    if (how.top_p < 1.0f) {
        scan(&p, 1, own_sum(&p), &all);
        keep_head(&p, 1, part_of(all, how.top_p), false);
    }
    const u64 least = f64_to_u64(mul_f64((double)how.min_p, 0x1p44));
#pragma unroll 1
    for (u32 i = p.lo; i < p.hi; i++)
        if (p.weights[i] < least)
            p.weights[i] = 0;
    at = scan(&p, 3, own_sum(&p), &all);
    const u64 drawn =
        draw_below(how.seed, a.rows ? how.position : a.step->pos, all);
#pragma unroll 1
    for (u32 i = p.lo; i < p.hi; i++) {
        if (drawn >= at && drawn - at < p.weights[i])
            say(a, turn, i, best);
        at += p.weights[i];
    }
}
