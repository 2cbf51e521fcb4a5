/* tstore_pg.c - the store in PostgreSQL, for servers on several machines.
 *
 *   open:    connects, waiting up to OPEN_NS
 *   run:     when the connection is gone, connects again, but waits no longer
 *            than AGAIN_NS a call: the caller may be the loop of a server,
 *            whose clients get their tokens meanwhile
 *   tend:    sees that the connection is gone, and connects again a little at a
 *            time, so that no question is the first to find out
 *
 * Tables are in a schema of their own, brass. A server is an advisory lock of
 * its session, so it ends with the connection.
 *
 * The URL may hold a password: no message has it, nor any part of a URL that
 * libpq does not understand. Looking up a host's name still waits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tstore_int.h"

#ifdef BR_HAVE_PQ
#    include "base/thread.h"

#    include <errno.h>
#    include <libpq-fe.h>
#    include <limits.h>
#    include <poll.h>
#    include <stdio.h>
#    include <stdlib.h>
#    include <string.h>

#    define OPEN_NS  INT64_C(10000000000)
#    define LOOK_NS  INT64_C(100000000)  /* whether nobody wants it any more */
#    define AGAIN_NS INT64_C(20000000)   /* less than interactive jitter */
#    define EVERY_NS INT64_C(1000000000) /* between attempts */
/* Where the last was refused at once, so that it cost nobody anything. */
#    define SOON_NS  INT64_C(50000000)
#    define QUICK_NS INT64_C(5000000)
#    define TEND_NS  INT64_C(2000000) /* round trips nearby take less */

enum {
    LOCKS = 0x42526173, /* the class of our advisory locks */
    OID_INT8 = 20,
    OID_INT4 = 23,
    OID_FLOAT8 = 701,
};

struct br_db {
    PGconn *conn; /* NULL: none */
    bool connecting;
    const _Atomic bool *stop;       /* while it is opened, or NULL */
    PostgresPollingStatusType next; /* while it connects */
    int64_t begun_ns;               /* the last attempt */
    int64_t failed_ns;              /* 0: it did not */
    char *where;
    br_str name;
    int64_t held;  /* 0: none */
    char why[160]; /* the last attempt failed */
};

/* libpq's texts have several lines. */
static void
keep_line(char *out, size_t n, const char *text)
{
    (void)snprintf(out, n, "%.*s", (int)strcspn(text, "\n"), text);
}

static br_code
failed(br_db *s, const char *text, br_status *st)
{
    char line[sizeof s->why];

    keep_line(line, sizeof line, text);
    if (!*line)
        return br_fail(st, BR_E_OOM, "out of memory");
    return br_fail(st, BR_E_IO, "%s: %s", br_str_z(&s->name), line);
}

/* ---- the connection ------------------------------------------------------ */

static void
say_nothing(void *ctx, const PGresult *r)
{
    (void)ctx;
    (void)r;
}

static void
hang_up(br_db *s)
{
    PQfinish(s->conn);
    s->conn = NULL;
    s->connecting = false;
}

static br_code
dial(br_db *s, br_status *st)
{
    static const char *const words[] = {
        "fallback_application_name", "tcp_user_timeout", "gssencmode",
        "client_encoding",           "dbname",           NULL};
    const char *values[] = {"brass", "5000", "disable", "UTF8", s->where, NULL};

    s->begun_ns = br_now_ns();
    s->conn = PQconnectStartParams(words, values, 1);
    if (!s->conn)
        return br_fail(st, BR_E_OOM, "out of memory");
    (void)PQsetNoticeReceiver(s->conn, say_nothing, NULL);
    s->connecting = true;
    s->next = PGRES_POLLING_WRITING;
    return BR_OK;
}

static br_code
simple(br_db *s, const char *sql, br_status *st)
{
    PGresult *r = PQexec(s->conn, sql);
    ExecStatusType is = PQresultStatus(r);
    br_code code = is == PGRES_COMMAND_OK || is == PGRES_TUPLES_OK
                       ? BR_OK
                       : failed(s, PQerrorMessage(s->conn), st);

    PQclear(r);
    return code;
}

/* Locks end with their session: here is the next one's. That it may be held is
 * no mistake: the server has not yet seen that the one before is gone. */
static br_code
begin_session(br_db *s, br_status *st)
{
    char sql[96];

    s->connecting = false;
    BR_TRY(simple(s,
                  "SET search_path = brass; SET synchronous_commit = on;"
                  "SET statement_timeout = 5000;"
                  "SET idle_in_transaction_session_timeout = 10000",
                  st));
    if (!s->held)
        return BR_OK;
    (void)snprintf(sql, sizeof sql, "SELECT pg_try_advisory_lock(%d, %d)",
                   LOCKS, (int)s->held);
    return simple(s, sql, st);
}

