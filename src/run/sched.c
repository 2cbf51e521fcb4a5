/* sched.c - requests in and out, and the rows of a step. See sched.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/keep.h"
#include "run/sched_int.h"

#include <string.h>

/* ---- making one ---------------------------------------------------------- */

static bool
get_tables(br_sched *s)
{
    const br_sched_config *c = &s->c;
    br_arena *a = &s->arena;

    s->r = br_arena_new(a, req, c->n_requests);
    s->t = br_arena_new(a, tenant, BR_MAX_TENANTS);
    s->active = br_arena_new(a, uint32_t, BR_MAX_TENANTS);
    s->slot = br_arena_new(a, uint32_t, c->n_slots);
    s->begin = br_arena_new(a, br_sched_op, c->n_slots);
    s->save = br_arena_new(a, br_sched_op, c->n_slots);
    /* A plan can preempt each slot while it feeds decoders, and each again
     * that it has just filled. */
    s->preempted = br_arena_new(a, uint32_t, 2 * (size_t)c->n_slots);
    s->admitted = br_arena_new(a, uint32_t, 2 * (size_t)c->n_slots);
    s->rows = br_arena_new(a, int32_t, 4 * (size_t)c->max_rows);
    s->row_handle = br_arena_new(a, uint32_t, c->max_rows);
    s->want = br_arena_new(a, br_plan_want, c->n_slots);
    s->want_of = br_arena_new(a, uint32_t, c->n_slots);
    return s->r && s->t && s->active && s->slot && s->begin && s->save &&
           s->preempted && s->admitted && s->rows && s->row_handle && s->want &&
           s->want_of;
}

/* Windowed groups must have pages for all slots at once: they are not counted
 * one by one. */
static br_code
check_windows(const br_sched *s, br_status *st)
{
    for (uint32_t g = 0; g < s->c.plan->n_groups; g++) {
        int64_t w = s->c.plan->group[g].window;
        int64_t each = (w + s->c.max_rows) / BR_PAGE_TOKENS + 2;

        each = BR_MIN(each, (int64_t)blocks_of(s->c.n_ctx) + 1);
        if (w && each * s->c.n_slots > s->c.n_pages[g])
            return br_fail(st, BR_E_LIMIT,
                           "window of %lld: %u pages, %u slots need %lld",
                           (long long)w, s->c.n_pages[g], s->c.n_slots,
                           (long long)(each * s->c.n_slots));
    }
    return BR_OK;
}

static br_code
init(br_sched *s, br_status *st)
{
    const br_sched_config *c = &s->c;
    br_kv_config kc = {.n_slots = c->n_slots, .max_tokens = c->n_ctx};
    br_prefix_config pc = {.n_states = c->n_states, .recurrent = s->recurrent};

    for (uint32_t g = 1; g < c->plan->n_groups; g++) {
        const br_kv_group *a = &c->plan->group[s->main];
        const br_kv_group *b = &c->plan->group[g];

        if (a->window && (b->window == 0 || b->window > a->window))
            s->main = g;
    }
    s->n_pages = c->n_pages[s->main];
    if (c->plan->n_groups == 0) /* Mamba: what nobody has is counted alike */
        s->n_pages = c->n_slots * blocks_of(c->n_ctx);
    s->prefix_limit =
        (uint32_t)((uint64_t)s->n_pages * c->prefix_percent / 100);
    s->prefix_limit = BR_MAX(s->prefix_limit, 1u); /* and nobody's promise */
    for (uint32_t g = 0; g < c->plan->n_groups; g++)
        s->windows = s->windows || c->plan->group[g].window;
    if (c->n_slots == 0 || c->max_rows < c->n_slots)
        return br_fail(st, BR_E_LIMIT,
                       "%u slots in steps of %u rows: one each at least",
                       c->n_slots, c->max_rows);
    BR_TRY(check_windows(s, st));
    if (!get_tables(s))
        return br_fail(st, BR_E_OOM, "scheduler: out of memory");
    memset(s->slot, 0xff, c->n_slots * sizeof *s->slot);
    s->n_free_slots = c->n_slots;
    memcpy(kc.n_pages, c->n_pages, sizeof kc.n_pages);
    BR_TRY(br_kv_new(&s->kv, c->plan, &kc, st));
    pc.n_blocks = s->prefix_limit;
    return br_prefix_new(&s->prefix, s->kv, c->plan, &pc, st);
}

