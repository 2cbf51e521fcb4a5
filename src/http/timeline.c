/* timeline.c - when what happened to a request, for chrome://tracing.
 *
 * The whole server's has the engines' latest steps, too; a tenant would see in
 * them what others do, so it does not.
 *
 *   while it runs: the times of its tokens, in its choice
 *   once it ended: kept in a ring, the oldest goes; its times in another
 *
 * Both have a size that no request changes. An answer of more than 1024 tokens
 * shows each second, fourth, ... of them, and says how many it leaves out.
 *
 * A tenant sees its own requests; the whole server's is the admin's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include "base/thread.h"

#include <string.h>

void
br_timeline_fini(br_timeline *t)
{
    br_vec_fini(&t->mark);
}

/* Each second token goes. What lost its slot, seldom and worth a look, stays. */
static void
thin_out(br_timeline *t)
{
    bool even = false;
    size_t n = 0;

    for (size_t i = 0; i < t->mark.n; i++) {
        bool token = !(t->mark.at[i] & 1);

        even ^= token;
        if (even || !token)
            t->mark.at[n++] = t->mark.at[i];
    }
    t->left_out += (uint32_t)(t->mark.n - n);
    t->mark.n = n;
    t->thin++;
}

int64_t
br_timeline_mark(br_timeline *t, bool preempted)
{
    int64_t now = br_now_ns(), before = t->token_ns;
    uint64_t us = (uint64_t)(now - t->begun_ns) / 1000;

    if (t->mark.n == BR_TIMELINE_MARKS && t->thin < 31)
        thin_out(t);
    if ((!preempted && t->n_tokens & ((1u << t->thin) - 1)) ||
        t->mark.n == BR_TIMELINE_MARKS ||
        !br_vec_push(&t->mark, us << 1 | preempted))
        t->left_out++;
    if (preempted)
        return 0;
    t->n_tokens++;
    t->token_ns = now;
    return before ? now - before : 0;
}

void
br_timeline_keep(br_http *h, br_timeline *t)
{
    br_timeline *to = &h->timeline[h->n_timelines++ % BR_COUNT(h->timeline)];

    t->first = h->n_marks;
    t->n_marks = (uint32_t)t->mark.n;
    for (size_t i = 0; i < t->mark.n; i++)
        h->marks[h->n_marks++ % BR_COUNT(h->marks)] = t->mark.at[i];
    br_vec_fini(&t->mark);
    *to = *t;
    *t = (br_timeline){0};
}

size_t
br_timeline_kept(const br_http *h, const br_timeline *t, uint64_t *first)
{
    uint64_t end = t->first + t->n_marks;
    uint64_t oldest = h->n_marks - BR_MIN(h->n_marks, BR_COUNT(h->marks));

    *first = BR_MAX(t->first, oldest);
    return end > *first ? (size_t)(end - *first) : 0;
}

/* ---- drawing -------------------------------------------------------------- */

typedef struct drawing {
    br_http *h;
    br_http_conn *c;
    br_json_writer w;
    br_str out;
    br_text id; /* of one request; empty: all */
    bool any;
} drawing;

static void
begin_event(drawing *d, const br_timeline *t, const char *name,
            const char *phase, int64_t ns)
{
    br_json_w_obj(&d->w);
    br_json_w_key_strz(&d->w, "name", name);
    br_json_w_key_strz(&d->w, "ph", phase);
    br_json_w_key_f64(&d->w, "ts",
                      (double)(t->begun_ns - d->h->started_ns + ns) * 1e-3);
    br_json_w_key_u64(&d->w, "pid", t->tenant);
    br_json_w_key_u64(&d->w, "tid", t->row);
}

static void
span(drawing *d, const br_timeline *t, const char *name, int64_t from,
     int64_t ns)
{
    if (ns <= 0)
        return;
    begin_event(d, t, name, "X", from);
    br_json_w_key_f64(&d->w, "dur", (double)ns * 1e-3);
    br_json_w_obj_end(&d->w);
}

static void
put_args(drawing *d, const br_timeline *t, size_t left_out)
{
    const br_usage *u = &t->usage;

    br_json_w_key(&d->w, "args");
    br_json_w_obj(&d->w);
    br_json_w_key_strz(&d->w, "id", t->id);
    br_json_w_key_u64(&d->w, "choice", t->choice);
    br_json_w_key_strz(&d->w, "end",
                       t->ended ? br_finish_name(u->finish) : "running");
    br_json_w_key_u64(&d->w, "prompt_tokens", u->n_prompt);
    br_json_w_key_u64(&d->w, "cached_tokens", u->n_cached);
    br_json_w_key_u64(&d->w, "completion_tokens", u->n_out);
    br_json_w_key_u64(&d->w, "preempted", u->n_preempted);
    br_json_w_key_u64(&d->w, "parked", u->n_parked);
    br_json_w_key_f64(&d->w, "kv_page_seconds", u->kv_page_seconds);
    br_json_w_key_u64(&d->w, "marks_left_out", left_out);
    br_json_w_obj_end(&d->w);
}

