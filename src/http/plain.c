/* plain.c - the routes that make no text: models, health, metrics, tokens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "http/gen.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* ---- state --------------------------------------------------------------- */

void
br_on_health(br_http *h, br_http_conn *c)
{
    bool comes = !h->model && br_may_come(h);
    const char *state = h->leaving ? "draining"
                        : h->model ? "ok"
                        : comes    ? "idle"
                                   : "loading";
    bool ok = (h->model || comes) && !h->leaving;
    br_str out = {0};

    br_str_printf(&out, "{\"status\":\"%s\"}", state);
    br_http_answer(c, ok ? 200 : 503, "application/json",
                   ok ? NULL : "Retry-After: 1\r\n",
                   (br_text){br_str_z(&out), out.n});
    br_str_fini(&out);
    br_metrics_answer(&h->metrics, ok ? 200 : 503);
}

/* For whoever sends requests to several servers and shall leave this one out.
 */
void
br_on_drain(br_http *h, br_http_conn *c)
{
    br_str out = {0};

    h->leaving = true;
    br_str_puts(&out, "{\"status\":\"draining\"}");
    br_reply_json(h, c, &out);
}

void
br_on_undrain(br_http *h, br_http_conn *c)
{
    h->leaving = h->leave_end_ns != 0;
    br_on_health(h, c);
}

/* ---- metrics ------------------------------------------------------------- */

/* Its successor has the name already. */
static bool
is_followed(const br_http *h, const br_served *m)
{
    return atomic_load_explicit(&m->leaves, memory_order_relaxed) &&
           br_served_find(h, m->m.name);
}

typedef BR_VEC(br_tenant) tenants;

static bool
list_tenant(void *ctx, const br_tenant *t)
{
    return br_vec_push((tenants *)ctx, *t);
}

/* What each has had of each model since that came; for the admin. Names are of
 * letters, digits, - . _ and @. While the database is away it is left out: the
 * other figures are not the database's. */
static void
put_tenants(const br_http *h, br_str *out)
{
    static const struct {
        const char *name, *help, *label;
        size_t at;
    } rows[] = {
#define ROW(name, help, label, field) \
    {name, help, label, offsetof(br_ledger, field)}
        ROW("tokens", "Tokens by tenant.", "kind=\"prompt\"", tokens_prompted),
        ROW("tokens", NULL, "kind=\"cached\"", tokens_cached),
        ROW("tokens", NULL, "kind=\"generated\"", tokens_generated),
        ROW("requests", "Requests by tenant.", "result=\"done\"",
            requests_done),
        ROW("requests", NULL, "result=\"rejected\"", requests_rejected),
        ROW("preemptions", "Slots lost to others, by tenant.", "to=\"others\"",
            slots_preempted),
#undef ROW
    };
    tenants all = {0};
    br_status st = {0};

    if (br_tstore_each(h->store, list_tenant, &all, &st) != BR_OK) {
        out->oom |= st.code == BR_E_OOM;
        all.n = 0;
    }
    for (size_t r = 0; r < BR_COUNT(rows) && all.n; r++) {
        if (rows[r].help)
            br_str_printf(out,
                          "# HELP brass_tenant_%s_total %s\n"
                          "# TYPE brass_tenant_%s_total counter\n",
                          rows[r].name, rows[r].help, rows[r].name);
        for (const br_served *m = h->served; m; m = m->next)
            for (size_t i = 0; i < all.n; i++) {
                char name[32];
                br_ledger l;
                uint64_t n;

                if (is_followed(h, m) ||
                    !br_engine_ledger(m->m.engine, all.at[i].id, &l))
                    continue;
                memcpy(&n, (const char *)&l + rows[r].at, sizeof n);
                (void)snprintf(name, sizeof name, "%s_total", rows[r].name);
                br_metrics_name(out, "brass_tenant_", name, m->m.name);
                br_str_printf(out, ",tenant=\"%s\",%s} %llu\n", all.at[i].name,
                              rows[r].label, (unsigned long long)n);
            }
    }
    br_vec_fini(&all);
}

/* Of what was asked and found a tenant sees its own alone: what the cache had for
 * others says what they ask. */
