/* engine_loop.c - the engine's thread: one step after another.
 *
 *   take what arrived -> look at flags -> admit -> plan -> step -> sample
 *        ^                                                          |
 *        `------------- publish, or sleep when nothing runs <-------'
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/engine_int.h"

#include <string.h>
#include <unistd.h>

/* ---- the way out --------------------------------------------------------- */

static bool
put(br_engine *e, request *r, br_output_kind kind)
{
    const br_logprob *lp = NULL;
    size_t n_lp = 0;
    out_rec *rec;

    if (kind == BR_OUTPUT_TOKEN)
        lp = br_sampler_logprobs(e->slot[r->slot].sampler, &n_lp);
    rec = br_ring_put(&e->ring,
                      (uint32_t)(sizeof *rec + n_lp * sizeof *lp + r->piece.n));
    if (!rec)
        return false;
    *rec = (out_rec){
        .id = r->id, .r = r, .kind = kind, .n_text = (uint32_t)r->piece.n};
    rec->head = (br_output_head){.slot = r->slot,
                                 .tenant = r->d.tenant,
                                 .eot = kind == BR_OUTPUT_END,
                                 .preempted = kind == BR_OUTPUT_PREEMPTED,
                                 .n_logprobs = (uint16_t)n_lp};
    if (r->n_tokens > r->n_prompt) {
        rec->head.token = (uint32_t)r->tokens[r->n_tokens - 1];
        rec->head.generated_pos = r->n_tokens - r->n_prompt - 1;
    }
    if (n_lp)
        memcpy(rec + 1, lp, n_lp * sizeof *lp);
    if (r->piece.n)
        memcpy((char *)(rec + 1) + n_lp * sizeof *lp, r->piece.p, r->piece.n);
    r->piece.n = 0;
    return true;
}

static void
release(br_engine *e, request *r)
{
    br_kv_cut(e->kv, r->slot, 0);
    e->slot[r->slot].r = NULL;
    e->now.n_running--;
}

/* Frees the slot at once; END goes out when the ring has room. */
static void
finish(br_engine *e, request *r, br_finish why)
{
    int64_t now = br_now_ns();

    br_assert(!r->ended);
    r->ended = true;
    r->usage.finish = why;
    r->usage.n_prompt = r->n_prompt;
    r->usage.n_out = r->n_tokens - r->n_prompt;
    r->usage.queue_ns =
        (r->admitted_ns ? r->admitted_ns : now) - r->submitted_ns;
    if (r->first_ns) {
        r->usage.first_ns = r->first_ns - r->submitted_ns;
        r->usage.prefill_ns = r->first_ns - r->admitted_ns;
        r->usage.decode_ns = now - r->first_ns;
    }
    e->now.n_done++;
    e->now.n_cancelled += why == BR_FINISH_CANCELLED;
    e->now.n_failed += why == BR_FINISH_FAILED;
    r->next = e->ending;
    e->ending = r;
}

static void
fail(br_engine *e, request *r, const br_status *st)
{
    r->error = *st;
    finish(e, r, BR_FINISH_FAILED);
}

/* False: the ring is full. */
static bool
send_end(br_engine *e, request *r)
{
    size_t which;

    if (r->unsent && !put(e, r, BR_OUTPUT_TOKEN))
        return false;
    r->unsent = false;
    if (!r->closed) {
        r->closed = true;
        if (r->usage.finish != BR_FINISH_STOP && br_textout_end(&r->text)) {
            r->piece = br_textout_take(&r->text, true, &which);
            if (which != SIZE_MAX) {
                r->usage.finish = BR_FINISH_STOP;
                r->usage.stop = (uint32_t)which;
            }
        }
    }
    return put(e, r, BR_OUTPUT_END);
}

static void
send_ends(br_engine *e)
{
    request **at = &e->ending;

    while (*at) {
        request *r = *at;

        if (!send_end(e, r)) {
            at = &r->next;
            continue;
        }
        *at = r->next; /* r is the drainer's from publish on */
    }
}

static void
publish(br_engine *e)
{
    uint64_t one = 1;

    br_mutex_lock(&e->lock);
    e->now.n_rejected = e->stats.n_rejected;
    e->stats = e->now;
    br_mutex_unlock(&e->lock);
    if (!br_ring_publish(&e->ring))
        return;
    br_event_signal(&e->news);
    if (atomic_exchange_explicit(&e->armed, false, memory_order_seq_cst))
        (void)!write(e->fd, &one, sizeof one);
}

/* ---- the way in ---------------------------------------------------------- */

