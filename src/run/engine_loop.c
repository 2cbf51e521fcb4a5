/* engine_loop.c - the engine's thread: one step after another.
 *
 *   take what arrived -> look at flags -> plan -> step -> sample -> publish
 *        ^                                                             |
 *        `------------------ sleep when there is nothing to do <-------'
 *
 * Tokens that a device draws are told while it has the next step (engine_out.c).
 *
 * A step that fails does not say whose fault it was. All that were in it lose
 * their slots and what they were fed, and from then on each runs alone until
 * it has passed the place where it was: the one that fails alone is the one that
 * ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/engine_int.h"

#include "base/hash.h"

#include <math.h>
#include <string.h>

/* ---- the way in ---------------------------------------------------------- */

static void
cancel_all_of(br_engine *e, uint32_t id)
{
    for (uint32_t i = 0; i < e->n_live; i++)
        if (e->live[i]->d.tenant == id)
            atomic_store_explicit(&e->live[i]->cancel, true,
                                  memory_order_relaxed);
}

/* With the lock held. False: to be tried again. */
static bool
change_tenant(br_engine *e, uint32_t id)
{
    etenant *t = e->tenant[id];
    br_sched_tenant_info i = br_sched_tenant(e->sched, id);
    br_quota bare = t->q;

    bare.reserved_kv_pages = 0;
    if (t->known && br_sched_tenant_set(e->sched, id, &t->q, NULL) == BR_OK)
        return true;
    /* Pages promised to others are in the way: it begins without its own. So does one
     * that is dropped already: its requests come in, too, before they are cancelled. */
    if (!i.known && (t->known || t->n_waiting))
        return br_sched_tenant_set(e->sched, id, &bare, NULL) != BR_OK;
    if (t->known)
        return false;
    cancel_all_of(e, id);
    if (t->n_waiting + i.n_queued + i.n_running + i.n_parked)
        return false;
    br_sched_tenant_drop(e->sched, id);
    return true;
}

static void
change_tenants(br_engine *e)
{
    if (!e->tenants_changed)
        return;
    e->tenants_changed = false;
    for (uint32_t id = 0; id < BR_MAX_TENANTS; id++) {
        etenant *t = e->tenant[id];

        if (!t || !t->changed)
            continue;
        t->changed = !change_tenant(e, id);
        e->tenants_changed |= t->changed;
    }
}

static void
fail_long(br_engine *e, request *r, uint32_t most, bool answers)
{
    br_status st = {0};

    (void)br_fail(&st, BR_E_LIMIT,
                  "the prompt has %u tokens; the tenant's KV pages hold %u%s",
                  r->n_tokens, most, answers ? ", the answer included" : "");
    br_engine_fail(e, r, &st);
}

/* Tenants hold less than they did, or others have more reserved. Who waits for more
 * than there can be waits for ever; all others, too, once his tenant is owed. False:
 * it is over. */
static bool
fit(br_engine *e, request *r)
{
    uint32_t most = br_sched_most_tokens(e->sched, r->d.tenant);
    bool answers = r->n_max > r->n_tokens;

    if (r->n_max <= most)
        return true;
    if (r->n_tokens + answers <= most) {
        r->n_max = most;
        br_sched_limit(e->sched, (uint32_t)r->id, most);
        return true;
    }
    if (r->n_tokens > r->n_prompt)
        br_engine_finish(e, r, BR_FINISH_CONTEXT);
    else
        fail_long(e, r, most, answers);
    return false;
}

static void
begin(br_engine *e, request *r)
{
    uint32_t most = br_sched_most_tokens(e->sched, r->d.tenant);
    br_request_desc d = r->d;
    bool answers = r->n_max > r->n_tokens;

    if (d.max_tokens >= 0) /* for who asks it again with all tokens */
        d.max_tokens -= (int64_t)d.n_done;
    br_trace_submit(e->c.trace, r->id, &d, r->submitted_ns);
    r->live_at = e->n_live;
    e->live[e->n_live++] = r;
    r->n_max = BR_MIN(r->n_max, most);
    br_sched_add(e->sched, (uint32_t)r->id, r->d.tenant, r->tokens,
                 BR_MIN(r->n_tokens, most), r->n_max);
    if (r->sum && e->lm->pooling != BR_POOLING_LAST)
        br_sched_whole(e->sched, (uint32_t)r->id);
    if (r->scores)
        br_sched_score(e->sched, (uint32_t)r->id);
    if (r->n_tokens + answers > most)
        fail_long(e, r, most, answers);
}