static void
get_stats(const br_http *h, const br_http_conn *c, const br_served *m,
          br_engine_stats *s)
{
    br_ledger l = {0};

    br_engine_stats_get(m->m.engine, s);
    if (!h->store || c->admin)
        return;
    (void)br_engine_ledger(m->m.engine, c->tenant, &l); /* or it had nothing */
    s->prompt_tokens = s->prefix_lookups = l.tokens_prompted;
    s->cached_tokens = s->prefix_hits = l.tokens_cached;
    s->out_tokens = l.tokens_generated;
    s->n_done = l.requests_done;
    s->n_rejected = l.requests_rejected;
    s->n_preempted = l.slots_preempted;
    s->n_parked = l.slots_parked;
}

void
br_on_metrics(br_http *h, br_http_conn *c)
{
    br_metrics_model *models;
    br_str out = {0};
    struct rusage r;
    size_t n = 0;

    getrusage(RUSAGE_THREAD, &r);
    h->metrics.user_ns =
        (int64_t)r.ru_utime.tv_sec * 1000000000 + r.ru_utime.tv_usec * 1000;
    h->metrics.system_ns =
        (int64_t)r.ru_stime.tv_sec * 1000000000 + r.ru_stime.tv_usec * 1000;
    for (const br_served *m = h->served; m; m = m->next)
        n++;
    models = br_try_calloc(n + 1, sizeof *models);
    n = 0;
    for (const br_served *m = h->served; m && models; m = m->next) {
        if (is_followed(h, m))
            continue;
        models[n].name = m->m.name;
        models[n].m = &m->metrics;
        get_stats(h, c, m, &models[n++].s);
    }
    br_metrics_text(&h->metrics, models, n, br_http_loop_conns(h->loop), &out);
    br_await_metrics(h, &out);
    if (h->store && c->admin)
        put_tenants(h, &out);
    out.oom |= !models;
    br_free(models);
    if (out.oom)
        br_reply_error(h, c, 503, NULL, "out of memory");
    else
        br_http_answer(c, 200, "text/plain; version=0.0.4", NULL,
                       (br_text){br_str_z(&out), out.n});
    br_str_fini(&out);
}

typedef struct failure {
    const char *name;
    br_str *out; /* NULL: it is told */
} failure;

static void
put_failure(void *to, const char *name, const char *why)
{
    failure *f = to;

    if (!why || !f->out || strcmp(name, f->name) != 0)
        return;
    br_str_puts(f->out, ",\"error\":");
    br_put_jsonz(f->out, why);
    f->out = NULL;
}

static void
put_model(const br_http *h, const br_http_model *m, br_str *out)
{
    failure f = {m->name, out}; /* of what was to take its place */

    br_str_puts(out, "{\"id\":");
    br_put_jsonz(out, m->name);
    br_str_printf(out,
                  ",\"object\":\"model\",\"created\":%lld,\"owned_by\":"
                  "\"brass\",\"max_model_len\":%u,\"tier\":\"%s\","
                  "\"vocab\":%d,\"chat\":%s,\"embedding\":%u,\"loaded\":true",
                  (long long)h->created, m->n_ctx, m->tier,
                  br_tok_count(m->tok), m->chat ? "true" : "false",
                  br_engine_n_embd(m->engine));
    if (m->kv_bytes)
        br_str_printf(out, ",\"weight_bytes\":%llu,\"kv_bytes\":%llu",
                      (unsigned long long)m->weight_bytes,
                      (unsigned long long)m->kv_bytes);
    if (m->prices.prompt || m->prices.cached || m->prices.generated)
        br_str_printf(out,
                      ",\"price_prompt\":%u,\"price_cached\":%u,"
                      "\"price_generated\":%u",
                      m->prices.prompt, m->prices.cached, m->prices.generated);
    if (h->config.listed)
        h->config.listed(h->config.ctx, put_failure, &f);
    br_str_putc(out, '}');
}

typedef struct listing {
    const br_http *h;
    const char *only; /* NULL: all */
    br_str *out;      /* NULL: they are counted */
    size_t n;
} listing;

