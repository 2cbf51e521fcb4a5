/* gen.c - see gen.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include "base/log.h"
#include "base/thread.h"
#include "http/tale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Waiting at a slow client's door: more, and its slots make no tokens. */
    HOLD_BYTES = 64 << 10,
    WAVE = 16, /* texts of one request that wait for their embeddings */
    LONG_BYTES = 16 << 10, /* of prompts: 2 ms of the loop's time */
};
#define KEEP_ALIVE_NS INT64_C(15000000000)

/* ---- small pieces -------------------------------------------------------- */

/* Choices of one prompt follow each other. What one of them read the others find
 * known: that is no news of what was known before. */
static uint32_t
cached_of(const br_gen *g)
{
    uint32_t n = (uint32_t)g->ask.n, sum = 0;

    for (uint32_t i = 0; i < g->n_choices; i += n) {
        uint32_t least = g->choices[i].usage.n_cached;

        for (uint32_t k = 1; k < n; k++)
            least = BR_MIN(least, g->choices[i + k].usage.n_cached);
        sum += least;
    }
    return BR_MIN(sum, g->n_prompt);
}

br_usage
br_gen_usage(const br_gen *g)
{
    br_usage u = g->choices[0].usage;

    for (uint32_t i = 1; i < g->n_choices; i++) {
        const br_usage *c = &g->choices[i].usage;

        u.n_out += c->n_out;
        u.queue_ns = BR_MAX(u.queue_ns, c->queue_ns);
        u.prefill_ns += c->prefill_ns;
        u.decode_ns = BR_MAX(u.decode_ns, c->decode_ns);
        u.kv_page_seconds += c->kv_page_seconds;
    }
    u.n_prompt = g->n_prompt;
    u.n_cached = cached_of(g);
    return u;
}

uint32_t
br_gen_thought_tokens(const br_gen *g)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < g->n_choices; i++)
        n += g->choices[i].n_thought;
    return n;
}

void
br_gen_put_times(br_json_writer *w, const br_usage *u)
{
    const struct {
        const char *key;
        double value;
    } rows[] = {{"queue_ms", (double)u->queue_ns * 1e-6},
                {"prefill_ms", (double)u->prefill_ns * 1e-6},
                {"decode_ms", (double)u->decode_ns * 1e-6},
                {"kv_page_seconds", u->kv_page_seconds}};

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "%.3f", rows[i].value);

        br_json_w_key(w, rows[i].key);
        br_json_w_raw(w, (br_text){text, (size_t)n});
    }
}

/* ---- life ---------------------------------------------------------------- */

/* Whether what comes is told as it comes. */
static bool
is_told(const br_gen *g)
{
    return g->ask.stream && (g->c || g->tale);
}

static void
send_scratch(br_gen *g)
{
    br_str *s = &g->h->scratch;

    if (g->tale && s->n && !s->oom && !br_tale_put(g->tale, s->at, s->n))
        g->tale = NULL;
    if (g->c && s->n && !s->oom)
        br_http_put(g->c, s->at, s->n);
    if (s->oom) { /* a client must not take a gap for the answer */
        br_str_fini(s);
        g->failed = true;
        if (g->tale)
            br_tale_break(g->tale, BR_TALE_HOLES);
        g->tale = NULL;
        if (g->c)
            g->c->closing = true;
    }
    br_str_clear(s);
}

