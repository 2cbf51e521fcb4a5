/* tstore.c - see tstore.h: the schema and the statements.
 *
 * One server is one row of `run`, held by a lock that ends with its process,
 * so the next one finds out who did not end well. Its `seq` counts batches of
 * counters: a batch whose COMMIT was not answered is sent again, and is not
 * counted twice.
 *
 * Keys of a database that is not in this process are kept for a second, or
 * while it cannot be asked for STALE_NS.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/thread.h"
#include "run/tstore_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT = 5, KEYS = 1024, HURRY_MS = 500 };

#define FRESH_NS INT64_C(1000000000)
#define STALE_NS INT64_C(600000000000)

typedef struct kept_key {
    char id[BR_KEY_ID], digest[BR_KEY_DIGEST];
    br_key_owner who; /* tenant 0: empty */
} kept_key;

struct br_tstore {
    const br_db_kind *kind;
    br_db *db;
    int64_t run, seq; /* 0: no server */
    kept_key *keys;   /* [KEYS]; NULL: not remote */
    int64_t keys_version, asked_ns, answered_ns;
};

bool
br_tstore_here(void)
{
#ifdef BR_HAVE_SQLITE
    return true;
#else
    return false;
#endif
}

/* ---- statements ---------------------------------------------------------- */

br_code
br_tstore_ask(br_tstore *s, const br_db_query *q, br_status *st)
{
    return s->kind->run(s->db, q, st);
}

static br_code
run(br_tstore *s, const char *sql, br_status *st)
{
    return br_tstore_ask(s, &(br_db_query){.sql = sql}, st);
}

typedef struct number {
    int64_t value;
    bool found;
} number;

static br_code
on_number(void *ctx, const br_db_value *v, br_status *st)
{
    number *n = ctx;

    n->value = v->i;
    n->found = v->kind == BR_DB_INT;
    return n->found ? BR_OK : br_fail(st, BR_E_FORMAT, "not a number");
}

static br_code
get_state(br_tstore *s, const char *name, int64_t *value, br_status *st)
{
    number n = {0};

    *value = 0;
    BR_TRY(br_tstore_ask(
        s,
        &(br_db_query){"SELECT value FROM state WHERE name = ?",
                       (br_db_value[]){TEXT(name)}, 1, on_number, &n},
        st));
    *value = n.value;
    return n.found ? BR_OK
                   : br_fail(st, BR_E_FORMAT, "%s: no %s: not made by brass",
                             s->kind->name(s->db), name);
}

br_code
br_tstore_begin(br_tstore *s, br_status *st)
{
    return run(s, s->kind->begin, st);
}

br_code
br_tstore_end(br_tstore *s, br_code code, br_status *st)
{
    if (code == BR_OK)
        code = run(s, "COMMIT", st);
    if (code != BR_OK)
        (void)run(s, "ROLLBACK", NULL);
    return code;
}

/* Also makes whoever changes tenants wait for the one before. */
static br_code
begin_change(br_tstore *s, br_status *st)
{
    br_code code;

    BR_TRY(br_tstore_begin(s, st));
    code =
        run(s, "UPDATE state SET value = value + 1 WHERE name = 'version'", st);
    s->asked_ns = 0;
    return code == BR_OK ? BR_OK : br_tstore_end(s, code, st);
}

/* ---- schema -------------------------------------------------------------- */