/* One that would be loaded if it were asked for, or could not be. */
static void
put_absent(void *to, const char *name, const char *why)
{
    listing *l = to;

    if (br_served_find(l->h, name) || (l->only && strcmp(l->only, name) != 0))
        return;
    if (!l->out) {
        l->n++;
        return;
    }
    br_str_puts(l->out, l->n++ ? ",{\"id\":" : "{\"id\":");
    br_put_jsonz(l->out, name);
    br_str_printf(l->out,
                  ",\"object\":\"model\",\"created\":%lld,\"owned_by\":"
                  "\"brass\",\"loaded\":false",
                  (long long)l->h->created);
    if (why) {
        br_str_puts(l->out, ",\"error\":");
        br_put_jsonz(l->out, why);
    }
    br_str_puts(l->out, "}");
}

/* Those that are not there but would come (only: the one of that name), and are c's to
 * see. */
static void
list_absent(const br_http *h, const br_http_conn *c, listing *l)
{
    if (h->config.listed && (!c->model[0] || strcmp(c->model, l->only) == 0))
        h->config.listed(h->config.ctx, put_absent, l);
}

void
br_on_models(br_http *h, br_http_conn *c)
{
    br_str out = {0};
    listing l = {.h = h, .only = c->model[0] ? c->model : NULL, .out = &out};

    br_str_puts(&out, "{\"object\":\"list\",\"data\":[");
    for (const br_served *m = h->served; m; m = m->next) {
        if (atomic_load_explicit(&m->leaves, memory_order_relaxed) ||
            (l.only && strcmp(l.only, m->m.name) != 0))
            continue;
        if (l.n++)
            br_str_putc(&out, ',');
        put_model(h, &m->m, &out);
    }
    list_absent(h, c, &l);
    br_str_puts(&out, "]}");
    br_reply_json(h, c, &out);
}

void
br_on_model(br_http *h, br_http_conn *c)
{
    const size_t at = sizeof "/v1/models/" - 1;
    br_status st = {0};
    br_str out = {0};
    char name[256];
    listing l = {.h = h, .only = name, .out = &out};

    if (!br_http_word((br_text){c->in.path.p + at, c->in.path.n - at}, name,
                      sizeof name)) {
        br_reply_error(h, c, 404, "model", "model: there is none of that name");
        return;
    }
    list_absent(h, c, &l);
    if (!l.n && br_look_at_model(h, c, name, &st) != BR_OK) {
        br_reply_status(h, c, &st, "model");
        return;
    }
    if (!l.n)
        put_model(h, &h->model->m, &out);
    br_reply_json(h, c, &out);
}

/* ---- the live state, for the user interface ------------------------------ */

static void
put_slots(br_str *out, const br_http *h, const br_http_conn *c)
{
    static const char *const states[] = {"free",   "admitted",  "prefill",
                                         "decode", "preempted", "done"};
    enum { MOST = 256 };
    br_slot_info *s = br_try_calloc(MOST, sizeof *s);
    br_engine *e = h->model->m.engine;
    uint32_t n = s ? BR_MIN(br_engine_slots(e, s, MOST), (uint32_t)MOST) : 0;

    br_str_puts(out, ",\"slots\":[");
    for (uint32_t i = 0; i < n; i++) {
        if (!br_may_see(h, c, s[i].tenant)) /* but that it is taken */
            s[i] = (br_slot_info){.state = s[i].state};
        br_str_printf(out,
                      "%s{\"state\":\"%s\",\"tenant\":%u,"
                      "\"session\":\"%016llx\",\"prompt\":%u,\"cached\":%u,"
                      "\"out\":%u,\"pages\":%u,\"held\":%s}",
                      i ? "," : "", states[s[i].state], s[i].tenant,
                      (unsigned long long)s[i].session, s[i].n_prompt,
                      s[i].n_cached, s[i].n_out, s[i].n_pages,
                      s[i].held ? "true" : "false");
    }
    br_str_puts(out, "]");
    br_free(s);
}

