/* engine_out.c - tokens and ends on their way into the ring.
 *
 * A record that finds no room stays with its request and is tried again at the
 * next step; the request makes no token meanwhile. Its slot is free at once
 * when it ends, though END may have to wait.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/engine_int.h"

#include <string.h>
#include <unistd.h>

/* Of the ring, none of what is owed: that goes first where there is not enough for
 * both. */
static void *
room(br_engine *e, size_t n)
{
    if (e->n_owed &&
        !br_ring_has(&e->ring, e->owed_bytes + br_ring_span((uint32_t)n)))
        br_engine_settle(e);
    return br_ring_put(&e->ring, (uint32_t)n);
}

static bool
put(br_engine *e, request *r, br_output_kind kind)
{
    uint32_t n_lp = kind == BR_OUTPUT_TOKEN ? r->n_report : 0;
    size_t lp_bytes = n_lp * sizeof *r->report;
    size_t n_text = kind == BR_OUTPUT_PREEMPTED ? 0 : r->piece.n;
    out_rec *rec = room(e, sizeof *rec + lp_bytes + n_text);

    if (!rec)
        return false;
    *rec = (out_rec){
        .id = r->id, .r = r, .kind = kind, .n_text = (uint32_t)n_text};
    rec->head = (br_output_head){.slot = r->slot,
                                 .tenant = r->d.tenant,
                                 .eot = kind == BR_OUTPUT_END,
                                 .preempted = kind == BR_OUTPUT_PREEMPTED,
                                 .n_logprobs = (uint16_t)n_lp};
    if (r->n_tokens > r->n_prompt) {
        rec->head.token = (uint32_t)r->tokens[r->n_tokens - 1];
        rec->head.generated_pos = r->n_tokens - r->n_prompt - 1;
    }
    if (kind == BR_OUTPUT_TOKEN)
        br_trace_event_put(e->c.trace, BR_TRACE_TOKEN,
                           &(br_trace_event){.id = r->id,
                                             .a = rec->head.token,
                                             .b = rec->head.generated_pos});
    if (n_lp)
        memcpy(rec + 1, r->report, lp_bytes);
    if (n_text) {
        memcpy((char *)(rec + 1) + lp_bytes, r->piece.p, n_text);
        r->piece.n = 0;
    }
    return true;
}

/* Everything that waits, oldest first. False: the ring is full. */
static bool
flush(br_engine *e, request *r)
{
    r->unsent = r->unsent && !put(e, r, BR_OUTPUT_TOKEN);
    if (!r->unsent)
        r->moved = r->moved && !put(e, r, BR_OUTPUT_PREEMPTED);
    return !r->unsent && !r->moved;
}

static void
measure(const br_engine *e, const request *r, int64_t now, br_usage *u)
{
    br_sched_req_info i = br_sched_req(e->sched, (uint32_t)r->id);

    u->n_prompt = r->n_prompt;
    u->n_out = r->n_tokens - r->n_prompt;
    u->n_cached = BR_MIN(i.n_cached, r->n_prompt);
    u->kv_page_seconds = i.page_ns * 1e-9;
    u->admitted = r->admitted_ns != 0;
    u->queue_ns = (r->admitted_ns ? r->admitted_ns : now) - r->submitted_ns;
    if (!r->first_ns)
        return;
    u->first_ns = r->first_ns - r->submitted_ns;
    u->prefill_ns = r->first_ns - r->admitted_ns;
    u->decode_ns = now - r->first_ns;
}

void
br_engine_token(br_engine *e, request *r)
{
    size_t n;
    const br_logprob *lp = br_sampler_logprobs(e->sampler[r->slot], &n);
    int64_t now = br_now_ns();

    r->n_report = (uint32_t)n;
    if (n)
        memcpy(r->report, lp, n * sizeof *lp);
    r->unsent = true;
    if (!r->last_ns) {
        measure(e, r, now, &r->begun);
        r->begun.n_out = 0;
    }
    (void)flush(e, r);
    if (r->n_tokens - r->n_prompt > r->d.n_counted)
        e->notes[e->n_notes++] = (token_note){
            .tenant = r->d.tenant,
            .first = !r->last_ns,
            .ns = now - (r->last_ns ? r->last_ns : r->submitted_ns)};
    r->last_ns = now;
    e->now.out_tokens++;
}

/* Telling a token costs more than all else that is done for one that the tier has
 * drawn: lines of memory that the drainer had. So it is done while the device has the
 * next step, where the tier says when that is, nobody else waits for the device, and
 * room is certain. Between two steps, us, at 1, 16, 64 streams (Zen 4, a model that does
 * nothing for 800): 8.5, 12, 22, and so 1.0, 3.1, 8.8. */
