/* wire_responses.c - answers of /v1/responses.
 *
 * A stream repeats itself, as that API wants it: pieces of a thought, a text or
 * a call's arguments, then the whole part, the whole item, the whole response.
 * Each event has its number.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#define PUT(out, lit) br_str_put((out), lit, sizeof(lit) - 1)

static bool
is_cut(const br_gen *g)
{
    br_finish f = g->choices[0].usage.finish;

    return f == BR_FINISH_LENGTH || f == BR_FINISH_CONTEXT;
}

/* What an answer is made of, in this order: a thought, a message, calls. */
enum { NONE, THOUGHT, TEXT, CALL };

static bool
has_message(const br_choice *c)
{
    return c->text.n || (!c->calls.n && !c->thought.n);
}

/* Those from row `from` on; none where none were asked for. */
static void
put_logprobs(const br_gen *g, size_t from, br_str *out)
{
    if (g->lp_row && from != SIZE_MAX)
        br_gen_put_logprobs(g, &g->choices[0], from, out);
    else
        PUT(out, "[]");
}

/* begun: as it is when it is added. */
static void
put_part(const br_gen *g, int block, br_text t, bool begun, br_str *out)
{
    br_str_printf(out, "{\"type\":\"%s\",\"text\":",
                  block == THOUGHT ? "reasoning_text" : "output_text");
    br_put_json(out, t);
    if (block != THOUGHT) {
        PUT(out, ",\"annotations\":[],\"logprobs\":");
        put_logprobs(g, begun ? SIZE_MAX : 0, out);
    }
    PUT(out, "}");
}

static br_text
text_of(const br_choice *c, int block, br_str *out)
{
    const br_str *s = block == THOUGHT ? &c->thought : &c->text;

    out->oom |= s->oom;
    return (br_text){s->n ? s->at : "", s->n};
}

/* "rs_..", "msg_.." or, of the latest call, "fc_.." */
static void
put_item_id(const br_gen *g, int block, size_t call, br_str *out)
{
    static const char *const prefix[] = {"", "rs_", "msg_", "fc_"};

    br_str_printf(out, "\"%s%s", prefix[block], g->id + 5);
    if (block == CALL)
        br_str_printf(out, "%02zx", call);
    PUT(out, "\"");
}

/* begun: as it is when it is added, empty. */
static void
put_item(const br_gen *g, int block, size_t i, bool begun, br_str *out)
{
    const br_choice *c = &g->choices[0];
    bool cut =
        block == CALL ? !c->calls.at[i].ended : is_cut(g) || g->cancelled;
    const char *status = begun ? "in_progress"
                         : cut ? "incomplete"
                               : "completed";

    PUT(out, "{\"id\":");
    put_item_id(g, block, i, out);
    if (block == CALL) {
        const br_tool_call *call = &c->calls.at[i];

        br_str_printf(
            out, ",\"type\":\"function_call\",\"status\":\"%s\",\"call_id\":",
            status);
        br_gen_put_call_id(g, c, i, out);
        PUT(out, ",\"name\":");
        br_put_json(out, (br_text){call->name.at, call->name.n});
        PUT(out, ",\"arguments\":");
        br_put_json(out, begun ? BR_TEXT("")
                               : (br_text){call->args.n ? call->args.at : "",
                                           call->args.n});
        PUT(out, "}");
        out->oom |= call->args.oom || call->name.oom;
        return;
    }
    if (block == THOUGHT && has_message(c))
        status = begun ? status : "completed";
    br_str_printf(out,
                  block == THOUGHT ? ",\"type\":\"reasoning\",\"status\":\"%"
                                     "s\",\"summary\":[],\"content\":["
                                   : ",\"type\":\"message\",\"status\":\"%s\","
                                     "\"role\":\"assistant\",\"content\":[",
                  status);
    if (!begun)
        put_part(g, block, text_of(c, block, out), false, out);
    PUT(out, "]}");
}