static const char *const schema[] = {
    "CREATE TABLE tenant(id %s, name TEXT UNIQUE NOT NULL, created BIGINT NOT "
    "NULL, qos TEXT NOT NULL, model TEXT NOT NULL DEFAULT ''"
#define Q(column, json, opt) ", " #column " BIGINT NOT NULL"
#include "run/tstore.def"
#undef Q
    ")",
    "CREATE TABLE key(id TEXT PRIMARY KEY, tenant BIGINT NOT NULL REFERENCES "
    "tenant(id), digest TEXT NOT NULL, created BIGINT NOT NULL)",
    "CREATE TABLE ledger(tenant BIGINT PRIMARY KEY"
#define TYPE_I               "BIGINT"
#define TYPE_F               "DOUBLE PRECISION"
#define L(column, how, kind) ", " #column " " TYPE_##kind " NOT NULL DEFAULT 0"
#include "run/tstore.def"
#undef L
    ")",
    "CREATE TABLE request(id TEXT PRIMARY KEY, tenant BIGINT NOT NULL, model "
    "TEXT NOT NULL, finish TEXT NOT NULL, ended_ms BIGINT NOT NULL"
#define R(column, kind) ", " #column " " TYPE_##kind " NOT NULL"
#include "run/tstore.def"
#undef R
    ")",
    "CREATE INDEX request_ended ON request(ended_ms)",
    "CREATE INDEX request_tenant ON request(tenant, ended_ms)",
    "CREATE TABLE run(id %s, seq BIGINT NOT NULL)",
    "CREATE TABLE state(name TEXT PRIMARY KEY, value BIGINT NOT NULL)",
    "INSERT INTO state VALUES('format', 5), ('version', 0)",
};

static br_code
check_ours(br_tstore *s, br_status *st)
{
    number ours = {.value = 1};

    if (s->kind->is_ours)
        BR_TRY(br_tstore_ask(s,
                             &(br_db_query){.sql = s->kind->is_ours,
                                            .row = on_number,
                                            .ctx = &ours},
                             st));
    return ours.value ? BR_OK
                      : br_fail(st, BR_E_FORMAT,
                                "%s: a database, but not one of tenants",
                                s->kind->name(s->db));
}

static br_code
make_all(br_tstore *s, br_status *st)
{
    number new = {0};

    if (s->kind->guard)
        BR_TRY(run(s, s->kind->guard, st));
    BR_TRY(br_tstore_ask(
        s,
        &(br_db_query){.sql = s->kind->is_new, .row = on_number, .ctx = &new},
        st));
    if (!new.value)
        return check_ours(s, st);
    if (s->kind->make)
        BR_TRY(run(s, s->kind->make, st));
    for (size_t i = 0; i < BR_COUNT(schema); i++) {
        const char *hole = strstr(schema[i], "%s");
        br_str sql = {0};
        br_code code;

        if (hole)
            br_str_printf(&sql, "%.*s%s", (int)(hole - schema[i]), schema[i],
                          s->kind->id);
        br_str_puts(&sql, hole ? hole + 2 : schema[i]);
        code = sql.oom ? br_fail(st, BR_E_OOM, "out of memory")
                       : run(s, br_str_z(&sql), st);
        br_str_fini(&sql);
        BR_TRY(code);
    }
    return BR_OK;
}

/* What format 3 lacks. A server of that version that has the store open goes on:
 * it names the columns it knows, the others have their defaults. */
static const char *const from_3[] = {
    "ALTER TABLE tenant ADD COLUMN price_prompt BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE tenant ADD COLUMN price_cached BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE tenant ADD COLUMN price_generated BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE ledger ADD COLUMN cost_nano BIGINT NOT NULL DEFAULT 0",
};

/* And what format 4 lacks, likewise. */
static const char *const from_4[] = {
    "ALTER TABLE tenant ADD COLUMN model TEXT NOT NULL DEFAULT ''",
    "UPDATE state SET value = 5 WHERE name = 'format'",
};

static br_code
make_or_migrate(br_tstore *s, br_status *st)
{
    int64_t format;

    BR_TRY(make_all(s, st));
    BR_TRY(get_state(s, "format", &format, st));
    for (size_t i = 0; format == 3 && i < BR_COUNT(from_3); i++)
        BR_TRY(run(s, from_3[i], st));
    for (size_t i = 0; format >= 3 && format <= 4 && i < BR_COUNT(from_4); i++)
        BR_TRY(run(s, from_4[i], st));
    return format >= 3 && format <= FORMAT
               ? BR_OK
               : br_fail(st, BR_E_VERSION,
                         "%s: format %lld, this program reads 3 to %d",
                         s->kind->name(s->db), (long long)format, FORMAT);
}

