/* resume.c - answers that a restart broke off.
 *
 *   the time to drain is over --> config.resume: what was asked, by whom, the
 *                                 seed, the tokens so far; a JSON line each
 *   the next start, the model --> asked again with those tokens: it goes on
 *                                 where it was, to the bit
 *   GET /v1/requests/{id}     --> 202 until it is over, then the answer
 *
 * Clients were told so by the event `preempted` and an error that names the
 * path. The file holds what people wrote: it is its owner's alone, and its
 * lines stay until the server ends in order, so one that is killed begins anew.
 * Answers are there until the server ends.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/resume.h"

#include "base/log.h"
#include "run/keep.h"

#include <string.h>
#include <unistd.h>

enum { MOST = 256 << 20 }; /* bytes of the file */

/* ---- noting -------------------------------------------------------------- */

/* Its tokens are all there is to know: no logprobs of them are kept, and a
 * deadline does not wait for a restart. */
bool
br_resume_may(const br_gen *g)
{
    return g->h->config.resume && (g->c || g->resumed || g->ask.background) &&
           !g->cancelled && !g->dropped && !g->wire->embeds &&
           !g->wire->streams && !g->failed && !g->body.oom && !g->deadline_ns &&
           !g->ask.sample.logprobs;
}

/* What the body does not say: there its items stand behind those of before. */
static void
note_turn(br_ask *a, br_json_writer *w)
{
    w->out->oom |= a->after.oom || a->talk.oom || a->items.oom;
    br_json_w_key(w, "turn");
    br_json_w_obj(w);
    br_json_w_key_bool(w, "kept", a->kept);
    br_json_w_key_strz(w, "after", br_str_z(&a->after));
    br_json_w_key_strz(w, "talk", br_str_z(&a->talk));
    br_json_w_key(w, "items");
    br_json_w_raw(w, (br_text){br_str_z(&a->items), a->items.n});
    br_json_w_obj_end(w);
}

/* As resume.h has it, and a program before has not. */
static int64_t
counted_of(const br_resumed *r, uint32_t choice)
{
    const br_json *n = r && r->counted ? br_json_at(r->counted, choice) : NULL;

    return n ? n->i : 0;
}

/* One that goes on may have been broken off again before it had a slot. */
static void
note_counted(const br_gen *g, br_json_writer *w)
{
    br_json_w_key(w, "counted");
    br_json_w_arr(w);
    for (uint32_t i = 0; i < g->n_choices; i++) {
        const br_choice *c = &g->choices[i];
        int64_t n = c->usage.admitted ? 1 + (int64_t)c->made.n : 0;

        br_json_w_i64(w, BR_MAX(n, counted_of(g->resumed, i)));
    }
    br_json_w_arr_end(w);
}

void
br_resume_note(br_gen *g)
{
    br_str *out = &g->h->resume;
    br_json_writer w;

    out->oom |= g->cuts.oom;
    br_json_w_begin(&w, out, 0);
    w.compact = true;
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "id", g->id);
    br_json_w_key_strz(&w, "path", br_resume_path(g->wire));
    br_json_w_key_strz(&w, "model", g->model->m.name);
    br_json_w_key_u64(&w, "tenant", g->tenant);
    br_json_w_key_i64(&w, "created", g->created);
    /* any 64 bits; JSON readers are sure of 53 */
    br_json_w_key_i64(&w, "seed_high", (int64_t)(g->ask.sample.seed >> 32));
    br_json_w_key_i64(&w, "seed_low", (int64_t)(uint32_t)g->ask.sample.seed);
    br_json_w_key(&w, "choices");
    br_json_w_arr(&w);
    for (uint32_t i = 0; i < g->n_choices; i++) {
        const br_choice *c = &g->choices[i];

        br_json_w_arr(&w);
        /* The last one is drawn again: it says how the answer ends, if it does.
         */
        for (size_t t = 0; t + 1 < c->made.n; t++)
            br_json_w_i64(&w, c->made.at[t]);
        br_json_w_arr_end(&w);
    }
    br_json_w_arr_end(&w);
    note_counted(g, &w);
    if (!g->ask.background && (g->ask.kept || g->ask.talk.n))
        note_turn(&g->ask, &w);
    br_json_w_key(&w, "cuts");
    br_json_w_str(&w, (br_text){br_str_z(&g->cuts), g->cuts.n});
    br_json_w_key(&w, "body");
    br_json_w_str(&w, (br_text){br_str_z(&g->body), g->body.n});
    br_json_w_obj_end(&w);
    br_str_puts(out, "\n");
}

/* What was noted, and what waits for its model still. */
void
br_resume_save(br_http *h)
{
    const char *path = h->config.resume;
    br_status st = {0};
    bool made;

    if (!path)
        return;
    for (const br_resumed *r = h->resumed; r; r = r->next)
        if (!r->begun)
            br_str_printf(&h->resume, "%.*s\n", (int)r->line.n, r->line.p);
    if (!h->resume.n && !h->resume.oom) {
        (void)unlink(path);
        return;
    }
    made = br_keep_private(path);
    if (h->resume.oom)
        (void)br_fail(&st, BR_E_OOM, "%s: out of memory", path);
    else if (br_file_write(path, h->resume.at, h->resume.n, &st) == BR_OK)
        return;
    if (made)
        (void)unlink(path);
    br_log(BR_EV_resume_failed, "%s", st.msg);
}