/* Those that have something here, and how much of their quotas that is. */
static void
put_shares(br_str *out, const br_http *h, const br_http_conn *c)
{
    enum { MOST = 256 };
    br_tenant_info *t = br_try_calloc(MOST, sizeof *t);
    uint32_t n = t ? br_engine_tenants(h->model->m.engine, t, MOST) : 0;
    const char *comma = "";

    br_str_puts(out, ",\"tenants\":[");
    for (uint32_t i = 0; i < n; i++) {
        if (!br_may_see(h, c, t[i].id))
            continue;
        br_str_printf(out,
                      "%s{\"id\":%u,\"class\":\"%s\",\"running\":%u,"
                      "\"waiting\":%u,\"pages\":%u,\"share\":{\"slots\":%.4g,"
                      "\"pages\":%.4g,\"rate\":%.4g}}",
                      comma, t[i].id, br_qos_name(t[i].qos), t[i].n_running,
                      t[i].n_waiting, t[i].n_pages, t[i].slots, t[i].pages,
                      t[i].rate);
        comma = ",";
    }
    br_str_puts(out, "]");
    br_free(t);
}

static void
put_numbers(br_str *out, const br_engine_stats *s)
{
    const struct {
        const char *key;
        double value;
    } rows[] = {
        {"running", s->n_running},
        {"queued", s->n_queued},
        {"pages", s->n_pages},
        {"pages_free", s->pages_free},
        {"pages_private", s->pages_private},
        {"pages_prefix", s->pages_prefix},
        {"steps", (double)s->n_steps},
        {"prompt_tokens", (double)s->prompt_tokens},
        {"cached_tokens", (double)s->cached_tokens},
        {"out_tokens", (double)s->out_tokens},
        {"done", (double)s->n_done},
        {"preempted", (double)s->n_preempted},
        {"parked", (double)s->n_parked},
        {"rejected", (double)s->n_rejected},
        {"step_ms", (double)s->step_ns * 1e-6},
        {"plan_us", (double)s->plan_ns * 1e-3},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++)
        br_str_printf(out, ",\"%s\":%.15g", rows[i].key, rows[i].value);
}

bool
br_find_shown(br_http *h, br_http_conn *c)
{
    br_text word = br_query_of(c, "model");
    br_status st = {0};
    char name[256];
    listing l = {.h = h, .only = name};

    if (!word.n) {
        h->model = c->model[0] ? br_served_find(h, c->model) : h->model;
        return true;
    }
    if (!br_http_word(word, name, sizeof name)) {
        br_reply_error(h, c, 404, "model", "model: there is none of that name");
        return false;
    }
    if (br_look_at_model(h, c, name, &st) == BR_OK)
        return true;
    list_absent(h, c, &l);
    if (!l.n)
        br_reply_status(h, c, &st, "model");
    return l.n > 0;
}

void
br_on_state(br_http *h, br_http_conn *c)
{
    static const char *const names[] = {
#define X(name, unit, text) #name,
#include "http/hist.def"
#undef X
    };
    static const br_model_metrics none;
    const br_model_metrics *done;
    br_engine_stats s;
    br_str out = {0};

    if (!br_find_shown(h, c))
        return;
    done = h->model ? &h->model->metrics : &none;
    br_str_printf(&out,
                  "{\"uptime_s\":%.1f,\"connections\":%u,\"awaiting\":%zu",
                  (double)(br_now_ns() - h->started_ns) * 1e-9,
                  br_http_loop_conns(h->loop), h->awaiting.n);
    if (h->model) {
        br_str_puts(&out, ",\"model\":");
        br_put_jsonz(&out, h->model->m.name);
        br_str_printf(&out, ",\"tier\":\"%s\",\"context\":%u", h->model->m.tier,
                      h->model->m.n_ctx);
        get_stats(h, c, h->model, &s);
        put_numbers(&out, &s);
        put_slots(&out, h, c);
        put_shares(&out, h, c);
    } else if (br_may_come(h) ||
               br_served_find(h, NULL)) { /* as br_route_again */
        br_str_puts(&out, ",\"comes\":true");
    }
    br_str_puts(&out, ",\"latency_ms\":{");
    for (br_hist_id i = 0; i < BR_HIST_COUNT; i++)
        if (br_hist_is_seconds(i))
            br_str_printf(&out, "%s\"%s\":[%.6g,%.6g]", i ? "," : "", names[i],
                          br_hist_quantile(done, i, 0.5) * 1e3,
                          br_hist_quantile(done, i, 0.99) * 1e3);
    br_str_puts(&out, "}}");
    br_reply_json(h, c, &out);
}

/* ---- ledgers -------------------------------------------------------------- */