br_code
br_sched_new(br_sched **out, const br_sched_config *c, br_status *st)
{
    br_sched *s = br_try_calloc(1, sizeof *s);
    br_code code;

    *out = NULL;
    if (!s)
        return br_fail(st, BR_E_OOM, "scheduler: out of memory");
    br_arena_init(&s->arena, 0);
    s->c = *c;
    s->recurrent = c->plan->slot_elems > 0;
    code = init(s, st);
    if (code != BR_OK)
        br_sched_free(s);
    else
        *out = s;
    return code;
}

void
br_sched_free(br_sched *s)
{
    if (!s)
        return;
    br_prefix_free(s->prefix);
    br_kv_free(s->kv);
    br_arena_fini(&s->arena);
    br_free(s);
}

/* ---- tenants ------------------------------------------------------------- */

static uint64_t
max_claim(const tenant *t, const br_quota *q)
{
    return BR_MAX(t->used, q->reserved_kv_pages);
}

/* Room for a larger reservation, at the cost of prefixes and of requests that
 * run on pages nobody promised them. */
static bool
make_room(br_sched *s, uint64_t more)
{
    while (s->claimed + br_prefix_count(s->prefix) + more > s->n_pages) {
        uint32_t victim;

        if (br_prefix_evict(s->prefix))
            continue;
        victim = br_sched_worst(s);
        if (victim == NONE)
            return false;
        br_sched_preempt(s, victim, false);
    }
    return true;
}

br_code
br_sched_tenant_set(br_sched *s, uint32_t id, const br_quota *q, br_status *st)
{
    tenant *t = &s->t[id];
    uint64_t reserved = s->reserved - t->q.reserved_kv_pages;
    uint64_t was = max_claim(t, &t->q), is = max_claim(t, q);

    if (reserved + q->reserved_kv_pages > s->n_pages - s->prefix_limit)
        return br_fail(st, BR_E_LIMIT,
                       "%u reserved KV pages beside %llu of other tenants; "
                       "there are %u, of which %u are for prefixes",
                       q->reserved_kv_pages, (unsigned long long)reserved,
                       s->n_pages, s->prefix_limit);
    if (is > was && !make_room(s, is - was))
        return br_fail(st, BR_E_LIMIT,
                       "%u reserved KV pages: too many are in use now",
                       q->reserved_kv_pages);
    was = max_claim(t, &t->q); /* make_room may have lowered it */
    is = max_claim(t, q);
    s->claimed = s->claimed - was + is;
    s->reserved = reserved + q->reserved_kv_pages;
    if (!t->known)
        t->head = t->tail = NONE;
    t->known = true;
    s->n_known = BR_MAX(s->n_known, id + 1);
    t->q = *q;
    return BR_OK;
}

void
br_sched_tenant_drop(br_sched *s, uint32_t id)
{
    tenant *t = &s->t[id];

    br_check(t->n_queued + t->n_running + t->n_parked == 0);
    br_check(t->used == 0);
    if (t->q.isolation_group == 0)
        br_prefix_drop_scope(s->prefix, id);
    s->claimed -= t->q.reserved_kv_pages;
    s->reserved -= t->q.reserved_kv_pages;
    *t = (tenant){0};
}

uint32_t
br_sched_most_tokens(const br_sched *s, uint32_t id)
{
    const tenant *t = &s->t[id];
    uint64_t pages = s->n_pages - (s->reserved - t->q.reserved_kv_pages);

    pages = BR_MIN(pages, t->q.max_kv_pages);
    return (uint32_t)BR_MIN(pages * BR_PAGE_TOKENS, (uint64_t)s->c.n_ctx);
}

static void
activate(br_sched *s, uint32_t id)
{
    tenant *t = &s->t[id];

    if (t->n_queued + t->n_running > 0)
        return;
    /* Idling earns no credit, and what was long ago is no debt. */
    t->service = BR_MAX(t->service, s->vtime);
    t->service = BR_MIN(t->service, s->vtime + BR_SCHED_LAG * UINT64_C(256));
    t->at = s->n_active;
    s->active[s->n_active++] = id;
    br_sched_roll(s, t);
}

static void
deactivate(br_sched *s, uint32_t id)
{
    tenant *t = &s->t[id];
    uint32_t last;

    if (t->n_queued + t->n_running > 0)
        return;
    last = s->active[--s->n_active];
    s->active[t->at] = last;
    s->t[last].at = t->at;
    t->owed = false;
}

/* ---- requests ------------------------------------------------------------ */

