/* sched_admit.c - who gets a slot, and who loses one.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/sched_int.h"

#include <string.h>

static const uint32_t weight_q8[BR_QOS_COUNT] = {
#define X(name, text, weight_q8, ttft_ms, jitter_ms) weight_q8,
#include "run/qos.def"
#undef X
};

/* ---- what tenants have had ----------------------------------------------- */

void
br_sched_roll(const br_sched *s, tenant *t)
{
    int64_t bucket = s->now / (BR_SCHED_BUCKET_MS * INT64_C(1000000));
    int64_t steps = BR_MIN(bucket - t->bucket, (int64_t)BR_SCHED_BUCKETS);

    for (int64_t i = 1; i <= steps; i++) {
        size_t b = (size_t)((t->bucket + i) % BR_SCHED_BUCKETS);

        t->decode_sum -= t->decode[b];
        t->prefill_sum -= t->prefill[b];
        t->decode[b] = t->prefill[b] = 0;
    }
    t->bucket = bucket;
}

void
br_sched_account(tenant *t, uint32_t decode, uint32_t prefill)
{
    size_t b = (size_t)(t->bucket % BR_SCHED_BUCKETS);

    t->decode[b] += decode;
    t->prefill[b] += prefill;
    t->decode_sum += decode;
    t->prefill_sum += prefill;
    t->service += ((uint64_t)decode + prefill) * 65536 / weight_q8[t->q.qos];
}

static uint64_t
part(uint64_t of, uint64_t quota)
{
    return (of << 20) / quota;
}

/* The dominant share over the class's weight. */
static uint64_t
share(const tenant *t)
{
    uint64_t a = part(t->n_running, t->q.max_slots);
    uint64_t b = part(t->used, t->q.max_kv_pages);
    uint64_t c = part(t->decode_sum, (uint64_t)t->q.decode_tokens_per_s * 5);

    return BR_MAX(BR_MAX(a, b), c) * 256 / weight_q8[t->q.qos];
}

static bool
may_start(const tenant *t)
{
    return t->n_queued && t->n_running < t->q.max_slots &&
           t->decode_sum < (uint64_t)t->q.decode_tokens_per_s * 5;
}

/* vtime never goes back: the least service of those that run, as long as it
 * grows. A tenant that runs and is behind holds it still until it has caught
 * up; one that waits sees it leave. */
void
br_sched_find_owed(br_sched *s)
{
    const uint64_t lag = BR_SCHED_LAG * UINT64_C(256);
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < s->n_active; i++) {
        tenant *t = &s->t[s->active[i]];

        br_sched_roll(s, t);
        t->blocked = false;
        if (t->n_running)
            least = BR_MIN(least, t->service);
    }
    if (least != UINT64_MAX)
        s->vtime = BR_MAX(s->vtime, least);
    for (uint32_t i = 0; i < s->n_active; i++) {
        tenant *t = &s->t[s->active[i]];

        if (t->service >= s->vtime)
            t->owed = false;
        else if (may_start(t) && s->vtime - t->service > lag)
            t->owed = true;
        /* A debt is not remembered for ever. */
        if (s->vtime > 4 * lag)
            t->service = BR_MAX(t->service, s->vtime - 4 * lag);
    }
}

/* ---- who loses a slot ---------------------------------------------------- */

/* Whether a is a better victim than b. */
static bool
worse(const br_sched *s, const req *a, const req *b)
{
    const tenant *ta = &s->t[a->tenant], *tb = &s->t[b->tenant];
    uint64_t sa, sb;

    if (ta->q.qos != tb->q.qos)
        return ta->q.qos > tb->q.qos;
    sa = share(ta);
    sb = share(tb);
    return sa != sb ? sa > sb : a->order > b->order;
}

/* Of classes worse than `than`; tenant: of it alone, or NONE. */
static uint32_t
find_victim(const br_sched *s, int than, uint32_t tenant_only)
{
    uint32_t best = NONE;

    for (uint32_t i = 0; i < s->c.n_slots; i++) {
        const req *r = s->slot[i] == NONE ? NULL : &s->r[s->slot[i]];
        const tenant *t = r ? &s->t[r->tenant] : NULL;

        if (!r || (int)t->q.qos <= than)
            continue;
        if (tenant_only != NONE ? r->tenant != tenant_only : t->owed)
            continue;
        if (best == NONE || worse(s, r, &s->r[best]))
            best = s->slot[i];
    }
    if (s->c.watch.chosen)
        s->c.watch.chosen(s->c.watch.ctx, BR_CHOICE_VICTIM, best, than,
                          tenant_only);
    return best;
}

uint32_t
br_sched_worst(const br_sched *s)
{
    return find_victim(s, BR_QOS_INTERACTIVE, NONE);
}

static uint64_t
could_free(const br_sched *s, int than)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < s->c.n_slots; i++) {
        const req *r = s->slot[i] == NONE ? NULL : &s->r[s->slot[i]];

        if (r && (int)s->t[r->tenant].q.qos > than && !s->t[r->tenant].owed)
            n += br_sched_frees(s, r);
    }
    return n;
}

