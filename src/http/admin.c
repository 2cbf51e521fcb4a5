/* admin.c - tenants over HTTP, as brass tenant has them: the same file, the
 * same checks. Whoever has the admin key may.
 *
 * A change holds from the next step on; the engine is asked first, so that what
 * it cannot promise is refused and not stored.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/srv.h"

#include <stdio.h>
#include <string.h>

#define ROOT "/v1/tenants/"

/* "/v1/tenants/NAME/rotate": NAME. */
static br_code
find(br_http *h, br_http_conn *c, br_tenant *t, br_status *st)
{
    br_text name = {c->in.path.p + sizeof ROOT - 1,
                    c->in.path.n - (sizeof ROOT - 1)};
    const char *slash = memchr(name.p, '/', name.n);
    char z[BR_TENANT_NAME];

    if (slash)
        name.n = (size_t)(slash - name.p);
    if (!br_http_word(name, z, sizeof z))
        return br_fail(st, BR_E_NOT_FOUND, "there is no such tenant");
    return br_tstore_find(h->store, z, t, st);
}

/* key: a new one, shown this once; or NULL. */
static void
reply_tenant(br_http *h, br_http_conn *c, const br_tenant *t, const char *key)
{
    br_str out = {0};
    br_json_writer w;

    br_json_w_begin(&w, &out, 0);
    w.compact = true;
    br_json_w_obj(&w);
    br_tenant_write(&w, t);
    if (key)
        br_json_w_key_strz(&w, "key", key);
    br_json_w_obj_end(&w);
    br_reply_json(h, c, &out);
}

static void
fail(br_http *h, br_http_conn *c, br_status *st)
{
    if (st->code == BR_E_NOT_FOUND)
        br_reply_error(h, c, 404, NULL, st->msg);
    else
        br_reply_status(h, c, st, NULL);
}

static bool
list_one(void *ctx, const br_tenant *t)
{
    br_json_writer *w = ctx;

    br_json_w_obj(w);
    br_tenant_write(w, t);
    br_json_w_obj_end(w);
    return true;
}

void
br_on_tenants(br_http *h, br_http_conn *c)
{
    br_status st = {0};
    br_str out = {0};
    br_json_writer w;

    br_reply_list(&w, &out);
    if (br_tstore_each(h->store, list_one, &w, &st) != BR_OK) {
        br_str_fini(&out);
        fail(h, c, &st);
        return;
    }
    br_reply_list_end(h, c, &w, &out);
}

/* name: where it may stand, else NULL. */
static br_code
read_quota(const br_json *root, const char **name, br_quota *q, br_status *st)
{
    for (const br_json *m = root->child; m; m = m->next) {
        if (!name || !br_json_key_is(m, "name")) {
            BR_TRY(br_quota_read(q, m, st));
            continue;
        }
        if (m->kind != BR_J_STR || strlen(m->s) != m->n)
            return br_fail(st, BR_E_USAGE, "name: must be a text");
        *name = m->s;
    }
    if (name && !*name)
        return br_fail(st, BR_E_USAGE, "name: missing");
    return BR_OK;
}

/* All models'; books would do it within a second. */
static br_code
tell_engines(br_http *h, uint32_t id, const br_quota *q, br_status *st)
{
    for (const br_served *m = h->served; m; m = m->next) {
        br_quota on = br_quota_on(q, m->m.name);

        BR_TRY(br_engine_tenant_set(m->m.engine, id, &on, st));
    }
    return BR_OK;
}

/* All are asked before one is told: none keeps what another refused. */
static br_code
check_pages(const br_http *h, uint32_t id, const br_quota *q, br_status *st)
{
    for (const br_served *m = h->served; m; m = m->next) {
        br_quota on = br_quota_on(q, m->m.name);
        br_status why = {0};

        if (br_engine_tenant_fits(m->m.engine, id, &on, &why) != BR_OK)
            return br_fail(st, BR_E_USAGE, "model %s: %s", m->m.name, why.msg);
    }
    return BR_OK;
}