/* By order; those that lost a slot come before those that never had one. */
static void
enqueue(br_sched *s, uint32_t h)
{
    req *r = &s->r[h];
    tenant *t = &s->t[r->tenant];
    uint32_t after = t->tail;

    while (after != NONE && s->r[after].order > r->order)
        after = s->r[after].prev;
    r->prev = after;
    r->next = after == NONE ? t->head : s->r[after].next;
    *(r->prev == NONE ? &t->head : &s->r[r->prev].next) = h;
    *(r->next == NONE ? &t->tail : &s->r[r->next].prev) = h;
    r->state = REQ_QUEUED;
    t->n_queued++;
    s->n_queued++;
}

void
br_sched_dequeue(br_sched *s, uint32_t h)
{
    req *r = &s->r[h];
    tenant *t = &s->t[r->tenant];

    *(r->prev == NONE ? &t->head : &s->r[r->prev].next) = r->next;
    *(r->next == NONE ? &t->tail : &s->r[r->next].prev) = r->prev;
    t->n_queued--;
    s->n_queued--;
}

void
br_sched_add(br_sched *s, uint32_t h, uint32_t id, const int32_t *tokens,
             uint32_t n_prompt, uint32_t n_max)
{
    br_check(h < s->c.n_requests && s->r[h].state == REQ_FREE);
    br_check(id < BR_MAX_TENANTS && s->t[id].known);
    br_check(n_prompt > 0 && n_prompt <= n_max &&
             n_max <= br_sched_most_tokens(s, id));
    s->r[h] = (req){.tenant = id,
                    .tokens = tokens,
                    .n_prompt = n_prompt,
                    .n_tokens = n_prompt,
                    .n_max = n_max,
                    .leaf = NONE,
                    .slot = NONE,
                    .order = ++s->order};
    activate(s, id);
    enqueue(s, h);
}

void
br_sched_limit(br_sched *s, uint32_t h, uint32_t n_max)
{
    req *r = &s->r[h];

    br_check(r->state != REQ_FREE && r->n_tokens <= n_max && n_max <= r->n_max);
    r->n_max = n_max;
}

void
br_sched_whole(br_sched *s, uint32_t h)
{
    s->r[h].whole = true;
}

void
br_sched_score(br_sched *s, uint32_t h)
{
    br_check(s->c.max_want > s->c.n_slots);
    s->r[h].whole = s->r[h].scored = true;
}

/* Takes it off its slot; what it was fed stays as a prefix, if it is right. */
static void
release(br_sched *s, uint32_t h, bool forget)
{
    req *r = &s->r[h];

    /* A recurrent model could not go on from there: no state was kept. */
    if (!forget && !s->recurrent)
        br_sched_donate(s, r, r->n_fed);
    br_prefix_leave(s->prefix, r->leaf);
    br_kv_cut(s->kv, r->slot, 0);
    br_sched_discharge(s, r->tenant, r->charged);
    br_sched_recharge(s, r, 0);
    s->slot[r->slot] = NONE;
    s->n_free_slots++;
    s->t[r->tenant].n_running--;
    r->leaf = r->slot = NONE;
    r->shared = r->n_fed = r->rows = 0;
}

void
br_sched_remove(br_sched *s, uint32_t h)
{
    req *r = &s->r[h];
    req_state was = r->state;

    br_check(was != REQ_FREE);
    r->state = REQ_FREE;
    if (was == REQ_PARKED) {
        s->t[r->tenant].n_parked--;
        return; /* its tenant is active for others, or not at all */
    }
    if (was == REQ_RUNNING)
        release(s, h, false);
    else
        br_sched_dequeue(s, h);
    deactivate(s, r->tenant);
}

/* It has no slot and is in no queue: a tenant with nothing else is idle. */
static void
park(br_sched *s, uint32_t h)
{
    req *r = &s->r[h];

    r->state = REQ_PARKED;
    s->t[r->tenant].n_parked++;
    deactivate(s, r->tenant);
}

void
br_sched_preempt(br_sched *s, uint32_t h, bool forget)
{
    br_check(s->r[h].state == REQ_RUNNING);
    release(s, h, forget);
    if (s->r[h].held)
        park(s, h);
    else
        enqueue(s, h);
    s->preempted[s->plan.n_preempted++] = h;
}

void
br_sched_hold(br_sched *s, uint32_t h, bool held)
{
    req *r = &s->r[h];

    r->held = held;
    if (held && r->state == REQ_QUEUED) {
        br_sched_dequeue(s, h);
        park(s, h);
    } else if (!held && r->state == REQ_PARKED) {
        s->t[r->tenant].n_parked--;
        activate(s, r->tenant);
        enqueue(s, h);
    }
}