static void
take_arrived(br_engine *e)
{
    request *r, *next;
    bool changed;

    br_mutex_lock(&e->lock);
    changed = e->tenants_changed;
    change_tenants(e);
    r = e->arrived;
    e->arrived = NULL;
    e->arrived_end = &e->arrived;
    br_mutex_unlock(&e->lock);
    for (uint32_t i = 0; changed && i < e->n_live;)
        i += fit(e, e->live[i]); /* else another takes its place */
    for (; r; r = next) {
        next = r->next;
        r->next = NULL;
        begin(e, r);
    }
}

static bool
is_over(const br_engine *e, const request *r, int64_t now, br_finish *why)
{
    if (atomic_load_explicit(&r->cancel, memory_order_relaxed))
        *why = BR_FINISH_CANCELLED;
    else if (r->d.deadline_ns && now > r->d.deadline_ns)
        *why = BR_FINISH_DEADLINE;
    else if (r->stuck_ns && now - r->stuck_ns > e->c.hold_ns)
        *why = BR_FINISH_TOO_SLOW;
    else
        return false;
    return true;
}

static void
tell_moved(br_engine *e, request *r)
{
    if (r->owed)
        br_engine_settle(e); /* its token comes first */
    br_trace_event_put(e->c.trace, BR_TRACE_PREEMPT,
                       &(br_trace_event){.id = r->id, .a = r->slot});
    r->moved = true;
}

static void
tell_preempted(br_engine *e, request *r)
{
    tell_moved(e, r);
    r->usage.n_preempted++;
    e->now.n_preempted++;
}

/* Whose reader is behind keeps no slot from others for long: of the time that it
 * has this one, that in which it was not behind counts against the other, so that
 * who fetches a little now and then has no slot for ever. A full ring is not
 * its reader's doing. */
static void
park(br_engine *e, request *r, bool behind)
{
    r->behind_ns =
        BR_MAX(r->behind_ns + (behind ? 1 : -1) * e->since_look_ns, INT64_C(0));
    if (!behind || r->behind_ns < e->c.park_ns ||
        !br_sched_park(e->sched, (uint32_t)r->id))
        return;
    tell_moved(e, r);
    r->usage.n_parked++;
    e->now.n_parked++;
}

static void
look_at_flags(br_engine *e, int64_t now)
{
    e->since_look_ns = e->looked_ns ? now - e->looked_ns : 0;
    e->looked_ns = now;
    for (uint32_t i = 0; i < e->n_live;) {
        request *r = e->live[i];
        bool behind = atomic_load_explicit(&r->held, memory_order_relaxed);
        bool held = behind || r->unsent || r->moved;
        br_finish why;

        r->stuck_ns = !held ? 0 : r->stuck_ns ? r->stuck_ns : now;
        if (is_over(e, r, now, &why)) {
            br_engine_finish(e, r, why); /* another takes its place */
            continue;
        }
        if (held != r->is_held)
            br_sched_hold(e->sched, (uint32_t)r->id, held);
        r->is_held = held;
        park(e, r, behind);
        i++;
    }
}

/* ---- slots change hands -------------------------------------------------- */

static request *
request_of(const br_engine *e, uint32_t h)
{
    return e->table.at[h];
}

static void
first_slot(br_engine *e, request *r)
{
    r->admitted_ns = br_now_ns();
    e->now.prompt_tokens += r->n_prompt;
    br_mutex_lock(&e->lock);
    e->n_waiting--;
    e->tenant[r->d.tenant]->n_waiting--;
    br_mutex_unlock(&e->lock);
}

