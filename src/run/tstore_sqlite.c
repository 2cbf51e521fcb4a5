/* tstore_sqlite.c - tenants, keys and ledgers in SQLite. See tstore.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tstore_int.h"

#ifdef BR_HAVE_SQLITE
#    include "base/hash.h"
#    include "base/thread.h"

#    include <errno.h>
#    include <fcntl.h>
#    include <sqlite3.h>
#    include <stdio.h>
#    include <string.h>
#    include <unistd.h>

bool
br_tstore_here(void)
{
    return true;
}

/* ---- the file ------------------------------------------------------------ */

enum { FORMAT = 1, BUSY_MS = 5000 };

struct br_tstore {
    sqlite3 *db;
    br_str path;
};

static const char schema[] =
    "CREATE TABLE tenant(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE"
    " NOT NULL, created INTEGER NOT NULL, qos TEXT NOT NULL"
#    define Q(column, json, opt) ", " #    column " INTEGER NOT NULL"
#    include "run/tstore.def"
#    undef Q
    ");"
    "CREATE TABLE key(id TEXT PRIMARY KEY, tenant INTEGER NOT NULL REFERENCES "
    "tenant(id), secret BLOB NOT NULL, created INTEGER NOT NULL);"
    "CREATE TABLE ledger(tenant INTEGER PRIMARY KEY"
#    define L(column, how, kind) ", " #    column " NOT NULL DEFAULT 0"
#    include "run/tstore.def"
#    undef L
    ");"
    "CREATE TABLE state(name TEXT PRIMARY KEY, value INTEGER NOT NULL);"
    "INSERT INTO state VALUES('format', 1), ('version', 0), ('running', 0);";

static br_code
failed(br_tstore *s, br_status *st)
{
    int e = sqlite3_extended_errcode(s->db);
    br_code code = BR_E_IO;

    if ((e & 0xff) == SQLITE_NOTADB || (e & 0xff) == SQLITE_CORRUPT)
        code = BR_E_FORMAT;
    else if ((e & 0xff) == SQLITE_BUSY)
        code = BR_E_BUSY;
    else if ((e & 0xff) == SQLITE_NOMEM)
        code = BR_E_OOM;
    return br_fail(st, code, "%s: %s", br_str_z(&s->path),
                   sqlite3_errmsg(s->db));
}

static br_code
run(br_tstore *s, const char *sql, br_status *st)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? BR_OK
               : failed(s, st);
}

static br_code
prepare(br_tstore *s, sqlite3_stmt **q, const char *sql, br_status *st)
{
    return sqlite3_prepare_v2(s->db, sql, -1, q, NULL) == SQLITE_OK
               ? BR_OK
               : failed(s, st);
}

/* Runs a statement that gives no rows, and ends it. */
static br_code
finish(br_tstore *s, sqlite3_stmt *q, br_status *st)
{
    int r = sqlite3_step(q);
    br_code code = r == SQLITE_DONE ? BR_OK : failed(s, st);

    (void)sqlite3_finalize(q);
    return code;
}

static br_code
get_state(br_tstore *s, const char *name, int64_t *value, br_status *st)
{
    sqlite3_stmt *q;
    br_code code = BR_OK;

    *value = 0;
    BR_TRY(prepare(s, &q, "SELECT value FROM state WHERE name = ?1", st));
    (void)sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(q) == SQLITE_ROW)
        *value = sqlite3_column_int64(q, 0);
    else
        code = br_fail(st, BR_E_FORMAT, "%s: no %s: not a file of brass",
                       br_str_z(&s->path), name);
    (void)sqlite3_finalize(q);
    return code;
}

/* Changes are transactions: all of it or nothing, and on the disk. */
static br_code
end_change(br_tstore *s, br_code code, br_status *st)
{
    if (code == BR_OK)
        code = run(s, "COMMIT", st);
    if (code != BR_OK)
        (void)run(s, "ROLLBACK", NULL);
    return code;
}

static br_code
make_tables(br_tstore *s, br_status *st)
{
    sqlite3_stmt *q;
    br_code code;
    bool empty;

    BR_TRY(run(s, "BEGIN IMMEDIATE", st));
    code = prepare(s, &q, "SELECT 1 FROM sqlite_schema LIMIT 1", st);
    if (code == BR_OK) {
        empty = sqlite3_step(q) == SQLITE_DONE;
        (void)sqlite3_finalize(q);
        if (empty)
            code = run(s, schema, st);
    }
    return end_change(s, code, st);
}