static void
put_ledger(br_str *out, uint32_t tenant, const br_ledger *l, const br_quota *q)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 0);
    w.compact = true;
    br_json_w_obj(&w);
    br_json_w_key_u64(&w, "id", tenant);
#define PUT_I                br_json_w_key_u64
#define PUT_F                br_json_w_key_f64
#define L(column, how, kind) PUT_##kind(&w, #column, l->column);
#include "run/tstore.def"
#undef L
#define P(kind) br_json_w_key_u64(&w, "price_" #kind, q->price_##kind)
    P(prompt);
    P(cached);
    P(generated);
#undef P
    br_json_w_obj_end(&w);
}

typedef struct of_tenant {
    uint32_t id;
    br_quota *quota;
    bool found;
} of_tenant;

static bool
take_quota(void *ctx, const br_tenant *t)
{
    of_tenant *of = ctx;

    if (t->id == of->id) {
        *of->quota = t->quota;
        of->found = true;
    }
    return !of->found;
}

/* Of the engine, or of the store where all models rest. */
static br_code
find_quota(br_http *h, uint32_t tenant, br_quota *out, br_status *st)
{
    of_tenant of = {tenant, out, false};

    if (h->model)
        of.found = br_engine_tenant_quota(h->model->m.engine, tenant, out);
    else
        BR_TRY(br_tstore_each(h->store, take_quota, &of, st));
    return of.found ? BR_OK : br_fail(st, BR_E_NOT_FOUND, "no such tenant");
}

/* "me", a tenant's number, or its name; -1: there is none of it, or *st says why it
 * cannot be looked up. *is: it is one; numbers are not looked up. */
static int64_t
tenant_of(br_http *h, const br_http_conn *c, br_text word, bool *is,
          br_status *st)
{
    bool any = c->admin && h->store; /* whose key is none of theirs */
    char name[BR_TENANT_NAME];
    br_tenant t;
    int64_t n;

    *is = true;
    if (br_text_is(word, "me") && !any)
        return c->tenant;
    if (br_json_to_i64(word, &n) && n >= any && n < BR_MAX_TENANTS) {
        *is = !any;
        return n;
    }
    if (!h->store || !br_http_word(word, name, sizeof name) ||
        br_tstore_find(h->store, name, &t, st) != BR_OK)
        return -1;
    return t.id;
}

/* "/v1/tenants/me/usage" or its own by another name; the admin may ask for
 * any. That tenant is c->tenant then, and its quota in *q, unless that is NULL. */
static bool
own_tenant(br_http *h, br_http_conn *c, br_quota *q)
{
    static const char before[] = "/v1/tenants/";
    br_text word = {c->in.path.p + sizeof before - 1,
                    c->in.path.n - (sizeof before - 1)};
    br_status st = {0};
    br_quota unused;
    int64_t id;
    bool is;

    word.n = (size_t)((const char *)memchr(word.p, '/', word.n) - word.p);
    id = tenant_of(h, c, word, &is, &st);
    if (id >= 0 && (c->admin || id == (int64_t)c->tenant) && (q || !is))
        (void)find_quota(h, (uint32_t)id, q ? q : &unused, &st);
    if (st.code != BR_OK && st.code != BR_E_NOT_FOUND)
        br_reply_status(h, c, &st, NULL);
    else if (!c->admin && id != (int64_t)c->tenant)
        br_reply_error(h, c, 403, NULL, "that tenant's ledger is not yours");
    else if (st.code != BR_OK || id < 0)
        br_reply_error(h, c, 404, NULL, "no such tenant");
    else {
        c->tenant = (uint32_t)id;
        return true;
    }
    return false;
}

/* With a file: all there ever was, up to a second ago. */
void
br_on_usage(br_http *h, br_http_conn *c)
{
    br_status st = {0};
    br_str out = {0};
    br_ledger l;
    br_quota q;

    if (!h->model && !h->store) { /* it is the engine's */
        br_reply_error(h, c, 503, NULL, "no model is loaded");
        return;
    }
    if (!own_tenant(h, c, &q))
        return;
    if (h->store && br_tstore_usage(h->store, c->tenant, &l, &st) != BR_OK) {
        br_reply_status(h, c, &st, NULL);
        return;
    }
    if (!h->store)
        (void)br_engine_ledger(h->model->m.engine, c->tenant, &l);
    put_ledger(&out, c->tenant, &l, &q);
    br_reply_json(h, c, &out);
}

