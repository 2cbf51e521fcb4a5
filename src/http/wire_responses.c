/* wire_responses.c - answers of /v1/responses.
 *
 * A stream repeats itself, as that API wants it: pieces of text, then the
 * whole part, the whole item, the whole response. Each event has its number.
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

static void
put_part(const br_gen *g, br_str *out)
{
    const br_str *t = &g->choices[0].text;

    PUT(out, "{\"type\":\"output_text\",\"text\":");
    br_put_json(out, (br_text){t->n ? t->at : "", t->n});
    PUT(out, ",\"annotations\":[],\"logprobs\":[]}");
    out->oom |= t->oom;
}

static void
put_item(const br_gen *g, const char *status, br_str *out)
{
    br_str_printf(out,
                  "{\"id\":\"msg_%s\",\"type\":\"message\",\"status\":\"%s\","
                  "\"role\":\"assistant\",\"content\":[",
                  g->id + 5, status);
    if (status[0] != 'i' || status[2] == 'c') /* completed, incomplete */
        put_part(g, out);
    PUT(out, "]}");
}

static void
put_usage(const br_gen *g, br_str *out)
{
    br_usage u = br_gen_usage(g);

    br_str_printf(out,
                  "{\"input_tokens\":%u,\"input_tokens_details\":"
                  "{\"cached_tokens\":%u},\"output_tokens\":%u,"
                  "\"output_tokens_details\":{\"reasoning_tokens\":0},"
                  "\"total_tokens\":%u}",
                  u.n_prompt, u.n_cached, u.n_out, u.n_prompt + u.n_out);
}

/* The response as it is now; ended: with its text and its usage. */
static void
put_response(const br_gen *g, bool ended, const br_error *e, br_str *out)
{
    const char *status = e           ? "failed"
                         : !ended    ? "in_progress"
                         : is_cut(g) ? "incomplete"
                                     : "completed";

    br_str_printf(out,
                  "{\"id\":\"%s\",\"object\":\"response\",\"created_at\":%lld,"
                  "\"status\":\"%s\",\"error\":",
                  g->id, (long long)g->created, status);
    if (e) {
        PUT(out, "{\"code\":\"server_error\",\"message\":");
        br_put_jsonz(out, e->msg);
        PUT(out, "}");
    } else {
        PUT(out, "null");
    }
    br_str_puts(out, ended && !e && is_cut(g)
                         ? ",\"incomplete_details\":{\"reason\":"
                           "\"max_output_tokens\"}"
                         : ",\"incomplete_details\":null");
    PUT(out, ",\"instructions\":null,\"metadata\":{},\"model\":");
    br_put_jsonz(out, g->h->model->name);
    PUT(out, ",\"output\":[");
    if (ended)
        put_item(g, is_cut(g) ? "incomplete" : "completed", out);
    br_str_printf(out,
                  "],\"parallel_tool_calls\":true,\"temperature\":%.6g,"
                  "\"tool_choice\":\"none\",\"tools\":[],\"top_p\":%.6g,"
                  "\"store\":false,\"truncation\":\"disabled\",\"usage\":",
                  (double)g->ask.sample.temperature,
                  (double)g->ask.sample.top_p);
    if (ended)
        put_usage(g, out);
    else
        PUT(out, "null");
    PUT(out, "}");
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

/* Where in the output: the same for all, there is one item with one part. */
static void
place(const br_gen *g, br_str *out)
{
    br_str_printf(out,
                  "\"item_id\":\"msg_%s\",\"output_index\":0,"
                  "\"content_index\":0,",
                  g->id + 5);
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
    event(g, "output_item.added", out);
    PUT(out, "\"output_index\":0,\"item\":");
    put_item(g, "in_progress", out);
    PUT(out, "}\n\n");
    event(g, "content_part.added", out);
    place(g, out);
    PUT(out, "\"part\":{\"type\":\"output_text\",\"text\":\"\","
             "\"annotations\":[],\"logprobs\":[]}}\n\n");
}

static void
text(br_gen *g, br_choice *c, br_text t, br_str *out)
{
    (void)c;
    event(g, "output_text.delta", out);
    place(g, out);
    PUT(out, "\"logprobs\":[],\"delta\":");
    br_put_json(out, t);
    PUT(out, "}\n\n");
}

static void
end(br_gen *g, br_choice *c, br_str *out)
{
    event(g, "output_text.done", out);
    place(g, out);
    PUT(out, "\"logprobs\":[],\"text\":");
    br_put_json(out, (br_text){br_str_z(&c->text), c->text.n});
    PUT(out, "}\n\n");
    event(g, "content_part.done", out);
    place(g, out);
    PUT(out, "\"part\":");
    put_part(g, out);
    PUT(out, "}\n\n");
    event(g, "output_item.done", out);
    PUT(out, "\"output_index\":0,\"item\":");
    put_item(g, is_cut(g) ? "incomplete" : "completed", out);
    PUT(out, "}\n\n");
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
    .end = end,
    .done = done,
    .error = error,
    .preempted = preempted,
    .whole = whole,
    .keeps_text = true,
};
