/* tstore_log.c - the log of requests in the store.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "run/tstore_int.h"

#include <stdio.h>

#define V_I             INT
#define V_F             REAL
#define GET_I           i
#define GET_F           f

#define R(column, kind) ", " #column
static const char insert_request[] =
    "INSERT INTO request(id, tenant, model, finish, ended_ms"
#include "run/tstore.def"
#undef R
    ") VALUES(?, ?, ?, ?, ?"
#define R(column, kind) ", ?"
#include "run/tstore.def"
#undef R
    ") ON CONFLICT(id) DO NOTHING";
#define R(column, kind) ", " #column
static const char select_requests[] =
    "SELECT id, tenant, model, finish, ended_ms, "
    "(SELECT name FROM tenant WHERE tenant.id = request.tenant)"
#include "run/tstore.def"
#undef R
    " FROM request WHERE ended_ms >= ?";

static br_code
log_one(br_tstore *s, const br_logged *r, br_status *st)
{
    br_db_value v[BR_DB_ARGS] = {TEXT(r->id), INT(r->tenant), TEXT(r->model),
                                 TEXT(r->finish), INT(r->ended_ms)};
    int n = 5;

#define R(column, kind) v[n++] = V_##kind(r->column);
#include "run/tstore.def"
#undef R
    return br_tstore_ask(s, &(br_db_query){insert_request, v, n, NULL, NULL},
                         st);
}

br_code
br_tstore_log(br_tstore *s, const br_logged *r, size_t n, br_status *st)
{
    int64_t day_ms = 86400000;
    const br_db_value v = INT(br_wall_ns() / 1000000 - BR_LOG_DAYS * day_ms);
    br_code code;

    BR_TRY(br_tstore_begin(s, st));
    code =
        br_tstore_ask(s,
                      &(br_db_query){"DELETE FROM request WHERE ended_ms < ?",
                                     &v, 1, NULL, NULL},
                      st);
    for (size_t i = 0; i < n && code == BR_OK; i++)
        code = log_one(s, &r[i], st);
    return br_tstore_end(s, code, st);
}

typedef struct each_request {
    void (*fn)(void *ctx, const br_logged *r);
    void *ctx;
} each_request;

static void
take_text(char *out, size_t size, br_text text)
{
    (void)snprintf(out, size, "%.*s", (int)BR_MIN(text.n, size),
                   text.p ? text.p : "");
}

static br_code
on_request(void *ctx, const br_db_value *v, br_status *st)
{
    each_request *e = ctx;
    br_logged r = {.tenant = (uint32_t)v[1].i, .ended_ms = v[4].i};
    int n = 6;

    (void)st;
    take_text(r.id, sizeof r.id, v[0].s);
    take_text(r.model, sizeof r.model, v[2].s);
    take_text(r.finish, sizeof r.finish, v[3].s);
    take_text(r.name, sizeof r.name, v[5].s);
#define R(column, kind) r.column = (__typeof__(r.column))v[n++].GET_##kind;
#include "run/tstore.def"
#undef R
    e->fn(e->ctx, &r);
    return BR_OK;
}

br_code
br_tstore_requests(br_tstore *s, const br_log_query *q,
                   void (*each)(void *ctx, const br_logged *r), void *ctx,
                   br_status *st)
{
    const struct {
        bool asked;
        const char *sql;
        br_db_value value;
    } rows[] = {
        {q->until_ms != 0, " AND ended_ms < ?", INT(q->until_ms)},
        {q->tenant != 0, " AND tenant = ?", INT(q->tenant)},
        {q->model, " AND model = ?", TEXT(q->model ? q->model : "")},
        {q->finish, " AND finish = ?", TEXT(q->finish ? q->finish : "")}};
    br_db_value v[2 + BR_COUNT(rows)] = {INT(q->since_ms)};
    each_request e = {each, ctx};
    br_str sql = {0};
    br_code code;
    int n = 1;

    br_str_puts(&sql, select_requests);
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        if (rows[i].asked) {
            br_str_puts(&sql, rows[i].sql);
            v[n++] = rows[i].value;
        }
    br_str_puts(&sql, " ORDER BY ended_ms DESC, id LIMIT ?");
    v[n++] = INT(q->most);
    code = sql.oom ? br_fail(st, BR_E_OOM, "out of memory")
                   : br_tstore_ask(
                         s, &(br_db_query){sql.at, v, n, on_request, &e}, st);
    br_str_fini(&sql);
    return code;
}