static void
put_items(const br_gen *g, br_str *out)
{
    const br_choice *c = &g->choices[0];
    const char *comma = "";

    if (c->thought.n) {
        put_item(g, THOUGHT, 0, false, out);
        comma = ",";
    }
    if (has_message(c)) {
        br_str_puts(out, comma);
        put_item(g, TEXT, 0, false, out);
        comma = ",";
    }
    for (size_t i = 0; i < c->calls.n; i++) {
        br_str_puts(out, comma);
        put_item(g, CALL, i, false, out);
        comma = ",";
    }
}

/* What was asked for as "name"; other: where it was not. */
static void
put_asked(const br_gen *g, const char *name, const char *other, br_str *out)
{
    const br_json *v = g->ask.root ? br_json_get(g->ask.root, name) : NULL;
    br_json_writer w;

    br_str_printf(out, ",\"%s\":", name);
    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    if (v && v->kind != BR_J_NULL)
        br_json_w_tree(&w, v);
    else
        br_str_puts(out, other);
}

/* "tool_choice":..,"tools":[..] as they were asked for */
static void
put_tools(const br_ask *a, br_str *out)
{
    static const char *const words[] = {"none", "auto", "required"};
    const br_json *list = a->tool_list;
    br_json_writer w;

    PUT(out, "\"tool_choice\":");
    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    if (a->tool_choice_as)
        br_json_w_tree(&w, a->tool_choice_as);
    else
        br_put_jsonz(out, words[a->tool_choice]);
    PUT(out, ",\"tools\":");
    br_json_w_begin(&w, out, 0);
    w.compact = w.utf8 = true;
    br_json_w_arr(&w);
    for (const br_json *t = list ? list->child : NULL; t; t = t->next) {
        br_json_w_obj(&w);
        br_json_w_key_strz(&w, "type", "function");
        for (const br_json *m = br_json_get(t, "function")->child; m;
             m = m->next) {
            br_json_w_key_n(&w, (br_text){m->key, m->key_n});
            br_json_w_tree(&w, m);
        }
        br_json_w_obj_end(&w);
    }
    br_json_w_arr_end(&w);
}

static void
put_usage(const br_gen *g, br_str *out)
{
    br_usage u = br_gen_usage(g);

    br_str_printf(out,
                  "{\"input_tokens\":%u,\"input_tokens_details\":"
                  "{\"cached_tokens\":%u},\"output_tokens\":%u,"
                  "\"output_tokens_details\":{\"reasoning_tokens\":%u},"
                  "\"total_tokens\":%u}",
                  u.n_prompt, u.n_cached, u.n_out, br_gen_thought_tokens(g),
                  u.n_prompt + u.n_out);
}

static const char *
status_of(const br_gen *g, bool ended, const br_error *e)
{
    if (e)
        return "failed";
    if (g->cancelled)
        return "cancelled";
    if (!ended)
        return g->ask.background && !g->choices[0].line.token_ns
                   ? "queued"
                   : "in_progress";
    return is_cut(g) ? "incomplete" : "completed";
}

/* The response as it is now; ended: with its text and its usage. */
static void
put_response(const br_gen *g, bool ended, const br_error *e, br_str *out)
{
    const br_choice *c = &g->choices[0];
    bool has_items = c->text.n || c->thought.n || c->calls.n || !g->cancelled;

    br_str_printf(out,
                  "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,"
                  "\"status\":\"%s\",\"error\":",
                  g->id, (long long)g->created, status_of(g, ended, e));
    if (e) {
        PUT(out, "{\"code\":\"server_error\",\"message\":");
        br_put_jsonz(out, e->msg);
        PUT(out, "}");
    } else {
        PUT(out, "null");
    }
    br_str_puts(out, ended && !e && !g->cancelled && is_cut(g)
                         ? ",\"incomplete_details\":{\"reason\":"
                           "\"max_output_tokens\"}"
                         : ",\"incomplete_details\":null");
    put_asked(g, "instructions", "null", out);
    put_asked(g, "metadata", "{}", out);
    put_asked(g, "max_output_tokens", "null", out);
    PUT(out, ",\"model\":");
    br_put_jsonz(out, g->model->m.name);
    PUT(out, ",\"output\":[");
    if (ended && has_items)
        put_items(g, out);
    br_str_printf(out, "],\"parallel_tool_calls\":%s,\"temperature\":%.6g,",
                  g->ask.serial ? "false" : "true",
                  (double)g->ask.sample.temperature);
    put_tools(&g->ask, out);
    br_str_printf(out,
                  ",\"top_p\":%.6g,"
                  "\"store\":%s,\"background\":%s,"
                  "\"previous_response_id\":",
                  (double)g->ask.sample.top_p, g->ask.kept ? "true" : "false",
                  g->ask.background ? "true" : "false");
    if (g->ask.after.n)
        br_put_json(out, (br_text){g->ask.after.at, g->ask.after.n});
    else
        PUT(out, "null");
    PUT(out, ",\"conversation\":");
    if (g->ask.talk.n) {
        PUT(out, "{\"id\":");
        br_put_json(out, (br_text){g->ask.talk.at, g->ask.talk.n});
        PUT(out, "}");
    } else
        PUT(out, "null");
    PUT(out, ",\"truncation\":\"disabled\",\"usage\":");
    if (ended)
        put_usage(g, out);
    else
        PUT(out, "null");
    PUT(out, "}");
}