static void
destroy(br_gen *g)
{
    br_http *h = g->h;

    for (uint32_t i = 0; i < g->n_choices; i++) {
        br_str_fini(&g->choices[i].text);
        br_vec_fini(&g->choices[i].lp);
        br_timeline_fini(&g->choices[i].line);
        br_think_cap_free(g->choices[i].cap);
        br_matcher_free(g->choices[i].matcher);
        br_tool_reader_fini(&g->choices[i].tools);
        br_think_reader_fini(&g->choices[i].think);
        br_str_fini(&g->choices[i].thought);
        for (size_t k = 0; k < g->choices[i].calls.n; k++) {
            br_str_fini(&g->choices[i].calls.at[k].name);
            br_str_fini(&g->choices[i].calls.at[k].args);
        }
        br_vec_fini(&g->choices[i].calls);
        br_vec_fini(&g->choices[i].made);
    }
    *(g->prev ? &g->prev->next : &h->gens) = g->next;
    if (g->next)
        g->next->prev = g->prev;
    if (g->ask.background)
        br_talks_unwatch(h->talks, g->id);
    h->n_gens--;
    g->model->n_gens--;
    g->model->asked_ns = br_now_ns();
    br_str_fini(&g->head);
    br_str_fini(&g->body);
    br_str_fini(&g->cuts);
    br_str_fini(&g->text);
    for (size_t i = 0; g->read && i < BR_MAX(g->ask.prompts.n, (size_t)1); i++)
        br_vec_fini(&g->read[i]);
    br_free(g->read);
    br_ask_fini(&g->ask);
    br_free(g);
}

static void
cancel(br_gen *g)
{
    for (uint32_t i = 0; i < g->n_choices; i++)
        if (!g->choices[i].ended)
            br_engine_cancel(g->model->m.engine, g->choices[i].id);
}

static br_code begin_choice(br_gen *g, br_choice *c, br_status *st);

static void
hold(br_gen *g, bool held)
{
    if (g->held == held)
        return;
    g->held = held;
    for (uint32_t i = 0; i < g->n_choices; i++)
        if (!g->choices[i].ended)
            br_engine_hold(g->model->m.engine, g->choices[i].id, held);
}

void
br_gen_gone(br_http_conn *c, bool too_slow)
{
    br_gen *g = c->job;

    if (!g)
        return;
    g->h->metrics.too_slow += too_slow;
    g->c = NULL;
    c->job = NULL;
    br_log(BR_EV_http_gone, "%s %s", g->id,
           too_slow ? "client too slow" : "client gone");
    cancel(g);
    atomic_store_explicit(&g->unwanted, true, memory_order_relaxed);
    if (!g->n_open && !g->reading)
        destroy(g);
}

void
br_gen_drained(br_http_conn *c)
{
    if (c->job)
        hold(c->job, false);
}

void
br_gen_cancel_all(br_http *h)
{
    for (br_gen *g = h->gens; g; g = g->next) {
        g->kept |= br_resume_may(g);
        cancel(g);
    }
}

void
br_gen_stop(br_gen *g)
{
    cancel(g);
}

void
br_gen_tick(br_http *h, int64_t now_ns)
{
    for (br_gen *g = h->gens; g; g = g->next) {
        br_background_tick(g, now_ns);
        if (g->c && g->ask.stream && !g->reading &&
            now_ns - g->c->last_put_ns > KEEP_ALIVE_NS)
            br_http_put(g->c, g->c->ws ? "\x89\0" : ": keep-alive\n\n",
                        g->c->ws ? 2 : 14);
    }
}

/* ---- the end of it ------------------------------------------------------- */

static void
answer_whole(br_gen *g)
{
    br_choice *bad = br_gen_failed(g);
    br_str out = {0};

    if (bad) {
        br_error e = br_gen_error(bad);

        br_reply_fail(g->h, g->c, &e);
        return;
    }
    g->wire->whole(g, &out);
    br_reply_json(g->h, g->c, &out);
}

static void
answer_stream_end(br_gen *g)
{
    br_choice *bad = br_gen_failed(g);

    for (uint32_t i = 0; g->kept && i < g->n_choices; i++)
        if (g->choices[i].usage.finish == BR_FINISH_CANCELLED)
            g->wire->preempted(g, &g->choices[i], &g->h->scratch);
    if (bad && !g->failed) {
        br_error e = br_gen_error(bad);

        g->wire->error(g, &e, &g->h->scratch);
    }
    g->wire->done(g, &g->h->scratch);
    send_scratch(g);
    if (g->tale)
        br_tale_end(g->tale);
    if (!g->c)
        return;
    br_http_end(g->c);
    br_metrics_answer(&g->h->metrics, 200);
}

