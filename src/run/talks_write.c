/* talks_write.c - talks' tables, and the thread that writes what waits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/talks_int.h"

#include "base/log.h"
#include "run/talks_list.h"

#include <stdio.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)
enum { MARK = 0x42725431 /* of the file: "BrT1" */, FORMAT = 2 };

typedef br_talk_change change;

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

#define CUTS "cuts TEXT NOT NULL DEFAULT ''"
#define TURN                                                                   \
    "turn(id TEXT PRIMARY KEY, tenant BIGINT NOT NULL, created_ms BIGINT NOT " \
    "NULL, previous TEXT NOT NULL, input TEXT NOT NULL, output TEXT NOT "      \
    "NULL, answer TEXT NOT NULL, alive_ms BIGINT NOT NULL DEFAULT 0, " CUTS
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

/* Formats of files: 0 had no alive_ms, 1 no cuts. */
static br_code
make_file(br_talks *t, br_status *st)
{
    static const char *const schema[] = {
        "PRAGMA application_id = 1114788913", /* MARK */
        "CREATE TABLE " TURN ")", INDEXES, "PRAGMA user_version = 2"};
    static const char *const later[] = {
        "ALTER TABLE turn ADD COLUMN alive_ms BIGINT NOT NULL DEFAULT 0",
        ("ALTER TABLE turn ADD COLUMN " CUTS), "PRAGMA user_version = 2"};
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
    if (format >= 0 && format < FORMAT)
        return all_of(t, later + format, BR_COUNT(later) - (size_t)format, st);
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
        ("ALTER TABLE turn ADD COLUMN IF NOT EXISTS " CUTS), INDEXES};

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

br_code
br_talks_make(br_talks *t, br_status *st)
{
    return in_transaction(t, make, st);
}

/* ---- writing ------------------------------------------------------------- */

