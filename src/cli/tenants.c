/* tenants.c - brass tenant: who may use a server, and how much of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/cli.h"
#include "run/tstore.h"

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
    if (k->json)
        br_json_w_obj_end(&k->w);
    return BR_OK;
}

static int
run(br_cli *cli, br_code (*what)(work *k, const char *name, br_status *st))
{
    work k = {.cli = cli, .json = br_opt_bool(cli, BR_OPT_json)};
    br_status st = {0};
    br_code code;
    int end;

    code = br_tstore_open(&k.store, br_opt_str(cli, BR_OPT_db), &st);
    br_json_w_begin(&k.w, &k.doc, 0);
    if (code == BR_OK)
        code = what(&k, cli->n_args ? cli->args[0] : NULL, &st);
    if (code != BR_OK)
        end = br_cli_fail(cli, &st);
    else
        end = k.json ? br_cli_json_out(cli, &k.doc) : 0;
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