static br_code
open_all(br_tstore *s, const char *where, const _Atomic bool *stop,
         br_status *st)
{
    BR_TRY(s->kind->open(&s->db, where, stop, st));
    if (s->kind->remote) {
        s->keys = br_try_calloc(KEYS, sizeof *s->keys);
        if (!s->keys)
            return br_fail(st, BR_E_OOM, "out of memory");
    }
    BR_TRY(br_tstore_begin(s, st));
    BR_TRY(br_tstore_end(s, make_or_migrate(s, st), st));
    return s->kind->claim ? s->kind->claim(s->db, st) : BR_OK;
}

br_code
br_db_choose(const char *where, const char *what, const br_db_kind **out,
             br_status *st)
{
    (void)out;  /* unused where neither is there */
    (void)what; /* these where both are there */
    (void)st;
    if (br_db_is_shared(where)) {
#ifdef BR_HAVE_PQ
        *out = &br_db_pg;
        return BR_OK;
#else
        return br_fail(st, BR_E_UNSUPPORTED,
                       "this brass was built without libpq, so it speaks to no "
                       "PostgreSQL: install libpq-dev and build it again");
#endif
    }
#ifdef BR_HAVE_SQLITE
    *out = &br_db_sqlite;
    return BR_OK;
#else
    return br_fail(st, BR_E_UNSUPPORTED,
                   "this brass was built without SQLite, so it keeps no %s: "
                   "install libsqlite3-dev and build it again",
                   what);
#endif
}

bool
br_db_is_shared(const char *where)
{
    return strncmp(where, "postgres://", 11) == 0 ||
           strncmp(where, "postgresql://", 13) == 0;
}

bool
br_tstore_absent(const char *where)
{
    return !br_db_is_shared(where) && access(where, F_OK) != 0 &&
           errno == ENOENT;
}

br_code
br_tstore_open(br_tstore **out, const char *where, br_status *st)
{
    return br_tstore_open_until(out, where, NULL, st);
}

br_code
br_tstore_open_until(br_tstore **out, const char *where,
                     const _Atomic bool *stop, br_status *st)
{
    br_tstore *s = br_try_calloc(1, sizeof *s);
    br_code code = s ? br_db_choose(where, "tenants", &s->kind, st)
                     : br_fail(st, BR_E_OOM, "out of memory");

    *out = NULL;
    if (code == BR_OK)
        code = open_all(s, where, stop, st);
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
    if (s->db)
        s->kind->close(s->db);
    br_free(s->keys);
    br_free(s);
}

void
br_tstore_tend(br_tstore *s)
{
    if (s->kind->tend)
        s->kind->tend(s->db);
}

void
br_tstore_hurry(br_tstore *s)
{
    if (s->kind->patience)
        s->kind->patience(s->db, HURRY_MS);
}

const char *
br_tstore_name(const br_tstore *s)
{
    return s->kind->name(s->db);
}

/* ---- tenants ------------------------------------------------------------- */

/* The quota from v[0] on; how many values that takes. */
static int
put_quota(br_db_value *v, const br_quota *q)
{
    int n = 0;

    v[n++] = TEXT(br_qos_name(q->qos));
    v[n++] = TEXT(q->model);
#define Q(column, json, opt) v[n++] = INT(q->column);
#include "run/tstore.def"
#undef Q
    return n;
}

/* "SELECT id, name, created, qos, model, ... FROM tenant". */
static br_code
read_tenant(const br_db_value *v, br_tenant *t, br_status *st)
{
    int i = 5;

    *t = (br_tenant){.created = v[2].i};
    if (v[1].s.n >= sizeof t->name || v[4].s.n >= sizeof t->quota.model ||
        v[0].i <= 0 || v[0].i >= BR_MAX_TENANTS ||
        !br_qos_find(v[3].s, &t->quota.qos))
        return br_fail(st, BR_E_FORMAT, "tenant %lld: malformed row",
                       (long long)v[0].i);
    t->id = (uint32_t)v[0].i;
    memcpy(t->name, v[1].s.p, v[1].s.n);
    memcpy(t->quota.model, v[4].s.p, v[4].s.n);
#define Q(column, json, opt) t->quota.column = (uint32_t)v[i++].i;
#include "run/tstore.def"
#undef Q
    return br_quota_check(&t->quota, st);
}

static const char select_tenant[] = "SELECT id, name, created, qos, model"
#define Q(column, json, opt) ", " #column
#include "run/tstore.def"
                                    " FROM tenant WHERE name = ?";