static void
answer_later(br_gen *g)
{
    br_choice *bad = br_gen_failed(g);
    br_error e = {0};

    if (g->kept)
        return;
    if (bad)
        e = br_gen_error(bad);
    br_resume_over(g, bad ? &e : NULL);
}

static void
finish(br_gen *g)
{
    br_choice *bad = br_gen_failed(g);
    br_error e = {0};

    g->kept &= bad && bad->usage.finish == BR_FINISH_CANCELLED;
    if (g->kept)
        br_resume_note(g);
    if (g->resumed)
        answer_later(g);
    if (g->ask.background && !g->kept) {
        if (bad)
            e = br_gen_error(bad);
        br_background_end(g, bad ? &e : NULL);
    } else if (g->ask.kept && !g->failed && !bad)
        br_stored_keep(g);
    if (g->ask.talk.n && !g->failed && !bad)
        br_conversation_add(g);
    if (g->c)
        g->c->job = NULL;
    if (is_told(g))
        answer_stream_end(g);
    else if (g->c)
        answer_whole(g);
    destroy(g);
}

/* ---- events of the engine ------------------------------------------------ */

static void
keep_logprobs(br_choice *c, const br_output *o)
{
    br_gen *g = c->gen;

    /* those of the answer: it begins behind a thought and has no calls */
    if (br_think_now(&c->think) || c->calls.n)
        return;
    /* Fewer tokens may come than were asked for: rows are of one length. */
    for (uint32_t i = 0; o->head.n_logprobs && i < g->lp_row; i++) {
        br_logprob l = {-1, NAN};

        if (i < o->head.n_logprobs)
            l = o->logprobs[i];
        g->failed |= !br_vec_push(&c->lp, l);
    }
}

void
br_gen_put_text(br_choice *c, br_text t)
{
    br_gen *g = c->gen;

    if (!g->ask.stream || g->wire->keeps_text)
        br_str_put(&c->text, t.p, t.n);
    if (is_told(g) && t.n)
        g->wire->text(g, c, t, &g->h->scratch);
}

static void
put_thought(br_choice *c, br_text t)
{
    br_gen *g = c->gen;

    if (g->ask.hide_thoughts)
        return;
    if (!g->ask.stream || g->wire->keeps_text)
        br_str_put(&c->thought, t.p, t.n);
    if (is_told(g))
        g->wire->thought(g, c, t, &g->h->scratch);
}

void
br_gen_put_call_id(const br_gen *g, const br_choice *c, size_t i, br_str *out)
{
    const char *hex = strpbrk(g->id, "-_");

    if (g->tools->numbered) /* templates show it to the model */
        br_str_printf(out, "\"functions.%s:%u\"",
                      br_str_z(&c->calls.at[i].name), c->calls.at[i].number);
    else
        br_str_printf(out, "\"call_%s%02x%02zx\"", hex ? hex + 1 : g->id,
                      c->index, i);
}

static void
on_tool_event(void *ctx, br_tool_event e, br_text piece)
{
    br_choice *c = ctx;
    br_gen *g = c->gen;
    br_tool_call *call;

    if (e == BR_TOOL_TEXT) {
        br_gen_put_text(c, piece);
        c->lp_text = c->lp.n; /* none where the text took them along */
        return;
    }
    if (e == BR_TOOL_BEGIN)
        c->lp.n = c->lp_text;
    if (e == BR_TOOL_BEGIN && !br_vec_push(&c->calls, ((br_tool_call){0})))
        g->h->scratch.oom = true;
    if (!c->calls.n)
        return;
    call = &c->calls.at[c->calls.n - 1];
    if (e == BR_TOOL_BEGIN) {
        br_str_put(&call->name, piece.p, piece.n);
        call->number = c->tools.number;
    } else if (e == BR_TOOL_END)
        call->ended = true;
    else if ((!g->ask.stream || g->wire->keeps_text))
        br_str_put(&call->args, piece.p, piece.n);
    if (is_told(g))
        g->wire->call(g, c, e, piece, &g->h->scratch);
}

