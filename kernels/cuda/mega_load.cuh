/* mega_load.cuh - the decode kernel's slots, as its loaders see them, and the end of
 * a launch at a layer's border.
 * SPDX-License-Identifier: Apache-2.0 */

/* ---- cancelled at a layer's border ----------------------------------------- */

/* The first worker's loader asks for the host's flag in OUT and says a ring of slots
 * later whether all are to end before the next layer; who is in DOWN asks for that
 * together with QKV's instruction. So all end at the same
 * border, and what the layer left in memory is where the next launch goes on.
 * Consumers that asked themselves, in a thread of their own, cost 0.8 % (1B
 * BF16; Q4_K 1.2). */

/* In a counter's line; steps take turns, as that loader may be one ahead. */
BR_DEV u64 *
go_of(u32 layer, u32 epoch)
{
    return (u64 *)(hint_of(layer, BR_MK_HINT_H) + 4 + (epoch & 1) * 4);
}
BR_DEV void
tell_go(u32 layer, u32 epoch)
{
    copies_wait();
    st_relaxed64(go_of(layer, epoch),
                 (u64)epoch << 32 | (lds128(smem_of(&S->asked)).y != 0));
}
/* Before QKV of a layer whose DOWN before it asked. */
BR_DEV bool
ends_here(const struct worker *w, u32 layer)
{
    const u32x4 go = lds128(smem_of(&S->go));

    return (go.y == epoch_now() ? go.x : take(w, go_of(layer, epoch_now()))) != 0;
}
/* For loaders. */
BR_DEV bool
is_cut(void)
{
    return mbar_test(smem_of(&S->end), 0);
}

/* ---- slots, for the loaders ------------------------------------------------ */

/* As mbar_wait, for what consumers have to do first; false: they have ended. */
BR_DEV bool
mbar_wait_or_cut(u32 bar_addr, u32 parity)
{
#pragma unroll 1
    for (u32 s = 0; !mbar_try(bar_addr, parity); s++) {
        if (s % 8 == 7 && is_cut())
            return false;
        if (s > SPIN_LIMIT)
            give_up();
    }
    return true;
}

/* Until the slot of copy n is free and few copies are under way; false: the
 * launch ends here. Of this loader, all before *seen have arrived: when fewer may be
 * under way than before, none between is left out, for consumers rely on it (a
 * format's slots, mega_product.cuh). */
template <class F>
BR_DEV bool
free_slot(u32 n, u32 *seen)
{
    const u32 full = smem_of(S->full), empty = smem_of(S->empty);
    const u32 slot = n % F::SLOTS, back = n - args.few;

    if (n >= F::SLOTS &&
        !mbar_wait_or_cut(empty + slot * 8, (n / F::SLOTS - 1) & 1))
        return false;
    const u32 depth = n >= F::SLOTS && mbar_test(empty + back % F::SLOTS * 8,
                                                 (back / F::SLOTS) & 1)
                          ? args.deep
                          : args.depth;
    /* of this loader: the other one's barriers may be a round further */
    const u32 late = n - (depth + F::LOADERS - 1) / F::LOADERS * F::LOADERS;
#pragma unroll 1
    for (; (i32)(late - *seen) >= 0; *seen += F::LOADERS)
        mbar_wait(full + *seen % F::SLOTS * 8, (*seen / F::SLOTS) & 1);
    return true;
}

/* Loader j's copies before n that may be under way: they are to be there before
 * the block's memory goes. */
template <class F>
BR_DEV void
end_copies(u32 j, u32 n)
{
    const u32 full = smem_of(S->full);
    u32 i = n < F::SLOTS ? 0 : n - F::SLOTS;

#pragma unroll 1
    for (i += (j - i) % F::LOADERS; i < n; i += F::LOADERS)
        mbar_wait(full + i % F::SLOTS * 8, (i / F::SLOTS) & 1);
}

/* Rows written two steps ago and before are there for copies of step s; the
 * one of the step before it is read otherwise (mega_attn.cuh). Steps take
 * turns at two barriers: the same one's next round ends with step s itself. */
BR_DEV bool
await_rows(u32 s)
{
    if (s >= 2 && !mbar_wait_or_cut(smem_of(&S->done[s & 1]), (s / 2 - 1) & 1))
        return false;
    fence_copies();
    return true;
}

/* Until it is known where step s is; false: the launch ends before it. A step that
 * does not follow the one before it may read what that one appends. */
BR_DEV bool
await_place(u32 s)
{
    if (!mbar_wait_or_cut(smem_of(&S->known[s & 1]), (s / 2) & 1))
        return false;
    if (!(lds32(smem_of(&S->place[s & 1])) & BR_MK_ELSEWHERE))
        return true;
    if (!mbar_wait_or_cut(smem_of(&S->done[(s - 1) & 1]), ((s - 1) / 2) & 1))
        return false;
    fence_copies();
    return true;
}