static const char select_tenants[] = "SELECT id, name, created, qos, model"
#include "run/tstore.def"
                                     " FROM tenant ORDER BY id";
static const char insert_tenant[] =
    "INSERT INTO tenant(name, created, qos, model"
#include "run/tstore.def"
#undef Q
    ") VALUES(?, ?, ?, ?"
#define Q(column, json, opt) ", ?"
#include "run/tstore.def"
#undef Q
    ") RETURNING id";
static const char update_tenant[] = "UPDATE tenant SET qos = ?, model = ?"
#define Q(column, json, opt) ", " #column " = ?"
#include "run/tstore.def"
#undef Q
                                    " WHERE name = ? RETURNING id";

static br_code
add_key(br_tstore *s, int64_t tenant, char key[BR_KEY_CHARS], br_status *st)
{
    char digest[BR_KEY_DIGEST + 1];
    br_db_value v[4];

    br_tstore_new_key(key);
    br_tstore_digest(key + 4 + BR_KEY_ID, digest);
    v[0] = (br_db_value){.s = {key + 3, BR_KEY_ID}};
    v[1] = INT(tenant);
    v[2] = TEXT(digest);
    v[3] = INT(br_wall_ns() / 1000000000);
    return br_tstore_ask(
        s,
        &(br_db_query){"INSERT INTO key(id, tenant, digest, created) "
                       "VALUES(?, ?, ?, ?)",
                       v, 4, NULL, NULL},
        st);
}

static br_code
create(br_tstore *s, const char *name, const br_quota *quota, uint32_t *id,
       char key[BR_KEY_CHARS], br_status *st)
{
    br_db_value v[BR_DB_ARGS] = {TEXT(name), INT(br_wall_ns() / 1000000000)};
    number is = {0};

    BR_TRY(br_tstore_ask(s,
                         &(br_db_query){"SELECT id FROM tenant WHERE name = ?",
                                        v, 1, on_number, &is},
                         st));
    if (is.found)
        return br_fail(st, BR_E_USAGE, "tenant '%s' is there already", name);
    BR_TRY(br_tstore_ask(s,
                         &(br_db_query){insert_tenant, v,
                                        2 + put_quota(v + 2, quota), on_number,
                                        &is},
                         st));
    if (is.value >= BR_MAX_TENANTS)
        return br_fail(st, BR_E_LIMIT, "at most %d tenants were ever made here",
                       BR_MAX_TENANTS - 1);
    *id = (uint32_t)is.value;
    return add_key(s, is.value, key, st);
}

br_code
br_tstore_create(br_tstore *s, const char *name, const br_quota *q,
                 uint32_t *id, char key[BR_KEY_CHARS], br_status *st)
{
    BR_TRY(br_tstore_check_name(name, st));
    BR_TRY(br_quota_check(q, st));
    BR_TRY(begin_change(s, st));
    return br_tstore_end(s, create(s, name, q, id, key, st), st);
}

static br_code
on_tenant(void *ctx, const br_db_value *v, br_status *st)
{
    return read_tenant(v, ctx, st);
}

static br_code
no_tenant(const char *name, br_status *st)
{
    return br_fail(st, BR_E_NOT_FOUND, "there is no tenant '%s'", name);
}

br_code
br_tstore_find(br_tstore *s, const char *name, br_tenant *out, br_status *st)
{
    *out = (br_tenant){0};
    BR_TRY(
        br_tstore_ask(s,
                      &(br_db_query){select_tenant, (br_db_value[]){TEXT(name)},
                                     1, on_tenant, out},
                      st));
    return out->id ? BR_OK : no_tenant(name, st);
}

typedef struct each_one {
    bool (*fn)(void *ctx, const br_tenant *t);
    void *ctx;
    bool ended;
} each_one;

static br_code
on_each(void *ctx, const br_db_value *v, br_status *st)
{
    each_one *e = ctx;
    br_tenant t;

    if (e->ended)
        return BR_OK;
    BR_TRY(read_tenant(v, &t, st));
    e->ended = !e->fn(e->ctx, &t);
    return BR_OK;
}