static void
on_part(void *ctx, bool thought, br_text t)
{
    br_choice *c = ctx;

    if (thought)
        put_thought(c, t);
    else if (!c->tools.s)
        br_gen_put_text(c, t);
    else if (!br_tool_read(&c->tools, t, false, on_tool_event, c))
        c->gen->h->scratch.oom =
            true; /* the grammar lets nothing else through */
}

static void
on_text(br_choice *c, br_text t, bool last)
{
    br_gen *g = c->gen;

    if (!br_think_read(&c->think, t, last, on_part, c) ||
        (last && c->tools.s &&
         !br_tool_read(&c->tools, (br_text){"", 0}, true, on_tool_event, c)))
        g->h->scratch.oom = true;
    if (last && c->tools.s) /* the rest is of a call that was not finished */
        c->lp.n = c->lp_text;
}

/* The tenant has as many waiting as it may, these among them: no reason to refuse
 * the rest of a list. That one is as if it had not been tried. */
static bool
waits_for_others(br_gen *g, br_status *st)
{
    if (st->code != BR_E_QUOTA || !g->n_open || !g->wire->embeds)
        return false;
    *st = (br_status){0};
    g->n_begun--;
    g->n_prompt -= (uint32_t)g->h->ids.n;
    br_gen_swap_read(g, g->n_begun);
    return true;
}

/* The next text of many, when one has its embedding. */
static void
begin_next(br_gen *g)
{
    br_choice *c = &g->choices[g->n_begun];
    br_status st = {0};

    if (g->n_begun == g->n_choices || !g->c || g->failed ||
        begin_choice(g, c, &st) == BR_OK || waits_for_others(g, &st))
        return;
    c->usage.finish = BR_FINISH_FAILED;
    c->code = st.code;
    snprintf(c->error, sizeof c->error, "%.150s", st.msg);
    g->n_begun = g->n_choices;
    cancel(g);
}

static void
tell_done(const br_gen *g, const br_choice *c)
{
    const br_usage *u = &c->usage;
    br_logged r = {.tenant = c->line.tenant,
                   .ended_ms = br_wall_ns() / 1000000,
                   .prompt_tokens = u->n_prompt,
                   .cached_tokens = u->n_cached,
                   .completion_tokens = u->n_out,
                   .preempted = u->n_preempted,
                   .queue_ms = (double)u->queue_ns * 1e-6,
                   .prefill_ms = (double)u->prefill_ns * 1e-6,
                   .decode_ms = (double)u->decode_ns * 1e-6,
                   .kv_page_seconds = u->kv_page_seconds};

    if (!g->h->config.done)
        return;
    (void)snprintf(r.id, sizeof r.id, "%s.%u", g->id, c->index);
    (void)snprintf(r.model, sizeof r.model, "%.*s", (int)sizeof r.model - 1,
                   g->model->m.name);
    (void)snprintf(r.finish, sizeof r.finish, "%s", br_finish_name(u->finish));
    g->h->config.done(g->h->config.ctx, &r);
}

