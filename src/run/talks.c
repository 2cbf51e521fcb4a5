/* talks.c - see talks.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/talks.h"

#include "base/log.h"
#include "base/thread.h"
#include "run/tstore_int.h"

#include <stdio.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)
enum { MARK = 0x42725431 /* of the file: "BrT1" */ };

/* A change that waits. Its texts stand behind it. */
typedef struct change {
    struct change *next;
    bool drop;
    br_turn_kept t;
} change;

struct br_talks {
    const br_db_kind *kind;
    br_talks_config c;
    br_db *mine, *its; /* of the owner, of the thread */
    br_str text[3];    /* of the turn that was got */
    br_thread thread;
    bool started;
    change **upto; /* the thread's: behind the last it is writing */
    br_event wake;
    atomic_bool stop;
    br_mutex lock; /* of what follows */
    change *first, **end;
    size_t waiting; /* bytes */
};

/* ---- the file ------------------------------------------------------------ */

static br_code
on_number(void *ctx, const br_db_value *v, br_status *st)
{
    (void)st;
    *(int64_t *)ctx = v[0].i;
    return BR_OK;
}

static br_code
ask(const br_talks *t, br_db *db, const char *sql, const br_db_value *v, int n,
    br_status *st)
{
    return t->kind->run(db, &(br_db_query){sql, v, n, NULL, NULL}, st);
}

static br_code
number(const br_talks *t, const char *sql, int64_t *out, br_status *st)
{
    *out = 0;
    return t->kind->run(
        t->its, &(br_db_query){.sql = sql, .row = on_number, .ctx = out}, st);
}

static br_code
make(br_talks *t, br_status *st)
{
    static const char *const schema[] = {
        "PRAGMA application_id = 1114788913", /* MARK */
        "CREATE TABLE turn(id TEXT PRIMARY KEY, tenant BIGINT NOT NULL, "
        "created_ms BIGINT NOT NULL, previous TEXT NOT NULL, input TEXT NOT "
        "NULL, output TEXT NOT NULL, answer TEXT NOT NULL)",
        "CREATE INDEX turn_age ON turn(created_ms)",
        "CREATE INDEX turn_tenant ON turn(tenant, created_ms)"};
    int64_t mark, n;

    BR_TRY(number(t, "PRAGMA application_id", &mark, st));
    BR_TRY(number(t, "SELECT count(*) FROM sqlite_schema", &n, st));
    if (mark != MARK && n)
        return br_fail(st, BR_E_FORMAT,
                       "%s: a database, but not one of responses",
                       t->kind->name(t->its));
    for (size_t i = 0; n == 0 && i < BR_COUNT(schema); i++)
        BR_TRY(ask(t, t->its, schema[i], NULL, 0, st));
    return BR_OK;
}

static br_code
in_transaction(br_talks *t, br_code (*fn)(br_talks *t, br_status *st),
               br_status *st)
{
    br_code code;

    BR_TRY(ask(t, t->its, t->kind->begin, NULL, 0, st));
    code = fn(t, st);
    if (code == BR_OK)
        code = ask(t, t->its, "COMMIT", NULL, 0, st);
    if (code != BR_OK)
        (void)ask(t, t->its, "ROLLBACK", NULL, 0, NULL);
    return code;
}

/* ---- writing ------------------------------------------------------------- */

static br_code
write_one(br_talks *t, const change *c, br_status *st)
{
    const br_turn_kept *k = &c->t;
    const br_db_value row[] = {TEXT(k->id),        INT(k->tenant),
                               INT(k->created_ms), TEXT(k->previous),
                               {.s = k->input},    {.s = k->output},
                               {.s = k->answer}};
    const br_db_value most[] = {INT(k->tenant), INT(t->c.most)};

    if (c->drop)
        return ask(t, t->its, "DELETE FROM turn WHERE id = ? AND tenant = ?",
                   row, 2, st);
    BR_TRY(ask(t, t->its,
               "INSERT INTO turn(id, tenant, created_ms, previous, input, "
               "output, answer) VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO "
               "NOTHING", /* a COMMIT may have failed when all was done */
               row, BR_COUNT(row), st));
    return ask(t, t->its,
               "DELETE FROM turn WHERE id IN (SELECT id FROM turn WHERE tenant "
               "= ? ORDER BY created_ms DESC, rowid DESC LIMIT -1 OFFSET ?)",
               most, BR_COUNT(most), st);
}

static int64_t
oldest(const br_talks *t)
{
    return br_wall_ns() / 1000000 - t->c.days * DAY_MS;
}