static br_code
open_file(br_tstore *s, br_status *st)
{
    const char *path = br_str_z(&s->path);
    int64_t format;
    /* Only a new file: closing one drops the locks that SQLite has on it in
     * this process, and others then take its log for an orphan's. */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 && errno != EEXIST)
        return br_fail(st, BR_E_IO, "%s: cannot be opened for writing", path);
    if (fd >= 0)
        (void)close(fd);
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        return s->db ? failed(s, st)
                     : br_fail(st, BR_E_OOM, "%s: out of memory", path);
    (void)sqlite3_busy_timeout(s->db, BUSY_MS);
    BR_TRY(run(s,
               "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
               "PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF",
               st));
    BR_TRY(make_tables(s, st));
    BR_TRY(get_state(s, "format", &format, st));
    if (format != FORMAT)
        return br_fail(st, BR_E_VERSION,
                       "%s: format %lld, this program reads %d", path,
                       (long long)format, FORMAT);
    return BR_OK;
}

br_code
br_tstore_open(br_tstore **out, const char *path, br_status *st)
{
    br_tstore *s = br_try_calloc(1, sizeof *s);
    br_code code;

    *out = NULL;
    if (s)
        br_str_puts(&s->path, path);
    if (!s || s->path.oom) {
        br_tstore_close(s);
        return br_fail(st, BR_E_OOM, "%s: out of memory", path);
    }
    code = open_file(s, st);
    if (code != BR_OK)
        br_tstore_close(s);
    else
        *out = s;
    return code;
}

void
br_tstore_close(br_tstore *s)
{
    if (!s)
        return;
    (void)sqlite3_close(s->db);
    br_str_fini(&s->path);
    br_free(s);
}

/* ---- tenants ------------------------------------------------------------- */

/* From parameter 3 on. */
static void
bind_quota(sqlite3_stmt *q, const br_quota *quota)
{
    int i = 3;

    (void)sqlite3_bind_text(q, i++, br_qos_name(quota->qos), -1, SQLITE_STATIC);
#    define Q(column, json, opt) \
        (void)sqlite3_bind_int64(q, i++, quota->column);
#    include "run/tstore.def"
#    undef Q
}

static br_code
read_tenant(br_tstore *s, sqlite3_stmt *q, br_tenant *t, br_status *st)
{
    const char *name = (const char *)sqlite3_column_text(q, 1);
    const char *qos = (const char *)sqlite3_column_text(q, 3);
    int64_t id = sqlite3_column_int64(q, 0);
    int i = 4;

    *t = (br_tenant){.created = sqlite3_column_int64(q, 2)};
    if (!name || !qos || strlen(name) >= sizeof t->name || id <= 0 ||
        id >= BR_MAX_TENANTS || !br_qos_find(br_text_z(qos), &t->quota.qos))
        return br_fail(st, BR_E_FORMAT, "%s: tenant %lld: malformed row",
                       br_str_z(&s->path), (long long)id);
    t->id = (uint32_t)id;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
#    define Q(column, json, opt) \
        t->quota.column = (uint32_t)sqlite3_column_int64(q, i++);
#    include "run/tstore.def"
#    undef Q
    return br_quota_check(&t->quota, st);
}

#    define Q(column, json, opt) ", " #    column
static const char select_tenants[] = "SELECT id, name, created, qos"
#    include "run/tstore.def"
                                     " FROM tenant";
static const char insert_tenant[] = "INSERT INTO tenant(name, created, qos"
#    include "run/tstore.def"
#    undef Q
                                    ") VALUES(?1, ?2, ?3"
#    define Q(column, json, opt) ", ?"
#    include "run/tstore.def"
#    undef Q
                                    ")";
static const char update_tenant[] = "UPDATE tenant SET name = ?1, created = "
                                    "max(created, ?2), qos = ?3"
#    define Q(column, json, opt) ", " #    column " = ?"
#    include "run/tstore.def"
#    undef Q
                                    " WHERE name = ?1";

static br_code
add_key(br_tstore *s, int64_t tenant, char key[BR_KEY_CHARS], br_status *st)
{
    uint8_t digest[BR_BLAKE2B_BYTES];
    sqlite3_stmt *q;

    br_tstore_new_key(key);
    br_blake2b(key + 4 + BR_KEY_ID, BR_KEY_SECRET, digest);
    BR_TRY(prepare(s, &q, "INSERT INTO key VALUES(?1, ?2, ?3, ?4)", st));
    (void)sqlite3_bind_text(q, 1, key + 3, BR_KEY_ID, SQLITE_STATIC);
    (void)sqlite3_bind_int64(q, 2, tenant);
    (void)sqlite3_bind_blob(q, 3, digest, sizeof digest, SQLITE_STATIC);
    (void)sqlite3_bind_int64(q, 4, br_wall_ns() / 1000000000);
    return finish(s, q, st);
}

static br_code
count_change(br_tstore *s, br_status *st)
{
    return run(s, "UPDATE state SET value = value + 1 WHERE name = 'version'",
               st);
}