bool
br_sched_park(br_sched *s, uint32_t h)
{
    br_check(s->r[h].held);
    if (s->r[h].state != REQ_RUNNING || s->n_queued == 0)
        return false;
    release(s, h, false);
    park(s, h);
    return true;
}

void
br_sched_append(br_sched *s, uint32_t h)
{
    br_check(s->r[h].n_tokens < s->r[h].n_max);
    s->r[h].n_tokens++;
}

void
br_sched_solo(br_sched *s, bool on)
{
    s->solo = on;
}

/* ---- the rows of a step -------------------------------------------------- */

static void
add_rows(br_sched *s, uint32_t h, uint32_t n)
{
    req *r = &s->r[h];
    uint32_t max = s->c.max_rows, t = s->plan.step.n_rows;

    br_sched_grow(s, r, r->n_fed + n);
    for (uint32_t i = 0; i < n; i++, t++) {
        s->rows[t] = (int32_t)r->slot;
        s->rows[max + t] = (int32_t)(r->n_fed + i);
        s->rows[2 * max + t] = r->tokens[r->n_fed + i];
        s->rows[3 * max + t] = r->n_fed + i + 1 == r->n_tokens ||
                               (r->scored && r->n_fed + i + 1 < r->n_prompt);
        s->row_handle[t] = h;
    }
    r->rows = n;
    s->plan.step.n_rows = t;
}

/* Rows it could take now. *scores: rows of scored prompts that there is still
 * room for. */
static uint32_t
rows_wanted(const br_sched *s, const req *r, uint32_t *scores)
{
    const tenant *t = &s->t[r->tenant];
    uint32_t n = r->n_tokens - r->n_fed;
    uint64_t rate = (uint64_t)t->q.prefill_tokens_per_s * 5;

    if (n == 1)
        return 1;
    /* States and windows are right for one position only: stop there. */
    if (r->boundary && (s->recurrent || s->windows))
        n = BR_MIN(n, r->boundary - r->n_fed);
    rate = rate > t->prefill_sum ? rate - t->prefill_sum : 0;
    n = (uint32_t)BR_MIN(n, rate);
    if (r->scored) {
        n = BR_MIN(n, *scores);
        *scores -= n;
    }
    return n;
}

static bool
gets_rows(br_sched *s, uint32_t slot)
{
    return s->slot[slot] != NONE && !s->r[s->slot[slot]].held &&
           (!s->solo || slot == s->solo_slot);
}

static void
next_solo(br_sched *s)
{
    if (!s->solo)
        return;
    for (uint32_t i = 0; i < s->c.n_slots; i++) {
        s->solo_slot = (s->solo_slot + 1) % s->c.n_slots;
        if (gets_rows(s, s->solo_slot))
            return;
    }
}

static void
plan_prefill(br_sched *s, br_qos best)
{
    uint32_t n = 0, most = 0, n_read = 0, budget;
    uint32_t scores = s->c.max_want - BR_MIN(s->c.max_want, s->c.n_slots);

    for (int q = 0; q < BR_QOS_COUNT; q++)
        for (uint32_t i = 0; i < s->c.n_slots; i++) {
            const req *r = gets_rows(s, i) ? &s->r[s->slot[i]] : NULL;

            if (!r || (int)s->t[r->tenant].q.qos != q || r->rows ||
                r->n_tokens == r->n_fed)
                continue;
            s->want_of[n] = s->slot[i];
            s->want[n] = (br_plan_want){.rows = rows_wanted(s, r, &scores),
                                        .qos = (br_qos)q,
                                        .credit = r->credit,
                                        .from = r->n_fed};
            n_read += s->want[n].rows > 0;
            most += s->want[n++].rows;
        }
    if (most == 0)
        return;
    budget =
        br_plan_budget(&s->time, s->plan.n_decode, n_read, best,
                       br_plan_row_ns(&s->time, s->want, n), s->c.max_rows);
    br_plan_share(s->want, n, BR_MIN(budget, most));
    for (uint32_t i = 0; i < n; i++) {
        s->r[s->want_of[i]].credit = s->want[i].credit;
        if (s->want[i].give)
            add_rows(s, s->want_of[i], s->want[i].give);
    }
}

/* A row for each slot that decodes, the most urgent class first: in that order
 * tokens are drawn and told. */