static void
put_logged(void *ctx, const br_logged *r)
{
    br_json_writer *w = ctx;

    br_json_w_obj(w);
    br_logged_write(w, r);
    br_json_w_obj_end(w);
}

void
br_on_requests(br_http *h, br_http_conn *c)
{
    enum { MOST = 100 };
    br_status st = {0};
    br_str out = {0};
    br_json_writer w;

    if (!own_tenant(h, c, NULL))
        return;
    if (!h->store) {
        br_reply_error(h, c, 404, NULL, "requests are logged with --db");
        return;
    }
    br_reply_list(&w, &out);
    if (br_tstore_requests(h->store,
                           &(br_log_query){.tenant = c->tenant, .most = MOST},
                           put_logged, &w, &st) != BR_OK) {
        br_str_fini(&out);
        br_reply_status(h, c, &st, NULL);
        return;
    }
    br_reply_list_end(h, c, &w, &out);
}

/* ---- tokens -------------------------------------------------------------- */

/* So many tokens as JSON take the server's thread 20 ms. */
enum { TOKENIZE_BYTES = 2 << 20 };

/* Members that are none of these are refused, as everywhere; the model is the
 * one they name. */
static bool
only(br_http *h, br_http_conn *c, const br_json *root, const char *const *names)
{
    const br_json *model = br_json_get(root, "model");
    br_status st = {0};

    for (const br_json *m = root->child; m; m = m->next) {
        size_t i = 0;

        while (names[i] && !br_json_key_is(m, names[i]))
            i++;
        if (!names[i]) {
            char why[100];

            (void)snprintf(why, sizeof why,
                           "%.60s: this server does not know the field",
                           m->key);
            br_reply_error(h, c, 400, m->key, why);
            return false;
        }
    }
    if (model && (model->kind != BR_J_STR || strlen(model->s) != model->n))
        br_reply_error(h, c, 400, "model", "model: must be a string");
    else if (br_choose_model(h, c, model ? model->s : NULL, &st) != BR_OK)
        br_no_model(h, c, &st);
    else
        return true;
    return false;
}

static bool
flag(const br_json *root, const char *name, bool def)
{
    const br_json *v = br_json_get(root, name);

    return v && v->kind == BR_J_BOOL ? v->b : def;
}

/* False: refused; one of them is something else. */
static bool
are_flags(br_http *h, br_http_conn *c, const br_json *root,
          const char *const *names)
{
    for (; *names; names++) {
        const br_json *v = br_json_get(root, *names);
        char why[80];

        if (!v || v->kind == BR_J_BOOL || v->kind == BR_J_NULL)
            continue;
        (void)snprintf(why, sizeof why, "%s: must be true or false", *names);
        br_reply_error(h, c, 400, *names, why);
        return false;
    }
    return true;
}

static void
put_tokens(br_gen *g, br_str *out)
{
    const br_http *h = g->h;

    br_str_printf(out, "{\"count\":%zu,\"max_model_len\":%u,\"tokens\":[",
                  h->ids.n, g->model->m.n_ctx);
    for (size_t i = 0; i < h->ids.n; i++) {
        if (i)
            br_str_putc(out, ',');
        br_put_u64(out, (uint64_t)h->ids.at[i]);
    }
    br_str_puts(out, "]");
    if (g->ask.echo) {
        br_str_puts(out, ",\"token_strs\":[");
        for (size_t i = 0; i < h->ids.n; i++) {
            if (i)
                br_str_putc(out, ',');
            br_put_json(out, br_tok_bytes(g->model->m.tok, h->ids.at[i]));
        }
        br_str_puts(out, "]");
    }
    br_str_puts(out, "}");
}

static const br_wire tokenizing = {.id = "", .prompt = put_tokens};

