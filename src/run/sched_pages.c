/* sched_pages.c - whose pages are whose.
 *
 *   total  = free + private + prefix                     (what is)
 *   total >= claimed + prefix                            (what may be asked)
 *   claimed = sum over tenants of max(charged, reserved)
 *
 * A page is charged before it is taken, so taking never fails. When a private
 * page becomes the tree's, its tenant is discharged.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/sched_int.h"

uint32_t
br_sched_scope(const br_sched *s, uint32_t id)
{
    uint32_t group = s->t[id].q.isolation_group;

    return group ? BR_MAX_TENANTS + group : id;
}

static uint64_t
claim(const tenant *t, uint32_t used)
{
    return BR_MAX(used, t->q.reserved_kv_pages);
}

uint64_t
br_sched_unclaimed(const br_sched *s)
{
    uint64_t taken = s->claimed + br_prefix_count(s->prefix);

    br_assert(taken <= s->n_pages);
    return s->n_pages - taken;
}

bool
br_sched_charge(br_sched *s, uint32_t id, uint32_t n, bool *own)
{
    tenant *t = &s->t[id];
    uint64_t more = claim(t, t->used + n) - claim(t, t->used);

    *own = (uint64_t)t->used + n > t->q.max_kv_pages;
    if (*own)
        return false;
    while (br_sched_unclaimed(s) < more)
        if (!br_prefix_evict(s->prefix))
            return false;
    s->claimed += more;
    t->used += n;
    t->peak = BR_MAX(t->peak, t->used);
    return true;
}

void
br_sched_discharge(br_sched *s, uint32_t id, uint32_t n)
{
    tenant *t = &s->t[id];

    br_check(t->used >= n);
    s->claimed -= claim(t, t->used) - claim(t, t->used - n);
    t->used -= n;
}

uint32_t
br_sched_frees(const br_sched *s, const req *r)
{
    const tenant *t = &s->t[r->tenant];

    return (uint32_t)(claim(t, t->used) - claim(t, t->used - r->charged));
}

void
br_sched_recharge(br_sched *s, req *r, uint32_t charged)
{
    r->page_ns += (double)r->charged * (double)(s->now - r->since_ns);
    r->since_ns = s->now;
    r->charged = charged;
}

void
br_sched_donate(br_sched *s, req *r, uint32_t n)
{
    tenant *t = &s->t[r->tenant];
    uint32_t scope = br_sched_scope(s, r->tenant);
    uint32_t depth = br_prefix_depth(s->prefix, r->leaf);

    for (; (depth + 1) * BR_PAGE_TOKENS <= n; depth++) {
        uint32_t block;
        br_prefix_end end;

        while (br_prefix_count(s->prefix) >= s->prefix_limit)
            if (!br_prefix_evict(s->prefix))
                return;
        /* Within its reservation a tenant that gives a page away keeps its
         * claim to another one. */
        while (t->used <= t->q.reserved_kv_pages && br_sched_unclaimed(s) == 0)
            if (!br_prefix_evict(s->prefix))
                return;
        end = br_prefix_add(s->prefix, scope, r->leaf,
                            r->tokens + (size_t)depth * BR_PAGE_TOKENS, r->slot,
                            &block);
        if (end == BR_PREFIX_FULL)
            return;
        br_prefix_stand(s->prefix, block);
        br_prefix_leave(s->prefix, r->leaf);
        r->leaf = block;
        if (end == BR_PREFIX_EXISTS)
            continue;
        br_sched_discharge(s, r->tenant, 1);
        br_sched_recharge(s, r, r->charged - 1);
        r->shared++;
    }
}

void
br_sched_grow(br_sched *s, req *r, uint32_t n)
{
    br_status st = {0};

    br_check(blocks_of(n) <= r->shared + r->charged && "charged before");
    while (br_kv_grow(s->kv, r->slot, n, &st) != BR_OK) {
        /* Only pages of windowed groups can lack, which prefixes keep. */
        if (!br_prefix_evict(s->prefix) && !br_prefix_strip(s->prefix))
            br_unreachable("windowed groups have pages for all slots");
        st = (br_status){0};
    }
}
