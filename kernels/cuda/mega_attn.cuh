/* mega_attn.cuh - the attention phase of the decode megakernel.
 *
 *   task = up to 4 query heads of one KV head x one block of 256 positions
 *
 *   the loaders bring its keys and values into slots, as if they were weights:
 *   before q is there, for they depend on nothing
 *
 *   warp w: positions 16 w .. 16 w + 15, a page
 *     scores  [4 heads, 16 keys]   = q x k   tensor cores, bf16
 *     weights exp(score - max of the block), rounded to bf16
 *     sums    [4 heads, HD]        = weights x v
 *   16 warps added in a fixed tree -> (max, sum, sums of values) of the block
 *
 * The copies are asked for before this step's row is known and perhaps before
 * the last one was written, so those two rows are read from where this phase has them.
 * (Put over what was copied they need a fence before the next copy there: 0.5 us.)
 *
 * One block: the heads go out at once. More: every block's part goes out as
 * words, and a worker folds a quarter of a head's columns, over the blocks in ascending
 * order (numbers contract): one worker a head took 4 us a layer at position 8192. A key
 * is read once for all heads that share it: one task a head
 * read it four times, and the fold, which asked for one block after another,
 * took 60 of 90 us a layer at position 8192. Keys asked for by this phase
 * itself, into registers, cost 3 us a layer more at 1536, 5 at 8192.
 *
 * Columns go to the tensor core in the order in which 16-byte loads bring them:
 * lane (g, c) = (lane / 4, lane % 4) holds columns 8 (4 i + c) .. + 7 of key g;
 * q is read the same way, and a sum does not ask which column is which. Of
 * values it holds columns 8 g .. + 7 of positions 2 c, 2 c + 1, 2 c + 8, 2 c + 9.
 * SPDX-License-Identifier: Apache-2.0 */

#define HEADS 4 /* query heads of a task */
#define FOLD  48 /* blocks that a fold has in shared memory at once: 12288 positions */

struct task {
    u32 kvh, head, n_heads; /* the query heads [head, head + n_heads) */
    u32 blk;                /* of positions */
    u32 n;                  /* positions, this one among them */
    u32 at;                 /* the copy with which its pages begin */
    u32 now;                /* row of this position, may be of a later block */
    u32 on;                 /* is there such a task? */
};

/* Over S->x, which this phase leaves free. Queries of two tasks are taken at once, then
 * one is done after the other, by the same code: what a phase runs once it also
 * fetches once. */
#define TASKS 2
template <int HD>
struct att {
    struct one {
        u32 q[HEADS][HD / 2]; /* bf16 pairs */
        u32 row[2][2][HD / 2]; /* of now, and of the row before: key, value, as pages
                                  have them */
        float max[HEADS][BR_MK_WARPS], sum[HEADS][BR_MK_WARPS];
        struct task is; /* here: in registers it makes others spill */
    } task[TASKS];
    enum { ACCS = HD == 64 ? BR_MK_WARPS : BR_MK_WARPS / 2 };
    float acc[ACCS][HEADS][HD];
};
/* Over S->part. A fold is of a quarter of a head's columns. */
template <int HD>
struct fold_space {
    enum { COLS = HD / 4, PAIRS = COLS / 2 + 1 }; /* with max and sum */
    float part[FOLD][COLS + 2];
    float factor[FOLD][2]; /* of what was before, of the block's own */
};
static_assert(sizeof(struct att<64>) <= sizeof((struct smem *)0)->x, "fits");
static_assert(sizeof(struct att<128>) <= sizeof((struct smem *)0)->x, "fits");
static_assert(sizeof(struct fold_space<128>) <= sizeof((struct smem *)0)->part,
              "fits");

template <int HD>
BR_DEV typename att<HD>::one *
space_of(u32 k)
{
    return &((struct att<HD> *)S->x)->task[k];
}

/* i / n for i < 2^20, without a division's 40 instructions before the first look at q:
 * (i + 1/2) / n is 1 / 2n off a whole number at least, and here right to 2^-22 i / n. */
BR_DEV u32
divide(u32 i, u32 n)
{
    return (u32)(i32)(((float)i + 0.5f) * rcp((float)n));
}

/* Tasks of a block are KV heads, times `subs` when more than HEADS queries share
 * one. Task i, if it is one, with copy `at`. */
