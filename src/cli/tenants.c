/* tenants.c - brass tenant: who may use a server, and how much of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "run/engine.h"
#include "run/tstore.h"

#include <string.h>
#include <time.h>

/* Options that were given change it. */
static void
take_options(br_cli *cli, br_quota *q)
{
#define Q(field, key, opt)               \
    if (br_opt_given(cli, BR_OPT_##opt)) \
        q->field = (uint32_t)br_opt_int(cli, BR_OPT_##opt);
#include "run/tstore.def"
#undef Q
    if (br_opt_given(cli, BR_OPT_tenant_class))
        q->qos = (br_qos)br_opt_enum(cli, BR_OPT_tenant_class);
    if (br_opt_given(cli, BR_OPT_tenant_model)) { /* "": of any again */
        const char *name = br_opt_str(cli, BR_OPT_tenant_model);

        memset(q->model, ' ', sizeof q->model); /* none is so long */
        if (strlen(name) < sizeof q->model)
            (void)snprintf(q->model, sizeof q->model, "%s", name);
    }
}

/* ---- the commands -------------------------------------------------------- */

typedef struct work {
    br_cli *cli;
    br_tstore *store;
    bool json;
    br_str doc;
    br_json_writer w;
} work;

/* The key is shown here and never again. */
static br_code
show_key(work *k, const char *name, const char *key, br_status *st)
{
    br_tenant t;

    BR_TRY(br_tstore_find(k->store, name, &t, st));
    if (k->json) {
        br_json_w_obj(&k->w);
        br_tenant_write(&k->w, &t);
        br_json_w_key_strz(&k->w, "key", key);
        br_json_w_obj_end(&k->w);
        return BR_OK;
    }
    (void)fprintf(k->cli->out, "%s\n", key);
    (void)fprintf(k->cli->err,
                  "tenant %s (%u): this is its key, shown this once\n", t.name,
                  t.id);
    return BR_OK;
}

static br_code
do_create(work *k, const char *name, br_status *st)
{
    br_quota q = br_quota_defaults();
    char key[BR_KEY_CHARS];
    uint32_t id;

    take_options(k->cli, &q);
    BR_TRY(br_tstore_create(k->store, name, &q, &id, key, st));
    return show_key(k, name, key, st);
}

static br_code
do_rotate(work *k, const char *name, br_status *st)
{
    char key[BR_KEY_CHARS];

    BR_TRY(br_tstore_rotate(k->store, name, key, st));
    return show_key(k, name, key, st);
}

static bool
list_one(void *ctx, const br_tenant *t)
{
    work *k = ctx;

    if (k->json) {
        br_json_w_obj(&k->w);
        br_tenant_write(&k->w, t);
        br_json_w_obj_end(&k->w);
        return true;
    }
    (void)fprintf(k->cli->out,
                  "%4u  %-20s %-12s %5u slots %7u pages (%u reserved) "
                  "%8u tok/s %8u context",
                  t->id, t->name, br_qos_name(t->quota.qos), t->quota.max_slots,
                  t->quota.max_kv_pages, t->quota.reserved_kv_pages,
                  t->quota.decode_tokens_per_s, t->quota.max_context_tokens);
    if (t->quota.isolation_group)
        (void)fprintf(k->cli->out, "  group %u", t->quota.isolation_group);
    if (t->quota.model[0])
        (void)fprintf(k->cli->out, "  model %s", t->quota.model);
    if (t->quota.price_prompt | t->quota.price_cached |
        t->quota.price_generated)
        (void)fprintf(k->cli->out, "  price %u/%u/%u", t->quota.price_prompt,
                      t->quota.price_cached, t->quota.price_generated);
    (void)fputc('\n', k->cli->out);
    return true;
}

static br_code
do_list(work *k, const char *name, br_status *st)
{
    br_code code;

    (void)name;
    if (k->json)
        br_json_w_arr(&k->w);
    code = br_tstore_each(k->store, list_one, k, st);
    if (k->json)
        br_json_w_arr_end(&k->w);
    return code;
}

static br_code
do_set(work *k, const char *name, br_status *st)
{
    br_tenant t;

    BR_TRY(br_tstore_find(k->store, name, &t, st));
    take_options(k->cli, &t.quota);
    BR_TRY(br_tstore_set(k->store, name, &t.quota, st));
    return list_one(k, &t) ? BR_OK : BR_E_INTERNAL;
}

/* Counters stay below 2^53. */
static void
put(work *k, const char *key, double v, bool whole)
{
    if (k->json && whole)
        br_json_w_key_u64(&k->w, key, (uint64_t)v);
    else if (k->json)
        br_json_w_key_f64(&k->w, key, v);
    else
        (void)fprintf(k->cli->out, "%-18s %16.*f\n", key, whole ? 0 : 3, v);
}

static br_code
do_usage(work *k, const char *name, br_status *st)
{
    br_tenant t;
    br_ledger l;

    BR_TRY(br_tstore_find(k->store, name, &t, st));
    BR_TRY(br_tstore_usage(k->store, t.id, &l, st));
    if (k->json) {
        br_json_w_obj(&k->w);
        br_json_w_key_u64(&k->w, "id", t.id);
        br_json_w_key_strz(&k->w, "name", t.name);
    }
#define IS_I                 true
#define IS_F                 false
#define L(column, how, kind) put(k, #column, (double)l.column, IS_##kind);
#include "run/tstore.def"
#undef L
#define P(kind) put(k, "price_" #kind, t.quota.price_##kind, true)
    P(prompt);
    P(cached);
    P(generated);
#undef P
    if (k->json)
        br_json_w_obj_end(&k->w);
    return BR_OK;
}

/* ---- the log of requests ------------------------------------------------- */

/* "90m", "2h", "7d": so long ago; "2026-11-22", "2026-11-22T10:30": UTC. */
static br_code
read_when(const char *text, int64_t *ms, br_status *st)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    size_t digits = strspn(text, "0123456789");
    int64_t n;

    for (size_t i = 0; i < BR_COUNT(units); i++)
        if (br_json_to_i64((br_text){text, digits}, &n) && n <= 1000000 &&
            strcmp(text + digits, units[i].unit) == 0) {
            *ms = br_wall_ns() / 1000000 - n * units[i].ms;
            return BR_OK;
        }
    if (br_cli_time(text, &n)) {
        *ms = n * 1000;
        return BR_OK;
    }
    return br_fail(st, BR_E_USAGE,
                   "'%.40s' is no time: 90m, 2h, 7d, 2026-11-22 or "
                   "2026-11-22T10:30",
                   text);
}

static void
log_one(void *ctx, const br_logged *r)
{
    work *k = ctx;
    time_t at = (time_t)(r->ended_ms / 1000);
    char when[32] = "";
    struct tm t;

    if (gmtime_r(&at, &t))
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &t);
    if (!k->json) {
        (void)fprintf(k->cli->out,
                      "%s  %-12.12s %-16.16s %-15s %8llu %8llu %8.1f %8.1f "
                      "%8.1f  %s\n",
                      when, r->name, r->model, r->finish,
                      (unsigned long long)r->prompt_tokens,
                      (unsigned long long)r->completion_tokens, r->queue_ms,
                      r->prefill_ms, r->decode_ms, r->id);
        return;
    }
    br_json_w_begin(&k->w, &k->doc, 0);
    k->w.compact = true;
    br_json_w_obj(&k->w);
    br_json_w_key_strz(&k->w, "ended", when);
    br_json_w_key_strz(&k->w, "tenant", r->name);
    br_logged_write(&k->w, r);
    br_json_w_obj_end(&k->w);
    if (k->doc.oom) /* said in the end */
        return;
    (void)!br_cli_json_out(k->cli, &k->doc);
    br_str_clear(&k->doc);
}

static br_code
do_log(work *k, const char *name, br_status *st)
{
    const char *since = br_opt_str(k->cli, BR_OPT_since);
    const char *until = br_opt_str(k->cli, BR_OPT_until);
    int finish = br_opt_enum(k->cli, BR_OPT_finish);
    br_log_query q = {.model = br_opt_str(k->cli, BR_OPT_of_model),
                      .finish = finish < 0 ? NULL : br_finish_name(finish),
                      .most = (uint32_t)br_opt_int(k->cli, BR_OPT_last)};
    br_tenant t = {0};

    if (name)
        BR_TRY(br_tstore_find(k->store, name, &t, st));
    q.tenant = t.id;
    if (since)
        BR_TRY(read_when(since, &q.since_ms, st));
    if (until)
        BR_TRY(read_when(until, &q.until_ms, st));
    if (q.model && strlen(q.model) >= BR_TENANT_NAME)
        return br_fail(st, BR_E_USAGE, "--model-name: too long for one");
    if (!k->json)
        (void)fprintf(k->cli->out,
                      "%-19s  %-12s %-16s %-15s %8s %8s %8s %8s %8s  %s\n",
                      "ended (UTC)", "tenant", "model", "finish", "prompt",
                      "answer", "wait ms", "read ms", "write ms", "id");
    return br_tstore_requests(k->store, &q, log_one, k, st);
}

static int
run(br_cli *cli, br_code (*what)(work *k, const char *name, br_status *st))
{
    work k = {.cli = cli, .json = br_opt_bool(cli, BR_OPT_json)};
    const char *db = br_opt_str(cli, BR_OPT_db);
    br_status st = {0};
    br_code code;
    int end;

    /* A file is made with the first tenant, not by looking into it. */
    if (what != do_create && br_tstore_here() && br_tstore_absent(db))
        code = br_fail(&st, BR_E_NOT_FOUND,
                       "%s: no such file; brass tenant create makes it", db);
    else
        code = br_tstore_open(&k.store, db, &st);
    br_json_w_begin(&k.w, &k.doc, 0);
    if (code == BR_OK)
        code = what(&k, cli->n_args ? cli->args[0] : NULL, &st);
    if (code != BR_OK)
        end = br_cli_fail(cli, &st);
    else
        end = k.doc.n || k.doc.oom ? br_cli_json_out(cli, &k.doc) : 0;
    br_str_fini(&k.doc);
    br_tstore_close(k.store);
    return end;
}

int
br_cmd_tenant_create(br_cli *cli)
{
    return run(cli, do_create);
}

int
br_cmd_tenant_list(br_cli *cli)
{
    return run(cli, do_list);
}

int
br_cmd_tenant_set(br_cli *cli)
{
    return run(cli, do_set);
}

int
br_cmd_tenant_rotate(br_cli *cli)
{
    return run(cli, do_rotate);
}

int
br_cmd_tenant_usage(br_cli *cli)
{
    return run(cli, do_usage);
}

int
br_cmd_tenant_log(br_cli *cli)
{
    return run(cli, do_log);
}