static void
begin_slot(br_engine *e, const br_sched_op *op)
{
    request *r = request_of(e, op->h);
    const br_lm *lm = e->lm;

    r->slot = op->slot;
    r->behind_ns = 0;
    if (r->sum)
        memset(r->sum, 0, lm->n_embd * sizeof *r->sum);
    if (!r->admitted_ns)
        first_slot(e, r);
    br_trace_event_put(
        e->c.trace, BR_TRACE_BEGIN,
        &(br_trace_event){.id = r->id,
                          .a = op->slot,
                          .b = br_sched_req(e->sched, op->h).n_fed,
                          .ns = br_now_ns() - r->submitted_ns});
    if (op->state == BR_SCHED_NONE)
        lm->reset(lm->ctx, op->slot);
    else
        lm->restore(lm->ctx, op->slot,
                    e->states + op->state * lm->plan->slot_elems);
    br_sampler_restart(e->sampler[op->slot], &r->d.sample);
    for (uint32_t i = 0; i < r->n_tokens; i++)
        br_sampler_accept(e->sampler[op->slot], r->tokens[i]);
    br_engine_progress(e, r);
}

/* ---- a step -------------------------------------------------------------- */

static bool
stops_at(const br_engine *e, const request *r, int32_t id)
{
    for (size_t i = 0; i < r->d.n_stop_tokens; i++)
        if (r->d.stop_tokens[i] == id)
            return true;
    return !r->d.ignore_eog && br_tok_is_eog(e->c.tok, id);
}

static void
append(br_engine *e, request *r, int32_t id, bool drawn)
{
    br_status st = {0};
    size_t which;

    r->tokens[r->n_tokens++] = id;
    br_sched_append(e->sched, (uint32_t)r->id);
    br_sampler_accept(e->sampler[r->slot], id);
    if (!br_textout_put(&r->text, id)) {
        (void)br_fail(&st, BR_E_OOM, "answer: out of memory");
        br_engine_fail(e, r, &st);
        return;
    }
    r->piece = br_textout_take(&r->text, false, &which);
    if (drawn && which == SIZE_MAX && r->n_tokens < r->n_max &&
        br_engine_owe(e, r))
        return;
    br_engine_token(e, r);
    if (which != SIZE_MAX) {
        r->usage.stop = (uint32_t)which;
        br_engine_finish(e, r, BR_FINISH_STOP);
    } else if (r->n_tokens == r->n_max) {
        bool all = r->d.max_tokens >= 0 &&
                   r->n_tokens - r->n_prompt == r->d.max_tokens;

        br_engine_finish(e, r, all ? BR_FINISH_LENGTH : BR_FINISH_CONTEXT);
    }
}

/* The token, from its logits; or the one that the tier has drawn. */
static br_code
pick(br_engine *e, request *r, float *logits, int32_t *id, br_status *st)
{
    const br_logit_hook *h = &r->d.hook;
    size_t bytes = (size_t)e->lm->n_vocab * sizeof *logits;
    static const br_hash_key key = {0x6272617373, 0x6469676573740a};

    if (r->d.digest)
        r->usage.digest = br_siphash13_u64(
            key, r->usage.digest ^ br_siphash13(key, logits, bytes));
    if (h->mask && !h->mask(h->ctx, logits, e->lm->n_vocab))
        return br_hook_fails(h, st);
    if (logits)
        BR_TRY(
            br_sampler_pick(e->sampler[r->slot], logits, r->n_tokens, id, st));
    else if (*id < 0)
        return *id == BR_LM_NO_TOKEN
                   ? br_fail(st, BR_E_REJECTED,
                             "no token is left to choose from")
                   : br_fail(st, BR_E_INTERNAL,
                             "the model's logits hold what is no number");
    if (!stops_at(e, r, *id) && h->accept && !h->accept(h->ctx, *id))
        return br_hook_fails(h, st);
    return BR_OK;
}

/* From logits, or NULL: the tier has drawn id. */
static void
sample(br_engine *e, request *r, float *logits, int32_t id)
{
    br_status st = {0};

    if (r->scores && r->n_scored < r->n_prompt) {
        (void)br_fail(&st, BR_E_INTERNAL,
                      "the model's logits hold what is no number");
        br_engine_fail(e, r, &st);
        return;
    }
    if (r->n_tokens == r->n_max) { /* max_tokens 0 */
        br_engine_finish(e, r, BR_FINISH_LENGTH);
        return;
    }
    if (pick(e, r, logits, &id, &st) != BR_OK) {
        br_engine_fail(e, r, &st);
        return;
    }
    if (!r->first_ns)
        r->first_ns = br_now_ns();
    if (!stops_at(e, r, id)) {
        append(e, r, id, !logits);
        return;
    }
    r->usage.stop = UINT32_MAX;
    br_engine_finish(
        e, r, br_tok_is_eog(e->c.tok, id) ? BR_FINISH_EOG : BR_FINISH_STOP);
}

