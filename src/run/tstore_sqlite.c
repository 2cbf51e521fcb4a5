/* tstore_sqlite.c - the store in a file: SQLite, WAL, FULL.
 *
 * Locks of servers are on a file beside it, NAME-run, one byte for each run:
 * locks on the database itself would end when SQLite closes it.
 *
 * A file is only read until claim(): it may be another program's, which then
 * stays as it was to the byte.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tstore_int.h"

#ifdef BR_HAVE_SQLITE
#    include <errno.h>
#    include <fcntl.h>
#    include <sqlite3.h>
#    include <string.h>
#    include <sys/stat.h>
#    include <unistd.h>

enum { BUSY_MS = 5000, KEPT = 16 };

/* Statements are kept as they were prepared: of a request's key that is more
 * than half of what asking for it takes. */
struct br_db {
    sqlite3 *db;
    sqlite3_stmt *kept[KEPT]; /* nobody's just now; NULL: none */
    uint32_t next;            /* which goes when there is no room */
    br_str path;
    int runs; /* the file of locks, or -1 */
};

static br_code
failed(br_db *s, br_status *st)
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

static void
bind(sqlite3_stmt *q, int i, const br_db_value *v)
{
    switch (v->kind) {
    case BR_DB_INT: (void)sqlite3_bind_int64(q, i, v->i); break;
    case BR_DB_REAL: (void)sqlite3_bind_double(q, i, v->f); break;
    case BR_DB_TEXT:
        (void)sqlite3_bind_text(q, i, v->s.p, (int)v->s.n, SQLITE_STATIC);
        break;
    }
}

static br_code
tell_row(sqlite3_stmt *q, const br_db_query *query, br_status *st)
{
    int n = sqlite3_column_count(q);
    br_db_value v[BR_DB_ARGS] = {0};

    br_check(n <= BR_DB_ARGS);
    for (int i = 0; i < n; i++) {
        v[i].kind = BR_DB_TEXT;
        if (sqlite3_column_type(q, i) == SQLITE_INTEGER)
            v[i].kind = BR_DB_INT;
        else if (sqlite3_column_type(q, i) == SQLITE_FLOAT)
            v[i].kind = BR_DB_REAL;
        v[i].i = sqlite3_column_int64(q, i);
        v[i].f = sqlite3_column_double(q, i);
        if (v[i].kind == BR_DB_TEXT)
            v[i].s = (br_text){(const char *)sqlite3_column_text(q, i),
                               (size_t)sqlite3_column_bytes(q, i)};
    }
    return query->row(query->ctx, v, st);
}

/* Out of those kept, so that who asks in the middle of a row gets another. */
static int
take(br_db *s, const char *sql, sqlite3_stmt **q)
{
    for (int i = 0; i < KEPT; i++)
        if (s->kept[i] && strcmp(sqlite3_sql(s->kept[i]), sql) == 0) {
            *q = s->kept[i];
            s->kept[i] = NULL;
            return SQLITE_OK;
        }
    return sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, q,
                              NULL);
}

/* Its transaction ends, and what its parameters point to may go. */
static void
keep(br_db *s, sqlite3_stmt *q)
{
    uint32_t i = 0;

    (void)sqlite3_reset(q);
    (void)sqlite3_clear_bindings(q);
    while (i < KEPT && s->kept[i])
        i++;
    if (i == KEPT) {
        i = s->next++ % KEPT;
        (void)sqlite3_finalize(s->kept[i]);
    }
    s->kept[i] = q;
}

static br_code
run(br_db *s, const br_db_query *query, br_status *st)
{
    sqlite3_stmt *q;
    br_code code = BR_OK;
    int r;

    if (take(s, query->sql, &q) != SQLITE_OK)
        return failed(s, st);
    for (int i = 0; i < query->n_args; i++)
        bind(q, i + 1, &query->arg[i]);
    while ((r = sqlite3_step(q)) == SQLITE_ROW && code == BR_OK)
        if (query->row)
            code = tell_row(q, query, st);
    if (code == BR_OK && r != SQLITE_DONE)
        code = failed(s, st);
    if (code == BR_OK)
        keep(s, q);
    else
        (void)sqlite3_finalize(q);
    return code;
}

/* ---- the file ------------------------------------------------------------ */

/* Names that SQLite takes for something else than a file, or that were meant to
 * be another kind of database: they may hold a password, which is not said. */