bool
br_engine_owe(br_engine *e, request *r)
{
    const uint64_t bytes =
        br_ring_span((uint32_t)(sizeof(out_rec) + r->piece.n));

    if (!e->lm->meanwhile || !e->alone || r->unsent || r->moved ||
        !br_sample_plain(&r->d.sample) ||
        !br_ring_has(&e->ring, e->owed_bytes + bytes))
        return false;
    br_check(!r->owed && "a draw calls meanwhile");
    e->owed[e->n_owed++] = r;
    e->owed_bytes += bytes;
    r->owed = true;
    return true;
}

void
br_engine_settle(br_engine *e)
{
    const uint32_t n = e->n_owed;

    if (n == 0)
        return;
    e->n_owed = 0; /* what is put now has the room */
    e->owed_bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        e->owed[i]->owed = false;
        br_engine_token(e, e->owed[i]);
        br_check(!e->owed[i]->unsent && "there is room");
    }
    br_engine_publish(e);
}

/* Nothing waits for room: who reads slowly hears of the next one. */
void
br_engine_progress(br_engine *e, request *r)
{
    br_sched_req_info i;
    out_rec *rec;

    if (!r->d.progress || r->unsent || r->moved || r->n_tokens > r->n_prompt)
        return;
    rec = room(e, sizeof *rec + sizeof(br_reading));
    if (!rec)
        return;
    i = br_sched_req(e->sched, (uint32_t)r->id);
    *rec = (out_rec){.id = r->id, .r = r, .kind = BR_OUTPUT_PROGRESS};
    rec->head = (br_output_head){.slot = r->slot, .tenant = r->d.tenant};
    *(br_reading *)(void *)(rec + 1) =
        (br_reading){.n_prompt = r->n_prompt,
                     .n_cached = BR_MIN(i.n_cached, r->n_prompt),
                     .n_read = BR_MIN(i.n_fed, r->n_prompt),
                     .ns = br_now_ns() - r->admitted_ns};
}

void
br_engine_finish(br_engine *e, request *r, br_finish why)
{
    if (r->owed)
        br_engine_settle(e);
    br_sched_remove(e->sched, (uint32_t)r->id);
    measure(e, r, br_now_ns(), &r->usage);
    r->usage.finish = why;
    br_trace_event_put(e->c.trace, BR_TRACE_END,
                       &(br_trace_event){.id = r->id,
                                         .a = why,
                                         .b = r->usage.n_out,
                                         .ns = r->usage.decode_ns});
    e->live[r->live_at] = e->live[--e->n_live];
    e->live[r->live_at]->live_at = r->live_at;
    e->n_suspects -= r->suspect != 0;
    e->now.n_done++;
    e->now.n_cancelled += why == BR_FINISH_CANCELLED;
    e->now.n_failed += why == BR_FINISH_FAILED;
    e->now.cached_tokens += r->usage.n_cached;
    br_mutex_lock(&e->lock);
    if (!r->admitted_ns) {
        e->n_waiting--;
        e->tenant[r->d.tenant]->n_waiting--;
    }
    br_ledger_end(e->tenant[r->d.tenant], r);
    e->tenant[r->d.tenant]->ledger.kv_pages_peak =
        br_sched_tenant(e->sched, r->d.tenant).n_pages_peak;
    br_mutex_unlock(&e->lock);
    r->next = e->ending;
    e->ending = r;
}

void
br_engine_fail(br_engine *e, request *r, const br_status *st)
{
    r->error = *st;
    br_engine_finish(e, r, BR_FINISH_FAILED);
}

/* The last piece: what was held back may yet complete a stop string. */
static void
close_text(request *r)
{
    size_t which;

    r->closed = true;
    if (r->usage.finish == BR_FINISH_STOP || !br_textout_end(&r->text))
        return;
    r->piece = br_textout_take(&r->text, true, &which);
    if (which != SIZE_MAX) {
        r->usage.finish = BR_FINISH_STOP;
        r->usage.stop = (uint32_t)which;
    }
}

void
br_engine_flush(br_engine *e)
{
    for (uint32_t i = 0; i < e->n_live; i++)
        if (e->live[i]->unsent || e->live[i]->moved)
            (void)flush(e, e->live[i]);
    for (request **at = &e->ending; *at;) {
        request *r = *at;

        if (flush(e, r) && !r->closed)
            close_text(r);
        if (r->unsent || r->moved || !put(e, r, BR_OUTPUT_END))
            at = &r->next;
        else
            *at = r->next; /* the drainer's once it is published */
    }
}

