/* tstore_int.h - the store's halves: statements, and a database to run them.
 *
 *   tstore.c: what tenants, keys and ledgers are, in SQL that both understand
 *        | br_db_query
 *        v
 *   br_db_sqlite, br_db_pg: a connection, parameters, rows
 *
 * A ? is a parameter; nothing else in a statement may be one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TSTORE_INT_H
#define BR_TSTORE_INT_H

#include "run/tstore.h"

typedef struct br_db_value {
    enum { BR_DB_TEXT, BR_DB_INT, BR_DB_REAL } kind;
    int64_t i;
    double f;
    br_text s;
} br_db_value;

/* What it is given lasts until it returns; an error ends the query. */
typedef br_code (*br_db_row)(void *ctx, const br_db_value *v, br_status *st);

typedef struct br_db_query {
    const char *sql; /* one statement */
    const br_db_value *arg;
    int n_args;
    br_db_row row; /* NULL: it has none */
    void *ctx;
} br_db_query;

enum { BR_DB_ARGS = 24 }; /* parameters, and columns of a row */

typedef struct br_db br_db;

typedef struct br_db_kind {
    const char *begin;   /* of a change */
    const char *guard;   /* alone while the schema is made, or NULL */
    const char *is_new;  /* 1: nothing is there yet */
    const char *is_ours; /* else: 1: tables of these names are; NULL: always */
    const char *make;    /* before the tables, or NULL */
    const char *id;      /* type of a number that is never given twice */
    bool remote;         /* asking takes time, and may fail for a while */
    /* *out is to be closed after a failure too. Once *stop is true it waits no
     * longer, CANCELLED; NULL: never. */
    br_code (*open)(br_db **out, const char *where, const _Atomic bool *stop,
                    br_status *st);
    /* It was looked at and is ours: before that nothing changes what is there.
     * NULL: nothing is to be done. */
    br_code (*claim)(br_db *db, br_status *st);
    void (*close)(br_db *db); /* may be NULL */
    br_code (*run)(br_db *db, const br_db_query *q, br_status *st);
    /* Mine until this process ends, however it ends; *got false: another's. */
    br_code (*hold)(br_db *db, int64_t id, bool *got, br_status *st);
    void (*release)(br_db *db, int64_t id);
    const char *(*name)(const br_db *db); /* without a password */
    /* How long it waits for locks of others. NULL: that is not its own affair. */
    void (*patience)(br_db *db, int ms);
    /* About once a second: looks for a database that went away, and waits for
     * nothing. NULL: it cannot go away. */
    void (*tend)(br_db *db);
} br_db_kind;

extern const br_db_kind br_db_sqlite, br_db_pg;

bool br_db_is_shared(const char *where); /* a URL of PostgreSQL's */
/* The kind of `where`. UNSUPPORTED, of `what`: built without it. */
br_code br_db_choose(const char *where, const char *what,
                     const br_db_kind **out, br_status *st) BR_MUST_USE;

/* Values for parameters. */
#define INT(v)  ((br_db_value){.kind = BR_DB_INT, .i = (int64_t)(v)})
#define REAL(v) ((br_db_value){.kind = BR_DB_REAL, .f = (double)(v)})
#define TEXT(z) ((br_db_value){.kind = BR_DB_TEXT, .s = br_text_z(z)})

br_code br_tstore_ask(br_tstore *s, const br_db_query *q,
                      br_status *st) BR_MUST_USE;
/* Changes are transactions: all of it or nothing, and on the disk. end: with
 * what became of it so far; returns what became of it. */
br_code br_tstore_begin(br_tstore *s, br_status *st) BR_MUST_USE;
br_code br_tstore_end(br_tstore *s, br_code code, br_status *st) BR_MUST_USE;

enum { BR_KEY_DIGEST = 64 }; /* digits */

void br_tstore_new_key(char key[BR_KEY_CHARS]);
/* BLAKE2b of a secret, as it is kept. */
void br_tstore_digest(const char *secret, char out[BR_KEY_DIGEST + 1]);
/* Where its secret begins; NULL: it is no key. */
const char *br_tstore_secret(br_text key);
br_code br_tstore_check_name(const char *name, br_status *st);

#endif
