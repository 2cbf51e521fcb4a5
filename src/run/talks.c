/* talks.c - see talks.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/talks.h"

#include "base/log.h"
#include "base/thread.h"
#include "run/tstore_int.h"

#include <stdio.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)
enum { MARK = 0x42725431 /* of the file: "BrT1" */, FORMAT = 1 };

/* A change that waits. Its texts stand behind it. */
typedef enum kind { PUT, END, BEAT, DROP } kind;
typedef struct change {
    struct change *next;
    kind what;
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
    br_mutex walk; /* what waits stays while a walk reads; taken before lock */
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

#define TURN                                                                   \
    "turn(id TEXT PRIMARY KEY, tenant BIGINT NOT NULL, created_ms BIGINT NOT " \
    "NULL, previous TEXT NOT NULL, input TEXT NOT NULL, output TEXT NOT "      \
    "NULL, answer TEXT NOT NULL, alive_ms BIGINT NOT NULL DEFAULT 0"
#define INDEXES                                                \
    "CREATE INDEX IF NOT EXISTS turn_age ON turn(created_ms)", \
        "CREATE INDEX IF NOT EXISTS turn_tenant ON turn(tenant, created_ms)"

static br_code
all_of(br_talks *t, const char *const *sql, size_t n, br_status *st)
{
    for (size_t i = 0; i < n; i++)
        BR_TRY(ask(t, t->its, sql[i], NULL, 0, st));
    return BR_OK;
}

/* Formats of files: 0 had no alive_ms. */
static br_code
make_file(br_talks *t, br_status *st)
{
    static const char *const schema[] = {
        "PRAGMA application_id = 1114788913", /* MARK */
        "CREATE TABLE " TURN ")", INDEXES, "PRAGMA user_version = 1"};
    static const char *const from_0[] = {
        "ALTER TABLE turn ADD COLUMN alive_ms BIGINT NOT NULL DEFAULT 0",
        "PRAGMA user_version = 1"};
    int64_t mark, n, format;

    BR_TRY(number(t, "PRAGMA application_id", &mark, st));
    BR_TRY(number(t, "SELECT count(*) FROM sqlite_schema", &n, st));
    BR_TRY(number(t, "PRAGMA user_version", &format, st));
    if (mark != MARK && n)
        return br_fail(st, BR_E_FORMAT,
                       "%s: a database, but not one of responses",
                       t->kind->name(t->its));
    if (n == 0)
        return all_of(t, schema, BR_COUNT(schema), st);
    if (format == 0)
        return all_of(t, from_0, BR_COUNT(from_0), st);
    return format == FORMAT
               ? BR_OK
               : br_fail(st, BR_E_VERSION,
                         "%s: format %lld, this program reads 0 to %d",
                         t->kind->name(t->its), (long long)format, FORMAT);
}

/* Beside the tenants' tables, which may be there or not. place: rows have no
 * number of their own there. */
static br_code
make_table(br_talks *t, br_status *st)
{
    static const char *const schema[] = {
        "CREATE TABLE IF NOT EXISTS " TURN
        ", place BIGINT GENERATED ALWAYS AS IDENTITY)",
        INDEXES};

    BR_TRY(ask(t, t->its, t->kind->guard, NULL, 0, st));
    BR_TRY(ask(t, t->its, t->kind->make, NULL, 0, st));
    return all_of(t, schema, BR_COUNT(schema), st);
}

static br_code
make(br_talks *t, br_status *st)
{
    return t->kind->remote ? make_table(t, st) : make_file(t, st);
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
write_put(br_talks *t, const br_turn_kept *k, br_status *st)
{
    const br_db_value row[] = {TEXT(k->id),        INT(k->tenant),
                               INT(k->created_ms), TEXT(k->previous),
                               {.s = k->input},    {.s = k->output},
                               {.s = k->answer},   INT(k->alive_ms)};
    const br_db_value most[] = {INT(k->tenant), INT(t->c.most)};

    BR_TRY(ask(t, t->its,
               "INSERT INTO turn(id, tenant, created_ms, previous, input, "
               "output, answer, alive_ms) VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON "
               "CONFLICT(id) DO UPDATE SET created_ms = excluded.created_ms, "
               "previous = excluded.previous, input = excluded.input, output = "
               "excluded.output, answer = excluded.answer, alive_ms = "
               "excluded.alive_ms WHERE turn.tenant = excluded.tenant",
               row, BR_COUNT(row), st));
    return ask(
        t, t->its,
        t->kind->remote
            ? "DELETE FROM turn WHERE id IN (SELECT id FROM turn WHERE tenant "
              "= ? ORDER BY created_ms DESC, place DESC OFFSET ?)"
            : "DELETE FROM turn WHERE id IN (SELECT id FROM turn WHERE tenant "
              "= ? ORDER BY created_ms DESC, rowid DESC LIMIT -1 OFFSET ?)",
        most, BR_COUNT(most), st);
}

/* All may be done twice: a COMMIT may have failed when all was done. */
static br_code
write_one(br_talks *t, const change *c, br_status *st)
{
    const br_turn_kept *k = &c->t;
    const br_db_value which[] = {TEXT(k->id), INT(k->tenant)};
    const br_db_value beat[] = {INT(k->alive_ms), which[0], which[1]};
    const br_db_value end[] = {
        {.s = k->output}, {.s = k->answer}, which[0], which[1]};

    switch (c->what) {
    case PUT: return write_put(t, k, st);
    case END:
        return ask(t, t->its,
                   "UPDATE turn SET output = ?, answer = ?, alive_ms = 0 WHERE "
                   "id = ? AND tenant = ? AND alive_ms <> 0",
                   end, BR_COUNT(end), st);
    case BEAT:
        return ask(t, t->its,
                   "UPDATE turn SET alive_ms = ? WHERE id = ? AND tenant = ? "
                   "AND alive_ms <> 0",
                   beat, BR_COUNT(beat), st);
    case DROP: break;
    }
    return ask(t, t->its, "DELETE FROM turn WHERE id = ? AND tenant = ?", which,
               BR_COUNT(which), st);
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

    br_mutex_lock(&t->walk);
    br_mutex_lock(&t->lock);
    c = t->first;
    t->first = *end;
    if (t->end == end)
        t->end = &t->first;
    *end = NULL;
    for (change *x = c; x; x = x->next)
        t->waiting -= bytes_of(x);
    br_mutex_unlock(&t->lock);
    br_mutex_unlock(&t->walk);
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
    t->walk = t->lock = (br_mutex)BR_MUTEX;
    t->end = &t->first;
    code = br_db_choose(c->path, "responses", &t->kind, st);
    if (code == BR_OK)
        code = open_all(t, st);
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
wait(br_talks *t, const br_turn_kept *turn, kind what, br_status *st)
{
    change *c = br_try_alloc(sizeof *c + turn->input.n + turn->output.n +
                             turn->answer.n);
    char *to = (char *)(c + 1);
    bool room;

    if (!c)
        return br_fail(st, BR_E_OOM, "out of memory");
    *c = (change){.what = what, .t = *turn};
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
    return wait(t, turn, PUT, NULL) == BR_OK;
}

bool
br_talks_end(br_talks *t, const br_turn_kept *turn)
{
    return wait(t, turn, END, NULL) == BR_OK;
}

void
br_talks_beat(br_talks *t, uint32_t tenant, const char *id)
{
    br_turn_kept k = {.tenant = tenant, .alive_ms = br_wall_ns() / 1000000};

    (void)snprintf(k.id, sizeof k.id, "%s", id);
    (void)wait(t, &k, BEAT, NULL); /* the next one comes soon */
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
    f->out->alive_ms = v[1].i;
    return take(f, v[2].s, (br_text[]){v[3].s, v[4].s, v[5].s}, st);
}

/* The latest change of that id, if any waits. */
static const change *
latest(const br_talks *t, uint32_t tenant, const char *id)
{
    const change *is = NULL;

    for (const change *c = t->first; c; c = c->next)
        if (c->what != BEAT && c->t.tenant == tenant &&
            strcmp(c->t.id, id) == 0)
            is = c;
    return is;
}

static br_code
look_at_waiting(br_talks *t, found *f, bool *any, br_status *st)
{
    const change *is;
    br_code code = BR_OK;

    br_mutex_lock(&t->lock);
    is = latest(t, f->out->tenant, f->out->id);
    *any = is != NULL;
    if (is && is->what != DROP) {
        f->out->created_ms = is->t.created_ms;
        f->out->alive_ms = is->what == END ? 0 : is->t.alive_ms;
        code = take(f, br_text_z(is->t.previous),
                    (br_text[]){is->t.input, is->t.output, is->t.answer}, st);
    }
    br_mutex_unlock(&t->lock);
    return code;
}

/* Whether it could be one: no database is asked for others. */
static bool
is_id(const char *id)
{
    static const char of[] = "abcdefghijklmnopqrstuvwxyz0123456789_-"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n = strspn(id, of);

    return n && !id[n] && n < BR_TALK_ID;
}

static br_code
none(const char *id, br_status *st)
{
    return br_fail(st, BR_E_NOT_FOUND, "no response '%.80s' is kept", id);
}

br_code
br_talks_get(br_talks *t, uint32_t tenant, const char *id, br_turn_kept *out,
             br_status *st)
{
    const br_db_value v[] = {TEXT(id), INT(tenant), INT(oldest(t))};
    found f = {t, out, false};
    bool any;

    *out = (br_turn_kept){.tenant = tenant};
    if (!is_id(id))
        return none(id, st);
    memcpy(out->id, id, strlen(id) + 1);
    BR_TRY(look_at_waiting(t, &f, &any, st));
    if (!any)
        BR_TRY(t->kind->run(
            t->mine,
            &(br_db_query){"SELECT created_ms, alive_ms, previous, input, "
                           "output, answer FROM turn WHERE id = ? AND tenant = "
                           "? AND created_ms >= ?",
                           v, 3, on_turn, &f},
            st));
    return f.is ? BR_OK : none(id, st);
}

br_code
br_talks_drop(br_talks *t, uint32_t tenant, const char *id, br_status *st)
{
    br_turn_kept is;

    BR_TRY(br_talks_get(t, tenant, id, &is, st));
    is.input = is.output = is.answer = (br_text){0};
    return wait(t, &is, DROP, st);
}

/* ---- all of a talk ------------------------------------------------------- */

typedef struct walk {
    br_talks *t;
    uint32_t tenant;
    br_talks_each each;
    void *ctx;
    char next[BR_TALK_ID]; /* "": that was the first */
    int n;
} walk;

static br_code
step(walk *w, const br_turn_kept *k, br_status *st)
{
    if (w->n++ == BR_TALK_TURNS)
        return br_fail(st, BR_E_USAGE, "a talk has %d turns at most",
                       BR_TALK_TURNS);
    memcpy(w->next, k->previous, sizeof w->next);
    return w->each(w->ctx, k, st);
}

static br_code
on_step(void *ctx, const br_db_value *v, br_status *st)
{
    walk *w = ctx;
    br_turn_kept k = {.tenant = w->tenant, .alive_ms = v[2].i};
    const change *is;

    if (v[0].s.n >= BR_TALK_ID || v[1].s.n >= BR_TALK_ID ||
        !br_text_is(v[0].s, w->next))
        return br_fail(st, BR_E_FORMAT, "responses: malformed row");
    br_mutex_lock(&w->t->lock);
    is = latest(w->t, w->tenant, w->next);
    br_mutex_unlock(&w->t->lock);
    if (is && is->what == DROP)
        return none(w->next, st);
    memcpy(k.id, v[0].s.p, v[0].s.n);
    memcpy(k.previous, v[1].s.p, v[1].s.n);
    k.input = v[3].s;
    k.output = v[4].s;
    return step(w, &k, st);
}

/* One question for as many as have 16 MB: a database may be far away, and a
 * talk has no more. What is dropped meanwhile may be among them: on_step sees
 * that it waits. */
static br_code
walk_database(walk *w, br_status *st)
{
    const int64_t since = oldest(w->t);
    const br_db_value v[] = {TEXT(w->next), INT(w->tenant), INT(since),
                             INT(w->tenant), INT(since)};

    br_code code;

    br_mutex_lock(&w->t->walk);
    code = w->t->kind->run(
        w->t->mine,
        &(br_db_query){
            "WITH RECURSIVE talk(id, previous, alive_ms, input, output, depth, "
            "size) AS (SELECT id, previous, alive_ms, input, output, 1, "
            "length(input) + length(output) FROM turn WHERE id = ? AND tenant "
            "= ? AND created_ms >= ? UNION ALL SELECT t.id, t.previous, "
            "t.alive_ms, t.input, t.output, talk.depth + 1, talk.size + "
            "length(t.input) + length(t.output) FROM talk JOIN turn t ON t.id "
            "= talk.previous WHERE t.tenant = ? AND t.created_ms >= ? AND "
            "talk.depth < 256 AND talk.size < 16777216) SELECT id, previous, "
            "alive_ms, input, output FROM talk ORDER BY depth",
            v, BR_COUNT(v), on_step, w},
        st);
    br_mutex_unlock(&w->t->walk);
    return code;
}

br_code
br_talks_walk(br_talks *t, uint32_t tenant, const char *id, br_talks_each each,
              void *ctx, br_status *st)
{
    walk w = {.t = t, .tenant = tenant, .each = each, .ctx = ctx};

    if (!is_id(id))
        return none(id, st);
    memcpy(w.next, id, strlen(id) + 1);
    while (w.next[0]) {
        br_turn_kept k = {.tenant = tenant};
        found f = {t, &k, false};
        bool any;
        int n = w.n;

        memcpy(k.id, w.next, sizeof k.id);
        BR_TRY(look_at_waiting(t, &f, &any, st));
        BR_TRY(f.is  ? step(&w, &k, st)
               : any ? none(w.next, st)
                     : walk_database(&w, st));
        if (w.n == n)
            return none(w.next, st);
    }
    return BR_OK;
}
