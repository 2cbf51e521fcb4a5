/* engine.c - the side of the engine that other threads see.
 *
 * A request is put together, copied and checked here, in the thread that
 * submits it, so that the engine's thread only links it into a list.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "run/engine_int.h"
#include "run/keep.h"

#include <math.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static const struct finish_info {
    const char *name, *openai;
} finish_infos[BR_FINISH_COUNT] = {
#define X(name, text, openai) {text, openai},
#include "run/finish.def"
#undef X
};

const char *
br_finish_name(br_finish f)
{
    return finish_infos[f].name;
}

const char *
br_finish_openai(br_finish f)
{
    return finish_infos[f].openai;
}

/* ---- requests ------------------------------------------------------------ */

br_request_desc
br_request_defaults(void)
{
    return (br_request_desc){.sample = br_sample_defaults(), .max_tokens = -1};
}

static void
request_free(request *r)
{
    if (!r)
        return;
    br_textout_fini(&r->text);
    br_arena_fini(&r->mem);
    br_free(r);
}

static const void *
copy(br_arena *a, const void *p, size_t n, size_t size, bool *ok)
{
    void *to = n ? br_arena_dup(a, p, n * size) : NULL;

    *ok = *ok && (n == 0 || to);
    return to;
}

/* Nothing comes before the first token. */
static bool
begin_scores(request *r, const br_request_desc *d)
{
    size_t row = 1 + (size_t)d->sample.n_logprobs;

    r->scores = br_arena_get(&r->mem, d->n_tokens * row * sizeof *r->scores);
    for (size_t k = 0; r->scores && k < row; k++)
        r->scores[k] = (br_logprob){k ? -1 : d->tokens[0], NAN};
    r->n_scored = 1;
    return r->scores != NULL;
}

static bool
copy_desc(const br_engine *e, request *r, const br_request_desc *d)
{
    br_request_desc *to = &r->d;
    const char **stop = br_arena_new(&r->mem, const char *, d->n_stop + 1);
    bool ok = stop != NULL;

    *to = *d;
    for (size_t i = 0; ok && i < d->n_stop; i++) {
        stop[i] = br_arena_str(&r->mem, d->stop[i], strlen(d->stop[i]));
        ok = stop[i] != NULL;
    }
    to->stop = stop;
    to->stop_tokens = copy(&r->mem, d->stop_tokens, d->n_stop_tokens,
                           sizeof *d->stop_tokens, &ok);
    to->sample.bias = copy(&r->mem, d->sample.bias, d->sample.n_bias,
                           sizeof *d->sample.bias, &ok);
    to->sample.dry_breakers =
        copy(&r->mem, d->sample.dry_breakers, d->sample.n_dry_breakers,
             sizeof *d->sample.dry_breakers, &ok);
    r->tokens = br_arena_get(&r->mem, r->n_max * sizeof *r->tokens);
    if (!ok || !r->tokens)
        return false;
    if (d->sample.logprobs)
        r->report =
            br_arena_new(&r->mem, br_logprob, 1 + (size_t)d->sample.n_logprobs);
    if (d->sample.logprobs && !r->report)
        return false;
    if (d->score && !begin_scores(r, d))
        return false;
    if (d->embed) {
        r->sum = br_arena_new(&r->mem, double, e->lm->n_embd);
        r->embedding = br_arena_new(&r->mem, float, e->lm->n_embd);
        if (!r->sum || !r->embedding)
            return false;
    }
    memcpy(r->tokens, d->tokens, d->n_tokens * sizeof *d->tokens);
    to->tokens = r->tokens;
    return true;
}

static bool
is_answered(const br_request_desc *d)
{
    return !d->embed && d->max_tokens != 0;
}

/* So many tokens hold it and, where there is one, the first of its answer. */
static bool
has_room(const br_request_desc *d, uint32_t most)
{
    return d->n_tokens + is_answered(d) <= most;
}

