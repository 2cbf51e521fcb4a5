/* wire_anthropic.c - answers of /v1/messages, and its count of tokens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#define PUT(out, lit) br_str_put((out), lit, sizeof(lit) - 1)

static const char *
stop_reason(const br_choice *c)
{
    const br_usage *u = &c->usage;

    if (c->calls.n && u->finish == BR_FINISH_EOG)
        return "\"tool_use\"";
    switch (u->finish) {
    case BR_FINISH_LENGTH: return "\"max_tokens\"";
    case BR_FINISH_CONTEXT: return "\"model_context_window_exceeded\"";
    case BR_FINISH_STOP:
        return u->stop == UINT32_MAX ? "\"end_turn\"" : "\"stop_sequence\"";
    default: return "\"end_turn\"";
    }
}

static void
put_stop(const br_gen *g, const br_choice *c, br_str *out)
{
    const br_usage *u = &c->usage;

    PUT(out, "\"stop_reason\":");
    br_str_puts(out, stop_reason(c));
    PUT(out, ",\"stop_sequence\":");
    if (u->finish == BR_FINISH_STOP && u->stop < g->ask.n_stop)
        br_put_jsonz(out, g->ask.stop[u->stop]);
    else
        PUT(out, "null");
}

/* All of a message up to its content. */
static void
put_head(const br_gen *g, br_str *out)
{
    br_str_printf(out, "{\"id\":\"%s\",\"type\":\"message\",", g->id);
    PUT(out, "\"role\":\"assistant\",\"model\":");
    br_put_jsonz(out, g->model->m.name);
    PUT(out, ",\"content\":[");
}

static void
put_usage(const br_gen *g, uint32_t n_cached, uint32_t n_out, br_str *out)
{
    br_str_printf(out,
                  "{\"input_tokens\":%u,\"cache_creation_input_tokens\":0,"
                  "\"cache_read_input_tokens\":%u,\"output_tokens\":%u}",
                  g->n_prompt - n_cached, n_cached, n_out);
}

/* Blocks of a stream: what is open, and the number of the next. */
enum { NONE, TEXT, CALL, THOUGHT };

static void
close_block(br_gen *g, br_str *out)
{
    if (g->block != NONE)
        br_str_printf(out,
                      "event: content_block_stop\ndata: "
                      "{\"type\":\"content_block_stop\",\"index\":%u}\n\n",
                      g->sequence - 1);
    g->block = NONE;
}

static void
open_block(br_gen *g, uint8_t what, br_str *out)
{
    close_block(g, out);
    g->block = what;
    br_str_printf(out,
                  "event: content_block_start\ndata: {\"type\":"
                  "\"content_block_start\",\"index\":%u,\"content_block\":",
                  g->sequence++);
}

static void
open_text(br_gen *g, br_str *out)
{
    open_block(g, TEXT, out);
    PUT(out, "{\"type\":\"text\",\"text\":\"\"}}\n\n");
}

static void
put_delta(const br_gen *g, const char *type, const char *key, br_text t,
          br_str *out)
{
    br_str_printf(out,
                  "event: content_block_delta\ndata: "
                  "{\"type\":\"content_block_delta\",\"index\":%u,"
                  "\"delta\":{\"type\":\"%s\",\"%s\":",
                  g->sequence - 1, type, key);
    br_put_json(out, t);
    PUT(out, "}}\n\n");
}

/* {"type":"tool_use","id":"call_..","name":"..","input": */
static void
put_use(const br_gen *g, const br_choice *c, size_t i, br_str *out)
{
    const br_str *name = &c->calls.at[i].name;

    PUT(out, "{\"type\":\"tool_use\",\"id\":");
    br_gen_put_call_id(g, c, i, out);
    PUT(out, ",\"name\":");
    br_put_json(out, (br_text){name->at, name->n});
    PUT(out, ",\"input\":");
}

static void
call(br_gen *g, br_choice *c, br_tool_event e, br_text piece, br_str *out)
{
    if (e == BR_TOOL_BEGIN) {
        open_block(g, CALL, out);
        put_use(g, c, c->calls.n - 1, out);
        PUT(out, "{}}}\n\n");
    } else if (e == BR_TOOL_ARGS) {
        put_delta(g, "input_json_delta", "partial_json", piece, out);
    } else {
        close_block(g, out);
    }
}