BR_DEV struct task
task_of(u32 i, u32 all, u32 at)
{
    const u32 group = divide(args.n_heads, args.n_kv);
    struct task t;

    t.on = i < all;
    t.blk = divide(i, args.tasks);
    i -= t.blk * args.tasks;
    t.kvh = args.subs == 1 ? i : i / args.subs;
    const u32 sub = i - t.kvh * args.subs;
    t.head = t.kvh * group + sub * HEADS;
    t.n_heads = group - sub * HEADS < HEADS ? group - sub * HEADS : HEADS;
    t.now = pos_now() - t.blk * BR_MK_KV_BLOCK;
    t.n = t.now < BR_MK_KV_BLOCK ? t.now + 1 : BR_MK_KV_BLOCK;
    t.at = at;
    return t;
}
BR_DEV bool
has_now(const struct task *a)
{
    return a->now < BR_MK_KV_BLOCK;
}

/* Tasks of all workers at position pos; one has the tasks i, i + n_workers, .. */
BR_DEV u32
all_tasks(u32 pos)
{
    return args.tasks * (pos / BR_MK_KV_BLOCK + 1);
}
BR_DEV u32
n_tasks(u32 i)
{
    u32 n = 0;

#pragma unroll 1
    for (; i < all_tasks(pos_now()); i += args.n_workers)
        n++;
    return n;
}

/* Where a page keeps its 16 keys, and behind them the values, of a head. */
BR_DEV unsigned short *
kv_at(u32 page, u32 layer, u32 is_v, u32 kvh)
{
    const u64 pair = ((u64)page * args.n_layers + layer) * args.n_kv + kvh;

    return args.kv + (pair * 2 + is_v) * BR_MK_PAGE * args.head_dim;
}

/* Pages in slots, two or one in 8 KiB of each. A task takes all its slots, also those of
 * pages that are not there yet. */
template <int HD, class F>
struct pages_in {
    enum {
        BYTES = BR_MK_PAGE * HD * 4, /* keys before values */
        SLOT = 8192,
        TASK = 16 * BYTES / SLOT,
        ARRIVALS = BYTES == SLOT ? READERS / 32 : READERS / 64
    };
    static_assert(BYTES <= SLOT && SLOT <= F::COPY, "fits");
};

/* Where the table has the page of a position of that place's sequence. */
BR_DEV u32
page_of(u32 place, u32 pos)
{
    return BR_MK_BLOCK_OF(place) * (BR_MK_KV_BLOCK / BR_MK_PAGE) +
           pos / BR_MK_PAGE;
}

/* Copies the pages of a worker's tasks; `at` copies were given out before by
 * both loaders, of which this is number j. Returns how many now, or before it was
 * cut. One thread:
 * with several the copies are as fast and racecheck loses count of them. */
template <int HD, class F>
BR_DEV u32
load_pages(u32 j, u32 layer, u32 place, u32 at, u32 *seen)
{
    using in = pages_in<HD, F>;
    const u32 ids = smem_of(S->ids[j]);
    const u32 pos = BR_MK_POS(place);

#pragma unroll 1
    for (u32 i = S->keys_at[layer] & 255; i < all_tasks(pos);
         i += args.n_workers) {
        const u32 first = i / args.tasks * (BR_MK_KV_BLOCK / BR_MK_PAGE);
        /* bytes; may be of more than 16 pages */
        const u32 there = (pos / BR_MK_PAGE - first + 1) * in::BYTES;
        const u32 kvh = i % args.tasks / args.subs;
#pragma unroll
        for (u32 k = 0; k < 4; k++)
            copy16(ids + k * 16, args.pages + page_of(place, 0) + first + k * 4);
        copies_wait();
#pragma unroll 1
        for (u32 s = (j - at) % F::LOADERS; s < in::TASK; s += F::LOADERS) {
            const u32 slot = (at + s) % F::SLOTS, n0 = s * in::SLOT;
            const u32 full = smem_of(S->full) + slot * 8;
            const u32 left = there > n0 ? there - n0 : 0;
            const u32 n = left < in::SLOT ? left : in::SLOT;
            if (!free_slot<F>(at + s, seen))
                return at + s;
            mbar_expect(full, n);
#pragma unroll 1
            for (u32 o = 0; o < n; o += in::BYTES)
                bulk_copy(smem_of(S->ring) + slot * F::COPY + o,
                          kv_at(lds32(ids + (n0 + o) / in::BYTES * 4), layer, 0,
                                kvh),
                          in::BYTES, full, policy_evict_first());
        }
        at += in::TASK;
    }
    return at;
}