static br_code
check_name(const char *path, br_status *st)
{
    static const char *const schemes[] = {"file:", "postgres:", "postgresql:"};
    bool url = strstr(path, "://") != NULL;
    struct stat is;

    if (strcmp(path, ":memory:") == 0)
        return br_fail(st, BR_E_USAGE,
                       ":memory: would be another database for each who opens "
                       "it, and gone with its process: give a file");
    for (size_t i = 0; i < BR_COUNT(schemes); i++)
        url |= strncmp(path, schemes[i], strlen(schemes[i])) == 0;
    if (url)
        return br_fail(st, BR_E_USAGE,
                       "no such kind of database: give a file (./NAME if it is "
                       "called so), for tenants postgres://USER@HOST/DATABASE");
    if (stat(path, &is) == 0 && !S_ISREG(is.st_mode))
        return br_fail(st, BR_E_USAGE, "%s: is %s, no file", path,
                       S_ISDIR(is.st_mode) ? "a directory" : "a device");
    return BR_OK;
}

/* What a program that was killed left in its log would go into the file when the
 * last who has it open closes it. */
static void
leave_log(const br_db *s, bool leave)
{
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, (int)leave,
                            NULL);
}

static br_code
claim(br_db *s, br_status *st)
{
    leave_log(s, false);
    return run(s, &(br_db_query){.sql = "PRAGMA journal_mode = WAL"}, st);
}

static br_code
open_file(br_db *s, bool has_log, br_status *st)
{
    static const char *const pragmas[] = {"PRAGMA synchronous = FULL",
                                          "PRAGMA foreign_keys = ON",
                                          "PRAGMA trusted_schema = OFF"};
    const char *path = br_str_z(&s->path);
    int fd;

    BR_TRY(check_name(path, st));
    /* Only a new file: closing one drops the locks that SQLite has on it in
     * this process, and others then take its log for an orphan's. */
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST)
        return br_fail(st, BR_E_IO, "%s: cannot be opened for writing: %s",
                       path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    if (sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        return s->db ? failed(s, st)
                     : br_fail(st, BR_E_OOM, "%s: out of memory", path);
    (void)sqlite3_busy_timeout(s->db, BUSY_MS);
    leave_log(s, has_log);
    for (size_t i = 0; i < BR_COUNT(pragmas); i++)
        BR_TRY(run(s, &(br_db_query){.sql = pragmas[i]}, st));
    return BR_OK;
}

static void
close_file(br_db *s)
{
    if (!s)
        return;
    for (int i = 0; i < KEPT; i++)
        (void)sqlite3_finalize(s->kept[i]);
    (void)sqlite3_close(s->db);
    if (s->runs >= 0)
        (void)close(s->runs);
    br_str_fini(&s->path);
    br_free(s);
}

static br_code
open_db(br_db **out, const char *where, const _Atomic bool *stop, br_status *st)
{
    br_db *s = br_try_calloc(1, sizeof *s);
    br_str log = {0};
    br_code code;

    (void)stop; /* a file waits for nobody */
    if (!s)
        return br_fail(st, BR_E_OOM, "%s: out of memory", where);
    *out = s; /* the caller closes it */
    s->runs = -1;
    br_str_puts(&s->path, where);
    br_str_printf(&log, "%s-wal", where);
    code = s->path.oom || log.oom
               ? br_fail(st, BR_E_OOM, "%s: out of memory", where)
               : open_file(s, access(log.at, F_OK) == 0, st);
    br_str_fini(&log);
    return code;
}

static const char *
name(const br_db *s)
{
    return s->path.at;
}

static void
patience(br_db *s, int ms)
{
    (void)sqlite3_busy_timeout(s->db, ms);
}

/* ---- servers ------------------------------------------------------------- */

static int
lock(br_db *s, int64_t id, short type)
{
    struct flock l = {.l_type = type, .l_start = id, .l_len = 1};

    return fcntl(s->runs, F_OFD_SETLK, &l);
}

static br_code
hold(br_db *s, int64_t id, bool *got, br_status *st)
{
    *got = false;
    if (s->runs < 0) {
        br_str path = {0};

        br_str_printf(&path, "%s-run", s->path.at);
        if (path.oom)
            return br_fail(st, BR_E_OOM, "out of memory");
        s->runs = open(path.at, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        br_str_fini(&path);
    }
    *got = s->runs >= 0 && id > 0 && lock(s, id, F_WRLCK) == 0;
    if (*got || (s->runs >= 0 && (errno == EAGAIN || errno == EACCES)))
        return BR_OK;
    return br_fail(st, BR_E_IO, "%s-run: cannot be locked", s->path.at);
}

static void
release(br_db *s, int64_t id)
{
    if (s->runs >= 0)
        (void)lock(s, id, F_UNLCK);
}

const br_db_kind br_db_sqlite = {
    .begin = "BEGIN IMMEDIATE",
    .is_new = "SELECT NOT EXISTS(SELECT 1 FROM sqlite_schema)",
    .is_ours = "SELECT count(*) = 3 FROM sqlite_schema WHERE name IN "
               "('state', 'tenant', 'ledger')",
    .id = "INTEGER PRIMARY KEY AUTOINCREMENT",
    .open = open_db,
    .claim = claim,
    .close = close_file,
    .run = run,
    .hold = hold,
    .release = release,
    .name = name,
    .patience = patience,
};
#endif
