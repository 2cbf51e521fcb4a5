/* background.c - responses that are made while nobody waits.
 *
 *   POST, background: true --> its turn is put as it is, `queued`, which is
 *                              the answer, too; it goes on unconnected
 *   GET /v1/responses/{id} --> made here: as it is now; by another server: as
 *                              it was put, `failed` when that is silent
 *   POST .../{id}/cancel   --> it ends, and its turn says so; another server
 *                              looks at the turns it makes once a second
 *   the end, whichever     --> the turn's answer is put
 *
 * A client that fetches it as a stream may leave and come back: what it is told
 * is kept (tale.h), and told again from the turn (come_back.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include "base/log.h"
#include "base/thread.h"
#include "http/tale.h"

#include <string.h>

enum { TREE_BYTES = 256 << 20 }; /* of an answer of ours */

static int64_t
now_ms(void)
{
    return br_wall_ns() / 1000000;
}

/* ---- those made here ----------------------------------------------------- */

static br_code
put_turn(br_gen *g, br_status *st)
{
    g->beat_ns = br_now_ns();
    if (!br_stored_put(&(br_turn_made){.g = g, .alive_ms = now_ms()},
                       br_talks_put))
        return br_fail(st, BR_E_BUSY,
                       "background: responses cannot be kept just now");
    return br_talks_watch(g->h->talks, g->id, st); /* behind its put */
}

br_code
br_background_begin(br_gen *g, br_status *st)
{
    br_code code;

    g->tale = g->ask.stream ? br_tale_new(g->h, g->tenant, g->id) : NULL;
    if (g->ask.stream && !g->tale)
        return br_fail(st, BR_E_OOM, "out of memory");
    code = put_turn(g, st);
    if (code != BR_OK && g->tale) {
        br_tale_drop(g->tale);
        br_tale_end(g->tale);
        g->tale = NULL;
    }
    return code;
}

/* The conversation that its answer names. */
static void
talk_again(const br_turn_kept *t, br_str *out)
{
    br_json *root = NULL;
    const br_json *id = NULL;
    br_arena a;

    br_arena_init(&a, TREE_BYTES);
    if (br_json_parse(&root, &a, t->answer.p, t->answer.n, 0, NULL) == BR_OK) {
        id = br_json_get(root, "conversation");
        id = id ? br_json_get(id, "id") : NULL;
    }
    if (id && id->kind == BR_J_STR)
        br_str_put(out, id->s, id->n);
    br_arena_fini(&a);
}

/* The body as it was noted has the turns before it, and no more which they
 * were. */
void
br_background_again(br_gen *g)
{
    br_turn_kept t;
    br_status st = {0};

    if (!g->h->talks)
        g->ask.background = false; /* only /v1/requests has it then */
    else if (br_talks_get(g->h->talks, g->tenant, g->id, &t, &st) == BR_OK) {
        br_str_put(&g->ask.items, t.input.p, t.input.n);
        br_str_puts(&g->ask.after, t.previous);
        g->ask.kept = true;
        talk_again(&t, &g->ask.talk);
        br_talks_beat(g->h->talks, g->tenant, g->id);
        g->beat_ns = br_now_ns();
        if (br_talks_watch(g->h->talks, g->id, &st) != BR_OK)
            br_log(BR_EV_resume_failed, "%s: %s", g->id, st.msg);
    } else
        br_log(BR_EV_resume_failed, "%s: %s", g->id, st.msg);
}

void
br_background_end(br_gen *g, const br_error *e)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};
    br_turn_made m = {.g = g, .ended = true, .e = e};
    br_error gap = {.status = 503, .msg = "out of memory"};

    if (g->dropped)
        return;
    if (g->cancelled)
        m.e = NULL;
    else if (g->failed && !e)
        m.e = &gap;
    if (!br_stored_put(&m, br_talks_end))
        br_log_limited(&limit, BR_EV_talks_full, "%s", g->id);
}