void
br_responses_whole(const br_gen *g, bool ended, const br_error *e,
                   br_str *items, br_str *all)
{
    PUT(items, "[");
    if (ended && !e)
        put_items(g, items);
    PUT(items, "]");
    put_response(g, ended, e, all);
}

/* ---- streams ------------------------------------------------------------- */

static void
event(br_gen *g, const char *type, br_str *out)
{
    br_str_printf(out,
                  "event: response.%s\ndata: {\"type\":\"response.%s\","
                  "\"sequence_number\":%u,",
                  type, type, g->sequence++);
}

/* "item_id":..,"output_index":0, of the block that is open */
static void
place(const br_gen *g, br_str *out)
{
    const br_choice *c = &g->choices[0];

    PUT(out, "\"item_id\":");
    put_item_id(g, g->block, c->calls.n - 1, out);
    br_str_printf(out, ",\"output_index\":%u,", g->n_blocks - 1);
    if (g->block != CALL)
        PUT(out, "\"content_index\":0,");
}

static void
item_event(br_gen *g, const char *type, bool begun, br_str *out)
{
    event(g, type, out);
    br_str_printf(out, "\"output_index\":%u,\"item\":", g->n_blocks - 1);
    put_item(g, g->block, g->choices[0].calls.n - 1, begun, out);
    PUT(out, "}\n\n");
}

static void
part_event(br_gen *g, const char *type, br_text t, bool begun, br_str *out)
{
    event(g, type, out);
    place(g, out);
    PUT(out, "\"part\":");
    put_part(g, g->block, t, begun, out);
    PUT(out, "}\n\n");
}

static void
close_block(br_gen *g, br_str *out)
{
    br_choice *c = &g->choices[0];
    br_text t;

    if (g->block == NONE)
        return;
    event(g,
          g->block == CALL   ? "function_call_arguments.done"
          : g->block == TEXT ? "output_text.done"
                             : "reasoning_text.done",
          out);
    place(g, out);
    if (g->block == CALL) {
        br_str *args = &c->calls.at[c->calls.n - 1].args;
        br_str *name = &c->calls.at[c->calls.n - 1].name;

        PUT(out, "\"name\":");
        br_put_json(out, (br_text){name->at, name->n});
        PUT(out, ",\"arguments\":");
        br_put_json(out, (br_text){br_str_z(args), args->n});
        PUT(out, "}\n\n");
    } else {
        t = text_of(c, g->block, out);
        if (g->block == TEXT) {
            PUT(out, "\"logprobs\":");
            put_logprobs(g, 0, out);
            PUT(out, ",");
        }
        PUT(out, "\"text\":");
        br_put_json(out, t);
        PUT(out, "}\n\n");
        part_event(g, "content_part.done", t, false, out);
    }
    item_event(g, "output_item.done", false, out);
    g->block = NONE;
}

static void
open_block(br_gen *g, uint8_t block, br_str *out)
{
    if (g->block == block && block != CALL)
        return;
    close_block(g, out);
    g->block = block;
    g->n_blocks++;
    item_event(g, "output_item.added", true, out);
    if (block != CALL)
        part_event(g, "content_part.added", BR_TEXT(""), true, out);
}