static const char *
and_answer(const br_request_desc *d)
{
    return is_answered(d) ? ", the answer included" : "";
}

static br_code
check_tokens(const br_engine *e, const br_request_desc *d, br_status *st)
{
    if (d->n_tokens == 0)
        return br_fail(st, BR_E_USAGE, "the prompt is empty");
    if (!has_room(d, e->lm->n_ctx))
        return br_fail(st, BR_E_LIMIT,
                       "the prompt has %zu tokens; the context holds %u%s",
                       d->n_tokens, e->lm->n_ctx, and_answer(d));
    for (size_t i = 0; i < d->n_tokens; i++)
        if (d->tokens[i] < 0 || d->tokens[i] >= e->lm->n_vocab)
            return br_fail(st, BR_E_USAGE,
                           "prompt token %zu: %d is not below %d", i,
                           d->tokens[i], e->lm->n_vocab);
    if (d->embed && !br_engine_n_embd(e))
        return br_fail(st, BR_E_UNSUPPORTED, "the model makes no embeddings");
    if (d->score && e->lm->max_want <= e->lm->n_slots)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "with %u slots there is no room for a prompt's logprobs",
                       e->lm->n_slots);
    if (d->n_done >= d->n_tokens || (d->max_tokens >= 0 && d->n_done &&
                                     d->n_done >= (uint64_t)d->max_tokens))
        return br_fail(st, BR_E_USAGE, "%zu tokens are done of %lld", d->n_done,
                       (long long)d->max_tokens);
    if (d->n_stop_tokens > BR_ENGINE_MAX_STOP_TOKENS)
        return br_fail(st, BR_E_LIMIT, "stop: %zu tokens, at most %d",
                       d->n_stop_tokens, BR_ENGINE_MAX_STOP_TOKENS);
    for (size_t i = 0; i < d->n_stop_tokens; i++)
        if (d->stop_tokens[i] < 0 || d->stop_tokens[i] >= e->lm->n_vocab)
            return br_fail(st, BR_E_USAGE, "there is no stop token %d (of %d)",
                           d->stop_tokens[i], e->lm->n_vocab);
    return BR_OK;
}

static br_code
check_tenant(br_engine *e, const br_request_desc *d, uint32_t *ctx,
             br_status *st)
{
    br_quota q;

    if (!br_engine_tenant_quota(e, d->tenant, &q))
        return br_fail(st, BR_E_NOT_FOUND, "there is no tenant %u", d->tenant);
    if (!has_room(d, q.max_context_tokens))
        return br_fail(st, BR_E_LIMIT,
                       "the prompt has %zu tokens; the tenant's context is "
                       "%u%s",
                       d->n_tokens, q.max_context_tokens, and_answer(d));
    *ctx = BR_MIN(e->lm->n_ctx, q.max_context_tokens);
    return BR_OK;
}

static br_code
check(br_engine *e, const br_request_desc *d, uint32_t *ctx, br_status *st)
{
    BR_TRY(check_tokens(e, d, st));
    BR_TRY(br_stops_check(d->stop, d->n_stop, st));
    BR_TRY(br_sample_params_check(&d->sample, e->lm->n_vocab, st));
    return check_tenant(e, d, ctx, st);
}

/* NULL: out of memory. */
static request *
make_request(const br_engine *e, const br_request_desc *d, uint32_t ctx)
{
    request *r = br_try_calloc(1, sizeof *r);

    if (!r)
        return NULL;
    br_arena_init(&r->mem, 0);
    r->n_tokens = (uint32_t)d->n_tokens;
    r->n_prompt = r->n_tokens - (uint32_t)d->n_done;
    r->n_max = ctx;
    if (d->embed)
        r->n_max = r->n_prompt;
    else if (d->max_tokens >= 0 && d->max_tokens < (int64_t)(ctx - r->n_prompt))
        r->n_max = r->n_prompt + (uint32_t)d->max_tokens;
    if (!copy_desc(e, r, d) || !br_textout_init(&r->text, e->c.tok, r->d.stop,
                                                d->n_stop, d->show_special)) {
        request_free(r);
        return NULL;
    }
    r->submitted_ns = br_now_ns();
    return r;
}