static void
put_mark(drawing *d, const br_timeline *t, uint64_t mark)
{
    begin_event(d, t, mark & 1 ? "preempted" : "token", "i",
                (int64_t)(mark >> 1) * 1000);
    br_json_w_key_strz(&d->w, "s", "t");
    br_json_w_obj_end(&d->w);
}

static void
draw(drawing *d, const br_timeline *t)
{
    const br_usage *u = &t->usage;
    int64_t all =
        t->ended ? u->first_ns + u->decode_ns : br_now_ns() - t->begun_ns;
    uint64_t first;
    size_t n = br_timeline_kept(d->h, t, &first);

    if (!t->begun_ns || (d->id.n && !br_text_is(d->id, t->id)) ||
        (!d->c->admin && t->tenant != d->c->tenant))
        return;
    d->any = true;
    if (t->ended && !u->n_out) /* never had a token: queue and prefill alone */
        all = u->queue_ns + u->prefill_ns;
    begin_event(d, t, "request", "X", 0);
    br_json_w_key_f64(&d->w, "dur", (double)all * 1e-3);
    put_args(d, t, t->left_out + (t->n_marks - n));
    br_json_w_obj_end(&d->w);
    span(d, t, "queue", 0, u->queue_ns);
    span(d, t, "prefill", u->queue_ns, u->prefill_ns);
    span(d, t, "decode", u->first_ns, u->decode_ns);
    for (size_t i = 0; i < n; i++) /* kept */
        put_mark(d, t, d->h->marks[(first + i) % BR_COUNT(d->h->marks)]);
    for (size_t i = 0; i < t->mark.n; i++) /* it runs */
        put_mark(d, t, t->mark.at[i]);
}

/* A process of their own for each model. */
static void
draw_steps(drawing *d, const br_served *m, uint64_t pid)
{
    br_step_note *s = br_try_calloc(BR_ENGINE_NOTES, sizeof *s);
    uint32_t n = s ? br_engine_notes(m->m.engine, s) : 0;
    br_timeline t = {.tenant = (uint32_t)pid, .begun_ns = d->h->started_ns};

    d->out.oom |= !s;
    begin_event(d, &t, "process_name", "M", 0);
    br_json_w_key(&d->w, "args");
    br_json_w_obj(&d->w);
    br_json_w_key_strz(&d->w, "name", m->m.name);
    br_json_w_obj_end(&d->w);
    br_json_w_obj_end(&d->w);
    for (uint32_t i = 0; i < n; i++) {
        begin_event(d, &t, "step", "X", s[i].begun_ns - t.begun_ns);
        br_json_w_key_f64(&d->w, "dur", (double)s[i].ns * 1e-3);
        br_json_w_key(&d->w, "args");
        br_json_w_obj(&d->w);
        br_json_w_key_u64(&d->w, "rows", s[i].rows);
        br_json_w_key_u64(&d->w, "decode", s[i].decode);
        br_json_w_key_u64(&d->w, "running", s[i].running);
        br_json_w_key_u64(&d->w, "queued", s[i].queued);
        br_json_w_key_f64(&d->w, "plan_us", (double)s[i].plan_ns * 1e-3);
        br_json_w_obj_end(&d->w);
        br_json_w_obj_end(&d->w);
    }
    br_free(s);
}

static void
draw_all(br_http *h, br_http_conn *c, br_text id)
{
    drawing d = {.h = h, .c = c, .id = id};
    uint64_t pid = BR_MAX_TENANTS; /* no tenant's */

    br_json_w_begin(&d.w, &d.out, 0);
    d.w.compact = true;
    br_json_w_obj(&d.w);
    br_json_w_key_strz(&d.w, "displayTimeUnit", "ms");
    br_json_w_key(&d.w, "traceEvents");
    br_json_w_arr(&d.w);
    for (size_t i = 0; i < BR_COUNT(h->timeline); i++)
        draw(&d, &h->timeline[i]);
    for (const br_gen *g = h->gens; g; g = g->next)
        for (uint32_t i = 0; i < g->n_choices; i++)
            draw(&d, &g->choices[i].line);
    if (!id.n && (c->admin || h->open))
        for (const br_served *m = h->served; m; m = m->next)
            draw_steps(&d, m, pid++);
    br_json_w_arr_end(&d.w);
    br_json_w_obj_end(&d.w);
    if (d.any || !id.n) {
        br_reply_json(h, c, &d.out);
        return;
    }
    br_str_fini(&d.out);
    br_reply_error(h, c, 404, NULL,
                   "no such request of yours, or it was too long ago");
}

void
br_on_request_trace(br_http *h, br_http_conn *c)
{
    static const char before[] = "/v1/requests/", after[] = "/trace";

    draw_all(
        h, c,
        (br_text){c->in.path.p + sizeof before - 1,
                  c->in.path.n - (sizeof before - 1) - (sizeof after - 1)});
}

void
br_on_trace(br_http *h, br_http_conn *c)
{
    draw_all(h, c, (br_text){0});
}