/* Page i (of 16) of the task whose pages begin with copy `at`: the copy that has it,
 * and where it lies. */
template <int HD, class F>
BR_DEV u32
copy_of(u32 at, u32 i)
{
    return at + i * pages_in<HD, F>::BYTES / pages_in<HD, F>::SLOT;
}
template <int HD, class F>
BR_DEV u32
page_at(u32 at, u32 i)
{
    using in = pages_in<HD, F>;

    return smem_of(S->ring) + copy_of<HD, F>(at, i) % F::SLOTS * F::COPY +
           i * in::BYTES % in::SLOT;
}

template <int HD, class F>
BR_DEV void
await_page(u32 at, u32 i)
{
    const u32 n = copy_of<HD, F>(at, i);

    mbar_wait(smem_of(S->full) + n % F::SLOTS * 8, n / F::SLOTS & 1);
}

/* Pages of this position and the one before, and this position's rotation, once
 * a step, by one thread: read in every layer they would come from DRAM every time, 2
 * to 4 us behind the weights' queue; while TOKEN waits they cost nothing. */
BR_DEV void
take_place(u32 pos, u32 block)
{
    const u32 *table = args.pages + page_of(BR_MK_PLACE(0, block), 0);
    const u32 now = table[pos / BR_MK_PAGE];
    const u32 before = table[(pos - (pos != 0)) / BR_MK_PAGE];

#pragma unroll 1
    for (u32 i = 0; i < args.head_dim; i += 4)
        copy16(smem_of(S->rope + i), args.rope + (u64)pos * args.head_dim + i);
    S->pages[0] = now;
    S->pages[1] = before;
    copies_wait();
}

/* ---- q, k, v of this position ----------------------------------------------- */

/* Columns 2 lane, 2 lane + 1 (and 64 more) of one vector: x[0..1] (x[2..3]). */
template <int HD>
BR_DEV void
norm_and_turn(float *x, const float *norm, u32 lane)
{
    constexpr int N = HD / 32;

    if (norm) { /* Qwen3 */
        float s = 0.0f;
#pragma unroll
        for (int i = 0; i < N; i++)
            s = fma_rn(x[i], x[i], s);
        s = rsqrt_fast(fma_rn(warp_sum(s), 1.0f / HD, args.eps));
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = mul_rn(mul_rn(x[i], s),
                          norm[2 * lane + (i >> 1) * 64 + (i & 1)]);
    }
    if (args.interleaved_rope) { /* pairs 2i, 2i + 1: in this lane */
#pragma unroll
        for (int i = 0; i < N; i += 2) {
            const float *r = S->rope + 2 * (lane + i * 16);
            float u = x[i], v = x[i + 1];
            x[i] = fma_rn(u, r[0], -mul_rn(v, r[1]));
            x[i + 1] = fma_rn(u, r[1], mul_rn(v, r[0]));
        }
    } else if (HD == 128) { /* pairs i, i + 64: in this lane */
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float *r = S->rope + 2 * (2 * lane + i);
            float u = x[i], v = x[i + N / 2];
            x[i] = fma_rn(u, r[0], -mul_rn(v, r[1]));
            x[i + N / 2] = fma_rn(u, r[1], mul_rn(v, r[0]));
        }
    } else { /* pairs i, i + 32: the other half is 16 lanes away */
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float *r = S->rope + 2 * (2 * (lane & 15) + i);
            float other = shfl_xor_f(x[i], 16);
            x[i] = lane < 16 ? fma_rn(x[i], r[0], -mul_rn(other, r[1]))
                             : fma_rn(other, r[1], mul_rn(x[i], r[0]));
        }
    }
}

/* Warp i < n_heads of eight brings query i, the next ones k and v where this position
 * is the task's, and the row before; as bf16, which is how the cache keeps k and v. The
 * pages were copied before those two rows were there, so they are read from here. */