static void
plan_decode(br_sched *s)
{
    br_qos best = BR_QOS_COUNT;

    for (int q = 0; q < BR_QOS_COUNT; q++)
        for (uint32_t i = 0; i < s->c.n_slots; i++) {
            const req *r = gets_rows(s, i) ? &s->r[s->slot[i]] : NULL;

            if (!r || (int)s->t[r->tenant].q.qos != q ||
                r->n_tokens - r->n_fed != 1)
                continue;
            add_rows(s, s->slot[i], 1);
            best = BR_MIN(best, (br_qos)q);
            s->plan.n_urgent += q == BR_QOS_INTERACTIVE;
        }
    s->plan.n_decode = s->plan.step.n_rows;
    s->best = best;
}

static void
plan_rows(br_sched *s)
{
    uint32_t max = s->c.max_rows;

    s->plan.step = (br_step){.slot = s->rows,
                             .position = s->rows + max,
                             .token = s->rows + 2 * (size_t)max,
                             .want = s->rows + 3 * (size_t)max,
                             .pages = br_kv_tables(s->kv)};
    next_solo(s);
    for (uint32_t i = 0; i < s->c.n_slots; i++)
        if (s->slot[i] != NONE)
            s->r[s->slot[i]].rows = 0;
    plan_decode(s);
    plan_prefill(s, s->best);
}

const br_plan *
br_sched_plan(br_sched *s, int64_t now)
{
    const int64_t bucket = BR_SCHED_BUCKET_MS * INT64_C(1000000);

    br_check(now >= s->now);
    s->now = now;
    s->plan = (br_plan){.begin = s->begin,
                        .preempted = s->preempted,
                        .admitted = s->admitted,
                        .row_handle = s->row_handle,
                        .save = s->save};
    br_sched_find_owed(s);
    br_sched_feed_decoders(s);
    br_sched_admit(s);
    plan_rows(s);
    if (s->plan.step.n_rows == 0 && s->n_active)
        s->plan.wake_ns = (now / bucket + 1) * bucket;
    return &s->plan;
}

/* The beginning of its text is whole: others may share it. */
static void
keep_prefix(br_sched *s, uint32_t h)
{
    req *r = &s->r[h];
    uint32_t state;

    br_sched_donate(s, r, r->boundary);
    if (s->recurrent && r->leaf != NONE &&
        br_prefix_depth(s->prefix, r->leaf) * BR_PAGE_TOKENS == r->boundary) {
        state = br_prefix_keep_state(s->prefix, r->leaf);
        if (state != NONE)
            s->save[s->plan.n_save++] = (br_sched_op){h, r->slot, state};
    }
    r->boundary = 0;
}

static void
note_time(br_sched *s, int64_t ns)
{
    uint32_t n = s->plan.step.n_rows;
    br_step_rows r = {.decode = s->plan.n_decode,
                      .prefill = n - s->plan.n_decode,
                      .interactive = s->best == BR_QOS_INTERACTIVE};

    for (uint32_t t = r.decode; t < n; t++)
        r.positions += s->plan.step.position[t];
    if (n)
        br_steptime_note(&s->time, &r, ns);
}

void
br_sched_stepped(br_sched *s, int64_t now, int64_t step_ns)
{
    s->now = BR_MAX(s->now, now);
    s->plan.n_save = 0;
    note_time(s, step_ns);
    for (uint32_t i = 0; i < s->c.n_slots; i++) {
        req *r = s->slot[i] == NONE ? NULL : &s->r[s->slot[i]];
        bool token;

        if (!r || r->rows == 0)
            continue;
        r->n_fed += r->rows;
        token = r->n_fed == r->n_tokens;
        br_sched_account(&s->t[r->tenant], token,
                         token && r->rows == 1 ? 0 : r->rows);
        r->rows = 0;
        if (r->boundary && r->n_fed >= r->boundary)
            keep_prefix(s, s->slot[i]);
        br_kv_pass(s->kv, r->slot, r->n_fed);
    }
}

/* ---- looking at it ------------------------------------------------------- */

br_sched_req_info
br_sched_req(const br_sched *s, uint32_t h)
{
    const req *r = &s->r[h];

    return (br_sched_req_info){
        .queued = r->state == REQ_QUEUED,
        .running = r->state == REQ_RUNNING,
        .held = r->held,
        .blocked = s->t[r->tenant].blocked,
        .n_charged = r->charged,
        .tenant = r->tenant,
        .slot = r->slot,
        .n_fed = r->n_fed,
        .n_tokens = r->n_tokens,
        .n_cached = r->n_cached,
        .n_pages = r->state == REQ_RUNNING ? br_kv_count(s->kv, r->slot) : 0,
        .page_ns =
            r->page_ns + (double)r->charged * (double)(s->now - r->since_ns),
        .order = r->order,
    };
}

