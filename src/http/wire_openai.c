/* wire_openai.c - answers of /v1/chat/completions and /v1/completions.
 *
 * A chunk of a stream is written by hand from three pieces that are prepared
 * once (g->head) or constant: it is the hot path of the whole server.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include <math.h>
#include <string.h>

#define PUT(out, lit) br_str_put((out), lit, sizeof(lit) - 1)

static bool
is_chat(const br_gen *g)
{
    return g->wire == &br_wire_chat;
}

/* ---- logprobs ------------------------------------------------------------ */

/* JSON has no infinity: what cannot be drawn is -9999, as OpenAI has it. The
 * first token of a prompt has none. */
static void
put_logprob(br_str *out, float v)
{
    if (isnan(v))
        PUT(out, "null");
    else
        br_str_printf(out, "%.6g", isfinite(v) ? (double)v : -9999.0);
}

/* "token":" the","logprob":-0.1,"bytes":[32,116,104,101] */
static void
put_token(const br_gen *g, const br_logprob *l, br_str *out)
{
    br_text bytes = br_tok_bytes(g->model->m.tok, l->id);

    PUT(out, "\"token\":");
    br_put_json(out, bytes);
    PUT(out, ",\"logprob\":");
    put_logprob(out, l->logprob);
    PUT(out, ",\"bytes\":[");
    for (size_t i = 0; i < bytes.n; i++) {
        if (i)
            PUT(out, ",");
        br_put_u64(out, (uint8_t)bytes.p[i]);
    }
    PUT(out, "]");
}

void
br_gen_put_logprobs(const br_gen *g, const br_choice *c, size_t from,
                    br_str *out)
{
    PUT(out, "[");
    for (size_t i = from; i + g->lp_row <= c->lp.n; i += g->lp_row) {
        br_str_puts(out, i > from ? ",{" : "{");
        put_token(g, &c->lp.at[i], out);
        PUT(out, ",\"top_logprobs\":[");
        for (uint32_t k = 1; k < g->lp_row && c->lp.at[i + k].id >= 0; k++) {
            br_str_puts(out, k > 1 ? ",{" : "{");
            put_token(g, &c->lp.at[i + k], out);
            PUT(out, "}");
        }
        PUT(out, "]}");
    }
    PUT(out, "]");
}

static void
put_chat_logprobs(const br_gen *g, br_choice *c, br_str *out)
{
    PUT(out, "{\"content\":");
    br_gen_put_logprobs(g, c, 0, out);
    PUT(out, ",\"refusal\":null}");
    c->lp.n = 0;
}

/* A member of an object that has n of them, which begin at keys[]. Tokens that
 * are written alike (bytes that are no UTF-8 are all U+FFFD) are one: the first. */
static uint32_t
put_alternative(const br_gen *g, const br_logprob *l, size_t *keys, uint32_t n,
                br_str *out)
{
    size_t was = out->n, at, len;

    if (n)
        PUT(out, ",");
    at = out->n;
    br_put_json(out, br_tok_bytes(g->model->m.tok, l->id));
    PUT(out, ":");
    len = out->n - at;
    for (uint32_t i = 0; i < n; i++) {
        if (len && memcmp(out->at + keys[i], out->at + at, len) == 0) {
            out->n = was;
            return n;
        }
    }
    put_logprob(out, l->logprob);
    keys[n] = at;
    return n + 1;
}

/* The likeliest first, and the chosen one if it is none of them, as OpenAI has it:
 * one more than were asked for. */
static void
put_alternatives(const br_gen *g, const br_logprob *row, br_str *out)
{
    size_t keys[1 + BR_ASK_MAX_LOGPROBS];
    uint32_t n = 0;

    if (isnan(row->logprob)) {
        PUT(out, "null");
        return;
    }
    PUT(out, "{");
    for (uint32_t k = 1; k < g->lp_row && row[k].id >= 0; k++)
        n = put_alternative(g, &row[k], keys, n, out);
    (void)put_alternative(g, row, keys, n, out);
    PUT(out, "}");
}

/* Where a token begins, in characters, as clients count; one that begins inside of
 * one, where that begins. Bytes that are no UTF-8 are a character each, as U+FFFD
 * stands for each of them. */