template <int HD>
BR_DEV void
take_qkv(const struct worker *w, typename att<HD>::one *m, const struct task *a,
         u32 layer)
{
    const u32 i = w->t >> 5 & 7, lane = w->t & 31, H = args.n_heads;
    const u64 *p = words(w, layer, args.map.qkv);
    const bool is_q = i < a->n_heads, is_v = (i - a->n_heads) & 1;
    const u32 before = a->now - 1; /* may wrap */

    if (i < a->n_heads + (has_now(a) ? 2 : 0)) {
        const u32 from = is_q   ? a->head + i
                         : is_v ? H + args.n_kv + a->kvh
                                : H + a->kvh;
        u32 *to = is_q ? m->q[i] : m->row[0][is_v];
        float x[HD / 32];
#pragma unroll
        for (u32 j = 0; j < HD / 64; j++) {
            u32x2 r = take2(w, p + from * HD + j * 64 + 2 * lane);
            x[2 * j] = as_f32(r.x);
            x[2 * j + 1] = as_f32(r.y);
        }
        if (is_q || !is_v)
            norm_and_turn<HD>(x,
                              args.qk_norms ? args.qk_norms +
                                                  ((u64)layer * 2 + !is_q) * HD
                                            : (const float *)0,
                              lane);
#pragma unroll
        for (u32 j = 0; j < HD / 64; j++) {
            const u32 d = (j * 32 + lane) * 2;
            to[(is_q ? d : BR_MK_COLUMN(d, a->now)) / 2] =
                pack_bf16(x[2 * j], x[2 * j + 1]);
        }
    } else if (i >= a->n_heads + 2 && i < a->n_heads + 4 &&
               before < BR_MK_KV_BLOCK) {
        const u32 *from = (const u32 *)(kv_at(S->pages[1], layer, is_v, a->kvh) +
                                        before % BR_MK_PAGE * HD);
#pragma unroll
        for (u32 j = 0; j < HD / 64; j++)
            m->row[1][is_v][j * 32 + lane] = ld_relaxed32(from + j * 32 + lane);
    }
}

/* Appends k and v of this position; one task per KV head does. */
template <int HD>
BR_DEV void
append(const struct worker *w, const typename att<HD>::one *m, u32 layer)
{
    if (w->t < HD) {
        const u32 v = w->t / (HD / 2), d = w->t % (HD / 2);
        u32 *to = (u32 *)(kv_at(S->pages[0], layer, v, m->is.kvh) +
                          pos_now() % BR_MK_PAGE * HD);
        to[d] = m->row[0][v][d];
    }
}

/* ---- one task ------------------------------------------------------------------ */

/* Where row r of the task is: of this warp's page, at `page`, or one of those two. */
template <int HD>
BR_DEV u32
row_of_task(const typename att<HD>::one *m, u32 page, u32 r, u32 is_v)
{
    const u32 ago = m->is.now - r;

    return ago < 2 ? smem_of(m->row[ago][is_v]) : page + r % BR_MK_PAGE * HD * 2;
}

/* Scores of this warp, whose keys lie at `keys`: lane (g, c) has head g, keys
 * 2c, 2c + 1 (s[0..1]) and 2c + 8, 2c + 9 (s[2..3]). */
template <int HD>
BR_DEV void
scores(const struct worker *w, const typename att<HD>::one *m, u32 keys, float s[4])
{
    const u32 lane = w->t & 31, g = lane >> 2, c = lane & 3;
    const u32 r0 = (w->t >> 5) * 16, n_heads = m->is.n_heads, n = m->is.n;
    const u32 row[2] = {row_of_task<HD>(m, keys, r0 + g, 0),
                        row_of_task<HD>(m, keys, r0 + g + 8, 0)};
    float acc[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};

#pragma unroll
    for (u32 j = 0; j < HD / 32; j++) {
        u32x4 q = {0, 0, 0, 0};
        if (g < n_heads)
            q = lds128(smem_of(m->q[g] + (j * 4 + c) * 4));
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            const u32x4 k =
                lds128(row[i] + BR_MK_COLUMN((j * 4 + c) * 8, i * 8 + g) * 2);
            mma_bf16(acc[i], u32x4{q.x, 0, q.y, 0}, u32x2{k.x, k.y});
            mma_bf16(acc[i], u32x4{q.z, 0, q.w, 0}, u32x2{k.z, k.w});
        }
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++)
        s[i] = r0 + 2 * c + (i & 1) + (i >> 1) * 8 < n
                   ? mul_rn(acc[i >> 1][i & 1], args.scale)
                   : as_f32(0xff800000u);
}

/* Columns 64 j .. + 63 of this warp's values; zero where there is none. */
template <int HD>
BR_DEV void
take_values(const struct worker *w, const typename att<HD>::one *m, u32 values, u32 j,
            u32x4 v[4])
{
    const u32 lane = w->t & 31, g = lane >> 2, c = lane & 3, n = m->is.n;

#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        const u32 r = 2 * c + (i & 1) + (i >> 1) * 8, all = (w->t >> 5) * 16 + r;
        v[i] = lds128(row_of_task<HD>(m, values, all, 1) +
                      BR_MK_COLUMN((j * 8 + g) * 8, r) * 2);
        if (all >= n)
            v[i] = u32x4{0, 0, 0, 0};
    }
}

