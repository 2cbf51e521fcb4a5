/* stay.cu - a step from the host's memory, and the next one, and the next.
 *
 *   the graph that stays:   br_stay -> while (on) { step, draw, br_stay }
 *
 * A step of few rows takes 20 us of the host's and the bus's time if it is copied,
 * launched, drawn and fetched. Here the host writes 48 bytes a row and a head into
 * memory of its own that the device polls, and reads tokens out of such memory: no
 * call of the driver. Any head but the next one of as many rows ends the loop, and
 * so does patience: a host that sleeps holds no multiprocessor. A head that is there
 * already, of a step ahead, says "what was drawn" in place of tokens.
 *
 * cudaGraphSetConditional is the driver's: it has no text, so this module is PTX
 * alone and links when it is loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#include "device.cuh"
#include "stay_table.h"

#ifndef BR_EMU_H
extern "C" __device__ void cudaGraphSetConditional(u64 handle, u32 value);

BR_DEV u64
now_ns(void)
{
    u64 r;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(r)::"memory");
    return r;
}
#endif

BR_DEV u32x4
look(const struct br_stay_args *a)
{
    return ld_system128(a->host->head);
}

/* What was drawn, each word with its step's number. */
BR_DEV void
tell(const struct br_stay_args *a, u32 t)
{
    const u32 epoch = a->state->epoch;
    const u64 tag = (u64)epoch << 32;

    if (t == 0)
        st_system64(&a->host->ns[epoch & 1],
                    tag | (u32)(now_ns() - a->state->begun));
    for (u32 r = t; r < a->rows; r += BR_STAY_THREADS)
        st_system64(&a->host->out[epoch & 1][r], tag | a->drawn[r]);
}

/* The head of the next step; of no rows where the loop is to end. */
BR_DEV u32x4
await_head(const struct br_stay_args *a)
{
    const u32 epoch = a->state->epoch;
    u32x4 h = look(a);

#pragma unroll 1
    for (u32 s = 0; h.x == epoch && s < a->patience; s++)
        h = look(a);
    return h.x == epoch + 1 && h.y == a->rows ? h : u32x4{0, 0, 0, 0};
}

/* A draw that found no token ends its row: whatever the step ahead makes of it,
 * nobody sees. */
BR_DEV i32
token_of(i32 told, i32 drawn)
{
    if (told != BR_STAY_DRAWN)
        return told;
    return drawn < 0 ? 0 : drawn;
}

/* All of a row is asked for at once: an answer takes 1.3 us. */
BR_DEV void
take_row(const struct br_stay_args *a, u32 r, u32 epoch)
{
    const struct br_stay_row *from = &a->host->row[epoch & 1][r];
    const u32x4 one = ld_system128(from);
    const u32x4 how = ld_system128(&from->how);
    const u32x4 more = ld_system128((const u32x4 *)&from->how + 1);
    const i32 drawn = a->drawn ? (i32)a->drawn[r] : 0;

    a->slot[r] = (i32)one.x;
    a->position[r] = (i32)one.y;
    a->token[r] = token_of((i32)one.z, drawn);
    a->want[r] = (i32)r;
    a->tile[a->rows - 1 - r] = {r, 1, one.y};
    for (u32 g = 0; g < a->n_groups; g++)
        a->at[r * a->n_groups + g] = (one.x * a->n_groups + g) * a->table_n;
    if (a->how) {
        ((u32x4 *)&a->how[r])[0] = how;
        ((u32x4 *)&a->how[r])[1] = more;
    }
}

/* Two entries a thread are all that a step brings, asked for ahead of its row. */
static_assert(BR_STAY_PAGES == 2 * BR_STAY_THREADS, "take");
BR_DEV void
take(const struct br_stay_args *a, u32 t, u32 epoch, u32 n)
{
    u32x4 two = {};

    if (2 * t < n)
        two = ld_system128(&a->host->page[2 * t]);
    for (u32 r = t; r < a->rows; r += BR_STAY_THREADS)
        take_row(a, r, epoch);
    if (2 * t < n)
        a->tables[two.x] = two.y;
    if (2 * t + 1 < n)
        a->tables[two.z] = two.w;
}

extern "C" __global__ void __launch_bounds__(BR_STAY_THREADS, 1)
    br_stay(struct br_stay_args a)
{
    __shared__ u32x4 head;
    const u32 t = tid();

    if (a.loop)
        tell(&a, t);
    if (t == 0) {
        const u32x4 h = a.loop ? await_head(&a) : look(&a);

        fence_system();
        head = h;
        if (a.loop)
            cudaGraphSetConditional(a.loop, h.y != 0);
    }
    bar(1, BR_STAY_THREADS);
    if (head.y == 0)
        return;
    if (t == 0)
        st_system64(&a.host->taken, head.x);
    take(&a, t, head.x, head.z);
    if (t == 0)
        *a.state = br_stay_state{head.x, 0, now_ns()};
}
