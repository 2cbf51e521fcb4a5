/* mega_decode.cu - a whole decode step of a dense transformer in one launch.
 *
 *   gather x (words of other workers) -> tensor cores over 16 to 24 slots for
 *   copies of 8 to 12 KiB -> finish rows -> publish words
 *
 *   warps 0 - 11   multiply (Q4_K, BF16 in 12 bits: all 16), then       16 .. load
 *                  finish rows
 *         15 ..    gather the next input, a tile a thread, as many as it has
 *
 * A loader copies a worker's stream chunk after chunk, as far ahead as slots
 * are free, but with few chunks under way. Weights depend on nothing, so it
 * runs ahead across phases, layers and steps; what a phase waits for is only
 * its activations. Few, because a word that a worker publishes or polls queues
 * behind the copies under way: with all slots, every exchange cost 3 us more.
 *
 * Numbers: each row's dot product is segments of 512 columns, each a chain of
 * 32 mma from zero, added in ascending order in f32: a function of the shape
 * alone, the same for one token and for many (numbers contract).
 * SPDX-License-Identifier: Apache-2.0 */
/* A tenth of the instructions fewer: a phase runs its code once, so what is not
 * there is not fetched (1B Q4_K 2.4 %, BF16 1.5). */
#define BR_FOLD_SHARED
#include "device.cuh"
#include "mega_table.h"

#define SPIN_LIMIT (1u << 22) /* polls: seconds */

/* Shared memory: slots, x in fragment order, partial sums, scratch, barriers */
struct smem {
    unsigned char ring[BR_MK_RING];
    u32 x[BR_MK_MAX_K / 2];
    float part[BR_MK_MAX_PARTS * 16];
    float rope[128];               /* cos, sin of this position */
    u32 keys_at[BR_MK_MAX_LAYERS]; /* of a layer: chunk before which pages come, and
                                      first task */
    float red[64];
    u64 full[BR_MK_MAX_SLOTS], empty[BR_MK_MAX_SLOTS];
    u32x4 inst[2], stand[2]; /* of this phase, of the next */
    u32x4 ids[4][4]; /* pages of the task that a loader copies */
    u32 token, pos;
    u32 pages[2]; /* of this position and the one before */
    u32 block;    /* of 256 positions: where this sequence's pages begin */
    u32 n_steps;  /* of this launch; less once the host says so */
    u32 early;    /* place of the step to come, if it was told a step ago */
    u32 cut;      /* 1 + phase before which this launch ends, or 0 */
    u32x4 told[2]; /* the host's ring, in block 0: of the next step, of the one after */
    u32x4 asked;   /* the begin of args.host, in block 0: as a layer began */
    u32x4 go;      /* of the layer to come: not 0 at x ends it, epoch */
    u32x4 next;    /* what the first worker says in TOKEN */
    u64 end;       /* barrier: the launch is cut, or the host has ended it */
    u32 epoch0, epoch; /* of this launch's first step, of this one */
    float scale;       /* of this phase's rows (scale_rows) */
    u32 place[2];  /* of steps by step & 1, for the loaders (place_step), */
    u64 known[2];  /* and barriers: it is there */
    u64 done[2], odd[2]; /* TOKEN is through; of no use */
};
static_assert(sizeof(struct smem) == BR_MK_SHARED, "host asks for this");

/* Written by the host once after the module is loaded; the compiler reads it
 * as operands from the constant bank, so it costs no registers. */
extern "C" {
__constant__ struct br_mk_args args;
}

#define S ((struct smem *)dyn_shared())

/* Arrivals that free a slot: of every lane that read it (two pages: 64), since
 * racecheck does not see what a lane that arrives for its warp waited for. An
 * arrival for all 32 is at most 0.3 % faster. */
#define READERS 64