/* All up to t->upto: only this thread takes away. */
static br_code
write_all(br_talks *t, br_status *st)
{
    const br_db_value before = INT(oldest(t));
    change *c;

    br_mutex_lock(&t->lock);
    c = t->first;
    br_mutex_unlock(&t->lock);
    BR_TRY(ask(t, t->its, "DELETE FROM turn WHERE created_ms < ?", &before, 1,
               st));
    for (; c; c = &c->next == t->upto ? NULL : c->next)
        BR_TRY(write_one(t, c, st));
    return BR_OK;
}

static size_t
bytes_of(const change *c)
{
    return sizeof *c + c->t.input.n + c->t.output.n + c->t.answer.n;
}

/* Those up to `end` are in the file. */
static void
forget(br_talks *t, change **end)
{
    change *c, *next;

    br_mutex_lock(&t->lock);
    c = t->first;
    t->first = *end;
    if (t->end == end)
        t->end = &t->first;
    *end = NULL;
    for (change *x = c; x; x = x->next)
        t->waiting -= bytes_of(x);
    br_mutex_unlock(&t->lock);
    for (; c; c = next) {
        next = c->next;
        br_free(c);
    }
}

static bool
has_work(void *arg)
{
    br_talks *t = arg;
    bool work;

    br_mutex_lock(&t->lock);
    work = t->first != NULL;
    br_mutex_unlock(&t->lock);
    return work || atomic_load_explicit(&t->stop, memory_order_acquire);
}

static bool
stops(void *arg)
{
    return atomic_load_explicit(&((br_talks *)arg)->stop, memory_order_acquire);
}

static void
run(void *arg)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};
    br_talks *t = arg;
    bool over = false;

    while (!over) {
        br_status st = {0};

        (void)br_event_await(&t->wake, has_work, t, 0, -1);
        over = stops(t); /* then what waits is written once more */
        br_mutex_lock(&t->lock);
        t->upto = t->first ? t->end : NULL;
        br_mutex_unlock(&t->lock);
        if (!t->upto)
            continue;
        /* What comes meanwhile is written next time: forget() takes no more
         * than was there. */
        if (in_transaction(t, write_all, &st) == BR_OK) {
            forget(t, t->upto);
            continue;
        }
        br_log_limited(&limit, BR_EV_talks_failed, "%s", st.msg);
        (void)br_event_await(&t->wake, stops, t, 0, BR_TALKS_WRITE_NS);
    }
}

/* ---- life ---------------------------------------------------------------- */

static br_code
open_all(br_talks *t, br_status *st)
{
    BR_TRY(t->kind->open(&t->its, t->c.path, st));
    BR_TRY(in_transaction(t, make, st));
    BR_TRY(t->kind->open(&t->mine, t->c.path, st));
    BR_TRY(br_thread_start(&t->thread, "talks", run, t, st));
    t->started = true;
    return BR_OK;
}

br_code
br_talks_open(br_talks **out, const br_talks_config *c, br_status *st)
{
    br_talks *t = br_try_calloc(1, sizeof *t);
    br_code code;

    *out = NULL;
    if (!t)
        return br_fail(st, BR_E_OOM, "out of memory");
    t->c = *c;
    t->lock = (br_mutex)BR_MUTEX;
    t->end = &t->first;
#ifdef BR_HAVE_SQLITE
    t->kind = &br_db_sqlite;
#endif
    code = t->kind
               ? open_all(t, st)
               : br_fail(st, BR_E_UNSUPPORTED,
                         "this brass was built without SQLite, so it keeps no "
                         "responses: install libsqlite3-dev and build it "
                         "again");
    if (code != BR_OK)
        br_talks_close(t);
    else
        *out = t;
    return code;
}

void
br_talks_close(br_talks *t)
{
    if (!t)
        return;
    if (t->started) {
        /* release: with stops() */
        atomic_store_explicit(&t->stop, true, memory_order_release);
        br_event_signal(&t->wake);
        br_thread_join(&t->thread);
    }
    forget(t, t->end);
    if (t->mine)
        t->kind->close(t->mine);
    if (t->its)
        t->kind->close(t->its);
    for (size_t i = 0; i < BR_COUNT(t->text); i++)
        br_str_fini(&t->text[i]);
    br_free(t);
}

/* ---- the owner's --------------------------------------------------------- */

static br_text
copy(char **to, br_text from)
{
    br_text is = {*to, from.n};

    if (from.n)
        memcpy(*to, from.p, from.n);
    *to += from.n;
    return is;
}