static void
on_end(br_choice *c, const br_output *o)
{
    br_gen *g = c->gen;

    c->ended = true;
    c->usage = *o->usage;
    c->code = o->code;
    snprintf(c->error, sizeof c->error, "%s", o->error ? o->error : "");
    br_metrics_usage(&g->model->metrics, &c->usage);
    if (g->h->config.resume)
        for (uint32_t i = 0; i < o->n_tokens; i++)
            g->failed |= !br_vec_push(&c->made, o->tokens[i]);
    if (!g->kept || c->usage.finish != BR_FINISH_CANCELLED)
        tell_done(g, c); /* else it is not over */
    c->line.usage = c->usage;
    c->line.ended = true;
    br_timeline_keep(g->h, &c->line);
    br_log(BR_EV_http_done, "%s.%u %s: %u + %u tokens, first after %.1f ms",
           g->id, c->index, br_finish_name(c->usage.finish), c->usage.n_prompt,
           c->usage.n_out, (double)c->usage.first_ns * 1e-6);
    if (is_told(g) && strcmp(br_finish_openai(c->usage.finish), "error") != 0)
        g->wire->end(g, c, &g->h->scratch);
    g->n_open--;
    if (o->embedding) {
        br_str_put(&c->text, (const char *)o->embedding,
                   o->n_embedding * sizeof *o->embedding);
        if (g->wire->embedded)
            g->wire->embedded(g, c);
        g->failed |= c->text.oom;
        begin_next(g);
    }
}

static void
on_output(void *ctx, const br_output *o)
{
    br_choice *c = ctx;
    br_gen *g = c->gen;
    int64_t gap;

    g->h->model = g->model;
    if (o->kind == BR_OUTPUT_PROGRESS) {
        if (g->c)
            g->wire->progress(g, c, o->progress, &g->h->scratch);
        send_scratch(g);
        return;
    }
    if (o->prompt)
        br_gen_put_prompt(c, o);
    if (o->kind == BR_OUTPUT_TOKEN) {
        keep_logprobs(c, o);
        gap = br_timeline_mark(&c->line, false);
        if (gap)
            br_metrics_gap(&g->model->metrics, gap);
        c->n_thought += br_think_now(&c->think);
        br_gen_note_time(c, o);
    }
    if (o->kind == BR_OUTPUT_PREEMPTED)
        (void)br_timeline_mark(&c->line, true);
    if (g->wire->event && g->c)
        g->wire->event(g, c, o, &g->h->scratch);
    if (o->kind == BR_OUTPUT_PREEMPTED && is_told(g))
        g->wire->preempted(g, c, &g->h->scratch);
    if (o->kind == BR_OUTPUT_END && o->usage->finish == BR_FINISH_STOP &&
        o->usage->stop < g->ask.n_stop)
        c->tools.stop = br_text_z(g->ask.stop[o->usage->stop]);
    if (o->text.n || o->kind == BR_OUTPUT_END)
        on_text(c, o->text, o->kind == BR_OUTPUT_END);
    if (o->kind == BR_OUTPUT_END)
        on_end(c, o);
    send_scratch(g);
    if (g->c && br_http_pending(g->c) > HOLD_BYTES)
        hold(g, true);
    if (!g->n_open)
        finish(g);
}

/* ---- the beginning ------------------------------------------------------- */

