/* stored.c - responses that clients come back to (run/talks.h).
 *
 *   previous_response_id --> the turns before, oldest first, become items of
 *                            "input": the body is written anew, then read
 *   the answer has ended --> its turn is put; GET, DELETE /v1/responses/{id}
 *
 * A turn that is gone breaks what comes after it: that is said, where other
 * servers answer from half of what was spoken.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include "base/log.h"
#include "base/thread.h"
#include "http/tale.h"

#include <stdio.h>
#include <string.h>

#define PUT(out, lit) br_str_put((out), lit, sizeof(lit) - 1)

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "out of memory");
}

/* ---- asking -------------------------------------------------------------- */

/* "input" as a list: a text is a message of the user's. */
static void
put_input(const br_json *input, br_str *out)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    if (!input) { /* instructions alone */
        PUT(out, "[]");
        return;
    }
    if (input->kind == BR_J_ARR) {
        br_json_w_tree(&w, input);
        return;
    }
    PUT(out, "[{\"type\":\"message\",\"role\":\"user\",\"content\":");
    br_json_w_tree(&w, input);
    PUT(out, "}]");
}

/* The same as it is kept. */
static void
put_told(const br_json *input, br_str *out)
{
    br_json text = {.kind = BR_J_STR, .key = "content", .key_n = 7};
    br_json role = {.kind = BR_J_STR, .key = "role", .key_n = 4, .n = 4};
    br_json item = {.kind = BR_J_OBJ, .n = 2};
    br_json list = {.kind = BR_J_ARR, .n = 1};

    PUT(out, "[");
    if (input && input->kind == BR_J_STR) { /* a message of the user's */
        text.s = input->s;
        text.n = input->n;
        role.s = "user";
        role.next = &text;
        item.child = &role;
        item.last = &text;
        list.child = list.last = &item;
        input = &list;
    }
    if (input && input->kind == BR_J_ARR)
        br_items_tell(input, out);
    PUT(out, "]");
}

/* "[a,b]" behind what is there: "a,b". */
static void
put_list(br_str *out, br_text list)
{
    if (list.n <= 2)
        return;
    if (out->n)
        PUT(out, ",");
    br_str_put(out, list.p + 1, list.n - 2);
}

/* Turns as they come, newest first: one behind the other, and where each
 * begins. */
typedef struct talked {
    br_str all;
    BR_VEC(size_t) from;
    size_t most;
} talked;

static br_code
take_turn(void *ctx, const br_turn_kept *t, br_status *st)
{
    talked *k = ctx;
    br_str turn = {0};

    if (t->alive_ms)
        return br_fail(st, BR_E_USAGE, "response '%s' is not over yet", t->id);
    put_list(&turn, t->input);
    put_list(&turn, t->output);
    if (!br_vec_push(&k->from, k->all.n))
        turn.oom = true;
    br_str_put(&k->all, br_str_z(&turn), turn.n);
    k->all.oom |= turn.oom;
    br_str_fini(&turn);
    if (k->all.oom)
        return oom(st);
    return k->all.n > k->most
               ? br_fail(st, BR_E_USAGE, "the talk has over %zu bytes", k->most)
               : BR_OK;
}

/* The items of a talk up to turn `id`, without brackets. */
static br_code
put_talk(br_http *h, uint32_t tenant, const char *id, br_str *out,
         br_status *st)
{
    talked k = {.most = h->config.limits.body_bytes};
    br_code code;

    if (strncmp(id, "conv_", 5) == 0)
        return br_fail(st, BR_E_USAGE, "'%.80s' is a conversation's id", id);
    code = br_talks_walk(h->talks, tenant, id, take_turn, &k, st);
    for (size_t i = k.from.n, to = k.all.n; i-- && code == BR_OK;) {
        size_t from = k.from.at[i];

        if (out->n && to > from)
            PUT(out, ",");
        br_str_put(out, br_str_z(&k.all) + from, to - from);
        to = from;
    }
    br_str_fini(&k.all);
    br_vec_fini(&k.from);
    return code == BR_OK && out->oom ? oom(st) : code;
}

/* The request with all that came before it. */
static br_code
put_body(const br_ask *a, br_str *talk, br_str *out, br_status *st)
{
    br_json_writer w;
    br_str input = {0};

    put_input(br_json_get(a->root, "input"), &input);
    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    br_json_w_obj(&w);
    for (const br_json *m = a->root->child; m; m = m->next) {
        if (br_json_key_is(m, "input") ||
            br_json_key_is(m, "previous_response_id") ||
            br_json_key_is(m, "conversation"))
            continue;
        br_json_w_key_n(&w, (br_text){m->key, m->key_n});
        br_json_w_tree(&w, m);
    }
    br_json_w_key(&w, "input");
    PUT(out, "[");
    br_str_put(out, br_str_z(talk), talk->n);
    if (talk->n && input.n > 2)
        PUT(out, ",");
    if (input.n > 2)
        br_str_put(out, input.at + 1, input.n - 2);
    PUT(out, "]}");
    out->oom |= input.oom;
    br_str_fini(&input);
    return out->oom ? oom(st) : BR_OK;
}