void
br_background_tick(br_gen *g, int64_t now_ns)
{
    if (!g->ask.background || g->reading || g->dropped || g->cancelled)
        return;
    if (br_talks_is_over(g->h->talks, g->id)) { /* by another server */
        g->cancelled = true;
        br_gen_stop(g);
        return;
    }
    if (now_ns - g->beat_ns < BR_TALK_BEAT_MS * INT64_C(1000000))
        return;
    g->beat_ns = now_ns;
    br_talks_beat(g->h->talks, g->tenant, g->id);
}

br_gen *
br_background_of(const br_http *h, uint32_t tenant, br_text id)
{
    for (br_gen *g = h->gens; g; g = g->next)
        if (g->ask.background && !g->reading && !g->dropped &&
            g->tenant == tenant && br_text_is(id, g->id))
            return g;
    return NULL;
}

void
br_background_put(const br_gen *g, br_str *out)
{
    br_str items = {0};

    br_responses_whole(g, false, NULL, &items, out);
    br_str_fini(&items);
}

/* ---- those of other servers ---------------------------------------------- */

/* An answer with another status; why: it failed, NULL: it did not. */
static void
put_with(br_text answer, const char *status, const char *why, br_str *out)
{
    br_json_writer w;
    br_json *root = NULL;
    br_arena a;

    br_arena_init(&a, TREE_BYTES);
    if (br_json_parse(&root, &a, answer.p, answer.n, 0, NULL) != BR_OK ||
        root->kind != BR_J_OBJ) {
        br_arena_fini(&a);
        br_str_put(out, answer.p, answer.n);
        return;
    }
    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    br_json_w_obj(&w);
    for (const br_json *m = root->child; m; m = m->next) {
        if (br_json_key_is(m, "status")) {
            br_json_w_key_strz(&w, "status", status);
            continue;
        }
        br_json_w_key_n(&w, (br_text){m->key, m->key_n});
        if (why && br_json_key_is(m, "error")) {
            br_json_w_obj(&w);
            br_json_w_key_strz(&w, "code", "server_error");
            br_json_w_key_strz(&w, "message", why);
            br_json_w_obj_end(&w);
        } else
            br_json_w_tree(&w, m);
    }
    br_json_w_obj_end(&w);
    br_arena_fini(&a);
}

bool
br_background_lives(const br_turn_kept *t)
{
    return t->alive_ms > now_ms() - BR_TALK_DEAD_MS;
}

void
br_background_other(const br_turn_kept *t, br_str *out)
{
    if (!t->alive_ms || br_background_lives(t))
        br_str_put(out, t->answer.p, t->answer.n);
    else
        put_with(t->answer, "failed",
                 "the server that made it ended before it was over", out);
}

/* ---- POST /v1/responses/{id}/cancel -------------------------------------- */

static bool
cancel_other(br_http *h, br_turn_kept *t, br_str *out)
{
    put_with(t->answer, "cancelled", NULL, out);
    t->answer = (br_text){br_str_z(out), out->n};
    return !out->oom && br_talks_end(h->talks, t);
}

void
br_on_response_cancel(br_http *h, br_http_conn *c)
{
    static const char tail[] = "/cancel";
    static const char mine[] = "\"background\":true";
    br_gen *g = br_background_of(h, c->tenant, br_stored_id(c, tail));
    br_str out = {0};
    br_turn_kept t;

    if (g) {
        if (!g->cancelled)
            br_gen_stop(g);
        g->cancelled = true;
        br_background_put(g, &out);
    } else if (!br_stored_find(h, c, tail, &t)) {
        return;
    } else if (!t.alive_ms) {
        if (!memmem(t.answer.p, t.answer.n, mine, sizeof mine - 1)) {
            br_reply_error(h, c, 400, NULL,
                           "only a response made in background can be "
                           "cancelled; close the connection of others");
            return;
        }
        br_str_put(&out, t.answer.p, t.answer.n); /* it is over already */
    } else if (!cancel_other(h, &t, &out)) {
        br_str_fini(&out);
        br_reply_error(h, c, 503, NULL, "responses cannot be changed just now");
        return;
    }
    br_reply_json(h, c, &out);
}