static br_code
submit(br_gen *g, br_choice *c, br_status *st)
{
    br_request_desc d = br_request_defaults();
    const br_ask *a = &g->ask;
    int64_t now = br_now_ns();
    size_t n = g->h->ids.n;
    br_code code;

    if (g->resumed && !br_resume_choice(g->resumed, c->index, &g->h->ids, &d))
        return br_fail(st, BR_E_OOM, "out of memory");
    d.tenant = g->tenant;
    d.session = br_gen_session(g);
    d.tokens = g->h->ids.at;
    d.n_tokens = g->h->ids.n;
    d.sample = a->sample;
    d.sample.seed += c->index; /* n choices are n texts */
    d.max_tokens = a->max_tokens;
    d.stop = a->stop;
    d.n_stop = a->n_stop;
    d.stop_tokens = a->stop_tokens;
    d.n_stop_tokens = a->n_stop_tokens;
    d.ignore_eog = a->ignore_eog;
    d.embed = g->wire->embeds;
    d.comes_again = d.embed && g->n_open;
    d.taken = g->resumed;
    d.score = a->echo && a->sample.logprobs;
    d.progress = a->progress && a->stream && g->wire->progress;
    d.deadline_ns = g->deadline_ns;
    d.output = on_output;
    d.ctx = c;
    BR_TRY(br_gen_hook(g, c, &d.hook, st));
    d.show_special = g->tools || (g->think && br_think_is_control(g->think));
    br_think_begin_in(&c->think, g->think, g->thinks);
    code = br_engine_submit(g->model->m.engine, &d, &c->id, st);
    g->h->ids.n = n; /* the next choice's, too */
    if (code != BR_OK)
        return code;
    c->ended = false;
    c->line = (br_timeline){.tenant = d.tenant,
                            .choice = c->index,
                            .row = g->h->n_rows++,
                            .begun_ns = now};
    memcpy(c->line.id, g->id, sizeof c->line.id);
    g->n_open++;
    return BR_OK;
}

/* Choices in turn: those of one prompt follow each other. */
static br_code
begin_choice(br_gen *g, br_choice *c, br_status *st)
{
    uint32_t n = (uint32_t)g->ask.n;

    g->n_begun++;
    if (c->index % n == 0) {
        BR_TRY(br_gen_prompt(g, c->index / n, st));
        if (!g->h->ids.n) {
            g->ask.param = br_gen_prompt_field(g);
            return br_fail(st, BR_E_USAGE, "%s: it has no tokens",
                           g->ask.param);
        }
        g->n_prompt += (uint32_t)g->h->ids.n;
    }
    BR_TRY(br_gen_echo(g, c, st));
    return br_gen_which(g, submit(g, c, st), st);
}

static br_code
submit_all(br_gen *g, br_status *st)
{
    uint32_t n = g->wire->embeds ? WAVE : UINT32_MAX;

    BR_TRY(br_gen_check_queue(g, st));
    BR_TRY(br_gen_form(g, st)); /* not kept while the prompts were read */
    while (g->n_begun < BR_MIN(n, g->n_choices))
        if (begin_choice(g, &g->choices[g->n_begun], st) != BR_OK)
            return waits_for_others(g, st) ? BR_OK : st->code;
    return BR_OK;
}

static br_code
allow_tools(br_gen *g, br_ask *a, br_status *st)
{
    const br_http_model *m = &g->model->m;
    br_status why = {0};

    g->tools = m->chat ? br_chat_tools(m->chat) : NULL;
    a->param = "tools";
    if (!g->tools)
        return br_fail(st, BR_E_USAGE,
                       "tools: the model's chat template calls them in no way "
                       "that this server knows");
    if (br_tool_grammar(g->tools, a->tools.at, a->tools.n, a->tool_choice,
                        !a->serial, &a->grammar, &why) != BR_OK)
        return br_fail(st, why.code == BR_E_OOM ? BR_E_OOM : BR_E_USAGE, "%s",
                       why.msg);
    a->param = NULL;
    return BR_OK;
}

static br_code
check_ask(br_gen *g, br_ask *a, br_status *st)
{
    const br_http_model *m = &g->model->m;

    if (g->c)
        BR_TRY(br_deadline_of(g->c, &g->deadline_ns, st));
    if (g->wire->embeds)
        BR_TRY(br_embed_check(g, a, st));
    if (!a->seeded)
        br_os_random(&a->sample.seed, sizeof a->sample.seed);
    g->think = m->chat && g->wire->thought ? br_chat_think(m->chat) : NULL;
    if (a->tools.n && a->tool_choice != BR_TOOL_NONE)
        BR_TRY(allow_tools(g, a, st));
    a->param = "stop_token_ids";
    for (size_t i = 0; i < a->n_stop_tokens; i++)
        if (a->stop_tokens[i] >= br_tok_count(m->tok))
            return br_fail(st, BR_E_USAGE,
                           "stop_token_ids: there is no token %d (of %d)",
                           a->stop_tokens[i], br_tok_count(m->tok));
    a->param = a->sample.n_bias ? "logit_bias" : NULL;
    BR_TRY(br_sample_params_check(&a->sample, br_tok_count(m->tok), st));
    a->param = NULL;
    return BR_OK;
}

