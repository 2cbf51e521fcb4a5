/* slots.c - what clients of llama-server ask about the server itself: /props
 * and /slots, in its words as far as there is something to say.
 *
 * A slot of another tenant is there and is busy or not; whose it is, and how
 * long its text, is nobody else's business.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include <math.h>

enum { MOST = 1024 }; /* slots */

bool
br_may_see(const br_http *h, const br_http_conn *c, uint32_t tenant)
{
    return !h->store || c->admin || c->tenant == tenant;
}

static bool
is_busy(const br_slot_info *s)
{
    return s->state == BR_SLOT_ADMITTED || s->state == BR_SLOT_PREFILL ||
           s->state == BR_SLOT_DECODE;
}

/* ---- /slots -------------------------------------------------------------- */

static void
put_slot(br_json_writer *w, uint32_t i, uint32_t n_ctx, const br_slot_info *s,
         bool own)
{
    br_json_w_obj(w);
    br_json_w_key_u64(w, "id", i);
    br_json_w_key_u64(w, "n_ctx", n_ctx);
    br_json_w_key_bool(w, "speculative", false);
    br_json_w_key_bool(w, "is_processing", is_busy(s));
    if (own && is_busy(s)) {
        br_json_w_key_u64(w, "id_task", s->request & UINT32_MAX);
        br_json_w_key_u64(w, "n_prompt_tokens", s->n_prompt);
        br_json_w_key_u64(w, "n_prompt_tokens_cache", s->n_cached);
        br_json_w_key(w, "next_token");
        br_json_w_arr(w);
        br_json_w_obj(w);
        br_json_w_key_bool(w, "has_next_token", true);
        br_json_w_key_u64(w, "n_decoded", s->n_out);
        br_json_w_obj_end(w);
        br_json_w_arr_end(w);
    }
    br_json_w_obj_end(w);
}

/* To look is not to ask: nothing is loaded for it. False: refused. */
static bool
is_there(br_http *h, br_http_conn *c)
{
    if (!br_find_shown(h, c))
        return false;
    if (!h->model && br_query_of(c, "model").n)
        br_reply_error(h, c, 503, "model",
                       "model: it is not loaded; GET /v1/models says more");
    else if (!h->model)
        br_reply_absent(h, c);
    return h->model;
}

void
br_on_slots(br_http *h, br_http_conn *c)
{
    br_slot_info *s;
    uint32_t n = 0, busy = 0;
    br_str out = {0};
    br_json_writer w;

    if (!is_there(h, c))
        return;
    s = br_try_calloc(MOST, sizeof *s);
    if (s)
        n = BR_MIN(br_engine_slots(h->model->m.engine, s, MOST),
                   (uint32_t)MOST);
    out.oom = !s;
    br_json_w_begin(&w, &out, 0);
    w.compact = true;
    br_json_w_arr(&w);
    for (uint32_t i = 0; i < n; i++) {
        busy += is_busy(&s[i]);
        put_slot(&w, i, h->model->m.n_ctx, &s[i],
                 br_may_see(h, c, s[i].tenant));
    }
    br_json_w_arr_end(&w);
    br_free(s);
    if (n && busy == n && br_text_is(br_query_of(c, "fail_on_no_slot"), "1")) {
        br_str_fini(&out);
        br_reply_error(h, c, 503, NULL, "no slot is free");
        return;
    }
    br_reply_json(h, c, &out);
}

/* ---- /props -------------------------------------------------------------- */

static void
put_role(br_json_writer *w, const char *key, const br_tok *t, br_tok_role role)
{
    int32_t id = br_tok_role_id(t, role);
    br_text text = id < 0 ? (br_text){"", 0} : br_tok_text(t, id);

    br_json_w_key(w, key);
    br_json_w_str(w, text);
}

/* Without what a float lacks of it: 0.95. */
static void
put_float(br_json_writer *w, const char *key, float x)
{
    br_json_w_key_f64(w, key, round((double)x * 1e6) / 1e6);
}

static void
put_params(br_json_writer *w, const br_sample_params *p)
{
    br_json_w_key(w, "params");
    br_json_w_obj(w);
    put_float(w, "temperature", p->temperature);
    br_json_w_key_i64(w, "top_k", p->top_k);
    put_float(w, "top_p", p->top_p);
    put_float(w, "min_p", p->min_p);
    br_json_w_key_i64(w, "n_predict", -1);
    br_json_w_obj_end(w);
}

void
br_on_props(br_http *h, br_http_conn *c)
{
    const br_http_model *m;
    br_engine_stats s;
    br_str out = {0};
    br_json_writer w;

    if (!is_there(h, c))
        return;
    m = &h->model->m;
    br_engine_stats_get(m->engine, &s);
    br_json_w_begin(&w, &out, 0);
    w.compact = true;
    br_json_w_obj(&w);
    br_json_w_key(&w, "default_generation_settings");
    br_json_w_obj(&w);
    br_json_w_key_u64(&w, "n_ctx", m->n_ctx);
    put_params(&w, &h->config.sample);
    br_json_w_obj_end(&w);
    br_json_w_key_u64(&w, "total_slots", s.n_slots);
    br_json_w_key_strz(&w, "model_alias", m->name);
    br_json_w_key_strz(&w, "model_path", m->name);
    br_json_w_key(&w, "modalities");
    br_json_w_obj(&w);
    br_json_w_key_bool(&w, "vision", false);
    br_json_w_key_bool(&w, "audio", false);
    br_json_w_obj_end(&w);
    br_json_w_key(&w, "chat_template");
    br_json_w_str(&w, m->chat ? br_chat_source(m->chat) : (br_text){"", 0});
    put_role(&w, "bos_token", m->tok, BR_TOK_BOS);
    put_role(&w, "eos_token", m->tok, BR_TOK_EOS);
    br_json_w_key_strz(&w, "build_info", "brass");
    br_json_w_obj_end(&w);
    br_reply_json(h, c, &out);
}