/* What is done of its answer, as if it had come from the sampler. */
static br_code
take_done(request *r, br_status *st)
{
    const br_logit_hook *h = &r->d.hook;

    for (uint32_t i = r->n_prompt; i < r->n_tokens; i++) {
        if (h->accept && !h->accept(h->ctx, r->tokens[i])) {
            (void)br_hook_fails(h, st);
            return br_prefix(st, "token %u", i);
        }
        if (!br_textout_put(&r->text, r->tokens[i]))
            return br_fail(st, BR_E_OOM, "request: out of memory");
    }
    return BR_OK;
}

/* Mean time from one request's end to the next's; 0: unknown. The lock is
 * held. */
static int64_t
end_interval(const br_engine *e)
{
    uint32_t n = BR_MIN(e->n_ends, (uint32_t)BR_COUNT(e->ends));

    if (n < 4)
        return 0;
    return (br_now_ns() - e->ends[(e->n_ends - n) % BR_COUNT(e->ends)]) / n;
}

/* With the lock held. Who was taken before a restart had a place or a slot: there are
 * as many of both. */
static br_code
check_places(const br_engine *e, const request *r, br_status *st)
{
    const etenant *tenant = e->tenant[r->d.tenant];

    if (e->draining)
        return br_fail(st, BR_E_BUSY, "the server is shutting down");
    if ((e->n_waiting >= e->c.queue_depth && !r->d.taken) ||
        e->table.n_free == 0)
        return br_fail(st, BR_E_BUSY, "%u requests are waiting already",
                       e->n_waiting);
    if (!tenant->known)
        return br_fail(st, BR_E_NOT_FOUND, "there is no tenant %u",
                       r->d.tenant);
    if (tenant->n_waiting >= tenant->q.max_queued && !r->d.taken)
        return br_fail(st, BR_E_QUOTA,
                       "%u requests of this tenant are waiting already",
                       tenant->n_waiting);
    if (r->d.deadline_ns &&
        r->submitted_ns + (int64_t)e->n_waiting * end_interval(e) >
            r->d.deadline_ns)
        return br_fail(st, BR_E_BUSY,
                       "the deadline cannot be met: %u requests wait before",
                       e->n_waiting);
    return BR_OK;
}

/* With the lock held. */
static br_code
enqueue(br_engine *e, request *r, br_status *st)
{
    request_table *t = &e->table;
    uint32_t i;

    BR_TRY(check_places(e, r, st));
    i = t->free[--t->n_free];
    t->at[i] = r;
    t->generation[i]++;
    r->id = (uint64_t)t->generation[i] << 32 | i;
    *e->arrived_end = r;
    e->arrived_end = &r->next;
    e->n_waiting++;
    e->tenant[r->d.tenant]->n_waiting++;
    return BR_OK;
}

br_code
br_engine_submit(br_engine *e, const br_request_desc *d, br_request_id *id,
                 br_status *st)
{
    request *r;
    uint32_t ctx = 0;
    br_code code;

    *id = 0;
    BR_TRY(check(e, d, &ctx, st));
    r = make_request(e, d, ctx);
    if (!r)
        return br_fail(st, BR_E_OOM, "request: out of memory");
    code = take_done(r, st);
    if (code != BR_OK) {
        request_free(r);
        return code;
    }
    br_mutex_lock(&e->lock);
    code = enqueue(e, r, st);
    if (code == BR_OK)
        *id = r->id; /* r may be gone once the lock is */
    else if (code != BR_E_QUOTA || !d->comes_again) {
        e->stats.n_rejected++;
        e->tenant[d->tenant]->ledger.requests_rejected++;
    }
    br_mutex_unlock(&e->lock);
    if (code != BR_OK)
        request_free(r);
    else
        br_event_signal(&e->wake);
    return code;
}