/* A page for the next token of everybody who decodes. */
static bool
feed_decoder(br_sched *s, uint32_t h)
{
    req *r = &s->r[h];
    bool own;

    while (r->state == REQ_RUNNING &&
           blocks_of(r->n_tokens) > r->shared + r->charged) {
        uint32_t victim;

        if (br_sched_charge(s, r->tenant, 1, &own)) {
            br_sched_recharge(s, r, r->charged + 1);
            continue;
        }
        victim = find_victim(s, BR_QOS_INTERACTIVE, own ? r->tenant : NONE);
        br_sched_preempt(s, victim == NONE ? h : victim, false);
    }
    return r->state == REQ_RUNNING;
}

void
br_sched_feed_decoders(br_sched *s)
{
    for (uint32_t i = 0; i < s->c.n_slots; i++)
        if (s->slot[i] != NONE)
            (void)feed_decoder(s, s->slot[i]);
}

/* ---- who gets one -------------------------------------------------------- */

static bool
before(const br_sched *s, const tenant *a, const tenant *b)
{
    uint64_t sa, sb;

    if (a->owed != b->owed)
        return a->owed;
    if (a->q.qos != b->q.qos)
        return a->q.qos < b->q.qos;
    sa = share(a);
    sb = share(b);
    return sa != sb ? sa < sb : s->r[a->head].order < s->r[b->head].order;
}

static tenant *
candidate(br_sched *s)
{
    tenant *best = NULL;

    for (uint32_t i = 0; i < s->n_active; i++) {
        tenant *t = &s->t[s->active[i]];

        if (!t->blocked && may_start(t) && (!best || before(s, t, best)))
            best = t;
    }
    if (s->c.watch.chosen)
        s->c.watch.chosen(s->c.watch.ctx, BR_CHOICE_START,
                          best ? best->head : NONE, 0, NONE);
    return best;
}

/* Pages for all it has, and one token more; all it could need, if promised. */
static uint32_t
wants_blocks(const br_sched *s, const req *r)
{
    if (s->t[r->tenant].q.qos == BR_QOS_INTERACTIVE)
        return blocks_of(r->n_max);
    return blocks_of(BR_MIN(r->n_tokens + 1, r->n_max));
}

static bool
find_pages(br_sched *s, const req *r, uint32_t n)
{
    const tenant *t = &s->t[r->tenant];
    bool own;

    if (br_sched_charge(s, r->tenant, n, &own))
        return true;
    if (own || could_free(s, t->q.qos) == 0)
        return false;
    /* Enough in sight? Evicting has been tried. */
    if (s->n_pages - br_prefix_count(s->prefix) +
            br_prefix_evictable(s->prefix) + could_free(s, t->q.qos) <
        s->claimed + n)
        return false;
    do {
        uint32_t victim = find_victim(s, t->q.qos, NONE);

        if (victim == NONE)
            return false;
        br_sched_preempt(s, victim, false);
    } while (!br_sched_charge(s, r->tenant, n, &own));
    return true;
}

static uint32_t
free_slot(br_sched *s)
{
    for (uint32_t i = 0; i < s->c.n_slots; i++)
        if (s->slot[i] == NONE)
            return i;
    return NONE;
}

static void
bind(br_sched *s, uint32_t h, uint32_t block, uint32_t charged)
{
    req *r = &s->r[h];
    uint32_t slot = free_slot(s), depth = br_prefix_depth(s->prefix, block);

    br_sched_dequeue(s, h);
    br_check(slot != NONE);
    s->slot[slot] = h;
    s->n_free_slots--;
    s->t[r->tenant].n_running++;
    r->state = REQ_RUNNING;
    r->slot = slot;
    r->leaf = block; /* find_pages stands on it already */
    r->shared = depth;
    r->n_fed = depth * BR_PAGE_TOKENS;
    br_sched_recharge(s, r, charged);
    r->boundary = (r->n_tokens - 1) / BR_PAGE_TOKENS * BR_PAGE_TOKENS;
    if (r->boundary <= r->n_fed)
        r->boundary = 0;
    if (depth) {
        br_prefix_attach(s->prefix, block, slot);
        br_prefix_leave(s->prefix, block); /* attach stands as well */
    }
    if (!r->looked) {
        r->looked = true;
        r->n_cached = r->n_fed;
        s->hit_tokens += r->n_fed;
        s->looked_tokens += r->n_tokens;
    }
    s->begin[s->plan.n_begin++] =
        (br_sched_op){h, slot, br_prefix_state(s->prefix, block)};
    s->admitted[s->plan.n_admitted++] = h;
}

/* False: nobody behind this tenant may start. */
static bool
try_admit(br_sched *s, tenant *t)
{
    uint32_t h = t->head, block, n;
    req *r = &s->r[h];

    if (s->n_free_slots == 0 && find_victim(s, t->q.qos, NONE) == NONE) {
        t->blocked = true;
        return true;
    }
    block = r->whole ? NONE
                     : br_prefix_find(s->prefix, br_sched_scope(s, r->tenant),
                                      r->tokens, r->n_tokens);
    br_prefix_stand(s->prefix, block);
    n = wants_blocks(s, r) - br_prefix_depth(s->prefix, block);
    if (!find_pages(s, r, n)) {
        br_prefix_leave(s->prefix, block);
        t->blocked = true;
        return !t->owed; /* who is owed is not overtaken */
    }
    if (s->n_free_slots == 0)
        br_sched_preempt(s, find_victim(s, t->q.qos, NONE), false);
    bind(s, h, block, n);
    return true;
}

void
br_sched_admit(br_sched *s)
{
    tenant *t;

    while ((t = candidate(s)))
        if (!try_admit(s, t))
            break;
}
