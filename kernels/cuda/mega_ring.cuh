/* mega_ring.cuh - which step comes next: what the host says while the decode kernel
 * stays.
 *
 *   host's ring    epoch e: a token (or: the most likely one), a place
 *      -> first worker, in HEAD of step e - 2 and e - 1 (over the bus: 1.3 us)
 *      -> a word of all, with the best logits of TOKEN -> position, table, end
 *
 * A place is told a step ahead where the host has said it by then, so loaders copy
 * the next step's keys and values before this one ends. Where nothing is said the
 * token goes out first and the first worker looks at the ring until something is,
 * the others at its word: the next weights are in the slots by then. After l.patience
 * looks the launch ends by itself.
 *
 * Without a ring (a launch of n steps) each step follows the one before it.
 * SPDX-License-Identifier: Apache-2.0 */

/* For thread 0 of the first worker. */
BR_DEV void
ask_ring(const struct worker *w, u32 ring)
{
    if (w->t || w->sm || !ring)
        return;
#pragma unroll
    for (u32 i = 0; i < 2; i++)
        copy16(smem_of(&S->told[i]),
               args.host->ring[(epoch_now() + 1 + i) % BR_MK_RING_STEPS]);
}

/* An entry of the ring, (token, epoch, place, epoch): its place, if it is there. */
BR_DEV u32
said(u32x4 e, u32 epoch)
{
    return e.y == epoch && e.w == epoch ? e.z : BR_MK_UNKNOWN;
}

/* An end is not told early: who reads ahead goes on until it comes. */
BR_DEV u32x4
next_from(const struct worker *w, u32x4 one, u32x4 two)
{
    const u32 place = said(two, epoch_now() + 2);

    return u32x4{one.x, said(one, epoch_now() + 1),
                 place == BR_MK_END ? BR_MK_UNKNOWN : place, epoch_now()};
}

BR_DEV u32x4
next_of(const struct worker *w, u32 ring)
{
    const u32 here = BR_MK_PLACE(pos_now(), S->block);

    if (!ring)
        return u32x4{BR_MK_BEST, here + 1, here + 2, epoch_now()};
    return next_from(w, lds128(smem_of(&S->told[0])),
                     lds128(smem_of(&S->told[1])));
}

BR_DEV u32x4 *
next_word(void)
{
    return (u32x4 *)(args.words + args.map.next);
}

/* The loaders may read the pages of that step. */
BR_DEV void
place_step(u32 step, u32 place, u32 before)
{
    S->place[step & 1] = place | (place == before + 1 ? 0 : BR_MK_ELSEWHERE);
    mbar_arrive(smem_of(&S->known[step & 1]), 1);
}

/* Of a launch; thread 0. */
BR_DEV void
begin_places(u32 ring)
{
    const u32 here = BR_MK_PLACE(S->pos, S->block);

    place_step(0, here, here - 1);
    S->early = ring ? BR_MK_UNKNOWN : here + 1;
    if (!ring)
        place_step(1, here + 1, here);
}

/* Where a launch that is told begins; thread 0, while loaders copy the first
 * weights. The first worker reads it over the bus and says it: reads of one line
 * by all come one after another, 134 us. */
static __device__ __attribute__((noinline)) void
take_begin(u32 sm)
{
    const u32 epoch = S->epoch0;
    u32x4 *word = (u32x4 *)(args.words + args.map.begin);
    const void *p = sm ? (void *)word
                       : args.host->begin[epoch % BR_MK_RING_STEPS];
    u32x4 v = ld_system128(p);

#pragma unroll 1
    for (u32 n = 0; said(v, epoch) == BR_MK_UNKNOWN; n++) {
        if (n > SPIN_LIMIT)
            give_up();
        v = ld_system128(p);
    }
    if (!sm)
        st_word(word, v);
    S->token = v.x;
    S->pos = BR_MK_POS(v.z);
    S->block = BR_MK_BLOCK_OF(v.z);
    begin_places(0);
}

/* The place where all are after this step, S->next, as soon as it is there: one
 * thread, while the others wait for the best token. */
BR_DEV void
begin_next(u32x4 n, u32 step)
{
    const u32 here = BR_MK_PLACE(S->pos, S->block);

    S->next = n;
    if (n.y == BR_MK_END) { /* what is under way is not wanted any more */
        S->pos++;
        S->n_steps = step + 1;
        mbar_arrive(smem_of(&S->end), 1);
        return;
    }
    S->pos = BR_MK_POS(n.y);
    S->block = BR_MK_BLOCK_OF(n.y);
    if (S->early == BR_MK_UNKNOWN)
        place_step(step + 1, n.y, here);
    if (n.z != BR_MK_UNKNOWN)
        place_step(step + 2, n.z, n.y);
    S->early = n.z;
    if (step + 1 < S->n_steps) /* else there may be no such position */
        take_place(S->pos, S->block);
}

BR_DEV u32x4
await_next(const struct worker *w)
{
#pragma unroll 1
    for (u32 n = 0; n < SPIN_LIMIT; n++) {
        const u32x4 v = ld_word(next_word());
        if (v.w == epoch_now())
            return v;
    }
    give_up();
    return u32x4{0, 0, 0, 0};
}

/* The first worker says it where it knows; else await_ring does, once the token is
 * out. */
BR_DEV void
take_next(const struct worker *w, u32 ring, u32 step)
{
    const u32x4 n = w->sm ? await_next(w) : next_of(w, ring);

    if (n.y == BR_MK_UNKNOWN) {
        S->next = n;
        return;
    }
    if (!w->sm)
        st_word(next_word(), n);
    begin_next(n, step);
}

BR_DEV u32x4
look_at_ring(u32 epoch)
{
    return ld_system128(args.host->ring[epoch % BR_MK_RING_STEPS]);
}
BR_DEV void
await_ring(const struct worker *w, u32 patience, u32 step)
{
    u32x4 n = {0, BR_MK_UNKNOWN, BR_MK_UNKNOWN, 0};

#pragma unroll 1
    for (u32 s = 0; n.y == BR_MK_UNKNOWN && s < patience; s++) {
        const u32x4 one = look_at_ring(epoch_now() + 1);
        n = next_from(w, one, look_at_ring(epoch_now() + 2));
    }
    if (n.y == BR_MK_UNKNOWN)
        n = u32x4{BR_MK_BEST, BR_MK_END, BR_MK_UNKNOWN, epoch_now()};
    st_word(next_word(), n);
    begin_next(n, step);
}