void
br_engine_forget(br_engine *e, request *r)
{
    request_table *t = &e->table;

    br_mutex_lock(&e->lock);
    t->at[(uint32_t)r->id] = NULL;
    t->free[t->n_free++] = (uint32_t)r->id;
    e->ends[e->n_ends++ % BR_COUNT(e->ends)] = br_now_ns();
    br_mutex_unlock(&e->lock);
    request_free(r);
}

/* With the lock held; NULL: dead. */
static request *
find(br_engine *e, br_request_id id)
{
    uint32_t i = (uint32_t)id;

    return i < e->table.n && e->table.at[i] &&
                   e->table.generation[i] == (uint32_t)(id >> 32)
               ? e->table.at[i]
               : NULL;
}

/* Flags are looked at once a step; the signal's fence orders them before it. */
static void
set_flag(br_engine *e, br_request_id id, bool cancel, bool held)
{
    request *r;

    br_mutex_lock(&e->lock);
    r = find(e, id);
    if (r && cancel)
        atomic_store_explicit(&r->cancel, true, memory_order_relaxed);
    else if (r)
        atomic_store_explicit(&r->held, held, memory_order_relaxed);
    br_mutex_unlock(&e->lock);
    if (r) {
        atomic_store_explicit(&e->flags, true, memory_order_release);
        br_event_signal(&e->wake);
    }
}

void
br_engine_cancel(br_engine *e, br_request_id id)
{
    set_flag(e, id, true, false);
}

void
br_engine_hold(br_engine *e, br_request_id id, bool held)
{
    set_flag(e, id, false, held);
}

uint32_t
br_engine_n_embd(const br_engine *e)
{
    return e->lm->hidden ? e->lm->n_embd : 0;
}

uint32_t
br_engine_retry_ms(br_engine *e)
{
    int64_t ms;

    br_mutex_lock(&e->lock);
    ms = end_interval(e) / 1000000;
    br_mutex_unlock(&e->lock);
    return (uint32_t)BR_MIN(BR_MAX(ms, 1000), 60000);
}

/* ---- the drainer --------------------------------------------------------- */

static void
give(const br_engine *e, const out_rec *rec)
{
    const br_logprob *lp = (const br_logprob *)(const void *)(rec + 1);
    const request *r = rec->r;
    br_output o = {
        .kind = (br_output_kind)rec->kind,
        .id = rec->id,
        .head = rec->head,
        .logprobs = rec->head.n_logprobs ? lp : NULL,
        .text = {(const char *)(lp + rec->head.n_logprobs), rec->n_text},
        .error = ""};

    /* with any other record they are the engine's yet */
    if ((o.kind == BR_OUTPUT_TOKEN
             ? o.head.generated_pos == 0
             : o.kind == BR_OUTPUT_END && r->n_tokens == r->n_prompt) &&
        r->scores && r->n_scored == r->n_prompt) {
        o.prompt = r->scores;
        o.n_prompt = r->n_prompt;
        o.row = 1 + (uint32_t)r->d.sample.n_logprobs;
    }
    if (o.kind == BR_OUTPUT_PROGRESS)
        o.progress = (const br_reading *)(const void *)(rec + 1);
    if (o.kind == BR_OUTPUT_TOKEN && o.head.generated_pos == 0)
        o.usage = &r->begun;
    if (o.kind == BR_OUTPUT_END) {
        o.tokens = r->tokens + r->n_prompt;
        o.n_tokens = r->n_tokens - r->n_prompt;
        o.usage = &r->usage;
        if (r->embedding && o.usage->finish == BR_FINISH_LENGTH) {
            o.embedding = r->embedding;
            o.n_embedding = e->lm->n_embd;
        }
        o.code = r->error.code;
        o.error = r->error.msg;
    }
    if (r->d.output)
        r->d.output(r->d.ctx, &o);
}