/* Sums of values of this warp, heads g < 4: lane (g, c) gets columns
 * 64 j + 16 c + 4 half + 0..3 (lo) and + 8 (hi). */
BR_DEV void
sums(const u32x4 v[4], u32 half, u32 p_low, u32 p_high, u32x4 *lo, u32x4 *hi)
{
    float o[4][4];

#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        const u32 at = half * 2 + i / 2, sel = i & 1 ? 0x7632 : 0x5410;
        mma_bf16_zero(o[i], u32x4{p_low, 0, p_high, 0},
                      u32x2{prmt((&v[0].x)[at], (&v[1].x)[at], sel),
                            prmt((&v[2].x)[at], (&v[3].x)[at], sel)});
    }
    *lo = u32x4{as_u32(o[0][0]), as_u32(o[1][0]), as_u32(o[2][0]),
                as_u32(o[3][0])};
    *hi = u32x4{as_u32(o[0][1]), as_u32(o[1][1]), as_u32(o[2][1]),
                as_u32(o[3][1])};
}

BR_DEV u32x4
add4(u32x4 a, u32x4 b)
{
    return u32x4{as_u32(add_rn(as_f32(a.x), as_f32(b.x))),
                 as_u32(add_rn(as_f32(a.y), as_f32(b.y))),
                 as_u32(add_rn(as_f32(a.z), as_f32(b.z))),
                 as_u32(add_rn(as_f32(a.w), as_f32(b.w)))};
}

/* Of eight numbers. */
BR_DEV float
tree8(const float *y)
{
    return add_rn(add_rn(add_rn(y[0], y[1]), add_rn(y[2], y[3])),
                  add_rn(add_rn(y[4], y[5]), add_rn(y[6], y[7])));
}

/* This warp's page goes back: what was read went into sums. Heads of 64 do it when what
 * others wait for is out, heads of 128 before they meet: their next task's pages do not
 * fit beside these (8B at 8192 0.3 % faster). */
template <int HD, class F>
BR_DEV void
release(const struct worker *w, u32 at)
{
    mbar_arrive(smem_of(S->empty) + copy_of<HD, F>(at, w->t / 32) % F::SLOTS * 8,
                pages_in<HD, F>::ARRIVALS);
}

/* The sums of 16 warps added up: i and i + 8 first, then the eight. Thread
 * t < HEADS * HD gets column t % HD of head t / HD. All at once, where there is room:
 * a barrier less (1B Q4_K 2 %, BF16 1.2). */
template <int HD>
BR_DEV float
add_at_once(const struct worker *w, u32 n_heads, const u32x4 v[4], u32 p_low,
            u32 p_high)
{
    struct att<HD> *m = (struct att<HD> *)S->x;
    const u32 i = w->t >> 5, lane = w->t & 31, g = lane >> 2, c = lane & 3;
    const u32 at = smem_of(m->acc[i][g & (HEADS - 1)] + 16 * c);
    const float *p = &m->acc[0][w->t / HD][w->t % HD];
    float y[16];

#pragma unroll
    for (u32 k = 0; k < HD / 32; k++) {
        u32x4 lo, hi;
        sums(v, k, p_low, p_high, &lo, &hi);
        if (g >= n_heads)
            continue;
        sts128(at + k * 16, lo);
        sts128(at + k * 16 + 32, hi);
    }
    bar(1, BR_MK_THREADS);
    if (w->t >= HEADS * HD)
        return 0.0f;
#pragma unroll
    for (u32 k = 0; k < 16; k++)
        y[k] = p[k * HEADS * HD];
#pragma unroll
    for (u32 k = 0; k < 8; k++)
        y[k] = add_rn(y[k], y[k + 8]);
    return tree8(y);
}