static br_code
go_on(br_http *h, br_http_conn *c, br_ask *a, br_status *st)
{
    br_str talk = {0}, body = {0};
    br_code code =
        a->previous
            ? put_talk(h, c->tenant, a->previous, &talk, st)
            : br_conversation_items(h, c->tenant, a->conversation, &talk, st);

    if (code == BR_OK)
        code = put_body(a, &talk, &body, st);
    br_str_fini(&talk);
    if (code != BR_OK) {
        a->param = a->previous ? "previous_response_id" : "conversation";
        br_str_fini(&body);
        if (code == BR_E_NOT_FOUND) /* of the request, not of the path */
            st->code = code = BR_E_USAGE;
        return code == BR_E_USAGE ? br_prefix(st, "%s", a->param) : code;
    }
    br_str_fini(&c->in.body);
    c->in.body = body;
    return BR_OK;
}

br_code
br_stored_begin(br_http *h, br_http_conn *c, br_ask *a, br_status *st)
{
    br_str items = {0}, after = {0}, talk = {0};
    br_code code;
    bool kept;

    if (!h->talks &&
        (a->previous || a->conversation || a->store > 0 || a->background)) {
        a->param = a->previous       ? "previous_response_id"
                   : a->conversation ? "conversation"
                   : a->background   ? "background"
                                     : "store";
        return br_fail(st, BR_E_USAGE,
                       "%s: this server keeps no responses (brass serve "
                       "--responses FILE)",
                       a->param);
    }
    if (!h->talks)
        return BR_OK;
    if (a->background && a->store < 0) {
        a->param = "background";
        return br_fail(st, BR_E_USAGE,
                       "background: a response that is not stored could not be "
                       "come back to");
    }
    kept = a->store >= 0;
    if (kept || a->conversation)
        put_told(br_json_get(a->root, "input"), &items);
    if (a->previous || a->conversation) {
        br_str_puts(&after, a->previous ? a->previous : "");
        br_str_puts(&talk, a->conversation ? a->conversation : "");
        code = go_on(h, c, a, st);
        if (code == BR_OK) {
            br_ask_fini(a);
            code = br_ask_read(a, BR_API_RESPONSES, &h->config.sample,
                               (br_text){c->in.body.at, c->in.body.n}, st);
        }
    } else
        code = items.oom ? oom(st) : BR_OK;
    a->items = items;
    a->after = after;
    a->talk = talk;
    a->kept = kept;
    return code;
}

void
br_stored_again(br_gen *g, const br_json *turn)
{
    const br_json *kept = br_json_get(turn, "kept");
    br_text after = br_json_get_text(turn, "after"),
            talk = br_json_get_text(turn, "talk");
    br_json_writer w;

    if (!g->h->talks)
        return; /* only /v1/requests has it then */
    g->ask.kept = kept && kept->kind == BR_J_BOOL && kept->b;
    br_str_put(&g->ask.after, after.p, after.n);
    br_str_put(&g->ask.talk, talk.p, talk.n);
    br_json_w_begin(&w, &g->ask.items, 0);
    w.compact = w.utf8 = true;
    br_json_w_tree(&w, br_json_get(turn, "items"));
}

/* ---- keeping ------------------------------------------------------------- */

bool
br_stored_put(const br_turn_made *m,
              bool (*put)(br_talks *t, const br_turn_kept *turn))
{
    br_gen *g = m->g;
    br_str output = {0}, answer = {0}, cuts = {0};
    br_turn_kept t = {.tenant = g->tenant,
                      .created_ms = br_wall_ns() / 1000000,
                      .alive_ms = m->alive_ms};
    bool kept;

    br_responses_whole(g, m->ended, m->e, &output, &answer);
    (void)snprintf(t.id, sizeof t.id, "%s", g->id);
    (void)snprintf(t.previous, sizeof t.previous, "%s",
                   br_str_z(&g->ask.after));
    t.input = (br_text){br_str_z(&g->ask.items), g->ask.items.n};
    t.output = (br_text){br_str_z(&output), output.n};
    t.answer = (br_text){br_str_z(&answer), answer.n};
    br_str_put(&cuts, br_str_z(&g->cuts), g->cuts.n);
    if (m->e)
        br_str_printf(&cuts, "#%u", g->sequence);
    t.cuts = (br_text){br_str_z(&cuts), cuts.n};
    kept = !output.oom && !answer.oom && !g->ask.items.oom &&
           !g->ask.after.oom && !g->cuts.oom && !cuts.oom &&
           put(g->h->talks, &t);
    br_str_fini(&cuts);
    br_str_fini(&output);
    br_str_fini(&answer);
    return kept;
}