/* The ring is empty: the next publish writes to fd. True: it is not. */
static bool
arm(br_engine *e)
{
    atomic_store_explicit(&e->armed, true, memory_order_seq_cst);
    /* partner: publish() stores head, then exchanges armed */
    return !br_ring_empty(&e->ring) &&
           atomic_exchange_explicit(&e->armed, false, memory_order_seq_cst);
}

size_t
br_engine_drain(br_engine *e, size_t max)
{
    size_t n = 0;
    uint64_t count;
    uint32_t bytes;

    if (!atomic_load_explicit(&e->armed, memory_order_seq_cst))
        (void)!read(e->fd, &count, sizeof count); /* EAGAIN: not written */
    while (n < max) {
        const out_rec *rec = br_ring_peek(&e->ring, &bytes);
        request *over;

        if (!rec) {
            if (arm(e))
                continue;
            break;
        }
        over = rec->kind == BR_OUTPUT_END ? rec->r : NULL;
        give(e, rec);
        br_ring_pop(&e->ring);
        if (over)
            br_engine_forget(e, over);
        n++;
    }
    if (n)
        br_event_signal(&e->wake); /* there is room again */
    return n;
}

int
br_engine_fd(const br_engine *e)
{
    return e->fd;
}

static bool
has_news(void *arg)
{
    return !br_ring_empty(&((br_engine *)arg)->ring);
}

bool
br_engine_wait(br_engine *e, int64_t timeout_ns)
{
    return br_event_await(&e->news, has_news, e, 0, timeout_ns);
}

/* ---- life ---------------------------------------------------------------- */

static bool
table_init(request_table *t, uint32_t n)
{
    t->n = t->n_free = n;
    t->at = br_try_calloc(n, sizeof(request *));
    t->generation = br_try_calloc(n, sizeof *t->generation);
    t->free = br_try_calloc(n, sizeof *t->free);
    for (uint32_t i = 0; t->free && i < n; i++)
        t->free[i] = n - 1 - i;
    return t->at && t->generation && t->free;
}

static br_code
start_tables(br_engine *e, br_status *st)
{
    const br_lm *lm = e->lm;
    size_t n = lm->n_slots;
    uint32_t most = e->c.queue_depth + lm->n_slots;

    e->tenant = br_try_calloc(BR_MAX_TENANTS, sizeof(etenant *));
    e->slots = br_try_calloc(n, sizeof *e->slots);
    e->sampler = br_try_calloc(n, sizeof(br_sampler *));
    e->live = br_try_calloc(most, sizeof(request *));
    e->notes = br_try_calloc(n, sizeof *e->notes);
    e->noted = br_try_calloc(BR_ENGINE_NOTES, sizeof *e->noted);
    e->drawn = br_try_calloc(BR_MAX(n, lm->max_want), sizeof *e->drawn);
    e->draws = br_try_calloc(BR_MAX(n, lm->max_want), sizeof *e->draws);
    e->owed = br_try_calloc(n, sizeof *e->owed);
    e->draw_at = br_try_calloc(BR_MAX(n, lm->max_want), sizeof *e->draw_at);
    e->logits = br_try_calloc(BR_MAX(n, lm->max_want),
                              (size_t)lm->n_vocab * sizeof *e->logits);
    e->states = br_try_calloc(lm->plan->slot_elems ? e->c.n_checkpoints : 1,
                              (lm->plan->slot_elems + 1) * sizeof *e->states);
    if (!e->tenant || !e->slots || !e->sampler || !e->live || !e->notes ||
        !e->noted || !e->logits || !e->drawn || !e->draws || !e->draw_at ||
        !e->owed || !e->states || !table_init(&e->table, most))
        return br_fail(st, BR_E_OOM, "engine: out of memory");
    return BR_OK;
}

/* ---- over a restart ------------------------------------------------------ */