/* The same in two halves. */
template <int HD, class F>
BR_DEV float
add_warps(const struct worker *w, const typename att<HD>::one *is, u32 copy, u32 values,
          u32x4 v[4], u32 p_low, u32 p_high)
{
    struct att<HD> *m = (struct att<HD> *)S->x;
    const u32 i = w->t >> 5, lane = w->t & 31, g = lane >> 2, c = lane & 3;

    const u32 at = smem_of(m->acc[i & 7][g & (HEADS - 1)] + 16 * c);

#pragma unroll 1
    for (u32 upper = 2; upper-- > 0;) {
        if (i >> 3 == upper)
#pragma unroll
            for (u32 k = 0; k < HD / 32; k++) {
                const u32 to = at + (k / 2 * 64 + k % 2 * 4) * 4;
                u32x4 lo, hi;
                if (k == 2) /* the first ones are there */
                    take_values<HD>(w, is, values, 1, v);
                sums(v, k % 2, p_low, p_high, &lo, &hi);
                if (g >= is->is.n_heads)
                    continue;
                if (!upper) {
                    lo = add4(lo, lds128(to));
                    hi = add4(hi, lds128(to + 32));
                }
                sts128(to, lo);
                sts128(to + 32, hi);
            }
        if (i >> 3 == upper)
            release<HD, F>(w, copy);
        bar(1, BR_MK_THREADS);
    }
    if (w->t >= HEADS * HD)
        return 0.0f;
    const float *p = &m->acc[0][w->t / HD][w->t % HD];
    float y[8];
#pragma unroll
    for (u32 k = 0; k < 8; k++)
        y[k] = p[k * HEADS * HD];
    return tree8(y);
}

/* Thread t < HEADS * HD: returns its column's sum, *max and *sum of its head. */
template <int HD, class F>
BR_DEV float
attend(const struct worker *w, u32 k, float *max, float *sum)
{
    typename att<HD>::one *m = space_of<HD>(k);
    const u32 i = w->t >> 5, lane = w->t & 31, g = lane >> 2;
    const u32 head = g & (HEADS - 1), at = m->is.at;
    const u32 keys = page_at<HD, F>(at, i);
    const u32 values = keys + pages_in<HD, F>::BYTES / 2;
    u32x4 v[4];
    float s[4], big;

    await_page<HD, F>(at, i);
    scores<HD>(w, m, keys, s);
    take_values<HD>(w, m, values, 0, v);
    big = max_f32(max_f32(s[0], s[1]), max_f32(s[2], s[3]));
    big = max_f32(big, shfl_xor_f(big, 1));
    big = max_f32(big, shfl_xor_f(big, 2));
    if ((lane & 3) == 0 && g < HEADS)
        m->max[g][i] = big;
    bar(1, BR_MK_THREADS);
    big = max16(m->max[head]);
    const u32 n_heads = m->is.n_heads;
#pragma unroll
    for (u32 j = 0; j < 4; j++)
        s[j] = g < n_heads ? ex2(mul_rn(s[j] - big, LOG2E)) : 0.0f;
    float l = add_rn(add_rn(s[0], s[1]), add_rn(s[2], s[3]));
    l = add_rn(l, shfl_xor_f(l, 1));
    l = add_rn(l, shfl_xor_f(l, 2));
    if ((lane & 3) == 0 && g < HEADS)
        m->sum[g][i] = l;
    const u32 low = pack_bf16(s[0], s[1]), high = pack_bf16(s[2], s[3]);
    float y;
    if constexpr (att<HD>::ACCS == BR_MK_WARPS)
        y = add_at_once<HD>(w, n_heads, v, low, high);
    else
        y = add_warps<HD, F>(w, m, at, values, v, low, high);
    *max = max16(m->max[w->t / HD % HEADS]);
    *sum = sum16(m->sum[w->t / HD % HEADS]);
    return y;
}

/* ---- more than one block --------------------------------------------------------- */

BR_DEV u64 *
parts_of(const struct worker *w, u32 layer, u32 head, u32 hd)
{
    return words(w, layer, args.map.part) +
           (u64)head * args.head_parts;
}

/* Of n blocks of a head, parts at p: columns col .., maximum and sum, by all threads;
 * each asks for two pairs of words at once, and again for what was not there. */