static br_code
create(br_http *h, const br_json *root, br_tenant *t, char key[BR_KEY_CHARS],
       br_status *st)
{
    br_quota q = br_quota_defaults();
    const char *name = NULL;
    uint32_t id;

    BR_TRY(read_quota(root, &name, &q, st));
    BR_TRY(check_pages(h, BR_MAX_TENANTS, &q, st));
    BR_TRY(br_tstore_create(h->store, name, &q, &id, key, st));
    BR_TRY(br_tstore_find(h->store, name, t, st));
    return tell_engines(h, id, &q, st);
}

static br_code
change(br_http *h, br_http_conn *c, const br_json *root, br_tenant *t,
       br_status *st)
{
    br_quota was;

    BR_TRY(find(h, c, t, st));
    was = t->quota;
    BR_TRY(read_quota(root, NULL, &t->quota, st));
    BR_TRY(check_pages(h, t->id, &t->quota, st));
    BR_TRY(tell_engines(h, t->id, &t->quota, st));
    /* Meanwhile books may have told them what the file had. */
    if (br_tstore_set(h->store, t->name, &t->quota, st) == BR_OK)
        return tell_engines(h, t->id, &t->quota, st);
    (void)!tell_engines(h, t->id, &was, NULL);
    return st->code;
}

static void
with_body(br_http *h, br_http_conn *c, bool new)
{
    char key[BR_KEY_CHARS] = "";
    const br_json *root;
    br_status st = {0};
    br_tenant t;
    br_arena a;
    br_code code;

    if (!br_body_object(h, c, &a, &root))
        return;
    code = new ? create(h, root, &t, key, &st) : change(h, c, root, &t, &st);
    if (code == BR_OK)
        reply_tenant(h, c, &t, new ? key : NULL);
    else
        fail(h, c, &st);
    br_arena_fini(&a);
}

void
br_on_tenant_create(br_http *h, br_http_conn *c)
{
    with_body(h, c, true);
}

void
br_on_tenant_set(br_http *h, br_http_conn *c)
{
    with_body(h, c, false);
}

void
br_on_tenant(br_http *h, br_http_conn *c)
{
    br_status st = {0};
    br_tenant t;

    if (find(h, c, &t, &st) == BR_OK)
        reply_tenant(h, c, &t, NULL);
    else
        fail(h, c, &st);
}

void
br_on_tenant_rotate(br_http *h, br_http_conn *c)
{
    char key[BR_KEY_CHARS];
    br_status st = {0};
    br_tenant t;

    if (find(h, c, &t, &st) == BR_OK &&
        br_tstore_rotate(h->store, t.name, key, &st) == BR_OK)
        reply_tenant(h, c, &t, key);
    else
        fail(h, c, &st);
}

/* ---- models ---------------------------------------------------------------- */

static void
order(br_http *h, br_http_conn *c, const char *model)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._@:+";
    const size_t at = sizeof "/v1/models/" - 1;
    br_status st = {0};
    br_str out = {0};
    char name[64];
    bool whole = br_http_word((br_text){c->in.path.p + at, c->in.path.n - at},
                              name, sizeof name);

    if (!h->config.order)
        br_reply_error(h, c, 501, NULL, "this server's models stay");
    else if (!whole || name[strspn(name, letters)])
        br_reply_error(h, c, 400, NULL,
                       "a model's name has letters, digits and -._@:+, at most "
                       "63");
    else if (h->config.order(h->config.ctx, name, model, &st) != BR_OK)
        fail(h, c, &st);
    else {
        br_str_printf(&out, "{\"id\":\"%s\",\"status\":\"%s\"}", name,
                      model ? "loading" : "leaving");
        br_http_answer(c, 202, "application/json", NULL,
                       (br_text){br_str_z(&out), out.n});
        br_metrics_answer(&h->metrics, 202);
        br_str_fini(&out);
    }
}

void
br_on_model_put(br_http *h, br_http_conn *c)
{
    const br_json *root, *model;
    br_arena a;

    if (!br_body_object(h, c, &a, &root))
        return;
    model = br_json_get(root, "model");
    if (!br_json_is_word(model) || model->next || root->child != model)
        br_reply_error(h, c, 400, "model", "{\"model\": a file, or its name}");
    else
        order(h, c, model->s);
    br_arena_fini(&a);
}

void
br_on_model_drop(br_http *h, br_http_conn *c)
{
    order(h, c, NULL);
}