void
br_resume_load(br_http *h)
{
    const char *path = h->config.resume;
    char *text;
    br_status st = {0};
    size_t n;

    if (!path)
        return;
    if (br_file_read(path, MOST, &text, &n, &st) != BR_OK) {
        if (st.code != BR_E_NOT_FOUND)
            br_log(BR_EV_resume_failed, "%s", st.msg);
        return;
    }
    h->resumed = br_resume_read(text, n, path);
    br_free(text);
}

void
br_resume_free(br_http *h)
{
    br_resumed_free(h->resumed);
    br_str_fini(&h->resume);
}

/* ---- going on ------------------------------------------------------------ */

static void
ended(br_resumed *r, const br_error *e)
{
    r->status = e->status;
    br_str_clear(&r->answer);
    br_error_json(&r->answer, r->wire == &br_wire_messages, e);
}

static void
go_on(br_http *h, br_resumed *r)
{
    br_status st = {0};

    r->begun = true;
    if (br_gen_resume(h,
                      &(br_gen_again){.r = r,
                                      .wire = r->wire,
                                      .id = r->id,
                                      .tenant = r->tenant,
                                      .created = r->created,
                                      .seed = r->seed,
                                      .turn = r->turn,
                                      .body = r->body,
                                      .cuts = r->cuts},
                      &st) == BR_OK)
        return;
    br_log(BR_EV_resume_failed, "%s: %s", r->id, st.msg);
    ended(r, &(br_error){.status = br_code_http(st.code), .msg = st.msg});
}

void
br_resume_model(br_http *h, br_served *m)
{
    br_served *was = h->model;

    for (br_resumed *r = h->draining ? NULL : h->resumed; r; r = r->next)
        if (!r->begun && strcmp(r->model, m->m.name) == 0) {
            h->model = m;
            go_on(h, r);
        }
    h->model = was;
}

void
br_resume_want(br_http *h)
{
    char comes[BR_HTTP_MODEL];

    if (h->draining || !h->config.wanted)
        return;
    for (const br_resumed *r = h->resumed; r; r = r->next)
        if (!r->begun && !br_served_find(h, r->model))
            (void)h->config.wanted(h->config.ctx, r->model, comes,
                                   sizeof comes);
}

/* A large model may take longer to come than a response is taken to be made by a
 * server that is no more. Of those that nobody made in background there is no turn
 * yet, and nothing happens. */
void
br_resume_tick(br_http *h, int64_t now_ns)
{
    if (!h->talks ||
        now_ns - h->resume_beat_ns < BR_TALK_BEAT_MS * INT64_C(1000000))
        return;
    h->resume_beat_ns = now_ns;
    for (const br_resumed *r = h->resumed; r; r = r->next)
        if (!r->begun && r->wire == &br_wire_responses &&
            br_model_is_listed(h, r->model))
            br_talks_beat(h->talks, r->tenant, r->id);
}

bool
br_resume_choice(const br_resumed *r, uint32_t choice, br_tok_ids *ids,
                 br_request_desc *d)
{
    const br_json *list = br_json_at(r->choices, choice);
    int64_t counted = counted_of(r, choice);

    d->counted = r->counted != NULL;
    d->prompt_counted = counted > 0;
    d->n_counted = (size_t)BR_MAX(counted - 1, 0);
    for (const br_json *t = list ? list->child : NULL; t; t = t->next) {
        if (!br_vec_push(ids, (int32_t)t->i))
            return false;
        d->n_done++;
    }
    return true;
}

void
br_resume_over(br_gen *g, const br_error *e)
{
    br_resumed *r = g->resumed;

    if (!e)
        g->wire->whole(g, &r->answer);
    if (r->answer.oom)
        ended(r, &(br_error){.status = 503, .msg = "out of memory"});
    else if (e)
        ended(r, e);
    else
        r->status = 200;
}

void
br_on_answer(br_http *h, br_http_conn *c)
{
    static const char before[] = "/v1/requests/";
    br_text id = {c->in.path.p + sizeof before - 1,
                  c->in.path.n - (sizeof before - 1)};
    br_str out = {0};
    br_status st = {0};

    for (const br_resumed *r = h->resumed; r; r = r->next) {
        int status = r->status ? r->status : 202;

        if (!br_text_is(id, r->id) || (!c->admin && r->tenant != c->tenant))
            continue;
        if (!r->begun && br_model_comes(h, r->model, &st) != BR_OK) {
            br_prefix(&st, "it cannot go on");
            br_reply_status(h, c, &st, "model");
            return;
        }
        if (r->status)
            br_str_put(&out, r->answer.at, r->answer.n);
        else
            br_str_printf(&out, "{\"id\":\"%s\",\"status\":\"in_progress\"}",
                          r->id);
        if (out.oom)
            br_reply_error(h, c, 503, NULL, "out of memory");
        else
            br_http_answer(c, status, "application/json",
                           r->status ? NULL : "Retry-After: 1\r\n",
                           (br_text){br_str_z(&out), out.n});
        br_metrics_answer(&h->metrics, status);
        br_str_fini(&out);
        return;
    }
    br_reply_error(h, c, 404, NULL,
                   "no such request of yours that a restart broke off");
}