static br_keeper
keeper(br_engine *e)
{
    br_keeper k = {.lm = e->lm, .states = e->states};

    br_sched_keeper(e->sched, &k);
    memcpy(k.identity, e->c.identity, sizeof k.identity);
    return k;
}

/* A file that is not there, or of no use, costs time alone. */
static void
load_kept(br_engine *e)
{
    br_keeper k = keeper(e);
    br_status st = {0};
    br_code code;

    if (!e->c.keep)
        return;
    code = e->lm->page ? br_keep_load(&k, e->c.keep, &st)
                       : br_fail(&st, BR_E_UNSUPPORTED,
                                 "tier %s keeps no sessions", e->lm->tier);
    if (code == BR_OK)
        br_log(BR_EV_keep_loaded, "%s: %u blocks of %d tokens", e->c.keep,
               br_prefix_count(k.prefix), BR_PAGE_TOKENS);
    else if (code != BR_E_NOT_FOUND)
        br_log(BR_EV_keep_failed, "%s", st.msg);
}

static void
save_kept(br_engine *e)
{
    br_keeper k = keeper(e);
    br_status st = {0};

    if (e->c.keep && e->lm->page && br_keep_save(&k, e->c.keep, &st) != BR_OK)
        br_log(BR_EV_keep_failed, "%s", st.msg);
}

static br_code
start_model(br_engine *e, br_status *st)
{
    const br_lm *lm = e->lm;
    br_sched_config c = {.n_requests = e->table.n,
                         .n_slots = lm->n_slots,
                         .n_ctx = lm->n_ctx,
                         .max_rows = lm->chunk,
                         .max_want = lm->max_want,
                         .plan = lm->plan,
                         .prefix_percent = e->c.prefix_percent,
                         .n_states = e->c.n_checkpoints};
    br_sample_params p = br_sample_defaults();
    br_sched_info i;

    memcpy(c.n_pages, lm->n_pages, sizeof c.n_pages);
    BR_TRY(br_sched_new(&e->sched, &c, st));
    i = br_sched_info_of(e->sched);
    e->reservable = i.n_pages - i.n_prefix_limit;
    load_kept(e);
    for (uint32_t s = 0; s < lm->n_slots; s++) {
        BR_TRY(br_sampler_new(&e->sampler[s], lm->n_vocab, lm->n_ctx, &p, st));
        br_sampler_never(e->sampler[s], lm->never, lm->n_never);
    }
    return BR_OK;
}

static br_code
check_config(const br_engine_config *c, br_status *st)
{
    if (!c->lm->step || !c->lm->plan)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "tier %s: runs one conversation at a time", c->lm->tier);
    if (c->lm->n_slots > BR_ENGINE_MAX_SLOTS)
        return br_fail(st, BR_E_LIMIT, "%u slots, at most %d", c->lm->n_slots,
                       BR_ENGINE_MAX_SLOTS);
    if (c->queue_depth > BR_ENGINE_MAX_QUEUE)
        return br_fail(st, BR_E_LIMIT, "a queue of %u, at most %d",
                       c->queue_depth, BR_ENGINE_MAX_QUEUE);
    if (br_tok_count(c->tok) > c->lm->n_vocab)
        return br_fail(st, BR_E_FORMAT,
                       "the tokenizer has %d tokens, the model's logits %d",
                       br_tok_count(c->tok), c->lm->n_vocab);
    return BR_OK;
}

static br_code
start(br_engine *e, br_status *st)
{
    br_quota all = br_quota_defaults();

    BR_TRY(start_tables(e, st));
    BR_TRY(start_model(e, st));
    BR_TRY(br_ring_init(&e->ring, e->c.ring_bytes, st));
    all.max_slots = e->lm->n_slots;
    all.max_queued = e->c.queue_depth;
    all.max_kv_pages = INT32_MAX;
    all.decode_tokens_per_s = all.prefill_tokens_per_s = INT32_MAX;
    all.max_context_tokens = INT32_MAX;
    BR_TRY(br_engine_tenant_set(e, BR_TENANT_LOCAL, &all, st));
    e->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (e->fd < 0)
        return br_fail(st, BR_E_IO, "engine: no eventfd");
    br_engine_publish(e); /* figures are right before the first step */
    BR_TRY(br_thread_start(&e->thread, "engine", br_engine_thread, e, st));
    e->started = true;
    return BR_OK;
}

