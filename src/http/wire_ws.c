/* wire_ws.c - answers over /v1/stream, a WebSocket.
 *
 *   client  {"messages":[...]}   a text, as of /v1/chat/completions
 *   server  binary   each event of the engine: u32 slot, tenant, token,
 *                    generated_pos; u8 eot, preempted; u16 n; f32 logprob[n];
 *                    little endian
 *           text     {"type":"begin"|"text"|"reasoning"|"tool_call"|"end"|
 *                    "done"|"error",...}
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"
#include "http/ws.h"

#include <string.h>

#define PUT(out, lit) br_str_put((out), lit, sizeof(lit) - 1)

/* As a text frame; s is freed. */
static void
send_text(br_str *s, br_str *out)
{
    br_ws_put(out, BR_WS_TEXT, br_str_z(s), s->n);
    out->oom |= s->oom;
    br_str_fini(s);
}

/* {"type":"..","index":0 */
static br_str
open_text(const char *type, const br_choice *c)
{
    br_str s = {0};

    br_str_printf(&s, "{\"type\":\"%s\",\"index\":%u", type, c->index);
    return s;
}

static void
put_piece(const char *type, const br_choice *c, br_text t, br_str *out)
{
    br_str s = open_text(type, c);

    PUT(&s, ",\"text\":");
    br_put_json(&s, t);
    PUT(&s, "}");
    send_text(&s, out);
}

static void
begin(br_gen *g, br_str *out)
{
    br_str s = {0};

    br_str_printf(&s, "{\"type\":\"begin\",\"id\":\"%s\",\"n\":%u,\"model\":",
                  g->id, g->n_choices);
    br_put_jsonz(&s, g->model->m.name);
    PUT(&s, "}");
    send_text(&s, out);
}

static void
put_le(br_str *out, uint32_t v, int bytes)
{
    while (bytes--) {
        br_str_putc(out, (char)v);
        v >>= 8;
    }
}

static void
event(br_gen *g, br_choice *c, const br_output *o, br_str *out)
{
    br_str s = {0};

    (void)g;
    put_le(&s, o->head.slot, 4);
    put_le(&s, o->head.tenant, 4);
    put_le(&s, o->head.token, 4);
    put_le(&s, o->head.generated_pos, 4);
    put_le(&s, o->kind == BR_OUTPUT_END, 1);
    put_le(&s, o->kind == BR_OUTPUT_PREEMPTED, 1);
    put_le(&s, o->kind == BR_OUTPUT_TOKEN ? o->head.n_logprobs : 0, 2);
    for (uint32_t i = 0; o->kind == BR_OUTPUT_TOKEN && i < o->head.n_logprobs;
         i++) {
        uint32_t v;

        memcpy(&v, &o->logprobs[i].logprob, sizeof v);
        put_le(&s, v, 4);
    }
    br_ws_put(out, BR_WS_BINARY, br_str_z(&s), s.n);
    out->oom |= s.oom;
    br_str_fini(&s);
    c->lp.n = 0; /* said */
}

static void
text(br_gen *g, br_choice *c, br_text t, br_str *out)
{
    (void)g;
    put_piece("text", c, t, out);
}

static void
thought(br_gen *g, br_choice *c, br_text t, br_str *out)
{
    (void)g;
    put_piece("reasoning", c, t, out);
}

static void
call(br_gen *g, br_choice *c, br_tool_event e, br_text piece, br_str *out)
{
    br_str s = open_text("tool_call", c);

    br_str_printf(&s, ",\"call\":%zu,\"id\":", c->calls.n - 1);
    br_gen_put_call_id(g, c, c->calls.n - 1, &s);
    br_str_puts(&s, e == BR_TOOL_BEGIN ? ",\"name\":" : ",\"arguments\":");
    br_put_json(&s, e == BR_TOOL_END ? BR_TEXT("") : piece);
    br_str_puts(&s, e == BR_TOOL_END ? ",\"complete\":true}" : "}");
    send_text(&s, out);
}

static void
end(br_gen *g, br_choice *c, br_str *out)
{
    const br_usage *u = &c->usage;
    br_str s = open_text("end", c);
    br_json_writer w;

    (void)g;
    PUT(&s, ",\"finish_reason\":");
    br_put_jsonz(&s, c->calls.n && u->finish == BR_FINISH_EOG
                         ? "tool_calls"
                         : br_finish_openai(u->finish));
    PUT(&s, ",\"usage\":");
    br_json_w_begin(&w, &s, 0);
    w.compact = true;
    br_json_w_obj(&w);
    br_json_w_key_u64(&w, "prompt_tokens", u->n_prompt);
    br_json_w_key_u64(&w, "cached_tokens", u->n_cached);
    br_json_w_key_u64(&w, "completion_tokens", u->n_out);
    br_gen_put_times(&w, u);
    br_json_w_obj_end(&w);
    PUT(&s, "}");
    send_text(&s, out);
}

static void
done(br_gen *g, br_str *out)
{
    br_str s = {0};

    (void)g;
    PUT(&s, "{\"type\":\"done\"}");
    send_text(&s, out);
}

static void
error(br_gen *g, const br_error *e, br_str *out)
{
    br_str s = {0}, body = {0};

    (void)g;
    br_error_json(&body, false, e);
    PUT(&s, "{\"type\":\"error\",");
    if (body.n)
        br_str_put(&s, body.at + 1, body.n - 1);
    s.oom |= body.oom;
    br_str_fini(&body);
    send_text(&s, out);
}

static void
preempted(br_gen *g, br_choice *c, br_str *out)
{
    (void)g, (void)c, (void)out; /* the event was it */
}

const br_wire br_wire_ws = {
    .id = "ws-",
    .api = BR_API_CHAT,
    .begin = begin,
    .text = text,
    .thought = thought,
    .call = call,
    .end = end,
    .done = done,
    .error = error,
    .preempted = preempted,
    .event = event,
    .streams = true,
};

/* The first request makes it a WebSocket; messages are the others. */
void
br_on_stream(br_http *h, br_http_conn *c)
{
    if (c->ws && h->draining)
        br_reply_error(h, c, 503, NULL, "the server is shutting down");
    else if (c->ws)
        br_gen_start(h, c, &br_wire_ws);
    else if (br_http_upgrade(c))
        br_metrics_answer(&h->metrics, c->status);
    else
        br_reply_error(h, c, 400, NULL,
                       "this path wants a WebSocket of version 13");
}