void
br_stored_keep(br_gen *g)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};

    if (!br_stored_put(&(br_turn_made){.g = g, .ended = true}, br_talks_put))
        br_log_limited(&limit, BR_EV_talks_full, "%s", g->id);
}

/* ---- /v1/responses/{id} -------------------------------------------------- */

br_text
br_stored_id(const br_http_conn *c, const char *tail)
{
    static const char before[] = "/v1/responses/";
    const size_t n = sizeof before - 1;

    return (br_text){c->in.path.p + n, c->in.path.n - n - strlen(tail)};
}

bool
br_stored_find(br_http *h, br_http_conn *c, const char *tail, br_turn_kept *t)
{
    br_status st = {0};
    br_code code;
    char id[BR_TALK_ID] = "";
    br_text is = br_stored_id(c, tail);

    if (is.n < sizeof id)
        memcpy(id, is.p, is.n);
    code = h->talks && memcmp(id, "conv_", 5) != 0
               ? br_talks_get(h->talks, c->tenant, id, t, &st)
               : BR_E_NOT_FOUND;
    if (code == BR_E_NOT_FOUND)
        br_reply_error(h, c, 404, NULL,
                       h->talks ? "no response of that id is kept for you"
                                : "this server keeps no responses (brass serve "
                                  "--responses FILE)");
    else if (code != BR_OK)
        br_reply_error(h, c, 503, NULL, "responses cannot be read just now");
    return code == BR_OK;
}

/* ?stream=true&starting_after=5; false: refused. */
static bool
asks_stream(br_http *h, br_http_conn *c, bool *stream, int64_t *after)
{
    br_text is = br_query_of(c, "stream"),
            behind = br_query_of(c, "starting_after");

    *stream = br_text_is(is, "true");
    *after = -1;
    if (is.n && !*stream && !br_text_is(is, "false"))
        br_reply_error(h, c, 400, "stream", "stream: must be true or false");
    else if (behind.n && !*stream)
        br_reply_error(h, c, 400, "starting_after",
                       "starting_after: events have numbers in a stream "
                       "(stream=true)");
    else if (behind.n && (!br_json_to_i64(behind, after) || *after < 0))
        br_reply_error(h, c, 400, "starting_after",
                       "starting_after: must be the number of an event");
    else
        return true;
    return false;
}

void
br_on_stored(br_http *h, br_http_conn *c)
{
    const br_gen *g = br_background_of(h, c->tenant, br_stored_id(c, ""));
    br_str out = {0};
    br_turn_kept t;
    int64_t after;
    bool stream;

    if (!asks_stream(h, c, &stream, &after))
        return;
    if (stream) {
        br_come_back(h, c, after);
        return;
    }
    if (!g && !br_stored_find(h, c, "", &t))
        return;
    if (g)
        br_background_put(g, &out);
    else if (t.alive_ms)
        br_background_other(&t, &out);
    else
        br_str_put(&out, t.answer.p, t.answer.n);
    br_reply_json(h, c, &out);
}

void
br_on_stored_items(br_http *h, br_http_conn *c)
{
    br_turn_kept t;

    if (br_stored_find(h, c, "/input_items", &t))
        br_items_page(h, c, t.input);
}

void
br_on_unstore(br_http *h, br_http_conn *c)
{
    br_status st = {0};
    br_str out = {0};
    br_gen *g = br_background_of(h, c->tenant, br_stored_id(c, ""));
    br_tale *tale;
    br_turn_kept t;

    if (!br_stored_find(h, c, "", &t))
        return;
    if (br_talks_drop(h->talks, c->tenant, t.id, &st) != BR_OK) {
        br_reply_error(h, c, 503, NULL, "responses cannot be changed just now");
        return;
    }
    tale = br_tale_of(h, c->tenant, br_stored_id(c, ""));
    if (tale)
        br_tale_drop(tale);
    if (g) {
        g->dropped = true;
        br_gen_stop(g);
    }
    PUT(&out, "{\"id\":");
    br_put_jsonz(&out, t.id);
    PUT(&out, ",\"object\":\"response\",\"deleted\":true}");
    br_reply_json(h, c, &out);
}