/* What the row at `position` says of the prompt's next token. A request that
 * lost its slot comes here twice, with the same bits; one whose logits are no
 * numbers gets no further and fails in sample(). */
static void
score(const br_engine *e, request *r, uint32_t position, const float *logits)
{
    size_t row = 1 + (size_t)r->d.sample.n_logprobs, n;
    br_logprob *to = r->scores + row * (position + 1);

    if (position + 1 != r->n_scored)
        return;
    n = br_sample_logprobs(logits, e->lm->n_vocab, r->tokens[position + 1],
                           row - 1, to);
    r->n_scored += n > 0;
    for (; n < row; n++)
        to[n] = (br_logprob){-1, NAN};
}

/* Row t of the step, in the order of positions: the same bits however the
 * prompt was cut. */
static void
pool(br_engine *e, request *r, const br_step *s, uint32_t t)
{
    uint32_t n = e->lm->n_embd;
    const float *x = e->hidden + (size_t)t * n;
    bool all = e->lm->pooling == BR_POOLING_MEAN;

    if (all || (e->lm->pooling == BR_POOLING_CLS ? s->position[t] == 0
                                                 : s->want[t] != 0))
        for (uint32_t i = 0; i < n; i++)
            r->sum[i] += (double)x[i];
}

static void
embedded(br_engine *e, request *r)
{
    uint32_t n = e->lm->n_embd;
    br_status st = {0};
    double square = 0;

    for (uint32_t i = 0; i < n; i++)
        square += r->sum[i] * r->sum[i];
    if (!(square > 0) || !isfinite(square)) {
        (void)br_fail(&st, BR_E_INTERNAL, "the model's embedding is no vector");
        br_engine_fail(e, r, &st);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        r->embedding[i] = (float)(r->sum[i] / sqrt(square));
    r->first_ns = br_now_ns();
    br_engine_finish(e, r, BR_FINISH_LENGTH);
}

/* The next row of another request than row t's. */
static uint32_t
next_request(const br_plan *p, uint32_t t)
{
    uint32_t i = t + 1;

    while (i < p->step.n_rows && p->row_handle[i] == p->row_handle[t])
        i++;
    return i;
}

/* Tokens that row t's request has in its slot behind it. */
static uint32_t
fed_by(const br_step *s, uint32_t t)
{
    return (uint32_t)s->position[t] + 1;
}

static void
step_failed(br_engine *e, const br_plan *p, const br_status *st)
{
    uint32_t n = p->step.n_rows;

    if (next_request(p, 0) == n) {
        br_engine_fail(e, request_of(e, p->row_handle[0]), st);
        return;
    }
    for (uint32_t t = 0, next; t < n; t = next) {
        request *r = request_of(e, p->row_handle[t]);

        next = next_request(p, t);
        e->n_suspects += !r->suspect;
        r->suspect = BR_MAX(r->suspect, fed_by(&p->step, next - 1));
        br_sched_preempt(e->sched, p->row_handle[t], true);
        tell_preempted(e, r);
    }
    br_sched_solo(e->sched, true);
}

/* Can the tier draw the tokens of this step: does nobody look at logits? */
static bool
can_draw(const br_engine *e, const br_plan *p)
{
    if (!e->lm->draw)
        return false;
    for (uint32_t t = 0; t < p->step.n_rows; t++) {
        const request *r = request_of(e, p->row_handle[t]);

        if (p->step.want[t] &&
            (r->sum || r->scores || r->d.digest || r->d.hook.mask ||
             !br_sample_plain(&r->d.sample)))
            return false;
    }
    return true;
}

static br_code
run(br_engine *e, const br_plan *p, bool draw, br_status *st)
{
    br_step step = p->step;
    uint32_t n = 0;
    br_code code;

    for (uint32_t t = 0; t < step.n_rows; t++)
        step.hidden = step.hidden || request_of(e, p->row_handle[t])->sum;
    for (uint32_t t = 0; draw && t < p->step.n_rows; t++)
        if (p->step.want[t]) {
            const request *r = request_of(e, p->row_handle[t]);

            e->draws[n] = &r->d.sample;
            e->draw_at[n++] = r->n_tokens;
        }
    if (n == 0) /* which says nothing before its end */
        br_engine_settle(e);
    e->drawing = n == step.n_rows ? p : NULL;
    code = n ? e->lm->draw(e->lm->ctx, &step, e->draws, e->draw_at, n, e->drawn,
                           st)
             : e->lm->step(e->lm->ctx, &step, draw ? NULL : e->logits, st);
    e->drawing = NULL;
    if (code != BR_OK || !step.hidden)
        return code;
    e->hidden = e->lm->hidden(e->lm->ctx, st); /* all rows, once: it may copy */
    return e->hidden ? BR_OK : st->code;
}

static void
step_passed(br_engine *e, const br_plan *p, bool drawn, int64_t ns)
{
    float *logits = drawn ? NULL : e->logits;
    const int32_t *id = e->drawn;

    br_sched_stepped(e->sched, br_now_ns(), ns);
    for (uint32_t i = 0; i < p->n_save; i++)
        e->lm->save(e->lm->ctx, p->save[i].slot,
                    e->states + p->save[i].state * e->lm->plan->slot_elems);
    for (uint32_t t = 0; t < p->step.n_rows; t++) {
        request *r = request_of(e, p->row_handle[t]);

        if (t && t == p->n_urgent)
            br_engine_tell(e);
        if (t >= p->n_decode && t + 1 == next_request(p, t))
            br_engine_progress(e, r); /* behind its last row */
        if (r->suspect && fed_by(&p->step, t) >= r->suspect) {
            e->n_suspects--;
            r->suspect = 0;
        }
        if (r->sum)
            pool(e, r, &p->step, t);
        if (!p->step.want[t])
            continue;
        if (r->sum)
            embedded(e, r);
        else if (r->scores && p->step.position[t] + 1 < (int32_t)r->n_prompt)
            score(e, r, (uint32_t)p->step.position[t], logits);
        else
            sample(e, r, logits, drawn ? *id++ : -1);
        if (logits)
            logits += e->lm->n_vocab;
    }
    if (e->n_suspects == 0)
        br_sched_solo(e->sched, false);
}

/* What is owed does not wait for others' steps. */
static void
take_turn(br_engine *e)
{
    if (!br_turn_alone(e->c.turns, false))
        br_engine_settle(e);
    br_turn_take(e->c.turns, &e->turn);
}

/* False: there was nothing to run. */
static bool
step(br_engine *e, const br_plan *p)
{
    int64_t begun;
    br_status st = {0};
    br_code code;
    bool draw;

    for (uint32_t i = 0; i < p->n_preempted; i++)
        tell_preempted(e, request_of(e, p->preempted[i]));
    for (uint32_t i = 0; i < p->n_begin; i++)
        begin_slot(e, &p->begin[i]);
    if (p->step.n_rows == 0)
        return false;
    if (e->c.turns)
        take_turn(e);
    begun = br_now_ns();
    draw = can_draw(e, p);
    code = run(e, p, draw, &st);
    if (e->c.turns)
        br_turn_give(e->c.turns, &e->turn, br_now_ns() - begun);
    e->alone = !e->c.turns || br_turn_alone(e->c.turns, false);
    if (code == BR_OK)
        step_passed(e, p, draw, br_now_ns() - begun);
    else
        step_failed(e, p, &st);
    e->now.n_steps++;
    e->now.rows_decode += p->n_decode;
    e->now.rows_prefill += p->step.n_rows - p->n_decode;
    e->now.step_ns = br_now_ns() - begun;
    e->note = (br_step_note){.begun_ns = begun,
                             .ns = e->now.step_ns,
                             .plan_ns = e->now.plan_ns,
                             .rows = p->step.n_rows,
                             .decode = p->n_decode};
    br_trace_event_put(e->c.trace, BR_TRACE_STEP,
                       &(br_trace_event){.a = p->step.n_rows,
                                         .b = p->n_decode,
                                         .ns = e->now.step_ns});
    return true;
}

/* ---- the loop ------------------------------------------------------------ */

static bool
has_work(void *arg)
{
    br_engine *e = arg;
    bool work;

    br_mutex_lock(&e->lock);
    work = e->arrived != NULL;
    br_mutex_unlock(&e->lock);
    return work || atomic_load_explicit(&e->flags, memory_order_acquire) ||
           (!e->stopping &&
            atomic_load_explicit(&e->stop, memory_order_acquire));
}

/* Has nothing come that a plan has to know of, as at the beginning of a round, and are n
 * all that want rows? */
static bool
no_news(br_engine *e, uint32_t n)
{
    bool none = !has_work(e);

    for (uint32_t i = 0; none && i < e->n_live; i++) {
        const request *r = e->live[i];
        const bool held =
            atomic_load_explicit(&r->held, memory_order_relaxed) || r->unsent ||
            r->moved;

        none = held == r->is_held &&
               !atomic_load_explicit(&r->cancel, memory_order_relaxed);
        n -= !held;
    }
    return none && n == 0;
}

/* br_lm.ahead's, while the tier draws: is the next step of the same rows, as far as one
 * can know? Who waits for a slot gets the one that a token may free, and a model that waits
 * for its turn gets that. A token that ends its answer is not known yet: then it is of the
 * others. */
static bool
goes_on(void *arg)
{
    br_engine *e = arg;
    const br_plan *p = e->drawing;
    bool same = p && p->n_decode == p->step.n_rows && !p->step.hidden &&
                !e->n_suspects && !e->ending &&
                (!e->c.turns || br_turn_alone(e->c.turns, true));

    for (uint32_t t = 0; same && t < p->step.n_rows; t++) {
        const request *r = request_of(e, p->row_handle[t]);

        same = r->n_tokens + 1 < r->n_max;
    }
    return same && !br_sched_info_of(e->sched).n_queued &&
           no_news(e, p->step.n_rows);
}

static void
rest(br_engine *e)
{
    bool soon;

    /* Something waits for room in the ring, a deadline, or a rate. */
    br_mutex_lock(&e->lock);
    soon = e->n_live || e->ending || e->tenants_changed;
    br_mutex_unlock(&e->lock);
    (void)br_event_await(&e->wake, has_work, e, 0, soon ? 1000000 : -1);
}

static void
look_at_stop(br_engine *e, int64_t now)
{
    e->stopping = atomic_load_explicit(&e->stop, memory_order_acquire);
    if (!e->stopping ||
        now < atomic_load_explicit(&e->stop_at, memory_order_relaxed))
        return;
    while (e->n_live)
        br_engine_finish(e, e->live[0], BR_FINISH_SHUTDOWN);
}

/* Whoever stops the engine without draining it loses the last ENDs. */
static bool
is_done(const br_engine *e, int64_t now)
{
    int64_t end = atomic_load_explicit(&e->stop_at, memory_order_relaxed);

    return e->n_live == 0 && (!e->ending || now > end + INT64_C(1000000000));
}

static void
settle(void *arg)
{
    br_engine_settle(arg);
}

static void
go_round(br_engine *e)
{
    for (;;) {
        const br_plan *p;
        int64_t now = br_now_ns();
        bool ran;

        (void)atomic_exchange_explicit(&e->flags, false, memory_order_acquire);
        take_arrived(e);
        look_at_stop(e, now);
        br_engine_flush(e);
        look_at_flags(e, now);
        now = br_now_ns();
        p = br_sched_plan(e->sched, now);
        e->now.plan_ns = br_now_ns() - now;
        ran = step(e, p);
        br_engine_flush(e);
        if (!ran)
            br_engine_settle(e);
        if (!e->n_owed)
            br_engine_publish(e);
        if (e->stopping && is_done(e, now))
            return;
        if (!ran)
            rest(e);
    }
}

void
br_engine_thread(void *arg)
{
    br_engine *e = arg;
    const br_lm *lm = e->lm;

    if (lm->meanwhile)
        lm->meanwhile(lm->ctx, settle, e);
    if (lm->ahead)
        lm->ahead(lm->ctx, goes_on, e);
    go_round(e);
    if (lm->ahead)
        lm->ahead(lm->ctx, NULL, NULL);
    if (lm->meanwhile)
        lm->meanwhile(lm->ctx, NULL, NULL);
}