br_code
br_tstore_each(br_tstore *s, bool (*each)(void *ctx, const br_tenant *t),
               void *ctx, br_status *st)
{
    each_one e = {each, ctx, false};

    return br_tstore_ask(
        s, &(br_db_query){.sql = select_tenants, .row = on_each, .ctx = &e},
        st);
}

static br_code
set(br_tstore *s, const char *name, const br_quota *quota, br_status *st)
{
    br_db_value v[BR_DB_ARGS];
    int n = put_quota(v, quota);
    number is = {0};

    v[n++] = TEXT(name);
    BR_TRY(br_tstore_ask(s, &(br_db_query){update_tenant, v, n, on_number, &is},
                         st));
    return is.found ? BR_OK : no_tenant(name, st);
}

br_code
br_tstore_set(br_tstore *s, const char *name, const br_quota *q, br_status *st)
{
    BR_TRY(br_quota_check(q, st));
    BR_TRY(begin_change(s, st));
    return br_tstore_end(s, set(s, name, q, st), st);
}

static br_code
new_keys(br_tstore *s, const char *name, char key[BR_KEY_CHARS], br_status *st)
{
    br_tenant t;

    BR_TRY(br_tstore_find(s, name, &t, st));
    BR_TRY(
        br_tstore_ask(s,
                      &(br_db_query){"DELETE FROM key WHERE tenant = ?",
                                     (br_db_value[]){INT(t.id)}, 1, NULL, NULL},
                      st));
    return add_key(s, t.id, key, st);
}

br_code
br_tstore_rotate(br_tstore *s, const char *name, char key[BR_KEY_CHARS],
                 br_status *st)
{
    BR_TRY(begin_change(s, st));
    return br_tstore_end(s, new_keys(s, name, key, st), st);
}

br_code
br_tstore_version(br_tstore *s, int64_t *version, br_status *st)
{
    return get_state(s, "version", version, st);
}

/* ---- keys ---------------------------------------------------------------- */

static br_code
on_key(void *ctx, const br_db_value *v, br_status *st)
{
    kept_key *k = ctx;

    if (v[1].s.n != sizeof k->digest || v[0].i <= 0 ||
        v[0].i >= BR_MAX_TENANTS || v[2].s.n >= sizeof k->who.model)
        return br_fail(st, BR_E_FORMAT, "malformed key");
    k->who = (br_key_owner){.tenant = (uint32_t)v[0].i};
    memcpy(k->who.model, v[2].s.p, v[2].s.n);
    memcpy(k->digest, v[1].s.p, sizeof k->digest);
    return BR_OK;
}

/* Forgets the keys when a tenant was changed, or could have been. */
static void
look_after_keys(br_tstore *s)
{
    int64_t now = br_now_ns(), version;

    if (s->asked_ns && now < s->asked_ns + FRESH_NS)
        return;
    s->asked_ns = now;
    if (br_tstore_version(s, &version, NULL) == BR_OK) {
        s->answered_ns = now;
        if (version == s->keys_version)
            return;
        s->keys_version = version;
    } else if (now < s->answered_ns + STALE_NS) {
        return;
    }
    memset(s->keys, 0, KEYS * sizeof *s->keys);
}

/* *k: what is kept under this id; who.tenant 0 where there is nothing. */
static br_code
find_key(br_tstore *s, const char *id, kept_key *k, br_status *st)
{
    const br_db_value v = {.s = {id, BR_KEY_ID}};
    kept_key *kept = NULL;
    uint8_t at[BR_BLAKE2B_BYTES];

    *k = (kept_key){0};
    if (s->keys) {
        look_after_keys(s);
        br_blake2b(id, BR_KEY_ID, at);
        kept = &s->keys[(at[0] | at[1] << 8) % KEYS];
        if (kept->who.tenant && memcmp(kept->id, id, BR_KEY_ID) == 0) {
            *k = *kept;
            return BR_OK;
        }
    }
    BR_TRY(br_tstore_ask(
        s,
        &(br_db_query){"SELECT tenant, digest, model FROM key JOIN tenant ON "
                       "tenant.id = key.tenant WHERE key.id = ?",
                       &v, 1, on_key, k},
        st));
    memcpy(k->id, id, BR_KEY_ID);
    if (kept && k->who.tenant)
        *kept = *k;
    return BR_OK;
}