static void
show_slots(br_engine *e)
{
    memset(e->slots, 0, e->lm->n_slots * sizeof *e->slots);
    for (uint32_t i = 0; i < e->n_live; i++) {
        const request *r = e->live[i];
        br_sched_req_info s = br_sched_req(e->sched, (uint32_t)r->id);

        if (!s.running)
            continue;
        e->tenant[r->d.tenant]->window =
            br_sched_tenant(e->sched, r->d.tenant).decode_window;
        e->now.n_running++;
        e->now.n_held += r->is_held;
        e->now.n_prefilling += s.n_fed + 1 < s.n_tokens;
        e->slots[s.slot] =
            (br_slot_info){.state = s.n_fed + 1 < s.n_tokens ? BR_SLOT_PREFILL
                                                             : BR_SLOT_DECODE,
                           .held = r->is_held,
                           .qos = e->tenant[r->d.tenant]->q.qos,
                           .tenant = r->d.tenant,
                           .session = r->d.session,
                           .request = r->id,
                           .n_prompt = r->n_prompt,
                           .n_out = r->n_tokens - r->n_prompt,
                           .position = s.n_fed,
                           .n_pages = s.n_pages,
                           .n_cached = s.n_cached};
    }
}

/* With the lock held. */
static void
show(br_engine *e)
{
    br_sched_info i = br_sched_info_of(e->sched);
    br_engine_stats *s = &e->now;

    for (uint32_t n = 0; n < e->n_notes; n++)
        br_ledger_token(e->tenant[e->notes[n].tenant], &e->notes[n]);
    e->n_notes = 0;
    s->n_slots = e->lm->n_slots;
    s->n_running = s->n_held = s->n_prefilling = 0;
    show_slots(e);
    s->n_queued = e->n_waiting;
    memset(s->n_queued_of, 0, sizeof s->n_queued_of);
    /* Mostly nobody waits, and a step has no time for all that there may be. */
    for (uint32_t n = 0, left = e->n_waiting; left && n < BR_MAX_TENANTS; n++)
        if (e->tenant[n] && e->tenant[n]->n_waiting) {
            left -= e->tenant[n]->n_waiting;
            s->n_queued_of[e->tenant[n]->q.qos] += e->tenant[n]->n_waiting;
            e->tenant[n]->window = br_sched_tenant(e->sched, n).decode_window;
        }
    s->n_pages = i.n_pages;
    s->pages_free = i.n_free;
    s->pages_private = i.n_private;
    s->pages_prefix = i.n_prefix;
    s->pages_reserved = i.n_reserved;
    s->prefix_hits = i.hit_tokens;
    s->prefix_lookups = i.looked_tokens;
    s->decode_step_ns = i.time.base_ns;
    s->row_ns = i.time.fixed_ns;
    s->n_rejected = e->stats.n_rejected;
    if (e->lm->gpu)
        e->lm->gpu(e->lm->ctx, &s->gpu);
    e->stats = *s;
    if (!e->note.rows)
        return;
    e->note.running = s->n_running;
    e->note.queued = s->n_queued;
    e->noted[e->n_noted++ % BR_ENGINE_NOTES] = e->note;
    e->note.rows = 0;
}

/* With the lock held. */
static br_tenant_info
tenant_info(const br_engine *e, uint32_t id)
{
    const etenant *t = e->tenant[id];
    br_tenant_info i = {.id = id, .n_waiting = t->n_waiting, .qos = t->q.qos};

    for (uint32_t n = 0; n < e->lm->n_slots; n++)
        if (e->slots[n].state != BR_SLOT_FREE && e->slots[n].tenant == id) {
            i.n_running++;
            i.n_pages += e->slots[n].n_pages;
        }
    i.slots = (double)i.n_running / t->q.max_slots;
    i.pages = (double)i.n_pages / t->q.max_kv_pages;
    i.rate = (double)t->window / (5.0 * t->q.decode_tokens_per_s);
    return i;
}

uint32_t
br_engine_tenants(br_engine *e, br_tenant_info *out, uint32_t max)
{
    uint32_t n = 0;

    br_mutex_lock(&e->lock);
    for (uint32_t id = 0; id < BR_MAX_TENANTS && n < max; id++)
        if (e->tenant[id]) {
            out[n] = tenant_info(e, id);
            n += out[n].n_running + out[n].n_waiting > 0;
        }
    br_mutex_unlock(&e->lock);
    return n;
}

void
br_engine_publish(br_engine *e)
{
    br_mutex_lock(&e->lock);
    show(e);
    br_mutex_unlock(&e->lock);
    br_engine_tell(e);
}

void
br_engine_tell(br_engine *e)
{
    uint64_t one = 1;

    if (!br_ring_publish(&e->ring))
        return;
    br_event_signal(&e->news);
    if (atomic_exchange_explicit(&e->armed, false, memory_order_seq_cst))
        (void)!write(e->fd, &one, sizeof one);
}