struct worker {
    u32 sm, t;
    u32 count; /* copies consumed by this block before this phase */
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

BR_DEV u32
epoch_now(void)
{
    return lds32(smem_of(&S->epoch));
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

/* Called, not inlined in 25 places: code that is not there is not fetched. */
static __device__ __attribute__((noinline)) void
give_up(void)
{
    *(volatile u32 *)&args.host->hung = 1;
    fence_system();
    trap();
}

BR_DEV u32
take(const struct worker *w, const u64 *p)
{
#pragma unroll 1
    for (u32 n = 0, epoch = epoch_now(); n < SPIN_LIMIT; n++) {
        u64 v = ld_relaxed64(p);
        if ((u32)(v >> 32) == epoch)
            return (u32)v;
    }
    give_up();
    return 0;
}

BR_DEV u32x2
take2(const struct worker *w, const u64 *p)
{
#pragma unroll 1
    for (u32 n = 0, epoch = epoch_now(); n < SPIN_LIMIT; n++) {
        u64x2 v = ld_relaxed64x2(p);
        if ((u32)(v.x >> 32) == epoch && (u32)(v.y >> 32) == epoch)
            return u32x2{(u32)v.x, (u32)v.y};
    }
    give_up();
    return u32x2{0, 0};
}

/* Until the barrier has passed the round with this parity. */
BR_DEV void
mbar_wait(u32 bar_addr, u32 parity)
{
#pragma unroll 1
    for (u32 s = 0; !mbar_try(bar_addr, parity); s++)
        if (s > SPIN_LIMIT)
            give_up();
}

/* One thread waits until all but `late` of the n workers of a phase said "out", or a
 * while, the others for it at the block's barrier; then the words themselves decide.
 * ONE: with a poller in each of four warps the counter's slice of the L2 had 528
 * askers, and the step took 3 % (BF16) to 6 % (Q4_K) longer. Not all workers, because
 * the last ones come while the first look is on its way: all cost 2 %. (An mbarrier
 * in place of the barrier: 1.8 % for BF16, 6 for Q4_K. Said as the product is done,
 * all waited for: BF16 0.1 % faster, Q4_K 1 % slower.) */
#define POLLER (BR_MK_THREADS - 32)
#define HINT_LIMIT (1u << 16)

BR_DEV u32 *
hint_of(u32 layer, u32 which)
{
    return args.hints + (layer * 4 + which) * 32;
}

BR_DEV void
await_hint(const u32 *hint, u32 n, u32 late)
{
    const u32 want = epoch_now() * n - late;

#pragma unroll 1
    for (u32 s = 0; s < HINT_LIMIT; s++)
        if ((i32)(ld_relaxed32(hint) - want) >= 0)
            break;
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
    st_relaxed64(p, (u64)epoch_now() << 32 | bits);
}

BR_DEV u64 *
words(const struct worker *w, u32 layer, u64 off)
{
    return args.words + args.map.layer * layer + off;
}

/* Copies of the words of 8 values: this step's, or the one to clear in it. */
BR_DEV u32x4 *
eights(u32 copy, u32 layer)
{
    return (u32x4 *)(args.words + args.map.eights_at) +
           ((copy & 1) * args.n_layers + layer) * args.map.eights;
}

/* Of this step: attention's output, or the activations. Tiles say their epoch,
 * so there is one copy of them. */
template <class F>
BR_DEV u32x4 *
made_at(const struct worker *w, u32 layer, bool act)
{
    return eights(F::EIGHTS ? epoch_now() : 0, layer) +
           (act ? args.map.attn_eights : 0);
}

/* Value 8 i of n values that go out as words of 8. */
BR_DEV u32x4 *
eight_at(u32x4 *p, u32 i, u32 n)
{
    return p + (i & 3) * (n / 32) + (i >> 2);
}

#include "mega_sums.cuh"
#include "mega_product.cuh"

#include "mega_input.cuh"

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

/* Of a pair in every second lane: lane 0 of 8 sends 8 values. */
BR_DEV void
give_eight(u32x4 *to, u32 pair, bool send)
{
    const u32 p1 = shfl_xor(pair, 2), p2 = shfl_xor(pair, 4);
    const u32 p3 = shfl_xor(p1, 4);

    if (send)
        st_word(to, u32x4{pair, p1, p2, p3});
}

#include "mega_load.cuh"
#include "mega_attn.cuh"

/* ---- phases -------------------------------------------------------------------- */

/* A phase is gather, multiply, finish; multiply is the same code for all, so
 * that it is in the instruction cache once. */

/* For one thread: until it is time to look at what a phase reads. */
template <class F>
BR_DEV void
await_input(const struct br_mk_inst *in)
{
    const u32 op = in->op;

    await_hint(hint_of(in->layer, op == BR_MK_OUT    ? BR_MK_HINT_ATTN
                                  : op == BR_MK_GLU  ? BR_MK_HINT_MID
                                  : op == BR_MK_DOWN ? BR_MK_HINT_ACT
                                                     : BR_MK_HINT_H),
               in->n_wait, in->n_wait / F::LATE);
}

/* To those who read what a phase makes. */
BR_DEV void
tell(const struct worker *w, const struct br_mk_inst *in)
{
    const u32 op = in->op;

    if (op != BR_MK_QKV && op != BR_MK_HEAD)
        give_hint(w, in->layer + (op == BR_MK_DOWN),
                  op == BR_MK_OUT   ? BR_MK_HINT_MID
                  : op == BR_MK_GLU ? BR_MK_HINT_ACT
                                    : BR_MK_HINT_H,
                  1);
}

/* What a phase reads, for the threads that have a tile of it. */
template <class F>
BR_DEV void
gather(const struct worker *w, const struct br_mk_inst *in)
{
    const u32 layer = in->layer, op = in->op, tiles = in->segs * 32u;
    const bool made = op == BR_MK_OUT || op == BR_MK_DOWN;

    if (op == BR_MK_QKV && layer == 0) {
        take_row<F>(w,
                    (const u32 *)(args.embed + (u64)token_now() * args.hidden),
                    args.norms);
        return;
    }
    const u32x4 *p =
        made ? made_at<F>(w, layer, op == BR_MK_DOWN)
             : (const u32x4 *)words(w, layer, op == BR_MK_GLU ? args.map.x_mid
                                                              : args.map.x_in);
    if (F::EIGHTS && made)
        take_tiles<F, 2, F::EIGHTS>(w, p, tiles, !made);
    else
        take_tiles<F, F::X_WORDS, false>(w, p, tiles, !made);
}

/* What row t of this worker adds, and the norm's weight of the next phase: asked
 * for before the wait and looked at after the product. The embedding row plays
 * h in layer 0. */
struct asked {
    u64 h;
    float weight;
    u32 x_at, h_at; /* where x and h go, in words of 64 bits */
};
BR_DEV struct asked
ask_residual(const struct worker *w, const struct br_mk_inst *in)
{
    const u32 row = in->tile0 * 16 + w->t;
    const bool out = in->op == BR_MK_OUT;
    struct asked a = {0, 0.0f, 0, 0};

    if (w->t >= in->n_tiles * 16u || (!out && in->op != BR_MK_DOWN))
        return a;
    a.weight = args.norms[(u64)(in->layer * 2 + (out ? 1 : 2)) * args.hidden + row];
    const u32 base = (u32)args.map.layer * (in->layer + !out);
    a.x_at = base + (u32)(out ? args.map.x_mid : args.map.x_in) + row / 16 * 2;
    a.h_at = base + (u32)(out ? args.map.h_mid : args.map.h_in) + row;
    HERE(a.x_at);
    HERE(a.h_at);
    if (in->layer == 0 && out) {
        u32 p = ((const u32 *)(args.embed +
                               (u64)token_now() * args.hidden))[row >> 1];
        a.h = (u64)epoch_now() << 32 | (row & 1 ? p & 0xffff0000u : p << 16);
    } else {
        a.h = ld_relaxed64(
            words(w, in->layer, out ? args.map.h_in : args.map.h_mid) + row);
    }
    return a;
}

#define NO_BEST as_f32(0xff800000u)

/* The best logit of each thread so far, between the groups of HEAD: behind x,
 * which is 8 KiB of 24 there, and before what bytes_of_x keeps. */
struct best {
    float v;
    u32 id;
};
#define BEST ((struct best *)((unsigned char *)S->x + 8192))

/* A larger value wins, the lower index on ties. */
BR_DEV void
better(float *v, u32 *i, float v2, u32 i2)
{
    if (v2 > *v || (v2 == *v && i2 < *i)) {
        *v = v2;
        *i = i2;
    }
}

/* h' = h + y goes out, and x of the next phase. */
template <class F>
BR_DEV void
finish_residual(const struct worker *w, const struct br_mk_inst *in, float y,
                struct asked a, u32 epoch)
{
    const bool out = in->op == BR_MK_OUT, mine = w->t < in->n_tiles * 16u;
    const u32 row = in->tile0 * 16 + w->t;
    u32 h = (u32)a.h;

    if (mine && (u32)(a.h >> 32) != epoch) /* not there when asked */
        h = take(w, words(w, in->layer, out ? args.map.h_in : args.map.h_mid) +
                        row);
    y = add_rn(as_f32(h), y);
    F::give_tile((u32x4 *)(args.words + a.x_at), args.hidden / 16, w->t & 15,
                 mul_rn(y, a.weight), mul_rn(y, y), epoch, mine);
    if (mine)
        st_relaxed64(args.words + a.h_at, (u64)epoch << 32 | as_u32(y));
}

/* Thread t has row t of this worker's tiles (32 tiles at most): y, scaled. */
template <class F>
BR_DEV void
finish(const struct worker *w, const struct br_mk_inst *in, struct asked a)
{
    const u32 row = in->tile0 * 16 + w->t, op = in->op, layer = in->layer;
    const bool mine = w->t < in->n_tiles * 16u;
    const u32 epoch = epoch_now();
    float y = mine ? row_sum(w, in, w->t / 16, w->t % 16) : 0.0f;

    if (op == BR_MK_OUT || op == BR_MK_DOWN) {
        finish_residual<F>(w, in, y, a, epoch);
        tell(w, in);
        return;
    }
    y = mul_rn(y, as_f32(lds32(smem_of(&S->scale))));
    if (op == BR_MK_HEAD) {
        struct best b = BEST[w->t];
        if (mine && row < args.vocab) {
            if (args.logits)
                args.logits[row] = y;
            better(&b.v, &b.id, y, row);
        }
        BEST[w->t] = b;
    } else if (op == BR_MK_GLU) { /* 8 gates, then 8 ups */
        const u32 tile = in->tile0 + w->t / 16;
        float act = mul_rn(silu(y), shfl_xor_f(y, 8));
        if constexpr (F::EIGHTS) {
            act = F::lift(act);
            give_eight(eight_at(made_at<F>(w, layer, true), tile, args.inter),
                       pack_bf16(act, shfl_xor_f(act, 1)),
                       mine && (w->t & 15) == 0);
        } else { /* two tiles give 16 values: the second one's are 16 lanes on */
            const float other = shfl_xor_f(act, 24);
            F::give_tile(made_at<F>(w, layer, true) + tile / 2, args.inter / 16,
                         w->t & 15, w->t & 8 ? other : act, 0.0f, epoch_now(),
                         mine && (w->t & 16) == 0);
        }
        tell(w, in);
    } else if (mine) {
        give(w, words(w, layer, args.map.qkv) + row, as_u32(y));
    }
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

#include "mega_ring.cuh"

/* Every worker publishes its best, every worker reads all of them and knows
 * the next token without asking anybody. The fences order this step's cache
 * writes before the next step's reads. */
BR_DEV u32
phase_token(const struct worker *w, u32 ring, u32 step)
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
    if (w->t == BR_MK_THREADS - 32)
        take_next(w, ring, step);
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

/* Clears what the step before last wrote, for the next step: its readers are
 * done since the last TOKEN, and the next TOKEN tells the writers. */
BR_DEV void
clear_eights(const struct worker *w)
{
    const u32 n = args.n_layers * args.map.eights;
    u32x4 *p = eights(epoch_now() + 1, 0);

#pragma unroll 1
    for (u32 i = w->sm + w->t * args.n_workers; i < n;
         i += args.n_workers * BR_MK_THREADS)
        st_word(p + i, u32x4{~0u, ~0u, ~0u, ~0u});
}

/* HEAD comes in groups of tiles with one input. */
template <class F>
BR_DEV void
phase_product(const struct worker *w, const struct br_mk_inst *in)
{
    const bool first = in->op != BR_MK_HEAD || (in->flags & BR_MK_FIRST);

    if (first && in->op == BR_MK_HEAD) {
        BEST[w->t] = {NO_BEST, 0xffffffffu};
        if (F::EIGHTS)
            clear_eights(w);
    }
    if (!in->n_tiles) {
        if (w->t == 0)
            copies_wait();
        bar(1, BR_MK_THREADS);
        return;
    }
    const struct asked a = ask_residual(w, in);
    /* i / segs = i * over >> 12 for i < BR_MK_MAX_PARTS: a division by a number that
     * is not known takes 0.1 us where a chunk's weights have just come */
    u32 over = (u32)(4096.0f * rcp((float)in->segs)) + 1;
    HERE(over);
    const struct turn turn = first_turn<F>(w);
    if (first && (in->op != BR_MK_QKV || in->layer)) {
        if (w->t == POLLER)
            await_input<F>(in);
        bar(1, BR_MK_THREADS);
    }
    if (first && first_tile(w) < in->segs * 32u)
        gather<F>(w, in);
    bar(1, BR_MK_THREADS);
    STAMP(1);
    if (w->t >= POLLER && first && in->op != BR_MK_OUT && in->op != BR_MK_DOWN)
        scale_rows(in->segs, w->t & 31);
    multiply<F>(w, in, over, turn);
    if (w->t == 0)
        copies_wait(); /* the next phase's instruction */
    bar(1, BR_MK_THREADS);
    STAMP(2);
    if ((w->t & ~31u) < in->n_tiles * 16u)
        finish<F>(w, in, a);
}

/* ---- the two roles ------------------------------------------------------------- */

/* n_steps times the chunks [first, end) of this worker's stream, and the keys
 * and values of layers [layer, layers) where their turn is, as soon as it is known
 * where the step's position is; loader j of two takes
 * every other copy. A round of the loop takes 0.27 us (looks at barriers, 150
 * cycles each): one loader alone copies 8 KiB at 3.9 TB/s, two at 4.5. A copy costs
 * 40 ns of a multiprocessor besides its bytes, so none is shorter than it has to be.
 * The deeper the copies under way, the faster the stream (32 KiB 4.2 TB/s, 48
 * 4.5) and the later a word (an exchange 1.4, 1.8 us): args.deep while the
 * consumers wait for weights, args.depth while weights wait for them.
 * Tried: chunks beyond the slots fetched into the L2 while no slot is free, 4
 * to 20 of them, then kept ahead at 1/2 to 7/8 of the pace: no gain. */
template <int HD, class F>
BR_DEV void
load_stream(u32 sm, u32 j, u32 from, u32 layer, u32 first, u32 end, u32 layer0,
            u32 layers, u32 n_steps)
{
    u32 at = 0, seen = j; /* copies before; those of this loader that are there */

#pragma unroll 1
    for (u32 s = 0;; s++) {
        u32 c = copies_of<F>(s ? first : from);
        if (s >= n_steps)
            return;
        if (!await_rows(s))
            break;
#pragma unroll 1
        for (u32 y = s ? layer0 : layer;; y++) {
            const u32 stop = copies_of<F>(y < layers ? S->keys_at[y] >> 8 : end);
            const u32 all = at + stop - c;
            u32 n = at + (j - at) % F::LOADERS, tell = 0xffffffff;
            /* The first worker's first loader, in OUT of the layer before, asks
             * for the host's flag, and says what it is a ring of slots later. */
            if (sm == 0 && j == 0) {
                copy16(smem_of(&S->asked), args.host);
                tell = all - at < F::SLOTS ? all : at + F::SLOTS;
            }
#pragma unroll 1
            for (;; n += F::LOADERS) {
                if (n >= tell) {
                    tell_go(y, S->epoch0 + s);
                    tell = 0xffffffff;
                }
                if (n >= all)
                    break;
                const u32 slot = n % F::SLOTS, i = c + n - at;
                const u32 full = smem_of(S->full) + slot * 8;
                if (!free_slot<F>(n, &seen))
                    return end_copies<F>(j, n);
                mbar_expect(full, F::COPY);
                bulk_copy(smem_of(S->ring) + slot * F::COPY,
                          args.stream + i % F::COPIES * F::COPY +
                              ((u64)(i / F::COPIES) * args.n_workers + sm) *
                                  (F::COPIES * F::COPY),
                          F::COPY, full, policy_evict_first());
            }
            at += stop - c;
            c = stop;
            if (y >= layers)
                break;
            if (y == (s ? layer0 : layer) && !await_place(s))
                return end_copies<F>(j, at);
            at = load_pages<HD, F>(j, y, lds32(smem_of(&S->place[s & 1])), at,
                                   &seen);
            if (is_cut())
                return end_copies<F>(j, at);
        }
    }
    end_copies<F>(j, at);
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

/* Until S->n_steps are done, or the launch is cut; leaves the epoch of the step
 * after them, or of the one in the midst, in w. */
template <int HD, class F>
BR_DEV void
consume(struct worker *w, u32 first, u32 end, const struct br_mk_launch &l)
{
#pragma unroll 1
    for (u32 turn = 0;; turn++) {
        w->t = tid_again();
        w->sm = bid_again();
        const u32x4 at = lds128(smem_of(&S->stand[turn & 1]));
        const struct br_mk_inst in =
            unpack(lds128(smem_of(&S->inst[turn & 1])));
        w->count = at.z;
        if (at.y >= lds32(smem_of(&S->n_steps)))
            return;
        if (in.op == BR_MK_QKV && in.layer && turn && ends_here(w, in.layer)) {
            if (w->t == 0) {
                S->cut = at.x + 1;
                mbar_arrive(smem_of(&S->end), 1);
            }
            return;
        }
        if (w->t == 0) {
            const bool last = at.x + 1 == end;
            const u32 used = in.op == BR_MK_ATTN
                                 ? n_tasks(in.tile0) * pages_in<HD, F>::TASK
                                 : copies_of<F>((u32)in.n_tiles * in.segs);
            prepare_phase(w, turn + 1, last ? first : at.x + 1, at.y + last,
                          at.z + used, at.w + (in.op == BR_MK_TOKEN));
            if (in.op == BR_MK_DOWN)
                copy16(smem_of(&S->go), go_of(in.layer + 1, at.w));
        }
#ifdef BR_MK_PROFILE
        w->phase = at.x;
#endif
        if (turn == 0) { /* of the others, take_next */
            if (w->t == 0) {
                if (l.seek == BR_MK_TOLD)
                    take_begin(w->sm);
                take_place(pos_now(), S->block);
            }
            bar(1, BR_MK_THREADS);
        }
        if (in.op == BR_MK_HEAD && (in.flags & BR_MK_FIRST))
            ask_ring(w, l.ring);
        STAMP(0);
        if (in.op == BR_MK_ATTN) {
            phase_attn<HD, F>(w, in.layer, in.tile0);
            if (w->t == 0)
                copies_wait();
            bar(1, BR_MK_THREADS);
        } else if (in.op == BR_MK_TOKEN) {
            const u32 token = phase_token(w, l.ring, at.y);
            if (w->t == 0) {
                if (w->sm == 0) {
                    args.tokens[(epoch_now() - 1) % BR_MK_TOKENS] = token;
                    st_system64(&args.host->token[epoch_now() % BR_MK_HOST_TOKENS],
                                (u64)epoch_now() << 32 | token);
                    if (S->next.y == BR_MK_UNKNOWN)
                        await_ring(w, l.patience, at.y);
                }
                S->token = S->next.x == BR_MK_BEST ? token : S->next.x;
                mbar_arrive(smem_of(&S->done[at.y & 1]), 1);
                S->epoch = at.w + 1;
                copies_wait();
            }
            bar(1, BR_MK_THREADS);
        } else {
            phase_product<F>(w, &in);
        }
        STAMP(3);
    }
}

/* All phases of steps (mega), or one launch for each phase (packets); HEAD and
 * TOKEN go together. The first step may begin where the launch before was cut. */
template <int HD, class F>
BR_DEV void
decode(const struct br_mk_launch &l)
{
    const u32 from = l.from, first = l.first, end = l.end;
    struct worker w;

    w.sm = bid();
    w.t = tid();
    if (w.t == 0) {
        const bool at = l.seek == BR_MK_AT;
        S->token = at ? l.token : args.step->token;
        S->pos = at ? l.pos : args.step->pos;
        S->block = at ? l.block : args.step->block;
        S->n_steps = l.n_steps;
        S->cut = S->asked.y = 0;
        for (u32 i = 0; i < 2; i++) {
            mbar_init(smem_of(&S->done[i]), 1);
            mbar_init(smem_of(&S->known[i]), 1);
        }
        mbar_init(smem_of(&S->end), 1);
#pragma unroll 1 /* else 44 spilled registers */
        for (u32 i = 0; i < F::SLOTS; i++) {
            mbar_init(smem_of(&S->full[i]), 1);
            mbar_init(smem_of(&S->empty[i]), READERS);
        }
        fence_mbar_init();
        S->epoch0 = at ? l.epoch : args.step->epoch;
        S->epoch = S->epoch0;
        if (l.seek != BR_MK_TOLD)
            begin_places(l.ring);
        prepare_phase(&w, 0, from, 0, 0, S->epoch0);
        copies_wait();
    }
    const struct br_mk_inst *queue = args.inst + (u64)w.sm * args.n_inst;
    if (w.t < args.n_layers) /* 5 phases each: OUT follows ATTN */
        S->keys_at[w.t] =
            queue[w.t * 5 + 2].chunk0 << 8 | queue[w.t * 5 + 1].tile0;
    bar(0, BR_MK_BLOCK);

    /* 640 x 96 registers were given: 128 x 64 + 512 x 104 */
    if (w.t >= BR_MK_THREADS) {
        SET_REGISTERS(dec, 64);
        const u32 j = (w.t - BR_MK_THREADS) / 32;
        if (w.t % 32 == 0 && j < F::LOADERS) {
            const u32 L = args.n_layers;
            const u32 c0 = queue[first].chunk0, c = queue[from].chunk0;
            const u32 c1 = end == args.n_inst ? args.stream_chunks[w.sm]
                                        : queue[end].chunk0;
            /* the layers whose ATTN, phase 5 i + 1, is among these */
            load_stream<HD, F>(w.sm, j, c, (from + 3) / 5, c0, c1,
                               (first + 3) / 5, end < L * 5 ? (end + 3) / 5 : L,
                               l.n_steps);
        }
    } else {
        SET_REGISTERS(inc, 104);
        consume<HD, F>(&w, first, end, l);
    }
    /* The next launch begins where this one ends. Only a launch that ran the
     * TOKEN phase moved on; every block has read step by then, because its
     * best is among those that TOKEN waited for. Cut in its first step it writes
     * what was there. */
    if (end == args.n_inst && bid() == 0 && tid() == 0) {
        args.step->epoch = epoch_now();
        args.step->token = S->token;
        args.step->pos = S->pos;
        args.step->block = S->block;
        args.step->phase = S->cut ? S->cut - 1 : 0;
        st_system64(&args.host->ended[1], epoch_now());
        fence_system();
        st_system64(&args.host->ended[0],
                    (u64)l.serial << 32 | (S->cut ? S->cut - 1 : 0));
    }
}

#define KERNEL(name, hd, format)                                               \
    extern "C" __global__ void __launch_bounds__(BR_MK_BLOCK, 1)               \
        name(const struct br_mk_launch l)                                      \
    {                                                                          \
        decode<hd, format>(l);                                                 \
    }
KERNEL(br_mega_64_bf16, 64, bf16_weights)
KERNEL(br_mega_128_bf16, 128, bf16_weights)
KERNEL(br_mega_64_bf12, 64, bf12_weights)
KERNEL(br_mega_128_bf12, 128, bf12_weights)
KERNEL(br_mega_64_q8_0, 64, q8_0_weights)
KERNEL(br_mega_128_q8_0, 128, q8_0_weights)
KERNEL(br_mega_64_q4_k, 64, q4_k_weights)
KERNEL(br_mega_128_q4_k, 128, q4_k_weights)