static br_code
write_put(br_talks *t, const br_turn_kept *k, br_status *st)
{
    const br_db_value row[] = {
        TEXT(k->id),       INT(k->tenant),   INT(k->created_ms),
        TEXT(k->previous), {.s = k->input},  {.s = k->output},
        {.s = k->answer},  INT(k->alive_ms), {.s = k->cuts}};
    const br_db_value most[] = {INT(k->tenant), INT(t->c.most)};

    BR_TRY(ask(t, t->its,
               "INSERT INTO turn(id, tenant, created_ms, previous, input, "
               "output, answer, alive_ms, cuts) VALUES(?, ?, ?, ?, ?, ?, ?, ?, "
               "?) ON "
               "CONFLICT(id) DO UPDATE SET created_ms = excluded.created_ms, "
               "previous = excluded.previous, input = excluded.input, output = "
               "excluded.output, answer = excluded.answer, alive_ms = "
               "excluded.alive_ms, cuts = excluded.cuts WHERE turn.tenant = "
               "excluded.tenant",
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

static br_code
on_list(void *ctx, const br_db_value *v, br_status *st)
{
    br_str *list = ctx;

    br_str_put(list, v[0].s.p, v[0].s.n);
    return list->oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

br_code
br_talks_change(const change *c, br_str *list, br_status *st)
{
    return c->what == ADD ? br_talks_list_add(list, c->t.input, st)
                          : br_talks_list_cut(list, c->t.input, st);
}

/* To what is there by now; FOR UPDATE: until the transaction's end. */
static br_code
write_list(br_talks *t, const change *c, br_status *st)
{
    const br_db_value which[] = {TEXT(c->t.id), INT(c->t.tenant)};
    br_str list = {0};
    br_code code = t->kind->run(
        t->its,
        &(br_db_query){t->kind->remote ? "SELECT input FROM turn WHERE id = ? "
                                         "AND tenant = ? FOR UPDATE"
                                       : "SELECT input FROM turn WHERE id = ? "
                                         "AND tenant = ?",
                       which, BR_COUNT(which), on_list, &list},
        st);

    if (code == BR_OK && list.n) { /* else it was dropped */
        code = br_talks_change(c, &list, st);
        if (code == BR_OK) {
            const br_db_value row[] = {{.s = {list.at, list.n}},
                                       INT(c->t.created_ms),
                                       which[0],
                                       which[1]};

            code = ask(t, t->its,
                       "UPDATE turn SET input = ?, created_ms = ? WHERE id = ? "
                       "AND tenant = ?",
                       row, BR_COUNT(row), st);
        }
    }
    br_str_fini(&list);
    return code;
}

/* All may be done twice: a COMMIT may have failed when all was done. */
static br_code
write_one(br_talks *t, const change *c, br_status *st)
{
    const br_turn_kept *k = &c->t;
    const br_db_value which[] = {TEXT(k->id), INT(k->tenant)};
    const br_db_value beat[] = {INT(k->alive_ms), which[0], which[1]};
    const br_db_value end[] = {
        {.s = k->output}, {.s = k->answer}, {.s = k->cuts}, which[0], which[1]};
    const br_db_value named[] = {
        {.s = k->answer}, INT(k->created_ms), which[0], which[1]};

    switch (c->what) {
    case PUT: return write_put(t, k, st);
    case ADD:
    case CUT: return write_list(t, c, st);
    case NAME:
        return ask(t, t->its,
                   "UPDATE turn SET answer = ?, created_ms = ? WHERE id = ? "
                   "AND tenant = ?",
                   named, BR_COUNT(named), st);
    case END:
        return ask(t, t->its,
                   "UPDATE turn SET output = ?, answer = ?, cuts = ?, alive_ms "
                   "= 0 WHERE id = ? AND tenant = ? AND alive_ms <> 0",
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

int64_t
br_talks_oldest(const br_talks *t)
{
    return br_wall_ns() / 1000000 - t->c.days * DAY_MS;
}

/* All up to t->upto: only this thread takes away. */
static br_code
write_all(br_talks *t, br_status *st)
{
    const br_db_value before = INT(br_talks_oldest(t));
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

size_t
br_talks_bytes(const change *c)
{
    return sizeof *c + c->t.input.n + c->t.output.n + c->t.answer.n +
           c->t.cuts.n;
}

void
br_talks_forget(br_talks *t, change **end)
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
        t->waiting -= br_talks_bytes(x);
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
    work = t->first != NULL || t->looks;
    br_mutex_unlock(&t->lock);
    return work || atomic_load_explicit(&t->stop, memory_order_acquire);
}

static bool
stops(void *arg)
{
    return atomic_load_explicit(&((br_talks *)arg)->stop, memory_order_acquire);
}

/* What is to be done now. Who is watched has its row by the end of what is
 * written: it was put before. */
static void
take_work(br_talks *t)
{
    t->looked.n = 0;
    br_mutex_lock(&t->lock);
    t->upto = t->first ? t->end : NULL;
    for (size_t i = 0; t->looks && i < t->watched.n; i++)
        if (!br_vec_push(&t->looked, t->watched.at[i]))
            break; /* the rest next time */
    t->looks = false;
    br_mutex_unlock(&t->lock);
}

static br_code
on_living(void *ctx, const br_db_value *v, br_status *st)
{
    br_talks *t = ctx;

    (void)st;
    for (size_t i = 0; i < t->looked.n; i++)
        t->looked.at[i].lives |= br_text_is(v[0].s, t->looked.at[i].id);
    return BR_OK;
}

enum { EACH = 16 }; /* asked for at a time */

/* Places that are left over ask for nothing. */
static br_code
look_at(br_talks *t, size_t from, br_status *st)
{
    br_db_value id[EACH];

    for (size_t i = 0; i < EACH; i++)
        id[i] = TEXT(from + i < t->looked.n ? t->looked.at[from + i].id : "");
    return t->kind->run(
        t->its,
        &(br_db_query){"SELECT id FROM turn WHERE alive_ms <> 0 AND id IN (?, "
                       "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                       id, EACH, on_living, t},
        st);
}

/* Another server has ended those whose rows say so, or are gone. */
static br_code
look(br_talks *t, br_status *st)
{
    for (size_t i = 0; i < t->looked.n; i += EACH)
        BR_TRY(look_at(t, i, st));
    br_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->watched.n; i++)
        for (size_t k = 0; k < t->looked.n; k++)
            if (!t->looked.at[k].lives &&
                strcmp(t->looked.at[k].id, t->watched.at[i].id) == 0)
                t->watched.at[i].over = true;
    br_mutex_unlock(&t->lock);
    return BR_OK;
}

void
br_talks_write(void *arg)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};
    br_talks *t = arg;
    bool over = false;

    while (!over) {
        br_status st = {0};
        br_code code = BR_OK;

        (void)br_event_await(&t->wake, has_work, t, 0, -1);
        over = stops(t); /* then what waits is written once more */
        take_work(t);
        /* What comes meanwhile is written next time: br_talks_forget() takes no more
         * than was there. */
        if (t->upto) {
            code = in_transaction(t, write_all, &st);
            if (code == BR_OK)
                br_talks_forget(t, t->upto);
        }
        if (code == BR_OK && t->looked.n)
            code = look(t, &st);
        if (code == BR_OK)
            continue;
        br_log_limited(&limit, BR_EV_talks_failed, "%s", st.msg);
        (void)br_event_await(&t->wake, stops, t, 0, BR_TALKS_WRITE_NS);
    }
}