br_code
br_engine_new(br_engine **out, const br_engine_config *c, br_status *st)
{
    br_engine *e;
    br_code code;

    *out = NULL;
    BR_TRY(check_config(c, st));
    e = br_try_calloc(1, sizeof *e);
    if (!e)
        return br_fail(st, BR_E_OOM, "engine: out of memory");
    e->c = *c;
    e->lm = c->lm;
    e->fd = -1;
    e->lock = (br_mutex)BR_MUTEX;
    e->arrived_end = &e->arrived;
    if (e->c.queue_depth == 0)
        e->c.queue_depth = BR_ENGINE_QUEUE;
    if (e->c.ring_bytes == 0)
        e->c.ring_bytes = BR_ENGINE_RING_BYTES;
    if (e->c.prefix_percent == 0)
        e->c.prefix_percent = 20;
    if (e->c.n_checkpoints == 0)
        e->c.n_checkpoints = 64;
    if (e->c.hold_ns == 0)
        e->c.hold_ns = INT64_C(30000000000);
    if (e->c.park_ns == 0)
        e->c.park_ns = INT64_C(1000000000);
    code = start(e, st);
    if (code != BR_OK)
        br_engine_free(e);
    else
        *out = e;
    return code;
}

void
br_engine_begin_drain(br_engine *e)
{
    br_mutex_lock(&e->lock);
    e->draining = true;
    br_mutex_unlock(&e->lock);
    br_event_signal(&e->wake);
}

void
br_engine_stop(br_engine *e, int64_t drain_ns)
{
    if (!e->started)
        return;
    br_engine_begin_drain(e);
    atomic_store_explicit(&e->stop_at, br_now_ns() + drain_ns,
                          memory_order_relaxed);
    /* partner: the acquire in the engine's loop */
    atomic_store_explicit(&e->stop, true, memory_order_release);
    br_event_signal(&e->wake);
    br_thread_join(&e->thread);
    e->started = false;
    save_kept(e);
}

void
br_engine_free(br_engine *e)
{
    if (!e)
        return;
    br_engine_stop(e, 0);
    for (uint32_t i = 0; e->table.at && i < e->table.n; i++)
        request_free(e->table.at[i]);
    for (uint32_t i = 0; e->sampler && i < e->lm->n_slots; i++)
        br_sampler_free(e->sampler[i]);
    for (uint32_t i = 0; e->tenant && i < BR_MAX_TENANTS; i++)
        br_free(e->tenant[i]);
    br_free(e->table.at);
    br_free(e->table.generation);
    br_free(e->table.free);
    br_free(e->tenant);
    br_free(e->slots);
    br_free(e->sampler);
    br_free(e->live);
    br_free(e->notes);
    br_free(e->noted);
    br_free(e->logits);
    br_free(e->drawn);
    br_free(e->draws);
    br_free(e->owed);
    br_free(e->draw_at);
    br_free(e->states);
    br_sched_free(e->sched);
    br_ring_fini(&e->ring);
    if (e->fd >= 0)
        (void)close(e->fd);
    br_free(e);
}

/* ---- tenants and figures ------------------------------------------------- */

/* With the lock held. */
static br_code
check_reservation(const br_engine *e, uint32_t id, const br_quota *q,
                  br_status *st)
{
    uint64_t sum = q->reserved_kv_pages;

    for (uint32_t i = 0; i < BR_MAX_TENANTS; i++)
        if (i != id && e->tenant[i] && e->tenant[i]->known)
            sum += e->tenant[i]->q.reserved_kv_pages;
    if (sum > e->reservable)
        return br_fail(st, BR_E_LIMIT,
                       "%u reserved KV pages make %llu with other tenants'; "
                       "there are %u to reserve",
                       q->reserved_kv_pages, (unsigned long long)sum,
                       e->reservable);
    return BR_OK;
}

