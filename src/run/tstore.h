/* tstore.h - tenants, their keys and their ledgers in a database.
 *
 *   brass tenant create    --.                     .-- every second: what the
 *   brass tenant rotate ... --> SQLite, or        <--  ledgers have grown by
 *   a request's key --------'   PostgreSQL         '-- br_tstore_begin_run
 *
 * What a call reports as done is on the disk: kill -9 at any moment loses none
 * of it. Counters are written once a second, so it loses the last second of
 * them, and the next start learns that it may have.
 *
 * A key is br_<id>_<secret>, 16 and 64 hexadecimal digits; the secret is 256
 * random bits and only its BLAKE2b is kept, so a key is shown once and a
 * stolen file opens no door.
 *
 * Where it is: a file, or postgres://USER:PASSWORD@HOST:PORT/DATABASE, which
 * servers on several machines may share. Several processes may have either
 * open; a br_tstore is for one thread. What the build has no library for is
 * UNSUPPORTED.
 *
 * PostgreSQL may go and come back: calls fail meanwhile, at once or nearly,
 * but keys that were used lately open what they did. A key that was changed
 * through another process is known here a second later.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TSTORE_H
#define BR_TSTORE_H

#include "base/json.h"
#include "run/tenant.h"

enum {
    BR_KEY_ID = 16,     /* digits */
    BR_KEY_SECRET = 64, /* digits */
    BR_KEY_CHARS = 3 + BR_KEY_ID + 1 + BR_KEY_SECRET + 1,
    BR_TENANT_NAME = 64, /* bytes, NUL included */
};

typedef struct br_tstore br_tstore;

typedef struct br_tenant {
    uint32_t id; /* 1 .. BR_MAX_TENANTS - 1; never given out again */
    char name[BR_TENANT_NAME];
    br_quota quota;
    int64_t created; /* seconds since 1970 */
} br_tenant;

/* Members of an open object: {"id":..,"name":..,"created":..,"class":..,...} */
void br_tenant_write(br_json_writer *w, const br_tenant *t);
/* One such member of a quota. USAGE: no such member, or not its kind; ranges
 * are br_quota_check's. */
br_code br_quota_read(br_quota *q, const br_json *member,
                      br_status *st) BR_MUST_USE;

bool br_tstore_here(void); /* built with SQLite */
/* A file that is not there yet. */
bool br_tstore_absent(const char *where);
/* Makes the file, readable by its owner alone, or the tables if they are not
 * there. */
br_code br_tstore_open(br_tstore **out, const char *where,
                       br_status *st) BR_MUST_USE;
/* The same, but that it waits for no answer once *stop is true: CANCELLED. */
br_code br_tstore_open_until(br_tstore **out, const char *where,
                             const _Atomic bool *stop,
                             br_status *st) BR_MUST_USE;
void br_tstore_close(br_tstore *s);
const char *br_tstore_name(const br_tstore *s); /* without a password */
/* For a thread that others wait for: who holds a file's lock for over half a
 * second, not 5, makes a change BUSY. */
void br_tstore_hurry(br_tstore *s);
/* A database that went away is looked for again, without waiting. */
void br_tstore_tend(br_tstore *s);

/* name: letters, digits, - . _ @; USAGE if not, or if it is taken. */
br_code br_tstore_create(br_tstore *s, const char *name, const br_quota *q,
                         uint32_t *id, char key[BR_KEY_CHARS],
                         br_status *st) BR_MUST_USE;
br_code br_tstore_set(br_tstore *s, const char *name, const br_quota *q,
                      br_status *st) BR_MUST_USE;
/* The keys before no longer open anything. */
br_code br_tstore_rotate(br_tstore *s, const char *name, char key[BR_KEY_CHARS],
                         br_status *st) BR_MUST_USE;
/* NOT_FOUND names the tenant. */
br_code br_tstore_find(br_tstore *s, const char *name, br_tenant *out,
                       br_status *st) BR_MUST_USE;
/* In order of id; false from each ends it. */
br_code br_tstore_each(br_tstore *s,
                       bool (*each)(void *ctx, const br_tenant *t), void *ctx,
                       br_status *st) BR_MUST_USE;
/* Goes up with every change of a tenant, by whatever process. */
br_code br_tstore_version(br_tstore *s, int64_t *version,
                          br_status *st) BR_MUST_USE;

/* Whose key it is. */
typedef struct br_key_owner {
    uint32_t tenant;           /* 0: it opens nothing */
    char model[BR_MODEL_NAME]; /* of its quota */
} br_key_owner;
/* False: it opens nothing. Does not tell which part was wrong, nor by time. */
br_code br_tstore_key(br_tstore *s, br_text key, br_key_owner *who, bool *ok,
                      br_status *st) BR_MUST_USE;

/* Adds what the ledger has grown by since `was` to the tenant's, and what that
 * costs at its prices of now, or the model's where it has none; quantiles and
 * rates are those of `is`. All n at once or none; after a failure nobody knows
 * which, so the next call of this run has to bring the same. */
typedef struct br_ledger_delta {
    uint32_t tenant;
    br_ledger is, was;
    br_prices model;
} br_ledger_delta;
br_code br_tstore_add(br_tstore *s, const br_ledger_delta *d, size_t n,
                      br_status *st) BR_MUST_USE;
br_code br_tstore_usage(br_tstore *s, uint32_t tenant, br_ledger *out,
                        br_status *st) BR_MUST_USE;

/* The log of requests: what they were and took, never what they said. Rows older
 * than BR_LOG_DAYS go when others come. */
enum { BR_LOG_DAYS = 30 };
typedef struct br_logged {
    char id[64]; /* of the answer; the first row with it stays */
    char model[64], finish[24];
    uint32_t tenant;
    char name[BR_TENANT_NAME]; /* the tenant's, as it is read back */
    int64_t ended_ms;          /* since 1970 */
    uint64_t prompt_tokens, cached_tokens, completion_tokens, preempted;
    double queue_ms, prefill_ms, decode_ms, kv_page_seconds;
} br_logged;
br_code br_tstore_log(br_tstore *s, const br_logged *r, size_t n,
                      br_status *st) BR_MUST_USE;
/* Which of them; zero: no matter. */
typedef struct br_log_query {
    uint32_t tenant;
    int64_t since_ms, until_ms; /* since 1970, that one excluded */
    const char *model, *finish; /* NULL: no matter */
    uint32_t most;              /* newest ones; not 0 */
} br_log_query;
/* Newest first. */
br_code br_tstore_requests(br_tstore *s, const br_log_query *q,
                           void (*each)(void *ctx, const br_logged *r),
                           void *ctx, br_status *st) BR_MUST_USE;
/* Members of an open object. */
void br_logged_write(br_json_writer *w, const br_logged *r);

/* A server begins and ends. *lost: one before did not end, so up to a second of
 * its counters is missing. */
br_code br_tstore_begin_run(br_tstore *s, bool *lost,
                            br_status *st) BR_MUST_USE;
br_code br_tstore_end_run(br_tstore *s, br_status *st) BR_MUST_USE;

#endif