template <int HD>
BR_DEV void
take_parts(const struct worker *w, const u64 *p, u32 col, u32 n)
{
    using space = fold_space<HD>;
    float *to = ((space *)S->part)->part[0];
    const u32 epoch = epoch_now();

#pragma unroll 1
    for (u32 k0 = w->t; k0 < n * space::PAIRS; k0 += 2 * BR_MK_THREADS) {
        const u64 *from[2];
        u32 todo = 0;
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            const u32 k = k0 + i * BR_MK_THREADS, j = k % space::PAIRS;
            from[i] = p + k / space::PAIRS * (HD + 2) +
                      (j < space::COLS / 2 ? col + 2 * j : HD);
            todo |= (k < n * space::PAIRS) << i;
        }
#pragma unroll 1
        for (u32 s = 0; todo; s++) {
            u64x2 r[2];
#pragma unroll
            for (u32 i = 0; i < 2; i++)
                if (todo >> i & 1)
                    r[i] = ld_relaxed64x2(from[i]);
#pragma unroll
            for (u32 i = 0; i < 2; i++)
                if ((todo >> i & 1) && (u32)(r[i].x >> 32) == epoch &&
                    (u32)(r[i].y >> 32) == epoch) {
                    const u32 at = 2 * (k0 + i * BR_MK_THREADS);
                    to[at] = as_f32((u32)r[i].x);
                    to[at + 1] = as_f32((u32)r[i].y);
                    todo &= ~(1u << i);
                }
            if (s > SPIN_LIMIT)
                give_up();
        }
    }
}

/* What all blocks before, whose maximum is *big, and block b count for: a lane a block.
 * Leaves the maximum of all n. */
template <int HD>
BR_DEV void
make_factors(u32 lane, u32 n, float *big)
{
    struct fold_space<HD> *f = (struct fold_space<HD> *)S->part;

#pragma unroll 1
    for (u32 b0 = 0; b0 < n; b0 += 32) {
        const u32 b = b0 + lane;
        const float own = b < n ? f->part[b][fold_space<HD>::COLS] : as_f32(0xff800000u);
        float all = max_f32(own, *big); /* of this one and those before */
#pragma unroll
        for (u32 m = 1; m < 32; m <<= 1) {
            const float other = as_f32(shfl_from(as_u32(all), lane - m));
            all = lane >= m ? max_f32(all, other) : all;
        }
        float before = as_f32(shfl_from(as_u32(all), lane - 1));
        before = lane ? before : *big;
        *big = as_f32(shfl_from(as_u32(all), 31));
        if (b < n) {
            f->factor[b][0] = ex2(mul_rn(before - all, LOG2E));
            f->factor[b][1] = ex2(mul_rn(own - all, LOG2E));
        }
    }
    warp_sync();
}

/* Folds the blocks of a quarter of a head in ascending order: a thread of the first
 * warp returns column t % (HD / 4). */
template <int HD>
BR_DEV float
fold(const struct worker *w, u32 layer, u32 i, u32 n_blk)
{
    using space = fold_space<HD>;
    const space *f = (const space *)S->part;
    const u64 *p = parts_of(w, layer, i / 4, HD);
    const u32 col = w->t % space::COLS;
    float acc = 0.0f, l = 0.0f, big = as_f32(0xff800000u);

#pragma unroll 1
    for (u32 b0 = 0; b0 < n_blk; b0 += FOLD) {
        const u32 n = n_blk - b0 < FOLD ? n_blk - b0 : FOLD;
        if (b0)
            bar(1, BR_MK_THREADS); /* nobody reads what was here */
        take_parts<HD>(w, p + (u64)b0 * (HD + 2), (i & 3) * space::COLS, n);
        bar(1, BR_MK_THREADS);
        if (w->t >= 32)
            continue;
        make_factors<HD>(w->t, n, &big);
#pragma unroll 1
        for (u32 b = 0; b < n; b += 8) {
#pragma unroll
            for (u32 k = 0; k < 8; k++) {
                const u32x2 by = lds64(smem_of(f->factor[b + k]));
                const float x = f->part[b + k][col];
                const float s = f->part[b + k][space::COLS + 1];
                if (b + k < n) {
                    acc = fma_rn(acc, as_f32(by.x), mul_rn(x, as_f32(by.y)));
                    l = fma_rn(l, as_f32(by.x), mul_rn(s, as_f32(by.y)));
                }
            }
        }
    }
    return mul_rn(acc, rcp(l));
}

/* Thread t < n columns has column t of those from `first` on: words go out. */
template <class F>
BR_DEV void
give_heads(const struct worker *w, u32 layer, u32 first, u32 n, float y)
{
    const u32 t = w->t;
    u32x4 *to = made_at<F>(w, layer, false);
    const u32 all = args.n_heads * args.head_dim;

    if constexpr (F::EIGHTS) {
        y = F::lift(y);
        give_eight(eight_at(to, (first + t) / 8, all),
                   pack_bf16(y, shfl_xor_f(y, 1)), t < n && (t & 7) == 0);
    } else
        F::give_tile(to + (first + t) / 16, all / 16, t & 15, y, 0.0f,
                     epoch_now(), t < n);
}