static void
take_arrived(br_engine *e)
{
    br_mutex_lock(&e->lock);
    if (e->arrived) {
        *e->queued_end = e->arrived;
        e->queued_end = e->arrived_end;
        e->arrived = NULL;
        e->arrived_end = &e->arrived;
    }
    br_mutex_unlock(&e->lock);
}

static void
unqueue(br_engine *e, request **at)
{
    request *r = *at;

    *at = r->next;
    if (!r->next)
        e->queued_end = at;
    r->next = NULL;
    br_mutex_lock(&e->lock);
    e->n_waiting--;
    e->n_waiting_of[r->d.tenant]--;
    br_mutex_unlock(&e->lock);
}

static bool
is_over(const request *r, int64_t now, br_finish *why)
{
    if (atomic_load_explicit(&r->cancel, memory_order_relaxed))
        *why = BR_FINISH_CANCELLED;
    else if (r->d.deadline_ns && now > r->d.deadline_ns)
        *why = BR_FINISH_DEADLINE;
    else
        return false;
    return true;
}

static void
look_at_flags(br_engine *e, int64_t now)
{
    br_finish why;

    for (request **at = &e->queued; *at;) {
        request *r = *at;

        if (!is_over(r, now, &why)) {
            at = &r->next;
            continue;
        }
        unqueue(e, at);
        finish(e, r, why);
    }
    for (uint32_t i = 0; i < e->lm->n_slots; i++) {
        request *r = e->slot[i].r;
        bool held;

        if (!r)
            continue;
        held =
            r->unsent || atomic_load_explicit(&r->held, memory_order_relaxed);
        r->stuck_ns = !held ? 0 : r->stuck_ns ? r->stuck_ns : now;
        if (is_over(r, now, &why) ||
            (held && now - r->stuck_ns > e->c.hold_ns &&
             (why = BR_FINISH_TOO_SLOW, true))) {
            release(e, r);
            finish(e, r, why);
        }
    }
}

static void
bind(br_engine *e, request *r, uint32_t slot)
{
    eslot *s = &e->slot[slot];

    s->r = r;
    s->n_fed = 0;
    r->slot = slot;
    r->admitted_ns = br_now_ns();
    e->lm->reset(e->lm->ctx, slot);
    br_sampler_restart(s->sampler, &r->d.sample);
    for (uint32_t i = 0; i < r->n_tokens; i++)
        br_sampler_accept(s->sampler, r->tokens[i]);
    e->now.n_running++;
    e->now.prompt_tokens += r->n_prompt;
}

static void
admit(br_engine *e)
{
    br_status st = {0};

    for (uint32_t i = 0; i < e->lm->n_slots && e->queued; i++) {
        request *r = e->queued;

        if (e->slot[i].r)
            continue;
        if (br_kv_grow(e->kv, i, r->n_max, &st) != BR_OK)
            return;
        unqueue(e, &e->queued);
        bind(e, r, i);
    }
}

/* ---- a step -------------------------------------------------------------- */

static void
add_row(br_engine *e, br_step *s, uint32_t slot, bool want)
{
    eslot *k = &e->slot[slot];
    uint32_t t = s->n_rows++;

    e->row_slot[t] = (int32_t)slot;
    e->row_position[t] = (int32_t)k->n_fed;
    e->row_token[t] = k->r->tokens[k->n_fed];
    e->row_want[t] = want;
    k->n_fed++;
}

static void
plan(br_engine *e, br_step *s)
{
    for (int prefill = 0; prefill < 2; prefill++)
        for (uint32_t i = 0; i < e->lm->n_slots; i++) {
            eslot *k = &e->slot[i];
            const request *r = k->r;

            if (!r || r->unsent || (k->n_fed + 1 < r->n_tokens) != prefill ||
                atomic_load_explicit(&r->held, memory_order_relaxed))
                continue;
            while (s->n_rows < e->lm->chunk && k->n_fed < r->n_tokens)
                add_row(e, s, i, k->n_fed + 1 == r->n_tokens);
        }
}

static bool
stops_at(const br_engine *e, const request *r, int32_t id)
{
    for (size_t i = 0; i < r->d.n_stop_tokens; i++)
        if (r->d.stop_tokens[i] == id)
            return true;
    return !r->d.ignore_eog && br_tok_is_eog(e->c.tok, id);
}

/* The token is part of the answer. False: the answer is over. */
static bool
append(br_engine *e, request *r, int32_t id)
{
    br_status st = {0};
    size_t which;

    r->tokens[r->n_tokens++] = id;
    br_sampler_accept(e->slot[r->slot].sampler, id);
    if (!br_textout_put(&r->text, id)) {
        (void)br_fail(&st, BR_E_OOM, "answer: out of memory");
        return fail(e, r, &st), false;
    }
    r->piece = br_textout_take(&r->text, false, &which);
    r->unsent = !put(e, r, BR_OUTPUT_TOKEN);
    e->now.out_tokens++;
    if (which != SIZE_MAX) {
        r->usage.stop = (uint32_t)which;
        return finish(e, r, BR_FINISH_STOP), false;
    }
    return true;
}