static br_code
connect_on(br_db *s, int64_t end_ns, br_status *st)
{
    br_code code;

    while (s->next == PGRES_POLLING_READING ||
           s->next == PGRES_POLLING_WRITING) {
        int64_t left = BR_MAX(end_ns - br_now_ns(), 0);
        struct pollfd p = {.fd = PQsocket(s->conn)};

        p.events = s->next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (br_is_told(s->stop))
            return br_fail(st, BR_E_CANCELLED, "%s: no answer was waited for",
                           br_str_z(&s->name));
        if (PQstatus(s->conn) != CONNECTION_BAD &&
            poll(&p, 1, (int)(BR_MIN(left, LOOK_NS) / 1000000)) == 0) {
            if (left > LOOK_NS)
                continue; /* it may be time to stop */
            return br_fail(st, BR_E_TIMEOUT, "%s: no answer yet",
                           br_str_z(&s->name));
        }
        s->next = PQconnectPoll(s->conn);
    }
    code = s->next == PGRES_POLLING_OK ? begin_session(s, st)
                                       : failed(s, PQerrorMessage(s->conn), st);
    if (code != BR_OK) {
        keep_line(s->why, sizeof s->why, PQerrorMessage(s->conn));
        s->failed_ns = br_now_ns();
        hang_up(s);
    }
    return code;
}

/* How long not to try again. */
static int64_t
rest_ns(const br_db *s)
{
    return s->failed_ns - s->begun_ns < QUICK_NS ? SOON_NS : EVERY_NS;
}

static br_code
ready(br_db *s, int64_t wait_ns, br_status *st)
{
    int64_t now = br_now_ns();

    if (s->conn && !s->connecting && PQstatus(s->conn) == CONNECTION_OK)
        return BR_OK;
    if (s->conn && (!s->connecting || now > s->begun_ns + OPEN_NS))
        hang_up(s);
    if (!s->conn) {
        if (s->failed_ns && now < s->failed_ns + rest_ns(s))
            return failed(s, s->why, st);
        BR_TRY(dial(s, st));
    }
    return connect_on(s, now + wait_ns, st);
}

/* ---- what the URL says --------------------------------------------------- */

static const char *
option(const PQconninfoOption *o, const char *word)
{
    while (o->keyword && strcmp(o->keyword, word) != 0)
        o++;
    return o->keyword && o->val ? o->val : "";
}

/* For messages. A password with / or @ in it lands elsewhere, so what looks
 * odd is not shown at all. */