static void
begin(br_gen *g, br_str *out)
{
    event(g, "created", out);
    PUT(out, "\"response\":");
    put_response(g, false, NULL, out);
    PUT(out, "}\n\n");
    event(g, "in_progress", out);
    PUT(out, "\"response\":");
    put_response(g, false, NULL, out);
    PUT(out, "}\n\n");
    if (!g->tools && !g->think)
        open_block(g, TEXT, out);
}

/* For who comes back when it is told again: retell.h. */
static void
note_cut(br_gen *g, size_t bytes, size_t rows)
{
    if (g->ask.kept)
        br_str_printf(&g->cuts, rows ? "%zu:%zu," : "%zu,", bytes, rows);
}

static void
put_delta(br_gen *g, const char *type, br_text t, br_str *out)
{
    br_choice *c = &g->choices[0];

    note_cut(g, t.n,
             g->block == TEXT && g->lp_row ? (c->lp.n - c->lp_sent) / g->lp_row
                                           : 0);
    event(g, type, out);
    place(g, out);
    if (g->block == TEXT) {
        PUT(out, "\"logprobs\":");
        put_logprobs(g, c->lp_sent, out);
        PUT(out, ",");
        c->lp_sent = c->lp.n;
    }
    PUT(out, "\"delta\":");
    br_put_json(out, t);
    PUT(out, "}\n\n");
}

static void
text(br_gen *g, br_choice *c, br_text t, br_str *out)
{
    (void)c;
    open_block(g, TEXT, out);
    put_delta(g, "output_text.delta", t, out);
}

static void
thought(br_gen *g, br_choice *c, br_text t, br_str *out)
{
    (void)c;
    open_block(g, THOUGHT, out);
    put_delta(g, "reasoning_text.delta", t, out);
}

static void
call(br_gen *g, br_choice *c, br_tool_event e, br_text piece, br_str *out)
{
    (void)c;
    if (e == BR_TOOL_BEGIN)
        open_block(g, CALL, out);
    else if (e == BR_TOOL_ARGS)
        put_delta(g, "function_call_arguments.delta", piece, out);
    else
        close_block(g, out);
}

static void
end(br_gen *g, br_choice *c, br_str *out)
{
    if (!g->n_blocks)
        open_block(g, TEXT, out);
    close_block(g, out);
    (void)c;
    event(g, is_cut(g) ? "incomplete" : "completed", out);
    PUT(out, "\"response\":");
    put_response(g, true, NULL, out);
    PUT(out, "}\n\n");
}

static void
error(br_gen *g, const br_error *e, br_str *out)
{
    event(g, "failed", out);
    PUT(out, "\"response\":");
    put_response(g, false, e, out);
    PUT(out, "}\n\n");
}

static void
preempted(br_gen *g, br_choice *c, br_str *out)
{
    (void)g, (void)c;
    PUT(out, ": preempted\n\n"); /* its clients know no such event */
}

static void
done(br_gen *g, br_str *out)
{
    (void)g, (void)out;
}

static void
whole(br_gen *g, br_str *out)
{
    put_response(g, true, NULL, out);
}

const br_wire br_wire_responses = {
    .id = "resp_",
    .api = BR_API_RESPONSES,
    .begin = begin,
    .text = text,
    .thought = thought,
    .call = call,
    .end = end,
    .done = done,
    .error = error,
    .preempted = preempted,
    .whole = whole,
    .keeps_text = true,
};

void
br_on_responses(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &br_wire_responses);
}

static void
count(br_gen *g, br_str *out)
{
    br_str_printf(out,
                  "{\"object\":\"response.input_tokens\",\"input_tokens\":%zu}",
                  g->h->ids.n);
}

static const br_wire counting = {
    .id = "", .api = BR_API_RESPONSES, .prompt = count};

void
br_on_input_tokens(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &counting);
}

/* llama-server's, in the same words. */
static const br_wire counting_chat = {
    .id = "", .api = BR_API_CHAT, .prompt = count};

void
br_on_chat_input_tokens(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &counting_chat);
}