static bool
pick(br_engine *e, request *r, float *logits)
{
    const br_logit_hook *h = &r->d.hook;
    int32_t id;
    br_status st = {0};

    if (h->mask && !h->mask(h->ctx, logits, e->lm->n_vocab)) {
        (void)br_fail(&st, BR_E_REJECTED, "%s", h->error);
        return fail(e, r, &st), false;
    }
    if (br_sampler_pick(e->slot[r->slot].sampler, logits, r->n_tokens, &id,
                        &st) != BR_OK)
        return fail(e, r, &st), false;
    if (!r->first_ns)
        r->first_ns = br_now_ns();
    if (stops_at(e, r, id)) {
        bool eog = br_tok_is_eog(e->c.tok, id);

        r->usage.stop = UINT32_MAX;
        return finish(e, r, eog ? BR_FINISH_EOG : BR_FINISH_STOP), false;
    }
    if (h->accept && !h->accept(h->ctx, id)) {
        (void)br_fail(&st, BR_E_REJECTED, "%s", h->error);
        return fail(e, r, &st), false;
    }
    return append(e, r, id);
}

static void
sample(br_engine *e, request *r, float *logits)
{
    bool goes_on;

    if (r->n_tokens == r->n_max) { /* max_tokens 0 */
        finish(e, r, BR_FINISH_LENGTH);
        release(e, r);
        return;
    }
    goes_on = pick(e, r, logits);
    if (goes_on && r->n_tokens == r->n_max) {
        bool full =
            r->d.max_tokens < 0 || r->n_tokens - r->n_prompt < r->d.max_tokens;

        finish(e, r, full ? BR_FINISH_CONTEXT : BR_FINISH_LENGTH);
        goes_on = false;
    }
    if (!goes_on)
        release(e, r);
}

static void
run_step(br_engine *e, br_step *s)
{
    br_status st = {0};
    int64_t begin = br_now_ns();
    br_code code;
    float *logits = e->logits;

    s->slot = e->row_slot;
    s->position = e->row_position;
    s->token = e->row_token;
    s->want = e->row_want;
    s->pages = br_kv_tables(e->kv);
    code = e->lm->step(e->lm->ctx, s, logits, &st);
    for (uint32_t t = 0; t < s->n_rows; t++) {
        request *r = e->slot[s->slot[t]].r;

        if (code != BR_OK && r) {
            fail(e, r, &st);
            release(e, r);
        } else if (code == BR_OK && s->want[t]) {
            sample(e, r, logits);
            logits += e->lm->n_vocab;
        }
    }
    e->now.n_steps++;
    e->now.step_ns = br_now_ns() - begin;
}

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

/* Ends everything. */
static void
shut(br_engine *e)
{
    while (e->queued) {
        request *r = e->queued;

        unqueue(e, &e->queued);
        finish(e, r, BR_FINISH_SHUTDOWN);
    }
    for (uint32_t i = 0; i < e->lm->n_slots; i++) {
        request *r = e->slot[i].r;

        if (r) {
            release(e, r);
            finish(e, r, BR_FINISH_SHUTDOWN);
        }
    }
}

void
br_engine_thread(void *arg)
{
    br_engine *e = arg;

    for (;;) {
        br_step s = {0};
        int64_t now = br_now_ns();

        e->stopping = atomic_load_explicit(&e->stop, memory_order_acquire);
        take_arrived(e);
        (void)atomic_exchange_explicit(&e->flags, false, memory_order_acquire);
        if (e->stopping &&
            now >= atomic_load_explicit(&e->stop_at, memory_order_relaxed))
            shut(e);
        for (uint32_t i = 0; i < e->lm->n_slots; i++)
            if (e->slot[i].r && e->slot[i].r->unsent)
                e->slot[i].r->unsent = !put(e, e->slot[i].r, BR_OUTPUT_TOKEN);
        look_at_flags(e, now);
        admit(e);
        plan(e, &s);
        if (s.n_rows)
            run_step(e, &s);
        send_ends(e);
        publish(e);
        if (e->stopping && !e->now.n_running && !e->queued)
            return;
        if (s.n_rows == 0)
            (void)br_event_await(&e->wake, has_work, e, 0,
                                 e->now.n_running || e->ending ? 1000000 : -1);
    }
}