static size_t
next_offset(br_choice *c, br_text token)
{
    bool inside = token.n && c->text_inside && (token.p[0] & 0xc0) == 0x80;
    size_t at = c->text_offset - inside;

    for (size_t i = 0; i < token.n; i++) {
        uint8_t b = (uint8_t)token.p[i];

        if ((b & 0xc0) == 0x80 && c->text_inside) {
            c->text_inside--;
            continue;
        }
        c->text_offset++;
        c->text_inside = b < 0xc2 || b > 0xf4 ? 0
                         : b < 0xe0           ? 1
                         : b < 0xf0           ? 2
                                              : 3;
    }
    return at;
}

static void
put_text_logprobs(const br_gen *g, br_choice *c, br_str *out)
{
    const br_tok *tok = g->model->m.tok;

    for (int part = 0; part < 4; part++) {
        static const char *const names[] = {
            "{\"tokens\":[", "],\"token_logprobs\":[", "],\"top_logprobs\":[",
            "],\"text_offset\":["};

        br_str_puts(out, names[part]);
        for (size_t i = 0; i + g->lp_row <= c->lp.n; i += g->lp_row) {
            const br_logprob *row = &c->lp.at[i];

            if (i)
                PUT(out, ",");
            switch (part) {
            case 0: br_put_json(out, br_tok_bytes(tok, row->id)); break;
            case 1: put_logprob(out, row->logprob); break;
            case 2: put_alternatives(g, row, out); break;
            default:
                br_put_u64(out,
                           br_tok_is_special(tok, row->id)
                               ? c->text_offset /* not in the text */
                               : next_offset(c, br_tok_bytes(tok, row->id)));
                break;
            }
        }
    }
    PUT(out, "]}");
    c->lp.n = 0;
}

static void
put_logprobs(const br_gen *g, br_choice *c, br_str *out)
{
    PUT(out, ",\"logprobs\":");
    if (!g->lp_row || (g->ask.stream && !c->lp.n))
        PUT(out, "null");
    else if (is_chat(g))
        put_chat_logprobs(g, c, out);
    else
        put_text_logprobs(g, c, out);
}

/* ---- usage --------------------------------------------------------------- */

static void
put_usage(const br_gen *g, br_str *out)
{
    br_usage u = br_gen_usage(g);
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    w.compact = true;
    br_json_w_obj(&w);
    br_json_w_key(&w, "prompt_tokens");
    br_json_w_u64(&w, u.n_prompt);
    br_json_w_key(&w, "completion_tokens");
    br_json_w_u64(&w, u.n_out);
    br_json_w_key(&w, "total_tokens");
    br_json_w_u64(&w, (uint64_t)u.n_prompt + u.n_out);
    br_json_w_key(&w, "prompt_tokens_details");
    br_json_w_obj(&w);
    br_json_w_key(&w, "cached_tokens");
    br_json_w_u64(&w, u.n_cached);
    br_json_w_obj_end(&w);
    if (g->think) {
        br_json_w_key(&w, "completion_tokens_details");
        br_json_w_obj(&w);
        br_json_w_key_u64(&w, "reasoning_tokens", br_gen_thought_tokens(g));
        br_json_w_obj_end(&w);
    }
    br_gen_put_times(&w, &u);
    br_json_w_obj_end(&w);
}

void
br_gen_note_time(br_choice *c, const br_output *o)
{
    int64_t now = c->line.token_ns;

    if (!c->gen->ask.timings)
        return;
    if (o->usage) {
        c->usage = *o->usage;
        c->first_ns = now;
    }
    c->usage.n_out++;
    c->usage.decode_ns = c->first_ns ? now - c->first_ns : 0;
}

/* n tokens in so much time: "prompt_n", "prompt_ms" and so on. */
static void
put_rate(br_str *out, const char *what, uint32_t n, int64_t ns)
{
    double ms = (double)ns * 1e-6;

    br_str_printf(out,
                  ",\"%s_n\":%u,\"%s_ms\":%.3f,\"%s_per_token_ms\":%.3f,"
                  "\"%s_per_second\":%.3f",
                  what, n, what, ms, what, n ? ms / n : 0, what,
                  ns > 0 ? n * 1e9 / (double)ns : 0);
}

/* "timings" of llama-server's API, as a member; nothing where the request did
 * not ask for it or there was no token yet. */
static void
put_timings(const br_gen *g, const br_usage *u, br_str *out)
{
    if (!g->ask.timings || !u->n_prompt)
        return;
    br_str_printf(out, ",\"timings\":{\"cache_n\":%u", u->n_cached);
    put_rate(out, "prompt", u->n_prompt - u->n_cached, u->prefill_ns);
    put_rate(out, "predicted", u->n_out, u->decode_ns);
    PUT(out, "}");
}