br_sched_info
br_sched_info_of(const br_sched *s)
{
    uint32_t free = s->c.plan->n_groups ? br_kv_free_pages(s->kv, s->main)
                                        : (uint32_t)br_sched_unclaimed(s);

    return (br_sched_info){
        .n_queued = s->n_queued,
        .n_running = s->c.n_slots - s->n_free_slots,
        .n_pages = s->n_pages,
        .n_free = free,
        .n_prefix = br_prefix_count(s->prefix),
        .n_private = s->n_pages - free - br_prefix_count(s->prefix),
        .n_prefix_limit = s->prefix_limit,
        .n_reserved = (uint32_t)s->reserved,
        .hit_tokens = s->hit_tokens,
        .looked_tokens = s->looked_tokens,
        .time = s->time,
    };
}

br_sched_tenant_info
br_sched_tenant(const br_sched *s, uint32_t id)
{
    const tenant *t = &s->t[id];

    return (br_sched_tenant_info){.known = t->known,
                                  .n_queued = t->n_queued,
                                  .n_running = t->n_running,
                                  .n_parked = t->n_parked,
                                  .n_pages = t->used,
                                  .n_pages_peak = t->peak,
                                  .decode_window = t->decode_sum,
                                  .prefill_window = t->prefill_sum,
                                  .service = t->service,
                                  .owed = t->owed};
}

void
br_sched_keeper(br_sched *s, br_keeper *k)
{
    k->prefix = s->prefix;
    k->kv = s->kv;
    k->max_blocks = s->prefix_limit;
}

static void
audit_tenant(const br_sched *s, uint32_t id, uint64_t *claimed)
{
    const tenant *t = &s->t[id];
    uint32_t charged = 0, running = 0, queued = 0;
    uint64_t before = 0;

    for (uint32_t i = 0; i < s->c.n_slots; i++)
        if (s->slot[i] != NONE && s->r[s->slot[i]].tenant == id) {
            charged += s->r[s->slot[i]].charged;
            running++;
        }
    for (uint32_t h = t->known ? t->head : NONE; h != NONE; h = s->r[h].next) {
        br_check(s->r[h].state == REQ_QUEUED && !s->r[h].held);
        br_check(s->r[h].order > before);
        before = s->r[h].order;
        queued++;
    }
    br_check(charged == t->used && running == t->n_running);
    br_check(queued == t->n_queued);
    br_check(t->used <= t->q.max_kv_pages && running <= t->q.max_slots);
    *claimed += BR_MAX(t->used, t->q.reserved_kv_pages);
}

void
br_sched_audit(const br_sched *s)
{
    uint64_t claimed = 0, private = 0, promised = 0;
    uint32_t prefix = br_prefix_count(s->prefix), running = 0;

    for (uint32_t i = 0; i < s->n_active; i++)
        audit_tenant(s, s->active[i], &claimed);
    for (uint32_t id = 0; id < s->n_known; id++)
        if (s->t[id].known && s->t[id].n_queued + s->t[id].n_running == 0)
            claimed += s->t[id].q.reserved_kv_pages;
    for (uint32_t i = 0; i < s->c.n_slots; i++) {
        const req *r = s->slot[i] == NONE ? NULL : &s->r[s->slot[i]];

        if (!r)
            continue;
        running++;
        br_check(r->state == REQ_RUNNING && r->slot == i);
        br_check(r->n_fed <= r->n_tokens);
        br_check(br_kv_count(s->kv, i) <= r->shared + r->charged);
        private += br_kv_count(s->kv, i) - r->shared;
        promised += r->shared + r->charged - br_kv_count(s->kv, i);
    }
    br_check(running + s->n_free_slots == s->c.n_slots);
    br_check(claimed == s->claimed && claimed + prefix <= s->n_pages);
    br_prefix_audit(s->prefix);
    if (s->c.plan->n_groups == 0)
        return;
    /* A window's pages behind it are charged but no longer had. */
    if (s->c.plan->group[s->main].window == 0)
        br_check(br_kv_free_pages(s->kv, s->main) + private + prefix ==
                 s->n_pages);
    br_check(br_kv_free_pages(s->kv, s->main) >= promised);
}
