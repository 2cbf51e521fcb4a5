/* api_batch.c - the C library: many answers at once, told as events.
 *
 * The engine's drainer is whoever calls br_batch_wait, so what a caller gives
 * is called in its own thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"
#include "run/engine.h"

#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(br_output_event, token) ==
                       offsetof(br_output_head, token) &&
                   offsetof(br_output_event, eot) ==
                       offsetof(br_output_head, eot) &&
                   offsetof(br_output_event, n_logprobs) ==
                       offsetof(br_output_head, n_logprobs),
               "an event begins as it does in the ring");

typedef struct asked {
    br_batch *b;
    br_request_id id;
    br_event_fn fn;
    void *ctx;
    struct asked *prev, *next;
} asked;

struct br_batch {
    br_llm *m;
    br_engine *engine;
    asked *open;
    size_t n_open;
};

/* ---- life ---------------------------------------------------------------- */

static br_code
start(br_batch *b, br_llm *m, br_status *st)
{
    br_engine_config c = {.lm = br_lm_model_lm(m->lm), .tok = m->tok};

    for (uint32_t i = 0; i < c.lm->n_slots; i++)
        if (m->taken[i])
            return br_fail(st, BR_E_LIMIT, "sequence %u of %u is in use", i,
                           c.lm->n_slots);
    BR_TRY(br_engine_new(&b->engine, &c, st));
    b->m = m;
    memset(m->taken, true, c.lm->n_slots);
    return BR_OK;
}

br_batch *
br_batch_new(br_llm *m, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    br_batch *b = br_api_handle(sizeof *b, st);

    if (b && start(b, m, st) != BR_OK) {
        br_free(b);
        b = NULL;
    }
    return b;
}

static void
forget(asked *a)
{
    *(a->prev ? &a->prev->next : &a->b->open) = a->next;
    if (a->next)
        a->next->prev = a->prev;
    a->b->n_open--;
    br_free(a);
}

void
br_batch_free(br_batch *b)
{
    const br_lm *lm;

    if (!b)
        return;
    br_engine_free(b->engine);
    while (b->open)
        forget(b->open);
    lm = br_lm_model_lm(b->m->lm);
    for (uint32_t i = 0; i < lm->n_slots; i++)
        lm->reset(lm->ctx, i); /* as a new sequence wants to find it */
    memset(b->m->taken, false, lm->n_slots);
    br_free(b);
}

/* ---- requests ------------------------------------------------------------ */

static void
tell(void *ctx, const br_output *o)
{
    float lp[1 + BR_SAMPLE_MAX_LOGPROBS];
    bool over = o->kind == BR_OUTPUT_END;
    asked *a = ctx;
    br_output_event ev = {.text = o->text.p,
                          .n_text = o->text.n,
                          .logprobs = lp,
                          .end = over ? br_finish_name(o->usage->finish) : NULL,
                          .error = o->error};

    memcpy(&ev, &o->head, sizeof o->head);
    for (uint32_t i = 0; i < ev.n_logprobs; i++)
        lp[i] = o->logprobs[i].logprob;
    if (!a->fn(a->ctx, &ev) && !over)
        br_engine_cancel(a->b->engine, a->id);
    if (over)
        forget(a);
}

static br_code
submit(br_batch *b, const br_request *r, asked *a, br_status *st)
{
    br_request_desc d = br_request_defaults();
    br_sampling how;

    br_sampling_init(&how);
    how = r->how ? *r->how : how;
    if (!r->fn)
        return br_fail(st, BR_E_USAGE, "a request without a function");
    if (r->n_ids && !r->ids)
        return br_fail(st, BR_E_USAGE, "a request without tokens");
    if (r->n_logprobs > 1 + BR_SAMPLE_MAX_LOGPROBS)
        return br_fail(st, BR_E_LIMIT, "%u logprobs, at most %d", r->n_logprobs,
                       1 + BR_SAMPLE_MAX_LOGPROBS);
    d.tokens = r->ids;
    d.n_tokens = r->n_ids;
    d.sample = br_api_sample(&how);
    d.sample.logprobs = r->n_logprobs > 0;
    d.sample.n_logprobs = (int32_t)BR_MAX(r->n_logprobs, 1u) - 1;
    d.max_tokens = how.max_tokens;
    d.stop = how.stop;
    d.n_stop = how.n_stop;
    d.output = tell;
    d.ctx = a;
    return br_engine_submit(b->engine, &d, &a->id, st);
}

uint64_t
br_batch_submit(br_batch *b, const br_request *r, br_error *e)
{
    br_status spare, *st = br_api_begin(e, &spare);
    asked *a = br_api_handle(sizeof *a, st);

    if (!a)
        return 0;
    *a = (asked){.b = b, .fn = r->fn, .ctx = r->ctx};
    if (submit(b, r, a, st) != BR_OK) {
        br_free(a);
        return 0;
    }
    a->next = b->open;
    if (a->next)
        a->next->prev = a;
    b->open = a;
    b->n_open++;
    return a->id;
}

size_t
br_batch_wait(br_batch *b, int64_t timeout_ms)
{
    int64_t ns = timeout_ms < 0 ? -1 : BR_MIN(timeout_ms, 86400000) * 1000000;

    if (b->n_open && br_engine_wait(b->engine, ns))
        (void)br_engine_drain(b->engine, SIZE_MAX);
    return b->n_open;
}

void
br_batch_cancel(br_batch *b, uint64_t request)
{
    br_engine_cancel(b->engine, request);
}