static void
begin(br_gen *g, br_str *out)
{
    PUT(out, "event: message_start\ndata: {\"type\":\"message_start\","
             "\"message\":");
    put_head(g, out);
    PUT(out, "],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":");
    put_usage(g, 0, 0, out);
    PUT(out, "}}\n\n");
    if (!g->tools && !g->think)
        open_text(g, out);
    PUT(out, "event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

static void
text(br_gen *g, br_choice *c, br_text t, br_str *out)
{
    (void)c;
    if (g->block != TEXT)
        open_text(g, out);
    put_delta(g, "text_delta", "text", t, out);
}

static void
thought(br_gen *g, br_choice *c, br_text t, br_str *out)
{
    (void)c;
    if (g->block != THOUGHT) {
        open_block(g, THOUGHT, out);
        PUT(out, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}"
                 "\n\n");
    }
    put_delta(g, "thinking_delta", "thinking", t, out);
}

static void
end(br_gen *g, br_choice *c, br_str *out)
{
    close_block(g, out);
    PUT(out, "event: message_delta\ndata: {\"type\":\"message_delta\","
             "\"delta\":{");
    put_stop(g, c, out);
    PUT(out, "},\"usage\":");
    put_usage(g, BR_MIN(c->usage.n_cached, g->n_prompt), c->usage.n_out, out);
    PUT(out, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

static void
done(br_gen *g, br_str *out)
{
    (void)g, (void)out; /* message_stop was the last */
}

static void
error(br_gen *g, const br_error *e, br_str *out)
{
    (void)g;
    PUT(out, "event: error\ndata: ");
    br_error_json(out, true, e);
    PUT(out, "\n\n");
}

static void
preempted(br_gen *g, br_choice *c, br_str *out)
{
    (void)g, (void)c;
    PUT(out, "event: preempted\ndata: {\"type\":\"preempted\"}\n\n");
}

static void
whole(br_gen *g, br_str *out)
{
    br_choice *c = &g->choices[0];

    put_head(g, out);
    if (c->thought.n) {
        PUT(out, "{\"type\":\"thinking\",\"thinking\":");
        br_put_json(out, (br_text){c->thought.at, c->thought.n});
        PUT(out, ",\"signature\":\"\"}");
        br_str_puts(out, c->text.n || c->calls.n ? "," : "");
    }
    if (c->text.n || (!c->calls.n && !c->thought.n)) {
        PUT(out, "{\"type\":\"text\",\"text\":");
        br_put_json(out, (br_text){br_str_z(&c->text), c->text.n});
        PUT(out, "}");
    }
    for (size_t i = 0; i < c->calls.n; i++) {
        br_str *args = &c->calls.at[i].args;

        br_str_puts(out, i || c->text.n ? "," : "");
        put_use(g, c, i, out);
        /* max_tokens may have cut the last one off: that is no JSON */
        br_str_puts(out, c->calls.at[i].ended ? br_str_z(args) : "{}");
        PUT(out, "}");
        out->oom |= args->oom || c->calls.at[i].name.oom;
    }
    PUT(out, "],");
    put_stop(g, c, out);
    PUT(out, ",\"usage\":");
    put_usage(g, BR_MIN(c->usage.n_cached, g->n_prompt), c->usage.n_out, out);
    PUT(out, "}");
    out->oom |= c->text.oom || c->thought.oom;
}

const br_wire br_wire_messages = {
    .id = "msg_",
    .api = BR_API_MESSAGES,
    .begin = begin,
    .text = text,
    .thought = thought,
    .call = call,
    .end = end,
    .done = done,
    .error = error,
    .preempted = preempted,
    .whole = whole,
};

static void
count(br_gen *g, br_str *out)
{
    br_str_printf(out, "{\"input_tokens\":%zu}", g->h->ids.n);
}

static const br_wire counting = {
    .id = "", .api = BR_API_COUNT, .prompt = count};

void
br_on_count_tokens(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &counting);
}

void
br_on_messages(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &br_wire_messages);
}