br_code
br_tstore_key(br_tstore *s, br_text key, br_key_owner *who, bool *ok,
              br_status *st)
{
    const char *secret = br_tstore_secret(key);
    char digest[BR_KEY_DIGEST + 1];
    kept_key k;
    br_code code;

    *ok = false;
    *who = (br_key_owner){0};
    if (!secret)
        return BR_OK;
    code = find_key(s, key.p + 3, &k, st);
    br_tstore_digest(secret, digest);
    /* Compared even when there is no such id: it takes as long. */
    *ok = br_same_secret(digest, k.digest, sizeof k.digest) && k.who.tenant;
    if (*ok)
        *who = k.who;
    return code;
}

/* ---- ledgers ------------------------------------------------------------- */

static const char select_ledger[] = "SELECT tenant"
#define L(column, how, kind) ", " #column
#include "run/tstore.def"
                                    " FROM ledger WHERE tenant = ?";
static const char upsert_ledger[] = "INSERT INTO ledger(tenant"
#include "run/tstore.def"
#undef L
                                    ") VALUES(?"
#define L(column, how, kind) ", ?"
#include "run/tstore.def"
#undef L
                                    ") ON CONFLICT(tenant) DO UPDATE SET tenant"
                                    " = excluded.tenant"
#define GROW_ADD(column) \
    ", " #column " = ledger." #column " + excluded." #column
#define GROW_MAX(column)                                               \
    ", " #column " = CASE WHEN ledger." #column " > excluded." #column \
    " THEN ledger." #column " ELSE excluded." #column " END"
#define GROW_SET(column)     ", " #column " = excluded." #column
#define L(column, how, kind) GROW_##how(column)
#include "run/tstore.def"
#undef L
    ;

static br_code
on_prices(void *ctx, const br_db_value *v, br_status *st)
{
    br_prices *p = ctx;

    (void)st;
    if (v[0].i || v[1].i || v[2].i)
        *p = (br_prices){(uint32_t)v[0].i, (uint32_t)v[1].i, (uint32_t)v[2].i};
    return BR_OK;
}

/* In the same change as the tokens: each costs what it cost when it was
 * counted, whatever becomes of the price. */
static br_code
add_cost(br_tstore *s, br_ledger_delta *d, br_status *st)
{
    uint64_t cached = d->is.tokens_cached - d->was.tokens_cached;
    uint64_t prompt = d->is.tokens_prompted - d->was.tokens_prompted;
    br_prices p = d->model;

    BR_TRY(br_tstore_ask(
        s,
        &(br_db_query){"SELECT price_prompt, price_cached, "
                       "price_generated FROM tenant WHERE id = ?",
                       (br_db_value[]){INT(d->tenant)}, 1, on_prices, &p},
        st));
    d->was.cost_nano = 0;
    d->is.cost_nano =
        (prompt - BR_MIN(cached, prompt)) * p.prompt + cached * p.cached +
        (d->is.tokens_generated - d->was.tokens_generated) * p.generated;
    return BR_OK;
}

static br_code
add_one(br_tstore *s, const br_ledger_delta *grown, br_status *st)
{
    br_ledger_delta priced = *grown, *d = &priced;
    br_db_value v[BR_DB_ARGS];
    int n = 0;

    BR_TRY(add_cost(s, d, st));

    v[n++] = INT(d->tenant);
#define V_I                  INT
#define V_F                  REAL
#define V_ADD(column)        d->is.column - d->was.column
#define V_MAX(column)        d->is.column
#define V_SET(column)        d->is.column
#define L(column, how, kind) v[n++] = V_##kind(V_##how(column));
#include "run/tstore.def"
#undef L
    return br_tstore_ask(s, &(br_db_query){upsert_ledger, v, n, NULL, NULL},
                         st);
}

/* *counted: nothing was heard of it, but this batch is there already. The row
 * is new when a server that started meanwhile took us for dead. */