/* What is there of a task: the heads, or their parts. */
template <int HD, class F>
BR_DEV void
publish(const struct worker *w, const struct task *a, u32 layer, float y, float max,
        float sum)
{
    if (pos_now() < BR_MK_KV_BLOCK) {
        give_heads<F>(w, layer, a->head * HD, a->n_heads * HD, mul_rn(y, rcp(sum)));
        give_hint(w, layer, BR_MK_HINT_ATTN, a->n_heads);
    } else if (w->t < a->n_heads * HD) {
        u64 *p = parts_of(w, layer, a->head + w->t / HD, HD) + (u64)a->blk * (HD + 2);
        give(w, p + w->t % HD, as_u32(y));
        if (w->t % HD < 2)
            give(w, p + HD + w->t % HD, as_u32(w->t % HD ? sum : max));
    }
}

/* Queries of the tasks i and i + n_workers, half of the warps each; what the tasks are
 * stays for after the barrier. Nothing else comes before the first look at the words. */
template <int HD>
BR_DEV void
take_tasks(const struct worker *w, u32 layer, u32 i, u32 all, u32 at, u32 copies)
{
    const u32 g = w->t / (BR_MK_THREADS / TASKS);
    typename att<HD>::one *m = space_of<HD>(g);
    const struct task a = task_of(i + g * args.n_workers, all, at + g * copies);

    if (w->t % (BR_MK_THREADS / TASKS) == BR_MK_THREADS / TASKS - 1)
        m->is = a; /* a warp that brings nothing or little */
    if (a.on)
        take_qkv<HD>(w, m, &a, layer);
}

/* This worker's tasks from i on, whose pages begin with copy `at`; returns the first
 * one that is none. */
template <int HD, class F>
BR_DEV u32
do_tasks(const struct worker *w, u32 layer, u32 i, u32 all, u32 at)
{
#pragma unroll 1
    for (; i < all; i += args.n_workers) {
        struct worker it = *w;
#ifndef __NVCC__
        HERE(it.t);
#endif
        take_tasks<HD>(&it, layer, i, all, at, pages_in<HD, F>::TASK);
        bar(1, BR_MK_THREADS);
        STAMP(1);
#pragma unroll 1
        for (u32 k = 0;; i += args.n_workers, k++) {
            struct worker me = *w;
#ifndef __NVCC__
            HERE(me.t); /* else clang keeps what hangs on it: 24 to 92 bytes spilled */
#endif
            const typename att<HD>::one *m = space_of<HD>(k);
            const struct task *a = &m->is;
            float max, sum, y = attend<HD, F>(&me, k, &max, &sum);
            STAMP(2);
            publish<HD, F>(&me, a, layer, y, max, sum);
            if (HD == 64)
                release<HD, F>(&me, a->at);
            if (has_now(a) && a->head == a->kvh * (args.n_heads / args.n_kv))
                append<HD>(&me, m, layer);
            if (k == TASKS - 1 || !space_of<HD>(k + 1)->is.on)
                break;
        }
        at += TASKS * pages_in<HD, F>::TASK;
        if (i + args.n_workers < all)
            bar(1, BR_MK_THREADS); /* nobody reads what was here */
    }
    return i;
}

/* With more than one block the folds of the heads are the tasks after those. */
template <int HD, class F>
BR_DEV void
phase_attn(const struct worker *w, u32 layer, u32 i)
{
    const u32 all = all_tasks(pos_now()), n_blk = pos_now() / BR_MK_KV_BLOCK + 1;

    if (i < all)
        i = do_tasks<HD, F>(w, layer, i, all, w->count);
    else
        bar(1, BR_MK_THREADS); /* S->part is free */
    if (n_blk == 1)
        return;
#pragma unroll 1
    for (i -= all; i < args.n_heads * 4; i += args.n_workers) {
        const float y = fold<HD>(w, layer, i, n_blk);
        if (w->t < 32)
            give_heads<F>(w, layer, i * (HD / 4), HD / 4, y);
        if (!(i & 3)) /* a count a head */
            give_hint(w, layer, BR_MK_HINT_ATTN, 1);
        if (i + args.n_workers < args.n_heads * 4)
            bar(1, BR_MK_THREADS);
    }
}