static br_gen *
create(br_http *h, br_http_conn *c, const br_wire *wire, br_ask *a)
{
    size_t n = (size_t)a->n * BR_MAX(a->prompts.n, (size_t)1);
    br_gen *g = br_try_calloc(1, sizeof *g + n * sizeof g->choices[0]);
    uint8_t r[12];
    size_t at;

    if (!g)
        return NULL;
    *g = (br_gen){.h = h, .c = c, .wire = wire, .ask = *a};
    g->tenant = c ? c->tenant : 0;
    g->model = h->model;
    g->model->n_gens++;
    atomic_store_explicit(&g->model->used, ++h->n_asked, memory_order_relaxed);
    g->n_choices = (uint32_t)n;
    g->created = br_wall_ns() / 1000000000;
    g->lp_row = a->sample.logprobs ? 1 + (uint32_t)a->sample.n_logprobs : 0;
    for (uint32_t i = 0; i < n; i++)
        g->choices[i] = (br_choice){.gen = g, .index = i, .ended = true};
    br_os_random(r, sizeof r);
    at = (size_t)snprintf(g->id, sizeof g->id, "%s", wire->id);
    br_check(at + 2 * sizeof r < sizeof g->id);
    br_hex(r, sizeof r, g->id + at);
    if (c)
        memcpy(c->id, g->id, sizeof c->id);
    g->next = h->gens;
    if (g->next)
        g->next->prev = g;
    h->gens = g;
    h->n_gens++;
    return g;
}

/* Not all of it could be submitted: what was goes, and hears of nobody. */
static void
give_up(br_gen *g, const br_status *st)
{
    br_str_clear(&g->h->scratch);
    br_reply_status(g->h, g->c, st,
                    !g->ask.param && st->code == BR_E_LIMIT
                        ? br_gen_prompt_field(g) /* what does not fit */
                        : g->ask.param);
    g->c = NULL;
    cancel(g);
    if (!g->n_open)
        destroy(g);
}

static void
begin(br_gen *g)
{
    br_http_conn *c = g->c;
    br_str early = g->h->scratch; /* the echo of prompts */

    c->job = g;
    if (!g->ask.stream)
        return;
    if (g->tale) { /* its client follows it, as others may */
        g->c = NULL;
        c->job = NULL;
        br_tale_follow(g->tale, c, -1);
    } else
        br_http_stream(c, 200, "text/event-stream; charset=utf-8",
                       "Cache-Control: no-cache\r\n");
    g->h->scratch = (br_str){0};
    g->wire->begin(g, &g->h->scratch);
    br_str_put(&g->h->scratch, br_str_z(&early), early.n);
    br_str_fini(&early);
    send_scratch(g);
}

/* All prompts are texts or tokens; the answer begins. */
static void
go_on(br_gen *g, br_status *st)
{
    br_http *h = g->h;
    br_http_conn *c = g->c;
    br_str out = {0};
    br_code code = st->code;

    if (code == BR_OK)
        code = g->wire->prompt ? br_gen_prompt(g, 0, st) : submit_all(g, st);
    if (code == BR_OK && g->ask.background && !g->wire->prompt)
        code = br_background_begin(g, st);
    if (code != BR_OK) {
        g->ask.background = false;
        give_up(g, st);
    } else if (g->wire->prompt) {
        g->wire->prompt(g, &out);
        destroy(g);
        br_reply_json(h, c, &out);
    } else {
        br_metrics_asked(&g->model->metrics, g->ask.n, g->ask.max_tokens);
        if (g->ask.background && !g->ask.stream) {
            g->c = NULL; /* it has its answer */
            br_background_put(g, &out);
            br_reply_json(h, c, &out);
        } else
            begin(g);
    }
}