static br_code
is_counted(br_tstore *s, bool *counted, br_status *st)
{
    const br_db_value v[] = {INT(s->run), INT(s->seq + 1)};
    number is = {0};

    *counted = false;
    if (!s->run)
        return BR_OK;
    BR_TRY(br_tstore_ask(
        s,
        &(br_db_query){
            "INSERT INTO run(id, seq) VALUES(?, ?) ON CONFLICT(id) DO "
            "UPDATE SET seq = excluded.seq WHERE run.seq < excluded.seq "
            "RETURNING id",
            v, 2, on_number, &is},
        st));
    *counted = !is.found;
    return BR_OK;
}

br_code
br_tstore_add(br_tstore *s, const br_ledger_delta *d, size_t n, br_status *st)
{
    bool counted = false;
    br_code code;

    BR_TRY(br_tstore_begin(s, st));
    code = is_counted(s, &counted, st);
    for (size_t i = 0; i < n && code == BR_OK && !counted; i++)
        code = add_one(s, &d[i], st);
    BR_TRY(br_tstore_end(s, code, st));
    s->seq++;
    return BR_OK;
}

static br_code
on_ledger(void *ctx, const br_db_value *v, br_status *st)
{
    br_ledger *l = ctx;
    int n = 1;

    (void)st;
#define GET_I i
#define GET_F f
#define L(column, how, kind) \
    l->column = (__typeof__(l->column))v[n++].GET_##kind;
#include "run/tstore.def"
#undef L
    return BR_OK;
}

br_code
br_tstore_usage(br_tstore *s, uint32_t tenant, br_ledger *out, br_status *st)
{
    *out = (br_ledger){0};
    return br_tstore_ask(s,
                         &(br_db_query){select_ledger,
                                        (br_db_value[]){INT(tenant)}, 1,
                                        on_ledger, out},
                         st);
}

/* ---- servers ------------------------------------------------------------- */

typedef BR_VEC(int64_t) ids;

static br_code
on_run(void *ctx, const br_db_value *v, br_status *st)
{
    return br_vec_push((ids *)ctx, v[0].i)
               ? BR_OK
               : br_fail(st, BR_E_OOM, "out of memory");
}

static br_code
forget_run(br_tstore *s, int64_t id, br_status *st)
{
    return br_tstore_ask(s,
                         &(br_db_query){"DELETE FROM run WHERE id = ?",
                                        (br_db_value[]){INT(id)}, 1, NULL,
                                        NULL},
                         st);
}

/* Whoever's row nobody holds has died. */
static br_code
begin_run(br_tstore *s, ids *others, bool *lost, br_status *st)
{
    number is = {0};
    bool got;

    BR_TRY(br_tstore_ask(s,
                         &(br_db_query){.sql = "SELECT id FROM run",
                                        .row = on_run,
                                        .ctx = others},
                         st));
    for (size_t i = 0; i < others->n; i++) {
        BR_TRY(s->kind->hold(s->db, others->at[i], &got, st));
        if (!got)
            continue;
        s->kind->release(s->db, others->at[i]);
        *lost = true;
        BR_TRY(forget_run(s, others->at[i], st));
    }
    BR_TRY(br_tstore_ask(
        s,
        &(br_db_query){.sql = "INSERT INTO run(seq) VALUES(0) RETURNING "
                              "id",
                       .row = on_number,
                       .ctx = &is},
        st));
    BR_TRY(s->kind->hold(s->db, is.value, &got, st));
    s->run = is.value;
    s->seq = 0;
    return BR_OK;
}

br_code
br_tstore_begin_run(br_tstore *s, bool *lost, br_status *st)
{
    ids others = {0};
    br_code code;

    *lost = false;
    BR_TRY(begin_change(s, st));
    code = br_tstore_end(s, begin_run(s, &others, lost, st), st);
    br_vec_fini(&others);
    if (code != BR_OK)
        s->run = 0;
    return code;
}

br_code
br_tstore_end_run(br_tstore *s, br_status *st)
{
    int64_t id = s->run;

    if (!id)
        return BR_OK;
    BR_TRY(br_tstore_begin(s, st));
    BR_TRY(br_tstore_end(s, forget_run(s, id, st), st));
    s->kind->release(s->db, id);
    s->run = 0;
    return BR_OK;
}