static br_code
create(br_tstore *s, const char *name, const br_quota *quota, uint32_t *id,
       char key[BR_KEY_CHARS], br_status *st)
{
    sqlite3_stmt *q;
    int64_t row;

    BR_TRY(prepare(s, &q, insert_tenant, st));
    (void)sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(q, 2, br_wall_ns() / 1000000000);
    bind_quota(q, quota);
    if (sqlite3_step(q) == SQLITE_CONSTRAINT) {
        (void)sqlite3_finalize(q);
        return br_fail(st, BR_E_USAGE, "tenant '%s' is there already", name);
    }
    if (sqlite3_finalize(q) != SQLITE_OK)
        return failed(s, st);
    row = sqlite3_last_insert_rowid(s->db);
    if (row >= BR_MAX_TENANTS)
        return br_fail(st, BR_E_LIMIT, "at most %d tenants were ever made here",
                       BR_MAX_TENANTS - 1);
    *id = (uint32_t)row;
    BR_TRY(add_key(s, row, key, st));
    return count_change(s, st);
}

br_code
br_tstore_create(br_tstore *s, const char *name, const br_quota *q,
                 uint32_t *id, char key[BR_KEY_CHARS], br_status *st)
{
    BR_TRY(br_tstore_check_name(name, st));
    BR_TRY(br_quota_check(q, st));
    BR_TRY(run(s, "BEGIN IMMEDIATE", st));
    return end_change(s, create(s, name, q, id, key, st), st);
}

br_code
br_tstore_find(br_tstore *s, const char *name, br_tenant *out, br_status *st)
{
    char sql[sizeof select_tenants + 32];
    sqlite3_stmt *q;
    br_code code;

    (void)snprintf(sql, sizeof sql, "%s WHERE name = ?1", select_tenants);
    BR_TRY(prepare(s, &q, sql, st));
    (void)sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    switch (sqlite3_step(q)) {
    case SQLITE_ROW: code = read_tenant(s, q, out, st); break;
    case SQLITE_DONE:
        code = br_fail(st, BR_E_NOT_FOUND, "there is no tenant '%s'", name);
        break;
    default: code = failed(s, st); break;
    }
    (void)sqlite3_finalize(q);
    return code;
}

br_code
br_tstore_each(br_tstore *s, bool (*each)(void *ctx, const br_tenant *t),
               void *ctx, br_status *st)
{
    char sql[sizeof select_tenants + 32];
    sqlite3_stmt *q;
    br_code code = BR_OK;
    int r;

    (void)snprintf(sql, sizeof sql, "%s ORDER BY id", select_tenants);
    BR_TRY(prepare(s, &q, sql, st));
    while ((r = sqlite3_step(q)) == SQLITE_ROW && code == BR_OK) {
        br_tenant t;

        code = read_tenant(s, q, &t, st);
        if (code == BR_OK && !each(ctx, &t))
            break;
    }
    if (code == BR_OK && r != SQLITE_DONE && r != SQLITE_ROW)
        code = failed(s, st);
    (void)sqlite3_finalize(q);
    return code;
}

static br_code
set(br_tstore *s, const char *name, const br_quota *quota, br_status *st)
{
    sqlite3_stmt *q;

    BR_TRY(prepare(s, &q, update_tenant, st));
    (void)sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_int64(q, 2, 0);
    bind_quota(q, quota);
    BR_TRY(finish(s, q, st));
    if (sqlite3_changes(s->db) == 0)
        return br_fail(st, BR_E_NOT_FOUND, "there is no tenant '%s'", name);
    return count_change(s, st);
}

br_code
br_tstore_set(br_tstore *s, const char *name, const br_quota *q, br_status *st)
{
    BR_TRY(br_quota_check(q, st));
    BR_TRY(run(s, "BEGIN IMMEDIATE", st));
    return end_change(s, set(s, name, q, st), st);
}

static br_code
new_keys(br_tstore *s, const char *name, char key[BR_KEY_CHARS], br_status *st)
{
    sqlite3_stmt *q;
    br_tenant t;

    BR_TRY(br_tstore_find(s, name, &t, st));
    BR_TRY(prepare(s, &q, "DELETE FROM key WHERE tenant = ?1", st));
    (void)sqlite3_bind_int64(q, 1, t.id);
    BR_TRY(finish(s, q, st));
    BR_TRY(add_key(s, t.id, key, st));
    return count_change(s, st);
}

br_code
br_tstore_rotate(br_tstore *s, const char *name, char key[BR_KEY_CHARS],
                 br_status *st)
{
    BR_TRY(run(s, "BEGIN IMMEDIATE", st));
    return end_change(s, new_keys(s, name, key, st), st);
}

br_code
br_tstore_version(br_tstore *s, int64_t *version, br_status *st)
{
    return get_state(s, "version", version, st);
}