static br_code
make_name(br_db *s, br_status *st)
{
    PQconninfoOption *o = PQconninfoParse(s->where, NULL);
    const char *user = o ? option(o, "user") : "";
    const char *host = o ? option(o, "host") : "";
    const char *port = o ? option(o, "port") : "";
    bool odd = !o || strchr(host, '@') || strchr(user, ':') ||
               port[strspn(port, "0123456789,")];

    if (!odd)
        br_str_printf(&s->name, "postgres://%s%s%s%s%s/%s", user,
                      *user ? "@" : "", *host == '/' ? "" : host,
                      *port ? ":" : "", port, option(o, "dbname"));
    PQconninfoFree(o);
    if (odd)
        return br_fail(
            st, BR_E_USAGE,
            "no such URL: postgres://user:password@host:port/"
            "database, with %%2F for / and %%40 for @ in a password");
    return s->name.oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

static void
close_db(br_db *s)
{
    if (!s)
        return;
    hang_up(s);
    br_str_fini(&s->name);
    br_free(s->where);
    br_free(s);
}

static br_code
open_db(br_db **out, const char *where, const _Atomic bool *stop, br_status *st)
{
    br_db *s = br_try_calloc(1, sizeof *s);
    size_t n = strlen(where) + 1;
    br_code code;

    if (!s)
        return br_fail(st, BR_E_OOM, "out of memory");
    *out = s; /* the caller closes it */
    s->where = br_try_alloc(n);
    if (!s->where)
        return br_fail(st, BR_E_OOM, "out of memory");
    memcpy(s->where, where, n);
    BR_TRY(make_name(s, st));
    s->stop = stop;
    code = ready(s, OPEN_NS, st);
    s->stop = NULL;
    return code;
}

static const char *
name(const br_db *s)
{
    return s->name.at;
}

/* ---- statements ---------------------------------------------------------- */

/* $1, $2, ... for each ?. */
static void
number_args(br_str *out, const char *sql)
{
    int n = 0;

    for (; *sql; sql++)
        if (*sql == '?')
            br_str_printf(out, "$%d", ++n);
        else
            br_str_putc(out, *sql);
}

/* Numbers as text, whose types PostgreSQL knows from where they stand; texts as
 * they are, which may be long and have no NUL. */
static PGresult *
send_query(br_db *s, const br_db_query *q)
{
    enum { EACH = 40 };
    char text[BR_DB_ARGS][EACH];
    const char *value[BR_DB_ARGS];
    int bytes[BR_DB_ARGS] = {0}, binary[BR_DB_ARGS] = {0};
    br_str sql = {0};
    PGresult *r = NULL;

    br_check(q->n_args <= BR_DB_ARGS);
    for (int i = 0; i < q->n_args; i++) {
        const br_db_value *v = &q->arg[i];

        value[i] = text[i];
        switch (v->kind) {
        case BR_DB_INT:
            (void)snprintf(text[i], EACH, "%lld", (long long)v->i);
            break;
        case BR_DB_REAL: (void)snprintf(text[i], EACH, "%.17g", v->f); break;
        case BR_DB_TEXT:
            br_check(v->s.n <= INT_MAX);
            value[i] = v->s.n ? v->s.p : "";
            bytes[i] = (int)v->s.n;
            binary[i] = 1;
            break;
        }
    }
    number_args(&sql, q->sql);
    if (!sql.oom)
        r = PQexecParams(s->conn, br_str_z(&sql), q->n_args, NULL, value, bytes,
                         binary, 0);
    br_str_fini(&sql);
    return r;
}

static br_code
tell_rows(const PGresult *r, const br_db_query *q, br_status *st)
{
    int rows = PQntuples(r), n = PQnfields(r);

    br_check(n <= BR_DB_ARGS);
    for (int row = 0; row < rows && q->row; row++) {
        br_db_value v[BR_DB_ARGS] = {0};

        for (int i = 0; i < n; i++) {
            const char *text = PQgetvalue(r, row, i);
            Oid type = PQftype(r, i);

            v[i].s = (br_text){text, (size_t)PQgetlength(r, row, i)};
            if (type == OID_INT8 || type == OID_INT4) {
                v[i].kind = BR_DB_INT;
                v[i].i = strtoll(text, NULL, 10);
            } else if (type == OID_FLOAT8) {
                v[i].kind = BR_DB_REAL;
                if (!br_f64_read(v[i].s, &v[i].f))
                    return br_fail(st, BR_E_FORMAT, "column %d is no number",
                                   i);
            }
        }
        BR_TRY(q->row(q->ctx, v, st));
    }
    return BR_OK;
}

static br_code
run_once(br_db *s, const br_db_query *q, br_status *st)
{
    PGresult *r = send_query(s, q);
    ExecStatusType is = PQresultStatus(r);
    br_code code = is == PGRES_COMMAND_OK || is == PGRES_TUPLES_OK
                       ? tell_rows(r, q, st)
                       : failed(s, PQerrorMessage(s->conn), st);

    PQclear(r);
    return code;
}

/* Outside a change a query that found the connection gone is asked again: it
 * only reads, or begins a change. */
static br_code
run(br_db *s, const br_db_query *q, br_status *st)
{
    br_status first = {0};
    bool fresh;

    BR_TRY(ready(s, AGAIN_NS, st));
    fresh = PQtransactionStatus(s->conn) == PQTRANS_IDLE;
    if (run_once(s, q, &first) == BR_OK)
        return BR_OK;
    if (fresh && PQstatus(s->conn) != CONNECTION_OK) {
        hang_up(s);
        BR_TRY(ready(s, AGAIN_NS, st));
        return run_once(s, q, st);
    }
    return br_fail(st, first.code, "%s", first.msg);
}

/* What the server says unasked, if only that it goes. */
static void
listen_in(br_db *s)
{
    struct pollfd p = {.fd = PQsocket(s->conn), .events = POLLIN};

    if (PQtransactionStatus(s->conn) == PQTRANS_IDLE && poll(&p, 1, 0) > 0)
        (void)PQconsumeInput(s->conn);
}

static void
tend(br_db *s)
{
    if (s->conn && !s->connecting && PQstatus(s->conn) == CONNECTION_OK)
        listen_in(s);
    (void)ready(s, TEND_NS, NULL);
}

/* ---- servers ------------------------------------------------------------- */

static br_code
on_flag(void *ctx, const br_db_value *v, br_status *st)
{
    (void)st;
    *(bool *)ctx = v[0].i != 0;
    return BR_OK;
}

static br_code
hold(br_db *s, int64_t id, bool *got, br_status *st)
{
    const br_db_value v[] = {{.kind = BR_DB_INT, .i = LOCKS},
                             {.kind = BR_DB_INT, .i = id}};

    BR_TRY(run(s,
               &(br_db_query){"SELECT pg_try_advisory_lock(?, ?)::int", v, 2,
                              on_flag, got},
               st));
    if (*got)
        s->held = id;
    return BR_OK;
}

static void
release(br_db *s, int64_t id)
{
    const br_db_value v[] = {{.kind = BR_DB_INT, .i = LOCKS},
                             {.kind = BR_DB_INT, .i = id}};

    s->held = 0;
    (void)run(
        s, &(br_db_query){"SELECT pg_advisory_unlock(?, ?)", v, 2, NULL, NULL},
        NULL);
}

const br_db_kind br_db_pg = {
    .begin = "BEGIN",
    .guard = "SELECT pg_advisory_xact_lock(1112695155)", /* LOCKS */
    .is_new = "SELECT (to_regclass('brass.state') IS NULL)::int",
    .make = "CREATE SCHEMA IF NOT EXISTS brass",
    .id = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
    .remote = true,
    .open = open_db,
    .close = close_db,
    .run = run,
    .hold = hold,
    .release = release,
    .name = name,
    .tend = tend,
};
#endif