static void
tell_scheduler(br_engine *e, etenant *t)
{
    t->changed = e->tenants_changed = true;
    atomic_store_explicit(&e->flags, true, memory_order_release);
    br_event_signal(&e->wake);
}

br_code
br_engine_tenant_fits(br_engine *e, uint32_t id, const br_quota *q,
                      br_status *st)
{
    br_code code;

    br_mutex_lock(&e->lock);
    code = check_reservation(e, id, q, st);
    br_mutex_unlock(&e->lock);
    return code;
}

br_code
br_engine_tenant_set(br_engine *e, uint32_t id, const br_quota *q,
                     br_status *st)
{
    br_code code;

    if (id >= BR_MAX_TENANTS)
        return br_fail(st, BR_E_LIMIT, "tenant %u is not below %d", id,
                       BR_MAX_TENANTS);
    BR_TRY(br_quota_check(q, st));
    br_mutex_lock(&e->lock);
    code = check_reservation(e, id, q, st);
    if (code == BR_OK && !e->tenant[id] &&
        !(e->tenant[id] = br_try_calloc(1, sizeof(etenant))))
        code = br_fail(st, BR_E_OOM, "tenant: out of memory");
    if (code == BR_OK) {
        e->tenant[id]->q = *q;
        e->tenant[id]->known = true;
        tell_scheduler(e, e->tenant[id]);
    }
    br_mutex_unlock(&e->lock);
    return code;
}

void
br_engine_tenant_drop(br_engine *e, uint32_t id)
{
    br_mutex_lock(&e->lock);
    if (id < BR_MAX_TENANTS && e->tenant[id] && e->tenant[id]->known) {
        e->tenant[id]->known = false;
        tell_scheduler(e, e->tenant[id]);
    }
    br_mutex_unlock(&e->lock);
}

static bool
look_up(br_engine *e, uint32_t id, br_quota *q, br_ledger *l)
{
    const etenant *t;

    if (id >= BR_MAX_TENANTS)
        return false;
    br_mutex_lock(&e->lock);
    t = e->tenant[id] && e->tenant[id]->known ? e->tenant[id] : NULL;
    if (t && q)
        *q = t->q;
    if (t && l)
        *l = br_ledger_of(t);
    br_mutex_unlock(&e->lock);
    return t != NULL;
}

bool
br_engine_tenant_quota(br_engine *e, uint32_t id, br_quota *out)
{
    return look_up(e, id, out, NULL);
}

bool
br_engine_ledger(br_engine *e, uint32_t id, br_ledger *out)
{
    return look_up(e, id, NULL, out);
}

void
br_engine_stats_get(br_engine *e, br_engine_stats *out)
{
    br_mutex_lock(&e->lock);
    *out = e->stats;
    out->draining = e->draining;
    br_mutex_unlock(&e->lock);
}

uint32_t
br_engine_slots(br_engine *e, br_slot_info *out, uint32_t max)
{
    uint32_t n = BR_MIN(max, e->lm->n_slots);

    br_mutex_lock(&e->lock);
    memcpy(out, e->slots, n * sizeof *out);
    br_mutex_unlock(&e->lock);
    return e->lm->n_slots;
}

uint32_t
br_engine_notes(br_engine *e, br_step_note out[BR_ENGINE_NOTES])
{
    uint32_t n;

    br_mutex_lock(&e->lock);
    n = (uint32_t)BR_MIN(e->n_noted, (uint64_t)BR_ENGINE_NOTES);
    for (uint32_t i = 0; i < n; i++)
        out[i] = e->noted[(e->n_noted - n + i) % BR_ENGINE_NOTES];
    br_mutex_unlock(&e->lock);
    return n;
}