br_code
br_tstore_key(br_tstore *s, br_text key, uint32_t *tenant, bool *ok,
              br_status *st)
{
    const char *secret = br_tstore_secret(key);
    uint8_t digest[BR_BLAKE2B_BYTES], none[BR_BLAKE2B_BYTES] = {0};
    const uint8_t *kept = none;
    sqlite3_stmt *q;
    br_code code = BR_OK;
    int r;

    *ok = false;
    if (!secret)
        return BR_OK;
    BR_TRY(prepare(s, &q, "SELECT tenant, secret FROM key WHERE id = ?1", st));
    (void)sqlite3_bind_text(q, 1, key.p + 3, BR_KEY_ID, SQLITE_STATIC);
    br_blake2b(secret, BR_KEY_SECRET, digest);
    r = sqlite3_step(q);
    if (r == SQLITE_ROW && sqlite3_column_bytes(q, 1) == sizeof digest)
        kept = sqlite3_column_blob(q, 1);
    else if (r != SQLITE_DONE)
        code = failed(s, st);
    /* Compared even when there is no such id: it takes as long. */
    *ok = br_same_secret(digest, kept, sizeof digest) && kept != none;
    *tenant = *ok ? (uint32_t)sqlite3_column_int64(q, 0) : 0;
    (void)sqlite3_finalize(q);
    return code;
}

/* ---- ledgers ------------------------------------------------------------- */

#    define L(column, how, kind) ", " #    column
static const char select_ledger[] = "SELECT 0"
#    include "run/tstore.def"
                                    " FROM ledger WHERE tenant = ?1";
static const char upsert_ledger[] = "INSERT INTO ledger(tenant"
#    include "run/tstore.def"
#    undef L
                                    ") VALUES(?1"
#    define L(column, how, kind) ", ?"
#    include "run/tstore.def"
#    undef L
                                    ") ON CONFLICT(tenant) DO UPDATE SET tenant"
                                    " = excluded.tenant"
#    define GROW_ADD(column) ", " #    column " = " #    column " + excluded." #    column
#    define GROW_MAX(column) \
        ", " #column " = max(" #column ", excluded." #column ")"
#    define GROW_SET(column)     ", " #    column " = excluded." #    column
#    define L(column, how, kind) GROW_##how(column)
#    include "run/tstore.def"
#    undef L
    ;

static br_code
add_one(br_tstore *s, const br_ledger_delta *d, br_status *st)
{
    sqlite3_stmt *q;
    int i = 1;

    BR_TRY(prepare(s, &q, upsert_ledger, st));
    (void)sqlite3_bind_int64(q, i++, d->tenant);
#    define BIND_I(v)              (void)sqlite3_bind_int64(q, i++, (int64_t)(v))
#    define BIND_F(v)              (void)sqlite3_bind_double(q, i++, (double)(v))
#    define BIND_ADD(column, kind) BIND_##kind(d->is.column - d->was.column)
#    define BIND_MAX(column, kind) BIND_##kind(d->is.column)
#    define BIND_SET(column, kind) BIND_##kind(d->is.column)
#    define L(column, how, kind)   BIND_##how(column, kind);
#    include "run/tstore.def"
#    undef L
    return finish(s, q, st);
}

br_code
br_tstore_add(br_tstore *s, const br_ledger_delta *d, size_t n, br_status *st)
{
    br_code code = BR_OK;

    BR_TRY(run(s, "BEGIN IMMEDIATE", st));
    for (size_t i = 0; i < n && code == BR_OK; i++)
        code = add_one(s, &d[i], st);
    return end_change(s, code, st);
}

br_code
br_tstore_usage(br_tstore *s, uint32_t tenant, br_ledger *out, br_status *st)
{
    sqlite3_stmt *q;
    br_code code = BR_OK;
    int r, i = 1;

    *out = (br_ledger){0};
    BR_TRY(prepare(s, &q, select_ledger, st));
    (void)sqlite3_bind_int64(q, 1, tenant);
    r = sqlite3_step(q);
    if (r == SQLITE_ROW) {
#    define GET_I sqlite3_column_int64
#    define GET_F sqlite3_column_double
#    define L(column, how, kind) \
        out->column = (__typeof__(out->column))GET_##kind(q, i++);
#    include "run/tstore.def"
#    undef L
    } else if (r != SQLITE_DONE) {
        code = failed(s, st);
    }
    (void)sqlite3_finalize(q);
    return code;
}

br_code
br_tstore_begin_run(br_tstore *s, bool *lost, br_status *st)
{
    int64_t running;

    BR_TRY(get_state(s, "running", &running, st));
    *lost = running != 0;
    return run(s, "UPDATE state SET value = 1 WHERE name = 'running'", st);
}

br_code
br_tstore_end_run(br_tstore *s, br_status *st)
{
    return run(s, "UPDATE state SET value = 0 WHERE name = 'running'", st);
}
#endif