/* The text of root to be read; the ask has the arena from now on. */
static void
tokenize(br_http *h, br_http_conn *c, const br_json *root, br_text text,
         br_arena *a)
{
    br_ask k = {.n = 1,
                .arena = *a,
                .param = "prompt",
                .echo = flag(root, "return_token_strs", false)};
    br_ask_prompt p = {.text = text};

    p.flags |= flag(root, "add_special_tokens", true) ? BR_TOK_ADD_SPECIAL : 0;
    p.flags |= flag(root, "parse_special", false) ? BR_TOK_PARSE_SPECIAL : 0;
    if (br_vec_push(&k.prompts, p)) {
        br_gen_answer(h, c, &tokenizing, &k);
        return;
    }
    br_reply_error(h, c, 503, NULL, "out of memory");
    br_ask_fini(&k);
}

void
br_on_tokenize(br_http *h, br_http_conn *c)
{
    static const char *const names[] = {"model",
                                        "prompt",
                                        "content",
                                        "add_special_tokens",
                                        "parse_special",
                                        "return_token_strs",
                                        NULL};
    enum { FLAGS = 3 }; /* from here on */
    const br_json *root, *text;
    br_arena a;

    if (!br_body_object(h, c, &a, &root))
        return;
    if (only(h, c, root, names) && are_flags(h, c, root, names + FLAGS)) {
        const br_json *content = br_json_get(root, "content");

        text = br_json_get(root, "prompt");
        text = text ? text : content;
        if (content && text != content)
            br_reply_error(h, c, 400, "content",
                           "content: not together with prompt");
        else if (!text || text->kind != BR_J_STR)
            br_reply_error(h, c, 400, "prompt", "prompt: must be a string");
        else if (text->n > TOKENIZE_BYTES)
            br_reply_error(h, c, 400, "prompt", "prompt: over 2 MiB of text");
        else {
            tokenize(h, c, root, (br_text){text->s, text->n}, &a);
            return;
        }
    }
    br_arena_fini(&a);
}

static br_code
read_ids(br_http *h, const br_json *list, br_status *st)
{
    h->ids.n = 0;
    if (!list || list->kind != BR_J_ARR)
        return br_fail(st, BR_E_USAGE, "tokens: must be a list of ids");
    for (const br_json *e = list->child; e; e = e->next) {
        if (e->kind != BR_J_INT || e->i < 0 ||
            e->i >= br_tok_count(h->model->m.tok))
            return br_fail(st, BR_E_USAGE, "tokens[%zu]: not a token's id",
                           h->ids.n);
        if (!br_vec_push(&h->ids, (int32_t)e->i))
            return br_fail(st, BR_E_OOM, "out of memory");
    }
    return BR_OK;
}

static void
reply_text(br_http *h, br_http_conn *c, const char *key, br_str *text)
{
    br_str out = {0};

    br_str_printf(&out, "{\"%s\":", key);
    br_put_json(&out, (br_text){br_str_z(text), text->n});
    br_str_puts(&out, "}");
    out.oom |= text->oom;
    br_str_fini(text);
    br_reply_json(h, c, &out);
}

void
br_on_detokenize(br_http *h, br_http_conn *c)
{
    static const char *const names[] = {"model", "tokens", NULL};
    const br_json *root;
    br_status st = {0};
    br_str text = {0};
    br_arena a;

    if (!br_body_object(h, c, &a, &root))
        return;
    if (only(h, c, root, names)) {
        if (read_ids(h, br_json_get(root, "tokens"), &st) != BR_OK ||
            br_tok_decode(h->model->m.tok, h->ids.at, h->ids.n,
                          BR_TOK_SHOW_SPECIAL | BR_TOK_KEEP_SPACES, &text,
                          &st) != BR_OK)
            br_reply_status(h, c, &st, "tokens");
        else
            reply_text(h, c, "prompt", &text);
    }
    br_arena_fini(&a);
}

static void
put_text(br_gen *g, br_str *out)
{
    br_status st = {0};
    br_str text = {0};

    out->oom |= br_tok_decode(g->model->m.tok, g->h->ids.at, g->h->ids.n,
                              BR_TOK_SHOW_SPECIAL | BR_TOK_KEEP_SPACES, &text,
                              &st) != BR_OK;
    br_str_puts(out, "{\"prompt\":");
    br_put_json(out, (br_text){br_str_z(&text), text.n});
    br_str_puts(out, "}");
    out->oom |= text.oom;
    br_str_fini(&text);
}

static const br_wire templating = {
    .id = "", .api = BR_API_TEMPLATE, .prompt = put_text};

void
br_on_apply_template(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &templating);
}