static br_code
wait(br_talks *t, const br_turn_kept *turn, bool drop, br_status *st)
{
    change *c = br_try_alloc(sizeof *c + turn->input.n + turn->output.n +
                             turn->answer.n);
    char *to = (char *)(c + 1);
    bool room;

    if (!c)
        return br_fail(st, BR_E_OOM, "out of memory");
    *c = (change){.drop = drop, .t = *turn};
    c->t.input = copy(&to, turn->input);
    c->t.output = copy(&to, turn->output);
    c->t.answer = copy(&to, turn->answer);
    br_mutex_lock(&t->lock);
    room = t->waiting + bytes_of(c) <= BR_TALKS_WAITING;
    if (room) {
        t->waiting += bytes_of(c);
        *t->end = c;
        t->end = &c->next;
    }
    br_mutex_unlock(&t->lock);
    if (room)
        br_event_signal(&t->wake);
    else
        br_free(c);
    return room ? BR_OK : br_fail(st, BR_E_BUSY, "too much waits for the disk");
}

bool
br_talks_put(br_talks *t, const br_turn_kept *turn)
{
    return wait(t, turn, false, NULL) == BR_OK;
}

typedef struct found {
    br_talks *t;
    br_turn_kept *out;
    bool is;
} found;

static bool
keep_text(br_str *s, br_text text)
{
    br_str_clear(s);
    br_str_put(s, text.p ? text.p : "", text.n);
    return !s->oom;
}

static br_code
take(found *f, br_text previous, const br_text text[3], br_status *st)
{
    br_talks *t = f->t;

    (void)snprintf(f->out->previous, sizeof f->out->previous, "%.*s",
                   (int)BR_MIN(previous.n, (size_t)BR_TALK_ID),
                   previous.p ? previous.p : "");
    for (int i = 0; i < 3; i++)
        if (!keep_text(&t->text[i], text[i])) {
            br_str_fini(&t->text[i]);
            return br_fail(st, BR_E_OOM, "out of memory");
        }
    f->out->input = (br_text){br_str_z(&t->text[0]), t->text[0].n};
    f->out->output = (br_text){br_str_z(&t->text[1]), t->text[1].n};
    f->out->answer = (br_text){br_str_z(&t->text[2]), t->text[2].n};
    f->is = true;
    return BR_OK;
}

static br_code
on_turn(void *ctx, const br_db_value *v, br_status *st)
{
    found *f = ctx;

    f->out->created_ms = v[0].i;
    return take(f, v[1].s, (br_text[]){v[2].s, v[3].s, v[4].s}, st);
}

/* The latest change of that id, if any waits. */
static br_code
look_at_waiting(br_talks *t, found *f, bool *any, br_status *st)
{
    const change *is = NULL;
    br_code code = BR_OK;

    br_mutex_lock(&t->lock);
    for (const change *c = t->first; c; c = c->next)
        if (c->t.tenant == f->out->tenant && strcmp(c->t.id, f->out->id) == 0)
            is = c;
    *any = is != NULL;
    if (is && !is->drop) {
        f->out->created_ms = is->t.created_ms;
        code = take(f, br_text_z(is->t.previous),
                    (br_text[]){is->t.input, is->t.output, is->t.answer}, st);
    }
    br_mutex_unlock(&t->lock);
    return code;
}

br_code
br_talks_get(br_talks *t, uint32_t tenant, const char *id, br_turn_kept *out,
             br_status *st)
{
    const br_db_value v[] = {TEXT(id), INT(tenant), INT(oldest(t))};
    found f = {t, out, false};
    bool any = strlen(id) >= BR_TALK_ID;

    *out = (br_turn_kept){.tenant = tenant};
    if (!any) {
        memcpy(out->id, id, strlen(id) + 1);
        BR_TRY(look_at_waiting(t, &f, &any, st));
    }
    if (!any)
        BR_TRY(t->kind->run(
            t->mine,
            &(br_db_query){"SELECT created_ms, previous, input, output, answer "
                           "FROM turn WHERE id = ? AND tenant = ? AND "
                           "created_ms >= ?",
                           v, 3, on_turn, &f},
            st));
    return f.is
               ? BR_OK
               : br_fail(st, BR_E_NOT_FOUND, "no response '%.80s' is kept", id);
}

br_code
br_talks_drop(br_talks *t, uint32_t tenant, const char *id, br_status *st)
{
    br_turn_kept is;

    BR_TRY(br_talks_get(t, tenant, id, &is, st));
    is.input = is.output = is.answer = (br_text){0};
    return wait(t, &is, true, st);
}