/* ---- streams ------------------------------------------------------------- */

/* id, object, created, model: what every document begins with. */
static void
put_head(const br_gen *g, br_str *out)
{
    static const char *const objects[2][2] = {
        {"text_completion", "text_completion"},
        {"chat.completion", "chat.completion.chunk"}};

    br_str_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,",
                  g->id, objects[is_chat(g)][g->ask.stream],
                  (long long)g->created);
    PUT(out, "\"model\":");
    br_put_jsonz(out, g->model->m.name);
    br_str_printf(out, ",\"system_fingerprint\":\"brass-%s\"",
                  g->model->m.tier);
}

/* data: {...,"choices":[{"index":0,"delta":{ ... */
static void
chunk_begin(br_gen *g, const br_choice *c, br_str *out)
{
    if (!g->head.n) {
        PUT(&g->head, "data: ");
        put_head(g, &g->head);
        PUT(&g->head, ",\"choices\":[");
    }
    out->oom |= g->head.oom;
    br_str_put(out, br_str_z(&g->head), g->head.n);
    if (c) {
        PUT(out, "{\"index\":");
        br_put_u64(out, c->index);
    }
}

static void
chunk_end(const br_gen *g, br_choice *c, const char *finish, br_str *out)
{
    if (c) {
        put_logprobs(g, c, out);
        br_str_puts(out, ",\"finish_reason\":");
        br_str_puts(out, finish ? finish : "null");
        PUT(out, "}");
    }
    PUT(out, "]");
    if (c)
        put_timings(g, &c->usage, out);
    if (g->ask.include_usage)
        PUT(out, ",\"usage\":null}\n\n");
    else
        PUT(out, "}\n\n");
}

static void
begin(br_gen *g, br_str *out)
{
    for (uint32_t i = 0; is_chat(g) && i < g->n_choices; i++) {
        chunk_begin(g, &g->choices[i], out);
        PUT(out, ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"}");
        chunk_end(g, &g->choices[i], NULL, out);
    }
}

static void
text(br_gen *g, br_choice *c, br_text t, br_str *out)
{
    chunk_begin(g, c, out);
    if (is_chat(g))
        PUT(out, ",\"delta\":{\"content\":");
    else
        PUT(out, ",\"text\":");
    br_put_json(out, t);
    if (is_chat(g))
        PUT(out, "}");
    chunk_end(g, c, NULL, out);
}

/* A delta with nothing in it, as llama-server has it. */
static void
progress(br_gen *g, br_choice *c, const br_reading *p, br_str *out)
{
    chunk_begin(g, c, out);
    br_str_printf(out,
                  "%s,\"logprobs\":null,\"finish_reason\":null}],"
                  "\"prompt_progress\":{\"total\":%u,\"cache\":%u,"
                  "\"processed\":%u,\"time_ms\":%lld}%s}\n\n",
                  is_chat(g) ? ",\"delta\":{}" : ",\"text\":\"\"", p->n_prompt,
                  p->n_cached, p->n_read, (long long)(p->ns / 1000000),
                  g->ask.include_usage ? ",\"usage\":null" : "");
}

static void
thought(br_gen *g, br_choice *c, br_text t, br_str *out)
{
    chunk_begin(g, c, out);
    PUT(out, ",\"delta\":{\"reasoning_content\":");
    br_put_json(out, t);
    PUT(out, "}");
    chunk_end(g, c, NULL, out);
}

/* {"id":"call_..","type":"function","function":{"name":"..","arguments":" */
static void
put_call(const br_gen *g, const br_choice *c, size_t i, br_str *out)
{
    const br_str *name = &c->calls.at[i].name;

    PUT(out, "\"id\":");
    br_gen_put_call_id(g, c, i, out);
    PUT(out, ",\"type\":\"function\",\"function\":{\"name\":");
    br_put_json(out, (br_text){name->at, name->n});
    PUT(out, ",\"arguments\":");
}

static void
call(br_gen *g, br_choice *c, br_tool_event e, br_text piece, br_str *out)
{
    if (e == BR_TOOL_END)
        return;
    chunk_begin(g, c, out);
    PUT(out, ",\"delta\":{\"tool_calls\":[{\"index\":");
    br_put_u64(out, c->calls.n - 1);
    PUT(out, ",");
    if (e == BR_TOOL_BEGIN)
        put_call(g, c, c->calls.n - 1, out);
    else
        PUT(out, "\"function\":{\"arguments\":");
    br_put_json(out, e == BR_TOOL_BEGIN ? BR_TEXT("") : piece);
    PUT(out, "}}]}");
    chunk_end(g, c, NULL, out);
}