void
br_gen_was_read(br_gen *g)
{
    g->reading = false;
    g->h->model = g->model;
    br_str_clear(&g->h->scratch);
    if (!g->c) {
        destroy(g);
        return;
    }
    g->c->job = NULL;
    go_on(g, &g->read_st);
}

void
br_gen_answer(br_http *h, br_http_conn *c, const br_wire *wire, br_ask *a)
{
    br_gen *g = create(h, c, wire, a);
    br_status st = {0};
    size_t bytes = 0;

    if (!g) {
        (void)br_fail(&st, BR_E_OOM, "out of memory");
        br_reply_status(h, c, &st, NULL);
        br_ask_fini(a);
        return;
    }
    br_str_clear(&h->scratch);
    if (h->config.resume && !wire->prompt)
        br_str_put(&g->body, br_str_z(&c->in.body), c->in.body.n);
    if ((!wire->prompt && check_ask(g, &g->ask, &st) != BR_OK) ||
        br_gen_texts(g, &bytes, &st) != BR_OK || bytes <= LONG_BYTES ||
        br_gen_read(g, &st) != BR_OK)
        go_on(g, &st);
}

void
br_gen_start(br_http *h, br_http_conn *c, const br_wire *wire)
{
    br_text body = {br_str_z(&c->in.body), c->in.body.n};
    br_status st = {0};
    br_code code;
    br_ask a;

    code = br_ask_read(&a, wire->api, &h->config.sample, body, &st);
    /* before the body changes: while it waits for its model it stays as it is */
    if (code == BR_OK && br_choose_model(h, c, a.model, &st) != BR_OK) {
        br_no_model(h, c, &st);
        br_ask_fini(&a);
        return;
    }
    if (code == BR_OK && wire->api == BR_API_RESPONSES)
        code = br_stored_begin(h, c, &a, &st);
    a.stream |= wire->streams;
    if (code == BR_OK) {
        br_gen_answer(h, c, wire, &a);
        return;
    }
    if (code == BR_E_LIMIT) /* of the request's form, not of the context */
        st.code = BR_E_USAGE;
    br_reply_status(h, c, &st, a.param);
    br_ask_fini(&a);
}

br_code
br_gen_resume(br_http *h, const br_gen_again *again, br_status *st)
{
    size_t bytes;
    br_code code;
    br_ask a;
    br_gen *g;

    code =
        br_ask_read(&a, again->wire->api, &h->config.sample, again->body, st);
    a.stream = false;
    a.seeded = true;
    a.sample.seed = again->seed;
    g = code == BR_OK ? create(h, NULL, again->wire, &a) : NULL;
    if (!g) {
        br_ask_fini(&a);
        return code != BR_OK ? code : br_fail(st, BR_E_OOM, "out of memory");
    }
    g->tenant = again->tenant;
    g->created = again->created;
    snprintf(g->id, sizeof g->id, "%s", again->id);
    br_str_put(&g->body, again->body.p, again->body.n);
    if (again->cuts.n)
        br_str_put(&g->cuts, again->cuts.p, again->cuts.n);
    g->resumed = again->r;
    if (g->ask.background)
        br_background_again(g);
    else if (again->turn)
        br_stored_again(g, again->turn);
    code = check_ask(g, &g->ask, st);
    if (code == BR_OK)
        code = br_gen_texts(g, &bytes, st);
    if (code == BR_OK)
        code = submit_all(g, st);
    if (code == BR_OK)
        return BR_OK;
    g->resumed = NULL; /* its error is there already */
    cancel(g);
    if (!g->n_open)
        destroy(g);
    return code;
}