static const char *
finish_of(const br_choice *c)
{
    return c->calls.n && c->usage.finish == BR_FINISH_EOG
               ? "tool_calls"
               : br_finish_openai(c->usage.finish);
}

static void
put_calls(const br_gen *g, br_choice *c, br_str *out)
{
    for (size_t i = 0; i < c->calls.n; i++) {
        br_str *args = &c->calls.at[i].args;

        br_str_puts(out, i ? ",{" : ",\"tool_calls\":[{");
        put_call(g, c, i, out);
        br_put_json(out, (br_text){br_str_z(args), args->n});
        br_str_puts(out, i + 1 < c->calls.n ? "}}" : "}}]");
        out->oom |= args->oom || c->calls.at[i].name.oom;
    }
}

static void
end(br_gen *g, br_choice *c, br_str *out)
{
    br_str why = {0};

    br_put_jsonz(&why, finish_of(c));
    chunk_begin(g, c, out);
    br_str_puts(out, is_chat(g) ? ",\"delta\":{}" : ",\"text\":\"\"");
    chunk_end(g, c, br_str_z(&why), out);
    out->oom |= why.oom;
    br_str_fini(&why);
}

static void
error(br_gen *g, const br_error *e, br_str *out)
{
    (void)g;
    PUT(out, "data: ");
    br_error_json(out, false, e);
    PUT(out, "\n\n");
}

/* A chunk without choices: clients know it from the one with the usage. */
static void
preempted(br_gen *g, br_choice *c, br_str *out)
{
    (void)c;
    PUT(out, "event: preempted\n");
    chunk_begin(g, NULL, out);
    chunk_end(g, NULL, NULL, out);
}

static void
done(br_gen *g, br_str *out)
{
    if (g->ask.include_usage) {
        chunk_begin(g, NULL, out);
        PUT(out, "],\"usage\":");
        put_usage(g, out);
        PUT(out, "}\n\n");
    }
    PUT(out, "data: [DONE]\n\n");
}

/* ---- documents ----------------------------------------------------------- */

static void
whole(br_gen *g, br_str *out)
{
    br_usage all = br_gen_usage(g);

    put_head(g, out);
    PUT(out, ",\"choices\":[");
    for (uint32_t i = 0; i < g->n_choices; i++) {
        br_choice *c = &g->choices[i];
        br_text t = {br_str_z(&c->text), c->text.n};

        br_str_puts(out, i ? ",{\"index\":" : "{\"index\":");
        br_put_u64(out, c->index);
        if (is_chat(g))
            PUT(out, ",\"message\":{\"role\":\"assistant\",\"content\":");
        else
            PUT(out, ",\"text\":");
        if (c->calls.n && !t.n)
            PUT(out, "null");
        else
            br_put_json(out, t);
        if (c->thought.n) {
            PUT(out, ",\"reasoning_content\":");
            br_put_json(out, (br_text){c->thought.at, c->thought.n});
        }
        put_calls(g, c, out);
        if (is_chat(g))
            PUT(out, ",\"refusal\":null}");
        put_logprobs(g, c, out);
        PUT(out, ",\"finish_reason\":");
        br_put_jsonz(out, finish_of(c));
        PUT(out, "}");
        out->oom |= c->text.oom || c->thought.oom;
    }
    PUT(out, "],\"usage\":");
    put_usage(g, out);
    put_timings(g, &all, out);
    PUT(out, "}");
}

const br_wire br_wire_chat = {
    .id = "chatcmpl-",
    .api = BR_API_CHAT,
    .begin = begin,
    .text = text,
    .progress = progress,
    .thought = thought,
    .call = call,
    .end = end,
    .done = done,
    .error = error,
    .preempted = preempted,
    .whole = whole,
};

const br_wire br_wire_text = {
    .id = "cmpl-",
    .api = BR_API_TEXT,
    .begin = begin,
    .text = text,
    .progress = progress,
    .end = end,
    .done = done,
    .error = error,
    .preempted = preempted,
    .whole = whole,
};

void
br_on_chat(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &br_wire_chat);
}

void
br_on_completions(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &br_wire_text);
}
